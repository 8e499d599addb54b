/* Reducers of the user, backwards, edge by edge: whatever combine does, in the order in which it did it.
 *
 * Let P be the state that an edge meets and v what it lifts, so that combine(P, v) is the next state.  One walk forwards
 * keeps P for each edge (a scan).  One walk backwards carries the cotangent R of the state behind an edge, beginning with
 * that of the row, and keeps it for each edge too (a scan in reverse):
 *
 *     R before the edge = R dcombine/dP,     cotangent of v = R dcombine/dv,     both at (P, v)
 *
 * Any state is fine: of any types, depending on one another in any way, on the order of the edges as well.  The price
 * are arrays over the edges of what P and R are needed, so states with axes have to be few numbers: of others
 * grad_parts.c brings a part at a time.  Beside states with axes one without has an R for each of their elements, since combine
 * goes element by element; what an edge lifts to it gets the sum.
 *
 * Values that are combined alone keep the rules of grad_mixed.c.
 *
 * A scan is differentiated in the same way, so that gradients of gradients need nothing new: what it gives edge e is P
 * itself, whose cotangent Q is added to R on the way past e, the walk goes against that of the scan, and what is behind
 * the last edge has none.  Where the scan begins with a value of the row, the R that the walk ends with is its cotangent. */
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

/* Values that combine changes: a scan has others beside them, which only bring something. */
static int64_t n_changed(const grad_states *s) {
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += ir_at(s->f, s->region->ops[s->region->n - 1])->args[i] != s->region->ops[i];
    return n;
}

/* States without axes only are any number: those cannot hide features. */
static bool is_small(const grad_states *s) {
    const ir_type *t = widest(s);
    int64_t n = t->rank ? n_changed(s) : 0;
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

bool grad_steps_fit(const grad_states *s) {
    bool fit = is_small(s) && (!wide_of(s) || widest(s)->rank == 1);
    for (size_t i = 0; i < s->n; i++)
        fit = fit && (type_of(s, i)->rank == 0 || ir_shape_equal(type_of(s, i), widest(s)));
    return fit;
}

const char *grad_steps_refused(const grad_states *s) {
    if (grad_uses_outside(s))
        return "combines with a value that is no state";
    return ir_is_scan(ir_at(s->f, s->id)) && !grad_steps_fit(s) ? "scans states of features" : NULL;
}

/* ---- the two scans ---- */
static bool is_mixed(const grad_states *s, size_t i) {
    return s->way[i] == GRAD_MIXED && ir_dtype_has_gradient(type_of(s, i)->dtype);
}

/* Values that have an R: given one, or the left side of what has one. */
static bool *carried_by(const grad_states *s, const ir_id *ct, bool *any) {
    bool *carried = base_arena_new_array(s->scratch, bool, s->n), changed = true;
    for (size_t i = 0; i < s->n; i++)
        *any |= carried[i] = is_mixed(s, i) && ct[i];
    while (changed) {
        changed = false;
        for (size_t i = 0; i < s->n; i++) {
            const bool *left = grad_left_sources(s, i);
            for (size_t j = 0; carried[i] && j < s->n; j++)
                if (is_mixed(s, j) && left[j] && !carried[j])
                    changed = carried[j] = true;
        }
    }
    return carried;
}

static bool is_reverse(const grad_states *s) { return ir_int(ir_at(s->f, s->id), IR_ATTR_REVERSE, 0) != 0; }

static bool is_scan(const grad_states *s) { return ir_is_scan(ir_at(s->f, s->id)); }

static ir_id lifted(const grad_states *s, size_t i) { return ir_at(s->f, s->id)->args[s->n + i]; }

static ir_type in_space(ir_type t, ir_space space) {
    t.space = space;
    return t;
}

static ir_id member(ir_builder *b, ir_id combine, ir_type t, size_t i) {
    ir_space space = ir_is_scan(ir_at(b->f, combine)) ? IR_EDGE : IR_ROW;
    ir_id id = ir_emit1(b, IR_GET, in_space(t, space), combine);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_INDEX, (int64_t)i);
    return id;
}

static ir_id combine(ir_builder *b, const ir_id *args, size_t n_args) {
    ir_id id = ir_emit(b, IR_COMBINE, ir_scalar(IR_TUPLE), args, n_args);
    ir_at(b->f, id)->region = ir_region_new(b->m);
    return id;
}

static void make_scan(ir_builder *b, ir_id combine, bool reverse) {
    ir_set_int(b->m, ir_at(b->f, combine), IR_ATTR_SCAN, 1);
    if (reverse)
        ir_set_int(b->m, ir_at(b->f, combine), IR_ATTR_REVERSE, 1);
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

/* What a scan gives, when the kernel has it already. */
static ir_id known_member(const ir_builder *b, const grad_states *s, size_t i) {
    for (size_t k = 0; k < b->f->body.n; k++) {
        const ir_op *op = ir_at(b->f, b->f->body.ops[k]);
        if (op->code == IR_GET && op->args[0] == s->id && (size_t)ir_int(op, IR_ATTR_INDEX, 0) == i)
            return b->f->body.ops[k];
    }
    return 0;
}

/* P, by value of the state. */
static ir_id *scan_forward(ir_builder *b, const grad_states *s) {
    const ir_op *op = ir_at(b->f, s->id);
    ir_id id = s->id, *out = base_arena_new_array(s->scratch, ir_id, s->n);
    if (!is_scan(s)) {
        id = combine(b, op->args, op->n_args);
        make_scan(b, id, false);
        ir_builder inner = *b;
        inner.r = ir_at(b->f, id)->region;
        copy_region(&inner, s);
    }
    for (size_t i = 0; i < s->n; i++) {
        ir_id known = is_scan(s) ? known_member(b, s, i) : 0;
        out[i] = known ? known : member(b, id, *type_of(s, i), i);
    }
    return out;
}

/* Slot i carries R of value i and is brought P of it, slot n + i carries nothing and is brought v, and slot 2 n + i of a
 * scan Q: operands of a combine come in pairs of one type.  16-bit floats have cotangents in f32 and are brought as such. */
static ir_type slot_type(const grad_states *s, size_t k) {
    ir_type t = *type_of(s, k % s->n);
    t.dtype = ir_dtype_has_gradient(t.dtype) ? ir_dtype_cotangent(t.dtype) : t.dtype;
    t.rank = widest(s)->rank;
    base_copy(t.dim, widest(s)->dim, sizeof t.dim);
    return t;
}

/* A cotangent that is given, of the row or of an edge, in the first of the elements that a state without axes stands for. */
static ir_id given(ir_builder *b, const grad_states *s, size_t i, ir_id ct) {
    ir_type full = slot_type(s, i), own = *type_of(s, i);
    if (!wide_of(s) || own.rank)
        return grad_full(b, ct, &full);
    ir_type index = {.dtype = IR_I64, .rank = 1, .dim = {full.dim[full.rank - 1]}};
    ir_id first = grad_op2(b, IR_EQ, ir_emit(b, IR_IOTA, index, NULL, 0), ir_emit_i64(b, 0));
    ir_id v = grad_select(b, first, ct, grad_number(b, ct, 0));
    return grad_full(b, v, &full);
}

/* v in the shape of a slot */
static ir_id stretched(ir_builder *b, const grad_states *s, ir_id v) { return grad_full(b, v, widest(s)); }

static ir_id zero(ir_builder *b, ir_type t) { return ir_emit_const(b, in_space(t, IR_UNIFORM), (ir_scalar_value){0}); }

/* What the region does not need of what it is brought is not: each is an array over the edges. */
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

/* The walk backwards.  Of a scan, ct are cotangents of what it gave each edge. */
typedef struct walk {
    const grad_states *s;
    const ir_id *before; /* P, by value of the state */
    const ir_id *ct; /* by value, 0: none */
    const bool *carried;
    size_t slots;
} walk;

/* The region of that walk: R before the edge from R behind it. */
static void step_back(ir_builder *b, const walk *w) {
    const grad_states *s = w->s;
    size_t n = s->n, m = w->slots;
    ir_id *a = base_arena_new_array(s->scratch, ir_id, 2 * m), *sides = base_arena_new_array(s->scratch, ir_id, 2 * n),
          *x = base_arena_new_array(s->scratch, ir_id, n), *next = base_arena_new_array(s->scratch, ir_id, m);
    for (size_t k = 0; k < 2 * m; k++)
        a[k] = argument(b, slot_type(s, k), k);
    for (size_t k = 0; k < 2 * n; k++)
        sides[k] = grad_cast(b, type_of(s, k % n)->dtype, a[m + k]);
    for (size_t i = 0; i < n; i++)
        x[i] = w->carried[i] ? a[i] : 0;
    grad_join u = grad_join_of(s, b, sides, wide_of(s));
    const ir_id *ct = grad_join_back(&u, x);
    for (size_t k = 0; k < m; k++) {
        ir_type t = in_space(slot_type(s, k), IR_EDGE);
        next[k] = k >= n || !x[k] ? a[k] : grad_full(b, ct[k] ? ct[k] : zero(b, t), &t);
        if (k < n && x[k] && is_scan(s) && w->ct[k])
            next[k] = grad_op2(b, IR_ADD, next[k], a[m + 2 * n + k]);
    }
    ir_emit(b, IR_YIELD, (ir_type){.dtype = IR_NONE}, next, m);
}

/* A combine that walks so, but for the order of the edges. */
static ir_id walk_back(ir_builder *b, const walk *w) {
    const grad_states *s = w->s;
    size_t n = s->n, m = w->slots;
    ir_id *args = base_arena_new_array(s->scratch, ir_id, 2 * m), *none = base_arena_new_array(s->scratch, ir_id, m);
    for (size_t k = 0; k < m; k++) {
        ir_type t = slot_type(s, k);
        bool has = w->carried[k % n] && w->ct[k % n];
        none[k] = zero(b, t);
        args[k] = k < n && has && !is_scan(s) ? given(b, s, k, w->ct[k]) : none[k];
        if (k < 2 * n)
            args[m + k] = stretched(b, s, grad_cast(b, t.dtype, k < n ? w->before[k] : lifted(s, k - n)));
        else
            args[m + k] = has ? given(b, s, k - 2 * n, w->ct[k - 2 * n]) : none[k];
    }
    ir_id id = combine(b, args, 2 * m);
    ir_builder inner = *b;
    inner.r = ir_at(b->f, id)->region;
    step_back(&inner, w);
    bring_less(b, ir_at(b->f, id), none);
    return id;
}

/* R, by value of the state; 0 of those that are not carried. */
static ir_id *members_of(ir_builder *b, const walk *w, ir_id combine) {
    ir_id *out = base_arena_new_array(w->s->scratch, ir_id, w->s->n);
    for (size_t i = 0; i < w->s->n; i++)
        out[i] = w->carried[i] ? member(b, combine, slot_type(w->s, i), i) : 0;
    return out;
}

/* What reaches the copies of a state without axes, together. */
static ir_id of_one(ir_builder *b, const grad_states *s, size_t i, ir_id v) {
    if (!wide_of(s) || type_of(s, i)->rank)
        return v;
    return grad_fold_sum(b, grad_full(b, v, widest(s)), ((uint64_t)1 << widest(s)->rank) - 1);
}

static void give_lifted(grad_sink *k, const walk *w, const ir_id *behind) {
    const grad_states *s = w->s;
    ir_id *sides = base_arena_new_array(s->scratch, ir_id, 2 * s->n);
    for (size_t i = 0; i < s->n; i++) {
        sides[i] = stretched(k->b, s, w->before[i]);
        sides[s->n + i] = stretched(k->b, s, lifted(s, i));
    }
    grad_join u = grad_join_of(s, k->b, sides, wide_of(s));
    const ir_id *into = grad_join_back(&u, behind);
    for (size_t i = 0; i < s->n; i++)
        if (into[s->n + i] && s->way[i] != GRAD_ALONE && k->wanted(k->user, lifted(s, i)))
            k->add(k->user, lifted(s, i), ir_at(s->f, s->id), of_one(k->b, s, i, into[s->n + i]));
}

/* What a scan begins with, a value of the row: R at the end of the walk.  Only the scans of first gradients begin so, and
 * they go from the last edge. */
static void give_start(grad_sink *k, const walk *w) {
    const grad_states *s = w->s;
    ir_id id = 0;
    for (size_t i = 0; i < s->n; i++) {
        ir_id start = ir_at(s->f, s->id)->args[i];
        if (!w->carried[i] || !k->wanted(k->user, start))
            continue;
        BASE_CHECK(is_reverse(s));
        id = id ? id : walk_back(k->b, w);
        ir_op by = {.code = IR_GET, .type = in_space(*type_of(s, i), IR_ROW)};
        k->add(k->user, start, &by, of_one(k->b, s, i, member(k->b, id, slot_type(s, i), i)));
    }
}

void grad_steps_rule(grad_sink *k, const grad_states *s, const ir_id *ct) {
    bool any = false;
    walk w = {.s = s, .ct = ct, .carried = carried_by(s, ct, &any), .slots = (is_scan(s) ? 3 : 2) * s->n};
    if (!any)
        return;
    w.before = scan_forward(k->b, s);
    ir_id back = walk_back(k->b, &w);
    make_scan(k->b, back, !is_reverse(s));
    give_lifted(k, &w, members_of(k->b, &w, back));
    if (is_scan(s))
        give_start(k, &w);
}
