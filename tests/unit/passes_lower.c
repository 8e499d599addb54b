/* Lowered = interpreted, bit for bit: every kernel of tests/passes/lower/kernels.ir, alone and after merge, hoist and the
 * schedules, on graphs without rows, without edges, with empty rows, with a hub, with duplicates and self loops. */
#include "passes_lower_support.h"

static const char *const lists[] = {
    "expand,lower",
    "expand,lower,merge,hoist",
    "expand,fold,cse,lower,fold,cse,merge,hoist,fold,cse,dce,schedule_cpu",
    "expand,lower,hoist,merge,schedule_cuda",
};
#define N_LISTS (sizeof lists / sizeof *lists)

/* Sizes of the first three symbols. */
static const int64_t sizes[][3] = {{0, 1, 3}, {1, 0, 2}, {3, 7, 2}, {16, 3, 1}, {7, 17, 3}, {17, 2, 0}};
static const int64_t wide_sizes[][3] = {{64, 2, 2}, {257, 1, 1}, {2, 65, 1}};

static const char *only; /* for a debugger: name of one kernel */

static void check_kernel(ir_module *const *m, const ir_func *k, const ir_graph_data *g, const int64_t *size,
                         uint64_t seed) {
    base_arena *a = base_arena_new();
    rng r = {seed};
    arguments x = lower_arguments(a, &r, k, g, size);
    void **want = lower_outputs(a, k, &x);
    run_graph(m[N_LISTS], k, &x, want);
    for (size_t i = 0; i < N_LISTS; i++) {
        void **got = lower_outputs(a, k, &x);
        const char *what = base_arena_printf(a, "%s; seed %llu, %lld rows, %lld edges, sizes %lld %lld %lld", lists[i],
                                             (unsigned long long)seed, (long long)g->n_dst, (long long)g->n_edges,
                                             (long long)size[0], (long long)size[1], (long long)size[2]);
        run_loops(a, m[i], k, &x, got, what);
        expect_same_results(k, m[i], &x, got, want, what);
    }
    base_arena_free(a);
}

/* m[0 .. N_LISTS - 1] after each list of passes, m[N_LISTS] as it was. */
static void load(base_arena *a, ir_module **m) {
    m[N_LISTS] = read_ir(a, LOWER_TEXTS "/kernels.ir");
    for (size_t i = 0; i < N_LISTS; i++) {
        m[i] = copy_module(a, m[N_LISTS]);
        run_passes(m[i], lists[i], 0, false, a);
    }
}

static void check_all(const int64_t (*size)[3], size_t n_sizes, const ir_graph_data **graphs, size_t n_graphs) {
    base_arena *a = base_arena_new();
    ir_module *m[N_LISTS + 1];
    load(a, m);
    for (size_t f = 0; f < m[N_LISTS]->n_funcs; f++) {
        const ir_func *k = m[N_LISTS]->funcs[f];
        if (only && strcmp(only, k->name))
            continue;
        for (size_t s = 0; s < (k->n_syms ? n_sizes : 1); s++)
            for (size_t g = 0; g < n_graphs; g++)
                if (fits_graph(k, graphs[g]))
                    check_kernel(m, k, graphs[g], size[s], 1000 * s + g + 1);
    }
    base_arena_free(a);
}

Test(passes_lower, small) {
    base_arena *a = base_arena_new();
    rng r = {7};
    const ir_graph_data *graphs[N_GRAPHS];
    all_graphs(a, &r, graphs);
    only = getenv("TIGA_TEST_KERNEL");
    check_all(sizes, sizeof sizes / sizeof *sizes, graphs, N_GRAPHS);
    base_arena_free(a);
}

Test(passes_lower, wide) {
    base_arena *a = base_arena_new();
    rng r = {8};
    const ir_graph_data *g = graph_of(a, &r, (int64_t[]){3, 0, 18}, 3, 4);
    only = getenv("TIGA_TEST_KERNEL");
    check_all(wide_sizes, sizeof wide_sizes / sizeof *wide_sizes, &g, 1);
    base_arena_free(a);
}

/* Totals cut the rows into blocks of 4096. */
Test(passes_lower, blocks_of_totals) {
    base_arena *a = base_arena_new();
    ir_module *m[N_LISTS + 1];
    load(a, m);
    static const int64_t rows[] = {0, 1, 4095, 4096, 4097, 9000};
    for (size_t f = 0; f < m[N_LISTS]->n_funcs; f++)
        for (size_t n = 0; strncmp(m[N_LISTS]->funcs[f]->name, "total_", 6) == 0 && n < 6; n++) {
            int64_t *degrees = base_arena_new_array(a, int64_t, rows[n] + 1);
            rng r = {n};
            const ir_graph_data *g = graph_of(a, &r, degrees, rows[n], 1);
            check_kernel(m, m[N_LISTS]->funcs[f], g, (int64_t[]){2, 1, 1}, n + 1);
        }
    base_arena_free(a);
}
