/* tiga/memory.h: where bytes live.  Budgets for a stretch of a program, buffers that can leave memory and come back,
 * snapshots in files, and named versions in tiers.  Four separate operations:
 *
 *     policy       tiga_execution_begin/end     budgets and defaults for what is allocated in between
 *     residency    tiga_buffer_spill/realize    the same value, on disk or in memory
 *     copy         tiga_buffer_copy             another value, of the same bytes
 *     persistence  tiga_save, tiga_snapshot_*   a file that outlives the process
 *
 *     tiga_execution_options o = tiga_execution_defaults();
 *     o.spill_dir = "/scratch";
 *     tiga_execution_set_budget(ctx, &o, "host", "1MiB");
 *     tiga_execution_begin(ctx, &o, NULL);
 *     tiga_buffer *b;  tiga_pin p;
 *     tiga_buffer_new(ctx, "x", TIGA_TIER_HOST, 4096, &b);
 *     tiga_buffer_pin(ctx, b, TIGA_WRITE, &p);   memset(p.data, 1, 4096);   tiga_buffer_unpin(&p);
 *     tiga_buffer_spill(ctx, b);
 *     tiga_buffer_free(b);
 *     tiga_execution_end(ctx);
 *
 * Tiers: host (also ram), device (hbm), pinned (host-pinned), disk (nvme, ssd).  Without a device provider E_UNSUPPORTED
 * for the device tier.  Sizes are bytes; a budget < 0 is unlimited.
 *
 * Threads: buffers, snapshots, hierarchies and reports may be used from any number of threads at once, with one context
 * or several; calls and scopes of one context take turns (tiga_context_lock).
 *
 * Nothing is lost by a failure: a value is in memory, in a file, or in both, whatever call failed, and the accounts are
 * what they were. */
#ifndef TIGA_MEMORY_H
#define TIGA_MEMORY_H

#include "tiga/tiga.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TIGA_TIERS = 4 };
TIGA_API const char *tiga_tier_text(int32_t tier); /* "host"; "unknown" for others */
/* "host" "ram" | "device" "hbm" | "pinned" "host-pinned" | "disk" "nvme" "ssd".  E_NAME otherwise. */
TIGA_API tiga_status tiga_tier_parse(tiga_context *ctx, const char *text, int32_t *tier);
/* Digits, or digits and KiB, MiB, GiB, TiB; nothing else, no blanks, no fractions.  E_ARGUMENT otherwise; E_RANGE above
 * INT64_MAX. */
TIGA_API tiga_status tiga_bytes_parse(tiga_context *ctx, const char *text, int64_t *bytes);

/* ---- execution scopes -------------------------------------------------------------------------------------------- */
enum { TIGA_EVICT_ERROR = 0, TIGA_EVICT_LRU = 1 };

typedef struct tiga_execution tiga_execution; /* the account of a scope; counted */

typedef struct tiga_execution_options {
    size_t struct_bytes;
    const char *device; /* NULL or "cpu"; others E_UNSUPPORTED */
    int64_t budget[TIGA_TIERS]; /* by TIGA_TIER_*; < 0: unlimited, or what the context was made with */
    const char *spill_dir; /* an existing folder; NULL: $TIGA_SPILL_DIR, $TMPDIR, /var/tmp */
    int64_t page_rows; /* defaults for paged calls; 0: chosen */
    int32_t prefetch_depth; /* -1: chosen */
    int32_t eviction; /* TIGA_EVICT_*.  LRU needs spill_dir */
    /* A budget for all processes of this user on this machine that name the same: budget[] is the cap of all of them
     * together.  What a process that died held is taken back.  The name keeps to letters, digits, '-', '_'.  NULL: none */
    const char *shared;
    /* Called before a budget is refused and before an idle buffer is evicted: frees what nothing needs (unreachable
     * cycles of a host language).  Runs on the thread that allocates, with no lock held but the turn of its context where a
     * call or a tensor allocates.  NULL: none */
    void (*collect)(void *user);
    void *collect_user;
    /* 1: code that is compiled or loaded from a cache in the scope counts against the host budget for as long as it is in
     * memory.  Code that only a tiga_cache still holds goes before any value is evicted.  0, the default: code is outside of
     * all budgets, whatever the size of its cache allows */
    int32_t count_code;
} tiga_execution_options;
TIGA_API tiga_execution_options tiga_execution_defaults(void);
/* One entry of memory={"host": "1GiB"}.  A tier set twice, by whatever alias, is E_ARGUMENT. */
TIGA_API tiga_status tiga_execution_set_budget(tiga_context *ctx, tiga_execution_options *o, const char *tier,
                                               const char *bytes);
/* memory="auto": host is three quarters of what is free below the limits of the cgroup and of the machine, disk nine
 * tenths of what is free where o->spill_dir is (set it before).  Tiers with a budget keep it. */
TIGA_API tiga_status tiga_execution_set_auto(tiga_context *ctx, tiga_execution_options *o);

/* Allocations of the context go to a new account until tiga_execution_end.  *out, if asked for, is a handle of the
 * caller's (tiga_execution_free), good for reports after the end.  E_ARGUMENT nested, or wrong options; E_FILE the
 * folder; E_RANGE another process uses `shared` with other budgets. */
TIGA_API tiga_status tiga_execution_begin(tiga_context *ctx, const tiga_execution_options *options,
                                          tiga_execution **out);
/* Buffers stay valid and keep their account.  E_ARGUMENT there is no scope. */
TIGA_API tiga_status tiga_execution_end(tiga_context *ctx);
/* What ctx allocates goes to the account of a scope that another context began, until tiga_execution_leave: one scope for
 * the contexts of several threads.  It may have ended.  E_ARGUMENT ctx has a scope already; E_ARGUMENT there is none. */
TIGA_API tiga_status tiga_execution_enter(tiga_context *ctx, tiga_execution *e);
TIGA_API tiga_status tiga_execution_leave(tiga_context *ctx);
/* The account in force, one more owner; that of the context itself outside of scopes.  NULL only for a NULL ctx. */
TIGA_API tiga_execution *tiga_execution_current(tiga_context *ctx);
TIGA_API bool tiga_execution_active(tiga_context *ctx); /* between begin and end */
TIGA_API tiga_execution *tiga_execution_retain(tiga_execution *e);
TIGA_API void tiga_execution_free(tiga_execution *e); /* one owner less.  NULL is fine */
/* What it was begun with, folder resolved; lives as long as e. */
TIGA_API const tiga_execution_options *tiga_execution_get_options(const tiga_execution *e);

typedef struct tiga_memory_report {
    size_t struct_bytes; /* set by the caller */
    int64_t live[TIGA_TIERS], peak[TIGA_TIERS], budget[TIGA_TIERS]; /* budget < 0: unlimited */
    int64_t shared_live[TIGA_TIERS]; /* of all processes; -1 without `shared` */
    int64_t evictions, restores; /* values that LRU moved out; spilled values that were read back */
    int64_t spills; /* values moved out, evictions included */
    int32_t eviction;
    int32_t active; /* 1: the scope has not ended */
    const char *scope; /* static: what the figures cover */
    const char *exclusions; /* static: what they do not */
    int64_t kept; /* freed host memory that is kept for new buffers */
    int64_t code; /* compiled code in live[TIGA_TIER_HOST]; see count_code */
    /* Copies on disk of values that are in memory too, kept or written ahead by LRU eviction.  Together with
     * live[TIGA_TIER_DISK] within the budget; they give way to what is live */
    int64_t ahead;
    int64_t bytes_written, bytes_read; /* of values, to disk and from it; snapshots are not counted */
} tiga_memory_report;
TIGA_API tiga_status tiga_execution_report(tiga_execution *e, tiga_memory_report *out);

/* Host memory of freed buffers is kept for new ones of about the size, at most n_bytes an account: fresh pages cost more
 * than most arithmetic on them.  Of the account in force, of the context's own, and of scopes that begin later.  0, the
 * default: none.  What is kept and what is live never exceed a budget together; the end of a scope frees it. */
TIGA_API tiga_status tiga_memory_keep(tiga_context *ctx, int64_t n_bytes);
TIGA_API void tiga_memory_trim(tiga_context *ctx); /* frees what is kept now */

/* ---- buffers ----------------------------------------------------------------------------------------------------- *
 * A logical value of fixed size: a name, a version that each write raises, a home tier, and at most one instance in the
 * home tier and one in a file.  Views are further owners of the same buffer; it is charged once, to the account in force
 * when it was made, for as long as it has owners.
 *
 *                      +----- spill, eviction -----> [moving] ---- written ----+
 *      new --> RESIDENT                                                         v
 *                 ^  ^ |                                                     SPILLED
 *                 |  | +--- eviction, spill (clean) --> ATTACHED                |
 *          write  |  |                                     |   ^ tiga_snapshot_buffer
 *                 |  +----- read ---- [moving] <-----------|---|--- pin, realize, prefetch
 *               BACKED <---- verified ---- [moving] <------+
 *
 *   RESIDENT  in its home tier only
 *   SPILLED   in the spill file of its account; coming back removes it there, or leaves a copy that only speed can tell
 *   ATTACHED  in a snapshot only, nothing read yet; BACKED: in its home tier and unchanged in the snapshot, so that
 *             leaving memory needs no writing.  A write makes it RESIDENT.
 *   moving    a transfer is under way, and whoever wants the buffer waits.  A transfer that fails leaves it where it was.
 *
 * Pins: reads wait for the writer, a write waits for all readers (RAW, WAR, WAW).  Pinned buffers never move.  A thread
 * that would wait for a pin of its own gets E_ARGUMENT. */
typedef struct tiga_buffer tiga_buffer;

enum { TIGA_READ = 0, TIGA_WRITE = 1 };
typedef struct tiga_pin { /* the caller's memory; must stay in its place until tiga_buffer_unpin */
    void *data; /* the bytes, 64-byte aligned */
    tiga_buffer *buffer;
    int32_t mode;
    struct tiga_pin *next, *prev; /* private, like all that follows */
    uint64_t thread;
} tiga_pin;

/* Zeroed, resident, version 0.  name is copied; NULL: none.  E_BUDGET before anything is allocated, E_MEMORY, E_FILE and
 * E_BUDGET (disk) from eviction, E_UNSUPPORTED the tier. */
TIGA_API tiga_status tiga_buffer_new(tiga_context *ctx, const char *name, int32_t tier, int64_t bytes,
                                     tiga_buffer **out);
/* The same with bytes of any value, for who writes all of them at once. */
TIGA_API tiga_status tiga_buffer_new_unset(tiga_context *ctx, const char *name, int32_t tier, int64_t bytes,
                                           tiga_buffer **out);
TIGA_API tiga_buffer *tiga_buffer_retain(tiga_buffer *b); /* one more owner; returns b */
TIGA_API void
tiga_buffer_free(tiga_buffer *b); /* one owner less; the last one frees memory and file space.  NULL is fine */
TIGA_API int64_t tiga_buffer_bytes(const tiga_buffer *b);
TIGA_API const char *tiga_buffer_name(const tiga_buffer *b); /* "" without; lives as long as b */
TIGA_API tiga_execution *tiga_buffer_owner(const tiga_buffer *b); /* borrowed */

/* Brings the bytes home if needed and keeps them there.  pin is NULLed on failure.  E_BUDGET, E_MEMORY; E_FILE cannot
 * read; E_FORMAT what was read is not what was written (the value is lost, the buffer stays as it is); E_ARGUMENT the
 * thread would wait for itself. */
TIGA_API tiga_status tiga_buffer_pin(tiga_context *ctx, tiga_buffer *b, int32_t mode, tiga_pin *pin);
TIGA_API void tiga_buffer_unpin(tiga_pin *pin); /* any thread; a pin without buffer is fine */

/* To disk; the memory is free afterwards.  A buffer that is not at home already, or has no bytes: OK, nothing to do.
 * Pinned for reading: OK, and it leaves when the last pin goes, if there is room then (an owner in the middle of reading
 * keeps its bytes).  Waits for a writer.  E_BUDGET of the disk, E_FILE. */
TIGA_API tiga_status tiga_buffer_spill(tiga_context *ctx, tiga_buffer *b);
TIGA_API tiga_status tiga_buffer_realize(tiga_context *ctx, tiga_buffer *b); /* what pinning does, without the pin */
/* Read-ahead: starts to bring b home on another thread if there is room, or can be made by evicting values that need not
 * be written, oldest first; failures are seen by the next pin.  *started (may be NULL). */
TIGA_API tiga_status tiga_buffer_prefetch(tiga_context *ctx, tiga_buffer *b, bool *started);
/* A new buffer of the same bytes in `tier`, charged to the account in force. */
TIGA_API tiga_status tiga_buffer_copy(tiga_context *ctx, tiga_buffer *b, int32_t tier, tiga_buffer **out);

enum { TIGA_BACKING_NONE = 0, TIGA_BACKING_SPILL = 1, TIGA_BACKING_SNAPSHOT = 2 };
typedef struct tiga_residency {
    int32_t tier; /* home: the logical place, wherever the bytes are */
    int32_t resident; /* 1: the bytes are there */
    int32_t backing; /* TIGA_BACKING_* */
    int32_t pins;
    int64_t bytes, version;
} tiga_residency;
TIGA_API tiga_status tiga_buffer_residency(tiga_buffer *b, tiga_residency *out);

/* ---- snapshots: safetensors files ---------------------------------------------------------------------------------- *
 * Written beside the place, synced, renamed over it, and the folder synced.  Checksums (xxh3 of the header and of each
 * MiB of data) lie in the file's own metadata, so every other reader of safetensors reads it too; a file without them is
 * read as it is.  c64 and c128 are f32 and f64 with one more axis of 2, and the metadata says so. */
typedef struct tiga_tensor_view { /* which elements of a buffer */
    const char *name;
    tiga_buffer *buffer; /* or NULL: `data` */
    const void *data; /* the caller's memory, when buffer is NULL */
    int64_t offset; /* bytes from the beginning of either */
    int32_t dtype, rank;
    int64_t shape[7];
    const int64_t *strides; /* [rank], in elements, may be negative or 0; NULL: dense, row-major */
} tiga_tensor_view;
/* overwrite 0: E_FILE when path exists, also when it appears meanwhile.  Buffers are pinned one at a time;
 * those on disk go from there to the file, in chunks, where the elements are wanted in the order that they lie in.  A path that
 * ends in .npy gets numpy's file, of one tensor, without its name and checksums.  E_ARGUMENT names twice or empty, not one
 * tensor for .npy, elements outside the buffer; E_BUDGET, E_MEMORY, E_FILE. */
TIGA_API tiga_status tiga_save(tiga_context *ctx, const char *path, const tiga_tensor_view *tensors, int n,
                               int overwrite);

typedef struct tiga_snapshot tiga_snapshot; /* an open file; counted.  Keeps what it opened if the path is replaced */
/* Reads and checks the header only; a .npy file is a snapshot of one tensor named "".  E_FILE, E_FORMAT, E_TYPE an
 * element type that Tiga does not have (of the tensor asked for, not of the file), E_UNSUPPORTED what a .npy file may be and Tiga does not read. */
TIGA_API tiga_status tiga_snapshot_open(tiga_context *ctx, const char *path, tiga_snapshot **out);
TIGA_API tiga_snapshot *tiga_snapshot_retain(tiga_snapshot *s);
TIGA_API void tiga_snapshot_free(tiga_snapshot *s); /* NULL is fine */
TIGA_API int tiga_snapshot_count(const tiga_snapshot *s);
TIGA_API int tiga_snapshot_find(const tiga_snapshot *s, const char *name); /* -1: none */
/* Name, dtype, rank and shape; no buffer.  The name lives as long as s. */
TIGA_API tiga_status tiga_snapshot_get(tiga_context *ctx, const tiga_snapshot *s, int i, tiga_tensor_view *out);
/* A buffer ATTACHED to the file, charged to the account in force once it is read: nothing is read before the first
 * pin, which checks every byte.  Keeps s. */
TIGA_API tiga_status tiga_snapshot_buffer(tiga_context *ctx, tiga_snapshot *s, int i, int32_t tier, tiga_buffer **out);

/* The named store: snapshots by name in one folder, $TIGA_STORE_DIR, $XDG_DATA_HOME/tiga or ~/.local/share/tiga.  A name
 * that is taken, empty, longer than 200 bytes, begins with a dot, or holds '/', '\' or control characters is E_ARGUMENT. */
TIGA_API tiga_status tiga_store_put(tiga_context *ctx, const char *name, const tiga_tensor_view *tensor);
TIGA_API tiga_status tiga_store_get(tiga_context *ctx, const char *name, tiga_snapshot **out); /* E_NAME: none */
TIGA_API tiga_status tiga_store_remove(tiga_context *ctx, const char *name); /* E_NAME: none */

/* ---- hierarchies: named versions in tiers ------------------------------------------------------------------------- *
 * What a schedule works on: the physical instance of (name, version) in a tier.  Instances are charged to the account in
 * force when the hierarchy was made, and do not move by themselves.
 *
 *     allocate         transfer begins        transfer ends
 *   ----------> EMPTY ----------------> FILLING -----------> VALID <--> READING (pins, transfers out of it)
 *                 |  ^                     | fails             |
 *                 |  +---------------------+                   |
 *                 +---------- pin for writing --> WRITING -----+        release: EMPTY, VALID -> gone
 *
 * Transfers run on another thread, in pieces of at most 1 MiB, in the order they were asked for.  Whoever needs the
 * target waits (RAW, WAW), whoever writes the source waits (WAR). */
typedef struct tiga_hierarchy tiga_hierarchy;
TIGA_API tiga_status tiga_hierarchy_new(tiga_context *ctx, tiga_hierarchy **out);
/* Waits for transfers and frees all instances.  The first transfer that failed unseen is returned.  NULL is fine.  E_ARGUMENT
 * and nothing done: an instance is pinned. */
TIGA_API tiga_status tiga_hierarchy_close(tiga_context *ctx, tiga_hierarchy *h);
/* E_ARGUMENT it is there, or another version or tier of the name has another size; E_BUDGET, E_MEMORY, E_FILE. */
TIGA_API tiga_status tiga_hierarchy_allocate(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                             int32_t tier, int64_t bytes);
/* E_NAME no such instance; E_ARGUMENT it is pinned.  Waits for its transfers. */
TIGA_API tiga_status tiga_hierarchy_release(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                            int32_t tier);
/* The bytes of an instance in memory.  E_NAME; E_ARGUMENT read before it has a value, on disk, or waits for itself; what
 * the transfer into it failed with. */
TIGA_API tiga_status tiga_hierarchy_pin(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                        int32_t tier, int32_t mode, void **data);
TIGA_API tiga_status tiga_hierarchy_unpin(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                          int32_t tier);
/* Starts to copy an instance to another tier, where it must be allocated, or is now (with the same size). */
TIGA_API tiga_status tiga_hierarchy_transfer(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                             int32_t from, int32_t to);
/* Until nothing is on its way into or out of the instance; what failed on the way into it.  E_NAME. */
TIGA_API tiga_status tiga_hierarchy_wait(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t version,
                                         int32_t tier);
/* The largest version of the name with a value somewhere.  E_NAME: none. */
TIGA_API tiga_status tiga_hierarchy_latest(tiga_context *ctx, tiga_hierarchy *h, const char *name, int64_t *version);

#ifdef __cplusplus
}
#endif
#endif
