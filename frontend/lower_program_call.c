/* A program called from a program: solve(g, a = w, b = y).  Its body is lowered in the place of the call, in a frame of its
 * own whose graphs and dimensions are those of the arguments.
 *
 * The callee has been lowered on its own before, so what is wrong with it has been said; a call of a broken one is
 * silent.  Several results are a tuple that stands in no region: a `call` whose operands are the results. */
#include "frontend/fe.h"

#include <string.h>

#define MAX_NOTES 4 /* calls inside calls that are shown with an error */

typedef struct call {
    fe_lower *l;
    const fe_expr *e;
    fe_decl *callee;
    const fe_expr **given; /* by parameter */
    const fe_binding **graphs; /* by parameter: the caller's */
    bool by_position; /* was reported */
    ir_id *args;
} call;

/* ---- arguments to parameters ------------------------------------------------------------------------------------- */
static const fe_binding *graph_named(fe_lower *l, const fe_expr *e) {
    const fe_binding *b = e->kind == FE_EXPR_NAME ? fe_lookup(l, e->name) : NULL;
    return b && b->kind == FE_BIND_GRAPH ? b : NULL;
}

/* "solve(g, a = ..., b = ...)" */
static const char *usage(const call *k) {
    base_arena *a = k->l->c->arena;
    const char *text = base_arena_printf(a, "%s(", k->callee->name->text), *gap = "";
    for (int graphs = 1; graphs >= 0; graphs--)
        for (size_t i = 0; i < k->callee->n_params; i++) {
            const fe_param *p = &k->callee->params[i];
            if (p->is_graph != (graphs == 1))
                continue;
            text = base_arena_printf(a, "%s%s%s%s", text, gap, p->name->text, p->is_graph ? "" : " = ...");
            gap = ", ";
        }
    return base_arena_printf(a, "%s)", text);
}

static size_t next_graph(const call *k, size_t from) {
    while (from < k->callee->n_params && !k->callee->params[from].is_graph)
        from++;
    return from;
}

size_t fe_param_named(const fe_decl *d, const fe_name *name) {
    for (size_t i = 0; i < d->n_params; i++)
        if (d->params[i].name == name)
            return i;
    return SIZE_MAX;
}

static void unknown_param(call *k, const fe_arg *a) {
    fe_nearest near = {.wanted = a->name->text};
    for (size_t i = 0; i < k->callee->n_params; i++)
        fe_nearest_try(&near, k->callee->params[i].name->text);
    base_diag *d = fe_report(k->l->c, FE_E0313, a->name_span, "program '%s' has no parameter '%s'",
                             k->callee->name->text, a->name->text);
    if (fe_nearest_get(&near))
        fe_label(k->l->c, d, "did you mean '%s'?", fe_nearest_get(&near));
}

/* One argument; at: the parameter that it is for, or SIZE_MAX after a complaint. */
static size_t match_one(call *k, const fe_arg *a, size_t *graph) {
    fe_context *c = k->l->c;
    size_t at = a->name ? fe_param_named(k->callee, a->name) : *graph;
    if (a->name && at == SIZE_MAX) {
        unknown_param(k, a);
        return SIZE_MAX;
    }
    if (!a->name && at >= k->callee->n_params) {
        if (!k->by_position)
            fe_label(c, fe_report(c, FE_E0313, a->value->span, "parameters are passed by name"), "write %s", usage(k));
        k->by_position = true;
        return SIZE_MAX;
    }
    if (k->given[at]) {
        fe_report(c, FE_E0313, a->name_span, "parameter '%s' is given twice", a->name->text);
        return SIZE_MAX;
    }
    if (k->callee->params[at].is_graph && !(k->graphs[at] = graph_named(k->l, a->value))) {
        fe_label(c,
                 fe_report(c, FE_E0313, a->value->span, "parameter '%s' of program '%s' is a graph",
                           k->callee->params[at].name->text, k->callee->name->text),
                 "write %s", usage(k));
        return SIZE_MAX;
    }
    if (!a->name)
        *graph = next_graph(k, at + 1);
    return at;
}

static bool match(call *k) {
    fe_context *c = k->l->c;
    bool ok = true;
    size_t graph = next_graph(k, 0);
    for (size_t i = 0; i < k->e->n_args; i++) {
        size_t at = match_one(k, &k->e->args[i], &graph);
        if (at == SIZE_MAX)
            ok = false;
        else
            k->given[at] = k->e->args[i].value;
    }
    const char *missing = "";
    for (size_t i = 0; i < k->callee->n_params; i++)
        if (!k->given[i])
            missing =
                base_arena_printf(c->arena, "%s%s%s", missing, *missing ? ", " : "", k->callee->params[i].name->text);
    if (ok && *missing) {
        fe_label(c, fe_report(c, FE_E0313, k->e->span, "program '%s' also needs: %s", k->callee->name->text, missing),
                 "write %s", usage(k));
        ok = false;
    }
    return ok;
}

static bool lower_args(call *k) {
    fe_lower *l = k->l;
    bool ok = true;
    for (size_t i = 0; i < k->callee->n_params; i++) {
        const fe_param *p = &k->callee->params[i];
        ir_dtype t;
        if (p->is_graph)
            continue;
        k->args[i] =
            fe_dtype_of(l, &p->type, &t) ? fe_settle(l, k->given[i]->span, t, fe_lower_value(l, k->given[i], t)) : 0;
        ok &= k->args[i] != 0;
        if (!k->args[i] || fe_type_at(l, k->args[i])->dtype == t)
            continue;
        fe_label(l->c,
                 fe_report(l->c, FE_E0203, k->given[i]->span, "parameter '%s' is %s, this is %s", p->name->text,
                           ir_dtype_text(t), ir_dtype_text(fe_type_at(l, k->args[i])->dtype)),
                 "cast it: %s(...)", ir_dtype_text(t));
        ok = false;
    }
    return ok;
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */
static bool is_fixed(const fe_lower *l, const fe_name *name) {
    for (size_t i = 0; i < l->c->n_defines; i++)
        if (strcmp(l->c->defines[i].name, name->text) == 0)
            return true;
    return false;
}

/* A name met for the first time is the dimension of the argument. */
static void bind_dims(call *k, const fe_param *p, const ir_type *t) {
    fe_lower *l = k->l;
    for (size_t i = 0; i < p->type.n && p->type.n == t->rank; i++) {
        const fe_dim *d = &p->type.dims[i];
        if (d->kind != FE_DIM_NAME || (d->name->local && d->name->local->frame == l->frame))
            continue;
        fe_bind(l, FE_BIND_DIM, d->name, d->span, "(dimension")->dim = t->dim[i];
    }
}

/* A name that no argument shows is what -D says. */
static void bind_fixed_dims(call *k, const fe_param *p) {
    for (size_t i = 0; i < p->type.n; i++) {
        const fe_dim *d = &p->type.dims[i];
        bool bound = d->kind != FE_DIM_NAME || (d->name->local && d->name->local->frame == k->l->frame);
        if (!bound && is_fixed(k->l, d->name))
            fe_bind_dim(k->l, d->name, d->span);
    }
}

static bool dim_known(call *k, const fe_dim *d) {
    fe_lower *l = k->l;
    if (d->kind == FE_DIM_SUM)
        return dim_known(k, d->left) && dim_known(k, d->right);
    if (d->kind != FE_DIM_NAME || (d->name->local && d->name->local->frame == l->frame))
        return true;
    fe_label(l->c,
             fe_report(l->c, FE_E0304, k->e->span, "dimension %s of program '%s' is not known in this call",
                       d->name->text, k->callee->name->text),
             "pass an array with this axis, for example fill(0.0, [...])");
    return false;
}

static bool dims_known(call *k, const fe_param *p) {
    for (size_t i = 0; i < p->type.n; i++)
        if (!dim_known(k, &p->type.dims[i]))
            return false;
    return true;
}

static bool fit_arg(call *k, size_t i) {
    fe_lower *l = k->l;
    const fe_param *p = &k->callee->params[i];
    ir_type want;
    if (!dims_known(k, p) || !fe_type_of(l, &p->type, &want))
        return false;
    if (fe_fits(l, fe_type_at(l, k->args[i]), &want)) {
        k->args[i] = fe_widen(l, k->given[i]->span, k->args[i], &want);
        return k->args[i] != 0;
    }
    if (!l->restart)
        fe_report(l->c, FE_E0314, k->given[i]->span, "parameter '%s' of program '%s' is %s here, this is %s",
                  p->name->text, k->callee->name->text, fe_type_text(l, &want),
                  fe_type_text(l, fe_type_at(l, k->args[i])));
    return false;
}

static bool bind_params(call *k) {
    fe_lower *l = k->l;
    const fe_decl *d = k->callee;
    for (size_t i = 0; i < d->n_params; i++) {
        if (!d->params[i].is_graph)
            continue;
        fe_binding *b = fe_bind(l, FE_BIND_GRAPH, d->params[i].name, d->params[i].span, "(parameter");
        b->index = k->graphs[i]->index;
        b->id = k->graphs[i]->id;
    }
    for (size_t i = 0; i < d->n_params; i++)
        if (!d->params[i].is_graph)
            bind_dims(k, &d->params[i], fe_type_at(l, k->args[i]));
    for (size_t i = 0; i < d->n_params; i++)
        if (!d->params[i].is_graph)
            bind_fixed_dims(k, &d->params[i]);
    for (size_t i = 0; i < d->n_params; i++)
        if (!d->params[i].is_graph && !fit_arg(k, i))
            return false;
    for (size_t i = 0; i < d->n_params; i++)
        if (!d->params[i].is_graph)
            fe_bind(l, FE_BIND_VALUE, d->params[i].name, d->params[i].span, "(parameter")->id = k->args[i];
    return true;
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */
static bool result_types(call *k, ir_param *out) {
    for (size_t i = 0; i < k->callee->n_results; i++) {
        const fe_result *r = &k->callee->results[i];
        out[i] = (ir_param){.name = r->name ? r->name->text : "out", .span = r->span};
        if (!fe_type_of(k->l, &r->type, &out[i].type))
            return false;
    }
    return true;
}

static bool lower_body(call *k, ir_id *values) {
    fe_lower *l = k->l;
    fe_decl *decl = l->decl;
    fe_target target = l->target;
    size_t n = k->callee->n_results;
    ir_param *types = base_arena_new_array(l->c->arena, ir_param, n + 1);
    bool ok = bind_params(k) && result_types(k, types);
    if (ok) {
        l->decl = k->callee;
        l->target = (fe_target){.results = types, .n = n, .values = values};
        size_t before = l->c->diags->n;
        fe_lower_body(l, &k->callee->body);
        for (size_t i = before; i < l->c->diags->n; i++)
            if (l->c->diags->items[i]->n_notes < MAX_NOTES)
                fe_note_at(l->c, l->c->diags->items[i], k->e->span, "in this call of '%s'", k->callee->name->text);
    }
    l->decl = decl;
    l->target = target;
    for (size_t i = 0; i < n; i++)
        ok &= values[i] != 0;
    return ok;
}

static ir_id several(fe_lower *l, const fe_decl *callee, const ir_id *values) {
    ir_id id = ir_op_new(l->c->module, l->b.f, IR_CALL, ir_scalar(IR_TUPLE), values, callee->n_results);
    ir_set_word(l->c->module, ir_at(l->b.f, id), IR_ATTR_CALLEE, callee->name->text);
    return id;
}

ir_id fe_lower_program_call(fe_lower *l, const fe_expr *e, fe_decl *callee) {
    fe_context *c = l->c;
    if (!l->program || l->in_fn) {
        fe_label(c, fe_report(c, FE_E0222, e->name_span, "program '%s' cannot be called here", callee->name->text),
                 "a program is called from the body of a program");
        return 0;
    }
    if (callee->bad || !callee->func)
        return 0;
    size_t n = callee->n_params + callee->n_results + 1;
    call k = {.l = l, .e = e, .callee = callee};
    k.given = base_arena_new_array(c->arena, const fe_expr *, n);
    k.graphs = base_arena_new_array(c->arena, const fe_binding *, n);
    k.args = base_arena_new_array(c->arena, ir_id, n);
    ir_id *values = base_arena_new_array(c->arena, ir_id, n);
    if (!match(&k) || !lower_args(&k))
        return 0;
    uint32_t frame = l->frame;
    size_t mark = l->n_binds;
    l->frame = ++l->n_frames;
    bool ok = lower_body(&k, values);
    fe_hide_block(l, mark);
    l->frame = frame;
    return !ok ? 0 : callee->n_results == 1 ? values[0] : several(l, callee, values);
}
