/* Named versions in tiers: order of reads and writes, transfers, capacity, failures. */
#include "memory_support.h"

#include <fcntl.h>
#include <pthread.h>

enum { HOST = TIGA_TIER_HOST, PINNED = TIGA_TIER_PINNED, DISK = TIGA_TIER_DISK };

typedef struct bench {
    tiga_context *ctx;
    tiga_execution *run;
    tiga_hierarchy *h;
    char folder[64];
} bench;

static void begin(bench *t, int64_t host, int64_t disk) {
    tiga_context *ctx = t->ctx = new_context();
    make_folder(t->folder);
    tiga_execution_options o = scope(host, disk, t->folder, TIGA_EVICT_ERROR);
    OK(tiga_execution_begin(ctx, &o, &t->run));
    OK(tiga_hierarchy_new(ctx, &t->h));
}

static void end(bench *t, tiga_status wanted) {
    tiga_context *ctx = t->ctx;
    FAILS(tiga_hierarchy_close(ctx, t->h), wanted);
    tiga_memory_report r = report(t->run);
    for (int i = 0; i < TIGA_TIERS; i++)
        cr_assert_eq(r.live[i], 0);
    tiga_execution_free(t->run);
    tiga_context_free(ctx);
    remove_folder(t->folder);
}

static void put(bench *t, const char *name, int64_t version, int32_t tier, int value, size_t n) {
    tiga_context *ctx = t->ctx;
    void *data;
    OK(tiga_hierarchy_pin(ctx, t->h, name, version, tier, TIGA_WRITE, &data));
    memset(data, value, n);
    OK(tiga_hierarchy_unpin(ctx, t->h, name, version, tier));
}

static void get(bench *t, const char *name, int64_t version, int32_t tier, int value, size_t n) {
    tiga_context *ctx = t->ctx;
    void *data;
    OK(tiga_hierarchy_pin(ctx, t->h, name, version, tier, TIGA_READ, &data));
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(((unsigned char *)data)[i], value);
    OK(tiga_hierarchy_unpin(ctx, t->h, name, version, tier));
}

Test(hierarchy, values_go_to_the_disk_and_back) {
    bench t;
    begin(&t, -1, -1);
    tiga_context *ctx = t.ctx;
    enum { N = 3000001 };
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, HOST, N));
    put(&t, "x", 1, HOST, 5, N);
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, DISK)); /* allocates there */
    put(&t, "x", 1, HOST, 6, N);                               /* waits until it has been read (WAR) */
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, HOST)); /* RAW on the disk, WAW at home */
    get(&t, "x", 1, HOST, 5, N);
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, PINNED)); /* a chain: two transfers in order */
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, PINNED, HOST));
    get(&t, "x", 1, HOST, 5, N);
    tiga_memory_report r = report(t.run);
    cr_assert(r.live[HOST] == N && r.live[DISK] == N && r.live[PINNED] == N);
    OK(tiga_hierarchy_release(ctx, t.h, "x", 1, HOST));
    cr_assert_eq(report(t.run).live[HOST], 0);
    OK(tiga_hierarchy_wait(ctx, t.h, "x", 1, DISK));
    end(&t, TIGA_OK);
}

Test(hierarchy, versions_and_names) {
    bench t;
    begin(&t, -1, -1);
    tiga_context *ctx = t.ctx;
    int64_t v = 0;
    FAILS(tiga_hierarchy_latest(ctx, t.h, "x", &v), TIGA_E_NAME);
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 3, HOST, 10));
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 9, HOST, 10));
    OK(tiga_hierarchy_allocate(ctx, t.h, "y", 50, HOST, 10));
    FAILS(tiga_hierarchy_latest(ctx, t.h, "x", &v), TIGA_E_NAME); /* none has a value */
    put(&t, "x", 3, HOST, 1, 10);
    OK(tiga_hierarchy_latest(ctx, t.h, "x", &v));
    cr_assert_eq(v, 3);
    put(&t, "x", 9, HOST, 1, 10);
    OK(tiga_hierarchy_latest(ctx, t.h, "x", &v));
    cr_assert_eq(v, 9);
    OK(tiga_hierarchy_release(ctx, t.h, "x", 9, HOST));
    OK(tiga_hierarchy_latest(ctx, t.h, "x", &v));
    cr_assert_eq(v, 3);
    FAILS(tiga_hierarchy_allocate(ctx, t.h, "x", 3, HOST, 10), TIGA_E_ARGUMENT); /* twice */
    FAILS(tiga_hierarchy_allocate(ctx, t.h, "x", 4, HOST, 11), TIGA_E_ARGUMENT); /* another size */
    cr_assert(strstr(said, "10 bytes, not 11"), "%s", said);
    end(&t, TIGA_OK);
}

Test(hierarchy, steps_out_of_order) {
    bench t;
    begin(&t, -1, -1);
    tiga_context *ctx = t.ctx;
    void *data;
    FAILS(tiga_hierarchy_pin(ctx, t.h, "x", 1, HOST, TIGA_READ, &data), TIGA_E_NAME);
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, HOST, 10));
    FAILS(tiga_hierarchy_pin(ctx, t.h, "x", 1, HOST, TIGA_READ, &data), TIGA_E_ARGUMENT); /* never written */
    FAILS(tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, DISK), TIGA_E_ARGUMENT);
    FAILS(tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, HOST), TIGA_E_NAME);
    FAILS(tiga_hierarchy_unpin(ctx, t.h, "x", 1, HOST), TIGA_E_ARGUMENT);
    OK(tiga_hierarchy_pin(ctx, t.h, "x", 1, HOST, TIGA_WRITE, &data));
    FAILS(tiga_hierarchy_pin(ctx, t.h, "x", 1, HOST, TIGA_READ, &data), TIGA_E_ARGUMENT); /* itself */
    cr_assert(strstr(said, "wait for itself"));
    FAILS(tiga_hierarchy_release(ctx, t.h, "x", 1, HOST), TIGA_E_ARGUMENT);
    FAILS(tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, DISK), TIGA_E_ARGUMENT);
    FAILS(tiga_hierarchy_close(ctx, t.h), TIGA_E_ARGUMENT);
    OK(tiga_hierarchy_unpin(ctx, t.h, "x", 1, HOST));
    OK(tiga_hierarchy_pin(ctx, t.h, "x", 1, HOST, TIGA_READ, &data));
    FAILS(tiga_hierarchy_pin(ctx, t.h, "x", 1, HOST, TIGA_WRITE, &data), TIGA_E_ARGUMENT);
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, DISK)); /* readers do not mind a reader */
    FAILS(tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, HOST), TIGA_E_ARGUMENT);
    OK(tiga_hierarchy_unpin(ctx, t.h, "x", 1, HOST));
    FAILS(tiga_hierarchy_pin(ctx, t.h, "x", 1, DISK, TIGA_READ, &data), TIGA_E_ARGUMENT);
    FAILS(tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, TIGA_TIER_DEVICE), TIGA_E_UNSUPPORTED);
    end(&t, TIGA_OK);
}

Test(hierarchy, capacity) {
    bench t;
    begin(&t, 250, 150);
    tiga_context *ctx = t.ctx;
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, HOST, 100));
    put(&t, "x", 1, HOST, 1, 100);
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, DISK));
    OK(tiga_hierarchy_allocate(ctx, t.h, "y", 1, HOST, 100));
    FAILS(tiga_hierarchy_allocate(ctx, t.h, "z", 1, HOST, 51), TIGA_E_BUDGET);
    put(&t, "y", 1, HOST, 1, 100);
    FAILS(tiga_hierarchy_transfer(ctx, t.h, "y", 1, HOST, DISK), TIGA_E_BUDGET);
    cr_assert(report(t.run).live[HOST] == 200 && report(t.run).live[DISK] == 100);
    FAILS(tiga_hierarchy_wait(ctx, t.h, "y", 1, DISK), TIGA_E_NAME);
    end(&t, TIGA_OK);
}

/* Every file call of a transfer out and back fails in turn: the accounts are right, the source keeps its value. */
Test(hierarchy, transfers_that_fail, .timeout = 120) {
    bench t;
    begin(&t, -1, -1);
    tiga_context *ctx = t.ctx;
    enum { N = 5000 };
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, HOST, N));
    put(&t, "x", 1, HOST, 5, N);
    bool through = false;
    for (uint64_t nth = 1; !through; nth++) {
        cr_assert(nth < 100);
        base_inject_at(BASE_INJECT_FILE, nth);
        tiga_status status = tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, DISK);
        if (status == TIGA_OK)
            status = tiga_hierarchy_wait(ctx, t.h, "x", 1, DISK);
        if (status == TIGA_OK) {
            put(&t, "x", 1, HOST, 6, N);
            status = tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, HOST);
            cr_assert_eq(status, TIGA_OK);
            status = tiga_hierarchy_wait(ctx, t.h, "x", 1, HOST);
            base_inject_at(BASE_INJECT_FILE, 0);
            through = status == TIGA_OK;
            if (through)
                get(&t, "x", 1, HOST, 5, N);
            put(&t, "x", 1, HOST, 5, N);
            OK(tiga_hierarchy_release(ctx, t.h, "x", 1, DISK));
        }
        base_inject_at(BASE_INJECT_FILE, 0);
        cr_assert(status == TIGA_OK || status == TIGA_E_FILE, "%s", tiga_error_text(ctx));
        cr_assert(status == TIGA_OK || *tiga_error_text(ctx));
        tiga_error_clear(ctx);
        FAILS(tiga_hierarchy_wait(ctx, t.h, "x", 1, DISK), TIGA_E_NAME); /* gone, with its bytes */
        cr_assert(report(t.run).live[DISK] == 0 && report(t.run).live[HOST] == N);
        get(&t, "x", 1, HOST, 5, N);
    }
    end(&t, TIGA_OK);
}

Test(hierarchy, a_failure_nobody_saw_is_returned_at_the_end) {
    bench t;
    begin(&t, -1, -1);
    tiga_context *ctx = t.ctx;
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, HOST, 100));
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, DISK, 100));
    put(&t, "x", 1, HOST, 5, 100);
    base_inject_at(BASE_INJECT_FILE, 1); /* the write */
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, DISK));
    FAILS(tiga_hierarchy_close(ctx, t.h), TIGA_E_FILE);
    base_inject_at(BASE_INJECT_FILE, 0);
    OK(tiga_hierarchy_new(ctx, &t.h));
    end(&t, TIGA_OK);
}

/* ---- transfers that wait behind a gate, asked for back to back ---- */

typedef struct gate {
    hr_job job; /* first */
    atomic_bool open;
} gate;

static void wait_at_gate(hr_job *job) {
    while (!atomic_load(&((gate *)job)->open))
        usleep(500);
}

static void close_gate(bench *t, gate *g) {
    *g = (gate){.job.run = wait_at_gate};
    hr_worker_add(t->run, &((hr_memory *)t->run->room)->worker, &g->job);
}

static void *open_later(void *user) {
    usleep(100000);
    atomic_store(&((gate *)user)->open, true);
    return NULL;
}

/* x is on disk only, with a byte of it flipped: it is the first value of the file. */
static void make_damaged(bench *t, int64_t n) {
    tiga_context *ctx = t->ctx;
    char path[64], byte;
    OK(tiga_hierarchy_allocate(ctx, t->h, "x", 1, HOST, n));
    put(t, "x", 1, HOST, 5, (size_t)n);
    OK(tiga_hierarchy_transfer(ctx, t->h, "x", 1, HOST, DISK));
    OK(tiga_hierarchy_wait(ctx, t->h, "x", 1, DISK));
    OK(tiga_hierarchy_release(ctx, t->h, "x", 1, HOST));
    snprintf(path, sizeof path, "/proc/self/fd/%d", ((hr_memory *)t->run->room)->spill.fd);
    int fd = open(path, O_RDWR); /* without O_DIRECT */
    cr_assert(fd >= 0 && pread(fd, &byte, 1, 0) == 1 && byte == 5);
    byte = 4;
    cr_assert_eq(pwrite(fd, &byte, 1, 0), 1);
    close(fd);
}

/* What failed goes, but not before the transfers that were to read it. */
Test(hierarchy, a_failed_target_stays_for_those_that_read_it, .timeout = 60) {
    for (int again = 0; again < 2; again++) {
        bench t;
        begin(&t, -1, -1);
        tiga_context *ctx = t.ctx;
        void *data;
        gate first, second;
        pthread_t opener;
        make_damaged(&t, 5000);
        close_gate(&t, &first);
        OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, HOST)); /* fails */
        close_gate(&t, &second);
        OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, HOST, PINNED));
        atomic_store(&first.open, true);
        pthread_create(&opener, NULL, open_later, &second);
        if (again) { /* a new target in its place */
            while (report(t.run).live[HOST])
                usleep(500);
            OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, HOST));
        } else {
            FAILS(tiga_hierarchy_pin(ctx, t.h, "x", 1, HOST, TIGA_READ, &data), TIGA_E_FORMAT);
        }
        cr_assert(atomic_load(&second.open), "it went while a transfer was to read it");
        pthread_join(opener, NULL);
        FAILS(tiga_hierarchy_wait(ctx, t.h, "x", 1, PINNED), TIGA_E_FORMAT);
        cr_assert(strstr(said, "could not be filled"), "%s", said);
        FAILS(tiga_hierarchy_wait(ctx, t.h, "x", 1, HOST), again ? TIGA_E_FORMAT : TIGA_E_NAME);
        cr_assert(report(t.run).live[HOST] == 0 && report(t.run).live[PINNED] == 0);
        end(&t, TIGA_OK);
    }
}

/* One that fails and then one that does not, into the same place: it has a value.  The other way round it has none. */
Test(hierarchy, the_last_transfer_into_a_place_counts, .timeout = 60) {
    bench t;
    begin(&t, -1, -1);
    tiga_context *ctx = t.ctx;
    void *data;
    gate g;
    make_damaged(&t, 5000);
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, PINNED, 5000));
    put(&t, "x", 1, PINNED, 7, 5000);
    close_gate(&t, &g);
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, HOST)); /* fails */
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, PINNED, HOST));
    atomic_store(&g.open, true);
    OK(tiga_hierarchy_wait(ctx, t.h, "x", 1, HOST));
    get(&t, "x", 1, HOST, 7, 5000);
    close_gate(&t, &g);
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, PINNED, HOST));
    OK(tiga_hierarchy_transfer(ctx, t.h, "x", 1, DISK, HOST)); /* fails */
    atomic_store(&g.open, true);
    FAILS(tiga_hierarchy_pin(ctx, t.h, "x", 1, HOST, TIGA_READ, &data), TIGA_E_FORMAT);
    cr_assert(strstr(said, "damaged"), "%s", said);
    end(&t, TIGA_OK);
}

/* ---- threads ---- */
enum { ROUNDS = 60, WORDS = 5000 };
typedef struct worker {
    bench *t;
    int id, wrong;
} worker;

/* Writers raise all words alike; readers see them alike; transfers carry a value that was whole. */
static void *work(void *user) {
    worker *w = user;
    tiga_context *ctx = w->t->ctx;
    tiga_hierarchy *h = w->t->h;
    for (int i = 0; i < ROUNDS; i++) {
        void *data;
        int32_t mode = (i + w->id) % 3 == 0 ? TIGA_WRITE : TIGA_READ;
        if (w->id == 0) {
            w->wrong += tiga_hierarchy_transfer(ctx, h, "x", 1, HOST, DISK) != TIGA_OK;
            w->wrong += tiga_hierarchy_transfer(ctx, h, "x", 1, DISK, PINNED) != TIGA_OK;
            w->wrong += tiga_hierarchy_wait(ctx, h, "x", 1, PINNED) != TIGA_OK;
            continue;
        }
        int32_t tier = mode == TIGA_READ && i % 2 ? PINNED : HOST;
        if (tiga_hierarchy_pin(ctx, h, "x", 1, tier, mode, &data) != TIGA_OK) {
            w->wrong++;
            continue;
        }
        uint32_t *words = data, first = words[0];
        for (int k = 0; k < WORDS; k++) {
            w->wrong += words[k] != first;
            if (mode == TIGA_WRITE)
                words[k]++;
        }
        w->wrong += tiga_hierarchy_unpin(ctx, h, "x", 1, tier) != TIGA_OK;
    }
    return NULL;
}

Test(hierarchy, many_threads, .timeout = 120) {
    bench t;
    begin(&t, -1, -1);
    tiga_context *ctx = t.ctx;
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, HOST, WORDS * 4));
    OK(tiga_hierarchy_allocate(ctx, t.h, "x", 1, PINNED, WORDS * 4));
    put(&t, "x", 1, HOST, 0, WORDS * 4);
    put(&t, "x", 1, PINNED, 0, WORDS * 4);
    worker w[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        w[i] = (worker){&t, i, 0};
        pthread_create(&threads[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(w[i].wrong, 0, "%s", tiga_error_text(ctx));
    }
    end(&t, TIGA_OK);
}
