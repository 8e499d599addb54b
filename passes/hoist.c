/* hoist: a pure operation whose operands stand outside of a loop moves in front of it, as far out as its operands allow.
 *
 * There are no conditionals, so the only danger is a loop that runs zero times: an index that was never used may be out
 * of bounds.  A load or source moves only when each of its indices is known to be valid where it goes: the argument of
 * a loop that is still around it and runs over exactly that axis, or a constant inside a constant axis.  Loads of
 * results and reads of vars stay. */
#include "passes/pass_util.h"

#include <string.h>

typedef struct hoist {
    ir_func *f;
    ir_region **home; /* by id: region it stands in */
    ir_id *loop_of; /* by id: loop whose region it stands in, 0 at the top */
} hoist;

/* ---- indices ---- */
static bool is_extent(const hoist *h, ir_id id, ir_dim dim) {
    const ir_op *op = ir_at(h->f, id);
    if (op->code == IR_DIMSIZE)
        return ir_int(op, IR_ATTR_DIM, 0) == dim;
    return op->code == IR_CONST && op->type.dtype == IR_I64 && dim >= 0 && ir_find_attr(op, IR_ATTR_VALUE)->v.i == dim;
}

static int64_t arg_index(const ir_op *arg) { return ir_int(arg, IR_ATTR_INDEX, 0); }

/* Is id the argument number `index` of a loop of this kind?  The loop, or 0. */
static ir_id loop_of_arg(const hoist *h, ir_id id, ir_opcode code, int64_t index) {
    const ir_op *op = ir_at(h->f, id);
    if (op->code != IR_ARG || arg_index(op) != index || h->loop_of[id] == 0)
        return 0;
    return ir_at(h->f, h->loop_of[id])->code == code ? h->loop_of[id] : 0;
}

/* k of a lanes loop over one tile of an axis of size dim. */
static bool is_tile_lane(const hoist *h, const ir_op *lanes, ir_dim dim) {
    ir_id tiles = lanes->n_args == 2 ? loop_of_arg(h, lanes->args[1], IR_TILES, 0) : 0;
    return tiles && loop_of_arg(h, lanes->args[0], IR_TILES, 1) == tiles &&
           is_extent(h, ir_at(h->f, tiles)->args[0], dim);
}

static bool fits_axis(const hoist *h, ir_id id, ir_dim dim) {
    const ir_op *op = ir_at(h->f, id);
    if (op->code == IR_CONST)
        return dim >= 0 && ir_find_attr(op, IR_ATTR_VALUE)->v.i >= 0 && ir_find_attr(op, IR_ATTR_VALUE)->v.i < dim;
    ir_id loop = loop_of_arg(h, id, IR_LOOP, 0);
    ir_id lanes = loop_of_arg(h, id, IR_LANES, 0);
    if (loop)
        return is_extent(h, ir_at(h->f, loop)->args[0], dim);
    if (!lanes)
        return false;
    const ir_op *l = ir_at(h->f, lanes);
    return l->n_args == 1 ? is_extent(h, l->args[0], dim) : is_tile_lane(h, l, dim);
}

static bool ends_at_rows(const hoist *h, ir_id end) {
    const ir_op *op = ir_at(h->f, end);
    if (op->code == IR_NUMROWS)
        return true;
    return op->code == IR_MIN &&
           (ir_at(h->f, op->args[0])->code == IR_NUMROWS || ir_at(h->f, op->args[1])->code == IR_NUMROWS);
}

static bool is_row(const hoist *h, ir_id id) {
    if (h->f->rows_per_unit == 1 && loop_of_arg(h, id, IR_ROWS, 0))
        return true;
    ir_id range = loop_of_arg(h, id, IR_RANGE, 0);
    if (!range || !ends_at_rows(h, ir_at(h->f, range)->args[1]))
        return false;
    /* It begins at a unit or at zero, never below. */
    const ir_op *from = ir_at(h->f, ir_at(h->f, range)->args[0]);
    if (from->code == IR_CONST)
        return ir_find_attr(from, IR_ATTR_VALUE)->v.i >= 0;
    return from->code == IR_MUL &&
           (loop_of_arg(h, from->args[0], IR_ROWS, 0) || loop_of_arg(h, from->args[1], IR_ROWS, 0));
}

static bool fits_role(const hoist *h, ir_id id, ir_role role) {
    switch (role) {
    case IR_SRC:
        return loop_of_arg(h, id, IR_EDGES, 1) != 0;
    case IR_DST:
        return is_row(h, id);
    case IR_NODE:
        return is_row(h, id) || loop_of_arg(h, id, IR_EDGES, 1);
    case IR_EDGE_FIELD:
        if (ir_at(h->f, id)->code == IR_EDGEID)
            id = ir_at(h->f, id)->args[0];
        return loop_of_arg(h, id, IR_EDGES, 0) != 0;
    case IR_PARAM_FIELD:
    case IR_GRAPH_FIELD:
    case IR_OUT_ROW:
    case IR_OUT_EDGE:
    case IR_OUT_PARAM:
        break;
    }
    return false;
}

static bool load_is_safe(const hoist *h, const ir_op *op) {
    const ir_param *p = &h->f->params[ir_int(op, IR_ATTR_FIELD, 0)];
    if (p->role >= IR_OUT_ROW)
        return false;
    uint32_t lead = p->role != IR_PARAM_FIELD;
    if (op->n_args != lead + p->type.rank || (lead && !fits_role(h, op->args[0], p->role)))
        return false;
    for (uint32_t i = 0; i < p->type.rank; i++)
        if (!fits_axis(h, op->args[lead + i], p->type.dim[i]))
            return false;
    return true;
}

static bool runs_at_least_once(const hoist *h, const ir_op *loop) {
    if (loop->code != IR_LOOP && loop->code != IR_LANES && loop->code != IR_TILES)
        return false;
    const ir_op *n = ir_at(h->f, loop->args[0]);
    return n->code == IR_CONST && ir_find_attr(n, IR_ATTR_VALUE)->v.i > 0;
}

/* ---- moving ---- */
static bool may_move(const hoist *h, ir_id id, const ir_op *loop) {
    const ir_op *op = ir_at(h->f, id);
    for (uint32_t i = 0; i < op->n_args; i++)
        if (h->home[op->args[i]] == loop->region)
            return false;
    if (op->code == IR_LOAD)
        return load_is_safe(h, op) ||
               (runs_at_least_once(h, loop) && h->f->params[ir_int(op, IR_ATTR_FIELD, 0)].role < IR_OUT_ROW);
    if (op->code == IR_SOURCE || op->code == IR_EDGEID)
        return loop_of_arg(h, op->args[0], IR_EDGES, 0) || runs_at_least_once(h, loop);
    if (op->code == IR_DEGREE)
        return is_row(h, op->args[0]) || runs_at_least_once(h, loop);
    return ir_class_is_elementwise(ir_op_describe(op->code)->cls) || op->code == IR_CONST || op->code == IR_DIMSIZE ||
           op->code == IR_NUMROWS || op->code == IR_SLOT;
}

static void note_places(hoist *h, ir_region *r, ir_id loop) {
    for (size_t i = 0; i < r->n; i++) {
        h->home[r->ops[i]] = r;
        h->loop_of[r->ops[i]] = loop;
        if (ir_at(h->f, r->ops[i])->region)
            note_places(h, ir_at(h->f, r->ops[i])->region, r->ops[i]);
    }
}

/* Takes what may move out of the loop; the list comes back in `out`. */
static size_t take(hoist *h, ir_id loop_id, ir_region *to, ir_id *out) {
    const ir_op *loop = ir_at(h->f, loop_id);
    ir_region *r = loop->region;
    size_t kept = 0, n = 0;
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        if (may_move(h, id, loop)) {
            h->home[id] = to;
            h->loop_of[id] = h->loop_of[loop_id];
            out[n++] = id;
        } else {
            r->ops[kept++] = id;
        }
    }
    r->n = kept;
    return n;
}

static void hoist_region(ir_module *m, hoist *h, ir_region *r, base_arena *scratch) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *loop = ir_at(h->f, r->ops[i]);
        if (!loop->region)
            continue;
        hoist_region(m, h, loop->region, scratch);
        ir_id *moved = base_arena_new_array(scratch, ir_id, loop->region->n + 1);
        size_t n = take(h, r->ops[i], r, moved);
        for (size_t j = 0; j < n; j++)
            ir_insert(m, r, i++, moved[j]);
    }
}

static bool hoist_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    hoist h = {.f = f};
    h.home = base_arena_new_array(ctx->scratch, ir_region *, f->n_ops);
    h.loop_of = base_arena_new_array(ctx->scratch, ir_id, f->n_ops);
    note_places(&h, &f->body, 0);
    hoist_region(m, &h, &f->body, ctx->scratch);
    return true;
}

bool pass_hoist(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, hoist_func, ctx, err);
}
