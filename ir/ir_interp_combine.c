/* `combine` in the graph-level interpreter: the region is run for one pair of states after the other.
 *
 * With {lanes = 16} there are 16 partial states, edge n of the row goes to state n mod 16, and they are combined by
 * distance 8, 4, 2, 1; otherwise one state takes the edges in order.
 *
 * With {scan = 1} the members are per edge: the state that the edge meets.  With {reverse = 1} it comes from the edges
 * behind, the last one first. */
#include "ir/ir_interp.h"

#include <string.h>

typedef struct states { /* of one row */
    ir_run inner;    /* sees one edge: the region's arguments are values of that edge */
    const ir_op *op;
    uint32_t n;
    ir_tensor *left; /* [16][n] */
    ir_tensor *next; /* [n] */
} states;

static ir_tensor *new_states(states *s, ir_run *r, uint32_t count) {
    ir_tensor *list = ir_run_alloc(r, (int64_t)count * s->n, sizeof *list);
    for (uint32_t i = 0; list && i < count * s->n; i++) {
        ir_type t = ir_at(r->f, s->op->args[i % s->n])->type;
        t.space = IR_EDGE;
        if (!ir_run_tensor(&s->inner, &t, &list[i]))
            return NULL;
    }
    return list;
}

static bool begin(states *s, ir_run *r, const ir_op *op) {
    *s = (states){.inner = *r, .op = op, .n = op->n_args / 2};
    s->inner.n_edges = s->inner.n_rows = 1;
    s->inner.row_of_edge = ir_run_alloc(r, 1, sizeof(int64_t));
    s->inner.values = ir_run_alloc(r, r->f->n_ops, sizeof *r->values);
    if (!s->inner.row_of_edge || !s->inner.values)
        return false;
    memcpy(s->inner.values, r->values, r->f->n_ops * sizeof *r->values);
    s->left = new_states(s, r, IR_N_PARTIALS);
    s->next = new_states(s, r, 1);
    return s->left && s->next;
}

static void to_start(states *s, int64_t row) {
    for (uint32_t i = 0; i < IR_N_PARTIALS * s->n; i++)
        for (int64_t k = 0; k < s->left[i].features; k++) {
            const ir_tensor *start = &s->inner.values[s->op->args[i % s->n]];
            ir_run_put(&s->left[i], 0, k, ir_run_get(&s->inner, start, IR_ROW, row, k));
        }
}

/* All values of the new state are known before the first of the old one is overwritten. */
static void take_yield(states *s, ir_tensor *left, const ir_op *yield) {
    for (uint32_t v = 0; v < s->n; v++)
        for (int64_t k = 0; k < left[v].features; k++)
            ir_run_put(&s->next[v], 0, k, ir_run_get(&s->inner, &s->inner.values[yield->args[v]], IR_EDGE, 0, k));
    for (uint32_t v = 0; v < s->n; v++)
        memcpy(left[v].data, s->next[v].data, (size_t)left[v].features * ir_dtype_bytes(left[v].dtype));
}

/* left = combine(left, right), one tensor of one unit per value */
static bool combine(states *s, ir_tensor *left, const ir_tensor *right) {
    ir_run *r = &s->inner;
    ir_heap_block *keep = r->heap->newest;
    for (size_t i = 0; i < s->op->region->n; i++) {
        ir_id id = s->op->region->ops[i];
        const ir_op *op = ir_at(r->f, id);
        int64_t index = ir_int(op, IR_ATTR_INDEX, 0);
        if (op->code == IR_ARG)
            r->values[id] = index < s->n ? left[index] : right[index - s->n];
        else if (op->code == IR_YIELD)
            take_yield(s, left, op);
        else if (!ir_run_op(r, id))
            return false;
    }
    ir_heap_release(r->heap, keep);
    return true;
}

/* What edge e brings: a view of the values lifted. */
static void lifted(const ir_run *r, const states *s, int64_t e, ir_tensor *right) {
    for (uint32_t v = 0; v < s->n; v++) {
        const ir_tensor *t = &r->values[s->op->args[s->n + v]];
        int64_t unit = t->space == IR_EDGE ? e : t->space == IR_ROW ? r->row_of_edge[e] : 0;
        right[v] = *t;
        right[v].space = IR_EDGE;
        right[v].units = 1;
        right[v].data = (unsigned char *)t->data + (size_t)(unit * t->features) * ir_dtype_bytes(t->dtype);
    }
}

static bool run_row(ir_run *r, states *s, bool lanes, int64_t row, ir_tensor *right) {
    const int64_t *offsets = r->call->graph->offsets;
    to_start(s, row);
    for (int64_t e = offsets[row]; e < offsets[row + 1]; e++) {
        lifted(r, s, e, right);
        if (!combine(s, s->left + (lanes ? (e - offsets[row]) % IR_N_PARTIALS : 0) * s->n, right))
            return false;
    }
    for (int d = IR_N_PARTIALS / 2; lanes && d > 0; d /= 2)
        for (int i = 0; i < d; i++)
            if (!combine(s, s->left + (uint32_t)i * s->n, s->left + (uint32_t)(i + d) * s->n))
                return false;
    return true;
}

static void keep(const states *s, ir_tensor *members, int64_t unit) {
    for (uint32_t v = 0; v < s->n; v++)
        for (int64_t k = 0; k < members[v].features; k++)
            ir_run_put(&members[v], unit, k, ir_load_scalar(s->left[v].dtype, s->left[v].data, k));
}

/* As run_row, and every edge keeps what it meets. */
static bool scan_row(ir_run *r, states *s, int64_t row, ir_tensor *right, ir_tensor *members) {
    const int64_t *offsets = r->call->graph->offsets;
    int64_t first = offsets[row], n = offsets[row + 1] - first;
    bool reverse = ir_int(s->op, IR_ATTR_REVERSE, 0) != 0;
    to_start(s, row);
    for (int64_t i = 0; i < n; i++) {
        int64_t e = first + (reverse ? n - 1 - i : i);
        keep(s, members, e);
        lifted(r, s, e, right);
        if (!combine(s, s->left, right))
            return false;
    }
    return true;
}

bool ir_run_combine(ir_run *r, const ir_op *op, ir_tensor *out) {
    states s;
    ir_tensor *members = ir_run_alloc(r, op->n_args / 2, sizeof *members);
    ir_tensor *right = ir_run_alloc(r, op->n_args / 2, sizeof *right);
    if (!members || !right || !begin(&s, r, op))
        return false;
    for (uint32_t v = 0; v < s.n; v++) {
        ir_type t = ir_at(r->f, op->args[v])->type;
        t.space = ir_is_scan(op) ? IR_EDGE : IR_ROW;
        if (!ir_run_tensor(r, &t, &members[v]))
            return false;
    }
    bool lanes = ir_int(op, IR_ATTR_LANES, 1) == IR_N_PARTIALS;
    for (int64_t row = 0; row < r->n_rows; row++) {
        bool done = ir_is_scan(op) ? scan_row(r, &s, row, right, members) : run_row(r, &s, lanes, row, right);
        if (!done)
            return false;
        if (!ir_is_scan(op))
            keep(&s, members, row);
    }
    *out = (ir_tensor){.dtype = IR_TUPLE, .members = members, .n_members = s.n};
    return true;
}
