/* lower: kernels (graph level) to loop functions.  Shared by the files lower*.c and by nothing else.
 *
 *   lower.c          a loop function per kernel: parameters, preamble, rows, stages in order
 *   lower_analyse.c  what each value depends on; which reductions are tiled; which folds need no array
 *   lower_scope.c    open loops, and emission of pure operations at the outermost loop that has their operands
 *   lower_eval.c     the value of one element of a graph value; arrays where a value would be computed too often
 *   lower_fold.c     folds over feature axes
 *   lower_shape.c    operations that change shapes, and matmul
 *   lower_item.c     one reduction or store: accumulator, start, update, result
 *   lower_combine.c  reductions with a state of the user's
 *   lower_states.c   softmax, logsumexp, var, std as such
 *   lower_winners.c  maxima that know who has them, and what goes back to those
 *   lower_nest.c     loops over feature axes around items, walks over the edges
 *   lower_total.c    the two functions of a kernel with totals
 *
 * Invariants.  A loop operation is appended to the region around it when it is closed, so whatever is emitted into an
 * outer region meanwhile comes before it.  `lanes` is always the innermost loop.  A constant axis of 1 has no loop and
 * the index 0; nothing is emitted for shapes with a constant axis of 0. */
#ifndef TIGA_PASSES_LOWER_H
#define TIGA_PASSES_LOWER_H

#include "passes/passes.h"

#define LOWER_MAX_SCOPES 32
#define LOWER_WHOLE_BYTES 512 /* accumulators of constant width up to this size: one walk instead of tiles */
#define LOWER_HEADS_BYTES                                                                                              \
    4096 /* the same for heads of up to LOWER_HEAD_FEATURES, where tiles would be a walk for each head */
#define LOWER_HEAD_FEATURES 32
#define LOWER_TILE_WIDTH 64   /* until a schedule chooses */
#define LOWER_STORE_COST 32   /* operations that may be repeated in several nests rather than kept in an array */
#define LOWER_MAX_FOLDS 1000  /* folds that depend on one another: evaluation goes into each of them */

typedef enum lower_scope_kind {
    LOWER_PREAMBLE,
    LOWER_ROWS,
    LOWER_RANGE,
    LOWER_LOOP,
    LOWER_TILES,
    LOWER_EDGES,
    LOWER_LANES
} lower_scope_kind;

typedef struct lower_scope { /* one open loop; scope 0 is the preamble */
    lower_scope_kind kind;
    uint32_t serial; /* names this opening of the loop among all */
    ir_id loop;      /* 0 for the preamble */
    ir_region *region;
    ir_id arg[3];
    bool plain; /* so far only pure operations, accum and store */
} lower_scope;

typedef struct lower_info { /* what is known of one operation of the kernel */
    bool live, scalar, empty;    /* no axis but constant ones; a constant axis of 0 */
    bool tiled;                  /* a reduction that is computed tile by tile */
    bool featured;               /* a reduction with axes */
    bool inline_fold;            /* a fold with axes that needs no array */
    bool stored;                 /* a long chain that several nests would repeat: kept in an array */
    bool scalar_nest;            /* a reduction whose last axis is a `loop`, because a fold stands inside */
    bool edge_fold;              /* computed per edge, with a fold */
    bool scanned;                /* comes from the members of a scan: known only while its walk passes the edge */
    uint32_t comp;               /* representative of the featured reductions it depends on, 0 = none */
    uint32_t level, tiled_level; /* walks that must be over before it is known */
    uint32_t uses, mark;
    uint32_t users, cost, folds;
} lower_info;

typedef struct lower_acc { /* where a reduction is accumulated */
    ir_id var, edge;       /* partials or place of the value; argmin and argmax: place of the edge */
    ir_id *places, *next; /* combine: by value of the state; next: new values of a state that is no chain, or results */
    ir_id result; /* scalars of partials: the collapsed value */
} lower_acc;

/* What the arguments of a combining region stand for while its values are computed. */
typedef struct lower_binding {
    ir_id combine; /* of the kernel; 0: none */
    uint32_t serial; /* names this meaning of the arguments among all */
    ir_id left, right; /* of the loop function: indices into the slots; 0: the state and an edge */
} lower_binding;

typedef struct lower_memo lower_memo;

typedef struct lower {
    ir_module *m;
    const ir_func *k; /* the kernel */
    ir_func *f; /* the loop function */
    base_arena *scratch;
    bool cuda;
    lower_info *info; /* by id of the kernel */
    lower_acc *acc; /* likewise */
    const ir_op *ret;
    bool *result_scalar_nest; /* by result */
    lower_scope scope[LOWER_MAX_SCOPES];
    size_t n_scopes;
    uint32_t next_serial;
    ir_id filling; /* of the kernel: the value whose array is being filled */
    size_t row_scope; /* index of the scope that stands for one row */
    ir_id row;
    uint32_t *depth; /* by id of the loop function: scope it was emitted in */
    size_t n_depth, cap_depth;
    lower_memo **buckets;
    size_t n_buckets, n_memos;
    base_span span;
    uint32_t next_mark;
    lower_binding binding;
    uint32_t next_binding;
} lower;

/* ---- lower_analyse.c ---- */
bool lower_analyse(lower *L, base_str *err);
bool lower_is_empty(const ir_type *t);
bool lower_is_scalar(const ir_type *t);
size_t lower_axes(const ir_type *t, ir_dim *out); /* the axes that are not constant 1, from the left */
bool lower_same_axes(const ir_type *a, const ir_type *b);

/* ---- lower_scope.c ---- */
void lower_begin(lower *L);
lower_scope *lower_top(lower *L);
size_t lower_depth(const lower *L, ir_id id);
size_t lower_find_scope(const lower *L, lower_scope_kind kind); /* innermost; 0 when there is none */
void lower_open(lower *L, lower_scope_kind kind, const ir_id *args, size_t n_args);
ir_id lower_close(lower *L); /* the loop operation */
/* Hides the scopes deeper than `depth` and shows them again; between, code goes before all of them. */
typedef struct lower_hidden {
    lower_scope *scopes;
    size_t n;
} lower_hidden;
lower_hidden lower_hide(lower *L, size_t depth);
void lower_show(lower *L, lower_hidden hidden);
/* An operation in the innermost scope, as it comes. */
ir_id lower_raw(lower *L, ir_opcode code, ir_dtype dtype, const ir_id *args, size_t n_args);
/* A pure operation: in the outermost scope that has its operands, once. `attr`: field, dimension or bits. */
ir_id lower_pure(lower *L, ir_opcode code, ir_dtype dtype, const ir_id *args, size_t n_args, int64_t attr);
ir_id lower_pure1(lower *L, ir_opcode code, ir_dtype dtype, ir_id a);
ir_id lower_pure2(lower *L, ir_opcode code, ir_dtype dtype, ir_id a, ir_id b);
ir_id lower_pure3(lower *L, ir_opcode code, ir_dtype dtype, ir_id a, ir_id b, ir_id c);
ir_id lower_const(lower *L, ir_dtype dtype, ir_scalar_value v);
ir_id lower_i64(lower *L, int64_t v);
ir_id lower_number(lower *L, ir_dtype dtype, double v); /* of any numeric dtype */
ir_id lower_dim(lower *L, ir_dim d);
ir_id lower_load(lower *L, uint32_t field, const ir_id *index, size_t n);
ir_id lower_read(lower *L, ir_id var, const ir_id *index, size_t n); /* of a place that is not written any more */
ir_id lower_read_now(lower *L, ir_id place, const ir_id *index, size_t n); /* of one that still is */
void lower_set(lower *L, ir_id place, const ir_id *index, size_t n, ir_id value);
/* Memory of what has been emitted, valid while the scope that holds it stays open. */
ir_id lower_recall(lower *L, const uint64_t *key, size_t n);
void lower_remember(lower *L, const uint64_t *key, size_t n, ir_id id);

/* ---- lower_eval.c ---- */
/* One element of graph value v; idx has one entry per axis (see lower_index). */
ir_id lower_eval(lower *L, ir_id v, const ir_id *idx);
/* One element of v, for the element idx of a value of shape `outer` that v is broadcast to. */
ir_id lower_eval_in(lower *L, ir_id v, const ir_type *outer, const ir_id *idx);
/* The same, from an array that is filled by vectors when v is computed: for elements that are wanted one by one. */
ir_id lower_whole_element(lower *L, ir_id v, const ir_id *idx);
void lower_index(lower *L, const ir_type *t, const ir_id *axes, ir_id *idx); /* from loops over lower_axes(t) */
size_t lower_significant(const ir_type *t, const ir_id *idx, ir_id *out); /* drops the axes of 1 */
size_t lower_home(const lower *L, ir_space space); /* scope of values of a space */
size_t lower_deepest(const lower *L, const ir_type *t, const ir_id *idx); /* scope of an index */
ir_id lower_var(lower *L, ir_dtype dtype, const ir_dim *dims, size_t n, const char *name);

ir_id lower_edge(lower *L); /* the number of the edge by which arrays per edge are indexed */

/* ---- lower_fold.c ---- */
ir_id lower_fold_element(lower *L, ir_id v, const ir_id *idx); /* at the scope of idx, which is not a lane */

/* ---- lower_shape.c ---- */
bool lower_fills_array(ir_opcode code); /* computed as a whole, into an array */
bool lower_is_view(ir_opcode code); /* an element of an operand at another index */
ir_id lower_view_element(lower *L, ir_id v, const ir_id *idx);
ir_id lower_filled_element(lower *L, ir_id v, const ir_id *idx);

/* ---- lower_item.c ---- */
typedef enum lower_item_kind {
    LOWER_START, /* a place set to a constant */
    LOWER_REDUCE, /* the update of a reduction */
    LOWER_STORE, /* of a row or edge result */
    LOWER_TOTALS, /* the update of a total */
    LOWER_PARTS, /* the store of a partial result with axes */
    LOWER_COMBINE, /* the update of a combine, or of one value of its state */
    LOWER_MOVE /* the second step of a combine */
} lower_item_kind;

typedef struct lower_item {
    lower_item_kind kind;
    ir_kind reducer;
    ir_id op; /* reduce or total operation of the kernel */
    ir_id value; /* of the kernel; START: of the loop function */
    ir_type shape; /* of the loops around it */
    size_t n_axes;
    ir_dim axes[IR_MAX_RANK];
    bool scalar_nest; /* no lanes: everything inside is scalar */
    ir_id place; /* START, TOTALS */
    ir_id from; /* START: of the kernel, instead of value */
    uint32_t only; /* COMBINE, MOVE: this value of the state */
    uint32_t binding; /* COMBINE: of its region's arguments */
    uint32_t field; /* STORE */
    bool done;
} lower_item;

#define LOWER_ALL_VALUES UINT32_MAX

lower_item lower_item_reduce(lower *L, ir_id op);
ir_id lower_item_place(lower *L, ir_dtype dtype, const lower_item *it, size_t n_axes, const char *name);
lower_item lower_item_start(lower *L, const lower_item *of, ir_id place, size_t n_axes, ir_id value);
lower_item lower_item_store(lower *L, ir_id value, const ir_type *shape, uint32_t field, bool scalar_nest);
/* Declares the accumulators of a reduction; the starts that need a loop or a set are appended to starts. */
size_t lower_item_begin(lower *L, const lower_item *it, lower_item *starts);
void lower_item_end(lower *L, const lower_item *it); /* after the walk */
/* What an item does when `j` of its loops are open; `axes` are their indices. */
void lower_item_at(lower *L, lower_item *it, size_t j, size_t first, const ir_id *axes);
ir_id lower_reduced(lower *L, ir_id op, const ir_id *idx); /* element of a reduction whose walk is over */
ir_opcode lower_combine_op(ir_kind k); /* of a primitive reducer */

/* ---- lower_combine.c ---- */
const ir_type *lower_reduce_shape(const lower *L, ir_id op); /* of a reduction: the axes of its accumulators */
bool lower_combine_is_chain(const lower *L, ir_id op);
size_t lower_combine_items(lower *L, ir_id op, lower_item *out); /* at most one per value of the state */
size_t lower_combine_begin(lower *L, const lower_item *it, lower_item *starts);
void lower_combine_at(lower *L, lower_item *it, size_t j, size_t first, const ir_id *axes);
void lower_combine_move(lower *L, const lower_item *it, const ir_id *axes);
void lower_combine_end(lower *L, const lower_item *it);
ir_id lower_region_argument(lower *L, ir_id arg, const ir_id *idx);
ir_id lower_combined(lower *L, ir_id get, const ir_id *idx); /* element of a state whose walk is over */

/* ---- lower_states.c ---- */
void lower_states(ir_module *m, ir_func *k, base_arena *scratch);

/* ---- lower_winners.c ---- */
void lower_share_best(ir_module *m, ir_func *k);
ir_winners lower_winners(const ir_func *k); /* .known: the kernel is nothing else */

/* ---- lower_nest.c ---- */
/* Runs all items in nests by shape; `open` loops over leading axes are open already, with these indices. */
void lower_nests(lower *L, lower_item *items, size_t n, const ir_id *open, size_t n_open);
void lower_walk(lower *L, lower_item *items, size_t n, const ir_id *open, size_t n_open);
void lower_whole_stage(lower *L);
void lower_tiled_stage(lower *L);
void lower_result_stage(lower *L);

/* ---- lower_total.c ---- */
bool lower_has_totals(const ir_func *k);
void lower_total_rows(lower *L); /* the body of @k */
void lower_total_combine(ir_module *m, const ir_func *k, base_arena *scratch); /* @k.total */

/* ---- lower.c ---- */
void lower_init(lower *L, ir_module *m, const ir_func *k, base_arena *scratch);
uint32_t lower_result_field(const lower *L, size_t result);

#endif
