/* in_place: the gradient of an edge field takes the place of the field's own values.
 *
 * A walk of the transposed relation meets edges in no order of theirs, so reading w[edge] and writing d_w[edge] are two
 * lines of cache from anywhere in memory for each edge.  When d_w begins as a copy of w, which is made in order, the walk
 * finds the value of the edge where it will write the gradient: one line.  Each edge is met once, so nothing is read
 * after it was replaced; what decides that is checked here:
 *   - one number per edge, of one type, the field read and the result written on one walk, not in a loop inside it;
 *   - the walk stands in the rows themselves, so that it is not repeated for each tile of the features;
 *   - all reading of the field comes before the one store, at the number of the edge, and there is none elsewhere.
 * For CPUs: the threads of a team on a GPU read and write one place.  Changes no bit of a result. */
#include "passes/pass_util.h"

static bool is_edge_number(const ir_func *f, ir_id index, const ir_op *walk) {
    const ir_op *op = ir_at(f, index);
    return op->code == IR_EDGEID && walk->region->n && op->args[0] == walk->region->ops[0] &&
           ir_at(f, op->args[0])->code == IR_ARG && !ir_int(ir_at(f, op->args[0]), IR_ATTR_INDEX, 0);
}

static bool touches(const ir_op *op, ir_opcode code, uint32_t field) {
    return op->code == code && ir_int(op, IR_ATTR_FIELD, 0) == (int64_t)field;
}

static size_t count(const ir_func *f, const ir_region *r, ir_opcode code, uint32_t field) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        n += touches(op, code, field) + (op->region ? count(f, op->region, code, field) : 0);
    }
    return n;
}

/* Does this walk hold the one store of `out`, and all loads of `in` in front of it? */
static bool holds_all(const ir_func *f, const ir_op *walk, uint32_t in, uint32_t out) {
    size_t loads = 0;
    for (size_t i = 0; i < walk->region->n; i++) {
        const ir_op *op = ir_at(f, walk->region->ops[i]);
        if ((touches(op, IR_LOAD, in) || touches(op, IR_STORE, out)) && !is_edge_number(f, op->args[0], walk))
            return false;
        loads += touches(op, IR_LOAD, in);
        if (touches(op, IR_STORE, out))
            return loads && loads == count(f, &f->body, IR_LOAD, in) && count(f, &f->body, IR_STORE, out) == 1;
    }
    return false;
}

static bool fits(const ir_func *f, uint32_t in, uint32_t out) {
    const ir_param *from = &f->params[in], *to = &f->params[out];
    if (from->role != IR_EDGE_FIELD || from->type.rank || !ir_type_equal(&from->type, &to->type))
        return false;
    for (size_t i = 0; i < f->body.n; i++) {
        const ir_op *rows = ir_at(f, f->body.ops[i]);
        for (size_t k = 0; rows->code == IR_ROWS && k < rows->region->n; k++) {
            const ir_op *walk = ir_at(f, rows->region->ops[k]);
            if (walk->code == IR_EDGES && ir_int(walk, IR_ATTR_LANES, 1) == 1 && holds_all(f, walk, in, out))
                return true;
        }
    }
    return false;
}

typedef struct pair {
    ir_module *m;
    uint32_t in, out;
} pair;

static void read_result(void *ctx, ir_func *f, ir_region *r, ir_id id) {
    const pair *p = ctx;
    ir_op *op = ir_at(f, id);
    (void)r;
    if (touches(op, IR_LOAD, p->in))
        ir_set_int(p->m, op, IR_ATTR_FIELD, p->out);
}

static bool taken(const ir_func *f, uint32_t in) {
    for (size_t i = 0; i < f->n_params; i++)
        if (f->params[i].begins == in + 1)
            return true;
    return false;
}

static bool place_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    if (ctx->cuda || !ir_transposed(f))
        return true;
    for (uint32_t out = 0; out < f->n_params; out++)
        for (uint32_t in = 0; f->params[out].role == IR_OUT_EDGE && !f->params[out].begins && in < f->n_params; in++) {
            if (taken(f, in) || !fits(f, in, out))
                continue;
            f->params[out].begins = in + 1;
            ir_walk(f, read_result, &(pair){m, in, out});
        }
    return true;
}

bool pass_in_place(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, place_func, ctx, err);
}
