/* What is computed again and again is kept.  An expression on the way to what was asked for is not written to memory; but when a
 * program would compute it a second time (a momentum that is made of the last one, and only ever used), it is one more result of
 * that program.  Otherwise step n of a training would compute all steps before it, by a program of its own.
 *
 * Only what is no larger than the largest array of the program anyway: a product of two axes that is only ever summed stays an
 * expression.  Gradients are left alone: they are programs of copies. */
#include "tensor/tensor.h"

static int64_t bytes_of(const tiga_tensor *x) { return tiga_tensor_size(x) * tiga_dtype_bytes(x->dtype); }

static int64_t largest(const tensor_plan *p) {
    int64_t most = 0;
    for (size_t i = 0; i < p->params.n; i++)
        if (!p->params.v[i]->literal && bytes_of(p->params.v[i]) > most)
            most = bytes_of(p->params.v[i]);
    for (size_t i = 0; i < p->n_roots; i++)
        most = bytes_of(p->roots[i]) > most ? bytes_of(p->roots[i]) : most;
    return most;
}

/* Whether somebody else has x or something that it was made from, and so may ask for a gradient that goes through it.  By
 * uses: how often the plan has it. */
static void find_held(const tensor_plan *p, bool *held) {
    for (size_t i = 0; i < p->items.n; i++)
        p->items.v[i]->uses = 0;
    for (size_t i = 0; i < p->items.n; i++) {
        tiga_tensor *x = p->items.v[i];
        for (uint32_t k = 0; x->kind == TENSOR_COMPUTE && k < x->n_args; k++)
            x->args[k]->uses++;
    }
    for (size_t i = 0; i < p->items.n; i++) {
        const tiga_tensor *x = p->items.v[i];
        held[i] = x->refs > x->uses || x->watched || (x->kind == TENSOR_REAL && x->n_args);
        for (uint32_t k = 0; x->kind == TENSOR_COMPUTE && k < x->n_args; k++)
            held[i] |= held[x->args[k]->number];
    }
}

/* Operands of x that were computed before; x itself was not, so they are the last of their kind. */
static bool add_repeated(const tiga_tensor *x, int64_t most, bool *taken, tensor_list *roots) {
    bool ok = true;
    for (uint32_t k = 0; ok && k < x->n_args; k++) {
        tiga_tensor *a = x->args[k];
        if (a->kind != TENSOR_COMPUTE || !a->ran || taken[a->number] || bytes_of(a) > most)
            continue;
        taken[a->number] = true;
        ok = tensor_list_add(roots, a);
    }
    return ok;
}

static bool find_repeated(const tensor_plan *p, bool *taken, tensor_list *roots) {
    int64_t most = largest(p);
    bool ok = true;
    for (size_t i = 0; ok && i < p->n_roots; i++) {
        taken[p->roots[i]->number] = true;
        ok = tensor_list_add(roots, p->roots[i]);
    }
    for (size_t i = 0; ok && i < p->items.n; i++) {
        const tiga_tensor *x = p->items.v[i];
        if (x->kind == TENSOR_COMPUTE && !x->ran)
            ok = add_repeated(x, most, taken, roots);
    }
    return ok;
}

bool tensor_plan_repeats(const tensor_plan *p, tensor_list *roots) {
    bool any = false;
    for (size_t i = 0; i < p->items.n && !p->has_grad; i++)
        any |= p->items.v[i]->kind == TENSOR_COMPUTE && p->items.v[i]->ran;
    if (!any)
        return false;
    bool *held = base_alloc_zero(2 * p->items.n), *taken = held + p->items.n;
    any = held && find_repeated(p, taken, roots) && roots->n > p->n_roots;
    if (any)
        find_held(p, held);
    for (size_t i = p->n_roots; any && i < roots->n; i++) {
        tiga_tensor *x = roots->v[i];
        x->wanted = true;
        for (uint32_t k = 0; k < x->n_args; k++)
            x->wanted &= !held[x->args[k]->number];
    }
    base_free(held);
    return any;
}

void tensor_plan_ran(const tensor_plan *p) {
    for (size_t i = 0; i < p->items.n; i++)
        p->items.v[i]->ran |= p->items.v[i]->kind == TENSOR_COMPUTE;
}
