/* grad: every `grad` of a program becomes code, innermost and first ones first, so a later one differentiates what an
 * earlier one became. */
#include "passes/grad.h"

static bool has_grad(const ir_func *f, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        if (op->code == IR_GRAD || (op->region && has_grad(f, op->region)))
            return true;
    }
    return false;
}

/* ---- is a gradient differentiated again? ---- */
/* Marks what depends on what is marked.  What a round begins with is a value of its own: no gradient goes from one round
 * into the next but that of the whole repeat, and that depends on all of its body. */
static void mark(const ir_func *f, const ir_region *r, bool *from) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        bool now = from[r->ops[i]];
        for (uint32_t k = 0; k < op->n_args; k++)
            now |= from[op->args[k]];
        if (op->region)
            mark(f, op->region, from);
        for (size_t k = 0; op->region && k < op->region->n; k++)
            now |= from[op->region->ops[k]];
        from[r->ops[i]] = now;
    }
}

static bool differentiated(const ir_func *f, const ir_region *r, ir_id but, const bool *from) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        int64_t n = op->code == IR_GRAD && r->ops[i] != but ? ir_int(op, IR_ATTR_OUTPUTS, 1) : 0;
        for (int64_t k = 0; k < 2 * n; k++)
            if (from[op->args[k]])
                return true;
        if (op->region && differentiated(f, op->region, but, from))
            return true;
    }
    return false;
}

static bool is_differentiated(grad *g, ir_id id) {
    bool *from = base_arena_new_array(g->scratch, bool, g->f->n_ops);
    from[id] = true;
    mark(g->f, &g->f->body, from);
    return differentiated(g->f, &g->f->body, id, from);
}

static bool expand_region(grad *g, ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(g->f, r->ops[i]);
        if (op->region && !expand_region(g, op->region))
            return false;
        if (op->code != IR_GRAD)
            continue;
        g->again = is_differentiated(g, r->ops[i]);
        if (!grad_expand(g, r, i--))
            return false;
    }
    return true;
}

/* In a square graph sources and rows are counted alike: one name for both, so that their tensors can be added. */
static void unify_sizes(ir_func *f) {
    for (ir_id id = 1; id < f->n_ops; id++)
        ir_at(f, id)->type = ir_type_canonical(f, &ir_at(f, id)->type);
}

bool pass_grad(ir_module *m, pass_context *ctx, base_str *err) {
    grad_cached *cache = NULL;
    grad_staged *staged = NULL;
    size_t n = m->n_funcs; /* kernels made here stand behind */
    for (size_t i = 0; i < n; i++) {
        ir_func *f = m->funcs[i];
        grad g = {
            .m = m, .f = f, .scratch = ctx->scratch, .err = err, .cache = &cache, .staged = &staged, .cuda = ctx->cuda};
        if (f->level != IR_LEVEL_PROGRAM || !has_grad(f, &f->body))
            continue;
        unify_sizes(f);
        if (!expand_region(&g, &f->body))
            return false;
    }
    return true;
}
