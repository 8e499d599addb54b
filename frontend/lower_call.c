/* Calls: casts, built-in functions (some are sugar for several operations) and inlined functions of the user. */
#include "frontend/fe.h"

#include <string.h>

/* ---- one dtype for all operands ---------------------------------------------------------------------------------- */
static bool operands(fe_lower *l, const fe_expr *e, const fe_func *f, const fe_expr *const *x, size_t n, ir_dtype want,
                     ir_id *out) {
    if (!fe_lower_unify(l, x, n, fe_class_is_fraction(f->cls) && !fe_class_has(f->cls, want) ? IR_NONE : want, out))
        return false;
    ir_dtype t = fe_type_at(l, out[0])->dtype;
    if (fe_class_has(f->cls, t))
        return true;
    base_diag *d =
        fe_report(l->c, FE_E0210, e->span, "'%s' takes %s, not %s", f->text, fe_class_text(f->cls), ir_dtype_text(t));
    if (fe_class_is_fraction(f->cls) && fe_class_has(FE_INT, t))
        fe_label(l->c, d, "cast it: f32(...)");
    return false;
}

/* ---- sugar ------------------------------------------------------------------------------------------------------- */
typedef struct sugar {
    fe_lower *l;
    base_span span;
    ir_dtype t;
} sugar;

static ir_id num(sugar *s, double v) {
    return ir_dtype_is_float(s->t) ? fe_float(s->l, s->span, s->t, v) : fe_number(s->l, s->span, s->t, (int64_t)v);
}
static ir_id un(sugar *s, ir_opcode code, ir_id a) { return fe_map1(s->l, s->span, code, a); }
static ir_id bin(sugar *s, ir_opcode code, ir_id a, ir_id b) { return fe_map2(s->l, s->span, code, a, b); }

/* select(x > 0, x, a * y) */
static ir_id leak(sugar *s, ir_id x, ir_id a, ir_id y) {
    ir_id args[3] = {bin(s, IR_GT, x, num(s, 0)), x, bin(s, IR_MUL, a, y)};
    return fe_elementwise(s->l, s->span, IR_SELECT, args, 3);
}

static ir_id sigmoid(sugar *s, ir_id x) {
    return bin(s, IR_DIV, num(s, 1), bin(s, IR_ADD, num(s, 1), un(s, IR_EXP, un(s, IR_NEG, x))));
}

static ir_id gelu(sugar *s, ir_id x) {
    ir_id erf = un(s, IR_ERF, bin(s, IR_MUL, x, num(s, 0.7071067811865476)));
    return bin(s, IR_MUL, bin(s, IR_MUL, num(s, 0.5), x), bin(s, IR_ADD, num(s, 1), erf));
}

static ir_id softplus(sugar *s, ir_id x) {
    ir_id tail = un(s, IR_LOG1P, un(s, IR_EXP, un(s, IR_NEG, un(s, IR_ABS, x))));
    return bin(s, IR_ADD, bin(s, IR_MAX, x, num(s, 0)), tail);
}

static ir_id lower_sugar(fe_lower *l, const fe_expr *e, const fe_func *f, const ir_id *x, size_t n) {
    sugar s = {l, e->span, fe_type_at(l, x[0])->dtype};
    switch ((int)f->id) {
    case FE_FUNC_CLAMP:
        return bin(&s, IR_MIN, bin(&s, IR_MAX, x[0], x[1]), x[2]);
    case FE_FUNC_RSQRT:
        return bin(&s, IR_DIV, num(&s, 1), un(&s, IR_SQRT, x[0]));
    case FE_FUNC_SIGMOID:
        return sigmoid(&s, x[0]);
    case FE_FUNC_RELU:
        return bin(&s, IR_MAX, x[0], num(&s, 0));
    case FE_FUNC_LEAKY_RELU:
        return leak(&s, x[0], n > 1 ? x[1] : num(&s, 0.01), x[0]);
    case FE_FUNC_ELU:
        return leak(&s, x[0], n > 1 ? x[1] : num(&s, 1), un(&s, IR_EXPM1, x[0]));
    case FE_FUNC_GELU:
        return gelu(&s, x[0]);
    case FE_FUNC_SOFTPLUS:
        return softplus(&s, x[0]);
    default:
        BASE_BUG("%s is not sugar", f->text);
    }
}

static ir_id lower_map(fe_lower *l, const fe_expr *e, const fe_func *f, const fe_expr **slots, ir_dtype want) {
    ir_id x[3];
    size_t n = 0;
    while (n < 3 && slots[n])
        n++;
    if (!operands(l, e, f, slots, n, want, x))
        return 0;
    if (ir_dtype_is_complex(fe_type_at(l, x[0])->dtype) && f->form == FE_MAP)
        return fe_complex_function(l, e->span, f->code, x[0]);
    return f->form == FE_SUGAR ? lower_sugar(l, e, f, x, n) : fe_elementwise(l, e->span, f->code, x, n);
}

static ir_id lower_select(fe_lower *l, const fe_expr *e, const fe_expr **slots, ir_dtype want) {
    ir_id x[3];
    x[0] = fe_lower_value(l, slots[0], IR_BOOL);
    bool ok = fe_lower_unify(l, slots + 1, 2, want, x + 1);
    if (!x[0] || !ok)
        return 0;
    if (fe_type_at(l, x[0])->dtype != IR_BOOL) {
        fe_label(l->c,
                 fe_report(l->c, FE_E0210, slots[0]->span, "the condition of select is bool, not %s",
                           ir_dtype_text(fe_type_at(l, x[0])->dtype)),
                 "compare it: x != 0");
        return 0;
    }
    return fe_elementwise(l, e->span, IR_SELECT, x, 3);
}

/* ---- folds over axes --------------------------------------------------------------------------------------------- */
/* {axes} of a fold; 0 after a complaint. */
static int64_t axes_of(fe_lower *l, const fe_expr *e, ir_id x, const fe_expr *axis) {
    const ir_type *t = fe_type_at(l, x);
    if (t->rank == 0) {
        base_diag *d = fe_report(l->c, FE_E0220, e->span, "'%s' needs a value with axes", e->name->text);
        if (t->space == IR_EDGE && fe_reducer_find(e->name->text))
            fe_label(l->c, d, "this is a scalar; over the edges of a row: reduce %s(...)", e->name->text);
        else
            fe_label(l->c, d, "this is a scalar");
        return 0;
    }
    if (!axis)
        return ((int64_t)1 << t->rank) - 1;
    bool minus = axis->kind == FE_EXPR_UNARY && axis->op == FE_TOK_MINUS;
    const fe_expr *digits = minus ? axis->a : axis;
    if (digits->kind != FE_EXPR_NUMBER || digits->lit != FE_LIT_INT) {
        fe_label(l->c, fe_report(l->c, FE_E0220, axis->span, "an axis is a whole number"), "-1 is the last axis");
        return 0;
    }
    int64_t at = 0;
    for (uint32_t i = digits->span.begin; i < digits->span.end && at <= IR_MAX_RANK; i++)
        at = at * 10 + (l->c->source[i] - '0');
    at = minus ? (int64_t)t->rank - at : at;
    if (at < 0 || at >= (int64_t)t->rank) {
        fe_label(l->c, fe_report(l->c, FE_E0220, axis->span, "no such axis"), "%s has the axes 0 to %u, or -%u to -1",
                 fe_type_text(l, t), t->rank - 1, t->rank);
        return 0;
    }
    return (int64_t)1 << at;
}

/* mean: the sum divided by the number of elements */
static ir_id divide_by_size(fe_lower *l, base_span span, ir_id sum, ir_id x, int64_t axes) {
    const ir_type *t = fe_type_at(l, x);
    ir_id size = 0;
    l->b.span = span;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!(axes >> i & 1))
            continue;
        ir_id n = ir_emit_dimsize(&l->b, t->dim[i]);
        size = size ? fe_map2(l, span, IR_MUL, size, n) : n;
    }
    return fe_map2(l, span, IR_DIV, sum, fe_cast(l, span, t->dtype, size));
}

static ir_kind fold_kind(fe_func_id id) {
    switch ((int)id) {
    case FE_FUNC_PROD:
        return IR_KIND_PROD;
    case FE_FUNC_MIN:
        return IR_KIND_MIN;
    case FE_FUNC_MAX:
        return IR_KIND_MAX;
    case FE_FUNC_ANY:
        return IR_KIND_OR;
    case FE_FUNC_ALL:
        return IR_KIND_AND;
    default:
        return IR_KIND_SUM; /* sum, mean */
    }
}

static ir_id lower_fold(fe_lower *l, const fe_expr *e, const fe_func *f, const fe_expr **slots) {
    ir_id x;
    if (!operands(l, e, f, slots, 1, IR_NONE, &x))
        return 0;
    int64_t axes = axes_of(l, e, x, slots[1]);
    if (!axes)
        return 0;
    ir_id folded = fe_fold(l, e->span, fold_kind(f->id), x, axes);
    return folded && f->id == FE_FUNC_MEAN ? divide_by_size(l, e->span, folded, x, axes) : folded;
}

/* min and max: two operands element by element, one is folded */
static ir_id lower_pick(fe_lower *l, const fe_expr *e, const fe_func *f, ir_dtype want) {
    bool fold = e->n_args == 1 || (e->n_args == 2 && e->args[1].name && strcmp(e->args[1].name->text, "axis") == 0);
    const fe_expr *slots[3] = {0};
    if (!fe_match_args(l, e, fold ? "x axis?" : f->params, slots))
        return 0;
    return fold ? lower_fold(l, e, f, slots) : lower_map(l, e, f, slots, want);
}

static ir_id lower_dot(fe_lower *l, const fe_expr *e, const fe_func *f, const fe_expr **slots) {
    ir_id x[2];
    if (!operands(l, e, f, slots, 2, IR_NONE, x))
        return 0;
    for (int i = 0; i < 2; i++) {
        const ir_type *t = fe_type_at(l, x[i]);
        if (t->rank == 0 || (l->program && t->rank != 1)) {
            fe_label(
                l->c,
                fe_report(l->c, FE_E0220, slots[i]->span,
                          l->program ? "dot in a program takes tensors with one axis" : "dot needs a feature axis"),
                "is %s", fe_type_text(l, t));
            return 0;
        }
    }
    ir_id product = fe_map2(l, e->span, IR_MUL, x[0], x[1]);
    return product ? fe_fold(l, e->span, IR_KIND_SUM, product, (int64_t)1 << (fe_type_at(l, product)->rank - 1)) : 0;
}

static ir_id lower_fill(fe_lower *l, const fe_expr *e, const fe_expr **slots, ir_dtype want) {
    if (!l->program) {
        fe_label(l->c, fe_report(l->c, FE_E0222, e->span, "fill belongs into a program"),
                 "in a kernel, scalars are repeated as needed");
        return 0;
    }
    ir_id v = fe_lower_value(l, slots[0], want);
    if (slots[1]->kind != FE_EXPR_SHAPE) {
        fe_label(l->c, fe_report(l->c, FE_E0209, slots[1]->span, "the second argument of fill is a shape"),
                 "write [g.dst] or [g.dst, F]");
        return 0;
    }
    ir_type type;
    if (!fe_type_of(l, slots[1]->shape, &type) || !v)
        return 0;
    type.dtype = fe_type_at(l, v)->dtype;
    return fe_widen(l, e->span, v, &type);
}

static ir_id lower_builtin(fe_lower *l, const fe_expr *e, const fe_func *f, ir_dtype want) {
    const fe_expr *slots[3] = {0};
    if (f->form == FE_PICK)
        return lower_pick(l, e, f, want);
    if (f->form == FE_SHAPE)
        return fe_lower_shape_call(l, e, f, want);
    if (!fe_match_args(l, e, f->params, slots))
        return 0;
    switch (f->form) {
    case FE_MAP:
    case FE_SUGAR:
    case FE_PICK:
        return lower_map(l, e, f, slots, want);
    case FE_FOLD:
        return lower_fold(l, e, f, slots);
    case FE_SELECT:
        return lower_select(l, e, slots, want);
    case FE_DOT:
        return lower_dot(l, e, f, slots);
    case FE_SHAPE:
        break;
    case FE_FILL:
        return lower_fill(l, e, slots, want);
    case FE_GRAD:
        return fe_lower_grad(l, e, slots);
    }
    return 0;
}

/* ---- casts, unknown functions ------------------------------------------------------------------------------------ */
static ir_id lower_cast(fe_lower *l, const fe_expr *e, ir_dtype t) {
    const fe_expr *slots[2] = {0};
    if (!fe_match_args(l, e, ir_dtype_is_complex(t) ? "re im?" : "x", slots))
        return 0;
    if (slots[1])
        return fe_complex_of(l, e, t, slots);
    bool to_float = ir_dtype_is_float(t) || ir_dtype_is_half(t) || ir_dtype_is_complex(t);
    bool exact = slots[0]->lit == FE_LIT_IMAG  ? ir_dtype_is_complex(t)
                 : slots[0]->lit == FE_LIT_INT ? t != IR_BOOL
                                               : slots[0]->lit == FE_LIT_FLOAT && to_float;
    ir_id x = fe_lower_value(l, slots[0], exact ? t : IR_NONE);
    if (!x || ir_cast_defined(fe_type_at(l, x)->dtype, t))
        return fe_cast(l, e->span, t, x);
    fe_label(l->c, fe_report(l->c, FE_E0210, slots[0]->span, "a complex number cannot become %s", ir_dtype_text(t)),
             "take real(x), imag(x) or abs(x)");
    return 0;
}

static ir_id unknown_function(fe_lower *l, const fe_expr *e) {
    const char *text = e->name->text;
    if (fe_is_later(text)) {
        fe_report(l->c, FE_E0812, e->name_span, "%s is not supported yet", text);
        return 0;
    }
    if (fe_told(l, e->name))
        return 0;
    base_diag *d = fe_report(l->c, FE_E0202, e->name_span, "unknown function '%s'", text);
    if (fe_reducer_find(text) || strcmp(text, "var") == 0 || strcmp(text, "std") == 0) {
        fe_label(l->c, d, "a reducer over edges is written: reduce %s(...)", text);
        return 0;
    }
    fe_nearest near = {.wanted = text};
    for (size_t i = 0; i < l->c->n_decls && i < 200; i++)
        fe_nearest_try(&near, l->c->decls[i]->name->text);
    for (size_t i = 0; fe_func_at(i); i++)
        fe_nearest_try(&near, fe_func_at(i)->text);
    fe_label_word(l->c, d, FE_WORD_FUNC, &near);
    return 0;
}

/* A kernel may be called mean or max: then a graph as the first argument says that it is meant. */
static bool begins_with_graph(fe_lower *l, const fe_expr *e) {
    if (!e->n_args || e->args[0].name || e->args[0].value->kind != FE_EXPR_NAME)
        return false;
    const fe_binding *b = fe_lookup(l, e->args[0].value->name);
    return b && b->kind == FE_BIND_GRAPH;
}

ir_id fe_lower_call(fe_lower *l, const fe_expr *e, ir_dtype want) {
    fe_decl *decl = e->name->decl;
    const char *text = e->name->text;
    const fe_func *f = fe_func_find(text);
    ir_dtype t;
    if (f && !(decl && begins_with_graph(l, e)))
        return lower_builtin(l, e, f, want);
    if (decl && decl->kind == FE_TOK_FN)
        return fe_lower_inline(l, e, decl, want);
    if (decl && decl->kind == FE_TOK_PROGRAM)
        return fe_lower_program_call(l, e, decl);
    if (decl && decl->kind == FE_TOK_REDUCER) {
        fe_label(l->c, fe_report(l->c, FE_E0222, e->name_span, "'%s' is a reducer", text),
                 "it works on the edges of a row: reduce %s(...)", text);
        return 0;
    }
    if (decl)
        return fe_lower_kernel_call(l, e, decl);
    if (ir_dtype_from_text(text, strlen(text), &t))
        return lower_cast(l, e, t);
    return unknown_function(l, e);
}
