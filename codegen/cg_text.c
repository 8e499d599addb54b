/* Lines with indentation into a base_str; string literals and comments that are safe whatever the text holds. */
#include "codegen/cg.h"

#include <string.h>

static void indent(cg_text *w) {
    for (int i = 0; i < w->indent; ++i)
        base_str_add(w->out, "    ");
}

void cg_line(cg_text *w, const char *fmt, ...) {
    indent(w);
    va_list ap;
    va_start(ap, fmt);
    base_str_vaddf(w->out, fmt, ap);
    va_end(ap);
    base_str_add(w->out, "\n");
}

void cg_blank(cg_text *w) { base_str_add(w->out, "\n"); }

void cg_open(cg_text *w, const char *fmt, ...) {
    indent(w);
    size_t before = w->out->len;
    va_list ap;
    va_start(ap, fmt);
    base_str_vaddf(w->out, fmt, ap);
    va_end(ap);
    base_str_add(w->out, w->out->len > before ? " {\n" : "{\n");
    w->indent++;
}

void cg_close(cg_text *w, const char *after) {
    w->indent--;
    indent(w);
    base_str_addf(w->out, "}%s\n", after);
}

void cg_raw(cg_text *w, const char *text) { base_str_add(w->out, text); }

/* '?' is escaped too: "??/" would be a trigraph under -std=c11. */
static void add_escaped(base_str *out, unsigned char c) {
    if (c == '\n')
        base_str_add(out, "\\n");
    else if (c == '\t')
        base_str_add(out, "\\t");
    else if (c == '"' || c == '\\' || c == '?')
        base_str_addf(out, "\\%c", c);
    else if (c < 32 || c == 127)
        base_str_addf(out, "\\%03o", c);
    else
        base_str_add_n(out, (const char *)&c, 1);
}

void cg_string_literal(cg_text *w, const char *text) {
    size_t column = 0;
    indent(w);
    base_str_add(w->out, "\"");
    for (const char *p = text; *p; ++p) {
        bool utf8_tail = ((unsigned char)*p & 0xC0) == 0x80;
        if ((column >= 96 && !utf8_tail) || (column && p[-1] == '\n')) {
            base_str_add(w->out, "\"\n");
            indent(w);
            base_str_add(w->out, "\"");
            column = 0;
        }
        add_escaped(w->out, (unsigned char)*p);
        column++;
    }
    base_str_add(w->out, "\"");
}

void cg_comment(cg_text *w, const char *text) {
    indent(w);
    base_str_add(w->out, "/* ");
    for (const char *p = text; *p; ++p) {
        base_str_add_n(w->out, p, 1);
        if ((*p == '*' && p[1] == '/') || (*p == '/' && p[1] == '*'))
            base_str_add(w->out, " ");
        if (*p == '\n' && p[1]) {
            indent(w);
            base_str_add(w->out, p[1] == '\n' ? " *" : " * ");
        }
    }
    base_str_add(w->out, " */\n");
}

bool cg_fail(base_str *err, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    base_str_vaddf(err, fmt, ap);
    va_end(ap);
    return false;
}

typedef struct guarded {
    bool (*fn)(const cg_emission *e);
    const cg_emission *e;
    bool ok;
} guarded;

static void run(void *user) {
    guarded *g = user;
    g->ok = g->fn(g->e);
}

bool cg_emit_with(bool (*fn)(const cg_emission *e), cg_emission *e) {
    guarded g = {fn, e, false};
    e->arena = base_arena_new();
    bool memory =
        e->arena && base_arena_catch(e->arena, run, &g) && !base_arena_str_failed(e->arena) && !e->out->failed;
    if (!memory)
        g.ok = cg_fail(e->err, "out of memory");
    base_arena_free(e->arena);
    return g.ok;
}
