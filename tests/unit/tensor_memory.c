/* Tensors in scopes: what is charged, what leaves memory and comes back, files; the contract's two programs in C. */
#include "tensor_support.h"

#include "base/base.h"
#include "tiga/jit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static home *const h = &(home){0};
static char folder[64];

static void begin(void) {
    *h = home_new(0, 1);
    folder_new(folder);
}

static void done(void) {
    cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0);
    home_free(h);
    folder_free(folder);
}
TestSuite(tensor_memory, .init = begin, .fini = done, .timeout = 240);

static tiga_execution *scope(int64_t host, int64_t disk, int lru) {
    tiga_execution_options o = tiga_execution_defaults();
    tiga_execution *run;
    o.budget[TIGA_TIER_HOST] = host;
    o.budget[TIGA_TIER_DISK] = disk;
    o.spill_dir = folder;
    o.eviction = lru ? TIGA_EVICT_LRU : TIGA_EVICT_ERROR;
    OK(tiga_execution_begin(h->ctx, &o, &run));
    return run;
}

static tiga_memory_report report(tiga_execution *e) {
    tiga_memory_report r = {.struct_bytes = sizeof r};
    cr_assert_eq(tiga_execution_report(e, &r), TIGA_OK);
    return r;
}

/* All of it is given back with the last tensor. */
static void end_scope(tiga_execution *run) {
    OK(tiga_execution_end(h->ctx));
    tiga_memory_report r = report(run);
    for (int t = 0; t < TIGA_TIERS; t++)
        cr_assert_eq(r.live[t], 0, "%lld bytes of tier %d are left", (long long)r.live[t], t);
    tiga_execution_free(run);
}

static tiga_tensor *given(const float *data, int64_t n, int mode) {
    tiga_array a = tiga_array_borrow((void *)(uintptr_t)data, TIGA_F32, 1, &n);
    tiga_tensor *x;
    OK(tiga_tensor_from(h->ts, &a, mode, &x));
    return x;
}

static tiga_residency where(tiga_tensor *x) {
    tiga_residency r;
    OK(tiga_tensor_residency(x, &r, NULL));
    return r;
}

static int32_t storage_of(tiga_tensor *x) {
    tiga_residency r;
    int32_t storage;
    OK(tiga_tensor_residency(x, &r, &storage));
    return storage;
}

static void holds(tiga_tensor *x, const float *want, int64_t n) {
    float got[64];
    cr_assert_leq(n, 64);
    OK(tiga_tensor_copy_to(x, got, n * 4));
    cr_assert_eq(memcmp(got, want, (size_t)n * 4), 0);
}

static const float ramp[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* examples/hierarchical_memory.py */
Test(tensor_memory, a_spilled_loss_has_its_gradient) {
    tiga_execution *run = scope(1 << 20, 1 << 20, 0);
    tiga_tensor *x = given(ramp, 8, TIGA_COPY), *values, *loss, *back, *restored, *g;
    static const float want[8] = {0, 2, 4, 6, 8, 10, 12, 14};
    char path[128];
    OK(tiga_tensor_watch(x, &values));
    tiga_tensor *square = op2(h, "mul", values, values);
    loss = fold(h, "sum", square, TIGA_ALL_AXES, 0);
    cr_assert_eq(report(run).live[TIGA_TIER_HOST], 32, "an expression holds nothing");
    OK(tiga_tensor_spill(loss));
    cr_assert(!where(loss).resident && where(loss).backing == TIGA_BACKING_SPILL && where(loss).bytes == 4);
    OK(tiga_tensor_grad(loss, &values, 1, 0, &g));
    holds(g, want, 8);
    OK(tiga_tensor_to(values, "cpu", &back));
    cr_assert_eq(back, values);
    snprintf(path, sizeof path, "%s/activations.tiga", folder);
    OK(tiga_tensor_save(path, NULL, &values, 1, 0));
    FAILS(tiga_tensor_save(path, NULL, &values, 1, 0), TIGA_E_FILE, "exist");
    OK(tiga_tensor_load_file(h->ts, path, NULL, &restored));
    cr_assert(!where(restored).resident && where(restored).backing == TIGA_BACKING_SNAPSHOT);
    holds(restored, ramp, 8);
    cr_assert(where(restored).resident);
    holds(loss, &(float){140}, 1);
    FREE(x, values, square, loss, back, restored, g);
    end_scope(run);
}

/* examples/lru_eviction.py */
Test(tensor_memory, idle_tensors_are_evicted) {
    tiga_execution *run = scope(128, 1024, 1);
    tiga_tensor *given_x = given((float[]){2, 3}, 2, TIGA_COPY), *x, *idle[20], *square, *loss, *g;
    OK(tiga_tensor_watch(given_x, &x));
    for (int i = 0; i < 20; i++)
        idle[i] = given((float[]){10, 20}, 2, TIGA_COPY);
    cr_assert(!where(x).resident);
    square = op2(h, "mul", x, x);
    holds(square, (float[]){4, 9}, 2);
    loss = fold(h, "sum", square, TIGA_ALL_AXES, 0);
    OK(tiga_tensor_grad(loss, &x, 1, 0, &g));
    holds(g, (float[]){4, 6}, 2);
    tiga_memory_report r = report(run);
    cr_assert(r.evictions > 0 && r.restores > 0 && r.peak[TIGA_TIER_HOST] <= 128);
    for (int i = 0; i < 20; i++)
        holds(idle[i], (float[]){10, 20}, 2);
    for (int i = 0; i < 20; i++)
        tiga_tensor_free(idle[i]);
    FREE(given_x, x, square, loss, g);
    end_scope(run);
}

Test(tensor_memory, views_are_charged_once) {
    tiga_execution *run = scope(-1, -1, 0);
    tiga_tensor *x = given(ramp, 16, TIGA_COPY), *v, *t, *m;
    OK(tiga_tensor_slice(x, 0, 4, 8, 1, &v));
    OK(tiga_tensor_reshape(x, SHAPE(4, 4), &m));
    OK(tiga_tensor_permute(m, NULL, &t));
    cr_assert_eq(report(run).live[TIGA_TIER_HOST], 64);
    tiga_tensor_free(x);
    tiga_tensor_free(m);
    cr_assert_eq(report(run).live[TIGA_TIER_HOST], 64);
    OK(tiga_tensor_spill(v)); /* the buffer, and with it all views */
    cr_assert(!where(t).resident && !where(v).resident && where(v).bytes == 64);
    cr_assert_eq(report(run).live[TIGA_TIER_HOST], 0);
    holds(v, ramp + 4, 8);
    cr_assert(where(t).resident);
    tiga_tensor_free(v);
    OK(tiga_execution_end(h->ctx)); /* stays valid, and keeps its account */
    cr_assert_eq(report(run).live[TIGA_TIER_HOST], 64);
    OK(tiga_tensor_spill(t));
    cr_assert_eq(report(run).live[TIGA_TIER_DISK], 64);
    tiga_tensor_free(t);
    cr_assert(report(run).live[TIGA_TIER_DISK] == 0 && report(run).live[TIGA_TIER_HOST] == 0);
    tiga_execution_free(run);
}

/* Budgets are checked before: nothing is lost, and the expression can be realised when there is room. */
Test(tensor_memory, over_budget_changes_nothing) {
    int64_t n = 1000, bytes = 4 * n;
    tiga_execution *run = scope(3 * bytes, 0, 0);
    tiga_tensor *x, *y, *more;
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 1, &x));
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 2, &y));
    tiga_tensor *sum = op2(h, "add", x, y), *c;
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 3, &more));
    FAILS(tiga_tensor_realize(&sum, 1), TIGA_E_BUDGET, "12000");
    cr_assert_eq(how_of(sum), TIGA_TENSOR_PENDING);
    FAILS(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 4, &c), TIGA_E_BUDGET, "4000");
    cr_assert_eq(c, NULL);
    FAILS(tiga_tensor_spill(x), TIGA_E_BUDGET, "disk");
    cr_assert(where(x).resident);
    cr_assert_eq(report(run).live[TIGA_TIER_HOST], 3 * bytes);
    tiga_tensor_free(more);
    OK(tiga_tensor_realize(&sum, 1));
    cr_assert_eq(report(run).peak[TIGA_TIER_HOST], 3 * bytes);
    FREE(x, y, sum);
    end_scope(run);
}

/* y @ (x @ y) + x: the inner product is a buffer of the program, whose life ends with the run; beside it there is scratch memory
 * of each thread. */
Test(tensor_memory, peaks_are_true_to_the_byte) {
    int64_t n = 32, bytes = n * n * 4;
    tiga_tensor *x, *y, *product, *both, *twice;
    tiga_execution *run = scope(-1, -1, 0);
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 2, (int64_t[]){n, n}, 1, &x));
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 2, (int64_t[]){n, n}, 2, &y));
    OK(tiga_tensor_matmul(x, y, &product));
    OK(tiga_tensor_matmul(y, product, &both));
    twice = op2(h, "add", both, x);
    OK(tiga_tensor_realize(&twice, 1));
    tiga_memory_report r = report(run);
    cr_assert_eq(r.live[TIGA_TIER_HOST], 3 * bytes);
    cr_assert_geq(r.peak[TIGA_TIER_HOST], 4 * bytes); /* every row of it is needed for each of the outer */
    FREE(product, both, twice);
    OK(tiga_execution_end(h->ctx));
    tiga_execution *tight = scope(2 * bytes - 1, 0, 0); /* x and y are of the other account */
    OK(tiga_tensor_matmul(x, y, &product));
    OK(tiga_tensor_matmul(y, product, &both));
    twice = op2(h, "add", both, x);
    FAILS(tiga_tensor_realize(&twice, 1), TIGA_E_BUDGET, "budget");
    cr_assert_eq(report(tight).live[TIGA_TIER_HOST], 0);
    OK(tiga_execution_end(h->ctx));
    tiga_execution *just = scope(r.peak[TIGA_TIER_HOST] - 2 * bytes, 0, 0);
    OK(tiga_tensor_realize(&twice, 1));
    cr_assert_eq(report(just).peak[TIGA_TIER_HOST], r.peak[TIGA_TIER_HOST] - 2 * bytes);
    FREE(x, y, product, both, twice);
    end_scope(just);
    tiga_execution_free(tight);
    tiga_execution_free(run);
}

Test(tensor_memory, what_is_looked_at_stays) {
    tiga_execution *run = scope(128, -1, 1);
    tiga_tensor *x = given(ramp, 16, TIGA_COPY), *y, *z;
    const tiga_array *a, *b;
    OK(tiga_tensor_pin(x, &a));
    OK(tiga_tensor_pin(x, &b));
    cr_assert_eq(a->data, b->data);
    y = given(ramp, 16, TIGA_COPY); /* 128 bytes */
    z = given(ramp, 16, TIGA_COPY); /* y leaves */
    cr_assert(where(x).resident && !where(y).resident && where(z).resident);
    tiga_tensor_unpin(x);
    tiga_tensor *sum = op2(h, "add", y, z);
    FAILS(tiga_tensor_realize(&sum, 1), TIGA_E_BUDGET, "128");
    tiga_tensor_free(sum);
    OK(tiga_tensor_spill(x)); /* pinned: later */
    cr_assert(where(x).resident && !memcmp(a->data, ramp, 64));
    tiga_tensor_unpin(x);
    cr_assert(!where(x).resident);
    tiga_tensor_unpin(x); /* once too often is nothing */
    OK(tiga_tensor_data(x, &a));
    tiga_tensor_free(y);
    y = given(ramp, 16, TIGA_COPY);
    cr_assert(where(x).resident && !memcmp(a->data, ramp, 64));
    OK(tiga_tensor_spill(x)); /* ends what tiga_tensor_data began */
    cr_assert(!where(x).resident);
    FREE(x, y, z);
    OK(tiga_execution_end(h->ctx));
    tiga_execution_free(run);
}

Test(tensor_memory, of_callers_and_numbers) {
    tiga_execution *run = scope(0, 0, 0);
    tiga_tensor *x = given(ramp, 16, TIGA_BORROW), *two = num(h, 2), *full, *wait = op2(h, "mul", x, x);
    OK(tiga_tensor_full(h->ts, TIGA_F16, SHAPE(3, 1000000), 1.5, &full));
    cr_assert(storage_of(x) == TIGA_STORAGE_GIVEN && where(x).resident && where(x).bytes == 64);
    cr_assert(storage_of(two) == TIGA_STORAGE_NONE && storage_of(full) == TIGA_STORAGE_NONE && where(full).resident);
    cr_assert(storage_of(wait) == TIGA_STORAGE_NONE && !where(wait).resident && where(wait).bytes == 0);
    FAILS(tiga_tensor_spill(x), TIGA_E_UNSUPPORTED, "caller");
    OK(tiga_tensor_spill(two));
    OK(tiga_tensor_spill(full));
    FAILS(tiga_tensor_spill(wait), TIGA_E_BUDGET, "64");
    FAILS(tiga_tensor_to(x, "cuda:0", &(tiga_tensor *){NULL}), TIGA_E_UNSUPPORTED, "cuda:0");
    cr_assert_eq(report(run).peak[TIGA_TIER_HOST], 0);
    FREE(x, two, full, wait);
    end_scope(run);
}

Test(tensor_memory, results_of_kernels) {
    static const char text[] = "kernel f[F](src x: f32[F]) -> (y: f32[F], n: i64) {\n"
                               "    return (y = reduce sum(src.x), n = reduce count())\n}\n";
    tiga_module *m;
    tiga_graph *g;
    OK(tiga_jit_source(h->ctx, text, sizeof text - 1, NULL, &m, NULL));
    OK(tiga_graph_uniform(h->ctx, 100, 4, 1, &g));
    tiga_execution *run = scope(100 * 3 * 4 * 2 + 799, -1, 1); /* x and y, and not quite n */
    tiga_tensor *x, *other;
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 2, (int64_t[]){100, 3}, 1, &x));
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 2, (int64_t[]){100, 3}, 1, &other));
    tiga_tensor_binding in = {"x", x}, out[2] = {{"n", NULL}, {"y", NULL}};
    FAILS(tiga_tensor_call(h->ts, m, "f", &g, 1, &in, 1, out, 2), TIGA_E_BUDGET, "1200");
    cr_assert(!out[0].tensor && !out[1].tensor && where(x).resident && where(x).pins == 0);
    OK(tiga_execution_end(h->ctx));
    tiga_execution *more = scope(2000, -1, 0);
    OK(tiga_tensor_spill(x));
    OK(tiga_tensor_call(h->ts, m, "f", &g, 1, &in, 1, out, 2));
    cr_assert_eq(report(more).live[TIGA_TIER_HOST], 2000); /* where x is not charged */
    cr_assert_eq(report(more).peak[TIGA_TIER_HOST], 2000);
    OK(tiga_tensor_spill(out[1].tensor));
    cr_assert_eq(report(more).live[TIGA_TIER_HOST], 800);
    FREE(x, other, out[0].tensor, out[1].tensor);
    end_scope(more);
    cr_assert(report(run).live[TIGA_TIER_HOST] == 0 && report(run).live[TIGA_TIER_DISK] == 0);
    tiga_execution_free(run);
    tiga_graph_free(g);
    tiga_module_free(m);
}

/* Several by name, of every kind of storage; strided views are gathered. */
Test(tensor_memory, snapshots) {
    static const char *const names[] = {"a", "turned", "full", "number"};
    char path[128];
    tiga_tensor *xs[4], *back[4], *m, *bad;
    int64_t shape[2] = {3, 2};
    snprintf(path, sizeof path, "%s/some.tiga", folder);
    tiga_execution *run = scope(-1, -1, 0);
    xs[0] = given(ramp, 6, TIGA_BORROW);
    OK(tiga_tensor_reshape(xs[0], SHAPE(2, 3), &m));
    OK(tiga_tensor_permute(m, NULL, &xs[1]));
    OK(tiga_tensor_full(h->ts, TIGA_BF16, 2, shape, -0.5, &xs[2]));
    xs[3] = op2(h, "mul", xs[0], xs[0]);
    OK(tiga_tensor_save(path, names, xs, 4, 0));
    FAILS(tiga_tensor_load_file(h->ts, path, NULL, &bad), TIGA_E_ARGUMENT, "4 tensors");
    FAILS(tiga_tensor_load_file(h->ts, path, "b", &bad), TIGA_E_NAME, "'b'");
    int64_t before = report(run).live[TIGA_TIER_HOST];
    for (int i = 0; i < 4; i++)
        OK(tiga_tensor_load_file(h->ts, path, names[i], &back[i]));
    cr_assert_eq(report(run).live[TIGA_TIER_HOST], before, "nothing is read");
    holds(back[0], ramp, 6);
    cr_assert(tiga_tensor_rank(back[1]) == 2 && tiga_tensor_shape(back[1])[0] == 3);
    holds(back[1], (float[]){0, 3, 1, 4, 2, 5}, 6);
    holds(back[3], (float[]){0, 1, 4, 9, 16, 25}, 6);
    tiga_tensor *wide;
    OK(tiga_tensor_cast(back[2], TIGA_F32, &wide));
    holds(wide, (float[]){-0.5f, -0.5f, -0.5f, -0.5f, -0.5f, -0.5f}, 6);
    /* out again costs nothing: the file has it */
    OK(tiga_tensor_spill(back[0]));
    cr_assert(where(back[0]).backing == TIGA_BACKING_SNAPSHOT && report(run).live[TIGA_TIER_DISK] == 0);
    for (int i = 0; i < 4; i++)
        FREE(xs[i], back[i]);
    FREE(m, wide);
    end_scope(run);
}

Test(tensor_memory, the_named_store) {
    tiga_tensor *x, *v, *got;
    setenv("TIGA_STORE_DIR", folder, 1);
    tiga_execution *run = scope(-1, 0, 0); /* nothing of it is a spill */
    x = given(ramp, 16, TIGA_COPY);
    OK(tiga_tensor_slice(x, 0, 15, 8, -2, &v));
    OK(tiga_tensor_disk(v, "odd"));
    cr_assert(!where(v).resident && where(v).backing == TIGA_BACKING_SNAPSHOT && where(v).bytes == 32);
    cr_assert(where(x).resident);
    holds(v, (float[]){15, 13, 11, 9, 7, 5, 3, 1}, 8);
    FAILS(tiga_tensor_disk(x, "odd"), TIGA_E_ARGUMENT, "odd");
    FAILS(tiga_tensor_disk(x, "a/b"), TIGA_E_ARGUMENT, "a/b");
    FAILS(tiga_tensor_disk(x, NULL), TIGA_E_BUDGET, "disk");
    cr_assert(where(x).resident);
    FAILS(tiga_tensor_from_disk(h->ts, "none", &got), TIGA_E_NAME, "none");
    OK(tiga_tensor_from_disk(h->ts, "odd", &got));
    cr_assert(!where(got).resident);
    holds(got, (float[]){15, 13, 11, 9, 7, 5, 3, 1}, 8);
    FREE(x, v, got);
    end_scope(run);
}

/* Kept memory counts, so the budget is one of all that is there. */
Test(tensor_memory, kept_memory_is_within_the_budget) {
    int64_t n = 1 << 16, bytes = 4 * n;
    tiga_tensor *x, *y;
    tiga_execution *run = scope(3 * bytes, -1, 0);
    for (int i = 0; i < 5; i++) {
        OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 1, &x));
        OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 2, &y));
        cr_assert_eq(report(run).kept, 0);
        FREE(x, y);
        cr_assert_eq(report(run).kept, 2 * bytes);
    }
    int64_t other = n + 1000;
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &other, 3, &x));
    cr_assert_leq(report(run).kept + report(run).live[TIGA_TIER_HOST], 3 * bytes);
    OK(tiga_tensor_spill(x)); /* memory that is given up is given up */
    cr_assert_leq(report(run).kept, 2 * bytes);
    tiga_tensor_free(x);
    end_scope(run);
    cr_assert_eq(tiga_tensors_get_counters(h->ts).kept_bytes, 0);
}

Test(tensor_memory, large_arguments_are_read_side_by_side) {
    enum { N = 3 };
    int64_t n = (9 << 20) / 4, fits = (N + 1) * (10 << 20);
    tiga_tensor *xs[N], *sum, *y[2];
    float value[2];
    for (int tight = 0; tight < 2; tight++) {
        tiga_execution *run = scope(tight ? N * (9 << 20) + (1 << 20) : fits + N * (9 << 20), -1, 0);
        for (int i = 0; i < N; i++) {
            OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, (uint64_t)i, &xs[i]));
            OK(tiga_tensor_spill(xs[i]));
        }
        y[0] = op2(h, "add", xs[0], xs[1]);
        y[1] = op2(h, "add", y[0], xs[2]);
        sum = fold(h, "sum", y[1], TIGA_ALL_AXES, 0);
        OK(tiga_tensor_copy_to(sum, &value[tight], 4));
        tiga_memory_report r = report(run);
        cr_assert(r.restores == N && r.live[TIGA_TIER_DISK] == 0 && r.live[TIGA_TIER_HOST] == N * (9 << 20) + 4);
        FREE(xs[0], xs[1], xs[2], y[0], y[1], sum);
        end_scope(run);
    }
    cr_assert_eq(value[0], value[1]);
}

/* Code counts where it is asked for; what a cache alone holds goes first, then what the tensors know. */
Test(tensor_memory, code_in_a_budget) {
    tiga_execution_options o = tiga_execution_defaults();
    tiga_execution *run;
    tiga_tensor *x, *y, *big;
    int64_t n = 1000, most = 1 << 20;
    o.budget[TIGA_TIER_HOST] = most;
    o.count_code = 1;
    OK(tiga_execution_begin(h->ctx, &o, &run));
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 1, &x));
    y = fold(h, "sum", x, TIGA_ALL_AXES, 0);
    OK(tiga_tensor_realize(&y, 1));
    tiga_memory_report r = report(run);
    cr_assert(r.code > 1000 && r.live[TIGA_TIER_HOST] == r.code + 4004);
    cr_assert_eq(tiga_cache_get_counters(h->cache).memory_entries, 1);
    int64_t wide = (most - r.code / 2 - 4004) / 4; /* not beside the code */
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &wide, 2, &big));
    cr_assert_eq(tiga_error_status(h->ctx), TIGA_OK);
    cr_assert(report(run).code == 0 && tiga_cache_get_counters(h->cache).memory_entries == 0);
    tiga_tensor *z = fold(h, "max", x, TIGA_ALL_AXES, 0);
    FAILS(tiga_tensor_realize(&z, 1), TIGA_E_BUDGET, "compiled code");
    cr_assert(how_of(z) == TIGA_TENSOR_PENDING && report(run).code == 0);
    tiga_tensor_free(big);
    OK(tiga_tensor_realize(&z, 1));
    cr_assert_gt(report(run).code, 1000);
    FREE(x, y, z);
    OK(tiga_execution_end(h->ctx)); /* code stays charged as long as it is known */
    cr_assert(report(run).code > 1000 && report(run).live[TIGA_TIER_HOST] == report(run).code);
    OK(tiga_cache_clear(h->ctx, h->cache, NULL));
    tiga_tensors_free(h->ts);
    OK(tiga_tensors_new(h->ctx, NULL, &h->ts));
    cr_assert_eq(report(run).live[TIGA_TIER_HOST], 0);
    tiga_execution_free(run);
}

/* Every allocation, and every call of files, fails in turn: no value is lost, no account is off. */
static tiga_status everything(tiga_tensor *x, tiga_tensor *y, float *v) {
    tiga_tensor *v1 = NULL, *p = NULL, *s = NULL, *back = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s/f.tiga", folder);
    tiga_status status = tiga_tensor_spill(x);
    if (status == TIGA_OK)
        status = tiga_tensor_slice(y, 0, 0, 300, 3, &v1);
    if (status == TIGA_OK)
        status = tiga_tensor_op("mul", (tiga_tensor *[]){x, v1}, 2, &p);
    if (status == TIGA_OK)
        status = tiga_tensor_spill(p);
    if (status == TIGA_OK)
        status = tiga_tensor_save(path, NULL, &p, 1, 1);
    if (status == TIGA_OK)
        status = tiga_tensor_load_file(h->ts, path, NULL, &back);
    if (status == TIGA_OK)
        status = tiga_tensor_disk(p, "faulty");
    if (status == TIGA_OK)
        status = tiga_tensor_op("add", (tiga_tensor *[]){p, back}, 2, &s);
    if (status == TIGA_OK)
        status = tiga_tensor_copy_to(s, v, 1200);
    FREE(v1, p, s, back);
    return status;
}

static void fails_in_turn(base_inject_kind kind, int error) {
    int64_t n = 300, m = 900;
    tiga_tensor *x, *y;
    float want[300], v[300], x_was[300], y_was[900];
    setenv("TIGA_STORE_DIR", folder, 1);
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 1, &x));
    OK(tiga_tensor_copy_to(x, x_was, sizeof x_was));
    tiga_tensor_free(x);
    tiga_execution *run = scope(8400, -1, 1); /* what is needed at once, and not all of it */
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, 1, &x));
    OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &m, 2, &y));
    OK(tiga_tensor_copy_to(y, y_was, sizeof y_was));
    OK(everything(x, y, want));
    OK(tiga_store_remove(h->ctx, "faulty"));
    int failures = 0;
    base_inject_error(error);
    for (uint64_t nth = 1;; nth++) {
        base_inject_at(kind, nth);
        tiga_status status = everything(x, y, v);
        bool reached = base_inject_count(kind) >= nth;
        base_inject_at(kind, 0);
        cr_assert(status != TIGA_OK || !memcmp(v, want, sizeof v), "call %d", (int)nth);
        cr_assert(status == TIGA_OK || tiga_error_status(h->ctx) == status, "call %d: %d, %d", (int)nth, status,
                  tiga_error_status(h->ctx));
        tiga_error_clear(h->ctx);
        (void)tiga_store_remove(h->ctx, "faulty");
        tiga_error_clear(h->ctx);
        tiga_memory_report r = report(run);
        cr_assert_eq(r.live[TIGA_TIER_HOST] + r.live[TIGA_TIER_DISK], 4800, "call %d: %lld + %lld", (int)nth,
                     (long long)r.live[TIGA_TIER_HOST], (long long)r.live[TIGA_TIER_DISK]);
        OK(tiga_tensor_copy_to(x, v, sizeof x_was));
        cr_assert_eq(memcmp(v, x_was, sizeof x_was), 0);
        float all[900];
        OK(tiga_tensor_copy_to(y, all, sizeof all));
        cr_assert_eq(memcmp(all, y_was, sizeof all), 0);
        failures += status != TIGA_OK;
        if (!reached)
            break;
    }
    cr_assert_gt(failures, 15);
    FREE(x, y);
    end_scope(run);
}

Test(tensor_memory, no_memory) { fails_in_turn(BASE_INJECT_ALLOC, EIO); }
Test(tensor_memory, broken_files) { fails_in_turn(BASE_INJECT_FILE, EIO); }
Test(tensor_memory, full_disks) { fails_in_turn(BASE_INJECT_FILE, ENOSPC); }

/* ---- threads: each evicts what the others have idle ---- */
typedef struct worker {
    tiga_context *ctx;
    bool ok;
} worker;

/* Buffers of the context whose tensors the main thread works with. */
static void *churn(void *arg) {
    worker *w = arg;
    w->ok = true;
    for (int i = 0; i < 200 && w->ok; i++) {
        tiga_buffer *b;
        w->ok = tiga_buffer_new(w->ctx, NULL, TIGA_TIER_HOST, 4000, &b) == TIGA_OK;
        tiga_buffer_free(w->ok ? b : NULL);
    }
    return NULL;
}

Test(tensor_memory, others_evict) {
    enum { N = 6 };
    int64_t n = 1000;
    tiga_tensor *xs[N], *y;
    float sum, want[N];
    tiga_execution *run = scope(20000, -1, 1);
    pthread_t thread;
    worker w = {.ctx = h->ctx};
    for (int i = 0; i < N; i++) {
        OK(tiga_tensor_rand(h->ts, TIGA_F32, 1, &n, (uint64_t)i, &xs[i]));
        y = fold(h, "sum", xs[i], TIGA_ALL_AXES, 0);
        OK(tiga_tensor_copy_to(y, &want[i], 4));
        tiga_tensor_free(y);
    }
    pthread_create(&thread, NULL, churn, &w);
    for (int i = 0; i < 300; i++) {
        if (i % 7 == 0)
            OK(tiga_tensor_prefetch(xs[(i + 1) % N]));
        if (i % 11 == 0)
            OK(tiga_tensor_spill(xs[(i + 2) % N]));
        y = fold(h, "sum", xs[i % N], TIGA_ALL_AXES, 0);
        OK(tiga_tensor_copy_to(y, &sum, 4));
        cr_assert_eq(sum, want[i % N]);
        tiga_tensor_free(y);
    }
    pthread_join(thread, NULL);
    cr_assert(w.ok, "%s", tiga_error_text(h->ctx));
    cr_assert_leq(report(run).peak[TIGA_TIER_HOST], 20000);
    for (int i = 0; i < N; i++)
        tiga_tensor_free(xs[i]);
    end_scope(run);
}
