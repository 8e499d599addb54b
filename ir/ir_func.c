/* The functions of a module: a list in order, and an index by level and name, so that finding one does not depend on how
 * many there are.  Names never change.  Of two with one name and level (which the verifier refuses) the first is found. */
#include "ir/ir.h"

#include <string.h>

static ir_func gone; /* where a removed function stood in the index */

double ir_winners_tie(ir_dtype t) { return t == IR_F32 ? 16777216.0 : 4503599627370496.0; }

static size_t hash(const char *name, ir_level level) {
    uint64_t h = base_hash_name(name, strlen(name)) + (uint64_t)level;
    return (size_t)(h ^ h >> 32);
}

static void put(ir_module *m, ir_func *f) {
    size_t at = hash(f->name, f->level) & (m->cap_index - 1);
    while (m->index[at])
        at = (at + 1) & (m->cap_index - 1);
    m->index[at] = f;
    m->n_index++;
}

/* At most half full, removed ones included. */
static void grow(ir_module *m) {
    m->cap_index = m->cap_index ? m->cap_index * 2 : 64;
    m->index = base_arena_new_array(m->arena, ir_func *, m->cap_index);
    m->n_index = 0;
    for (size_t i = 0; i < m->n_funcs; i++)
        put(m, m->funcs[i]);
}

ir_func *ir_func_new(ir_module *m, const char *name, ir_level level) {
    ir_func *f = base_arena_alloc(m->arena, sizeof *f);
    f->name = base_arena_strdup(m->arena, name);
    f->level = level;
    f->domain = level == IR_LEVEL_KERNEL || level == IR_LEVEL_LOOP ? "dst" : NULL;
    f->rows_per_unit = 1;
    f->n_ops = 1;
    if (2 * (m->n_index + 1) > m->cap_index)
        grow(m);
    base_push(m->arena, m->funcs, m->n_funcs, m->cap_funcs, f);
    put(m, f);
    return f;
}

static ir_func **find(const ir_module *m, const char *name, ir_level level, const ir_func *exactly) {
    if (!m->cap_index)
        return NULL;
    for (size_t at = hash(name, level) & (m->cap_index - 1); m->index[at]; at = (at + 1) & (m->cap_index - 1)) {
        ir_func *f = m->index[at];
        if (exactly ? f == exactly : f != &gone && f->level == level && strcmp(f->name, name) == 0)
            return &m->index[at];
    }
    return NULL;
}

ir_func *ir_func_find(const ir_module *m, const char *name, ir_level level) {
    ir_func **at = find(m, name, level, NULL);
    return at ? *at : NULL;
}

static void forget(ir_module *m, const ir_func *f) {
    ir_func **at = find(m, f->name, f->level, f);
    if (at)
        *at = &gone;
}

void ir_func_remove(ir_module *m, const ir_func *f) {
    for (size_t i = 0; i < m->n_funcs; i++)
        if (m->funcs[i] == f) {
            memmove(m->funcs + i, m->funcs + i + 1, sizeof *m->funcs * (m->n_funcs - i - 1));
            m->n_funcs--;
            forget(m, f);
            return;
        }
}

void ir_func_replace(ir_module *m, const ir_func *old, ir_func *fresh) {
    BASE_CHECK(m->n_funcs && m->funcs[m->n_funcs - 1] == fresh);
    m->n_funcs--;
    for (size_t i = 0; i < m->n_funcs; i++)
        if (m->funcs[i] == old)
            m->funcs[i] = fresh;
    forget(m, old);
}
