/* Functions that change shapes, and the matrix product, on the reference interpreter, against values written out. */
#include "frontend/frontend.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static const char TEXT[] =
    "kernel k(dst x: f32[2, 3], dst k: i64, param n: i64[2], param W: f32[3, 2])\n"
    "    -> (t: f32[3, 2], s: f32[2, 2], r: f32[3, 2], g: f32[2, 2], e: f32[2], h: f32[4], c: f32[2, 3], d: f32[2, "
    "3],\n"
    "        m: f32[2, 2], v: f32[2], j: f32[2, 5], l: f32[2, 3]) {\n"
    "    return (t = transpose(dst.x), s = slice(dst.x, 1, 3), r = reshape(dst.x, [3, 2]), g = gather(dst.x, n),\n"
    "            e = gather(dst.x, -1), h = one_hot(dst.k, 4), c = cumsum(dst.x), d = cumsum(dst.x, axis = 0, reverse "
    "= true),\n"
    "            m = dst.x @ W, v = dst.x @ slice(reshape(W, [6]), 3, 6), j = concat(dst.x, slice(dst.x, 0, 2)),\n"
    "            l = layer_norm(dst.x, eps = 0))\n"
    "}\n";

static const struct {
    const char *name;
    size_t n;
    float want[10];
} CASES[] = {
    {"transpose", 6, {1, 4, 2, 5, 3, 6}},
    {"slice", 4, {2, 3, 5, 6}},
    {"reshape", 6, {1, 2, 3, 4, 5, 6}},
    {"gather, in range", 4, {3, 1, 6, 4}},
    {"gather of one", 2, {1, 4}},
    {"one_hot", 4, {0, 0, 1, 0}},
    {"cumsum", 6, {1, 3, 6, 4, 9, 15}},
    {"cumsum backwards along the first axis", 6, {5, 7, 9, 4, 5, 6}},
    {"matrix by matrix", 4, {22, 28, 49, 64}},
    {"matrix by vector", 2, {32, 77}},
    {"concat", 10, {1, 2, 3, 1, 2, 4, 5, 6, 4, 5}},
    {"layer_norm", 6, {-1.2247449f, 0, 1.2247449f, -1.2247449f, 0, 1.2247449f}},
};
#define N_CASES (sizeof CASES / sizeof *CASES)

/* A turned matrix of a program may have a name; what is left of it is a product. */
Test(shapes, turned_matrices_have_names) {
    const char *text = "program p[K, F](x: f32[N, F], W: f32[K, F]) -> f32[N, F] {\n"
                       "    let Wt = transpose(W)\n"
                       "    var y = x @ transpose(W)\n"
                       "    repeat 2 { y = (y @ transpose(Wt)) @ Wt }\n"
                       "    return y @ W\n"
                       "}\n";
    base_arena *arena = base_arena_new();
    base_diags d;
    base_str err = {0}, shown = {0}, printed = {0};
    base_diags_init(&d, arena, "test.tg", text);
    ir_module *m = fe_compile(arena, "test.tg", text, NULL, 0, &d);
    base_diags_render(&d, false, &shown);
    cr_assert(m && ir_verify(m, &err), "%s%s", base_str_text(&shown), base_str_text(&err));
    ir_print(m, 15, &printed);
    cr_expect_null(strstr(base_str_text(&printed), "transpose"));
    cr_expect_not_null(strstr(base_str_text(&printed), "turned = 1"));
    base_str_fini(&printed);
    base_arena_free(arena);
}

Test(shapes, elements_are_where_they_belong) {
    base_arena *arena = base_arena_new();
    base_diags d;
    base_str err = {0}, shown = {0};
    base_diags_init(&d, arena, "test.tg", TEXT);
    ir_module *m = fe_compile(arena, "test.tg", TEXT, NULL, 0, &d);
    base_diags_render(&d, false, &shown);
    cr_assert(m && ir_verify(m, &err), "%s%s", base_str_text(&shown), base_str_text(&err));
    const float x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 2, 3, 4, 5, 6};
    const int64_t k[] = {2}, n[] = {7, -3}, offsets[] = {0, 0}; /* brought into 0 .. 2 */
    float out[N_CASES][10];
    void *results[N_CASES];
    for (size_t i = 0; i < N_CASES; i++)
        results[i] = out[i];
    ir_graph_data g = {.n_dst = 1, .n_src = 1, .n_edges = 0, .offsets = offsets, .sources = n};
    const void *in[] = {x, k, n, w};
    ir_call_data call = {.graph = &g, .in = in, .out = results};
    cr_assert(ir_interpret_graph(m, ir_func_find(m, "k", IR_LEVEL_KERNEL), &call, &err), "%s", base_str_text(&err));
    for (size_t i = 0; i < N_CASES; i++)
        for (size_t j = 0; j < CASES[i].n; j++)
            cr_expect(fabsf(out[i][j] - CASES[i].want[j]) <= 1e-6f, "%s: element %zu is %g, not %g", CASES[i].name, j,
                      (double)out[i][j], (double)CASES[i].want[j]);
    base_arena_free(arena);
}
