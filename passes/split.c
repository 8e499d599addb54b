/* split: takes complex numbers in kernels apart, so that everything after computes with f32 and f64.
 *
 * A complex value becomes two values of its shape and space: what the evaluator does step by step becomes operations, in
 * the same order, so no bit changes.  A product over edges, whose parts cannot be multiplied apart, becomes a `combine`
 * of a state of two.  Complex stay fields and results (`real` and `imag` of a field, `complex` in front of `ret`) and
 * what has several operands to move or accumulators of its own: concat, gather, matmul, totals, folds other than sums. */
#include "passes/pass_util.h"

typedef struct split {
    ir_builder b;
    pass_map map;
    uint32_t n;        /* operations of the function as it was */
    ir_id *part[2];    /* by old id of a complex value */
    ir_id *whole;      /* the same as one value; 0: put together where it is needed */
    uint32_t **where;  /* by old id of a combine: new index of each member, and ... */
    ir_id *combined;   /* ... the combine to use */
} split;

static ir_type type_of(const split *s, ir_id id) { return ir_at(s->b.f, id)->type; }
static bool is_complex(const split *s, ir_id id) { return ir_dtype_is_complex(type_of(s, id).dtype); }
static ir_type part_type(ir_type t) {
    t.dtype = ir_dtype_part(t.dtype);
    return t;
}

static ir_id un(split *s, ir_opcode code, ir_id a) { return ir_emit_elementwise(&s->b, code, &a, 1); }
static ir_id bin(split *s, ir_opcode code, ir_id a, ir_id b) {
    return ir_emit_elementwise(&s->b, code, (ir_id[]){a, b}, 2);
}
static ir_id choose(split *s, ir_id c, ir_id a, ir_id b) {
    return ir_emit_elementwise(&s->b, IR_SELECT, (ir_id[]){c, a, b}, 3);
}

/* Of exactly this type. */
static ir_id stretched(split *s, ir_id id, ir_type want) {
    ir_type have = type_of(s, id);
    return ir_type_equal(&have, &want) ? id : ir_emit1(&s->b, IR_BROADCAST, want, id);
}

static void set_parts(split *s, ir_id id, ir_id re, ir_id im) {
    ir_type t = part_type(type_of(s, id));
    s->part[0][id] = stretched(s, re, t);
    s->part[1][id] = stretched(s, im, t);
}

/* A value that stays complex: its parts are read off it. */
static void keep_whole(split *s, ir_id id) {
    ir_type t = part_type(type_of(s, id));
    s->whole[id] = id;
    s->part[0][id] = ir_emit1(&s->b, IR_REAL, t, id);
    s->part[1][id] = ir_emit1(&s->b, IR_IMAG, t, id);
}

static ir_id whole(split *s, ir_id id) {
    return s->whole[id] ? s->whole[id] : ir_emit2(&s->b, IR_COMPLEX, type_of(s, id), s->part[0][id], s->part[1][id]);
}

/* ---- element by element ------------------------------------------------------------------------------------------ */
static void multiply(split *s, ir_id id, const ir_id *a, const ir_id *b) {
    set_parts(s, id, bin(s, IR_SUB, bin(s, IR_MUL, a[0], b[0]), bin(s, IR_MUL, a[1], b[1])),
              bin(s, IR_ADD, bin(s, IR_MUL, a[0], b[1]), bin(s, IR_MUL, a[1], b[0])));
}

/* As in ir_eval_complex.c. */
static void divide(split *s, ir_id id, const ir_id *a, const ir_id *b) {
    ir_id zero = ir_emit_f(&s->b, ir_scalar(type_of(s, b[0]).dtype), 0), size = un(s, IR_ABS, b[0]);
    ir_id first = bin(s, IR_GE, size, un(s, IR_ABS, b[1]));
    ir_id none = bin(s, IR_AND, bin(s, IR_EQ, b[0], zero), bin(s, IR_EQ, b[1], zero));
    ir_id p = choose(s, first, b[0], b[1]), q = choose(s, first, b[1], b[0]), r = bin(s, IR_DIV, q, p);
    ir_id x = choose(s, first, a[0], a[1]), y = choose(s, first, a[1], a[0]);
    ir_id below = choose(s, none, size, bin(s, IR_ADD, p, bin(s, IR_MUL, q, r)));
    ir_id re = choose(s, none, a[0], bin(s, IR_ADD, x, bin(s, IR_MUL, y, r)));
    ir_id im =
        choose(s, first, bin(s, IR_SUB, a[1], bin(s, IR_MUL, a[0], r)), bin(s, IR_SUB, bin(s, IR_MUL, a[1], r), a[0]));
    set_parts(s, id, bin(s, IR_DIV, re, below), bin(s, IR_DIV, choose(s, none, a[1], im), below));
}

static void cast(split *s, ir_id id, const ir_op *op) {
    ir_dtype to = ir_dtype_part(op->type.dtype);
    if (is_complex(s, op->args[0]))
        set_parts(s, id, ir_emit_cast(&s->b, to, s->part[0][op->args[0]]),
                  ir_emit_cast(&s->b, to, s->part[1][op->args[0]]));
    else
        set_parts(s, id, ir_emit_cast(&s->b, to, op->args[0]), ir_emit_f(&s->b, ir_scalar(to), 0));
}

static void constant(split *s, ir_id id, const ir_op *op) {
    ir_scalar_value v = ir_find_attr(op, IR_ATTR_VALUE)->v;
    ir_type t = part_type(op->type);
    set_parts(s, id, ir_emit_const(&s->b, t, ir_part(op->type.dtype, v, 0)),
              ir_emit_const(&s->b, t, ir_part(op->type.dtype, v, 1)));
}

/* The operation on each part by itself. */
static void each_part(split *s, ir_id id, const ir_op *op) {
    ir_id parts[2];
    for (int i = 0; i < 2; i++) {
        parts[i] = ir_emit1(&s->b, op->code, part_type(op->type), s->part[i][op->args[0]]);
        ir_copy_attrs(s->b.m, op, ir_at(s->b.f, parts[i]));
    }
    set_parts(s, id, parts[0], parts[1]);
}

/* ---- combine ----------------------------------------------------------------------------------------------------- */
static void region(split *s, ir_region *r);

static ir_id state_arg(split *s, ir_type t, uint32_t index) {
    ir_id id = ir_emit(&s->b, IR_ARG, t, NULL, 0);
    ir_set_int(s->b.m, ir_at(s->b.f, id), IR_ATTR_INDEX, index);
    return id;
}

static ir_id member(split *s, ir_id combine, ir_type t, uint32_t index) {
    ir_id id = ir_emit1(&s->b, IR_GET, t, combine);
    ir_set_int(s->b.m, ir_at(s->b.f, id), IR_ATTR_INDEX, index);
    return id;
}

/* reduce {prod}: a state of two, from 1 + 0i. */
static void product(split *s, ir_id id, const ir_op *op) {
    ir_id v = op->args[0];
    ir_type t = part_type(type_of(s, v)), start = t, row = part_type(op->type);
    bool scalar = true;
    for (uint32_t i = 0; i < t.rank; i++)
        scalar = scalar && t.dim[i] == 1;
    start.space = IR_UNIFORM;
    t.space = IR_EDGE;
    ir_id args[4] = {ir_emit_f(&s->b, start, 1), ir_emit_f(&s->b, start, 0), s->part[0][v], s->part[1][v]}, a[4];
    ir_id combine = ir_emit(&s->b, IR_COMBINE, ir_scalar(IR_TUPLE), args, 4);
    if (scalar)
        ir_set_int(s->b.m, ir_at(s->b.f, combine), IR_ATTR_LANES, IR_N_PARTIALS);
    ir_region *outer = s->b.r;
    s->b.r = ir_at(s->b.f, combine)->region = ir_region_new(s->b.m);
    for (uint32_t i = 0; i < 4; i++)
        a[i] = state_arg(s, t, i);
    ir_id next[2] = {bin(s, IR_SUB, bin(s, IR_MUL, a[0], a[2]), bin(s, IR_MUL, a[1], a[3])),
                     bin(s, IR_ADD, bin(s, IR_MUL, a[0], a[3]), bin(s, IR_MUL, a[1], a[2]))};
    ir_emit(&s->b, IR_YIELD, (ir_type){.dtype = IR_NONE}, next, 2);
    s->b.r = outer;
    set_parts(s, id, member(s, combine, row, 0), member(s, combine, row, 1));
}

/* Operands with the complex ones replaced by their parts. */
static ir_id *apart(split *s, const ir_op *op, uint32_t begin, uint32_t end, uint32_t *n, uint32_t *where) {
    base_arena *arena = s->b.m->arena;
    ir_id *out = base_arena_new_array(arena, ir_id, 2 * (size_t)(end - begin) + 1);
    *n = 0;
    for (uint32_t i = begin; i < end; i++) {
        if (where)
            where[i - begin] = *n;
        if (is_complex(s, op->args[i])) {
            out[(*n)++] = s->part[0][op->args[i]];
            out[(*n)++] = s->part[1][op->args[i]];
        } else {
            out[(*n)++] = op->args[i];
        }
    }
    return out;
}

static bool any_complex(const split *s, const ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++)
        if (is_complex(s, op->args[i]))
            return true;
    return false;
}

/* A state of the user's: each complex member is two.  Made anew in any case, for what its region computes. */
static void split_combine(split *s, ir_id id) {
    const ir_op *op = ir_at(s->b.f, id);
    base_arena *arena = s->b.m->arena;
    uint32_t n_old = op->n_args / 2, n, same;
    uint32_t *where = s->where[id] = base_arena_new_array(arena, uint32_t, n_old + 1);
    ir_id *start = apart(s, op, 0, n_old, &n, where), *lifted = apart(s, op, n_old, 2 * n_old, &same, NULL);
    ir_id *args = base_arena_new_array(arena, ir_id, 2 * (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        args[i] = start[i];
        args[n + i] = lifted[i];
    }
    ir_id made = s->combined[id] = ir_emit(&s->b, IR_COMBINE, ir_scalar(IR_TUPLE), args, 2 * (size_t)n);
    ir_copy_attrs(s->b.m, op, ir_at(s->b.f, made));
    ir_region *outer = s->b.r, *old = op->region;
    s->b.r = ir_at(s->b.f, made)->region = ir_region_new(s->b.m);
    for (uint32_t i = 0; i < old->n && ir_at(s->b.f, old->ops[i])->code == IR_ARG; i++) {
        ir_id arg = old->ops[i];
        uint32_t at = (i < n_old ? 0 : n) + where[i % n_old];
        ir_type t = part_type(type_of(s, arg));
        ir_id first = state_arg(s, t, at);
        if (is_complex(s, arg)) {
            s->part[0][arg] = first;
            s->part[1][arg] = state_arg(s, t, at + 1);
        } else {
            s->map.to[arg] = first;
        }
    }
    region(s, old);
    s->b.r = outer;
}

static void get(split *s, ir_id id, ir_op *op) {
    ir_id combine = op->args[0];
    if (combine >= s->n || !s->combined[combine]) {
        ir_append(s->b.m, s->b.r, id);
        if (ir_dtype_is_complex(op->type.dtype))
            keep_whole(s, id);
        return;
    }
    uint32_t at = s->where[combine][ir_int(op, IR_ATTR_INDEX, 0)];
    ir_type t = part_type(op->type);
    ir_id made = s->combined[combine], first = member(s, made, t, at);
    if (ir_dtype_is_complex(op->type.dtype))
        set_parts(s, id, first, member(s, made, t, at + 1));
    else
        s->map.to[id] = first;
}

/* ---- one operation ----------------------------------------------------------------------------------------------- */
/* Stays, with whole operands. */
static void keep(split *s, ir_id id, ir_op *op) {
    if (op->code == IR_YIELD) { /* of a combine that was taken apart */
        uint32_t n;
        ir_id *values = apart(s, op, 0, op->n_args, &n, NULL);
        ir_set_args(s->b.m, op, values, n);
    }
    for (uint32_t i = 0; i < op->n_args; i++)
        if (op->args[i] < s->n && is_complex(s, op->args[i]))
            op->args[i] = whole(s, op->args[i]);
    ir_append(s->b.m, s->b.r, id);
    if (ir_dtype_is_complex(op->type.dtype))
        keep_whole(s, id);
}

static void binary(split *s, ir_id id, const ir_op *op) {
    const ir_id a[2] = {s->part[0][op->args[0]], s->part[1][op->args[0]]};
    const ir_id b[2] = {s->part[0][op->args[1]], s->part[1][op->args[1]]};
    if (op->code == IR_MUL)
        multiply(s, id, a, b);
    else if (op->code == IR_DIV)
        divide(s, id, a, b);
    else if (op->code == IR_EQ || op->code == IR_NE)
        s->map.to[id] = stretched(
            s, bin(s, op->code == IR_EQ ? IR_AND : IR_OR, bin(s, op->code, a[0], b[0]), bin(s, op->code, a[1], b[1])),
            op->type);
    else
        set_parts(s, id, bin(s, op->code, a[0], b[0]), bin(s, op->code, a[1], b[1]));
}

/* One operand, and what happens to an element is the same for both parts. */
static bool moves_alone(ir_opcode code) {
    return code == IR_RESHAPE || code == IR_TRANSPOSE || code == IR_SLICE || code == IR_NEWAXIS || code == IR_CUMSUM;
}

/* An operation with a complex operand or result. */
static void complex_op(split *s, ir_id id, ir_op *op) {
    const ir_id *args = op->args;
    ir_kind kind = op->code == IR_REDUCE || op->code == IR_FOLD ? ir_kind_of(op) : IR_KIND_COUNT_;
    if (op->code == IR_CONST)
        constant(s, id, op);
    else if (op->code == IR_COMPLEX)
        set_parts(s, id, args[0], args[1]);
    else if (op->code == IR_CAST)
        cast(s, id, op);
    else if (op->code == IR_REAL || op->code == IR_IMAG)
        s->map.to[id] = s->part[op->code == IR_IMAG][args[0]];
    else if (op->code == IR_NEG)
        set_parts(s, id, un(s, IR_NEG, s->part[0][args[0]]), un(s, IR_NEG, s->part[1][args[0]]));
    else if (op->code == IR_CONJ)
        set_parts(s, id, s->part[0][args[0]], un(s, IR_NEG, s->part[1][args[0]]));
    else if (op->code == IR_SELECT)
        set_parts(s, id, choose(s, args[0], s->part[0][args[1]], s->part[0][args[2]]),
                  choose(s, args[0], s->part[1][args[1]], s->part[1][args[2]]));
    else if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        binary(s, id, op);
    else if (op->code == IR_BROADCAST || kind == IR_KIND_SUM || moves_alone(op->code))
        each_part(s, id, op);
    else if (op->code == IR_REDUCE && kind == IR_KIND_PROD)
        product(s, id, op);
    else
        keep(s, id, op);
}

static void region(split *s, ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        ir_op *op = ir_at(s->b.f, id);
        bool arg = op->code == IR_ARG && (s->map.to[id] || s->part[0][id]);
        if (arg) /* of a combine that was taken apart: made anew */
            continue;
        s->b.span = op->span;
        pass_map_args(&s->map, op);
        if (op->code == IR_GET)
            get(s, id, op);
        else if (op->code == IR_COMBINE)
            split_combine(s, id);
        else if (ir_dtype_is_complex(op->type.dtype) || any_complex(s, op))
            complex_op(s, id, op);
        else
            ir_append(s->b.m, s->b.r, id);
    }
}

static bool has_complex(const ir_func *f) {
    for (ir_id id = 1; id < f->n_ops; id++)
        if (ir_dtype_is_complex(ir_at(f, id)->type.dtype))
            return true;
    return false;
}

static bool split_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    if (!has_complex(f))
        return true;
    split s = {.b = {.m = m, .f = f}, .n = f->n_ops, .map = pass_map_new(f, ctx->scratch)};
    for (int i = 0; i < 2; i++)
        s.part[i] = base_arena_new_array(ctx->scratch, ir_id, f->n_ops);
    s.whole = base_arena_new_array(ctx->scratch, ir_id, f->n_ops);
    s.where = base_arena_new_array(ctx->scratch, uint32_t *, f->n_ops);
    s.combined = base_arena_new_array(ctx->scratch, ir_id, f->n_ops);
    ir_region old = f->body;
    f->body = (ir_region){0};
    s.b.r = &f->body;
    region(&s, &old);
    return true;
}

bool pass_split(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_KERNEL, split_func, ctx, err);
}
