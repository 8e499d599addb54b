/* Snapshots as written: data page by page, checksummed on the way, the header last, and all of it under a temporary name
 * until it is on the disk.  Wider elements come first, so that each tensor is aligned to its own.
 *
 * What is on disk already goes from there to the file in chunks: saving needs no memory for it, unless its elements are wanted
 * in another order than they lie in.
 *
 * Large dense tensors that begin at a whole unit of the file (the first one does) are written with O_DIRECT by several
 * threads; the zeros behind the last one's end are written over by the next tensor, or cut off. */
#include "hierarchy_runtime/hr_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FLUSH_BYTES = 8 << 20,
    CHUNK_PAGES = 8,
    CHUNK_BYTES = CHUNK_PAGES * HR_PAGE,
    WINDOW_BYTES = CHUNK_BYTES + HR_PAGE
};

typedef struct saving {
    tiga_context *ctx;
    hr_layout layout;
    bool npy;
    base_str header;
    uint64_t *sums; /* [n_pages], by place */
    const char *path;
    int direct; /* the same file with O_DIRECT; -1: not open */
    int64_t flushed, written; /* of the file */
    tiga_status status; /* of what is no system call */
    bool *taken; /* or NULL: set, and nothing said, when the path has come to exist */
} saving;

/* ---- which elements ---- */

static tiga_status fail_view(tiga_context *ctx, const tiga_tensor_view *t, const char *why) {
    return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_save: tensor '%s': %s", t->name ? t->name : "", why);
}

/* First and last byte that strides reach, from `offset`.  false: overflow. */
static bool reach(const tiga_tensor_view *t, int64_t *low, int64_t *high) {
    int64_t size = tiga_dtype_bytes(t->dtype), span;
    *low = t->offset;
    if (__builtin_add_overflow(t->offset, size, high))
        return false;
    for (int d = 0; d < t->rank; d++) {
        if (__builtin_mul_overflow(t->strides[d], t->shape[d] - 1, &span) || __builtin_mul_overflow(span, size, &span))
            return false;
        if (span < 0 ? __builtin_add_overflow(*low, span, low) : __builtin_add_overflow(*high, span, high))
            return false;
    }
    return true;
}

static tiga_status check_view(tiga_context *ctx, const tiga_tensor_view *t, int64_t *bytes) {
    int64_t low = t->offset, high;
    if (!rt_shape_bytes(t->dtype, t->rank, t->shape, bytes))
        return fail_view(ctx, t, "not a shape");
    if (*bytes == 0)
        return TIGA_OK;
    if (t->strides ? !reach(t, &low, &high) : __builtin_add_overflow(t->offset, *bytes, &high))
        return fail_view(ctx, t, "its elements lie outside of any memory");
    if (t->buffer ? low < 0 || high > t->buffer->bytes : !t->data)
        return fail_view(ctx, t, t->buffer ? "its elements lie outside of its buffer" : "it has no data");
    return TIGA_OK;
}

/* ---- layout ---- */

static tiga_status make_layout(tiga_context *ctx, hr_layout *l) {
    size_t n = (size_t)l->n + 1;
    l->order = base_alloc(n * sizeof *l->order);
    l->bytes = base_alloc(n * sizeof *l->bytes);
    l->at = base_alloc(n * sizeof *l->at);
    if (!l->order || !l->bytes || !l->at)
        return rt_fail(ctx, TIGA_E_MEMORY, "tiga_save: out of memory");
    int64_t at = 0;
    int placed = 0;
    for (int i = 0; i < l->n; i++) {
        tiga_status status = check_view(ctx, &l->tensors[i], &l->bytes[i]);
        if (status != TIGA_OK)
            return status;
        l->n_pages += hr_pages(l->bytes[i]);
    }
    for (int32_t size = 16; size > 0; size /= 2)
        for (int i = 0; i < l->n; i++)
            if (tiga_dtype_bytes(l->tensors[i].dtype) == size) {
                l->order[placed++] = i;
                l->at[i] = at;
                if (__builtin_add_overflow(at, l->bytes[i], &at))
                    return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_save: more bytes than a file can hold");
            }
    return TIGA_OK;
}

/* ---- data ---- */

typedef struct gather { /* the next element of a view with strides, at byte `at` of its buffer */
    const tiga_tensor_view *t;
    const char *base; /* byte `first` */
    int64_t first, low, high; /* which bytes are in memory */
    char *window; /* for those; NULL: all are */
    int64_t index[7], at, size;
} gather;

/* With CHUNK_PAGES and one of the buffer's pages from where the next element is. */
static bool move_window(saving *v, gather *g) {
    int64_t first = g->at / HR_PAGE, whole = tiga_buffer_bytes(g->t->buffer);
    g->first = g->low = first * HR_PAGE;
    g->high = whole - g->low < WINDOW_BYTES ? whole : g->low + WINDOW_BYTES;
    g->base = g->window;
    v->status = hr_away_read(v->ctx, g->t->buffer, first, g->high - g->low, g->window);
    return v->status == TIGA_OK;
}

static bool gather_page(saving *v, gather *g, char *to, int64_t n_bytes) {
    const tiga_tensor_view *t = g->t;
    for (int64_t k = 0; k < n_bytes; k += g->size) {
        if ((g->at < g->low || g->at > g->high - g->size) && !move_window(v, g))
            return false;
        memcpy(to + k, g->base + (g->at - g->first), (size_t)g->size);
        for (int d = t->rank - 1; d >= 0; d--) {
            if (t->shape[d] == 1) /* its stride may be any number */
                continue;
            g->at += t->strides[d] * g->size;
            if (++g->index[d] < t->shape[d])
                break;
            g->at -= t->strides[d] * t->shape[d] * g->size;
            g->index[d] = 0;
        }
    }
    return true;
}

/* Whether elements follow each other upwards, so that one window passes over them once. */
static bool ascends(const tiga_tensor_view *t) {
    int64_t size = tiga_dtype_bytes(t->dtype), span = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->shape[d] == 1)
            continue;
        if (t->strides[d] < span)
            return false;
        span = t->strides[d] * t->shape[d]; /* within the buffer, or just behind */
    }
    return span <= INT64_MAX / size;
}

/* Starts what was written on its way to the disk, so that the last sync finds little left. */
static void flush_behind(saving *v, int fd, int64_t end) {
    v->written = end;
#ifdef SYNC_FILE_RANGE_WRITE
    if (v->written - v->flushed >= FLUSH_BYTES) {
        (void)sync_file_range(fd, v->flushed, v->written - v->flushed, SYNC_FILE_RANGE_WRITE); /* advice */
        v->flushed = v->written;
    }
#else
    (void)fd;
#endif
}

/* Dense bytes that lie together, a part of tensor i that begins at a page of it. */
static bool write_part(saving *v, int fd, int i, const char *data, int64_t n_bytes, int64_t page, uint64_t *sums) {
    int64_t at = (int64_t)v->header.len + v->layout.at[i] + page * HR_PAGE;
    if (v->direct >= 0 && at % HR_UNIT == 0) {
        hr_writing w = {.fd = v->direct, .at = at, .sums = sums + page, .path = v->path};
        v->status = hr_transfer_write(v->ctx, &w, data, n_bytes, v->layout.tensors[i].name);
        return v->status == TIGA_OK;
    }
    for (int64_t k = 0; k < hr_pages(n_bytes); k++)
        sums[page + k] = hr_checksum(data + k * HR_PAGE, hr_page_bytes(n_bytes, k));
    bool good = base_file_pwrite_all(fd, data, (size_t)n_bytes, at, 1);
    if (good)
        flush_behind(v, fd, at + n_bytes);
    return good;
}

/* Page by page. stage: for one, where there are strides. */
static bool write_pages(saving *v, int fd, int i, gather *g, char *stage, uint64_t *sums) {
    int64_t bytes = v->layout.bytes[i], at = (int64_t)v->header.len + v->layout.at[i];
    for (int64_t page = 0; page < hr_pages(bytes); page++) {
        int64_t n = hr_page_bytes(bytes, page);
        const char *from = g->t->strides ? stage : g->base + page * HR_PAGE;
        if (g->t->strides && !gather_page(v, g, stage, n))
            return false;
        sums[page] = hr_checksum(from, n);
        if (!base_file_pwrite_all(fd, from, (size_t)n, at + page * HR_PAGE, 1))
            return false;
        flush_behind(v, fd, at + page * HR_PAGE + n);
    }
    return true;
}

/* From memory that stays for the time, where `data` is the first element. */
static bool write_view(saving *v, int fd, int i, const char *data, char *stage, uint64_t *sums) {
    const tiga_tensor_view *t = &v->layout.tensors[i];
    int64_t bytes = v->layout.bytes[i], at = (int64_t)v->header.len + v->layout.at[i];
    gather g = {.t = t, .base = data, .low = INT64_MIN, .high = INT64_MAX, .size = tiga_dtype_bytes(t->dtype)};
    if (!t->strides && v->direct >= 0 && bytes >= HR_PAGE && at % HR_UNIT == 0)
        return write_part(v, fd, i, data, bytes, 0, sums);
    return write_pages(v, fd, i, &g, stage, sums);
}

/* A dense view of a buffer that is on disk.  The part of the buffer's pages that a chunk needs is read; at most one of them
 * twice. */
static bool write_chunks(saving *v, int fd, int i, char *window, uint64_t *sums) {
    const tiga_tensor_view *t = &v->layout.tensors[i];
    int64_t bytes = v->layout.bytes[i], whole = tiga_buffer_bytes(t->buffer);
    bool good = true;
    for (int64_t done = 0; good && done < bytes; done += CHUNK_BYTES) {
        int64_t n = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        int64_t first = (t->offset + done) / HR_PAGE, end = hr_pages(t->offset + done + n) * HR_PAGE;
        int64_t need = (end < whole ? end : whole) - first * HR_PAGE;
        v->status = hr_away_read(v->ctx, t->buffer, first, need, window);
        good = v->status == TIGA_OK &&
               write_part(v, fd, i, window + (t->offset + done - first * HR_PAGE), n, done / HR_PAGE, sums);
    }
    return good;
}

/* What is on disk goes from there to the file in chunks, so a value that does not fit into memory can be saved. */
static bool write_away(saving *v, int fd, int i, char *stage, uint64_t *sums) {
    const tiga_tensor_view *t = &v->layout.tensors[i];
    void *block = base_alloc(WINDOW_BYTES + HR_UNIT);
    char *window = (char *)(((uintptr_t)block + HR_UNIT - 1) & ~(uintptr_t)(HR_UNIT - 1));
    gather g = {.t = t, .window = window, .at = t->offset, .size = tiga_dtype_bytes(t->dtype)};
    bool good = block != NULL;
    if (!good)
        errno = ENOMEM;
    good = good && (t->strides ? write_pages(v, fd, i, &g, stage, sums) : write_chunks(v, fd, i, window, sums));
    int saved = errno;
    base_free(block);
    errno = saved;
    return good;
}

static bool write_tensor(saving *v, int fd, int i, char *stage, uint64_t *sums) {
    const tiga_tensor_view *t = &v->layout.tensors[i];
    if (v->layout.bytes[i] == 0)
        return true;
    if (!t->buffer)
        return write_view(v, fd, i, (const char *)t->data + t->offset, stage, sums);
    if ((!t->strides || ascends(t)) && hr_away_begin(t->buffer)) {
        bool good = write_away(v, fd, i, stage, sums);
        int saved = errno;
        hr_away_end(t->buffer);
        errno = saved;
        return good;
    }
    tiga_pin pin;
    v->status = tiga_buffer_pin(v->ctx, t->buffer, TIGA_READ, &pin);
    if (v->status != TIGA_OK)
        return false;
    bool good = write_view(v, fd, i, (const char *)pin.data + t->offset, stage, sums);
    int saved = errno;
    tiga_buffer_unpin(&pin);
    errno = saved;
    return good;
}

static int64_t file_bytes(const saving *v) {
    int64_t n = (int64_t)v->header.len;
    for (int i = 0; i < v->layout.n; i++)
        n += v->layout.bytes[i];
    return n;
}

/* Room for all of it at once: a full disk is seen before any work, and threads write side by side.  false: errno. */
static bool reserve(int fd, int64_t n_bytes) {
    int e;
    do {
        if (base_file_injected())
            e = errno;
        else
            e = fallocate(fd, 0, 0, n_bytes) == 0 ? 0 : errno;
    } while (e == EINTR);
    errno = e;
    return e == 0 || e == EOPNOTSUPP || e == ENOSYS;
}

static void open_direct(saving *v, int fd) {
    v->direct = -1;
#ifdef O_DIRECT
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (v->layout.n_pages > v->layout.n && !base_file_injected())
        v->direct = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC); /* not to be had: the page cache does */
#else
    (void)fd;
#endif
}

/* The header, and nothing behind the last tensor. */
static bool finish_file(saving *v, int fd) {
    if (!v->npy)
        hr_safetensors_seal(&v->header, v->sums, v->layout.n_pages);
    return base_file_pwrite_all(fd, v->header.data, v->header.len, 0, 1) && !base_file_injected() &&
           ftruncate(fd, file_bytes(v)) == 0;
}

static bool fill(void *user, int fd) {
    saving *v = user;
    uint64_t *sums = v->sums;
    char *stage = base_alloc(HR_PAGE);
    bool good = stage != NULL;
    if (!good)
        errno = ENOMEM;
    good = good && reserve(fd, file_bytes(v));
    int saved = errno;
    open_direct(v, fd);
    errno = saved;
    for (int k = 0; good && k < v->layout.n; k++) {
        int i = v->layout.order[k];
        good = write_tensor(v, fd, i, stage, sums);
        sums += hr_pages(v->layout.bytes[i]);
    }
    saved = errno;
    base_free(stage);
    if (v->direct >= 0)
        close(v->direct);
    errno = saved;
    return good && finish_file(v, fd);
}

static tiga_status write_file(saving *v, const char *path, bool keep) {
    base_str err = {0};
    int error;
    base_file_sweep(path);
    base_writer w = {.fill = fill, .user = v, .keep = keep};
    bool good = base_file_write_with(path, &w, &error, &err);
    tiga_status status = good ? TIGA_OK : v->status != TIGA_OK ? v->status : TIGA_E_FILE;
    if (!good && error == ENOMEM && v->status == TIGA_OK)
        status = TIGA_E_MEMORY;
    if (v->taken && keep)
        *v->taken = !good && error == EEXIST;
    if (!good && !(v->taken && *v->taken))
        rt_fail(v->ctx, status, "%s", err.failed ? path : base_str_text(&err));
    base_str_fini(&err);
    return status;
}

static bool ends_in_npy(const char *path) {
    size_t n = strlen(path);
    return n >= 4 && !strcmp(path + n - 4, ".npy");
}

static tiga_status make_header(saving *v) {
    const tiga_tensor_view *t = v->layout.tensors;
    if (!v->npy)
        return hr_safetensors_header(v->ctx, &v->layout, &v->header);
    if (v->layout.n != 1)
        return rt_fail(v->ctx, TIGA_E_ARGUMENT, "tiga_save: %s: a .npy file holds one tensor, not %d", v->path,
                       v->layout.n);
    return rt_npy_write_header(&v->header, t->dtype, t->rank, t->shape)
               ? TIGA_OK
               : rt_fail(v->ctx, TIGA_E_MEMORY, "tiga_save: out of memory");
}

static tiga_status save(saving *v, int overwrite) {
    tiga_context *ctx = v->ctx;
    v->direct = -1;
    v->npy = ends_in_npy(v->path);
    tiga_status status = make_layout(ctx, &v->layout);
    if (status == TIGA_OK)
        status = make_header(v);
    if (status == TIGA_OK && !(v->sums = base_alloc(((size_t)v->layout.n_pages + 1) * sizeof *v->sums)))
        status = rt_fail(ctx, TIGA_E_MEMORY, "tiga_save: out of memory");
    if (status == TIGA_OK)
        status = write_file(v, v->path, !overwrite);
    base_free(v->sums);
    base_free(v->layout.order);
    base_free(v->layout.bytes);
    base_free(v->layout.at);
    base_str_fini(&v->header);
    return status;
}

tiga_status tiga_save(tiga_context *ctx, const char *path, const tiga_tensor_view *tensors, int n, int overwrite) {
    if (!ctx || !path || n < 0 || (n && !tensors))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_save: an argument is NULL, or a count negative");
    saving v = {.ctx = ctx, .path = path, .layout = {.tensors = tensors, .n = n}};
    return save(&v, overwrite);
}

tiga_status hr_save_new(tiga_context *ctx, const char *path, const tiga_tensor_view *tensor, bool *taken) {
    saving v = {.ctx = ctx, .path = path, .layout = {.tensors = tensor, .n = 1}, .taken = taken};
    *taken = false;
    return save(&v, 0);
}
