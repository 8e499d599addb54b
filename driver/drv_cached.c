/* tigac_compile through the cache: outputs and diagnostics of a compilation are kept as one artefact, for shared objects
 * and cubins as for everything else. */
#include "driver/drv_jit.h"
#include "driver/drv_nvrtc.h"

#include <pthread.h>
#include <stdio.h>
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
static const rt_cache_ops cache_ops = {build, load, retain, release, NULL};

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

/* Another NVRTC makes other cubins; what says which one it is stands where features of a processor do.  Looked for once:
 * the loader would read its file at every lookup. */
static pthread_once_t nvrtc_once = PTHREAD_ONCE_INIT;
static char nvrtc_text[32]; /* empty: there is none */

static void find_nvrtc(void) {
    int major, minor;
    base_str why = {0};
    drv_nvrtc *n = drv_nvrtc_open(&why);
    base_str_fini(&why);
    if (!n)
        return;
    drv_nvrtc_version(n, &major, &minor);
    snprintf(nvrtc_text, sizeof nvrtc_text, "NVRTC %d.%d", major, minor);
    drv_nvrtc_close(n);
}

static const char *nvrtc_name(void) {
    pthread_once(&nvrtc_once, find_nvrtc);
    return nvrtc_text;
}

/* The processor, in *cpu; *own is what to free.  This machine's is asked once a process. */
static tiga_status find_cpu(tiga_context *ctx, const tigac_options *o, drv_cpu *own, const drv_cpu **cpu) {
    drv_recipe r = {.file_name = o->file_name ? o->file_name : "<text>"};
    if (!o->cpu || !strcmp(o->cpu, "native"))
        return drv_code_cpu(&r, ctx, own, cpu);
    base_str err = {0};
    bool known = drv_cpu_resolve(o->cpu, own, &err);
    bool complete = !err.failed && !own->name.failed && !own->switches.failed && !own->features.failed;
    tiga_status status = TIGA_OK;
    if (!complete)
        status = tiga_error_set(ctx, TIGA_E_MEMORY, "out of memory");
    else if (!known)
        status = tiga_error_set(ctx, TIGA_E_ARGUMENT, base_str_text(&err));
    if (status != TIGA_OK)
        drv_cpu_fini(own);
    base_str_fini(&err);
    return status;
}

static tiga_status find(tiga_context *ctx, tiga_cache *cache, request *r, blob **out, base_str *message) {
    const tigac_options *o = r->o;
    bool cuda = o->target && !strcmp(o->target, "cuda");
    base_str flags = {0};
    drv_cpu own = {{0}, {0}, {0}};
    const drv_cpu *cpu = &own;
    drv_key key;
    void *object = NULL;
    *out = NULL;
    tiga_status status = cuda ? TIGA_OK : find_cpu(ctx, o, &own, &cpu);
    if (status != TIGA_OK)
        return status;
    add_flags(o, &flags);
    drv_key_parts parts = {.kind = cuda ? "cubin" : "shared object",
                           .file_name = o->file_name ? o->file_name : "<text>",
                           .text = r->text,
                           .n_text = r->n_text,
                           .flags = base_str_text(&flags),
                           .cpu = cuda ? (o->cuda_arch ? o->cuda_arch : "sm_80") : base_str_text(&cpu->name),
                           .features = cuda ? nvrtc_name() : base_str_text(&cpu->switches),
                           .defines = o->defines,
                           .n_defines = o->n_defines};
    if (drv_key_init(&key, &parts) && !flags.failed) {
        rt_cache_request q = {.fields = key.fields, .n_fields = key.n, .ops = &cache_ops, .user = r};
        status = tiga_cache_get(cache, ctx, &q, &object, message);
    } else {
        status = tiga_error_set(ctx, TIGA_E_MEMORY, "out of memory");
    }
    drv_key_fini(&key);
    drv_cpu_fini(&own);
    base_str_fini(&flags);
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

/* A context keeps the words of its first failure.  While this compile runs it is to have those of this compile. */
static tiga_status set_aside(tiga_context *ctx, base_str *older) {
    tiga_status status = tiga_error_status(ctx);
    if (status != TIGA_OK)
        base_str_add(older, tiga_error_text(ctx));
    tiga_error_clear(ctx);
    return status;
}

static void put_back(tiga_context *ctx, tiga_status status, base_str *older) {
    if (status != TIGA_OK) {
        tiga_error_clear(ctx);
        tiga_error_set(ctx, status, base_str_text(older));
    }
    base_str_fini(older);
}

tigac_status tiga_jit_compile(tiga_context *ctx, tiga_cache *cache, const char *text, size_t n_bytes,
                              const tigac_options *options, tigac_result **out) {
    tigac_options defaults = tigac_defaults();
    request r = {text, n_bytes, options ? options : &defaults};
    if (!ctx || !cache || r.o->struct_bytes != sizeof *r.o || r.o->dump_after)
        return tigac_compile(text, n_bytes, options, out);
    base_str message = {0}, older = {0};
    tiga_status failed_before = set_aside(ctx, &older);
    blob *b = NULL;
    tigac_status s = TIGAC_E_ENVIRONMENT;
    tiga_status status = find(ctx, cache, &r, &b, &message);
    if (status == TIGA_OK)
        s = TIGAC_OK;
    else if (status == TIGA_E_PROGRAM || status == TIGA_E_ARGUMENT)
        s = status == TIGA_E_PROGRAM ? TIGAC_E_PROGRAM : TIGAC_E_OPTION;
    *out = b ? read_blob(&r, b) : read_result(&r, message.data, message.len, tiga_error_text(ctx));
    put_back(ctx, failed_before, &older);
    if (b)
        release(b);
    base_str_fini(&message);
    return *out ? s : TIGAC_E_ENVIRONMENT;
}
