/* The graph-level interpreter against numbers worked out by hand. */
#include "ir_support.h"

#include <stdio.h>

/* rows 0..2 have the edges {0,1}, {2}, {3,4}; an edge comes from the row in `sources` */
static const int64_t offsets[] = {0, 2, 3, 5}, sources[] = {0, 2, 1, 0, 1};
static const ir_graph_data graph = {3, 3, 5, offsets, sources};
/* the same with an empty first and last row */
static const int64_t gaps[] = {0, 0, 2, 2, 3, 3}, gap_sources[] = {2, 0, 1};
static const ir_graph_data gap_graph = {5, 3, 3, gaps, gap_sources};

static void run_kernel(const char *text, const ir_graph_data *g, const int64_t *dims, const void *const *in,
                       void *const *out) {
    base_arena *a = base_arena_new();
    const ir_module *m = parse(a, text);
    run(m, "k", &(ir_call_data){.graph = g, .dims = dims, .in = in, .out = out});
    base_arena_free(a);
}

Test(kernel, weighted_sum) {
    const float x[] = {1, 2, 3}, w[] = {2, 3, 4, 5, 6}, bias[] = {10, 20, 30};
    float out[3];
    const ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/graph_weighted_sum.ir");
    ir_call_data call = {
        .graph = &graph, .dims = (int64_t[]){1}, .in = (const void *[]){x, w, bias}, .out = (void *[]){out}};
    run(m, "weighted_sum", &call);
    expect_f32(out, 3, 10 + 2 * 1 + 3 * 3, 20 + 4 * 2, 30 + 5 * 1 + 6 * 2);
    run(m, "plain", &call);
    expect_f32(out, 3, 11, 8, 17);
}

Test(kernel, weighted_sum_with_features_and_without) {
    const float x[] = {1, 10, 2, 20, 3, 30}, w[] = {2, 3, 4, 5, 6}, bias[] = {0, 1, 0, 1, 0, 1};
    float out[6];
    const ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/graph_weighted_sum.ir");
    ir_call_data call = {
        .graph = &graph, .dims = (int64_t[]){2}, .in = (const void *[]){x, w, bias}, .out = (void *[]){out}};
    run(m, "weighted_sum", &call);
    expect_f32(out, 6, 11, 111, 8, 81, 17, 171);
    call.dims = (int64_t[]){0};
    memset(out, 0x55, sizeof out);
    run(m, "weighted_sum", &call);
    for (int i = 0; i < 24; i++)
        cr_assert_eq(((unsigned char *)out)[i], 0x55);
}

/* Tiga's function: the C library's differ from one of its versions to the next. */
static float own(ir_opcode code, float x) { return ir_eval(code, IR_F32, IR_F32, (ir_scalar_value[]){{.f = x}}).f; }

#define EDGE_KERNEL(result, body)                                                                                      \
    "module m\nkernel @k(edge v: f32) -> (o: row " result ") {\n%1 = field {field = 0, at = edge} : edge f32\n" body   \
    "\nret %2\n}"
#define REDUCE(kind, result) EDGE_KERNEL(result, "%2 = reduce %1 {kind = " kind "} : row " result)

static void reduce(const char *text, const float *v, void *out) {
    run_kernel(text, &gap_graph, NULL, (const void *[]){v}, (void *[]){out});
}

Test(kernel, reducers_and_empty_rows) {
    const float v[] = {3, -2, 5};
    float o[5];
    int64_t n[5];
    reduce(REDUCE("sum", "f32"), v, o);
    expect_f32(o, 5, 0, 1, 0, 5, 0);
    reduce(REDUCE("prod", "f32"), v, o);
    expect_f32(o, 5, 1, -6, 1, 5, 1);
    reduce(REDUCE("min", "f32"), v, o);
    expect_f32(o, 5, INFINITY, -2, INFINITY, 5, INFINITY);
    reduce(REDUCE("max", "f32"), v, o);
    expect_f32(o, 5, -INFINITY, 3, -INFINITY, 5, -INFINITY);
    reduce(REDUCE("mean", "f32"), v, o);
    expect_f32(o, 5, NAN, 0.5f, NAN, 5, NAN);
    reduce(REDUCE("logsumexp", "f32"), v, o);
    expect_f32(o, 5, -INFINITY, 3.0f + own(IR_LOG, 1.0f + own(IR_EXP, -5.0f)), -INFINITY, 5, -INFINITY);
    reduce(REDUCE("argmin", "i64"), v, n);
    expect_i64(n, 5, -1, 0, -1, 1, -1);
    reduce(REDUCE("argmax", "i64"), v, n);
    expect_i64(n, 5, -1, 2, -1, 1, -1);
    reduce(EDGE_KERNEL("i64", "%2 = reduce {kind = count} : row i64"), v, n);
    expect_i64(n, 5, 0, 2, 0, 1, 0);
    reduce(
        EDGE_KERNEL(
            "i64", "%3 = const {value = 0} : f32\n%4 = lt %1, %3 : edge bool\n%2 = reduce %4 {kind = count} : row i64"),
        v, n);
    expect_i64(n, 5, 0, 1, 0, 0, 0);
    reduce(EDGE_KERNEL("i64", "%2 = degree : row i64"), v, n);
    expect_i64(n, 5, 0, 2, 0, 1, 0);
}

Test(kernel, bool_reducers) {
    const float v[] = {3, -2, 5};
    unsigned char o[5];
#define NEGATIVE(kind)                                                                                                 \
    EDGE_KERNEL("bool", "%3 = const {value = 0} : f32\n%4 = lt %1, %3 : edge bool\n%2 = reduce %4 {kind = " kind       \
                        "} : row bool")
    const char *texts[] = {NEGATIVE("any"), NEGATIVE("or"), NEGATIVE("all"), NEGATIVE("and")};
    const unsigned char want[4][5] = {{0, 1, 0, 0, 0}, {0, 1, 0, 0, 0}, {1, 0, 1, 0, 1}, {1, 0, 1, 0, 1}};
    for (int i = 0; i < 4; i++) {
        reduce(texts[i], v, o);
        cr_assert_eq(memcmp(o, want[i], 5), 0, "%s", texts[i]);
    }
}

Test(kernel, nan_infinity_and_ties) {
    const float nan[] = {NAN, -2, 5}, tie[] = {4, 4, 4}, neg[] = {-INFINITY, -INFINITY, -INFINITY},
                inf[] = {INFINITY, 1, INFINITY};
    float o[5];
    int64_t n[5];
    reduce(REDUCE("min", "f32"), nan, o);
    expect_f32(o, 5, INFINITY, NAN, INFINITY, 5, INFINITY);
    reduce(REDUCE("argmin", "i64"), nan, n);
    expect_i64(n, 5, -1, 2, -1, 1, -1); /* NaN beats -2 */
    reduce(REDUCE("argmax", "i64"), tie, n);
    expect_i64(n, 5, -1, 2, -1, 1, -1); /* the first edge of the row, from row 2 */
    reduce(REDUCE("logsumexp", "f32"), neg, o);
    expect_f32(o, 5, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY);
    reduce(REDUCE("logsumexp", "f32"), inf, o);
    expect_f32(o, 5, -INFINITY, INFINITY, -INFINITY, INFINITY, -INFINITY);
    reduce(REDUCE("logsumexp", "f32"), nan, o);
    cr_assert(isnan(o[1]));
}

/* Accumulator n mod 16, then distances 8, 4, 2, 1: with these values any other order loses the small ones. */
Test(kernel, the_order_of_a_scalar_sum) {
    enum { N = 37 };
    float v[N], p[16] = {0}, out, in_order = 0;
    int64_t off[] = {0, N}, src[N] = {0};
    for (int e = 0; e < N; e++) {
        v[e] = (e % 3 ? 1.0f : 1e8f) * (e % 2 ? -1.0f : 1.0f) + (float)e;
        p[e % 16] += v[e];
        in_order += v[e];
    }
    for (int d = 8; d; d /= 2)
        for (int i = 0; i < d; i++)
            p[i] += p[i + d];
    const ir_graph_data g = {1, 1, N, off, src};
    run_kernel(REDUCE("sum", "f32"), &g, NULL, (const void *[]){v}, (void *[]){&out});
    expect_f32(&out, 1, p[0]);
    cr_assert_neq(out, in_order, "the test tells the orders apart");
    /* with a feature axis, in order; a constant axis of one is still a scalar */
    const char *const shape[] = {"f32[F]", "f32[1, 1]"};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "module m\nkernel @k[F](edge v: %s) -> (o: row %s) {\n%%1 = field {field = 0, at = edge} : edge %s\n"
                 "%%2 = reduce %%1 {kind = sum} : row %s\nret %%2\n}",
                 shape[i], shape[i], shape[i], shape[i]);
        run_kernel(text, &g, (int64_t[]){1}, (const void *[]){v}, (void *[]){&out});
        expect_f32(&out, 1, i == 0 ? in_order : p[0]);
    }
}

static const char softmax_text[] =
    "module m\nkernel @k[H, F](edge s: f32[H], src x: f32[H, F]) -> (o: row f32[H, F]) {\n%1 = field {field = 0, at = "
    "edge} : edge f32[H]\n"
    "%2 = field {field = 1, at = src} : edge f32[H, F]\n%3 = reduce %1, %2 {kind = softmax} : row f32[H, F]\nret %3\n}";

Test(kernel, softmax_over_a_prefix) {
    const float s[] = {0, 1, 0, 0, 5, -INFINITY}, x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    float o[20];
    run_kernel(softmax_text, &gap_graph, (int64_t[]){2, 2}, (const void *[]){s, x}, (void *[]){o});
    float e = own(IR_EXP, -1.0f);
    for (int i = 0; i < 4; i++)
        cr_assert(isnan(o[i]) && isnan(o[8 + i]) && isnan(o[16 + i]), "an empty row is 0 / 0");
    /* row 1: from row 2 with scores (0, 1), then from row 0 with scores (0, 0) */
    expect_f32(o + 4, 4, (9.0f + 1.0f) / 2.0f, (10.0f + 2.0f) / 2.0f, (11.0f + e * 3.0f) / (1.0f + e),
               (12.0f + e * 4.0f) / (1.0f + e));
    /* row 3: from row 1 with scores (5, -inf): one edge weighs one, or nothing at all */
    expect_f32(o + 12, 4, 5, 6, NAN, NAN);
}

Test(kernel, softmax_rescales_when_a_larger_score_comes) {
    const int64_t off[] = {0, 3}, src[] = {0, 1, 2};
    const ir_graph_data g = {1, 3, 3, off, src};
    const float s[] = {-INFINITY, 1, 3}, x[] = {100, 2, 4};
    float o, e = own(IR_EXP, -2.0f);
    run_kernel(softmax_text, &g, (int64_t[]){1, 1}, (const void *[]){s, x}, (void *[]){&o});
    expect_f32(&o, 1, (2.0f * e + 4.0f) / (e + 1.0f));
}

Test(kernel, a_row_value_is_repeated_over_the_edges) {
    const float d[] = {1, 2, 3};
    float o[3], e[5];
    const char *text = "module m\nkernel @k(dst d: f32) -> (s: row f32, e: edge f32, u: row f32) {\n%1 = field {field "
                       "= 0, at = dst} : row f32\n"
                       "%2 = reduce %1 {kind = sum} : row f32\n%3 = const {value = 7} : f32\n%4 = broadcast %2 : edge "
                       "f32\nret %2, %4, %3\n}";
    float u[3];
    run_kernel(text, &graph, NULL, (const void *[]){d}, (void *[]){o, e, u});
    expect_f32(o, 3, 2, 2, 6);
    expect_f32(e, 5, 2, 2, 2, 6, 6);
    expect_f32(u, 3, 7, 7, 7);
}

Test(kernel, fields_at_both_ends_and_params) {
    const float n[] = {1, 10, 100}, dt = 2;
    float o[5];
    const char *text = "module m\nkernel @k(node u: f32, param dt: f32) -> (o: edge f32) square {\n%1 = field {field = "
                       "0, at = src} : edge f32\n"
                       "%2 = field {field = 0, at = dst} : row f32\n%3 = sub %1, %2 : edge f32\n%4 = field {field = 1, "
                       "at = param} : f32\n"
                       "%5 = mul %4, %3 : edge f32\nret %5\n}";
    run_kernel(text, &graph, NULL, (const void *[]){n, &dt}, (void *[]){o});
    expect_f32(o, 5, 0, 198, 0, -198, -180);
}

Test(kernel, shapes_stretch_from_the_right) {
    const float a[] = {1, 2}, b[] = {10, 20, 30};
    float o[6], k[3], t[2];
    const char *text =
        "module m\nkernel @k(param a: f32[2, 1], param b: f32[3]) -> (o: f32[2, 3], k: f32[3], t: f32[2]) {\n"
        "%1 = field {field = 0, at = param} : f32[2, 1]\n%2 = field {field = 1, at = param} : f32[3]\n%3 = add %1, %2 "
        ": f32[2, 3]\n"
        "%4 = fold %3 {kind = sum, axes = 1} : f32[3]\n%5 = fold %3 {kind = max, axes = 2} : f32[2]\nret %3, %4, %5\n}";
    run_kernel(text, &graph, NULL, (const void *[]){a, b}, (void *[]){o, k, t});
    expect_f32(o, 6, 11, 21, 31, 12, 22, 32);
    expect_f32(k, 3, 23, 43, 63);
    expect_f32(t, 2, 31, 32);
}

Test(kernel, fold_takes_sixteen_lanes) {
    enum { N = 50 };
    float v[N], p[16] = {0}, o;
    for (int n = 0; n < N; n++) {
        v[n] = n % 5 ? 0.1f * (float)n : 3e7f;
        p[n % 16] += v[n];
    }
    for (int d = 8; d; d /= 2)
        for (int i = 0; i < d; i++)
            p[i] += p[i + d];
    run_kernel(
        "module m\nkernel @k[A, B](param v: f32[A, B]) -> (o: f32) {\n%1 = field {field = 0, at = param} : f32[A, B]\n"
        "%2 = fold %1 {kind = sum, axes = 3} : f32\nret %2\n}",
        &graph, (int64_t[]){5, 10}, (const void *[]){v}, (void *[]){&o});
    expect_f32(&o, 1, p[0]);
    run_kernel(
        "module m\nkernel @k[A, B](param v: f32[A, B]) -> (o: f32) {\n%1 = field {field = 0, at = param} : f32[A, B]\n"
        "%2 = fold %1 {kind = sum, axes = 3} : f32\nret %2\n}",
        &graph, (int64_t[]){0, 10}, (const void *[]){v}, (void *[]){&o});
    expect_f32(&o, 1, 0);
}

/* ---- over all rows ---- */
static float total_by_hand(const float *v, int64_t rows, int64_t features) {
    float total = 0;
    for (int64_t first = 0; first < rows; first += 4096) {
        float p[16] = {0};
        for (int64_t r = 0; r < 4096 && first + r < rows; r++)
            for (int64_t k = 0; k < features; k++)
                p[(r * features + k) % 16] += v[(first + r) * features + k];
        for (int d = 8; d; d /= 2)
            for (int i = 0; i < d; i++)
                p[i] += p[i + d];
        total += p[0];
    }
    return total;
}

Test(total, blocks_of_rows_in_kernel_and_program) {
    enum { ROWS = 9000 };
    static float v[ROWS * 3];
    for (int i = 0; i < ROWS * 3; i++)
        v[i] = (float)((i * 7919) % 1000) * (i % 11 ? 0.001f : 1000.0f);
    float want = total_by_hand(v, ROWS, 3), o = 0;
    const ir_module *m =
        parse(base_arena_new(), "module m\nkernel @k[F](dst v: f32[F]) -> (o: f32) domain = rows {\n%1 = field {field "
                                "= 0, at = dst} : row f32[F]\n"
                                "%2 = total %1 {kind = sum} : f32\nret %2\n}\n"
                                "program @fold[N, F](param v: f32[N, F]) -> (o: f32) {\n%1 = param {field = 0} : "
                                "f32[N, F]\n%2 = fold %1 {kind = sum, axes = 3} : f32\nret %2\n}\n"
                                "program @call[N, F](param v: f32[N, F]) -> (o: f32) {\n%1 = param {field = 0} : "
                                "f32[N, F]\n%2 = call %1 {callee = k, graph = -1, dim = N} : f32\nret %2\n}\n"
                                "program @rows[N, F](param v: f32[N, F]) -> (o: f32[N]) {\n%1 = param {field = 0} : "
                                "f32[N, F]\n%2 = fold %1 {kind = sum, axes = 2} : f32[N]\nret %2\n}\n");
    ir_call_data call = {.dims = (int64_t[]){3}, .in = (const void *[]){v}, .out = (void *[]){&o}, .n_rows = ROWS};
    run(m, "k", &call);
    expect_f32(&o, 1, want);
    call.dims = (int64_t[]){ROWS, 3};
    o = 0;
    run(m, "fold", &call);
    expect_f32(&o, 1, want);
    o = 0;
    run(m, "call", &call);
    expect_f32(&o, 1, want);
    static float rows[ROWS];
    call.out = (void *[]){rows};
    run(m, "rows", &call);
    cr_assert_eq(rows[8999], (v[26997] + v[26999]) + v[26998]); /* lane 0 takes lane 2, then lane 1 */
}

/* ---- programs ---- */
Test(program, pagerank_keeps_its_mass) {
    const ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/program_repeat.ir");
    const float outdeg[] = {2, 2, 1}, d = 0.5f;
    float o[3];
    for (int64_t rounds = -1; rounds < 4; rounds++) {
        const ir_graph_data *graphs[] = {&graph, NULL, NULL, NULL};
        run(m, "pagerank",
            &(ir_call_data){.graphs = graphs,
                            .dims = (int64_t[]){3, 3, 5},
                            .in = (const void *[]){NULL, outdeg, &d, &rounds},
                            .out = (void *[]){o}});
        cr_assert_float_eq(o[0] + o[1] + o[2], 1.0f, 1e-6);
        if (rounds < 1)
            expect_f32(o, 3, 1.0f / 3, 1.0f / 3, 1.0f / 3);
    }
}

Test(program, one_round_by_hand) {
    const ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/program_repeat.ir");
    const float outdeg[] = {2, 2, 0}, d = 0.5f;
    float o[3];
    int64_t rounds = 1;
    const ir_graph_data *graphs[] = {&graph, NULL, NULL, NULL};
    run(m, "pagerank",
        &(ir_call_data){.graphs = graphs,
                        .dims = (int64_t[]){3, 3, 5},
                        .in = (const void *[]){NULL, outdeg, &d, &rounds},
                        .out = (void *[]){o}});
    float third = 1.0f / 3, half = third / 2, lost = third / 3, base = 0.5f / 3;
    expect_f32(o, 3, base + 0.5f * (half + lost), base + 0.5f * (half + lost), base + 0.5f * ((half + half) + lost));
}

Test(program, several_results_of_a_call) {
    const ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/program_repeat.ir");
    const float x[] = {1, 2, 3, 4, 5, 6};
    float a[6], b[3];
    const ir_graph_data *graphs[] = {&graph, NULL};
    run(m, "two",
        &(ir_call_data){.graphs = graphs,
                        .dims = (int64_t[]){3, 3, 5, 2},
                        .in = (const void *[]){NULL, x},
                        .out = (void *[]){a, b}});
    expect_f32(a, 6, 6, 8, 3, 4, 4, 6);
    expect_f32(b, 3, 30, 12, 12);
}

Test(program, carried_values_change_places) {
    const char *text =
        "module m\nprogram @swap(param a: f32, param b: f32, param n: i64) -> (a: f32, b: f32, c: f32) {\n"
        "%1 = param {field = 0} : f32\n%2 = param {field = 1} : f32\n%3 = param {field = 2} : i64\n"
        "%4 = repeat %3, %1, %2, %1 : tuple {\n%5 = arg {index = 0} : f32\n%6 = arg {index = 1} : f32\n%7 = arg {index "
        "= 2} : f32\n"
        "yield %6, %5, %2\n}\n%8 = get %4 {index = 0} : f32\n%9 = get %4 {index = 1} : f32\n%10 = get %4 {index = 2} : "
        "f32\n"
        "ret %8, %9, %10\n}";
    const ir_module *m = parse(base_arena_new(), text);
    const float a = 1, b = 2;
    for (int64_t n = 0; n < 5; n++) {
        float o[3];
        run(m, "swap", &(ir_call_data){.in = (const void *[]){&a, &b, &n}, .out = (void *[]){&o[0], &o[1], &o[2]}});
        expect_f32(o, 3, n % 2 ? 2 : 1, n % 2 ? 1 : 2, n ? 2 : 1);
    }
}

Test(program, loops_nest) {
    const char *text = "module m\nprogram @p(param n: i64) -> (o: i64) {\n%1 = param {field = 0} : i64\n%2 = const "
                       "{value = 0} : i64\n%3 = const {value = 1} : i64\n"
                       "%4 = repeat %1, %2 : tuple {\n%5 = arg {index = 0} : i64\n%6 = repeat %1, %5 : tuple {\n%7 = "
                       "arg {index = 0} : i64\n"
                       "%8 = add %7, %3 : i64\nyield %8\n}\n%9 = get %6 {index = 0} : i64\nyield %9\n}\n%10 = get %4 "
                       "{index = 0} : i64\nret %10\n}";
    int64_t n = 7, o;
    run(parse(base_arena_new(), text), "p", &(ir_call_data){.in = (const void *[]){&n}, .out = (void *[]){&o}});
    cr_assert_eq(o, 49);
}

/* ---- what is refused ---- */
static void refused(const char *name, const ir_module *m, const ir_call_data *call, const char *why) {
    base_str err = {0};
    const ir_func *f = ir_func_find(m, name, IR_LEVEL_KERNEL);
    f = f ? f : ir_func_find(m, name, IR_LEVEL_PROGRAM);
    cr_assert_not(ir_interpret_graph(m, f, call, &err));
    cr_assert(strstr(base_str_text(&err), why), "%s", base_str_text(&err));
    base_str_fini(&err);
}

Test(refused, bad_graphs_and_sizes) {
    const ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/program_repeat.ir");
    float x[6] = {0}, o[6];
    int64_t falls[] = {0, 3, 2, 5}, begins[] = {1, 2, 3, 5}, far[] = {0, 3, 1, 0, 1};
    ir_graph_data g = {3, 3, 5, falls, sources};
    ir_call_data call = {
        .graph = &g, .dims = (int64_t[]){3, 3, 5, 2}, .in = (const void *[]){x, x}, .out = (void *[]){o, o}};
    refused("neighbour_sum", m, &call, "fall at row 1");
    g.offsets = begins;
    refused("neighbour_sum", m, &call, "do not run from 0");
    g.offsets = offsets, g.sources = far;
    refused("neighbour_sum", m, &call, "edge 1 comes from a row that does not exist");
    call.graph = NULL;
    refused("neighbour_sum", m, &call, "needs a graph");
    const ir_graph_data *graphs[] = {&graph, NULL};
    call.graphs = graphs;
    call.dims = (int64_t[]){3, 3, 6, 2};
    refused("two", m, &call, "g.edge is 6, but the graph has 5");
    call.dims = (int64_t[]){3, 3, 5, -2};
    refused("two", m, &call, "negative");
    graphs[0] = NULL;
    call.dims = (int64_t[]){3, 3, 5, 2};
    refused("two", m, &call, "graph 'g' is missing");
    const ir_graph_data *gap[] = {&gap_graph, NULL, NULL, NULL};
    call.graphs = gap;
    call.dims = (int64_t[]){5, 3, 3};
    refused("pagerank", m, &call, "not square");
    const ir_module *relations = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/program_relations.ir");
    const ir_graph_data *both[] = {&gap_graph, &gap_graph, NULL};
    call.graphs = both;
    call.dims = (int64_t[]){5, 3, 3, 5, 3, 3};
    refused("together", relations, &call, "not square");
    refused("there_and_back", relations, &call, "b.dst is 5, but a.src is 3");
    const ir_module *big = parse(
        base_arena_new(), "module m\nprogram @p[F](param x: f32) -> (o: f32[F, F, F]) {\n%1 = param {field = 0} : f32\n"
                          "%2 = broadcast %1 : f32[F, F, F]\nret %2\n}");
    call.dims = (int64_t[]){INT64_C(1) << 40};
    refused("p", big, &call, "more elements than can be counted");
    call.dims = (int64_t[]){INT64_C(1) << 20};
    refused("p", big, &call, "out of memory");
}

Test(refused, every_allocation_can_fail) {
    const ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/program_repeat.ir");
    const float outdeg[] = {2, 2, 1}, d = 0.5f;
    float o[3];
    int64_t rounds = 2;
    const ir_graph_data *graphs[] = {&graph, NULL, NULL, NULL};
    ir_call_data call = {.graphs = graphs,
                         .dims = (int64_t[]){3, 3, 5},
                         .in = (const void *[]){NULL, outdeg, &d, &rounds},
                         .out = (void *[]){o}};
    const ir_func *f = ir_func_find(m, "pagerank", IR_LEVEL_PROGRAM);
    for (uint64_t n = 1;; n++) {
        base_str err = {0};
        base_inject_at(BASE_INJECT_ALLOC, n);
        bool ok = ir_interpret_graph(m, f, &call, &err);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        cr_assert(ok || err.failed || strstr(base_str_text(&err), "out of memory"), "%llu: %s", (unsigned long long)n,
                  base_str_text(&err));
        base_str_fini(&err);
        if (ok)
            break;
        cr_assert_lt(n, 5000);
    }
}
