/* tigac_compile through the cache: outputs and diagnostics of a compilation are kept as one artefact, for shared objects
 * and cubins as for everything else. */
#include "driver/drv_jit.h"
#include "driver/drv_nvrtc.h"

#include <string.h>

typedef struct request {
    const char *text;
    size_t n_text;
    const tigac_options *o;
} request;

/* What the cache keeps in memory: the artefact itself. */
typedef struct blob {
    atomic_int refs;
    size_t n;
    char bytes[];
} blob;

/* ---- artefact: the sizes of the outputs, the outputs, the diagnostics --------------------------------------------- */
static const tiga_status status_of[] = {
    [TIGAC_OK] = TIGA_OK,
    [TIGAC_E_PROGRAM] = TIGA_E_PROGRAM,
    [TIGAC_E_OPTION] = TIGA_E_ARGUMENT,
    [TIGAC_E_ENVIRONMENT] = TIGA_E_INTERNAL,
};

static tiga_status build(void *user, tiga_context *ctx, base_str *artefact) {
    const request *r = user;
    tigac_result *result;
    tigac_status s = tigac_compile(r->text, r->n_text, r->o, &result);
    if (!result)
        return tiga_error_set(ctx, TIGA_E_MEMORY, "out of memory");
    uint64_t sizes[TIGAC_OUTPUTS];
    for (int i = 0; i < TIGAC_OUTPUTS; i++)
        sizes[i] = result->outputs[i].n_bytes;
    if (s == TIGAC_OK) {
        base_str_add_n(artefact, (const char *)sizes, sizeof sizes);
        for (int i = 0; i < TIGAC_OUTPUTS; i++)
            base_str_add_n(artefact, result->outputs[i].bytes, sizes[i]);
    }
    if (s == TIGAC_OK || s == TIGAC_E_PROGRAM)
        drv_diags_write((drv_result *)result, artefact);
    else
        tiga_error_set(ctx, status_of[s], result->error);
    tigac_result_free(result);
    return status_of[s];
}

static bool is_whole(const char *bytes, size_t n) {
    uint64_t sizes[TIGAC_OUTPUTS];
    if (n < sizeof sizes)
        return false;
    memcpy(sizes, bytes, sizeof sizes);
    n -= sizeof sizes;
    for (int i = 0; i < TIGAC_OUTPUTS; n -= sizes[i++])
        if (sizes[i] > n)
            return false;
    return true;
}

static tiga_status load(void *user, tiga_context *ctx, const void *bytes, size_t n, void **object,
                        int64_t *object_bytes) {
    (void)user;
    if (!is_whole(bytes, n))
        return tiga_error_set(ctx, TIGA_E_FORMAT, "not what this version makes");
    blob *b = base_alloc(sizeof *b + n);
    if (!b)
        return tiga_error_set(ctx, TIGA_E_MEMORY, "out of memory");
    atomic_init(&b->refs, 1);
    b->n = n;
    memcpy(b->bytes, bytes, n);
    *object = b;
    *object_bytes = (int64_t)(sizeof *b + n);
    return TIGA_OK;
}

static void retain(void *object) { atomic_fetch_add(&((blob *)object)->refs, 1); }
static void release(void *object) {
    if (atomic_fetch_sub(&((blob *)object)->refs, 1) == 1)
        base_free(object);
}
static const rt_cache_ops cache_ops = {build, load, retain, release};

/* ---- key ---------------------------------------------------------------------------------------------------------- */
static void add_flags(const tigac_options *o, base_str *s) {
    base_str_addf(s, "O%d", o->opt_level);
    for (tigac_output i = 0; i < TIGAC_OUTPUTS; i++)
        if (o->emit & TIGAC_EMIT(i))
            base_str_addf(s, ", %s", tigac_output_name(i));
    if (o->warnings_are_errors)
        base_str_add(s, ", warnings are errors");
    if (o->passes)
        base_str_addf(s, ", passes '%s'", o->passes);
    if (o->header_name)
        base_str_addf(s, ", header '%s'", o->header_name);
    if (o->soname)
        base_str_addf(s, ", soname '%s'", o->soname);
}

/* Another NVRTC makes other cubins; what says which one it is stands where features of a processor do. */
static void add_nvrtc(base_str *s) {
    int major, minor;
    drv_nvrtc *n = drv_nvrtc_open(s); /* or the reason why not */
    if (!n)
        return;
    drv_nvrtc_version(n, &major, &minor);
    base_str_addf(s, "NVRTC %d.%d", major, minor);
    drv_nvrtc_close(n);
}

static tiga_status find(tiga_context *ctx, tiga_cache *cache, request *r, blob **out, base_str *message) {
    const tigac_options *o = r->o;
    bool cuda = o->target && !strcmp(o->target, "cuda");
    base_str flags = {0}, nvrtc = {0}, err = {0};
    drv_cpu cpu = {{0}, {0}, {0}};
    drv_key key;
    void *object = NULL;
    add_flags(o, &flags);
    if (cuda)
        add_nvrtc(&nvrtc);
    else if (!drv_cpu_resolve(o->cpu, &cpu, &err))
        tiga_error_set(ctx, TIGA_E_ARGUMENT, base_str_text(&err));
    const char *arch = o->cuda_arch ? o->cuda_arch : "sm_80";
    drv_key_parts parts = {.kind = cuda ? "cubin" : "shared object",
                           .file_name = o->file_name ? o->file_name : "<text>",
                           .text = r->text,
                           .n_text = r->n_text,
                           .flags = base_str_text(&flags),
                           .cpu = cuda ? arch : base_str_text(&cpu.name),
                           .features = cuda ? base_str_text(&nvrtc) : base_str_text(&cpu.switches),
                           .defines = o->defines,
                           .n_defines = o->n_defines};
    tiga_status status = TIGA_E_ARGUMENT;
    bool complete = !flags.failed && !nvrtc.failed && !err.failed && !cpu.name.failed && !cpu.switches.failed;
    if (!err.len && drv_key_init(&key, &parts) && complete)
        status = tiga_cache_get(cache, ctx, &(rt_cache_request){key.fields, key.n, &cache_ops, r}, &object, message);
    else if (!err.len)
        status = tiga_error_set(ctx, TIGA_E_MEMORY, "out of memory");
    if (!err.len)
        drv_key_fini(&key);
    drv_cpu_fini(&cpu);
    base_str_fini(&flags);
    base_str_fini(&nvrtc);
    base_str_fini(&err);
    *out = object;
    return status;
}

/* ---- result ------------------------------------------------------------------------------------------------------- */
static tigac_result *read_result(const request *r, const char *bytes, size_t n, const char *error) {
    drv_recipe shown = {
        .text = r->text, .n_text = r->n_text, .file_name = r->o->file_name ? r->o->file_name : "<text>"};
    if (n)
        return drv_diags_read(bytes, n, &shown, r->o->color);
    drv_result *fresh = drv_result_new();
    if (!fresh)
        return NULL;
    base_str_add(&fresh->error, error);
    drv_result_publish(fresh, TIGAC_E_PROGRAM);
    return &fresh->pub;
}

static tigac_result *read_blob(const request *r, const blob *b) {
    uint64_t sizes[TIGAC_OUTPUTS], total = sizeof sizes;
    memcpy(sizes, b->bytes, sizeof sizes);
    for (int i = 0; i < TIGAC_OUTPUTS; i++)
        total += sizes[i];
    tigac_result *pub = read_result(r, b->bytes + total, b->n - total, "");
    drv_result *result = (drv_result *)pub;
    const char *at = b->bytes + sizeof sizes;
    bool complete = result != NULL;
    for (int i = 0; complete && i < TIGAC_OUTPUTS; at += sizes[i++]) {
        base_str_add_n(&result->outputs[i], at, sizes[i]);
        complete = !result->outputs[i].failed;
    }
    if (complete)
        drv_result_publish(result, TIGAC_OK);
    else
        tigac_result_free(pub);
    return complete ? pub : NULL;
}

tigac_status tiga_jit_compile(tiga_context *ctx, tiga_cache *cache, const char *text, size_t n_bytes,
                              const tigac_options *options, tigac_result **out) {
    tigac_options defaults = tigac_defaults();
    request r = {text, n_bytes, options ? options : &defaults};
    if (!ctx || !cache || r.o->struct_bytes != sizeof *r.o || r.o->dump_after)
        return tigac_compile(text, n_bytes, options, out);
    base_str message = {0};
    blob *b = NULL;
    tigac_status s = TIGAC_E_ENVIRONMENT;
    tiga_status status = find(ctx, cache, &r, &b, &message);
    if (status == TIGA_OK)
        s = TIGAC_OK;
    else if (status == TIGA_E_PROGRAM || status == TIGA_E_ARGUMENT)
        s = status == TIGA_E_PROGRAM ? TIGAC_E_PROGRAM : TIGAC_E_OPTION;
    *out = b ? read_blob(&r, b) : read_result(&r, message.data, message.len, tiga_error_text(ctx));
    if (b)
        release(b);
    base_str_fini(&message);
    return *out ? s : TIGAC_E_ENVIRONMENT;
}
