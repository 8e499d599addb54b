/* Numbers from text, by hand: several times faster than the C library and independent of the locale.
 *
 * Floats: up to 19 digits are collected in an integer; when it is below 2^53 and the power of ten is at most 22, both
 * are exact and one multiplication or division rounds correctly.  Everything else goes to strtod in the "C" locale. */
#include "runtime/runtime.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static inline bool digit(char c) { return (unsigned char)(c - '0') <= 9; }

rt_scan_result rt_scan_id(const char **p, int64_t *out) {
    const char *s = *p;
    uint64_t v = 0;
    if (!digit(*s))
        return *s == '-' && digit(s[1]) ? RT_SCAN_NEGATIVE : RT_SCAN_NONE;
    do
        v = v * 10 + (uint64_t)(*s++ - '0');
    while (digit(*s) && s - *p < 18);
    for (; digit(*s); s++) {
        if (v > (INT64_MAX - (uint64_t)(*s - '0')) / 10)
            return RT_SCAN_BIG;
        v = v * 10 + (uint64_t)(*s - '0');
    }
    *out = (int64_t)v;
    *p = s;
    return RT_SCAN_OK;
}

rt_scan_result rt_scan_i64(const char **p, int64_t *out) {
    const char *s = *p;
    bool minus = *s == '-';
    uint64_t v = 0, most = (uint64_t)INT64_MAX + minus;
    s += minus || *s == '+';
    if (!digit(*s))
        return RT_SCAN_NONE;
    for (; digit(*s); s++) {
        if (v > (most - (uint64_t)(*s - '0')) / 10)
            return RT_SCAN_BIG;
        v = v * 10 + (uint64_t)(*s - '0');
    }
    *out = (int64_t)(minus ? 0 - v : v);
    *p = s;
    return RT_SCAN_OK;
}

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", NULL); }

static rt_scan_result scan_word(const char **p, const char *s, bool minus, double *out) {
    static const char *const words[] = {"infinity", "inf", "nan"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if (strncasecmp(s, words[i], n) == 0) {
            double v = i == 2 ? (double)NAN : (double)INFINITY;
            *out = minus ? -v : v;
            *p = s + n;
            return RT_SCAN_OK;
        }
    }
    return RT_SCAN_NONE;
}

/* What the fast path needs to know of a decimal number. */
typedef struct decimal {
    uint64_t digits;
    int n_digits, exponent; /* significant digits collected */
    bool cut;               /* digits were dropped */
} decimal;

static const char *scan_digits(const char *s, decimal *d, bool fraction) {
    for (; digit(*s); s++) {
        if (d->n_digits < 19) {
            d->digits = d->digits * 10 + (uint64_t)(*s - '0');
            d->n_digits += d->digits != 0;
            d->exponent -= fraction;
        } else {
            d->cut = true;
            d->exponent += !fraction && d->exponent < (1 << 20);
        }
    }
    return s;
}

/* [eE][+-]digits; stays where it is when that is not there */
static const char *scan_exponent(const char *s, decimal *d) {
    if (*s != 'e' && *s != 'E')
        return s;
    const char *at = s + 1;
    bool minus = *at == '-';
    at += minus || *at == '+';
    if (!digit(*at))
        return s;
    int e = 0;
    for (; digit(*at); at++)
        e = e < (1 << 20) ? e * 10 + (*at - '0') : e;
    d->cut |= e >= (1 << 20); /* perhaps not all of it: not for the fast path, whatever the digits make of it */
    d->exponent += minus ? -e : e;
    return at;
}

rt_scan_result rt_scan_f64(const char **p, double *out) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *s = *p;
    bool minus = *s == '-';
    s += minus || *s == '+';
    if (!digit(*s) && !(*s == '.' && digit(s[1])))
        return scan_word(p, s, minus, out);
    decimal d = {0};
    s = scan_digits(s, &d, false);
    if (*s == '.')
        s = scan_digits(s + 1, &d, true);
    s = scan_exponent(s, &d);
    if (!d.cut && d.digits <= (uint64_t)1 << 53 && d.exponent >= -22 && d.exponent <= 22) {
        double v = (double)d.digits;
        v = d.exponent < 0 ? v / tens[-d.exponent] : v * tens[d.exponent];
        *out = minus ? -v : v;
    } else {
        pthread_once(&c_locale_once, make_c_locale);
        double v = c_locale ? strtod_l(*p, NULL, c_locale) : strtod(*p, NULL);
        if (isinf(v)) /* digits, not the word inf */
            return RT_SCAN_BIG;
        *out = v;
    }
    *p = s;
    return RT_SCAN_OK;
}
