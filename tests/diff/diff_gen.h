/* The state of the random kernel generator, for its parts. */
#ifndef DIFF_GEN_H
#define DIFF_GEN_H

#include "diff.h"

#define DIFF_MAX_VALUES 64

typedef struct diff_gen {
    ir_module *m;
    ir_func *f;
    ir_builder b;
    diff_rng *r;
    ir_type base; /* rank and dims of the base shape */
    ir_id values[DIFF_MAX_VALUES];
    int n;
} diff_gen;

/* diff_shape.c: a value of the same shape that was made by changing shapes */
ir_id diff_shape_op(diff_gen *g, ir_id v);

#endif
