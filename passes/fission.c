/* fission: a short loop over heads becomes lanes for what it computes of each head, and a loop for the features of the heads.
 *
 *     loop H { h: p = exp(s[h]) ...; lanes F { f: acc[h, f] += p * x[h, f] } }
 *
 * has the exponentials one at a time.  Turns of the loop do not need one another, so what stands beside the lanes and needs
 * nothing of them goes in front, as lanes over the heads; what the rest needs of it is kept in a small array, or computed
 * again where it is a load or a condition.
 *
 * A variable goes in front with all that reads and sets it, when each time is at the turn's own element of its last axis,
 * and what it is set to goes in front too.  A loop is taken apart when a function of ir_math.def does.
 * For CPUs: the threads of a team on a GPU share out the lanes.  Changes no bit of a result. */
#include "passes/pass_util.h"

enum { LEAST_TURNS = 4, MOST_TURNS = 64, MOST_KEPT = 8 };

typedef struct fission {
    ir_module *m;
    ir_func *f;
    base_arena *scratch;
} fission;

typedef struct taken {
    ir_region *body; /* of the loop */
    ir_id turn; /* its argument */
    bool *first; /* by id: goes in front */
    bool *stays; /* by id, of variables: with the rest */
    bool *again; /* by id: goes in front, and is computed again in the rest */
    bool math;
    ir_id kept[MOST_KEPT]; /* values that the rest needs */
    size_t n_kept;
} taken;

static ir_op *at(const fission *s, ir_id id) { return ir_at(s->f, id); }

static bool touches(const fission *s, const ir_region *r, ir_id var) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(s, r->ops[i]);
        if ((op->code == IR_READ || op->code == IR_SET || op->code == IR_ACCUM || op->code == IR_COLLAPSE) &&
            op->args[0] == var)
            return true;
        if (op->region && touches(s, op->region, var))
            return true;
    }
    return false;
}

static bool in_body(const taken *t, ir_id id) {
    for (size_t i = 0; i < t->body->n; i++)
        if (t->body->ops[i] == id)
            return true;
    return false;
}

static bool is_own_element(const fission *s, const taken *t, const ir_op *op) {
    uint32_t rank = at(s, op->args[0])->type.rank;
    if (!rank || op->args[rank] != t->turn)
        return false;
    for (uint32_t a = 1; a < rank; a++)
        if (in_body(t, op->args[a]))
            return false;
    for (size_t i = 0; i < t->body->n; i++) {
        const ir_op *other = at(s, t->body->ops[i]);
        if (other->region && touches(s, other->region, op->args[0]))
            return false;
    }
    return true;
}

static bool may_go_first(const fission *s, const taken *t, const ir_op *op) {
    if (op->code == IR_READ || op->code == IR_SET)
        return !t->stays[op->args[0]];
    if (op->code == IR_LOAD)
        return s->f->params[ir_int(op, IR_ATTR_FIELD, 0)].role < IR_OUT_ROW;
    return ir_class_is_elementwise(ir_op_describe(op->code)->cls);
}

static bool needs_rest(const taken *t, const ir_op *op) {
    for (uint32_t a = 0; a < op->n_args; a++)
        if (op->args[a] != t->turn && !t->first[op->args[a]] && in_body(t, op->args[a]))
            return true;
    return false;
}

/* True when a variable was found that has to stay: what goes in front must be found again. */
static bool divide(const fission *s, taken *t) {
    bool changed = false;
    t->math = false;
    for (size_t i = 0; i < t->body->n; i++) {
        ir_id id = t->body->ops[i];
        const ir_op *op = at(s, id);
        bool place = op->code == IR_READ || op->code == IR_SET;
        t->first[id] = op->code != IR_ARG && !op->region && may_go_first(s, t, op) && !needs_rest(t, op);
        t->math = t->math || (t->first[id] && ir_math_name(op->code, op->type.dtype));
        if (place && !t->stays[op->args[0]] && (!t->first[id] || !is_own_element(s, t, op)))
            changed = t->stays[op->args[0]] = true;
    }
    return changed;
}

/* The rest needs this value; false: it can be neither kept nor computed again. */
static bool keep_value(const fission *s, taken *t, ir_id v) {
    const ir_op *op = at(s, v);
    if (!t->first[v] || t->again[v])
        return true;
    for (size_t k = 0; k < t->n_kept; k++)
        if (t->kept[k] == v)
            return true;
    if (op->code != IR_LOAD && ir_dtype_is_float(op->type.dtype) && !ir_dtype_is_complex(op->type.dtype)) {
        if (t->n_kept == MOST_KEPT)
            return false;
        t->kept[t->n_kept++] = v;
        return true;
    }
    if (op->code != IR_LOAD && !ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return false;
    t->again[v] = true;
    for (uint32_t a = 0; a < op->n_args; a++)
        if (!keep_value(s, t, op->args[a]))
            return false;
    return true;
}

static bool keep(const fission *s, taken *t, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(s, r->ops[i]);
        if (op->region && !keep(s, t, op->region))
            return false;
        for (uint32_t a = 0; a < op->n_args && !t->first[r->ops[i]]; a++)
            if (!keep_value(s, t, op->args[a]))
                return false;
    }
    return true;
}

static bool has_lanes(const fission *s, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++)
        if (at(s, r->ops[i])->code == IR_LANES)
            return true;
    return false;
}

/* What goes in front; false: the loop stays as it is. */
static bool take(const fission *s, const ir_op *loop, taken *t) {
    const ir_op *count = at(s, loop->args[0]);
    *t = (taken){.body = loop->region, .turn = pass_loop_arg(s->f, loop, 0)};
    if (count->code != IR_CONST || !t->turn || !has_lanes(s, t->body))
        return false;
    int64_t n = ir_find_attr(count, IR_ATTR_VALUE)->v.i;
    if (n < LEAST_TURNS || n > MOST_TURNS)
        return false;
    t->first = base_arena_new_array(s->scratch, bool, s->f->n_ops);
    t->stays = base_arena_new_array(s->scratch, bool, s->f->n_ops);
    t->again = base_arena_new_array(s->scratch, bool, s->f->n_ops);
    while (divide(s, t))
        ;
    return t->math && keep(s, t, t->body);
}

static void replace(const fission *s, const ir_region *r, ir_id from, ir_id to) {
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = at(s, r->ops[i]);
        for (uint32_t a = 0; a < op->n_args; a++)
            if (op->args[a] == from)
                op->args[a] = to;
        if (op->region)
            replace(s, op->region, from, to);
    }
}

/* At the end of r: arrays for what the lanes leave. */
static void put_arrays(const fission *s, ir_region *r, ir_id loop, const taken *t, ir_id *var) {
    int64_t n = ir_find_attr(at(s, at(s, loop)->args[0]), IR_ATTR_VALUE)->v.i;
    for (size_t k = 0; k < t->n_kept; k++) {
        ir_type type = {.dtype = at(s, t->kept[k])->type.dtype, .rank = 1, .dim = {n}};
        var[k] = pass_put(s->m, s->f, r, IR_VAR, type, NULL, 0);
        ir_set_word(s->m, at(s, var[k]), IR_ATTR_NAME, "of_head");
    }
}

/* Of what stood in the loop: the lanes, at the end of r. */
static void put_first(const fission *s, ir_region *r, ir_id count, const taken *t, const ir_region *stood,
                      const ir_id *var) {
    const ir_type none = {.dtype = IR_NONE};
    ir_region *body = at(s, pass_put(s->m, s->f, r, IR_LANES, none, &count, 1))->region;
    ir_id lane = pass_put_arg(s->m, s->f, body, 0);
    pass_put_arg(s->m, s->f, body, 1);
    for (size_t i = 0; i < stood->n; i++)
        if (t->first[stood->ops[i]])
            ir_append(s->m, body, stood->ops[i]);
    replace(s, body, t->turn, lane);
    for (size_t k = 0; k < t->n_kept; k++)
        pass_put(s->m, s->f, body, IR_SET, none, (ir_id[]){var[k], lane, t->kept[k]}, 3);
}

static ir_id copy_of(const fission *s, ir_region *r, ir_id id) {
    const ir_op *op = at(s, id);
    ir_id copy = pass_put(s->m, s->f, r, op->code, op->type, op->args, op->n_args);
    ir_copy_attrs(s->m, at(s, id), at(s, copy));
    at(s, copy)->span = at(s, id)->span;
    return copy;
}

/* And the rest, in the loop. */
static void put_rest(const fission *s, ir_id loop, const taken *t, const ir_region *stood, const ir_id *var) {
    ir_region *r = at(s, loop)->region;
    size_t n = stood->n + t->n_kept, k = 0;
    ir_id *from = base_arena_new_array(s->scratch, ir_id, n), *to = base_arena_new_array(s->scratch, ir_id, n);
    *r = (ir_region){0};
    ir_append(s->m, r, t->turn);
    for (; k < t->n_kept; k++) {
        from[k] = t->kept[k];
        to[k] = pass_put(s->m, s->f, r, IR_READ, ir_scalar(at(s, from[k])->type.dtype), (ir_id[]){var[k], t->turn}, 2);
    }
    for (size_t i = 0; i < stood->n; i++) {
        ir_id id = stood->ops[i];
        if (t->again[id]) {
            from[k] = id;
            to[k++] = copy_of(s, r, id);
        } else if (id != t->turn && !t->first[id]) {
            ir_append(s->m, r, id);
        }
    }
    for (size_t i = 0; i < k; i++)
        replace(s, r, from[i], to[i]);
}

static void take_apart(const fission *s, ir_region *r, ir_id loop, const taken *t) {
    const ir_region stood = *t->body;
    ir_id var[MOST_KEPT];
    put_arrays(s, r, loop, t, var);
    put_rest(s, loop, t, &stood, var); /* copies what the lanes then change */
    put_first(s, r, at(s, loop)->args[0], t, &stood, var);
}

static void in_region(const fission *s, ir_region *r) {
    const ir_region old = *r;
    *r = (ir_region){0};
    for (size_t i = 0; i < old.n; i++) {
        taken t;
        if (at(s, old.ops[i])->code == IR_LOOP && take(s, at(s, old.ops[i]), &t))
            take_apart(s, r, old.ops[i], &t);
        else if (at(s, old.ops[i])->region)
            in_region(s, at(s, old.ops[i])->region);
        ir_append(s->m, r, old.ops[i]);
    }
}

static bool fission_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    if (!ctx->cuda)
        in_region(&(fission){m, f, ctx->scratch}, &f->body);
    return true;
}

bool pass_fission(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, fission_func, ctx, err);
}
