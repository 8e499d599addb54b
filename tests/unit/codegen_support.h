/* What the tests of codegen share: IR from files, emitted text through real compilers into shared objects, and runs of
 * compiled loop functions next to the interpreter's. */
#ifndef CODEGEN_SUPPORT_H
#define CODEGEN_SUPPORT_H

#include "codegen/codegen.h"

#include "tiga/abi.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRICT " -Wall -Wextra -Wconversion -Wshadow -Werror "

static const cg_options test_options = {.source_name = "model.tg",
                                        .source_hash = "0123456789abcdef0123456789abcdef",
                                        .compiler = "tigac test",
                                        .target_cpu = "",
                                        .target_features = "",
                                        .header_name = "model.h",
                                        .opt_level = 3};

static inline ir_module *test_parse(base_arena *a, const char *name, const char *text) {
    base_diags d;
    base_str shown = {0}, err = {0};
    base_diags_init(&d, a, name, text);
    ir_module *m = ir_parse(a, name, text, &d);
    if (!m)
        base_diags_render(&d, false, &shown);
    cr_assert(m, "%s", base_str_text(&shown));
    cr_assert(ir_verify(m, &err), "%s: %s", name, base_str_text(&err));
    return m;
}

static inline char *test_read(base_arena *a, const char *path) {
    base_str text = {0}, err = {0};
    cr_assert(base_file_read(path, &text, &err), "%s", base_str_text(&err));
    char *s = base_arena_strdup(a, base_str_text(&text));
    base_str_fini(&text);
    return s;
}

/* A folder of the test's own, made once. */
static inline const char *test_folder(void) {
    static char folder[64];
    if (!*folder) {
        strcpy(folder, "/tmp/tiga_codegen_XXXXXX");
        cr_assert(mkdtemp(folder));
    }
    return folder;
}

static inline void test_write(base_arena *a, const char *name, const char *text) {
    base_str err = {0};
    const char *path = base_arena_printf(a, "%s/%s", test_folder(), name);
    cr_assert(base_file_write(path, text, strlen(text), &err), "%s", base_str_text(&err));
}

/* clang 19 warns of the features that it finds itself on processors with AVX10; not about our code. */
#define TEST_CLANG_NATIVE "clang-19 -std=c11 -O3 -march=native -Wno-invalid-feature-combination"

/* Runs a command in the test's folder; the test fails with its output when it does. */
static inline void test_shell(base_arena *a, const char *command) {
    char line[1024], text[6000] = "";
    FILE *p = popen(base_arena_printf(a, "cd %s && { %s; } 2>&1", test_folder(), command), "r");
    cr_assert(p);
    while (fgets(line, sizeof line, p))
        if (strlen(text) + strlen(line) + 1 < sizeof text)
            strcat(text, line);
    int status = pclose(p);
    cr_assert(status == 0, "%s\n%s", command, text);
}

static inline void test_remove_folder(base_arena *a) {
    const char *folder = test_folder();
    if (system(base_arena_printf(a, "rm -rf %s", folder)) != 0)
        cr_log_warn("cannot remove %s", folder);
}

/* The tables of a shared object made from `source` (a file in the folder). */
static inline const tiga_module_info *test_load(base_arena *a, const char *compiler, const char *source,
                                                const char *object) {
    test_shell(a, base_arena_printf(a, "%s" STRICT "-fPIC -shared %s -o %s -lm", compiler, source, object));
    void *so = dlopen(base_arena_printf(a, "%s/%s", test_folder(), object), RTLD_NOW | RTLD_LOCAL);
    cr_assert(so, "%s", dlerror());
    void *symbol = dlsym(so, TIGA_MODULE_SYMBOL);
    cr_assert(symbol);
    const tiga_module_info *(*info)(void);
    memcpy(&info, &symbol, sizeof info);
    return info();
}

/* ---- data -------------------------------------------------------------------------------------------------------- */
typedef struct test_graph {
    ir_graph_data data; /* as the interpreter takes it */
    int32_t *sources32, *edge_of32;
} test_graph;

static inline uint64_t test_random(uint64_t *s) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

/* degrees: one for each row; some sources twice, some rows their own source. */
static inline test_graph test_graph_new(base_arena *a, int64_t n_dst, int64_t n_src, const int64_t *degrees,
                                        uint64_t seed) {
    int64_t *offsets = base_arena_new_array(a, int64_t, n_dst + 1), n = 0;
    for (int64_t i = 0; i < n_dst; ++i)
        n = offsets[i + 1] = offsets[i] + degrees[i];
    int64_t *sources = base_arena_new_array(a, int64_t, n + 1);
    int64_t *edge_of = base_arena_new_array(a, int64_t, n + 1);
    int32_t *sources32 = base_arena_new_array(a, int32_t, n + 1), *edge_of32 = base_arena_new_array(a, int32_t, n + 1);
    for (int64_t e = 0; e < n; ++e) {
        sources[e] = e % 5 == 3 ? sources[e - 1] : (int64_t)(test_random(&seed) % (uint64_t)n_src);
        sources32[e] = (int32_t)sources[e];
        edge_of[e] = n - 1 - e;
        edge_of32[e] = (int32_t)edge_of[e];
    }
    return (test_graph){{n_dst, n_src, n, offsets, sources, edge_of}, sources32, edge_of32};
}

/* special: one value in eight is NaN, infinite, -0, tiny or the largest. */
static inline ir_scalar_value test_value(ir_dtype t, bool special, uint64_t *seed) {
    static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-42, 3e38, -3e38, 0.0};
    static const double odd_half[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-7, 65504, 3e38, 6e-8};
    uint64_t r = test_random(seed);
    double v = special && r % 8 == 0 ? odd[r / 8 % 8] : ((double)(r % 2001) - 1000) / 256;
    if (t == IR_F32)
        return (ir_scalar_value){.f = (float)v};
    if (t == IR_F64)
        return (ir_scalar_value){.d = special && r % 16 == 3 ? v * 1e300 : v};
    if (ir_dtype_is_complex(t)) {
        ir_scalar_value re = test_value(ir_dtype_part(t), special, seed);
        return ir_complex(t, re, test_value(ir_dtype_part(t), special, seed));
    }
    if (ir_dtype_is_half(t)) {
        ir_scalar_value x = {.d = special && r % 8 == 0 ? odd_half[r / 8 % 8] : v};
        return ir_eval(IR_CAST, IR_F64, t, &x);
    }
    if (t == IR_BOOL)
        return (ir_scalar_value){.i = r % 3 == 0};
    int64_t least, most;
    ir_dtype_limits(t, &least, &most);
    if (special && r % 8 == 0)
        return (ir_scalar_value){.i = r % 16 ? least : least < 0 ? -1 : most};
    return (ir_scalar_value){.i = (int64_t)(r % 15) - (least < 0 ? 7 : 0)};
}

typedef struct test_call {
    const ir_func *f;
    const test_graph *g;
    int64_t n_rows, n_units, *dims;
    void **buffers; /* of the compiled code: inputs, then results */
    size_t *bytes;
    const void **in;
    void **want; /* of the interpreter */
    size_t n_in, n_out;
    int32_t (*give_up)(void *user); /* of the launch's arguments */
    void *user;
} test_call;

static inline int64_t test_dim(const test_call *c, ir_dim d) {
    return ir_dim_is_sym(d) ? c->dims[ir_dim_sym_index(d)] : d;
}

static inline int64_t test_elements(const test_call *c, const ir_param *p) {
    const ir_graph_data *g = &c->g->data;
    int64_t lead[] = {g->n_src,   c->n_rows, g->n_src > g->n_dst ? g->n_src : g->n_dst, g->n_edges, 1, 1, c->n_units,
                      g->n_edges, 1},
            n = lead[p->role];
    for (uint32_t i = 0; i < p->type.rank; ++i)
        n *= test_dim(c, p->type.dim[i]);
    return n;
}

/* Arrays of exactly their size at odd addresses' distance: what is read beyond them is seen by the sanitizers. */
static inline void test_fill(test_call *c, base_arena *a, bool special, uint64_t seed) {
    size_t n = c->f->n_params;
    c->buffers = base_arena_new_array(a, void *, n + 1);
    c->bytes = base_arena_new_array(a, size_t, n + 1);
    c->in = base_arena_new_array(a, const void *, n + 1);
    c->want = base_arena_new_array(a, void *, n + 1);
    for (size_t i = 0; i < n; ++i) {
        const ir_param *p = &c->f->params[i];
        int64_t elements = test_elements(c, p);
        c->bytes[i] = (size_t)elements * ir_dtype_bytes(p->type.dtype);
        c->buffers[i] = malloc(c->bytes[i] + 1);
        memset(c->buffers[i], 0x5a, c->bytes[i] + 1);
        if (p->role >= IR_OUT_ROW) {
            c->want[c->n_out++] = memset(malloc(c->bytes[i] + 1), 0x5a, c->bytes[i] + 1);
            continue;
        }
        for (int64_t k = 0; k < elements; ++k)
            ir_store_scalar(p->type.dtype, c->buffers[i], k, test_value(p->type.dtype, special, &seed));
        c->in[c->n_in++] = c->buffers[i];
    }
}

static inline void test_release(test_call *c) {
    for (size_t i = 0; i < c->f->n_params; ++i)
        free(c->buffers[i]);
    for (size_t i = 0; i < c->n_out; ++i)
        free(c->want[i]);
}

static inline void test_prepare(test_call *c, base_arena *a, int64_t feature, int64_t n_rows) {
    c->n_rows = n_rows;
    c->n_units = (n_rows + c->f->rows_per_unit - 1) / c->f->rows_per_unit;
    c->dims = base_arena_new_array(a, int64_t, c->f->n_syms + 1);
    for (size_t i = 0; i < c->f->n_syms; ++i) {
        const char *dot = strrchr(c->f->syms[i], '.');
        c->dims[i] = dot ? n_rows : i ? (feature + 1) % 4 : feature;
    }
}

static inline void test_interpret(test_call *c, const ir_module *m) {
    base_str err = {0};
    ir_call_data call = {.graph = &c->g->data, .dims = c->dims, .in = c->in, .out = c->want, .n_rows = c->n_rows};
    cr_assert(ir_interpret_loop(m, c->f, &call, &err), "%s: %s", c->f->name, base_str_text(&err));
}

/* In two chunks, with canaries behind the scratch memory. */
static inline void test_run(test_call *c, const tiga_kernel_code *code, bool wide) {
    const ir_graph_data *g = &c->g->data;
    int64_t scratch_bytes = code->scratch_bytes ? code->scratch_bytes(c->dims) : 0;
    char *scratch = aligned_alloc(64, (size_t)(scratch_bytes + 127) / 64 * 64);
    memset(scratch, 0x77, (size_t)(scratch_bytes + 127) / 64 * 64);
    tiga_launch_args args = {
        {g->n_dst, g->n_src, g->n_edges, g->offsets, wide ? (const void *)g->sources : c->g->sources32, wide ? 64 : 32},
        c->n_rows,
        c->dims,
        c->buffers,
        scratch_bytes ? scratch : NULL,
        wide ? (const void *)g->edge_of : c->g->edge_of32,
        code->numbers,
        c->give_up,
        c->user};
    tiga_rows_fn rows = wide && code->rows64 ? code->rows64 : code->rows32;
    size_t out = 0;
    for (size_t i = 0; i < c->f->n_params; ++i)
        if (c->f->params[i].role >= IR_OUT_ROW)
            memset(c->buffers[i], 0x5a, c->bytes[i] + 1);
    rows(&args, 0, c->n_units / 3);
    rows(&args, c->n_units / 3, c->n_units);
    for (int64_t i = scratch_bytes; i < (scratch_bytes + 127) / 64 * 64; ++i)
        cr_assert(scratch[i] == 0x77, "%s: scratch overrun", c->f->name);
    free(scratch);
    (void)out;
}

static inline bool test_same(ir_dtype t, const void *a, const void *b, int64_t i) {
    if (ir_dtype_is_complex(t))
        return test_same(ir_dtype_part(t), a, b, 2 * i) && test_same(ir_dtype_part(t), a, b, 2 * i + 1);
    if (t == IR_F32 && isnan(((const float *)a)[i]) && isnan(((const float *)b)[i]))
        return true;
    if (t == IR_F64 && isnan(((const double *)a)[i]) && isnan(((const double *)b)[i]))
        return true;
    ir_scalar_value x = ir_load_scalar(t, a, i), y = ir_load_scalar(t, b, i);
    if (ir_dtype_is_half(t) && isnan(ir_eval(IR_CAST, t, IR_F32, &x).f) && isnan(ir_eval(IR_CAST, t, IR_F32, &y).f))
        return true;
    size_t n = ir_dtype_bytes(t);
    return !memcmp((const char *)a + (size_t)i * n, (const char *)b + (size_t)i * n, n);
}

static inline void test_compare(const test_call *c, const char *how) {
    size_t out = 0;
    for (size_t i = 0; i < c->f->n_params; ++i) {
        const ir_param *p = &c->f->params[i];
        if (p->role < IR_OUT_ROW)
            continue;
        const void *want = c->want[out++];
        for (int64_t k = 0; k < test_elements(c, p); ++k)
            cr_assert(test_same(p->type.dtype, want, c->buffers[i], k),
                      "%s, %s: %s[%lld] differs (first dimension %lld)", c->f->name, how, p->name, (long long)k,
                      (long long)(c->f->n_syms ? c->dims[0] : 0));
        cr_assert(((char *)c->buffers[i])[c->bytes[i]] == 0x5a, "%s: %s is overrun", c->f->name, p->name);
    }
}

#endif
