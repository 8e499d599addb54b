/* Keys of the cache.  A key is a list of named fields; as bytes, each name and each value has its length before it and a
 * NUL behind it, so that no two lists look the same and a reader can use the texts as they lie.  The hash covers these
 * bytes.  A hash only finds candidates: what decides is the whole key. */
#include "runtime/runtime.h"

#include <endian.h>
#include <string.h>

base_hash128 rt_cache_hash(const tiga_cache *c, const char *key, size_t n_bytes) {
    base_hash128 d = base_hash_bytes(key, n_bytes);
    return (base_hash128){d.lo & c->hash_mask.lo, d.hi & c->hash_mask.hi};
}

static bool add_piece(size_t *total, size_t n) {
    return !__builtin_add_overflow(*total, n, total) && !__builtin_add_overflow(*total, 9, total);
}

static bool key_size(const tiga_cache_field *fields, size_t n, size_t *out) {
    *out = 0;
    for (size_t i = 0; i < n; i++)
        if (!add_piece(out, strlen(fields[i].name)) || !add_piece(out, fields[i].n_bytes))
            return false;
    return true;
}

static char *write_piece(char *at, const void *bytes, size_t n) {
    uint64_t length = htole64(n);
    memcpy(at, &length, 8);
    if (n)
        memcpy(at + 8, bytes, n);
    at[8 + n] = 0;
    return at + n + 9;
}

static void write_all(const tiga_cache_field *fields, size_t n, char *at) {
    for (size_t i = 0; i < n; i++) {
        at = write_piece(at, fields[i].name, strlen(fields[i].name));
        at = write_piece(at, fields[i].bytes, fields[i].n_bytes);
    }
}

bool rt_cache_key_init(rt_cache_key *k, const tiga_cache *c, const tiga_cache_field *fields, size_t n) {
    k->bytes = k->small;
    if (!key_size(fields, n, &k->n_bytes) || (k->n_bytes > sizeof k->small && !(k->bytes = base_alloc(k->n_bytes))))
        return false;
    write_all(fields, n, k->bytes);
    k->hash = rt_cache_hash(c, k->bytes, k->n_bytes);
    return true;
}

void rt_cache_key_fini(rt_cache_key *k) {
    if (k->bytes != k->small)
        base_free(k->bytes);
}

bool rt_cache_key_equal(const rt_cache_key *k, const char *key, size_t n_bytes) {
    return k->n_bytes == n_bytes && memcmp(k->bytes, key, n_bytes) == 0;
}

/* The piece that begins at *at; false: there is none. */
static bool next_piece(const char **at, const char *end, const char **bytes, size_t *n) {
    if (end - *at < 9)
        return false;
    uint64_t length;
    memcpy(&length, *at, 8);
    length = le64toh(length);
    if (length > (uint64_t)(end - *at) - 9 || (*at)[8 + length])
        return false;
    *bytes = *at + 8;
    *n = (size_t)length;
    *at += length + 9;
    return true;
}

/* *at moves past a whole field or not at all. */
static bool next_field(const char **at, const char *end, tiga_cache_field *f) {
    const char *bytes, *from = *at;
    size_t n;
    if (!next_piece(&from, end, &f->name, &n) || strlen(f->name) != n || !next_piece(&from, end, &bytes, &f->n_bytes))
        return false;
    f->bytes = bytes;
    *at = from;
    return true;
}

tiga_cache_field *rt_cache_key_split(const char *key, size_t n_bytes, size_t *n, bool *no_memory) {
    const char *at = key, *end = key + n_bytes;
    tiga_cache_field f;
    *n = 0;
    *no_memory = false;
    while (next_field(&at, end, &f))
        ++*n;
    size_t size;
    if (at != end || !base_mul_size(*n, sizeof f, &size))
        return NULL;
    tiga_cache_field *fields = base_alloc(size);
    *no_memory = !fields;
    if (!fields)
        return NULL;
    at = key;
    for (size_t i = 0; i < *n; i++)
        next_field(&at, end, &fields[i]);
    return fields;
}
