/* For the tests of this folder: a compiled module, loaded. */
#ifndef GRAD_MODULE_H
#define GRAD_MODULE_H

#include "tiga/compiler.h"
#include "tiga/tiga.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void die(const char *what, const char *why) {
    printf("%s: %s\n", what, why);
    exit(1);
}

/* r: what tigac_compile gave; freed. */
static tiga_module *load_module(tiga_context *ctx, tigac_result *r) {
    char path[] = "/tmp/tiga_grad_XXXXXX";
    tiga_module *m = NULL;
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!f || fwrite(r->outputs[TIGAC_SO].bytes, 1, r->outputs[TIGAC_SO].n_bytes, f) == 0 || fclose(f)) die("file", path);
    if (tiga_module_load(ctx, path, &m)) die("load", tiga_error_text(ctx));
    unlink(path);
    tigac_result_free(r);
    return m;
}

#endif
