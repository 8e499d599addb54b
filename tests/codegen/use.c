/* A user's program around two emitted modules, without any runtime: the plain functions with raw pointers, a range of rows
 * at a time, and the host function of a program over a runtime of forty lines.  C11 and C++17.  Prints what is wrong. */
#include "model.h"
#undef TIGA_MODULE_SYMBOL_NAME
#define TIGA_MODULE_SYMBOL_NAME second_module
#include "second.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5, E = 23, F = 21 };
static const int64_t offsets[N + 1] = {0, 3, 3, 20, 21, 23};
static int32_t sources32[E];
static int64_t sources64[E];
static int failures;

static void expect(int ok, const char *what) {
    if (!ok) {
        printf("wrong: %s\n", what);
        failures++;
    }
}

static int close_to(double a, double b) { return fabs(a - b) <= 1e-5 * (1 + fabs(b)); }

static tiga_csr graph_of(int bits) {
    tiga_csr g = {N, N, E, offsets, sources32, 32};
    if (bits == 64) {
        g.sources = sources64;
        g.source_bits = 64;
    }
    return g;
}

static void check_weighted_sum(int bits) {
    static float x[N * F], w[E], bias[N * F], out[N * F], parts[N * F];
    tiga_csr g = graph_of(bits);
    for (int i = 0; i < N * F; ++i) x[i] = (float)(i % 13) / 3 - 1;
    for (int i = 0; i < N * F; ++i) bias[i] = (float)i / 7;
    for (int e = 0; e < E; ++e) w[e] = (float)(e % 5) - 1;
    weighted_sum(&g, F, x, w, bias, out);
    weighted_sum_rows(&g, F, x, w, bias, parts, 3, N);
    weighted_sum_rows(&g, F, x, w, bias, parts, 0, 3);
    expect(!memcmp(out, parts, sizeof out), "rows in two ranges");
    for (int i = 0; i < N; ++i)
        for (int k = 0; k < F; ++k) {
            double sum = bias[i * F + k];
            for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) sum += (double)w[e] * (double)x[sources64[e] * F + k];
            expect(close_to(out[i * F + k], sum), "weighted_sum");
        }
}

static void check_spread(void) {
    static float x[N * F], y[N * F], near_[N * F], score[E];
    tiga_csr g = graph_of(32);
    for (int i = 0; i < N * F; ++i) x[i] = (float)(i % 11) / 5, y[i] = (float)(i % 7) / 9;
    void *scratch = aligned_alloc(64, ((size_t)spread_scratch(&g, F) + 63) / 64 * 64);
    spread(&g, F, x, y, near_, score, scratch);
    free(scratch);
    for (int i = 0; i < N; ++i)
        for (int k = 0; k < F; ++k) {
            double sum = 0;
            for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) {
                double distance = 0, product = 0;
                const float *from = x + sources64[e] * F, *to = y + i * F;
                for (int l = 0; l < F; ++l) {
                    distance += ((double)from[l] - (double)to[l]) * ((double)from[l] - (double)to[l]);
                    product += (double)from[l] * (double)to[l];
                }
                sum += (double)from[k] / (1 + distance);
                expect(close_to(score[e], product), "spread: score");
            }
            expect(close_to(near_[i * F + k], sum), "spread: near");
        }
}

static void check_twice(void) {
    double x[N] = {1, -2, 3.5, 4, 5}, out[N];
    uint8_t keep[E];
    tiga_csr g = graph_of(64);
    for (int e = 0; e < E; ++e) keep[e] = e % 3 != 1;
    twice(&g, x, keep, out);
    for (int i = 0; i < N; ++i) {
        double sum = 0;
        for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) sum += keep[e] ? x[sources64[e]] : 0;
        expect(close_to(out[i], 2 * sum), "twice");
    }
}

/* ---- a runtime: instances are blocks of memory, a launch is a loop ---- */
struct tiga_instance {
    void *data;
    int64_t bytes;
    int pinned, owned;
};

typedef struct frame {
    struct tiga_instance inst[16];
    int n, n_params, fail_at, calls, live;
    tiga_csr graph;
} frame;

static frame *frame_of(void *p) { return (frame *)p; }
static int32_t step(void *p) { return ++frame_of(p)->calls == frame_of(p)->fail_at ? 7 : 0; }

static int32_t bind_param(void *p, int32_t index, tiga_instance **out) { return *out = &frame_of(p)->inst[index], step(p); }
static int32_t bind_result(void *p, int32_t index, tiga_instance **out) { return *out = &frame_of(p)->inst[frame_of(p)->n_params + index], step(p); }
static int32_t alloc(void *p, const char *name, int64_t version, int32_t tier, int64_t bytes, tiga_instance **out) {
    frame *f = frame_of(p);
    expect(name[0] && version >= 0 && tier == TIGA_TIER_HOST, "alloc");
    *out = &f->inst[f->n++];
    (*out)->data = malloc((size_t)bytes);
    (*out)->bytes = bytes;
    (*out)->owned = 1;
    f->live++;
    return step(p);
}
static int32_t acquire(void *p, tiga_instance *i, int32_t write) {
    expect(write == 0 || write == 1, "acquire");
    i->pinned++;
    return step(p);
}
static int32_t done(void *p, tiga_instance *i) { return expect(i->pinned-- == 1, "done without acquire"), step(p); }
static int32_t release(void *p, tiga_instance *i) {
    expect(i->owned && !i->pinned, "release");
    i->owned = 0;
    free(i->data);
    frame_of(p)->live--;
    return step(p);
}
static int32_t copy(void *p, tiga_instance *from, tiga_instance *to) {
    expect(from->bytes == to->bytes, "copy of equal bytes");
    memcpy(to->data, from->data, (size_t)to->bytes);
    return step(p);
}
static int32_t launch(void *p, const tiga_kernel_code *code, int32_t graph, int64_t n_rows, tiga_instance *const *buffers, const int64_t *dims) {
    void *data[8];
    for (int32_t i = 0; i < code->n_buffers; ++i) expect(buffers[i]->pinned == 1, "launch on what is not acquired"), data[i] = buffers[i]->data;
    tiga_launch_args args = {frame_of(p)->graph, n_rows, dims, data, NULL, NULL, code->numbers, NULL, NULL};
    expect(graph == 0 && code->walks_edges && !code->scratch_bytes, "launch");
    code->rows32(&args, 0, n_rows);
    return step(p);
}
static int32_t read_i64(void *p, tiga_instance *i, int64_t *out) { return *out = *(const int64_t *)i->data, step(p); }
static int32_t read_bool(void *p, tiga_instance *i, int64_t *out) { return *out = *(const uint8_t *)i->data, step(p); }
static int32_t poll(void *p) { return step(p); }

static const tiga_host host = {TIGA_ABI_VERSION, bind_param, bind_result, alloc, acquire, done, release, copy, NULL, NULL, launch, launch, read_i64, read_bool, poll};

static const tiga_function_info *find(const tiga_module_info *m, const char *name) {
    for (int32_t i = 0; i < m->n_functions; ++i)
        if (!strcmp(m->functions[i].name, name)) return &m->functions[i];
    return NULL;
}

static int run_relax(int64_t rounds, int fail_at, float *u, float *out) {
    const tiga_function_info *relax = find(tiga_module_info_v1(), "relax");
    float dt = 0.25f;
    int64_t dims[3] = {N, N, E};
    frame f;
    memset(&f, 0, sizeof f);
    f.n_params = relax->n_params;
    f.n = relax->n_params + relax->n_results;
    f.fail_at = fail_at;
    f.graph = graph_of(32);
    f.inst[1].data = u, f.inst[1].bytes = N * (int64_t)sizeof(float);
    f.inst[2].data = &rounds, f.inst[2].bytes = 8;
    f.inst[3].data = &dt, f.inst[3].bytes = 4;
    f.inst[4].data = out, f.inst[4].bytes = N * (int64_t)sizeof(float);
    int32_t status = relax->host(&host, &f, dims);
    if (!status) expect(f.live == 0, "what was allocated was released");
    for (int i = 0; i < f.n; ++i)
        if (f.inst[i].owned) free(f.inst[i].data);
    return status ? -(int)status : f.calls;
}

static void check_relax(void) {
    float u[N] = {1, 2, 3, 4, 5}, out[N], v[N], next[N];
    for (int rounds = 0; rounds < 4; ++rounds) {
        int calls = run_relax(rounds, 0, u, out);
        expect(calls > 0, "relax");
        memcpy(v, u, sizeof v);
        for (int r = 0; r < rounds; ++r) {
            for (int i = 0; i < N; ++i) {
                float sum = 0;
                for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) sum += v[sources64[e]] - v[i];
                next[i] = v[i] + 0.25f * sum;
            }
            memcpy(v, next, sizeof v);
        }
        for (int i = 0; i < N; ++i) expect(close_to(out[i], v[i]), "relax: value");
        for (int k = 1; k <= calls; ++k) expect(run_relax(rounds, k, u, out) == -7, "the first failure ends the host function");
    }
}

static void check_tables(void) {
    const tiga_module_info *m = tiga_module_info_v1(), *second = second_module();
    expect(m->abi_version == TIGA_ABI_VERSION && m->struct_bytes == (int64_t)sizeof *m && m->n_functions == 4 && m->n_kernels == 3, "module");
    expect(second->n_functions == 1 && !strcmp(second->functions[0].name, "twice"), "second module");
    const tiga_function_info *ws = find(m, "weighted_sum"), *relax = find(m, "relax"), *spread_ = find(m, "spread"), *smooth_ = find(m, "smooth");
    expect(!ws->is_program && ws->n_params == 3 && ws->n_results == 1 && ws->n_dims == 2 && !ws->needs_square, "weighted_sum: counts");
    expect(!strcmp(ws->dims[0], "F") && !strcmp(ws->dims[1], ".dst"), "weighted_sum: dims");
    expect(ws->params[0].at == TIGA_AT_SRC && ws->params[0].dtype == TIGA_F32 && ws->params[0].rank == 1 && ws->params[0].shape[0] == -1, "x");
    expect(ws->params[1].at == TIGA_AT_EDGE && ws->params[1].rank == 0 && ws->params[1].graph == -1, "w");
    expect(ws->results[0].at == TIGA_AT_DST && !strcmp(ws->results[0].text, "out: f32[F]"), "out");
    expect(!strcmp(ws->params[0].text, "src x: f32[F]") && strstr(ws->plan, "launch %1, %2, %3, %4") != NULL, "texts");
    expect(spread_->results[1].at == TIGA_AT_EDGE, "score");
    expect(smooth_->needs_square == 1 && smooth_->params[0].at == TIGA_AT_NODE, "smooth");
    expect(relax->is_program && relax->params[0].at == TIGA_AT_GRAPH && relax->params[1].at == TIGA_AT_DST, "relax");
    expect(relax->params[1].graph == 0 && relax->params[1].rank == 0 && relax->params[2].at == TIGA_AT_PARAM && relax->params[2].dtype == TIGA_I64, "relax: u");
    expect(relax->results[0].at == TIGA_AT_DST && relax->results[0].graph == 0, "relax: out");
    expect(second->functions[0].params[1].dtype == TIGA_BOOL && second->functions[0].params[0].dtype == TIGA_F64, "twice: types");
}

int main(void) {
    for (int e = 0; e < E; ++e) sources64[e] = (e * 7 + 3) % N, sources32[e] = (int32_t)sources64[e];
    check_weighted_sum(32);
    check_weighted_sum(64);
    check_spread();
    check_twice();
    check_relax();
    check_tables();
    return failures ? 1 : 0;
}
