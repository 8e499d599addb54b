/* panels, the part of a block that walks edges: a tile of the features at a time, with accumulators in registers.
 *
 *     var sum[F]; lanes F { sum[k] = 0 }  edges { lanes F { sum[k] += x[j, k] } }  lanes F { kept[row, k] = sum[k] }
 *
 * A kernel that multiplies what it adds up needs all of it at once, so its walk has been lowered as a whole, with accumulators
 * in memory where F is open or wide.  In a block, what multiplies stands apart, and the walk needs no other feature than its own:
 *
 *     tiles F { var sum[tile]; lanes { sum[l] = 0 }  edges { lanes { sum[l] += x[j, k] } }  lanes { kept[row, k] = sum[l] } }
 *
 * Each tile walks the edges again, so not where an edge computes a function or adds to a scalar.  Changes no order. */
#include "passes/panels.h"

enum { TILE = 64 };

typedef struct tiling {
    panels *p;
    ir_region *rows;
    ir_id extent;
    bool walks;
} tiling;

static ir_op *at(const tiling *t, ir_id id) { return ir_at(t->p->f, id); }

static bool is_local(const tiling *t, ir_id var) {
    for (size_t i = 0; i < t->rows->n; i++)
        if (t->rows->ops[i] == var)
            return true;
    return false;
}

static bool is_value(const ir_op *op) {
    return ir_class_is_elementwise(ir_op_describe(op->code)->cls) || op->code == IR_LOAD || op->code == IR_ARG ||
           op->code == IR_DEGREE || op->code == IR_SOURCE || op->code == IR_EDGEID || op->code == IR_CONST;
}

static bool has_index(const ir_op *op, uint32_t from, uint32_t to, ir_id index) {
    for (uint32_t a = from; a < to; a++)
        if (op->args[a] == index)
            return true;
    return false;
}

/* Each lane touches its own element only. */
static bool check_lanes(tiling *t, const ir_op *lanes) {
    ir_id column = pass_loop_arg(t->p->f, lanes, 0), lane = pass_loop_arg(t->p->f, lanes, 1);
    if (lanes->n_args != 1 || !column || !lane || (t->extent && t->extent != lanes->args[0]))
        return false;
    t->extent = lanes->args[0];
    for (size_t i = 0; i < lanes->region->n; i++) {
        const ir_op *op = at(t, lanes->region->ops[i]);
        bool place = op->code == IR_READ || op->code == IR_SET;
        if (has_index(op, 0, op->n_args, lane))
            return false;
        if (place                  ? op->args[at(t, op->args[0])->type.rank] != column
            : op->code == IR_STORE ? !has_index(op, 0, op->n_args - 1, column)
                                   : !is_value(op))
            return false;
    }
    return true;
}

/* Loads and cheap arithmetic, and lanes. */
static bool check_edges(tiling *t, const ir_op *edges) {
    t->walks = true;
    for (size_t i = 0; i < edges->region->n; i++) {
        const ir_op *op = at(t, edges->region->ops[i]);
        if (op->code == IR_LANES ? !check_lanes(t, op) : !is_value(op) || ir_math_name(op->code, IR_F32))
            return false;
    }
    return ir_int(edges, IR_ATTR_LANES, 1) == 1;
}

static bool sets(const tiling *t, const ir_region *r, ir_id var) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(t, r->ops[i]);
        if ((op->code == IR_SET && op->args[0] == var) || (op->region && sets(t, op->region, var)))
            return true;
    }
    return false;
}

static bool check_op(tiling *t, const ir_op *op) {
    if (op->code == IR_LANES)
        return check_lanes(t, op);
    if (op->code == IR_EDGES)
        return check_edges(t, op);
    if (op->code == IR_VAR)
        return op->type.rank == 1;
    if (op->code == IR_READ)
        return !sets(t, t->rows, op->args[0]);
    if (op->code == IR_SET)
        return !is_local(t, op->args[0]);
    return is_value(op);
}

static bool is_extent_of(const tiling *t, ir_dim dim) {
    const ir_op *n = at(t, t->extent);
    if (n->code == IR_DIMSIZE)
        return ir_int(n, IR_ATTR_DIM, 0) == dim;
    return n->code == IR_CONST && dim > TILE && ir_find_attr(n, IR_ATTR_VALUE)->v.i == dim;
}

static bool fits(tiling *t) {
    for (size_t i = 0; i < t->rows->n; i++)
        if (!check_op(t, at(t, t->rows->ops[i])))
            return false;
    if (!t->walks || !t->extent)
        return false;
    for (size_t i = 0; i < t->rows->n; i++) {
        const ir_op *op = at(t, t->rows->ops[i]);
        if (op->code == IR_VAR && !is_extent_of(t, op->type.dim[0]))
            return false;
    }
    return true;
}

/* Arrays of these rows have the elements of a tile. */
static void narrow(tiling *t, ir_region *r, ir_id begin, ir_id width) {
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = at(t, r->ops[i]);
        if (op->code == IR_VAR)
            op->type.dim[0] = IR_DIM_TILE;
        if (op->code == IR_EDGES)
            narrow(t, op->region, begin, width);
        if (op->code != IR_LANES)
            continue;
        ir_set_args(t->p->m, op, (ir_id[]){width, begin}, 2);
        ir_id lane = pass_loop_arg(t->p->f, op, 1);
        for (size_t k = 0; k < op->region->n; k++) {
            ir_op *in = at(t, op->region->ops[k]);
            if ((in->code == IR_READ || in->code == IR_SET) && is_local(t, in->args[0]))
                in->args[1] = lane;
        }
    }
}

void panels_tile_walk(panels *p, ir_region *rows) {
    tiling t = {.p = p, .rows = rows};
    ir_region old = {0};
    if (!fits(&t))
        return;
    ir_id tiles = ir_op_new(p->m, p->f, IR_TILES, (ir_type){.dtype = IR_NONE}, &t.extent, 1);
    ir_set_int(p->m, at(&t, tiles), IR_ATTR_WIDTH, TILE);
    ir_region *in = at(&t, tiles)->region = ir_region_new(p->m);
    ir_id begin = pass_put_arg(p->m, p->f, in, 0), width = pass_put_arg(p->m, p->f, in, 1);
    narrow(&t, rows, begin, width);
    for (size_t i = 0; i < rows->n; i++) {
        const ir_op *op = at(&t, rows->ops[i]);
        ir_append(p->m, op->region || op->code == IR_VAR ? in : &old, rows->ops[i]);
    }
    ir_append(p->m, &old, tiles);
    *rows = old;
}
