/* The gradient of a maximum or minimum of a field of the sources, by who won.
 *
 * The walk forward keeps for each element of a row which edge has the best value (`which` of ir_winners).  What comes back to
 * an edge is then a formula of the ends of the edge, of which almost all are 0: the kernel that sums them up at the sources
 * can go through the rows and give to the winners, without looking at the other edges (lower_winners.c).
 *
 * `which` is a number of the type of the values, so that it is kept in the same registers, and one subtraction counts a tie. */
#include "passes/grad.h"

#include <math.h>

enum { STATES = 3 }; /* best, which, edges so far */

static ir_id argument(ir_builder *b, ir_id start, size_t index, const char *name) {
    ir_type t = ir_at(b->f, start)->type;
    t.space = IR_EDGE;
    ir_id id = ir_emit(b, IR_ARG, t, NULL, 0);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_INDEX, (int64_t)index);
    if (name)
        ir_set_word(b->m, ir_at(b->f, id), IR_ATTR_NAME, name);
    return id;
}

/* The state that an edge meets, a, and what the edge begins with, c.  The start counts as an edge that ties, so what ends
 * with it is counted otherwise: by then all edges have it. */
static void join(ir_builder *b, bool max, const ir_id *a, const ir_id *c, ir_id *next) {
    double tie = ir_winners_tie(ir_at(b->f, a[0])->type.dtype);
    ir_id fits = grad_number(b, a[2], tie / 2);
    ir_id number = grad_select(b, grad_op2(b, IR_LT, a[2], fits), a[2], fits);
    ir_id tied = grad_op2(b, IR_SUB, a[1], grad_number(b, a[2], tie));
    ir_id better = grad_op2(b, max ? IR_GT : IR_LT, c[0], a[0]), equal = grad_op2(b, IR_EQ, c[0], a[0]);
    next[0] = grad_op2(b, max ? IR_MAX : IR_MIN, a[0], c[0]);
    next[1] = grad_select(b, better, number, grad_select(b, equal, tied, a[1]));
    next[2] = grad_op2(b, IR_ADD, a[2], c[2]);
}

static ir_id member(ir_builder *b, ir_id combine, ir_id start, int64_t index) {
    ir_type t = ir_at(b->f, start)->type;
    t.space = IR_ROW;
    ir_id id = ir_emit1(b, IR_GET, t, combine);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_INDEX, index);
    return id;
}

static void mark(ir_builder *b, ir_id id) { ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_WINNERS, 1); }

/* -1 without edges, or one that wins, or as many ties as there are others. */
static ir_id all_edges(ir_builder *b, ir_id edges) {
    double tie = ir_winners_tie(ir_at(b->f, edges)->type.dtype);
    ir_id one = grad_number(b, edges, 1), others = grad_op2(b, IR_SUB, one, edges);
    return grad_select(b, grad_op2(b, IR_LT, edges, one), grad_number(b, edges, -1),
                       grad_op2(b, IR_MUL, others, grad_number(b, edges, tie)));
}

static ir_id which_edge(ir_builder *b, ir_id v, bool max) {
    static const char *const names[STATES] = {"best", "which", "edges"};
    ir_type t = ir_at(b->f, v)->type, one = ir_scalar(t.dtype);
    t.space = IR_UNIFORM;
    ir_id start[STATES] = {ir_emit_f(b, t, max ? (double)-INFINITY : (double)INFINITY), ir_emit_f(b, t, -1),
                           ir_emit_f(b, one, 0)};
    ir_id args[2 * STATES] = {start[0], start[1], start[2], v, start[1], ir_emit_f(b, one, 1)};
    ir_id id = ir_emit(b, IR_COMBINE, ir_scalar(IR_TUPLE), args, 2 * STATES), state[2 * STATES], next[STATES];
    mark(b, id);
    ir_region *outer = b->r;
    b->r = ir_at(b->f, id)->region = ir_region_new(b->m);
    for (size_t i = 0; i < 2 * STATES; i++)
        state[i] = argument(b, start[i % STATES], i, i < STATES ? names[i] : NULL);
    join(b, max, state, state + STATES, next);
    ir_emit(b, IR_YIELD, (ir_type){.dtype = IR_NONE}, next, STATES);
    b->r = outer;
    ir_id best = member(b, id, start[0], 0), which = member(b, id, start[1], 1);
    ir_id every = all_edges(b, member(b, id, start[2], 2)), none = grad_number(b, which, -1);
    ir_id known = grad_select(b, grad_op2(b, IR_EQ, best, start[0]), every, which);
    ir_id out = grad_select(b, grad_op2(b, IR_EQ, best, best), known, none);
    mark(b, out);
    return out;
}

static ir_id on_edges(ir_builder *b, ir_id v) {
    ir_type t = ir_at(b->f, v)->type;
    t.space = IR_EDGE;
    return ir_emit1(b, IR_BROADCAST, t, v);
}

/* What v is in rows that have edges: the others give nothing, whatever `empty = ..` makes of them. */
static ir_id with_edges(const ir_func *f, ir_id v) {
    const ir_op *op = ir_at(f, v), *c = op->code == IR_SELECT ? ir_at(f, op->args[0]) : NULL;
    if (!c || c->code != IR_EQ || ir_at(f, c->args[0])->code != IR_DEGREE || ir_at(f, c->args[1])->code != IR_CONST)
        return v;
    bool empty = ir_find_attr(ir_at(f, c->args[1]), IR_ATTR_VALUE)->v.i == 0;
    return empty && ir_type_equal(&ir_at(f, op->args[2])->type, &op->type) ? op->args[2] : v;
}

/* The result that is the maximum, in rows with edges; the maximum itself when there is none. */
static ir_id as_result(const ir_func *k, ir_id reduce) {
    const ir_op *ret = ir_at(k, k->body.ops[k->body.n - 1]);
    for (uint32_t i = 0; i < ret->n_args; i++)
        if (with_edges(k, ret->args[i]) == reduce)
            return ret->args[i];
    return reduce;
}

ir_id grad_winners(ir_builder *b, const ir_func *k, ir_id reduce, ir_id ct) {
    ir_id v = ir_at(b->f, reduce)->args[0], best = as_result(k, reduce);
    bool max = ir_kind_of(ir_at(b->f, reduce)) == IR_KIND_MAX;
    double tie = ir_winners_tie(ir_at(b->f, v)->type.dtype);
    ir_id which = on_edges(b, which_edge(b, v, max)), given = on_edges(b, with_edges(b->f, ct));
    ir_id ties = grad_op1(b, IR_FLOOR, grad_op2(b, IR_MUL, which, grad_number(b, v, 1 / tie)));
    ir_id share = grad_op2(b, IR_DIV, given, grad_op2(b, IR_SUB, grad_number(b, v, 1), ties));
    ir_id out = grad_select(b, grad_op2(b, IR_EQ, v, best), share, grad_number(b, v, 0));
    mark(b, out);
    return out;
}

bool grad_is_winners(const ir_func *f, ir_id v) {
    return v && ir_at(f, v)->code == IR_SELECT && ir_int(ir_at(f, v), IR_ATTR_WINNERS, 0);
}

/* ---- where ---- */
static uint32_t uses(const ir_func *k, const ir_region *r, int64_t field) {
    uint32_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(k, r->ops[i]);
        for (uint32_t a = 0; a < op->n_args; a++) {
            const ir_op *from = ir_at(k, op->args[a]);
            n += pass_reads_at(from, "src") && ir_int(from, IR_ATTR_FIELD, 0) == field;
        }
        n += op->region ? uses(k, op->region, field) : 0;
    }
    return n;
}

static bool has_axes(const ir_type *t) {
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            return true;
    return false;
}

bool grad_has_winners(const ir_func *k, const ir_func *adjoint, ir_id reduce, ir_id ct) {
    const ir_op *op = ir_at(k, reduce), *v = ir_at(k, op->args[0]), *c = ir_at(adjoint, with_edges(adjoint, ct));
    bool real = op->type.dtype == IR_F32 || op->type.dtype == IR_F64;
    return real && has_axes(&op->type) && pass_reads_at(v, "src") && pass_reads_at(c, "dst") &&
           ir_shape_equal(&v->type, &op->type) && ir_shape_equal(&c->type, &op->type) &&
           c->type.dtype == op->type.dtype && uses(k, &k->body, ir_int(v, IR_ATTR_FIELD, 0)) == 1;
}
