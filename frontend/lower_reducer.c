/* Reducers of the user, at each use: the messages are lifted to values of a state per edge, `combine` becomes the region
 * of one operation, and `finalize` works on the rows.
 *
 * A reducer sees its parameters, its states and its dimensions, and no name of its caller.  Dimensions come from the
 * shapes of the messages. */
#include "frontend/fe.h"

#include <string.h>

typedef struct use {
    fe_lower *l;
    fe_decl *d;
    const fe_reducer_body *r;
    ir_type *types; /* of the states, in row space */
    ir_id *start, *lifted, *a, *b, *combined, *result;
} use;

static use use_of(fe_lower *l, fe_decl *d) {
    base_arena *arena = l->c->arena;
    size_t n = d->reducer->n_states + 1;
    use u = {.l = l, .d = d, .r = d->reducer, .types = base_arena_new_array(arena, ir_type, n)};
    ir_id **lists[] = {&u.start, &u.lifted, &u.a, &u.b, &u.combined, &u.result};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        *lists[i] = base_arena_new_array(arena, ir_id, n);
    return u;
}

/* ---- values of one type ------------------------------------------------------------------------------------------ */
/* The value of e, of this dtype and stretched to this shape; `what` it is for messages. */
static ir_id shaped(fe_lower *l, const fe_expr *e, const ir_type *want, const char *what) {
    ir_id id = fe_settle(l, e->span, want->dtype, fe_lower_value(l, e, want->dtype));
    if (!id)
        return 0;
    ir_type have = *fe_type_at(l, id), to = *want;
    if (have.dtype != want->dtype) {
        fe_label(l->c,
                 fe_report(l->c, FE_E0203, e->span, "%s is %s, this is %s", what, ir_dtype_text(want->dtype),
                           ir_dtype_text(have.dtype)),
                 "cast it: %s(...)", ir_dtype_text(want->dtype));
        return 0;
    }
    to.space = have.space;
    return fe_widen(l, e->span, id, &to);
}

static const char *state_text(const use *u, size_t i) {
    return base_arena_printf(u->l->c->arena, "state '%s'", u->r->states[i].name->text);
}

static bool count_fits(const use *u, const fe_values *v, const char *word) {
    if (v->n == u->r->n_states)
        return true;
    fe_label(u->l->c,
             fe_report(u->l->c, FE_E0223, v->span, "%s gives %zu value%s for %zu state%s", word, v->n,
                       v->n == 1 ? "" : "s", u->r->n_states, u->r->n_states == 1 ? "" : "s"),
             "one for each state, in their order");
    return false;
}

/* ---- the clauses ------------------------------------------------------------------------------------------------- */
static bool lower_states(use *u) {
    fe_lower *l = u->l;
    bool ok = true;
    for (size_t i = 0; i < u->r->n_states; i++) {
        const fe_state *s = &u->r->states[i];
        for (size_t k = 0; k < i; k++)
            if (u->r->states[k].name == s->name) {
                fe_note_at(l->c, fe_report(l->c, FE_E0205, s->span, "'%s' is defined twice", s->name->text),
                           u->r->states[k].span, "the first is here");
                ok = false;
            }
        if (!fe_type_of(l, &s->type, &u->types[i]))
            return false;
        u->start[i] = shaped(l, s->start, &u->types[i], state_text(u, i));
        if (u->start[i] && fe_type_at(l, u->start[i])->space != IR_UNIFORM) {
            fe_label(l->c, fe_report(l->c, FE_E0224, s->start->span, "the start of a state is the same everywhere"),
                     "use numbers and dimensions");
            u->start[i] = 0;
        }
        ok &= u->start[i] != 0;
    }
    return ok;
}

static bool lower_lift(use *u, const ir_id *messages) {
    fe_lower *l = u->l;
    size_t mark = l->n_binds;
    bool ok = count_fits(u, &u->r->lift, "lift");
    for (size_t i = 0; i < u->d->n_params; i++)
        fe_bind(l, FE_BIND_VALUE, u->d->params[i].name, u->d->params[i].span, "parameter")->id = messages[i];
    for (size_t i = 0; ok && i < u->r->n_states; i++) {
        u->lifted[i] = shaped(l, u->r->lift.items[i], &u->types[i], state_text(u, i));
        ok = u->lifted[i] != 0;
    }
    fe_close_block(l, mark);
    return ok;
}

static ir_id region_argument(use *u, size_t i, size_t index) {
    fe_lower *l = u->l;
    ir_type type = u->types[i];
    type.space = IR_EDGE;
    ir_id id = fe_put(l, u->r->states[i].span, IR_ARG, type, NULL, 0);
    if (!id)
        return 0;
    ir_set_int(l->c->module, ir_at(l->b.f, id), IR_ATTR_INDEX, (int64_t)index);
    if (index == i)
        ir_set_word(l->c->module, ir_at(l->b.f, id), IR_ATTR_NAME, u->r->states[i].name->text);
    return id;
}

/* An element of a state may depend on the same element of the states before only. */
static bool is_elementwise(use *u, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(u->l->b.f, r->ops[i]);
        if (ir_is_combining(op->code))
            continue;
        fe_label(u->l->c, fe_report(u->l->c, FE_E0225, op->span, "combine works element by element"),
                 "lift or finalize may do this, combine may not");
        return false;
    }
    return true;
}

/* Sixteen partial states change the order of the edges, they pay when combining two of them is cheap, and only scalars
 * have them. */
static bool wants_lanes(const use *u, const ir_region *r) {
    if (!u->r->commutative)
        return false;
    for (size_t i = 0; i < u->r->n_states; i++)
        for (uint32_t k = 0; k < u->types[i].rank; k++)
            if (u->types[i].dim[k] != 1)
                return false;
    for (size_t i = 0; i < r->n; i++) {
        ir_opcode code = ir_at(u->l->b.f, r->ops[i])->code;
        if (code == IR_POW || code == IR_ATAN2 || code == IR_REM || (code >= IR_EXP && code <= IR_LOG1P) ||
            (code >= IR_SIN && code <= IR_ERF))
            return false;
    }
    return true;
}

static fe_binding *bind_side(use *u, const char *name, ir_id *values) {
    fe_binding *b = fe_bind(u->l, FE_BIND_STATE, fe_intern(u->l->c, name, 1), u->r->combine.span, "(state");
    b->states = u->r;
    b->values = values;
    return b;
}

static bool lower_combine(use *u) {
    fe_lower *l = u->l;
    size_t n = u->r->n_states, mark = l->n_binds;
    if (!count_fits(u, &u->r->combine, "combine"))
        return false;
    for (size_t i = 0; i < n; i++)
        u->a[i] = region_argument(u, i, i);
    for (size_t i = 0; i < n; i++)
        u->b[i] = region_argument(u, i, n + i);
    bind_side(u, "a", u->a);
    bind_side(u, "b", u->b);
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        u->combined[i] = shaped(l, u->r->combine.items[i], &u->types[i], state_text(u, i));
        ok &= u->combined[i] != 0;
    }
    fe_close_block(l, mark);
    return ok && is_elementwise(u, l->b.r) &&
           fe_put(l, u->r->combine.span, IR_YIELD, (ir_type){.dtype = IR_NONE}, u->combined, n) != 0;
}

static bool lower_reduction(use *u, base_span span) {
    fe_lower *l = u->l;
    size_t n = u->r->n_states;
    ir_id *args = base_arena_new_array(l->c->arena, ir_id, 2 * n + 1);
    base_copy(args, u->start, n * sizeof *args);
    base_copy(args + n, u->lifted, n * sizeof *args);
    ir_id id = fe_put(l, span, IR_COMBINE, ir_scalar(IR_TUPLE), args, 2 * n);
    if (!id)
        return false;
    ir_region *outer = l->b.r;
    ir_at(l->b.f, id)->region = l->b.r = ir_region_new(l->c->module);
    bool ok = lower_combine(u);
    if (ok && wants_lanes(u, l->b.r))
        ir_set_int(l->c->module, ir_at(l->b.f, id), IR_ATTR_LANES, IR_N_PARTIALS);
    l->b.r = outer;
    for (size_t i = 0; ok && i < n; i++) {
        ir_type type = u->types[i];
        type.space = IR_ROW;
        u->result[i] = fe_put(l, span, IR_GET, type, &id, 1);
        if (u->result[i])
            ir_set_int(l->c->module, ir_at(l->b.f, u->result[i]), IR_ATTR_INDEX, (int64_t)i);
        ok = u->result[i] != 0;
    }
    return ok;
}

static ir_id lower_finalize(use *u) {
    fe_lower *l = u->l;
    size_t mark = l->n_binds;
    ir_type want;
    for (size_t i = 0; i < u->r->n_states; i++)
        fe_bind(l, FE_BIND_VALUE, u->r->states[i].name, u->r->states[i].span, "(state")->id = u->result[i];
    ir_id id = fe_type_of(l, &u->d->results[0].type, &want) ? shaped(l, u->r->finalize, &want, "the result") : 0;
    fe_close_block(l, mark);
    if (!id)
        return 0;
    want.space = IR_ROW;
    return fe_widen(l, u->r->finalize->span, id, &want);
}

/* ---- dimensions -------------------------------------------------------------------------------------------------- */
static bool has_symbol(const fe_decl *d, const fe_name *name) {
    for (size_t i = 0; i < d->n_syms; i++)
        if (d->syms[i].name == name)
            return true;
    return false;
}

static void bind_axis(fe_lower *l, const fe_decl *d, const fe_dim *dim, ir_dim actual) {
    if (dim->kind != FE_DIM_NAME || !has_symbol(d, dim->name))
        return;
    fe_binding *have = dim->name->local;
    if (have && have->frame == l->frame)
        return; /* compared with the whole shape later */
    fe_binding *b = fe_bind(l, FE_BIND_DIM, dim->name, dim->span, "(dimension");
    b->dim = actual;
    b->used = true;
}

static bool bind_dims(fe_lower *l, const fe_decl *d, base_span span, const ir_id *messages) {
    for (size_t i = 0; i < d->n_params; i++) {
        const ir_type *t = fe_type_at(l, messages[i]);
        const fe_type *formal = &d->params[i].type;
        for (size_t k = 0; t->rank == formal->n && k < formal->n; k++)
            bind_axis(l, d, &formal->dims[k], t->dim[k]);
    }
    for (size_t i = 0; i < d->n_syms; i++) {
        fe_binding *b = d->syms[i].name->local;
        if (b && b->frame == l->frame)
            continue;
        base_diag *e = fe_report(l->c, FE_E0204, span, "no message tells dimension '%s' of reducer '%s'",
                                 d->syms[i].name->text, d->name->text);
        fe_note_at(l->c, e, d->span, "%s", d->signature);
        return false;
    }
    return true;
}

static bool widen_messages(fe_lower *l, const fe_decl *d, base_span span, ir_id *messages) {
    for (size_t i = 0; i < d->n_params; i++) {
        ir_type want, have = *fe_type_at(l, messages[i]);
        if (!fe_type_of(l, &d->params[i].type, &want))
            return false;
        want.space = have.space;
        if (!fe_fits(l, &have, &want)) {
            base_diag *e = fe_report(l->c, FE_E0204, span, "message '%s' is %s, this is %s", d->params[i].name->text,
                                     fe_type_text(l, &want), fe_type_text(l, &have));
            fe_note_at(l->c, e, d->params[i].span, "'%s' is declared here", d->params[i].name->text);
            return false;
        }
        messages[i] = fe_widen(l, span, messages[i], &want);
    }
    return true;
}

/* ---- a use ------------------------------------------------------------------------------------------------------- */
/* Everything but the arguments: messages are values of the right dtypes. */
static ir_id apply(fe_lower *l, fe_decl *d, base_span span, ir_id *messages) {
    uint32_t frame = l->frame;
    size_t mark = l->n_binds;
    fe_decl *caller = l->decl;
    l->frame = ++l->n_frames;
    l->decl = d;
    use u = use_of(l, d);
    bool ok = bind_dims(l, d, span, messages) && widen_messages(l, d, span, messages) && lower_states(&u) &&
              lower_lift(&u, messages) && lower_reduction(&u, span);
    ir_id id = ok ? lower_finalize(&u) : 0;
    fe_close_block(l, mark);
    l->frame = frame;
    l->decl = caller;
    return id;
}

static bool messages_of(fe_lower *l, const fe_decl *d, const fe_expr **slots, ir_id *out) {
    bool ok = true;
    for (size_t i = 0; i < d->n_params; i++) {
        const fe_param *p = &d->params[i];
        ir_dtype t;
        if (!fe_dtype_of(l, &p->type, &t))
            return false;
        out[i] = fe_settle(l, slots[i]->span, t, fe_lower_value(l, slots[i], t));
        ok &= out[i] != 0;
        if (!out[i] || fe_type_at(l, out[i])->dtype == t)
            continue;
        fe_label(l->c,
                 fe_report(l->c, FE_E0203, slots[i]->span, "message '%s' is %s, this is %s", p->name->text,
                           ir_dtype_text(t), ir_dtype_text(fe_type_at(l, out[i])->dtype)),
                 "cast it: %s(...)", ir_dtype_text(t));
        ok = false;
    }
    return ok;
}

ir_id fe_lower_user_reduce(fe_lower *l, const fe_expr *e, fe_decl *d, const fe_expr **empty) {
    fe_context *c = l->c;
    const char *params = "";
    for (size_t i = 0; i < d->n_params; i++)
        params = base_arena_printf(c->arena, "%s%s ", params, d->params[i].name->text);
    params = base_arena_printf(c->arena, "%sempty?", params);
    const fe_expr **slots = base_arena_new_array(c->arena, const fe_expr *, d->n_params + e->n_args + 2);
    ir_id *messages = base_arena_new_array(c->arena, ir_id, d->n_params + 1);
    if (d->bad || !fe_match_args(l, e, params, slots) || !messages_of(l, d, slots, messages))
        return 0;
    *empty = slots[d->n_params];
    size_t before = c->diags->n;
    ir_id id = apply(l, d, e->span, messages);
    for (size_t i = before; i < c->diags->n; i++)
        if (!c->diags->items[i]->n_notes)
            fe_note_at(c, c->diags->items[i], e->span, "in this use of '%s'", d->name->text);
    return id;
}

/* ---- the check of a definition on its own ------------------------------------------------------------------------ */
static bool check_head(fe_lower *l, const fe_decl *d) {
    if (d->n_results != 1 || d->results[0].name || d->results[0].edge) {
        fe_label(l->c, fe_report(l->c, FE_E0223, d->span, "a reducer has one result, per row"),
                 "write -> f32 or -> f32[F]");
        return false;
    }
    if (!d->n_params) {
        fe_label(l->c, fe_report(l->c, FE_E0223, d->span, "a reducer takes a message"), "write (m: f32)");
        return false;
    }
    for (size_t i = 0; i < d->n_params; i++)
        for (size_t k = 0; k < i; k++)
            if (d->params[k].name == d->params[i].name) {
                fe_note_at(
                    l->c,
                    fe_report(l->c, FE_E0205, d->params[i].span, "'%s' is defined twice", d->params[i].name->text),
                    d->params[k].span, "the first is here");
                return false;
            }
    return true;
}

void fe_check_reducer(fe_context *c, fe_decl *d) {
    ir_module *scratch = ir_module_new(c->arena, "", NULL), *kept = c->module;
    fe_lower l = {.c = c, .decl = d, .frame = 1, .n_frames = 1, .body = ++c->n_bodies};
    l.b = (ir_builder){.m = scratch, .f = ir_func_new(scratch, d->name->text, IR_LEVEL_KERNEL)};
    l.b.r = &l.b.f->body;
    if (d->bad || !check_head(&l, d)) {
        d->bad = true;
        return;
    }
    size_t before = c->diags->n_errors;
    c->module = scratch;
    ir_id *messages = base_arena_new_array(c->arena, ir_id, d->n_params + 1);
    for (size_t i = 0; i < d->n_syms; i++) {
        fe_binding *b = fe_bind(&l, FE_BIND_DIM, d->syms[i].name, d->syms[i].span, "dimension");
        b->dim = ir_dim_sym(ir_sym(scratch, l.b.f, d->syms[i].name->text));
    }
    bool ok = true;
    for (size_t i = 0; i < d->n_params; i++) {
        ir_type type;
        ok &= fe_type_of(&l, &d->params[i].type, &type);
        type.space = IR_EDGE;
        messages[i] = ok ? fe_put(&l, d->params[i].span, IR_FIELD, type, NULL, 0) : 0;
    }
    fe_close_block(&l, 0);
    l.frame = 0;
    ok = ok && apply(&l, d, d->span, messages) != 0;
    c->module = kept;
    d->bad = !ok || c->diags->n_errors > before;
}
