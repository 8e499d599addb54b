/* Calls of kernels from programs: which dimension of the caller each symbol of the callee is.
 *
 * With a graph parameter g the leading axes are g.dst, g.src and g.edge, and symbols are found by matching the shapes
 * of parameters; a symbol that no parameter shows is what {dims} says, or else, as is every symbol of a call without a
 * graph, the caller's of the same name.  What is computed from others is computed from what they are in the caller. */
#include "ir/ir_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNBOUND INT64_MAX

static bool graph_dim(const ir_func *caller, const ir_op *call, const char *what, ir_dim *out) {
    int64_t graph = ir_int(call, IR_ATTR_GRAPH, -1);
    uint32_t sym;
    if (!ir_graph_sym(caller, caller->params[graph].name, what, &sym))
        return false;
    *out = ir_dim_sym(sym);
    return true;
}

/* Where the kernel's graph has no name, its sizes are ".dst", ".src" and ".edge". */
static bool bind_graph_sizes(const ir_func *caller, const ir_op *call, const ir_func *callee, ir_dim *dims,
                             base_str *why) {
    static const char *const names[] = {"dst", "src", "edge"};
    static const char *const turned[] = {"src", "dst", "edge"};
    const char *const *theirs = ir_transposed(callee) ? turned : names;
    for (int i = 0; i < 3; i++) {
        char own[8] = ".";
        uint32_t sym;
        strcat(own, names[i]);
        if (!ir_sym_find(callee, own, &sym))
            continue;
        if (!graph_dim(caller, call, theirs[i], &dims[sym])) {
            base_str_addf(why, "the caller has no dimension %s.%s",
                          caller->params[ir_int(call, IR_ATTR_GRAPH, -1)].name, theirs[i]);
            return false;
        }
    }
    return true;
}

static bool same_dim(const ir_func *f, ir_dim a, ir_dim b) {
    ir_type x = {.rank = 1, .dim = {a}}, y = {.rank = 1, .dim = {b}};
    return ir_check_same_shape(f, &x, &y);
}

/* The axis that a role puts in front; false: none. */
static bool leading(const ir_func *caller, const ir_op *call, const ir_func *callee, ir_role role, ir_dim *out,
                    bool *known) {
    int64_t graph = ir_int(call, IR_ATTR_GRAPH, -1);
    *known = true;
    if (role == IR_PARAM_FIELD || role == IR_OUT_PARAM)
        return false;
    if (graph < 0)
        *out = ir_int(call, IR_ATTR_DIM, 0);
    else if (role == IR_SRC)
        *known = graph_dim(caller, call, ir_transposed(callee) ? "dst" : "src", out);
    else if (role == IR_EDGE_FIELD || role == IR_OUT_EDGE)
        *known = graph_dim(caller, call, "edge", out);
    else
        *known = graph_dim(caller, call, ir_transposed(callee) ? "src" : "dst", out);
    return true;
}

static bool match_dim(const ir_func *caller, ir_dim *dims, ir_dim formal, ir_dim actual) {
    if (!ir_dim_is_sym(formal))
        return formal == actual;
    ir_dim *bound = &dims[ir_dim_sym_index(formal)];
    if (*bound == UNBOUND)
        *bound = actual;
    return same_dim(caller, *bound, actual);
}

static bool match_param(const ir_func *caller, const ir_op *call, const ir_func *callee, uint32_t i, ir_dim *dims,
                        base_str *why) {
    const ir_param *p = &callee->params[i];
    const ir_type *actual = &ir_at(caller, call->args[i])->type;
    ir_dim lead;
    bool known, has_lead = leading(caller, call, callee, p->role, &lead, &known), ok = known;
    ok = ok && actual->dtype == p->type.dtype && actual->rank == p->type.rank + has_lead;
    ok = ok && (!has_lead || same_dim(caller, lead, actual->dim[0]));
    for (uint32_t k = 0; ok && k < p->type.rank; k++)
        ok = match_dim(caller, dims, p->type.dim[k], actual->dim[k + has_lead]);
    if (!ok)
        base_str_addf(why, "operand %u does not fit parameter '%s' of @%s", i, p->name, ir_word(call, IR_ATTR_CALLEE));
    return ok;
}

/* ---- what the call itself says: {dims = "F=G;K=3"} ---- */
static bool sym_of(const ir_func *f, const char *name, size_t n, uint32_t *out) {
    for (size_t i = 0; i < f->n_syms; i++)
        if (strlen(f->syms[i]) == n && memcmp(f->syms[i], name, n) == 0) {
            *out = (uint32_t)i;
            return true;
        }
    return false;
}

static bool one_given(const ir_func *caller, const ir_func *callee, const char *at, size_t n, ir_dim *dims) {
    const char *is = memchr(at, '=', n);
    uint32_t formal, actual;
    if (!is || !sym_of(callee, at, (size_t)(is - at), &formal))
        return false;
    size_t rest = n - (size_t)(is + 1 - at);
    char *end;
    if (sym_of(caller, is + 1, rest, &actual))
        dims[formal] = ir_dim_sym(actual);
    else if ((dims[formal] = strtoll(is + 1, &end, 10)) < 0 || rest == 0 || end != is + 1 + rest)
        return false;
    return true;
}

static bool bind_given(const ir_func *caller, const ir_op *call, const ir_func *callee, ir_dim *dims, base_str *why) {
    const char *at = ir_word(call, IR_ATTR_DIMS);
    while (at && *at) {
        size_t n = strcspn(at, ";");
        if (!one_given(caller, callee, at, n, dims)) {
            base_str_addf(why, "'%.*s' names no dimensions of @%s and @%s", (int)n, at, callee->name, caller->name);
            return false;
        }
        at += n + (at[n] == ';');
    }
    return true;
}

/* ---- all ---- */
static bool computed(const ir_func *callee, size_t i) { return ir_sym_is_computed(callee->syms[i]); }

/* Everything but what is computed from others, which stays UNBOUND. */
static bool bind_bases(const ir_func *caller, const ir_op *call, const ir_func *callee, ir_dim *dims, base_str *why) {
    bool has_graph = ir_int(call, IR_ATTR_GRAPH, -1) >= 0;
    uint32_t sym;
    for (size_t i = 0; i < callee->n_syms; i++) {
        bool same = !has_graph && !computed(callee, i) && ir_sym_find(caller, callee->syms[i], &sym);
        dims[i] = same ? ir_dim_sym(sym) : UNBOUND;
    }
    if (!bind_given(caller, call, callee, dims, why) ||
        (has_graph && !bind_graph_sizes(caller, call, callee, dims, why)))
        return false;
    for (uint32_t i = 0; i < callee->n_params; i++)
        if (!match_param(caller, call, callee, i, dims, why))
            return false;
    for (size_t i = 0; i < callee->n_syms; i++) {
        if (dims[i] == UNBOUND && !computed(callee, i) && ir_sym_find(caller, callee->syms[i], &sym))
            dims[i] = ir_dim_sym(sym);
        if (dims[i] == UNBOUND && !computed(callee, i)) {
            base_str_addf(why, "dimension '%s' of @%s is not known here", callee->syms[i], callee->name);
            return false;
        }
    }
    return true;
}

bool ir_bind_call(const ir_func *caller, const ir_op *call, const ir_func *callee, ir_dim *dims, base_str *why) {
    if (!bind_bases(caller, call, callee, dims, why))
        return false;
    for (uint32_t i = 0; i < callee->n_syms; i++) {
        ir_dim shown = dims[i];
        ir_sum sum;
        if (!computed(callee, i))
            continue;
        if (!ir_sum_translate(caller, callee, i, dims, &sum) || !ir_sum_find(caller, &sum, &dims[i])) {
            base_str_addf(why, "dimension '%s' of @%s has no name here", callee->syms[i], callee->name);
            return false;
        }
        if (shown != UNBOUND && shown != dims[i]) {
            base_str_addf(why, "an operand is not of size '%s' of @%s", callee->syms[i], callee->name);
            return false;
        }
    }
    return true;
}

/* ---- before that ---- */
static bool is_shown(const ir_func *f, uint32_t sym) {
    if (f->syms[sym][0] == '.')
        return true;
    for (size_t i = 0; i < f->n_params; i++)
        for (uint32_t k = 0; k < f->params[i].type.rank; k++)
            if (f->params[i].type.dim[k] == ir_dim_sym(sym))
                return true;
    return false;
}

static void name_hidden(const ir_func *caller, const ir_func *callee, const ir_func *from, const ir_dim *known,
                        base_str *out) {
    for (uint32_t i = 0; i < callee->n_syms; i++) {
        uint32_t at;
        if (computed(callee, i) || is_shown(callee, i) || !ir_sym_find(from, callee->syms[i], &at))
            continue;
        ir_dim d = known[at];
        base_str_addf(out, "%s%s=", out->len ? ";" : "", callee->syms[i]);
        if (ir_dim_is_sym(d))
            base_str_add(out, caller->syms[ir_dim_sym_index(d)]);
        else
            base_str_addf(out, "%lld", (long long)d);
    }
}

bool ir_name_dims(ir_module *m, ir_func *caller, ir_op *call, const ir_func *callee, const ir_func *from,
                  const ir_dim *known, base_str *why) {
    base_str given = {0};
    if (known)
        name_hidden(caller, callee, from, known, &given);
    if (given.len)
        ir_set_word(m, call, IR_ATTR_DIMS, base_str_text(&given));
    base_str_fini(&given);
    ir_dim *dims = base_arena_new_array(m->arena, ir_dim, callee->n_syms + 1);
    if (!bind_bases(caller, call, callee, dims, why))
        return false;
    for (uint32_t i = 0; i < callee->n_syms; i++) {
        ir_sum sum;
        ir_dim d;
        if (computed(callee, i) &&
            (!ir_sum_translate(caller, callee, i, dims, &sum) || !ir_sum_dim(m, caller, &sum, &d))) {
            base_str_addf(why, "dimension '%s' of @%s is no size here", callee->syms[i], callee->name);
            return false;
        }
    }
    return true;
}

bool ir_call_result(const ir_func *caller, const ir_op *call, const ir_func *callee, const ir_dim *dims, size_t i,
                    ir_type *out, base_str *why) {
    const ir_type *t = &callee->results[i].type;
    ir_role role = t->space == IR_EDGE ? IR_OUT_EDGE : t->space == IR_ROW ? IR_OUT_ROW : IR_OUT_PARAM;
    ir_dim lead;
    bool known, has_lead = leading(caller, call, callee, role, &lead, &known);
    *out = (ir_type){.dtype = t->dtype, .rank = t->rank + has_lead};
    if (!known || out->rank > IR_MAX_RANK) {
        base_str_addf(why, "the type of result '%s' of @%s cannot be written here", callee->results[i].name,
                      callee->name);
        return false;
    }
    if (has_lead)
        out->dim[0] = lead;
    for (uint32_t k = 0; k < t->rank; k++)
        out->dim[k + has_lead] = ir_dim_is_sym(t->dim[k]) ? dims[ir_dim_sym_index(t->dim[k])] : t->dim[k];
    return true;
}
