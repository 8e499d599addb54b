/* Text to graph IR: the way through the frontend. */
#include "frontend/fe.h"

#include <string.h>

ir_module *fe_compile(base_arena *arena, const char *file_name, const char *source, fe_define *defines,
                      size_t n_defines, base_diags *diags) {
    fe_context c = {.arena = arena, .diags = diags, .source = source, .length = strlen(source)};
    c.defines = defines;
    c.n_defines = n_defines;
    c.module = ir_module_new(arena, file_name, source);
    fe_lex(&c);
    fe_parse(&c);
    fe_lower_all(&c);
    base_diags_sort(diags);
    return diags->n_errors ? NULL : c.module;
}
