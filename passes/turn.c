/* turn: matrices that a sum of products reads column by column are laid the other way first.
 *
 *     loop K { lanes f: acc[f] += x[k] * W[f, k] }
 *
 * reads W with a stride, element by element.  When W is a parameter and the loop stands in the rows, a copy with its axes
 * exchanged is made in front of them, once for each run of rows that the launch gives to a thread, and read in its place by
 * vectors.  The order of the sum does not change.  For CPUs; products that `panels` has taken are turned there. */
#include "passes/pass_util.h"

enum { MOST_ELEMENTS = 1 << 20, MOST_MATRICES = 8 };

typedef struct turned {
    uint32_t field;
    ir_id var;
} turned;

typedef struct turn {
    ir_module *m;
    ir_func *f;
    ir_id *loop_of; /* by id: the operation whose region it stands in, 0 at the top */
    turned list[MOST_MATRICES];
    size_t n;
} turn;

static ir_op *at(const turn *t, ir_id id) { return ir_at(t->f, id); }

static void note_loops(turn *t, const ir_region *r, ir_id loop) {
    for (size_t i = 0; i < r->n; i++) {
        t->loop_of[r->ops[i]] = loop;
        if (at(t, r->ops[i])->region)
            note_loops(t, at(t, r->ops[i])->region, r->ops[i]);
    }
}

/* The number of a product in the sum: the argument of a loop around the lanes, perhaps behind those of another part. */
static bool counts_products(const turn *t, ir_id id) {
    const ir_op *op = at(t, id);
    if (op->code == IR_ADD)
        return (counts_products(t, op->args[0]) && !t->loop_of[op->args[1]]) ||
               (counts_products(t, op->args[1]) && !t->loop_of[op->args[0]]);
    return op->code == IR_ARG && t->loop_of[id] && at(t, t->loop_of[id])->code == IR_LOOP;
}

static bool is_small(const ir_type *type) {
    int64_t a = type->dim[0], b = type->dim[1];
    return a < 0 || b < 0 || a == 0 || b <= MOST_ELEMENTS / a;
}

static bool reads_with_stride(const turn *t, ir_id id) {
    const ir_op *op = at(t, id), *lanes = t->loop_of[id] ? at(t, t->loop_of[id]) : NULL;
    if (op->code != IR_LOAD || op->n_args != 2 || !lanes || lanes->code != IR_LANES)
        return false;
    const ir_param *p = &t->f->params[ir_int(op, IR_ATTR_FIELD, 0)];
    const ir_op *lane = at(t, op->args[0]);
    return p->role == IR_PARAM_FIELD && lane->code == IR_ARG && t->loop_of[op->args[0]] == t->loop_of[id] &&
           ir_int(lane, IR_ATTR_INDEX, 0) == 0 && counts_products(t, op->args[1]) && is_small(&p->type);
}

static turned *matrix(turn *t, uint32_t field) {
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].field == field)
            return &t->list[i];
    if (t->n == MOST_MATRICES)
        return NULL;
    const ir_type *from = &t->f->params[field].type;
    ir_type type = {.dtype = from->dtype, .rank = 2, .dim = {from->dim[1], from->dim[0]}};
    turned *x = &t->list[t->n++];
    *x = (turned){.field = field, .var = ir_op_new(t->m, t->f, IR_VAR, type, NULL, 0)};
    ir_set_word(t->m, at(t, x->var), IR_ATTR_NAME, "turned");
    return x;
}

static void read_turned(turn *t, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = at(t, r->ops[i]);
        if (op->region)
            read_turned(t, op->region);
        turned *x = reads_with_stride(t, r->ops[i]) ? matrix(t, (uint32_t)ir_int(op, IR_ATTR_FIELD, 0)) : NULL;
        if (!x)
            continue;
        op = at(t, r->ops[i]);
        op->code = IR_READ;
        ir_drop_attr(op, IR_ATTR_FIELD);
        ir_set_args(t->m, op, (ir_id[]){x->var, op->args[1], op->args[0]}, 3);
    }
}

/* ---- the copy ---- */
static void fill(turn *t, const turned *x, ir_region *r) {
    const ir_type *type = &t->f->params[x->field].type, none = {.dtype = IR_NONE};
    ir_id n = pass_put_size(t->m, t->f, r, type->dim[1]), lanes = pass_put_size(t->m, t->f, r, type->dim[0]);
    ir_append(t->m, r, x->var);
    ir_region *rows = at(t, pass_put(t->m, t->f, r, IR_LOOP, none, &n, 1))->region;
    ir_id k = pass_put_arg(t->m, t->f, rows, 0);
    ir_region *body = at(t, pass_put(t->m, t->f, rows, IR_LANES, none, &lanes, 1))->region;
    ir_id f = pass_put_arg(t->m, t->f, body, 0), l = pass_put_arg(t->m, t->f, body, 1);
    ir_id value = pass_put(t->m, t->f, body, IR_LOAD, ir_scalar(type->dtype), (ir_id[]){f, k}, 2);
    ir_set_int(t->m, at(t, value), IR_ATTR_FIELD, x->field);
    pass_put(t->m, t->f, body, IR_SET, none, (ir_id[]){x->var, k, l, value}, 4);
}

/* Rows at the top of the function only: in tiles there, everything that is read often is in panels. */
static bool turn_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    turn t = {.m = m, .f = f, .loop_of = base_arena_new_array(ctx->scratch, ir_id, f->n_ops)};
    note_loops(&t, &f->body, 0);
    for (size_t i = 0; !ctx->cuda && i < f->body.n; i++) {
        if (at(&t, f->body.ops[i])->code != IR_ROWS)
            continue;
        ir_id rows = f->body.ops[i];
        read_turned(&t, at(&t, rows)->region);
        if (!t.n)
            continue;
        ir_region body = f->body;
        f->body = (ir_region){0};
        for (size_t k = 0; k < i; k++)
            ir_append(m, &f->body, body.ops[k]);
        for (size_t k = 0; k < t.n; k++)
            fill(&t, &t.list[k], &f->body);
        for (size_t k = i; k < body.n; k++)
            ir_append(m, &f->body, body.ops[k]);
        break;
    }
    return true;
}

bool pass_turn(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, turn_func, ctx, err);
}
