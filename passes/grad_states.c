/* Reducers of the user, backwards: what is known about how the values of a state are combined.
 *
 *   ALONE   its new value is a sum, product, minimum or maximum of its own two, and no other value's derivative needs it
 *   CHOSEN  its new value is one of its own two, which one being decided by keys that are kept in the same way: what the
 *           row ends with is what one of its edges began with (a maximum with a payload)
 *   MIXED   all else.  grad_mixed.c needs two things of it: the order of the edges does not matter, and the new value
 *           depends on the old one in its own place.
 *
 * That the order does not matter is found out by trying: both orders of two states, at random points, in f64. */
#include "passes/grad.h"

#include <math.h>

/* ---- which value depends on which ---- */
/* Marks by[j] for the values j, of either side, that v comes from; through: only where a derivative goes. */
static void mark_sources(const grad_states *s, ir_id v, bool through, bool *by, bool *seen) {
    const ir_op *op = ir_at(s->f, v);
    if (seen[v])
        return;
    seen[v] = true;
    for (size_t j = 0; j < 2 * s->n; j++)
        if (s->region->ops[j] == v)
            by[j % s->n] = !through || ir_dtype_has_gradient(op->type.dtype);
    for (uint32_t a = 0; a < op->n_args; a++)
        if (!through || ir_grad_flows(s->f, op, a))
            mark_sources(s, op->args[a], through, by, seen);
}

static bool *sources_of(const grad_states *s, ir_id v, bool through) {
    bool *by = base_arena_new_array(s->scratch, bool, s->n);
    mark_sources(s, v, through, by, base_arena_new_array(s->scratch, bool, s->f->n_ops));
    return by;
}

static ir_id yielded(const grad_states *s, size_t i) { return ir_at(s->f, s->region->ops[s->region->n - 1])->args[i]; }

static bool is_own_pair(const grad_states *s, size_t i, ir_id x, ir_id y) {
    ir_id a = s->region->ops[i], b = s->region->ops[s->n + i];
    return (x == a && y == b) || (x == b && y == a);
}

bool grad_uses(const grad_states *s, size_t i, size_t j) { return s->uses[i][j]; }

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

static bool same_expression(const ir_func *f, ir_id x, ir_id y) {
    const ir_op *a = ir_at(f, x), *b = ir_at(f, y);
    if (x == y)
        return true;
    if (a->code != b->code || a->n_args != b->n_args || a->code == IR_ARG || !ir_type_equal(&a->type, &b->type))
        return false;
    if (a->code == IR_CONST)
        return ir_find_attr(a, IR_ATTR_VALUE)->v.i == ir_find_attr(b, IR_ATTR_VALUE)->v.i;
    if (a->code == IR_DIMSIZE || a->n_args == 0)
        return false;
    for (uint32_t i = 0; i < a->n_args; i++)
        if (!same_expression(f, a->args[i], b->args[i]))
            return false;
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
        chosen = chosen && is_choice(s, k) && same_expression(s->f, ir_at(s->f, yielded(s, k))->args[0], condition);
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

grad_states grad_states_of(const ir_func *f, ir_id combine, base_arena *scratch) {
    const ir_op *op = ir_at(f, combine);
    grad_states s = {.f = f, .scratch = scratch, .id = combine, .region = op->region, .n = op->n_args / 2};
    s.way = base_arena_new_array(scratch, grad_way, s.n);
    s.kind = base_arena_new_array(scratch, ir_kind, s.n);
    s.uses = base_arena_new_array(scratch, bool *, s.n);
    s.keys = base_arena_new_array(scratch, bool *, s.n);
    for (size_t i = 0; i < s.n; i++)
        s.uses[i] = sources_of(&s, yielded(&s, i), true);
    for (size_t i = 0; i < s.n; i++)
        look_at(&s, i);
    return s;
}

/* ---- does the order matter? ---- */
typedef struct trial {
    const grad_states *s;
    ir_scalar_value *value; /* by id */
    bool *known;
    uint64_t seed;
} trial;

static ir_dtype wide(ir_dtype t) { return t == IR_F32 ? IR_F64 : t; }

static ir_scalar_value random_value(trial *t, ir_dtype type) {
    t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t r = t->seed >> 33;
    if (ir_dtype_is_float(type))
        return (ir_scalar_value){.d = 0.5 + 2 * (double)r / 2147483648.0};
    return (ir_scalar_value){.i = type == IR_BOOL ? (int64_t)(r & 1) : 1 + (int64_t)(r % 5)};
}

static ir_scalar_value constant(const ir_op *op) {
    ir_scalar_value v = ir_find_attr(op, IR_ATTR_VALUE)->v;
    return op->type.dtype == IR_F32 ? ir_eval(IR_CAST, IR_F32, IR_F64, &v) : v;
}

static ir_scalar_value value_of(trial *t, ir_id v) {
    const ir_op *op = ir_at(t->s->f, v);
    ir_scalar_value args[3] = {{0}};
    if (t->known[v])
        return t->value[v];
    t->known[v] = true;
    bool computes = ir_class_is_elementwise(ir_op_describe(op->code)->cls);
    for (uint32_t i = 0; i < op->n_args && i < 3 && (computes || op->code == IR_BROADCAST); i++)
        args[i] = value_of(t, op->args[i]);
    if (op->code == IR_CONST)
        t->value[v] = constant(op);
    else if (op->code == IR_BROADCAST)
        t->value[v] = args[0];
    else if (computes)
        t->value[v] = ir_eval(op->code, wide(ir_at(t->s->f, op->args[op->code == IR_SELECT])->type.dtype),
                              wide(op->type.dtype), args);
    else
        t->value[v] = random_value(t, op->type.dtype);
    return t->value[v];
}

/* The new values of the state, a being the second of the two states when `turned`. */
static void try_order(const grad_states *s, uint64_t seed, bool turned, double *out) {
    const ir_func *f = s->f;
    trial t = {.s = s,
               .seed = seed,
               .value = base_arena_new_array(s->scratch, ir_scalar_value, f->n_ops),
               .known = base_arena_new_array(s->scratch, bool, f->n_ops)};
    for (size_t k = 0; k < 2 * s->n; k++) {
        ir_id arg = s->region->ops[turned ? (k + s->n) % (2 * s->n) : k];
        t.value[arg] = random_value(&t, ir_at(f, arg)->type.dtype);
        t.known[arg] = true;
    }
    for (size_t i = 0; i < s->n; i++)
        out[i] = s->way[i] == GRAD_MIXED && ir_dtype_is_float(ir_at(f, yielded(s, i))->type.dtype)
                     ? value_of(&t, yielded(s, i)).d
                     : 0;
}

static bool order_matters(const grad_states *s) {
    double *x = base_arena_new_array(s->scratch, double, s->n), *y = base_arena_new_array(s->scratch, double, s->n);
    for (uint64_t seed = 1; seed <= 16; seed++) {
        try_order(s, seed, false, x);
        try_order(s, seed, true, y);
        for (size_t i = 0; i < s->n; i++)
            if (!(fabs(x[i] - y[i]) <= 1e-9 * (1 + fabs(x[i]))))
                return true;
    }
    return false;
}

/* ---- what cannot be done ---- */
static bool is_mixed_float(const grad_states *s, size_t i) {
    return s->way[i] == GRAD_MIXED && ir_dtype_is_float(ir_at(s->f, s->region->ops[i])->type.dtype);
}

/* A value of the kernel that combine uses beside the states, through which a gradient might go. */
static bool uses_outside(const grad_states *s) {
    for (size_t k = 0; k < s->region->n; k++) {
        const ir_op *op = ir_at(s->f, s->region->ops[k]);
        for (uint32_t a = 0; a < op->n_args; a++) {
            const ir_op *v = ir_at(s->f, op->args[a]);
            bool inside = false;
            for (size_t j = 0; j < s->region->n; j++)
                inside |= s->region->ops[j] == op->args[a];
            if (!inside && v->code != IR_CONST && ir_dtype_is_float(v->type.dtype))
                return true;
        }
    }
    return false;
}

const char *grad_states_refused(const grad_states *s) {
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        if (s->way[i] == GRAD_MIXED && ir_dtype_is_complex(ir_at(s->f, s->region->ops[i])->type.dtype))
            return "mixes complex states";
        any |= is_mixed_float(s, i);
        if (!is_mixed_float(s, i))
            continue;
        if (is_choice(s, i))
            return "chooses by values that the chosen edge does not keep";
        if (!s->uses[i][i])
            return "computes a state from the others alone";
        size_t circle = 0;
        for (size_t j = 0; j < s->n; j++)
            circle += is_mixed_float(s, j) && grad_in_circle(s, i, j);
        if (circle > 2)
            return "has more than two states that need one another";
    }
    if (any && uses_outside(s))
        return "combines with a value that is no state";
    if (any && order_matters(s))
        return "depends on the order of the edges";
    return NULL;
}
