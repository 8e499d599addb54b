/* Threads that share tensors, a context, a scope, a cache: every value is right, and nothing is left.  tests/threads runs
 * it under the thread sanitizer as well. */
#include "tensor_support.h"

#include "tiga/jit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, SHARED = 6, N = 2048, TURNS = 24 };

static home *const h = &(home){0};
static char folder[64];

static void begin(void) {
    *h = home_new(4 * N, 1);
    folder_new(folder);
}

static void done(void) {
    cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0);
    home_free(h);
    folder_free(folder);
}
TestSuite(tensor_threads, .init = begin, .fini = done, .timeout = 240);

typedef struct worker {
    home h;
    int number;
    tiga_tensor **shared;
    tiga_execution *run;
    const char *snapshot;
    tiga_module *m;
    tiga_graph *g;
} worker;

static void all(void *(*work)(void *), worker *w) {
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i].number = i;
        cr_assert_eq(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

static tiga_execution_options small_scope(void) {
    tiga_execution_options o = tiga_execution_defaults();
    o.budget[TIGA_TIER_HOST] = (SHARED / 2 + 4 * THREADS) * N * (int64_t)sizeof(float);
    o.spill_dir = folder;
    o.eviction = TIGA_EVICT_LRU;
    return o;
}

static void scope_is_empty(tiga_execution *run) {
    tiga_memory_report r = {.struct_bytes = sizeof r};
    cr_assert_eq(tiga_execution_report(run, &r), TIGA_OK);
    for (int t = 0; t < TIGA_TIERS; t++)
        cr_assert_eq(r.live[t], 0, "%lld bytes of tier %d are left", (long long)r.live[t], t);
    tiga_execution_free(run);
}

/* Element i of tensor k is (i % 97) + k. */
static tiga_tensor *numbered(home *h, int k) {
    float *data = malloc(N * sizeof *data);
    for (int i = 0; i < N; i++)
        data[i] = (float)(i % 97 + k);
    tiga_tensor *x;
    tiga_array a = tiga_array_borrow(data, TIGA_F32, 1, (int64_t[]){N});
    OK(tiga_tensor_from(h->ts, &a, TIGA_COPY, &x));
    free(data);
    return x;
}

static void holds(home *h, tiga_tensor *x, int factor, int k, int l) {
    static __thread float got[N];
    OK(tiga_tensor_copy_to(x, got, sizeof got));
    for (int i = 0; i < N; i++)
        cr_assert_eq(got[i], (float)(factor * ((i % 97 + k) * (i % 97 + l))));
}

/* What every operation is asked for once: arithmetic, folds, views, gradients, movement, files. */
static void turn(home *h, const worker *w, int i, tiga_tensor *a, int k, tiga_tensor *b, int l) {
    tiga_tensor *p = op2(h, "mul", a, b), *two = num(h, 2), *q = op2(h, "mul", two, p);
    holds(h, q, 2, k, l);
    tiga_residency where;
    OK(tiga_tensor_residency(a, &where, NULL));
    (void)how_of(a);
    OK(i % 3 ? tiga_tensor_spill(a) : tiga_tensor_prefetch(b));
    tiga_tensor *turned, *part, *joined, *watched, *loss, *slope;
    OK(tiga_tensor_reshape(a, 2, (int64_t[]){2, N / 2}, &turned));
    OK(tiga_tensor_slice(turned, 0, 1, 1, 1, &part));
    OK(tiga_tensor_concat((tiga_tensor *[]){part, part}, 2, 0, &joined));
    OK(tiga_tensor_realize(&joined, 1));
    OK(tiga_tensor_watch(b, &watched));
    tiga_tensor *square = op2(h, "mul", watched, watched);
    loss = fold(h, "sum", square, TIGA_ALL_AXES, 0);
    OK(tiga_tensor_grad(loss, &watched, 1, 0, &slope));
    tiga_tensor *product = op2(h, "mul", slope, b);
    holds(h, product, 2, l, l);
    char path[128];
    snprintf(path, sizeof path, "%s/%d", folder, w->number);
    tiga_tensor *loaded;
    OK(tiga_tensor_save(path, NULL, &q, 1, 1));
    OK(tiga_tensor_load_file(h->ts, path, NULL, &loaded));
    holds(h, loaded, 2, k, l);
    FREE(p, two, q, turned, part, joined, watched, square, loss, slope, product, loaded);
}

/* ---- one context ---- */
static void *on_one(void *arg) {
    worker *w = arg;
    for (int i = 0; i < TURNS; i++) {
        int k = (i + w->number) % SHARED, l = (i * 5 + 3 * w->number) % SHARED;
        tiga_tensor *a = tiga_tensor_retain(w->shared[k]), *b = tiga_tensor_retain(w->shared[l]);
        turn(&w->h, w, i, a, k, b, l);
        FREE(a, b);
    }
    return NULL;
}

Test(tensor_threads, share_a_context) {
    worker w[THREADS];
    tiga_tensor *shared[SHARED];
    tiga_execution_options o = small_scope();
    tiga_execution *run;
    OK(tiga_execution_begin(h->ctx, &o, &run));
    for (int k = 0; k < SHARED; k++)
        shared[k] = numbered(h, k);
    for (int i = 0; i < THREADS; i++)
        w[i] = (worker){.h = *h, .shared = shared};
    all(on_one, w);
    for (int k = 0; k < SHARED; k++) {
        tiga_tensor *square = op2(h, "mul", shared[k], shared[k]);
        holds(h, square, 1, k, k);
        FREE(square, shared[k]);
    }
    OK(tiga_execution_end(h->ctx));
    scope_is_empty(run);
}

/* ---- several contexts: one cache, one scope, one snapshot ---- */
static void *on_own(void *arg) {
    worker *w = arg;
    home own = {.cache = w->h.cache}, *h = &own;
    tiga_tensors_options o = tiga_tensors_defaults();
    o.interpret_elements = w->number % 2 ? 4 * N : 0;
    o.cache = own.cache;
    cr_assert_eq(tiga_context_new(NULL, &h->ctx), TIGA_OK);
    OK(tiga_execution_enter(h->ctx, w->run));
    OK(tiga_tensors_new(h->ctx, &o, &h->ts));
    tiga_tensor *x[SHARED];
    for (int k = 0; k < SHARED; k++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", k);
        OK(tiga_tensor_load_file(h->ts, w->snapshot, name, &x[k]));
    }
    for (int i = 0; i < TURNS; i++) {
        int k = (i + w->number) % SHARED, l = (i * 5 + 3 * w->number) % SHARED;
        turn(h, w, i, x[k], k, x[l], l);
    }
    for (int k = 0; k < SHARED; k++)
        tiga_tensor_free(x[k]);
    cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0);
    OK(tiga_execution_leave(h->ctx));
    tiga_tensors_free(h->ts);
    tiga_context_free(h->ctx);
    return NULL;
}

Test(tensor_threads, share_a_scope) {
    static const char *const names[SHARED] = {"x0", "x1", "x2", "x3", "x4", "x5"};
    worker w[THREADS];
    tiga_tensor *x[SHARED];
    char path[128];
    snprintf(path, sizeof path, "%s/shared", folder);
    for (int k = 0; k < SHARED; k++)
        x[k] = numbered(h, k);
    OK(tiga_tensor_save(path, names, x, SHARED, 0));
    for (int k = 0; k < SHARED; k++)
        tiga_tensor_free(x[k]);
    tiga_execution_options o = small_scope();
    o.budget[TIGA_TIER_HOST] *= 2;
    tiga_execution *run;
    OK(tiga_execution_begin(h->ctx, &o, &run));
    for (int i = 0; i < THREADS; i++)
        w[i] = (worker){.h = *h, .run = run, .snapshot = path};
    all(on_own, w);
    OK(tiga_execution_end(h->ctx));
    scope_is_empty(run);
}

/* ---- calls, prepared calls, graphs and errors of one context ---- */
enum { NODES = 3000 };

static void *calls(void *arg) {
    worker *w = arg;
    home *h = &w->h;
    static __thread float x[NODES], y[NODES], z[NODES];
    tiga_array in = tiga_array_borrow(x, TIGA_F32, 1, (int64_t[]){NODES}), out = in, again = in;
    tiga_binding bound = {"x", &in}, result = {"out", &out}, kept = {"out", &again};
    tiga_prepared *p;
    out.data = y;
    again.data = z;
    OK(tiga_prepare(h->ctx, w->m, "twice", &w->g, 1, &bound, 1, &kept, 1, &p));
    for (int i = 0; i < TURNS; i++) {
        for (int k = 0; k < NODES; k++)
            x[k] = (float)(w->number + i);
        OK(tiga_call(h->ctx, w->m, "twice", w->g, &bound, 1, &result, 1));
        OK(tiga_prepared_launch(p, NULL));
        for (int k = 0; k < NODES; k++)
            cr_assert(y[k] == 8 * x[k] && z[k] == 8 * x[k]); /* 4 sources each */
        tiga_context_lock(h->ctx); /* its own words, whatever the others do */
        char wanted[32];
        snprintf(wanted, sizeof wanted, "'absent%d'", w->number);
        FAILS(tiga_call(h->ctx, w->m, wanted, w->g, &bound, 1, &result, 1), TIGA_E_NAME, wanted);
        tiga_context_unlock(h->ctx);
        tiga_graph *g;
        OK(tiga_graph_uniform(h->ctx, NODES, 4, (uint64_t)i, &g));
        const tiga_csr *turned;
        OK(tiga_graph_transposed(h->ctx, w->g, &turned, NULL));
        cr_assert_eq(turned->n_edges, 4 * NODES);
        tiga_graph_free(g);
    }
    tiga_prepared_free(p);
    return NULL;
}

Test(tensor_threads, call_in_turn) {
    static const char text[] = "kernel twice(src x: f32) -> f32 { return reduce sum(2 * src.x) }\n";
    worker w[THREADS];
    tiga_module *m;
    tiga_graph *g;
    OK(tiga_jit_source(h->ctx, text, sizeof text - 1, NULL, &m, NULL));
    OK(tiga_graph_uniform(h->ctx, NODES, 4, 1, &g));
    for (int i = 0; i < THREADS; i++)
        w[i] = (worker){.h = *h, .m = m, .g = g};
    all(calls, w);
    tiga_graph_free(g);
    tiga_module_free(m);
}

/* ---- a context that asks its host, and is interrupted from outside ---- */
static int not_asked_to_stop(void *user) {
    (void)user;
    return 0;
}

typedef struct stopper {
    tiga_context *ctx;
    atomic_bool over;
} stopper;

static void *interrupt_it(void *arg) {
    stopper *s = arg;
    for (int i = 0; i < 200 && !atomic_load(&s->over); i++) { /* not for ever: what is interrupted is begun anew */
        tiga_interrupt(s->ctx);
        usleep(1000);
    }
    return NULL;
}

/* Whoever has the turn may be stopped; everybody else goes on, and what was stopped can be asked for again. */
static void *stopped_or_right(void *arg) {
    worker *w = arg;
    home *h = &w->h;
    tiga_tensor *x = numbered(h, w->number), *y = op2(h, "mul", x, x);
    static __thread float got[N];
    for (int i = 0; i < TURNS; i++) {
        tiga_graph *g;
        tiga_status status = tiga_graph_uniform(h->ctx, NODES, 4, (uint64_t)i, &g);
        cr_assert(status == TIGA_OK || status == TIGA_E_INTERRUPTED);
        tiga_graph_free(g);
        while ((status = tiga_tensor_copy_to(y, got, sizeof got)) == TIGA_E_INTERRUPTED)
            tiga_error_clear(h->ctx);
        cr_assert_eq(status, TIGA_OK);
        for (int k = 0; k < N; k++)
            cr_assert_eq(got[k], (float)((k % 97 + w->number) * (k % 97 + w->number)));
        tiga_tensor_free(y);
        y = op2(h, "mul", x, x);
    }
    FREE(x, y);
    return NULL;
}

Test(tensor_threads, interrupted_in_turn) {
    tiga_context_options o = tiga_context_defaults();
    worker w[THREADS];
    home own = {0};
    stopper s = {.over = false};
    pthread_t stopping;
    o.poll = not_asked_to_stop;
    cr_assert_eq(tiga_context_new(&o, &own.ctx), TIGA_OK);
    cr_assert_eq(tiga_tensors_new(own.ctx, NULL, &own.ts), TIGA_OK);
    s.ctx = own.ctx;
    cr_assert_eq(pthread_create(&stopping, NULL, interrupt_it, &s), 0);
    for (int i = 0; i < THREADS; i++)
        w[i] = (worker){.h = own};
    all(stopped_or_right, w);
    atomic_store(&s.over, true);
    pthread_join(stopping, NULL);
    cr_assert_eq(tiga_tensors_get_counters(own.ts).live_bytes, 0);
    home_free(&own);
}
