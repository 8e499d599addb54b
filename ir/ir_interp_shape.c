/* Operations that change shapes, and matmul, in the graph-level interpreter: where each element comes from. */
#include "ir/ir_interp.h"

#include <string.h>

typedef struct at { /* an element of a tensor, by axes */
    int64_t i[IR_MAX_RANK];
} at;

static at axes_of(const ir_tensor *t, int64_t feature) {
    at a = {{0}};
    for (uint32_t i = t->rank; i-- > 0;) {
        a.i[i] = feature % t->size[i];
        feature /= t->size[i];
    }
    return a;
}

static int64_t flat(const ir_tensor *t, const at *a) {
    int64_t feature = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        feature = feature * t->size[i] + a->i[i];
    return feature;
}

typedef struct element { /* of the result */
    const ir_run *r;
    const ir_op *op;
    const ir_tensor *out;
    int64_t unit;
    at a;
} element;

static ir_scalar_value value(const element *e, uint32_t arg, const at *a) {
    const ir_tensor *t = &e->r->values[e->op->args[arg]];
    return ir_run_get(e->r, t, e->out->space, e->unit, flat(t, a));
}

static ir_scalar_value concat(const element *e, int64_t axis) {
    at a = e->a;
    for (uint32_t i = 0;; i++) {
        int64_t n = e->r->values[e->op->args[i]].size[axis];
        if (a.i[axis] < n)
            return value(e, i, &a);
        a.i[axis] -= n;
    }
}

static ir_scalar_value gather(const element *e, int64_t axis) {
    const ir_tensor *x = &e->r->values[e->op->args[0]], *numbers = &e->r->values[e->op->args[1]];
    at number = {{0}}, a = {{0}};
    for (uint32_t i = 0; i < numbers->rank; i++)
        number.i[i] = e->a.i[axis + i];
    int64_t n = value(e, 1, &number).i, last = x->size[axis] - 1;
    for (uint32_t i = 0; i < x->rank; i++)
        a.i[i] = i < axis ? e->a.i[i] : i == axis ? (n < 0 ? 0 : n > last ? last : n) : e->a.i[i + numbers->rank - 1];
    return value(e, 0, &a);
}

static ir_scalar_value add(ir_dtype t, ir_scalar_value a, ir_scalar_value b) {
    return ir_eval(IR_ADD, t, t, (ir_scalar_value[]){a, b});
}

static ir_scalar_value cumsum(const element *e, int64_t axis) {
    at a = e->a;
    int64_t n = e->out->size[axis], to = e->a.i[axis];
    bool reverse = ir_int(e->op, IR_ATTR_REVERSE, 0) != 0;
    ir_scalar_value sum = ir_kind_identity(IR_KIND_SUM, e->out->dtype);
    for (int64_t k = 0; k <= (reverse ? n - 1 - to : to); k++) {
        a.i[axis] = reverse ? n - 1 - k : k;
        sum = add(e->out->dtype, sum, value(e, 0, &a));
    }
    return sum;
}

static ir_scalar_value matmul(const element *e) {
    const ir_tensor *b = &e->r->values[e->op->args[1]];
    ir_dtype t = e->out->dtype;
    uint32_t last = e->out->rank - 1;
    int64_t turned = ir_int(e->op, IR_ATTR_TURNED, 0) != 0;
    at x = e->a, y = {{0}};
    y.i[!turned] = e->a.i[last];
    ir_scalar_value sum = ir_kind_identity(IR_KIND_SUM, t);
    for (int64_t k = 0; k < b->size[turned]; k++) {
        x.i[last] = y.i[turned] = k;
        sum = add(t, sum, ir_eval(IR_MUL, t, t, (ir_scalar_value[]){value(e, 0, &x), value(e, 1, &y)}));
    }
    return sum;
}

static ir_scalar_value transpose(const element *e) {
    const char *perm = ir_word(e->op, IR_ATTR_PERM);
    at a = {{0}};
    for (uint32_t i = 0; i < e->out->rank; i++)
        a.i[perm[i] - '0'] = e->a.i[i];
    return value(e, 0, &a);
}

static ir_scalar_value compute(const element *e) {
    int64_t axis = ir_int(e->op, IR_ATTR_AXIS, 0);
    at a = e->a;
    switch ((int)e->op->code) {
    case IR_TRANSPOSE:
        return transpose(e);
    case IR_SLICE:
        a.i[axis] += ir_run_dim(e->r, ir_int(e->op, IR_ATTR_BEGIN, 0));
        return value(e, 0, &a);
    case IR_CONCAT:
        return concat(e, axis);
    case IR_GATHER:
        return gather(e, axis);
    case IR_CUMSUM:
        return cumsum(e, axis);
    case IR_IOTA:
        return (ir_scalar_value){.i = e->a.i[0]};
    case IR_MATMUL:
        return matmul(e);
    default: /* reshape: the same number among all */
        return ir_run_get(e->r, &e->r->values[e->op->args[0]], e->out->space, e->unit, flat(e->out, &e->a));
    }
}

bool ir_run_shape_op(ir_run *r, const ir_op *op, ir_tensor *out) {
    for (int64_t u = 0; u < out->units; u++)
        for (int64_t k = 0; k < out->features; k++) {
            element e = {.r = r, .op = op, .out = out, .unit = u, .a = axes_of(out, k)};
            ir_run_put(out, u, k, compute(&e));
        }
    return true;
}
