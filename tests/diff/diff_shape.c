/* Operations that change shapes, in random kernels: always in pairs that lead back to the shape they began with, because
 * every shape of a kernel is cut from one base shape. */
#include "diff_gen.h"

#include <string.h>

static ir_id op_like(diff_gen *g, ir_opcode code, ir_type type, const ir_id *args, size_t n, ir_attr_key key, int64_t v) {
    ir_id id = ir_emit(&g->b, code, type, args, n);
    ir_set_int(g->m, ir_at(g->f, id), key, v);
    return id;
}

/* Where an open axis is cut: at an end, or where it is put together. */
static ir_dim open_place(diff_gen *g, ir_dim n) {
    ir_dim at[] = {0, n, n, n}, rest;
    for (int i = 2; i < 4 && !strncmp(g->f->syms[ir_dim_sym_index(n)], "D+K", 3); i++) {
        uint32_t sym;
        if (ir_sym_find(g->f, i == 2 ? "D" : "K", &sym) && ir_dim_calc(g->m, g->f, IR_SUB, n, ir_dim_sym(sym), &rest))
            at[i] = ir_dim_sym(sym);
    }
    return at[diff_below(g->r, 4)];
}

/* Is there always one? */
static bool has_element(diff_gen *g, ir_dim n) {
    ir_dim rest;
    return !ir_dim_is_sym(n) ? n >= 1 : !strcmp(g->f->syms[ir_dim_sym_index(n)], "D+K+1") &&
                                            ir_dim_calc(g->m, g->f, IR_SUB, n, 1, &rest);
}

/* Both parts of an axis that is cut, perhaps the other way round, joined again. */
static ir_id cut_and_join(diff_gen *g, ir_id v, ir_type t, uint32_t axis) {
    ir_dim n = t.dim[axis], at = ir_dim_is_sym(n) ? open_place(g, n) : diff_below(g->r, n + 1);
    ir_type first = t, rest = t;
    first.dim[axis] = at;
    if (!ir_dim_calc(g->m, g->f, IR_SUB, n, at, &rest.dim[axis])) return v;
    ir_id parts[2] = {op_like(g, IR_SLICE, first, &v, 1, IR_ATTR_AXIS, axis),
                      op_like(g, IR_SLICE, rest, &v, 1, IR_ATTR_AXIS, axis)};
    ir_set_int(g->m, ir_at(g->f, parts[0]), IR_ATTR_BEGIN, 0);
    ir_set_int(g->m, ir_at(g->f, parts[1]), IR_ATTR_BEGIN, at);
    if (diff_chance(g->r, 50)) {
        ir_id swap = parts[0];
        parts[0] = parts[1];
        parts[1] = swap;
    }
    return op_like(g, IR_CONCAT, t, parts, 2, IR_ATTR_AXIS, axis);
}

static ir_id gather(diff_gen *g, ir_id v, ir_type t, uint32_t axis) {
    ir_type numbers = ir_scalar(IR_I64);
    numbers.rank = 1;
    numbers.dim[0] = t.dim[axis];
    ir_id i = ir_emit(&g->b, IR_IOTA, numbers, NULL, 0);
    ir_id step = ir_emit_i64(&g->b, diff_below(g->r, 7) - 3), begin = ir_emit_i64(&g->b, diff_below(g->r, 5) - 1);
    i = ir_emit_elementwise(&g->b, IR_MUL, (ir_id[]){i, step}, 2);
    i = ir_emit_elementwise(&g->b, IR_ADD, (ir_id[]){i, begin}, 2); /* out of range at times */
    return op_like(g, IR_GATHER, t, (ir_id[]){v, i}, 2, IR_ATTR_AXIS, axis);
}

static ir_id transpose(diff_gen *g, ir_id v, const ir_type *t, const char *perm) {
    ir_type to = *t;
    for (uint32_t i = 0; i < t->rank; i++) to.dim[i] = t->dim[perm[i] - '0'];
    ir_id id = ir_emit1(&g->b, IR_TRANSPOSE, to, v);
    ir_set_word(g->m, ir_at(g->f, id), IR_ATTR_PERM, perm);
    return id;
}

/* There and back, with a running sum in between. */
static ir_id turned(diff_gen *g, ir_id v, ir_type t) {
    static const char *const orders[] = {"", "0", "10", "201"}, *const back[] = {"", "0", "10", "120"};
    ir_id x = transpose(g, v, &t, orders[t.rank]);
    ir_type to = ir_at(g->f, x)->type;
    if (ir_eval_defined(IR_ADD, t.dtype))
        x = op_like(g, IR_CUMSUM, to, &x, 1, IR_ATTR_AXIS, diff_below(g->r, t.rank));
    return transpose(g, x, &to, back[t.rank]);
}

static ir_id flattened(diff_gen *g, ir_id v, ir_type t) {
    ir_type flat = t;
    int64_t n = 1;
    flat.rank = 0;
    for (uint32_t i = 0; i < t.rank; i++) {
        if (ir_dim_is_sym(t.dim[i])) flat.dim[flat.rank++] = t.dim[i];
        else n *= t.dim[i];
    }
    flat.dim[flat.rank++] = n;
    ir_id x = ir_emit1(&g->b, IR_RESHAPE, flat, v);
    if (ir_eval_defined(IR_ADD, t.dtype))
        x = op_like(g, IR_CUMSUM, flat, &x, 1, IR_ATTR_AXIS, flat.rank - 1);
    if (ir_eval_defined(IR_ADD, t.dtype) && diff_chance(g->r, 50)) ir_set_int(g->m, ir_at(g->f, x), IR_ATTR_REVERSE, 1);
    return ir_emit1(&g->b, IR_RESHAPE, t, x);
}

static ir_id matrix_field(diff_gen *g, ir_type t) {
    ir_param p = {.name = base_arena_printf(g->m->arena, "m%zu", g->f->n_params), .role = IR_PARAM_FIELD, .type = t};
    base_push(g->m->arena, g->f->params, g->f->n_params, g->f->cap_params, p);
    ir_id id = ir_emit(&g->b, IR_FIELD, t, NULL, 0);
    ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_FIELD, (int64_t)g->f->n_params - 1);
    ir_set_word(g->m, ir_at(g->f, id), IR_ATTR_AT, "param");
    return id;
}

/* By a square matrix that is a field. */
static ir_id multiplied_by_field(diff_gen *g, ir_id v, ir_type t) {
    ir_dim d = t.dim[t.rank - 1];
    ir_id m = matrix_field(g, (ir_type){.dtype = t.dtype, .rank = 2, .dim = {d, d}});
    ir_id id = ir_emit2(&g->b, IR_MATMUL, t, v, m);
    if (diff_chance(g->r, 60)) ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_TURNED, 1);
    return id;
}

/* A square matrix for the last axis: a parameter, or made of a value and its numbers. */
static ir_id multiplied(diff_gen *g, ir_id v, ir_type t) {
    ir_dim d = t.dim[t.rank - 1];
    if (diff_chance(g->r, 50) && g->f->n_params < 10) return multiplied_by_field(g, v, t);
    ir_type column = ir_scalar(IR_I64), row = ir_scalar(IR_I64);
    column.rank = 2;
    column.dim[0] = d;
    column.dim[1] = 1;
    row.rank = 1;
    row.dim[0] = d;
    ir_id i = ir_emit(&g->b, IR_IOTA, row, NULL, 0), k = ir_emit1(&g->b, IR_RESHAPE, column, i);
    ir_id m = ir_emit_elementwise(&g->b, IR_SUB, (ir_id[]){i, k}, 2);
    m = ir_emit_elementwise(&g->b, IR_REM, (ir_id[]){m, ir_emit_i64(&g->b, 3)}, 2);
    if (t.dtype != IR_I64) m = ir_emit_cast(&g->b, t.dtype, m);
    if (diff_chance(g->r, 50)) {
        ir_id some = g->values[diff_below(g->r, g->n)];
        ir_type s = ir_at(g->f, some)->type;
        if (s.rank == 0 && s.dtype == t.dtype) m = ir_emit_elementwise(&g->b, IR_MUL, (ir_id[]){m, some}, 2);
    }
    ir_space space = ir_at(g->f, m)->type.space;
    t.space = space > t.space ? space : t.space;
    ir_id id = ir_emit2(&g->b, IR_MATMUL, t, v, m);
    if (diff_chance(g->r, 30)) ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_TURNED, 1);
    return id;
}

ir_id diff_shape_op(diff_gen *g, ir_id v) {
    ir_type t = ir_at(g->f, v)->type;
    uint32_t axis = t.rank ? (uint32_t)diff_below(g->r, t.rank) : 0;
    int64_t k = diff_below(g->r, 100);
    if (t.rank == 0) return v;
    bool adds = ir_eval_defined(IR_ADD, t.dtype);
    if (k < 20 && adds) return op_like(g, IR_CUMSUM, t, &v, 1, IR_ATTR_AXIS, axis);
    if (k < 40 && adds) return multiplied(g, v, t);
    if (k < 60 && t.dim[axis] != 0) return cut_and_join(g, v, t, axis);
    if (k < 75 && has_element(g, t.dim[axis])) return gather(g, v, t, axis);
    if (k < 88 && t.rank <= 3) return turned(g, v, t);
    return flattened(g, v, t);
}
