/* outline: the tensor operations of programs become kernels over rows, pointwise chains fused into one.
 *
 * Two steps for each program.  First, which values become arrays (`analyse`, backwards): what crosses a boundary --
 * operands of calls, of repeat, of yield and ret, values used in a region inside their own, full folds -- and what
 * would otherwise be computed in several kernels at more than a trivial price.  Then each of these becomes a kernel
 * that computes it from arrays, and a call of that kernel stands in its place (outline_kernel.c builds the kernel).
 *
 * A tensor [lead, feats...] is a `dst` field of shape [feats] in a kernel over `lead` rows; any other operand is a
 * `param` of its whole shape.  Scalars that are computed are computed again wherever they are used, inside the kernels.
 * Constants, sizes and parameters are never copied into an array of their own unless a boundary wants one. */
#include "passes/outline.h"

enum { CHEAP = 4 }; /* operations and loads that may be done again rather than written to memory and read back */

static bool is_array(ir_opcode c) { return c == IR_PARAM || c == IR_ARG || c == IR_GET || c == IR_CALL; }

static bool is_leaf(ir_opcode c) { return c == IR_CONST || c == IR_DIMSIZE; }

static bool is_computed(ir_opcode c) {
    return ir_class_is_elementwise(ir_op_describe(c)->cls) || c == IR_BROADCAST || c == IR_FOLD;
}

bool outline_is_total(const ir_func *f, const ir_op *op) {
    if (op->code != IR_FOLD)
        return false;
    uint32_t rank = ir_at(f, op->args[0])->type.rank;
    int64_t all = ((int64_t)1 << rank) - 1;
    return rank > 0 && (ir_int(op, IR_ATTR_AXES, 0) & all) == all;
}

bool outline_aligned(const ir_func *f, ir_id v, const ir_op *user) {
    const ir_type *t = &ir_at(f, v)->type;
    if (t->rank == 0)
        return false;
    return user->code == IR_FOLD || (t->rank == user->type.rank && t->dim[0] == user->type.dim[0]);
}

bool outline_is_inline(const outline *s, ir_id v) {
    ir_opcode c = ir_at(s->p, v)->code;
    return is_leaf(c) || (is_computed(c) && !s->array[v]);
}

/* ---- what becomes an array ---- */
static void list_ops(outline *s, ir_region *r, ir_id parent) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        base_push(s->scratch, s->order, s->n_order, s->cap_order, id);
        s->parent[id] = parent;
        ir_op *op = ir_at(s->p, id);
        pass_square_type(s->p, &op->type);
        if (op->code == IR_DIMSIZE)
            ir_set_int(s->m, op, IR_ATTR_DIM, pass_square_dim(s->p, ir_int(op, IR_ATTR_DIM, 0)));
        if (op->region)
            list_ops(s, op->region, id);
    }
}

/* Price of computing v once more, given that nothing on the way is an array. */
static uint32_t price_of(const outline *s, const ir_op *op) {
    ir_class cls = ir_op_describe(op->code)->cls;
    bool dear = op->code == IR_DIV || op->code == IR_REM || op->code == IR_POW || op->code == IR_ATAN2 ||
                op->code == IR_FOLD ||
                (cls == IR_CLASS_UNARY && !(ir_op_describe(op->code)->levels & IR_LEVEL_T)); /* exp, sqrt, ... */
    uint32_t sum = dear ? 100 : op->code == IR_BROADCAST ? 0 : 1;
    for (uint32_t i = 0; i < op->n_args; i++) {
        const ir_op *a = ir_at(s->p, op->args[i]);
        if (a->type.rank)
            sum += is_array(a->code) ? 1 : s->price[op->args[i]];
    }
    return sum < 1000 ? sum : 1000;
}

/* An i64 expression of constants and sizes can stand in the schedule itself. */
static bool is_index(const ir_func *f, ir_id v) {
    const ir_op *op = ir_at(f, v);
    if (op->type.dtype != IR_I64 || op->type.rank)
        return false;
    if (is_leaf(op->code))
        return true;
    if (op->code != IR_ADD && op->code != IR_SUB && op->code != IR_MUL && op->code != IR_DIV && op->code != IR_REM &&
        op->code != IR_MIN && op->code != IR_MAX && op->code != IR_NEG)
        return false;
    for (uint32_t i = 0; i < op->n_args; i++)
        if (!is_index(f, op->args[i]))
            return false;
    return true;
}

static void keep_index(outline *s, ir_id v) {
    const ir_op *op = ir_at(s->p, v);
    s->keep[v] = true;
    for (uint32_t i = 0; i < op->n_args; i++)
        keep_index(s, op->args[i]);
}

/* Use of v as an array, at a boundary. */
static void want_array(outline *s, ir_id v) {
    if (!is_array(ir_at(s->p, v)->code))
        s->array[v] = true;
}

#define MANY UINT32_MAX

/* Use of v in a chain that ends in the kernel of `root`. */
static void want_value(outline *s, ir_id v, ir_id user, ir_id root) {
    const ir_op *op = ir_at(s->p, v);
    if (!is_computed(op->code) || op->type.rank == 0)
        return;
    if (s->parent[v] != s->parent[user] || !outline_aligned(s->p, v, ir_at(s->p, user)))
        s->array[v] = true;
    s->root[v] = !s->root[v] || s->root[v] == root ? root : MANY;
}

static void analyse_op(outline *s, ir_id id) {
    const ir_op *op = ir_at(s->p, id);
    if (is_computed(op->code)) {
        bool total = outline_is_total(s->p, op), used = s->array[id] || s->used[id];
        s->array[id] |= (total && used) || (s->root[id] == MANY && s->price[id] > CHEAP);
        ir_id root = s->array[id] ? id : s->root[id] ? s->root[id] : MANY;
        for (uint32_t i = 0; used && i < op->n_args; i++) {
            s->used[op->args[i]] = true;
            want_value(s, op->args[i], id, root);
        }
    } else if (!is_leaf(op->code)) {
        bool index = op->code == IR_REPEAT && is_index(s->p, op->args[0]);
        if (index)
            keep_index(s, op->args[0]);
        for (uint32_t i = index ? 1 : 0; i < op->n_args; i++) {
            s->used[op->args[i]] = true;
            if (op->code != IR_GET)
                want_array(s, op->args[i]);
        }
    }
}

static void analyse(outline *s) {
    list_ops(s, &s->p->body, 0);
    for (size_t i = 0; i < s->n_order; i++)
        if (is_computed(ir_at(s->p, s->order[i])->code))
            s->price[s->order[i]] = price_of(s, ir_at(s->p, s->order[i]));
    for (size_t i = s->n_order; i-- > 0;)
        analyse_op(s, s->order[i]);
}

/* ---- what cannot be done ---- */
static bool check_op(const outline *s, const ir_op *op, base_str *err) {
    if (op->code == IR_REPEAT) {
        const ir_type *t = &ir_at(s->p, op->args[0])->type;
        if (t->dtype == IR_I64 && t->rank == 0)
            return true;
        base_str_addf(err, "program '%s': the number of rounds of a repeat must be an i64", s->p->name);
        return false;
    }
    if (op->code != IR_FOLD || outline_is_total(s->p, op) || !(ir_int(op, IR_ATTR_AXES, 0) & 1))
        return true;
    base_str_addf(err, "program '%s': a fold over the first axis of ", s->p->name);
    ir_print_type(s->p, &ir_at(s->p, op->args[0])->type, err);
    base_str_add(err, " must be over all of its axes");
    return false;
}

/* ---- rewriting ---- */
static ir_id replace_by_call(outline *s, ir_region *r, ir_id id) {
    ir_op *op = ir_at(s->p, id);
    outline_kernel k = outline_make_kernel(s, id);
    ir_id call = ir_op_new(s->m, s->p, IR_CALL, op->type, k.args, k.n_args);
    ir_op *c = ir_at(s->p, call);
    c->span = op->span;
    ir_set_word(s->m, c, IR_ATTR_CALLEE, k.func->name);
    ir_set_int(s->m, c, IR_ATTR_GRAPH, -1);
    ir_set_int(s->m, c, IR_ATTR_DIM, k.rows);
    ir_append(s->m, r, call);
    return call;
}

static void rewrite(outline *s, ir_region *r) {
    ir_region out = {0};
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        ir_op *op = ir_at(s->p, id);
        bool value = is_computed(op->code) || is_leaf(op->code);
        if (!value || s->keep[id])
            ir_append(s->m, &out, id);
        if (value && s->array[id])
            s->map.to[id] = replace_by_call(s, &out, id);
        if (value)
            continue;
        for (uint32_t k = op->code == IR_REPEAT && s->keep[op->args[0]] ? 1 : 0; k < op->n_args; k++)
            op->args[k] = pass_map_find(&s->map, op->args[k]);
        if (op->region)
            rewrite(s, op->region);
    }
    *r = out;
}

static bool outline_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    base_arena *a = ctx->scratch;
    uint32_t n = f->n_ops;
    outline s = {.m = m, .p = f, .scratch = a, .map = pass_map_new(f, a),
                 .array = base_arena_new_array(a, bool, n), .keep = base_arena_new_array(a, bool, n),
                 .used = base_arena_new_array(a, bool, n), .parent = base_arena_new_array(a, ir_id, n),
                 .root = base_arena_new_array(a, ir_id, n), .price = base_arena_new_array(a, uint32_t, n)};
    analyse(&s);
    for (size_t i = 0; i < s.n_order; i++)
        if (!check_op(&s, ir_at(f, s.order[i]), err))
            return false;
    rewrite(&s, &f->body);
    return true;
}

bool pass_outline(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_PROGRAM, outline_func, ctx, err);
}
