/* Diagnostics and outputs in the caller's form.  No decisions here. */
#include "driver/drv_result.h"

#include <string.h>

drv_result *drv_result_new(void) {
    drv_result *r = base_alloc_zero(sizeof *r);
    if (!r)
        return NULL;
    r->arena = base_arena_new();
    if (r->arena)
        return r;
    base_free(r);
    return NULL;
}

void tigac_result_free(tigac_result *pub) {
    if (!pub)
        return;
    drv_result *r = (drv_result *)pub;
    for (int i = 0; i < TIGAC_OUTPUTS; i++)
        base_str_fini(&r->outputs[i]);
    base_str_fini(&r->rendered);
    base_str_fini(&r->error);
    base_str_fini(&r->dumps);
    base_arena_free(r->arena);
    base_free(r);
}

static tigac_diagnostic *grow(drv_result *r, size_t more) {
    size_t old = r->pub.n_diagnostics;
    tigac_diagnostic *all = base_arena_new_array(r->arena, tigac_diagnostic, old + more);
    if (old)
        memcpy(all, r->pub.diagnostics, sizeof *all * old);
    r->pub.diagnostics = all;
    r->pub.n_diagnostics = old + more;
    return all + old;
}

static void place(const char *source, base_span span, int64_t *line, int64_t *column) {
    uint32_t l, c;
    base_span_line_col(source, span.begin, &l, &c);
    *line = l;
    *column = c;
}

static const tigac_note *copy_notes(drv_result *r, const base_diags *d, const base_diag *item) {
    tigac_note *notes = base_arena_new_array(r->arena, tigac_note, item->n_notes);
    for (size_t i = 0; i < item->n_notes; i++) {
        if (item->notes[i].has_span)
            place(d->source, item->notes[i].span, &notes[i].line, &notes[i].column);
        notes[i].text = item->notes[i].text;
    }
    return notes;
}

void drv_result_add_diags(drv_result *r, base_diags *d, bool color) {
    base_diags_sort(d);
    if (!d->n)
        return;
    tigac_diagnostic *out = grow(r, d->n);
    for (size_t i = 0; i < d->n; i++) {
        const base_diag *item = d->items[i];
        out[i].is_error = item->severity == BASE_ERROR;
        out[i].id = item->id;
        out[i].file = d->file_name;
        place(d->source, item->span, &out[i].line, &out[i].column);
        out[i].length = item->span.end - item->span.begin;
        out[i].text = item->text;
        out[i].label = item->label;
        out[i].notes = copy_notes(r, d, item);
        out[i].n_notes = item->n_notes;
    }
    base_diags_render(d, color, &r->rendered);
}

void drv_result_add_plain(drv_result *r, bool is_error, const char *id, const char *file, const char *text,
                          bool color) {
    tigac_diagnostic *out = grow(r, 1);
    out->is_error = is_error;
    out->id = id;
    out->file = file;
    out->text = text;
    const char *word = is_error ? "error" : "warning";
    const char *on = !color ? "" : is_error ? "\033[1;31m" : "\033[1;35m", *off = color ? "\033[0m" : "";
    base_str_addf(&r->rendered, "%s: %s%s[%s]%s: %s\n", file, on, word, id, off, text);
}

void drv_result_publish(drv_result *r, tigac_status status) {
    for (int i = 0; i < TIGAC_OUTPUTS && status == TIGAC_OK; i++) {
        r->pub.outputs[i].bytes = r->outputs[i].data;
        r->pub.outputs[i].n_bytes = r->outputs[i].len;
    }
    r->pub.rendered = base_str_text(&r->rendered);
    r->pub.error = base_str_text(&r->error);
    r->pub.dumps = base_str_text(&r->dumps);
}
