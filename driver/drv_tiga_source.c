/* tiga run model.tg: opens libtigac only now, compiles in memory and loads the module from memory.  The only file of tiga
 * that knows the compiler; it is not linked to it. */
#define _GNU_SOURCE
#include "driver/drv_tiga.h"
#include "tiga/compiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_DEFINES 64

typedef struct compiler {
    tigac_options (*defaults)(void);
    tigac_status (*compile)(const char *, size_t, const tigac_options *, tigac_result **);
    void (*result_free)(tigac_result *);
} compiler;

bool drv_is_source(const char *path) {
    size_t n = strlen(path);
    return n > 3 && (!strcmp(path + n - 3, ".tg") || !strcmp(path + n - 3, ".ir"));
}

static void *symbol(void *library, const char *name) { return library ? dlsym(library, name) : NULL; }

static bool open_compiler(compiler *c) {
    void *lib = dlopen("libtigac.so.0", RTLD_NOW | RTLD_LOCAL); /* found through the run path of tiga itself */
    *(void **)&c->defaults = symbol(lib, "tigac_defaults");
    *(void **)&c->compile = symbol(lib, "tigac_compile");
    *(void **)&c->result_free = symbol(lib, "tigac_result_free");
    if (c->defaults && c->compile && c->result_free)
        return true;
    const char *why = dlerror();
    drv_complain(EXIT_ENVIRONMENT, "a .tg file needs the compiler, which cannot be opened: %s",
                 why ? why : "wrong version");
    return false;
}

static int set_defines(const drv_source_options *o, tigac_define *defines, char names[][64]) {
    if (o->n_defines > MAX_DEFINES)
        return drv_complain(EXIT_USAGE, "at most %d -D", MAX_DEFINES);
    for (size_t i = 0; i < o->n_defines; i++) {
        const char *text = o->defines[i], *eq = strchr(text, '=');
        size_t n = eq ? (size_t)(eq - text) : 0;
        base_str err = {0};
        if (!n || n >= 64)
            return drv_complain(EXIT_USAGE, "-D wants NAME=N, not '%s'", text);
        memcpy(names[i], text, n);
        names[i][n] = 0;
        defines[i].name = names[i];
        if (!drv_args_int("-D", eq + 1, 0, INT64_MAX, &defines[i].value, &err)) {
            drv_complain(EXIT_USAGE, "%s", base_str_text(&err));
            base_str_fini(&err);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

/* The loader wants a name; a file in memory has one in /proc. */
static int load_bytes(tiga_context *ctx, const tigac_blob *so, tiga_module **out) {
    int fd = memfd_create("tiga-module", MFD_CLOEXEC);
    for (size_t done = 0; fd >= 0 && done < so->n_bytes;) {
        ssize_t k = write(fd, so->bytes + done, so->n_bytes - done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            close(fd);
            fd = -1;
        } else {
            done += (size_t)k;
        }
    }
    if (fd < 0)
        return drv_complain(EXIT_ENVIRONMENT, "cannot make a file in memory: %s", strerror(errno));
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tiga_status s = tiga_module_load(ctx, path, out);
    close(fd);
    return s ? drv_complain_status(ctx, s) : EXIT_OK;
}

int drv_load_source(tiga_context *ctx, const char *path, const drv_source_options *o, tiga_module **out,
                    double *seconds) {
    compiler c;
    tigac_define defines[MAX_DEFINES];
    char names[MAX_DEFINES][64];
    base_str text = {0}, err = {0};
    int code = set_defines(o, defines, names);
    if (!code && !base_file_read(path, &text, &err))
        code = drv_complain(EXIT_INPUT, "%s", base_str_text(&err));
    double began = drv_seconds();
    if (!code && !open_compiler(&c))
        code = EXIT_ENVIRONMENT;
    if (!code) {
        tigac_options options = c.defaults();
        tigac_result *r;
        options.file_name = path;
        options.opt_level = o->opt_level;
        options.defines = defines;
        options.n_defines = o->n_defines;
        options.color = isatty(2) && !getenv("NO_COLOR");
        code = (int)c.compile(base_str_text(&text), text.len, &options, &r);
        *seconds = drv_seconds() - began;
        if (r) {
            fputs(r->rendered, stderr);
            if (*r->error)
                drv_complain(code, "%s: %s", path, r->error);
        }
        if (!code)
            code = load_bytes(ctx, &r->outputs[TIGAC_SO], out);
        c.result_free(r);
    }
    base_str_fini(&text);
    base_str_fini(&err);
    return code;
}
