/* sim_build: CUDA C text to a loaded shared object, with a host compiler and cuda_sim.h in front. */
#define _GNU_SOURCE
#include "sim_internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CUDA_SIM_HEADER
#error "CUDA_SIM_HEADER: path of cuda_sim.h"
#endif

struct sim_module {
    void *handle;
    uintptr_t begin, end;
};

extern char **environ;

static char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *fmt, ...) {
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    return s;
}

/* ---- the text, and an export for each kernel in it ---- */

static const char *skip_space(const char *p) {
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *skip_parens(const char *p) { /* p at '(' */
    int depth = 0;
    do {
        depth += (*p == '(') - (*p == ')');
        p++;
    } while (*p && depth > 0);
    return p;
}

/* The name of the function whose declaration follows `p`: the word before the first parenthesis that is not of an
 * attribute.  Writes an export for it and returns where to go on. */
static const char *export_kernel(FILE *f, const char *p) {
    const char *name = p, *end = p;
    for (p = skip_space(p); *p && *p != ';' && *p != '{'; p = skip_space(p)) {
        if (*p == '(') {
            bool is_attribute = end - name > 2 && strncmp(name, "__", 2) == 0;
            if (!is_attribute && end > name) {
                fprintf(f, "CUDA_SIM_EXPORT(%.*s)\n", (int)(end - name), name);
                return p;
            }
            p = skip_parens(p);
        } else if (is_word(*p)) {
            for (name = p; is_word(*p); p++)
                ;
            end = p;
        } else {
            p++;
        }
    }
    return p;
}

static bool write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    fprintf(f, "#line 1 \"kernel.cu\"\n%s\n#line 1 \"exports\"\n", text);
    for (const char *p = text; (p = strstr(p, "__global__")) != NULL;) {
        p += strlen("__global__");
        p = export_kernel(f, p);
    }
    return fclose(f) == 0;
}

/* ---- the compiler ---- */

static char *read_all(const char *path) {
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    char *s = NULL;
    size_t n = 0, got;
    char chunk[4096];
    while ((got = fread(chunk, 1, sizeof chunk, f)) > 0) {
        char *more = realloc(s, n + got + 1);
        if (!more)
            break;
        s = more;
        memcpy(s + n, chunk, got);
        n += got;
        s[n] = 0;
    }
    fclose(f);
    return s;
}

/* __CUDACC_RTC__: as under NVRTC, where a text has no headers.  No builtins and no contraction: pow(x, 2) must be the
 * library's, and every operation rounds. */
static const char *const options[] = {"-x",
                                      "c++",
                                      "-std=c++17",
                                      "-O1",
                                      "-g0",
                                      "-fPIC",
                                      "-shared",
                                      "-fsanitize=thread",
                                      "-ffp-contract=off",
                                      "-fno-builtin",
                                      "-fno-exceptions",
                                      "-fno-rtti",
                                      "-nostdlib",
                                      "-Wall",
                                      "-Wextra",
                                      "-Wno-unknown-pragmas",
                                      "-Wno-unused-function",
                                      "-Wno-unused-parameter",
                                      "-D__CUDACC_RTC__",
                                      "-include",
                                      CUDA_SIM_HEADER};
/* Without the second of them the read in `x = x + 1` is not checked. */
static const char *const clang_options[] = {"-fno-sanitize-link-runtime", "-mllvm",
                                            "-tsan-instrument-read-before-write=1", "-fno-vectorize",
                                            "-fno-slp-vectorize"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool run_compiler(const char *source, const char *object, const char *messages) {
    const char *cxx = getenv("CUDA_SIM_CXX") ? getenv("CUDA_SIM_CXX") : "clang++-19";
    const char *argv[COUNT(options) + COUNT(clang_options) + 5] = {cxx};
    size_t n = 1;
    for (size_t i = 0; i < COUNT(options); i++)
        argv[n++] = options[i];
    for (size_t i = 0; strstr(cxx, "clang") && i < COUNT(clang_options); i++)
        argv[n++] = clang_options[i];
    argv[n++] = source;
    argv[n++] = "-o";
    argv[n] = object;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, messages, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid;
    int status = -1, rc = posix_spawnp(&pid, cxx, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (rc == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- loading ---- */

static int note_range(struct dl_phdr_info *info, size_t n, void *user) {
    (void)n;
    sim_module *m = user;
    struct link_map *map = m->handle;
    if (info->dlpi_addr != map->l_addr)
        return 0;
    m->begin = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t lo = info->dlpi_addr + h->p_vaddr, hi = lo + h->p_memsz;
        if (h->p_type != PT_LOAD || (h->p_flags & PF_W))
            continue;
        m->begin = lo < m->begin ? lo : m->begin;
        m->end = hi > m->end ? hi : m->end;
    }
    return 1;
}

static sim_module *load(const char *object, char **log) {
    sim_module *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!m->handle) {
        free(*log);
        *log = strdup(dlerror());
        free(m);
        return NULL;
    }
    dl_iterate_phdr(note_range, m);
    return m;
}

sim_module *sim_module_new(const char *text, const char *work_dir, char **log) {
    *log = NULL;
    char *dir = format("%s/cuda_sim.XXXXXX", work_dir);
    if (!dir || !mkdtemp(dir)) {
        *log = format("cannot make a folder in %s", work_dir);
        free(dir);
        return NULL;
    }
    char *source = format("%s/kernel.cu", dir), *object = format("%s/kernel.so", dir),
         *messages = format("%s/log", dir);
    sim_module *m = NULL;
    if (source && object && messages && write_text(source, text)) {
        bool ok = run_compiler(source, object, messages);
        *log = read_all(messages);
        if (ok)
            m = load(object, log);
        else if (!*log)
            *log = format("the compiler for the simulated device cannot be run");
        unlink(source), unlink(object), unlink(messages);
    }
    rmdir(dir);
    free(source), free(object), free(messages), free(dir);
    return m;
}

void *sim_module_symbol(sim_module *m, const char *prefix, const char *name) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return dlsym(m->handle, full);
}

void sim_module_range(sim_module *m, uintptr_t *begin, uintptr_t *end) {
    *begin = m->begin;
    *end = m->end;
}

void sim_module_free(sim_module *m) {
    if (!m)
        return;
    dlclose(m->handle);
    free(m);
}

void *sim_module_find(sim_module *m, const char *name) { return dlsym(m->handle, name); }
