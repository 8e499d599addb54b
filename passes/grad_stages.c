/* A kernel in two: what leads to the state of one reducer of the user's, and what is made of it.
 *
 *   states   the fields to the values that the state ends with, row by row
 *   rest     the same fields, and those values as fields of the rows, to the results
 *
 * Together they are the kernel, so its gradient is that of `rest` and, with what that gives the values of the state, that
 * of `states`.  What both need is computed in both. */
#include "passes/grad.h"

#include <string.h>

static const char *free_name(const grad *g, const char *base, const char *what) {
    for (unsigned n = 1;; n++) {
        const char *name = base_arena_printf(g->scratch, n == 1 ? "%s.%s" : "%s.%s%u", base, what, n);
        if (!ir_func_find(g->m, name, IR_LEVEL_KERNEL))
            return name;
    }
}

/* The rest of a rest is one. */
static const char *root_of(const grad *g, const char *name) {
    const char *at = strstr(name, ".rest");
    bool whole = at && !strchr(at + 1, '.');
    return whole ? base_arena_strndup(g->scratch, name, (size_t)(at - name)) : name;
}

ir_func *grad_new_kernel(grad *g, const char *base, const char *what, const ir_func *like) {
    const char *name = free_name(g, base, what);
    ir_func *f = like ? ir_func_clone(g->m, like, name) : ir_func_new(g->m, name, IR_LEVEL_KERNEL);
    f->exported = false;
    return f;
}

static bool is_member(const ir_func *f, ir_id v, ir_id combine) {
    return ir_at(f, v)->code == IR_GET && ir_at(f, v)->args[0] == combine;
}

static size_t index_of(const ir_func *f, ir_id get) { return (size_t)ir_int(ir_at(f, get), IR_ATTR_INDEX, 0); }

/* Numbers the values that are used. */
static void find_results(grad_stages *s, const ir_func *k, ir_id combine, base_arena *scratch) {
    size_t n = ir_at(k, combine)->n_args / 2;
    s->result = base_arena_new_array(scratch, size_t, n);
    for (size_t i = 0; i < n; i++)
        s->result[i] = SIZE_MAX;
    for (size_t i = 0; i < k->body.n; i++) {
        ir_id v = k->body.ops[i];
        if (is_member(k, v, combine) && s->result[index_of(k, v)] == SIZE_MAX)
            s->result[index_of(k, v)] = s->n_results++;
    }
}

/* Operations that nothing uses any more go. */
static void drop_unused(grad *g, ir_func *f) {
    bool *keep = base_arena_new_array(g->scratch, bool, f->n_ops);
    keep[f->body.ops[f->body.n - 1]] = true;
    for (size_t i = f->body.n; i-- > 0;) {
        const ir_op *op = ir_at(f, f->body.ops[i]);
        if (!keep[f->body.ops[i]])
            continue;
        for (uint32_t a = 0; a < op->n_args; a++)
            keep[op->args[a]] = true;
        for (size_t k = 0; op->region && k < op->region->n; k++) {
            const ir_op *inner = ir_at(f, op->region->ops[k]);
            keep[op->region->ops[k]] = true;
            for (uint32_t a = 0; a < inner->n_args; a++)
                keep[inner->args[a]] = true;
        }
    }
    pass_sweep(f, &f->body, keep);
}

static void make_states(grad *g, grad_stages *s, const ir_func *k, ir_id combine) {
    ir_func *f = grad_new_kernel(g, k->name, "states", k);
    ir_builder b = {.m = g->m, .f = f, .r = &f->body, .span = ir_at(k, combine)->span};
    ir_id *members = base_arena_new_array(g->scratch, ir_id, s->n_results + 1);
    ir_erase(&f->body, f->body.n - 1); /* ret */
    f->n_results = 0;
    for (size_t i = 0; i < f->body.n; i++) {
        ir_id v = f->body.ops[i];
        if (is_member(f, v, combine))
            members[s->result[index_of(f, v)]] = v;
    }
    for (size_t r = 0; r < s->n_results; r++) {
        ir_param p = {.name = ir_unused_name(g->m, f, base_arena_printf(g->m->arena, "state_%zu", r + 1)),
                      .role = IR_DST,
                      .type = ir_at(f, members[r])->type,
                      .span = b.span};
        base_push(g->m->arena, f->results, f->n_results, f->cap_results, p);
    }
    ir_emit(&b, IR_RET, (ir_type){.dtype = IR_NONE}, members, s->n_results);
    drop_unused(g, f);
    s->states = f;
}

/* A value of the state is read where it was got. */
static void read_instead(grad *g, ir_func *f, ir_id get, size_t field) {
    ir_op *op = ir_at(f, get);
    op->code = IR_FIELD;
    ir_set_args(g->m, op, NULL, 0);
    ir_drop_attr(op, IR_ATTR_INDEX);
    ir_set_int(g->m, op, IR_ATTR_FIELD, (int64_t)field);
    ir_set_word(g->m, op, IR_ATTR_AT, "dst");
}

static void make_rest(grad *g, grad_stages *s, const ir_func *k, ir_id combine) {
    ir_func *f = grad_new_kernel(g, root_of(g, k->name), "rest", k);
    for (size_t r = 0; r < s->n_results; r++) {
        ir_param p = s->states->results[r];
        p.name = ir_unused_name(g->m, f, p.name);
        p.type.space = IR_UNIFORM;
        base_push(g->m->arena, f->params, f->n_params, f->cap_params, p);
    }
    for (size_t i = 0; i < f->body.n; i++) {
        ir_id v = f->body.ops[i];
        if (is_member(f, v, combine))
            read_instead(g, f, v, k->n_params + s->result[index_of(f, v)]);
    }
    drop_unused(g, f);
    s->rest = f;
}

grad_stages grad_stages_of(grad *g, const ir_func *k, ir_id combine) {
    grad_stages s = {0};
    find_results(&s, k, combine, g->scratch);
    make_states(g, &s, k, combine);
    make_rest(g, &s, k, combine);
    return s;
}
