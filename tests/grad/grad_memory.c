/* What forward and backward hold beside their inputs and outputs, by the runtime's own account: at most two row arrays, so
 * nothing of size edges x features.  The kernels are those of bench/gradient.tg, each as one program and as an exported vjp. */
#include "grad_module.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 400, DEGREE = 40, E = N * DEGREE, MAX_F = 128, MAX_ARRAYS = 8 };

typedef enum shape { ROWS, ROW, EDGE } shape; /* f32[N, F], f32[N], f32[E] */
typedef struct input {
    const char *name;
    shape shape;
} input;
static const struct test {
    const char *kernel;
    input in[3];
    size_t n;
} tests[] = {{"weighted", {{"x", ROWS}, {"w", EDGE}}, 2},
             {"average", {{"x", ROWS}}, 1},
             {"largest", {{"x", ROWS}}, 1},
             {"attend", {{"x", ROWS}, {"s", EDGE}}, 2},
             {"attend_ends", {{"x", ROWS}, {"a", ROW}, {"b", ROW}}, 3},
             {"attend_dot", {{"x", ROWS}, {"q", ROWS}}, 2}};

static float memory[MAX_ARRAYS][E > N * MAX_F ? E : N * MAX_F];

static tiga_module *compile(tiga_context *ctx) {
    static char text[20000];
    FILE *f = fopen(TIGA_SOURCE_DIR "/bench/gradient.tg", "r");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (!n || n == sizeof text || fclose(f)) die("bench/gradient.tg", "cannot be read");
    tigac_options o = tigac_defaults();
    tigac_result *r = NULL;
    if (tigac_compile(text, n, &o, &r) != TIGAC_OK) die("compile", r ? r->rendered : "out of memory");
    return load_module(ctx, r);
}

static tiga_graph *graph(tiga_context *ctx) {
    static int64_t offsets[N + 1], sources[E];
    tiga_graph *g = NULL;
    for (int64_t i = 0; i < N; i++) offsets[i + 1] = DEGREE * (i + 1);
    for (int64_t e = 0; e < E; e++) sources[e] = e * 7919 % N;
    if (tiga_graph_from_csr(ctx, N, N, offsets, sources, 64, 0, &g)) die("graph", tiga_error_text(ctx));
    return g;
}

static tiga_array array(float *data, shape s, int64_t F) {
    return tiga_array_borrow(data, TIGA_F32, s == ROWS ? 2 : 1, (int64_t[]){s == EDGE ? E : N, F});
}

/* The peak of one call; step: the program that also returns the result. */
static int64_t peak(tiga_context *ctx, tiga_module *m, tiga_graph *g, const struct test *t, int64_t F, bool step) {
    tiga_array a[MAX_ARRAYS];
    tiga_binding in[4], out[4];
    char name[64], d_name[3][8];
    tiga_call_stats stats;
    size_t n = 0;
    snprintf(name, sizeof name, "%s_%s", t->kernel, step ? "step" : "vjp");
    for (size_t i = 0; i < t->n; i++) {
        snprintf(d_name[i], sizeof d_name[i], "%s%s", step ? "d_" : "", t->in[i].name);
        a[n] = array(memory[n], t->in[i].shape, F);
        in[i] = (tiga_binding){t->in[i].name, &a[n++]};
        a[n] = array(memory[n], t->in[i].shape, F);
        out[i] = (tiga_binding){d_name[i], &a[n++]};
    }
    a[n] = array(memory[n], ROWS, F);
    in[t->n] = (tiga_binding){"cotangent", &a[n++]};
    a[n] = array(memory[n], ROWS, F);
    out[t->n] = (tiga_binding){"out", &a[n]};
    if (tiga_call_many(ctx, m, name, &g, 1, in, (int)t->n + 1, out, (int)t->n + step, &stats))
        die(name, tiga_error_text(ctx));
    return stats.peak_bytes;
}

int main(void) {
    static const int64_t widths[] = {16, 64, MAX_F};
    tiga_context *ctx = NULL;
    int failures = 0;
    if (tiga_context_new(NULL, &ctx)) die("context", "cannot be made");
    tiga_module *m = compile(ctx);
    tiga_graph *g = graph(ctx);
    for (size_t i = 0; i < MAX_ARRAYS; i++)
        for (size_t k = 0; k < sizeof memory[i] / sizeof *memory[i]; k++) memory[i][k] = (float)((k * 31 + i) % 17) / 17;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int step = 0; step < 2; step++) {
                int64_t F = widths[w], bytes = peak(ctx, m, g, &tests[t], F, step != 0), row = N * F * 4;
                bool good = bytes <= 2 * row;
                failures += !good;
                printf("%s%s %s, F = %d: %lld bytes, %.2f row arrays\n", good ? "" : "FAIL ", tests[t].kernel,
                       step ? "step" : "vjp", (int)F, (long long)bytes, (double)bytes / (double)row);
            }
    tiga_graph_free(g);
    tiga_module_free(m);
    tiga_context_free(ctx);
    return failures != 0;
}
