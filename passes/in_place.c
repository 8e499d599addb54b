/* in_place: the gradient of an edge field takes the place of the field's own values.
 *
 * A walk of the transposed relation meets edges in no order of theirs, so reading w[edge] and writing d_w[edge] are two
 * lines of cache from anywhere in memory for each edge.  When d_w begins as a copy of w, which is made in order, the walk
 * finds the value of the edge where it will write the gradient: one line.  An edge is met in one row only, so nothing is
 * read after it was replaced; what decides that is checked here:
 *   - one number per edge, of one type;
 *   - one store, at the number of the edge, by a walk that stands in the rows themselves, so that it is not repeated for
 *     each tile of the features;
 *   - all reading is at the number of an edge of the row: in that walk before the store, in others in front of the walk.
 *     A walk that does nothing but the store moves behind them.
 * For CPUs: the threads of a team on a GPU read and write one place.  Changes no bit of a result. */
#include "passes/pass_util.h"

#include <string.h>

/* Is this the number of an edge of the walk?  NULL: there is no walk. */
static bool is_edge_number(const ir_func *f, ir_id index, const ir_op *walk) {
    const ir_op *op = ir_at(f, index);
    return walk && op->code == IR_EDGEID && walk->region->n && op->args[0] == walk->region->ops[0] &&
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

/* The same of operations `from` and behind. */
static size_t count_behind(const ir_func *f, const ir_region *r, size_t from, ir_opcode code, uint32_t field) {
    return count(f, &(ir_region){.ops = r->ops + from, .n = r->n - from}, code, field);
}

/* Is all reading of the field at the number of an edge, of the walk that it is in? */
static bool reads_edges(const ir_func *f, const ir_region *r, const ir_op *walk, uint32_t in) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        if (touches(op, IR_LOAD, in) && !is_edge_number(f, op->args[0], walk))
            return false;
        if (op->region && !reads_edges(f, op->region, op->code == IR_EDGES ? op : walk, in))
            return false;
    }
    return true;
}

/* Where in the walk the result is stored at the number of the edge; its end: nowhere. */
static size_t find_store(const ir_func *f, const ir_op *walk, uint32_t out) {
    size_t i = 0;
    while (i < walk->region->n && !touches(ir_at(f, walk->region->ops[i]), IR_STORE, out))
        i++;
    return i < walk->region->n && is_edge_number(f, ir_at(f, walk->region->ops[i])->args[0], walk) ? i
                                                                                                   : walk->region->n;
}

static bool stands_in(const ir_func *f, const ir_region *r, ir_id id) {
    for (size_t i = 0; i < r->n; i++)
        if (r->ops[i] == id || (ir_at(f, r->ops[i])->region && stands_in(f, ir_at(f, r->ops[i])->region, id)))
            return true;
    return false;
}

/* Does the region of this walk touch nothing that other operations write or read, but the result? */
static bool is_apart(const ir_func *f, const ir_op *walk, const ir_region *r, uint32_t out) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        bool var = op->code == IR_READ || op->code == IR_SET || op->code == IR_ACCUM || op->code == IR_COLLAPSE;
        bool result = op->code == IR_STORE || (op->code == IR_LOAD && f->params[ir_int(op, IR_ATTR_FIELD, 0)].begins);
        if ((var && !stands_in(f, walk->region, op->args[0])) || (result && !touches(op, IR_STORE, out)) ||
            (op->region && !is_apart(f, walk, op->region, out)))
            return false;
    }
    return true;
}

/* Reading of `in` may become reading of `out` when walk `at` of the rows stores it; the walk is the last one then. */
static bool replace(const ir_func *f, ir_region *rows, size_t at, uint32_t in, uint32_t out) {
    ir_id id = rows->ops[at];
    const ir_op *walk = ir_at(f, id);
    size_t store = find_store(f, walk, out);
    if (store == walk->region->n || count_behind(f, walk->region, store, IR_LOAD, in) ||
        count(f, rows, IR_LOAD, in) != count(f, &f->body, IR_LOAD, in))
        return false;
    if (!count_behind(f, rows, at + 1, IR_LOAD, in))
        return true;
    if (!is_apart(f, walk, walk->region, out))
        return false;
    memmove(rows->ops + at, rows->ops + at + 1, (rows->n - at - 1) * sizeof *rows->ops);
    rows->ops[rows->n - 1] = id;
    return true;
}

static bool fits(const ir_func *f, uint32_t in, uint32_t out) {
    const ir_param *from = &f->params[in], *to = &f->params[out];
    if (from->role != IR_EDGE_FIELD || from->type.rank || !ir_type_equal(&from->type, &to->type) ||
        !count(f, &f->body, IR_LOAD, in) || count(f, &f->body, IR_STORE, out) != 1 ||
        !reads_edges(f, &f->body, NULL, in))
        return false;
    for (size_t i = 0; i < f->body.n; i++) {
        const ir_op *rows = ir_at(f, f->body.ops[i]);
        for (size_t k = 0; rows->code == IR_ROWS && k < rows->region->n; k++) {
            const ir_op *walk = ir_at(f, rows->region->ops[k]);
            if (walk->code == IR_EDGES && ir_int(walk, IR_ATTR_LANES, 1) == 1 &&
                count(f, walk->region, IR_STORE, out) == 1)
                return replace(f, rows->region, k, in, out);
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
