/* A growing byte string, numbers as the shortest text that reads back, and edit distance.
 * Numbers are written and read with '.' whatever the locale of the process is. */
#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void base_str_fini(base_str *s) {
    base_free(s->data);
    *s = (base_str){0};
}

/* Room for n more bytes and the NUL; false (and failed) when there is no memory. */
static bool reserve(base_str *s, size_t n) {
    if (s->failed)
        return false;
    if (n >= SIZE_MAX - s->len) {
        s->failed = true;
        return false;
    }
    size_t need = s->len + n + 1;
    if (need <= s->cap)
        return true;
    size_t cap = s->cap ? s->cap : 64;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *data = base_realloc(s->data, cap);
    if (!data) {
        s->failed = true;
        return false;
    }
    if (!s->data)
        data[0] = 0;
    s->data = data;
    s->cap = cap;
    return true;
}

void base_str_add_n(base_str *s, const char *bytes, size_t n) {
    if (!reserve(s, n))
        return;
    if (n)
        memcpy(s->data + s->len, bytes, n);
    s->len += n;
    s->data[s->len] = 0;
}

void base_str_add(base_str *s, const char *text) { base_str_add_n(s, text, strlen(text)); }

void base_str_vaddf(base_str *s, const char *fmt, va_list ap) {
    char small[256];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    if (n >= 0 && (size_t)n < sizeof small) {
        base_str_add_n(s, small, (size_t)n);
    } else if (n < 0) {
        s->failed = true;
    } else if (reserve(s, (size_t)n)) {
        vsnprintf(s->data + s->len, (size_t)n + 1, fmt, again);
        s->len += (size_t)n;
    }
    va_end(again);
}

void base_str_addf(base_str *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    base_str_vaddf(s, fmt, ap);
    va_end(ap);
}

const char *base_str_text(const base_str *s) { return s->data ? s->data : ""; }

/* The decimal point of the locale, which printf writes and strtod wants. */
static const char *locale_point(void) {
    const char *p = localeconv()->decimal_point;
    return p && *p ? p : ".";
}

static void add_number(base_str *s, const char *text) {
    const char *point = locale_point();
    const char *at = strcmp(point, ".") != 0 ? strstr(text, point) : NULL;
    if (!at) {
        base_str_add(s, text);
        return;
    }
    base_str_add_n(s, text, (size_t)(at - text));
    base_str_add(s, ".");
    base_str_add(s, at + strlen(point));
}

static bool add_special(base_str *s, double v) {
    if (isnan(v))
        base_str_add(s, "nan");
    else if (isinf(v))
        base_str_add(s, v < 0 ? "-inf" : "inf");
    return isnan(v) || isinf(v);
}

void base_str_add_f64(base_str *s, double v) {
    char buf[64];
    if (add_special(s, v))
        return;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, v);
        if (strtod(buf, NULL) == v)
            break;
    }
    add_number(s, buf);
}

void base_str_add_f32(base_str *s, float v) {
    char buf[64];
    if (add_special(s, (double)v))
        return;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, (double)v);
        if (strtof(buf, NULL) == v)
            break;
    }
    add_number(s, buf);
}

/* Copies text with the locale's point into buf; NULL when it does not fit or holds what no number holds. */
static char *localized(const char *text, size_t n, char *buf, size_t cap) {
    const char *point = locale_point();
    size_t k = 0, point_n = strlen(point);
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == 0 || c == ' ' || c == '\t' || c == '\n' || c == '\r' || k + point_n + 1 >= cap)
            return NULL;
        if (c != '.') {
            buf[k++] = c;
            continue;
        }
        memcpy(buf + k, point, point_n);
        k += point_n;
    }
    buf[k] = 0;
    return k ? buf : NULL;
}

bool base_parse_f64(const char *text, size_t n, double *out) {
    char buf[512], *end, *p = localized(text, n, buf, sizeof buf);
    if (!p)
        return false;
    *out = strtod(p, &end);
    return *end == 0;
}

bool base_parse_f32(const char *text, size_t n, float *out) {
    char buf[512], *end, *p = localized(text, n, buf, sizeof buf);
    if (!p)
        return false;
    *out = strtof(p, &end);
    return *end == 0;
}

/* Levenshtein over the first 63 bytes of each: enough for names. */
#if defined(__clang__) /* comparing letters teaches a fuzzer nothing, and it does little else then */
__attribute__((no_sanitize("coverage")))
#endif
size_t
base_edit_distance(const char *a, const char *b) {
    size_t na = strnlen(a, 63), nb = strnlen(b, 63), row[64];
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            size_t insert = row[j] + 1, drop = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = replace < insert ? replace : insert;
            if (drop < row[j])
                row[j] = drop;
        }
    }
    return row[nb];
}
