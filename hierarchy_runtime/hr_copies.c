/* Copies: the disk has what is in memory too.  A value that an eviction moved out keeps its place on disk when it comes home;
 * and under pressure the oldest idle values are written ahead, in the background, so that the eviction that takes them only
 * gives up memory.  A write makes a copy void.
 *
 * Nobody sees a copy but by its speed: it is not charged, so it is no part of what is live, but copies and what is live
 * together stay within the disk's budget: copies give way, the one made last first.  A copy that fails is not made.
 *
 * How much is written ahead: until a quarter of the budget is free or could be had without writing; and no more than twice the bytes
 * that were evicted, so a program that never evicts never writes. */
#include "hierarchy_runtime/hr_memory.h"

#include <stddef.h>
#include <unistd.h>

enum { LOOK_AT = 64, WRITERS = 2 };

/* ---- one copy ---- */

bool hr_is_clean(const tiga_buffer *b) { return b->file || (b->copy.account && b->copy.pid == getpid()); }

/* A child of fork has not the thread that copies. */
bool hr_is_copying(tiga_buffer *b) {
    if (b->copying && b->copier != getpid()) {
        b->copying = false;
        b->memory->copies.bytes -= b->bytes;
    }
    return b->copying;
}

void hr_copy_stop(tiga_buffer *b) {
    while (hr_is_copying(b)) {
        atomic_store(&b->stop_copying, true);
        pthread_cond_wait(&b->memory->moved, &b->memory->lock);
    }
}

void hr_copy_give(tiga_buffer *b, hr_block copy) {
    hr_copies *c = &b->memory->copies;
    if (!copy.account)
        return;
    b->copy = copy;
    c->bytes += copy.bytes;
    b->copied_after = NULL;
    b->copied_before = c->last;
    if (c->last)
        c->last->copied_after = b;
    c->last = b;
    if (b->idle && !b->counted_clean && hr_is_clean(b)) {
        b->counted_clean = true;
        c->idle_clean[b->tier] += b->bytes;
    }
}

hr_block hr_copy_take(tiga_buffer *b) {
    hr_copies *c = &b->memory->copies;
    hr_block copy = b->copy;
    if (!copy.account)
        return copy;
    b->copy = (hr_block){0};
    c->bytes -= copy.bytes;
    *(b->copied_after ? &b->copied_after->copied_before : &c->last) = b->copied_before;
    if (b->copied_before)
        b->copied_before->copied_after = b->copied_after;
    b->copied_before = b->copied_after = NULL;
    if (b->counted_clean && !b->file) {
        b->counted_clean = false;
        c->idle_clean[b->tier] -= b->bytes;
    }
    return copy;
}

/* ---- how many ---- */

static bool are_made(const hr_memory *m) {
    return m->account->options.eviction == TIGA_EVICT_LRU && !m->account->shared && atomic_load(&m->account->active);
}

bool hr_copies_are_kept(const tiga_buffer *b, const hr_block *away) {
    return !b->asked && are_made(b->memory) && b->bytes >= b->memory->copies.from && away->pid == getpid();
}

bool hr_copies_fit(const hr_memory *m, int64_t more) {
    return m->copies.bytes <= rt_room_left(m->account, TIGA_TIER_DISK) - more;
}

bool hr_copies_give_way(hr_memory *m, bool all) {
    bool any = false;
    pthread_mutex_lock(&m->lock);
    while (all || !hr_copies_fit(m, 0)) {
        tiga_buffer *b = m->copies.last;
        if (b) {
            hr_block copy = hr_copy_take(b);
            pthread_mutex_unlock(&m->lock);
            hr_block_fini(&copy);
            pthread_mutex_lock(&m->lock);
        } else if ((b = m->copies.current) && hr_is_copying(b)) {
            atomic_store(&b->stop_copying, true); /* b may be gone when it has stopped */
            pthread_cond_wait(&m->moved, &m->lock);
        } else {
            break;
        }
        any = true;
    }
    pthread_mutex_unlock(&m->lock);
    return any;
}

void hr_copies_evicted(hr_memory *m, int64_t n_bytes) {
    int64_t most = atomic_load(&m->account->budget[TIGA_TIER_HOST]);
    if (n_bytes < m->copies.from)
        return;
    m->copies.credit += 2 * n_bytes;
    if (most >= 0 && m->copies.credit > most)
        m->copies.credit = most;
}

/* ---- ahead ---- */

static bool is_short(const hr_memory *m, int32_t tier) {
    int64_t budget = atomic_load(&m->account->budget[tier]);
    return budget >= 0 && rt_room_left(m->account, tier) < budget / 4 - m->copies.idle_clean[tier];
}

/* The oldest that has to be written, if there is room for it; NULL: none. */
static tiga_buffer *find_next(hr_memory *m) {
    bool is_wanted[TIGA_TIERS] = {false};
    int n = 0;
    if (m->copies.credit <= 0 || !are_made(m))
        return NULL;
    is_wanted[TIGA_TIER_HOST] = is_short(m, TIGA_TIER_HOST);
    is_wanted[TIGA_TIER_PINNED] = is_short(m, TIGA_TIER_PINNED);
    if (!is_wanted[TIGA_TIER_HOST] && !is_wanted[TIGA_TIER_PINNED])
        return NULL;
    for (tiga_buffer *b = m->oldest; b && n < LOOK_AT; b = b->newer, n++)
        if (is_wanted[b->tier] && b->bytes >= m->copies.from && !b->copy_failed && atomic_load(&b->refs) > 0 &&
            !b->copy.account && !hr_is_clean(b) && !hr_is_copying(b))
            return hr_copies_fit(m, b->bytes) ? b : NULL;
    return NULL;
}

/* The lock is held on entry and at return.  Its last owner waits until it is done. */
static bool write_copy(hr_memory *m, tiga_buffer *b) {
    hr_block copy = {0};
    hr_manner manner = {.most_threads = WRITERS, .stop = &b->stop_copying};
    m->copies.current = b;
    m->copies.bytes += b->bytes;
    m->copies.credit -= b->bytes;
    b->copying = true;
    b->copier = getpid();
    atomic_store(&b->stop_copying, false);
    pthread_mutex_unlock(&m->lock);
    tiga_status status =
        hr_block_new(NULL, b->account, TIGA_TIER_DISK, b->bytes, HR_UNCHARGED, hr_buffer_text(b), &copy);
    if (status == TIGA_OK)
        status = hr_transfer_in(NULL, &b->here, &copy, hr_buffer_text(b), &manner);
    if (status != TIGA_OK)
        hr_block_fini(&copy);
    pthread_mutex_lock(&m->lock);
    m->copies.bytes -= b->bytes;
    m->copies.current = NULL;
    b->copying = false;
    b->copy_failed = status != TIGA_OK;
    m->bytes_written += status == TIGA_OK ? b->bytes : 0;
    if (status == TIGA_OK)
        hr_copy_give(b, copy);
    pthread_cond_broadcast(&m->moved);
    return status == TIGA_OK;
}

static void write_ahead(hr_job *job) {
    hr_memory *m = (hr_memory *)((char *)job - offsetof(hr_memory, copies));
    tiga_buffer *b;
    pthread_mutex_lock(&m->lock);
    while ((b = find_next(m)))
        (void)write_copy(m, b);
    m->copies.running = false;
    pthread_mutex_unlock(&m->lock);
}

void hr_copies_init(hr_memory *m) {
    m->copies.job.run = write_ahead;
    m->copies.from = HR_COPY_FROM;
}

void hr_memory_unlock(hr_memory *m) {
    hr_copies *c = &m->copies;
    bool start = c->credit > 0 && !(c->running && c->pid == getpid()) && find_next(m);
    if (start) {
        c->running = true;
        c->pid = getpid();
    }
    pthread_mutex_unlock(&m->lock);
    if (start)
        hr_worker_add(m->account, &m->writer, &c->job);
}
