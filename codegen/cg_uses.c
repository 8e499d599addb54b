/* What is live in a loop function, where each value is used, and which values are not worth a name: those are written
 * into the expression of their one user.
 *
 * Live is what a store needs.  A place that nobody reads keeps no `set` alive, so the emitted C has no variable that is
 * set and never used. */
#include "codegen/cg_c.h"

static void mark(cg_loop *c, ir_id id);

static void mark_writers(cg_loop *c, ir_id place, ir_opcode writer) {
    for (ir_id i = 1; i < c->f->n_ops; ++i)
        if (c->site[i].region && ir_at(c->f, i)->code == writer && ir_at(c->f, i)->args[0] == place)
            mark(c, i);
}

static void mark(cg_loop *c, ir_id id) {
    if (!id || c->site[id].live)
        return;
    const ir_op *op = ir_at(c->f, id);
    c->site[id].live = true;
    for (uint32_t i = 0; i < op->n_args; ++i)
        mark(c, op->args[i]);
    mark(c, c->site[id].loop);
    if (op->code == IR_READ)
        mark_writers(c, op->args[0], IR_SET);
    if (op->code == IR_COLLAPSE)
        mark_writers(c, op->args[0], IR_ACCUM);
}

static void place_region(cg_loop *c, ir_region *r, ir_id loop) {
    for (size_t i = 0; i < r->n; ++i) {
        cg_site *s = &c->site[r->ops[i]];
        s->region = r;
        s->pos = i;
        s->loop = loop;
        ir_op *op = ir_at(c->f, r->ops[i]);
        if (op->region)
            place_region(c, op->region, r->ops[i]);
    }
}

static void count_uses(cg_loop *c) {
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        if (!c->site[id].live)
            continue;
        const ir_op *op = ir_at(c->f, id);
        for (uint32_t i = 0; i < op->n_args; ++i) {
            c->site[op->args[i]].n_uses++;
            c->site[op->args[i]].user = id;
        }
    }
}

static bool is_pure_expression(const cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return true;
    return op->code == IR_LOAD && c->f->params[ir_int(op, IR_ATTR_FIELD, 0)].role < IR_OUT_ROW;
}

/* Inputs never change during a launch, so a load may be written later than it stands. */
bool cg_foldable(const cg_loop *c, ir_id id) {
    const cg_site *s = &c->site[id];
    return s->n_uses == 1 && is_pure_expression(c, id) && c->site[s->user].region == s->region;
}

/* Where in its region the value is computed in the emitted text. */
static size_t written_at(const cg_loop *c, ir_id id) {
    while (cg_foldable(c, id))
        id = c->site[id].user;
    return c->site[id].pos;
}

static bool sets_inside(const cg_loop *c, const ir_region *r, ir_id var) {
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        if (op->code == IR_SET && op->args[0] == var)
            return true;
        if (op->region && sets_inside(c, op->region, var))
            return true;
    }
    return false;
}

/* A read needs no copy when its place does not change before the last use of the value. */
static bool may_alias(const cg_loop *c, ir_id id) {
    const cg_site *s = &c->site[id];
    size_t last = s->pos;
    for (ir_id u = 1; u < c->f->n_ops; ++u) {
        if (!c->site[u].live)
            continue;
        const ir_op *op = ir_at(c->f, u);
        for (uint32_t i = 0; i < op->n_args; ++i) {
            if (op->args[i] != id)
                continue;
            if (c->site[u].region != s->region)
                return false;
            size_t at = written_at(c, u);
            if (at > last)
                last = at;
        }
    }
    ir_id var = ir_at(c->f, id)->args[0];
    for (size_t i = s->pos + 1; i <= last; ++i) {
        const ir_op *op = ir_at(c->f, s->region->ops[i]);
        if (op->region && sets_inside(c, op->region, var))
            return false;
        if (op->code == IR_SET && op->args[0] == var && i != last)
            return false;
    }
    return true;
}

void cg_analyse(cg_loop *c) {
    c->site = base_arena_new_array(c->arena, cg_site, c->f->n_ops);
    place_region(c, &c->f->body, 0);
    for (ir_id id = 1; id < c->f->n_ops; ++id)
        if (c->site[id].region && ir_at(c->f, id)->code == IR_STORE)
            mark(c, id);
    count_uses(c);
    for (ir_id id = 1; id < c->f->n_ops; ++id)
        if (c->site[id].live && ir_at(c->f, id)->code == IR_READ)
            c->site[id].aliased = may_alias(c, id);
}

bool cg_constant(const cg_loop *c, ir_id id, int64_t *out) {
    const ir_op *op = ir_at(c->f, id);
    if (op->code == IR_CONST && !ir_dtype_is_float(op->type.dtype))
        return *out = ir_find_attr(op, IR_ATTR_VALUE)->v.i, true;
    if (op->code == IR_DIMSIZE) {
        ir_dim d = cg_dim(c, ir_find_attr(op, IR_ATTR_DIM)->i);
        return d >= 0 ? (*out = d, true) : false;
    }
    if (id == c->tile_arg && c->tile_width)
        return *out = c->tile_width, true;
    return false;
}
