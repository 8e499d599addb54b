/* Diagnostics as text: place, id, the source line with a gutter, carets, notes.
 *
 * Columns count code points from 1.  In the shown line a tab goes to the next multiple of 4, control characters and
 * broken UTF-8 become '?', and a very long line is cut to a window around the carets. */
#include "base/base.h"

#include <string.h>

#define MAX_SHOWN 20
#define TAB 4
#define WINDOW 140 /* columns of a source line that are shown */

#define RED "\033[1;31m"
#define YELLOW "\033[1;35m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

void base_span_line_col(const char *source, uint32_t offset, uint32_t *line, uint32_t *col) {
    *line = *col = 1;
    for (uint32_t i = 0; i < offset && source[i]; i++) {
        if (source[i] == '\n') {
            ++*line;
            *col = 1;
        } else if (!is_continuation(source[i])) {
            ++*col;
        }
    }
}

/* Bytes of the code point at s (before end), or 0 when it is not UTF-8 or not printable. */
static size_t printable(const char *s, const char *end) {
    unsigned char c = (unsigned char)*s;
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (c < 0x20 || c == 0x7f || n == 0 || (size_t)(end - s) < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (!is_continuation(s[i]))
            return 0;
    if ((c == 0xe0 && (unsigned char)s[1] < 0xa0) || (c == 0xf0 && (unsigned char)s[1] < 0x90) ||
        (c == 0xed && (unsigned char)s[1] >= 0xa0) || (c == 0xf4 && (unsigned char)s[1] >= 0x90))
        return 0;                                 /* overlong, surrogates, beyond U+10FFFF */
    if (c == 0xc2 && (unsigned char)s[1] < 0xa0)
        return 0;                                 /* C1 controls move a terminal's cursor */
    return n;
}

/* One line of the source laid out in columns; from and to are the columns of the carets. */
typedef struct layout {
    base_str text; /* columns first .. of the window */
    size_t from, to;
} layout;

static size_t width_of(const char *s, const char *end, size_t column, size_t *bytes) {
    *bytes = 1;
    if (*s == '\t')
        return TAB - column % TAB;
    size_t n = printable(s, end);
    *bytes = n ? n : 1;
    return 1;
}

static size_t column_of(const char *begin, const char *end, const char *at) {
    size_t column = 0, bytes;
    for (const char *s = begin; s < end && s < at; s += bytes)
        column += width_of(s, end, column, &bytes);
    return column;
}

static void lay_out(layout *l, const char *begin, const char *end, const char *from, const char *to) {
    l->from = column_of(begin, end, from);
    l->to = column_of(begin, end, to);
    if (l->to <= l->from)
        l->to = l->from + 1;
    size_t total = column_of(begin, end, end), first = 0;
    if (total > WINDOW && l->from > WINDOW / 2)
        first = l->from - WINDOW / 2;
    if (first)
        base_str_add(&l->text, "...");
    size_t column = 0, bytes, last = first + WINDOW;
    for (const char *s = begin; s < end && column < last; s += bytes) {
        size_t width = width_of(s, end, column, &bytes);
        if (column >= first) {
            if (*s == '\t')
                base_str_add_n(&l->text, "    ", width);
            else if (printable(s, end))
                base_str_add_n(&l->text, s, bytes);
            else
                base_str_add(&l->text, "?");
        }
        column += width;
    }
    if (column < total)
        base_str_add(&l->text, "...");
    size_t shift = first ? first - 3 : 0; /* the dots take three columns */
    if (l->to > last + 1)
        l->to = last + 1;
    l->from -= shift;
    l->to -= shift;
}

static void render_source(const base_diags *d, const base_diag *item, bool color, base_str *out) {
    size_t length = strlen(d->source);
    size_t at = item->span.begin < length ? item->span.begin : length;
    size_t stop = item->span.end < length ? item->span.end : length;
    const char *begin = d->source + at, *end = d->source + at, *from = d->source + at;
    while (begin > d->source && begin[-1] != '\n')
        begin--;
    while (*end && *end != '\n')
        end++;
    if (end > begin && end[-1] == '\r')
        end--;
    uint32_t line, col;
    base_span_line_col(d->source, (uint32_t)at, &line, &col);
    layout l = {0};
    const char *to = d->source + stop;
    lay_out(&l, begin, end, from, to < end ? to : end);
    int gutter = 4;
    for (uint32_t n = line; n > 9999; n /= 10)
        gutter++;
    base_str_addf(out, "%*u | %s\n%*s | ", gutter, line, base_str_text(&l.text), gutter, "");
    for (size_t i = 0; i < l.from; i++)
        base_str_add(out, " ");
    base_str_add(out, color ? (item->severity == BASE_ERROR ? RED : YELLOW) : "");
    for (size_t i = l.from; i < l.to; i++)
        base_str_add(out, "^");
    if (item->label)
        base_str_addf(out, " %s", item->label);
    base_str_addf(out, "%s\n", color ? PLAIN : "");
    out->failed |= l.text.failed;
    base_str_fini(&l.text);
}

static void render_place(const base_diags *d, base_span span, base_str *out) {
    uint32_t line, col;
    base_span_line_col(d->source, span.begin, &line, &col);
    base_str_addf(out, "%s:%u:%u", d->file_name, line, col);
}

static void render_one(const base_diags *d, const base_diag *item, bool color, base_str *out) {
    const char *word = item->severity == BASE_ERROR ? "error" : "warning";
    const char *paint = item->severity == BASE_ERROR ? RED : YELLOW;
    base_str_add(out, color ? BOLD : "");
    render_place(d, item->span, out);
    base_str_addf(out, ": %s%s[%s]:%s %s%s\n", color ? paint : "", word, item->id, color ? PLAIN BOLD : "", item->text,
                  color ? PLAIN : "");
    render_source(d, item, color, out);
    for (size_t i = 0; i < item->n_notes; i++) {
        base_str_addf(out, "   %snote:%s %s", color ? BOLD : "", color ? PLAIN : "", item->notes[i].text);
        if (item->notes[i].has_span) {
            base_str_add(out, " (");
            render_place(d, item->notes[i].span, out);
            base_str_add(out, ")");
        }
        base_str_add(out, "\n");
    }
}

void base_diags_render(const base_diags *d, bool color, base_str *out) {
    size_t shown[2] = {0, 0}, hidden = 0;
    for (size_t i = 0; i < d->n; i++) {
        size_t *n = &shown[d->items[i]->severity == BASE_WARNING];
        if (*n == MAX_SHOWN) {
            hidden++;
            continue;
        }
        ++*n;
        render_one(d, d->items[i], color, out);
    }
    if (hidden)
        base_str_addf(out, "... and %zu more\n", hidden);
}
