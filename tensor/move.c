/* Moving elements: what programs do not do.  Operands are REAL by now.  Copies go through one loop over strides, with its
 * axes put together where memory allows. */
#include "tensor/tensor.h"

#include <string.h>

/* ---- copies between strided arrays ---- */
typedef struct walk {
    int rank;
    int64_t shape[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK]; /* strides, in elements */
} walk;

/* Axes of one element go, neighbours that lie behind one another in both arrays become one. */
static walk simplified(int rank, const int64_t *shape, const int64_t *to, const int64_t *from) {
    walk w = {0};
    for (int i = 0; i < rank; i++) {
        if (shape[i] == 1)
            continue;
        int last = w.rank - 1;
        if (last >= 0 && w.to[last] == shape[i] * to[i] && w.from[last] == shape[i] * from[i]) {
            w.shape[last] *= shape[i];
            w.to[last] = to[i];
            w.from[last] = from[i];
            continue;
        }
        w.shape[w.rank] = shape[i];
        w.to[w.rank] = to[i];
        w.from[w.rank++] = from[i];
    }
    return w;
}

#define COPY_ROW(T)                                                                                                    \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((T *)to)[i * ts] = ((const T *)from)[i * fs];
typedef struct pair {
    uint64_t a, b;
} pair;

static void copy_row(char *to, int64_t ts, const char *from, int64_t fs, int64_t n, int64_t bytes) {
    if (ts == 1 && fs == 1)
        memcpy(to, from, (size_t)(n * bytes));
    else if (bytes == 1)
        COPY_ROW(uint8_t)
    else if (bytes == 2)
        COPY_ROW(uint16_t)
    else if (bytes == 4)
        COPY_ROW(uint32_t)
    else if (bytes == 8)
        COPY_ROW(uint64_t)
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * ts * bytes, from + i * fs * bytes, (size_t)bytes);
}

static void copy_axes(const walk *w, int axis, char *to, const char *from, int64_t bytes) {
    if (axis >= w->rank - 1) {
        copy_row(to, w->rank ? w->to[axis] : 1, from, w->rank ? w->from[axis] : 1, w->rank ? w->shape[axis] : 1, bytes);
        return;
    }
    for (int64_t i = 0; i < w->shape[axis]; i++)
        copy_axes(w, axis + 1, to + i * w->to[axis] * bytes, from + i * w->from[axis] * bytes, bytes);
}

/* Of the last two axes, each contiguous in one of the arrays: by tiles, so that both are read and written in lines. */
static void copy_turned(const walk *w, char *to, const char *from, int64_t bytes) {
    enum { TILE = 16 };
    walk tile = *w;
    for (int64_t i = 0; i < w->shape[0]; i += TILE)
        for (int64_t k = 0; k < w->shape[1]; k += TILE) {
            tile.shape[0] = w->shape[0] - i < TILE ? w->shape[0] - i : TILE;
            tile.shape[1] = w->shape[1] - k < TILE ? w->shape[1] - k : TILE;
            copy_axes(&tile, 0, to + (i * w->to[0] + k * w->to[1]) * bytes,
                      from + (i * w->from[0] + k * w->from[1]) * bytes, bytes);
        }
}

static void copy(int rank, const int64_t *shape, char *to, const int64_t *to_strides, const char *from,
                 const int64_t *from_strides, int64_t bytes) {
    for (int i = 0; i < rank; i++)
        if (shape[i] == 0)
            return;
    walk w = simplified(rank, shape, to_strides, from_strides);
    if (w.rank == 2 && (w.to[1] != 1 || w.from[1] != 1))
        copy_turned(&w, to, from, bytes);
    else
        copy_axes(&w, 0, to, from, bytes);
}

/* ---- REAL nodes ---- */
const void *tensor_memory(const tiga_tensor *x) {
    if (x->literal)
        return &x->value;
    return (const char *)x->buffer->data + x->offset * tiga_dtype_bytes(x->dtype);
}

static int64_t bytes_of(const tiga_tensor *x) { return tiga_tensor_size(x) * tiga_dtype_bytes(x->dtype); }

void tensor_become_real(tiga_tensor *x, tensor_buffer *b) {
    tensor_buffer_put(x->buffer);
    tensor_buffer_unpin(b);
    x->buffer = b;
    x->offset = 0;
    x->kind = TENSOR_REAL;
    x->literal = x->constant = x->weak = false;
    x->born |= x->stretch;
    tensor_dense_strides(x);
    if (x->wanted && !x->watched)
        tensor_drop_args(x);
}

/* bool, f16 ... literals keep their value where ir_store_scalar puts it. */
static void fill(tiga_tensor *x, tensor_buffer *b) {
    int64_t n = tiga_tensor_size(x), bytes = tiga_dtype_bytes(x->dtype);
    if (n == 0)
        return;
    ir_store_scalar((ir_dtype)x->dtype, b->data, 0, x->value);
    int64_t zero[1] = {0}, one[1] = {1};
    copy(1, &n, b->data, one, memcpy((char[16]){0}, b->data, (size_t)bytes), zero, bytes);
}

tiga_status tensor_densify(tiga_tensor *x) {
    if (x->weak) /* stays a number; its value can be looked at where it is */
        return TIGA_OK;
    if (x->computed && x->n_args)
        x->born |= x->stretch;
    if (tensor_is_dense(x) && !x->literal) {
        tensor_dense_strides(x);
        return TIGA_OK;
    }
    tensor_buffer *b;
    tiga_status status = tensor_pin(x);
    if (status != TIGA_OK)
        return status;
    status = tensor_buffer_new(x->ts, bytes_of(x), &b);
    if (status != TIGA_OK) {
        tensor_unpin(x);
        return status;
    }
    tiga_tensor dense = *x;
    tensor_dense_strides(&dense);
    if (x->literal)
        fill(x, b);
    else
        copy(x->rank, x->shape, b->data, dense.strides, tensor_memory(x), x->strides, tiga_dtype_bytes(x->dtype));
    x->ts->counters.copies += x->rank != 0;
    tensor_unpin(x);
    tensor_buffer_unpin(b);
    tensor_buffer_put(x->buffer);
    x->buffer = b;
    x->offset = 0;
    x->literal = x->constant = x->weak = false;
    tensor_dense_strides(x);
    return TIGA_OK;
}

/* ---- movements ---- */
static void run_concat(tiga_tensor *x, char *to) {
    tiga_tensor dense = *x;
    int64_t bytes = tiga_dtype_bytes(x->dtype), at = 0, zero[TENSOR_MAX_RANK] = {0};
    tensor_dense_strides(&dense);
    for (uint32_t i = 0; i < x->n_args; i++) {
        const tiga_tensor *a = x->args[i];
        char value[16] = {0};
        if (a->literal)
            ir_store_scalar((ir_dtype)a->dtype, value, 0, a->value);
        copy(a->rank, a->shape, to + at * dense.strides[x->attr[0]] * bytes, dense.strides,
             a->literal ? value : tensor_memory(a), a->literal ? zero : a->strides, bytes);
        at += a->shape[x->attr[0]];
    }
}

static void run_place(tiga_tensor *x, char *to) {
    const tiga_tensor *a = x->args[0];
    int64_t bytes = tiga_dtype_bytes(x->dtype), strides[TENSOR_MAX_RANK];
    tiga_tensor dense = *x;
    tensor_dense_strides(&dense);
    memcpy(strides, dense.strides, sizeof strides);
    strides[x->attr[0]] = tensor_times(strides[x->attr[0]], x->attr[2]);
    memset(to, 0, (size_t)bytes_of(x));
    copy(a->rank, a->shape, to + x->attr[1] * dense.strides[x->attr[0]] * bytes, strides, tensor_memory(a), a->strides,
         bytes);
}

/* Products of the axes before, behind and at `axis`. */
static void split(const tiga_tensor *x, int64_t axis, int64_t *outer, int64_t *n, int64_t *inner) {
    *outer = *inner = 1;
    *n = x->shape[axis];
    for (int i = 0; i < x->rank; i++)
        *(i < axis ? outer : inner) *= i == axis ? 1 : x->shape[i];
}

static int64_t in_range(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static void run_gather(const tiga_tensor *x, char *to) {
    const tiga_tensor *a = x->args[0], *index = x->args[1];
    int64_t outer, n, inner, m = tiga_tensor_size(index), bytes = tiga_dtype_bytes(x->dtype);
    const int64_t *at = tensor_memory(index);
    const char *from = tensor_memory(a);
    split(a, x->attr[0], &outer, &n, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < m; i++)
            memcpy(to + (o * m + i) * inner * bytes, from + (o * n + in_range(at[i], n)) * inner * bytes,
                   (size_t)(inner * bytes));
}

static int64_t parts_of(const tiga_tensor *x) { return ir_dtype_is_complex((ir_dtype)x->dtype) ? 2 : 1; }

/* In the order of the numbers, from 0. */
static void run_scatter(const tiga_tensor *x, char *to) {
    const tiga_tensor *a = x->args[0], *index = x->args[1];
    int64_t outer, n, inner, m = tiga_tensor_size(index);
    const int64_t *at = tensor_memory(index);
    memset(to, 0, (size_t)bytes_of(x));
    split(x, x->attr[0], &outer, &n, &inner);
    inner *= parts_of(x);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < m; i++) {
            int64_t to_at = (o * n + in_range(at[i], n)) * inner, from_at = (o * m + i) * inner;
            for (int64_t k = 0; k < inner; k++)
                if (x->dtype == TIGA_F64 || x->dtype == TIGA_C128)
                    ((double *)to)[to_at + k] += ((const double *)tensor_memory(a))[from_at + k];
                else
                    ((float *)to)[to_at + k] += ((const float *)tensor_memory(a))[from_at + k];
        }
}

#define CUMSUM(T, S)                                                                                                   \
    for (int64_t o = 0; o < outer; o++)                                                                                \
        for (int64_t k = 0; k < inner; k++) {                                                                          \
            S sum = 0;                                                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                int64_t at = (o * n + (reverse ? n - 1 - i : i)) * inner + k;                                          \
                sum += (S)((const T *)from)[at];                                                                       \
                ((T *)to)[at] = (T)sum;                                                                                \
            }                                                                                                          \
        }                                                                                                              \
    break;

static void run_cumsum(const tiga_tensor *x, char *to) {
    const char *from = tensor_memory(x->args[0]);
    bool reverse = x->attr[1] != 0;
    int64_t outer, n, inner;
    split(x, x->attr[0], &outer, &n, &inner);
    inner *= parts_of(x);
    switch (x->dtype) {
    case TIGA_F32:
    case TIGA_C64:
        CUMSUM(float, float)
    case TIGA_F64:
    case TIGA_C128:
        CUMSUM(double, double)
    case TIGA_I32:
        CUMSUM(int32_t, uint32_t)
    case TIGA_I64:
        CUMSUM(int64_t, uint64_t)
    case TIGA_I8:
        CUMSUM(int8_t, uint8_t)
    case TIGA_U8:
        CUMSUM(uint8_t, uint8_t)
    default:
        BASE_BUG("cumsum of %s", tiga_dtype_text(x->dtype));
    }
}

/* Strides alone, where they can: x shares the memory of its operand. */
static bool run_view(tiga_tensor *x, tiga_status *status) {
    tensor_move code = (tensor_move)x->code;
    tiga_tensor *a = x->args[0], *v = NULL;
    if (code != MOVE_RESHAPE && code != MOVE_PERMUTE && code != MOVE_SLICE && code != MOVE_ALIAS)
        return false;
    *status = tensor_densify(a); /* of an expression it is; a view of a view may stretch axes */
    if (*status == TIGA_OK)
        *status = tensor_view_of(code, a, x->rank, x->shape, x->attr, &v);
    if (*status != TIGA_OK)
        return true;
    memcpy(x->strides, v->strides, sizeof x->strides);
    x->offset = v->offset;
    x->buffer = tensor_buffer_retain(v->buffer);
    x->kind = TENSOR_REAL;
    x->how.how = TIGA_TENSOR_VIEW;
    tensor_free(v);
    if (x->wanted && !x->watched)
        tensor_drop_args(x);
    return true;
}

static tiga_status dense_operands(tiga_tensor *x) {
    for (uint32_t i = 0; i < x->n_args; i++) {
        bool any = x->code == MOVE_CONCAT || (x->code == MOVE_EXPAND && !x->args[i]->literal) ||
                   (x->code == MOVE_PLACE && !x->args[i]->literal);
        tiga_status status = any ? TIGA_OK : tensor_densify(x->args[i]);
        if (status != TIGA_OK)
            return status;
    }
    return TIGA_OK;
}

static void run_copy(tiga_tensor *x, char *to) {
    tiga_tensor dense = *x;
    tensor_dense_strides(&dense);
    switch ((tensor_move)x->code) {
    case MOVE_CONCAT:
        run_concat(x, to);
        break;
    case MOVE_PLACE:
        run_place(x, to);
        break;
    case MOVE_GATHER:
        run_gather(x, to);
        break;
    case MOVE_SCATTER:
        run_scatter(x, to);
        break;
    case MOVE_CUMSUM:
        run_cumsum(x, to);
        break;
    case MOVE_EXPAND:
        copy(x->rank, x->shape, to, dense.strides, tensor_memory(x->args[0]), x->args[0]->strides,
             tiga_dtype_bytes(x->dtype));
        break;
    case MOVE_NONE:
    case MOVE_RESHAPE:
    case MOVE_PERMUTE:
    case MOVE_SLICE:
    case MOVE_ALIAS:
    case MOVE_CALL:
        BASE_BUG("movement %d copies nothing", (int)x->code);
    }
}

/* Operands stay in memory from the first byte to the last. */
static tiga_status into_buffer(tiga_tensor *x, tensor_buffer **b) {
    *b = NULL;
    tiga_status status = tensor_pin_all(x->args, x->n_args);
    if (status != TIGA_OK)
        return status;
    status = tensor_buffer_new(x->ts, bytes_of(x), b);
    if (status == TIGA_OK && bytes_of(x) > 0)
        run_copy(x, (*b)->data);
    tensor_unpin_all(x->args, x->n_args);
    return status;
}

tiga_status tensor_move_run(tiga_tensor *x) {
    tiga_status status;
    tensor_buffer *b;
    if (run_view(x, &status))
        return status;
    status = dense_operands(x);
    if (status == TIGA_OK)
        status = into_buffer(x, &b);
    if (status != TIGA_OK)
        return status;
    x->ts->counters.copies++;
    x->how = (tiga_tensor_execution){.how = TIGA_TENSOR_COPIED, .bytes_written = bytes_of(x)};
    tensor_become_real(x, b);
    return TIGA_OK;
}
