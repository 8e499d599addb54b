/* Arithmetic that has a derivative wherever the numbers may be, for functions that are differentiated. */
#include "diff.h"

static const ir_opcode smooth[] = {IR_ADD, IR_SUB, IR_MUL, IR_MUL, IR_SIN, IR_COS, IR_TANH, IR_ATAN, IR_ERF,
                                   IR_NEG, IR_DIV, IR_LOG, IR_SQRT, IR_POW, IR_EXP, IR_LOG1P, IR_EXPM1, IR_ATAN2};

/* Between 1 and 3, where logarithms, roots and quotients are mild. */
static ir_id mild(ir_builder *b, ir_id v) {
    ir_id two = ir_emit_f(b, ir_scalar(IR_F64), 2), s = ir_emit_elementwise(b, IR_SIN, &v, 1);
    return ir_emit_elementwise(b, IR_ADD, (ir_id[]){two, s}, 2);
}

ir_id diff_smooth_op(ir_builder *b, diff_rng *r, ir_id x, ir_id y) {
    ir_opcode code = smooth[diff_below(r, (int64_t)(sizeof smooth / sizeof *smooth))];
    if (code == IR_DIV || code == IR_POW || code == IR_ATAN2) y = mild(b, y);
    if (code >= IR_EXP && code <= IR_LOG1P) x = mild(b, x);
    if (code == IR_SQRT || code == IR_POW) x = mild(b, x);
    return ir_emit_elementwise(b, code, (ir_id[]){x, y}, (size_t)ir_op_describe(code)->min_args);
}
