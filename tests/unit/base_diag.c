/* Diagnostics as text: the form of docs/errors.md, tabs, long lines, ends of files, limits, order. */
#include "base/base.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const gat = "kernel gat[H](src a: f32[H], dst b: f32[H]) -> f32[H] {\n"
                               "    // scores\n"
                               "    let score = src.a + dst.b\n"
                               "    return score\n"
                               "}\n";

static base_span span_of(const char *source, const char *what, const char *after) {
    const char *from = after ? strstr(source, after) : source;
    const char *p = strstr(from, what);
    uint32_t at = (uint32_t)(p - source);
    return (base_span){at, at + (uint32_t)strlen(what)};
}

static char *render(base_diags *d, bool color) {
    base_str out = {0};
    base_diags_render(d, color, &out);
    return out.data;
}

Test(diag, is_shown_as_documented) {
    base_diags d;
    base_diags_init(&d, base_arena_new(), "gat.tg", gat);
    base_diag *e = base_diags_add(&d, BASE_ERROR, "E0207", span_of(gat, "score", "return"),
                                  "'%s' is a value per edge; a row kernel returns one value per destination", "score");
    base_diag_label(&d, e, "reduce it, or declare the result '-> edge f32[%s]'", "H");
    base_diag_note_at(&d, e, span_of(gat, "src.a", NULL), "'%s' depends on src.a", "score");
    base_diag_note_text(&d, e, "see tigac --explain %s", "E0207");
    cr_assert_str_eq(
        render(&d, false),
        "gat.tg:4:12: error[E0207]: 'score' is a value per edge; a row kernel returns one value per destination\n"
        "   4 |     return score\n"
        "     |            ^^^^^ reduce it, or declare the result '-> edge f32[H]'\n"
        "   note: 'score' depends on src.a (gat.tg:3:17)\n"
        "   note: see tigac --explain E0207\n");
    cr_assert(strstr(render(&d, true), "\033[1;31m^^^^^"));
    cr_assert_eq(d.n_errors, 1);
}

Test(diag, tabs_control_characters_and_utf8_keep_the_carets_in_place) {
    base_diags d;
    const char *s = "\tlet\tx = \xc3\xa9 + \x01 + \xff + y\r\n";
    base_diags_init(&d, base_arena_new(), "t", s);
    base_diags_add(&d, BASE_WARNING, "E0001", span_of(s, "y", NULL), "w");
    cr_assert_str_eq(render(&d, false), "t:1:22: warning[E0001]: w\n"
                                        "   1 |     let x = \xc3\xa9 + ? + ? + y\n"
                                        "     |                         ^\n");
}

Test(diag, places_at_the_end_and_beyond) {
    base_diags d;
    base_diags_init(&d, base_arena_new(), "t", "ab\ncd");
    base_diags_add(&d, BASE_ERROR, "E0001", (base_span){5, 5}, "end");
    base_diags_add(&d, BASE_ERROR, "E0001", (base_span){900, 1000}, "beyond");
    base_diags_add(&d, BASE_ERROR, "E0001", (base_span){1, 5}, "two lines");
    cr_assert_str_eq(render(&d, false), "t:2:3: error[E0001]: end\n   2 | cd\n     |   ^\n"
                                        "t:2:3: error[E0001]: beyond\n   2 | cd\n     |   ^\n"
                                        "t:1:2: error[E0001]: two lines\n   1 | ab\n     |  ^\n");
    base_diags_init(&d, base_arena_new(), "t", "");
    base_diags_add(&d, BASE_ERROR, "E0001", (base_span){0, 0}, "empty");
    cr_assert_str_eq(render(&d, false), "t:1:1: error[E0001]: empty\n   1 | \n     | ^\n");
}

Test(diag, a_very_long_line_is_cut_around_the_carets) {
    char *s = malloc(100001);
    memset(s, 'x', 100000);
    s[100000] = 0;
    memcpy(s + 50000, "HERE", 4);
    base_diags d;
    base_diags_init(&d, base_arena_new(), "t", s);
    base_diags_add(&d, BASE_ERROR, "E0001", (base_span){50000, 50004}, "m");
    char *text = render(&d, false);
    cr_assert_lt(strlen(text), 500);
    char *line = strchr(text, '\n') + 1, *carets = strchr(line, '\n') + 1;
    cr_assert_eq(strstr(line, "HERE") - line, strstr(carets, "^^^^") - carets);
    d.items[0]->span = (base_span){3, 99999};
    cr_assert_lt(strlen(render(&d, false)), 600);
}

Test(diag, wide_line_numbers_move_the_gutter) {
    base_str s = {0};
    for (int i = 1; i < 12345; i++)
        base_str_add(&s, "\n");
    base_str_add(&s, "bad");
    base_diags d;
    base_diags_init(&d, base_arena_new(), "t", s.data);
    base_diags_add(&d, BASE_ERROR, "E0001", (base_span){12344, 12347}, "m");
    cr_assert_str_eq(render(&d, false), "t:12345:1: error[E0001]: m\n12345 | bad\n      | ^^^\n");
}

Test(diag, at_most_twenty_errors_are_shown) {
    base_diags d;
    base_diags_init(&d, base_arena_new(), "t", "abc");
    for (int i = 0; i < 25; i++)
        base_diags_add(&d, BASE_ERROR, "E0001", (base_span){0, 1}, "number %d", i);
    char *text = render(&d, false);
    cr_assert(strstr(text, "number 19"));
    cr_assert_not(strstr(text, "number 20"));
    cr_assert(strstr(text, "... and 5 more\n"));
}

Test(diag, sorting_is_stable_and_drops_repeats) {
    base_diags d;
    base_diags_init(&d, base_arena_new(), "t", "abcdef");
    base_diags_add(&d, BASE_ERROR, "E0002", (base_span){3, 4}, "c");
    base_diags_add(&d, BASE_ERROR, "E0001", (base_span){1, 2}, "b");
    base_diags_add(&d, BASE_ERROR, "E0002", (base_span){3, 4}, "a");
    base_diags_add(&d, BASE_WARNING, "E0002", (base_span){3, 4}, "c");
    base_diags_add(&d, BASE_ERROR, "E0002", (base_span){3, 4}, "c");
    base_diags_sort(&d);
    cr_assert_eq(d.n, 4);
    cr_assert_eq(d.n_errors, 3);
    const char *want[] = {"b", "c", "a", "c"};
    for (int i = 0; i < 4; i++)
        cr_assert_str_eq(d.items[i]->text, want[i]);
}
