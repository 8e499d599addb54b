/* Whole files are written: under a new name beside the target, synced, renamed over it, and the folder is synced: all
 * or nothing.  A symbolic link stays one: the file it leads to is replaced, or made.  What is not a regular file
 * (/dev/stdout, a pipe) is written in place; nothing is ever renamed over it.  Every system call counts for failure
 * injection. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct parts {
    const base_part *parts;
    size_t n;
} parts_of;

static bool write_parts(void *user, int fd) {
    const parts_of *p = user;
    for (size_t i = 0; i < p->n; i++)
        if (!base_file_write_all(fd, p->parts[i].bytes, p->parts[i].n))
            return false;
    return true;
}

static bool write_in_place(const char *path, const base_writer *w, base_str *err) {
    int fd = base_file_injected() ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return base_file_fail(err, path, "open for writing");
    bool ok = w->fill(w->user, fd) || base_file_fail(err, path, "write");
    if (close(fd) != 0 && ok)
        ok = base_file_fail(err, path, "write");
    return ok;
}

/* Contents, mode (that of the file to be replaced, if any), and down to the disk.  errno on failure. */
static bool fill_temporary(int fd, const struct stat *old, const base_writer *w) {
    bool ok = w->fill(w->user, fd);
    if (ok && old)
        ok = !base_file_injected() && fchmod(fd, old->st_mode & 07777) == 0;
    return ok && !base_file_injected() && fsync(fd) == 0;
}

static bool sync_folder(const char *path) {
    char *copy = base_alloc(strlen(path) + 2);
    if (!copy) {
        errno = ENOMEM;
        return false;
    }
    strcpy(copy, path);
    char *slash = strrchr(copy, '/');
    if (!slash)
        strcpy(copy, ".");
    else
        slash[slash == copy] = 0;
    int fd = base_file_injected() ? -1 : open(copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_free(copy);
    if (fd < 0)
        return false;
    bool ok = !base_file_injected() && (fsync(fd) == 0 || errno == EINVAL); /* some file systems cannot sync a folder */
    int saved = errno;
    close(fd);
    errno = saved;
    return ok;
}

/* A name beside `path` that did not exist; the umask decides on its mode.  One that a dead process of the same number
 * left behind is stepped over. */
static int create_beside(const char *path, base_str *name) {
    static _Atomic unsigned counter;
    for (;;) {
        base_str_fini(name);
        base_str_addf(name, "%s.%ld.%u.tmp", path, (long)getpid(), atomic_fetch_add(&counter, 1));
        if (name->failed) {
            errno = ENOMEM;
            return -1;
        }
        int fd = base_file_create_locked(AT_FDCWD, name->data, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
}

/* errno EEXIST when there is something. */
static bool rename_keeping(const char *from, const char *to) {
#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS) /* some file systems cannot */
        return false;
#endif
    return link(from, to) == 0 && (unlink(from), true);
}

static bool put_in_place(const char *name, const char *target, const base_writer *w) {
    if (base_file_injected())
        return false;
    return w->keep ? rename_keeping(name, target) : rename(name, target) == 0;
}

static void remove_keeping_errno(const char *name) {
    int saved = errno;
    unlink(name);
    errno = saved;
}

/* All of it is on the disk: there is nothing left that could fail. */
static void close_keeping_errno(int fd) {
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
}

/* fd stays open, and so locked, until the name beside is gone: nobody sweeps it before.  `path` is for messages, `target` is the same place without links. */
static bool write_beside(const char *path, const char *target, const struct stat *old, const base_writer *w,
                         base_str *err) {
    base_str name = {0};
    int fd = create_beside(target, &name);
    bool ok = true;
    if (fd < 0) {
        ok = base_file_fail(err, path, "create");
    } else if (!fill_temporary(fd, old, w)) {
        ok = base_file_fail(err, path, "write");
        remove_keeping_errno(name.data);
    } else if (!put_in_place(name.data, target, w)) {
        ok = base_file_fail(err, path, errno == EEXIST ? "create" : "rename");
        remove_keeping_errno(name.data);
    } else if (!sync_folder(target)) {
        ok = base_file_fail(err, path, "sync the folder of");
    }
    close_keeping_errno(fd);
    base_str_fini(&name);
    return ok;
}

/* Where a link that leads to nothing yet leads: the file is to be made there. false: errno. */
static bool follow(const char *path, base_str *target) {
    char link[4096]; /* PATH_MAX */
    base_str_add(target, path);
    for (int n = 0; !target->failed; n++) {
        ssize_t len = readlink(target->data, link, sizeof link);
        if (len < 0 && (errno == EINVAL || errno == ENOENT)) /* no link, or nothing there */
            return true;
        if (len < 0 || len == (ssize_t)sizeof link || n == 40) {
            errno = len < 0 ? errno : n == 40 ? ELOOP : ENAMETOOLONG;
            return false;
        }
        const char *slash = strrchr(target->data, '/');
        size_t folder = link[0] != '/' && slash ? (size_t)(slash - target->data) + 1 : 0;
        base_str next = {0};
        base_str_add_n(&next, target->data, folder);
        base_str_add_n(&next, link, (size_t)len);
        base_str_fini(target);
        *target = next;
    }
    errno = ENOMEM;
    return false;
}

static bool write_new(const char *path, const base_writer *w, base_str *err) {
    base_str target = {0};
    bool ok =
        follow(path, &target) ? write_beside(path, target.data, NULL, w, err) : base_file_fail(err, path, "write");
    base_str_fini(&target);
    return ok;
}

static bool write_any(const char *path, const base_writer *w, bool in_place, base_str *err) {
    struct stat st;
    errno = 0;
    if (stat(path, &st) != 0)
        return write_new(path, w, err);
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return base_file_fail(err, path, "write");
    }
    if (!S_ISREG(st.st_mode) && in_place)
        return write_in_place(path, w, err);
    if (!S_ISREG(st.st_mode) || w->keep) {
        errno = EEXIST;
        return base_file_fail(err, path, "create");
    }
    char *real = realpath(path, NULL); /* a link keeps pointing to the new contents */
    if (!real)
        return base_file_fail(err, path, "resolve");
    bool ok = write_beside(path, real, &st, w, err);
    int saved = errno;
    free(real);
    errno = saved;
    return ok;
}

bool base_file_write_parts(const char *path, const base_part *parts, size_t n_parts, base_str *err) {
    parts_of p = {parts, n_parts};
    return write_any(path, &(base_writer){.fill = write_parts, .user = &p}, true, err);
}

bool base_file_write_with(const char *path, const base_writer *w, int *error, base_str *err) {
    bool ok = write_any(path, w, false, err);
    *error = ok ? 0 : errno;
    return ok;
}

bool base_file_write(const char *path, const void *bytes, size_t n, base_str *err) {
    return base_file_write_parts(path, &(base_part){bytes, n}, 1, err);
}
