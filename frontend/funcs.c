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

static const fe_later LATER[] = {
    {"stencil", FE_E0812, "function"}, {"radius", FE_E0812, "function"},      {"knn", FE_E0812, "function"},
    {"dense", FE_E0812, "function"},   {"triangular", FE_E0812, "function"},  {"segments", FE_E0812, "function"},
    {"join", FE_E0812, "function"},    {"von_neumann", FE_E0812, "function"}, {"moore", FE_E0812, "function"},
};

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

const fe_later *fe_later_find(const char *text, const char *kind) {
    for (size_t i = 0; i < COUNT(LATER); i++)
        if (strcmp(LATER[i].text, text) == 0 && strcmp(LATER[i].what, kind) == 0)
            return &LATER[i];
    return NULL;
}

bool fe_is_builtin(const char *text) {
    ir_dtype t;
    return fe_func_find(text) || ir_dtype_from_text(text, strlen(text), &t) || fe_later_find(text, "function") ||
           fe_later_find(text, "type") || strcmp(text, "graph") == 0 || strcmp(text, "T") == 0;
}
