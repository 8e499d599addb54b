/* Shared by the tests of passes that run programs: random graphs, random arguments, bit-for-bit comparison. */
#ifndef PASSES_SUPPORT_H
#define PASSES_SUPPORT_H

#include "passes/passes.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

typedef struct rng {
    uint64_t state;
} rng;

static inline uint32_t rng_next(rng *r, uint32_t below) { /* splitmix64 */
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % below);
}

static inline ir_graph_data *random_graph(base_arena *a, rng *r, int64_t n_dst, int64_t n_src, uint32_t max_degree) {
    int64_t *offsets = base_arena_new_array(a, int64_t, n_dst + 1);
    for (int64_t i = 0; i < n_dst; i++)
        offsets[i + 1] = offsets[i] + (n_src && max_degree && rng_next(r, 4) ? rng_next(r, max_degree + 1) : 0);
    int64_t n = offsets[n_dst], *sources = base_arena_new_array(a, int64_t, n + 1);
    for (int64_t e = 0; e < n; e++)
        sources[e] = rng_next(r, (uint32_t)n_src);
    ir_graph_data *g = base_arena_new_array(a, ir_graph_data, 1);
    *g = (ir_graph_data){.n_dst = n_dst, .n_src = n_src, .n_edges = n, .offsets = offsets, .sources = sources};
    int64_t *edge_of =
        base_arena_new_array(a, int64_t, n + 1); /* read where the domain is src only: any order will do */
    for (int64_t e = 0; e < n; e++)
        edge_of[e] = n - 1 - e;
    g->edge_of = edge_of;
    return g;
}

static inline bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

static inline int64_t size_of_symbol(const char *name, const ir_graph_data *g) {
    return ends_with(name, ".dst")    ? g->n_dst
           : ends_with(name, ".src")  ? g->n_src
           : ends_with(name, ".edge") ? g->n_edges
           : !strcmp(name, "F")       ? 3
           : !strcmp(name, "N")       ? 5
                                      : 4;
}

static inline int64_t *sizes_of(base_arena *a, const ir_func *f, const ir_graph_data *g) {
    int64_t *dims = base_arena_new_array(a, int64_t, f->n_syms + 1);
    for (size_t i = 0; i < f->n_syms; i++)
        dims[i] = size_of_symbol(f->syms[i], g);
    cr_assert(ir_compute_dims(f, dims));
    return dims;
}

static inline int64_t n_elements(const ir_type *t, const int64_t *dims) {
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= ir_dim_is_sym(t->dim[i]) ? dims[ir_dim_sym_index(t->dim[i])] : t->dim[i];
    return n;
}

/* Elements of the array of a parameter or a result (space: of a kernel's result). */
static inline int64_t array_elements(const ir_func *f, const ir_param *p, bool result, const int64_t *dims,
                                     const ir_graph_data *g) {
    int64_t n = n_elements(&p->type, dims);
    if (f->level != IR_LEVEL_KERNEL)
        return n;
    if (result)
        return n * (p->type.space == IR_EDGE ? g->n_edges : g->n_dst);
    return n * (p->role == IR_SRC           ? g->n_src
                : p->role == IR_EDGE_FIELD  ? g->n_edges
                : p->role == IR_PARAM_FIELD ? 1
                                            : g->n_dst);
}

static inline double random_number(rng *r) {
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1.0, 1e-42, 3e38, 0.0, 0.0, 0.0, -0.0, -0.0, -0.0};
    if (rng_next(r, 8) == 0)
        return odd[rng_next(r, 12)];
    return ((double)rng_next(r, 4001) - 2000) / 512;
}

/* i64 scalars are numbers of rounds: 0 .. 4. */
static inline void *random_array(base_arena *a, rng *r, const ir_type *t, int64_t n) {
    void *data = base_arena_alloc(a, (size_t)(n + 1) * ir_dtype_bytes(t->dtype));
    for (int64_t i = 0; i < n; i++) {
        ir_scalar_value v = {.i = t->dtype == IR_BOOL ? rng_next(r, 2)
                                  : t->rank           ? (int64_t)rng_next(r, 9) - 3
                                                      : rng_next(r, 5)};
        if (t->dtype == IR_F32)
            v.f = (float)random_number(r);
        if (t->dtype == IR_F64)
            v.d = random_number(r);
        if (ir_dtype_is_complex(t->dtype)) {
            ir_scalar_value re = {.d = random_number(r)}, im = {.d = random_number(r)};
            v = ir_eval(IR_CAST, IR_C128, t->dtype, (ir_scalar_value[]){ir_complex(IR_C128, re, im)});
        }
        if (ir_dtype_is_half(t->dtype))
            v = ir_eval(IR_CAST, IR_F64, t->dtype, &(ir_scalar_value){.d = random_number(r)});
        ir_store_scalar(t->dtype, data, i, v);
    }
    return data;
}

typedef struct arguments {
    const ir_graph_data *g;
    const ir_graph_data **graphs; /* by parameter */
    int64_t *dims;
    const void **in; /* by parameter */
    void **out;
} arguments;

static inline void new_outputs(base_arena *a, const ir_func *f, arguments *x) {
    x->out = base_arena_new_array(a, void *, f->n_results + 1);
    for (size_t i = 0; i < f->n_results; i++) {
        size_t n =
            (size_t)array_elements(f, &f->results[i], true, x->dims, x->g) * ir_dtype_bytes(f->results[i].type.dtype);
        x->out[i] = base_arena_alloc(a, n + 1);
        memset(x->out[i], 0xa5, n); /* whatever is not written shows */
    }
}

static inline arguments random_arguments(base_arena *a, rng *r, const ir_func *f, const ir_graph_data *g) {
    arguments x = {.g = g, .dims = sizes_of(a, f, g)};
    x.in = base_arena_new_array(a, const void *, f->n_params + 1);
    x.graphs = base_arena_new_array(a, const ir_graph_data *, f->n_params + 1);
    for (size_t i = 0; i < f->n_params; i++) {
        x.graphs[i] = f->params[i].role == IR_GRAPH_FIELD ? g : NULL;
        if (!x.graphs[i])
            x.in[i] = random_array(a, r, &f->params[i].type, array_elements(f, &f->params[i], false, x.dims, g));
    }
    new_outputs(a, f, &x);
    return x;
}

static inline void interpret(const ir_module *m, const ir_func *f, const arguments *x) {
    ir_call_data call = {.graph = f->level == IR_LEVEL_KERNEL ? x->g : NULL,
                         .graphs = x->graphs,
                         .dims = x->dims,
                         .in = x->in,
                         .out = x->out,
                         .n_rows = x->g->n_dst};
    base_str err = {0};
    bool ok = ir_interpret_graph(m, f, &call, &err);
    cr_assert(ok, "%s: %s", f->name, base_str_text(&err));
    base_str_fini(&err);
}

static inline bool same_bits(ir_dtype t, const void *a, const void *b, int64_t i) {
    if (ir_dtype_is_complex(t))
        return same_bits(ir_dtype_part(t), a, b, 2 * i) && same_bits(ir_dtype_part(t), a, b, 2 * i + 1);
    ir_scalar_value x = ir_load_scalar(t, a, i), y = ir_load_scalar(t, b, i);
    if (ir_dtype_is_half(t)) {
        x.f = ir_eval(IR_CAST, t, IR_F32, &x).f;
        y.f = ir_eval(IR_CAST, t, IR_F32, &y).f;
        t = IR_F32; /* exact */
    }
    if (t == IR_F32)
        return (isnan(x.f) && isnan(y.f)) || !memcmp(&x.f, &y.f, sizeof x.f);
    if (t == IR_F64)
        return (isnan(x.d) && isnan(y.d)) || !memcmp(&x.d, &y.d, sizeof x.d);
    return x.i == y.i;
}

static inline void expect_same(const ir_func *f, const arguments *x, void *const *want, const char *what) {
    for (size_t k = 0; k < f->n_results; k++) {
        int64_t n = array_elements(f, &f->results[k], true, x->dims, x->g);
        for (int64_t i = 0; i < n; i++)
            if (!same_bits(f->results[k].type.dtype, x->out[k], want[k], i)) {
                base_str got = {0};
                ir_print_func(f, &got);
                cr_assert_fail("%s: %s: element %lld of result '%s' differs\n%s", what, f->name, (long long)i,
                               f->results[k].name, base_str_text(&got));
            }
    }
}

static inline ir_module *parse_text(base_arena *a, const char *name, const char *text) {
    base_diags diags;
    base_diags_init(&diags, a, name, text);
    ir_module *m = ir_parse(a, name, text, &diags);
    base_str err = {0};
    if (!m)
        base_diags_render(&diags, false, &err);
    else
        ir_verify(m, &err);
    cr_assert(m && !err.len, "%s: %s\n%s", name, base_str_text(&err), text);
    base_str_fini(&err);
    return m;
}

static inline ir_module *copy_module(base_arena *a, const ir_module *m) {
    base_str text = {0};
    ir_print(m, 15, &text);
    ir_module *copy = parse_text(a, "copy", base_arena_strdup(a, base_str_text(&text)));
    base_str_fini(&text);
    return copy;
}

static inline void run_passes(ir_module *m, const char *names, int level, bool cuda, base_arena *a) {
    pass_context ctx = {.scratch = a, .cuda = cuda};
    base_str err = {0};
    bool ok = pass_run_pipeline(m, names, level, &ctx, &err);
    if (!ok)
        ir_print(m, 15, &err);
    cr_assert(ok, "%s: %s", names ? names : "default", base_str_text(&err));
    base_str_fini(&err);
}

#endif
