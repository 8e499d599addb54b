/* Emitted loop functions, compiled with warnings as errors by gcc and clang, as C11 and C++17, with and without vector
 * types, and then run: the same bits as the interpreter, on both widths of source columns, at every feature width where
 * the emitted code changes its shape. */
#include "codegen_support.h"

static const char *const builds[] = {
    "gcc -std=c11 -O0",
    TEST_CLANG_NATIVE,
    "g++ -x c++ -std=c++17 -O2",
    "gcc -std=gnu11 -O3 -march=native",
    "clang++-19 -x c++ -std=c++17 -O1 -mavx2 -fsanitize=undefined -fsanitize-trap=all",
    "gcc -std=c11 -O2 -DTIGA_NO_VECTORS",
    "clang-19 -std=c11 -O1 -DTIGA_SHORT_PIECES",
};
#define N_BUILDS (sizeof builds / sizeof *builds)

static const char *const files[] = {
    "passes/lower/argmax_features.ir",
    "passes/lower/mean.ir",
    "passes/lower/scalar_sum.ir",
    "passes/lower/sddmm.ir",
    "passes/lower/shortest.ir",
    "passes/lower/total.ir",
    "passes/lower/transposed.ir",
    "passes/lower/weighted_sum_tiled.ir",
    "passes/lower/weighted_sum_whole.ir",
    "ir/loop_forms.ir",
    "codegen/forms.ir",
    "codegen/shapes.ir",
};

/* One module of all the loop functions: a build is slow, a function more is not. */
static ir_module *all_loops(base_arena *a) {
    base_str text = {0};
    base_str_add(&text, "module \"all\"\n");
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
        char *s = test_read(a, base_arena_printf(a, TIGA_SOURCE_DIR "/tests/%s", files[i]));
        for (char *at = strstr(s, "\nloop @"), *next; at; at = next) {
            next = strstr(at + 1, "\nloop @");
            size_t n = next ? (size_t)(next - at) : strlen(at);
            base_str_addf(&text, "\nloop @f%zu_%s\n", i, base_arena_strndup(a, at + 7, n - 7));
        }
    }
    ir_module *m = test_parse(a, "all", base_str_text(&text));
    base_str_fini(&text);
    return m;
}

static const tiga_kernel_code *code_of(const tiga_module_info *info, const char *name) {
    for (int32_t i = 0; i < info->n_kernels; ++i)
        if (!strcmp(info->kernels[i].name, name))
            return &info->kernels[i];
    cr_assert_fail("no kernel %s", name);
    return NULL;
}

static void check_one(const ir_module *m, const ir_func *f, const test_graph *g, int64_t n_rows, int64_t feature,
                      bool special, const tiga_module_info *const *info) {
    base_arena *a = base_arena_new();
    test_call c = {.f = f, .g = g};
    test_prepare(&c, a, feature, n_rows);
    test_fill(&c, a, special, (uint64_t)(feature * 7 + special));
    test_interpret(&c, m);
    for (size_t b = 0; b < N_BUILDS; ++b)
        for (int wide = 0; wide < 2; ++wide) {
            test_run(&c, code_of(info[b], f->name), wide);
            test_compare(&c, base_arena_printf(a, "%s, %d bits%s", builds[b], wide ? 64 : 32,
                                               special ? ", special values" : ""));
        }
    test_release(&c);
    base_arena_free(a);
}

static void check_function(const ir_module *m, const ir_func *f, const tiga_module_info *const *info) {
    static const int64_t features[] = {0, 1, 3, 7, 16, 21, 64, 100, 150};
    static const int64_t degrees[] = {0, 3, 17, 1, 0, 40, 16, 0, 5}, none[] = {0, 0, 0, 0, 0};
    base_arena *a = base_arena_new();
    test_graph g = test_graph_new(a, 9, 9, degrees, 5), empty = test_graph_new(a, 0, 4, none, 5),
               bare = test_graph_new(a, 5, 5, none, 5);
    bool graph = ir_walks(f);
    for (size_t i = 0; i < (f->n_syms ? sizeof features / sizeof *features : 1); ++i)
        for (int special = 0; special < 2; ++special)
            check_one(m, f, &g, g.data.n_dst, features[i], special, info);
    if (!f->needs_square)
        check_one(m, f, &empty, 0, 20, false, info);
    check_one(m, f, &bare, 5, 20, false, info);
    if (!graph)
        check_one(m, f, &g, 9001, 2, false, info);
    base_arena_free(a);
}

Test(codegen_run, same_bits_as_the_interpreter_under_every_compiler, .timeout = 900) {
    base_arena *a = base_arena_new();
    base_str text = {0}, err = {0};
    ir_module *m = all_loops(a);
    const tiga_module_info *info[N_BUILDS];
    cr_assert(cg_emit_c(m, &test_options, &text, &err), "%s", base_str_text(&err));
    test_write(a, "all.c", base_str_text(&text));
    for (size_t b = 0; b < N_BUILDS; ++b)
        info[b] = test_load(a, builds[b], "all.c", base_arena_printf(a, "all%zu.so", b));
    for (size_t i = 0; i < m->n_funcs; ++i)
        check_function(m, m->funcs[i], info);
    test_remove_folder(a);
    base_str_fini(&text);
    base_arena_free(a);
}

/* A function whose loops have pieces asks between them, and returns at once when told to. */
static int32_t asked_so_often(void *user) {
    int64_t *left = user;
    return --*left <= 0;
}

static int64_t leave_early(const ir_func *f, const test_graph *g, const tiga_kernel_code *code) {
    base_arena *a = base_arena_new();
    test_call c = {.f = f, .g = g};
    test_prepare(&c, a, 100, g->data.n_dst);
    test_fill(&c, a, false, 1);
    int64_t asked = INT64_MAX;
    c.give_up = asked_so_often;
    c.user = &asked;
    test_run(&c, code, false);
    int64_t n = INT64_MAX - asked;
    for (int64_t k = 1; k <= n; k += k < 10 ? 1 : n / 5 + 1) {
        int64_t left = k;
        c.user = &left;
        test_run(&c, code, false); /* of its two calls the second is told to leave as well */
        cr_assert(left == 0 || left == -1, "%s: asked %lld times after the end", f->name, (long long)-left);
    }
    test_release(&c);
    base_arena_free(a);
    return n;
}

Test(codegen_run, long_loops_can_be_left, .timeout = 120) {
    static const int64_t degrees[] = {100, 0, 40};
    base_arena *a = base_arena_new();
    base_str text = {0}, err = {0};
    ir_module *m = all_loops(a);
    test_graph g = test_graph_new(a, 3, 3, degrees, 3);
    cr_assert(cg_emit_c(m, &test_options, &text, &err), "%s", base_str_text(&err));
    test_write(a, "all.c", base_str_text(&text));
    const tiga_module_info *info = test_load(a, "clang-19 -std=c11 -O1 -DTIGA_SHORT_PIECES", "all.c", "short.so");
    size_t n_walks = 0, n_inside = 0;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        const ir_func *f = m->funcs[i];
        int64_t asked = leave_early(f, &g, code_of(info, f->name));
        n_walks += ir_walks(f);
        n_inside += ir_walks(f) && asked > 2; /* a cheap scalar walk never does */
    }
    cr_assert_geq(n_inside * 3, n_walks, "%zu of %zu walks", n_inside, n_walks);
    test_remove_folder(a);
    base_str_fini(&text);
    base_arena_free(a);
}

/* The text needs no header at all when the compiler says it has none. */
Test(codegen_run, compiles_where_there_are_no_headers, .timeout = 60) {
    base_arena *a = base_arena_new();
    base_str text = {0}, again = {0}, err = {0};
    ir_module *m = all_loops(a);
    cr_assert(cg_emit_c(m, &test_options, &text, &err), "%s", base_str_text(&err));
    cr_assert(cg_emit_c(m, &test_options, &again, &err));
    cr_assert(!strcmp(base_str_text(&text), base_str_text(&again)), "two runs, two texts");
    test_write(a, "bare.c", base_str_text(&text));
    test_shell(a, "clang-19 -nostdinc -DTIGA_FREESTANDING -std=c11" STRICT "-O1 -c bare.c -o bare.o");
    test_remove_folder(a);
    base_str_fini(&text);
    base_str_fini(&again);
    base_arena_free(a);
}
