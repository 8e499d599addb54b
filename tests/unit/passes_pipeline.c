/* The table of passes and the pipeline runner: names, levels, dumps, the error texts. */
#include "passes/passes.h"

#include <criterion/criterion.h>
#include <setjmp.h>
#include <string.h>

static const char *const kernel_text = "module \"m\"\n"
                                       "kernel @k(dst x: f32) -> (out: row f32) exported {\n"
                                       "  %1 = field {field = 0, at = dst} : row f32\n"
                                       "  %2 = add %1, %1 : row f32\n"
                                       "  ret %1\n"
                                       "}\n";
static const char *const loop_text = "module \"m\"\n"
                                     "loop @k(dst x: f32, outrow out: f32) domain = rows {\n"
                                     "  rows {\n"
                                     "    %2 = arg {index = 0} : i64\n"
                                     "    %3 = load %2 {field = 0} : f32\n"
                                     "    store %2, %3 {field = 1}\n"
                                     "  }\n"
                                     "}\n";

static base_arena *arena;
static base_str err;
static char dumped[256];

static void note_dump(void *user, const char *pass, const ir_module *m) {
    cr_assert(m && user == dumped);
    strcat(dumped, pass);
    strcat(dumped, ";");
}

static void begin(void) {
    arena = base_arena_new();
    dumped[0] = '\0';
}

static void end(void) {
    base_str_fini(&err);
    base_arena_free(arena);
}

static ir_module *parse(const char *text) {
    base_diags diags;
    base_diags_init(&diags, arena, "m", text);
    ir_module *m = ir_parse(arena, "m", text, &diags);
    cr_assert(m);
    return m;
}

static bool run(ir_module *m, const char *names, const char *dump_after) {
    pass_context ctx = {.scratch = arena, .dump_after = dump_after, .dump = note_dump, .user = dumped};
    err.len = 0;
    if (err.data)
        err.data[0] = '\0';
    return pass_run_pipeline(m, names, 2, &ctx, &err);
}

TestSuite(passes_pipeline, .init = begin, .fini = end);

Test(passes_pipeline, table) {
    cr_expect_not_null(pass_find("fold"));
    cr_expect_null(pass_find("fuze"));
    size_t n = 0;
    while (pass_at(n)) {
        cr_expect_eq(pass_find(pass_at(n)->name), pass_at(n));
        cr_expect(*pass_at(n)->doc);
        n++;
    }
    cr_expect_eq(n, 21);
}

/* Every default pipeline names passes of the table only, and ends with hierarchy. */
Test(passes_pipeline, defaults) {
    for (int level = 0; level <= 3; level++)
        for (int cuda = 0; cuda < 2; cuda++) {
            const char *names = pass_default_pipeline(cuda, level);
            size_t n = 0;
            for (const char *at = names; *at;) {
                size_t len = strcspn(at, ",");
                cr_expect_not_null(pass_find(base_arena_strndup(arena, at, len)), "%s", at);
                at += len + (at[len] == ',');
                n++;
            }
            cr_expect_str_eq(names + strlen(names) - 9, "hierarchy");
            cr_expect(level ? n > 10 : n == 6);
            cr_expect_not_null(strstr(names, cuda ? "schedule_cuda" : "schedule_cpu"));
        }
}

Test(passes_pipeline, unknown_names) {
    ir_module *m = parse(kernel_text);
    cr_expect_not(run(m, "fodl", NULL));
    cr_expect_str_eq(base_str_text(&err), "unknown pass 'fodl'; did you mean 'fold'?");
    cr_expect_not(run(m, "dce,constant_propagation_everywhere", NULL));
    cr_expect_str_eq(base_str_text(&err), "unknown pass 'constant_propagation_everywhere'");
    cr_expect_eq(m->funcs[0]->body.n, 3, "no pass may run before all names are known");
    cr_expect_not(run(m, "fold,,dce", NULL));
    cr_expect_str_eq(base_str_text(&err), "empty name in the list of passes");
    cr_expect_not(run(m, "fold,", NULL));
    cr_expect_not(run(m, ",fold", NULL));
    cr_expect_not(run(m, "fold", "hierachy"));
    cr_expect_str_eq(base_str_text(&err), "unknown pass 'hierachy'; did you mean 'hierarchy'?");
}

Test(passes_pipeline, wrong_level) {
    cr_expect_not(run(parse(kernel_text), "hierarchy", NULL));
    cr_expect_str_eq(base_str_text(&err), "pass 'hierarchy' works on loop IR, but the module is at the graph level");
    cr_expect_not(run(parse(loop_text), "expand", NULL));
    cr_expect_str_eq(base_str_text(&err), "pass 'expand' works on graph IR, but the module is at the loop level");
    cr_expect_not(run(parse("module \"m\"\ntask @k() {\n  ret\n}\n"), "merge", NULL));
    cr_expect_str_eq(base_str_text(&err), "pass 'merge' works on loop IR, but the module is at the task level");
}

/* A program that calls nothing needs no loops. */
Test(passes_pipeline, program_without_kernels) {
    ir_module *m = parse("module \"m\"\nprogram @p[N](param x: f32[N]) -> (out: f32[N]) exported {\n"
                         "  %1 = param {field = 0} : f32[N]\n  ret %1\n}\n");
    cr_assert(run(m, "outline,hierarchy", NULL), "%s", base_str_text(&err));
    cr_expect_not_null(ir_func_find(m, "p", IR_LEVEL_TASK));
    cr_assert(run(parse("module \"empty\"\n"), "expand,fold,hierarchy", NULL), "%s", base_str_text(&err));
}

Test(passes_pipeline, lists_and_dumps) {
    ir_module *m = parse(kernel_text);
    cr_assert(run(m, "fold, cse ,dce", "all"), "%s", base_str_text(&err));
    cr_expect_str_eq(dumped, "fold;cse;dce;");
    cr_expect_eq(m->funcs[0]->body.n, 2);
    dumped[0] = '\0';
    cr_assert(run(m, "fold,cse,fold", "fold"));
    cr_expect_str_eq(dumped, "fold;fold;");
    dumped[0] = '\0';
    cr_assert(run(m, "", "all"));
    cr_expect_str_eq(dumped, "");
}

/* true: the pipeline came to an end, well or with a reason; false: memory ran out and the arena said so. */
static bool run_with_failure(ir_module *m, base_arena *a, uint64_t nth, bool *ok, base_str *why) {
    jmp_buf out;
    volatile bool ended = false;
    *base_arena_oom_slot(a) = &out;
    base_inject_at(BASE_INJECT_ALLOC, nth);
    if (!setjmp(out)) {
        pass_context ctx = {.scratch = a};
        *ok = pass_run_pipeline(m, NULL, 3, &ctx, why);
        ended = true;
    }
    base_inject_at(BASE_INJECT_ALLOC, 0);
    *base_arena_oom_slot(a) = NULL;
    return ended;
}

/* Allocation 1, 2, 3, ... of the pipeline fails, until none is left to fail. */
Test(passes_pipeline, out_of_memory) {
    base_str text = {0}, why = {0};
    cr_assert(base_file_read(TIGA_SOURCE_DIR "/tests/passes/outline.pagerank.ir", &text, &why));
    size_t failures = 0;
    for (uint64_t nth = 1;; nth += 1 + nth / 40) {
        base_arena *a = base_arena_new();
        base_diags diags;
        base_diags_init(&diags, a, "m", base_str_text(&text));
        ir_module *m = ir_parse(a, "m", base_str_text(&text), &diags);
        bool ok = false, ended = run_with_failure(m, a, nth, &ok, &why);
        cr_expect(!ended || ok || why.len || why.failed, "it failed without a reason");
        failures += !ended || !ok;
        base_str_fini(&why);
        base_arena_free(a);
        if (ended && ok)
            break;
    }
    cr_expect_gt(failures, 100);
    base_str_fini(&text);
}
