/* A pass does not change a bit: interpreted before = interpreted after, on random arguments with NaN, infinities,
 * -0.0 and subnormals, for the texts of tests/passes and for random programs. */
#include "passes_random.h"

#include <dirent.h>

static const char *const folder = TIGA_SOURCE_DIR "/tests/passes";

static void compare(const ir_module *before, const ir_module *after, const ir_graph_data *g, uint64_t seed,
                    const char *what) {
    for (size_t i = 0; i < before->n_funcs; i++) {
        const ir_func *f = before->funcs[i];
        if (!f->exported || f->level > IR_LEVEL_PROGRAM)
            continue;
        base_arena *a = base_arena_new();
        rng r = {seed};
        arguments x = random_arguments(a, &r, f, g);
        interpret(before, f, &x);
        void **want = x.out;
        new_outputs(a, f, &x);
        const ir_func *h = ir_func_find(after, f->name, f->level);
        cr_assert(h);
        interpret(after, h, &x);
        expect_same(h, &x, want, what);
        base_arena_free(a);
    }
}

static const char *const lists[] = {"expand",
                                    "fold",
                                    "cse",
                                    "dce",
                                    "outline",
                                    "expand,outline",
                                    "expand,outline,fold,cse,dce",
                                    "expand,fold,cse,outline,fold,cse,dce"};
#define N_LISTS (sizeof lists / sizeof *lists)

static void check_module(const ir_module *m, uint64_t seed, const char *name) {
    base_arena *a = base_arena_new();
    rng r = {seed};
    const ir_graph_data *graphs[] = {random_graph(a, &r, 6, 6, 5), random_graph(a, &r, 0, 0, 0),
                                     random_graph(a, &r, 1, 1, 40)};
    for (size_t i = 0; i < N_LISTS; i++) {
        ir_module *after = copy_module(a, m);
        run_passes(after, lists[i], 0, false, a);
        const char *what = base_arena_printf(a, "%s, seed %llu, after %s", name, (unsigned long long)seed, lists[i]);
        for (size_t k = 0; k < 3; k++)
            compare(m, after, graphs[k], seed + k, what);
    }
    base_arena_free(a);
}

static bool graph_level(const ir_module *m) {
    for (size_t i = 0; i < m->n_funcs; i++)
        if (m->funcs[i]->level > IR_LEVEL_PROGRAM)
            return false;
    return true;
}

Test(passes_meaning, texts) {
    DIR *d = opendir(folder);
    cr_assert(d);
    size_t n = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        if (!ends_with(e->d_name, ".ir") || strstr(e->d_name, "first_axis"))
            continue;
        base_arena *a = base_arena_new();
        base_str text = {0}, err = {0};
        cr_assert(base_file_read(base_arena_printf(a, "%s/%s", folder, e->d_name), &text, &err), "%s",
                  base_str_text(&err));
        ir_module *m = parse_text(a, e->d_name, base_str_text(&text));
        for (uint64_t seed = 1; graph_level(m) && seed <= 3; seed++)
            check_module(m, seed, e->d_name);
        n += graph_level(m);
        base_str_fini(&text);
        base_str_fini(&err);
        base_arena_free(a);
    }
    closedir(d);
    cr_expect_geq(n, 8, "only %zu texts", n);
}

Test(passes_meaning, random_programs) {
    for (uint64_t seed = 1; seed <= 300; seed++) {
        base_arena *a = base_arena_new();
        rng r = {seed};
        check_module(random_program(a, &r), seed, "random program");
        base_arena_free(a);
    }
}

/* More rows than a block of a total. */
Test(passes_meaning, blocks_of_total) {
    base_arena *a = base_arena_new();
    rng r = {7};
    const ir_graph_data *g = random_graph(a, &r, 2 * IR_TOTAL_BLOCK + 17, 2 * IR_TOTAL_BLOCK + 17, 1);
    base_str text = {0}, err = {0};
    cr_assert(base_file_read(base_arena_printf(a, "%s/outline.shapes.ir", folder), &text, &err));
    ir_module *m = parse_text(a, "shapes", base_str_text(&text)), *after = copy_module(a, m);
    run_passes(after, "expand,outline,fold,cse,dce", 0, false, a);
    compare(m, after, g, 3, "blocks of a total");
    base_str_fini(&text);
    base_arena_free(a);
}
