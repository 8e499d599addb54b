/* Whole files are read, and what reading and writing share.  Every system call counts for failure injection, so that tests
 * walk each error path. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 256 << 10 };

bool base_file_injected(void) {
    if (!base_inject_hit(BASE_INJECT_FILE))
        return false;
    errno = EIO;
    return true;
}

bool base_file_fail(base_str *err, const char *path, const char *what) {
    if (err)
        base_str_addf(err, "%s: cannot %s: %s", path, what, strerror(errno));
    return false;
}

bool base_file_write_all(int fd, const void *bytes, size_t n) {
    for (const char *at = bytes; n > 0;) {
        ssize_t put = base_file_injected() ? -1 : write(fd, at, n < PIECE ? n : PIECE);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        at += put;
        n -= (size_t)put;
    }
    return true;
}

static ssize_t read_some(int fd, char *buf, size_t n) {
    ssize_t got;
    if (base_file_injected())
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
            return base_file_fail(err, path, "read");
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
    return base_file_fail(err, path, "read");
}

bool base_file_read(const char *path, base_str *out, base_str *err) {
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", out, err);
    int fd = base_file_injected() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return base_file_fail(err, path, "open");
    struct stat st;
    bool ok;
    if (base_file_injected() || fstat(fd, &st) != 0) {
        ok = base_file_fail(err, path, "stat");
    } else if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        ok = base_file_fail(err, path, "read");
    } else {
        ok = read_all(fd, path, out, err);
    }
    close(fd);
    return ok;
}
