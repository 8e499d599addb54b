/* Reducers of the user, backwards: what reaches the values that an edge lifts.
 *
 * Mixed values.  Let S be the state of the row, v that of one of its edges, and c = combine(v, S).  When the order of
 * the edges does not matter, states are combined as if some coordinates of theirs, g, were added: g(c) = g(v) + g(S), and
 * S is g^-1 of the sum over the edges.  So
 *
 *     dS/dv = g'(S)^-1 g'(v) = (dc/dS)^-1 (dc/dv)
 *
 * and what has to be known per edge is v and the state of the row, nothing of the edges before or behind: no array
 * over the edges, on either walk.  For a cotangent r of S the cotangent of v is m dc/dv, where m dc/dS = r.  That system
 * is solved value by value, those first that no other one needs; two that need one another are solved together.  A start
 * that is no identity counts as one more edge.
 *
 * A pair of values that c depends on not at all or infinitely (a product with a zero in it, mixed with another state)
 * gives NaN.
 *
 * Values that are chosen go to the edges that have, in all keys and the value itself, what the row ends with, in equal
 * parts. */
#include "passes/grad.h"

/* i itself counts. */
bool grad_in_circle(const grad_states *s, size_t i, size_t j) { return i == j || (s->needs[i][j] && s->needs[j][i]); }

/* ---- the system ---- */
typedef struct equations {
    grad_join u;
    ir_id *one;  /* as a cotangent, by value */
    ir_id *r;    /* what is left to explain, by value; 0: nothing */
    ir_id *into; /* cotangents of v */
    bool *done;
} equations;

/* The cotangents that x, one of the new value i, gives: of v in [j], of S in [n + j]; 0: none. */
static const ir_id *back(equations *y, size_t i, ir_id x) {
    ir_id *all = base_arena_new_array(y->u.s->scratch, ir_id, y->u.s->n);
    all[i] = x;
    return grad_join_back(&y->u, all);
}

static void add_to(ir_builder *b, ir_id *place, ir_id value) {
    *place = *place ? grad_op2(b, IR_ADD, *place, value) : value;
}

/* m is known for the new value i: what it gives v, and what it takes from the rest. */
static void give(equations *y, size_t i, ir_id m, size_t mate) {
    size_t n = y->u.s->n;
    const ir_id *ct = back(y, i, m);
    for (size_t j = 0; j < n; j++) {
        if (ct[j])
            add_to(y->u.b, &y->into[j], ct[j]);
        if (ct[n + j] && j != i && j != mate)
            add_to(y->u.b, &y->r[j], grad_op1(y->u.b, IR_NEG, ct[n + j]));
    }
}

/* dc_i/dS_j, of an element with respect to the same element */
static ir_id slope(equations *y, size_t i, size_t j) { return back(y, i, y->one[i])[y->u.s->n + j]; }

static ir_id product(ir_builder *b, ir_id x, ir_id y) { return x && y ? grad_op2(b, IR_MUL, x, y) : 0; }

static ir_id difference(ir_builder *b, ir_id x, ir_id y) {
    return x && y ? grad_op2(b, IR_SUB, x, y) : y ? grad_op1(b, IR_NEG, y) : x;
}

static void solve_one(equations *y, size_t i) {
    ir_builder *b = y->u.b;
    ir_id own = slope(y, i, i);
    if (!y->r[i] || !own) /* no derivative goes through the state, so none through what is combined with it */
        return;
    give(y, i, own == y->one[i] ? y->r[i] : grad_op2(b, IR_DIV, y->r[i], own), SIZE_MAX);
}

/* m_i A_ii + m_j A_ji = r_i,  m_i A_ij + m_j A_jj = r_j */
static void solve_two(equations *y, size_t i, size_t j) {
    ir_builder *b = y->u.b;
    ir_id ii = slope(y, i, i), ij = slope(y, i, j), ji = slope(y, j, i), jj = slope(y, j, j);
    ir_id ri = y->r[i], rj = y->r[j];
    if (!ri && !rj)
        return;
    ir_id det = difference(b, product(b, ii, jj), product(b, ij, ji));
    if (!det)
        return;
    ir_id mi = difference(b, product(b, ri, jj), product(b, rj, ji));
    ir_id mj = difference(b, product(b, ii, rj), product(b, ij, ri));
    if (mi)
        give(y, i, grad_op2(b, IR_DIV, mi, det), j);
    if (mj)
        give(y, j, grad_op2(b, IR_DIV, mj, det), i);
}

/* Is value i needed by a new value that is not solved yet, beside its own circle? */
static bool is_ready(const equations *y, size_t i) {
    const grad_states *s = y->u.s;
    for (size_t k = 0; k < s->n; k++)
        if (!y->done[k] && s->needs[k][i] && !grad_in_circle(s, i, k))
            return false;
    return true;
}

static bool is_mixed_float(const grad_states *s, size_t i) {
    return s->way[i] == GRAD_MIXED && ir_dtype_is_float(ir_at(s->f, s->region->ops[i])->type.dtype);
}

static size_t mate_of(const grad_states *s, size_t i) {
    for (size_t j = 0; j < s->n; j++)
        if (j != i && grad_in_circle(s, i, j))
            return j;
    return SIZE_MAX;
}

static void solve(equations *y) {
    const grad_states *s = y->u.s;
    for (size_t left = s->n; left;) {
        size_t i = 0;
        while (y->done[i] || !is_ready(y, i))
            i++;
        size_t mate = mate_of(s, i);
        if (is_mixed_float(s, i)) {
            if (mate == SIZE_MAX)
                solve_one(y, i);
            else
                solve_two(y, i, mate);
        }
        y->done[i] = true;
        left--;
        if (mate != SIZE_MAX) {
            y->done[mate] = true;
            left--;
        }
    }
}

/* ---- all values of a state ---- */
static ir_id lifted(const grad_states *s, size_t i) { return ir_at(s->f, s->id)->args[s->n + i]; }

/* The value i of the row's state. */
static ir_id state_of(const grad_states *s, ir_builder *b, size_t i) {
    for (size_t k = 0; k < b->f->body.n; k++) {
        const ir_op *op = ir_at(b->f, b->f->body.ops[k]);
        if (op->code == IR_GET && op->args[0] == s->id && (size_t)ir_int(op, IR_ATTR_INDEX, 0) == i)
            return b->f->body.ops[k];
    }
    ir_type t = ir_at(b->f, s->region->ops[i])->type;
    t.space = IR_ROW;
    ir_id id = ir_emit1(b, IR_GET, t, s->id);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_INDEX, (int64_t)i);
    return id;
}

static void give_alone(grad_sink *k, const grad_states *s, size_t i, ir_id ct) {
    ir_id value = ct, v = lifted(s, i), start = ir_at(s->f, s->id)->args[i];
    if (s->kind[i] == IR_KIND_PROD)
        value = grad_product(k->b, v, grad_op2(k->b, IR_MUL, ct, grad_conj(k->b, start)));
    else if (s->kind[i] != IR_KIND_SUM)
        value = grad_extreme(k->b, grad_op2(k->b, IR_EQ, v, state_of(s, k->b, i)), v, ct);
    k->add(k->user, v, ir_at(s->f, s->id), value);
}

static void give_chosen(grad_sink *k, const grad_states *s, size_t i, ir_id ct) {
    ir_id v = lifted(s, i), tied = grad_op2(k->b, IR_EQ, v, state_of(s, k->b, i));
    for (size_t j = 0; j < s->n; j++)
        if (s->keys[i][j])
            tied = grad_op2(k->b, IR_AND, tied, grad_op2(k->b, IR_EQ, lifted(s, j), state_of(s, k->b, j)));
    k->add(k->user, v, ir_at(s->f, s->id), grad_extreme(k->b, tied, v, ct));
}

static void give_mixed(grad_sink *k, const grad_states *s, const ir_id *ct) {
    ir_id *sides = base_arena_new_array(s->scratch, ir_id, 2 * s->n);
    equations y = {.one = base_arena_new_array(s->scratch, ir_id, s->n),
                   .r = base_arena_new_array(s->scratch, ir_id, s->n),
                   .into = base_arena_new_array(s->scratch, ir_id, s->n),
                   .done = base_arena_new_array(s->scratch, bool, s->n)};
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        sides[i] = lifted(s, i);
        sides[s->n + i] = state_of(s, k->b, i);
        if (s->way[i] == GRAD_MIXED && ct[i]) {
            any = true;
            y.r[i] = ct[i];
        }
        if (is_mixed_float(s, i))
            y.one[i] = grad_number(k->b, sides[i], 1);
    }
    if (!any)
        return;
    y.u = grad_join_of(s, k->b, sides, NULL);
    solve(&y);
    for (size_t i = 0; i < s->n; i++)
        if (y.into[i] && k->wanted(k->user, sides[i]))
            k->add(k->user, sides[i], ir_at(s->f, s->id), y.into[i]);
}

void grad_states_rule(grad_sink *k, const grad_states *s, const ir_id *ct) {
    k->b->span = ir_at(s->f, s->id)->span;
    for (size_t i = 0; i < s->n; i++) {
        if (!ct[i] || !k->wanted(k->user, lifted(s, i)))
            continue;
        if (s->way[i] == GRAD_ALONE)
            give_alone(k, s, i, ct[i]);
        else if (s->way[i] == GRAD_CHOSEN)
            give_chosen(k, s, i, ct[i]);
    }
    if (s->steps)
        grad_steps_rule(k, s, ct);
    else
        give_mixed(k, s, ct);
}
