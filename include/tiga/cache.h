/* tiga: a cache of compiled code, in memory and on disk.  Link with -ltiga.
 *
 *     tiga_cache *cache;
 *     tiga_cache_new(NULL, &cache);       // memory and the user's cache folder
 *     tiga_jit_options o = tiga_jit_defaults();
 *     o.cache = cache;                    // see tiga/jit.h
 *     ...
 *     tiga_cache_counters n = tiga_cache_get_counters(cache);
 *     tiga_cache_free(cache);
 *
 * One cache may serve many contexts and threads, one folder many processes.  A folder that cannot be read or written
 * costs speed, never a result. */
#ifndef TIGA_CACHE_H
#define TIGA_CACHE_H

#include "tiga/tiga.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tiga_cache tiga_cache;

typedef struct tiga_cache_options {
    size_t struct_bytes;  /* sizeof(tiga_cache_options) */
    const char *folder;   /* NULL: $TIGA_CACHE_DIR, else $XDG_CACHE_HOME/tiga, else ~/.cache/tiga; "": memory only.
                             Made (0700) when something is stored; used only when it and its files belong to the user or
                             to root and nobody else can write to them, because what lies there will run */
    int64_t memory_bytes; /* of code kept ready to call; 0: none.  Default 256 MiB */
    int64_t disk_bytes;   /* of files in the folder; 0: memory only.  Default 2 GiB */
} tiga_cache_options;
TIGA_API tiga_cache_options tiga_cache_defaults(void);

/* Touches no file yet.  options may be NULL.  E_ARGUMENT a negative size; E_MEMORY.  *out is NULL on failure. */
TIGA_API tiga_status tiga_cache_new(const tiga_cache_options *options, tiga_cache **out);
TIGA_API tiga_cache *tiga_cache_retain(tiga_cache *cache); /* one more owner; returns cache.  Threads: any */
TIGA_API void tiga_cache_free(tiga_cache *cache);          /* one owner less; modules in use stay.  NULL is fine */
TIGA_API const char *tiga_cache_folder(const tiga_cache *cache); /* "" when there is none */

/* What happened since the cache was made. */
typedef struct tiga_cache_counters {
    int64_t memory_hits, disk_hits;
    int64_t misses;  /* had to be built */
    int64_t waited;  /* built by another thread or process while this one waited; counted as hits as well */
    int64_t stale;   /* files that were truncated, damaged, of another key, version or ABI: built again */
    int64_t failed;  /* builds that failed, the first time */
    int64_t negative_hits; /* failures known from before */
    int64_t evicted_memory, evicted_disk; /* entries */
    int64_t disk_errors; /* the folder could not be read, written or locked */
    int64_t memory_entries, memory_bytes; /* now */
} tiga_cache_counters;
TIGA_API tiga_cache_counters tiga_cache_get_counters(tiga_cache *cache);

/* ---- what lies in the folder ---- */
typedef struct tiga_cache_field { /* a part of a key: code is taken from the cache only when all parts are the same */
    const char *name;  /* "source", "file", "kind", "cpu", "flags" ... */
    const void *bytes; /* mostly text; a NUL follows what tiga_cache_list gives */
    size_t n_bytes;
} tiga_cache_field;

typedef struct tiga_cache_entry {
    const char *key;        /* 32 hexadecimal digits, the name of the file */
    int64_t bytes;          /* of the file */
    int64_t created, used;  /* seconds since 1970; used: last time, give or take a minute */
    int32_t failed;         /* 1: what is kept is that the program is wrong */
    int32_t damaged;        /* 1: cannot be used and will be built again; there are no fields */
    const tiga_cache_field *fields;
    size_t n_fields;
} tiga_cache_entry;

/* Calls visit for every entry, the last used first, until it returns something else than 0.  The entry lives until visit
 * returns.  ctx may be NULL: no text of errors.  No folder: no entries.  E_FILE the folder cannot be read or is not safe
 * (see tiga_cache_options); E_MEMORY. */
TIGA_API tiga_status tiga_cache_list(tiga_context *ctx, tiga_cache *cache,
                                     int (*visit)(void *user, const tiga_cache_entry *entry), void *user);
/* Forgets everything, in memory and on disk; modules in use stay.  *removed (may be NULL): files.  Files that are not of
 * the cache stay.  E_FILE as above, or a file could not be removed. */
TIGA_API tiga_status tiga_cache_clear(tiga_context *ctx, tiga_cache *cache, int64_t *removed);

#ifdef __cplusplus
}
#endif
#endif
