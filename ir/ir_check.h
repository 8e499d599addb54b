/* What the verifier's files share: ir_verify.c (rules of every level) and ir_verify_graph|loop|task.c. */
#ifndef IR_CHECK_H
#define IR_CHECK_H

#include "ir/ir.h"

#define IR_CHECK_DEPTH 64 /* one bit of `depends` for each */

typedef struct ir_check_hold {
    ir_id instance;
    unsigned char was;
} ir_check_hold;
enum { IR_HELD_NOT, IR_HELD_READ, IR_HELD_WRITE };

typedef struct ir_check {
    const ir_module *m;
    const ir_func *f;
    base_str *err;
    uint32_t *number;      /* as printed, by id; 0: not met yet */
    unsigned char *scope;  /* by id: what stands below */
    uint32_t last;
    ir_id at;              /* the operation under examination */
    const ir_region *in;   /* the region it stands in */
    bool is_last;          /* it ends that region */
    ir_id loops[IR_CHECK_DEPTH]; /* operations whose regions enclose it, outermost first */
    int depth;
    bool has_rows;
    int64_t rows_left,
        rows_few; /* loops: the step of rows that leave some in launches of at most so many units; or 0 */
    unsigned char *held;   /* task functions, by id of an instance: IR_HELD_* at this place */
    struct ir_check_hold *undo; /* what was before, in order; regions go back to where they began */
    size_t n_undo, cap_undo;
    uint32_t *depth_of;    /* by id: number of enclosing regions */
    unsigned char *scanned; /* by id: comes from the members of a scan */
    uint64_t *depends;     /* by id: bit d is set when the value comes from an argument of the loop at depth d */
} ir_check;
enum { IR_UNSEEN, IR_VISIBLE, IR_GONE };

bool ir_check_fail(ir_check *c, const char *fmt, ...) BASE_PRINTF(2, 3); /* always false */
const ir_op *ir_check_arg(const ir_check *c, const ir_op *op, uint32_t i);
bool ir_check_scalar_arg(ir_check *c, const ir_op *op, uint32_t i, ir_dtype dtype);
bool ir_check_type_is(ir_check *c, const ir_op *op, ir_type want);
bool ir_check_elementwise(ir_check *c, const ir_op *op); /* dtypes; shapes and spaces too */
bool ir_check_kind(ir_check *c, const ir_op *op, ir_kind *out);
bool ir_check_kind_on(ir_check *c, ir_kind k, ir_dtype t); /* primitive kinds, argmin, argmax */
bool ir_check_param_index(ir_check *c, const ir_op *op, const ir_param **out);
bool ir_check_last(ir_check *c, const ir_op *op, bool in_body);
bool ir_check_region_args(ir_check *c, const ir_op *op, size_t n, const ir_type *types); /* types NULL: i64 */
bool ir_check_same_shape(const ir_func *f, const ir_type *a, const ir_type *b); /* g.src is g.dst where square */

/* Rules of a level for one operation; ir_check has done operand count, scope, attributes and form of the type. */
bool ir_check_graph_op(ir_check *c, const ir_op *op);
bool ir_check_loop_op(ir_check *c, const ir_op *op);
bool ir_check_task_op(ir_check *c, const ir_op *op);
bool ir_check_get_call(ir_check *c, const ir_op *op, const ir_op *call, uint64_t index);
/* ir_verify_control.c: get, repeat, while, if, arm, yield; false: another operation */
bool ir_check_control(ir_check *c, const ir_op *op, bool *holds);
/* ir_verify_shape.c: operations that change shapes, and matmul */
bool ir_check_shape_op(ir_check *c, const ir_op *op);
/* ir_verify_combine.c */
bool ir_check_combine(ir_check *c, const ir_op *op);
bool ir_check_in_combine(ir_check *c, const ir_op *op); /* an operation in the region of one */
bool ir_check_scanned(ir_check *c, const ir_op *op); /* any operation of a kernel */
bool ir_check_get_state(ir_check *c, const ir_op *get, const ir_op *combine, uint64_t index);
bool ir_check_yield_state(ir_check *c, const ir_op *yield, const ir_op *combine);

#endif
