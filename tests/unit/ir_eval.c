/* The evaluator: every operation on every type it is defined on, with the values that break evaluators. */
#include "ir_support.h"

#include <float.h>

static ir_scalar_value i(int64_t x) { return (ir_scalar_value){.i = x}; }
static ir_scalar_value f(float x) { return (ir_scalar_value){.f = x}; }
static ir_scalar_value d(double x) { return (ir_scalar_value){.d = x}; }

static int64_t int2(ir_opcode code, ir_dtype t, int64_t a, int64_t b) {
    return ir_eval(code, t, t, (ir_scalar_value[]){i(a), i(b)}).i;
}
static float f2(ir_opcode code, float a, float b) {
    return ir_eval(code, IR_F32, IR_F32, (ir_scalar_value[]){f(a), f(b)}).f;
}
static double d2(ir_opcode code, double a, double b) {
    return ir_eval(code, IR_F64, IR_F64, (ir_scalar_value[]){d(a), d(b)}).d;
}
static int64_t cast_to(ir_dtype from, ir_dtype to, ir_scalar_value v) { return ir_eval(IR_CAST, from, to, &v).i; }

Test(eval, which_operation_is_defined_on_which_type) {
    const ir_dtype types[] = {IR_BOOL, IR_I32, IR_I64, IR_F32, IR_F64, IR_C64};
    base_str half = {0}, pair = {0};
    const char *defined[] = {"eq ne and or not select cast ", NULL, NULL, NULL, NULL};
    base_str seen = {0};
    for (int code = 1; code < IR_OP_COUNT; code++) {
        if (ir_eval_defined((ir_opcode)code, IR_BOOL))
            base_str_addf(&seen, "%s ", ir_op_describe((ir_opcode)code)->text);
        if (ir_eval_defined((ir_opcode)code, IR_F16))
            base_str_addf(&half, "%s ", ir_op_describe((ir_opcode)code)->text);
        if (ir_eval_defined((ir_opcode)code, IR_C64))
            base_str_addf(&pair, "%s ", ir_op_describe((ir_opcode)code)->text);
        cr_assert_eq(ir_eval_defined((ir_opcode)code, IR_C64), ir_eval_defined((ir_opcode)code, IR_C128));
        cr_assert_eq(ir_eval_defined((ir_opcode)code, IR_F16), ir_eval_defined((ir_opcode)code, IR_BF16));
        cr_assert_eq(ir_eval_defined((ir_opcode)code, IR_I8), ir_eval_defined((ir_opcode)code, IR_I64));
        cr_assert_eq(ir_eval_defined((ir_opcode)code, IR_U8), ir_eval_defined((ir_opcode)code, IR_I64));
        bool elementwise = ir_class_is_elementwise(ir_op_describe((ir_opcode)code)->cls), any = false;
        for (int t = 0; t < 6; t++)
            any |= ir_eval_defined((ir_opcode)code, types[t]);
        cr_assert_eq(any, elementwise, "%s", ir_op_describe((ir_opcode)code)->text);
        cr_assert_eq(ir_eval_defined((ir_opcode)code, IR_I32), ir_eval_defined((ir_opcode)code, IR_I64));
        cr_assert_eq(ir_eval_defined((ir_opcode)code, IR_F32), ir_eval_defined((ir_opcode)code, IR_F64));
        cr_assert_not(ir_eval_defined((ir_opcode)code, IR_TUPLE));
    }
    cr_assert_str_eq(seen.data, defined[0]);
    cr_assert_str_eq(half.data, "select cast ");
    cr_assert_str_eq(pair.data, "add sub mul div neg conj real imag eq ne select cast ");
    cr_assert(ir_eval_defined(IR_POW, IR_I32) && !ir_eval_defined(IR_EXP, IR_I32) && !ir_eval_defined(IR_AND, IR_I32));
}

Test(eval, integers_wrap_around) {
    cr_assert_eq(int2(IR_ADD, IR_I32, INT32_MAX, 1), INT32_MIN);
    cr_assert_eq(int2(IR_ADD, IR_I64, INT64_MAX, 1), INT64_MIN);
    cr_assert_eq(int2(IR_SUB, IR_I32, INT32_MIN, 1), INT32_MAX);
    cr_assert_eq(int2(IR_MUL, IR_I32, 65536, 65536), 0);
    cr_assert_eq(int2(IR_MUL, IR_I64, INT64_MIN, -1), INT64_MIN);
    cr_assert_eq(int2(IR_NEG, IR_I32, INT32_MIN, 0), INT32_MIN);
    cr_assert_eq(int2(IR_ABS, IR_I64, INT64_MIN, 0), INT64_MIN);
    cr_assert_eq(int2(IR_ABS, IR_I32, INT32_MIN, 0), INT32_MIN);
    cr_assert_eq(int2(IR_ABS, IR_I32, -5, 0), 5);
    cr_assert_eq(int2(IR_SIGN, IR_I32, -5, 0), -1);
    cr_assert_eq(int2(IR_SIGN, IR_I64, 0, 0), 0);
    cr_assert_eq(int2(IR_MIN, IR_I64, -1, 1), -1);
    cr_assert_eq(int2(IR_MAX, IR_I64, -1, 1), 1);
}

Test(eval, integer_division) {
    cr_assert_eq(int2(IR_DIV, IR_I32, -7, 2), -3);
    cr_assert_eq(int2(IR_REM, IR_I32, -7, 2), -1);
    cr_assert_eq(int2(IR_REM, IR_I32, 7, -2), 1);
    cr_assert_eq(int2(IR_DIV, IR_I64, 5, 0), 0);
    cr_assert_eq(int2(IR_REM, IR_I64, 5, 0), 5);
    cr_assert_eq(int2(IR_DIV, IR_I32, INT32_MIN, -1), INT32_MIN);
    cr_assert_eq(int2(IR_DIV, IR_I64, INT64_MIN, -1), INT64_MIN);
    cr_assert_eq(int2(IR_REM, IR_I64, INT64_MIN, -1), 0);
}

Test(eval, integer_powers) {
    cr_assert_eq(int2(IR_POW, IR_I64, 3, 5), 243);
    cr_assert_eq(int2(IR_POW, IR_I64, 0, 0), 1);
    cr_assert_eq(int2(IR_POW, IR_I32, 2, 31), INT32_MIN);
    cr_assert_eq(int2(IR_POW, IR_I32, 2, 32), 0);
    cr_assert_eq(int2(IR_POW, IR_I32, -2, 3), -8);
    cr_assert_eq(int2(IR_POW, IR_I64, 7, INT64_MAX), (int64_t)7905747460161236407);
    cr_assert_eq(int2(IR_POW, IR_I64, 2, -1), 0);
    cr_assert_eq(int2(IR_POW, IR_I64, 1, -9), 1);
    cr_assert_eq(int2(IR_POW, IR_I64, -1, -9), -1);
    cr_assert_eq(int2(IR_POW, IR_I64, -1, INT64_MIN), 1);
    cr_assert_eq(int2(IR_POW, IR_I64, 0, -1), 0);
}

Test(eval, min_and_max_propagate_nan_and_prefer_the_second_of_equals) {
    cr_assert(isnan(f2(IR_MIN, NAN, 1)) && isnan(f2(IR_MIN, 1, NAN)));
    cr_assert(isnan(d2(IR_MAX, (double)NAN, 1)) && isnan(d2(IR_MAX, 1, (double)NAN)));
    cr_assert(same_f32(f2(IR_MIN, 0.0f, -0.0f), -0.0f));
    cr_assert(same_f32(f2(IR_MIN, -0.0f, 0.0f), 0.0f));
    cr_assert(same_f32(f2(IR_MAX, -0.0f, 0.0f), 0.0f));
    cr_assert(same_f32(f2(IR_MAX, 0.0f, -0.0f), -0.0f));
    cr_assert_eq(f2(IR_MAX, -INFINITY, FLT_MAX), FLT_MAX);
}

Test(eval, floats_follow_the_c_library) {
    cr_assert_eq(f2(IR_ADD, 16777216.0f, 1.0f), 16777216.0f, "f32 is computed in f32");
    cr_assert_eq(f2(IR_POW, 2.0f, -1.0f), 0.5f);
    cr_assert_eq(f2(IR_ATAN2, 1.0f, 0.0f), 1.57079637f);
    cr_assert_eq(d2(IR_REM, -7.5, 2), -1.5);
    cr_assert(isnan(f2(IR_REM, 1, 0)));
    cr_assert_eq(f2(IR_DIV, 1, 0), INFINITY);
    cr_assert(same_f32(f2(IR_NEG, 0.0f, 0), -0.0f));
    cr_assert(same_f32(f2(IR_ABS, -0.0f, 0), 0.0f));
    cr_assert(same_f32(f2(IR_SIGN, -0.0f, 0), -0.0f));
    cr_assert(isnan(f2(IR_SIGN, NAN, 0)));
    cr_assert_eq(f2(IR_SIGN, -INFINITY, 0), -1.0f);
    cr_assert_eq(f2(IR_ROUND, 2.5f, 0), 2.0f);
    cr_assert_eq(f2(IR_ROUND, 3.5f, 0), 4.0f);
    cr_assert(same_f32(f2(IR_ROUND, -0.4f, 0), -0.0f));
    cr_assert_eq(d2(IR_FLOOR, -1.5, 0), -2);
    cr_assert_eq(d2(IR_CEIL, -1.5, 0), -1);
    cr_assert(isnan(d2(IR_SQRT, -1, 0)));
    cr_assert_eq(f2(IR_LOG, 0, 0), -INFINITY);
    cr_assert_eq(f2(IR_ADD, FLT_TRUE_MIN, FLT_TRUE_MIN), 2 * FLT_TRUE_MIN, "subnormals are kept");
}

Test(eval, comparisons_and_logic) {
    ir_scalar_value nan[] = {f(NAN), f(NAN)}, zero[] = {d(0.0), d(-0.0)}, ints[] = {i(-1), i(1)};
    cr_assert_eq(ir_eval(IR_EQ, IR_F32, IR_BOOL, nan).i, 0);
    cr_assert_eq(ir_eval(IR_NE, IR_F32, IR_BOOL, nan).i, 1);
    cr_assert_eq(ir_eval(IR_LE, IR_F32, IR_BOOL, nan).i, 0);
    cr_assert_eq(ir_eval(IR_GE, IR_F32, IR_BOOL, nan).i, 0);
    cr_assert_eq(ir_eval(IR_EQ, IR_F64, IR_BOOL, zero).i, 1);
    cr_assert_eq(ir_eval(IR_LT, IR_I64, IR_BOOL, ints).i, 1);
    cr_assert_eq(ir_eval(IR_GT, IR_I32, IR_BOOL, ints).i, 0);
    cr_assert_eq(int2(IR_AND, IR_BOOL, 1, 0), 0);
    cr_assert_eq(int2(IR_OR, IR_BOOL, 1, 0), 1);
    cr_assert_eq(int2(IR_NOT, IR_BOOL, 0, 0), 1);
    ir_scalar_value pick[] = {i(0), f(1), f(NAN)};
    cr_assert(isnan(ir_eval(IR_SELECT, IR_F32, IR_F32, pick).f));
    pick[0] = i(1);
    cr_assert_eq(ir_eval(IR_SELECT, IR_F32, IR_F32, pick).f, 1);
}

Test(eval, casts_truncate_saturate_and_round_once) {
    cr_assert_eq(cast_to(IR_F32, IR_I32, f(-1.9f)), -1);
    cr_assert_eq(cast_to(IR_F32, IR_I32, f(2147483648.0f)), INT32_MAX);
    cr_assert_eq(cast_to(IR_F32, IR_I32, f(-3e9f)), INT32_MIN);
    cr_assert_eq(cast_to(IR_F64, IR_I32, d(2147483647.9)), INT32_MAX);
    cr_assert_eq(cast_to(IR_F64, IR_I32, d(-2147483648.5)), INT32_MIN);
    cr_assert_eq(cast_to(IR_F64, IR_I64, d(9.3e18)), INT64_MAX);
    cr_assert_eq(cast_to(IR_F64, IR_I64, d(-9.3e18)), INT64_MIN);
    cr_assert_eq(cast_to(IR_F64, IR_I64, d((double)INFINITY)), INT64_MAX);
    cr_assert_eq(cast_to(IR_F32, IR_I64, f(NAN)), 0);
    cr_assert_eq(cast_to(IR_F32, IR_BOOL, f(NAN)), 1);
    cr_assert_eq(cast_to(IR_F32, IR_BOOL, f(-0.0f)), 0);
    cr_assert_eq(cast_to(IR_I64, IR_BOOL, i(INT64_MIN)), 1);
    cr_assert_eq(cast_to(IR_I64, IR_I32, i((INT64_C(1) << 32) + 5)), 5);
    cr_assert_eq(cast_to(IR_I64, IR_I32, i(INT64_C(1) << 31)), INT32_MIN);
    cr_assert_eq(cast_to(IR_BOOL, IR_I32, i(1)), 1);
    ir_scalar_value big = i((INT64_C(1) << 53) + (INT64_C(1) << 29) + 1); /* twice rounded would be a tie */
    cr_assert_eq(ir_eval(IR_CAST, IR_I64, IR_F32, &big).f, 9007200328482816.0f);
    ir_scalar_value huge = d(1e300);
    cr_assert_eq(ir_eval(IR_CAST, IR_F64, IR_F32, &huge).f, INFINITY);
}

Test(eval, small_integers_wrap_around_in_their_own_range) {
    cr_assert_eq(int2(IR_ADD, IR_I8, 127, 1), -128);
    cr_assert_eq(int2(IR_ADD, IR_U8, 255, 1), 0);
    cr_assert_eq(int2(IR_SUB, IR_U8, 0, 1), 255);
    cr_assert_eq(int2(IR_MUL, IR_I8, 64, 2), -128);
    cr_assert_eq(int2(IR_NEG, IR_I8, -128, 0), -128);
    cr_assert_eq(int2(IR_NEG, IR_U8, 1, 0), 255);
    cr_assert_eq(int2(IR_ABS, IR_I8, -128, 0), -128);
    cr_assert_eq(int2(IR_ABS, IR_U8, 200, 0), 200);
    cr_assert_eq(int2(IR_SIGN, IR_U8, 200, 0), 1);
    cr_assert_eq(int2(IR_DIV, IR_I8, -128, -1), -128);
    cr_assert_eq(int2(IR_DIV, IR_U8, 200, 255), 0);
    cr_assert_eq(int2(IR_REM, IR_U8, 200, 0), 200);
    cr_assert_eq(int2(IR_POW, IR_U8, 3, 255), 171);
    cr_assert_eq(int2(IR_POW, IR_I8, -3, 5), 13);
    cr_assert_eq(int2(IR_MAX, IR_U8, 200, 100), 200);
    cr_assert_eq(ir_kind_identity(IR_KIND_MIN, IR_U8).i, 255);
    cr_assert_eq(ir_kind_identity(IR_KIND_MAX, IR_I8).i, -128);
    cr_assert_eq(cast_to(IR_F32, IR_U8, f(-1)), 0);
    cr_assert_eq(cast_to(IR_F32, IR_U8, f(255.9f)), 255);
    cr_assert_eq(cast_to(IR_F32, IR_U8, f(300)), 255);
    cr_assert_eq(cast_to(IR_F64, IR_I8, d(-128.9)), -128);
    cr_assert_eq(cast_to(IR_F64, IR_I8, d(-1000)), -128);
    cr_assert_eq(cast_to(IR_I64, IR_U8, i(-1)), 255);
    cr_assert_eq(cast_to(IR_U8, IR_I8, i(200)), -56);
    cr_assert_eq(cast_to(IR_I32, IR_I8, i(128)), -128);
}

static float widened(ir_dtype t, int64_t bits) { return ir_eval(IR_CAST, t, IR_F32, &(ir_scalar_value){.i = bits}).f; }

/* Every f16 and bf16: exact, and back. */
Test(eval, every_half_widens_exactly_and_comes_back) {
    for (int64_t h = 0; h < 65536; h++) {
        int exponent = (int)(h >> 10 & 31);
        double m = (double)(h & 1023), sign = h >> 15 ? -1 : 1;
        double want = sign * (exponent ? ldexp(1 + m / 1024, exponent - 15) : ldexp(m, -24));
        float got = widened(IR_F16, h);
        if (exponent == 31 && m != 0)
            cr_assert(isnan(got) && isnan(widened(IR_F16, cast_to(IR_F32, IR_F16, f(got)))));
        else if (exponent == 31)
            cr_assert_eq(got, (float)(sign * (double)INFINITY));
        else
            cr_assert_eq((double)got, want);
        cr_assert(isnan(got) || cast_to(IR_F32, IR_F16, f(got)) == h, "%x", (unsigned)h);
        uint32_t bits = (uint32_t)h << 16;
        float same;
        memcpy(&same, &bits, sizeof same);
        float b = widened(IR_BF16, h);
        cr_assert(isnan(same) ? isnan(b) : !memcmp(&same, &b, sizeof b));
        cr_assert(isnan(b) ? isnan(widened(IR_BF16, cast_to(IR_F32, IR_BF16, f(b))))
                           : cast_to(IR_F32, IR_BF16, f(b)) == h);
    }
}

/* Between two neighbours: to the nearer, the even one in the middle. */
Test(eval, halves_round_to_nearest_even) {
    const ir_dtype types[] = {IR_F16, IR_BF16};
    const int64_t infinity[] = {0x7c00, 0x7f80};
    for (int t = 0; t < 2; t++)
        for (int64_t h = 0; h + 1 < infinity[t]; h++) {
            float a = widened(types[t], h), b = widened(types[t], h + 1);
            float middle = (float)(((double)a + (double)b) / 2);
            int64_t even = h & 1 ? h + 1 : h;
            cr_assert_eq(cast_to(IR_F32, types[t], f(middle)), even, "%x", (unsigned)h);
            cr_assert_eq(cast_to(IR_F32, types[t], f(nextafterf(middle, 0))), h, "%x", (unsigned)h);
            cr_assert_eq(cast_to(IR_F32, types[t], f(nextafterf(middle, INFINITY))), h + 1, "%x", (unsigned)h);
            cr_assert_eq(cast_to(IR_F32, types[t], f(-middle)), even | 0x8000);
        }
    cr_assert_eq(cast_to(IR_F32, IR_F16, f(65519.996f)), 0x7bff);
    cr_assert_eq(cast_to(IR_F32, IR_F16, f(65520)), 0x7c00);
    cr_assert_eq(cast_to(IR_F32, IR_BF16, f(FLT_MAX)), 0x7f80);
    cr_assert_eq(cast_to(IR_F32, IR_F16, f(1e-30f)), 0);
    cr_assert_eq(cast_to(IR_F32, IR_F16, f(-1e-30f)), 0x8000);
    cr_assert_eq(cast_to(IR_I64, IR_F16, i(2049)), 0x6800, "2048");
    cr_assert_eq(cast_to(IR_F16, IR_I8, i(0xd7ff)), -127, "-127.9");
    cr_assert_eq(cast_to(IR_F16, IR_BOOL, i(0x8000)), 0, "-0.0");
    cr_assert_eq(cast_to(IR_BF16, IR_F16, i(0x3fc0)), 0x3e00, "1.5");
}

static ir_scalar_value c2(ir_opcode code, float a, float b, float c, float d) {
    return ir_eval(code, IR_C64, ir_elementwise_dtype(code, IR_C64), (ir_scalar_value[]){{.c = {a, b}}, {.c = {c, d}}});
}
static void is_c64(ir_scalar_value v, float re, float im) {
    cr_expect(((isnan(re) && isnan(v.c[0])) || same_f32(v.c[0], re)) &&
                  ((isnan(im) && isnan(v.c[1])) || same_f32(v.c[1], im)),
              "(%g, %g), expected (%g, %g)", (double)v.c[0], (double)v.c[1], (double)re, (double)im);
}

Test(eval, complex_numbers) {
    is_c64(c2(IR_ADD, 1, 2, 3, -5), 4, -3);
    is_c64(c2(IR_SUB, 1, 2, 3, -5), -2, 7);
    is_c64(c2(IR_MUL, 1, 2, 3, -5), 13, 1);
    is_c64(c2(IR_DIV, 13, 1, 3, -5), 1, 2);
    is_c64(c2(IR_DIV, 1, 2, 0, 2), 1, -0.5f);
    is_c64(c2(IR_DIV, 1, -2, 0, 0), INFINITY, -INFINITY);
    is_c64(c2(IR_DIV, 0, 1, -0.0f, 0), NAN, INFINITY);
    is_c64(c2(IR_DIV, 1e30f, 1e30f, 1e30f, 1e30f), 1, 0); /* the plain formula would overflow */
    is_c64(c2(IR_DIV, 1e-30f, 0, 1e-30f, 0), 1, 0);
    is_c64(c2(IR_MUL, INFINITY, 0, 0, 1), NAN, INFINITY); /* nothing is rescued */
    is_c64(c2(IR_NEG, 1, 0, 0, 0), -1, -0.0f);
    is_c64(c2(IR_CONJ, 1, 0, 0, 0), 1, -0.0f);
    cr_assert_eq(c2(IR_REAL, 3, 4, 0, 0).f, 3.0f);
    cr_assert_eq(c2(IR_IMAG, 3, 4, 0, 0).f, 4.0f);
    cr_assert(c2(IR_EQ, 1, 0, 1, -0.0f).i && !c2(IR_EQ, 1, 0, 1, 2).i && !c2(IR_EQ, NAN, 0, NAN, 0).i);
    cr_assert(c2(IR_NE, 1, NAN, 1, NAN).i && !c2(IR_NE, 1, 2, 1, 2).i);
    is_c64(ir_eval(IR_COMPLEX, IR_F32, IR_C64, (ir_scalar_value[]){f(1), f(2)}), 1, 2);
    is_c64(ir_eval(IR_CAST, IR_I64, IR_C64, (ir_scalar_value[]){i(16777217)}), 16777216, 0);
    is_c64(ir_eval(IR_CAST, IR_C128, IR_C64, (ir_scalar_value[]){{.z = {0.1, 1e300}}}), 0.1f, INFINITY);
    cr_assert(!ir_cast_defined(IR_C64, IR_F32) && !ir_cast_defined(IR_C128, IR_BOOL) &&
              ir_cast_defined(IR_F16, IR_C64));
    is_c64(ir_kind_identity(IR_KIND_PROD, IR_C64), 1, 0);
    ir_scalar_value z = ir_eval(IR_DIV, IR_C128, IR_C128, (ir_scalar_value[]){{.z = {1, 1}}, {.z = {3, 4}}});
    cr_assert(z.z[0] == (1 * 0.75 + 1) / (4 + 3 * 0.75) && z.z[1] == (1 * 0.75 - 1) / (4 + 3 * 0.75));
}

Test(eval, identities_and_combination) {
    cr_assert_eq(ir_kind_identity(IR_KIND_MIN, IR_F32).f, INFINITY);
    cr_assert_eq(ir_kind_identity(IR_KIND_MAX, IR_F64).d, (double)-INFINITY);
    cr_assert_eq(ir_kind_identity(IR_KIND_MIN, IR_I32).i, INT32_MAX);
    cr_assert_eq(ir_kind_identity(IR_KIND_MAX, IR_I64).i, INT64_MIN);
    cr_assert_eq(ir_kind_identity(IR_KIND_PROD, IR_I32).i, 1);
    cr_assert_eq(ir_kind_identity(IR_KIND_PROD, IR_F32).f, 1.0f);
    cr_assert(same_f32(ir_kind_identity(IR_KIND_SUM, IR_F32).f, 0.0f));
    cr_assert_eq(ir_kind_identity(IR_KIND_AND, IR_BOOL).i, 1);
    cr_assert_eq(ir_kind_identity(IR_KIND_OR, IR_BOOL).i, 0);
    cr_assert(same_f32(ir_kind_combine(IR_KIND_MIN, IR_F32, f(0.0f), f(-0.0f)).f, -0.0f), "the state comes first");
    cr_assert_eq(ir_kind_combine(IR_KIND_PROD, IR_I32, i(1 << 20), i(1 << 12)).i, 0);
}

Test(eval, argmin_and_argmax_order) {
    cr_assert(ir_arg_better(IR_KIND_ARGMIN, IR_F32, f(INFINITY), 3, f(0), -1), "anything beats nothing");
    cr_assert_not(ir_arg_better(IR_KIND_ARGMIN, IR_F32, f(0), -1, f(INFINITY), 3), "nothing beats nothing");
    cr_assert_not(ir_arg_better(IR_KIND_ARGMIN, IR_F32, f(0), -1, f(0), -1));
    cr_assert(ir_arg_better(IR_KIND_ARGMIN, IR_F32, f(1), 9, f(2), 3));
    cr_assert_not(ir_arg_better(IR_KIND_ARGMAX, IR_F32, f(1), 9, f(2), 3));
    cr_assert(ir_arg_better(IR_KIND_ARGMAX, IR_F32, f(2), 2, f(2), 3), "the smaller edge wins among equals");
    cr_assert_not(ir_arg_better(IR_KIND_ARGMAX, IR_F32, f(2), 4, f(2), 3));
    cr_assert(ir_arg_better(IR_KIND_ARGMIN, IR_F32, f(-0.0f), 1, f(0.0f), 2));
    cr_assert(ir_arg_better(IR_KIND_ARGMIN, IR_F32, f(NAN), 9, f(-INFINITY), 3), "NaN beats numbers");
    cr_assert_not(ir_arg_better(IR_KIND_ARGMIN, IR_F32, f(-INFINITY), 1, f(NAN), 3));
    cr_assert(ir_arg_better(IR_KIND_ARGMAX, IR_F64, d((double)NAN), 1, d((double)NAN), 3));
    cr_assert_not(ir_arg_better(IR_KIND_ARGMAX, IR_F64, d((double)NAN), 4, d((double)NAN), 3));
    cr_assert(ir_arg_better(IR_KIND_ARGMIN, IR_I64, i(INT64_MIN), 9, i(INT64_MAX), 3));
}

Test(eval, scalars_in_memory_of_any_alignment) {
    unsigned char raw[64];
    const ir_dtype types[] = {IR_BOOL, IR_I32, IR_I64, IR_F32, IR_F64, IR_F16, IR_BF16, IR_I8, IR_U8};
    const ir_scalar_value values[] = {i(1),      i(INT32_MIN), i(INT64_MIN), f(-0.0f), d(1e-310),
                                      i(0xfc01), i(0x8001),    i(-128),      i(255)};
    for (int t = 0; t < 9; t++) {
        memset(raw, 0xee, sizeof raw);
        ir_store_scalar(types[t], raw + 1, 2, values[t]);
        ir_scalar_value back = ir_load_scalar(types[t], raw + 1, 2);
        cr_assert_eq(memcmp(&back, &values[t], ir_dtype_bytes(types[t])), 0);
        cr_assert(ir_dtype_is_float(types[t]) || back.i == values[t].i);
        size_t n = ir_dtype_bytes(types[t]);
        cr_assert_eq(raw[1 + 2 * n - 1], 0xee);
        cr_assert_eq(raw[1 + 3 * n], 0xee);
    }
    raw[0] = 7;
    cr_assert_eq(ir_load_scalar(IR_BOOL, raw, 0).i, 1);
}
