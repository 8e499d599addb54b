/* Calls through the whole path with a module written by hand: what tigac emits has this shape. */
#include "hierarchy_runtime/hierarchy_runtime.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int32_t status_ = (call);                                                                                      \
        if (status_)                                                                                                   \
            return status_;                                                                                            \
    } while (0)

/* ---- kernel weighted_sum[F](src x: f32[F], edge w: f32, dst bias: f32[F]) -> f32[F] ---- */
static void weighted_rows(const tiga_launch_args *a, int64_t begin, int64_t end) {
    const float *x = a->buffers[0], *w = a->buffers[1], *bias = a->buffers[2];
    float *out = a->buffers[3];
    int64_t n = a->dims[0];
    for (int64_t r = begin; r < end; r++)
        for (int64_t k = 0; k < n; k++) {
            float sum = 0;
            for (int64_t e = a->graph.offsets[r]; e < a->graph.offsets[r + 1]; e++) {
                int64_t s = a->graph.source_bits == 32 ? ((const int32_t *)a->graph.sources)[e]
                                                       : ((const int64_t *)a->graph.sources)[e];
                sum += w[e] * x[s * n + k];
            }
            out[r * n + k] = bias[r * n + k] + sum;
        }
}

/* ---- out = x + 1 over a domain of rows; part of the program below ---- */
static tiga_context *interrupting; /* as a signal handler would */
static void add_one(const tiga_launch_args *a, int64_t begin, int64_t end) {
    const float *x = a->buffers[0];
    float *out = a->buffers[1];
    for (int64_t r = begin; r < end; r++)
        out[r] = x[r] + 1;
    if (interrupting && out[0] > 10)
        tiga_interrupt(interrupting);
}

static const tiga_kernel_code codes[] = {
    {"weighted_sum", weighted_rows, weighted_rows, NULL, 1, 1, TIGA_READS_SOURCE, 4, 1, 1, NULL},
    {"add_one", add_one, NULL, NULL, 1, 0, 0, 2, 1, 0, NULL},
};

static int32_t weighted_host(const tiga_host *host, void *frame, const int64_t *dims) {
    tiga_instance *b[4];
    for (int i = 0; i < 3; i++)
        TRY(host->bind_param(frame, i, &b[i]));
    TRY(host->bind_result(frame, 0, &b[3]));
    for (int i = 0; i < 4; i++)
        TRY(host->acquire(frame, b[i], i == 3));
    TRY(host->poll(frame));
    TRY(host->launch(frame, &codes[0], 0, dims[1], b, dims));
    for (int i = 0; i < 4; i++)
        TRY(host->done(frame, b[i]));
    return 0;
}

/* program steps(g: graph, x: f32[g.dst], rounds: i64) -> f32[g.dst]: x + rounds, in a pair of instances */
static int32_t steps_host(const tiga_host *host, void *frame, const int64_t *dims) {
    tiga_instance *x, *rounds, *out, *now, *next;
    int64_t n;
    TRY(host->bind_param(frame, 1, &x));
    TRY(host->bind_param(frame, 2, &rounds));
    TRY(host->bind_result(frame, 0, &out));
    TRY(host->alloc(frame, "x", 1, TIGA_TIER_HOST, dims[0] * 4, &now));
    TRY(host->alloc(frame, "x", 2, TIGA_TIER_HOST, dims[0] * 4, &next));
    TRY(host->acquire(frame, rounds, 0));
    TRY(host->read_i64(frame, rounds, &n));
    TRY(host->done(frame, rounds));
    TRY(host->copy(frame, x, now));
    for (int64_t i = 0; i < n; i++) {
        tiga_instance *b[] = {now, next}, *swap = now;
        TRY(host->poll(frame));
        TRY(host->acquire(frame, now, 0));
        TRY(host->acquire(frame, next, 1));
        /* one that waits runs before the next launch, which cannot follow it, and before a copy */
        TRY((i % 2 ? host->launch : host->launch_ahead)(frame, &codes[1], -1, dims[0], b, NULL));
        TRY(host->done(frame, now));
        TRY(host->done(frame, next));
        now = next;
        next = swap;
    }
    TRY(host->release(frame, next));
    TRY(host->copy(frame, now, out));
    TRY(host->release(frame, now));
    return 0;
}

/* program faulty(step: i64) -> f32: each value of step is one mistake of a schedule */
static int32_t faulty_host(const tiga_host *host, void *frame, const int64_t *dims) {
    (void)dims;
    tiga_instance *step, *out, *a = NULL, *none;
    int64_t n, v;
    TRY(host->bind_param(frame, 0, &step));
    TRY(host->bind_result(frame, 0, &out));
    TRY(host->acquire(frame, step, 0));
    TRY(host->read_i64(frame, step, &n));
    TRY(host->done(frame, step));
    TRY(host->alloc(frame, "a", 3, TIGA_TIER_HOST, 64, &a));
    tiga_instance *both[] = {a, a}, *wrong[] = {step, out};
    switch (n) {
    case 0:
        TRY(host->acquire(frame, a, 0));
        break;
    case 1:
        TRY(host->acquire(frame, step, 1));
        break;
    case 2:
        TRY(host->acquire(frame, a, 1));
        TRY(host->acquire(frame, a, 1));
        break;
    case 3:
        TRY(host->acquire(frame, a, 1));
        TRY(host->acquire(frame, a, 0));
        break;
    case 4:
        TRY(host->acquire(frame, step, 0));
        TRY(host->done(frame, step));
        TRY(host->done(frame, step));
        break;
    case 5:
        TRY(host->release(frame, a));
        TRY(host->release(frame, a));
        break;
    case 6:
        TRY(host->acquire(frame, a, 1));
        TRY(host->release(frame, a));
        break;
    case 7:
        TRY(host->copy(frame, a, out));
        break;
    case 8:
        TRY(host->copy(frame, step, out));
        break;
    case 9:
        TRY(host->launch(frame, &codes[1], -1, 1, both, NULL));
        break;
    case 10:
        TRY(host->acquire(frame, step, 0));
        TRY(host->launch(frame, &codes[1], -1, 1, wrong, NULL));
        break;
    case 11:
        TRY(host->launch(frame, &codes[0], 0, 1, both, NULL));
        break;
    case 12:
        TRY(host->bind_param(frame, 7, &none));
        break;
    case 13:
        TRY(host->alloc(frame, "d", 0, TIGA_TIER_DEVICE, 64, &none));
        break;
    case 14:
        TRY(host->read_i64(frame, step, &v));
        break;
    case 15:
        TRY(host->acquire(frame, step, 0));
        TRY(host->read_bool(frame, step, &v));
        break;
    case 16:
        TRY(host->acquire(frame, step, 0));
        return 0;
    case 17:
        return 0;
    case 18:
        return 42;
    case 19:
        TRY(host->alloc(frame, "huge", 0, TIGA_TIER_HOST, -8, &none));
        break;
    case 20:
        TRY(host->acquire(frame, a, 1));
        TRY(host->done(frame, a));
        TRY(host->acquire(frame, a, 0));
        TRY(host->acquire(frame, a, 1));
        break;
    case 21: /* a result in the place of an argument, which nobody wrote */
        TRY(host->acquire(frame, a, 1));
        TRY(host->launch(frame, &codes[1], -1, 1, both, NULL));
        break;
    default:
        break;
    }
    return 99;
}

/* program churn(n: i64) -> f32: n buffers, one after the other */
static int32_t churn_host(const tiga_host *host, void *frame, const int64_t *dims) {
    (void)dims;
    tiga_instance *n_param, *out, *b;
    int64_t n;
    TRY(host->bind_param(frame, 0, &n_param));
    TRY(host->bind_result(frame, 0, &out));
    TRY(host->acquire(frame, n_param, 0));
    TRY(host->read_i64(frame, n_param, &n));
    TRY(host->done(frame, n_param));
    for (int64_t i = 0; i < n; i++) {
        TRY(host->alloc(frame, "b", i, TIGA_TIER_HOST, 4, &b));
        TRY(host->acquire(frame, b, 1));
        TRY(host->done(frame, b));
        TRY(host->copy(frame, b, out));
        TRY(host->release(frame, b));
    }
    return 0;
}

/* program sizes(a: graph, b: graph) -> i64[3]: what the dimensions say */
static void write_sizes(const tiga_launch_args *a, int64_t begin, int64_t end) {
    int64_t *out = a->buffers[0];
    for (int64_t r = begin; r < end; r++)
        out[r] = a->dims[r];
}
static const tiga_kernel_code sizes_code = {"sizes", write_sizes, NULL, NULL, 1, 0, 0, 1, 1, 3, NULL};
static int32_t sizes_host(const tiga_host *host, void *frame, const int64_t *dims) {
    tiga_instance *out;
    TRY(host->bind_result(frame, 0, &out));
    TRY(host->acquire(frame, out, 1));
    TRY(host->launch_ahead(frame, &sizes_code, -1, 3, &out, dims)); /* runs when the call ends */
    TRY(host->done(frame, out));
    return 0;
}

static const tiga_field_info sizes_params[] = {{"a", TIGA_AT_GRAPH, 0, 0, -1, {0}, "a: graph"},
                                               {"b", TIGA_AT_GRAPH, 0, 0, -1, {0}, "b: graph"}};
static const tiga_field_info sizes_results[] = {{"out", TIGA_AT_PARAM, TIGA_I64, 1, -1, {3}, "out: i64[3]"}};
static const char *const sizes_dims[] = {"a.src", "b.dst", "b.edge"};
static const tiga_field_info churn_params[] = {{"n", TIGA_AT_PARAM, TIGA_I64, 0, -1, {0}, "n: i64"}};
static const tiga_field_info node_params[] = {{"u", TIGA_AT_NODE, TIGA_F32, 0, -1, {0}, "node u: f32"}};
static const tiga_field_info weighted_params[] = {
    {"x", TIGA_AT_SRC, TIGA_F32, 1, -1, {-1}, "src x: f32[F]"},
    {"w", TIGA_AT_EDGE, TIGA_F32, 0, -1, {0}, "edge w: f32"},
    {"bias", TIGA_AT_DST, TIGA_F32, 1, -1, {-1}, "dst bias: f32[F]"},
};
static const tiga_field_info weighted_results[] = {{"out", TIGA_AT_DST, TIGA_F32, 1, -1, {-1}, "out: f32[F]"}};
static const tiga_field_info steps_params[] = {
    {"g", TIGA_AT_GRAPH, 0, 0, -1, {0}, "g: graph"},
    {"x", TIGA_AT_DST, TIGA_F32, 0, 0, {0}, "x: f32[g.dst]"},
    {"rounds", TIGA_AT_PARAM, TIGA_I64, 0, -1, {0}, "rounds: i64"},
};
static const tiga_field_info steps_results[] = {{"out", TIGA_AT_DST, TIGA_F32, 0, 0, {0}, "out: f32[g.dst]"}};
static const tiga_field_info faulty_params[] = {{"step", TIGA_AT_PARAM, TIGA_I64, 0, -1, {0}, "step: i64"}};
static const tiga_field_info faulty_results[] = {{"out", TIGA_AT_PARAM, TIGA_F32, 0, -1, {0}, "out: f32"}};
static const tiga_field_info fill_results[] = {{"out", TIGA_AT_PARAM, TIGA_F32, 1, -1, {-1}, "out: f32[K]"}};
static const char *const weighted_dims[] = {"F", ".dst"}, *const steps_dims[] = {"g.dst", "g.src"},
                         *const fill_dims[] = {"K"};

static int32_t fill_host(const tiga_host *host, void *frame, const int64_t *dims) {
    tiga_instance *out;
    (void)dims;
    TRY(host->bind_result(frame, 0, &out));
    TRY(host->acquire(frame, out, 1));
    TRY(host->done(frame, out));
    return 0;
}

static const tiga_function_info functions[] = {
    {"weighted_sum", "", 0, 2, 3, 1, weighted_dims, weighted_params, weighted_results, 0, weighted_host, ""},
    {"steps", "", 1, 2, 3, 1, steps_dims, steps_params, steps_results, 1, steps_host, ""},
    {"faulty", "", 1, 0, 1, 1, NULL, faulty_params, faulty_results, 0, faulty_host, ""},
    {"fill", "", 1, 1, 0, 1, fill_dims, NULL, fill_results, 0, fill_host, ""},
    {"churn", "", 1, 0, 1, 1, NULL, churn_params, faulty_results, 0, churn_host, ""},
    {"sizes", "", 1, 3, 2, 1, sizes_dims, sizes_params, sizes_results, 0, sizes_host, ""},
    {"nodes", "", 0, 0, 1, 0, NULL, node_params, NULL, 0, fill_host, ""},
};
static const tiga_module_info info = {
    TIGA_ABI_VERSION, sizeof info, "test", "t.tg", "", "", "", sizeof functions / sizeof functions[0], 2,
    functions,        codes};

/* ---- the tests ---- */
enum { N = 3, M = 4, E = 5, F = 2 };
static tiga_context *ctx;
static tiga_module *m;
static tiga_graph *g, *square;
static float xs[M * F] = {1, 2, 3, 4, 5, 6, 7, 8}, ws[E] = {1, 10, 100, 0.5F, 2},
                    biases[N * F] = {0.5F, 0, 0, 0, -1, 1};
static tiga_array x, w, bias, out;
static tiga_binding in[3] = {{"x", &x}, {"w", &w}, {"bias", &bias}}, outs[1] = {{"out", &out}};

static void open_all(void) {
    int64_t dst[] = {0, 0, 2, 2, 2}, src[] = {3, 0, 1, 1, 2}, self[] = {0, 1, 2, 1, 0}, a[] = {M, F}, b[] = {N, F},
            e = E;
    cr_assert_eq(tiga_context_new(NULL, &ctx), TIGA_OK);
    cr_assert_eq(tiga_module_from_info(ctx, &info, &m), TIGA_OK);
    cr_assert_eq(tiga_graph_from_coo(ctx, N, M, E, dst, src, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_from_coo(ctx, N, N, E, dst, self, &square), TIGA_OK);
    x = tiga_array_borrow(xs, TIGA_F32, 2, a);
    w = tiga_array_borrow(ws, TIGA_F32, 1, &e);
    bias = tiga_array_borrow(biases, TIGA_F32, 2, b);
    memset(&out, 0, sizeof out);
}
static void close_all(void) {
    cr_assert_eq(ctx->account->live[0], 0);
    tiga_array_free(&out);
    tiga_graph_free(g);
    tiga_graph_free(square);
    tiga_module_free(m);
    tiga_context_free(ctx);
}
TestSuite(call, .init = open_all, .fini = close_all);

#define FAILS(call, status, words)                                                                                     \
    do {                                                                                                               \
        tiga_error_clear(ctx);                                                                                         \
        cr_assert_eq(call, status);                                                                                    \
        cr_assert(strstr(tiga_error_text(ctx), words), "'%s' lacks '%s'", tiga_error_text(ctx), words);                \
        cr_assert_eq(ctx->account->live[0], 0);                                                                        \
    } while (0)
#define CALL() tiga_call(ctx, m, "weighted_sum", g, in, 3, outs, 1)

static const float expected[N * F] = {17.5F, 28, 0, 0, 310.5F, 415};

Test(call, kernel_into_new_and_given_memory) {
    float memory[N * F];
    int64_t shape[] = {N, F};
    tiga_call_stats stats;
    cr_assert_eq(CALL(), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert(out.owned && out.rank == 2 && out.shape[0] == N && out.shape[1] == F);
    const float *o = out.data;
    for (int i = 0; i < N * F; i++)
        cr_assert(o[i] == expected[i], "%d: %g", i, (double)o[i]);
    tiga_array_free(&out);
    out = tiga_array_borrow(memory, TIGA_F32, 2, shape);
    cr_assert_eq(tiga_call_many(ctx, m, "weighted_sum", &g, 1, in, 3, outs, 1, &stats), TIGA_OK);
    cr_assert(memcmp(memory, expected, sizeof expected) == 0);
    cr_assert(stats.edges == E && stats.rows == N && stats.launches == 1 && stats.peak_bytes == 0 &&
              stats.seconds >= 0);
    cr_assert_eq(stats.bytes_read, (M * F + E + N * F) * 4 + (N + 1) * 8 + E * 4);
    cr_assert_eq(stats.bytes_written, N * F * 4);
}

Test(call, addresses_of_nothing) {
    x.shape[1] = bias.shape[1] = 0;
    x.data = (char *)xs + 1;
    int64_t shape[] = {N, 0};
    out = tiga_array_borrow((char *)xs + 1, TIGA_F32, 2, shape);
    cr_assert_eq(CALL(), TIGA_OK, "%s", tiga_error_text(ctx));
}

Test(call, names) {
    tiga_binding b[4] = {{"x", &x}, {"w", &w}, {"bias", &bias}, {"y", &x}};
    tiga_array second = {0};
    tiga_binding two[2] = {{"out", &out}, {"out", &second}};
    FAILS(tiga_call(ctx, m, "weighted_sums", g, in, 3, outs, 1), TIGA_E_NAME,
          "the module has no function 'weighted_sums'; did you mean 'weighted_sum'?");
    FAILS(tiga_call(ctx, m, "qq", g, in, 3, outs, 1), TIGA_E_NAME, "has no function 'qq'");
    FAILS(tiga_call(ctx, m, "weighted_sum", g, b, 4, outs, 1), TIGA_E_NAME,
          "weighted_sum: has no parameter 'y'; it has x, w, bias");
    FAILS(tiga_call(ctx, m, "weighted_sum", g, in, 2, outs, 1), TIGA_E_NAME,
          "weighted_sum: argument 'bias' (dst bias: f32[F]) is missing");
    b[3].name = "x";
    FAILS(tiga_call(ctx, m, "weighted_sum", g, b, 4, outs, 1), TIGA_E_ARGUMENT, "argument 'x' is given twice");
    FAILS(tiga_call(ctx, m, "weighted_sum", g, in, 3, outs, 0), TIGA_E_NAME, "result 'out' (out: f32[F]) is missing");
    FAILS(tiga_call(ctx, m, "weighted_sum", g, in, 3, two, 2), TIGA_E_ARGUMENT, "result 'out' is given twice");
    two[0].name = "result";
    FAILS(tiga_call(ctx, m, "weighted_sum", g, in, 3, two, 1), TIGA_E_NAME, "has no result 'result'; it has out");
    two[0].name = NULL;
    FAILS(tiga_call(ctx, m, "weighted_sum", g, in, 3, two, 1), TIGA_E_ARGUMENT, "result 0 has no name");
    b[0].array = NULL;
    FAILS(tiga_call(ctx, m, "weighted_sum", g, b, 3, outs, 1), TIGA_E_ARGUMENT, "argument 'x' is NULL");
    FAILS(tiga_call(ctx, m, "steps", square, (tiga_binding[]){{"g", &x}}, 1, outs, 1), TIGA_E_ARGUMENT,
          "'g' is a graph");
    FAILS(tiga_call(ctx, NULL, "steps", square, in, 1, outs, 1), TIGA_E_ARGUMENT, "NULL");
    cr_assert_null(out.data);
}

Test(call, graphs) {
    tiga_graph *pair[] = {g, g}, *none[] = {NULL};
    FAILS(tiga_call(ctx, m, "weighted_sum", NULL, in, 3, outs, 1), TIGA_E_ARGUMENT, "takes 1 graph, 0 given");
    FAILS(tiga_call_many(ctx, m, "weighted_sum", pair, 2, in, 3, outs, 1, NULL), TIGA_E_ARGUMENT,
          "takes 1 graph, 2 given");
    FAILS(tiga_call_many(ctx, m, "weighted_sum", none, 1, in, 3, outs, 1, NULL), TIGA_E_ARGUMENT, "graph 0 is NULL");
    FAILS(tiga_call(ctx, m, "fill", g, NULL, 0, outs, 1), TIGA_E_ARGUMENT, "takes 0 graphs, 1 given");
    FAILS(tiga_call(ctx, m, "steps", g, in, 0, outs, 1), TIGA_E_TYPE,
          "steps: the graph g must be square, it has 3 rows and 4 sources");
}

Test(call, types_and_sizes) {
    int64_t shape[] = {M, 3}, n = E;
    x.dtype = TIGA_F64;
    FAILS(CALL(), TIGA_E_TYPE, "weighted_sum: argument 'x' (src x: f32[F]): expected f32[n_src = 4, F], got f64[4, 2]");
    x.dtype = TIGA_F32;
    x.shape[0] = 5;
    FAILS(CALL(), TIGA_E_TYPE, "expected f32[n_src = 4, F], got f32[5, 2]");
    x.shape[0] = M;
    x.rank = 1;
    FAILS(CALL(), TIGA_E_TYPE, "expected f32[n_src = 4, F], got f32[4]");
    x.rank = 2;
    x.shape[1] = INT64_MAX;
    FAILS(CALL(), TIGA_E_TYPE, "f32[4, 9223372036854775807] has more bytes than a size can tell");
    x.shape[1] = F;
    bias.shape[1] = 3;
    FAILS(CALL(), TIGA_E_TYPE,
          "argument 'bias' (dst bias: f32[F]): expected f32[n_dst = 3, F = 2], got f32[3, 3]; F is that of 'x'");
    bias.shape[1] = F;
    w.rank = 2;
    w.shape[1] = 1;
    FAILS(CALL(), TIGA_E_TYPE, "expected f32[n_edge = 5], got f32[5, 1]");
    w.rank = 1;
    x.data = NULL;
    FAILS(CALL(), TIGA_E_ARGUMENT, "argument 'x' has no data");
    x.data = (char *)xs + 2;
    FAILS(CALL(), TIGA_E_ARGUMENT, "argument 'x' is not aligned to its 4-byte elements");
    x.data = xs;
    float memory[9];
    out = tiga_array_borrow(memory, TIGA_F32, 2, shape);
    FAILS(CALL(), TIGA_E_TYPE, "result 'out' (out: f32[F]): expected f32[n_dst = 3, F = 2], got f32[4, 3]");
    out = tiga_array_borrow(memory, TIGA_I32, 1, &n);
    FAILS(CALL(), TIGA_E_TYPE, "got i32[5]");
    memset(&out, 0, sizeof out);
}

Test(call, dimensions_without_an_argument) {
    float memory[4] = {1, 2, 3, 4};
    int64_t n = 4;
    FAILS(tiga_call(ctx, m, "fill", NULL, NULL, 0, outs, 1), TIGA_E_TYPE,
          "fill: no argument shows the size of dimension K");
    out = tiga_array_borrow(memory, TIGA_F32, 1, &n);
    cr_assert_eq(tiga_call(ctx, m, "fill", NULL, NULL, 0, outs, 1), TIGA_OK);
}

Test(call, shared_memory) {
    float memory[16];
    int64_t a[] = {M, F}, b[] = {N, F};
    x = tiga_array_borrow(memory, TIGA_F32, 2, a);
    out = tiga_array_borrow(memory + 7, TIGA_F32, 2, b);
    FAILS(CALL(), TIGA_E_ARGUMENT, "result 'out' shares memory with 'x'");
    out = tiga_array_borrow(memory + 8, TIGA_F32, 2, b); /* begins where x ends */
    cr_assert_eq(CALL(), TIGA_OK);
    out = tiga_array_borrow((void *)(uintptr_t)tiga_graph_csr(g)->offsets, TIGA_F32, 2, b);
    FAILS(CALL(), TIGA_E_ARGUMENT, "result 'out' shares memory with 'the graph'");
    memset(&out, 0, sizeof out);
}

static float step_x[N] = {1, 2, 3};
static tiga_status call_steps(int64_t rounds, tiga_call_stats *stats) {
    int64_t n = N;
    tiga_array sx = tiga_array_borrow(step_x, TIGA_F32, 1, &n), r = tiga_array_borrow(&rounds, TIGA_I64, 0, NULL);
    tiga_binding b[] = {{"rounds", &r}, {"x", &sx}};
    return tiga_call_many(ctx, m, "steps", &square, 1, b, 2, outs, 1, stats);
}

Test(call, program_with_instances) {
    tiga_call_stats stats;
    for (int64_t rounds = 0; rounds < 4; rounds++) {
        cr_assert_eq(call_steps(rounds, &stats), TIGA_OK, "%s", tiga_error_text(ctx));
        for (int i = 0; i < N; i++)
            cr_assert(((float *)out.data)[i] == (float)(i + 1 + rounds));
        cr_assert_eq(stats.launches, rounds);
        cr_assert_eq(stats.peak_bytes, 3 * N * 4);
        tiga_array_free(&out);
    }
    int64_t n = N, one = 1;
    tiga_array sx = tiga_array_borrow(step_x, TIGA_F32, 1, &n), r = tiga_array_borrow(&one, TIGA_I64, 1, &one);
    tiga_binding b[] = {{"rounds", &r}, {"x", &sx}};
    FAILS(tiga_call(ctx, m, "steps", square, b, 2, outs, 1), TIGA_E_TYPE,
          "argument 'rounds' (rounds: i64): expected i64, got i64[1]");
    sx.shape[0] = 2;
    r.rank = 0;
    FAILS(tiga_call(ctx, m, "steps", square, b, 2, outs, 1), TIGA_E_TYPE, "expected f32[g.dst = 3], got f32[2]");
}

Test(call, budget) {
    for (int64_t budget = 0; budget < 3 * N * 4; budget++) {
        ctx->account->budget[0] = budget;
        FAILS(call_steps(2, NULL), TIGA_E_BUDGET,
              budget < 12   ? "steps: result 'out' needs 12 bytes on the host; 0 of its budget"
              : budget < 24 ? "steps: buffer 'x@1' needs 12 bytes on the host; 12 of its budget"
                            : "steps: buffer 'x@2' needs 12 bytes on the host; 24 of its budget");
        cr_assert(!out.data && !out.owned);
    }
    ctx->account->budget[0] = 3 * N * 4;
    tiga_error_clear(ctx);
    cr_assert_eq(call_steps(2, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
}

Test(call, every_allocation_fails) {
    int failures = 0;
    for (uint64_t k = 1;; k++) {
        tiga_error_clear(ctx);
        base_inject_at(BASE_INJECT_ALLOC, k);
        tiga_status status = call_steps(2, NULL);
        bool reached = base_inject_count(BASE_INJECT_ALLOC) >= k;
        base_inject_at(BASE_INJECT_ALLOC, 0);
        if (!reached)
            break;
        cr_assert(status == TIGA_E_MEMORY || status == TIGA_OK); /* the words of a message may be lost, no more */
        cr_assert(ctx->account->live[0] == 0 && (status == TIGA_OK) == (out.data != NULL));
        failures += status != TIGA_OK;
        tiga_array_free(&out);
    }
    cr_assert_eq(failures, 5); /* the result, and two buffers with their instances */
}

Test(call, schedules_that_are_wrong) {
    static const char *const words[] = {"acquire for reading 'a@3': it was never written",
                                        "acquire for writing 'step@0': it is an argument",
                                        "acquire for writing 'a@3': it is being written",
                                        "acquire for reading 'a@3': it is being written",
                                        "done with 'step@0': it is not pinned",
                                        "release 'a@3': it was released before",
                                        "release 'a@3': it is pinned",
                                        "copy from 'a@3': it has no value",
                                        "copy to 'out@0': the sizes differ",
                                        "launch with 'a@3': it was not acquired for reading",
                                        "launch with 'out@0': it was not acquired for writing",
                                        "launch of 'weighted_sum@0': it walks edges and has no graph",
                                        "binds array 7, which it does not have",
                                        "buffer 'd@0' asks for the device tier",
                                        "read of 'step@0': it was not acquired for reading",
                                        "read of 'step@0': it holds no bool",
                                        "the schedule ends with 'step@0' pinned",
                                        "the schedule ends with 'out@0' not written",
                                        "returned 42 by itself",
                                        "buffer 'huge@0' is larger than any memory",
                                        "acquire for writing 'a@3': it is being read",
                                        "launch with 'a@3': it was not acquired for reading"};
    for (int64_t step = 0; step < (int64_t)(sizeof words / sizeof words[0]); step++) {
        tiga_array s = tiga_array_borrow(&step, TIGA_I64, 0, NULL);
        tiga_binding b[] = {{"step", &s}};
        tiga_status want = step == 13 ? TIGA_E_UNSUPPORTED : step == 19 ? TIGA_E_MEMORY : TIGA_E_INTERNAL;
        FAILS(tiga_call(ctx, m, "faulty", NULL, b, 1, outs, 1), want, words[step]);
        cr_assert(!out.data);
    }
}

Test(call, interrupted) {
    tiga_interrupt(ctx); /* before the call: forgotten */
    cr_assert_eq(CALL(), TIGA_OK);
    tiga_array_free(&out);
    interrupting = ctx;
    FAILS(call_steps(1000000, NULL), TIGA_E_INTERRUPTED, ": interrupted");
    cr_assert_null(out.data);
    interrupting = NULL;
}

Test(call, buffers_come_and_go) {
    tiga_call_stats stats;
    for (int64_t n = 1; n <= 1000; n *= 10) { /* beyond the quarantine too */
        tiga_array a = tiga_array_borrow(&n, TIGA_I64, 0, NULL);
        tiga_binding b[] = {{"n", &a}};
        cr_assert_eq(tiga_call_many(ctx, m, "churn", NULL, 0, b, 1, outs, 1, &stats), TIGA_OK, "%s",
                     tiga_error_text(ctx));
        cr_assert_eq(stats.peak_bytes, 8);
        cr_assert_eq(stats.bytes_written, 4 * n);
        tiga_array_free(&out);
    }
}

Test(call, several_graphs_and_their_sizes) {
    tiga_graph *both[] = {g, square}, *reversed[] = {square, g};
    cr_assert_eq(tiga_call_many(ctx, m, "sizes", both, 2, NULL, 0, outs, 1, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert(((int64_t *)out.data)[0] == M && ((int64_t *)out.data)[1] == N && ((int64_t *)out.data)[2] == E);
    tiga_array_free(&out);
    cr_assert_eq(tiga_call_many(ctx, m, "sizes", reversed, 2, NULL, 0, outs, 1, NULL), TIGA_OK);
    cr_assert_eq(((int64_t *)out.data)[0], N);
    FAILS(tiga_call(ctx, m, "sizes", g, NULL, 0, outs, 1), TIGA_E_ARGUMENT, "sizes: takes 2 graphs, 1 given");
}

Test(call, node_fields_want_a_square_graph) {
    int64_t n = N;
    tiga_array u = tiga_array_borrow(step_x, TIGA_F32, 1, &n);
    tiga_binding b[] = {{"u", &u}};
    FAILS(tiga_call(ctx, m, "nodes", g, b, 1, NULL, 0), TIGA_E_TYPE,
          "the graph must be square, it has 3 rows and 4 sources");
}

/* A graph large enough for threads: the same bits with any number of them. */
Test(call, results_do_not_depend_on_threads) {
    enum { SCALE = 13, WIDTH = 9 };
    tiga_graph *big;
    cr_assert_eq(tiga_graph_rmat(ctx, SCALE, 12, 9, &big), TIGA_OK);
    int64_t n = tiga_graph_csr(big)->n_dst, e = tiga_graph_csr(big)->n_edges, a[] = {n, WIDTH};
    cr_assert_eq(tiga_array_new(ctx, TIGA_F32, 2, a, &x), TIGA_OK);
    cr_assert_eq(tiga_array_new(ctx, TIGA_F32, 1, &e, &w), TIGA_OK);
    cr_assert_eq(tiga_array_new(ctx, TIGA_F32, 2, a, &bias), TIGA_OK);
    srand(3);
    for (int64_t i = 0; i < n * WIDTH; i++)
        ((float *)x.data)[i] = (float)rand() / (float)RAND_MAX - 0.5F;
    for (int64_t i = 0; i < e; i++)
        ((float *)w.data)[i] = (float)rand() / (float)RAND_MAX;
    tiga_array first = {0};
    for (ctx->threads = 1; ctx->threads <= 6; ctx->threads++) {
        cr_assert_eq(tiga_call(ctx, m, "weighted_sum", big, in, 3, outs, 1), TIGA_OK);
        if (ctx->threads == 1)
            first = out;
        else
            cr_assert(memcmp(first.data, out.data, (size_t)tiga_array_bytes(&out)) == 0);
        if (ctx->threads > 1)
            tiga_array_free(&out);
        memset(&out, 0, sizeof out);
    }
    tiga_array_free(&first);
    tiga_array_free(&x);
    tiga_array_free(&w);
    tiga_array_free(&bias);
    tiga_graph_free(big);
}

/* Copies of more than one block, by several threads; the last block is not a whole one. */
Test(call, large_copies) {
    enum { ROWS = 900001 };
    int64_t n = ROWS, rounds = 0;
    int64_t *offsets = calloc(ROWS + 1, sizeof *offsets), none = 0;
    float *values = malloc(ROWS * sizeof *values);
    cr_assert(offsets && values);
    for (int i = 0; i < ROWS; i++)
        values[i] = (float)i;
    tiga_graph *empty;
    cr_assert_eq(tiga_graph_from_csr(ctx, n, n, offsets, &none, 64, TIGA_COPY, &empty), TIGA_OK);
    tiga_array a = tiga_array_borrow(values, TIGA_F32, 1, &n), r = tiga_array_borrow(&rounds, TIGA_I64, 0, NULL);
    tiga_binding b[] = {{"rounds", &r}, {"x", &a}};
    for (ctx->threads = 1; ctx->threads <= 4; ctx->threads += 3) {
        tiga_call_stats stats;
        cr_assert_eq(tiga_call_many(ctx, m, "steps", &empty, 1, b, 2, outs, 1, &stats), TIGA_OK);
        cr_assert_eq(memcmp(out.data, values, ROWS * sizeof *values), 0);
        cr_assert_eq(stats.bytes_written, 2 * ROWS * (int64_t)sizeof *values);
        tiga_array_free(&out);
    }
    tiga_graph_free(empty);
    free(offsets);
    free(values);
}

/* ---- prepared calls ---- */
Test(call, prepared_and_launched) {
    tiga_prepared *p;
    tiga_call_stats stats;
    cr_assert_eq(tiga_prepare(ctx, m, "weighted_sum", &g, 1, in, 3, outs, 1, &p), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert(out.owned && out.data && ctx->account->live[0] == 0);
    memset(&x, 0xee, sizeof x); /* only the memory is needed from now on */
    memset(&w, 0xee, sizeof w);
    base_inject_at(BASE_INJECT_ALLOC, UINT64_MAX);
    for (int round = 0; round < 10000; round++) {
        memset(out.data, 0xff, sizeof expected);
        cr_assert_eq(tiga_prepared_launch(p, round % 2 ? &stats : NULL), TIGA_OK);
        cr_assert(memcmp(out.data, expected, sizeof expected) == 0);
    }
    cr_assert_eq(base_inject_count(BASE_INJECT_ALLOC), 0);
    base_inject_at(BASE_INJECT_ALLOC, 0);
    cr_assert(stats.edges == E && stats.rows == N && stats.launches == 1 && stats.peak_bytes == 0 &&
              stats.bytes_written == N * F * 4 && stats.seconds >= 0);
    xs[0] = 2; /* what the memory holds may change */
    cr_assert_eq(tiga_prepared_launch(p, NULL), TIGA_OK);
    cr_assert(((float *)out.data)[0] == expected[0] + ws[1]);
    tiga_prepared_free(p);
    tiga_prepared_free(NULL);
    cr_assert_eq(tiga_prepared_launch(NULL, NULL), TIGA_E_ARGUMENT);
}

Test(call, prepared_keeps_module_and_graph) {
    tiga_prepared *p;
    cr_assert_eq(tiga_prepare(ctx, m, "weighted_sum", &g, 1, in, 3, outs, 1, &p), TIGA_OK);
    cr_assert_eq(tiga_module_retain(m), m);
    tiga_module_free(m);
    tiga_module_free(m);
    tiga_graph_free(g);
    cr_assert_eq(tiga_prepared_launch(p, NULL), TIGA_OK);
    cr_assert(memcmp(out.data, expected, sizeof expected) == 0);
    tiga_prepared_free(p);
    m = NULL;
    g = NULL;
}

Test(call, prepared_is_checked) {
    tiga_prepared *p;
    cr_assert_eq(tiga_prepare(ctx, m, "weighted_sum", &g, 1, in, 3, outs, 1, NULL), TIGA_E_ARGUMENT);
    FAILS(tiga_prepare(ctx, m, "weighted_sum", &g, 1, in, -1, outs, 1, &p), TIGA_E_ARGUMENT, "tiga_prepare: ");
    FAILS(tiga_prepare(ctx, m, "weighted_sums", &g, 1, in, 3, outs, 1, &p), TIGA_E_NAME, "did you mean");
    cr_assert_null(p);
    x.shape[0] = 5;
    FAILS(tiga_prepare(ctx, m, "weighted_sum", &g, 1, in, 3, outs, 1, &p), TIGA_E_TYPE, "argument 'x'");
    cr_assert(!p && !out.data);
}

static tiga_prepared *prepare_steps(int64_t *rounds) {
    static int64_t n = N;
    tiga_array sx = tiga_array_borrow(step_x, TIGA_F32, 1, &n), r = tiga_array_borrow(rounds, TIGA_I64, 0, NULL);
    tiga_binding b[] = {{"rounds", &r}, {"x", &sx}};
    tiga_prepared *p;
    tiga_status status = tiga_prepare(ctx, m, "steps", &square, 1, b, 2, outs, 1, &p);
    cr_assert_eq(status, TIGA_OK, "%s", tiga_error_text(ctx));
    return p;
}

Test(call, prepared_program_takes_memory_once) {
    int64_t rounds = 3;
    tiga_call_stats stats;
    tiga_prepared *p = prepare_steps(&rounds);
    cr_assert_eq(tiga_prepared_launch(p, &stats), TIGA_OK);
    cr_assert_eq(stats.peak_bytes, 2 * N * 4);
    base_inject_at(BASE_INJECT_ALLOC, UINT64_MAX);
    for (rounds = 0; rounds < 9; rounds++) {
        cr_assert_eq(tiga_prepared_launch(p, &stats), TIGA_OK);
        cr_assert(((float *)out.data)[2] == (float)(3 + rounds) && stats.launches == rounds);
    }
    cr_assert_eq(base_inject_count(BASE_INJECT_ALLOC), 0);
    base_inject_at(BASE_INJECT_ALLOC, 0);
    tiga_prepared_free(p);
    cr_assert_eq(ctx->account->live[0], 0);
}

Test(call, prepared_goes_on_after_a_failure) {
    int64_t rounds = 1000000;
    tiga_prepared *p = prepare_steps(&rounds);
    interrupting = ctx;
    FAILS(tiga_prepared_launch(p, NULL), TIGA_E_INTERRUPTED, ": interrupted");
    interrupting = NULL;
    ctx->account->budget[0] = 2 * N * 4 - 1;
    FAILS(tiga_prepared_launch(p, NULL), TIGA_E_BUDGET, "buffer 'x@2'"); /* kept memory is within the budget too */
    ctx->account->budget[0] = 2 * N * 4;
    rounds = 1;
    cr_assert_eq(tiga_prepared_launch(p, NULL), TIGA_OK);
    cr_assert(((float *)out.data)[0] == 2);
    tiga_prepared_free(p);
}

Test(call, prepared_when_every_allocation_fails) {
    int64_t rounds = 2, n = N;
    tiga_array sx = tiga_array_borrow(step_x, TIGA_F32, 1, &n), r = tiga_array_borrow(&rounds, TIGA_I64, 0, NULL);
    tiga_binding b[] = {{"rounds", &r}, {"x", &sx}};
    for (uint64_t k = 1;; k++) {
        tiga_prepared *p;
        tiga_error_clear(ctx);
        base_inject_at(BASE_INJECT_ALLOC, k);
        tiga_status status = tiga_prepare(ctx, m, "steps", &square, 1, b, 2, outs, 1, &p);
        cr_assert((status == TIGA_OK) == (p != NULL) && (status == TIGA_OK) == (out.data != NULL));
        if (p)
            status = tiga_prepared_launch(p, NULL);
        bool reached = base_inject_count(BASE_INJECT_ALLOC) >= k;
        base_inject_at(BASE_INJECT_ALLOC, 0);
        cr_assert(status == TIGA_E_MEMORY || status == TIGA_OK);
        cr_assert_eq(ctx->account->live[0], 0);
        if (p)
            cr_assert_eq(tiga_prepared_launch(p, NULL), TIGA_OK);
        tiga_prepared_free(p);
        tiga_array_free(&out);
        if (!reached)
            break;
    }
}

/* ---- other code for 64-bit sources ---- */
static tiga_module_info wide_info;
static int wide_asked;
static tiga_status wide_rows(void *owner, tiga_context *asking, int source_bits, const tiga_module_info **found) {
    wide_asked += source_bits;
    *found = owner;
    return owner ? TIGA_OK : tiga_error_set(asking, TIGA_E_MEMORY, "no memory for wide code");
}

Test(call, wide_code_is_asked_for) {
    int32_t narrow_sources[] = {3, 0, 1, 1, 2};
    int64_t wide_sources[] = {3, 0, 1, 1, 2}, offsets[] = {0, 2, 2, 5};
    tiga_graph *wide, *narrow;
    tiga_module *other;
    wide_info = info;
    cr_assert_eq(tiga_graph_from_csr(ctx, N, M, offsets, wide_sources, 64, TIGA_BORROW, &wide), TIGA_OK);
    cr_assert_eq(tiga_graph_from_csr(ctx, N, M, offsets, narrow_sources, 32, TIGA_BORROW, &narrow), TIGA_OK);
    cr_assert_eq(tiga_module_from_owned(ctx, &info, &wide_info, NULL, &other), TIGA_OK);
    tiga_module_set_rows(other, wide_rows);
    cr_assert_eq(tiga_call(ctx, other, "weighted_sum", narrow, in, 3, outs, 1), TIGA_OK);
    cr_assert_eq(wide_asked, 0);
    cr_assert_eq(tiga_call(ctx, other, "weighted_sum", wide, in, 3, outs, 1), TIGA_OK);
    cr_assert_eq(wide_asked, 64);
    cr_assert(memcmp(out.data, expected, sizeof expected) == 0);
    tiga_array_free(&out);
    tiga_graph *both[] = {wide, narrow};
    cr_assert_eq(tiga_call_many(ctx, other, "sizes", both, 2, NULL, 0, outs, 1, NULL), TIGA_OK);
    cr_assert_eq(wide_asked, 64 + 96);
    tiga_array_free(&out);
    wide_info.n_functions = 1;
    FAILS(tiga_call(ctx, other, "weighted_sum", wide, in, 3, outs, 1), TIGA_E_INTERNAL, "of another module");
    tiga_module_free(other);
    cr_assert_eq(tiga_module_from_owned(ctx, &info, NULL, NULL, &other), TIGA_OK);
    tiga_module_set_rows(other, wide_rows);
    FAILS(tiga_call(ctx, other, "weighted_sum", wide, in, 3, outs, 1), TIGA_E_MEMORY, "no memory for wide code");
    cr_assert_null(out.data);
    tiga_module_free(other);
    tiga_graph_free(wide);
    tiga_graph_free(narrow);
}

/* ---- scopes: what a call makes for itself is charged to the account in force, and may evict idle values ---- */
Test(call, budgets_of_a_scope) {
    tiga_execution_options o = tiga_execution_defaults();
    tiga_execution *run;
    o.budget[TIGA_TIER_HOST] = 3 * N * 4 - 1;
    cr_assert_eq(tiga_execution_begin(ctx, &o, &run), TIGA_OK);
    FAILS(call_steps(2, NULL), TIGA_E_BUDGET, "buffer 'x@2' needs 12 bytes on the host; 24 of its budget of 35");
    cr_assert(!out.data && run->live[0] == 0 && run->peak[0] == 24);
    cr_assert_eq(tiga_execution_end(ctx), TIGA_OK);
    tiga_execution_free(run);
    tiga_error_clear(ctx);
    cr_assert_eq(call_steps(2, NULL), TIGA_OK);
}

Test(call, idle_values_make_room_for_calls) {
    tiga_execution_options o = tiga_execution_defaults();
    tiga_execution *run;
    tiga_buffer *idle;
    tiga_pin pin;
    tiga_residency r;
    o.budget[TIGA_TIER_HOST] = 3 * N * 4;
    o.eviction = TIGA_EVICT_LRU;
    o.spill_dir = "/tmp";
    cr_assert_eq(tiga_execution_begin(ctx, &o, &run), TIGA_OK);
    cr_assert_eq(tiga_buffer_new(ctx, "idle", TIGA_TIER_HOST, 4, &idle), TIGA_OK);
    tiga_error_clear(ctx);
    cr_assert_eq(call_steps(2, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
    tiga_buffer_residency(idle, &r);
    cr_assert(!r.resident && run->live[0] == 0 && run->live[TIGA_TIER_DISK] == 4);
    tiga_array_free(&out);
    memset(&out, 0, sizeof out);
    cr_assert_eq(tiga_buffer_pin(ctx, idle, TIGA_READ, &pin), TIGA_OK);
    cr_assert_eq(call_steps(2, NULL), TIGA_E_BUDGET); /* what is in use stays */
    tiga_buffer_unpin(&pin);
    tiga_buffer_free(idle);
    tiga_prepared *p;
    FAILS(tiga_prepare(ctx, m, "weighted_sum", &g, 1, in, 3, outs, 1, &p), TIGA_E_UNSUPPORTED, "LRU");
    cr_assert_eq(tiga_execution_end(ctx), TIGA_OK);
    tiga_execution_free(run);
}
