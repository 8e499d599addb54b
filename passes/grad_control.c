/* Gradients through repeat, while and if.
 *
 * A repeat of N rounds is run once more, in segments of about sqrt(N) rounds.  What a segment begins with is pushed on
 * the stack of the call; then, last segment first, a segment is run again with what each round begins with pushed, and
 * its rounds are gone through backwards, popping.  So at most about 2 sqrt(N) states are kept at a time, and the rounds
 * run three more times.  The body stands in the code four times (with a `while` five), however many rounds there are.
 *
 * A gradient that is differentiated itself keeps to loops that have a derivative: no stack; what a segment and a round
 * begin with is computed anew, which takes about N sqrt(N) rounds.
 *
 * A repeat that a `while` may leave is run once more before that, to count its rounds.
 *
 * The arms of an if are swept in the arms of another if with the same condition. */
#include "passes/grad.h"

#include <string.h>

/* ---- copies of a body ---- */
typedef enum portion { WHOLE, WITH_WHILE, BARE } portion; /* without arguments and end; without `while` also */
static void clone_ops(grad *g, ir_builder *b, const ir_region *r, ir_id *map, portion what);

static ir_id clone_op(grad *g, ir_builder *b, ir_id id, ir_id *map) {
    const ir_op *op = ir_at(g->f, id);
    ir_id *args = base_arena_new_array(g->scratch, ir_id, op->n_args + 1);
    for (uint32_t i = 0; i < op->n_args; i++)
        args[i] = map[op->args[i]] ? map[op->args[i]] : op->args[i];
    b->span = op->span;
    ir_id copy = ir_emit(b, op->code, op->type, args, op->n_args);
    ir_copy_attrs(g->m, op, ir_at(g->f, copy));
    if (!op->region)
        return copy;
    ir_region *outer = b->r;
    b->r = ir_at(g->f, copy)->region = ir_region_new(g->m);
    clone_ops(g, b, op->region, map, WHOLE);
    b->r = outer;
    return copy;
}

static void clone_ops(grad *g, ir_builder *b, const ir_region *r, ir_id *map, portion what) {
    for (size_t i = 0; i < r->n; i++) {
        ir_opcode code = ir_at(g->f, r->ops[i])->code;
        if (what == WHOLE || (code != IR_ARG && code != IR_YIELD && (what == WITH_WHILE || code != IR_WHILE)))
            map[r->ops[i]] = clone_op(g, b, r->ops[i], map);
    }
}

static bool contains(const ir_func *f, const ir_region *r, ir_opcode a, ir_opcode b, bool deep) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        if (op->code == a || op->code == b || (deep && op->region && contains(f, op->region, a, b, deep)))
            return true;
    }
    return false;
}

/* ---- values from around that a body uses ---- */
typedef struct outer_values {
    ir_id *v;
    size_t n, cap;
    bool *seen; /* by id: listed, or made inside */
} outer_values;

static void list_outer(const grad_sweep *p, const ir_region *r, outer_values *u) {
    for (size_t i = 0; i < r->n; i++)
        u->seen[r->ops[i]] = true;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(p->g->f, r->ops[i]);
        for (uint32_t k = 0; k < op->n_args; k++) {
            ir_id v = op->args[k];
            if (u->seen[v] || !p->active[v] || !ir_dtype_has_gradient(ir_at(p->g->f, v)->type.dtype))
                continue;
            u->seen[v] = true;
            base_push(p->g->scratch, u->v, u->n, u->cap, v);
        }
        if (op->region)
            list_outer(p, op->region, u);
    }
}

/* ---- building repeats ---- */
grad_loop grad_loop_begin(grad *g, ir_builder *b, ir_id count, const ir_id *start, size_t n) {
    grad_loop l = {.g = g, .b = b, .n = n, .arg = base_arena_new_array(g->scratch, ir_id, n + 1)};
    ir_id *args = base_arena_new_array(g->scratch, ir_id, n + 1);
    args[0] = count;
    base_copy(args + 1, start, sizeof *start * n);
    l.id = ir_emit(b, IR_REPEAT, ir_scalar(IR_TUPLE), args, n + 1);
    l.outer = b->r;
    b->r = ir_at(g->f, l.id)->region = ir_region_new(g->m);
    for (size_t i = 0; i < n; i++) {
        l.arg[i] = ir_emit(b, IR_ARG, ir_at(g->f, start[i])->type, NULL, 0);
        ir_set_int(g->m, ir_at(g->f, l.arg[i]), IR_ATTR_INDEX, (int64_t)i);
    }
    return l;
}

static ir_id member(grad *g, ir_builder *b, ir_id tuple, ir_type type, size_t i) {
    ir_id id = ir_emit1(b, IR_GET, type, tuple);
    ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_INDEX, (int64_t)i);
    return id;
}

/* The results, in place of the values yielded. */
void grad_loop_end(grad_loop *l, ir_id *values) {
    for (size_t i = 0; i < l->n; i++)
        values[i] = grad_full(l->b, values[i], &ir_at(l->g->f, l->arg[i])->type);
    ir_emit(l->b, IR_YIELD, (ir_type){.dtype = IR_NONE}, values, l->n);
    l->b->r = l->outer;
    for (size_t i = 0; i < l->n; i++)
        values[i] = member(l->g, l->b, l->id, ir_at(l->g->f, l->arg[i])->type, i);
}

static void push(grad_loop *l, const ir_id *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        ir_emit1(l->b, IR_PUSH, (ir_type){.dtype = IR_NONE}, v[i]);
}

/* In the order in which they were pushed. */
static void pop(grad *g, ir_builder *b, const ir_id *like, ir_id *out, size_t n) {
    for (size_t i = n; i-- > 0;)
        out[i] = ir_emit(b, IR_POP, ir_at(g->f, like[i])->type, NULL, 0);
}

/* ---- one repeat ---- */
typedef struct rounds {
    grad_sweep *p;
    grad *g;
    ir_builder *b;
    const ir_op *op, *yield;
    size_t n;           /* carried */
    const ir_id *start; /* of them */
    size_t *d, n_d;     /* those with a gradient */
    outer_values u;
    ir_id count, length; /* rounds in all, of a segment */
} rounds;

/* The body with the given values in place of its arguments; what it yields comes into out. */
static ir_id *body(rounds *r, const ir_id *in, ir_id *out, bool with_while) {
    ir_id *map = base_arena_new_array(r->g->scratch, ir_id, r->g->f->n_ops);
    for (size_t k = 0; k < r->n; k++)
        map[r->op->region->ops[k]] = in[k];
    clone_ops(r->g, r->b, r->op->region, map, with_while ? WITH_WHILE : BARE);
    for (size_t k = 0; k < r->n; k++)
        out[k] = map[r->yield->args[k]] ? map[r->yield->args[k]] : r->yield->args[k];
    return map;
}

static ir_id *values(rounds *r, size_t n) { return base_arena_new_array(r->g->scratch, ir_id, n + 1); }

/* How many rounds the repeat really had. */
static ir_id count_rounds(rounds *r) {
    if (!contains(r->g->f, r->op->region, IR_WHILE, IR_WHILE, false))
        return r->op->args[0];
    ir_id *start = values(r, r->n + 1), *out = values(r, r->n + 1);
    base_copy(start, r->start, sizeof *start * r->n);
    start[r->n] = ir_emit_i64(r->b, 0);
    grad_loop l = grad_loop_begin(r->g, r->b, r->op->args[0], start, r->n + 1);
    body(r, l.arg, out, true);
    out[r->n] = grad_op2(r->b, IR_ADD, l.arg[r->n], ir_emit_i64(r->b, 1));
    grad_loop_end(&l, out);
    return out[r->n];
}

/* About sqrt(count), at least 1; and how many segments there are. */
static ir_id choose_segments(rounds *r) {
    ir_builder *b = r->b;
    ir_id one = ir_emit_i64(b, 1);
    r->count = grad_op2(b, IR_MAX, count_rounds(r), ir_emit_i64(b, 0));
    ir_id root = grad_op1(b, IR_CEIL, grad_op1(b, IR_SQRT, ir_emit_cast(b, IR_F64, r->count)));
    r->length = grad_op2(b, IR_MAX, ir_emit_cast(b, IR_I64, root), one);
    ir_id up = grad_op2(b, IR_ADD, r->count, grad_op2(b, IR_SUB, r->length, one));
    return grad_op2(b, IR_DIV, up, r->length);
}

/* Leaves what each segment begins with, and its number of rounds, on the stack. */
static void run_forward(rounds *r, ir_id segments) {
    ir_id *start = values(r, r->n + 1), *out = values(r, r->n + 1);
    base_copy(start, r->start, sizeof *start * r->n);
    start[r->n] = r->count;
    grad_loop outer = grad_loop_begin(r->g, r->b, segments, start, r->n + 1);
    ir_id n = grad_op2(r->b, IR_MIN, r->length, outer.arg[r->n]);
    push(&outer, outer.arg, r->n);
    push(&outer, &n, 1);
    grad_loop inner = grad_loop_begin(r->g, r->b, n, outer.arg, r->n);
    body(r, inner.arg, out, false);
    grad_loop_end(&inner, out);
    out[r->n] = grad_op2(r->b, IR_SUB, outer.arg[r->n], n);
    grad_loop_end(&outer, out);
}

/* One round backwards: from the cotangents ct of what is carried and the sums so far. */
static bool back(rounds *r, const ir_id *state, const ir_id *ct, ir_id *out) {
    ir_id *yielded = values(r, r->n), *wrt = values(r, r->n_d + r->u.n);
    size_t from = r->b->r->n;
    body(r, state, yielded, false);
    grad_sweep q = grad_sweep_new(r->g, r->b);
    for (size_t i = from; i < r->b->r->n; i++)
        base_push(r->g->scratch, q.order, q.n, q.cap, r->b->r->ops[i]);
    for (size_t i = 0; i < r->n_d; i++)
        wrt[i] = state[r->d[i]];
    base_copy(wrt + r->n_d, r->u.v, sizeof *wrt * r->u.n);
    grad_sweep_forward(&q, wrt, r->n_d + r->u.n);
    for (size_t i = 0; i < r->n_d; i++)
        grad_take(&q, yielded[r->d[i]], ct[i]);
    if (!grad_sweep_back(&q))
        return false;
    for (size_t i = 0; i < r->n_d + r->u.n; i++) {
        out[i] = grad_result(&q, wrt[i]);
        if (i >= r->n_d)
            out[i] = q.ct[wrt[i]] ? grad_op2(r->b, IR_ADD, ct[i], out[i]) : ct[i];
    }
    return true;
}

static bool run_backward(rounds *r, ir_id segments, ir_id *ct) {
    size_t n_ct = r->n_d + r->u.n;
    ir_id *state = values(r, r->n + 1), *out = values(r, r->n), *like = values(r, r->n + 1);
    base_copy(like, r->start, sizeof *like * r->n);
    like[r->n] = r->count;
    grad_loop outer = grad_loop_begin(r->g, r->b, segments, ct, n_ct);
    pop(r->g, r->b, like, state, r->n + 1);
    grad_loop again = grad_loop_begin(r->g, r->b, state[r->n], state, r->n);
    push(&again, again.arg, r->n);
    body(r, again.arg, out, false);
    grad_loop_end(&again, out);
    grad_loop inner = grad_loop_begin(r->g, r->b, state[r->n], outer.arg, n_ct);
    pop(r->g, r->b, like, state, r->n);
    if (!back(r, state, inner.arg, ct))
        return false;
    grad_loop_end(&inner, ct);
    grad_loop_end(&outer, ct);
    return true;
}

/* The body so many times over, from the given state. */
static void run_again(rounds *r, ir_id n, const ir_id *from, ir_id *out) {
    grad_loop l = grad_loop_begin(r->g, r->b, n, from, r->n);
    body(r, l.arg, out, false);
    grad_loop_end(&l, out);
}

/* The same without the stack, for a gradient that is differentiated itself: states are computed from the start, and
 * within a segment from its beginning. */
static bool run_backward_bare(rounds *r, ir_id segments, ir_id *ct) {
    size_t n_ct = r->n_d + r->u.n;
    ir_id one = ir_emit_i64(r->b, 1), *first = values(r, r->n), *state = values(r, r->n);
    ct[n_ct] = r->count;
    grad_loop outer = grad_loop_begin(r->g, r->b, segments, ct, n_ct + 1);
    ir_id n = grad_op2(r->b, IR_MIN, r->length, outer.arg[n_ct]);
    ir_id before = grad_op2(r->b, IR_SUB, outer.arg[n_ct], n);
    run_again(r, before, r->start, first);
    base_copy(ct, outer.arg, sizeof *ct * n_ct);
    ct[n_ct] = grad_op2(r->b, IR_SUB, n, one);
    grad_loop inner = grad_loop_begin(r->g, r->b, n, ct, n_ct + 1);
    run_again(r, inner.arg[n_ct], first, state);
    if (!back(r, state, inner.arg, ct))
        return false;
    ct[n_ct] = grad_op2(r->b, IR_SUB, inner.arg[n_ct], one);
    grad_loop_end(&inner, ct);
    ct[n_ct] = before;
    grad_loop_end(&outer, ct);
    return true;
}

static void find_differentiated(rounds *r) {
    r->d = base_arena_new_array(r->g->scratch, size_t, r->n + 1);
    for (size_t k = 0; k < r->n; k++)
        if (r->p->active[r->op->region->ops[k]])
            r->d[r->n_d++] = k;
    r->u.seen = base_arena_new_array(r->g->scratch, bool, r->g->f->n_ops);
    list_outer(r->p, r->op->region, &r->u);
}

bool grad_repeat(grad_sweep *p, ir_id id) {
    const ir_op *op = ir_at(p->g->f, id);
    const ir_id *given = grad_members(p, id);
    rounds r = {.p = p, .g = p->g, .b = p->b, .op = op, .yield = ir_yield_of(p->g->f, op), .n = op->n_args - 1};
    bool any = false;
    for (size_t k = 0; k < r.n; k++)
        any |= given[k] != 0;
    if (!any)
        return true;
    BASE_CHECK(!contains(p->g->f, op->region, IR_PUSH, IR_POP, true));
    r.start = op->args + 1;
    find_differentiated(&r);
    ir_id *ct = values(&r, r.n_d + r.u.n + 1);
    for (size_t i = 0; i < r.n_d + r.u.n; i++) {
        ir_id v = i < r.n_d ? r.start[r.d[i]] : r.u.v[i - r.n_d];
        ir_id value = i < r.n_d ? given[r.d[i]] : 0;
        ct[i] = grad_full(p->b, value ? value : grad_number(p->b, v, 0), &ir_at(p->g->f, v)->type);
    }
    ir_id segments = choose_segments(&r);
    if (!p->g->again)
        run_forward(&r, segments);
    if (!(p->g->again ? run_backward_bare(&r, segments, ct) : run_backward(&r, segments, ct)))
        return false;
    for (size_t i = 0; i < r.n_d + r.u.n; i++)
        grad_take(p, i < r.n_d ? r.start[r.d[i]] : r.u.v[i - r.n_d], ct[i]);
    return true;
}

/* ---- if ---- */
/* An arm of the new if: the old one, and the sweep over it. */
static bool sweep_arm(grad_sweep *p, const ir_op *old, const ir_id *given, const outer_values *u) {
    grad *g = p->g;
    ir_builder *b = p->b;
    const ir_op *yield = ir_yield_of(g->f, old);
    ir_region *outer = b->r;
    ir_id arm = ir_emit(b, IR_ARM, (ir_type){.dtype = IR_NONE}, NULL, 0);
    b->r = ir_at(g->f, arm)->region = ir_region_new(g->m);
    ir_id *map = base_arena_new_array(g->scratch, ir_id, g->f->n_ops);
    ir_id *out = base_arena_new_array(g->scratch, ir_id, u->n + 1);
    clone_ops(g, b, old->region, map, BARE);
    grad_sweep q = grad_sweep_new(g, b);
    for (size_t i = 0; i < b->r->n; i++)
        base_push(g->scratch, q.order, q.n, q.cap, b->r->ops[i]);
    grad_sweep_forward(&q, u->v, u->n);
    for (uint32_t k = 0; k < yield->n_args; k++)
        if (given[k])
            grad_take(&q, map[yield->args[k]] ? map[yield->args[k]] : yield->args[k], given[k]);
    if (!grad_sweep_back(&q))
        return false;
    for (size_t i = 0; i < u->n; i++)
        out[i] = grad_result(&q, u->v[i]);
    ir_emit(b, IR_YIELD, (ir_type){.dtype = IR_NONE}, out, u->n);
    b->r = outer;
    return true;
}

bool grad_if(grad_sweep *p, ir_id id) {
    grad *g = p->g;
    const ir_op *op = ir_at(g->f, id);
    const ir_id *given = grad_members(p, id);
    outer_values u = {.seen = base_arena_new_array(g->scratch, bool, g->f->n_ops)};
    bool any = false;
    for (uint32_t k = 0; k < ir_yield_of(g->f, op)->n_args; k++)
        any |= given[k] != 0;
    list_outer(p, op->region, &u);
    if (!any || !u.n)
        return true;
    BASE_CHECK(!contains(g->f, op->region, IR_PUSH, IR_POP, true));
    ir_id choice = ir_emit1(p->b, IR_IF, ir_scalar(IR_TUPLE), op->args[0]);
    ir_region *outer = p->b->r;
    p->b->r = ir_at(g->f, choice)->region = ir_region_new(g->m);
    for (size_t i = 0; i < op->region->n; i++)
        if (!sweep_arm(p, ir_at(g->f, op->region->ops[i]), given, &u))
            return false;
    p->b->r = outer;
    for (size_t i = 0; i < u.n; i++) {
        ir_type t = ir_at(g->f, u.v[i])->type;
        t.dtype = ir_dtype_cotangent(t.dtype);
        grad_take(p, u.v[i], member(g, p->b, choice, t, i));
    }
    return true;
}
