/* The one evaluator of scalar operations.  Every result is what ir_ops.def says, to the last bit, and nothing here is
 * undefined behaviour: integers go through unsigned arithmetic, casts check their range first. */
#include "ir/ir_private.h"

#include <math.h>
#include <string.h>

/* ---- which operation is defined on which type ---- */
typedef enum domain { ON_NONE, ON_ANY, ON_EQUAL, ON_LINEAR, ON_NUMBERS, ON_COMPLEX, ON_FLOATS, ON_BOOL } domain;

static domain domain_of(ir_opcode code) {
    switch (code) {
    case IR_EQ:
    case IR_NE:
        return ON_EQUAL;
    case IR_SELECT:
    case IR_CAST:
        return ON_ANY;
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_NEG:
        return ON_LINEAR;
    case IR_CONJ:
    case IR_REAL:
    case IR_IMAG:
        return ON_COMPLEX;
    case IR_REM:
    case IR_POW:
    case IR_MIN:
    case IR_MAX:
    case IR_ABS:
    case IR_SIGN:
    case IR_LT:
    case IR_LE:
    case IR_GT:
    case IR_GE:
        return ON_NUMBERS;
    case IR_ATAN2:
    case IR_COMPLEX:
    case IR_HYPOT:
    case IR_EXP:
    case IR_EXPM1:
    case IR_LOG:
    case IR_LOG1P:
    case IR_SQRT:
    case IR_FLOOR:
    case IR_CEIL:
    case IR_ROUND:
    case IR_SIN:
    case IR_COS:
    case IR_TAN:
    case IR_ASIN:
    case IR_ACOS:
    case IR_ATAN:
    case IR_SINH:
    case IR_COSH:
    case IR_TANH:
    case IR_ERF:
        return ON_FLOATS;
    case IR_AND:
    case IR_OR:
    case IR_NOT:
        return ON_BOOL;
    case IR_OP_NONE:
    case IR_OP_COUNT:
    case IR_CONST:
    case IR_FIELD:
    case IR_PARAM:
    case IR_DIMSIZE:
    case IR_DEGREE:
    case IR_ARG:
    case IR_BROADCAST:
    case IR_NEWAXIS:
    case IR_FOLD:
    case IR_REDUCE:
    case IR_COMBINE:
    case IR_RESHAPE:
    case IR_TRANSPOSE:
    case IR_SLICE:
    case IR_CONCAT:
    case IR_GATHER:
    case IR_CUMSUM:
    case IR_IOTA:
    case IR_MATMUL:
    case IR_TOTAL:
    case IR_CALL:
    case IR_GRAD:
    case IR_GET:
    case IR_PUSH:
    case IR_POP:
    case IR_RESTORE:
    case IR_REPEAT:
    case IR_WHILE:
    case IR_IF:
    case IR_ARM:
    case IR_YIELD:
    case IR_RET:
    case IR_ROWS:
    case IR_EDGES:
    case IR_RANGE:
    case IR_LOOP:
    case IR_LANES:
    case IR_TILES:
    case IR_NUMROWS:
    case IR_EDGEID:
    case IR_SLOT:
    case IR_SOURCE:
    case IR_LOAD:
    case IR_STORE:
    case IR_VAR:
    case IR_READ:
    case IR_SET:
    case IR_PARTIALS:
    case IR_ACCUM:
    case IR_COLLAPSE:
    case IR_BIND:
    case IR_INSTANCE:
    case IR_ACQUIRE:
    case IR_DONE:
    case IR_RELEASE:
    case IR_COPY:
    case IR_LAUNCH:
    case IR_PAGES:
    case IR_READI:
    case IR_READB:
        return ON_NONE;
    }
    return ON_NONE;
}

bool ir_eval_defined(ir_opcode code, ir_dtype dtype) {
    if (dtype >= IR_DTYPE_COUNT)
        return false;
    switch (domain_of(code)) {
    case ON_NONE:
        return false;
    case ON_ANY:
        return true;
    case ON_EQUAL:
        return !ir_dtype_is_half(dtype);
    case ON_LINEAR:
        return ir_dtype_is_float(dtype) || ir_dtype_is_int(dtype) || ir_dtype_is_complex(dtype);
    case ON_NUMBERS:
        return ir_dtype_is_float(dtype) || ir_dtype_is_int(dtype);
    case ON_COMPLEX:
        return ir_dtype_is_complex(dtype);
    case ON_FLOATS:
        return ir_dtype_is_float(dtype);
    case ON_BOOL:
        return dtype == IR_BOOL;
    }
    return false;
}

/* ---- integers ---- */
static int64_t wrap(ir_dtype t, uint64_t x) {
    if (t == IR_I32)
        return (int32_t)(uint32_t)x;
    if (t == IR_I8)
        return (int8_t)(uint8_t)x;
    return t == IR_U8 ? (int64_t)(x & 255) : (int64_t)x;
}

static int64_t divide(ir_dtype t, int64_t a, int64_t b) {
    if (b == 0)
        return 0;
    return b == -1 ? wrap(t, 0 - (uint64_t)a) : a / b;
}

static int64_t remainder_of(int64_t a, int64_t b) {
    if (b == 0)
        return a;
    return b == -1 ? 0 : a % b;
}

static int64_t power(ir_dtype t, int64_t a, int64_t n) {
    if (n < 0)
        return a == 1 ? 1 : a == -1 ? (n % 2 ? -1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)a;
    for (; n; n /= 2) {
        if (n & 1)
            result *= square;
        square *= square;
    }
    return wrap(t, result);
}

static int64_t eval_int(ir_opcode code, ir_dtype t, int64_t a, int64_t b) {
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    if (code == IR_ADD)
        return wrap(t, ua + ub);
    if (code == IR_SUB)
        return wrap(t, ua - ub);
    if (code == IR_MUL)
        return wrap(t, ua * ub);
    if (code == IR_DIV)
        return divide(t, a, b);
    if (code == IR_REM)
        return remainder_of(a, b);
    if (code == IR_POW)
        return power(t, a, b);
    if (code == IR_MIN)
        return a < b ? a : b;
    if (code == IR_MAX)
        return a > b ? a : b;
    if (code == IR_NEG)
        return wrap(t, 0 - ua);
    if (code == IR_ABS)
        return a < 0 ? wrap(t, 0 - ua) : a;
    if (code == IR_SIGN)
        return a > 0 ? 1 : a < 0 ? -1 : a;
    if (code == IR_AND)
        return a && b;
    if (code == IR_OR)
        return a || b;
    if (code == IR_NOT)
        return !a;
    BASE_BUG("%s is not defined on %s", ir_op_describe(code)->text, ir_dtype_text(t));
}

/* ---- floats: the same lines for each type, with the C library's function of that type where none is ours ---- */
#define EVAL_FLOAT(NAME, T, F)                                                                                         \
    static T NAME(ir_opcode code, T a, T b) {                                                                          \
        if (code == IR_ADD)                                                                                            \
            return a + b;                                                                                              \
        if (code == IR_SUB)                                                                                            \
            return a - b;                                                                                              \
        if (code == IR_MUL)                                                                                            \
            return a * b;                                                                                              \
        if (code == IR_DIV)                                                                                            \
            return a / b;                                                                                              \
        if (code == IR_REM)                                                                                            \
            return F(fmod)(a, b);                                                                                      \
        if (code == IR_MIN)                                                                                            \
            return a < b || isnan(a) ? a : b;                                                                          \
        if (code == IR_MAX)                                                                                            \
            return a > b || isnan(a) ? a : b;                                                                          \
        if (code == IR_NEG)                                                                                            \
            return -a;                                                                                                 \
        if (code == IR_ABS)                                                                                            \
            return F(fabs)(a);                                                                                         \
        if (code == IR_SIGN)                                                                                           \
            return a > 0 ? (T)1 : a < 0 ? (T) - 1 : a;                                                                 \
        if (code == IR_SQRT)                                                                                           \
            return F(sqrt)(a);                                                                                         \
        if (code == IR_FLOOR)                                                                                          \
            return F(floor)(a);                                                                                        \
        if (code == IR_CEIL)                                                                                           \
            return F(ceil)(a);                                                                                         \
        if (code == IR_ROUND)                                                                                          \
            return F(rint)(a);                                                                                         \
        BASE_BUG("%s is not defined on floats", ir_op_describe(code)->text);                                           \
    }
#define SINGLE(name) name##f
#define DOUBLE(name) name
EVAL_FLOAT(eval_f32, float, SINGLE)
EVAL_FLOAT(eval_f64, double, DOUBLE)

/* ---- comparison and casts ---- */
#define COMPARE(a, b)                                                                                                  \
    (code == IR_EQ   ? (a) == (b)                                                                                      \
     : code == IR_NE ? (a) != (b)                                                                                      \
     : code == IR_LT ? (a) < (b)                                                                                       \
     : code == IR_LE ? (a) <= (b)                                                                                      \
     : code == IR_GT ? (a) > (b)                                                                                       \
                     : (a) >= (b))

static bool compare(ir_opcode code, ir_dtype t, const ir_scalar_value *v) {
    if (t == IR_F32)
        return COMPARE(v[0].f, v[1].f);
    if (t == IR_F64)
        return COMPARE(v[0].d, v[1].d);
    return COMPARE(v[0].i, v[1].i);
}

/* Truncates; what does not fit saturates.  The least number and the one above the largest are exact in double. */
static int64_t to_integer(ir_dtype t, double x) {
    int64_t least, most;
    ir_dtype_limits(t, &least, &most);
    if (isnan(x))
        return 0;
    if (x >= (double)(most / 2 + 1) * 2)
        return most;
    return x <= (double)least ? least : (int64_t)x;
}

static float from_half(ir_dtype t, ir_scalar_value v) {
    return t == IR_F16 ? base_f32_from_f16((uint16_t)v.i) : base_f32_from_bf16((uint16_t)v.i);
}

static int64_t to_half(ir_dtype t, float x) { return t == IR_F16 ? base_f16_from_f32(x) : base_bf16_from_f32(x); }

static ir_scalar_value cast(ir_dtype from, ir_dtype to, ir_scalar_value v) {
    ir_scalar_value r = {.z = {0, 0}};
    if (from == to)
        return v;
    if (ir_dtype_is_complex(from) || ir_dtype_is_complex(to)) {
        ir_dtype part = ir_dtype_part(from);
        ir_scalar_value re = ir_part(from, v, 0), im = ir_part(from, v, 1);
        return ir_complex(to, cast(part, ir_dtype_part(to), re), cast(part, ir_dtype_part(to), im));
    }
    if (ir_dtype_is_half(from)) { /* a 16-bit float goes and comes by way of f32 */
        r.f = from_half(from, v);
        return cast(IR_F32, to, r);
    }
    if (ir_dtype_is_half(to)) {
        r.i = to_half(to, cast(from, IR_F32, v).f);
        return r;
    }
    bool is_float = ir_dtype_is_float(from);
    double x = from == IR_F32 ? (double)v.f : from == IR_F64 ? v.d : 0;
    if (to == IR_BOOL)
        r.i = is_float ? x != 0 : v.i != 0;
    else if (to == IR_F32) /* one rounding: never through double */
        r.f = is_float ? (float)x : (float)v.i;
    else if (to == IR_F64)
        r.d = is_float ? x : (double)v.i;
    else
        r.i = is_float ? to_integer(to, x) : wrap(to, (uint64_t)v.i);
    return r;
}

ir_scalar_value ir_eval(ir_opcode code, ir_dtype dtype, ir_dtype result, const ir_scalar_value *args) {
    ir_scalar_value r = {.z = {0, 0}};
    ir_class cls = ir_op_describe(code)->cls;
    if (!ir_eval_defined(code, dtype))
        BASE_BUG("%s is not defined on %s", ir_op_describe(code)->text, ir_dtype_text(dtype));
    if (code == IR_SELECT)
        return args[0].i ? args[1] : args[2];
    if (code == IR_CAST)
        return cast(dtype, result, args[0]);
    if (code == IR_COMPLEX)
        return ir_complex(result, args[0], args[1]);
    if (ir_dtype_is_complex(dtype))
        return ir_eval_complex(code, dtype, args);
    if (cls == IR_CLASS_COMPARE) {
        r.i = compare(code, dtype, args);
        return r;
    }
    const ir_scalar_value *second = cls == IR_CLASS_BINARY ? &args[1] : &args[0];
    bool own = ir_math_name(code, dtype) != NULL;
    if (dtype == IR_F32 && own)
        r.f = ir_math_f32(code, args[0].f, second->f);
    else if (dtype == IR_F64 && own)
        r.d = ir_math_f64(code, args[0].d, second->d);
    else if (dtype == IR_F32)
        r.f = eval_f32(code, args[0].f, second->f);
    else if (dtype == IR_F64)
        r.d = eval_f64(code, args[0].d, second->d);
    else
        r.i = eval_int(code, dtype, args[0].i, second->i);
    return r;
}

/* ---- reducers ---- */
static ir_scalar_value number(ir_dtype t, double x) {
    ir_scalar_value v = {.z = {x, 0}};
    return cast(IR_F64, t, v); /* infinities saturate to the limits of integers */
}

ir_scalar_value ir_kind_identity(ir_kind k, ir_dtype t) {
    switch (k) {
    case IR_KIND_SUM:
        return number(t, 0);
    case IR_KIND_PROD:
        return number(t, 1);
    case IR_KIND_MIN:
        return number(t, (double)INFINITY);
    case IR_KIND_MAX:
        return number(t, (double)-INFINITY);
    case IR_KIND_AND:
        return (ir_scalar_value){.i = 1};
    case IR_KIND_OR:
        return (ir_scalar_value){.i = 0};
    case IR_KIND_ARGMIN:
    case IR_KIND_ARGMAX:
    case IR_KIND_SOFTMAX:
    case IR_KIND_LOGSUMEXP:
    case IR_KIND_VAR:
    case IR_KIND_STD:
    case IR_KIND_MEAN:
    case IR_KIND_COUNT:
    case IR_KIND_ANY:
    case IR_KIND_ALL:
    case IR_KIND_COUNT_:
        break;
    }
    BASE_BUG("no identity for this kind");
}

bool ir_kind_is_primitive(ir_kind k) { return k <= IR_KIND_OR; }

ir_opcode ir_kind_opcode(ir_kind k) {
    static const ir_opcode codes[] = {[IR_KIND_SUM] = IR_ADD, [IR_KIND_PROD] = IR_MUL, [IR_KIND_MIN] = IR_MIN,
                                      [IR_KIND_MAX] = IR_MAX, [IR_KIND_AND] = IR_AND,  [IR_KIND_OR] = IR_OR};
    BASE_CHECK(ir_kind_is_primitive(k));
    return codes[k];
}

ir_scalar_value ir_kind_combine(ir_kind k, ir_dtype t, ir_scalar_value a, ir_scalar_value b) {
    return ir_eval(ir_kind_opcode(k), t, t, (ir_scalar_value[]){a, b});
}

static bool is_nan(ir_dtype t, ir_scalar_value v) { return t == IR_F32 ? isnan(v.f) : t == IR_F64 && isnan(v.d); }

bool ir_arg_better(ir_kind k, ir_dtype t, ir_scalar_value v, int64_t e, ir_scalar_value best, int64_t best_e) {
    if (e < 0 || best_e < 0)
        return e >= 0;
    bool nan = is_nan(t, v), best_nan = is_nan(t, best);
    if (nan || best_nan)
        return nan && (!best_nan || e < best_e);
    ir_scalar_value pair[] = {v, best};
    if (compare(k == IR_KIND_ARGMIN ? IR_LT : IR_GT, t, pair))
        return true;
    return compare(IR_EQ, t, pair) && e < best_e;
}

bool ir_scalar_same(ir_dtype t, ir_scalar_value a, ir_scalar_value b) {
    if (t == IR_F32)
        return !memcmp(&a.f, &b.f, sizeof a.f);
    if (t == IR_F64)
        return !memcmp(&a.d, &b.d, sizeof a.d);
    if (ir_dtype_is_complex(t))
        return !memcmp(&a, &b, ir_dtype_bytes(t));
    return a.i == b.i;
}

/* ---- memory ---- */
ir_scalar_value ir_load_scalar(ir_dtype t, const void *array, int64_t index) {
    ir_scalar_value v = {.z = {0, 0}};
    const unsigned char *p = (const unsigned char *)array + (size_t)index * ir_dtype_bytes(t);
    if (t == IR_BOOL) {
        v.i = *p != 0;
    } else if (t == IR_I8) {
        v.i = *(const signed char *)p;
    } else if (t == IR_U8) {
        v.i = *p;
    } else if (ir_dtype_is_half(t)) {
        uint16_t x;
        memcpy(&x, p, sizeof x);
        v.i = x;
    } else if (t == IR_I32) {
        int32_t x;
        memcpy(&x, p, sizeof x);
        v.i = x;
    } else {
        memcpy(&v, p, ir_dtype_bytes(t));
    }
    return v;
}

void ir_store_scalar(ir_dtype t, void *array, int64_t index, ir_scalar_value v) {
    unsigned char *p = (unsigned char *)array + (size_t)index * ir_dtype_bytes(t);
    if (t == IR_BOOL) {
        *p = v.i != 0;
    } else if (t == IR_I8 || t == IR_U8) {
        *p = (unsigned char)v.i;
    } else if (ir_dtype_is_half(t)) {
        uint16_t x = (uint16_t)v.i;
        memcpy(p, &x, sizeof x);
    } else if (t == IR_I32) {
        int32_t x = (int32_t)v.i;
        memcpy(p, &x, sizeof x);
    } else {
        memcpy(p, &v, ir_dtype_bytes(t));
    }
}
