/* outline: the tensor operations of programs become kernels over rows, pointwise chains fused into one.
 *
 * Three steps for each program.  First, which values become arrays (here, backwards): what crosses a boundary --
 * operands of calls, of repeat, of yield and ret, values used in a region inside their own, full folds -- and what
 * would otherwise be computed in several kernels at more than a trivial price.  Then arrays over the same rows that
 * share what they read are put into one kernel (outline_group.c), and a call of each kernel stands in their place.
 *
 * A tensor [lead, feats...] is a `dst` field of shape [feats] in a kernel over `lead` rows; any other operand is a
 * `param` of its whole shape.  Scalars that are computed are computed again wherever they are used, inside the kernels.
 * Constants, sizes and parameters are never copied into an array of their own unless a boundary wants one. */
#include "passes/outline.h"

enum { SMALL_MATRIX = 1024 }; /* elements */
enum { CHEAP = 4 }; /* operations and loads that may be done again rather than written to memory and read back */
#define MANY UINT32_MAX

bool outline_is_array(ir_opcode c) {
    return c == IR_PARAM || c == IR_ARG || c == IR_GET || c == IR_CALL || c == IR_POP;
}

bool outline_is_leaf(ir_opcode c) { return c == IR_CONST || c == IR_DIMSIZE || c == IR_IOTA; }

bool outline_is_computed(ir_opcode c) {
    return ir_class_is_elementwise(ir_op_describe(c)->cls) || c == IR_BROADCAST || c == IR_NEWAXIS || c == IR_FOLD ||
           (ir_is_shape_op(c) && c != IR_IOTA);
}

bool outline_is_total(const ir_func *f, const ir_op *op) {
    if (op->code != IR_FOLD)
        return false;
    return ir_at(f, op->args[0])->type.rank > 0 && (ir_int(op, IR_ATTR_AXES, 0) & 1);
}

bool outline_aligned(const ir_func *f, ir_id v, const ir_op *user) {
    const ir_type *t = &ir_at(f, v)->type;
    if (t->rank == 0)
        return false;
    if (user->code == IR_MATMUL || user->code == IR_GATHER) /* the second operand is used whole */
        return v != user->args[1];
    return user->code == IR_FOLD || user->code == IR_NEWAXIS || ir_is_shape_op(user->code) ||
           (t->rank == user->type.rank && t->dim[0] == user->type.dim[0]);
}

/* ---- facts about each operation ---- */
static void list_ops(outline *s, ir_region *r, ir_id parent) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        ir_op *op = ir_at(s->p, id);
        s->at[id] = (uint32_t)s->n_order;
        base_push(s->scratch, s->order, s->n_order, s->cap_order, id);
        s->parent[id] = parent;
        op->type = ir_type_canonical(s->p, &op->type);
        if (op->code == IR_DIMSIZE)
            ir_set_int(s->m, op, IR_ATTR_DIM, ir_dim_canonical(s->p, ir_int(op, IR_ATTR_DIM, 0)));
        if (op->region)
            list_ops(s, op->region, id);
    }
}

/* Price of computing v once more, given that nothing on the way is an array. */
static uint32_t price_of(const outline *s, const ir_op *op) {
    ir_class cls = ir_op_describe(op->code)->cls;
    bool dear = op->code == IR_DIV || op->code == IR_REM || op->code == IR_POW || op->code == IR_ATAN2 ||
                op->code == IR_FOLD || op->code == IR_MATMUL || op->code == IR_CUMSUM ||
                (cls == IR_CLASS_UNARY && !(ir_op_describe(op->code)->levels & IR_LEVEL_T)); /* exp, sqrt, ... */
    uint32_t sum = dear ? 100 : op->code == IR_BROADCAST || op->code == IR_NEWAXIS ? 0 : 1;
    for (uint32_t i = 0; i < op->n_args; i++) {
        const ir_op *a = ir_at(s->p, op->args[i]);
        if (a->type.rank)
            sum += outline_is_array(a->code) || s->cut[op->args[i]] ? 1 : s->price[op->args[i]];
    }
    return sum < 1000 ? sum : 1000;
}

/* An i64 expression of constants and sizes can stand in the schedule itself. */
static bool is_index(const outline *s, const ir_op *op) {
    if (op->type.dtype != IR_I64 || op->type.rank)
        return false;
    if (outline_is_leaf(op->code))
        return true;
    if (op->code != IR_ADD && op->code != IR_SUB && op->code != IR_MUL && op->code != IR_DIV && op->code != IR_REM &&
        op->code != IR_MIN && op->code != IR_MAX && op->code != IR_NEG)
        return false;
    for (uint32_t i = 0; i < op->n_args; i++)
        if (!s->index[op->args[i]])
            return false;
    return true;
}

static void keep_index(outline *s, ir_id v) {
    const ir_op *op = ir_at(s->p, v);
    if (s->keep[v])
        return;
    s->keep[v] = true;
    for (uint32_t i = 0; i < op->n_args; i++)
        keep_index(s, op->args[i]);
}

/* ---- products ---- */
/* A matrix that stays in the nearest cache is as well read for each row. */
bool outline_is_small(const outline *s, ir_id matrix) {
    const ir_type *t = &ir_at(s->p, matrix)->type;
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0 || t->dim[i] > SMALL_MATRIX)
            return false;
        n *= t->dim[i];
    }
    return n <= SMALL_MATRIX;
}

static bool has_product(const outline *s, const ir_op *op) {
    bool has = s->by_panels && op->code == IR_MATMUL && !outline_is_small(s, op->args[1]);
    for (uint32_t i = 0; i < op->n_args && !has; i++)
        has = s->product[op->args[i]] && !s->cut[op->args[i]];
    return has;
}

/* Products go over all rows at a time (panels.c), so the kernel of one ends with what is done to each of its elements; and
 * what they are made of is computed once, not once for each tile of columns. */
static bool ends_before(const outline *s, const ir_op *user, uint32_t arg) {
    ir_id v = user->args[arg];
    if (!s->by_panels || !outline_is_computed(ir_at(s->p, v)->code) || ir_at(s->p, v)->type.rank < 2)
        return false;
    if (user->code == IR_MATMUL)
        return arg == 0 && s->price[v] > CHEAP && !outline_is_small(s, user->args[1]);
    return s->product[v] && (user->code == IR_FOLD || ir_is_shape_op(user->code));
}

static void note_products(outline *s, ir_id id, const ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++)
        if (ends_before(s, op, i))
            s->cut[op->args[i]] = true;
    s->product[id] = has_product(s, op);
}

/* ---- what becomes an array ---- */
static void want_array(outline *s, ir_id v) {
    s->used[v] = s->boundary[v] = true;
    if (!outline_is_array(ir_at(s->p, v)->code))
        s->array[v] = true;
}

/* Use of v in a chain that ends in the array `root`. */
static void want_value(outline *s, ir_id v, ir_id user, ir_id root) {
    const ir_op *op = ir_at(s->p, v);
    s->used[v] = true;
    if (!outline_is_computed(op->code) || op->type.rank == 0)
        return;
    if (s->parent[v] != s->parent[user] || !outline_aligned(s->p, v, ir_at(s->p, user)))
        s->array[v] = true;
    s->root[v] = !s->root[v] || s->root[v] == root ? root : MANY;
}

/* After everything that uses it. */
static void analyse_op(outline *s, ir_id id) {
    const ir_op *op = ir_at(s->p, id);
    uint32_t first = 0;
    if (outline_is_computed(op->code)) {
        if (!s->used[id])
            return;
        s->array[id] |= s->cut[id] || outline_is_total(s->p, op) || (s->root[id] == MANY && s->price[id] > CHEAP);
        ir_id root = s->array[id] ? id : s->root[id] ? s->root[id] : MANY;
        for (uint32_t i = 0; i < op->n_args; i++)
            want_value(s, op->args[i], id, root);
        return;
    }
    if (op->code == IR_REPEAT && s->index[op->args[0]]) {
        keep_index(s, op->args[0]);
        first = 1;
    }
    if (op->code != IR_GET)
        for (uint32_t i = first; i < op->n_args; i++)
            want_array(s, op->args[i]);
}

static void analyse(outline *s) {
    list_ops(s, &s->p->body, 0);
    for (size_t i = 0; i < s->n_order; i++) {
        const ir_op *op = ir_at(s->p, s->order[i]);
        s->index[s->order[i]] = is_index(s, op);
        if (!outline_is_computed(op->code))
            continue;
        note_products(s, s->order[i], op);
        s->price[s->order[i]] = price_of(s, op);
    }
    for (size_t i = s->n_order; i-- > 0;)
        analyse_op(s, s->order[i]);
}

/* Row by row: the first axis, that of the rows, stays what it is. */
static bool keeps_rows(const outline *s, const ir_op *op) {
    const ir_type *from = op->n_args ? &ir_at(s->p, op->args[0])->type : NULL;
    if (!ir_is_shape_op(op->code) || op->code == IR_IOTA)
        return true;
    if (from->rank == 0 || op->type.rank == 0 || from->dim[0] != op->type.dim[0])
        return false;
    if (op->code == IR_TRANSPOSE)
        return ir_word(op, IR_ATTR_PERM)[0] == '0';
    if (op->code == IR_MATMUL)
        return from->rank >= 2 && op->args[0] != op->args[1];
    if (op->code == IR_GATHER && (ir_at(s->p, op->args[1])->type.rank || op->args[0] == op->args[1]))
        return false;
    return op->code == IR_RESHAPE || ir_int(op, IR_ATTR_AXIS, 0) > 0;
}

static bool check_op(const outline *s, const ir_op *op, base_str *err) {
    if (keeps_rows(s, op))
        return true;
    base_str_addf(err, "program '%s': %s over the first axis of ", s->p->name, ir_op_describe(op->code)->text);
    ir_print_type(s->p, &ir_at(s->p, op->args[0])->type, err);
    base_str_add(err, " is not possible; the others are");
    return false;
}

static outline new_outline(ir_module *m, ir_func *f, base_arena *a) {
    uint32_t n = f->n_ops;
    return (outline){.m = m,
                     .p = f,
                     .scratch = a,
                     .map = pass_map_new(f, a),
                     .array = base_arena_new_array(a, bool, n),
                     .index = base_arena_new_array(a, bool, n),
                     .keep = base_arena_new_array(a, bool, n),
                     .used = base_arena_new_array(a, bool, n),
                     .product = base_arena_new_array(a, bool, n),
                     .multiplies = base_arena_new_array(a, bool, n),
                     .cut = base_arena_new_array(a, bool, n),
                     .boundary = base_arena_new_array(a, bool, n),
                     .parent = base_arena_new_array(a, ir_id, n),
                     .root = base_arena_new_array(a, ir_id, n),
                     .price = base_arena_new_array(a, uint32_t, n),
                     .at = base_arena_new_array(a, uint32_t, n),
                     .users = base_arena_new_array(a, uint32_t, n),
                     .group = base_arena_new_array(a, uint32_t, n),
                     .row = base_arena_new_array(a, ir_id, n),
                     .whole = base_arena_new_array(a, ir_id, n)};
}

static void count_users(outline *s, ir_id array) {
    outline_chain c = outline_chain_of(s, array);
    for (size_t i = 0; i < c.n_uses; i++)
        s->users[c.uses[i].v]++;
}

static bool outline_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    outline s = new_outline(m, f, ctx->scratch);
    s.by_panels = !ctx->cuda;
    analyse(&s);
    for (size_t i = 0; i < s.n_order; i++)
        if (!check_op(&s, ir_at(f, s.order[i]), err))
            return false;
    for (size_t i = 0; i < s.n_order; i++)
        if (s.array[s.order[i]])
            count_users(&s, s.order[i]);
    outline_rewrite(&s, &f->body);
    return true;
}

bool pass_outline(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_PROGRAM, outline_func, ctx, err);
}
