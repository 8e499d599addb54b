/* base: what every other folder stands on.  Memory (arenas, growing arrays), byte strings, 128-bit hashing,
 * diagnostics, whole files, and failure injection.  Knows nothing of graphs, IR or devices.
 *
 * Threads: no global mutable state except the failure-injection counters, which are atomic; every other object
 * belongs to one thread at a time. */
#ifndef TIGA_BASE_H
#define TIGA_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BASE_PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))
#define BASE_NORETURN __attribute__((noreturn))
#else
#define BASE_PRINTF(fmt_at, args_at)
#define BASE_NORETURN
#endif

/* ---- bug.c: we are wrong.  Prints where and what, then aborts.  Never for bad input. --------------------------- */
BASE_NORETURN void base_bug_at(const char *file, int line, const char *fmt, ...) BASE_PRINTF(3, 4);
#define BASE_BUG(...) base_bug_at(__FILE__, __LINE__, __VA_ARGS__)
#define BASE_CHECK(cond) ((cond) ? (void)0 : base_bug_at(__FILE__, __LINE__, "check failed: %s", #cond))

/* ---- memory.c: allocation that can be made to fail, and arenas. ------------------------------------------------ */
/* Every allocation of the project goes through these; NULL on failure (or when the injected count is reached). */
void *base_alloc(size_t n_bytes);             /* uninitialised; n_bytes 0 gives a valid pointer */
void *base_alloc_zero(size_t n_bytes);
void *base_realloc(void *p, size_t n_bytes);
void base_free(void *p);
bool base_mul_size(size_t a, size_t b, size_t *out); /* false on overflow */

/* An arena owns its blocks and frees them at once.  The compiler allocates only from arenas.  Out of memory inside an
 * arena jumps to `arena->oom` when set (see base_arena_catch), so passes need no NULL checks; without it, BASE_BUG. */
typedef struct base_arena base_arena;
base_arena *base_arena_new(void);             /* NULL when out of memory */
void base_arena_free(base_arena *a);          /* NULL is fine */
void *base_arena_alloc(base_arena *a, size_t n_bytes);      /* zeroed, aligned to 16 */
void *base_arena_grow(base_arena *a, void *old, size_t old_bytes, size_t new_bytes);
char *base_arena_strdup(base_arena *a, const char *s);
char *base_arena_strndup(base_arena *a, const char *s, size_t n);
char *base_arena_printf(base_arena *a, const char *fmt, ...) BASE_PRINTF(2, 3);
size_t base_arena_bytes(const base_arena *a);
void **base_arena_oom_slot(base_arena *a);    /* holds a jmp_buf * or NULL; see base_arena_catch */
/* Runs fn(ctx); false when the arena ran out of memory on the way.  May be nested; fn must own no heap memory that
 * nothing else points to, because it is left by longjmp. */
bool base_arena_catch(base_arena *a, void (*fn)(void *ctx), void *ctx);
#define base_arena_new_array(a, type, n) ((type *)base_arena_alloc((a), sizeof(type) * (size_t)(n)))

/* A growing array in an arena: `type *items; size_t n, cap;` inside any struct. */
#define base_push(arena, items, n, cap, value)                                                                         \
    do {                                                                                                               \
        if ((n) == (cap)) {                                                                                            \
            size_t base_new_cap_ = (cap) ? (size_t)(cap) * 2 : 8;                                                      \
            (items) =                                                                                                  \
                base_arena_grow((arena), (items), sizeof *(items) * (size_t)(n), sizeof *(items) * base_new_cap_);     \
            (cap) = base_new_cap_;                                                                                     \
        }                                                                                                              \
        (items)[(n)++] = (value);                                                                                      \
    } while (0)

/* ---- str.c: a growing byte string, heap-allocated, always NUL-terminated. -------------------------------------- */
typedef struct base_str {
    char *data; /* NULL while empty */
    size_t len, cap;
    bool failed; /* an allocation failed: contents are incomplete */
} base_str;
void base_str_fini(base_str *s);
void base_str_add(base_str *s, const char *text);
void base_str_add_n(base_str *s, const char *bytes, size_t n);
void base_str_addf(base_str *s, const char *fmt, ...) BASE_PRINTF(2, 3);
void base_str_vaddf(base_str *s, const char *fmt, va_list ap);
const char *base_str_text(const base_str *s); /* "" while empty */
/* A string that is freed with the arena, also when the arena is left by longjmp; and whether any of them is incomplete. */
base_str *base_arena_str(base_arena *a);
bool base_arena_str_failed(const base_arena *a);
/* Shortest decimal text that reads back as the same value; "inf", "-inf", "nan". */
void base_str_add_f64(base_str *s, double v);
void base_str_add_f32(base_str *s, float v);
/* All n bytes must be one number as strtod and strtof read it, with '.' in every locale; no blanks. */
bool base_parse_f64(const char *text, size_t n, double *out);
bool base_parse_f32(const char *text, size_t n, float *out);
/* Edit distance (of the first 63 bytes), for "did you mean". */
size_t base_edit_distance(const char *a, const char *b);

/* memcpy that takes a NULL for nothing. */
static inline void base_copy(void *to, const void *from, size_t n_bytes) {
    if (n_bytes)
        __builtin_memcpy(to, from, n_bytes);
}

/* ---- hash.c: xxh3-128 over length-prefixed fields. ------------------------------------------------------------- */
typedef struct base_hash128 {
    uint64_t lo, hi;
} base_hash128;
typedef struct base_hasher { /* the caller's memory: hashing allocates nothing and cannot fail */
    unsigned char state[640] __attribute__((aligned(64)));
} base_hasher;
void base_hasher_init(base_hasher *h);
void base_hasher_field(base_hasher *h, const void *bytes, size_t n); /* adds the length, then the bytes */
void base_hasher_add(base_hasher *h, const void *bytes, size_t n); /* the bytes alone */
base_hash128 base_hasher_digest(const base_hasher *h);
base_hash128 base_hash_bytes(const void *bytes, size_t n);
void base_hash_hex(base_hash128 h, char out[33]);
uint64_t base_hash_name(const char *text, size_t n); /* FNV-1a: short names in tables in memory */

/* ---- seal.c: a checksum at the end of a file whose own format does not mind more bytes there (ELF). -------------- */
typedef enum base_seal { BASE_SEAL_NONE, BASE_SEAL_GOOD, BASE_SEAL_BROKEN } base_seal;
void base_seal_add(base_str *s); /* BASE_SEAL_BYTES more */
base_seal base_seal_check(const void *bytes, size_t n); /* n: of the whole file */
#define BASE_SEAL_BYTES 24

/* ---- diag.c: what is wrong with the user's program, collected and then rendered. ------------------------------- */
typedef struct base_span {
    uint32_t begin, end; /* byte offsets into the source text; begin == end marks a place */
} base_span;

typedef enum base_severity { BASE_ERROR, BASE_WARNING } base_severity;

typedef struct base_diag_note {
    base_span span;
    bool has_span;
    char *text;
} base_diag_note;

typedef struct base_diag {
    base_severity severity;
    const char *id; /* "E0207", static */
    base_span span;
    char *text; /* one line, no full stop */
    char *label; /* what stands after the caret; may be NULL */
    base_diag_note *notes;
    size_t n_notes, cap_notes;
} base_diag;

typedef struct base_diags {
    base_arena *arena;
    const char *file_name; /* as shown to the user */
    const char *source; /* NUL-terminated text the spans point into */
    base_diag **items;
    size_t n, cap;
    size_t n_errors;
} base_diags;

void base_diags_init(base_diags *d, base_arena *arena, const char *file_name, const char *source);
base_diag *base_diags_add(base_diags *d, base_severity severity, const char *id, base_span span, const char *fmt, ...)
    BASE_PRINTF(5, 6);
void base_diag_label(base_diags *d, base_diag *item, const char *fmt, ...) BASE_PRINTF(3, 4);
void base_diag_note_at(base_diags *d, base_diag *item, base_span span, const char *fmt, ...) BASE_PRINTF(4, 5);
void base_diag_note_text(base_diags *d, base_diag *item, const char *fmt, ...) BASE_PRINTF(3, 4);
void base_diags_sort(base_diags *d); /* by place, errors and warnings together; drops exact repeats */
/* Renders up to 20 errors with carets, in the form shown in docs/errors.md. */
void base_diags_render(const base_diags *d, bool color, base_str *out);
void base_span_line_col(const char *source, uint32_t offset, uint32_t *line, uint32_t *col); /* both from 1 */

/* ---- file.c: whole files.  `err` gets one line naming the path and the reason; false on failure. --------------- */
bool base_file_read(const char *path, base_str *out, base_str *err); /* "-" is standard input */
bool base_file_injected(void); /* before a system call of files: true, and errno is set, when it is to fail */
/* Before a read or a write of n bytes: how many it may be asked for, a multiple of `unit` or n; 0: errno, it fails. */
size_t base_file_allowed(size_t n, size_t unit);
bool base_file_write_all(int fd, const void *bytes,
                         size_t n); /* in pieces, so that tests can stop in the middle; errno */
bool base_file_fail(base_str *err, const char *path,
                    const char *what); /* "PATH: cannot WHAT: " errno, which stays; false */

/* ---- file_at.c: all of n bytes at an offset.  `unit`: what a file opened with O_DIRECT wants its offsets to be multiples
 * of, after a short transfer too; 1 otherwise.  false: errno; ENODATA when the file ends before. -------------------- */
bool base_file_pread_all(int fd, void *to, size_t n, int64_t at, size_t unit);
bool base_file_pwrite_all(int fd, const void *from, size_t n, int64_t at, size_t unit);

/* ---- file_write.c: all or nothing, by a temporary name beside the place, fsync, rename and fsync of the folder.  Keeps the
 * mode of a file that is there, follows symbolic links, writes into what is not a regular file as it is. ------------- */
typedef struct base_part {
    const void *bytes;
    size_t n;
} base_part;
bool base_file_write_parts(const char *path, const base_part *parts, size_t n_parts, base_str *err);
bool base_file_write(const char *path, const void *bytes, size_t n, base_str *err);
typedef struct base_writer {
    bool (*fill)(void *user, int fd); /* writes the contents; false: errno */
    void *user;
    bool keep; /* what is at the path stays, and that is a failure with EEXIST */
} base_writer;
/* A regular file only.  *error: errno of the failure, 0 when it has none. */
bool base_file_write_with(const char *path, const base_writer *w, int *error, base_str *err);
/* Removes what writers of this path that died on this machine have left beside it. */
void base_file_sweep(const char *path);
/* Whether `name` in the folder (AT_FDCWD: a path) is still the file that fd has open.  errno: ENOENT when it is not. */
bool base_file_is_named(int folder, const char *name, int fd);
/* A new file of that name, locked (flock) so that nobody sweeps it until fd is closed or unlocked; not locked where the
 * file system cannot.  -1 and errno: EEXIST also when it was swept before it was locked; another name may do. */
int base_file_create_locked(int folder, const char *name, unsigned mode);

/* ---- inject.c: make the n-th call fail.  0 switches off.  Counts only calls of the process, all threads. ------- */
typedef enum base_inject_kind { BASE_INJECT_ALLOC, BASE_INJECT_FILE, BASE_INJECT_KINDS } base_inject_kind;
void base_inject_at(base_inject_kind kind, uint64_t nth); /* also resets the count */
void base_inject_kill_at(base_inject_kind kind,
                         uint64_t nth); /* the process is killed there: a crash, at every place */
void base_inject_error(int error); /* what file calls fail with, EIO at first; 0: reads and writes are short instead */
int base_inject_get_error(void);
uint64_t base_inject_count(base_inject_kind kind);
bool base_inject_hit(base_inject_kind kind); /* counts one call; true: this one must fail */

/* ---- size.c: sizes that are computed from others, sums of products of names and numbers: "2*D*K+F-3" ----------- */
enum { BASE_SIZE_NAMES = 6 };
typedef struct base_size_term {
    int64_t factor;
    uint32_t n_names;
    const char *name[BASE_SIZE_NAMES]; /* into the text */
    size_t length[BASE_SIZE_NAMES];
} base_size_term;
typedef int64_t base_size_of(const void *user, const char *name, size_t length); /* < 0: not known */
bool base_size_is_computed(const char *text);
bool base_size_next(const char **at, base_size_term *out); /* false: this is no sum of products */
bool base_size_eval(const char *text, base_size_of *of, const void *user, int64_t *out); /* false: not known, or 2^63 */
/* The one name of a sum that is not known, when the value of the sum says it: of "D+2*K" = 7 and D = 3, K is 2. */
bool base_size_solve(const char *text, int64_t value, base_size_of *of, const void *user, base_size_term *unknown,
                     int64_t *out);

/* ---- cores.c: how many threads are of use ------------------------------------------------------------------------ */
int base_default_threads(void); /* found out once */
int base_count_threads(const char *root); /* the same, anew; `root` is put before paths of /sys */

/* ---- half.c: 16-bit floats.  Narrowing rounds once, to nearest even; NaN stays NaN, subnormals are kept. ---------- */
float base_f32_from_f16(uint16_t h);
uint16_t base_f16_from_f32(float x);
float base_f32_from_bf16(uint16_t h);
uint16_t base_bf16_from_f32(float x);

#ifdef __cplusplus
}
#endif
#endif
