/* Reducers of the user, backwards: what is known about how the values of a state are combined.
 *
 *   ALONE   its new value is a sum, product, minimum or maximum of its own two, and no other value's derivative needs it
 *   CHOSEN  its new value is one of its own two, which one being decided by keys that are kept in the same way: what the
 *           row ends with is what one of its edges began with (a maximum with a payload)
 *   MIXED   all else.  grad_mixed.c needs two things of it: the order of the edges does not matter, and the new value
 *           depends on the old one in its own place.
 *
 * Where that does not hold, or the order matters to what is CHOSEN, all but ALONE is MIXED and goes edge by edge
 * (grad_steps.c), which takes arrays over the edges.
 *
 * That the order does not matter is found out by trying: grad_order.c. */
#include "passes/grad.h"

/* ---- which value depends on which ---- */
static size_t place_of(const grad_states *s, ir_id v) { return s->place[v]; }

/* Marks what is marked comes from, by place in the region; through: only where a derivative goes.  Operations stand in
 * order: one walk from the last to the first, without recursion. */
static void mark_sources(const grad_states *s, bool through, bool *reached) {
    for (size_t k = s->region->n - 1; k-- > 0;) {
        const ir_op *op = ir_at(s->f, s->region->ops[k]);
        for (uint32_t a = 0; reached[k] && a < op->n_args; a++)
            if (place_of(s, op->args[a]) != SIZE_MAX && (!through || ir_grad_flows(s->f, op, a)))
                reached[place_of(s, op->args[a])] = true;
    }
}

/* What v comes from, by place in the region. */
static bool *reached_from(const grad_states *s, ir_id v, bool through) {
    bool *reached = base_arena_new_array(s->scratch, bool, s->region->n);
    if (place_of(s, v) == SIZE_MAX)
        return reached;
    reached[place_of(s, v)] = true;
    mark_sources(s, through, reached);
    for (size_t j = 0; through && j < 2 * s->n; j++)
        reached[j] = reached[j] && ir_dtype_has_gradient(ir_at(s->f, s->region->ops[j])->type.dtype);
    return reached;
}

/* The values, of either side, that v comes from. */
static bool *sources_of(const grad_states *s, ir_id v, bool through) {
    bool *by = base_arena_new_array(s->scratch, bool, s->n), *reached = reached_from(s, v, through);
    for (size_t j = 0; j < 2 * s->n; j++)
        by[j % s->n] |= reached[j];
    return by;
}

static ir_id yielded(const grad_states *s, size_t i) { return ir_at(s->f, s->region->ops[s->region->n - 1])->args[i]; }

const bool *grad_left_sources(const grad_states *s, size_t i) { return reached_from(s, yielded(s, i), true); }

static bool is_own_pair(const grad_states *s, size_t i, ir_id x, ir_id y) {
    ir_id a = s->region->ops[i], b = s->region->ops[s->n + i];
    return (x == a && y == b) || (x == b && y == a);
}

static bool used_by_others(const grad_states *s, size_t j) {
    for (size_t i = 0; i < s->n; i++)
        if (i != j && s->uses[i][j])
            return true;
    return false;
}

/* ---- the three ways ---- */
static bool is_primitive(const grad_states *s, size_t i, ir_kind *kind) {
    const ir_op *op = ir_at(s->f, yielded(s, i));
    if (op->n_args != 2 || !is_own_pair(s, i, op->args[0], op->args[1]))
        return false;
    for (ir_kind k = IR_KIND_SUM; k <= IR_KIND_MAX; k++)
        if (ir_kind_opcode(k) == op->code) {
            *kind = k;
            return true;
        }
    return false;
}

static bool is_choice(const grad_states *s, size_t i) {
    const ir_op *op = ir_at(s->f, yielded(s, i));
    return op->code == IR_SELECT && is_own_pair(s, i, op->args[1], op->args[2]);
}

/* What stands for all values known to be equal to v. */
static ir_id class_of(ir_id *same, ir_id v) {
    while (same[v]) {
        if (same[same[v]])
            same[v] = same[same[v]];
        v = same[v];
    }
    return v;
}

static bool same_operation(const ir_op *a, const ir_op *b) {
    if (a->code != b->code || a->n_args != b->n_args || a->code == IR_ARG || !ir_type_equal(&a->type, &b->type))
        return false;
    return (a->code == IR_CONST || a->n_args) && ir_same_attrs(a, b);
}

/* Pairs are taken to be equal when they are met: where one turns out not to be, the whole is not.  Each joins two
 * classes, so there are at most as many as operations. */
static bool same_expression(const grad_states *s, ir_id x, ir_id y) {
    ir_id *same = base_arena_new_array(s->scratch, ir_id, s->f->n_ops), *todo = NULL;
    size_t n = 0, cap = 0;
    base_push(s->scratch, todo, n, cap, x);
    base_push(s->scratch, todo, n, cap, y);
    while (n) {
        y = class_of(same, todo[--n]);
        x = class_of(same, todo[--n]);
        const ir_op *a = ir_at(s->f, x), *b = ir_at(s->f, y);
        if (x == y)
            continue;
        if (!same_operation(a, b))
            return false;
        same[x] = y;
        for (uint32_t i = 0; i < a->n_args && a->code != IR_CONST; i++) {
            base_push(s->scratch, todo, n, cap, a->args[i]);
            base_push(s->scratch, todo, n, cap, b->args[i]);
        }
    }
    return true;
}

/* Do the keys of a choice end as those of the edge that is chosen?  One key that is a minimum or maximum does; several
 * do when they are chosen by the same condition. */
static bool keys_are_kept(const grad_states *s, size_t i, const bool *keys) {
    ir_id condition = ir_at(s->f, yielded(s, i))->args[0];
    size_t n = 0;
    bool chosen = true, extreme = false;
    for (size_t k = 0; k < s->n; k++) {
        ir_kind kind = IR_KIND_SUM;
        if (!keys[k])
            continue;
        n++;
        extreme = is_primitive(s, k, &kind) && (kind == IR_KIND_MIN || kind == IR_KIND_MAX);
        chosen = chosen && is_choice(s, k) && same_expression(s, ir_at(s->f, yielded(s, k))->args[0], condition);
    }
    return n && (chosen || (n == 1 && extreme));
}

static void look_at(grad_states *s, size_t i) {
    s->way[i] = GRAD_MIXED;
    if (used_by_others(s, i))
        return;
    if (is_primitive(s, i, &s->kind[i])) {
        s->way[i] = GRAD_ALONE;
    } else if (is_choice(s, i)) {
        s->keys[i] = sources_of(s, ir_at(s->f, yielded(s, i))->args[0], false);
        if (keys_are_kept(s, i, s->keys[i]))
            s->way[i] = GRAD_CHOSEN;
    }
}

static size_t *places(const ir_func *f, const ir_region *r, base_arena *scratch) {
    size_t *place = base_arena_new_array(scratch, size_t, f->n_ops);
    for (size_t v = 0; v < f->n_ops; v++)
        place[v] = SIZE_MAX;
    for (size_t k = 0; k < r->n; k++)
        place[r->ops[k]] = k;
    return place;
}

/* Through others too (Warshall). */
static bool **close_uses(const grad_states *s) {
    bool **needs = base_arena_new_array(s->scratch, bool *, s->n);
    for (size_t i = 0; i < s->n; i++) {
        needs[i] = base_arena_new_array(s->scratch, bool, s->n);
        base_copy(needs[i], s->uses[i], sizeof(bool) * s->n);
    }
    for (size_t k = 0; k < s->n; k++)
        for (size_t i = 0; i < s->n; i++)
            for (size_t j = 0; needs[i][k] && j < s->n; j++)
                needs[i][j] = needs[i][j] || needs[k][j];
    return needs;
}

/* ---- what cannot be done ---- */
static bool is_mixed_float(const grad_states *s, size_t i) {
    return s->way[i] == GRAD_MIXED && ir_dtype_is_float(ir_at(s->f, s->region->ops[i])->type.dtype);
}

bool grad_uses_outside(const grad_states *s) {
    for (size_t k = 0; k < s->region->n; k++) {
        const ir_op *op = ir_at(s->f, s->region->ops[k]);
        for (uint32_t a = 0; a < op->n_args; a++) {
            const ir_op *v = ir_at(s->f, op->args[a]);
            if (place_of(s, op->args[a]) == SIZE_MAX && v->code != IR_CONST && ir_dtype_has_gradient(v->type.dtype))
                return true;
        }
    }
    return false;
}

static bool is_own_extreme(const grad_states *s, const ir_op *op) {
    ir_kind kind = IR_KIND_SUM;
    for (size_t i = 0; i < s->n; i++)
        if (is_own_pair(s, i, op->args[0], op->args[1]) && is_primitive(s, i, &kind) &&
            ir_kind_opcode(kind) == op->code)
            return true;
    return false;
}

/* A minimum or maximum of two values with derivatives, on the way to a mixed state: which of the two it is changes with
 * the edges, and states are not combined as if something was added.  That of a state that is itself this maximum is what
 * the row ends with. */
static bool has_extreme(const grad_states *s) {
    size_t n = s->region->n - 1;
    bool *carries = base_arena_new_array(s->scratch, bool, n + 1),
         *reached = base_arena_new_array(s->scratch, bool, n + 1);
    for (size_t i = 0; i < s->n; i++)
        if (is_mixed_float(s, i) && place_of(s, yielded(s, i)) != SIZE_MAX)
            reached[place_of(s, yielded(s, i))] = true;
    mark_sources(s, true, reached);
    for (size_t k = 0; k < n; k++) {
        const ir_op *op = ir_at(s->f, s->region->ops[k]);
        uint32_t carrying = 0;
        for (uint32_t a = 0; a < op->n_args; a++)
            carrying +=
                place_of(s, op->args[a]) != SIZE_MAX && carries[place_of(s, op->args[a])] && ir_grad_flows(s->f, op, a);
        carries[k] = k < 2 * s->n ? ir_dtype_has_gradient(op->type.dtype) : carrying != 0;
        if ((op->code == IR_MIN || op->code == IR_MAX) && carrying == 2 && reached[k] && !is_own_extreme(s, op))
            return true;
    }
    return false;
}

static const char *one_refused(const grad_states *s, size_t i) {
    ir_dtype t = ir_at(s->f, s->region->ops[i])->type.dtype;
    if (s->way[i] != GRAD_MIXED || !ir_dtype_has_gradient(t))
        return NULL;
    if (!ir_dtype_is_float(t))
        return "mixes 16-bit or complex states";
    if (is_choice(s, i))
        return "chooses by values that the chosen edge does not keep";
    if (!s->uses[i][i])
        return "computes a state from the others alone";
    size_t circle = 0;
    for (size_t j = 0; j < s->n; j++) {
        bool with = is_mixed_float(s, j) && grad_in_circle(s, i, j);
        circle += with;
        if (with && ir_at(s->f, s->region->ops[j])->type.dtype != t)
            return "has states of two types that need one another";
    }
    return circle > 2 ? "has more than two states that need one another" : NULL;
}

/* From the edge and the end of the row alone. */
static const char *refused_at_once(const grad_states *s) {
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        const char *why = one_refused(s, i);
        if (why)
            return why;
        any |= is_mixed_float(s, i);
    }
    if (any && grad_uses_outside(s))
        return "combines with a value that is no state";
    if (any && has_extreme(s))
        return "takes the minimum or maximum of different states";
    return grad_order_matters(s) ? "depends on the order of the edges" : NULL;
}

/* A scan is gone through edge by edge in any case: every one of its members is wanted of every edge. */
static const char *judge_scan(const grad_states *s) {
    for (size_t i = 0; i < s->n; i++)
        s->way[i] = GRAD_MIXED;
    return grad_steps_refused(s);
}

static void judge(grad_states *s) {
    if (ir_is_scan(ir_at(s->f, s->id))) {
        s->refused = judge_scan(s);
        s->steps = !s->refused;
        return;
    }
    const char *why = refused_at_once(s), *steps = why ? grad_steps_refused(s) : NULL;
    if (!why)
        return;
    s->steps = !steps;
    s->in_parts = s->steps && !grad_steps_fit(s);
    if (steps)
        s->refused = steps == why ? why : base_arena_printf(s->scratch, "%s and %s", why, steps);
    for (size_t i = 0; i < s->n; i++)
        if (s->way[i] != GRAD_ALONE)
            s->way[i] = GRAD_MIXED;
}

grad_states grad_states_of(const ir_func *f, ir_id combine, base_arena *scratch) {
    const ir_op *op = ir_at(f, combine);
    grad_states s = {.f = f, .scratch = scratch, .id = combine, .region = op->region, .n = op->n_args / 2};
    s.place = places(f, op->region, scratch);
    s.way = base_arena_new_array(scratch, grad_way, s.n);
    s.kind = base_arena_new_array(scratch, ir_kind, s.n);
    s.uses = base_arena_new_array(scratch, bool *, s.n);
    s.keys = base_arena_new_array(scratch, bool *, s.n);
    for (size_t i = 0; i < s.n; i++)
        s.uses[i] = sources_of(&s, yielded(&s, i), true);
    for (size_t i = 0; i < s.n; i++)
        look_at(&s, i);
    s.needs = close_uses(&s);
    judge(&s);
    return s;
}
