/* The relation seen from the sources: built at the first call, in parallel, and kept with the graph.  Within a source
 * the edges stand in the order of the graph, so the walk over them is the same on every machine.  Rows and numbers of edges
 * have one width, so that compiled code needs no more than one copy of a walk for each. */
#include "runtime/runtime.h"

#include <string.h>

typedef struct expand {
    const tiga_csr *csr;
    int64_t n_tasks, bits;
    void *rows; /* row of every edge */
} expand;

static void expand_task(void *arg, int64_t task, int thread) {
    (void)thread;
    const expand *w = arg;
    int64_t begin, end;
    rt_task_range(w->csr->n_dst, w->n_tasks, task, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        for (int64_t e = w->csr->offsets[r]; e < w->csr->offsets[r + 1]; e++) {
            if (w->bits == 32)
                ((int32_t *)w->rows)[e] = (int32_t)r;
            else
                ((int64_t *)w->rows)[e] = r;
        }
}

static tiga_status build(tiga_context *ctx, const tiga_csr *csr, int64_t bits, tiga_csr *out, void **edge_of) {
    void *offsets = NULL, *sources = NULL;
    expand w = {csr, rt_n_tasks(csr->n_dst, 1 << 14), bits, NULL};
    *edge_of = NULL;
    tiga_status status = rt_mem_take(ctx, csr->n_src + 1, 8, false, "the transposed relation", &offsets);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, csr->n_edges, bits / 8, false, "the transposed relation", &sources);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, csr->n_edges, bits / 8, false, "the transposed relation", &w.rows);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, csr->n_edges, bits / 8, false, "the transposed relation", edge_of);
    if (status == TIGA_OK && !rt_parallel_for(ctx, 0, w.n_tasks, expand_task, &w))
        status = rt_fail(ctx, TIGA_E_INTERRUPTED, "tiga_graph_transposed: interrupted");
    if (status == TIGA_OK) {
        rt_sort s = {.n = csr->n_edges,
                     .n_keys = csr->n_src,
                     .keys = csr->sources,
                     .key_bits = csr->source_bits,
                     .payload = w.rows,
                     .payload_bits = bits,
                     .out_bits = bits,
                     .offsets = offsets,
                     .out_payload = sources,
                     .order = *edge_of,
                     .order_bits = bits};
        status = rt_sort_run(ctx, &s);
    }
    rt_mem_free(w.rows);
    if (status != TIGA_OK) {
        rt_mem_free(offsets);
        rt_mem_free(sources);
        rt_mem_free(*edge_of);
        return status;
    }
    *out = (tiga_csr){csr->n_src, csr->n_dst, csr->n_edges, offsets, sources, bits};
    return TIGA_OK;
}

tiga_status tiga_graph_transposed(tiga_context *ctx, tiga_graph *g, const tiga_csr **out, const void **edge_of) {
    if (!ctx || !g)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_graph_transposed: an argument is NULL");
    RT_TURN(ctx);
    rt_begin(ctx);
    return rt_graph_transposed(ctx, g, out, edge_of, NULL);
}

tiga_status rt_graph_transposed(tiga_context *ctx, tiga_graph *g, const tiga_csr **out, const void **edge_of,
                                int64_t *built) {
    tiga_status status = TIGA_OK;
    pthread_mutex_lock(&g->lock);
    if (!g->has_transposed) {
        status = build(ctx, &g->csr, g->transposed_bits, &g->transposed, &g->edge_of);
        g->has_transposed = status == TIGA_OK;
        if (built)
            ++*built;
    }
    pthread_mutex_unlock(&g->lock);
    if (out)
        *out = status == TIGA_OK ? &g->transposed : NULL;
    if (edge_of)
        *edge_of = status == TIGA_OK ? g->edge_of : NULL;
    return status;
}
