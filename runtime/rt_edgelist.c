/* Edge lists as SNAP, GAP and KONECT write them: `a b` or `a b weight` a line, an edge from a to b.  Lines that begin with
 * # or % are comments.  Ids are kept as they are, so the graph is square with (largest id + 1) nodes.  Weights are
 * i64 when all are whole numbers, f64 otherwise. */
#include "runtime/runtime.h"

#include <string.h>

tiga_status rt_edgelist_parse(tiga_context *ctx, const rt_text *t, const rt_progress *p, tiga_graph **out,
                              tiga_array *values) {
    rt_lines l = {.text = t,
                  .name_a = "source id",
                  .name_b = "destination id",
                  .values = RT_VALUES_GUESS,
                  .limit_a = RT_MAX_NODES,
                  .limit_b = RT_MAX_NODES,
                  .commas = true};
    rt_columns c;
    tiga_status status = rt_lines_parse(ctx, &l, p, &c);
    if (status != TIGA_OK)
        return status;
    status =
        c.n ? rt_rows_fit(ctx, t, c.max_at, c.max_id + 1) : rt_fail(ctx, TIGA_E_FORMAT, "%s: holds no edges", t->name);
    rt_edges e = {c.n, c.max_id + 1, c.max_id + 1, c.b, c.a, c.values, c.value_dtype};
    if (status == TIGA_OK)
        status = rt_graph_from_edges(ctx, t->name, &e, rt_keeps_order(p), out, values);
    rt_edges_fini(&e);
    return status;
}
