/* rt_cache: how the compiler asks the cache of compiled code.  For the driver; users see include/tiga/cache.h.
 *
 * The cache knows nothing of what it keeps: bytes on disk, counted objects in memory, made by the callbacks below. */
#ifndef TIGA_RT_CACHE_H
#define TIGA_RT_CACHE_H

#include "base/base.h"
#include "tiga/cache.h"
#include "tiga/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a kind of object can do.  Lives as long as the cache (static). */
typedef struct rt_cache_ops {
    /* Makes the bytes to keep.  On E_PROGRAM they are instead the message to keep: what is wrong with the program will
     * be wrong next time.  Every other failure is forgotten, and the next to ask builds again. */
    tiga_status (*build)(void *user, tiga_context *ctx, base_str *artefact);
    /* Makes an object of such bytes (aligned to 16, gone after the call) with one reference.  *object_bytes: what it
     * costs to keep it in memory.  E_ABI, E_FORMAT, E_MODULE or E_TARGET: these bytes are of no use; when they came from
     * disk they are counted as stale and built again, once. */
    tiga_status (*load)(void *user, tiga_context *ctx, const void *bytes, size_t n, void **object,
                        int64_t *object_bytes);
    void (*retain)(void *object); /* any thread; quick, because a lock is held */
    void (*release)(void *object); /* any thread; no lock is held */
    /* Whether the cache alone holds it, and it is charged to this account.  Quick, like retain.  NULL: never. */
    bool (*idle)(const void *object, const void *account);
} rt_cache_ops;

/* The key: every field counts, and so do their names, order and number.  Fields in text make `tiga cache why` readable;
 * "kind", "file", "source" and "cpu" are shown by `tiga cache list`. */
typedef struct rt_cache_request {
    const tiga_cache_field *fields;
    int n_fields;
    const rt_cache_ops *ops;
    void *user; /* of build and load, which run in the calling thread with no lock of the process held */
    bool inside; /* of a call that has begun: an interruption that came since then counts */
} rt_cache_request;

/* From memory, from disk, or built.  OK: *object, with a reference of the caller's own.  E_PROGRAM: *message (may be NULL;
 * otherwise empty before) gets the bytes that build left, whether it ran now or long ago.  E_INTERRUPTED while another
 * builds the same; otherwise what build and load return, and E_MEMORY.  build must not ask for the same key.
 * Threads: any, a context each.  Exported for libtigac, not for users. */
TIGA_API tiga_status tiga_cache_get(tiga_cache *cache, tiga_context *ctx, const rt_cache_request *request,
                                    void **object, base_str *message);

/* A call of its own begins: what interrupted an earlier one is forgotten.  tiga_cache_get does it by itself. */
TIGA_API void tiga_cache_begin(tiga_context *ctx);

/* rt_code.c: code that was loaded, to the account in force; *out owns it, NULL where code is not counted.  E_BUDGET.  Exported for
 * libtigac, not for users. */
TIGA_API tiga_status tiga_code_charge(tiga_context *ctx, int64_t n_bytes, tiga_execution **out);
TIGA_API void tiga_code_discharge(tiga_execution *e, int64_t n_bytes); /* and gives the account up; NULL is fine */

/* Is the call that the context is in to be given up?  Exported for libtigac, not for users. */
TIGA_API bool tiga_cache_interrupted(tiga_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
