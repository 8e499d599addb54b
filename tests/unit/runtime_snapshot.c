/* Graph files that carry the transposed relation and the statistics: what comes back is what would have been built, and
 * what is not exactly that is refused, number by number. */
#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tiga_context *ctx;
static char path[80];
static void open_context(void) {
    tiga_context_options o = tiga_context_defaults();
    o.threads = 3;
    cr_assert_eq(tiga_context_new(&o, &ctx), TIGA_OK);
    snprintf(path, sizeof path, "/tmp/tiga_snapshot_%ld.npz", (long)getpid());
}
static void close_context(void) {
    unlink(path);
    tiga_context_free(ctx);
}
TestSuite(snapshot, .init = open_context, .fini = close_context);

static bool same_bytes(const void *a, const void *b, int64_t n) { return n == 0 || memcmp(a, b, (size_t)n) == 0; }

static int64_t number_at(const void *array, int64_t bits, int64_t i) {
    return bits == 32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

static void set_number(void *array, int64_t bits, int64_t i, int64_t value) {
    if (bits == 32)
        ((int32_t *)array)[i] = (int32_t)value;
    else
        ((int64_t *)array)[i] = value;
}

/* A graph read from its snapshot has everything at once, and the same as g makes for itself; as wide as the reader's graphs
 * are, whatever the writer's were. */
static void round_trip(tiga_graph *g, int64_t bits) {
    tiga_graph *h;
    tiga_array values;
    tiga_graph_stats a, b;
    const tiga_csr *t, *u;
    const void *e, *f;
    int64_t built = 0;
    cr_assert_eq(tiga_graph_write_snapshot(ctx, path, g, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(tiga_graph_read(ctx, path, NULL, &h, &values), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert(h->has_stats && h->has_transposed);
    cr_assert_eq(tiga_graph_get_stats(ctx, g, &a), TIGA_OK);
    cr_assert_eq(tiga_graph_get_stats(ctx, h, &b), TIGA_OK);
    cr_assert(a.transposed == 1 && b.transposed == 1);
    a.bytes = b.bytes = 0; /* g may borrow its arrays */
    cr_assert(memcmp(&a, &b, sizeof a) == 0);
    cr_assert_eq(rt_graph_transposed(ctx, g, &t, &e, &built), TIGA_OK);
    cr_assert_eq(rt_graph_transposed(ctx, h, &u, &f, &built), TIGA_OK);
    cr_assert_eq(built, 0);
    cr_assert(t->n_dst == u->n_dst && t->n_src == u->n_src && t->n_edges == u->n_edges);
    cr_assert_eq(u->source_bits, t->n_edges || t->n_src ? bits : 32);
    cr_assert(same_bytes(t->offsets, u->offsets, (t->n_dst + 1) * 8));
    for (int64_t k = 0; k < t->n_edges; k++) {
        cr_assert_eq(number_at(t->sources, t->source_bits, k), number_at(u->sources, bits, k));
        cr_assert_eq(number_at(e, t->source_bits, k), number_at(f, bits, k));
    }
    tiga_array_free(&values);
    tiga_graph_free(h);
}

/* Through a reader of each width. */
static void round_trips(tiga_graph *g) {
    int64_t wide_from = ctx->wide_from;
    for (ctx->wide_from = 0; ctx->wide_from < 2; ctx->wide_from++)
        round_trip(g, ctx->wide_from ? 64 : 32);
    ctx->wide_from = wide_from;
    tiga_graph_free(g);
}

static void round_trips_of_many(void) {
    tiga_graph *g;
    cr_assert_eq(tiga_graph_rmat(ctx, 17, 8, 1, &g), TIGA_OK); /* several tasks of the check */
    round_trips(g);
    cr_assert_eq(tiga_graph_local(ctx, 50, 3, &g), TIGA_OK);
    round_trips(g);
    static const int64_t none[1] = {0}, empty[4] = {0};
    const int64_t shapes[][2] = {{0, 0}, {0, 5}, {3, 0}, {3, 7}};
    for (int i = 0; i < 4; i++) {
        const int64_t *offsets = shapes[i][0] ? empty : none;
        cr_assert_eq(tiga_graph_from_csr(ctx, shapes[i][0], shapes[i][1], offsets, NULL, 32, TIGA_BORROW, &g), TIGA_OK);
        round_trips(g);
    }
    int64_t hub[300]; /* one row, every source three times */
    for (int i = 0; i < 300; i++)
        hub[i] = i * 7 % 100;
    const int64_t one_row[] = {0, 0, 300, 300};
    cr_assert_eq(tiga_graph_from_csr(ctx, 3, 100, one_row, hub, 64, TIGA_BORROW, &g), TIGA_OK);
    round_trips(g);
    cr_assert_eq(tiga_graph_from_csr(ctx, 3, 100, one_row, hub, 64, TIGA_COPY, &g), TIGA_OK);
    round_trips(g);
}

Test(snapshot, round_trips) {
    round_trips_of_many();
    ctx->wide_from = 1;
    round_trips_of_many();
}

/* What is written does not depend on the width in memory. */
Test(snapshot, the_narrowest_types_are_written) {
    base_str file[2] = {{0}, {0}};
    for (int wide = 0; wide < 2; wide++) {
        tiga_graph *g;
        ctx->wide_from = wide;
        cr_assert_eq(tiga_graph_rmat(ctx, 8, 4, 1, &g), TIGA_OK);
        cr_assert_eq(g->transposed_bits, wide ? 64 : 32);
        cr_assert_eq(tiga_graph_write_snapshot(ctx, path, g, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
        cr_assert(base_file_read(path, &file[wide], NULL));
        tiga_graph_free(g);
    }
    cr_assert(file[0].len == file[1].len && !memcmp(file[0].data, file[1].data, file[0].len));
    base_str_fini(&file[0]);
    base_str_fini(&file[1]);
}

Test(snapshot, degrees_are_counted_by_powers_of_two) {
    tiga_graph *g;
    tiga_graph_stats s;
    const int64_t offsets[] = {0, 0, 1, 3, 6, 10, 10}, sources[10] = {0};
    cr_assert_eq(tiga_graph_from_csr(ctx, 6, 1, offsets, sources, 64, TIGA_BORROW, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_get_stats(ctx, g, &s), TIGA_OK);
    cr_assert(s.degrees[0] == 2 && s.degrees[1] == 1 && s.degrees[2] == 2 && s.degrees[3] == 1 && s.degrees[4] == 0);
    cr_assert(s.max_degree == 4 && s.empty_rows == 2 && s.duplicate_edges == 6 && s.transposed == 0);
    tiga_graph_free(g);
}

/* ---- wrong ones ---- */
typedef struct parts {
    tiga_csr csr;
    int64_t *offsets, figures[RT_FIGURES], bits;
    void *sources, *edge_of;
} parts;

static void *copy(const void *from, int64_t n_bytes) {
    void *to = malloc((size_t)n_bytes + 1);
    cr_assert(to);
    memcpy(to, from, (size_t)n_bytes);
    return to;
}

static parts parts_of(tiga_graph *g) {
    const tiga_csr *t;
    const void *e;
    tiga_graph_stats s;
    cr_assert_eq(tiga_graph_transposed(ctx, g, &t, &e), TIGA_OK);
    cr_assert_eq(tiga_graph_get_stats(ctx, g, &s), TIGA_OK);
    parts p = {.csr = g->csr, .bits = t->source_bits};
    p.offsets = copy(t->offsets, (t->n_dst + 1) * 8);
    p.sources = copy(t->sources, t->n_edges * p.bits / 8);
    p.edge_of = copy(e, t->n_edges * p.bits / 8);
    rt_snapshot_figures(&s, p.figures);
    return p;
}

static void parts_fini(parts *p) {
    free(p->offsets);
    free(p->sources);
    free(p->edge_of);
}

/* What a fresh graph says to these parts; it never takes them when it refuses. */
static tiga_status offer(const parts *p) {
    tiga_graph *g;
    cr_assert_eq(
        tiga_graph_from_csr(ctx, p->csr.n_dst, p->csr.n_src, p->csr.offsets, p->csr.sources, 32, TIGA_BORROW, &g),
        TIGA_OK);
    rt_snapshot s = {p->offsets, p->sources, p->edge_of, p->figures};
    tiga_error_clear(ctx);
    tiga_status status = rt_snapshot_adopt(ctx, "g.npz", g, &s);
    cr_assert(g->has_transposed == (status == TIGA_OK) && g->has_stats == (status == TIGA_OK));
    cr_assert_eq(status == TIGA_OK, tiga_error_text(ctx)[0] == 0);
    g->has_transposed = false; /* the arrays are ours */
    tiga_graph_free(g);
    return status;
}

/* With another value at place i of an array of that many bits. */
static void refuses(const parts *p, void *array, int64_t bits, int64_t i, int64_t value, const char *what) {
    int64_t old = number_at(array, bits, i);
    if (value == old || (bits == 32 && value != (int32_t)value))
        return;
    set_number(array, bits, i, value);
    tiga_status status = offer(p);
    cr_assert(status == TIGA_E_FORMAT || status == TIGA_E_RANGE, "%s: %lld for %lld is taken", what, (long long)value,
              (long long)old);
    cr_assert(!strncmp(tiga_error_text(ctx), "g.npz", 5), "%s", tiga_error_text(ctx));
    set_number(array, bits, i, old);
}

static void refuses_every_wrong_number(void) {
    tiga_graph *g;
    cr_assert_eq(tiga_graph_rmat(ctx, 4, 4, 7, &g), TIGA_OK);
    parts p = parts_of(g);
    const tiga_csr *c = &g->csr;
    cr_assert_eq(offer(&p), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(p.bits, ctx->wide_from ? 64 : 32);
    const int64_t wild[] = {-1, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, c->n_edges, c->n_edges + 1, 1LL << 32, 0};
    for (size_t k = 0; k < sizeof wild / sizeof *wild; k++) {
        for (int64_t i = 0; i <= c->n_src; i++)
            refuses(&p, p.offsets, 64, i, wild[k], "offset");
        for (int64_t i = 0; i < c->n_edges; i++) {
            refuses(&p, p.edge_of, p.bits, i, wild[k], "edge");
            if (wild[k])
                refuses(&p, p.sources, p.bits, i, wild[k], "row");
        }
        for (int i = 0; i < RT_FIGURES; i++)
            refuses(&p, p.figures, 64, i, wild[k], "figure");
    }
    for (int64_t i = 0; i < c->n_edges; i++) {
        for (int64_t e = 0; e < c->n_edges; e++)
            refuses(&p, p.edge_of, p.bits, i, e, "edge");
        for (int64_t row = -1; row <= c->n_dst; row++)
            refuses(&p, p.sources, p.bits, i, row, "row");
    }
    for (int64_t i = 0; i <= c->n_src; i++)
        for (int64_t v = 0; v <= c->n_edges; v++)
            refuses(&p, p.offsets, 64, i, v, "offset");
    for (int64_t i = 0; i + 1 < c->n_edges; i++) { /* two edges of one source the other way round */
        int64_t e = number_at(p.edge_of, p.bits, i), f = number_at(p.edge_of, p.bits, i + 1);
        set_number(p.edge_of, p.bits, i, f);
        set_number(p.edge_of, p.bits, i + 1, e);
        cr_assert_eq(offer(&p), TIGA_E_FORMAT);
        set_number(p.edge_of, p.bits, i, e);
        set_number(p.edge_of, p.bits, i + 1, f);
    }
    cr_assert_eq(offer(&p), TIGA_OK);
    parts_fini(&p);
    tiga_graph_free(g);
}

Test(snapshot, every_wrong_number_is_refused) {
    refuses_every_wrong_number();
    ctx->wide_from = 1;
    refuses_every_wrong_number();
}

Test(snapshot, that_of_another_graph_is_refused) {
    tiga_graph *g, *h;
    cr_assert_eq(tiga_graph_uniform(ctx, 100, 4, 1, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_uniform(ctx, 100, 4, 2, &h), TIGA_OK);
    parts p = parts_of(g), q = parts_of(h);
    q.csr = p.csr;
    cr_assert_eq(offer(&q), TIGA_E_FORMAT);
    cr_assert(strstr(tiga_error_text(ctx), "g.npz: the transposed relation in the file is not that of the graph"), "%s",
              tiga_error_text(ctx));
    parts_fini(&p);
    parts_fini(&q);
    tiga_graph_free(g);
    tiga_graph_free(h);
}

/* ---- failures ---- */
static void fail_every_allocation(void) {
    tiga_graph *g;
    cr_assert_eq(tiga_graph_local(ctx, 10, 2, &g), TIGA_OK);
    for (uint64_t k = 1;; k++) {
        tiga_graph *fresh;
        const tiga_csr *c = &g->csr;
        cr_assert_eq(tiga_graph_from_csr(ctx, 10, 10, c->offsets, c->sources, 32, TIGA_BORROW, &fresh), TIGA_OK);
        tiga_error_clear(ctx);
        base_inject_at(BASE_INJECT_ALLOC, k);
        tiga_status status = tiga_graph_write_snapshot(ctx, path, fresh, NULL);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        tiga_graph_free(fresh);
        if (status == TIGA_OK)
            break;
        cr_assert(status == TIGA_E_MEMORY || status == TIGA_E_FILE, "%s", tiga_error_text(ctx));
        cr_assert_lt(k, 200);
    }
    tiga_graph_free(g);
    base_str s = {0};
    cr_assert(base_file_read(path, &s, NULL));
    for (uint64_t k = 1;; k++) {
        tiga_array v;
        tiga_error_clear(ctx);
        base_inject_at(BASE_INJECT_ALLOC, k);
        tiga_status status = rt_graph_parse(ctx, "g.npz", s.data, (int64_t)s.len, &g, &v);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        if (status == TIGA_OK) {
            cr_assert(g->has_transposed);
            tiga_graph_free(g);
            tiga_array_free(&v);
            break;
        }
        cr_assert_eq(status, TIGA_E_MEMORY, "allocation %d: %s", (int)k, tiga_error_text(ctx));
        cr_assert(!g && !v.data);
        cr_assert_lt(k, 300);
    }
    base_str_fini(&s);
}

Test(snapshot, every_allocation_fails) {
    ctx->threads = 1;
    fail_every_allocation();
    ctx->wide_from = 1;
    fail_every_allocation();
}
