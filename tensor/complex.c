/* Functions of complex numbers in terms of real ones: the formulas, and so the bits, are those of frontend/lower_complex.c,
 * which says why they are what they are. */
#include "tensor/tensor.h"

#include <math.h>

typedef struct parts { /* values made on the way are freed at the end */
    tiga_tensors *ts;
    tiga_tensor *made[96];
    int n;
    tiga_status status;
    bool single;
    tiga_tensor *re, *im;
} parts;

static tiga_tensor *keep(parts *p, tiga_tensor *x) {
    BASE_CHECK(p->n < 96);
    if (p->status == TIGA_OK)
        p->made[p->n++] = x;
    return p->status == TIGA_OK ? x : NULL;
}

static tiga_tensor *make(parts *p, ir_opcode code, tiga_tensor *a, tiga_tensor *b, tiga_tensor *c) {
    tiga_tensor *x = NULL;
    if (p->status == TIGA_OK)
        p->status = tensor_elementwise(code, (tiga_tensor *[]){a, b, c}, c ? 3 : b ? 2 : 1, &x);
    return keep(p, x);
}

static tiga_tensor *un(parts *p, ir_opcode code, tiga_tensor *a) { return make(p, code, a, NULL, NULL); }
static tiga_tensor *bin(parts *p, ir_opcode code, tiga_tensor *a, tiga_tensor *b) { return make(p, code, a, b, NULL); }
static tiga_tensor *choose(parts *p, tiga_tensor *c, tiga_tensor *a, tiga_tensor *b) {
    return make(p, IR_SELECT, c, a, b);
}
static tiga_tensor *both(parts *p, tiga_tensor *a, tiga_tensor *b) { return bin(p, IR_AND, a, b); }

/* Typed, because numbers that meet only numbers would choose for themselves. */
static tiga_tensor *num(parts *p, double v) {
    tiga_tensor *x = NULL;
    if (p->status == TIGA_OK)
        p->status = tiga_tensor_full(p->ts, p->single ? TIGA_F32 : TIGA_F64, 0, NULL, v, &x);
    if (x)
        x->constant = true;
    return keep(p, x);
}

static tiga_tensor *infinite(parts *p, tiga_tensor *a) {
    return bin(p, IR_EQ, un(p, IR_ABS, a), num(p, (double)INFINITY));
}
static tiga_tensor *most(parts *p) { return bin(p, IR_MAX, un(p, IR_ABS, p->re), un(p, IR_ABS, p->im)); }

static tiga_tensor *exponential(parts *p) {
    tiga_tensor *beyond = bin(p, IR_GT, p->re, num(p, p->single ? 88 : 709)), *zero = num(p, 0);
    tiga_tensor *e = un(p, IR_EXP, choose(p, beyond, bin(p, IR_MUL, p->re, num(p, 0.5)), p->re));
    tiga_tensor *m = choose(p, beyond, e, num(p, 1)), *infinity = num(p, (double)INFINITY);
    tiga_tensor *none = un(p, IR_NOT, bin(p, IR_LT, un(p, IR_ABS, p->im), infinity));
    tiga_tensor *low = both(p, none, bin(p, IR_EQ, p->re, num(p, (double)-INFINITY)));
    tiga_tensor *cosine = un(p, IR_COS, choose(p, both(p, none, infinite(p, p->re)), zero, p->im));
    tiga_tensor *sine = un(p, IR_SIN, choose(p, low, zero, p->im));
    tiga_tensor *drop = both(p, bin(p, IR_EQ, p->im, zero), un(p, IR_NOT, bin(p, IR_LT, e, infinity)));
    tiga_tensor *im =
        bin(p, IR_MUL, bin(p, IR_MUL, choose(p, drop, num(p, 1), e), sine), choose(p, drop, num(p, 1), m));
    return bin(p, IR_COMPLEX, bin(p, IR_MUL, bin(p, IR_MUL, e, cosine), m), im);
}

static tiga_tensor *logarithm(parts *p) {
    double log2 = 0.69314718055994530942, up = p->single ? 48 : 60;
    tiga_tensor *large = bin(p, IR_GT, most(p), num(p, p->single ? 0x1p126 : 0x1p1022));
    tiga_tensor *small = bin(p, IR_LT, most(p), num(p, p->single ? 0x1p-100 : 0x1p-900));
    tiga_tensor *scale = choose(p, small, num(p, p->single ? 0x1p48 : 0x1p60), num(p, 1));
    tiga_tensor *back = choose(p, small, num(p, -up * log2), num(p, 0));
    scale = choose(p, large, num(p, 0.25), scale);
    back = choose(p, large, num(p, 2 * log2), back);
    tiga_tensor *r = bin(p, IR_HYPOT, bin(p, IR_MUL, p->re, scale), bin(p, IR_MUL, p->im, scale));
    tiga_tensor *re = un(p, IR_ABS, p->re), *im = un(p, IR_ABS, p->im), *one = num(p, 1);
    tiga_tensor *a = bin(p, IR_MAX, re, im), *b = bin(p, IR_MIN, re, im);
    tiga_tensor *square =
        bin(p, IR_ADD, bin(p, IR_MUL, bin(p, IR_SUB, a, one), bin(p, IR_ADD, a, one)), bin(p, IR_MUL, b, b));
    tiga_tensor *near = both(p, bin(p, IR_GT, r, num(p, 0.75)), bin(p, IR_LT, r, num(p, 1.5)));
    tiga_tensor *close = bin(p, IR_MUL, un(p, IR_LOG1P, choose(p, near, square, num(p, 0))), num(p, 0.5));
    tiga_tensor *log = choose(p, near, close, bin(p, IR_ADD, un(p, IR_LOG, r), back));
    return bin(p, IR_COMPLEX, log, bin(p, IR_ATAN2, p->im, p->re));
}

static tiga_tensor *root(parts *p) {
    tiga_tensor *small = bin(p, IR_LT, most(p), num(p, p->single ? 0x1p-100 : 0x1p-900));
    tiga_tensor *scale = choose(p, small, num(p, p->single ? 0x1p48 : 0x1p120), num(p, 1));
    tiga_tensor *back = choose(p, small, num(p, p->single ? 0x1p-24 : 0x1p-60), num(p, 1));
    tiga_tensor *large = bin(p, IR_GT, most(p), num(p, p->single ? 0x1p126 : 0x1p1022));
    scale = choose(p, large, num(p, 0.25), scale);
    back = choose(p, large, num(p, 2), back);
    tiga_tensor *x = bin(p, IR_MUL, p->re, scale), *y = bin(p, IR_MUL, p->im, scale);
    tiga_tensor *half = num(p, 0.5), *zero = num(p, 0);
    tiga_tensor *right = bin(p, IR_GE, p->re, zero), *most_re = choose(p, right, x, un(p, IR_NEG, x));
    tiga_tensor *sum = bin(p, IR_ADD, bin(p, IR_MUL, half, most_re), bin(p, IR_MUL, half, bin(p, IR_HYPOT, x, y)));
    tiga_tensor *t = un(p, IR_SQRT, sum), *other = bin(p, IR_DIV, y, bin(p, IR_MUL, num(p, 2), t));
    tiga_tensor *below = choose(p, bin(p, IR_EQ, p->im, zero), bin(p, IR_LT, bin(p, IR_DIV, num(p, 1), p->im), zero),
                                bin(p, IR_LT, p->im, zero)); /* of -0 too */
    tiga_tensor *none = bin(p, IR_EQ, t, zero), *beyond = infinite(p, p->im);
    tiga_tensor *re = bin(p, IR_MUL, choose(p, right, t, choose(p, below, un(p, IR_NEG, other), other)), back);
    tiga_tensor *im = bin(p, IR_MUL, choose(p, right, other, choose(p, below, un(p, IR_NEG, t), t)), back);
    re = choose(p, beyond, num(p, (double)INFINITY), choose(p, none, zero, re));
    return bin(p, IR_COMPLEX, re, choose(p, beyond, p->im, choose(p, none, p->im, im)));
}

bool tensor_is_complex_function(ir_opcode code) {
    return code == IR_ABS || code == IR_EXP || code == IR_LOG || code == IR_SQRT;
}

tiga_status tensor_complex_function(ir_opcode code, tiga_tensor *z, tiga_tensor **out) {
    parts p = {.ts = z->ts, .single = z->dtype == TIGA_C64};
    p.re = un(&p, IR_REAL, z);
    p.im = un(&p, IR_IMAG, z);
    tiga_tensor *x = code == IR_ABS   ? bin(&p, IR_HYPOT, p.re, p.im)
                     : code == IR_EXP ? exponential(&p)
                     : code == IR_LOG ? logarithm(&p)
                                      : root(&p);
    if (p.status == TIGA_OK)
        *out = tensor_retain(x);
    for (int i = 0; i < p.n; i++)
        tensor_free(p.made[i]);
    return p.status;
}
