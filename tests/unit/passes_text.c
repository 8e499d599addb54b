/* Every tests/passes/<pass>.<what>.ir, run through <pass>, must print as <pass>.<what>.expect: IR text, or
 * "error: ..." where the pass refuses.  With TIGA_BLESS set the expected texts are written instead of compared. */
#include "passes/passes.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const folder = TIGA_SOURCE_DIR "/tests/passes";

static void read_file(const char *path, base_str *out) {
    base_str err = {0};
    if (!base_file_read(path, out, &err))
        cr_assert_fail("%s", base_str_text(&err));
    base_str_fini(&err);
}

static ir_module *parse(base_arena *a, const char *name, const char *text) {
    base_diags diags;
    base_diags_init(&diags, a, name, text);
    ir_module *m = ir_parse(a, name, text, &diags);
    base_str err = {0};
    if (!m)
        base_diags_render(&diags, false, &err);
    else
        ir_verify(m, &err);
    cr_assert(m && !err.len, "%s: %s", name, base_str_text(&err));
    base_str_fini(&err);
    return m;
}

/* The text after the pass; printed text must parse, and print the same again. */
static void run_pass(const char *name, const char *pass, base_str *out) {
    base_arena *a = base_arena_new();
    base_str text = {0}, err = {0};
    read_file(base_arena_printf(a, "%s/%s", folder, name), &text);
    ir_module *m = parse(a, name, base_str_text(&text));
    pass_context ctx = {.scratch = a};
    if (pass_run_pipeline(m, pass, 3, &ctx, &err)) {
        ir_print(m, 15, out);
        base_str again = {0};
        ir_print(parse(a, name, base_str_text(out)), 15, &again);
        cr_expect_str_eq(base_str_text(&again), base_str_text(out));
        base_str_fini(&again);
    } else {
        base_str_addf(out, "error: %s\n", base_str_text(&err));
    }
    base_str_fini(&text);
    base_str_fini(&err);
    base_arena_free(a);
}

static void check_file(const char *name) {
    base_str got = {0}, want = {0}, err = {0};
    char pass[64], path[4096];
    snprintf(pass, sizeof pass, "%.*s", (int)strcspn(name, "."), name);
    snprintf(path, sizeof path, "%s/%.*s.expect", folder, (int)(strlen(name) - 3), name);
    run_pass(name, pass, &got);
    if (getenv("TIGA_BLESS"))
        cr_assert(base_file_write(path, got.data, got.len, &err), "%s", base_str_text(&err));
    read_file(path, &want);
    cr_expect_str_eq(base_str_text(&got), base_str_text(&want), "%s: got\n%s", name, base_str_text(&got));
    base_str_fini(&got);
    base_str_fini(&want);
    base_str_fini(&err);
}

Test(passes_text, files) {
    DIR *d = opendir(folder);
    cr_assert(d);
    size_t n = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len > 3 && !strcmp(e->d_name + len - 3, ".ir")) {
            check_file(e->d_name);
            n++;
        }
    }
    closedir(d);
    cr_expect_geq(n, 12, "only %zu files found", n);
}
