/* Names that more than one function sees, and the description of fields that tables, header and manifest share. */
#include "codegen/cg.h"

#include <string.h>

static const char *const endings[] = {"",      "_rows", "_rows32", "_rows64", "_scratch_bytes", "_scratch",
                                      "_host", "_call", "_dims",   "_params", "_results",       "_plan"};

static bool clash(base_arena *arena, const char *a, const char *b) {
    for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i) {
        if (!strcmp(a, base_arena_printf(arena, "%s%s", b, endings[i])))
            return true;
        if (!strcmp(b, base_arena_printf(arena, "%s%s", a, endings[i])))
            return true;
    }
    return false;
}

typedef struct symbols {
    const char **names, **symbols;
    size_t n;
} symbols;

static void add_symbol(symbols *s, base_arena *arena, const char *name) {
    for (size_t i = 0; i < s->n; ++i)
        if (!strcmp(s->names[i], name))
            return;
    const char *want = cg_identifier(arena, name);
    for (size_t i = 0; i < s->n; ++i) {
        if (!clash(arena, want, s->symbols[i]))
            continue;
        want = base_arena_printf(arena, "%s_", want);
        i = (size_t)-1;
    }
    s->names[s->n] = name;
    s->symbols[s->n++] = want;
}

/* The user's functions choose first. */
const char *cg_symbol(const ir_module *m, base_arena *arena, const char *name) {
    symbols s = {base_arena_new_array(arena, const char *, m->n_funcs + 1),
                 base_arena_new_array(arena, const char *, m->n_funcs + 1), 0};
    for (int user = 1; user >= 0; --user)
        for (size_t i = 0; i < m->n_funcs; ++i)
            if (m->funcs[i]->exported == (user != 0))
                add_symbol(&s, arena, m->funcs[i]->name);
    for (size_t i = 0; i < s.n; ++i)
        if (!strcmp(s.names[i], name))
            return s.symbols[i];
    BASE_BUG("no function '%s'", name);
}

int64_t cg_kernel_index(const ir_module *m, const char *name) {
    int64_t n = 0;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        if (m->funcs[i]->level != IR_LEVEL_LOOP)
            continue;
        if (!strcmp(m->funcs[i]->name, name))
            return n;
        n++;
    }
    return -1;
}

const ir_func *cg_kernel_of(const ir_module *m, const ir_func *task) {
    return ir_func_find(m, task->name, IR_LEVEL_KERNEL);
}

const char *cg_type_text(base_arena *arena, const ir_func *f, const ir_type *t) {
    const char *s = ir_dtype_text(t->dtype);
    for (uint32_t i = 0; i < t->rank; ++i) {
        const char *open = i ? ", " : "[", *shut = i + 1 == t->rank ? "]" : "";
        if (ir_dim_is_sym(t->dim[i]))
            s = base_arena_printf(arena, "%s%s%s%s", s, open, f->syms[ir_dim_sym_index(t->dim[i])], shut);
        else
            s = base_arena_printf(arena, "%s%s%lld%s", s, open, (long long)t->dim[i], shut);
    }
    return s;
}

const char *cg_field_text(base_arena *arena, const ir_func *f, const ir_param *p, bool result, bool program) {
    if (p->role == IR_GRAPH_FIELD)
        return base_arena_printf(arena, "%s: graph", p->name);
    const char *edge = result && p->type.space == IR_EDGE ? "edge " : "";
    const char *type = cg_type_text(arena, f, &p->type);
    if (result || program)
        return base_arena_printf(arena, "%s: %s%s", p->name, edge, type);
    return base_arena_printf(arena, "%s %s: %s", ir_role_text(p->role), p->name, type);
}

static const char *at_of_role(ir_role r) {
    switch (r) {
    case IR_SRC:
        return "SRC";
    case IR_DST:
    case IR_OUT_ROW:
        return "DST";
    case IR_NODE:
        return "NODE";
    case IR_EDGE_FIELD:
    case IR_OUT_EDGE:
        return "EDGE";
    case IR_PARAM_FIELD:
    case IR_OUT_PARAM:
        return "PARAM";
    case IR_GRAPH_FIELD:
        return "GRAPH";
    }
    BASE_BUG("role %d", (int)r);
}

/* The graph parameter g of a dimension "g.dst", and which end it is; -1: not the size of a graph. */
static int64_t graph_of_dim(const ir_func *f, ir_dim d, const char **at) {
    static const char *const ends[][2] = {{".dst", "DST"}, {".src", "SRC"}, {".edge", "EDGE"}};
    if (!ir_dim_is_sym(d))
        return -1;
    const char *sym = f->syms[ir_dim_sym_index(d)], *dot = strrchr(sym, '.');
    for (size_t e = 0; dot && e < 3; ++e) {
        if (strcmp(dot, ends[e][0]))
            continue;
        for (size_t i = 0; i < f->n_params; ++i) {
            const ir_param *p = &f->params[i];
            if (p->role != IR_GRAPH_FIELD || strlen(p->name) != (size_t)(dot - sym) ||
                strncmp(p->name, sym, strlen(p->name)))
                continue;
            *at = ends[e][1];
            return (int64_t)i;
        }
    }
    return -1;
}

cg_field cg_field_of(const ir_func *task, const ir_param *p, bool result, bool program) {
    cg_field f = {.at = at_of_role(p->role), .graph = -1, .rank = p->type.rank, .shape = p->type.dim};
    if (p->role == IR_GRAPH_FIELD)
        return (cg_field){.at = "GRAPH", .graph = -1, .rank = 0, .shape = p->type.dim};
    if (!program) {
        if (result)
            f.at = p->type.space == IR_EDGE ? "EDGE" : p->type.space == IR_ROW ? "DST" : "PARAM";
        return f;
    }
    f.at = "PARAM";
    if (f.rank)
        f.graph = graph_of_dim(task, p->type.dim[0], &f.at);
    if (f.graph >= 0) {
        f.rank--;
        f.shape++;
    }
    return f;
}
