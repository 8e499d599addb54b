/* How long until a kernel can be called, and how long a call takes.  Modes, one a process; prints nanoseconds, one a line:
 *
 *     latency cold                the first kernel of a process, then another
 *     latency disk FOLDER         the first of a process from the cache folder (filled before), and the second
 *     latency memory FOLDER       finding it in memory, hashing the text included
 *     latency launch              a prepared call on a graph of one row; and tiga_call
 *     latency noise               a loop that never changes, to see how busy the machine is */
#include "tiga/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const texts[] = {
    "kernel gat[H, F](src h: f32[H, F], src a: f32[H], dst b: f32[H]) -> f32[H, F] {\n"
    "    let score = leaky_relu(src.a + dst.b, 0.2)\n"
    "    return reduce softmax(score, src.h)\n"
    "}\n\n"
    "kernel mean_of_neighbours[F](src x: f32[F], edge w: f32) -> f32[F] {\n"
    "    return reduce mean(edge.w * src.x, empty = 0)\n"
    "}\n\n"
    "program smooth(g: graph, x: f32[g.dst, F], w: f32[g.edge], rounds: i64) -> f32[g.dst, F] {\n"
    "    var r = x\n"
    "    repeat rounds { r = 0.5 * r + 0.5 * mean_of_neighbours(g, x = r, w = w) }\n"
    "    return r\n"
    "}\n",
    "kernel weighted_sum[F](src x: f32[F], edge w: f32, dst bias: f32[F]) -> f32[F] {\n"
    "    return dst.bias + reduce sum(edge.w * src.x)\n"
    "}\n"};

static tiga_context *ctx;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void stop(const char *what) {
    fprintf(stderr, "latency: %s: %s\n", what, tiga_error_text(ctx));
    exit(1);
}

static double jit(int which, tiga_cache *cache, tiga_module **out) {
    tiga_jit_options o = tiga_jit_defaults();
    o.cache = cache;
    double began = now();
    if (tiga_jit_source(ctx, texts[which], strlen(texts[which]), &o, out, NULL))
        stop("compile");
    return now() - began;
}

static void compile(tiga_cache *cache) {
    for (int i = 0; i < 2; i++) {
        tiga_module *m;
        printf("%.0f\n", jit(i, cache, &m));
        tiga_module_free(m);
    }
}

static void memory(tiga_cache *cache) {
    enum { ROUNDS = 20000 };
    tiga_module *m;
    jit(0, cache, &m);
    tiga_module_free(m);
    double total = 0;
    for (int i = 0; i < ROUNDS; i++) {
        total += jit(0, cache, &m);
        tiga_module_free(m);
    }
    printf("%.0f\n", total / ROUNDS);
}

static void launch(void) {
    enum { ROUNDS = 1000000 };
    const int64_t offsets[] = {0, 2}, one = 1, two = 2;
    const int32_t sources[] = {0, 0};
    float x[] = {2}, w[] = {3, 4}, bias[] = {1}, y[1];
    static const char text[] = "kernel weighted_sum(src x: f32, edge w: f32, dst bias: f32) -> f32 {\n"
                               "    return dst.bias + reduce sum(edge.w * src.x)\n}\n";
    tiga_module *m;
    tiga_graph *g;
    tiga_prepared *p;
    tiga_array ax = tiga_array_borrow(x, TIGA_F32, 1, &one), aw = tiga_array_borrow(w, TIGA_F32, 1, &two);
    tiga_array ab = tiga_array_borrow(bias, TIGA_F32, 1, &one), ay = tiga_array_borrow(y, TIGA_F32, 1, &one);
    tiga_binding in[] = {{"x", &ax}, {"w", &aw}, {"bias", &ab}}, out[] = {{"out", &ay}};
    if (tiga_jit_source(ctx, text, strlen(text), NULL, &m, NULL) ||
        tiga_graph_from_csr(ctx, 1, 1, offsets, sources, 32, TIGA_BORROW, &g) ||
        tiga_prepare(ctx, m, "weighted_sum", &g, 1, in, 3, out, 1, &p))
        stop("prepare");
    double began = now();
    for (int i = 0; i < ROUNDS; i++)
        if (tiga_prepared_launch(p, NULL))
            stop("launch");
    printf("%.1f\n", (now() - began) / ROUNDS);
    began = now();
    for (int i = 0; i < ROUNDS; i++)
        if (tiga_call(ctx, m, "weighted_sum", g, in, 3, out, 1))
            stop("call");
    printf("%.1f\n", (now() - began) / ROUNDS);
    if (y[0] != 15)
        stop("wrong result");
    tiga_prepared_free(p);
    tiga_graph_free(g);
    tiga_module_free(m);
}

static void noise(void) {
    double began = now();
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 20000000; i++)
        sum += i;
    printf("%.0f\n", now() - began);
}

int main(int argc, char **argv) {
    tiga_context_options o = tiga_context_defaults();
    tiga_cache_options c = tiga_cache_defaults();
    tiga_cache *cache;
    o.threads = 1;
    c.folder = argc > 2 ? argv[2] : "";
    if (argc < 2 || tiga_context_new(&o, &ctx) || tiga_cache_new(&c, &cache))
        return 2;
    if (!strcmp(argv[1], "cold"))
        compile(NULL);
    else if (!strcmp(argv[1], "disk"))
        compile(cache);
    else if (!strcmp(argv[1], "memory"))
        memory(cache);
    else if (!strcmp(argv[1], "launch"))
        launch();
    else if (!strcmp(argv[1], "noise"))
        noise();
    else
        return fprintf(stderr, "latency: no mode '%s'; see the head of latency.c\n", argv[1]), 2;
    tiga_cache_free(cache);
    tiga_context_free(ctx);
    return 0;
}
