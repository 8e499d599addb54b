/* Reading a buffer where it lies, on disk, without bringing it home: who passes it on needs no room for all of it.  The buffer is
 * `moving` meanwhile, so it stays where it is, and whoever wants it home waits. */
#include "hierarchy_runtime/hr_memory.h"

bool hr_away_begin(tiga_buffer *b) {
    hr_memory *m = b->memory;
    pthread_mutex_lock(&m->lock);
    while (b->moving)
        pthread_cond_wait(&m->moved, &m->lock);
    bool away = !hr_is_home(b);
    if (away)
        hr_begin_moving(b);
    pthread_mutex_unlock(&m->lock);
    return away;
}

void hr_away_end(tiga_buffer *b) {
    hr_memory *m = b->memory;
    pthread_mutex_lock(&m->lock);
    hr_end_moving(b);
    pthread_mutex_unlock(&m->lock);
}

tiga_status hr_away_read(tiga_context *ctx, const tiga_buffer *b, int64_t page, int64_t n_bytes, void *to) {
    if (!b->away.account)
        return hr_snapshot_read(ctx, b->file, b->entry, page, n_bytes, to, hr_buffer_text(b));
    hr_block from = b->away, here = {.data = to, .bytes = n_bytes};
    from.bytes = n_bytes;
    from.at += page * HR_PAGE;
    from.sums += page;
    return hr_transfer(ctx, &from, &here, hr_buffer_text(b));
}
