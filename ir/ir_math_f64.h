/* The transcendental functions of f64: as ir_math_f32.h, with longer polynomials. */

TIGA_FN uint64_t tiga_to_bits_f64(double a) {
    union {
        double f;
        uint64_t u;
    } b;
    b.f = a;
    return b.u;
}

TIGA_FN double tiga_of_bits_f64(uint64_t a) {
    union {
        uint64_t u;
        double f;
    } b;
    b.u = a;
    return b.f;
}

TIGA_FN double tiga_pick_f64(int condition, double a, double b) { return condition ? a : b; }

TIGA_FN double tiga_all_f64(double a) { return a; }

TIGA_FN int tiga_alone_f64(int condition) { return condition; }

TIGA_FN double tiga_exp_near_f64(double x) {
    const double t = x * 1.4426950408889634 + 6755399441055744.0, n = t - 6755399441055744.0;
    const double r = (x - n * 0.6931471805598903) - n * 5.497923018708371e-14, r2 = r * r, r4 = r2 * r2;
    const double q3 = r2 * (r * 2.5115227400747318e-08 + 2.762691093981593e-07) +
                      (r * 2.7557225972381635e-06 + 2.4801503430416697e-05);
    const double q2 =
        r2 * (r * 0.00019841269904712848 + 0.0013888888932704249) + (r * 0.008333333333314114 + 0.04166666666657505);
    const double q = r2 * (r4 * q3 + q2) + (r * 0.16666666666666685 + 0.5);
    return ((r + r2 * q) + 1.0) * tiga_of_bits_f64((tiga_to_bits_f64(t) - (0x4338000000000000u - 1023u)) << 52);
}

TIGA_FN double tiga_exp_f64(double x) {
    if (tiga_alone_f64((x < 709.0) & (x > -708.0)))
        return tiga_exp_near_f64(x);
    const double most = tiga_pick_f64(x > 710.0, tiga_all_f64(710.0), x);
    const double a = tiga_pick_f64(x < -746.0, tiga_all_f64(0.0), most);
    const double t = a * 1.4426950408889634 + 6755399441055744.0, n = t - 6755399441055744.0;
    const double r = (a - n * 0.6931471805598903) - n * 5.497923018708371e-14;
    const double r2 = r * r, r4 = r2 * r2;
    const double q3 = r2 * (r * 2.5115227400747318e-08 + 2.762691093981593e-07) +
                      (r * 2.7557225972381635e-06 + 2.4801503430416697e-05);
    const double q2 =
        r2 * (r * 0.00019841269904712848 + 0.0013888888932704249) + (r * 0.008333333333314114 + 0.04166666666657505);
    const double q = r2 * (r4 * q3 + q2) + (r * 0.16666666666666685 + 0.5);
    const uint64_t m = tiga_to_bits_f64(t) - (0x4338000000000000u - 2046u), half = m >> 1;
    const double y = (r + r2 * q) + 1.0;
    const double scaled = y * tiga_of_bits_f64(half << 52) * tiga_of_bits_f64((m - half) << 52);
    return tiga_pick_f64(x < -746.0, tiga_all_f64(0.0), scaled);
}

TIGA_FN double tiga_expm1_f64(double x) {
    const double most = tiga_pick_f64(x > 710.0, tiga_all_f64(710.0), x);
    const double a = tiga_pick_f64(x < -60.0, tiga_all_f64(-60.0), most);
    const double t = a * 1.4426950408889634 + 6755399441055744.0, n = t - 6755399441055744.0;
    const double high = a - n * 0.6931471805598903, low = n * 5.497923018708371e-14;
    const double r = high - low, c = (high - r) - low; /* what rounding took from r */
    const double q4 = ((r * 2.092508357465152e-09 + 2.5109777250857985e-08) * r + 2.755724085658817e-07) * r;
    const double q3 = ((q4 + 2.7557242420674545e-06) * r + 2.480158736249237e-05) * r + 0.0001984126988751546;
    const double q2 = ((q3 * r + 0.001388888888886609) * r + 0.008333333333321266) * r + 0.0416666666666667;
    const double q = (q2 * r + 0.16666666666666677) * r + 0.5;
    const double s = tiga_of_bits_f64((tiga_to_bits_f64(t) - (0x4338000000000000u - 1022u)) << 52);
    const double y = (s * (r + (r * r * q + c)) + (s - 0.5)) * 2.0;
    return tiga_pick_f64((x < 5.551115123125783e-17) & (x > -5.551115123125783e-17), x, y);
}

TIGA_FN double tiga_log_f64(double x) {
    const double big = tiga_pick_f64(x < 2.2250738585072014e-308, x * 18014398509481984.0, x);
    const uint64_t u = tiga_to_bits_f64(big) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    const double bias =
        tiga_pick_f64(x < 2.2250738585072014e-308, tiga_all_f64(4503599627371573.0), tiga_all_f64(4503599627371519.0));
    const double k = tiga_of_bits_f64((u >> 52) | 0x4330000000000000u) - bias;
    const double f = tiga_of_bits_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    const double s = f / (f + 2.0), z = s * s, h = f * f * 0.5;
    const double p3 = ((z * 0.14811540879513124 + 0.15312569889625016) * z + 0.1818361898475558) * z;
    const double p1 = ((p3 + 0.22222197587465328) * z + 0.2857142875130137) * z + 0.3999999999937799;
    const double p = (p1 * z + 0.666666666666674) * z;
    const double y = k * 0.6931471805598903 + (f - (h - (s * (h + p) + k * 5.497923018708371e-14)));
    const double low = tiga_pick_f64(x < 0.0, tiga_all_f64(NAN), tiga_all_f64(-INFINITY));
    return tiga_pick_f64(x < tiga_all_f64(INFINITY), tiga_pick_f64(x > 0.0, y, low), x);
}

TIGA_FN double tiga_log1p_f64(double x) {
    const double sum = x + 1.0, d = sum - 1.0, c = (1.0 - (sum - d)) + (x - d);
    const uint64_t u = tiga_to_bits_f64(sum) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    const double k = tiga_of_bits_f64((u >> 52) | 0x4330000000000000u) - 4503599627371519.0;
    const double f = tiga_of_bits_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    const double s = f / (f + 2.0), z = s * s, h = f * f * 0.5;
    const double p3 = ((z * 0.14811540879513124 + 0.15312569889625016) * z + 0.1818361898475558) * z;
    const double p1 = ((p3 + 0.22222197587465328) * z + 0.2857142875130137) * z + 0.3999999999937799;
    const double p = (p1 * z + 0.666666666666674) * z;
    const double y = k * 0.6931471805598903 + (f - (h - (s * (h + p) + (k * 5.497923018708371e-14 + c / sum))));
    const double low = tiga_pick_f64(x < -1.0, tiga_all_f64(NAN), tiga_all_f64(-INFINITY));
    const double most = tiga_pick_f64(x < tiga_all_f64(INFINITY), tiga_pick_f64(x > -1.0, y, low), x);
    return tiga_pick_f64((x < 5.551115123125783e-17) & (x > -5.551115123125783e-17), x, most);
}

TIGA_FN double tiga_tanh_f64(double x) {
    const uint64_t sign = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ sign), b = tiga_pick_f64(a > 20.0, tiga_all_f64(20.0), a);
    const double t = b * 2.8853900817779268 + 6755399441055744.0, n = t - 6755399441055744.0;
    const double r = (b * 2.0 - n * 0.6931471805598903) - n * 5.497923018708371e-14;
    const double q4 = ((r * 2.5115227400747318e-08 + 2.762691093981593e-07) * r + 2.7557225972381635e-06) * r;
    const double q2 = ((q4 + 2.4801503430416697e-05) * r + 0.00019841269904712848) * r + 0.0013888888932704249;
    const double q1 = ((q2 * r + 0.008333333333314114) * r + 0.04166666666657505) * r + 0.16666666666666685;
    const double s = tiga_of_bits_f64((tiga_to_bits_f64(t) - (0x4338000000000000u - 1023u)) << 52);
    const double far = 1.0 - 2.0 / (s * ((r + r * r * (q1 * r + 0.5)) + 1.0) + 1.0), z = b * b;
    const double p5 = ((z * -1.9234063416787994e-05 + 8.292885581199102e-05) * z - 0.00023313889081321784) * z;
    const double p4 = ((p5 + 0.000588361799909103) * z - 0.0014555263922712254) * z + 0.0035920901568531277;
    const double p2 = ((p4 * z - 0.008863232499348218) * z + 0.021869488386131373) * z - 0.053968253964074876;
    const double p = (p2 * z + 0.13333333333327915) * z - 0.33333333333333315;
    const double y = tiga_pick_f64(b < 0.55, b + b * z * p, far);
    return tiga_of_bits_f64(tiga_to_bits_f64(y) | sign);
}

TIGA_FN double tiga_erf_f64(double x) {
    const uint64_t sign = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double b = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ sign), a = tiga_pick_f64(b > 6.0, tiga_all_f64(6.0), b);
    const double z = a * a, z2 = z * z, z4 = z2 * z2;
    const double p5 = z2 * (z * -8.497784841788513e-10 + 1.4053170480315499e-08) +
                      (z * -1.6276851615790847e-07 + 1.6455364093780554e-06);
    const double p3 =
        z2 * (z * -1.4925309923357525e-05 + 0.0001205532148611339) + (z * -0.000854832676735515 + 0.005223977621820572);
    const double p1 = z2 * (z * -0.02686617064482882 + 0.1128379167095382) + z * -0.3761263890318373;
    const double p = (z4 * (z4 * p5 + p3) + p1) + 0.1283791670955126;
    const double q8 = (a * 1.3844411437739498e-12 - 6.182277500137669e-11) * a + 1.2927951253057804e-09;
    const double q7 = (q8 * a - 1.680863562783278e-08) * a + 1.519679882474999e-07;
    const double q6 = (q7 * a - 1.010053254593393e-06) * a + 5.065396147243017e-06;
    const double q5 = (q6 * a - 1.9178858554012567e-05) * a + 5.2638838187491175e-05;
    const double q4 = (q5 * a - 8.763116724236297e-05) * a - 1.352471146917011e-05;
    const double q3 = (q4 * a + 0.0005959893385909569) * a - 0.0017174347118589822;
    const double q2 = (q3 * a + 0.0002345904515420265) * a + 0.019109322015225007;
    const double q1 = (q2 * a - 0.10276283366240237) * a - 0.6366230870780814;
    const double far = 1.0 - tiga_exp_near_f64((q1 * a - 1.1283784883922734) * a - 6.37295141538017e-08);
    const double y = tiga_pick_f64(a < 0.9, a + a * p, far);
    return tiga_of_bits_f64(tiga_to_bits_f64(y) | sign);
}

TIGA_FN double tiga_turn_f64(double r, double rest, uint64_t q) {
    const double z = r * r;
    const double s3 = (z * 1.5897143448821185e-10 - 2.5050768943633305e-08) * z + 2.755731380069312e-06;
    const double s1 = (s3 * z - 0.00019841269830276316) * z + 0.008333333333323284;
    const double s = r + (r * z * (s1 * z - 0.16666666666666638) + rest);
    const double c3 = (z * -1.1367773753680234e-11 + 2.0875892656893597e-09) * z - 2.755731570311942e-07;
    const double c1 = (c3 * z + 2.4801587294575387e-05) * z - 0.0013888888888883052;
    const double c = 1.0 - (z * 0.5 - (z * z * (c1 * z + 0.04166666666666666) - r * rest));
    const double y = tiga_pick_f64((q & 1u) != 0u, c, s);
    return tiga_of_bits_f64(tiga_to_bits_f64(y) ^ ((q & 2u) << 62));
}

TIGA_FN uint64_t tiga_far_rest_f64(double x, double *r, double *rest) {
    static const uint32_t words[40] = {
        0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
        0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u,
        0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu,
        0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u,
        0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u};
    const uint64_t u = tiga_to_bits_f64(x);
    *r = x - x;
    *rest = 0.0;
    if (u >= 0x7ff0000000000000u)
        return 0u;
    const uint64_t m = (u & 0xfffffffffffffu) | 0x10000000000000u;
    const uint32_t at = (uint32_t)(u >> 52) - 1045u, first = at >> 5, shift = at & 31u;
    uint64_t above = 0u, carry = 0u, turns = 0u, below = 0u;
    for (uint32_t k = first + 6u; k > first; --k) {
        const uint64_t w = (((uint64_t)words[k - 1u] << 32 | words[k]) << shift) >> 32;
        const uint64_t a = (m & 0xffffffffu) * w, b = (m >> 32) * above;
        const uint64_t sum = (a & 0xffffffffu) + (b & 0xffffffffu) + (carry & 0xffffffffu);
        carry = (a >> 32) + (b >> 32) + (carry >> 32) + (sum >> 32);
        below = below >> 32 | turns << 32;
        turns = turns >> 32 | sum << 32;
        above = w;
    }
    const uint64_t n = (turns + 0x2000000000000000u) >> 62;
    const int64_t over = (int64_t)(turns - (n << 62)), high = over / 2147483648, low = over - high * 2147483648;
    const double h = (double)high, l = (double)low + (double)below * 5.421010862427522e-20;
    const double exact = h * 7.314590044771307e-10, then = h * 3.5156449092979927e-17 + l * 3.4061215800865545e-19;
    *r = exact + then;
    *rest = (exact - *r) + then;
    return n;
}

TIGA_FN double tiga_far_turn_f64(double x, uint64_t q) {
    double r, rest;
    const uint64_t n = tiga_far_rest_f64(x, &r, &rest);
    return tiga_turn_f64(r, rest, n + q);
}

TIGA_FN double tiga_beyond_turn_f64(double x, uint64_t q, double y) {
    return x <= 4194304.0 ? y : tiga_far_turn_f64(x, q);
}

TIGA_FN double tiga_sin_f64(double x) {
    const uint64_t sign = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ sign);
    const double t = a * 0.6366197723675814 + 6755399441055744.0, n = t - 6755399441055744.0;
    const double r1 = a - n * 1.570796325802803, w2 = n * 9.920935791635221e-10, r2 = r1 - w2;
    const double w3 = n * 5.17018297889025e-19 - ((r1 - r2) - w2), r = r2 - w3;
    const double rest = ((r2 - r) - w3) - n * 2.9038559739793605e-28;
    const double y = tiga_beyond_turn_f64(a, 0u, tiga_turn_f64(r, rest, tiga_to_bits_f64(t)));
    return tiga_of_bits_f64(tiga_to_bits_f64(y) ^ sign);
}

TIGA_FN double tiga_cos_f64(double x) {
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) & 0x7fffffffffffffffu);
    const double t = a * 0.6366197723675814 + 6755399441055744.0, n = t - 6755399441055744.0;
    const double r1 = a - n * 1.570796325802803, w2 = n * 9.920935791635221e-10, r2 = r1 - w2;
    const double w3 = n * 5.17018297889025e-19 - ((r1 - r2) - w2), r = r2 - w3;
    const double rest = ((r2 - r) - w3) - n * 2.9038559739793605e-28;
    return tiga_beyond_turn_f64(a, 1u, tiga_turn_f64(r, rest, tiga_to_bits_f64(t) + 1u));
}

TIGA_FN double tiga_root_f64(double a) { return sqrt(a); }

/* The first 26 bits. */
TIGA_FN double tiga_high_f64(double a) { return tiga_of_bits_f64(tiga_to_bits_f64(a) & 0xfffffffff8000000u); }

TIGA_FN double tiga_slope_f64(double r, double rest, uint64_t q) {
    const double z = r * r, z2 = z * z, z4 = z2 * z2;
    const double p5 =
        z2 * (z * 2.085419602100519e-05 - 4.483838547996129e-05) + (z * 8.938052320192971e-05 - 2.6306546390464688e-05);
    const double p3 = z2 * (z * 0.00013646772245103374 + 0.00022240872178067085) +
                      (z * 0.0005950545624570858 + 0.0014547604998079698);
    const double p1 =
        z2 * (z * 0.0035922886391274323 + 0.00886321921614192) + (z * 0.021869489605020078 + 0.05396825392685197);
    const double p = z2 * (z4 * (z4 * p5 + p3) + p1) + z * 0.13333333333414177;
    const double t = r + (r * z * (p + 0.3333333333333278) + rest * (z * 1.62 + 1.0));
    return tiga_pick_f64((q & 1u) != 0u, -1.0 / t, t);
}

TIGA_FN double tiga_far_slope_f64(double x, uint64_t q) {
    double r, rest;
    const uint64_t n = tiga_far_rest_f64(x, &r, &rest);
    return tiga_slope_f64(r, rest, n + q);
}

TIGA_FN double tiga_beyond_slope_f64(double x, uint64_t q, double y) {
    return x <= 4194304.0 ? y : tiga_far_slope_f64(x, q);
}

TIGA_FN double tiga_tan_f64(double x) {
    const uint64_t sign = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ sign);
    const double t = a * 0.6366197723675814 + 6755399441055744.0, n = t - 6755399441055744.0;
    const double r1 = a - n * 1.570796325802803, w2 = n * 9.920935791635221e-10, r2 = r1 - w2;
    const double w3 = n * 5.17018297889025e-19 - ((r1 - r2) - w2), r = r2 - w3;
    const double rest = ((r2 - r) - w3) - n * 2.9038559739793605e-28;
    const double y = tiga_beyond_slope_f64(a, 0u, tiga_slope_f64(r, rest, tiga_to_bits_f64(t)));
    return tiga_of_bits_f64(tiga_to_bits_f64(y) ^ sign);
}

TIGA_FN double tiga_arcsine_f64(double z) {
    const double z2 = z * z, z4 = z2 * z2;
    const double p3 =
        z2 * (z * 0.031914247874717624 - 0.016227060753249332) + (z * 0.019530003605835136 + 0.006527359224561081);
    const double p2 =
        z2 * (z * 0.012169349501423024 + 0.013885215197008048) + (z * 0.0173597067372212 + 0.022371757925120982);
    const double p1 =
        z2 * (z * 0.030381959141939478 + 0.044642856828214623) + (z * 0.07500000000337143 + 0.16666666666665408);
    return z * (z4 * (z4 * p3 + p2) + p1);
}

TIGA_FN double tiga_asin_f64(double x) {
    const uint64_t sign = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ sign), half = (1.0 - a) * 0.5;
    const double z = tiga_pick_f64(a > 0.5, half, a * a), s = tiga_pick_f64(a > 0.5, tiga_root_f64(half), a);
    const double w = s * tiga_arcsine_f64(z);
    const double far = (0.7853981633974483 - s * 2.0) + (0.7853981633974483 - (w * 2.0 - 6.123233995736766e-17));
    const double y = tiga_pick_f64(a > 0.5, far, s + w);
    return tiga_of_bits_f64(tiga_to_bits_f64(y) | sign);
}

TIGA_FN double tiga_acos_f64(double x) {
    const uint64_t sign = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ sign), half = (1.0 - a) * 0.5;
    const double z = tiga_pick_f64(a > 0.5, half, a * a), s = tiga_pick_f64(a > 0.5, tiga_root_f64(half), a);
    const double w = s * tiga_arcsine_f64(z), signed_w = tiga_of_bits_f64(tiga_to_bits_f64(w) ^ sign);
    const double near = 1.5707963267948966 - (x + (signed_w - 6.123233995736766e-17));
    const double left = 3.141592653589793 - (s * 2.0 + (w * 2.0 - 1.2246467991473532e-16)), right = (s + w) * 2.0;
    return tiga_pick_f64(a > 0.5, tiga_pick_f64(x < 0.0, left, right), near);
}

TIGA_FN double tiga_arc_f64(double t) {
    const double z = t * t, z2 = z * z, z4 = z2 * z2;
    const double p3 =
        z2 * (z * -0.006404828988738392 + 0.02031969383766741) + (z * -0.034608547697298715 + 0.04479453691788044);
    const double p2 =
        z2 * (z * -0.051989426726739535 + 0.05871890443952347) + (z * -0.06665451803441827 + 0.07692208822175983);
    const double p1 =
        z2 * (z * -0.09090903623440423 + 0.11111110916044191) + (z * -0.1428571428159839 + 0.199999999999562);
    return t * z * (z * (z4 * (z4 * p3 + p2) + p1) - 0.3333333333333317);
}

TIGA_FN double tiga_atan_f64(double x) {
    const uint64_t sign = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ sign);
    const double above = tiga_pick_f64(a > 1.828125, tiga_all_f64(-1.0), a - 1.0);
    const double below = tiga_pick_f64(a > 1.828125, a, a + 1.0);
    const double t = tiga_pick_f64(a > 0.546875, above, a) / tiga_pick_f64(a > 0.546875, below, tiga_all_f64(1.0));
    const double c1 = tiga_pick_f64(a > 1.828125, tiga_all_f64(2.0), tiga_all_f64(1.0));
    const double c = tiga_pick_f64(a > 0.546875, c1, tiga_all_f64(0.0));
    const double y = c * 0.7853981633974483 + (t + (tiga_arc_f64(t) + c * 3.061616997868383e-17));
    return tiga_of_bits_f64(tiga_to_bits_f64(y) | sign);
}

TIGA_FN double tiga_atan2_f64(double y, double x) {
    const uint64_t sign = tiga_to_bits_f64(y) & 0x8000000000000000u, left = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double b = tiga_of_bits_f64(tiga_to_bits_f64(y) ^ sign), a = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ left);
    const double most = tiga_pick_f64(b > a, b, a), least = tiga_pick_f64(b > a, a, b), inf = tiga_all_f64(INFINITY);
    const double one = tiga_pick_f64((most == inf) | (most == 0.0), tiga_all_f64(1.0), most);
    const double low = tiga_pick_f64(most == inf, tiga_all_f64(0.0), least);
    const double up = tiga_pick_f64(one > 1.0, tiga_all_f64(1.0), tiga_all_f64(18446744073709551616.0));
    const double h = one * up, l = tiga_pick_f64(least == inf, tiga_all_f64(1.0), low) * up;
    const double above = tiga_pick_f64(l > h * 0.546875, l * 0.5 - h * 0.5, l);
    const double q = above / tiga_pick_f64(l > h * 0.546875, l * 0.5 + h * 0.5, h);
    const double c1 = tiga_pick_f64(l > h * 0.546875, tiga_all_f64(1.0), tiga_all_f64(0.0));
    const double c2 = tiga_pick_f64(b > a, 2.0 - c1, c1), c = tiga_pick_f64(left != 0u, 4.0 - c2, c2);
    const double swap = tiga_pick_f64(b > a, tiga_all_f64(-0.0), tiga_all_f64(0.0));
    const double t = tiga_of_bits_f64(tiga_to_bits_f64(q) ^ tiga_to_bits_f64(swap) ^ left);
    const double r = c * 0.7853981633974483 + (t + (tiga_arc_f64(t) + c * 3.061616997868383e-17));
    const double turned = tiga_of_bits_f64(tiga_to_bits_f64(r) | sign);
    return tiga_pick_f64((x != x) | (y != y), x + y, turned);
}

TIGA_FN double tiga_both_exp_f64(double a, double way) {
    const double b = tiga_pick_f64(a > 710.6, tiga_all_f64(710.6), a);
    const double t = b * 1.4426950408889634 + 6755399441055744.0, n = t - 6755399441055744.0;
    const double r = (b - n * 0.6931471805598903) - n * 5.497923018708371e-14, r2 = r * r, r4 = r2 * r2;
    const double q3 = r2 * (r * 2.092508357465152e-09 + 2.5109777250857985e-08) +
                      (r * 2.755724085658817e-07 + 2.7557242420674545e-06);
    const double q2 =
        r2 * (r * 2.480158736249237e-05 + 0.0001984126988751546) + (r * 0.001388888888886609 + 0.008333333333321266);
    const double q1 = r2 * (r4 * q3 + q2) + (r * 0.0416666666666667 + 0.16666666666666677), p = r * q1 + 0.5;
    const double s = tiga_of_bits_f64((tiga_to_bits_f64(t) - (0x4338000000000000u - 1021u)) << 52);
    const double sp = s * (r + r2 * p);
    return (s + (sp + way * 0.0625 / (s + sp))) * 2.0;
}

TIGA_FN double tiga_sinh_f64(double x) {
    const uint64_t sign = tiga_to_bits_f64(x) & 0x8000000000000000u;
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) ^ sign), z = a * a, z2 = z * z;
    const double p3 = z2 * 7.776600369785391e-13 + (z * 1.605665915963344e-10 + 2.5052130998806815e-08);
    const double p1 =
        z2 * (z * 2.75573191067564e-06 + 0.0001984126984159341) + (z * 0.008333333333332912 + 0.16666666666666669);
    const double y = tiga_pick_f64(a < 1.0, a + a * z * (z2 * z2 * p3 + p1), tiga_both_exp_f64(a, tiga_all_f64(-1.0)));
    return tiga_of_bits_f64(tiga_to_bits_f64(y) | sign);
}

TIGA_FN double tiga_cosh_f64(double x) {
    return tiga_both_exp_f64(tiga_of_bits_f64(tiga_to_bits_f64(x) & 0x7fffffffffffffffu), tiga_all_f64(1.0));
}

TIGA_FN double tiga_hypot_f64(double x, double y) {
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) & 0x7fffffffffffffffu);
    const double b = tiga_of_bits_f64(tiga_to_bits_f64(y) & 0x7fffffffffffffffu), most = tiga_pick_f64(b > a, b, a);
    const double small = tiga_pick_f64(most < 0x1p-480, tiga_all_f64(0x1p+600), tiga_all_f64(1.0));
    const double back = tiga_pick_f64(most < 0x1p-480, tiga_all_f64(0x1p-600), tiga_all_f64(1.0));
    const double scale = tiga_pick_f64(most > 0x1p+480, tiga_all_f64(0x1p-560), small);
    const double unscale = tiga_pick_f64(most > 0x1p+480, tiga_all_f64(0x1p+560), back);
    const double as = a * scale, bs = b * scale, inf = tiga_all_f64(INFINITY);
    const double r = tiga_root_f64(as * as + bs * bs) * unscale;
    return tiga_pick_f64((a == inf) | (b == inf), inf, r);
}

TIGA_FN double tiga_power_f64(double a, double y) {
    const double big = tiga_pick_f64(a < 2.2250738585072014e-308, a * 18014398509481984.0, a);
    const uint64_t u = tiga_to_bits_f64(big) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    const double bias =
        tiga_pick_f64(a < 2.2250738585072014e-308, tiga_all_f64(4503599627371573.0), tiga_all_f64(4503599627371519.0));
    const double k = tiga_of_bits_f64((u >> 52) | 0x4330000000000000u) - bias;
    const double m = tiga_of_bits_f64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu), f = m - 1.0, d = m + 1.0;
    const double over = 1.0 / d, s = f * over, sh = tiga_high_f64(s), dh = tiga_high_f64(d);
    const double sl = ((f - sh * dh) - sh * ((d - dh) + (m - (d - 1.0)))) * over;
    const double zh = sh * sh, zl = sl * (sh + s), z = zh + zl, z2 = z * z;
    const double p2 = z2 * 0.197954993064457 + (z * 0.19885120979955112 + 0.23080140406858124);
    const double p1 = z2 * (z * 0.2727267645788526 + 0.3333333378090881) + (z * 0.4285714285514384 + 0.600000000000034);
    const double x = zl + z2 * (z2 * z2 * p2 + p1), gh = tiga_high_f64(zh + x + 3.0), gl = x - ((gh - 3.0) - zh);
    const double ph = sh * gh, pl = sl * gh + gl * s, p = tiga_high_f64(ph + pl), rest = pl - (p - ph);
    const double c = p * 0.9617966860532761, low = p * 7.872699542894897e-09 + rest * 0.9617966939259756;
    const double v = k + c, e = (c - (v - k)) + low, lh = tiga_high_f64(v + e), ll = (v - lh) + e;
    const double most = tiga_pick_f64(y > 0x1p+65, tiga_all_f64(0x1p+65), y);
    const double b = tiga_pick_f64(y < -0x1p+65, tiga_all_f64(-0x1p+65), most), bh = tiga_high_f64(b);
    const double h = bh * lh, l = (b - bh) * lh + b * ll, w = h + l;
    const double t = w + 6755399441055744.0, r = (h - (t - 6755399441055744.0)) + l, r2 = r * r, r4 = r2 * r2;
    const double q3 = r * 4.436305763159132e-10 + 7.073582396546135e-09;
    const double q2 = r2 * (r * 1.0178184657816244e-07 + 1.3215436592692718e-06) +
                      (r * 1.5252733546819037e-05 + 0.00015403530454096115);
    const double q1 =
        r2 * (r * 0.0013333558146686206 + 0.009618129107596964) + (r * 0.05550410866482074 + 0.24022650695910122);
    const double g = (r * 0.6931471805599453 + r2 * (r4 * (r4 * q3 + q2) + q1)) + 1.0;
    const uint64_t n = tiga_to_bits_f64(t) - (0x4338000000000000u - 2046u), half = n >> 1;
    const double r0 = g * tiga_of_bits_f64(half << 52) * tiga_of_bits_f64((n - half) << 52);
    return tiga_pick_f64(w > 1025.0, tiga_all_f64(INFINITY), tiga_pick_f64(w < -1076.0, tiga_all_f64(0.0), r0));
}

TIGA_FN double tiga_pow_f64(double x, double y) {
    const double a = tiga_of_bits_f64(tiga_to_bits_f64(x) & 0x7fffffffffffffffu);
    const double b = tiga_of_bits_f64(tiga_to_bits_f64(y) & 0x7fffffffffffffffu);
    const double t = tiga_pick_f64(b < 4503599627370496.0, b + 4503599627370496.0, b), none = tiga_all_f64(0.0);
    const double whole = tiga_pick_f64((b < 4503599627370496.0) & (t - 4503599627370496.0 != b), none, t);
    const double odd = tiga_pick_f64(b < 9007199254740992.0, whole, none), inf = tiga_all_f64(INFINITY);
    const uint64_t sign = (tiga_to_bits_f64(odd) << 63) & tiga_to_bits_f64(x);
    const double end = tiga_pick_f64(((a > 1.0) & (y > 0.0)) | ((a < 1.0) & (y < 0.0)), inf, none);
    const double p = tiga_pick_f64((a == 0.0) | (a == inf), end, tiga_power_f64(a, y));
    const double turned = tiga_of_bits_f64(tiga_to_bits_f64(p) ^ sign);
    const double real = tiga_pick_f64((x < 0.0) & (a < inf) & (whole == 0.0), tiga_all_f64(NAN), turned);
    const double known = tiga_pick_f64((x != x) | (y != y), x + y, real);
    return tiga_pick_f64((x == 1.0) | (y == 0.0), tiga_all_f64(1.0), known);
}
