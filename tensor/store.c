/* Where the value of a tensor is, and files: residency, snapshots, the named store.  The work is done by tiga_buffer and
 * tiga_snapshot; here it is said which of them a tensor has. */
#include "tensor/tensor.h"

#include <string.h>

static tiga_buffer *managed_of(const tiga_tensor *x) { return x->buffer ? x->buffer->managed : NULL; }

/* ---- residency ---- */
tiga_status tiga_tensor_residency(const tiga_tensor *x, tiga_residency *out, int32_t *storage) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (!x || !out)
        return x ? tensor_fail(x->ts, TIGA_E_ARGUMENT, "tiga_tensor_residency: out is NULL") : TIGA_E_ARGUMENT;
    tiga_buffer *b = managed_of(x);
    if (storage)
        *storage = b ? TIGA_STORAGE_BUFFER : x->buffer ? TIGA_STORAGE_GIVEN : TIGA_STORAGE_NONE;
    if (b)
        return tiga_buffer_residency(b, out);
    *out = (tiga_residency){
        .tier = TIGA_TIER_HOST, .resident = x->kind == TENSOR_REAL, .bytes = x->buffer ? x->buffer->bytes : 0};
    return TIGA_OK;
}

static tiga_status fail_given(const tiga_tensor *x, const char *who) {
    return tensor_fail(x->ts, TIGA_E_UNSUPPORTED,
                       "%s: the memory of this tensor is the caller's, and stays; copy it first", who);
}

tiga_status tiga_tensor_spill(tiga_tensor *x) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (!x)
        return TIGA_E_ARGUMENT;
    tiga_status status = tensor_compute(&x, 1);
    if (status != TIGA_OK || !x->buffer)
        return status;
    if (!managed_of(x))
        return fail_given(x, "tiga_tensor_spill");
    bool looked = x->looked;
    const tiga_array *again;
    tensor_hide(x);
    status = tiga_buffer_spill(x->ts->ctx, managed_of(x));
    if (status != TIGA_OK && looked) /* it is where it was, and is to stay there */
        (void)tiga_tensor_data(x, &again);
    return status;
}

tiga_status tiga_tensor_prefetch(tiga_tensor *x) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (!x)
        return TIGA_E_ARGUMENT;
    return managed_of(x) ? tiga_buffer_prefetch(x->ts->ctx, managed_of(x), NULL) : TIGA_OK;
}

tiga_status tiga_tensor_to(tiga_tensor *x, const char *device, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensors *ts = tensor_begin(x, out, "tiga_tensor_to");
    if (!ts || !device)
        return ts ? tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_to: the device is NULL") : TIGA_E_ARGUMENT;
    if (strcmp(device, "cpu") != 0)
        return tensor_fail(ts, TIGA_E_UNSUPPORTED, "tiga_tensor_to: this runtime has no device '%.40s', only 'cpu'",
                           device);
    tiga_status status = tiga_tensor_realize(&x, 1);
    if (status == TIGA_OK)
        *out = tensor_retain(x);
    return status;
}

/* ---- writing ---- */
typedef struct scalar_bytes {
    char of[16];
} scalar_bytes;

/* Of what is REAL; value: where the element of a literal is put. */
static void view_of(const tiga_tensor *x, const char *name, scalar_bytes *value, tiga_tensor_view *t) {
    *t = (tiga_tensor_view){.name = name, .dtype = x->dtype, .rank = x->rank, .strides = x->strides};
    memcpy(t->shape, x->shape, sizeof t->shape);
    if (x->literal) {
        ir_store_scalar((ir_dtype)x->dtype, value->of, 0, x->value);
        t->data = value->of;
        return;
    }
    t->buffer = managed_of(x);
    t->data = t->buffer ? NULL : x->buffer->data;
    t->offset = x->offset * tiga_dtype_bytes(x->dtype);
    if (tensor_is_dense(x)) /* strides of axes of one element may be anything */
        t->strides = NULL;
}

tiga_status tiga_tensor_save(const char *path, const char *const *names, tiga_tensor *const *xs, int n, int overwrite) {
    TENSOR_TURN(tensor_home_first(xs, n));
    static const char *const x = "x";
    tiga_tensors *ts = tensor_home_of(xs, n, "tiga_tensor_save");
    if (!ts || !path || (!names && n != 1))
        return ts ? tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_save: the path or the names are NULL")
                  : TIGA_E_ARGUMENT;
    tiga_status status = tensor_compute(xs, n);
    if (status != TIGA_OK)
        return status;
    tiga_tensor_view *views = base_alloc((size_t)n * (sizeof *views + sizeof(scalar_bytes)));
    if (!views)
        return tensor_fail(ts, TIGA_E_MEMORY, "tiga_tensor_save: out of memory");
    scalar_bytes *values = (void *)(views + n);
    for (int i = 0; i < n; i++)
        view_of(xs[i], names ? names[i] : x, &values[i], &views[i]);
    status = tiga_save(ts->ctx, path, views, n, overwrite);
    base_free(views);
    return status;
}

/* ---- reading ---- */
tiga_status tiga_tensor_load(tiga_tensors *ts, tiga_snapshot *s, int i, tiga_tensor **out) {
    TENSOR_TURN(ts);
    if (out)
        *out = NULL;
    if (!ts || !s || !out)
        return ts ? tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_load: an argument is NULL") : TIGA_E_ARGUMENT;
    tiga_tensor_view t;
    tiga_buffer *managed = NULL;
    tiga_status status = tiga_snapshot_get(ts->ctx, s, i, &t);
    if (status == TIGA_OK)
        status = tiga_snapshot_buffer(ts->ctx, s, i, TIGA_TIER_HOST, &managed);
    if (status != TIGA_OK)
        return status;
    tiga_tensor *x = tensor_new(ts, TENSOR_REAL, t.dtype, t.rank, t.shape);
    tensor_buffer *b = x ? tensor_buffer_take(ts, managed) : NULL;
    if (!b) {
        tiga_buffer_free(managed);
        tensor_free(x);
        return TIGA_E_MEMORY;
    }
    x->buffer = b;
    x->how.how = TIGA_TENSOR_GIVEN;
    tensor_dense_strides(x);
    *out = x;
    return TIGA_OK;
}

static tiga_status find_entry(tiga_tensors *ts, const tiga_snapshot *s, const char *path, const char *name,
                              int *entry) {
    int n = tiga_snapshot_count(s);
    *entry = name ? tiga_snapshot_find(s, name) : 0;
    if (!name && n != 1)
        return tensor_fail(ts, TIGA_E_ARGUMENT, "%s holds %d tensors; say which by name", path, n);
    if (*entry < 0)
        return tensor_fail(ts, TIGA_E_NAME, "%s holds no tensor named '%.100s'", path, name);
    return TIGA_OK;
}

tiga_status tiga_tensor_load_file(tiga_tensors *ts, const char *path, const char *name, tiga_tensor **out) {
    TENSOR_TURN(ts);
    if (out)
        *out = NULL;
    if (!ts || !path || !out)
        return ts ? tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_load_file: an argument is NULL") : TIGA_E_ARGUMENT;
    tiga_snapshot *s;
    int entry;
    tiga_status status = tiga_snapshot_open(ts->ctx, path, &s);
    if (status != TIGA_OK)
        return status;
    status = find_entry(ts, s, path, name, &entry);
    if (status == TIGA_OK)
        status = tiga_tensor_load(ts, s, entry, out);
    tiga_snapshot_free(s);
    return status;
}

/* ---- the named store ---- */
tiga_status tiga_tensor_from_disk(tiga_tensors *ts, const char *name, tiga_tensor **out) {
    TENSOR_TURN(ts);
    if (out)
        *out = NULL;
    if (!ts || !name || !out)
        return ts ? tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_from_disk: an argument is NULL") : TIGA_E_ARGUMENT;
    tiga_snapshot *s;
    tiga_status status = tiga_store_get(ts->ctx, name, &s);
    if (status != TIGA_OK)
        return status;
    status = tiga_tensor_load(ts, s, 0, out);
    tiga_snapshot_free(s);
    return status;
}

/* x lies where it was stored from now on.  Other views keep the memory they share. */
static void attach(tiga_tensor *x, tiga_tensor *stored) {
    tensor_buffer *b = stored->buffer;
    stored->buffer = x->buffer;
    x->buffer = b;
    x->offset = 0;
    tensor_dense_strides(x);
}

tiga_status tiga_tensor_disk(tiga_tensor *x, const char *name) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (!name)
        return tiga_tensor_spill(x);
    tiga_status status = x ? tensor_compute(&x, 1) : TIGA_E_ARGUMENT;
    if (status != TIGA_OK)
        return status;
    tiga_tensors *ts = x->ts;
    tiga_tensor_view t;
    scalar_bytes value;
    view_of(x, name, &value, &t);
    status = tiga_store_put(ts->ctx, name, &t);
    if (status != TIGA_OK || !managed_of(x))
        return status;
    tiga_tensor *stored;
    status = tiga_tensor_from_disk(ts, name, &stored);
    if (status != TIGA_OK) { /* all or nothing */
        (void)tiga_store_remove(ts->ctx, name);
        return status;
    }
    tensor_hide(x);
    attach(x, stored);
    tensor_free(stored);
    return TIGA_OK;
}
