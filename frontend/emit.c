/* Operations, with the checks that shapes need.  Dtypes are the caller's business. */
#include "frontend/fe.h"

#include <string.h>

const ir_type *fe_type_at(fe_lower *l, ir_id id) { return &ir_at(l->b.f, id)->type; }

const char *fe_dim_text(fe_lower *l, ir_dim d) {
    if (ir_dim_is_sym(d))
        return l->b.f->syms[ir_dim_sym_index(d)];
    return base_arena_printf(l->c->arena, "%lld", (long long)d);
}

const char *fe_type_text(fe_lower *l, const ir_type *t) {
    const char *s = t->dtype == IR_TUPLE        ? "several results"
                    : t->dtype < IR_DTYPE_COUNT ? ir_dtype_text(t->dtype)
                                                : "?";
    for (uint32_t i = 0; i < t->rank; i++)
        s = base_arena_printf(l->c->arena, "%s%s%s%s", s, i ? ", " : "[", fe_dim_text(l, t->dim[i]),
                              i + 1 == t->rank ? "]" : "");
    return s;
}

ir_id fe_put(fe_lower *l, base_span span, ir_opcode code, ir_type type, const ir_id *args, size_t n) {
    l->c->work++;
    if (l->b.f->n_ops > FE_MAX_OPS) {
        if (!l->full)
            fe_report(l->c, FE_E0104, span, "more than %d operations in one function, inlined functions included",
                      FE_MAX_OPS);
        l->full = true;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!args[i])
            return 0;
    l->b.span = span;
    return ir_emit(&l->b, code, type, args, n);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */
ir_dim fe_graph_dim(const fe_lower *l, uint32_t graph, uint32_t axis) { return ir_dim_sym(l->same[3 * graph + axis]); }

/* The first in the order of declaration stands for all. */
static void join(fe_lower *l, uint32_t s, uint32_t t) {
    uint32_t a = l->same[s], b = l->same[t], first = a < b ? a : b;
    for (size_t i = 0; i < 3 * l->n_graphs; i++)
        if (l->same[i] == a || l->same[i] == b)
            l->same[i] = first;
    l->restart = true;
}

bool fe_same_dim(fe_lower *l, ir_dim a, ir_dim b) {
    if (a == b)
        return true;
    if (!l->program || !ir_dim_is_sym(a) || !ir_dim_is_sym(b))
        return false;
    uint32_t s = ir_dim_sym_index(a), t = ir_dim_sym_index(b);
    if (s < 3 * l->n_graphs && t < 3 * l->n_graphs && s % 3 != 2 && t % 3 != 2)
        join(l, s, t);
    return false;
}

/* The axes of the shorter shape are the first axes of the longer one. */
static bool is_prefix(const ir_type *a, const ir_type *b) {
    bool same = a->rank > 0 && a->rank < b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* "reshape(..., [H, 1])" */
static const char *reshaped(fe_lower *l, const ir_type *shorter, const ir_type *longer) {
    const char *s = "reshape(..., [";
    for (uint32_t i = 0; i < longer->rank; i++)
        s = base_arena_printf(l->c->arena, "%s%s%s", s, i ? ", " : "",
                              i < shorter->rank ? fe_dim_text(l, shorter->dim[i]) : "1");
    return base_arena_printf(l->c->arena, "%s])", s);
}

/* place: what has the shape b; NULL: another operand */
static void mismatch(fe_lower *l, base_span span, const ir_type *a, const ir_type *b, ir_dim x, ir_dim y,
                     const char *place) {
    fe_context *c = l->c;
    if (l->restart)
        return;
    bool mixed = ir_dim_is_sym(x) != ir_dim_is_sym(y);
    base_diag *d = place
                       ? fe_report(c, mixed ? FE_E0219 : FE_E0204, span, "%s is %s, this is %s: %s against %s", place,
                                   fe_type_text(l, b), fe_type_text(l, a), fe_dim_text(l, y), fe_dim_text(l, x))
                       : fe_report(c, mixed ? FE_E0219 : FE_E0204, span, "shapes %s and %s do not match: %s against %s",
                                   fe_type_text(l, a), fe_type_text(l, b), fe_dim_text(l, x), fe_dim_text(l, y));
    const char *open = fe_dim_text(l, ir_dim_is_sym(x) ? x : y);
    if (mixed && !strchr(open, '.'))
        fe_label(c, d, "%s is open; fix it with -D %s=%s, or use %s in both places", open, open,
                 fe_dim_text(l, ir_dim_is_sym(x) ? y : x), open);
    else if (!place && (is_prefix(a, b) || is_prefix(b, a)))
        fe_label(c, d, "shapes are lined up from the right; %s lines up",
                 a->rank < b->rank ? reshaped(l, a, b) : reshaped(l, b, a));
    else
        fe_label(c, d, "shapes are lined up from the right");
}

static bool shapes_meet(fe_lower *l, base_span span, const ir_type *a, const ir_type *b, const char *place) {
    for (uint32_t i = 1; i <= a->rank && i <= b->rank; i++) {
        ir_dim x = a->dim[a->rank - i], y = b->dim[b->rank - i];
        if (x == 1 || y == 1 || fe_same_dim(l, x, y))
            continue;
        mismatch(l, span, a, b, x, y, place);
        return false;
    }
    return true;
}

bool fe_fits(fe_lower *l, const ir_type *from, const ir_type *to) {
    if (from->rank > to->rank)
        return false;
    for (uint32_t i = 1; i <= from->rank; i++) {
        ir_dim x = from->dim[from->rank - i], y = to->dim[to->rank - i];
        if (x != 1 && !fe_same_dim(l, x, y))
            return false;
    }
    return true;
}

ir_id fe_widen(fe_lower *l, base_span span, ir_id a, const ir_type *to) { return fe_widen_to(l, span, a, to, NULL); }

static void does_not_fit(fe_lower *l, base_span span, const ir_type *from, const ir_type *to, const char *place) {
    if (place)
        fe_label(
            l->c,
            fe_report(l->c, FE_E0204, span, "%s is %s, this is %s", place, fe_type_text(l, to), fe_type_text(l, from)),
            "it has more elements; declare it so, or fold them: sum(...), mean(...)");
    else
        fe_label(l->c,
                 fe_report(l->c, FE_E0204, span, "a value of shape %s does not fit into %s", fe_type_text(l, from),
                           fe_type_text(l, to)),
                 "it has more elements");
}

ir_id fe_widen_to(fe_lower *l, base_span span, ir_id a, const ir_type *to, const char *place) {
    if (!a)
        return 0;
    const ir_type *from = fe_type_at(l, a);
    if (ir_type_equal(from, to))
        return a;
    if (!fe_fits(l, from, to)) {
        if (!l->restart && shapes_meet(l, span, from, to, place)) /* reports a single pair of dimensions */
            does_not_fit(l, span, from, to, place);
        return 0;
    }
    return fe_put(l, span, IR_BROADCAST, *to, &a, 1);
}

ir_id fe_elementwise(fe_lower *l, base_span span, ir_opcode code, const ir_id *args, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!args[i])
            return 0;
    ir_type type = *fe_type_at(l, args[0]);
    for (size_t i = 1; i < n; i++) {
        const ir_type *t = fe_type_at(l, args[i]);
        if (!shapes_meet(l, span, &type, t, NULL) || !ir_broadcast(&type, t, &type))
            return 0;
        type.space = type.space > t->space ? type.space : t->space;
    }
    type.dtype = ir_elementwise_dtype(code, fe_type_at(l, args[n - 1])->dtype);
    return fe_put(l, span, code, type, args, n);
}

ir_id fe_map1(fe_lower *l, base_span span, ir_opcode code, ir_id a) { return fe_elementwise(l, span, code, &a, 1); }

ir_id fe_map2(fe_lower *l, base_span span, ir_opcode code, ir_id a, ir_id b) {
    return fe_elementwise(l, span, code, (ir_id[]){a, b}, 2);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */
static ir_id constant(fe_lower *l, base_span span, ir_dtype t, ir_scalar_value v) {
    ir_id id = fe_put(l, span, IR_CONST, ir_scalar(t), NULL, 0);
    if (id)
        ir_set_value(l->c->module, ir_at(l->b.f, id), v);
    return id;
}

ir_id fe_float(fe_lower *l, base_span span, ir_dtype t, double v) {
    ir_scalar_value x = {.i = 0};
    if (ir_dtype_is_complex(t))
        x = ir_eval(IR_CAST, IR_F64, t, &(ir_scalar_value){.d = v});
    else if (t == IR_F32)
        x.f = (float)v;
    else
        x.d = v;
    return constant(l, span, t, x);
}

ir_id fe_number(fe_lower *l, base_span span, ir_dtype t, int64_t v) {
    return ir_dtype_is_float(t) || ir_dtype_is_complex(t) ? fe_float(l, span, t, (double)v)
                                                          : constant(l, span, t, (ir_scalar_value){.i = v});
}

ir_id fe_cast(fe_lower *l, base_span span, ir_dtype t, ir_id a) {
    if (!a)
        return 0;
    ir_type type = *fe_type_at(l, a);
    if (type.dtype == t)
        return a;
    type.dtype = t;
    return fe_put(l, span, IR_CAST, type, &a, 1);
}

ir_id fe_to_f32(fe_lower *l, base_span span, ir_id a) {
    return a && ir_dtype_is_half(fe_type_at(l, a)->dtype) ? fe_cast(l, span, IR_F32, a) : a;
}

ir_id fe_settle(fe_lower *l, base_span span, ir_dtype place, ir_id a) {
    ir_dtype have = a ? fe_type_at(l, a)->dtype : IR_NONE;
    bool half = ir_dtype_is_half(have), to_half = ir_dtype_is_half(place);
    bool fits = (half || have == IR_F32) && (to_half || place == IR_F32);
    return fits ? fe_cast(l, span, place, a) : a;
}

ir_id fe_fold(fe_lower *l, base_span span, ir_kind k, ir_id a, int64_t axes) {
    if (!a)
        return 0;
    const ir_type *from = fe_type_at(l, a);
    ir_type type = {.dtype = from->dtype, .space = from->space};
    for (uint32_t i = 0; i < from->rank; i++)
        if (!(axes >> i & 1))
            type.dim[type.rank++] = from->dim[i];
    ir_id id = fe_put(l, span, IR_FOLD, type, &a, 1);
    if (id) {
        ir_set_word(l->c->module, ir_at(l->b.f, id), IR_ATTR_KIND, ir_kind_text(k));
        ir_set_int(l->c->module, ir_at(l->b.f, id), IR_ATTR_AXES, axes);
    }
    return id;
}
