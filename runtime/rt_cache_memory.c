/* The memory level: a hash table of entries, chained, and a list of the complete ones by last use.
 *
 * An entry is in the table from the moment somebody begins to make it, so that others find it and wait.  It lives as long
 * as anything refers to it: the table, its maker, a thread that waits.  Eviction takes it out of the table; the objects
 * that users hold have references of their own.  Nothing is freed and no callback but `retain` runs under the lock:
 * whoever lets an entry go collects it in a list and drops that later. */
#include "runtime/runtime.h"

#include <string.h>
#include <unistd.h>

rt_cache_entry *rt_cache_entry_new(const rt_cache_key *k, const rt_cache_ops *ops) {
    size_t all;
    if (__builtin_add_overflow(k->n_bytes, sizeof(rt_cache_entry), &all))
        return NULL;
    rt_cache_entry *e = base_alloc(all);
    if (!e)
        return NULL;
    memset(e, 0, sizeof *e);
    e->hash = k->hash;
    e->refs = 1;
    e->state = RT_CACHE_MAKING;
    e->maker = getpid();
    e->ops = ops;
    e->bytes = (int64_t)all;
    e->key_bytes = k->n_bytes;
    memcpy(e->key, k->bytes, k->n_bytes);
    return e;
}

static size_t bucket_of(const tiga_cache *c, base_hash128 hash) { return (size_t)hash.lo & (c->n_buckets - 1); }

rt_cache_entry *rt_cache_find(const tiga_cache *c, const rt_cache_key *k) {
    for (rt_cache_entry *e = c->buckets[bucket_of(c, k->hash)]; e; e = e->chain)
        if (e->hash.lo == k->hash.lo && e->hash.hi == k->hash.hi && rt_cache_key_equal(k, e->key, e->key_bytes))
            return e;
    return NULL;
}

/* Without memory for it the chains get longer, that is all. */
static void grow(tiga_cache *c) {
    size_t old = c->n_buckets, bytes;
    rt_cache_entry **from = c->buckets, **to;
    if (!base_mul_size(old * 2, sizeof *to, &bytes) || !(to = base_alloc_zero(bytes)))
        return;
    c->buckets = to;
    c->n_buckets = old * 2;
    for (size_t i = 0; i < old; i++)
        for (rt_cache_entry *e = from[i], *next; e; e = next) {
            next = e->chain;
            e->chain = to[bucket_of(c, e->hash)];
            to[bucket_of(c, e->hash)] = e;
        }
    base_free(from);
}

void rt_cache_insert(tiga_cache *c, rt_cache_entry *e) {
    if (c->n_chained >= c->n_buckets)
        grow(c);
    rt_cache_entry **bucket = &c->buckets[bucket_of(c, e->hash)];
    e->chain = *bucket;
    *bucket = e;
    e->in_table = true;
    e->refs++;
    c->n_chained++;
}

static void take_from_order(tiga_cache *c, rt_cache_entry *e) {
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
    e->newer = e->older = NULL;
}

void rt_cache_used(tiga_cache *c, rt_cache_entry *e) {
    if (c->newest == e)
        return;
    if (e->in_order) {
        take_from_order(c, e);
    } else {
        e->in_order = true;
        c->counters.memory_entries++;
        c->counters.memory_bytes += e->bytes;
    }
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

void rt_cache_put(rt_cache_entry *e, rt_cache_entry **dropped) {
    if (--e->refs > 0)
        return;
    e->chain = *dropped; /* no longer in the table */
    *dropped = e;
}

void rt_cache_remove(tiga_cache *c, rt_cache_entry *e, rt_cache_entry **dropped) {
    if (e->in_order) {
        take_from_order(c, e);
        e->in_order = false;
        c->counters.memory_entries--;
        c->counters.memory_bytes -= e->bytes;
    }
    if (!e->in_table)
        return;
    rt_cache_entry **at = &c->buckets[bucket_of(c, e->hash)];
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    e->chain = NULL;
    e->in_table = false;
    c->n_chained--;
    rt_cache_put(e, dropped);
}

void rt_cache_shrink(tiga_cache *c, int64_t limit, rt_cache_entry **dropped) {
    while (c->counters.memory_bytes > limit && c->oldest) {
        c->counters.evicted_memory++;
        rt_cache_remove(c, c->oldest, dropped);
    }
}

bool rt_cache_evict_idle(tiga_cache *c, const void *account) {
    rt_cache_entry *dropped = NULL;
    pthread_mutex_lock(&c->lock);
    rt_cache_entry *e = c->oldest;
    while (e && !(e->object && e->ops->idle && e->ops->idle(e->object, account)))
        e = e->newer;
    if (e) {
        c->counters.evicted_memory++;
        rt_cache_remove(c, e, &dropped);
    }
    pthread_mutex_unlock(&c->lock);
    rt_cache_drop(dropped);
    return e != NULL;
}

void rt_cache_drop(rt_cache_entry *dropped) {
    while (dropped) {
        rt_cache_entry *next = dropped->chain;
        if (dropped->object)
            dropped->ops->release(dropped->object);
        base_free(dropped->message);
        base_free(dropped);
        dropped = next;
    }
}
