/* Complex numbers: pairs of f32 or of f64, each part rounded once after every step.  Emitted code and pass `split` (which
 * takes complex numbers apart) compute the same steps in the same order.
 *
 *   a b   re: a.re b.re - a.im b.im   im: a.re b.im + a.im b.re   (nothing is rescued when parts overflow)
 *   a / b Smith's way, by the larger part of b: p, q = the larger and the smaller one, r = q / p, d = p + q r;
 *         a.re + a.im r (or with a's parts exchanged) over d.  b = 0: a's parts over |b.re|. */
#include "ir/ir_private.h"

#include <math.h>

ir_scalar_value ir_part(ir_dtype t, ir_scalar_value v, int which) {
    ir_scalar_value r = {.z = {0, 0}};
    if (t == IR_C64)
        r.f = v.c[which];
    else if (t == IR_C128)
        r.d = v.z[which];
    else if (which == 0) /* a real number has itself, and a zero of its type */
        r = v;
    return r;
}

ir_scalar_value ir_complex(ir_dtype t, ir_scalar_value re, ir_scalar_value im) {
    if (t == IR_C64)
        return (ir_scalar_value){.c = {re.f, im.f}};
    BASE_CHECK(t == IR_C128);
    return (ir_scalar_value){.z = {re.d, im.d}};
}

bool ir_cast_defined(ir_dtype from, ir_dtype to) { return !ir_dtype_is_complex(from) || ir_dtype_is_complex(to); }

ir_dtype ir_elementwise_dtype(ir_opcode code, ir_dtype operand) {
    if (ir_op_describe(code)->cls == IR_CLASS_COMPARE)
        return IR_BOOL;
    if (code == IR_REAL || code == IR_IMAG)
        return ir_dtype_part(operand);
    if (code == IR_COMPLEX)
        return operand == IR_F32 ? IR_C64 : IR_C128;
    return operand;
}

#define EVAL_COMPLEX(NAME, T, MEMBER, PART, ABS)                                                                       \
    static ir_scalar_value NAME##_divide(T a, T b, T c, T d) {                                                         \
        bool first = ABS(c) >= ABS(d);                                                                                 \
        T p = first ? c : d, q = first ? d : c, x = first ? a : b, y = first ? b : a;                                  \
        T r = q / p, s = p + q * r, re = x + y * r, im = first ? b - a * r : b * r - a;                                \
        if (c == 0 && d == 0) {                                                                                        \
            s = ABS(c);                                                                                                \
            re = a;                                                                                                    \
            im = b;                                                                                                    \
        }                                                                                                              \
        return (ir_scalar_value){.MEMBER = {re / s, im / s}};                                                          \
    }                                                                                                                  \
    static ir_scalar_value NAME(ir_opcode code, const T *x, const T *y) {                                              \
        if (code == IR_ADD)                                                                                            \
            return (ir_scalar_value){.MEMBER = {x[0] + y[0], x[1] + y[1]}};                                            \
        if (code == IR_SUB)                                                                                            \
            return (ir_scalar_value){.MEMBER = {x[0] - y[0], x[1] - y[1]}};                                            \
        if (code == IR_MUL)                                                                                            \
            return (ir_scalar_value){.MEMBER = {x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]}};                \
        if (code == IR_DIV)                                                                                            \
            return NAME##_divide(x[0], x[1], y[0], y[1]);                                                              \
        if (code == IR_NEG)                                                                                            \
            return (ir_scalar_value){.MEMBER = {-x[0], -x[1]}};                                                        \
        if (code == IR_CONJ)                                                                                           \
            return (ir_scalar_value){.MEMBER = {x[0], -x[1]}};                                                         \
        if (code == IR_REAL)                                                                                           \
            return (ir_scalar_value){.PART = x[0]};                                                                    \
        if (code == IR_IMAG)                                                                                           \
            return (ir_scalar_value){.PART = x[1]};                                                                    \
        bool equal = x[0] == y[0] && x[1] == y[1];                                                                     \
        BASE_CHECK(code == IR_EQ || code == IR_NE);                                                                    \
        return (ir_scalar_value){.i = code == IR_EQ ? equal : !equal};                                                 \
    }
EVAL_COMPLEX(eval_c64, float, c, f, fabsf)
EVAL_COMPLEX(eval_c128, double, z, d, fabs)

ir_scalar_value ir_eval_complex(ir_opcode code, ir_dtype t, const ir_scalar_value *args) {
    const ir_scalar_value *second = ir_op_describe(code)->cls == IR_CLASS_UNARY ? &args[0] : &args[1];
    return t == IR_C64 ? eval_c64(code, args[0].c, second->c) : eval_c128(code, args[0].z, second->z);
}
