/* Rules of loop functions: scalars only, loops where they make sense, loads and stores with one index per axis, places
 * used by the operations made for them, and the independence of `lanes`.
 *
 * Independence: what an iteration writes that outlives it must be addressed through its own k or l, so the
 * index must come from one of the two; that it differs between iterations is for the interpreter to see. */
#include "ir/ir_check.h"

#include <string.h>

static bool is_place(const ir_op *op) { return op->code == IR_VAR || op->code == IR_PARTIALS; }

static bool takes_place(ir_opcode code, uint32_t i) {
    return i == 0 && (code == IR_READ || code == IR_SET || code == IR_ACCUM || code == IR_COLLAPSE);
}

static bool check_values(ir_check *c, const ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++) {
        const ir_op *arg = ir_check_arg(c, op, i);
        bool place = op->code == IR_READ || op->code == IR_SET ? arg->code == IR_VAR : arg->code == IR_PARTIALS;
        if (takes_place(op->code, i) && !place)
            return ir_check_fail(c, "operand 0 must be a %s",
                                 op->code == IR_READ || op->code == IR_SET ? "var" : "partials");
        if (!takes_place(op->code, i) && is_place(arg))
            return ir_check_fail(c, "operand %u is a place, not a value", i);
    }
    return true;
}

static bool check_i64s(ir_check *c, const ir_op *op, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        if (!ir_check_scalar_arg(c, op, i, IR_I64))
            return false;
    return true;
}

static bool inside(const ir_check *c, ir_opcode code) {
    for (int i = 0; i < c->depth; i++)
        if (ir_at(c->f, c->loops[i])->code == code)
            return true;
    return false;
}

/* ---- independence of lanes ---- */
static bool index_depends(const ir_check *c, const ir_op *op, uint32_t from, uint32_t to, int depth) {
    for (uint32_t i = from; i < to; i++)
        if (c->depends[op->args[i]] >> depth & 1)
            return true;
    return false;
}

/* Of every `lanes` between the place (0: a parameter) and here: args from .. to-1 are the index. */
static bool check_independent(ir_check *c, const ir_op *op, ir_id place, uint32_t from, uint32_t to) {
    for (int i = place ? (int)c->depth_of[place] : 0; i < c->depth; i++)
        if (ir_at(c->f, c->loops[i])->code == IR_LANES && !index_depends(c, op, from, to, i))
            return ir_check_fail(c, "iterations of the lanes around it would write the same place");
    return true;
}

/* ---- loops ---- */
/* Are there rows for what a step leaves? */
static bool has_rest(const ir_check *c, int64_t step) {
    for (size_t i = 0; i < c->f->body.n; i++) {
        const ir_op *rows = ir_at(c->f, c->f->body.ops[i]);
        if (rows->code == IR_ROWS && ir_int(rows, IR_ATTR_REST, 0) == step)
            return true;
    }
    return false;
}

/* Inside of a block there are any number of them, over its run of units. */
static bool check_inner_rows(ir_check *c, const ir_op *op, int64_t step) {
    if (c->depth > 2 || (c->depth == 2 && ir_at(c->f, c->loops[1])->code != IR_TILES))
        return ir_check_fail(c, "in a block it stands at the top, or in tiles there");
    if (ir_find_attr(op, IR_ATTR_REST) || ir_find_attr(op, IR_ATTR_FEW) || ir_find_attr(op, IR_ATTR_BLOCK))
        return ir_check_fail(c, "in a block it has a step at most");
    return ir_check_region_args(c, op, (size_t)step, NULL);
}

/* Those that leave some in launches of few units are followed by those for the rest. */
static bool check_rows(ir_check *c, const ir_op *op) {
    int64_t step = ir_int(op, IR_ATTR_STEP, 1), rest = ir_int(op, IR_ATTR_REST, 0), few = ir_int(op, IR_ATTR_FEW, 0);
    if (step < 1 || step > IR_MAX_STEP || (rest && step > 1))
        return ir_check_fail(c, "step is 1 to %d, and not that of a rest", IR_MAX_STEP);
    if (c->depth && ir_find_attr(ir_at(c->f, c->loops[0]), IR_ATTR_BLOCK))
        return check_inner_rows(c, op, step);
    if (c->depth > 1 || (c->depth && ir_at(c->f, c->loops[0])->code != IR_TILES))
        return ir_check_fail(c, "it stands at the top of the function, or in tiles there");
    if (ir_find_attr(op, IR_ATTR_BLOCK) &&
        (ir_int(op, IR_ATTR_BLOCK, 0) < 1 || step > 1 || rest || ir_find_attr(op, IR_ATTR_FEW) || c->depth))
        return ir_check_fail(c, "a block is at least 1, of all units, and at the top of the function");
    if (few < 0 || (few && step == 1 && !rest) || (few && step > 1 && !has_rest(c, step)))
        return ir_check_fail(c, "few is at least 1, of a step and of its rest behind it");
    if (c->has_rows ? !rest || rest != c->rows_left || few != c->rows_few || c->depth : rest != 0)
        return ir_check_fail(c, "it stands once, unless it takes the rest of those before it");
    c->has_rows = true;
    c->rows_left = few ? step : 0;
    c->rows_few = few;
    return ir_check_region_args(c, op, (size_t)step, NULL);
}

static bool check_positive(ir_check *c, const ir_op *op, ir_attr_key key, int64_t least, const char *what) {
    const ir_attr *a = ir_find_attr(op, key);
    return !a || a->i >= least || ir_check_fail(c, "%s must be at least %lld", what, (long long)least);
}

static bool check_lanes_attr(ir_check *c, const ir_op *op) {
    int64_t lanes = ir_int(op, IR_ATTR_LANES, 1);
    return lanes == 1 || lanes == IR_N_PARTIALS || ir_check_fail(c, "lanes is 1 or %d", IR_N_PARTIALS);
}

static bool check_loop(ir_check *c, const ir_op *op) {
    size_t n = op->code == IR_EDGES ? 3 : op->code == IR_LOOP ? 1 : 2;
    if (!check_i64s(c, op, 0, op->n_args) || !check_lanes_attr(c, op))
        return false;
    if (!check_positive(c, op, IR_ATTR_PREFETCH, 0, "prefetch") || !check_positive(c, op, IR_ATTR_FETCH, 1, "fetch") ||
        !check_positive(c, op, IR_ATTR_VECTOR, 0, "vector") || !check_positive(c, op, IR_ATTR_WIDTH, 1, "width") ||
        (op->code == IR_LOOP && !check_positive(c, op, IR_ATTR_FEW, 1, "few")))
        return false;
    if (op->code == IR_EDGES && !ir_walks(c->f))
        return ir_check_fail(c, "a function over rows walks no edges");
    if (op->code == IR_EDGES && !inside(c, IR_ROWS))
        return ir_check_fail(c, "it stands inside rows");
    return ir_check_region_args(c, op, n, NULL);
}

/* ---- arrays ---- */
static uint32_t indices_of(const ir_param *p) {
    return p->type.rank + (p->role != IR_PARAM_FIELD && p->role != IR_OUT_PARAM);
}

static bool check_load(ir_check *c, const ir_op *op) {
    const ir_param *p;
    if (!ir_check_param_index(c, op, &p))
        return false;
    if (ir_role_is_out(p->role) && !p->begins)
        return ir_check_fail(c, "'%s' is a result; it is only written", p->name);
    if (op->n_args != indices_of(p))
        return ir_check_fail(c, "%u indices for '%s', which has %u axes", op->n_args, p->name, indices_of(p));
    return check_i64s(c, op, 0, op->n_args) && ir_check_type_is(c, op, ir_scalar(p->type.dtype));
}

static bool check_store(ir_check *c, const ir_op *op) {
    const ir_param *p;
    if (!ir_check_param_index(c, op, &p))
        return false;
    if (!ir_role_is_out(p->role))
        return ir_check_fail(c, "'%s' is not a result", p->name);
    if (op->n_args != indices_of(p) + 1)
        return ir_check_fail(c, "%u indices for '%s', which has %u axes", op->n_args - 1, p->name, indices_of(p));
    if (!inside(c, IR_ROWS))
        return ir_check_fail(c, "it stands inside rows");
    return check_i64s(c, op, 0, op->n_args - 1) && ir_check_scalar_arg(c, op, op->n_args - 1, p->type.dtype) &&
           check_independent(c, op, 0, 0, op->n_args - 1);
}

static bool check_var(ir_check *c, const ir_op *op) {
    return op->type.dtype < IR_DTYPE_COUNT || ir_check_fail(c, "a var has an element type");
}

static bool check_read(ir_check *c, const ir_op *op) {
    const ir_type *t = &ir_check_arg(c, op, 0)->type;
    if (op->n_args != 1 + t->rank)
        return ir_check_fail(c, "%u indices for a var of rank %u", op->n_args - 1, t->rank);
    return check_i64s(c, op, 1, op->n_args) && ir_check_type_is(c, op, ir_scalar(t->dtype));
}

static bool check_set(ir_check *c, const ir_op *op) {
    const ir_type *t = &ir_check_arg(c, op, 0)->type;
    if (op->n_args != 2 + t->rank)
        return ir_check_fail(c, "%u indices for a var of rank %u", op->n_args - 2, t->rank);
    return check_i64s(c, op, 1, op->n_args - 1) && ir_check_scalar_arg(c, op, op->n_args - 1, t->dtype) &&
           check_independent(c, op, op->args[0], 1, op->n_args - 1);
}

/* ---- partial sums ---- */
static bool is_arg_kind(ir_kind k) { return k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX; }

static bool check_partials(ir_check *c, const ir_op *op) {
    ir_kind k;
    if (op->type.rank || op->type.dtype >= IR_DTYPE_COUNT)
        return ir_check_fail(c, "partials are of a scalar type");
    return ir_check_kind(c, op, &k) && ir_check_kind_on(c, k, op->type.dtype);
}

static bool check_accum(ir_check *c, const ir_op *op) {
    const ir_op *partials = ir_check_arg(c, op, 0);
    bool pairs = is_arg_kind(ir_kind_of(partials));
    if (op->n_args != (pairs ? 4 : 3))
        return ir_check_fail(c, pairs ? "argmin and argmax take an edge" : "only argmin and argmax take an edge");
    return ir_check_scalar_arg(c, op, 1, IR_I64) && ir_check_scalar_arg(c, op, 2, partials->type.dtype) &&
           (!pairs || ir_check_scalar_arg(c, op, 3, IR_I64)) && check_independent(c, op, op->args[0], 1, 2);
}

static bool check_collapse(ir_check *c, const ir_op *op) {
    const ir_op *partials = ir_check_arg(c, op, 0);
    return ir_check_type_is(c, op, ir_scalar(is_arg_kind(ir_kind_of(partials)) ? IR_I64 : partials->type.dtype));
}

static bool check_scalar_i64(ir_check *c, const ir_op *op) {
    return check_i64s(c, op, 0, op->n_args) && ir_check_type_is(c, op, ir_scalar(IR_I64));
}

/* Scalars everywhere but in vars, whose shape is theirs. */
static bool check_form(ir_check *c, const ir_op *op) {
    if (op->code != IR_VAR && op->type.rank)
        return ir_check_fail(c, "only a var has axes here");
    return (op->type.dtype < IR_DTYPE_COUNT || op->type.dtype == IR_NONE) ||
           ir_check_fail(c, "only numbers exist on this level");
}

static bool check_degree(ir_check *c, const ir_op *op) {
    if (op->n_args != 1)
        return ir_check_fail(c, "here it takes the row");
    if (!ir_walks(c->f))
        return ir_check_fail(c, "a function over rows has no edges");
    return check_scalar_i64(c, op);
}

bool ir_check_loop_op(ir_check *c, const ir_op *op) {
    if (!check_form(c, op) || !check_values(c, op))
        return false;
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return ir_check_elementwise(c, op);
    if (op->code == IR_ROWS)
        return check_rows(c, op);
    if (op->code == IR_DEGREE)
        return check_degree(c, op);
    if (op->code == IR_DIMSIZE || op->code == IR_NUMROWS || op->code == IR_SOURCE || op->code == IR_EDGEID ||
        op->code == IR_SLOT)
        return check_scalar_i64(c, op);
    if (op->code == IR_LOAD)
        return check_load(c, op);
    if (op->code == IR_STORE)
        return check_store(c, op);
    if (op->code == IR_VAR)
        return check_var(c, op);
    if (op->code == IR_READ)
        return check_read(c, op);
    if (op->code == IR_SET)
        return check_set(c, op);
    if (op->code == IR_PARTIALS)
        return check_partials(c, op);
    if (op->code == IR_ACCUM)
        return check_accum(c, op);
    if (op->code == IR_COLLAPSE)
        return check_collapse(c, op);
    if (ir_op_describe(op->code)->cls == IR_CLASS_LOOP)
        return check_loop(c, op);
    return op->code == IR_ARG || op->code == IR_CONST || ir_check_fail(c, "no rule for this operation");
}
