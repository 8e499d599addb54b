/* What programs mean: small kernels and programs, compiled and run by the reference interpreter, against plain C. */
#include "frontend/frontend.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* 4 destinations, 3 sources: row 0 <- 0, 1, 1; row 1 <- 2; row 2 empty; row 3 <- 2, 0 */
static const int64_t OFFSETS[] = {0, 3, 4, 4, 6}, SOURCES[] = {0, 1, 1, 2, 2, 0};
static const ir_graph_data GRAPH = {4, 3, 6, OFFSETS, SOURCES};
static const int64_t SQUARE_OFFSETS[] = {0, 3, 4, 6}, SQUARE_SOURCES[] = {0, 1, 1, 2, 2, 0};
static const ir_graph_data SQUARE = {3, 3, 6, SQUARE_OFFSETS, SQUARE_SOURCES};

typedef struct compiled {
    base_arena *arena;
    ir_module *m;
} compiled;

static compiled compile(const char *text) {
    compiled c = {.arena = base_arena_new()};
    base_diags d;
    base_str shown = {0}, err = {0};
    base_diags_init(&d, c.arena, "test.tg", text);
    c.m = fe_compile(c.arena, "test.tg", text, NULL, 0, &d);
    base_diags_render(&d, false, &shown);
    cr_assert_not_null(c.m, "%s", base_str_text(&shown));
    cr_assert(ir_verify(c.m, &err), "%s", base_str_text(&err));
    base_str_fini(&shown);
    return c;
}

static void run(compiled *c, const char *name, ir_level level, const ir_call_data *call) {
    base_str err = {0};
    const ir_func *f = ir_func_find(c->m, name, level);
    cr_assert_not_null(f);
    cr_assert(ir_interpret_graph(c->m, f, call, &err), "%s", base_str_text(&err));
}

static void same(float got, float want, const char *what) {
    cr_expect((isnan(got) && isnan(want)) || got == want, "%s: %.9g, expected %.9g", what, (double)got, (double)want);
}

/* ---- elementwise functions on the nodes of a row kernel ---------------------------------------------------------- */
typedef struct unary_case {
    const char *expr;
    float (*want)(float x);
} unary_case;

/* Tiga's own functions: the C library's differ from one of its versions to the next. */
static float two(ir_opcode code, float a, float b) {
    return ir_eval(code, IR_F32, IR_F32, (ir_scalar_value[]){{.f = a}, {.f = b}}).f;
}
static float one(ir_opcode code, float a) { return two(code, a, 0); }
static float w_sigmoid(float x) { return 1.0f / (1.0f + one(IR_EXP, -x)); }
static float w_relu(float x) { return x > 0 || isnan(x) ? x : 0.0f; }
static float w_leaky(float x) { return x > 0 ? x : 0.01f * x; }
static float w_leaky2(float x) { return x > 0 ? x : 0.2f * x; }
static float w_elu(float x) { return x > 0 ? x : 1.0f * one(IR_EXPM1, x); }
static float w_elu2(float x) { return x > 0 ? x : 2.5f * one(IR_EXPM1, x); }
static float w_gelu(float x) { return (0.5f * x) * (1.0f + one(IR_ERF, x * 0.7071067811865476f)); }
static float w_softplus(float x) { return (x > 0 || isnan(x) ? x : 0.0f) + one(IR_LOG1P, one(IR_EXP, -fabsf(x))); }
static float w_rsqrt(float x) { return 1.0f / sqrtf(x); }
static float w_clamp(float x) {
    float y = x > -1 || isnan(x) ? x : -1.0f;
    return y < 2 || isnan(y) ? y : 2.0f;
}
static float w_p2(float x) { return x * x; }
static float w_p3(float x) { return (x * x) * x; }
static float w_p4(float x) { return (x * x) * (x * x); }
static float w_p5(float x) { return two(IR_POW, x, 5.0f); }
static float w_half(float x) { return two(IR_POW, x, 0.5f); }
static float w_third(float x) { return (1.0f / 3.0f) * x; }
static float w_prec(float x) { return -(x * x) + 2.0f * x - x / 4.0f - 1.0f; }
static float w_right(float x) { return two(IR_POW, 2.0f, two(IR_POW, x, 2.5f)); }
static float w_rem(float x) { return fmodf(x, 1.5f); }
static float w_logic(float x) { return !(x > 1.0f) && (x > -1.0f || x < -2.0f) ? 1.0f : 0.0f; }
static float w_inf(float x) { return x > 0 ? INFINITY : -INFINITY; }
static float w_atan2(float x) { return two(IR_ATAN2, x, 2.0f); }

static const unary_case UNARY[] = {
    {"sigmoid(dst.x)", w_sigmoid},
    {"relu(dst.x)", w_relu},
    {"leaky_relu(dst.x)", w_leaky},
    {"leaky_relu(dst.x, a = 0.2)", w_leaky2},
    {"elu(dst.x)", w_elu},
    {"elu(dst.x, 2.5)", w_elu2},
    {"gelu(dst.x)", w_gelu},
    {"softplus(dst.x)", w_softplus},
    {"rsqrt(dst.x)", w_rsqrt},
    {"clamp(dst.x, -1, 2)", w_clamp},
    {"dst.x ^ 2", w_p2},
    {"dst.x ^ 3", w_p3},
    {"dst.x ^ 4", w_p4},
    {"dst.x ^ 5", w_p5},
    {"dst.x ^ 0.5", w_half},
    {"1 / 3 * dst.x", w_third},
    {"-dst.x ^ 2 + 2 * dst.x - dst.x / 4 - 1", w_prec},
    {"2 ^ dst.x ^ 2.5", w_right},
    {"dst.x % 1.5", w_rem},
    {"f32(not dst.x > 1 and (dst.x > -1 or dst.x < -2))", w_logic},
    {"select(dst.x > 0, inf, -inf)", w_inf},
    {"atan2(dst.x, 2)", w_atan2},
};

Test(values, elementwise_functions) {
    static const float X[] = {-2.75f, -0.0f, 0.3f, 1.7f};
    static const float SPECIAL[] = {NAN, INFINITY, -INFINITY, 1e-40f};
    for (size_t i = 0; i < sizeof UNARY / sizeof *UNARY; i++) {
        char text[256];
        snprintf(text, sizeof text, "kernel k(dst x: f32) -> f32 { return %s }", UNARY[i].expr);
        compiled c = compile(text);
        for (int round = 0; round < 2; round++) {
            const float *x = round ? SPECIAL : X;
            float out[4];
            ir_call_data call = {.graph = &GRAPH, .in = (const void *const[]){x}, .out = (void *const[]){out}};
            run(&c, "k", IR_LEVEL_KERNEL, &call);
            for (int r = 0; r < 4; r++)
                same(out[r], UNARY[i].want(x[r]), UNARY[i].expr);
        }
        base_arena_free(c.arena);
    }
}

/* ---- reducers ---------------------------------------------------------------------------------------------------- */
typedef struct reduce_case {
    const char *expr;
    float want[4];
} reduce_case;

/* src x = 1, 2, 4; edge w = 1, -1, 3, 2, 0.5, 1 */
static const reduce_case REDUCE[] = {
    {"reduce sum(src.x)", {5, 4, 0, 5}},
    {"reduce sum(src.x, empty = 7)", {5, 4, 7, 5}},
    {"reduce sum(src.x, empty = dst.y * 2)", {5, 4, 60, 5}},
    {"reduce prod(edge.w)", {-3, 2, 1, 0.5f}},
    {"reduce min(edge.w)", {-1, 2, INFINITY, 0.5f}},
    {"reduce max(edge.w)", {3, 2, -INFINITY, 1}},
    {"reduce mean(src.x)", {5.0f / 3.0f, 4, NAN, 2.5f}},
    {"reduce mean(src.x, empty = 0)", {5.0f / 3.0f, 4, 0, 2.5f}},
    {"f32(reduce argmax(src.x))", {1, 2, -1, 2}},
    {"f32(reduce argmin(edge.w, empty = 9))", {1, 2, 9, 2}},
    {"f32(reduce count())", {3, 1, 0, 2}},
    {"f32(reduce count(edge.w > 0.75))", {2, 1, 0, 1}},
    {"f32(reduce any(edge.w < 0))", {1, 0, 0, 0}},
    {"f32(reduce all(edge.w > 0))", {0, 1, 1, 1}},
    {"reduce sum(1.0)", {3, 1, 0, 2}},
    {"reduce sum(dst.y)", {30, 20, 0, 80}},
    {"reduce sum(src.x - reduce max(src.x))", {-1, 0, 0, -3}},
    {"reduce softmax(0 * src.x, edge.w)", {1, 2, NAN, 0.75f}},
    {"reduce softmax(0 * src.x, edge.w, empty = -3)", {1, 2, -3, 0.75f}},
    {"reduce logsumexp(0 * src.x)", {1.09861231f, 0, -INFINITY, 0.693147182f}},
};

Test(values, reducers_and_empty_rows) {
    static const float X[] = {1, 2, 4}, Y[] = {10, 20, 30, 40}, W[] = {1, -1, 3, 2, 0.5f, 1};
    for (size_t i = 0; i < sizeof REDUCE / sizeof *REDUCE; i++) {
        char text[256];
        snprintf(text, sizeof text, "kernel k(src x: f32, dst y: f32, edge w: f32) -> f32 { return %s }",
                 REDUCE[i].expr);
        compiled c = compile(text);
        float out[4];
        ir_call_data call = {.graph = &GRAPH, .in = (const void *const[]){X, Y, W}, .out = (void *const[]){out}};
        run(&c, "k", IR_LEVEL_KERNEL, &call);
        for (int r = 0; r < 4; r++)
            same(out[r], REDUCE[i].want[r], REDUCE[i].expr);
        base_arena_free(c.arena);
    }
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */
Test(values, folds_over_axes) {
    compiled c =
        compile("kernel k[H, F](dst x: f32[H, F], dst y: f32[F]) -> (a: f32, b: f32[H], c: f32[F], d: f32[H], e: f32, "
                "f: bool, n: i64) {\n"
                "    return (a = sum(dst.x), b = mean(dst.x, axis = -1), c = max(dst.x, axis = 0),\n"
                "            d = dot(dst.x, dst.y), e = min(dst.x) * prod(dst.y) + mean(dst.x),\n"
                "            f = any(dst.x > 5) and all(dst.y > 0), n = H * 10 + F)\n"
                "}\n");
    float x[4 * 6], y[4 * 3], a[4], b[8], cc[12], d[8], e[4];
    uint8_t f[4];
    int64_t n[4];
    for (int i = 0; i < 24; i++)
        x[i] = (float)(i % 7) + 0.5f;
    for (int i = 0; i < 12; i++)
        y[i] = (float)(i % 3) + 1;
    ir_call_data call = {.graph = &GRAPH, .dims = (const int64_t[]){2, 3}, .in = (const void *const[]){x, y}};
    call.out = (void *const[]){a, b, cc, d, e, f, n};
    run(&c, "k", IR_LEVEL_KERNEL, &call);
    for (int r = 0; r < 4; r++) {
        const float *m = x + 6 * r;
        float sum = 0, least = m[0];
        for (int i = 0; i < 6; i++) {
            sum += m[i];
            least = fminf(least, m[i]);
        }
        same(a[r], sum, "sum");
        same(e[r], least * 6 + sum / 6, "min, prod, mean");
        for (int h = 0; h < 2; h++) {
            same(b[2 * r + h], (m[3 * h] + m[3 * h + 1] + m[3 * h + 2]) / 3, "mean over the last axis");
            same(d[2 * r + h], m[3 * h] + 2 * m[3 * h + 1] + 3 * m[3 * h + 2], "dot");
        }
        for (int k = 0; k < 3; k++)
            same(cc[3 * r + k], fmaxf(m[k], m[3 + k]), "max over the first axis");
        bool big = false;
        for (int i = 0; i < 6; i++)
            big |= m[i] > 5;
        cr_expect_eq(f[r], big);
        cr_expect_eq(n[r], 23);
    }
    base_arena_free(c.arena);
}

Test(values, results_are_repeated_to_their_shape) {
    compiled c = compile("kernel k[F](dst x: f32, edge w: f32, param p: f32[F]) -> (a: f32[F], b: edge f32[F], c: edge "
                         "i64, d: f64[2]) {\n"
                         "    return (a = dst.x, b = dst.x * p, c = 5, d = 0.1)\n"
                         "}\n");
    static const float X[] = {1, 2, 3, 4}, W[6] = {0}, P[] = {1, 10};
    float a[8], b[12];
    int64_t e[6];
    double d[8];
    ir_call_data call = {.graph = &GRAPH, .dims = (const int64_t[]){2}, .in = (const void *const[]){X, W, P}};
    call.out = (void *const[]){a, b, e, d};
    run(&c, "k", IR_LEVEL_KERNEL, &call);
    static const int ROW[] = {0, 0, 0, 1, 3, 3};
    for (int i = 0; i < 8; i++) {
        same(a[i], X[i / 2], "a");
        cr_expect_eq(d[i], 0.1);
    }
    for (int i = 0; i < 12; i++)
        same(b[i], X[ROW[i / 2]] * P[i % 2], "b");
    for (int i = 0; i < 6; i++)
        cr_expect_eq(e[i], 5);
    base_arena_free(c.arena);
}

/* ---- integers and literals --------------------------------------------------------------------------------------- */
Test(values, integers_and_literals) {
    compiled c = compile(
        "kernel k(dst n: i64, dst s: i32) -> (a: i64, b: i64, c: i32, d: i64, e: f64, f: f64, g: i64) {\n"
        "    return (a = div(dst.n, 3), b = dst.n % 3, c = dst.s * 2147483647, d = -9223372036854775808 + 0 * dst.n,\n"
        "            e = f64(0.1), f = select(dst.n > 0, 0.1, 1 / 3), g = i64(f32(dst.n) / 2))\n"
        "}\n");
    static const int64_t N[] = {7, -7, 0, 100};
    static const int32_t S[] = {1, 2, -1, 0};
    int64_t a[4], b[4], d[4], g[4];
    int32_t cc[4];
    double e[4], f[4];
    ir_call_data call = {
        .graph = &GRAPH, .in = (const void *const[]){N, S}, .out = (void *const[]){a, b, cc, d, e, f, g}};
    run(&c, "k", IR_LEVEL_KERNEL, &call);
    static const int64_t G[] = {3, -3, 0, 50};
    for (int r = 0; r < 4; r++) {
        cr_expect_eq(a[r], N[r] / 3);
        cr_expect_eq(b[r], N[r] % 3);
        cr_expect_eq(cc[r], (int32_t)((uint32_t)S[r] * 2147483647u));
        cr_expect_eq(d[r], INT64_MIN);
        cr_expect_eq(e[r], 0.1);
        cr_expect_eq(f[r], N[r] > 0 ? 0.1 : 1.0 / 3.0);
        cr_expect_eq(g[r], G[r]);
    }
    base_arena_free(c.arena);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */
/* A 16-bit float is f32 where it is computed with; a place of that type rounds once. */
Test(values, sixteen_bit_floats_are_stored) {
    compiled c =
        compile("fn twice(x: T) -> T = x + x\n"
                "fn narrow(x: f32) -> bf16 = x\n"
                "kernel k(dst x: f16, dst y: f32, dst z: bf16) -> (a: f16, b: f32, c: bf16, d: f32, e: f16) {\n"
                "    let kept = dst.x\n"
                "    return (a = kept * kept + dst.y, b = twice(kept) * dst.z, c = narrow(dst.y),\n"
                "            d = f32(f16(dst.y)) - dst.y, e = select(dst.y > 0, dst.x, 1.5))\n"
                "}\n"
                "program p(g: graph, x: f16[g.dst], n: i64) -> f16[g.dst] {\n"
                "    var r = x\n"
                "    repeat n { r = k(g, x = r, y = 2 * r, z = 1).b }\n"
                "    return r / 3\n"
                "}\n");
    uint16_t x[4], z[4], a[4], cc[4], e[4], r[4];
    float y[4] = {0.1f, -3.0e4f, 1e-8f, 70000}, b[4], d[4];
    for (int i = 0; i < 4; i++) {
        x[i] = base_f16_from_f32(0.1f * (float)(i + 1));
        z[i] = base_bf16_from_f32(3.3f * (float)(i - 1));
    }
    ir_call_data call = {.graph = &GRAPH, .in = (const void *const[]){x, y, z}};
    call.out = (void *const[]){a, b, cc, d, e};
    run(&c, "k", IR_LEVEL_KERNEL, &call);
    for (int i = 0; i < 4; i++) {
        float fx = base_f32_from_f16(x[i]);
        cr_expect_eq(a[i], base_f16_from_f32(fx * fx + y[i]), "one rounding");
        same(b[i], (fx + fx) * base_f32_from_bf16(z[i]), "f32 in between");
        cr_expect_eq(cc[i], base_bf16_from_f32(y[i]));
        same(d[i], base_f32_from_f16(base_f16_from_f32(y[i])) - y[i], "a cast rounds");
        cr_expect_eq(e[i], y[i] > 0 ? x[i] : base_f16_from_f32(1.5f));
    }
    const ir_graph_data *graphs[] = {&SQUARE};
    const int64_t dims[] = {3, 3, 6}, n = 2;
    ir_call_data prog = {
        .graphs = graphs, .dims = dims, .in = (const void *const[]){NULL, x, &n}, .out = (void *const[]){r}};
    run(&c, "p", IR_LEVEL_PROGRAM, &prog);
    for (int i = 0; i < 3; i++) {
        uint16_t v = x[i];
        for (int k = 0; k < 2; k++)
            v = base_f16_from_f32(2 * base_f32_from_f16(v));
        cr_expect_eq(r[i], base_f16_from_f32(base_f32_from_f16(v) / 3));
    }
    base_arena_free(c.arena);
}

Test(values, small_integers) {
    compiled c =
        compile("kernel k(dst x: i8, dst y: u8) -> (a: i8, b: u8, c: i32, d: bool) {\n"
                "    return (a = dst.x * 2 + 100, b = dst.y + 200, c = i32(dst.x) + i32(dst.y), d = dst.y > 199)\n"
                "}\n");
    int8_t x[] = {100, -100, 127, -128}, a[4];
    uint8_t y[] = {0, 100, 200, 255}, b[4], d[4];
    int32_t cc[4];
    ir_call_data call = {.graph = &GRAPH, .in = (const void *const[]){x, y}, .out = (void *const[]){a, b, cc, d}};
    run(&c, "k", IR_LEVEL_KERNEL, &call);
    for (int i = 0; i < 4; i++) {
        cr_expect_eq(a[i], (int8_t)(uint8_t)(x[i] * 2 + 100));
        cr_expect_eq(b[i], (uint8_t)(y[i] + 200));
        cr_expect_eq(cc[i], x[i] + y[i]);
        cr_expect_eq(d[i], y[i] > 199);
    }
    base_arena_free(c.arena);
}

Test(values, functions_are_generic_and_hygienic) {
    compiled c = compile("fn twice(x: T) -> T = x + x\n"
                         "fn poly(x: T, y: T, k: f32) -> T = twice(x) * y + T_of(x)\n"
                         "fn T_of(y: T) -> T = twice(y) * twice(y)\n"
                         "kernel k(dst x: f64, dst y: i64) -> (a: f64, b: i64, c: f32) {\n"
                         "    let y = poly(dst.x, 3, 1)\n"
                         "    return (a = y, b = poly(y = dst.y, x = 2, k = 0), c = twice(1.5))\n"
                         "}\n");
    static const double X[] = {1, 2, 0.5, -1};
    static const int64_t Y[] = {1, 2, 3, 4};
    double a[4];
    int64_t b[4];
    float f[4];
    ir_call_data call = {.graph = &GRAPH, .in = (const void *const[]){X, Y}, .out = (void *const[]){a, b, f}};
    run(&c, "k", IR_LEVEL_KERNEL, &call);
    for (int r = 0; r < 4; r++) {
        cr_expect_eq(a[r], 2 * X[r] * 3 + 4 * X[r] * X[r]);
        cr_expect_eq(b[r], 4 * Y[r] + 16);
        same(f[r], 3, "c");
    }
    base_arena_free(c.arena);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */
static const char PAGERANK[] = "kernel neighbour_sum(src x: f64) -> f64 { return reduce sum(src.x) }\n"
                               "program pagerank(g: graph, outdeg: f64[g.src], d: f64, rounds: i64) -> f64[g.dst] {\n"
                               "    var r = fill(1 / f64(g.num_dst), [g.dst])\n"
                               "    repeat rounds {\n"
                               "        let spread = neighbour_sum(g, x = select(outdeg > 0, r / outdeg, 0))\n"
                               "        let lost = sum(select(outdeg > 0, 0, r))\n"
                               "        r = (1 - d) / f64(g.num_dst) + d * (spread + lost / f64(g.num_dst))\n"
                               "    }\n"
                               "    return r\n"
                               "}\n";

static void plain_pagerank(const ir_graph_data *g, const double *outdeg, int64_t rounds, double *r) {
    double next[3];
    for (int i = 0; i < 3; i++)
        r[i] = 1.0 / 3;
    for (int64_t k = 0; k < rounds; k++) {
        double lost = 0;
        for (int i = 0; i < 3; i++)
            lost += outdeg[i] > 0 ? 0 : r[i];
        for (int i = 0; i < 3; i++) {
            double spread = 0;
            for (int64_t e = g->offsets[i]; e < g->offsets[i + 1]; e++)
                spread += r[g->sources[e]] / outdeg[g->sources[e]];
            next[i] = (1 - 0.85) / 3 + 0.85 * (spread + lost / 3);
        }
        memcpy(r, next, sizeof next);
    }
}

Test(values, pagerank) {
    compiled c = compile(PAGERANK);
    const ir_func *f = ir_func_find(c.m, "pagerank", IR_LEVEL_PROGRAM);
    cr_assert(f->needs_square && f->exported);
    cr_expect_str_eq(f->signature, "program pagerank(g: graph, outdeg: f64[g.src], d: f64, rounds: i64) -> f64[g.dst]");
    static const double DEG[] = {2, 2, 2}, D = 0.85;
    for (int64_t rounds = -1; rounds < 6; rounds++) {
        double out[3], want[3];
        ir_call_data call = {.dims = (const int64_t[]){3, 3, 6}, .in = (const void *const[]){NULL, DEG, &D, &rounds}};
        call.graphs = (const ir_graph_data *const[]){&SQUARE, NULL, NULL, NULL};
        call.out = (void *const[]){out};
        run(&c, "pagerank", IR_LEVEL_PROGRAM, &call);
        plain_pagerank(&SQUARE, DEG, rounds, want);
        for (int i = 0; i < 3; i++)
            cr_expect(fabs(out[i] - want[i]) < 1e-12, "%lld rounds: %g, expected %g", (long long)rounds, out[i],
                      want[i]);
    }
    base_arena_free(c.arena);
}

Test(values, a_kernel_may_be_called_mean) {
    compiled c = compile("kernel mean(src x: f32) -> f32 { return reduce mean(src.x, empty = mean_of(1.0)) }\n"
                         "fn mean_of(x: T) -> T = max(x, 2)\n"
                         "program p(g: graph, x: f32[g.src]) -> f32 { return mean(mean(g, x = x)) }\n");
    static const float X[] = {1, 2, 4};
    float out;
    ir_call_data call = {.dims = (const int64_t[]){4, 3, 6}, .in = (const void *const[]){NULL, X}};
    call.graphs = (const ir_graph_data *const[]){&GRAPH, NULL};
    call.out = (void *const[]){&out};
    run(&c, "p", IR_LEVEL_PROGRAM, &call);
    same(out, (5.0f / 3.0f + 4 + 2 + 2.5f) / 4, "mean of means");
    base_arena_free(c.arena);
}

Test(values, programs_call_kernels_and_nest_loops) {
    compiled c = compile(
        "kernel stats[F](src x: f32[F], edge w: f32) -> (total: f32[F], best: i64, each: edge f32) {\n"
        "    return (total = reduce sum(edge.w * src.x), best = reduce argmax(edge.w), each = edge.w * 2)\n"
        "}\n"
        "program p[F](g: graph, x: f32[g.src, F]) -> (t: f32[g.dst, F], b: i64, m: f32, n: i64, w: f32) {\n"
        "    let s = stats(g, w = 0.5, x = x)\n"
        "    var a = 0\n"
        "    var k = 1\n"
        "    repeat 3 {\n"
        "        repeat k {\n"
        "            a = a + 1\n"
        "        }\n"
        "        k = k * 2\n"
        "    }\n"
        "    return (t = s.total + f32(a), b = sum(s.best), m = mean(s.total), n = k + g.num_edges, w = sum(s.each))\n"
        "}\n");
    static const float X[] = {1, 10, 2, 20, 4, 40};
    static const float T[] = {2.5f, 25, 2, 20, 0, 0, 2.5f, 25};
    float t[8], m, w;
    int64_t b, n;
    ir_call_data call = {.dims = (const int64_t[]){4, 3, 6, 2}, .in = (const void *const[]){NULL, X}};
    call.graphs = (const ir_graph_data *const[]){&GRAPH, NULL};
    call.out = (void *const[]){t, &b, &m, &n, &w};
    run(&c, "p", IR_LEVEL_PROGRAM, &call);
    float sum = 0;
    for (int i = 0; i < 8; i++) {
        same(t[i], T[i] + 7, "t");
        sum += T[i];
    }
    cr_expect_eq(b, 0 + 2 - 1 + 2);
    cr_expect_eq(n, 8 + 6);
    same(m, sum / 8, "m");
    same(w, 6, "w");
    base_arena_free(c.arena);
}
