/* export vjp f(x, w): the program f_vjp, which takes what f takes and a cotangent for each float result, and returns the
 * gradients with respect to x and w.  Its body is a call of f (or f's own body) and one `grad`.  f may be such a program
 * itself, whichever of the two exports comes first. */
#include "frontend/fe.h"

#include <string.h>

typedef struct vjp {
    fe_context *c;
    const fe_export *e;
    const fe_decl *d; /* of f */
    ir_func *f; /* the program that is made */
    ir_builder b;
} vjp;

static bool no_such_param(const vjp *v, const fe_symbol *s) {
    fe_nearest near = {.wanted = s->name->text};
    for (size_t i = 0; i < v->d->n_params; i++)
        fe_nearest_try(&near, v->d->params[i].name->text);
    base_diag *d = fe_report(v->c, FE_E0323, s->span, "'%s' has no parameter '%s'", v->d->name->text, s->name->text);
    if (fe_nearest_get(&near))
        fe_label(v->c, d, "did you mean '%s'?", fe_nearest_get(&near));
    return false;
}

static bool reaches_any(const vjp *v, size_t param) {
    for (size_t i = 0; i < v->d->func->n_results; i++)
        if (ir_grad_reaches_result(v->c->module, v->d->func, param, i))
            return true;
    return false;
}

static bool check_wrt(const vjp *v) {
    bool ok = true;
    for (size_t i = 0; i < v->e->n_wrt; i++) {
        const fe_symbol *s = &v->e->wrt[i];
        size_t p = fe_param_named(v->d, s->name);
        bool twice = false;
        for (size_t k = 0; k < i; k++)
            twice |= v->e->wrt[k].name == s->name;
        if (p == SIZE_MAX) {
            ok = no_such_param(v, s);
        } else if (twice) {
            fe_report(v->c, FE_E0323, s->span, "'%s' stands here twice", s->name->text);
            ok = false;
        } else if (!ir_dtype_has_gradient(v->d->func->params[p].type.dtype)) {
            fe_report(v->c, FE_E0323, s->span, "'%s' holds no floats", s->name->text);
            ok = false;
        } else if (!v->c->diags->n_errors && !reaches_any(v, p)) {
            fe_report(v->c, FE_E0322, s->span, "no result of '%s' depends on '%s'", v->d->name->text, s->name->text);
            ok = false;
        }
    }
    return ok;
}

/* ---- parameters and results ---- */
static ir_id add_param(vjp *v, const char *name, ir_type type) {
    ir_param p = {.name = name, .role = IR_PARAM_FIELD, .type = type, .span = v->b.span};
    base_push(v->c->arena, v->f->params, v->f->n_params, v->f->cap_params, p);
    ir_id id = ir_emit(&v->b, IR_PARAM, type, NULL, 0);
    ir_set_int(v->c->module, ir_at(v->f, id), IR_ATTR_FIELD, (int64_t)v->f->n_params - 1);
    return id;
}

static ir_id add_cotangent(vjp *v, const ir_param *result, ir_type type) {
    bool alone = v->d->n_results == 1 && !v->d->results[0].name;
    const char *want = alone ? "cotangent" : base_arena_printf(v->c->arena, "cotangent_%s", result->name);
    return add_param(v, ir_unused_name(v->c->module, v->f, want), type);
}

static void add_type(base_str *s, const ir_func *f, const ir_param *p) {
    base_str_addf(s, "%s: ", p->name);
    if (p->role == IR_GRAPH_FIELD)
        base_str_add(s, "graph");
    else
        ir_print_type(f, &p->type, s);
}

static const char *signature(const vjp *v) {
    base_str s = {0};
    base_str_addf(&s, "program %s(", v->f->name);
    for (size_t i = 0; i < v->f->n_params; i++) {
        base_str_add(&s, i ? ", " : "");
        add_type(&s, v->f, &v->f->params[i]);
    }
    base_str_add(&s, ") -> (");
    for (size_t i = 0; i < v->f->n_results; i++) {
        base_str_add(&s, i ? ", " : "");
        add_type(&s, v->f, &v->f->results[i]);
    }
    base_str_add(&s, ")");
    const char *text = base_arena_strdup(v->c->arena, base_str_text(&s));
    base_str_fini(&s);
    return text;
}

/* outputs and cotangents: n each; then the grad, and what it gives is returned. */
static void finish(vjp *v, const ir_id *outputs, size_t n, const ir_id *params) {
    size_t n_wrt = v->e->n_wrt;
    ir_id *args = base_arena_new_array(v->c->arena, ir_id, 2 * n + n_wrt);
    ir_id *out = base_arena_new_array(v->c->arena, ir_id, n_wrt);
    memcpy(args, outputs, sizeof *args * 2 * n);
    for (size_t i = 0; i < n_wrt; i++)
        args[2 * n + i] = params[fe_param_named(v->d, v->e->wrt[i].name)];
    ir_id grad = ir_emit(&v->b, IR_GRAD, ir_scalar(IR_TUPLE), args, 2 * n + n_wrt);
    ir_set_int(v->c->module, ir_at(v->f, grad), IR_ATTR_OUTPUTS, (int64_t)n);
    v->f->n_results = 0;
    v->f->results = NULL;
    v->f->cap_results = 0;
    for (size_t i = 0; i < n_wrt; i++) {
        ir_type t = ir_at(v->f, args[2 * n + i])->type;
        out[i] = ir_emit1(&v->b, IR_GET, t, grad);
        ir_set_int(v->c->module, ir_at(v->f, out[i]), IR_ATTR_INDEX, (int64_t)i);
        ir_param r = {.name = v->e->wrt[i].name->text, .role = IR_OUT_ROW, .type = t, .span = v->e->wrt[i].span};
        base_push(v->c->arena, v->f->results, v->f->n_results, v->f->cap_results, r);
    }
    ir_emit(&v->b, IR_RET, (ir_type){.dtype = IR_NONE}, out, n_wrt);
    v->f->signature = signature(v);
}

/* What an export of the program itself asks for. */
static void declare(fe_decl *made, fe_context *c, ir_func *f) {
    made->func = f;
    made->of_export = true;
    made->n_params = f->n_params;
    made->params = base_arena_new_array(c->arena, fe_param, f->n_params + 1);
    made->n_results = f->n_results;
    made->results = base_arena_new_array(c->arena, fe_result, f->n_results + 1);
    for (size_t i = 0; i < f->n_params; i++) {
        const ir_param *p = &f->params[i];
        made->params[i] = (fe_param){.name = fe_intern(c, p->name, strlen(p->name)),
                                     .span = p->span,
                                     .role = FE_TOK_PARAM,
                                     .is_graph = p->role == IR_GRAPH_FIELD};
    }
    for (size_t i = 0; i < f->n_results; i++)
        made->results[i] = (fe_result){.name = fe_intern(c, f->results[i].name, strlen(f->results[i].name)),
                                       .span = f->results[i].span};
}

/* ---- of a kernel ---- */
static const char *graph_name(const vjp *v) {
    const ir_func *k = v->d->func;
    const char *name = ir_unused_name(v->c->module, k, "g");
    return name[1] ? ir_unused_name(v->c->module, k, "graph") : name;
}

/* A type of the kernel in the program: the axis of the role in front (by symbol 0, 1, 2 of the program; -1: none). */
static ir_type program_type(const vjp *v, const ir_type *t, int axis) {
    const ir_func *k = v->d->func;
    ir_type out = {.dtype = t->dtype};
    if (axis >= 0)
        out.dim[out.rank++] = ir_dim_sym((uint32_t)axis);
    for (uint32_t i = 0; i < t->rank; i++)
        out.dim[out.rank++] = ir_dim_is_sym(t->dim[i])
                                  ? ir_dim_sym(ir_sym(v->c->module, v->f, k->syms[ir_dim_sym_index(t->dim[i])]))
                                  : t->dim[i];
    return out;
}

static int axis_of(ir_role r) {
    return r == IR_SRC ? 1 : r == IR_DST || r == IR_NODE ? 0 : r == IR_EDGE_FIELD ? 2 : -1;
}

static void begin_kernel_program(vjp *v) {
    static const char *const words[] = {"dst", "src", "edge"};
    const ir_func *k = v->d->func;
    const char *graph = graph_name(v);
    v->f->needs_square = k->needs_square;
    for (int i = 0; i < 3; i++)
        ir_sym(v->c->module, v->f, base_arena_printf(v->c->arena, "%s.%s", graph, words[i]));
    for (size_t i = 0; i < k->n_syms; i++)
        if (k->syms[i][0] != '.')
            ir_sym(v->c->module, v->f, k->syms[i]);
    ir_param g = {.name = graph, .role = IR_GRAPH_FIELD, .type = {.dtype = IR_GRAPH}, .span = v->b.span};
    base_push(v->c->arena, v->f->params, v->f->n_params, v->f->cap_params, g);
}

static void kernel_vjp(vjp *v) {
    const ir_func *k = v->d->func;
    ir_module *m = v->c->module;
    ir_id *args = base_arena_new_array(v->c->arena, ir_id, k->n_params + 1);
    ir_id *outputs = base_arena_new_array(v->c->arena, ir_id, 2 * k->n_results + 1);
    size_t n = 0, at = 0;
    begin_kernel_program(v);
    for (size_t i = 0; i < k->n_params; i++)
        args[i] = add_param(v, k->params[i].name, program_type(v, &k->params[i].type, axis_of(k->params[i].role)));
    for (size_t i = 0; i < k->n_results; i++)
        n += ir_dtype_has_gradient(k->results[i].type.dtype);
    ir_id call = ir_emit(&v->b, IR_CALL, ir_scalar(IR_TUPLE), args, k->n_params);
    ir_set_word(m, ir_at(v->f, call), IR_ATTR_CALLEE, k->name);
    ir_set_int(m, ir_at(v->f, call), IR_ATTR_GRAPH, 0);
    for (size_t i = 0; i < k->n_results; i++) {
        ir_type t = program_type(v, &k->results[i].type, k->results[i].type.space == IR_EDGE ? 2 : 0);
        if (k->n_results == 1)
            ir_at(v->f, call)->type = t;
        if (!ir_dtype_has_gradient(t.dtype))
            continue;
        ir_id r = call;
        if (k->n_results > 1) {
            r = ir_emit1(&v->b, IR_GET, t, call);
            ir_set_int(m, ir_at(v->f, r), IR_ATTR_INDEX, (int64_t)i);
        }
        outputs[at] = r;
        outputs[n + at++] = add_cotangent(v, &k->results[i], t);
    }
    finish(v, outputs, n, args);
}

/* ---- of a program: its body once more ---- */
static void program_vjp(vjp *v) {
    ir_func *f = v->f;
    const ir_op *ret = ir_at(f, f->body.ops[f->body.n - 1]);
    size_t n = 0, n_results = f->n_results, n_params = f->n_params, at = 0;
    ir_id *params = base_arena_new_array(v->c->arena, ir_id, n_params + 1);
    ir_id *outputs = base_arena_new_array(v->c->arena, ir_id, 2 * n_results + 1);
    for (size_t i = 0; i < f->body.n; i++)
        if (ir_at(f, f->body.ops[i])->code == IR_PARAM)
            params[ir_int(ir_at(f, f->body.ops[i]), IR_ATTR_FIELD, 0)] = f->body.ops[i];
    for (size_t i = 0; i < n_results; i++)
        n += ir_dtype_has_gradient(f->results[i].type.dtype);
    ir_erase(&f->body, f->body.n - 1);
    for (size_t i = 0; i < n_results; i++) {
        if (!ir_dtype_has_gradient(f->results[i].type.dtype))
            continue;
        outputs[at] = ret->args[i];
        outputs[n + at++] = add_cotangent(v, &f->results[i], f->results[i].type);
    }
    finish(v, outputs, n, params);
}

static fe_decl *program_again(fe_context *c, const fe_decl *d, fe_name *name) {
    fe_decl *again = base_arena_alloc(c->arena, sizeof *again);
    size_t n = c->diags->n, n_gradients = c->n_gradients;
    *again = *d;
    again->name = name;
    if (d->of_export) {
        again->func = ir_func_clone(c->module, d->func, name->text);
        return again;
    }
    again->func = NULL;
    fe_lower_program(c, again);
    c->diags->n = n; /* its warnings were given before */
    c->n_gradients = n_gradients;
    return again;
}

static void lower_export(fe_context *c, const fe_export *e) {
    fe_decl *d = e->name->decl;
    const char *text = base_arena_printf(c->arena, "%s_vjp", e->name->text);
    fe_name *name = fe_intern(c, text, strlen(text));
    if (!d || (d->kind != FE_TOK_KERNEL && d->kind != FE_TOK_PROGRAM)) {
        fe_report(c, FE_E0323, e->name_span, "'%s' is no kernel and no program", e->name->text);
        return;
    }
    if (name->decl) {
        base_diag *x = fe_report(c, FE_E0205, e->name_span, "'%s' is defined twice", text);
        fe_note_at(c, x, name->decl->span, "the first is here");
        return;
    }
    vjp v = {.c = c, .e = e, .d = d};
    if (d->bad || !d->func || !check_wrt(&v) || c->diags->n_errors)
        return;
    fe_decl *made = d->kind == FE_TOK_PROGRAM ? program_again(c, d, name) : base_arena_alloc(c->arena, sizeof *made);
    made->span = e->name_span;
    made->name = name;
    made->kind = FE_TOK_PROGRAM;
    name->decl = made;
    v.f = d->kind == FE_TOK_PROGRAM ? made->func : ir_func_new(c->module, text, IR_LEVEL_PROGRAM);
    v.f->exported = true;
    v.f->span = e->name_span;
    v.b = (ir_builder){.m = c->module, .f = v.f, .r = &v.f->body, .span = e->name_span};
    if (d->kind == FE_TOK_PROGRAM)
        program_vjp(&v);
    else
        kernel_vjp(&v);
    declare(made, c, v.f);
}

/* One of k_vjp may stand before that of k, which makes it. */
void fe_lower_exports(fe_context *c) {
    bool *done = base_arena_new_array(c->arena, bool, c->n_exports + 1);
    for (bool waits = true, any = true; waits;) {
        waits = any; /* a round in which nothing was made: what is left gets its error */
        bool made = false;
        for (size_t i = 0; i < c->n_exports; i++) {
            if (done[i] || (any && !c->exports[i].name->decl))
                continue;
            lower_export(c, &c->exports[i]);
            done[i] = made = true;
        }
        any = made && any;
    }
}
