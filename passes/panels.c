/* panels: products of rows with a matrix, a tile of its columns at a time for all rows of a launch.
 *
 *     rows { tiles F { acc; loop K { lanes: acc += x[r, k] * W[k, f] } ... } ... }
 *
 * reads all of W for each row.  Here the tiles come to stand outside of the rows.  The columns of a tile are copied first
 * (the panel: as wide as a vector, filled up with zeros, whichever way W lies in memory), then ROWS_AT_ONCE rows go
 * through it side by side, each with an accumulator of its own in a register; where fewer are left, the last one fills
 * up.  k stays in order from 0, so no bit changes.
 *
 * A few rows are not worth the copying: launches of at most FEW_ROWS read W itself instead of the panel, and what does not
 * fill a step goes row by row, through wider tiles.  Not where W is turned.
 *
 * Possible when the rows hold one such product, or several with as many columns (x @ W + y @ V) whose tiles can be joined,
 * and, behind them, only loops over their columns that use their own element; what stands before them is done again for
 * each tile, so it must be cheap.  For CPUs. */
#include "passes/panels.h"

#include <string.h>

enum { FEW_ROWS = 8, VECTOR_BYTES = 64, LEAST_TERMS = 4 };

static ir_op *at(const panels *p, ir_id id) { return ir_at(p->f, id); }

/* ---- is it such a function? ---- */
static ir_id lane_arg(const panels *p, const ir_op *lanes, int64_t index) { return pass_loop_arg(p->f, lanes, index); }

/* An element of a matrix that the whole launch reads: type and what it is indexed by, or NULL. */
static const ir_type *matrix_of(const panels *p, const ir_op *op, panel *out) {
    *out = (panel){0};
    if (op->code == IR_LOAD) {
        out->field = (uint32_t)ir_int(op, IR_ATTR_FIELD, 0);
        const ir_param *from = &p->f->params[out->field];
        return from->role == IR_PARAM_FIELD && from->type.rank == 2 ? &from->type : NULL;
    }
    if (op->code != IR_READ || p->loop_of[op->args[0]] || at(p, op->args[0])->type.rank != 2)
        return NULL;
    out->place = op->args[0];
    return &at(p, op->args[0])->type;
}

static const panel *note_panel(panels *p, panel like) {
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].field == like.field && p->list[i].place == like.place && p->list[i].lane_axis == like.lane_axis)
            return &p->list[i];
    if (p->n == MOST_PANELS)
        return NULL;
    p->list[p->n] = like;
    return &p->list[p->n++];
}

/* An element that a panel has: one index is the lane's column, the other the same in all lanes. */
static bool is_panel_element(panels *p, const ir_op *op, ir_id column, const panel **out) {
    panel like;
    uint32_t first = op->code == IR_READ;
    if (!matrix_of(p, op, &like))
        return false;
    for (like.lane_axis = 0; like.lane_axis < 2; like.lane_axis++)
        if (op->args[first + like.lane_axis] == column && op->args[first + !like.lane_axis] != column)
            return (*out = note_panel(p, like)) != NULL;
    return false;
}

/* Which of the products the array holds; n_products: none. */
static size_t product_of(const panels *p, ir_id array) {
    size_t i = 0;
    while (i < p->n_products && p->product[i] != array)
        i++;
    return i;
}

static bool is_product(const panels *p, ir_id array) { return product_of(p, array) < p->n_products; }

static bool note_product(panels *p, ir_id array) {
    if (is_product(p, array))
        return true;
    if (p->n_products == MOST_PRODUCTS)
        return false;
    p->product[p->n_products++] = array;
    return true;
}

/* Lanes over the tile: they may touch accumulators at their own lane, panels, and the product at their column. */
static bool check_tile_lanes(panels *p, ir_id id, ir_id tiles) {
    const ir_op *lanes = at(p, id);
    ir_id column = lane_arg(p, lanes, 0), lane = lane_arg(p, lanes, 1);
    const panel *used;
    if (lanes->n_args != 2 || lanes->args[0] != p->width || lanes->args[1] != p->begin)
        return false;
    for (size_t i = 0; i < lanes->region->n; i++) {
        const ir_op *op = at(p, lanes->region->ops[i]);
        bool by_column = false, by_lane = false;
        for (uint32_t a = 0; a < op->n_args; a++) {
            by_column |= op->args[a] == column;
            by_lane |= op->args[a] == lane;
        }
        if (op->code == IR_STORE || op->region)
            return false;
        if (op->code == IR_SET && p->loop_of[op->args[0]] != tiles) { /* the product, once */
            bool whole =
                at(p, op->args[0])->type.rank == 1 && op->args[1] == column && op->args[2] != column && !by_lane;
            if (!whole || !note_product(p, op->args[0]))
                return false;
        } else if (by_column && !is_panel_element(p, op, column, &used)) {
            return false;
        } else if (by_lane && op->code != IR_READ && op->code != IR_SET) {
            return false;
        } else if (by_lane && (p->loop_of[op->args[0]] != tiles || op->args[1] != lane)) {
            return false;
        }
    }
    return true;
}

static bool check_tile(panels *p, const ir_region *r, ir_id tiles) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(p, r->ops[i]);
        if (op->code == IR_LANES ? !check_tile_lanes(p, r->ops[i], tiles) : op->region && op->code != IR_LOOP)
            return false;
        if (op->code == IR_LOOP && (p->loop_of[op->args[0]] || !check_tile(p, op->region, tiles)))
            return false;
        if (op->code == IR_STORE || op->code == IR_PARTIALS || op->code == IR_ACCUM ||
            (op->code == IR_VAR && op->type.rank > 1))
            return false;
        if (op->code == IR_SET && p->loop_of[op->args[0]] != tiles)
            return false;
    }
    return true;
}

/* What is computed once a row and would be once a tile: no functions, nothing that leaves the row. */
static bool check_before(const panels *p, const ir_region *r, bool in_loop) {
    for (size_t i = 0; i < r->n && !(r == p->in_rows && i == p->tiles_at); i++) {
        const ir_op *op = at(p, r->ops[i]);
        bool dear = ir_math_name(op->code, IR_F32) || op->code == IR_DIV || op->code == IR_REM || op->code == IR_SQRT ||
                    op->code == IR_ACCUM;
        if (op->code == IR_STORE || (dear && in_loop) || (op->region && op->code != IR_LOOP && op->code != IR_LANES) ||
            (op->region && (p->loop_of[op->args[0]] || !check_before(p, op->region, true))))
            return false;
    }
    return true;
}

static bool reads(const panels *p, const ir_region *r, ir_id place) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(p, r->ops[i]);
        if ((op->code == IR_READ && op->args[0] == place) || (op->region && reads(p, op->region, place)))
            return true;
    }
    return false;
}

static bool is_read_behind(const panels *p, ir_id place) {
    for (size_t i = p->tiles_at + 1; i < p->end; i++) {
        const ir_op *op = at(p, p->in_rows->ops[i]);
        if ((op->code == IR_READ && op->args[0] == place) || (op->region && reads(p, op->region, place)))
            return true;
    }
    return false;
}

/* An array that a later loop of these rows may read elsewhere is not set in tiles; one of a block is read when all are done. */
static bool may_set(const panels *p, ir_id place, ir_id loop) {
    return p->loop_of[place] == loop || (p->in_block && !is_read_behind(p, place));
}

/* Behind the product: loops over its columns, each of which takes its own element. */
bool panels_fit_behind(const panels *p) {
    for (size_t i = p->tiles_at + 1; i < p->end; i++) {
        const ir_op *op = at(p, p->in_rows->ops[i]);
        if (op->code == IR_SET || op->code == IR_STORE || (op->code == IR_READ && is_product(p, op->args[0])))
            return false;
        if (!op->region)
            continue;
        if (op->code != IR_LANES || op->n_args != 1 || op->args[0] != p->extent)
            return false;
        ir_id column = lane_arg(p, op, 0);
        for (size_t k = 0; k < op->region->n; k++) {
            const ir_op *in = at(p, op->region->ops[k]);
            bool place = in->code == IR_READ || in->code == IR_SET;
            if (in->region || in->code == IR_ACCUM || (place && is_product(p, in->args[0]) && in->args[1] != column))
                return false;
            if (in->code == IR_SET && !may_set(p, in->args[0], p->loop_of[op->region->ops[k]]))
                return false;
        }
    }
    return true;
}

/* Does a loop inside of the tiles add up enough products? */
static bool has_long_loop(const panels *p, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(p, r->ops[i]);
        const ir_op *n = op->code == IR_LOOP ? at(p, op->args[0]) : NULL;
        if (n && (n->code != IR_CONST || ir_find_attr(n, IR_ATTR_VALUE)->v.i >= LEAST_TERMS))
            return true;
    }
    return false;
}

static void note_loops(panels *p, const ir_region *r, ir_id loop) {
    for (size_t i = 0; i < r->n; i++) {
        p->loop_of[r->ops[i]] = loop;
        if (at(p, r->ops[i])->region)
            note_loops(p, at(p, r->ops[i])->region, r->ops[i]);
    }
}

static bool find(panels *p, ir_opcode code, const ir_region *r, size_t *found) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (at(p, r->ops[i])->code == code) {
            *found = i;
            n++;
        }
    return n == 1;
}

/* ---- two products for one row: their tiles become one loop ---- */
static void replace(panels *p, ir_region *r, ir_id from, ir_id to) {
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = at(p, r->ops[i]);
        for (uint32_t a = 0; a < op->n_args; a++)
            op->args[a] = op->args[a] == from ? to : op->args[a];
        if (op->region)
            replace(p, op->region, from, to);
    }
}

/* Does `later` read an array that is set in r, or does r something that cannot be done later? */
static bool feeds(const panels *p, const ir_region *r, const ir_region *later) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(p, r->ops[i]);
        if (op->code == IR_STORE || op->code == IR_ACCUM || (op->code == IR_SET && reads(p, later, op->args[0])) ||
            (op->region && feeds(p, op->region, later)))
            return true;
    }
    return false;
}

/* The tiles at i go into those at k, behind which nothing of the rows moves. */
static bool may_join(const panels *p, size_t i, size_t k) {
    const ir_op *a = at(p, p->in_rows->ops[i]), *b = at(p, p->in_rows->ops[k]);
    bool args = lane_arg(p, a, 0) && lane_arg(p, a, 1) && lane_arg(p, b, 0) && lane_arg(p, b, 1);
    if (!args || a->args[0] != b->args[0] || feeds(p, a->region, b->region))
        return false;
    for (size_t j = i + 1; j < k; j++) {
        const ir_op *op = at(p, p->in_rows->ops[j]);
        if (op->region || op->code == IR_READ || op->code == IR_SET || op->code == IR_STORE)
            return false;
    }
    return true;
}

static void join(panels *p, size_t i, size_t k) {
    ir_op *a = at(p, p->in_rows->ops[i]), *b = at(p, p->in_rows->ops[k]);
    for (int64_t n = 0; n < 2; n++)
        replace(p, a->region, lane_arg(p, a, n), lane_arg(p, b, n));
    ir_region both = {0};
    const ir_region *from[2] = {a->region, b->region};
    for (int64_t n = 0; n < 2; n++)
        ir_append(p->m, &both, lane_arg(p, b, n));
    for (int x = 0; x < 2; x++)
        for (size_t n = 0; n < from[x]->n; n++)
            if (at(p, from[x]->ops[n])->code != IR_ARG)
                ir_append(p->m, &both, from[x]->ops[n]);
    *b->region = both;
    ir_erase(p->in_rows, i);
}

static void join_tiles(panels *p) {
    for (size_t i = 0; i < p->in_rows->n; i++)
        for (size_t k = i + 1; at(p, p->in_rows->ops[i])->code == IR_TILES && k < p->in_rows->n; k++)
            if (at(p, p->in_rows->ops[k])->code == IR_TILES) {
                if (may_join(p, i, k))
                    join(p, i--, k);
                break;
            }
}

bool panels_walk(const panels *p, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(p, r->ops[i]);
        if (op->code == IR_EDGES || (op->region && panels_walk(p, op->region)))
            return true;
    }
    return false;
}

static int64_t lanes_of(const panels *p, ir_id product) {
    size_t bytes = ir_dtype_bytes(at(p, product)->type.dtype);
    return VECTOR_BYTES / (int64_t)(bytes < 4 ? 4 : bytes);
}

static bool check_products(const panels *p, const ir_region *in_tiles) {
    for (size_t i = 0; i < p->n_products; i++)
        if (ir_dtype_is_complex(at(p, p->product[i])->type.dtype) || reads(p, in_tiles, p->product[i]) ||
            lanes_of(p, p->product[i]) != lanes_of(p, p->product[0]))
            return false;
    return true;
}

bool panels_fit_product(panels *p, size_t tiles_at) {
    ir_id tiles_id = p->in_rows->ops[tiles_at];
    const ir_op *tiles = at(p, tiles_id);
    p->tiles_at = tiles_at;
    p->extent = tiles->args[0];
    p->begin = lane_arg(p, tiles, 0);
    p->width = lane_arg(p, tiles, 1);
    p->n = p->n_products = 0;
    return p->loop_of[p->extent] == 0 && check_tile(p, tiles->region, tiles_id) && p->n && p->n_products &&
           check_products(p, tiles->region) && has_long_loop(p, tiles->region);
}

void panels_begin(panels *p, ir_region *top, size_t rows_at) {
    const ir_op *rows = at(p, top->ops[rows_at]);
    p->top = top;
    p->rows_at = rows_at;
    p->in_rows = rows->region;
    p->row = lane_arg(p, rows, 0);
    join_tiles(p);
    p->end = p->in_rows->n;
    p->loop_of = base_arena_new_array(p->scratch, ir_id, p->f->n_ops);
    note_loops(p, &p->f->body, 0);
}

bool panels_fit(panels *p) {
    size_t tiles_at;
    return !panels_walk(p, p->in_rows) && find(p, IR_TILES, p->in_rows, &tiles_at) && panels_fit_product(p, tiles_at) &&
           check_before(p, p->in_rows, false) && panels_fit_behind(p);
}

/* ---- the tile's own array, full vectors, panels ---- */
static void read_panel(panels *p, ir_op *op, const panel *from, ir_id lane) {
    ir_id other = op->args[(op->code == IR_READ) + !from->lane_axis];
    op->code = IR_READ;
    ir_drop_attr(op, IR_ATTR_FIELD);
    ir_set_args(p->m, op, (ir_id[]){from->var, other, lane}, 3);
}

/* All lanes of a vector, whether the matrix has so many columns left or not: what the others give is not used. */
static void fill_lanes(panels *p, ir_op *lanes, ir_id full) {
    ir_id column = lane_arg(p, lanes, 0), lane = lane_arg(p, lanes, 1);
    ir_set_args(p->m, lanes, (ir_id[]){full}, 1);
    const panel *from;
    for (size_t i = 0; i < lanes->region->n; i++) {
        ir_op *op = at(p, lanes->region->ops[i]);
        if (is_panel_element(p, op, column, &from))
            read_panel(p, op, from, lane);
        if (op->code == IR_SET && is_product(p, op->args[0]))
            ir_set_args(p->m, op, (ir_id[]){p->tile[product_of(p, op->args[0])], lane, op->args[2]}, 3);
    }
}

static void fill_tile(panels *p, ir_region *r, ir_id full) {
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = at(p, r->ops[i]);
        if (op->code == IR_VAR && op->type.rank == 1)
            op->type.dim[0] = p->lanes;
        if (op->code == IR_LANES)
            fill_lanes(p, op, full);
        else if (op->region)
            fill_tile(p, op->region, full);
    }
}

/* The loops behind the product go over the columns of the tile. */
static void narrow_lanes(panels *p, ir_op *lanes) {
    ir_set_args(p->m, lanes, (ir_id[]){p->width, p->begin}, 2);
    ir_id lane = lane_arg(p, lanes, 1);
    for (size_t i = 0; i < lanes->region->n; i++) {
        ir_op *op = at(p, lanes->region->ops[i]);
        if (op->code == IR_READ && is_product(p, op->args[0]))
            ir_set_args(p->m, op, (ir_id[]){p->tile[product_of(p, op->args[0])], lane}, 2);
    }
}

static const ir_type *type_of_panel(const panels *p, const panel *x) {
    return x->place ? &ir_at(p->f, x->place)->type : &p->f->params[x->field].type;
}

static void declare_panel(panels *p, panel *x, ir_region *r) {
    const ir_type *t = type_of_panel(p, x);
    ir_type type = {.dtype = t->dtype, .rank = 2, .dim = {t->dim[!x->lane_axis], p->lanes}};
    x->var = pass_put(p->m, p->f, r, IR_VAR, type, NULL, 0);
    ir_set_word(p->m, at(p, x->var), IR_ATTR_NAME, "panel");
}

/* panel[k, l] = matrix[k, begin + l], or [begin + l, k]; 0 in the lanes that the matrix does not reach. */
static void fill_panel(panels *p, const panel *x, ir_region *r, ir_id full, ir_id zero) {
    const ir_type *t = type_of_panel(p, x);
    ir_id n = pass_put_size(p->m, p->f, r, t->dim[!x->lane_axis]);
    ir_id loop = pass_put(p->m, p->f, r, IR_LOOP, (ir_type){.dtype = IR_NONE}, &n, 1);
    if (!x->place && x->lane_axis && !p->in_block)
        ir_set_int(p->m, at(p, loop), IR_ATTR_FEW, FEW_ROWS);
    ir_region *in = at(p, loop)->region;
    ir_id k = pass_put_arg(p->m, p->f, in, 0);
    for (int copy = 0; copy < 2; copy++) {
        ir_id args[2] = {copy ? p->width : full, p->begin}, index[3] = {x->place};
        ir_id lanes = pass_put(p->m, p->f, in, IR_LANES, (ir_type){.dtype = IR_NONE}, args, copy ? 2 : 1);
        ir_region *body = at(p, lanes)->region;
        ir_id column = pass_put_arg(p->m, p->f, body, 0), lane = pass_put_arg(p->m, p->f, body, 1), value = zero;
        index[1 + x->lane_axis] = column;
        index[1 + !x->lane_axis] = k;
        if (copy && x->place)
            value = pass_put(p->m, p->f, body, IR_READ, ir_scalar(t->dtype), index, 3);
        else if (copy)
            value = pass_put(p->m, p->f, body, IR_LOAD, ir_scalar(t->dtype), index + 1, 2);
        if (copy && !x->place)
            ir_set_int(p->m, at(p, value), IR_ATTR_FIELD, x->field);
        pass_put(p->m, p->f, body, IR_SET, (ir_type){.dtype = IR_NONE}, (ir_id[]){x->var, k, lane, value}, 4);
    }
}

/* ---- rows side by side ---- */
static bool differs(const panels *p, const ir_op *op) {
    bool own = op->code == IR_VAR || op->code == IR_PARTIALS;
    for (uint32_t i = 0; i < op->n_args && !own; i++)
        own = p->map[0][op->args[i]] != p->map[1][op->args[i]];
    return own;
}

static ir_id copy_op(panels *p, ir_id id, const ir_id *map, ir_region *to) {
    ir_id args[8];
    const ir_op *from = at(p, id);
    uint32_t n = from->n_args;
    BASE_CHECK(n <= 8);
    for (uint32_t i = 0; i < n; i++)
        args[i] = map[from->args[i]] ? map[from->args[i]] : from->args[i];
    ir_id copy = pass_put(p->m, p->f, to, from->code, from->type, args, n);
    ir_copy_attrs(p->m, at(p, id), at(p, copy));
    at(p, copy)->span = at(p, id)->span;
    return copy;
}

/* Each operation once for each row, those that have nothing to do with the row once; one loop for the loops of all. */
static void side_by_side(panels *p, const ir_region *from, ir_region *to, int n_rows) {
    for (size_t i = 0; i < from->n; i++) {
        ir_id id = from->ops[i];
        if (id == p->row)
            continue;
        bool own = n_rows > 1 && !at(p, id)->region && differs(p, at(p, id));
        for (int j = 0; j < n_rows; j++)
            p->map[j][id] = j == 0 || own ? copy_op(p, id, p->map[j], to) : p->map[0][id];
        if (at(p, id)->region)
            side_by_side(p, at(p, id)->region, at(p, p->map[0][id])->region, n_rows);
    }
}

static void put_copies(panels *p, const ir_region *one, ir_id rows, int n_rows) {
    ir_region *body = at(p, rows)->region;
    for (int j = 0; j < n_rows; j++)
        memset(p->map[j], 0, p->f->n_ops * sizeof *p->map[j]);
    for (int j = 0; j < n_rows; j++)
        p->map[j][p->row] = pass_put_arg(p->m, p->f, body, j);
    side_by_side(p, one, body, n_rows);
}

static void put_step(panels *p, const ir_region *one, ir_region *r, bool few) {
    ir_id rows = pass_put(p->m, p->f, r, IR_ROWS, (ir_type){.dtype = IR_NONE}, NULL, 0);
    ir_set_int(p->m, at(p, rows), IR_ATTR_STEP, ROWS_AT_ONCE);
    if (few)
        ir_set_int(p->m, at(p, rows), IR_ATTR_FEW, FEW_ROWS);
    put_copies(p, one, rows, ROWS_AT_ONCE);
}

static void new_maps(panels *p) {
    size_t most = p->f->n_ops * (ROWS_AT_ONCE + 4) + 64;
    for (int j = 0; j < ROWS_AT_ONCE; j++)
        p->map[j] = base_arena_new_array(p->scratch, ir_id, most);
}

static void put_rest(panels *p, ir_region *r) {
    ir_id rows = pass_put(p->m, p->f, r, IR_ROWS, (ir_type){.dtype = IR_NONE}, NULL, 0);
    ir_set_int(p->m, at(p, rows), IR_ATTR_REST, ROWS_AT_ONCE);
    ir_set_int(p->m, at(p, rows), IR_ATTR_FEW, FEW_ROWS);
    put_copies(p, p->in_rows, rows, 1);
}

/* The rows as one region without its loops over tiles: what was before, the tile, what was behind. */
static ir_region *one_row(panels *p, ir_id full) {
    ir_region *one = ir_region_new(p->m);
    const ir_op *tiles = at(p, p->in_rows->ops[p->tiles_at]);
    for (size_t i = 0; i < p->n_products; i++) {
        ir_type type = {.dtype = at(p, p->product[i])->type.dtype, .rank = 1, .dim = {p->lanes}};
        p->tile[i] = ir_op_new(p->m, p->f, IR_VAR, type, NULL, 0);
        ir_set_word(p->m, at(p, p->tile[i]), IR_ATTR_NAME, "product");
    }
    fill_tile(p, tiles->region, full);
    for (size_t i = 0; i < p->in_rows->n; i++) {
        ir_id id = p->in_rows->ops[i];
        if (i == p->tiles_at) {
            for (size_t k = 0; k < p->n_products; k++)
                ir_append(p->m, one, p->tile[k]);
            for (size_t k = 0; k < tiles->region->n; k++)
                if (at(p, tiles->region->ops[k])->code != IR_ARG)
                    ir_append(p->m, one, tiles->region->ops[k]);
            continue;
        }
        if (i > p->tiles_at && at(p, id)->code == IR_LANES)
            narrow_lanes(p, at(p, id));
        if (!is_product(p, id))
            ir_append(p->m, one, id);
    }
    return one;
}

static bool all_straight(const panels *p) {
    for (size_t i = 0; i < p->n; i++)
        if (!p->list[i].lane_axis)
            return false;
    return true;
}

void panels_turn_around(panels *p) {
    ir_id tiles_id = p->in_rows->ops[p->tiles_at];
    p->lanes = lanes_of(p, p->product[0]);
    ir_erase(p->top, p->rows_at);
    bool few = !p->in_block && all_straight(p);
    ir_region rest = {0};
    new_maps(p);
    if (few)
        put_rest(p, &rest);
    ir_id full = pass_put_number(p->m, p->f, p->top, p->lanes);
    for (size_t i = 0; i < p->n; i++)
        declare_panel(p, &p->list[i], p->top);
    ir_id zero[MOST_PANELS];
    for (size_t i = 0; i < p->n; i++) {
        ir_dtype of = type_of_panel(p, &p->list[i])->dtype;
        zero[i] = pass_put(p->m, p->f, p->top, IR_CONST, ir_scalar(of), NULL, 0);
        ir_set_value(p->m, at(p, zero[i]), (ir_scalar_value){.i = 0});
    }
    ir_region *one = one_row(p, full), *in = at(p, tiles_id)->region;
    in->n = 0;
    ir_append(p->m, in, p->begin);
    ir_append(p->m, in, p->width);
    for (size_t i = 0; i < p->n; i++)
        fill_panel(p, &p->list[i], in, full, zero[i]);
    put_step(p, one, in, few);
    ir_set_int(p->m, at(p, tiles_id), IR_ATTR_WIDTH, p->lanes);
    ir_append(p->m, p->top, tiles_id);
    if (few)
        ir_append(p->m, p->top, rest.ops[0]);
}

/* ---- what was decided ---- */
/* Is there a product with a matrix, other than one for each edge? */
static bool multiplies(const panels *p, const ir_region *r, bool in_tiles, bool in_loop) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(p, r->ops[i]);
        panel unused;
        if (in_tiles && in_loop && op->code == IR_LOAD && matrix_of(p, op, &unused))
            return true;
        bool tiles = in_tiles || op->code == IR_TILES, loop = in_loop || (in_tiles && op->code == IR_LOOP);
        if (op->region && op->code != IR_EDGES && multiplies(p, op->region, tiles, loop))
            return true;
    }
    return false;
}

enum { ROW_BY_ROW, IN_BLOCKS, ALL_ROWS };

static void tell(panels *p, pass_context *ctx, int how) {
    static const char *const words[] = {"row by row", "for 64 rows at a time", "for all rows at a time"};
    const char *why = p->why                     ? p->why
                      : p->f->rows_per_unit != 1 ? "because they are added up at once"
                                                 : "because of what a row does before or behind them";
    if (ctx->notes && (how || multiplies(p, &p->f->body, false, false)))
        pass_note_add(ctx, p->m,
                      (pass_note){PASS_NOTE_PRODUCTS, .program = "", .kernel = p->f->name, .other = words[how],
                                  .text = how ? NULL : why});
}

static bool panels_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    panels p = {.m = m, .f = f, .scratch = ctx->scratch};
    size_t rows_at;
    int how = ROW_BY_ROW;
    if (ctx->cuda)
        return true;
    if (f->rows_per_unit == 1 && find(&p, IR_ROWS, &f->body, &rows_at)) {
        panels_begin(&p, &f->body, rows_at);
        how = panels_fit(&p) ? ALL_ROWS : panels_in_blocks(&p) ? IN_BLOCKS : ROW_BY_ROW;
    }
    tell(&p, ctx, how);
    if (how == ALL_ROWS)
        panels_turn_around(&p);
    return true;
}

bool pass_panels(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, panels_func, ctx, err);
}
