/* Threads.  One primitive, tasks taken from a counter by OpenMP threads; nothing else in this folder starts any.
 *
 * The caller's OpenMP settings are never changed.  libgomp's pool does not survive fork: a child that used it would
 * wait for threads that are not there.  A pool belongs to the thread that opens the region, so a child opens regions
 * from a fresh thread. */
#include "runtime/runtime.h"

#include <errno.h>
#include <omp.h>
#include <time.h>

typedef struct region {
    tiga_context *ctx;
    int threads;
    int64_t n_tasks;
    rt_task_fn fn;
    void *arg;
    _Atomic int64_t next;
    atomic_bool stopped;
} region;

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static atomic_bool forked; /* set once, in children only */

static void mark_forked(void) { atomic_store(&forked, true); }
static void watch_fork(void) { pthread_atfork(NULL, NULL, mark_forked); }

static void work(region *r, int thread) {
    for (;;) {
        int64_t task = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);
        if (task >= r->n_tasks)
            return;
        if (rt_interrupted(r->ctx)) {
            atomic_store(&r->stopped, true);
            return;
        }
        r->fn(r->arg, task, thread);
    }
}

static void *open_region(void *arg) {
    region *r = arg;
#pragma omp parallel num_threads(r->threads)
    work(r, omp_get_thread_num());
    return NULL;
}

/* The calling thread does no tasks here, but it alone may ask the host. */
static void poll_while_waiting(tiga_context *ctx, pthread_t master) {
    struct timespec until;
    do {
        rt_interrupted(ctx);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20 * 1000 * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    } while (pthread_timedjoin_np(master, NULL, &until) == ETIMEDOUT);
}

static void open_in_child(region *r) {
    pthread_t master;
    if (pthread_create(&master, NULL, open_region, r) != 0) {
        work(r, 0);
        return;
    }
    if (r->ctx->poll)
        poll_while_waiting(r->ctx, master);
    else
        pthread_join(master, NULL);
}

bool rt_parallel_for(tiga_context *ctx, int max_threads, int64_t n_tasks, rt_task_fn fn, void *arg) {
    int threads = ctx ? ctx->threads : 1;
    if (max_threads > 0 && threads > max_threads)
        threads = max_threads;
    if (threads > n_tasks)
        threads = (int)n_tasks;
    region r = {.ctx = ctx, .threads = threads, .n_tasks = n_tasks, .fn = fn, .arg = arg};
    if (threads <= 1) {
        work(&r, 0);
    } else {
        pthread_once(&fork_once, watch_fork);
        if (atomic_load(&forked))
            open_in_child(&r);
        else
            open_region(&r);
    }
    return !atomic_load(&r.stopped);
}

void rt_atomic_min(_Atomic int64_t *place, int64_t value) {
    int64_t old = atomic_load(place);
    while (value < old && !atomic_compare_exchange_weak(place, &old, value)) {
    }
}

int64_t rt_n_tasks(int64_t n, int64_t grain) { return n <= 0 ? 0 : (n - 1) / grain + 1; }

void rt_task_range(int64_t n, int64_t n_tasks, int64_t task, int64_t *begin, int64_t *end) {
    int64_t each = n / n_tasks, rest = n % n_tasks;
    *begin = task * each + (task < rest ? task : rest);
    *end = *begin + each + (task < rest);
}
