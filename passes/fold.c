/* fold: operations on constants become constants, through the one evaluator (ir_eval), and operations that give back
 * an operand bit for bit give way to it.
 *
 * Bit for bit is meant: x + 0.0 stays (it turns -0.0 into 0.0), x * 0.0 stays (NaN, infinities, -0.0), x - 0.0, x * 1
 * and x + -0.0 go.  An operand replaces a result only when the types are equal, so a product that also broadcasts
 * stays.  A constant is uniform, so a result in row or edge space never becomes one. */
#include "passes/pass_util.h"

#include <math.h>
#include <string.h>

typedef struct folder {
    ir_module *m;
    ir_func *f;
    pass_map map;
} folder;

static const ir_op *arg(const folder *s, const ir_op *op, uint32_t i) { return ir_at(s->f, op->args[i]); }

/* Is operand i the constant x (a whole number), sign of zero included? */
static bool is_const(const folder *s, const ir_op *op, uint32_t i, double x) {
    const ir_op *a = arg(s, op, i);
    if (a->code != IR_CONST)
        return false;
    ir_scalar_value v = ir_find_attr(a, IR_ATTR_VALUE)->v;
    if (ir_dtype_is_complex(a->type.dtype) || ir_dtype_is_half(a->type.dtype))
        return false;
    double d = a->type.dtype == IR_F32 ? (double)v.f : v.d;
    if (ir_dtype_is_float(a->type.dtype))
        return d == x && !signbit(d) == !signbit(x);
    return v.i == (int64_t)x;
}

/* Operand i stands for the result when it is of the same type. */
static ir_id take(const folder *s, const ir_op *op, uint32_t i) {
    return ir_type_equal(&arg(s, op, i)->type, &op->type) ? op->args[i] : 0;
}

static ir_id become_const(folder *s, ir_op *op, ir_scalar_value v) {
    if (op->type.space != IR_UNIFORM)
        return 0;
    op->code = IR_CONST;
    op->n_args = 0;
    op->n_attrs = 0;
    ir_set_value(s->m, op, v);
    return 0;
}

static ir_id become_int(folder *s, ir_op *op, int64_t v) { return become_const(s, op, (ir_scalar_value){.i = v}); }

/* Of a type without NaN and -0.0? */
static bool is_float(const ir_op *op) { return !ir_dtype_is_int(op->type.dtype) && op->type.dtype != IR_BOOL; }

/* The other operand when one is x. */
static ir_id neutral(const folder *s, const ir_op *op, double x) {
    ir_id to = is_const(s, op, 1, x) ? take(s, op, 0) : 0;
    return to ? to : is_const(s, op, 0, x) ? take(s, op, 1) : 0;
}

static bool either(const folder *s, const ir_op *op, double x) {
    return is_const(s, op, 0, x) || is_const(s, op, 1, x);
}

static ir_id fold_add(folder *s, ir_op *op) { return neutral(s, op, is_float(op) ? -0.0 : 0); }

static ir_id fold_sub(folder *s, ir_op *op) {
    if (is_const(s, op, 1, 0))
        return take(s, op, 0);
    return !is_float(op) && op->args[0] == op->args[1] ? become_int(s, op, 0) : 0;
}

static ir_id fold_mul(folder *s, ir_op *op) {
    if (!is_float(op) && either(s, op, 0))
        return become_int(s, op, 0);
    return neutral(s, op, 1);
}

static ir_id fold_div(folder *s, ir_op *op) { return is_const(s, op, 1, 1) ? take(s, op, 0) : 0; }

static ir_id fold_rem(folder *s, ir_op *op) {
    return !is_float(op) && is_const(s, op, 1, 1) ? become_int(s, op, 0) : 0;
}

static ir_id fold_pow(folder *s, ir_op *op) { return !is_float(op) && is_const(s, op, 1, 1) ? take(s, op, 0) : 0; }

static ir_id fold_same(folder *s, ir_op *op) { return op->args[0] == op->args[1] ? take(s, op, 0) : 0; }

static ir_id fold_and(folder *s, ir_op *op) {
    if (either(s, op, 0))
        return become_int(s, op, 0);
    ir_id to = neutral(s, op, 1);
    return to ? to : fold_same(s, op);
}

static ir_id fold_or(folder *s, ir_op *op) {
    if (either(s, op, 1))
        return become_int(s, op, 1);
    ir_id to = neutral(s, op, 0);
    return to ? to : fold_same(s, op);
}

/* not(not a), neg(neg a) */
static ir_id fold_twice(folder *s, ir_op *op) {
    const ir_op *a = arg(s, op, 0);
    return a->code == op->code ? a->args[0] : 0;
}

static ir_id fold_not(folder *s, ir_op *op) {
    const ir_op *a = arg(s, op, 0);
    if (a->code != IR_EQ && a->code != IR_NE) /* the opposite also when a NaN takes part */
        return fold_twice(s, op);
    op->code = a->code == IR_EQ ? IR_NE : IR_EQ;
    ir_set_args(s->m, op, a->args, 2);
    return 0;
}

static ir_id fold_abs(folder *s, ir_op *op) {
    const ir_op *a = arg(s, op, 0);
    if (a->code == IR_ABS)
        return op->args[0];
    if (a->code == IR_NEG)
        op->args[0] = a->args[0];
    return 0;
}

static ir_id fold_select(folder *s, ir_op *op) {
    if (is_const(s, op, 0, 1) || is_const(s, op, 0, 0))
        return take(s, op, is_const(s, op, 0, 1) ? 1 : 2);
    if (op->args[1] == op->args[2])
        return take(s, op, 1);
    if (op->type.dtype == IR_BOOL && is_const(s, op, 1, 1) && is_const(s, op, 2, 0))
        return take(s, op, 0);
    return 0;
}

/* Also to f32 and back to the 16-bit float that it was. */
static ir_id fold_cast(folder *s, ir_op *op) {
    const ir_op *a = arg(s, op, 0);
    if (a->code == IR_CAST && a->type.dtype == IR_F32 && ir_dtype_is_half(op->type.dtype))
        return ir_type_equal(&arg(s, a, 0)->type, &op->type) ? a->args[0] : take(s, op, 0);
    return take(s, op, 0);
}

/* A part of what was put together. */
static ir_id fold_part(folder *s, ir_op *op) {
    const ir_op *a = arg(s, op, 0);
    ir_id part = a->code == IR_COMPLEX ? a->args[op->code == IR_IMAG] : 0;
    return part && ir_type_equal(&ir_at(s->f, part)->type, &op->type) ? part : 0;
}

/* Also of a constant, which is the same in every element. */
static ir_id fold_broadcast(folder *s, ir_op *op) {
    const ir_op *a = arg(s, op, 0);
    if (a->code == IR_CONST && op->type.space == IR_UNIFORM)
        return become_const(s, op, ir_find_attr(a, IR_ATTR_VALUE)->v);
    if (a->code == IR_BROADCAST && a->type.space == op->type.space) {
        op->args[0] = a->args[0];
        return fold_broadcast(s, op);
    }
    return take(s, op, 0);
}

static ir_id fold_dimsize(folder *s, ir_op *op) {
    ir_dim d = ir_int(op, IR_ATTR_DIM, 0);
    return d >= 0 ? become_int(s, op, d) : 0;
}

/* The arm that an if with a constant condition runs, or NULL. */
static const ir_op *only_arm(const folder *s, const ir_op *op) {
    if (op->code != IR_IF || arg(s, op, 0)->code != IR_CONST)
        return NULL;
    return ir_at(s->f, op->region->ops[is_const(s, op, 0, 1) ? 0 : 1]);
}

/* A repeat that does nothing gives its start values, an if with a constant condition those of its arm. */
static ir_id fold_get(folder *s, ir_op *op) {
    const ir_op *a = arg(s, op, 0);
    if (only_arm(s, a))
        return ir_yield_of(s->f, only_arm(s, a))->args[ir_int(op, IR_ATTR_INDEX, 0)];
    if (a->code != IR_REPEAT || s->f->level != IR_LEVEL_PROGRAM)
        return 0;
    const ir_op *count = ir_at(s->f, a->args[0]);
    if (count->code != IR_CONST || ir_find_attr(count, IR_ATTR_VALUE)->v.i > 0)
        return 0;
    return a->args[1 + ir_int(op, IR_ATTR_INDEX, 0)];
}

/* x == x and the like, where no NaN can be. */
static ir_id fold_equal(folder *s, ir_op *op, bool value) {
    if (op->args[0] != op->args[1] || is_float(arg(s, op, 0)))
        return 0;
    return become_int(s, op, value);
}
static ir_id fold_reflexive(folder *s, ir_op *op) { return fold_equal(s, op, true); }
static ir_id fold_irreflexive(folder *s, ir_op *op) { return fold_equal(s, op, false); }

typedef ir_id rule(folder *s, ir_op *op); /* the value to use instead, or 0; may change the operation in place */
static rule *const rules[IR_OP_COUNT] = {
    [IR_ADD] = fold_add,
    [IR_SUB] = fold_sub,
    [IR_MUL] = fold_mul,
    [IR_DIV] = fold_div,
    [IR_REM] = fold_rem,
    [IR_POW] = fold_pow,
    [IR_MIN] = fold_same,
    [IR_MAX] = fold_same,
    [IR_AND] = fold_and,
    [IR_OR] = fold_or,
    [IR_NOT] = fold_not,
    [IR_NEG] = fold_twice,
    [IR_CONJ] = fold_twice,
    [IR_REAL] = fold_part,
    [IR_IMAG] = fold_part,
    [IR_ABS] = fold_abs,
    [IR_SELECT] = fold_select,
    [IR_CAST] = fold_cast,
    [IR_BROADCAST] = fold_broadcast,
    [IR_DIMSIZE] = fold_dimsize,
    [IR_GET] = fold_get,
    [IR_EQ] = fold_reflexive,
    [IR_LE] = fold_reflexive,
    [IR_GE] = fold_reflexive,
    [IR_NE] = fold_irreflexive,
    [IR_LT] = fold_irreflexive,
    [IR_GT] = fold_irreflexive,
};

/* Every operand a constant: ask the evaluator. */
static bool evaluate(folder *s, ir_op *op) {
    if (!ir_class_is_elementwise(ir_op_describe(op->code)->cls) || op->type.space != IR_UNIFORM)
        return false;
    ir_scalar_value v[3];
    for (uint32_t i = 0; i < op->n_args; i++) {
        if (arg(s, op, i)->code != IR_CONST)
            return false;
        v[i] = ir_find_attr(arg(s, op, i), IR_ATTR_VALUE)->v;
    }
    ir_dtype t = arg(s, op, op->code == IR_SELECT ? 1 : 0)->type.dtype;
    if (!ir_eval_defined(op->code, t))
        return false;
    become_const(s, op, ir_eval(op->code, t, op->type.dtype, v));
    return true;
}

static void region(folder *s, ir_region *r);

/* The arm in place of its if; its yield has been folded and stays behind for the members that are taken. */
static void splice(folder *s, ir_region *to, const ir_region *from, const ir_op *arm) {
    if (to->ops == from->ops) {
        ir_region fresh = {0};
        for (size_t i = 0; i < to->n; i++)
            ir_append(s->m, &fresh, to->ops[i]);
        *to = fresh;
    }
    region(s, arm->region);
    for (size_t i = 0; i + 1 < arm->region->n; i++)
        ir_append(s->m, to, arm->region->ops[i]);
}

static void region(folder *s, ir_region *r) {
    ir_region out = {.ops = r->ops, .cap = r->n}; /* in place until an arm is put in */
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        ir_op *op = ir_at(s->f, id);
        pass_map_args(&s->map, op);
        if (!evaluate(s, op) && rules[op->code] && (s->map.to[id] = rules[op->code](s, op)))
            continue;
        if (only_arm(s, op)) {
            splice(s, &out, r, only_arm(s, op));
            continue;
        }
        ir_append(s->m, &out, id);
        if (op->region)
            region(s, op->region);
    }
    *r = out;
}

static bool fold_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    folder s = {.m = m, .f = f, .map = pass_map_new(f, ctx->scratch)};
    region(&s, &f->body);
    return true;
}

bool pass_fold(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, PASS_ALL_LEVELS, fold_func, ctx, err);
}
