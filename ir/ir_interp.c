/* The graph-level interpreter: kernels.  Each operation is computed for its whole space, rows or edges, into a dense
 * array [units][features], one scalar after the other through ir_eval.  Slow, obvious, and the judge of everything
 * else; programs are in ir_interp_program.c, reductions over edges and rows in ir_interp_reduce.c. */
#include "ir/ir_interp.h"
#include "ir/ir_private.h"

#include <string.h>

/* ---- memory and errors ---- */
struct ir_heap_block {
    ir_heap_block *older;
    size_t pad; /* keeps the array aligned to 16 */
};

void ir_heap_release(ir_heap *h, const ir_heap_block *keep) {
    while (h->newest != keep) {
        ir_heap_block *b = h->newest;
        h->newest = b->older;
        base_free(b);
    }
}

bool ir_run_fail(ir_run *r, const char *fmt, ...) {
    base_str_addf(r->err, "@%s", r->f->name);
    if (r->at)
        base_str_addf(r->err, ", %%%u (%s)", ir_printed_number(r->f, r->at),
                      ir_op_describe(ir_at(r->f, r->at)->code)->text);
    base_str_add(r->err, ": ");
    va_list ap;
    va_start(ap, fmt);
    base_str_vaddf(r->err, fmt, ap);
    va_end(ap);
    return false;
}

void *ir_run_alloc(ir_run *r, int64_t count, size_t bytes) {
    size_t total;
    ir_heap_block *b = NULL;
    if (count >= 0 && base_mul_size((size_t)count, bytes, &total) && total < SIZE_MAX / 2)
        b = base_alloc_zero(sizeof *b + total);
    if (!b) {
        ir_run_fail(r, "out of memory");
        return NULL;
    }
    b->older = r->heap->newest;
    r->heap->newest = b;
    return b + 1;
}

/* ---- shapes ---- */
int64_t ir_run_dim(const ir_run *r, ir_dim d) { return ir_dim_is_sym(d) ? r->call->dims[ir_dim_sym_index(d)] : d; }

bool ir_run_shape(ir_run *r, const ir_type *t, ir_tensor *out) {
    *out = (ir_tensor){.dtype = t->dtype, .space = t->space, .rank = t->rank, .features = 1};
    out->units = t->space == IR_EDGE ? r->n_edges : t->space == IR_ROW ? r->n_rows : 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        out->size[i] = ir_run_dim(r, t->dim[i]);
        if (__builtin_mul_overflow(out->features, out->size[i], &out->features))
            return ir_run_fail(r, "a value has more elements than can be counted");
    }
    return true;
}

bool ir_run_tensor(ir_run *r, const ir_type *t, ir_tensor *out) {
    int64_t count;
    if (!ir_run_shape(r, t, out))
        return false;
    if (__builtin_mul_overflow(out->units, out->features, &count))
        return ir_run_fail(r, "a value has more elements than can be counted");
    out->data = ir_run_alloc(r, count, ir_dtype_bytes(t->dtype));
    return out->data != NULL;
}

ir_scalar_value ir_run_get(const ir_run *r, const ir_tensor *t, ir_space space, int64_t u, int64_t feature) {
    if (t->space == IR_UNIFORM)
        u = 0;
    else if (t->space == IR_ROW && space == IR_EDGE)
        u = r->row_of_edge[u];
    return ir_load_scalar(t->dtype, t->data, u * t->features + feature);
}

void ir_run_put(const ir_tensor *t, int64_t u, int64_t feature, ir_scalar_value v) {
    ir_store_scalar(t->dtype, t->data, u * t->features + feature, v);
}

int64_t ir_run_stretched(const ir_tensor *t, const ir_tensor *shape, int64_t feature) {
    int64_t at = 0, stride = 1;
    for (uint32_t i = 0; i < shape->rank; i++) { /* from the last axis */
        int64_t size = shape->size[shape->rank - 1 - i], index = feature % size;
        feature /= size;
        if (i >= t->rank)
            continue;
        int64_t own = t->size[t->rank - 1 - i];
        at += (own == 1 ? 0 : index) * stride;
        stride *= own;
    }
    return at;
}

/* ---- operations ---- */
static bool run_elementwise(ir_run *r, const ir_op *op, ir_tensor *out) {
    ir_dtype dtype = ir_at(r->f, op->args[op->code == IR_SELECT])->type.dtype;
    for (int64_t u = 0; u < out->units; u++)
        for (int64_t k = 0; k < out->features; k++) {
            ir_scalar_value v[3];
            for (uint32_t i = 0; i < op->n_args; i++) {
                const ir_tensor *t = &r->values[op->args[i]];
                v[i] = ir_run_get(r, t, out->space, u, ir_run_stretched(t, out, k));
            }
            ir_run_put(out, u, k, ir_eval(op->code, dtype, out->dtype, v));
        }
    return true;
}

static bool run_broadcast(ir_run *r, const ir_op *op, ir_tensor *out) {
    const ir_tensor *t = &r->values[op->args[0]];
    for (int64_t u = 0; u < out->units; u++)
        for (int64_t k = 0; k < out->features; k++)
            ir_run_put(out, u, k, ir_run_get(r, t, out->space, u, ir_run_stretched(t, out, k)));
    return true;
}

/* The same elements in the same order. */
static bool run_newaxis(ir_run *r, const ir_op *op, ir_tensor *out) {
    const ir_tensor *t = &r->values[op->args[0]];
    for (int64_t u = 0; u < out->units; u++)
        for (int64_t k = 0; k < out->features; k++)
            ir_run_put(out, u, k, ir_run_get(r, t, out->space, u, k));
    return true;
}

static bool run_const(const ir_op *op, ir_tensor *out) {
    for (int64_t k = 0; k < out->features; k++)
        ir_run_put(out, 0, k, ir_find_attr(op, IR_ATTR_VALUE)->v);
    return true;
}

/* Arrays by edge are in the order of the graph, whichever way it is walked. */
static int64_t edge_number(const ir_run *r, int64_t e) {
    const int64_t *edge_of = r->call->graph->edge_of;
    return edge_of && ir_transposed(r->f) ? edge_of[e] : e;
}

static bool run_field(ir_run *r, const ir_op *op, ir_tensor *out) {
    const void *array = r->call->in[ir_int(op, IR_ATTR_FIELD, 0)];
    bool at_source = strcmp(ir_word(op, IR_ATTR_AT), "src") == 0;
    bool at_edge = strcmp(ir_word(op, IR_ATTR_AT), "edge") == 0;
    for (int64_t u = 0; u < out->units; u++) {
        int64_t from = at_source ? r->call->graph->sources[u] : at_edge ? edge_number(r, u) : u;
        for (int64_t k = 0; k < out->features; k++)
            ir_run_put(out, u, k, ir_load_scalar(out->dtype, array, from * out->features + k));
    }
    return true;
}

static bool run_degree(ir_run *r, ir_tensor *out) {
    for (int64_t u = 0; u < out->units; u++)
        ir_run_put(out, u, 0, (ir_scalar_value){.i = r->call->graph->offsets[u + 1] - r->call->graph->offsets[u]});
    return true;
}

ir_scalar_value ir_run_tree(ir_kind k, ir_dtype t, ir_scalar_value *p) {
    for (int distance = IR_N_PARTIALS / 2; distance > 0; distance /= 2)
        for (int i = 0; i < distance; i++)
            p[i] = ir_kind_combine(k, t, p[i], p[i + distance]);
    return p[0];
}

/* The element of t at element `kept` of the result and element `folded` of the folded axes. */
static int64_t fold_element(const ir_tensor *t, uint64_t axes, int64_t kept, int64_t folded) {
    int64_t at = 0, stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        int64_t *from = axes >> i & 1 ? &folded : &kept;
        at += *from % t->size[i] * stride;
        *from /= t->size[i];
        stride *= t->size[i];
    }
    return at;
}

static ir_scalar_value fold_some(const ir_run *r, const ir_op *op, ir_space space, int64_t u, const int64_t *at) {
    const ir_tensor *t = &r->values[op->args[0]];
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0);
    ir_kind kind = ir_kind_of(op);
    ir_scalar_value p[IR_N_PARTIALS];
    for (int i = 0; i < IR_N_PARTIALS; i++)
        p[i] = ir_kind_identity(kind, t->dtype);
    for (int64_t n = 0; n < at[2]; n++) {
        ir_scalar_value v = ir_run_get(r, t, space, u, fold_element(t, axes, at[0], at[1] + n));
        p[n % IR_N_PARTIALS] = ir_kind_combine(kind, t->dtype, p[n % IR_N_PARTIALS], v);
    }
    return ir_run_tree(kind, t->dtype, p);
}

/* Over the rows of a program's tensor and perhaps more axes, not over all: row by row as the other axes are folded,
 * the rows like a total that keeps its axes. */
static bool run_fold_rows(ir_run *r, const ir_op *op, ir_tensor *out) {
    const ir_tensor *t = &r->values[op->args[0]];
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0);
    ir_kind kind = ir_kind_of(op);
    int64_t inner = 1, rows = t->size[0];
    for (uint32_t i = 1; i < t->rank; i++)
        inner *= axes >> i & 1 ? t->size[i] : 1;
    for (int64_t k = 0; k < out->features; k++) {
        ir_scalar_value total = ir_kind_identity(kind, t->dtype), block = total;
        for (int64_t row = 0; row < rows; row++) {
            int64_t at[3] = {k, row * inner, inner};
            ir_scalar_value v = axes == 1 ? ir_run_get(r, t, out->space, 0, fold_element(t, axes, k, row))
                                          : fold_some(r, op, out->space, 0, at);
            block = ir_kind_combine(kind, t->dtype, block, v);
            if ((row + 1) % IR_TOTAL_BLOCK && row + 1 < rows)
                continue;
            total = ir_kind_combine(kind, t->dtype, total, block);
            block = ir_kind_identity(kind, t->dtype);
        }
        ir_run_put(out, 0, k, total);
    }
    return true;
}

static bool run_fold(ir_run *r, const ir_op *op, ir_tensor *out) {
    const ir_tensor *t = &r->values[op->args[0]];
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0);
    ir_kind kind = ir_kind_of(op);
    if (r->f->level == IR_LEVEL_PROGRAM && axes + 1 == UINT64_C(1) << t->rank) {
        int64_t rows = t->rank ? t->size[0] : 1, features = 1;
        for (uint32_t i = 1; i < t->rank; i++)
            features *= t->size[i];
        ir_run_put(out, 0, 0, ir_run_total_of(r, kind, t, IR_UNIFORM, rows, features));
        return true;
    }
    if (r->f->level == IR_LEVEL_PROGRAM && axes & 1)
        return run_fold_rows(r, op, out);
    int64_t folded = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        folded *= axes >> i & 1 ? t->size[i] : 1;
    for (int64_t u = 0; u < out->units; u++)
        for (int64_t k = 0; k < out->features; k++)
            ir_run_put(out, u, k, fold_some(r, op, out->space, u, (int64_t[]){k, 0, folded}));
    return true;
}

bool ir_run_op(ir_run *r, ir_id id) {
    const ir_op *op = ir_at(r->f, id);
    ir_tensor *out = &r->values[id];
    r->at = id;
    if (op->code == IR_COMBINE)
        return ir_run_combine(r, op, out);
    if (op->code == IR_GET) { /* of a combine: programs run theirs elsewhere */
        *out = r->values[op->args[0]].members[ir_int(op, IR_ATTR_INDEX, 0)];
        return true;
    }
    if (!ir_run_tensor(r, &op->type, out))
        return false;
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return run_elementwise(r, op, out);
    if (ir_is_shape_op(op->code))
        return ir_run_shape_op(r, op, out);
    if (op->code == IR_CONST)
        return run_const(op, out);
    if (op->code == IR_FIELD)
        return run_field(r, op, out);
    if (op->code == IR_DEGREE)
        return run_degree(r, out);
    if (op->code == IR_BROADCAST)
        return run_broadcast(r, op, out);
    if (op->code == IR_NEWAXIS)
        return run_newaxis(r, op, out);
    if (op->code == IR_FOLD)
        return run_fold(r, op, out);
    if (op->code == IR_REDUCE)
        return ir_run_reduce(r, op, out);
    if (op->code == IR_TOTAL)
        return ir_run_total(r, op, out);
    if (op->code == IR_DIMSIZE) {
        ir_run_put(out, 0, 0, (ir_scalar_value){.i = ir_run_dim(r, ir_int(op, IR_ATTR_DIM, 0))});
        return true;
    }
    return ir_run_fail(r, "the interpreter does not know this operation");
}

/* ---- kernels ---- */
static bool run_ret(ir_run *r, const ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++) {
        const ir_tensor *t = &r->values[op->args[i]];
        ir_tensor out;
        if (!ir_run_shape(r, &r->f->results[i].type, &out))
            return false;
        out.data = r->call->out[i];
        for (int64_t u = 0; u < out.units; u++)
            for (int64_t k = 0; k < out.features; k++)
                ir_run_put(&out, out.space == IR_EDGE ? edge_number(r, u) : u, k, ir_run_get(r, t, out.space, u, k));
    }
    return true;
}

bool ir_graph_check(const ir_graph_data *g, bool square, base_str *why) {
    bool ends =
        g->n_dst >= 0 && g->n_src >= 0 && g->n_edges >= 0 && g->offsets[0] == 0 && g->offsets[g->n_dst] == g->n_edges;
    if (!ends)
        base_str_add(why, "the offsets of the graph do not run from 0 to its number of edges");
    for (int64_t i = 0; ends && i < g->n_dst; i++)
        if (g->offsets[i] > g->offsets[i + 1]) {
            base_str_addf(why, "the offsets of the graph fall at row %lld", (long long)i);
            return false;
        }
    for (int64_t e = 0; ends && e < g->n_edges; e++)
        if (g->sources[e] < 0 || g->sources[e] >= g->n_src) {
            base_str_addf(why, "edge %lld comes from a row that does not exist", (long long)e);
            return false;
        }
    for (int64_t e = 0; ends && g->edge_of && e < g->n_edges; e++)
        if (g->edge_of[e] < 0 || g->edge_of[e] >= g->n_edges) {
            base_str_addf(why, "edge %lld of the transposed relation is none of the graph", (long long)e);
            return false;
        }
    if (ends && square && g->n_dst != g->n_src)
        base_str_add(why, "the graph is not square");
    return ends && (!square || g->n_dst == g->n_src);
}

static bool check_graph(ir_run *r, const ir_graph_data *g) {
    base_str why = {0};
    bool ok = ir_graph_check(g, r->f->needs_square, &why) || ir_run_fail(r, "%s", base_str_text(&why));
    base_str_fini(&why);
    return ok;
}

static bool bind_graph(ir_run *r) {
    const ir_graph_data *g = r->call->graph;
    r->n_rows = r->call->n_rows;
    if (!ir_walks(r->f))
        return r->n_rows >= 0 || ir_run_fail(r, "a negative number of rows");
    if (!g)
        return ir_run_fail(r, "the kernel needs a graph");
    if (!check_graph(r, g))
        return false;
    r->n_rows = g->n_dst;
    r->n_edges = g->n_edges;
    r->row_of_edge = ir_run_alloc(r, g->n_edges, sizeof *r->row_of_edge);
    for (int64_t i = 0; r->row_of_edge && i < g->n_dst; i++)
        for (int64_t e = g->offsets[i]; e < g->offsets[i + 1]; e++)
            r->row_of_edge[e] = i;
    return r->row_of_edge != NULL;
}

static bool check_dims(ir_run *r) {
    for (size_t i = 0; i < r->f->n_syms; i++)
        if (r->call->dims[i] < 0)
            return ir_run_fail(r, "dimension %s is negative", r->f->syms[i]);
    int64_t *computed = ir_run_alloc(r, (int64_t)r->f->n_syms, sizeof *computed);
    if (!computed)
        return false;
    base_copy(computed, r->call->dims, r->f->n_syms * sizeof *computed);
    if (!ir_compute_dims(r->f, computed) ||
        (r->f->n_syms && memcmp(computed, r->call->dims, r->f->n_syms * sizeof *computed)))
        return ir_run_fail(r, "a dimension is not what it is computed from");
    return true;
}

bool ir_run_kernel(const ir_module *m, const ir_func *f, const ir_call_data *call, ir_heap *heap, base_str *err) {
    ir_run r = {.m = m, .f = f, .call = call, .heap = heap, .err = err};
    if (!ir_verify_func(m, f, err) || !check_dims(&r) || !bind_graph(&r))
        return false;
    r.values = ir_run_alloc(&r, f->n_ops, sizeof *r.values);
    if (!r.values)
        return false;
    for (size_t i = 0; i < f->body.n; i++) {
        const ir_op *op = ir_at(f, f->body.ops[i]);
        if (op->code == IR_RET)
            return run_ret(&r, op);
        if (!ir_run_op(&r, f->body.ops[i]))
            return false;
    }
    return ir_run_fail(&r, "the kernel does not return");
}

bool ir_interpret_graph(const ir_module *m, const ir_func *f, const ir_call_data *call, base_str *err) {
    ir_heap heap = {NULL};
    bool ok;
    if (f->level == IR_LEVEL_KERNEL) {
        ok = ir_run_kernel(m, f, call, &heap, err);
    } else {
        ir_run r = {.m = m, .f = f, .call = call, .heap = &heap, .err = err, .n_rows = 1};
        ok = f->level == IR_LEVEL_PROGRAM ? ir_verify_func(m, f, err) && check_dims(&r) && ir_run_program(&r)
                                          : ir_run_fail(&r, "only kernels and programs can be run here");
        ir_run_forget(&r);
    }
    ir_heap_release(&heap, NULL);
    return ok;
}
