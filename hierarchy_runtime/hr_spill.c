/* The spill file of an account: one file without a name, so it vanishes with the process however that ends.  Values lie in
 * extents of whole units; which parts are free is known in memory only.  Free parts keep their blocks for the next value as
 * long as they are few (64 MiB and a quarter of what is in use).  Beyond that they are given back to the disk as holes, largest
 * first, in the background: it takes a fifth of the time that writing them took.  A part is out of the list meanwhile.
 *
 * O_DIRECT where the file system has it: a write has reached the disk before the memory is given up, so an error is seen
 * while the value is still there, and the page cache is left to others.
 *
 * A child of fork shares its parent's open file.  It may read what it inherited, and writes to a file of its own; the
 * parent's descriptor stays open there for as long as the child lives. */
#include "hierarchy_runtime/hr_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEEP_BYTES = 64 << 20 };

static void trim(hr_job *job);

void hr_spill_init(hr_spill *s) {
    memset(s, 0, sizeof *s);
    s->job.run = trim;
    pthread_mutex_init(&s->lock, NULL);
    s->fd = -1;
}

void hr_spill_fini(hr_spill *s) {
    if (s->fd >= 0)
        close(s->fd);
    base_free(s->free);
    pthread_mutex_destroy(&s->lock);
}

/* ---- opening ---- */

static int open_unnamed(const char *folder, int more) {
#ifdef O_TMPFILE
    return base_file_injected() ? -1 : open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | more, 0600);
#else
    errno = EOPNOTSUPP;
    return -1;
#endif
}

/* For file systems without O_TMPFILE: a name for a moment.  One that a killed process left is swept first. */
static int open_named(const char *folder, int more) {
    static _Atomic unsigned counter;
    base_str name = {0};
    base_str_addf(&name, "%s/tiga-spill", folder);
    if (!name.failed)
        base_file_sweep(name.data);
    base_str_addf(&name, ".%ld.%u.tmp", (long)getpid(), atomic_fetch_add(&counter, 1));
    int fd = -1;
    if (name.failed)
        errno = ENOMEM;
    else if (!base_file_injected())
        fd = open(name.data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | more, 0600);
    if (fd >= 0 && (base_file_injected() || unlink(name.data) != 0)) {
        int saved = errno;
        (void)unlink(name.data);
        close(fd);
        fd = -1;
        errno = saved;
    }
    int saved = errno;
    base_str_fini(&name);
    errno = saved;
    return fd;
}

static bool is_unsupported(int error) { return error == EINVAL || error == EOPNOTSUPP; }

static int open_any(const char *folder, int more) {
    int fd = open_unnamed(folder, more);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
        fd = open_named(folder, more);
    return fd;
}

static bool open_file(hr_spill *s, const char *folder) {
    if (s->fd >= 0 && s->pid == getpid())
        return true;
    if (s->fd >= 0) { /* the parent's */
        s->end = s->n_free = s->n_live = s->live_bytes = s->kept_bytes = 0;
        s->trimming = false;
        s->fd = -1;
    }
    s->pid = getpid();
#ifdef O_DIRECT
    s->fd = open_any(folder, O_DIRECT);
    s->direct = s->fd >= 0;
    if (s->fd < 0 && !is_unsupported(errno))
        return false;
#endif
    if (s->fd < 0)
        s->fd = open_any(folder, 0);
    return s->fd >= 0;
}

/* ---- extents ---- */

/* So that giving back never has to allocate: n_live extents leave at most n_live + 1 gaps. */
static bool reserve(hr_spill *s) {
    if (s->cap_free >= s->n_live + 2)
        return true;
    int64_t cap = s->cap_free ? 2 * s->cap_free : 16;
    hr_extent *more = base_realloc(s->free, (size_t)cap * sizeof *more);
    if (!more) {
        errno = ENOMEM;
        return false;
    }
    s->free = more;
    s->cap_free = cap;
    return true;
}

static void remove_free(hr_spill *s, int64_t i) {
    memmove(&s->free[i], &s->free[i + 1], (size_t)(s->n_free - i - 1) * sizeof *s->free);
    s->n_free--;
}

/* The smallest gap that is large enough; -1: at the end. */
static int64_t find_gap(const hr_spill *s, int64_t n) {
    int64_t best = -1;
    for (int64_t i = 0; i < s->n_free; i++)
        if (s->free[i].n >= n && (best < 0 || s->free[i].n < s->free[best].n))
            best = i;
    return best;
}

/* Blocks are there before anything is written: a full disk is seen now, and threads may write side by side. */
static bool allocate(hr_spill *s, int64_t at, int64_t n) {
    int e;
    do {
        if (base_file_injected())
            e = errno;
        else
            e = fallocate(s->fd, 0, at, n) == 0 ? 0 : errno;
    } while (e == EINTR);
    if (is_unsupported(e) || e == ENOSYS)
        e = at + n > s->end && ftruncate(s->fd, at + n) != 0 ? errno : 0;
    errno = e;
    return e == 0;
}

static void add_free(hr_spill *s, hr_extent e) {
    int64_t i = 0;
    while (i < s->n_free && s->free[i].at < e.at)
        i++;
    bool joins_left = i > 0 && s->free[i - 1].at + s->free[i - 1].n == e.at;
    bool joins_right = i < s->n_free && e.at + e.n == s->free[i].at;
    if (joins_left) {
        s->free[i - 1].n += e.n + (joins_right ? s->free[i].n : 0);
        s->free[i - 1].kept += e.kept + (joins_right ? s->free[i].kept : 0);
        if (joins_right)
            remove_free(s, i);
    } else if (joins_right) {
        s->free[i].at = e.at;
        s->free[i].n += e.n;
        s->free[i].kept += e.kept;
    } else {
        memmove(&s->free[i + 1], &s->free[i], (size_t)(s->n_free - i) * sizeof *s->free);
        s->free[i] = e;
        s->n_free++;
    }
}

/* ---- giving blocks back ---- */

static bool keeps_too_much(const hr_spill *s) { return s->kept_bytes > KEEP_BYTES + s->live_bytes / 4; }

/* With the lock held: the free extent that has most blocks, out of the list.  It counts as one that is in use. */
static bool claim(hr_spill *s, hr_extent *out) {
    int64_t best = -1;
    for (int64_t i = 0; i < s->n_free; i++)
        if (best < 0 || s->free[i].kept > s->free[best].kept)
            best = i;
    if (best < 0 || !reserve(s))
        return false;
    *out = s->free[best];
    s->kept_bytes -= out->kept;
    out->kept = 0;
    remove_free(s, best);
    s->n_live++;
    return true;
}

static bool make_hole(int fd, hr_extent e) {
#ifdef FALLOC_FL_PUNCH_HOLE
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, e.at, e.n) == 0;
#else
    return false;
#endif
}

/* With the lock held.  Where there are no holes an empty file gives all back. */
static void shrink_empty(hr_spill *s) {
    if (s->n_live == 0 && ftruncate(s->fd, 0) == 0)
        s->end = s->n_free = s->kept_bytes = 0;
}

/* With the lock held, given up in between.  Failing, the space is used again later. */
static void give_back(hr_spill *s, bool all) {
    hr_extent e;
    while ((all ? s->kept_bytes > 0 : keeps_too_much(s)) && claim(s, &e)) {
        int fd = s->fd;
        pthread_mutex_unlock(&s->lock);
        bool good = make_hole(fd, e);
        pthread_mutex_lock(&s->lock);
        s->n_live--;
        add_free(s, e);
        if (!good)
            shrink_empty(s);
    }
}

static void trim(hr_job *job) {
    hr_spill *s = (hr_spill *)job;
    pthread_mutex_lock(&s->lock);
    give_back(s, false);
    s->trimming = false;
    pthread_mutex_unlock(&s->lock);
}

static int64_t rounded(int64_t n) { return (n + HR_UNIT - 1) / HR_UNIT * HR_UNIT; }

/* Which of its blocks are holes is not known any more, so all that is left may have blocks. */
static void take_from(hr_spill *s, int64_t gap, int64_t n) {
    hr_extent *e = &s->free[gap];
    int64_t kept = e->kept < e->n - n ? e->kept : e->n - n;
    s->kept_bytes -= e->kept - kept;
    e->kept = kept;
    e->at += n;
    e->n -= n;
    if (e->n == 0)
        remove_free(s, gap);
}

/* errno */
static bool take(hr_spill *s, int64_t n, int64_t *at) {
    if (!reserve(s))
        return false;
    int64_t gap = find_gap(s, n);
    *at = gap >= 0 ? s->free[gap].at : s->end;
    if (!allocate(s, *at, n))
        return false;
    if (gap < 0) {
        s->end += n;
    } else {
        take_from(s, gap, n);
    }
    s->live_bytes += n;
    s->n_live++;
    return true;
}

/* The disk is full: what is on it for speed only goes.  false: there was nothing. */
static bool make_space(hr_spill *s, const hr_block *b) {
    if (b->uncharged)
        return false;
    bool any = hr_copies_give_way(hr_memory_if(b->account), true);
    pthread_mutex_lock(&s->lock);
    any |= s->kept_bytes > 0;
    give_back(s, true);
    pthread_mutex_unlock(&s->lock);
    return any;
}

tiga_status hr_spill_take(tiga_context *ctx, hr_spill *s, const char *folder, hr_block *b) {
    bool opened, good;
    int error;
    do {
        pthread_mutex_lock(&s->lock);
        opened = open_file(s, folder);
        good = opened && take(s, rounded(b->bytes), &b->at);
        error = errno;
        if (good) {
            b->spill = s;
            b->fd = s->fd;
            b->direct = s->direct;
            b->pid = s->pid;
        }
        pthread_mutex_unlock(&s->lock);
    } while (!good && error == ENOSPC && make_space(s, b));
    if (good)
        return TIGA_OK;
    errno = error;
    return hr_fail_errno(ctx, error == ENOMEM ? TIGA_E_MEMORY : TIGA_E_FILE, folder,
                         opened ? "make room in the spill file" : "make a spill file");
}

void hr_spill_give(const hr_block *b) {
    hr_spill *s = b->spill;
    if (b->pid != getpid()) /* the parent's */
        return;
    pthread_mutex_lock(&s->lock);
    int64_t n = rounded(b->bytes);
    s->n_live--;
    s->live_bytes -= n;
    s->kept_bytes += n;
    add_free(s, (hr_extent){.at = b->at, .n = n, .kept = n});
    bool start = !s->trimming && keeps_too_much(s);
    s->trimming |= start;
    pthread_mutex_unlock(&s->lock);
    if (start)
        hr_worker_add(b->account, &hr_memory_if(b->account)->writer, &s->job);
}
