/* The JIT: text to code in this process.  drv_jit.c is what users see, drv_jit_code.c compiles and loads, drv_jit_key.c says
 * when code is the same, drv_jit_diag.c keeps diagnostics as bytes so that a cache can give them back. */
#ifndef DRV_JIT_H
#define DRV_JIT_H

#include "driver/drv_clang.h"
#include "driver/drv_result.h"
#include "runtime/rt_cache.h"
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
    int source_bits; /* 32, 64, 96: see cg_options; other than 32 only inside of a call */
} drv_recipe;

/* Code that can be called; counted, from any thread. */
typedef struct drv_code {
    atomic_int refs;
    drv_image *image;
    const tiga_module_info *info;
    base_str diags; /* warnings, as drv_diags_write left them; often empty */
    int64_t n_bytes;
    tiga_execution *account; /* that n_bytes are charged to; NULL: none */
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

/* From the cache, or built and loaded.  E_PROGRAM: *diags (empty before) has the diagnostics. */
tiga_status drv_code_find(const drv_recipe *r, tiga_context *ctx, tiga_cache *cache, drv_code **out, base_str *diags);

/* ---- drv_jit_key.c ---- */
enum { DRV_KEY_FIELDS = 9, DRV_KEY_DEFINES = 8 };
#define DRV_TEXT_(x) #x
#define DRV_TEXT(x) DRV_TEXT_(x)
typedef struct drv_key_parts {
    const char *kind; /* "cpu object" */
    const char *file_name; /* its last part counts */
    const char *text;
    size_t n_text;
    const char *flags; /* "O2, 32-bit columns" */
    const char *cpu, *features;
    const tigac_define *defines;
    size_t n_defines;
} drv_key_parts;
typedef struct drv_key {
    tiga_cache_field *fields;
    int n;
    tiga_cache_field few[DRV_KEY_FIELDS + DRV_KEY_DEFINES];
    base_str words;
} drv_key;
bool drv_key_init(drv_key *k, const drv_key_parts *p); /* borrows all of p; false: out of memory */
void drv_key_fini(drv_key *k); /* also after a failure */
bool drv_code_key(drv_key *k, const drv_recipe *r, const drv_cpu *cpu); /* drv_jit_code.c: of code for this process */
const char *drv_build_id(void); /* of this library, hexadecimal; "" when its linker gave it none */

/* ---- drv_jit_diag.c ---- */
void drv_diags_write(const drv_result *r, base_str *out); /* nothing when there is nothing to tell */
/* The result again, places shown in `text` under the name `file`.  NULL: out of memory, or no such bytes. */
tigac_result *drv_diags_read(const char *bytes, size_t n, const drv_recipe *shown, bool color);
/* One line for the context: the first error and how many more there are. */
void drv_diags_line(const tigac_result *r, base_str *out);

#endif
