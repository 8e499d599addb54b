/* Files are written under a temporary name beside their own, fsynced, renamed, and the folder fsynced: all or nothing.
 * Where the target exists and is not a plain file (/dev/stdout, a pipe), it is written as it is. */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

tiga_status rt_file_commit(tiga_context *ctx, const char *temporary, const char *path) {
    int fd = base_inject_hit(BASE_INJECT_FILE) ? (errno = EIO, -1) : open(temporary, O_RDONLY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    if (!synced || base_inject_hit(BASE_INJECT_FILE) || rename(temporary, path) != 0) {
        tiga_status status = fail_errno(ctx, path, "cannot write");
        unlink(temporary);
        return status;
    }
    return sync_folder(path) ? TIGA_OK : fail_errno(ctx, path, "cannot sync its folder");
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

tiga_status rt_file_write(tiga_context *ctx, const char *path, const rt_part *parts, int n_parts) {
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return write_in_place(ctx, path, parts, n_parts);
    base_str name = {0};
    tiga_status status = TIGA_OK;
    int fd = create_beside(path, &name);
    if (fd < 0) {
        status = fail_errno(ctx, path, "cannot create");
    } else {
        bool good = write_parts(fd, parts, n_parts);
        if (!good)
            status = fail_errno(ctx, path, "cannot write");
        if (close(fd) != 0 && good)
            status = fail_errno(ctx, path, "cannot write");
        if (status != TIGA_OK)
            unlink(name.data);
        else
            status = rt_file_commit(ctx, name.data, path);
    }
    base_str_fini(&name);
    return status;
}
