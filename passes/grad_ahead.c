/* Edge values that the walk of the rows makes for the walk of the sources.
 *
 * The weight exp(s[edge] - logsumexp) of a softmax is made of the edge and of its row.  The walk of the sources meets edges
 * in no order of theirs: it would fetch s and the row's sum from anywhere in memory, and compute one exponential at a time.
 * The walk of the rows has both at hand and edges in order, so it makes the weights in vectors; they are written where the
 * gradient of s will be, which then takes their place (in_place.c), so no array is added.
 *
 * Done for numbers of one edge with a function of ir_math.def in them, as long as each finds a gradient of an edge field to
 * stand in and the walk of the sources reads no more arrays over the edges than without.  For CPUs, as in_place is, and not
 * for gradients that are differentiated again: there the value would bring a cotangent of its own, one more array. */
#include "passes/grad.h"

#include <string.h>

typedef struct ahead {
    const grad_adjoint *a;
    const ir_id *known;
    base_arena *scratch;
    bool *made; /* by id: of the edge and its row alone */
    bool *math; /* by id: such a value, and a function in it */
    bool *pick; /* by id */
} ahead;

static const ir_op *op_of(const ahead *s, ir_id v) { return ir_at(s->a->f, v); }

static bool is_number(const ir_op *op) { return op->type.space == IR_EDGE && !op->type.rank; }

static void look(ahead *s, ir_id v) {
    const ir_op *op = op_of(s, v);
    bool all = is_number(op) && !s->known[v] && ir_class_is_elementwise(ir_op_describe(op->code)->cls);
    bool math = ir_math_name(op->code, op->type.dtype) != NULL;
    for (uint32_t i = 0; i < op->n_args; i++) {
        all = all && s->made[op->args[i]];
        math = math || s->math[op->args[i]];
    }
    s->made[v] = all || op->type.space != IR_EDGE || (pass_reads_at(op, "edge") && is_number(op));
    s->math[v] = all && math;
}

static bool is_array(const ahead *s, ir_id v) {
    return pass_reads_at(op_of(s, v), "edge") || (s->known[v] && op_of(s, v)->type.space == IR_EDGE);
}

/* The one operand that is of the edge, if a function is in it: the rest of the operation is of the row. */
static ir_id only_edge(const ahead *s, const ir_op *op) {
    ir_id one = 0;
    for (uint32_t i = 0; i < op->n_args; i++)
        if (op_of(s, op->args[i])->type.space == IR_EDGE && op->args[i] != one) {
            if (one)
                return 0;
            one = op->args[i];
        }
    return one && s->math[one] ? one : 0;
}

/* Where values are picked: nowhere; as much of the work as can be; no more than leaves the walk of the sources an edge
 * value and values of the row, so that several values of it, as a sigmoid and its derivative, are of one picked. */
typedef enum where { NOWHERE, HIGH, LOW } where;

/* Goes from the gradients to what they need, as far as the values that it picks; returns how many arrays over the edges
 * are read then. */
static size_t follow(ahead *s, where at) {
    const ir_func *f = s->a->f;
    bool *need = base_arena_new_array(s->scratch, bool, f->n_ops);
    bool *read = base_arena_new_array(s->scratch, bool, f->n_params + 1);
    size_t n = 0;
    memset(s->pick, 0, f->n_ops);
    for (size_t i = 0; i < s->a->k->n_params; i++)
        need[s->a->field[i].src] = need[s->a->field[i].edge] = true;
    need[0] = false;
    for (size_t k = f->body.n; k-- > 0;) {
        ir_id v = f->body.ops[k];
        const ir_op *op = op_of(s, v);
        if (!need[v] || op->type.space != IR_EDGE)
            continue;
        s->pick[v] = at != NOWHERE && s->math[v] && !(at == LOW && only_edge(s, op));
        if (is_array(s, v)) {
            size_t field = s->known[v] ? (size_t)s->known[v] - 1 : (size_t)ir_int(op, IR_ATTR_FIELD, 0);
            n += !read[field];
            read[field] = true;
        } else if (s->pick[v]) {
            n++;
        } else {
            for (uint32_t i = 0; i < op->n_args; i++)
                need[op->args[i]] = true;
        }
    }
    return n;
}

/* Has each value that is picked a gradient of an edge field to stand in, of its type? */
static bool has_room(const ahead *s) {
    int64_t room[IR_DTYPE_COUNT] = {0};
    for (size_t i = 0; i < s->a->k->n_params; i++) {
        ir_id edge = s->a->field[i].edge;
        if (edge && !s->a->k->params[i].type.rank)
            room[op_of(s, edge)->type.dtype]++;
    }
    for (ir_id v = 1; v < s->a->f->n_ops; v++)
        if (s->pick[v] && room[op_of(s, v)->type.dtype]-- == 0)
            return false;
    return true;
}

const bool *grad_ahead(const grad_adjoint *a, const ir_id *known, base_arena *scratch) {
    const ir_func *f = a->f;
    ahead s = {.a = a,
               .known = known,
               .scratch = scratch,
               .made = base_arena_new_array(scratch, bool, f->n_ops),
               .math = base_arena_new_array(scratch, bool, f->n_ops),
               .pick = base_arena_new_array(scratch, bool, f->n_ops)};
    for (size_t k = 0; k < f->body.n; k++)
        look(&s, f->body.ops[k]);
    size_t without = follow(&s, NOWHERE);
    for (where w = HIGH; w <= LOW; w++)
        if (follow(&s, w) <= without && has_room(&s))
            return s.pick;
    return NULL;
}
