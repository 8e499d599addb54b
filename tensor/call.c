/* Kernels and programs of modules on tensors.  The memory of results is made here, so that it is charged like that of all
 * tensors, and before it is there. */
#include "tensor/tensor.h"

typedef struct calling {
    tiga_tensors *ts;
    tiga_module *m;
    const char *name;
    tiga_graph *const *graphs;
    int n_graphs;
    const tiga_tensor_binding *in;
    int n_in, n_pinned;
    tiga_tensor_binding *results;
    int n_results;
    tiga_binding *list; /* arguments, then results */
    tiga_array *made; /* [n_results] */
    tensor_buffer **memory; /* [n_results] */
    tensor_called *called; /* where a gradient may be asked for */
    tiga_tensor **args; /* [n_in], then */
    void *block;
} calling;

static tiga_status take_lists(calling *c) {
    size_t n_in = (size_t)c->n_in, n_out = (size_t)c->n_results;
    c->block = base_alloc_zero((n_in + n_out + 1) * sizeof *c->list + n_out * (sizeof *c->made + sizeof *c->memory));
    if (!c->block)
        return tensor_fail(c->ts, TIGA_E_MEMORY, "tiga_tensor_call: out of memory");
    c->list = c->block;
    c->made = (void *)(c->list + n_in + n_out + 1);
    c->memory = (void *)(c->made + n_out);
    return TIGA_OK;
}

/* All arguments at once, so that what they share is computed once. */
static tiga_status compute_all(const calling *c) {
    tensor_list l = {0};
    bool ok = true;
    for (int i = 0; ok && i < c->n_in; i++)
        ok = !c->in[i].tensor || c->in[i].tensor->ts != c->ts || tensor_list_add(&l, c->in[i].tensor);
    tiga_status status = !ok   ? tensor_fail(c->ts, TIGA_E_MEMORY, "tiga_tensor_call: out of memory")
                         : l.n ? tensor_compute(l.v, (int)l.n)
                               : TIGA_OK;
    tensor_list_fini(&l);
    return status;
}

static tiga_status pin_arguments(calling *c) {
    for (; c->n_pinned < c->n_in; c->n_pinned++) {
        const tiga_tensor_binding *in = &c->in[c->n_pinned];
        const tiga_array *a;
        if (!in->tensor || in->tensor->ts != c->ts)
            return tensor_fail(c->ts, TIGA_E_ARGUMENT, "tiga_tensor_call: argument '%s' is no tensor of these",
                               in->name ? in->name : "");
        tiga_status status = tiga_tensor_pin(in->tensor, &a);
        if (status != TIGA_OK)
            return status;
        c->list[c->n_pinned] = (tiga_binding){in->name, (tiga_array *)(uintptr_t)a};
    }
    return TIGA_OK;
}

/* Of sizes that only the function knows. */
static tiga_status make_results(calling *c) {
    for (int i = 0; i < c->n_results; i++)
        c->list[c->n_in + i] = (tiga_binding){c->results[i].name, &c->made[i]};
    tiga_status status = tiga_call_shapes(c->ts->ctx, c->m, c->name, c->graphs, c->n_graphs, c->list, c->n_in,
                                          c->list + c->n_in, c->n_results);
    for (int i = 0; i < c->n_results && status == TIGA_OK; i++) {
        status = tensor_buffer_new(c->ts, tiga_array_bytes(&c->made[i]), &c->memory[i]);
        c->made[i].data = status == TIGA_OK ? c->memory[i]->data : NULL;
    }
    return status;
}

/* Before the call is made, so that nothing is computed in vain. */
static tiga_status remember(calling *c) {
    bool watched = false;
    for (int i = 0; i < c->n_in; i++)
        watched |= c->in[i].tensor->watched;
    if (!watched)
        return TIGA_OK;
    c->args = base_alloc((size_t)c->n_in * sizeof *c->args);
    for (int i = 0; c->args && i < c->n_in; i++)
        c->args[i] = c->in[i].tensor;
    c->called = c->args ? tensor_called_new(c->m, c->name, c->graphs, c->n_graphs, c->in, c->n_in) : NULL;
    for (int i = 0; c->called && i < c->n_results; i++)
        tensor_called_made(c->called, c->results[i].name, &c->made[i]);
    return c->called ? TIGA_OK : tensor_fail(c->ts, TIGA_E_MEMORY, "tiga_tensor_call: out of memory");
}

static tiga_status take_result(calling *c, int i, const tiga_call_stats *stats) {
    const tiga_array *a = &c->made[i];
    tiga_tensor *x = NULL;
    if (c->called && ir_dtype_has_gradient((ir_dtype)a->dtype)) {
        tiga_status status = tensor_called_result(c->called, c->results[i].name, c->args, &x);
        if (status != TIGA_OK)
            return status;
    } else {
        x = tensor_new(c->ts, TENSOR_REAL, a->dtype, a->rank, a->shape);
    }
    if (!x)
        return TIGA_E_MEMORY;
    x->buffer = c->memory[i];
    c->memory[i] = NULL;
    tensor_unpin(x);
    tensor_dense_strides(x);
    x->how = (tiga_tensor_execution){.how = TIGA_TENSOR_CALLED,
                                     .launches = stats->launches,
                                     .bytes_read = stats->bytes_read,
                                     .bytes_written = stats->bytes_written};
    c->results[i].tensor = x;
    return TIGA_OK;
}

static tiga_status call(calling *c) {
    tiga_call_stats stats = {0};
    tiga_status status = take_lists(c);
    if (status == TIGA_OK)
        status = compute_all(c);
    if (status == TIGA_OK)
        status = pin_arguments(c);
    if (status == TIGA_OK)
        status = make_results(c);
    if (status == TIGA_OK)
        status = remember(c);
    if (status == TIGA_OK)
        status = tiga_call_many(c->ts->ctx, c->m, c->name, c->graphs, c->n_graphs, c->list, c->n_in, c->list + c->n_in,
                                c->n_results, &stats);
    for (int i = 0; i < c->n_results && status == TIGA_OK; i++)
        status = take_result(c, i, &stats);
    return status;
}

static void call_fini(calling *c, bool failed) {
    for (int i = 0; i < c->n_pinned; i++)
        tiga_tensor_unpin(c->in[i].tensor);
    for (int i = 0; c->block && i < c->n_results; i++)
        tensor_buffer_put(c->memory[i]);
    for (int i = 0; failed && i < c->n_results; i++) {
        tensor_free(c->results[i].tensor);
        c->results[i].tensor = NULL;
    }
    tensor_called_put(c->called);
    base_free(c->args);
    base_free(c->block);
}

tiga_status tiga_tensor_call(tiga_tensors *ts, tiga_module *m, const char *name, tiga_graph *const *graphs,
                             int n_graphs, const tiga_tensor_binding *in, int n_in, tiga_tensor_binding *results,
                             int n_results) {
    TENSOR_TURN(ts);
    for (int i = 0; results && i < n_results; i++)
        results[i].tensor = NULL;
    if (!ts || !m || !name || n_in < 0 || n_results < 0 || (n_in && !in) || (n_results && !results))
        return ts ? tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_call: an argument is NULL, or a count negative")
                  : TIGA_E_ARGUMENT;
    calling c = {.ts = ts,
                 .m = m,
                 .name = name,
                 .graphs = graphs,
                 .n_graphs = n_graphs,
                 .in = in,
                 .n_in = n_in,
                 .results = results,
                 .n_results = n_results};
    tiga_status status = call(&c);
    call_fini(&c, status != TIGA_OK);
    return status;
}
