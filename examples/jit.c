/* A kernel from text to a result inside a C program.  Build: cc jit.c -o jit $(pkg-config --cflags --libs tigac) */
#include "tiga/jit.h"

#include <stdio.h>
#include <string.h>

static const char text[] = "kernel weighted_sum(src x: f32, edge w: f32) -> f32 {\n"
                           "    return reduce sum(edge.w * src.x)\n"
                           "}\n";

static int fail(tiga_context *ctx, const tigac_result *why) {
    fprintf(stderr, "%s\n", why && *why->rendered ? why->rendered : tiga_error_text(ctx));
    return 1;
}

int main(void) {
    const int64_t offsets[] = {0, 2, 3, 5}, three = 3, five = 5;
    const int32_t sources[] = {0, 2, 1, 0, 1};
    float x[] = {1, 2, 3}, w[] = {2, 3, 4, 5, 6}, y[3];
    tiga_context *ctx;
    tiga_cache *cache;
    tiga_module *m;
    tiga_graph *g;
    tiga_prepared *call;
    tigac_result *why;
    if (tiga_context_new(NULL, &ctx) || tiga_cache_new(NULL, &cache))
        return 1;

    tiga_jit_options o = tiga_jit_defaults();
    o.file_name = "jit.tg";
    o.cache = cache;
    if (tiga_jit_source(ctx, text, strlen(text), &o, &m, &why))
        return fail(ctx, why);
    tigac_result_free(why);

    if (tiga_graph_from_csr(ctx, 3, 3, offsets, sources, 32, TIGA_BORROW, &g))
        return fail(ctx, NULL);
    tiga_array ax = tiga_array_borrow(x, TIGA_F32, 1, &three), aw = tiga_array_borrow(w, TIGA_F32, 1, &five);
    tiga_array ay = tiga_array_borrow(y, TIGA_F32, 1, &three);
    tiga_binding in[] = {{"x", &ax}, {"w", &aw}}, out[] = {{"out", &ay}};
    if (tiga_prepare(ctx, m, "weighted_sum", &g, 1, in, 2, out, 1, &call))
        return fail(ctx, NULL);
    for (int round = 0; round < 3; round++, x[0] += 1) { /* what the arrays hold may change between launches */
        if (tiga_prepared_launch(call, NULL))
            return fail(ctx, NULL);
        printf("%g %g %g\n", (double)y[0], (double)y[1], (double)y[2]);
    }
    tiga_cache_counters n = tiga_cache_get_counters(cache);
    printf("compiled %lld, from disk %lld, from memory %lld\n", (long long)n.misses, (long long)n.disk_hits,
           (long long)n.memory_hits);
    tiga_prepared_free(call);
    tiga_graph_free(g);
    tiga_module_free(m);
    tiga_cache_free(cache);
    tiga_context_free(ctx);
    return 0;
}
