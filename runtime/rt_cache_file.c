/* One entry as a file.  All numbers are little-endian:
 *
 *     0  "tigacode"        8  u32 format version   12  u32 0 artefact, 1 message of a failed build
 *    16  u64 key bytes    24  u64 payload bytes    32  i64 created, seconds since 1970    40  u64 0
 *    48  xxh3-128 of the 48 bytes before and of all that follows
 *    64  key, zeros up to a multiple of 16, payload
 *
 * A file is written under a temporary name, which is locked (flock) until it has its own, synced, renamed, and its
 * folder is synced.  Reading believes nothing before the checksum of everything has been compared. */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 64, SUM_AT = 48 };
static const char magic[8] = "tigacode"; /* no NUL */

static void put_le(char *at, uint64_t v, int n) {
    for (int i = 0; i < n; i++)
        at[i] = (char)(v >> (8 * i));
}

static uint64_t get_le(const char *at, int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return v;
}

static size_t padding(size_t key_bytes) { return -key_bytes & 15; }

static void check_sum(const char *head, const char *rest, size_t rest_bytes, const char *tail, size_t tail_bytes,
                      char sum[16]) {
    base_hasher h;
    base_hasher_init(&h);
    base_hasher_add(&h, head, SUM_AT);
    base_hasher_add(&h, rest, rest_bytes);
    base_hasher_add(&h, tail, tail_bytes);
    base_hash128 d = base_hasher_digest(&h);
    put_le(sum, d.lo, 8);
    put_le(sum + 8, d.hi, 8);
}

/* ---- reading ---- */

static bool read_all(int fd, char *to, size_t n) {
    while (n > 0) {
        ssize_t got = base_file_injected() ? -1 : read(fd, to, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            if (got == 0)
                errno = 0; /* shorter than it was */
            return false;
        }
        to += got;
        n -= (size_t)got;
    }
    return true;
}

/* Sizes only; `size` is that of the file. */
static bool parse_head(const char *head, uint64_t size, rt_cache_file *out) {
    uint64_t key = get_le(head + 16, 8), payload = get_le(head + 24, 8);
    if (memcmp(head, magic, 8) || get_le(head + 8, 4) != RT_CACHE_FORMAT || get_le(head + 12, 4) > 1 ||
        get_le(head + 40, 8) || key > size || payload > size || HEAD + key + padding(key) + payload != size)
        return false;
    out->failed = get_le(head + 12, 4) == 1;
    out->created = (int64_t)get_le(head + 32, 8);
    out->key_bytes = (size_t)key;
    out->payload_bytes = (size_t)payload;
    return true;
}

static rt_cache_read read_failure(void) { return errno == 0 ? RT_CACHE_BAD : RT_CACHE_NO_ACCESS; }

/* Header and `n` bytes after it into a new buffer. */
static rt_cache_read read_bytes(int fd, const char *head, size_t n, rt_cache_file *out) {
    char *buffer = base_alloc(HEAD + n);
    if (!buffer)
        return RT_CACHE_NO_MEMORY;
    memcpy(buffer, head, HEAD);
    if (!read_all(fd, buffer + HEAD, n)) {
        rt_cache_read why = read_failure();
        base_free(buffer);
        return why;
    }
    out->buffer = buffer;
    out->key = buffer + HEAD;
    return RT_CACHE_GOOD;
}

static rt_cache_read read_whole(int fd, const char *head, rt_cache_file *out) {
    size_t n = out->key_bytes + padding(out->key_bytes) + out->payload_bytes;
    rt_cache_read r = read_bytes(fd, head, n, out);
    if (r != RT_CACHE_GOOD)
        return r;
    char sum[16];
    check_sum(head, out->key, n, NULL, 0, sum);
    out->payload = out->key + out->key_bytes + padding(out->key_bytes);
    if (memcmp(sum, head + SUM_AT, 16) == 0)
        return RT_CACHE_GOOD;
    base_free(out->buffer);
    out->buffer = NULL;
    return RT_CACHE_BAD;
}

/* For the order of eviction.  Once a minute is enough, and what fails here costs nothing but that order. */
static void mark_used(int fd, const struct stat *st) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (st->st_mtime > now.tv_sec || now.tv_sec - st->st_mtime >= 60)
        (void)(base_file_injected() || futimens(fd, NULL));
}

static rt_cache_read read_open(int fd, bool whole, rt_cache_file *out) {
    struct stat st;
    char head[HEAD];
    const char *why;
    if (base_file_injected() || fstat(fd, &st) != 0)
        return RT_CACHE_NO_ACCESS;
    if (!S_ISREG(st.st_mode) || !rt_cache_is_safe(&st, &why) || st.st_size < HEAD)
        return RT_CACHE_BAD;
    if (!read_all(fd, head, HEAD))
        return read_failure();
    if (!parse_head(head, (uint64_t)st.st_size, out))
        return RT_CACHE_BAD;
    if (!whole)
        return read_bytes(fd, head, out->key_bytes, out);
    rt_cache_read r = read_whole(fd, head, out);
    if (r == RT_CACHE_GOOD)
        mark_used(fd, &st);
    return r;
}

static rt_cache_read read_named(int folder, const char *name, bool whole, rt_cache_file *out) {
    memset(out, 0, sizeof *out);
    int fd = base_file_injected() ? -1 : openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT                    ? RT_CACHE_NONE
               : errno == ELOOP || errno == ENXIO ? RT_CACHE_BAD /* a link, a socket */
                                                  : RT_CACHE_NO_ACCESS;
    rt_cache_read r = read_open(fd, whole, out);
    close(fd);
    return r;
}

rt_cache_read rt_cache_file_read(int folder, const char *name, rt_cache_file *out) {
    return read_named(folder, name, true, out);
}

rt_cache_read rt_cache_file_peek(int folder, const char *name, rt_cache_file *out) {
    return read_named(folder, name, false, out);
}

/* ---- writing ---- */

/* A name that did not exist.  The lock tells others that its writer lives; where there are no locks, its age must do. */
static int create_temporary(int folder, const char *name, char *temporary, size_t cap) {
    static _Atomic unsigned counter;
    for (int tries = 0; tries < 100; tries++) {
        snprintf(temporary, cap, "%s.%ld-%u.tmp", name, (long)getpid(), atomic_fetch_add(&counter, 1));
        int fd = base_file_create_locked(folder, temporary, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool fill(int fd, const char *front, size_t front_bytes, const rt_cache_file *file) {
    return base_file_write_all(fd, front, front_bytes) && base_file_write_all(fd, file->payload, file->payload_bytes) &&
           !base_file_injected() && fsync(fd) == 0;
}

/* Synced, so there is nothing left that closing could find.  errno stays. */
static void let_go(int fd) {
    int saved = errno;
    flock(fd, LOCK_UN); /* a child of fork may hold a copy of the descriptor */
    close(fd);
    errno = saved;
}

static bool write_front(int folder, const char *name, const char *front, size_t front_bytes,
                        const rt_cache_file *file) {
    char temporary[96];
    int fd = create_temporary(folder, name, temporary, sizeof temporary);
    if (fd < 0)
        return false;
    bool good =
        fill(fd, front, front_bytes, file) && !base_file_injected() && renameat(folder, temporary, folder, name) == 0;
    if (!good) {
        int saved = errno;
        unlinkat(folder, temporary, 0);
        errno = saved;
    }
    let_go(fd);
    /* some file systems cannot sync a folder */
    return good && !base_file_injected() && (fsync(folder) == 0 || errno == EINVAL);
}

bool rt_cache_file_write(int folder, const char *name, const rt_cache_file *file, int64_t *n_bytes) {
    size_t front_bytes = HEAD + file->key_bytes + padding(file->key_bytes);
    char *front = base_alloc_zero(front_bytes);
    if (!front) {
        errno = ENOMEM;
        return false;
    }
    memcpy(front, magic, 8);
    put_le(front + 8, RT_CACHE_FORMAT, 4);
    put_le(front + 12, file->failed, 4);
    put_le(front + 16, file->key_bytes, 8);
    put_le(front + 24, file->payload_bytes, 8);
    put_le(front + 32, (uint64_t)time(NULL), 8);
    memcpy(front + HEAD, file->key, file->key_bytes);
    check_sum(front, front + HEAD, front_bytes - HEAD, file->payload, file->payload_bytes, front + SUM_AT);
    bool good = write_front(folder, name, front, front_bytes, file);
    base_free(front);
    *n_bytes = (int64_t)(front_bytes + file->payload_bytes);
    return good;
}
