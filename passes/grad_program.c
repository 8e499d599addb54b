/* The reverse sweep over a program, for one `grad`.
 *
 * The operations that stand before it, in its region and in those around, are gone through twice: forwards, to find
 * what depends on the values asked for, and backwards, emitting the cotangent of each of those.  The code comes to
 * stand in the place of the `grad`.  What a round of an enclosing `repeat` begins with is a value of its own: no
 * gradient leaves the round. */
#include "passes/grad.h"

#include <string.h>

typedef struct program {
    grad *g;
    ir_builder b;
    ir_id *order; /* what stands before, in order */
    size_t n, cap;
    uint32_t n_ops;  /* of the function, before anything is emitted */
    bool *active;
    ir_id *ct;       /* by id: cotangent so far */
    ir_id **member;  /* by id of a tuple: cotangents of its members */
} program;

/* ---- what stands before ---- */
static bool collect(program *p, const ir_region *r, const ir_region *stop, size_t stop_at) {
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
static bool depends(program *p, const ir_op *op) {
    const ir_func *f = p->g->f;
    bool any = false;
    for (uint32_t i = 0; i < op->n_args && !any; i++) {
        bool tuple = op->code == IR_GET, opaque = op->type.dtype == IR_TUPLE || op->code == IR_CALL;
        any = p->active[op->args[i]] && (tuple    ? ir_dtype_is_float(op->type.dtype)
                                         : opaque ? ir_dtype_is_float(ir_at(f, op->args[i])->type.dtype)
                                                  : ir_grad_flows(f, op, i));
    }
    return any;
}

/* Does anything inside use a value that depends on what is asked for? */
static bool uses_active(const program *p, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(p->g->f, r->ops[i]);
        for (uint32_t k = 0; k < op->n_args; k++)
            if (p->active[op->args[k]] && ir_dtype_is_float(ir_at(p->g->f, op->args[k])->type.dtype))
                return true;
        if (op->region && uses_active(p, op->region))
            return true;
    }
    return false;
}

static void find_active(program *p, const ir_op *grad_op) {
    uint32_t first = 2 * (uint32_t)ir_int(grad_op, IR_ATTR_OUTPUTS, 1);
    for (uint32_t i = first; i < grad_op->n_args; i++)
        p->active[grad_op->args[i]] = true;
    for (size_t i = 0; i < p->n; i++) {
        const ir_op *op = ir_at(p->g->f, p->order[i]);
        p->active[p->order[i]] = p->active[p->order[i]] || depends(p, op) || (op->region && uses_active(p, op->region));
    }
}

/* ---- backwards ---- */
static void add_to(program *p, ir_id *place, ir_id value) {
    *place = *place ? grad_op2(&p->b, IR_ADD, *place, value) : value;
}

static void take(void *user, ir_id v, const ir_op *by, ir_id value) {
    program *p = user;
    (void)by;
    if (v < p->n_ops && p->active[v])
        add_to(p, &p->ct[v], value);
}

static bool wanted(void *user, ir_id v) {
    const program *p = user;
    return v < p->n_ops && p->active[v];
}

static size_t n_members(const program *p, const ir_op *tuple) {
    if (tuple->code == IR_CALL)
        return ir_func_find(p->g->m, ir_word(tuple, IR_ATTR_CALLEE), IR_LEVEL_KERNEL)->n_results;
    return tuple->n_args;
}

static ir_id *members(program *p, ir_id tuple) {
    if (!p->member[tuple])
        p->member[tuple] = base_arena_new_array(p->g->scratch, ir_id, n_members(p, ir_at(p->g->f, tuple)) + 1);
    return p->member[tuple];
}

static bool sweep_call(program *p, ir_id id) {
    const ir_op *op = ir_at(p->g->f, id);
    ir_id *cotangent = op->type.dtype == IR_TUPLE ? members(p, id) : &p->ct[id];
    ir_id *out = base_arena_new_array(p->g->scratch, ir_id, op->n_args + 1);
    bool any = false;
    for (size_t i = 0; i < n_members(p, op); i++)
        any |= cotangent[i] != 0;
    for (uint32_t i = 0; i < op->n_args; i++)
        out[i] = p->active[op->args[i]] && ir_dtype_is_float(ir_at(p->g->f, op->args[i])->type.dtype);
    if (!any)
        return true;
    if (!grad_call(p->g, &p->b, id, cotangent, out))
        return false;
    for (uint32_t i = 0; i < op->n_args; i++)
        if (out[i])
            take(p, op->args[i], op, out[i]);
    return true;
}

static bool sweep_op(program *p, ir_id id) {
    grad_sink sink = {.b = &p->b, .user = p, .wanted = wanted, .add = take};
    const ir_op *op = ir_at(p->g->f, id);
    if (!p->active[id])
        return true;
    if (op->code == IR_CALL) {
        return sweep_call(p, id);
    } else if (op->code == IR_GET) {
        if (p->ct[id])
            add_to(p, &members(p, op->args[0])[ir_int(op, IR_ATTR_INDEX, 0)], p->ct[id]);
    } else if (op->region || (p->ct[id] && ir_is_shape_op(op->code) && op->code != IR_IOTA)) {
        base_str_addf(p->g->err, "program '%s': a gradient through %s is not supported yet", p->g->f->name,
                      ir_op_describe(op->code)->text);
        return false;
    } else if (p->ct[id] && op->code != IR_PARAM && op->code != IR_ARG && op->code != IR_CONST && op->code != IR_IOTA) {
        grad_rule(&sink, id, p->ct[id]);
    }
    return true;
}

static ir_id gradient(program *p, ir_id v) {
    const ir_type *t = &ir_at(p->g->f, v)->type;
    return grad_full(&p->b, p->ct[v] ? p->ct[v] : grad_number(&p->b, v, 0), t);
}

/* ---- the code comes to the place of the grad ---- */
static void replace(program *p, ir_region *r, size_t at, const ir_id *value) {
    ir_func *f = p->g->f;
    ir_id grad_id = r->ops[at];
    ir_id *map = base_arena_new_array(p->g->scratch, ir_id, f->n_ops);
    ir_region old = *r;
    ir_region out = {0};
    for (size_t i = 0; i < at; i++)
        ir_append(p->g->m, &out, old.ops[i]);
    for (size_t i = 0; i < p->b.r->n; i++)
        ir_append(p->g->m, &out, p->b.r->ops[i]);
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
    uint32_t n = (uint32_t)ir_int(op, IR_ATTR_OUTPUTS, 1), n_ops = g->f->n_ops;
    ir_region code = {0};
    program p = {.g = g,
                 .b = {.m = g->m, .f = g->f, .r = &code, .span = op->span},
                 .n_ops = n_ops,
                 .active = base_arena_new_array(g->scratch, bool, n_ops),
                 .ct = base_arena_new_array(g->scratch, ir_id, n_ops),
                 .member = base_arena_new_array(g->scratch, ir_id *, n_ops)};
    collect(&p, &g->f->body, r, at);
    find_active(&p, op);
    for (uint32_t i = 0; i < n; i++)
        take(&p, op->args[i], op, op->args[n + i]);
    for (size_t i = p.n; i-- > 0;)
        if (!sweep_op(&p, p.order[i]))
            return false;
    ir_id *value = base_arena_new_array(g->scratch, ir_id, op->n_args);
    for (uint32_t i = 2 * n; i < op->n_args; i++)
        value[i - 2 * n] = gradient(&p, op->args[i]);
    replace(&p, r, at, value);
    return true;
}
