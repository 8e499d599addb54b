/* codegen, internal: what the emitters of C, CUDA, the header and the tables share.
 *
 * An emitter writes lines through a cg_text, gets C identifiers from a cg_names (user names survive, clashes get a
 * trailing underscore), and turns scalar operations into C expressions with cg_expr.  Operations C has no operator for
 * become calls of small inline functions (tiga_min_f32 ...); cg_helpers collects which ones were used, and
 * cg_emit_helpers writes exactly those, so that nothing unused is left in the output. */
#ifndef TIGA_CG_H
#define TIGA_CG_H

#include "codegen/codegen.h"

/* ---- cg_text.c: lines with indentation --------------------------------------------------------------------------- */
typedef struct cg_text {
    base_str *out;
    int indent; /* levels of four columns */
} cg_text;
void cg_line(cg_text *w, const char *fmt, ...) BASE_PRINTF(2, 3); /* one indented line */
void cg_blank(cg_text *w);
void cg_open(cg_text *w, const char *fmt, ...) BASE_PRINTF(2, 3); /* "... {" and one level in */
void cg_close(cg_text *w, const char *after); /* "}" after; one level out */
void cg_raw(cg_text *w, const char *text); /* as it is; may hold many lines */
/* The text as a C string literal, one literal a line at `\n`, cut so that no line grows long. */
void cg_string_literal(cg_text *w, const char *text);
/* A block comment; `*` `/` pairs inside the text are broken up. */
void cg_comment(cg_text *w, const char *text);
bool cg_fail(base_str *err, const char *fmt, ...) BASE_PRINTF(2, 3); /* always false */
typedef struct cg_emission { /* one output on its way */
    const ir_module *m;
    const cg_options *o;
    base_str *out, *err;
    base_arena *arena;
} cg_emission;
/* Runs fn with an arena that lasts as long as it.  false: fn said so, or "out of memory" is in err. */
bool cg_emit_with(bool (*fn)(const cg_emission *e), cg_emission *e);

/* ---- cg_names.c: identifiers ------------------------------------------------------------------------------------- */
typedef struct cg_used {
    const char *text;
    uint32_t base; /* the name it has a number behind, from 1 */
    int number, next; /* that number, 0: none; the least that may be free behind this one */
} cg_used;
typedef struct cg_names {
    base_arena *arena;
    cg_used *used;
    size_t n, cap;
    uint32_t *slots; /* numbers of names from 1, by hash */
    size_t n_slots;
} cg_names;
void cg_names_init(cg_names *names, base_arena *arena);
size_t cg_names_mark(const cg_names *names); /* scopes: names taken after the mark are free again ... */
void cg_names_release(cg_names *names, size_t mark); /* ... after the release */
/* A valid identifier like `want`, not a keyword of C, C++ or CUDA, nothing of ours, and not in use; then in use. */
const char *cg_name(cg_names *names, const char *want);
/* The same with no scope: characters that no identifier may hold become '_', reserved words get a '_'. */
const char *cg_identifier(base_arena *arena, const char *want);
bool cg_is_reserved(const char *word);

/* ---- cg_expr.c: scalar operations as C expressions ---------------------------------------------------------------- */
#define CG_DTYPES IR_DTYPE_COUNT
typedef struct cg_helpers {
    bool scalar[IR_OP_COUNT][CG_DTYPES][CG_DTYPES]; /* operation, dtype of the operands, dtype of the result */
    bool collapse[IR_KIND_COUNT_][CG_DTYPES]; /* the tree over 16 partial results */
    bool arg_better[IR_KIND_COUNT_][CG_DTYPES]; /* does (value, edge) win under argmin / argmax */
    bool math, source;
    bool cuda; /* written for CUDA */
} cg_helpers;

const char *cg_ctype(ir_dtype t); /* of a value: bool int32_t float ...; uint16_t for f16 and bf16, which are bits */
const char *cg_storage(ir_dtype t); /* of an array element: uint8_t for bool */
/* The number of the array element type in abi.h is the number in ir_dtype. */
const char *cg_const(base_arena *arena, ir_dtype t, ir_scalar_value v); /* an operand: needs no parentheses */
/* The expression of an elementwise operation on operands that need no parentheses.  in: dtype of the operands (of
 * operand 1 for select).  *atom: the result needs no parentheses as an operand. */
const char *cg_expr(cg_helpers *h, base_arena *arena, ir_opcode code, ir_dtype in, ir_dtype out,
                    const char *const *args, bool *atom);
/* The text without a pair of parentheses around all of it. */
const char *cg_bare(base_arena *arena, const char *text);
/* combine(state, value) of a primitive kind: the opcode that does it. */
ir_opcode cg_kind_op(ir_kind k);
/* The inline functions in use. Written with TIGA_FN in front, which the prelude defines (static inline; in CUDA static
 * __device__).  Needs INFINITY, NAN, INT32_MIN ... and the names of the C mathematics library. */
void cg_emit_helpers(cg_text *w, const cg_helpers *h);
/* cg_half.c: casts between f32 and the 16-bit floats */
bool cg_is_half_cast(ir_opcode code, ir_dtype in, ir_dtype to);
void cg_half_prelude(base_str *out, bool cuda); /* before the first of them */
void cg_half_cast(base_str *out, ir_dtype in, ir_dtype to, bool cuda);
void cg_half_vector(base_str *out, cg_helpers *h, base_arena *arena, ir_dtype in, ir_dtype to, int n);
/* cg_math.c: the transcendental functions of ir_math.def that are in use */
void cg_math_scalars(base_str *out, const cg_helpers *h);
/* Does the expression of this operation call the C library's mathematics? "expf"; NULL: it does not. */
const char *cg_libm(ir_opcode code, ir_dtype in);

/* ---- cg_symbols.c: what functions and dimensions are called outside of themselves ---------------------------------- */
/* The C name of a function: its own where possible.  No other function's name, nor that name with one of the endings we
 * add (_rows, _rows32, _host ...), is the same, and it is no function of the C library: `malloc` becomes `malloc_`.
 * Functions of one IR name (kernel, loop, task) share it.  Chosen at the first call and kept in the functions. */
const char *cg_symbol(const ir_module *m, const char *name);
/* Position of a loop function in the module's table of kernels; -1: none. */
int64_t cg_kernel_index(const ir_module *m, const char *name);
const ir_func *cg_kernel_of(const ir_module *m,
                            const ir_func *task); /* the graph kernel it calls, NULL for a program */
/* "f32[F, 3]" */
const char *cg_type_text(base_arena *arena, const ir_func *f, const ir_type *t);
/* "src x: f32[F]"; in programs "x: f32[g.dst]" */
const char *cg_field_text(base_arena *arena, const ir_func *f, const ir_param *p, bool result, bool program);
/* What an array is indexed by and its feature axes, as in tiga_field_info. */
typedef struct cg_field {
    const char *at; /* "SRC" */
    int64_t graph;
    uint32_t rank;
    const ir_dim *shape;
} cg_field;
cg_field cg_field_of(const ir_func *task, const ir_param *p, bool result, bool program);

/* ---- cg_module.c: the tables at the end of a file; shared with CUDA modules --------------------------------------- */
void cg_emit_tables(const ir_module *m, const cg_options *o, cg_text *w, base_arena *arena);

/* ---- cg_c.c ---- */
extern const char cg_abi_text[]; /* include/tiga/abi.h without its #include lines */
extern const char cg_math_f32_text[], cg_math_f64_text[]; /* ir/ir_math_f32.h, ir/ir_math_f64.h */
/* "weighted_sum[F](src x: f32[F], ...) -> ..." as a comment, or the function's own text when there is no source. */
void cg_banner(cg_text *w, base_arena *arena, const ir_func *f);

#endif
