/* Exported kernels as plain C functions: NAME runs the whole graph on the calling thread, NAME_rows a range of rows, so a
 * caller can spread them over threads of its own.  No runtime is involved. */
#include "codegen/cg_c.h"

#include <string.h>

ir_func *cg_plain_loop(const ir_module *m, const ir_func *f) {
    if (f->level != IR_LEVEL_KERNEL || !f->exported)
        return NULL;
    ir_func *loop = ir_func_find(m, f->name, IR_LEVEL_LOOP);
    return loop && loop->rows_per_unit == 1 && !ir_transposed(loop) ? loop : NULL;
}

/* Sizes of the graph are not asked for again. */
static const char *size_of_graph(const char *sym) {
    return !strcmp(sym, ".dst") ? "n_dst" : !strcmp(sym, ".src") ? "n_src" : !strcmp(sym, ".edge") ? "n_edges" : NULL;
}

/* Nor are dimensions that are computed from others. */
static bool is_asked_for(const char *sym) { return !size_of_graph(sym) && !ir_sym_is_computed(sym); }

typedef struct plain {
    const char *graph, *scratch, *row_begin, *row_end;
    const char **dims, **fields;
} plain;

/* "2*D+K" with the names that the function has for D and K. */
static const char *computed(const ir_func *loop, const plain *p, const char *sum, base_arena *arena) {
    base_str *s = base_arena_str(arena);
    while (*sum) {
        size_t n = strcspn(sum, "+-*");
        for (size_t i = 0; i < loop->n_syms && n; ++i)
            if (strlen(loop->syms[i]) == n && !memcmp(loop->syms[i], sum, n)) {
                base_str_add(s, p->dims[i]);
                sum += n;
                n = 0;
            }
        base_str_add_n(s, sum, n); /* a number */
        sum += n;
        if (*sum)
            base_str_addf(s, " %c ", *sum);
        sum += *sum != 0;
    }
    return base_arena_strdup(arena, base_str_text(s));
}

static plain take_names(const ir_func *loop, base_arena *arena) {
    cg_names names;
    plain p = {.dims = base_arena_new_array(arena, const char *, loop->n_syms + 1),
               .fields = base_arena_new_array(arena, const char *, loop->n_params + 1)};
    cg_names_init(&names, arena);
    for (size_t i = 0; i < loop->n_params; ++i)
        p.fields[i] = cg_name(&names, loop->params[i].name);
    p.graph = cg_name(&names, "graph");
    for (size_t i = 0; i < loop->n_syms; ++i)
        p.dims[i] = size_of_graph(loop->syms[i])
                        ? base_arena_printf(arena, "%s->%s", p.graph, size_of_graph(loop->syms[i]))
                    : ir_sym_is_computed(loop->syms[i]) ? NULL
                                                        : cg_name(&names, loop->syms[i]);
    for (size_t i = 0; i < loop->n_syms; ++i)
        if (!p.dims[i])
            p.dims[i] = computed(loop, &p, loop->syms[i], arena);
    p.scratch = cg_name(&names, "scratch");
    p.row_begin = cg_name(&names, "row_begin");
    p.row_end = cg_name(&names, "row_end");
    return p;
}

/* ", int64_t F, const float *x" or ", F, x" */
static void add_arguments(base_str *s, const ir_func *loop, const plain *p, bool types, bool scratch) {
    for (size_t i = 0; i < loop->n_syms; ++i)
        if (is_asked_for(loop->syms[i]))
            base_str_addf(s, ", %s%s", types ? "int64_t " : "", p->dims[i]);
    for (size_t i = 0; i < loop->n_params; ++i) {
        const ir_param *f = &loop->params[i];
        const char *c = f->role < IR_OUT_ROW ? "const " : "";
        if (types)
            base_str_addf(s, ", %s%s *%s", c, cg_storage(f->type.dtype), p->fields[i]);
        else
            base_str_addf(s, ", %s", p->fields[i]);
    }
    if (scratch)
        base_str_addf(s, ", %s%s", types ? "void *" : "", p->scratch);
}

const char *cg_plain_prototype(const ir_module *m, ir_func *loop, bool rows, base_arena *arena) {
    plain p = take_names(loop, arena);
    base_str *s = base_arena_str(arena);
    base_str_addf(s, "void %s%s(const tiga_csr *%s", cg_symbol(m, loop->name), rows ? "_rows" : "", p.graph);
    add_arguments(s, loop, &p, true, cg_needs_scratch(m, loop, arena));
    if (rows)
        base_str_addf(s, ", int64_t %s, int64_t %s", p.row_begin, p.row_end);
    base_str_add(s, ")");
    const char *r = base_arena_strdup(arena, base_str_text(s));
    return r;
}

const char *cg_plain_scratch_prototype(const ir_module *m, ir_func *loop, base_arena *arena) {
    if (!cg_needs_scratch(m, loop, arena))
        return NULL;
    plain p = take_names(loop, arena);
    base_str *s = base_arena_str(arena);
    base_str_addf(s, "int64_t %s_scratch(const tiga_csr *%s", cg_symbol(m, loop->name), p.graph);
    for (size_t i = 0; i < loop->n_syms; ++i)
        if (is_asked_for(loop->syms[i]))
            base_str_addf(s, ", int64_t %s", p.dims[i]);
    const char *r = base_arena_printf(arena, "%s)", base_str_text(s));
    return r;
}

static void emit_dims(const ir_func *loop, const plain *p, cg_text *w) {
    base_str list = {0};
    for (size_t i = 0; i < loop->n_syms; ++i)
        base_str_addf(&list, "%s%s", i ? ", " : "", p->dims[i]);
    cg_line(w, "const int64_t tiga_dims[] = {%s};", loop->n_syms ? base_str_text(&list) : "0");
    w->out->failed |= list.failed;
    base_str_fini(&list);
}

static void emit_scratch(const ir_module *m, ir_func *loop, const cg_twin *twin, cg_text *w, base_arena *arena) {
    plain p = take_names(loop, arena);
    cg_open(w, "%s", cg_plain_scratch_prototype(m, loop, arena));
    emit_dims(loop, &p, w);
    cg_line(w, "(void)%s;", p.graph);
    cg_line(w, "return %s_scratch_bytes(tiga_dims);", cg_symbol(m, twin->first->name));
    cg_close(w, "\n");
}

static void emit_range(const ir_module *m, ir_func *loop, const cg_twin *twin, const cg_loop_facts *facts, cg_text *w,
                       base_arena *arena) {
    plain p = take_names(loop, arena);
    const char *s = cg_symbol(m, twin->first->name);
    base_str *list = base_arena_str(arena);
    for (size_t i = 0; i < loop->n_params; ++i)
        base_str_addf(list, "%s(void *)%s", i ? ", " : "", p.fields[i]);
    cg_open(w, "%s", cg_plain_prototype(m, loop, true, arena));
    emit_dims(loop, &p, w);
    cg_line(w, "void *const tiga_buffers[] = {%s};", base_str_text(list));
    if (twin->n_numbers)
        cg_line(w, "static const double tiga_numbers[] = {%s};", cg_twin_numbers(twin, arena));
    cg_line(w,
            "const tiga_launch_args tiga_args = {*%s, %s->n_dst, tiga_dims, tiga_buffers, %s, NULL, %s, NULL, NULL};",
            p.graph, p.graph, facts->needs_scratch ? p.scratch : "NULL", twin->n_numbers ? "tiga_numbers" : "NULL");
    if (facts->either) {
        cg_line(w, "%s_rows_any(&tiga_args, %s, %s);", s, p.row_begin, p.row_end);
        cg_close(w, "\n");
        return;
    }
    if (facts->walks_edges) {
        cg_open(w, "if (%s->source_bits == 64)", p.graph);
        cg_line(w, "%s_rows64(&tiga_args, %s, %s);", s, p.row_begin, p.row_end);
        cg_line(w, "return;");
        cg_close(w, "");
    }
    cg_line(w, "%s_rows32(&tiga_args, %s, %s);", s, p.row_begin, p.row_end);
    cg_close(w, "\n");
}

static void emit_whole(const ir_module *m, ir_func *loop, const cg_loop_facts *facts, cg_text *w, base_arena *arena) {
    plain p = take_names(loop, arena);
    base_str *list = base_arena_str(arena);
    add_arguments(list, loop, &p, false, facts->needs_scratch);
    cg_open(w, "%s", cg_plain_prototype(m, loop, false, arena));
    cg_line(w, "%s_rows(%s%s, 0, %s->n_dst);", cg_symbol(m, loop->name), p.graph, base_str_text(list), p.graph);
    cg_close(w, "\n");
}

static ir_func *wanted_loop(const ir_module *m, const ir_func *f, const bool *wanted) {
    ir_func *loop = cg_plain_loop(m, f);
    return loop && wanted[cg_kernel_index(m, loop->name)] ? loop : NULL;
}

void cg_emit_plain(const ir_module *m, const cg_twin *twins, const cg_loop_facts *facts, const bool *wanted, cg_text *w,
                   base_arena *arena) {
    bool any = false;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        ir_func *loop = wanted_loop(m, m->funcs[i], wanted);
        if (!loop)
            continue;
        if (!any)
            cg_raw(w, "/* The kernels as plain functions over raw pointers; see the header. */\n#if "
                      "defined(__cplusplus)\nextern \"C\" {\n#endif\n");
        any = true;
        cg_line(w, "TIGA_EXPORT TIGA_CALLS_ONLY %s;", cg_plain_prototype(m, loop, false, arena));
        cg_line(w, "TIGA_EXPORT TIGA_CALLS_ONLY %s;", cg_plain_prototype(m, loop, true, arena));
        const char *scratch = cg_plain_scratch_prototype(m, loop, arena);
        if (scratch)
            cg_line(w, "TIGA_EXPORT %s;", scratch);
    }
    for (size_t i = 0; i < m->n_funcs; ++i) {
        ir_func *loop = wanted_loop(m, m->funcs[i], wanted);
        if (!loop)
            continue;
        const cg_loop_facts *its = &facts[cg_kernel_index(m, loop->name)];
        const cg_twin *twin = &twins[cg_kernel_index(m, loop->name)];
        cg_blank(w);
        if (its->needs_scratch)
            emit_scratch(m, loop, twin, w, arena);
        emit_range(m, loop, twin, its, w, arena);
        emit_whole(m, loop, its, w, arena);
    }
    if (any)
        cg_raw(w, "#if defined(__cplusplus)\n}\n#endif\n");
}
