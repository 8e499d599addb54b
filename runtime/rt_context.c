/* The context: options, the first error in words, interruption, and the account of buffers made by calls.
 *
 * Threads that use one context take turns: `turn` is a lock that its holder may take again, so that calls may be made of
 * calls.  tiga_interrupt needs none, it only stores to an atomic; errors are kept under a lock of their own, because
 * compiles, buffers and transfers of one context run at the same time. */
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const char *tiga_version(void) { return TIGA_VERSION; }

const char *tiga_status_text(tiga_status status) {
    switch (status) {
#define TIGA_STATUS(NAME, number, text)                                                                                \
    case TIGA_##NAME:                                                                                                  \
        return text;
#include "tiga/tiga_status.def"
#undef TIGA_STATUS
    }
    return "unknown status";
}

tiga_context_options tiga_context_defaults(void) {
    tiga_context_options o;
    memset(&o, 0, sizeof o);
    o.struct_bytes = sizeof o;
    o.host_budget_bytes = -1;
    return o;
}

tiga_status tiga_context_new(const tiga_context_options *options, tiga_context **out) {
    if (!out)
        return TIGA_E_ARGUMENT;
    *out = NULL;
    tiga_context_options o = tiga_context_defaults();
    if (options) { /* a caller built against another version: the fields both know */
        if (options->struct_bytes < sizeof(size_t) || options->struct_bytes > 4096)
            return TIGA_E_ARGUMENT;
        memcpy(&o, options, options->struct_bytes < sizeof o ? options->struct_bytes : sizeof o);
    }
    if (o.threads < 0 || o.threads > 4096)
        return TIGA_E_ARGUMENT;
    tiga_context *ctx = base_alloc_zero(sizeof *ctx);
    if (!ctx)
        return TIGA_E_MEMORY;
    ctx->threads = o.threads ? o.threads : base_default_threads();
    tiga_execution_options limits = tiga_execution_defaults();
    limits.budget[TIGA_TIER_HOST] = o.host_budget_bytes;
    ctx->own = ctx->account = rt_account_new(&limits, NULL);
    if (!ctx->own) {
        base_free(ctx);
        return TIGA_E_MEMORY;
    }
    pthread_mutex_init(&ctx->turn, NULL);
    pthread_mutex_init(&ctx->lock, NULL);
    ctx->poll = o.poll;
    ctx->poll_user = o.poll_user;
    atomic_init(&ctx->interrupted, 0);
    *out = ctx;
    return TIGA_OK;
}

void tiga_context_free(tiga_context *ctx) {
    if (!ctx)
        return;
    if (ctx->account != ctx->own) {
        if (!ctx->entered) {
            atomic_store(&ctx->account->active, false);
            rt_code_forget(ctx->account);
        }
        tiga_execution_free(ctx->account);
    }
    tiga_execution_free(ctx->own);
    pthread_mutex_destroy(&ctx->lock);
    pthread_mutex_destroy(&ctx->turn);
    rt_pool_free(ctx->pool);
    rt_mem_free(ctx->scratch);
    base_free(ctx->features);
    base_free(ctx);
}

/* What others wrote to `holder` is never the number of this thread, so reading it without the lock does. */
void tiga_context_lock(tiga_context *ctx) {
    if (!ctx)
        return;
    pthread_t self = pthread_self();
    if (!pthread_equal(atomic_load_explicit(&ctx->holder, memory_order_relaxed), self)) {
        pthread_mutex_lock(&ctx->turn);
        atomic_store_explicit(&ctx->holder, self, memory_order_relaxed);
    }
    ctx->depth++;
}

void tiga_context_unlock(tiga_context *ctx) {
    if (!ctx || !pthread_equal(atomic_load_explicit(&ctx->holder, memory_order_relaxed), pthread_self()) ||
        --ctx->depth)
        return;
    atomic_store_explicit(&ctx->holder, (pthread_t)0, memory_order_relaxed);
    pthread_mutex_unlock(&ctx->turn);
}

int tiga_context_threads(const tiga_context *ctx) { return ctx ? ctx->threads : 0; }

const char *tiga_error_text(const tiga_context *ctx) { return ctx && ctx->status != TIGA_OK ? ctx->error : ""; }

tiga_status tiga_error_status(const tiga_context *ctx) { return ctx ? ctx->status : TIGA_E_ARGUMENT; }

void tiga_error_clear(tiga_context *ctx) {
    if (!ctx)
        return;
    pthread_mutex_lock(&ctx->lock);
    ctx->status = TIGA_OK;
    ctx->error[0] = 0;
    pthread_mutex_unlock(&ctx->lock);
}

tiga_status tiga_error_set(tiga_context *ctx, tiga_status status, const char *text) {
    return rt_fail(ctx, status, "%s", text ? text : "");
}

void tiga_interrupt(tiga_context *ctx) {
    if (ctx)
        atomic_store(&ctx->interrupted, 1);
}

void rt_begin(tiga_context *ctx) {
    if (!ctx)
        return;
    atomic_store_explicit(&ctx->interrupted, 0, memory_order_relaxed);
    if (ctx->poll) {
        atomic_store_explicit(&ctx->caller, pthread_self(), memory_order_relaxed);
        ctx->polls = 0;
        ctx->poll_at = 0;
    }
}

enum { FREE_POLLS = 4, POLL_NS = 50 * 1000 * 1000 };

/* Calls of a few tasks do not even read the clock. */
static void ask_host(tiga_context *ctx) {
    if (ctx->polls < FREE_POLLS && ++ctx->polls < FREE_POLLS)
        return;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (ctx->poll_at != 0 && now < ctx->poll_at)
        return;
    bool due = ctx->poll_at != 0;
    ctx->poll_at = now + POLL_NS;
    if (due && ctx->poll(ctx->poll_user) != 0)
        tiga_interrupt(ctx);
}

static bool polls_here(const tiga_context *ctx) {
    return ctx->poll && pthread_equal(atomic_load_explicit(&ctx->caller, memory_order_relaxed), pthread_self());
}

bool rt_interrupted(tiga_context *ctx) {
    if (!ctx)
        return false;
    if (polls_here(ctx))
        ask_host(ctx);
    return atomic_load_explicit(&ctx->interrupted, memory_order_relaxed);
}

bool rt_interrupted_within(tiga_context *ctx) {
    if (polls_here(ctx))
        ctx->polls = FREE_POLLS;
    return rt_interrupted(ctx);
}

tiga_status rt_fail(tiga_context *ctx, tiga_status status, const char *fmt, ...) {
    if (!ctx || ctx->status != TIGA_OK)
        return status;
    pthread_mutex_lock(&ctx->lock);
    if (ctx->status != TIGA_OK) { /* another thread was faster */
        pthread_mutex_unlock(&ctx->lock);
        return status;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ctx->error, sizeof ctx->error, fmt, ap);
    va_end(ap);
    for (char *p = ctx->error; *p; p++) /* one line, whatever a file name holds */
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    ctx->status = status;
    pthread_mutex_unlock(&ctx->lock);
    return status;
}
