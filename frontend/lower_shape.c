/* Functions that change shapes, and the matrix product.
 *
 * What is cut off an open axis, and what is looked up in, has to be there: the function gets a dimension that says how
 * much is left, and a call with sizes that make it negative is refused.  In a program the first axis of a tensor counts
 * rows: it stays as it is, because these functions work row by row. */
#include "frontend/fe.h"

#include <string.h>

/* ---- numbers and axes that are known while compiling -------------------------------------------------------------- */
static const ir_op *number_op(fe_lower *l, const fe_expr *e) {
    ir_id id = fe_lower_value(l, e, IR_I64);
    return id ? ir_at(l->b.f, id) : NULL;
}

static bool fixed_number(fe_lower *l, const fe_expr *e, const char *what, int64_t *out) {
    const ir_op *op = number_op(l, e);
    if (!op)
        return false;
    if (op->code == IR_CONST && op->type.dtype == IR_I64) {
        *out = ir_find_attr(op, IR_ATTR_VALUE)->v.i;
        return true;
    }
    base_diag *d = fe_report(l->c, FE_E0227, e->span, "%s is a whole number known while compiling", what);
    if (op->code == IR_DIMSIZE)
        fe_label(l->c, d, "fix the dimension with -D");
    return false;
}

/* An i64 made of numbers and dimensions; false: of something else, or of too much. */
static bool sum_of(fe_lower *l, ir_id id, ir_sum *out) {
    const ir_op *op = ir_at(l->b.f, id);
    ir_sum right;
    if (op->type.dtype != IR_I64)
        return false;
    if (op->code == IR_CONST) {
        *out = ir_sum_number(ir_find_attr(op, IR_ATTR_VALUE)->v.i);
        return true;
    }
    if (op->code == IR_DIMSIZE)
        return !fe_is_graph_dim(l, ir_int(op, IR_ATTR_DIM, 0)) && ir_sum_of(l->b.f, ir_int(op, IR_ATTR_DIM, 0), out);
    if (op->code == IR_NEG) {
        *out = ir_sum_number(0);
        return sum_of(l, op->args[0], &right) && ir_sum_calc(IR_SUB, out, &right, out);
    }
    return (op->code == IR_ADD || op->code == IR_SUB || op->code == IR_MUL) && sum_of(l, op->args[0], out) &&
           sum_of(l, op->args[1], &right) && ir_sum_calc(op->code, out, &right, out);
}

/* A place on an axis of n elements; a negative number counts from the end. */
static bool place(fe_lower *l, const fe_expr *e, const char *what, const ir_sum *n, ir_sum *out) {
    ir_id id = fe_lower_value(l, e, IR_I64);
    int64_t number;
    if (!id)
        return false;
    if (!sum_of(l, id, out)) {
        fe_label(l->c, fe_report(l->c, FE_E0227, e->span, "%s is made of numbers and dimensions", what),
                 "known when the kernel is called, the same for all rows and edges");
        return false;
    }
    return !ir_sum_is_number(out, &number) || number >= 0 || ir_sum_calc(IR_ADD, out, n, out);
}

static bool as_dim(fe_lower *l, const ir_sum *s, ir_dim *out) { return ir_sum_dim(l->c->module, l->b.f, s, out); }

/* The size of an axis to be. */
static bool dimension(fe_lower *l, const fe_expr *e, ir_dim *out) {
    ir_id id = fe_lower_value(l, e, IR_I64);
    ir_sum s;
    if (!id)
        return false;
    if (sum_of(l, id, &s) && as_dim(l, &s, out) && *out != 0)
        return true;
    fe_report(l->c, FE_E0227, e->span, "the size of an axis is made of dimensions and numbers, and at least 1");
    return false;
}

/* The axis that e names, -1 being the last; without e the last one. */
static bool axis_of(fe_lower *l, const fe_expr *call, const ir_type *t, const fe_expr *e, uint32_t *out) {
    int64_t axis = -1;
    if (t->rank == 0) {
        fe_label(l->c, fe_report(l->c, FE_E0220, call->span, "'%s' needs a value with axes", call->name->text),
                 "this is a scalar");
        return false;
    }
    if (e && !fixed_number(l, e, "an axis", &axis))
        return false;
    axis += axis < 0 ? (int64_t)t->rank : 0;
    if (axis < 0 || axis >= (int64_t)t->rank) {
        fe_label(l->c, fe_report(l->c, FE_E0220, e ? e->span : call->span, "no such axis"),
                 "%s has the axes 0 to %u, or -%u to -1", fe_type_text(l, t), t->rank - 1, t->rank);
        return false;
    }
    if (l->program && axis == 0) {
        fe_label(
            l->c,
            fe_report(l->c, FE_E0220, e ? e->span : call->span, "'%s' works row by row in a program", call->name->text),
            "the first axis of %s stays as it is", fe_type_text(l, t));
        return false;
    }
    *out = (uint32_t)axis;
    return true;
}

static void set_int(fe_lower *l, ir_id id, ir_attr_key key, int64_t v) {
    if (id)
        ir_set_int(l->c->module, ir_at(l->b.f, id), key, v);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */
static ir_id value_of(fe_lower *l, const fe_expr *e, fe_class cls, ir_dtype want, const char *name) {
    ir_id id = fe_to_f32(l, e->span, fe_lower_value(l, e, want));
    if (!id || fe_class_has(cls, fe_type_at(l, id)->dtype))
        return id;
    ir_dtype t = fe_type_at(l, id)->dtype;
    base_diag *d =
        fe_report(l->c, FE_E0210, e->span, "'%s' takes %s, not %s", name, fe_class_text(cls), ir_dtype_text(t));
    if (cls == FE_INT && fe_class_has(FE_FLOAT, t))
        fe_label(l->c, d, "cast it: i64(...)");
    return 0;
}

static ir_id reshape_to(fe_lower *l, base_span span, ir_id x, ir_type type) {
    type.dtype = fe_type_at(l, x)->dtype;
    type.space = fe_type_at(l, x)->space;
    return fe_put(l, span, IR_RESHAPE, type, &x, 1);
}

/* With one more axis of 1 at the end. */
static ir_id with_axis(fe_lower *l, base_span span, ir_id x) {
    if (!x)
        return 0;
    ir_type t = *fe_type_at(l, x);
    if (t.rank == IR_MAX_RANK) {
        fe_report(l->c, FE_E0216, span, "more than %d dimensions", IR_MAX_RANK);
        return 0;
    }
    t.dim[t.rank++] = 1;
    return reshape_to(l, span, x, t);
}

/* ---- slice, transpose, reshape ----------------------------------------------------------------------------------- */
static void no_such_part(fe_lower *l, const fe_expr *e, const ir_type *t, uint32_t axis) {
    const char *n = fe_dim_text(l, t->dim[axis]);
    fe_label(l->c, fe_report(l->c, FE_E0227, e->span, "this is no part of %s elements, or an empty one", n),
             "0 <= begin < end <= %s; a negative number counts from the end", n);
}

static ir_id lower_slice(fe_lower *l, const fe_expr *e, const fe_expr **slots) {
    ir_id x = fe_lower_value(l, slots[0], IR_NONE);
    uint32_t axis;
    ir_sum n, begin, end, size;
    ir_dim from, left;
    if (!x || !axis_of(l, e, fe_type_at(l, x), slots[3], &axis))
        return 0;
    ir_type type = *fe_type_at(l, x);
    if (!ir_sum_of(l->b.f, type.dim[axis], &n) || !place(l, slots[1], "the begin of a slice", &n, &begin) ||
        !place(l, slots[2], "the end of a slice", &n, &end))
        return 0;
    bool ok = ir_sum_calc(IR_SUB, &end, &begin, &size) && ir_sum_calc(IR_SUB, &n, &end, &n) &&
              as_dim(l, &begin, &from) && as_dim(l, &n, &left);
    ir_type whole = type;
    if (!ok || !as_dim(l, &size, &type.dim[axis]) || type.dim[axis] == 0) {
        no_such_part(l, e, &whole, axis);
        return 0;
    }
    ir_id id = fe_put(l, e->span, IR_SLICE, type, &x, 1);
    set_int(l, id, IR_ATTR_AXIS, axis);
    set_int(l, id, IR_ATTR_BEGIN, from);
    return id;
}

static void turns_rows(fe_lower *l, base_span span, const ir_type *type) {
    fe_label(l->c, fe_report(l->c, FE_E0220, span, "'transpose' works row by row in a program"),
             "the first axis of %s stays as it is, but to the right of '@'", fe_type_text(l, type));
}

/* Two axes change places, the last two when they are not named.  A matrix of a program that is turned so that its rows become
 * columns has no place where it is computed; products take it from where it is (fe_drop_turned, at the end). */
static ir_id lower_transpose(fe_lower *l, const fe_expr *e, const fe_expr **slots) {
    ir_id x = fe_lower_value(l, slots[0], IR_NONE);
    if (!x)
        return 0;
    ir_type type = *fe_type_at(l, x);
    if (type.rank < 2) {
        fe_label(l->c, fe_report(l->c, FE_E0220, e->span, "transpose needs two axes"), "is %s", fe_type_text(l, &type));
        return 0;
    }
    uint32_t a = type.rank - 2, b = type.rank - 1;
    if (slots[1] && !axis_of(l, e, &type, slots[1], &a))
        return 0;
    if (slots[2] && !axis_of(l, e, &type, slots[2], &b))
        return 0;
    if (l->program && (a == 0 || b == 0) && type.rank != 2) {
        turns_rows(l, e->span, &type);
        return 0;
    }
    char perm[IR_MAX_RANK + 1] = {0};
    for (uint32_t i = 0; i < type.rank; i++)
        perm[i] = (char)('0' + (i == a ? b : i == b ? a : i));
    ir_dim d = type.dim[a];
    type.dim[a] = type.dim[b];
    type.dim[b] = d;
    const ir_op *before = ir_at(l->b.f, x);
    if (l->program && type.rank == 2 && a != b && before->code == IR_TRANSPOSE)
        return before->args[0]; /* there and back */
    ir_id id = fe_put(l, e->span, IR_TRANSPOSE, type, &x, 1);
    if (id)
        ir_set_word(l->c->module, ir_at(l->b.f, id), IR_ATTR_PERM, perm);
    if (id && l->program && (a == 0 || b == 0))
        base_push(l->c->arena, l->turned, l->n_turned, l->cap_turned, id);
    return id;
}

static bool is_used(const ir_func *f, const ir_region *r, ir_id id) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        for (uint32_t a = 0; a < op->n_args; a++)
            if (op->args[a] == id)
                return true;
        if (op->region && is_used(f, op->region, id))
            return true;
    }
    return false;
}

static void erase(const ir_func *f, ir_region *r, ir_id id) {
    size_t at;
    if (ir_region_find(r, id, &at))
        ir_erase(r, at);
    for (size_t i = 0; i < r->n; i++)
        if (ir_at(f, r->ops[i])->region)
            erase(f, ir_at(f, r->ops[i])->region, id);
}

void fe_drop_turned(fe_lower *l) {
    for (size_t i = 0; i < l->n_turned; i++) {
        const ir_op *op = ir_at(l->b.f, l->turned[i]);
        if (is_used(l->b.f, &l->b.f->body, l->turned[i]))
            turns_rows(l, op->span, fe_type_at(l, op->args[0]));
        erase(l->b.f, &l->b.f->body, l->turned[i]);
    }
}

/* Rows of one graph where those of another stand: one dimension, as everywhere. */
static bool rows_meet(fe_lower *l, const ir_type *from, const ir_type *to) {
    if (!l->program || !from->rank || !to->rank || from->dim[0] == to->dim[0] || !fe_is_graph_dim(l, from->dim[0]) ||
        !fe_is_graph_dim(l, to->dim[0]))
        return false;
    ir_type same = *to;
    same.dim[0] = from->dim[0];
    return ir_same_elements(l->b.f, from, &same) && !fe_same_dim(l, from->dim[0], to->dim[0]) && l->restart;
}

static ir_id lower_reshape(fe_lower *l, const fe_expr *e, const fe_expr **slots) {
    ir_id x = fe_lower_value(l, slots[0], IR_NONE);
    ir_type type;
    if (slots[1]->kind != FE_EXPR_SHAPE) {
        fe_label(l->c, fe_report(l->c, FE_E0209, slots[1]->span, "the second argument of reshape is a shape"),
                 "write [2, F]");
        return 0;
    }
    if (!x || !fe_type_of(l, slots[1]->shape, &type))
        return 0;
    const ir_type *from = fe_type_at(l, x);
    if (rows_meet(l, from, &type))
        return 0;
    if (!ir_same_elements(l->b.f, from, &type)) {
        fe_label(l->c,
                 fe_report(l->c, FE_E0204, e->span, "reshape of %s to %s", fe_type_text(l, from),
                           fe_type_text(l, &(ir_type){.dtype = from->dtype,
                                                      .rank = type.rank,
                                                      .dim = {type.dim[0], type.dim[1], type.dim[2], type.dim[3],
                                                              type.dim[4], type.dim[5]}})),
                 "both have as many elements, whatever the sizes of open dimensions are");
        return 0;
    }
    if (l->program && (!from->rank || !type.rank || !fe_same_dim(l, from->dim[0], type.dim[0]))) {
        if (!l->restart)
            fe_label(l->c, fe_report(l->c, FE_E0220, e->span, "'reshape' works row by row in a program"),
                     "the first axis of %s stays as it is", fe_type_text(l, from));
        return 0;
    }
    return reshape_to(l, e->span, x, type);
}

/* ---- concat ------------------------------------------------------------------------------------------------------ */
static bool joins(fe_lower *l, const fe_expr *e, const ir_type *first, const ir_type *t, uint32_t axis) {
    bool ok = first->rank == t->rank;
    for (uint32_t i = 0; ok && i < t->rank; i++)
        ok = i == axis || fe_same_dim(l, first->dim[i], t->dim[i]);
    if (!ok && !l->restart)
        fe_label(l->c,
                 fe_report(l->c, FE_E0204, e->span, "%s and %s do not stand side by side", fe_type_text(l, first),
                           fe_type_text(l, t)),
                 "all axes but the one that grows are the same");
    return ok;
}

/* Operands by position; a scalar counts as one element. */
static size_t concat_operands(fe_lower *l, const fe_expr *e, const fe_expr **values, const fe_expr **axis) {
    size_t n = 0;
    for (size_t i = 0; i < e->n_args; i++) {
        const fe_arg *a = &e->args[i];
        if (!a->name) {
            values[n++] = a->value;
        } else if (strcmp(a->name->text, "axis") == 0 && !*axis) {
            *axis = a->value;
        } else {
            fe_label(l->c, fe_report(l->c, FE_E0209, a->name_span, "'concat' has no parameter '%s'", a->name->text),
                     "concat(x, y, axis = ...), with any number of values");
            return 0;
        }
    }
    if (!n)
        fe_label(l->c, fe_report(l->c, FE_E0209, e->span, "'concat' needs a value"), "concat(x, y, axis = ...)");
    return n;
}

static ir_id lower_concat(fe_lower *l, const fe_expr *e, ir_dtype want) {
    const fe_expr **values = base_arena_new_array(l->c->arena, const fe_expr *, e->n_args + 1), *named = NULL;
    ir_id *ids = base_arena_new_array(l->c->arena, ir_id, e->n_args + 1);
    size_t n = concat_operands(l, e, values, &named);
    uint32_t axis;
    if (!n || !fe_lower_unify(l, values, n, want, ids))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (fe_type_at(l, ids[i])->rank == 0 && !(ids[i] = with_axis(l, values[i]->span, ids[i])))
            return 0;
    ir_type type = *fe_type_at(l, ids[0]);
    if (!axis_of(l, e, &type, named, &axis))
        return 0;
    ir_sum sum = ir_sum_number(0), part;
    for (size_t i = 0; i < n; i++) {
        const ir_type *t = fe_type_at(l, ids[i]);
        if (!joins(l, values[i], &type, t, axis))
            return 0;
        if (!ir_sum_of(l->b.f, t->dim[axis], &part) || !ir_sum_calc(IR_ADD, &sum, &part, &sum)) {
            fe_report(l->c, FE_E0216, values[i]->span, "the dimension of the whole is computed from too many others");
            return 0;
        }
        type.space = t->space > type.space ? t->space : type.space;
    }
    if (!as_dim(l, &sum, &type.dim[axis]))
        return 0;
    ir_id id = fe_put(l, e->span, IR_CONCAT, type, ids, n);
    set_int(l, id, IR_ATTR_AXIS, axis);
    return id;
}

/* ---- gather, one_hot, cumsum, layer_norm ------------------------------------------------------------------------- */
static ir_id lower_gather(fe_lower *l, const fe_expr *e, const fe_expr **slots) {
    ir_id args[2] = {fe_lower_value(l, slots[0], IR_NONE), value_of(l, slots[1], FE_INT, IR_I64, "gather")};
    uint32_t axis;
    if (!args[0] || !args[1] || !axis_of(l, e, fe_type_at(l, args[0]), slots[2], &axis))
        return 0;
    const ir_type *from = fe_type_at(l, args[0]), *at = fe_type_at(l, args[1]);
    ir_sum n, one = ir_sum_number(1);
    ir_dim others; /* one element has to be there */
    if (!ir_sum_of(l->b.f, from->dim[axis], &n) || !ir_sum_calc(IR_SUB, &n, &one, &n) || !as_dim(l, &n, &others)) {
        fe_report(l->c, FE_E0227, slots[0]->span, "this axis is computed from too many others, or has no element");
        return 0;
    }
    if (l->program && at->rank) {
        fe_label(l->c, fe_report(l->c, FE_E0220, slots[1]->span, "'gather' works row by row in a program"),
                 "here the numbers are one scalar");
        return 0;
    }
    if (from->rank - 1 + at->rank > IR_MAX_RANK) {
        fe_report(l->c, FE_E0216, e->span, "more than %d dimensions", IR_MAX_RANK);
        return 0;
    }
    ir_type type = {.dtype = from->dtype, .space = from->space > at->space ? from->space : at->space};
    for (uint32_t i = 0; i < from->rank; i++)
        if (i != axis)
            type.dim[type.rank++] = from->dim[i];
        else
            for (uint32_t k = 0; k < at->rank; k++)
                type.dim[type.rank++] = at->dim[k];
    ir_id id = fe_put(l, e->span, IR_GATHER, type, args, 2);
    set_int(l, id, IR_ATTR_AXIS, axis);
    return id;
}

static ir_id lower_one_hot(fe_lower *l, const fe_expr *e, const fe_expr **slots) {
    ir_id i = value_of(l, slots[0], FE_INT, IR_I64, "one_hot");
    ir_type numbers = {.dtype = IR_I64, .rank = 1};
    if (!i || !dimension(l, slots[1], &numbers.dim[0]))
        return 0;
    if (l->program && !fe_type_at(l, i)->rank) {
        fe_label(l->c, fe_report(l->c, FE_E0220, e->span, "'one_hot' works row by row in a program"),
                 "it takes a tensor here");
        return 0;
    }
    ir_id all = fe_put(l, e->span, IR_IOTA, numbers, NULL, 0);
    ir_id one = with_axis(l, e->span, fe_cast(l, e->span, IR_I64, i));
    return one ? fe_cast(l, e->span, IR_F32, fe_map2(l, e->span, IR_EQ, one, all)) : 0;
}

static ir_id lower_cumsum(fe_lower *l, const fe_expr *e, const fe_expr **slots) {
    ir_id x = value_of(l, slots[0], FE_LINEAR, IR_NONE, "cumsum");
    uint32_t axis;
    if (!x || !axis_of(l, e, fe_type_at(l, x), slots[1], &axis))
        return 0;
    if (slots[2] && slots[2]->kind != FE_EXPR_BOOL) {
        fe_report(l->c, FE_E0209, slots[2]->span, "reverse is true or false");
        return 0;
    }
    ir_id id = fe_put(l, e->span, IR_CUMSUM, *fe_type_at(l, x), &x, 1);
    set_int(l, id, IR_ATTR_AXIS, axis);
    if (slots[2] && slots[2]->op == FE_TOK_TRUE)
        set_int(l, id, IR_ATTR_REVERSE, 1);
    return id;
}

/* The mean over the last axis, which stays as an axis of 1. */
static ir_id mean_of(fe_lower *l, base_span span, ir_id x) {
    if (!x)
        return 0;
    const ir_type *t = fe_type_at(l, x);
    uint32_t last = t->rank - 1;
    ir_id sum = fe_fold(l, span, IR_KIND_SUM, x, (int64_t)1 << last);
    l->b.span = span;
    ir_id n = fe_cast(l, span, t->dtype, ir_emit_dimsize(&l->b, t->dim[last]));
    ir_id mean = fe_map2(l, span, IR_DIV, sum, n);
    return last && mean ? with_axis(l, span, mean) : mean;
}

/* (x - mean) / sqrt(mean((x - mean) ^ 2) + eps) * weight + bias */
static ir_id lower_layer_norm(fe_lower *l, const fe_expr *e, const fe_expr **slots) {
    base_span s = e->span;
    ir_id x = value_of(l, slots[0], FE_FLOAT, IR_F32, "layer_norm");
    uint32_t axis;
    if (!x || !axis_of(l, e, fe_type_at(l, x), NULL, &axis))
        return 0;
    ir_dtype t = fe_type_at(l, x)->dtype;
    ir_id mean = mean_of(l, s, x), d = fe_map2(l, s, IR_SUB, x, mean);
    ir_id square = d ? mean_of(l, s, fe_map2(l, s, IR_MUL, d, d)) : 0;
    ir_id eps = slots[3] ? value_of(l, slots[3], FE_FLOAT, t, "layer_norm") : fe_float(l, s, t, 1e-5);
    ir_id y = fe_map2(l, s, IR_DIV, d, fe_map1(l, s, IR_SQRT, fe_map2(l, s, IR_ADD, square, eps)));
    for (int i = 1; i <= 2; i++) {
        if (!slots[i] || !y)
            continue;
        ir_id v = fe_settle(l, s, t, value_of(l, slots[i], FE_FLOAT, t, "layer_norm"));
        if (v && fe_type_at(l, v)->dtype != t) {
            fe_report(l->c, FE_E0203, slots[i]->span, "layer_norm of %s, this is %s", ir_dtype_text(t),
                      ir_dtype_text(fe_type_at(l, v)->dtype));
            return 0;
        }
        y = fe_map2(l, s, i == 1 ? IR_MUL : IR_ADD, y, v);
    }
    return y;
}

ir_id fe_lower_shape_call(fe_lower *l, const fe_expr *e, const fe_func *f, ir_dtype want) {
    const fe_expr *slots[5] = {0};
    if (f->id == FE_FUNC_CONCAT)
        return lower_concat(l, e, want);
    if (!fe_match_args(l, e, f->params, slots))
        return 0;
    switch ((int)f->id) {
    case FE_FUNC_RESHAPE:
        return lower_reshape(l, e, slots);
    case FE_FUNC_TRANSPOSE:
        return lower_transpose(l, e, slots);
    case FE_FUNC_SLICE:
        return lower_slice(l, e, slots);
    case FE_FUNC_GATHER:
        return lower_gather(l, e, slots);
    case FE_FUNC_ONE_HOT:
        return lower_one_hot(l, e, slots);
    case FE_FUNC_CUMSUM:
        return lower_cumsum(l, e, slots);
    case FE_FUNC_LAYER_NORM:
        return lower_layer_norm(l, e, slots);
    default:
        BASE_BUG("%s does not change shapes", f->text);
    }
}

/* ---- a @ b ------------------------------------------------------------------------------------------------------- */
/* The matrix has the wanted axis behind. */
static bool is_turned(fe_lower *l, const ir_id *x) {
    const ir_type *a = fe_type_at(l, x[0]), *b = fe_type_at(l, x[1]);
    return a->rank && b->rank == 2 && a->dim[a->rank - 1] == b->dim[1] && b->dim[0] != b->dim[1];
}

static ir_id cannot_multiply(fe_lower *l, const fe_expr *e, const ir_id *x, const char *label) {
    if (!l->restart)
        fe_label(l->c,
                 fe_report(l->c, FE_E0204, e->name_span, "no matrix product of %s and %s",
                           fe_type_text(l, fe_type_at(l, x[0])), fe_type_text(l, fe_type_at(l, x[1]))),
                 "%s%s", label, is_turned(l, x) ? "; transpose(...) turns the right one" : "");
    return 0;
}

/* `x @ transpose(W)` of a program: the matrix is read the other way. */
static bool take_turned(const fe_lower *l, ir_id *x) {
    const ir_op *op = ir_at(l->b.f, *x);
    if (!l->program || op->code != IR_TRANSPOSE || strcmp(ir_word(op, IR_ATTR_PERM), "10") != 0)
        return false;
    *x = op->args[0];
    return true;
}

ir_id fe_lower_matmul(fe_lower *l, const fe_expr *e, ir_dtype want) {
    ir_id x[2];
    if (!fe_lower_unify(l, (const fe_expr *const[]){e->a, e->b}, 2, want, x))
        return 0;
    bool turned = take_turned(l, &x[1]);
    const ir_type *a = fe_type_at(l, x[0]), *b = fe_type_at(l, x[1]);
    if (!fe_class_has(FE_LINEAR, a->dtype)) {
        fe_report(l->c, FE_E0210, e->name_span, "'@' takes numbers, not %s", ir_dtype_text(a->dtype));
        return 0;
    }
    if (!a->rank || !b->rank || b->rank > 2)
        return cannot_multiply(l, e, x, "the right side has one or two axes, the left side at least one");
    if (!fe_same_dim(l, a->dim[a->rank - 1], b->dim[turned]))
        return cannot_multiply(l, e, x,
                               turned ? "the last axis on the left is the last of what is transposed"
                                      : "the last axis on the left is the first on the right");
    if (b->rank == 1) {
        ir_id product = fe_map2(l, e->span, IR_MUL, x[0], x[1]);
        return fe_fold(l, e->span, IR_KIND_SUM, product, (int64_t)1 << (a->rank - 1));
    }
    if (l->program && (a->rank < 2 || x[0] == x[1]))
        return cannot_multiply(l, e, x, "in a program the rows of the left side are multiplied one by one");
    ir_type type = *a;
    type.space = a->space > b->space ? a->space : b->space;
    type.dim[type.rank - 1] = b->dim[!turned];
    ir_id id = fe_put(l, e->span, IR_MATMUL, type, x, 2);
    if (turned)
        set_int(l, id, IR_ATTR_TURNED, 1);
    return id;
}
