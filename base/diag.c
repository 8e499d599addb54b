/* Diagnostics: collecting and ordering them.  render.c shows them. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void base_diags_init(base_diags *d, base_arena *arena, const char *file_name, const char *source) {
    *d = (base_diags){.arena = arena, .file_name = file_name, .source = source};
}

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

base_diag *base_diags_add(base_diags *d, base_severity severity, const char *id, base_span span, const char *fmt, ...) {
    base_diag *item = base_arena_alloc(d->arena, sizeof *item);
    item->severity = severity;
    item->id = id;
    item->span = span;
    va_list ap;
    va_start(ap, fmt);
    item->text = format(d->arena, fmt, ap);
    va_end(ap);
    base_push(d->arena, d->items, d->n, d->cap, item);
    d->n_errors += severity == BASE_ERROR;
    return item;
}

void base_diag_label(base_diags *d, base_diag *item, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    item->label = format(d->arena, fmt, ap);
    va_end(ap);
}

static void add_note(base_diags *d, base_diag *item, base_diag_note note) {
    base_push(d->arena, item->notes, item->n_notes, item->cap_notes, note);
}

void base_diag_note_at(base_diags *d, base_diag *item, base_span span, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = format(d->arena, fmt, ap);
    va_end(ap);
    add_note(d, item, (base_diag_note){.span = span, .has_span = true, .text = text});
}

void base_diag_note_text(base_diags *d, base_diag *item, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = format(d->arena, fmt, ap);
    va_end(ap);
    add_note(d, item, (base_diag_note){.text = text});
}

static int compare_places(const base_diag *a, const base_diag *b) {
    if (a->span.begin != b->span.begin)
        return a->span.begin < b->span.begin ? -1 : 1;
    if (a->span.end != b->span.end)
        return a->span.end < b->span.end ? -1 : 1;
    return 0;
}

static bool same(const base_diag *a, const base_diag *b) {
    return compare_places(a, b) == 0 && a->severity == b->severity && strcmp(a->id, b->id) == 0 &&
           strcmp(a->text, b->text) == 0;
}

/* Binary insertion: stable, so errors at one place stay in the order they were found; n is small or sorted already. */
void base_diags_sort(base_diags *d) {
    for (size_t i = 1; i < d->n; i++) {
        base_diag *item = d->items[i];
        size_t lo = 0, hi = i;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (compare_places(d->items[mid], item) <= 0)
                lo = mid + 1;
            else
                hi = mid;
        }
        memmove(d->items + lo + 1, d->items + lo, (i - lo) * sizeof *d->items);
        d->items[lo] = item;
    }
    size_t kept = 0;
    for (size_t i = 0; i < d->n; i++) {
        bool repeat = false;
        for (size_t j = kept; j > 0 && compare_places(d->items[j - 1], d->items[i]) == 0 && !repeat; j--)
            repeat = same(d->items[j - 1], d->items[i]);
        if (!repeat)
            d->items[kept++] = d->items[i];
        else if (d->items[i]->severity == BASE_ERROR)
            d->n_errors--;
    }
    d->n = kept;
}
