/* exp, log, sqrt and abs of complex numbers against the C library's (C's Annex G) on all pairs of special parts and on
 * random ones.  Where Annex G leaves a sign open, any is right. */
#include "frontend/frontend.h"

#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static const double special[] = {
    0,      -0.0,   1,      -1,      0.5,   -2,       3.25,     INFINITY,  -INFINITY, NAN,
    1e-300, -1e300, 5e-324, -5e-324, 1e308, -1.7e308, 709.9,    745.25,    -745.25,   1.5707963267948966,
    1e-20,  88.5,   95,     -100,    1e-45, -3e38,    1.000001, -0.999999, 2e-39,     1e20};
enum { N = sizeof special / sizeof *special, RANDOM = 3000, ALL = N * N + RANDOM };

static double complex z128[ALL], e128[ALL], l128[ALL], r128[ALL];
static float complex z64[ALL], e64[ALL], l64[ALL], r64[ALL];
static double a128[ALL];
static float a64[ALL];

static uint64_t state = 88172645463325252u;
static double part(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double x = ldexp(1 + ldexp((double)(state >> 12), -52), (int)(state % 40) - 30);
    return state & 64 ? -x : x;
}

static void run(const char *text, const void *z, void *const *out) {
    base_arena *arena = base_arena_new();
    base_diags d;
    base_str shown = {0}, err = {0};
    base_diags_init(&d, arena, "test.tg", text);
    ir_module *m = fe_compile(arena, "test.tg", text, NULL, 0, &d);
    base_diags_render(&d, false, &shown);
    cr_assert_not_null(m, "%s", base_str_text(&shown));
    static int64_t offsets[ALL + 1];
    ir_graph_data g = {.n_dst = ALL, .n_src = ALL, .n_edges = 0, .offsets = offsets, .sources = offsets};
    ir_call_data call = {.graph = &g, .in = (const void *const[]){z}, .out = out};
    cr_assert(ir_interpret_graph(m, ir_func_find(m, "k", IR_LEVEL_KERNEL), &call, &err), "%s", base_str_text(&err));
    base_str_fini(&shown);
    base_arena_free(arena);
}

/* Within some units of the larger part, which is what operations on parts can promise; zeros and infinities exactly. */
static bool near(double got, double want, double scale, double unit, double least, bool any_sign) {
    if (isnan(want))
        return isnan(got);
    if (any_sign)
        got = fabs(got), want = fabs(want);
    if (isinf(want))
        return got == want;
    if (want == 0 && scale == 0)
        return got == 0 && !signbit(got) == !signbit(want);
    return fabs(got - want) <= 8 * unit * scale + 2 * least;
}

static void check(const char *name, double complex z, double complex got, double complex want, bool single,
                  bool any_sign) {
    double re = fabs(creal(want)), im = fabs(cimag(want)), unit = single ? 0x1p-23 : 0x1p-52;
    double least = single ? 0x1p-149 : 0x1p-1074, scale = fmax(isfinite(re) ? re : 0, isfinite(im) ? im : 0);
    bool zeros = any_sign || scale > 0;
    cr_expect(near(creal(got), creal(want), zeros ? scale : 0, unit, least, any_sign) &&
                  near(cimag(got), cimag(want), zeros ? scale : 0, unit, least, any_sign),
              "%s %s(%g%+gi) = %.17g%+.17gi, not %.17g%+.17gi", single ? "c64" : "c128", name, creal(z), cimag(z),
              creal(got), cimag(got), creal(want), cimag(want));
}

/* What Annex G leaves open: signs of exp where the angle is infinite or none, of sqrt of -infinity + NaN i. */
static bool open_sign(double complex z) { return isinf(creal(z)) && !isfinite(cimag(z)); }

Test(complex, annex_g) {
    for (int i = 0; i < ALL; i++) {
        double re = i < N * N ? special[i / N] : part(), im = i < N * N ? special[i % N] : part();
        z128[i] = CMPLX(re, im);
        z64[i] = CMPLXF((float)re, (float)im);
    }
    run("kernel k(dst z: c128) -> (e: c128, l: c128, r: c128, a: f64) {\n"
        "    return (e = exp(dst.z), l = log(dst.z), r = sqrt(dst.z), a = abs(dst.z))\n}\n",
        z128, (void *const[]){e128, l128, r128, a128});
    run("kernel k(dst z: c64) -> (e: c64, l: c64, r: c64, a: f32) {\n"
        "    return (e = exp(dst.z), l = log(dst.z), r = sqrt(dst.z), a = abs(dst.z))\n}\n",
        z64, (void *const[]){e64, l64, r64, a64});
    for (int i = 0; i < ALL; i++) {
        double complex z = z128[i];
        float complex y = z64[i];
        check("exp", z, e128[i], cexp(z), false, open_sign(z));
        check("log", z, l128[i], clog(z), false, false);
        check("sqrt", z, r128[i], csqrt(z), false, open_sign(z));
        check("abs", z, a128[i], cabs(z), false, false);
        check("exp", y, e64[i], cexpf(y), true, open_sign(y));
        check("log", y, l64[i], clogf(y), true, false);
        check("sqrt", y, r64[i], csqrtf(y), true, open_sign(y));
        check("abs", y, a64[i], cabsf(y), true, false);
    }
}
