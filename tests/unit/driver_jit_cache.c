/* The JIT with the cache: what is found is what would have been made, diagnostics included; what is of no use is made again;
 * many threads, one cache; whoever is freed first. */
#define _GNU_SOURCE
#include "codegen/codegen.h"
#include "driver/drv_jit.h"
#include "driver_support.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

static tiga_context *ctx;
static char folder[64];
static tiga_cache *cache;
static tiga_jit_options o;

static void open_cache(void) {
    tiga_cache_options c = tiga_cache_defaults();
    c.folder = folder;
    cr_assert_eq(tiga_cache_new(&c, &cache), TIGA_OK);
    o.cache = cache;
}
static void open_again(void) { /* another process, as far as the cache can tell */
    tiga_cache_free(cache);
    open_cache();
}
static void open_all(void) {
    cr_assert_eq(tiga_context_new(NULL, &ctx), TIGA_OK);
    strcpy(folder, "/tmp/tiga_jit_cache_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    o = tiga_jit_defaults();
    open_cache();
}
static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *f) {
    (void)s, (void)kind, (void)f;
    return remove(path);
}
static void close_all(void) {
    tiga_cache_free(cache);
    tiga_context_free(ctx);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
TestSuite(jit_cache, .init = open_all, .fini = close_all);

static tiga_module *jit(const char *text) {
    tiga_module *m;
    tigac_result *r;
    tiga_status s = tiga_jit_source(ctx, text, strlen(text), &o, &m, &r);
    cr_assert_eq(s, TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_null(r);
    return m;
}
#define COUNTS(field, n)                                                                                               \
    cr_assert_eq(tiga_cache_get_counters(cache).field, n, "%s is %lld", #field,                                        \
                 (long long)tiga_cache_get_counters(cache).field)

Test(jit_cache, memory_and_disk) {
    tiga_module *m[4];
    m[0] = jit(readme_text);
    m[1] = jit(readme_text);
    COUNTS(misses, 1);
    COUNTS(memory_hits, 1);
    cr_assert_eq(tiga_module_get_info(m[0]), tiga_module_get_info(m[1])); /* one code for both */
    open_again();
    m[2] = jit(readme_text);
    COUNTS(disk_hits, 1);
    COUNTS(misses, 0);
    o.opt_level = 1; /* another key */
    m[3] = jit(readme_text);
    COUNTS(misses, 1);
    uint64_t first = test_call_all(ctx, m[0], 32);
    for (int i = 0; i < 4; i++) {
        cr_assert(first && test_call_all(ctx, m[i], 32) == first);
        tiga_module_free(m[i]);
    }
}

/* Code for wide graphs is kept as well. */
Test(jit_cache, wide_code) {
    tiga_module *m = jit(readme_text), *again;
    uint64_t first = test_call_all(ctx, m, 32);
    COUNTS(misses, 1);
    cr_assert_eq(test_call_all(ctx, m, 64), first);
    COUNTS(misses, 2);
    cr_assert_eq(test_call_all(ctx, m, 64), first);
    again = jit(readme_text);
    cr_assert_eq(test_call_all(ctx, again, 64), first);
    COUNTS(misses, 2);
    tiga_module_free(again);
    open_again();
    again = jit(readme_text);
    cr_assert_eq(test_call_all(ctx, again, 64), first);
    COUNTS(misses, 0);
    COUNTS(disk_hits, 2);
    tiga_module_free(again);
    tiga_module_free(m);
}

Test(jit_cache, keys_differ) {
    static const char *const texts[] = {sum_text, "kernel total(src x: f32) -> f32 { return reduce sum(src.x) }\n\n"};
    static const char *const cpus[] = {"native", "x86-64"};
    tigac_define f = {"Q", 1}, g = {"Q", 11};
    int n = 0;
    for (int bits = 0; bits < 32; bits++) {
        tiga_module *m;
        o.file_name = bits & 1 ? "a.tg" : "b.tg";
        o.opt_level = bits & 2 ? 1 : 2;
        o.cpu = cpus[(bits & 4) != 0];
        o.defines = bits & 8 ? &f : &g;
        o.n_defines = 1;
#if !defined(__x86_64__)
        o.cpu = "native";
        n -= (bits & 4) != 0;
#endif
        const char *text = texts[(bits & 16) != 0];
        cr_assert_eq(tiga_jit_source(ctx, text, strlen(text), &o, &m, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
        COUNTS(misses, ++n);
        tiga_module_free(m);
    }
}

/* ---- diagnostics are kept too ---- */
static char *rendered(const char *text, const char *file, tiga_status want) {
    tiga_module *m;
    tigac_result *r;
    o.file_name = file;
    tiga_error_clear(ctx);
    cr_assert_eq(tiga_jit_source(ctx, text, strlen(text), &o, &m, &r), want, "%s", tiga_error_text(ctx));
    cr_assert(r && r->n_diagnostics && !strcmp(r->diagnostics->file, file));
    char *copy = strdup(r->rendered);
    tigac_result_free(r);
    tiga_module_free(m);
    return copy;
}

static void same_diagnostics(const char *text, tiga_status want) {
    char *made = rendered(text, "x/m.tg", want), *from_memory = rendered(text, "x/m.tg", want);
    COUNTS(misses, 1);
    open_again();
    char *from_disk = rendered(text, "x/m.tg", want), *elsewhere = rendered(text, "y/m.tg", want);
    COUNTS(misses, 0);
    cr_assert(*made && !strcmp(made, from_memory) && !strcmp(made, from_disk));
    cr_assert(strstr(elsewhere, "y/m.tg") && !strstr(elsewhere, "x/m.tg"));
    free(made);
    free(from_memory);
    free(from_disk);
    free(elsewhere);
}

Test(jit_cache, errors_are_kept) {
    same_diagnostics(bad_text, TIGA_E_PROGRAM);
    COUNTS(negative_hits, 2);
    tiga_error_clear(ctx);
    tiga_module *m = jit(sum_text); /* one failure is one key's */
    cr_assert(test_call_all(ctx, m, 32));
    tiga_module_free(m);
}

Test(jit_cache, warnings_are_kept) {
    tigac_define unused = {"UNUSED", 3};
    o.defines = &unused;
    o.n_defines = 1;
    same_diagnostics(sum_text, TIGA_OK);
    COUNTS(disk_hits, 1);
}

/* ---- what is of no use ---- */
static base_str planted;
static tiga_status plant_build(void *user, tiga_context *c, base_str *artefact) {
    (void)user, (void)c;
    base_str_add_n(artefact, base_str_text(&planted), planted.len);
    return TIGA_OK;
}
static tiga_status plant_load(void *user, tiga_context *c, const void *bytes, size_t n, void **object, int64_t *size) {
    (void)user, (void)c, (void)bytes, (void)n;
    *object = &planted;
    *size = 1;
    return TIGA_OK;
}
static void plant_nothing(void *object) { (void)object; }

static drv_recipe recipe_of(const char *text) {
    return (drv_recipe){.text = text, .n_text = strlen(text), .file_name = "<text>", .opt_level = 2, .source_bits = 32};
}

/* A file with a right head and a right checksum, with the planted bytes in place of code. */
static void plant(const char *text) {
    static const rt_cache_ops ops = {plant_build, plant_load, plant_nothing, plant_nothing, NULL};
    drv_recipe r = recipe_of(text);
    drv_cpu own;
    const drv_cpu *cpu;
    drv_key key;
    void *object;
    cr_assert_eq(tiga_cache_clear(ctx, cache, NULL), TIGA_OK);
    cr_assert_eq(drv_code_cpu(&r, ctx, &own, &cpu), TIGA_OK);
    cr_assert(drv_code_key(&key, &r, cpu));
    rt_cache_request request = {key.fields, key.n, &ops, NULL};
    cr_assert_eq(tiga_cache_get(cache, ctx, &request, &object, NULL), TIGA_OK);
    drv_key_fini(&key);
    drv_cpu_fini(&own);
    open_again();
}

static void is_made_again(const char *text) {
    tiga_module *m = jit(text);
    COUNTS(stale, 1);
    COUNTS(misses, 1);
    COUNTS(disk_hits, 0);
    cr_assert(test_call_all(ctx, m, 32));
    cr_assert_eq(tiga_error_status(ctx), TIGA_OK);
    tiga_module_free(m);
    open_again();
    m = jit(text);
    COUNTS(disk_hits, 1);
    tiga_module_free(m);
}

Test(jit_cache, garbage_with_a_right_checksum, .timeout = 300) {
    drv_recipe r = recipe_of(sum_text);
    base_str good = {0};
    cr_assert_eq(drv_code_build(&r, ctx, &good), TIGA_OK);
    plant(sum_text); /* nothing at all */
    is_made_again(sum_text);
    for (size_t n = 1; n < good.len; n += good.len / 5) { /* cut off */
        planted.len = 0;
        base_str_add_n(&planted, good.data, n);
        plant(sum_text);
        is_made_again(sum_text);
    }
    for (size_t at = 0; at < good.len; at += good.len / 7) { /* one byte changed, code and sizes among them */
        planted.len = 0;
        base_str_add_n(&planted, good.data, good.len);
        planted.data[at] ^= 0x10;
        plant(sum_text);
        is_made_again(sum_text);
    }
    base_str_fini(&good);
    base_str_fini(&planted);
}

/* Whatever the bytes between a right head and its right hash are. */
Test(jit_cache, objects_that_are_none) {
    drv_recipe r = recipe_of(sum_text);
    base_str good = {0};
    cr_assert_eq(drv_code_build(&r, ctx, &good), TIGA_OK);
    uint64_t sizes[CG_MOST_PARTS + 1]; /* of the objects, of the warnings */
    memcpy(sizes, good.data + 8, sizeof sizes);
    const size_t head = 8 + sizeof sizes + sizeof(base_hash128);
    for (int kind = 0; kind < 4; kind++) {
        char *object = good.data + head;
        if (kind == 0) /* another file */
            memset(object, 'x', sizes[0]);
        if (kind == 1) /* nonsense after a right ELF head */
            memcpy(object, "\177ELF\2\1\1", 7);
        if (kind == 2) { /* an empty object */
            sizes[CG_MOST_PARTS] += sizes[0];
            sizes[0] = 0;
            memcpy(good.data + 8, sizes, sizeof sizes);
        }
        if (kind == 3)
            memset(good.data + head, 0, good.len - head);
        base_hash128 h = base_hash_bytes(good.data + head, good.len - head);
        memcpy(good.data + 8 + sizeof sizes, &h, sizeof h);
        drv_code *c;
        tiga_error_clear(ctx);
        cr_assert_eq(drv_code_load(ctx, good.data, good.len, &c), TIGA_E_MODULE, "%d", kind);
        cr_assert(!c && *tiga_error_text(ctx));
    }
    base_str_fini(&good);
}

/* Emitted code that calls what it must not: named, and not run. */
Test(jit_cache, only_listed_functions_can_be_called) {
    static const char text[] = "int system(const char *);\nint tiga_module_info_v1(void);\n"
                               "int tiga_module_info_v1(void) { return system(\"x\"); }\n";
    drv_cpu cpu;
    base_str object = {0}, err = {0};
    drv_image *image;
    cr_assert(drv_cpu_resolve(NULL, &cpu, &err));
    drv_clang_options c = {.name = "t.c", .cpu = &cpu, .opt_level = 1, .kind = DRV_CLANG_OBJECT};
    cr_assert(drv_clang_objects(&(drv_bytes){text, strlen(text)}, 1, &c, &object, &err), "%s", base_str_text(&err));
    drv_bytes bytes = {object.data, object.len};
    cr_assert_eq(drv_image_load(&bytes, 1, &image, &err), DRV_IMAGE_UNKNOWN);
    cr_assert(!image && strstr(base_str_text(&err), "system"));
    base_str_fini(&object);
    base_str_fini(&err);
    drv_cpu_fini(&cpu);
}

/* ---- tiga_jit_compile ---- */
static tigac_result *outputs(const char *text, const tigac_options *t, tigac_status want) {
    tigac_result *r;
    tigac_status s = tiga_jit_compile(ctx, cache, text, strlen(text), t, &r);
    cr_assert(s == want && r, "%d %s", s, r ? r->error : "");
    return r;
}

static void expect_cubin(const char *text, const tigac_options *t, const tigac_result *want) {
    tigac_result *r = outputs(text, t, TIGAC_OK);
    const tigac_blob *a = &r->outputs[TIGAC_OBJ], *b = &want->outputs[TIGAC_OBJ];
    cr_assert(a->n_bytes == b->n_bytes && !memcmp(a->bytes, b->bytes, a->n_bytes));
    tigac_result_free(r);
}

static int damage(void *user, const tiga_cache_entry *e) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, e->key);
    FILE *f = fopen(path, "r+b");
    cr_assert(f && !fseek(f, (long)(e->bytes * *(int *)user / 100), SEEK_SET));
    int c = fgetc(f);
    cr_assert(!fseek(f, -1, SEEK_CUR) && fputc(c ^ 4, f) != EOF && !fclose(f));
    return 0;
}

/* The same rules as for code of this process. */
Test(jit_cache, cubins, .timeout = 300) {
    tigac_options t = tigac_defaults();
    tigac_result *made;
    t.target = "cuda";
    t.cuda_arch = "sm_90";
    t.emit = TIGAC_EMIT(TIGAC_OBJ);
    tigac_status s = tigac_compile(sum_text, strlen(sum_text), &t, &made);
    if (s == TIGAC_E_ENVIRONMENT && strstr(made->error, "NVRTC was not found")) {
        tigac_result_free(made);
        cr_skip_test("no NVRTC");
    }
    cr_assert_eq(s, TIGAC_OK, "%s", made->error);
    expect_cubin(sum_text, &t, made);
    expect_cubin(sum_text, &t, made);
    COUNTS(misses, 1);
    COUNTS(memory_hits, 1);
    open_again();
    expect_cubin(sum_text, &t, made);
    COUNTS(disk_hits, 1);
    COUNTS(misses, 0);
    for (int percent = 0; percent < 100; percent += 33) { /* head, key, code: never used, built again */
        cr_assert_eq(tiga_cache_list(ctx, cache, damage, &percent), TIGA_OK);
        open_again();
        expect_cubin(sum_text, &t, made);
        COUNTS(stale, 1);
        COUNTS(misses, 1);
        COUNTS(disk_hits, 0);
    }
    t.cuda_arch = "sm_80"; /* another key */
    tigac_result_free(outputs(sum_text, &t, TIGAC_OK));
    COUNTS(misses, 2);
    tigac_result_free(outputs(bad_text, &t, TIGAC_E_PROGRAM)); /* a wrong program is wrong once */
    tigac_result_free(outputs(bad_text, &t, TIGAC_E_PROGRAM));
    COUNTS(misses, 3);
    COUNTS(negative_hits, 1);
    t.cuda_arch = "sm_1"; /* and what is no fault of the program's is not kept */
    tigac_result_free(outputs(sum_text, &t, TIGAC_E_OPTION));
    tigac_result_free(outputs(sum_text, &t, TIGAC_E_OPTION));
    COUNTS(misses, 5);
    COUNTS(negative_hits, 1);
    tigac_result_free(made);
}

/* A result has the words of its own failure, and the context keeps those of an older one. */
Test(jit_cache, words_of_an_older_failure_are_not_its_own) {
    tigac_options t = tigac_defaults();
    tiga_error_set(ctx, TIGA_E_FILE, "older words");
    t.cpu = "nothing";
    tigac_result *r = outputs(sum_text, &t, TIGAC_E_OPTION);
    cr_assert(strstr(r->error, "'nothing'") && !strstr(r->error, "older"), "%s", r->error);
    tigac_result_free(r);
    r = outputs(bad_text, NULL, TIGAC_E_PROGRAM);
    cr_assert(r->n_diagnostics == 1 && !strstr(r->error, "older"), "%s", r->error);
    tigac_result_free(r);
    r = outputs(sum_text, NULL, TIGAC_OK);
    cr_assert(r->outputs[TIGAC_SO].n_bytes && !*r->error);
    tigac_result_free(r);
    cr_assert_eq(tiga_error_status(ctx), TIGA_E_FILE);
    cr_assert_str_eq(tiga_error_text(ctx), "older words");
}

/* ---- lives ---- */
Test(jit_cache, whoever_is_freed_first) {
    tiga_module *m = jit(readme_text);
    uint64_t first = test_call_all(ctx, m, 32);
    cr_assert_eq(tiga_cache_clear(ctx, cache, NULL), TIGA_OK);
    cr_assert_eq(test_call_all(ctx, m, 32), first);
    tiga_cache_free(cache);
    cr_assert_eq(test_call_all(ctx, m, 32), first);
    cr_assert_eq(test_call_all(ctx, m, 64), first); /* the module keeps the cache */
    tiga_module_free(m);
    open_cache();
    m = jit(readme_text);
    tiga_module_free(m);
    m = jit(readme_text);
    COUNTS(memory_hits, 1);
    cr_assert_eq(test_call_all(ctx, m, 32), first);
    tiga_module_free(m);
}

Test(jit_cache, thrown_out_while_in_use) {
    tiga_cache_options c = tiga_cache_defaults();
    c.folder = "";
    c.memory_bytes = 1;
    cr_assert_eq(tiga_cache_new(&c, &o.cache), TIGA_OK);
    tiga_module *a = jit(sum_text), *b = jit(readme_text);
    cr_assert(test_call_all(ctx, a, 32) && test_call_all(ctx, b, 64));
    cr_assert_eq(tiga_cache_get_counters(o.cache).memory_entries, 0);
    tiga_module_free(a);
    tiga_module_free(b);
    tiga_cache_free(o.cache);
}

/* ---- threads ---- */
enum { THREADS = 6, ROUNDS = 6 };
static tiga_module *shared;
static uint64_t right;

static void *compile_and_run(void *arg) {
    tiga_context *mine;
    uint64_t wrong = 0;
    int id = (int)(intptr_t)arg;
    if (tiga_context_new(NULL, &mine))
        return "no context";
    for (int i = 0; i < ROUNDS; i++) {
        char text[sizeof readme_text + 32];
        tiga_module *m;
        snprintf(text, sizeof text, "%s// %d\n", readme_text, i % 2 ? i : 100 * id); /* common ones, and one's own */
        tiga_jit_options own = o;
        own.opt_level = 1;
        if (tiga_jit_source(mine, text, strlen(text), &own, &m, NULL))
            return "does not compile";
        wrong += test_call_all(mine, m, 32) != right;
        tiga_module_free(m);
        if (tiga_jit_source(mine, bad_text, strlen(bad_text), &own, &m, NULL) != TIGA_E_PROGRAM)
            return "compiles";
        tiga_error_clear(mine);
    }
    tiga_context_free(mine);
    return wrong ? "another result" : NULL;
}

static void in_threads(void *(*fn)(void *)) {
    pthread_t t[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&t[i], NULL, fn, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *why;
        pthread_join(t[i], &why);
        cr_assert_null(why, "%s", (char *)why);
    }
}

Test(jit_cache, threads_share_a_cache, .timeout = 300) {
    tiga_module *m = jit(readme_text);
    right = test_call_all(ctx, m, 32);
    tiga_module_free(m);
    in_threads(compile_and_run);
    /* 1 before, common ones once each, of each thread one; the wrong one */
    COUNTS(misses, 1 + ROUNDS / 2 + THREADS + 1);
}

/* In one context; each has its diagnostics, the context only the first failure. */
static void *compile_in_one(void *arg) {
    tiga_jit_options own = o;
    own.opt_level = 1;
    for (int i = 0; i < ROUNDS; i++) {
        char text[sizeof readme_text + 32];
        tiga_module *m;
        tigac_result *why;
        snprintf(text, sizeof text, "%s// %d\n", readme_text, i % 2 ? i : 100 * (int)(intptr_t)arg);
        if (tiga_jit_source(ctx, text, strlen(text), &own, &m, NULL))
            return "does not compile";
        if (tiga_module_get_info(m)->n_functions < 1)
            return "is empty";
        tiga_module_free(m);
        tiga_status status = tiga_jit_source(ctx, bad_text, strlen(bad_text), &own, &m, &why);
        if (status != TIGA_E_PROGRAM || m || !why || why->n_diagnostics < 1)
            return "compiles";
        tigac_result_free(why);
    }
    return NULL;
}

Test(jit_cache, threads_compile_in_one_context, .timeout = 300) {
    in_threads(compile_in_one);
    cr_assert_eq(tiga_error_status(ctx), TIGA_E_PROGRAM);
    tiga_error_clear(ctx);
    COUNTS(misses, ROUNDS / 2 + THREADS + 1);
}

static void *run_shared(void *arg) {
    tiga_context *mine;
    (void)arg;
    if (tiga_context_new(NULL, &mine))
        return "no context";
    for (int i = 0; i < 4; i++) {
        if (test_call_all(mine, shared, 64) != right || test_call_all(mine, shared, 32) != right)
            return "another result";
        tiga_module_free(tiga_module_retain(shared));
    }
    tiga_context_free(mine);
    return NULL;
}

/* All of them want code for wide graphs at once; it is made once. */
Test(jit_cache, threads_share_a_module, .timeout = 300) {
    shared = jit(readme_text);
    right = test_call_all(ctx, shared, 32);
    in_threads(run_shared);
    COUNTS(misses, 2);
    tiga_module_free(shared);
}

/* ---- every allocation of ours fails in turn, with a hit in memory and on disk ---- */
Test(jit_cache, every_allocation_fails) {
    tiga_module *m = jit(sum_text);
    tiga_module_free(m);
    for (int disk = 0; disk < 2; disk++) {
        bool reached = true;
        for (uint64_t k = 1; reached; k++) {
            if (disk)
                open_again();
            tiga_error_clear(ctx);
            base_inject_at(BASE_INJECT_ALLOC, k);
            tiga_status s = tiga_jit_source(ctx, sum_text, strlen(sum_text), &o, &m, NULL);
            reached = base_inject_count(BASE_INJECT_ALLOC) >= k;
            base_inject_at(BASE_INJECT_ALLOC, 0);
            cr_assert(s == TIGA_OK || (reached && s == TIGA_E_MEMORY), "%d %s", s, tiga_error_text(ctx));
            cr_assert((s == TIGA_OK) == (m != NULL) && (!m || test_call_all(ctx, m, 32)));
            tiga_module_free(m);
        }
        COUNTS(misses, disk ? 0 : 1);
    }
}
