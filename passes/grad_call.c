/* The gradient of a call of a kernel: calls of the kernels that were cut out of its adjoint.  The same kernel with the
 * same wanted fields and given cotangents is differentiated once in a module. */
#include "passes/grad.h"

#include <string.h>

struct grad_cached {
    grad_cached *next;
    const ir_func *k;
    bool *want, *given, last;
    grad_kernels kernels;
};

static const char *free_name(grad *g, const ir_func *k) {
    for (unsigned n = 1;; n++) {
        const char *name = base_arena_printf(g->scratch, n == 1 ? "%s.vjp" : "%s.vjp%u", k->name, n);
        bool taken = false;
        for (size_t i = 0; i < g->m->n_funcs; i++)
            taken |= !strncmp(g->m->funcs[i]->name, name, strlen(name));
        if (!taken)
            return name;
    }
}

/* last: not differentiated again, and for a CPU.  Who won has no derivative, and there is no kernel for it on a GPU. */
static const grad_kernels *kernels_of(grad *g, const ir_func *k, const bool *want, const bool *given) {
    bool last = !g->cuda && !g->again;
    for (grad_cached *c = *g->cache; c; c = c->next)
        if (c->k == k && c->last == last && !memcmp(c->want, want, k->n_params) &&
            !memcmp(c->given, given, k->n_results))
            return &c->kernels;
    grad_cached *c = base_arena_alloc(g->scratch, sizeof *c);
    *c = (grad_cached){.next = *g->cache,
                       .k = k,
                       .last = last,
                       .want = base_arena_new_array(g->scratch, bool, k->n_params + 1),
                       .given = base_arena_new_array(g->scratch, bool, k->n_results + 1)};
    base_copy(c->want, want, k->n_params);
    base_copy(c->given, given, k->n_results);
    *g->cache = c;
    const char *name = free_name(g, k);
    grad_adjoint a = grad_adjoint_of(g->m, k, want, given, last, g->scratch);
    c->kernels = grad_split(g->m, &a, name, last, g->scratch);
    return &c->kernels;
}

/* ---- one call ---- */
typedef struct caller {
    grad *g;
    ir_builder *b;
    const ir_op *call;
    const ir_func *k;
    ir_id id;
    const ir_id *cotangent;
    ir_id *rows; /* results of the kernel by rows */
    ir_id *scans; /* those of the scans, one behind the other */
} caller;

/* The sizes of the graph, which the kernels may need and the program may not have named so far. */
static void name_sizes(grad *g, const ir_op *call) {
    static const char *const words[] = {"dst", "src", "edge"};
    if (ir_int(call, IR_ATTR_GRAPH, -1) < 0)
        return; /* over rows of what is at hand */
    const char *graph = g->f->params[ir_int(call, IR_ATTR_GRAPH, 0)].name;
    for (int i = 0; i < 3; i++)
        ir_sym(g->m, g->f, base_arena_printf(g->scratch, "%s.%s", graph, words[i]));
}

static ir_type result_type(grad *g, const ir_op *call, const ir_func *k, size_t i) {
    ir_dim *dims = base_arena_new_array(g->scratch, ir_dim, k->n_syms + 1);
    base_str why = {0};
    ir_type t;
    if (!ir_bind_call(g->f, call, k, dims, &why) || !ir_call_result(g->f, call, k, dims, i, &t, &why))
        BASE_BUG("@%s: %s", k->name, base_str_text(&why));
    base_str_fini(&why);
    t = ir_type_canonical(g->f, &t);
    return t;
}

ir_dim grad_call_dim(grad *g, const ir_op *call, const ir_func *k, ir_dim d) {
    ir_dim *dims = base_arena_new_array(g->scratch, ir_dim, k->n_syms + 1);
    base_str why = {0};
    if (!ir_dim_is_sym(d))
        return d;
    if (!ir_bind_call(g->f, call, k, dims, &why))
        BASE_BUG("@%s: %s", k->name, base_str_text(&why));
    base_str_fini(&why);
    return dims[ir_dim_sym_index(d)];
}

ir_id grad_get_result(grad *g, ir_builder *b, ir_id call, const ir_func *k, size_t i) {
    if (k->n_results == 1)
        return call;
    ir_id id = ir_emit1(b, IR_GET, result_type(g, ir_at(g->f, call), k, i), call);
    ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_INDEX, (int64_t)i);
    return id;
}

static ir_id argument(const caller *c, grad_from from) {
    switch (from.kind) {
    case GRAD_FROM_ARG:
        return c->call->args[from.index];
    case GRAD_FROM_COTANGENT:
        return c->cotangent[from.index];
    case GRAD_FROM_RESULT:
        return grad_get_result(c->g, c->b, c->id, c->k, from.index);
    case GRAD_FROM_ROWS:
        return c->rows[from.index];
    case GRAD_FROM_SCANS:
        return c->scans[from.index];
    }
    BASE_BUG("an argument from nowhere");
}

/* What a kernel made of k needs to know of the dimensions of k, and no operand shows. */
static void name_dims(grad *g, ir_op *op, const ir_func *made, const ir_op *like, const ir_func *k) {
    ir_dim *known = base_arena_new_array(g->scratch, ir_dim, k->n_syms + 1);
    base_str why = {0};
    if (!ir_bind_call(g->f, like, k, known, &why) || !ir_name_dims(g->m, g->f, op, made, k, known, &why))
        BASE_BUG("@%s: %s", made->name, base_str_text(&why));
    base_str_fini(&why);
}

ir_id grad_emit_call(grad *g, ir_builder *b, const ir_op *like, const ir_func *k, const ir_func *made,
                     const ir_id *args, size_t n_args) {
    ir_id id = ir_emit(b, IR_CALL, ir_scalar(IR_TUPLE), args, n_args);
    ir_op *op = ir_at(g->f, id);
    int64_t graph = ir_int(like, IR_ATTR_GRAPH, -1);
    ir_set_word(g->m, op, IR_ATTR_CALLEE, made->name);
    ir_set_int(g->m, op, IR_ATTR_GRAPH, graph);
    if (graph < 0)
        ir_set_int(g->m, op, IR_ATTR_DIM, ir_int(like, IR_ATTR_DIM, 0));
    name_dims(g, op, made, like, k);
    if (made->n_results == 1)
        op->type = result_type(g, op, made, 0);
    return id;
}

/* The results; NULL when there is no such kernel. */
static ir_id *emit(const caller *c, const grad_kernel *k) {
    if (!k->f)
        return NULL;
    ir_id *args = base_arena_new_array(c->g->scratch, ir_id, k->n_args + 1);
    ir_id *out = base_arena_new_array(c->g->scratch, ir_id, k->f->n_results + 1);
    for (size_t i = 0; i < k->n_args; i++)
        args[i] = argument(c, k->args[i]);
    ir_id id = grad_emit_call(c->g, c->b, c->call, c->k, k->f, args, k->n_args);
    for (size_t i = 0; i < k->f->n_results; i++)
        out[i] = grad_get_result(c->g, c->b, id, k->f, i);
    return out;
}

static void emit_scans(caller *c, const grad_kernels *ks) {
    size_t n = 0;
    c->scans = base_arena_new_array(c->g->scratch, ir_id, ks->n_scan_results + 1);
    for (size_t i = 0; i < ks->n_scans; i++) {
        const ir_id *results = emit(c, &ks->scans[i]);
        for (size_t k = 0; k < ks->scans[i].f->n_results; k++)
            c->scans[n++] = results[k];
    }
}

static ir_id add(ir_builder *b, ir_id a, ir_id c) { return a && c ? grad_op2(b, IR_ADD, a, c) : a ? a : c; }

static ir_id part_of_rows(const caller *c, size_t param, ir_id v) {
    bool scalar = c->k->params[param].role == IR_PARAM_FIELD;
    return scalar ? grad_fold_sum(c->b, v, ((uint64_t)1 << ir_at(c->g->f, v)->type.rank) - 1) : v;
}

/* A reducer of the user's that no gradient goes through: what it does; NULL: there is none.  in_parts: the first that is
 * done so, 0: none. */
static const char *refused(const grad *g, const ir_func *k, ir_id *in_parts) {
    for (size_t i = 0; i < k->body.n; i++) {
        if (ir_at(k, k->body.ops[i])->code != IR_COMBINE)
            continue;
        grad_states s = grad_states_of(k, k->body.ops[i], g->scratch);
        if (s.refused)
            return s.refused;
        if (s.in_parts && !*in_parts)
            *in_parts = k->body.ops[i];
    }
    return NULL;
}

bool grad_call(grad *g, ir_builder *b, ir_id id, const ir_id *cotangent, ir_id *out) {
    const ir_op *call = ir_at(g->f, id);
    const ir_func *k = ir_func_find(g->m, ir_word(call, IR_ATTR_CALLEE), IR_LEVEL_KERNEL);
    bool *want = base_arena_new_array(g->scratch, bool, k->n_params + 1);
    bool *given = base_arena_new_array(g->scratch, bool, k->n_results + 1);
    ir_id *full = base_arena_new_array(g->scratch, ir_id, k->n_results + 1);
    caller c = {.g = g, .b = b, .call = call, .k = k, .id = id, .cotangent = full};
    b->span = call->span;
    name_sizes(g, call);
    for (size_t i = 0; i < k->n_params; i++)
        want[i] = out[i] != 0;
    for (size_t i = 0; i < k->n_results; i++) {
        given[i] = cotangent[i] != 0;
        ir_type t = result_type(g, call, k, i);
        full[i] = given[i] ? grad_full(b, cotangent[i], &t) : 0;
    }
    ir_id in_parts = 0;
    const char *why = refused(g, k, &in_parts);
    if (why) {
        base_str_addf(g->err, "program '%s': no gradient goes through a reducer that %s (kernel '%s')", g->f->name, why,
                      k->name);
        return false;
    }
    if (in_parts)
        return grad_call_parts(g, b, id, in_parts, cotangent, out);
    const grad_kernels *ks = kernels_of(g, k, want, given);
    emit_scans(&c, ks);
    ir_id **winners = base_arena_new_array(g->scratch, ir_id *, ks->n_winners + 1);
    ir_id *rows = c.rows = emit(&c, &ks->rows), *turned = emit(&c, &ks->turned), *totals = emit(&c, &ks->totals);
    for (size_t i = 0; i < ks->n_winners; i++)
        winners[i] = emit(&c, &ks->winners[i]);
    for (size_t i = 0; i < k->n_params; i++) {
        const grad_parts *p = &ks->parts[i];
        out[i] = p->rows == SIZE_MAX ? 0 : part_of_rows(&c, i, rows[p->rows]);
        out[i] = add(b, out[i], p->turned == SIZE_MAX ? 0 : turned[p->turned]);
        out[i] = add(b, out[i], p->winners == SIZE_MAX ? 0 : winners[p->winners][0]);
        out[i] = add(b, out[i], p->totals == SIZE_MAX ? 0 : totals[p->totals]);
    }
    return true;
}
