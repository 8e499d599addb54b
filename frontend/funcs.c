/* The tables of built-in functions and reducers, and the words of the language that are still to come. */
#include "frontend/fe.h"

#include <string.h>

static const fe_func FUNCS[] = {
#define FE_FUNC(NAME, text, form, cls, params, code, doc)                                                              \
    {FE_FUNC_##NAME, text, FE_##form, FE_##cls, params, code, doc},
#include "frontend/fe_funcs.def"
#undef FE_FUNC
};

static const fe_reducer REDUCERS[] = {
#define FE_REDUCER(text, kind, cls, params, doc) {text, IR_KIND_##kind, FE_##cls, params, doc},
#include "frontend/fe_reducers.def"
#undef FE_REDUCER
};

/* Functions that make graphs: in the language, not in this version. */
static const char *const LATER[] = {"stencil",  "radius", "knn",         "dense", "triangular",
                                    "segments", "join",   "von_neumann", "moore"};

#define COUNT(a) (sizeof(a) / sizeof *(a))

const fe_func *fe_func_find(const char *text) {
    for (size_t i = 0; i < COUNT(FUNCS); i++)
        if (strcmp(FUNCS[i].text, text) == 0)
            return &FUNCS[i];
    return NULL;
}

const fe_func *fe_func_at(size_t i) { return i < COUNT(FUNCS) ? &FUNCS[i] : NULL; }

const fe_reducer *fe_reducer_find(const char *text) {
    for (size_t i = 0; i < COUNT(REDUCERS); i++)
        if (strcmp(REDUCERS[i].text, text) == 0)
            return &REDUCERS[i];
    return NULL;
}

const fe_reducer *fe_reducer_at(size_t i) { return i < COUNT(REDUCERS) ? &REDUCERS[i] : NULL; }

bool fe_is_later(const char *text) {
    for (size_t i = 0; i < COUNT(LATER); i++)
        if (strcmp(LATER[i], text) == 0)
            return true;
    return false;
}

bool fe_is_builtin(const char *text) {
    ir_dtype t;
    return fe_func_find(text) || ir_dtype_from_text(text, strlen(text), &t) || fe_is_later(text) ||
           strcmp(text, "graph") == 0 || strcmp(text, "T") == 0;
}
