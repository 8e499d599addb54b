/* What the files of the loop-level interpreter share. */
#ifndef IR_INTERP_LOOP_H
#define IR_INTERP_LOOP_H

#include "ir/ir.h"

/* A parameter array with all its axes, the one of its role included. */
typedef struct ir_loop_array {
    const ir_param *param;
    unsigned char *data;
    uint32_t rank;
    int64_t size[IR_MAX_RANK + 1];
} ir_loop_array;

/* An element of a var remembers which iteration of which `lanes` wrote it last: 0 is none. */
typedef struct ir_loop_cell {
    ir_scalar_value v;
    uint64_t lanes;
    int64_t lane;
    bool is_set;
} ir_loop_cell;

typedef struct ir_loop_place {
    ir_loop_cell *cells; /* var */
    int64_t count, cap;
    int64_t size[IR_MAX_RANK];
    ir_scalar_value *partial; /* partials: 16 */
    int64_t *edge;
} ir_loop_place;

typedef struct ir_loop_run {
    const ir_module *m;
    const ir_func *f;
    const ir_call_data *call;
    base_str *err;
    int64_t n_rows, n_units;
    int64_t first_unit, end_unit; /* that rows go over: all, or those of a block */
    ir_loop_array *arrays;      /* by parameter */
    ir_scalar_value *values; /* by id */
    ir_loop_place *places;      /* by id */
    ir_id at;
    int64_t tile;            /* width of the enclosing tile */
    uint64_t lanes, last_lanes; /* number of the running `lanes`, and of the last one begun */
    int64_t lane;
} ir_loop_run;

bool ir_loop_fail(ir_loop_run *r, const char *fmt, ...) BASE_PRINTF(2, 3); /* always false */
int64_t ir_loop_int(const ir_loop_run *r, const ir_op *op, uint32_t i);    /* operand i */

/* ir_interp_place.c */
bool ir_loop_load(ir_loop_run *r, const ir_op *op, ir_scalar_value *out);
bool ir_loop_store(ir_loop_run *r, const ir_op *op);
bool ir_loop_var(ir_loop_run *r, ir_id id);
bool ir_loop_read(ir_loop_run *r, const ir_op *op, ir_scalar_value *out);
bool ir_loop_set(ir_loop_run *r, const ir_op *op);
bool ir_loop_partials(ir_loop_run *r, ir_id id);
bool ir_loop_accum(ir_loop_run *r, const ir_op *op);
ir_scalar_value ir_loop_collapse(ir_loop_run *r, const ir_op *op);
void ir_loop_places_fini(ir_loop_run *r);

#endif
