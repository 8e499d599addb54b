/* The relations on which every random function runs. */
#include "diff.h"

#include <stdlib.h>

static diff_graph from_degrees(const char *what, int64_t n_dst, int64_t n_src, const int64_t *degree) {
    diff_graph g = {.what = what};
    g.offsets = calloc((size_t)n_dst + 1, sizeof(int64_t));
    for (int64_t i = 0; i < n_dst; i++) g.offsets[i + 1] = g.offsets[i] + degree[i];
    int64_t n = g.offsets[n_dst];
    g.sources = calloc((size_t)n + 1, sizeof(int64_t));
    g.data = (ir_graph_data){.n_dst = n_dst, .n_src = n_src, .n_edges = n, .offsets = g.offsets, .sources = g.sources};
    return g;
}

static diff_graph random_sources(diff_graph g, diff_rng *r) {
    for (int64_t e = 0; e < g.data.n_edges; e++) g.sources[e] = diff_below(r, g.data.n_src);
    return g;
}

static diff_graph with_degree(const char *what, int64_t n, int64_t n_src, int64_t most, diff_rng *r) {
    int64_t degree[512];
    for (int64_t i = 0; i < n; i++) degree[i] = most > 0 ? diff_below(r, most + 1) : 0;
    return random_sources(from_degrees(what, n, n_src, degree), r);
}

static diff_graph hub(int64_t n, int64_t n_src, diff_rng *r) {
    int64_t degree[64];
    for (int64_t i = 0; i < n; i++) degree[i] = 2;
    degree[n / 2] = 2 * n;
    return random_sources(from_degrees("one hub with half the edges", n, n_src, degree), r);
}

static diff_graph self_loops(int64_t n, int64_t n_src, diff_rng *r) {
    diff_graph g = with_degree("self loops", n, n_src, 3, r);
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = g.offsets[i]; e < g.offsets[i + 1]; e++)
            if (diff_chance(r, 60)) g.sources[e] = i % n_src;
    return g;
}

static diff_graph duplicates(int64_t n, int64_t n_src, diff_rng *r) {
    diff_graph g = with_degree("duplicate edges", n, n_src, 6, r);
    for (int64_t e = 1; e < g.data.n_edges; e++)
        if (diff_chance(r, 60)) g.sources[e] = g.sources[e - 1];
    return g;
}

diff_graph diff_graph_make(int i, bool square, diff_rng *r) {
    const int64_t other = square ? 0 : 4; /* n_src - n_dst */
    switch (i) {
    case 0: return from_degrees("empty graph", 0, 0, NULL);
    case 1: return with_degree("no edges", 5, 5 + other, 0, r);
    case 2: return with_degree("one row", 1, 1 + other, 40, r);
    case 3: return with_degree("empty rows", 9, 9 + other, 2, r);
    case 4: return self_loops(7, 7 + other, r);
    case 5: return duplicates(8, 8 + other, r);
    case 6: return hub(12, 12 + other, r);
    case 7: return with_degree("short rows", 33, 33 + other, 5, r);
    case 8: return with_degree("rows around a multiple of 16", 6, square ? 6 : 20, 35, r);
    default: return with_degree("many rows", 300, 300 + other, 3, r);
    }
}

diff_graph diff_graph_transpose(const diff_graph *g) {
    const ir_graph_data *d = &g->data;
    diff_graph t = {.what = g->what};
    t.offsets = calloc((size_t)d->n_src + 2, sizeof(int64_t));
    t.sources = calloc((size_t)d->n_edges + 1, sizeof(int64_t));
    t.edge_of = calloc((size_t)d->n_edges + 1, sizeof(int64_t));
    for (int64_t e = 0; e < d->n_edges; e++) t.offsets[d->sources[e] + 1]++;
    for (int64_t i = 0; i < d->n_src; i++) t.offsets[i + 1] += t.offsets[i];
    for (int64_t i = d->n_dst; i-- > 0;) /* last edges first: each fills its row from the end */
        for (int64_t e = d->offsets[i + 1]; e-- > d->offsets[i];) {
            int64_t at = --t.offsets[d->sources[e] + 1];
            t.sources[at] = i;
            t.edge_of[at] = e;
        }
    for (int64_t i = 0; i < d->n_src; i++) t.offsets[i] = t.offsets[i + 1]; /* the ends have become beginnings */
    t.offsets[d->n_src] = d->n_edges;
    t.data = (ir_graph_data){d->n_src, d->n_dst, d->n_edges, t.offsets, t.sources, t.edge_of};
    return t;
}

void diff_graph_free(diff_graph *g) {
    free(g->edge_of);
    free(g->offsets);
    free(g->sources);
    *g = (diff_graph){0};
}
