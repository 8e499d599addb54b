/* What outline.c (which values become arrays) and outline_kernel.c (the kernel of one such value) share. */
#ifndef TIGA_PASSES_OUTLINE_H
#define TIGA_PASSES_OUTLINE_H

#include "passes/pass_util.h"

typedef struct outline {
    ir_module *m;
    ir_func *p; /* the program */
    base_arena *scratch;
    pass_map map; /* old value -> call */
    ir_id *order; /* every operation, in program order */
    size_t n_order, cap_order;
    /* by id */
    bool *array;     /* becomes an array */
    bool *keep;      /* stays in the program: number of rounds of a repeat */
    bool *used;      /* by anything that is used */
    ir_id *parent;   /* the repeat around */
    ir_id *root;     /* the array whose kernel computes it; 0: none yet, MANY: several */
    uint32_t *price; /* of computing it again */
    unsigned n_kernels;
} outline;

typedef struct outline_kernel {
    ir_func *func;
    ir_id *args; /* of the call, in order of its fields */
    size_t n_args, cap_args;
    ir_dim rows; /* the domain, a dimension of the program */
} outline_kernel;

/* A fold that leaves a scalar. */
bool outline_is_total(const ir_func *f, const ir_op *op);
/* Does row i of v belong to row i of the user's result? */
bool outline_aligned(const ir_func *f, ir_id v, const ir_op *user);
/* Computed in the kernels that use it. */
bool outline_is_inline(const outline *s, ir_id v);
outline_kernel outline_make_kernel(outline *s, ir_id root);

#endif
