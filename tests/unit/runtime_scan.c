/* The hand-written scanners against the C library, bit for bit. */
#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void same_as_strtod(const char *text) {
    const char *p = text;
    double v = -1, want = strtod(text, NULL);
    cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_OK, "%s", text);
    cr_assert_eq(*p, 0, "%s: stopped at '%s'", text, p);
    cr_assert(memcmp(&v, &want, 8) == 0, "%s: %.17g, not %.17g", text, v, want);
}

Test(scan, floats_of_many_forms) {
    static const char *const texts[] = {
        "0",
        "-0",
        "1",
        "+1",
        "1.5",
        "-2.25e3",
        ".5",
        "5.",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "123456789012345678",
        "9007199254740993",
        "9007199254740992e22",
        "1.7976931348623157e308",
        "4.9e-324",
        "2e-324",
        "2.2250738585072011e-308",
        "0.1",
        "0.30000000000000004",
        "123456789.123456789123456789",
        "1E+05",
        "00000000000000000001.5",
        "0.000000000000000000000000000001",
        "17976931348623158079372897140530341507993413271003782693617377898044496829276475094664901797758720709633028641"
        "66928879109465555478519404026306574886715058206819089020007083836762738548458177115317644757302700698555713669"
        "59622842914819860834936475292719074168444365510704342711559699508093042880",
        "1e-99999999999",
        "0e99999999999",
        "8.5e15",
        "1.00000000000000000000000000000000000000000001"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        same_as_strtod(texts[i]);
}

Test(scan, floats_at_random) {
    srand(1);
    for (int i = 0; i < 200000; i++) {
        char text[64];
        uint64_t bits = ((uint64_t)rand() << 42) ^ ((uint64_t)rand() << 21) ^ (uint64_t)rand();
        double v;
        memcpy(&v, &bits, 8);
        if (v != v || isinf(v))
            continue;
        snprintf(text, sizeof text, i % 3 == 0 ? "%.17g" : i % 3 == 1 ? "%.6g" : "%.12e", v);
        same_as_strtod(text);
        snprintf(text, sizeof text, "%d.%0*d", rand(), 1 + i % 9, rand() % 1000);
        same_as_strtod(text);
    }
}

Test(scan, floats_that_are_words_or_nothing) {
    double v;
    const char *p = "-inf";
    cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_OK);
    cr_assert(isinf(v) && v < 0 && *p == 0);
    p = "NaN";
    cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_OK);
    cr_assert(isnan(v) && *p == 0);
    static const char *const wrong[] = {"", "x", "-", ".", "e5", "--1", "+", "-.", "in"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        p = wrong[i];
        cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_NONE, "%s", wrong[i]);
        cr_assert_eq(p, wrong[i]);
    }
    p = "1e"; /* the exponent is not there: the number ends before it */
    cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_OK);
    cr_assert(v == 1 && *p == 'e');
    p = "0x10";
    cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_OK);
    cr_assert(v == 0 && *p == 'x');
}

Test(scan, floats_that_do_not_fit) {
    static const char *const big[] = {"1e309", "-1e309", "1e999", "1.8e308", "17976931348623159e292", "1e99999999999"};
    double v;
    for (size_t i = 0; i < sizeof big / sizeof big[0]; i++) {
        const char *p = big[i];
        cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_BIG, "%s", big[i]);
        cr_assert_eq(p, big[i]);
    }
    same_as_strtod("1.7976931348623157e308");
    same_as_strtod("1e-999");
    same_as_strtod("0e999");
    size_t n = 10000000; /* the exponent is as long as the fraction makes up for: cut short it would look small */
    char *text = malloc(n + 64);
    cr_assert_not_null(text);
    memset(text, '0', n + 2);
    text[1] = '.';
    strcpy(text + n + 2, "1e99999999999");
    const char *p = text;
    cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_BIG);
    strcpy(text + n + 2, "1e10000002");
    p = text;
    cr_assert_eq(rt_scan_f64(&p, &v), RT_SCAN_OK);
    cr_assert(v == 10 && *p == 0, "%g", v);
    free(text);
}

Test(scan, integers) {
    int64_t v;
    const char *p = "9223372036854775807 ";
    cr_assert_eq(rt_scan_id(&p, &v), RT_SCAN_OK);
    cr_assert(v == INT64_MAX && *p == ' ');
    p = "9223372036854775808";
    cr_assert_eq(rt_scan_id(&p, &v), RT_SCAN_BIG);
    p = "99999999999999999999999";
    cr_assert_eq(rt_scan_id(&p, &v), RT_SCAN_BIG);
    p = "000000000000000000000000000012";
    cr_assert_eq(rt_scan_id(&p, &v), RT_SCAN_OK);
    cr_assert_eq(v, 12);
    p = "-5";
    cr_assert_eq(rt_scan_id(&p, &v), RT_SCAN_NEGATIVE);
    p = "-";
    cr_assert_eq(rt_scan_id(&p, &v), RT_SCAN_NONE);
    p = "-9223372036854775808";
    cr_assert_eq(rt_scan_i64(&p, &v), RT_SCAN_OK);
    cr_assert_eq(v, INT64_MIN);
    p = "-9223372036854775809";
    cr_assert_eq(rt_scan_i64(&p, &v), RT_SCAN_BIG);
    p = "9223372036854775808";
    cr_assert_eq(rt_scan_i64(&p, &v), RT_SCAN_BIG);
    p = "+7";
    cr_assert_eq(rt_scan_i64(&p, &v), RT_SCAN_OK);
    cr_assert_eq(v, 7);
}
