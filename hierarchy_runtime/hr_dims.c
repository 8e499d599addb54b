/* Sizes.  Dimensions named after a graph come from it; the others from the arguments, each of which must agree; what no
 * argument shows may still be read off a result that was given with memory.  A dimension called "D+K" is computed from the
 * others when all are known, and what arrays have shown of it has to be that; where one of the others is shown by nothing
 * else, it follows from that. */
#include "hierarchy_runtime/hierarchy_runtime.h"

#include <string.h>

int64_t hr_dim_value(const hr_frame *f, int64_t entry) { return entry >= 0 ? entry : f->dims[-1 - entry]; }

static const tiga_csr *graph_of(const hr_frame *f, const tiga_field_info *field) {
    if (!f->fn->is_program)
        return f->graph_of[0];
    return field->graph >= 0 && field->graph < f->fn->n_params ? f->graph_of[field->graph] : NULL;
}

int64_t hr_axis_size(const hr_frame *f, const tiga_field_info *field) {
    const tiga_csr *g = graph_of(f, field);
    if (!g)
        return -1;
    switch (field->at) {
    case TIGA_AT_SRC:
        return g->n_src;
    case TIGA_AT_DST:
    case TIGA_AT_NODE: /* the graph is square */
        return g->n_dst;
    case TIGA_AT_EDGE:
        return g->n_edges;
    default:
        return -1;
    }
}

/* ---- words ---- */
static void add_axis_name(const hr_frame *f, base_str *s, const tiga_field_info *field) {
    static const char *const axes[] = {
        [TIGA_AT_SRC] = "src", [TIGA_AT_DST] = "dst", [TIGA_AT_NODE] = "node", [TIGA_AT_EDGE] = "edge"};
    const char *axis = axes[field->at];
    if (f->fn->is_program)
        base_str_addf(s, "%s.%s", f->fn->params[field->graph].name, axis);
    else
        base_str_addf(s, "n_%s", axis);
}

/* "f32[n_src = 5, F = 16]" */
static void add_expected(const hr_frame *f, base_str *s, const tiga_field_info *field) {
    int64_t axis = hr_axis_size(f, field);
    base_str_add(s, tiga_dtype_text(field->dtype));
    if (axis >= 0) {
        base_str_add(s, "[");
        add_axis_name(f, s, field);
        base_str_addf(s, " = %lld", (long long)axis);
    }
    for (int i = 0; i < field->rank; i++) {
        int64_t entry = field->shape[i], value = hr_dim_value(f, entry);
        base_str_add(s, i || axis >= 0 ? ", " : "[");
        if (entry < 0)
            base_str_addf(s, value < 0 ? "%s" : "%s = ", f->fn->dims[-1 - entry]);
        if (value >= 0)
            base_str_addf(s, "%lld", (long long)value);
    }
    if (axis >= 0 || field->rank > 0)
        base_str_add(s, "]");
}

static tiga_status fail_shape(hr_frame *f, const tiga_field_info *field, const tiga_array *a, bool result) {
    base_str expected = {0}, given = {0};
    add_expected(f, &expected, field);
    rt_shape_text(&given, a->dtype, a->rank, a->shape);
    const char *from = NULL, *dim = NULL;
    int skip = hr_axis_size(f, field) >= 0;
    for (int i = 0; i < field->rank && a->rank == skip + field->rank && !from; i++)
        if (field->shape[i] < 0 && hr_dim_value(f, field->shape[i]) != a->shape[skip + i]) {
            from = f->dim_from[-1 - field->shape[i]];
            dim = f->fn->dims[-1 - field->shape[i]];
        }
    tiga_status status = rt_fail(f->ctx, TIGA_E_TYPE, "%s: %s '%s' (%s): expected %s, got %s%s%s%s%s%s", f->fn->name,
                                 result ? "result" : "argument", field->name, field->text, base_str_text(&expected),
                                 base_str_text(&given), from ? "; " : "", from ? dim : "", from ? " is that of '" : "",
                                 from ? from : "", from ? "'" : "");
    base_str_fini(&expected);
    base_str_fini(&given);
    return status;
}

static tiga_status fail_size(hr_frame *f, const tiga_field_info *field, const tiga_array *a, bool result) {
    base_str given = {0};
    rt_shape_text(&given, a->dtype, a->rank, a->shape);
    tiga_status status =
        rt_fail(f->ctx, TIGA_E_TYPE, "%s: %s '%s' (%s): %s has more bytes than a size can tell", f->fn->name,
                result ? "result" : "argument", field->name, field->text, base_str_text(&given));
    base_str_fini(&given);
    return status;
}

/* ---- checks ---- */
tiga_status hr_check_array(hr_frame *f, const tiga_field_info *field, const tiga_array *a, bool result) {
    const char *what = result ? "result" : "argument";
    int64_t axis = hr_axis_size(f, field), n_bytes;
    int skip = axis >= 0;
    if (a->dtype != field->dtype || a->rank != skip + field->rank || (skip && a->shape[0] != axis))
        return fail_shape(f, field, a, result);
    for (int i = 0; i < field->rank; i++) {
        int64_t entry = field->shape[i];
        if (hr_dim_value(f, entry) == -1 && a->shape[skip + i] >= 0) { /* the first that shows it */
            f->dims[-1 - entry] = a->shape[skip + i];
            f->dim_from[-1 - entry] = field->name;
        } else if (a->shape[skip + i] != hr_dim_value(f, entry)) {
            return fail_shape(f, field, a, result);
        }
    }
    if (!rt_shape_bytes(a->dtype, a->rank, a->shape, &n_bytes))
        return fail_size(f, field, a, result);
    if (n_bytes > 0 && !a->data)
        return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: %s '%s' has no data", f->fn->name, what, field->name);
    int32_t part = a->dtype == TIGA_C64 ? 4 : a->dtype == TIGA_C128 ? 8 : tiga_dtype_bytes(a->dtype);
    if (n_bytes > 0 && (uintptr_t)a->data % (uintptr_t)part)
        return rt_fail(f->ctx, TIGA_E_ARGUMENT, "%s: %s '%s' is not aligned to its %d-byte elements", f->fn->name, what,
                       field->name, part);
    return TIGA_OK;
}

/* "g.dst" of a program, ".dst" of a kernel; -1: not a size of a graph */
static int64_t graph_dim(const hr_frame *f, const char *dim) {
    const char *dot = strrchr(dim, '.');
    const tiga_csr *g = NULL;
    if (!dot)
        return -1;
    for (int i = 0; f->fn->is_program && i < f->fn->n_params; i++)
        if (f->graph_of[i] && strlen(f->fn->params[i].name) == (size_t)(dot - dim) &&
            memcmp(f->fn->params[i].name, dim, (size_t)(dot - dim)) == 0)
            g = f->graph_of[i];
    if (!f->fn->is_program && dot == dim)
        g = f->graph_of[0];
    if (!g)
        return -1;
    return strcmp(dot, ".dst") == 0    ? g->n_dst
           : strcmp(dot, ".src") == 0  ? g->n_src
           : strcmp(dot, ".edge") == 0 ? g->n_edges
                                       : -1;
}

/* ---- what is computed from others ---- */
static int64_t named(const void *user, const char *name, size_t length) {
    const hr_frame *f = user;
    for (int i = 0; i < f->fn->n_dims; i++)
        if (strlen(f->fn->dims[i]) == length && memcmp(f->fn->dims[i], name, length) == 0)
            return f->dims[i];
    return -1;
}

/* "; D = 3, K = 16" */
static void add_others(const hr_frame *f, base_str *s) {
    const char *gap = "; ";
    for (int i = 0; i < f->fn->n_dims; i++)
        if (f->dims[i] >= 0 && !base_size_is_computed(f->fn->dims[i]) && !strchr(f->fn->dims[i], '.')) {
            base_str_addf(s, "%s%s = %lld", gap, f->fn->dims[i], (long long)f->dims[i]);
            gap = ", ";
        }
}

static tiga_status fail_computed(hr_frame *f, int dim, bool known, int64_t value) {
    base_str others = {0};
    tiga_status status;
    add_others(f, &others);
    if (!known)
        status = rt_fail(f->ctx, TIGA_E_TYPE, "%s: dimension %s is too large%s", f->fn->name, f->fn->dims[dim],
                         base_str_text(&others));
    else if (value < 0)
        status = rt_fail(f->ctx, TIGA_E_TYPE, "%s: %s cannot be %lld%s", f->fn->name, f->fn->dims[dim],
                         (long long)value, base_str_text(&others));
    else
        status =
            rt_fail(f->ctx, TIGA_E_TYPE, "%s: dimension %s is %lld, but '%s' has %lld%s", f->fn->name, f->fn->dims[dim],
                    (long long)value, f->dim_from[dim], (long long)f->dims[dim], base_str_text(&others));
    base_str_fini(&others);
    return status;
}

/* What arrays have shown of a sum may say the one dimension in it that nothing else shows. */
static void solve_computed(hr_frame *f) {
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < f->fn->n_dims; i++) {
            base_size_term unknown;
            int64_t value;
            if (f->dims[i] < 0 || !base_size_is_computed(f->fn->dims[i]) ||
                !base_size_solve(f->fn->dims[i], f->dims[i], named, f, &unknown, &value))
                continue;
            for (int k = 0; k < f->fn->n_dims; k++)
                if (strlen(f->fn->dims[k]) == unknown.length[0] &&
                    memcmp(f->fn->dims[k], unknown.name[0], unknown.length[0]) == 0) {
                    f->dims[k] = value;
                    f->dim_from[k] = f->dim_from[i];
                    found = true;
                }
        }
    }
}

/* A computed dimension that arrays have shown and that needs this one; -1: none. */
static int shown_with(const hr_frame *f, int dim) {
    const char *name = f->fn->dims[dim];
    for (int i = 0; i < f->fn->n_dims; i++) {
        const char *at = f->fn->dims[i];
        base_size_term t;
        while (f->dims[i] >= 0 && base_size_is_computed(f->fn->dims[i]) && *at && base_size_next(&at, &t))
            for (uint32_t k = 0; k < t.n_names; k++)
                if (strlen(name) == t.length[k] && memcmp(name, t.name[k], t.length[k]) == 0)
                    return i;
    }
    return -1;
}

static tiga_status fail_unknown(hr_frame *f, int dim) {
    int sum = shown_with(f, dim);
    if (sum >= 0) {
        base_str others = {0};
        add_others(f, &others);
        tiga_status status = rt_fail(
            f->ctx, TIGA_E_TYPE, "%s: no size of dimension %s follows from '%s', where %s = %lld%s", f->fn->name,
            f->fn->dims[dim], f->dim_from[sum], f->fn->dims[sum], (long long)f->dims[sum], base_str_text(&others));
        base_str_fini(&others);
        return status;
    }
    return rt_fail(f->ctx, TIGA_E_TYPE,
                   "%s: no argument shows the size of dimension %s; give a result with memory of that size",
                   f->fn->name, f->fn->dims[dim]);
}

static tiga_status compute_dims(hr_frame *f) {
    for (int i = 0; i < f->fn->n_dims; i++) {
        int64_t value;
        if (!base_size_is_computed(f->fn->dims[i]))
            continue;
        bool known = base_size_eval(f->fn->dims[i], named, f, &value);
        if (!known || value < 0 || (f->dims[i] >= 0 && f->dims[i] != value))
            return fail_computed(f, i, known, value);
        f->dims[i] = value;
    }
    return TIGA_OK;
}

/* Sizes of graphs that are one dimension here. */
static tiga_status check_same(hr_frame *f) {
    const tiga_function_info *fn = f->fn;
    for (int i = 0; i < fn->n_same; i++) {
        int a = fn->same[2 * i], b = fn->same[2 * i + 1];
        if (f->dims[a] != f->dims[b])
            return rt_fail(f->ctx, TIGA_E_TYPE, "%s: %s must be %s, but they are %lld and %lld", fn->name, fn->dims[a],
                           fn->dims[b], (long long)f->dims[a], (long long)f->dims[b]);
    }
    return TIGA_OK;
}

tiga_status hr_solve_dims(hr_frame *f) {
    const tiga_function_info *fn = f->fn;
    for (int i = 0; i < fn->n_dims; i++)
        f->dims[i] = graph_dim(f, fn->dims[i]);
    tiga_status status = check_same(f);
    for (int i = 0; i < fn->n_params && status == TIGA_OK; i++)
        if (f->params[i])
            status = hr_check_array(f, &fn->params[i], f->params[i], false);
    for (int i = 0; i < fn->n_results && status == TIGA_OK; i++)
        if (f->results[i]->data)
            status = hr_check_array(f, &fn->results[i], f->results[i], true);
    if (status == TIGA_OK)
        solve_computed(f);
    for (int i = 0; i < fn->n_dims && status == TIGA_OK; i++)
        if (f->dims[i] < 0 && !base_size_is_computed(fn->dims[i]))
            status = fail_unknown(f, i);
    return status == TIGA_OK ? compute_dims(f) : status;
}
