/* diff: random kernels and programs, made from the op table, run every way there is and compared bit for bit.
 *
 *   diff_random.c   a seeded generator of numbers and of field values (NaN, infinities, -0.0, subnormals included)
 *   diff_kernel.c   random kernels as graph IR
 *   diff_program.c  random programs around them
 *   diff_graphs.c   the relations: empty, no edges, empty rows, self loops, duplicates, one hub, one row, random
 *   diff_case.c     one function on one graph: its arrays, and the interpreter's answer
 *   diff_main.c     the comparison: interpreter = loop interpreter = C at -O0 and -O3, any number of threads
 *   diff_smooth.c   operations that have a derivative
 *   diff_cuda.c     the same kernels on the simulated device
 *   diff_grad.c     the gradients of random functions, and whether they are slopes */
#ifndef DIFF_H
#define DIFF_H

#include "ir/ir.h"

typedef struct diff_rng {
    uint64_t state;
    bool tame; /* f64 between 0.5 and 1.5, and operations that have a derivative: for central differences */
} diff_rng;
uint64_t diff_next(diff_rng *r);
int64_t diff_below(diff_rng *r, int64_t n); /* 0 .. n-1; n > 0 */
bool diff_chance(diff_rng *r, int percent);
ir_scalar_value diff_value(diff_rng *r, ir_dtype t); /* a field element */
bool diff_same_bits(ir_dtype t, const void *a, const void *b, int64_t i); /* any NaN equals any NaN */

/* A smooth operation on f64 values, the second of which it may leave out. */
ir_id diff_smooth_op(ir_builder *b, diff_rng *r, ir_id x, ir_id y);

/* Appends a random kernel; the module is valid afterwards. */
ir_func *diff_add_kernel(ir_module *m, const char *name, diff_rng *r);
/* Appends a random program that may call kernels of the module. */
ir_func *diff_add_program(ir_module *m, const char *name, diff_rng *r);

typedef struct diff_graph {
    const char *what;
    ir_graph_data data;
    int64_t *offsets, *sources, *edge_of; /* edge_of: of a transposed one */
} diff_graph;
#define DIFF_GRAPHS 10
/* Graph number i; square ones have n_src == n_dst. */
diff_graph diff_graph_make(int i, bool square, diff_rng *r);
diff_graph diff_graph_transpose(const diff_graph *g); /* for kernels with domain = src */
void diff_graph_free(diff_graph *g);

#define DIFF_MAX_ARRAYS 24
typedef struct diff_case {
    const ir_func *f;
    const diff_graph *graph;
    int64_t *dims;                  /* one per symbol */
    void *in[DIFF_MAX_ARRAYS];      /* one per parameter; NULL for a graph */
    void *expected[DIFF_MAX_ARRAYS]; /* one per result */
    int64_t in_elements[DIFF_MAX_ARRAYS], out_elements[DIFF_MAX_ARRAYS];
} diff_case;
/* Chooses sizes and values and asks the interpreter; false with a reason when that fails. */
bool diff_case_make(diff_case *c, const ir_module *m, const ir_func *f, const diff_graph *g, diff_rng *r, base_str *err);
void diff_case_free(diff_case *c);
/* The whole shape of parameter or result p under the sizes of c: leading axis first. Returns the rank. */
int diff_full_shape(const diff_case *c, const ir_param *p, int64_t shape[7]);
bool diff_uses_graph(const ir_func *f);

#endif
