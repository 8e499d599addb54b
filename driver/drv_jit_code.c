/* Compiling for this process, and loading what was compiled.
 *
 * An artefact is what a cache may keep: a head with the sizes of the parts, then the objects and the warnings.  Objects of
 * another ABI version are refused as E_MODULE before anything but the function that gives their table has run. */
#include "driver/drv_jit.h"
#include "driver/drv_pipeline.h"

#include <string.h>

typedef struct head {
    char magic[8];
    uint64_t objects[CG_MOST_PARTS], diags; /* sizes */
    base_hash128 hash; /* of all that follows */
} head;
static const char magic[8] = "TIGAJIT2";

/* ---- processors ---- */
static pthread_mutex_t native_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool native_known;
static drv_cpu native_cpu; /* asked for once; lives as long as the process */

/* Asking the processor takes longer than finding a module in memory. */
static const drv_cpu *native(base_str *err) {
    if (atomic_load_explicit(&native_known, memory_order_acquire))
        return &native_cpu;
    pthread_mutex_lock(&native_lock);
    bool known = atomic_load(&native_known);
    if (!known) {
        known = drv_cpu_resolve(NULL, &native_cpu, err) && !native_cpu.name.failed && !native_cpu.switches.failed &&
                !native_cpu.features.failed;
        if (!known)
            drv_cpu_fini(&native_cpu);
        atomic_store_explicit(&native_known, known, memory_order_release);
    }
    pthread_mutex_unlock(&native_lock);
    return known ? &native_cpu : NULL;
}

static tiga_status fail(tiga_context *ctx, tiga_status status, const char *what, const char *words) {
    base_str s = {0};
    base_str_addf(&s, "%s: %s", what, words);
    tiga_error_set(ctx, status, s.failed ? "out of memory" : base_str_text(&s));
    base_str_fini(&s);
    return status;
}

tiga_status drv_code_cpu(const drv_recipe *r, tiga_context *ctx, drv_cpu *own, const drv_cpu **out) {
    base_str err = {0};
    bool is_native = !r->cpu_name || !strcmp(r->cpu_name, "native");
    *own = (drv_cpu){0};
    if (is_native)
        *out = native(&err);
    else
        *out = drv_cpu_resolve(r->cpu_name, own, &err) ? own : NULL;
    tiga_status status = TIGA_OK;
    if (own->name.failed || own->switches.failed || own->features.failed || err.failed || (is_native && !*out))
        status = fail(ctx, TIGA_E_MEMORY, r->file_name, "out of memory");
    else if (!*out)
        status = fail(ctx, TIGA_E_ARGUMENT, "tiga_jit_options.cpu", base_str_text(&err));
    base_str_fini(&err);
    return status;
}

/* ---- build ---- */
static tiga_status outcome(const drv_recipe *r, tiga_context *ctx, tigac_status s, const drv_result *result,
                           bool stopped) {
    switch (s) {
    case TIGAC_OK:
        return TIGA_OK;
    case TIGAC_E_PROGRAM:
        return TIGA_E_PROGRAM;
    case TIGAC_E_OPTION:
        return fail(ctx, TIGA_E_ARGUMENT, "tiga_jit_options", result->pub.error);
    case TIGAC_E_ENVIRONMENT:
        break;
    }
    if (stopped)
        return tiga_error_set(ctx, TIGA_E_INTERRUPTED, "interrupted while it compiles");
    bool memory = !result || result->out_of_memory;
    return fail(ctx, memory ? TIGA_E_MEMORY : TIGA_E_INTERNAL, r->file_name,
                memory ? "out of memory" : result->pub.error);
}

static void write_artefact(const base_str objects[CG_MOST_PARTS], const drv_result *result, base_str *out) {
    base_str diags = {0};
    drv_diags_write(result, &diags);
    head h = {.diags = diags.len};
    memcpy(h.magic, magic, sizeof magic);
    for (int i = 0; i < CG_MOST_PARTS; i++)
        h.objects[i] = objects[i].len;
    base_str_add_n(out, (const char *)&h, sizeof h);
    for (int i = 0; i < CG_MOST_PARTS; i++)
        base_str_add_n(out, base_str_text(&objects[i]), objects[i].len);
    base_str_add_n(out, base_str_text(&diags), diags.len);
    out->failed |= diags.failed;
    base_str_fini(&diags);
    if (out->failed)
        return;
    h.hash = base_hash_bytes(out->data + sizeof h, out->len - sizeof h);
    memcpy(out->data, &h, sizeof h);
}

static bool is_interrupted(void *ctx) { return tiga_cache_interrupted(ctx); }

static tiga_status compile(const drv_recipe *r, tiga_context *ctx, const drv_cpu *cpu, base_str *artefact) {
    tigac_options o = tigac_defaults();
    o.file_name = r->file_name;
    o.opt_level = r->opt_level;
    o.warnings_are_errors = r->warnings_are_errors;
    o.defines = r->defines;
    o.n_defines = r->n_defines;
    base_str objects[CG_MOST_PARTS] = {0};
    drv_stop stop = {.asked = is_interrupted, .user = ctx};
    drv_result *result;
    tigac_status s = drv_compile_objects(r->text, r->n_text, &o, cpu, r->source_bits, &stop, objects, &result);
    tiga_status status = outcome(r, ctx, s, result, drv_stop_seen(&stop));
    if (status == TIGA_OK)
        write_artefact(objects, result, artefact);
    else if (status == TIGA_E_PROGRAM)
        drv_diags_write(result, artefact);
    if (artefact->failed)
        status = fail(ctx, TIGA_E_MEMORY, r->file_name, "out of memory");
    tigac_result_free(result ? &result->pub : NULL);
    for (int i = 0; i < CG_MOST_PARTS; i++)
        base_str_fini(&objects[i]);
    return status;
}

tiga_status drv_code_build(const drv_recipe *r, tiga_context *ctx, base_str *artefact) {
    drv_cpu own;
    const drv_cpu *cpu;
    tiga_status status = drv_code_cpu(r, ctx, &own, &cpu);
    if (status == TIGA_OK)
        status = compile(r, ctx, cpu, artefact);
    drv_cpu_fini(&own);
    return status;
}

/* ---- load ---- */
static bool is_same(base_hash128 a, base_hash128 b) { return a.lo == b.lo && a.hi == b.hi; }

/* The cache has a checksum of its own; this one is for whoever else hands us bytes: code is run only as it was made. */
static bool read_head(const char *bytes, size_t n, head *h) {
    if (n < sizeof *h)
        return false;
    memcpy(h, bytes, sizeof *h);
    size_t left = n - sizeof *h, rest = left;
    for (int i = 0; i < CG_MOST_PARTS; i++) {
        if (h->objects[i] > rest)
            return false;
        rest -= h->objects[i];
    }
    return !memcmp(h->magic, magic, sizeof magic) && h->diags == rest &&
           is_same(h->hash, base_hash_bytes(bytes + sizeof *h, left));
}

static tiga_status load_image(tiga_context *ctx, const char *bytes, const head *h, drv_image **out) {
    drv_bytes objects[CG_MOST_PARTS];
    size_t n = 0;
    for (int i = 0; i < CG_MOST_PARTS && (h->objects[i] || !i); bytes += h->objects[i++])
        objects[n++] = (drv_bytes){bytes, h->objects[i]};
    base_str err = {0};
    tiga_status status = TIGA_E_INTERNAL;
    switch (drv_image_load(objects, n, out, &err)) {
    case DRV_IMAGE_OK:
        status = TIGA_OK;
        break;
    case DRV_IMAGE_DAMAGED:
        status = fail(ctx, TIGA_E_MODULE, "code made at run time", base_str_text(&err));
        break;
    case DRV_IMAGE_UNKNOWN:
        fail(ctx, status, "code made at run time", base_str_text(&err));
        break;
    case DRV_IMAGE_MEMORY:
        status = fail(ctx, TIGA_E_MEMORY, "code made at run time", base_str_text(&err));
        break;
    }
    base_str_fini(&err);
    return status;
}

static tiga_status find_table(tiga_context *ctx, const drv_image *image, const tiga_module_info **out) {
    void *symbol = drv_image_find(image, TIGA_MODULE_SYMBOL);
    const tiga_module_info *(*table)(void);
    memcpy(&table, &symbol, sizeof table);
    *out = symbol ? table() : NULL;
    if (*out && (*out)->abi_version == TIGA_ABI_VERSION && (*out)->struct_bytes == (int64_t)sizeof **out)
        return TIGA_OK;
    return fail(ctx, TIGA_E_MODULE, "code made at run time", *out ? "of another ABI version" : "it has no table");
}

tiga_status drv_code_load(tiga_context *ctx, const char *bytes, size_t n, drv_code **out) {
    head h;
    *out = NULL;
    if (!read_head(bytes, n, &h))
        return fail(ctx, TIGA_E_MODULE, "code made at run time", "not what this version makes");
    drv_code *c = base_alloc_zero(sizeof *c);
    if (!c)
        return fail(ctx, TIGA_E_MEMORY, "code made at run time", "out of memory");
    atomic_init(&c->refs, 1);
    base_str_add_n(&c->diags, bytes + (n - h.diags), h.diags);
    tiga_status status = load_image(ctx, bytes + sizeof h, &h, &c->image);
    if (status == TIGA_OK)
        status = find_table(ctx, c->image, &c->info);
    if (status == TIGA_OK && c->diags.failed)
        status = fail(ctx, TIGA_E_MEMORY, "code made at run time", "out of memory");
    if (status != TIGA_OK) {
        drv_code_put(c);
        return status;
    }
    c->n_bytes = drv_image_bytes(c->image) + (int64_t)(sizeof *c + h.diags);
    status = tiga_code_charge(ctx, c->n_bytes, &c->account);
    if (status == TIGA_OK)
        *out = c;
    else
        drv_code_put(c);
    return status;
}

drv_code *drv_code_get(drv_code *c) {
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void drv_code_put(drv_code *c) {
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    drv_image_free(c->image);
    base_str_fini(&c->diags);
    tiga_code_discharge(c->account, c->n_bytes);
    base_free(c);
}

/* ---- from the cache ---------------------------------------------------------------------------------------------- */
static tiga_status build(void *user, tiga_context *ctx, base_str *artefact) {
    return drv_code_build(user, ctx, artefact);
}

static tiga_status load(void *user, tiga_context *ctx, const void *bytes, size_t n, void **object,
                        int64_t *object_bytes) {
    (void)user;
    drv_code *c;
    tiga_status status = drv_code_load(ctx, bytes, n, &c);
    *object = c;
    *object_bytes = c ? c->n_bytes : 0;
    return status;
}

static void retain(void *object) { drv_code_get(object); }
static void release(void *object) { drv_code_put(object); }

static bool idle(const void *object, const void *account) {
    const drv_code *c = object;
    return c->account == account && atomic_load(&c->refs) == 1;
}

static const rt_cache_ops cache_ops = {build, load, retain, release, idle};

static const char *const flags_of[3][2][4] = {
#define DRV_LEVELS(rest) {"O0, " rest, "O1, " rest, "O2, " rest, "O3, " rest}
    {DRV_LEVELS("32-bit columns"), DRV_LEVELS("32-bit columns, warnings are errors")},
    {DRV_LEVELS("64-bit columns"), DRV_LEVELS("64-bit columns, warnings are errors")},
    {DRV_LEVELS("32- and 64-bit columns"), DRV_LEVELS("32- and 64-bit columns, warnings are errors")}
#undef DRV_LEVELS
};

bool drv_code_key(drv_key *k, const drv_recipe *r, const drv_cpu *cpu) {
    drv_key_parts parts = {.kind = "cpu object",
                           .file_name = r->file_name,
                           .text = r->text,
                           .n_text = r->n_text,
                           .flags = flags_of[r->source_bits / 32 - 1][r->warnings_are_errors != 0][r->opt_level],
                           .cpu = base_str_text(&cpu->name),
                           .features = base_str_text(&cpu->switches),
                           .defines = r->defines,
                           .n_defines = r->n_defines};
    return drv_key_init(k, &parts);
}

static tiga_status find(const drv_recipe *r, tiga_context *ctx, tiga_cache *cache, const drv_cpu *cpu, drv_code **out,
                        base_str *diags) {
    drv_key key;
    void *object = NULL;
    tiga_status status;
    rt_cache_request request = {.ops = &cache_ops, .user = (void *)(uintptr_t)r, .inside = r->source_bits != 32};
    if (drv_code_key(&key, r, cpu)) {
        request.fields = key.fields;
        request.n_fields = key.n;
        status = tiga_cache_get(cache, ctx, &request, &object, diags);
    } else {
        status = fail(ctx, TIGA_E_MEMORY, r->file_name, "out of memory");
    }
    drv_key_fini(&key);
    *out = object;
    return status;
}

static tiga_status make(const drv_recipe *r, tiga_context *ctx, drv_code **out, base_str *diags) {
    if (r->source_bits == 32) /* otherwise inside of a call, whose interruption counts */
        tiga_cache_begin(ctx);
    base_str artefact = {0};
    tiga_status status = drv_code_build(r, ctx, &artefact);
    if (status == TIGA_OK) {
        status = drv_code_load(ctx, artefact.data, artefact.len, out);
    } else if (status == TIGA_E_PROGRAM) {
        *diags = artefact;
        artefact = (base_str){0};
    }
    base_str_fini(&artefact);
    return status;
}

tiga_status drv_code_find(const drv_recipe *r, tiga_context *ctx, tiga_cache *cache, drv_code **out, base_str *diags) {
    drv_cpu own;
    const drv_cpu *cpu;
    *out = NULL;
    if (r->opt_level < 0 || r->opt_level > 3)
        return fail(ctx, TIGA_E_ARGUMENT, "tiga_jit_options", "opt_level is 0 .. 3");
    tiga_status status = drv_code_cpu(r, ctx, &own, &cpu);
    if (status == TIGA_OK)
        status = cache ? find(r, ctx, cache, cpu, out, diags) : make(r, ctx, out, diags);
    drv_cpu_fini(&own);
    return status == TIGA_E_MODULE ? TIGA_E_INTERNAL : status; /* it was made a moment ago */
}
