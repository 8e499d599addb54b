/* Loading compiled modules.  The file is looked at before the loader gets it (what it is, which machine it is for, whether it is whole); the
 * function that returns the table is the only code that runs before ABI version and processor features are checked. */
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { HERE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HERE = EM_AARCH64 };
#else
enum { HERE = EM_NONE };
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { HERE_DATA = ELFDATA2LSB };
#else
enum { HERE_DATA = ELFDATA2MSB };
#endif

/* Whether a file of `size` bytes has n bytes at `at`. */
static bool within(uint64_t at, uint64_t n, uint64_t size) { return at <= size && n <= size - at; }

static bool read_at(int fd, void *to, size_t n, uint64_t at) {
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got ? errno : EIO; /* shorter than fstat said */
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

static tiga_status fail_truncated(tiga_context *ctx, const char *path, uint64_t size) {
    return rt_fail(ctx, TIGA_E_MODULE, "%s: truncated: a shared object that ends after %llu bytes", path,
                   (unsigned long long)size);
}

/* The loader maps what the program headers say without asking whether the file goes that far; to touch a page beyond
 * its end kills the process.  Linkers put the table of sections last: where it is cut, the file was not written whole. */
static tiga_status check_extent(tiga_context *ctx, const char *path, int fd, const Elf64_Ehdr *head, uint64_t size) {
    uint64_t n_sections = (uint64_t)head->e_shnum * head->e_shentsize;
    if (head->e_phnum && head->e_phentsize != sizeof(Elf64_Phdr))
        return rt_fail(ctx, TIGA_E_MODULE, "%s: a damaged shared object: program headers of %d bytes", path,
                       head->e_phentsize);
    if (!within(head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr), size) ||
        (head->e_shoff && !within(head->e_shoff, n_sections, size)))
        return fail_truncated(ctx, path, size);
    bool dynamic = false;
    for (int i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        if (!read_at(fd, &part, sizeof part, head->e_phoff + (uint64_t)i * sizeof part))
            return rt_fail(ctx, TIGA_E_FILE, "%s: cannot read: %s", path, strerror(errno));
        if (part.p_filesz && part.p_type != PT_NULL && !within(part.p_offset, part.p_filesz, size))
            return fail_truncated(ctx, path, size);
        dynamic |= part.p_type == PT_DYNAMIC && part.p_filesz;
    }
    return dynamic ? TIGA_OK : rt_fail(ctx, TIGA_E_MODULE, "%s: a damaged shared object: no dynamic section", path);
}

/* Of any class and byte order: the first 20 bytes of the header have one layout. */
static tiga_status check_head(tiga_context *ctx, const char *path, const Elf64_Ehdr *head, uint64_t size) {
    size_t known = size < sizeof *head ? (size_t)size : sizeof *head;
    if (known < SELFMAG || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return rt_fail(ctx, TIGA_E_MODULE, "%s: not a shared object", path);
    if (known < offsetof(Elf64_Ehdr, e_version))
        return fail_truncated(ctx, path, size);
    bool foreign = head->e_ident[EI_DATA] != HERE_DATA;
    int machine = foreign ? __builtin_bswap16(head->e_machine) : head->e_machine;
    int type = foreign ? __builtin_bswap16(head->e_type) : head->e_type;
    if (type != ET_DYN)
        return rt_fail(ctx, TIGA_E_MODULE, "%s: not a shared object", path);
    if (foreign || head->e_ident[EI_CLASS] != ELFCLASS64 || (HERE != EM_NONE && machine != HERE))
        return rt_fail(ctx, TIGA_E_TARGET,
                       "%s: a shared object for another kind of processor (ELF machine %d, %s bits, %s-endian)", path,
                       machine, head->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32",
                       head->e_ident[EI_DATA] == ELFDATA2LSB ? "little" : "big");
    return known < sizeof *head ? fail_truncated(ctx, path, size) : TIGA_OK;
}

/* tigac seals what it writes; a module that other tools linked from emitted C has no seal. */
static tiga_status check_seal(tiga_context *ctx, const char *path, int fd, uint64_t size) {
    char *bytes = base_alloc(size);
    if (!bytes)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path);
    tiga_status status = TIGA_OK;
    if (!read_at(fd, bytes, size, 0))
        status = rt_fail(ctx, TIGA_E_FILE, "%s: cannot read: %s", path, strerror(errno));
    else if (base_seal_check(bytes, size) == BASE_SEAL_BROKEN)
        status = rt_fail(ctx, TIGA_E_MODULE, "%s: damaged: its bytes are not those that tigac wrote", path);
    base_free(bytes);
    return status;
}

static tiga_status check_open(tiga_context *ctx, const char *path, int fd) {
    struct stat st;
    Elf64_Ehdr head;
    memset(&head, 0, sizeof head);
    if (fstat(fd, &st) != 0)
        return rt_fail(ctx, TIGA_E_FILE, "%s: cannot read: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return rt_fail(ctx, TIGA_E_MODULE, "%s: not a shared object, %s", path,
                       S_ISDIR(st.st_mode) ? "a folder" : "not even a regular file");
    uint64_t size = (uint64_t)st.st_size;
    if (!read_at(fd, &head, size < sizeof head ? (size_t)size : sizeof head, 0))
        return rt_fail(ctx, TIGA_E_FILE, "%s: cannot read: %s", path, strerror(errno));
    tiga_status status = check_head(ctx, path, &head, size);
    if (status == TIGA_OK)
        status = check_extent(ctx, path, fd, &head, size);
    return status == TIGA_OK ? check_seal(ctx, path, fd, size) : status;
}

static tiga_status open_file(tiga_context *ctx, const char *path, int *fd) {
    /* not to wait for somebody to write into a pipe */
    *fd = base_inject_hit(BASE_INJECT_FILE) ? (errno = EIO, -1) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return *fd < 0 ? rt_fail(ctx, TIGA_E_FILE, "%s: cannot open: %s", path, strerror(errno))
                   : check_open(ctx, path, *fd);
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

/* Another name of the open file: the same for the same file, for as long as somebody has it loaded, and of no other. */
static void name_of_file(base_str *name, int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        memset(&st, 0, sizeof st);
    const uint64_t who[] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    base_str_add(name, "/proc/self/fd/");
    for (int i = 0; i < 128; i++) /* bits, written so that they lead nowhere */
        base_str_add(name, who[i / 64] >> i % 64 & 1 ? "./" : "//");
    base_str_addf(name, "%d", fd);
}

static tiga_status open_library(tiga_context *ctx, const char *path, void **handle) {
    base_str full = {0}, other = {0};
    int fd = -1;
    if (!strchr(path, '/')) /* a plain name means this folder, not the loader's search path */
        base_str_add(&full, "./");
    base_str_add(&full, path);
    tiga_status status =
        full.failed ? rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path) : open_file(ctx, path, &fd);
    if (status == TIGA_OK) {
        /* The loader takes a name that it knows for the file that it loaded under that name, which may have been replaced. */
        void *known = dlopen(full.data, RTLD_LOCAL | RTLD_NOW | RTLD_NOLOAD);
        if (known)
            name_of_file(&other, fd);
        *handle = other.failed ? NULL : dlopen(known ? other.data : full.data, RTLD_LOCAL | RTLD_NOW);
        if (!*handle)
            status = other.failed ? rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path)
                                  : rt_fail(ctx, TIGA_E_MODULE, "%s: cannot load: %s", path, dlerror());
        if (known)
            dlclose(known);
    }
    if (fd >= 0)
        close(fd);
    base_str_fini(&full);
    base_str_fini(&other);
    return status;
}

static tiga_status make(tiga_context *ctx, const char *who, const tiga_module_info *info, tiga_module **out) {
    tiga_status status = check_info(ctx, who, info);
    if (status != TIGA_OK)
        return status;
    tiga_module *m = base_alloc_zero(sizeof *m);
    if (!m)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", who);
    m->info = info;
    atomic_init(&m->refs, 1);
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
        status = make(ctx, path, table(), out);
    if (status != TIGA_OK)
        dlclose(handle);
    else
        (*out)->handle = handle;
    return status;
}

tiga_status tiga_module_from_info(tiga_context *ctx, const tiga_module_info *info, tiga_module **out) {
    if (!ctx || !info || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_module_from_info: an argument is NULL");
    *out = NULL;
    return make(ctx, "tiga_module_from_info", info, out);
}

tiga_status tiga_module_from_owned(tiga_context *ctx, const tiga_module_info *info, void *owner,
                                   void (*release)(void *owner), tiga_module **out) {
    if (!ctx || !info || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_module_from_owned: an argument is NULL");
    *out = NULL;
    tiga_status status = make(ctx, "tiga_module_from_owned", info, out);
    if (status == TIGA_OK) {
        (*out)->owner = owner;
        (*out)->release = release;
    }
    return status;
}

void tiga_module_set_rows(tiga_module *m, tiga_status (*rows)(void *owner, tiga_context *ctx, int source_bits,
                                                              const tiga_module_info **out)) {
    if (m)
        m->rows = rows;
}

tiga_module *tiga_module_retain(tiga_module *m) {
    if (m)
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void tiga_module_free(tiga_module *m) {
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (m->handle)
        dlclose(m->handle);
    if (m->release)
        m->release(m->owner);
    base_free(m);
}

const tiga_module_info *tiga_module_get_info(const tiga_module *m) { return m ? m->info : NULL; }

const tiga_function_info *tiga_module_find(const tiga_module *m, const char *name) {
    for (int i = 0; m && name && i < m->info->n_functions; i++)
        if (strcmp(m->info->functions[i].name, name) == 0)
            return &m->info->functions[i];
    return NULL;
}
