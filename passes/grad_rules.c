/* One operation: from the cotangent of its value to what it adds to the cotangents of its operands.
 *
 * Where the derivative does not exist the choice is: a tie of min and max is shared equally; abs and sign give 0 at 0;
 * floor, ceil, round and sign give 0 everywhere; exp gives 0 for a cotangent of 0 even where it overflows.  No
 * gradient goes through integers, bools and conditions.
 *
 * The cotangent of a 16-bit float is f32.  That of a complex number z = x + y i is dL/dx + i dL/dy: through a holomorphic
 * function it is multiplied by the conjugate of the derivative. */
#include "passes/grad.h"

#include <math.h>
#include <string.h>

/* ---- emitting ---- */
ir_id grad_op1(ir_builder *b, ir_opcode code, ir_id a) { return ir_emit_elementwise(b, code, &a, 1); }

ir_id grad_op2(ir_builder *b, ir_opcode code, ir_id a, ir_id c) {
    return ir_emit_elementwise(b, code, (ir_id[]){a, c}, 2);
}

ir_id grad_select(ir_builder *b, ir_id c, ir_id x, ir_id y) {
    return ir_emit_elementwise(b, IR_SELECT, (ir_id[]){c, x, y}, 3);
}

ir_id grad_number(ir_builder *b, ir_id like, double x) {
    return ir_emit_f(b, ir_scalar(ir_dtype_cotangent(ir_at(b->f, like)->type.dtype)), x);
}

ir_id grad_full(ir_builder *b, ir_id v, const ir_type *shape) {
    ir_type t = ir_at(b->f, v)->type;
    if (ir_shape_equal(&t, shape))
        return v;
    t.rank = shape->rank;
    memcpy(t.dim, shape->dim, sizeof t.dim);
    return ir_emit1(b, IR_BROADCAST, t, v);
}

ir_id grad_newaxis(ir_builder *b, ir_id v, uint64_t axes) {
    ir_type from = ir_at(b->f, v)->type, t = from;
    if (!axes)
        return v;
    t.rank = from.rank + (uint32_t)__builtin_popcountll(axes);
    for (uint32_t i = 0, n = 0; i < t.rank; i++)
        t.dim[i] = axes >> i & 1 ? 1 : from.dim[n++];
    ir_id id = ir_emit1(b, IR_NEWAXIS, t, v);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_AXES, (int64_t)axes);
    return id;
}

ir_id grad_fold_sum(ir_builder *b, ir_id v, uint64_t axes) {
    ir_type from = ir_at(b->f, v)->type, t = from;
    if (!axes)
        return v;
    t.rank = 0;
    for (uint32_t i = 0; i < from.rank; i++)
        if (!(axes >> i & 1))
            t.dim[t.rank++] = from.dim[i];
    ir_id id = ir_emit1(b, IR_FOLD, t, v);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_AXES, (int64_t)axes);
    ir_set_word(b->m, ir_at(b->f, id), IR_ATTR_KIND, "sum");
    return id;
}

/* Of a complex number its conjugate, which is what cotangents are multiplied by; others as they are. */
ir_id grad_conj(ir_builder *b, ir_id v) {
    return ir_dtype_is_complex(ir_at(b->f, v)->type.dtype) ? grad_op1(b, IR_CONJ, v) : v;
}

ir_id grad_cast(ir_builder *b, ir_dtype to, ir_id v) {
    return ir_at(b->f, v)->type.dtype == to ? v : ir_emit_cast(b, to, v);
}

/* ---- broadcasting, backwards ---- */
/* The sum of v, of shape `wide`, over the axes that were stretched from t. */
static ir_id shrink(ir_builder *b, ir_id v, const ir_type *wide, const ir_type *t) {
    uint32_t lead = wide->rank - t->rank;
    uint64_t folded = ((uint64_t)1 << lead) - 1, back = 0;
    bool leading = true;
    for (uint32_t i = 0; i < t->rank; i++) {
        bool stretched = t->dim[i] == 1 && wide->dim[lead + i] != 1;
        folded |= (uint64_t)stretched << (lead + i);
        leading = leading && stretched;
        back |= (uint64_t)(stretched && !leading) << i;
    }
    if (!folded)
        return v;
    v = grad_fold_sum(b, grad_full(b, v, wide), folded);
    /* axes of 1 in front come back by broadcasting; back counts from the first axis that stays */
    uint32_t skipped = 0;
    while (skipped < t->rank && t->dim[skipped] == 1 && wide->dim[lead + skipped] != 1)
        skipped++;
    v = grad_newaxis(b, v, back >> skipped);
    return grad_full(b, v, t);
}

static void give(grad_sink *s, const ir_op *op, uint32_t arg, ir_id value) {
    ir_id v = op->args[arg];
    s->add(s->user, v, op, shrink(s->b, value, &op->type, &ir_at(s->b->f, v)->type));
}

/* ---- folds ---- */
/* A value of the fold's result shape, seen from its operand: axes of 1 where they were folded, none in front. */
static ir_id unfold(ir_builder *b, const ir_op *fold, ir_id v) {
    uint64_t axes = (uint64_t)ir_int(fold, IR_ATTR_AXES, 0);
    if (ir_at(b->f, v)->type.rank < fold->type.rank)
        v = grad_full(b, v, &fold->type);
    if (fold->type.rank == 0)
        return v;
    while (axes & 1)
        axes >>= 1;
    return grad_newaxis(b, v, axes);
}

static void fold_rule(grad_sink *s, ir_id id, ir_id ct) {
    ir_builder *b = s->b;
    const ir_op *op = ir_at(b->f, id);
    ir_id x = op->args[0];
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0);
    ir_kind kind = ir_kind_of(op);
    ir_id g = unfold(b, op, ct), value = g;
    const ir_type *shape = &ir_at(b->f, x)->type;
    ir_id zero = grad_number(b, x, 0), one = grad_number(b, x, 1);
    if (kind == IR_KIND_MIN || kind == IR_KIND_MAX) {
        ir_id tied = grad_op2(b, IR_EQ, x, unfold(b, op, id));
        ir_id n = grad_fold_sum(b, grad_full(b, grad_select(b, tied, one, zero), shape), axes);
        value = grad_select(b, tied, grad_op2(b, IR_DIV, g, unfold(b, op, n)), zero);
    } else if (kind == IR_KIND_PROD) { /* the product of the others, whether or not one of them is 0 */
        ir_id is_zero = grad_op2(b, IR_EQ, x, zero), rest = grad_select(b, is_zero, one, x);
        ir_id zeros = unfold(b, op, grad_fold_sum(b, grad_select(b, is_zero, one, zero), axes));
        ir_id others = ir_emit1(b, IR_FOLD, op->type, rest);
        ir_copy_attrs(b->m, op, ir_at(b->f, others));
        others = unfold(b, op, others);
        ir_id at_zero = grad_select(b, grad_op2(b, IR_EQ, zeros, one), others, zero);
        ir_id elsewhere = grad_select(b, grad_op2(b, IR_EQ, zeros, zero), grad_op2(b, IR_DIV, others, rest), zero);
        value = grad_op2(b, IR_MUL, g, grad_conj(b, grad_select(b, is_zero, at_zero, elsewhere)));
    }
    s->add(s->user, x, op, grad_full(b, value, shape));
}

/* ---- one and two operands ---- */
static ir_id neg(ir_builder *b, ir_id a) { return grad_op1(b, IR_NEG, a); }
static ir_id mul(ir_builder *b, ir_id a, ir_id c) { return grad_op2(b, IR_MUL, a, c); }
static ir_id over(ir_builder *b, ir_id a, ir_id c) { return grad_op2(b, IR_DIV, a, c); }

static bool constant(const ir_func *f, ir_id v, double *out) {
    const ir_op *op = ir_at(f, v);
    while (op->code == IR_BROADCAST)
        op = ir_at(f, op->args[0]);
    if (op->code != IR_CONST || !ir_dtype_is_float(op->type.dtype))
        return false;
    ir_scalar_value x = ir_find_attr(op, IR_ATTR_VALUE)->v;
    *out = op->type.dtype == IR_F64 ? x.d : ir_eval(IR_CAST, op->type.dtype, IR_F64, &x).d;
    return true;
}

static ir_id part(ir_builder *b, ir_opcode code, ir_id v) {
    ir_type t = ir_at(b->f, v)->type;
    t.dtype = ir_dtype_part(t.dtype);
    return ir_emit1(b, code, t, v);
}

/* ---- where nothing comes back ---- */
/* A cotangent of 0 gives 0, also where the derivative is infinite or none: what select does not take passes nothing on.  Only
 * such derivatives are replaced, and not the product: it is differentiated again, with respect to the cotangent too. */
static ir_id lacks(ir_builder *b, ir_id ct, ir_opcode compare, ir_id v, double than) {
    bool parts = ir_dtype_is_complex(ir_at(b->f, v)->type.dtype);
    ir_id size = grad_op1(b, IR_ABS, parts ? part(b, IR_REAL, v) : v);
    if (parts)
        size = grad_op2(b, IR_MAX, size, grad_op1(b, IR_ABS, part(b, IR_IMAG, v)));
    ir_id sound = grad_op2(b, compare, size, grad_number(b, size, than)); /* false for NaN */
    return grad_op2(b, IR_AND, grad_op2(b, IR_EQ, ct, grad_number(b, ct, 0)), grad_op1(b, IR_NOT, sound));
}

/* ct times the derivative d. */
static ir_id along(ir_builder *b, ir_id ct, ir_id d) {
    return mul(b, ct, grad_select(b, lacks(b, ct, IR_LT, d, INFINITY), grad_number(b, d, 0), d));
}

/* The derivative of a quotient: ct / d. */
static ir_id divided(ir_builder *b, ir_id ct, ir_id d) {
    double c;
    if (constant(b->f, d, &c) && c != 0)
        return over(b, ct, d);
    return over(b, ct, grad_select(b, lacks(b, ct, IR_GT, d, 0), grad_number(b, d, 1), d));
}

/* a of ct where x and y tie, the rest where x wins. */
static ir_id share(ir_builder *b, ir_opcode wins, ir_id x, ir_id y, ir_id ct) {
    ir_id tied = grad_op2(b, IR_EQ, x, y), half = mul(b, ct, grad_number(b, ct, 0.5));
    ir_id rest = grad_select(b, tied, half, grad_number(b, ct, 0));
    return grad_select(b, grad_op2(b, wins, x, y), ct, rest);
}

/* d(a^n)/da = n a^(n - 1), which is 0 for n = 0 whatever a is; d(a^n)/dn = a^n log a, taken as 0 at a = 0. */
static ir_id power_base(ir_builder *b, ir_id a, ir_id n, ir_id ct) {
    double c;
    if (constant(b->f, n, &c) && c == 2)
        return mul(b, ct, mul(b, a, grad_number(b, a, 2)));
    ir_id one = grad_number(b, a, 1), zero = grad_number(b, a, 0);
    ir_id slope = mul(b, n, grad_op2(b, IR_POW, a, grad_op2(b, IR_SUB, n, one)));
    return along(b, ct, grad_select(b, grad_op2(b, IR_EQ, n, zero), zero, slope));
}

static ir_id power_exponent(ir_builder *b, ir_id a, ir_id y, ir_id ct) {
    ir_id zero = grad_number(b, a, 0);
    ir_id log = grad_op1(b, IR_LOG, a);
    return along(b, ct, mul(b, y, grad_select(b, grad_op2(b, IR_EQ, a, zero), zero, log)));
}

static ir_id truncated(ir_builder *b, ir_id q) {
    ir_id down = grad_op1(b, IR_FLOOR, q), up = grad_op1(b, IR_CEIL, q);
    return grad_select(b, grad_op2(b, IR_LT, q, grad_number(b, q, 0)), up, down);
}

/* ct / y.  Of a mean: a row without edges has nothing to pass on, and must not make NaN of it. */
static ir_id by_divisor(ir_builder *b, ir_id ct, ir_id y) {
    const ir_op *op = ir_at(b->f, y);
    bool degree = op->code == IR_CAST && ir_at(b->f, op->args[0])->code == IR_DEGREE;
    if (degree && ir_dtype_is_complex(op->type.dtype))
        return over(b, ct, ir_emit_cast(b, op->type.dtype, grad_op2(b, IR_MAX, op->args[0], ir_emit_i64(b, 1))));
    return degree ? over(b, ct, grad_op2(b, IR_MAX, y, grad_number(b, y, 1))) : divided(b, ct, grad_conj(b, y));
}

/* The complex number of two parts, a float like ct in one of them and 0 in the other. */
static ir_id complex_of(ir_builder *b, ir_id re, ir_id im) {
    ir_id like = re ? re : im, zero = grad_number(b, like, 0);
    ir_type t = ir_at(b->f, like)->type;
    t.dtype = t.dtype == IR_F32 ? IR_C64 : IR_C128;
    zero = grad_full(b, zero, &t);
    return ir_emit2(b, IR_COMPLEX, t, re ? re : zero, im ? im : zero);
}

/* What a binary operation gives its first (arg = 0) or second operand. */
static ir_id binary(ir_builder *b, ir_id id, ir_id ct, uint32_t arg) {
    const ir_op *op = ir_at(b->f, id);
    ir_id x = op->args[0], y = op->args[1];
    switch ((int)op->code) {
    case IR_ADD:
        return ct;
    case IR_SUB:
        return arg ? neg(b, ct) : ct;
    case IR_MUL:
        return mul(b, ct, grad_conj(b, arg ? x : y));
    case IR_DIV:
        return arg ? neg(b, divided(b, along(b, ct, grad_conj(b, id)), grad_conj(b, y))) : by_divisor(b, ct, y);
    case IR_COMPLEX:
        return part(b, arg ? IR_IMAG : IR_REAL, ct);
    case IR_REM:
        return arg ? neg(b, along(b, ct, truncated(b, over(b, x, y)))) : ct;
    case IR_POW:
        return arg ? power_exponent(b, x, id, ct) : power_base(b, x, y, ct);
    case IR_MIN:
        return share(b, IR_LT, arg ? y : x, arg ? x : y, ct);
    case IR_MAX:
        return share(b, IR_GT, arg ? y : x, arg ? x : y, ct);
    case IR_HYPOT: { /* 0 at (0, 0) */
        ir_id part = over(b, arg ? y : x, id);
        return mul(b, ct, grad_select(b, grad_op2(b, IR_EQ, id, grad_number(b, id, 0)), grad_number(b, id, 0), part));
    }
    case IR_ATAN2: {
        ir_id h = grad_op2(b, IR_HYPOT, x, y); /* its square may be beyond the type */
        return arg ? neg(b, along(b, ct, over(b, over(b, x, h), h))) : along(b, ct, over(b, over(b, y, h), h));
    }
    }
    BASE_BUG("no gradient rule for %s", ir_op_describe(op->code)->text);
}

/* 1 - a a, 1 + a a */
static ir_id one_and_square(ir_builder *b, ir_opcode code, ir_id a) {
    return grad_op2(b, code, grad_number(b, a, 1), mul(b, a, a));
}

/* 0: the derivative is 0 everywhere. */
static ir_id unary(ir_builder *b, ir_id id, ir_id ct) {
    const ir_op *op = ir_at(b->f, id);
    ir_id x = op->args[0];
    switch ((int)op->code) {
    case IR_NEG:
        return neg(b, ct);
    case IR_ABS:
        return along(b, ct, grad_op1(b, IR_SIGN, x));
    case IR_EXP:
        return along(b, ct, id);
    case IR_EXPM1:
        return along(b, ct, grad_op1(b, IR_EXP, x));
    case IR_LOG:
        return divided(b, ct, x);
    case IR_LOG1P:
        return divided(b, ct, grad_op2(b, IR_ADD, grad_number(b, x, 1), x));
    case IR_SQRT:
        return divided(b, mul(b, ct, grad_number(b, x, 0.5)), id);
    case IR_SIN:
        return along(b, ct, grad_op1(b, IR_COS, x));
    case IR_COS:
        return neg(b, along(b, ct, grad_op1(b, IR_SIN, x)));
    case IR_TAN:
        return along(b, ct, one_and_square(b, IR_ADD, id));
    case IR_ASIN:
        return divided(b, ct, grad_op1(b, IR_SQRT, one_and_square(b, IR_SUB, x)));
    case IR_ACOS:
        return neg(b, divided(b, ct, grad_op1(b, IR_SQRT, one_and_square(b, IR_SUB, x))));
    case IR_ATAN:
        return divided(b, ct, one_and_square(b, IR_ADD, x));
    case IR_SINH:
        return along(b, ct, grad_op1(b, IR_COSH, x));
    case IR_COSH:
        return along(b, ct, grad_op1(b, IR_SINH, x));
    case IR_TANH:
        return along(b, ct, one_and_square(b, IR_SUB, id));
    case IR_ERF: {
        ir_id bell = grad_op1(b, IR_EXP, neg(b, mul(b, x, x)));
        return along(b, ct, mul(b, bell, grad_number(b, x, 1.1283791670955126)));
    }
    case IR_CONJ:
        return grad_conj(b, ct);
    case IR_REAL:
        return complex_of(b, ct, 0);
    case IR_IMAG:
        return complex_of(b, 0, ct);
    case IR_SIGN:
    case IR_FLOOR:
    case IR_CEIL:
    case IR_ROUND:
        return 0;
    }
    BASE_BUG("no gradient rule for %s", ir_op_describe(op->code)->text);
}

static void select_rule(grad_sink *s, const ir_op *op, ir_id ct) {
    ir_id zero = grad_number(s->b, ct, 0), c = op->args[0];
    if (s->wanted(s->user, op->args[1]))
        give(s, op, 1, grad_select(s->b, c, ct, zero));
    if (s->wanted(s->user, op->args[2]))
        give(s, op, 2, grad_select(s->b, c, zero, ct));
}

void grad_rule(grad_sink *s, ir_id id, ir_id ct) {
    ir_builder *b = s->b;
    const ir_op *op = ir_at(b->f, id);
    b->span = op->span;
    if (ir_is_shape_op(op->code)) {
        grad_shape_rule(s, id, ct);
    } else if (op->code == IR_FOLD) {
        fold_rule(s, id, ct);
    } else if (op->code == IR_SELECT) {
        select_rule(s, op, ct);
    } else if (op->code == IR_BROADCAST) {
        give(s, op, 0, ct);
    } else if (op->code == IR_NEWAXIS) {
        ct = grad_full(b, ct, &op->type);
        s->add(s->user, op->args[0], op, grad_fold_sum(b, ct, (uint64_t)ir_int(op, IR_ATTR_AXES, 0)));
    } else if (op->code == IR_CAST) {
        ir_dtype to = ir_dtype_cotangent(ir_at(b->f, op->args[0])->type.dtype);
        bool from_real = ir_dtype_is_complex(op->type.dtype) && !ir_dtype_is_complex(to);
        s->add(s->user, op->args[0], op, ir_emit_cast(b, to, from_real ? part(b, IR_REAL, ct) : ct));
    } else if (op->n_args == 1) {
        ir_id value = unary(b, id, ct);
        if (value)
            give(s, op, 0, value);
    } else {
        for (uint32_t i = 0; i < 2; i++)
            if (s->wanted(s->user, op->args[i]))
                give(s, op, i, binary(b, id, ct, i));
    }
}
