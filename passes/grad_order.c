/* Reducers of the user, backwards: does the order of the edges matter?
 *
 * It is tried, at random points, in f64: combine(x, y) against combine(y, x), and combine(combine(x, y), z) against
 * combine(x, combine(y, z)), for every value that is mixed or chosen.  Each value of a state is one number, so combine is
 * gone through as it stands; where it has operations on axes that are more than broadcasts, only the first is tried.
 *
 * Ties of the keys of a choice are not tried: edges with equal keys share what is chosen.  Integers are different on the
 * three sides; choices by bools are left out. */
#include "passes/grad.h"

#include <math.h>

enum { POINTS = 16 };
static const double TOLERANCE = 1e-5;

typedef struct trial {
    const grad_states *s;
    ir_scalar_value *value; /* by place in the region */
    uint64_t seed;
} trial;

static ir_dtype wide(ir_dtype t) { return t == IR_F32 ? IR_F64 : t; }

static ir_dtype type_of(const trial *t, size_t i) { return ir_at(t->s->f, t->s->region->ops[i])->type.dtype; }

/* A number for each point and name: the same wherever it is asked for. */
static ir_scalar_value random_value(const trial *t, ir_dtype type, uint64_t name) {
    uint64_t r = (t->seed * 0x9e3779b97f4a7c15u) ^ (name * 0xbf58476d1ce4e5b9u);
    for (int i = 0; i < 3; i++)
        r = (r ^ r >> 29) * 6364136223846793005u + 1442695040888963407u;
    r >>= 33;
    if (ir_dtype_is_float(type))
        return (ir_scalar_value){.d = 0.5 + 2 * (double)r / 2147483648.0};
    return (ir_scalar_value){.i = type == IR_BOOL ? (int64_t)(r & 1) : 1 + (int64_t)(r % 5)};
}

static ir_scalar_value constant(const ir_op *op) {
    ir_scalar_value v = ir_find_attr(op, IR_ATTR_VALUE)->v;
    return op->type.dtype == IR_F32 ? ir_eval(IR_CAST, IR_F32, IR_F64, &v) : v;
}

static ir_scalar_value known(const trial *t, ir_id v) {
    const ir_op *op = ir_at(t->s->f, v);
    size_t p = t->s->place[v];
    return p != SIZE_MAX ? t->value[p] : op->code == IR_CONST ? constant(op) : random_value(t, op->type.dtype, v);
}

static bool computes(const ir_op *op) { return ir_class_is_elementwise(ir_op_describe(op->code)->cls); }

static bool passes_on(const ir_op *op) { return op->code == IR_BROADCAST || op->code == IR_NEWAXIS; }

static ir_scalar_value evaluate(const trial *t, ir_id v) {
    const ir_op *op = ir_at(t->s->f, v);
    ir_scalar_value args[3] = {{0}};
    if (op->code == IR_CONST)
        return constant(op);
    if (!computes(op) && !passes_on(op))
        return random_value(t, op->type.dtype, v);
    for (uint32_t i = 0; i < op->n_args && i < 3; i++)
        args[i] = known(t, op->args[i]);
    if (passes_on(op))
        return args[0];
    return ir_eval(op->code, wide(ir_at(t->s->f, op->args[op->code == IR_SELECT])->type.dtype), wide(op->type.dtype),
                   args);
}

static ir_scalar_value *combine(trial *t, const ir_scalar_value *a, const ir_scalar_value *b) {
    const grad_states *s = t->s;
    size_t end = s->region->n - 1;
    ir_scalar_value *out = base_arena_new_array(s->scratch, ir_scalar_value, s->n);
    for (size_t i = 0; i < s->n; i++) {
        t->value[i] = a[i];
        t->value[s->n + i] = b[i];
    }
    for (size_t k = 2 * s->n; k < end; k++)
        t->value[k] = evaluate(t, s->region->ops[k]);
    for (size_t i = 0; i < s->n; i++)
        out[i] = known(t, ir_at(s->f, s->region->ops[end])->args[i]);
    return out;
}

static ir_scalar_value *random_state(const trial *t, uint64_t side) {
    ir_scalar_value *x = base_arena_new_array(t->s->scratch, ir_scalar_value, t->s->n);
    for (size_t i = 0; i < t->s->n; i++) {
        x[i] = random_value(t, type_of(t, i), t->s->f->n_ops + 3 * i + side);
        if (ir_dtype_is_int(type_of(t, i)))
            x[i].i = 3 * x[i].i + (int64_t)side;
    }
    return x;
}

static bool is_tried(const trial *t, size_t i) {
    const grad_states *s = t->s;
    if (s->way[i] == GRAD_ALONE || !ir_dtype_is_float(type_of(t, i)))
        return false;
    for (size_t j = 0; s->way[i] == GRAD_CHOSEN && j < s->n; j++)
        if (s->keys[i][j] && type_of(t, j) == IR_BOOL)
            return false;
    return true;
}

static bool differ(const trial *t, const ir_scalar_value *x, const ir_scalar_value *y) {
    for (size_t i = 0; i < t->s->n; i++)
        if (is_tried(t, i) && x[i].d != y[i].d && !(fabs(x[i].d - y[i].d) <= TOLERANCE * (1 + fabs(x[i].d))))
            return true;
    return false;
}

static bool is_of_numbers(const grad_states *s) {
    for (size_t k = 2 * s->n; k + 1 < s->region->n; k++) {
        const ir_op *op = ir_at(s->f, s->region->ops[k]);
        if (!computes(op) && !passes_on(op) && op->code != IR_CONST && op->n_args)
            return false;
    }
    return true;
}

bool grad_order_matters(const grad_states *s) {
    trial t = {.s = s, .value = base_arena_new_array(s->scratch, ir_scalar_value, s->region->n)};
    bool any = false, numbers = is_of_numbers(s);
    for (size_t i = 0; i < s->n; i++)
        any |= is_tried(&t, i);
    for (t.seed = 1; any && t.seed <= POINTS; t.seed++) {
        const ir_scalar_value *x = random_state(&t, 0), *y = random_state(&t, 1), *z = random_state(&t, 2);
        const ir_scalar_value *xy = combine(&t, x, y);
        if (differ(&t, xy, combine(&t, y, x)))
            return true;
        if (numbers && differ(&t, combine(&t, xy, z), combine(&t, x, combine(&t, y, z))))
            return true;
    }
    return false;
}
