/* Our own transcendental functions against the C library's of the next wider type: on values that break such functions and
 * on many random ones.  The error is in units in the last place of the true value. */
#include "ir_support.h"

#include <float.h>

typedef long double wide;

static const struct {
    ir_opcode code;
    double (*f64)(double);
    wide (*f80)(wide);
    double most; /* units in the last place */
} functions[] = {
    {IR_EXP, exp, expl, 1.6},       {IR_EXPM1, expm1, expm1l, 1.6}, {IR_LOG, log, logl, 1.0},
    {IR_LOG1P, log1p, log1pl, 1.0}, {IR_TANH, tanh, tanhl, 1.8},    {IR_ERF, erf, erfl, 1.5},
    {IR_SIN, sin, sinl, 1.7},       {IR_COS, cos, cosl, 1.7},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static const double special[] = {0.0,
                                 -0.0,
                                 1,
                                 -1,
                                 0.5,
                                 -0.5,
                                 2,
                                 -2,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 FLT_MAX,
                                 -FLT_MAX,
                                 FLT_MIN,
                                 -FLT_MIN,
                                 FLT_TRUE_MIN,
                                 -FLT_TRUE_MIN,
                                 DBL_MAX,
                                 -DBL_MAX,
                                 DBL_MIN,
                                 -DBL_MIN,
                                 DBL_TRUE_MIN,
                                 -DBL_TRUE_MIN,
                                 88.72283,
                                 88.72284,
                                 -87.33655,
                                 -103.27893,
                                 -103.97208,
                                 -103.97209,
                                 -104,
                                 -105,
                                 89,
                                 0x1.921fb6p+0,
                                 0x1.921fb54442d18p+0,
                                 0x1.6ac5b262ca1ffp+849,
                                 8192,
                                 8193,
                                 4194304,
                                 4194305,
                                 1e22,
                                 709.782712893384,
                                 709.7827128933841,
                                 -708.3964185322641,
                                 -745.1332191019411,
                                 -745.1332191019412,
                                 -746,
                                 -747,
                                 710,
                                 0.55,
                                 9.0109,
                                 10,
                                 19.0615,
                                 20,
                                 17.33,
                                 36.7,
                                 1e-30,
                                 -1e-30,
                                 1e300,
                                 0x1p-25,
                                 0x1p-54,
                                 -0x1p-54,
                                 0.70710678118654752,
                                 1.4142135623730951,
                                 0.99999994,
                                 1.0000001,
                                 -0.99999994,
                                 0x1.fffffffffffffp-1,
                                 -0x1.fffffffffffffp-1};
enum { N_SPECIAL = sizeof special / sizeof *special };

/* got is a float of `digits` bits whose least exponent is `least`. */
static double error_of(wide got, wide want, int digits, int least, int most) {
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : 1e9;
    int e;
    frexpl(want, &e);
    wide unit = ldexpl(1, (e - digits < least ? least : e - digits)), beyond = ldexpl(1, most);
    if (isinf(want) || isinf(got)) /* as if the next number up were finite */
        return isinf(want)               ? (got == want ? 0 : 1e9)
               : (got > 0) == (want > 0) ? (double)((beyond - fabsl(want)) / ldexpl(1, most - digits))
                                         : 1e9;
    if (!!signbit(got) != !!signbit(want) && (want == 0 || got != 0))
        return 1e9;
    return (double)(fabsl(got - want) / unit);
}

static uint64_t state = 0x9e3779b97f4a7c15u;
static uint64_t next_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

/* A random fraction, with exponents where the functions have their shape. */
static double value(int i) {
    uint64_t r = next_bits();
    int exponent = i % 2 ? (int)(next_bits() % 14) - 6 : (int)(next_bits() % 60) - 45;
    double x = ldexp(1.0 + ldexp((double)(r >> 12), -52), exponent);
    return r & 1 ? -x : x;
}

static void check_f32(int k, float x) {
    ir_scalar_value v = ir_eval(functions[k].code, IR_F32, IR_F32, (ir_scalar_value[]){{.f = x}});
    double want = functions[k].f64((double)x), error = error_of(v.f, want, 24, -149, 128);
    cr_assert(error <= functions[k].most, "%s(%a) = %a, not %a: %g units", ir_op_describe(functions[k].code)->text,
              (double)x, (double)v.f, want, error);
}

static void check_f64(int k, double x) {
    ir_scalar_value v = ir_eval(functions[k].code, IR_F64, IR_F64, (ir_scalar_value[]){{.d = x}});
    wide want = functions[k].f80((wide)x);
    double error = error_of(v.d, want, 53, -1074, 1024);
    cr_assert(error <= functions[k].most, "%s(%a) = %a, not %La: %g units", ir_op_describe(functions[k].code)->text, x,
              v.d, want, error);
}

Test(math, special_values) {
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (int i = 0; i < N_SPECIAL; i++) {
            check_f32(k, (float)special[i]);
            check_f64(k, special[i]);
        }
}

Test(math, f32_within_two_units) {
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (int i = 0; i < 1000000; i++) {
            uint32_t bits = (uint32_t)(next_bits() >> 32);
            float x = (float)value(i);
            if (i % 3 == 0)
                memcpy(&x, &bits, sizeof x);
            check_f32(k, x);
        }
}

Test(math, f64_within_two_units) {
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (int i = 0; i < 1000000; i++) {
            uint64_t bits = next_bits();
            double x = value(i);
            if (i % 3 == 0)
                memcpy(&x, &bits, sizeof x);
            check_f64(k, x);
        }
}

Test(math, the_table_names_what_is_ours) {
    cr_assert_str_eq(ir_math_name(IR_EXP, IR_F32), "tiga_exp_f32");
    cr_assert_str_eq(ir_math_name(IR_TANH, IR_F64), "tiga_tanh_f64");
    cr_assert_null(ir_math_name(IR_SQRT, IR_F32));
    cr_assert_null(ir_math_name(IR_EXP, IR_I32));
    cr_assert_null(ir_math_name(IR_EXP, IR_F16));
}
