/* NVRTC, opened at run time.  The few functions in use are declared here: nvrtc.h need not be installed. */
#define _GNU_SOURCE
#include "driver/drv_nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

typedef void *nvrtc_program;

struct drv_nvrtc {
    void *handle, *builtins;
    int (*version)(int *major, int *minor);
    int (*n_archs)(int *n);
    int (*archs)(int *list);
    int (*create)(nvrtc_program *p, const char *text, const char *name, int n_headers, const char *const *headers,
                  const char *const *names);
    int (*destroy)(nvrtc_program *p);
    int (*compile)(nvrtc_program p, int n_options, const char *const *options);
    int (*log_size)(nvrtc_program p, size_t *n);
    int (*log)(nvrtc_program p, char *out);
    int (*cubin_size)(nvrtc_program p, size_t *n);
    int (*cubin)(nvrtc_program p, char *out);
    const char *(*error)(int status);
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A pointer to a function comes out of dlsym as a pointer to data; copying the bits is what POSIX asks for. */
static bool resolve(drv_nvrtc *n, const char *symbol, void *slot, base_str *err) {
    void *p = dlsym(n->handle, symbol);
    if (!p)
        base_str_addf(err, "the NVRTC library has no function '%s'; a version from CUDA 12 or later is needed", symbol);
    memcpy(slot, &p, sizeof p);
    return p != NULL;
}

static bool resolve_all(drv_nvrtc *n, base_str *err) {
    return resolve(n, "nvrtcVersion", &n->version, err) && resolve(n, "nvrtcGetNumSupportedArchs", &n->n_archs, err) &&
           resolve(n, "nvrtcGetSupportedArchs", &n->archs, err) && resolve(n, "nvrtcCreateProgram", &n->create, err) &&
           resolve(n, "nvrtcDestroyProgram", &n->destroy, err) && resolve(n, "nvrtcCompileProgram", &n->compile, err) &&
           resolve(n, "nvrtcGetProgramLogSize", &n->log_size, err) && resolve(n, "nvrtcGetProgramLog", &n->log, err) &&
           resolve(n, "nvrtcGetCUBINSize", &n->cubin_size, err) && resolve(n, "nvrtcGetCUBIN", &n->cubin, err) &&
           resolve(n, "nvrtcGetErrorString", &n->error, err);
}

/* What the library takes while it is loaded it never gives back; that is no leak of ours. */
static void *load(const char *path) {
#ifdef __SANITIZE_ADDRESS__
    __lsan_disable();
#endif
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
#ifdef __SANITIZE_ADDRESS__
    __lsan_enable();
#endif
    return handle;
}

static void *open_named(const char *path, base_str *err) {
    void *handle = load(path);
    if (!handle)
        base_str_addf(err, "TIGA_NVRTC names '%s', which cannot be opened: %s", path, dlerror());
    return handle;
}

static void *open_anywhere(base_str *err) {
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/"};
    for (size_t f = 0; f < sizeof folders / sizeof *folders; ++f)
        for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
            char path[128];
            snprintf(path, sizeof path, "%s%s", folders[f], names[i]);
            void *handle = load(path);
            if (handle)
                return handle;
        }
    base_str_add(err,
                 "NVRTC was not found: tried libnvrtc.so, libnvrtc.so.13 and libnvrtc.so.12 on the library path and in "
                 "/usr/local/cuda/lib64; set TIGA_NVRTC to the path of the library");
    return NULL;
}

/* NVRTC opens its second library by name alone, at the first compile, where the loader may not look; one of that name
 * that is open already will do.  In vain when it is not beside the first. */
static void open_builtins(drv_nvrtc *n, const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    int major, minor;
    drv_nvrtc_version(n, &major, &minor);
    base_str name = {0};
    if (slash)
        base_str_addf(&name, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - path), path, major, minor);
    if (name.len && !name.failed)
        n->builtins = load(name.data);
    base_str_fini(&name);
}

drv_nvrtc *drv_nvrtc_open(base_str *err) {
    const char *path = getenv("TIGA_NVRTC");
    drv_nvrtc *n = base_alloc_zero(sizeof *n);
    if (!n) {
        base_str_add(err, "out of memory");
        return NULL;
    }
    n->handle = path && *path ? open_named(path, err) : open_anywhere(err);
    if (!n->handle || !resolve_all(n, err)) {
        drv_nvrtc_close(n);
        return NULL;
    }
    open_builtins(n, path);
    return n;
}

void drv_nvrtc_close(drv_nvrtc *n) {
    if (!n)
        return;
    if (n->builtins)
        dlclose(n->builtins);
    if (n->handle)
        dlclose(n->handle);
    base_free(n);
}

void drv_nvrtc_version(const drv_nvrtc *n, int *major, int *minor) {
    *major = *minor = 0;
    n->version(major, minor);
}

/* ---- architectures ----------------------------------------------------------------------------------------------- */

static int *list_archs(const drv_nvrtc *n, int *count) {
    *count = 0;
    int *list = NULL;
    if (n->n_archs(count) == 0 && *count > 0)
        list = base_alloc(sizeof *list * (size_t)*count);
    if (list && n->archs(list) == 0)
        return list;
    base_free(list);
    *count = 0;
    return NULL;
}

bool drv_nvrtc_has_arch(const drv_nvrtc *n, const char *arch) {
    int count, *list = list_archs(n, &count);
    bool found = false;
    for (int i = 0; i < count; ++i) {
        char text[24];
        snprintf(text, sizeof text, "sm_%d", list[i]);
        size_t len = strlen(text); /* sm_90a and sm_120f are variants of what is in the list */
        found |=
            !strncmp(arch, text, len) && (!arch[len] || ((arch[len] == 'a' || arch[len] == 'f') && !arch[len + 1]));
    }
    base_free(list);
    return found;
}

void drv_nvrtc_archs(const drv_nvrtc *n, base_str *out) {
    int count, *list = list_archs(n, &count);
    for (int i = 0; i < count; ++i)
        base_str_addf(out, "%ssm_%d", i ? ", " : "", list[i]);
    base_free(list);
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* Sizes count a NUL at the end of a log. */
static bool take(int (*size)(nvrtc_program, size_t *), int (*get)(nvrtc_program, char *), nvrtc_program p, bool is_text,
                 base_str *out) {
    size_t n = 0;
    if (size(p, &n) != 0)
        return false;
    char *bytes = base_alloc(n + 1);
    bool ok = bytes && (n == 0 || get(p, bytes) == 0);
    if (ok && is_text)
        n = strnlen(bytes, n);
    if (ok)
        base_str_add_n(out, bytes, n);
    base_free(bytes);
    return ok && !out->failed;
}

static bool run(drv_nvrtc *n, nvrtc_program p, const char *arch, base_str *cubin, base_str *log) {
    char target[64];
    snprintf(target, sizeof target, "--gpu-architecture=%s", arch);
    const char *const options[] = {target, "-fmad=false", "--std=c++17", "-default-device"};
    int status = n->compile(p, (int)(sizeof options / sizeof *options), options);
    take(n->log_size, n->log, p, true, log);
    if (status == 0 && take(n->cubin_size, n->cubin, p, false, cubin))
        return true;
    if (!log->len)
        base_str_addf(log, "NVRTC failed: %s", status ? n->error(status) : "no cubin came out");
    return false;
}

bool drv_nvrtc_compile(drv_nvrtc *n, const char *text, const char *name, const char *arch, base_str *cubin,
                       base_str *log) {
    if (!drv_nvrtc_has_arch(n, arch)) {
        int major, minor;
        drv_nvrtc_version(n, &major, &minor);
        base_str_addf(log, "NVRTC %d.%d does not know the architecture '%s'; it knows ", major, minor, arch);
        drv_nvrtc_archs(n, log);
        return false;
    }
    nvrtc_program p = NULL;
    int status = n->create(&p, text, name, 0, NULL, NULL);
    if (status != 0) {
        base_str_addf(log, "NVRTC failed: %s", n->error(status));
        return false;
    }
    bool ok = run(n, p, arch, cubin, log);
    n->destroy(&p);
    return ok;
}

bool drv_nvrtc_cubin(const char *text, const char *name, const char *arch, base_str *cubin, base_str *err) {
    base_str log = {0};
    drv_nvrtc *n = drv_nvrtc_open(err);
    bool ok = n && drv_nvrtc_compile(n, text, name, arch, cubin, &log);
    if (n && !ok)
        base_str_add_n(err, base_str_text(&log), log.len); /* warnings of a good text are dropped */
    base_str_fini(&log);
    drv_nvrtc_close(n);
    return ok;
}
