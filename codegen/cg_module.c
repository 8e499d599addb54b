/* The tables at the end of an emitted file: functions with their fields and plans, and the one symbol a loader looks for. */
#include "codegen/cg.h"

#include <string.h>

static const char *literal(base_arena *arena, const char *text) {
    base_str *s = base_arena_str(arena);
    cg_text w = {.out = s};
    cg_string_literal(&w, text ? text : "");
    const char *r = base_arena_strdup(arena, base_str_text(s));
    return r;
}

static const char *dtype_name(ir_dtype t) {
    switch (t) {
#define IR_DTYPE(NAME, text, ctype, bytes, family, npy)                                                                \
    case IR_##NAME:                                                                                                    \
        return "TIGA_" #NAME;
#include "ir/ir_types.def"
#undef IR_DTYPE
    case IR_GRAPH:
        return "0";
    case IR_NONE:
    case IR_TUPLE:
    case IR_INSTANCE_T:
        break;
    }
    BASE_BUG("no element type %d", (int)t);
}

static void emit_field(const ir_func *f, const ir_param *p, bool result, bool program, cg_text *w, base_arena *arena) {
    cg_field d = cg_field_of(f, p, result, program);
    base_str *shape = base_arena_str(arena);
    for (uint32_t i = 0; i < d.rank; ++i)
        base_str_addf(shape, "%s%lld", i ? ", " : "", (long long)d.shape[i]);
    cg_line(w, "{%s, TIGA_AT_%s, %s, %u, %lld, {%s},", literal(arena, p->name), d.at, dtype_name(p->type.dtype), d.rank,
            (long long)d.graph, d.rank ? base_str_text(shape) : "0");
    cg_line(w, " %s},", literal(arena, cg_field_text(arena, f, p, result, program)));
}

static void emit_fields(const char *symbol, const char *what, const ir_func *f, bool result, bool program, cg_text *w,
                        base_arena *arena) {
    const ir_param *list = result ? f->results : f->params;
    size_t n = result ? f->n_results : f->n_params;
    if (!n)
        return;
    cg_open(w, "static const tiga_field_info %s_%s[] =", symbol, what);
    for (size_t i = 0; i < n; ++i)
        emit_field(f, &list[i], result, program, w, arena);
    cg_close(w, ";");
}

static void emit_parts(const ir_module *m, const ir_func *f, cg_text *w, base_arena *arena) {
    const char *s = cg_symbol(m, f->name);
    bool program = !cg_kernel_of(m, f);
    if (f->n_syms) {
        cg_open(w, "static const char *const %s_dims[] =", s);
        for (size_t i = 0; i < f->n_syms; ++i)
            cg_line(w, "%s,", literal(arena, f->syms[i]));
        cg_close(w, ";");
    }
    if (f->n_same) {
        cg_open(w, "static const int32_t %s_same[] =", s);
        for (size_t i = 0; i < f->n_same; ++i)
            cg_line(w, "%u, %u,", f->same[i].of, f->same[i].is);
        cg_close(w, ";");
    }
    emit_fields(s, "params", f, false, program, w, arena);
    emit_fields(s, "results", f, true, program, w, arena);
    base_str *plan = base_arena_str(arena);
    ir_print_func(f, plan);
    cg_line(w, "static const char %s_plan[] =", s);
    w->indent++;
    cg_string_literal(w, base_str_text(plan));
    w->indent--;
    cg_raw(w, ";\n\n");
}

static const char *part(base_arena *arena, const char *symbol, const char *what, size_t n) {
    return n ? base_arena_printf(arena, "%s_%s", symbol, what) : "NULL";
}

static void emit_function(const ir_module *m, const ir_func *f, cg_text *w, base_arena *arena) {
    const char *s = cg_symbol(m, f->name);
    cg_line(w, "{%s,", literal(arena, f->name));
    w->indent++;
    cg_string_literal(w, f->signature ? f->signature : f->name);
    cg_raw(w, ",\n");
    cg_line(w, "%d, %zu, %zu, %zu, %s, %s, %s, %d, %s_host, %s_plan, %zu, %s},", !cg_kernel_of(m, f), f->n_syms,
            f->n_params, f->n_results, part(arena, s, "dims", f->n_syms), part(arena, s, "params", f->n_params),
            part(arena, s, "results", f->n_results), f->needs_square, s, s, f->n_same,
            part(arena, s, "same", f->n_same));
    w->indent--;
}

static void emit_info(const cg_options *o, size_t n_functions, size_t n_kernels, cg_text *w, base_arena *arena) {
    cg_open(w, "static const tiga_module_info tiga_info =");
    cg_line(w, "TIGA_ABI_VERSION, (int64_t)sizeof(tiga_module_info),");
    cg_line(w, "%s,", literal(arena, o->compiler));
    cg_line(w, "%s,", literal(arena, o->source_name));
    cg_line(w, "%s,", literal(arena, o->source_hash));
    cg_line(w, "%s,", literal(arena, o->target_cpu));
    w->indent += 0;
    cg_string_literal(w, o->target_features ? o->target_features : "");
    cg_raw(w, ",\n");
    cg_line(w, "%zu, %zu, tiga_functions, tiga_kernels,", n_functions, n_kernels);
    cg_close(w, ";\n");
}

void cg_emit_tables(const ir_module *m, const cg_options *o, cg_text *w, base_arena *arena) {
    size_t n_functions = 0, n_kernels = 0;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        n_kernels += m->funcs[i]->level == IR_LEVEL_LOOP;
        if (m->funcs[i]->level != IR_LEVEL_TASK)
            continue;
        n_functions++;
        emit_parts(m, m->funcs[i], w, arena);
    }
    cg_line(w, "/* name, signature, is a program, dimensions, parameters, results (counts, then tables), square, host, "
               "plan, dimensions that are the same */");
    cg_open(w, "static const tiga_function_info tiga_functions[] =");
    for (size_t i = 0; i < m->n_funcs; ++i)
        if (m->funcs[i]->level == IR_LEVEL_TASK)
            emit_function(m, m->funcs[i], w, arena);
    if (!n_functions)
        cg_line(w, "{NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL},");
    cg_close(w, ";\n");
    emit_info(o, n_functions, n_kernels, w, arena);
    cg_raw(w, "/* Another name lets two modules live in one program: -DTIGA_MODULE_SYMBOL_NAME=my_module. */\n"
              "#if !defined(TIGA_MODULE_SYMBOL_NAME)\n#define TIGA_MODULE_SYMBOL_NAME tiga_module_info_v1\n#endif\n"
              "#if defined(__cplusplus)\nextern \"C\" {\n#endif\n"
              "TIGA_EXPORT const tiga_module_info *TIGA_MODULE_SYMBOL_NAME(void);\n"
              "TIGA_EXPORT const tiga_module_info *TIGA_MODULE_SYMBOL_NAME(void) { return &tiga_info; }\n"
              "#if defined(__cplusplus)\n}\n#endif\n\n");
}
