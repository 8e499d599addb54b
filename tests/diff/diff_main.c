/* The comparison.  Functions are made in batches of one module each; a batch is compiled once at -O0 and once at -O3
 * and every function runs on several graphs:
 *     graph interpreter = loop interpreter of what the passes made = C at -O0 = C at -O3, with 1, 2, 3 or 7 threads.
 *
 *     diff_test [--seed S] [--functions N] [--only NAME] [--cuda] [--gradients] [--write-c FILE]
 * A difference prints the seed, the function's IR and the first wrong element; --only repeats one function. */
#include "diff.h"
#include "diff_cuda.h"
#include "diff_grad.h"

#include "runtime/runtime.h"
#include "tiga/compiler.h"
#include "tiga/tiga.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KERNELS = 32, PROGRAMS = 8, GRAPHS_EACH = 3, MAX_REPORTS = 10 };
enum { WITH_GRADIENT = 10 }; /* kernels and as many programs, half of them smooth */

typedef struct options {
    uint64_t seed;
    int64_t functions;
    const char *only;
    const char *write_c; /* only this: the C of the first batch */
    bool cuda, gradients;
} options;

typedef struct batch {
    const options *o;
    uint64_t seed;
    base_arena *arena;
    ir_module *m;      /* graph level, as generated */
    ir_module *expanded; /* the same with gradients as code; without gradients m */
    ir_module *loops;  /* what the default pipeline made */
    base_str text;
    tiga_context *ctx[4];
    tiga_module *code[2]; /* -O0, -O3 */
    diff_cuda *cuda;
    diff_rng rng;
} batch;

static const int thread_counts[4] = {1, 2, 3, 7};
static int n_failures;
static int64_t n_functions, n_runs, n_kernels, n_programs, n_slopes, n_unknown, n_refused;

static void fail(const batch *b, const ir_func *f, const char *graph, const char *how, const char *what) {
    if (++n_failures > MAX_REPORTS) return;
    base_str text = {0};
    if (f) ir_print_func(f, &text);
    printf("FAIL seed %llu %s on '%s', %s: %s\n  again: diff_test --seed %llu --functions 1%s%s%s\n%s\n",
           (unsigned long long)b->seed, f ? f->name : "-", graph, how, what, (unsigned long long)b->seed,
           b->o->gradients ? " --gradients" : "", f ? " --only " : "", f ? f->name : "", base_str_text(&text));
    base_str_fini(&text);
}

/* ---- making and compiling a batch ---- */
static bool checked(batch *b) {
    base_str err = {0};
    bool good = ir_verify(b->m, &err);
    if (!good) fail(b, NULL, "-", "generator", base_str_text(&err));
    base_str_fini(&err);
    b->text.len = 0;
    ir_print(b->m, IR_LEVEL_K | IR_LEVEL_P, &b->text);
    return good;
}

/* A function without a gradient is left out: the message names it. */
static bool leave_out(batch *b, const char *message) {
    const char *name = strstr(message, "program '"), *end = name ? strchr(name + 9, '\'') : NULL;
    if (!end || !strstr(message, "no gradient goes through")) return false;
    ir_func *f = ir_func_find(b->m, base_arena_printf(b->arena, "%.*s", (int)(end - name - 9), name + 9), IR_LEVEL_PROGRAM);
    ir_func_remove(b->m, f);
    n_refused++;
    return checked(b);
}

/* Gradients as code, for the interpreter. */
static bool expand(batch *b) {
    tigac_options o = tigac_defaults();
    o.file_name = "random.ir";
    o.passes = "expand,grad";
    o.emit = TIGAC_EMIT(TIGAC_GRAPH_IR);
    for (;;) {
        tigac_result *r = NULL;
        bool good = tigac_compile(base_str_text(&b->text), b->text.len, &o, &r) == TIGAC_OK;
        const char *text = base_arena_strdup(b->arena, good ? r->outputs[TIGAC_GRAPH_IR].bytes : !r ? "?" : *r->rendered ? r->rendered : r->error);
        tigac_result_free(r);
        if (!good && leave_out(b, text)) continue;
        base_diags diags;
        base_diags_init(&diags, b->arena, "expanded.ir", text);
        b->expanded = good ? ir_parse(b->arena, "expanded.ir", text, &diags) : NULL;
        if (!b->expanded) fail(b, NULL, "-", "the pass grad", good ? "its text does not read back" : text);
        return b->expanded != NULL;
    }
}

static bool make_gradients(batch *b) {
    for (int tame = 0; tame < 2; tame++) {
        b->rng.tame = tame;
        for (int i = 0; i < WITH_GRADIENT; i++) {
            bool kernel = i < WITH_GRADIENT / 2;
            const char *name = base_arena_printf(b->arena, "%s%s%d", tame ? "smooth_" : "", kernel ? "k" : "p", i);
            ir_func *f = kernel ? diff_add_kernel(b->m, name, &b->rng) : diff_add_program(b->m, name, &b->rng);
            const ir_func *first = diff_add_vjp(b->m, f);
            if (first && i % 3 == 0) diff_add_vjp(b->m, first); /* a gradient of the gradient */
        }
    }
    return checked(b) && expand(b);
}

static bool make_module(batch *b) {
    b->arena = base_arena_new();
    b->m = b->expanded = ir_module_new(b->arena, "random.ir", NULL);
    if (b->o->gradients) return make_gradients(b);
    for (int i = 0; i < KERNELS; i++) diff_add_kernel(b->m, base_arena_printf(b->arena, "k%d", i), &b->rng);
    for (int i = 0; i < PROGRAMS; i++) diff_add_program(b->m, base_arena_printf(b->arena, "p%d", i), &b->rng);
    return checked(b);
}

static void first_difference(const char *a, const char *b, base_str *out) {
    size_t line = 0, i = 0;
    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == '\n') line = i + 1;
    base_str_addf(out, "\n  %.*s\n  %.*s", (int)strcspn(a + line, "\n"), a + line, (int)strcspn(b + line, "\n"), b + line);
}

static bool round_trips(batch *b, const char *text, unsigned levels) {
    base_diags diags;
    base_diags_init(&diags, b->arena, "random.ir", text);
    ir_module *again = ir_parse(b->arena, "random.ir", text, &diags);
    base_str out = {0};
    if (again) ir_print(again, levels, &out);
    bool same = again && !strcmp(text, base_str_text(&out));
    if (!same) {
        base_str rendered = {0};
        base_diags_render(&diags, false, &rendered);
        if (again) first_difference(text, base_str_text(&out), &rendered);
        fail(b, NULL, "-", "text form does not read back", base_str_text(&rendered));
        base_str_fini(&rendered);
    }
    if (levels & IR_LEVEL_L) b->loops = again;
    base_str_fini(&out);
    return same;
}

static tiga_module *load(batch *b, const tigac_blob *so) {
    char path[] = "/tmp/tiga_diff_XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file || fwrite(so->bytes, 1, so->n_bytes, file) != so->n_bytes || fclose(file)) {
        fail(b, NULL, "-", "temporary file", path);
        return NULL;
    }
    tiga_module *m = NULL;
    if (tiga_module_load(b->ctx[0], path, &m)) fail(b, NULL, "-", "load", tiga_error_text(b->ctx[0]));
    unlink(path);
    return m;
}

static bool compile(batch *b, int opt_level, tiga_module **out) {
    tigac_options o = tigac_defaults();
    o.file_name = "random.ir";
    o.opt_level = opt_level;
    o.emit = TIGAC_EMIT(TIGAC_SO) | (opt_level ? TIGAC_EMIT(TIGAC_LOOP_IR) : 0);
    tigac_result *r = NULL;
    tigac_status s = tigac_compile(base_str_text(&b->text), b->text.len, &o, &r);
    bool good = s == TIGAC_OK;
    if (!good) fail(b, NULL, "-", opt_level ? "compile -O3" : "compile -O0", r ? (*r->rendered ? r->rendered : r->error) : "?");
    if (good && opt_level) good = round_trips(b, base_arena_strdup(b->arena, r->outputs[TIGAC_LOOP_IR].bytes), IR_LEVEL_K | IR_LEVEL_P | IR_LEVEL_L);
    if (good) good = (*out = load(b, &r->outputs[TIGAC_SO])) != NULL;
    tigac_result_free(r);
    return good;
}

/* ---- running and comparing ---- */
static bool compare(const batch *b, const diff_case *c, void *const *got, const char *how) {
    for (size_t i = 0; i < c->f->n_results; i++) {
        ir_dtype t = c->f->results[i].type.dtype;
        for (int64_t k = 0; k < c->out_elements[i]; k++) {
            if (diff_same_bits(t, c->expected[i], got[i], k)) continue;
            char what[200];
            ir_scalar_value e = ir_load_scalar(t, c->expected[i], k), g = ir_load_scalar(t, got[i], k);
            int which = ir_dtype_is_complex(t) && diff_same_bits(ir_dtype_part(t), c->expected[i], got[i], 2 * k);
            e = ir_part(t, e, which), g = ir_part(t, g, which), t = ir_dtype_part(t);
            double x = ir_eval(IR_CAST, t, IR_F64, &e).d, y = ir_eval(IR_CAST, t, IR_F64, &g).d;
            snprintf(what, sizeof what, "%s[%lld] is %.17g, expected %.17g", c->f->results[i].name, (long long)k, y, x);
            fail(b, c->f, c->graph->what, how, what);
            return false;
        }
    }
    n_runs++;
    return true;
}

static void **new_outputs(const diff_case *c) {
    void **out = calloc(DIFF_MAX_ARRAYS, sizeof *out);
    for (size_t i = 0; i < c->f->n_results; i++) {
        size_t n = (size_t)c->out_elements[i] * ir_dtype_bytes(c->f->results[i].type.dtype);
        out[i] = malloc(n + 1);
        memset(out[i], 0xa5, n + 1); /* whatever is not written shows */
    }
    return out;
}

static void free_outputs(void **out) {
    for (int i = 0; i < DIFF_MAX_ARRAYS; i++) free(out[i]);
    free(out);
}

static void run_loop_interpreter(const batch *b, const diff_case *c) {
    const ir_func *loop = ir_func_find(b->loops, c->f->name, IR_LEVEL_LOOP);
    if (!loop) {
        fail(b, c->f, c->graph->what, "loop interpreter", "no loop function of that name");
        return;
    }
    int64_t dims[16] = {0};
    for (size_t i = 0; i < loop->n_syms; i++) {
        uint32_t s;
        if (ir_sym_find(c->f, loop->syms[i], &s)) dims[i] = c->dims[s];
    }
    void **out = new_outputs(c);
    ir_call_data call = {.graph = &c->graph->data, .dims = dims, .in = (const void *const *)c->in, .out = out,
                         .n_rows = c->graph->data.n_dst};
    base_str err = {0};
    if (ir_interpret_loop(b->loops, loop, &call, &err)) compare(b, c, out, "loop interpreter");
    else fail(b, c->f, c->graph->what, "loop interpreter", base_str_text(&err));
    base_str_fini(&err);
    free_outputs(out);
}

static tiga_array borrow(const diff_case *c, const ir_param *p, void *data) {
    int64_t shape[7];
    int rank = diff_full_shape(c, p, shape);
    return tiga_array_borrow(data, (int32_t)p->type.dtype, rank, shape);
}

static void run_code(batch *b, const diff_case *c, int which) {
    tiga_array arrays[2 * DIFF_MAX_ARRAYS];
    tiga_binding in[DIFF_MAX_ARRAYS], results[DIFF_MAX_ARRAYS];
    int n = 0, n_in = 0, n_out = 0;
    void **out = new_outputs(c);
    for (size_t i = 0; i < c->f->n_params; i++) {
        const ir_param *p = &c->f->params[i];
        if (p->role == IR_GRAPH_FIELD) continue;
        arrays[n] = borrow(c, p, c->in[i]);
        in[n_in++] = (tiga_binding){p->name, &arrays[n++]};
    }
    for (size_t i = 0; i < c->f->n_results; i++) {
        arrays[n] = borrow(c, &c->f->results[i], out[i]);
        results[n_out++] = (tiga_binding){c->f->results[i].name, &arrays[n++]};
    }
    int t = (int)diff_below(&b->rng, 4);
    tiga_context *ctx = b->ctx[t];
    const ir_graph_data *d = &c->graph->data;
    tiga_graph *g = NULL;
    ctx->wide_from = diff_chance(&b->rng, 30);
    tiga_status s = tiga_graph_from_csr(ctx, d->n_dst, d->n_src, d->offsets, d->sources, 64,
                                        diff_chance(&b->rng, 30) ? TIGA_BORROW : TIGA_COPY, &g);
    if (!s) s = tiga_call(ctx, b->code[which], c->f->name, g, in, n_in, results, n_out);
    char how[64];
    snprintf(how, sizeof how, "C at -O%d, %d threads", which ? 3 : 0, thread_counts[t]);
    if (s) fail(b, c->f, c->graph->what, how, tiga_error_text(ctx));
    else compare(b, c, out, how);
    tiga_error_clear(ctx);
    tiga_graph_free(g);
    free_outputs(out);
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

static bool has_empty_row(const ir_graph_data *g) {
    for (int64_t i = 0; i < g->n_dst; i++)
        if (g->offsets[i] == g->offsets[i + 1]) return true;
    return false;
}

/* Of a gradient the cotangents are fields of rows: what is 0 / 0 in a row without edges (mean, std) makes NaN of theirs, as
 * docs/language.md says. */
static void check_slopes(batch *b, const diff_case *c) {
    base_str err = {0};
    if (ends_with(c->f->name, "_vjp_vjp") && has_empty_row(&c->graph->data)) return;
    const char *name = base_arena_printf(b->arena, "%.*s", (int)strlen(c->f->name) - 4, c->f->name);
    const ir_func *f = ir_func_find(b->expanded, name, IR_LEVEL_KERNEL);
    diff_slope found[DIFF_MAX_ARRAYS];
    f = f ? f : ir_func_find(b->expanded, name, IR_LEVEL_PROGRAM);
    diff_check_slopes(b->expanded, f, c, &b->rng, found, &err);
    for (size_t i = 0; i < c->f->n_results; i++) {
        n_slopes += found[i] == DIFF_SLOPE_RIGHT;
        n_unknown += found[i] == DIFF_SLOPE_UNKNOWN;
    }
    if (err.len) fail(b, c->f, c->graph->what, "slopes", base_str_text(&err));
    base_str_fini(&err);
}

static void run_function(batch *b, const ir_func *f) {
    n_functions++;
    if (f->level == IR_LEVEL_KERNEL) n_kernels++;
    else n_programs++;
    for (int i = 0; i < GRAPHS_EACH; i++) {
        diff_graph g = diff_graph_make((int)diff_below(&b->rng, DIFF_GRAPHS), f->needs_square, &b->rng);
        diff_case c;
        base_str err = {0};
        if (!diff_case_make(&c, b->expanded, f, &g, &b->rng, &err))
            fail(b, f, g.what, "graph interpreter", base_str_text(&err));
        else {
            if (f->level == IR_LEVEL_KERNEL) run_loop_interpreter(b, &c);
            run_code(b, &c, 0);
            run_code(b, &c, 1);
            if (b->rng.tame) check_slopes(b, &c);
            if (b->cuda && f->level == IR_LEVEL_KERNEL) {
                void **out = new_outputs(&c);
                if (diff_cuda_run(b->cuda, &c, out, &err)) compare(b, &c, out, "CUDA on the simulated device");
                else fail(b, f, g.what, "CUDA on the simulated device", base_str_text(&err));
                free_outputs(out);
            }
        }
        base_str_fini(&err);
        diff_case_free(&c);
        diff_graph_free(&g);
    }
}

static int write_c(const options *o) {
    batch b = {.o = o, .seed = o->seed, .rng = {o->seed}};
    tigac_options t = tigac_defaults();
    t.file_name = "random.ir";
    t.emit = TIGAC_EMIT(TIGAC_C);
    tigac_result *r = NULL;
    bool good = make_module(&b) && tigac_compile(base_str_text(&b.text), b.text.len, &t, &r) == TIGAC_OK;
    FILE *file = good ? fopen(o->write_c, "wb") : NULL;
    good = file && fwrite(r->outputs[TIGAC_C].bytes, 1, r->outputs[TIGAC_C].n_bytes, file) == r->outputs[TIGAC_C].n_bytes;
    if (file && fclose(file)) good = false;
    tigac_result_free(r);
    base_str_fini(&b.text);
    base_arena_free(b.arena);
    return good ? 0 : 1;
}

/* ---- kernels that gradients are made of, on the simulated device ---- */
static bool has_total(const ir_func *f) {
    for (ir_id id = 1; id < f->n_ops; id++)
        if (ir_at(f, id)->code == IR_TOTAL) return true;
    return false;
}

/* Kernels that callers outside see check that a gather has elements to take, by the name of the number of the last. */
static void name_last_elements(ir_module *m, ir_func *f) {
    for (ir_id id = 1; id < f->n_ops; id++) {
        const ir_op *op = ir_at(f, id);
        ir_dim last;
        if (op->code == IR_GATHER)
            (void)ir_dim_calc(m, f, IR_SUB, ir_at(f, op->args[0])->type.dim[ir_int(op, IR_ATTR_AXIS, 0)], 1, &last);
    }
}

/* Those of the expanded module alone, with names that CUDA can have; totals are two launches and left out. */
static ir_module *gradient_kernels(batch *b) {
    base_str text = {0};
    base_diags diags;
    ir_print(b->expanded, IR_LEVEL_K | IR_LEVEL_P, &text);
    base_diags_init(&diags, b->arena, "kernels.ir", base_str_text(&text));
    ir_module *m = ir_parse(b->arena, "kernels.ir", base_arena_strdup(b->arena, base_str_text(&text)), &diags);
    for (size_t i = m->n_funcs; i-- > 0;) {
        ir_func *f = m->funcs[i];
        if (f->level != IR_LEVEL_KERNEL || !strstr(f->name, ".vjp") || has_total(f)) {
            ir_func_remove(m, f);
            continue;
        }
        char *name = base_arena_strdup(b->arena, f->name);
        for (char *dot = name; (dot = strchr(dot, '.'));) *dot = '_';
        f->name = name;
        f->exported = true;
        name_last_elements(m, f);
    }
    base_str_fini(&text);
    return m;
}

static void run_gradient_kernel(batch *b, const ir_module *m, const ir_func *f, diff_cuda *cuda) {
    diff_graph g = diff_graph_make((int)diff_below(&b->rng, DIFF_GRAPHS), f->needs_square, &b->rng), t = {0};
    diff_case c;
    base_str err = {0};
    n_functions++;
    n_kernels++;
    if (ir_transposed(f)) t = diff_graph_transpose(&g);
    if (!diff_case_make(&c, m, f, ir_transposed(f) ? &t : &g, &b->rng, &err)) {
        fail(b, f, g.what, "graph interpreter", base_str_text(&err));
    } else {
        void **out = new_outputs(&c);
        if (diff_cuda_run(cuda, &c, out, &err)) compare(b, &c, out, "CUDA on the simulated device");
        else fail(b, f, g.what, "CUDA on the simulated device", base_str_text(&err));
        free_outputs(out);
    }
    base_str_fini(&err);
    diff_case_free(&c);
    diff_graph_free(&g);
    diff_graph_free(&t);
}

static void run_gradient_kernels(batch *b) {
    ir_module *m = gradient_kernels(b);
    base_str text = {0}, err = {0};
    ir_print(m, IR_LEVEL_K, &text);
    diff_cuda *cuda = diff_cuda_new(base_str_text(&text), text.len, &err);
    if (!cuda) fail(b, NULL, "-", "CUDA", base_str_text(&err));
    uint64_t after = b->seed * 7919;
    for (size_t i = 0; cuda && i < m->n_funcs; i++) {
        b->rng = (diff_rng){.state = after + 1000003 * (i + 1)};
        if (!b->o->only || !strcmp(b->o->only, m->funcs[i]->name)) run_gradient_kernel(b, m, m->funcs[i], cuda);
    }
    diff_cuda_free(cuda);
    base_str_fini(&text);
    base_str_fini(&err);
}

static void run_batch(const options *o, uint64_t seed) {
    batch b = {.o = o, .seed = seed, .rng = {seed}};
    for (int i = 0; i < 4; i++) {
        tiga_context_options c = tiga_context_defaults();
        c.threads = thread_counts[i];
        if (tiga_context_new(&c, &b.ctx[i])) exit(3);
    }
    bool good = make_module(&b) && round_trips(&b, base_str_text(&b.text), IR_LEVEL_K | IR_LEVEL_P) &&
                compile(&b, 0, &b.code[0]) && compile(&b, 3, &b.code[1]);
    if (good && o->cuda && o->gradients) run_gradient_kernels(&b);
    if (good && o->cuda && !o->gradients) {
        base_str err = {0};
        b.cuda = diff_cuda_new(base_str_text(&b.text), b.text.len, &err);
        if (!b.cuda) fail(&b, NULL, "-", "CUDA", base_str_text(&err));
        base_str_fini(&err);
    }
    uint64_t after = b.rng.state;
    for (size_t i = 0; good && i < b.m->n_funcs; i++) {
        b.rng.state = after + 1000003 * (i + 1); /* so that --only sees the same values */
        const ir_func *f = b.m->funcs[i];
        b.rng.tame = !strncmp(f->name, "smooth", 6);
        if (o->gradients && !ends_with(f->name, "_vjp")) continue;
        if (o->gradients) f = ir_func_find(b.expanded, f->name, IR_LEVEL_PROGRAM);
        if (!o->only || !strcmp(o->only, f->name)) run_function(&b, f);
    }
    diff_cuda_free(b.cuda);
    for (int i = 0; i < 2; i++) tiga_module_free(b.code[i]);
    for (int i = 0; i < 4; i++) tiga_context_free(b.ctx[i]);
    base_str_fini(&b.text);
    base_arena_free(b.arena);
}

static options parse_options(int argc, char **argv) {
    options o = {.seed = 1, .functions = 1000};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--seed")) o.seed = strtoull(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--functions")) o.functions = strtoll(value, NULL, 10), i++;
        else if (!strcmp(argv[i], "--only")) o.only = value, i++;
        else if (!strcmp(argv[i], "--write-c")) o.write_c = value, i++;
        else if (!strcmp(argv[i], "--cuda")) o.cuda = true;
        else if (!strcmp(argv[i], "--gradients")) o.gradients = true;
        else {
            fprintf(stderr, "usage: diff_test [--seed S] [--functions N] [--only NAME] [--cuda] [--gradients] [--write-c FILE]\n");
            exit(2);
        }
    }
    return o;
}

int main(int argc, char **argv) {
    options o = parse_options(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (o.write_c) return write_c(&o);
    for (uint64_t i = 0; n_functions < o.functions && n_failures < MAX_REPORTS; i++) {
        int64_t before = n_functions;
        run_batch(&o, o.seed + i);
        if (n_functions == before) break; /* nothing ran: the batch itself failed, or --only named nothing */
    }
    printf("%lld functions (%lld kernels, %lld programs), %lld runs agree, %d differ\n", (long long)n_functions,
           (long long)n_kernels, (long long)n_programs, (long long)n_runs, n_failures);
    if (o.gradients)
        printf("%lld slopes right, %lld not to be told; %lld functions without a gradient\n", (long long)n_slopes, (long long)n_unknown,
               (long long)n_refused);
    bool told = !o.gradients || o.only || (n_slopes > n_unknown && n_refused < n_functions); /* else nothing was tested */
    return n_failures || !n_functions || !told ? 1 : 0;
}
