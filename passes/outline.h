/* What the files of the outline pass share: outline.c (which values become arrays), outline_group.c (which of them are
 * made by one kernel, and the calls), outline_kernel.c (the kernel). */
#ifndef TIGA_PASSES_OUTLINE_H
#define TIGA_PASSES_OUTLINE_H

#include "passes/pass_util.h"

/* An array that a kernel reads: by rows, or whole. */
typedef struct outline_use {
    ir_id v;
    bool aligned;
} outline_use;

/* What one array is computed from. */
typedef struct outline_chain {
    ir_id *ops; /* computed on the way, in program order, the array itself last */
    size_t n_ops, cap_ops;
    outline_use *uses;
    size_t n_uses, cap_uses;
} outline_chain;

typedef struct outline {
    ir_module *m;
    ir_func *p; /* the program */
    base_arena *scratch;
    pass_map map; /* old value -> call, or get of one */
    ir_id *order; /* every operation, in program order */
    size_t n_order, cap_order;
    /* by id */
    bool *array;      /* becomes an array */
    bool *index;      /* i64 expression of constants and sizes */
    bool *keep;       /* stays in the program: number of rounds of a repeat */
    bool *used;       /* by anything that is used */
    bool by_panels;   /* the target makes products of all rows at a time */
    bool *product;    /* its chain holds a product with a matrix */
    bool *multiplies; /* of an array that joined a group: its own chain does */
    bool *cut;        /* an array because of a product: its kernel ends there, or begins behind it */
    bool *boundary;   /* an operation that stays in the program wants it as an array */
    ir_id *parent;    /* the repeat around */
    ir_id *root;      /* the array whose kernel computes it; 0: none yet, MANY: several */
    uint32_t *price;  /* of computing it again */
    uint32_t *at;     /* position in order */
    uint32_t *users;  /* arrays that are computed from this one */
    uint32_t *group;  /* open group it belongs to, + 1 */
    ir_id *row, *whole; /* value in the kernel that is being made, by use; 0 between kernels */
    ir_id *touched; /* for which one of them is set */
    size_t n_touched, cap_touched;
    unsigned n_kernels;
} outline;

typedef struct outline_kernel {
    ir_func *func;
    ir_id *args; /* of the call, in order of its fields */
    size_t n_args, cap_args;
} outline_kernel;

/* Arrays that one kernel computes: one domain; all of them rows, or all totals. */
typedef struct outline_group {
    ir_id *roots;
    size_t n, cap;
    bool *result; /* by root: read by others too */
    ir_dim rows;  /* a dimension of the program */
    bool total;
    outline_use *uses;
    size_t n_uses, cap_uses;
} outline_group;

bool outline_is_array(ir_opcode c);    /* is one already */
bool outline_is_leaf(ir_opcode c);     /* constants and sizes */
bool outline_is_computed(ir_opcode c); /* element by element, broadcast, fold */
/* A fold over rows: over everything, or keeping features. */
bool outline_is_total(const ir_func *f, const ir_op *op);
/* Does row i of v belong to row i of the user's result? */
bool outline_aligned(const ir_func *f, ir_id v, const ir_op *user);
bool outline_is_small(const outline *s, ir_id matrix); /* products with it are made row by row */
outline_chain outline_chain_of(outline *s, ir_id root);
void outline_rewrite(outline *s, ir_region *r);
outline_kernel outline_make_kernel(outline *s, const outline_group *g);

#endif
