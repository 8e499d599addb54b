/* Emitted CUDA on the simulated device against the interpreter, bit for bit: every loop function of kernels/ and of
 * tests/passes/lower/, on graphs with empty rows, duplicates, a hub, no edges, no rows; both widths of sources; teams of
 * 16 threads and single ones; three orders of threads. */
#include "emitted.h"
#include "sim_loop.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS 32

static uint64_t seed_state = 1;

static uint64_t next_random(void) {
    seed_state = seed_state * 6364136223846793005ull + 1442695040888963407ull;
    return seed_state >> 33;
}

/* ---- graphs ---- */

typedef struct test_graph {
    ir_graph_data g;
    int64_t offsets[80], sources[400], edge_of[400];
} test_graph;

static void add_edges(test_graph *t, int64_t row, int64_t degree) {
    int64_t at = t->offsets[row];
    for (int64_t i = 0; i < degree; i++)
        t->sources[at + i] = (int64_t)(next_random() % (uint64_t)t->g.n_src);
    t->offsets[row + 1] = at + degree;
}

/* 0: no rows; 1: rows without edges; 2: one row; 3: a hub, empty rows; 4: degrees 0 .. 40. */
static void make_graph(test_graph *t, int which) {
    static const int64_t rows[] = {0, 3, 1, 37, 19};
    *t = (test_graph){.g = {.n_dst = rows[which], .n_src = rows[which], .offsets = t->offsets, .sources = t->sources}};
    for (int64_t r = 0; r < t->g.n_dst; r++) {
        int64_t degree = which == 1 ? 0 : which == 2 ? 5 : which == 3 ? (r == 11 ? 150 : r % 3) : r * 7 % 41 % 20;
        add_edges(t, r, degree);
    }
    t->g.n_edges = t->offsets[t->g.n_dst];
    t->g.edge_of = t->edge_of;
    for (int64_t e = 0; e < t->g.n_edges; e++)
        t->edge_of[e] = t->g.n_edges - 1 - e;
}

/* ---- values ---- */

static double value(void) {
    static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, 3e38, -1e-45};
    uint64_t r = next_random();
    if (r % 24 == 0)
        return odd[next_random() % 8];
    return ((double)(next_random() % 20001) - 10000.0) / 4096.0;
}

static void fill(ir_dtype t, void *array, size_t bytes) {
    t = ir_dtype_part(t);
    for (int64_t i = 0; i < (int64_t)(bytes / ir_dtype_bytes(t)); i++) {
        ir_scalar_value v = {.i = (int64_t)next_random() - (1 << 30)};
        if (t == IR_F32)
            v.f = (float)value();
        else if (t == IR_F64)
            v.d = value();
        else if (t == IR_BOOL)
            v.i = (int64_t)(next_random() & 1);
        else if (ir_dtype_is_half(t))
            v = ir_eval(IR_CAST, IR_F64, t, &(ir_scalar_value){.d = value()});
        else
            v = ir_eval(IR_CAST, IR_I64, t, &v);
        ir_store_scalar(t, array, i, v);
    }
}

static bool same(ir_dtype t, const void *a, const void *b, int64_t i) {
    if (ir_dtype_is_complex(t))
        return same(ir_dtype_part(t), a, b, 2 * i) && same(ir_dtype_part(t), a, b, 2 * i + 1);
    size_t n = ir_dtype_bytes(t);
    ir_scalar_value x = ir_load_scalar(t, a, i), y = ir_load_scalar(t, b, i);
    if ((t == IR_F32 && isnan(x.f) && isnan(y.f)) || (t == IR_F64 && isnan(x.d) && isnan(y.d)))
        return true;
    if (ir_dtype_is_half(t) && isnan(ir_eval(IR_CAST, t, IR_F32, &x).f) && isnan(ir_eval(IR_CAST, t, IR_F32, &y).f))
        return true;
    return !memcmp((const char *)a + (size_t)i * n, (const char *)b + (size_t)i * n, n);
}

/* ---- one function on one graph ---- */

typedef struct arrays {
    void *in[MAX_FIELDS], *want[MAX_FIELDS], *got[MAX_FIELDS];
    size_t bytes[MAX_FIELDS];
    ir_dtype dtype[MAX_FIELDS];
    int n_in, n_out;
} arrays;

static void make_arrays(arrays *a, const ir_func *f, const ir_call_data *call) {
    memset(a, 0, sizeof *a);
    for (size_t i = 0; i < f->n_params; i++) {
        size_t bytes = sim_param_bytes(f, call, i);
        if (f->params[i].role < IR_OUT_ROW) {
            a->in[a->n_in] = malloc(bytes + 1);
            fill(f->params[i].type.dtype, a->in[a->n_in++], bytes);
            continue;
        }
        a->want[a->n_out] = calloc(1, bytes + 1);
        a->got[a->n_out] = calloc(1, bytes + 1);
        a->dtype[a->n_out] = f->params[i].type.dtype;
        a->bytes[a->n_out++] = bytes;
    }
}

static void free_arrays(arrays *a) {
    for (int i = 0; i < MAX_FIELDS; i++)
        free(a->in[i]), free(a->want[i]), free(a->got[i]);
}

static void compare(const arrays *a, const ir_func *f, const char *what) {
    for (int o = 0; o < a->n_out; o++)
        for (int64_t i = 0; i < (int64_t)(a->bytes[o] / ir_dtype_bytes(a->dtype[o])); i++)
            cr_assert(same(a->dtype[o], a->want[o], a->got[o], i), "@%s, %s: result %d differs at element %lld (%s)",
                      f->name, what, o, (long long)i, ir_dtype_text(a->dtype[o]));
}

static void check(const ir_module *m, const ir_func *f, sim_module *device, int which, int64_t size) {
    test_graph t;
    make_graph(&t, which);
    int64_t dims[16];
    for (size_t i = 0; i < f->n_syms; i++)
        dims[i] = f->syms[i][0] == 'H' ? size % 4 : size;
    arrays a;
    ir_call_data call = {.graph = &t.g, .dims = dims, .n_rows = t.g.n_dst};
    for (size_t i = 0; i < f->n_params; i++)
        if (f->params[i].role == IR_OUT_PARAM)
            call.n_rows = 1; /* combines what the units of another function left */
    make_arrays(&a, f, &call);
    base_str err = {0};
    call.in = (const void *const *)a.in;
    call.out = a.want;
    cr_assert(ir_interpret_loop(m, f, &call, &err), "@%s: %s", f->name, base_str_text(&err));
    call.out = a.got;
    for (int order = SIM_ASCENDING; order <= SIM_RANDOM; order++) {
        char what[120];
        snprintf(what, sizeof what, "graph %d, size %lld, order %d, team %lld", which, (long long)size, order,
                 (long long)f->team);
        sim_loop_options o = {.wide = (order + which) % 2 == 0, .order = (sim_order)order, .seed = (uint64_t)which};
        for (int i = 0; i < a.n_out; i++)
            memset(a.got[i], 0xa5, a.bytes[i]);
        char name[128];
        size_t n = 0;
        for (const char *p = f->name; *p && n + 1 < sizeof name; p++)
            name[n++] = *p == '.' ? '_' : *p;
        name[n] = 0;
        cr_assert(sim_run_loop(device, name, f, &call, &o, &err), "%s: %s", what, base_str_text(&err));
        compare(&a, f, what);
    }
    free_arrays(&a);
    base_str_fini(&err);
}

static void check_file(const char *path, int opt_level, int team) {
    emitted e = emitted_new(path, opt_level, team);
    char *log;
    sim_module *device = sim_module_new(base_str_text(&e.text), SIM_WORK_DIR, &log);
    cr_assert(device, "%s: %s", path, log ? log : "no log");
    cr_assert(!log || !*log, "%s: the compiler complains: %s", path, log);
    free(log);
    for (size_t i = 0; i < e.m->n_funcs; i++) {
        const ir_func *f = e.m->funcs[i];
        static const int64_t sizes[] = {1, 3, 16, 64, 70, 0};
        for (int which = 0; f->level == IR_LEVEL_LOOP && which < 5; which++) {
            check(e.m, f, device, which, sizes[which]);
            if (f->n_syms) /* another width on the graph that has everything */
                check(e.m, f, device, 3, sizes[(which + 4) % 6]);
        }
    }
    sim_module_free(device);
    emitted_free(&e);
}

#define KERNELS TIGA_SOURCE_DIR "/tests/cuda_sim/kernels/"
#define SAMPLES TIGA_SOURCE_DIR "/tests/passes/lower/"

Test(emitted, reducers) { check_file(KERNELS "reducers.tg", 3, 0); }
Test(emitted, reducers_unoptimised) { check_file(KERNELS "reducers.tg", 0, 0); }
Test(emitted, reducers_one_thread) { check_file(KERNELS "reducers.tg", 3, 1); }
Test(emitted, shapes) { check_file(KERNELS "shapes.tg", 3, 0); }
Test(emitted, shapes_unoptimised) { check_file(KERNELS "shapes.tg", 0, 0); }
Test(emitted, shapes_one_thread) { check_file(KERNELS "shapes.tg", 3, 1); }
Test(emitted, totals) { check_file(KERNELS "totals.tg", 3, 0); }
Test(emitted, totals_one_thread) { check_file(KERNELS "totals.tg", 3, 1); }
Test(emitted, half) { check_file(KERNELS "half.tg", 3, 0); }
Test(emitted, math) { check_file(KERNELS "math.tg", 3, 0); }

Test(emitted, gradients) { check_file(KERNELS "gradients.tg", 3, 0); }
Test(emitted, gradients_one_thread) { check_file(KERNELS "gradients.tg", 3, 1); }

/* Forms that today's lowering does not make, but the IR allows. */
Test(emitted, forms) { check_file(KERNELS "forms.ir", 3, 0); }
Test(emitted, forms_one_thread) { check_file(KERNELS "forms.ir", 3, 1); }

Test(emitted, samples) {
    static const char *const names[] = {
        "argmax_features",   "gat", "mean", "scalar_sum", "sddmm", "shortest", "total", "transposed",
        "weighted_sum_tiled",
        "weighted_sum_whole"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, SAMPLES "%s.ir", names[i]);
        check_file(path, 3, 0);
        check_file(path, 3, 1);
    }
}

Test(emitted, same_bytes_every_time) {
    emitted a = emitted_new(KERNELS "shapes.tg", 3, 0), b = emitted_new(KERNELS "shapes.tg", 3, 0);
    cr_assert_str_eq(base_str_text(&a.text), base_str_text(&b.text));
    emitted_free(&a);
    emitted_free(&b);
}

/* A wrong mask must not hide: the emitted text with one thing broken is caught. */
static void expect_caught(const char *from, const char *to, const char *what) {
    emitted e = emitted_new(SAMPLES "shortest.ir", 3, 0);
    base_str broken = {0};
    const char *at = strstr(base_str_text(&e.text), from);
    cr_assert(at, "the emitted text has no '%s'", from);
    base_str_add_n(&broken, base_str_text(&e.text), (size_t)(at - base_str_text(&e.text)));
    base_str_add(&broken, to);
    base_str_add(&broken, at + strlen(from));
    char *log;
    sim_module *device = sim_module_new(base_str_text(&broken), SIM_WORK_DIR, &log);
    cr_assert(device, "%s", log);
    free(log);
    test_graph t;
    make_graph(&t, 3);
    ir_call_data call = {.graph = &t.g, .n_rows = t.g.n_dst};
    const ir_func *f = ir_func_find(e.m, "shortest", IR_LEVEL_LOOP);
    arrays a;
    make_arrays(&a, f, &call);
    call.in = (const void *const *)a.in;
    call.out = a.got;
    base_str err = {0};
    cr_assert(!sim_run_loop(device, "shortest", f, &call, &(sim_loop_options){0}, &err), "'%s' for '%s' is not caught",
              to, from);
    cr_assert(strstr(base_str_text(&err), what), "%s", base_str_text(&err));
    base_str_fini(&err);
    base_str_fini(&broken);
    free_arrays(&a);
    sim_module_free(device);
    emitted_free(&e);
}

Test(caught, mask_of_the_whole_warp) { expect_caught("0xffffu << (threadIdx.x & 16)", "0xffffffffu", "lane"); }
Test(caught, store_by_all_threads) { expect_caught("if (t == 0) via", "via", "data race"); }
Test(caught, row_too_far) { expect_caught("row < row_end", "row <= row_end", "out of bounds"); }
Test(caught, row_too_few) { expect_caught("row < row_end", "row < row_end - 1", "unwritten"); }
Test(caught, edge_too_far) { expect_caught("e < end", "e <= end", "out of bounds"); }
