/* Our functions of mathematics against MPFR's, which are right to the last of 130 bits: the largest error of each, in units
 * in the last place of the true value, and a failure where it is above the promise of docs/language.md.
 *
 *     exact_test N        N random arguments for each function and type, after all pairs of special ones */
#include "ir/ir.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 130 };
static const double PROMISE = 2;

typedef struct function {
    ir_opcode code;
    int (*one)(mpfr_t, const mpfr_t, mpfr_rnd_t);
    int (*two)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
} function;

#define ONE(NAME, stem) {IR_##NAME, mpfr_##stem, NULL}
#define TWO(NAME, stem) {IR_##NAME, NULL, mpfr_##stem}
static const function functions[] = {
    ONE(EXP, exp),   ONE(EXPM1, expm1), ONE(LOG, log),   ONE(LOG1P, log1p), ONE(SIN, sin),     ONE(COS, cos),
    ONE(TAN, tan),   ONE(ASIN, asin),   ONE(ACOS, acos), ONE(ATAN, atan),   ONE(SINH, sinh),   ONE(COSH, cosh),
    ONE(TANH, tanh), ONE(ERF, erf),     TWO(POW, pow),   TWO(ATAN2, atan2), TWO(HYPOT, hypot),
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static const double special[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 0.5,
                                 -0.5,
                                 2,
                                 -3,
                                 1.5,
                                 -2.5,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1.fffffep127,
                                 -0x1p-126,
                                 0x1p-149,
                                 0x1.fffffffffffffp1023,
                                 0x1p-1022,
                                 -0x1p-1074,
                                 0x1.fffffffffffffp-1,
                                 0x1.fffffep-1,
                                 0x1.000002p0,
                                 0x1.921fb54442d18p0,
                                 0x1.6ac5b262ca1ffp849,
                                 0.546875,
                                 1.828125,
                                 16777215,
                                 -9007199254740991,
                                 0x1p54};
enum { N_SPECIAL = sizeof special / sizeof *special };

static uint64_t state = 0x853c49e6748fea9bu;
static uint64_t next_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

static mpfr_t a, b, want, got, distance;

typedef struct format {
    const char *name;
    int digits, least, most; /* of the smallest number, above the largest */
    double exponents;
} format;
static const format single = {"f32", 24, -149, 128, 152}, twice = {"f64", 53, -1074, 1024, 1080};

/* got against want: numbers, in units in the last place. */
static double distance_of(const format *t, double result) {
    if (mpfr_nan_p(want) || isnan(result))
        return mpfr_nan_p(want) && isnan(result) ? 0 : INFINITY;
    if (mpfr_zero_p(want) || mpfr_inf_p(want) || (result == 0 && signbit(result) != !!mpfr_signbit(want)))
        return mpfr_get_d(want, MPFR_RNDN) == result && !mpfr_signbit(want) == !signbit(result) ? 0 : INFINITY;
    long e = mpfr_get_exp(want) > t->most ? t->most + 1 : mpfr_get_exp(want);
    long unit = e - t->digits < t->least ? t->least : e - t->digits;
    if (isinf(result) && e > t->most)
        return !mpfr_signbit(want) == (result > 0) ? 0 : INFINITY;
    if (isinf(result)) /* as if the next number up were finite */
        mpfr_set_si_2exp(got, result > 0 ? 1 : -1, t->most, MPFR_RNDN);
    else
        mpfr_set_d(got, result, MPFR_RNDN);
    mpfr_sub(distance, got, want, MPFR_RNDN);
    mpfr_mul_2si(distance, distance, -unit, MPFR_RNDN);
    return fabs(mpfr_get_d(distance, MPFR_RNDU));
}

static double error_at(const function *f, const format *t, double x, double y) {
    bool is_single = t == &single;
    ir_dtype type = is_single ? IR_F32 : IR_F64;
    ir_scalar_value args[2] = {{.d = x}, {.d = y}};
    if (is_single)
        args[0] = (ir_scalar_value){.f = (float)x}, args[1] = (ir_scalar_value){.f = (float)y};
    ir_scalar_value r = ir_eval(f->code, type, type, args);
    mpfr_set_d(a, is_single ? (double)args[0].f : x, MPFR_RNDN);
    mpfr_set_d(b, is_single ? (double)args[1].f : y, MPFR_RNDN);
    if (f->one)
        f->one(want, a, MPFR_RNDN);
    else
        f->two(want, a, b, MPFR_RNDN);
    return distance_of(t, is_single ? (double)r.f : r.d);
}

static double fraction(void) { return ldexp((double)(int64_t)next_bits(), -63); }

/* Arguments where the functions have their shape; every third pair any bits at all. */
static void choose(const function *f, const format *t, long i, double *x, double *y) {
    bool inside = f->code == IR_ASIN || f->code == IR_ACOS;
    *x = inside && i % 2 ? fraction() : ldexp(fraction(), i % 2 ? (int)(next_bits() % 14) - 5 : (int)(next_bits() % 60) - 45);
    *y = i % 2 ? *x * (1 + fraction()) : fraction() * 16;
    if (f->code == IR_POW && i % 3 == 1) {
        *x = fabs(*x);
        double l = log2(*x);
        *y = fraction() * t->exponents / (l != 0 ? l : 1);
    }
    if (i % 3 != 0)
        return;
    uint64_t bits[2] = {next_bits(), next_bits()};
    double wide[2];
    float narrow[2];
    memcpy(wide, bits, sizeof wide);
    memcpy(narrow, bits, sizeof narrow);
    *x = t == &single ? (double)narrow[0] : wide[0];
    *y = t == &single ? (double)narrow[1] : wide[1];
}

typedef struct worst {
    double error, x, y;
} worst;

static void note(worst *w, double error, double x, double y) {
    if (error > w->error)
        *w = (worst){error, x, y};
}

static bool check(const function *f, const format *t, long n) {
    worst w = {0, 0, 0};
    for (int i = 0; i < N_SPECIAL; i++)
        for (int j = 0; j < (f->one ? 1 : N_SPECIAL); j++)
            note(&w, error_at(f, t, special[i], special[j]), special[i], special[j]);
    for (long i = 0; i < n; i++) {
        double x, y;
        choose(f, t, i, &x, &y);
        note(&w, error_at(f, t, x, y), x, y);
    }
    bool good = w.error <= PROMISE;
    printf("%-6s %s  %6.3f at %a", ir_op_describe(f->code)->text, t->name, w.error, w.x);
    if (f->two)
        printf(", %a", w.y);
    printf("%s\n", good ? "" : "  above what is promised");
    return good;
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 10000;
    bool good = true;
    mpfr_inits2(BITS, a, b, want, got, distance, (mpfr_ptr)0);
    for (int k = 0; k < N_FUNCTIONS; k++) {
        good = check(&functions[k], &single, n) && good;
        good = check(&functions[k], &twice, n) && good;
    }
    mpfr_clears(a, b, want, got, distance, (mpfr_ptr)0);
    return good ? 0 : 1;
}
