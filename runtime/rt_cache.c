/* The cache as users see it: options, ownership, counters, what lies in the folder. */
#include "runtime/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_BUCKETS = 64 };

tiga_cache_options tiga_cache_defaults(void) {
    tiga_cache_options o;
    memset(&o, 0, sizeof o);
    o.struct_bytes = sizeof o;
    o.memory_bytes = (int64_t)256 << 20;
    o.disk_bytes = (int64_t)2 << 30;
    return o;
}

static bool init_lock(tiga_cache *c) {
    pthread_condattr_t a;
    if (pthread_mutex_init(&c->lock, NULL))
        return false;
    bool good = !pthread_condattr_init(&a);
    if (good) {
        pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
        good = !pthread_cond_init(&c->settled, &a);
        pthread_condattr_destroy(&a);
    }
    if (!good)
        pthread_mutex_destroy(&c->lock);
    return good;
}

tiga_status tiga_cache_new(const tiga_cache_options *options, tiga_cache **out) {
    if (!out)
        return TIGA_E_ARGUMENT;
    *out = NULL;
    tiga_cache_options o = tiga_cache_defaults();
    if (options) { /* a caller built against another version: the fields both know */
        if (options->struct_bytes < sizeof(size_t) || options->struct_bytes > 4096)
            return TIGA_E_ARGUMENT;
        memcpy(&o, options, options->struct_bytes < sizeof o ? options->struct_bytes : sizeof o);
    }
    if (o.memory_bytes < 0 || o.disk_bytes < 0)
        return TIGA_E_ARGUMENT;
    tiga_cache *c = base_alloc_zero(sizeof *c);
    bool no_memory = !c;
    if (c) {
        c->folder = rt_cache_folder_choose(o.folder, &no_memory);
        c->buckets = base_alloc_zero(FIRST_BUCKETS * sizeof *c->buckets);
    }
    if (no_memory || !c->buckets || !init_lock(c)) {
        if (c) {
            base_free(c->folder);
            base_free(c->buckets);
        }
        base_free(c);
        return TIGA_E_MEMORY;
    }
    atomic_init(&c->refs, 1);
    c->memory_limit = o.memory_bytes;
    c->disk_limit = o.disk_bytes;
    c->longest_wait_ns = (int64_t)60 * 1000000000;
    c->hash_mask = (base_hash128){UINT64_MAX, UINT64_MAX};
    c->n_buckets = FIRST_BUCKETS;
    c->disk_bytes = -1;
    c->maker = getpid();
    *out = c;
    return TIGA_OK;
}

tiga_cache *tiga_cache_retain(tiga_cache *c) {
    if (c)
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

static void forget(tiga_cache *c) {
    rt_cache_entry *dropped = NULL;
    pthread_mutex_lock(&c->lock);
    while (c->oldest)
        rt_cache_remove(c, c->oldest, &dropped);
    pthread_mutex_unlock(&c->lock);
    rt_cache_drop(dropped);
}

void tiga_cache_free(tiga_cache *c) {
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    forget(c);
    if (c->maker == getpid()) { /* a child of fork would wait for threads that stayed behind */
        pthread_cond_destroy(&c->settled);
        pthread_mutex_destroy(&c->lock);
    }
    base_free(c->buckets);
    base_free(c->folder);
    base_free(c);
}

const char *tiga_cache_folder(const tiga_cache *c) { return c ? c->folder : ""; }

void rt_cache_count(tiga_cache *c, int64_t *counter) {
    pthread_mutex_lock(&c->lock);
    ++*counter;
    pthread_mutex_unlock(&c->lock);
}

tiga_cache_counters tiga_cache_get_counters(tiga_cache *c) {
    tiga_cache_counters n;
    memset(&n, 0, sizeof n);
    if (!c)
        return n;
    pthread_mutex_lock(&c->lock);
    n = c->counters;
    pthread_mutex_unlock(&c->lock);
    return n;
}

/* ---- what lies in the folder ---- */

/* Opened and scanned; *folder is -1 when there is none, which is no failure. */
static tiga_status look(tiga_context *ctx, tiga_cache *c, int *folder, rt_cache_item **items, size_t *n) {
    const char *why;
    *items = NULL;
    *n = 0;
    *folder = c->folder[0] ? rt_cache_folder_open(c, false, &why) : -1;
    if (*folder < 0)
        return !c->folder[0] || errno == ENOENT
                   ? TIGA_OK
                   : rt_fail(ctx, TIGA_E_FILE, "%s: cannot be used as a cache: %s", c->folder, why);
    if (rt_cache_scan(*folder, items, n))
        return TIGA_OK;
    int saved = errno;
    close(*folder);
    *folder = -1;
    return rt_fail(ctx, saved == ENOMEM ? TIGA_E_MEMORY : TIGA_E_FILE, "%s: cannot read the folder: %s", c->folder,
                   strerror(saved));
}

typedef struct visitor {
    tiga_cache *c;
    int folder;
    int (*visit)(void *user, const tiga_cache_entry *entry);
    void *user;
} visitor;

/* 0: go on; 1: visit has had enough; -1: out of memory. */
static int show(const visitor *v, const rt_cache_item *item) {
    rt_cache_file f;
    rt_cache_read r = rt_cache_file_peek(v->folder, item->name, &f);
    if (r == RT_CACHE_NONE)
        return 0; /* gone meanwhile */
    if (r == RT_CACHE_NO_MEMORY)
        return -1;
    tiga_cache_entry e = {.key = item->name,
                          .bytes = item->bytes,
                          .created = f.created,
                          .used = item->used_ns / 1000000000,
                          .failed = f.failed,
                          .damaged = r != RT_CACHE_GOOD};
    tiga_cache_field *fields = NULL;
    if (!e.damaged) {
        char name[RT_CACHE_NAME];
        bool no_memory;
        e.fields = fields = rt_cache_key_split(f.key, f.key_bytes, &e.n_fields, &no_memory);
        if (no_memory) {
            base_free(f.buffer);
            return -1;
        }
        if (fields)
            base_hash_hex(rt_cache_hash(v->c, f.key, f.key_bytes), name);
        e.damaged = !fields || strcmp(name, item->name) != 0;
    }
    if (e.damaged) {
        e.fields = NULL;
        e.n_fields = 0;
        e.failed = 0;
    }
    int stop = v->visit(v->user, &e) != 0;
    base_free(fields);
    base_free(f.buffer);
    return stop;
}

static int newer_first(const void *a, const void *b) {
    const rt_cache_item *x = a, *y = b;
    return x->used_ns != y->used_ns ? (x->used_ns > y->used_ns ? -1 : 1) : strcmp(x->name, y->name);
}

tiga_status tiga_cache_list(tiga_context *ctx, tiga_cache *c, int (*visit)(void *user, const tiga_cache_entry *entry),
                            void *user) {
    if (!c || !visit)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_cache_list: an argument is NULL");
    rt_cache_item *items;
    size_t n;
    visitor v = {.c = c, .visit = visit, .user = user};
    tiga_status status = look(ctx, c, &v.folder, &items, &n);
    if (status != TIGA_OK || v.folder < 0)
        return status;
    if (n)
        qsort(items, n, sizeof *items, newer_first);
    int stop = 0;
    for (size_t i = 0; i < n && !stop; i++)
        if (items[i].what == RT_CACHE_ENTRY)
            stop = show(&v, &items[i]);
    base_free(items);
    close(v.folder);
    return stop < 0 ? rt_fail(ctx, TIGA_E_MEMORY, "tiga_cache_list: out of memory") : TIGA_OK;
}

tiga_status tiga_cache_clear(tiga_context *ctx, tiga_cache *c, int64_t *removed) {
    if (removed)
        *removed = 0;
    if (!c)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_cache_clear: cache is NULL");
    forget(c);
    int folder;
    rt_cache_item *items;
    size_t n;
    tiga_status status = look(ctx, c, &folder, &items, &n);
    if (status != TIGA_OK || folder < 0)
        return status;
    int64_t gone = 0;
    for (size_t i = 0; i < n; i++) {
        if (items[i].what != RT_CACHE_ENTRY)
            continue;
        if (!base_file_injected() && unlinkat(folder, items[i].name, 0) == 0)
            gone++;
        else if (errno != ENOENT)
            status = rt_fail(ctx, TIGA_E_FILE, "%s/%s: cannot remove: %s", c->folder, items[i].name, strerror(errno));
    }
    gone += rt_cache_sweep(folder, items, n, 0);
    if (removed)
        *removed = gone;
    base_free(items);
    close(folder);
    return status;
}
