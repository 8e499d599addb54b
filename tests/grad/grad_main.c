/* Gradients.  For every f of a .tg file that has an f_vjp, on every relation of the differential test:
 *
 *   - f_vjp in the interpreter = f_vjp compiled at -O0 and at -O3, on 1 and 3 threads, bit for bit;
 *   - f_vjp = central differences of sum(cotangent * f), computed with the compiled f, element by element.
 *
 * Everything is in f64.  Values lie in 0.5 .. 1.5, so logarithms and roots exist and nothing ties; a parameter whose name
 * begins with `holes` is 0 here and there.  Kinks and ties have tests of their own with numbers written down.
 *
 *     grad_test FILE.tg [NAME]      only NAME */
#include "diff.h"

#include "runtime/runtime.h"
#include "tiga/compiler.h"
#include "tiga/tiga.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX = 24, PROBES = 12 };
static const double STEP = 1e-5, TOLERANCE = 2e-6;

typedef struct suite {
    const char *path;
    base_arena *arena;
    base_str source;
    ir_module *m; /* gradients as code, graph level */
    tiga_context *ctx[2];
    tiga_module *code[2];
    diff_rng rng;
    int checks, failures;
} suite;

typedef struct function {
    const ir_func *f;
    int64_t dims[16];
    int64_t shape[MAX][7];
    int rank[MAX];
    int64_t elements[MAX]; /* parameters, then results */
    void *array[MAX];      /* likewise; NULL for a graph */
} function;

/* ---- compiling ---- */
static void die(const suite *s, const char *what, const char *why) {
    printf("%s: %s: %s\n", s->path, what, why);
    exit(1);
}

static tigac_result *compile(const suite *s, int opt_level, const char *passes, int emit) {
    tigac_options o = tigac_defaults();
    o.file_name = s->path;
    o.opt_level = opt_level;
    o.passes = passes;
    o.emit = TIGAC_EMIT(emit);
    tigac_result *r = NULL;
    if (tigac_compile(base_str_text(&s->source), s->source.len, &o, &r) != TIGAC_OK)
        die(s, "compile", r ? (*r->rendered ? r->rendered : r->error) : "out of memory");
    return r;
}

static tiga_module *load(suite *s, int opt_level) {
    tigac_result *r = compile(s, opt_level, NULL, TIGAC_SO);
    char path[] = "/tmp/tiga_grad_XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file || fwrite(r->outputs[TIGAC_SO].bytes, 1, r->outputs[TIGAC_SO].n_bytes, file) == 0 || fclose(file))
        die(s, "temporary file", path);
    tiga_module *m = NULL;
    if (tiga_module_load(s->ctx[0], path, &m)) die(s, "load", tiga_error_text(s->ctx[0]));
    unlink(path);
    tigac_result_free(r);
    return m;
}

static ir_module *expand(suite *s) {
    tigac_result *r = compile(s, 3, "expand,grad,fold,cse,dce", TIGAC_GRAPH_IR);
    const char *text = base_arena_strdup(s->arena, r->outputs[TIGAC_GRAPH_IR].bytes);
    base_diags diags;
    base_diags_init(&diags, s->arena, "expanded.ir", text);
    ir_module *m = ir_parse(s->arena, "expanded.ir", text, &diags);
    base_str err = {0}, again = {0};
    if (!m || !ir_verify(m, &err)) die(s, "the expanded module", base_str_text(&err));
    ir_print(m, IR_LEVEL_K | IR_LEVEL_P, &again);
    if (strcmp(text, base_str_text(&again))) die(s, "the expanded module", "does not read back as it was");
    base_str_fini(&again);
    tigac_result_free(r);
    return m;
}

/* ---- arrays ---- */
static int64_t size_of_dim(const ir_func *f, const ir_graph_data *g, uint32_t sym) {
    const char *name = f->syms[sym], *dot = strrchr(name, '.');
    static const int64_t sizes[] = {3, 2, 5, 1};
    if (!dot) return !strcmp(name, "H") ? 2 : !strcmp(name, "K") ? 4 : !strcmp(name, "W") ? 11 : sizes[(unsigned char)name[0] % 2];
    return !strcmp(dot, ".dst") ? g->n_dst : !strcmp(dot, ".src") ? g->n_src : g->n_edges;
}

static int64_t lead(const ir_graph_data *g, const ir_param *p, bool result) {
    if (result) return p->type.space == IR_EDGE ? g->n_edges : g->n_dst;
    return p->role == IR_SRC ? g->n_src : p->role == IR_EDGE_FIELD ? g->n_edges : p->role == IR_PARAM_FIELD ? -1 : g->n_dst;
}

static double value(suite *s, const char *name) {
    if (!strncmp(name, "holes", 5) && diff_chance(&s->rng, 35)) return 0;
    return 0.5 + (double)diff_below(&s->rng, 1000003) / 1000003.0;
}

static void fill(suite *s, const ir_param *p, void *data, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        ir_scalar_value v = {.i = diff_below(&s->rng, 4)};
        if (p->type.dtype == IR_F64) v.d = value(s, p->name);
        if (p->type.dtype == IR_F32) v.f = (float)value(s, p->name);
        if (p->type.dtype == IR_BOOL) v.i &= 1;
        ir_store_scalar(p->type.dtype, data, i, v);
    }
}

static function prepare(suite *s, const ir_func *f, const ir_graph_data *g) {
    function x = {.f = f};
    for (uint32_t i = 0; i < f->n_syms; i++) x.dims[i] = size_of_dim(f, g, i);
    ir_compute_dims(f, x.dims);
    for (size_t i = 0; i < f->n_params + f->n_results; i++) {
        bool result = i >= f->n_params;
        const ir_param *p = result ? &f->results[i - f->n_params] : &f->params[i];
        int64_t first = f->level == IR_LEVEL_KERNEL ? lead(g, p, result) : -1;
        if (!result && p->role == IR_GRAPH_FIELD) continue;
        x.elements[i] = 1;
        if (first >= 0) x.shape[i][x.rank[i]++] = first;
        for (uint32_t k = 0; k < p->type.rank; k++)
            x.shape[i][x.rank[i]++] = p->type.dim[k] >= 0 ? p->type.dim[k] : x.dims[ir_dim_sym_index(p->type.dim[k])];
        for (int k = 0; k < x.rank[i]; k++) x.elements[i] *= x.shape[i][k];
        x.array[i] = calloc((size_t)x.elements[i] + 1, 8);
        if (!result) fill(s, p, x.array[i], x.elements[i]);
    }
    return x;
}

static void release(function *x) {
    for (int i = 0; i < MAX; i++) free(x->array[i]);
}

/* ---- running ---- */
static int uses_graph(const ir_func *f) {
    int n = f->level == IR_LEVEL_KERNEL;
    for (size_t i = 0; i < f->n_params; i++) n += f->params[i].role == IR_GRAPH_FIELD;
    return n;
}

static void run_code(suite *s, function *x, tiga_graph *g, int which, int threads, tiga_call_stats *stats) {
    tiga_array arrays[MAX];
    tiga_binding in[MAX], out[MAX];
    int n_in = 0, n_out = 0;
    for (size_t i = 0; i < x->f->n_params + x->f->n_results; i++) {
        bool result = i >= x->f->n_params;
        const ir_param *p = result ? &x->f->results[i - x->f->n_params] : &x->f->params[i];
        if (!x->array[i]) continue;
        arrays[i] = tiga_array_borrow(x->array[i], (int32_t)p->type.dtype, x->rank[i], x->shape[i]);
        if (result) out[n_out++] = (tiga_binding){p->name, &arrays[i]};
        else in[n_in++] = (tiga_binding){p->name, &arrays[i]};
    }
    if (tiga_call_many(s->ctx[threads], s->code[which], x->f->name, &g, uses_graph(x->f), in, n_in, out, n_out, stats))
        die(s, x->f->name, tiga_error_text(s->ctx[threads]));
}

static void interpret(suite *s, function *x, const ir_graph_data *g) {
    const ir_graph_data *graphs[MAX] = {0};
    base_str err = {0};
    for (size_t i = 0; i < x->f->n_params; i++) graphs[i] = x->f->params[i].role == IR_GRAPH_FIELD ? g : NULL;
    ir_call_data call = {.graph = g, .graphs = graphs, .dims = x->dims, .in = (const void *const *)x->array,
                         .out = x->array + x->f->n_params, .n_rows = g->n_dst};
    if (!ir_interpret_graph(s->m, x->f, &call, &err)) die(s, x->f->name, base_str_text(&err));
}

/* ---- checks ---- */
static void fail(suite *s, const function *x, const char *graph, const char *fmt, ...) {
    va_list ap;
    if (++s->failures > 10) return;
    printf("FAIL %s: %s on '%s': ", s->path, x->f->name, graph);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

static void compare_bits(suite *s, const function *x, void *const *got, const char *graph, const char *how) {
    for (size_t i = 0; i < x->f->n_results; i++) {
        ir_dtype t = x->f->results[i].type.dtype;
        size_t at = x->f->n_params + i;
        for (int64_t k = 0; k < x->elements[at]; k++) {
            if (diff_same_bits(t, x->array[at], got[i], k)) continue;
            fail(s, x, graph, "%s: %s[%lld] differs: %.17g, the interpreter says %.17g", how, x->f->results[i].name,
                 (long long)k, t == IR_F64 ? ((double *)got[i])[k] : (double)((float *)got[i])[k],
                 t == IR_F64 ? ((double *)x->array[at])[k] : (double)((float *)x->array[at])[k]);
            return;
        }
        s->checks++;
    }
}

static void compare_code(suite *s, function *x, tiga_graph *g, const char *graph) {
    for (int which = 0; which < 2; which++)
        for (int threads = 0; threads < 2; threads++) {
            function y = *x;
            for (size_t i = 0; i < x->f->n_results; i++) {
                y.array[x->f->n_params + i] = malloc((size_t)x->elements[x->f->n_params + i] * 8 + 1);
                memset(y.array[x->f->n_params + i], 0xa5, (size_t)x->elements[x->f->n_params + i] * 8 + 1);
            }
            run_code(s, &y, g, which, threads, NULL);
            compare_bits(s, x, y.array + x->f->n_params, graph, which ? "C at -O3" : "C at -O0");
            for (size_t i = 0; i < x->f->n_results; i++) free(y.array[x->f->n_params + i]);
        }
}

static size_t param_named(const ir_func *f, const char *name) {
    for (size_t i = 0; i < f->n_params; i++)
        if (!strcmp(f->params[i].name, name)) return i;
    return SIZE_MAX;
}

/* sum(cotangent * f), the cotangents being parameters of the vjp, in the order of f's float results. */
static double weighted(suite *s, function *f, const function *vjp, tiga_graph *g) {
    double sum = 0;
    size_t ct = vjp->f->n_params;
    for (size_t i = 0; i < f->f->n_results; i++) ct -= f->f->results[i].type.dtype == IR_F64;
    run_code(s, f, g, 1, 0, NULL);
    for (size_t i = 0; i < f->f->n_results; i++) {
        if (f->f->results[i].type.dtype != IR_F64) continue;
        const double *y = f->array[f->f->n_params + i], *c = vjp->array[ct++];
        for (int64_t k = 0; k < f->elements[f->f->n_params + i]; k++) sum += c[k] == 0 ? 0 : c[k] * y[k];
    }
    return sum;
}

static void probe(suite *s, function *f, const function *vjp, tiga_graph *g, const char *graph, size_t result) {
    const char *name = vjp->f->results[result].name;
    size_t p = param_named(f->f, name);
    double *x = f->array[p], *got = vjp->array[vjp->f->n_params + result];
    for (int i = 0; i < PROBES && f->elements[p]; i++) {
        int64_t k = f->elements[p] <= PROBES ? i : diff_below(&s->rng, f->elements[p]);
        if (k >= f->elements[p]) return;
        double old = x[k];
        x[k] = old + STEP;
        double up = weighted(s, f, vjp, g);
        x[k] = old - STEP;
        double down = weighted(s, f, vjp, g), want = (up - down) / (2 * STEP);
        x[k] = old;
        s->checks++;
        if (isnan(want) && isnan(got[k])) continue;
        double scale = 1 + fabs(want) + 1e-4 * (fabs(up) + fabs(down));
        if (!(fabs(want - got[k]) <= TOLERANCE * scale))
            fail(s, vjp, graph, "%s[%lld] is %.12g, central differences give %.12g", name, (long long)k, got[k], want);
    }
}

/* Rows without edges may make f NaN (0 / 0): they get the cotangent 0. */
static void spare_empty_rows(function *vjp, const ir_func *f, const ir_graph_data *g) {
    if (f->level != IR_LEVEL_KERNEL || strncmp(f->name, "bare_", 5) != 0) return;
    for (size_t i = 0; i < vjp->f->n_params; i++) {
        if (strncmp(vjp->f->params[i].name, "cotangent", 9) != 0 || vjp->shape[i][0] != g->n_dst) continue;
        for (int64_t k = 0; k < vjp->elements[i]; k++) {
            int64_t row = k / (vjp->elements[i] / g->n_dst);
            if (g->offsets[row] == g->offsets[row + 1]) ((double *)vjp->array[i])[k] = 0;
        }
    }
}

static void check(suite *s, const ir_func *f, const ir_func *vjp, const diff_graph *g) {
    tiga_graph *graph = NULL;
    const ir_graph_data *d = &g->data;
    s->ctx[0]->wide_from = d->n_edges % 2; /* both widths of transposed relations come up */
    if (tiga_graph_from_csr(s->ctx[0], d->n_dst, d->n_src, d->offsets, d->sources, 64, TIGA_COPY, &graph))
        die(s, "graph", tiga_error_text(s->ctx[0]));
    function y = prepare(s, f, d), x = prepare(s, vjp, d);
    for (size_t i = 0; i < f->n_params; i++) {
        size_t p = param_named(vjp, f->params[i].name);
        if (y.array[i]) memcpy(y.array[i], x.array[p], (size_t)y.elements[i] * ir_dtype_bytes(f->params[i].type.dtype));
    }
    spare_empty_rows(&x, f, d);
    interpret(s, &x, d);
    compare_code(s, &x, graph, g->what);
    for (size_t r = 0; r < vjp->n_results; r++)
        if (vjp->results[r].type.dtype == IR_F64) probe(s, &y, &x, graph, g->what, r);
    release(&y);
    release(&x);
    tiga_graph_free(graph);
}

static const ir_func *forward_of(const ir_module *m, const ir_func *vjp) {
    char name[256];
    size_t n = strlen(vjp->name);
    if (vjp->level != IR_LEVEL_PROGRAM || n < 5 || strcmp(vjp->name + n - 4, "_vjp") != 0) return NULL;
    snprintf(name, sizeof name, "%.*s", (int)(n - 4), vjp->name);
    const ir_func *k = ir_func_find(m, name, IR_LEVEL_KERNEL);
    return k ? k : ir_func_find(m, name, IR_LEVEL_PROGRAM);
}

int main(int argc, char **argv) {
    suite s = {.path = argc > 1 ? argv[1] : "", .arena = base_arena_new(), .rng = {7}};
    base_str err = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2 || !base_file_read(s.path, &s.source, &err)) die(&s, "read", base_str_text(&err));
    for (int i = 0; i < 2; i++) {
        tiga_context_options o = tiga_context_defaults();
        o.threads = i ? 3 : 1;
        if (tiga_context_new(&o, &s.ctx[i])) die(&s, "context", "cannot be made");
    }
    for (int i = 0; i < 2; i++) s.code[i] = load(&s, i ? 3 : 0);
    s.m = expand(&s);
    int n = 0;
    for (size_t i = 0; i < s.m->n_funcs; i++) {
        const ir_func *vjp = s.m->funcs[i], *f = forward_of(s.m, vjp);
        if (!f || (argc > 2 && strcmp(f->name, argv[2]) != 0)) continue;
        n++;
        for (int g = 0; g < DIFF_GRAPHS; g++) {
            diff_graph graph = diff_graph_make(g, vjp->needs_square, &s.rng);
            check(&s, f, vjp, &graph);
            diff_graph_free(&graph);
        }
    }
    printf("%s: %d functions, %d checks, %d failures\n", s.path, n, s.checks, s.failures);
    for (int i = 0; i < 2; i++) tiga_module_free(s.code[i]);
    for (int i = 0; i < 2; i++) tiga_context_free(s.ctx[i]);
    base_str_fini(&s.source);
    base_arena_free(s.arena);
    return s.failures || !n;
}
