/* runtime: context, arrays, graphs, their files, threads, loading of modules, launching of kernels.  Knows nothing of
 * the IR.  This is the table of contents; what users see is include/tiga/tiga.h.
 *
 * Errors: a function that can fail takes the context, leaves one line in it through rt_fail and returns the status.
 * Threads: a context belongs to one thread at a time; a graph may be shared (its lazy parts are behind its lock). */
#ifndef TIGA_RUNTIME_H
#define TIGA_RUNTIME_H

#include "base/base.h"
#include "runtime/rt_cache.h"
#include "tiga/memory.h"
#include "tiga/tiga.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- rt_context.c: the context, its first error, interruption, the account of buffers made by calls ------------- */
enum { RT_ERROR_BYTES = 2048 };
typedef struct rt_pool rt_pool; /* rt_parallel.c */

struct tiga_context {
    int threads;
    tiga_execution *account; /* in force: that of the scope, or `own`.  Changed under `lock` */
    tiga_execution *own;
    bool entered; /* the scope in force was begun by another context */
    int64_t call_live, call_peak; /* of what calls have charged and not given back */
    int64_t keep; /* tiga_memory_keep, for scopes to come.  Under `lock` */
    int64_t memory_limit; /* > 0: rt_mem_take refuses more than this at once (tests, fuzzing) */
    int64_t wide_from; /* > 0: graphs of so many rows or edges are transposed as those of 2^31 are (tests) */
    atomic_int interrupted;
    int (*poll)(void *user); /* see tiga_context_options */
    void *poll_user;
    _Atomic pthread_t caller; /* who polls: the thread in the present call; set only where there is a poll */
    int polls;        /* times it was asked whether to stop, since rt_begin */
    int64_t poll_at;  /* clock, ns; 0: not read yet */
    pthread_mutex_t turn; /* who has it may use what is above; see RT_TURN */
    _Atomic pthread_t holder; /* of the turn; 0: nobody */
    int64_t depth; /* how often he has taken it */
    pthread_mutex_t lock; /* guards what follows, and who is in force */
    _Atomic tiga_status status; /* set after `error`, so that other threads may look */
    char error[RT_ERROR_BYTES];
    rt_pool *pool; /* its threads; NULL until the first are needed */
    void *scratch; /* of all threads of a launch; kept between launches */
    int64_t scratch_bytes;
    char *features; /* the list that rt_cpu_check has found here last; NULL: none yet */
};

/* Keeps the text when it is the first since the last clear; returns `status` either way.  ctx may be NULL. */
tiga_status rt_fail(tiga_context *ctx, tiga_status status, const char *fmt, ...) BASE_PRINTF(3, 4);
bool rt_interrupted(tiga_context *ctx);
bool rt_interrupted_within(tiga_context *ctx); /* of work that is known to be long: asks the host at once */
void rt_begin(tiga_context *ctx); /* of every public call that can be interrupted: forgets earlier interruptions */
/* The turn of this thread until the block ends. Outermost of all locks: who holds another does not ask for it. */
#define RT_TURN(ctx) __attribute__((cleanup(rt_turn_end), unused)) tiga_context *turn_ = rt_turn(ctx)
static inline tiga_context *rt_turn(tiga_context *ctx) {
    tiga_context_lock(ctx);
    return ctx;
}
static inline void rt_turn_end(tiga_context **ctx) { tiga_context_unlock(*ctx); }

/* ---- rt_account.c: bytes by tier, checked before they are allocated; and what calls have of them ------------------ */
typedef struct rt_shared rt_shared; /* rt_shared.c */
struct tiga_execution {
    atomic_int refs;
    atomic_bool active;
    _Atomic int64_t budget[TIGA_TIERS]; /* < 0: unlimited */
    _Atomic int64_t live[TIGA_TIERS], peak[TIGA_TIERS];
    _Atomic int64_t keep; /* most bytes of freed memory to be kept */
    _Atomic int64_t code; /* of live on the host: compiled code */
    tiga_execution_options options; /* its texts are its own */
    rt_shared *shared; /* or NULL: the budget is of many processes */
    /* What stands above: makes room, and is freed with the account.  Set under the lock, once. */
    pthread_mutex_t lock;
    struct rt_room *room;
    struct rt_code_cache *caches; /* that may hold code charged here; under the lock, until the scope ends */
};
typedef enum rt_room_answer { RT_ROOM_MADE, RT_ROOM_NONE, RT_ROOM_FAILED } rt_room_answer;
typedef struct rt_room {
    /* Tries to free n_bytes of the tier, called with no lock held.  FAILED: *status, its text is in ctx. */
    rt_room_answer (*make)(struct rt_room *room, tiga_context *ctx, int32_t tier, int64_t n_bytes, tiga_status *status);
    void (*free)(struct rt_room *room);
} rt_room;
/* Takes nothing over: texts are copied, `shared` becomes the account's.  NULL: out of memory. */
tiga_execution *rt_account_new(const tiga_execution_options *o, rt_shared *shared);
tiga_execution *rt_account_of(tiga_context *ctx); /* the one in force, one more owner */
/* Charges before an allocation; E_BUDGET names `what` and the figures.  Makes room first if it can. */
tiga_status rt_charge(tiga_context *ctx, tiga_execution *e, int32_t tier, int64_t n_bytes, const char *what);
bool rt_try_charge(tiga_execution *e, int32_t tier, int64_t n_bytes); /* makes no room, says nothing */
void rt_discharge(tiga_execution *e, int32_t tier, int64_t n_bytes);
int64_t rt_room_left(const tiga_execution *e, int32_t tier); /* INT64_MAX: unlimited */
/* The same for buffers of a call, on the host: they count in ctx->call_live too.  In the turn of the context. */
tiga_status rt_account_take(tiga_context *ctx, int64_t n_bytes, const char *what);
bool rt_account_try(tiga_context *ctx, int64_t n_bytes);
void rt_account_give(tiga_context *ctx, int64_t n_bytes);

/* ---- rt_code.c: compiled code in accounts that count it (tiga_execution_options.count_code) --------------------------- */
/* c may hold code of the account in force. */
void rt_code_watch(tiga_context *ctx, tiga_cache *c);
void rt_code_forget(tiga_execution *e); /* the caches: at the end of the scope */
bool rt_code_reclaim(tiga_execution *e); /* one piece of code that only a cache holds; false: there is none */

/* ---- rt_shared.c: one budget for many processes, in shared memory ---------------------------------------------------- */
/* Joins or makes the segment of that name.  E_RANGE other budgets. */
tiga_status rt_shared_open(tiga_context *ctx, const char *name, const int64_t *budget, rt_shared **out);
void rt_shared_close(rt_shared *s); /* gives back what this process held; the last one removes the segment */
bool rt_shared_take(rt_shared *s, int32_t tier, int64_t n_bytes); /* false: over the budget */
void rt_shared_give(rt_shared *s, int32_t tier, int64_t n_bytes);
int64_t rt_shared_live(rt_shared *s, int32_t tier);

/* ---- rt_memory.c: aligned memory, huge pages, and what the machine can give ------------------------------------- */
void *rt_mem_new(int64_t n_bytes, bool zero); /* 64-byte aligned, 2 MiB aligned and on huge pages when large */
void rt_mem_free(void *p);
int64_t rt_mem_available(void); /* bytes that can be had without swapping; INT64_MAX when not known */
/* count * size bytes; E_MEMORY in words (with `what`) on overflow, when the machine has less, or when refused. */
tiga_status rt_mem_take(tiga_context *ctx, int64_t count, int64_t size, bool zero, const char *what, void **out);

/* ---- rt_parallel.c: the only file that starts threads for computing; for files see hr_transfer.c, hr_worker.c ------ */
typedef void (*rt_task_fn)(void *arg, int64_t task, int thread);
/* Calls fn for tasks 0 .. n_tasks-1 on at most max_threads threads (0: those of the context), in about rising order.
 * Works in a child of fork too.  false: interrupted, some tasks did not run. */
bool rt_parallel_for(tiga_context *ctx, int max_threads, int64_t n_tasks, rt_task_fn fn, void *arg);
void rt_pool_free(rt_pool *p); /* NULL is fine */

void rt_atomic_min(_Atomic int64_t *place, int64_t value);
/* Cuts 0 .. n into tasks of about `grain`; task t is begin .. end. */
int64_t rt_n_tasks(int64_t n, int64_t grain);
void rt_task_range(int64_t n, int64_t n_tasks, int64_t task, int64_t *begin, int64_t *end);

/* ---- rt_array.c, rt_npy.c ------------------------------------------------------------------------------------------ */
bool rt_dtype_valid(int32_t dtype);
/* false: negative size, bad rank, or more than INT64_MAX bytes */
bool rt_shape_bytes(int32_t dtype, int32_t rank, const int64_t *shape, int64_t *out_bytes);
/* tiga_array_convert from inside a call, of a valid array and between types that convert. */
tiga_status rt_array_convert(tiga_context *ctx, const tiga_array *a, int32_t dtype, tiga_array *out);
void rt_shape_text(base_str *s, int32_t dtype, int32_t rank, const int64_t *shape); /* "f32[5, 8]" */

typedef struct rt_npy_header {
    int32_t dtype; /* -1: text ("|S3", "<U3"), width in `text_width` */
    int32_t rank;
    int64_t shape[7];
    bool fortran;
    bool is_uint16; /* the bits of bf16 in an array of ours, counts in files of others */
    int64_t text_width, unit_bytes; /* bytes of one element */
    int64_t data_at; /* offset of the data in the file */
} rt_npy_header;
/* Reads the header at the beginning of `bytes`.  `name` goes into the error. */
tiga_status rt_npy_parse(tiga_context *ctx, const char *name, const char *bytes, int64_t n, rt_npy_header *out);
/* Data of a parsed header into an owned array in C order, bools made 0 or 1. */
tiga_status rt_npy_data(tiga_context *ctx, const char *name, const char *bytes, int64_t n, const rt_npy_header *h,
                        tiga_array *out);
bool rt_npy_write_header(base_str *s, int32_t dtype, int32_t rank, const int64_t *shape); /* false: out of memory */

/* ---- rt_graph.c, rt_sort.c, rt_transpose.c, rt_stats.c ------------------------------------------------------------ */
struct tiga_graph {
    tiga_csr csr;
    void *own_offsets, *own_sources; /* NULL: borrowed */
    int64_t *order; /* input position of each edge; NULL: given as rows */
    int64_t transposed_bits; /* 32 or 64: of sources and edge_of, whether they have been made or not */
    atomic_int refs;
    pthread_mutex_t lock; /* guards what follows */
    bool has_transposed, has_stats;
    tiga_csr transposed;
    void *edge_of; /* as wide as transposed.sources */
    tiga_graph_stats stats;
};
/* Takes offsets and sources (rt_mem_new) into a new graph; frees them on failure. No validation. */
tiga_status rt_graph_take(tiga_context *ctx, tiga_csr csr, void *offsets, void *sources, tiga_graph **out);
/* Copies the arrays of a valid relation, sources as narrow as they can be. */
tiga_status rt_graph_copy(tiga_context *ctx, const tiga_csr *from, tiga_graph **out);
/* Who says what is wrong: `where` is the beginning of every message, "tiga_graph_from_csr" or a path. */
tiga_status rt_check_offsets(tiga_context *ctx, const char *where, const tiga_csr *csr);
tiga_status rt_check_sources(tiga_context *ctx, const char *where, const tiga_csr *csr);
/* No graph has more nodes: sums and byte counts stay far from overflow. */
#define RT_MAX_NODES ((int64_t)1 << 56)
/* 32 when every row number fits into int32_t. */
static inline int64_t rt_bits_for(int64_t n) { return n <= INT32_MAX ? 32 : 64; }

/* A list of edges, as a file has it; `values` are 8 bytes each, or NULL. */
typedef struct rt_edges {
    int64_t n, n_dst, n_src;
    int64_t *dst, *src; /* rt_mem_new */
    void *values;
    int32_t value_dtype; /* TIGA_I64 or TIGA_F64 */
} rt_edges;
void rt_edges_fini(rt_edges *e);
/* Stable sort by destination.  Ids have been checked.  values: see tiga_graph_read; order kept if keep_order. */
tiga_status rt_graph_from_edges(tiga_context *ctx, const char *where, const rt_edges *e, bool keep_order,
                                tiga_graph **out, tiga_array *values);

typedef struct rt_sort {
    int64_t n, n_keys;
    const void *keys; /* int32_t or int64_t [n], each 0 <= key < n_keys */
    int64_t key_bits;
    const void *payload; /* int32_t or int64_t [n]; goes to `out_payload` narrowed or widened */
    int64_t payload_bits, out_bits;
    const int64_t *payload8; /* NULL, or 8 bytes per element, goes to out_payload8 */
    int64_t *offsets; /* [n_keys + 1] */
    void *out_payload;
    int64_t *out_payload8;
    void *order; /* NULL, or the input position of each output place, int32_t or int64_t */
    int64_t order_bits;
} rt_sort;
tiga_status rt_sort_run(tiga_context *ctx, const rt_sort *s); /* stable counting sort, parallel */

/* ---- rt_scan.c: numbers from text that ends with NUL ---------------------------------------------------------------- */
typedef enum rt_scan_result { RT_SCAN_OK, RT_SCAN_NONE, RT_SCAN_NEGATIVE, RT_SCAN_BIG } rt_scan_result;
/* *p moves past the digits on success only. */
rt_scan_result rt_scan_id(const char **p, int64_t *out); /* digits only */
rt_scan_result rt_scan_i64(const char **p, int64_t *out); /* [+-]digits */
rt_scan_result
rt_scan_f64(const char **p,
            double *out); /* correctly rounded; BIG: digits that round to infinity; the words inf and nan are fine */

/* ---- rt_text.c: a whole file in memory, and errors that point into it ------------------------------------------------ */
typedef struct rt_text {
    char *data; /* NUL-terminated */
    int64_t len;
    const char *name; /* as the user wrote it */
} rt_text;
typedef struct rt_progress {
    const tiga_graph_file_options *options; /* NULL: nobody listens */
    double base, span; /* the present phase */
} rt_progress;
void rt_progress_report(const rt_progress *p, double fraction);
static inline bool rt_keeps_order(const rt_progress *p) { return p && p->options && p->options->keep_edge_order; }
tiga_status rt_text_read(tiga_context *ctx, const char *path, const rt_progress *progress, rt_text *out);
void rt_text_fini(rt_text *t);
bool rt_text_is_gzip(const rt_text *t);
tiga_status rt_text_gunzip(tiga_context *ctx, rt_text *t); /* replaces the contents */
/* `name:line: what: 'token'`; at: offset of the offending token.  The token may be empty. */
tiga_status rt_text_fail(tiga_context *ctx, tiga_status status, const rt_text *t, int64_t at, const char *fmt, ...)
    BASE_PRINTF(5, 6);

/* ---- rt_lines.c: lines of edges, parsed by many threads ---------------------------------------------------------------- */
typedef enum rt_values { RT_VALUES_NONE, RT_VALUES_I64, RT_VALUES_F64, RT_VALUES_GUESS } rt_values;
typedef struct rt_lines {
    const rt_text *text;
    int64_t begin; /* offset of the first line of edges */
    const char *name_a, *name_b; /* what the columns are called in messages: "row", "column" */
    rt_values values; /* GUESS: whole numbers unless one is not */
    int64_t first_id; /* 0 or 1 */
    int64_t limit_a, limit_b; /* ids are first_id .. limit; INT64_MAX: no limit */
    bool commas; /* columns may be separated by a comma */
    bool zero_diagonal; /* skew-symmetric: a value on the diagonal is an error */
} rt_lines;
typedef struct rt_columns {
    int64_t n, *a, *b; /* ids from 0 */
    void *values; /* 8 bytes each, or NULL */
    int32_t value_dtype;
    int64_t max_id, max_at; /* largest id of both columns, and where it stands; -1, 0 without edges */
} rt_columns;
tiga_status rt_lines_parse(tiga_context *ctx, const rt_lines *l, const rt_progress *progress, rt_columns *out);
void rt_columns_fini(rt_columns *c);
/* Offset of line of edges number n (from 0), for messages. */
int64_t rt_lines_find(const rt_lines *l, int64_t n);

/* ---- rt_mtx.c, rt_edgelist.c, rt_npz.c, rt_graph_file.c ---------------------------------------------------------------- */
tiga_status rt_mtx_parse(tiga_context *ctx, const rt_text *t, const rt_progress *p, tiga_graph **out,
                         tiga_array *values);
tiga_status rt_edgelist_parse(tiga_context *ctx, const rt_text *t, const rt_progress *p, tiga_graph **out,
                              tiga_array *values);
tiga_status rt_npz_parse(tiga_context *ctx, const rt_text *t, tiga_graph **out, tiga_array *values);
/* Members that tiga_graph_write_snapshot adds to SciPy's. */
#define RT_NPZ_OFFSETS "tiga_transposed_indptr.npy"
#define RT_NPZ_SOURCES "tiga_transposed_indices.npy"
#define RT_NPZ_EDGE_OF "tiga_transposed_edges.npy"
#define RT_NPZ_FIGURES "tiga_statistics.npy"
/* Whether the machine can hold that many rows; if not, points to the number in the file that says so. */
tiga_status rt_rows_fit(tiga_context *ctx, const rt_text *t, int64_t at, int64_t n_rows);
/* What tiga_graph_read does, from bytes: `name` stands for the path in messages and decides by its ending. */
tiga_status rt_graph_parse(tiga_context *ctx, const char *name, const void *bytes, int64_t n, tiga_graph **out,
                           tiga_array *values);

/* ---- rt_write.c: all or nothing, see base_file_write_parts -------------------------------------------------------------- */
tiga_status rt_file_write(tiga_context *ctx, const char *path, const base_part *parts, int n_parts);

/* ---- rt_zip.c: archives of stored members ---------------------------------------------------------------------------------- */
enum { RT_ZIP_MEMBERS = 9 };
typedef struct rt_zip_member {
    const char *name;
    base_str head; /* `head` and then `n` bytes of `data` */
    const void *data;
    int64_t n;
} rt_zip_member;
/* n <= RT_ZIP_MEMBERS.  limit: what is as large is written as zip64; 0: 2^32 - 1, as it must be (less in tests). */
tiga_status rt_zip_write(tiga_context *ctx, const char *path, const rt_zip_member *members, int n, int64_t limit);

/* ---- rt_transpose.c --------------------------------------------------------------------------------------------------------- */
/* tiga_graph_transposed from inside a call: an interruption that came meanwhile is kept.  One more of *built (may be
 * NULL) when the relation had to be built. */
tiga_status rt_graph_transposed(tiga_context *ctx, tiga_graph *g, const tiga_csr **out, const void **edge_of,
                                int64_t *built);

/* ---- rt_stats.c -------------------------------------------------------------------------------------------------------------- */
tiga_status rt_graph_stats(tiga_context *ctx, tiga_graph *g, tiga_graph_stats *out); /* from inside a call */
/* What the offsets alone tell, into a fresh *out: sizes, degrees. */
tiga_status rt_stats_of_rows(tiga_context *ctx, const char *where, const tiga_csr *csr, tiga_graph_stats *out);

/* ---- rt_snapshot.c ----------------------------------------------------------------------------------------------------------- */
enum { RT_FIGURES = 4 + 64 };
typedef struct rt_snapshot { /* what a file says about a graph; nothing is trusted but the lengths of the arrays */
    int64_t *offsets; /* [n_src + 1] */
    void *sources, *edge_of; /* [n_edges] each, of g->transposed_bits */
    const int64_t *figures; /* [RT_FIGURES] */
} rt_snapshot;
/* Compares all of it with g, which nobody else uses yet, and gives offsets, sources and edge_of (rt_mem_new) to g; on
 * failure they stay the caller's.  `where` begins the message. */
tiga_status rt_snapshot_adopt(tiga_context *ctx, const char *where, tiga_graph *g, const rt_snapshot *s);
void rt_snapshot_figures(const tiga_graph_stats *stats, int64_t figures[RT_FIGURES]);

/* ---- rt_launch.c ------------------------------------------------------------------------------------------------------------ */
typedef struct rt_launch {
    const tiga_kernel_code *code;
    const tiga_csr *graph; /* NULL when the kernel walks no edges */
    const void *edge_of; /* when it is a transposed relation */
    int64_t n_rows;
    const int64_t *dims;
    void *const *buffers;
    int64_t output_bytes; /* how heavy the rows are, to decide whether threads are worth it */
    /* NULL, or what adds up the same rows: a unit of it needs what this launch does for the rows of that unit */
    const struct rt_launch *then;
} rt_launch;
bool rt_launch_can_follow(const rt_launch *l, const rt_launch *then);
tiga_status rt_launch_run(tiga_context *ctx, const rt_launch *l);

/* ---- rt_cpu.c, rt_module.c ---------------------------------------------------------------------------------------------------- */
typedef enum rt_cpu_answer { RT_CPU_HAS, RT_CPU_LACKS, RT_CPU_UNKNOWN } rt_cpu_answer;
rt_cpu_answer rt_cpu_feature(const char *name, size_t len); /* LLVM's name, without a sign */
tiga_status rt_cpu_check(tiga_context *ctx, const char *who, const char *features);

struct tiga_module {
    const tiga_module_info *info;
    void *handle; /* of dlopen, or NULL */
    void *owner; /* of code in memory, or NULL */
    void (*release)(void *owner);
    tiga_status (*rows)(void *owner, tiga_context *ctx, int source_bits, const tiga_module_info **out);
    atomic_int refs;
};

/* ---- rt_cache.c: the cache as users see it; rt_cache.h is what the compiler sees ---------------------------------------------- */
typedef struct rt_cache_entry rt_cache_entry;

struct tiga_cache {
    atomic_int refs;
    char *folder; /* absolute; "" for none */
    int64_t memory_limit, disk_limit;
    base_hash128 hash_mask; /* all ones; less in tests, so that keys collide */
    int64_t longest_wait_ns; /* for another process that compiles the same */

    pthread_mutex_t lock; /* guards what follows; held for lookups and bookkeeping only */
    pthread_cond_t settled; /* an entry is no longer being made */
    rt_cache_entry **buckets;
    size_t n_buckets, n_chained; /* a power of two; entries in the table, those being made included */
    rt_cache_entry *newest, *oldest; /* complete ones, by last use */
    tiga_cache_counters counters;
    int64_t disk_bytes, stored_since_scan; /* of the folder, as far as this process knows; -1: not looked yet */
    pid_t maker;
};
void rt_cache_count(tiga_cache *c, int64_t *counter); /* one more of c->counters */

/* ---- rt_cache_key.c: fields to bytes and back ------------------------------------------------------------------------------------ */
typedef struct rt_cache_key {
    base_hash128 hash;
    char *bytes; /* `small` when they fit: the usual lookup allocates nothing */
    size_t n_bytes;
    char small[4096];
} rt_cache_key;
bool rt_cache_key_init(rt_cache_key *k, const tiga_cache *c, const tiga_cache_field *fields,
                       size_t n); /* false: memory */
void rt_cache_key_fini(rt_cache_key *k);
bool rt_cache_key_equal(const rt_cache_key *k, const char *key, size_t n_bytes);
base_hash128 rt_cache_hash(const tiga_cache *c, const char *key, size_t n_bytes);
/* Fields that point into `key`, base_free'd by the caller; NULL: not a key, unless *no_memory. */
tiga_cache_field *rt_cache_key_split(const char *key, size_t n_bytes, size_t *n, bool *no_memory);

/* ---- rt_cache_memory.c: keys to objects, those being made included ------------------------------------------------------------------ */
typedef enum rt_cache_state {
    RT_CACHE_MAKING, /* a thread is at it; others wait */
    RT_CACHE_READY, /* object */
    RT_CACHE_WRONG, /* the program is wrong: message */
    RT_CACHE_LEFT /* whoever was making it gave up, for a reason of its own */
} rt_cache_state;

struct rt_cache_entry {
    base_hash128 hash;
    rt_cache_entry *chain, *newer, *older;
    int refs; /* the table's, the maker's, those of threads that wait; guarded by the lock */
    bool in_table, in_order;
    rt_cache_state state;
    pid_t maker;
    const rt_cache_ops *ops;
    void *object; /* a reference of the cache's own */
    char *message;
    size_t message_bytes;
    int64_t bytes; /* what it costs to keep */
    size_t key_bytes;
    char key[];
};
rt_cache_entry *rt_cache_entry_new(const rt_cache_key *k, const rt_cache_ops *ops); /* refs 1; NULL: out of memory */
/* With the lock held: */
rt_cache_entry *rt_cache_find(const tiga_cache *c, const rt_cache_key *k);
void rt_cache_insert(tiga_cache *c, rt_cache_entry *e); /* in the making */
void rt_cache_used(tiga_cache *c, rt_cache_entry *e); /* the last one used */
/* Takes entries out of table and order, the last used last, until `limit` bytes are left; *dropped collects those that
 * nobody needs any more. */
void rt_cache_shrink(tiga_cache *c, int64_t limit, rt_cache_entry **dropped);
void rt_cache_remove(tiga_cache *c, rt_cache_entry *e, rt_cache_entry **dropped);
void rt_cache_put(rt_cache_entry *e, rt_cache_entry **dropped); /* one reference less */
/* Without: */
void rt_cache_drop(rt_cache_entry *dropped); /* a list, through `chain` */
/* Takes the lock: the object used longest ago that nobody else holds and that the account has been charged for. */
bool rt_cache_evict_idle(tiga_cache *c, const void *account);

/* ---- rt_cache_file.c: one entry as a file ---------------------------------------------------------------------------------------------- */
enum { RT_CACHE_NAME = 33, RT_CACHE_FORMAT = 1 };

typedef struct rt_cache_file {
    bool failed; /* the payload is the message of E_PROGRAM */
    int64_t created;
    const char *key, *payload; /* point into `buffer`; payload: aligned to 16 */
    size_t key_bytes, payload_bytes;
    char *buffer; /* base_free */
} rt_cache_file;

typedef enum rt_cache_read {
    RT_CACHE_NONE,
    RT_CACHE_GOOD,
    RT_CACHE_BAD,
    RT_CACHE_NO_ACCESS,
    RT_CACHE_NO_MEMORY
} rt_cache_read;
/* BAD: whatever is not what we wrote, to the last bit.  A GOOD one that has not been used for a minute is marked used. */
rt_cache_read rt_cache_file_read(int folder, const char *name, rt_cache_file *out);
/* Header and key only, which the name vouches for when it is the hash of the key; no payload. */
rt_cache_read rt_cache_file_peek(int folder, const char *name, rt_cache_file *out);
bool rt_cache_file_write(int folder, const char *name, const rt_cache_file *file,
                         int64_t *n_bytes); /* false: errno; nothing is left behind */

/* ---- rt_cache_folder.c: the folder ---------------------------------------------------------------------------------------------------------- */
char *rt_cache_folder_choose(const char *wanted, bool *no_memory); /* absolute, base_free; "" when there is none */
/* A descriptor, or -1 with errno and *why in words.  make: create it and its parents when it is not there. */
int rt_cache_folder_open(const tiga_cache *c, bool make, const char **why);
bool rt_cache_is_safe(const struct stat *st, const char **why); /* nobody else can write to it */
typedef enum rt_cache_lock_result { RT_CACHE_LOCKED, RT_CACHE_NO_LOCK, RT_CACHE_LOCK_INTERRUPTED } rt_cache_lock_result;
/* One holder among all processes.  *waited: another had it. */
rt_cache_lock_result rt_cache_lock(const tiga_cache *c, tiga_context *ctx, int folder, const char *name, int *fd,
                                   bool *waited);
void rt_cache_unlock(int folder, const char *name, int fd);
/* After `n_bytes` were stored as `name`: looks at the folder when it is time to, and removes what was not used for longest. */
void rt_cache_evict(tiga_cache *c, int folder, const char *name, int64_t n_bytes);

typedef enum rt_cache_what { RT_CACHE_ENTRY, RT_CACHE_LOCK, RT_CACHE_TEMPORARY } rt_cache_what;
typedef struct rt_cache_item {
    char name[96];
    rt_cache_what what;
    int64_t used_ns, bytes;
} rt_cache_item;
/* What of the folder is ours, base_free'd by the caller.  false: errno. */
bool rt_cache_scan(int folder, rt_cache_item **items, size_t *n);
/* Removes temporary files and locks that nobody holds and that are older than `age_ns`; the number removed. */
int64_t rt_cache_sweep(int folder, const rt_cache_item *items, size_t n, int64_t age_ns);

#endif
