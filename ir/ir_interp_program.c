/* The graph-level interpreter: programs.  A tensor is one unit with all its axes; a call runs the kernel by itself; the
 * arrays a round of `repeat` makes are given back at its end. */
#include "ir/ir_interp.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static bool run_region(ir_run *r, const ir_region *region);
static bool run_program_op(ir_run *r, ir_id id);

static int64_t bytes_of(const ir_tensor *t) { return t->units * t->features * (int64_t)ir_dtype_bytes(t->dtype); }

static bool run_param(ir_run *r, const ir_op *op, ir_tensor *out) {
    if (!ir_run_tensor(r, &op->type, out))
        return false;
    if (bytes_of(out))
        memcpy(out->data, r->call->in[ir_int(op, IR_ATTR_FIELD, 0)], (size_t)bytes_of(out));
    return true;
}

/* ---- calls ---- */
static int64_t *concrete_dims(ir_run *r, const ir_op *op, const ir_func *callee) {
    int64_t *dims = ir_run_alloc(r, (int64_t)callee->n_syms, sizeof *dims);
    base_str why = {0};
    if (dims && !ir_bind_call(r->f, op, callee, dims, &why)) {
        ir_run_fail(r, "%s", base_str_text(&why));
        dims = NULL;
    }
    base_str_fini(&why);
    for (size_t i = 0; dims && i < callee->n_syms; i++)
        dims[i] = ir_run_dim(r, dims[i]);
    return dims;
}

/* The relation seen from the sources; within a source the edges stand in the order of the graph. */
static const ir_graph_data *transpose(ir_run *r, const ir_graph_data *g) {
    ir_graph_data *t = ir_run_alloc(r, 1, sizeof *t);
    int64_t *offsets = ir_run_alloc(r, g->n_src + 2, sizeof *offsets);
    int64_t *sources = ir_run_alloc(r, g->n_edges, sizeof *sources);
    int64_t *edge_of = ir_run_alloc(r, g->n_edges, sizeof *edge_of);
    if (!t || !offsets || !sources || !edge_of)
        return NULL;
    for (int64_t e = 0; e < g->n_edges; e++)
        offsets[g->sources[e] + 2]++;
    for (int64_t i = 2; i <= g->n_src; i++)
        offsets[i + 1] += offsets[i];
    for (int64_t i = 0; i < g->n_dst; i++)
        for (int64_t e = g->offsets[i]; e < g->offsets[i + 1]; e++) {
            int64_t at = offsets[g->sources[e] + 1]++;
            sources[at] = i;
            edge_of[at] = e;
        }
    *t = (ir_graph_data){g->n_src, g->n_dst, g->n_edges, offsets, sources, edge_of};
    return t;
}

/* The tensors of a call's results; their sizes are those of the callee, with its axis of rows or edges in front. */
static bool result_tensors(ir_run *r, const ir_func *callee, const ir_call_data *call, ir_tensor *members, void **out) {
    ir_run inner = *r;
    inner.f = callee;
    inner.call = call;
    inner.at = 0;
    inner.n_rows = ir_walks(callee) ? call->graph->n_dst : call->n_rows;
    inner.n_edges = call->graph ? call->graph->n_edges : 0;
    for (size_t i = 0; i < callee->n_results; i++) {
        ir_tensor *t = &members[i];
        if (!ir_run_tensor(&inner, &callee->results[i].type, t))
            return false;
        out[i] = t->data;
        t->features *= t->units; /* the caller sees one unit; its own type gives the axes */
        t->units = 1;
        t->space = IR_UNIFORM;
    }
    return true;
}

static void set_axes(ir_run *r, const ir_type *type, ir_tensor *t) {
    t->rank = type->rank;
    for (uint32_t i = 0; i < type->rank; i++)
        t->size[i] = ir_run_dim(r, type->dim[i]);
}

static bool run_call(ir_run *r, const ir_op *op, ir_tensor *out) {
    const ir_func *callee = ir_func_find(r->m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_KERNEL);
    int64_t graph = ir_int(op, IR_ATTR_GRAPH, -1);
    if (!callee)
        return ir_run_fail(r, "there is no kernel @%s", ir_word(op, IR_ATTR_CALLEE));
    ir_call_data call = {.dims = concrete_dims(r, op, callee)};
    const void **in = ir_run_alloc(r, op->n_args, sizeof *in);
    void **results = ir_run_alloc(r, (int64_t)callee->n_results, sizeof *results);
    ir_tensor *members = ir_run_alloc(r, (int64_t)callee->n_results, sizeof *members);
    if (!call.dims || !in || !results || !members)
        return false;
    for (uint32_t i = 0; i < op->n_args; i++)
        in[i] = r->values[op->args[i]].data;
    call.in = in;
    call.out = results;
    call.graph = graph >= 0 ? r->call->graphs[graph] : NULL;
    if (graph >= 0 && ir_transposed(callee) && !(call.graph = transpose(r, call.graph)))
        return false;
    call.n_rows = graph >= 0 ? call.graph->n_dst : ir_run_dim(r, ir_int(op, IR_ATTR_DIM, 0));
    if (!result_tensors(r, callee, &call, members, results) || !ir_run_kernel(r->m, callee, &call, r->heap, r->err))
        return false;
    *out = (ir_tensor){.dtype = IR_TUPLE, .members = members, .n_members = callee->n_results};
    if (callee->n_results == 1) {
        *out = members[0];
        set_axes(r, &op->type, out);
    }
    return true;
}

/* ---- repeat ---- */
static bool copy_tensor(ir_run *r, const ir_tensor *from, ir_tensor *to) {
    *to = *from;
    to->data = ir_run_alloc(r, from->units * from->features, ir_dtype_bytes(from->dtype));
    if (to->data && bytes_of(from))
        memcpy(to->data, from->data, (size_t)bytes_of(from));
    return to->data != NULL;
}

/* All values of the yield are copied aside before the first carried one changes: they may be each other's. */
static bool carry(ir_run *r, const ir_op *yield, ir_tensor *carried) {
    ir_tensor *aside = ir_run_alloc(r, yield->n_args, sizeof *aside);
    for (uint32_t i = 0; i < yield->n_args; i++)
        if (!aside || !copy_tensor(r, &r->values[yield->args[i]], &aside[i]))
            return false;
    for (uint32_t i = 0; i < yield->n_args; i++)
        if (bytes_of(&aside[i]))
            memcpy(carried[i].data, aside[i].data, (size_t)bytes_of(&aside[i]));
    return aside != NULL;
}

/* A `while` that ends the repeat leaves the carried values as they were. */
static bool run_round(ir_run *r, const ir_region *region, ir_tensor *carried, uint32_t n, bool *go_on) {
    for (uint32_t i = 0; i < n; i++) {
        r->values[region->ops[i]] = carried[i];
        set_axes(r, &ir_at(r->f, region->ops[i])->type, &r->values[region->ops[i]]);
    }
    for (size_t i = 0; i < region->n && *go_on; i++) {
        const ir_op *op = ir_at(r->f, region->ops[i]);
        if (op->code == IR_WHILE)
            *go_on = ir_run_get(r, &r->values[op->args[0]], IR_UNIFORM, 0, 0).i != 0;
        else if (!run_program_op(r, region->ops[i]))
            return false;
    }
    return !*go_on || carry(r, ir_at(r->f, region->ops[region->n - 1]), carried);
}

static bool run_repeat(ir_run *r, const ir_op *op, ir_tensor *out) {
    uint32_t n = op->n_args - 1;
    int64_t rounds = ir_run_get(r, &r->values[op->args[0]], IR_UNIFORM, 0, 0).i;
    ir_tensor *carried = ir_run_alloc(r, n, sizeof *carried);
    for (uint32_t i = 0; i < n; i++)
        if (!carried || !copy_tensor(r, &r->values[op->args[i + 1]], &carried[i]))
            return false;
    const ir_heap_block *keep = r->heap->newest;
    bool go_on = true;
    for (int64_t round = 0; round < rounds && go_on; round++) {
        if (!run_round(r, op->region, carried, n, &go_on))
            return false;
        ir_heap_release(r->heap, keep);
    }
    *out = (ir_tensor){.dtype = IR_TUPLE, .members = carried, .n_members = n};
    return carried != NULL;
}

/* ---- the stack: kept apart from the heap, of which every round gives back what it made ---- */
typedef struct ir_saved {
    struct ir_saved *below;
    int64_t bytes;
    max_align_t data[];
} ir_saved;

static bool run_push(ir_run *r, const ir_op *op) {
    const ir_tensor *t = &r->values[op->args[0]];
    ir_saved *s = base_alloc(sizeof *s + (size_t)bytes_of(t));
    if (!s)
        return ir_run_fail(r, "out of memory");
    *s = (ir_saved){.below = r->saved, .bytes = bytes_of(t)};
    if (s->bytes)
        memcpy(s->data, t->data, (size_t)s->bytes);
    r->saved = s;
    return true;
}

static bool run_pop(ir_run *r, const ir_op *op, ir_tensor *out) {
    ir_saved *s = r->saved;
    if (!ir_run_tensor(r, &op->type, out))
        return false;
    if (!s || s->bytes != bytes_of(out))
        return ir_run_fail(r, s ? "what was pushed is of another size" : "the stack is empty");
    if (s->bytes)
        memcpy(out->data, s->data, (size_t)s->bytes);
    r->saved = s->below;
    base_free(s);
    return true;
}

void ir_run_forget(ir_run *r) {
    while (r->saved) {
        ir_saved *s = r->saved;
        r->saved = s->below;
        base_free(s);
    }
}

/* ---- if ---- */
static bool run_if(ir_run *r, const ir_op *op, ir_tensor *out) {
    bool first = ir_run_get(r, &r->values[op->args[0]], IR_UNIFORM, 0, 0).i != 0;
    const ir_region *arm = ir_at(r->f, op->region->ops[first ? 0 : 1])->region;
    if (!run_region(r, arm))
        return false;
    const ir_op *yield = ir_at(r->f, arm->ops[arm->n - 1]);
    ir_tensor *members = ir_run_alloc(r, yield->n_args, sizeof *members);
    for (uint32_t i = 0; members && i < yield->n_args; i++)
        members[i] = r->values[yield->args[i]];
    *out = (ir_tensor){.dtype = IR_TUPLE, .members = members, .n_members = yield->n_args};
    return members != NULL;
}

/* ---- the whole ---- */
static bool run_get(ir_run *r, const ir_op *op, ir_tensor *out) {
    *out = r->values[op->args[0]].members[ir_int(op, IR_ATTR_INDEX, 0)];
    set_axes(r, &op->type, out);
    return true;
}

static bool run_ret(ir_run *r, const ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++) {
        const ir_tensor *t = &r->values[op->args[i]];
        if (bytes_of(t))
            memcpy(r->call->out[i], t->data, (size_t)bytes_of(t));
    }
    return true;
}

static bool run_program_op(ir_run *r, ir_id id) {
    const ir_op *op = ir_at(r->f, id);
    r->at = id;
    if (op->code == IR_PARAM)
        return run_param(r, op, &r->values[id]);
    if (op->code == IR_CALL)
        return run_call(r, op, &r->values[id]);
    if (op->code == IR_GET)
        return run_get(r, op, &r->values[id]);
    if (op->code == IR_REPEAT)
        return run_repeat(r, op, &r->values[id]);
    if (op->code == IR_PUSH)
        return run_push(r, op);
    if (op->code == IR_POP)
        return run_pop(r, op, &r->values[id]);
    if (op->code == IR_IF)
        return run_if(r, op, &r->values[id]);
    if (op->code == IR_RET)
        return run_ret(r, op);
    if (op->code == IR_GRAD)
        return ir_run_fail(r, "gradients are computed by the code that the pass grad puts in its place");
    if (op->code == IR_YIELD || op->code == IR_ARG)
        return true; /* by run_round, run_if */
    return ir_run_op(r, id);
}

static bool run_region(ir_run *r, const ir_region *region) {
    for (size_t i = 0; i < region->n; i++)
        if (!run_program_op(r, region->ops[i]))
            return false;
    return true;
}

/* The sizes of graph parameter g are the symbols g.dst, g.src and g.edge. */
static bool check_graph_sizes(ir_run *r, size_t param) {
    const ir_graph_data *g = r->call->graphs[param];
    const int64_t sizes[] = {g->n_dst, g->n_src, g->n_edges};
    static const char *const names[] = {"dst", "src", "edge"};
    for (int i = 0; i < 3; i++) {
        uint32_t sym;
        if (ir_graph_sym(r->f, r->f->params[param].name, names[i], &sym) && r->call->dims[sym] != sizes[i])
            return ir_run_fail(r, "%s is %lld, but the graph has %lld", r->f->syms[sym], (long long)r->call->dims[sym],
                               (long long)sizes[i]);
    }
    return !r->f->needs_square || g->n_dst == g->n_src || ir_run_fail(r, "the graph is not square");
}

static bool check_same_sizes(ir_run *r) {
    for (size_t i = 0; i < r->f->n_same; i++) {
        uint32_t a = r->f->same[i].of, b = r->f->same[i].is;
        if (r->call->dims[a] != r->call->dims[b])
            return ir_run_fail(r, "%s is %lld, but %s is %lld, and they are the same here", r->f->syms[a],
                               (long long)r->call->dims[a], r->f->syms[b], (long long)r->call->dims[b]);
    }
    return true;
}

bool ir_run_program(ir_run *r) {
    for (size_t i = 0; i < r->f->n_params; i++) {
        bool is_graph = r->f->params[i].role == IR_GRAPH_FIELD;
        if (is_graph && (!r->call->graphs || !r->call->graphs[i]))
            return ir_run_fail(r, "graph '%s' is missing", r->f->params[i].name);
        if (is_graph && !check_graph_sizes(r, i))
            return false;
    }
    if (!check_same_sizes(r))
        return false;
    r->values = ir_run_alloc(r, r->f->n_ops, sizeof *r->values);
    return r->values && run_region(r, &r->f->body);
}
