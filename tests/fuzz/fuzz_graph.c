/* libFuzzer target: any bytes as a graph file or an array file.  The first byte chooses the name the file goes by
 * (the format is told by content first, by name second), and how wide transposed relations are.  A reader must succeed or leave one clear error; what it
 * accepts must be a valid graph, survive transposition, and be the same with another number of threads. */
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tiga_context *open_context(int threads, bool wide) {
    tiga_context_options o = tiga_context_defaults();
    tiga_context *ctx;
    o.threads = threads;
    BASE_CHECK(tiga_context_new(&o, &ctx) == TIGA_OK);
    ctx->memory_limit = 32 << 20;
    ctx->wide_from = wide;
    return ctx;
}

/* What came with the file is what a graph of the same relation makes for itself. */
static void check_kept(tiga_context *ctx, tiga_graph *g, tiga_graph *fresh) {
    tiga_graph_stats a, b;
    const tiga_csr *t, *u;
    const void *e, *f;
    if (tiga_graph_transposed(ctx, g, &t, &e) != TIGA_OK || tiga_graph_transposed(ctx, fresh, &u, &f) != TIGA_OK ||
        tiga_graph_get_stats(ctx, g, &a) != TIGA_OK || tiga_graph_get_stats(ctx, fresh, &b) != TIGA_OK)
        return;
    a.bytes = b.bytes = 0;
    BASE_CHECK(memcmp(&a, &b, sizeof a) == 0 && t->source_bits == u->source_bits);
    BASE_CHECK(memcmp(t->offsets, u->offsets, (size_t)(t->n_dst + 1) * 8) == 0);
    BASE_CHECK(!t->n_edges || memcmp(t->sources, u->sources, (size_t)(t->n_edges * t->source_bits / 8)) == 0);
    BASE_CHECK(!t->n_edges || memcmp(e, f, (size_t)(t->n_edges * t->source_bits / 8)) == 0);
}

static void check_graph(tiga_context *ctx, tiga_graph *g, const tiga_array *values) {
    tiga_csr c = *tiga_graph_csr(g);
    tiga_graph *copy;
    tiga_graph_stats stats;
    const tiga_csr *t;
    const void *edge_of;
    BASE_CHECK(!values->data || (values->rank == 1 && values->shape[0] == c.n_edges));
    tiga_status status =
        tiga_graph_from_csr(ctx, c.n_dst, c.n_src, c.offsets, c.sources, (int)c.source_bits, TIGA_COPY, &copy);
    BASE_CHECK(status == TIGA_OK || status == TIGA_E_MEMORY); /* validates every offset and source again */
    if (tiga_graph_get_stats(ctx, g, &stats) == TIGA_OK)
        BASE_CHECK(stats.max_degree <= stats.n_edges && stats.duplicate_edges <= stats.n_edges);
    if (tiga_graph_transposed(ctx, g, &t, &edge_of) == TIGA_OK)
        BASE_CHECK(t->n_edges == c.n_edges && t->offsets[t->n_dst] == c.n_edges);
    if (copy)
        check_kept(ctx, g, copy);
    tiga_graph_free(copy);
}

static void check_array(tiga_context *ctx, const char *bytes, size_t n) {
    rt_npy_header h;
    tiga_array a = {0};
    if (rt_npy_parse(ctx, "fuzz.npy", bytes, (int64_t)n, &h) == TIGA_OK &&
        rt_npy_data(ctx, "fuzz.npy", bytes, (int64_t)n, &h, &a) == TIGA_OK)
        BASE_CHECK(tiga_array_bytes(&a) <= (int64_t)n);
    tiga_array_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"fuzz.mtx", "fuzz.txt", "fuzz.npz", "fuzz.txt.gz"};
    if (size == 0)
        return 0;
    bool wide = data[0] & 4;
    tiga_context *ctx = open_context(1, wide), *other = open_context(3, wide);
    const char *name = names[data[0] % 4], *bytes = (const char *)data + 1;
    tiga_graph *g = NULL, *h = NULL;
    tiga_array v = {0}, w = {0};
    tiga_status status = rt_graph_parse(ctx, name, bytes, (int64_t)size - 1, &g, &v);
    BASE_CHECK((status == TIGA_OK) == (tiga_error_text(ctx)[0] == 0) && status != TIGA_E_INTERNAL);
    BASE_CHECK(rt_graph_parse(other, name, bytes, (int64_t)size - 1, &h, &w) == status);
    BASE_CHECK(strcmp(tiga_error_text(ctx), tiga_error_text(other)) == 0);
    if (status == TIGA_OK) {
        const tiga_csr *a = tiga_graph_csr(g), *b = tiga_graph_csr(h);
        BASE_CHECK(memcmp(a->offsets, b->offsets, (size_t)(a->n_dst + 1) * 8) == 0);
        BASE_CHECK(!a->n_edges || memcmp(a->sources, b->sources, (size_t)(a->n_edges * a->source_bits / 8)) == 0);
        BASE_CHECK(tiga_array_bytes(&v) == tiga_array_bytes(&w));
        BASE_CHECK(!v.data || memcmp(v.data, w.data, (size_t)tiga_array_bytes(&v)) == 0);
        check_graph(ctx, g, &v);
    }
    check_array(ctx, bytes, size - 1);
    tiga_graph_free(g);
    tiga_graph_free(h);
    tiga_array_free(&v);
    tiga_array_free(&w);
    tiga_context_free(ctx);
    tiga_context_free(other);
    return 0;
}
