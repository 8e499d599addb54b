/* One step of a reducer of the user's, backwards: a copy of its region on two states that there are, and the reverse sweep
 * over that copy.  The code goes where the builder stands: into a kernel or into the region of another combine.
 *
 * States of two shapes are all taken in the wider one: each element then has a copy of what is narrower, and the sum
 * over the copies is left to the caller. */
#include "passes/grad.h"

static bool wanted(void *user, ir_id v) {
    const grad_join *u = user;
    return v >= u->first && v < u->first + u->s->region->n - 1 && u->reach[v - u->first];
}

static void add(void *user, ir_id v, const ir_op *by, ir_id value) {
    grad_join *u = user;
    (void)by;
    if (!wanted(user, v))
        return;
    ir_id *place = &u->ct[v - u->first];
    *place = *place ? grad_op2(u->b, IR_ADD, *place, value) : value;
}

static void widen(const grad_join *u, ir_type *t) {
    if (!u->wide)
        return;
    t->rank = u->wide->rank;
    base_copy(t->dim, u->wide->dim, sizeof t->dim);
}

static ir_id copy(grad_join *u, size_t k, const ir_id *sides) {
    const ir_op *op = ir_at(u->b->f, u->s->region->ops[k]);
    ir_id *args = base_arena_new_array(u->s->scratch, ir_id, op->n_args + 1);
    ir_type t = op->type;
    if (op->code == IR_ARG) { /* a copy of its own: the two sides may be one value */
        t.space = ir_at(u->b->f, sides[k])->type.space;
        widen(u, &t);
        return ir_emit1(u->b, IR_BROADCAST, t, sides[k]);
    }
    bool of_states = false;
    for (uint32_t i = 0; i < op->n_args; i++) {
        size_t p = u->s->place[op->args[i]];
        args[i] = p == SIZE_MAX ? op->args[i] : u->first + (ir_id)p;
        of_states = of_states || (p != SIZE_MAX && u->wide && ir_at(u->b->f, args[i])->type.rank == u->wide->rank);
        u->reach[k] = u->reach[k] || (wanted(u, args[i]) && ir_grad_flows(u->b->f, op, i));
    }
    if (of_states)
        widen(u, &t);
    if (op->n_args)
        t.space = ir_widest_space(u->b->f, args, op->n_args);
    ir_id id = ir_emit(u->b, op->code, t, args, op->n_args);
    ir_copy_attrs(u->b->m, op, ir_at(u->b->f, id));
    return id;
}

grad_join grad_join_of(const grad_states *s, ir_builder *b, const ir_id *sides, const ir_type *wide) {
    size_t n = s->region->n - 1;
    grad_join u = {.s = s,
                   .b = b,
                   .wide = wide,
                   .first = (ir_id)b->f->n_ops,
                   .reach = base_arena_new_array(s->scratch, bool, n),
                   .ct = base_arena_new_array(s->scratch, ir_id, n)};
    for (size_t k = 0; k < n; k++) {
        u.reach[k] = k < 2 * s->n && ir_dtype_has_gradient(ir_at(b->f, s->region->ops[k])->type.dtype);
        ir_id id = copy(&u, k, sides);
        BASE_CHECK(id == u.first + k);
    }
    return u;
}

const ir_id *grad_join_back(grad_join *u, const ir_id *x) {
    grad_sink sink = {.b = u->b, .user = u, .wanted = wanted, .add = add};
    size_t n = u->s->region->n - 1;
    u->ct = base_arena_new_array(u->s->scratch, ir_id, n);
    for (size_t i = 0; i < u->s->n; i++) {
        ir_id v = ir_at(u->b->f, u->s->region->ops[n])->args[i];
        if (x[i] && u->s->place[v] != SIZE_MAX)
            add(u, u->first + (ir_id)u->s->place[v], NULL, x[i]);
    }
    for (size_t k = n; k-- > 2 * u->s->n;)
        if (u->ct[k] && u->reach[k])
            grad_rule(&sink, u->first + (ir_id)k, u->ct[k]);
    return u->ct;
}
