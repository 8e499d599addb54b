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

/* Without the lock, b is moving; takes the lock. */
static tiga_status finish_home(tiga_context *ctx, tiga_buffer *b, int flags) {
    hr_memory *m = b->memory;
    hr_block home = {0};
    tiga_status status = fetch(ctx, b, flags, &home);
    pthread_mutex_lock(&m->lock);
    if (status == TIGA_OK) {
        hr_block away = arrive(b, home);
        pthread_mutex_unlock(&m->lock);
        hr_block_fini(&away);
        pthread_mutex_lock(&m->lock);
        m->restores += b->was_home;
        hr_idle_add(b);
    }
    hr_end_moving(b);
    return status;
}

tiga_status hr_bring_home(tiga_context *ctx, tiga_buffer *b) {
    hr_begin_moving(b);
    pthread_mutex_unlock(&b->memory->lock);
    return finish_home(ctx, b, 0);
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
    hr_memory_unlock(m);
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
        hr_begin_moving(b);
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
