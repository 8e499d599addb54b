/* Operations that change shapes, and matmul.
 *
 * reshape, transpose, slice, gather and iota are only another index into their operand.  concat, cumsum and matmul
 * are computed as a whole, into an array of the scope that their space says.  A matmul keeps a tile of its results in
 * registers and walks the contracted axis; when its first operand is a concat, it walks the parts, which are never put
 * together. */
#include "passes/lower.h"

#include <string.h>

bool lower_fills_array(ir_opcode code) { return code == IR_CONCAT || code == IR_CUMSUM || code == IR_MATMUL; }

bool lower_is_view(ir_opcode code) { return ir_is_shape_op(code) && !lower_fills_array(code); }

static const ir_type *type_of(const lower *L, ir_id v) { return &ir_at(L->k, v)->type; }
static ir_id add(lower *L, ir_id a, ir_id b) { return lower_pure2(L, IR_ADD, IR_I64, a, b); }
static ir_id mul(lower *L, ir_id a, ir_id b) { return lower_pure2(L, IR_MUL, IR_I64, a, b); }

/* ---- views ---- */
static ir_id reshaped(lower *L, const ir_op *op, const ir_id *idx) {
    const ir_type *from = type_of(L, op->args[0]);
    ir_id at[IR_MAX_RANK];
    if (lower_same_axes(from, &op->type)) {
        ir_id axes[IR_MAX_RANK];
        lower_significant(&op->type, idx, axes);
        lower_index(L, from, axes, at);
        return lower_eval(L, op->args[0], at);
    }
    ir_id flat = lower_i64(L, 0);
    for (uint32_t i = 0; i < op->type.rank; i++)
        flat = i ? add(L, mul(L, flat, lower_dim(L, op->type.dim[i])), idx[i]) : idx[i];
    for (uint32_t i = from->rank; i-- > 0;) {
        if (from->dim[i] == 1) {
            at[i] = lower_i64(L, 0);
            continue;
        }
        ir_id n = lower_dim(L, from->dim[i]);
        at[i] = i ? lower_pure2(L, IR_REM, IR_I64, flat, n) : flat;
        flat = i ? lower_pure2(L, IR_DIV, IR_I64, flat, n) : flat;
    }
    return lower_eval(L, op->args[0], at);
}

static ir_id gathered(lower *L, const ir_op *op, const ir_id *idx) {
    const ir_type *from = type_of(L, op->args[0]), *numbers = type_of(L, op->args[1]);
    int64_t axis = ir_int(op, IR_ATTR_AXIS, 0);
    ir_id at[IR_MAX_RANK];
    ir_id n = lower_eval(L, op->args[1], idx + axis);
    if (numbers->dtype != IR_I64)
        n = lower_pure1(L, IR_CAST, IR_I64, n);
    ir_dim size = from->dim[axis];
    ir_id last = ir_dim_is_sym(size) ? lower_pure2(L, IR_SUB, IR_I64, lower_dim(L, size), lower_i64(L, 1))
                                     : lower_i64(L, size - 1);
    n = lower_pure2(L, IR_MIN, IR_I64, lower_pure2(L, IR_MAX, IR_I64, n, lower_i64(L, 0)), last);
    for (uint32_t i = 0; i < from->rank; i++)
        at[i] = i < axis ? idx[i] : i == axis ? n : idx[i + numbers->rank - 1];
    return lower_eval(L, op->args[0], at);
}

ir_id lower_view_element(lower *L, ir_id v, const ir_id *idx) {
    const ir_op *op = ir_at(L->k, v);
    ir_id at[IR_MAX_RANK];
    base_copy(at, idx, op->type.rank * sizeof *at);
    if (op->code == IR_IOTA)
        return idx[0];
    if (op->code == IR_RESHAPE)
        return reshaped(L, op, idx);
    if (op->code == IR_GATHER)
        return gathered(L, op, idx);
    if (op->code == IR_SLICE) {
        int64_t axis = ir_int(op, IR_ATTR_AXIS, 0);
        ir_dim begin = ir_int(op, IR_ATTR_BEGIN, 0);
        if (begin)
            at[axis] = add(L, idx[axis], lower_dim(L, begin));
    } else {
        const char *perm = ir_word(op, IR_ATTR_PERM);
        for (uint32_t i = 0; i < op->type.rank; i++)
            at[perm[i] - '0'] = idx[i];
    }
    return lower_eval(L, op->args[0], at);
}

/* ---- arrays ---- */
typedef struct filling {
    lower *L;
    const ir_op *op;
    ir_id var;
} filling;

/* The element of the array with these indices, of which those of axes of 1 are left out. */
static void set_element(const filling *fl, const ir_id *idx, ir_id value) {
    ir_id axes[IR_MAX_RANK];
    size_t n = lower_significant(&fl->op->type, idx, axes);
    lower_set(fl->L, fl->var, axes, n, value);
}

static ir_id open_loop(lower *L, ir_dim d, bool lanes) {
    if (d == 1)
        return lower_i64(L, 0);
    ir_id n = lower_dim(L, d);
    lower_open(L, lanes ? LOWER_LANES : LOWER_LOOP, &n, 1);
    return lower_top(L)->arg[0];
}

static void close_to(lower *L, size_t n_scopes) {
    while (L->n_scopes > n_scopes)
        lower_close(L);
}

/* Where the next part begins: behind n more elements; 0: at the first. */
static ir_id behind(lower *L, ir_id begin, ir_dim n) {
    return n == 0 ? begin : begin ? add(L, begin, lower_dim(L, n)) : lower_dim(L, n);
}

static void fill_concat(const filling *fl) {
    lower *L = fl->L;
    int64_t axis = ir_int(fl->op, IR_ATTR_AXIS, 0);
    ir_id begin = 0;
    for (uint32_t i = 0; i < fl->op->n_args; i++) {
        const ir_type *t = type_of(L, fl->op->args[i]);
        size_t outer = L->n_scopes;
        ir_id idx[IR_MAX_RANK];
        uint32_t last = 0;
        for (uint32_t k = 0; k < t->rank; k++)
            last = t->dim[k] != 1 ? k : last;
        for (uint32_t k = 0; k < t->rank; k++)
            idx[k] = open_loop(L, t->dim[k], k == last);
        if (!lower_is_empty(t)) {
            ir_id value = lower_eval(L, fl->op->args[i], idx);
            idx[axis] = begin ? add(L, idx[axis], begin) : idx[axis];
            set_element(fl, idx, value);
        }
        close_to(L, outer);
        begin = behind(L, begin, t->dim[axis]);
    }
}

static void fill_cumsum(const filling *fl) {
    lower *L = fl->L;
    const ir_type *t = &fl->op->type;
    uint32_t axis = (uint32_t)ir_int(fl->op, IR_ATTR_AXIS, 0);
    size_t outer = L->n_scopes;
    ir_id idx[IR_MAX_RANK];
    for (uint32_t k = 0; k < t->rank; k++)
        if (k != axis)
            idx[k] = open_loop(L, t->dim[k], false);
    ir_id sum = lower_var(L, t->dtype, NULL, 0, "sum");
    lower_set(L, sum, NULL, 0, lower_number(L, t->dtype, 0));
    ir_id k = open_loop(L, t->dim[axis], false);
    idx[axis] = k;
    if (t->dim[axis] != 1 && ir_int(fl->op, IR_ATTR_REVERSE, 0))
        idx[axis] = lower_pure2(L, IR_SUB, IR_I64, lower_dim(L, t->dim[axis]), add(L, k, lower_i64(L, 1)));
    ir_id value = lower_eval(L, fl->op->args[0], idx);
    ir_id next = lower_pure2(L, IR_ADD, t->dtype, lower_read_now(L, sum, NULL, 0), value);
    lower_set(L, sum, NULL, 0, next);
    set_element(fl, idx, next);
    close_to(L, outer);
}

/* acc[lane] += a[.., k] * b[k0 + k, f], or b[f, k0 + k], for all k of one part of a; f is the axis of the tile */
static void multiply_part(const filling *fl, ir_id part, ir_id k0, const ir_id *lead, ir_id acc) {
    lower *L = fl->L;
    const ir_type *a = type_of(L, part), *b = type_of(L, fl->op->args[1]);
    ir_dtype t = fl->op->type.dtype;
    size_t outer = L->n_scopes, tile = lower_find_scope(L, LOWER_TILES);
    ir_id idx[IR_MAX_RANK], at[2], lane = 0;
    base_copy(idx, lead, (a->rank - 1) * sizeof *idx);
    ir_id k = open_loop(L, a->dim[a->rank - 1], false);
    idx[a->rank - 1] = k;
    ir_id x = lower_whole_element(L, part, idx);
    bool turned = ir_int(fl->op, IR_ATTR_TURNED, 0) != 0;
    at[turned] = k0 ? add(L, k, k0) : k;
    at[!turned] = lower_i64(L, 0);
    size_t n = b->dim[!turned] != 1;
    if (n) {
        lower_open(L, LOWER_LANES, (ir_id[]){L->scope[tile].arg[1], L->scope[tile].arg[0]}, 2);
        at[!turned] = lower_top(L)->arg[0];
        lane = lower_top(L)->arg[1];
    }
    ir_id product = lower_pure2(L, IR_MUL, t, x, lower_eval(L, fl->op->args[1], at));
    lower_set(L, acc, &lane, n, lower_pure2(L, IR_ADD, t, lower_read_now(L, acc, &lane, n), product));
    close_to(L, outer);
}

/* Over the lanes of the tile: the start of acc, or acc into the array. */
static void for_tile(const filling *fl, ir_id acc, ir_id *idx, bool start) {
    lower *L = fl->L;
    const ir_type *t = &fl->op->type;
    size_t outer = L->n_scopes, tile = lower_find_scope(L, LOWER_TILES), n = t->dim[t->rank - 1] != 1;
    ir_id lane = 0;
    idx[t->rank - 1] = lower_i64(L, 0);
    if (n) {
        lower_open(L, LOWER_LANES, (ir_id[]){L->scope[tile].arg[1], L->scope[tile].arg[0]}, 2);
        idx[t->rank - 1] = lower_top(L)->arg[0];
        lane = lower_top(L)->arg[1];
    }
    if (start)
        lower_set(L, acc, &lane, n, lower_number(L, t->dtype, 0));
    else
        set_element(fl, idx, lower_read_now(L, acc, &lane, n));
    close_to(L, outer);
}

static void fill_matmul(const filling *fl) {
    lower *L = fl->L;
    const ir_type *t = &fl->op->type;
    const ir_op *a = ir_at(L->k, fl->op->args[0]);
    bool parts = a->code == IR_CONCAT && ir_int(a, IR_ATTR_AXIS, 0) == (int64_t)a->type.rank - 1;
    size_t outer = L->n_scopes;
    ir_id idx[IR_MAX_RANK];
    ir_dim f = t->dim[t->rank - 1];
    for (uint32_t k = 0; k + 1 < t->rank; k++)
        idx[k] = open_loop(L, t->dim[k], false);
    if (f != 1)
        lower_open(L, LOWER_TILES, (ir_id[]){lower_dim(L, f)}, 1);
    ir_id tiles = f != 1 ? lower_top(L)->loop : 0;
    ir_id acc = lower_var(L, t->dtype, (ir_dim[]){IR_DIM_TILE}, f != 1, "acc");
    for_tile(fl, acc, idx, true);
    ir_id begin = 0;
    for (uint32_t i = 0; i < (parts ? a->n_args : 1); i++) {
        ir_id part = parts ? a->args[i] : fl->op->args[0];
        const ir_type *p = type_of(L, part);
        if (p->dim[p->rank - 1] != 0)
            multiply_part(fl, part, begin, idx, acc);
        begin = behind(L, begin, p->dim[p->rank - 1]);
    }
    for_tile(fl, acc, idx, false);
    close_to(L, outer);
    if (tiles)
        ir_set_int(L->m, ir_at(L->f, tiles), IR_ATTR_WIDTH, LOWER_TILE_WIDTH);
}

static ir_id fill(lower *L, ir_id v, size_t home) {
    filling fl = {.L = L, .op = ir_at(L->k, v)};
    ir_dim dims[IR_MAX_RANK];
    size_t n = lower_axes(&fl.op->type, dims);
    lower_hidden hidden = lower_hide(L, home);
    L->span = fl.op->span;
    fl.var = lower_var(L, fl.op->type.dtype, dims, n, ir_op_describe(fl.op->code)->text);
    if (fl.op->code == IR_CONCAT)
        fill_concat(&fl);
    else if (fl.op->code == IR_CUMSUM)
        fill_cumsum(&fl);
    else
        fill_matmul(&fl);
    lower_show(L, hidden);
    return fl.var;
}

ir_id lower_filled_element(lower *L, ir_id v, const ir_id *idx) {
    const ir_op *op = ir_at(L->k, v);
    size_t home = lower_home(L, op->type.space);
    uint64_t key[] = {5, v, home};
    ir_id var = lower_recall(L, key, 3), axes[IR_MAX_RANK];
    if (!var) {
        var = fill(L, v, home);
        lower_remember(L, key, 3, var);
    }
    size_t n = lower_significant(&op->type, idx, axes);
    return lower_read(L, var, axes, n);
}
