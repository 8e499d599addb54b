/* Scopes: options from text, budgets before allocations, reports, who pays. */
#include "memory_support.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* The example at the head of tiga/memory.h. */
Test(scopes, the_example_of_the_header) {
    tiga_context *ctx = new_context();
    tiga_execution_options o = tiga_execution_defaults();
    o.spill_dir = "/var/tmp";
    OK(tiga_execution_set_budget(ctx, &o, "host", "1MiB"));
    OK(tiga_execution_begin(ctx, &o, NULL));
    tiga_buffer *b;
    tiga_pin p;
    OK(tiga_buffer_new(ctx, "x", TIGA_TIER_HOST, 4096, &b));
    OK(tiga_buffer_pin(ctx, b, TIGA_WRITE, &p));
    memset(p.data, 1, 4096);
    tiga_buffer_unpin(&p);
    OK(tiga_buffer_spill(ctx, b));
    tiga_buffer_free(b);
    OK(tiga_execution_end(ctx));
    tiga_context_free(ctx);
}

Test(scopes, sizes_are_exact) {
    tiga_context *ctx = new_context();
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"0", 0},
                {"128", 128},
                {"1KiB", 1024},
                {"3MiB", 3 << 20},
                {"1GiB", 1 << 30},
                {"2TiB", (int64_t)2 << 40},
                {"007", 7},
                {"9223372036854775807", INT64_MAX},
                {"8388607TiB", (int64_t)8388607 << 40}};
    static const char *const bad[] = {"",   "KiB", "1KB",  "1.5GiB", " 1",  "1 ",      "1 KiB", "-1",
                                      "+1", "1k",  "1kib", "0x10",   "1e3", "1KiBKiB", "GiB1",  "١"};
    int64_t n;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        OK(tiga_bytes_parse(ctx, good[i].text, &n));
        cr_assert_eq(n, good[i].bytes, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        n = 77;
        FAILS(tiga_bytes_parse(ctx, bad[i], &n), TIGA_E_ARGUMENT);
        cr_assert_eq(n, 77);
    }
    FAILS(tiga_bytes_parse(ctx, "9223372036854775808", &n), TIGA_E_RANGE);
    FAILS(tiga_bytes_parse(ctx, "8388608TiB", &n), TIGA_E_RANGE);
    FAILS(tiga_bytes_parse(ctx, "99999999999999999999999999KiB", &n), TIGA_E_RANGE);
    tiga_context_free(ctx);
}

Test(scopes, tiers_and_aliases) {
    tiga_context *ctx = new_context();
    static const struct {
        const char *text;
        int32_t tier;
    } names[] = {{"host", 0},        {"ram", 0},  {"device", 1}, {"hbm", 1}, {"pinned", 2},
                 {"host-pinned", 2}, {"disk", 3}, {"nvme", 3},   {"ssd", 3}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int32_t tier = -1;
        OK(tiga_tier_parse(ctx, names[i].text, &tier));
        cr_assert_eq(tier, names[i].tier);
    }
    int32_t tier;
    FAILS(tiga_tier_parse(ctx, "RAM", &tier), TIGA_E_NAME);
    tiga_execution_options o = tiga_execution_defaults();
    OK(tiga_execution_set_budget(ctx, &o, "ram", "1MiB"));
    OK(tiga_execution_set_budget(ctx, &o, "ssd", "0"));
    FAILS(tiga_execution_set_budget(ctx, &o, "host", "1MiB"), TIGA_E_ARGUMENT);
    cr_assert(strstr(said, "twice"));
    cr_assert(o.budget[TIGA_TIER_HOST] == 1 << 20 && o.budget[TIGA_TIER_DISK] == 0 && o.budget[TIGA_TIER_DEVICE] < 0);
    tiga_context_free(ctx);
}

Test(scopes, wrong_options) {
    tiga_context *ctx = new_context();
    tiga_execution_options o = tiga_execution_defaults();
    tiga_execution *e;
    FAILS(tiga_execution_end(ctx), TIGA_E_ARGUMENT);
    o.eviction = TIGA_EVICT_LRU;
    FAILS(tiga_execution_begin(ctx, &o, &e), TIGA_E_ARGUMENT); /* no folder */
    o.eviction = 7;
    FAILS(tiga_execution_begin(ctx, &o, &e), TIGA_E_ARGUMENT);
    o = tiga_execution_defaults();
    o.device = "cuda:0";
    FAILS(tiga_execution_begin(ctx, &o, &e), TIGA_E_UNSUPPORTED);
    o = tiga_execution_defaults();
    o.spill_dir = "/nowhere/at/all";
    FAILS(tiga_execution_begin(ctx, &o, &e), TIGA_E_FILE);
    o.spill_dir = "/etc/passwd";
    FAILS(tiga_execution_begin(ctx, &o, &e), TIGA_E_FILE);
    o = tiga_execution_defaults();
    o.struct_bytes = 0;
    FAILS(tiga_execution_begin(ctx, &o, &e), TIGA_E_ARGUMENT);
    cr_assert(e == NULL && !tiga_execution_active(ctx));
    OK(tiga_execution_begin(ctx, NULL, NULL));
    FAILS(tiga_execution_begin(ctx, NULL, NULL), TIGA_E_ARGUMENT); /* nesting */
    cr_assert(tiga_execution_active(ctx));
    OK(tiga_execution_end(ctx));
    FAILS(tiga_execution_end(ctx), TIGA_E_ARGUMENT);
    OK(tiga_execution_begin(ctx, NULL, NULL));
    tiga_context_free(ctx); /* ends it */
}

Test(scopes, several_contexts_share_one) {
    tiga_context *ctx = new_context(), *other = new_context();
    tiga_execution_options o = scope(1000, -1, NULL, TIGA_EVICT_ERROR);
    tiga_execution *run;
    tiga_buffer *a, *b;
    OK(tiga_execution_begin(ctx, &o, &run));
    cr_assert_eq(tiga_execution_leave(other), TIGA_E_ARGUMENT);
    cr_assert_eq(tiga_execution_enter(other, NULL), TIGA_E_ARGUMENT);
    cr_assert_eq(tiga_execution_enter(ctx, run), TIGA_E_ARGUMENT); /* nesting */
    OK(tiga_execution_enter(other, run));
    cr_assert(tiga_execution_active(other));
    cr_assert_eq(tiga_execution_enter(other, run), TIGA_E_ARGUMENT);
    OK(tiga_buffer_new(other, "a", TIGA_TIER_HOST, 700, &a));
    FAILS(tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, 301, &b), TIGA_E_BUDGET);
    cr_assert_eq(report(run).live[0], 700);
    OK(tiga_execution_end(ctx));
    cr_assert(!report(run).active);
    OK(tiga_buffer_new(other, "b", TIGA_TIER_HOST, 300, &b)); /* an account goes on when it has ended */
    cr_assert_eq(report(run).live[0], 1000);
    OK(tiga_execution_leave(other));
    cr_assert(!tiga_execution_active(other));
    tiga_buffer_free(a);
    tiga_buffer_free(b);
    cr_assert_eq(report(run).live[0], 0);
    OK(tiga_execution_enter(other, run));
    tiga_context_free(other); /* leaves it */
    tiga_execution_free(run);
    OK(tiga_execution_begin(ctx, &o, &run));
    other = new_context();
    OK(tiga_execution_enter(other, run));
    tiga_context_free(other); /* leaves it, and does not end it */
    cr_assert(report(run).active);
    tiga_execution_free(run);
    tiga_context_free(ctx);
}

Test(scopes, budget_is_checked_first_and_nothing_is_lost) {
    tiga_context *ctx = new_context();
    tiga_execution_options o = scope(1000, -1, NULL, TIGA_EVICT_ERROR);
    tiga_execution *run;
    tiga_buffer *a, *b, *c;
    OK(tiga_execution_begin(ctx, &o, &run));
    OK(tiga_buffer_new(ctx, "a", TIGA_TIER_HOST, 600, &a));
    OK(fill(ctx, a, 1));
    base_inject_at(BASE_INJECT_ALLOC, 0);
    FAILS(tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, 401, &b), TIGA_E_BUDGET);
    cr_assert_eq(b, NULL);
    cr_assert_str_eq(said, "b needs 401 bytes on the host; 600 of its budget of 1000 are in use");
    OK(tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, 400, &b));
    FAILS(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, INT64_MAX, &c), TIGA_E_BUDGET);
    FAILS(tiga_buffer_new(ctx, NULL, TIGA_TIER_DEVICE, 1, &c), TIGA_E_UNSUPPORTED);
    FAILS(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, -1, &c), TIGA_E_ARGUMENT);
    OK(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, 0, &c));
    tiga_memory_report r = report(run);
    cr_assert(r.live[0] == 1000 && r.peak[0] == 1000 && r.budget[0] == 1000 && r.budget[3] == -1 && r.live[3] == 0);
    cr_assert(r.active == 1 && r.shared_live[0] == -1 && *r.scope && *r.exclusions);
    tiga_buffer *view = tiga_buffer_retain(b);
    tiga_buffer_free(b);
    cr_assert_eq(report(run).live[0], 1000); /* a view owns it */
    tiga_buffer_free(view);
    cr_assert_eq(report(run).live[0], 600);
    OK(tiga_execution_end(ctx));
    expect(ctx, a, 1);
    tiga_buffer *outside;
    OK(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, 5000, &outside));
    r = report(run);
    cr_assert(r.live[0] == 600 && r.peak[0] == 1000 && r.active == 0); /* it keeps its owner */
    cr_assert(tiga_buffer_owner(a) == run && tiga_buffer_owner(outside) != run);
    tiga_buffer_free(a);
    tiga_buffer_free(c);
    cr_assert_eq(report(run).live[0], 0);
    tiga_execution_free(run);
    tiga_context_free(ctx);
    tiga_buffer_free(outside); /* buffers may outlive the context */
}

Test(scopes, what_the_context_was_made_with_is_kept) {
    tiga_context_options co = tiga_context_defaults();
    co.host_budget_bytes = 500;
    tiga_context *ctx;
    cr_assert_eq(tiga_context_new(&co, &ctx), TIGA_OK);
    tiga_buffer *b;
    FAILS(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, 501, &b), TIGA_E_BUDGET);
    OK(tiga_execution_begin(ctx, NULL, NULL));
    FAILS(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, 501, &b), TIGA_E_BUDGET);
    OK(tiga_execution_end(ctx));
    tiga_context_free(ctx);
}

Test(scopes, pinned_memory_has_its_own_budget) {
    tiga_context *ctx = new_context();
    tiga_execution_options o = scope(0, -1, NULL, TIGA_EVICT_ERROR);
    o.budget[TIGA_TIER_PINNED] = 8192;
    tiga_execution *run;
    OK(tiga_execution_begin(ctx, &o, &run));
    tiga_buffer *a, *b;
    OK(tiga_buffer_new(ctx, "p", TIGA_TIER_PINNED, 8000, &a));
    FAILS(tiga_buffer_new(ctx, "q", TIGA_TIER_PINNED, 193, &b), TIGA_E_BUDGET);
    cr_assert(strstr(said, "of pinned memory"));
    OK(fill(ctx, a, 3));
    OK(tiga_buffer_spill(ctx, a));
    cr_assert(report(run).live[TIGA_TIER_PINNED] == 0 && report(run).live[TIGA_TIER_DISK] == 8000);
    expect(ctx, a, 3);
    cr_assert_eq(residency(a).tier, TIGA_TIER_PINNED);
    tiga_buffer_free(a);
    OK(tiga_execution_end(ctx));
    tiga_execution_free(run);
    tiga_context_free(ctx);
}

static tiga_buffer *garbage;
static int collected;
static void collect(void *user) {
    (void)user;
    collected++;
    tiga_buffer_free(garbage);
    garbage = NULL;
}

Test(scopes, the_host_collects_before_a_budget_is_refused) {
    tiga_context *ctx = new_context();
    tiga_execution_options o = scope(1000, -1, NULL, TIGA_EVICT_ERROR);
    o.collect = collect;
    OK(tiga_execution_begin(ctx, &o, NULL));
    OK(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, 700, &garbage));
    tiga_buffer *b, *c;
    OK(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, 700, &b));
    cr_assert(collected == 1 && !garbage);
    FAILS(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, 700, &c), TIGA_E_BUDGET);
    cr_assert_eq(collected, 2);
    tiga_buffer_free(b);
    tiga_context_free(ctx);
}

/* ---- auto ---- */
static void put(const char *root, const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = full + strlen(root) + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(full, 0700);
            *p = '/';
        }
    FILE *f = fopen(full, "w");
    cr_assert(f != NULL);
    fputs(text, f);
    fclose(f);
}

Test(scopes, automatic_budgets_come_from_groups_and_free_memory) {
    char root[64], command[128];
    make_folder(root);
    cr_assert_eq(hr_memory_left(root), INT64_MAX);
    put(root, "proc/meminfo", "MemTotal: 4000 kB\nMemAvailable:    3000 kB\n");
    cr_assert_eq(hr_memory_left(root), 3000 * 1024);
    put(root, "proc/self/cgroup", "0::/a/b\n");
    put(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
    cr_assert_eq(hr_memory_left(root), 3000 * 1024);
    put(root, "sys/fs/cgroup/a/memory.max", "2000000\n"); /* one above counts too */
    put(root, "sys/fs/cgroup/a/memory.current", "600000\n");
    put(root, "sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 100000\n");
    cr_assert_eq(hr_memory_left(root), 2000000 - 500000);
    put(root, "sys/fs/cgroup/a/b/memory.max", "1000\n");
    put(root, "sys/fs/cgroup/a/b/memory.current", "3000\n");
    cr_assert_eq(hr_memory_left(root), 0);
    put(root, "proc/self/cgroup", "5:cpu:/x\n4:memory:/c\n");
    put(root, "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "70000\n");
    put(root, "sys/fs/cgroup/memory/c/memory.usage_in_bytes", "20000\n");
    cr_assert_eq(hr_memory_left(root), 50000);
    snprintf(command, sizeof command, "rm -r %s", root);
    cr_assert_eq(system(command), 0);

    tiga_context *ctx = new_context();
    tiga_execution_options o = tiga_execution_defaults();
    o.spill_dir = "/var/tmp";
    OK(tiga_execution_set_auto(ctx, &o));
    cr_assert(o.budget[TIGA_TIER_HOST] > 1 << 20 && o.budget[TIGA_TIER_DISK] > 1 << 20);
    o.budget[TIGA_TIER_HOST] = 5;
    OK(tiga_execution_set_auto(ctx, &o));
    cr_assert_eq(o.budget[TIGA_TIER_HOST], 5);
    tiga_context_free(ctx);
}

/* ---- shared ---- */
static void shared_name(char *name) { sprintf(name, "test-%ld", (long)getpid()); }

/* A child that takes `bytes`, tells, and waits to be told to end (or is killed). */
static pid_t holder(const char *name, int64_t bytes, int *from, int *to) {
    int up[2], down[2];
    cr_assert(pipe(up) == 0 && pipe(down) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        tiga_context *ctx;
        tiga_context_new(NULL, &ctx);
        tiga_execution_options o = scope(1000, 500, NULL, TIGA_EVICT_ERROR);
        o.shared = name;
        tiga_buffer *b = NULL;
        tiga_status status = tiga_execution_begin(ctx, &o, NULL);
        if (status == TIGA_OK)
            status = tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, bytes, &b);
        char c = (char)status;
        if (write(up[1], &c, 1) != 1 || read(down[0], &c, 1) != 1)
            _exit(2);
        tiga_buffer_free(b);
        tiga_context_free(ctx);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    *from = up[0];
    *to = down[1];
    return pid;
}

static int answer_of(int from) {
    char c = 99;
    cr_assert_eq(read(from, &c, 1), 1);
    return c;
}

Test(scopes, one_budget_for_many_processes) {
    char name[64], path[128];
    shared_name(name);
    tiga_context *ctx = new_context();
    tiga_execution_options o = scope(1000, 500, NULL, TIGA_EVICT_ERROR);
    o.shared = name;
    tiga_execution *run;
    OK(tiga_execution_begin(ctx, &o, &run));
    tiga_buffer *a, *b;
    OK(tiga_buffer_new(ctx, NULL, TIGA_TIER_HOST, 300, &a));
    int from, to, from2, to2;
    pid_t child = holder(name, 600, &from, &to);
    cr_assert_eq(answer_of(from), TIGA_OK);
    cr_assert(report(run).shared_live[0] == 900 && report(run).live[0] == 300);
    FAILS(tiga_buffer_new(ctx, "x", TIGA_TIER_HOST, 101, &b), TIGA_E_BUDGET);
    cr_assert(strstr(said, "900 of the budget of 1000") && strstr(said, "300 of them here"), "%s", said);
    pid_t other = holder(name, 101, &from2, &to2);
    cr_assert_eq(answer_of(from2), TIGA_E_BUDGET);
    cr_assert_eq(write(to2, "x", 1), 1);
    cr_assert_eq(waitpid(other, NULL, 0), other);
    kill(child, SIGKILL); /* what it held comes back */
    cr_assert_eq(waitpid(child, NULL, 0), child);
    OK(tiga_buffer_new(ctx, "x", TIGA_TIER_HOST, 700, &b));
    cr_assert_eq(report(run).shared_live[0], 1000);
    tiga_buffer_free(b);
    child = holder(name, 700, &from, &to);
    cr_assert_eq(answer_of(from), TIGA_OK);
    cr_assert_eq(write(to, "x", 1), 1); /* ends as it should */
    cr_assert_eq(waitpid(child, NULL, 0), child);
    cr_assert_eq(report(run).shared_live[0], 300);
    tiga_buffer_free(a);
    OK(tiga_execution_end(ctx));
    snprintf(path, sizeof path, "/dev/shm/tiga-%ld-%s", (long)geteuid(), name);
    cr_assert_eq(access(path, F_OK), 0);
    tiga_execution_free(run);
    cr_assert_neq(access(path, F_OK), 0); /* the last one removes it */
    tiga_context_free(ctx);
}

/* Who lives cannot be told then: all count as alive, this process too. */
Test(scopes, sharers_without_a_free_descriptor) {
    char name[64];
    shared_name(name);
    tiga_context *ctx = new_context();
    tiga_execution_options o = scope(100, 500, NULL, TIGA_EVICT_ERROR);
    o.shared = name;
    tiga_execution *run;
    OK(tiga_execution_begin(ctx, &o, &run));
    tiga_buffer *a, *b;
    OK(tiga_buffer_new(ctx, "a", TIGA_TIER_HOST, 80, &a));
    struct rlimit old, none;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    tiga_status status = tiga_buffer_new(ctx, "b", TIGA_TIER_HOST, 80, &b);
    int64_t live = report(run).shared_live[0];
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    cr_assert(status == TIGA_E_BUDGET && live == 80, "%d, %lld bytes", (int)status, (long long)live);
    tiga_error_clear(ctx);
    cr_assert_eq(report(run).shared_live[0], 80);
    tiga_buffer_free(a);
    OK(tiga_execution_end(ctx));
    tiga_execution_free(run);
    tiga_context_free(ctx);
}

/* Killed between the name and the size, or before the lock was made: two that join share what is made anew. */
Test(scopes, makers_that_died_are_replaced, .timeout = 60) {
    for (int sized = 0; sized < 2; sized++) {
        char name[64], path[128];
        shared_name(name);
        snprintf(path, sizeof path, "/tiga-%ld-%s", (long)geteuid(), name);
        int fd = shm_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        cr_assert(fd >= 0 && (!sized || ftruncate(fd, 1 << 20) == 0));
        close(fd);
        tiga_context *ctx = new_context();
        tiga_execution_options o = scope(1000, 500, NULL, TIGA_EVICT_ERROR);
        o.shared = name;
        int from, to;
        pid_t child = holder(name, 600, &from, &to); /* at the same time */
        tiga_execution *run;
        OK(tiga_execution_begin(ctx, &o, &run));
        cr_assert_eq(answer_of(from), TIGA_OK);
        cr_assert_eq(report(run).shared_live[0], 600);
        cr_assert_eq(write(to, "x", 1), 1);
        cr_assert_eq(waitpid(child, NULL, 0), child);
        OK(tiga_execution_end(ctx));
        tiga_execution_free(run);
        tiga_context_free(ctx);
    }
}

Test(scopes, shared_budgets_must_agree) {
    char name[64];
    shared_name(name);
    tiga_context *ctx = new_context(), *other = new_context();
    tiga_execution_options o = scope(1000, 500, NULL, TIGA_EVICT_ERROR);
    o.shared = "a/b";
    FAILS(tiga_execution_begin(ctx, &o, NULL), TIGA_E_ARGUMENT);
    o.shared = name;
    OK(tiga_execution_begin(ctx, &o, NULL));
    o.budget[0] = 2000;
    cr_assert_eq(tiga_execution_begin(other, &o, NULL), TIGA_E_RANGE);
    OK(tiga_execution_end(ctx));
    tiga_error_clear(other);
    cr_assert_eq(tiga_execution_begin(other, &o, NULL), TIGA_OK); /* nobody is left: the budget is new */
    tiga_context_free(other);
    tiga_context_free(ctx);
}

/* Killed at any moment, with the lock held too: the others go on and the bytes come back. */
Test(scopes, killed_sharers_leave_nothing, .timeout = 120) {
    char name[64];
    shared_name(name);
    tiga_context *ctx = new_context();
    tiga_execution_options o = scope(1000000, 500, NULL, TIGA_EVICT_ERROR);
    o.shared = name;
    tiga_execution *run;
    OK(tiga_execution_begin(ctx, &o, &run));
    for (int round = 0; round < 40; round++) {
        pid_t child = fork();
        if (child == 0)
            for (;;) { /* charges and gives back until killed, through the fork's own slot */
                rt_try_charge(run, TIGA_TIER_HOST, 100);
                rt_discharge(run, TIGA_TIER_HOST, 100);
            }
        for (int i = 0; i < 200 + 37 * round; i++)
            if (rt_try_charge(run, TIGA_TIER_HOST, 10))
                rt_discharge(run, TIGA_TIER_HOST, 10);
        kill(child, SIGKILL);
        cr_assert_eq(waitpid(child, NULL, 0), child);
        cr_assert_eq(report(run).shared_live[0], 0);
    }
    OK(tiga_execution_end(ctx));
    tiga_execution_free(run);
    tiga_context_free(ctx);
}
