/* Rules of the operations that change shapes, and of matmul. */
#include "ir/ir_check.h"

#include <string.h>

static bool is_perm(const char *perm, uint32_t rank) {
    unsigned seen = 0;
    for (const char *p = perm; *p; p++) {
        if (*p < '0' || *p >= '0' + (int)rank)
            return false;
        seen |= 1u << (*p - '0');
    }
    return strlen(perm) == rank && seen + 1 == 1u << rank;
}

static bool check_axis(ir_check *c, const ir_op *op, const ir_type *t, int64_t *axis) {
    *axis = ir_int(op, IR_ATTR_AXIS, -1);
    return (*axis >= 0 && *axis < (int64_t)t->rank) ||
           ir_check_fail(c, "axis = %lld of a value of rank %u", (long long)*axis, t->rank);
}

static bool check_transpose(ir_check *c, const ir_op *op, ir_type want) {
    const ir_type *from = &ir_check_arg(c, op, 0)->type;
    const char *perm = ir_word(op, IR_ATTR_PERM);
    if (!is_perm(perm, from->rank))
        return ir_check_fail(c, "'%s' is no order of %u axes", perm, from->rank);
    for (uint32_t i = 0; i < from->rank; i++)
        want.dim[i] = from->dim[perm[i] - '0'];
    return ir_check_type_is(c, op, want);
}

/* Is the difference a size?  A function of the user's has to have a name for it, so that a call can check it. */
static bool leaves(ir_check *c, const ir_sum *n, const ir_sum *less) {
    ir_sum rest;
    ir_dim d;
    int64_t number;
    if (!ir_sum_calc(IR_SUB, n, less, &rest))
        return false;
    if (!c->f->exported && !ir_sum_is_number(&rest, &number))
        return true;
    return ir_sum_find(c->f, &rest, &d);
}

static bool check_slice(ir_check *c, const ir_op *op, ir_type want) {
    int64_t axis;
    ir_dim begin = ir_int(op, IR_ATTR_BEGIN, 0);
    ir_sum n, m, from;
    if (!check_axis(c, op, &want, &axis))
        return false;
    if (op->type.rank != want.rank)
        return ir_check_fail(c, "it has as many axes as its operand");
    if (begin == IR_DIM_TILE || !ir_sum_of(c->f, want.dim[axis], &n) || !ir_sum_of(c->f, op->type.dim[axis], &m) ||
        !ir_sum_of(c->f, begin, &from) || !ir_sum_calc(IR_ADD, &m, &from, &m) || !leaves(c, &n, &m))
        return ir_check_fail(c, "it goes beyond the end of the axis, or what is left has no name");
    want.dim[axis] = op->type.dim[axis];
    return ir_check_type_is(c, op, want);
}

static bool check_concat(ir_check *c, const ir_op *op, ir_type want) {
    int64_t axis;
    ir_sum sum = ir_sum_number(0), part;
    if (!check_axis(c, op, &want, &axis))
        return false;
    for (uint32_t i = 0; i < op->n_args; i++) {
        ir_type t = ir_check_arg(c, op, i)->type, like = want;
        if (t.dtype != want.dtype || t.rank != want.rank || !ir_sum_of(c->f, t.dim[axis], &part) ||
            !ir_sum_calc(IR_ADD, &sum, &part, &sum))
            return ir_check_fail(c, "operand %u cannot stand beside operand 0", i);
        like.dim[axis] = t.dim[axis];
        if (!ir_check_same_shape(c->f, &t, &like))
            return ir_check_fail(c, "operand %u has other axes than operand 0", i);
        want.space = t.space > want.space ? t.space : want.space;
    }
    if (!ir_sum_find(c->f, &sum, &want.dim[axis]))
        return ir_check_fail(c, "the sum of the sizes has no name");
    return ir_check_type_is(c, op, want);
}

static bool check_gather(ir_check *c, const ir_op *op, ir_type want) {
    const ir_type *from = &ir_check_arg(c, op, 0)->type, *at = &ir_check_arg(c, op, 1)->type;
    int64_t axis;
    if (!check_axis(c, op, from, &axis))
        return false;
    ir_sum n, one = ir_sum_number(1);
    if (!ir_dtype_is_int(at->dtype))
        return ir_check_fail(c, "it takes numbers of elements");
    if (!ir_sum_of(c->f, from->dim[axis], &n) || !leaves(c, &n, &one))
        return ir_check_fail(c, "the axis has no element, or its size less one has no name");
    if (from->rank - 1 + at->rank > IR_MAX_RANK)
        return ir_check_fail(c, "too many axes");
    want.rank = 0;
    for (uint32_t i = 0; i < from->rank; i++)
        if (i != axis)
            want.dim[want.rank++] = from->dim[i];
        else
            for (uint32_t k = 0; k < at->rank; k++)
                want.dim[want.rank++] = at->dim[k];
    want.space = at->space > from->space ? at->space : from->space;
    return ir_check_type_is(c, op, want);
}

static bool check_matmul(ir_check *c, const ir_op *op, ir_type want) {
    const ir_type *a = &ir_check_arg(c, op, 0)->type, *b = &ir_check_arg(c, op, 1)->type;
    if (a->dtype != b->dtype || !ir_eval_defined(IR_MUL, a->dtype))
        return ir_check_fail(c, "it takes two operands of one type of numbers");
    if (a->rank == 0 || b->rank != 2)
        return ir_check_fail(c, "the second operand has two axes, the first at least one");
    bool turned = ir_int(op, IR_ATTR_TURNED, 0) != 0;
    ir_type x = {.rank = 1, .dim = {a->dim[a->rank - 1]}}, y = {.rank = 1, .dim = {b->dim[turned]}};
    if (!ir_check_same_shape(c->f, &x, &y))
        return ir_check_fail(c, "the last axis of the first operand is not the %s of the second",
                             turned ? "last" : "first");
    want.dim[want.rank - 1] = b->dim[!turned];
    want.space = b->space > a->space ? b->space : a->space;
    return ir_check_type_is(c, op, want);
}

bool ir_check_shape_op(ir_check *c, const ir_op *op) {
    if (op->code == IR_IOTA)
        return op->type.rank == 1
                   ? ir_check_type_is(c, op, (ir_type){.dtype = IR_I64, .rank = 1, .dim = {op->type.dim[0]}})
                   : ir_check_fail(c, "it has one axis");
    ir_type want = ir_check_arg(c, op, 0)->type;
    int64_t axis;
    if (want.dtype >= IR_DTYPE_COUNT)
        return ir_check_fail(c, "operand 0 has no elements");
    if (op->code == IR_TRANSPOSE)
        return check_transpose(c, op, want);
    if (op->code == IR_SLICE)
        return check_slice(c, op, want);
    if (op->code == IR_CONCAT)
        return check_concat(c, op, want);
    if (op->code == IR_GATHER)
        return check_gather(c, op, want);
    if (op->code == IR_MATMUL)
        return check_matmul(c, op, want);
    if (op->code == IR_CUMSUM)
        return check_axis(c, op, &want, &axis) &&
               (ir_eval_defined(IR_ADD, want.dtype) ||
                ir_check_fail(c, "not defined on %s", ir_dtype_text(want.dtype))) &&
               ir_check_type_is(c, op, want);
    if (op->type.dtype != want.dtype || op->type.space != want.space)
        return ir_check_fail(c, "it keeps element type and space");
    return ir_same_elements(c->f, &want, &op->type) ||
           ir_check_fail(c, "the shapes have different numbers of elements");
}
