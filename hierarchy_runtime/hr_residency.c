/* How the bytes of a buffer come home, ahead of time too, and the list of idle buffers; how they leave is in hr_evict.c.  A
 * buffer that moves is marked, the lock is given up for the transfer, and all who want the buffer wait for `moved`.  The
 * block it had is given up only after the other is whole, so a transfer that fails changes nothing. */
#include "hierarchy_runtime/hr_memory.h"

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
    b->counted_clean = hr_is_clean(b);
    m->copies.idle_clean[b->tier] += b->counted_clean ? b->bytes : 0;
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
    m->copies.idle_clean[b->tier] -= b->counted_clean ? b->bytes : 0;
    b->counted_clean = false;
}

void hr_idle_add_oldest(tiga_buffer *b) {
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

void hr_begin_moving(tiga_buffer *b) {
    hr_idle_remove(b);
    b->moving = true;
    b->mover = getpid();
}

void hr_end_moving(tiga_buffer *b) {
    b->moving = false;
    pthread_cond_broadcast(&b->memory->moved);
}

/* The bytes into a block at home, which is no block if that fails.  b is moving. */
static tiga_status fetch(tiga_context *ctx, tiga_buffer *b, hr_block *home) {
    tiga_status status = b->away.account ? hr_transfer(ctx, &b->away, home, hr_buffer_text(b))
                                         : hr_snapshot_pull(ctx, b->file, b->entry, home->data, hr_buffer_text(b));
    if (status != TIGA_OK)
        hr_block_fini(home);
    return status;
}

/* With the lock held.  What it was read from stays as a copy, or is returned. */
static hr_block arrive(tiga_buffer *b, hr_block home) {
    hr_block away = b->away;
    b->memory->bytes_read += away.account ? b->bytes : 0;
    b->here = home;
    b->away = (hr_block){0};
    if (!away.account || !hr_copies_are_kept(b, &away))
        return away;
    rt_discharge(away.account, away.tier, away.bytes);
    away.uncharged = true;
    hr_copy_give(b, away);
    return (hr_block){0};
}

/* b is moving; takes the lock.  home: where its bytes are now, or no block. */
static void finish_home(tiga_buffer *b, hr_block home) {
    hr_memory *m = b->memory;
    pthread_mutex_lock(&m->lock);
    if (home.account) {
        hr_block away = arrive(b, home);
        pthread_mutex_unlock(&m->lock);
        hr_block_fini(&away);
        pthread_mutex_lock(&m->lock);
        m->restores += b->was_home;
        hr_idle_add(b);
    }
    hr_end_moving(b);
}

tiga_status hr_bring_home(tiga_context *ctx, tiga_buffer *b) {
    hr_block home = {0};
    hr_begin_moving(b);
    pthread_mutex_unlock(&b->memory->lock);
    tiga_status status = hr_block_new(ctx, b->account, b->tier, b->bytes, 0, hr_buffer_text(b), &home);
    if (status == TIGA_OK)
        status = fetch(ctx, b, &home);
    finish_home(b, home);
    return status;
}

/* ---- read-ahead ---- */

typedef struct reading_ahead {
    hr_job job; /* first */
    tiga_buffer *buffer; /* whose last owner waits until it moves no more, so that no account is late */
    hr_block home;
} reading_ahead;

static void read_ahead(hr_job *job) {
    reading_ahead *r = (reading_ahead *)job;
    hr_memory *m = r->buffer->memory;
    (void)fetch(NULL, r->buffer, &r->home); /* the next pin fails in the same way */
    finish_home(r->buffer, r->home);
    hr_memory_unlock(m);
    base_free(job);
}

/* With the lock held, given up in between.  A place in memory, if one is free or could be had without writing; b is moving then. */
static bool begin_reading(reading_ahead *r) {
    tiga_buffer *b = r->buffer;
    if (b->moving || hr_is_home(b))
        return false;
    if (!rt_try_charge(b->account, b->tier, b->bytes)) {
        hr_drop_clean(b->memory, b->tier, b->bytes);
        if (b->moving || hr_is_home(b) || !rt_try_charge(b->account, b->tier, b->bytes))
            return false;
    }
    hr_begin_moving(b);
    pthread_mutex_unlock(&b->memory->lock);
    bool good = hr_block_new(NULL, b->account, b->tier, b->bytes, HR_CHARGED, hr_buffer_text(b), &r->home) == TIGA_OK;
    pthread_mutex_lock(&b->memory->lock);
    if (!good)
        hr_end_moving(b);
    return good;
}

tiga_status tiga_buffer_prefetch(tiga_context *ctx, tiga_buffer *b, bool *started) {
    if (started)
        *started = false;
    if (!b)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_buffer_prefetch: the buffer is NULL");
    hr_memory *m = b->memory;
    reading_ahead *r = base_alloc_zero(sizeof *r);
    if (!r)
        return rt_fail(ctx, TIGA_E_MEMORY, "tiga_buffer_prefetch: out of memory");
    r->job.run = read_ahead;
    r->buffer = b;
    hr_allocating_begin(m);
    pthread_mutex_lock(&m->lock);
    bool start = begin_reading(r);
    pthread_mutex_unlock(&m->lock);
    hr_allocating_end(m);
    if (started)
        *started = start;
    if (start)
        hr_worker_add(b->account, &m->worker, &r->job);
    else
        base_free(r);
    return TIGA_OK;
}
