/* Launching: every unit exactly once, however many threads and chunks; scratch; interruption; a child of fork. */
#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static tiga_context *context_of(int threads) {
    tiga_context_options o = tiga_context_defaults();
    tiga_context *c;
    o.threads = threads;
    cr_assert_eq(tiga_context_new(&o, &c), TIGA_OK);
    return c;
}

/* out[r] += 1 + sum of sources: a unit run twice or not at all shows */
static void sum_rows(const tiga_launch_args *a, int64_t begin, int64_t end) {
    int64_t *out = a->buffers[0];
    for (int64_t r = begin; r < end; r++) {
        int64_t s = 1;
        for (int64_t e = a->graph.offsets[r]; e < a->graph.offsets[r + 1]; e++)
            s += a->graph.source_bits == 32 ? ((const int32_t *)a->graph.sources)[e]
                                            : ((const int64_t *)a->graph.sources)[e];
        out[r] += s;
    }
}
static const tiga_kernel_code sum_code = {"sum", sum_rows, sum_rows, NULL, 1, 1, TIGA_READS_SOURCE, 1, 1, 0, NULL};

static int64_t *run_sum(tiga_context *c, const tiga_csr *g) {
    int64_t *out = calloc((size_t)g->n_dst + 1, 8);
    void *buffers[] = {out};
    rt_launch l = {.code = &sum_code, .graph = g, .n_rows = g->n_dst, .buffers = buffers, .output_bytes = g->n_dst * 8};
    cr_assert_eq(rt_launch_run(c, &l), TIGA_OK);
    return out;
}

static void check_graph(tiga_graph *g) {
    const tiga_csr *c = tiga_graph_csr(g);
    tiga_context *one = context_of(1);
    int64_t *want = run_sum(one, c);
    for (int64_t r = 0; r < c->n_dst; r++)
        cr_assert_gt(want[r], 0);
    for (int threads = 2; threads <= 7; threads++) {
        tiga_context *many = context_of(threads);
        int64_t *got = run_sum(many, c);
        cr_assert(memcmp(got, want, (size_t)c->n_dst * 8) == 0, "%d threads", threads);
        free(got);
        tiga_context_free(many);
    }
    free(want);
    tiga_context_free(one);
    tiga_graph_free(g);
}

Test(launch, every_row_once) {
    tiga_context *ctx = context_of(2);
    tiga_graph *g;
    static const int64_t sizes[] = {0, 1, 2, 3, 17, 1000, 60000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cr_assert_eq(tiga_graph_uniform(ctx, sizes[i], 5, 1, &g), TIGA_OK);
        check_graph(g);
    }
    cr_assert_eq(tiga_graph_rmat(ctx, 15, 16, 1, &g), TIGA_OK);
    check_graph(g);
    cr_assert_eq(tiga_graph_local(ctx, 300000, 0, &g), TIGA_OK); /* no edges */
    check_graph(g);
    int64_t n = 400000, *dst = malloc((size_t)n * 8), *src = malloc((size_t)n * 8);
    for (int64_t i = 0; i < n; i++) { /* half of the edges in the last row, many empty rows */
        dst[i] = i % 2 ? 999 : i % 7;
        src[i] = i % 1000;
    }
    cr_assert_eq(tiga_graph_from_coo(ctx, 1000, 1000, n, dst, src, &g), TIGA_OK);
    check_graph(g);
    cr_assert_eq(tiga_graph_from_coo(ctx, 1, 1000, 0, NULL, NULL, &g), TIGA_OK);
    check_graph(g);
    free(dst);
    free(src);
    tiga_context_free(ctx);
}

/* ---- units of 4096 rows, no edges ---- */
static void count_units(const tiga_launch_args *a, int64_t begin, int64_t end) {
    int64_t *out = a->buffers[0];
    for (int64_t u = begin; u < end; u++) {
        int64_t stop = (u + 1) * 4096 < a->n_rows ? (u + 1) * 4096 : a->n_rows;
        out[u] += stop - u * 4096;
    }
}

Test(launch, units_of_many_rows) {
    static const tiga_kernel_code code = {"units", count_units, NULL, NULL, 4096, 0, 0, 1, 1, 0, NULL};
    static const int64_t rows[] = {1, 4095, 4096, 4097, 1000000};
    for (size_t i = 0; i < 5; i++)
        for (int threads = 1; threads <= 4; threads++) {
            tiga_context *ctx = context_of(threads);
            int64_t units = (rows[i] + 4095) / 4096, sum = 0, *out = calloc((size_t)units, 8);
            void *buffers[] = {out};
            rt_launch l = {.code = &code, .n_rows = rows[i], .buffers = buffers, .output_bytes = units * 8};
            cr_assert_eq(rt_launch_run(ctx, &l), TIGA_OK);
            for (int64_t u = 0; u < units; u++)
                sum += out[u];
            cr_assert_eq(sum, rows[i]);
            free(out);
            tiga_context_free(ctx);
        }
}

/* ---- scratch ---- */
static int64_t scratch_of(const int64_t *dims) { return dims[0]; }
static void use_scratch(const tiga_launch_args *a, int64_t begin, int64_t end) {
    uint8_t *s = a->scratch;
    int64_t *out = a->buffers[0];
    for (int64_t r = begin; r < end; r++) {
        if (s)
            memset(s, (int)(r & 255), (size_t)a->dims[0]);
        for (int64_t i = 0; i < a->dims[0]; i++)
            out[r] += s[i] == (uint8_t)(r & 255) && (uintptr_t)s % 64 == 0;
    }
}
static const tiga_kernel_code scratch_code = {"scratch", use_scratch, NULL, scratch_of, 1, 0, 0, 1, 1, 1, NULL};

Test(launch, scratch_of_each_thread_is_its_own) {
    for (int threads = 1; threads <= 4; threads++) {
        tiga_context *ctx = context_of(threads);
        int64_t dims[] = {100}, n = 40000, *out = calloc((size_t)n, 8);
        void *buffers[] = {out};
        rt_launch l = {.code = &scratch_code, .n_rows = n, .dims = dims, .buffers = buffers, .output_bytes = n * 8};
        cr_assert_eq(rt_launch_run(ctx, &l), TIGA_OK);
        for (int64_t r = 0; r < n; r++)
            cr_assert_eq(out[r], 100);
        cr_assert_eq(ctx->account->live[0], 0);
        cr_assert_eq(ctx->account->peak[0], threads * 128);
        dims[0] = 0; /* none: NULL is given */
        cr_assert_eq(rt_launch_run(ctx, &l), TIGA_OK);
        free(out);
        tiga_context_free(ctx);
    }
}

static void note_run(const tiga_launch_args *a, int64_t begin, int64_t end) {
    int64_t *out = a->buffers[0];
    for (int64_t r = begin; r < end; r++)
        out[r] += end - begin;
}
static const tiga_kernel_code run_code = {"run", note_run, NULL, scratch_of, 1, 0, 0, 1, 1, 1, NULL};

/* What may copy a matrix for each run of rows gets long runs, and short ones for several threads only where it is large. */
Test(launch, few_rows_are_not_cut_small) {
    static const struct {
        int threads;
        int64_t units, scratch, result_bytes, run;
    } list[] = {{1, 40, 65536, 4096, 40}, {4, 8, 4096, 256, 8},     {4, 8, 65536, 4096, 8},    {4, 100, 4096, 64, 100},
                {4, 40, 65536, 4096, 20}, {4, 64, 65536, 4096, 16}, {2, 100, 65536, 4096, 50}, {3, 1, 65536, 4096, 1}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tiga_context *ctx = context_of(list[i].threads);
        int64_t dims[] = {list[i].scratch}, n = list[i].units, *out = calloc((size_t)n, 8);
        void *buffers[] = {out};
        rt_launch l = {
            .code = &run_code, .n_rows = n, .dims = dims, .buffers = buffers, .output_bytes = n * list[i].result_bytes};
        cr_assert_eq(rt_launch_run(ctx, &l), TIGA_OK);
        for (int64_t r = 0; r < n; r++)
            cr_assert_eq(out[r], list[i].run, "case %zu: a run of %lld", i, (long long)out[r]);
        free(out);
        tiga_context_free(ctx);
    }
}

Test(launch, scratch_within_the_budget) {
    tiga_context *ctx = context_of(4);
    int64_t dims[] = {1000}, n = 30000, *out = calloc((size_t)n, 8);
    void *buffers[] = {out};
    rt_launch l = {.code = &scratch_code, .n_rows = n, .dims = dims, .buffers = buffers, .output_bytes = n * 8};
    ctx->account->budget[0] = 2500; /* room for two threads */
    cr_assert_eq(rt_launch_run(ctx, &l), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(ctx->account->peak[0], 2 * 1024);
    ctx->account->budget[0] = 1000;
    cr_assert_eq(rt_launch_run(ctx, &l), TIGA_E_BUDGET);
    cr_assert(strstr(tiga_error_text(ctx), "scratch needs 1024 bytes on the host; 0 of its budget of 1000 are in use"));
    cr_assert_eq(ctx->account->live[0], 0);
    ctx->account->budget[0] = -1;
    tiga_error_clear(ctx);
    dims[0] = INT64_MAX / 2;
    cr_assert_eq(rt_launch_run(ctx, &l), TIGA_E_MEMORY);
    free(out);
    tiga_context_free(ctx);
}

/* ---- a launch that adds up blocks of the rows of another ---- */
enum { BLOCK = 4096 };
static void add_block(const tiga_launch_args *a, int64_t begin,
                      int64_t end) { /* a row that is not there yet is still 0 */
    const int64_t *x = a->buffers[0];
    int64_t *out = a->buffers[1];
    for (int64_t u = begin; u < end; u++)
        for (int64_t r = u * BLOCK; r < a->n_rows && r < (u + 1) * BLOCK; r++)
            out[u] += x[r] ? x[r] : INT64_MIN / BLOCK;
}
static const tiga_kernel_code add_code = {"add", add_block, NULL, NULL, BLOCK, 0, 0, 2, 1, 0, NULL};

static void check_follower(int threads, const tiga_csr *g) {
    tiga_context *c = context_of(threads);
    int64_t n = (g->n_dst - 1) / BLOCK + 1, *x = calloc((size_t)g->n_dst, 8), *sums = calloc((size_t)n, 8);
    void *first[] = {x}, *second[] = {x, sums};
    rt_launch add = {.code = &add_code, .n_rows = g->n_dst, .buffers = second, .output_bytes = n * 8};
    rt_launch l = {.code = &sum_code, .graph = g, .n_rows = g->n_dst, .buffers = first, .output_bytes = g->n_dst * 8};
    cr_assert(rt_launch_can_follow(&l, &add) && !rt_launch_can_follow(&add, &l));
    l.then = &add;
    cr_assert_eq(rt_launch_run(c, &l), TIGA_OK);
    for (int64_t u = 0, r = 0; u < n; u++) {
        int64_t want = 0;
        for (; r < g->n_dst && r < (u + 1) * BLOCK; r++)
            want += x[r];
        cr_assert_eq(sums[u], want, "%d threads, %lld rows, block %lld", threads, (long long)g->n_dst, (long long)u);
    }
    free(x);
    free(sums);
    tiga_context_free(c);
}

Test(launch, blocks_are_added_up_once_and_when_their_rows_are_there) {
    static const int64_t sizes[] = {1, BLOCK, 5 * BLOCK + 7, 16 * BLOCK, 16 * BLOCK + 1, 100 * BLOCK - 1, 400000};
    tiga_context *ctx = context_of(2);
    tiga_graph *g;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cr_assert_eq(tiga_graph_uniform(ctx, sizes[i], 3, 1, &g), TIGA_OK);
        for (int threads = 1; threads <= 7; threads++)
            check_follower(threads, tiga_graph_csr(g));
        tiga_graph_free(g);
    }
    int64_t n = 100 * BLOCK, *dst = malloc((size_t)n * 8), *src = calloc((size_t)n, 8);
    for (int64_t i = 0; i < n; i++) /* half of the edges in one row in the middle of a block */
        dst[i] = i % 2 ? 30 * BLOCK + 99 : i;
    cr_assert_eq(tiga_graph_from_coo(ctx, n, n, n, dst, src, &g), TIGA_OK);
    for (int threads = 1; threads <= 7; threads += 2)
        check_follower(threads, tiga_graph_csr(g));
    tiga_graph_free(g);
    free(dst);
    free(src);
    tiga_context_free(ctx);
}

/* ---- interruption ---- */
static tiga_context *to_interrupt;
static void interrupt_soon(const tiga_launch_args *a, int64_t begin, int64_t end) {
    (void)end;
    atomic_fetch_add((_Atomic int64_t *)a->buffers[0], 1);
    if (begin > 1000)
        tiga_interrupt(to_interrupt);
}

Test(launch, interrupted_between_chunks) {
    static const tiga_kernel_code code = {"long", interrupt_soon, NULL, NULL, 1, 0, 0, 1, 1, 0, NULL};
    for (int threads = 1; threads <= 3; threads++) {
        _Atomic int64_t chunks = 0;
        void *buffers[] = {&chunks};
        to_interrupt = context_of(threads);
        rt_launch l = {.code = &code, .n_rows = 100000000, .buffers = buffers, .output_bytes = 800000000};
        cr_assert_eq(rt_launch_run(to_interrupt, &l), TIGA_E_INTERRUPTED);
        cr_assert_str_eq(tiga_error_text(to_interrupt), "long: interrupted");
        cr_assert_lt(chunks, 20);
        void *nothing[] = {NULL, NULL};
        rt_launch add = {.code = &add_code, .n_rows = l.n_rows, .buffers = nothing}; /* never gets so far */
        l.then = &add;
        chunks = 0;
        tiga_error_clear(to_interrupt);
        cr_assert_eq(rt_launch_run(to_interrupt, &l), TIGA_E_INTERRUPTED);
        cr_assert_lt(chunks, 20);
        tiga_context_free(to_interrupt);
    }
}

/* ---- the host is asked whether to stop ---- */
typedef struct host {
    pthread_t thread;
    int asked, stop_at, strangers;
} host;

static int ask(void *user) {
    host *h = user;
    h->strangers += !pthread_equal(h->thread, pthread_self());
    return ++h->asked >= h->stop_at;
}

static tiga_context *context_with_host(int threads, host *h) {
    tiga_context_options o = tiga_context_defaults();
    tiga_context *ctx;
    o.threads = threads;
    o.poll = ask;
    o.poll_user = h;
    cr_assert_eq(tiga_context_new(&o, &ctx), TIGA_OK);
    return ctx;
}

static void sleep_a_little(const tiga_launch_args *a, int64_t begin, int64_t end) {
    (void)a, (void)begin, (void)end;
    nanosleep(&(struct timespec){.tv_nsec = 2 * 1000 * 1000}, NULL);
}

static const tiga_kernel_code slow = {"slow", sleep_a_little, NULL, NULL, 1, 0, 0, 0, 0, 0, NULL};

static tiga_status run_slow(tiga_context *ctx, int64_t rows) {
    rt_launch l = {.code = &slow, .n_rows = rows, .output_bytes = rows * 100000};
    rt_begin(ctx);
    return rt_launch_run(ctx, &l);
}

Test(launch, the_host_stops_a_long_one) {
    for (int threads = 1; threads <= 3; threads++) {
        host h = {.thread = pthread_self(), .stop_at = 2};
        tiga_context *ctx = context_with_host(threads, &h);
        cr_assert_eq(run_slow(ctx, 3), TIGA_OK);
        cr_assert_eq(h.asked, 0, "short calls do not ask");
        time_t start = time(NULL);
        cr_assert_eq(run_slow(ctx, 100000), TIGA_E_INTERRUPTED);
        cr_assert_leq(time(NULL) - start, 2);
        cr_assert_eq(h.asked, 2);
        cr_assert_eq(h.strangers, 0, "only the calling thread asks");
        h.stop_at = 1000;
        cr_assert_eq(run_slow(ctx, 3), TIGA_OK, "usable afterwards");
        tiga_context_free(ctx);
    }
}

Test(launch, the_host_stops_a_long_one_in_a_child) {
    host h = {.thread = pthread_self(), .stop_at = 2};
    tiga_context *ctx = context_with_host(2, &h);
    cr_assert_eq(run_slow(ctx, 3), TIGA_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        h.thread = pthread_self();
        _exit(run_slow(ctx, 100000) == TIGA_E_INTERRUPTED && h.asked == 2 && h.strangers == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    tiga_context_free(ctx);
}

/* ---- fork ---- */
Test(launch, a_child_of_fork_runs_too) {
    tiga_context *ctx = context_of(2);
    tiga_graph *g;
    cr_assert_eq(tiga_graph_rmat(ctx, 14, 16, 1, &g), TIGA_OK);
    int64_t *want = run_sum(ctx, tiga_graph_csr(g)); /* the parent's threads exist now */
    pid_t child = fork();
    if (child == 0) {
        alarm(20); /* a hang is a failure */
        int64_t *got = run_sum(ctx, tiga_graph_csr(g));
        _exit(memcmp(got, want, (size_t)tiga_graph_csr(g)->n_dst * 8) == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    free(want);
    tiga_graph_free(g);
    tiga_context_free(ctx);
}

/* ---- workers ---- */
enum { MANY_REGIONS = 2000 };

typedef struct tally {
    _Atomic int64_t sum;
    tiga_context *ctx;
    _Atomic int inner;
} tally;

static void add_task(void *arg, int64_t task, int thread) {
    tally *t = arg;
    if (thread < 0 || thread > 3)
        abort();
    atomic_fetch_add(&t->sum, task + 1);
}

Test(launch, many_regions_each_task_once) {
    for (int threads = 1; threads <= 4; threads++) {
        tiga_context *ctx = context_of(threads);
        tally t = {0};
        for (int64_t n = 0; n < MANY_REGIONS; n++) {
            atomic_store(&t.sum, 0);
            cr_assert(rt_parallel_for(ctx, n % 5 ? 0 : 2, n % 50, add_task, &t));
            cr_assert_eq(t.sum, (n % 50) * (n % 50 + 1) / 2, "region %d on %d threads", (int)n, threads);
        }
        tiga_context_free(ctx);
    }
}

static void inner_task(void *arg, int64_t task, int thread) {
    tally *t = arg;
    (void)task;
    atomic_fetch_add(&t->inner, thread == 0);
}

static void outer_task(void *arg, int64_t task, int thread) {
    tally *t = arg;
    (void)task, (void)thread;
    if (!rt_parallel_for(t->ctx, 0, 7, inner_task, t))
        abort();
}

Test(launch, a_region_inside_of_a_region_runs_where_it_is) {
    tally t = {.ctx = context_of(3)};
    cr_assert(rt_parallel_for(t.ctx, 0, 20, outer_task, &t));
    cr_assert_eq(t.inner, 140);
    tiga_context_free(t.ctx);
}

static pthread_t signalled;
static _Atomic int n_signals;

static void note_thread(int number) {
    (void)number;
    if (!pthread_equal(signalled, pthread_self()))
        abort();
    n_signals++;
}

static void kill_task(void *arg, int64_t task, int thread) {
    (void)arg, (void)task, (void)thread;
    kill(getpid(), SIGUSR1);
}

Test(launch, workers_leave_signals_to_the_host) {
    tiga_context *ctx = context_of(4);
    signalled = pthread_self();
    signal(SIGUSR1, note_thread);
    cr_assert(rt_parallel_for(ctx, 0, 500, kill_task, NULL));
    cr_assert_gt(n_signals, 0);
    tiga_context_free(ctx);
}

/* ---- how many ---- */
static void put_line(const char *root, const char *name, const char *line) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; *at; at++)
        if (*at == '/') {
            *at = 0;
            mkdir(path, 0700);
            *at = '/';
        }
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(line, f) >= 0 && fclose(f) == 0);
}

Test(launch, threads_that_are_of_use) {
    char root[] = "/tmp/tiga_cores_XXXXXX", command[64];
    cr_assert(mkdtemp(root));
    unsetenv("OMP_NUM_THREADS");
    int all = base_count_threads(root); /* no control groups there */
    cr_assert_geq(all, 1);
    put_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    cr_assert_eq(base_count_threads(root), all);
    put_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    cr_assert_eq(base_count_threads(root), 1);
    put_line(root, "/sys/fs/cgroup/cpu.max", "max 100000\n");
    cr_assert_eq(base_count_threads(root), all);
    put_line(root, "/sys/fs/cgroup/cpu.max", "100001 100000\n");
    cr_assert_eq(base_count_threads(root), all < 2 ? all : 2);
    put_line(root, "/sys/fs/cgroup/cpu.max", "1000 100000\n");
    cr_assert_eq(base_count_threads(root), 1);
    static const struct {
        const char *text;
        int want;
    } cases[] = {{"3", 3}, {"5,2", 5}, {"7 ", 7}, {"0", 1}, {"-2", 1}, {"x", 1}, {"", 1}, {"99999999", 4096}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("OMP_NUM_THREADS", cases[i].text, 1);
        cr_assert_eq(base_count_threads(root), cases[i].want, "'%s'", cases[i].text);
    }
    snprintf(command, sizeof command, "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}
