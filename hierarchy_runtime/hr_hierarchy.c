/* Hierarchies: instances of (name, version) in tiers, under one lock; transfers are jobs of the account's worker, which runs
 * them in the order they were asked for.  So a transfer that reads what an earlier one writes needs no waiting (RAW among
 * transfers), nor do two into one target (WAW); pins wait for the transfers of their instance, and transfers, when they
 * are asked for, for the pins. */
#include "hierarchy_runtime/hr_memory.h"

#include <string.h>

enum { HOLDERS = 8 };

typedef struct instance {
    struct instance *next;
    char *name;
    int64_t version, bytes;
    int32_t tier;
    hr_block block;
    bool valid; /* or will be, when its incoming transfers are done */
    bool writing;
    int readers;
    uint64_t writer, holders[HOLDERS]; /* threads: of the pin for writing, of the first readers */
    int incoming, outgoing; /* transfers */
    bool made_by_transfer;
    tiga_status failed; /* of the last transfer into it; seen once */
    char error[256];
} instance;

struct tiga_hierarchy {
    tiga_execution *account;
    hr_memory *memory;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    instance *instances;
};

/* ---- instances ---- */

static instance *find(const tiga_hierarchy *h, const char *name, int64_t version, int32_t tier) {
    instance *i = h->instances;
    while (i && (i->version != version || i->tier != tier || strcmp(i->name, name) != 0))
        i = i->next;
    return i;
}

static tiga_status fail(tiga_context *ctx, tiga_status status, const char *who, const char *name, int64_t version,
                        int32_t tier, const char *why) {
    return rt_fail(ctx, status, "tiga_hierarchy_%s: '%s@%lld' in the %s tier: %s", who, name, (long long)version,
                   tiga_tier_text(tier), why);
}

static void instance_free(instance *i) {
    hr_block_fini(&i->block);
    base_free(i->name);
    base_free(i);
}

static void unlink_instance(tiga_hierarchy *h, instance *i) {
    instance **place = &h->instances;
    while (*place != i)
        place = &(*place)->next;
    *place = i->next;
    instance_free(i);
}

static tiga_status check_size(tiga_context *ctx, const tiga_hierarchy *h, const char *name, int64_t version,
                              int32_t tier, int64_t bytes) {
    for (const instance *i = h->instances; i; i = i->next)
        if (strcmp(i->name, name) == 0 && i->bytes != bytes)
            return rt_fail(ctx, TIGA_E_ARGUMENT,
                           "tiga_hierarchy_allocate: '%s@%lld' in the %s tier has %lld bytes, not %lld", name,
                           (long long)i->version, tiga_tier_text(i->tier), (long long)i->bytes, (long long)bytes);
    if (find(h, name, version, tier))
        return fail(ctx, TIGA_E_ARGUMENT, "allocate", name, version, tier, "it is there already");
    return TIGA_OK;
}

static instance *instance_new(tiga_context *ctx, const char *name, int64_t version, int32_t tier, int64_t bytes) {
    size_t n = strlen(name) + 1;
    instance *i = base_alloc_zero(sizeof *i);
    char *copy = i ? base_alloc(n) : NULL;
    if (!copy) {
        base_free(i);
        rt_fail(ctx, TIGA_E_MEMORY, "tiga_hierarchy_allocate: out of memory");
        return NULL;
    }
    memcpy(copy, name, n);
    *i = (instance){.name = copy, .version = version, .tier = tier, .bytes = bytes};
    return i;
}

/* Without the lock while the bytes are had: that may evict buffers and ask the host to collect, which waits for transfers. */
static tiga_status allocate(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version, int32_t tier,
                            int64_t bytes, bool by_transfer) {
    pthread_mutex_lock(&h->lock);
    tiga_status status = check_size(ctx, h, name, version, tier, bytes);
    pthread_mutex_unlock(&h->lock);
    if (status != TIGA_OK)
        return status;
    instance *i = instance_new(ctx, name, version, tier, bytes);
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

static bool holds(const instance *i) {
    bool mine = i->writing && i->writer == this_thread();
    for (int k = 0; k < HOLDERS; k++)
        mine |= i->holders[k] != 0 && i->holders[k] == this_thread();
    return mine;
}

/* What an instance must be free of.  One whose bytes went with a failed transfer is still what transfers out of it, asked
 * for before that, look at: free of incoming ones is it after those. */
enum { OF_WRITER = 1, OF_READERS = 2, OF_INCOMING = 4, OF_OUTGOING = 8 };

static bool is_busy(const instance *i, int what) {
    return (what & OF_WRITER && i->writing) || (what & OF_READERS && i->readers) ||
           (what & OF_INCOMING && (i->incoming || (i->outgoing && !i->block.account))) ||
           (what & OF_OUTGOING && i->outgoing);
}

/* *out may go meanwhile, so it is looked up after each wait.  A wait for a pin of this thread is an error. */
static tiga_status wait_until(tiga_context *ctx, tiga_hierarchy *h, const char *who, const char *name, int64_t version,
                              int32_t tier, int what, instance **out) {
    instance *i;
    while ((i = find(h, name, version, tier)) && is_busy(i, what)) {
        bool pinned = (what & OF_WRITER && i->writing) || (what & OF_READERS && i->readers);
        if (pinned && holds(i))
            return fail(ctx, TIGA_E_ARGUMENT, who, name, version, tier,
                        "it is pinned by this thread, which would wait for itself");
        pthread_cond_wait(&h->changed, &h->lock);
    }
    *out = i;
    return i ? TIGA_OK : fail(ctx, TIGA_E_NAME, who, name, version, tier, "there is no such instance");
}

/* The failure of the last transfer into i, once; what that transfer had allocated goes with it. */
static tiga_status take_failure(tiga_context *ctx, tiga_hierarchy *h, instance *i) {
    tiga_status status = i->failed;
    if (status == TIGA_OK)
        return TIGA_OK;
    rt_fail(ctx, status, "%s", i->error);
    i->failed = TIGA_OK;
    if (!i->block.account)
        unlink_instance(h, i);
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

static const instance *find_pinned(const tiga_hierarchy *h) {
    const instance *i = h->instances;
    while (i && !i->writing && !i->readers)
        i = i->next;
    return i;
}

static bool is_moving(const tiga_hierarchy *h) {
    for (const instance *i = h->instances; i; i = i->next)
        if (i->incoming || i->outgoing)
            return true;
    return false;
}

tiga_status tiga_hierarchy_close(tiga_context *ctx, tiga_hierarchy *h) {
    if (!h)
        return TIGA_OK;
    pthread_mutex_lock(&h->lock);
    const instance *pinned = find_pinned(h);
    tiga_status status =
        pinned ? fail(ctx, TIGA_E_ARGUMENT, "close", pinned->name, pinned->version, pinned->tier, "it is pinned")
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
        unlink_instance(h, h->instances);
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
    return allocate(ctx, h, name, version, tier, bytes, false);
}

static tiga_status check_call(tiga_context *ctx, const tiga_hierarchy *h, const char *who, const char *name) {
    return h && name ? TIGA_OK : rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_hierarchy_%s: an argument is NULL", who);
}

tiga_status tiga_hierarchy_release(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                   int32_t tier) {
    tiga_status status = check_call(ctx, h, "release", name);
    if (status != TIGA_OK)
        return status;
    instance *i = NULL;
    pthread_mutex_lock(&h->lock);
    status = wait_until(ctx, h, "release", name, version, tier, OF_INCOMING | OF_OUTGOING, &i);
    if (status == TIGA_OK && (i->writing || i->readers))
        status = fail(ctx, TIGA_E_ARGUMENT, "release", name, version, tier, "it is pinned");
    if (status == TIGA_OK)
        unlink_instance(h, i);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return status;
}

static void hold(instance *i, int32_t mode) {
    if (mode == TIGA_WRITE) {
        i->writing = true;
        i->writer = this_thread();
        return;
    }
    i->readers++;
    for (int k = 0; k < HOLDERS; k++)
        if (!i->holders[k]) {
            i->holders[k] = this_thread();
            break;
        }
}

static void let_go(instance *i) {
    if (i->writing) {
        i->writing = false;
        i->valid = true;
        return;
    }
    i->readers--;
    int mine = -1;
    for (int k = 0; k < HOLDERS; k++)
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
    tiga_status status = data ? check_call(ctx, h, "pin", name) : check_call(ctx, NULL, "pin", name);
    if (status != TIGA_OK)
        return status;
    instance *i = NULL;
    int what = OF_WRITER | OF_INCOMING | (mode == TIGA_WRITE ? OF_READERS | OF_OUTGOING : 0);
    pthread_mutex_lock(&h->lock);
    status = wait_until(ctx, h, "pin", name, version, tier, what, &i);
    if (status == TIGA_OK)
        status = take_failure(ctx, h, i);
    if (status == TIGA_OK && tier == TIGA_TIER_DISK)
        status = fail(ctx, TIGA_E_ARGUMENT, "pin", name, version, tier, "it is not in memory");
    if (status == TIGA_OK && mode == TIGA_READ && !i->valid)
        status = fail(ctx, TIGA_E_ARGUMENT, "pin", name, version, tier, "it was never written");
    if (status == TIGA_OK) {
        hold(i, mode);
        *data = i->block.data;
    }
    pthread_mutex_unlock(&h->lock);
    return status;
}

tiga_status tiga_hierarchy_unpin(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                 int32_t tier) {
    tiga_status status = check_call(ctx, h, "unpin", name);
    if (status != TIGA_OK)
        return status;
    pthread_mutex_lock(&h->lock);
    instance *i = find(h, name, version, tier);
    if (!i)
        status = fail(ctx, TIGA_E_NAME, "unpin", name, version, tier, "there is no such instance");
    else if (!i->writing && !i->readers)
        status = fail(ctx, TIGA_E_ARGUMENT, "unpin", name, version, tier, "it is not pinned");
    else
        let_go(i);
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return status;
}

/* ---- transfers ---- */

typedef struct job {
    hr_job job; /* first */
    tiga_hierarchy *hierarchy;
    instance *from, *to; /* neither goes while it has transfers */
} job;

/* With the lock held. */
static void transfer_failed(tiga_context *ctx, job *t, tiga_status status) {
    t->to->failed = status;
    strncpy(t->to->error, tiga_error_text(ctx), sizeof t->to->error - 1);
    t->to->valid = t->to->incoming > 1; /* another one is to fill it */
    if (t->to->made_by_transfer && t->to->incoming == 1) /* and nobody else fills it */
        hr_block_fini(&t->to->block);
}

static void run_transfer(hr_job *user) {
    job *t = (job *)user;
    tiga_hierarchy *h = t->hierarchy;
    tiga_context ctx = {.status = TIGA_OK}; /* for the words of a failure */
    pthread_mutex_init(&ctx.lock, NULL);
    pthread_mutex_lock(&h->lock);
    bool good = t->from->valid && t->from->failed == TIGA_OK && t->to->block.account;
    tiga_status status = good ? TIGA_OK : t->from->failed != TIGA_OK ? t->from->failed : TIGA_E_FILE;
    if (!good)
        rt_fail(&ctx, status, "'%s@%lld': what it was to be copied from could not be filled", t->to->name,
                (long long)t->to->version);
    pthread_mutex_unlock(&h->lock);
    if (good)
        status = hr_transfer(&ctx, &t->from->block, &t->to->block, t->to->name);
    pthread_mutex_lock(&h->lock);
    if (status == TIGA_OK)
        t->to->failed = TIGA_OK;
    else
        transfer_failed(&ctx, t, status);
    t->from->outgoing--;
    t->to->incoming--;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_destroy(&ctx.lock);
    base_free(t);
}

/* With the lock held: the source has a value, or will have. */
static tiga_status find_source(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version, int32_t tier,
                               instance **from) {
    tiga_status status = wait_until(ctx, h, "transfer", name, version, tier, OF_WRITER, from);
    if (status == TIGA_OK && !(*from)->valid)
        status = fail(ctx, TIGA_E_ARGUMENT, "transfer", name, version, tier, "it was never written");
    return status;
}

/* Allocates the target if it is not there; *made: this did. */
static tiga_status make_target(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                               const int32_t *tiers, bool *made) {
    instance *from, *to;
    pthread_mutex_lock(&h->lock);
    tiga_status status = find_source(ctx, h, name, version, tiers[0], &from);
    int64_t bytes = status == TIGA_OK ? from->bytes : 0;
    while ((to = find(h, name, version, tiers[1])) && !to->block.account && !to->incoming && to->outgoing)
        pthread_cond_wait(&h->changed, &h->lock); /* they fail, and look at it until then */
    if (to && !to->block.account && !to->incoming) { /* left by a transfer that failed */
        unlink_instance(h, to);
        to = NULL;
    }
    pthread_mutex_unlock(&h->lock);
    if (status == TIGA_OK && !to) {
        status = allocate(ctx, h, name, version, tiers[1], bytes, true);
        *made = status == TIGA_OK;
    }
    return status;
}

/* With the lock held: both ends, ready.  Each wait may let the other end change, so the source is looked at last. */
static tiga_status find_ends(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                             const int32_t *tiers, instance **from, instance **to) {
    for (;;) {
        tiga_status status = wait_until(ctx, h, "transfer", name, version, tiers[1], OF_WRITER | OF_READERS, to);
        if (status == TIGA_OK)
            status = find_source(ctx, h, name, version, tiers[0], from);
        if (status != TIGA_OK)
            return status;
        if (*to == find(h, name, version, tiers[1]) && !is_busy(*to, OF_WRITER | OF_READERS))
            return TIGA_OK;
    }
}

/* A target that this transfer made and then had no use for. */
static void drop_target(tiga_hierarchy *h, const char *name, int64_t version, int32_t tier) {
    instance *i = find(h, name, version, tier);
    if (i && i->made_by_transfer && !i->valid && !is_busy(i, OF_WRITER | OF_READERS | OF_INCOMING | OF_OUTGOING))
        unlink_instance(h, i);
}

tiga_status tiga_hierarchy_transfer(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                    int32_t from, int32_t to) {
    tiga_status status = check_call(ctx, h, "transfer", name);
    if (status != TIGA_OK)
        return status;
    if (from == to)
        return fail(ctx, TIGA_E_ARGUMENT, "transfer", name, version, to, "it is there");
    job *t = base_alloc_zero(sizeof *t);
    if (!t)
        return rt_fail(ctx, TIGA_E_MEMORY, "tiga_hierarchy_transfer: out of memory");
    t->hierarchy = h;
    t->job.run = run_transfer;
    bool made = false;
    const int32_t tiers[] = {from, to};
    status = make_target(ctx, h, name, version, tiers, &made);
    pthread_mutex_lock(&h->lock);
    if (status == TIGA_OK)
        status = find_ends(ctx, h, name, version, tiers, &t->from, &t->to);
    if (status == TIGA_OK) {
        t->from->outgoing++;
        t->to->incoming++;
        t->to->valid = true; /* for transfers out of it that are asked for after this one */
    } else if (made) {
        drop_target(h, name, version, to);
    }
    pthread_mutex_unlock(&h->lock);
    if (status == TIGA_OK)
        hr_worker_add(h->account, &h->memory->worker, &t->job);
    else
        base_free(t);
    return status;
}

tiga_status tiga_hierarchy_wait(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version, int32_t tier) {
    tiga_status status = check_call(ctx, h, "wait", name);
    if (status != TIGA_OK)
        return status;
    instance *i = NULL;
    pthread_mutex_lock(&h->lock);
    status = wait_until(ctx, h, "wait", name, version, tier, OF_INCOMING | OF_OUTGOING, &i);
    if (status == TIGA_OK)
        status = take_failure(ctx, h, i);
    pthread_mutex_unlock(&h->lock);
    return status;
}

tiga_status tiga_hierarchy_latest(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t *version) {
    tiga_status status = version ? check_call(ctx, h, "latest", name) : check_call(ctx, NULL, "latest", name);
    if (status != TIGA_OK)
        return status;
    bool found = false;
    pthread_mutex_lock(&h->lock);
    for (const instance *i = h->instances; i; i = i->next)
        if (i->valid && i->failed == TIGA_OK && strcmp(i->name, name) == 0 && (!found || i->version > *version)) {
            *version = i->version;
            found = true;
        }
    pthread_mutex_unlock(&h->lock);
    return found ? TIGA_OK : rt_fail(ctx, TIGA_E_NAME, "tiga_hierarchy_latest: '%s' has no version with a value", name);
}
