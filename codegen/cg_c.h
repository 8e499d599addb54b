/* codegen, internal: the emitter of C loop functions.  cg_uses.c decides what is live, where a value is written and which
 * values are folded into their user; cg_stmt.c writes statements; cg_lanes.c writes loops whose iterations go into vector
 * registers; cg_vector.c writes the vector types and functions that were used. */
#ifndef TIGA_CG_C_H
#define TIGA_CG_C_H

#include "codegen/cg.h"

#define CG_WIDTHS 5 /* 1 2 4 8 16 lanes */
#define CG_MAX_PIECES 24 /* a lanes loop of more vectors than this is a loop, not unrolled */
#define CG_LOCAL_ELEMENTS 4096
/* Source bits of one function for both, which looks at each edge: half the code and the time to compile it, for modules
 * of more than CG_FEW_BODIES loops. */
#define CG_EITHER 0
#define CG_FEW_BODIES 48

typedef struct cg_vectors {
    bool type[CG_DTYPES][CG_WIDTHS];
    bool op[IR_OP_COUNT][CG_DTYPES][CG_DTYPES][CG_WIDTHS]; /* dtype of operands, dtype of result */
    bool load[CG_DTYPES][CG_WIDTHS], store[CG_DTYPES][CG_WIDTHS], splat[CG_DTYPES][CG_WIDTHS];
    bool gather[CG_DTYPES][CG_WIDTHS][2]; /* 32- and 64-bit sources */
    bool prefetch;
} cg_vectors;

/* A part of an array that lives in one variable: elements offset .. offset + lanes - 1. */
typedef struct cg_piece {
    int64_t offset;
    int lanes;
    const char *name;
} cg_piece;

typedef struct cg_place {
    const char *name; /* scalar or array */
    size_t n_pieces; /* > 0: the array is these variables */
    cg_piece *pieces;
    bool declared; /* scalar: its declaration was written */
    const ir_op *view; /* the load of what it is a copy of, while it is read there; NULL: it is read itself */
    const char *vector; /* partials, states in slots: the vector that holds all 16 while a loop runs */
} cg_place;

typedef struct cg_site { /* where an operation stands */
    ir_region *region;
    size_t pos;
    ir_id loop; /* operation that holds the region, 0 at the top */
    uint32_t n_uses; /* by live operations */
    ir_id user; /* the last of them */
    bool live, aliased;
    unsigned char vec; /* cg_vec_class in the loop that is written in vectors now */
    unsigned char mask_bytes; /* of a bool in vectors: size of the elements compared */
} cg_site;

typedef enum cg_vec_class { CG_SAME, CG_STEP, CG_SOURCE, CG_SLOT, CG_VECTOR } cg_vec_class;

typedef struct cg_loop {
    const ir_module *m;
    ir_func *f;
    base_arena *arena;
    cg_helpers *help;
    cg_vectors *vec;
    base_str *err;
    cg_text w;
    cg_names names;
    int source_bits; /* 32, 64, CG_EITHER */
    bool shared; /* functions that another file mentions */
    bool sizes; /* usual sizes are emitted apart; not in modules of many loops */
    cg_site *site; /* by id */
    const char **text; /* by id: the value as an operand */
    cg_place *place; /* by id, for var and partials */
    const char **field; /* names of the arrays, by parameter */
    bool *field_used;
    const char **dim; /* names of dimensions, by symbol */
    bool *dim_used;
    ir_dim sized; /* the dimension whose size is known in what is emitted now, 0: none */
    int64_t size;
    const char *offsets, *sources, *edge_of, *args, *row_begin, *row_end, *first_row, *n_rows, *edge_end, *scratch,
        *wide;
    bool uses_offsets, uses_sources, uses_edge_of, uses_n_rows, uses_edge_end, failed;
    /* the tile that encloses what is written now */
    ir_id tile_arg; /* its width argument; 0 outside */
    int64_t tile_width; /* constant, or 0 when known at run time only */
    int64_t tile_capacity;
    bool viewing; /* in launches of few units: copies {few} are not made */
    /* the piece of a lanes loop that is written now */
    int lanes; /* 0: not in vector code */
    int64_t lane_offset; /* constant offset of the piece */
    size_t n_named; /* values that got a name so far */
    const struct cg_twin *twin; /* whose numbers are arguments; NULL: none */
    const char **number; /* their names */
    bool *number_used;
    ir_id *scratch_vars; /* arrays in scratch memory, in order */
    const char **scratch_names; /* of their offsets */
    size_t n_scratch, cap_scratch;
    const char *ask_at, *first_ask; /* where a piece of a walk ends, and at first; NULL: no walk asks */
    const char **steps; /* work for a step, of those numbers of steps in a piece that depend on dimensions */
    size_t n_steps, cap_steps;
} cg_loop;

/* cg_uses.c */
void cg_analyse(cg_loop *c);
bool cg_foldable(const cg_loop *c, ir_id id);
bool cg_constant(const cg_loop *c, ir_id id, int64_t *out);
static inline ir_dim cg_dim(const cg_loop *c, ir_dim d) { return d < 0 && d == c->sized ? c->size : d; }

/* cg_stmt.c */
void cg_region(cg_loop *c, const ir_region *r);
void cg_statement(cg_loop *c, ir_id id);
ir_id cg_region_arg(const cg_loop *c, const ir_op *loop, int64_t index); /* live, else 0 */
void cg_set_value(cg_loop *c, ir_id id, const char *ctype, const char *expr, bool atom);
void cg_expression(cg_loop *c, ir_id id);
void cg_assign(cg_loop *c, const char *place, const char *value);
void cg_bind_arg(cg_loop *c, const ir_op *loop, int64_t index, const char *text);
void cg_counted(cg_loop *c, ir_id id, const char *want, const char *from, const char *to);
void cg_edge_bounds(cg_loop *c, const ir_op *op, const char **begin, const char **end);

/* cg_prefetch.c */
bool cg_prefetches(const cg_loop *c, ir_id edges);
void cg_prefetch(cg_loop *c, ir_id edges, const char *e, const char *steps);
void cg_prefetch_streams(cg_loop *c, ir_id edges, const char *e, int64_t step);
void cg_prefetch_row(cg_loop *c, ir_id rows, const char *i);

/* cg_rows.c */
void cg_rows(cg_loop *c, ir_id id);
void cg_copy_or_view(cg_loop *c, ir_id id); /* a loop {few} */
const char *cg_viewed(cg_loop *c, const ir_op *read);
void cg_tile_of_rows(cg_loop *c, const ir_region *r); /* what a tile holds */

/* cg_pieces.c: loops, long ones in pieces between which the caller is asked whether to give up */
/* How many steps, of `width` iterations each, are a piece: a number or a name; NULL: the loop stays whole. */
const char *cg_piece_steps(cg_loop *c, ir_id loop, int64_t width);
void cg_steps_lines(const cg_loop *c, cg_text *w); /* declares those names */
/* Over single steps from a `head` that declares i; pragma: a macro in front, or NULL. */
void cg_open_steps(cg_loop *c, const char *pragma, const char *i, const char *head, const char *end, const char *steps);
void cg_close_steps(cg_loop *c, const char *i, const char *end, const char *steps);
/* While there are `width` elements from i on: one step. */
void cg_open_vectors(cg_loop *c, const char *i, const char *end, int64_t width, const char *steps);
void cg_close_vectors(cg_loop *c, const char *i, const char *end, int64_t width, const char *steps);

/* cg_place.c: arrays and variables, and the text of their elements */
const char *cg_dim_text(cg_loop *c, ir_dim d);
int64_t cg_elements(const cg_loop *c, ir_id var, int64_t tile); /* -1: known at run time only */
const char *cg_source(cg_loop *c, const char *e);
const char *cg_edge_of(cg_loop *c, const char *e); /* of an edge of the transposed relation, its number in the graph */
/* "x[j * F + k]" of a load, store, read or set */
const char *cg_element(cg_loop *c, ir_id id);
const char *cg_flat_index(cg_loop *c, const char *const *index, const char *const *dims, size_t n);
size_t cg_load_index(cg_loop *c, const ir_op *op, const char **index, const char **dims);
void cg_declare_var(cg_loop *c, ir_id id);
void cg_declare_partials(cg_loop *c, ir_id id);
const char *cg_write_place(cg_loop *c, ir_id id); /* of a set: "acc[l]", with the type in front at a declaration */
void cg_collect_scratch(cg_loop *c);
void cg_scratch_lines(cg_loop *c, cg_text *w, bool total_only);

/* cg_lanes.c */
bool cg_vectorizable(cg_loop *c, ir_id loop); /* fills site.vec of its operations */
bool cg_in_registers(cg_loop *c, ir_id var, cg_piece **pieces, size_t *n);
void cg_lanes(cg_loop *c, ir_id loop);
void cg_sixteen(cg_loop *c, ir_id loop); /* edges and range with {lanes = 16} and a vectorizable body */
void cg_tiles(cg_loop *c, ir_id loop);
const cg_piece *cg_piece_at(const cg_loop *c, const cg_place *p);

/* cg_winners.c: functions that give to winners; the text of what they call, when kernels mention it */
void cg_winners(cg_loop *c);
void cg_winners_text(const char *kernels, base_str *out);

/* cg_vector.c */
int cg_log2(int lanes);
const char *cg_vector_type(cg_loop *c, ir_dtype t, int lanes);
/* Up to the next #else: where a vector of n such elements fits one register and needs no structure. */
void cg_if_whole(base_str *out, ir_dtype t, int n);
void cg_emit_vectors(cg_text *w, const cg_vectors *v, cg_helpers *h, base_arena *arena);

/* cg_complex.c: vectors of complex numbers */
void cg_complex_vector_type(base_str *out, ir_dtype t, int n);
void cg_complex_vector_memory(base_str *out, const cg_vectors *v, ir_dtype t, int width);

/* cg_math.c: functions of ir_math.def on vectors */
void cg_math_vectors(base_str *out, base_arena *a, const cg_vectors *v, cg_helpers *h);

/* cg_twins.c */
typedef struct cg_twin {
    const ir_func *first; /* the one whose body serves all that do the same; of others than loop functions NULL */
    size_t n_numbers; /* constants in which they differ */
    ir_id *id; /* of the constants, in this function */
    const char **text; /* their values here, in C */
} cg_twin;
cg_twin *cg_find_twins(const ir_module *m, base_arena *arena, size_t *n_bodies); /* by cg_kernel_index */
/* "0.5f, 0.25f" */
const char *cg_twin_numbers(const cg_twin *t, base_arena *arena);

/* cg_loop.c */
typedef struct cg_loop_facts {
    int walks_edges; /* 0; 1, 2 (the transposed relation), 3 (for its sources): there is a NAME_rows64 too ... */
    bool either; /* ... or only a NAME_rows_any */
    bool needs_scratch; /* there is a NAME_scratch_bytes */
} cg_loop_facts;
#define CG_SHARED 1
/* The functions NAME_rows32, NAME_rows64 and NAME_scratch_bytes of one loop function; rows only for the given source bits
 * (32 | 64), or one NAME_rows_any (CG_EITHER).  A loop that walks no edges always has NAME_rows32.  NAME_rows64 is
 * written to w[1], the others to w[0].  With CG_SHARED, these are not static. */
bool cg_emit_loop(const ir_module *m, ir_func *f, const cg_twin *twin, int source_bits, cg_text w[2], cg_helpers *h,
                  cg_vectors *v, base_arena *arena, cg_loop_facts *facts, base_str *err);
/* Whether cg_emit_loop would say that it needs scratch memory. */
bool cg_needs_scratch(const ir_module *m, ir_func *f, base_arena *arena);

/* cg_plain.c: exported kernels as functions over raw pointers */
/* The loop function of an exported kernel; NULL: f is not one, or has no such form. */
ir_func *cg_plain_loop(const ir_module *m, const ir_func *f);
/* Of the wanted ones; facts and wanted: by cg_kernel_index. */
void cg_emit_plain(const ir_module *m, const cg_twin *twins, const cg_loop_facts *facts, const bool *wanted, cg_text *w,
                   base_arena *arena);
/* "void weighted_sum(const tiga_csr *graph, int64_t F, const float *x, float *out)"; rows: the form with a range. */
const char *cg_plain_prototype(const ir_module *m, ir_func *loop, bool rows, base_arena *arena);
const char *cg_plain_scratch_prototype(const ir_module *m, ir_func *loop, base_arena *arena); /* NULL: needs none */

#endif
