/* Rules of `combine`, the reduction whose state and combining function are the user's.
 *
 * Operands are n start values (uniform) and n values per edge, pairwise of one element type and shape; region argument
 * i is state i of the left side, n + i of the right one.  The region computes element by element from its arguments
 * and from uniform values outside, so that an element of a state depends on the same element of the states before.
 *
 * With {scan = 1} its members are values per edge, start values may be row values, and what is computed from its members
 * element by element can only be returned: it is known while the walk passes the edge and not after. */
#include "ir/ir_check.h"

static ir_type state_type(const ir_check *c, const ir_op *combine, uint32_t i) {
    ir_type t = ir_check_arg(c, combine, i)->type;
    t.space = IR_EDGE;
    return t;
}

static bool check_operands(ir_check *c, const ir_op *op) {
    uint32_t n = op->n_args / 2;
    for (uint32_t i = 0; i < n; i++) {
        const ir_type *start = &ir_check_arg(c, op, i)->type, *lifted = &ir_check_arg(c, op, n + i)->type;
        bool early = start->space == IR_UNIFORM || (start->space == IR_ROW && ir_is_scan(op));
        if (start->dtype >= IR_DTYPE_COUNT || !early)
            return ir_check_fail(c, "start value %u is not a uniform value", i);
        if (lifted->dtype != start->dtype || !ir_check_same_shape(c->f, start, lifted))
            return ir_check_fail(c, "state %u starts with one type and is lifted to another", i);
    }
    return true;
}

/* Partial states are for scalars. */
static bool check_lanes(ir_check *c, const ir_op *op) {
    int64_t lanes = ir_int(op, IR_ATTR_LANES, 1);
    if (lanes != 1 && lanes != IR_N_PARTIALS)
        return ir_check_fail(c, "lanes is 1 or %d", IR_N_PARTIALS);
    if (lanes > 1 && ir_is_scan(op))
        return ir_check_fail(c, "a scan goes from edge to edge, lanes = 1");
    for (uint32_t i = 0; lanes > 1 && i < op->n_args / 2; i++) {
        const ir_type *t = &ir_check_arg(c, op, i)->type;
        for (uint32_t k = 0; k < t->rank; k++)
            if (t->dim[k] != 1)
                return ir_check_fail(c, "lanes = %d needs scalar states; state %u has axes", IR_N_PARTIALS, i);
    }
    return true;
}

bool ir_check_combine(ir_check *c, const ir_op *op) {
    if (op->n_args % 2)
        return ir_check_fail(c, "as many start values as values per edge");
    if (ir_int(op, IR_ATTR_REVERSE, 0) && !ir_is_scan(op))
        return ir_check_fail(c, "only a scan goes from the last edge");
    if (!check_operands(c, op) || !check_lanes(c, op) || !ir_check_type_is(c, op, ir_scalar(IR_TUPLE)))
        return false;
    ir_type *types = base_alloc(sizeof *types * op->n_args);
    if (!types)
        return ir_check_fail(c, "out of memory");
    for (uint32_t i = 0; i < op->n_args; i++)
        types[i] = state_type(c, op, i % (op->n_args / 2));
    bool ok = ir_check_region_args(c, op, op->n_args, types);
    base_free(types);
    ir_id last = op->region->n ? op->region->ops[op->region->n - 1] : 0;
    bool ends = last > 0 && last < c->f->n_ops && ir_at(c->f, last)->code == IR_YIELD;
    return ok && (ends || ir_check_fail(c, "its region does not end with yield"));
}

bool ir_check_in_combine(ir_check *c, const ir_op *op) {
    if (op->code != IR_YIELD && !ir_is_combining(op->code))
        return ir_check_fail(c, "a combining region computes element by element");
    for (uint32_t i = 0; i < op->n_args; i++)
        if (c->depth_of[op->args[i]] < (uint32_t)c->depth && ir_check_arg(c, op, i)->type.space != IR_UNIFORM)
            return ir_check_fail(c, "operand %u comes from outside and is not uniform", i);
    return true;
}

bool ir_check_get_state(ir_check *c, const ir_op *get, const ir_op *combine, uint64_t index) {
    if (index >= combine->n_args / 2)
        return ir_check_fail(c, "the tuple has no member %llu", (unsigned long long)index);
    ir_type want = state_type(c, combine, (uint32_t)index);
    want.space = ir_is_scan(combine) ? IR_EDGE : IR_ROW;
    return ir_check_type_is(c, get, want);
}

bool ir_check_scanned(ir_check *c, const ir_op *op) {
    bool scanned = op->code == IR_COMBINE && ir_is_scan(op), of_scan = false;
    for (uint32_t i = 0; i < op->n_args; i++)
        of_scan = of_scan || c->scanned[op->args[i]];
    c->scanned[c->at] = scanned || of_scan;
    bool fits = op->code == IR_GET || op->code == IR_BROADCAST || op->code == IR_RET ||
                ir_class_is_elementwise(ir_op_describe(op->code)->cls);
    return !of_scan || fits || ir_check_fail(c, "what a scan gives can only be returned, edge by edge");
}

bool ir_check_yield_state(ir_check *c, const ir_op *op, const ir_op *combine) {
    if (!c->is_last)
        return ir_check_fail(c, "it ends the region of a combine");
    if (op->n_args != combine->n_args / 2)
        return ir_check_fail(c, "%u values for a state of %u", op->n_args, combine->n_args / 2);
    for (uint32_t i = 0; i < op->n_args; i++) {
        const ir_type *a = &ir_check_arg(c, op, i)->type;
        ir_type want = state_type(c, combine, i);
        if (a->dtype != want.dtype || !ir_check_same_shape(c->f, a, &want))
            return ir_check_fail(c, "value %u has another type than state %u", i, i);
    }
    return true;
}
