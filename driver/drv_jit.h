/* The JIT: text to code in this process.  drv_jit.c is what users see, drv_jit_code.c compiles and loads, drv_jit_diag.c
 * keeps diagnostics as bytes so that a cache can give them back. */
#ifndef DRV_JIT_H
#define DRV_JIT_H

#include "driver/drv_clang.h"
#include "driver/drv_result.h"
#include "tiga/jit.h"

#include <pthread.h>
#include <stdatomic.h>

/* All that decides what the code is. */
typedef struct drv_recipe {
    const char *text;
    size_t n_text;
    const char *file_name;
    const char *cpu_name; /* NULL: native */
    int opt_level, warnings_are_errors;
    const tigac_define *defines;
    size_t n_defines;
    int source_bits; /* 32, 64, 96: see cg_options */
} drv_recipe;

/* Code that can be called; counted, from any thread. */
typedef struct drv_code {
    atomic_int refs;
    drv_image *image;
    const tiga_module_info *info;
    base_str diags; /* warnings, as drv_diags_write left them; often empty */
    int64_t n_bytes;
} drv_code;

/* ---- drv_jit_code.c ---- */
/* Compiles.  OK: artefact is what drv_code_load wants.  E_PROGRAM: it is the diagnostics.  Otherwise the words are in ctx. */
tiga_status drv_code_build(const drv_recipe *r, tiga_context *ctx, base_str *artefact);
/* E_MODULE: not bytes that this version made (nothing of them ran); *out is NULL unless OK. */
tiga_status drv_code_load(tiga_context *ctx, const char *bytes, size_t n, drv_code **out);
/* The processor of a recipe, in *out; *own is what to free when it is not this machine. */
tiga_status drv_code_cpu(const drv_recipe *r, tiga_context *ctx, drv_cpu *own, const drv_cpu **out);
drv_code *drv_code_get(drv_code *c);
void drv_code_put(drv_code *c); /* NULL is fine */

/* ---- drv_jit_diag.c ---- */
void drv_diags_write(const drv_result *r, base_str *out); /* nothing when there is nothing to tell */
/* The result again, places shown in `text` under the name `file`.  NULL: out of memory, or no such bytes. */
tigac_result *drv_diags_read(const char *bytes, size_t n, const drv_recipe *shown);
/* One line for the context: the first error and how many more there are. */
void drv_diags_line(const tigac_result *r, base_str *out);

#endif
