/* What is compiled, and how often: sizes and numbers are no part of a key; several threads with one cache; failures. */
#include "tensor_support.h"

#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>

static home *const h = &(home){0};
static void begin(void) { *h = home_new(0, 1); }
static void done(void) { home_free(h); }
TestSuite(tensor_cache, .init = begin, .fini = done, .timeout = 120);

/* softmax(a x + b, last axis) summed over the first: what a user writes once and calls with any size. */
static tiga_status expression(tiga_tensors *ts, int64_t rows, int64_t cols, double factor, tiga_tensor **out) {
    tiga_tensor *x = NULL, *k = NULL, *y = NULL, *s = NULL;
    tiga_status status = tiga_tensor_rand(ts, TIGA_F32, 2, (int64_t[]){rows, cols}, 7, &x);
    if (status == TIGA_OK)
        status = tiga_tensor_number(ts, factor, &k);
    if (status == TIGA_OK)
        status = tiga_tensor_op("mul", (tiga_tensor *[]){x, k}, 2, &y);
    if (status == TIGA_OK)
        status = tiga_tensor_softmax(y, -1, &s);
    if (status == TIGA_OK)
        status = tiga_tensor_fold(s, "sum", 1, 0, out);
    tiga_tensor_free(x);
    tiga_tensor_free(k);
    tiga_tensor_free(y);
    tiga_tensor_free(s);
    return status;
}

Test(tensor_cache, sizes_compile_nothing) {
    static const int64_t sizes[][2] = {{3, 4}, {5, 7}, {100, 3}, {2, 1000}, {0, 4}, {4096, 17}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tiga_tensor *y;
        OK(expression(h->ts, sizes[i][0], sizes[i][1], 0.3 + (double)i, &y));
        OK(tiga_tensor_realize(&y, 1));
        cr_assert_eq(how_of(y), i == 0 ? TIGA_TENSOR_COMPILED : TIGA_TENSOR_CACHED);
        tiga_tensor_free(y);
    }
    tiga_tensors_counters n = tiga_tensors_get_counters(h->ts);
    cr_assert_eq(n.programs, 1);
    cr_assert_eq(n.compiled, 1);
    cr_assert_eq(tiga_cache_get_counters(h->cache).misses, 1);
}

/* A momentum that is made of the last one and of what is new, and that nobody looks at: each step computes one of them, not all. */
Test(tensor_cache, what_is_computed_again_is_kept) {
    int64_t n = 1000;
    tiga_tensor *m, *decay;
    float want = 1;
    OK(tiga_tensor_full(h->ts, TIGA_F32, 1, &n, 1, &m));
    OK(tiga_tensor_number(h->ts, 0.5, &decay));
    for (int step = 0; step < 40; step++) {
        tiga_tensor *g, *scaled, *next, *used;
        OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, (uint64_t)step, &g));
        OK(tiga_tensor_op("mul", (tiga_tensor *[]){m, decay}, 2, &scaled));
        OK(tiga_tensor_op("add", (tiga_tensor *[]){scaled, g}, 2, &next));
        OK(tiga_tensor_op("neg", &next, 1, &used));
        want = want * 0.5f + f32_of(h, g)[7];
        cr_assert_eq(f32_of(h, used)[7], -want);
        FREE(m, g, scaled, used);
        m = next;
    }
    tiga_tensors_counters c = tiga_tensors_get_counters(h->ts);
    cr_assert_leq(c.programs, 4, "%lld", (long long)c.programs);
    cr_assert_leq(c.live_bytes, 4 * n * 4, "%lld", (long long)c.live_bytes);
    FREE(m, decay);
}

/* But not what is larger than all that is there; and who has what it was made from may ask for a gradient through it. */
Test(tensor_cache, what_is_kept_is_small_and_has_its_gradient) {
    tiga_tensor *x, *column, *wide, *sum, *y, *g;
    OK(tiga_tensor_arange(h->ts, TIGA_F32, 0, 300, 1, &x));
    OK(tiga_tensor_reshape(x, SHAPE(300, 1), &column));
    OK(tiga_tensor_op("mul", (tiga_tensor *[]){column, x}, 2, &wide));
    OK(tiga_tensor_op("mul", (tiga_tensor *[]){x, x}, 2, &y));
    for (int i = 0; i < 3; i++) {
        OK(tiga_tensor_fold(wide, "sum", TIGA_ALL_AXES, 0, &sum));
        OK(tiga_tensor_realize(&sum, 1));
        FREE(sum);
        OK(tiga_tensor_fold(y, "sum", TIGA_ALL_AXES, 0, &sum));
        OK(tiga_tensor_realize(&sum, 1));
        cr_assert_eq(how_of(y) == TIGA_TENSOR_PENDING, i == 0);
        FREE(sum);
    }
    cr_assert_eq(how_of(wide), TIGA_TENSOR_PENDING);
    OK(tiga_tensor_fold(y, "sum", TIGA_ALL_AXES, 0, &sum));
    OK(tiga_tensor_grad(sum, &x, 1, 0, &g));
    cr_assert(f32_of(h, g)[3] == 6 && f32_of(h, g)[299] == 598);
    FREE(x, column, wide, sum, y, g);
}

Test(tensor_cache, another_home_finds_it) {
    tiga_tensors *other;
    tiga_tensors_options o = tiga_tensors_defaults();
    tiga_tensor *y, *z;
    o.cache = h->cache;
    o.interpret_elements = 0;
    OK(tiga_tensors_new(h->ctx, &o, &other));
    OK(expression(h->ts, 6, 4, 0.3, &y));
    OK(tiga_tensor_realize(&y, 1));
    OK(expression(other, 8, 5, 0.3, &z));
    OK(tiga_tensor_realize(&z, 1));
    cr_assert_eq(how_of(z), TIGA_TENSOR_CACHED);
    cr_assert_eq(tiga_cache_get_counters(h->cache).misses, 1);
    tiga_tensor_free(y);
    tiga_tensors_free(other); /* its tensor goes on */
    cr_assert_eq(tiga_tensor_size(z), 5);
    tiga_tensor_free(z);
}

Test(tensor_cache, cold_and_small_is_interpreted) {
    tiga_tensors *ts;
    OK(tiga_tensors_new(h->ctx, NULL, &ts));
    static const int want[] = {TIGA_TENSOR_INTERPRETED, TIGA_TENSOR_INTERPRETED, TIGA_TENSOR_COMPILED,
                               TIGA_TENSOR_CACHED};
    float first[4];
    for (int i = 0; i < 4; i++) {
        tiga_tensor *y;
        float v[4];
        OK(expression(ts, 3, 4, 0.3, &y));
        OK(tiga_tensor_copy_to(y, v, sizeof v));
        cr_assert_eq(how_of(y), want[i], "run %d: %s", i, tiga_tensor_get_execution(y).text);
        if (i == 0)
            memcpy(first, v, sizeof v);
        cr_assert_eq(memcmp(first, v, sizeof v), 0, "the bits are the same");
        tiga_tensor_free(y);
    }
    tiga_tensors_free(ts);
}

/* ---- threads ---- */
typedef struct worker {
    tiga_cache *cache;
    float sum;
    bool ok;
} worker;

static void *work(void *arg) {
    worker *w = arg;
    tiga_context *ctx;
    tiga_tensors *ts;
    tiga_tensors_options o = tiga_tensors_defaults();
    o.cache = w->cache;
    o.interpret_elements = 0;
    w->ok = tiga_context_new(NULL, &ctx) == TIGA_OK && tiga_tensors_new(ctx, &o, &ts) == TIGA_OK;
    for (int64_t i = 1; w->ok && i <= 20; i++) {
        tiga_tensor *y = NULL, *s = NULL;
        float v = 0;
        w->ok = expression(ts, i + 1, 3 * i + 1, 0.3, &y) == TIGA_OK &&
                tiga_tensor_fold(y, "max", TIGA_ALL_AXES, 0, &s) == TIGA_OK &&
                tiga_tensor_copy_to(s, &v, sizeof v) == TIGA_OK;
        w->sum += v;
        tiga_tensor_free(y);
        tiga_tensor_free(s);
    }
    tiga_tensors_free(ts);
    tiga_context_free(ctx);
    return NULL;
}

Test(tensor_cache, threads) {
    enum { N = 4 };
    pthread_t t[N];
    worker w[N] = {{0}};
    for (int i = 0; i < N; i++) {
        w[i].cache = h->cache;
        pthread_create(&t[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < N; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < N; i++)
        cr_assert(w[i].ok && w[i].sum == w[0].sum, "thread %d", i);
    cr_assert_eq(tiga_cache_get_counters(h->cache).misses, 1);
}

/* ---- every allocation fails in turn ---- */
static tiga_status everything(tiga_tensors *ts, float *v) {
    tiga_tensor *x = NULL, *y = NULL, *t = NULL, *c = NULL, *g = NULL, *loss = NULL;
    tiga_status status = tiga_tensor_rand(ts, TIGA_F32, 2, (int64_t[]){3, 4}, 7, &x);
    if (status == TIGA_OK)
        status = tiga_tensor_op("gelu", &x, 1, &y);
    if (status == TIGA_OK)
        status = tiga_tensor_permute(y, NULL, &t);
    if (status == TIGA_OK)
        status = tiga_tensor_matmul(t, x, &c);
    if (status == TIGA_OK)
        status = tiga_tensor_fold(c, "mean", TIGA_ALL_AXES, 0, &loss);
    if (status == TIGA_OK)
        status = tiga_tensor_grad(loss, &x, 1, 0, &g);
    if (status == TIGA_OK)
        status = tiga_tensor_copy_to(g, v, 12 * sizeof *v);
    tiga_tensor_free(x);
    tiga_tensor_free(y);
    tiga_tensor_free(t);
    tiga_tensor_free(c);
    tiga_tensor_free(loss);
    tiga_tensor_free(g);
    return status;
}

Test(tensor_cache, no_memory) {
    float want[12], v[12];
    OK(everything(h->ts, want)); /* code is there now */
    int failures = 0;
    for (uint64_t nth = 1;; nth++) {
        base_inject_at(BASE_INJECT_ALLOC, nth);
        tiga_status status = everything(h->ts, v);
        bool reached = base_inject_count(BASE_INJECT_ALLOC) >= nth;
        base_inject_at(BASE_INJECT_ALLOC, 0);
        if (!reached) {
            cr_assert_eq(status, TIGA_OK);
            break;
        }
        failures += status != TIGA_OK;
        cr_assert(status == TIGA_OK || status == TIGA_E_MEMORY, "allocation %d: status %d, %s", (int)nth, status,
                  tiga_error_text(h->ctx));
        cr_assert_eq(status != TIGA_OK, tiga_error_status(h->ctx) == TIGA_E_MEMORY, "allocation %d", (int)nth);
        tiga_error_clear(h->ctx);
        cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0, "allocation %d", (int)nth);
    }
    cr_assert_gt(failures, 30);
    OK(everything(h->ts, v));
    cr_assert_eq(memcmp(v, want, sizeof v), 0);
}
