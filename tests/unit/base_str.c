/* Strings, the shortest numbers that read back, hashing, edit distance. */
#include "base/base.h"

#include <criterion/criterion.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <string.h>

Test(str, grows_and_stays_terminated) {
    base_str s = {0};
    cr_assert_str_eq(base_str_text(&s), "");
    for (int i = 0; i < 1000; i++)
        base_str_addf(&s, "%d,", i);
    cr_assert_eq(s.len, strlen(s.data));
    cr_assert_eq(strncmp(s.data, "0,1,2,", 6), 0);
    base_str_addf(&s, "%*d", 5000, 1);
    cr_assert_eq(s.len, strlen(s.data));
    base_str_add_n(&s, "a\0b", 3);
    cr_assert_eq(s.data[s.len - 2], 0);
    base_str_fini(&s);
    cr_assert_null(s.data);
}

Test(str, an_allocation_that_fails_is_remembered) {
    base_str s = {0};
    base_str_add(&s, "ab");
    base_inject_at(BASE_INJECT_ALLOC, 1);
    base_str_addf(&s, "%*d", 500, 1);
    base_inject_at(BASE_INJECT_ALLOC, 0);
    cr_assert(s.failed);
    base_str_add(&s, "cd");
    cr_assert_str_eq(s.data, "ab", "nothing is added after a gap");
    base_str_fini(&s);
}

static void check_f64(double v, const char *want) {
    base_str s = {0};
    double back;
    base_str_add_f64(&s, v);
    cr_assert_str_eq(s.data, want);
    cr_assert(base_parse_f64(s.data, s.len, &back));
    cr_assert(memcmp(&back, &v, sizeof v) == 0 || isnan(v));
    base_str_fini(&s);
}

static void check_f32(float v, const char *want) {
    base_str s = {0};
    float back;
    base_str_add_f32(&s, v);
    cr_assert_str_eq(s.data, want);
    cr_assert(base_parse_f32(s.data, s.len, &back));
    cr_assert(memcmp(&back, &v, sizeof v) == 0 || isnan(v));
    base_str_fini(&s);
}

Test(numbers, shortest_text_that_reads_back) {
    check_f64(0.1, "0.1");
    check_f64(1.0 / 3, "0.3333333333333333");
    check_f64(0.1 + 0.2, "0.30000000000000004");
    check_f64(-0.0, "-0");
    check_f64(1e23, "1e+23");
    check_f64(DBL_MAX, "1.7976931348623157e+308");
    check_f64(DBL_TRUE_MIN, "5e-324");
    check_f64((double)INFINITY, "inf");
    check_f64((double)-INFINITY, "-inf");
    check_f64((double)NAN, "nan");
    check_f32(0.1f, "0.1");
    check_f32(16777216.0f, "16777216");
    check_f32(FLT_MAX, "3.4028235e+38");
    check_f32(FLT_TRUE_MIN, "1e-45");
    check_f32(1.0f / 3, "0.33333334");
}

Test(numbers, only_a_whole_number_is_read) {
    double d;
    float f;
    cr_assert_not(base_parse_f64("1.5x", 4, &d));
    cr_assert_not(base_parse_f64(" 1", 2, &d));
    cr_assert_not(base_parse_f64("", 0, &d));
    cr_assert_not(base_parse_f64("1\0", 2, &d));
    cr_assert(base_parse_f64("1.5x", 3, &d));
    cr_assert_eq(d, 1.5);
    cr_assert(base_parse_f32("16777217", 8, &f));
    cr_assert_eq(f, 16777216.0f);
}

Test(numbers, the_locale_does_not_matter) {
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        cr_skip_test("no locale with a decimal comma is installed");
    check_f64(0.5, "0.5");
    check_f32(-2.25f, "-2.25");
}

Test(hash, fields_carry_their_length) {
    base_hash128 digests[3];
    const char *parts[3][2] = {{"ab", "c"}, {"a", "bc"}, {"abc", ""}};
    for (int i = 0; i < 3; i++) {
        base_hasher h;
        base_hasher_init(&h);
        for (int k = 0; k < 2; k++)
            base_hasher_field(&h, parts[i][k], strlen(parts[i][k]));
        digests[i] = base_hasher_digest(&h);
    }
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < i; k++)
            cr_assert(digests[i].lo != digests[k].lo || digests[i].hi != digests[k].hi);
}

Test(hash, is_xxh3_128_in_hexadecimal) {
    char hex[33];
    base_hash_hex(base_hash_bytes(NULL, 0), hex);
    cr_assert_str_eq(hex, "99aa06d3014798d86001c324468d497f"); /* the published value of the empty input */
    base_hash_hex((base_hash128){.lo = 1, .hi = 0xf000000000000000u}, hex);
    cr_assert_str_eq(hex, "f0000000000000000000000000000001");
}

Test(hash, pieces_hash_like_the_whole) {
    char text[1000];
    for (int i = 0; i < 1000; i++)
        text[i] = (char)(i * 7);
    for (size_t n = 0; n <= sizeof text; n += 37)
        for (size_t cut = 0; cut <= n; cut += 61) {
            base_hasher h;
            base_hasher_init(&h);
            base_hasher_add(&h, text, cut);
            base_hasher_add(&h, text + cut, n - cut);
            base_hash128 a = base_hasher_digest(&h), b = base_hash_bytes(text, n);
            cr_assert(a.lo == b.lo && a.hi == b.hi, "%zu of %zu", cut, n);
        }
}

Test(edit_distance, counts_single_changes) {
    cr_assert_eq(base_edit_distance("softmax", "softmax"), 0);
    cr_assert_eq(base_edit_distance("sofmax", "softmax"), 1);
    cr_assert_eq(base_edit_distance("", "abc"), 3);
    cr_assert_eq(base_edit_distance("kitten", "sitting"), 3);
    char a[300], b[300];
    memset(a, 'a', 299), memset(b, 'b', 299);
    a[299] = b[299] = 0;
    cr_assert_eq(base_edit_distance(a, b), 63);
}

/* ---- sizes computed from others ---- */
static int64_t three_or_five(const void *user, const char *name, size_t length) {
    (void)user;
    return length == 1 && *name == 'D' ? 3 : length == 2 && !memcmp(name, "K2", 2) ? 5 : -1;
}

Test(size, sums_of_products_have_values) {
    static const struct {
        const char *text;
        int64_t want;
    } right[] = {{"D", 3}, {"D+K2", 8}, {"2*D*K2-4", 26}, {"D-K2", -2}, {"-D+4", 1}, {"7", 7}, {"D*D*D*D*D*D", 729}};
    static const char *const wrong[] = {"X",
                                        "D+",
                                        "D++D",
                                        "*D",
                                        "D*",
                                        "D*D*D*D*D*D*D",
                                        "K2+K",
                                        "D+-K2",
                                        "+-",
                                        "9223372036854775808",
                                        "9223372036854775807+D"};
    int64_t v;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        cr_expect(base_size_eval(right[i].text, three_or_five, NULL, &v) && v == right[i].want, "%s is %lld",
                  right[i].text, (long long)v);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect(!base_size_eval(wrong[i], three_or_five, NULL, &v), "%s", wrong[i]);
    static const struct {
        const char *text;
        int64_t value, want; /* -1: cannot be told */
    } sums[] = {{"D+X", 7, 4},     {"D+2*X", 7, 2},  {"2*X", 7, -1},    {"D*X", 12, 4},
                {"D-X", 1, 2},     {"D-X", 4, -1},   {"X-1", 0, 1},     {"D+X", 2, -1},
                {"X*X", 9, -1},    {"D+X+Y", 9, -1}, {"X*Y", 6, -1},    {"D+K2", 8, -1},
                {"X+X*D+1", 9, 2}, {"X-X", 0, -1},   {"K2*D*X", 30, 2}, {"X+", 3, -1}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        base_size_term t;
        bool told = base_size_solve(sums[i].text, sums[i].value, three_or_five, NULL, &t, &v);
        cr_expect_eq(told ? v : -1, sums[i].want, "%s = %lld", sums[i].text, (long long)sums[i].value);
        cr_expect(!told || (t.n_names == 1 && t.length[0] == 1 && *t.name[0] == 'X'));
    }
    cr_expect(base_size_is_computed("D+K2") && base_size_is_computed("2*D") && !base_size_is_computed("g.dst"));
}
