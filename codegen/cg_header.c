/* The C header of a module: each kernel as a plain function over raw pointers, and as a call through a context when
 * <tiga/tiga.h> was included before.  Carries the contract with the runtime, so that it compiles alone. */
#include "codegen/cg_c.h"

#include <ctype.h>
#include <string.h>

static const char *guard_of(base_arena *arena, const char *header) {
    char *s = base_arena_printf(arena, "TIGA_MODULE_%s", header);
    for (char *p = s; *p; ++p)
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    return s;
}

/* "[graph->n_src][F]" */
static const char *shape_text(base_arena *arena, const ir_func *loop, const ir_param *p) {
    static const char *const lead[] = {"[n_src]", "[n_dst]", "[n_nodes]", "[n_edges]", "",
                                       "",        "[n_dst]", "[n_edges]", ""};
    const char *s = lead[p->role];
    for (uint32_t i = 0; i < p->type.rank; ++i) {
        ir_dim d = p->type.dim[i];
        if (ir_dim_is_sym(d))
            s = base_arena_printf(arena, "%s[%s]", s, loop->syms[ir_dim_sym_index(d)]);
        else
            s = base_arena_printf(arena, "%s[%lld]", s, (long long)d);
    }
    return s;
}

static const char *role_words(ir_role r) {
    static const char *const words[] = {"read at the source of an edge",
                                        "read at the destination of an edge",
                                        "read at both ends of an edge",
                                        "one per edge, in the order of the graph",
                                        "shared by all",
                                        "",
                                        "written, one per destination row",
                                        "written, one per edge",
                                        "written"};
    return words[r];
}

static void document(const ir_module *m, const ir_func *kernel, const ir_func *loop, bool scratch, cg_text *w,
                     base_arena *arena) {
    base_str *s = base_arena_str(arena);
    base_str_addf(s, "%s\n", kernel->signature ? kernel->signature : kernel->name);
    for (size_t i = 0; i < loop->n_params; ++i) {
        const ir_param *p = &loop->params[i];
        const char *type = p->type.dtype == IR_BOOL ? "uint8_t (0 or 1)" : cg_storage(p->type.dtype);
        if (ir_dtype_is_half(p->type.dtype))
            type = base_arena_printf(arena, "%s (the bits of %s)", type, ir_dtype_text(p->type.dtype));
        base_str_addf(s, "\n  %s%s: %s, %s", p->name, shape_text(arena, loop, p), type, role_words(p->role));
    }
    base_str_addf(s,
                  "\n\nArrays are dense and row-major; results must not overlap anything else.  %s computes all rows "
                  "on the calling thread,\n"
                  "%s_rows the rows row_begin .. row_end-1, so that several threads may share the work.",
                  cg_symbol(m, loop->name), cg_symbol(m, loop->name));
    if (kernel->needs_square)
        base_str_add(s, "\nThe graph has as many sources as destinations.");
    if (scratch)
        base_str_addf(s, "\nscratch: %s_scratch(...) bytes aligned to 64, one buffer for each thread.",
                      cg_symbol(m, loop->name));
    cg_comment(w, base_str_text(s));
}

static void emit_plain_kernels(const ir_module *m, cg_text *w, base_arena *arena) {
    for (size_t i = 0; i < m->n_funcs; ++i) {
        ir_func *loop = cg_plain_loop(m, m->funcs[i]);
        if (!loop)
            continue;
        const char *scratch = cg_plain_scratch_prototype(m, loop, arena);
        document(m, m->funcs[i], loop, scratch != NULL, w, arena);
        if (scratch)
            cg_line(w, "TIGA_MODULE_API %s;", scratch);
        cg_line(w, "TIGA_MODULE_API %s;", cg_plain_prototype(m, loop, false, arena));
        cg_line(w, "TIGA_MODULE_API %s;", cg_plain_prototype(m, loop, true, arena));
        cg_blank(w);
    }
}

/* ---- through a context ------------------------------------------------------------------------------------------- */
typedef struct call {
    const ir_func *f;
    const char **params, **results, *ctx, *module, *graph, *in, *out, *graphs;
    size_t n_in, n_graphs;
    bool program;
} call;

static call call_of(const ir_module *m, const ir_func *task, base_arena *arena) {
    cg_names names;
    cg_names_init(&names, arena);
    call c = {.f = task, .program = !cg_kernel_of(m, task)};
    c.params = base_arena_new_array(arena, const char *, task->n_params + 1);
    c.results = base_arena_new_array(arena, const char *, task->n_results + 1);
    for (size_t i = 0; i < task->n_params; ++i)
        c.params[i] = cg_name(&names, task->params[i].name);
    for (size_t i = 0; i < task->n_results; ++i)
        c.results[i] = cg_name(&names, task->results[i].name);
    for (size_t i = 0; i < task->n_params; ++i)
        c.n_graphs += task->params[i].role == IR_GRAPH_FIELD;
    c.n_in = task->n_params - c.n_graphs;
    c.ctx = cg_name(&names, "ctx");
    c.module = cg_name(&names, "module");
    c.graph = cg_name(&names, "graph");
    c.in = cg_name(&names, "in");
    c.out = cg_name(&names, "results");
    c.graphs = cg_name(&names, "graphs");
    return c;
}

static const char *quoted(base_arena *arena, const char *text) {
    base_str *s = base_arena_str(arena);
    cg_text w = {.out = s};
    cg_string_literal(&w, text);
    return base_str_text(s);
}

static void call_prototype(const call *c, const char *symbol, base_str *s) {
    base_str_addf(s, "static inline tiga_status %s_call(tiga_context *%s, tiga_module *%s", symbol, c->ctx, c->module);
    if (!c->program)
        base_str_addf(s, ", tiga_graph *%s", c->graph);
    for (size_t i = 0; i < c->f->n_params; ++i)
        base_str_addf(s, ", tiga_%s *%s", c->f->params[i].role == IR_GRAPH_FIELD ? "graph" : "array", c->params[i]);
    for (size_t i = 0; i < c->f->n_results; ++i)
        base_str_addf(s, ", tiga_array *%s", c->results[i]);
    base_str_add(s, ")");
}

static void bindings(const call *c, cg_text *w, bool results, base_arena *arena) {
    const ir_param *list = results ? c->f->results : c->f->params;
    size_t n = results ? c->f->n_results : c->f->n_params;
    if (!(results ? n : c->n_in))
        return;
    cg_open(w, "%stiga_binding %s[] =", results ? "" : "const ", results ? c->out : c->in);
    for (size_t i = 0; i < n; ++i)
        if (list[i].role != IR_GRAPH_FIELD || results)
            cg_line(w, "{%s, %s},", quoted(arena, list[i].name), (results ? c->results : c->params)[i]);
    cg_close(w, ";");
}

static void emit_call(const ir_module *m, const ir_func *task, cg_text *w, base_arena *arena) {
    call c = call_of(m, task, arena);
    base_str *prototype = base_arena_str(arena), *graphs = base_arena_str(arena);
    call_prototype(&c, cg_symbol(m, task->name), prototype);
    cg_comment(w, task->signature ? task->signature : task->name);
    cg_open(w, "%s", base_str_text(prototype));
    bindings(&c, w, false, arena);
    bindings(&c, w, true, arena);
    for (size_t i = 0; i < task->n_params; ++i)
        if (task->params[i].role == IR_GRAPH_FIELD)
            base_str_addf(graphs, "%s%s", graphs->len ? ", " : "", c.params[i]);
    if (c.n_graphs)
        cg_line(w, "tiga_graph *const %s[] = {%s};", c.graphs, base_str_text(graphs));
    else if (!c.program)
        cg_line(w, "tiga_graph *const %s[] = {%s};", c.graphs, c.graph);
    size_t n_graphs = c.program ? c.n_graphs : 1;
    cg_line(w, "return tiga_call_many(%s, %s, %s, %s, %zu, %s, %zu, %s, %zu, NULL);", c.ctx, c.module,
            quoted(arena, task->name), n_graphs ? c.graphs : "NULL", n_graphs, c.n_in ? c.in : "NULL", c.n_in,
            task->n_results ? c.out : "NULL", task->n_results);
    cg_close(w, "\n");
}

static void emit_calls(const ir_module *m, cg_text *w, base_arena *arena) {
    cg_raw(w, "/* Through a context: include <tiga/tiga.h> first.  Arguments are checked; a result whose data is NULL "
              "is allocated. */\n"
              "#if defined(TIGA_H)\n");
    for (size_t i = 0; i < m->n_funcs; ++i)
        if (m->funcs[i]->level == IR_LEVEL_TASK)
            emit_call(m, m->funcs[i], w, arena);
    cg_raw(w, "#endif /* TIGA_H */\n\n");
}

static bool emit(const cg_emission *e) {
    const cg_options *o = e->o;
    base_arena *arena = e->arena;
    cg_text w = {.out = e->out};
    const char *guard = guard_of(arena, o->header_name);
    cg_comment(&w,
               base_arena_printf(
                   arena,
                   "Made from %s by %s; changes here are lost when it is made again.\nSource hash %s.\n\n"
                   "Compiles alone as C11 and C++17.  Modules whose kernels have equal names cannot be linked into one "
                   "program;\n"
                   "build all but one with -DTIGA_MODULE_SYMBOL_NAME=... so that their tables have different names.",
                   o->source_name, o->compiler, o->source_hash));
    cg_raw(&w, base_arena_printf(arena, "#ifndef %s\n#define %s\n\n#include <stddef.h>\n#include <stdint.h>\n\n", guard,
                                 guard));
    cg_raw(&w, cg_abi_text);
    cg_raw(&w, "\n#ifndef TIGA_MODULE_API /* for example __declspec(dllimport), or static when the C file is included "
               "*/\n#define TIGA_MODULE_API\n#endif\n"
               "#if defined(__cplusplus)\nextern \"C\" {\n#endif\n\n");
    emit_plain_kernels(e->m, &w, arena);
    emit_calls(e->m, &w, arena);
    cg_raw(&w, "/* What a loader asks a module for; tiga_module_from_info takes it. */\n"
               "#if !defined(TIGA_MODULE_SYMBOL_NAME)\n#define TIGA_MODULE_SYMBOL_NAME tiga_module_info_v1\n#endif\n"
               "TIGA_MODULE_API const tiga_module_info *TIGA_MODULE_SYMBOL_NAME(void);\n\n"
               "#if defined(__cplusplus)\n}\n#endif\n");
    cg_raw(&w, base_arena_printf(arena, "#endif /* %s */\n", guard));
    return true;
}

bool cg_emit_header(const ir_module *m, const cg_options *o, base_str *out, base_str *err) {
    return cg_emit_with(emit, &(cg_emission){.m = m, .o = o, .out = out, .err = err});
}
