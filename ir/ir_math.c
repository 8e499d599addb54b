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
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
} row;

static const row single[IR_OP_COUNT] = {
#define IR_MATH_F32(NAME, function) [IR_##NAME] = {#function, function, NULL},
#define IR_MATH_F64(NAME, function)
#include "ir/ir_math.def"
#undef IR_MATH_F32
#undef IR_MATH_F64
};

static const row twice[IR_OP_COUNT] = {
#define IR_MATH_F32(NAME, function)
#define IR_MATH_F64(NAME, function) [IR_##NAME] = {#function, NULL, function},
#include "ir/ir_math.def"
#undef IR_MATH_F32
#undef IR_MATH_F64
};

const char *ir_math_name(ir_opcode code, ir_dtype t) {
    return t == IR_F32 ? single[code].name : t == IR_F64 ? twice[code].name : NULL;
}

float ir_math_f32(ir_opcode code, float a) { return single[code].f32(a); }
double ir_math_f64(ir_opcode code, double a) { return twice[code].f64(a); }
