/* ir: one data structure for the three levels (graph, loop, task), its text form, verifier and reference interpreter.
 * docs/ir.md says what each level means.
 *
 * A module holds functions; a function holds operations.  An operation is its value: both are named by one index
 * (ir_id) that never changes, and operations never move in memory.  Order lives in regions: lists of ids.  An id of 0
 * is "none".  An operation with several results has a tuple type and is taken apart by `get`.
 *
 * All memory comes from the module's arena.  Not thread-safe: one module, one thread at a time. */
#ifndef TIGA_IR_H
#define TIGA_IR_H

#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IR_MAX_RANK 6
#define IR_MAX_STEP 16      /* rows side by side */
#define IR_N_PARTIALS 16    /* accumulators of a scalar reduction: part of the meaning of a program */
#define IR_TOTAL_BLOCK 4096 /* rows per partial result of a reduction over all rows: likewise */

/* ---- types ------------------------------------------------------------------------------------------------------ */
typedef enum ir_dtype {
#define IR_DTYPE(NAME, text, ctype, bytes, family, npy) IR_##NAME,
#include "ir/ir_types.def"
#undef IR_DTYPE
    IR_DTYPE_COUNT,
    IR_NONE = IR_DTYPE_COUNT, /* no value */
    IR_TUPLE,                 /* several results: see get */
    IR_GRAPH,                 /* a graph parameter of a program */
    IR_INSTANCE_T             /* task level: an instance of a buffer */
} ir_dtype;

typedef enum ir_space { IR_UNIFORM, IR_ROW, IR_EDGE } ir_space;

/* A dimension: >= 0 a constant; < 0 the symbol -1 - d of the function; IR_DIM_TILE the width of the enclosing tile. */
typedef int64_t ir_dim;
#define IR_DIM_TILE INT64_MIN
static inline ir_dim ir_dim_sym(uint32_t sym) { return -1 - (int64_t)sym; }
static inline bool ir_dim_is_sym(ir_dim d) { return d < 0 && d != IR_DIM_TILE; }
static inline uint32_t ir_dim_sym_index(ir_dim d) { return (uint32_t)(-1 - d); }

typedef struct ir_type {
    ir_dtype dtype;
    ir_space space; /* graph kernels; IR_UNIFORM elsewhere */
    uint32_t rank;
    ir_dim dim[IR_MAX_RANK];
} ir_type;

const char *ir_dtype_text(ir_dtype t);          /* "f32" */
size_t ir_dtype_bytes(ir_dtype t);
bool ir_dtype_is_float(ir_dtype t);             /* f32 f64: those that are computed with */
bool ir_dtype_is_half(ir_dtype t);              /* f16 bf16: stored; arithmetic is done in f32 */
bool ir_dtype_is_complex(ir_dtype t);           /* c64 c128 */
bool ir_dtype_has_gradient(ir_dtype t);         /* floats, 16-bit ones and complex ones too */
ir_dtype ir_dtype_cotangent(ir_dtype t); /* what its gradients are computed in: f32 for 16-bit floats, t for others */
ir_dtype ir_dtype_part(ir_dtype t); /* of a complex type f32 or f64; others as they are */
bool ir_dtype_is_int(ir_dtype t); /* integers, bool is none */
void ir_dtype_limits(ir_dtype t, int64_t *least, int64_t *most); /* what .i of a value may be; not of f32 f64 */
bool ir_dtype_from_text(const char *text, size_t n, ir_dtype *out);
ir_type ir_scalar(ir_dtype t); /* uniform, rank 0 */
bool ir_type_equal(const ir_type *a, const ir_type *b);
bool ir_shape_equal(const ir_type *a, const ir_type *b); /* rank and dims only */
const char *ir_space_text(ir_space s); /* "uniform" "row" "edge" */
/* Right-aligned broadcast of two shapes into *out (dtype and space are not touched). A constant 1 stretches. */
bool ir_broadcast(const ir_type *a, const ir_type *b, ir_type *out);
/* As many elements whatever the sizes of open dimensions are: what reshape may do. */
struct ir_func;
bool ir_same_elements(const struct ir_func *f, const ir_type *a, const ir_type *b);

/* ---- operations ------------------------------------------------------------------------------------------------- */
typedef enum ir_opcode {
    IR_OP_NONE,
#define IR_OP(NAME, text, levels, cls, lo, hi, doc) IR_##NAME,
#include "ir/ir_ops.def"
#undef IR_OP
    IR_OP_COUNT
} ir_opcode;

enum { IR_LEVEL_K = 1, IR_LEVEL_P = 2, IR_LEVEL_L = 4, IR_LEVEL_T = 8 };
typedef enum ir_class {
    IR_CLASS_LEAF,
    IR_CLASS_UNARY,
    IR_CLASS_BINARY,
    IR_CLASS_TERNARY,
    IR_CLASS_COMPARE,
    IR_CLASS_REDUCE,
    IR_CLASS_LOOP,
    IR_CLASS_EFFECT,
    IR_CLASS_OTHER
} ir_class;

typedef struct ir_op_desc {
    const char *text;
    unsigned levels;
    ir_class cls;
    int min_args, max_args; /* max -1: any */
    const char *doc;
} ir_op_desc;
const ir_op_desc *ir_op_describe(ir_opcode code);
bool ir_op_from_text(const char *text, ir_opcode *out);
static inline bool ir_class_is_elementwise(ir_class c) {
    return c == IR_CLASS_UNARY || c == IR_CLASS_BINARY || c == IR_CLASS_TERNARY || c == IR_CLASS_COMPARE;
}

/* May stand in the region of a combine: an element of its value comes from the same element of its operands. */
bool ir_is_combining(ir_opcode code);

/* reshape to matmul: elements of the result are elements of the operands, or sums of such, at other indices. */
bool ir_is_shape_op(ir_opcode code);

/* The op table as a markdown table: the list in docs/ir.md and `tigac --list-ops`. */
void ir_ops_markdown(base_str *out);

/* Reducers and folds, by the word in {kind}. */
typedef enum ir_kind {
    IR_KIND_SUM,
    IR_KIND_PROD,
    IR_KIND_MIN,
    IR_KIND_MAX,
    IR_KIND_AND,
    IR_KIND_OR, /* the primitive ones: also fold, total */
    IR_KIND_ARGMIN,
    IR_KIND_ARGMAX,
    IR_KIND_SOFTMAX,
    IR_KIND_LOGSUMEXP,
    IR_KIND_VAR,
    IR_KIND_STD, /* lowering makes states of softmax to std */
    IR_KIND_MEAN,
    IR_KIND_COUNT,
    IR_KIND_ANY,
    IR_KIND_ALL, /* sugar: the expand pass removes these */
    IR_KIND_COUNT_
} ir_kind;
const char *ir_kind_text(ir_kind k);
bool ir_kind_from_text(const char *text, ir_kind *out);

/* A scalar of any dtype, in the member that fits; bool is 0 or 1 in .i. */
typedef union ir_scalar_value {
    int64_t i; /* BOOL and integers; F16 BF16: the 16 bits */
    float f; /* F32 */
    double d; /* F64 */
    float c[2]; /* C64: real and imaginary part */
    double z[2]; /* C128 */
} ir_scalar_value;

typedef enum ir_attr_key {
#define IR_ATTR(NAME, text, kind) IR_ATTR_##NAME,
#include "ir/ir_attrs.def"
#undef IR_ATTR
    IR_ATTR_COUNT
} ir_attr_key;

typedef struct ir_attr {
    ir_attr_key key;
    int64_t i; /* INT, DIM */
    double d; /* FLOAT */
    const char *word; /* WORD */
    ir_scalar_value v; /* BITS, of the operation's dtype */
} ir_attr;

typedef uint32_t ir_id;

typedef struct ir_region {
    ir_id *ops;
    size_t n, cap;
} ir_region;

typedef struct ir_op {
    ir_opcode code;
    ir_type type; /* dtype IR_NONE when it has no value */
    ir_id *args;
    uint32_t n_args;
    ir_attr *attrs;
    uint32_t n_attrs;
    ir_region *region; /* LOOP class only */
    base_span span; /* where in the source text it came from */
} ir_op;

/* ---- functions and modules -------------------------------------------------------------------------------------- */
typedef enum ir_role {
    IR_SRC,
    IR_DST,
    IR_NODE,
    IR_EDGE_FIELD,
    IR_PARAM_FIELD,
    IR_GRAPH_FIELD,
    IR_OUT_ROW, /* loop level: result, one per row (or unit) of the domain */
    IR_OUT_EDGE, /* loop level: result, one per edge */
    IR_OUT_PARAM /* loop level: result without a leading axis */
} ir_role;
const char *ir_role_text(ir_role r); /* "src" "dst" "node" "edge" "param" "graph" "outrow" "outedge" "outparam" */
bool ir_role_from_text(const char *text, ir_role *out);
bool ir_role_is_out(ir_role r);

/* A parameter, or a result.  In kernels and loop functions the shape excludes the axis of the role; in programs the
 * type is the whole tensor, whose dims may be the symbols "g.dst", "g.src", "g.edge" of a graph parameter g. */
typedef struct ir_param {
    const char *name;
    ir_role role;
    ir_type type;
    uint32_t begins; /* loops: 1 + the edge field whose values this edge result holds when a launch begins; 0: none */
    base_span span;
} ir_param;

/* Loops over the transposed relation: the sum over the edges of a row, of what comes back to those that are the best of their
 * row in the graph, may be computed by going through those rows instead: each knows which edge that is.  By element
 *     sum over edges of (x == best ? given / (1 - floor(which / tie)) : 0)
 * where which is the number of the edge in its row when it is the only one, tie / 2 when that number is not smaller, less tie
 * for each further edge that has the best value, and -1 when there is none (no edges, NaN).  tie is a power of two so large
 * that it never gets lost: 1 - floor(..) is how many edges have it. */
typedef struct ir_winners {
    bool known;
    uint32_t x, best, which, given; /* parameters: of the row; of its sources */
} ir_winners;
double ir_winners_tie(ir_dtype t); /* 2^24 of f32, 2^52 of f64 */

/* Two sizes of graphs that a program takes to be one: symbol `of` is written as `is`. */
typedef struct ir_same {
    uint32_t of, is;
} ir_same;

typedef enum ir_level { IR_LEVEL_KERNEL, IR_LEVEL_PROGRAM, IR_LEVEL_LOOP, IR_LEVEL_TASK } ir_level;

typedef struct ir_func {
    const char *name;
    ir_level level;
    const char *signature; /* source text on one line, for reflection; may be NULL */
    const char *symbol; /* what emitters call it; NULL until the first of them has chosen */
    bool exported; /* written by the user (false: made by a pass) */
    bool needs_square; /* n_dst == n_src for its graphs, all of them */
    ir_same *same; /* programs and tasks: what else is one, as "b.src" and "a.dst"; no `is` is an `of` */
    size_t n_same, cap_same;
    const char **syms; /* symbols of dimensions */
    size_t n_syms, cap_syms;
    ir_param *params;
    size_t n_params, cap_params;
    ir_param *results; /* kernels: type.space is IR_ROW, IR_EDGE, or IR_UNIFORM for total.  Loop: none (see roles) */
    size_t n_results, cap_results;
    const char *domain; /* kernels and loops: "dst" walks or may walk edges; "src" the same on the transposed relation:
                           its rows are the graph's sources, its sources the graph's rows; "rows" has no edges */
    int64_t rows_per_unit; /* loops: 1, or IR_TOTAL_BLOCK */
    ir_winners winners; /* loops, CPU */
    int64_t team; /* loops, CUDA schedule: threads per row, 0 = not scheduled */
    uint32_t mark; /* for the use of one pass at a time */
    ir_region body;
    ir_op **chunks; /* operations by id, in chunks that never move */
    uint32_t n_ops; /* ids 1 .. n_ops - 1 are in use */
    base_span span;
} ir_func;

typedef struct ir_module {
    base_arena *arena;
    const char *source_name;
    const char *source; /* may be NULL */
    ir_func **funcs; /* added by ir_func_new, taken out by ir_func_remove and ir_func_replace */
    size_t n_funcs, cap_funcs;
    ir_func **index; /* by level and name: open addressing, private to ir_func.c */
    size_t n_index, cap_index;
} ir_module;

/* ---- ir_build.c ------------------------------------------------------------------------------------------------- */
ir_module *ir_module_new(base_arena *arena, const char *source_name, const char *source);
ir_func *ir_func_new(ir_module *m, const char *name, ir_level level); /* appended to the module */
ir_func *ir_func_find(const ir_module *m, const char *name, ir_level level); /* NULL when there is none */
void ir_func_remove(ir_module *m, const ir_func *f);
/* The place of `old` becomes that of `fresh`, which stands last. */
void ir_func_replace(ir_module *m, const ir_func *old, ir_func *fresh);
uint32_t ir_sym(ir_module *m, ir_func *f, const char *name); /* finds or adds */
bool ir_sym_find(const ir_func *f, const char *name, uint32_t *out);
/* The symbol of a graph's size; what: "dst", "src" or "edge". */
bool ir_graph_sym(const ir_func *f, const char *graph, const char *what, uint32_t *out);
/* The name under which f counts it: "g.dst" for "g.src" where the graph is square, and what `same` says. */
ir_dim ir_dim_canonical(const ir_func *f, ir_dim d);
ir_type ir_type_canonical(const ir_func *f, const ir_type *t);
void ir_copy_dims(ir_module *m, ir_func *to, const ir_func *from); /* symbols, and which of them are one */
ir_op *ir_at(const ir_func *f, ir_id id);
/* `want`, or want_2, want_3, ...: no parameter and no result of f is called so. */
const char *ir_unused_name(const ir_module *m, const ir_func *f, const char *want);
/* A new operation, in no region yet. args are copied. */
ir_id ir_op_new(ir_module *m, ir_func *f, ir_opcode code, ir_type type, const ir_id *args, size_t n_args);
void ir_append(ir_module *m, ir_region *r, ir_id id);
void ir_insert(ir_module *m, ir_region *r, size_t at, ir_id id);
void ir_erase(ir_region *r, size_t at);
bool ir_region_find(const ir_region *r, ir_id id, size_t *at); /* directly in r, not in nested regions */
ir_region *ir_region_new(ir_module *m);
void ir_set_args(ir_module *m, ir_op *op, const ir_id *args, size_t n_args); /* copied */
void ir_set_int(ir_module *m, ir_op *op, ir_attr_key key, int64_t v); /* INT and DIM */
void ir_set_word(ir_module *m, ir_op *op, ir_attr_key key, const char *w); /* copied */
void ir_set_value(ir_module *m, ir_op *op, ir_scalar_value v);
void ir_copy_attrs(ir_module *m, const ir_op *from, ir_op *to); /* replaces those of `to` */
bool ir_same_attrs(const ir_op *a, const ir_op *b); /* in any order; values by their bits, NaN too */
void ir_drop_attr(ir_op *op, ir_attr_key key);
const ir_attr *ir_find_attr(const ir_op *op, ir_attr_key key); /* NULL when absent */
int64_t ir_int(const ir_op *op, ir_attr_key key, int64_t otherwise);
const char *ir_word(const ir_op *op, ir_attr_key key); /* NULL when absent */
ir_kind ir_kind_of(const ir_op *op); /* BASE_BUG without a valid {kind} */
/* Builder: appends to a region; spans are taken from b->span. */
typedef struct ir_builder {
    ir_module *m;
    ir_func *f;
    ir_region *r;
    base_span span;
} ir_builder;
ir_id ir_emit(ir_builder *b, ir_opcode code, ir_type type, const ir_id *args, size_t n_args);
ir_id ir_emit1(ir_builder *b, ir_opcode code, ir_type type, ir_id a);
ir_id ir_emit2(ir_builder *b, ir_opcode code, ir_type type, ir_id a, ir_id c);
ir_id ir_emit3(ir_builder *b, ir_opcode code, ir_type type, ir_id a, ir_id c, ir_id d);
ir_id ir_emit_const(ir_builder *b, ir_type type, ir_scalar_value v);
ir_id ir_emit_i64(ir_builder *b, int64_t v);
ir_id ir_emit_f(ir_builder *b, ir_type type, double v); /* a constant of type.dtype, floats and complex */
ir_id ir_emit_dimsize(ir_builder *b, ir_dim d); /* const for a constant dimension */
/* Elementwise with the result type worked out: broadcast shape, widest space, bool for comparisons. */
ir_id ir_emit_elementwise(ir_builder *b, ir_opcode code, const ir_id *args, size_t n_args);
ir_space ir_widest_space(const ir_func *f, const ir_id *args, size_t n_args); /* uniform when there are none */
ir_id ir_emit_cast(ir_builder *b, ir_dtype to, ir_id a); /* shape and space of a */
/* Begins a LOOP operation with n_region_args i64 arguments (ids into args_out) and points b->r into it; returns the
 * old region for ir_end_loop. */
ir_region *ir_begin_loop(ir_builder *b, ir_opcode code, ir_type type, const ir_id *args, size_t n_args,
                         size_t n_region_args, ir_id *args_out, ir_id *loop_out);
void ir_end_loop(ir_builder *b, ir_region *outer);
/* A copy of f, appended to the module; operations keep their ids. */
ir_func *ir_func_clone(ir_module *m, const ir_func *f, const char *name);
/* Replaces uses of old ids by map[id] (0: keep) in every operation of the function; one step, chains are not followed. */
void ir_remap(ir_func *f, const ir_id *map);
/* Calls fn for each operation in program order, regions after the operation that holds them. */
void ir_walk(ir_func *f, void (*fn)(void *ctx, ir_func *f, ir_region *r, ir_id id), void *ctx);
void ir_count_uses(ir_func *f, uint32_t *uses); /* uses[f->n_ops]: by operations that stand in a region */
bool ir_walks(const ir_func *f); /* domain dst or src: there may be edges */
bool ir_transposed(const ir_func *f); /* domain src */
/* Of a loop function: whether some walk looks at the sources of edges, or at their numbers in a transposed relation.  One
 * whose winners are known looks at few of them: not counted. */
enum { IR_READS_SOURCE = 1, IR_READS_EDGE_OF = 2 };
unsigned ir_edge_reads(const ir_func *f);
unsigned ir_walk_reads(const ir_func *f, const ir_op *edges); /* of one walk */
bool ir_is_scan(const ir_op *combine); /* its members are values per edge */
const ir_op *ir_yield_of(const ir_func *f, const ir_op *op); /* of a repeat or an arm; of an if: its first arm's */
bool ir_has_effect(const ir_op *op); /* must be kept although nothing uses its value; true of every op with a region */

/* ---- ir_print.c, ir_parse.c: the text form; parse(print(m)) prints the same bytes ------------------------------- */
/* levels: mask of IR_LEVEL_K|P|L|T; functions of other levels are left out. */
void ir_print(const ir_module *m, unsigned levels, base_str *out);
void ir_print_func(const ir_func *f, base_str *out);
uint32_t ir_printed_number(const ir_func *f, ir_id id); /* what is printed after '%'; 0 when it stands in no region */
void ir_print_type(const ir_func *f, const ir_type *t, base_str *out);
void ir_print_scalar(ir_dtype t, ir_scalar_value v, base_str *out); /* reads back exactly; bool is true or false */
/* On failure NULL, with diagnostics (ids E09xx) in diags. */
ir_module *ir_parse(base_arena *arena, const char *name, const char *text, base_diags *diags);

/* ---- ir_verify.c: true when every rule of the level holds; otherwise the first broken rule in err --------------- */
bool ir_verify(const ir_module *m, base_str *err);
bool ir_verify_func(const ir_module *m, const ir_func *f, base_str *err);

/* ---- ir_sum.c: dimensions that are computed from others, symbols called "D+K" -------------------------------------- */
enum { IR_SUM_TERMS = 12 };
typedef struct ir_sum { /* sorted; names belong to the function */
    base_size_term term[IR_SUM_TERMS];
    uint32_t n;
} ir_sum;
bool ir_sym_is_computed(const char *name);
ir_sum ir_sum_number(int64_t n);
bool ir_sum_of(const ir_func *f, ir_dim d, ir_sum *out); /* false, here and below: too long */
bool ir_sum_calc(ir_opcode code, const ir_sum *a, const ir_sum *b, ir_sum *out); /* add, sub, mul; out may be a or b */
bool ir_sum_is_number(const ir_sum *s, int64_t *out);
/* As a dimension of f, which gets a symbol where needed; false: it is never a size, like -F or 2 - 3. */
bool ir_sum_dim(ir_module *m, ir_func *f, const ir_sum *s, ir_dim *out);
bool ir_sum_find(const ir_func *f, const ir_sum *s, ir_dim *out); /* the same without adding; false: there is none */
bool ir_dim_calc(ir_module *m, ir_func *f, ir_opcode code, ir_dim a, ir_dim b, ir_dim *out);
/* Symbol `sym` of the callee, computed from others that are `dims` in the caller. */
bool ir_sum_translate(const ir_func *caller, const ir_func *callee, uint32_t sym, const ir_dim *dims, ir_sum *out);
/* Where that sum is `shown` in the caller and one of its symbols, *unknown, is not known yet (dims < 0 is a symbol, so
 * `known` says it): what that one is there. */
bool ir_sum_solve(const ir_func *caller, const ir_func *callee, uint32_t sym, const ir_dim *dims, const bool *known,
                  ir_dim shown, uint32_t *unknown, ir_sum *out);
bool ir_sum_is_canonical(const ir_func *f, uint32_t sym); /* of symbols of f, and in the one text that there is */
bool ir_compute_dims(const ir_func *f, int64_t *dims); /* from the others; false: one is no size */

/* ---- ir_call.c: calls of kernels from programs.  dims: one per symbol of the callee, in dimensions of the caller. -- */
bool ir_bind_call(const ir_func *caller, const ir_op *call, const ir_func *callee, ir_dim *dims, base_str *why);
/* Before a call is bound: gives it what its operands do not show, the dimensions `known` (one per symbol of `from`, whose
 * names the callee's are; NULL: none), and the caller the symbols of what the callee computes.  false: as in ir_bind_call. */
bool ir_name_dims(ir_module *m, ir_func *caller, ir_op *call, const ir_func *callee, const ir_func *from,
                  const ir_dim *known, base_str *why);
/* The type in the caller of result i. */
bool ir_call_result(const ir_func *caller, const ir_op *call, const ir_func *callee, const ir_dim *dims, size_t i,
                    ir_type *out, base_str *why);

/* ---- ir_reach.c: where derivatives go ---------------------------------------------------------------------------- */
/* From operand `arg` of an operation that has one value to that value? */
bool ir_grad_flows(const ir_func *f, const ir_op *op, uint32_t arg);
/* From value `from` to value `to` of a program; in_round: without what earlier rounds of the loops around `to` left, which
 * is what the gradient of `to` sees.  Then from a parameter of a kernel or program to one of its results. */
bool ir_grad_reaches(const ir_module *m, const ir_func *f, ir_id from, ir_id to, bool in_round);
bool ir_grad_reaches_result(const ir_module *m, const ir_func *f, size_t param, size_t result);

/* ---- ir_eval.c: the one evaluator of scalar operations; constant folding and the interpreters call it ------------ */
/* code: an elementwise operation. dtype: of the operands (of operand 1 for select, of operand 0 for cast). */
ir_scalar_value ir_eval(ir_opcode code, ir_dtype dtype, ir_dtype result, const ir_scalar_value *args);
/* Is `code` defined on operands of this dtype? */
bool ir_eval_defined(ir_opcode code, ir_dtype dtype);
/* May a value of one type be cast to the other?  Complex numbers become no real ones. */
bool ir_cast_defined(ir_dtype from, ir_dtype to);
/* The dtype of the result of an elementwise operation but cast, from the dtype of its last operand. */
ir_dtype ir_elementwise_dtype(ir_opcode code, ir_dtype operand);
/* Real and imaginary part of a complex constant, and the other way. */
ir_scalar_value ir_part(ir_dtype t, ir_scalar_value v, int which);
ir_scalar_value ir_complex(ir_dtype t, ir_scalar_value re, ir_scalar_value im);
bool ir_scalar_same(ir_dtype t, ir_scalar_value a, ir_scalar_value b); /* bit for bit */
bool ir_kind_is_primitive(ir_kind k); /* sum prod min max and or */
ir_opcode ir_kind_opcode(ir_kind k); /* of a primitive kind: the operation that combines */
ir_scalar_value ir_kind_identity(ir_kind k, ir_dtype t); /* primitive kinds */
ir_scalar_value ir_kind_combine(ir_kind k, ir_dtype t, ir_scalar_value a, ir_scalar_value b); /* state first */
/* Does (v, e) beat (best, best_e) under argmin or argmax?  NaN beats numbers, then the value, then the smaller edge;
 * best_e < 0 always loses. */
bool ir_arg_better(ir_kind k, ir_dtype t, ir_scalar_value v, int64_t e, ir_scalar_value best, int64_t best_e);
ir_scalar_value ir_load_scalar(ir_dtype t, const void *array, int64_t index);
void ir_store_scalar(ir_dtype t, void *array, int64_t index, ir_scalar_value v);

/* ---- ir_math.c: transcendental functions of our own (ir_math.def says which) ----- */
const char *ir_math_name(ir_opcode code, ir_dtype t); /* "tiga_exp_f32", the name in emitted code too; NULL: not ours */
float ir_math_f32(ir_opcode code, float a, float b); /* b: where the operation has two operands */
double ir_math_f64(ir_opcode code, double a, double b);

/* ---- ir_interp.c (graph level), ir_interp_loop.c: slow, obvious, the judge of everything else -------------------- */
typedef struct ir_graph_data { /* a relation by destination */
    int64_t n_dst, n_src, n_edges;
    const int64_t *offsets; /* [n_dst + 1] */
    const int64_t *sources; /* [n_edges] */
    const int64_t *edge_of; /* [n_edges] for a transposed relation: the edge of the graph that each one is; else NULL */
} ir_graph_data;

typedef struct ir_call_data {
    const ir_graph_data *graph; /* kernels and loops, as it is walked (domain = src: transposed); NULL: none */
    const ir_graph_data *const *graphs; /* programs: one per parameter, NULL where it is not a graph */
    const int64_t *dims; /* one per symbol of the function, program graph sizes included */
    const void *const *in; /* one per parameter that is not a result */
    void *const *out; /* one per result */
    int64_t n_rows; /* rows of the domain, for loops and kernels over rows; a walk over dst takes the graph's */
} ir_call_data;

/* Runs a kernel or a program (calls included, found in m by name); false with a reason when the function is ill-formed
 * or memory runs out. */
bool ir_interpret_graph(const ir_module *m, const ir_func *f, const ir_call_data *call, base_str *err);
/* Runs a loop function over all units; checks every index against the shape of the array. Parameters with an out role
 * take their arrays from call->out in order. */
bool ir_interpret_loop(const ir_module *m, const ir_func *f, const ir_call_data *call, base_str *err);

#ifdef __cplusplus
}
#endif
#endif
