/* Graphs: making them from rows or from edges, with every number checked before it is used as an index.
 * A graph never changes after that, except for what is built on demand behind its lock. */
#include "runtime/runtime.h"

#include <string.h>

/* ---- validation ---- */
typedef struct check {
    const tiga_csr *csr;
    int64_t n, n_tasks;
    _Atomic int64_t first_bad;
} check;

static inline int64_t source_at(const tiga_csr *csr, int64_t e) {
    return csr->source_bits == 32 ? ((const int32_t *)csr->sources)[e] : ((const int64_t *)csr->sources)[e];
}

static void offsets_task(void *arg, int64_t task, int thread) {
    (void)thread;
    check *c = arg;
    int64_t begin, end;
    rt_task_range(c->n, c->n_tasks, task, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        if (c->csr->offsets[i + 1] < c->csr->offsets[i]) {
            rt_atomic_min(&c->first_bad, i);
            return;
        }
}

static void sources_task(void *arg, int64_t task, int thread) {
    (void)thread;
    check *c = arg;
    int64_t begin, end;
    rt_task_range(c->n, c->n_tasks, task, &begin, &end);
    uint64_t n_src = (uint64_t)c->csr->n_src;
    bool bad = false;
    if (c->csr->source_bits == 32)
        for (int64_t e = begin; e < end; e++)
            bad |= (uint64_t)(int64_t)((const int32_t *)c->csr->sources)[e] >= n_src;
    else
        for (int64_t e = begin; e < end; e++)
            bad |= (uint64_t)((const int64_t *)c->csr->sources)[e] >= n_src;
    for (int64_t e = begin; bad && e < end; e++)
        if ((uint64_t)source_at(c->csr, e) >= n_src) {
            rt_atomic_min(&c->first_bad, e);
            return;
        }
}

tiga_status rt_check_offsets(tiga_context *ctx, const char *where, const tiga_csr *csr) {
    check c = {.csr = csr, .n = csr->n_dst, .n_tasks = rt_n_tasks(csr->n_dst, 1 << 16), .first_bad = INT64_MAX};
    if (csr->offsets[0] != 0)
        return rt_fail(ctx, TIGA_E_RANGE, "%s: offsets begin with %lld, not with 0", where, (long long)csr->offsets[0]);
    if (!rt_parallel_for(ctx, 0, c.n_tasks, offsets_task, &c))
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", where);
    int64_t row = c.first_bad;
    if (row != INT64_MAX)
        return rt_fail(ctx, TIGA_E_RANGE, "%s: row %lld: offsets fall from %lld to %lld", where, (long long)row,
                       (long long)csr->offsets[row], (long long)csr->offsets[row + 1]);
    return TIGA_OK;
}

static int64_t row_of_edge(const tiga_csr *csr, int64_t e) {
    int64_t low = 0, high = csr->n_dst; /* offsets[low] <= e < offsets[high] */
    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        *(csr->offsets[mid] <= e ? &low : &high) = mid;
    }
    return low;
}

tiga_status rt_check_sources(tiga_context *ctx, const char *where, const tiga_csr *csr) {
    check c = {.csr = csr, .n = csr->n_edges, .n_tasks = rt_n_tasks(csr->n_edges, 1 << 18), .first_bad = INT64_MAX};
    if (!rt_parallel_for(ctx, 0, c.n_tasks, sources_task, &c))
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", where);
    int64_t e = c.first_bad;
    if (e != INT64_MAX)
        return rt_fail(ctx, TIGA_E_RANGE, "%s: edge %lld (row %lld): source %lld is not in 0 .. %lld", where,
                       (long long)e, (long long)row_of_edge(csr, e), (long long)source_at(csr, e),
                       (long long)csr->n_src - 1);
    return TIGA_OK;
}

/* ---- owning ---- */
static int64_t transposed_bits(const tiga_context *ctx, const tiga_csr *csr) {
    int64_t most = csr->n_edges > csr->n_dst ? csr->n_edges : csr->n_dst;
    return ctx->wide_from > 0 && most >= ctx->wide_from ? 64 : rt_bits_for(most);
}

tiga_status rt_graph_take(tiga_context *ctx, tiga_csr csr, void *offsets, void *sources, tiga_graph **out) {
    *out = NULL;
    tiga_graph *g = base_alloc_zero(sizeof *g);
    if (!g || pthread_mutex_init(&g->lock, NULL) != 0) {
        base_free(g);
        rt_mem_free(offsets);
        rt_mem_free(sources);
        return rt_fail(ctx, TIGA_E_MEMORY, "the graph: out of memory");
    }
    g->csr = csr;
    g->own_offsets = offsets;
    g->own_sources = sources;
    g->transposed_bits = transposed_bits(ctx, &csr);
    atomic_init(&g->refs, 1);
    *out = g;
    return TIGA_OK;
}

tiga_graph *tiga_graph_retain(tiga_graph *g) {
    if (g)
        atomic_fetch_add(&g->refs, 1);
    return g;
}

void tiga_graph_free(tiga_graph *g) {
    if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
        return;
    rt_mem_free(g->own_offsets);
    rt_mem_free(g->own_sources);
    rt_mem_free(g->order);
    if (g->has_transposed) {
        rt_mem_free((void *)(uintptr_t)g->transposed.offsets);
        rt_mem_free((void *)(uintptr_t)g->transposed.sources);
        rt_mem_free(g->edge_of);
    }
    pthread_mutex_destroy(&g->lock);
    base_free(g);
}

const tiga_csr *tiga_graph_csr(const tiga_graph *g) { return g ? &g->csr : NULL; }
const int64_t *tiga_graph_edge_order(const tiga_graph *g) { return g ? g->order : NULL; }

/* ---- from rows ---- */
typedef struct narrow {
    const void *from;
    int64_t from_bits, to_bits, n, n_tasks;
    void *to;
} narrow;

static void narrow_task(void *arg, int64_t task, int thread) {
    (void)thread;
    const narrow *w = arg;
    int64_t begin, end;
    rt_task_range(w->n, w->n_tasks, task, &begin, &end);
    if (w->from_bits == w->to_bits) {
        size_t unit = (size_t)w->to_bits / 8;
        memcpy((char *)w->to + (size_t)begin * unit, (const char *)w->from + (size_t)begin * unit,
               (size_t)(end - begin) * unit);
    } else if (w->to_bits == 32) {
        for (int64_t i = begin; i < end; i++)
            ((int32_t *)w->to)[i] = (int32_t)((const int64_t *)w->from)[i];
    } else {
        for (int64_t i = begin; i < end; i++)
            ((int64_t *)w->to)[i] = ((const int32_t *)w->from)[i];
    }
}

tiga_status rt_graph_copy(tiga_context *ctx, const tiga_csr *from, tiga_graph **out) {
    tiga_csr csr = *from;
    void *offsets = NULL, *sources = NULL;
    csr.source_bits = rt_bits_for(csr.n_src);
    tiga_status status = rt_mem_take(ctx, csr.n_dst + 1, 8, false, "offsets of the graph", &offsets);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, csr.n_edges, csr.source_bits / 8, false, "sources of the graph", &sources);
    if (status == TIGA_OK) {
        narrow o = {from->offsets, 64, 64, csr.n_dst + 1, rt_n_tasks(csr.n_dst + 1, 1 << 17), offsets};
        narrow s = {from->sources, from->source_bits, csr.source_bits, csr.n_edges, rt_n_tasks(csr.n_edges, 1 << 17),
                    sources};
        if (!rt_parallel_for(ctx, 0, o.n_tasks, narrow_task, &o) ||
            !rt_parallel_for(ctx, 0, s.n_tasks, narrow_task, &s))
            status = rt_fail(ctx, TIGA_E_INTERRUPTED, "copying the graph: interrupted");
    }
    if (status != TIGA_OK) {
        rt_mem_free(offsets);
        rt_mem_free(sources);
        return status;
    }
    csr.offsets = offsets;
    csr.sources = sources;
    return rt_graph_take(ctx, csr, offsets, sources, out);
}

static tiga_status check_csr_arguments(tiga_context *ctx, const tiga_csr *csr, int mode) {
    static const char who[] = "tiga_graph_from_csr";
    if (csr->n_dst < 0 || csr->n_src < 0)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: n_dst = %lld, n_src = %lld: a size is negative", who,
                       (long long)csr->n_dst, (long long)csr->n_src);
    if (csr->n_dst > RT_MAX_NODES || csr->n_src > RT_MAX_NODES)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: more than 2^56 nodes", who);
    if (csr->source_bits != 32 && csr->source_bits != 64)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: source_bits is %lld, not 32 or 64", who, (long long)csr->source_bits);
    if (mode != TIGA_BORROW && mode != TIGA_COPY)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: mode %d is neither TIGA_BORROW nor TIGA_COPY", who, mode);
    if (!csr->offsets)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: offsets is NULL", who);
    if ((uintptr_t)csr->offsets % 8 ||
        (csr->offsets[csr->n_dst] > 0 && (uintptr_t)csr->sources % ((uintptr_t)csr->source_bits / 8)))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: an array is not aligned to the size of its elements", who);
    return TIGA_OK;
}

tiga_status tiga_graph_from_csr(tiga_context *ctx, int64_t n_dst, int64_t n_src, const int64_t *offsets,
                                const void *sources, int source_bits, int mode, tiga_graph **out) {
    static const char who[] = "tiga_graph_from_csr";
    if (!ctx || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: an argument is NULL", who);
    *out = NULL;
    RT_TURN(ctx);
    rt_begin(ctx);
    tiga_csr csr = {n_dst, n_src, 0, offsets, sources, source_bits};
    tiga_status status = check_csr_arguments(ctx, &csr, mode);
    if (status == TIGA_OK)
        status = rt_check_offsets(ctx, who, &csr);
    if (status != TIGA_OK)
        return status;
    csr.n_edges = offsets[n_dst];
    if (csr.n_edges > 0 && !sources)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: sources is NULL, offsets promise %lld edges", who,
                       (long long)csr.n_edges);
    status = rt_check_sources(ctx, who, &csr);
    if (status != TIGA_OK)
        return status;
    return mode == TIGA_COPY ? rt_graph_copy(ctx, &csr, out) : rt_graph_take(ctx, csr, NULL, NULL, out);
}

/* ---- from edges ---- */
void rt_edges_fini(rt_edges *e) {
    rt_mem_free(e->dst);
    rt_mem_free(e->src);
    rt_mem_free(e->values);
    memset(e, 0, sizeof *e);
}

typedef struct built {
    tiga_csr csr;
    void *offsets, *sources;
    int64_t *order, *values;
} built;

static tiga_status allocate(tiga_context *ctx, const char *what, const rt_edges *e, bool keep_order, bool keep_values,
                            built *b) {
    b->csr = (tiga_csr){e->n_dst, e->n_src, e->n, NULL, NULL, rt_bits_for(e->n_src)};
    tiga_status status = rt_mem_take(ctx, e->n_dst + 1, 8, false, what, &b->offsets);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, e->n, b->csr.source_bits / 8, false, what, &b->sources);
    if (status == TIGA_OK && keep_order)
        status = rt_mem_take(ctx, e->n, 8, false, what, (void **)&b->order);
    if (status == TIGA_OK && keep_values)
        status = rt_mem_take(ctx, e->n, 8, false, what, (void **)&b->values);
    b->csr.offsets = b->offsets;
    b->csr.sources = b->sources;
    return status;
}

static void drop(built *b) {
    rt_mem_free(b->offsets);
    rt_mem_free(b->sources);
    rt_mem_free(b->order);
    rt_mem_free(b->values);
}

tiga_status rt_graph_from_edges(tiga_context *ctx, const char *where, const rt_edges *e, bool keep_order,
                                tiga_graph **out, tiga_array *values) {
    *out = NULL;
    built b = {0};
    bool keep_values = values && e->values;
    tiga_status status = allocate(ctx, where, e, keep_order, keep_values, &b);
    if (status == TIGA_OK) {
        rt_sort s = {.n = e->n,
                     .n_keys = e->n_dst,
                     .keys = e->dst,
                     .key_bits = 64,
                     .payload = e->src,
                     .payload_bits = 64,
                     .out_bits = b.csr.source_bits,
                     .payload8 = keep_values ? e->values : NULL,
                     .offsets = b.offsets,
                     .out_payload = b.sources,
                     .out_payload8 = b.values,
                     .order = b.order,
                     .order_bits = 64};
        status = rt_sort_run(ctx, &s);
    }
    if (status == TIGA_OK) {
        status = rt_graph_take(ctx, b.csr, b.offsets, b.sources, out);
        b.offsets = b.sources = NULL; /* taken, or freed */
    }
    if (status != TIGA_OK) {
        drop(&b);
        return status;
    }
    (*out)->order = b.order;
    if (keep_values) {
        *values = tiga_array_borrow(b.values, e->value_dtype, 1, &e->n);
        values->owned = 1;
    }
    return TIGA_OK;
}

typedef struct ends {
    const int64_t *dst, *src;
    int64_t n, n_dst, n_src, n_tasks;
    _Atomic int64_t first_bad;
} ends;

static void ends_task(void *arg, int64_t task, int thread) {
    (void)thread;
    ends *w = arg;
    int64_t begin, end;
    rt_task_range(w->n, w->n_tasks, task, &begin, &end);
    for (int64_t e = begin; e < end; e++)
        if ((uint64_t)w->dst[e] >= (uint64_t)w->n_dst || (uint64_t)w->src[e] >= (uint64_t)w->n_src) {
            rt_atomic_min(&w->first_bad, e);
            return;
        }
}

static tiga_status check_ends(tiga_context *ctx, const char *who, ends *w) {
    if (!rt_parallel_for(ctx, 0, w->n_tasks, ends_task, w))
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", who);
    int64_t e = w->first_bad;
    if (e == INT64_MAX)
        return TIGA_OK;
    if ((uint64_t)w->dst[e] >= (uint64_t)w->n_dst)
        return rt_fail(ctx, TIGA_E_RANGE, "%s: edge %lld: destination %lld is not in 0 .. %lld", who, (long long)e,
                       (long long)w->dst[e], (long long)w->n_dst - 1);
    return rt_fail(ctx, TIGA_E_RANGE, "%s: edge %lld: source %lld is not in 0 .. %lld", who, (long long)e,
                   (long long)w->src[e], (long long)w->n_src - 1);
}

tiga_status tiga_graph_from_coo(tiga_context *ctx, int64_t n_dst, int64_t n_src, int64_t n_edges, const int64_t *dst,
                                const int64_t *src, tiga_graph **out) {
    static const char who[] = "tiga_graph_from_coo";
    if (!ctx || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: an argument is NULL", who);
    *out = NULL;
    RT_TURN(ctx);
    rt_begin(ctx);
    if (n_dst < 0 || n_src < 0 || n_edges < 0)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: n_dst = %lld, n_src = %lld, n_edges = %lld: a size is negative", who,
                       (long long)n_dst, (long long)n_src, (long long)n_edges);
    if (n_dst > RT_MAX_NODES || n_src > RT_MAX_NODES)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: more than 2^56 nodes", who);
    if (n_edges > 0 && (!dst || !src))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: an array of %lld edges is NULL", who, (long long)n_edges);
    if (n_edges > 0 && ((uintptr_t)dst | (uintptr_t)src) % 8)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: an array is not aligned to the size of its elements", who);
    ends w = {dst, src, n_edges, n_dst, n_src, rt_n_tasks(n_edges, 1 << 18), INT64_MAX};
    tiga_status status = check_ends(ctx, who, &w);
    if (status != TIGA_OK)
        return status;
    rt_edges e = {.n = n_edges, .n_dst = n_dst, .n_src = n_src};
    e.dst = (int64_t *)(uintptr_t)dst; /* only read */
    e.src = (int64_t *)(uintptr_t)src;
    return rt_graph_from_edges(ctx, who, &e, true, out, NULL);
}
