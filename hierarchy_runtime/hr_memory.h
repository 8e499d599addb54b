/* hr_memory.h: the memory half of the folder; include/tiga/memory.h says what it promises.
 *
 *      tiga_buffer (hr_buffer.c: owners, pins)       tiga_hierarchy (hr_hierarchy.c: name@version in a tier)
 *         |      \  hr_residency.c: home, read-ahead     |
 *         |       \ hr_evict.c: out, LRU                |
 *         |        \ hr_copies.c: written ahead         |
 *         |    tiga_snapshot (hr_snapshot*.c)           |
 *         v          v                                  v
 *      hr_block (hr_block.c): bytes of a tier, charged before they exist  ----> rt_account.c, rt_shared.c
 *         |
 *      hr_transfer.c: pieces of 1 MiB, a checksum each, on several threads when it pays
 *         |
 *      hr_spill.c: one unnamed file an account, and which parts of it are free
 *
 * hr_memory is what an account has beside its figures.  Its lock guards the states of all its buffers; no bytes are moved
 * while it is held: a buffer that is `moving` belongs to the thread that moves it.  What is left of a budget is asked for
 * under it: with `shared` that waits for the lock of the segment, and reads /proc to see who is alive. */
#ifndef TIGA_HR_MEMORY_H
#define TIGA_HR_MEMORY_H

#include "runtime/runtime.h"

enum { HR_PAGE = 1 << 20, HR_UNIT = 4096 };
static inline int64_t hr_pages(int64_t n_bytes) { return n_bytes / HR_PAGE + (n_bytes % HR_PAGE != 0); }
static inline int64_t hr_page_bytes(int64_t n_bytes, int64_t page) {
    int64_t left = n_bytes - page * HR_PAGE;
    return left < HR_PAGE ? left : HR_PAGE;
}
static inline uint64_t hr_checksum(const void *bytes, int64_t n) { return base_hash_bytes(bytes, (size_t)n).lo; }

/* "PATH: cannot WHAT: " errno */
tiga_status hr_fail_errno(tiga_context *ctx, tiga_status status, const char *path, const char *what);

/* ---- hr_options.c ---- */
int64_t hr_memory_left(const char *root); /* below the limits of cgroup and machine; root: "" or a folder in tests */

/* ---- hr_worker.c: jobs in order, on one thread that lives while there are some ---- */
typedef struct hr_job {
    struct hr_job *next;
    void (*run)(struct hr_job *job); /* and frees it */
} hr_job;
typedef struct hr_worker {
    pthread_mutex_t lock;
    hr_job *first, **last;
    bool running;
    pid_t pid; /* of the process it runs in */
} hr_worker;
void hr_worker_init(hr_worker *w);
void hr_worker_fini(hr_worker *w);
/* Runs the job later; at once, on this thread, when no thread can be had.  Each job keeps the account alive. */
void hr_worker_add(tiga_execution *e, hr_worker *w, hr_job *job);

/* ---- hr_spill.c: the file of an account ---- */
typedef struct hr_extent {
    int64_t at, n;
    int64_t kept; /* if it is free: so many bytes of it may still have blocks of the disk */
} hr_extent;
typedef struct hr_spill {
    hr_job job; /* first: gives blocks back */
    bool trimming; /* the job is on its way */
    pthread_mutex_t lock;
    int fd;      /* -1: not opened yet */
    pid_t pid;   /* that opened it: a child of fork opens a file of its own */
    bool direct; /* O_DIRECT: offsets, lengths and addresses are multiples of HR_UNIT */
    int64_t end; /* of the file */
    int64_t n_live, live_bytes; /* extents given out */
    int64_t kept_bytes; /* of all free ones together */
    hr_extent *free; /* by place, never adjacent */
    int64_t n_free, cap_free;
} hr_spill;
void hr_spill_init(hr_spill *s);
void hr_spill_fini(hr_spill *s);
struct hr_block;
/* Room for b->bytes, rounded up to HR_UNIT: spill, fd, direct, pid and at of b. */
tiga_status hr_spill_take(tiga_context *ctx, hr_spill *s, const char *folder, struct hr_block *b);
void hr_spill_give(const struct hr_block *b); /* and the disk's space back */

/* ---- hr_block.c: physical bytes ---- */
typedef struct hr_block {
    tiga_execution *account; /* NULL: no block */
    int32_t tier;
    bool uncharged;
    int64_t bytes;
    void *data;      /* in memory; NULL on disk */
    int64_t room;    /* host: of the memory, >= bytes */
    hr_spill *spill; /* on disk */
    int fd; /* of the file as it was then */
    bool direct;
    pid_t pid; /* the process that took it; a child of fork reads it where it is, and gives nothing back */
    int64_t at;
    uint64_t *sums; /* [hr_pages(bytes)]: of what was written */
} hr_block;
/* CHARGED: it has been, with rt_try_charge.  UNCHARGED: it is not to be, a copy (hr_copies.c). */
typedef enum hr_block_flag { HR_ZERO = 1, HR_CHARGED = 2, HR_UNCHARGED = 4 } hr_block_flag;
/* On failure nothing is charged, CHARGED or not.  Retains the account. */
tiga_status hr_block_new(tiga_context *ctx, tiga_execution *e, int32_t tier, int64_t bytes, int flags, const char *what,
                         hr_block *out);
void hr_block_fini(hr_block *b); /* no block is fine.  Memory may be kept */
/* The same of a value that left memory: nothing is kept, but the memory of a block on the host goes to who is allocating in this account, if it is worth it: pages that
 * are mapped already cost half the time of a restore.  Without the lock. */
void hr_block_hand_over(hr_block *b);

/* In between it does.  hr_block_new does this for itself. */
struct hr_memory;
void hr_allocating_begin(struct hr_memory *m);
void hr_allocating_end(struct hr_memory *m);

/* ---- hr_kept.c: host memory that is kept for reuse ---- */
typedef struct hr_kept {
    pthread_mutex_t lock;
    struct hr_kept_block *first;
    _Atomic int64_t bytes; /* of all */
} hr_kept;
/* For charged bytes, *room of them; NULL: none fits.  Then what is kept goes as far as it and what is live are over budget. */
void *hr_kept_take(struct hr_memory *m, int64_t bytes, int64_t *room);
/* Memory of rt_mem_new whose `charged` bytes are about to be discharged; false: it is not kept. */
bool hr_kept_give(struct hr_memory *m, void *data, int64_t room, int64_t charged);
void hr_kept_drop(hr_kept *k);

/* ---- hr_transfer.c ---- */
/* All bytes of `from` to `to`, of equal size.  E_FILE, E_FORMAT (a checksum), E_MEMORY. */
tiga_status hr_transfer(tiga_context *ctx, const hr_block *from, hr_block *to, const char *what);
typedef struct hr_manner {
    int most_threads; /* 0: as many as pay */
    const atomic_bool *stop; /* or NULL: it fails soon after this is true.  Between memory and disk only */
} hr_manner;
tiga_status hr_transfer_in(tiga_context *ctx, const hr_block *from, hr_block *to, const char *what, const hr_manner *m);
typedef struct hr_reading { /* of a part of any file into memory */
    int fd;
    int64_t at;
    const uint64_t *sums; /* NULL: not checked */
    const char *path;
} hr_reading;
tiga_status hr_transfer_read(tiga_context *ctx, const hr_reading *r, void *to, int64_t n_bytes, const char *what);
typedef struct hr_writing { /* to a part of any file */
    int fd; /* O_DIRECT; `at` is a multiple of HR_UNIT, and the last unit is filled with zeros */
    int64_t at;
    uint64_t *sums;
    const char *path;
} hr_writing;
tiga_status hr_transfer_write(tiga_context *ctx, const hr_writing *w, const void *from, int64_t n_bytes,
                              const char *what);

/* ---- hr_copies.c: values that are in memory and on disk; guarded by hr_memory.lock ---- */
enum { HR_COPY_FROM = 1 << 16 }; /* bytes: smaller values are written when they must go */
typedef struct hr_copies {
    hr_job job; /* first: writes the oldest idle values ahead */
    bool running; /* the job is on its way, in process `pid` */
    pid_t pid;
    int64_t from; /* HR_COPY_FROM; less in tests */
    int64_t bytes; /* of all, those being written included */
    int64_t idle_clean[TIGA_TIERS]; /* bytes of idle buffers that could leave without writing */
    int64_t credit; /* bytes that may be written ahead: twice what was evicted */
    tiga_buffer *last; /* made last */
    tiga_buffer *current; /* being written */
} hr_copies;

/* ---- hr_scope.c: scopes, and what an account has beside its figures ---- */
typedef struct hr_memory {
    rt_room room; /* first */
    tiga_execution *account; /* which owns this */
    pthread_mutex_t lock;
    pthread_cond_t moved; /* some buffer has ended moving, or is pinned no more */
    tiga_buffer *oldest, *newest; /* idle and resident: by last use */
    int64_t idle_bytes[TIGA_TIERS];
    int64_t n_moving_out;
    int n_allocating; /* that may evict */
    void *spare; /* memory of a value just evicted; NULL when nobody allocates */
    int64_t spare_bytes;
    int64_t evictions, restores, spills;
    int64_t bytes_written, bytes_read; /* of the spill file */
    hr_copies copies;
    hr_kept kept;
    hr_spill spill;
    hr_worker worker; /* reads ahead, and transfers of hierarchies */
    hr_worker writer; /* what nobody waits for */
    struct hr_memory *next, *before; /* of all in the process, for hr_fork.c */
} hr_memory;
hr_memory *hr_memory_of(tiga_context *ctx, tiga_execution *e); /* NULL: E_MEMORY */
hr_memory *hr_memory_if(tiga_execution *e); /* NULL: nobody has asked for it yet */
const char *hr_spill_folder(const tiga_execution *e);

/* ---- hr_fork.c: from when it is whole until it is not any more ---- */
void hr_fork_add(hr_memory *m);
void hr_fork_remove(hr_memory *m);

/* ---- hr_buffer.c ---- */
struct tiga_buffer {
    tiga_execution *account;
    hr_memory *memory;
    atomic_int refs;
    char *name; /* or NULL */
    int32_t tier;
    int64_t bytes;
    /* guarded by memory->lock */
    int64_t version;
    hr_block here, away;
    tiga_snapshot *file; /* the value is entry `entry` of it */
    int entry;
    hr_block copy; /* of what is `here`, on disk, uncharged */
    tiga_buffer *copied_before, *copied_after;
    bool copying; /* by the job, in process `copier`: it may be read, and does not move */
    pid_t copier;
    atomic_bool stop_copying;
    bool copy_failed; /* not again until it is written */
    bool moving;
    pid_t mover; /* the process that moves it */
    bool was_home; /* and has left since: coming back is a restore */
    bool leave; /* spill when the last pin goes */
    bool asked; /* whoever has it spilled it: nothing of that stays on disk when it comes home */
    tiga_pin *pins;
    int n_pins;
    bool idle; /* in the list */
    bool counted_clean; /* in idle_clean */
    tiga_buffer *older, *newer;
};
const char *hr_buffer_text(const tiga_buffer *b); /* for messages */
/* Without a place for its bytes; the account and s are retained. */
tiga_status hr_buffer_make(tiga_context *ctx, const char *name, int32_t tier, int64_t bytes, tiga_buffer **out);

/* ---- hr_residency.c; the lock of b->memory is held on entry and at return, and given up in between ---- */
void hr_idle_add(tiga_buffer *b); /* as the one used last */
void hr_idle_add_oldest(tiga_buffer *b); /* after an eviction that failed: it is still the one used longest ago */
void hr_idle_remove(tiga_buffer *b);
bool hr_is_home(const tiga_buffer *b);
void hr_begin_moving(tiga_buffer *b);
void hr_end_moving(tiga_buffer *b);
/* b is not moving. */
tiga_status hr_bring_home(tiga_context *ctx, tiga_buffer *b);

/* ---- hr_evict.c; as above.  b is neither moving nor copying ---- */
/* Evicts the oldest ones if that makes room for n_bytes and none of them has to be written; otherwise nothing. */
void hr_drop_clean(hr_memory *m, int32_t tier, int64_t n_bytes);
tiga_status hr_move_out(tiga_context *ctx, tiga_buffer *b, bool evicted);
/* Without the lock. */
rt_room_answer hr_make_room(rt_room *room, tiga_context *ctx, int32_t tier, int64_t n_bytes, tiga_status *status);

/* ---- hr_copies.c ---- */
void hr_copies_init(hr_memory *m);
bool hr_is_clean(const tiga_buffer *b); /* it can leave without writing.  With the lock held, as what follows */
bool hr_is_copying(tiga_buffer *b);
void hr_copy_stop(tiga_buffer *b); /* returns when it is not copying; the lock is given up meanwhile */
hr_block
hr_copy_take(tiga_buffer *b); /* for the caller to hr_block_fini without the lock, or to give back; none is fine */
void hr_copy_give(tiga_buffer *b, hr_block copy); /* b has none */
bool hr_copies_are_kept(const tiga_buffer *b, const hr_block *away); /* whether this stays as a copy */
bool hr_copies_fit(const hr_memory *m, int64_t more); /* into the disk's budget, beside what is live */
void hr_copies_evicted(hr_memory *m, int64_t n_bytes);
void hr_memory_unlock(hr_memory *m); /* and sees to it that values are written ahead */
/* Without the lock: as many as live bytes need for the disk's budget to hold; all: for the disk.  false: none were left. */
bool hr_copies_give_way(hr_memory *m, bool all);

/* ---- hr_away.c: reading a buffer where it lies ---- */
bool hr_away_begin(tiga_buffer *b); /* false: it is at home.  Waits for who moves it */
/* From the beginning of a page, n_bytes of it and of those behind it: whole pages, but for the last one of the buffer. */
tiga_status hr_away_read(tiga_context *ctx, const tiga_buffer *b, int64_t page, int64_t n_bytes, void *to);
void hr_away_end(tiga_buffer *b);

/* ---- hr_safetensors.c: the header of a snapshot, both ways ---- */
typedef struct hr_entry {
    char *name;
    int32_t dtype; /* -1: one that Tiga does not have, which `type` names */
    int32_t rank;
    int64_t shape[7];
    int64_t at, bytes; /* in the file */
    uint64_t *sums; /* of its pages, in `all_sums`; NULL: the file has none */
    char type[16];
} hr_entry;
struct tiga_snapshot { /* hr_snapshot.c */
    atomic_int refs;
    int fd;
    char *path;
    int n;
    hr_entry *entries; /* by place */
    uint64_t *all_sums;
};
/* From `text`, the n bytes after the length; fills n, entries and sums. */
tiga_status hr_safetensors_parse(tiga_context *ctx, tiga_snapshot *s, const char *text, int64_t n, int64_t file_bytes);
typedef struct hr_layout { /* of a file to be written */
    const tiga_tensor_view *tensors;
    int n;
    int *order; /* [n]: by place */
    int64_t *bytes; /* [n] */
    int64_t *at; /* [n]: from the beginning of the data */
    int64_t n_pages; /* of all */
} hr_layout;
/* Length and header, with zeros for checksums.  E_ARGUMENT a name or a rank, E_MEMORY. */
tiga_status hr_safetensors_header(tiga_context *ctx, const hr_layout *l, base_str *out);
/* Puts the checksums in: [n_pages], by place. */
void hr_safetensors_seal(base_str *header, const uint64_t *sums, int64_t n_pages);

/* ---- hr_snapshot.c: reading; hr_save.c: writing; hr_store.c: by name ---- */
/* tiga_save, where nothing is. *taken, with nothing said: there is something. */
tiga_status hr_save_new(tiga_context *ctx, const char *path, const tiga_tensor_view *tensor, bool *taken);
/* n_bytes of an entry from the beginning of a page: whole pages, but for the last one. */
tiga_status hr_snapshot_read(tiga_context *ctx, const tiga_snapshot *s, int entry, int64_t page, int64_t n_bytes,
                             void *to, const char *what);
tiga_status hr_snapshot_pull(tiga_context *ctx, const tiga_snapshot *s, int entry, void *to, const char *what);

#endif
