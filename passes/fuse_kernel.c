/* One kernel of two calls: the operations of the first, then those of the second, which read the values of the first where
 * they read its arrays before.  Shapes are in the dimensions of the program, whose symbols the kernel has. */
#include "passes/fuse.h"

#include <string.h>

typedef struct field { /* one that the kernel has already */
    ir_id value;
    ir_role role;
    const char *at;
    ir_id id;
} field;

typedef struct maker {
    const fuse_pair *x;
    fused_kernel *k;
    ir_builder b;
    field *fields;
    size_t n_fields, cap_fields;
    ir_id *made[FUSE_MODES]; /* results of the first, by mode: row values, edge values, values at the source */
} maker;

/* ---- types ---- */
static ir_dim to_kernel(maker *mk, const fuse_side *s, ir_dim d) {
    const ir_func *p = mk->x->f->p;
    if (ir_dim_is_sym(d))
        d = ir_dim_canonical(p, s->dims[ir_dim_sym_index(d)]);
    return ir_dim_is_sym(d) ? ir_dim_sym(ir_sym(mk->b.m, mk->b.f, p->syms[ir_dim_sym_index(d)])) : d;
}

static ir_type local(maker *mk, const fuse_side *s, const ir_type *t) {
    ir_type out = *t;
    for (uint32_t i = 0; i < t->rank; i++)
        out.dim[i] = to_kernel(mk, s, t->dim[i]);
    return out;
}

/* ---- fields ---- */
static ir_space space_at(const char *at) {
    return !strcmp(at, "dst") ? IR_ROW : !strcmp(at, "param") ? IR_UNIFORM : IR_EDGE;
}

/* The array `value` of the program read at one end, in this role. */
static ir_id read_field(maker *mk, const fuse_side *s, const ir_param *p, ir_id value, ir_role role, const char *at) {
    ir_func *f = mk->b.f;
    size_t index = f->n_params;
    for (size_t i = 0; i < mk->n_fields; i++) {
        const field *have = &mk->fields[i];
        if (have->value != value || have->role != role)
            continue;
        if (!strcmp(have->at, at))
            return have->id;
        index = (size_t)ir_int(ir_at(f, have->id), IR_ATTR_FIELD, 0);
    }
    ir_type t = local(mk, s, &p->type);
    if (index == f->n_params) {
        ir_param q = {.name = ir_unused_name(mk->b.m, mk->b.f, p->name), .role = role, .type = t, .span = p->span};
        base_push(mk->b.m->arena, f->params, f->n_params, f->cap_params, q);
        base_push(mk->x->f->scratch, mk->k->args, mk->k->n_args, mk->k->cap_args, value);
    }
    t.space = space_at(at);
    ir_id id = ir_emit(&mk->b, IR_FIELD, t, NULL, 0);
    ir_set_int(mk->b.m, ir_at(f, id), IR_ATTR_FIELD, (int64_t)index);
    ir_set_word(mk->b.m, ir_at(f, id), IR_ATTR_AT, at);
    field fresh = {value, role, at, id};
    base_push(mk->x->f->scratch, mk->fields, mk->n_fields, mk->cap_fields, fresh);
    return id;
}

/* What the first has computed, where the second reads it. */
static ir_id from_first(maker *mk, size_t result, const char *at) {
    const fuse_pair *x = mk->x;
    fuse_mode mode = x->first_mode;
    if (mode == FUSE_SOURCES && strcmp(at, "src") != 0)
        mode = FUSE_ROWS;
    return mk->made[mode][result];
}

static ir_id copy_field(maker *mk, const fuse_side *s, const ir_op *op, fuse_mode mode) {
    size_t index = (size_t)ir_int(op, IR_ATTR_FIELD, 0), result;
    const ir_param *p = &s->kernel->params[index];
    ir_id value = s->op->args[index];
    const char *at = ir_word(op, IR_ATTR_AT);
    if (s == &mk->x->second && fuse_result_of(mk->x->f->p, mk->x->first.id, value, &result))
        return from_first(mk, result, at);
    if (p->role == IR_PARAM_FIELD || mode == FUSE_WALK)
        return read_field(mk, s, p, value, p->role, at);
    if (mode == FUSE_ROWS)
        return read_field(mk, s, p, value, IR_DST, "dst");
    return mode == FUSE_EDGES ? read_field(mk, s, p, value, IR_EDGE_FIELD, "edge")
                              : read_field(mk, s, p, value, IR_SRC, "src");
}

/* ---- operations ---- */
static bool follows_operands(const ir_op *op) {
    return ir_class_is_elementwise(ir_op_describe(op->code)->cls) || op->code == IR_BROADCAST ||
           op->code == IR_NEWAXIS || op->code == IR_FOLD || ir_is_shape_op(op->code);
}

static void copy_region(maker *mk, const fuse_side *s, const ir_region *r, ir_id *map, fuse_mode mode, bool top);

static ir_id copy_op(maker *mk, const fuse_side *s, const ir_op *op, ir_id *map, fuse_mode mode, bool top) {
    if (op->code == IR_FIELD)
        return copy_field(mk, s, op, mode);
    ir_id *args = base_arena_new_array(mk->x->f->scratch, ir_id, op->n_args + 1);
    for (uint32_t i = 0; i < op->n_args; i++)
        args[i] = map[op->args[i]];
    ir_type t = local(mk, s, &op->type);
    if (top && follows_operands(op))
        t.space = ir_widest_space(mk->b.f, args, op->n_args);
    mk->b.span = op->span;
    ir_id id = ir_emit(&mk->b, op->code, t, args, op->n_args);
    ir_op *made = ir_at(mk->b.f, id);
    ir_copy_attrs(mk->b.m, op, made);
    ir_attr_key key;
    if (pass_says_dim(op, &key))
        ir_set_int(mk->b.m, made, key, to_kernel(mk, s, ir_int(op, key, 0)));
    if (op->region) {
        ir_region *outer = mk->b.r;
        mk->b.r = made->region = ir_region_new(mk->b.m);
        copy_region(mk, s, op->region, map, mode, false);
        mk->b.r = outer;
    }
    return id;
}

static void copy_region(maker *mk, const fuse_side *s, const ir_region *r, ir_id *map, fuse_mode mode, bool top) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->kernel, r->ops[i]);
        if (op->code != IR_RET)
            map[r->ops[i]] = copy_op(mk, s, op, map, mode, top);
    }
}

/* All of a kernel; its results. */
static ir_id *copy_kernel(maker *mk, const fuse_side *s, fuse_mode mode) {
    const ir_func *k = s->kernel;
    ir_id *map = base_arena_new_array(mk->x->f->scratch, ir_id, k->n_ops);
    copy_region(mk, s, &k->body, map, mode, true);
    const ir_op *ret = ir_at(k, k->body.ops[k->body.n - 1]);
    ir_id *out = base_arena_new_array(mk->x->f->scratch, ir_id, ret->n_args + 1);
    for (uint32_t i = 0; i < ret->n_args; i++)
        out[i] = map[ret->args[i]];
    return out;
}

/* ---- results ---- */
static void add_result(maker *mk, const fuse_side *s, size_t i, fuse_mode mode) {
    ir_func *f = mk->b.f;
    const ir_param *r = &s->kernel->results[i];
    ir_space space = mode == FUSE_WALK ? r->type.space : mode == FUSE_EDGES ? IR_EDGE : IR_ROW;
    ir_param p = {.name = ir_unused_name(mk->b.m, mk->b.f, r->name),
                  .role = space == IR_EDGE ? IR_OUT_EDGE : IR_OUT_ROW,
                  .type = local(mk, s, &r->type),
                  .span = r->span};
    p.type.space = space;
    base_push(mk->b.m->arena, f->results, f->n_results, f->cap_results, p);
}

static ir_func *new_kernel(const fuse_pair *x) {
    fuse *f = x->f;
    char *name;
    do
        name = base_arena_printf(f->scratch, "%s.fused.%u", f->p->name, ++f->n_kernels);
    while (ir_func_find(f->m, name, IR_LEVEL_KERNEL));
    const fuse_side *walk = x->first.graph >= 0 ? &x->first : &x->second;
    ir_func *k = ir_func_new(f->m, name, IR_LEVEL_KERNEL);
    k->domain = walk->kernel->domain;
    k->needs_square = x->first.kernel->needs_square || x->second.kernel->needs_square;
    k->span = walk->op->span;
    return k;
}

fused_kernel fuse_make_kernel(const fuse_pair *x) {
    fused_kernel k = {.func = new_kernel(x)};
    maker mk = {.x = x, .k = &k, .b = {.m = x->f->m, .f = k.func, .r = &k.func->body}};
    if (x->first_mode != FUSE_SOURCES || x->at_sources)
        mk.made[x->first_mode] = copy_kernel(&mk, &x->first, x->first_mode);
    if (x->first_mode == FUSE_WALK) /* its row values and its edge values: each result is of one kind */
        mk.made[FUSE_ROWS] = mk.made[FUSE_EDGES] = mk.made[FUSE_WALK];
    if (x->first_mode == FUSE_SOURCES && x->at_rows)
        mk.made[FUSE_ROWS] = copy_kernel(&mk, &x->first, FUSE_ROWS);
    ir_id *second = copy_kernel(&mk, &x->second, x->second_mode);
    size_t n = 0, most = x->first.kernel->n_results + x->second.kernel->n_results;
    ir_id *out = base_arena_new_array(x->f->scratch, ir_id, most + 1);
    for (size_t i = 0; i < x->first.kernel->n_results; i++)
        if (x->kept[i]) {
            add_result(&mk, &x->first, i, x->first_mode);
            out[n++] = mk.made[x->first_mode][i];
        }
    for (size_t i = 0; i < x->second.kernel->n_results; i++) {
        add_result(&mk, &x->second, i, x->second_mode);
        out[n++] = second[i];
    }
    ir_emit(&mk.b, IR_RET, (ir_type){.dtype = IR_NONE}, out, n);
    return k;
}
