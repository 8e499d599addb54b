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
    const char *folder;   /* NULL: $TIGA_CACHE_DIR, else $XDG_CACHE_HOME/tiga, else ~/.cache/tiga; "": memory only */
    int64_t memory_bytes; /* of code kept ready to call; 0: none.  Default 256 MiB */
    int64_t disk_bytes;   /* of files in the folder; 0: memory only.  Default 2 GiB */
} tiga_cache_options;
TIGA_API tiga_cache_options tiga_cache_defaults(void);

/* Touches no file yet. options may be NULL.  E_ARGUMENT a negative size; E_MEMORY.  *out is NULL on failure. */
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

#ifdef __cplusplus
}
#endif
#endif
