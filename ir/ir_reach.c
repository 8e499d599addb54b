/* Does a gradient of one value with respect to another exist?  Derivatives go from floats to floats, element by element,
 * through folds and reductions, into kernels and out of them, through repeats; not through integers, bools and
 * conditions.  A derivative that is 0 everywhere (floor) counts. */
#include "ir/ir.h"

#include <string.h>

bool ir_grad_flows(const ir_func *f, const ir_op *op, uint32_t arg) {
    return ir_dtype_has_gradient(op->type.dtype) && ir_dtype_has_gradient(ir_at(f, op->args[arg])->type.dtype);
}

typedef struct reach {
    const ir_module *m;
    const ir_func *f;
    bool *from; /* by id: depends on the value that is asked about */
    ir_id round_of; /* loops around this value: only what happens within one round counts; 0: none */
} reach;

static bool through_kernel(const reach *r, const ir_op *call, size_t result) {
    const ir_func *k = ir_func_find(r->m, ir_word(call, IR_ATTR_CALLEE), IR_LEVEL_KERNEL);
    bool any = false;
    for (uint32_t i = 0; k && i < call->n_args && !any; i++)
        any = r->from[call->args[i]] && ir_grad_reaches_result(r->m, k, i, result);
    return any;
}

static bool reached(const reach *r, const ir_op *op) {
    if (op->code == IR_CALL && op->type.dtype != IR_TUPLE)
        return through_kernel(r, op, 0);
    if (op->code == IR_GET && ir_at(r->f, op->args[0])->code == IR_CALL)
        return ir_dtype_has_gradient(op->type.dtype) &&
               through_kernel(r, ir_at(r->f, op->args[0]), (size_t)ir_int(op, IR_ATTR_INDEX, 0));
    if (op->code == IR_GET && !ir_dtype_has_gradient(op->type.dtype))
        return false;
    bool tuple = op->type.dtype == IR_TUPLE || op->code == IR_GET;
    for (uint32_t i = 0; i < op->n_args; i++)
        if (r->from[op->args[i]] && (tuple ? op->code != IR_CALL : ir_grad_flows(r->f, op, i)))
            return true;
    return false;
}

static void walk(reach *r, const ir_region *region);

static bool any_yielded(const reach *r, const ir_op *yield) {
    for (uint32_t k = 0; k < yield->n_args; k++)
        if (r->from[yield->args[k]])
            return true;
    return false;
}

static bool stands_in(const ir_func *f, const ir_region *region, ir_id id) {
    for (size_t i = 0; i < region->n; i++) {
        const ir_op *op = ir_at(f, region->ops[i]);
        if (region->ops[i] == id || (op->region && stands_in(f, op->region, id)))
            return true;
    }
    return false;
}

/* What is carried may take several rounds to reach another carried value.  Around the value itself, what a round begins
 * with is a value of its own. */
static bool through_repeat(reach *r, const ir_op *op) {
    const ir_op *yield = ir_yield_of(r->f, op);
    if (r->round_of && stands_in(r->f, op->region, r->round_of)) {
        walk(r, op->region);
        return false;
    }
    for (uint32_t round = 0; round < op->n_args; round++) {
        bool changed = false;
        for (uint32_t k = 1; k < op->n_args; k++) {
            bool *carried = &r->from[op->region->ops[k - 1]];
            bool now = r->from[op->args[k]] || (round && r->from[yield->args[k - 1]]);
            changed |= now && !*carried;
            *carried |= now;
        }
        if (round && !changed)
            break;
        walk(r, op->region);
    }
    return any_yielded(r, yield);
}

static bool through_if(reach *r, const ir_op *op) {
    bool any = false;
    for (size_t i = 0; i < op->region->n; i++) {
        const ir_op *arm = ir_at(r->f, op->region->ops[i]);
        walk(r, arm->region);
        any |= any_yielded(r, ir_at(r->f, arm->region->ops[arm->region->n - 1]));
    }
    return any;
}

static void walk(reach *r, const ir_region *region) {
    for (size_t i = 0; i < region->n; i++) {
        ir_id id = region->ops[i];
        const ir_op *op = ir_at(r->f, id);
        r->from[id] = r->from[id] || reached(r, op);
        if (op->code == IR_REPEAT)
            r->from[id] = through_repeat(r, op) || r->from[id];
        else if (op->code == IR_IF)
            r->from[id] = through_if(r, op) || r->from[id];
    }
}

bool ir_grad_reaches(const ir_module *m, const ir_func *f, ir_id from, ir_id to, bool in_round) {
    reach r = {.m = m, .f = f, .from = base_alloc_zero(f->n_ops), .round_of = in_round ? to : 0};
    if (!r.from)
        return true; /* what is missing then is 0 */
    r.from[from] = true;
    walk(&r, &f->body);
    bool found = r.from[to];
    base_free(r.from);
    return found;
}

bool ir_grad_reaches_result(const ir_module *m, const ir_func *f, size_t param, size_t result) {
    reach r = {.m = m, .f = f, .from = base_alloc_zero(f->n_ops)};
    if (!r.from)
        return true;
    for (ir_id id = 1; id < f->n_ops; id++) {
        const ir_op *op = ir_at(f, id);
        r.from[id] = (op->code == IR_FIELD || op->code == IR_PARAM) && ir_dtype_has_gradient(op->type.dtype) &&
                     (size_t)ir_int(op, IR_ATTR_FIELD, -1) == param;
    }
    walk(&r, &f->body);
    const ir_op *ret = f->body.n ? ir_at(f, f->body.ops[f->body.n - 1]) : NULL;
    bool found = ret && ret->code == IR_RET && result < ret->n_args && r.from[ret->args[result]];
    base_free(r.from);
    return found;
}
