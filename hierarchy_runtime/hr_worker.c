/* One thread for an account's background transfers, started with the first job and gone with the last, so that nothing has
 * to be joined and a child of fork simply starts its own. */
#include "hierarchy_runtime/hr_memory.h"

#include <unistd.h>

typedef struct start {
    tiga_execution *account;
    hr_worker *worker;
} start;

void hr_worker_init(hr_worker *w) {
    *w = (hr_worker){.running = false};
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
}

void hr_worker_fini(hr_worker *w) { pthread_mutex_destroy(&w->lock); }

static hr_job *next_job(hr_worker *w) {
    pthread_mutex_lock(&w->lock);
    hr_job *job = w->first;
    if (job) {
        w->first = job->next;
        if (!w->first)
            w->last = &w->first;
    } else {
        w->running = false;
    }
    pthread_mutex_unlock(&w->lock);
    return job;
}

static void *work(void *user) {
    start s = *(start *)user;
    base_free(user);
    for (hr_job *job; (job = next_job(s.worker));)
        job->run(job);
    tiga_execution_free(s.account); /* perhaps the last owner: the worker is gone after this */
    return NULL;
}

static bool start_thread(tiga_execution *e, hr_worker *w) {
    start *s = base_alloc(sizeof *s);
    if (!s)
        return false;
    *s = (start){tiga_execution_retain(e), w};
    pthread_attr_t a;
    pthread_t thread;
    bool good = pthread_attr_init(&a) == 0;
    if (good) {
        good =
            pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED) == 0 && pthread_create(&thread, &a, work, s) == 0;
        pthread_attr_destroy(&a);
    }
    if (!good) {
        tiga_execution_free(e); /* the caller has one more */
        base_free(s);
    }
    return good;
}

void hr_worker_add(tiga_execution *e, hr_worker *w, hr_job *job) {
    job->next = NULL;
    pthread_mutex_lock(&w->lock);
    if (w->running && w->pid != getpid()) { /* a child of fork: those jobs are its parent's */
        w->running = false;
        w->first = NULL;
        w->last = &w->first;
    }
    *w->last = job;
    w->last = &job->next;
    bool start_it = !w->running;
    w->running = true;
    w->pid = getpid();
    pthread_mutex_unlock(&w->lock);
    if (start_it && !start_thread(e, w))
        for (hr_job *j; (j = next_job(w));)
            j->run(j);
}
