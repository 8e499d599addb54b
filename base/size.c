/* Sizes that are computed from others, written as sums of products without blanks: "2*D*K+F-3". */
#include "base/base.h"

#include <string.h>

bool base_size_is_computed(const char *text) { return strpbrk(text, "+-*") != NULL; }

static bool take_number(const char **at, int64_t *out) {
    int64_t v = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, **at - '0', &v))
            return false;
    return !__builtin_mul_overflow(*out, v, out);
}

static bool take_factor(const char **at, base_size_term *out) {
    if (**at >= '0' && **at <= '9')
        return take_number(at, &out->factor);
    size_t n = strcspn(*at, "+-*");
    if (n == 0 || out->n_names == BASE_SIZE_NAMES)
        return false;
    out->name[out->n_names] = *at;
    out->length[out->n_names++] = n;
    *at += n;
    return true;
}

bool base_size_next(const char **at, base_size_term *out) {
    *out = (base_size_term){.factor = **at == '-' ? -1 : 1};
    *at += **at == '-' || **at == '+';
    for (;;) {
        if (!take_factor(at, out))
            return false;
        if (**at != '*')
            return true;
        ++*at;
    }
}

static bool term_value(const base_size_term *t, base_size_of *of, const void *user, int64_t *out) {
    *out = t->factor;
    for (uint32_t i = 0; i < t->n_names; i++) {
        int64_t v = of(user, t->name[i], t->length[i]);
        if (v < 0 || __builtin_mul_overflow(*out, v, out))
            return false;
    }
    return true;
}

bool base_size_eval(const char *text, base_size_of *of, const void *user, int64_t *out) {
    base_size_term t;
    int64_t v;
    *out = 0;
    while (*text)
        if (!base_size_next(&text, &t) || !term_value(&t, of, user, &v) || __builtin_add_overflow(*out, v, out))
            return false;
    return true;
}
