/* grad(value, x) and grad(value, (x, w)) in programs: an operation that the pass `grad` replaces by code.
 *
 * Whether there is a way from each to the value is checked when all bodies are known: kernels may stand below. */
#include "frontend/fe.h"

#include <string.h>

static bool is_zero(fe_lower *l, const fe_expr *e) {
    return e->kind == FE_EXPR_NUMBER && e->span.end == e->span.begin + 1 && l->c->source[e->span.begin] == '0';
}

static void not_differentiable(fe_lower *l, const fe_expr *e, ir_id id, const char *what) {
    fe_label(l->c, fe_report(l->c, FE_E0321, e->span, "%s", what), "this is %s", fe_type_text(l, fe_type_at(l, id)));
}

static ir_id scalar_value(fe_lower *l, const fe_expr *e) {
    ir_id v = fe_lower_value(l, e, IR_NONE);
    if (!v || (fe_type_at(l, v)->rank == 0 && ir_dtype_is_float(fe_type_at(l, v)->dtype)))
        return v;
    not_differentiable(l, e, v, "a gradient is of a float scalar");
    return 0;
}

static void note_gradient(fe_lower *l, const fe_expr *of, const fe_expr *e, ir_id value, ir_id wrt, bool may_miss) {
    fe_gradient g = {.f = l->b.f, .value = value, .wrt = wrt, .span = e->span, .of = of->span, .may_miss = may_miss};
    base_push(l->c->arena, l->c->gradients, l->c->n_gradients, l->c->cap_gradients, g);
}

static ir_id one(ir_builder *b, ir_dtype t) { return ir_emit_f(b, ir_scalar(t), 1); }

ir_id fe_lower_grad(fe_lower *l, const fe_expr *e, const fe_expr **slots) {
    if (!l->program || l->in_fn) {
        fe_label(l->c, fe_report(l->c, FE_E0222, e->name_span, "grad cannot stand here"),
                 "it belongs into the body of a program");
        return 0;
    }
    bool several = slots[1]->kind == FE_EXPR_LIST, ok = true;
    size_t n = several ? slots[1]->n_args : 1;
    ir_id *args = base_arena_new_array(l->c->arena, ir_id, n + 2);
    if (slots[2] && !is_zero(l, slots[2])) {
        fe_label(l->c, fe_report(l->c, FE_E0321, slots[2]->span, "missing is 0"), "leave it out to get an error");
        return 0;
    }
    args[0] = scalar_value(l, slots[0]);
    for (size_t i = 0; i < n; i++) {
        const fe_expr *w = several ? slots[1]->args[i].value : slots[1];
        args[i + 2] = fe_lower_value(l, w, IR_NONE);
        if (args[i + 2] && !ir_dtype_has_gradient(fe_type_at(l, args[i + 2])->dtype)) {
            not_differentiable(l, w, args[i + 2], "a gradient is with respect to floats");
            ok = false;
        }
        if (args[0] && args[i + 2] && ok)
            note_gradient(l, slots[0], w, args[0], args[i + 2], slots[2] != NULL);
        ok &= args[i + 2] != 0;
    }
    if (!args[0] || !ok)
        return 0;
    l->b.span = e->span;
    args[1] = one(&l->b, fe_type_at(l, args[0])->dtype);
    ir_id id = fe_put(l, e->span, IR_GRAD, ir_scalar(IR_TUPLE), args, n + 2), first = 0;
    if (!id)
        return 0;
    ir_set_int(l->c->module, ir_at(l->b.f, id), IR_ATTR_OUTPUTS, 1);
    for (size_t i = 0; i < n; i++) {
        ir_id get = fe_put(l, e->span, IR_GET, *fe_type_at(l, args[i + 2]), &id, 1);
        if (!get)
            return 0;
        ir_set_int(l->c->module, ir_at(l->b.f, get), IR_ATTR_INDEX, (int64_t)i);
        first = first ? first : get;
    }
    if (!several)
        return first;
    fe_grad_list list = {id, slots[1]};
    base_push(l->c->arena, l->grads, l->n_grads, l->cap_grads, list);
    return id;
}

/* d.x of let d = grad(loss, (x, w)) */
ir_id fe_grad_member(fe_lower *l, ir_id tuple, const fe_expr *e) {
    fe_nearest near = {.wanted = e->name->text};
    for (size_t k = 0; k < l->n_grads; k++)
        for (size_t i = 0; l->grads[k].id == tuple && i < l->grads[k].wrt->n_args; i++) {
            const fe_expr *w = l->grads[k].wrt->args[i].value;
            if (w->kind != FE_EXPR_NAME)
                continue;
            if (w->name == e->name)
                return fe_call_result(l, tuple, i);
            fe_nearest_try(&near, w->name->text);
        }
    base_diag *d = fe_report(l->c, FE_E0309, e->name_span, "no gradient with respect to '%s' is here", e->name->text);
    if (fe_nearest_get(&near))
        fe_label(l->c, d, "did you mean '%s'?", fe_nearest_get(&near));
    return 0;
}

static void no_way(fe_context *c, const fe_gradient *g) {
    base_diag *d = fe_report(c, FE_E0322, g->span, "the value does not depend on this");
    bool earlier = ir_grad_reaches(c->module, g->f, g->wrt, g->value, false);
    if (earlier)
        fe_label(c, d, "only through earlier rounds; use the variable that carries it");
    else
        fe_label(c, d, "write missing = 0 where a gradient of 0 is meant");
    fe_note_at(c, d, g->of, "the value is here");
    if (earlier)
        fe_note(c, d, "in a loop, what a round begins with is a value of its own: var v = w ... grad(loss, v)");
    else
        fe_note(c, d, "no gradient goes through integers, bools, conditions, argmin, argmax, count, any and all");
}

void fe_check_gradients(fe_context *c) {
    if (c->diags->n_errors)
        return;
    for (size_t i = 0; i < c->n_gradients; i++) {
        const fe_gradient *g = &c->gradients[i];
        if (ir_func_find(c->module, g->f->name, IR_LEVEL_PROGRAM) != g->f)
            continue; /* its program was lowered again */
        if (!g->may_miss && !ir_grad_reaches(c->module, g->f, g->wrt, g->value, true))
            no_way(c, g);
    }
}
