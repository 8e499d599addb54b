/* Arguments of built-in functions, reducers and user functions: by position, then by name. */
#include "frontend/fe.h"

#include <string.h>

/* One word of "x lo hi a?"; the rest of the list is returned. */
typedef struct word {
    const char *text;
    size_t n;
    bool optional;
} word;

static const char *next_word(const char *list, word *out) {
    while (*list == ' ')
        list++;
    out->text = list;
    while (*list && *list != ' ')
        list++;
    out->n = (size_t)(list - out->text);
    out->optional = out->n && list[-1] == '?';
    out->n -= out->optional;
    return list;
}

static size_t slot_of(const char *params, const char *name, word *w) {
    const char *rest = params;
    for (size_t i = 0;; i++) {
        rest = next_word(rest, w);
        if (!w->n)
            return SIZE_MAX;
        if (strlen(name) == w->n && memcmp(name, w->text, w->n) == 0)
            return i;
    }
}

/* "x, lo, hi" or "x, a = ..." for messages */
static const char *usage(fe_lower *l, const char *params) {
    const char *text = "", *rest = params;
    word w;
    for (;;) {
        rest = next_word(rest, &w);
        if (!w.n)
            return text;
        text = base_arena_printf(l->c->arena, "%s%s%.*s%s", text, *text ? ", " : "", (int)w.n, w.text,
                                 w.optional ? " = ..." : "");
    }
}

static void bad_args(fe_lower *l, const fe_expr *e, base_span span, const char *params, const char *what) {
    base_diag *d = fe_report(l->c, FE_E0209, span, "%s", what);
    fe_label(l->c, d, "%s%s(%s)", e->kind == FE_EXPR_REDUCE ? "reduce " : "", e->name->text, usage(l, params));
}

static bool place(fe_lower *l, const fe_expr *e, const char *params, const fe_expr **slots, size_t n) {
    bool named = false;
    for (size_t i = 0; i < e->n_args; i++) {
        const fe_arg *a = &e->args[i];
        size_t slot = i;
        word w;
        if (a->name) {
            named = true;
            slot = slot_of(params, a->name->text, &w);
            if (slot == SIZE_MAX) {
                bad_args(l, e, a->name_span, params,
                         base_arena_printf(l->c->arena, "'%s' has no parameter '%s'", e->name->text, a->name->text));
                return false;
            }
        } else if (named || slot >= n) {
            bad_args(l, e, a->value->span, params,
                     named ? "an argument by position after one by name"
                           : base_arena_printf(l->c->arena, "too many arguments for '%s'", e->name->text));
            return false;
        }
        if (slots[slot]) {
            bad_args(l, e, a->value->span, params, "this parameter was given already");
            return false;
        }
        slots[slot] = a->value;
    }
    return true;
}

bool fe_match_args(fe_lower *l, const fe_expr *e, const char *params, const fe_expr **slots) {
    word w;
    size_t n = 0;
    for (const char *rest = next_word(params, &w); w.n; rest = next_word(rest, &w))
        slots[n++] = NULL;
    if (!place(l, e, params, slots, n))
        return false;
    const char *rest = params;
    for (size_t i = 0; i < n; i++) {
        rest = next_word(rest, &w);
        if (!slots[i] && !w.optional) {
            bad_args(l, e, e->span, params,
                     base_arena_printf(l->c->arena, "'%s' needs the argument '%.*s'", e->name->text, (int)w.n, w.text));
            return false;
        }
    }
    return true;
}
