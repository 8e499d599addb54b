/* Host memory that is kept for reuse, because the pages of fresh memory cost more than most arithmetic on them.  The list
 * lies in the blocks themselves, newest first.  It is not charged, so in an account with a budget blocks are kept only as far as
 * they fit into it beside what is live, and are handed out for exactly their size. */
#include "hierarchy_runtime/hr_memory.h"

typedef struct hr_kept_block {
    struct hr_kept_block *next;
    int64_t room;
} hr_kept_block;

enum {
    SMALLEST = 16384,
    LARGER_BY = 4
}; /* smaller ones are not worth the search; a quarter too large is good enough */

static int64_t budget_of(const hr_memory *m) { return atomic_load(&m->account->budget[TIGA_TIER_HOST]); }

static bool is_over(const hr_memory *m) {
    int64_t budget = budget_of(m);
    return budget >= 0 && atomic_load(&m->account->live[TIGA_TIER_HOST]) > budget - atomic_load(&m->kept.bytes);
}

void *hr_kept_take(hr_memory *m, int64_t bytes, int64_t *room) {
    hr_kept *k = &m->kept;
    hr_kept_block *found = NULL;
    int64_t slack = budget_of(m) >= 0 ? 0 : bytes / LARGER_BY;
    if (atomic_load(&k->bytes) == 0)
        return NULL;
    pthread_mutex_lock(&k->lock);
    for (hr_kept_block **at = &k->first; *at && !found; at = found ? at : &(*at)->next)
        if ((*at)->room >= bytes && (*at)->room - bytes <= slack) {
            found = *at;
            *at = found->next;
        }
    if (found)
        atomic_fetch_sub(&k->bytes, found->room);
    pthread_mutex_unlock(&k->lock);
    if (is_over(m))
        hr_kept_drop(k);
    if (found)
        *room = found->room;
    return found;
}

bool hr_kept_give(hr_memory *m, void *data, int64_t room, int64_t charged) {
    hr_kept *k = &m->kept;
    int64_t budget = budget_of(m), most = atomic_load(&m->account->keep);
    if (room < SMALLEST || room > most || m->account->shared)
        return false;
    if (budget >= 0 && most > budget - atomic_load(&m->account->live[TIGA_TIER_HOST]) + charged)
        most = budget - atomic_load(&m->account->live[TIGA_TIER_HOST]) + charged;
    pthread_mutex_lock(&k->lock);
    bool keep = room <= most - atomic_load(&k->bytes);
    if (keep) {
        hr_kept_block *b = data;
        *b = (hr_kept_block){k->first, room};
        k->first = b;
        atomic_fetch_add(&k->bytes, room);
    }
    pthread_mutex_unlock(&k->lock);
    return keep;
}

void hr_kept_drop(hr_kept *k) {
    pthread_mutex_lock(&k->lock);
    hr_kept_block *b = k->first;
    k->first = NULL;
    atomic_store(&k->bytes, 0);
    pthread_mutex_unlock(&k->lock);
    while (b) {
        hr_kept_block *next = b->next;
        rt_mem_free(b);
        b = next;
    }
}
