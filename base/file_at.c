/* Reads and writes at an offset, until all bytes are moved.  Interrupted calls are made again, short ones go on where the
 * last whole unit ended.  Any number of threads may use one descriptor. */
#include "base/base.h"

#include <errno.h>
#include <unistd.h>

/* Bytes of this call that count; 0 with errno: failed. */
static size_t progress(ssize_t moved, size_t asked, size_t unit, int at_end, int *idle) {
    if (moved < 0) {
        if (errno == EINTR)
            errno = 0;
        return 0;
    }
    if (moved == 0) {
        errno = at_end;
        return 0;
    }
    size_t whole = (size_t)moved == asked ? asked : (size_t)moved / unit * unit;
    errno = whole || ++*idle < 8 ? 0 : at_end; /* less than a unit, again and again */
    return whole;
}

bool base_file_pread_all(int fd, void *to, size_t n, int64_t at, size_t unit) {
    int idle = 0;
    for (char *p = to; n > 0;) {
        size_t piece = base_file_allowed(n, unit);
        ssize_t got = piece ? pread(fd, p, piece, (off_t)at) : -1;
        size_t whole = progress(got, n, unit, ENODATA, &idle);
        if (!whole && errno)
            return false;
        p += whole;
        at += (int64_t)whole;
        n -= whole;
    }
    return true;
}

bool base_file_pwrite_all(int fd, const void *from, size_t n, int64_t at, size_t unit) {
    int idle = 0;
    for (const char *p = from; n > 0;) {
        size_t piece = base_file_allowed(n, unit);
        ssize_t put = piece ? pwrite(fd, p, piece, (off_t)at) : -1;
        size_t whole = progress(put, n, unit, ENOSPC, &idle);
        if (!whole && errno)
            return false;
        p += whole;
        at += (int64_t)whole;
        n -= whole;
    }
    return true;
}
