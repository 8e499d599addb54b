/* frontend: text of a .tg file to graph IR.  Lexer, parser (recovers, so that all errors of a file come in one run),
 * types and spaces, lowering.  Knows nothing of passes, targets or devices. */
#ifndef TIGA_FRONTEND_H
#define TIGA_FRONTEND_H

#include "ir/ir.h"

typedef struct fe_define {
    const char *name; /* a dimension to fix: -D F=64 */
    int64_t value;
    bool used; /* set when some kernel or program has the dimension */
} fe_define;

/* Parses and checks `source`; returns a module of graph IR (kernels and programs) or NULL when diags->n_errors > 0.
 * Defines replace dimensions by constants in every function that names them. */
ir_module *fe_compile(base_arena *arena, const char *file_name, const char *source, fe_define *defines,
                      size_t n_defines, base_diags *diags);

typedef struct fe_error_desc {
    const char *id;    /* "E0207" */
    const char *title; /* one line */
    const char *page;  /* what it means, with a wrong and a right example */
} fe_error_desc;
const fe_error_desc *fe_error_find(const char *id); /* NULL: none */
const fe_error_desc *fe_error_at(size_t i);         /* in order; NULL past the end */

#endif
