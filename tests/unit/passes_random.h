/* Random programs: every tensor operation, shapes that broadcast in every way outline knows, calls with one and two
 * results, nested repeats whose yields permute, repeat and drop values. */
#ifndef PASSES_RANDOM_H
#define PASSES_RANDOM_H

#include "passes_support.h"

static const char *const random_kernels =
    "module \"random\"\n"
    "kernel @wsum[F](src x: f32[F], dst b: f32[F]) -> (out: row f32[F]) exported {\n"
    "  %1 = field {field = 0, at = src} : edge f32[F]\n"
    "  %2 = reduce %1 {kind = sum} : row f32[F]\n"
    "  %3 = field {field = 1, at = dst} : row f32[F]\n"
    "  %4 = add %2, %3 : row f32[F]\n"
    "  ret %4\n"
    "}\n"
    "kernel @two(src x: f32, edge w: f32, param p: f32) -> (m: row f32, e: edge f32) exported {\n"
    "  %1 = field {field = 0, at = src} : edge f32\n"
    "  %2 = field {field = 1, at = edge} : edge f32\n"
    "  %3 = mul %1, %2 : edge f32\n"
    "  %4 = reduce %3 {kind = mean} : row f32\n"
    "  %5 = field {field = 2, at = param} : f32\n"
    "  %6 = add %4, %5 : row f32\n"
    "  %7 = sub %3, %4 : edge f32\n"
    "  ret %6, %7\n"
    "}\n"
    "program @p[F, g.dst, g.src, g.edge](graph g: graph, param x: f32[g.dst, F], param y: f32[g.dst], param w: "
    "f32[g.edge], "
    "param v: f32[F], param one: f32[1, F], param tiny: f32[1], param s: f32, param k: i64) -> (a: f32[g.dst, F], b: "
    "f32[g.dst], c: f32, "
    "d: f32[F], e: f32[g.edge], n: i64) exported square {\n"
    "  ret\n"
    "}\n";

typedef struct maker {
    ir_builder b;
    rng *r;
    ir_id *pool; /* f32 tensors and scalars in scope */
    size_t n, cap;
    ir_id rounds[4]; /* i64 scalars in scope */
    size_t n_rounds;
} maker;

static const ir_type *type_of(const maker *k, ir_id v) { return &ir_at(k->b.f, v)->type; }
static void put(maker *k, ir_id v) { base_push(k->b.m->arena, k->pool, k->n, k->cap, v); }
/* Late values are likelier, so chains grow. */
static ir_id any(maker *k) {
    size_t i = rng_next(k->r, (uint32_t)k->n), j = rng_next(k->r, (uint32_t)k->n);
    return k->pool[i > j ? i : j];
}

static ir_id any_of(maker *k, const ir_type *t) {
    for (int i = 0; i < 30; i++) {
        ir_id v = any(k);
        if (ir_type_equal(type_of(k, v), t))
            return v;
    }
    for (size_t i = k->n; i-- > 0;)
        if (ir_type_equal(type_of(k, k->pool[i]), t))
            return k->pool[i];
    return 0;
}

static ir_type param_type(const maker *k, const char *name) {
    for (size_t i = 0; i < k->b.f->n_params; i++)
        if (!strcmp(k->b.f->params[i].name, name))
            return k->b.f->params[i].type;
    return ir_scalar(IR_F32);
}

static ir_id partner(maker *k, ir_id a) { /* what broadcasts with a */
    for (;;) {
        ir_id v = any(k);
        ir_type t;
        if (ir_broadcast(type_of(k, a), type_of(k, v), &t))
            return v;
    }
}

static void add_binary(maker *k) {
    static const ir_opcode codes[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_MIN, IR_MAX};
    ir_id a = any(k), c = partner(k, a);
    put(k,
        ir_emit_elementwise(&k->b, codes[rng_next(k->r, 6)], rng_next(k->r, 2) ? (ir_id[]){a, c} : (ir_id[]){c, a}, 2));
}

static void add_unary(maker *k) {
    static const ir_opcode codes[] = {IR_NEG, IR_ABS, IR_EXP, IR_SQRT, IR_FLOOR, IR_TANH};
    ir_id a = any(k);
    put(k, ir_emit_elementwise(&k->b, codes[rng_next(k->r, 6)], &a, 1));
}

static void add_select(maker *k) {
    ir_id a = any(k), c = partner(k, a);
    ir_id cond = ir_emit_elementwise(&k->b, rng_next(k->r, 2) ? IR_LT : IR_EQ, (ir_id[]){a, c}, 2);
    put(k, ir_emit_elementwise(&k->b, IR_SELECT, (ir_id[]){cond, a, rng_next(k->r, 2) ? c : a}, 3));
}

static ir_id fold_all(maker *k, ir_id a, const char *kind) {
    const ir_type *t = type_of(k, a);
    if (!t->rank)
        return a;
    ir_id id = ir_emit1(&k->b, IR_FOLD, ir_scalar(t->dtype), a);
    ir_set_int(k->b.m, ir_at(k->b.f, id), IR_ATTR_AXES, (1 << t->rank) - 1);
    ir_set_word(k->b.m, ir_at(k->b.f, id), IR_ATTR_KIND, kind);
    return id;
}

static ir_id cast(maker *k, ir_id a, ir_dtype to) {
    ir_type t = *type_of(k, a);
    t.dtype = to;
    return ir_emit1(&k->b, IR_CAST, t, a);
}

/* Through bool, i32, i64 and f64, and their folds. */
static void add_other_types(maker *k) {
    ir_id a = any(k), c = partner(k, a);
    ir_id less = ir_emit_elementwise(&k->b, IR_LT, (ir_id[]){a, c}, 2);
    uint32_t way = rng_next(k->r, 5);
    if (way == 0) {
        ir_id all = fold_all(k, ir_emit_elementwise(&k->b, IR_NOT, &less, 1), rng_next(k->r, 2) ? "and" : "or");
        put(k, ir_emit_elementwise(&k->b, IR_SELECT, (ir_id[]){all, a, c}, 3));
    } else if (way == 1) {
        ir_id both = ir_emit_elementwise(&k->b, IR_OR, (ir_id[]){less, less}, 2);
        put(k, cast(k, fold_all(k, cast(k, both, IR_I64), "sum"), IR_F32));
    } else {
        static const ir_dtype types[] = {IR_F64, IR_I32, IR_I64};
        ir_id x = cast(k, a, types[way - 2]), y = cast(k, c, types[way - 2]);
        ir_id z = ir_emit_elementwise(&k->b, rng_next(k->r, 2) ? IR_MUL : IR_SUB, (ir_id[]){x, y}, 2);
        put(k, cast(k, rng_next(k->r, 2) ? z : fold_all(k, z, rng_next(k->r, 2) ? "sum" : "max"), IR_F32));
    }
}

static void add_leaf(maker *k) {
    static const double values[] = {0.0, -0.0, 1.0, 2.5, -3.0};
    static const char *const names[] = {"x", "y", "w", "v", "one", "tiny", "s"};
    ir_type t = param_type(k, names[rng_next(k->r, 7)]);
    if (rng_next(k->r, 3)) {
        put(k, ir_emit_f(&k->b, rng_next(k->r, 2) ? t : ir_scalar(IR_F32), values[rng_next(k->r, 5)]));
        return;
    }
    ir_type x = param_type(k, "x");
    ir_id size = ir_emit_dimsize(&k->b, x.dim[rng_next(k->r, 2)]);
    put(k, ir_emit1(&k->b, IR_CAST, ir_scalar(IR_F32), size));
}

static void add_broadcast(maker *k) {
    static const char *const names[] = {"x", "y", "w", "v"};
    ir_type to = param_type(k, names[rng_next(k->r, 4)]), t;
    ir_id a = any(k);
    if (ir_broadcast(type_of(k, a), &to, &t) && ir_shape_equal(&t, &to))
        put(k, ir_emit1(&k->b, IR_BROADCAST, to, a));
}

static void add_fold(maker *k) {
    static const char *const kinds[] = {"sum", "prod", "min", "max"};
    ir_id a = any(k);
    const ir_type *t = type_of(k, a);
    if (!t->rank)
        return;
    bool rows = t->rank == 2 && rng_next(k->r, 2);
    ir_type to = ir_scalar(IR_F32);
    if (rows)
        to.dim[to.rank++] = t->dim[0];
    int64_t axes = rows ? 2 : (1 << t->rank) - 1;
    ir_id id = ir_emit1(&k->b, IR_FOLD, to, a);
    ir_set_int(k->b.m, ir_at(k->b.f, id), IR_ATTR_AXES, axes);
    ir_set_word(k->b.m, ir_at(k->b.f, id), IR_ATTR_KIND, kinds[rng_next(k->r, 4)]);
    put(k, id);
}

static void add_call(maker *k) {
    ir_type x = param_type(k, "x"), y = param_type(k, "y"), w = param_type(k, "w"), s = ir_scalar(IR_F32);
    bool two = rng_next(k->r, 2);
    ir_id args[3];
    if (two)
        args[0] = any_of(k, &y), args[1] = any_of(k, &w), args[2] = any_of(k, &s);
    else
        args[0] = any_of(k, &x), args[1] = any_of(k, &x);
    ir_id call = ir_emit(&k->b, IR_CALL, two ? ir_scalar(IR_TUPLE) : x, args, two ? 3 : 2);
    ir_set_word(k->b.m, ir_at(k->b.f, call), IR_ATTR_CALLEE, two ? "two" : "wsum");
    ir_set_int(k->b.m, ir_at(k->b.f, call), IR_ATTR_GRAPH, 0);
    if (!two) {
        put(k, call);
        return;
    }
    for (int i = 0; i < 2; i++) {
        ir_id get = ir_emit1(&k->b, IR_GET, i ? w : y, call);
        ir_set_int(k->b.m, ir_at(k->b.f, get), IR_ATTR_INDEX, i);
        if (rng_next(k->r, 4))
            put(k, get);
    }
}

static void add_ops(maker *k, uint32_t n, int depth);

static ir_id number_of_rounds(maker *k) {
    uint32_t way = rng_next(k->r, 4);
    if (way == 0)
        return ir_emit_i64(&k->b, rng_next(k->r, 4));
    ir_id v = k->rounds[rng_next(k->r, (uint32_t)k->n_rounds)];
    if (way == 1) /* a size: at most 3 */
        return ir_emit2(&k->b, IR_MIN, ir_scalar(IR_I64), ir_emit_i64(&k->b, 3),
                        ir_emit_dimsize(&k->b, param_type(k, "y").dim[0]));
    return way == 2 ? ir_emit2(&k->b, IR_MIN, ir_scalar(IR_I64), ir_emit_i64(&k->b, 2), v) : v;
}

static ir_id condition(maker *k) {
    static const ir_opcode compare[] = {IR_LT, IR_GE, IR_NE};
    ir_type s = ir_scalar(IR_F32);
    if (!rng_next(k->r, 8))
        return ir_emit_const(&k->b, ir_scalar(IR_BOOL), (ir_scalar_value){.i = rng_next(k->r, 2)});
    ir_id a = any_of(k, &s), b = any_of(k, &s);
    return ir_emit2(&k->b, compare[rng_next(k->r, 3)], ir_scalar(IR_BOOL), a, b);
}

static void add_arm(maker *k, int depth, const ir_id *like, uint32_t n) {
    ir_region *outer = k->b.r;
    size_t n_outer = k->n, n_rounds = k->n_rounds;
    ir_id arm = ir_emit(&k->b, IR_ARM, (ir_type){.dtype = IR_NONE}, NULL, 0), out[4];
    k->b.r = ir_at(k->b.f, arm)->region = ir_region_new(k->b.m);
    add_ops(k, rng_next(k->r, 5), depth + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = rng_next(k->r, 4) ? any_of(k, type_of(k, like[i])) : like[i];
    ir_emit(&k->b, IR_YIELD, (ir_type){.dtype = IR_NONE}, out, n);
    k->b.r = outer;
    k->n = n_outer;
    k->n_rounds = n_rounds;
}

static void add_if(maker *k, int depth) {
    ir_id like[4], choice = ir_emit1(&k->b, IR_IF, ir_scalar(IR_TUPLE), condition(k));
    uint32_t n = 1 + rng_next(k->r, 4);
    for (uint32_t i = 0; i < n; i++)
        like[i] = any(k);
    ir_region *outer = k->b.r;
    k->b.r = ir_at(k->b.f, choice)->region = ir_region_new(k->b.m);
    add_arm(k, depth, like, n);
    add_arm(k, depth, like, n);
    k->b.r = outer;
    for (uint32_t i = 0; i < n; i++) {
        ir_id get = ir_emit1(&k->b, IR_GET, *type_of(k, like[i]), choice);
        ir_set_int(k->b.m, ir_at(k->b.f, get), IR_ATTR_INDEX, i);
        if (rng_next(k->r, 4))
            put(k, get);
    }
}

static void add_repeat(maker *k, int depth) {
    ir_id args[5] = {number_of_rounds(k)}, out[4];
    uint32_t n = 1 + rng_next(k->r, 4);
    for (uint32_t i = 0; i < n; i++) /* often the same type, so that values can change places */
        args[i + 1] = i && rng_next(k->r, 2) ? any_of(k, type_of(k, args[i])) : any(k);
    ir_id loop = ir_emit(&k->b, IR_REPEAT, ir_scalar(IR_TUPLE), args, n + 1);
    ir_region *outer = k->b.r;
    size_t n_outer = k->n, n_rounds = k->n_rounds;
    k->b.r = ir_at(k->b.f, loop)->region = ir_region_new(k->b.m);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = ir_emit(&k->b, IR_ARG, *type_of(k, args[i + 1]), NULL, 0);
        ir_set_int(k->b.m, ir_at(k->b.f, out[i]), IR_ATTR_INDEX, i);
        put(k, out[i]);
    }
    if (rng_next(k->r, 2))
        add_ops(k, 1 + rng_next(k->r, 3), depth + 1);
    if (!rng_next(k->r, 3))
        ir_emit1(&k->b, IR_WHILE, (ir_type){.dtype = IR_NONE}, condition(k));
    add_ops(k, 1 + rng_next(k->r, 4), depth + 1);
    for (uint32_t i = 0; i < n; i++)
        if (rng_next(k->r, 6))
            out[i] = any_of(k, type_of(k, args[i + 1]));
    ir_emit(&k->b, IR_YIELD, (ir_type){.dtype = IR_NONE}, out, n);
    k->b.r = outer;
    k->n = n_outer;
    k->n_rounds = n_rounds;
    for (uint32_t i = 0; i < n; i++) {
        ir_id get = ir_emit1(&k->b, IR_GET, *type_of(k, args[i + 1]), loop);
        ir_set_int(k->b.m, ir_at(k->b.f, get), IR_ATTR_INDEX, i);
        put(k, get);
    }
}

static void add_ops(maker *k, uint32_t n, int depth) {
    while (n--) {
        uint32_t what = rng_next(k->r, 24);
        if (what < 7)
            add_binary(k);
        else if (what < 10)
            add_unary(k);
        else if (what < 12)
            add_select(k);
        else if (what < 13)
            add_leaf(k);
        else if (what < 14)
            add_broadcast(k);
        else if (what < 16)
            add_fold(k);
        else if (what < 18)
            add_call(k);
        else if (what < 20)
            add_other_types(k);
        else if (depth < 2 && what < 22)
            add_repeat(k, depth);
        else if (depth < 3)
            add_if(k, depth);
    }
}

static inline ir_module *random_program(base_arena *a, rng *r) {
    base_diags diags;
    base_diags_init(&diags, a, "random", random_kernels);
    ir_module *m = ir_parse(a, "random", random_kernels, &diags);
    cr_assert(m);
    ir_func *f = ir_func_find(m, "p", IR_LEVEL_PROGRAM);
    f->body.n = 0;
    maker k = {.b = {.m = m, .f = f, .r = &f->body}, .r = r};
    for (size_t i = 1; i < f->n_params; i++) {
        ir_id id = ir_emit(&k.b, IR_PARAM, f->params[i].type, NULL, 0);
        ir_set_int(m, ir_at(f, id), IR_ATTR_FIELD, (int64_t)i);
        if (f->params[i].type.dtype == IR_I64)
            k.rounds[k.n_rounds++] = id;
        else
            put(&k, id);
    }
    ir_id three = ir_emit_i64(&k.b, 3);
    k.rounds[k.n_rounds++] = ir_emit2(&k.b, IR_SUB, ir_scalar(IR_I64), three, k.rounds[0]);
    add_ops(&k, 4 + rng_next(r, 14), 0);
    ir_id out[6];
    for (size_t i = 0; i < f->n_results; i++)
        out[i] = f->results[i].type.dtype == IR_I64 ? k.rounds[rng_next(r, 2)] : any_of(&k, &f->results[i].type);
    ir_emit(&k.b, IR_RET, (ir_type){.dtype = IR_NONE}, out, f->n_results);
    base_str err = {0};
    if (!ir_verify(m, &err)) {
        ir_print_func(f, &err);
        cr_assert_fail("%s", base_str_text(&err));
    }
    return m;
}

#endif
