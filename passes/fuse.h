/* What the files of the fuse pass share: fuse.c (which calls become one), fuse_cost.c (whether it pays), fuse_kernel.c (the
 * kernel). */
#ifndef TIGA_PASSES_FUSE_H
#define TIGA_PASSES_FUSE_H

#include "passes/pass_util.h"

enum { FUSE_RESULTS = 12, FUSE_FIELDS = 32, FUSE_CHEAP = 4 };

/* How a kernel over rows is put into one that walks: its rows are the rows of the walk, the edges, or the sources. */
typedef enum fuse_mode { FUSE_WALK, FUSE_ROWS, FUSE_EDGES, FUSE_SOURCES, FUSE_MODES } fuse_mode;

/* One call. */
typedef struct fuse_side {
    ir_id id;
    const ir_op *op;
    const ir_func *kernel;
    const ir_dim *dims; /* by symbol of the kernel: dimension of the program */
    int64_t graph; /* -1: a kernel over rows */
    ir_dim rows;
    bool total;
} fuse_side;

typedef struct fuse fuse;

/* The two calls that may become one; `second` comes later. */
typedef struct fuse_pair {
    fuse *f;
    fuse_side first, second;
    fuse_mode first_mode, second_mode;
    bool at_sources, at_rows; /* first_mode SOURCES: at which ends the second reads what the first makes */
    bool *kept; /* by result of the first: others need it too */
} fuse_pair;

typedef struct fused_kernel {
    ir_func *func;
    ir_id *args;
    size_t n_args, cap_args;
} fused_kernel;

struct fuse {
    ir_module *m;
    ir_func *p; /* the program */
    base_arena *scratch;
    bool cuda;
    unsigned n_kernels;
};

/* Which result of call `id` the value is; false: none. */
bool fuse_result_of(const ir_func *p, ir_id id, ir_id value, size_t *index);
/* NULL, or why the pair had better stay two. */
const char *fuse_objection(const fuse_pair *x);
fused_kernel fuse_make_kernel(const fuse_pair *x);

#endif
