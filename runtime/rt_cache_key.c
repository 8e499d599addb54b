/* Keys of the cache.  A key is a list of named fields; as bytes, each name and each value has its length before it and a
 * NUL behind it, so that no two lists look the same and a reader can use the texts as they lie.  The hash covers the
 * same lengths and bytes in one run.  A hash only finds candidates: what decides is the whole key. */
#include "runtime/runtime.h"

#include <endian.h>
#include <string.h>

base_hash128 rt_cache_hash(const tiga_cache *c, const tiga_cache_field *fields, size_t n) {
    base_hasher h;
    base_hasher_init(&h);
    for (size_t i = 0; i < n; i++) {
        base_hasher_field(&h, fields[i].name, strlen(fields[i].name));
        base_hasher_field(&h, fields[i].bytes, fields[i].n_bytes);
    }
    base_hash128 d = base_hasher_digest(&h);
    return (base_hash128){d.lo & c->hash_mask.lo, d.hi & c->hash_mask.hi};
}

static bool add_piece(size_t *total, size_t n) {
    return !__builtin_add_overflow(*total, n, total) && !__builtin_add_overflow(*total, 9, total);
}

bool rt_cache_key_size(const tiga_cache_field *fields, size_t n, size_t *out) {
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

void rt_cache_key_write(const tiga_cache_field *fields, size_t n, char *key) {
    for (size_t i = 0; i < n; i++) {
        key = write_piece(key, fields[i].name, strlen(fields[i].name));
        key = write_piece(key, fields[i].bytes, fields[i].n_bytes);
    }
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

static bool same_piece(const char **at, const char *end, const void *bytes, size_t n) {
    const char *have;
    size_t have_n;
    return next_piece(at, end, &have, &have_n) && have_n == n && (n == 0 || memcmp(have, bytes, n) == 0);
}

bool rt_cache_key_equal(const tiga_cache_field *fields, size_t n, const char *key, size_t n_bytes) {
    const char *at = key, *end = key + n_bytes;
    for (size_t i = 0; i < n; i++)
        if (!same_piece(&at, end, fields[i].name, strlen(fields[i].name)) ||
            !same_piece(&at, end, fields[i].bytes, fields[i].n_bytes))
            return false;
    return at == end;
}

static bool next_field(const char **at, const char *end, tiga_cache_field *f) {
    const char *bytes;
    size_t n;
    if (!next_piece(at, end, &f->name, &n) || strlen(f->name) != n || !next_piece(at, end, &bytes, &f->n_bytes))
        return false;
    f->bytes = bytes;
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
