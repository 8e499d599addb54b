/* Graphs: validation, stable order, transposition, figures, generators; the same with any number of threads. */
#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static tiga_context *ctx;
static tiga_context *context_of(int threads) {
    tiga_context_options o = tiga_context_defaults();
    tiga_context *c;
    o.threads = threads;
    cr_assert_eq(tiga_context_new(&o, &c), TIGA_OK);
    return c;
}
static void open_context(void) { ctx = context_of(3); }
static void close_context(void) { tiga_context_free(ctx); }
TestSuite(graph, .init = open_context, .fini = close_context);

#define FAILS(call, status, words)                                                                                     \
    do {                                                                                                               \
        tiga_error_clear(ctx);                                                                                         \
        cr_assert_eq(call, status);                                                                                    \
        cr_assert(strstr(tiga_error_text(ctx), words), "'%s' lacks '%s'", tiga_error_text(ctx), words);                \
    } while (0)

static int64_t number_at(const void *array, int64_t bits, int64_t i) {
    return bits == 32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

static int64_t source(const tiga_csr *c, int64_t e) { return number_at(c->sources, c->source_bits, e); }

Test(graph, from_rows_copied_and_borrowed) {
    int64_t offsets[] = {0, 2, 2, 5}, sources[] = {3, 0, 1, 1, 2};
    tiga_graph *g;
    cr_assert_eq(tiga_graph_from_csr(ctx, 3, 4, offsets, sources, 64, TIGA_COPY, &g), TIGA_OK);
    const tiga_csr *c = tiga_graph_csr(g);
    cr_assert(c->n_dst == 3 && c->n_src == 4 && c->n_edges == 5 && c->source_bits == 32);
    cr_assert((const void *)c->offsets != offsets && source(c, 0) == 3 && source(c, 4) == 2);
    cr_assert_null(tiga_graph_edge_order(g));
    cr_assert_eq(tiga_graph_retain(g), g);
    tiga_graph_free(g);
    cr_assert_eq(tiga_graph_csr(g)->n_edges, 5); /* one owner left */
    tiga_graph_free(g);
    cr_assert_eq(tiga_graph_from_csr(ctx, 3, 4, offsets, sources, 64, TIGA_BORROW, &g), TIGA_OK);
    c = tiga_graph_csr(g);
    cr_assert(c->offsets == offsets && c->sources == sources && c->source_bits == 64);
    tiga_graph_free(g);
    cr_assert_eq(tiga_graph_from_csr(ctx, 3, (int64_t)1 << 40, offsets, sources, 64, TIGA_COPY, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_csr(g)->source_bits, 64);
    tiga_graph_free(g);
    cr_assert_eq(tiga_graph_from_csr(ctx, 0, 0, offsets, NULL, 32, TIGA_COPY, &g), TIGA_OK);
    tiga_graph_free(g);
    tiga_graph_free(NULL);
}

Test(graph, from_rows_refused) {
    int64_t ok[] = {0, 2, 5}, first[] = {1, 2, 5}, falls[] = {0, 3, 2}, sources[] = {0, 1, 2, 0, 1};
    int32_t negative[] = {0, 1, 2, -7, 1}, large[] = {0, 1, 2, 0, 3};
    tiga_graph *g;
    FAILS(tiga_graph_from_csr(ctx, 2, 3, first, sources, 64, TIGA_COPY, &g), TIGA_E_RANGE, "offsets begin with 1");
    FAILS(tiga_graph_from_csr(ctx, 2, 3, falls, sources, 64, TIGA_COPY, &g), TIGA_E_RANGE,
          "row 1: offsets fall from 3 to 2");
    FAILS(tiga_graph_from_csr(ctx, 2, 3, ok, negative, 32, TIGA_COPY, &g), TIGA_E_RANGE,
          "edge 3 (row 1): source -7 is not in 0 .. 2");
    FAILS(tiga_graph_from_csr(ctx, 2, 3, ok, large, 32, TIGA_BORROW, &g), TIGA_E_RANGE,
          "edge 4 (row 1): source 3 is not in 0 .. 2");
    FAILS(tiga_graph_from_csr(ctx, 2, 3, ok, NULL, 32, TIGA_COPY, &g), TIGA_E_ARGUMENT, "sources is NULL");
    FAILS(tiga_graph_from_csr(ctx, 2, 3, NULL, sources, 64, TIGA_COPY, &g), TIGA_E_ARGUMENT, "offsets is NULL");
    FAILS(tiga_graph_from_csr(ctx, 2, 3, ok, sources, 16, TIGA_COPY, &g), TIGA_E_ARGUMENT, "source_bits is 16");
    FAILS(tiga_graph_from_csr(ctx, 2, 3, ok, sources, 64, 7, &g), TIGA_E_ARGUMENT, "mode 7");
    FAILS(tiga_graph_from_csr(ctx, -2, 3, ok, sources, 64, TIGA_COPY, &g), TIGA_E_ARGUMENT, "negative");
    FAILS(tiga_graph_from_csr(ctx, 2, 3, ok, (char *)sources + 1, 64, TIGA_COPY, &g), TIGA_E_ARGUMENT, "aligned");
    cr_assert_null(g);
    cr_assert_eq(tiga_graph_from_csr(NULL, 2, 3, ok, sources, 64, TIGA_COPY, &g), TIGA_E_ARGUMENT);
}

Test(graph, from_edges_refused) {
    int64_t dst[] = {0, 1, 2}, src[] = {0, 5, 1}, bad[] = {0, -1, 1};
    tiga_graph *g;
    FAILS(tiga_graph_from_coo(ctx, 2, 6, 3, dst, src, &g), TIGA_E_RANGE, "edge 2: destination 2 is not in 0 .. 1");
    FAILS(tiga_graph_from_coo(ctx, 3, 5, 3, dst, src, &g), TIGA_E_RANGE, "edge 1: source 5 is not in 0 .. 4");
    FAILS(tiga_graph_from_coo(ctx, 3, 5, 3, dst, bad, &g), TIGA_E_RANGE, "edge 1: source -1");
    FAILS(tiga_graph_from_coo(ctx, 3, 5, -3, dst, bad, &g), TIGA_E_ARGUMENT, "negative");
    FAILS(tiga_graph_from_coo(ctx, 3, 5, 3, NULL, bad, &g), TIGA_E_ARGUMENT, "NULL");
}

/* Lists and arrays of other languages give any address when there is nothing at it. */
Test(graph, addresses_of_nothing) {
    int64_t offsets[] = {0, 0};
    void *odd = (char *)offsets + 1;
    tiga_graph *g;
    cr_assert_eq(tiga_graph_from_coo(ctx, 2, 2, 0, odd, odd, &g), TIGA_OK, "%s", tiga_error_text(ctx));
    tiga_graph_free(g);
    for (int mode = TIGA_BORROW; mode <= TIGA_COPY; mode++) {
        cr_assert_eq(tiga_graph_from_csr(ctx, 1, 3, offsets, odd, 64, mode, &g), TIGA_OK, "%s", tiga_error_text(ctx));
        tiga_graph_free(g);
    }
}

/* A slow, obvious sort beside the parallel one. */
static void check_sorted(int threads, int64_t n_dst, int64_t n_src, int64_t n) {
    int64_t *dst = malloc((size_t)n * 8 + 8), *src = malloc((size_t)n * 8 + 8), at = 0;
    srand((unsigned)(n + n_dst));
    for (int64_t i = 0; i < n; i++) {
        dst[i] = i % 2 ? rand() % n_dst : n_dst / 2; /* one hub with half the edges */
        src[i] = rand() % n_src;
    }
    tiga_context *c = context_of(threads);
    tiga_graph *g;
    cr_assert_eq(tiga_graph_from_coo(c, n_dst, n_src, n, dst, src, &g), TIGA_OK, "%s", tiga_error_text(c));
    const tiga_csr *r = tiga_graph_csr(g);
    const int64_t *order = tiga_graph_edge_order(g);
    int64_t *next = calloc((size_t)n_dst + 1, 8);
    for (int64_t i = 0; i < n; i++)
        next[dst[i] + 1]++;
    for (int64_t d = 0; d < n_dst; d++)
        next[d + 1] += next[d];
    cr_assert(memcmp(next, r->offsets, (size_t)(n_dst + 1) * 8) == 0);
    for (int64_t i = 0; i < n; i++) {
        at = next[dst[i]]++;
        cr_assert(source(r, at) == src[i] && order[at] == i);
    }
    tiga_graph_free(g);
    tiga_context_free(c);
    free(dst);
    free(src);
    free(next);
}

Test(graph, from_edges_is_a_stable_sort) {
    for (int threads = 1; threads <= 5; threads += 2) {
        check_sorted(threads, 1, 1, 0);
        check_sorted(threads, 1, 9, 1000);
        check_sorted(threads, 7, 3, 50000);
        check_sorted(threads, 1000, 1000, 60000);
        check_sorted(threads, 40000, 10, 20000);
    }
}

static void check_transposed(int64_t bits) {
    tiga_graph *g;
    const tiga_csr *t, *again;
    const void *edge_of;
    tiga_graph_stats before, after;
    cr_assert_eq(tiga_graph_rmat(ctx, 10, 8, 3, &g), TIGA_OK);
    const tiga_csr *c = tiga_graph_csr(g);
    cr_assert_eq(tiga_graph_get_stats(ctx, g, &before), TIGA_OK);
    cr_assert_eq(tiga_graph_transposed(ctx, g, &t, &edge_of), TIGA_OK);
    cr_assert_eq(tiga_graph_get_stats(ctx, g, &after), TIGA_OK);
    cr_assert_eq(after.bytes - before.bytes, (c->n_src + 1) * 8 + 2 * c->n_edges * bits / 8);
    cr_assert(t->n_dst == c->n_src && t->n_src == c->n_dst && t->n_edges == c->n_edges &&
              t->offsets[t->n_dst] == c->n_edges && c->source_bits == 32 && t->source_bits == bits);
    int64_t *row = malloc((size_t)c->n_edges * 8);
    for (int64_t r = 0; r < c->n_dst; r++)
        for (int64_t e = c->offsets[r]; e < c->offsets[r + 1]; e++)
            row[e] = r;
    for (int64_t s = 0; s < t->n_dst; s++)
        for (int64_t k = t->offsets[s]; k < t->offsets[s + 1]; k++) {
            int64_t e = number_at(edge_of, bits, k);
            cr_assert(source(c, e) == s && row[e] == source(t, k));
            cr_assert(k == t->offsets[s] || e > number_at(edge_of, bits, k - 1));
        }
    cr_assert_eq(tiga_graph_transposed(ctx, g, &again, NULL), TIGA_OK);
    cr_assert_eq(again, t);
    free(row);
    tiga_graph_free(g);
}

Test(graph, transposed_and_kept) {
    check_transposed(32);
    ctx->wide_from = 1;
    check_transposed(64);
}

/* Sizes alone decide; the arrays are not looked at. */
static int64_t transposed_bits_of(int64_t n_dst, int64_t n_src, int64_t n_edges) {
    tiga_graph *g;
    tiga_csr csr = {.n_dst = n_dst, .n_src = n_src, .n_edges = n_edges, .source_bits = 32};
    cr_assert_eq(rt_graph_take(ctx, csr, NULL, NULL, &g), TIGA_OK);
    int64_t bits = g->transposed_bits;
    tiga_graph_free(g);
    return bits;
}

Test(graph, transposed_relations_are_as_wide_as_rows_and_edges_need) {
    const int64_t most = INT32_MAX;
    cr_assert_eq(transposed_bits_of(0, 0, 0), 32);
    cr_assert_eq(transposed_bits_of(most, most, most), 32);
    cr_assert_eq(transposed_bits_of(most + 1, 5, 5), 64);
    cr_assert_eq(transposed_bits_of(5, 5, most + 1), 64);
    cr_assert_eq(transposed_bits_of(5, most + 1, 5), 32); /* what it reads are rows */
    cr_assert_eq(transposed_bits_of(RT_MAX_NODES, RT_MAX_NODES, RT_MAX_NODES), 64);
    ctx->wide_from = 5;
    cr_assert_eq(transposed_bits_of(4, 9, 4), 32);
    cr_assert_eq(transposed_bits_of(5, 9, 4), 64);
    cr_assert_eq(transposed_bits_of(4, 9, 5), 64);
}

Test(graph, figures) {
    int64_t dst[] = {0, 0, 0, 2, 2, 3, 3, 3, 3}, src[] = {0, 1, 1, 2, 3, 0, 1, 0, 0};
    tiga_graph *g;
    tiga_graph_stats s;
    cr_assert_eq(tiga_graph_from_coo(ctx, 5, 5, 9, dst, src, &g), TIGA_OK);
    for (int twice = 0; twice < 2; twice++) {
        cr_assert_eq(tiga_graph_get_stats(ctx, g, &s), TIGA_OK);
        cr_assert(s.n_dst == 5 && s.n_src == 5 && s.n_edges == 9 && s.max_degree == 4 && s.empty_rows == 2);
        cr_assert_eq(s.self_loops, 2);
        cr_assert_eq(s.duplicate_edges, 3);
        cr_assert(s.mean_degree == 9.0 / 5);
        cr_assert_eq(s.bytes, 6 * 8 + 9 * 4 + 9 * 8);
    }
    tiga_graph_free(g);
    cr_assert_eq(tiga_graph_from_coo(ctx, 0, 0, 0, NULL, NULL, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_get_stats(ctx, g, &s), TIGA_OK);
    cr_assert(s.mean_degree == 0 && s.max_degree == 0 && s.empty_rows == 0);
    tiga_graph_free(g);
}

/* More sources than there is memory for, and tables of every size beside a plain count. */
Test(graph, duplicates_of_few_edges_among_many_sources) {
    int64_t dst[300], src[300], wide = ((int64_t)1 << 40) + 1;
    uint64_t state = 7;
    for (int round = 0; round < 60; round++) {
        int64_t n = round * 5, rows = 1 + round % 7, twice = 0;
        for (int64_t i = 0; i < n; i++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            dst[i] = (int64_t)(state >> 33) % rows;
            src[i] = (int64_t)(state >> 40) % (1 + round) * (round % 2 ? 1 : (int64_t)1 << 33);
            bool before = false;
            for (int64_t k = 0; k < i; k++)
                before |= dst[k] == dst[i] && src[k] == src[i];
            twice += before;
        }
        tiga_graph *g;
        tiga_graph_stats s;
        cr_assert_eq(tiga_graph_from_coo(ctx, rows, round % 2 ? 1 + round : wide, n, dst, src, &g), TIGA_OK);
        cr_assert_eq(tiga_graph_get_stats(ctx, g, &s), TIGA_OK, "%s", tiga_error_text(ctx));
        cr_assert_eq(s.duplicate_edges, twice, "round %d", round);
        tiga_graph_free(g);
    }
}

static base_hash128 fingerprint(const tiga_graph *g) {
    const tiga_csr *c = tiga_graph_csr(g);
    base_hasher h;
    base_hasher_init(&h);
    base_hasher_field(&h, c->offsets, (size_t)(c->n_dst + 1) * 8);
    base_hasher_field(&h, c->sources, (size_t)(c->n_edges * c->source_bits / 8));
    return base_hasher_digest(&h);
}

Test(graph, generators_do_not_depend_on_threads) {
    base_hash128 first[3] = {{0, 0}};
    for (int threads = 1; threads <= 4; threads++) {
        tiga_context *c = context_of(threads);
        tiga_graph *g[3];
        cr_assert_eq(tiga_graph_rmat(c, 13, 8, 42, &g[0]), TIGA_OK);
        cr_assert_eq(tiga_graph_uniform(c, 10000, 7, 42, &g[1]), TIGA_OK);
        cr_assert_eq(tiga_graph_local(c, 10000, 6, &g[2]), TIGA_OK);
        for (int i = 0; i < 3; i++) {
            base_hash128 d = fingerprint(g[i]);
            if (threads == 1)
                first[i] = d;
            cr_assert(d.lo == first[i].lo && d.hi == first[i].hi);
            tiga_graph_free(g[i]);
        }
        tiga_context_free(c);
    }
    char hex[33];
    base_hash_hex(first[0], hex); /* on every machine: a change of the generator is a change of every benchmark */
    cr_assert_str_eq(hex, "7399073a6ca284a56d378da59b18cfa0");
}

Test(graph, rmat_is_skewed_and_scrambled) {
    tiga_graph *g;
    tiga_graph_stats s;
    cr_assert_eq(tiga_graph_rmat(ctx, 12, 16, 1, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_get_stats(ctx, g, &s), TIGA_OK);
    cr_assert(s.n_dst == 4096 && s.n_edges == 65536);
    cr_assert_gt(s.max_degree, 16 * 20);
    cr_assert_gt(s.empty_rows, 100);
    const tiga_csr *c = tiga_graph_csr(g);
    int64_t hub = 0;
    for (int64_t r = 0; r < c->n_dst; r++)
        if (c->offsets[r + 1] - c->offsets[r] == s.max_degree)
            hub = r;
    cr_assert_neq(hub, 0); /* not scrambled, it would be 0 */
    tiga_graph_free(g);
    for (int scale = 0; scale < 4; scale++) {
        cr_assert_eq(tiga_graph_rmat(ctx, scale, 3, 1, &g), TIGA_OK);
        cr_assert_eq(tiga_graph_csr(g)->n_edges, (int64_t)3 << scale);
        tiga_graph_free(g);
    }
    FAILS(tiga_graph_rmat(ctx, 41, 1, 1, &g), TIGA_E_ARGUMENT, "scale 41");
    FAILS(tiga_graph_rmat(ctx, 40, (int64_t)1 << 40, 1, &g), TIGA_E_ARGUMENT, "2^56");
    FAILS(tiga_graph_rmat(ctx, 38, 1 << 10, 1, &g), TIGA_E_MEMORY, "2.0 PiB");
    FAILS(tiga_graph_uniform(ctx, -1, 1, 1, &g), TIGA_E_ARGUMENT, "n_nodes = -1");
}

Test(graph, local_is_a_band) {
    tiga_graph *g;
    cr_assert_eq(tiga_graph_local(ctx, 10, 4, &g), TIGA_OK);
    const int32_t *s = tiga_graph_csr(g)->sources;
    int32_t first[] = {8, 9, 1, 2}, last[] = {7, 8, 0, 1};
    cr_assert(memcmp(s, first, sizeof first) == 0 && memcmp(s + 36, last, sizeof last) == 0);
    tiga_graph_free(g);
    cr_assert_eq(tiga_graph_local(ctx, 10, 3, &g), TIGA_OK);
    s = tiga_graph_csr(g)->sources;
    int32_t odd[] = {9, 0, 1};
    cr_assert(memcmp(s, odd, sizeof odd) == 0);
    tiga_graph_free(g);
    cr_assert_eq(tiga_graph_local(ctx, 3, 3, &g), TIGA_OK); /* the widest: every row, once */
    s = tiga_graph_csr(g)->sources;
    int32_t all[] = {2, 0, 1, 0, 1, 2, 1, 2, 0};
    cr_assert(memcmp(s, all, sizeof all) == 0);
    tiga_graph_free(g);
    FAILS(tiga_graph_local(ctx, 3, 4, &g), TIGA_E_ARGUMENT, "degree = 4, there are only 3 rows");
    cr_assert_null(g);
    cr_assert_eq(tiga_graph_local(ctx, 0, 5, &g), TIGA_OK);
    tiga_graph_free(g);
}

/* Every allocation fails in turn; nothing is left behind (the sanitizer build watches). */
#define EVERY_ALLOCATION_FAILS(call, undo)                                                                             \
    for (uint64_t k = 1;; k++) {                                                                                       \
        tiga_error_clear(ctx);                                                                                         \
        base_inject_at(BASE_INJECT_ALLOC, k);                                                                          \
        tiga_status status = call;                                                                                     \
        base_inject_at(BASE_INJECT_ALLOC, 0);                                                                          \
        if (status == TIGA_OK) {                                                                                       \
            cr_assert_gt(k, 1);                                                                                        \
            undo;                                                                                                      \
            break;                                                                                                     \
        }                                                                                                              \
        cr_assert_eq(status, TIGA_E_MEMORY, "allocation %d: %s", (int)k, tiga_error_text(ctx));                        \
        cr_assert_neq(tiga_error_text(ctx)[0], 0);                                                                     \
        cr_assert_lt(k, 100);                                                                                          \
    }

Test(graph, every_allocation_fails) {
    int64_t dst[] = {0, 1, 2}, src[] = {2, 0, 1}, offsets[] = {0, 1, 2, 3};
    tiga_graph *g;
    tiga_graph_stats s;
    const tiga_csr *t;
    EVERY_ALLOCATION_FAILS(tiga_graph_from_coo(ctx, 3, 3, 3, dst, src, &g), tiga_graph_free(g));
    EVERY_ALLOCATION_FAILS(tiga_graph_from_csr(ctx, 3, 3, offsets, src, 64, TIGA_COPY, &g), tiga_graph_free(g));
    EVERY_ALLOCATION_FAILS(tiga_graph_uniform(ctx, 10, 3, 1, &g), tiga_graph_free(g));
    EVERY_ALLOCATION_FAILS(tiga_graph_rmat(ctx, 4, 3, 1, &g), (void)0);
    EVERY_ALLOCATION_FAILS(tiga_graph_get_stats(ctx, g, &s), (void)0);
    EVERY_ALLOCATION_FAILS(tiga_graph_transposed(ctx, g, &t, NULL), (void)0);
    tiga_graph_free(g);
    ctx->wide_from = 1;
    cr_assert_eq(tiga_graph_rmat(ctx, 4, 3, 1, &g), TIGA_OK);
    EVERY_ALLOCATION_FAILS(tiga_graph_transposed(ctx, g, &t, NULL), (void)0);
    tiga_graph_free(g);
}
