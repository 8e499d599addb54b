/* Files are written under a temporary name beside their own, fsynced, renamed, and the folder fsynced: all or nothing.
 * A symbolic link stays one: the file it leads to is replaced, or made.  Where the target is not a regular file
 * (/dev/stdout, a pipe), it is written as it is; nothing is ever renamed over it. */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tiga_status fail_errno(tiga_context *ctx, const char *path, const char *what) {
    return rt_fail(ctx, TIGA_E_FILE, "%s: %s: %s", path, what, strerror(errno));
}

static bool write_parts(int fd, const rt_part *parts, int n_parts) {
    for (int i = 0; i < n_parts; i++) {
        const char *p = parts[i].bytes;
        for (int64_t left = parts[i].n; left > 0;) {
            if (base_inject_hit(BASE_INJECT_FILE)) {
                errno = EIO;
                return false;
            }
            ssize_t done = write(fd, p, (size_t)(left < (1 << 30) ? left : (1 << 30)));
            if (done < 0 && errno != EINTR)
                return false;
            if (done > 0) {
                p += done;
                left -= done;
            }
        }
    }
    return true;
}

static bool sync_folder(const char *path) {
    char *folder = base_alloc(strlen(path) + 2);
    if (!folder)
        return false;
    strcpy(folder, path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        strcpy(folder, ".");
    else if (slash == folder)
        slash[1] = 0;
    else
        *slash = 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); /* some file systems cannot */
    if (fd >= 0)
        close(fd);
    base_free(folder);
    return good;
}

static tiga_status write_in_place(tiga_context *ctx, const char *path, const rt_part *parts, int n_parts) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(ctx, path, "cannot open for writing");
    bool good = write_parts(fd, parts, n_parts);
    tiga_status status = good ? TIGA_OK : fail_errno(ctx, path, "cannot write");
    if (close(fd) != 0 && good)
        status = fail_errno(ctx, path, "cannot write");
    return status;
}

/* A name beside `path` that did not exist; the umask decides on its mode. */
static int create_beside(const char *path, base_str *name) {
    for (int n = 0; n < 100; n++) {
        base_str_fini(name);
        base_str_addf(name, "%s.%ld-%d.tmp", path, (long)getpid(), n);
        if (name->failed || base_inject_hit(BASE_INJECT_FILE)) {
            errno = name->failed ? ENOMEM : EIO;
            return -1;
        }
        int fd = open(name->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Contents, mode (that of the file to be replaced, if any), and down to the disk; closes fd.  errno on failure. */
static bool fill(int fd, const struct stat *old, const rt_part *parts, int n_parts) {
    bool good = write_parts(fd, parts, n_parts) && (!old || fchmod(fd, old->st_mode & 07777) == 0);
    if (good && base_inject_hit(BASE_INJECT_FILE)) {
        errno = EIO;
        good = false;
    }
    good = good && fsync(fd) == 0;
    int saved = errno;
    if (close(fd) == 0 || !good)
        errno = saved;
    else
        good = false;
    return good;
}

/* `path` is for messages, `target` is the same place without links. */
static tiga_status write_beside(tiga_context *ctx, const char *path, const char *target, const struct stat *old,
                                const rt_part *parts, int n_parts) {
    base_str name = {0};
    tiga_status status = TIGA_OK;
    int fd = create_beside(target, &name);
    if (fd < 0) {
        status = fail_errno(ctx, path, "cannot create");
    } else {
        bool good = fill(fd, old, parts, n_parts);
        if (good && base_inject_hit(BASE_INJECT_FILE)) {
            errno = EIO;
            good = false;
        }
        if (!good || rename(name.data, target) != 0) {
            status = fail_errno(ctx, path, "cannot write");
            unlink(name.data);
        } else if (!sync_folder(target)) {
            status = fail_errno(ctx, path, "cannot sync its folder");
        }
    }
    base_str_fini(&name);
    return status;
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

tiga_status rt_file_write(tiga_context *ctx, const char *path, const rt_part *parts, int n_parts) {
    struct stat st;
    tiga_status status;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return rt_fail(ctx, TIGA_E_FILE, "%s: cannot write: is a folder", path);
        if (!S_ISREG(st.st_mode))
            return write_in_place(ctx, path, parts, n_parts);
        char *real = realpath(path, NULL); /* a link keeps pointing to the new contents */
        status = real ? write_beside(ctx, path, real, &st, parts, n_parts) : fail_errno(ctx, path, "cannot write");
        free(real);
        return status;
    }
    base_str target = {0};
    status = follow(path, &target) ? write_beside(ctx, path, target.data, NULL, parts, n_parts)
                                   : fail_errno(ctx, path, "cannot write");
    base_str_fini(&target);
    return status;
}
