/* fission: a short loop over heads becomes lanes for what it computes of each head, and a loop for the features of the heads.
 *
 *     loop H { h: p = exp(s[h]) ...; lanes F { f: acc[h, f] += p * x[h, f] } }
 *
 * has the exponentials one at a time.  Turns of the loop do not need one another, so all that stands beside the lanes
 * goes in front, as lanes over the heads; what the rest needs of it is kept in a small array.
 *
 * A loop is taken apart when it computes a function of ir_math.def beside its lanes, and
 *   - variables are read and set at the turn's own element of their last axis;
 *   - none of them is touched in the lanes;
 *   - nothing is stored but in the rest.
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
    size_t n_math;
    ir_id kept[MOST_KEPT]; /* values that the rest needs */
    size_t n_kept;
} taken;

static ir_op *at(const fission *s, ir_id id) { return ir_at(s->f, id); }

static bool is_math(const ir_op *op) {
    switch ((int)op->code) {
    case IR_EXP:
    case IR_EXPM1:
    case IR_LOG:
    case IR_LOG1P:
    case IR_TANH:
    case IR_ERF:
    case IR_SIN:
    case IR_COS:
    case IR_POW:
        return ir_dtype_is_float(op->type.dtype);
    }
    return false;
}

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

/* May it go in front of the lanes? */
static bool is_own_element(const fission *s, const taken *t, const ir_op *op) {
    uint32_t rank = at(s, op->args[0])->type.rank;
    if (!rank || op->args[rank] != t->turn)
        return false;
    for (uint32_t a = 1; a < rank; a++)
        for (size_t i = 0; i < t->body->n; i++)
            if (t->body->ops[i] == op->args[a])
                return false;
    for (size_t i = 0; i < t->body->n; i++) {
        const ir_op *other = at(s, t->body->ops[i]);
        if (other->region && touches(s, other->region, op->args[0]))
            return false;
    }
    return true;
}

static bool is_whole_number(const ir_op *op) { return op->type.dtype == IR_I64 || op->type.dtype == IR_I32; }

static bool goes_first(const fission *s, const taken *t, const ir_op *op) {
    if (op->code == IR_READ || op->code == IR_SET)
        return is_own_element(s, t, op);
    if (op->code == IR_LOAD)
        return s->f->params[ir_int(op, IR_ATTR_FIELD, 0)].role < IR_OUT_ROW;
    return ir_class_is_elementwise(ir_op_describe(op->code)->cls);
}

static bool keep(const fission *s, taken *t, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = at(s, r->ops[i]);
        if (op->region && !keep(s, t, op->region))
            return false;
        for (uint32_t a = 0; a < op->n_args && !t->first[r->ops[i]]; a++) {
            ir_id v = op->args[a];
            bool known = !t->first[v];
            for (size_t k = 0; k < t->n_kept; k++)
                known = known || t->kept[k] == v;
            if (known)
                continue;
            ir_dtype d = at(s, v)->type.dtype;
            if (t->n_kept == MOST_KEPT || !ir_dtype_is_float(d) || ir_dtype_is_complex(d))
                return false;
            t->kept[t->n_kept++] = v;
        }
    }
    return true;
}

/* What goes in front; false: the loop stays as it is. */
static bool take(const fission *s, const ir_op *loop, taken *t) {
    const ir_op *count = at(s, loop->args[0]);
    *t = (taken){.body = loop->region, .turn = pass_loop_arg(s->f, loop, 0)};
    if (count->code != IR_CONST || !t->turn || !is_whole_number(count))
        return false;
    int64_t n = ir_find_attr(count, IR_ATTR_VALUE)->v.i;
    if (n < LEAST_TURNS || n > MOST_TURNS)
        return false;
    t->first = base_arena_new_array(s->scratch, bool, s->f->n_ops);
    bool lanes = false;
    for (size_t i = 0; i < t->body->n; i++) {
        ir_id id = t->body->ops[i];
        const ir_op *op = at(s, id);
        if (op->code == IR_ARG)
            continue;
        if (op->region || op->code == IR_STORE) {
            lanes = lanes || op->code == IR_LANES;
            continue;
        }
        if (!goes_first(s, t, op))
            return false;
        t->first[id] = true;
        t->n_math += is_math(op);
    }
    return lanes && t->n_math && keep(s, t, t->body);
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

/* Before the loop, at the end of r: the lanes, and arrays for what they leave. */
static void put_first(const fission *s, ir_region *r, ir_id loop, const taken *t, ir_id *var) {
    const ir_type none = {.dtype = IR_NONE};
    ir_id count = at(s, loop)->args[0];
    int64_t n = ir_find_attr(at(s, count), IR_ATTR_VALUE)->v.i;
    for (size_t k = 0; k < t->n_kept; k++) {
        ir_type type = {.dtype = at(s, t->kept[k])->type.dtype, .rank = 1, .dim = {n}};
        var[k] = pass_put(s->m, s->f, r, IR_VAR, type, NULL, 0);
        ir_set_word(s->m, at(s, var[k]), IR_ATTR_NAME, "of_head");
    }
    ir_region *body = at(s, pass_put(s->m, s->f, r, IR_LANES, none, &count, 1))->region;
    ir_id lane = pass_put_arg(s->m, s->f, body, 0);
    pass_put_arg(s->m, s->f, body, 1);
    for (size_t i = 0; i < t->body->n; i++)
        if (t->first[t->body->ops[i]])
            ir_append(s->m, body, t->body->ops[i]);
    replace(s, body, t->turn, lane);
    for (size_t k = 0; k < t->n_kept; k++)
        pass_put(s->m, s->f, body, IR_SET, none, (ir_id[]){var[k], lane, t->kept[k]}, 3);
}

static void put_rest(const fission *s, ir_id loop, const taken *t, const ir_id *var) {
    ir_region old = *t->body, *r = at(s, loop)->region;
    ir_id *value = base_arena_new_array(s->scratch, ir_id, t->n_kept + 1);
    *r = (ir_region){0};
    ir_append(s->m, r, t->turn);
    for (size_t k = 0; k < t->n_kept; k++)
        value[k] =
            pass_put(s->m, s->f, r, IR_READ, ir_scalar(at(s, t->kept[k])->type.dtype), (ir_id[]){var[k], t->turn}, 2);
    for (size_t i = 0; i < old.n; i++)
        if (old.ops[i] != t->turn && !t->first[old.ops[i]])
            ir_append(s->m, r, old.ops[i]);
    for (size_t k = 0; k < t->n_kept; k++)
        replace(s, r, t->kept[k], value[k]);
}

static void in_region(const fission *s, ir_region *r) {
    const ir_region old = *r;
    *r = (ir_region){0};
    for (size_t i = 0; i < old.n; i++) {
        ir_id id = old.ops[i], var[MOST_KEPT];
        taken t;
        if (at(s, id)->code == IR_LOOP && take(s, at(s, id), &t)) {
            put_first(s, r, id, &t, var);
            put_rest(s, id, &t, var);
        } else if (at(s, id)->region) {
            in_region(s, at(s, id)->region);
        }
        ir_append(s->m, r, id);
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
