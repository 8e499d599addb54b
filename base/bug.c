/* A broken invariant of our own: says where, then aborts.  Never reached by bad input. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

void base_bug_at(const char *file, int line, const char *fmt, ...) {
    va_list ap;
    fflush(stdout);
    fprintf(stderr, "internal error at %s:%d: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}
