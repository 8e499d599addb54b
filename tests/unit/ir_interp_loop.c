/* The loop-level interpreter: by hand, against the graph level, and what it catches. */
#include "ir_support.h"

static const int64_t offsets[] = {0, 2, 2, 22},
                     sources[22] = {0, 2, 1, 0, 1, 2, 2, 2, 0, 1, 1, 0, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
static const ir_graph_data graph = {3, 3, 22, offsets, sources};
static float weights[22];

static const ir_module *forms(void) {
    for (int e = 0; e < 22; e++)
        weights[e] = (e % 4 ? 0.37f : 3e6f) * (float)(e + 1);
    return parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/loop_forms.ir");
}

static const ir_module *graph_level(void) {
    return parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/graph_weighted_sum.ir");
}

Test(loop, scalar_sum_has_the_bits_of_the_graph_level) {
    const float x[] = {1, -2, 3}, bias[] = {0, 0, 0};
    float a[3], b[3];
    ir_call_data call = {.graph = &graph, .in = (const void *[]){x, NULL, bias}, .out = (void *[]){a}};
    const ir_module *m = forms();
    call.in = (const void *[]){x, weights, bias};
    run(m, "scalar_sum", &call);
    call.out = (void *[]){b};
    run(graph_level(), "plain", &call);
    cr_assert_eq(memcmp(a, b, sizeof a), 0);
    expect_f32(a, 2, 3e6f + 2 * 0.37f * 3, 0);
}

Test(loop, tiled_sum_has_the_bits_of_the_graph_level_for_every_width) {
    enum { MAX = 70 };
    static float x[3 * MAX], bias[3 * MAX], a[3 * MAX], b[3 * MAX];
    const ir_module *loops = forms(), *kernels = graph_level();
    for (int i = 0; i < 3 * MAX; i++)
        x[i] = (float)(i * 31 % 17) * 0.1f, bias[i] = (float)i;
    const int64_t widths[] = {0, 1, 3, 31, 32, 33, 64, 70};
    for (int i = 0; i < 8; i++) {
        memset(a, 0xff, sizeof a), memset(b, 0xff, sizeof b);
        ir_call_data call = {
            .graph = &graph, .dims = &widths[i], .in = (const void *[]){x, weights, bias}, .out = (void *[]){a}};
        run(loops, "tiled_sum", &call);
        call.out = (void *[]){b};
        run(kernels, "weighted_sum", &call);
        cr_assert_eq(memcmp(a, b, sizeof a), 0, "F = %lld", (long long)widths[i]);
    }
}

Test(loop, argmin_gives_the_source_row_or_minus_one) {
    const float d[] = {5, 5, 5};
    float w[22], degree[3];
    int64_t via[3];
    const ir_module *m = forms();
    for (int e = 0; e < 22; e++)
        w[e] = 1;
    run(m, "argmin_scan",
        &(ir_call_data){.graph = &graph, .in = (const void *[]){d, w}, .out = (void *[]){via, degree}});
    expect_i64(via, 3, 0, -1, 1); /* ties: the first edge, edge 2 comes from row 1 */
    expect_f32(degree, 3, 2, 0, 20);
    w[20] = NAN, w[21] = NAN;
    run(m, "argmin_scan",
        &(ir_call_data){.graph = &graph, .in = (const void *[]){d, w}, .out = (void *[]){via, degree}});
    expect_i64(via, 3, 0, -1, 1);
    w[20] = 1;
    run(m, "argmin_scan",
        &(ir_call_data){.graph = &graph, .in = (const void *[]){d, w}, .out = (void *[]){via, degree}});
    expect_i64(via, 3, 0, -1, 2);
}

Test(loop, units_of_many_rows) {
    enum { ROWS = 5000 };
    static float x[ROWS * 2];
    float out[2] = {0, 0}, want[2];
    for (int i = 0; i < ROWS * 2; i++)
        x[i] = (float)(i % 97) * 0.01f;
    for (int u = 0; u < 2; u++) {
        float p[16] = {0};
        for (int i = u * 8192, n = 0; i < ROWS * 2 && n < 8192; i++, n++)
            p[n % 16] += x[i];
        for (int d = 8; d; d /= 2)
            for (int i = 0; i < d; i++)
                p[i] += p[i + d];
        want[u] = p[0];
    }
    run(forms(), "total_first",
        &(ir_call_data){.dims = (int64_t[]){2}, .in = (const void *[]){x}, .out = (void *[]){out}, .n_rows = ROWS});
    expect_f32(out, 2, want[0], want[1]);
    out[0] = -1;
    run(forms(), "total_first",
        &(ir_call_data){.dims = (int64_t[]){2}, .in = (const void *[]){x}, .out = (void *[]){out}, .n_rows = 0});
    expect_f32(out, 2, -1, want[1]); /* no rows, no units */
}

/* ---- what it catches ---- */
#define HEAD(params)                                                                                                   \
    "module m\nloop @l[F](" params                                                                                     \
    ") domain = dst {\n%1 = dimsize {dim = F} : i64\nrows {\n%3 = arg {index = 0} : i64\n"
#define TAIL "\n}\n}"
#define OUT "param p: f32[F], outrow o: f32"

static void caught(const char *text, const int64_t dim, const char *why) {
    base_arena *a = base_arena_new();
    base_str err = {0};
    const ir_module *m = parse(a, text);
    float p[8] = {0}, o[8];
    ir_call_data call = {.graph = &graph, .dims = &dim, .in = (const void *[]){p}, .out = (void *[]){o}};
    bool ok = ir_interpret_loop(m, m->funcs[0], &call, &err);
    cr_assert_eq(ok, why == NULL, "%s", base_str_text(&err));
    cr_assert(ok || strstr(err.data, why), "%s", base_str_text(&err));
    base_str_fini(&err);
    base_arena_free(a);
}

Test(caught, indices_outside) {
    const char *load = HEAD(OUT) "%4 = load %3 {field = 0} : f32\nstore %3, %4 {field = 1}" TAIL;
    caught(load, 3, NULL);
    caught(load, 2, "loop @l, %4 (load): index 2 of axis 0 of 'p', which has 2");
    caught(HEAD(OUT) "%4 = const {value = 1} : f32\n%5 = add %3, %1 : i64\nstore %5, %4 {field = 1}" TAIL, 2,
           "index 3 of axis 0 of 'o', which has 3");
    caught(HEAD(OUT) "%4 = neg %3 : i64\n%5 = load %4 {field = 0} : f32" TAIL, 3, "index -1 of axis 0 of 'p'");
    caught(HEAD(OUT) "%4 = var {name = acc} : f32[F]\n%5 = const {value = 1} : f32\nset %4, %3, %5" TAIL, 2,
           "index 2 of axis 0 of 'acc', which has 2");
    caught(HEAD(OUT) "tiles %1 {width = 2} {\n%5 = arg {index = 0} : i64\n%6 = arg {index = 1} : i64\n%7 = var {name = "
                     "t} : f32[tile]\n"
                     "%8 = const {value = 1} : f32\n%9 = const {value = 1} : i64\nset %7, %9, %8\n}" TAIL,
           4, NULL);
    caught(HEAD(OUT) "tiles %1 {width = 2} {\n%5 = arg {index = 0} : i64\n%6 = arg {index = 1} : i64\n%7 = var {name = "
                     "t} : f32[tile]\n"
                     "%8 = const {value = 1} : f32\n%9 = const {value = 1} : i64\nset %7, %9, %8\n}" TAIL,
           3, "index 1 of axis 0 of 't', which has 1");
    caught(HEAD(OUT) "%4 = degree %1 : i64" TAIL, 3, "row 3 of 3");
    caught(HEAD(OUT) "%4 = const {value = -1} : i64\n%5 = source %4 : i64" TAIL, 3, NULL);
    caught(HEAD(OUT) "%4 = const {value = 22} : i64\n%5 = source %4 : i64" TAIL, 3, "there is no edge 22");
    caught(HEAD(OUT) "%4 = partials {kind = sum} : f32\n%5 = neg %3 : i64\n%6 = const {value = 1} : f32\naccum %4, %5, "
                     "%6" TAIL,
           3, "lane -1");
}

Test(caught, reads_before_a_set) {
    caught(HEAD(OUT) "%4 = var {name = s} : f32\n%5 = read %4 : f32" TAIL, 1, "'s' is read before it is set");
    caught(HEAD(OUT) "%4 = var {name = s} : f32\n%5 = const {value = 1} : f32\nset %4, %5\n%6 = read %4 : f32" TAIL, 1,
           NULL);
    caught(HEAD(OUT) "loop %1 {\n%5 = arg {index = 0} : i64\n%6 = var {name = s} : f32\n%7 = const {value = 0} : "
                     "i64\n%8 = eq %5, %7 : bool\n"
                     "%9 = cast %8 : i64\nloop %9 {\n%11 = arg {index = 0} : i64\n%12 = const {value = 1} : f32\nset "
                     "%6, %12\n}\n%14 = read %6 : f32\n}" TAIL,
           2, "'s' is read before it is set"); /* a var is new each time it is met */
}

Test(caught, lanes_that_meet) {
#define LANES_OVER(body)                                                                                               \
    HEAD(OUT)                                                                                                          \
    "%4 = var {name = a} : f32[F]\n%5 = const {value = 1} : f32\n%6 = const {value = 2} : i64\nlanes %1 {\n"           \
    "%8 = arg {index = 0} : i64\n%9 = arg {index = 1} : i64\n" body "\n}" TAIL
    caught(LANES_OVER("set %4, %8, %5\n%11 = read %4, %8 : f32"), 4, NULL);
    caught(LANES_OVER("%10 = div %8, %6 : i64\nset %4, %10, %5"), 4, "lane 1 meets what lane 0 wrote to 'a'");
    caught(LANES_OVER("set %4, %8, %5\n%11 = sub %8, %9 : i64\n%12 = read %4, %11 : f32"), 4,
           "lane 1 meets what lane 0 wrote to 'a'");
    /* a later run of lanes may read what an earlier one wrote */
    caught(HEAD(OUT) "%4 = var {name = a} : f32[F]\n%5 = const {value = 1} : f32\nlanes %1 {\n%8 = arg {index = 0} : "
                     "i64\n%9 = arg {index = 1} : i64\nset %4, %8, %5\n}\n"
                     "lanes %1 {\n%12 = arg {index = 0} : i64\n%13 = arg {index = 1} : i64\n%14 = const {value = 0} : "
                     "i64\n%15 = read %4, %14 : f32\n}" TAIL,
           4, NULL);
}

Test(caught, negative_sizes_and_other_levels) {
    base_str err = {0};
    const ir_module *m = graph_level();
    cr_assert_not(ir_interpret_loop(m, m->funcs[0], &(ir_call_data){.graph = &graph}, &err));
    cr_assert(strstr(err.data, "only loop functions"));
    base_str_fini(&err);
    m = forms();
    cr_assert_not(ir_interpret_loop(m, ir_func_find(m, "total_first", IR_LEVEL_LOOP),
                                    &(ir_call_data){.dims = (int64_t[]){1}, .n_rows = -1}, &err));
    cr_assert(strstr(err.data, "a negative number of rows"));
    base_str_fini(&err);
    cr_assert_not(ir_interpret_graph(m, m->funcs[0], &(ir_call_data){.graph = &graph}, &err));
    cr_assert(strstr(err.data, "only kernels and programs"));
    base_str_fini(&err);
    caught(HEAD(OUT) "%4 = var {name = s} : f32[F, F]" TAIL, INT64_C(1) << 40, "more elements than can be counted");
    caught(HEAD(OUT) "%4 = var {name = s} : f32[F, F]" TAIL, INT64_C(1) << 28, "out of memory");
    caught(HEAD(OUT) TAIL, -1, "dimension F is negative");
}

Test(caught, every_allocation_can_fail) {
    const ir_module *m = forms();
    const char *names[] = {"tiled_sum", "argmin_scan"};
    for (int i = 0; i < 2; i++) {
        float x[3] = {1, 2, 3}, o[3];
        int64_t via[3];
        ir_call_data call = {
            .graph = &graph, .dims = (int64_t[]){1}, .in = (const void *[]){x, weights, x}, .out = (void *[]){via, o}};
        const ir_func *f = ir_func_find(m, names[i], IR_LEVEL_LOOP);
        for (uint64_t n = 1;; n++) {
            base_str err = {0};
            base_inject_at(BASE_INJECT_ALLOC, n);
            bool ok = ir_interpret_loop(m, f, &call, &err);
            base_inject_at(BASE_INJECT_ALLOC, 0);
            cr_assert(ok || err.failed || strstr(base_str_text(&err), "out of memory"), "%s", base_str_text(&err));
            base_str_fini(&err);
            if (ok)
                break;
            cr_assert_lt(n, 100);
        }
    }
}
