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
    if (!base_inject_hit(BASE_INJECT_FILE) || !base_inject_get_error())
        return false;
    errno = base_inject_get_error();
    return true;
}

size_t base_file_allowed(size_t n, size_t unit) {
    if (!base_inject_hit(BASE_INJECT_FILE))
        return n;
    int error = base_inject_get_error();
    if (!error)
        return n / 2 >= unit ? n / 2 / unit * unit : n;
    errno = error;
    return 0;
}

bool base_file_fail(base_str *err, const char *path, const char *what) {
    int saved = errno;
    if (err)
        base_str_addf(err, "%s: cannot %s: %s", path, what, strerror(saved));
    errno = saved;
    return false;
}

bool base_file_write_all(int fd, const void *bytes, size_t n) {
    for (const char *at = bytes; n > 0;) {
        size_t piece = base_file_allowed(n < PIECE ? n : PIECE, 1);
        ssize_t put = piece ? write(fd, at, piece) : -1;
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
    do {
        size_t piece = base_file_allowed(n, 1);
        got = piece ? read(fd, buf, piece) : -1;
    } while (got < 0 && errno == EINTR);
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
