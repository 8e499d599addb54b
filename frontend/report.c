/* Reporting with ids from the table, interning of names, and "did you mean". */
#include "frontend/fe.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static char *format(base_arena *a, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *p = base_arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
    if (n > 0)
        vsnprintf(p, (size_t)n + 1, fmt, ap);
    return p;
}

base_diag *fe_vreport(fe_context *c, fe_error_id id, base_span span, const char *fmt, va_list ap) {
    const char *text_id = fe_error_at(id)->id;
    base_severity severity = text_id[0] == 'W' ? BASE_WARNING : BASE_ERROR;
    size_t n_errors = c->diags->n_errors;
    if ((severity == BASE_WARNING ? c->diags->n - n_errors : n_errors) >= FE_MAX_ERRORS) {
        c->silent = (base_diag){.severity = severity, .id = text_id};
        return &c->silent;
    }
    return base_diags_add(c->diags, severity, text_id, span, "%s", format(c->arena, fmt, ap));
}

base_diag *fe_report(fe_context *c, fe_error_id id, base_span span, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    base_diag *d = fe_vreport(c, id, span, fmt, ap);
    va_end(ap);
    return d;
}

void fe_label(fe_context *c, base_diag *d, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = format(c->arena, fmt, ap);
    va_end(ap);
    base_diag_label(c->diags, d, "%s", text);
}

void fe_note_at(fe_context *c, base_diag *d, base_span span, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = format(c->arena, fmt, ap);
    va_end(ap);
    base_diag_note_at(c->diags, d, span, "%s", text);
}

void fe_note(fe_context *c, base_diag *d, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = format(c->arena, fmt, ap);
    va_end(ap);
    base_diag_note_text(c->diags, d, "%s", text);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */
static void grow_names(fe_context *c) {
    size_t cap = c->cap_names ? c->cap_names * 2 : 256;
    fe_name **names = base_arena_new_array(c->arena, fe_name *, cap);
    for (size_t i = 0; i < c->cap_names; i++) {
        if (!c->names[i])
            continue;
        size_t at = c->names[i]->hash & (cap - 1);
        while (names[at])
            at = (at + 1) & (cap - 1);
        names[at] = c->names[i];
    }
    c->names = names;
    c->cap_names = cap;
}

fe_name *fe_intern(fe_context *c, const char *text, size_t n) {
    if (c->n_names * 2 >= c->cap_names)
        grow_names(c);
    uint64_t h = base_hash_name(text, n);
    size_t at = h & (c->cap_names - 1);
    for (; c->names[at]; at = (at + 1) & (c->cap_names - 1)) {
        fe_name *have = c->names[at];
        if (have->hash == h && strncmp(have->text, text, n) == 0 && !have->text[n])
            return have;
    }
    fe_name *fresh = base_arena_alloc(c->arena, sizeof *fresh);
    fresh->text = base_arena_strndup(c->arena, text, n);
    fresh->hash = h;
    c->names[at] = fresh;
    c->n_names++;
    return fresh;
}

/* ---- did you mean ------------------------------------------------------------------------------------------------ */
#define MAX_TRIED 500 /* keeps a file full of wrong names linear */

/* The same but for capitals and '_'. */
static bool same_letters(const char *a, const char *b) {
    for (;; a++, b++) {
        while (*a == '_')
            a++;
        while (*b == '_')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
    }
}

/* Two neighbours in the wrong order, and nothing else. */
static bool swapped(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a && *b && a[0] == b[1] && a[1] == b[0] && strcmp(a + 2, b + 2) == 0;
}

static bool begins(const char *text, size_t n, const char *with, size_t m) {
    return m >= 3 && n > m && n - m <= 4 && memcmp(text, with, m) == 0;
}

/* One letter in three may be wrong; a word that was cut short or went on is near too. */
void fe_nearest_try(fe_nearest *s, const char *candidate) {
    size_t n = strlen(s->wanted), m = strlen(candidate);
    size_t gap = n > m ? n - m : m - n;
    if (s->n_tried >= MAX_TRIED || n > 40 || gap > 4 || strcmp(s->wanted, candidate) == 0)
        return;
    s->n_tried++;
    size_t distance = base_edit_distance(s->wanted, candidate);
    size_t longest = n > m ? n : m, limit = longest <= 5 ? 1 : longest / 3;
    if (swapped(s->wanted, candidate) || begins(s->wanted, n, candidate, m) || begins(candidate, m, s->wanted, n))
        distance = 1;
    if (same_letters(s->wanted, candidate))
        distance = 0;
    if (distance > limit || distance >= longest)
        return;
    if (!s->best || distance < s->distance) {
        s->best = candidate;
        s->distance = distance;
    }
}

const char *fe_nearest_get(const fe_nearest *s) { return s->best; }

/* ---- words of others --------------------------------------------------------------------------------------------- */
typedef struct word {
    fe_word_at where;
    const char *text, *advice;
} word;

static const word WORDS[] = {
#define FE_WORD(WHERE, text, advice) {FE_WORD_##WHERE, text, advice},
#include "frontend/fe_words.def"
#undef FE_WORD
};

const char *fe_word_advice(fe_word_at where, const char *text) {
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (WORDS[i].where == where && strcasecmp(WORDS[i].text, text) == 0)
            return WORDS[i].advice;
    return NULL;
}

void fe_label_word(fe_context *c, base_diag *d, fe_word_at where, const fe_nearest *near) {
    const char *advice = fe_word_advice(where, near->wanted);
    if (advice)
        fe_label(c, d, "%s", advice);
    else if (fe_nearest_get(near))
        fe_label(c, d, "did you mean '%s'?", fe_nearest_get(near));
}
