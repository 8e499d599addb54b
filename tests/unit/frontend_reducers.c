/* Reducers of the user mean what the built-in ones mean, on the reference interpreter. */
#include "frontend/frontend.h"

#include <criterion/criterion.h>
#include <math.h>

enum { ROWS = 5, SOURCES = 40, EDGES = 77 };

/* rows of 0, 1, 16, 17 and 43 edges */
static const int64_t OFFSETS[ROWS + 1] = {0, 0, 1, 17, 34, EDGES};

static const char TEXT[] =
    "reducer total(m: f32) -> f32 {\n"
    "    state    s: f32 = 0\n"
    "    lift     m\n"
    "    combine  (a.s + b.s)\n"
    "    finalize s\n"
    "    commutative\n"
    "}\n"
    "reducer average[F](m: f32[F]) -> f32[F] {\n"
    "    state    s: f32[F] = 0, n: i64 = 0\n"
    "    lift     (m, 1)\n"
    "    combine  (a.s + b.s, a.n + b.n)\n"
    "    finalize s / f32(n)\n"
    "}\n"
    "reducer variance[F](m: f32[F]) -> f32[F] {\n"
    "    state    n: f32 = 0, mean: f32[F] = 0, m2: f32[F] = 0\n"
    "    lift     (1, m, 0)\n"
    "    combine  (a.n + b.n, a.mean + (b.mean - a.mean) * (b.n / max(a.n + b.n, 1)),\n"
    "              a.m2 + b.m2 + (b.mean - a.mean) ^ 2 * (a.n * b.n / max(a.n + b.n, 1)))\n"
    "    finalize m2 / n\n"
    "}\n"
    "reducer last(m: f32, keep: bool) -> f32 {\n"
    "    state    v: f32 = -1, any: bool = false\n"
    "    lift     (m, keep)\n"
    "    combine  (select(b.any, b.v, a.v), a.any or b.any)\n"
    "    finalize v\n"
    "}\n"
    "kernel k[F](src x: f32, src y: f32[F]) -> (s: f32, t: f32, mean: f32[F], m: f32[F], spread: f32[F], last: f32) {\n"
    "    return (s = reduce total(src.x), t = reduce sum(src.x), mean = reduce average(src.y, empty = 7),\n"
    "            m = reduce mean(src.y, empty = 7), spread = reduce variance(src.y),\n"
    "            last = reduce last(src.x, keep = src.x > 0))\n"
    "}\n";

static float sample(int64_t i) { return (float)((i * 37 + 11) % 101 - 50) / 8; }

static void expect_near(float got, double want, const char *what, int row) {
    cr_expect((isnan(got) && isnan(want)) || fabs((double)got - want) <= 1e-4 * (1 + fabs(want)),
              "%s of row %d: %.9g, expected %.9g", what, row, (double)got, want);
}

static void expect_same(float got, float want, const char *what, int row) {
    cr_expect((isnan(got) && isnan(want)) || got == want, "%s of row %d: %.9g, expected %.9g", what, row, (double)got,
              (double)want);
}

Test(reducers, mean_what_the_built_in_ones_mean) {
    base_arena *arena = base_arena_new();
    base_diags d;
    base_str err = {0};
    base_diags_init(&d, arena, "test.tg", TEXT);
    ir_module *m = fe_compile(arena, "test.tg", TEXT, NULL, 0, &d);
    cr_assert(m && ir_verify(m, &err), "%s", base_str_text(&err));
    int64_t sources[EDGES], dims[] = {2};
    float x[SOURCES], y[2 * SOURCES], out[6][2 * ROWS];
    for (int e = 0; e < EDGES; e++)
        sources[e] = (e * 13) % SOURCES;
    for (int i = 0; i < SOURCES; i++) {
        x[i] = sample(i);
        y[2 * i] = sample(3 * i + 1);
        y[2 * i + 1] = sample(5 * i + 2);
    }
    ir_graph_data g = {.n_dst = ROWS, .n_src = SOURCES, .n_edges = EDGES, .offsets = OFFSETS, .sources = sources};
    const void *in[] = {x, y};
    void *results[] = {out[0], out[1], out[2], out[3], out[4], out[5]};
    ir_call_data call = {.graph = &g, .dims = dims, .in = in, .out = results};
    cr_assert(ir_interpret_graph(m, ir_func_find(m, "k", IR_LEVEL_KERNEL), &call, &err), "%s", base_str_text(&err));
    for (int i = 0; i < ROWS; i++) {
        double n = (double)(OFFSETS[i + 1] - OFFSETS[i]);
        float last = -1;
        for (int64_t e = OFFSETS[i]; e < OFFSETS[i + 1]; e++)
            last = x[sources[e]] > 0 ? x[sources[e]] : last;
        expect_same(out[0][i], out[1][i], "sum", i);
        if (n <= 16)
            expect_same(out[5][i], last, "last", i);
        for (int k = 0; k < 2; k++) {
            double mean = 0, var = 0;
            for (int64_t e = OFFSETS[i]; e < OFFSETS[i + 1]; e++)
                mean += (double)y[2 * sources[e] + k] / n;
            for (int64_t e = OFFSETS[i]; e < OFFSETS[i + 1]; e++)
                var += pow((double)y[2 * sources[e] + k] - mean, 2) / n;
            expect_same(out[2][2 * i + k], out[3][2 * i + k], "mean", i);
            expect_near(out[4][2 * i + k], n > 0 ? var : NAN, "variance", i);
        }
    }
    base_arena_free(arena);
}
