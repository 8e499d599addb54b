/* Loading compiled modules.  The file is looked at before the loader gets it (what it is, which machine it is for); the
 * function that returns the table is the only code that runs before ABI version and processor features are checked. */
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { HERE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HERE = EM_AARCH64 };
#else
enum { HERE = EM_NONE };
#endif

static tiga_status check_file(tiga_context *ctx, const char *path) {
    Elf64_Ehdr head;
    int fd = base_inject_hit(BASE_INJECT_FILE) ? (errno = EIO, -1) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rt_fail(ctx, TIGA_E_FILE, "%s: cannot open: %s", path, strerror(errno));
    ssize_t n = read(fd, &head, sizeof head);
    close(fd);
    if (n < 0)
        return rt_fail(ctx, TIGA_E_FILE, "%s: cannot read: %s", path, strerror(errno));
    if (n < (ssize_t)sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_DYN)
        return rt_fail(ctx, TIGA_E_MODULE, "%s: not a shared object", path);
    if (HERE != EM_NONE && (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != HERE))
        return rt_fail(ctx, TIGA_E_TARGET, "%s: a shared object for another kind of processor (ELF machine %d)", path,
                       head.e_machine);
    return TIGA_OK;
}

static tiga_status check_info(tiga_context *ctx, const char *who, const tiga_module_info *info) {
    if (!info)
        return rt_fail(ctx, TIGA_E_MODULE, "%s: the module has no table", who);
    if (info->abi_version != TIGA_ABI_VERSION)
        return rt_fail(ctx, TIGA_E_ABI, "%s: made for ABI version %lld, this library has %d; compile it again", who,
                       (long long)info->abi_version, TIGA_ABI_VERSION);
    if (info->struct_bytes != (int64_t)sizeof(tiga_module_info))
        return rt_fail(ctx, TIGA_E_ABI, "%s: its table has %lld bytes, not %zu; compile it again", who,
                       (long long)info->struct_bytes, sizeof(tiga_module_info));
    if (info->n_functions < 0 || info->n_kernels < 0 || (info->n_functions && !info->functions) ||
        (info->n_kernels && !info->kernels))
        return rt_fail(ctx, TIGA_E_MODULE, "%s: its table is damaged", who);
    return rt_cpu_check(ctx, who, info->target_features);
}

static tiga_status open_library(tiga_context *ctx, const char *path, void **handle) {
    base_str full = {0};
    if (!strchr(path, '/')) /* a plain name means this folder, not the loader's search path */
        base_str_add(&full, "./");
    base_str_add(&full, path);
    tiga_status status = full.failed ? rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path) : check_file(ctx, path);
    if (status == TIGA_OK) {
        *handle = dlopen(full.data, RTLD_LOCAL | RTLD_NOW);
        if (!*handle)
            status = rt_fail(ctx, TIGA_E_MODULE, "%s: cannot load: %s", path, dlerror());
    }
    base_str_fini(&full);
    return status;
}

static tiga_status make(tiga_context *ctx, const char *who, const tiga_module_info *info, void *handle,
                        tiga_module **out) {
    tiga_status status = check_info(ctx, who, info);
    if (status != TIGA_OK)
        return status;
    tiga_module *m = base_alloc_zero(sizeof *m);
    if (!m)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", who);
    m->info = info;
    m->handle = handle;
    *out = m;
    return TIGA_OK;
}

tiga_status tiga_module_load(tiga_context *ctx, const char *path, tiga_module **out) {
    if (!ctx || !path || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_module_load: an argument is NULL");
    *out = NULL;
    void *handle = NULL;
    tiga_status status = open_library(ctx, path, &handle);
    if (status != TIGA_OK)
        return status;
    const tiga_module_info *(*table)(void) = NULL;
    *(void **)&table = dlsym(handle, TIGA_MODULE_SYMBOL);
    if (!table)
        status = rt_fail(ctx, TIGA_E_MODULE, "%s: not a tiga module: it does not export %s", path, TIGA_MODULE_SYMBOL);
    else
        status = make(ctx, path, table(), handle, out);
    if (status != TIGA_OK)
        dlclose(handle);
    return status;
}

tiga_status tiga_module_from_info(tiga_context *ctx, const tiga_module_info *info, tiga_module **out) {
    if (!ctx || !info || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_module_from_info: an argument is NULL");
    *out = NULL;
    return make(ctx, "tiga_module_from_info", info, NULL, out);
}

void tiga_module_free(tiga_module *m) {
    if (!m)
        return;
    if (m->handle)
        dlclose(m->handle);
    base_free(m);
}

const tiga_module_info *tiga_module_get_info(const tiga_module *m) { return m ? m->info : NULL; }

const tiga_function_info *tiga_module_find(const tiga_module *m, const char *name) {
    for (int i = 0; m && name && i < m->info->n_functions; i++)
        if (strcmp(m->info->functions[i].name, name) == 0)
            return &m->info->functions[i];
    return NULL;
}
