/* Buffers: owners and pins.  How their bytes come and go is in hr_residency.c. */
#include "hierarchy_runtime/hr_memory.h"

#include <string.h>
#include <unistd.h>

const char *hr_buffer_text(const tiga_buffer *b) { return b->name ? b->name : "a buffer"; }

tiga_status hr_buffer_make(tiga_context *ctx, const char *name, int32_t tier, int64_t bytes, tiga_buffer **out) {
    *out = NULL;
    tiga_execution *e = rt_account_of(ctx);
    hr_memory *m = hr_memory_of(ctx, e);
    tiga_buffer *b = m ? base_alloc_zero(sizeof *b) : NULL;
    size_t n = name && *name ? strlen(name) + 1 : 0;
    if (b && n && !(b->name = base_alloc(n))) {
        base_free(b);
        b = NULL;
    }
    if (!b) {
        tiga_execution_free(e);
        return rt_fail(ctx, TIGA_E_MEMORY, "out of memory");
    }
    base_copy(b->name, name, n);
    b->account = e;
    b->memory = m;
    atomic_init(&b->refs, 1);
    b->tier = tier;
    b->bytes = bytes;
    *out = b;
    return TIGA_OK;
}

static tiga_status make_resident(tiga_context *ctx, const char *name, int32_t tier, int64_t bytes, int flags,
                                 tiga_buffer **out) {
    if (out)
        *out = NULL;
    if (!ctx || !out || bytes < 0)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_buffer_new: an argument is NULL, or a size negative");
    if (tier != TIGA_TIER_HOST && tier != TIGA_TIER_PINNED)
        return rt_fail(ctx, TIGA_E_UNSUPPORTED, "tiga_buffer_new: buffers live on the host here, not in the %s tier",
                       tiga_tier_text(tier));
    tiga_buffer *b;
    tiga_status status = hr_buffer_make(ctx, name, tier, bytes, &b);
    if (status != TIGA_OK)
        return status;
    status = hr_block_new(ctx, b->account, tier, bytes, flags, hr_buffer_text(b), &b->here);
    if (status != TIGA_OK) {
        tiga_buffer_free(b);
        return status;
    }
    pthread_mutex_lock(&b->memory->lock);
    hr_idle_add(b);
    hr_memory_unlock(b->memory);
    *out = b;
    return TIGA_OK;
}

tiga_status tiga_buffer_new(tiga_context *ctx, const char *name, int32_t tier, int64_t bytes, tiga_buffer **out) {
    return make_resident(ctx, name, tier, bytes, HR_ZERO, out);
}

tiga_status tiga_buffer_new_unset(tiga_context *ctx, const char *name, int32_t tier, int64_t bytes, tiga_buffer **out) {
    return make_resident(ctx, name, tier, bytes, 0, out);
}

tiga_buffer *tiga_buffer_retain(tiga_buffer *b) {
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void tiga_buffer_free(tiga_buffer *b) {
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    hr_memory *m = b->memory;
    pthread_mutex_lock(&m->lock);
    while (b->moving && b->mover == getpid()) /* an eviction, or read-ahead, has it */
        pthread_cond_wait(&m->moved, &m->lock);
    bool lost = b->moving; /* in a child of fork, whose parent goes on moving it: it stays as it is */
    hr_block copy = {0};
    if (!lost) {
        hr_copy_stop(b);
        hr_idle_remove(b);
        copy = hr_copy_take(b);
    }
    pthread_mutex_unlock(&m->lock);
    if (lost)
        return;
    hr_block_fini(&copy);
    hr_block_fini(&b->here);
    hr_block_fini(&b->away);
    tiga_snapshot_free(b->file);
    tiga_execution_free(b->account);
    base_free(b->name);
    base_free(b);
}

int64_t tiga_buffer_bytes(const tiga_buffer *b) { return b ? b->bytes : 0; }
const char *tiga_buffer_name(const tiga_buffer *b) { return b && b->name ? b->name : ""; }
tiga_execution *tiga_buffer_owner(const tiga_buffer *b) { return b ? b->account : NULL; }

/* ---- pins ---- */

static uint64_t this_thread(void) { return (uint64_t)pthread_self(); }

typedef enum blocked { FREE, BY_OTHERS, BY_ITSELF } blocked;

/* Whether a pin of this mode has to wait: writers for everybody, readers for a writer. */
static blocked is_blocked(const tiga_buffer *b, int32_t mode) {
    blocked answer = FREE;
    for (const tiga_pin *p = b->pins; p; p = p->next)
        if (mode == TIGA_WRITE || p->mode == TIGA_WRITE) {
            if (p->thread == this_thread())
                return BY_ITSELF;
            answer = BY_OTHERS;
        }
    return answer;
}

static tiga_status fail_itself(tiga_context *ctx, const tiga_buffer *b, const char *who) {
    return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: %s is pinned by this thread, which would wait for itself", who,
                   hr_buffer_text(b));
}

/* With the lock held. */
static tiga_status wait_free(tiga_context *ctx, tiga_buffer *b, int32_t mode, const char *who) {
    for (;;) {
        blocked answer = b->moving ? BY_OTHERS : is_blocked(b, mode);
        if (answer == FREE && mode == TIGA_WRITE && hr_is_copying(b)) {
            hr_copy_stop(b);
            continue;
        }
        if (answer == FREE)
            return TIGA_OK;
        if (answer == BY_ITSELF)
            return fail_itself(ctx, b, who);
        pthread_cond_wait(&b->memory->moved, &b->memory->lock);
    }
}

static void link_pin(tiga_buffer *b, tiga_pin *pin, int32_t mode) {
    hr_idle_remove(b);
    *pin = (tiga_pin){.data = b->here.data, .buffer = tiga_buffer_retain(b), .mode = mode, .thread = this_thread()};
    pin->next = b->pins;
    if (b->pins)
        b->pins->prev = pin;
    b->pins = pin;
    b->n_pins++;
}

static void unlink_pin(tiga_buffer *b, tiga_pin *pin) {
    if (pin->prev)
        pin->prev->next = pin->next;
    else
        b->pins = pin->next;
    if (pin->next)
        pin->next->prev = pin->prev;
    b->n_pins--;
}

/* Home and free for `mode`, with the lock held; the two may have to be had again and again. */
static tiga_status settle(tiga_context *ctx, tiga_buffer *b, int32_t mode, const char *who) {
    for (;;) {
        tiga_status status = wait_free(ctx, b, mode, who);
        if (status != TIGA_OK || hr_is_home(b))
            return status;
        status = hr_bring_home(ctx, b);
        if (status != TIGA_OK)
            return status;
    }
}

tiga_status tiga_buffer_pin(tiga_context *ctx, tiga_buffer *b, int32_t mode, tiga_pin *pin) {
    if (pin)
        memset(pin, 0, sizeof *pin);
    if (!b || !pin || (mode != TIGA_READ && mode != TIGA_WRITE))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_buffer_pin: an argument is NULL, or a mode unknown");
    tiga_snapshot *file = NULL;
    hr_block copy = {0};
    pthread_mutex_lock(&b->memory->lock);
    tiga_status status = settle(ctx, b, mode, "tiga_buffer_pin");
    if (status == TIGA_OK) {
        link_pin(b, pin, mode);
        if (mode == TIGA_WRITE) { /* the files have another value from now on */
            file = b->file;
            b->file = NULL;
            copy = hr_copy_take(b);
            b->copy_failed = false;
        }
    }
    pthread_mutex_unlock(&b->memory->lock);
    tiga_snapshot_free(file);
    hr_block_fini(&copy);
    return status;
}

static bool is_free(const tiga_buffer *b) { return !b->moving && b->n_pins == 0 && hr_is_home(b); }

void tiga_buffer_unpin(tiga_pin *pin) {
    tiga_buffer *b = pin ? pin->buffer : NULL;
    if (!b)
        return;
    hr_memory *m = b->memory;
    pthread_mutex_lock(&m->lock);
    unlink_pin(b, pin);
    b->version += pin->mode == TIGA_WRITE;
    if (b->n_pins == 0) {
        bool leave = b->leave; /* asked for while it was pinned; if there is no room on disk it stays */
        b->leave = false;
        hr_idle_add(b);
        while (leave && is_free(b) && hr_is_copying(b))
            pthread_cond_wait(&m->moved, &m->lock);
        if (leave && is_free(b) && b->bytes > 0)
            (void)hr_move_out(NULL, b, false);
    }
    pthread_cond_broadcast(&m->moved);
    hr_memory_unlock(m);
    memset(pin, 0, sizeof *pin);
    tiga_buffer_free(b);
}

/* ---- residency ---- */

tiga_status tiga_buffer_spill(tiga_context *ctx, tiga_buffer *b) {
    if (!b)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_buffer_spill: the buffer is NULL");
    pthread_mutex_lock(&b->memory->lock);
    tiga_status status;
    while ((status = wait_free(ctx, b, TIGA_READ, "tiga_buffer_spill")) == TIGA_OK && hr_is_copying(b))
        pthread_cond_wait(&b->memory->moved, &b->memory->lock); /* then it need not be written again */
    if (status == TIGA_OK && b->n_pins > 0)
        b->leave = true;
    else if (status == TIGA_OK && hr_is_home(b) && b->bytes > 0)
        status = hr_move_out(ctx, b, false);
    else if (status == TIGA_OK) /* evicted before */
        b->asked = true;
    pthread_mutex_unlock(&b->memory->lock);
    return status;
}

tiga_status tiga_buffer_realize(tiga_context *ctx, tiga_buffer *b) {
    if (!b)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_buffer_realize: the buffer is NULL");
    pthread_mutex_lock(&b->memory->lock);
    tiga_status status = settle(ctx, b, TIGA_READ, "tiga_buffer_realize");
    hr_memory_unlock(b->memory);
    return status;
}

tiga_status tiga_buffer_copy(tiga_context *ctx, tiga_buffer *b, int32_t tier, tiga_buffer **out) {
    if (out)
        *out = NULL;
    if (!b || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_buffer_copy: an argument is NULL");
    tiga_pin from, to;
    tiga_buffer *made = NULL;
    tiga_status status = tiga_buffer_pin(ctx, b, TIGA_READ, &from);
    if (status == TIGA_OK)
        status = tiga_buffer_new_unset(ctx, b->name, tier, b->bytes, &made);
    if (status == TIGA_OK)
        status = tiga_buffer_pin(ctx, made, TIGA_WRITE, &to);
    if (status == TIGA_OK) {
        base_copy(to.data, from.data, (size_t)b->bytes);
        tiga_buffer_unpin(&to);
        *out = made;
    } else {
        tiga_buffer_free(made);
    }
    tiga_buffer_unpin(&from);
    return status;
}

tiga_status tiga_buffer_residency(tiga_buffer *b, tiga_residency *out) {
    if (!b || !out)
        return TIGA_E_ARGUMENT;
    pthread_mutex_lock(&b->memory->lock);
    *out = (tiga_residency){.tier = b->tier,
                            .resident = hr_is_home(b),
                            .backing = b->away.account ? TIGA_BACKING_SPILL
                                       : b->file       ? TIGA_BACKING_SNAPSHOT
                                                       : TIGA_BACKING_NONE,
                            .pins = b->n_pins,
                            .bytes = b->bytes,
                            .version = b->version};
    pthread_mutex_unlock(&b->memory->lock);
    return TIGA_OK;
}
