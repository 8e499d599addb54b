/* One function on one graph: sizes, values, and what the interpreter says. */
#include "diff.h"

#include <stdlib.h>
#include <string.h>

static int64_t graph_size(const ir_graph_data *g, const char *symbol) {
    const char *dot = strrchr(symbol, '.');
    if (!dot) return -1;
    return !strcmp(dot, ".dst") ? g->n_dst : !strcmp(dot, ".src") ? g->n_src : !strcmp(dot, ".edge") ? g->n_edges : -1;
}

static int64_t choose_size(const char *symbol, const ir_graph_data *g, diff_rng *r) {
    static const int64_t wide[] = {0, 1, 3, 7, 16, 64, 257, 17, 2};
    static const int64_t narrow[] = {0, 1, 3, 7, 16};
    if (symbol[0] == 'H') return diff_below(r, 4);
    return g->n_edges > 100 ? narrow[diff_below(r, 5)] : wide[diff_below(r, 9)];
}

static int64_t lead_size(const diff_case *c, ir_role role) {
    const ir_graph_data *g = &c->graph->data;
    switch (role) {
    case IR_SRC: return g->n_src;
    case IR_EDGE_FIELD: return g->n_edges;
    case IR_DST:
    case IR_NODE: return g->n_dst;
    case IR_PARAM_FIELD:
    case IR_GRAPH_FIELD:
    case IR_OUT_ROW:
    case IR_OUT_EDGE:
    case IR_OUT_PARAM: break;
    }
    return -1;
}

int diff_full_shape(const diff_case *c, const ir_param *p, int64_t shape[7]) {
    int rank = 0;
    if (c->f->level == IR_LEVEL_KERNEL) {
        bool result = p >= c->f->results && p < c->f->results + c->f->n_results;
        ir_role role = !result ? p->role : p->type.space == IR_EDGE ? IR_EDGE_FIELD : IR_DST;
        int64_t lead = lead_size(c, role);
        if (lead >= 0) shape[rank++] = lead;
    }
    for (uint32_t i = 0; i < p->type.rank; i++) {
        ir_dim d = p->type.dim[i];
        shape[rank++] = d >= 0 ? d : c->dims[ir_dim_sym_index(d)];
    }
    return rank;
}

static int64_t elements(const diff_case *c, const ir_param *p) {
    int64_t shape[7], n = 1;
    int rank = diff_full_shape(c, p, shape);
    for (int i = 0; i < rank; i++) n *= shape[i];
    return n;
}

static void *random_array(ir_dtype t, int64_t n, diff_rng *r) {
    void *a = malloc((size_t)n * ir_dtype_bytes(t) + 1);
    for (int64_t i = 0; i < n; i++) ir_store_scalar(t, a, i, diff_value(r, t));
    return a;
}

bool diff_uses_graph(const ir_func *f) {
    if (f->level == IR_LEVEL_KERNEL) return true;
    for (size_t i = 0; i < f->n_params; i++)
        if (f->params[i].role == IR_GRAPH_FIELD) return true;
    return false;
}

bool diff_case_make(diff_case *c, const ir_module *m, const ir_func *f, const diff_graph *g, diff_rng *r, base_str *err) {
    *c = (diff_case){.f = f, .graph = g};
    c->dims = calloc(f->n_syms + 1, sizeof(int64_t));
    for (size_t i = 0; i < f->n_syms; i++) {
        int64_t size = graph_size(&g->data, f->syms[i]);
        c->dims[i] = size >= 0 ? size : choose_size(f->syms[i], &g->data, r);
    }
    if (!ir_compute_dims(f, c->dims)) {
        base_str_add(err, "the dimensions are no sizes");
        return false;
    }
    const ir_graph_data *graphs[DIFF_MAX_ARRAYS] = {0};
    for (size_t i = 0; i < f->n_params; i++) {
        if (f->params[i].role == IR_GRAPH_FIELD) {
            graphs[i] = &g->data;
            continue;
        }
        c->in_elements[i] = elements(c, &f->params[i]);
        c->in[i] = random_array(f->params[i].type.dtype, c->in_elements[i], r);
    }
    for (size_t i = 0; i < f->n_results; i++) {
        c->out_elements[i] = elements(c, &f->results[i]);
        c->expected[i] = calloc(1, (size_t)c->out_elements[i] * ir_dtype_bytes(f->results[i].type.dtype) + 1);
    }
    ir_call_data call = {.graph = &g->data, .graphs = graphs, .dims = c->dims, .in = (const void *const *)c->in,
                         .out = c->expected, .n_rows = g->data.n_dst};
    return ir_interpret_graph(m, f, &call, err);
}

void diff_case_free(diff_case *c) {
    free(c->dims);
    for (int i = 0; i < DIFF_MAX_ARRAYS; i++) {
        free(c->in[i]);
        free(c->expected[i]);
    }
    *c = (diff_case){0};
}
