/* Every allocation and every file call of the memory system fails in turn, in each way it can fail, and is the place of a
 * kill in turn: no value is lost or wrong, no account is off, nothing is left that the next start does not clean. */
#include "memory_support.h"

#include <fcntl.h>

enum { BYTES = 70000, BIG = 3 * HR_PAGE + 5 };

typedef struct bench {
    tiga_context *ctx;
    char folder[64], path[128];
} bench;

static void begin(bench *t) {
    t->ctx = new_context();
    make_folder(t->folder);
    snprintf(t->path, sizeof t->path, "%s/a.tiga", t->folder);
}

static void end(bench *t) {
    tiga_context_free(t->ctx);
    remove_folder(t->folder);
}

static uint64_t calls; /* of the kind that was to fail */
static base_inject_kind failing;
static void no_more_faults(void) {
    calls = base_inject_count(failing);
    base_inject_at(BASE_INJECT_ALLOC, 0);
    base_inject_at(BASE_INJECT_FILE, 0);
}

/* What is done under faults: TIGA_OK or the first failure.  It must clean up after itself. */
typedef tiga_status scenario(bench *t, tiga_execution *run);

/* Two buffers in a budget for one: evictions, restores, a write. */
static tiga_status evictions(bench *t, tiga_execution *run) {
    tiga_context *ctx = t->ctx;
    tiga_buffer *a = NULL, *b = NULL;
    tiga_status status = tiga_buffer_new(ctx, "a", TIGA_TIER_HOST, BYTES, &a), read;
    bool a_written = false, b_written = false;
    if (status == TIGA_OK)
        status = fill(ctx, a, 1);
    a_written = status == TIGA_OK;
    if (status == TIGA_OK)
        status = tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, BYTES, &b);
    if (status == TIGA_OK)
        status = fill(ctx, b, 2);
    b_written = status == TIGA_OK;
    if (status == TIGA_OK)
        status = tiga_buffer_realize(ctx, a);
    if (status == TIGA_OK)
        status = tiga_buffer_spill(ctx, a);
    no_more_faults();
    for (int i = 0; i < 2; i++) { /* whatever happened, both values are there */
        cr_assert(!a_written || holds(ctx, a, 1, &read) == 1, "%s", tiga_error_text(ctx));
        cr_assert(!b_written || holds(ctx, b, 2, &read) == 1, "%s", tiga_error_text(ctx));
    }
    tiga_memory_report r = report(run);
    cr_assert_eq(r.live[0] + r.live[3], (a != NULL) * BYTES + (b != NULL) * BYTES);
    tiga_buffer_free(a);
    tiga_buffer_free(b);
    return status;
}

/* Twelve values in a budget for eight: places on disk that are kept, and values that are written ahead meanwhile. */
static tiga_status ahead(bench *t, tiga_execution *run) {
    tiga_context *ctx = t->ctx;
    enum { N = 12, EACH = BYTES / 8 };
    tiga_buffer *b[N] = {0};
    bool written[N] = {false};
    tiga_status status = TIGA_OK, read;
    hr_memory *m = hr_memory_of(NULL, run);
    if (m)
        m->copies.from = 1;
    for (int step = 0; step < 2 * N && status == TIGA_OK; step++) {
        int i = step % N;
        if (!b[i])
            status = tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, EACH, &b[i]);
        if (status == TIGA_OK)
            status = step < N || i % 2 ? fill(ctx, b[i], (uint64_t)i) : tiga_buffer_realize(ctx, b[i]);
        written[i] |= status == TIGA_OK;
    }
    no_more_faults();
    int64_t live = 0;
    for (int i = 0; i < N; i++) {
        live += b[i] ? EACH : 0;
        cr_assert(!written[i] || holds(ctx, b[i], (uint64_t)i, &read) == 1, "%s", tiga_error_text(ctx));
    }
    tiga_memory_report r = report(run);
    cr_assert_eq(r.live[0] + r.live[3], live);
    for (int i = 0; i < N; i++)
        tiga_buffer_free(b[i]);
    return status;
}

/* Many pages, several threads, no eviction. */
static tiga_status large(bench *t, tiga_execution *run) {
    (void)run;
    tiga_context *ctx = t->ctx;
    tiga_buffer *b = NULL;
    tiga_status status = tiga_buffer_new(ctx, "big", TIGA_TIER_PINNED, BIG, &b), read;
    if (status == TIGA_OK)
        status = fill(ctx, b, 3);
    if (status == TIGA_OK)
        status = tiga_buffer_spill(ctx, b);
    bool out = status == TIGA_OK;
    if (status == TIGA_OK)
        status = tiga_buffer_realize(ctx, b);
    no_more_faults();
    tiga_residency r = {0};
    if (b)
        r = residency(b);
    cr_assert(!b || r.resident == (status == TIGA_OK || !out));
    cr_assert(!r.version || holds(ctx, b, 3, &read) == 1);
    tiga_buffer_free(b);
    return status;
}

/* A snapshot is replaced, or what was there stays; then it is read. */
static tiga_status snapshot(bench *t, tiga_execution *run) {
    (void)run;
    tiga_context *ctx = t->ctx;
    static const float old[] = {1, 2}, new[] = {3, 4, 5};
    tiga_tensor_view v = {.name = "x", .data = old, .dtype = TIGA_F32, .rank = 1, .shape = {2}};
    v.data = new;
    v.shape[0] = 3;
    tiga_status status = tiga_save(ctx, t->path, &v, 1, 1);
    bool saved = status == TIGA_OK;
    tiga_snapshot *s = NULL;
    tiga_buffer *b = NULL;
    if (status == TIGA_OK)
        status = tiga_snapshot_open(ctx, t->path, &s);
    if (status == TIGA_OK)
        status = tiga_snapshot_buffer(ctx, s, 0, TIGA_TIER_HOST, &b);
    if (status == TIGA_OK)
        status = tiga_buffer_realize(ctx, b);
    no_more_faults();
    tiga_buffer_free(b);
    tiga_snapshot_free(s);
    cr_assert_eq(count_files(t->folder, false), 1);
    cr_assert_eq(tiga_snapshot_open(NULL, t->path, &s), TIGA_OK); /* one or the other, whole */
    cr_assert_eq(tiga_snapshot_buffer(ctx, s, 0, TIGA_TIER_HOST, &b), TIGA_OK);
    tiga_pin p;
    cr_assert_eq(tiga_buffer_pin(ctx, b, TIGA_READ, &p), TIGA_OK);
    bool is_new = tiga_buffer_bytes(b) == 12;
    cr_assert(memcmp(p.data, is_new ? new : old, is_new ? 12 : 8) == 0 && (is_new || !saved));
    tiga_buffer_unpin(&p);
    tiga_buffer_free(b);
    tiga_snapshot_free(s);
    return status;
}

/* A spilled value goes to a snapshot from where it is. */
static tiga_status save_from_disk(bench *t, const int64_t *strides) {
    tiga_context *ctx = t->ctx;
    tiga_buffer *b = NULL, *back;
    tiga_snapshot *s;
    tiga_status status = tiga_buffer_new(ctx, "big", TIGA_TIER_PINNED, BIG, &b), read;
    if (status == TIGA_OK)
        status = fill(ctx, b, 3);
    if (status == TIGA_OK)
        status = tiga_buffer_spill(ctx, b);
    tiga_tensor_view v = {.name = "x", .buffer = b, .dtype = TIGA_U8, .rank = 1, .shape = {BIG}, .strides = strides};
    if (status == TIGA_OK)
        status = tiga_save(ctx, t->path, &v, 1, 0);
    no_more_faults();
    cr_assert(!b || !residency(b).version || holds(ctx, b, 3, &read) == 1);
    tiga_buffer_free(b);
    int n = count_files(t->folder, false);
    cr_assert(n == 0 || n == 1);
    cr_assert(status != TIGA_OK || n == 1);
    if (n == 1) { /* that of a failure after it got its name is whole, too */
        tiga_error_clear(ctx);
        OK(tiga_snapshot_open(ctx, t->path, &s));
        OK(tiga_snapshot_buffer(ctx, s, 0, TIGA_TIER_PINNED, &back));
        cr_assert_eq(holds(ctx, back, 3, &read), 1);
        tiga_buffer_free(back);
        tiga_snapshot_free(s);
        unlink(t->path);
    }
    return status;
}

static tiga_status save_away(bench *t, tiga_execution *run) {
    (void)run;
    return save_from_disk(t, NULL);
}

static tiga_status save_slices(bench *t, tiga_execution *run) {
    (void)run;
    return save_from_disk(t, (const int64_t[]){1});
}

static void prepare_snapshot(bench *t) {
    tiga_context *ctx = t->ctx;
    static const float old[] = {1, 2};
    tiga_tensor_view v = {.name = "x", .data = old, .dtype = TIGA_F32, .rank = 1, .shape = {2}};
    OK(tiga_save(ctx, t->path, &v, 1, 1));
}

/* A name that is new. */
static tiga_status store(bench *t, tiga_execution *run) {
    (void)run;
    tiga_context *ctx = t->ctx;
    static const float x[] = {1, 2};
    tiga_tensor_view v = {.name = "x", .data = x, .dtype = TIGA_F32, .rank = 1, .shape = {2}};
    tiga_status status = tiga_store_put(ctx, "n", &v);
    if (status == TIGA_OK)
        status = tiga_store_remove(ctx, "n");
    no_more_faults();
    tiga_error_clear(ctx);
    (void)tiga_store_remove(ctx, "n");
    tiga_error_clear(ctx);
    cr_assert_eq(count_files(t->folder, false), 0);
    return status;
}

/* One scope with the n-th call failing; the status of the scenario. */
static tiga_status with_fault(bench *t, scenario *what, base_inject_kind kind, uint64_t nth) {
    tiga_context *ctx = t->ctx;
    tiga_execution_options o = scope(BYTES + 100, -1, t->folder, TIGA_EVICT_LRU);
    tiga_execution *run;
    OK(tiga_execution_begin(ctx, &o, &run));
    failing = kind;
    base_inject_at(kind, nth);
    tiga_status status = what(t, run);
    cr_assert(status == TIGA_OK || status == TIGA_E_FILE || status == TIGA_E_MEMORY, "%llu: %s %s",
              (unsigned long long)nth, tiga_status_text(status), tiga_error_text(ctx));
    tiga_error_clear(ctx);
    OK(tiga_execution_end(ctx));
    tiga_memory_report r = report(run);
    for (int i = 0; i < TIGA_TIERS; i++)
        cr_assert_eq(r.live[i], 0);
    tiga_execution_free(run);
    return status;
}

static void every_fault(scenario *what, void (*before)(bench *t)) {
    bench t;
    begin(&t);
    setenv("TIGA_STORE_DIR", t.folder, 1);
    static const int errors[] = {EIO, ENOSPC, EINTR, 0};
    for (int kind = 0; kind < BASE_INJECT_KINDS; kind++)
        for (int e = 0; e < (kind == BASE_INJECT_FILE ? 4 : 1); e++) {
            base_inject_error(errors[e]);
            int failed = 0;
            for (uint64_t nth = 1;; nth++) {
                cr_assert(nth < 2000);
                if (before)
                    before(&t);
                calls = 0;
                tiga_status status = with_fault(&t, what, (base_inject_kind)kind, nth);
                failed += status != TIGA_OK;
                if (calls < nth) /* it was never reached */
                    break;
            }
            cr_assert(errors[e] == 0 ? failed == 0 : failed > 0, "%d", failed);
        }
    base_inject_error(EIO);
    end(&t);
}

Test(memory_faults, evictions, .timeout = 300) { every_fault(evictions, NULL); }
Test(memory_faults, writing_ahead, .timeout = 300) { every_fault(ahead, NULL); }
Test(memory_faults, many_pages, .timeout = 300) { every_fault(large, NULL); }
Test(memory_faults, snapshots, .timeout = 300) { every_fault(snapshot, prepare_snapshot); }
Test(memory_faults, saving_what_is_on_disk, .timeout = 300) { every_fault(save_away, NULL); }
Test(memory_faults, saving_slices_on_disk, .timeout = 300) { every_fault(save_slices, NULL); }
Test(memory_faults, names, .timeout = 300) { every_fault(store, NULL); }

/* ---- kills ---- */

/* In a child that dies at the nth file call; false: it came through. */
static bool killed_at(bench *t, scenario *what, uint64_t nth) {
    pid_t pid = fork();
    if (pid == 0) {
        tiga_execution_options o = scope(BYTES + 100, -1, t->folder, TIGA_EVICT_LRU);
        tiga_execution *run;
        if (tiga_execution_begin(t->ctx, &o, &run) != TIGA_OK)
            _exit(3);
        base_inject_kill_at(BASE_INJECT_FILE, nth);
        (void)what(t, run);
        _exit(0);
    }
    int how;
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    cr_assert(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
    return WIFSIGNALED(how);
}

static tiga_status save_only(bench *t, tiga_execution *run) {
    (void)run;
    static const float new[] = {3, 4, 5};
    tiga_tensor_view v = {.name = "x", .data = new, .dtype = TIGA_F32, .rank = 1, .shape = {3}};
    tiga_status status = tiga_save(t->ctx, t->path, &v, 1, 1);
    base_inject_at(BASE_INJECT_FILE, 0);
    return status;
}

Test(memory_faults, killed_while_saving, .timeout = 300) {
    bench t;
    begin(&t);
    tiga_context *ctx = t.ctx;
    int kills = 0, old = 0, new = 0;
    for (uint64_t nth = 1;; nth++) {
        prepare_snapshot(&t);
        cr_assert_eq(count_files(t.folder, false), 1, "what the last one left is swept");
        if (!killed_at(&t, save_only, nth))
            break;
        kills++;
        tiga_snapshot *s;
        tiga_buffer *b;
        OK(tiga_snapshot_open(ctx, t.path, &s));
        OK(tiga_snapshot_buffer(ctx, s, 0, TIGA_TIER_HOST, &b));
        OK(tiga_buffer_realize(ctx, b));
        old += tiga_buffer_bytes(b) == 8;
        new += tiga_buffer_bytes(b) == 12;
        tiga_buffer_free(b);
        tiga_snapshot_free(s);
    }
    cr_assert(kills > 5 && old > 3 && new > 0 && old + new == kills, "%d %d %d", kills, old, new);
    end(&t);
}

Test(memory_faults, killed_while_spilling, .timeout = 300) {
    bench t;
    begin(&t);
    int kills = 0;
    for (uint64_t nth = 1; killed_at(&t, evictions, nth); nth++, kills++)
        cr_assert_eq(count_files(t.folder, false), 0, "a file without a name leaves none");
    cr_assert(kills > 5, "%d", kills);
    end(&t);
}

Test(memory_faults, killed_while_writing_ahead, .timeout = 300) {
    bench t;
    begin(&t);
    int kills = 0;
    for (uint64_t nth = 1; killed_at(&t, ahead, nth); nth++, kills++)
        cr_assert_eq(count_files(t.folder, false), 0, "a file without a name leaves none");
    cr_assert(kills > 20, "%d", kills);
    end(&t);
}

/* A temporary file of a process that lives, or of another name, is not swept. */
Test(memory_faults, only_what_is_ours_is_swept) {
    bench t;
    begin(&t);
    char name[256];
    static const char *const kept[] = {"a.tiga.1.0.tmp", "b.tiga.999999999.0.tmp", "a.tiga.999999999.0.tmpx",
                                       "a.tiga.999999999.tmp", "xa.tiga.999999999.0.tmp"};
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "%s/%s", t.folder, kept[i]);
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    snprintf(name, sizeof name, "%s/a.tiga.999999999.7.tmp", t.folder);
    close(open(name, O_CREAT | O_WRONLY, 0600));
    prepare_snapshot(&t);
    cr_assert_neq(access(name, F_OK), 0);
    cr_assert_eq(count_files(t.folder, false), 6);
    end(&t);
}
