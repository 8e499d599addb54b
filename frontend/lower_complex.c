/* Functions of complex numbers in terms of real ones, and the making of complex numbers.  Branch cuts are those of C and
 * numpy: along the negative real axis, the sign of a zero imaginary part choosing the side. */
#include "frontend/fe.h"

#include <math.h>

typedef struct parts {
    fe_lower *l;
    base_span span;
    ir_dtype t; /* of a part */
    ir_id re, im;
} parts;

static ir_id un(parts *p, ir_opcode code, ir_id a) { return fe_map1(p->l, p->span, code, a); }
static ir_id bin(parts *p, ir_opcode code, ir_id a, ir_id b) { return fe_map2(p->l, p->span, code, a, b); }
static ir_id num(parts *p, double v) { return fe_float(p->l, p->span, p->t, v); }
static ir_id choose(parts *p, ir_id c, ir_id a, ir_id b) {
    return fe_elementwise(p->l, p->span, IR_SELECT, (ir_id[]){c, a, b}, 3);
}
static ir_id size(parts *p) { return bin(p, IR_HYPOT, p->re, p->im); }

static ir_id both(parts *p, ir_id a, ir_id b) { return fe_elementwise(p->l, p->span, IR_AND, (ir_id[]){a, b}, 2); }
static ir_id infinite(parts *p, ir_id a) { return bin(p, IR_EQ, un(p, IR_ABS, a), num(p, (double)INFINITY)); }
static ir_id most(parts *p) { return bin(p, IR_MAX, un(p, IR_ABS, p->re), un(p, IR_ABS, p->im)); }

/* Beyond the last real part whose power is finite, cos and sin stand between two roots of the power.  Infinite real
 * parts are stronger than angles that are none: 0, and infinity + NaN i.  On the real axis the sine is the zero of the
 * imaginary part, and has its derivative. */
static ir_id exponential(parts *p) {
    bool single = p->t == IR_F32;
    ir_id beyond = bin(p, IR_GT, p->re, num(p, single ? 88 : 709)), zero = num(p, 0);
    ir_id e = un(p, IR_EXP, choose(p, beyond, bin(p, IR_MUL, p->re, num(p, 0.5)), p->re));
    ir_id m = choose(p, beyond, e, num(p, 1)), infinity = num(p, (double)INFINITY);
    ir_id none = un(p, IR_NOT, bin(p, IR_LT, un(p, IR_ABS, p->im), infinity));
    ir_id low = both(p, none, bin(p, IR_EQ, p->re, num(p, (double)-INFINITY)));
    ir_id cosine = un(p, IR_COS, choose(p, both(p, none, infinite(p, p->re)), zero, p->im));
    ir_id sine = un(p, IR_SIN, choose(p, low, zero, p->im));
    ir_id drop = both(p, bin(p, IR_EQ, p->im, zero), un(p, IR_NOT, bin(p, IR_LT, e, infinity)));
    ir_id im = bin(p, IR_MUL, bin(p, IR_MUL, choose(p, drop, num(p, 1), e), sine), choose(p, drop, num(p, 1), m));
    return bin(p, IR_COMPLEX, bin(p, IR_MUL, bin(p, IR_MUL, e, cosine), m), im);
}

/* Very large and very small numbers are scaled, so that the size neither overflows nor loses digits; near size 1 it is
 * log1p(size^2 - 1) / 2. */
static ir_id logarithm(parts *p) {
    bool single = p->t == IR_F32;
    double log2 = 0.69314718055994530942, up = single ? 48 : 60;
    ir_id large = bin(p, IR_GT, most(p), num(p, single ? 0x1p126 : 0x1p1022));
    ir_id small = bin(p, IR_LT, most(p), num(p, single ? 0x1p-100 : 0x1p-900));
    ir_id scale = choose(p, small, num(p, single ? 0x1p48 : 0x1p60), num(p, 1));
    ir_id back = choose(p, small, num(p, -up * log2), num(p, 0));
    scale = choose(p, large, num(p, 0.25), scale);
    back = choose(p, large, num(p, 2 * log2), back);
    ir_id r = bin(p, IR_HYPOT, bin(p, IR_MUL, p->re, scale), bin(p, IR_MUL, p->im, scale));
    ir_id re = un(p, IR_ABS, p->re), im = un(p, IR_ABS, p->im), one = num(p, 1);
    ir_id a = bin(p, IR_MAX, re, im), b = bin(p, IR_MIN, re, im);
    ir_id square = bin(p, IR_ADD, bin(p, IR_MUL, bin(p, IR_SUB, a, one), bin(p, IR_ADD, a, one)), bin(p, IR_MUL, b, b));
    ir_id near = both(p, bin(p, IR_GT, r, num(p, 0.75)), bin(p, IR_LT, r, num(p, 1.5)));
    ir_id close = bin(p, IR_MUL, un(p, IR_LOG1P, choose(p, near, square, num(p, 0))), num(p, 0.5));
    ir_id log = choose(p, near, close, bin(p, IR_ADD, un(p, IR_LOG, r), back));
    return bin(p, IR_COMPLEX, log, bin(p, IR_ATAN2, p->im, p->re));
}

/* t = sqrt((|re| + |z|) / 2); the other part is im / 2t.  Very large and very small numbers are scaled; an infinite imaginary
 * part is stronger than anything.  Sizes are chosen by side, not by abs: they have a derivative on the axes too. */
static ir_id root(parts *p) {
    bool single = p->t == IR_F32;
    ir_id small = bin(p, IR_LT, most(p), num(p, single ? 0x1p-100 : 0x1p-900));
    ir_id scale = choose(p, small, num(p, single ? 0x1p48 : 0x1p120), num(p, 1));
    ir_id back = choose(p, small, num(p, single ? 0x1p-24 : 0x1p-60), num(p, 1));
    ir_id large = bin(p, IR_GT, most(p), num(p, single ? 0x1p126 : 0x1p1022));
    scale = choose(p, large, num(p, 0.25), scale);
    back = choose(p, large, num(p, 2), back);
    parts q = {p->l, p->span, p->t, bin(p, IR_MUL, p->re, scale), bin(p, IR_MUL, p->im, scale)};
    ir_id half = num(p, 0.5), zero = num(p, 0);
    ir_id right = bin(p, IR_GE, p->re, zero), most_re = choose(p, right, q.re, un(p, IR_NEG, q.re));
    ir_id sum = bin(p, IR_ADD, bin(p, IR_MUL, half, most_re), bin(p, IR_MUL, half, size(&q)));
    ir_id t = un(p, IR_SQRT, sum), other = bin(p, IR_DIV, q.im, bin(p, IR_MUL, num(p, 2), t));
    ir_id below = choose(p, bin(p, IR_EQ, p->im, zero), bin(p, IR_LT, bin(p, IR_DIV, num(p, 1), p->im), zero),
                         bin(p, IR_LT, p->im, zero)); /* of -0 too */
    ir_id none = bin(p, IR_EQ, t, zero), beyond = infinite(p, p->im);
    ir_id re = bin(p, IR_MUL, choose(p, right, t, choose(p, below, un(p, IR_NEG, other), other)), back);
    ir_id im = bin(p, IR_MUL, choose(p, right, other, choose(p, below, un(p, IR_NEG, t), t)), back);
    re = choose(p, beyond, num(p, (double)INFINITY), choose(p, none, zero, re));
    return bin(p, IR_COMPLEX, re, choose(p, beyond, p->im, choose(p, none, p->im, im)));
}

ir_id fe_complex_function(fe_lower *l, base_span span, ir_opcode code, ir_id z) {
    parts p = {l, span, ir_dtype_part(fe_type_at(l, z)->dtype), 0, 0};
    p.re = un(&p, IR_REAL, z);
    p.im = un(&p, IR_IMAG, z);
    if (code == IR_ABS)
        return size(&p);
    if (code == IR_EXP)
        return exponential(&p);
    if (code == IR_LOG)
        return logarithm(&p);
    return code == IR_SQRT ? root(&p) : fe_map1(l, span, code, z); /* conj, real, imag */
}

/* c64(re, im): each part becomes f32. */
ir_id fe_complex_of(fe_lower *l, const fe_expr *e, ir_dtype t, const fe_expr **slots) {
    ir_dtype part = ir_dtype_part(t);
    ir_id parts_of[2];
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        ir_id x = fe_lower_value(l, slots[i], slots[i]->lit == FE_LIT_NO ? IR_NONE : part);
        if (x && ir_dtype_is_complex(fe_type_at(l, x)->dtype)) {
            fe_label(l->c,
                     fe_report(l->c, FE_E0210, slots[i]->span, "a part of a complex number is real, not %s",
                               ir_dtype_text(fe_type_at(l, x)->dtype)),
                     "take real(x) or imag(x)");
            x = 0;
        }
        parts_of[i] = fe_cast(l, e->span, part, x);
        ok &= parts_of[i] != 0;
    }
    return ok ? fe_map2(l, e->span, IR_COMPLEX, parts_of[0], parts_of[1]) : 0;
}
