/* The schedule of a program: which instance holds which value, and when it may go.
 *
 * A value of the program that is an array -- a parameter, a result of a call, a repeat or an if, an argument of a
 * repeat's region -- has a slot.  Slots are filled as the program is walked:
 *   - a result of a call outside of repeats that the program returns is written straight into the bound result;
 *   - a result that begins with the values of an array that nobody needs afterwards takes the place of that array;
 *   - a value carried by a repeat lives in a pair of instances, the current and the spare one; a round writes into the
 *     spares and yields the instances permuted, so no round copies or allocates;
 *   - what an if gives has one instance, into which both arms write;
 *   - the other buffers of a repeat's region or an arm are made before the outermost repeat or if and used again in each
 *     round; the two arms of an if use the same ones.
 *
 * Invariants: a round writes only to spares and to buffers of its own, so whatever it reads keeps its value; the
 * instances a repeat ends with are those it began with, in another order; an instance is written by one step only
 * while it is nobody else's. */
#include "passes/hierarchy_plan.h"

#include <string.h>

/* ---- the types of what a call gives ---- */
typedef struct callee {
    const ir_func *kernel, *loop, *total; /* total: NULL unless the kernel reduces over all rows */
    ir_dim *sym;                          /* by symbol of the kernel: dimension of the program */
    ir_dim rows;
    int64_t graph;
} callee;

static bool find_callee(hier_plan *s, const ir_op *op, callee *c) {
    const char *name = ir_word(op, IR_ATTR_CALLEE);
    c->kernel = ir_func_find(s->h.m, name, IR_LEVEL_KERNEL);
    c->loop = ir_func_find(s->h.m, name, IR_LEVEL_LOOP);
    c->total = ir_func_find(s->h.m, base_arena_printf(s->h.scratch, "%s.total", name), IR_LEVEL_LOOP);
    if (c->kernel && c->loop)
        return true;
    base_str_addf(s->h.err, "program '%s' calls '%s', which %s", s->p->name, name,
                  c->kernel ? "was not lowered to a loop" : "is not a kernel of the module");
    return false;
}

static bool resolve_callee(hier_plan *s, const ir_op *op, callee *c) {
    if (!find_callee(s, op, c))
        return false;
    c->graph = ir_int(op, IR_ATTR_GRAPH, -1);
    c->rows = ir_int(op, IR_ATTR_DIM, 1);
    const char *rows = ir_transposed(c->kernel) ? "src" : "dst";
    uint32_t sym;
    if (c->graph >= 0 && !ir_graph_sym(s->p, s->p->params[c->graph].name, rows, &sym)) {
        base_str_addf(s->h.err, "program '%s' has no dimension %s.%s", s->p->name, s->p->params[c->graph].name, rows);
        return false;
    }
    if (c->graph >= 0)
        c->rows = ir_dim_sym(sym);
    c->sym = base_arena_new_array(s->h.scratch, ir_dim, c->kernel->n_syms + 1);
    return ir_bind_call(s->p, op, c->kernel, c->sym, s->h.err);
}

/* ---- slots ---- */
hier_slot *hier_slot_of(hier_plan *s, ir_id v) {
    const ir_op *op = ir_at(s->p, v);
    if (op->code == IR_GET)
        return &s->slots[s->first[op->args[0]] + (uint32_t)ir_int(op, IR_ATTR_INDEX, 0)];
    if (op->code == IR_PARAM)
        return &s->slots[1 + ir_int(op, IR_ATTR_FIELD, 0)];
    return &s->slots[s->first[v]];
}

/* A result over one row is a scalar: the same bytes. */
static ir_type drop_single(const ir_op *call, const ir_param *result, ir_type t) {
    bool one_row = ir_int(call, IR_ATTR_GRAPH, -1) < 0 && result->type.space == IR_ROW && t.rank == 1 && t.dim[0] == 1;
    return one_row ? ir_scalar(t.dtype) : t;
}

static void add_slot(hier_plan *s, ir_type type, ir_id home, bool placed) {
    type = ir_type_canonical(s->p, &type);
    hier_slot fresh = {.type = type, .home = home, .placed = placed};
    base_push(s->h.scratch, s->slots, s->n_slots, s->cap_slots, fresh);
}

static bool make_slots(hier_plan *s, const ir_region *r, ir_id home) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        const ir_op *op = ir_at(s->p, id);
        callee c;
        s->first[id] = (uint32_t)s->n_slots;
        if (op->code == IR_CALL) {
            if (!resolve_callee(s, op, &c))
                return false;
            for (size_t k = 0; k < c.kernel->n_results; k++) {
                ir_type t;
                if (!ir_call_result(s->p, op, c.kernel, c.sym, k, &t, s->h.err))
                    return false;
                add_slot(s, drop_single(op, &c.kernel->results[k], t), home, true);
            }
        } else if (op->code == IR_REPEAT) {
            for (uint32_t k = 1; k < op->n_args; k++)
                add_slot(s, ir_at(s->p, op->args[k])->type, home, false);
            if (!make_slots(s, op->region, id))
                return false;
        } else if (op->code == IR_IF) {
            const ir_op *yield = ir_yield_of(s->p, op);
            for (uint32_t k = 0; k < yield->n_args; k++)
                add_slot(s, ir_at(s->p, yield->args[k])->type, home, true);
            for (size_t k = 0; k < op->region->n; k++)
                if (!make_slots(s, ir_at(s->p, op->region->ops[k])->region, op->region->ops[k]))
                    return false;
        } else if (op->code == IR_ARG || op->code == IR_POP) {
            add_slot(s, op->type, home, op->code == IR_POP);
        } else {
            s->first[id] = 0;
        }
    }
    return true;
}

bool hier_is_value(const ir_op *op) {
    return op->code == IR_PARAM || op->code == IR_ARG || op->code == IR_CALL || op->code == IR_GET ||
           op->code == IR_POP;
}

static bool count_uses(hier_plan *s, const ir_region *r, size_t at, bool top) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->p, r->ops[i]);
        size_t pos = top ? i : at;
        bool choice = op->code == IR_IF || op->code == IR_WHILE;
        if (ir_op_describe(op->code)->cls == IR_CLASS_REDUCE || (choice && !hier_is_value(ir_at(s->p, op->args[0]))) ||
            (ir_class_is_elementwise(ir_op_describe(op->code)->cls) && (op->type.dtype != IR_I64 || op->type.rank))) {
            base_str_addf(s->h.err, "program '%s': '%s' is not in a kernel; run outline first", s->p->name,
                          ir_op_describe(op->code)->text);
            return false;
        }
        for (uint32_t k = 0; op->code != IR_GET && k < op->n_args; k++)
            if (hier_is_value(ir_at(s->p, op->args[k]))) {
                hier_slot *v = hier_slot_of(s, op->args[k]);
                v->uses++;
                v->last = pos;
            }
        if (op->region && !count_uses(s, op->region, pos, false))
            return false;
    }
    return true;
}

/* ---- totals behind the rows that they add up ---- */
/* Which result of call `id` the value is, or -1. */
static int64_t result_of(const hier_plan *s, ir_id id, ir_id value) {
    const ir_op *op = ir_at(s->p, value);
    if (value == id)
        return 0;
    return op->code == IR_GET && op->args[0] == id ? ir_int(op, IR_ATTR_INDEX, 0) : -1;
}

static bool reads_by_row(const hier_plan *s, ir_id id, const callee *c, ir_id value) {
    const ir_op *op = ir_at(s->p, id);
    for (uint32_t i = 0; i < op->n_args; i++)
        if (op->args[i] == value && (c->kernel->params[i].role == IR_DST || c->kernel->params[i].role == IR_NODE))
            return true;
    return false;
}

/* Does `second` add up rows of the domain of `first`, of whose results it reads its own rows only, and is there something
 * that both go through? */
static bool adds_up(hier_plan *s, ir_id first, ir_id second, bool *yes) {
    callee a, b;
    const ir_op *op = ir_at(s->p, second);
    if (!resolve_callee(s, ir_at(s->p, first), &a) || !resolve_callee(s, op, &b))
        return false;
    bool shared = false;
    *yes = b.total && b.graph < 0 && !a.total && !a.loop->winners.known && a.loop->rows_per_unit == 1 &&
           ir_dim_canonical(s->p, a.rows) == ir_dim_canonical(s->p, b.rows);
    for (uint32_t i = 0; i < op->n_args && *yes; i++) {
        int64_t result = result_of(s, first, op->args[i]);
        bool by_row = b.kernel->params[i].role == IR_DST;
        if (result >= 0)
            *yes = by_row && a.kernel->results[result].type.space == IR_ROW;
        shared |= by_row && (result >= 0 || reads_by_row(s, first, &a, op->args[i]));
    }
    *yes = *yes && shared;
    return true;
}

/* Calls next to each other: there is nothing between that could need the first. */
static bool find_ahead(hier_plan *s, const ir_region *r) {
    ir_id before = 0;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->p, r->ops[i]);
        if (op->code == IR_GET)
            continue;
        if (op->code == IR_CALL && before && !adds_up(s, before, r->ops[i], &s->ahead[before]))
            return false;
        before = op->code == IR_CALL ? r->ops[i] : 0;
        if (op->region && !find_ahead(s, op->region))
            return false;
    }
    return true;
}

/* ---- walking ---- */
/* An instance of the other arm that has this size, or 0. */
static ir_id reuse(hier_plan *s, ir_id bytes) {
    for (size_t i = s->reuse_from; i < s->reuse_to; i++)
        if (s->made[i].bytes == bytes && !s->made[i].taken) {
            s->made[i].taken = true;
            return s->made[i].inst;
        }
    return 0;
}

static ir_id make_bytes(hier_plan *s, ir_id bytes, const char *name) {
    ir_id id = reuse(s, bytes);
    if (id)
        return id;
    id = hier_instance(&s->h, bytes, name);
    hier_made fresh = {.inst = id, .bytes = bytes};
    base_push(s->h.scratch, s->made, s->n_made, s->cap_made, fresh);
    return id;
}

ir_id hier_make(hier_plan *s, const ir_type *t, const char *name) {
    ir_id bytes = hier_bytes(&s->h, t);
    return s->nested ? make_bytes(s, bytes, name) : hier_instance(&s->h, bytes, name);
}

/* Partial results of a total, one instance a result. */
static void make_partials(hier_plan *s, ir_id call, const callee *c) {
    s->parts_at[call] = (uint32_t)s->n_parts;
    for (size_t k = 0; k < c->kernel->n_results; k++) {
        ir_type one = c->kernel->results[k].type;
        for (uint32_t d = 0; d < one.rank; d++)
            one.dim[d] = ir_dim_is_sym(one.dim[d]) ? c->sym[ir_dim_sym_index(one.dim[d])] : one.dim[d];
        const char *name = base_arena_printf(s->h.scratch, "%s.partials", c->kernel->name);
        ir_id inst = make_bytes(s, hier_partials(&s->h, &one, c->rows), name);
        base_push(s->h.scratch, s->parts, s->n_parts, s->cap_parts, inst);
    }
}

/* The argument of a call that its result k begins with, when nobody else needs it: the two are one instance then, and
 * nothing is copied.  NULL: there is none. */
static hier_slot *gives_way(hier_plan *s, const ir_op *call, const ir_func *loop, size_t k) {
    uint32_t begins = loop->params[call->n_args + k].begins;
    hier_slot *v = begins ? hier_slot_of(s, call->args[begins - 1]) : NULL;
    return v && v->placed && v->uses == 1 ? v : NULL;
}

/* Buffers for the results of a call that have none yet. */
bool hier_make_results(hier_plan *s, ir_id call) {
    callee c;
    if (!resolve_callee(s, ir_at(s->p, call), &c))
        return false;
    for (size_t k = 0; k < c.kernel->n_results; k++) {
        hier_slot *v = &s->slots[s->first[call] + k];
        if (v->inst || v->elsewhere)
            continue;
        hier_slot *from = gives_way(s, ir_at(s->p, call), c.loop, k);
        if (from && from->inst && from->home == v->home) {
            v->inst = from->inst;
            from->owned = false;
        } else {
            v->inst = hier_make(s, &v->type, c.kernel->name);
        }
        v->owned = !s->nested;
    }
    if (c.total)
        make_partials(s, call, &c);
    return true;
}

/* A buffer for what is popped, and the steps of the stack. */
void hier_make_popped(hier_plan *s, ir_id pop) {
    hier_slot *v = &s->slots[s->first[pop]];
    if (v->inst || v->elsewhere)
        return;
    v->inst = hier_make(s, &v->type, base_arena_printf(s->h.scratch, "%s.popped", s->p->name));
    v->owned = !s->nested;
}

void hier_emit_stack(hier_plan *s, ir_id id) {
    const ir_op *op = ir_at(s->p, id);
    if (op->code == IR_PUSH)
        hier_effect1(&s->h, IR_PUSH, hier_slot_of(s, op->args[0])->inst);
    else if (op->code == IR_POP)
        hier_effect1(&s->h, IR_RESTORE, s->slots[s->first[id]].inst);
}

static ir_id *inputs(hier_plan *s, const ir_op *op) {
    ir_id *in = base_arena_new_array(s->h.scratch, ir_id, op->n_args + 1);
    for (uint32_t i = 0; i < op->n_args; i++)
        in[i] = hier_slot_of(s, op->args[i])->inst;
    return in;
}

/* Sizes of the symbols of a loop function, by the names of the kernel's. */
static ir_id *launch_dims(hier_plan *s, const callee *c, const ir_func *loop) {
    ir_id *dims = base_arena_new_array(s->h.scratch, ir_id, loop->n_syms + 1);
    for (size_t i = 0; i < loop->n_syms; i++) {
        uint32_t at;
        if (!ir_sym_find(c->kernel, loop->syms[i], &at)) {
            base_str_addf(s->h.err, "loop '%s' has a dimension '%s' that its kernel lacks", loop->name, loop->syms[i]);
            return NULL;
        }
        dims[i] = hier_dim(&s->h, c->sym[at]);
    }
    return dims;
}

static void launch_total(hier_plan *s, const callee *c, const ir_id *parts, const ir_id *out) {
    ir_id *dims = base_arena_new_array(s->h.scratch, ir_id, c->total->n_syms + 1);
    for (size_t i = 0; i < c->total->n_syms; i++) { /* the one that the kernel lacks counts the units */
        uint32_t at;
        dims[i] =
            ir_sym_find(c->kernel, c->total->syms[i], &at) ? hier_dim(&s->h, c->sym[at]) : hier_units(&s->h, c->rows);
    }
    size_t n = c->kernel->n_results;
    hier_emit_launch(&s->h, &(hier_launch){.loop = c->total,
                                           .graph = -1,
                                           .in = parts,
                                           .n_in = n,
                                           .out = out,
                                           .n_out = n,
                                           .rows = hier_i64(&s->h, 1),
                                           .dims = dims});
}

bool hier_emit_call(hier_plan *s, ir_id id) {
    const ir_op *op = ir_at(s->p, id);
    callee c;
    if (!resolve_callee(s, op, &c))
        return false;
    size_t n = c.kernel->n_results;
    ir_id *out = base_arena_new_array(s->h.scratch, ir_id, n + 1);
    for (size_t k = 0; k < n; k++)
        out[k] = s->slots[s->first[id] + k].inst;
    const ir_id *first = c.total ? &s->parts[s->parts_at[id]] : out;
    hier_launch l = {.loop = c.loop,
                     .graph = c.graph,
                     .in = inputs(s, op),
                     .n_in = op->n_args,
                     .out = first,
                     .n_out = n,
                     .rows = hier_dim(&s->h, c.rows),
                     .dims = launch_dims(s, &c, c.loop),
                     .ahead = s->ahead[id]};
    if (!l.dims)
        return false;
    hier_emit_launch(&s->h, &l);
    if (c.total)
        launch_total(s, &c, first, out);
    return true;
}

/* i64 expressions of sizes, at the beginning of the function. */
static ir_id index_of(hier_plan *s, ir_id v) {
    const ir_op *op = ir_at(s->p, v);
    if (s->index[v])
        return s->index[v];
    if (op->code == IR_CONST)
        return s->index[v] = hier_i64(&s->h, ir_find_attr(op, IR_ATTR_VALUE)->v.i);
    if (op->code == IR_DIMSIZE)
        return s->index[v] = hier_dim(&s->h, ir_int(op, IR_ATTR_DIM, 0));
    ir_id a = index_of(s, op->args[0]);
    return s->index[v] = hier_start2(&s->h, op->code, a, op->n_args > 1 ? index_of(s, op->args[1]) : 0);
}

ir_id hier_rounds(hier_plan *s, ir_id v) {
    return hier_is_value(ir_at(s->p, v)) ? hier_read_i64(&s->h, hier_slot_of(s, v)->inst) : index_of(s, v);
}

/* ---- the top of a program ---- */
static void release_made(hier_plan *s) {
    for (size_t i = 0; i < s->n_made; i++)
        hier_effect1(&s->h, IR_RELEASE, s->made[i].inst);
    s->n_made = 0;
}

static bool top_repeat(hier_plan *s, ir_id id) {
    hier_make_carried(s, id);
    s->nested = true;
    ir_id loop;
    bool ok = hier_make_region(s, ir_at(s->p, id)->region) && hier_emit_repeat(s, id, &loop);
    s->nested = false;
    if (!ok)
        return false;
    release_made(s);
    const hier_carried *c = &s->carried[id];
    for (size_t i = 0; i < c->n_spare; i++)
        hier_effect1(&s->h, IR_RELEASE, hier_get(&s->h, loop, c->n + i));
    for (size_t i = 0; i < c->n; i++)
        s->slots[s->first[id] + i].owned = true;
    return true;
}

static bool top_choice(hier_plan *s, ir_id id) {
    hier_make_choice(s, id);
    s->nested = true;
    bool ok = hier_make_arms(s, id) && hier_emit_choice(s, id);
    s->nested = false;
    release_made(s);
    return ok;
}

static bool top_call(hier_plan *s, ir_id id) {
    if (!hier_make_results(s, id) || !hier_emit_call(s, id))
        return false;
    release_made(s); /* partial results */
    return true;
}

static void top_ret(hier_plan *s, const ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++) {
        ir_id from = hier_slot_of(s, op->args[i])->inst;
        if (from != s->results[i])
            hier_copy(&s->h, from, s->results[i]);
    }
}

static size_t n_results_of(const hier_plan *s, const ir_op *op) {
    if (op->code == IR_REPEAT)
        return op->n_args - 1;
    if (op->code == IR_IF)
        return ir_yield_of(s->p, op)->n_args;
    const ir_func *k = op->code == IR_CALL ? ir_func_find(s->h.m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_KERNEL) : NULL;
    return k ? k->n_results : 0;
}

/* What a call or an if makes and the program returns is made in its place, and so is what such a result begins with. */
static void claim_results(hier_plan *s) {
    const ir_op *ret = ir_at(s->p, s->p->body.ops[s->p->body.n - 1]);
    for (uint32_t i = 0; i < ret->n_args; i++) {
        hier_slot *v = hier_slot_of(s, ret->args[i]);
        if (v->placed && !v->home && !v->inst)
            v->inst = s->results[i];
    }
    for (size_t i = s->p->body.n; i-- > 0;) { /* the last first: what begins with something may be begun with */
        const ir_op *op = ir_at(s->p, s->p->body.ops[i]);
        const ir_func *loop =
            op->code == IR_CALL ? ir_func_find(s->h.m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_LOOP) : NULL;
        for (size_t k = 0; loop && k < n_results_of(s, op); k++) {
            hier_slot *from = gives_way(s, op, loop, k);
            if (from && !from->inst && !from->home)
                from->inst = s->slots[s->first[s->p->body.ops[i]] + k].inst;
        }
    }
}

/* At the top of the program: what step `at` made and nobody uses, and what was used for the last time there. */
static void release_slot(hier_plan *s, size_t i, size_t at) {
    if (!s->slots[i].owned || s->slots[i].last > at)
        return;
    hier_effect1(&s->h, IR_RELEASE, s->slots[i].inst);
    s->slots[i].owned = false;
}

static bool walk(hier_plan *s) {
    const ir_region *r = &s->p->body;
    uint32_t *by_last = base_arena_new_array(s->h.scratch, uint32_t, r->n + 1); /* slots by last use, in order */
    uint32_t *next = base_arena_new_array(s->h.scratch, uint32_t, s->n_slots);
    for (uint32_t i = (uint32_t)s->n_slots; i-- > 1;) {
        next[i] = by_last[s->slots[i].last];
        by_last[s->slots[i].last] = i;
    }
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->p, r->ops[i]);
        if (op->code == IR_POP)
            hier_make_popped(s, r->ops[i]);
        hier_emit_stack(s, r->ops[i]);
        if ((op->code == IR_CALL && !top_call(s, r->ops[i])) || (op->code == IR_REPEAT && !top_repeat(s, r->ops[i])) ||
            (op->code == IR_IF && !top_choice(s, r->ops[i])))
            return false;
        if (op->code == IR_RET)
            top_ret(s, op);
        for (uint32_t k = by_last[i]; k; k = next[k])
            release_slot(s, k, i);
        for (size_t k = 0; k < n_results_of(s, op); k++)
            release_slot(s, s->first[r->ops[i]] + k, i);
    }
    return true;
}

static void bind_all(hier_plan *s) {
    const ir_func *p = s->p;
    add_slot(s, (ir_type){.dtype = IR_NONE}, 0, false);
    for (size_t i = 0; i < p->n_params; i++) {
        add_slot(s, p->params[i].type, 0, false);
        if (p->params[i].role != IR_GRAPH_FIELD)
            s->slots[i + 1].inst = hier_bind(&s->h, "param", i, p->params[i].name);
    }
    s->results = base_arena_new_array(s->h.scratch, ir_id, p->n_results + 1);
    for (size_t i = 0; i < p->n_results; i++)
        s->results[i] = hier_bind(&s->h, "result", i, p->results[i].name);
}

bool hier_program(ir_module *m, const ir_func *p, pass_context *ctx, base_str *err) {
    base_arena *a = ctx->scratch;
    hier_plan s = {.p = p,
                   .first = base_arena_new_array(a, uint32_t, p->n_ops),
                   .carried = base_arena_new_array(a, hier_carried, p->n_ops),
                   .ahead = base_arena_new_array(a, bool, p->n_ops),
                   .parts_at = base_arena_new_array(a, uint32_t, p->n_ops),
                   .index = base_arena_new_array(a, ir_id, p->n_ops)};
    hier_begin(&s.h, m, p, ctx, err);
    bind_all(&s);
    if (!make_slots(&s, &p->body, 0) || !count_uses(&s, &p->body, 0, true))
        return false;
    claim_results(&s);
    if (!ctx->cuda && !find_ahead(&s, &p->body))
        return false;
    if (!walk(&s))
        return false;
    hier_end(&s.h);
    return true;
}
