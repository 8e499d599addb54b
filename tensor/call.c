/* Kernels and programs of modules on tensors. */
#include "tensor/tensor.h"

#include <string.h>

/* An array that the call made, as the memory of a tensor. */
static void release_array(void *owner) {
    tiga_array_free(owner);
    base_free(owner);
}

static tiga_status wrap(tiga_tensors *ts, tiga_array *a, tiga_tensor **out) {
    tiga_array *owner = base_alloc(sizeof *owner);
    if (!owner)
        return tensor_fail(ts, TIGA_E_MEMORY, "tiga_tensor_call: out of memory");
    *owner = *a;
    tiga_status status = tiga_tensor_from_owned(ts, owner, owner, release_array, out);
    if (status != TIGA_OK) {
        base_free(owner);
        return status;
    }
    memset(a, 0, sizeof *a);
    return TIGA_OK;
}

static tiga_status observe(tiga_tensors *ts, const tiga_tensor_binding *in, int n_in, tiga_binding *list) {
    for (int i = 0; i < n_in; i++) {
        const tiga_array *a;
        if (!in[i].tensor || in[i].tensor->ts != ts)
            return tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_call: argument '%s' is no tensor of these",
                               in[i].name ? in[i].name : "");
        tiga_status status = tiga_tensor_data(in[i].tensor, &a);
        if (status != TIGA_OK)
            return status;
        list[i] = (tiga_binding){in[i].name, (tiga_array *)(uintptr_t)a};
    }
    return TIGA_OK;
}

static tiga_status take_results(tiga_tensors *ts, tiga_tensor_binding *results, int n, tiga_array *made,
                                const tiga_call_stats *stats) {
    tiga_status status = TIGA_OK;
    for (int i = 0; i < n && status == TIGA_OK; i++) {
        status = wrap(ts, &made[i], &results[i].tensor);
        if (status == TIGA_OK)
            results[i].tensor->how = (tiga_tensor_execution){.how = TIGA_TENSOR_CALLED,
                                                             .launches = stats->launches,
                                                             .bytes_read = stats->bytes_read,
                                                             .bytes_written = stats->bytes_written};
    }
    for (int i = 0; i < n && status != TIGA_OK; i++) {
        tiga_tensor_free(results[i].tensor);
        results[i].tensor = NULL;
    }
    return status;
}

/* All arguments at once, so that what they share is computed once. */
static tiga_status realize_all(tiga_tensors *ts, const tiga_tensor_binding *in, int n_in) {
    tensor_list l = {0};
    bool ok = true;
    for (int i = 0; ok && i < n_in; i++)
        ok = !in[i].tensor || in[i].tensor->ts != ts || tensor_list_add(&l, in[i].tensor);
    tiga_status status =
        ok ? tiga_tensor_realize(l.v, (int)l.n) : tensor_fail(ts, TIGA_E_MEMORY, "tiga_tensor_call: out of memory");
    tensor_list_fini(&l);
    return status;
}

tiga_status tiga_tensor_call(tiga_tensors *ts, tiga_module *m, const char *name, tiga_graph *const *graphs,
                             int n_graphs, const tiga_tensor_binding *in, int n_in, tiga_tensor_binding *results,
                             int n_results) {
    for (int i = 0; results && i < n_results; i++)
        results[i].tensor = NULL;
    if (!ts || !m || !name || n_in < 0 || n_results < 0 || (n_in && !in) || (n_results && !results))
        return ts ? tensor_fail(ts, TIGA_E_ARGUMENT, "tiga_tensor_call: an argument is NULL, or a count negative")
                  : TIGA_E_ARGUMENT;
    tiga_binding *list = base_alloc_zero((size_t)(n_in + n_results + 1) * sizeof *list);
    tiga_array *made = base_alloc_zero((size_t)(n_results + 1) * sizeof *made);
    tiga_call_stats stats = {0};
    tiga_status status = list && made ? TIGA_OK : tensor_fail(ts, TIGA_E_MEMORY, "tiga_tensor_call: out of memory");
    if (status == TIGA_OK)
        status = realize_all(ts, in, n_in);
    if (status == TIGA_OK)
        status = observe(ts, in, n_in, list);
    for (int i = 0; i < n_results && status == TIGA_OK; i++)
        list[n_in + i] = (tiga_binding){results[i].name, &made[i]};
    if (status == TIGA_OK)
        status = tiga_call_many(ts->ctx, m, name, graphs, n_graphs, list, n_in, list + n_in, n_results, &stats);
    if (status == TIGA_OK)
        status = take_results(ts, results, n_results, made, &stats);
    for (int i = 0; made && i < n_results; i++)
        tiga_array_free(&made[i]);
    base_free(list);
    base_free(made);
    return status;
}
