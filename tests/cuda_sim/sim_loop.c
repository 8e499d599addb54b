/* One launch of an emitted kernel: buffers, arguments in the order that codegen/cg_cuda.c documents, results. */
#include "sim_loop.h"

#include <stdio.h>
#include <string.h>

#define MAX_ARGS 64

/* As the emitted text declares it; `version` guards against a change on one side only. */
typedef struct launch_info {
    int32_t version, block, team, walks_edges, n_buffers, n_outputs, n_dims, n_scratch;
    int64_t rows_per_unit;
    struct {
        int64_t bytes, rank, shape[6];
    } scratch[32];
} launch_info;

typedef struct launch {
    const ir_func *f;
    const ir_call_data *call;
    const launch_info *info;
    int64_t units, row_begin;
    sim_buffer *buffers[MAX_ARGS], *offsets, *sources, *edge_of, *scratch;
    void *pointers[MAX_ARGS]; /* what the arguments point to, when it is a pointer */
    int n_pointers;
    void *args[MAX_ARGS];
    int n_args;
} launch;

static int64_t lead(const ir_func *f, const ir_call_data *call, ir_role role) {
    const ir_graph_data *g = call->graph;
    int64_t units = (call->n_rows + f->rows_per_unit - 1) / f->rows_per_unit;
    switch (role) {
    case IR_SRC:
        return g ? g->n_src : 0;
    case IR_DST:
    case IR_NODE:
        return call->n_rows;
    case IR_EDGE_FIELD:
    case IR_OUT_EDGE:
        return g ? g->n_edges : 0;
    case IR_OUT_ROW:
        return units;
    case IR_PARAM_FIELD:
    case IR_OUT_PARAM:
        return 1;
    case IR_GRAPH_FIELD:
        break;
    }
    BASE_BUG("role %d in a loop function", (int)role);
}

size_t sim_param_bytes(const ir_func *f, const ir_call_data *call, size_t i) {
    const ir_type *t = &f->params[i].type;
    int64_t n = lead(f, call, f->params[i].role);
    for (uint32_t a = 0; a < t->rank; a++)
        n *= t->dim[a] >= 0 ? t->dim[a] : call->dims[ir_dim_sym_index(t->dim[a])];
    return (size_t)n * ir_dtype_bytes(t->dtype);
}

static void add_buffer(launch *l, sim_buffer *b) {
    l->pointers[l->n_pointers] = b ? sim_buffer_data(b) : NULL;
    l->args[l->n_args++] = &l->pointers[l->n_pointers++];
}

static void add_i64(launch *l, const int64_t *v) { l->args[l->n_args++] = (void *)v; }

static bool make_arrays(launch *l) {
    size_t in = 0;
    for (size_t i = 0; i < l->f->n_params; i++) {
        bool result = l->f->params[i].role >= IR_OUT_ROW;
        const void *contents = result ? NULL : l->call->in[in++];
        l->buffers[i] = sim_buffer_new(l->f->params[i].name, sim_param_bytes(l->f, l->call, i), contents, !result);
        if (!l->buffers[i])
            return false;
        add_buffer(l, l->buffers[i]);
    }
    return true;
}

static sim_buffer *column(const char *name, const int64_t *from, size_t n, bool wide) {
    size_t width = wide ? sizeof(int64_t) : sizeof(int32_t);
    void *to = base_alloc(n * width + 1);
    for (size_t i = 0; to && i < n; i++) {
        if (wide)
            ((int64_t *)to)[i] = from[i];
        else
            ((int32_t *)to)[i] = (int32_t)from[i];
    }
    sim_buffer *b = to ? sim_buffer_new(name, n * width, to, true) : NULL;
    base_free(to);
    return b;
}

static bool make_graph(launch *l, bool wide) {
    const ir_graph_data *g = l->call->graph;
    if (!l->info->walks_edges)
        return true;
    size_t n = (size_t)g->n_edges;
    l->offsets = sim_buffer_new("offsets", (size_t)(g->n_dst + 1) * sizeof(int64_t), g->offsets, true);
    l->sources = column("sources", g->sources, n, wide);
    add_buffer(l, l->offsets);
    add_buffer(l, l->sources);
    if (l->info->walks_edges == 2) {
        l->edge_of = column("edge_of", g->edge_of, n, wide);
        add_buffer(l, l->edge_of);
    }
    return l->offsets && l->sources && (l->info->walks_edges != 2 || l->edge_of);
}

static bool make_scratch(launch *l, unsigned blocks) {
    int64_t slices = (int64_t)blocks * l->info->block / l->info->team, bytes = 0;
    for (int i = 0; i < l->info->n_scratch; i++) {
        int64_t n = l->info->scratch[i].bytes;
        for (int64_t a = 0; a < l->info->scratch[i].rank; a++) {
            int64_t d = l->info->scratch[i].shape[a];
            n *= d >= 0 ? d : l->call->dims[-1 - d];
        }
        bytes += (n + 15) / 16 * 16 * slices;
    }
    if (bytes)
        l->scratch = sim_buffer_new("scratch", (size_t)bytes, NULL, false);
    add_buffer(l, l->scratch);
    return !bytes || l->scratch;
}

static bool take_results(launch *l, base_str *err) {
    size_t out = 0;
    for (size_t i = 0; i < l->f->n_params; i++) {
        if (l->f->params[i].role < IR_OUT_ROW)
            continue;
        size_t bytes = sim_param_bytes(l->f, l->call, i), missing = sim_buffer_unwritten(l->buffers[i]);
        if (missing) {
            base_str_addf(err, "@%s left %zu of %zu bytes of '%s' unwritten", l->f->name, missing, bytes,
                          l->f->params[i].name);
            return false;
        }
        memcpy(l->call->out[out++], sim_buffer_data(l->buffers[i]), bytes);
    }
    return true;
}

static bool run(launch *l, sim_module *m, const char *name, const sim_loop_options *o, base_str *err) {
    int64_t per_block = l->info->block / l->info->team, most = (l->units + per_block - 1) / per_block;
    unsigned blocks = o->blocks ? o->blocks : most > 3 ? 3 : most > 0 ? (unsigned)most : 1;
    bool made = make_arrays(l) && make_graph(l, o->wide);
    add_i64(l, &l->call->n_rows);
    for (size_t i = 0; i < l->f->n_syms; i++)
        add_i64(l, &l->call->dims[i]);
    add_i64(l, &l->row_begin);
    add_i64(l, &l->units);
    if (!made || !make_scratch(l, blocks)) {
        base_str_add(err, "out of memory");
        return false;
    }
    sim_launch_config c = {
        .grid = {blocks, 1, 1}, .block = {(unsigned)l->info->block, 1, 1}, .order = o->order, .seed = o->seed};
    char kernel[256];
    snprintf(kernel, sizeof kernel, "%s_rows%d", name, o->wide && l->info->walks_edges ? 64 : 32);
    if (!sim_launch(m, kernel, &c, l->args, l->n_args)) {
        base_str_addf(err, "@%s: %s", l->f->name, sim_fault());
        return false;
    }
    return take_results(l, err);
}

bool sim_run_loop(sim_module *m, const char *name, const ir_func *f, const ir_call_data *call,
                  const sim_loop_options *o, base_str *err) {
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%s_launch", name);
    launch l = {.f = f, .call = call, .info = sim_module_find(m, symbol)};
    if (!l.info || l.info->version != 1 || f->n_params + f->n_syms + 8 > MAX_ARGS) {
        base_str_addf(err, l.info ? "@%s cannot be launched here" : "the module has no '%s_launch'", name);
        return false;
    }
    l.units = (call->n_rows + f->rows_per_unit - 1) / f->rows_per_unit;
    bool ok = run(&l, m, name, o, err);
    for (size_t i = 0; i < f->n_params; i++)
        sim_buffer_free(l.buffers[i]);
    sim_buffer_free(l.offsets);
    sim_buffer_free(l.sources);
    sim_buffer_free(l.edge_of);
    sim_buffer_free(l.scratch);
    return ok;
}
