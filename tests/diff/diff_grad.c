/* Gradients of random functions: f_vjp, made as `export vjp f(...)` would make it, and its slopes.
 *
 * A slope is the derivative along a random direction of sum(cotangent * f), by central differences with three steps and
 * Richardson's extrapolation; where the extrapolations disagree (a kink, a wild function) nothing is concluded. */
#include "diff_grad.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- f_vjp ---- */
typedef struct vjp {
    ir_module *m;
    const ir_func *of;
    ir_func *f;
    ir_builder b;
    ir_id params[DIFF_MAX_ARRAYS]; /* of f, by parameter of `of` */
} vjp;

static ir_id add_param(vjp *v, const char *name, ir_type t) {
    ir_param p = {.name = name, .role = IR_PARAM_FIELD, .type = t};
    base_push(v->m->arena, v->f->params, v->f->n_params, v->f->cap_params, p);
    ir_id id = ir_emit(&v->b, IR_PARAM, t, NULL, 0);
    ir_set_int(v->m, ir_at(v->f, id), IR_ATTR_FIELD, (int64_t)v->f->n_params - 1);
    return id;
}

static ir_type in_program(vjp *v, const ir_type *t, const char *lead) {
    ir_type out = {.dtype = t->dtype};
    if (lead) out.dim[out.rank++] = ir_dim_sym(ir_sym(v->m, v->f, lead));
    for (uint32_t i = 0; i < t->rank; i++)
        out.dim[out.rank++] = ir_dim_is_sym(t->dim[i])
                                  ? ir_dim_sym(ir_sym(v->m, v->f, v->of->syms[ir_dim_sym_index(t->dim[i])]))
                                  : t->dim[i];
    return out;
}

static const char *lead_of(ir_role role) {
    return role == IR_SRC ? "g.src" : role == IR_EDGE_FIELD ? "g.edge" : role == IR_PARAM_FIELD ? NULL : "g.dst";
}

/* The results of a call of the kernel. */
static void call_kernel(vjp *v, ir_id *results) {
    const ir_func *k = v->of;
    ir_param g = {.name = "g", .role = IR_GRAPH_FIELD, .type = {.dtype = IR_GRAPH}};
    ir_sym(v->m, v->f, "g.dst"), ir_sym(v->m, v->f, "g.src"), ir_sym(v->m, v->f, "g.edge");
    base_push(v->m->arena, v->f->params, v->f->n_params, v->f->cap_params, g);
    v->f->needs_square = k->needs_square;
    for (size_t i = 0; i < k->n_params; i++)
        v->params[i] = add_param(v, k->params[i].name, in_program(v, &k->params[i].type, lead_of(k->params[i].role)));
    ir_id call = ir_emit(&v->b, IR_CALL, ir_scalar(IR_TUPLE), v->params, k->n_params);
    ir_set_word(v->m, ir_at(v->f, call), IR_ATTR_CALLEE, k->name);
    ir_set_int(v->m, ir_at(v->f, call), IR_ATTR_GRAPH, 0);
    base_str why = {0};
    if (!ir_name_dims(v->m, v->f, ir_at(v->f, call), k, NULL, NULL, &why)) BASE_BUG("%s", base_str_text(&why));
    for (size_t i = 0; i < k->n_results; i++) {
        ir_type t = in_program(v, &k->results[i].type, k->results[i].type.space == IR_EDGE ? "g.edge" : "g.dst");
        results[i] = call;
        if (k->n_results == 1) {
            ir_at(v->f, call)->type = t;
            continue;
        }
        results[i] = ir_emit1(&v->b, IR_GET, t, call);
        ir_set_int(v->m, ir_at(v->f, results[i]), IR_ATTR_INDEX, (int64_t)i);
    }
}

static void take_program(vjp *v, ir_id *results) {
    ir_region *body = &v->f->body;
    const ir_op *ret = ir_at(v->f, body->ops[body->n - 1]);
    memcpy(results, ret->args, ret->n_args * sizeof *results);
    ir_erase(body, body->n - 1);
    for (size_t i = 0; i < body->n; i++)
        if (ir_at(v->f, body->ops[i])->code == IR_PARAM)
            v->params[ir_int(ir_at(v->f, body->ops[i]), IR_ATTR_FIELD, 0)] = body->ops[i];
    v->f->n_results = v->f->cap_results = 0;
    v->f->results = NULL;
}

/* Parameters with respect to which there is a gradient. */
static size_t find_wrt(const vjp *v, size_t *wrt) {
    size_t n = 0;
    for (size_t p = 0; p < v->of->n_params; p++) {
        bool reaches = false;
        for (size_t i = 0; i < v->of->n_results; i++)
            reaches |= ir_dtype_has_gradient(v->of->results[i].type.dtype) && ir_grad_reaches_result(v->m, v->of, p, i);
        if (reaches && ir_dtype_has_gradient(v->of->params[p].type.dtype)) wrt[n++] = p;
    }
    return n;
}

ir_func *diff_add_vjp(ir_module *m, const ir_func *of) {
    vjp v = {.m = m, .of = of};
    const char *name = base_arena_printf(m->arena, "%s_vjp", of->name);
    size_t wrt[DIFF_MAX_ARRAYS], n_wrt = find_wrt(&v, wrt), n = 0, at = 0;
    ir_id results[4], args[8 + DIFF_MAX_ARRAYS], got[DIFF_MAX_ARRAYS];
    for (size_t i = 0; i < of->n_results; i++) n += ir_dtype_has_gradient(of->results[i].type.dtype);
    if (!n_wrt || of->n_params + n + 1 > DIFF_MAX_ARRAYS) return NULL;
    bool kernel = of->level == IR_LEVEL_KERNEL;
    v.f = kernel ? ir_func_new(m, name, IR_LEVEL_PROGRAM) : ir_func_clone(m, of, name);
    v.f->exported = true;
    v.b = (ir_builder){.m = m, .f = v.f, .r = &v.f->body};
    if (kernel) call_kernel(&v, results);
    else take_program(&v, results);
    for (size_t i = 0; i < of->n_results; i++) {
        if (!ir_dtype_has_gradient(of->results[i].type.dtype)) continue;
        args[at] = results[i];
        args[n + at++] = add_param(&v, ir_unused_name(m, v.f, base_arena_printf(m->arena, "c%zu", i)), ir_at(v.f, results[i])->type);
    }
    size_t kept = 0;
    for (size_t i = 0; i < n_wrt; i++)
        if (v.params[wrt[i]]) wrt[kept++] = wrt[i]; /* one that is read in a region only stands behind no grad */
    n_wrt = kept;
    if (!n_wrt) {
        ir_func_remove(m, v.f);
        return NULL;
    }
    for (size_t i = 0; i < n_wrt; i++) args[2 * n + i] = v.params[wrt[i]];
    ir_id grad = ir_emit(&v.b, IR_GRAD, ir_scalar(IR_TUPLE), args, 2 * n + n_wrt);
    ir_set_int(m, ir_at(v.f, grad), IR_ATTR_OUTPUTS, (int64_t)n);
    for (size_t i = 0; i < n_wrt; i++) {
        ir_param r = {.name = of->params[wrt[i]].name, .role = IR_OUT_ROW, .type = ir_at(v.f, args[2 * n + i])->type};
        r.name = base_arena_printf(m->arena, "d_%s", r.name);
        got[i] = ir_emit1(&v.b, IR_GET, r.type, grad);
        ir_set_int(m, ir_at(v.f, got[i]), IR_ATTR_INDEX, (int64_t)i);
        base_push(m->arena, v.f->results, v.f->n_results, v.f->cap_results, r);
    }
    ir_emit(&v.b, IR_RET, (ir_type){.dtype = IR_NONE}, got, n_wrt);
    return v.f;
}

/* ---- slopes ---- */
typedef struct slopes {
    const ir_module *m;
    const ir_func *f;
    const diff_case *c; /* of f_vjp: its arrays are those of f, then the cotangents */
    size_t first;       /* of them that belongs to f: a graph may stand before */
    int64_t *dims;
    void **out;
    double size; /* sum of the absolute values */
} slopes;

static const double *cotangent(const slopes *s, size_t result) {
    size_t at = s->c->f->n_params;
    for (size_t i = result; i < s->f->n_results; i++) at -= s->f->results[i].type.dtype == IR_F64;
    return s->c->in[at];
}

static int64_t elements_of(const slopes *s, size_t result) {
    size_t at = s->c->f->n_params;
    for (size_t i = result; i < s->f->n_results; i++) at -= s->f->results[i].type.dtype == IR_F64;
    return s->c->in_elements[at];
}

static bool value(slopes *s, double *sum, base_str *err) {
    const ir_graph_data *graphs[DIFF_MAX_ARRAYS] = {0};
    for (size_t i = 0; i < s->f->n_params; i++)
        graphs[i] = s->f->params[i].role == IR_GRAPH_FIELD ? &s->c->graph->data : NULL;
    ir_call_data call = {.graph = &s->c->graph->data, .graphs = graphs, .dims = s->dims,
                         .in = (const void *const *)s->c->in + s->first, .out = s->out,
                         .n_rows = s->c->graph->data.n_dst};
    if (!ir_interpret_graph(s->m, s->f, &call, err)) return false;
    *sum = s->size = 0;
    for (size_t i = 0; i < s->f->n_results; i++) {
        if (s->f->results[i].type.dtype != IR_F64) continue;
        const double *c = cotangent(s, i), *y = s->out[i];
        for (int64_t k = 0, n = elements_of(s, i); k < n; k++) *sum += c[k] * y[k], s->size += fabs(c[k] * y[k]);
    }
    return true;
}

/* Moves x by h along the direction, which is 1 or -1 in a few elements. */
static void move(double *x, const int64_t *at, const double *to, int n, double h) {
    for (int i = 0; i < n; i++) x[at[i]] += h * to[i];
}

static bool slope(slopes *s, double *x, const int64_t *at, const double *to, int n, double h, double *out, base_str *err) {
    double up, down, old[8];
    for (int i = 0; i < n; i++) old[i] = x[at[i]];
    move(x, at, to, n, h);
    bool good = value(s, &up, err);
    for (int i = n; i-- > 0;) x[at[i]] = old[i];
    move(x, at, to, n, -h);
    good = good && value(s, &down, err);
    for (int i = n; i-- > 0;) x[at[i]] = old[i];
    *out = (up - down) / (2 * h);
    return good;
}

static diff_slope check(slopes *s, size_t result, diff_rng *r, base_str *err) {
    const ir_func *v = s->c->f;
    size_t p = 0;
    while (strcmp(v->params[p].name, v->results[result].name + 2) != 0) p++;
    double *x = s->c->in[p], to[8], d[3], h = 1e-3, got = 0;
    int64_t at[8];
    int n = 0;
    if (v->results[result].type.dtype != IR_F64) return DIFF_SLOPE_UNKNOWN;
    for (; n < 8 && n < s->c->in_elements[p]; n++) {
        at[n] = s->c->in_elements[p] <= 8 ? n : diff_below(r, s->c->in_elements[p]);
        to[n] = diff_chance(r, 50) ? 1 : -1;
        got += to[n] * ((const double *)s->c->expected[result])[at[n]];
    }
    if (!n) return DIFF_SLOPE_UNKNOWN;
    for (int i = 0; i < 3; i++, h /= 2)
        if (!slope(s, x, at, to, n, h, &d[i], err)) return DIFF_SLOPE_WRONG;
    double first = (4 * d[1] - d[0]) / 3, want = (4 * d[2] - d[1]) / 3, doubt = fabs(first - want);
    if (!isfinite(want) || !(doubt <= 1e-4 * (1 + fabs(want)))) return DIFF_SLOPE_UNKNOWN;
    if (fabs(want - got) <= 1e-6 * (1 + fabs(want)) + 10 * doubt + 1e-10 * s->size) return DIFF_SLOPE_RIGHT;
    base_str_addf(err, "the slope along %s is %.12g, central differences give %.12g", v->params[p].name, got, want);
    return DIFF_SLOPE_WRONG;
}

void diff_check_slopes(const ir_module *m, const ir_func *f, const diff_case *c, diff_rng *r, diff_slope *out, base_str *err) {
    slopes s = {.m = m, .f = f, .c = c, .first = f->level == IR_LEVEL_KERNEL};
    s.dims = calloc(f->n_syms + 1, sizeof *s.dims);
    s.out = calloc(f->n_results + 1, sizeof *s.out);
    for (size_t i = 0; i < f->n_syms; i++) {
        uint32_t sym;
        if (ir_sym_find(c->f, f->syms[i], &sym)) s.dims[i] = c->dims[sym];
    }
    ir_compute_dims(f, s.dims);
    for (size_t i = 0; i < f->n_results; i++) { /* as a result that is no float has no cotangent: room for any */
        diff_case of_f = {.f = f, .graph = c->graph, .dims = s.dims};
        int64_t shape[7], n = 1;
        int rank = diff_full_shape(&of_f, &f->results[i], shape);
        for (int k = 0; k < rank; k++) n *= shape[k];
        s.out[i] = calloc((size_t)n + 1, 16);
    }
    for (size_t i = 0; i < c->f->n_results; i++) out[i] = check(&s, i, r, err);
    for (size_t i = 0; i < f->n_results; i++) free(s.out[i]);
    free(s.out);
    free(s.dims);
}
