/* Results: memory for those that came without, and the rule that no result shares memory with anything else of the
 * call -- a kernel may write a row before another thread reads it. */
#include "hierarchy_runtime/hierarchy_runtime.h"

#include <string.h>

static tiga_status shape_result(hr_frame *f, int i, tiga_array *a) {
    const tiga_field_info *field = &f->fn->results[i];
    int64_t shape[7], axis = hr_axis_size(f, field), n_bytes;
    int rank = 0;
    if (axis >= 0)
        shape[rank++] = axis;
    for (int k = 0; k < field->rank; k++)
        shape[rank++] = hr_dim_value(f, field->shape[k]);
    *a = tiga_array_borrow(NULL, field->dtype, rank, shape);
    return rt_shape_bytes(field->dtype, rank, shape, &n_bytes)
               ? TIGA_OK
               : rt_fail(f->ctx, TIGA_E_MEMORY, "%s: result '%s' is larger than any memory", f->fn->name, field->name);
}

static tiga_status make_result(hr_frame *f, int i) {
    const tiga_field_info *field = &f->fn->results[i];
    tiga_array a;
    tiga_status status = shape_result(f, i, &a);
    if (status != TIGA_OK)
        return status;
    int64_t n_bytes = tiga_array_bytes(&a);
    base_str what = {0};
    base_str_addf(&what, "%s: result '%s'", f->fn->name, field->name);
    const char *text = what.failed ? f->fn->name : base_str_text(&what);
    status = hr_charge(f, n_bytes, text);
    if (status == TIGA_OK) /* not zeroed: every element is written */
        status = rt_mem_take(f->ctx, n_bytes, 1, false, text, &a.data);
    base_str_fini(&what);
    if (status != TIGA_OK)
        return status;
    a.owned = 1;
    *f->results[i] = a;
    f->made[i] = true;
    return TIGA_OK;
}

tiga_status hr_make_results(hr_frame *f) {
    for (int i = 0; i < f->fn->n_results; i++) {
        tiga_status status = f->results[i]->data ? TIGA_OK : make_result(f, i);
        if (status != TIGA_OK)
            return status;
    }
    return TIGA_OK;
}

tiga_status hr_shape_results(hr_frame *f) {
    for (int i = 0; i < f->fn->n_results; i++) {
        tiga_status status = f->results[i]->data ? TIGA_OK : shape_result(f, i, f->results[i]);
        if (status != TIGA_OK)
            return status;
    }
    return TIGA_OK;
}

void hr_drop_results(hr_frame *f) {
    for (int i = 0; f->made && i < f->fn->n_results; i++)
        if (f->made[i])
            tiga_array_free(f->results[i]);
}

static bool overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
    uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 && p < q + (uintptr_t)b_bytes && q < p + (uintptr_t)a_bytes;
}

static bool overlaps_graph(const tiga_array *a, const tiga_csr *g) {
    int64_t n = tiga_array_bytes(a);
    return overlap(a->data, n, g->offsets, (g->n_dst + 1) * 8) ||
           overlap(a->data, n, g->sources, g->n_edges * (g->source_bits / 8));
}

static tiga_status check_one(hr_frame *f, int i) {
    const tiga_array *a = f->results[i];
    const tiga_function_info *fn = f->fn;
    int64_t n = tiga_array_bytes(a);
    const char *other = NULL;
    for (int k = 0; k < fn->n_params && !other; k++)
        if (f->params[k] && overlap(a->data, n, f->params[k]->data, tiga_array_bytes(f->params[k])))
            other = fn->params[k].name;
    for (int k = 0; k < i && !other; k++)
        if (overlap(a->data, n, f->results[k]->data, tiga_array_bytes(f->results[k])))
            other = fn->results[k].name;
    for (int k = 0; k < f->n_graphs && !other; k++)
        if (overlaps_graph(a, &f->graphs[k]->csr))
            other = "the graph";
    if (!other)
        return TIGA_OK;
    return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: result '%s' shares memory with '%s'", fn->name, fn->results[i].name,
                   other);
}

tiga_status hr_check_overlap(hr_frame *f) {
    for (int i = 0; i < f->fn->n_results; i++) {
        tiga_status status = check_one(f, i);
        if (status != TIGA_OK)
            return status;
    }
    return TIGA_OK;
}
