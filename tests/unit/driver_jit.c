/* The JIT from C: the same results as a shared object, diagnostics as a list, wrong arguments, every allocation failing. */
#include "driver/drv_jit.h"
#include "driver/drv_pipeline.h"
#include "driver_support.h"
#include "runtime/runtime.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static tiga_context *ctx;
static void open_context(void) { cr_assert_eq(tiga_context_new(NULL, &ctx), TIGA_OK); }
static void close_context(void) { tiga_context_free(ctx); }
TestSuite(jit, .init = open_context, .fini = close_context);

static tiga_module *jit(const char *text, const tiga_jit_options *o) {
    tiga_module *m;
    tigac_result *r;
    tiga_status s = tiga_jit_source(ctx, text, strlen(text), o, &m, &r);
    cr_assert_eq(s, TIGA_OK, "%d %s %s", s, tiga_error_text(ctx), r ? r->rendered : "");
    cr_assert_null(r);
    return m;
}

static tiga_module *ahead_of_time(const char *text, int opt_level) {
    tigac_options o = tigac_defaults();
    tigac_result *r;
    tiga_module *m;
    char path[] = "/tmp/tiga_jit_XXXXXX.so";
    o.opt_level = opt_level;
    cr_assert_eq(tigac_compile(text, strlen(text), &o, &r), TIGAC_OK);
    int fd = mkstemps(path, 3);
    cr_assert(fd >= 0 && write(fd, r->outputs[TIGAC_SO].bytes, r->outputs[TIGAC_SO].n_bytes) > 0);
    close(fd);
    cr_assert_eq(tiga_module_load(ctx, path, &m), TIGA_OK);
    unlink(path);
    tigac_result_free(r);
    return m;
}

static void same_both_ways(const char *text) {
    for (int level = 0; level <= 3; level++) {
        tiga_jit_options o = tiga_jit_defaults();
        o.opt_level = level;
        tiga_module *a = jit(text, &o), *b = ahead_of_time(text, level);
        for (int bits = 32; bits <= 64; bits += 32) {
            uint64_t x = test_call_all(ctx, a, bits), y = test_call_all(ctx, b, bits);
            cr_assert(x && x == y, "-O%d, %d bits: %llx, not %llx; %s", level, bits, (unsigned long long)x,
                      (unsigned long long)y, tiga_error_text(ctx));
        }
        cr_assert_str_eq(tiga_module_get_info(a)->target_features, tiga_module_get_info(b)->target_features);
        tiga_module_free(a);
        tiga_module_free(b);
    }
}

Test(jit, same_as_a_shared_object) { same_both_ways(readme_text); }

Test(jit, examples_are_the_same) {
    static const char *const names[] = {"gcn", "pagerank"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        base_str path = {0}, text = {0};
        base_str_addf(&path, "%s/examples/%s.tg", TIGA_SOURCE_DIR, names[i]);
        cr_assert(base_file_read(base_str_text(&path), &text, NULL));
        same_both_ways(base_str_text(&text));
        base_str_fini(&path);
        base_str_fini(&text);
    }
}

/* ---- diagnostics ---- */
Test(jit, errors_as_a_list) {
    tiga_jit_options o = tiga_jit_defaults();
    tiga_module *m;
    tigac_result *r, *same;
    tigac_options c = tigac_defaults();
    const char *text = "kernel k(src x: f32) -> f32 {\n    return src.x\n}\nkernel l(src x: f32) -> f32 { return y }\n";
    c.file_name = o.file_name = "here/m.tg";
    cr_assert_eq(tiga_jit_source(ctx, text, strlen(text), &o, &m, &r), TIGA_E_PROGRAM);
    cr_assert(!m && r);
    cr_assert_eq(tigac_compile(text, strlen(text), &c, &same), TIGAC_E_PROGRAM);
    cr_assert_str_eq(r->rendered, same->rendered);
    cr_assert_eq(r->n_diagnostics, same->n_diagnostics);
    cr_assert_gt(r->n_diagnostics, 1);
    for (size_t i = 0; i < r->n_diagnostics; i++) {
        const tigac_diagnostic *a = &r->diagnostics[i], *b = &same->diagnostics[i];
        cr_assert(a->is_error == b->is_error && a->line == b->line && a->column == b->column && a->length == b->length);
        cr_assert(!strcmp(a->id, b->id) && !strcmp(a->file, b->file) && !strcmp(a->text, b->text));
        cr_assert(!a->label == !b->label && (!a->label || !strcmp(a->label, b->label)));
        cr_assert_eq(a->n_notes, b->n_notes);
        for (size_t k = 0; k < a->n_notes; k++)
            cr_assert(!strcmp(a->notes[k].text, b->notes[k].text) && a->notes[k].line == b->notes[k].line);
    }
    const char *line = tiga_error_text(ctx);
    cr_assert(strstr(line, "here/m.tg:2:12: error[E0") == line && strstr(line, "(and 1 more)"), "%s", line);
    tigac_result_free(r);
    tigac_result_free(same);
    tiga_error_clear(ctx);
    cr_assert_eq(tiga_jit_source(ctx, text, strlen(text), &o, &m, NULL), TIGA_E_PROGRAM);
    cr_assert_eq(tiga_error_status(ctx), TIGA_E_PROGRAM);
}

Test(jit, warnings) {
    tiga_jit_options o = tiga_jit_defaults();
    tigac_define d = {"G", 3};
    tiga_module *m;
    tigac_result *r;
    o.defines = &d;
    o.n_defines = 1;
    cr_assert_eq(tiga_jit_source(ctx, sum_text, strlen(sum_text), &o, &m, &r), TIGA_OK);
    cr_assert(r && r->n_diagnostics == 1 && !strcmp(r->diagnostics->id, "W0011") && !r->diagnostics->is_error);
    cr_assert(strstr(r->rendered, "warning[W0011]"));
    tigac_result_free(r);
    tiga_module_free(m);
    o.warnings_are_errors = 1;
    cr_assert_eq(tiga_jit_source(ctx, sum_text, strlen(sum_text), &o, &m, &r), TIGA_E_PROGRAM);
    cr_assert(!m && r && r->diagnostics->is_error);
    tigac_result_free(r);
}

Test(jit, a_byte_that_is_zero) {
    tiga_module *m;
    tigac_result *r;
    cr_assert_eq(tiga_jit_source(ctx, "kernel\0k", 8, NULL, &m, &r), TIGA_E_PROGRAM);
    cr_assert(r && strstr(r->rendered, "byte 6 of the text is 0"));
    tigac_result_free(r);
}

Test(jit, a_good_compile_after_a_bad_one) {
    tiga_module *m;
    cr_assert_eq(tiga_jit_source(ctx, bad_text, strlen(bad_text), NULL, &m, NULL), TIGA_E_PROGRAM);
    cr_assert_null(m);
    tiga_error_clear(ctx);
    m = jit(sum_text, NULL);
    cr_assert(test_call_all(ctx, m, 32));
    tiga_module_free(m);
}

/* ---- arguments ---- */
#define FAILS(call, status, words)                                                                                     \
    do {                                                                                                               \
        tiga_error_clear(ctx);                                                                                         \
        m = (tiga_module *)ctx;                                                                                        \
        cr_assert_eq(call, status, "%s", tiga_error_text(ctx));                                                        \
        cr_assert(strstr(tiga_error_text(ctx), words), "'%s' lacks '%s'", tiga_error_text(ctx), words);                \
        cr_assert_null(m);                                                                                             \
    } while (0)

Test(jit, wrong_arguments) {
    tiga_module *m;
    tiga_jit_options o = tiga_jit_defaults();
    size_t n = strlen(sum_text);
    tigac_define negative = {"F", -1}, unnamed = {NULL, 1};
    FAILS(tiga_jit_source(ctx, NULL, 1, NULL, &m, NULL), TIGA_E_ARGUMENT, "NULL");
    cr_assert_eq(tiga_jit_source(NULL, sum_text, n, NULL, &m, NULL), TIGA_E_ARGUMENT);
    cr_assert_eq(tiga_jit_source(ctx, sum_text, n, NULL, NULL, NULL), TIGA_E_ARGUMENT);
    o.opt_level = 4;
    FAILS(tiga_jit_source(ctx, sum_text, n, &o, &m, NULL), TIGA_E_ARGUMENT, "opt_level is 0 .. 3");
    o = tiga_jit_defaults();
    o.cpu = "znver44";
    FAILS(tiga_jit_source(ctx, sum_text, n, &o, &m, NULL), TIGA_E_ARGUMENT, "did you mean 'znver4'?");
    o = tiga_jit_defaults();
    o.n_defines = 1;
    FAILS(tiga_jit_source(ctx, sum_text, n, &o, &m, NULL), TIGA_E_ARGUMENT, "defines is NULL");
    o.defines = &unnamed;
    FAILS(tiga_jit_source(ctx, sum_text, n, &o, &m, NULL), TIGA_E_ARGUMENT, "a name is NULL");
    o.defines = &negative;
    FAILS(tiga_jit_source(ctx, sum_text, n, &o, &m, NULL), TIGA_E_ARGUMENT, "-D F: a dimension is not negative");
    o = tiga_jit_defaults();
    o.struct_bytes = 0;
    FAILS(tiga_jit_source(ctx, sum_text, n, &o, &m, NULL), TIGA_E_ARGUMENT, "tiga_jit_defaults()");
    o = (tiga_jit_options){.struct_bytes = offsetof(tiga_jit_options, cpu)}; /* an older caller */
    cr_assert_eq(tiga_jit_source(ctx, sum_text, n, &o, &m, NULL), TIGA_OK);
    tiga_module_free(m);
    cr_assert_eq(tiga_jit_source(ctx, NULL, 0, NULL, &m, NULL), TIGA_OK, "%s", tiga_error_text(ctx)); /* no functions */
    cr_assert_eq(tiga_module_get_info(m)->n_functions, 0);
    tiga_module_free(m);
}

Test(jit, files) {
    tiga_module *m;
    char path[] = "/tmp/tiga_jit_XXXXXX.tg";
    tigac_result *r;
    FAILS(tiga_jit_file(ctx, "/nowhere/m.tg", NULL, &m, NULL), TIGA_E_FILE, "/nowhere/m.tg");
    FAILS(tiga_jit_file(ctx, "/tmp", NULL, &m, NULL), TIGA_E_FILE, "/tmp");
    FAILS(tiga_jit_file(ctx, NULL, NULL, &m, NULL), TIGA_E_ARGUMENT, "tiga_jit_file");
    int fd = mkstemps(path, 3);
    cr_assert(write(fd, bad_text, strlen(bad_text)) > 0);
    close(fd);
    FAILS(tiga_jit_file(ctx, path, NULL, &m, &r), TIGA_E_PROGRAM, path);
    cr_assert_str_eq(r->diagnostics->file, path);
    tigac_result_free(r);
    fd = open(path, O_WRONLY | O_TRUNC);
    cr_assert(write(fd, sum_text, strlen(sum_text)) > 0);
    close(fd);
    cr_assert_eq(tiga_jit_file(ctx, path, NULL, &m, &r), TIGA_OK);
    cr_assert(!r && test_call_all(ctx, m, 32));
    cr_assert_str_eq(tiga_module_get_info(m)->source_name, strrchr(path, '/') + 1);
    tiga_module_free(m);
    unlink(path);
}

/* ---- wide graphs ---- */
static const char two_graphs[] = "kernel total(src x: f32) -> f32 { return reduce sum(src.x) }\n"
                                 "program both(a: graph, b: graph, x: f32[a.src], y: f32[b.src]) -> f32[a.dst] {\n"
                                 "    return total(a, x = x) + sum(total(b, x = y))\n"
                                 "}\n";

Test(jit, both_widths_in_one_call) {
    tiga_module *m = jit(two_graphs, NULL);
    tiga_graph *narrow = test_graph(ctx, 32), *wide = test_graph(ctx, 64);
    tiga_graph *sets[4][2] = {{narrow, narrow}, {narrow, wide}, {wide, narrow}, {wide, wide}};
    float values[TEST_NODES], first[TEST_NODES];
    int64_t n = TEST_NODES;
    for (int i = 0; i < TEST_NODES; i++)
        values[i] = (float)i;
    tiga_array x = tiga_array_borrow(values, TIGA_F32, 1, &n), out;
    tiga_binding in[] = {{"x", &x}, {"y", &x}}, outs[] = {{"out", &out}};
    for (int i = 0; i < 4; i++) {
        memset(&out, 0, sizeof out);
        tiga_status s = tiga_call_many(ctx, m, "both", sets[i], 2, in, 2, outs, 1, NULL);
        cr_assert_eq(s, TIGA_OK, "%s", tiga_error_text(ctx));
        if (i == 0)
            memcpy(first, out.data, sizeof first);
        cr_assert(!memcmp(first, out.data, sizeof first));
        tiga_array_free(&out);
    }
    tiga_graph_free(narrow);
    tiga_graph_free(wide);
    tiga_module_free(m);
}

/* ---- every allocation of ours fails in turn ---- */
static uint64_t fail_each(const char *text, tiga_status otherwise) {
    bool reached = true;
    uint64_t k = 0;
    while (reached) {
        tiga_module *m;
        tigac_result *r;
        k++;
        tiga_error_clear(ctx);
        base_inject_at(BASE_INJECT_ALLOC, k);
        tiga_status s = tiga_jit_source(ctx, text, strlen(text), NULL, &m, &r);
        reached = base_inject_count(BASE_INJECT_ALLOC) >= k;
        base_inject_at(BASE_INJECT_ALLOC, 0);
        cr_assert((s == TIGA_OK) == (m != NULL));
        cr_assert(s == otherwise || (reached && s == TIGA_E_MEMORY), "%llu: %d %s", (unsigned long long)k, s,
                  tiga_error_text(ctx));
        cr_assert((r != NULL) == (s == TIGA_E_PROGRAM));
        cr_assert(!m || test_call_all(ctx, m, 32));
        tigac_result_free(r);
        tiga_module_free(m);
    }
    return k;
}

Test(jit, every_allocation_fails, .timeout = 300) {
    static const char cast[] = "kernel k(src x: f32) -> i64 { return reduce sum(i64(src.x)) }\n";
    cr_assert_gt(fail_each(cast, TIGA_OK), 50);
    cr_assert_gt(fail_each(sum_text, TIGA_OK), 50);
    cr_assert_gt(fail_each(bad_text, TIGA_E_PROGRAM), 15);
}

/* ---- given up ---- */
typedef struct countdown {
    atomic_long left; /* negative: never */
    atomic_long asked;
} countdown;

static bool is_over(void *user) {
    countdown *c = user;
    atomic_fetch_add(&c->asked, 1);
    return atomic_load(&c->left) >= 0 && atomic_fetch_sub(&c->left, 1) <= 0;
}

/* Compiles until the k-th question; how often it was asked. */
static long compile_until(const char *text, int level, long k) {
    tigac_options o = tigac_defaults();
    countdown c;
    drv_stop stop = {.asked = is_over, .user = &c};
    drv_recipe recipe = {.file_name = "<text>"};
    drv_cpu own;
    const drv_cpu *cpu;
    base_str objects[CG_MOST_PARTS] = {0};
    drv_result *r;
    o.opt_level = level;
    atomic_init(&c.left, k);
    atomic_init(&c.asked, 0);
    cr_assert_eq(drv_code_cpu(&recipe, ctx, &own, &cpu), TIGA_OK);
    tigac_status s = drv_compile_objects(text, strlen(text), &o, cpu, 32, &stop, objects, &r);
    if (drv_stop_seen(&stop))
        cr_assert(s == TIGAC_E_ENVIRONMENT && !strcmp(r->pub.error, "interrupted"), "%ld: %d %s", k, s, r->pub.error);
    else
        cr_assert(s == TIGAC_OK && objects[0].len && !r->pub.n_diagnostics, "%ld: %s", k, r->pub.error);
    tigac_result_free(&r->pub);
    for (int i = 0; i < CG_MOST_PARTS; i++)
        base_str_fini(&objects[i]);
    return atomic_load(&c.asked);
}

Test(jit, given_up_at_any_moment, .timeout = 300) {
    for (int level = 0; level <= 3; level++) {
        long n = compile_until(readme_text, level, -1), step = n / 40 + 1;
        cr_assert_gt(n, level == 0 ? 20 : 100);
        for (long k = 0; k <= n; k += k < 8 ? 1 : step)
            compile_until(readme_text, level, k);
    }
}

static void *interrupt_often(void *arg) {
    atomic_bool *done = arg;
    while (!atomic_load(done)) {
        tiga_interrupt(ctx);
        usleep(500);
    }
    return NULL;
}

/* From another thread, as often as it likes; without a cache as with one, which keeps nothing of it. */
Test(jit, interrupted, .timeout = 60) {
    tiga_cache_options co = tiga_cache_defaults();
    tiga_jit_options o = tiga_jit_defaults();
    co.folder = "";
    for (int cached = 0; cached < 2; cached++) {
        atomic_bool done;
        pthread_t other;
        tiga_module *m;
        atomic_init(&done, false);
        cr_assert(!cached || tiga_cache_new(&co, &o.cache) == TIGA_OK);
        cr_assert_eq(pthread_create(&other, NULL, interrupt_often, &done), 0);
        tiga_status s = tiga_jit_source(ctx, readme_text, strlen(readme_text), &o, &m, NULL);
        atomic_store(&done, true);
        pthread_join(other, NULL);
        cr_assert(s == TIGA_E_INTERRUPTED && !m, "%d %s", s, tiga_error_text(ctx));
        cr_assert_str_eq(tiga_error_text(ctx), "interrupted while it compiles");
        tiga_error_clear(ctx);
        tiga_interrupt(ctx); /* before a call begins: of no account */
        m = jit(readme_text, &o);
        cr_assert(test_call_all(ctx, m, 32));
        tiga_module_free(m);
        if (cached) {
            tiga_cache_counters n = tiga_cache_get_counters(o.cache);
            cr_assert(n.misses == 2 && n.failed == 0 && n.memory_entries == 1);
        }
        tiga_cache_free(o.cache);
    }
}

/* ---- what a graph keeps ---- */
static const char gradient_text[] =
    "kernel f(src x: f32, edge w: f32) -> f32 { return reduce sum(edge.w * src.x) }\nexport vjp f(x, w)\n";

typedef struct user {
    tiga_module *m;
    tiga_graph *g;
    int64_t transposes;
    float *result; /* [n_src] */
} user;

/* The gradient of x, one call; how often the graph was transposed for it. */
static int64_t gradient(tiga_context *c, tiga_module *m, tiga_graph *g, float *result) {
    int64_t n = tiga_graph_csr(g)->n_dst, k = tiga_graph_csr(g)->n_edges;
    tiga_array x, w, seed, dx = {0}, dw = {0};
    cr_assert(!tiga_array_new(c, TIGA_F32, 1, &n, &x) && !tiga_array_new(c, TIGA_F32, 1, &k, &w) &&
              !tiga_array_new(c, TIGA_F32, 1, &n, &seed));
    test_fill(&x, TIGA_F32, 1);
    test_fill(&w, TIGA_F32, 2);
    test_fill(&seed, TIGA_F32, 3);
    tiga_call_stats stats;
    tiga_binding in[] = {{"x", &x}, {"w", &w}, {"cotangent", &seed}}, out[] = {{"x", &dx}, {"w", &dw}};
    cr_assert_eq(tiga_call_many(c, m, "f_vjp", &g, 1, in, 3, out, 2, &stats), TIGA_OK, "%s", tiga_error_text(c));
    memcpy(result, dx.data, (size_t)n * sizeof *result);
    tiga_array_free(&x);
    tiga_array_free(&w);
    tiga_array_free(&seed);
    tiga_array_free(&dx);
    tiga_array_free(&dw);
    return stats.transposes;
}

/* The module has code for 32-bit columns until a graph needs other. */
Test(jit, both_widths_of_a_transposed_relation) {
    enum { NODES = 300 };
    tiga_module *m = jit(gradient_text, NULL);
    static float results[2][NODES];
    for (int wide = 0; wide < 2; wide++) {
        tiga_graph *g;
        ctx->wide_from = wide;
        cr_assert_eq(tiga_graph_uniform(ctx, NODES, 8, 1, &g), TIGA_OK);
        cr_assert_eq(gradient(ctx, m, g, results[wide]), 1);
        cr_assert_eq(g->csr.source_bits, 32);
        cr_assert_eq(g->transposed.source_bits, wide ? 64 : 32);
        tiga_graph_free(g);
    }
    cr_assert(memcmp(results[0], results[1], sizeof *results) == 0);
    tiga_module_free(m);
}

static void *use(void *arg) {
    user *u = arg;
    tiga_context *c;
    cr_assert_eq(tiga_context_new(NULL, &c), TIGA_OK);
    for (int i = 0; i < 5; i++)
        u->transposes += gradient(c, u->m, u->g, u->result);
    tiga_context_free(c);
    return NULL;
}

Test(jit, a_graph_is_transposed_once) {
    enum { USERS = 8, NODES = 3000 };
    tiga_graph *g, *h;
    char path[] = "/tmp/tiga_jit_XXXXXX.npz";
    static float results[USERS + 1][NODES];
    user users[USERS];
    pthread_t threads[USERS];
    tiga_module *m = jit(gradient_text, NULL);
    cr_assert_eq(tiga_graph_uniform(ctx, NODES, 8, 1, &g), TIGA_OK);
    int fd = mkstemps(path, 4);
    cr_assert(fd >= 0 && close(fd) == 0);
    for (int i = 0; i < USERS; i++) {
        users[i] = (user){m, g, 0, results[i]};
        cr_assert_eq(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    int64_t built = 0;
    for (int i = 0; i < USERS; i++) {
        pthread_join(threads[i], NULL);
        built += users[i].transposes;
    }
    cr_assert_eq(built, 1);
    cr_assert_eq(tiga_graph_write_snapshot(ctx, path, g, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(tiga_graph_read(ctx, path, NULL, &h, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(gradient(ctx, m, h, results[USERS]), 0);
    tiga_graph_free(h);
    cr_assert_eq(tiga_graph_write_npz(ctx, path, g, NULL), TIGA_OK);
    cr_assert_eq(tiga_graph_read(ctx, path, NULL, &h, NULL), TIGA_OK);
    cr_assert_eq(gradient(ctx, m, h, results[0]), 1);
    cr_assert_eq(gradient(ctx, m, h, results[0]), 0);
    tiga_graph_free(h);
    for (int i = 0; i < USERS; i++)
        cr_assert(memcmp(results[i], results[USERS], sizeof *results) == 0, "user %d", i);
    unlink(path);
    tiga_graph_free(g);
    tiga_module_free(m);
}

/* ---- threads that compile ---- */
enum { CALLERS = 6, ROUNDS = 4 };
static atomic_int n_running;

static int n_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    int n = -2; /* . and .. */
    cr_assert_not_null(tasks);
    while (readdir(tasks))
        n++;
    closedir(tasks);
    return n;
}

static void *compile_often(void *number) {
    tiga_context *c;
    base_str text = {0};
    for (int i = 0; i < 12;
         i++) /* enough for two files; another text for each caller, so that nobody waits for another */
        base_str_addf(&text,
                      "kernel k%d[F](src x: f32[F]) -> f32[F] { return reduce sum(src.x * %d.5 + src.x ^ %d) }\n", i,
                      1 + (int)(intptr_t)number, 2 + i % 3);
    cr_assert_eq(tiga_context_new(NULL, &c), TIGA_OK);
    for (int i = 0; i < ROUNDS; i++) {
        tiga_jit_options o = tiga_jit_defaults();
        tiga_module *m;
        tigac_result *r;
        o.cache = NULL;
        cr_assert_eq(tiga_jit_source(c, base_str_text(&text), text.len, &o, &m, &r), TIGA_OK);
        tiga_module_free(m);
    }
    tiga_context_free(c);
    base_str_fini(&text);
    n_running--;
    return NULL;
}

/* The most threads that were there at once, beside the callers and who counts. */
static int most_helpers(void) {
    pthread_t callers[CALLERS];
    int before = n_threads(), most = 0;
    n_running = CALLERS;
    for (int i = 0; i < CALLERS; i++)
        cr_assert_eq(pthread_create(&callers[i], NULL, compile_often, (void *)(intptr_t)i), 0);
    while (n_running) {
        int n = n_threads() - before - CALLERS;
        most = n > most ? n : most;
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    return most;
}

Test(jit_threads, all_compiles_share_their_helpers) {
    setenv("OMP_NUM_THREADS", "3", 1); /* asked for once in a process */
    int most = most_helpers();
    cr_assert(most > 0 && most <= 2, "%d helpers", most);
}

Test(jit_threads, one_thread_has_no_helper) {
    setenv("OMP_NUM_THREADS", "1", 1);
    cr_assert_eq(most_helpers(), 0);
}
