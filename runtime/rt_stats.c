/* Figures of a graph, computed once.  A duplicate is an edge whose source came before in its row: each thread marks the
 * sources it has seen with the number of the row. */
#include "runtime/runtime.h"

#include <string.h>

typedef struct tally {
    const tiga_csr *csr;
    int64_t n_tasks, mark_bits;
    void *marks; /* [threads][n_src]: row + 1 of the last visit */
    _Atomic int64_t max_degree, empty_rows, self_loops, duplicates;
} tally;

static void atomic_max(_Atomic int64_t *place, int64_t value) {
    int64_t old = atomic_load(place);
    while (value > old && !atomic_compare_exchange_weak(place, &old, value)) {
    }
}

/* true: this source was marked by this row before */
static inline bool visit(const tally *w, int thread, int64_t row, int64_t source) {
    int64_t at = thread * w->csr->n_src + source;
    if (w->mark_bits == 32) {
        uint32_t *mark = (uint32_t *)w->marks + at, old = *mark;
        *mark = (uint32_t)(row + 1);
        return old == (uint32_t)(row + 1);
    }
    int64_t *mark = (int64_t *)w->marks + at, old = *mark;
    *mark = row + 1;
    return old == row + 1;
}

static void tally_task(void *arg, int64_t task, int thread) {
    tally *w = arg;
    const tiga_csr *c = w->csr;
    int64_t begin, end, max = 0, empty = 0, loops = 0, twice = 0;
    bool square = c->n_dst == c->n_src;
    rt_task_range(c->n_dst, w->n_tasks, task, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        int64_t degree = c->offsets[r + 1] - c->offsets[r];
        max = degree > max ? degree : max;
        empty += degree == 0;
        for (int64_t e = c->offsets[r]; e < c->offsets[r + 1]; e++) {
            int64_t s = c->source_bits == 32 ? ((const int32_t *)c->sources)[e] : ((const int64_t *)c->sources)[e];
            loops += square && s == r;
            twice += visit(w, thread, r, s);
        }
    }
    atomic_max(&w->max_degree, max);
    atomic_fetch_add(&w->empty_rows, empty);
    atomic_fetch_add(&w->self_loops, loops);
    atomic_fetch_add(&w->duplicates, twice);
}

static tiga_status compute(tiga_context *ctx, tiga_graph *g) {
    const tiga_csr *c = &g->csr;
    tally w = {.csr = c, .n_tasks = rt_n_tasks(c->n_dst, 1 << 12), .mark_bits = c->n_dst < UINT32_MAX ? 32 : 64};
    int threads = ctx->threads; /* marks may take as much memory as the graph, not more, beyond one thread */
    while (threads > 1 && c->n_src > (c->n_edges + c->n_dst) / threads)
        threads--;
    tiga_status status =
        rt_mem_take(ctx, threads * c->n_src, w.mark_bits / 8, true, "counting duplicate edges", &w.marks);
    if (status == TIGA_OK && !rt_parallel_for(ctx, threads, w.n_tasks, tally_task, &w))
        status = rt_fail(ctx, TIGA_E_INTERRUPTED, "tiga_graph_get_stats: interrupted");
    rt_mem_free(w.marks);
    if (status == TIGA_OK)
        g->stats = (tiga_graph_stats){.n_dst = c->n_dst,
                                      .n_src = c->n_src,
                                      .n_edges = c->n_edges,
                                      .max_degree = w.max_degree,
                                      .empty_rows = w.empty_rows,
                                      .self_loops = w.self_loops,
                                      .duplicate_edges = w.duplicates,
                                      .mean_degree = c->n_dst ? (double)c->n_edges / (double)c->n_dst : 0};
    return status;
}

static int64_t held_bytes(const tiga_graph *g) {
    const tiga_csr *c = &g->csr;
    int64_t bytes = g->own_offsets ? (c->n_dst + 1) * 8 : 0;
    bytes += g->own_sources ? c->n_edges * (c->source_bits / 8) : 0;
    bytes += g->order ? c->n_edges * 8 : 0;
    if (g->has_transposed)
        bytes += (c->n_src + 1) * 8 + c->n_edges * (g->transposed.source_bits / 8 + 8);
    return bytes;
}

tiga_status tiga_graph_get_stats(tiga_context *ctx, tiga_graph *g, tiga_graph_stats *out) {
    if (!ctx || !g || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_graph_get_stats: an argument is NULL");
    rt_begin(ctx);
    tiga_status status = TIGA_OK;
    pthread_mutex_lock(&g->lock);
    if (!g->has_stats) {
        status = compute(ctx, g);
        g->has_stats = status == TIGA_OK;
    }
    *out = g->stats;
    out->bytes = held_bytes(g);
    pthread_mutex_unlock(&g->lock);
    return status;
}
