/* The loop-level interpreter: a loop function over all its units, one scalar operation after the other.
 *
 * It judges the lowering, so it is strict: every index is checked against its array, reading a var that was not set is
 * an error, and so is an iteration of `lanes` that reads or overwrites what another iteration of the same `lanes`
 * wrote.  Places and arrays are in ir_interp_place.c. */
#include "ir/ir_interp_loop.h"
#include "ir/ir_private.h"

#include <string.h>

bool ir_loop_fail(ir_loop_run *r, const char *fmt, ...) {
    base_str_addf(r->err, "loop @%s", r->f->name);
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

int64_t ir_loop_int(const ir_loop_run *r, const ir_op *op, uint32_t i) { return r->values[op->args[i]].i; }

static bool run_region(ir_loop_run *r, const ir_region *region);

/* One iteration, with up to three arguments of the region. */
static bool run_body(ir_loop_run *r, const ir_op *loop, int64_t a, int64_t b, int64_t c) {
    const int64_t args[] = {a, b, c};
    for (size_t i = 0; i < loop->region->n && i < 3; i++)
        if (ir_at(r->f, loop->region->ops[i])->code == IR_ARG)
            r->values[loop->region->ops[i]].i = args[i];
    return run_region(r, loop->region);
}

/* ---- loops ---- */
/* Units first .. end-1 in runs; the rows inside go over one of them. */
static bool run_blocks(ir_loop_run *r, const ir_op *op, int64_t block) {
    bool ok = true;
    for (int64_t i = 0; i < r->n_units && ok; i += block) {
        r->first_unit = i;
        r->end_unit = i + block < r->n_units ? i + block : r->n_units;
        r->values[op->region->ops[0]].i = i;
        ok = run_region(r, op->region);
    }
    r->first_unit = 0;
    r->end_unit = r->n_units;
    return ok;
}

static bool run_rows(ir_loop_run *r, const ir_op *op) {
    int64_t step = ir_int(op, IR_ATTR_STEP, 1), rest = ir_int(op, IR_ATTR_REST, 0);
    int64_t block = ir_int(op, IR_ATTR_BLOCK, 0), begin = r->first_unit, end = r->end_unit;
    bool few = r->n_units <= ir_int(op, IR_ATTR_FEW, 0);
    if (block)
        return run_blocks(r, op, block);
    int64_t left = few ? r->n_units % (rest ? rest : step) : 0;
    if (rest)
        begin = end - left;
    else
        end -= left;
    for (int64_t i = begin; i < end; i += step) {
        for (int64_t j = 0; j < step; j++)
            r->values[op->region->ops[j]].i = i + j < r->end_unit ? i + j : r->end_unit - 1;
        if (!run_region(r, op->region))
            return false;
    }
    return true;
}

static bool check_row(ir_loop_run *r, int64_t row) {
    if (!r->call->graph)
        return ir_loop_fail(r, "there is no graph");
    return (row >= 0 && row < r->call->graph->n_dst) ||
           ir_loop_fail(r, "row %lld of %lld", (long long)row, (long long)r->call->graph->n_dst);
}

static bool run_edges(ir_loop_run *r, const ir_op *op) {
    int64_t row = ir_loop_int(r, op, 0);
    if (!check_row(r, row))
        return false;
    const ir_graph_data *g = r->call->graph;
    for (int64_t e = g->offsets[row]; e < g->offsets[row + 1]; e++)
        if (!run_body(r, op, e, g->sources[e], e - g->offsets[row]))
            return false;
    return true;
}

static bool run_range(ir_loop_run *r, const ir_op *op) {
    int64_t begin = ir_loop_int(r, op, 0), end = ir_loop_int(r, op, 1);
    for (int64_t i = begin; i < end; i++)
        if (!run_body(r, op, i, (int64_t)((uint64_t)i - (uint64_t)begin), 0))
            return false;
    return true;
}

static bool run_loop(ir_loop_run *r, const ir_op *op) {
    int64_t n = ir_loop_int(r, op, 0);
    for (int64_t i = 0; i < n; i++)
        if (!run_body(r, op, i, 0, 0))
            return false;
    return true;
}

static bool run_lanes(ir_loop_run *r, const ir_op *op) {
    int64_t n = ir_loop_int(r, op, 0), base = op->n_args > 1 ? ir_loop_int(r, op, 1) : 0;
    uint64_t outer = r->lanes;
    int64_t outer_lane = r->lane;
    r->lanes = ++r->last_lanes;
    bool ok = true;
    for (int64_t l = 0; l < n && ok; l++) {
        r->lane = l;
        ok = run_body(r, op, (int64_t)((uint64_t)base + (uint64_t)l), l, 0);
    }
    r->lanes = outer;
    r->lane = outer_lane;
    return ok;
}

static bool run_tiles(ir_loop_run *r, const ir_op *op) {
    int64_t n = ir_loop_int(r, op, 0), width = ir_int(op, IR_ATTR_WIDTH, 1), outer = r->tile;
    bool ok = true;
    for (int64_t k = 0; k < n && ok; k += r->tile) {
        r->tile = n - k < width ? n - k : width;
        ok = run_body(r, op, k, r->tile, 0);
    }
    r->tile = outer;
    return ok;
}

/* ---- values ---- */
static bool run_source(ir_loop_run *r, const ir_op *op, ir_scalar_value *out) {
    int64_t e = ir_loop_int(r, op, 0);
    if (e != -1 && (!r->call->graph || e < 0 || e >= r->call->graph->n_edges))
        return ir_loop_fail(r, "there is no edge %lld", (long long)e);
    out->i = e == -1 ? -1 : r->call->graph->sources[e];
    return true;
}

static bool run_edgeid(ir_loop_run *r, const ir_op *op, ir_scalar_value *out) {
    int64_t e = ir_loop_int(r, op, 0);
    const ir_graph_data *g = r->call->graph;
    if (!g || e < 0 || e >= g->n_edges)
        return ir_loop_fail(r, "there is no edge %lld", (long long)e);
    out->i = g->edge_of && ir_transposed(r->f) ? g->edge_of[e] : e;
    return true;
}

static bool run_degree(ir_loop_run *r, const ir_op *op, ir_scalar_value *out) {
    int64_t row = ir_loop_int(r, op, 0);
    if (!check_row(r, row))
        return false;
    out->i = r->call->graph->offsets[row + 1] - r->call->graph->offsets[row];
    return true;
}

static bool run_elementwise(ir_loop_run *r, const ir_op *op, ir_scalar_value *out) {
    ir_scalar_value v[3];
    for (uint32_t i = 0; i < op->n_args; i++)
        v[i] = r->values[op->args[i]];
    *out = ir_eval(op->code, ir_at(r->f, op->args[op->code == IR_SELECT])->type.dtype, op->type.dtype, v);
    return true;
}

static int64_t dim_size(const ir_loop_run *r, ir_dim d) {
    return ir_dim_is_sym(d) ? r->call->dims[ir_dim_sym_index(d)] : d;
}

static bool run_op(ir_loop_run *r, ir_id id) {
    const ir_op *op = ir_at(r->f, id);
    ir_scalar_value *out = &r->values[id];
    r->at = id;
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return run_elementwise(r, op, out);
    if (op->code == IR_ARG)
        return true;
    if (op->code == IR_LOAD)
        return ir_loop_load(r, op, out);
    if (op->code == IR_STORE)
        return ir_loop_store(r, op);
    if (op->code == IR_READ)
        return ir_loop_read(r, op, out);
    if (op->code == IR_SET)
        return ir_loop_set(r, op);
    if (op->code == IR_VAR)
        return ir_loop_var(r, id);
    if (op->code == IR_PARTIALS)
        return ir_loop_partials(r, id);
    if (op->code == IR_ACCUM)
        return ir_loop_accum(r, op);
    if (op->code == IR_SOURCE)
        return run_source(r, op, out);
    if (op->code == IR_EDGEID)
        return run_edgeid(r, op, out);
    if (op->code == IR_DEGREE)
        return run_degree(r, op, out);
    if (op->code == IR_ROWS)
        return run_rows(r, op);
    if (op->code == IR_EDGES)
        return run_edges(r, op);
    if (op->code == IR_RANGE)
        return run_range(r, op);
    if (op->code == IR_LOOP)
        return run_loop(r, op);
    if (op->code == IR_LANES)
        return run_lanes(r, op);
    if (op->code == IR_TILES)
        return run_tiles(r, op);
    if (op->code == IR_COLLAPSE)
        *out = ir_loop_collapse(r, op);
    else if (op->code == IR_CONST)
        *out = ir_find_attr(op, IR_ATTR_VALUE)->v;
    else if (op->code == IR_DIMSIZE)
        out->i = dim_size(r, ir_int(op, IR_ATTR_DIM, 0));
    else if (op->code == IR_SLOT)
        out->i = ir_loop_int(r, op, 0) % IR_N_PARTIALS;
    else if (op->code == IR_NUMROWS)
        out->i = r->n_rows;
    else
        return ir_loop_fail(r, "the interpreter does not know this operation");
    return true;
}

static bool run_region(ir_loop_run *r, const ir_region *region) {
    for (size_t i = 0; i < region->n; i++)
        if (!run_op(r, region->ops[i]))
            return false;
    return true;
}

/* ---- parameters ---- */
static int64_t role_size(const ir_loop_run *r, ir_role role) {
    const ir_graph_data *g = r->call->graph;
    switch (role) {
    case IR_SRC:
        return g ? g->n_src : 0;
    case IR_DST:
    case IR_NODE:
        return r->n_rows;
    case IR_EDGE_FIELD:
    case IR_OUT_EDGE:
        return g ? g->n_edges : 0;
    case IR_OUT_ROW:
        return r->n_units;
    case IR_PARAM_FIELD:
    case IR_OUT_PARAM:
    case IR_GRAPH_FIELD:
        return -1;
    }
    return -1;
}

static void bind_arrays(ir_loop_run *r) {
    size_t in = 0, out = 0;
    for (size_t i = 0; i < r->f->n_params; i++) {
        const ir_param *p = &r->f->params[i];
        ir_loop_array *a = &r->arrays[i];
        a->param = p;
        a->data = ir_role_is_out(p->role) ? r->call->out[out++] : (unsigned char *)(uintptr_t)r->call->in[in++];
        int64_t lead = role_size(r, p->role);
        if (lead >= 0)
            a->size[a->rank++] = lead;
        for (uint32_t k = 0; k < p->type.rank; k++)
            a->size[a->rank++] = dim_size(r, p->type.dim[k]);
    }
}

/* Results that begin as fields do so; the data may already be there. */
static void begin_results(ir_loop_run *r) {
    for (size_t i = 0; i < r->f->n_params; i++) {
        const ir_loop_array *a = &r->arrays[i];
        int64_t n = a->param->begins ? 1 : 0;
        for (uint32_t k = 0; k < a->rank; k++)
            n *= a->size[k];
        if (n > 0)
            memcpy(a->data, r->arrays[a->param->begins - 1].data, (size_t)n * ir_dtype_bytes(a->param->type.dtype));
    }
}

static bool check_graph(ir_loop_run *r, const ir_graph_data *g) {
    base_str why = {0};
    bool ok = ir_graph_check(g, r->f->needs_square, &why) || ir_loop_fail(r, "%s", base_str_text(&why));
    base_str_fini(&why);
    return ok;
}

static bool bind_domain(ir_loop_run *r) {
    const ir_graph_data *g = r->call->graph;
    if (g && !check_graph(r, g))
        return false;
    r->n_rows = g && ir_walks(r->f) ? g->n_dst : r->call->n_rows;
    if (r->n_rows < 0)
        return ir_loop_fail(r, "a negative number of rows");
    r->n_units = r->n_rows / r->f->rows_per_unit + (r->n_rows % r->f->rows_per_unit != 0);
    r->end_unit = r->n_units;
    for (size_t i = 0; i < r->f->n_syms; i++)
        if (r->call->dims[i] < 0)
            return ir_loop_fail(r, "dimension %s is negative", r->f->syms[i]);
    return true;
}

bool ir_interpret_loop(const ir_module *m, const ir_func *f, const ir_call_data *call, base_str *err) {
    ir_loop_run r = {.m = m, .f = f, .call = call, .err = err};
    if (f->level != IR_LEVEL_LOOP)
        return ir_loop_fail(&r, "only loop functions can be run here");
    if (!ir_verify_func(m, f, err) || !bind_domain(&r))
        return false;
    r.arrays = base_alloc_zero(f->n_params * sizeof *r.arrays);
    r.values = base_alloc_zero(f->n_ops * sizeof *r.values);
    r.places = base_alloc_zero(f->n_ops * sizeof *r.places);
    bool ok = r.arrays && r.values && r.places;
    if (ok) {
        bind_arrays(&r);
        begin_results(&r);
        ok = run_region(&r, &f->body);
    } else {
        ir_loop_fail(&r, "out of memory");
    }
    ir_loop_places_fini(&r);
    base_free(r.arrays);
    base_free(r.values);
    base_free(r.places);
    return ok;
}
