/* Snapshots as read: the header when it is opened, a tensor when it is first wanted.  The file stays open, so what replaces
 * its path later is another snapshot.  .npy files are snapshots of one tensor, without checksums. */
#include "hierarchy_runtime/hr_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 8, LARGEST_HEADER = 1 << 30, NPY_HEAD = 1 << 20 };

tiga_snapshot *tiga_snapshot_retain(tiga_snapshot *s) {
    if (s)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void tiga_snapshot_free(tiga_snapshot *s) {
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < s->n; i++)
        base_free(s->entries[i].name);
    base_free(s->entries);
    base_free(s->all_sums);
    base_free(s->path);
    if (s->fd >= 0)
        close(s->fd);
    base_free(s);
}

static tiga_status fail_read(tiga_context *ctx, const tiga_snapshot *s) {
    if (errno == ENODATA)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: ends within its header", s->path);
    return hr_fail_errno(ctx, TIGA_E_FILE, s->path, "read");
}

static tiga_status open_npy(tiga_context *ctx, tiga_snapshot *s, int64_t file_bytes) {
    int64_t n = file_bytes < NPY_HEAD ? file_bytes : NPY_HEAD;
    char *head = base_alloc((size_t)n + 1);
    s->entries = base_alloc_zero(sizeof *s->entries);
    char *name = base_alloc_zero(1);
    if (!head || !s->entries || !name) {
        base_free(head);
        base_free(name);
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", s->path);
    }
    hr_entry *e = &s->entries[0];
    e->name = name;
    s->n = 1;
    head[n] = 0;
    rt_npy_header h;
    tiga_status status =
        base_file_pread_all(s->fd, head, (size_t)n, 0, 1) ? rt_npy_parse(ctx, s->path, head, n, &h) : fail_read(ctx, s);
    base_free(head);
    if (status != TIGA_OK)
        return status;
    if (h.dtype < 0 || (h.fortran && h.rank > 1))
        return rt_fail(ctx, TIGA_E_UNSUPPORTED, "%s: %s; read it with tiga_array_read_npy", s->path,
                       h.dtype < 0 ? "text" : "elements in Fortran order");
    e->dtype = h.dtype;
    e->rank = h.rank;
    memcpy(e->shape, h.shape, sizeof e->shape);
    e->at = h.data_at;
    if (!rt_shape_bytes(e->dtype, e->rank, e->shape, &e->bytes) || e->bytes != file_bytes - h.data_at)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: shape and size of the data differ", s->path);
    return TIGA_OK;
}

static tiga_status open_safetensors(tiga_context *ctx, tiga_snapshot *s, const char *length, int64_t file_bytes) {
    uint64_t n = 0;
    for (int i = 0; i < LENGTH; i++)
        n |= (uint64_t)(unsigned char)length[i] << (8 * i);
    if (n > (uint64_t)(file_bytes - LENGTH) || n > LARGEST_HEADER)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: not a safetensors file: its header would be %llu bytes long", s->path,
                       (unsigned long long)n);
    char *text = base_alloc((size_t)n + 1);
    if (!text)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", s->path);
    text[n] = 0;
    tiga_status status = base_file_pread_all(s->fd, text, (size_t)n, LENGTH, 1)
                             ? hr_safetensors_parse(ctx, s, text, (int64_t)n, file_bytes)
                             : fail_read(ctx, s);
    base_free(text);
    return status;
}

static tiga_status read_header(tiga_context *ctx, tiga_snapshot *s) {
    struct stat st;
    char length[LENGTH];
    if (base_file_injected() || fstat(s->fd, &st) != 0)
        return hr_fail_errno(ctx, TIGA_E_FILE, s->path, "stat");
    if (!S_ISREG(st.st_mode))
        return rt_fail(ctx, TIGA_E_FILE, "%s: not a regular file", s->path);
    if (!base_file_pread_all(s->fd, length, LENGTH, 0, 1))
        return fail_read(ctx, s);
    return memcmp(length, "\x93NUMPY", 6) == 0 ? open_npy(ctx, s, st.st_size)
                                               : open_safetensors(ctx, s, length, st.st_size);
}

tiga_status tiga_snapshot_open(tiga_context *ctx, const char *path, tiga_snapshot **out) {
    if (out)
        *out = NULL;
    if (!path || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_snapshot_open: an argument is NULL");
    tiga_snapshot *s = base_alloc_zero(sizeof *s);
    size_t n = strlen(path) + 1;
    if (!s || !(s->path = base_alloc(n))) {
        base_free(s);
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path);
    }
    memcpy(s->path, path, n);
    atomic_init(&s->refs, 1);
    s->fd = base_file_injected() ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tiga_status status = s->fd < 0 ? hr_fail_errno(ctx, TIGA_E_FILE, path, "open") : read_header(ctx, s);
    if (status == TIGA_OK)
        *out = s;
    else
        tiga_snapshot_free(s);
    return status;
}

int tiga_snapshot_count(const tiga_snapshot *s) { return s ? s->n : 0; }

int tiga_snapshot_find(const tiga_snapshot *s, const char *name) {
    for (int i = 0; s && name && i < s->n; i++)
        if (strcmp(s->entries[i].name, name) == 0)
            return i;
    return -1;
}

static tiga_status find(tiga_context *ctx, const tiga_snapshot *s, int i, const hr_entry **e) {
    if (!s || i < 0 || i >= s->n)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "the snapshot has no tensor %d", i);
    *e = &s->entries[i];
    if ((*e)->dtype < 0)
        return rt_fail(ctx, TIGA_E_TYPE, "%s: tensor '%s' is of a type that Tiga does not have, %s", s->path,
                       (*e)->name, (*e)->type);
    return TIGA_OK;
}

tiga_status tiga_snapshot_get(tiga_context *ctx, const tiga_snapshot *s, int i, tiga_tensor_view *out) {
    const hr_entry *e;
    if (!out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_snapshot_get: an argument is NULL");
    memset(out, 0, sizeof *out);
    tiga_status status = find(ctx, s, i, &e);
    if (status != TIGA_OK)
        return status;
    out->name = e->name;
    out->dtype = e->dtype;
    out->rank = e->rank;
    memcpy(out->shape, e->shape, sizeof e->shape);
    return TIGA_OK;
}

tiga_status tiga_snapshot_buffer(tiga_context *ctx, tiga_snapshot *s, int i, int32_t tier, tiga_buffer **out) {
    const hr_entry *e;
    if (out)
        *out = NULL;
    if (!ctx || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_snapshot_buffer: an argument is NULL");
    if (tier != TIGA_TIER_HOST && tier != TIGA_TIER_PINNED)
        return rt_fail(ctx, TIGA_E_UNSUPPORTED,
                       "tiga_snapshot_buffer: buffers live on the host here, not in the %s tier", tiga_tier_text(tier));
    tiga_status status = find(ctx, s, i, &e);
    if (status == TIGA_OK)
        status = hr_buffer_make(ctx, e->name, tier, e->bytes, out);
    if (status != TIGA_OK)
        return status;
    (*out)->file = tiga_snapshot_retain(s);
    (*out)->entry = i;
    return TIGA_OK;
}

tiga_status hr_snapshot_read(tiga_context *ctx, const tiga_snapshot *s, int entry, int64_t page, int64_t n_bytes,
                             void *to, const char *what) {
    const hr_entry *e = &s->entries[entry];
    hr_reading r = {
        .fd = s->fd, .at = e->at + page * HR_PAGE, .sums = e->sums ? e->sums + page : NULL, .path = s->path};
    tiga_status status = hr_transfer_read(ctx, &r, to, n_bytes, what);
    if (status == TIGA_OK && e->dtype == TIGA_BOOL) /* others write what they like */
        for (int64_t i = 0; i < n_bytes; i++)
            ((uint8_t *)to)[i] = ((uint8_t *)to)[i] != 0;
    return status;
}

tiga_status hr_snapshot_pull(tiga_context *ctx, const tiga_snapshot *s, int entry, void *to, const char *what) {
    return hr_snapshot_read(ctx, s, entry, 0, s->entries[entry].bytes, to, what);
}
