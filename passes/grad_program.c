/* The reverse sweep over operations of a program.
 *
 * For one `grad`: the operations that stand before it, in its region and in those around, are gone through twice:
 * forwards, to find what depends on the values asked for, and backwards, emitting the cotangent of each of those.  The
 * code comes to stand in the place of the `grad`.  What a round of an enclosing `repeat` begins with is a value of its
 * own: no gradient leaves the round.  Bodies of repeat and if are swept by grad_control.c with the same functions. */
#include "passes/grad.h"

#include <string.h>

/* ---- what stands before ---- */
static bool collect(grad_sweep *p, const ir_region *r, const ir_region *stop, size_t stop_at) {
    for (size_t i = 0; i < r->n; i++) {
        if (r == stop && i == stop_at)
            return true;
        const ir_op *op = ir_at(p->g->f, r->ops[i]);
        size_t mark = p->n;
        if (op->region && collect(p, op->region, stop, stop_at))
            return true;
        p->n = mark; /* a region beside the way: its operation stands for it */
        base_push(p->g->scratch, p->order, p->n, p->cap, r->ops[i]);
    }
    return false;
}

/* ---- forwards ---- */
static bool is_float(const grad_sweep *p, ir_id v) { return ir_dtype_has_gradient(ir_at(p->g->f, v)->type.dtype); }

static bool member_depends(const grad_sweep *p, const ir_op *get) {
    const ir_op *tuple = ir_at(p->g->f, get->args[0]);
    size_t k = (size_t)ir_int(get, IR_ATTR_INDEX, 0);
    if (tuple->code == IR_REPEAT)
        return p->active[tuple->region->ops[k]];
    if (tuple->code != IR_IF)
        return p->active[get->args[0]];
    for (size_t i = 0; i < tuple->region->n; i++)
        if (p->active[ir_yield_of(p->g->f, ir_at(p->g->f, tuple->region->ops[i]))->args[k]])
            return true;
    return false;
}

static bool depends(const grad_sweep *p, const ir_op *op) {
    if (op->code == IR_GET)
        return ir_dtype_has_gradient(op->type.dtype) && member_depends(p, op);
    for (uint32_t i = 0; i < op->n_args; i++)
        if (p->active[op->args[i]] && (op->code == IR_CALL ? is_float(p, op->args[i]) : ir_grad_flows(p->g->f, op, i)))
            return true;
    return false;
}

static void mark_region(grad_sweep *p, const ir_region *r);

/* What is carried may take several rounds to reach another carried value. */
static void mark_repeat(grad_sweep *p, ir_id id) {
    const ir_op *op = ir_at(p->g->f, id), *yield = ir_yield_of(p->g->f, op);
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t k = 1; k < op->n_args; k++) {
            ir_id arg = op->region->ops[k - 1];
            bool now = is_float(p, arg) && (p->active[op->args[k]] || p->active[yield->args[k - 1]]);
            changed |= now && !p->active[arg];
            p->active[arg] |= now;
            p->active[id] |= now;
        }
        mark_region(p, op->region);
        for (uint32_t k = 0; k < yield->n_args; k++)
            changed |= p->active[yield->args[k]] && is_float(p, yield->args[k]) && !p->active[op->region->ops[k]];
    }
}

static void mark_if(grad_sweep *p, ir_id id) {
    const ir_op *op = ir_at(p->g->f, id);
    for (size_t i = 0; i < op->region->n; i++) {
        const ir_op *arm = ir_at(p->g->f, op->region->ops[i]), *yield = ir_yield_of(p->g->f, arm);
        mark_region(p, arm->region);
        for (uint32_t k = 0; k < yield->n_args; k++)
            p->active[id] |= p->active[yield->args[k]] && is_float(p, yield->args[k]);
    }
}

static void mark_op(grad_sweep *p, ir_id id) {
    const ir_op *op = ir_at(p->g->f, id);
    p->pushed |= op->code == IR_PUSH && p->active[op->args[0]] && is_float(p, op->args[0]);
    if (op->code == IR_POP)
        p->active[id] = p->pushed && is_float(p, id);
    else if (op->code == IR_REPEAT)
        mark_repeat(p, id);
    else if (op->code == IR_IF)
        mark_if(p, id);
    else
        p->active[id] = p->active[id] || depends(p, op);
}

static void mark_region(grad_sweep *p, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++)
        mark_op(p, r->ops[i]);
}

/* ---- backwards ---- */
void grad_add(grad_sweep *p, ir_id *place, ir_id value) {
    *place = *place ? grad_op2(p->b, IR_ADD, *place, value) : value;
}

void grad_take(grad_sweep *p, ir_id v, ir_id value) {
    if (v < p->n_ops && p->active[v])
        grad_add(p, &p->ct[v], value);
}

static void take(void *user, ir_id v, const ir_op *by, ir_id value) {
    (void)by;
    grad_take(user, v, value);
}

static bool wanted(void *user, ir_id v) {
    const grad_sweep *p = user;
    return v < p->n_ops && p->active[v];
}

static size_t n_members(const grad_sweep *p, const ir_op *tuple) {
    if (tuple->code == IR_CALL)
        return ir_func_find(p->g->m, ir_word(tuple, IR_ATTR_CALLEE), IR_LEVEL_KERNEL)->n_results;
    return tuple->code == IR_IF ? ir_yield_of(p->g->f, tuple)->n_args : tuple->n_args - 1;
}

ir_id *grad_members(grad_sweep *p, ir_id tuple) {
    if (!p->member[tuple])
        p->member[tuple] = base_arena_new_array(p->g->scratch, ir_id, n_members(p, ir_at(p->g->f, tuple)) + 1);
    return p->member[tuple];
}

static bool sweep_call(grad_sweep *p, ir_id id) {
    const ir_op *op = ir_at(p->g->f, id);
    ir_id *cotangent = op->type.dtype == IR_TUPLE ? grad_members(p, id) : &p->ct[id];
    ir_id *out = base_arena_new_array(p->g->scratch, ir_id, op->n_args + 1);
    bool any = false;
    for (size_t i = 0; i < n_members(p, op); i++)
        any |= cotangent[i] != 0;
    for (uint32_t i = 0; i < op->n_args; i++)
        out[i] = p->active[op->args[i]] && is_float(p, op->args[i]);
    if (!any)
        return true;
    if (!grad_call(p->g, p->b, id, cotangent, out))
        return false;
    for (uint32_t i = 0; i < op->n_args; i++)
        if (out[i])
            grad_take(p, op->args[i], out[i]);
    return true;
}

static bool sweep_op(grad_sweep *p, ir_id id) {
    grad_sink sink = {.b = p->b, .user = p, .wanted = wanted, .add = take};
    const ir_op *op = ir_at(p->g->f, id);
    if (!p->active[id])
        return true;
    if (op->code == IR_CALL)
        return sweep_call(p, id);
    if (op->code == IR_REPEAT)
        return grad_repeat(p, id);
    if (op->code == IR_IF)
        return grad_if(p, id);
    if (!p->ct[id] || op->code == IR_PARAM || op->code == IR_ARG || op->code == IR_CONST || op->code == IR_POP ||
        op->code == IR_IOTA)
        return true;
    if (op->code == IR_GET)
        grad_add(p, &grad_members(p, op->args[0])[ir_int(op, IR_ATTR_INDEX, 0)], p->ct[id]);
    else
        grad_rule(&sink, id, p->ct[id]);
    return true;
}

grad_sweep grad_sweep_new(grad *g, ir_builder *b) {
    uint32_t n = g->f->n_ops;
    return (grad_sweep){.g = g,
                        .b = b,
                        .n_ops = n,
                        .active = base_arena_new_array(g->scratch, bool, n),
                        .ct = base_arena_new_array(g->scratch, ir_id, n),
                        .member = base_arena_new_array(g->scratch, ir_id *, n)};
}

void grad_sweep_forward(grad_sweep *p, const ir_id *wrt, size_t n_wrt) {
    for (size_t i = 0; i < n_wrt; i++)
        p->active[wrt[i]] = true;
    for (size_t i = 0; i < p->n; i++)
        mark_op(p, p->order[i]);
}

bool grad_sweep_back(grad_sweep *p) {
    for (size_t i = p->n; i-- > 0;)
        if (!sweep_op(p, p->order[i]))
            return false;
    return true;
}

ir_id grad_result(grad_sweep *p, ir_id v) {
    const ir_type *t = &ir_at(p->g->f, v)->type;
    return grad_full(p->b, p->ct[v] ? p->ct[v] : grad_number(p->b, v, 0), t);
}

/* ---- the code comes to the place of the grad ---- */
static void replace(grad_sweep *p, ir_region *r, size_t at, const ir_id *value) {
    ir_func *f = p->g->f;
    ir_id grad_id = r->ops[at];
    ir_id *map = base_arena_new_array(p->g->scratch, ir_id, f->n_ops);
    ir_region old = *r;
    ir_region out = {0};
    for (size_t i = 0; i < at; i++)
        ir_append(p->g->m, &out, old.ops[i]);
    for (size_t i = 0; i < p->b->r->n; i++)
        ir_append(p->g->m, &out, p->b->r->ops[i]);
    for (size_t i = at + 1; i < old.n; i++) {
        const ir_op *op = ir_at(f, old.ops[i]);
        if (op->code == IR_GET && op->args[0] == grad_id)
            map[old.ops[i]] = value[ir_int(op, IR_ATTR_INDEX, 0)];
        else
            ir_append(p->g->m, &out, old.ops[i]);
    }
    *r = out;
    ir_remap(f, map);
}

bool grad_expand(grad *g, ir_region *r, size_t at) {
    const ir_op *op = ir_at(g->f, r->ops[at]);
    uint32_t n = (uint32_t)ir_int(op, IR_ATTR_OUTPUTS, 1), n_wrt = op->n_args - 2 * n;
    ir_region code = {0};
    ir_builder b = {.m = g->m, .f = g->f, .r = &code, .span = op->span};
    grad_sweep p = grad_sweep_new(g, &b);
    collect(&p, &g->f->body, r, at);
    grad_sweep_forward(&p, op->args + 2 * n, n_wrt);
    for (uint32_t i = 0; i < n; i++) {
        ir_id ct = op->args[n + i];
        grad_take(&p, op->args[i], grad_cast(&b, ir_dtype_cotangent(ir_at(g->f, ct)->type.dtype), ct));
    }
    if (!grad_sweep_back(&p))
        return false;
    ir_id *value = base_arena_new_array(g->scratch, ir_id, n_wrt);
    for (uint32_t i = 0; i < n_wrt; i++)
        value[i] = grad_cast(&b, ir_at(g->f, op->args[2 * n + i])->type.dtype, grad_result(&p, op->args[2 * n + i]));
    replace(&p, r, at, value);
    return true;
}
