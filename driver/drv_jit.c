/* tiga_jit_source, tiga_jit_file: options to a recipe, a recipe to code, code to a module that owns it.
 *
 * Kernels are compiled for graphs with 32-bit sources first.  Code for others is made from the same recipe when such a
 * graph arrives: the module keeps what it needs for that (owner.recipe) and the code once it is there (owner.wide). */
#include "driver/drv_jit.h"

#include <string.h>
#include <time.h>

typedef struct owner {
    drv_code *code;
    tiga_cache *cache; /* or NULL */
    drv_recipe recipe; /* what it points to is in `block` */
    void *block;
    pthread_mutex_t lock;        /* of compiling for wide graphs */
    _Atomic(drv_code *) wide[2]; /* for 64-bit sources; for both widths in one call */
} owner;

static tiga_status fail(tiga_context *ctx, tiga_status status, const char *text) {
    return tiga_error_set(ctx, status, text);
}

/* ---- wide graphs ------------------------------------------------------------------------------------------------- */
static tiga_status make_wide(owner *o, tiga_context *ctx, int source_bits, drv_code **out) {
    drv_recipe r = o->recipe;
    base_str diags = {0};
    r.source_bits = source_bits;
    tiga_status status = drv_code_find(&r, ctx, o->cache, out, &diags);
    base_str_fini(&diags);
    return status == TIGA_E_PROGRAM ? fail(ctx, TIGA_E_INTERNAL, "a program that compiled does not compile again")
                                    : status;
}

/* Waits for another thread that compiles the same, or until the call is to be given up. */
static tiga_status lock_wide(owner *o, tiga_context *ctx) {
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 20000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!pthread_mutex_timedlock(&o->lock, &until))
            return TIGA_OK;
        if (tiga_cache_interrupted(ctx))
            return fail(ctx, TIGA_E_INTERRUPTED, "interrupted while another thread compiles the same");
    }
}

static tiga_status wide_rows(void *arg, tiga_context *ctx, int source_bits, const tiga_module_info **out) {
    owner *o = arg;
    _Atomic(drv_code *) *place = &o->wide[source_bits != 64];
    drv_code *code = atomic_load_explicit(place, memory_order_acquire);
    tiga_status status = code ? TIGA_OK : lock_wide(o, ctx);
    if (!code && status == TIGA_OK) {
        code = atomic_load(place);
        if (!code)
            status = make_wide(o, ctx, source_bits, &code);
        if (status == TIGA_OK)
            atomic_store_explicit(place, code, memory_order_release);
        pthread_mutex_unlock(&o->lock);
    }
    if (status == TIGA_OK)
        *out = code->info;
    return status;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */
static void owner_release(void *arg) {
    owner *o = arg;
    drv_code_put(o->code);
    drv_code_put(atomic_load(&o->wide[0]));
    drv_code_put(atomic_load(&o->wide[1]));
    tiga_cache_free(o->cache);
    pthread_mutex_destroy(&o->lock);
    base_free(o->block);
    base_free(o);
}

static char *copy(char **at, const void *bytes, size_t n) {
    char *to = *at;
    if (n)
        memcpy(to, bytes, n);
    *at += n;
    return to;
}

static size_t text_bytes(const char *s) { return s ? strlen(s) + 1 : 0; }

/* The recipe with all that it points to in one block. */
static bool keep_recipe(owner *o, const drv_recipe *r) {
    size_t n = r->n_defines * sizeof *r->defines + r->n_text + text_bytes(r->file_name) + text_bytes(r->cpu_name);
    for (size_t i = 0; i < r->n_defines; i++)
        n += text_bytes(r->defines[i].name);
    char *at = o->block = base_alloc(n);
    if (!at)
        return false;
    o->recipe = *r;
    tigac_define *defines = (void *)copy(&at, r->defines, r->n_defines * sizeof *r->defines);
    for (size_t i = 0; i < r->n_defines; i++)
        defines[i].name = copy(&at, r->defines[i].name, text_bytes(r->defines[i].name));
    o->recipe.defines = defines;
    o->recipe.text = copy(&at, r->text, r->n_text);
    o->recipe.file_name = copy(&at, r->file_name, text_bytes(r->file_name));
    if (r->cpu_name)
        o->recipe.cpu_name = copy(&at, r->cpu_name, text_bytes(r->cpu_name));
    return true;
}

static bool walks_edges(const tiga_module_info *info) {
    for (int i = 0; i < info->n_kernels; i++)
        if (info->kernels[i].walks_edges)
            return true;
    return false;
}

/* Takes the code, whatever happens. */
static tiga_status make_module(const drv_recipe *r, tiga_context *ctx, tiga_cache *cache, drv_code *code,
                               tiga_module **out) {
    owner *o = base_alloc_zero(sizeof *o);
    if (!o || !keep_recipe(o, r)) {
        base_free(o);
        drv_code_put(code);
        return fail(ctx, TIGA_E_MEMORY, "tiga_jit_source: out of memory");
    }
    o->code = code;
    o->cache = tiga_cache_retain(cache);
    pthread_mutex_init(&o->lock, NULL);
    tiga_status status = tiga_module_from_owned(ctx, code->info, o, owner_release, out);
    if (status != TIGA_OK)
        owner_release(o);
    else if (walks_edges(code->info))
        tiga_module_set_rows(*out, wide_rows);
    return status;
}

/* ---- diagnostics ------------------------------------------------------------------------------------------------- */
static tiga_status show_failure(const drv_recipe *r, tiga_context *ctx, const base_str *diags, tigac_result **result) {
    base_str line = {0};
    tigac_result *list = drv_diags_read(diags->data, diags->len, r, false);
    if (list)
        drv_diags_line(list, &line);
    bool complete = list && !line.failed;
    if (complete)
        fail(ctx, TIGA_E_PROGRAM, base_str_text(&line));
    if (complete && result)
        *result = list;
    else
        tigac_result_free(list);
    base_str_fini(&line);
    return complete ? TIGA_E_PROGRAM : fail(ctx, TIGA_E_MEMORY, "tiga_jit_source: out of memory");
}

static tiga_status show_warnings(const drv_recipe *r, tiga_context *ctx, const base_str *diags, tigac_result **result) {
    if (!diags->len || !result)
        return TIGA_OK;
    *result = drv_diags_read(diags->data, diags->len, r, false);
    return *result ? TIGA_OK : fail(ctx, TIGA_E_MEMORY, "tiga_jit_source: out of memory");
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */
tiga_jit_options tiga_jit_defaults(void) {
    return (tiga_jit_options){
        .struct_bytes = sizeof(tiga_jit_options), .file_name = "<text>", .cpu = "native", .opt_level = 2};
}

static tiga_status read_options(tiga_context *ctx, const tiga_jit_options *given, tiga_jit_options *o) {
    *o = tiga_jit_defaults();
    if (given && (given->struct_bytes < sizeof(size_t) || given->struct_bytes > 4096))
        return fail(ctx, TIGA_E_ARGUMENT, "tiga_jit_options.struct_bytes: begin with tiga_jit_defaults()");
    if (given) /* a caller built against another version: the fields both know */
        memcpy(o, given, given->struct_bytes < sizeof *o ? given->struct_bytes : sizeof *o);
    if (!o->file_name)
        o->file_name = "<text>";
    if (o->n_defines && !o->defines)
        return fail(ctx, TIGA_E_ARGUMENT, "tiga_jit_options.defines is NULL, n_defines is not 0");
    for (size_t i = 0; i < o->n_defines; i++)
        if (!o->defines[i].name)
            return fail(ctx, TIGA_E_ARGUMENT, "tiga_jit_options.defines: a name is NULL");
    if (strcmp(tiga_version(), TIGA_VERSION) != 0)
        return fail(ctx, TIGA_E_INTERNAL, "libtigac " TIGA_VERSION " runs with another version of libtiga");
    return TIGA_OK;
}

static tiga_status compile(const drv_recipe *r, tiga_context *ctx, tiga_cache *cache, tiga_module **out,
                           tigac_result **result) {
    base_str diags = {0};
    drv_code *code = NULL;
    tiga_status status = drv_code_find(r, ctx, cache, &code, &diags);
    if (status == TIGA_E_PROGRAM)
        status = show_failure(r, ctx, &diags, result);
    else if (status == TIGA_OK)
        status = show_warnings(r, ctx, &code->diags, result);
    base_str_fini(&diags);
    if (status != TIGA_OK) {
        drv_code_put(code);
        return status;
    }
    status = make_module(r, ctx, cache, code, out);
    if (status != TIGA_OK && result) {
        tigac_result_free(*result);
        *result = NULL;
    }
    return status;
}

tiga_status tiga_jit_source(tiga_context *ctx, const char *text, size_t n_bytes, const tiga_jit_options *options,
                            tiga_module **out, tigac_result **result) {
    tiga_jit_options o;
    if (out)
        *out = NULL;
    if (result)
        *result = NULL;
    if (!ctx || !out || (!text && n_bytes))
        return fail(ctx, TIGA_E_ARGUMENT, "tiga_jit_source: an argument is NULL");
    tiga_status status = read_options(ctx, options, &o);
    if (status != TIGA_OK)
        return status;
    drv_recipe r = {.text = text ? text : "",
                    .n_text = n_bytes,
                    .file_name = o.file_name,
                    .cpu_name = o.cpu,
                    .opt_level = o.opt_level,
                    .warnings_are_errors = o.warnings_are_errors,
                    .defines = o.defines,
                    .n_defines = o.n_defines,
                    .source_bits = 32};
    return compile(&r, ctx, o.cache, out, result);
}

tiga_status tiga_jit_file(tiga_context *ctx, const char *path, const tiga_jit_options *options, tiga_module **out,
                          tigac_result **result) {
    tiga_jit_options o, defaults = tiga_jit_defaults();
    base_str text = {0}, err = {0};
    if (out)
        *out = NULL;
    if (result)
        *result = NULL;
    if (!ctx || !path || !out)
        return fail(ctx, TIGA_E_ARGUMENT, "tiga_jit_file: an argument is NULL");
    tiga_status status = read_options(ctx, options, &o);
    if (status != TIGA_OK)
        return status;
    if (!strcmp(o.file_name, defaults.file_name))
        o.file_name = path;
    if (!base_file_read(strcmp(path, "-") ? path : "./-", &text, &err))
        status = fail(ctx, text.failed || err.failed ? TIGA_E_MEMORY : TIGA_E_FILE, base_str_text(&err));
    else
        status = tiga_jit_source(ctx, base_str_text(&text), text.len, &o, out, result);
    base_str_fini(&text);
    base_str_fini(&err);
    return status;
}
