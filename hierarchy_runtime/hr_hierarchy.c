/* Hierarchies: their instances, pins and waiting; hr_hierarchy.h says how it goes together. */
#include "hierarchy_runtime/hr_hierarchy.h"

#include <string.h>

/* ---- instances ---- */

hr_named *hr_named_find(const tiga_hierarchy *h, const char *name, int64_t version, int32_t tier) {
    hr_named *i = h->instances;
    while (i && (i->version != version || i->tier != tier || strcmp(i->name, name) != 0))
        i = i->next;
    return i;
}

tiga_status hr_named_fail(tiga_context *ctx, tiga_status status, const char *who, const char *name, int64_t version,
                          int32_t tier, const char *why) {
    return rt_fail(ctx, status, "tiga_hierarchy_%s: '%s@%lld' in the %s tier: %s", who, name, (long long)version,
                   tiga_tier_text(tier), why);
}

static void instance_free(hr_named *i) {
    hr_block_fini(&i->block);
    base_free(i->name);
    base_free(i);
}

void hr_named_unlink(tiga_hierarchy *h, hr_named *i) {
    hr_named **place = &h->instances;
    while (*place != i)
        place = &(*place)->next;
    *place = i->next;
    instance_free(i);
}

static tiga_status check_size(tiga_context *ctx, const tiga_hierarchy *h, const char *name, int64_t version,
                              int32_t tier, int64_t bytes) {
    for (const hr_named *i = h->instances; i; i = i->next)
        if (strcmp(i->name, name) == 0 && i->bytes != bytes)
            return rt_fail(ctx, TIGA_E_ARGUMENT,
                           "tiga_hierarchy_allocate: '%s@%lld' in the %s tier has %lld bytes, not %lld", name,
                           (long long)i->version, tiga_tier_text(i->tier), (long long)i->bytes, (long long)bytes);
    if (hr_named_find(h, name, version, tier))
        return hr_named_fail(ctx, TIGA_E_ARGUMENT, "allocate", name, version, tier, "it is there already");
    return TIGA_OK;
}

static hr_named *instance_new(tiga_context *ctx, const char *name, int64_t version, int32_t tier, int64_t bytes) {
    size_t n = strlen(name) + 1;
    hr_named *i = base_alloc_zero(sizeof *i);
    char *copy = i ? base_alloc(n) : NULL;
    if (!copy) {
        base_free(i);
        rt_fail(ctx, TIGA_E_MEMORY, "tiga_hierarchy_allocate: out of memory");
        return NULL;
    }
    memcpy(copy, name, n);
    *i = (hr_named){.name = copy, .version = version, .tier = tier, .bytes = bytes};
    return i;
}

/* Without the lock while the bytes are had: that may evict buffers and ask the host to collect, which waits for transfers. */
tiga_status hr_named_allocate(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version, int32_t tier,
                              int64_t bytes, bool by_transfer) {
    pthread_mutex_lock(&h->lock);
    tiga_status status = check_size(ctx, h, name, version, tier, bytes);
    pthread_mutex_unlock(&h->lock);
    if (status != TIGA_OK)
        return status;
    hr_named *i = instance_new(ctx, name, version, tier, bytes);
    if (!i)
        return TIGA_E_MEMORY;
    i->made_by_transfer = by_transfer;
    status = hr_block_new(ctx, h->account, tier, bytes, HR_ZERO, name, &i->block);
    if (status != TIGA_OK) {
        instance_free(i);
        return status;
    }
    pthread_mutex_lock(&h->lock);
    status = check_size(ctx, h, name, version, tier, bytes); /* another thread may have been faster */
    if (status == TIGA_OK) {
        i->next = h->instances;
        h->instances = i;
    }
    pthread_mutex_unlock(&h->lock);
    if (status != TIGA_OK)
        instance_free(i);
    return status;
}

/* ---- waiting ---- */

static uint64_t this_thread(void) { return (uint64_t)pthread_self(); }

static bool holds(const hr_named *i) {
    bool mine = i->writing && i->writer == this_thread();
    for (int k = 0; k < HR_HOLDERS; k++)
        mine |= i->holders[k] != 0 && i->holders[k] == this_thread();
    return mine;
}

bool hr_named_is_busy(const hr_named *i, int what) {
    return (what & HR_OF_WRITER && i->writing) || (what & HR_OF_READERS && i->readers) ||
           (what & HR_OF_INCOMING && (i->incoming || (i->outgoing && !i->block.account))) ||
           (what & HR_OF_OUTGOING && i->outgoing);
}

tiga_status hr_named_wait_until(tiga_context *ctx, tiga_hierarchy *h, const char *who, const char *name,
                                int64_t version, int32_t tier, int what, hr_named **out) {
    hr_named *i;
    while ((i = hr_named_find(h, name, version, tier)) && hr_named_is_busy(i, what)) {
        bool pinned = (what & HR_OF_WRITER && i->writing) || (what & HR_OF_READERS && i->readers);
        if (pinned && holds(i))
            return hr_named_fail(ctx, TIGA_E_ARGUMENT, who, name, version, tier,
                                 "it is pinned by this thread, which would wait for itself");
        pthread_cond_wait(&h->changed, &h->lock);
    }
    *out = i;
    return i ? TIGA_OK : hr_named_fail(ctx, TIGA_E_NAME, who, name, version, tier, "there is no such instance");
}

/* The failure of the last transfer into i, once; what that transfer had allocated goes with it. */
static tiga_status take_failure(tiga_context *ctx, tiga_hierarchy *h, hr_named *i) {
    tiga_status status = i->failed;
    if (status == TIGA_OK)
        return TIGA_OK;
    rt_fail(ctx, status, "%s", i->error);
    i->failed = TIGA_OK;
    if (!i->block.account)
        hr_named_unlink(h, i);
    return status;
}

/* ---- the calls ---- */

tiga_status tiga_hierarchy_new(tiga_context *ctx, tiga_hierarchy **out) {
    if (out)
        *out = NULL;
    if (!ctx || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_hierarchy_new: an argument is NULL");
    tiga_execution *e = rt_account_of(ctx);
    hr_memory *m = hr_memory_of(ctx, e);
    tiga_hierarchy *h = m ? base_alloc_zero(sizeof *h) : NULL;
    if (!h) {
        tiga_execution_free(e);
        return rt_fail(ctx, TIGA_E_MEMORY, "tiga_hierarchy_new: out of memory");
    }
    h->account = e;
    h->memory = m;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    *out = h;
    return TIGA_OK;
}

static const hr_named *find_pinned(const tiga_hierarchy *h) {
    const hr_named *i = h->instances;
    while (i && !i->writing && !i->readers)
        i = i->next;
    return i;
}

static bool is_moving(const tiga_hierarchy *h) {
    for (const hr_named *i = h->instances; i; i = i->next)
        if (i->incoming || i->outgoing)
            return true;
    return false;
}

tiga_status tiga_hierarchy_close(tiga_context *ctx, tiga_hierarchy *h) {
    if (!h)
        return TIGA_OK;
    pthread_mutex_lock(&h->lock);
    const hr_named *pinned = find_pinned(h);
    tiga_status status = pinned ? hr_named_fail(ctx, TIGA_E_ARGUMENT, "close", pinned->name, pinned->version,
                                                pinned->tier, "it is pinned")
                                : TIGA_OK;
    while (!pinned && is_moving(h))
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
    if (pinned)
        return status;
    while (h->instances) {
        tiga_status failed = h->instances->failed;
        if (failed != TIGA_OK && status == TIGA_OK)
            status = rt_fail(ctx, failed, "%s", h->instances->error);
        hr_named_unlink(h, h->instances);
    }
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    tiga_execution_free(h->account);
    base_free(h);
    return status;
}

tiga_status tiga_hierarchy_allocate(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                    int32_t tier, int64_t bytes) {
    if (!h || !name || bytes < 0)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_hierarchy_allocate: an argument is NULL, or a size negative");
    return hr_named_allocate(ctx, h, name, version, tier, bytes, false);
}

tiga_status hr_named_check(tiga_context *ctx, const tiga_hierarchy *h, const char *who, const char *name) {
    return h && name ? TIGA_OK : rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_hierarchy_%s: an argument is NULL", who);
}

tiga_status tiga_hierarchy_release(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                   int32_t tier) {
    tiga_status status = hr_named_check(ctx, h, "release", name);
    if (status != TIGA_OK)
        return status;
    hr_named *i = NULL;
    pthread_mutex_lock(&h->lock);
    status = hr_named_wait_until(ctx, h, "release", name, version, tier, HR_OF_INCOMING | HR_OF_OUTGOING, &i);
    if (status == TIGA_OK && (i->writing || i->readers))
        status = hr_named_fail(ctx, TIGA_E_ARGUMENT, "release", name, version, tier, "it is pinned");
    if (status == TIGA_OK)
        hr_named_unlink(h, i);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return status;
}

static void hold(hr_named *i, int32_t mode) {
    if (mode == TIGA_WRITE) {
        i->writing = true;
        i->writer = this_thread();
        return;
    }
    i->readers++;
    for (int k = 0; k < HR_HOLDERS; k++)
        if (!i->holders[k]) {
            i->holders[k] = this_thread();
            break;
        }
}

static void let_go(hr_named *i) {
    if (i->writing) {
        i->writing = false;
        i->valid = true;
        return;
    }
    i->readers--;
    int mine = -1;
    for (int k = 0; k < HR_HOLDERS; k++)
        if (i->holders[k] == this_thread())
            mine = k;
    if (mine >= 0)
        i->holders[mine] = 0;
    if (i->readers == 0) /* pins may be given back on another thread */
        memset(i->holders, 0, sizeof i->holders);
}

tiga_status tiga_hierarchy_pin(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version, int32_t tier,
                               int32_t mode, void **data) {
    if (data)
        *data = NULL;
    tiga_status status = data ? hr_named_check(ctx, h, "pin", name) : hr_named_check(ctx, NULL, "pin", name);
    if (status != TIGA_OK)
        return status;
    hr_named *i = NULL;
    int what = HR_OF_WRITER | HR_OF_INCOMING | (mode == TIGA_WRITE ? HR_OF_READERS | HR_OF_OUTGOING : 0);
    pthread_mutex_lock(&h->lock);
    status = hr_named_wait_until(ctx, h, "pin", name, version, tier, what, &i);
    if (status == TIGA_OK)
        status = take_failure(ctx, h, i);
    if (status == TIGA_OK && tier == TIGA_TIER_DISK)
        status = hr_named_fail(ctx, TIGA_E_ARGUMENT, "pin", name, version, tier, "it is not in memory");
    if (status == TIGA_OK && mode == TIGA_READ && !i->valid)
        status = hr_named_fail(ctx, TIGA_E_ARGUMENT, "pin", name, version, tier, "it was never written");
    if (status == TIGA_OK) {
        hold(i, mode);
        *data = i->block.data;
    }
    pthread_mutex_unlock(&h->lock);
    return status;
}

tiga_status tiga_hierarchy_unpin(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                 int32_t tier) {
    tiga_status status = hr_named_check(ctx, h, "unpin", name);
    if (status != TIGA_OK)
        return status;
    pthread_mutex_lock(&h->lock);
    hr_named *i = hr_named_find(h, name, version, tier);
    if (!i)
        status = hr_named_fail(ctx, TIGA_E_NAME, "unpin", name, version, tier, "there is no such instance");
    else if (!i->writing && !i->readers)
        status = hr_named_fail(ctx, TIGA_E_ARGUMENT, "unpin", name, version, tier, "it is not pinned");
    else
        let_go(i);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return status;
}

tiga_status tiga_hierarchy_wait(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version, int32_t tier) {
    tiga_status status = hr_named_check(ctx, h, "wait", name);
    if (status != TIGA_OK)
        return status;
    hr_named *i = NULL;
    pthread_mutex_lock(&h->lock);
    status = hr_named_wait_until(ctx, h, "wait", name, version, tier, HR_OF_INCOMING | HR_OF_OUTGOING, &i);
    if (status == TIGA_OK)
        status = take_failure(ctx, h, i);
    pthread_mutex_unlock(&h->lock);
    return status;
}

tiga_status tiga_hierarchy_latest(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t *version) {
    tiga_status status = version ? hr_named_check(ctx, h, "latest", name) : hr_named_check(ctx, NULL, "latest", name);
    if (status != TIGA_OK)
        return status;
    bool found = false;
    pthread_mutex_lock(&h->lock);
    for (const hr_named *i = h->instances; i; i = i->next)
        if (i->valid && i->failed == TIGA_OK && strcmp(i->name, name) == 0 && (!found || i->version > *version)) {
            *version = i->version;
            found = true;
        }
    pthread_mutex_unlock(&h->lock);
    return found ? TIGA_OK : rt_fail(ctx, TIGA_E_NAME, "tiga_hierarchy_latest: '%s' has no version with a value", name);
}
