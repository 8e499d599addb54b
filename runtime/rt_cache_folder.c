/* The folder of the cache: where it is, whether it can be trusted, one lock a key, what is in it, and what has to go.
 *
 * What lies there will run, so the folder must belong to the user (or root) and nobody else may write to it; the check
 * is made on the opened folder, and files are reached through that descriptor.  It is opened for every request that the
 * memory cannot answer: it may be removed and made again under a running process.
 *
 * Other processes read, write and remove files at any time.  Names appear complete, by rename; a reader that has a file open keeps
 * it; what somebody else has removed is gone and that is fine. */
#include "runtime/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const int64_t second_ns = 1000000000;

/* ---- where ---- */

static char *join(const char *a, const char *b, bool *no_memory) {
    base_str s = {0};
    base_str_add(&s, a);
    base_str_add(&s, b);
    base_str_add_n(&s, "", 0); /* not NULL when empty */
    *no_memory = s.failed;
    if (!s.failed)
        return s.data;
    base_str_fini(&s);
    return NULL;
}

/* A relative folder is meant as seen from here and now. */
static char *absolute(const char *path, bool *no_memory) {
    if (path[0] == '/' || !path[0])
        return join(path, "", no_memory);
    char here[4096];
    if (!getcwd(here, sizeof here - 1))
        return join("", "", no_memory);
    strcat(here, "/");
    return join(here, path, no_memory);
}

char *rt_cache_folder_choose(const char *wanted, bool *no_memory) {
    if (wanted)
        return absolute(wanted, no_memory);
    const char *own = secure_getenv("TIGA_CACHE_DIR"), *xdg = secure_getenv("XDG_CACHE_HOME"),
               *home = secure_getenv("HOME");
    if (own && *own)
        return absolute(own, no_memory);
    if (xdg && xdg[0] == '/') /* the standard: relative ones are to be ignored */
        return join(xdg, "/tiga", no_memory);
    if (home && home[0] == '/')
        return join(home, "/.cache/tiga", no_memory);
    return join("", "", no_memory);
}

bool rt_cache_is_safe(const struct stat *st, const char **why) {
    *why = st->st_uid != geteuid() && st->st_uid != 0 ? "it belongs to another user"
           : st->st_mode & (S_IWGRP | S_IWOTH)        ? "others can write to it"
                                                      : NULL;
    return !*why;
}

/* All folders of the path that are not there.  errno. */
static bool make_folders(const char *path) {
    bool no_memory, good = true;
    char *copy = join(path, "", &no_memory);
    if (!copy) {
        errno = ENOMEM;
        return false;
    }
    for (char *at = copy + 1; good && *at; at++) {
        if (*at != '/' && at[1])
            continue;
        char end = *at == '/' ? '/' : 0;
        if (end)
            *at = 0;
        good = !base_file_injected() && (mkdir(copy, 0700) == 0 || errno == EEXIST || errno == EISDIR);
        if (end)
            *at = end;
    }
    int saved = errno;
    base_free(copy);
    errno = saved;
    return good;
}

static int open_folder(const char *path) {
    return base_file_injected() ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int rt_cache_folder_open(const tiga_cache *c, bool make, const char **why) {
    *why = NULL;
    int fd = open_folder(c->folder);
    if (fd < 0 && errno == ENOENT && make && make_folders(c->folder))
        fd = open_folder(c->folder);
    struct stat st;
    if (fd >= 0 && (base_file_injected() || fstat(fd, &st) != 0 || !rt_cache_is_safe(&st, why))) {
        int saved = *why ? EACCES : errno;
        close(fd);
        errno = saved;
        fd = -1;
    }
    int saved = errno;
    if (fd < 0 && !*why)
        *why = strerror(saved);
    errno = saved;
    return fd;
}

/* ---- one lock a key ---- */

static void nap(int64_t ns) {
    struct timespec t = {.tv_nsec = (long)ns};
    nanosleep(&t, NULL);
}

static int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * second_ns + t.tv_nsec;
}

/* A holder that dies loses its lock; one that hangs must not stop the others for ever, and to build twice is no fault. */
static rt_cache_lock_result wait_for(const tiga_cache *c, tiga_context *ctx, int fd, int64_t began, bool *waited) {
    for (int64_t pause = second_ns / 2000;;) {
        if (!base_file_injected() && flock(fd, LOCK_EX | LOCK_NB) == 0)
            return RT_CACHE_LOCKED;
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return RT_CACHE_NO_LOCK;
        *waited = true;
        if (rt_interrupted(ctx))
            return RT_CACHE_LOCK_INTERRUPTED;
        if (now_ns(CLOCK_MONOTONIC) - began > c->longest_wait_ns)
            return RT_CACHE_NO_LOCK;
        nap(pause);
        pause = pause < second_ns / 100 ? pause * 2 : pause;
    }
}

static void lock_name(char out[RT_CACHE_NAME + 8], const char *name) {
    snprintf(out, RT_CACHE_NAME + 8, "%s.lock", name);
}

rt_cache_lock_result rt_cache_lock(const tiga_cache *c, tiga_context *ctx, int folder, const char *name, int *fd,
                                   bool *waited) {
    char path[RT_CACHE_NAME + 8];
    lock_name(path, name);
    int64_t began = now_ns(CLOCK_MONOTONIC);
    for (int tries = 0; tries < 1000; tries++) { /* each time somebody else had it and removed it */
        *fd = base_file_injected() ? -1 : openat(folder, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (*fd < 0)
            return RT_CACHE_NO_LOCK;
        rt_cache_lock_result r = wait_for(c, ctx, *fd, began, waited);
        if (r == RT_CACHE_LOCKED && base_file_is_named(folder, path, *fd))
            return r; /* else the last holder has removed it */
        if (r == RT_CACHE_NO_LOCK && !*waited)
            unlinkat(folder, path, 0); /* locks do not work here, so nobody has one */
        flock(*fd, LOCK_UN);
        close(*fd);
        *fd = -1;
        if (r != RT_CACHE_LOCKED)
            return r;
    }
    return RT_CACHE_NO_LOCK;
}

/* Removed while it is held: whoever waits for it finds that out and takes a new one. */
void rt_cache_unlock(int folder, const char *name, int fd) {
    char path[RT_CACHE_NAME + 8];
    lock_name(path, name);
    unlinkat(folder, path, 0);
    flock(fd, LOCK_UN); /* a child of fork may hold a copy of the descriptor */
    close(fd);
}

/* ---- what is in it ---- */

/* Names that we give; others in the folder are none of our business. */
static bool classify(const char *name, rt_cache_what *what) {
    size_t hex = strspn(name, "0123456789abcdef"), n = strlen(name);
    if (hex != RT_CACHE_NAME - 1 || n >= sizeof(((rt_cache_item *)0)->name))
        return false;
    *what = RT_CACHE_ENTRY;
    if (!name[hex])
        return true;
    *what = RT_CACHE_LOCK;
    if (!strcmp(name + hex, ".lock"))
        return true;
    *what = RT_CACHE_TEMPORARY;
    return name[hex] == '.' && n > 4 && !strcmp(name + n - 4, ".tmp");
}

static bool add_item(int folder, const char *name, rt_cache_what what, base_str *list) {
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return true; /* gone meanwhile */
    rt_cache_item item;
    memset(&item, 0, sizeof item);
    strcpy(item.name, name);
    item.what = what;
    item.used_ns = (int64_t)st.st_mtim.tv_sec * second_ns + st.st_mtim.tv_nsec;
    item.bytes = st.st_size;
    base_str_add_n(list, (const char *)&item, sizeof item);
    return !list->failed;
}

bool rt_cache_scan(int folder, rt_cache_item **items, size_t *n) {
    *items = NULL;
    *n = 0;
    int fd = base_file_injected() ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        errno = saved;
        return false;
    }
    base_str list = {0};
    bool good = true;
    rt_cache_what what;
    for (struct dirent *e; good && (errno = 0, e = base_file_injected() ? NULL : readdir(d));)
        if (classify(e->d_name, &what) && !add_item(folder, e->d_name, what, &list)) {
            errno = ENOMEM;
            good = false;
        }
    good = good && errno == 0;
    int saved = errno;
    closedir(d);
    errno = saved;
    if (!good) {
        base_str_fini(&list);
        return false;
    }
    *n = list.len / sizeof(rt_cache_item);
    *items = (rt_cache_item *)(void *)list.data;
    return true;
}

/* Holds the lock of the file while removing it, so its owner is dead or will notice. */
static bool sweep_one(int folder, const rt_cache_item *item) {
    int fd = base_file_injected() ? -1 : openat(folder, item->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool gone = flock(fd, LOCK_EX | LOCK_NB) == 0 && base_file_is_named(folder, item->name, fd) &&
                unlinkat(folder, item->name, 0) == 0;
    flock(fd, LOCK_UN);
    close(fd);
    return gone;
}

int64_t rt_cache_sweep(int folder, const rt_cache_item *items, size_t n, int64_t age_ns) {
    int64_t removed = 0, now = now_ns(CLOCK_REALTIME);
    for (size_t i = 0; i < n; i++)
        if (items[i].what != RT_CACHE_ENTRY && now - items[i].used_ns >= age_ns)
            removed += sweep_one(folder, &items[i]);
    return removed;
}

/* ---- what has to go ---- */

static int older_first(const void *a, const void *b) {
    const rt_cache_item *x = a, *y = b;
    return x->used_ns != y->used_ns ? (x->used_ns < y->used_ns ? -1 : 1) : strcmp(x->name, y->name);
}

/* Bytes left; the number of entries removed goes to *evicted. */
static int64_t evict_from(int folder, rt_cache_item *items, size_t n, int64_t limit, const char *keep,
                          int64_t *evicted) {
    int64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += items[i].what == RT_CACHE_ENTRY ? items[i].bytes : 0;
    if (bytes <= limit)
        return bytes;
    qsort(items, n, sizeof *items, older_first);
    int64_t target = limit - limit / 8; /* so that not every later store has to look again */
    for (size_t i = 0; i < n && bytes > target; i++) {
        if (items[i].what != RT_CACHE_ENTRY || !strcmp(items[i].name, keep))
            continue;
        bool mine = !base_file_injected() && unlinkat(folder, items[i].name, 0) == 0;
        *evicted += mine;
        if (mine || errno == ENOENT)
            bytes -= items[i].bytes;
    }
    return bytes;
}

/* Each process looks when it has stored a sixteenth of the limit since it looked last, so many can share a folder
 * without each counting all of it after every store. */
void rt_cache_evict(tiga_cache *c, int folder, const char *name, int64_t n_bytes) {
    pthread_mutex_lock(&c->lock);
    c->stored_since_scan += n_bytes;
    bool look = c->disk_bytes < 0 || c->disk_bytes + c->stored_since_scan > c->disk_limit ||
                c->stored_since_scan > c->disk_limit / 16;
    if (look)
        c->stored_since_scan = 0;
    pthread_mutex_unlock(&c->lock);
    if (!look)
        return;
    rt_cache_item *items;
    size_t n;
    int64_t evicted = 0, left = -1;
    bool good = rt_cache_scan(folder, &items, &n);
    if (good) {
        rt_cache_sweep(folder, items, n, 60 * second_ns);
        left = evict_from(folder, items, n, c->disk_limit, name, &evicted);
        base_free(items);
    }
    pthread_mutex_lock(&c->lock);
    c->disk_bytes = left;
    c->counters.evicted_disk += evicted;
    c->counters.disk_errors += !good;
    pthread_mutex_unlock(&c->lock);
}
