/* The manifest: what is in a module, for tools that do not want to load it.  Keys stay in the order written here. */
#include "codegen/cg.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *dims_of(const ir_func *f, const ir_dim *dims, uint32_t rank) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < rank; ++i)
        json_array_append_new(list, ir_dim_is_sym(dims[i]) ? json_string(f->syms[ir_dim_sym_index(dims[i])])
                                                           : json_integer(dims[i]));
    return list;
}

static const char *lower(base_arena *arena, const char *text) {
    char *s = base_arena_strdup(arena, text);
    for (char *p = s; *p; ++p)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    return s;
}

/* What is written into an arena is written before the first JSON value: when memory ends there, nothing is left behind. */
static void add_words(const char ***next, const ir_func *f, const ir_param *p, bool result, bool program,
                      base_arena *arena) {
    *(*next)++ = lower(arena, cg_field_of(f, p, result, program).at);
    *(*next)++ = cg_field_text(arena, f, p, result, program);
}

static const char **words_of(const ir_module *m, base_arena *arena) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_funcs; ++i)
        n += 1 + 2 * (m->funcs[i]->n_params + m->funcs[i]->n_results);
    const char **words = base_arena_new_array(arena, const char *, n + 1), **next = words;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        const ir_func *f = m->funcs[i];
        if (f->level != IR_LEVEL_TASK)
            continue;
        bool program = !cg_kernel_of(m, f);
        cg_symbol(m, f->name); /* chosen now */
        for (size_t k = 0; k < f->n_params; ++k)
            add_words(&next, f, &f->params[k], false, program, arena);
        for (size_t k = 0; k < f->n_results; ++k)
            add_words(&next, f, &f->results[k], true, program, arena);
        base_str *plan = base_arena_str(arena);
        ir_print_func(f, plan);
        *next++ = base_str_text(plan);
    }
    return words;
}

static json_t *field(const ir_func *f, const ir_param *p, bool result, bool program, const char ***next) {
    const char *role = *(*next)++, *text = *(*next)++;
    cg_field d = cg_field_of(f, p, result, program);
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(p->name));
    json_object_set_new(o, "role", json_string(role));
    if (p->role != IR_GRAPH_FIELD) {
        json_object_set_new(o, "dtype", json_string(ir_dtype_text(p->type.dtype)));
        json_object_set_new(o, "shape", dims_of(f, d.shape, d.rank));
    }
    if (d.graph >= 0)
        json_object_set_new(o, "graph", json_string(f->params[d.graph].name));
    json_object_set_new(o, "text", json_string(text));
    return o;
}

/* [["b.src", "a.dst"], ...]: sizes of graphs that the program takes to be one */
static json_t *same_of(const ir_func *f) {
    json_t *list = json_array();
    for (size_t i = 0; i < f->n_same; ++i)
        json_array_append_new(list, json_pack("[s, s]", f->syms[f->same[i].of], f->syms[f->same[i].is]));
    return list;
}

static json_t *function(const ir_module *m, const ir_func *f, const char ***next) {
    bool program = !cg_kernel_of(m, f);
    json_t *o = json_object(), *dims = json_array(), *params = json_array(), *results = json_array();
    for (size_t i = 0; i < f->n_syms; ++i)
        json_array_append_new(dims, json_string(f->syms[i]));
    for (size_t i = 0; i < f->n_params; ++i)
        json_array_append_new(params, field(f, &f->params[i], false, program, next));
    for (size_t i = 0; i < f->n_results; ++i)
        json_array_append_new(results, field(f, &f->results[i], true, program, next));
    const char *plan = *(*next)++;
    json_object_set_new(o, "name", json_string(f->name));
    json_object_set_new(o, "c_name", json_string(cg_symbol(m, f->name)));
    json_object_set_new(o, "signature", json_string(f->signature ? f->signature : f->name));
    json_object_set_new(o, "needs_square", json_boolean(f->needs_square));
    json_object_set_new(o, "same", same_of(f));
    json_object_set_new(o, "dims", dims);
    json_object_set_new(o, "params", params);
    json_object_set_new(o, "results", results);
    json_object_set_new(o, "plan", json_string(plan));
    return o;
}

static json_t *loop_of(const ir_func *f) {
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(f->name));
    json_object_set_new(o, "domain", json_string(f->domain ? f->domain : ""));
    json_object_set_new(o, "rows_per_unit", json_integer(f->rows_per_unit));
    if (f->team)
        json_object_set_new(o, "team", json_integer(f->team));
    return o;
}

static json_t *manifest(const ir_module *m, const cg_options *o, const char **next) {
    json_t *root = json_object(), *kernels = json_array(), *programs = json_array(), *loops = json_array();
    for (size_t i = 0; i < m->n_funcs; ++i) {
        const ir_func *f = m->funcs[i];
        if (f->level == IR_LEVEL_LOOP)
            json_array_append_new(loops, loop_of(f));
        if (f->level == IR_LEVEL_TASK)
            json_array_append_new(cg_kernel_of(m, f) ? kernels : programs, function(m, f, &next));
    }
    json_object_set_new(root, "compiler", json_string(o->compiler));
    json_object_set_new(root, "source_name", json_string(o->source_name));
    json_object_set_new(root, "source_hash", json_string(o->source_hash));
    json_object_set_new(root, "target_cpu", json_string(o->target_cpu ? o->target_cpu : ""));
    json_object_set_new(root, "target_features", json_string(o->target_features ? o->target_features : ""));
    json_object_set_new(root, "kernels", kernels);
    json_object_set_new(root, "programs", programs);
    json_object_set_new(root, "loops", loops);
    return root;
}

static bool emit(const cg_emission *e) {
    const char **words = words_of(e->m, e->arena);
    json_t *root = manifest(e->m, e->o, words);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    bool ok = text != NULL;
    if (ok)
        base_str_addf(e->out, "%s\n", text);
    free(text);
    json_decref(root);
    return ok || cg_fail(e->err, "cannot write the manifest: out of memory, or a name that is not UTF-8");
}

bool cg_emit_json(const ir_module *m, const cg_options *o, base_str *out, base_str *err) {
    return cg_emit_with(emit, &(cg_emission){.m = m, .o = o, .out = out, .err = err});
}
