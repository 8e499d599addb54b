/* Which arrays one kernel computes, and the calls in the program.
 *
 * Walks a region in order with a few groups open.  A new array joins a group over the same rows when they read an array
 * in common, or it reads one of the group's row by row; scalars, which are one row, always join.  A group is closed --
 * its call is written -- before anything outside of it reads one of its arrays.
 *
 * Invariant: whatever an open group reads is written in the program already, or is its own; so open groups do not depend
 * on one another, and may be closed in any order. */
#include "passes/outline.h"

#include <stdlib.h>

enum { MAX_RESULTS = 8, MAX_USES = 24 };

/* ---- chains ---- */
static void add_use(outline *s, outline_chain *c, outline_use use) {
    for (size_t i = 0; i < c->n_uses; i++)
        if (c->uses[i].v == use.v && c->uses[i].aligned == use.aligned)
            return;
    base_push(s->scratch, c->uses, c->n_uses, c->cap_uses, use);
}

static int by_position(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_by_position(const outline *s, ir_id *ops, size_t n) {
    uint64_t *keys = base_arena_new_array(s->scratch, uint64_t, n);
    for (size_t i = 0; i < n; i++)
        keys[i] = (uint64_t)s->at[ops[i]] << 32 | ops[i];
    qsort(keys, n, sizeof *keys, by_position);
    for (size_t i = 0; i < n; i++)
        ops[i] = (ir_id)keys[i];
}

/* Not recursive: a program may be one long chain. `row` serves as the mark of what is listed. */
outline_chain outline_chain_of(outline *s, ir_id root) {
    outline_chain c = {0};
    base_push(s->scratch, c.ops, c.n_ops, c.cap_ops, root);
    s->row[root] = 1;
    for (size_t i = 0; i < c.n_ops; i++) {
        const ir_op *op = ir_at(s->p, c.ops[i]);
        for (uint32_t k = 0; k < op->n_args; k++) {
            ir_id v = op->args[k];
            ir_opcode code = ir_at(s->p, v)->code;
            if (outline_is_leaf(code))
                continue;
            if (outline_is_array(code) || s->array[v]) {
                add_use(s, &c, (outline_use){v, outline_aligned(s->p, v, op)});
            } else if (!s->row[v]) {
                s->row[v] = 1;
                base_push(s->scratch, c.ops, c.n_ops, c.cap_ops, v);
            }
        }
    }
    for (size_t i = 0; i < c.n_ops; i++)
        s->row[c.ops[i]] = 0;
    sort_by_position(s, c.ops, c.n_ops);
    return c;
}

/* ---- groups ---- */
typedef struct groups {
    outline *s;
    ir_region out;       /* the region as it will be */
    outline_group *open; /* closed ones have no roots */
    size_t n, cap;
} groups;

static outline_group *group_of(const groups *g, ir_id v) {
    return g->s->group[v] ? &g->open[g->s->group[v] - 1] : NULL;
}

static bool has_use(const outline_group *x, outline_use use) {
    for (size_t i = 0; i < x->n_uses; i++)
        if (x->uses[i].v == use.v && x->uses[i].aligned == use.aligned)
            return true;
    return false;
}

/* Which arrays of the group are read by others; the rest need no memory. */
static void find_results(outline *s, outline_group *x) {
    x->result = base_arena_new_array(s->scratch, bool, x->n);
    for (size_t i = 0; i < x->n; i++) {
        uint32_t inside = 0;
        for (size_t k = i + 1; k < x->n; k++) {
            outline_chain c = outline_chain_of(s, x->roots[k]);
            for (size_t u = 0; u < c.n_uses; u++)
                inside += c.uses[u].v == x->roots[i];
        }
        x->result[i] = s->boundary[x->roots[i]] || s->users[x->roots[i]] > inside;
    }
}

static ir_id emit_call(groups *g, const outline_group *x, const outline_kernel *k, ir_type type) {
    outline *s = g->s;
    ir_id call = ir_op_new(s->m, s->p, IR_CALL, type, k->args, k->n_args);
    ir_op *c = ir_at(s->p, call);
    c->span = k->func->span;
    ir_set_word(s->m, c, IR_ATTR_CALLEE, k->func->name);
    ir_set_int(s->m, c, IR_ATTR_GRAPH, -1);
    ir_set_int(s->m, c, IR_ATTR_DIM, x->rows);
    ir_append(s->m, &g->out, call);
    return call;
}

static void close_group(groups *g, outline_group *x) {
    outline *s = g->s;
    if (!x->n)
        return;
    find_results(s, x);
    outline_kernel k = outline_make_kernel(s, x);
    bool single = k.func->n_results == 1;
    const ir_type *last = &ir_at(s->p, x->roots[x->n - 1])->type; /* always a result: nothing in the group follows it */
    ir_id call = emit_call(g, x, &k, single ? *last : ir_scalar(IR_TUPLE));
    for (size_t i = 0, n = 0; i < x->n; i++) {
        s->group[x->roots[i]] = 0;
        if (!x->result[i])
            continue;
        ir_id v = call;
        if (!single) {
            v = ir_op_new(s->m, s->p, IR_GET, ir_at(s->p, x->roots[i])->type, &call, 1);
            ir_set_int(s->m, ir_at(s->p, v), IR_ATTR_INDEX, (int64_t)n++);
            ir_append(s->m, &g->out, v);
        }
        s->map.to[x->roots[i]] = v;
    }
    x->n = 0;
}

static void close_all(groups *g) {
    for (size_t i = 0; i < g->n; i++)
        close_group(g, &g->open[i]);
    g->n = 0;
}

static bool is_scalar_group(const outline *s, const outline_group *x) {
    return !x->total && ir_at(s->p, x->roots[0])->type.rank == 0;
}

/* Does the chain hold a product?  What it is the product of ends other chains. */
static bool multiplies(const outline *s, const outline_chain *c) {
    for (size_t i = 0; i < c->n_ops; i++)
        if (ir_at(s->p, c->ops[i])->code == IR_MATMUL && !outline_is_small(s, ir_at(s->p, c->ops[i])->args[1]))
            return true;
    return false;
}

/* Only elements of its own column. */
static bool is_pointwise(const outline *s, const outline_chain *c) {
    for (size_t i = 0; i < c->n_ops; i++)
        if (!ir_class_is_elementwise(ir_op_describe(ir_at(s->p, c->ops[i])->code)->cls) &&
            ir_at(s->p, c->ops[i])->code != IR_BROADCAST)
            return false;
    return true;
}

/* A kernel with products holds besides only what is done to each of their elements, behind them. */
static bool fits_products(const groups *g, const outline_group *x, const outline_chain *c) {
    const outline *s = g->s;
    const ir_type *t = &ir_at(s->p, c->ops[c->n_ops - 1])->type;
    if (!t->rank)
        return true;
    bool own = multiplies(s, c), theirs = false, same = true;
    for (size_t i = 0; i < x->n; i++) {
        const ir_type *r = &ir_at(s->p, x->roots[i])->type;
        theirs |= s->multiplies[x->roots[i]];
        same &= r->rank == t->rank && r->rank && r->dim[r->rank - 1] == t->dim[t->rank - 1];
    }
    for (size_t i = 0; i < c->n_uses; i++)
        if (s->cut[c->uses[i].v] && group_of(g, c->uses[i].v) == x)
            return false;
    return own ? theirs && same : !theirs || (same && is_pointwise(s, c));
}

/* May the array computed by c join x, and would it gain by that? */
static bool fits(const groups *g, const outline_group *x, const outline_group *like, const outline_chain *c) {
    if (!x->n || x->rows != like->rows || x->total != like->total || x->n == MAX_RESULTS ||
        x->n_uses + c->n_uses > MAX_USES || is_scalar_group(g->s, x) != is_scalar_group(g->s, like))
        return false;
    if (g->s->by_panels && !x->total && !fits_products(g, x, c))
        return false;
    bool scalar = is_scalar_group(g->s, x), shared = scalar;
    for (size_t i = 0; i < c->n_uses; i++) {
        if (group_of(g, c->uses[i].v) == x) {
            if (x->total || (!c->uses[i].aligned && !scalar))
                return false;
            shared = true;
        }
        shared |= c->uses[i].aligned && has_use(x, c->uses[i]);
    }
    return shared;
}

static void add_uses(groups *g, size_t at, ir_id id, const outline_chain *c) {
    outline *s = g->s;
    outline_group *x = &g->open[at];
    for (size_t i = 0; i < c->n_uses; i++)
        if (!has_use(x, c->uses[i]))
            base_push(s->scratch, x->uses, x->n_uses, x->cap_uses, c->uses[i]);
    s->group[id] = (uint32_t)at + 1;
}

static void join(groups *g, ir_id id) {
    outline *s = g->s;
    const ir_op *op = ir_at(s->p, id);
    bool total = outline_is_total(s->p, op);
    const ir_type *over = total ? &ir_at(s->p, op->args[0])->type : &op->type;
    outline_group fresh = {.rows = over->rank ? over->dim[0] : 1, .total = total};
    base_push(s->scratch, fresh.roots, fresh.n, fresh.cap, id);
    outline_chain c = outline_chain_of(s, id);
    size_t at = 0;
    while (at < g->n && !fits(g, &g->open[at], &fresh, &c))
        at++;
    for (size_t i = 0; i < c.n_uses; i++) {
        outline_group *other = group_of(g, c.uses[i].v);
        if (other && other != (at < g->n ? &g->open[at] : NULL))
            close_group(g, other);
    }
    if (at == g->n)
        base_push(s->scratch, g->open, g->n, g->cap, fresh);
    else
        base_push(s->scratch, g->open[at].roots, g->open[at].n, g->open[at].cap, id);
    s->multiplies[id] = multiplies(s, &c);
    add_uses(g, at, id, &c);
}

/* ---- rewriting ---- */
static void stay(groups *g, ir_id id) {
    outline *s = g->s;
    ir_op *op = ir_at(s->p, id);
    if (op->code == IR_REPEAT || op->code == IR_IF || op->code == IR_YIELD || op->code == IR_RET)
        close_all(g);
    for (uint32_t i = op->code == IR_REPEAT && s->keep[op->args[0]] ? 1 : 0; i < op->n_args; i++) {
        if (group_of(g, op->args[i]))
            close_group(g, group_of(g, op->args[i]));
        op->args[i] = pass_map_find(&s->map, op->args[i]);
    }
    ir_append(s->m, &g->out, id);
    if (op->region)
        outline_rewrite(s, op->region);
}

void outline_rewrite(outline *s, ir_region *r) {
    groups g = {.s = s};
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        ir_opcode code = ir_at(s->p, id)->code;
        if (!outline_is_computed(code) && !outline_is_leaf(code)) {
            stay(&g, id);
            continue;
        }
        if (s->keep[id])
            ir_append(s->m, &g.out, id);
        if (s->array[id])
            join(&g, id);
    }
    close_all(&g);
    *r = g.out;
}
