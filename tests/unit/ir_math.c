/* Our own transcendental functions against the C library's of the next wider type: on values that break such functions and
 * on many random ones.  The error is in units in the last place of the true value. */
#include "ir_support.h"

#include <float.h>
#include <stdio.h>

typedef long double wide;

typedef struct function {
    ir_opcode code;
    double (*f64)(double);
    wide (*f80)(wide);
    double (*two_f64)(double, double);
    wide (*two_f80)(wide, wide);
    double most; /* units in the last place */
} function;

#define ONE(NAME, stem, most) {IR_##NAME, stem, stem##l, NULL, NULL, most}
#define TWO(NAME, stem, most) {IR_##NAME, NULL, NULL, stem, stem##l, most}
static const function functions[] = {
    ONE(EXP, exp, 1.6),   ONE(EXPM1, expm1, 1.6), ONE(LOG, log, 1.0),     ONE(LOG1P, log1p, 1.0),
    ONE(TANH, tanh, 1.8), ONE(ERF, erf, 1.5),     ONE(SIN, sin, 1.1),     ONE(COS, cos, 1.1),
    ONE(TAN, tan, 1.8),   ONE(ASIN, asin, 1.3),   ONE(ACOS, acos, 1.3),   ONE(ATAN, atan, 1.3),
    ONE(SINH, sinh, 1.4), ONE(COSH, cosh, 1.4),   TWO(ATAN2, atan2, 1.6), TWO(HYPOT, hypot, 1.3),
    TWO(POW, pow, 1.4),
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
                                 3,
                                 -3,
                                 -2.5,
                                 0.546875,
                                 1.828125,
                                 89.4159,
                                 89.5,
                                 710.4758,
                                 710.6,
                                 8388607,
                                 8388607.5,
                                 -8388609,
                                 16777215,
                                 16777216,
                                 4503599627370495.5,
                                 -9007199254740991,
                                 9007199254740992,
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

static double worst[N_FUNCTIONS];

static void check_f32(int k, float x, float y) {
    const function *fn = &functions[k];
    ir_scalar_value v = ir_eval(fn->code, IR_F32, IR_F32, (ir_scalar_value[]){{.f = x}, {.f = y}});
    double want = fn->f64 ? fn->f64((double)x) : fn->two_f64((double)x, (double)y);
    double error = error_of(v.f, want, 24, -149, 128);
    worst[k] = error > worst[k] ? error : worst[k];
    cr_assert(error <= fn->most, "%s(%a, %a) = %a, not %a: %g units", ir_op_describe(fn->code)->text, (double)x,
              (double)y, (double)v.f, want, error);
}

static void check_f64(int k, double x, double y) {
    const function *fn = &functions[k];
    ir_scalar_value v = ir_eval(fn->code, IR_F64, IR_F64, (ir_scalar_value[]){{.d = x}, {.d = y}});
    wide want = fn->f80 ? fn->f80((wide)x) : fn->two_f80((wide)x, (wide)y);
    double error = error_of(v.d, want, 53, -1074, 1024);
    worst[k] = error > worst[k] ? error : worst[k];
    cr_assert(error <= fn->most, "%s(%a, %a) = %a, not %La: %g units", ir_op_describe(fn->code)->text, x, y, v.d, want,
              error);
}

static void report(const char *type) {
    printf("worst errors of %s, in units in the last place:", type);
    for (int k = 0; k < N_FUNCTIONS; k++)
        printf(" %s %.3f", ir_op_describe(functions[k].code)->text, worst[k]);
    printf("\n");
    fflush(stdout);
}

/* Every special value, and every pair of them. */
Test(math, special_values) {
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (int i = 0; i < N_SPECIAL; i++)
            for (int j = 0; j < (functions[k].f64 ? 1 : N_SPECIAL); j++) {
                check_f32(k, (float)special[i], (float)special[j]);
                check_f64(k, special[i], special[j]);
            }
}

/* A second operand for x: y log2 x in the range of exponents for pow, of like size for the others, or any. */
static double second(int k, int i, double *x, double exponents) {
    double y = value(i / 2), fraction = ldexp((double)(int64_t)next_bits(), -63);
    if (i % 3 != 1)
        return y;
    if (functions[k].code != IR_POW)
        return *x * (1 + fraction);
    *x = fabs(*x);
    double l = log2(*x);
    return fraction * exponents / (l != 0 ? l : 1);
}

/* asin and acos live in [-1, 1]. */
static double first(int k, int i) {
    bool inside = functions[k].code == IR_ASIN || functions[k].code == IR_ACOS;
    return inside && i % 3 == 1 ? ldexp((double)(int64_t)next_bits(), -63) : value(i);
}

Test(math, f32_within_two_units) {
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (int i = 0; i < 1000000; i++) {
            uint64_t bits = next_bits();
            double x = first(k, i);
            float pair[2] = {(float)x, functions[k].f64 ? 0 : (float)second(k, i, &x, 152)};
            pair[0] = (float)x;
            if (i % 3 == 0)
                memcpy(pair, &bits, sizeof pair);
            check_f32(k, pair[0], pair[1]);
        }
    report("f32");
}

Test(math, f64_within_two_units) {
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (int i = 0; i < 1000000; i++) {
            uint64_t bits[2] = {next_bits(), next_bits()};
            double x = first(k, i), y = functions[k].f64 ? 0 : second(k, i, &x, 1080);
            double pair[2] = {x, y};
            if (i % 3 == 0)
                memcpy(pair, bits, sizeof pair);
            check_f64(k, pair[0], pair[1]);
        }
    report("f64");
}

/* What C's Annex F says of pow and atan2 in cases that a library could also have wrong. */
Test(math, annex_f) {
    static const double inf = INFINITY, cases[][3] = {
                                            {0, 3, 0},
                                            {-0.0, 3, -0.0},
                                            {-0.0, -3, -INFINITY},
                                            {-0.0, -2, INFINITY},
                                            {-0.0, 0.5, 0},
                                            {-0.0, -0.5, INFINITY},
                                            {0, -INFINITY, INFINITY},
                                            {-1, INFINITY, 1},
                                            {-1, -INFINITY, 1},
                                            {1, NAN, 1},
                                            {NAN, 0, 1},
                                            {NAN, -0.0, 1},
                                            {-2, 0.5, NAN},
                                            {0.5, -INFINITY, INFINITY},
                                            {2, -INFINITY, 0},
                                            {-2, INFINITY, INFINITY},
                                            {-0.5, INFINITY, 0},
                                            {-INFINITY, -3, -0.0},
                                            {-INFINITY, -2, 0},
                                            {-INFINITY, 3, -INFINITY},
                                            {-INFINITY, 0.5, INFINITY},
                                            {INFINITY, -1, 0},
                                            {INFINITY, 1, INFINITY},
                                            {-2, 1e300, INFINITY},
                                            {-2, -3, -0.125},
                                            {1, 1e300, 1},
                                            {NAN, 1, NAN},
                                            {2, NAN, NAN},
                                        };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = ir_eval(IR_POW, IR_F64, IR_F64, (ir_scalar_value[]){{.d = cases[i][0]}, {.d = cases[i][1]}}).d;
        float single =
            ir_eval(IR_POW, IR_F32, IR_F32, (ir_scalar_value[]){{.f = (float)cases[i][0]}, {.f = (float)cases[i][1]}})
                .f;
        double want = cases[i][2];
        cr_assert(isnan(want) ? isnan(got) && isnan(single)
                              : got == want && single == (float)want && !signbit(got) == !signbit(want) &&
                                    !signbit(single) == !signbit(want),
                  "pow(%g, %g) = %g and %g, not %g", cases[i][0], cases[i][1], got, (double)single, want);
    }
    static const double angles[][3] = {{0, 0, 0},           {-0.0, 0, -0.0},         {0, -0.0, M_PI},
                                       {-0.0, -0.0, -M_PI}, {0, -1, M_PI},           {0, 1, 0},
                                       {1, 0, M_PI_2},      {-1, -0.0, -M_PI_2},     {1, inf, 0},
                                       {1, -inf, M_PI},     {inf, 1, M_PI_2},        {inf, inf, M_PI_4},
                                       {-inf, 1, -M_PI_2},  {inf, -inf, 3 * M_PI_4}, {-inf, -inf, -3 * M_PI_4},
                                       {NAN, 1, NAN}};
    for (size_t i = 0; i < sizeof angles / sizeof *angles; i++) {
        double got = ir_eval(IR_ATAN2, IR_F64, IR_F64, (ir_scalar_value[]){{.d = angles[i][0]}, {.d = angles[i][1]}}).d;
        double want = angles[i][2];
        cr_assert(isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want),
                  "atan2(%g, %g) = %g, not %g", angles[i][0], angles[i][1], got, want);
    }
}

Test(math, the_table_names_what_is_ours) {
    cr_assert_str_eq(ir_math_name(IR_EXP, IR_F32), "tiga_exp_f32");
    cr_assert_str_eq(ir_math_name(IR_TANH, IR_F64), "tiga_tanh_f64");
    cr_assert_null(ir_math_name(IR_SQRT, IR_F32));
    cr_assert_null(ir_math_name(IR_EXP, IR_I32));
    cr_assert_null(ir_math_name(IR_EXP, IR_F16));
}
