/* Gradients of reducers with states of features that go back edge by edge: a part of the features at a time gives what all
 * of them give at once, for sizes that are known and few; and there is no array of edges x features. */
#include "grad_module.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, EDGES = 12, F = 4 };
static tiga_context *ctx;
static int checks, failures;

/* kernel k[F](src x: f32[F], edge y: f32) -> f32[F] with such a reducer, and its vjp; n: F is known, 0: open */
static tiga_module *compile(const char *states, const char *lift, const char *combine, const char *finalize, int64_t n) {
    char text[1500];
    tigac_options o = tigac_defaults();
    tigac_result *r = NULL;
    tigac_define known = {"F", n};
    o.defines = &known;
    o.n_defines = n ? 1 : 0;
    snprintf(text, sizeof text, "reducer r[F](x: f32[F], y: f32) -> f32[F] {\nstate %s\nlift %s\ncombine %s\nfinalize %s\n}\n"
                                "kernel k[F](src x: f32[F], edge y: f32) -> f32[F] { return reduce r(src.x, edge.y) }\nexport vjp k(x, y)\n",
             states, lift, combine, finalize);
    if (tigac_compile(text, strlen(text), &o, &r) != TIGAC_OK) die(combine, r ? *r->rendered ? r->rendered : r->error : "out of memory");
    return load_module(ctx, r);
}

typedef struct sizes {
    int64_t rows, edges, features;
} sizes;

static int64_t run(tiga_module *m, tiga_graph *g, sizes n, float *x, float *y, float *ct, float *dx, float *dy) {
    int64_t rows[] = {n.rows, n.features};
    tiga_array a[] = {tiga_array_borrow(x, TIGA_F32, 2, rows), tiga_array_borrow(y, TIGA_F32, 1, &n.edges),
                      tiga_array_borrow(ct, TIGA_F32, 2, rows), tiga_array_borrow(dx, TIGA_F32, 2, rows),
                      tiga_array_borrow(dy, TIGA_F32, 1, &n.edges)};
    tiga_binding in[] = {{"x", &a[0]}, {"y", &a[1]}, {"cotangent", &a[2]}}, out[] = {{"x", &a[3]}, {"y", &a[4]}};
    tiga_call_stats stats;
    if (tiga_call_many(ctx, m, "k_vjp", &g, 1, in, 3, out, 2, &stats)) die("k_vjp", tiga_error_text(ctx));
    return stats.peak_bytes;
}

static void same(const char *combine, const char *what, const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        checks++;
        if (a[i] == b[i] || fabsf(a[i] - b[i]) <= 2e-5f * (1 + fabsf(b[i])) || (isnan(a[i]) && isnan(b[i]))) continue;
        printf("FAIL %s: d%s[%zu] is %g in parts, %g at once\n", combine, what, i, (double)a[i], (double)b[i]), failures++;
    }
}

/* An empty row, a loop, the same edge twice, values that tie. */
static void compare(const char *states, const char *lift, const char *combine, const char *finalize) {
    static int64_t offsets[] = {0, 5, 5, 6, 9, 12}, sources[] = {0, 1, 1, 4, 2, 2, 3, 0, 0, 4, 3, 2};
    float x[ROWS * F], y[EDGES], ct[ROWS * F], d[2][ROWS * F], e[2][EDGES];
    tiga_graph *g = NULL;
    for (int i = 0; i < ROWS * F; i++) x[i] = 0.25f * (float)(i * 7 % 5) - 0.3f, ct[i] = 1 + 0.5f * (float)(i % 3);
    for (int i = 0; i < EDGES; i++) y[i] = 0.2f * (float)(i % 4) + 0.1f;
    if (tiga_graph_from_csr(ctx, ROWS, ROWS, offsets, sources, 64, 0, &g)) die("graph", tiga_error_text(ctx));
    for (int known = 0; known < 2; known++) {
        tiga_module *m = compile(states, lift, combine, finalize, known ? F : 0);
        run(m, g, (sizes){ROWS, EDGES, F}, x, y, ct, d[known], e[known]);
        tiga_module_free(m);
    }
    same(combine, "x", d[0], d[1], ROWS * F);
    same(combine, "y", e[0], e[1], EDGES);
    tiga_graph_free(g);
}

static void comparisons(void) {
    compare("s: f32[F] = 1, t: f32[F] = 0", "(x, y)", "(a.s * b.s, a.t * b.s + b.t)", "t");
    compare("s: f32 = 1, t: f32[F] = 0", "(y, x)", "(a.s * b.s, a.t * b.s + b.t)", "t * s");
    compare("n: f32[F] = 0, t: f32[F] = 0", "(x, y)", "(a.n + b.n, select(a.n > 0, a.t, b.t))", "t + n");
    compare("s: f32[F] = 0, t: f32[F] = 0", "(x, y)", "(a.s + b.s, a.s * b.s)", "t");
    compare("p: f32[F] = 1, q: f32[F] = 0, r: f32[F] = 0", "(x, y, y)",
            "(a.p * b.p + a.q * b.r + a.r * b.q, a.p * b.q + a.q * b.p + a.r * b.r, a.p * b.r + a.q * b.q + a.r * b.p)", "p");
    compare("p: f32[F] = -inf, q: f32[F] = inf, d: f32[F] = -inf", "(x, y, 0)",
            "(max(a.p, b.p), min(a.q, b.q), max(max(a.p, b.p) - min(a.q, b.q), max(a.d, b.d)))", "d");
    compare("p: f32[F] = -inf, q: f32[F] = -inf", "(x, y)", "(max(a.p, b.p), max(min(a.p, b.p), max(a.q, b.q)))", "q");
    compare("s: f16[F] = 0", "f16(x * y)", "a.s + b.s + a.s * b.s", "f32(s)");
    compare("p: f32[F] = 1, q: f64[F] = 0", "(x, f64(y))", "(a.p * b.p - f32(a.q * b.q), f64(a.p) * b.q + a.q * f64(b.p))", "p");
    compare("s: f32[F] = 0", "x * y", "0.5 * (a.s + b.s)", "s");
    compare("m: f32[F] = -inf, p: f32[F] = 0", "(x, y)", "(max(a.m, b.m), select(a.m < b.m, a.p, b.p))", "p");
    compare("s: c64[F] = 1, t: c64[F] = 0", "(c64(x, y), c64(y, x))", "(a.s * b.s, a.t * b.s + b.t)", "real(t) + imag(s)");
    compare("seen: bool[F] = false, t: f32[F] = 0", "(x > 0, x * y)", "(a.seen or b.seen, select(a.seen, a.t + 0.5 * b.t, b.t))", "t");
}

/* The sums, old and new, of the gradients of x; a number of 16 elements for each edge, forwards and backwards. */
static void memory(int64_t features) {
    enum { N = 300, DEGREE = 60, E = N * DEGREE, MOST = 256 };
    static float x[N * MOST], ct[N * MOST], dx[N * MOST], y[E], dy[E];
    int64_t *offsets = calloc(N + 1, 8), *sources = calloc(E, 8), row = N * features * 4;
    tiga_graph *g = NULL;
    for (int64_t i = 0; i < N; i++) offsets[i + 1] = DEGREE * (i + 1);
    for (int64_t e = 0; e < E; e++) sources[e] = e * 7919 % N, y[e] = 0.01f * (float)(e % 50);
    for (int64_t i = 0; i < N * features; i++) x[i] = (float)(i % 13) / 13, ct[i] = 1;
    if (tiga_graph_from_csr(ctx, N, N, offsets, sources, 64, 0, &g)) die("graph", tiga_error_text(ctx));
    tiga_module *m = compile("s: f32[F] = 1, t: f32[F] = 0", "(y * x, x)", "(a.s * b.s, a.t * b.s + b.t)", "t", 0);
    int64_t bytes = run(m, g, (sizes){N, E, features}, x, y, ct, dx, dy), most = 3 * row + E * (16 + 16 + 2) * 4 + N * 64 * 4;
    checks++;
    printf("%lld features: %lld bytes of buffers, a row array is %lld, edges x features %lld\n", (long long)features, (long long)bytes,
           (long long)row, (long long)(E * features * 4));
    if (bytes <= 0 || bytes > most) printf("FAIL at most %lld\n", (long long)most), failures++;
    tiga_module_free(m);
    tiga_graph_free(g);
    free(offsets), free(sources);
}

int main(void) {
    if (tiga_context_new(NULL, &ctx)) die("context", "cannot be made");
    comparisons();
    memory(16);
    memory(128);
    memory(256);
    printf("%d checks, %d failures\n", checks, failures);
    tiga_context_free(ctx);
    return failures != 0;
}
