/* Buffers: out to the disk and home again, pins, eviction, a model driven at random, and many threads. */
#include "memory_support.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/stat.h>

static tiga_buffer *make(tiga_context *ctx, const char *name, int64_t bytes, uint64_t seed) {
    tiga_buffer *b;
    OK(tiga_buffer_new_unset(ctx, name, TIGA_TIER_HOST, bytes, &b));
    OK(fill(ctx, b, seed));
    return b;
}

Test(buffers, spill_and_realize) {
    static const int64_t sizes[] = {
        1, 31, 4095, 4096, 4097, HR_PAGE - 1, HR_PAGE, HR_PAGE + 1, 5 * HR_PAGE + 777, 40 * HR_PAGE + 4096};
    scope_bench t;
    scope_begin(&t, -1, -1, TIGA_EVICT_ERROR);
    tiga_context *ctx = t.ctx;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tiga_buffer *b = make(ctx, "b", sizes[i], i + 1);
        tiga_residency r = residency(b);
        cr_assert(r.resident && r.backing == TIGA_BACKING_NONE && r.bytes == sizes[i] && r.version == 1);
        OK(tiga_buffer_spill(ctx, b));
        r = residency(b);
        cr_assert(!r.resident && r.backing == TIGA_BACKING_SPILL && r.version == 1 && r.tier == TIGA_TIER_HOST);
        cr_assert(report(t.run).live[0] == 0 && report(t.run).live[3] == sizes[i]);
        OK(tiga_buffer_spill(ctx, b)); /* again: nothing to do */
        OK(tiga_buffer_realize(ctx, b));
        r = residency(b);
        cr_assert(r.resident && r.backing == TIGA_BACKING_NONE && r.version == 1);
        cr_assert(report(t.run).live[0] == sizes[i] && report(t.run).live[3] == 0);
        expect(ctx, b, i + 1);
        OK(tiga_buffer_spill(ctx, b));
        expect(ctx, b, i + 1); /* reading brings it home */
        tiga_buffer_free(b);
    }
    cr_assert(report(t.run).spills == 20 && report(t.run).restores == 20 && report(t.run).evictions == 0);
    tiga_buffer *empty = make(ctx, "empty", 0, 1);
    OK(tiga_buffer_spill(ctx, empty));
    cr_assert(residency(empty).resident);
    tiga_buffer_free(empty);
    scope_end(&t);
}

Test(buffers, a_spilled_value_goes_with_its_last_owner) {
    scope_bench t;
    scope_begin(&t, -1, -1, TIGA_EVICT_ERROR);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b = make(ctx, "b", 100000, 1), *view = tiga_buffer_retain(b);
    OK(tiga_buffer_spill(ctx, b));
    tiga_buffer_free(b);
    cr_assert_eq(report(t.run).live[3], 100000);
    expect(ctx, view, 1);
    OK(tiga_buffer_spill(ctx, view));
    tiga_buffer_free(view);
    cr_assert_eq(report(t.run).live[3], 0);
    scope_end(&t);
}

Test(buffers, copies_are_other_values) {
    scope_bench t;
    scope_begin(&t, 100, -1, TIGA_EVICT_ERROR);
    tiga_context *ctx = t.ctx;
    tiga_buffer *a = make(ctx, "a", 50, 1), *b, *c;
    OK(tiga_buffer_copy(ctx, a, TIGA_TIER_HOST, &b));
    OK(fill(ctx, a, 2));
    expect(ctx, b, 1);
    cr_assert_str_eq(tiga_buffer_name(b), "a");
    FAILS(tiga_buffer_copy(ctx, a, TIGA_TIER_HOST, &c), TIGA_E_BUDGET);
    cr_assert(!c && report(t.run).live[0] == 100);
    tiga_buffer_free(a);
    tiga_buffer_free(b);
    scope_end(&t);
}

Test(buffers, pins_hold_and_never_wait_for_themselves) {
    scope_bench t;
    scope_begin(&t, -1, -1, TIGA_EVICT_ERROR);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b = make(ctx, "b", 100000, 1);
    tiga_pin p, q, r;
    OK(tiga_buffer_pin(ctx, b, TIGA_READ, &p));
    OK(tiga_buffer_pin(ctx, b, TIGA_READ, &q));
    cr_assert(p.data == q.data && (uintptr_t)p.data % 64 == 0 && residency(b).pins == 2);
    FAILS(tiga_buffer_pin(ctx, b, TIGA_WRITE, &r), TIGA_E_ARGUMENT);
    cr_assert(strstr(said, "wait for itself") && !r.buffer && !r.data);
    OK(tiga_buffer_spill(ctx, b)); /* it keeps its bytes while it is read */
    cr_assert(residency(b).resident && report(t.run).live[3] == 0);
    tiga_buffer_unpin(&p);
    cr_assert(residency(b).resident);
    tiga_buffer_unpin(&q);
    cr_assert(!residency(b).resident && report(t.run).live[0] == 0);
    tiga_buffer_unpin(&q); /* no pin: nothing */
    OK(tiga_buffer_pin(ctx, b, TIGA_WRITE, &p));
    FAILS(tiga_buffer_pin(ctx, b, TIGA_READ, &q), TIGA_E_ARGUMENT);
    FAILS(tiga_buffer_spill(ctx, b), TIGA_E_ARGUMENT);
    FAILS(tiga_buffer_realize(ctx, b), TIGA_E_ARGUMENT);
    tiga_buffer_unpin(&p);
    cr_assert_eq(residency(b).version, 2);
    FAILS(tiga_buffer_pin(ctx, b, 5, &p), TIGA_E_ARGUMENT);
    FAILS(tiga_buffer_pin(ctx, NULL, TIGA_READ, &p), TIGA_E_ARGUMENT);
    OK(tiga_buffer_pin(ctx, b, TIGA_READ, &p));
    tiga_buffer_free(b); /* the pin is an owner */
    cr_assert_eq(((unsigned char *)p.data)[5], pattern(1, 5));
    tiga_buffer_unpin(&p);
    scope_end(&t);
}

Test(buffers, lru_takes_whole_idle_buffers_oldest_first) {
    scope_bench t;
    scope_begin(&t, 300, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[5];
    for (int i = 0; i < 3; i++)
        b[i] = make(ctx, "b", 100, (uint64_t)i);
    expect(ctx, b[0], 0); /* 1 is the oldest now */
    b[3] = make(ctx, "b", 100, 3);
    cr_assert(residency(b[0]).resident && !residency(b[1]).resident && residency(b[2]).resident);
    tiga_pin p;
    OK(tiga_buffer_pin(ctx, b[2], TIGA_READ, &p)); /* in use: protected */
    b[4] = make(ctx, "b", 150, 4);
    cr_assert(!residency(b[0]).resident && residency(b[2]).resident && !residency(b[3]).resident);
    tiga_memory_report r = report(t.run);
    cr_assert(r.evictions == 3 && r.restores == 0 && r.live[0] == 250 && r.live[3] == 300 && r.peak[0] == 300);
    tiga_buffer *more;
    FAILS(tiga_buffer_new(ctx, "more", TIGA_TIER_HOST, 201, &more), TIGA_E_BUDGET);
    cr_assert_eq(report(t.run).evictions, 3, "nothing is evicted when that would not do");
    FAILS(tiga_buffer_new(ctx, "more", TIGA_TIER_HOST, 301, &more), TIGA_E_BUDGET);
    tiga_buffer_unpin(&p);
    for (int i = 0; i < 5; i++)
        expect(ctx, b[i], (uint64_t)i);
    cr_assert(report(t.run).restores >= 3);
    for (int i = 0; i < 5; i++)
        tiga_buffer_free(b[i]);
    scope_end(&t);
}

/* The contract's second program, on the host. */
Test(buffers, twenty_idle_values_and_a_tiny_budget) {
    scope_bench t;
    scope_begin(&t, 128, 1024, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *x = make(ctx, "x", 8, 99), *idle[20];
    for (int i = 0; i < 20; i++)
        idle[i] = make(ctx, "idle", 8, (uint64_t)i);
    cr_assert(!residency(x).resident);
    expect(ctx, x, 99);
    cr_assert(residency(x).resident);
    for (int i = 0; i < 20; i++) {
        expect(ctx, idle[i], (uint64_t)i);
        tiga_buffer_free(idle[i]);
    }
    tiga_buffer_free(x);
    scope_end(&t);
}

Test(buffers, a_full_disk_tier_is_an_error_and_the_value_stays) {
    scope_bench t;
    scope_begin(&t, 200, 150, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *a = make(ctx, "a", 100, 1), *b = make(ctx, "b", 100, 2), *c = make(ctx, "c", 100, 3), *d;
    FAILS(tiga_buffer_new(ctx, "d", TIGA_TIER_HOST, 100, &d), TIGA_E_BUDGET);
    cr_assert(strstr(said, "on disk"), "%s", said);
    FAILS(tiga_buffer_spill(ctx, b), TIGA_E_BUDGET);
    FAILS(tiga_buffer_realize(ctx, a), TIGA_E_BUDGET);
    tiga_buffer_free(c);
    expect(ctx, a, 1);
    expect(ctx, b, 2);
    tiga_buffer_free(a);
    tiga_buffer_free(b);
    scope_end(&t);
}

/* Bytes that the allocator gave for it and nobody is charged for. */
static int64_t beyond_charge(const tiga_buffer *b) {
    return b->here.data ? (int64_t)malloc_usable_size(((void **)b->here.data)[-1]) - b->bytes : 0;
}

/* The memory of what is evicted goes to what it makes room for: zeroed if it is new, and nothing is kept beyond that. */
Test(buffers, memory_is_handed_over_clean) {
    scope_bench t;
    scope_begin(&t, 5000000, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    static const int64_t sizes[] = {2000000, 1900000, 1100000, 4000000, 2000000, 1990000};
    tiga_buffer *b[6];
    for (int i = 0; i < 6; i++) {
        OK(tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, sizes[i], &b[i]));
        tiga_pin p;
        OK(tiga_buffer_pin(ctx, b[i], TIGA_READ, &p));
        for (int64_t k = 0; k < sizes[i]; k++)
            cr_assert_eq(((char *)p.data)[k], 0);
        tiga_buffer_unpin(&p);
        OK(fill(ctx, b[i], (uint64_t)i + 1));
        cr_assert(b[i]->memory->spare == NULL && b[i]->memory->n_allocating == 0);
    }
    for (int i = 0; i < 12; i++) {
        expect(ctx, b[i % 6], (uint64_t)(i % 6) + 1);
        cr_assert(b[0]->memory->spare == NULL && report(t.run).live[0] <= 5000000);
        for (int k = 0; k < 6; k++)
            cr_assert(beyond_charge(b[k]) <= 8192, "%lld bytes for %lld", (long long)beyond_charge(b[k]),
                      (long long)sizes[k]);
    }
    for (int i = 0; i < 6; i++)
        tiga_buffer_free(b[i]);
    scope_end(&t);
}

/* ---- a host that collects ---- */

static tiga_buffer *idle_value;
static int collections;
static void free_at_the_second(void *user) {
    (void)user;
    if (++collections == 2) {
        tiga_buffer_free(idle_value);
        idle_value = NULL;
    }
}

/* The first time for the host's budget; the second for the disk's, when the value is on its way there. */
Test(buffers, a_value_freed_by_the_host_while_it_is_evicted, .timeout = 20) {
    tiga_context *ctx = new_context();
    char folder[64];
    make_folder(folder);
    tiga_execution_options o = scope(2 << 20, 0, folder, TIGA_EVICT_LRU);
    o.collect = free_at_the_second;
    tiga_execution *run;
    collections = 0;
    OK(tiga_execution_begin(ctx, &o, &run));
    tiga_buffer *b;
    OK(tiga_buffer_new(ctx, "a", TIGA_TIER_HOST, 1500000, &idle_value));
    FAILS(tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, 1500000, &b), TIGA_E_BUDGET); /* it could not be moved */
    cr_assert(collections == 2 && !idle_value && report(run).live[0] == 0);
    OK(tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, 1500000, &b));
    tiga_buffer_free(b);
    OK(tiga_execution_end(ctx));
    tiga_execution_free(run);
    tiga_context_free(ctx);
    remove_folder(folder);
}

/* ---- children of fork ---- */

/* It has what its parent spilled, and neither frees nor overwrites it. */
static int use_in_child(tiga_context *ctx, tiga_buffer **b) {
    tiga_buffer *own;
    tiga_status status;
    tiga_buffer_free(b[0]);
    if (tiga_buffer_realize(ctx, b[1]) != TIGA_OK)
        return 1;
    if (tiga_buffer_new_unset(ctx, "own", TIGA_TIER_HOST, 4 * HR_PAGE, &own) != TIGA_OK || fill(ctx, own, 9) != TIGA_OK)
        return 2;
    if (tiga_buffer_spill(ctx, own) != TIGA_OK || tiga_buffer_spill(ctx, b[1]) != TIGA_OK)
        return 3;
    for (int i = 1; i < 3; i++)
        if (holds(ctx, b[i], (uint64_t)i, &status) != 1)
            return 3 + i;
    return holds(ctx, own, 9, &status) == 1 ? 0 : 6;
}

Test(buffers, a_child_leaves_spilled_values_to_its_parent) {
    scope_bench t;
    scope_begin(&t, -1, -1, TIGA_EVICT_ERROR);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[3];
    for (int i = 0; i < 3; i++) {
        b[i] = make(ctx, "b", HR_PAGE, (uint64_t)i);
        OK(tiga_buffer_spill(ctx, b[i]));
    }
    pid_t child = fork();
    if (child == 0)
        _exit(use_in_child(ctx, b));
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
    for (int i = 0; i < 3; i++) {
        expect(ctx, b[i], (uint64_t)i);
        tiga_buffer_free(b[i]);
    }
    scope_end(&t);
}

/* ---- the file ---- */

static int64_t blocks_of(const tiga_buffer *b) {
    struct stat st;
    cr_assert_eq(fstat(b->memory->spill.fd, &st), 0);
    return st.st_blocks * 512;
}

/* Few free parts keep their place, more go back to the disk in the background; and are used again. */
Test(buffers, freed_parts_go_back_to_the_disk) {
    scope_bench t;
    scope_begin(&t, -1, -1, TIGA_EVICT_ERROR);
    tiga_context *ctx = t.ctx;
    enum { N = 4, KEPT = 64 << 20 };
    tiga_buffer *b[N];
    for (int i = 0; i < N; i++)
        b[i] = make(ctx, "b", 24 * HR_PAGE, (uint64_t)i);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++)
            OK(tiga_buffer_spill(ctx, b[i]));
        cr_assert(blocks_of(b[0]) >= N * 24 * (int64_t)HR_PAGE);
        for (int i = 0; i < N; i++)
            expect(ctx, b[(i + round) % N], (uint64_t)((i + round) % N));
        for (int i = 0; i < 5000 && blocks_of(b[0]) > KEPT; i++)
            usleep(1000);
        cr_assert(blocks_of(b[0]) <= KEPT + 65536);
        cr_assert(b[0]->memory->spill.end <= 2 * N * 24 * (int64_t)HR_PAGE);
    }
    for (int i = 0; i < N; i++)
        tiga_buffer_free(b[i]);
    scope_end(&t);
}

/* ---- damage ---- */

Test(buffers, every_flipped_byte_of_a_spilled_value_is_reported) {
    scope_bench t;
    scope_begin(&t, -1, -1, TIGA_EVICT_ERROR);
    tiga_context *ctx = t.ctx;
    enum { N = 3000 };
    tiga_buffer *b = make(ctx, "b", N, 7);
    OK(tiga_buffer_spill(ctx, b));
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", b->memory->spill.fd);
    int fd = open(path, O_RDWR); /* without O_DIRECT */
    cr_assert(fd >= 0);
    for (int64_t i = 0; i < N; i++) {
        unsigned char was, is;
        cr_assert_eq(pread(fd, &was, 1, b->away.at + i), 1);
        is = (unsigned char)(was ^ (1 << (i % 8)));
        cr_assert_eq(pwrite(fd, &is, 1, b->away.at + i), 1);
        FAILS(tiga_buffer_realize(ctx, b), TIGA_E_FORMAT);
        cr_assert(strstr(said, "damaged"));
        if (i % 100 == 0) { /* nor is it saved */
            char to[128];
            snprintf(to, sizeof to, "%s/a.tiga", t.folder);
            tiga_tensor_view v = {.name = "x", .buffer = b, .dtype = TIGA_U8, .rank = 1, .shape = {N}};
            FAILS(tiga_save(ctx, to, &v, 1, 0), TIGA_E_FORMAT);
            cr_assert(strstr(said, "damaged") && count_files(t.folder, false) == 0);
        }
        cr_assert_eq(pwrite(fd, &was, 1, b->away.at + i), 1);
        cr_assert(!residency(b).resident && report(t.run).live[0] == 0 && report(t.run).live[3] == N);
    }
    cr_assert_eq(ftruncate(fd, b->away.at + 100), 0);
    FAILS(tiga_buffer_realize(ctx, b), TIGA_E_FORMAT);
    close(fd);
    tiga_buffer_free(b);
    scope_end(&t);
}

/* ---- read-ahead ---- */

Test(buffers, prefetch_brings_home_what_fits) {
    scope_bench t;
    scope_begin(&t, 4000000, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *a = make(ctx, "a", 3000000, 1), *b = make(ctx, "b", 900000, 2);
    OK(tiga_buffer_spill(ctx, a));
    bool started;
    OK(tiga_buffer_prefetch(ctx, a, &started));
    cr_assert(started);
    expect(ctx, a, 1); /* waits for it */
    OK(tiga_buffer_prefetch(ctx, a, &started));
    cr_assert(!started);
    OK(tiga_buffer_spill(ctx, a));
    tiga_buffer *c = make(ctx, "c", 2000000, 3);
    OK(tiga_buffer_prefetch(ctx, a, &started));
    cr_assert(!started && report(t.run).evictions == 0); /* never at the cost of others */
    tiga_buffer_free(c);
    OK(tiga_buffer_prefetch(ctx, a, &started));
    tiga_buffer_free(a); /* waits too */
    tiga_buffer_free(b);
    for (int i = 0; i < 2000 && report(t.run).live[0]; i++)
        usleep(1000); /* the reader is an owner until it is done */
    scope_end(&t);
}

/* ---- a model, driven at random ---- */

enum { N_MODEL = 24, STEPS = 6000 };
typedef struct model {
    tiga_buffer *b;
    int64_t bytes, version;
    bool known; /* it holds the pattern of `seed` */
    uint64_t seed;
} model;

static uint64_t next_random(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static void check_model(const scope_bench *t, const model *m) {
    int64_t live[TIGA_TIERS] = {0};
    for (int i = 0; i < N_MODEL; i++) {
        if (!m[i].b)
            continue;
        tiga_residency r = residency(m[i].b);
        cr_assert(r.version == m[i].version && r.bytes == m[i].bytes);
        cr_assert(!r.resident || r.backing != TIGA_BACKING_SPILL);
        cr_assert(r.resident || r.backing != TIGA_BACKING_NONE);
        live[TIGA_TIER_HOST] += r.resident ? r.bytes : 0;
        live[TIGA_TIER_DISK] += r.backing == TIGA_BACKING_SPILL ? r.bytes : 0;
    }
    tiga_memory_report r = report(t->run);
    cr_assert(r.live[0] == live[0] && r.live[3] == live[3], "%lld %lld, %lld %lld", (long long)r.live[0],
              (long long)live[0], (long long)r.live[3], (long long)live[3]);
    cr_assert(r.live[0] <= r.budget[0] && r.live[3] + r.ahead <= r.budget[3] && r.peak[0] <= r.budget[0]);
    cr_assert_eq(r.spills - r.restores >= 0, 1);
}

/* The value goes to a file, and what was attached to it takes its place. */
static tiga_status save_and_attach(scope_bench *t, model *x, int slot) {
    char path[128];
    snprintf(path, sizeof path, "%s/%d.tiga", t->folder, slot);
    tiga_tensor_view v = {.name = "x", .buffer = x->b, .dtype = TIGA_U8, .rank = 1, .shape = {x->bytes}};
    tiga_snapshot *s = NULL;
    tiga_buffer *b;
    tiga_status status = tiga_save(t->ctx, path, &v, 1, 1);
    if (status == TIGA_OK)
        status = tiga_snapshot_open(t->ctx, path, &s);
    if (status == TIGA_OK)
        status = tiga_snapshot_buffer(t->ctx, s, 0, TIGA_TIER_HOST, &b);
    tiga_snapshot_free(s);
    if (status != TIGA_OK)
        return status;
    cr_assert_eq(unlink(path), 0); /* it keeps the file */
    tiga_buffer_free(x->b);
    x->b = b;
    x->version = 0;
    return TIGA_OK;
}

/* from: the smallest value of which copies are made. */
static void random_run(uint64_t seed, int32_t eviction, int64_t from) {
    scope_bench t;
    scope_begin(&t, 200000, 250000, eviction);
    tiga_context *ctx = t.ctx;
    hr_memory_of(ctx, t.run)->copies.from = from;
    model m[N_MODEL] = {0};
    uint64_t s = seed * 2654435761u + 1;
    tiga_status status;
    int refused = 0;
    for (int step = 0; step < STEPS; step++) {
        model *x = &m[next_random(&s) % N_MODEL];
        unsigned what = (unsigned)(next_random(&s) % 11);
        if (!x->b) {
            int64_t bytes = (int64_t)(next_random(&s) % 150000) >> (next_random(&s) % 6);
            status = tiga_buffer_new(ctx, "m", TIGA_TIER_HOST, bytes, &x->b);
            *x = (model){.b = x->b, .bytes = bytes, .seed = 0};
            cr_assert(status == TIGA_OK || (status == TIGA_E_BUDGET && !x->b));
        } else if (what < 2) {
            status = fill(ctx, x->b, s);
            if (status == TIGA_OK) {
                x->seed = s;
                x->known = true;
                x->version++;
            }
        } else if (what < 5) {
            if (x->known) {
                int answer = holds(ctx, x->b, x->seed, &status);
                cr_assert(answer == 1 || (answer == -1 && status == TIGA_E_BUDGET));
            }
        } else if (what < 7) {
            status = tiga_buffer_spill(ctx, x->b);
            cr_assert(status == TIGA_E_BUDGET || x->bytes == 0 || !residency(x->b).resident);
        } else if (what == 10) {
            status = next_random(&s) % 8 ? TIGA_OK : save_and_attach(&t, x, (int)(x - m));
        } else if (what < 8) {
            status = tiga_buffer_realize(ctx, x->b);
            cr_assert(status == TIGA_E_BUDGET || residency(x->b).resident);
        } else {
            tiga_buffer_free(x->b);
            *x = (model){0};
            status = TIGA_OK;
        }
        cr_assert(tiga_error_status(ctx) == TIGA_OK || tiga_error_status(ctx) == TIGA_E_BUDGET, "%s",
                  tiga_error_text(ctx));
        refused += tiga_error_status(ctx) != TIGA_OK;
        tiga_error_clear(ctx);
        if (step % 16 == 0)
            check_model(&t, m);
    }
    for (int i = 0; i < N_MODEL; i++)
        if (m[i].b && m[i].known && holds(ctx, m[i].b, m[i].seed, &status) != 1)
            cr_assert_eq(status, TIGA_E_BUDGET);
    tiga_error_clear(ctx);
    check_model(&t, m);
    cr_assert(refused > 20, "the budgets were never tight");
    for (int i = 0; i < N_MODEL; i++)
        tiga_buffer_free(m[i].b);
    scope_end(&t);
}

Test(buffers, a_model_at_random, .timeout = 300) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        random_run(seed, TIGA_EVICT_ERROR, 1);
        random_run(seed, TIGA_EVICT_LRU, HR_COPY_FROM);
        random_run(seed, TIGA_EVICT_LRU, 1);
    }
}

/* ---- threads: also under the thread sanitizer ---- */

enum { THREADS = 4, ROUNDS = 150, N_SHARED = 12, BYTES = 30000 };
typedef struct worker {
    tiga_context *ctx;
    tiga_buffer **shared;
    int id;
    int wrong;
} worker;

/* A shared buffer holds its number in each word, plus how often it was written, alike in all words. */
static void write_all(worker *w, tiga_buffer *b) {
    tiga_pin p;
    tiga_status status = tiga_buffer_pin(w->ctx, b, TIGA_WRITE, &p);
    if (status != TIGA_OK) {
        w->wrong += status != TIGA_E_BUDGET;
        return;
    }
    uint64_t *words = p.data, first = words[0];
    for (int i = 0; i < BYTES / 8; i++) {
        w->wrong += words[i] != first;
        words[i]++;
    }
    tiga_buffer_unpin(&p);
}

static void read_only(worker *w, tiga_buffer *b) {
    tiga_pin p;
    if (tiga_buffer_pin(w->ctx, b, TIGA_READ, &p) != TIGA_OK)
        return;
    const uint64_t *words = p.data;
    for (int i = 0; i < BYTES / 8; i++)
        w->wrong += words[i] != words[0];
    tiga_buffer_unpin(&p);
}

static void *work(void *user) {
    worker *w = user;
    uint64_t s = (uint64_t)w->id * 977 + 5;
    for (int i = 0; i < ROUNDS; i++) {
        tiga_buffer *b = w->shared[next_random(&s) % N_SHARED], *own;
        switch (next_random(&s) % 6) {
        case 0:
            write_all(w, b);
            break;
        case 1:
        case 2:
            read_only(w, b);
            break;
        case 3:
            w->wrong += tiga_buffer_spill(w->ctx, b) > TIGA_E_BUDGET;
            break;
        case 4:
            (void)tiga_buffer_prefetch(w->ctx, b, NULL);
            break;
        default:
            if (tiga_buffer_new(w->ctx, "own", TIGA_TIER_HOST, BYTES, &own) == TIGA_OK) {
                write_all(w, own);
                (void)tiga_buffer_spill(w->ctx, own);
                read_only(w, own);
                tiga_buffer_free(own);
            }
        }
        tiga_residency r;
        tiga_buffer_residency(b, &r);
    }
    return NULL;
}

static void share_budget(scope_bench *t, const char *name) {
    tiga_context *ctx = t->ctx;
    tiga_execution_options o = scope(8 * BYTES, -1, t->folder, TIGA_EVICT_LRU);
    OK(tiga_execution_end(ctx));
    tiga_execution_free(t->run);
    o.shared = name;
    OK(tiga_execution_begin(ctx, &o, &t->run));
}

/* shared: the budget is one of several processes, and all contexts work in its scope. */
static void run_threads(bool own_contexts, bool shared_budget) {
    scope_bench t;
    char name[64];
    scope_begin(&t, 8 * BYTES, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    snprintf(name, sizeof name, "threads-%ld", (long)getpid());
    if (shared_budget)
        share_budget(&t, name);
    OK(tiga_memory_keep(ctx, 4 * BYTES));
    hr_memory_of(ctx, t.run)->copies.from = 1;
    tiga_buffer *shared[N_SHARED];
    for (int i = 0; i < N_SHARED; i++)
        OK(tiga_buffer_new(ctx, "shared", TIGA_TIER_HOST, BYTES, &shared[i]));
    worker w[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.ctx = own_contexts ? new_context() : ctx, .shared = shared, .id = i};
        if (own_contexts && shared_budget)
            OK(tiga_execution_enter(w[i].ctx, t.run));
        pthread_create(&threads[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(w[i].wrong, 0);
        if (own_contexts)
            tiga_context_free(w[i].ctx);
    }
    tiga_error_clear(ctx);
    for (int i = 0; i < N_SHARED; i++)
        tiga_buffer_free(shared[i]);
    scope_end(&t);
}

Test(buffers, one_context_many_threads, .timeout = 300) { run_threads(false, false); }
Test(buffers, many_contexts_many_threads, .timeout = 300) { run_threads(true, false); }
Test(buffers, many_threads_share_a_budget, .timeout = 300) { run_threads(true, true); }
