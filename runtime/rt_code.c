/* Compiled code in accounts that count it.  It is charged when it is loaded and discharged when the last owner lets go, so what
 * modules and tensors hold stays counted.  What only caches hold can go: an account knows the caches that were asked in its scope,
 * and each of them lets go of idle code of that account, oldest first.
 *
 * An account keeps its caches, and code keeps its account; the circle ends with the scope, when the account forgets them. */
#include "runtime/runtime.h"

typedef struct rt_code_cache {
    struct rt_code_cache *next;
    tiga_cache *cache;
} rt_code_cache;

tiga_status tiga_code_charge(tiga_context *ctx, int64_t n_bytes, tiga_execution **out) {
    tiga_execution *e = rt_account_of(ctx);
    tiga_status status = TIGA_OK;
    *out = NULL;
    if (e && e->options.count_code)
        status = rt_charge(ctx, e, TIGA_TIER_HOST, n_bytes, "compiled code");
    if (status != TIGA_OK || !e || !e->options.count_code) {
        tiga_execution_free(e);
        return status;
    }
    atomic_fetch_add(&e->code, n_bytes);
    *out = e;
    return TIGA_OK;
}

void tiga_code_discharge(tiga_execution *e, int64_t n_bytes) {
    if (!e)
        return;
    atomic_fetch_sub(&e->code, n_bytes);
    rt_discharge(e, TIGA_TIER_HOST, n_bytes);
    tiga_execution_free(e);
}

/* Without memory for it the code is counted all the same, and goes when the cache is too large or freed. */
void rt_code_watch(tiga_context *ctx, tiga_cache *c) {
    tiga_execution *e = rt_account_of(ctx);
    if (!e)
        return;
    if (e->options.count_code && atomic_load(&e->active)) {
        rt_code_cache *more = base_alloc(sizeof *more);
        pthread_mutex_lock(&e->lock);
        rt_code_cache *at = e->caches;
        while (at && at->cache != c)
            at = at->next;
        if (!at && more) {
            *more = (rt_code_cache){e->caches, tiga_cache_retain(c)};
            e->caches = more;
            more = NULL;
        }
        pthread_mutex_unlock(&e->lock);
        base_free(more);
    }
    tiga_execution_free(e);
}

void rt_code_forget(tiga_execution *e) {
    pthread_mutex_lock(&e->lock);
    rt_code_cache *list = e->caches;
    e->caches = NULL;
    pthread_mutex_unlock(&e->lock);
    while (list) {
        rt_code_cache *next = list->next;
        tiga_cache_free(list->cache);
        base_free(list);
        list = next;
    }
}

/* The n-th cache, one more owner: it is asked without the lock, because letting code go gives the account up. */
static tiga_cache *cache_at(tiga_execution *e, int n) {
    pthread_mutex_lock(&e->lock);
    rt_code_cache *at = e->caches;
    while (at && n-- > 0)
        at = at->next;
    tiga_cache *c = at ? tiga_cache_retain(at->cache) : NULL;
    pthread_mutex_unlock(&e->lock);
    return c;
}

bool rt_code_reclaim(tiga_execution *e) {
    bool gone = false;
    tiga_cache *c;
    for (int i = 0; !gone && atomic_load(&e->code) > 0 && (c = cache_at(e, i)); i++) {
        gone = rt_cache_evict_idle(c, e);
        tiga_cache_free(c);
    }
    return gone;
}
