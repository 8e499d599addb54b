/* How the bytes of a buffer leave memory and come home; the list of idle buffers; room for others.  A buffer that moves is
 * marked, the lock is given up for the transfer, and all who want the buffer wait for `moved`.  The block it had is given
 * up only after the other is whole, so a transfer that fails changes nothing.
 *
 * Which buffer goes: whole ones, idle, the one used longest ago first; and none if all of them together would not do.
 * Several threads may make room at once. */
#include "hierarchy_runtime/hr_memory.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

bool hr_is_home(const tiga_buffer *b) { return b->here.account != NULL; }

/* ---- idle buffers ---- */

void hr_idle_add(tiga_buffer *b) {
    hr_memory *m = b->memory;
    if (b->idle || !hr_is_home(b) || b->n_pins > 0 || b->bytes == 0)
        return;
    b->idle = true;
    b->newer = NULL;
    b->older = m->newest;
    if (m->newest)
        m->newest->newer = b;
    else
        m->oldest = b;
    m->newest = b;
    m->idle_bytes[b->tier] += b->bytes;
}

void hr_idle_remove(tiga_buffer *b) {
    hr_memory *m = b->memory;
    if (!b->idle)
        return;
    *(b->older ? &b->older->newer : &m->oldest) = b->newer;
    *(b->newer ? &b->newer->older : &m->newest) = b->older;
    b->idle = false;
    b->older = b->newer = NULL;
    m->idle_bytes[b->tier] -= b->bytes;
}

/* After an eviction that failed: it is still the one used longest ago. */
static void idle_add_oldest(tiga_buffer *b) {
    hr_memory *m = b->memory;
    hr_idle_add(b);
    if (!b->idle || m->oldest == b)
        return;
    m->newest = b->older;
    m->newest->newer = NULL;
    b->older = NULL;
    b->newer = m->oldest;
    m->oldest->older = b;
    m->oldest = b;
}

/* ---- moving ---- */

static void begin_moving(tiga_buffer *b) {
    hr_idle_remove(b);
    b->moving = true;
    b->mover = getpid();
    pthread_mutex_unlock(&b->memory->lock);
}

static void end_moving(tiga_buffer *b) {
    b->moving = false;
    pthread_cond_broadcast(&b->memory->moved);
}

/* The new blocks are in place before the old ones are given up. */
static void exchange(tiga_buffer *b, hr_block here, hr_block away) {
    pthread_mutex_lock(&b->memory->lock);
    hr_block old_here = b->here, old_away = b->away;
    b->here = here;
    b->away = away;
    pthread_mutex_unlock(&b->memory->lock);
    hr_block_hand_over(&old_here);
    hr_block_fini(&old_away);
}

tiga_status hr_move_out(tiga_context *ctx, tiga_buffer *b, bool evicted) {
    hr_memory *m = b->memory;
    hr_block away = {0};
    tiga_status status = TIGA_OK;
    bool clean = b->file != NULL;
    m->n_moving_out++;
    begin_moving(b);
    if (!clean)
        status = hr_block_new(ctx, b->account, TIGA_TIER_DISK, b->bytes, 0, hr_buffer_text(b), &away);
    if (!clean && status == TIGA_OK)
        status = hr_transfer(ctx, &b->here, &away, hr_buffer_text(b));
    if (status == TIGA_OK)
        exchange(b, (hr_block){0}, away);
    else
        hr_block_fini(&away);
    pthread_mutex_lock(&m->lock);
    m->n_moving_out--;
    if (status == TIGA_OK) {
        b->was_home = true;
        m->spills++;
        m->evictions += evicted;
    } else {
        idle_add_oldest(b);
    }
    end_moving(b);
    return status;
}

/* The bytes into a block at home.  b is moving. */
static tiga_status fetch(tiga_context *ctx, tiga_buffer *b, int flags, hr_block *home) {
    tiga_status status = hr_block_new(ctx, b->account, b->tier, b->bytes, flags, hr_buffer_text(b), home);
    if (status != TIGA_OK)
        return status;
    if (b->away.account)
        status = hr_transfer(ctx, &b->away, home, hr_buffer_text(b));
    else
        status = hr_snapshot_pull(ctx, b->file, b->entry, home->data, hr_buffer_text(b));
    if (status != TIGA_OK)
        hr_block_fini(home);
    return status;
}

/* After begin_moving; takes the lock again. */
static tiga_status finish_home(tiga_context *ctx, tiga_buffer *b, int flags) {
    hr_memory *m = b->memory;
    hr_block home = {0};
    tiga_status status = fetch(ctx, b, flags, &home);
    if (status == TIGA_OK)
        exchange(b, home, (hr_block){0});
    pthread_mutex_lock(&m->lock);
    if (status == TIGA_OK) {
        m->restores += b->was_home;
        hr_idle_add(b);
    }
    end_moving(b);
    return status;
}

tiga_status hr_bring_home(tiga_context *ctx, tiga_buffer *b) {
    begin_moving(b);
    return finish_home(ctx, b, 0);
}

/* ---- room ---- */

/* false: its last owner has gone, and waits for the lock to free it. */
static bool retain_living(tiga_buffer *b) {
    int n = atomic_load(&b->refs);
    while (n > 0 && !atomic_compare_exchange_weak(&b->refs, &n, n + 1))
        ;
    return n > 0;
}

/* With the lock held: the oldest of the tier, retained.  *dying: there are some that go without us. */
static tiga_buffer *take_victim(const hr_memory *m, int32_t tier, bool *dying) {
    for (tiga_buffer *b = m->oldest; b; b = b->newer) {
        if (b->tier == tier && retain_living(b))
            return b;
        *dying |= b->tier == tier;
    }
    return NULL;
}

/* The host may collect while b moves, and give b up on this very thread: so the eviction is an owner of it. */
static tiga_status evict(tiga_context *ctx, tiga_buffer *b) {
    hr_memory *m = b->memory;
    tiga_status status = hr_move_out(ctx, b, true);
    pthread_mutex_unlock(&m->lock);
    tiga_buffer_free(b);
    pthread_mutex_lock(&m->lock);
    return status;
}

rt_room_answer hr_make_room(rt_room *room, tiga_context *ctx, int32_t tier, int64_t n_bytes, tiga_status *status) {
    hr_memory *m = (hr_memory *)room;
    rt_room_answer answer = RT_ROOM_NONE;
    if (m->account->options.eviction != TIGA_EVICT_LRU || tier == TIGA_TIER_DISK)
        return answer;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        int64_t left = rt_room_left(m->account, tier);
        if (left >= n_bytes) {
            answer = RT_ROOM_MADE;
            break;
        }
        bool dying = false;
        tiga_buffer *b = left + m->idle_bytes[tier] >= n_bytes ? take_victim(m, tier, &dying) : NULL;
        if (!b && dying) {
            pthread_mutex_unlock(&m->lock);
            sched_yield();
            pthread_mutex_lock(&m->lock);
            continue;
        }
        if (!b && m->n_moving_out > 0) { /* others make room: perhaps that will do */
            pthread_cond_wait(&m->moved, &m->lock);
            continue;
        }
        if (!b)
            break;
        *status = evict(ctx, b);
        if (*status != TIGA_OK) {
            answer = RT_ROOM_FAILED;
            break;
        }
    }
    pthread_mutex_unlock(&m->lock);
    return answer;
}

/* ---- read-ahead ---- */

typedef struct reading_ahead {
    hr_job job; /* first */
    tiga_buffer *buffer; /* whose last owner waits until it moves no more, so that no account is late */
} reading_ahead;

static void read_ahead(hr_job *job) {
    tiga_buffer *b = ((reading_ahead *)job)->buffer;
    hr_memory *m = b->memory;
    (void)finish_home(NULL, b, HR_CHARGED); /* the next pin fails in the same way */
    pthread_mutex_unlock(&m->lock);
    base_free(job);
}

tiga_status tiga_buffer_prefetch(tiga_context *ctx, tiga_buffer *b, bool *started) {
    if (started)
        *started = false;
    if (!b)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_buffer_prefetch: the buffer is NULL");
    hr_memory *m = b->memory;
    reading_ahead *r = base_alloc(sizeof *r);
    if (!r)
        return rt_fail(ctx, TIGA_E_MEMORY, "tiga_buffer_prefetch: out of memory");
    pthread_mutex_lock(&m->lock);
    bool start = !b->moving && !hr_is_home(b) && rt_try_charge(b->account, b->tier, b->bytes);
    if (start)
        begin_moving(b);
    else
        pthread_mutex_unlock(&m->lock);
    if (!start) {
        base_free(r);
        return TIGA_OK;
    }
    r->job.run = read_ahead;
    r->buffer = b;
    hr_worker_add(b->account, &m->worker, &r->job);
    if (started)
        *started = true;
    return TIGA_OK;
}
