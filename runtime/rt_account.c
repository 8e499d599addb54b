/* Accounts: how many bytes of each tier are in use, against budgets that are checked before anything is allocated.  Without
 * `shared` no lock is taken: a charge is one compare-and-swap.
 *
 * When a charge does not fit, first the host is asked to collect, then whoever stands above makes room (evicts idle
 * buffers), until it fits or nothing more can be had.  No lock is held meanwhile. */
#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

/* ---- the object ---- */

tiga_execution_options tiga_execution_defaults(void) {
    tiga_execution_options o;
    memset(&o, 0, sizeof o);
    o.struct_bytes = sizeof o;
    for (int t = 0; t < TIGA_TIERS; t++)
        o.budget[t] = -1;
    o.prefetch_depth = -1;
    return o;
}

static bool copy_text(const char **place) {
    if (!*place)
        return true;
    size_t n = strlen(*place) + 1;
    char *copy = base_alloc(n);
    if (copy)
        memcpy(copy, *place, n);
    *place = copy;
    return copy != NULL;
}

tiga_execution *rt_account_new(const tiga_execution_options *o, rt_shared *shared) {
    tiga_execution *e = base_alloc_zero(sizeof *e);
    if (!e)
        return NULL;
    e->options = *o;
    bool device = copy_text(&e->options.device), folder = copy_text(&e->options.spill_dir),
         name = copy_text(&e->options.shared);
    if (!device || !folder || !name) {
        base_free((void *)e->options.device);
        base_free((void *)e->options.spill_dir);
        base_free((void *)e->options.shared);
        base_free(e);
        return NULL;
    }
    atomic_init(&e->refs, 1);
    atomic_init(&e->active, true);
    for (int t = 0; t < TIGA_TIERS; t++)
        atomic_init(&e->budget[t], o->budget[t]);
    e->shared = shared;
    pthread_mutex_init(&e->lock, NULL);
    return e;
}

tiga_execution *tiga_execution_retain(tiga_execution *e) {
    if (e)
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void tiga_execution_free(tiga_execution *e) {
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    rt_code_forget(e);
    if (e->room)
        e->room->free(e->room);
    rt_shared_close(e->shared);
    pthread_mutex_destroy(&e->lock);
    base_free((void *)e->options.device);
    base_free((void *)e->options.spill_dir);
    base_free((void *)e->options.shared);
    base_free(e);
}

tiga_execution *rt_account_of(tiga_context *ctx) {
    if (!ctx)
        return NULL;
    pthread_mutex_lock(&ctx->lock);
    tiga_execution *e = tiga_execution_retain(ctx->account);
    pthread_mutex_unlock(&ctx->lock);
    return e;
}

const tiga_execution_options *tiga_execution_get_options(const tiga_execution *e) { return e ? &e->options : NULL; }

/* ---- charges ---- */

static void raise_peak(tiga_execution *e, int32_t tier, int64_t live) {
    int64_t peak = atomic_load_explicit(&e->peak[tier], memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak_explicit(&e->peak[tier], &peak, live, memory_order_relaxed,
                                                                 memory_order_relaxed))
        ;
}

bool rt_try_charge(tiga_execution *e, int32_t tier, int64_t n_bytes) {
    if (n_bytes == 0)
        return true;
    int64_t live = atomic_load_explicit(&e->live[tier], memory_order_relaxed), next;
    do {
        int64_t budget = atomic_load_explicit(&e->budget[tier], memory_order_relaxed);
        int64_t most = budget >= 0 ? budget : INT64_MAX;
        if (n_bytes > most - live)
            return false;
        next = live + n_bytes;
    } while (!atomic_compare_exchange_weak_explicit(&e->live[tier], &live, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    if (e->shared && !rt_shared_take(e->shared, tier, n_bytes)) {
        atomic_fetch_sub_explicit(&e->live[tier], n_bytes, memory_order_relaxed);
        return false;
    }
    raise_peak(e, tier, next);
    return true;
}

void rt_discharge(tiga_execution *e, int32_t tier, int64_t n_bytes) {
    if (n_bytes == 0)
        return;
    if (e->shared)
        rt_shared_give(e->shared, tier, n_bytes);
    int64_t before = atomic_fetch_sub_explicit(&e->live[tier], n_bytes, memory_order_relaxed);
    if (before < n_bytes)
        BASE_BUG("%lld bytes are given back to an account that holds %lld", (long long)n_bytes, (long long)before);
}

int64_t rt_room_left(const tiga_execution *e, int32_t tier) {
    int64_t budget = atomic_load_explicit(&e->budget[tier], memory_order_relaxed);
    int64_t live = atomic_load_explicit(&e->live[tier], memory_order_relaxed);
    if (budget < 0)
        return INT64_MAX;
    int64_t used = e->shared ? rt_shared_live(e->shared, tier) : live;
    return budget > used ? budget - used : 0;
}

static tiga_status fail_budget(tiga_context *ctx, tiga_execution *e, int32_t tier, int64_t n_bytes, const char *what) {
    static const char *const places[TIGA_TIERS] = {"on the host", "on the device", "of pinned memory", "on disk"};
    int64_t budget = atomic_load(&e->budget[tier]), live = atomic_load(&e->live[tier]);
    if (budget < 0)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s is larger than any memory", what);
    if (!e->shared)
        return rt_fail(ctx, TIGA_E_BUDGET, "%s needs %lld bytes %s; %lld of its budget of %lld are in use", what,
                       (long long)n_bytes, places[tier], (long long)live, (long long)budget);
    return rt_fail(ctx, TIGA_E_BUDGET,
                   "%s needs %lld bytes %s; %lld of the budget of %lld that '%s' shares are in use, %lld of them here",
                   what, (long long)n_bytes, places[tier], (long long)rt_shared_live(e->shared, tier),
                   (long long)budget, e->options.shared, (long long)live);
}

static struct rt_room *room_of(tiga_execution *e) {
    pthread_mutex_lock(&e->lock);
    struct rt_room *room = e->room;
    pthread_mutex_unlock(&e->lock);
    return room;
}

tiga_status rt_charge(tiga_context *ctx, tiga_execution *e, int32_t tier, int64_t n_bytes, const char *what) {
    if (rt_try_charge(e, tier, n_bytes))
        return TIGA_OK;
    if (e->options.collect) {
        e->options.collect(e->options.collect_user);
        if (rt_try_charge(e, tier, n_bytes))
            return TIGA_OK;
    }
    while (tier == TIGA_TIER_HOST && rt_code_reclaim(e))
        if (rt_try_charge(e, tier, n_bytes))
            return TIGA_OK;
    struct rt_room *room = room_of(e);
    int64_t budget = atomic_load(&e->budget[tier]);
    /* each round frees something, unless others are faster every time */
    for (int tries = 0; room && budget >= 0 && n_bytes <= budget && tries < 10000; tries++) {
        tiga_status status = TIGA_OK;
        rt_room_answer answer = room->make(room, ctx, tier, n_bytes, &status);
        if (answer == RT_ROOM_FAILED)
            return status;
        if (rt_try_charge(e, tier, n_bytes))
            return TIGA_OK;
        if (answer == RT_ROOM_NONE)
            break;
    }
    return fail_budget(ctx, e, tier, n_bytes, what);
}

/* ---- calls ---- */

static void count_call(tiga_context *ctx, int64_t n_bytes) {
    ctx->call_live += n_bytes;
    if (ctx->call_live > ctx->call_peak)
        ctx->call_peak = ctx->call_live;
}

tiga_status rt_account_take(tiga_context *ctx, int64_t n_bytes, const char *what) {
    tiga_status status = rt_charge(ctx, ctx->account, TIGA_TIER_HOST, n_bytes, what);
    if (status == TIGA_OK)
        count_call(ctx, n_bytes);
    return status;
}

bool rt_account_try(tiga_context *ctx, int64_t n_bytes) {
    bool good = rt_try_charge(ctx->account, TIGA_TIER_HOST, n_bytes);
    if (good)
        count_call(ctx, n_bytes);
    return good;
}

void rt_account_give(tiga_context *ctx, int64_t n_bytes) {
    rt_discharge(ctx->account, TIGA_TIER_HOST, n_bytes);
    ctx->call_live -= n_bytes;
}
