/* Every error of the table: its page, its wrong and its right example, its inputs under tests/frontend/errors.
 *
 * A golden .txt stands beside each .tg; TIGA_UPDATE_GOLDEN=1 writes them, and docs/errors.md, anew. */
#include "frontend/frontend.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERRORS_DIR TIGA_SOURCE_DIR "/tests/frontend/errors"

/* The example of a page behind "Wrong:" or "Right:". */
static char *example(base_arena *a, const char *page, const char *which) {
    const char *head = strstr(page, base_arena_printf(a, "\n%s:\n\n```tg\n", which));
    cr_assert_not_null(head, "no %s example in:\n%s", which, page);
    const char *begin = strstr(head, "```tg\n") + 6, *end = strstr(begin, "```");
    return base_arena_strndup(a, begin, (size_t)(end - begin));
}

static ir_module *compile(base_arena *a, const char *name, const char *text, base_diags *d, base_str *shown) {
    base_diags_init(d, a, name, text);
    ir_module *m = fe_compile(a, name, text, NULL, 0, d);
    cr_assert_eq(m == NULL, d->n_errors > 0);
    if (shown)
        base_diags_render(d, false, shown);
    return m;
}

Test(errors, wrong_examples_give_their_id_and_right_ones_compile) {
    for (size_t i = 0; fe_error_at(i); i++) {
        const fe_error_desc *e = fe_error_at(i);
        base_arena *a = base_arena_new();
        base_diags d;
        base_str shown = {0}, err = {0};
        cr_expect_eq(fe_error_find(e->id), e);
        compile(a, "wrong.tg", example(a, e->page, "Wrong"), &d, &shown);
        cr_expect_eq(d.n, 1, "%s: %zu diagnostics\n%s", e->id, d.n, base_str_text(&shown));
        cr_expect(d.n && strcmp(d.items[0]->id, e->id) == 0, "%s: got\n%s", e->id, base_str_text(&shown));
        cr_expect_eq(d.n_errors, e->id[0] == 'E');
        base_str_fini(&shown);
        ir_module *m = compile(a, "right.tg", example(a, e->page, "Right"), &d, &shown);
        cr_expect_eq(d.n, 0, "%s: the right example gives\n%s", e->id, base_str_text(&shown));
        cr_expect(m && ir_verify(m, &err), "%s: %s", e->id, base_str_text(&err));
        base_str_fini(&shown);
        base_str_fini(&err);
        base_arena_free(a);
    }
}

Test(errors, table_is_in_order) {
    for (size_t i = 1; fe_error_at(i); i++)
        cr_expect_lt(strcmp(fe_error_at(i - 1)->id, fe_error_at(i)->id), 0, "%s", fe_error_at(i)->id);
    cr_expect_null(fe_error_find("E9999"));
}

/* ---- goldens ----------------------------------------------------------------------------------------------------- */
static bool updating(void) { return getenv("TIGA_UPDATE_GOLDEN") != NULL; }

static void compare(const char *path, const base_str *got) {
    base_str want = {0}, err = {0};
    if (updating()) {
        cr_assert(base_file_write(path, base_str_text(got), got->len, &err), "%s", base_str_text(&err));
    } else {
        cr_expect(base_file_read(path, &want, &err), "%s", base_str_text(&err));
        cr_expect_str_eq(base_str_text(got), base_str_text(&want), "%s is not what the compiler says now:\n%s", path,
                         base_str_text(got));
    }
    base_str_fini(&want);
    base_str_fini(&err);
}

static void check_input(const char *file, const char *seen[], size_t *n_seen) {
    base_arena *a = base_arena_new();
    base_str text = {0}, err = {0}, shown = {0};
    const char *path = base_arena_printf(a, "%s/%s", ERRORS_DIR, file);
    cr_assert(base_file_read(path, &text, &err), "%s", base_str_text(&err));
    base_diags d;
    compile(a, file, base_str_text(&text), &d, &shown);
    char id[6] = {0};
    memcpy(id, file, 5);
    bool has = false;
    for (size_t i = 0; i < d.n; i++)
        has |= strcmp(d.items[i]->id, id) == 0;
    cr_expect(has, "%s does not give %s:\n%s", file, id, base_str_text(&shown));
    const fe_error_desc *e = fe_error_find(id);
    cr_assert_not_null(e, "%s: no such id", file);
    seen[(*n_seen)++] = e->id;
    char *golden = base_arena_printf(a, "%.*s.txt", (int)(strlen(path) - 3), path);
    compare(golden, &shown);
    base_str_fini(&text);
    base_str_fini(&err);
    base_str_fini(&shown);
    base_arena_free(a);
}

Test(errors, inputs_match_their_goldens_and_cover_the_table) {
    static const char *seen[1000];
    size_t n = 0;
    DIR *dir = opendir(ERRORS_DIR);
    cr_assert_not_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (strlen(e->d_name) > 3 && strcmp(e->d_name + strlen(e->d_name) - 3, ".tg") == 0 && n < 1000)
            check_input(e->d_name, seen, &n);
    closedir(dir);
    for (size_t i = 0; fe_error_at(i); i++) {
        bool found = false;
        for (size_t k = 0; k < n; k++)
            found |= seen[k] == fe_error_at(i)->id;
        cr_expect(found, "no input for %s in tests/frontend/errors", fe_error_at(i)->id);
    }
}

/* docs/errors.md: the pages, and what the compiler really says to each wrong example. */
Test(errors, document_is_up_to_date) {
    base_str out = {0};
    base_arena *a = base_arena_new();
    base_str_add(
        &out, "# Errors and warnings\n\nMade from `frontend/fe_errors.def` and real runs of the compiler on its wrong "
              "examples; `tigac --explain ID` shows\none entry. To make it again: `TIGA_UPDATE_GOLDEN=1` and the "
              "test `unit.frontend_errors`.\n\nGroups: E01 text and grammar, E02 names, types and spaces, E03 "
              "programs, E08 not supported yet, W0 warnings.\n");
    for (size_t i = 0; fe_error_at(i); i++) {
        const fe_error_desc *e = fe_error_at(i);
        base_str shown = {0};
        base_diags d;
        compile(a, "wrong.tg", example(a, e->page, "Wrong"), &d, &shown);
        const char *cut = strstr(e->page, "\n\nRight:");
        base_str_addf(&out, "\n## %s: %s\n\n", e->id, e->title);
        base_str_add_n(&out, e->page, (size_t)(cut - e->page));
        base_str_addf(&out, "\n\n```\n%s```%s", base_str_text(&shown), cut);
        base_str_fini(&shown);
    }
    compare(TIGA_SOURCE_DIR "/docs/errors.md", &out);
    base_str_fini(&out);
    base_arena_free(a);
}
