/* tiga run model.tg: opens libtigac only now and has it compile in memory, or find in the cache what was compiled before.
 * The only file of tiga that knows the compiler; it is not linked to it. */
#include "driver/drv_tiga.h"
#include "tiga/jit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEFINES 64

typedef struct compiler {
    tiga_jit_options (*defaults)(void);
    tiga_status (*jit)(tiga_context *, const char *, const tiga_jit_options *, tiga_module **, tigac_result **);
    void (*result_free)(tigac_result *);
} compiler;

bool drv_is_source(const char *path) {
    size_t n = strlen(path);
    return n > 3 && (!strcmp(path + n - 3, ".tg") || !strcmp(path + n - 3, ".ir"));
}

static void *symbol(void *library, const char *name) { return library ? dlsym(library, name) : NULL; }

static bool open_compiler(compiler *c) {
    void *lib = dlopen("libtigac.so.0", RTLD_NOW | RTLD_LOCAL); /* found through the run path of tiga itself */
    *(void **)&c->defaults = symbol(lib, "tiga_jit_defaults");
    *(void **)&c->jit = symbol(lib, "tiga_jit_file");
    *(void **)&c->result_free = symbol(lib, "tigac_result_free");
    if (c->defaults && c->jit && c->result_free)
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

static int report(tiga_context *ctx, tiga_status status, const tigac_result *result) {
    if (result)
        fputs(result->rendered, stderr);
    if (status == TIGA_OK)
        return EXIT_OK;
    if (status == TIGA_E_PROGRAM && result && *result->rendered)
        return EXIT_INPUT;
    return drv_complain_status(ctx, status);
}

int drv_load_source(tiga_context *ctx, const char *path, const drv_source_options *o, tiga_module **out,
                    double *seconds) {
    compiler c;
    tigac_define defines[MAX_DEFINES];
    char names[MAX_DEFINES][64];
    int code = set_defines(o, defines, names);
    if (code)
        return code;
    double began = drv_seconds();
    if (!open_compiler(&c))
        return EXIT_ENVIRONMENT;
    tiga_jit_options options = c.defaults();
    tigac_result *result = NULL;
    tiga_status status = o->no_cache ? TIGA_OK : tiga_cache_new(NULL, &options.cache);
    options.opt_level = o->opt_level;
    options.defines = defines;
    options.n_defines = o->n_defines;
    if (status == TIGA_OK)
        status = c.jit(ctx, path, &options, out, &result);
    *seconds = drv_seconds() - began;
    code = report(ctx, status, result);
    c.result_free(result);
    tiga_cache_free(options.cache);
    return code;
}
