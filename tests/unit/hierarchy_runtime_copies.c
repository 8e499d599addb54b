/* Copies: values written ahead of their eviction, places on disk that are kept, and many values that leave side by side.
 * What a copy may change is speed; everything else is as without. */
#include "memory_support.h"

#include <pthread.h>

enum { SIZE = HR_PAGE + 100 };

static tiga_buffer *make(tiga_context *ctx, int64_t bytes, uint64_t seed) {
    tiga_buffer *b;
    OK(tiga_buffer_new_unset(ctx, "b", TIGA_TIER_HOST, bytes, &b));
    OK(fill(ctx, b, seed));
    return b;
}

static void make_all(scope_bench *t, tiga_buffer **b, int n) {
    for (int i = 0; i < n; i++)
        b[i] = make(t->ctx, SIZE, (uint64_t)i);
}

static void free_all(tiga_buffer **b, int n) {
    for (int i = 0; i < n; i++)
        tiga_buffer_free(b[i]);
}

/* Until nothing is being written ahead. */
static void settle(hr_memory *m) {
    bool busy = true;
    for (int i = 0; busy && i < 20000; i++) {
        pthread_mutex_lock(&m->lock);
        busy = m->copies.running;
        pthread_mutex_unlock(&m->lock);
        if (busy)
            usleep(500);
    }
    cr_assert(!busy);
}

static int n_resident(tiga_buffer **b, int n) {
    int count = 0;
    for (int i = 0; i < n; i++)
        count += residency(b[i]).resident;
    return count;
}

/* ---- writing ahead ---- */

Test(copies, the_oldest_are_written_ahead_and_leave_without_writing) {
    scope_bench t;
    enum { N = 12, ROOM = 8 };
    scope_begin(&t, ROOM * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N + 1];
    make_all(&t, b, N); /* 0 to 3 are out, 4 to 11 are in */
    settle(b[0]->memory);
    tiga_memory_report before = report(t.run);
    cr_assert(before.evictions == N - ROOM && before.live[3] == (N - ROOM) * SIZE);
    cr_assert(before.ahead == 2 * SIZE, "%lld", (long long)before.ahead); /* a quarter of the budget */
    cr_assert(b[4]->copy.account && b[5]->copy.account && !b[6]->copy.account);
    cr_assert(residency(b[4]).resident && residency(b[4]).backing == TIGA_BACKING_NONE, "nobody sees a copy");
    OK(tiga_buffer_new_unset(ctx, "b", TIGA_TIER_HOST, SIZE, &b[N]));
    cr_assert(!residency(b[4]).resident && residency(b[4]).backing == TIGA_BACKING_SPILL && residency(b[5]).resident);
    settle(b[0]->memory);
    tiga_memory_report after = report(t.run);
    cr_assert(after.evictions == before.evictions + 1 && after.live[3] == before.live[3] + SIZE);
    cr_assert(after.bytes_written == before.bytes_written + SIZE && after.ahead == before.ahead, "6 was, 4 was not");
    for (int i = 0; i < N; i++)
        expect(ctx, b[i], (uint64_t)i);
    free_all(b, N + 1);
    scope_end(&t);
}

/* Before the first eviction nothing is written, whatever is live. */
Test(copies, who_does_not_evict_does_not_write) {
    scope_bench t;
    scope_begin(&t, 4 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[4];
    make_all(&t, b, 4);
    for (int round = 0; round < 20; round++)
        OK(fill(ctx, b[round % 4], (uint64_t)(round % 4)));
    tiga_memory_report r = report(t.run);
    cr_assert(r.ahead == 0 && r.bytes_written == 0 && b[0]->memory->spill.fd < 0);
    free_all(b, 4);
    scope_end(&t);
}

Test(copies, a_write_makes_a_copy_void) {
    scope_bench t;
    scope_begin(&t, 8 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[12];
    make_all(&t, b, 12);
    settle(b[0]->memory);
    cr_assert(b[4]->copy.account != NULL);
    OK(fill(ctx, b[4], 99));
    cr_assert(!b[4]->copy.account && residency(b[4]).version == 2);
    OK(tiga_buffer_spill(ctx, b[4]));
    expect(ctx, b[4], 99);
    OK(tiga_buffer_spill(ctx, b[5])); /* has one */
    expect(ctx, b[5], 5);
    free_all(b, 12);
    scope_end(&t);
}

/* What was spilled by hand is removed when it comes home, in LRU scopes too. */
Test(copies, a_spill_by_hand_leaves_none) {
    scope_bench t;
    scope_begin(&t, 8 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[2];
    make_all(&t, b, 2);
    for (int i = 0; i < 2; i++) {
        OK(tiga_buffer_spill(ctx, b[i]));
        cr_assert_eq(report(t.run).live[TIGA_TIER_DISK], SIZE);
        if (i) /* again, where it is */
            OK(tiga_buffer_spill(ctx, b[i]));
        expect(ctx, b[i], (uint64_t)i);
        cr_assert(report(t.run).ahead == 0 && report(t.run).live[TIGA_TIER_DISK] == 0 &&
                  b[i]->memory->spill.live_bytes == 0);
    }
    free_all(b, 2);
    scope_end(&t);
}

/* What is only read is written once. */
Test(copies, a_value_that_comes_home_keeps_its_place) {
    scope_bench t;
    enum { N = 10 };
    scope_begin(&t, 6 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N];
    make_all(&t, b, N);
    for (int i = 0; i < 2 * N; i++)
        expect(ctx, b[i % N], (uint64_t)(i % N));
    settle(b[0]->memory);
    cr_assert(report(t.run).bytes_written <= N * SIZE);
    tiga_memory_report before = report(t.run);
    for (int i = 0; i < 2 * N; i++)
        expect(ctx, b[i % N], (uint64_t)(i % N));
    tiga_memory_report after = report(t.run);
    cr_assert(after.bytes_written == before.bytes_written && after.evictions >= before.evictions + 2 * N - 6);
    cr_assert_eq(after.bytes_read - before.bytes_read, (after.restores - before.restores) * SIZE);
    free_all(b, N);
    scope_end(&t);
}

/* Reading ahead takes the memory of the oldest if they need not be written, and only then. */
Test(copies, reading_ahead_drops_what_has_copies) {
    scope_bench t;
    enum { N = 12 };
    scope_begin(&t, 8 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N];
    make_all(&t, b, N);
    settle(b[0]->memory);
    bool started;
    tiga_memory_report before = report(t.run);
    OK(tiga_buffer_prefetch(ctx, b[0], &started)); /* 4 and 5 have copies */
    cr_assert(started && report(t.run).evictions == before.evictions + 1 && !residency(b[4]).resident);
    expect(ctx, b[0], 0);
    settle(b[0]->memory);
    tiga_pin p;
    cr_assert(b[5]->copy.account && report(t.run).live[0] == 8 * SIZE && b[0]->memory->spare == NULL);
    OK(tiga_buffer_pin(ctx, b[5], TIGA_WRITE, &p)); /* in use: it is not idle */
    for (int i = 6; i < N; i++)
        OK(fill(ctx, b[i], (uint64_t)i)); /* these have to be written now, and 0 is the oldest: it has its place */
    OK(tiga_buffer_prefetch(ctx, b[1], &started));
    cr_assert(started && !residency(b[0]).resident);
    expect(ctx, b[1], 1);
    tiga_buffer_unpin(&p);
    settle(b[0]->memory);
    b[0]->memory->copies.credit = 0; /* nothing is written ahead any more */
    for (int i = 5; i < N; i++)
        OK(fill(ctx, b[i], (uint64_t)i));
    OK(fill(ctx, b[1], 1));
    before = report(t.run);
    OK(tiga_buffer_prefetch(ctx, b[2], &started));
    cr_assert(!started && report(t.run).evictions == before.evictions);
    OK(fill(ctx, b[5], 5));
    for (int i = 0; i < N; i++)
        expect(ctx, b[i], (uint64_t)i);
    free_all(b, N);
    scope_end(&t);
}

/* ---- giving way ---- */

Test(copies, they_give_way_to_a_disk_budget) {
    scope_bench t;
    enum { N = 12, ROOM = 8 };
    scope_begin(&t, ROOM * SIZE, (N - ROOM + 1) * SIZE, TIGA_EVICT_LRU); /* one copy at most */
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N + 1];
    make_all(&t, b, N);
    for (int i = 0; i < 3 * N; i++) {
        if (i % 3 == 0)
            OK(fill(ctx, b[i % N], (uint64_t)(i % N)));
        expect(ctx, b[i % N], (uint64_t)(i % N));
        tiga_memory_report r = report(t.run);
        cr_assert(r.live[3] == (N - ROOM) * SIZE && r.live[3] + r.ahead <= r.budget[3] && r.peak[3] <= r.budget[3]);
    }
    b[N] = make(ctx, SIZE, N); /* takes the last place that the disk has */
    cr_assert(report(t.run).ahead == 0 && report(t.run).live[3] == report(t.run).budget[3]);
    tiga_buffer *more;
    FAILS(tiga_buffer_new(ctx, "more", TIGA_TIER_HOST, SIZE, &more), TIGA_E_BUDGET);
    cr_assert(strstr(said, "on disk"), "%s", said);
    cr_assert_eq(n_resident(b, N + 1), ROOM);
    free_all(b, N + 1);
    scope_end(&t);
}

/* Nothing is refused for want of blocks that hold copies, or nothing. */
Test(copies, they_give_way_to_a_full_disk) {
    scope_bench t;
    enum { N = 12 };
    scope_begin(&t, 8 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N];
    make_all(&t, b, N);
    settle(b[0]->memory);
    hr_memory *m = b[0]->memory;
    m->copies.credit = 0; /* none are made from here on */
    cr_assert(report(t.run).ahead > 0);
    base_inject_error(ENOSPC);
    base_inject_at(BASE_INJECT_FILE, 1);
    OK(tiga_buffer_spill(ctx, b[8]));
    base_inject_at(BASE_INJECT_FILE, 0);
    cr_assert(!residency(b[8]).resident && report(t.run).ahead == 0 && m->spill.kept_bytes < 2 * SIZE);
    tiga_buffer_free(b[0]); /* its place is free, and has blocks */
    cr_assert(m->spill.kept_bytes > 0);
    base_inject_at(BASE_INJECT_FILE, 1);
    OK(tiga_buffer_spill(ctx, b[9]));
    base_inject_at(BASE_INJECT_FILE, 1);
    FAILS(tiga_buffer_spill(ctx, b[10]), TIGA_E_FILE); /* now there is nothing to give */
    base_inject_at(BASE_INJECT_FILE, 0);
    base_inject_error(EIO);
    for (int i = 1; i < N; i++)
        expect(ctx, b[i], (uint64_t)i);
    free_all(b + 1, N - 1);
    scope_end(&t);
}

Test(copies, none_are_left_when_the_scope_ends) {
    scope_bench t;
    scope_begin(&t, 8 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[12];
    make_all(&t, b, 12); /* perhaps one is being written now */
    OK(tiga_execution_end(ctx));
    cr_assert_eq(report(t.run).ahead, 0);
    for (int i = 0; i < 12; i++)
        expect(ctx, b[i], (uint64_t)i);
    free_all(b, 12);
    tiga_execution_options o = tiga_execution_defaults();
    OK(tiga_execution_begin(ctx, &o, NULL));
    scope_end(&t);
}

/* ---- while one is written ---- */

/* NULL: none, and none will be. */
static tiga_buffer *being_written(hr_memory *m) {
    tiga_buffer *b = NULL;
    for (bool running = true; running && !b;) {
        pthread_mutex_lock(&m->lock);
        running = m->copies.running;
        b = m->copies.current;
        pthread_mutex_unlock(&m->lock);
    }
    return b;
}

/* Large ones, so that it takes a while: each of these comes when one is being written, most times. */
Test(copies, whatever_happens_while_one_is_written, .timeout = 120) {
    scope_bench t;
    enum { BIG = 8 << 20, N = 6 };
    scope_begin(&t, 4 * BIG, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N];
    int caught = 0;
    for (int i = 0; i < N; i++)
        b[i] = make(ctx, BIG, (uint64_t)i);
    for (int round = 0; round < 40; round++) {
        hr_memory *m = b[0]->memory;
        OK(fill(ctx, b[round % N], (uint64_t)(round % N))); /* evicts, and so writing ahead begins */
        tiga_buffer *busy = being_written(m);
        int k = 0;
        while (k < N && b[k] != busy)
            k++;
        if (k == N)
            continue;
        caught++;
        switch (round % 5) {
        case 0:
            expect(ctx, b[k], (uint64_t)k); /* reading does not wait */
            break;
        case 1:
            OK(fill(ctx, b[k], (uint64_t)k));
            break;
        case 2:
            OK(tiga_buffer_spill(ctx, b[k]));
            cr_assert(!residency(b[k]).resident);
            break;
        case 3:
            tiga_buffer_free(b[k]);
            cr_assert(report(t.run).live[0] + report(t.run).live[3] <= (N - 1) * BIG, "accounts are never late");
            b[k] = make(ctx, BIG, (uint64_t)k);
            break;
        default: {
            tiga_pin p;
            OK(tiga_buffer_pin(ctx, b[k], TIGA_READ, &p));
            OK(tiga_buffer_spill(ctx, b[k])); /* when the pin goes */
            tiga_buffer_unpin(&p);
            cr_assert(!residency(b[k]).resident);
        }
        }
    }
    for (int i = 0; i < N; i++)
        expect(ctx, b[i], (uint64_t)i);
    cr_assert(caught > 0);
    free_all(b, N);
    scope_end(&t);
}

/* The child has neither the thread that writes ahead nor the places of copies: it writes for itself. */
static int use_in_child(tiga_context *ctx, tiga_buffer **b, int n) {
    tiga_status status;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < n; i++) {
            if (holds(ctx, b[i], (uint64_t)i, &status) != 1)
                return 1;
            if (i % 3 == round && fill(ctx, b[i], (uint64_t)i) != TIGA_OK)
                return 2;
        }
    for (int i = 0; i < n; i++)
        tiga_buffer_free(b[i]);
    return 0;
}

Test(copies, children_of_fork, .timeout = 60) {
    scope_bench t;
    enum { N = 12 };
    scope_begin(&t, 8 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N];
    make_all(&t, b, N);
    settle(b[0]->memory);
    cr_assert(report(t.run).ahead > 0);
    pid_t child = fork();
    if (child == 0)
        _exit(use_in_child(ctx, b, N));
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
    for (int i = 0; i < N; i++)
        expect(ctx, b[i], (uint64_t)i);
    free_all(b, N);
    scope_end(&t);
}

typedef struct toil {
    tiga_context *ctx;
    tiga_buffer **b;
    int n;
    atomic_bool stop;
} toil;

static void *evict_all_the_time(void *user) {
    toil *t = user;
    tiga_status status;
    for (int i = 0; !atomic_load(&t->stop); i++)
        (void)(i % 3 ? holds(t->ctx, t->b[i % t->n], 0, &status) : (int)fill(t->ctx, t->b[i % t->n], 0));
    return NULL;
}

static int spill_in_child(tiga_context *ctx) {
    tiga_buffer *own;
    tiga_status status;
    alarm(20);
    if (tiga_buffer_new_unset(ctx, "own", TIGA_TIER_PINNED, SIZE, &own) != TIGA_OK || fill(ctx, own, 7) != TIGA_OK ||
        tiga_buffer_spill(ctx, own) != TIGA_OK)
        return 1;
    int good = holds(ctx, own, 7, &status);
    tiga_buffer_free(own);
    return good == 1 ? 0 : 2;
}

/* Whatever the other threads hold and do at that moment. */
Test(copies, forks_at_any_time, .timeout = 120) {
    scope_bench t;
    enum { N = 12 };
    scope_begin(&t, 8 * SIZE, -1, TIGA_EVICT_LRU);
    tiga_buffer *b[N];
    make_all(&t, b, N);
    toil w = {.ctx = t.ctx, .b = b, .n = N};
    tiga_context *ctx = new_context(); /* contexts that other threads use are not for a child */
    OK(tiga_execution_enter(ctx, t.run));
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, evict_all_the_time, &w), 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(spill_in_child(ctx));
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d: %x", i, status);
    }
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    tiga_context_free(ctx);
    free_all(b, N);
    scope_end(&t);
}

/* ---- many leave at once ---- */

Test(copies, many_small_values_make_room_together) {
    scope_bench t;
    enum { N = 80, EACH = 5000 };
    scope_begin(&t, N * EACH, -1, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N], *large;
    for (int i = 0; i < N; i++)
        b[i] = make(ctx, EACH, (uint64_t)i);
    expect(ctx, b[0], 0);
    OK(tiga_buffer_new(ctx, "large", TIGA_TIER_HOST, 70 * EACH - 1, &large));
    tiga_memory_report r = report(t.run);
    cr_assert(r.evictions == 70 && r.live[3] == 70 * EACH && r.live[0] == N * EACH - 1);
    for (int i = 0; i < N; i++)
        cr_assert_eq(residency(b[i]).resident, i == 0 || i > 70, "%d", i);
    tiga_buffer_free(large);
    for (int i = 0; i < N; i++)
        expect(ctx, b[i], (uint64_t)i);
    free_all(b, N);
    scope_end(&t);
}

/* As if they left one after the other: those that the disk has room for are out, the others are where they were. */
Test(copies, a_full_disk_stops_the_same_one) {
    scope_bench t;
    enum { N = 40, EACH = 5000, PLACES = 17 };
    scope_begin(&t, N * EACH, PLACES * EACH + 10, TIGA_EVICT_LRU);
    tiga_context *ctx = t.ctx;
    tiga_buffer *b[N], *large;
    for (int i = 0; i < N; i++)
        b[i] = make(ctx, EACH, (uint64_t)i);
    FAILS(tiga_buffer_new(ctx, "large", TIGA_TIER_HOST, 30 * EACH, &large), TIGA_E_BUDGET);
    cr_assert(strstr(said, "on disk") && report(t.run).evictions == PLACES && report(t.run).live[3] == PLACES * EACH);
    for (int i = 0; i < N; i++)
        cr_assert_eq(residency(b[i]).resident, i >= PLACES, "%d", i);
    OK(tiga_buffer_new(ctx, "large", TIGA_TIER_HOST, PLACES * EACH, &large)); /* there is room now */
    tiga_buffer_free(large);
    free_all(b, 3);
    OK(tiga_buffer_new(ctx, "large", TIGA_TIER_HOST, (PLACES + 3) * EACH, &large));
    for (int i = 3; i < N; i++)
        cr_assert_eq(residency(b[i]).resident, i >= PLACES + 3, "the oldest are still the oldest: %d", i);
    tiga_buffer_free(large);
    for (int i = 3; i < N; i++)
        expect(ctx, b[i], (uint64_t)i);
    free_all(b + 3, N - 3);
    scope_end(&t);
}
