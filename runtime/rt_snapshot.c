/* What a graph file says beside the relation: the transposed relation and the figures.  Both follow from the relation, so
 * nothing is believed; what is not exactly what we would make ourselves is refused.
 *
 * Two lists of edges (number, row, source), one in the order of the rows and one in that of the sources, are to be the
 * same set.  Looking each edge up would cost as much as making the list anew: it is one cache miss an edge either way.
 * Instead both are walked in order and folded into product(z + number + a * row + b * source) modulo the prime 2^61 - 1,
 * with z, a, b drawn for the occasion: two sets that differ agree for at most n_edges of the 2^61 z, whoever made the
 * file.  The numbers of a source must rise, which leaves one order, and be in range, so that even then nothing is read
 * out of bounds.  Which edge is wrong is looked up only when one is. */
#include "runtime/runtime.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const uint64_t PRIME = ((uint64_t)1 << 61) - 1;

typedef struct fold {
    const tiga_csr *csr;
    const void *edge_of; /* number of each edge, as wide as the sources; NULL: its place */
    uint64_t z, of_row, of_source; /* factors of its rows and its sources */
    int64_t n_tasks;
    atomic_bool bad;
    _Atomic uint64_t product;
    _Atomic int64_t self_loops, duplicates;
} fold;

/* Below 2^61 + 4, for x below that and y < 2^63. */
static inline uint64_t times(uint64_t x, uint64_t y) {
    unsigned __int128 product = (unsigned __int128)x * y;
    uint64_t low = (uint64_t)product & PRIME, high = (uint64_t)(product >> 61 & PRIME),
             top = (uint64_t)(product >> 122);
    uint64_t sum = low + high + top;
    return (sum & PRIME) + (sum >> 61);
}

static inline int64_t at(const void *array, int64_t bits, int64_t i) {
    return bits == 32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

/* The row that edge k is in: offsets[row] <= k < offsets[row + 1]. */
static int64_t row_of(const tiga_csr *t, int64_t k) {
    int64_t low = 0, high = t->n_dst;
    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        *(t->offsets[mid] <= k ? &low : &high) = mid;
    }
    return low;
}

typedef struct part { /* of a fold, by one task */
    uint64_t even, odd; /* two products, so that one multiplication need not wait for the other */
    int64_t self_loops, duplicates;
} part;

/* Edges begin .. end of one row.  false: a number is out of range or does not rise.  Inlined for each kind of columns. */
static inline bool fold_row(const fold *w, int64_t row, int64_t begin, int64_t end, int64_t bits, part *p) {
    const tiga_csr *c = w->csr;
    uint64_t of_row = times((uint64_t)row, w->of_row) + w->z;
    int64_t before = -1, source_before = -1, loops = 0, twice = 0;
    bool bad = false;
    if (begin > c->offsets[row]) { /* the row began in another task */
        before = w->edge_of ? at(w->edge_of, bits, begin - 1) : begin - 1;
        source_before = at(c->sources, bits, begin - 1);
    }
    for (int64_t k = begin; k < end; k++) {
        int64_t e = w->edge_of ? at(w->edge_of, bits, k) : k, source = at(c->sources, bits, k);
        bad |= e <= before || e >= c->n_edges || (uint64_t)source >= (uint64_t)c->n_src;
        uint64_t x =
            of_row + (uint64_t)(e & INT64_MAX >> 3) + times((uint64_t)source & (uint64_t)INT64_MAX >> 2, w->of_source);
        uint64_t next = times(p->even, (x & PRIME) + (x >> 61));
        p->even = p->odd;
        p->odd = next;
        loops += source == row;
        twice += source == source_before; /* sources rise with the numbers */
        before = e;
        source_before = source;
    }
    p->self_loops += loops;
    p->duplicates += twice;
    return !bad;
}

static void fold_task(void *arg, int64_t task, int thread) {
    (void)thread;
    fold *w = arg;
    const tiga_csr *c = w->csr;
    part p = {1, 1, 0, 0};
    int64_t begin, end;
    rt_task_range(c->n_edges, w->n_tasks, task, &begin, &end);
    for (int64_t row = row_of(c, begin); begin < end; row++) {
        int64_t stop = c->offsets[row + 1] < end ? c->offsets[row + 1] : end;
        bool good =
            c->source_bits == 32 ? fold_row(w, row, begin, stop, 32, &p) : fold_row(w, row, begin, stop, 64, &p);
        if (!good) {
            atomic_store(&w->bad, true);
            return;
        }
        begin = stop;
    }
    uint64_t mine = times(p.even, p.odd), all = atomic_load(&w->product);
    while (!atomic_compare_exchange_weak(&w->product, &all, times(all, mine))) {
    }
    atomic_fetch_add(&w->self_loops, p.self_loops);
    atomic_fetch_add(&w->duplicates, p.duplicates);
}

static void draw(uint64_t numbers[3]) {
    if (getrandom(numbers, 3 * sizeof *numbers, GRND_NONBLOCK) != 3 * sizeof *numbers) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        uint64_t seed[4] = {(uint64_t)t.tv_nsec, (uint64_t)t.tv_sec, (uint64_t)getpid(), (uintptr_t)numbers};
        for (int i = 0; i < 3; i++) {
            seed[0]++;
            numbers[i] = base_hash_bytes(seed, sizeof seed).lo;
        }
    }
    for (int i = 0; i < 3; i++)
        numbers[i] = numbers[i] % (PRIME - 1) + 1;
}

/* ---- when something is wrong: what ---- */
typedef struct search {
    const tiga_csr *csr, *transposed;
    const void *edge_of;
    int64_t n_tasks;
    _Atomic int64_t first_bad;
} search;

static bool is_edge(const tiga_csr *c, int64_t e, int64_t row, int64_t source) {
    return (uint64_t)e < (uint64_t)c->n_edges && (uint64_t)row < (uint64_t)c->n_dst && c->offsets[row] <= e &&
           e < c->offsets[row + 1] && at(c->sources, c->source_bits, e) == source;
}

static void search_task(void *arg, int64_t task, int thread) {
    (void)thread;
    search *w = arg;
    const tiga_csr *t = w->transposed;
    int64_t begin, end, bits = t->source_bits;
    rt_task_range(t->n_edges, w->n_tasks, task, &begin, &end);
    int64_t source = row_of(t, begin);
    for (int64_t k = begin; k < end; k++) {
        while (t->offsets[source + 1] <= k)
            source++;
        int64_t e = at(w->edge_of, bits, k);
        bool rises = k == t->offsets[source] || e > at(w->edge_of, bits, k - 1);
        if (!rises || !is_edge(w->csr, e, at(t->sources, bits, k), source)) {
            rt_atomic_min(&w->first_bad, k);
            return;
        }
    }
}

static tiga_status fail_edge(tiga_context *ctx, const char *where, const fold *f, const tiga_csr *csr) {
    const tiga_csr *t = f->csr;
    search w = {csr, t, f->edge_of, f->n_tasks, INT64_MAX};
    if (!rt_parallel_for(ctx, 0, w.n_tasks, search_task, &w))
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", where);
    int64_t k = w.first_bad;
    BASE_CHECK(k != INT64_MAX); /* the products of equal sets are equal */
    return rt_fail(ctx, TIGA_E_FORMAT,
                   "%s: the transposed relation in the file is not that of the graph (its edge %lld: edge %lld to row "
                   "%lld, source %lld); write the file anew",
                   where, (long long)k, (long long)at(f->edge_of, t->source_bits, k),
                   (long long)at(t->sources, t->source_bits, k), (long long)row_of(t, k));
}

/* ---- all of it ---- */
static tiga_status check_offsets(tiga_context *ctx, const char *where, const tiga_csr *t) {
    base_str s = {0};
    base_str_addf(&s, "%s (%s)", where, RT_NPZ_OFFSETS);
    tiga_status status = s.failed ? rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", where)
                                  : rt_check_offsets(ctx, base_str_text(&s), t);
    base_str_fini(&s);
    if (status == TIGA_OK && t->offsets[t->n_dst] != t->n_edges)
        status = rt_fail(ctx, TIGA_E_FORMAT, "%s (%s): ends with %lld, the graph has %lld edges", where, RT_NPZ_OFFSETS,
                         (long long)t->offsets[t->n_dst], (long long)t->n_edges);
    return status;
}

/* Self loops and duplicates of the relation go into *stats. */
static tiga_status check_edges(tiga_context *ctx, const char *where, const tiga_csr *csr, const tiga_csr *transposed,
                               const void *edge_of, tiga_graph_stats *stats) {
    uint64_t by[3];
    draw(by);
    int64_t n_tasks = rt_n_tasks(csr->n_edges, 1 << 16);
    fold rows = {csr, NULL, by[0], by[1], by[2], n_tasks, false, 1, 0, 0};
    fold sources = {transposed, edge_of, by[0], by[2], by[1], n_tasks, false, 1, 0, 0};
    if (!rt_parallel_for(ctx, 0, n_tasks, fold_task, &sources) ||
        (!sources.bad && !rt_parallel_for(ctx, 0, n_tasks, fold_task, &rows)))
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", where);
    if (sources.bad || rows.product % PRIME != sources.product % PRIME)
        return fail_edge(ctx, where, &sources, csr);
    stats->self_loops = csr->n_dst == csr->n_src ? sources.self_loops : 0;
    stats->duplicate_edges = sources.duplicates;
    return TIGA_OK;
}

void rt_snapshot_figures(const tiga_graph_stats *stats, int64_t figures[RT_FIGURES]) {
    int64_t first[RT_FIGURES - 64] = {stats->max_degree, stats->empty_rows, stats->self_loops, stats->duplicate_edges};
    memcpy(figures, first, sizeof first);
    memcpy(figures + RT_FIGURES - 64, stats->degrees, sizeof stats->degrees);
}

static tiga_status check_figures(tiga_context *ctx, const char *where, const tiga_graph_stats *stats,
                                 const int64_t *said) {
    int64_t right[RT_FIGURES];
    rt_snapshot_figures(stats, right);
    for (int i = 0; i < RT_FIGURES; i++)
        if (said[i] != right[i])
            return rt_fail(ctx, TIGA_E_FORMAT,
                           "%s (%s): number %d is %lld, for this graph it would be %lld; write the file anew", where,
                           RT_NPZ_FIGURES, i, (long long)said[i], (long long)right[i]);
    return TIGA_OK;
}

tiga_status rt_snapshot_adopt(tiga_context *ctx, const char *where, tiga_graph *g, const rt_snapshot *s) {
    const tiga_csr *c = &g->csr;
    tiga_csr t = {c->n_src, c->n_dst, c->n_edges, s->offsets, s->sources, g->transposed_bits};
    tiga_graph_stats stats;
    tiga_status status = check_offsets(ctx, where, &t);
    if (status == TIGA_OK)
        status = rt_stats_of_rows(ctx, where, c, &stats);
    if (status == TIGA_OK)
        status = check_edges(ctx, where, c, &t, s->edge_of, &stats);
    if (status != TIGA_OK)
        return status;
    status = check_figures(ctx, where, &stats, s->figures);
    if (status != TIGA_OK)
        return status;
    g->transposed = t;
    g->edge_of = s->edge_of;
    g->stats = stats;
    g->has_transposed = g->has_stats = true;
    return TIGA_OK;
}
