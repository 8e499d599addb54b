/* Gradients of maxima and minima that go back to the edges that won, against the definition written out here, bit for bit: on
 * 1 to 7 threads, features that fill lines of cache and do not, relations with empty rows, duplicates, a hub, edges of
 * 32 and 64 bits; values that differ, that tie, NaN, infinities and both zeros.  Large enough that threads get parts. */
#include "grad_module.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "kernel top[F](src x: f32[F]) -> f32[F] { return reduce max(src.x) }\n"
    "kernel low[F](src x: f64[F]) -> f64[F] { return reduce min(src.x) }\n"
    "kernel raised[F](src x: f32[F], dst b: f32[F]) -> f32[F] { return dst.b + reduce max(src.x) }\n"
    "program top_step[F](g: graph, x: f32[g.src, F], c: f32[g.dst, F]) -> (out: f32[g.dst, F], d: f32[g.src, F]) {\n"
    "    let out = top(g, x = x)\n"
    "    return (out = out, d = grad(sum(out * c), x))\n"
    "}\n"
    "program low_step[F](g: graph, x: f64[g.src, F], c: f64[g.dst, F]) -> (out: f64[g.dst, F], d: f64[g.src, F]) {\n"
    "    let out = low(g, x = x)\n"
    "    return (out = out, d = grad(sum(out * c), x))\n"
    "}\n"
    "program raised_step[F](g: graph, x: f32[g.src, F], c: f32[g.dst, F]) -> (out: f32[g.dst, F], d: f32[g.src, F]) {\n"
    "    let out = raised(g, x = x, b = c)\n"
    "    return (out = out, d = grad(sum(out * c), x))\n"
    "}\n";

enum { N_DST = 1500, N_SRC = 1301, HUB = 3000, MAX_E = 24000, MAX_F = 130, MOST_THREADS = 7 };
static const char *const values[] = {"different", "tying", "odd"};

static int64_t offsets[N_DST + 1], sources[MAX_E];
static double x[N_SRC * MAX_F], c[N_DST * MAX_F], out[N_DST * MAX_F], want[N_DST * MAX_F];
static double d[N_SRC * MAX_F], want_d[N_SRC * MAX_F];
static int failures, checks;

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

/* ---- the definition ---- */
#define DEFINE(NAME, T, BEFORE, START)                                                                                 \
    static void NAME(const T *from, const T *given, const T *add, T *best, T *back, int64_t F) {                       \
        memset(back, 0, sizeof *back * (size_t)(N_SRC * F));                                                           \
        for (int64_t i = 0; i < N_DST; i++)                                                                            \
            for (int64_t k = 0; k < F; k++) {                                                                          \
                T m = START, n = 0;                                                                                    \
                for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) {                                                \
                    T v = from[sources[e] * F + k];                                                                    \
                    m = m BEFORE v || m != m ? m : v;                                                                  \
                }                                                                                                      \
                for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) n += from[sources[e] * F + k] == m;              \
                for (int64_t e = offsets[i]; e < offsets[i + 1]; e++)                                                  \
                    if (from[sources[e] * F + k] == m) back[sources[e] * F + k] += given[i * F + k] / n;               \
                best[i * F + k] = add ? add[i * F + k] + m : m;                                                        \
            }                                                                                                          \
    }
DEFINE(highest, float, >, -INFINITY)
DEFINE(lowest, double, <, (double)INFINITY)

/* ---- what it is tried on ---- */
static void fill_graph(void) {
    int64_t n = 0;
    for (int64_t i = 0; i < N_DST; i++) {
        int64_t degree = i == 700 ? HUB : i % 7 == 3 || i == 0 || i == N_DST - 1 ? 0 : 1 + (int64_t)(next_random() % 20);
        offsets[i] = n;
        for (int64_t e = 0; e < degree && n < MAX_E; e++, n++)
            sources[n] = e && next_random() % 5 == 0 ? sources[n - 1] : (int64_t)(next_random() % N_SRC);
    }
    offsets[N_DST] = n;
}

static double value(int kind) {
    static const double odd[] = {(double)NAN, (double)INFINITY, (double)-INFINITY, 0.0, -0.0, 1, -1, 1e-45};
    uint64_t r = next_random();
    if (kind == 1) return (double)(r % 3);
    if (kind == 2) return odd[r % 50 ? 2 + r / 50 % 6 : r / 50 % 2];
    return (double)(r % 1000003) / 1000003 - 0.5;
}

static void fill(bool wide, double *to, int64_t n, int kind) {
    for (int64_t i = 0; i < n; i++) {
        if (wide) to[i] = value(kind);
        else ((float *)to)[i] = (float)value(kind);
    }
}

/* NaN is NaN, whichever. */
static bool same(bool wide, const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double u = wide ? a[i] : (double)((const float *)a)[i], v = wide ? b[i] : (double)((const float *)b)[i];
        if (memcmp(&u, &v, sizeof u) != 0 && (u == u || v == v)) {
            printf("  [%lld] is %.17g, not %.17g\n", (long long)i, u, v);
            return false;
        }
    }
    return true;
}

static void compare(const char *what, bool ok) {
    checks++;
    failures += !ok;
    if (!ok) printf("FAIL %s\n", what);
}

static void run(tiga_context *ctx, tiga_module *m, tiga_graph *g, const char *name, int64_t F, const char *what) {
    bool wide = !strcmp(name, "low_step");
    int type = wide ? TIGA_F64 : TIGA_F32;
    tiga_array a[4] = {tiga_array_borrow(x, type, 2, (int64_t[]){N_SRC, F}), tiga_array_borrow(c, type, 2, (int64_t[]){N_DST, F}),
                       tiga_array_borrow(out, type, 2, (int64_t[]){N_DST, F}), tiga_array_borrow(d, type, 2, (int64_t[]){N_SRC, F})};
    tiga_binding in[] = {{"x", &a[0]}, {"c", &a[1]}}, to[] = {{"out", &a[2]}, {"d", &a[3]}};
    memset(out, 0x55, sizeof out);
    memset(d, 0x55, sizeof d);
    if (tiga_call_many(ctx, m, name, &g, 1, in, 2, to, 2, NULL)) die(name, tiga_error_text(ctx));
    compare(what, same(wide, out, want, N_DST * F) && same(wide, d, want_d, N_SRC * F));
}

static void try_one(tiga_context *const *ctx, tiga_module *m, tiga_graph *const g[2], const char *name, int64_t F, int kind) {
    bool wide = !strcmp(name, "low_step");
    fill(wide, x, N_SRC * F, kind);
    fill(wide, c, N_DST * F, 0);
    if (wide) lowest(x, c, NULL, want, want_d, F);
    else highest((float *)x, (float *)c, !strcmp(name, "raised_step") ? (float *)c : NULL, (float *)want, (float *)want_d, F);
    for (int t = 0; t < MOST_THREADS; t++)
        for (int bits = 0; bits < 2; bits++) {
            char what[128];
            snprintf(what, sizeof what, "%s, F = %d, %s values, %d threads, %d bits", name, (int)F, values[kind], t + 1, bits ? 64 : 32);
            run(ctx[t], m, g[bits], name, F, what);
        }
}

/* ---- the module ---- */
static tiga_module *compile(tiga_context *ctx, int opt_level, int64_t F) {
    tigac_options o = tigac_defaults();
    tigac_define fixed = {"F", F};
    tigac_result *r = NULL;
    o.opt_level = opt_level;
    o.emit = TIGAC_EMIT(TIGAC_SO) | TIGAC_EMIT(TIGAC_LOOP_IR);
    o.defines = &fixed;
    o.n_defines = F > 0;
    if (tigac_compile(source, strlen(source), &o, &r) != TIGAC_OK) die("compile", r ? r->rendered : "out of memory");
    int n = 0;
    for (const char *at = r->outputs[TIGAC_LOOP_IR].bytes; (at = strstr(at, " winners(")); at++) n++;
    compare("each of the three goes back to its winners, two by one kernel", n == (opt_level ? 2 : 3));
    return load_module(ctx, r);
}

static tiga_context *context(int threads) {
    tiga_context *ctx = NULL;
    tiga_context_options o = tiga_context_defaults();
    o.threads = threads;
    if (tiga_context_new(&o, &ctx)) die("context", "cannot be made");
    return ctx;
}

int main(void) {
    static const char *const names[] = {"top_step", "low_step", "raised_step"};
    static const int64_t open[] = {2, 15, 16, 17, 48, 128, 130};
    static int32_t narrow[MAX_E];
    tiga_context *ctx[MOST_THREADS];
    tiga_graph *g[2];
    for (int t = 0; t < MOST_THREADS; t++) ctx[t] = context(t + 1);
    fill_graph();
    for (int64_t e = 0; e < offsets[N_DST]; e++) narrow[e] = (int32_t)sources[e];
    if (tiga_graph_from_csr(ctx[0], N_DST, N_SRC, offsets, narrow, 32, 0, &g[0]) ||
        tiga_graph_from_csr(ctx[0], N_DST, N_SRC, offsets, sources, 64, 0, &g[1]))
        die("graph", tiga_error_text(ctx[0]));
    for (int fixed = 0; fixed < 3; fixed++) {
        tiga_module *m = compile(ctx[0], fixed == 2 ? 0 : 3, fixed ? 32 : 0);
        for (int n = 0; n < 3; n++)
            for (int kind = 0; kind < 3; kind++)
                for (size_t w = 0; w < (fixed ? 1 : sizeof open / sizeof *open); w++)
                    try_one(ctx, m, g, names[n], fixed ? 32 : open[w], kind);
        tiga_module_free(m);
    }
    printf("%d checks, %d failures\n", checks, failures);
    tiga_graph_free(g[0]);
    tiga_graph_free(g[1]);
    for (int t = 0; t < MOST_THREADS; t++) tiga_context_free(ctx[t]);
    return failures != 0;
}
