/* The cache of compiled code with many at it: threads, processes, processes that are killed. */
#include "runtime_cache_support.h"

#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

TestSuite(cache_races, .init = cache_setup, .fini = cache_teardown);

enum { MANY = 8 };
static char log_path[160];

static int builds_logged(void) {
    size_t n = 0;
    free(read_file(log_path, &n));
    return (int)n;
}

static void start_log(void) { snprintf(log_path, sizeof log_path, "%s/log", parent); }

/* ---- threads ---- */

typedef struct runner {
    tiga_cache *cache;
    compiler *k;
    const char *source;
    tiga_context *context;
    tiga_status status;
    object *got;
    base_str message;
    atomic_int *gate;
} runner;

static void *run_one(void *arg) {
    runner *r = arg;
    atomic_fetch_sub(r->gate, 1);
    while (atomic_load(r->gate) > 0)
        sched_yield();
    r->status = get_with(r->cache, r->context, r->k, r->source, &r->got, &r->message);
    return NULL;
}

static void run_many(tiga_cache *c, compiler *k, const char *source, runner r[MANY]) {
    pthread_t threads[MANY];
    atomic_int gate = MANY;
    for (int i = 0; i < MANY; i++) {
        r[i] = (runner){.cache = c, .k = k, .source = source, .gate = &gate};
        cr_assert_eq(tiga_context_new(NULL, &r[i].context), TIGA_OK);
    }
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_one, &r[i]), 0);
    for (int i = 0; i < MANY; i++) {
        pthread_join(threads[i], NULL);
        tiga_context_free(r[i].context);
    }
}

static void release_many(runner r[MANY]) {
    for (int i = 0; i < MANY; i++) {
        if (r[i].got)
            fake_release(r[i].got);
        base_str_fini(&r[i].message);
    }
}

Test(cache_races, eight_threads_build_once) {
    runner r[MANY];
    for (int level = 0; level < 4; level++) { /* with and without memory and disk */
        compiler k = {.text = "code", .sleep_us = 30000};
        char source[2] = {(char)('0' + level), 0};
        tiga_cache *c = cache_of(level & 1 ? MEMORY : 0, level & 2 ? DISK : 0);
        run_many(c, &k, source, r);
        for (int i = 0; i < MANY; i++)
            cr_assert(r[i].status == TIGA_OK && !strcmp(r[i].got->bytes, "code"));
        tiga_cache_counters n = tiga_cache_get_counters(c);
        if (level != 0) {
            cr_assert_eq(k.builds, 1);
            cr_assert(n.misses == 1 && n.memory_hits + n.disk_hits == MANY - 1 && n.waited <= MANY - 1);
        }
        release_many(r);
        tiga_cache_free(c);
    }
}

Test(cache_races, eight_threads_hear_of_one_failure) {
    runner r[MANY];
    compiler k = {.text = "it is wrong", .sleep_us = 30000, .build_status = TIGA_E_PROGRAM};
    tiga_cache *c = cache_of(MEMORY, DISK);
    run_many(c, &k, "x", r);
    for (int i = 0; i < MANY; i++)
        cr_assert(r[i].status == TIGA_E_PROGRAM && !r[i].got && !strcmp(r[i].message.data, "it is wrong"));
    cr_assert_eq(k.builds, 1);
    release_many(r);
    tiga_cache_free(c);
}

/* Whoever fails for a reason of its own does not fail the others: each tries. */
Test(cache_races, eight_threads_do_not_share_bad_luck) {
    runner r[MANY];
    compiler k = {.text = "code", .sleep_us = 3000, .build_status = TIGA_E_MEMORY};
    tiga_cache *c = cache_of(MEMORY, DISK);
    run_many(c, &k, "x", r);
    for (int i = 0; i < MANY; i++)
        cr_assert(r[i].status == TIGA_E_MEMORY && !r[i].got);
    cr_assert_eq(k.builds, MANY);
    release_many(r);
    k.build_status = TIGA_OK;
    expect_object(c, &k, "x");
    tiga_cache_free(c);
}

/* Many keys, a memory for three, a disk for twenty: every answer is right and nothing is lost. */
static void *run_mixed(void *arg) {
    runner *r = arg;
    unsigned seed = (unsigned)(uintptr_t)r;
    for (int i = 0; i < 200; i++) {
        char source[16];
        snprintf(source, sizeof source, "%d", rand_r(&seed) % 30);
        compiler k = {.text = source, .object_bytes = 300 << 10};
        object *o;
        if (get_with(r->cache, r->context, &k, source, &o, NULL) != TIGA_OK || strcmp(o->bytes, source) != 0)
            abort();
        fake_release(o);
        if (i % 50 == 49)
            tiga_cache_clear(r->context, r->cache, NULL);
    }
    return NULL;
}

Test(cache_races, threads_and_evictions, .timeout = 100) {
    tiga_cache *c = cache_of(MEMORY, 3000);
    pthread_t threads[4];
    runner r[4] = {{0}};
    for (int i = 0; i < 4; i++) {
        r[i].cache = c;
        cr_assert_eq(tiga_context_new(NULL, &r[i].context), TIGA_OK);
        cr_assert_eq(pthread_create(&threads[i], NULL, run_mixed, &r[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        tiga_context_free(r[i].context);
    }
    cr_assert_eq(tiga_cache_get_counters(c).disk_errors, 0);
    cr_assert_gt(tiga_cache_get_counters(c).evicted_memory, 0);
    tiga_cache_free(c);
}

/* ---- sweeps ---- */

/* In place of the C library's: where a writer can be disturbed.  Each sweeps once more, as another thread or process might. */
static tiga_cache *swept_by;
static int locks, renames;

static void sweep_now(int *count) {
    tiga_cache *c = swept_by;
    swept_by = NULL; /* the sweep itself locks */
    if (!c)
        return;
    (*count)++;
    cr_assert_eq(tiga_cache_clear(ctx, c, NULL), TIGA_OK);
}

int flock(int fd, int operation) {
    if (operation != LOCK_UN && locks == 0)
        sweep_now(&locks);
    return (int)syscall(SYS_flock, fd, operation);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    if (locks)
        sweep_now(&renames);
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

static void store_while_swept(int locked_before) {
    rt_cache_file f = {.key = "key", .key_bytes = 3, .payload = "code", .payload_bytes = 4}, back;
    tiga_cache *c = cache_of(MEMORY, DISK);
    const char *why;
    int64_t n;
    int at = rt_cache_folder_open(c, true, &why);
    cr_assert_geq(at, 0);
    locks = locked_before;
    renames = 0;
    swept_by = c;
    cr_assert(rt_cache_file_write(at, "00112233445566778899aabbccddeeff", &f, &n), "%s", strerror(errno));
    cr_assert(swept_by == NULL && locks == 1 && renames == locked_before);
    cr_assert_eq(rt_cache_file_read(at, "00112233445566778899aabbccddeeff", &back), RT_CACHE_GOOD);
    base_free(back.buffer);
    cr_assert_eq(files_matching(".tmp", NULL), 0);
    close(at);
    tiga_cache_free(c);
}

Test(cache_races, a_sweep_before_the_lock_of_a_temporary) { store_while_swept(0); }

Test(cache_races, a_sweep_before_the_rename_of_a_temporary) { store_while_swept(1); }

/* ---- interruption ---- */

static void *interrupt_soon(void *arg) {
    usleep(50000);
    tiga_interrupt(arg);
    return NULL;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Test(cache_races, a_thread_that_waits_can_be_interrupted) {
    atomic_int gate = 1;
    compiler k = {.text = "code", .sleep_us = 1000000};
    tiga_cache *c = cache_of(MEMORY, 0);
    runner r = {.cache = c, .k = &k, .source = "x", .gate = &gate};
    cr_assert_eq(tiga_context_new(NULL, &r.context), TIGA_OK);
    pthread_t maker, interrupter;
    cr_assert_eq(pthread_create(&maker, NULL, run_one, &r), 0);
    while (!k.builds)
        sched_yield();
    cr_assert_eq(pthread_create(&interrupter, NULL, interrupt_soon, ctx), 0);
    object *o;
    double began = seconds();
    cr_assert_eq(get_with(c, ctx, &k, "x", &o, NULL), TIGA_E_INTERRUPTED);
    cr_assert_lt(seconds() - began, 0.5);
    cr_assert(!o && strstr(tiga_error_text(ctx), "another thread"));
    pthread_join(interrupter, NULL);
    pthread_join(maker, NULL);
    cr_assert(r.status == TIGA_OK && k.builds == 1);
    fake_release(r.got);
    tiga_context_free(r.context);
    tiga_cache_free(c);
}

/* A request that is part of a call does not forget what interrupted the call before; one that begins a call does. */
Test(cache_races, an_interruption_before_counts_inside_of_a_call) {
    static const tiga_cache_field fields[] = {{"source", "x", 1}};
    tiga_cache *c = cache_of(MEMORY, DISK);
    compiler k = {.text = "code"};
    char name[33];
    const char *why;
    int fd;
    bool waited = false;
    object *o;
    rt_cache_request r = {.fields = fields, .n_fields = 1, .ops = &fake_ops, .user = &k, .inside = true};
    base_hash_hex(hash_of(c, fields, 1), name);
    int dir = rt_cache_folder_open(c, true, &why);
    cr_assert_eq(rt_cache_lock(c, ctx, dir, name, &fd, &waited),
                 RT_CACHE_LOCKED); /* so that there is something to wait for */
    tiga_interrupt(ctx);
    cr_assert_eq(tiga_cache_get(c, ctx, &r, (void **)&o, NULL), TIGA_E_INTERRUPTED);
    cr_assert(tiga_cache_interrupted(ctx) && k.builds == 0 && !o);
    tiga_error_clear(ctx);
    r.inside = false;
    c->longest_wait_ns = 50000000;
    cr_assert_eq(tiga_cache_get(c, ctx, &r, (void **)&o, NULL), TIGA_OK);
    cr_assert(!tiga_cache_interrupted(ctx) && k.builds == 1);
    fake_release(o);
    rt_cache_unlock(dir, name, fd);
    close(dir);
    tiga_cache_free(c);
}

Test(cache_races, a_process_that_waits_can_be_interrupted) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(MEMORY, DISK);
    expect_object(c, &k, "other"); /* makes the folder */
    char name[33];
    const char *why;
    int fd;
    bool waited = false;
    tiga_cache_field fields[] = {field("kind", "cpu object"), field("file", "m.tg"), field("source", "x")};
    base_hash_hex(hash_of(c, fields, 3), name);
    int dir = rt_cache_folder_open(c, false, &why);
    cr_assert_eq(rt_cache_lock(c, ctx, dir, name, &fd, &waited),
                 RT_CACHE_LOCKED); /* flock knows descriptors, not processes */
    cr_assert_not(waited);
    pthread_t interrupter;
    cr_assert_eq(pthread_create(&interrupter, NULL, interrupt_soon, ctx), 0);
    object *o;
    double began = seconds();
    cr_assert_eq(get_with(c, ctx, &k, "x", &o, NULL), TIGA_E_INTERRUPTED);
    cr_assert_lt(seconds() - began, 0.5);
    cr_assert(!o && strstr(tiga_error_text(ctx), "another process"));
    pthread_join(interrupter, NULL);
    rt_begin(ctx); /* and one that hangs is not waited for for ever */
    tiga_error_clear(ctx);
    c->longest_wait_ns = 50000000;
    cr_assert_eq(get_with(c, ctx, &k, "x", &o, NULL), TIGA_OK);
    fake_release(o);
    cr_assert_eq(tiga_cache_get_counters(c).disk_errors, 1);
    cr_assert_eq(tiga_cache_clear(ctx, c, NULL), TIGA_OK);
    cr_assert_eq(files_matching(".lock", NULL), 1); /* it is held */
    rt_cache_unlock(dir, name, fd);
    close(dir);
    expect_object(c, &k, "x");
    cr_assert_eq(files_matching(".lock", NULL), 0);
    tiga_cache_free(c);
}

/* ---- processes ---- */

static pid_t start(void (*run)(int), int number) {
    pid_t child = fork();
    if (child == 0) {
        run(number);
        _exit(0);
    }
    return child;
}

static void expect_exit(pid_t child) {
    int status;
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
}

/* In a child: no cr_assert. */
static void get_one(int number) {
    (void)number;
    compiler k = {.text = "code", .log = log_path, .sleep_us = 30000};
    tiga_cache *c = cache_of(MEMORY, DISK);
    object *o;
    if (get_with(c, ctx, &k, "x", &o, NULL) != TIGA_OK || strcmp(o->bytes, "code") != 0)
        _exit(4);
    tiga_cache_counters n = tiga_cache_get_counters(c);
    if (n.misses + n.disk_hits != 1 || n.disk_errors || n.stale || n.misses != k.builds)
        _exit(5);
    fake_release(o);
    tiga_cache_free(c);
}

Test(cache_races, eight_processes_build_once, .timeout = 60) {
    start_log();
    for (int round = 0; round < 10; round++) {
        pid_t children[MANY];
        for (int i = 0; i < MANY; i++)
            children[i] = start(get_one, i);
        for (int i = 0; i < MANY; i++)
            expect_exit(children[i]);
        cr_assert_eq(builds_logged(), 1, "round %d: %d builds", round, builds_logged());
        cr_assert_eq(files_matching(".lock", NULL) + files_matching(".tmp", NULL), 0);
        char command[512];
        snprintf(command, sizeof command, "rm -rf %s %s", folder, log_path);
        cr_assert_eq(system(command), 0);
    }
}

/* Half of the keys are the same for all, the disk holds few of them, and every process clears now and then. */
static void get_mixed(int number) {
    unsigned seed = (unsigned)number;
    tiga_cache *c = cache_of(0, 3000);
    for (int i = 0; i < 100; i++) {
        char source[16];
        snprintf(source, sizeof source, "%d", rand_r(&seed) % 20);
        compiler k = {.text = source};
        object *o;
        if (get_with(c, ctx, &k, source, &o, NULL) != TIGA_OK || strcmp(o->bytes, source) != 0)
            _exit(4);
        fake_release(o);
        if (i % 40 == 39)
            tiga_cache_clear(ctx, c, NULL);
    }
    if (tiga_cache_get_counters(c).stale)
        _exit(5);
    tiga_cache_free(c);
}

Test(cache_races, processes_and_evictions, .timeout = 100) {
    pid_t children[MANY];
    for (int i = 0; i < MANY; i++)
        children[i] = start(get_mixed, i);
    for (int i = 0; i < MANY; i++)
        expect_exit(children[i]);
}

/* ---- killed ---- */

static char big[600001]; /* three pieces of a write */

static void get_and_die(int at) {
    compiler k = {.text = big};
    base_inject_kill_at(BASE_INJECT_FILE, (uint64_t)at);
    tiga_cache *c = cache_of(MEMORY, DISK);
    object *o;
    if (get_with(c, ctx, &k, "x", &o, NULL) != TIGA_OK)
        _exit(4);
    _exit(0);
}

static void expect_after_a_crash(const char *what, int n) {
    compiler k = {.text = big};
    tiga_cache *c = cache_of(MEMORY, DISK);
    double began = seconds();
    expect_object(c, &k, "x");
    cr_assert_lt(seconds() - began, 10, "%s %d", what, n);
    tiga_cache_counters count = tiga_cache_get_counters(c);
    cr_assert(count.stale == 0 && count.disk_errors == 0 && k.builds + count.disk_hits == 1, "%s %d: stale %d", what, n,
              (int)count.stale);
    if (k.builds)
        cr_assert_eq(files_matching(".lock", NULL), 0);
    tiga_cache_free(c);
}

/* At every system call of a build and its store. */
Test(cache_races, killed_at_every_system_call, .timeout = 100) {
    memset(big, 'k', sizeof big - 1);
    int at = 1, leftovers = 0, stored = 0;
    for (bool dies = true; dies; at++) {
        int status;
        pid_t child = start(get_and_die, at);
        cr_assert_eq(waitpid(child, &status, 0), child);
        dies = WIFSIGNALED(status);
        cr_assert(dies ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
        leftovers += files_matching(".tmp", NULL);
        stored += files_matching("", NULL);
        expect_after_a_crash("call", at);
        char command[512];
        snprintf(command, sizeof command, "rm -rf %s", folder);
        cr_assert_eq(system(command), 0);
        cr_assert_lt(at, 200);
    }
    cr_assert(at > 15 && leftovers >= 5 && stored >= 2, "%d %d %d", at, leftovers, stored);
}

static void build_for_ever(int number) {
    for (unsigned i = 0;; i++) {
        char source[32];
        snprintf(source, sizeof source, "%d", (int)((i * 7 + (unsigned)number) % 5));
        compiler k = {.text = big};
        tiga_cache *c = cache_of(0, 2000000); /* three of them */
        object *o;
        if (get_with(c, ctx, &k, source, &o, NULL) != TIGA_OK || strcmp(o->bytes, big) != 0)
            _exit(4);
        fake_release(o);
        tiga_cache_free(c);
    }
}

/* At any time, two processes at once. */
Test(cache_races, killed_at_any_time, .timeout = 100) {
    memset(big, 'k', sizeof big - 1);
    unsigned seed = 1;
    for (int round = 0; round < 40; round++) {
        pid_t a = start(build_for_ever, round), b = start(build_for_ever, round + 1);
        usleep(1000 + (useconds_t)rand_r(&seed) % 30000);
        cr_assert(kill(a, SIGKILL) == 0 && kill(b, SIGKILL) == 0);
        int status;
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(waitpid(i ? b : a, &status, 0), i ? b : a);
            cr_assert(WIFSIGNALED(status), "%x", status); /* it was at work, and right, until then */
        }
        compiler k = {.text = big};
        tiga_cache *c = cache_of(0, DISK);
        for (int i = 0; i < 5; i++) {
            char source[32];
            snprintf(source, sizeof source, "%d", i);
            expect_object(c, &k, source);
        }
        tiga_cache_counters n = tiga_cache_get_counters(c);
        cr_assert(n.stale == 0 && n.disk_errors == 0);
        tiga_cache_free(c);
    }
}

/* What a crash left behind goes when it is old and nobody holds it. */
Test(cache_races, leftovers_are_swept) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(0, DISK);
    expect_object(c, &k, "x");
    tiga_cache_free(c);
    char path[4][200];
    const char *endings[] = {"1-1.tmp", "2-2.tmp", "lock", "3-3.tmp"};
    int held = -1;
    for (int i = 0; i < 4; i++) {
        snprintf(path[i], sizeof path[i], "%s/0123456789abcdef0123456789abcdef.%s", folder, endings[i]);
        write_file(path[i], "left", 4);
        struct timespec t[2] = {{.tv_sec = time(NULL) - 1000}, {.tv_sec = time(NULL) - 1000}};
        if (i != 3) /* the last one is young */
            cr_assert_eq(utimensat(AT_FDCWD, path[i], t, 0), 0);
        if (i == 1) { /* its writer is slow, but lives */
            held = open(path[i], O_RDWR);
            cr_assert_eq(flock(held, LOCK_EX), 0);
        }
    }
    c = cache_of(0, DISK);
    expect_object(c, &k, "y");
    tiga_cache_free(c);
    cr_assert(access(path[0], F_OK) != 0 && access(path[1], F_OK) == 0 && access(path[2], F_OK) != 0 &&
              access(path[3], F_OK) == 0);
    close(held);
}

/* ---- fork ---- */

static void *get_slowly(void *arg) {
    runner *r = arg;
    r->status = get_with(r->cache, r->context, r->k, r->source, &r->got, NULL);
    return NULL;
}

/* A child does not wait for a thread of its parent, and a lock taken by its parent is not its own. */
Test(cache_races, fork_during_a_build, .timeout = 60) {
    start_log();
    compiler k = {.text = "code", .sleep_us = 300000, .log = log_path};
    tiga_cache *c = cache_of(MEMORY, DISK);
    runner r = {.cache = c, .k = &k, .source = "x"};
    cr_assert_eq(tiga_context_new(NULL, &r.context), TIGA_OK);
    pthread_t maker;
    cr_assert_eq(pthread_create(&maker, NULL, get_slowly, &r), 0);
    while (!k.builds)
        sched_yield();
    pid_t child = fork();
    if (child == 0) { /* waits for the lock of the parent, then finds what it made */
        object *o;
        if (get_with(c, ctx, &k, "x", &o, NULL) != TIGA_OK || strcmp(o->bytes, "code") != 0)
            _exit(4);
        fake_release(o);
        tiga_cache_free(c);
        usleep(300000); /* and lives on, with copies of the parent's descriptors */
        _exit(0);
    }
    pthread_join(maker, NULL);
    cr_assert_eq(r.status, TIGA_OK);
    fake_release(r.got);
    tiga_context_free(r.context);
    expect_exit(child);
    cr_assert_eq(builds_logged(), 1);
    tiga_cache_free(c);
}
