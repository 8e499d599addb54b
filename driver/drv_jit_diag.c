/* Diagnostics as bytes and back.  What is kept is the list; the text with carets is made again, from the caller's own text
 * and under the caller's own file name.
 *
 * Bytes: a count, the diagnostics, the error line.  Numbers are 8 bytes, strings a length and their bytes; a missing
 * string has the length -1. */
#include "driver/drv_jit.h"

#include <string.h>

/* ---- writing ---- */
static void put_number(base_str *s, int64_t n) { base_str_add_n(s, (const char *)&n, sizeof n); }

static void put_text(base_str *s, const char *text) {
    put_number(s, text ? (int64_t)strlen(text) : -1);
    if (text)
        base_str_add(s, text);
}

void drv_diags_write(const drv_result *r, base_str *out) {
    const tigac_result *p = &r->pub;
    if (!p->n_diagnostics && !*p->error)
        return;
    put_number(out, (int64_t)p->n_diagnostics);
    for (size_t i = 0; i < p->n_diagnostics; i++) {
        const tigac_diagnostic *d = &p->diagnostics[i];
        int64_t numbers[] = {d->is_error, d->line, d->column, d->length, (int64_t)d->n_notes};
        base_str_add_n(out, (const char *)numbers, sizeof numbers);
        put_text(out, d->id);
        put_text(out, d->text);
        put_text(out, d->label);
        for (size_t k = 0; k < d->n_notes; k++) {
            put_number(out, d->notes[k].line);
            put_number(out, d->notes[k].column);
            put_text(out, d->notes[k].text);
        }
    }
    put_text(out, p->error);
}

/* ---- reading ---- */
typedef struct reader {
    const char *at;
    size_t left;
    bool ok, color;
    const drv_recipe *shown;
    const char *source; /* NUL-terminated */
    drv_result *r;
} reader;

static int64_t number(reader *in) {
    int64_t n = 0;
    if (in->left < sizeof n) {
        in->ok = false;
        return 0;
    }
    memcpy(&n, in->at, sizeof n);
    in->at += sizeof n;
    in->left -= sizeof n;
    return n;
}

static char *text(reader *in) {
    int64_t n = number(in);
    if (!in->ok || n < 0 || (uint64_t)n > in->left) {
        in->ok = in->ok && n == -1;
        return NULL;
    }
    char *s = base_arena_strndup(in->r->arena, in->at, (size_t)n);
    in->at += n;
    in->left -= (size_t)n;
    return s;
}

static uint32_t offset_of(const reader *in, int64_t line, int64_t column) {
    const char *p = in->source;
    for (int64_t l = 1; l < line; l++) {
        const char *end = strchr(p, '\n');
        if (!end)
            break;
        p = end + 1;
    }
    size_t at = (size_t)(p - in->source) + (size_t)(column - 1), n = strlen(in->source);
    return (uint32_t)(at < n ? at : n);
}

static void read_notes(reader *in, base_diags *d, base_diag *item, int64_t n) {
    for (int64_t k = 0; k < n && in->ok; k++) {
        int64_t line = number(in), column = number(in);
        const char *words = text(in);
        uint32_t at = line > 0 ? offset_of(in, line, column) : 0;
        if (!words)
            in->ok = false;
        else if (line > 0)
            base_diag_note_at(d, item, (base_span){at, at}, "%s", words);
        else
            base_diag_note_text(d, item, "%s", words);
    }
}

/* One without a place comes after all that have one. */
static void read_one(reader *in, base_diags *placed) {
    bool is_error = number(in) != 0;
    int64_t line = number(in), column = number(in), length = number(in), n_notes = number(in);
    const char *id = text(in), *words = text(in), *label = text(in);
    if (!in->ok || !id || !words || column < 0 || length < 0) {
        in->ok = false;
    } else if (line > 0) {
        uint32_t at = offset_of(in, line, column);
        base_span span = {at, at + (uint32_t)length};
        base_diag *item = base_diags_add(placed, is_error ? BASE_ERROR : BASE_WARNING, id, span, "%s", words);
        if (label)
            base_diag_label(placed, item, "%s", label);
        read_notes(in, placed, item, n_notes);
    } else {
        drv_result_add_diags(in->r, placed, in->color);
        placed->n = placed->n_errors = 0;
        drv_result_add_plain(in->r, is_error, id, in->shown->file_name, words, in->color);
    }
}

static void read_all(void *arg) {
    reader *in = arg;
    base_diags placed;
    in->source = base_arena_strndup(in->r->arena, in->shown->text, in->shown->n_text);
    base_diags_init(&placed, in->r->arena, base_arena_strdup(in->r->arena, in->shown->file_name), in->source);
    for (int64_t n = number(in); n > 0 && in->ok; n--)
        read_one(in, &placed);
    if (in->ok)
        drv_result_add_diags(in->r, &placed, in->color);
    const char *error = text(in);
    if (error)
        base_str_add(&in->r->error, error);
}

tigac_result *drv_diags_read(const char *bytes, size_t n, const drv_recipe *shown, bool color) {
    reader in = {.at = bytes, .left = n, .ok = true, .color = color, .shown = shown, .r = drv_result_new()};
    if (!in.r)
        return NULL;
    bool complete = base_arena_catch(in.r->arena, read_all, &in);
    if (!complete || !in.ok || in.left || in.r->rendered.failed || in.r->error.failed) {
        tigac_result_free(&in.r->pub);
        return NULL;
    }
    drv_result_publish(in.r, TIGAC_E_PROGRAM);
    return &in.r->pub;
}

/* ---- one line ---- */
void drv_diags_line(const tigac_result *r, base_str *out) {
    size_t first = 0, n_errors = 0;
    for (size_t i = 0; i < r->n_diagnostics; i++)
        if (r->diagnostics[i].is_error && !n_errors++)
            first = i;
    if (!r->n_diagnostics) {
        base_str_add(out, r->error);
        return;
    }
    const tigac_diagnostic *d = &r->diagnostics[first];
    base_str_add(out, d->file);
    if (d->line)
        base_str_addf(out, ":%lld:%lld", (long long)d->line, (long long)d->column);
    base_str_addf(out, ": %s[%s]: %s", d->is_error ? "error" : "warning", d->id, d->text);
    if (n_errors > 1)
        base_str_addf(out, " (and %zu more)", n_errors - 1);
}
