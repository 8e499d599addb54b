/* Functions of complex numbers in terms of real ones, and the making of complex numbers.  Branch cuts are those of C and
 * numpy: along the negative real axis, the sign of a zero imaginary part choosing the side. */
#include "frontend/fe.h"

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

static ir_id exponential(parts *p) {
    ir_id e = un(p, IR_EXP, p->re), real = bin(p, IR_EQ, p->im, num(p, 0));
    ir_id im = choose(p, real, p->im, bin(p, IR_MUL, e, un(p, IR_SIN, p->im)));
    return bin(p, IR_COMPLEX, bin(p, IR_MUL, e, un(p, IR_COS, p->im)), im);
}

static ir_id logarithm(parts *p) { return bin(p, IR_COMPLEX, un(p, IR_LOG, size(p)), bin(p, IR_ATAN2, p->im, p->re)); }

/* t = sqrt((|re| + |z|) / 2), halved first so that the sum does not overflow; the other part is im / 2t. */
static ir_id root(parts *p) {
    ir_id half = num(p, 0.5), zero = num(p, 0);
    ir_id sum = bin(p, IR_ADD, bin(p, IR_MUL, half, un(p, IR_ABS, p->re)), bin(p, IR_MUL, half, size(p)));
    ir_id t = un(p, IR_SQRT, sum), other = bin(p, IR_DIV, p->im, bin(p, IR_MUL, num(p, 2), t));
    ir_id below = choose(p, bin(p, IR_EQ, p->im, zero), bin(p, IR_LT, bin(p, IR_DIV, num(p, 1), p->im), zero),
                         bin(p, IR_LT, p->im, zero)); /* of -0 too */
    ir_id right = bin(p, IR_GE, p->re, zero), none = bin(p, IR_EQ, t, zero);
    ir_id re = choose(p, right, t, un(p, IR_ABS, other));
    ir_id im = choose(p, right, other, choose(p, below, un(p, IR_NEG, t), t));
    return bin(p, IR_COMPLEX, choose(p, none, zero, re), choose(p, none, p->im, im));
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
