/* The transcendental functions of f32, written once: the evaluator calls them, and codegen/ copies what a module needs into
 * emitted C and CUDA, where the same text serves for whole vectors (see codegen/cg_math.c, which replaces the types).  So
 * the bits are the same everywhere, as long as nobody contracts a * b + c or reorders sums.
 *
 * The text keeps to what scalars and vectors have in common: + - * / on values and literals, & | << >> + - on bits, and
 * comparisons as the first argument of tiga_pick.  No branches, no tables, no calls of the C library but the square root; a
 * vector never stands for a truth value.  A function tiga_far_NAME is free of all that: vectors call it for one lane, where
 * tiga_beyond_NAME says so.  Each function is a block without blank lines. */

TIGA_FN uint32_t tiga_to_bits_f32(float a) {
    union {
        float f;
        uint32_t u;
    } b;
    b.f = a;
    return b.u;
}

TIGA_FN float tiga_of_bits_f32(uint32_t a) {
    union {
        uint32_t u;
        float f;
    } b;
    b.u = a;
    return b.f;
}

TIGA_FN float tiga_pick_f32(int condition, float a, float b) { return condition ? a : b; }

TIGA_FN float tiga_all_f32(float a) { return a; }

/* A short way for single values, with the same result; never taken by vectors. */
TIGA_FN int tiga_alone_f32(int condition) { return condition; }

/* e^x where neither it nor 2^n is subnormal or infinite. */
TIGA_FN float tiga_exp_near_f32(float x) {
    const float t = x * 1.442695f + 12582912.0f, n = t - 12582912.0f;
    const float r = (x - n * 0.693359375f) - n * -2.1219444e-4f, r2 = r * r;
    const float q = r2 * (r2 * 0.00139474939f + (r * 0.00836700387f + 0.0416662693f)) + (r * 0.166665405f + 0.5f);
    return ((r + r2 * q) + 1.0f) * tiga_of_bits_f32((tiga_to_bits_f32(t) - (0x4b400000u - 127u)) << 23);
}

/* 2^n e^r, n = x / ln 2 rounded by adding 1.5 * 2^23, whose last bits then hold n.  2^n is two factors, so that a subnormal
 * result is rounded once.  What is below them all is not computed: multiplications that underflow are slow. */
TIGA_FN float tiga_exp_f32(float x) {
    if (tiga_alone_f32((x < 88.0f) & (x > -87.0f)))
        return tiga_exp_near_f32(x);
    const float most = tiga_pick_f32(x > 89.0f, tiga_all_f32(89.0f), x);
    const float a = tiga_pick_f32(x < -104.0f, tiga_all_f32(0.0f), most);
    const float t = a * 1.442695f + 12582912.0f, n = t - 12582912.0f;
    const float r = (a - n * 0.693359375f) - n * -2.1219444e-4f, r2 = r * r;
    const float q = r2 * (r2 * 0.00139474939f + (r * 0.00836700387f + 0.0416662693f)) + (r * 0.166665405f + 0.5f);
    const uint32_t m = tiga_to_bits_f32(t) - (0x4b400000u - 254u), half = m >> 1;
    const float y = ((r + r2 * q) + 1.0f) * tiga_of_bits_f32(half << 23) * tiga_of_bits_f32((m - half) << 23);
    return tiga_pick_f32(x < -104.0f, tiga_all_f32(0.0f), y);
}

/* As exp, but e^r - 1 stays apart from 1 until both are scaled: by 2^(n - 1), which never overflows. */
TIGA_FN float tiga_expm1_f32(float x) {
    const float most = tiga_pick_f32(x > 89.0f, tiga_all_f32(89.0f), x);
    const float a = tiga_pick_f32(x < -30.0f, tiga_all_f32(-30.0f), most);
    const float t = a * 1.442695f + 12582912.0f, n = t - 12582912.0f;
    const float r = (a - n * 0.693359375f) - n * -2.1219444e-4f;
    const float q =
        ((((r * 0.00019915041f + 0.00139413145f) * r + 0.00833327137f) * r + 0.041666355f) * r + 0.166666672f) * r +
        0.5f;
    const float s = tiga_of_bits_f32((tiga_to_bits_f32(t) - (0x4b400000u - 126u)) << 23);
    const float y = (s * (r + r * r * q) + (s - 0.5f)) * 2.0f;
    return tiga_pick_f32((x < 2.9802322e-8f) & (x > -2.9802322e-8f), x, y);
}

/* x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = 2 atanh(s) with s = f / (2 + f), an odd polynomial in s
 * arranged so that f itself is added last. */
TIGA_FN float tiga_log_f32(float x) {
    const float big = tiga_pick_f32(x < 1.17549435e-38f, x * 8388608.0f, x);
    const uint32_t u = tiga_to_bits_f32(big) + (0x3f800000u - 0x3f3504f3u);
    const float bias = tiga_pick_f32(x < 1.17549435e-38f, tiga_all_f32(8388758.0f), tiga_all_f32(8388735.0f));
    const float k = tiga_of_bits_f32((u >> 23) | 0x4b000000u) - bias;
    const float f = tiga_of_bits_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const float s = f / (f + 2.0f), z = s * s, h = f * f * 0.5f;
    const float p = ((z * 0.298851728f + 0.399770796f) * z + 0.666667819f) * z;
    const float y = k * 0.693359375f + (f - (h - (s * (h + p) + k * -2.1219444e-4f)));
    const float low = tiga_pick_f32(x < 0.0f, tiga_all_f32(NAN), tiga_all_f32(-INFINITY));
    return tiga_pick_f32(x < INFINITY, tiga_pick_f32(x > 0.0f, y, low), x);
}

/* As log of 1 + x; what the sum lost is c, exactly, and log(1 + x) = log(sum) + c / sum. */
TIGA_FN float tiga_log1p_f32(float x) {
    const float sum = x + 1.0f, d = sum - 1.0f, c = (1.0f - (sum - d)) + (x - d);
    const uint32_t u = tiga_to_bits_f32(sum) + (0x3f800000u - 0x3f3504f3u);
    const float k = tiga_of_bits_f32((u >> 23) | 0x4b000000u) - 8388735.0f;
    const float f = tiga_of_bits_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const float s = f / (f + 2.0f), z = s * s, h = f * f * 0.5f;
    const float p = ((z * 0.298851728f + 0.399770796f) * z + 0.666667819f) * z;
    const float y = k * 0.693359375f + (f - (h - (s * (h + p) + (k * -2.1219444e-4f + c / sum))));
    const float low = tiga_pick_f32(x < -1.0f, tiga_all_f32(NAN), tiga_all_f32(-INFINITY));
    const float most = tiga_pick_f32(x < INFINITY, tiga_pick_f32(x > -1.0f, y, low), x);
    return tiga_pick_f32((x < 2.9802322e-8f) & (x > -2.9802322e-8f), x, most);
}

/* Near 0 an odd polynomial, elsewhere 1 - 2 / (exp(2|x|) + 1). */
TIGA_FN float tiga_tanh_f32(float x) {
    const uint32_t sign = tiga_to_bits_f32(x) & 0x80000000u;
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ sign), b = tiga_pick_f32(a > 10.0f, tiga_all_f32(10.0f), a);
    const float t = b * 2.88539f + 12582912.0f, n = t - 12582912.0f;
    const float r = (b * 2.0f - n * 0.693359375f) - n * -2.1219444e-4f;
    const float q = (((r * 0.00139474939f + 0.00836700387f) * r + 0.0416662693f) * r + 0.166665405f) * r + 0.5f;
    const float s = tiga_of_bits_f32((tiga_to_bits_f32(t) - (0x4b400000u - 127u)) << 23);
    const float far = 1.0f - 2.0f / (s * ((r + r * r * q) + 1.0f) + 1.0f), z = b * b;
    const float p = (((z * -0.0062325662f + 0.02104754f) * z - 0.0538480543f) * z + 0.133325651f) * z - 0.333333164f;
    const float y = tiga_pick_f32(b < 0.55f, b + b * z * p, far);
    return tiga_of_bits_f32(tiga_to_bits_f32(y) | sign);
}

/* Near 0 x plus an odd polynomial; elsewhere 1 - e^q with q a polynomial for the logarithm of 1 - erf. */
TIGA_FN float tiga_erf_f32(float x) {
    const uint32_t sign = tiga_to_bits_f32(x) & 0x80000000u;
    const float b = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ sign), a = tiga_pick_f32(b > 4.0f, tiga_all_f32(4.0f), b);
    const float z = a * a, z2 = z * z;
    const float p = z2 * (z2 * (z * -0.000611129217f + 0.00501623051f) + (z * -0.0267819613f + 0.112822302f)) +
                    (z * -0.376125336f + 0.128379151f);
    const float q3 = (a * -2.07732319e-05f + 0.00043073509f) * a - 0.00415297691f;
    const float q1 = ((q3 * a + 0.0250717569f) * a - 0.108206339f) * a - 0.633413911f;
    const float far = 1.0f - tiga_exp_near_f32((q1 * a - 1.12948179f) * a + 0.000167807739f);
    const float y = tiga_pick_f32(a < 0.9f, a + a * p, far);
    return tiga_of_bits_f32(tiga_to_bits_f32(y) | sign);
}

/* sin(r + rest + q pi / 2) for |r| <= pi / 4; rest is what rounding took from r. */
TIGA_FN float tiga_turn_f32(float r, float rest, uint32_t q) {
    const float z = r * r;
    const float s = r + (r * z * ((z * -0.000195170142f + 0.00833218265f) * z - 0.166666552f) + rest);
    const float c4 = z * z * ((z * 2.44570456e-05f - 0.00138875609f) * z + 0.041666653f);
    const float c = 1.0f - (z * 0.5f - (c4 - r * rest));
    const float y = tiga_pick_f32((q & 1u) != 0u, c, s);
    return tiga_of_bits_f32(tiga_to_bits_f32(y) ^ ((q & 2u) << 30));
}

/* x = n pi / 2 + r + rest for large x >= 0, n being the result: x times the bits of 2 / pi that matter, in integers.
 * Infinity gives NaN. */
TIGA_FN uint32_t tiga_far_rest_f32(float x, float *r, float *rest) {
    static const uint32_t words[8] = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                      0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    const uint32_t u = tiga_to_bits_f32(x);
    *r = x - x;
    *rest = 0.0f;
    if (u >= 0x7f800000u)
        return 0u;
    const uint64_t m = (u & 0x7fffffu) | 0x800000u;
    const uint32_t at = (u >> 23) - 120u, i = at >> 5, shift = at & 31u;
    const uint64_t w0 = (((uint64_t)words[i] << 32 | words[i + 1u]) << shift) >> 32;
    const uint64_t w1 = (((uint64_t)words[i + 1u] << 32 | words[i + 2u]) << shift) >> 32;
    const uint64_t w2 = (((uint64_t)words[i + 2u] << 32 | words[i + 3u]) << shift) >> 32;
    const uint64_t middle = m * w1 + (m * w2 >> 32), turns = ((m * w0) << 32) + middle;
    const uint64_t n = (turns + 0x2000000000000000u) >> 62, over = turns - (n << 62);
    const double f = (double)(int64_t)over * 3.4061215800865545e-19;
    *r = (float)f;
    *rest = (float)(f - (double)*r);
    return (uint32_t)n;
}

TIGA_FN float tiga_far_turn_f32(float x, uint32_t q) {
    float r, rest;
    const uint32_t n = tiga_far_rest_f32(x, &r, &rest);
    return tiga_turn_f32(r, rest, n + q);
}

/* Where n is too large for the way below; not all lanes of a vector need be. */
TIGA_FN float tiga_beyond_turn_f32(float x, uint32_t q, float y) { return x <= 8192.0f ? y : tiga_far_turn_f32(x, q); }

/* x = n pi / 2 + r, with pi / 2 in four parts; n times each of the first three is exact, and so
 * is what is left after two. */
TIGA_FN float tiga_sin_f32(float x) {
    const uint32_t sign = tiga_to_bits_f32(x) & 0x80000000u;
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ sign);
    const float t = a * 0.636619772f + 12582912.0f, n = t - 12582912.0f;
    const float r2 = (a - n * 1.5703125f) - n * 0.000483751297f, w = n * 7.54953362e-08f, r = r2 - w;
    const float rest = ((r2 - r) - w) - n * 2.56334407e-12f;
    const float y = tiga_beyond_turn_f32(a, 0u, tiga_turn_f32(r, rest, tiga_to_bits_f32(t)));
    return tiga_of_bits_f32(tiga_to_bits_f32(y) ^ sign);
}

TIGA_FN float tiga_cos_f32(float x) {
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) & 0x7fffffffu);
    const float t = a * 0.636619772f + 12582912.0f, n = t - 12582912.0f;
    const float r2 = (a - n * 1.5703125f) - n * 0.000483751297f, w = n * 7.54953362e-08f, r = r2 - w;
    const float rest = ((r2 - r) - w) - n * 2.56334407e-12f;
    return tiga_beyond_turn_f32(a, 1u, tiga_turn_f32(r, rest, tiga_to_bits_f32(t) + 1u));
}

/* Square root: an instruction. */
TIGA_FN float tiga_root_f32(float a) { return sqrtf(a); }

/* The first 12 bits of a number, so that products of two such are exact. */
TIGA_FN float tiga_high_f32(float a) { return tiga_of_bits_f32(tiga_to_bits_f32(a) & 0xfffff000u); }

/* tan(r + rest), or its -1 / tan for odd q, for |r| <= pi / 4. */
TIGA_FN float tiga_slope_f32(float r, float rest, uint32_t q) {
    const float z = r * r, z2 = z * z;
    const float p3 = z2 * (z * 0.00437272154f + 9.82132187e-05f) + (z * 0.0108274575f + 0.0212862063f);
    const float p = z2 * p3 + (z * 0.0540589131f + 0.133326754f);
    const float t = r + (r * z * (p * z + 0.333333492f) + rest * (z * 1.62f + 1.0f));
    return tiga_pick_f32((q & 1u) != 0u, -1.0f / t, t);
}

TIGA_FN float tiga_far_slope_f32(float x, uint32_t q) {
    float r, rest;
    const uint32_t n = tiga_far_rest_f32(x, &r, &rest);
    return tiga_slope_f32(r, rest, n + q);
}

TIGA_FN float tiga_beyond_slope_f32(float x, uint32_t q, float y) {
    return x <= 8192.0f ? y : tiga_far_slope_f32(x, q);
}

TIGA_FN float tiga_tan_f32(float x) {
    const uint32_t sign = tiga_to_bits_f32(x) & 0x80000000u;
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ sign);
    const float t = a * 0.636619772f + 12582912.0f, n = t - 12582912.0f;
    const float r2 = (a - n * 1.5703125f) - n * 0.000483751297f, w = n * 7.54953362e-08f, r = r2 - w;
    const float rest = ((r2 - r) - w) - n * 2.56334407e-12f;
    const float y = tiga_beyond_slope_f32(a, 0u, tiga_slope_f32(r, rest, tiga_to_bits_f32(t)));
    return tiga_of_bits_f32(tiga_to_bits_f32(y) ^ sign);
}

/* asin(s) - s over s, for z = s^2 <= 1 / 4. */
TIGA_FN float tiga_arcsine_f32(float z) {
    const float z2 = z * z;
    return z * (z2 * (z2 * 0.0421582907f + (z * 0.0241847821f + 0.0454691499f)) + (z * 0.0749530941f + 0.166667521f));
}

/* Above 1 / 2: asin(a) = pi / 2 - 2 asin(sqrt((1 - a) / 2)).  The root of a negative number is the NaN beyond 1. */
TIGA_FN float tiga_asin_f32(float x) {
    const uint32_t sign = tiga_to_bits_f32(x) & 0x80000000u;
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ sign), half = (1.0f - a) * 0.5f;
    const float z = tiga_pick_f32(a > 0.5f, half, a * a), s = tiga_pick_f32(a > 0.5f, tiga_root_f32(half), a);
    const float w = s * tiga_arcsine_f32(z);
    const float far = (0.785398185f - s * 2.0f) + (0.785398185f - (w * 2.0f + 4.37113883e-08f));
    const float y = tiga_pick_f32(a > 0.5f, far, s + w);
    return tiga_of_bits_f32(tiga_to_bits_f32(y) | sign);
}

TIGA_FN float tiga_acos_f32(float x) {
    const uint32_t sign = tiga_to_bits_f32(x) & 0x80000000u;
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ sign), half = (1.0f - a) * 0.5f;
    const float z = tiga_pick_f32(a > 0.5f, half, a * a), s = tiga_pick_f32(a > 0.5f, tiga_root_f32(half), a);
    const float w = s * tiga_arcsine_f32(z), signed_w = tiga_of_bits_f32(tiga_to_bits_f32(w) ^ sign);
    const float near = 1.57079637f - (x + (signed_w + 4.37113883e-08f));
    const float left = 3.14159274f - (s * 2.0f + (w * 2.0f + 8.74227766e-08f)), right = (s + w) * 2.0f;
    return tiga_pick_f32(a > 0.5f, tiga_pick_f32(x < 0.0f, left, right), near);
}

/* atan(t) - t for |t| <= 0.547. */
TIGA_FN float tiga_arc_f32(float t) {
    const float z = t * t, z2 = z * z;
    const float p3 = z2 * (z * 0.0341474488f - 0.0764486566f) + (z * 0.108479775f - 0.142605901f);
    return t * z * (z2 * p3 + (z * 0.199988768f - 0.333333164f));
}

/* atan(a) = c pi / 4 + atan(t): t = a, (a - 1) / (a + 1) or -1 / a.  pi / 4 in two parts, of which the first may be taken
 * three times without rounding. */
TIGA_FN float tiga_atan_f32(float x) {
    const uint32_t sign = tiga_to_bits_f32(x) & 0x80000000u;
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ sign);
    const float above = tiga_pick_f32(a > 1.828125f, tiga_all_f32(-1.0f), a - 1.0f);
    const float below = tiga_pick_f32(a > 1.828125f, a, a + 1.0f);
    const float t = tiga_pick_f32(a > 0.546875f, above, a) / tiga_pick_f32(a > 0.546875f, below, tiga_all_f32(1.0f));
    const float c1 = tiga_pick_f32(a > 1.828125f, tiga_all_f32(2.0f), tiga_all_f32(1.0f));
    const float c = tiga_pick_f32(a > 0.546875f, c1, tiga_all_f32(0.0f));
    const float y = c * 0.785398006f + (t + (tiga_arc_f32(t) + c * 1.56958237e-07f));
    return tiga_of_bits_f32(tiga_to_bits_f32(y) | sign);
}

/* The angle of the smaller to the larger of |y| and |x|, turned to where the point lies.  Small ones are scaled, so that
 * halves are exact. */
TIGA_FN float tiga_atan2_f32(float y, float x) {
    const uint32_t sign = tiga_to_bits_f32(y) & 0x80000000u, left = tiga_to_bits_f32(x) & 0x80000000u;
    const float b = tiga_of_bits_f32(tiga_to_bits_f32(y) ^ sign), a = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ left);
    const float most = tiga_pick_f32(b > a, b, a), least = tiga_pick_f32(b > a, a, b);
    const float one = tiga_pick_f32((most == INFINITY) | (most == 0.0f), tiga_all_f32(1.0f), most);
    const float low = tiga_pick_f32(most == INFINITY, tiga_all_f32(0.0f), least);
    const float up = tiga_pick_f32(one > 1.0f, tiga_all_f32(1.0f), tiga_all_f32(4294967296.0f));
    const float h = one * up, l = tiga_pick_f32(least == INFINITY, tiga_all_f32(1.0f), low) * up;
    const float above = tiga_pick_f32(l > h * 0.546875f, l * 0.5f - h * 0.5f, l);
    const float q = above / tiga_pick_f32(l > h * 0.546875f, l * 0.5f + h * 0.5f, h);
    const float c1 = tiga_pick_f32(l > h * 0.546875f, tiga_all_f32(1.0f), tiga_all_f32(0.0f));
    const float c2 = tiga_pick_f32(b > a, 2.0f - c1, c1), c = tiga_pick_f32(left != 0u, 4.0f - c2, c2);
    const float swap = tiga_pick_f32(b > a, tiga_all_f32(-0.0f), tiga_all_f32(0.0f));
    const float t = tiga_of_bits_f32(tiga_to_bits_f32(q) ^ tiga_to_bits_f32(swap) ^ left);
    const float r = c * 0.785398006f + (t + (tiga_arc_f32(t) + c * 1.56958237e-07f));
    const float turned = tiga_of_bits_f32(tiga_to_bits_f32(r) | sign);
    return tiga_pick_f32((x != x) | (y != y), x + y, turned);
}

/* (e^a + way e^-a) / 2 for a >= 0, way = 1 or -1: twice 2^(n - 2) (1 + p + way / ...), of which the power of two is added
 * last. */
TIGA_FN float tiga_both_exp_f32(float a, float way) {
    const float b = tiga_pick_f32(a > 89.5f, tiga_all_f32(89.5f), a);
    const float t = b * 1.442695f + 12582912.0f, n = t - 12582912.0f;
    const float r = (b - n * 0.693359375f) - n * -2.1219444e-4f, r2 = r * r;
    const float p = r2 * (r2 * 0.00139474939f + (r * 0.00836700387f + 0.0416662693f)) + (r * 0.166665405f + 0.5f);
    const float s = tiga_of_bits_f32((tiga_to_bits_f32(t) - (0x4b400000u - 125u)) << 23), sp = s * (r + r2 * p);
    return (s + (sp + way * 0.0625f / (s + sp))) * 2.0f;
}

TIGA_FN float tiga_sinh_f32(float x) {
    const uint32_t sign = tiga_to_bits_f32(x) & 0x80000000u;
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) ^ sign), z = a * a;
    const float p = (z * z) * (z * 2.78221319e-06f + 0.000198428956f) + (z * 0.00833331048f + 0.166666672f);
    const float y = tiga_pick_f32(a < 1.0f, a + a * z * p, tiga_both_exp_f32(a, tiga_all_f32(-1.0f)));
    return tiga_of_bits_f32(tiga_to_bits_f32(y) | sign);
}

TIGA_FN float tiga_cosh_f32(float x) {
    return tiga_both_exp_f32(tiga_of_bits_f32(tiga_to_bits_f32(x) & 0x7fffffffu), tiga_all_f32(1.0f));
}

/* sqrt(x^2 + y^2), scaled where squares would leave the range. */
TIGA_FN float tiga_hypot_f32(float x, float y) {
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) & 0x7fffffffu);
    const float b = tiga_of_bits_f32(tiga_to_bits_f32(y) & 0x7fffffffu), most = tiga_pick_f32(b > a, b, a);
    const float small = tiga_pick_f32(most < 0x1p-60f, tiga_all_f32(0x1p+90f), tiga_all_f32(1.0f));
    const float back = tiga_pick_f32(most < 0x1p-60f, tiga_all_f32(0x1p-90f), tiga_all_f32(1.0f));
    const float scale = tiga_pick_f32(most > 0x1p+60f, tiga_all_f32(0x1p-68f), small);
    const float unscale = tiga_pick_f32(most > 0x1p+60f, tiga_all_f32(0x1p+68f), back);
    const float as = a * scale, bs = b * scale, inf = tiga_all_f32(INFINITY);
    const float r = tiga_root_f32(as * as + bs * bs) * unscale;
    return tiga_pick_f32((a == inf) | (b == inf), inf, r);
}

/* a^y = 2^(y log2 a).  log2 m = C s (3 + z + ...) with s = (m - 1) / (m + 1), z = s^2 and C = 2 / (3 ln 2); s, the sum, the
 * products and what comes with the exponent of a are kept as two numbers, of which the first has few bits and so exact
 * products. */
TIGA_FN float tiga_power_f32(float a, float y) {
    const float big = tiga_pick_f32(a < 1.17549435e-38f, a * 8388608.0f, a);
    const uint32_t u = tiga_to_bits_f32(big) + (0x3f800000u - 0x3f3504f3u);
    const float bias = tiga_pick_f32(a < 1.17549435e-38f, tiga_all_f32(8388758.0f), tiga_all_f32(8388735.0f));
    const float k = tiga_of_bits_f32((u >> 23) | 0x4b000000u) - bias;
    const float m = tiga_of_bits_f32((u & 0x7fffffu) + 0x3f3504f3u), f = m - 1.0f, d = m + 1.0f;
    const float over = 1.0f / d, s = f * over, sh = tiga_high_f32(s), dh = tiga_high_f32(d);
    const float sl = ((f - sh * dh) - sh * ((d - dh) + (m - (d - 1.0f)))) * over;
    const float zh = sh * sh, zl = sl * (sh + s), z = zh + zl;
    const float tail = zl + z * z * (z * (z * 0.351294667f + 0.428206354f) + 0.600002289f),
                gh = tiga_high_f32(zh + tail + 3.0f);
    const float gl = tail - ((gh - 3.0f) - zh), ph = sh * gh, pl = sl * gh + gl * s;
    const float p = tiga_high_f32(ph + pl), rest = pl - (p - ph);
    const float c = p * 0.961669922f, low = p * 0.000126772051f + rest * 0.961796694f;
    const float v = k + c, e = (c - (v - k)) + low, lh = tiga_high_f32(v + e), ll = (v - lh) + e;
    const float most = tiga_pick_f32(y > 4294967296.0f, tiga_all_f32(4294967296.0f), y);
    const float b = tiga_pick_f32(y < -4294967296.0f, tiga_all_f32(-4294967296.0f), most), bh = tiga_high_f32(b);
    const float h = bh * lh, l = (b - bh) * lh + b * ll, w = h + l;
    const float t = w + 12582912.0f, r = (h - (t - 12582912.0f)) + l, r2 = r * r;
    const float q = r2 * (r * 0.000153211062f + 0.00133901718f) + (r * 0.00961852632f + 0.0555036217f);
    const float g = (r * 0.693147182f + r2 * (r * q + 0.240226477f)) + 1.0f;
    const uint32_t n = tiga_to_bits_f32(t) - (0x4b400000u - 254u), half = n >> 1;
    const float x = g * tiga_of_bits_f32(half << 23) * tiga_of_bits_f32((n - half) << 23);
    return tiga_pick_f32(w > 129.0f, tiga_all_f32(INFINITY), tiga_pick_f32(w < -151.0f, tiga_all_f32(0.0f), x));
}

/* What C's Annex F says of zeros, infinities, NaN and whole numbers.  t is |y| with the last bit of its whole part last. */
TIGA_FN float tiga_pow_f32(float x, float y) {
    const float a = tiga_of_bits_f32(tiga_to_bits_f32(x) & 0x7fffffffu);
    const float b = tiga_of_bits_f32(tiga_to_bits_f32(y) & 0x7fffffffu);
    const float t = tiga_pick_f32(b < 8388608.0f, b + 8388608.0f, b), none = tiga_all_f32(0.0f);
    const float whole = tiga_pick_f32((b < 8388608.0f) & (t - 8388608.0f != b), none, t);
    const float odd = tiga_pick_f32(b < 16777216.0f, whole, none), inf = tiga_all_f32(INFINITY);
    const uint32_t sign = (tiga_to_bits_f32(odd) << 31) & tiga_to_bits_f32(x);
    const float end = tiga_pick_f32(((a > 1.0f) & (y > 0.0f)) | ((a < 1.0f) & (y < 0.0f)), inf, none);
    const float p = tiga_pick_f32((a == 0.0f) | (a == inf), end, tiga_power_f32(a, y));
    const float turned = tiga_of_bits_f32(tiga_to_bits_f32(p) ^ sign);
    const float real = tiga_pick_f32((x < 0.0f) & (a < inf) & (whole == 0.0f), tiga_all_f32(NAN), turned);
    const float known = tiga_pick_f32((x != x) | (y != y), x + y, real);
    return tiga_pick_f32((x == 1.0f) | (y == 0.0f), tiga_all_f32(1.0f), known);
}
