/* Shared by the tests of lower: runs a kernel in the graph interpreter and its loop functions in the loop interpreter. */
#ifndef PASSES_LOWER_SUPPORT_H
#define PASSES_LOWER_SUPPORT_H

#include "passes_support.h"

#define LOWER_TEXTS TIGA_SOURCE_DIR "/tests/passes/lower"

/* ---- graphs ---- */
/* Degrees as given; sources random, with self loops and duplicates among them. */
static inline ir_graph_data *graph_of(base_arena *a, rng *r, const int64_t *degrees, int64_t n_dst, int64_t n_src) {
    int64_t *offsets = base_arena_new_array(a, int64_t, n_dst + 1);
    for (int64_t i = 0; i < n_dst; i++)
        offsets[i + 1] = offsets[i] + degrees[i];
    int64_t n = offsets[n_dst], *sources = base_arena_new_array(a, int64_t, n + 1);
    for (int64_t i = 0; i < n_dst; i++)
        for (int64_t e = offsets[i]; e < offsets[i + 1]; e++)
            sources[e] = e > offsets[i] && rng_next(r, 5) == 0 ? sources[e - 1]
                         : i < n_src && rng_next(r, 5) == 0    ? i
                                                               : (int64_t)rng_next(r, (uint32_t)n_src);
    ir_graph_data *g = base_arena_new_array(a, ir_graph_data, 1);
    *g = (ir_graph_data){.n_dst = n_dst, .n_src = n_src, .n_edges = n, .offsets = offsets, .sources = sources};
    int64_t *edge_of =
        base_arena_new_array(a, int64_t, n + 1); /* read where the domain is src only: any order will do */
    for (int64_t e = 0; e < n; e++)
        edge_of[e] = n - 1 - e;
    g->edge_of = edge_of;
    return g;
}

#define N_GRAPHS 6
static inline void all_graphs(base_arena *a, rng *r, const ir_graph_data **out) {
    out[0] = graph_of(a, r, NULL, 0, 0); /* nothing */
    out[1] = graph_of(a, r, (int64_t[]){0, 0, 0}, 3, 3); /* no edges */
    out[2] = graph_of(a, r, (int64_t[]){1, 0, 3, 17, 2, 0, 5}, 7, 7); /* empty rows */
    out[3] = graph_of(a, r, (int64_t[]){0, 1, 50, 0, 2}, 5, 5); /* one hub */
    out[4] = graph_of(a, r, (int64_t[]){16}, 1, 1); /* one row, self loops only */
    out[5] = graph_of(a, r, (int64_t[]){4, 15, 33}, 3, 9); /* not square */
}

/* ---- arguments ---- */
/* At most half of the arrays have odd values, so that sums are also compared on plain numbers. */
static inline ir_scalar_value lower_value(rng *r, ir_dtype t, bool odd) {
    double d = odd ? random_number(r) : ((double)rng_next(r, 4001) - 2000) / 512;
    ir_scalar_value v = {.i = (int64_t)rng_next(r, 41) - 20};
    if (odd && rng_next(r, 12) == 0)
        v.i = rng_next(r, 2) ? INT32_MAX : INT32_MIN;
    if (odd && t == IR_I64 && rng_next(r, 12) == 0)
        v.i = rng_next(r, 2) ? INT64_MAX : INT64_MIN;
    if (t == IR_BOOL)
        v.i = rng_next(r, 2);
    if (ir_dtype_is_int(t))
        v = ir_eval(IR_CAST, IR_I64, t, &v);
    if (ir_dtype_is_half(t))
        v = ir_eval(IR_CAST, IR_F64, t, &(ir_scalar_value){.d = d});
    if (t == IR_F32)
        v.f = (float)d;
    if (t == IR_F64)
        v.d = d;
    if (ir_dtype_is_complex(t))
        v = ir_complex(t, lower_value(r, ir_dtype_part(t), odd), lower_value(r, ir_dtype_part(t), odd));
    return v;
}

static inline void *lower_array(base_arena *a, rng *r, ir_dtype t, int64_t n) {
    void *data = base_arena_alloc(a, (size_t)(n + 1) * ir_dtype_bytes(t));
    bool odd = rng_next(r, 2);
    for (int64_t i = 0; i < n; i++)
        ir_store_scalar(t, data, i, lower_value(r, t, odd));
    return data;
}

static inline bool over_rows(const ir_func *k) { return strcmp(k->domain, "rows") == 0; }

static inline bool fits_graph(const ir_func *k, const ir_graph_data *g) {
    for (size_t i = 0; i < k->n_params; i++)
        if (k->params[i].role == IR_NODE && g->n_dst != g->n_src)
            return false;
    return !k->needs_square || g->n_dst == g->n_src;
}

static inline arguments lower_arguments(base_arena *a, rng *r, const ir_func *k, const ir_graph_data *g,
                                        const int64_t *sizes) {
    arguments x = {.g = g, .dims = base_arena_new_array(a, int64_t, k->n_syms + 1)};
    for (size_t i = 0; i < k->n_syms; i++)
        x.dims[i] = sizes[i % 3];
    x.in = base_arena_new_array(a, const void *, k->n_params + 1);
    for (size_t i = 0; i < k->n_params; i++)
        x.in[i] = lower_array(a, r, k->params[i].type.dtype, array_elements(k, &k->params[i], false, x.dims, g));
    return x;
}

static inline int64_t result_elements(const ir_func *k, size_t i, const arguments *x) {
    const ir_param *p = &k->results[i];
    return p->type.space == IR_UNIFORM ? 1 : array_elements(k, p, true, x->dims, x->g);
}

static inline void **lower_outputs(base_arena *a, const ir_func *k, const arguments *x) {
    void **out = base_arena_new_array(a, void *, k->n_results + 1);
    for (size_t i = 0; i < k->n_results; i++) {
        size_t n = (size_t)result_elements(k, i, x) * ir_dtype_bytes(k->results[i].type.dtype);
        out[i] = base_arena_alloc(a, n + 8);
        memset(out[i], 0xa5, n);
    }
    return out;
}

/* ---- running ---- */
static inline void run_graph(const ir_module *m, const ir_func *k, const arguments *x, void **out) {
    ir_call_data call = {
        .graph = over_rows(k) ? NULL : x->g, .dims = x->dims, .in = x->in, .out = out, .n_rows = x->g->n_dst};
    base_str err = {0};
    bool ok = ir_interpret_graph(m, k, &call, &err);
    cr_assert(ok, "%s: %s", k->name, base_str_text(&err));
    base_str_fini(&err);
}

static inline void run_one_loop(const ir_module *m, const ir_func *f, const ir_call_data *call, const char *what) {
    base_str err = {0};
    bool ok = ir_interpret_loop(m, f, call, &err);
    if (!ok)
        ir_print_func(f, &err);
    cr_assert(ok, "%s: %s: %s", what, f->name, base_str_text(&err));
    base_str_fini(&err);
}

/* The loop functions of kernel k: one, or the two of a kernel with totals. */
static inline void run_loops(base_arena *a, const ir_module *m, const ir_func *k, const arguments *x, void **out,
                             const char *what) {
    const ir_func *f = ir_func_find(m, k->name, IR_LEVEL_LOOP);
    cr_assert(f, "%s has no loop function", k->name);
    ir_call_data call = {
        .graph = over_rows(k) ? NULL : x->g, .dims = x->dims, .in = x->in, .out = out, .n_rows = x->g->n_dst};
    if (f->rows_per_unit == 1) {
        run_one_loop(m, f, &call, what);
        return;
    }
    int64_t units = (x->g->n_dst + IR_TOTAL_BLOCK - 1) / IR_TOTAL_BLOCK;
    void **parts = base_arena_new_array(a, void *, k->n_results + 1);
    for (size_t i = 0; i < k->n_results; i++)
        parts[i] = base_arena_alloc(a, (size_t)(units + 1) * 8);
    call.out = parts;
    run_one_loop(m, f, &call, what);
    const ir_func *t = ir_func_find(m, base_arena_printf(a, "%s.total", k->name), IR_LEVEL_LOOP);
    cr_assert(t);
    ir_call_data rest = {.dims = &units, .in = (const void *const *)parts, .out = out, .n_rows = 1};
    run_one_loop(m, t, &rest, what);
}

static inline void expect_same_results(const ir_func *k, const ir_module *m, const arguments *x, void **got,
                                       void **want, const char *what) {
    for (size_t i = 0; i < k->n_results; i++) {
        int64_t n = result_elements(k, i, x);
        for (int64_t at = 0; at < n; at++)
            if (!same_bits(k->results[i].type.dtype, got[i], want[i], at)) {
                base_str text = {0};
                ir_print_func(k, &text);
                ir_print_func(ir_func_find(m, k->name, IR_LEVEL_LOOP), &text);
                cr_assert_fail("%s: %s: element %lld of %lld of '%s' differs\n%s", what, k->name, (long long)at,
                               (long long)n, k->results[i].name, base_str_text(&text));
            }
    }
}

static inline ir_module *read_ir(base_arena *a, const char *path) {
    base_str text = {0}, err = {0};
    cr_assert(base_file_read(path, &text, &err), "%s", base_str_text(&err));
    ir_module *m = parse_text(a, path, base_arena_strdup(a, base_str_text(&text)));
    base_str_fini(&text);
    base_str_fini(&err);
    return m;
}

#endif
