/* A kernel called from a program: neighbour_sum(g, x = ...).
 *
 * The kernel's dimensions are found from the arguments that have the axis of their role and every feature axis; the
 * other arguments (a scalar where an array is expected) are then repeated to the full shape. */
#include "frontend/fe.h"

#include <string.h>

typedef struct call {
    fe_lower *l;
    const fe_expr *e;
    fe_decl *decl;
    const ir_func *callee;
    size_t graph_param; /* of the program */
    uint32_t graph;     /* from 0 */
    ir_id *args;        /* one per field */
    const fe_expr **given;
    ir_dim *dims; /* per symbol of the callee */
    bool *bound;
    ir_dim *sums; /* per symbol that is computed from others: what an argument shows of it, */
    bool *summed; /* and whether one does */
    const char *said; /* {dims} of the call; NULL: the arguments say it all */
} call;

static bool find_graph(call *k) {
    fe_lower *l = k->l;
    if (k->e->n_args && !k->e->args[0].name && k->e->args[0].value->kind == FE_EXPR_NAME) {
        fe_binding *b = fe_lookup(l, k->e->args[0].value->name);
        if (b && b->kind == FE_BIND_GRAPH) {
            k->graph_param = b->index;
            k->graph = b->id;
            return true;
        }
    }
    base_diag *d = fe_report(l->c, FE_E0301, k->e->n_args ? k->e->args[0].value->span : k->e->span,
                             "a kernel is called with a graph first");
    const char *graph = "g";
    for (size_t i = 0; i < l->n_binds; i++)
        if (l->binds[i]->kind == FE_BIND_GRAPH)
            graph = l->binds[i]->name->text;
    fe_label(l->c, d, "write %s(%s, ...)", k->callee->name, graph);
    return false;
}

static size_t field_named(const call *k, const char *name) {
    for (size_t i = 0; i < k->callee->n_params; i++)
        if (strcmp(k->callee->params[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* "gcn(g, x = ..., w = ...)" */
static const char *usage(const call *k) {
    base_arena *a = k->l->c->arena;
    const char *text = base_arena_printf(a, "%s(%s", k->callee->name, k->e->args[0].value->name->text);
    for (size_t i = 0; i < k->callee->n_params; i++)
        text = base_arena_printf(a, "%s, %s = ...", text, k->callee->params[i].name);
    return base_arena_printf(a, "%s)", text);
}

static void unknown_field(call *k, const fe_arg *a) {
    fe_nearest near = {.wanted = a->name->text};
    for (size_t i = 0; i < k->callee->n_params; i++)
        fe_nearest_try(&near, k->callee->params[i].name);
    base_diag *d =
        fe_report(k->l->c, FE_E0302, a->name_span, "kernel '%s' has no field '%s'", k->callee->name, a->name->text);
    if (fe_nearest_get(&near))
        fe_label(k->l->c, d, "did you mean '%s'?", fe_nearest_get(&near));
    else
        fe_label(k->l->c, d, "it is called by %s", usage(k));
}

static bool match_fields(call *k) {
    fe_context *c = k->l->c;
    bool ok = true, by_position = false;
    for (size_t i = 1; i < k->e->n_args; i++) {
        const fe_arg *a = &k->e->args[i];
        size_t at = a->name ? field_named(k, a->name->text) : SIZE_MAX;
        if (a->name && at != SIZE_MAX && !k->given[at]) {
            k->given[at] = a->value;
            continue;
        }
        ok = false;
        if (!a->name && !by_position)
            fe_label(c, fe_report(c, FE_E0302, a->value->span, "fields are passed by name"), "write %s", usage(k));
        if (!a->name)
            by_position = true;
        else if (at == SIZE_MAX)
            unknown_field(k, a);
        else
            fe_report(c, FE_E0302, a->name_span, "field '%s' is given twice", a->name->text);
    }
    const char *missing = "";
    for (size_t i = 0; i < k->callee->n_params; i++)
        if (!k->given[i])
            missing = base_arena_printf(c->arena, "%s%s%s %s", missing, *missing ? ", " : "",
                                        ir_role_text(k->callee->params[i].role), k->callee->params[i].name);
    if (ok && *missing)
        fe_label(c, fe_report(c, FE_E0302, k->e->span, "kernel '%s' needs more fields", k->callee->name), "missing: %s",
                 missing);
    return ok && !*missing;
}

/* The axis of the role: number of the graph's dimension, or -1. */
static int axis_of(ir_role role) {
    return role == IR_SRC ? 1 : role == IR_DST || role == IR_NODE ? 0 : role == IR_EDGE_FIELD ? 2 : -1;
}

static ir_dim role_dim(const call *k, int axis) { return fe_graph_dim(k->l, k->graph, (uint32_t)axis); }

/* "f32[g.src, F]" as the field wants it, for messages */
static const char *wanted_text(call *k, const ir_param *p) {
    fe_lower *l = k->l;
    int axis = axis_of(p->role);
    const char *s = ir_dtype_text(p->type.dtype);
    uint32_t n = p->type.rank + (axis >= 0);
    for (uint32_t i = 0; i < n; i++) {
        const char *dim = axis >= 0 && i == 0 ? fe_dim_text(l, role_dim(k, axis)) : NULL;
        ir_dim d = dim ? 0 : p->type.dim[i - (axis >= 0)];
        if (!dim && ir_dim_is_sym(d))
            dim = k->callee->syms[ir_dim_sym_index(d)];
        else if (!dim)
            dim = base_arena_printf(l->c->arena, "%lld", (long long)d);
        s = base_arena_printf(l->c->arena, "%s%s%s%s", s, i ? ", " : "[", dim, i + 1 == n ? "]" : "");
    }
    return s;
}

static void note_dims(call *k, base_diag *d) {
    for (uint32_t s = 0; s < k->callee->n_syms; s++)
        if (k->bound[s])
            fe_note(k->l->c, d, "%s is %s in this call", k->callee->syms[s], fe_dim_text(k->l, k->dims[s]));
}

static void misfit(call *k, size_t i) {
    fe_lower *l = k->l;
    const ir_param *p = &k->callee->params[i];
    if (l->restart)
        return;
    base_diag *d = fe_report(l->c, FE_E0303, k->given[i]->span, "field '%s' of kernel '%s' is %s, this is %s", p->name,
                             k->callee->name, wanted_text(k, p), fe_type_text(l, fe_type_at(l, k->args[i])));
    note_dims(k, d);
}

static bool bind_dim(call *k, ir_dim formal, ir_dim actual) {
    if (!ir_dim_is_sym(formal))
        return formal == actual;
    uint32_t s = ir_dim_sym_index(formal);
    if (ir_sym_is_computed(k->callee->syms[s])) { /* looked at when the others are known */
        k->sums[s] = actual;
        k->summed[s] = true;
        return true;
    }
    if (!k->bound[s]) {
        k->bound[s] = true;
        k->dims[s] = actual;
        return true;
    }
    return k->dims[s] == actual;
}

/* An argument with all axes of the field: binds the kernel's dimensions. */
static bool bind_full(call *k, size_t i) {
    const ir_param *p = &k->callee->params[i];
    const ir_type *t = fe_type_at(k->l, k->args[i]);
    int axis = axis_of(p->role);
    uint32_t lead = axis >= 0;
    if (t->rank != p->type.rank + lead)
        return true;
    bool ok = !lead || fe_same_dim(k->l, role_dim(k, axis), t->dim[0]);
    for (uint32_t d = 0; d < p->type.rank && ok; d++)
        ok = bind_dim(k, p->type.dim[d], t->dim[d + lead]);
    if (!ok)
        misfit(k, i);
    return ok;
}

static bool actual_dim(call *k, ir_dim formal, ir_dim *out) {
    *out = formal;
    if (!ir_dim_is_sym(formal))
        return true;
    uint32_t s = ir_dim_sym_index(formal);
    *out = k->dims[s];
    if (k->bound[s])
        return true;
    k->bound[s] = true; /* once */
    base_diag *diag = fe_report(k->l->c, FE_E0304, k->e->span, "dimension %s of kernel '%s' is not known in this call",
                                k->callee->syms[s], k->callee->name);
    fe_label(k->l->c, diag, "pass an array with this axis, for example fill(0.0, [...])");
    for (uint32_t i = 0; i < k->callee->n_syms; i++)
        if (k->summed[i])
            fe_note(k->l->c, diag, "%s is %s in this call, which does not say %s", k->callee->syms[i],
                    fe_dim_text(k->l, k->sums[i]), k->callee->syms[s]);
    return false;
}

/* A sum that an argument shows may say the one dimension in it that nothing else shows: {dims} of the call tells it. */
static void solve_dims(call *k, base_str *said) {
    fe_lower *l = k->l;
    for (bool found = true; found;) {
        found = false;
        for (uint32_t s = 0; s < k->callee->n_syms; s++) {
            uint32_t unknown;
            ir_sum sum;
            ir_dim d;
            if (!k->summed[s] || !ir_sum_solve(l->b.f, k->callee, s, k->dims, k->bound, k->sums[s], &unknown, &sum) ||
                !ir_sum_dim(l->c->module, l->b.f, &sum, &d))
                continue;
            k->dims[unknown] = d;
            k->bound[unknown] = found = true;
            base_str_addf(said, "%s%s=%s", said->len ? ";" : "", k->callee->syms[unknown], fe_dim_text(l, d));
        }
    }
}

/* Dimensions that are computed from others: in the program they are computed from what those are. */
static bool compute_dims(call *k) {
    fe_lower *l = k->l;
    for (uint32_t s = 0; s < k->callee->n_syms; s++) {
        const char *name = k->callee->syms[s];
        ir_sum sum;
        ir_dim base;
        if (!ir_sym_is_computed(name))
            continue;
        for (uint32_t i = 0; i < k->callee->n_syms; i++)
            if (!ir_sym_is_computed(k->callee->syms[i]) && !actual_dim(k, ir_dim_sym(i), &base))
                return false;
        if (!ir_sum_translate(l->b.f, k->callee, s, k->dims, &sum) ||
            !ir_sum_dim(l->c->module, l->b.f, &sum, &k->dims[s])) {
            base_diag *d = fe_report(l->c, FE_E0303, k->e->span, "dimension %s of kernel '%s' is no size in this call",
                                     name, k->callee->name);
            note_dims(k, d);
            return false;
        }
        k->bound[s] = true;
    }
    return true;
}

/* The type of a field or result of the callee in terms of the program. */
static bool actual_type(call *k, const ir_type *formal, int axis, ir_type *out) {
    *out = (ir_type){.dtype = formal->dtype};
    if (axis >= 0)
        out->dim[out->rank++] = role_dim(k, axis);
    for (uint32_t i = 0; i < formal->rank; i++)
        if (!actual_dim(k, formal->dim[i], &out->dim[out->rank++]))
            return false;
    return true;
}

/* Is a dimension that -D has fixed another one in an argument with all axes? */
static bool differs(const call *k) {
    for (size_t i = 0; i < k->callee->n_params; i++) {
        const ir_type *have = fe_type_at(k->l, k->args[i]), *want = &k->callee->params[i].type,
                      *open = &k->decl->unfixed->func->params[i].type;
        uint32_t lead = axis_of(k->callee->params[i].role) >= 0;
        for (uint32_t d = 0; d < want->rank && have->rank == want->rank + lead; d++)
            if (ir_dim_is_sym(open->dim[d]) && !ir_dim_is_sym(want->dim[d]) && have->dim[d + lead] != want->dim[d])
                return true;
    }
    return false;
}

/* -D is for the calls from outside that name the kernel; here the arguments say the sizes. */
static void take_open(call *k) {
    k->decl->unfixed_used = true;
    k->callee = k->decl->unfixed->func;
    k->dims = base_arena_new_array(k->l->c->arena, ir_dim, k->callee->n_syms + 1);
    k->bound = base_arena_new_array(k->l->c->arena, bool, k->callee->n_syms + 1);
    k->sums = base_arena_new_array(k->l->c->arena, ir_dim, k->callee->n_syms + 1);
    k->summed = base_arena_new_array(k->l->c->arena, bool, k->callee->n_syms + 1);
}

static bool lower_fields(call *k) {
    fe_lower *l = k->l;
    bool ok = true;
    for (size_t i = 0; i < k->callee->n_params; i++) {
        const ir_param *p = &k->callee->params[i];
        k->args[i] = fe_settle(l, k->given[i]->span, p->type.dtype, fe_lower_value(l, k->given[i], p->type.dtype));
        if (!k->args[i]) {
            ok = false;
            continue;
        }
        ir_dtype have = fe_type_at(l, k->args[i])->dtype;
        if (have != p->type.dtype) {
            ok = false;
            fe_label(l->c,
                     fe_report(l->c, FE_E0203, k->given[i]->span, "field '%s' is %s, this is %s", p->name,
                               ir_dtype_text(p->type.dtype), ir_dtype_text(have)),
                     "cast it: %s(...)", ir_dtype_text(p->type.dtype));
        }
    }
    if (ok && k->decl->unfixed && differs(k))
        take_open(k);
    for (size_t i = 0; i < k->callee->n_params && ok; i++)
        ok = bind_full(k, i);
    base_str said = {0};
    if (ok)
        solve_dims(k, &said);
    k->said = said.len ? base_arena_strndup(l->c->arena, base_str_text(&said), said.len) : NULL;
    base_str_fini(&said);
    ok = ok && compute_dims(k);
    for (size_t i = 0; i < k->callee->n_params && ok; i++) {
        const ir_param *p = &k->callee->params[i];
        ir_type type;
        if (!actual_type(k, &p->type, axis_of(p->role), &type))
            return false;
        ok = fe_fits(l, fe_type_at(l, k->args[i]), &type);
        if (!ok)
            misfit(k, i);
        else
            k->args[i] = fe_widen(l, k->given[i]->span, k->args[i], &type);
    }
    return ok;
}

static ir_id emit_call(call *k) {
    fe_lower *l = k->l;
    const ir_func *f = k->callee;
    ir_type type = {.dtype = IR_TUPLE};
    bool one = f->n_results == 1;
    if (one && !actual_type(k, &f->results[0].type, f->results[0].type.space == IR_EDGE ? 2 : 0, &type))
        return 0;
    if (f->needs_square)
        fe_same_dim(l, role_dim(k, 0), role_dim(k, 1));
    ir_id id = fe_put(l, k->e->span, IR_CALL, type, k->args, f->n_params);
    if (!id)
        return 0;
    ir_set_word(l->c->module, ir_at(l->b.f, id), IR_ATTR_CALLEE, f->name);
    ir_set_int(l->c->module, ir_at(l->b.f, id), IR_ATTR_GRAPH, (int64_t)k->graph_param);
    if (k->said)
        ir_set_word(l->c->module, ir_at(l->b.f, id), IR_ATTR_DIMS, k->said);
    for (size_t i = 0; i < f->n_results && !one; i++) { /* checks that every dimension is known */
        ir_id part = fe_put(l, k->e->span, IR_GET, ir_scalar(IR_F32), &id, 1);
        int axis = f->results[i].type.space == IR_EDGE ? 2 : 0;
        if (!part || !actual_type(k, &f->results[i].type, axis, &ir_at(l->b.f, part)->type))
            return 0;
        ir_set_int(l->c->module, ir_at(l->b.f, part), IR_ATTR_INDEX, (int64_t)i);
    }
    return id;
}

/* The kernel or program whose results the tuple holds. */
const fe_decl *fe_callee_of(fe_lower *l, ir_id tuple) {
    const char *name = ir_word(ir_at(l->b.f, tuple), IR_ATTR_CALLEE);
    return fe_intern(l->c, name, strlen(name))->decl;
}

size_t fe_n_members(fe_lower *l, ir_id tuple) {
    const ir_op *op = ir_at(l->b.f, tuple);
    return op->code == IR_GRAD ? op->n_args - 2 : fe_callee_of(l, tuple)->n_results;
}

/* The gets of a call and of a grad stand right behind it, in order; the results of a program are the operands. */
ir_id fe_call_result(fe_lower *l, ir_id tuple, size_t i) {
    if (ir_at(l->b.f, tuple)->code != IR_GRAD && fe_callee_of(l, tuple)->kind == FE_TOK_PROGRAM)
        return ir_at(l->b.f, tuple)->args[i];
    ir_id get = tuple + 1 + (ir_id)i;
    BASE_CHECK(get < l->b.f->n_ops && ir_at(l->b.f, get)->code == IR_GET);
    return get;
}

ir_id fe_lower_kernel_call(fe_lower *l, const fe_expr *e, fe_decl *decl) {
    fe_context *c = l->c;
    if (!l->program || l->in_fn) {
        fe_label(c, fe_report(c, FE_E0222, e->name_span, "kernel '%s' cannot be called here", decl->name->text),
                 "a kernel is called from the body of a program");
        return 0;
    }
    if (decl->bad || !decl->func)
        return 0;
    size_t n = decl->func->n_params + decl->func->n_syms + 1;
    call k = {.l = l, .e = e, .decl = decl, .callee = decl->func};
    k.args = base_arena_new_array(c->arena, ir_id, n);
    k.given = base_arena_new_array(c->arena, const fe_expr *, n);
    k.dims = base_arena_new_array(c->arena, ir_dim, n);
    k.bound = base_arena_new_array(c->arena, bool, n);
    k.sums = base_arena_new_array(c->arena, ir_dim, n);
    k.summed = base_arena_new_array(c->arena, bool, n);
    if (!find_graph(&k) || !match_fields(&k) || !lower_fields(&k))
        return 0;
    return emit_call(&k);
}
