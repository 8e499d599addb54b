/* Arguments are matched by name: none unknown, none missing, none twice. */
#include "hierarchy_runtime/hierarchy_runtime.h"

#include <string.h>

/* ---- graphs ---- */
/* A node field is read at both ends, so its graph must be square whatever the table says. */
static bool wants_square(const tiga_function_info *fn) {
    for (int i = 0; i < fn->n_params; i++)
        if (fn->params[i].at == TIGA_AT_NODE)
            return true;
    return fn->needs_square != 0;
}

static tiga_status check_square(hr_frame *f, const char *name, const tiga_csr *g) {
    if (g->n_dst == g->n_src || !wants_square(f->fn))
        return TIGA_OK;
    return rt_fail(f->ctx, TIGA_E_TYPE, "%s: the graph%s%s must be square, it has %lld rows and %lld sources",
                   f->fn->name, *name ? " " : "", name, (long long)g->n_dst, (long long)g->n_src);
}

static int count_graphs(const tiga_function_info *fn) {
    int n = 0;
    for (int i = 0; i < fn->n_params; i++)
        n += fn->params[i].at == TIGA_AT_GRAPH;
    return fn->is_program ? n : 1;
}

tiga_status hr_bind_graphs(hr_frame *f, tiga_graph *const *graphs, int n_graphs) {
    int want = count_graphs(f->fn), k = 0;
    if (n_graphs != want)
        return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: takes %d graph%s, %d given", f->fn->name, want,
                       want == 1 ? "" : "s", n_graphs);
    for (int i = 0; i < n_graphs; i++)
        if (!graphs[i])
            return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: graph %d is NULL", f->fn->name, i);
    f->graphs = graphs;
    f->n_graphs = n_graphs;
    if (!f->fn->is_program) {
        f->handle_of[0] = graphs[0];
        f->graph_of[0] = &graphs[0]->csr;
        return check_square(f, "", f->graph_of[0]);
    }
    for (int i = 0; i < f->fn->n_params; i++)
        if (f->fn->params[i].at == TIGA_AT_GRAPH) {
            f->handle_of[i] = graphs[k];
            f->graph_of[i] = &graphs[k++]->csr;
            tiga_status status = check_square(f, f->fn->params[i].name, f->graph_of[i]);
            if (status != TIGA_OK)
                return status;
        }
    return TIGA_OK;
}

/* ---- arrays ---- */
static int find(const tiga_field_info *fields, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return i;
    return -1;
}

static tiga_status fail_unknown(hr_frame *f, const tiga_field_info *fields, int n, const char *name, const char *what) {
    base_str s = {0};
    for (int i = 0; i < n; i++)
        if (fields[i].at != TIGA_AT_GRAPH)
            base_str_addf(&s, "%s%s", s.len ? ", " : "", fields[i].name);
    tiga_status status = rt_fail(f->ctx, TIGA_E_NAME, "%s: has no %s '%s'; it has %s", f->fn->name, what, name,
                                 s.len ? base_str_text(&s) : "none");
    base_str_fini(&s);
    return status;
}

static tiga_status check_binding(hr_frame *f, const tiga_binding *b, const char *what, int i) {
    if (!b->name)
        return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: %s %d has no name", f->fn->name, what, i);
    if (!b->array)
        return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: %s '%s' is NULL", f->fn->name, what, b->name);
    return TIGA_OK;
}

tiga_status hr_bind_params(hr_frame *f, const tiga_binding *in, int n_in) {
    const tiga_function_info *fn = f->fn;
    for (int i = 0; i < n_in; i++) {
        tiga_status status = check_binding(f, &in[i], "argument", i);
        if (status != TIGA_OK)
            return status;
        int k = find(fn->params, fn->n_params, in[i].name);
        if (k < 0)
            return fail_unknown(f, fn->params, fn->n_params, in[i].name, "parameter");
        if (fn->params[k].at == TIGA_AT_GRAPH)
            return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: '%s' is a graph, not an array", fn->name, in[i].name);
        if (f->params[k])
            return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: argument '%s' is given twice", fn->name, in[i].name);
        f->params[k] = in[i].array;
    }
    for (int k = 0; k < fn->n_params; k++)
        if (!f->params[k] && fn->params[k].at != TIGA_AT_GRAPH)
            return rt_fail(f->ctx, TIGA_E_NAME, "%s: argument '%s' (%s) is missing", fn->name, fn->params[k].name,
                           fn->params[k].text);
    return TIGA_OK;
}

tiga_status hr_bind_results(hr_frame *f, const tiga_binding *out, int n_out) {
    const tiga_function_info *fn = f->fn;
    for (int i = 0; i < n_out; i++) {
        tiga_status status = check_binding(f, &out[i], "result", i);
        if (status != TIGA_OK)
            return status;
        int k = find(fn->results, fn->n_results, out[i].name);
        if (k < 0)
            return fail_unknown(f, fn->results, fn->n_results, out[i].name, "result");
        if (f->results[k])
            return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: result '%s' is given twice", fn->name, out[i].name);
        for (int j = 0; j < fn->n_results; j++)
            if (f->results[j] == out[i].array)
                return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: results '%s' and '%s' are one array", fn->name,
                               fn->results[j].name, out[i].name);
        f->results[k] = out[i].array;
    }
    for (int k = 0; k < fn->n_results; k++)
        if (!f->results[k])
            return rt_fail(f->ctx, TIGA_E_NAME, "%s: result '%s' (%s) is missing", fn->name, fn->results[k].name,
                           fn->results[k].text);
    return TIGA_OK;
}
