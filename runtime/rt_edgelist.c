/* Edge lists as SNAP, GAP and KONECT write them: `a b` or `a b weight` a line, an edge from a to b.  Lines that begin with
 * # or % are comments.  Ids are kept as they are, so the graph is square with (largest id + 1) nodes.  Weights are
 * i64 when all are whole numbers, f64 otherwise. */
#include "runtime/runtime.h"

#include <string.h>

/* One clear word when an id is so large that the rows alone do not fit, with the line it stands in. */
static tiga_status check_size(tiga_context *ctx, const rt_text *t, const rt_columns *c) {
    int64_t n_bytes = (c->max_id + 2) * 8;
    bool over = ctx->memory_limit > 0 && n_bytes > ctx->memory_limit;
    if (over || (n_bytes >= 64 << 20 && n_bytes > rt_mem_available()))
        return rt_text_fail(ctx, TIGA_E_MEMORY, t, c->max_at, "a graph with this node id needs %.1f GiB for its rows alone",
                            (double)n_bytes / (1 << 30));
    return TIGA_OK;
}

tiga_status rt_edgelist_parse(tiga_context *ctx, const rt_text *t, const rt_progress *p, tiga_graph **out,
                              tiga_array *values) {
    rt_lines l = {.text = t, .name_a = "source id", .name_b = "destination id", .values = RT_VALUES_GUESS,
                  .limit_a = RT_MAX_NODES, .limit_b = RT_MAX_NODES, .commas = true};
    rt_columns c;
    tiga_status status = rt_lines_parse(ctx, &l, p, &c);
    if (status != TIGA_OK)
        return status;
    status = c.n ? check_size(ctx, t, &c) : rt_fail(ctx, TIGA_E_FORMAT, "%s: holds no edges", t->name);
    rt_edges e = {c.n, c.max_id + 1, c.max_id + 1, c.b, c.a, c.values, c.value_dtype};
    if (status == TIGA_OK)
        status = rt_graph_from_edges(ctx, t->name, &e, rt_keeps_order(p), out, values);
    rt_edges_fini(&e);
    return status;
}
