/* Threads.  One primitive, tasks taken from a counter; nothing else in this folder starts any.
 *
 * Each context has workers of its own, started when they are first needed.  Who opens a region takes tasks as well, and
 * waits at the end for workers that are in a task, never for one that has yet to wake up: on a machine that is busy with other
 * work a region costs little more than its tasks.  (With OpenMP it does not end before all its threads have been on a
 * processor; a launch of 60 us then took 12 ms.)  Idle workers look for work for SPIN_NS, then sleep.
 *
 * Workers do not survive fork: a child starts new ones.  They block all signals, which stay the host's. */
#include "runtime/runtime.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

enum { SPIN_NS = 30000, POLL_NS = 20000000, SECOND_NS = 1000000000 };

typedef struct region {
    tiga_context *ctx;
    int64_t n_tasks;
    rt_task_fn fn;
    void *arg;
    _Atomic int64_t next;
    atomic_bool stopped;
} region;

struct rt_pool {
    pthread_mutex_t lock; /* guards all that is not atomic */
    pthread_cond_t wake, idle;
    pthread_t *threads;
    int n_threads;
    unsigned born; /* value of `forks` when it was made */
    bool ending;
    region *job; /* open to workers while `room` is left */
    int room, joined;
    bool spins;
    _Atomic unsigned posted; /* regions so far */
    _Atomic int working;
    atomic_bool busy; /* a region inside of a region has no workers */
};

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Atomic unsigned forks; /* between the first process and this one */

static void count_fork(void) { atomic_fetch_add(&forks, 1); }
static void watch_fork(void) { pthread_atfork(NULL, NULL, count_fork); }

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

/* ---- waiting ---- */
static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static inline void breathe(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool has_news(rt_pool *p, unsigned seen) { return atomic_load(&p->posted) != seen; }
static bool is_idle(rt_pool *p, unsigned unused) {
    (void)unused;
    return atomic_load(&p->working) == 0;
}

static void spin(rt_pool *p, bool (*until)(rt_pool *, unsigned), unsigned seen) {
    if (!p->spins || until(p, seen))
        return;
    int64_t end = now_ns() + SPIN_NS;
    do
        for (int i = 0; i < 16; i++) {
            breathe();
            if (until(p, seen))
                return;
        }
    while (now_ns() < end);
}

/* ---- workers ---- */
static void leave(rt_pool *p) {
    if (atomic_fetch_sub(&p->working, 1) != 1)
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->idle);
    pthread_mutex_unlock(&p->lock);
}

static void *worker(void *arg) {
    rt_pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (unsigned seen = 0;;) {
        while (!p->ending && !(p->job && p->room > 0 && atomic_load(&p->posted) != seen))
            pthread_cond_wait(&p->wake, &p->lock);
        if (p->ending)
            break;
        seen = atomic_load(&p->posted);
        region *r = p->job;
        int thread = ++p->joined;
        p->room--;
        atomic_fetch_add(&p->working, 1);
        pthread_mutex_unlock(&p->lock);
        work(r, thread);
        leave(p);
        spin(p, has_news, seen);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static bool start_worker(rt_pool *p, int at) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&p->threads[at], NULL, worker, p) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

/* As many as there can be: with fewer the work takes longer. */
static void start_workers(rt_pool *p, int n) {
    if (n <= p->n_threads)
        return;
    pthread_t *threads = base_realloc(p->threads, sizeof *threads * (size_t)n);
    if (!threads)
        return;
    p->threads = threads;
    while (p->n_threads < n && start_worker(p, p->n_threads))
        p->n_threads++;
}

static rt_pool *new_pool(const tiga_context *ctx) {
    rt_pool *p = base_alloc_zero(sizeof *p);
    if (!p)
        return NULL;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->idle, &attr);
    pthread_condattr_destroy(&attr);
    p->born = atomic_load(&forks);
    p->spins = ctx->threads <= base_default_threads();
    return p;
}

void rt_pool_free(rt_pool *p) {
    if (!p)
        return;
    if (p->born == atomic_load(&forks)) {
        pthread_mutex_lock(&p->lock);
        p->ending = true;
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
        for (int i = 0; i < p->n_threads; i++)
            pthread_join(p->threads[i], NULL);
        pthread_cond_destroy(&p->wake);
        pthread_cond_destroy(&p->idle);
        pthread_mutex_destroy(&p->lock);
    }
    base_free(p->threads);
    base_free(p);
}

/* NULL: no memory. */
static rt_pool *pool_of(tiga_context *ctx) {
    pthread_once(&fork_once, watch_fork);
    if (ctx->pool && ctx->pool->born != atomic_load(&forks)) {
        rt_pool_free(ctx->pool);
        ctx->pool = NULL;
    }
    if (!ctx->pool)
        ctx->pool = new_pool(ctx);
    return ctx->pool;
}

/* ---- regions ---- */
static void post(rt_pool *p, region *r, int workers) {
    pthread_mutex_lock(&p->lock);
    p->job = r;
    p->room = workers;
    p->joined = 0;
    atomic_fetch_add(&p->posted, 1);
    pthread_mutex_unlock(&p->lock);
    if (workers == p->n_threads) /* one system call, not one each */
        pthread_cond_broadcast(&p->wake);
    for (int i = 0; i < workers && workers < p->n_threads; i++)
        pthread_cond_signal(&p->wake);
}

/* Nobody joins any more; who has joined is waited for.  The host is asked meanwhile. */
static void finish(rt_pool *p, tiga_context *ctx) {
    pthread_mutex_lock(&p->lock);
    p->job = NULL;
    pthread_mutex_unlock(&p->lock);
    spin(p, is_idle, 0);
    if (is_idle(p, 0))
        return;
    pthread_mutex_lock(&p->lock);
    while (!is_idle(p, 0)) {
        int64_t at = now_ns() + POLL_NS;
        struct timespec until = {.tv_sec = at / SECOND_NS, .tv_nsec = at % SECOND_NS};
        if (pthread_cond_timedwait(&p->idle, &p->lock, &until) == ETIMEDOUT) {
            pthread_mutex_unlock(&p->lock);
            rt_interrupted(ctx);
            pthread_mutex_lock(&p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
}

static void open_region(region *r, int threads) {
    rt_pool *p = pool_of(r->ctx);
    if (!p || atomic_exchange(&p->busy, true)) {
        work(r, 0);
        return;
    }
    start_workers(p, threads - 1);
    post(p, r, threads - 1 < p->n_threads ? threads - 1 : p->n_threads);
    work(r, 0);
    finish(p, r->ctx);
    atomic_store(&p->busy, false);
}

bool rt_parallel_for(tiga_context *ctx, int max_threads, int64_t n_tasks, rt_task_fn fn, void *arg) {
    int threads = ctx ? ctx->threads : 1;
    if (max_threads > 0 && threads > max_threads)
        threads = max_threads;
    if (threads > n_tasks)
        threads = (int)n_tasks;
    region r = {.ctx = ctx, .n_tasks = n_tasks, .fn = fn, .arg = arg};
    if (threads <= 1)
        work(&r, 0);
    else
        open_region(&r, threads);
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
