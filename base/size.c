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

/* One term of `factor * unknown + rest`.  The unknown is a term of one name. */
static bool add_to_line(const base_size_term *t, base_size_of *of, const void *user, base_size_term *unknown,
                        int64_t *factor, int64_t *rest) {
    base_size_term known = *t;
    known.n_names = 0;
    bool has = false;
    for (uint32_t i = 0; i < t->n_names; i++) {
        if (of(user, t->name[i], t->length[i]) >= 0) {
            known.name[known.n_names] = t->name[i];
            known.length[known.n_names++] = t->length[i];
            continue;
        }
        bool other = unknown->n_names &&
                     (unknown->length[0] != t->length[i] || memcmp(unknown->name[0], t->name[i], t->length[i]) != 0);
        if (has || other)
            return false;
        has = true;
        *unknown = (base_size_term){.factor = 1, .n_names = 1, .name = {t->name[i]}, .length = {t->length[i]}};
    }
    int64_t v, *to = has ? factor : rest;
    return term_value(&known, of, user, &v) && !__builtin_add_overflow(*to, v, to);
}

bool base_size_solve(const char *text, int64_t value, base_size_of *of, const void *user, base_size_term *unknown,
                     int64_t *out) {
    base_size_term t;
    int64_t factor = 0, rest = 0;
    *unknown = (base_size_term){.factor = 1};
    while (*text)
        if (!base_size_next(&text, &t) || !add_to_line(&t, of, user, unknown, &factor, &rest))
            return false;
    if (factor == 0 || __builtin_sub_overflow(value, rest, &value) || (factor == -1 && value == INT64_MIN))
        return false;
    *out = value / factor;
    return value % factor == 0 && *out >= 0;
}
