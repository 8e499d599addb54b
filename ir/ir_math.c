/* Our own transcendental functions, as the evaluator calls them.  Every product and sum is rounded on its own here too. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && (defined(__FMA__) || !defined(__x86_64__))
#pragma GCC optimize("fp-contract=off")
#endif

#include "ir/ir.h"

#include <math.h>

#define TIGA_FN static inline
#include "ir/ir_math_f32.h"
#include "ir/ir_math_f64.h"

typedef struct row {
    const char *single, *twice; /* names */
    float (*f32)(float);
    double (*f64)(double);
    float (*two_f32)(float, float);
    double (*two_f64)(double, double);
} row;

static const row rows[IR_OP_COUNT] = {
#define IR_MATH1(NAME, stem)                                                                                           \
    [IR_##NAME] = {"tiga_" #stem "_f32", "tiga_" #stem "_f64", tiga_##stem##_f32, tiga_##stem##_f64, NULL, NULL},
#define IR_MATH2(NAME, stem)                                                                                           \
    [IR_##NAME] = {"tiga_" #stem "_f32", "tiga_" #stem "_f64", NULL, NULL, tiga_##stem##_f32, tiga_##stem##_f64},
#include "ir/ir_math.def"
#undef IR_MATH1
#undef IR_MATH2
};

const char *ir_math_name(ir_opcode code, ir_dtype t) {
    return t == IR_F32 ? rows[code].single : t == IR_F64 ? rows[code].twice : NULL;
}

float ir_math_f32(ir_opcode code, float a, float b) {
    return rows[code].f32 ? rows[code].f32(a) : rows[code].two_f32(a, b);
}

double ir_math_f64(ir_opcode code, double a, double b) {
    return rows[code].f64 ? rows[code].f64(a) : rows[code].two_f64(a, b);
}
