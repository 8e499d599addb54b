/* Figures of a graph, computed once.  A duplicate is an edge whose source came before in its row: each thread marks the
 * sources it has seen with the number of the row, in an array of all sources or, where that is smaller, in a hash table with
 * room for the longest row twice. */
#include "runtime/runtime.h"

#include <string.h>

/* ---- what the offsets tell ---- */
typedef struct rows {
    const tiga_csr *csr;
    int64_t n_tasks;
    _Atomic int64_t max_degree, degrees[64];
} rows;

static void atomic_max(_Atomic int64_t *place, int64_t value) {
    int64_t old = atomic_load(place);
    while (value > old && !atomic_compare_exchange_weak(place, &old, value)) {
    }
}

static void rows_task(void *arg, int64_t task, int thread) {
    (void)thread;
    rows *w = arg;
    int64_t begin, end, max = 0, degrees[64] = {0};
    rt_task_range(w->csr->n_dst, w->n_tasks, task, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        int64_t degree = w->csr->offsets[r + 1] - w->csr->offsets[r];
        max = degree > max ? degree : max;
        degrees[degree ? 64 - __builtin_clzll((unsigned long long)degree) : 0]++;
    }
    atomic_max(&w->max_degree, max);
    for (int k = 0; k < 64; k++)
        if (degrees[k])
            atomic_fetch_add(&w->degrees[k], degrees[k]);
}

tiga_status rt_stats_of_rows(tiga_context *ctx, const char *where, const tiga_csr *csr, tiga_graph_stats *out) {
    rows w = {.csr = csr, .n_tasks = rt_n_tasks(csr->n_dst, 1 << 14)};
    if (!rt_parallel_for(ctx, 0, w.n_tasks, rows_task, &w))
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", where);
    *out = (tiga_graph_stats){.n_dst = csr->n_dst, .n_src = csr->n_src, .n_edges = csr->n_edges};
    out->max_degree = w.max_degree;
    out->empty_rows = w.degrees[0];
    out->mean_degree = csr->n_dst ? (double)csr->n_edges / (double)csr->n_dst : 0;
    for (int k = 0; k < 64; k++)
        out->degrees[k] = w.degrees[k];
    return TIGA_OK;
}

/* ---- what the edges tell ---- */
typedef struct tally {
    const tiga_csr *csr;
    int64_t n_tasks, mark_bits;
    void *marks; /* [threads][n_src]: row + 1 of the last visit; or the tables */
    int64_t slots; /* of a table, a power of 2; 0: no tables */
    _Atomic int64_t self_loops, duplicates;
} tally;

typedef struct slot { /* row: + 1 of whose source it is; that of an earlier row is free */
    int64_t row, source;
} slot;

static bool visit_table(const tally *w, int thread, int64_t row, int64_t source) {
    slot *table = (slot *)w->marks + thread * w->slots;
    uint64_t mask = (uint64_t)w->slots - 1, at = (uint64_t)source * 0x9e3779b97f4a7c15U >> 20 & mask;
    while (table[at].row == row + 1) {
        if (table[at].source == source)
            return true;
        at = (at + 1) & mask;
    }
    table[at] = (slot){row + 1, source};
    return false;
}

/* true: this source was marked by this row before */
static inline bool visit(const tally *w, int thread, int64_t row, int64_t source) {
    if (w->slots)
        return visit_table(w, thread, row, source);
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
    int64_t begin, end, loops = 0, twice = 0;
    bool square = c->n_dst == c->n_src;
    rt_task_range(c->n_dst, w->n_tasks, task, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        for (int64_t e = c->offsets[r]; e < c->offsets[r + 1]; e++) {
            int64_t s = c->source_bits == 32 ? ((const int32_t *)c->sources)[e] : ((const int64_t *)c->sources)[e];
            loops += square && s == r;
            twice += visit(w, thread, r, s);
        }
    atomic_fetch_add(&w->self_loops, loops);
    atomic_fetch_add(&w->duplicates, twice);
}

static tiga_status compute(tiga_context *ctx, tiga_graph *g) {
    const tiga_csr *c = &g->csr;
    tally w = {.csr = c, .n_tasks = rt_n_tasks(c->n_dst, 1 << 12), .mark_bits = c->n_dst < UINT32_MAX ? 32 : 64};
    tiga_graph_stats stats;
    tiga_status status = rt_stats_of_rows(ctx, "tiga_graph_get_stats", c, &stats);
    if (status != TIGA_OK)
        return status;
    int64_t each = c->n_src, unit = w.mark_bits / 8, slots = 2;
    while (slots < 2 * stats.max_degree)
        slots *= 2;
    if (slots < each / (int64_t)sizeof(slot) * unit) {
        each = w.slots = slots;
        unit = sizeof(slot);
    }
    int threads = ctx->threads; /* marks may take as much memory as the graph, not more, beyond one thread */
    while (threads > 1 && each * unit / 4 > (c->n_edges + c->n_dst) / threads)
        threads--;
    status = rt_mem_take(ctx, threads * each, unit, true, "counting duplicate edges", &w.marks);
    if (status == TIGA_OK && !rt_parallel_for(ctx, threads, w.n_tasks, tally_task, &w))
        status = rt_fail(ctx, TIGA_E_INTERRUPTED, "tiga_graph_get_stats: interrupted");
    rt_mem_free(w.marks);
    if (status != TIGA_OK)
        return status;
    stats.self_loops = w.self_loops;
    stats.duplicate_edges = w.duplicates;
    g->stats = stats;
    return TIGA_OK;
}

static int64_t held_bytes(const tiga_graph *g) {
    const tiga_csr *c = &g->csr;
    int64_t bytes = g->own_offsets ? (c->n_dst + 1) * 8 : 0;
    bytes += g->own_sources ? c->n_edges * (c->source_bits / 8) : 0;
    bytes += g->order ? c->n_edges * 8 : 0;
    if (g->has_transposed)
        bytes += (c->n_src + 1) * 8 + c->n_edges * 2 * (g->transposed.source_bits / 8);
    return bytes;
}

tiga_status rt_graph_stats(tiga_context *ctx, tiga_graph *g, tiga_graph_stats *out) {
    tiga_status status = TIGA_OK;
    pthread_mutex_lock(&g->lock);
    if (!g->has_stats) {
        status = compute(ctx, g);
        g->has_stats = status == TIGA_OK;
    }
    *out = g->stats;
    out->bytes = held_bytes(g);
    out->transposed = g->has_transposed;
    pthread_mutex_unlock(&g->lock);
    return status;
}

tiga_status tiga_graph_get_stats(tiga_context *ctx, tiga_graph *g, tiga_graph_stats *out) {
    if (!ctx || !g || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_graph_get_stats: an argument is NULL");
    RT_TURN(ctx);
    rt_begin(ctx);
    return rt_graph_stats(ctx, g, out);
}
