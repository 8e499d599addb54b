/* What `grad` made of maxima and minima that go back to the edges that won (grad_winners.c).
 *
 *   forward   a maximum and a state that also knows who has it are one walk with one accumulator of the best value
 *   back      the loop function says which of its parameters are what, when its kernel is still the formula of ir_winners and
 *             nothing else: what emits C may then go through the rows of the graph instead.  Its body says the same. */
#include "passes/lower.h"
#include "passes/pass_util.h"

/* ---- forward ---- */
static bool keeps_best(const ir_func *k, const ir_op *combine, const ir_op *best) {
    if (combine->code != IR_COMBINE || !ir_int(combine, IR_ATTR_WINNERS, 0) || combine->n_args != 6)
        return false;
    const ir_region *r = combine->region;
    const ir_op *yield = ir_at(k, r->ops[r->n - 1]), *start = ir_at(k, combine->args[0]);
    return combine->args[3] == best->args[0] && ir_shape_equal(&start->type, &best->type) &&
           ir_at(k, yield->args[0])->code == (ir_kind_of(best) == IR_KIND_MAX ? IR_MAX : IR_MIN);
}

/* Constants first, then nothing that the state needs stands behind the maximum. */
static void constants_first(ir_module *m, ir_func *k) {
    size_t at = 0;
    for (size_t i = 0; i < k->body.n; i++) {
        ir_id id = k->body.ops[i];
        if (ir_at(k, id)->code != IR_CONST)
            continue;
        ir_erase(&k->body, i);
        ir_insert(m, &k->body, at++, id);
    }
}

static bool only_constants(const ir_func *k, const ir_op *combine) {
    for (uint32_t i = 0; i < combine->n_args; i++)
        if (i != 3 && ir_at(k, combine->args[i])->code != IR_CONST)
            return false;
    return true;
}

static ir_id find_state(const ir_func *k, const ir_op *best) {
    for (size_t i = 0; i < k->body.n; i++) {
        const ir_op *op = ir_at(k, k->body.ops[i]);
        if (keeps_best(k, op, best) && only_constants(k, op))
            return k->body.ops[i];
    }
    return 0;
}

static bool is_best(const ir_op *op) {
    return op->code == IR_REDUCE && (ir_kind_of(op) == IR_KIND_MAX || ir_kind_of(op) == IR_KIND_MIN);
}

void lower_share_best(ir_module *m, ir_func *k) {
    for (size_t i = 0; i < k->body.n; i++) {
        ir_id id = k->body.ops[i];
        ir_op *op = ir_at(k, id);
        ir_id state = is_best(op) ? find_state(k, op) : 0;
        size_t at, from;
        if (!state)
            continue;
        constants_first(m, k);
        if (ir_region_find(&k->body, state, &from) && ir_region_find(&k->body, id, &at) && from > at) {
            ir_erase(&k->body, from);
            ir_insert(m, &k->body, at, state);
        }
        op->code = IR_GET;
        ir_drop_attr(op, IR_ATTR_KIND);
        ir_set_args(m, op, &state, 1);
        ir_set_int(m, op, IR_ATTR_INDEX, 0);
        i = 0;
    }
}

/* ---- back ---- */
static const ir_op *strip(const ir_func *k, ir_id id) {
    const ir_op *op = ir_at(k, id);
    while (op->code == IR_BROADCAST && ir_shape_equal(&op->type, &ir_at(k, op->args[0])->type))
        op = ir_at(k, op->args[0]);
    return op;
}

static bool is_number(const ir_func *k, ir_id id, double x) {
    const ir_op *op = ir_at(k, id);
    while (op->code == IR_BROADCAST)
        op = ir_at(k, op->args[0]);
    if (op->code != IR_CONST)
        return false;
    ir_scalar_value v = ir_find_attr(op, IR_ATTR_VALUE)->v;
    return op->type.dtype == IR_F32 ? (double)v.f == x : op->type.dtype == IR_F64 && v.d == x;
}

static bool is_field(const ir_func *k, ir_id id, const char *at, uint32_t *out) {
    const ir_op *op = strip(k, id);
    if (!pass_reads_at(op, at))
        return false;
    *out = (uint32_t)ir_int(op, IR_ATTR_FIELD, 0);
    return true;
}

/* given / (1 - floor(which / tie)) */
static bool is_share(const ir_func *k, const ir_op *op, ir_winners *w) {
    if (op->code != IR_DIV || !is_field(k, op->args[0], "src", &w->given))
        return false;
    const ir_op *n = strip(k, op->args[1]);
    const ir_op *ties = n->code == IR_SUB && is_number(k, n->args[0], 1) ? strip(k, n->args[1]) : NULL;
    const ir_op *scaled = ties && ties->code == IR_FLOOR ? strip(k, ties->args[0]) : NULL;
    return scaled && scaled->code == IR_MUL && is_field(k, scaled->args[0], "src", &w->which) &&
           is_number(k, scaled->args[1], 1 / ir_winners_tie(scaled->type.dtype));
}

static bool is_sum_of_shares(const ir_func *k, ir_winners *w) {
    const ir_op *ret = ir_at(k, k->body.ops[k->body.n - 1]), *sum = strip(k, ret->args[0]);
    if (sum->code != IR_REDUCE || ir_kind_of(sum) != IR_KIND_SUM)
        return false;
    const ir_op *back = strip(k, sum->args[0]);
    if (back->code != IR_SELECT || !ir_int(back, IR_ATTR_WINNERS, 0) || !is_number(k, back->args[2], 0))
        return false;
    const ir_op *won = strip(k, back->args[0]);
    bool ends = won->code == IR_EQ &&
                ((is_field(k, won->args[0], "dst", &w->x) && is_field(k, won->args[1], "src", &w->best)) ||
                 (is_field(k, won->args[1], "dst", &w->x) && is_field(k, won->args[0], "src", &w->best)));
    return ends && is_share(k, strip(k, back->args[1]), w);
}

static bool has_winners(const ir_func *k) {
    for (size_t i = 0; i < k->body.n; i++)
        if (ir_at(k, k->body.ops[i])->code == IR_SELECT && ir_int(ir_at(k, k->body.ops[i]), IR_ATTR_WINNERS, 0))
            return true;
    return false;
}

ir_winners lower_winners(const ir_func *k) {
    ir_winners w = {0};
    if (!ir_transposed(k) || k->n_params != 4 || k->n_results != 1 || !has_winners(k) || !is_sum_of_shares(k, &w))
        return (ir_winners){0};
    const ir_type *t = &k->results[0].type;
    const uint32_t at[] = {w.x, w.best, w.which, w.given};
    for (int i = 0; i < 4; i++) {
        const ir_param *p = &k->params[at[i]];
        if (p->role != (i ? IR_SRC : IR_DST) || p->type.dtype != t->dtype || !ir_shape_equal(&p->type, t))
            return (ir_winners){0};
        for (int j = 0; j < i; j++)
            if (at[j] == at[i])
                return (ir_winners){0};
    }
    w.known = t->dtype == IR_F32 || t->dtype == IR_F64;
    return w;
}
