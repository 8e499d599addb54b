/* What the files of the graph-level interpreter share. */
#ifndef IR_INTERP_H
#define IR_INTERP_H

#include "ir/ir.h"

/* Every array of a run hangs in one list, so that a round of `repeat` gives back what it made. */
typedef struct ir_heap_block ir_heap_block;
typedef struct ir_heap {
    ir_heap_block *newest;
} ir_heap;

/* One value per unit of its space (edges, rows, or one), each of `features` elements. */
typedef struct ir_tensor {
    ir_dtype dtype;
    ir_space space;
    uint32_t rank;
    int64_t size[IR_MAX_RANK];
    int64_t units, features;
    void *data;
    struct ir_tensor *members; /* of a tuple */
    size_t n_members;
} ir_tensor;

typedef struct ir_run {
    const ir_module *m;
    const ir_func *f;
    const ir_call_data *call;
    base_str *err;
    ir_heap *heap;
    int64_t n_rows, n_edges;
    int64_t *row_of_edge; /* kernels over dst */
    ir_tensor *values;    /* by id */
    ir_id at;
    int depth;            /* of repeat */
    struct ir_saved *saved; /* the stack of push and pop */
} ir_run;

bool ir_run_fail(ir_run *r, const char *fmt, ...) BASE_PRINTF(2, 3); /* always false */
void *ir_run_alloc(ir_run *r, int64_t count, size_t bytes);         /* NULL after a failure was reported */
void ir_heap_release(ir_heap *h, const ir_heap_block *keep);        /* frees what is newer than keep */
bool ir_run_shape(ir_run *r, const ir_type *t, ir_tensor *out);     /* sizes, not data */
bool ir_run_tensor(ir_run *r, const ir_type *t, ir_tensor *out);    /* with data */
int64_t ir_run_dim(const ir_run *r, ir_dim d);

/* Element `feature` (row-major) of t for unit u of `space`, which is at least as wide as t's. */
ir_scalar_value ir_run_get(const ir_run *r, const ir_tensor *t, ir_space space, int64_t u, int64_t feature);
void ir_run_put(const ir_tensor *t, int64_t u, int64_t feature, ir_scalar_value v);
/* The element of t that stands, right-aligned, at element `feature` of `shape`. */
int64_t ir_run_stretched(const ir_tensor *t, const ir_tensor *shape, int64_t feature);
ir_scalar_value ir_run_tree(ir_kind k, ir_dtype t, ir_scalar_value *partials);

bool ir_run_op(ir_run *r, ir_id id); /* a leaf, elementwise, broadcast or fold */
bool ir_run_reduce(ir_run *r, const ir_op *op, ir_tensor *out);
bool ir_run_shape_op(ir_run *r, const ir_op *op, ir_tensor *out);
bool ir_run_combine(ir_run *r, const ir_op *op, ir_tensor *out);
bool ir_run_total(ir_run *r, const ir_op *op, ir_tensor *out);
/* In the order of `total`: rows of `features` elements each. */
typedef struct ir_column { /* one feature of a row value */
    const ir_tensor *t;
    int64_t feature;
} ir_column;
ir_scalar_value ir_run_column_of(const ir_run *r, ir_kind k, const ir_column *c, int64_t rows);
ir_scalar_value ir_run_total_of(const ir_run *r, ir_kind k, const ir_tensor *t, ir_space space, int64_t rows,
                                int64_t features);
bool ir_run_kernel(const ir_module *m, const ir_func *f, const ir_call_data *call, ir_heap *heap, base_str *err);
bool ir_run_program(ir_run *r);
void ir_run_forget(ir_run *r); /* frees what is left on the stack */

#endif
