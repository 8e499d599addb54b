/* Reducers of the user, backwards, edge by edge: whatever combine does, in the order in which it did it.
 *
 * Let P be the state that an edge meets and v what it lifts, so that combine(P, v) is the next state.  One walk forwards
 * keeps P for each edge (a scan).  One walk backwards carries the cotangent R of the state behind an edge, beginning with
 * that of the row, and keeps it for each edge too (a scan in reverse):
 *
 *     R before the edge = R dcombine/dP,     cotangent of v = R dcombine/dv,     both at (P, v)
 *
 * Any state is fine: of any types, depending on one another in any way, on the order of the edges as well.  The price
 * are arrays over the edges of what P and R are needed, so states with axes have to be few numbers: an array of size
 * edges x features is not made.  Beside states with axes one without has an R for each of their elements, since combine
 * goes element by element; what an edge lifts to it gets the sum.
 *
 * Values that are combined alone keep the rules of grad_mixed.c. */
#include "passes/grad.h"

enum { MOST_NUMBERS = 16 }; /* in a state that has axes */

/* ---- what cannot be done ---- */
static const ir_type *type_of(const grad_states *s, size_t i) { return &ir_at(s->f, s->region->ops[i])->type; }

/* The state with axes; without one the first. */
static const ir_type *widest(const grad_states *s) {
    for (size_t i = 0; i < s->n; i++)
        if (type_of(s, i)->rank)
            return type_of(s, i);
    return type_of(s, 0);
}

/* States without axes only are any number: those cannot hide features. */
static bool is_small(const grad_states *s) {
    const ir_type *t = widest(s);
    int64_t n = t->rank ? (int64_t)s->n : 0;
    for (uint32_t a = 0; a < t->rank; a++) {
        if (ir_dim_is_sym(t->dim[a]) || t->dim[a] > MOST_NUMBERS)
            return false;
        n *= t->dim[a];
    }
    return n <= MOST_NUMBERS;
}

/* NULL: all have one shape. */
static const ir_type *wide_of(const grad_states *s) {
    for (size_t i = 0; i < s->n; i++)
        if (type_of(s, i)->rank == 0 && widest(s)->rank)
            return widest(s);
    return NULL;
}

const char *grad_steps_refused(const grad_states *s) {
    bool fit = true, small = is_small(s);
    for (size_t i = 0; i < s->n; i++) {
        fit = fit && (type_of(s, i)->rank == 0 || ir_shape_equal(type_of(s, i), widest(s)));
        for (uint32_t a = 0; a < type_of(s, i)->rank; a++)
            small = small && !ir_dim_is_sym(type_of(s, i)->dim[a]);
    }
    fit = fit && (!wide_of(s) || widest(s)->rank == 1);
    if (grad_uses_outside(s))
        return "combines with a value that is no state";
    if (!small)
        return "has states of features, so that going back edge by edge would take an array of edges x features";
    return fit ? NULL : "has states of different shapes";
}

/* ---- the two scans ---- */
static bool is_mixed(const grad_states *s, size_t i) {
    return s->way[i] == GRAD_MIXED && ir_dtype_has_gradient(type_of(s, i)->dtype);
}

/* Values that have a cotangent, from the row or from what has one. */
static bool *carried_by(const grad_states *s, const ir_id *ct, bool *any) {
    bool *carried = base_arena_new_array(s->scratch, bool, s->n);
    *any = false;
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = 0; is_mixed(s, i) && ct[i] && j < s->n; j++)
            *any |= carried[j] |= is_mixed(s, j) && (i == j || s->needs[i][j]);
    return carried;
}

static ir_id lifted(const grad_states *s, size_t i) { return ir_at(s->f, s->id)->args[s->n + i]; }

static ir_type in_space(ir_type t, ir_space space) {
    t.space = space;
    return t;
}

static ir_id member(ir_builder *b, ir_id scan, ir_type t, size_t i) {
    ir_id id = ir_emit1(b, IR_GET, in_space(t, IR_EDGE), scan);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_INDEX, (int64_t)i);
    return id;
}

static ir_id scan(ir_builder *b, const ir_id *args, size_t n_args, bool reverse) {
    ir_id id = ir_emit(b, IR_COMBINE, ir_scalar(IR_TUPLE), args, n_args);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_SCAN, 1);
    if (reverse)
        ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_REVERSE, 1);
    ir_at(b->f, id)->region = ir_region_new(b->m);
    return id;
}

static ir_id argument(ir_builder *b, ir_type t, size_t index) {
    ir_id id = ir_emit(b, IR_ARG, in_space(t, IR_EDGE), NULL, 0);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_INDEX, (int64_t)index);
    return id;
}

static void copy_region(ir_builder *b, const grad_states *s) {
    ir_id *to = base_arena_new_array(s->scratch, ir_id, s->region->n);
    for (size_t k = 0; k < s->region->n; k++) {
        const ir_op *op = ir_at(b->f, s->region->ops[k]);
        ir_id *args = base_arena_new_array(s->scratch, ir_id, op->n_args + 1);
        for (uint32_t a = 0; a < op->n_args; a++)
            args[a] = s->place[op->args[a]] == SIZE_MAX ? op->args[a] : to[s->place[op->args[a]]];
        to[k] = ir_emit(b, op->code, op->type, args, op->n_args);
        ir_copy_attrs(b->m, op, ir_at(b->f, to[k]));
    }
}

/* P, by value of the state. */
static ir_id *scan_forward(ir_builder *b, const grad_states *s) {
    const ir_op *op = ir_at(b->f, s->id);
    ir_id id = scan(b, op->args, op->n_args, false), *out = base_arena_new_array(s->scratch, ir_id, s->n);
    ir_builder inner = *b;
    inner.r = ir_at(b->f, id)->region;
    copy_region(&inner, s);
    for (size_t i = 0; i < s->n; i++)
        out[i] = member(b, id, *type_of(s, i), i);
    return out;
}

/* Slot i carries R of value i and is brought P of it, slot n + i carries nothing and is brought v: operands of a combine
 * come in pairs of one type.  16-bit floats have cotangents in f32 and are brought as such. */
static ir_type slot_type(const grad_states *s, size_t k) {
    ir_type t = *type_of(s, k % s->n);
    t.dtype = ir_dtype_has_gradient(t.dtype) ? ir_dtype_cotangent(t.dtype) : t.dtype;
    t.rank = widest(s)->rank;
    base_copy(t.dim, widest(s)->dim, sizeof t.dim);
    return t;
}

/* The cotangent of the row, in the first of the elements that a state without axes stands for. */
static ir_id begin_with(ir_builder *b, const grad_states *s, size_t i, ir_id ct) {
    ir_type row = in_space(slot_type(s, i), IR_ROW), own = *type_of(s, i);
    if (!wide_of(s) || own.rank)
        return grad_full(b, ct, &row);
    ir_type index = {.dtype = IR_I64, .rank = 1, .dim = {row.dim[row.rank - 1]}};
    ir_id first = grad_op2(b, IR_EQ, ir_emit(b, IR_IOTA, index, NULL, 0), ir_emit_i64(b, 0));
    ir_id v = grad_select(b, first, ct, grad_number(b, ct, 0));
    return grad_full(b, v, &row);
}

/* v in the shape of a slot */
static ir_id stretched(ir_builder *b, const grad_states *s, ir_id v) { return grad_full(b, v, widest(s)); }

static ir_id zero(ir_builder *b, ir_type t) { return ir_emit_const(b, in_space(t, IR_UNIFORM), (ir_scalar_value){0}); }

/* What the region does not need of its last 2 n arguments, P and v, is not brought: each is an array over the edges. */
static void bring_less(ir_builder *b, ir_op *scan, const ir_id *none) {
    const ir_region *r = scan->region;
    uint32_t n = scan->n_args / 2;
    ir_id first = r->ops[0]; /* its operations have been emitted one after the other */
    bool *live = base_arena_new_array(b->m->arena, bool, r->n);
    live[r->n - 1] = true;
    for (size_t k = r->n; k-- > 0;) {
        const ir_op *op = ir_at(b->f, r->ops[k]);
        for (uint32_t a = 0; live[k] && a < op->n_args; a++)
            if (op->args[a] >= first && op->args[a] < first + r->n)
                live[op->args[a] - first] = true;
    }
    for (uint32_t k = 0; k < n; k++)
        if (!live[n + k])
            scan->args[n + k] = none[k];
}

/* The region of the scan in reverse: R before the edge from R behind it. */
static void step_back(ir_builder *b, const grad_states *s, const bool *carried) {
    size_t n = s->n;
    ir_id *a = base_arena_new_array(s->scratch, ir_id, 4 * n), *sides = base_arena_new_array(s->scratch, ir_id, 2 * n),
          *x = base_arena_new_array(s->scratch, ir_id, n), *next = base_arena_new_array(s->scratch, ir_id, 2 * n);
    for (size_t k = 0; k < 4 * n; k++)
        a[k] = argument(b, slot_type(s, k), k);
    for (size_t k = 0; k < 2 * n; k++)
        sides[k] = grad_cast(b, type_of(s, k % n)->dtype, a[2 * n + k]);
    for (size_t i = 0; i < n; i++)
        x[i] = carried[i] ? a[i] : 0;
    grad_join u = grad_join_of(s, b, sides, wide_of(s));
    const ir_id *ct = grad_join_back(&u, x);
    for (size_t k = 0; k < 2 * n; k++) {
        ir_type t = in_space(slot_type(s, k), IR_EDGE);
        next[k] = k >= n || !x[k] ? a[k] : grad_full(b, ct[k] ? ct[k] : zero(b, t), &t);
    }
    ir_emit(b, IR_YIELD, (ir_type){.dtype = IR_NONE}, next, 2 * n);
}

/* R, by value of the state; 0 of those that are not carried. */
static ir_id *scan_back(ir_builder *b, const grad_states *s, const ir_id *before, const ir_id *ct,
                        const bool *carried) {
    size_t n = s->n;
    ir_id *args = base_arena_new_array(s->scratch, ir_id, 4 * n), *out = base_arena_new_array(s->scratch, ir_id, n),
          *none = base_arena_new_array(s->scratch, ir_id, 2 * n);
    for (size_t k = 0; k < 2 * n; k++) {
        ir_type t = slot_type(s, k);
        bool given = k < n && carried[k] && ct[k];
        none[k] = zero(b, t);
        args[k] = given ? begin_with(b, s, k, ct[k]) : none[k];
        args[2 * n + k] = stretched(b, s, grad_cast(b, t.dtype, k < n ? before[k] : lifted(s, k - n)));
    }
    ir_id id = scan(b, args, 4 * n, true);
    ir_builder inner = *b;
    inner.r = ir_at(b->f, id)->region;
    step_back(&inner, s, carried);
    bring_less(b, ir_at(b->f, id), none);
    for (size_t i = 0; i < n; i++)
        out[i] = carried[i] ? member(b, id, slot_type(s, i), i) : 0;
    return out;
}

/* What reaches the copies of a state without axes, together. */
static ir_id of_one(ir_builder *b, const grad_states *s, size_t i, ir_id v) {
    if (!wide_of(s) || type_of(s, i)->rank)
        return v;
    return grad_fold_sum(b, grad_full(b, v, widest(s)), ((uint64_t)1 << widest(s)->rank) - 1);
}

void grad_steps_rule(grad_sink *k, const grad_states *s, const ir_id *ct) {
    bool any;
    const bool *carried = carried_by(s, ct, &any);
    if (!any)
        return;
    ir_id *before = scan_forward(k->b, s), *behind = scan_back(k->b, s, before, ct, carried);
    ir_id *sides = base_arena_new_array(s->scratch, ir_id, 2 * s->n);
    for (size_t i = 0; i < s->n; i++) {
        sides[i] = stretched(k->b, s, before[i]);
        sides[s->n + i] = stretched(k->b, s, lifted(s, i));
    }
    grad_join u = grad_join_of(s, k->b, sides, wide_of(s));
    const ir_id *into = grad_join_back(&u, behind);
    for (size_t i = 0; i < s->n; i++)
        if (into[s->n + i] && s->way[i] != GRAD_ALONE && k->wanted(k->user, lifted(s, i)))
            k->add(k->user, lifted(s, i), ir_at(s->f, s->id), of_one(k->b, s, i, into[s->n + i]));
}
