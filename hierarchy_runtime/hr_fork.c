/* fork while other threads move bytes: their locks are free in the child, and nobody waits there for threads that it does not
 * have.  What they were moving is theirs: `mover`, `copier` and the `pid` of places on disk tell.  Before a fork all
 * locks of accounts are taken, in the order in which the code takes them. */
#include "hierarchy_runtime/hr_memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hr_memory *all;

static void take(void) {
    pthread_mutex_lock(&lock);
    for (hr_memory *m = all; m; m = m->next) {
        pthread_mutex_lock(&m->account->lock);
        pthread_mutex_lock(&m->lock);
        pthread_mutex_lock(&m->spill.lock);
        pthread_mutex_lock(&m->kept.lock);
        pthread_mutex_lock(&m->worker.lock);
        pthread_mutex_lock(&m->writer.lock);
    }
}

static void give(hr_memory *m) {
    pthread_mutex_unlock(&m->writer.lock);
    pthread_mutex_unlock(&m->worker.lock);
    pthread_mutex_unlock(&m->kept.lock);
    pthread_mutex_unlock(&m->spill.lock);
    pthread_mutex_unlock(&m->lock);
    pthread_mutex_unlock(&m->account->lock);
}

static void give_in_parent(void) {
    for (hr_memory *m = all; m; m = m->next)
        give(m);
    pthread_mutex_unlock(&lock);
}

static void give_in_child(void) {
    for (hr_memory *m = all; m; m = m->next) {
        pthread_cond_init(&m->moved, NULL); /* it may count threads that wait */
        m->n_moving_out = m->n_allocating = 0;
        give(m);
    }
    pthread_mutex_unlock(&lock);
}

static void watch(void) { pthread_atfork(take, give_in_parent, give_in_child); }

void hr_fork_add(hr_memory *m) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    pthread_mutex_lock(&lock);
    m->next = all;
    m->before = NULL;
    if (all)
        all->before = m;
    all = m;
    pthread_mutex_unlock(&lock);
}

void hr_fork_remove(hr_memory *m) {
    pthread_mutex_lock(&lock);
    *(m->before ? &m->before->next : &all) = m->next;
    if (m->next)
        m->next->before = m->before;
    pthread_mutex_unlock(&lock);
}
