/* A whole file in memory, inflated when it is gzip, and errors that point into it by line.
 *
 * The file is read, not mapped: a file that shrinks while it is mapped would kill the process. */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

void rt_progress_report(const rt_progress *p, double fraction) {
    if (p && p->options && p->options->progress)
        p->options->progress(p->options->user, p->base + p->span * fraction);
}

void rt_text_fini(rt_text *t) {
    base_free(t->data);
    memset(t, 0, sizeof *t);
}

static tiga_status fail_errno(tiga_context *ctx, const char *path, const char *what) {
    return rt_fail(ctx, TIGA_E_FILE, "%s: %s: %s", path, what, strerror(errno));
}

/* Room for at least one byte more than `len`; bytes beyond what the machine has are refused before they are asked for. */
static tiga_status grow(tiga_context *ctx, rt_text *t, int64_t *cap, int64_t want) {
    if (want >= 64 << 20 && want - *cap > rt_mem_available())
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: more than %lld bytes of text do not fit into memory", t->name,
                       (long long)t->len);
    if (ctx && ctx->memory_limit > 0 && want > ctx->memory_limit)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: more than %lld bytes of text are over the limit that was set", t->name,
                       (long long)t->len);
    char *data = base_realloc(t->data, (size_t)want + 1);
    if (!data)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", t->name);
    t->data = data;
    *cap = want;
    return TIGA_OK;
}

static tiga_status read_all(tiga_context *ctx, int fd, int64_t expected, const rt_progress *progress, rt_text *t) {
    int64_t cap = 0;
    tiga_status status = grow(ctx, t, &cap, expected > 0 ? expected + 1 : 1 << 16);
    while (status == TIGA_OK) {
        int64_t room = cap - t->len < 64 << 20 ? cap - t->len : 64 << 20;
        ssize_t n = base_inject_hit(BASE_INJECT_FILE) ? (errno = EIO, -1) : read(fd, t->data + t->len, (size_t)room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(ctx, t->name, "cannot read");
        if (n == 0)
            break;
        t->len += n;
        if (expected > 0)
            rt_progress_report(progress, t->len < expected ? (double)t->len / (double)expected : 1.0);
        if (t->len == cap)
            status = grow(ctx, t, &cap, cap * 2);
        if (rt_interrupted(ctx))
            return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", t->name);
    }
    if (status == TIGA_OK)
        t->data[t->len] = 0;
    return status;
}

tiga_status rt_text_read(tiga_context *ctx, const char *path, const rt_progress *progress, rt_text *out) {
    *out = (rt_text){.name = path};
    bool standard = strcmp(path, "-") == 0;
    int fd = standard                            ? STDIN_FILENO
             : base_inject_hit(BASE_INJECT_FILE) ? (errno = EIO, -1)
                                                 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(ctx, path, "cannot open");
    struct stat st;
    tiga_status status = TIGA_OK;
    if (fstat(fd, &st) != 0)
        status = fail_errno(ctx, path, "cannot read");
    else if (S_ISDIR(st.st_mode))
        status = rt_fail(ctx, TIGA_E_FILE, "%s: is a folder", path);
    else
        status = read_all(ctx, fd, S_ISREG(st.st_mode) ? (int64_t)st.st_size : 0, progress, out);
    if (!standard)
        close(fd);
    if (status != TIGA_OK)
        rt_text_fini(out);
    return status;
}

/* ---- gzip ---- */
bool rt_text_is_gzip(const rt_text *t) { return t->len >= 2 && memcmp(t->data, "\x1f\x8b", 2) == 0; }

static void *zalloc(void *opaque, unsigned items, unsigned size) {
    (void)opaque;
    return base_alloc((size_t)items * size);
}

static void zfree(void *opaque, void *p) {
    (void)opaque;
    base_free(p);
}

static tiga_status fail_gzip(tiga_context *ctx, const rt_text *t, const char *what) {
    int64_t at = t->len; /* point to the last, broken line */
    while (at > 0 && t->data[at - 1] != '\n')
        at--;
    return rt_text_fail(ctx, TIGA_E_FORMAT, t, at, "%s", what);
}

/* Inflates as much as there is room for; *status says when to stop. */
static int inflate_some(z_stream *z, const rt_text *from, rt_text *to, int64_t cap) {
    int64_t room = cap - to->len, left = from->len - (int64_t)(z->next_in - (const Bytef *)from->data);
    z->avail_in = left < INT_MAX ? (uInt)left : INT_MAX;
    z->next_out = (Bytef *)to->data + to->len;
    z->avail_out = room < INT_MAX ? (uInt)room : INT_MAX;
    int result = inflate(z, Z_NO_FLUSH);
    to->len = (int64_t)((char *)z->next_out - to->data);
    to->data[to->len] = 0;
    return result;
}

static bool zeros(const Bytef *p, int64_t n) {
    while (n > 0 && *p == 0) {
        p++;
        n--;
    }
    return n == 0;
}

/* Members follow one another; after the last there may be zeros, with which tapes and disks pad, and nothing else. */
static tiga_status inflate_all(tiga_context *ctx, z_stream *z, const rt_text *from, rt_text *to) {
    int64_t cap = 0;
    tiga_status status = grow(ctx, to, &cap, from->len * 4 + 4096);
    while (status == TIGA_OK) {
        int result = inflate_some(z, from, to, cap);
        int64_t left = from->len - (int64_t)(z->next_in - (const Bytef *)from->data);
        if (result == Z_STREAM_END) {
            bool another = left >= 2 && z->next_in[0] == 0x1f && z->next_in[1] == 0x8b;
            if (!another && !zeros(z->next_in, left))
                return rt_fail(ctx, TIGA_E_FORMAT, "%s: garbage after the end of the gzip data (bytes: %lld)", to->name,
                               (long long)left);
            if (!another || inflateReset(z) != Z_OK)
                return TIGA_OK;
        } else if (result == Z_MEM_ERROR) {
            return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", to->name);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return fail_gzip(ctx, to, "the gzip data is damaged after this line");
        } else if (to->len == cap) {
            status = grow(ctx, to, &cap, cap * 2);
        } else if (left == 0) {
            return fail_gzip(ctx, to, "the gzip data is truncated, it ends in this line");
        }
        if (rt_interrupted(ctx))
            return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", to->name);
    }
    return status;
}

tiga_status rt_text_gunzip(tiga_context *ctx, rt_text *t) {
    rt_text to = {.name = t->name};
    z_stream z;
    memset(&z, 0, sizeof z);
    z.zalloc = zalloc;
    z.zfree = zfree;
    z.next_in = (Bytef *)t->data;
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", t->name);
    tiga_status status = inflate_all(ctx, &z, t, &to);
    inflateEnd(&z);
    if (status != TIGA_OK) {
        rt_text_fini(&to);
        return status;
    }
    base_free(t->data);
    *t = to;
    return TIGA_OK;
}

/* ---- errors ---- */
static int64_t line_of(const rt_text *t, int64_t at) {
    int64_t line = 1;
    const char *p = t->data, *end = t->data + at;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
        line++;
        p++;
    }
    return line;
}

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The word at `at`; the whole line when there is none. */
static void quote(const rt_text *t, int64_t at, base_str *out) {
    const char *p = t->data + at, *end = t->data + t->len;
    bool word = p < end && !blank(*p) && *p != '\n';
    while (!word && p > t->data && p[-1] != '\n')
        p--;
    int n = 0;
    for (; p < end && *p != '\n' && *p != '\r' && !(word && blank(*p)); p++) {
        if (++n > 48) {
            base_str_add(out, "...");
            return;
        }
        if ((unsigned char)*p < 32 || (unsigned char)*p > 126)
            base_str_addf(out, *p == '\t' ? " " : "\\x%02x", (unsigned char)*p);
        else
            base_str_add_n(out, p, 1);
    }
}

tiga_status rt_text_fail(tiga_context *ctx, tiga_status status, const rt_text *t, int64_t at, const char *fmt, ...) {
    base_str what = {0}, token = {0};
    va_list ap;
    va_start(ap, fmt);
    base_str_vaddf(&what, fmt, ap);
    va_end(ap);
    quote(t, at < t->len ? at : t->len, &token);
    if (what.failed || token.failed)
        status = TIGA_E_MEMORY;
    rt_fail(ctx, status, "%s:%lld: %s%s%s%s", t->name, (long long)line_of(t, at),
            what.failed ? "out of memory" : base_str_text(&what), token.len ? ": '" : "", base_str_text(&token),
            token.len ? "'" : "");
    base_str_fini(&what);
    base_str_fini(&token);
    return status;
}
