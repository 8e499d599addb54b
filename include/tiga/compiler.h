/* tigac: message functions to C, CUDA, objects and modules, in memory.  Link with -ltigac.
 *
 *     tigac_options o = tigac_defaults();
 *     o.emit = TIGAC_EMIT(TIGAC_SO) | TIGAC_EMIT(TIGAC_HEADER);
 *     tigac_result *r;
 *     if (tigac_compile(text, strlen(text), &o, &r) == TIGAC_OK)
 *         save(r->outputs[TIGAC_SO].bytes, r->outputs[TIGAC_SO].n_bytes);
 *     else
 *         show(r->rendered);
 *     tigac_result_free(r);
 *
 * The library reads and writes no file but libm and libc (for the link) and NVRTC (for cubins); it never prints, exits
 * or aborts on bad input.  Same text, same options, same processor: the same bytes.  Calls may run on several threads
 * at once. */
#ifndef TIGA_COMPILER_H
#define TIGA_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TIGA_API
#define TIGA_API __attribute__((visibility("default")))
#endif

typedef enum tigac_status { /* also the exit codes of the command line */
                            TIGAC_OK = 0,
                            TIGAC_E_PROGRAM = 1,     /* the program is wrong: see diagnostics */
                            TIGAC_E_OPTION = 2,      /* an option is wrong: see error */
                            TIGAC_E_ENVIRONMENT =
                                3  /* out of memory, NVRTC missing, or a fault of the compiler: see error */
} tigac_status;

typedef enum tigac_output {
    TIGAC_C,        /* one self-contained C11 file */
    TIGAC_CUDA,     /* CUDA C */
    TIGAC_HEADER,   /* C header of the module */
    TIGAC_GRAPH_IR, /* what is computed */
    TIGAC_LOOP_IR,  /* how it walks */
    TIGAC_TASK_IR,  /* where the bytes live */
    TIGAC_LLVM_IR,
    TIGAC_OBJ,      /* ELF object; with target "cuda" a cubin */
    TIGAC_SO,       /* ELF shared object for tiga_module_load */
    TIGAC_JSON,     /* description of the module */
    TIGAC_PLAN, /* text: each launch with its walks, bytes per edge and row, what was fused and what was not, and why */
    TIGAC_OUTPUTS
} tigac_output;
#define TIGAC_EMIT(output) (1u << (output))
TIGA_API const char *tigac_output_name(tigac_output output); /* "graph-ir"; NULL past the end */

typedef struct tigac_define { /* fixes a dimension: -D F=64 */
    const char *name;
    int64_t value;
} tigac_define;

typedef struct tigac_options {
    size_t struct_bytes; /* sizeof(tigac_options) */
    uint32_t emit; /* TIGAC_EMIT(...) | ... */
    const char *file_name; /* shown in diagnostics; a name ending in .ir says that the text is IR */
    const char *target; /* "cpu" or "cuda" */
    const char *cpu; /* LLVM's name of a processor, or "native" */
    const char *cuda_arch; /* "sm_90" */
    int opt_level; /* 0 .. 3 */
    int warnings_are_errors;
    int color; /* rendered diagnostics with terminal colours */
    const tigac_define *defines;
    size_t n_defines;
    const char *passes; /* "fold,lower,..." instead of the default list; NULL: default */
    const char *dump_after; /* name of a pass or "all": IR text after it, in dumps; NULL: none */
    const char *header_name; /* file name of the header, for its include guard; NULL: from file_name */
    const char *soname; /* recorded in a shared object; NULL: none */
} tigac_options;
TIGA_API tigac_options tigac_defaults(void); /* target "cpu", "native", "sm_80", opt_level 2, emit TIGAC_SO */

typedef struct tigac_blob {
    const char *bytes; /* NULL when it was not asked for; texts are also NUL-terminated */
    size_t n_bytes;
} tigac_blob;

typedef struct tigac_note {
    int64_t line, column; /* 0: of no place */
    const char *text;
} tigac_note;

typedef struct tigac_diagnostic {
    int is_error; /* 0: warning */
    const char *id; /* "E0207" */
    const char *file;
    int64_t line, column; /* from 1; column in bytes */
    int64_t length; /* bytes */
    const char *text, *label; /* label may be NULL */
    const tigac_note *notes;
    size_t n_notes;
} tigac_diagnostic;

typedef struct tigac_result {
    tigac_blob outputs[TIGAC_OUTPUTS];
    const tigac_diagnostic *diagnostics; /* in order of place, errors and warnings */
    size_t n_diagnostics;
    const char *rendered; /* the same as text with carets; "" when there are none */
    const char *error; /* one line (or a tool's own messages) for TIGAC_E_OPTION and TIGAC_E_ENVIRONMENT; else "" */
    const char *dumps; /* see dump_after; "" when there are none */
} tigac_result;

/* Compiles n_bytes of text.  *out is always set (NULL only when not even a result could be allocated) and owns
 * everything it points to; on failure it has no outputs. */
TIGA_API tigac_status tigac_compile(const char *text, size_t n_bytes, const tigac_options *options, tigac_result **out);
TIGA_API void tigac_result_free(tigac_result *r); /* NULL is fine */

/* What this compiler knows, as text that lives as long as the library. */
TIGA_API const char *tigac_version(void); /* "0.1.0" */
TIGA_API const char *tigac_version_full(void); /* with LLVM's version */
TIGA_API const char *tigac_pass_name(size_t i); /* NULL past the end */
TIGA_API const char *tigac_pass_doc(size_t i);
TIGA_API const char *tigac_default_passes(const char *target, int opt_level);
TIGA_API const char *tigac_op_name(size_t i); /* NULL past the end */
TIGA_API const char *tigac_op_doc(size_t i);
TIGA_API const char *tigac_op_levels(size_t i); /* "graph loop" */
TIGA_API const char *tigac_error_id(size_t i); /* NULL past the end */
TIGA_API const char *tigac_error_title(const char *id); /* NULL: no such error */
TIGA_API const char *tigac_error_page(const char *id);

#ifdef __cplusplus
}
#endif
#endif
