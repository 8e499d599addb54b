/* Folds over feature axes: 16 partial sums in the order of the flattened axes, as docs/ir.md says. */
#include "passes/lower.h"

#include <string.h>

typedef struct fold_loops {
    size_t n;
    uint32_t axis[IR_MAX_RANK]; /* axes of the operand that have a loop */
    ir_dim dim[IR_MAX_RANK];
    bool lanes; /* the last one: its own index is a lane of the accumulators */
} fold_loops;

static bool is_folded(const ir_op *op, uint32_t axis) { return (ir_int(op, IR_ATTR_AXES, 0) >> axis) & 1; }

static fold_loops loops_of(const ir_op *op, const ir_type *t) {
    fold_loops loops = {0};
    for (uint32_t i = 0; i < t->rank; i++)
        if (is_folded(op, i) && t->dim[i] != 1) {
            loops.axis[loops.n] = i;
            loops.dim[loops.n++] = t->dim[i];
        }
    ir_dim last = loops.n ? loops.dim[loops.n - 1] : 0;
    loops.lanes = loops.n == 1 || (last > 0 && last % IR_N_PARTIALS == 0);
    return loops;
}

/* Number of the element among the flattened ones; lanes only need it modulo 16. */
static ir_id flat_index(lower *L, const fold_loops *loops, const ir_id *axes) {
    if (loops->n == 0)
        return lower_i64(L, 0);
    if (loops->lanes)
        return axes[loops->n - 1];
    ir_id at = axes[0];
    for (size_t j = 1; j < loops->n; j++) {
        at = lower_pure2(L, IR_MUL, IR_I64, at, lower_dim(L, loops->dim[j]));
        at = lower_pure2(L, IR_ADD, IR_I64, at, axes[j]);
    }
    return at;
}

static void accumulate(lower *L, const ir_op *op, const ir_id *idx, ir_id partials) {
    const ir_type *t = &ir_at(L->k, op->args[0])->type;
    fold_loops loops = loops_of(op, t);
    ir_id axes[IR_MAX_RANK], full[IR_MAX_RANK];
    for (size_t j = 0; j < loops.n; j++) {
        bool lanes = loops.lanes && j + 1 == loops.n;
        lower_open(L, lanes ? LOWER_LANES : LOWER_LOOP, (ir_id[]){lower_dim(L, loops.dim[j])}, 1);
        axes[j] = lower_top(L)->arg[0];
    }
    size_t outer = 0, inner = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        bool folded = is_folded(op, i);
        full[i] = t->dim[i] == 1 ? lower_i64(L, 0) : folded ? axes[inner++] : idx[outer];
        outer += !folded;
    }
    ir_id value = lower_eval(L, op->args[0], full);
    lower_raw(L, IR_ACCUM, IR_NONE, (ir_id[]){partials, flat_index(L, &loops, axes), value}, 3);
    for (size_t j = 0; j < loops.n; j++)
        lower_close(L);
}

ir_id lower_fold_element(lower *L, ir_id v, const ir_id *idx) {
    const ir_op *op = ir_at(L->k, v);
    size_t at = lower_deepest(L, &op->type, idx), home = lower_home(L, op->type.space);
    lower_hidden hidden = lower_hide(L, at > home ? at : home);
    L->span = op->span;
    ir_id partials = lower_raw(L, IR_PARTIALS, op->type.dtype, NULL, 0);
    ir_set_word(L->m, ir_at(L->f, partials), IR_ATTR_KIND, ir_kind_text(ir_kind_of(op)));
    if (!lower_is_empty(&ir_at(L->k, op->args[0])->type))
        accumulate(L, op, idx, partials);
    ir_id result = lower_raw(L, IR_COLLAPSE, op->type.dtype, &partials, 1);
    lower_show(L, hidden);
    return result;
}
