/* Generated graphs.  Random numbers are a function of (seed, edge, counter), integers only: the same bytes on every
 * machine and with any number of threads. */
#include "runtime/runtime.h"

#include <string.h>

static inline uint64_t mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

static inline uint64_t draw(uint64_t seed, uint64_t edge, uint64_t counter) {
    return mix(mix(seed + 0x632be59bd9b4e019ULL * edge) + counter);
}

static inline int64_t below(uint64_t random, int64_t n) {
    return (int64_t)(((unsigned __int128)random * (uint64_t)n) >> 64);
}

/* A permutation of 0 .. 2^scale - 1 without a table: each step can be undone. */
static uint64_t scramble(uint64_t id, int scale, uint64_t seed) {
    uint64_t mask = scale == 64 ? ~0ULL : ((uint64_t)1 << scale) - 1;
    int half = scale / 2 + 1;
    for (uint64_t round = 0; round < 4; round++) {
        id = (id * (mix(seed + 2 * round) | 1) + mix(seed + 2 * round + 1)) & mask;
        id ^= half < scale ? id >> half : 0;
    }
    return id;
}

typedef struct generate {
    int scale;
    int64_t n_nodes, degree, n, n_tasks;
    uint64_t seed;
    int64_t *dst, *src; /* rmat */
    int64_t *offsets;
    void *sources; /* uniform, local */
    int64_t bits;
    bool local;
} generate;

/* One quadrant a level, with 32 random bits: a = .57, b = .19, c = .19 */
static void rmat_edge(const generate *w, int64_t e) {
    const uint32_t a = 2448131358U, ab = 3264175145U, abc = 4080218931U;
    uint64_t src = 0, dst = 0, random = 0;
    for (int level = 0; level < w->scale; level++) {
        random = level % 2 == 0 ? draw(w->seed, (uint64_t)e, (uint64_t)level / 2) : random >> 32;
        uint32_t r = (uint32_t)random;
        src = src << 1 | (r >= ab);
        dst = dst << 1 | ((r >= a && r < ab) || r >= abc);
    }
    w->src[e] = (int64_t)scramble(src, w->scale, w->seed);
    w->dst[e] = (int64_t)scramble(dst, w->scale, w->seed);
}

static void rmat_task(void *arg, int64_t task, int thread) {
    (void)thread;
    const generate *w = arg;
    int64_t begin, end;
    rt_task_range(w->n, w->n_tasks, task, &begin, &end);
    for (int64_t e = begin; e < end; e++)
        rmat_edge(w, e);
}

tiga_status tiga_graph_rmat(tiga_context *ctx, int scale, int64_t edge_factor, uint64_t seed, tiga_graph **out) {
    if (!ctx || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_graph_rmat: an argument is NULL");
    *out = NULL;
    RT_TURN(ctx);
    rt_begin(ctx);
    if (scale < 0 || scale > 40 || edge_factor < 0 || edge_factor > ((int64_t)1 << 56) >> scale)
        return rt_fail(ctx, TIGA_E_ARGUMENT,
                       "tiga_graph_rmat: scale %d must be in 0 .. 40 and edge_factor %lld positive and "
                       "below 2^56 edges in all",
                       scale, (long long)edge_factor);
    generate w = {.scale = scale, .n_nodes = (int64_t)1 << scale, .seed = mix(seed)};
    w.n = w.n_nodes * edge_factor;
    w.n_tasks = rt_n_tasks(w.n, 1 << 15);
    tiga_status status = rt_mem_take(ctx, w.n, 8, false, "tiga_graph_rmat", (void **)&w.dst);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, w.n, 8, false, "tiga_graph_rmat", (void **)&w.src);
    if (status == TIGA_OK && !rt_parallel_for(ctx, 0, w.n_tasks, rmat_task, &w))
        status = rt_fail(ctx, TIGA_E_INTERRUPTED, "tiga_graph_rmat: interrupted");
    rt_edges e = {.n = w.n, .n_dst = w.n_nodes, .n_src = w.n_nodes, .dst = w.dst, .src = w.src};
    if (status == TIGA_OK)
        status = rt_graph_from_edges(ctx, "tiga_graph_rmat", &e, false, out, NULL);
    rt_edges_fini(&e);
    return status;
}

static inline void put(const generate *w, int64_t e, int64_t source) {
    if (w->bits == 32)
        ((int32_t *)w->sources)[e] = (int32_t)source;
    else
        ((int64_t *)w->sources)[e] = source;
}

/* The degree rows next to i, lower ones first; i itself only when the degree is odd. */
static int64_t neighbour(const generate *w, int64_t i, int64_t k) {
    int64_t half = w->degree / 2, step = k - half;
    step += w->degree % 2 == 0 && k >= half;
    int64_t at = (i + step % w->n_nodes) % w->n_nodes;
    return at < 0 ? at + w->n_nodes : at;
}

static void rows_task(void *arg, int64_t task, int thread) {
    (void)thread;
    const generate *w = arg;
    int64_t begin, end;
    rt_task_range(w->n_nodes, w->n_tasks, task, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        w->offsets[i + 1] = (i + 1) * w->degree;
        for (int64_t k = 0; k < w->degree; k++) {
            int64_t e = i * w->degree + k;
            put(w, e, w->local ? neighbour(w, i, k) : below(draw(w->seed, (uint64_t)e, 0), w->n_nodes));
        }
    }
}

static tiga_status regular(tiga_context *ctx, const char *who, generate *w, tiga_graph **out) {
    if (!ctx || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: an argument is NULL", who);
    *out = NULL;
    RT_TURN(ctx);
    rt_begin(ctx);
    if (w->n_nodes < 0 || w->degree < 0 || w->n_nodes > RT_MAX_NODES || w->degree > RT_MAX_NODES ||
        __builtin_mul_overflow(w->n_nodes, w->degree, &w->n))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: n_nodes = %lld, degree = %lld: negative or too large", who,
                       (long long)w->n_nodes, (long long)w->degree);
    if (w->local && w->n_nodes > 0 && w->degree > w->n_nodes) /* a band may close, it does not wind around twice */
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: degree = %lld, there are only %lld rows to be next to", who,
                       (long long)w->degree, (long long)w->n_nodes);
    w->bits = rt_bits_for(w->n_nodes);
    w->n_tasks = rt_n_tasks(w->n_nodes, 1 << 12);
    tiga_status status = rt_mem_take(ctx, w->n_nodes + 1, 8, false, who, (void **)&w->offsets);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, w->n, w->bits / 8, false, who, &w->sources);
    if (status == TIGA_OK) {
        w->offsets[0] = 0;
        if (!rt_parallel_for(ctx, 0, w->n_tasks, rows_task, w))
            status = rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", who);
    }
    if (status != TIGA_OK) {
        rt_mem_free(w->offsets);
        rt_mem_free(w->sources);
        return status;
    }
    tiga_csr csr = {w->n_nodes, w->n_nodes, w->n, w->offsets, w->sources, w->bits};
    return rt_graph_take(ctx, csr, w->offsets, w->sources, out);
}

tiga_status tiga_graph_uniform(tiga_context *ctx, int64_t n_nodes, int64_t degree, uint64_t seed, tiga_graph **out) {
    generate w = {.n_nodes = n_nodes, .degree = degree, .seed = mix(seed)};
    return regular(ctx, "tiga_graph_uniform", &w, out);
}

tiga_status tiga_graph_local(tiga_context *ctx, int64_t n_nodes, int64_t degree, tiga_graph **out) {
    generate w = {.n_nodes = n_nodes, .degree = degree, .local = true};
    return regular(ctx, "tiga_graph_local", &w, out);
}
