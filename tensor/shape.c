/* Movement: which elements stand where.  On a value that is there most of it is a matter of strides; otherwise it becomes a
 * MOVE node, or, for axes of size 1 and broadcasts, an operation that costs nothing in a program. */
#include "tensor/tensor.h"

#include <string.h>

/* ---- views of what is there ---- */
/* Strides of the same elements in another shape; false: they do not lie so.  Groups of axes with equal products are
 * matched; each group must be one run in memory. */
static bool restride(const tiga_tensor *x, int32_t rank, const int64_t *shape, int64_t *strides) {
    int64_t old_shape[TENSOR_MAX_RANK], old_strides[TENSOR_MAX_RANK];
    int n = 0, i = 0, k = 0;
    for (int a = 0; a < x->rank; a++)
        if (x->shape[a] != 1) {
            old_shape[n] = x->shape[a];
            old_strides[n++] = x->strides[a];
        }
    while (i < n && k < rank) {
        int i_end = i + 1, k_end = k + 1;
        int64_t old = old_shape[i], fresh = shape[k];
        while (old != fresh)
            if (fresh < old && k_end < rank)
                fresh *= shape[k_end++];
            else if (fresh > old && i_end < n)
                old *= old_shape[i_end++];
            else
                return false;
        for (int a = i; a + 1 < i_end; a++)
            if (old_strides[a] != old_shape[a + 1] * old_strides[a + 1])
                return false;
        strides[k_end - 1] = old_strides[i_end - 1];
        for (int a = k_end - 1; a > k; a--)
            strides[a - 1] = strides[a] * shape[a];
        i = i_end;
        k = k_end;
    }
    for (; k < rank; k++)
        strides[k] = 1;
    return i == n;
}

static bool view_strides(tensor_move code, const tiga_tensor *x, const int64_t *attr, tiga_tensor *v) {
    v->offset = x->offset;
    if (code == MOVE_RESHAPE) {
        if (tiga_tensor_size(x) == 0 || tensor_is_dense(x)) {
            tensor_dense_strides(v);
            return true;
        }
        return restride(x, v->rank, v->shape, v->strides);
    }
    for (int i = 0; i < v->rank; i++)
        v->strides[i] = x->strides[code == MOVE_PERMUTE ? attr[0] >> 4 * i & 15 : i];
    if (code == MOVE_SLICE) {
        v->offset += tiga_tensor_size(v) ? attr[1] * x->strides[attr[0]] : 0;
        v->strides[attr[0]] *= v->shape[attr[0]] > 1 ? attr[2] : 1; /* the step to what is not there may be any */
    }
    return true;
}

/* A new REAL node on the memory of x, which it remembers for gradients; NULL with *copy when the elements do not lie so. */
static tiga_tensor *real_view(tensor_move code, tiga_tensor *x, int32_t rank, const int64_t *shape, const int64_t *attr,
                              bool *copy) {
    *copy = false;
    tiga_tensor *v = tensor_node(TENSOR_REAL, (uint16_t)code, x->dtype, rank, shape, &x, 1);
    if (!v)
        return NULL;
    memcpy(v->attr, attr, sizeof v->attr);
    v->literal = x->literal;
    v->constant = x->constant;
    v->value = x->value;
    v->how.how = TIGA_TENSOR_VIEW;
    if (!x->literal && !view_strides(code, x, attr, v)) {
        *copy = true;
        tensor_free(v);
        return NULL;
    }
    v->buffer = x->buffer ? tensor_buffer_retain(x->buffer) : NULL;
    for (int i = 0; i < rank; i++)
        v->stretch |= (uint8_t)((shape[i] != 1 && (x->literal || v->strides[i] == 0)) << i);
    return v;
}

tiga_status tensor_view_of(tensor_move code, tiga_tensor *x, int32_t rank, const int64_t *shape, const int64_t *attr,
                           tiga_tensor **out) {
    static const int64_t none[3];
    bool copy = true;
    attr = attr ? attr : none;
    if (x->weak) {
        tiga_tensor *settled;
        tiga_status status = tensor_settle(x, &settled);
        return status == TIGA_OK ? tensor_give(tensor_view_of(code, settled, rank, shape, attr, out), settled) : status;
    }
    if (x->kind == TENSOR_REAL)
        *out = real_view(code, x, rank, shape, attr, &copy);
    if (copy) {
        *out = tensor_node(TENSOR_MOVE, (uint16_t)code, x->dtype, rank, shape, &x, 1);
        if (*out)
            memcpy((*out)->attr, attr, sizeof(*out)->attr);
    }
    return *out ? TIGA_OK : TIGA_E_MEMORY;
}

tiga_status tensor_expand(tiga_tensor *x, tiga_tensor **out) {
    *out = tensor_repeats(x) ? tensor_node(TENSOR_MOVE, MOVE_EXPAND, x->dtype, x->rank, x->shape, &x, 1)
                             : tensor_retain(x);
    return *out ? TIGA_OK : TIGA_E_MEMORY;
}

/* ---- reshape ---- */
/* Only axes of size 1 come and go: the others, in order, with what they repeat. */
static bool only_ones(const tiga_tensor *x, int32_t rank, const int64_t *shape, uint8_t *stretch) {
    int i = 0, k = 0;
    *stretch = 0;
    for (;;) {
        while (i < x->rank && x->shape[i] == 1)
            i++;
        while (k < rank && shape[k] == 1)
            k++;
        if (i == x->rank || k == rank)
            return i == x->rank && k == rank;
        if (x->shape[i] != shape[k])
            return false;
        *stretch |= (uint8_t)((tensor_repeats(x) >> i & 1) << k);
        i++;
        k++;
    }
}

uint8_t tensor_stretch_kept(const tiga_tensor *x, const tiga_tensor *y) {
    uint8_t stretch;
    only_ones(x, y->rank, y->shape, &stretch);
    return stretch;
}

static tiga_status fail_reshape(const tiga_tensor *x, int32_t rank, const int64_t *shape) {
    base_str s = {0};
    tensor_shape_text(&s, x);
    base_str_add(&s, " to [");
    for (int i = 0; i < rank && i < TENSOR_MAX_RANK; i++)
        base_str_addf(&s, "%s%lld", i ? ", " : "", (long long)shape[i]);
    tensor_fail(x->ts, TIGA_E_TYPE, "reshape: %s]", base_str_text(&s));
    base_str_fini(&s);
    return TIGA_E_TYPE;
}

/* The -1 in a shape. */
static bool complete_shape(const tiga_tensor *x, int32_t rank, const int64_t *given, int64_t *shape) {
    int64_t known = 1, n = tiga_tensor_size(x);
    int open = -1;
    for (int i = 0; i < rank; i++) {
        shape[i] = given[i];
        if (given[i] == -1 && open < 0)
            open = i;
        else if (given[i] < 0 || __builtin_mul_overflow(known, given[i], &known))
            return false;
    }
    if (open >= 0 && (known == 0 || n % known))
        return false;
    if (open >= 0)
        shape[open] = n / known;
    return tensor_count(x->dtype, rank, shape) == n;
}

tiga_status tiga_tensor_reshape(tiga_tensor *x, int32_t rank, const int64_t *given, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    int64_t shape[TENSOR_MAX_RANK];
    uint8_t stretch;
    tiga_tensors *ts = tensor_begin(x, out, "reshape");
    if (!ts)
        return TIGA_E_ARGUMENT;
    if (rank < 0 || rank > TENSOR_MAX_RANK || (rank && !given))
        return tensor_fail(ts, TIGA_E_ARGUMENT, "reshape: a tensor has 0 to 7 axes");
    if (!complete_shape(x, rank, given, shape))
        return fail_reshape(x, rank, given);
    bool ones = only_ones(x, rank, shape, &stretch);
    if (x->kind == TENSOR_COMPUTE && ones && tensor_arithmetic_rank(rank, shape) <= IR_MAX_RANK) {
        *out = tensor_node(TENSOR_COMPUTE, IR_RESHAPE, x->dtype, rank, shape, &x, 1);
        if (*out)
            (*out)->stretch = stretch;
        return *out ? TIGA_OK : TIGA_E_MEMORY;
    }
    tiga_status status = tensor_view_of(MOVE_RESHAPE, x, rank, shape, NULL, out);
    if (status == TIGA_OK && ones)
        (*out)->even = false; /* as of an expression */
    return status;
}

tiga_status tensor_newaxis(tiga_tensor *x, int axis, tiga_tensor **out) {
    int64_t shape[TENSOR_MAX_RANK + 1];
    if (x->rank == TENSOR_MAX_RANK)
        return tensor_fail(x->ts, TIGA_E_UNSUPPORTED, "a tensor has at most 7 axes");
    for (int i = 0; i <= x->rank; i++)
        shape[i] = i == axis ? 1 : x->shape[i - (i > axis)];
    return tiga_tensor_reshape(x, x->rank + 1, shape, out);
}

/* ---- permute, slice ---- */
tiga_status tiga_tensor_permute(tiga_tensor *x, const int32_t *order, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensors *ts = tensor_begin(x, out, "permute");
    if (!ts)
        return TIGA_E_ARGUMENT;
    int64_t shape[TENSOR_MAX_RANK], attr[3] = {0};
    unsigned seen = 0;
    for (int i = 0; i < x->rank; i++) {
        int32_t from = order ? order[i] + (order[i] < 0 ? x->rank : 0) : x->rank - 1 - i;
        if (from < 0 || from >= x->rank || (seen >> from & 1))
            return tensor_fail(ts, TIGA_E_ARGUMENT, "permute: every one of %d axes once", x->rank);
        seen |= 1u << from;
        shape[i] = x->shape[from];
        attr[0] |= (int64_t)from << 4 * i;
    }
    return tensor_view_of(MOVE_PERMUTE, x, x->rank, shape, attr, out);
}

tiga_status tiga_tensor_slice(tiga_tensor *x, int axis, int64_t first, int64_t count, int64_t step, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensors *ts = tensor_begin(x, out, "slice");
    if (!ts || !tensor_axis(x, "slice", &axis))
        return TIGA_E_ARGUMENT;
    __int128 n = x->shape[axis], last = (__int128)first + ((__int128)count - 1) * step;
    if (step == 0 || count < 0)
        return tensor_fail(ts, TIGA_E_ARGUMENT, "slice: the step is not 0, the count not negative");
    if (count && (first < 0 || first >= n || last < 0 || last >= n))
        return tensor_fail(ts, TIGA_E_TYPE, "slice: %lld elements from %lld by %lld of an axis of %lld",
                           (long long)count, (long long)first, (long long)step, (long long)n);
    int64_t shape[TENSOR_MAX_RANK], attr[3] = {axis, count ? first : 0, step};
    memcpy(shape, x->shape, sizeof shape);
    shape[axis] = count;
    return tensor_view_of(MOVE_SLICE, x, x->rank, shape, attr, out);
}

/* ---- broadcast ---- */
static tiga_tensor *real_broadcast(tiga_tensor *x, int32_t rank, const int64_t *shape) {
    tiga_tensor *v = tensor_node(TENSOR_REAL, IR_BROADCAST, x->dtype, rank, shape, &x, 1);
    if (!v)
        return NULL;
    v->computed = true;
    v->even = false;
    v->born = tensor_stretch_of(&x, 1, shape, rank); /* also what x repeats no more, having been looked at */
    v->literal = x->literal;
    v->constant = x->constant;
    v->value = x->value;
    v->offset = x->offset;
    v->how.how = TIGA_TENSOR_VIEW;
    v->buffer = x->buffer ? tensor_buffer_retain(x->buffer) : NULL;
    for (int i = 0; i < rank; i++) {
        int at = i - (rank - x->rank);
        v->strides[i] = at >= 0 && x->shape[at] == shape[i] ? x->strides[at] : 0;
        v->stretch |= (uint8_t)((shape[i] != 1 && (x->literal || v->strides[i] == 0)) << i);
    }
    return v;
}

tiga_status tiga_tensor_broadcast(tiga_tensor *x, int32_t rank, const int64_t *shape, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensors *ts = tensor_begin(x, out, "broadcast");
    if (!ts)
        return TIGA_E_ARGUMENT;
    bool fits =
        rank >= x->rank && rank <= TENSOR_MAX_RANK && (!rank || shape) && tensor_count(x->dtype, rank, shape) >= 0;
    for (int i = 0; fits && i < x->rank; i++)
        fits = x->shape[i] == 1 || x->shape[i] == shape[rank - x->rank + i];
    if (!fits)
        return tensor_fail(ts, TIGA_E_TYPE, "broadcast: a tensor of %d axes does not stretch to that shape", x->rank);
    if (x->weak) {
        tiga_tensor *settled;
        tiga_status status = tensor_settle(x, &settled);
        return status == TIGA_OK ? tensor_give(tiga_tensor_broadcast(settled, rank, shape, out), settled) : status;
    }
    if (x->kind == TENSOR_REAL) {
        *out = real_broadcast(x, rank, shape);
        return *out ? TIGA_OK : TIGA_E_MEMORY;
    }
    if (tensor_arithmetic_rank(x->rank, x->shape) > IR_MAX_RANK)
        return tensor_fail(ts, TIGA_E_UNSUPPORTED, "broadcast: of an expression of more than %d axes; look at it first",
                           IR_MAX_RANK);
    *out = tensor_node(TENSOR_COMPUTE, IR_BROADCAST, x->dtype, rank, shape, &x, 1);
    if (!*out)
        return TIGA_E_MEMORY;
    (*out)->stretch = tensor_stretch_of(&x, 1, shape, rank);
    return TIGA_OK;
}

/* ---- concat, stack ---- */
tiga_status tiga_tensor_concat(tiga_tensor *const *xs, int n, int axis, tiga_tensor **out) {
    TENSOR_TURN(tensor_home_first(xs, n));
    if (out)
        *out = NULL;
    tiga_tensors *ts = out ? tensor_home_of(xs, n, "concat") : NULL;
    if (!ts || !tensor_axis(xs[0], "concat", &axis))
        return TIGA_E_ARGUMENT;
    int64_t shape[TENSOR_MAX_RANK];
    memcpy(shape, xs[0]->shape, sizeof shape);
    shape[axis] = 0;
    for (int i = 0; i < n; i++) {
        bool fits = xs[i]->rank == xs[0]->rank && xs[i]->dtype == xs[0]->dtype;
        for (int a = 0; fits && a < xs[0]->rank; a++)
            fits = a == axis || xs[i]->shape[a] == shape[a];
        if (!fits || __builtin_add_overflow(shape[axis], fits ? xs[i]->shape[axis] : 0, &shape[axis]))
            return tensor_fail(ts, TIGA_E_TYPE,
                               "concat: operand %d has another element type or other axes than the first", i);
    }
    if (tensor_count(xs[0]->dtype, xs[0]->rank, shape) < 0)
        return tensor_fail(ts, TIGA_E_ARGUMENT, "concat: the result is larger than any memory");
    *out = tensor_node(TENSOR_MOVE, MOVE_CONCAT, xs[0]->dtype, xs[0]->rank, shape, xs, (uint32_t)n);
    if (!*out)
        return TIGA_E_MEMORY;
    (*out)->attr[0] = axis;
    return TIGA_OK;
}

tiga_status tiga_tensor_stack(tiga_tensor *const *xs, int n, int axis, tiga_tensor **out) {
    TENSOR_TURN(tensor_home_first(xs, n));
    if (out)
        *out = NULL;
    tiga_tensors *ts = out ? tensor_home_of(xs, n, "stack") : NULL;
    if (!ts)
        return TIGA_E_ARGUMENT;
    axis += axis < 0 ? xs[0]->rank + 1 : 0;
    if (axis < 0 || axis > xs[0]->rank)
        return tensor_fail(ts, TIGA_E_ARGUMENT, "stack: no axis can stand there");
    tiga_tensor **wide = base_alloc_zero((size_t)n * sizeof *wide);
    tiga_status status = wide ? TIGA_OK : tensor_fail(ts, TIGA_E_MEMORY, "stack: out of memory");
    for (int i = 0; i < n && status == TIGA_OK; i++)
        status = tensor_newaxis(xs[i], xs[i]->rank == xs[0]->rank ? axis : 0, &wide[i]);
    if (status == TIGA_OK)
        status = tiga_tensor_concat(wide, n, axis, out);
    for (int i = 0; wide && i < n; i++)
        tensor_free(wide[i]);
    base_free(wide);
    return status;
}

/* ---- gather ---- */
tiga_status tiga_tensor_gather(tiga_tensor *x, tiga_tensor *index, int axis, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensor *wide = NULL;
    if (out)
        *out = NULL;
    tiga_tensors *ts = out ? tensor_home_of((tiga_tensor *[]){x, index}, 2, "gather") : NULL;
    if (!ts || !tensor_axis(x, "gather", &axis))
        return TIGA_E_ARGUMENT;
    if (!ir_dtype_is_int((ir_dtype)index->dtype))
        return tensor_fail(ts, TIGA_E_TYPE, "gather: the numbers of elements are %s", tiga_dtype_text(index->dtype));
    if (x->rank - 1 + index->rank > TENSOR_MAX_RANK)
        return tensor_fail(ts, TIGA_E_UNSUPPORTED, "a tensor has at most 7 axes");
    int64_t shape[TENSOR_MAX_RANK];
    int32_t rank = 0;
    for (int i = 0; i < axis; i++)
        shape[rank++] = x->shape[i];
    for (int i = 0; i < index->rank; i++)
        shape[rank++] = index->shape[i];
    for (int i = axis + 1; i < x->rank; i++)
        shape[rank++] = x->shape[i];
    int64_t n = tensor_count(x->dtype, rank, shape);
    if (n < 0 || (n > 0 && x->shape[axis] == 0))
        return tensor_fail(ts, TIGA_E_TYPE, "gather: elements of an axis that has none, or more than any memory holds");
    tiga_status status = tiga_tensor_cast(index, TIGA_I64, &wide);
    if (status != TIGA_OK)
        return status;
    *out = tensor_node(TENSOR_MOVE, MOVE_GATHER, x->dtype, rank, shape, (tiga_tensor *[]){x, wide}, 2);
    tensor_free(wide);
    if (!*out)
        return TIGA_E_MEMORY;
    (*out)->attr[0] = axis;
    return TIGA_OK;
}
