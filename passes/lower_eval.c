/* The value of one element.  Elementwise chains are computed where their element is wanted, from loads; a value is
 * written to an array first when it would otherwise be computed more often than its space says: a row value inside a
 * walk, a uniform value inside the rows, a fold inside loops over axes that are not its own. */
#include "passes/lower.h"

#include <string.h>

/* ---- indices ---- */
void lower_index(lower *L, const ir_type *t, const ir_id *axes, ir_id *idx) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        idx[i] = t->dim[i] == 1 ? lower_i64(L, 0) : axes[n++];
}

size_t lower_significant(const ir_type *t, const ir_id *idx, ir_id *out) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            out[n++] = idx[i];
    return n;
}

/* The element of an operand of shape t that belongs to element idx of a value of shape `outer`. */
static void narrow(lower *L, const ir_type *t, const ir_type *outer, const ir_id *idx, ir_id *out) {
    for (uint32_t i = 0; i < t->rank; i++)
        out[i] = t->dim[i] == 1 ? lower_i64(L, 0) : idx[outer->rank - t->rank + i];
}

/* The element of the operand of a newaxis: the indices of its own axes. */
static void without_new(const ir_op *op, const ir_id *idx, ir_id *out) {
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0);
    for (uint32_t i = 0, n = 0; i < op->type.rank; i++)
        if (!(axes >> i & 1))
            out[n++] = idx[i];
}

ir_id lower_var(lower *L, ir_dtype dtype, const ir_dim *dims, size_t n, const char *name) {
    ir_id id = lower_raw(L, IR_VAR, dtype, NULL, 0);
    ir_op *op = ir_at(L->f, id);
    op->type.rank = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        op->type.dim[i] = dims[i];
    ir_set_word(L->m, op, IR_ATTR_NAME, name);
    return id;
}

/* ---- which values need an array ---- */
size_t lower_deepest(const lower *L, const ir_type *t, const ir_id *idx) {
    size_t d = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (lower_depth(L, idx[i]) > d)
            d = lower_depth(L, idx[i]);
    return d;
}

size_t lower_home(const lower *L, ir_space space) {
    if (space == IR_EDGE)
        return lower_find_scope(L, LOWER_EDGES);
    return space == IR_ROW ? L->row_scope : 0;
}

/* Elements of these are as cheap to have anywhere as from an array. */
static bool is_plain(const lower *L, const ir_op *op) {
    if (op->code == IR_REDUCE)
        return ir_kind_of(op) <= IR_KIND_OR;
    if (op->code == IR_BROADCAST || op->code == IR_NEWAXIS || op->code == IR_RESHAPE || op->code == IR_TRANSPOSE ||
        op->code == IR_SLICE)
        return is_plain(L, ir_at(L->k, op->args[0]));
    return op->code == IR_GET || op->code == IR_FIELD || op->code == IR_CONST || op->code == IR_DIMSIZE ||
           op->code == IR_DEGREE || op->code == IR_IOTA;
}

/* True, with the scope the array belongs to, when element idx of v must come from an array. */
static bool needs_array(const lower *L, ir_id v, const ir_id *idx, size_t *home) {
    const ir_op *op = ir_at(L->k, v);
    size_t at = lower_deepest(L, &op->type, idx);
    *home = lower_home(L, op->type.space);
    if (op->code == IR_FOLD)
        return at > *home && !L->info[v].inline_fold;
    if (L->info[v].stored && at > *home && v != L->filling &&
        (op->type.space != IR_EDGE || !lower_find_scope(L, LOWER_TILES)))
        return true;
    if (is_plain(L, op) || at <= *home || op->type.space == IR_EDGE)
        return false;
    if (op->type.space == IR_UNIFORM)
        return L->scope[1].kind == LOWER_ROWS; /* not while the array itself is filled */
    size_t edges = lower_find_scope(L, LOWER_EDGES);
    if (edges == 0 || at <= edges)
        return false;
    if (L->scope[edges - 1].kind == LOWER_TILES)
        *home = edges - 1;
    return true;
}

/* ---- arrays of whole values ---- */
static ir_id fill_array(lower *L, ir_id v, size_t home, bool lanes) {
    const ir_op *op = ir_at(L->k, v);
    ir_dim dims[IR_MAX_RANK];
    size_t n = lower_axes(&op->type, dims);
    lower_hidden hidden = lower_hide(L, home);
    ir_id var = lower_var(L, op->type.dtype, dims, n, ir_op_describe(op->code)->text);
    ir_id axes[IR_MAX_RANK], idx[IR_MAX_RANK];
    for (size_t j = 0; j < n; j++) {
        lower_open(L, lanes && j + 1 == n ? LOWER_LANES : LOWER_LOOP, (ir_id[]){lower_dim(L, dims[j])}, 1);
        axes[j] = lower_top(L)->arg[0];
    }
    lower_index(L, &op->type, axes, idx);
    ir_id outer = L->filling;
    L->filling = v;
    ir_id value = op->code == IR_FOLD ? lower_fold_element(L, v, idx) : lower_eval(L, v, idx);
    L->filling = outer;
    lower_set(L, var, axes, n, value);
    for (size_t j = 0; j < n; j++)
        lower_close(L);
    lower_show(L, hidden);
    return var;
}

static ir_id array_element(lower *L, ir_id v, const ir_id *idx, size_t home) {
    const ir_op *op = ir_at(L->k, v);
    ir_id axes[IR_MAX_RANK];
    size_t n = lower_significant(&op->type, idx, axes);
    /* Written the way it is read: by lanes or by scalar code.  A team of threads keeps the two apart. */
    bool lanes = op->code != IR_FOLD && L->scope[lower_depth(L, axes[n - 1])].kind == LOWER_LANES;
    uint64_t key[] = {2, v, home, lanes};
    ir_id var = lower_recall(L, key, 4);
    if (!var) {
        var = fill_array(L, v, home, lanes);
        lower_remember(L, key, 4, var);
    }
    return lower_read(L, var, axes, n);
}

ir_id lower_whole_element(lower *L, ir_id v, const ir_id *idx) {
    const ir_op *op = ir_at(L->k, v);
    size_t home = lower_home(L, op->type.space);
    ir_id axes[IR_MAX_RANK];
    size_t n = lower_significant(&op->type, idx, axes);
    uint64_t key[] = {2, v, home, true};
    if (n == 0 || !ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return lower_eval(L, v, idx);
    ir_id var = lower_recall(L, key, 4);
    if (!var) {
        var = fill_array(L, v, home, true);
        lower_remember(L, key, 4, var);
    }
    return lower_read(L, var, axes, n);
}

/* ---- arrays of one tile ---- */
static ir_id fill_tile(lower *L, ir_id v, const ir_id *idx, ir_id k, size_t home) {
    const ir_op *op = ir_at(L->k, v);
    lower_hidden hidden = lower_hide(L, home);
    const lower_scope *tile = lower_top(L);
    ir_id var = lower_var(L, op->type.dtype, (ir_dim[]){IR_DIM_TILE}, 1, ir_op_describe(op->code)->text);
    lower_open(L, LOWER_LANES, (ir_id[]){tile->arg[1], tile->arg[0]}, 2);
    ir_id own[IR_MAX_RANK];
    for (uint32_t i = 0; i < op->type.rank; i++)
        own[i] = idx[i] == k ? lower_top(L)->arg[0] : idx[i];
    ir_id value = lower_eval(L, v, own);
    lower_raw(L, IR_SET, IR_NONE, (ir_id[]){var, lower_top(L)->arg[1], value}, 3);
    lower_close(L);
    lower_show(L, hidden);
    return var;
}

static ir_id tile_element(lower *L, ir_id v, const ir_id *idx, size_t home) {
    const ir_op *op = ir_at(L->k, v);
    const lower_scope *lanes = &L->scope[lower_deepest(L, &op->type, idx)];
    BASE_CHECK(lanes->kind == LOWER_LANES);
    ir_id k = lanes->arg[0], l = lanes->arg[1];
    uint64_t key[2 + IR_MAX_RANK] = {3, v};
    for (uint32_t i = 0; i < op->type.rank; i++)
        key[2 + i] = idx[i] == k ? 0 : idx[i];
    ir_id var = lower_recall(L, key, 2 + op->type.rank);
    if (!var) {
        var = fill_tile(L, v, idx, k, home);
        lower_remember(L, key, 2 + op->type.rank, var);
    }
    return lower_read(L, var, &l, 1);
}

/* ---- evaluation: an explicit stack, because chains of operations may be long ---- */
typedef struct frame {
    ir_id v;
    ir_id idx[IR_MAX_RANK];
} frame;

typedef struct frames {
    frame *items;
    size_t n, cap;
} frames;

static size_t frame_key(const lower *L, const frame *fr, uint64_t *key) {
    uint32_t rank = ir_at(L->k, fr->v)->type.rank;
    key[0] = 4 + ((uint64_t)L->binding.serial << 8);
    key[1] = fr->v;
    for (uint32_t i = 0; i < rank; i++)
        key[2 + i] = fr->idx[i];
    return 2 + rank;
}

ir_id lower_edge(lower *L) {
    ir_id e = L->scope[lower_find_scope(L, LOWER_EDGES)].arg[0];
    return ir_transposed(L->k) ? lower_pure1(L, IR_EDGEID, IR_I64, e) : e;
}

static ir_id load_field(lower *L, const frame *fr) {
    const ir_op *op = ir_at(L->k, fr->v);
    uint32_t field = (uint32_t)ir_int(op, IR_ATTR_FIELD, 0);
    const char *at = ir_word(op, IR_ATTR_AT);
    ir_id index[1 + IR_MAX_RANK];
    size_t n = 0;
    if (strcmp(at, "src") == 0)
        index[n++] = L->scope[lower_find_scope(L, LOWER_EDGES)].arg[1];
    else if (strcmp(at, "edge") == 0)
        index[n++] = lower_edge(L);
    else if (strcmp(at, "dst") == 0)
        index[n++] = L->row;
    memcpy(index + n, fr->idx, op->type.rank * sizeof *index);
    return lower_load(L, field, index, n + op->type.rank);
}

/* Values that are not computed from operands at the same element; 0 when v is elementwise or a broadcast. */
static ir_id special(lower *L, const frame *fr) {
    const ir_op *op = ir_at(L->k, fr->v);
    size_t home;
    if (lower_fills_array(op->code))
        return lower_filled_element(L, fr->v, fr->idx);
    if (needs_array(L, fr->v, fr->idx, &home))
        return L->scope[home].kind == LOWER_TILES ? tile_element(L, fr->v, fr->idx, home)
                                                  : array_element(L, fr->v, fr->idx, home);
    if (op->code == IR_FIELD)
        return load_field(L, fr);
    if (op->code == IR_CONST)
        return lower_const(L, op->type.dtype, ir_find_attr(op, IR_ATTR_VALUE)->v);
    if (op->code == IR_DIMSIZE)
        return lower_dim(L, ir_int(op, IR_ATTR_DIM, 0));
    if (op->code == IR_DEGREE)
        return lower_pure1(L, IR_DEGREE, IR_I64, L->row);
    if (op->code == IR_FOLD)
        return lower_fold_element(L, fr->v, fr->idx);
    if (lower_is_view(op->code))
        return lower_view_element(L, fr->v, fr->idx);
    if (op->code == IR_ARG)
        return lower_region_argument(L, fr->v, fr->idx);
    if (op->code == IR_GET)
        return lower_combined(L, fr->v, fr->idx);
    return op->code == IR_REDUCE ? lower_reduced(L, fr->v, fr->idx) : 0;
}

/* Computes an elementwise operation whose operands are known; otherwise pushes those that are not and returns 0. */
static ir_id from_operands(lower *L, frames *stack, const frame *fr) {
    const ir_op *op = ir_at(L->k, fr->v);
    ir_id args[3];
    bool known = true;
    BASE_CHECK(op->n_args >= 1 && op->n_args <= 3);
    for (uint32_t a = 0; a < op->n_args; a++) {
        frame arg = {.v = op->args[a]};
        if (op->code == IR_NEWAXIS)
            without_new(op, fr->idx, arg.idx);
        else
            narrow(L, &ir_at(L->k, arg.v)->type, &op->type, fr->idx, arg.idx);
        uint64_t key[2 + IR_MAX_RANK];
        args[a] = lower_recall(L, key, frame_key(L, &arg, key));
        if (!args[a]) {
            known = false;
            base_push(L->scratch, stack->items, stack->n, stack->cap, arg);
        }
    }
    if (!known)
        return 0;
    if (op->code == IR_BROADCAST || op->code == IR_NEWAXIS)
        return args[0];
    L->span = op->span;
    return lower_pure(L, op->code, op->type.dtype, args, op->n_args, 0);
}

ir_id lower_eval(lower *L, ir_id v, const ir_id *idx) {
    frames stack = {0};
    frame first = {.v = v};
    memcpy(first.idx, idx, ir_at(L->k, v)->type.rank * sizeof *idx);
    base_push(L->scratch, stack.items, stack.n, stack.cap, first);
    ir_id id = 0;
    while (stack.n) {
        frame fr = stack.items[stack.n - 1];
        uint64_t key[2 + IR_MAX_RANK];
        size_t n_key = frame_key(L, &fr, key);
        id = lower_recall(L, key, n_key);
        if (!id) {
            id = special(L, &fr);
            if (!id)
                id = from_operands(L, &stack, &fr);
            if (!id)
                continue;
            lower_remember(L, key, n_key, id);
        }
        stack.n--;
    }
    return id;
}

ir_id lower_eval_in(lower *L, ir_id v, const ir_type *outer, const ir_id *idx) {
    ir_id own[IR_MAX_RANK];
    narrow(L, &ir_at(L->k, v)->type, outer, idx, own);
    return lower_eval(L, v, own);
}
