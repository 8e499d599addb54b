/* Operations element by element: names, element types, broadcasting; and the functions that are made of several. */
#include "tensor/tensor.h"

#include <string.h>

/* ---- broadcasting ---- */
static bool broadcast_into(const tiga_tensor *a, int64_t *shape, int rank) {
    for (int i = 1; i <= a->rank; i++) {
        int64_t *have = &shape[rank - i], give = a->shape[a->rank - i];
        if (*have != give && *have != 1 && give != 1)
            return false;
        if (*have == 1)
            *have = give;
    }
    return true;
}

static tiga_status broadcast(const char *who, tiga_tensor *const *args, int n, int64_t *shape, int *rank) {
    *rank = 0;
    for (int i = 0; i < n; i++)
        *rank = args[i]->rank > *rank ? args[i]->rank : *rank;
    for (int i = 0; i < *rank; i++)
        shape[i] = 1;
    for (int i = 0; i < n; i++) {
        if (broadcast_into(args[i], shape, *rank))
            continue;
        base_str s = {0};
        for (int k = 0; k < n; k++) {
            base_str_add(&s, k ? ", " : "");
            tensor_shape_text(&s, args[k]);
        }
        tensor_fail(args[0]->ts, TIGA_E_TYPE, "%s: shapes that do not broadcast: %s", who, base_str_text(&s));
        base_str_fini(&s);
        return TIGA_E_TYPE;
    }
    return TIGA_OK;
}

uint8_t tensor_stretch_of(tiga_tensor *const *args, int n, const int64_t *shape, int rank) {
    uint8_t out = 0;
    for (int i = 0; i < rank; i++) {
        bool repeats = shape[i] != 1;
        for (int k = 0; k < n; k++) {
            int at = i - (rank - args[k]->rank);
            repeats &= at < 0 || args[k]->shape[at] == 1 || (tensor_repeats(args[k]) >> at & 1);
        }
        out |= (uint8_t)(repeats << i);
    }
    return out;
}

int tensor_arithmetic_rank(int rank, const int64_t *shape) {
    int lead = 0;
    while (lead < rank && shape[lead] == 1)
        lead++;
    return rank - lead;
}

/* Operands are of one element type by now. */
static tiga_status make(ir_opcode code, ir_dtype result, tiga_tensor *const *args, int n, tiga_tensor **out) {
    int64_t shape[TENSOR_MAX_RANK];
    int rank;
    const char *who = ir_op_describe(code)->text;
    tiga_status status = broadcast(who, args, n, shape, &rank);
    if (status != TIGA_OK)
        return status;
    if (tensor_arithmetic_rank(rank, shape) > IR_MAX_RANK)
        return tensor_fail(args[0]->ts, TIGA_E_UNSUPPORTED, "%s: arithmetic has at most %d axes", who, IR_MAX_RANK);
    if (tensor_count((int32_t)result, rank, shape) < 0)
        return tensor_fail(args[0]->ts, TIGA_E_ARGUMENT, "%s: the result is larger than any memory", who);
    *out = tensor_node(TENSOR_COMPUTE, (uint16_t)code, (int32_t)result, rank, shape, args, (uint32_t)n);
    if (!*out)
        return TIGA_E_MEMORY;
    (*out)->stretch = tensor_stretch_of(args, n, shape, rank);
    return TIGA_OK;
}

/* ---- element types ---- */
/* 16-bit floats: to f32, the operation, and back. */
static tiga_status in_f32(ir_opcode code, tiga_tensor *const *args, int n, tiga_tensor **out) {
    tiga_tensor *wide[3] = {0}, *r = NULL;
    int32_t dtype = args[n - 1]->dtype;
    tiga_status status = TIGA_OK;
    for (int i = 0; i < n && status == TIGA_OK; i++)
        status = args[i]->dtype == dtype ? tiga_tensor_cast(args[i], TIGA_F32, &wide[i])
                                         : (wide[i] = tensor_retain(args[i]), TIGA_OK);
    if (status == TIGA_OK)
        status = tensor_elementwise(code, wide, n, &r);
    if (status == TIGA_OK && r->dtype == TIGA_F32)
        status = tensor_give(tiga_tensor_cast(r, dtype, out), r);
    else if (status == TIGA_OK)
        *out = r;
    for (int i = 0; i < n; i++)
        tensor_free(wide[i]);
    return status;
}

static tiga_status check_types(ir_opcode code, tiga_tensor *const *args, int n) {
    int first = code == IR_SELECT;
    const char *who = ir_op_describe(code)->text;
    if (first && args[0]->dtype != TIGA_BOOL)
        return tensor_fail(args[0]->ts, TIGA_E_TYPE, "select: the condition is %s, not bool",
                           tiga_dtype_text(args[0]->dtype));
    for (int i = first + 1; i < n; i++)
        if (args[i]->dtype != args[first]->dtype)
            return tensor_fail(args[0]->ts, TIGA_E_TYPE, "%s: %s and %s; cast one of them", who,
                               tiga_dtype_text(args[first]->dtype), tiga_dtype_text(args[i]->dtype));
    if (!ir_eval_defined(code, (ir_dtype)args[first]->dtype))
        return tensor_fail(args[0]->ts, TIGA_E_TYPE, "%s is not defined on %s", who,
                           tiga_dtype_text(args[first]->dtype));
    return TIGA_OK;
}

/* Numbers take the element type of the others; alone, f32 or i64. */
static tiga_status adopt(ir_opcode code, tiga_tensor *const *args, int n, tiga_tensor **out) {
    int first = code == IR_SELECT;
    int32_t dtype = -1;
    bool real = false;
    for (int i = first; i < n; i++) {
        real |= args[i]->weak && args[i]->dtype == TIGA_F64;
        if (!args[i]->weak && dtype < 0)
            dtype = args[i]->dtype;
    }
    bool floats_only = ir_eval_defined(code, IR_F32) && !ir_eval_defined(code, IR_I64);
    dtype = dtype >= 0 ? dtype : real || floats_only ? TIGA_F32 : TIGA_I64;
    for (int i = 0; i < n; i++) {
        tiga_status status = args[i]->weak && i >= first ? tensor_adopt(args[i], dtype, &out[i])
                                                         : (out[i] = tensor_retain(args[i]), TIGA_OK);
        if (status != TIGA_OK)
            return status;
    }
    return TIGA_OK;
}

tiga_status tensor_elementwise(ir_opcode code, tiga_tensor *const *args, int n, tiga_tensor **out) {
    tiga_tensor *in[3] = {0};
    *out = NULL;
    tiga_status status = adopt(code, args, n, in);
    int first = code == IR_SELECT;
    bool half = status == TIGA_OK && ir_dtype_is_half((ir_dtype)in[n - 1]->dtype) && code != IR_SELECT;
    for (int i = first; half && i < n; i++)
        half = in[i]->dtype == in[n - 1]->dtype;
    if (status == TIGA_OK && half) {
        status = in_f32(code, in, n, out);
    } else if (status == TIGA_OK) {
        status = check_types(code, in, n);
        if (status == TIGA_OK)
            status = make(code, ir_elementwise_dtype(code, (ir_dtype)in[n - 1]->dtype), in, n, out);
    }
    for (int i = 0; i < n; i++)
        tensor_free(in[i]);
    return status;
}

tiga_status tensor_op1(ir_opcode code, tiga_tensor *a, tiga_tensor **out) {
    return tensor_elementwise(code, &a, 1, out);
}

tiga_status tensor_op2(ir_opcode code, tiga_tensor *a, tiga_tensor *b, tiga_tensor **out) {
    return tensor_elementwise(code, (tiga_tensor *[]){a, b}, 2, out);
}

tiga_status tiga_tensor_cast(tiga_tensor *x, int32_t dtype, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (out)
        *out = NULL;
    tiga_tensors *ts = out ? tensor_home_of(&x, 1, "tiga_tensor_cast") : NULL;
    if (!ts)
        return TIGA_E_ARGUMENT;
    if (!tiga_dtype_bytes(dtype))
        return tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_cast: %d is no element type", dtype);
    if (!ir_cast_defined((ir_dtype)x->dtype, (ir_dtype)dtype))
        return tensor_fail(ts, TIGA_E_TYPE, "%s cannot become %s", tiga_dtype_text(x->dtype), tiga_dtype_text(dtype));
    if (x->weak && dtype != TIGA_BOOL)
        return tensor_adopt(x, dtype, out);
    if (x->dtype == dtype && !x->weak) {
        *out = tensor_retain(x);
        return TIGA_OK;
    }
    return make(IR_CAST, (ir_dtype)dtype, &x, 1, out);
}

/* ---- functions made of several; the formulas are those of docs/language.md ---- */
typedef struct calc { /* a little machine: values made on the way are freed at the end */
    tiga_tensors *ts;
    tiga_tensor *made[24];
    int n;
    tiga_status status;
} calc;

static tiga_tensor *keep(calc *c, tiga_tensor *x) {
    BASE_CHECK(c->n < 24);
    if (x)
        c->made[c->n++] = x;
    else if (c->status == TIGA_OK)
        c->status = TIGA_E_MEMORY;
    return x;
}

static tiga_tensor *op(calc *c, ir_opcode code, tiga_tensor *a, tiga_tensor *b) {
    tiga_tensor *x = NULL;
    if (c->status == TIGA_OK)
        c->status = tensor_elementwise(code, (tiga_tensor *[]){a, b}, b ? 2 : 1, &x);
    return c->status == TIGA_OK ? keep(c, x) : NULL;
}

static tiga_tensor *pick(calc *c, tiga_tensor *cond, tiga_tensor *a, tiga_tensor *b) {
    tiga_tensor *x = NULL;
    if (c->status == TIGA_OK)
        c->status = tensor_elementwise(IR_SELECT, (tiga_tensor *[]){cond, a, b}, 3, &x);
    return c->status == TIGA_OK ? keep(c, x) : NULL;
}

/* A number that adopts the type of what it meets. */
static tiga_tensor *num(calc *c, double v) {
    tiga_tensor *x = NULL;
    if (c->status == TIGA_OK)
        c->status = tiga_tensor_number(c->ts, v, &x);
    if (x)
        x->constant = true;
    return c->status == TIGA_OK ? keep(c, x) : NULL;
}

static tiga_tensor *sigmoid(calc *c, tiga_tensor *const *a, int n) {
    (void)n;
    return op(c, IR_DIV, num(c, 1), op(c, IR_ADD, num(c, 1), op(c, IR_EXP, op(c, IR_NEG, a[0], NULL), NULL)));
}
static tiga_tensor *relu(calc *c, tiga_tensor *const *a, int n) {
    (void)n;
    return op(c, IR_MAX, a[0], num(c, 0));
}
static tiga_tensor *leaky_relu(calc *c, tiga_tensor *const *a, int n) {
    tiga_tensor *slope = n > 1 ? a[1] : num(c, 0.01);
    return pick(c, op(c, IR_GT, a[0], num(c, 0)), a[0], op(c, IR_MUL, slope, a[0]));
}
static tiga_tensor *elu(calc *c, tiga_tensor *const *a, int n) {
    tiga_tensor *low = op(c, IR_EXPM1, a[0], NULL), *slope = n > 1 ? a[1] : num(c, 1);
    return pick(c, op(c, IR_GT, a[0], num(c, 0)), a[0], op(c, IR_MUL, slope, low));
}
static tiga_tensor *gelu(calc *c, tiga_tensor *const *a, int n) {
    (void)n;
    tiga_tensor *e = op(c, IR_ERF, op(c, IR_MUL, a[0], num(c, 0.7071067811865476)), NULL);
    return op(c, IR_MUL, op(c, IR_MUL, num(c, 0.5), a[0]), op(c, IR_ADD, num(c, 1), e));
}
static tiga_tensor *silu(calc *c, tiga_tensor *const *a, int n) {
    (void)n;
    return op(c, IR_DIV, a[0], op(c, IR_ADD, num(c, 1), op(c, IR_EXP, op(c, IR_NEG, a[0], NULL), NULL)));
}
static tiga_tensor *softplus(calc *c, tiga_tensor *const *a, int n) {
    (void)n;
    tiga_tensor *e = op(c, IR_EXP, op(c, IR_NEG, op(c, IR_ABS, a[0], NULL), NULL), NULL);
    return op(c, IR_ADD, op(c, IR_MAX, a[0], num(c, 0)), op(c, IR_LOG1P, e, NULL));
}
static tiga_tensor *rsqrt(calc *c, tiga_tensor *const *a, int n) {
    (void)n;
    return op(c, IR_DIV, num(c, 1), op(c, IR_SQRT, a[0], NULL));
}
static tiga_tensor *clamp(calc *c, tiga_tensor *const *a, int n) {
    (void)n;
    return op(c, IR_MIN, op(c, IR_MAX, a[0], a[1]), a[2]);
}

static const struct {
    const char *name;
    int lo, hi;
    tiga_tensor *(*make)(calc *c, tiga_tensor *const *args, int n);
} composite[] = {{"sigmoid", 1, 1, sigmoid},   {"relu", 1, 1, relu},   {"leaky_relu", 1, 2, leaky_relu},
                 {"elu", 1, 2, elu},           {"gelu", 1, 1, gelu},   {"silu", 1, 1, silu},
                 {"softplus", 1, 1, softplus}, {"rsqrt", 1, 1, rsqrt}, {"clamp", 3, 3, clamp}};

/* What a number as the first operand becomes: as the others; with numbers only, f32, or i64 where the formula has it so. */
static int32_t first_dtype(size_t at, tiga_tensor *const *args, int n) {
    bool whole = (composite[at].make == relu || composite[at].make == clamp) && args[0]->dtype == TIGA_I64;
    for (int i = 1; i < n; i++) {
        if (!args[i]->weak)
            return args[i]->dtype;
        whole &= args[i]->dtype == TIGA_I64;
    }
    return whole ? TIGA_I64 : TIGA_F32;
}

static tiga_status run_composite(size_t at, tiga_tensor *const *args, int n, tiga_tensor **out) {
    calc c = {.ts = args[0]->ts};
    tiga_tensor *in = args[0], *wide = NULL;
    if (in->weak) {
        c.status = tensor_adopt(in, first_dtype(at, args, n), &wide);
        in = wide;
    }
    tiga_tensor *list[3] = {in, n > 1 ? args[1] : NULL, n > 2 ? args[2] : NULL};
    tiga_tensor *x = c.status == TIGA_OK ? composite[at].make(&c, list, n) : NULL;
    if (c.status == TIGA_OK)
        *out = tensor_retain(x);
    for (int i = 0; i < c.n; i++)
        tensor_free(c.made[i]);
    tensor_free(wide);
    return c.status;
}

static tiga_status fail_name(tiga_tensors *ts, const char *name) {
    const char *best = NULL;
    size_t distance = strlen(name) / 2 + 1;
    for (ir_opcode c = 1; c < IR_OP_COUNT; c++) {
        const ir_op_desc *d = ir_op_describe(c);
        size_t far = ir_class_is_elementwise(d->cls) && c != IR_CAST ? base_edit_distance(name, d->text) : distance;
        if (far < distance) {
            distance = far;
            best = d->text;
        }
    }
    return tensor_fail(ts, TIGA_E_NAME, "there is no operation '%s'%s%s%s", name, best ? "; did you mean '" : "",
                       best ? best : "", best ? "'?" : "");
}

static bool find_op(const char *name, ir_opcode *code) {
    return ir_op_from_text(name, code) && ir_class_is_elementwise(ir_op_describe(*code)->cls) && *code != IR_CAST;
}

static tiga_status check_count(tiga_tensors *ts, const char *name, int n, int lo, int hi) {
    if (n >= lo && n <= hi)
        return TIGA_OK;
    return tensor_fail(ts, TIGA_E_ARGUMENT, "%s takes %d operand%s, %d given", name, lo, lo == 1 ? "" : "s", n);
}

tiga_status tiga_tensor_op(const char *name, tiga_tensor *const *args, int n, tiga_tensor **out) {
    TENSOR_TURN(tensor_home_first(args, n));
    ir_opcode code;
    if (out)
        *out = NULL;
    tiga_tensors *ts = out && name ? tensor_home_of(args, n, name) : NULL;
    if (!ts)
        return TIGA_E_ARGUMENT;
    for (size_t i = 0; i < sizeof composite / sizeof *composite; i++)
        if (!strcmp(name, composite[i].name)) {
            tiga_status status = check_count(ts, name, n, composite[i].lo, composite[i].hi);
            return status == TIGA_OK ? run_composite(i, args, n, out) : status;
        }
    if (!find_op(name, &code))
        return fail_name(ts, name);
    const ir_op_desc *d = ir_op_describe(code);
    tiga_status status = check_count(ts, name, n, d->min_args, d->max_args);
    if (status == TIGA_OK && tensor_is_complex_function(code) && ir_dtype_is_complex((ir_dtype)args[0]->dtype))
        return tensor_complex_function(code, args[0], out);
    return status == TIGA_OK ? tensor_elementwise(code, args, n, out) : status;
}
