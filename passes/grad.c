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

static bool expand_region(grad *g, ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(g->f, r->ops[i]);
        if (op->region && !expand_region(g, op->region))
            return false;
        if (op->code == IR_GRAD && !grad_expand(g, r, i--))
            return false;
    }
    return true;
}

/* In a square graph sources and rows are counted alike: one name for both, so that their tensors can be added. */
static void unify_sizes(ir_func *f) {
    for (ir_id id = 1; id < f->n_ops; id++)
        pass_square_type(f, &ir_at(f, id)->type);
}

bool pass_grad(ir_module *m, pass_context *ctx, base_str *err) {
    grad_cached *cache = NULL;
    size_t n = m->n_funcs; /* kernels made here stand behind */
    for (size_t i = 0; i < n; i++) {
        ir_func *f = m->funcs[i];
        grad g = {.m = m, .f = f, .scratch = ctx->scratch, .err = err, .cache = &cache};
        if (f->level != IR_LEVEL_PROGRAM || !has_grad(f, &f->body))
            continue;
        unify_sizes(f);
        if (!expand_region(&g, &f->body))
            return false;
    }
    return true;
}
