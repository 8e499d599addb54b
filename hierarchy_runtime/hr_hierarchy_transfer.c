/* Hierarchies: copies between tiers, by jobs of the account's worker. */
#include "hierarchy_runtime/hr_hierarchy.h"

#include <string.h>

typedef struct job {
    hr_job job; /* first */
    tiga_hierarchy *hierarchy;
    hr_named *from, *to; /* neither goes while it has transfers */
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
                               hr_named **from) {
    tiga_status status = hr_named_wait_until(ctx, h, "transfer", name, version, tier, HR_OF_WRITER, from);
    if (status == TIGA_OK && !(*from)->valid)
        status = hr_named_fail(ctx, TIGA_E_ARGUMENT, "transfer", name, version, tier, "it was never written");
    return status;
}

/* Allocates the target if it is not there; *made: this did. */
static tiga_status make_target(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                               const int32_t *tiers, bool *made) {
    hr_named *from, *to;
    pthread_mutex_lock(&h->lock);
    tiga_status status = find_source(ctx, h, name, version, tiers[0], &from);
    int64_t bytes = status == TIGA_OK ? from->bytes : 0;
    while ((to = hr_named_find(h, name, version, tiers[1])) && !to->block.account && !to->incoming && to->outgoing)
        pthread_cond_wait(&h->changed, &h->lock); /* they fail, and look at it until then */
    if (to && !to->block.account && !to->incoming) { /* left by a transfer that failed */
        hr_named_unlink(h, to);
        to = NULL;
    }
    pthread_mutex_unlock(&h->lock);
    if (status == TIGA_OK && !to) {
        status = hr_named_allocate(ctx, h, name, version, tiers[1], bytes, true);
        *made = status == TIGA_OK;
    }
    return status;
}

/* With the lock held: both ends, ready.  Each wait may let the other end change, so the source is looked at last. */
static tiga_status find_ends(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                             const int32_t *tiers, hr_named **from, hr_named **to) {
    for (;;) {
        tiga_status status =
            hr_named_wait_until(ctx, h, "transfer", name, version, tiers[1], HR_OF_WRITER | HR_OF_READERS, to);
        if (status == TIGA_OK)
            status = find_source(ctx, h, name, version, tiers[0], from);
        if (status != TIGA_OK)
            return status;
        if (*to == hr_named_find(h, name, version, tiers[1]) && !hr_named_is_busy(*to, HR_OF_WRITER | HR_OF_READERS))
            return TIGA_OK;
    }
}

/* A target that this transfer made and then had no use for. */
static void drop_target(tiga_hierarchy *h, const char *name, int64_t version, int32_t tier) {
    hr_named *i = hr_named_find(h, name, version, tier);
    if (i && i->made_by_transfer && !i->valid &&
        !hr_named_is_busy(i, HR_OF_WRITER | HR_OF_READERS | HR_OF_INCOMING | HR_OF_OUTGOING))
        hr_named_unlink(h, i);
}

tiga_status tiga_hierarchy_transfer(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                    int32_t from, int32_t to) {
    tiga_status status = hr_named_check(ctx, h, "transfer", name);
    if (status != TIGA_OK)
        return status;
    if (from == to)
        return hr_named_fail(ctx, TIGA_E_ARGUMENT, "transfer", name, version, to, "it is there");
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
