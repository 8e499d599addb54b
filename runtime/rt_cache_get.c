/* One request: memory, else disk, else build.
 *
 * In a process: the first thread to ask for a key puts an entry in the making into the table; the others wait for it to settle.  If
 * its maker gave up (interrupted, out of memory), the next one makes it.  Among processes: whoever finds nothing
 * on disk takes the lock of the key and looks again, so that what another has just built is found.
 * Everything about the folder may fail; then the work is done here, and counted in disk_errors. */
#include "runtime/runtime.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct work {
    tiga_cache *c;
    tiga_context *ctx;
    const rt_cache_request *r;
    rt_cache_entry *e;
    char name[RT_CACHE_NAME]; /* of the file */
    bool stale; /* counted once a request */
    bool waited; /* for another process */
    tiga_status status; /* and what came of it: */
    void *object;
    int64_t object_bytes;
    base_str bytes; /* the artefact, or the message */
} work;

static void count(work *w, int64_t *counter) { rt_cache_count(w->c, counter); }

static tiga_status out_of_memory(tiga_context *ctx) { return rt_fail(ctx, TIGA_E_MEMORY, "code cache: out of memory"); }

/* ---- from disk ---- */

static bool is_useless(tiga_status s) {
    return s == TIGA_E_ABI || s == TIGA_E_FORMAT || s == TIGA_E_MODULE || s == TIGA_E_TARGET;
}

static bool count_stale(work *w) {
    if (!w->stale)
        count(w, &w->c->counters.stale);
    w->stale = true;
    return false;
}

static bool load_from(work *w, const rt_cache_file *f) {
    bool clear = !w->ctx || w->ctx->status == TIGA_OK;
    w->status = w->r->ops->load(w->r->user, w->ctx, f->payload, f->payload_bytes, &w->object, &w->object_bytes);
    if (is_useless(w->status)) { /* no failure of the caller's: there will be another */
        if (clear)
            tiga_error_clear(w->ctx);
        return count_stale(w);
    }
    if (w->status == TIGA_OK)
        count(w, &w->c->counters.disk_hits);
    return true;
}

static bool message_from(work *w, const rt_cache_file *f) {
    base_str_add_n(&w->bytes, f->payload, f->payload_bytes);
    w->status = w->bytes.failed ? out_of_memory(w->ctx) : TIGA_E_PROGRAM;
    if (!w->bytes.failed)
        count(w, &w->c->counters.negative_hits);
    return true;
}

/* true: status says what came of it.  false: it has to be built. */
static bool from_disk(work *w, int folder) {
    rt_cache_file f;
    switch (rt_cache_file_read(folder, w->name, &f)) {
    case RT_CACHE_NONE:
        return false;
    case RT_CACHE_BAD:
        return count_stale(w);
    case RT_CACHE_NO_ACCESS:
        count(w, &w->c->counters.disk_errors);
        return false;
    case RT_CACHE_NO_MEMORY:
        w->status = out_of_memory(w->ctx);
        return true;
    case RT_CACHE_GOOD:
        break;
    }
    bool done;
    if (f.key_bytes != w->e->key_bytes || memcmp(f.key, w->e->key, f.key_bytes) != 0)
        done = count_stale(w);
    else
        done = f.failed ? message_from(w, &f) : load_from(w, &f);
    base_free(f.buffer);
    if (done && w->waited && (w->status == TIGA_OK || w->status == TIGA_E_PROGRAM))
        count(w, &w->c->counters.waited);
    return done;
}

/* ---- built ---- */

static void build(work *w) {
    count(w, &w->c->counters.misses);
    w->status = w->r->ops->build(w->r->user, w->ctx, &w->bytes);
    if (w->bytes.failed && (w->status == TIGA_OK || w->status == TIGA_E_PROGRAM))
        w->status = out_of_memory(w->ctx);
    if (w->status == TIGA_OK)
        w->status =
            w->r->ops->load(w->r->user, w->ctx, base_str_text(&w->bytes), w->bytes.len, &w->object, &w->object_bytes);
    if (w->status != TIGA_OK && w->status != TIGA_E_INTERRUPTED)
        count(w, &w->c->counters.failed);
}

static void store(work *w, int folder) {
    rt_cache_file f = {.failed = w->status == TIGA_E_PROGRAM,
                       .key = w->e->key,
                       .key_bytes = w->e->key_bytes,
                       .payload = base_str_text(&w->bytes),
                       .payload_bytes = w->bytes.len};
    int64_t n_bytes;
    if (w->bytes.len + w->e->key_bytes >= (uint64_t)w->c->disk_limit)
        return; /* it would only throw out everything else */
    if (rt_cache_file_write(folder, w->name, &f, &n_bytes))
        rt_cache_evict(w->c, folder, w->name, n_bytes);
    else
        count(w, &w->c->counters.disk_errors);
}

static void build_and_store(work *w, int folder) {
    build(w);
    if (folder >= 0 && (w->status == TIGA_OK || w->status == TIGA_E_PROGRAM))
        store(w, folder);
}

static void with_lock(work *w, int folder) {
    int lock = -1;
    switch (rt_cache_lock(w->c, w->ctx, folder, w->name, &lock, &w->waited)) {
    case RT_CACHE_LOCKED:
        if (!from_disk(w, folder))
            build_and_store(w, folder);
        rt_cache_unlock(folder, w->name, lock);
        return;
    case RT_CACHE_NO_LOCK:
        count(w, &w->c->counters.disk_errors);
        build_and_store(w, folder);
        return;
    case RT_CACHE_LOCK_INTERRUPTED:
        w->status = rt_fail(w->ctx, TIGA_E_INTERRUPTED, "interrupted while another process compiles the same");
        return;
    }
}

static void make(work *w) {
    const char *why;
    if (!w->c->folder[0] || !w->c->disk_limit) {
        build(w);
        return;
    }
    int folder = rt_cache_folder_open(w->c, false, &why);
    bool found = folder >= 0 && from_disk(w, folder);
    if (folder < 0 && errno == ENOENT)
        folder = rt_cache_folder_open(w->c, true, &why);
    if (folder < 0)
        count(w, &w->c->counters.disk_errors);
    if (folder < 0)
        build(w);
    else if (!found)
        with_lock(w, folder);
    if (folder >= 0)
        close(folder);
}

/* ---- in memory ---- */

/* What came of it goes into the entry, whose maker's reference ends here. */
static void settle(work *w) {
    tiga_cache *c = w->c;
    rt_cache_entry *e = w->e, *dropped = NULL;
    pthread_mutex_lock(&c->lock);
    e->state = w->status == TIGA_OK ? RT_CACHE_READY : w->status == TIGA_E_PROGRAM ? RT_CACHE_WRONG : RT_CACHE_LEFT;
    int64_t more = 0;
    if (e->state == RT_CACHE_READY) {
        e->ops->retain(w->object);
        e->object = w->object;
        more = w->object_bytes > 0 ? w->object_bytes : 0;
    } else if (e->state == RT_CACHE_WRONG) {
        e->message = w->bytes.data;
        e->message_bytes = w->bytes.len;
        more = (int64_t)w->bytes.len;
        w->bytes = (base_str){0};
    }
    bool keep = e->state != RT_CACHE_LEFT && e->bytes <= c->memory_limit && more <= c->memory_limit - e->bytes;
    if (keep) {
        e->bytes += more;
        rt_cache_used(c, e);
        rt_cache_shrink(c, c->memory_limit, &dropped);
    } else {
        rt_cache_remove(c, e, &dropped);
    }
    rt_cache_put(e, &dropped);
    pthread_cond_broadcast(&c->settled);
    pthread_mutex_unlock(&c->lock);
    rt_cache_drop(dropped);
}

static tiga_status give_message(tiga_context *ctx, const char *bytes, size_t n, base_str *message) {
    if (message)
        base_str_add_n(message, bytes, n);
    return message && message->failed ? out_of_memory(ctx) : TIGA_E_PROGRAM;
}

/* A settled entry to the caller; the lock is held. */
static tiga_status take(tiga_cache *c, tiga_context *ctx, rt_cache_entry *e, void **object, base_str *message) {
    if (e->in_order)
        rt_cache_used(c, e);
    if (e->state == RT_CACHE_WRONG) {
        c->counters.negative_hits++;
        return give_message(ctx, e->message, e->message_bytes, message);
    }
    c->counters.memory_hits++;
    e->ops->retain(e->object);
    *object = e->object;
    return TIGA_OK;
}

/* Asked without the lock: the host of the context may look at its signals then, and take its time. */
static bool interrupted(tiga_cache *c, tiga_context *ctx) {
    pthread_mutex_unlock(&c->lock);
    bool yes = rt_interrupted(ctx);
    pthread_mutex_lock(&c->lock);
    return yes;
}

static void wait_a_little(tiga_cache *c) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 20000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&c->settled, &c->lock, &until);
}

/* In a child of fork, when the thread that makes the entry stayed behind. */
static void abandon(tiga_cache *c, rt_cache_entry *e, rt_cache_entry **dropped) {
    e->state = RT_CACHE_LEFT;
    rt_cache_remove(c, e, dropped);
    rt_cache_put(e, dropped);
}

/* Until the entry is settled; the lock is held.  false: interrupted. */
static bool wait_for(tiga_cache *c, tiga_context *ctx, rt_cache_entry *e, rt_cache_entry **dropped) {
    while (e->state == RT_CACHE_MAKING) {
        if (e->maker != getpid()) {
            abandon(c, e, dropped);
            break;
        }
        wait_a_little(c);
        if (e->state == RT_CACHE_MAKING && interrupted(c, ctx))
            return false;
    }
    return true;
}

/* With the lock held, which it gives back.  false: its maker gave up, ask again. */
static bool wait_and_take(tiga_cache *c, tiga_context *ctx, rt_cache_entry *e, void **object, base_str *message,
                          tiga_status *status) {
    rt_cache_entry *dropped = NULL;
    e->refs++;
    bool settled = wait_for(c, ctx, e, &dropped), again = settled && e->state == RT_CACHE_LEFT;
    if (settled && !again) {
        c->counters.waited++;
        *status = take(c, ctx, e, object, message);
    }
    rt_cache_put(e, &dropped);
    pthread_mutex_unlock(&c->lock);
    rt_cache_drop(dropped);
    if (!settled)
        *status = rt_fail(ctx, TIGA_E_INTERRUPTED, "interrupted while another thread compiles the same");
    return !again;
}

static tiga_status make_entry(work *w, void **object, base_str *message) {
    base_hash_hex(w->e->hash, w->name);
    make(w);
    tiga_status status = w->status;
    if (status == TIGA_OK)
        *object = w->object;
    else if (status == TIGA_E_PROGRAM)
        status = give_message(w->ctx, base_str_text(&w->bytes), w->bytes.len, message);
    settle(w);
    base_str_fini(&w->bytes);
    return status;
}

static tiga_status get(tiga_cache *c, tiga_context *ctx, const rt_cache_request *r, const rt_cache_key *k,
                       void **object, base_str *message) {
    for (rt_cache_entry *fresh = NULL;;) {
        pthread_mutex_lock(&c->lock);
        rt_cache_entry *e = rt_cache_find(c, k);
        tiga_status status;
        if (e && e->state != RT_CACHE_MAKING) {
            status = take(c, ctx, e, object, message);
            pthread_mutex_unlock(&c->lock);
            rt_cache_drop(fresh);
            return status;
        }
        if (e) {
            if (!wait_and_take(c, ctx, e, object, message, &status))
                continue;
            rt_cache_drop(fresh);
            return status;
        }
        if (fresh) {
            rt_cache_insert(c, fresh);
            pthread_mutex_unlock(&c->lock);
            work w = {.c = c, .ctx = ctx, .r = r, .e = fresh};
            return make_entry(&w, object, message);
        }
        pthread_mutex_unlock(&c->lock);
        fresh = rt_cache_entry_new(k, r->ops);
        if (!fresh)
            return out_of_memory(ctx);
    }
}

tiga_status tiga_cache_get(tiga_cache *c, tiga_context *ctx, const rt_cache_request *r, void **object,
                           base_str *message) {
    rt_cache_key k;
    *object = NULL;
    if (!r->inside)
        rt_begin(ctx); /* while it waits for others it can be interrupted, by the host as well */
    if (!rt_cache_key_init(&k, c, r->fields, (size_t)r->n_fields))
        return out_of_memory(ctx);
    tiga_status status = get(c, ctx, r, &k, object, message);
    rt_cache_key_fini(&k);
    rt_code_watch(ctx, c);
    return status;
}

void tiga_cache_begin(tiga_context *ctx) { rt_begin(ctx); }

bool tiga_cache_interrupted(tiga_context *ctx) { return rt_interrupted(ctx); }
