/* fe: inside of the frontend.  Names, tokens, the syntax tree, the state of lowering; prototypes grouped by file.
 *
 * Everything lives in one arena.  Names are interned: equal texts are one pointer, and a name carries what it means
 * just now, so looking one up costs nothing.  An ir_id of 0 is a value that was already complained about: whoever gets
 * one passes it on in silence. */
#ifndef TIGA_FE_H
#define TIGA_FE_H

#include "frontend/frontend.h"

#define FE_MAX_SOURCE (16u << 20) /* bytes of a file */
#define FE_MAX_NAME 128           /* bytes of a name */
#define FE_MAX_NESTING 200        /* brackets and operators inside one another, while parsing */
#define FE_MAX_HEIGHT 500         /* of an expression's tree: long chains a + b + c + ... */
#define FE_MAX_DEPTH 1500         /* of expressions while lowering, inlined functions included */
#define FE_MAX_OPS 65536          /* operations of one kernel or program, inlined functions included */
#define FE_MAX_WORK (1u << 20)    /* expressions lowered in one file, inlined functions included */
#define FE_MAX_ERRORS 100         /* collected, and as many warnings; base shows 20 */

typedef enum fe_error_id {
#define FE_ERROR(ID, title, text, wrong, right) FE_##ID,
#include "frontend/fe_errors.def"
#undef FE_ERROR
    FE_ERROR_COUNT
} fe_error_id;

/* ---- tokens ----------------------------------------------------------------------------------------------------- */
typedef enum fe_tok_kind {
#define FE_TOKEN(NAME, text) FE_TOK_##NAME,
#include "frontend/fe_tokens.def"
#undef FE_TOKEN
    FE_TOK_COUNT
} fe_tok_kind;

typedef struct fe_binding fe_binding;
typedef struct fe_decl fe_decl;

typedef struct fe_name {
    const char *text;
    uint64_t hash;
    fe_decl *decl;       /* kernel, program, fn or reducer of this name */
    fe_binding *local;   /* valid while local->frame is the current frame */
    fe_binding *field;   /* field of the current kernel */
    uint64_t told;       /* the body in which it was reported as unknown: once is enough */
} fe_name;

typedef struct fe_token {
    fe_tok_kind kind;
    bool newline; /* a line ended between the token before and this one */
    base_span span;
    fe_name *name; /* NAME */
} fe_token;

/* ---- syntax tree ------------------------------------------------------------------------------------------------ */
typedef enum fe_dim_kind { FE_DIM_CONST, FE_DIM_NAME, FE_DIM_GRAPH, FE_DIM_SUM } fe_dim_kind;
typedef struct fe_dim fe_dim;
struct fe_dim {
    fe_dim_kind kind;
    int64_t value;         /* CONST */
    fe_name *name, *member; /* NAME; GRAPH: g . dst, member is the word */
    base_span span;
    fe_dim *left, *right;  /* SUM, of fixed dimensions */
    fe_tok_kind op;        /* SUM: PLUS, MINUS, STAR */
};

typedef struct fe_type {
    fe_name *dtype;
    base_span span, dtype_span;
    fe_dim *dims;
    size_t n, cap;
} fe_type;

/* Does an expression consist of literals only?  Then it takes the type of what stands beside it. */
typedef enum fe_lit { FE_LIT_NO, FE_LIT_INT, FE_LIT_FLOAT, FE_LIT_IMAG } fe_lit;

typedef enum fe_expr_kind {
    FE_EXPR_BAD,
    FE_EXPR_NUMBER,
    FE_EXPR_BOOL,
    FE_EXPR_NAME,
    FE_EXPR_FIELD,
    FE_EXPR_MEMBER,
    FE_EXPR_CALL,
    FE_EXPR_REDUCE,
    FE_EXPR_UNARY,
    FE_EXPR_BINARY,
    FE_EXPR_SHAPE,
    FE_EXPR_LIST /* (a, b): args */
} fe_expr_kind;

typedef struct fe_expr fe_expr;
typedef struct fe_arg {
    fe_name *name; /* NULL: by position */
    base_span name_span;
    fe_expr *value;
} fe_arg;

struct fe_expr {
    fe_expr_kind kind;
    fe_lit lit;
    uint32_t height;
    fe_tok_kind op;  /* UNARY, BINARY; FIELD: the role; BOOL: TRUE or FALSE */
    base_span span, name_span; /* name_span: the name, or the operator */
    fe_name *name;
    fe_expr *a, *b;
    fe_arg *args; /* CALL, REDUCE */
    size_t n_args, cap_args;
    fe_type *shape; /* SHAPE: [g.dst, F] */
};

typedef struct fe_symbol {
    fe_name *name;
    base_span span;
} fe_symbol;

typedef enum fe_stmt_kind {
    FE_STMT_LET,
    FE_STMT_VAR,
    FE_STMT_ASSIGN,
    FE_STMT_REPEAT,
    FE_STMT_WHILE,
    FE_STMT_IF,
    FE_STMT_RETURN
} fe_stmt_kind;
typedef struct fe_stmt fe_stmt;
typedef struct fe_block {
    fe_stmt **items;
    size_t n, cap;
    base_span end; /* the closing brace */
} fe_block;

struct fe_stmt {
    fe_stmt_kind kind;
    base_span span, name_span;
    fe_name *name;
    fe_expr *value; /* REPEAT: the count; WHILE, IF: the condition; RETURN of one value */
    fe_expr *limit; /* WHILE: the most rounds */
    fe_block body, other; /* REPEAT, WHILE, IF; other: else */
    fe_symbol *names; /* LET (a, b) */
    size_t n_names, cap_names;
    fe_arg *returns; /* RETURN (a = ..., b = ...) */
    size_t n_returns, cap_returns;
};

typedef struct fe_param {
    fe_name *name;
    base_span span; /* of the name */
    fe_tok_kind role; /* kernels: SRC DST NODE EDGE PARAM */
    bool is_graph;
    fe_type type;
} fe_param;

typedef struct fe_result {
    fe_name *name; /* NULL: the single unnamed one, called "out" */
    base_span span;
    bool edge;
    fe_type type;
} fe_result;

typedef struct fe_state {
    fe_name *name;
    base_span span;
    fe_type type;
    fe_expr *start;
} fe_state;

typedef struct fe_values { /* of lift or combine */
    fe_expr **items;
    size_t n, cap;
    base_span span; /* of the word */
} fe_values;

typedef struct fe_reducer_body {
    fe_state *states;
    size_t n_states, cap_states;
    fe_values lift, combine;
    fe_expr *finalize;
    bool commutative;
} fe_reducer_body;

struct fe_decl {
    fe_tok_kind kind; /* KERNEL PROGRAM FN REDUCER */
    bool bad;         /* something is wrong with its head or its body: uses are silent */
    bool open;        /* fn, program: being looked at just now */
    bool ordered;     /* program: stands in the list of fe_context */
    bool of_export;   /* program: made by `export vjp`, has no text of its own */
    fe_name *name;
    base_span span; /* of the name */
    const char *signature;
    fe_symbol *syms;
    size_t n_syms, cap_syms;
    fe_param *params;
    size_t n_params, cap_params;
    fe_result *results;
    size_t n_results, cap_results;
    fe_block body;
    fe_expr *value; /* fn */
    fe_reducer_body *reducer;
    uint64_t params_used; /* fn: bit for each of the first 64 parameters */
    uint64_t syms_used;   /* kernel: bit for each of the first 64 symbols that its head uses */
    size_t first_token, end_token; /* of its text; of_export: none */
    ir_func *func;
    fe_decl *unfixed;     /* kernel with a dimension that -D fixes: the same without -D, for calls with other sizes */
    bool unfixed_used;
};

/* export vjp f(x, w) */
typedef struct fe_export {
    fe_name *name;
    base_span span, name_span;
    fe_symbol *wrt;
    size_t n_wrt, cap_wrt;
} fe_export;

/* A gradient whose existence is checked when all bodies are known. */
typedef struct fe_gradient {
    const ir_func *f;
    ir_id value, wrt;
    base_span span; /* of what it is with respect to */
    base_span of;
    bool may_miss; /* missing = 0 */
} fe_gradient;

typedef struct fe_context {
    base_arena *arena;
    base_diags *diags;
    const char *source;
    size_t length;
    fe_name **names; /* open addressing */
    size_t n_names, cap_names;
    fe_token *tokens;
    size_t n_tokens, cap_tokens;
    fe_decl **decls;
    size_t n_decls, cap_decls;
    fe_decl **programs; /* callees before their callers */
    size_t n_programs, cap_programs;
    fe_export *exports;
    size_t n_exports, cap_exports;
    fe_gradient *gradients;
    size_t n_gradients, cap_gradients;
    fe_define *defines;
    size_t n_defines;
    ir_module *module;
    uint64_t n_bodies; /* heads and bodies looked at so far; see fe_name.told */
    size_t work; /* expressions and operations lowered so far: functions that call functions can multiply */
    bool exhausted; /* FE_MAX_WORK was reported */
    base_diag silent; /* where reports go after FE_MAX_ERRORS */
} fe_context;

/* ---- report.c: errors of the table, names ------------------------------------------------------------------------ */
base_diag *fe_report(fe_context *c, fe_error_id id, base_span span, const char *fmt, ...) BASE_PRINTF(4, 5);
base_diag *fe_vreport(fe_context *c, fe_error_id id, base_span span, const char *fmt, va_list ap);
void fe_label(fe_context *c, base_diag *d, const char *fmt, ...) BASE_PRINTF(3, 4);
void fe_note_at(fe_context *c, base_diag *d, base_span span, const char *fmt, ...) BASE_PRINTF(4, 5);
void fe_note(fe_context *c, base_diag *d, const char *fmt, ...) BASE_PRINTF(3, 4);
fe_name *fe_intern(fe_context *c, const char *text, size_t n);
/* "Did you mean": feed candidates, then ask; NULL when none is near. */
typedef struct fe_nearest {
    const char *wanted, *best;
    size_t distance, n_tried;
} fe_nearest;
void fe_nearest_try(fe_nearest *s, const char *candidate);
const char *fe_nearest_get(const fe_nearest *s);
/* What to write instead of a word that belongs to another language or library; NULL: nothing is known of it. */
typedef enum fe_word_at {
    FE_WORD_FUNC,
    FE_WORD_REDUCER,
    FE_WORD_TYPE,
    FE_WORD_STMT,
    FE_WORD_MEMBER,
    FE_WORD_NAME
} fe_word_at;
const char *fe_word_advice(fe_word_at where, const char *word);
/* The advice, or what is near as a question, or nothing. */
void fe_label_word(fe_context *c, base_diag *d, fe_word_at where, const fe_nearest *near);

/* ---- lex.c, parse.c, parse_expr.c -------------------------------------------------------------------------------- */
const char *fe_tok_text(fe_tok_kind k);
void fe_lex(fe_context *c);
void fe_parse(fe_context *c);

typedef struct fe_parser {
    fe_context *c;
    size_t at;
    unsigned depth; /* of expressions */
    unsigned brackets; /* ( and [ that are open, to find the end of a broken statement */
    const fe_decl *decl; /* being read */
    bool panic; /* an error was reported; everything returns to the statement, which skips on */
} fe_parser;
const fe_token *fe_peek(const fe_parser *p, size_t ahead);
const fe_token *fe_next(fe_parser *p); /* takes one */
bool fe_at(const fe_parser *p, fe_tok_kind k);
bool fe_take(fe_parser *p, fe_tok_kind k);
bool fe_expect(fe_parser *p, fe_tok_kind k, const char *what); /* what: where it was expected; may be NULL */
/* The bracket that ends what began at `open`. */
void fe_expect_close(fe_parser *p, fe_tok_kind k, base_span open, const char *what);
base_diag *fe_fail(fe_parser *p, fe_error_id id, base_span span, const char *fmt, ...) BASE_PRINTF(4, 5);
fe_name *fe_expect_name(fe_parser *p, const char *what, base_span *span);
void fe_parse_dims(fe_parser *p, fe_type *t); /* after the opening bracket, to the closing one */
fe_expr *fe_parse_expr(fe_parser *p); /* never NULL */
void fe_parse_type(fe_parser *p, fe_type *t);
void fe_end_of_stmt(fe_parser *p);
void fe_parse_reducer(fe_parser *p, fe_decl *d); /* parse_reducer.c: the body */

/* ---- funcs.c: the tables of functions and reducers --------------------------------------------------------------- */
typedef enum fe_class { /* dtypes a function takes */
                        FE_NUM, /* what has an order */
                        FE_FLOAT,
                        FE_INT,
                        FE_BOOL,
                        FE_ANY,
                        FE_LINEAR, /* numbers, complex ones too */
                        FE_QUOTIENT, /* floats and complex numbers */
                        FE_COMPLEX
} fe_class;
typedef enum fe_form {
    FE_MAP, /* one operation, operands of one dtype */
    FE_SUGAR, /* several operations, operands of one dtype */
    FE_FOLD, /* over axes */
    FE_PICK, /* min, max: two operands are MAP, one is FOLD */
    FE_SELECT,
    FE_DOT,
    FE_SHAPE, /* changes shapes */
    FE_FILL,
    FE_GRAD
} fe_form;
typedef enum fe_func_id {
#define FE_FUNC(NAME, text, form, cls, params, code, doc) FE_FUNC_##NAME,
#include "frontend/fe_funcs.def"
#undef FE_FUNC
    FE_FUNC_COUNT
} fe_func_id;
typedef struct fe_func {
    fe_func_id id;
    const char *text;
    fe_form form;
    fe_class cls;
    const char *params; /* "x lo hi", "x a?": ? may be left out */
    ir_opcode code; /* MAP, PICK */
    const char *doc;
} fe_func;
typedef struct fe_reducer {
    const char *text;
    ir_kind kind;
    fe_class cls;
    const char *params;
    const char *doc;
} fe_reducer;
const fe_func *fe_func_find(const char *text);
const fe_func *fe_func_at(size_t i);
const fe_reducer *fe_reducer_find(const char *text);
const fe_reducer *fe_reducer_at(size_t i);
bool fe_is_later(const char *text); /* a function of the language that this version does not have yet */
bool fe_is_builtin(const char *text); /* a function or a type */

/* ---- lowering ---------------------------------------------------------------------------------------------------- */
typedef enum fe_binding_kind {
    FE_BIND_VALUE,
    FE_BIND_VAR,
    FE_BIND_GRAPH,
    FE_BIND_DIM,
    FE_BIND_FIELD,
    FE_BIND_STATE
} fe_binding_kind;
struct fe_binding {
    fe_binding_kind kind;
    fe_name *name;
    base_span span;
    uint32_t frame;
    bool used;
    bool carried; /* VAR: already in the list of the repeat being looked at */
    bool twice; /* FIELD: of two of one name, which was reported */
    fe_lit lit; /* VALUE, VAR: its first value was made of literals only, so nothing but they said its type */
    ir_id id; /* VALUE, VAR; 0: broken. GRAPH: which graph, from 0 */
    uint32_t index; /* GRAPH, FIELD: of the parameter */
    ir_dim dim; /* DIM */
    const fe_reducer_body *states; /* STATE: a or b in combine, */
    const ir_id *values; /* and the values of its states */
    fe_tok_kind role; /* FIELD */
    const char *what; /* "parameter", "value" ... for messages; begins with '(' when it may stay unused */
    fe_binding *outer; /* what the name meant before */
};

/* Where `return` puts its values. */
typedef struct fe_target {
    const ir_param *results;
    size_t n;
    ir_id *values; /* NULL: the function returns them; else a program that is put into another one */
} fe_target;

typedef struct fe_grad_list { /* grad(value, (x, w)) */
    ir_id id;
    const fe_expr *wrt;
} fe_grad_list;

typedef struct fe_lower {
    fe_context *c;
    ir_builder b;
    fe_decl *decl;
    bool program;
    bool returned; /* a return in a block was seen */
    bool full; /* FE_MAX_OPS was reported */
    uint64_t body; /* fe_context.n_bodies of this one */
    fe_binding **binds;
    size_t n_binds, cap_binds;
    fe_target target;
    uint32_t frame, n_frames; /* a frame per inlined function or program: it does not see the names of its caller */
    bool in_fn; /* in a function, not in the body of a kernel or program */
    unsigned depth;
    size_t n_graphs; /* programs: graph k has the symbols 3k (dst), 3k + 1 (src), 3k + 2 (edge) */
    uint32_t *same; /* programs, by symbol of a graph: how it is written, itself or the first that it is one with */
    fe_grad_list *grads; /* programs: the gradients of several values at once */
    size_t n_grads, cap_grads;
    bool restart; /* programs: that two sizes are one was found out only on the way */
    ir_id *turned; /* programs: matrices with their axes exchanged */
    size_t n_turned, cap_turned;
} fe_lower;

/* lower.c: kernels, programs, functions */
void fe_lower_all(fe_context *c);
void fe_lower_program(fe_context *c, fe_decl *d);

/* lower_grad.c, lower_vjp.c: gradients in programs, and of whole kernels and programs */
ir_id fe_lower_grad(fe_lower *l, const fe_expr *e, const fe_expr **slots);
ir_id fe_grad_member(fe_lower *l, ir_id tuple, const fe_expr *e);
void fe_check_gradients(fe_context *c);
void fe_lower_exports(fe_context *c);

void fe_lower_block(fe_lower *l, const fe_block *b);
void fe_lower_body(fe_lower *l, const fe_block *b); /* ends with return */

/* order.c */
void fe_order_programs(fe_context *c);

/* lower_control.c */
void fe_lower_loop(fe_lower *l, const fe_stmt *s); /* repeat, while */
void fe_lower_if(fe_lower *l, const fe_stmt *s);

/* bind.c: names, dimensions and types of one function */
fe_binding *fe_bind(fe_lower *l, fe_binding_kind kind, fe_name *name, base_span span, const char *what);
/* Was this unknown name reported before in this body?  From now on it was. */
bool fe_told(fe_lower *l, fe_name *name);
fe_binding *fe_lookup(fe_lower *l, fe_name *name); /* marks it as used; NULL when there is none */
void fe_close_block(fe_lower *l, size_t mark); /* warns about unused names bound since */
void fe_hide_block(fe_lower *l, size_t mark); /* the same in silence */
void fe_warn_unused(fe_lower *l, const fe_binding *b);
bool fe_dtype_of(fe_lower *l, const fe_type *t, ir_dtype *out);
bool fe_dim_of(fe_lower *l, const fe_dim *d, ir_dim *out);
bool fe_type_of(fe_lower *l, const fe_type *t, ir_type *out);
void fe_bind_dim(fe_lower *l, fe_name *name, base_span span);

/* emit.c: operations with their checks */
const ir_type *fe_type_at(fe_lower *l, ir_id id);
const char *fe_type_text(fe_lower *l, const ir_type *t); /* "f32[g.dst, F]" */
const char *fe_dim_text(fe_lower *l, ir_dim d);
ir_id fe_put(fe_lower *l, base_span span, ir_opcode code, ir_type type, const ir_id *args, size_t n);
ir_id fe_elementwise(fe_lower *l, base_span span, ir_opcode code, const ir_id *args, size_t n);
ir_id fe_map1(fe_lower *l, base_span span, ir_opcode code, ir_id a);
ir_id fe_map2(fe_lower *l, base_span span, ir_opcode code, ir_id a, ir_id b);
ir_id fe_float(fe_lower *l, base_span span, ir_dtype t, double v);
ir_id fe_number(fe_lower *l, base_span span, ir_dtype t, int64_t v);
ir_id fe_cast(fe_lower *l, base_span span, ir_dtype t, ir_id a);
/* f16 and bf16 are stored: a value of these types becomes f32 where it is computed with ... */
ir_id fe_to_f32(fe_lower *l, base_span span, ir_id a);
/* ... and a place of these types (a result, a field of a kernel called, a variable) takes f32, rounding it once.  The
 * value as it is when it is of another type. */
ir_id fe_settle(fe_lower *l, base_span span, ir_dtype place, ir_id a);
ir_id fe_fold(fe_lower *l, base_span span, ir_kind k, ir_id a, int64_t axes);
/* To exactly this type: same dtype required of the caller, shape and space are repeated. False after reporting. */
bool fe_fits(fe_lower *l, const ir_type *from, const ir_type *to); /* by broadcast, without reporting */
/* The same for a place with a name: "result 'out'". */
ir_id fe_widen_to(fe_lower *l, base_span span, ir_id a, const ir_type *to, const char *place);
ir_id fe_widen(fe_lower *l, base_span span, ir_id a, const ir_type *to);
/* Equal; or rows or sources of graphs in a program: then it starts again with the two made one, and this says false. */
bool fe_same_dim(fe_lower *l, ir_dim a, ir_dim b);
ir_dim fe_graph_dim(const fe_lower *l, uint32_t graph, uint32_t axis); /* 0 dst, 1 src, 2 edge */
bool fe_is_graph_dim(const fe_lower *l, ir_dim d); /* rows or edges, in a program */

/* lower_expr.c */
ir_id fe_lower_expr(fe_lower *l, const fe_expr *e, ir_dtype want); /* want: for literals; IR_NONE: none */
ir_id fe_lower_value(fe_lower *l, const fe_expr *e, ir_dtype want); /* the same, and not a tuple */
bool fe_lower_unify(fe_lower *l, const fe_expr *const *e, size_t n, ir_dtype want, ir_id *out); /* one dtype */
bool fe_class_has(fe_class k, ir_dtype t);
const char *fe_class_text(fe_class k);
static inline bool fe_class_is_fraction(fe_class k) { return k == FE_FLOAT || k == FE_QUOTIENT; } /* no integers */
/* args.c: arguments into slots by the list of parameters ("x a?"); NULL where left out. */
bool fe_match_args(fe_lower *l, const fe_expr *call, const char *params, const fe_expr **slots);

/* lower_complex.c */
ir_id fe_complex_function(fe_lower *l, base_span span, ir_opcode code, ir_id z); /* abs exp log sqrt conj real imag */
ir_id fe_complex_of(fe_lower *l, const fe_expr *e, ir_dtype t, const fe_expr **slots); /* c64(re, im) */

/* lower_call.c, lower_fn.c, lower_reduce.c, lower_kernel_call.c */
ir_id fe_lower_call(fe_lower *l, const fe_expr *e, ir_dtype want);
ir_id fe_lower_inline(fe_lower *l, const fe_expr *e, fe_decl *fn, ir_dtype want);
void fe_check_fn(fe_context *c, fe_decl *fn); /* on its own, whether or not it is used */
/* lower_shape.c */
ir_id fe_lower_shape_call(fe_lower *l, const fe_expr *e, const fe_func *f, ir_dtype want);
ir_id fe_lower_matmul(fe_lower *l, const fe_expr *e, ir_dtype want);
void fe_drop_turned(fe_lower *l); /* at the end of a program: of turned matrices nothing is left, or it is an error */
ir_id fe_lower_reduce(fe_lower *l, const fe_expr *e);
/* lower_reducer.c.  *empty: the argument of that name, NULL when there is none */
ir_id fe_lower_user_reduce(fe_lower *l, const fe_expr *e, fe_decl *d, const fe_expr **empty);
void fe_check_reducer(fe_context *c, fe_decl *d); /* on its own, whether or not it is used */
ir_id fe_call_result(fe_lower *l, ir_id tuple, size_t i); /* one result of several */
const fe_decl *fe_callee_of(fe_lower *l, ir_id tuple); /* of a call */
size_t fe_n_members(fe_lower *l, ir_id tuple); /* of a call or of a grad */
ir_id fe_lower_kernel_call(fe_lower *l, const fe_expr *e, fe_decl *callee);

/* lower_program_call.c */
size_t fe_param_named(const fe_decl *d, const fe_name *name); /* SIZE_MAX: it has none of that name */
ir_id fe_lower_program_call(fe_lower *l, const fe_expr *e, fe_decl *callee);

#endif
