/* The schedule of a program: which instance holds which value, and when it may go.
 *
 * A value of the program that is an array -- a parameter, a result of a call or of a repeat, an argument of a repeat's
 * region -- has a slot.  Slots are filled as the program is walked:
 *   - a result of a call outside of repeats that the program returns is written straight into the bound result;
 *   - a value carried by a repeat lives in a pair of instances, the current and the spare one; a round writes into the
 *     spares and yields the instances permuted, so no round copies or allocates;
 *   - the other buffers of a repeat's region are made before the outermost repeat and used again in each round.
 *
 * Invariants: a round writes only to spares and to buffers of its own, so whatever it reads keeps its value; the
 * instances a repeat ends with are those it began with, in another order; an instance is written by one step only
 * while it is nobody else's. */
#include "passes/hierarchy.h"

#include <string.h>

typedef struct slot {
    ir_type type;
    ir_id inst;    /* 0: not yet */
    uint32_t uses; /* operands that name it */
    size_t last;   /* operation at the top of the program that uses it last */
    ir_id home;    /* the repeat whose region computes it, 0: the top */
    bool owned;    /* released after its last use */
    bool of_call;
    bool in_spare; /* written straight into the spare of a carried value */
} slot;

/* The values a repeat carries. */
typedef struct carried {
    size_t n, n_spare;
    ir_id *current, *spare; /* in front of the loop; spare[i] = 0: not needed */
    ir_id *now, *other;     /* the same inside: arguments of the region */
    bool *direct;           /* the value yielded is written straight into the spare */
} carried;

typedef struct plan {
    hier h;
    const ir_func *p;
    slot *slots;
    size_t n_slots, cap_slots;
    uint32_t *first;    /* by id: first slot of the operation; slot 0 is none */
    carried *carried;   /* by id of a repeat */
    uint32_t *parts_at; /* by id of a call: its first in parts, which are the partial results of totals */
    ir_id *parts;
    size_t n_parts, cap_parts;
    ir_id *index;       /* by id: i64 values in the schedule */
    ir_id *results;     /* bound */
    unsigned n_carried;
    bool nested;        /* inside a repeat: what is made is listed, and released after the outermost one */
    ir_id *made;
    size_t n_made, cap_made;
} plan;

/* ---- the types of what a call gives ---- */
typedef struct callee {
    const ir_func *kernel, *loop, *total; /* total: NULL unless the kernel reduces over all rows */
    ir_dim *sym;                          /* by symbol of the kernel: dimension of the program */
    ir_dim rows;
    int64_t graph;
} callee;

static bool find_callee(plan *s, const ir_op *op, callee *c) {
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

static bool resolve_callee(plan *s, const ir_op *op, callee *c) {
    if (!find_callee(s, op, c))
        return false;
    c->graph = ir_int(op, IR_ATTR_GRAPH, -1);
    c->rows = ir_int(op, IR_ATTR_DIM, 1);
    const char *rows = ir_transposed(c->kernel) ? "src" : "dst";
    uint32_t sym;
    if (c->graph >= 0 &&
        !ir_sym_find(s->p, base_arena_printf(s->h.scratch, "%s.%s", s->p->params[c->graph].name, rows), &sym)) {
        base_str_addf(s->h.err, "program '%s' has no dimension %s.%s", s->p->name, s->p->params[c->graph].name, rows);
        return false;
    }
    if (c->graph >= 0)
        c->rows = ir_dim_sym(sym);
    c->sym = base_arena_new_array(s->h.scratch, ir_dim, c->kernel->n_syms + 1);
    return ir_bind_call(s->p, op, c->kernel, c->sym, s->h.err);
}

/* ---- slots ---- */
static slot *slot_of(plan *s, ir_id v) {
    const ir_op *op = ir_at(s->p, v);
    if (op->code == IR_GET)
        return &s->slots[s->first[op->args[0]] + (uint32_t)ir_int(op, IR_ATTR_INDEX, 0)];
    if (op->code == IR_PARAM)
        return &s->slots[1 + ir_int(op, IR_ATTR_FIELD, 0)];
    return &s->slots[s->first[v]];
}

/* A result over one row is a scalar: the same bytes. */
static ir_type drop_single(const ir_op *call, ir_type t) {
    bool one_row = ir_int(call, IR_ATTR_GRAPH, -1) < 0 && t.rank == 1 && t.dim[0] == 1;
    return one_row ? ir_scalar(t.dtype) : t;
}

static void add_slot(plan *s, ir_type type, ir_id home, bool of_call) {
    pass_square_type(s->p, &type);
    slot fresh = {.type = type, .home = home, .of_call = of_call};
    base_push(s->h.scratch, s->slots, s->n_slots, s->cap_slots, fresh);
}

static bool make_slots(plan *s, const ir_region *r, ir_id home) {
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
                add_slot(s, drop_single(op, t), home, true);
            }
        } else if (op->code == IR_REPEAT) {
            for (uint32_t k = 1; k < op->n_args; k++)
                add_slot(s, ir_at(s->p, op->args[k])->type, home, false);
            if (!make_slots(s, op->region, id))
                return false;
        } else if (op->code == IR_ARG) {
            add_slot(s, op->type, home, false);
        } else {
            s->first[id] = 0;
        }
    }
    return true;
}

static bool is_value(const ir_op *op) {
    return op->code == IR_PARAM || op->code == IR_ARG || op->code == IR_CALL || op->code == IR_GET;
}

static bool count_uses(plan *s, const ir_region *r, size_t at, bool top) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->p, r->ops[i]);
        size_t pos = top ? i : at;
        if (ir_op_describe(op->code)->cls == IR_CLASS_REDUCE ||
            (ir_class_is_elementwise(ir_op_describe(op->code)->cls) && (op->type.dtype != IR_I64 || op->type.rank))) {
            base_str_addf(s->h.err, "program '%s': '%s' is not in a kernel; run outline first", s->p->name,
                          ir_op_describe(op->code)->text);
            return false;
        }
        for (uint32_t k = 0; op->code != IR_GET && k < op->n_args; k++)
            if (is_value(ir_at(s->p, op->args[k]))) {
                slot *v = slot_of(s, op->args[k]);
                v->uses++;
                v->last = pos;
            }
        if (op->region && !count_uses(s, op->region, pos, false))
            return false;
    }
    return true;
}

/* ---- walking ---- */
static ir_id make(plan *s, const ir_type *t, const char *name) {
    ir_id id = hier_instance(&s->h, hier_bytes(&s->h, t), name);
    if (s->nested)
        base_push(s->h.scratch, s->made, s->n_made, s->cap_made, id);
    return id;
}

/* Partial results of a total, one instance a result. */
static void make_partials(plan *s, ir_id call, const callee *c) {
    s->parts_at[call] = (uint32_t)s->n_parts;
    ir_id units = hier_units(&s->h, c->rows);
    for (size_t k = 0; k < c->kernel->n_results; k++) {
        int64_t bytes = (int64_t)ir_dtype_bytes(c->kernel->results[k].type.dtype);
        const char *name = base_arena_printf(s->h.scratch, "%s.partials", c->kernel->name);
        ir_id inst = hier_instance(&s->h, hier_start2(&s->h, IR_MUL, hier_i64(&s->h, bytes), units), name);
        base_push(s->h.scratch, s->made, s->n_made, s->cap_made, inst);
        base_push(s->h.scratch, s->parts, s->n_parts, s->cap_parts, inst);
    }
}

/* Buffers for the results of a call that have none yet. */
static bool make_results(plan *s, ir_id call) {
    callee c;
    if (!resolve_callee(s, ir_at(s->p, call), &c))
        return false;
    for (size_t k = 0; k < c.kernel->n_results; k++) {
        slot *v = &s->slots[s->first[call] + k];
        if (v->inst || v->in_spare)
            continue;
        v->inst = make(s, &v->type, c.kernel->name);
        v->owned = !s->nested;
    }
    if (c.total)
        make_partials(s, call, &c);
    return true;
}

static ir_id *inputs(plan *s, const ir_op *op) {
    ir_id *in = base_arena_new_array(s->h.scratch, ir_id, op->n_args + 1);
    for (uint32_t i = 0; i < op->n_args; i++)
        in[i] = slot_of(s, op->args[i])->inst;
    return in;
}

/* Sizes of the symbols of a loop function, by the names of the kernel's. */
static ir_id *launch_dims(plan *s, const callee *c, const ir_func *loop) {
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

static void launch_total(plan *s, const callee *c, const ir_id *parts, const ir_id *out) {
    ir_id *dims = base_arena_new_array(s->h.scratch, ir_id, c->total->n_syms + 1);
    for (size_t i = 0; i < c->total->n_syms; i++)
        dims[i] = hier_units(&s->h, c->rows); /* "units" is the only one */
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

static bool emit_call(plan *s, ir_id id) {
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
                     .dims = launch_dims(s, &c, c.loop)};
    if (!l.dims)
        return false;
    hier_emit_launch(&s->h, &l);
    if (c.total)
        launch_total(s, &c, first, out);
    return true;
}

/* i64 expressions of sizes, at the beginning of the function. */
static ir_id index_of(plan *s, ir_id v) {
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

static ir_id rounds(plan *s, ir_id v) {
    return is_value(ir_at(s->p, v)) ? hier_read_i64(&s->h, slot_of(s, v)->inst) : index_of(s, v);
}

/* ---- repeat ---- */
static const ir_op *yield_of(const plan *s, const ir_op *repeat) {
    return ir_at(s->p, repeat->region->ops[repeat->region->n - 1]);
}

static const ir_type *carried_type(const plan *s, ir_id repeat, size_t i) {
    return &s->slots[s->first[repeat] + i].type;
}

static bool yielded_before(plan *s, const ir_op *yield, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (slot_of(s, yield->args[k]) == slot_of(s, yield->args[i]))
            return true;
    return false;
}

/* Position of the carried value that the region passes on unchanged, or -1. */
static int64_t passed_on(plan *s, ir_id repeat, const ir_op *yield, uint32_t i) {
    const ir_op *v = ir_at(s->p, yield->args[i]);
    bool own = v->code == IR_ARG && slot_of(s, yield->args[i])->home == repeat &&
               ir_type_equal(&slot_of(s, yield->args[i])->type, carried_type(s, repeat, i));
    return own && !yielded_before(s, yield, i) ? ir_int(v, IR_ATTR_INDEX, 0) : -1;
}

/* The instance a carried value starts in, and its name.  It will be overwritten, so it must be nobody else's. */
static ir_id start_of(plan *s, ir_id repeat, ir_id v, const char **name) {
    slot *from = slot_of(s, v);
    if (!from->of_call || from->uses != 1 || from->home != slot_of(s, repeat)->home)
        return make(s, &from->type, *name);
    from->owned = false; /* the repeat has it now */
    *name = ir_word(ir_at(s->h.t, from->inst), IR_ATTR_NAME);
    return from->inst;
}

static carried new_carried(plan *s, const ir_op *repeat) {
    base_arena *a = s->h.scratch;
    carried c = {.n = repeat->n_args - 1};
    c.current = base_arena_new_array(a, ir_id, c.n + 1);
    c.spare = base_arena_new_array(a, ir_id, c.n + 1);
    c.now = base_arena_new_array(a, ir_id, c.n + 1);
    c.other = base_arena_new_array(a, ir_id, c.n + 1);
    c.direct = base_arena_new_array(a, bool, c.n + 1);
    return c;
}

static void make_carried(plan *s, ir_id id) {
    const ir_op *op = ir_at(s->p, id), *yield = yield_of(s, op);
    carried c = new_carried(s, op);
    for (uint32_t i = 0; i < c.n; i++) {
        const char *name = base_arena_printf(s->h.scratch, "%s.carried.%u", s->p->name, ++s->n_carried);
        c.current[i] = start_of(s, id, op->args[i + 1], &name);
        if (passed_on(s, id, yield, i) >= 0)
            continue;
        c.spare[i] = make(s, carried_type(s, id, i), name);
        c.n_spare++;
        slot *v = slot_of(s, yield->args[i]);
        c.direct[i] = v->of_call && v->home == id && ir_type_equal(&v->type, carried_type(s, id, i)) &&
                      !yielded_before(s, yield, i);
        v->in_spare |= c.direct[i];
    }
    s->carried[id] = c;
}

/* Every buffer that the region of a repeat will need. */
static bool make_region(plan *s, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->p, r->ops[i]);
        if (op->code == IR_CALL && !make_results(s, r->ops[i]))
            return false;
        if (op->code != IR_REPEAT)
            continue;
        make_carried(s, r->ops[i]);
        if (!make_region(s, op->region))
            return false;
    }
    return true;
}

static bool contains(const ir_id *list, size_t n, ir_id id) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == id)
            return true;
    return false;
}

/* A free instance of the type: what a round has not passed on. */
static ir_id take_free(plan *s, ir_id id, const ir_id *taken, size_t n_taken, const ir_type *t) {
    const carried *c = &s->carried[id];
    for (size_t i = 0; i < c->n; i++) {
        if (!ir_type_equal(carried_type(s, id, i), t))
            continue;
        if (!contains(taken, n_taken, c->now[i]))
            return c->now[i];
        if (c->spare[i] && !contains(taken, n_taken, c->other[i]))
            return c->other[i];
    }
    BASE_BUG("program '%s': no instance left for a carried value", s->p->name);
}

static void emit_yield(plan *s, ir_id id) {
    carried *c = &s->carried[id];
    const ir_op *yield = yield_of(s, ir_at(s->p, id));
    ir_id *out = base_arena_new_array(s->h.scratch, ir_id, c->n + c->n_spare);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t from = passed_on(s, id, yield, i);
        out[i] = from >= 0 ? c->now[from] : c->other[i];
        if (from < 0 && !c->direct[i])
            hier_copy(&s->h, slot_of(s, yield->args[i])->inst, out[i]);
    }
    size_t n = c->n;
    for (size_t i = 0; i < c->n; i++)
        if (c->spare[i]) {
            out[n] = take_free(s, id, out, n, carried_type(s, id, i));
            n++;
        }
    ir_emit(&s->h.b, IR_YIELD, (ir_type){.dtype = IR_NONE}, out, n);
}

static ir_id region_arg(plan *s, size_t index) {
    ir_id id = ir_emit(&s->h.b, IR_ARG, (ir_type){.dtype = IR_INSTANCE_T}, NULL, 0);
    ir_set_int(s->h.m, ir_at(s->h.t, id), IR_ATTR_INDEX, (int64_t)index);
    return id;
}

static ir_id begin_repeat(plan *s, ir_id id, ir_id count) {
    carried *c = &s->carried[id];
    ir_id *args = base_arena_new_array(s->h.scratch, ir_id, 1 + c->n + c->n_spare);
    size_t at = 0;
    args[at++] = count;
    for (size_t i = 0; i < c->n; i++)
        args[at++] = c->current[i];
    for (size_t i = 0; i < c->n; i++)
        if (c->spare[i])
            args[at++] = c->spare[i];
    ir_id loop = ir_emit(&s->h.b, IR_REPEAT, (ir_type){.dtype = IR_TUPLE}, args, at);
    s->h.b.r = ir_at(s->h.t, loop)->region = ir_region_new(s->h.m);
    for (size_t i = 0; i < c->n; i++)
        c->now[i] = region_arg(s, i);
    for (size_t i = 0, n = c->n; i < c->n; i++)
        if (c->spare[i])
            c->other[i] = region_arg(s, n++);
    return loop;
}

/* Places of the region's arguments, and of the values that go straight into a spare. */
static void place_carried(plan *s, ir_id id) {
    const carried *c = &s->carried[id];
    const ir_op *op = ir_at(s->p, id), *yield = yield_of(s, op);
    for (size_t i = 0; i < op->region->n; i++) {
        const ir_op *a = ir_at(s->p, op->region->ops[i]);
        if (a->code == IR_ARG)
            slot_of(s, op->region->ops[i])->inst = c->now[ir_int(a, IR_ATTR_INDEX, 0)];
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->direct[i])
            slot_of(s, yield->args[i])->inst = c->other[i];
}

static bool emit_repeat(plan *s, ir_id id, ir_id *loop) {
    const ir_op *op = ir_at(s->p, id);
    const carried *c = &s->carried[id];
    for (size_t i = 0; i < c->n; i++) {
        ir_id from = slot_of(s, op->args[i + 1])->inst;
        if (from != c->current[i])
            hier_copy(&s->h, from, c->current[i]);
    }
    ir_id count = rounds(s, op->args[0]);
    ir_region *outer = s->h.b.r;
    *loop = begin_repeat(s, id, count);
    place_carried(s, id);
    for (size_t i = 0; i < op->region->n; i++) {
        ir_id inner, o = op->region->ops[i];
        ir_opcode code = ir_at(s->p, o)->code;
        if (!(code == IR_CALL ? emit_call(s, o) : code != IR_REPEAT || emit_repeat(s, o, &inner)))
            return false;
    }
    emit_yield(s, id);
    s->h.b.r = outer;
    for (size_t i = 0; i < c->n; i++)
        s->slots[s->first[id] + i].inst = hier_get(&s->h, *loop, i);
    return true;
}

/* ---- the top of a program ---- */
static void release_made(plan *s) {
    for (size_t i = 0; i < s->n_made; i++)
        hier_effect1(&s->h, IR_RELEASE, s->made[i]);
    s->n_made = 0;
}

static bool top_repeat(plan *s, ir_id id) {
    make_carried(s, id);
    s->nested = true;
    ir_id loop;
    bool ok = make_region(s, ir_at(s->p, id)->region) && emit_repeat(s, id, &loop);
    s->nested = false;
    if (!ok)
        return false;
    release_made(s);
    const carried *c = &s->carried[id];
    for (size_t i = 0; i < c->n_spare; i++)
        hier_effect1(&s->h, IR_RELEASE, hier_get(&s->h, loop, c->n + i));
    for (size_t i = 0; i < c->n; i++)
        s->slots[s->first[id] + i].owned = true;
    return true;
}

static bool top_call(plan *s, ir_id id) {
    if (!make_results(s, id) || !emit_call(s, id))
        return false;
    release_made(s); /* partial results */
    return true;
}

static void top_ret(plan *s, const ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++) {
        ir_id from = slot_of(s, op->args[i])->inst;
        if (from != s->results[i])
            hier_copy(&s->h, from, s->results[i]);
    }
}

/* What a call makes and the program returns is made in its place. */
static void claim_results(plan *s) {
    const ir_op *ret = ir_at(s->p, s->p->body.ops[s->p->body.n - 1]);
    for (uint32_t i = 0; i < ret->n_args; i++) {
        slot *v = slot_of(s, ret->args[i]);
        if (v->of_call && !v->home && !v->inst)
            v->inst = s->results[i];
    }
}

static void release_unused(plan *s, size_t at) {
    for (size_t i = 1; i < s->n_slots; i++)
        if (s->slots[i].owned && s->slots[i].last <= at) {
            hier_effect1(&s->h, IR_RELEASE, s->slots[i].inst);
            s->slots[i].owned = false;
        }
}

static bool walk(plan *s) {
    const ir_region *r = &s->p->body;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->p, r->ops[i]);
        if (op->code == IR_CALL ? !top_call(s, r->ops[i]) : op->code == IR_REPEAT && !top_repeat(s, r->ops[i]))
            return false;
        if (op->code == IR_RET)
            top_ret(s, op);
        release_unused(s, i);
    }
    return true;
}

static void bind_all(plan *s) {
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
    plan s = {.p = p,
              .first = base_arena_new_array(a, uint32_t, p->n_ops),
              .carried = base_arena_new_array(a, carried, p->n_ops),
              .parts_at = base_arena_new_array(a, uint32_t, p->n_ops),
              .index = base_arena_new_array(a, ir_id, p->n_ops)};
    hier_begin(&s.h, m, p, ctx, err);
    bind_all(&s);
    if (!make_slots(&s, &p->body, 0) || !count_uses(&s, &p->body, 0, true))
        return false;
    claim_results(&s);
    if (!walk(&s))
        return false;
    hier_end(&s.h);
    return true;
}
