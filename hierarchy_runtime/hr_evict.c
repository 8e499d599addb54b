/* How the bytes of a buffer leave memory, alone or several side by side to make room for others.  A buffer that leaves is
 * moving; what it leaves for is charged in order, so a full disk tier stops the same buffer that it would stop if they left
 * one after the other.  A buffer of which there is a copy only gives up its memory.
 *
 * Which buffer goes: whole ones, idle, the one used longest ago first; and none if all of them together would not do.
 * Several threads may make room at once. */
#include "hierarchy_runtime/hr_memory.h"

#include <sched.h>
#include <unistd.h>

enum { BATCH = 32, SIDE_BY_SIDE = 8 };

typedef struct leaving {
    tiga_buffer *b;
    hr_block away; /* its copy, at first */
    bool write;
    tiga_status status;
} leaving;

/* ---- the steps of one buffer ---- */

/* With the lock held. */
static void begin(leaving *l, tiga_buffer *b) {
    *l = (leaving){.b = b, .away = hr_copy_take(b)};
    b->memory->n_moving_out++;
    hr_begin_moving(b);
}

/* A place on disk.  b->file does not change while it moves. */
static tiga_status prepare(tiga_context *ctx, leaving *l) {
    tiga_buffer *b = l->b;
    if (b->file)
        return TIGA_OK;
    if (l->away.account && l->away.pid != getpid()) /* its parent may give the place to others */
        hr_block_fini(&l->away);
    if (!l->away.account) {
        l->write = true;
        return hr_block_new(ctx, b->account, TIGA_TIER_DISK, b->bytes, 0, hr_buffer_text(b), &l->away);
    }
    tiga_status status = rt_charge(ctx, b->account, TIGA_TIER_DISK, b->bytes, hr_buffer_text(b));
    if (status == TIGA_OK) {
        l->away.uncharged = false;
        (void)hr_copies_give_way(b->memory, false);
    }
    return status;
}

static tiga_status write_out(tiga_context *ctx, leaving *l, int most_threads) {
    hr_manner m = {.most_threads = most_threads};
    return hr_transfer_in(ctx, &l->b->here, &l->away, hr_buffer_text(l->b), &m);
}

/* The new place is there before the old one is given up. */
static void depart(leaving *l) {
    tiga_buffer *b = l->b;
    pthread_mutex_lock(&b->memory->lock);
    hr_block here = b->here;
    b->here = (hr_block){0};
    b->away = l->away;
    pthread_mutex_unlock(&b->memory->lock);
    hr_block_hand_over(&here);
}

/* It stays, with its copy if that still fits. */
static void stay(leaving *l) {
    hr_memory *m = l->b->memory;
    pthread_mutex_lock(&m->lock);
    if (l->away.uncharged && hr_copies_fit(m, l->b->bytes)) {
        hr_copy_give(l->b, l->away);
        l->away = (hr_block){0};
    }
    pthread_mutex_unlock(&m->lock);
    hr_block_fini(&l->away);
}

/* Takes the lock. */
static void end(leaving *l, bool evicted) {
    tiga_buffer *b = l->b;
    hr_memory *m = b->memory;
    if (l->status == TIGA_OK)
        depart(l);
    else
        stay(l);
    pthread_mutex_lock(&m->lock);
    m->n_moving_out--;
    if (l->status == TIGA_OK) {
        b->was_home = true;
        b->asked = !evicted;
        m->spills++;
        m->evictions += evicted;
        m->bytes_written += l->write ? b->bytes : 0;
        if (evicted)
            hr_copies_evicted(m, b->bytes);
    } else {
        hr_idle_add_oldest(b);
    }
    hr_end_moving(b);
}

tiga_status hr_move_out(tiga_context *ctx, tiga_buffer *b, bool evicted) {
    leaving l;
    begin(&l, b);
    pthread_mutex_unlock(&b->memory->lock);
    l.status = prepare(ctx, &l);
    if (l.status == TIGA_OK && l.write)
        l.status = write_out(ctx, &l, 0);
    end(&l, evicted);
    return l.status;
}

/* ---- several ---- */

typedef struct writing {
    tiga_context *ctx;
    leaving *l;
    int n, threads_each;
    atomic_int next;
} writing;

static void *write_some(void *user) {
    writing *w = user;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->n;)
        if (w->l[i].write)
            w->l[i].status = write_out(w->ctx, &w->l[i], w->threads_each);
    return NULL;
}

static void write_side_by_side(tiga_context *ctx, leaving *l, int n) {
    pthread_t threads[SIDE_BY_SIDE];
    int n_writes = 0, started = 0;
    for (int i = 0; i < n; i++)
        n_writes += l[i].write;
    int most = n_writes < SIDE_BY_SIDE ? n_writes : SIDE_BY_SIDE;
    writing w = {.ctx = ctx, .l = l, .n = n, .threads_each = most ? SIDE_BY_SIDE / most : 0};
    while (started < most - 1 && pthread_create(&threads[started], NULL, write_some, &w) == 0)
        started++;
    write_some(&w);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

/* false: its last owner has gone, and waits for the lock to free it. */
static bool retain_living(tiga_buffer *b) {
    int n = atomic_load(&b->refs);
    while (n > 0 && !atomic_compare_exchange_weak(&b->refs, &n, n + 1))
        ;
    return n > 0;
}

/* With the lock held: the oldest of the tier, retained, so many that `need` bytes are free without them.  *wait: nothing
 * can be had now, but there will be.  The host may collect while they move, and give them up on this very thread: so the eviction is an owner of each. */
static int take_victims(hr_memory *m, int32_t tier, int64_t need, leaving *l, bool *dying, bool *copying) {
    int n = 0;
    for (tiga_buffer *b = m->oldest, *newer; b && need > 0 && n < BATCH; b = newer) {
        newer = b->newer;
        if (b->tier != tier)
            continue;
        if (hr_is_copying(b)) { /* it is the next one: soon it can go without being written */
            *copying = true;
            break;
        }
        if (retain_living(b)) {
            need -= b->bytes;
            begin(&l[n++], b);
        } else {
            *dying = true;
        }
    }
    return n;
}

/* With the lock held, given up in between.  The first failure in order; those behind it stay. */
static tiga_status evict(tiga_context *ctx, hr_memory *m, leaving *l, int n) {
    int ready = 0;
    tiga_status status = TIGA_OK;
    pthread_mutex_unlock(&m->lock);
    while (ready < n && status == TIGA_OK) {
        status = l[ready].status = prepare(ctx, &l[ready]);
        ready += status == TIGA_OK;
    }
    write_side_by_side(ctx, l, ready);
    for (int i = n - 1; i >= 0; i--) {
        if (i > ready)
            l[i].status = status;
        else if (l[i].status != TIGA_OK)
            status = l[i].status;
        end(&l[i], true);
        pthread_mutex_unlock(&m->lock);
        tiga_buffer_free(l[i].b);
    }
    pthread_mutex_lock(&m->lock);
    return status;
}

void hr_drop_clean(hr_memory *m, int32_t tier, int64_t n_bytes) {
    leaving l[BATCH];
    int64_t need = n_bytes - rt_room_left(m->account, tier), there = 0;
    int n = 0;
    bool dying = false, copying = false;
    if (m->account->options.eviction != TIGA_EVICT_LRU)
        return;
    for (tiga_buffer *b = m->oldest; b && there < need; b = b->newer)
        if (b->tier == tier) {
            if (!hr_is_clean(b) || ++n > BATCH)
                return;
            there += b->bytes;
        }
    if (there < need || need <= 0)
        return;
    n = take_victims(m, tier, need, l, &dying, &copying);
    if (n > 0)
        (void)evict(NULL, m, l, n); /* what fails is still where it was */
}

rt_room_answer hr_make_room(rt_room *room, tiga_context *ctx, int32_t tier, int64_t n_bytes, tiga_status *status) {
    hr_memory *m = (hr_memory *)room;
    rt_room_answer answer = RT_ROOM_NONE;
    leaving l[BATCH];
    if (m->account->options.eviction != TIGA_EVICT_LRU || tier == TIGA_TIER_DISK)
        return answer;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        int64_t left = rt_room_left(m->account, tier);
        if (left >= n_bytes) {
            answer = RT_ROOM_MADE;
            break;
        }
        bool dying = false, copying = false;
        int n = left + m->idle_bytes[tier] >= n_bytes ? take_victims(m, tier, n_bytes - left, l, &dying, &copying) : 0;
        if (n == 0 && dying) {
            pthread_mutex_unlock(&m->lock);
            sched_yield();
            pthread_mutex_lock(&m->lock);
            continue;
        }
        if (n == 0 && (copying || m->n_moving_out > 0)) { /* others make room: perhaps that will do */
            pthread_cond_wait(&m->moved, &m->lock);
            continue;
        }
        if (n == 0)
            break;
        *status = evict(ctx, m, l, n);
        if (*status != TIGA_OK) {
            answer = RT_ROOM_FAILED;
            break;
        }
    }
    pthread_mutex_unlock(&m->lock);
    return answer;
}
