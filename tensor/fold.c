/* Over axes: folds, cumsum, matmul, and what is made of them. */
#include "tensor/tensor.h"

#include <string.h>

/* 16-bit floats are computed with in f32. */
static tiga_status widened(tiga_tensor *x, tiga_tensor **out) {
    if (ir_dtype_is_half((ir_dtype)x->dtype) || x->weak)
        return tiga_tensor_cast(x, x->weak && x->dtype == TIGA_I64 ? TIGA_I64 : TIGA_F32, out);
    *out = tensor_retain(x);
    return TIGA_OK;
}

static tiga_status narrowed(tiga_status status, tiga_tensor *x, int32_t dtype, tiga_tensor **out) {
    if (status != TIGA_OK)
        return status;
    if (!ir_dtype_is_half((ir_dtype)dtype) || x->dtype != TIGA_F32) {
        *out = x;
        return TIGA_OK;
    }
    return tensor_give(tiga_tensor_cast(x, dtype, out), x);
}

/* ---- folds ---- */
static const struct {
    const char *name;
    ir_kind kind;
} folds[] = {{"sum", IR_KIND_SUM},   {"prod", IR_KIND_PROD}, {"min", IR_KIND_MIN}, {"max", IR_KIND_MAX},
             {"mean", IR_KIND_MEAN}, {"any", IR_KIND_OR},    {"all", IR_KIND_AND}};

/* x has a type the kind works on, and nothing is stretched. */
static tiga_status fold_node(tiga_tensor *x, ir_kind kind, uint32_t axes, int keep, tiga_tensor **out) {
    int64_t shape[TENSOR_MAX_RANK];
    int32_t rank = 0;
    for (int i = 0; i < x->rank; i++) {
        bool folded = axes >> i & 1;
        if (folded && !keep)
            continue;
        shape[rank++] = folded ? 1 : x->shape[i];
    }
    if (tensor_count(x->dtype, rank, shape) < 0) /* the axis of size 0 has gone */
        return tensor_fail(x->ts, TIGA_E_ARGUMENT, "%s: the result is larger than any memory", ir_kind_text(kind));
    *out = tensor_node(TENSOR_COMPUTE, IR_FOLD, x->dtype, rank, shape, &x, 1);
    if (!*out)
        return TIGA_E_MEMORY;
    (*out)->attr[0] = axes;
    (*out)->attr[1] = keep != 0;
    (*out)->attr[2] = kind;
    return TIGA_OK;
}

/* ---- folds over everything ---- */
/* Arrays of one shape, element by element, and all of it folded: along one axis that is as fast as memory, and costs
 * nothing to say, because the arguments are there already. */
static bool wants_one_axis(const tiga_tensor *x, uint32_t axes) {
    int long_axes = 0;
    for (int i = 0; i < x->rank; i++) {
        long_axes += x->shape[i] != 1;
        if (x->shape[i] != 1 && !(axes >> i & 1))
            return false;
    }
    return x->even && long_axes > 1;
}

static bool goes_on(const tiga_tensor *x) { return x->kind == TENSOR_COMPUTE && tiga_tensor_size(x) != 1; }

/* x again, from arguments with one axis; map holds those of the operands. */
static tiga_status with_one_axis(tiga_tensor *x, tiga_tensor *const *map, tiga_tensor **out) {
    tiga_tensor *args[3] = {0};
    int64_t all = tiga_tensor_size(x);
    if (!goes_on(x))
        return tiga_tensor_reshape(x, all != 1, &all, out);
    for (uint32_t i = 0; i < x->n_args; i++)
        args[i] = map[x->args[i]->number];
    if (x->code == IR_CAST)
        return tiga_tensor_cast(args[0], x->dtype, out);
    return tensor_elementwise((ir_opcode)x->code, args, (int)x->n_args, out);
}

static tiga_status to_one_axis(tiga_tensor *x, tiga_tensor **out) {
    tensor_list l = tensor_list_take(x->ts);
    tiga_tensor **map = NULL;
    tiga_status status = tensor_postorder(x->ts, &x, 1, goes_on, &l) ? TIGA_OK : TIGA_E_MEMORY;
    if (status == TIGA_OK && !(map = base_alloc_zero(l.n * sizeof *map)))
        status = tensor_fail(x->ts, TIGA_E_MEMORY, "fold: out of memory");
    for (size_t i = 0; status == TIGA_OK && i < l.n; i++)
        status = with_one_axis(l.v[i], map, &map[i]);
    if (status == TIGA_OK)
        *out = tensor_retain(map[l.n - 1]);
    for (size_t i = 0; map && i < l.n; i++)
        tensor_free(map[i]);
    base_free(map);
    tensor_list_give(x->ts, &l);
    return status;
}

static tiga_status fold_everything(tiga_tensor *x, ir_kind kind, uint32_t axes, int keep, tiga_tensor **out) {
    tiga_tensor *flat = NULL, *one = NULL;
    int64_t ones[TENSOR_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1};
    int32_t rank = keep ? x->rank : x->rank - __builtin_popcount(axes);
    tiga_status status = to_one_axis(x, &flat);
    if (status == TIGA_OK)
        status = fold_node(flat, kind, 1, 0, rank ? &one : out);
    if (status == TIGA_OK && rank)
        status = tiga_tensor_reshape(one, rank, ones, out);
    tensor_free(flat);
    tensor_free(one);
    return status;
}

static tiga_status fold_kind(tiga_tensor *x, ir_kind kind, uint32_t axes, int keep, tiga_tensor **out) {
    tiga_tensor *full = NULL;
    tiga_status status = TIGA_OK;
    if (tensor_repeats(x)) /* the order of additions is that of the shape, however its elements are kept */
        status = tensor_expand(x, &full);
    if (status == TIGA_OK) {
        tiga_tensor *from = full ? full : x;
        status = wants_one_axis(from, axes) ? fold_everything(from, kind, axes, keep, out)
                                            : fold_node(from, kind, axes, keep, out);
    }
    tensor_free(full);
    return status;
}

/* The number of elements folded is an argument of the program: another size compiles nothing. */
static tiga_status divide_by_count(tiga_tensor *sum, const tiga_tensor *x, uint32_t axes, tiga_tensor **out) {
    double n = 1;
    for (int i = 0; i < x->rank; i++)
        n *= axes >> i & 1 ? (double)x->shape[i] : 1;
    ir_scalar_value v = ir_eval(IR_CAST, IR_F64, (ir_dtype)sum->dtype, &(ir_scalar_value){.d = n});
    tiga_tensor *count = tensor_literal(x->ts, sum->dtype, 0, NULL, v);
    if (!count)
        return TIGA_E_MEMORY;
    return tensor_give(tensor_op2(IR_DIV, sum, count, out), count);
}

static tiga_status fold_wide(tiga_tensor *x, ir_kind kind, uint32_t axes, int keep, tiga_tensor **out) {
    ir_kind primitive = kind == IR_KIND_MEAN ? IR_KIND_SUM : kind;
    tiga_tensor *sum = NULL;
    bool defined = ir_eval_defined(ir_kind_opcode(primitive), (ir_dtype)x->dtype) &&
                   !(kind == IR_KIND_MEAN && ir_dtype_is_int((ir_dtype)x->dtype));
    if (!defined)
        return tensor_fail(x->ts, TIGA_E_TYPE, "%s is not defined on %s", ir_kind_text(kind),
                           tiga_dtype_text(x->dtype));
    if (!axes) {
        *out = tensor_retain(x);
        return TIGA_OK;
    }
    tiga_status status = fold_kind(x, primitive, axes, keep, kind == IR_KIND_MEAN ? &sum : out);
    return sum ? tensor_give(divide_by_count(sum, x, axes, out), sum) : status;
}

tiga_status tiga_tensor_fold(tiga_tensor *x, const char *name, uint32_t axes, int keep, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    size_t at = 0, n = sizeof folds / sizeof *folds;
    tiga_tensor *wide = NULL, *r = NULL;
    tiga_tensors *ts = name ? tensor_begin(x, out, "fold") : NULL;
    if (!ts)
        return TIGA_E_ARGUMENT;
    while (at < n && strcmp(folds[at].name, name) != 0)
        at++;
    if (at == n)
        return tensor_fail(ts, TIGA_E_NAME, "there is no fold '%s'; there are sum prod min max mean any all", name);
    if (axes == TIGA_ALL_AXES)
        axes = (1u << x->rank) - 1;
    if (axes >> x->rank)
        return tensor_fail(ts, TIGA_E_ARGUMENT, "%s: an axis that a tensor of %d axes does not have", name, x->rank);
    if (tensor_arithmetic_rank(x->rank, x->shape) > IR_MAX_RANK)
        return tensor_fail(ts, TIGA_E_UNSUPPORTED, "%s: arithmetic has at most %d axes", name, IR_MAX_RANK);
    tiga_status status = widened(x, &wide);
    if (status != TIGA_OK)
        return status;
    status = fold_wide(wide, folds[at].kind, axes, keep, &r);
    return tensor_give(narrowed(status, r, x->dtype, out), wide);
}

tiga_status tiga_tensor_cumsum(tiga_tensor *x, int axis, int reverse, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensor *wide = NULL, *r = NULL;
    tiga_tensors *ts = tensor_begin(x, out, "cumsum");
    if (!ts || !tensor_axis(x, "cumsum", &axis))
        return TIGA_E_ARGUMENT;
    tiga_status status = widened(x, &wide);
    if (status != TIGA_OK)
        return status;
    if (!ir_eval_defined(IR_ADD, (ir_dtype)wide->dtype))
        return tensor_give(tensor_fail(ts, TIGA_E_TYPE, "cumsum is not defined on %s", tiga_dtype_text(x->dtype)),
                           wide);
    r = tensor_node(TENSOR_MOVE, MOVE_CUMSUM, wide->dtype, x->rank, x->shape, &wide, 1);
    if (r) {
        r->attr[0] = axis;
        r->attr[1] = reverse != 0;
    }
    return tensor_give(narrowed(r ? TIGA_OK : TIGA_E_MEMORY, r, x->dtype, out), wide);
}

/* ---- matmul ---- */
/* sum(a * b) over an axis counted from the end of the broadcast product. */
static tiga_status sum_of_products(tiga_tensor *a, tiga_tensor *b, int axis, tiga_tensor **out) {
    tiga_tensor *p = NULL;
    tiga_status status = tensor_op2(IR_MUL, a, b, &p);
    if (status != TIGA_OK)
        return status;
    return tensor_give(tiga_tensor_fold(p, "sum", 1u << (p->rank + axis), 0, out), p);
}

/* a [.., M, K] and b [.., K, N] by way of a product with all axes. */
static tiga_status stacked(tiga_tensor *a, tiga_tensor *b, tiga_tensor **out) {
    tiga_tensor *ra = NULL, *rb = NULL;
    tiga_status status = tensor_newaxis(a, a->rank, &ra);
    if (status == TIGA_OK)
        status = tensor_newaxis(b, b->rank >= 2 ? b->rank - 2 : 0, &rb);
    if (status == TIGA_OK)
        status = sum_of_products(ra, rb, -2, out);
    tensor_free(ra);
    tensor_free(rb);
    return status;
}

/* The second operand is read whole, so it may not be computed with the first, nor be the first: then it is realised, under
 * another name. */
static bool wants_alias(const tiga_tensor *a, const tiga_tensor *b) {
    return a == b || (a->kind == TENSOR_COMPUTE && b->kind == TENSOR_COMPUTE);
}

/* a [.., K] with at least two axes, b [K, N]: the operation of the IR. */
static tiga_status matmul_node(tiga_tensor *a, tiga_tensor *b, tiga_tensor **out) {
    tiga_tensor *fa = NULL, *fb = NULL, *other = NULL;
    int64_t shape[TENSOR_MAX_RANK];
    memcpy(shape, a->shape, sizeof shape);
    shape[a->rank - 1] = b->shape[1];
    if (tensor_count(a->dtype, a->rank, shape) < 0)
        return tensor_fail(a->ts, TIGA_E_ARGUMENT, "matmul: the result is larger than any memory");
    tiga_status status = tensor_expand(a, &fa);
    if (status == TIGA_OK)
        status = tensor_expand(b, &fb);
    if (status == TIGA_OK && wants_alias(fa, fb))
        status = (other = tensor_node(TENSOR_MOVE, MOVE_ALIAS, b->dtype, b->rank, b->shape, &fb, 1)) ? TIGA_OK
                                                                                                     : TIGA_E_MEMORY;
    tiga_tensor *args[2] = {fa, other ? other : fb};
    if (status == TIGA_OK)
        *out = tensor_node(TENSOR_COMPUTE, IR_MATMUL, a->dtype, a->rank, shape, args, 2);
    tensor_free(fa);
    tensor_free(fb);
    tensor_free(other);
    return status != TIGA_OK ? status : *out ? TIGA_OK : TIGA_E_MEMORY;
}

static bool is_matrix(const tiga_tensor *a) { /* with an axis in front of the last that is not 1 */
    for (int i = 0; i + 1 < a->rank; i++)
        if (a->shape[i] != 1)
            return true;
    return false;
}

static tiga_status matmul_wide(tiga_tensor *a, tiga_tensor *b, tiga_tensor **out) {
    int64_t ka = a->rank ? a->shape[a->rank - 1] : -1, kb = b->rank ? b->shape[b->rank > 1 ? b->rank - 2 : 0] : -2;
    if (a->dtype != b->dtype || !ir_eval_defined(IR_MUL, (ir_dtype)a->dtype) || ka != kb) {
        base_str s = {0};
        tensor_shape_text(&s, a);
        base_str_add(&s, " and ");
        tensor_shape_text(&s, b);
        tensor_fail(a->ts, TIGA_E_TYPE, "matmul: %s", base_str_text(&s));
        base_str_fini(&s);
        return TIGA_E_TYPE;
    }
    if (b->rank == 1)
        return sum_of_products(a, b, -1, out);
    if (a->rank == 1) {
        tiga_tensor *ra = NULL;
        tiga_status status = tensor_newaxis(a, 1, &ra);
        return status == TIGA_OK ? tensor_give(sum_of_products(ra, b, -2, out), ra) : status;
    }
    bool small = tensor_arithmetic_rank(a->rank, a->shape) > IR_MAX_RANK || ka == 1 || !is_matrix(a);
    return b->rank == 2 && !small ? matmul_node(a, b, out) : stacked(a, b, out);
}

tiga_status tiga_tensor_matmul(tiga_tensor *a, tiga_tensor *b, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(a));
    tiga_tensor *wa = NULL, *wb = NULL, *r = NULL;
    if (out)
        *out = NULL;
    if (!out || !tensor_home_of((tiga_tensor *[]){a, b}, 2, "matmul"))
        return TIGA_E_ARGUMENT;
    if (a->dtype != b->dtype)
        return tensor_fail(a->ts, TIGA_E_TYPE, "matmul: %s and %s; cast one of them", tiga_dtype_text(a->dtype),
                           tiga_dtype_text(b->dtype));
    tiga_status status = widened(a, &wa);
    if (status == TIGA_OK)
        status = widened(b, &wb);
    if (status == TIGA_OK)
        status = matmul_wide(wa, wb, &r);
    status = narrowed(status, r, a->dtype, out);
    tensor_free(wa);
    tensor_free(wb);
    return status;
}

/* ---- made of folds ---- */
static tiga_status softmax_wide(tiga_tensor *x, uint32_t axes, tiga_tensor **out) {
    tiga_tensor *v[5] = {0};
    tiga_status status = tiga_tensor_fold(x, "max", axes, 1, &v[0]);
    if (status == TIGA_OK)
        status = tensor_op2(IR_SUB, x, v[0], &v[1]);
    if (status == TIGA_OK)
        status = tensor_op1(IR_EXP, v[1], &v[2]);
    if (status == TIGA_OK)
        status = tiga_tensor_fold(v[2], "sum", axes, 1, &v[3]);
    if (status == TIGA_OK)
        status = tensor_op2(IR_DIV, v[2], v[3], out);
    for (int i = 0; i < 5; i++)
        tensor_free(v[i]);
    return status;
}

tiga_status tiga_tensor_softmax(tiga_tensor *x, int axis, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensor *wide = NULL, *r = NULL;
    if (!tensor_begin(x, out, "softmax") || !tensor_axis(x, "softmax", &axis))
        return TIGA_E_ARGUMENT;
    tiga_status status = widened(x, &wide);
    if (status == TIGA_OK)
        status = softmax_wide(wide, 1u << axis, &r);
    status = narrowed(status, r, x->dtype, out);
    tensor_free(wide);
    return status;
}

/* (x - mean) / sqrt(mean((x - mean) ^ 2) + eps) */
static tiga_status normalised(tiga_tensor *x, double eps, tiga_tensor **out) {
    tiga_tensor *mean = NULL, *d = NULL, *square = NULL, *var = NULL, *e = NULL, *sum = NULL, *root = NULL;
    uint32_t axes = 1u << (x->rank - 1);
    tiga_status status = tiga_tensor_fold(x, "mean", axes, 1, &mean);
    if (status == TIGA_OK)
        status = tensor_op2(IR_SUB, x, mean, &d);
    if (status == TIGA_OK)
        status = tensor_op2(IR_MUL, d, d, &square);
    if (status == TIGA_OK)
        status = tiga_tensor_fold(square, "mean", axes, 1, &var);
    if (status == TIGA_OK)
        status = tiga_tensor_number(x->ts, eps, &e);
    if (status == TIGA_OK)
        status = tensor_op2(IR_ADD, var, e, &sum);
    if (status == TIGA_OK)
        status = tensor_op1(IR_SQRT, sum, &root);
    if (status == TIGA_OK)
        status = tensor_op2(IR_DIV, d, root, out);
    tiga_tensor *made[] = {mean, d, square, var, e, sum, root};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        tensor_free(made[i]);
    return status;
}

/* *x becomes the result of an operation with y. */
static tiga_status then(ir_opcode code, tiga_tensor **x, tiga_tensor *y) {
    tiga_tensor *r = NULL;
    tiga_status status =
        tensor_home_of((tiga_tensor *[]){*x, y}, 2, "layer_norm") ? tensor_op2(code, *x, y, &r) : TIGA_E_ARGUMENT;
    if (status == TIGA_OK) {
        tensor_free(*x);
        *x = r;
    }
    return status;
}

tiga_status tiga_tensor_layer_norm(tiga_tensor *x, tiga_tensor *weight, tiga_tensor *bias, double eps,
                                   tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensor *wide = NULL, *r = NULL, *next = NULL;
    tiga_tensors *ts = tensor_begin(x, out, "layer_norm");
    if (!ts)
        return TIGA_E_ARGUMENT;
    if (!x->rank || !(ir_dtype_is_float((ir_dtype)x->dtype) || ir_dtype_is_half((ir_dtype)x->dtype)))
        return tensor_fail(ts, TIGA_E_TYPE, "layer_norm takes floats with an axis");
    tiga_status status = widened(x, &wide);
    if (status == TIGA_OK)
        status = normalised(wide, eps, &r);
    tensor_free(wide);
    status = narrowed(status, r, x->dtype, &next);
    if (status == TIGA_OK && weight)
        status = then(IR_MUL, &next, weight);
    if (status == TIGA_OK && bias)
        status = then(IR_ADD, &next, bias);
    if (status == TIGA_OK)
        *out = next;
    else
        tensor_free(next);
    return status;
}

tiga_status tiga_tensor_one_hot(tiga_tensor *index, int64_t n, int32_t dtype, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(index));
    tiga_tensor *wide = NULL, *column = NULL, *all = NULL, *hit = NULL;
    tiga_tensors *ts = tensor_begin(index, out, "one_hot");
    if (!ts)
        return TIGA_E_ARGUMENT;
    if (!ir_dtype_is_int((ir_dtype)index->dtype) || n < 0)
        return tensor_fail(ts, TIGA_E_TYPE, "one_hot takes integers, and a number of elements");
    tiga_status status = tiga_tensor_cast(index, TIGA_I64, &wide);
    if (status == TIGA_OK)
        status = tensor_newaxis(wide, wide->rank, &column);
    if (status == TIGA_OK)
        status = tiga_tensor_arange(ts, TIGA_I64, 0, n, 1, &all);
    if (status == TIGA_OK)
        status = tensor_op2(IR_EQ, column, all, &hit);
    if (status == TIGA_OK)
        status = tiga_tensor_cast(hit, dtype, out);
    tensor_free(wide);
    tensor_free(column);
    tensor_free(all);
    tensor_free(hit);
    return status;
}
