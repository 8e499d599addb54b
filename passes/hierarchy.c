/* hierarchy: one task function for each exported kernel and program -- which buffers there are, what they hold, and
 * the steps that fill them.  A kernel is one launch between bound arrays; programs are in hierarchy_program.c. */
#include "passes/hierarchy.h"

#include <string.h>

static bool kernel_task(ir_module *m, const ir_func *k, pass_context *ctx, base_str *err) {
    const ir_func *loop = ir_func_find(m, k->name, IR_LEVEL_LOOP);
    if (!loop || ir_func_find(m, base_arena_printf(ctx->scratch, "%s.total", k->name), IR_LEVEL_LOOP)) {
        base_str_addf(err, "kernel '%s' %s", k->name,
                      loop ? "has a total: it cannot be exported" : "was not lowered to a loop");
        return false;
    }
    hier h;
    hier_begin(&h, m, k, ctx, err);
    uint32_t rows = ir_sym(m, h.t, ".dst");
    ir_id *inst = base_arena_new_array(ctx->scratch, ir_id, k->n_params + k->n_results + 1);
    for (size_t i = 0; i < k->n_params; i++)
        inst[i] = hier_bind(&h, "param", i, k->params[i].name);
    for (size_t i = 0; i < k->n_results; i++)
        inst[k->n_params + i] = hier_bind(&h, "result", i, k->results[i].name);
    ir_id *dims = base_arena_new_array(ctx->scratch, ir_id, loop->n_syms + 1);
    for (size_t i = 0; i < loop->n_syms; i++)
        dims[i] = hier_dim(&h, ir_dim_sym(ir_sym(m, h.t, loop->syms[i])));
    hier_launch l = {.loop = loop,
                     .graph = ir_walks(loop) ? 0 : -1,
                     .in = inst,
                     .n_in = k->n_params,
                     .out = inst + k->n_params,
                     .n_out = k->n_results,
                     .rows = hier_dim(&h, ir_dim_sym(rows)),
                     .dims = dims};
    hier_emit_launch(&h, &l);
    hier_end(&h);
    return true;
}

bool pass_hierarchy(ir_module *m, pass_context *ctx, base_str *err) {
    size_t n = m->n_funcs;
    for (size_t i = 0; i < n; i++) {
        const ir_func *f = m->funcs[i];
        if (!f->exported)
            continue;
        if (f->level == IR_LEVEL_KERNEL ? !kernel_task(m, f, ctx, err)
                                        : f->level == IR_LEVEL_PROGRAM && !hier_program(m, f, ctx, err))
            return false;
    }
    return true;
}
