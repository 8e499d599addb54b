/* Arrays: dense, row-major, owned or borrowed. */
#include "runtime/runtime.h"

#include <string.h>

static const struct {
    const char *text;
    int32_t bytes;
    int64_t least, most; /* of integers */
} dtypes[] = {[TIGA_BOOL] = {"bool", 1, 0, 1},
              [TIGA_I32] = {"i32", 4, INT32_MIN, INT32_MAX},
              [TIGA_I64] = {"i64", 8, INT64_MIN, INT64_MAX},
              [TIGA_F32] = {"f32", 4, 0, 0},
              [TIGA_F64] = {"f64", 8, 0, 0},
              [TIGA_F16] = {"f16", 2, 0, 0},
              [TIGA_BF16] = {"bf16", 2, 0, 0},
              [TIGA_I8] = {"i8", 1, INT8_MIN, INT8_MAX},
              [TIGA_U8] = {"u8", 1, 0, UINT8_MAX},
              [TIGA_C64] = {"c64", 8, 0, 0},
              [TIGA_C128] = {"c128", 16, 0, 0}};

bool rt_dtype_valid(int32_t dtype) { return dtype >= 0 && (size_t)dtype < sizeof dtypes / sizeof *dtypes; }
static bool is_whole(int32_t dtype) { /* bool and integers */ return rt_dtype_valid(dtype) && dtypes[dtype].most != 0; }
const char *tiga_dtype_text(int32_t dtype) { return rt_dtype_valid(dtype) ? dtypes[dtype].text : "unknown"; }
int32_t tiga_dtype_bytes(int32_t dtype) { return rt_dtype_valid(dtype) ? dtypes[dtype].bytes : 0; }

bool rt_shape_bytes(int32_t dtype, int32_t rank, const int64_t *shape, int64_t *out_bytes) {
    *out_bytes = 0;
    if (!rt_dtype_valid(dtype) || rank < 0 || rank > 7 || (rank > 0 && !shape))
        return false;
    int64_t n = tiga_dtype_bytes(dtype);
    bool empty = false, overflow = false;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return false;
        empty |= shape[i] == 0;
        overflow |= !empty && __builtin_mul_overflow(n, shape[i], &n);
    }
    *out_bytes = empty ? 0 : n;
    return empty || !overflow;
}

void rt_shape_text(base_str *s, int32_t dtype, int32_t rank, const int64_t *shape) {
    base_str_add(s, tiga_dtype_text(dtype));
    for (int i = 0; i < rank && i < 7; i++)
        base_str_addf(s, "%s%lld", i ? ", " : "[", (long long)shape[i]);
    if (rank > 0)
        base_str_add(s, "]");
}

static tiga_status fail_shape(tiga_context *ctx, const char *who, int32_t dtype, int32_t rank, const int64_t *shape) {
    if (!rt_dtype_valid(dtype))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: %d is not an element type", who, dtype);
    if (rank < 0 || rank > 7)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: rank %d is not in 0 .. 7", who, rank);
    if (rank > 0 && !shape)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: shape is NULL", who);
    base_str s = {0};
    rt_shape_text(&s, dtype, rank, shape);
    tiga_status status =
        rt_fail(ctx, TIGA_E_ARGUMENT, "%s: %s is not a shape that fits into memory", who, base_str_text(&s));
    base_str_fini(&s);
    return status;
}

tiga_status tiga_array_new(tiga_context *ctx, int32_t dtype, int32_t rank, const int64_t *shape, tiga_array *out) {
    if (!out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_array_new: out is NULL");
    memset(out, 0, sizeof *out);
    int64_t n_bytes;
    if (!rt_shape_bytes(dtype, rank, shape, &n_bytes))
        return fail_shape(ctx, "tiga_array_new", dtype, rank, shape);
    void *data;
    tiga_status status = rt_mem_take(ctx, n_bytes, 1, true, "the array", &data);
    if (status != TIGA_OK)
        return status;
    *out = tiga_array_borrow(data, dtype, rank, shape);
    out->owned = 1;
    return TIGA_OK;
}

tiga_array tiga_array_borrow(void *data, int32_t dtype, int32_t rank, const int64_t *shape) {
    tiga_array a;
    memset(&a, 0, sizeof a);
    a.data = data;
    a.dtype = dtype;
    a.rank = rank;
    for (int i = 0; i < rank && i < 7; i++)
        a.shape[i] = shape[i];
    return a;
}

void tiga_array_free(tiga_array *a) {
    if (!a)
        return;
    if (a->owned)
        rt_mem_free(a->data);
    memset(a, 0, sizeof *a);
}

int64_t tiga_array_bytes(const tiga_array *a) {
    int64_t n_bytes;
    return a && rt_shape_bytes(a->dtype, a->rank, a->shape, &n_bytes) ? n_bytes : 0;
}

/* ---- conversion ---- */
typedef struct convert {
    const void *from;
    void *to;
    int32_t from_dtype, to_dtype;
    int64_t n, n_tasks;
} convert;

/* float to integer truncates, saturates, NaN gives 0: what `cast` means in the language */
static int64_t integer_of(double v, int64_t least, int64_t largest) {
    if (v != v)
        return 0;
    if (v <= (double)least)
        return least;
    return v >= (double)largest ? largest : (int64_t)v;
}

static int64_t get_whole(const void *p, int32_t dtype, int64_t i) {
    switch (dtype) {
    case TIGA_BOOL:
        return ((const uint8_t *)p)[i] != 0;
    case TIGA_I8:
        return ((const int8_t *)p)[i];
    case TIGA_U8:
        return ((const uint8_t *)p)[i];
    case TIGA_I32:
        return ((const int32_t *)p)[i];
    default:
        return ((const int64_t *)p)[i];
    }
}

static bool is_complex(int32_t dtype) { return dtype == TIGA_C64 || dtype == TIGA_C128; }

static double get_float(const void *p, int32_t dtype, int64_t i) {
    switch (dtype) {
    case TIGA_C64:
        return (double)((const tiga_c64 *)p)[i].re;
    case TIGA_C128:
        return ((const tiga_c128 *)p)[i].re;
    case TIGA_F16:
        return (double)base_f32_from_f16(((const uint16_t *)p)[i]);
    case TIGA_BF16:
        return (double)base_f32_from_bf16(((const uint16_t *)p)[i]);
    case TIGA_F32:
        return (double)((const float *)p)[i];
    default:
        return ((const double *)p)[i];
    }
}

static void put_whole(void *p, int32_t dtype, int64_t i, int64_t v) { /* wraps around */
    switch (dtype) {
    case TIGA_BOOL:
        ((uint8_t *)p)[i] = v != 0;
        break;
    case TIGA_I8:
    case TIGA_U8:
        ((uint8_t *)p)[i] = (uint8_t)v;
        break;
    case TIGA_I32:
        ((int32_t *)p)[i] = (int32_t)(uint32_t)(uint64_t)v;
        break;
    default:
        ((int64_t *)p)[i] = v;
    }
}

static void put_f32(void *p, int32_t dtype, int64_t i, float v) {
    switch (dtype) {
    case TIGA_F16:
        ((uint16_t *)p)[i] = base_f16_from_f32(v);
        break;
    case TIGA_BF16:
        ((uint16_t *)p)[i] = base_bf16_from_f32(v);
        break;
    default:
        ((float *)p)[i] = v;
    }
}

static void convert_one(const convert *c, bool whole, int64_t i) {
    int64_t n = whole ? get_whole(c->from, c->from_dtype, i) : 0;
    double x = whole ? (double)n : get_float(c->from, c->from_dtype, i);
    if (is_complex(c->to_dtype)) {
        bool single = c->from_dtype == TIGA_C64;
        double y = !is_complex(c->from_dtype) ? 0
                   : single                   ? (double)((const tiga_c64 *)c->from)[i].im
                                              : ((const tiga_c128 *)c->from)[i].im;
        if (c->to_dtype == TIGA_C64) /* from i64 in one rounding */
            ((tiga_c64 *)c->to)[i] = (tiga_c64){whole ? (float)n : (float)x, (float)y};
        else
            ((tiga_c128 *)c->to)[i] = (tiga_c128){x, y};
    } else if (c->to_dtype == TIGA_F64)
        ((double *)c->to)[i] = x;
    else if (!is_whole(c->to_dtype)) /* from i64 to f32 in one rounding */
        put_f32(c->to, c->to_dtype, i, whole ? (float)n : (float)x);
    else if (c->to_dtype == TIGA_BOOL)
        ((uint8_t *)c->to)[i] = whole ? n != 0 : x != 0;
    else
        put_whole(c->to, c->to_dtype, i,
                  whole ? n : integer_of(x, dtypes[c->to_dtype].least, dtypes[c->to_dtype].most));
}

static void convert_task(void *arg, int64_t task, int thread) {
    (void)thread;
    const convert *c = arg;
    int64_t begin, end;
    rt_task_range(c->n, c->n_tasks, task, &begin, &end);
    bool whole = is_whole(c->from_dtype);
    if (c->from_dtype == c->to_dtype && c->from_dtype != TIGA_BOOL) {
        size_t size = (size_t)tiga_dtype_bytes(c->to_dtype);
        memcpy((char *)c->to + (size_t)begin * size, (const char *)c->from + (size_t)begin * size,
               (size_t)(end - begin) * size);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        convert_one(c, whole, i);
}

tiga_status rt_array_convert(tiga_context *ctx, const tiga_array *a, int32_t dtype, tiga_array *out) {
    tiga_array made;
    tiga_status status = tiga_array_new(ctx, dtype, a->rank, a->shape, &made);
    if (status != TIGA_OK)
        return status;
    int64_t n_bytes = tiga_array_bytes(a), n = n_bytes / tiga_dtype_bytes(a->dtype), n_tasks = rt_n_tasks(n, 1 << 18);
    convert c = {a->data, made.data, a->dtype, dtype, n, n_tasks};
    if (!rt_parallel_for(ctx, 0, n_tasks, convert_task, &c)) {
        tiga_array_free(&made);
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "tiga_array_convert: interrupted");
    }
    *out = made;
    return TIGA_OK;
}

tiga_status tiga_array_convert(tiga_context *ctx, const tiga_array *a, int32_t dtype, tiga_array *out) {
    int64_t n_bytes;
    if (!a || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_array_convert: an argument is NULL");
    if (!rt_shape_bytes(a->dtype, a->rank, a->shape, &n_bytes))
        return fail_shape(ctx, "tiga_array_convert", a->dtype, a->rank, a->shape);
    if (n_bytes > 0 && !a->data)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_array_convert: the array has no data");
    if (is_complex(a->dtype) && rt_dtype_valid(dtype) && !is_complex(dtype))
        return rt_fail(ctx, TIGA_E_TYPE, "tiga_array_convert: complex numbers (%s) cannot become %s",
                       tiga_dtype_text(a->dtype), tiga_dtype_text(dtype));
    RT_TURN(ctx);
    rt_begin(ctx);
    return rt_array_convert(ctx, a, dtype, out);
}
