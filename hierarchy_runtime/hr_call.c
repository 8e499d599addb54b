/* tiga_call: names, sizes and memory are checked before anything runs; then the module's host function runs against
 * the table of hr_host.c; whatever happened, the frame is closed and the account is what it was before.  tiga_prepare is
 * the first half, tiga_prepared_launch the second: there no name is compared, no clock is read without stats, and buffers are kept. */
#include "hierarchy_runtime/hierarchy_runtime.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

typedef struct hr_call { /* what the caller gives */
    tiga_module *module;
    const char *name;
    tiga_graph *const *graphs;
    int n_graphs;
    const tiga_binding *in;
    int n_in;
    tiga_binding *out;
    int n_out;
} hr_call;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static tiga_status fail_name(tiga_context *ctx, const tiga_module *m, const char *name) {
    const char *best = NULL;
    size_t distance = strlen(name) / 2 + 1;
    for (int i = 0; i < m->info->n_functions; i++) {
        size_t d = base_edit_distance(name, m->info->functions[i].name);
        if (d < distance) {
            distance = d;
            best = m->info->functions[i].name;
        }
    }
    return rt_fail(ctx, TIGA_E_NAME, "the module has no function '%s'%s%s%s", name, best ? "; did you mean '" : "",
                   best ? best : "", best ? "'?" : "");
}

/* Arrays of the frame, cut from one block of 8-byte words. */
static tiga_status take_block(hr_frame *f) {
    const tiga_function_info *fn = f->fn;
    size_t p = (size_t)fn->n_params, r = (size_t)fn->n_results, d = (size_t)fn->n_dims;
    size_t instances = (p + r) * sizeof(tiga_instance);
    size_t n_bytes = instances + (2 * (p + 1) + p + r + d + d + r) * 8;
    char *at = (char *)f->small;
    if (n_bytes > sizeof f->small) {
        at = f->block = base_alloc(n_bytes);
        if (!at)
            return rt_fail(f->ctx, TIGA_E_MEMORY, "%s: out of memory", fn->name);
    }
    memset(at, 0, n_bytes);
    f->bound = (void *)at;
    f->graph_of = (void *)(at += instances);
    f->handle_of = (void *)(at += (p + 1) * 8);
    f->params = (void *)(at += (p + 1) * 8);
    f->results = (void *)(at += p * 8);
    f->dims = (void *)(at += r * 8);
    f->dim_from = (void *)(at += d * 8);
    f->made = (void *)(at + d * 8);
    return TIGA_OK;
}

/* 32, 64 or 96: the columns that kernels may meet, those of transposed relations too. */
static int source_bits(const hr_frame *f, const tiga_module_info *info) {
    int bits = 0, turned = 0;
    for (int i = 0; i < f->n_graphs; i++) {
        bits |= (int)f->graphs[i]->csr.source_bits;
        turned |= (int)f->graphs[i]->transposed_bits;
    }
    for (int i = 0; (turned & ~bits) && i < info->n_kernels;
         i++) /* a call need not go through all kernels for nothing */
        if (info->kernels[i].walks_edges == 2)
            bits |= turned;
    return bits;
}

/* The code for graphs with 64-bit columns may be in another table, of the same functions. */
static tiga_status pick_rows(hr_frame *f, const tiga_module *m) {
    int bits = m->rows ? source_bits(f, m->info) : 0;
    if (!(bits & 64))
        return TIGA_OK;
    const tiga_module_info *info = NULL;
    tiga_status status = m->rows(m->owner, f->ctx, bits, &info);
    if (status != TIGA_OK)
        return status;
    int64_t at = f->fn - m->info->functions;
    if (!info || info->n_functions != m->info->n_functions || strcmp(info->functions[at].name, f->fn->name) != 0)
        return rt_fail(f->ctx, TIGA_E_INTERNAL, "%s: its code for 64-bit sources is of another module", f->fn->name);
    f->fn = &info->functions[at];
    return TIGA_OK;
}

static tiga_status check_arguments(hr_frame *f, const hr_call *c) {
    tiga_status status = hr_bind_graphs(f, c->graphs, c->n_graphs);
    if (status == TIGA_OK)
        status = hr_bind_params(f, c->in, c->n_in);
    if (status == TIGA_OK)
        status = hr_bind_results(f, c->out, c->n_out);
    return status == TIGA_OK ? hr_solve_dims(f) : status;
}

static tiga_status check(hr_frame *f, const hr_call *c) {
    tiga_status status = check_arguments(f, c);
    if (status == TIGA_OK)
        status = hr_make_results(f);
    if (status == TIGA_OK)
        status = hr_check_overlap(f);
    return status == TIGA_OK ? pick_rows(f, c->module) : status;
}

/* A frame of the function, with nothing bound. */
static tiga_status frame_find(hr_frame *f, tiga_context *ctx, const hr_call *c) {
    memset(f, 0, offsetof(hr_frame, small));
    f->ctx = ctx;
    f->fn = tiga_module_find(c->module, c->name);
    return f->fn ? take_block(f) : fail_name(ctx, c->module, c->name);
}

/* A frame that can be launched; on failure only frame_fini is left to do. */
static tiga_status frame_init(hr_frame *f, tiga_context *ctx, const hr_call *c) {
    tiga_status status = frame_find(f, ctx, c);
    if (status == TIGA_OK)
        status = check(f, c);
    if (status == TIGA_OK)
        hr_frame_open(f);
    return status;
}

static void frame_fini(hr_frame *f, bool drop_results) {
    rt_account_give(f->ctx, f->charged);
    f->charged = 0;
    hr_frame_close(f);
    if (drop_results)
        hr_drop_results(f);
    base_free(f->block);
}

/* Runs the host function.  The account of the frame is given back, so a frame's first launch still counts its results. */
static tiga_status launch(hr_frame *f) {
    hr_frame_begin(f);
    int32_t code = f->fn->host(&hr_host_table, f, f->dims);
    if (f->status == TIGA_OK && code == 0)
        code = (int32_t)hr_run_ahead(f);
    f->ahead.waits = false;
    tiga_status status = f->status;
    if (status == TIGA_OK && code != 0)
        status =
            rt_fail(f->ctx, TIGA_E_INTERNAL, "%s: the module's host function returned %d by itself", f->fn->name, code);
    if (status == TIGA_OK)
        status = hr_frame_check(f);
    hr_frame_end(f);
    return status;
}

/* The peak of this call alone is kept while it runs. */
static int64_t peak_begin(tiga_context *ctx) {
    int64_t before = ctx->call_peak;
    ctx->call_peak = ctx->call_live;
    return before;
}

static int64_t peak_end(tiga_context *ctx, int64_t before) {
    int64_t peak = ctx->call_peak;
    ctx->call_peak = before > peak ? before : peak;
    return peak;
}

static bool is_complete(const tiga_context *ctx, const hr_call *c) {
    return ctx && c->module && c->name && c->n_graphs >= 0 && c->n_in >= 0 && c->n_out >= 0 &&
           (!c->n_graphs || c->graphs) && (!c->n_in || c->in) && (!c->n_out || c->out);
}

tiga_status tiga_call_many(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *const *graphs, int n_graphs,
                           const tiga_binding *in, int n_in, tiga_binding *out, int n_out, tiga_call_stats *stats) {
    hr_call c = {m, name, graphs, n_graphs, in, n_in, out, n_out};
    if (!is_complete(ctx, &c))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_call: an argument is NULL, or a count negative");
    RT_TURN(ctx);
    rt_begin(ctx);
    hr_frame f;
    int64_t peak_before = peak_begin(ctx);
    tiga_status status = frame_init(&f, ctx, &c);
    double start = stats ? now() : 0;
    if (status == TIGA_OK)
        status = launch(&f);
    f.stats.seconds = stats ? now() - start : 0;
    frame_fini(&f, status != TIGA_OK);
    f.stats.peak_bytes = peak_end(ctx, peak_before);
    if (stats)
        *stats = f.stats;
    return status;
}

tiga_status tiga_call(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *graph, const tiga_binding *in,
                      int n_in, tiga_binding *out, int n_out) {
    return tiga_call_many(ctx, m, name, &graph, graph != NULL, in, n_in, out, n_out, NULL);
}

tiga_status tiga_call_shapes(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *const *graphs,
                             int n_graphs, const tiga_binding *in, int n_in, tiga_binding *out, int n_out) {
    hr_call c = {m, name, graphs, n_graphs, in, n_in, out, n_out};
    if (!is_complete(ctx, &c))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_call_shapes: an argument is NULL, or a count negative");
    RT_TURN(ctx);
    hr_frame f;
    tiga_status status = frame_find(&f, ctx, &c);
    if (status == TIGA_OK)
        status = check_arguments(&f, &c);
    if (status == TIGA_OK)
        status = hr_shape_results(&f);
    base_free(f.block);
    return status;
}

/* ---- prepared ---------------------------------------------------------------------------------------------------- */
struct tiga_prepared {
    hr_frame frame;
    tiga_module *module;
    int n_graphs; /* that follow */
    tiga_graph *graphs[];
};

/* Of the caller's only the memory of arrays is needed from now on. */
static void own(tiga_prepared *p, const hr_call *c) {
    p->module = tiga_module_retain(c->module);
    for (int i = 0; i < c->n_graphs; i++)
        p->graphs[p->n_graphs++] = tiga_graph_retain(c->graphs[i]);
    p->frame.graphs = p->graphs;
    p->frame.pool.keeps = true;
    rt_account_give(p->frame.ctx, p->frame.charged);
    p->frame.charged = 0;
}

tiga_status tiga_prepare(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *const *graphs, int n_graphs,
                         const tiga_binding *in, int n_in, tiga_binding *results, int n_results, tiga_prepared **out) {
    hr_call c = {m, name, graphs, n_graphs, in, n_in, results, n_results};
    if (out)
        *out = NULL;
    if (!out || !is_complete(ctx, &c))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_prepare: an argument is NULL, or a count negative");
    RT_TURN(ctx);
    if (ctx->account->options.eviction == TIGA_EVICT_LRU)
        return rt_fail(ctx, TIGA_E_UNSUPPORTED,
                       "tiga_prepare: memory of fixed addresses cannot be evicted; prepare outside of the LRU scope");
    rt_begin(ctx);
    tiga_prepared *p = base_alloc(sizeof *p + (size_t)n_graphs * sizeof *p->graphs);
    if (!p)
        return rt_fail(ctx, TIGA_E_MEMORY, "tiga_prepare: out of memory");
    p->module = NULL;
    p->n_graphs = 0;
    tiga_status status = frame_init(&p->frame, ctx, &c);
    if (status == TIGA_OK) {
        own(p, &c);
        *out = p;
    } else {
        frame_fini(&p->frame, true);
        base_free(p);
    }
    return status;
}

tiga_status tiga_prepared_launch(tiga_prepared *p, tiga_call_stats *stats) {
    if (!p)
        return TIGA_E_ARGUMENT;
    hr_frame *f = &p->frame;
    RT_TURN(f->ctx);
    rt_begin(f->ctx);
    memset(&f->stats, 0, sizeof f->stats);
    if (!stats)
        return launch(f);
    int64_t peak_before = peak_begin(f->ctx);
    double start = now();
    tiga_status status = launch(f);
    f->stats.seconds = now() - start;
    f->stats.peak_bytes = peak_end(f->ctx, peak_before);
    *stats = f->stats;
    return status;
}

void tiga_prepared_free(tiga_prepared *p) {
    if (!p)
        return;
    RT_TURN(p->frame.ctx);
    frame_fini(&p->frame, false);
    tiga_module_free(p->module);
    for (int i = 0; i < p->n_graphs; i++)
        tiga_graph_free(p->graphs[i]);
    base_free(p);
}
