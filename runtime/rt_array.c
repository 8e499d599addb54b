/* Arrays: dense, row-major, owned or borrowed. */
#include "runtime/runtime.h"

#include <string.h>

static const struct {
    const char *text;
    int32_t bytes;
} dtypes[] = {[TIGA_BOOL] = {"bool", 1},
              [TIGA_I32] = {"i32", 4},
              [TIGA_I64] = {"i64", 8},
              [TIGA_F32] = {"f32", 4},
              [TIGA_F64] = {"f64", 8}};

bool rt_dtype_valid(int32_t dtype) { return dtype >= TIGA_BOOL && dtype <= TIGA_F64; }
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
    base_str s = {0};
    rt_shape_text(&s, dtype, shape ? rank : 0, shape);
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

static double get_f64(const void *p, int32_t dtype, int64_t i) {
    switch (dtype) {
    case TIGA_BOOL:
        return ((const uint8_t *)p)[i] != 0;
    case TIGA_I32:
        return ((const int32_t *)p)[i];
    case TIGA_F32:
        return (double)((const float *)p)[i];
    case TIGA_F64:
        return ((const double *)p)[i];
    default:
        return (double)((const int64_t *)p)[i];
    }
}

static int64_t get_i64(const void *p, int32_t dtype, int64_t i) {
    switch (dtype) {
    case TIGA_BOOL:
        return ((const uint8_t *)p)[i] != 0;
    case TIGA_I32:
        return ((const int32_t *)p)[i];
    case TIGA_I64:
        return ((const int64_t *)p)[i];
    default:
        return integer_of(get_f64(p, dtype, i), INT64_MIN, INT64_MAX);
    }
}

static void convert_task(void *arg, int64_t task, int thread) {
    (void)thread;
    const convert *c = arg;
    int64_t begin, end;
    rt_task_range(c->n, c->n_tasks, task, &begin, &end);
    bool whole = c->from_dtype != TIGA_F32 && c->from_dtype != TIGA_F64;
    for (int64_t i = begin; i < end; i++) {
        switch (c->to_dtype) {
        case TIGA_BOOL:
            ((uint8_t *)c->to)[i] =
                whole ? get_i64(c->from, c->from_dtype, i) != 0 : get_f64(c->from, c->from_dtype, i) != 0;
            break;
        case TIGA_I32:
            ((int32_t *)c->to)[i] = whole
                                        ? (int32_t)(uint32_t)(uint64_t)get_i64(c->from, c->from_dtype, i)
                                        : (int32_t)integer_of(get_f64(c->from, c->from_dtype, i), INT32_MIN, INT32_MAX);
            break;
        case TIGA_I64:
            ((int64_t *)c->to)[i] = get_i64(c->from, c->from_dtype, i);
            break;
        case TIGA_F32: /* from i64 in one rounding */
            ((float *)c->to)[i] =
                whole ? (float)get_i64(c->from, c->from_dtype, i) : (float)get_f64(c->from, c->from_dtype, i);
            break;
        default:
            ((double *)c->to)[i] = get_f64(c->from, c->from_dtype, i);
        }
    }
}

tiga_status tiga_array_convert(tiga_context *ctx, const tiga_array *a, int32_t dtype, tiga_array *out) {
    int64_t n_bytes;
    if (!a || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_array_convert: an argument is NULL");
    if (!rt_shape_bytes(a->dtype, a->rank, a->shape, &n_bytes))
        return fail_shape(ctx, "tiga_array_convert", a->dtype, a->rank, a->shape);
    if (n_bytes > 0 && !a->data)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_array_convert: the array has no data");
    rt_begin(ctx);
    tiga_array made;
    tiga_status status = tiga_array_new(ctx, dtype, a->rank, a->shape, &made);
    if (status != TIGA_OK)
        return status;
    int64_t n = n_bytes / tiga_dtype_bytes(a->dtype), n_tasks = rt_n_tasks(n, 1 << 18);
    convert c = {a->data, made.data, a->dtype, dtype, n, n_tasks};
    if (!rt_parallel_for(ctx, 0, n_tasks, convert_task, &c)) {
        tiga_array_free(&made);
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "tiga_array_convert: interrupted");
    }
    *out = made;
    return TIGA_OK;
}
