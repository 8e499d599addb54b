/* Numbers and field values from a seed; the same on every machine. */
#include "diff.h"

#include <math.h>

uint64_t diff_next(diff_rng *r) { /* splitmix64 */
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t diff_below(diff_rng *r, int64_t n) { return (int64_t)(diff_next(r) % (uint64_t)n); }

bool diff_chance(diff_rng *r, int percent) { return diff_below(r, 100) < percent; }

static double special_float(diff_rng *r, ir_dtype t) {
    if (ir_dtype_is_half(t) && diff_chance(r, 50)) { /* the least and the largest, and what rounds to them or not */
        static const double f16[] = {6e-8, 2.9e-8, 65504, 65519.9, 65520, 1e-39, 0.00006103515625};
        return f16[diff_below(r, 7)];
    }
    switch (diff_below(r, 7)) {
    case 0: return NAN;
    case 1: return INFINITY;
    case 2: return -INFINITY;
    case 3: return -0.0;
    case 4: return t == IR_F32 ? 1e-42 : 5e-320; /* subnormal */
    case 5: return t == IR_F32 ? 3e38 : 1e308;
    default: return 0.0;
    }
}

static double plain_float(diff_rng *r) {
    if (diff_chance(r, 20)) return (double)diff_below(r, 5) - 2.0; /* ties, whole numbers */
    return ((double)(diff_next(r) >> 11) / 9007199254740992.0 - 0.5) * 8.0;
}

static int64_t plain_int(diff_rng *r, ir_dtype t) {
    int64_t least, most;
    ir_dtype_limits(t, &least, &most);
    if (diff_chance(r, 3)) return least;
    if (diff_chance(r, 3)) return most;
    return diff_below(r, 21) - (least < 0 ? 10 : 0);
}

ir_scalar_value diff_value(diff_rng *r, ir_dtype t) {
    ir_scalar_value v = {0};
    if (r->tame && t == IR_F64) {
        v.d = 0.5 + (double)diff_below(r, 1000003) / 1000003.0;
        return v;
    }
    if (ir_dtype_is_complex(t)) {
        ir_scalar_value re = diff_value(r, ir_dtype_part(t));
        return ir_complex(t, re, diff_value(r, ir_dtype_part(t)));
    }
    if (t == IR_BOOL) v.i = diff_below(r, 2);
    else if (ir_dtype_is_int(t)) v.i = plain_int(r, t);
    else if (ir_dtype_is_half(t)) {
        v.d = diff_chance(r, 6) ? special_float(r, t) : plain_float(r);
        v = ir_eval(IR_CAST, IR_F64, t, &v);
    }
    else {
        double d = diff_chance(r, 3) ? special_float(r, t) : plain_float(r);
        if (t == IR_F32) v.f = (float)d;
        else v.d = d;
    }
    return v;
}

bool diff_same_bits(ir_dtype t, const void *a, const void *b, int64_t i) {
    if (ir_dtype_is_complex(t))
        return diff_same_bits(ir_dtype_part(t), a, b, 2 * i) && diff_same_bits(ir_dtype_part(t), a, b, 2 * i + 1);
    if (t == IR_F32) {
        float x = ((const float *)a)[i], y = ((const float *)b)[i];
        return (x != x && y != y) || (x == y && !signbit(x) == !signbit(y));
    }
    if (t == IR_F64) {
        double x = ((const double *)a)[i], y = ((const double *)b)[i];
        return (x != x && y != y) || (x == y && !signbit(x) == !signbit(y));
    }
    if (ir_dtype_is_half(t)) {
        ir_scalar_value h[2] = {ir_load_scalar(t, a, i), ir_load_scalar(t, b, i)};
        float x = ir_eval(IR_CAST, t, IR_F32, &h[0]).f, y = ir_eval(IR_CAST, t, IR_F32, &h[1]).f;
        return (x != x && y != y) || h[0].i == h[1].i;
    }
    return ir_load_scalar(t, a, i).i == ir_load_scalar(t, b, i).i;
}
