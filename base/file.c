/* Whole files.  Every system call counts for failure injection, so that tests walk each error path.
 * A write goes to a new name beside the target, is synced, renamed over it, and the folder is synced: all or nothing. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool injected(void) {
    if (!base_inject_hit(BASE_INJECT_FILE))
        return false;
    errno = EIO;
    return true;
}

static bool fail(base_str *err, const char *path, const char *what) {
    if (err)
        base_str_addf(err, "%s: cannot %s: %s", path, what, strerror(errno));
    return false;
}

static ssize_t read_some(int fd, char *buf, size_t n) {
    ssize_t got;
    if (injected())
        return -1;
    do
        got = read(fd, buf, n);
    while (got < 0 && errno == EINTR);
    return got;
}

static bool read_all(int fd, const char *path, base_str *out, base_str *err) {
    char buf[1 << 16];
    for (;;) {
        ssize_t got = read_some(fd, buf, sizeof buf);
        if (got < 0)
            return fail(err, path, "read");
        if (got == 0)
            break;
        base_str_add_n(out, buf, (size_t)got);
        if (out->failed)
            break;
    }
    base_str_add_n(out, "", 0); /* an empty file is an empty string, not NULL */
    if (!out->failed)
        return true;
    errno = ENOMEM;
    return fail(err, path, "read");
}

bool base_file_read(const char *path, base_str *out, base_str *err) {
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", out, err);
    int fd = injected() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(err, path, "open");
    struct stat st;
    bool ok;
    if (injected() || fstat(fd, &st) != 0) {
        ok = fail(err, path, "stat");
    } else if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        ok = fail(err, path, "read");
    } else {
        ok = read_all(fd, path, out, err);
    }
    close(fd);
    return ok;
}

static bool write_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t put = injected() ? -1 : write(fd, bytes, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        bytes += put;
        n -= (size_t)put;
    }
    return true;
}

/* Terminals, pipes and /dev/null are written in place: renaming over them would destroy them. */
static bool write_in_place(const char *path, const void *bytes, size_t n, base_str *err) {
    int fd = injected() ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(err, path, "open");
    bool ok = write_all(fd, bytes, n) || fail(err, path, "write");
    if (close(fd) != 0 && ok)
        ok = fail(err, path, "write");
    return ok;
}

static bool fill_temporary(int fd, const struct stat *old, const void *bytes, size_t n) {
    bool ok = write_all(fd, bytes, n);
    if (ok && old) /* the permissions stay what they were */
        ok = !injected() && fchmod(fd, old->st_mode & 07777) == 0;
    ok = ok && !injected() && fsync(fd) == 0;
    int saved = errno;
    bool closed = close(fd) == 0 && !injected();
    if (ok)
        return closed;
    errno = saved;
    return false;
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
    int fd = injected() ? -1 : open(copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_free(copy);
    if (fd < 0)
        return false;
    bool ok = !injected() && (fsync(fd) == 0 || errno == EINVAL); /* some file systems cannot sync a folder */
    int saved = errno;
    close(fd);
    errno = saved;
    return ok;
}

static bool write_beside(const char *path, const struct stat *old, const void *bytes, size_t n, base_str *err) {
    static _Atomic unsigned counter;
    size_t cap = strlen(path) + 64;
    char *temporary = base_alloc(cap);
    if (!temporary) {
        errno = ENOMEM;
        return fail(err, path, "write");
    }
    int fd;
    do { /* a name left behind by a crashed process of the same number is stepped over */
        snprintf(temporary, cap, "%s.%ld.%u.tmp", path, (long)getpid(), atomic_fetch_add(&counter, 1));
        fd = injected() ? -1 : open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EEXIST);
    bool ok = true;
    if (fd < 0) {
        ok = fail(err, path, "create");
    } else if (!fill_temporary(fd, old, bytes, n)) {
        ok = fail(err, path, "write");
        unlink(temporary);
    } else if (injected() || rename(temporary, path) != 0) {
        ok = fail(err, path, "rename");
        unlink(temporary);
    } else if (!sync_folder(path)) {
        ok = fail(err, path, "sync the folder of");
    }
    base_free(temporary);
    return ok;
}

bool base_file_write(const char *path, const void *bytes, size_t n, base_str *err) {
    struct stat st;
    if (stat(path, &st) != 0)
        return write_beside(path, NULL, bytes, n, err);
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return fail(err, path, "write");
    }
    if (!S_ISREG(st.st_mode))
        return write_in_place(path, bytes, n, err);
    char *real = realpath(path, NULL); /* a link keeps pointing to the new contents */
    if (!real)
        return fail(err, path, "resolve");
    bool ok = write_beside(real, &st, bytes, n, err);
    free(real);
    return ok;
}
