/* Dimensions that are computed from others.
 *
 * Such a dimension is a symbol whose name says how: "D+K", "2*F-1".  A sum has one text, so two dimensions that are
 * always equal are one symbol: names in a product and products in a sum are sorted, a number behind them, and what is
 * added stands before what is taken away. */
#include "ir/ir.h"

#include <string.h>

bool ir_sym_is_computed(const char *name) { return base_size_is_computed(name); }

/* ---- products ---- */
static int compare_names(const base_size_term *a, uint32_t i, const base_size_term *b, uint32_t k) {
    size_t n = a->length[i] < b->length[k] ? a->length[i] : b->length[k];
    int c = memcmp(a->name[i], b->name[k], n);
    return c ? c : (a->length[i] > b->length[k]) - (a->length[i] < b->length[k]);
}

/* By names; the number, which has none, comes last. */
static int compare_terms(const base_size_term *a, const base_size_term *b) {
    if (!a->n_names || !b->n_names)
        return (a->n_names == 0) - (b->n_names == 0);
    for (uint32_t i = 0; i < a->n_names && i < b->n_names; i++) {
        int c = compare_names(a, i, b, i);
        if (c)
            return c;
    }
    return (a->n_names > b->n_names) - (a->n_names < b->n_names);
}

static void sort_names(base_size_term *t) {
    for (uint32_t i = 1; i < t->n_names; i++)
        for (uint32_t k = i; k > 0 && compare_names(t, k - 1, t, k) > 0; k--) {
            const char *name = t->name[k];
            size_t length = t->length[k];
            t->name[k] = t->name[k - 1];
            t->length[k] = t->length[k - 1];
            t->name[k - 1] = name;
            t->length[k - 1] = length;
        }
}

/* ---- sums ---- */
static bool add_term(ir_sum *s, const base_size_term *t) {
    uint32_t at = 0;
    while (at < s->n && compare_terms(&s->term[at], t) < 0)
        at++;
    if (at < s->n && compare_terms(&s->term[at], t) == 0) {
        if (__builtin_add_overflow(s->term[at].factor, t->factor, &s->term[at].factor))
            return false;
        if (s->term[at].factor == 0) {
            memmove(&s->term[at], &s->term[at + 1], sizeof *t * (s->n - at - 1));
            s->n--;
        }
        return true;
    }
    if (t->factor == 0)
        return true;
    if (s->n == IR_SUM_TERMS)
        return false;
    memmove(&s->term[at + 1], &s->term[at], sizeof *t * (s->n - at));
    s->term[at] = *t;
    s->n++;
    return true;
}

ir_sum ir_sum_number(int64_t n) {
    ir_sum s = {0};
    add_term(&s, &(base_size_term){.factor = n});
    return s;
}

static bool parse(const char *text, ir_sum *out) {
    base_size_term t;
    *out = (ir_sum){0};
    while (*text) {
        if (!base_size_next(&text, &t))
            return false;
        sort_names(&t);
        if (!add_term(out, &t))
            return false;
    }
    return true;
}

bool ir_sum_of(const ir_func *f, ir_dim d, ir_sum *out) {
    *out = ir_sum_number(ir_dim_is_sym(d) ? 0 : d);
    return !ir_dim_is_sym(d) || parse(f->syms[ir_dim_sym_index(d)], out);
}

static bool add_all(ir_sum *to, const ir_sum *from, int64_t factor) {
    for (uint32_t i = 0; i < from->n; i++) {
        base_size_term t = from->term[i];
        if (__builtin_mul_overflow(t.factor, factor, &t.factor) || !add_term(to, &t))
            return false;
    }
    return true;
}

static bool multiply_terms(const base_size_term *a, const base_size_term *b, base_size_term *out) {
    *out = *a;
    if (a->n_names + b->n_names > BASE_SIZE_NAMES || __builtin_mul_overflow(a->factor, b->factor, &out->factor))
        return false;
    for (uint32_t i = 0; i < b->n_names; i++) {
        out->name[out->n_names] = b->name[i];
        out->length[out->n_names++] = b->length[i];
    }
    sort_names(out);
    return true;
}

static bool multiply(const ir_sum *a, const ir_sum *b, ir_sum *out) {
    ir_sum s = {0};
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++) {
            base_size_term t;
            if (!multiply_terms(&a->term[i], &b->term[k], &t) || !add_term(&s, &t))
                return false;
        }
    *out = s;
    return true;
}

bool ir_sum_calc(ir_opcode code, const ir_sum *a, const ir_sum *b, ir_sum *out) {
    if (code == IR_MUL)
        return multiply(a, b, out);
    ir_sum s = *a;
    bool ok = add_all(&s, b, code == IR_SUB ? -1 : 1);
    *out = s;
    return ok;
}

bool ir_sum_is_number(const ir_sum *s, int64_t *out) {
    *out = s->n ? s->term[0].factor : 0;
    return !s->n || !s->term[0].n_names;
}

/* ---- as text ---- */
static void add_text(base_str *out, const base_size_term *t) {
    uint64_t factor = t->factor < 0 ? -(uint64_t)t->factor : (uint64_t)t->factor;
    if (t->factor < 0)
        base_str_add(out, "-");
    else if (out->len)
        base_str_add(out, "+");
    if (factor != 1 || !t->n_names)
        base_str_addf(out, "%llu", (unsigned long long)factor);
    for (uint32_t i = 0; i < t->n_names; i++) {
        base_str_add(out, i || factor != 1 ? "*" : "");
        base_str_add_n(out, t->name[i], t->length[i]);
    }
}

static void sum_text(const ir_sum *s, base_str *out) {
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < s->n; i++)
            if ((s->term[i].factor < 0) == pass)
                add_text(out, &s->term[i]);
}

/* Less than 0 whatever the sizes are, or at most 0: nothing in it is added. */
static bool is_hopeless(const ir_sum *s) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->term[i].factor > 0)
            return false;
    return s->n > 0;
}

/* false: no dimension.  *name: what the symbol is called, when it is one. */
static bool dim_or_name(const ir_sum *s, ir_dim *out, base_str *name) {
    if (is_hopeless(s))
        return false;
    if (ir_sum_is_number(s, out))
        return true;
    sum_text(s, name);
    *out = -1;
    return !name->failed;
}

bool ir_sum_find(const ir_func *f, const ir_sum *s, ir_dim *out) {
    base_str name = {0};
    uint32_t sym = 0;
    bool ok = dim_or_name(s, out, &name) && (*out >= 0 || ir_sym_find(f, base_str_text(&name), &sym));
    *out = *out < 0 ? ir_dim_sym(sym) : *out;
    base_str_fini(&name);
    return ok;
}

bool ir_sum_dim(ir_module *m, ir_func *f, const ir_sum *s, ir_dim *out) {
    base_str name = {0};
    bool ok = dim_or_name(s, out, &name);
    if (ok && *out < 0)
        *out = ir_dim_sym(ir_sym(m, f, base_str_text(&name)));
    base_str_fini(&name);
    return ok;
}

bool ir_dim_calc(ir_module *m, ir_func *f, ir_opcode code, ir_dim a, ir_dim b, ir_dim *out) {
    ir_sum x, y;
    return ir_sum_of(f, a, &x) && ir_sum_of(f, b, &y) && ir_sum_calc(code, &x, &y, &x) && ir_sum_dim(m, f, &x, out);
}

/* ---- in terms of a caller ---- */
static bool symbol_of(const ir_func *f, const base_size_term *t, uint32_t i, uint32_t *out) {
    for (size_t k = 0; k < f->n_syms; k++)
        if (strlen(f->syms[k]) == t->length[i] && !memcmp(f->syms[k], t->name[i], t->length[i])) {
            *out = (uint32_t)k;
            return true;
        }
    return false;
}

/* One product of the callee's symbols without number `skip` of its names. */
static bool product_of(const ir_func *caller, const ir_func *callee, const base_size_term *t, uint32_t skip,
                       const ir_dim *dims, ir_sum *out) {
    *out = ir_sum_number(t->factor);
    for (uint32_t k = 0; k < t->n_names; k++) {
        uint32_t at;
        ir_sum factor;
        if (k != skip &&
            (!symbol_of(callee, t, k, &at) || !ir_sum_of(caller, dims[at], &factor) || !multiply(out, &factor, out)))
            return false;
    }
    return true;
}

bool ir_sum_translate(const ir_func *caller, const ir_func *callee, uint32_t sym, const ir_dim *dims, ir_sum *out) {
    ir_sum formal;
    *out = (ir_sum){0};
    if (!parse(callee->syms[sym], &formal))
        return false;
    for (uint32_t i = 0; i < formal.n; i++) {
        ir_sum product;
        if (!product_of(caller, callee, &formal.term[i], UINT32_MAX, dims, &product) || !add_all(out, &product, 1))
            return false;
    }
    return true;
}

/* a / b for a product b; false: there is a rest. */
static bool divide_term(const base_size_term *a, const base_size_term *b, base_size_term *out) {
    *out = (base_size_term){.factor = b->factor ? a->factor / b->factor : 0};
    uint32_t at = 0;
    for (uint32_t i = 0; i < a->n_names; i++) {
        if (at < b->n_names && compare_names(a, i, b, at) == 0) {
            at++;
            continue;
        }
        out->name[out->n_names] = a->name[i];
        out->length[out->n_names++] = a->length[i];
    }
    return b->factor && a->factor % b->factor == 0 && at == b->n_names;
}

/* Number of the one name in a term that is not known; UINT32_MAX: none.  false: it is not the only one. */
static bool unknown_in(const ir_func *callee, const base_size_term *t, const bool *known, uint32_t *unknown,
                       uint32_t *at) {
    *at = UINT32_MAX;
    for (uint32_t k = 0; k < t->n_names; k++) {
        uint32_t sym;
        if (!symbol_of(callee, t, k, &sym))
            return false;
        if (known[sym])
            continue;
        if (*at != UINT32_MAX || (*unknown != UINT32_MAX && *unknown != sym))
            return false;
        *at = k;
        *unknown = sym;
    }
    return true;
}

bool ir_sum_solve(const ir_func *caller, const ir_func *callee, uint32_t sym, const ir_dim *dims, const bool *known,
                  ir_dim shown, uint32_t *unknown, ir_sum *out) {
    ir_sum formal, factor = {0}, rest;
    *unknown = UINT32_MAX;
    if (!parse(callee->syms[sym], &formal) || !ir_sum_of(caller, shown, &rest))
        return false;
    for (uint32_t i = 0; i < formal.n; i++) {
        ir_sum product;
        uint32_t at;
        if (!unknown_in(callee, &formal.term[i], known, unknown, &at) ||
            !product_of(caller, callee, &formal.term[i], at, dims, &product) ||
            !(at == UINT32_MAX ? add_all(&rest, &product, -1) : add_all(&factor, &product, 1)))
            return false;
    }
    *out = (ir_sum){0};
    for (uint32_t i = 0; i < rest.n; i++) {
        base_size_term t;
        if (factor.n != 1 || !divide_term(&rest.term[i], &factor.term[0], &t) || !add_term(out, &t))
            return false;
    }
    return factor.n == 1 && *unknown != UINT32_MAX;
}

/* ---- of a function ---- */
bool ir_sum_is_canonical(const ir_func *f, uint32_t sym) {
    ir_sum s;
    uint32_t at;
    base_str name = {0};
    bool ok = parse(f->syms[sym], &s);
    for (uint32_t i = 0; ok && i < s.n; i++)
        for (uint32_t k = 0; ok && k < s.term[i].n_names; k++)
            ok = symbol_of(f, &s.term[i], k, &at);
    sum_text(&s, &name);
    ok = ok && strcmp(base_str_text(&name), f->syms[sym]) == 0;
    base_str_fini(&name);
    return ok;
}

typedef struct sizes {
    const ir_func *f;
    const int64_t *dims;
} sizes;

static int64_t size_of(const void *user, const char *name, size_t length) {
    const sizes *s = user;
    uint32_t at;
    base_size_term t = {.n_names = 1, .name = {name}, .length = {length}};
    return symbol_of(s->f, &t, 0, &at) ? s->dims[at] : -1;
}

bool ir_compute_dims(const ir_func *f, int64_t *dims) {
    bool ok = true;
    for (size_t i = 0; i < f->n_syms; i++)
        if (ir_sym_is_computed(f->syms[i]))
            ok &= base_size_eval(f->syms[i], size_of, &(sizes){f, dims}, &dims[i]) && dims[i] >= 0;
    return ok;
}
