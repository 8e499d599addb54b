/* Reductions over the edges of a row, backwards.  What a rule needs per row is reduced anew (how many edges tie, the
 * product without zeros, the logarithm of the sum of a softmax); what it gives per edge is a formula of the edge's own
 * values and of row values, so no array over the edges is ever needed.
 *
 * A row without edges gives nothing.  A minimum or maximum that is NaN ties with nothing and gives 0. */
#include "passes/grad.h"

#include <math.h>

static ir_id reduce(ir_builder *b, ir_kind kind, ir_id v) {
    ir_type t = ir_at(b->f, v)->type;
    t.space = IR_ROW;
    ir_id id = ir_emit1(b, IR_REDUCE, t, v);
    ir_set_word(b->m, ir_at(b->f, id), IR_ATTR_KIND, ir_kind_text(kind));
    return id;
}

static ir_id count(ir_builder *b, ir_id condition, ir_id like) {
    return reduce(b, IR_KIND_SUM, grad_select(b, condition, grad_number(b, like, 1), grad_number(b, like, 0)));
}

ir_id grad_extreme(ir_builder *b, ir_id tied, ir_id v, ir_id ct) {
    /* where no edge has it, the derivative of the quotient is asked for all the same, times 0 */
    ir_id some = grad_op2(b, IR_MAX, count(b, tied, v), grad_number(b, v, 1));
    ir_id part = grad_op2(b, IR_DIV, ct, some);
    return grad_select(b, tied, part, grad_number(b, v, 0));
}

/* The product of the other edges: of none of them is 0, or only this one is. */
ir_id grad_product(ir_builder *b, ir_id v, ir_id ct) {
    ir_id zero = grad_number(b, v, 0), one = grad_number(b, v, 1), is_zero = grad_op2(b, IR_EQ, v, zero);
    ir_id zeros = count(b, is_zero, v);
    ir_id rest = grad_op2(b, IR_MUL, ct, grad_conj(b, reduce(b, IR_KIND_PROD, grad_select(b, is_zero, one, v))));
    ir_id none = grad_select(b, grad_op2(b, IR_EQ, zeros, zero), rest, zero);
    ir_id single = grad_select(b, grad_op2(b, IR_EQ, zeros, one), rest, zero);
    return grad_select(b, is_zero, single, grad_op2(b, IR_DIV, none, grad_conj(b, v)));
}

/* exp(score - log of the sum); an edge whose score is -inf takes no part. */
static ir_id weight(ir_builder *b, ir_id score, ir_id logsum) {
    ir_id p = grad_op1(b, IR_EXP, grad_op2(b, IR_SUB, score, logsum));
    ir_id out = grad_op2(b, IR_EQ, score, grad_number(b, score, (double)-INFINITY));
    return grad_select(b, out, grad_number(b, score, 0), p);
}

static void softmax_rule(grad_sink *s, ir_id id, ir_id ct) {
    ir_builder *b = s->b;
    const ir_op *op = ir_at(b->f, id);
    ir_id score = op->args[0], value = op->args[1];
    uint32_t n = ir_at(b->f, score)->type.rank;
    uint64_t inner = (((uint64_t)1 << op->type.rank) - 1) & ~(((uint64_t)1 << n) - 1);
    ir_id p = weight(b, score, reduce(b, IR_KIND_LOGSUMEXP, score));
    if (s->wanted(s->user, value))
        s->add(s->user, value, op, grad_op2(b, IR_MUL, grad_newaxis(b, p, inner), ct));
    if (!s->wanted(s->user, score))
        return;
    ct = grad_full(b, ct, &op->type);
    ir_id own = grad_fold_sum(b, grad_op2(b, IR_MUL, ct, value), inner);
    ir_id all = grad_fold_sum(b, grad_op2(b, IR_MUL, ct, id), inner);
    s->add(s->user, score, op, grad_op2(b, IR_MUL, p, grad_op2(b, IR_SUB, own, all)));
}

/* 2 (v - mean) / n of a variance, (v - mean) / (n std) of a standard deviation, 0 where that is 0. */
static ir_id spread(ir_builder *b, ir_id id, ir_kind kind, ir_id v, ir_id ct) {
    ir_type degree = {.dtype = IR_I64, .space = IR_ROW};
    ir_id n = ir_emit_cast(b, ir_at(b->f, v)->type.dtype, ir_emit(b, IR_DEGREE, degree, NULL, 0));
    ir_id d = grad_op2(b, IR_SUB, v, grad_op2(b, IR_DIV, reduce(b, IR_KIND_SUM, v), n));
    if (kind == IR_KIND_VAR)
        return grad_op2(b, IR_MUL, grad_op2(b, IR_DIV, grad_op2(b, IR_MUL, ct, grad_number(b, v, 2)), n), d);
    ir_id zero = grad_number(b, v, 0), none = grad_op2(b, IR_EQ, id, zero);
    ir_id some =
        grad_select(b, none, grad_number(b, v, 1), id); /* the quotient is differentiated also where it is not taken */
    ir_id share = grad_op2(b, IR_DIV, ct, grad_op2(b, IR_MUL, n, some));
    return grad_op2(b, IR_MUL, grad_select(b, none, zero, share), d);
}

void grad_reduce_rule(grad_sink *s, ir_id id, ir_id ct) {
    ir_builder *b = s->b;
    const ir_op *op = ir_at(b->f, id);
    ir_kind kind = ir_kind_of(op);
    b->span = op->span;
    switch (kind) {
    case IR_KIND_SUM:
        s->add(s->user, op->args[0], op, ct);
        return;
    case IR_KIND_MIN:
    case IR_KIND_MAX:
        if (s->by_winners && s->by_winners(s->user, id, ct))
            s->add(s->user, op->args[0], op, grad_winners(b, s->by_winners(s->user, id, ct), id, ct));
        else
            s->add(s->user, op->args[0], op, grad_extreme(b, grad_op2(b, IR_EQ, op->args[0], id), op->args[0], ct));
        return;
    case IR_KIND_PROD:
        s->add(s->user, op->args[0], op, grad_product(b, op->args[0], ct));
        return;
    case IR_KIND_LOGSUMEXP:
        s->add(s->user, op->args[0], op, grad_op2(b, IR_MUL, weight(b, op->args[0], id), ct));
        return;
    case IR_KIND_VAR:
    case IR_KIND_STD:
        s->add(s->user, op->args[0], op, spread(b, id, kind, op->args[0], ct));
        return;
    case IR_KIND_SOFTMAX:
        softmax_rule(s, id, ct);
        return;
    case IR_KIND_AND:
    case IR_KIND_OR:
    case IR_KIND_ARGMIN:
    case IR_KIND_ARGMAX:
    case IR_KIND_MEAN:
    case IR_KIND_COUNT:
    case IR_KIND_ANY:
    case IR_KIND_ALL:
    case IR_KIND_COUNT_:
        break;
    }
    BASE_BUG("no gradient rule for reduce %s", ir_kind_text(kind));
}
