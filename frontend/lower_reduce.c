/* reduce R(...): from the edges of a row to the row. */
#include "frontend/fe.h"

#include <string.h>

static const fe_reducer *find(fe_lower *l, const fe_expr *e) {
    const char *text = e->name->text;
    const fe_reducer *r = fe_reducer_find(text);
    if (r)
        return r;
    base_diag *d = fe_report(l->c, FE_E0214, e->name_span, "unknown reducer '%s'", text);
    fe_nearest near = {.wanted = text};
    for (size_t i = 0; fe_reducer_at(i); i++)
        fe_nearest_try(&near, fe_reducer_at(i)->text);
    for (size_t i = 0; i < l->c->n_decls; i++)
        if (l->c->decls[i]->kind == FE_TOK_REDUCER)
            fe_nearest_try(&near, l->c->decls[i]->name->text);
    fe_label_word(l->c, d, FE_WORD_REDUCER, &near);
    return NULL;
}

static bool in_kernel(fe_lower *l, const fe_expr *e) {
    if (!l->program)
        return true;
    fe_label(l->c, fe_report(l->c, FE_E0222, e->span, "reduce belongs into a kernel"),
             "in a program, call a kernel, or fold a whole tensor with sum(x)");
    return false;
}

/* The shape of score has to be the beginning of the shape of value. */
static bool is_prefix(fe_lower *l, const fe_expr *e, ir_id score, ir_id value) {
    const ir_type *s = fe_type_at(l, score), *v = fe_type_at(l, value);
    bool ok = s->rank <= v->rank;
    for (uint32_t i = 0; ok && i < s->rank; i++)
        ok = s->dim[i] == v->dim[i];
    if (!ok)
        fe_label(l->c,
                 fe_report(l->c, FE_E0204, e->span, "softmax of scores %s and values %s", fe_type_text(l, s),
                           fe_type_text(l, v)),
                 "the axes of the score are the first axes of the value");
    return ok;
}

static bool operands(fe_lower *l, const fe_expr *e, const fe_reducer *r, const fe_expr **slots, ir_id *out, size_t *n) {
    *n = r->kind == IR_KIND_SOFTMAX ? 2 : slots[0] ? 1 : 0;
    if (*n == 0)
        return true;
    if (!fe_lower_unify(l, slots, *n, fe_class_is_fraction(r->cls) ? IR_F32 : IR_NONE, out))
        return false;
    ir_dtype t = fe_type_at(l, out[0])->dtype;
    if (!fe_class_has(r->cls, t)) {
        base_diag *d = fe_report(l->c, FE_E0210, slots[0]->span, "reduce %s takes %s, not %s", r->text,
                                 fe_class_text(r->cls), ir_dtype_text(t));
        if (fe_class_is_fraction(r->cls) && fe_class_has(FE_INT, t))
            fe_label(l->c, d, "cast it: f32(...)");
        else if (t == IR_BOOL)
            fe_label(l->c, d, "reduce count(...) counts how often it is true; as a number: f32(...)");
        else if (r->cls == FE_BOOL)
            fe_label(l->c, d, "compare it: x != 0");
        return false;
    }
    return *n < 2 || is_prefix(l, e, out[0], out[1]);
}

static ir_type result_type(fe_lower *l, const fe_reducer *r, const ir_id *args, size_t n) {
    ir_type type = n ? *fe_type_at(l, args[n - 1]) : ir_scalar(IR_I64);
    type.space = IR_ROW;
    if (r->kind == IR_KIND_ARGMIN || r->kind == IR_KIND_ARGMAX || r->kind == IR_KIND_COUNT)
        type.dtype = IR_I64;
    return type;
}

/* select(degree == 0, empty, reduced) */
static ir_id with_empty(fe_lower *l, const fe_expr *e, const fe_expr *empty, ir_id reduced) {
    ir_type type = *fe_type_at(l, reduced);
    ir_id other = fe_to_f32(l, empty->span, fe_lower_value(l, empty, type.dtype));
    if (!other)
        return 0;
    const ir_type *have = fe_type_at(l, other);
    if (have->space == IR_EDGE) {
        fe_label(l->c, fe_report(l->c, FE_E0221, empty->span, "the value of an empty row cannot depend on an edge"),
                 "use dst fields, params or numbers");
        return 0;
    }
    if (have->dtype != type.dtype) {
        fe_label(l->c,
                 fe_report(l->c, FE_E0203, empty->span, "the reduction gives %s, empty is %s",
                           ir_dtype_text(type.dtype), ir_dtype_text(have->dtype)),
                 "cast it: %s(...)", ir_dtype_text(type.dtype));
        return 0;
    }
    if (!fe_fits(l, have, &type)) {
        fe_report(l->c, FE_E0204, empty->span, "the reduction gives %s, empty is %s", fe_type_text(l, &type),
                  fe_type_text(l, have));
        return 0;
    }
    ir_type degree = ir_scalar(IR_I64);
    degree.space = IR_ROW;
    ir_id none =
        fe_map2(l, e->span, IR_EQ, fe_put(l, e->span, IR_DEGREE, degree, NULL, 0), fe_number(l, e->span, IR_I64, 0));
    return fe_elementwise(l, e->span, IR_SELECT, (ir_id[]){none, other, reduced}, 3);
}

static ir_id user_reduce(fe_lower *l, const fe_expr *e) {
    const fe_expr *empty = NULL;
    ir_id id = in_kernel(l, e) ? fe_lower_user_reduce(l, e, e->name->decl, &empty) : 0;
    return id && empty ? with_empty(l, e, empty, id) : id;
}

ir_id fe_lower_reduce(fe_lower *l, const fe_expr *e) {
    if (e->name->decl && e->name->decl->kind == FE_TOK_REDUCER)
        return user_reduce(l, e);
    const fe_reducer *r = find(l, e);
    const fe_expr *slots[3] = {0};
    ir_id args[2] = {0};
    size_t n;
    if (!r || !in_kernel(l, e) || !fe_match_args(l, e, r->params, slots) || !operands(l, e, r, slots, args, &n))
        return 0;
    ir_id id = fe_put(l, e->span, IR_REDUCE, result_type(l, r, args, n), args, n);
    if (!id)
        return 0;
    ir_set_word(l->c->module, ir_at(l->b.f, id), IR_ATTR_KIND, r->text);
    const fe_expr *empty = slots[r->kind == IR_KIND_SOFTMAX ? 2 : 1];
    return empty ? with_empty(l, e, empty, id) : id;
}
