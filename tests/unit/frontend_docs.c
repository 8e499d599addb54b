/* docs/language.md: every example compiles and holds; every function and reducer of the tables has its row. */
#include "frontend/fe.h"

#include <criterion/criterion.h>
#include <string.h>

static base_str read_doc(void) {
    base_str text = {0}, err = {0};
    cr_assert(base_file_read(TIGA_SOURCE_DIR "/docs/language.md", &text, &err), "%s", base_str_text(&err));
    base_str_fini(&err);
    return text;
}

Test(docs, examples_compile_without_warnings) {
    base_str doc = read_doc();
    int n = 0;
    for (const char *at = base_str_text(&doc); (at = strstr(at, "```tg\n")); n++) {
        const char *begin = at + 6, *end = strstr(begin, "```");
        cr_assert_not_null(end);
        base_arena *a = base_arena_new();
        char *text = base_arena_strndup(a, begin, (size_t)(end - begin));
        base_diags d;
        base_str shown = {0}, err = {0};
        base_diags_init(&d, a, "language.md", text);
        ir_module *m = fe_compile(a, "language.md", text, NULL, 0, &d);
        base_diags_render(&d, false, &shown);
        cr_expect_eq(d.n, 0, "%s\n%s", text, base_str_text(&shown));
        cr_expect(m && ir_verify(m, &err), "%s\n%s", text, base_str_text(&err));
        base_str_fini(&shown);
        base_str_fini(&err);
        base_arena_free(a);
        at = end + 3;
    }
    cr_expect_geq(n, 8);
    base_str_fini(&doc);
}

/* "x, a = ..." of "x a?" */
static void add_params(base_str *s, const char *list) {
    for (const char *sep = ""; *list; sep = ", ") {
        size_t n = strcspn(list, " ");
        bool optional = list[n - 1] == '?';
        base_str_addf(s, "%s%.*s%s", sep, (int)(n - optional), list, optional ? " = ..." : "");
        list += n;
        list += strspn(list, " ");
    }
}

static void expect_row(const base_str *doc, const char *before, const char *text, const char *params) {
    base_str row = {0};
    base_str_addf(&row, "| `%s%s(", before, text);
    add_params(&row, params);
    base_str_add(&row, ")` | ");
    cr_expect(strstr(base_str_text(doc), base_str_text(&row)), "docs/language.md has no row %s", base_str_text(&row));
    base_str_fini(&row);
}

Test(docs, tables_are_complete) {
    base_str doc = read_doc();
    for (size_t i = 0; fe_func_at(i); i++)
        expect_row(&doc, "", fe_func_at(i)->text, fe_func_at(i)->params);
    for (size_t i = 0; fe_reducer_at(i); i++)
        expect_row(&doc, "reduce ", fe_reducer_at(i)->text, fe_reducer_at(i)->params);
    base_str_fini(&doc);
}
