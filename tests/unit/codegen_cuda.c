/* What the CUDA emitter refuses, and what its text promises; that its numbers are right is tested in tests/cuda_sim. */
#include "codegen/codegen.h"

#include <criterion/criterion.h>
#include <string.h>

static bool emit(const char *text, base_str *out, base_str *err) {
    base_arena *arena = base_arena_new();
    base_diags d;
    base_diags_init(&d, arena, "test.ir", text);
    ir_module *m = ir_parse(arena, "test.ir", text, &d);
    cr_assert(m, "the text of the test does not parse");
    cg_options o = {.source_name = "test.tg", .source_hash = "00000000000000000000000000000000", .compiler = "tigac"};
    bool ok = cg_emit_cuda(m, &o, out, err);
    base_arena_free(arena);
    return ok;
}

static void expect_error(const char *text, const char *what) {
    base_str out = {0}, err = {0};
    cr_assert(!emit(text, &out, &err), "emitted: %s", base_str_text(&out));
    cr_assert(strstr(base_str_text(&err), what), "the error is: %s", base_str_text(&err));
    cr_assert_eq(out.len, 0);
    base_str_fini(&out);
    base_str_fini(&err);
}

#define COPY(flags)                                                                                                    \
    "module \"test.ir\"\n\nloop @copy(dst x: f32, outrow out: f32) domain = rows" flags " {\n"                         \
    "  rows {\n    %2 = arg {index = 0} : i64\n    %3 = load %2 {field = 0} : f32\n    store %2, %3 {field = 1}\n  "   \
    "}\n}\n"

Test(codegen_cuda, needs_a_schedule) {
    expect_error(COPY(""), "@copy has no CUDA schedule");
    expect_error(COPY(" team = 7"), "@copy: a team of 7 threads is not supported");
}

Test(codegen_cuda, results_are_not_read) {
    expect_error("module \"test.ir\"\n\nloop @twice(dst x: f32, outrow out: f32) domain = rows team = 1 {\n"
                 "  rows {\n    %2 = arg {index = 0} : i64\n    %3 = load %2 {field = 1} : f32\n"
                 "    store %2, %3 {field = 1}\n  }\n}\n",
                 "@twice loads from its result 'out'");
}

/* Lane l writes element l, and every lane reads element 0. */
#define FOREIGN(team)                                                                                                  \
    "module \"test.ir\"\n\nloop @foreign(dst x: f32[32], outrow out: f32[32]) domain = rows team = " team " {\n"       \
    "  %1 = const {value = 32} : i64\n  %2 = const {value = 0} : i64\n"                                                \
    "  rows {\n    %4 = arg {index = 0} : i64\n    %5 = var {name = v} : f32[32]\n"                                    \
    "    lanes %1 {\n      %7 = arg {index = 0} : i64\n      %8 = arg {index = 1} : i64\n"                             \
    "      %9 = load %4, %7 {field = 0} : f32\n      set %5, %7, %9\n    }\n"                                          \
    "    lanes %1 {\n      %12 = arg {index = 0} : i64\n      %13 = arg {index = 1} : i64\n"                           \
    "      %14 = read %5, %2 : f32\n      store %4, %12, %14 {field = 1}\n    }\n  }\n}\n"

Test(codegen_cuda, an_element_belongs_to_one_thread) {
    expect_error(FOREIGN("16"), "@foreign: array var %5 is used at an element that another lane wrote, so its schedule "
                                "must be team = 1");
    base_str out = {0}, err = {0};
    cr_assert(emit(FOREIGN("1"), &out, &err), "%s", base_str_text(&err));
    base_str_fini(&out);
    base_str_fini(&err);
}

/* An array indexed by l and one indexed by k, when k = l + 5. */
Test(codegen_cuda, both_names_of_a_lane) {
    expect_error("module \"test.ir\"\n\nloop @shifted(dst x: f32, outrow out: f32[8]) domain = rows team = 16 {\n"
                 "  %1 = const {value = 8} : i64\n  %2 = const {value = 5} : i64\n"
                 "  rows {\n    %4 = arg {index = 0} : i64\n    %5 = load %4 {field = 0} : f32\n"
                 "    %6 = var {name = a} : f32[8]\n    %7 = var {name = b} : f32[16]\n"
                 "    lanes %1, %2 {\n      %9 = arg {index = 0} : i64\n      %10 = arg {index = 1} : i64\n"
                 "      set %6, %10, %5\n      set %7, %9, %5\n      %13 = read %6, %10 : f32\n"
                 "      %14 = read %7, %9 : f32\n      %15 = add %13, %14 : f32\n"
                 "      store %4, %10, %15 {field = 1}\n    }\n  }\n}\n",
                 "@shifted: lanes %8 begins inside of a group of 16 lanes, so its schedule must be team = 1");
}

Test(codegen_cuda, text_says_how_to_compile_and_launch) {
    base_str out = {0}, err = {0};
    cr_assert(emit(COPY(" unit = 4096 team = 16"), &out, &err), "%s", base_str_text(&err));
    const char *text = base_str_text(&out);
    cr_assert(strstr(text, "Compile with -fmad=false"));
    cr_assert(strstr(text, "__constant__ tiga_cuda_launch copy_launch = {\n        1, 256, 16, 0, 2, 1, 0, 0,"));
    cr_assert(strstr(text, "4096, /* rows per unit */"));
    cr_assert(strstr(text, "copy_rows32(") && !strstr(text, "copy_rows64("),
              "edges are not walked: one kernel is enough");
    base_str_fini(&out);
    base_str_fini(&err);
}

Test(codegen_cuda, a_comment_in_a_name_stays_in_its_comment) {
    base_str out = {0}, err = {0};
    const char *text = "module \"test.ir\"\n\nloop @\"*/ x /*\"(dst x: f32, outrow out: f32) domain = rows team = 1 {\n"
                       "  rows {\n    %2 = arg {index = 0} : i64\n    %3 = load %2 {field = 0} : f32\n"
                       "    store %2, %3 {field = 1}\n  }\n}\n";
    cr_assert(emit(text, &out, &err), "%s", base_str_text(&err));
    cr_assert(!strstr(base_str_text(&out), "*/ x"));
    base_str_fini(&out);
    base_str_fini(&err);
}

/* Allocation number k fails: an error in words, or the same text. */
Test(codegen_cuda, every_allocation_may_fail) {
    base_arena *arena = base_arena_new();
    base_diags d;
    const char *text = FOREIGN("1");
    base_diags_init(&d, arena, "test.ir", text);
    ir_module *m = ir_parse(arena, "test.ir", text, &d);
    cg_options o = {.source_name = "test.tg", .source_hash = "00000000000000000000000000000000", .compiler = "tigac"};
    base_str want = {0}, err = {0};
    cr_assert(m && cg_emit_cuda(m, &o, &want, &err), "%s", base_str_text(&err));
    bool reached = true;
    for (uint64_t k = 1; reached; ++k) {
        base_str out = {0}, why = {0};
        base_inject_at(BASE_INJECT_ALLOC, k);
        bool ok = cg_emit_cuda(m, &o, &out, &why);
        reached = base_inject_count(BASE_INJECT_ALLOC) >= k;
        base_inject_at(BASE_INJECT_ALLOC, 0);
        cr_assert(ok ? !strcmp(base_str_text(&out), base_str_text(&want)) : reached);
        cr_assert(ok || why.failed || strstr(base_str_text(&why), "out of memory"));
        base_str_fini(&out);
        base_str_fini(&why);
    }
    base_str_fini(&want);
    base_arena_free(arena);
}
