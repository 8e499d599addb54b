/* tiga_call: names, sizes and memory are checked before anything runs; then the module's host function runs against
 * the table of hr_host.c; whatever happened, the frame is closed and the account is what it was before. */
#include "hierarchy_runtime/hierarchy_runtime.h"

#include <string.h>
#include <time.h>

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
    size_t n_bytes = instances + ((p + 1) + p + r + d + d + r) * 8;
    char *at = (char *)f->small;
    if (n_bytes > sizeof f->small) {
        at = f->block = base_alloc(n_bytes);
        if (!at)
            return rt_fail(f->ctx, TIGA_E_MEMORY, "%s: out of memory", fn->name);
    }
    memset(at, 0, n_bytes);
    f->bound = (void *)at;
    f->graph_of = (void *)(at += instances);
    f->params = (void *)(at += (p + 1) * 8);
    f->results = (void *)(at += p * 8);
    f->dims = (void *)(at += r * 8);
    f->dim_from = (void *)(at += d * 8);
    f->made = (void *)(at + d * 8);
    return TIGA_OK;
}

static tiga_status run(hr_frame *f) {
    double start = now();
    hr_frame_open(f);
    int32_t code = f->fn->host(&hr_host_table, f, f->dims);
    f->stats.seconds = now() - start;
    if (f->status != TIGA_OK)
        return f->status;
    if (code != 0)
        return rt_fail(f->ctx, TIGA_E_INTERNAL, "%s: the module's host function returned %d by itself", f->fn->name,
                       code);
    return hr_frame_check(f);
}

static tiga_status prepare(hr_frame *f, tiga_graph *const *graphs, int n_graphs, const tiga_binding *in, int n_in,
                           const tiga_binding *out, int n_out) {
    tiga_status status = hr_bind_graphs(f, graphs, n_graphs);
    if (status == TIGA_OK)
        status = hr_bind_params(f, in, n_in);
    if (status == TIGA_OK)
        status = hr_bind_results(f, out, n_out);
    if (status == TIGA_OK)
        status = hr_solve_dims(f);
    if (status == TIGA_OK)
        status = hr_make_results(f);
    return status == TIGA_OK ? hr_check_overlap(f) : status;
}

tiga_status tiga_call_many(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *const *graphs, int n_graphs,
                           const tiga_binding *in, int n_in, tiga_binding *out, int n_out, tiga_call_stats *stats) {
    if (!ctx || !m || !name || n_graphs < 0 || n_in < 0 || n_out < 0 || (n_graphs && !graphs) || (n_in && !in) ||
        (n_out && !out))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_call: an argument is NULL, or a count negative");
    rt_begin(ctx);
    hr_frame f;
    memset(&f, 0, offsetof(hr_frame, small));
    f.ctx = ctx;
    f.module = m->info;
    f.fn = tiga_module_find(m, name);
    if (!f.fn)
        return fail_name(ctx, m, name);
    int64_t peak_before = ctx->host_peak;
    ctx->host_peak = ctx->host_live;
    tiga_status status = take_block(&f);
    if (status == TIGA_OK)
        status = prepare(&f, graphs, n_graphs, in, n_in, out, n_out);
    if (status == TIGA_OK)
        status = run(&f);
    hr_frame_close(&f);
    if (status != TIGA_OK)
        hr_drop_results(&f);
    base_free(f.block);
    f.stats.peak_bytes = ctx->host_peak;
    ctx->host_peak = peak_before > ctx->host_peak ? peak_before : ctx->host_peak;
    if (stats)
        *stats = f.stats;
    return status;
}

tiga_status tiga_call(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *graph, const tiga_binding *in,
                      int n_in, tiga_binding *out, int n_out) {
    return tiga_call_many(ctx, m, name, &graph, graph != NULL, in, n_in, out, n_out, NULL);
}
