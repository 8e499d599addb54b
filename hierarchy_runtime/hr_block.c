/* Blocks: bytes of one tier.  Charged to the account first, then allocated; what cannot be allocated is discharged. */
#include "hierarchy_runtime/hr_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

tiga_status hr_fail_errno(tiga_context *ctx, tiga_status status, const char *path, const char *what) {
    return rt_fail(ctx, status, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* Without a device provider pinned memory is memory that is locked: it is never swapped out. */
static tiga_status take_pinned(tiga_context *ctx, int64_t bytes, const char *what, void **out) {
    size_t n = bytes > 0 ? (size_t)bytes : 1;
    void *p = base_inject_hit(BASE_INJECT_ALLOC)
                  ? MAP_FAILED
                  : mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED && mlock(p, n) != 0) {
        int saved = errno;
        munmap(p, n);
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: cannot lock %lld bytes of memory: %s", what, (long long)bytes,
                       strerror(saved));
    }
    *out = p == MAP_FAILED ? NULL : p;
    return *out ? TIGA_OK : rt_fail(ctx, TIGA_E_MEMORY, "%s: cannot allocate %lld bytes", what, (long long)bytes);
}

static tiga_status take_disk(tiga_context *ctx, hr_block *b, const char *what) {
    hr_memory *m = hr_memory_of(ctx, b->account);
    if (!m)
        return TIGA_E_MEMORY;
    b->sums = base_alloc_zero((size_t)hr_pages(b->bytes) * sizeof *b->sums);
    if (!b->sums)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", what);
    tiga_status status = hr_spill_take(ctx, &m->spill, hr_spill_folder(b->account), b);
    if (status != TIGA_OK)
        base_free(b->sums);
    return status;
}

static tiga_status take(tiga_context *ctx, hr_block *b, bool zero, const char *what) {
    switch (b->tier) {
    case TIGA_TIER_HOST:
        return rt_mem_take(ctx, b->bytes, 1, zero, what, &b->data);
    case TIGA_TIER_PINNED:
        return take_pinned(ctx, b->bytes, what, &b->data);
    case TIGA_TIER_DISK:
        return take_disk(ctx, b, what);
    default:
        return rt_fail(ctx, TIGA_E_UNSUPPORTED, "%s: this runtime has no %s tier", what, tiga_tier_text(b->tier));
    }
}

/* ---- memory that goes from an evicted value to the one it makes room for ---- */

enum { SPARE_FROM = 1 << 20 };

void hr_allocating_begin(hr_memory *m) {
    pthread_mutex_lock(&m->lock);
    m->n_allocating++;
    pthread_mutex_unlock(&m->lock);
}

void hr_allocating_end(hr_memory *m) {
    void *spare = NULL;
    pthread_mutex_lock(&m->lock);
    if (--m->n_allocating == 0) {
        spare = m->spare;
        m->spare = NULL;
    }
    pthread_mutex_unlock(&m->lock);
    rt_mem_free(spare);
}

static void *take_spare(hr_memory *m, int64_t bytes, bool zero) {
    void *spare = NULL;
    pthread_mutex_lock(&m->lock);
    if (m->spare && m->spare_bytes == bytes) { /* as much as is charged for it, not more */
        spare = m->spare;
        m->spare = NULL;
    }
    pthread_mutex_unlock(&m->lock);
    if (spare && zero)
        memset(spare, 0, (size_t)bytes);
    return spare;
}

/* m: who may keep its memory, or NULL. */
static void block_fini(hr_block *b, hr_memory *m) {
    if (!b->account)
        return;
    if (b->tier == TIGA_TIER_HOST && m && b->data && hr_kept_give(m, b->data, b->room, b->bytes))
        b->data = NULL;
    else if (b->tier == TIGA_TIER_HOST)
        rt_mem_free(b->data);
    else if (b->tier == TIGA_TIER_PINNED)
        munmap(b->data, b->bytes > 0 ? (size_t)b->bytes : 1);
    else if (b->tier == TIGA_TIER_DISK)
        hr_spill_give(b);
    base_free(b->sums);
    if (!b->uncharged)
        rt_discharge(b->account, b->tier, b->bytes);
    tiga_execution *e = b->account;
    memset(b, 0, sizeof *b);
    tiga_execution_free(e);
}

void hr_block_hand_over(hr_block *b) {
    hr_memory *m = b->account && b->tier == TIGA_TIER_HOST ? (hr_memory *)b->account->room : NULL;
    if (m && b->bytes >= SPARE_FROM) {
        pthread_mutex_lock(&m->lock);
        if (m->n_allocating > 0 && !m->spare) {
            m->spare = b->data;
            m->spare_bytes = b->bytes;
            b->data = NULL;
        }
        pthread_mutex_unlock(&m->lock);
    }
    block_fini(b, NULL);
}

static void *take_kept(hr_memory *m, hr_block *b, bool zero) {
    void *data = hr_kept_take(m, b->bytes, &b->room);
    if (data && zero)
        memset(data, 0, (size_t)b->bytes);
    return data;
}

/* Charged memory: the spare, or what was kept, if it fits. */
static tiga_status charge_and_take(tiga_context *ctx, hr_block *b, int flags, const char *what) {
    hr_memory *m = b->tier == TIGA_TIER_HOST ? hr_memory_of(NULL, b->account) : NULL;
    hr_memory *evicting = m && b->account->options.eviction == TIGA_EVICT_LRU ? m : NULL;
    if (evicting)
        hr_allocating_begin(evicting);
    b->uncharged = flags & HR_UNCHARGED;
    tiga_status status =
        flags & (HR_CHARGED | HR_UNCHARGED) ? TIGA_OK : rt_charge(ctx, b->account, b->tier, b->bytes, what);
    bool charged = status == TIGA_OK;
    if (charged && !b->uncharged && b->tier == TIGA_TIER_DISK && hr_memory_if(b->account))
        (void)hr_copies_give_way(hr_memory_if(b->account), false);
    b->room = b->bytes;
    if (charged && evicting)
        b->data = take_spare(evicting, b->bytes, flags & HR_ZERO);
    if (charged && !b->data && m)
        b->data = take_kept(m, b, flags & HR_ZERO);
    if (charged && !b->data)
        status = take(ctx, b, flags & HR_ZERO, what);
    if (charged && status != TIGA_OK && !b->uncharged)
        rt_discharge(b->account, b->tier, b->bytes);
    if (evicting)
        hr_allocating_end(evicting);
    return status;
}

tiga_status hr_block_new(tiga_context *ctx, tiga_execution *e, int32_t tier, int64_t bytes, int flags, const char *what,
                         hr_block *out) {
    memset(out, 0, sizeof *out);
    if (bytes < 0 || tier < 0 || tier >= TIGA_TIERS)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: %lld bytes in tier %d", what, (long long)bytes, (int)tier);
    hr_block b = {.account = e, .tier = tier, .bytes = bytes};
    tiga_status status = charge_and_take(ctx, &b, flags, what);
    if (status != TIGA_OK)
        return status;
    tiga_execution_retain(e);
    *out = b;
    return TIGA_OK;
}

void hr_block_fini(hr_block *b) { block_fini(b, b->account ? hr_memory_if(b->account) : NULL); }
