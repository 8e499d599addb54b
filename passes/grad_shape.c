/* Operations that change shapes, and matmul, backwards: elements go back to where they came from. */
#include "passes/grad.h"

#include <string.h>

static ir_type type_of(const grad_sink *s, ir_id v) { return ir_at(s->b->f, v)->type; }

static ir_id with_axis(grad_sink *s, ir_opcode code, ir_type type, const ir_id *args, size_t n, int64_t axis) {
    ir_id id = ir_emit(s->b, code, type, args, n);
    ir_set_int(s->b->m, ir_at(s->b->f, id), IR_ATTR_AXIS, axis);
    return id;
}

/* The verifier has seen that sizes of parts have names, or that they are sums of names that are sizes. */
static ir_dim calc(grad_sink *s, ir_opcode code, ir_dim a, ir_dim b) {
    ir_dim d;
    if (!ir_dim_calc(s->b->m, s->b->f, code, a, b, &d))
        BASE_BUG("@%s: a part of an axis is no size", s->b->f->name);
    return d;
}

/* n elements along the axis, from `begin` on. */
static ir_id part(grad_sink *s, ir_id v, int64_t axis, ir_dim begin, ir_dim n) {
    ir_type t = type_of(s, v);
    calc(s, IR_SUB, calc(s, IR_SUB, t.dim[axis], begin), n);
    t.dim[axis] = n;
    ir_id id = with_axis(s, IR_SLICE, t, &v, 1, axis);
    ir_set_int(s->b->m, ir_at(s->b->f, id), IR_ATTR_BEGIN, begin);
    return id;
}

static ir_id zeros(grad_sink *s, ir_type t, int64_t axis, ir_dim n) {
    t.dim[axis] = n;
    t.space = IR_UNIFORM;
    return ir_emit_f(s->b, t, 0);
}

static void slice_rule(grad_sink *s, const ir_op *op, ir_id ct) {
    int64_t axis = ir_int(op, IR_ATTR_AXIS, 0);
    ir_dim begin = ir_int(op, IR_ATTR_BEGIN, 0);
    ir_type to = type_of(s, op->args[0]);
    ir_dim rest = calc(s, IR_SUB, calc(s, IR_SUB, to.dim[axis], begin), op->type.dim[axis]);
    ir_id parts[3];
    size_t n = 0;
    to.space = type_of(s, ct).space;
    to.dtype = type_of(s, ct).dtype;
    if (begin)
        parts[n++] = zeros(s, to, axis, begin);
    parts[n++] = ct;
    if (rest)
        parts[n++] = zeros(s, to, axis, rest);
    s->add(s->user, op->args[0], op, n == 1 ? ct : with_axis(s, IR_CONCAT, to, parts, n, axis));
}

static void concat_rule(grad_sink *s, const ir_op *op, ir_id ct) {
    int64_t axis = ir_int(op, IR_ATTR_AXIS, 0);
    ir_dim begin = 0;
    for (uint32_t i = 0; i < op->n_args; i++) {
        ir_dim n = type_of(s, op->args[i]).dim[axis];
        if (s->wanted(s->user, op->args[i]))
            s->add(s->user, op->args[i], op, part(s, ct, axis, begin, n));
        begin = calc(s, IR_ADD, begin, n);
    }
}

static void transpose_rule(grad_sink *s, const ir_op *op, ir_id ct) {
    const char *perm = ir_word(op, IR_ATTR_PERM);
    char back[IR_MAX_RANK + 1] = {0};
    ir_type t = type_of(s, op->args[0]);
    t.space = type_of(s, ct).space;
    t.dtype = type_of(s, ct).dtype;
    for (uint32_t i = 0; i < t.rank; i++)
        back[perm[i] - '0'] = (char)('0' + i);
    ir_id id = ir_emit1(s->b, IR_TRANSPOSE, t, ct);
    ir_set_word(s->b->m, ir_at(s->b->f, id), IR_ATTR_PERM, back);
    s->add(s->user, op->args[0], op, id);
}

static void cumsum_rule(grad_sink *s, const ir_op *op, ir_id ct) {
    ir_id id = with_axis(s, IR_CUMSUM, type_of(s, ct), &ct, 1, ir_int(op, IR_ATTR_AXIS, 0));
    if (!ir_int(op, IR_ATTR_REVERSE, 0))
        ir_set_int(s->b->m, ir_at(s->b->f, id), IR_ATTR_REVERSE, 1);
    s->add(s->user, op->args[0], op, id);
}

/* Axes lo .. hi - 1 as a mask. */
static uint64_t mask(uint32_t lo, uint32_t hi) { return (((uint64_t)1 << (hi - lo)) - 1) << lo; }

/* An element gets what was taken from it, as often as it was: a sum over the axes of the numbers. */
static void gather_rule(grad_sink *s, const ir_op *op, ir_id ct) {
    ir_builder *b = s->b;
    ir_type x = type_of(s, op->args[0]), numbers = type_of(s, op->args[1]), all = {.dtype = IR_I64, .rank = 1};
    uint32_t axis = (uint32_t)ir_int(op, IR_ATTR_AXIS, 0), after = x.rank - 1 - axis, q = numbers.rank;
    ir_id i = ir_emit_cast(b, IR_I64, op->args[1]);
    ir_id last = ir_dim_is_sym(x.dim[axis]) ? grad_op2(b, IR_SUB, ir_emit_dimsize(b, x.dim[axis]), ir_emit_i64(b, 1))
                                            : ir_emit_i64(b, x.dim[axis] - 1);
    i = grad_op2(b, IR_MIN, grad_op2(b, IR_MAX, i, ir_emit_i64(b, 0)), last);
    i = q ? grad_newaxis(b, i, mask(q, q + 1 + after)) : i;
    all.dim[0] = x.dim[axis];
    ir_id k = grad_newaxis(b, ir_emit(b, IR_IOTA, all, NULL, 0), mask(1, 1 + after));
    ct = grad_newaxis(b, ct, mask(axis + q, axis + q + 1));
    ir_id value = grad_select(b, grad_op2(b, IR_EQ, i, k), ct, grad_number(b, ct, 0));
    s->add(s->user, op->args[0], op, grad_fold_sum(b, value, q ? mask(axis, axis + q) : 0));
}

/* Of a: the products of the cotangent with the rows of b, summed; of b: the outer products, summed over a's other axes. */
static void matmul_rule(grad_sink *s, const ir_op *op, ir_id ct) {
    ir_builder *b = s->b;
    uint32_t last = op->type.rank - 1;
    ir_id rows = last ? grad_newaxis(b, ct, mask(last, last + 1)) : ct; /* in front it broadcasts by itself */
    if (s->wanted(s->user, op->args[0])) {
        ir_id products = grad_op2(b, IR_MUL, rows, grad_conj(b, op->args[1]));
        s->add(s->user, op->args[0], op, grad_fold_sum(b, products, mask(last + 1, last + 2)));
    }
    if (s->wanted(s->user, op->args[1])) {
        ir_id columns = grad_newaxis(b, grad_conj(b, op->args[0]), mask(last + 1, last + 2));
        s->add(s->user, op->args[1], op, grad_fold_sum(b, grad_op2(b, IR_MUL, columns, rows), mask(0, last)));
    }
}

/* a b^T: of a the product of the cotangent with b; of b the outer products the other way round. */
static void turned_rule(grad_sink *s, const ir_op *op, ir_id ct) {
    ir_builder *b = s->b;
    uint32_t last = op->type.rank - 1;
    ct = grad_cast(b, type_of(s, op->args[1]).dtype, ct);
    if (s->wanted(s->user, op->args[0])) {
        ir_id args[] = {ct, grad_conj(b, op->args[1])};
        ir_type t = type_of(s, op->args[0]);
        t.space = ir_widest_space(b->f, args, 2);
        s->add(s->user, op->args[0], op, ir_emit2(b, IR_MATMUL, t, args[0], args[1]));
    }
    if (s->wanted(s->user, op->args[1])) {
        ir_id a = grad_conj(b, op->args[0]), rows = last ? grad_newaxis(b, a, mask(last, last + 1)) : a;
        ir_id columns = grad_newaxis(b, ct, mask(last + 1, last + 2));
        s->add(s->user, op->args[1], op, grad_fold_sum(b, grad_op2(b, IR_MUL, columns, rows), mask(0, last)));
    }
}

void grad_shape_rule(grad_sink *s, ir_id id, ir_id ct) {
    const ir_op *op = ir_at(s->b->f, id);
    ct = grad_full(s->b, ct, &op->type);
    switch ((int)op->code) {
    case IR_RESHAPE: {
        ir_type t = type_of(s, op->args[0]);
        t.space = type_of(s, ct).space;
        t.dtype = type_of(s, ct).dtype;
        s->add(s->user, op->args[0], op, ir_emit1(s->b, IR_RESHAPE, t, ct));
        return;
    }
    case IR_TRANSPOSE:
        transpose_rule(s, op, ct);
        return;
    case IR_SLICE:
        slice_rule(s, op, ct);
        return;
    case IR_CONCAT:
        concat_rule(s, op, ct);
        return;
    case IR_GATHER:
        gather_rule(s, op, ct);
        return;
    case IR_CUMSUM:
        cumsum_rule(s, op, ct);
        return;
    case IR_MATMUL:
        if (ir_int(op, IR_ATTR_TURNED, 0))
            turned_rule(s, op, ct);
        else
            matmul_rule(s, op, ct);
        return;
    }
}
