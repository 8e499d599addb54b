/* What our functions of mathematics cost in a kernel, beside the C library's: one at a time, and glibc's vectors (libmvec,
 * within 4 units in the last place) where the processor has AVX2 or AVX-512.  The kernel is a sum over edges of f(w x) with
 * 64 features; every contender computes the same one, from the same arrays, on one thread.  Rounds go A B C A B C; the
 * numbers are medians: nanoseconds a value, and how many times slower the others are.
 *
 *     bench_math [ROUNDS] */
#include "tiga/jit.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { F = 64, ROWS = 256, DEGREE = 16, EDGES = ROWS * DEGREE, MOST_ROUNDS = 101 };

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#define ONE_F32(stem) _ZGVeN16v_##stem##f
#define ONE_F64(stem) _ZGVeN8v_##stem
#define TWO_F32(stem) _ZGVeN16vv_##stem##f
#define TWO_F64(stem) _ZGVeN8vv_##stem
#else
enum { VECTOR = 32 };
#define ONE_F32(stem) _ZGVdN8v_##stem##f
#define ONE_F64(stem) _ZGVdN4v_##stem
#define TWO_F32(stem) _ZGVdN8vv_##stem##f
#define TWO_F64(stem) _ZGVdN4vv_##stem
#endif
typedef float vf __attribute__((vector_size(VECTOR), aligned(4), may_alias));
typedef double vd __attribute__((vector_size(VECTOR), aligned(8), may_alias));
typedef float rf __attribute__((vector_size(VECTOR)));
typedef double rd __attribute__((vector_size(VECTOR)));

#define SCALAR __attribute__((optimize("no-tree-vectorize")))
typedef void kernel(const void *w, const void *x, void *out, const int32_t *col);

#define LOOP(name, attributes, T, V, R, call)                                                                          \
    attributes static void name(const void *w0, const void *x0, void *out0, const int32_t *col) {                                 \
        const T *w = w0, *x = x0;                                                                                      \
        T *out = out0;                                                                                                 \
        for (int r = 0; r < ROWS; r++) {                                                                               \
            V *to = (V *)(void *)(out + (size_t)r * F);                                                                \
            for (size_t l = 0; l < F * sizeof(T) / sizeof(V); l++)                                                     \
                to[l] = to[l] - to[l];                                                                                 \
            for (int e = r * DEGREE; e < (r + 1) * DEGREE; e++)                                                        \
                for (size_t l = 0; l < F * sizeof(T) / sizeof(V); l++) {                                               \
                    R a = ((const V *)(const void *)(x + (size_t)col[e] * F))[l], b = w[e] + (a - a);                  \
                    (void)b;                                                                                           \
                    to[l] += call;                                                                                     \
                }                                                                                                      \
        }                                                                                                              \
    }

#define FUNCTION1(stem)                                                                                                \
    rf ONE_F32(stem)(rf);                                                                                              \
    rd ONE_F64(stem)(rd);                                                                                              \
    LOOP(stem##_lib_f32, SCALAR, float, float, float, stem##f(a *b))                                                           \
    LOOP(stem##_lib_f64, SCALAR, double, double, double, stem(a *b))                                                           \
    LOOP(stem##_vec_f32, , float, vf, rf, ONE_F32(stem)(a *b))                                                           \
    LOOP(stem##_vec_f64, , double, vd, rd, ONE_F64(stem)(a *b))
#define FUNCTION2(stem)                                                                                                \
    rf TWO_F32(stem)(rf, rf);                                                                                          \
    rd TWO_F64(stem)(rd, rd);                                                                                          \
    LOOP(stem##_lib_f32, SCALAR, float, float, float, stem##f(a, b))                                                           \
    LOOP(stem##_lib_f64, SCALAR, double, double, double, stem(a, b))                                                           \
    LOOP(stem##_vec_f32, , float, vf, rf, TWO_F32(stem)(a, b))                                                           \
    LOOP(stem##_vec_f64, , double, vd, rd, TWO_F64(stem)(a, b))

FUNCTION1(exp)
FUNCTION1(expm1)
FUNCTION1(log)
FUNCTION1(log1p)
FUNCTION1(sin)
FUNCTION1(cos)
FUNCTION1(tan)
FUNCTION1(asin)
FUNCTION1(acos)
FUNCTION1(atan)
FUNCTION1(sinh)
FUNCTION1(cosh)
FUNCTION1(tanh)
FUNCTION1(erf)
FUNCTION2(pow)
FUNCTION2(atan2)

typedef struct function {
    const char *name, *arguments;
    kernel *contenders[2][2]; /* f32, f64; one at a time, vectors */
} function;

#define ROW(stem, arguments)                                                                                           \
    {#stem, arguments, {{stem##_lib_f32, stem##_vec_f32}, {stem##_lib_f64, stem##_vec_f64}}}
#define ROW1(stem) ROW(stem, "edge.w * src.x")
#define ROW2(stem) ROW(stem, "src.x, edge.w + (src.x - src.x)")
static const function functions[] = {ROW1(exp),  ROW1(expm1), ROW1(log),  ROW1(log1p), ROW1(sin),  ROW1(cos),
                                     ROW1(tan),  ROW1(asin),  ROW1(acos), ROW1(atan),  ROW1(sinh), ROW1(cosh),
                                     ROW1(tanh), ROW1(erf),   ROW2(pow),  ROW2(atan2)};

static tiga_context *ctx;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* all is done by this thread; others may be busy */
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

static void stop(const char *what) {
    fprintf(stderr, "bench_math: %s: %s\n", what, tiga_error_text(ctx));
    exit(1);
}

static double at(const void *p, int type, size_t i) {
    return type ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void compare(const function *f, int type, const void *ours, const void *theirs) {
    for (size_t i = 0; i < (size_t)ROWS * F; i++) {
        double a = at(ours, type, i), b = at(theirs, type, i);
        if (a != b && !(fabs(a - b) <= (type ? 1e-12 : 1e-4) * (fabs(b) + 1))) { /* NaN is not near anything */
            fprintf(stderr, "bench_math: %s: %g, not %g\n", f->name, a, b);
            exit(1);
        }
    }
}

typedef struct arrays {
    void *w, *x, *out;
    const int32_t *col;
    const int64_t *offsets;
} arrays;

static tiga_prepared *prepare(const function *f, int type, const arrays *a, tiga_module **m, tiga_graph **g) {
    char text[400];
    const char *name = type ? "f64" : "f32";
    snprintf(text, sizeof text, "kernel k(src x: %s[%d], edge w: %s) -> %s[%d] { return reduce sum(%s(%s)) }\n", name, F,
             name, name, F, f->name, f->arguments);
    int32_t t = type ? TIGA_F64 : TIGA_F32;
    int64_t rows[2] = {ROWS, F}, edges = EDGES;
    static tiga_array x, w, out;
    x = tiga_array_borrow(a->x, t, 2, rows);
    w = tiga_array_borrow(a->w, t, 1, &edges);
    out = tiga_array_borrow(a->out, t, 2, rows);
    tiga_binding in[] = {{"x", &x}, {"w", &w}}, results[] = {{"out", &out}};
    tiga_prepared *p;
    if (tiga_jit_source(ctx, text, strlen(text), NULL, m, NULL) ||
        tiga_graph_from_csr(ctx, ROWS, ROWS, a->offsets, a->col, 32, TIGA_BORROW, g) ||
        tiga_prepare(ctx, *m, "k", g, 1, in, 2, results, 1, &p))
        stop(f->name);
    return p;
}

static void measure(const function *f, int type, const arrays *a, int rounds) {
    double t[3][MOST_ROUNDS];
    static double theirs[ROWS * F];
    tiga_module *m;
    tiga_graph *g;
    tiga_prepared *p = prepare(f, type, a, &m, &g);
    for (int round = 0; round < rounds; round++) {
        double began = now();
        if (tiga_prepared_launch(p, NULL))
            stop(f->name);
        t[0][round] = now() - began;
        for (int k = 0; k < 2; k++) {
            __builtin_ia32_vzeroupper(); /* or SSE code pays for what the vectors left */
            began = now();
            f->contenders[type][k](a->w, a->x, theirs, a->col);
            t[k + 1][round] = now() - began;
            compare(f, type, a->out, theirs);
        }
    }
    double ours = median(t[0], rounds), each = (double)EDGES * F;
    printf("%-6s %s %7.2f ns   libm %6.2f   libmvec %6.2f\n", f->name, type ? "f64" : "f32", ours / each,
           median(t[1], rounds) / ours, median(t[2], rounds) / ours);
    fflush(stdout);
    tiga_prepared_free(p);
    tiga_graph_free(g);
    tiga_module_free(m);
}

int main(int argc, char **argv) {
    static float w32[EDGES], x32[ROWS * F], out32[ROWS * F];
    static double w64[EDGES], x64[ROWS * F], out64[ROWS * F];
    static int32_t col[EDGES];
    static int64_t offsets[ROWS + 1];
    int rounds = argc > 1 ? atoi(argv[1]) : 21;
    if (rounds < 1 || rounds > MOST_ROUNDS)
        return 2;
    srand(1);
    for (int i = 0; i < EDGES; i++)
        w64[i] = w32[i] = (float)rand() / (float)RAND_MAX, col[i] = rand() % ROWS;
    for (int i = 0; i < ROWS * F; i++) /* positive, so that log and pow have something to do; below 1, for asin */
        x64[i] = x32[i] = 0.999f * (float)rand() / (float)RAND_MAX + 1e-4f;
    for (int r = 0; r <= ROWS; r++)
        offsets[r] = (int64_t)r * DEGREE;
    tiga_context_options o = tiga_context_defaults();
    o.threads = 1;
    if (tiga_context_new(&o, &ctx))
        return 1;
    const arrays both[2] = {{w32, x32, out32, col, offsets}, {w64, x64, out64, col, offsets}};
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        for (int type = 0; type < 2; type++)
            measure(&functions[k], type, &both[type], rounds);
    tiga_context_free(ctx);
    return 0;
}
