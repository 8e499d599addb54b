/* Values that are there from the beginning. */
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

static bool complete(tiga_tensors *ts, const void *a, tiga_tensor **out, const char *who) {
    if (out)
        *out = NULL;
    if (ts && a && out)
        return true;
    if (ts)
        tensor_fail(ts, TIGA_E_ARGUMENT, "%s: an argument is NULL", who);
    return false;
}

static tiga_status give(tiga_tensor *x, tiga_tensor **out) {
    *out = x;
    return x ? TIGA_OK : TIGA_E_MEMORY; /* arguments are checked before */
}

/* ---- arrays ---- */
static tiga_status on_buffer(tiga_tensors *ts, const tiga_array *a, tensor_buffer *b, tiga_tensor **out) {
    tiga_tensor *x = b ? tensor_new(ts, TENSOR_REAL, a->dtype, a->rank, a->shape) : NULL;
    if (!x) {
        if (b)
            b->release = NULL; /* what was given stays the caller's */
        tensor_buffer_put(b);
        return TIGA_E_MEMORY;
    }
    x->buffer = b;
    x->how.how = TIGA_TENSOR_GIVEN;
    tensor_dense_strides(x);
    return give(x, out);
}

static bool check_array(tiga_tensors *ts, const tiga_array *a, const char *who, int64_t *bytes) {
    int64_t n = tensor_count(a->dtype, a->rank, a->shape);
    *bytes = n * tiga_dtype_bytes(a->dtype);
    int32_t part = a->dtype == TIGA_C64 || a->dtype == TIGA_C128 ? 2 : 1;
    if (n >= 0 && (n == 0 || (a->data && (uintptr_t)a->data % (uintptr_t)(tiga_dtype_bytes(a->dtype) / part) == 0)))
        return true;
    tensor_fail(ts, TIGA_E_ARGUMENT, "%s: the array has no shape, no memory, or is not aligned to its elements", who);
    return false;
}

tiga_status tiga_tensor_from(tiga_tensors *ts, const tiga_array *a, int mode, tiga_tensor **out) {
    TENSOR_TURN(ts);
    int64_t bytes;
    if (!complete(ts, a, out, "tiga_tensor_from") || !check_array(ts, a, "tiga_tensor_from", &bytes))
        return TIGA_E_ARGUMENT;
    if (mode == TIGA_BORROW)
        return on_buffer(ts, a, tensor_buffer_given(ts, a->data, bytes, NULL, NULL), out);
    tensor_buffer *b;
    tiga_status status = tensor_buffer_new(ts, bytes, &b);
    if (status != TIGA_OK)
        return status;
    base_copy(b->data, a->data, (size_t)bytes);
    tensor_buffer_unpin(b);
    return on_buffer(ts, a, b, out);
}

tiga_status tiga_tensor_from_owned(tiga_tensors *ts, const tiga_array *a, void *owner, void (*release)(void *owner),
                                   tiga_tensor **out) {
    TENSOR_TURN(ts);
    int64_t bytes;
    if (!complete(ts, a, out, "tiga_tensor_from_owned") || !check_array(ts, a, "tiga_tensor_from_owned", &bytes))
        return TIGA_E_ARGUMENT;
    return on_buffer(ts, a, tensor_buffer_given(ts, a->data, bytes, owner, release), out);
}

/* ---- numbers ---- */
tiga_tensor *tensor_literal(tiga_tensors *ts, int32_t dtype, int32_t rank, const int64_t *shape, ir_scalar_value v) {
    tiga_tensor *x = tensor_new(ts, TENSOR_REAL, dtype, rank, shape);
    if (!x)
        return NULL;
    x->literal = true;
    x->value = v;
    x->how.how = TIGA_TENSOR_GIVEN;
    for (int i = 0; i < rank; i++)
        x->stretch |= (uint8_t)((shape[i] != 1) << i);
    return x;
}

static ir_scalar_value converted(int32_t dtype, double v) {
    return ir_eval(IR_CAST, IR_F64, (ir_dtype)dtype, &(ir_scalar_value){.d = v});
}

/* Worth to be known when code is made: whole ones, and those that are exact and frequent. */
static bool is_plain(double v) {
    return (v == floor(v) && fabs(v) <= 16) || fabs(v) == 0.5 || fabs(v) == 0.25 || fabs(v) == 0.125;
}

static tiga_tensor *number(tiga_tensors *ts, int32_t dtype, double v) {
    tiga_tensor *x = tensor_literal(ts, dtype, 0, NULL, converted(dtype, v));
    if (x)
        x->constant = is_plain(v);
    return x;
}

tiga_status tiga_tensor_number(tiga_tensors *ts, double value, tiga_tensor **out) {
    TENSOR_TURN(ts);
    if (!complete(ts, ts, out, "tiga_tensor_number"))
        return TIGA_E_ARGUMENT;
    tiga_tensor *x = number(ts, TIGA_F64, value);
    if (x)
        x->weak = true;
    return give(x, out);
}

tiga_status tiga_tensor_integer(tiga_tensors *ts, int64_t value, tiga_tensor **out) {
    TENSOR_TURN(ts);
    if (!complete(ts, ts, out, "tiga_tensor_integer"))
        return TIGA_E_ARGUMENT;
    tiga_tensor *x = tensor_literal(ts, TIGA_I64, 0, NULL, (ir_scalar_value){.i = value});
    if (x) {
        x->weak = true;
        x->constant = value >= -16 && value <= 16;
    }
    return give(x, out);
}

tiga_status tensor_adopt(const tiga_tensor *n, int32_t dtype, tiga_tensor **out) {
    double v = n->dtype == TIGA_I64 ? (double)n->value.i : n->value.d;
    if (ir_dtype_is_int((ir_dtype)dtype) && n->dtype != TIGA_I64 && v != floor(v))
        return tensor_fail(n->ts, TIGA_E_TYPE, "%g is no %s; cast the other operand", v, tiga_dtype_text(dtype));
    if (dtype == TIGA_BOOL)
        return tensor_fail(n->ts, TIGA_E_TYPE, "a number and a bool; compare, or cast the other operand");
    ir_scalar_value exact = ir_eval(IR_CAST, (ir_dtype)n->dtype, (ir_dtype)dtype, &n->value);
    *out = tensor_literal(n->ts, dtype, 0, NULL, exact);
    if (!*out)
        return TIGA_E_MEMORY;
    (*out)->constant = n->constant;
    return TIGA_OK;
}

tiga_status tensor_settle(tiga_tensor *x, tiga_tensor **out) {
    if (x->weak)
        return tensor_adopt(x, x->dtype == TIGA_I64 ? TIGA_I64 : TIGA_F32, out);
    *out = tensor_retain(x);
    return TIGA_OK;
}

tiga_status tiga_tensor_full(tiga_tensors *ts, int32_t dtype, int32_t rank, const int64_t *shape, double value,
                             tiga_tensor **out) {
    TENSOR_TURN(ts);
    if (!complete(ts, ts, out, "tiga_tensor_full"))
        return TIGA_E_ARGUMENT;
    if (tensor_count(dtype, rank, shape) < 0)
        return tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_full: no element type, or no shape that fits into memory");
    tiga_tensor *x = tensor_literal(ts, dtype, rank, shape, converted(dtype, value));
    if (x)
        x->constant = is_plain(value);
    return give(x, out);
}

/* ---- series ---- */
tiga_status tensor_fresh(tiga_tensors *ts, int32_t dtype, int32_t rank, const int64_t *shape, tiga_tensor **out) {
    int64_t n = tensor_count(dtype, rank, shape);
    if (n < 0)
        return tensor_fail(ts, TIGA_E_ARGUMENT, "a tensor has 0 to 7 axes and a size that fits into memory");
    tiga_array a = tiga_array_borrow(NULL, dtype, rank, shape);
    tensor_buffer *b;
    tiga_status status = tensor_buffer_new(ts, n * tiga_dtype_bytes(dtype), &b);
    return status == TIGA_OK ? on_buffer(ts, &a, b, out) : status;
}

tiga_status tiga_tensor_arange(tiga_tensors *ts, int32_t dtype, int64_t begin, int64_t end, int64_t step,
                               tiga_tensor **out) {
    TENSOR_TURN(ts);
    if (!complete(ts, ts, out, "tiga_tensor_arange"))
        return TIGA_E_ARGUMENT;
    if (step == 0 || (dtype != TIGA_I32 && dtype != TIGA_I64 && dtype != TIGA_F32 && dtype != TIGA_F64))
        return tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_arange: i32 i64 f32 f64, and a step that is not 0");
    __int128 span = step > 0 ? (__int128)end - begin : (__int128)begin - end;
    __int128 each = step > 0 ? (__int128)step : -(__int128)step, count = span > 0 ? (span + each - 1) / each : 0;
    int64_t n = count > INT64_MAX ? INT64_MAX : (int64_t)count;
    tiga_status status = tensor_fresh(ts, dtype, 1, &n, out);
    for (int64_t i = 0; status == TIGA_OK && i < n; i++) {
        int64_t v = (int64_t)((uint64_t)begin + (uint64_t)i * (uint64_t)step);
        void *data = (*out)->buffer->data;
        if (dtype == TIGA_I64)
            ((int64_t *)data)[i] = v;
        else if (dtype == TIGA_I32)
            ((int32_t *)data)[i] = (int32_t)v;
        else if (dtype == TIGA_F64)
            ((double *)data)[i] = (double)v;
        else
            ((float *)data)[i] = (float)v;
    }
    if (status == TIGA_OK)
        tensor_unpin(*out);
    return status;
}

/* The finaliser of SplitMix64, twice over seed and index: every bit of both reaches every bit of the result. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
    x = (x ^ x >> 27) * 0x94D049BB133111EBU;
    return x ^ x >> 31;
}

tiga_status tiga_tensor_rand(tiga_tensors *ts, int32_t dtype, int32_t rank, const int64_t *shape, uint64_t seed,
                             tiga_tensor **out) {
    TENSOR_TURN(ts);
    if (!complete(ts, ts, out, "tiga_tensor_rand"))
        return TIGA_E_ARGUMENT;
    if (dtype != TIGA_F32 && dtype != TIGA_F64)
        return tensor_fail(ts, TIGA_E_TYPE, "tiga_tensor_rand: f32 or f64");
    tiga_status status = tensor_fresh(ts, dtype, rank, shape, out);
    uint64_t key = mix(seed + 0x9E3779B97F4A7C15U);
    int64_t n = status == TIGA_OK ? tiga_tensor_size(*out) : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = mix(key + ((uint64_t)i + 1) * 0x9E3779B97F4A7C15U);
        if (dtype == TIGA_F32)
            ((float *)(*out)->buffer->data)[i] = (float)(bits >> 40) * 0x1p-24f;
        else
            ((double *)(*out)->buffer->data)[i] = (double)(bits >> 11) * 0x1p-53;
    }
    if (status == TIGA_OK)
        tensor_unpin(*out);
    return status;
}
