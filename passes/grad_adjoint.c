/* The reverse sweep over one kernel.
 *
 * Everything is emitted behind the kernel's own operations, in a copy of it.  A contribution to a row value that
 * arises on edges is summed over the row's edges before it goes on; uniform values are treated like row values, and
 * what reaches a param is per row, to be summed over the rows by whoever cuts the kernels out (grad_split.c). */
#include "passes/grad.h"

#include <string.h>

typedef struct sweep {
    ir_builder b;
    const ir_func *k;
    bool winners;
    ir_id *row, *edge; /* by id of the kernel's own operations: contributions per row, per edge */
    bool *active;      /* depends on a wanted field */
    uint32_t n;        /* of them */
    base_arena *scratch;
    grad_states **states; /* by id of a combine */
    ir_id **state_ct;     /* likewise: cotangents of the values of the state */
} sweep;

static void add_to(sweep *s, ir_id *place, ir_id value) {
    *place = *place ? grad_op2(&s->b, IR_ADD, *place, value) : value;
}

static void take(void *user, ir_id v, const ir_op *by, ir_id value) {
    sweep *s = user;
    if (v >= s->n || !s->active[v])
        return;
    bool on_edges = by->code == IR_REDUCE || by->code == IR_COMBINE || by->type.space == IR_EDGE;
    add_to(s, on_edges ? &s->edge[v] : &s->row[v], value);
}

static bool wanted(void *user, ir_id v) {
    const sweep *s = user;
    return v < s->n && s->active[v];
}

static const ir_func *by_winners(void *user, ir_id reduce, ir_id ct) {
    const sweep *s = user;
    return s->winners && grad_has_winners(s->k, s->b.f, reduce, ct) ? s->k : NULL;
}

/* What value i of a state comes from, of one edge or, in a scan, of the row, is active. */
static bool enters_active(const sweep *s, const ir_op *combine, size_t i) {
    return s->active[combine->args[combine->n_args / 2 + i]] || s->active[combine->args[i]];
}

static void find_states(sweep *s, const ir_func *k, ir_id combine) {
    const ir_op *op = ir_at(k, combine);
    grad_states *made = base_arena_alloc(s->scratch, sizeof *made);
    *made = grad_states_of(s->b.f, combine, s->scratch);
    s->states[combine] = made;
    s->state_ct[combine] = base_arena_new_array(s->scratch, ir_id, made->n);
    for (size_t i = 0; i < made->n; i++)
        s->active[combine] |= enters_active(s, op, i) && ir_dtype_has_gradient(ir_at(k, op->args[i])->type.dtype);
}

/* Does value i of the state depend on what is lifted to it or, when it is mixed, to others? */
static bool reaches_state(const sweep *s, const ir_func *k, ir_id combine, size_t i) {
    const grad_states *t = s->states[combine];
    for (size_t j = 0; j < t->n; j++)
        if (enters_active(s, ir_at(k, combine), j) && (i == j || (t->way[i] == GRAD_MIXED && t->way[j] == GRAD_MIXED)))
            return true;
    return false;
}

static void find_active(sweep *s, const ir_func *k, const bool *want) {
    for (size_t i = 0; i < k->body.n; i++) {
        ir_id id = k->body.ops[i];
        const ir_op *op = ir_at(k, id);
        if (op->code == IR_FIELD)
            s->active[id] = want[ir_int(op, IR_ATTR_FIELD, 0)] && ir_dtype_has_gradient(op->type.dtype);
        if (op->code == IR_COMBINE)
            find_states(s, k, id);
        if (op->code == IR_GET)
            s->active[id] = ir_dtype_has_gradient(op->type.dtype) &&
                            reaches_state(s, k, op->args[0], (size_t)ir_int(op, IR_ATTR_INDEX, 0));
        for (uint32_t a = 0; op->code != IR_GET && op->code != IR_COMBINE && a < op->n_args; a++)
            s->active[id] = s->active[id] || (s->active[op->args[a]] && ir_grad_flows(k, op, a));
    }
}

/* ---- parameters of the copy ---- */
static uint32_t add_param(sweep *s, const char *name, ir_role role, ir_type type) {
    ir_func *f = s->b.f;
    type.space = IR_UNIFORM;
    ir_param p = {.name = ir_unused_name(s->b.m, f, name), .role = role, .type = type, .span = s->b.span};
    base_push(s->b.m->arena, f->params, f->n_params, f->cap_params, p);
    return (uint32_t)f->n_params - 1;
}

static ir_id read_param(sweep *s, uint32_t field, const char *at, ir_space space) {
    ir_type t = s->b.f->params[field].type;
    t.space = space;
    ir_id id = ir_emit(&s->b, IR_FIELD, t, NULL, 0);
    ir_set_int(s->b.m, ir_at(s->b.f, id), IR_ATTR_FIELD, field);
    ir_set_word(s->b.m, ir_at(s->b.f, id), IR_ATTR_AT, at);
    return id;
}

static void seed(sweep *s, grad_adjoint *a, const bool *given) {
    const ir_func *k = a->k;
    const ir_op *ret = ir_at(k, k->body.ops[k->body.n - 1]);
    for (size_t i = 0; i < k->n_results; i++) {
        const ir_param *r = &k->results[i];
        bool edge = r->type.space == IR_EDGE, alone = k->n_results == 1, total = r->type.space == IR_UNIFORM;
        ir_id v = ret->args[i];
        a->cotangent[i] = UINT32_MAX;
        if (!given[i] || !s->active[v])
            continue;
        const char *name = alone ? "cotangent" : base_arena_printf(s->b.m->arena, "cotangent_%s", r->name);
        ir_type type = r->type;
        type.dtype = ir_dtype_cotangent(type.dtype);
        a->cotangent[i] = add_param(s, name, total ? IR_PARAM_FIELD : edge ? IR_EDGE_FIELD : IR_DST, type);
        ir_id ct = total ? read_param(s, a->cotangent[i], "param", IR_UNIFORM)
                         : read_param(s, a->cotangent[i], edge ? "edge" : "dst", edge ? IR_EDGE : IR_ROW);
        ir_op by = {.code = IR_FIELD, .type = r->type};
        take(s, v, &by, ct);
    }
}

/* ---- the sweep ---- */
static ir_id sum_over_edges(sweep *s, ir_id v) {
    ir_type t = ir_at(s->b.f, v)->type;
    bool edge = t.space == IR_EDGE;
    t.space = IR_ROW;
    if (edge) {
        ir_id id = ir_emit1(&s->b, IR_REDUCE, t, v);
        ir_set_word(s->b.m, ir_at(s->b.f, id), IR_ATTR_KIND, "sum");
        return id;
    }
    ir_type i64 = {.dtype = IR_I64, .space = IR_ROW};
    ir_id degree = ir_emit(&s->b, IR_DEGREE, i64, NULL, 0);
    /* nothing from a row without edges, be it NaN */
    ir_id n = ir_emit_cast(&s->b, t.dtype, degree), zero = grad_number(&s->b, v, 0);
    return grad_select(&s->b, grad_op2(&s->b, IR_EQ, n, zero), zero, grad_op2(&s->b, IR_MUL, v, n));
}

/* The cotangent of v, in its own space; 0: none. */
static ir_id cotangent_of(sweep *s, ir_id v) {
    ir_id ct = s->row[v];
    if (!s->edge[v])
        return ct;
    if (ir_at(s->b.f, v)->type.space == IR_EDGE)
        return s->edge[v];
    add_to(s, &ct, sum_over_edges(s, s->edge[v]));
    return ct;
}

static void reach_field(sweep *s, grad_adjoint *a, const ir_op *op, ir_id ct) {
    grad_field *field = &a->field[ir_int(op, IR_ATTR_FIELD, 0)];
    const char *at = ir_word(op, IR_ATTR_AT);
    ir_id *place = !strcmp(at, "src") ? &field->src : !strcmp(at, "edge") ? &field->edge : &field->row;
    add_to(s, place, ct);
}

static void sweep_back(sweep *s, grad_adjoint *a) {
    grad_sink sink = {.b = &s->b, .user = s, .wanted = wanted, .add = take, .by_winners = by_winners};
    for (size_t i = a->k->body.n; i-- > 0;) {
        ir_id id = a->k->body.ops[i];
        ir_id ct = s->active[id] ? cotangent_of(s, id) : 0;
        const ir_op *op = ir_at(s->b.f, id);
        if (op->code == IR_COMBINE && s->active[id])
            grad_states_rule(&sink, s->states[id], s->state_ct[id]);
        if (!ct)
            continue;
        if (op->code == IR_FIELD)
            reach_field(s, a, op, ct);
        else if (op->code == IR_REDUCE)
            grad_reduce_rule(&sink, id, ct);
        else if (op->code == IR_GET)
            add_to(s, &s->state_ct[op->args[0]][ir_int(op, IR_ATTR_INDEX, 0)], ct);
        else if (op->code == IR_TOTAL) /* a gradient of a param, element by element */
            take(s, op->args[0], op, ct);
        else
            grad_rule(&sink, id, ct);
    }
}

static bool is_of_scan(const ir_func *k, const ir_op *v) {
    return v->code == IR_GET && ir_is_scan(ir_at(k, v->args[0]));
}

/* Results that the caller has already computed need not be computed again. */
static void declare_known(sweep *s, grad_adjoint *a) {
    const ir_func *k = a->k;
    const ir_op *ret = ir_at(k, k->body.ops[k->body.n - 1]);
    for (size_t i = 0; i < k->n_results; i++) {
        const ir_param *r = &k->results[i];
        const ir_op *v = ir_at(k, ret->args[i]);
        bool row = v->type.space == IR_ROW && v->code != IR_FIELD && v->code != IR_DEGREE, scan = is_of_scan(k, v);
        a->known[i] = UINT32_MAX;
        if ((row || scan) && v->type.space == r->type.space && ir_shape_equal(&v->type, &r->type))
            a->known[i] = add_param(s, base_arena_printf(s->b.m->arena, "result_%s", r->name),
                                    scan ? IR_EDGE_FIELD : IR_DST, r->type);
    }
}

grad_adjoint grad_adjoint_of(ir_module *m, const ir_func *k, const bool *want, const bool *given, bool winners,
                             base_arena *scratch) {
    ir_func *f = ir_func_clone(m, k, base_arena_printf(scratch, "%s.adjoint", k->name));
    grad_adjoint a = {.k = k,
                      .f = f,
                      .field = base_arena_new_array(scratch, grad_field, k->n_params + 1),
                      .cotangent = base_arena_new_array(scratch, uint32_t, k->n_results + 1),
                      .known = base_arena_new_array(scratch, uint32_t, k->n_results + 1)};
    sweep s = {.b = {.m = m, .f = f, .r = &f->body, .span = k->span},
               .row = base_arena_new_array(scratch, ir_id, k->n_ops),
               .edge = base_arena_new_array(scratch, ir_id, k->n_ops),
               .active = base_arena_new_array(scratch, bool, k->n_ops),
               .k = k,
               .winners = winners,
               .n = k->n_ops,
               .scratch = scratch,
               .states = base_arena_new_array(scratch, grad_states *, k->n_ops),
               .state_ct = base_arena_new_array(scratch, ir_id *, k->n_ops)};
    ir_func_remove(m, f);
    ir_erase(&f->body, f->body.n - 1); /* ret */
    find_active(&s, k, want);
    seed(&s, &a, given);
    sweep_back(&s, &a);
    declare_known(&s, &a);
    return a;
}
