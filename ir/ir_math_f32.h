/* The transcendental functions of f32, written once: the evaluator calls them, and codegen/ copies what a module needs into
 * emitted C and CUDA, where the same text serves for whole vectors (see codegen/cg_math.c, which replaces the types).  So
 * the bits are the same everywhere, as long as nobody contracts a * b + c or reorders sums.
 *
 * The text keeps to what scalars and vectors have in common: + - * / on values and literals, & | << >> + - on bits, and
 * comparisons as the first argument of tiga_pick.  No branches, no tables, no calls of the C library; a vector never
 * stands for a truth value.  A function tiga_far_NAME is free of all that: vectors call it for one lane.  Each function is a block without blank lines. */

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

/* sin(x + q pi / 2) for large x >= 0: x times the bits of 2 / pi that matter, in integers.  Infinity gives NaN. */
TIGA_FN float tiga_far_turn_f32(float x, uint32_t q) {
    static const uint32_t words[8] = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                      0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    const uint32_t u = tiga_to_bits_f32(x);
    if (u >= 0x7f800000u)
        return x - x;
    const uint64_t m = (u & 0x7fffffu) | 0x800000u;
    const uint32_t at = (u >> 23) - 120u, i = at >> 5, shift = at & 31u;
    const uint64_t w0 = (((uint64_t)words[i] << 32 | words[i + 1u]) << shift) >> 32;
    const uint64_t w1 = (((uint64_t)words[i + 1u] << 32 | words[i + 2u]) << shift) >> 32;
    const uint64_t w2 = (((uint64_t)words[i + 2u] << 32 | words[i + 3u]) << shift) >> 32;
    const uint64_t middle = m * w1 + (m * w2 >> 32), turns = ((m * w0) << 32) + middle;
    const uint64_t n = (turns + 0x2000000000000000u) >> 62, rest = turns - (n << 62);
    const double f = (double)(int64_t)rest * 3.4061215800865545e-19;
    return tiga_turn_f32((float)f, 0.0f, (uint32_t)n + q);
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
