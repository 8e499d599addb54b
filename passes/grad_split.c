/* Cutting the adjoint of a kernel into kernels that can be run.
 *
 *   turned   walks the transposed relation: what was the source is the row, so the gradient of a source field is a
 *            reduction; edge gradients are stored on the way.  Row values of the original are read at the other end of
 *            the edge: computed anew there when that takes no more reading than the value itself, else from an array.
 *            Some values of edges are read from arrays too (grad_ahead.c).
 *   winners  one for each source field whose gradient goes to the edges that won (grad_winners.c): turned too, but alone.
 *   rows     walks as the kernel did: makes those arrays, and what is per row.
 *   totals   sums over all rows what reaches a param that is not a scalar; for a scalar `rows` makes one number a row.
 *   scans    one for each scan (grad_steps.c), before all others: what it gives is read from arrays over the edges.
 *
 * Each is the part of the adjoint that its results need, in the order of the adjoint. */
#include "passes/grad.h"

#include <string.h>

typedef struct split {
    ir_module *m;
    const grad_adjoint *a;
    base_arena *scratch;
    const char *name;
    ir_id *known;   /* by id of the adjoint: the field of the adjoint that already holds the value */
    bool *cut;      /* by id: the turned kernel reads it from an array, of rows or, for an edge value, of edges */
    uint32_t *cut_result; /* by id: result of `rows` */
    bool
        edges_turned; /* gradients of edge fields are stored by `turned`; not where several arrays over the edges are read for them */
    uint32_t *scan_result; /* by id: of a member of a scan: which of all results of `scans` */
    grad_kernels out;
} split;

typedef struct part { /* one kernel that is being cut out */
    split *s;
    ir_builder b;
    grad_kernel *k;
    bool turned;
    ir_id scan; /* the one that this kernel is made for, 0: another kernel */
    bool *need; /* by id of the adjoint */
    ir_id *to; /* by id of the adjoint */
    uint32_t *param; /* by parameter of the adjoint, + 1 */
    ir_id *results;
    size_t n_results, cap_results;
} part;

static const ir_func *adjoint(const split *s) { return s->a->f; }

/* ---- names and dimensions ---- */
/* The sizes of the relation change places when it is turned. */
static ir_dim to_dim(part *p, ir_dim d) {
    if (!ir_dim_is_sym(d))
        return d;
    const char *name = adjoint(p->s)->syms[ir_dim_sym_index(d)];
    if (p->turned && !strcmp(name, ".dst"))
        name = ".src";
    else if (p->turned && !strcmp(name, ".src"))
        name = ".dst";
    return ir_dim_sym(ir_sym(p->b.m, p->b.f, name));
}

static ir_type to_type(part *p, const ir_type *t) {
    ir_type out = *t;
    for (uint32_t i = 0; i < t->rank; i++)
        out.dim[i] = to_dim(p, t->dim[i]);
    return out;
}

/* ---- fields ---- */
static ir_role turn_role(ir_role r) { return r == IR_SRC ? IR_DST : r == IR_DST ? IR_SRC : r; }

static grad_from from_of(const split *s, uint32_t field) {
    const grad_adjoint *a = s->a;
    if (field < a->k->n_params)
        return (grad_from){GRAD_FROM_ARG, field};
    for (size_t i = 0; i < a->k->n_results; i++) {
        if (a->cotangent[i] == field)
            return (grad_from){GRAD_FROM_COTANGENT, i};
        if (a->known[i] == field)
            return (grad_from){GRAD_FROM_RESULT, i};
    }
    BASE_BUG("@%s: a parameter from nowhere", a->f->name);
}

static uint32_t add_param(part *p, const char *name, ir_role role, const ir_type *type, grad_from from) {
    ir_func *f = p->b.f;
    ir_param q = {
        .name = ir_unused_name(p->b.m, p->b.f, name), .role = role, .type = to_type(p, type), .span = p->b.span};
    q.type.space = IR_UNIFORM;
    base_push(p->b.m->arena, f->params, f->n_params, f->cap_params, q);
    base_push(p->s->scratch, p->k->args, p->k->n_args, p->k->cap_args, from);
    return (uint32_t)f->n_params - 1;
}

static ir_id read_field(part *p, uint32_t field, const char *at) {
    ir_type t = p->b.f->params[field].type;
    t.space = !strcmp(at, "dst") ? IR_ROW : !strcmp(at, "param") ? IR_UNIFORM : IR_EDGE;
    ir_id id = ir_emit(&p->b, IR_FIELD, t, NULL, 0);
    ir_set_int(p->b.m, ir_at(p->b.f, id), IR_ATTR_FIELD, field);
    ir_set_word(p->b.m, ir_at(p->b.f, id), IR_ATTR_AT, at);
    return id;
}

static ir_id copy_field(part *p, const ir_op *op) {
    uint32_t old = (uint32_t)ir_int(op, IR_ATTR_FIELD, 0);
    const ir_param *q = &adjoint(p->s)->params[old];
    const char *at = ir_word(op, IR_ATTR_AT);
    if (p->turned)
        at = !strcmp(at, "src") ? "dst" : !strcmp(at, "dst") ? "src" : at;
    if (!p->param[old])
        p->param[old] =
            1 + add_param(p, q->name, p->turned ? turn_role(q->role) : q->role, &q->type, from_of(p->s, old));
    return read_field(p, p->param[old] - 1, at);
}

/* A result of the forward kernel, read where it stands. */
static ir_id known_field(part *p, uint32_t field) {
    const ir_param *q = &adjoint(p->s)->params[field];
    bool edge = q->role == IR_EDGE_FIELD;
    if (!p->param[field])
        p->param[field] =
            1 + add_param(p, q->name, p->turned ? turn_role(q->role) : q->role, &q->type, from_of(p->s, field));
    return read_field(p, p->param[field] - 1, edge ? "edge" : p->turned ? "src" : "dst");
}

static ir_id cut_field(part *p, ir_id v) {
    grad_from from = {GRAD_FROM_ROWS, p->s->cut_result[v]};
    const char *name = p->s->out.rows.f->results[from.index].name;
    const ir_type *t = &ir_at(adjoint(p->s), v)->type;
    bool edge = t->space == IR_EDGE;
    return read_field(p, add_param(p, name, edge ? IR_EDGE_FIELD : IR_SRC, t, from), edge ? "edge" : "src");
}

static bool is_scanned(const part *p, ir_id v) {
    const ir_op *op = ir_at(adjoint(p->s), v);
    return op->code == IR_GET && op->args[0] != p->scan && ir_is_scan(ir_at(adjoint(p->s), op->args[0]));
}

static ir_id scanned_field(part *p, ir_id v) {
    grad_from from = {GRAD_FROM_SCANS, p->s->scan_result[v]};
    return read_field(p, add_param(p, "step", IR_EDGE_FIELD, &ir_at(adjoint(p->s), v)->type, from), "edge");
}

/* ---- operations ---- */
static void copy_region(part *p, ir_id combine, const ir_region *from) {
    ir_region *outer = p->b.r;
    p->b.r = ir_at(p->b.f, combine)->region = ir_region_new(p->b.m);
    for (size_t i = 0; i < from->n; i++) {
        const ir_op *op = ir_at(adjoint(p->s), from->ops[i]);
        ir_id *args = base_arena_new_array(p->s->scratch, ir_id, op->n_args + 1);
        for (uint32_t k = 0; k < op->n_args; k++)
            args[k] = p->to[op->args[k]];
        ir_id id = p->to[from->ops[i]] = ir_emit(&p->b, op->code, to_type(p, &op->type), args, op->n_args);
        ir_copy_attrs(p->b.m, op, ir_at(p->b.f, id));
    }
    p->b.r = outer;
}

static ir_id copy_op(part *p, ir_id v) {
    const ir_op *op = ir_at(adjoint(p->s), v);
    ir_id *args = base_arena_new_array(p->s->scratch, ir_id, op->n_args + 1);
    p->b.span = op->span;
    if (p->turned && p->s->cut[v])
        return cut_field(p, v);
    if (p->s->known[v])
        return known_field(p, (uint32_t)p->s->known[v] - 1);
    if (is_scanned(p, v))
        return scanned_field(p, v);
    if (op->code == IR_FIELD)
        return copy_field(p, op);
    bool reduced = op->code == IR_REDUCE || op->code == IR_DEGREE || op->code == IR_COMBINE || op->code == IR_GET;
    BASE_CHECK(!p->turned || !reduced);
    for (uint32_t i = 0; i < op->n_args; i++)
        args[i] = p->to[op->args[i]];
    ir_type t = to_type(p, &op->type);
    if (!reduced)
        t.space = ir_widest_space(p->b.f, args, op->n_args);
    ir_id id = ir_emit(&p->b, op->code, t, args, op->n_args);
    ir_copy_attrs(p->b.m, op, ir_at(p->b.f, id));
    if (op->region)
        copy_region(p, id, op->region);
    ir_attr_key key;
    if (pass_says_dim(op, &key))
        ir_set_int(p->b.m, ir_at(p->b.f, id), key, to_dim(p, ir_int(op, key, 0)));
    return id;
}

static bool ends(const part *p, ir_id v) { return (p->turned && p->s->cut[v]) || p->s->known[v] || is_scanned(p, v); }

static void need(part *p, ir_id v) { p->need[v] = true; }

/* Uniform values that a combine uses. */
static void need_inside(part *p, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(adjoint(p->s), r->ops[i]);
        for (uint32_t k = 0; k < op->n_args; k++)
            p->need[op->args[k]] = true;
    }
}

static void copy_needed(part *p) {
    const ir_func *f = adjoint(p->s);
    for (size_t i = f->body.n; i-- > 0;) {
        ir_id v = f->body.ops[i];
        for (uint32_t k = 0; p->need[v] && !ends(p, v) && k < ir_at(f, v)->n_args; k++)
            p->need[ir_at(f, v)->args[k]] = true;
        if (p->need[v] && !ends(p, v) && ir_at(f, v)->region)
            need_inside(p, ir_at(f, v)->region);
    }
    for (size_t i = 0; i < f->body.n; i++) {
        ir_id v = f->body.ops[i];
        if (p->need[v])
            p->to[v] = copy_op(p, v);
    }
}

/* ---- one kernel ---- */
static part begin(split *s, grad_kernel *k, const char *what, bool turned) {
    const ir_func *f = adjoint(s);
    ir_func *made = ir_func_new(s->m, base_arena_printf(s->scratch, "%s.%s", s->name, what), IR_LEVEL_KERNEL);
    bool source = ir_transposed(s->a->k) != turned;
    made->domain = source ? "src" : s->a->k->domain;
    if (turned && !source)
        made->domain = "dst";
    made->needs_square = s->a->k->needs_square;
    made->span = s->a->k->span;
    k->f = made;
    return (part){.s = s,
                  .b = {.m = s->m, .f = made, .r = &made->body, .span = made->span},
                  .k = k,
                  .turned = turned,
                  .need = base_arena_new_array(s->scratch, bool, f->n_ops),
                  .to = base_arena_new_array(s->scratch, ir_id, f->n_ops),
                  .param = base_arena_new_array(s->scratch, uint32_t, f->n_params + 1)};
}

static size_t add_result(part *p, const char *name, ir_id value, const ir_type *type, ir_space space) {
    ir_func *f = p->b.f;
    ir_param r = {
        .name = ir_unused_name(p->b.m, p->b.f, name), .role = IR_DST, .type = to_type(p, type), .span = p->b.span};
    r.type.space = space;
    r.type.dtype = ir_at(p->b.f, value)->type.dtype; /* a gradient of 16-bit floats is f32 until it is returned */
    value = grad_full(&p->b, value, &r.type);
    base_push(p->b.m->arena, f->results, f->n_results, f->cap_results, r);
    base_push(p->s->scratch, p->results, p->n_results, p->cap_results, value);
    return f->n_results - 1;
}

static void end(part *p) { ir_emit(&p->b, IR_RET, (ir_type){.dtype = IR_NONE}, p->results, p->n_results); }

static const char *gradient_name(const split *s, size_t i) {
    return base_arena_printf(s->m->arena, "d_%s", s->a->k->params[i].name);
}

static ir_id as_row(part *p, ir_id v) {
    ir_type t = ir_at(p->b.f, v)->type;
    if (t.space == IR_ROW)
        return v;
    t.space = IR_ROW;
    return ir_emit1(&p->b, IR_BROADCAST, t, v);
}

/* ---- what the turned kernel reads from arrays ---- */
static int64_t bytes_of(const ir_type *t) {
    int64_t n = (int64_t)ir_dtype_bytes(t->dtype);
    for (uint32_t i = 0; i < t->rank && n < 1 << 24; i++)
        n *= ir_dim_is_sym(t->dim[i]) ? 64 : t->dim[i];
    return n;
}

typedef struct chooser {
    split *s;
    uint32_t *seen, mark; /* by id: last value it was visited for */
    bool *read; /* by id: read by the turned kernel anyway */
    ir_id *stack, *leaves;
    size_t n_leaves;
    int64_t bytes;
    bool cheap;
} chooser;

static bool is_leaf(const chooser *c, ir_id v) {
    const ir_op *op = ir_at(adjoint(c->s), v);
    return c->s->known[v] || op->code == IR_FIELD || op->code == IR_REDUCE || op->code == IR_GET ||
           op->code == IR_DEGREE || c->s->cut[v] || grad_is_winners(adjoint(c->s), v);
}

static bool is_cheap(const ir_op *op) {
    switch ((int)op->code) {
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_MIN:
    case IR_MAX:
    case IR_NEG:
    case IR_ABS:
    case IR_SELECT:
    case IR_CAST:
    case IR_BROADCAST:
    case IR_NEWAXIS:
        return true;
    }
    return ir_op_describe(op->code)->cls == IR_CLASS_COMPARE;
}

/* What it takes to compute v at the other end of an edge. */
static void look_behind(chooser *c, ir_id v) {
    const ir_func *f = adjoint(c->s);
    size_t n = 0;
    c->mark++;
    c->n_leaves = 0;
    c->bytes = 0;
    c->cheap = true;
    c->stack[n++] = v;
    while (n) {
        ir_id at = c->stack[--n];
        const ir_op *op = ir_at(f, at);
        if (c->seen[at] == c->mark || op->type.space == IR_UNIFORM)
            continue;
        c->seen[at] = c->mark;
        if (is_leaf(c, at)) {
            c->leaves[c->n_leaves++] = at;
            c->bytes += c->read[at] ? 0 : bytes_of(&op->type);
            continue;
        }
        c->cheap = c->cheap && is_cheap(op);
        for (uint32_t i = 0; i < op->n_args; i++)
            if (c->seen[op->args[i]] != c->mark)
                c->stack[n++] = op->args[i];
    }
}

static void read_leaf(chooser *c, ir_id v) {
    const ir_op *op = ir_at(adjoint(c->s), v);
    c->read[v] = true;
    c->s->cut[v] = c->s->cut[v] || (!c->s->known[v] && op->code != IR_FIELD);
}

static void choose(chooser *c, ir_id v) {
    if (is_leaf(c, v)) {
        read_leaf(c, v);
        return;
    }
    look_behind(c, v);
    if (c->cheap && c->bytes <= bytes_of(&ir_at(adjoint(c->s), v)->type))
        for (size_t i = 0; i < c->n_leaves; i++)
            read_leaf(c, c->leaves[i]);
    else
        c->read[v] = c->s->cut[v] = true;
}

static size_t count_args(const ir_func *f) {
    size_t n = f->n_ops;
    for (ir_id v = 1; v < f->n_ops; v++)
        n += ir_at(f, v)->n_args;
    return n;
}

/* Row values that edges need, in order, for the given roots. */
static void choose_cuts(split *s, const ir_id *roots, size_t n_roots) {
    const ir_func *f = adjoint(s);
    size_t n_args = count_args(f);
    chooser c = {.s = s,
                 .seen = base_arena_new_array(s->scratch, uint32_t, f->n_ops),
                 .read = base_arena_new_array(s->scratch, bool, f->n_ops),
                 .stack = base_arena_new_array(s->scratch, ir_id, n_args + 1),
                 .leaves = base_arena_new_array(s->scratch, ir_id, n_args + 1)};
    bool *on_edge = base_arena_new_array(s->scratch, bool, f->n_ops),
         *wanted = base_arena_new_array(s->scratch, bool, f->n_ops);
    for (size_t i = 0; i < n_roots; i++)
        *(ir_at(f, roots[i])->type.space == IR_EDGE ? &on_edge[roots[i]] : &wanted[roots[i]]) = true;
    for (size_t k = f->body.n; k-- > 0;) {
        const ir_op *op = ir_at(f, f->body.ops[k]);
        bool behind = on_edge[f->body.ops[k]] && !s->cut[f->body.ops[k]];
        for (uint32_t i = 0; behind && i < op->n_args; i++)
            *(ir_at(f, op->args[i])->type.space == IR_EDGE ? &on_edge[op->args[i]] : &wanted[op->args[i]]) = true;
    }
    for (int pass = 0; pass < 2; pass++) /* what must be read comes first: the others may be made of it */
        for (size_t k = 0; k < f->body.n; k++) {
            ir_id v = f->body.ops[k];
            if (wanted[v] && ir_at(f, v)->type.space == IR_ROW && is_leaf(&c, v) == !pass)
                choose(&c, v);
        }
}

/* ---- scans ---- */
/* What the gradients come from. */
static bool *reached(const split *s) {
    const ir_func *f = adjoint(s);
    bool *live = base_arena_new_array(s->scratch, bool, f->n_ops);
    for (size_t i = 0; i < s->a->k->n_params; i++) {
        const grad_field *g = &s->a->field[i];
        live[g->src] = live[g->edge] = live[g->row] = true;
    }
    for (size_t k = f->body.n; k-- > 0;) {
        const ir_op *op = ir_at(f, f->body.ops[k]);
        for (uint32_t a = 0; live[f->body.ops[k]] && !s->known[f->body.ops[k]] && a < op->n_args; a++)
            live[op->args[a]] = true;
    }
    return live;
}

static bool is_made(const split *s, ir_id v, ir_id scan, const bool *live) {
    const ir_op *op = ir_at(adjoint(s), v);
    return live[v] && !s->known[v] && op->code == IR_GET && op->args[0] == scan;
}

static void make_scan(split *s, ir_id id, const bool *live) {
    const ir_func *f = adjoint(s);
    grad_kernel k = {0};
    part p = begin(s, &k, base_arena_printf(s->scratch, "step%zu", s->out.n_scans + 1), false);
    p.scan = id;
    for (ir_id v = 1; v < f->n_ops; v++)
        if (is_made(s, v, id, live))
            need(&p, v);
    copy_needed(&p);
    for (ir_id v = 1; v < f->n_ops; v++)
        if (is_made(s, v, id, live)) {
            add_result(&p, "step", p.to[v], &ir_at(f, v)->type, IR_EDGE);
            s->scan_result[v] = s->out.n_scan_results++;
        }
    end(&p);
    base_push(s->scratch, s->out.scans, s->out.n_scans, s->out.cap_scans, k);
}

static void make_scans(split *s) {
    const ir_func *f = adjoint(s);
    const bool *live = reached(s);
    for (size_t i = 0; i < f->body.n; i++)
        if (live[f->body.ops[i]] && ir_at(f, f->body.ops[i])->code == IR_COMBINE &&
            ir_is_scan(ir_at(f, f->body.ops[i])))
            make_scan(s, f->body.ops[i], live);
}

/* ---- all of them ---- */
static bool is_scalar_param(const split *s, size_t i) { return s->a->k->params[i].type.rank == 0; }

static uint32_t cut_result(part *p, ir_id v) {
    const ir_type *t = &ir_at(adjoint(p->s), v)->type;
    return (uint32_t)add_result(p, t->space == IR_EDGE ? "edge" : "row", p->to[v], t, t->space);
}

static void make_rows(split *s) {
    const grad_adjoint *a = s->a;
    const ir_func *f = adjoint(s);
    bool any = false;
    for (ir_id v = 1; v < f->n_ops; v++)
        any |= s->cut[v];
    for (size_t i = 0; i < a->k->n_params; i++) {
        bool param = a->k->params[i].role == IR_PARAM_FIELD;
        any |= (a->field[i].row && (!param || is_scalar_param(s, i))) || (a->field[i].edge && !s->edges_turned);
    }
    if (!any)
        return;
    part p = begin(s, &s->out.rows, "by_row", false);
    for (ir_id v = 1; v < f->n_ops; v++)
        if (s->cut[v])
            need(&p, v);
    for (size_t i = 0; i < a->k->n_params; i++) {
        bool param = a->k->params[i].role == IR_PARAM_FIELD;
        if (a->field[i].row && (!param || is_scalar_param(s, i)))
            need(&p, a->field[i].row);
        if (a->field[i].edge && !s->edges_turned)
            need(&p, a->field[i].edge);
    }
    copy_needed(&p);
    for (size_t i = 0; i < a->k->n_params; i++) {
        const ir_param *q = &a->k->params[i];
        bool param = q->role == IR_PARAM_FIELD;
        if (a->field[i].row && (!param || is_scalar_param(s, i)))
            s->out.parts[i].rows = add_result(&p, gradient_name(s, i), p.to[a->field[i].row], &q->type, IR_ROW);
        if (a->field[i].edge && !s->edges_turned)
            s->out.parts[i].rows = add_result(&p, gradient_name(s, i), p.to[a->field[i].edge], &q->type, IR_EDGE);
    }
    for (ir_id v = 1; v < f->n_ops; v++)
        if (s->cut[v])
            s->cut_result[v] = cut_result(&p, v);
    end(&p);
}

/* The sum over the edges of a row, which are now those of a source. */
static ir_id sum_edges(part *p, ir_id v, const ir_type *like) {
    ir_type full = to_type(p, like);
    v = grad_full(&p->b, v, &full);
    ir_type t = ir_at(p->b.f, v)->type;
    t.space = IR_ROW;
    ir_id id = ir_emit1(&p->b, IR_REDUCE, t, v);
    ir_set_word(p->b.m, ir_at(p->b.f, id), IR_ATTR_KIND, "sum");
    return id;
}

static bool has_winners(const split *s, size_t i) { return grad_is_winners(adjoint(s), s->a->field[i].src); }

static void make_winners(split *s, size_t i) {
    grad_kernel k = {0};
    ir_id v = s->a->field[i].src;
    const ir_type *t = &s->a->k->params[i].type;
    part p = begin(s, &k, base_arena_printf(s->scratch, "by_winner%zu", s->out.n_winners + 1), true);
    need(&p, v);
    copy_needed(&p);
    add_result(&p, gradient_name(s, i), sum_edges(&p, p.to[v], t), t, IR_ROW);
    end(&p);
    s->out.parts[i].winners = s->out.n_winners;
    base_push(s->scratch, s->out.winners, s->out.n_winners, s->out.cap_winners, k);
}

static void make_turned(split *s) {
    const grad_adjoint *a = s->a;
    part p = begin(s, &s->out.turned, "by_source", true);
    for (size_t i = 0; i < a->k->n_params; i++) {
        if (a->field[i].src && !has_winners(s, i))
            need(&p, a->field[i].src);
        if (a->field[i].edge && s->edges_turned)
            need(&p, a->field[i].edge);
    }
    copy_needed(&p);
    for (size_t i = 0; i < a->k->n_params; i++) {
        const ir_param *q = &a->k->params[i];
        if (a->field[i].src && !has_winners(s, i))
            s->out.parts[i].turned =
                add_result(&p, gradient_name(s, i), sum_edges(&p, p.to[a->field[i].src], &q->type), &q->type, IR_ROW);
        if (a->field[i].edge && s->edges_turned)
            s->out.parts[i].turned = add_result(&p, gradient_name(s, i), p.to[a->field[i].edge], &q->type, IR_EDGE);
    }
    end(&p);
}

static ir_id total(part *p, ir_id v, const ir_type *like) {
    ir_type full = to_type(p, like);
    v = grad_full(&p->b, as_row(p, v), &full);
    full.space = IR_UNIFORM;
    full.dtype = ir_at(p->b.f, v)->type.dtype;
    ir_id id = ir_emit1(&p->b, IR_TOTAL, full, v);
    ir_set_word(p->b.m, ir_at(p->b.f, id), IR_ATTR_KIND, "sum");
    return id;
}

static void make_totals(split *s) {
    const grad_adjoint *a = s->a;
    part p = {.s = NULL};
    for (size_t i = 0; i < a->k->n_params; i++) {
        if (a->k->params[i].role != IR_PARAM_FIELD || is_scalar_param(s, i) || !a->field[i].row)
            continue;
        if (!p.s)
            p = begin(s, &s->out.totals, "totals", false);
        need(&p, a->field[i].row);
    }
    if (!p.s)
        return;
    copy_needed(&p);
    for (size_t i = 0; i < a->k->n_params; i++) {
        const ir_param *q = &a->k->params[i];
        if (q->role == IR_PARAM_FIELD && !is_scalar_param(s, i) && a->field[i].row)
            s->out.parts[i].totals =
                add_result(&p, gradient_name(s, i), total(&p, p.to[a->field[i].row], &q->type), &q->type, IR_UNIFORM);
    }
    end(&p);
}

grad_kernels grad_split(ir_module *m, const grad_adjoint *a, const char *name, bool ahead, base_arena *scratch) {
    const ir_func *f = a->f;
    size_t n = a->k->n_params, n_roots = 0;
    split s = {.m = m,
               .a = a,
               .scratch = scratch,
               .name = name,
               .known = base_arena_new_array(scratch, ir_id, f->n_ops),
               .cut = base_arena_new_array(scratch, bool, f->n_ops),
               .cut_result = base_arena_new_array(scratch, uint32_t, f->n_ops),
               .scan_result = base_arena_new_array(scratch, uint32_t, f->n_ops)};
    s.out.parts = base_arena_new_array(scratch, grad_parts, n + 1);
    const ir_op *ret = ir_at(a->k, a->k->body.ops[a->k->body.n - 1]);
    for (size_t i = 0; i < a->k->n_results; i++)
        if (a->known[i] != UINT32_MAX)
            s.known[ret->args[i]] = a->known[i] + 1;
    ir_id *roots = base_arena_new_array(scratch, ir_id, 2 * n + 1);
    bool has_turned = false;
    for (size_t i = 0; i < n; i++) {
        s.out.parts[i] = (grad_parts){SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
        has_turned |= a->field[i].src && !has_winners(&s, i);
    }
    make_scans(&s);
    s.edges_turned = has_turned && s.out.n_scans == 0;
    for (size_t i = 0; i < n; i++) {
        if (a->field[i].src)
            roots[n_roots++] = a->field[i].src;
        if (a->field[i].edge && s.edges_turned)
            roots[n_roots++] = a->field[i].edge;
    }
    const bool *made = ahead && s.edges_turned ? grad_ahead(a, s.known, scratch) : NULL;
    if (made)
        memcpy(s.cut, made, f->n_ops);
    choose_cuts(&s, roots, n_roots);
    make_rows(&s);
    if (has_turned)
        make_turned(&s);
    for (size_t i = 0; i < n; i++)
        if (has_winners(&s, i))
            make_winners(&s, i);
    make_totals(&s);
    return s.out;
}
