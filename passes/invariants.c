/* invariants: what a `repeat` of a program computes and what is the same in each round is computed once, in front of it.
 *
 * An operation of the body is fixed when it is pure and all its operands are: values from outside of the repeat, or fixed
 * ones.  Arms of an `if` are left alone, since they may never run; the body itself is taken to run.  Of what the rounds read
 * of it, that is moved which pays to be kept through the loop:
 *
 *   heavy   calls of kernels that walk, products with matrices, folds, running sums: each round would make an array of it,
 *           or read far more than it is.  What is made of one and is no larger goes with it when nothing else reads that one
 *   dear    functions of mathematics and divisions, element by element: one array for each kind of row, no more, since in
 *           the loop they would need no memory at all
 *
 * Arrays over the edges are most of what there is, and walks compute them as they go: only one is kept, of one number for each
 * edge, which a kernel makes by a fold over features.  What is cheap stays, and is computed again in the kernels that use it.
 * A copy goes in front; what then has no use goes away.
 *
 * Runs after `grad`, for what the reverse loops compute again too; before it the sums of cotangents of what is kept would be
 * carried through them, which takes more memory than it saves work. */
#include "passes/pass_util.h"

typedef enum weight { CHEAP, DEAR, HEAVY } weight;

typedef struct fact { /* of an operation; those in the region of the loop at hand are of use */
    ir_id loop; /* in whose region it stands */
    weight weight; /* the greatest on the way to it */
    bool fixed;
    bool wanted; /* fixed, and read by what is not, or by what stays in the loop */
    bool lifted, needed;
    ir_id copy; /* in front of the loop */
    uint32_t readers, uses; /* in the loop, before and after */
} fact;

typedef struct invariants {
    ir_module *m;
    ir_func *f;
    pass_context *ctx;
    fact *facts; /* by id */
    uint32_t cap;
    bool *edge; /* by symbol: counts edges */
    ir_dim *kept; /* rows that have an array of dear things in front of the loop at hand */
    size_t n_kept, cap_kept;
} invariants;

/* ---- operations -------------------------------------------------------------------------------------------------- */
static bool is_pure(const ir_op *op) {
    ir_class c = ir_op_describe(op->code)->cls;
    if (op->code == IR_ARG || op->code == IR_POP || op->code == IR_GRAD || op->region)
        return false;
    return c == IR_CLASS_LEAF || ir_class_is_elementwise(c) || c == IR_CLASS_REDUCE || op->code == IR_CALL ||
           op->code == IR_GET;
}

static bool goes_over_edges(const ir_func *k) {
    for (size_t i = 0; i < k->body.n; i++) {
        ir_opcode c = ir_at(k, k->body.ops[i])->code;
        if (c == IR_REDUCE || c == IR_COMBINE || c == IR_DEGREE)
            return true;
    }
    return false;
}

/* A number for each edge, made of rows of features: a walk that made it on the way would gather all of them. */
static bool folds_at_edges(const invariants *s, ir_id id) {
    const ir_op *op = ir_at(s->f, id), *call = op->code == IR_GET ? ir_at(s->f, op->args[0]) : op;
    const ir_func *k =
        call->code == IR_CALL ? ir_func_find(s->m, ir_word(call, IR_ATTR_CALLEE), IR_LEVEL_KERNEL) : NULL;
    for (size_t i = 0; k && op->type.rank == 1 && i < k->body.n; i++) {
        const ir_op *x = ir_at(k, k->body.ops[i]);
        if ((x->code == IR_FOLD || x->code == IR_MATMUL) && x->type.space == IR_EDGE)
            return true;
    }
    return false;
}

static weight weight_of(const invariants *s, const ir_op *op) {
    if (op->code == IR_CALL) {
        const ir_func *k = ir_func_find(s->m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_KERNEL);
        return k && goes_over_edges(k) ? HEAVY : DEAR;
    }
    if (op->code == IR_FOLD || op->code == IR_MATMUL || op->code == IR_CUMSUM || op->code == IR_TOTAL)
        return HEAVY;
    return op->type.rank && pass_is_dear(op) ? DEAR : CHEAP;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */
static bool has_edges(const invariants *s, const ir_type *t) {
    for (uint32_t i = 0; i < t->rank; i++)
        if (ir_dim_is_sym(t->dim[i]) && s->edge[ir_dim_sym_index(t->dim[i])])
            return true;
    return false;
}

/* Is every element of a one of b, as far as axes tell? */
static bool no_larger(const ir_type *a, const ir_type *b) {
    bool taken[IR_MAX_RANK] = {false};
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t k = 0;
        while (k < b->rank && (taken[k] || (a->dim[i] != b->dim[k] && a->dim[i] != 1)))
            k++;
        if (k == b->rank && a->dim[i] != 1)
            return false;
        if (a->dim[i] != 1)
            taken[k] = true;
    }
    return true;
}

static bool is_inside(const invariants *s, ir_id v, ir_id loop) { return s->facts[v].loop == loop; }

/* Has the operation an operand as heavy as itself and no smaller, that nothing else reads?  Its array takes the place of that
 * of the operand; of an operand with other readers there would be one more. */
static bool stands_for_operand(const invariants *s, ir_id id, ir_id loop) {
    const ir_op *op = ir_at(s->f, id);
    for (uint32_t i = 0; i < op->n_args; i++) {
        const fact *a = &s->facts[op->args[i]];
        if (is_inside(s, op->args[i], loop) && a->weight >= s->facts[id].weight && a->readers == 1 &&
            no_larger(&op->type, &ir_at(s->f, op->args[i])->type))
            return true;
    }
    return false;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */
/* The operation on the way to this one that makes it heavy, or dear. */
static const ir_op *core_of(const invariants *s, ir_id id, ir_id loop) {
    const ir_op *op = ir_at(s->f, id);
    for (uint32_t k = 0; k < op->n_args && op->code != IR_CALL; k++) {
        bool as_much = is_inside(s, op->args[k], loop) && s->facts[op->args[k]].weight == s->facts[id].weight;
        if (as_much && (op->code == IR_GET || weight_of(s, op) < s->facts[id].weight)) {
            id = op->args[k];
            op = ir_at(s->f, id);
            k = UINT32_MAX;
        }
    }
    return op;
}

static void note(invariants *s, ir_id id, ir_id loop, pass_note_kind kind, const char *why) {
    if (!s->ctx->notes)
        return;
    const ir_op *core = core_of(s, id, loop);
    const char *call = core->code == IR_CALL ? ir_word(core, IR_ATTR_CALLEE) : NULL;
    base_str text = {0};
    base_str_add(&text, "kept as ");
    ir_print_type(s->f, &ir_at(s->f, id)->type, &text);
    pass_note_add(s->ctx, s->m,
                  (pass_note){kind, .program = s->f->name, .kernel = "",
                              .other = call ? call : ir_op_describe(core->code)->text,
                              .text = why ? why : base_arena_strndup(s->m->arena, base_str_text(&text), text.len)});
    base_str_fini(&text);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */
static bool has_array_for(invariants *s, ir_dim rows) {
    for (size_t i = 0; i < s->n_kept; i++)
        if (s->kept[i] == rows)
            return true;
    base_push(s->ctx->scratch, s->kept, s->n_kept, s->cap_kept, rows);
    return false;
}

static bool pays(invariants *s, ir_id id, ir_id loop) {
    const ir_op *op = ir_at(s->f, id);
    weight w = s->facts[id].weight, own = op->code == IR_GET ? w : weight_of(s, op);
    bool instead = stands_for_operand(s, id, loop);
    if (w == CHEAP || op->type.dtype == IR_TUPLE || (own == CHEAP && !instead))
        return false;
    if (has_edges(s, &op->type)) {
        if (folds_at_edges(s, id) && !has_array_for(s, op->type.dim[0]))
            return true;
        note(s, id, loop, PASS_NOTE_EACH, "an array with numbers for each edge is not kept if a walk can do without");
        return false;
    }
    if (own == HEAVY || (w == HEAVY && instead))
        return true;
    if (!op->type.rank || !has_array_for(s, op->type.dim[0]))
        return op->type.rank > 0;
    note(s, id, loop, PASS_NOTE_EACH, "an array with functions of these rows is kept already");
    return false;
}

/* ---- one loop ---------------------------------------------------------------------------------------------------- */
static void find_fixed(invariants *s, ir_id loop, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->f, r->ops[i]);
        fact *x = &s->facts[r->ops[i]];
        *x = (fact){.loop = loop, .fixed = is_pure(op), .weight = CHEAP};
        if (!x->fixed)
            continue;
        x->weight = weight_of(s, op);
        for (uint32_t k = 0; k < op->n_args; k++) {
            const fact *a = &s->facts[op->args[k]];
            if (!is_inside(s, op->args[k], loop))
                continue;
            x->fixed &= a->fixed;
            x->weight = a->weight > x->weight ? a->weight : x->weight;
        }
    }
}

/* Operands of everything in the region that is not fixed. */
static void find_wanted(invariants *s, ir_id loop, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->f, r->ops[i]);
        bool stays = !is_inside(s, r->ops[i], loop) || !s->facts[r->ops[i]].fixed;
        for (uint32_t k = 0; k < op->n_args; k++) {
            fact *a = &s->facts[op->args[k]];
            a->readers++;
            a->wanted |= stays && is_inside(s, op->args[k], loop) && a->fixed;
        }
        if (op->region)
            find_wanted(s, loop, op->region);
    }
}

/* What goes in front, and what that needs there.  From the end: who reads a value has been asked before it is. */
static bool choose(invariants *s, ir_id loop, const ir_region *r) {
    bool any = false;
    s->n_kept = 0;
    for (size_t i = r->n; i-- > 0;) {
        fact *x = &s->facts[r->ops[i]];
        const ir_op *op = ir_at(s->f, r->ops[i]);
        x->lifted = x->wanted && pays(s, r->ops[i], loop);
        x->needed |= x->lifted;
        any |= x->lifted;
        for (uint32_t k = 0; k < op->n_args; k++) {
            fact *a = &s->facts[op->args[k]];
            if (!x->fixed || !is_inside(s, op->args[k], loop))
                continue;
            a->needed |= x->needed;
            a->wanted |= x->wanted && !x->lifted;
        }
    }
    return any;
}

static void make_room(invariants *s) {
    if (s->f->n_ops < s->cap)
        return;
    uint32_t cap = s->f->n_ops * 2;
    fact *facts = base_arena_new_array(s->ctx->scratch, fact, cap);
    base_copy(facts, s->facts, sizeof *facts * s->cap);
    s->facts = facts;
    s->cap = cap;
}

static ir_id copy_op(invariants *s, ir_id id, ir_id loop) {
    const ir_op *op = ir_at(s->f, id);
    ir_id copy = ir_op_new(s->m, s->f, op->code, op->type, op->args, op->n_args);
    make_room(s);
    ir_op *c = ir_at(s->f, copy);
    ir_copy_attrs(s->m, op, c);
    c->span = op->span;
    for (uint32_t k = 0; k < c->n_args; k++)
        if (is_inside(s, c->args[k], loop))
            c->args[k] = s->facts[c->args[k]].copy;
    return copy;
}

static void use_copies(invariants *s, ir_id loop, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = ir_at(s->f, r->ops[i]);
        for (uint32_t k = 0; k < op->n_args; k++) {
            fact *a = &s->facts[op->args[k]];
            if (is_inside(s, op->args[k], loop) && a->lifted)
                op->args[k] = a->copy;
            s->facts[op->args[k]].uses++;
        }
        if (op->region)
            use_copies(s, loop, op->region);
    }
}

static void drop_unused(invariants *s, ir_region *r) {
    bool *keep = base_arena_new_array(s->ctx->scratch, bool, r->n + 1);
    size_t n = 0;
    for (size_t i = r->n; i-- > 0;) {
        const ir_op *op = ir_at(s->f, r->ops[i]);
        keep[i] = !s->facts[r->ops[i]].fixed || s->facts[r->ops[i]].uses;
        for (uint32_t k = 0; k < op->n_args && !keep[i]; k++)
            s->facts[op->args[k]].uses--;
    }
    for (size_t i = 0; i < r->n; i++)
        if (keep[i])
            r->ops[n++] = r->ops[i];
    r->n = n;
}

/* Copies of what is needed go to the end of `out`. */
static void lift(invariants *s, ir_id loop, ir_region *out) {
    ir_region *r = ir_at(s->f, loop)->region;
    find_fixed(s, loop, r);
    find_wanted(s, loop, r);
    if (!choose(s, loop, r))
        return;
    for (size_t i = 0; i < r->n; i++) {
        if (!s->facts[r->ops[i]].needed)
            continue;
        ir_id copy = copy_op(s, r->ops[i], loop);
        s->facts[r->ops[i]].copy = copy;
        ir_append(s->m, out, copy);
        if (s->facts[r->ops[i]].lifted)
            note(s, r->ops[i], loop, PASS_NOTE_ONCE, NULL);
    }
    use_copies(s, loop, r);
    drop_unused(s, r);
}

/* Loops in loops first: what leaves one may leave the next. */
static void lift_region(invariants *s, ir_region *r) {
    ir_region out = {0};
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->f, r->ops[i]);
        if (op->region)
            lift_region(s, op->region);
        if (op->code == IR_REPEAT)
            lift(s, r->ops[i], &out);
        ir_append(s->m, &out, r->ops[i]);
    }
    *r = out;
}

static bool has_repeat(const ir_func *f) {
    for (ir_id id = 1; id < f->n_ops; id++)
        if (ir_at(f, id)->code == IR_REPEAT)
            return true;
    return false;
}

static void find_edges(invariants *s) {
    s->edge = base_arena_new_array(s->ctx->scratch, bool, s->f->n_syms + 1);
    for (size_t i = 0; i < s->f->n_params; i++) {
        uint32_t sym;
        if (s->f->params[i].role == IR_GRAPH_FIELD && ir_graph_sym(s->f, s->f->params[i].name, "edge", &sym))
            s->edge[sym] = true;
    }
}

static bool invariants_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    if (!has_repeat(f))
        return true;
    invariants s = {.m = m, .f = f, .ctx = ctx};
    make_room(&s);
    find_edges(&s);
    lift_region(&s, &f->body);
    return true;
}

bool pass_invariants(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_PROGRAM, invariants_func, ctx, err);
}
