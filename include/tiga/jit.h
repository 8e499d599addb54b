/* tiga: message functions from text to callable code inside this process.  Link with -ltigac -ltiga.
 *
 *     tiga_module *m;
 *     tigac_result *why;
 *     if (tiga_jit_source(ctx, text, strlen(text), NULL, &m, &why) != TIGA_OK)
 *         show(why ? why->rendered : tiga_error_text(ctx));
 *     tigac_result_free(why);
 *     ... tiga_call(ctx, m, ...), tiga_prepare(ctx, m, ...) ...
 *     tiga_module_free(m);
 *
 * No compiler is run, no file is read or written but those of the cache, if there is one. */
#ifndef TIGA_JIT_H
#define TIGA_JIT_H

#include "tiga/cache.h"
#include "tiga/compiler.h"
#include "tiga/tiga.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tiga_jit_options {
    size_t struct_bytes;     /* sizeof(tiga_jit_options) */
    const char *file_name;   /* shown in diagnostics; ending in .ir: the text is IR */
    const char *cpu;         /* LLVM's name of a processor, or "native" */
    int opt_level;           /* 0 .. 3 */
    int warnings_are_errors;
    const tigac_define *defines;
    size_t n_defines;
    tiga_cache *cache;       /* NULL: compile every time */
} tiga_jit_options;
TIGA_API tiga_jit_options tiga_jit_defaults(void); /* "<text>", "native", opt_level 2 */

/* Compiles n_bytes of text, or finds in the cache what was compiled before.  options may be NULL.  *out: a module of the
 * caller's, to be freed with tiga_module_free; NULL on failure.  It keeps code and cache alive.
 * result may be NULL; otherwise *result is NULL or owns the diagnostics (warnings too; no outputs), to be freed with
 * tigac_result_free.
 * E_PROGRAM the text is wrong: diagnostics; E_ARGUMENT an option is wrong; E_MEMORY; E_INTERRUPTED while another thread
 * or process compiles the same; E_INTERNAL a fault of ours.
 * Code for graphs with 64-bit columns is compiled in the first call with such a graph, which can then fail likewise.
 * Threads: several at once, with one context each, or with one that has no `poll`: then its error text is that of the first
 * failure, and tiga_interrupt stops all of them. */
TIGA_API tiga_status tiga_jit_source(tiga_context *ctx, const char *text, size_t n_bytes,
                                     const tiga_jit_options *options, tiga_module **out, tigac_result **result);
/* The same for a file; its path is the file name unless options say another.  E_FILE as well. */
TIGA_API tiga_status tiga_jit_file(tiga_context *ctx, const char *path, const tiga_jit_options *options,
                                   tiga_module **out, tigac_result **result);

/* tigac_compile through a cache: shared objects, cubins and all other outputs are compiled once.  With dump_after, and
 * without ctx or cache, it is tigac_compile.  Threads: as above. */
TIGA_API tigac_status tiga_jit_compile(tiga_context *ctx, tiga_cache *cache, const char *text, size_t n_bytes,
                                       const tigac_options *options, tigac_result **out);

#ifdef __cplusplus
}
#endif
#endif
