/* Gradients of random functions. */
#ifndef DIFF_GRAD_H
#define DIFF_GRAD_H

#include "diff.h"

/* Appends f_vjp: the parameters of f and a cotangent for each float result, to d_NAME for each float parameter that one of
 * those depends on.  NULL when there is none. */
ir_func *diff_add_vjp(ir_module *m, const ir_func *f);

typedef enum diff_slope { DIFF_SLOPE_UNKNOWN, DIFF_SLOPE_RIGHT, DIFF_SLOPE_WRONG } diff_slope;
/* Are the gradients that f_vjp gave in c those of f?  One answer for each result of f_vjp; all in f64. */
void diff_check_slopes(const ir_module *m, const ir_func *f, const diff_case *c, diff_rng *r, diff_slope *out, base_str *err);

#endif
