/* The C API of the compiler: many compiles in one process, several threads, every output at once, diagnostics as data;
 * and the examples of tiga/jit.h and tiga/cache.h. */
#include "tiga/compiler.h"
#include "tiga/jit.h"
#include "tiga/tiga.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

static const char model[] = "kernel k[F](src x: f32[F], edge w: f32) -> f32[F] {\n"
                            "    return reduce sum(edge.w * src.x)\n"
                            "}\n";

static tigac_result *compile(const char *text, const tigac_options *o, tigac_status want) {
    tigac_result *r = NULL;
    tigac_status s = tigac_compile(text, strlen(text), o, &r);
    cr_assert_eq(s, want, "%d: %s%s", s, r ? r->rendered : "", r ? r->error : "");
    cr_assert_not_null(r);
    return r;
}

Test(compiler, all_outputs_at_once) {
    tigac_options o = tigac_defaults();
    o.emit = (TIGAC_EMIT(TIGAC_OUTPUTS) - 1) & ~TIGAC_EMIT(TIGAC_CUDA);
    tigac_result *r = compile(model, &o, TIGAC_OK);
    for (tigac_output i = 0; i < TIGAC_OUTPUTS; i++) {
        cr_assert_eq(r->outputs[i].n_bytes > 0, i != TIGAC_CUDA, "%s", tigac_output_name(i));
        cr_assert_eq(r->outputs[i].bytes != NULL, i != TIGAC_CUDA);
    }
    cr_assert_eq(r->n_diagnostics, 0);
    cr_assert_str_empty(r->rendered);
    cr_assert_null(tigac_output_name(TIGAC_OUTPUTS));
    tigac_result_free(r);
    tigac_result_free(NULL);
}

Test(compiler, again_and_again_the_same_bytes) {
    tigac_options o = tigac_defaults();
    tigac_result *first = compile(model, &o, TIGAC_OK);
    for (int i = 0; i < 10; i++) {
        tigac_result *r = compile(model, &o, TIGAC_OK);
        cr_assert_eq(r->outputs[TIGAC_SO].n_bytes, first->outputs[TIGAC_SO].n_bytes);
        cr_assert_arr_eq(r->outputs[TIGAC_SO].bytes, first->outputs[TIGAC_SO].bytes, first->outputs[TIGAC_SO].n_bytes);
        tigac_result_free(r);
    }
    tigac_result_free(first);
}

static void *compile_in_thread(void *arg) {
    tigac_options o = tigac_defaults();
    o.opt_level = 1;
    for (int i = 0; i < 3; i++) {
        tigac_result *r = compile(i == 1 ? "kernel" : model, &o, i == 1 ? TIGAC_E_PROGRAM : TIGAC_OK);
        if (i == 2) {
            *(size_t *)arg = r->outputs[TIGAC_SO].n_bytes;
        }
        tigac_result_free(r);
    }
    return NULL;
}

Test(compiler, threads) {
    pthread_t threads[4];
    size_t sizes[4] = {0};
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, compile_in_thread, &sizes[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        cr_assert(sizes[i] > 0 && sizes[i] == sizes[0]);
}

Test(compiler, diagnostics_as_data) {
    tigac_options o = tigac_defaults();
    o.file_name = "here/m.tg";
    tigac_result *r = compile("kernel k(src x: f32) -> f32 {\n    return src.x\n}\n", &o, TIGAC_E_PROGRAM);
    cr_assert_eq(r->n_diagnostics, 1);
    const tigac_diagnostic *d = r->diagnostics;
    cr_assert(d->is_error && d->line == 2 && d->column == 12 && d->length == 5);
    cr_assert_str_eq(d->file, "here/m.tg");
    cr_assert_not_null(tigac_error_page(d->id));
    cr_assert_not_null(strstr(r->rendered, d->text));
    for (tigac_output i = 0; i < TIGAC_OUTPUTS; i++)
        cr_assert_null(r->outputs[i].bytes);
    tigac_result_free(r);
}

Test(compiler, warnings) {
    tigac_options o = tigac_defaults();
    tigac_define d = {"G", 3};
    o.defines = &d;
    o.n_defines = 1;
    tigac_result *r = compile(model, &o, TIGAC_OK);
    cr_assert_eq(r->n_diagnostics, 1);
    cr_assert(!r->diagnostics->is_error);
    cr_assert_str_eq(r->diagnostics->id, "W0011");
    tigac_result_free(r);
    o.warnings_are_errors = 1;
    r = compile(model, &o, TIGAC_E_PROGRAM);
    cr_assert_null(r->outputs[TIGAC_SO].bytes);
    tigac_result_free(r);
}

Test(compiler, wrong_options) {
    static const struct {
        const char *target, *cpu, *passes, *dump_after;
        int level;
        uint32_t emit;
    } cases[] = {
        {"gpu", "native", NULL, NULL, 2, TIGAC_EMIT(TIGAC_SO)},
        {"cuda", "native", NULL, NULL, 2, TIGAC_EMIT(TIGAC_SO)},
        {"cpu", "eniac", NULL, NULL, 2, TIGAC_EMIT(TIGAC_SO)},
        {"cpu", "native", "fuze", NULL, 2, TIGAC_EMIT(TIGAC_SO)},
        {"cpu", "native", NULL, "fuze", 2, TIGAC_EMIT(TIGAC_SO)},
        {"cpu", "native", NULL, NULL, 4, TIGAC_EMIT(TIGAC_SO)},
        {"cpu", "native", NULL, NULL, 2, 0},
        {"cpu", "native", NULL, NULL, 2, TIGAC_EMIT(20)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tigac_options o = tigac_defaults();
        o.target = cases[i].target;
        o.cpu = cases[i].cpu;
        o.passes = cases[i].passes;
        o.dump_after = cases[i].dump_after;
        o.opt_level = cases[i].level;
        o.emit = cases[i].emit;
        tigac_result *r = compile(model, &o, TIGAC_E_OPTION);
        cr_assert_str_not_empty(r->error, "case %zu", i);
        tigac_result_free(r);
    }
    tigac_options o = tigac_defaults();
    o.struct_bytes = 3;
    tigac_result_free(compile(model, &o, TIGAC_E_OPTION));
}

Test(compiler, text_need_not_end_with_zero) {
    char text[sizeof model + 8];
    memset(text, 'x', sizeof text);
    memcpy(text, model, sizeof model - 1);
    tigac_options o = tigac_defaults();
    tigac_result *r = NULL;
    cr_assert_eq(tigac_compile(text, sizeof model - 1, &o, &r), TIGAC_OK);
    tigac_result_free(r);
    cr_assert_eq(tigac_compile(model, sizeof model, &o, &r), TIGAC_E_PROGRAM, "a zero byte is not text");
    cr_assert_eq(r->n_diagnostics, 1);
    tigac_result_free(r);
}

Test(compiler, tables) {
    size_t n = 0;
    for (; tigac_pass_name(n); n++)
        cr_assert_str_not_empty(tigac_pass_doc(n));
    cr_assert(n > 5);
    for (n = 0; tigac_op_name(n); n++)
        cr_assert(*tigac_op_doc(n) && *tigac_op_levels(n));
    cr_assert(n > 50);
    for (n = 0; tigac_error_id(n); n++)
        cr_assert(*tigac_error_title(tigac_error_id(n)) && *tigac_error_page(tigac_error_id(n)));
    cr_assert(n > 20);
    cr_assert_str_eq(tigac_version(), tiga_version());
    cr_assert_null(tigac_error_page("E9999"));
}

/* ---- the examples of the headers, in their words ---- */
static void show(const char *text) { cr_log_error("%s", text); }

Test(compiler, example_of_jit_h) {
    const char *text = model;
    tiga_context *ctx;
    cr_assert_eq(tiga_context_new(NULL, &ctx), TIGA_OK);
    tiga_module *m;
    tigac_result *why;
    if (tiga_jit_source(ctx, text, strlen(text), NULL, &m, &why) != TIGA_OK)
        show(why ? why->rendered : tiga_error_text(ctx));
    tigac_result_free(why);
    cr_assert_not_null(tiga_module_find(m, "k"));
    tiga_module_free(m);
    tiga_context_free(ctx);
}

Test(compiler, example_of_cache_h) {
    tiga_context *ctx;
    tiga_module *m;
    cr_assert_eq(tiga_context_new(NULL, &ctx), TIGA_OK);
    tiga_cache *cache;
    tiga_cache_options memory_only = tiga_cache_defaults();
    memory_only.folder = "";
    tiga_cache_new(&memory_only, &cache);
    tiga_jit_options o = tiga_jit_defaults();
    o.cache = cache;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(tiga_jit_source(ctx, model, strlen(model), &o, &m, NULL), TIGA_OK);
        tiga_module_free(m);
    }
    tiga_cache_counters n = tiga_cache_get_counters(cache);
    cr_assert(n.misses == 1 && n.memory_hits == 1);
    tiga_cache_free(cache);
    tiga_context_free(ctx);
}
