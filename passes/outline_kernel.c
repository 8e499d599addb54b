/* The kernel of a group of arrays: the operations that lead to them, down to arrays that exist, which become fields.
 *
 * Shapes lose the axis of the rows; alignment is a matter of each use, so one array can be a field twice, once by
 * rows and once whole. */
#include "passes/outline.h"

#include <string.h>

typedef struct maker {
    outline *s;
    ir_builder b; /* into the kernel */
    outline_kernel *k;
} maker;

static ir_dim to_kernel(maker *mk, ir_dim d) {
    return ir_dim_is_sym(d) ? ir_dim_sym(ir_sym(mk->b.m, mk->b.f, mk->s->p->syms[ir_dim_sym_index(d)])) : d;
}

static ir_type local(maker *mk, const ir_type *t, bool aligned) {
    ir_type out = aligned ? pass_type_drop_lead(t) : *t;
    for (uint32_t i = 0; i < out.rank; i++)
        out.dim[i] = to_kernel(mk, out.dim[i]);
    out.space = IR_UNIFORM;
    return out;
}

/* The program's name for it, where it has one.  Results are called out, out_2, ...: fields begin otherwise. */
static const char *field_name(maker *mk, ir_id v) {
    const ir_op *op = ir_at(mk->s->p, v);
    const char *want = op->code == IR_PARAM ? mk->s->p->params[ir_int(op, IR_ATTR_FIELD, 0)].name : "t";
    if (!strcmp(want, "out") || !strncmp(want, "out_", 4))
        want = base_arena_printf(mk->b.m->arena, "in_%s", want);
    return ir_unused_name(mk->b.m, mk->b.f, want);
}

/* The array v as a field: by rows, or whole. */
static ir_id field(maker *mk, ir_id v, bool aligned) {
    outline *s = mk->s;
    ir_type t = local(mk, &ir_at(s->p, v)->type, aligned);
    ir_param p = {.name = field_name(mk, v), .role = aligned ? IR_DST : IR_PARAM_FIELD, .type = t, .span = mk->b.span};
    ir_func *f = mk->b.f;
    base_push(s->m->arena, f->params, f->n_params, f->cap_params, p);
    base_push(s->scratch, mk->k->args, mk->k->n_args, mk->k->cap_args, pass_map_find(&s->map, v));
    t.space = aligned ? IR_ROW : IR_UNIFORM;
    ir_id id = ir_emit(&mk->b, IR_FIELD, t, NULL, 0);
    ir_set_int(s->m, ir_at(f, id), IR_ATTR_FIELD, (int64_t)f->n_params - 1);
    ir_set_word(s->m, ir_at(f, id), IR_ATTR_AT, aligned ? "dst" : "param");
    return id;
}

/* [1, feats] without its first axis.  max and or of one element are that element, bit for bit, NaN and -0.0 too. */
static ir_id drop_one(maker *mk, ir_id v) {
    const ir_type *from = &ir_at(mk->b.f, v)->type;
    ir_type t = pass_type_drop_lead(from);
    t.space = from->space;
    ir_id id = ir_emit1(&mk->b, IR_FOLD, t, v);
    ir_set_int(mk->b.m, ir_at(mk->b.f, id), IR_ATTR_AXES, 1);
    ir_set_word(mk->b.m, ir_at(mk->b.f, id), IR_ATTR_KIND, t.dtype == IR_BOOL ? "or" : "max");
    return id;
}

static ir_id leaf(maker *mk, const ir_op *op, bool drop_lead) {
    ir_id id = ir_emit(&mk->b, op->code, local(mk, &op->type, drop_lead), NULL, 0);
    ir_copy_attrs(mk->b.m, op, ir_at(mk->b.f, id));
    if (op->code == IR_DIMSIZE)
        ir_set_int(mk->b.m, ir_at(mk->b.f, id), IR_ATTR_DIM, to_kernel(mk, ir_int(op, IR_ATTR_DIM, 0)));
    return id;
}

/* Operand v of `user`, as the kernel sees it. What is computed in the kernel has been by now. */
static ir_id operand(maker *mk, ir_id v, const ir_op *user) {
    const ir_op *op = ir_at(mk->s->p, v);
    bool aligned = outline_aligned(mk->s->p, v, user);
    bool single = !aligned && op->type.rank && op->type.rank == user->type.rank && !ir_is_shape_op(user->code);
    if (outline_is_leaf(op->code))
        return leaf(mk, op, aligned || single);
    ir_id *known = aligned ? &mk->s->row[v] : &mk->s->whole[v];
    if (!*known) {
        *known = field(mk, v, aligned);
        base_push(mk->s->scratch, mk->s->touched, mk->s->n_touched, mk->s->cap_touched, v);
    }
    return single ? drop_one(mk, *known) : *known;
}

/* The axes that a total folds besides that of the rows. */
static ir_id fold_rest(maker *mk, const ir_op *op, ir_id row) {
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0) >> 1;
    ir_type from = ir_at(mk->b.f, row)->type, t = from;
    if (!axes)
        return row;
    t.rank = 0;
    for (uint32_t i = 0; i < from.rank; i++)
        if (!(axes >> i & 1))
            t.dim[t.rank++] = from.dim[i];
    ir_id id = ir_emit1(&mk->b, IR_FOLD, t, row);
    ir_set_int(mk->b.m, ir_at(mk->b.f, id), IR_ATTR_AXES, (int64_t)axes);
    ir_set_word(mk->b.m, ir_at(mk->b.f, id), IR_ATTR_KIND, ir_word(op, IR_ATTR_KIND));
    return id;
}

/* Axes lose the one of the rows. */
static void drop_lead(maker *mk, const ir_op *op, ir_op *made) {
    if (op->code == IR_FOLD || op->code == IR_NEWAXIS)
        ir_set_int(mk->b.m, made, IR_ATTR_AXES, ir_int(op, IR_ATTR_AXES, 0) >> 1);
    if (ir_find_attr(op, IR_ATTR_AXIS))
        ir_set_int(mk->b.m, made, IR_ATTR_AXIS, ir_int(op, IR_ATTR_AXIS, 0) - 1);
    if (op->code != IR_TRANSPOSE)
        return;
    char perm[IR_MAX_RANK + 1] = {0};
    for (uint32_t i = 1; i < op->type.rank; i++)
        perm[i - 1] = (char)(ir_word(op, IR_ATTR_PERM)[i] - 1);
    ir_set_word(mk->b.m, made, IR_ATTR_PERM, perm);
}

static ir_id compute(maker *mk, ir_id v) {
    const ir_op *op = ir_at(mk->s->p, v);
    if (outline_is_leaf(op->code))
        return leaf(mk, op, op->type.rank > 0);
    bool total = outline_is_total(mk->s->p, op);
    ir_id *args = base_arena_new_array(mk->s->scratch, ir_id, op->n_args + 1);
    for (uint32_t i = 0; i < op->n_args; i++)
        args[i] = operand(mk, op->args[i], op);
    ir_type t = local(mk, &op->type, op->type.rank > 0 && !total);
    if (total && op->type.rank) /* other axes first, row by row; those that stay are totals of their own */
        args[0] = fold_rest(mk, op, args[0]);
    t.space = total ? IR_UNIFORM : ir_widest_space(mk->b.f, args, op->n_args);
    if (op->code == IR_BROADCAST && ir_type_equal(&t, &ir_at(mk->b.f, args[0])->type))
        return args[0]; /* what was stretched was the axis of the rows */
    mk->b.span = op->span;
    ir_id id = ir_emit(&mk->b, total ? IR_TOTAL : op->code, t, args, op->n_args);
    ir_op *made = ir_at(mk->b.f, id);
    ir_copy_attrs(mk->b.m, op, made);
    ir_attr_key key;
    if (pass_says_dim(op, &key))
        ir_set_int(mk->b.m, made, key, to_kernel(mk, ir_int(op, key, 0)));
    if (total)
        ir_drop_attr(made, IR_ATTR_AXES);
    else
        drop_lead(mk, op, made);
    return id;
}

static ir_func *new_kernel(outline *s, base_span span) {
    char *name;
    do
        name = base_arena_printf(s->scratch, "%s.%u", s->p->name, ++s->n_kernels);
    while (ir_func_find(s->m, name, IR_LEVEL_KERNEL));
    ir_func *f = ir_func_new(s->m, name, IR_LEVEL_KERNEL);
    f->domain = "rows";
    f->span = span;
    return f;
}

static void add_result(maker *mk, ir_id value, bool total) {
    ir_func *f = mk->b.f;
    const char *name = f->n_results ? base_arena_printf(mk->b.m->arena, "out_%zu", f->n_results + 1) : "out";
    ir_param p = {.name = name, .role = IR_DST, .type = ir_at(f, value)->type, .span = mk->b.span};
    p.type.space = total ? IR_UNIFORM : IR_ROW;
    base_push(mk->b.m->arena, f->results, f->n_results, f->cap_results, p);
}

outline_kernel outline_make_kernel(outline *s, const outline_group *g) {
    base_span span = ir_at(s->p, g->roots[g->n - 1])->span;
    outline_kernel k = {.func = new_kernel(s, span)};
    maker mk = {.s = s, .k = &k, .b = {.m = s->m, .f = k.func, .r = &k.func->body, .span = span}};
    ir_id *out = base_arena_new_array(s->scratch, ir_id, g->n);
    size_t n_out = 0;
    for (size_t i = 0; i < g->n; i++) {
        outline_chain c = outline_chain_of(s, g->roots[i]);
        for (size_t j = 0; j < c.n_ops; j++) {
            ir_id v = c.ops[j];
            ir_id *known = ir_at(s->p, v)->type.rank ? &s->row[v] : &s->whole[v];
            if (!*known) {
                *known = compute(&mk, v);
                base_push(s->scratch, s->touched, s->n_touched, s->cap_touched, v);
            }
            if (v == g->roots[i] && g->result[i]) {
                add_result(&mk, *known, g->total);
                out[n_out++] = *known;
            }
        }
    }
    ir_emit(&mk.b, IR_RET, (ir_type){.dtype = IR_NONE}, out, n_out);
    for (size_t i = 0; i < s->n_touched; i++)
        s->row[s->touched[i]] = s->whole[s->touched[i]] = 0;
    s->n_touched = 0;
    return k;
}
