#include "emitted.h"

#include <criterion/criterion.h>
#include <string.h>

static ir_module *read_module(emitted *e, const char *path, const char *text) {
    base_diags d;
    base_str messages = {0};
    base_diags_init(&d, e->arena, path, text);
    bool tg = strlen(path) > 3 && !strcmp(path + strlen(path) - 3, ".tg");
    ir_module *m = tg ? fe_compile(e->arena, path, text, NULL, 0, &d) : ir_parse(e->arena, path, text, &d);
    if (!m)
        base_diags_render(&d, false, &messages);
    cr_assert(m, "%s", base_str_text(&messages));
    return m;
}

emitted emitted_new(const char *path, int opt_level, int team) {
    emitted e = {.arena = base_arena_new()};
    base_str source = {0}, err = {0};
    cr_assert(e.arena && base_file_read(path, &source, &err), "%s", base_str_text(&err));
    e.m = read_module(&e, path, base_arena_strdup(e.arena, base_str_text(&source)));
    bool tg = ir_func_find(e.m, "", IR_LEVEL_LOOP) == NULL && e.m->funcs[0]->level != IR_LEVEL_LOOP;
    pass_context ctx = {.scratch = base_arena_new(), .cuda = true};
    cr_assert(pass_run_pipeline(e.m, tg ? NULL : "schedule_cuda", opt_level, &ctx, &err), "%s: %s", path,
              base_str_text(&err));
    for (size_t i = 0; team && i < e.m->n_funcs; i++)
        e.m->funcs[i]->team = team;
    cg_options o = {.source_name = "test.tg", .source_hash = "00000000000000000000000000000000", .compiler = "tigac"};
    cr_assert(cg_emit_cuda(e.m, &o, &e.text, &err), "%s: %s", path, base_str_text(&err));
    base_arena_free(ctx.scratch);
    base_str_fini(&source);
    base_str_fini(&err);
    return e;
}

void emitted_free(emitted *e) {
    base_str_fini(&e->text);
    base_arena_free(e->arena);
}
