/* One reduction or store: what is declared before the loops, done inside them and read after them.  The formulas are
 * those of docs/ir.md, operation by operation, because every bit counts. */
#include "passes/lower.h"

#include <string.h>

static bool is_arg(ir_kind k) { return k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX; }

ir_opcode lower_combine_op(ir_kind k) {
    switch ((int)k) {
    case IR_KIND_SUM:
        return IR_ADD;
    case IR_KIND_PROD:
        return IR_MUL;
    case IR_KIND_MIN:
        return IR_MIN;
    case IR_KIND_MAX:
        return IR_MAX;
    case IR_KIND_AND:
        return IR_AND;
    case IR_KIND_OR:
        return IR_OR;
    }
    BASE_BUG("%s has no combining operation", ir_kind_text(k));
}

/* ---- making items ---- */
static void set_shape(lower_item *it, const ir_type *shape) {
    it->shape = *shape;
    it->n_axes = lower_axes(shape, it->axes);
}

lower_item lower_item_reduce(lower *L, ir_id id) {
    const ir_op *op = ir_at(L->k, id);
    lower_item it = {.kind = LOWER_REDUCE, .op = id, .reducer = ir_kind_of(op), .value = op->args[0]};
    set_shape(&it, &op->type);
    it.scalar_nest = L->info[id].scalar_nest;
    return it;
}

lower_item lower_item_store(lower *L, ir_id value, const ir_type *shape, uint32_t field, bool scalar_nest) {
    (void)L;
    lower_item it = {.kind = LOWER_STORE, .value = value, .field = field, .scalar_nest = scalar_nest};
    set_shape(&it, shape);
    return it;
}

/* ---- places ---- */
static bool in_tile(const lower *L) { return lower_find_scope(L, LOWER_TILES) != 0; }

/* A place for the first n axes of a reduction; in a tile only the last axis needs room, `full` says that it is there. */
ir_id lower_item_place(lower *L, ir_dtype dtype, const lower_item *it, size_t n, const char *name) {
    if (!in_tile(L))
        return lower_var(L, dtype, it->axes, n, name);
    return lower_var(L, dtype, (ir_dim[]){IR_DIM_TILE}, n == it->n_axes, name);
}

lower_item lower_item_start(lower *L, const lower_item *of, ir_id place, size_t n, ir_id value) {
    lower_item it = {.kind = LOWER_START, .place = place, .value = value, .n_axes = n};
    it.scalar_nest = of->scalar_nest || n < of->n_axes;
    if (in_tile(L) && n < of->n_axes)
        it.n_axes = 0;
    memcpy(it.axes, of->axes, sizeof it.axes);
    return it;
}

static ir_id new_partials(lower *L, const lower_item *it) {
    ir_id p = lower_raw(L, IR_PARTIALS, ir_at(L->k, it->value)->type.dtype, NULL, 0);
    ir_set_word(L->m, ir_at(L->f, p), IR_ATTR_KIND, ir_kind_text(it->reducer));
    return p;
}

size_t lower_item_begin(lower *L, const lower_item *it, lower_item *starts) {
    if (it->kind == LOWER_COMBINE) {
        L->span = ir_at(L->k, it->op)->span;
        return lower_combine_begin(L, it, starts);
    }
    if (it->kind != LOWER_REDUCE)
        return 0;
    L->span = ir_at(L->k, it->op)->span;
    lower_acc *acc = &L->acc[it->op];
    if (it->n_axes == 0) {
        acc->var = new_partials(L, it);
        return 0;
    }
    ir_dtype dtype = ir_at(L->k, it->value)->type.dtype;
    ir_kind primitive = it->reducer == IR_KIND_ARGMIN   ? IR_KIND_MIN
                        : it->reducer == IR_KIND_ARGMAX ? IR_KIND_MAX
                                                        : it->reducer;
    acc->var = lower_item_place(L, dtype, it, it->n_axes, is_arg(it->reducer) ? "best" : ir_kind_text(it->reducer));
    starts[0] =
        lower_item_start(L, it, acc->var, it->n_axes, lower_const(L, dtype, ir_kind_identity(primitive, dtype)));
    if (!is_arg(it->reducer))
        return 1;
    acc->edge = lower_item_place(L, IR_I64, it, it->n_axes, "edge");
    starts[1] = lower_item_start(L, it, acc->edge, it->n_axes, lower_i64(L, -1));
    return 2;
}

void lower_item_end(lower *L, const lower_item *it) {
    if (it->kind == LOWER_COMBINE) {
        L->span = ir_at(L->k, it->op)->span;
        lower_combine_end(L, it);
    }
    if (it->kind != LOWER_REDUCE || it->n_axes)
        return;
    lower_acc *acc = &L->acc[it->op];
    L->span = ir_at(L->k, it->op)->span;
    acc->result = lower_raw(L, IR_COLLAPSE, ir_at(L->k, it->op)->type.dtype, &acc->var, 1);
    if (is_arg(it->reducer))
        acc->result = lower_pure1(L, IR_SOURCE, IR_I64, acc->result);
}

/* ---- updates ---- */
/* Index of a place inside the loops over the first n axes; in a tile: the lane, or nothing. */
static size_t place_index(const lower *L, const lower_item *it, size_t n, const ir_id *axes, ir_id *out) {
    if (!in_tile(L)) {
        memcpy(out, axes, n * sizeof *axes);
        return n;
    }
    if (n == 0 || n < it->n_axes)
        return 0;
    out[0] = L->scope[lower_depth(L, axes[n - 1])].arg[1];
    return 1;
}

static void update_arg(lower *L, const lower_item *it, const ir_id *at, size_t n, ir_id v) {
    const lower_acc *acc = &L->acc[it->op];
    ir_dtype t = ir_at(L->k, it->value)->type.dtype;
    ir_id e = L->scope[lower_find_scope(L, LOWER_EDGES)].arg[0];
    ir_id b = lower_read_now(L, acc->var, at, n), be = lower_read_now(L, acc->edge, at, n);
    ir_id first = lower_pure2(L, IR_LT, IR_BOOL, be, lower_i64(L, 0));
    ir_id better = lower_pure2(L, it->reducer == IR_KIND_ARGMIN ? IR_LT : IR_GT, IR_BOOL, v, b);
    ir_id wins = lower_pure2(L, IR_OR, IR_BOOL, first, better);
    if (ir_dtype_is_float(t)) {
        ir_id nan = lower_pure2(L, IR_NE, IR_BOOL, v, v), number = lower_pure2(L, IR_EQ, IR_BOOL, b, b);
        wins = lower_pure2(L, IR_OR, IR_BOOL, wins, lower_pure2(L, IR_AND, IR_BOOL, nan, number));
    }
    lower_set(L, acc->var, at, n, lower_pure3(L, IR_SELECT, t, wins, v, b));
    lower_set(L, acc->edge, at, n, lower_pure3(L, IR_SELECT, IR_I64, wins, e, be));
}

static void update_partials(lower *L, const lower_item *it, ir_id v) {
    const lower_scope *edges = &L->scope[lower_find_scope(L, LOWER_EDGES)];
    ir_id args[4] = {L->acc[it->op].var, edges->arg[2], v, edges->arg[0]};
    lower_raw(L, IR_ACCUM, IR_NONE, args, is_arg(it->reducer) ? 4 : 3);
}

static void update(lower *L, lower_item *it, const ir_id *axes) {
    ir_id idx[IR_MAX_RANK], at[IR_MAX_RANK];
    L->span = ir_at(L->k, it->op)->span;
    lower_index(L, &it->shape, axes, idx);
    ir_id v = lower_eval_in(L, it->value, &it->shape, idx);
    L->span = ir_at(L->k, it->op)->span;
    size_t n = place_index(L, it, it->n_axes, axes, at);
    if (it->n_axes == 0)
        update_partials(L, it, v);
    else if (is_arg(it->reducer))
        update_arg(L, it, at, n, v);
    else
        lower_set(L, L->acc[it->op].var, at, n,
                  lower_pure2(L, lower_combine_op(it->reducer), ir_at(L->k, it->op)->type.dtype,
                              lower_read_now(L, L->acc[it->op].var, at, n), v));
}

static void store(lower *L, const lower_item *it, const ir_id *axes) {
    ir_id idx[IR_MAX_RANK], args[2 + IR_MAX_RANK];
    size_t n = 0;
    lower_index(L, &it->shape, axes, idx);
    ir_id v = lower_eval_in(L, it->value, &it->shape, idx);
    bool edge = L->f->params[it->field].role == IR_OUT_EDGE;
    args[n++] = edge ? lower_edge(L) : L->row;
    memcpy(args + n, idx, it->shape.rank * sizeof *idx);
    n += it->shape.rank;
    args[n++] = v;
    ir_id s = lower_raw(L, IR_STORE, IR_NONE, args, n);
    ir_set_int(L->m, ir_at(L->f, s), IR_ATTR_FIELD, it->field);
}

/* The number of the element in its block of rows, modulo 16 where the last axis is a multiple of 16. */
static void update_total(lower *L, const lower_item *it, const ir_id *axes) {
    ir_id idx[IR_MAX_RANK];
    lower_index(L, &it->shape, axes, idx);
    ir_id v = lower_eval_in(L, it->value, &it->shape, idx), lane = L->scope[L->row_scope].arg[1];
    const ir_op *op = ir_at(L->k, it->op);
    if (op->type.rank) { /* element by element */
        ir_id was = lower_read_now(L, it->place, axes, it->n_axes);
        lower_set(L, it->place, axes, it->n_axes,
                  lower_pure2(L, lower_combine_op(it->reducer), op->type.dtype, was, v));
        return;
    }
    if (it->n_axes && !it->scalar_nest && lower_top(L)->kind == LOWER_LANES)
        lane = axes[it->n_axes - 1];
    else
        for (size_t j = 0; j < it->n_axes; j++) {
            lane = lower_pure2(L, IR_MUL, IR_I64, lane, lower_dim(L, it->axes[j]));
            lane = lower_pure2(L, IR_ADD, IR_I64, lane, axes[j]);
        }
    lower_raw(L, IR_ACCUM, IR_NONE, (ir_id[]){it->place, lane, v}, 3);
}

/* value: the unit */
static void store_part(lower *L, const lower_item *it, const ir_id *axes) {
    ir_id args[2 + IR_MAX_RANK] = {it->value};
    lower_index(L, &it->shape, axes, args + 1);
    args[1 + it->shape.rank] = lower_read_now(L, it->place, axes, it->n_axes);
    ir_id s = lower_raw(L, IR_STORE, IR_NONE, args, 2 + it->shape.rank);
    ir_set_int(L->m, ir_at(L->f, s), IR_ATTR_FIELD, it->field);
}

void lower_item_at(lower *L, lower_item *it, size_t j, size_t first, const ir_id *axes) {
    if (it->kind == LOWER_COMBINE)
        lower_combine_at(L, it, j, first, axes);
    if (j != it->n_axes || it->kind == LOWER_COMBINE)
        return;
    if (it->kind == LOWER_MOVE) {
        lower_combine_move(L, it, axes);
    } else if (it->kind == LOWER_REDUCE) {
        update(L, it, axes);
    } else if (it->kind == LOWER_STORE) {
        store(L, it, axes);
    } else if (it->kind == LOWER_TOTALS) {
        update_total(L, it, axes);
    } else if (it->kind == LOWER_PARTS) {
        store_part(L, it, axes);
    } else {
        ir_id at[IR_MAX_RANK];
        ir_id idx[IR_MAX_RANK] = {0};
        size_t n = place_index(L, it, it->n_axes, axes, at);
        if (it->from)
            lower_index(L, &ir_at(L->k, it->from)->type, axes, idx);
        lower_set(L, it->place, at, n, it->from ? lower_eval(L, it->from, idx) : it->value);
    }
}

/* ---- results ---- */
/* Element of a place that holds the axes of `t`. */
static ir_id read_place(lower *L, ir_id place, const ir_type *t, const ir_id *idx) {
    ir_id axes[IR_MAX_RANK];
    size_t n = lower_significant(t, idx, axes);
    const ir_type *p = &ir_at(L->f, place)->type;
    if (p->rank == 1 && p->dim[0] == IR_DIM_TILE) {
        const lower_scope *lanes = &L->scope[lower_depth(L, axes[n - 1])];
        BASE_CHECK(lanes->kind == LOWER_LANES);
        return lower_read(L, place, &lanes->arg[1], 1);
    }
    return lower_read(L, place, axes, p->rank);
}

ir_id lower_reduced(lower *L, ir_id id, const ir_id *idx) {
    const ir_op *op = ir_at(L->k, id);
    const lower_acc *acc = &L->acc[id];
    ir_kind kind = ir_kind_of(op);
    L->span = op->span;
    if (acc->result)
        return acc->result;
    ir_id value = read_place(L, is_arg(kind) ? acc->edge : acc->var, &op->type, idx);
    return is_arg(kind) ? lower_pure1(L, IR_SOURCE, IR_I64, value) : value;
}
