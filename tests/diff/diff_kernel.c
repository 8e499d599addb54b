/* A random kernel: fields of every role and type, then operations drawn from the op table, then one to three results.
 * Every shape in a kernel is cut from one base shape, so that any two of them broadcast. */
#include "diff_gen.h"

#include <math.h>
#include <string.h>

typedef diff_gen gen;

static ir_type type_of(const gen *g, ir_id id) { return ir_at(g->f, id)->type; }

static void keep(gen *g, ir_id id) {
    if (g->n < DIFF_MAX_VALUES) g->values[g->n++] = id;
}

static ir_dtype random_dtype(diff_rng *r) {
    int64_t k = diff_below(r, 100);
    if (r->tame) return IR_F64;
    static const ir_dtype small[] = {IR_F16, IR_BF16, IR_I8, IR_U8, IR_C64, IR_C64, IR_C128};
    if (k < 28) return small[k / 4];
    return k < 55 ? IR_F32 : k < 67 ? IR_F64 : k < 77 ? IR_I32 : k < 89 ? IR_I64 : IR_BOOL;
}

static ir_dim constant_dim(diff_rng *r) {
    static const int64_t sizes[] = {0, 1, 3, 7, 16, 64, 257, 5, 2, 17};
    return sizes[diff_below(r, 10)];
}

static ir_dim random_dim(gen *g, const char *symbol) {
    if (diff_chance(g->r, 50)) return constant_dim(g->r);
    if (diff_chance(g->r, 30)) return ir_dim_sym(ir_sym(g->m, g->f, diff_chance(g->r, 50) ? "D+K" : "D+K+1"));
    return ir_dim_sym(ir_sym(g->m, g->f, symbol));
}

static void choose_base(gen *g) {
    int64_t k = diff_below(g->r, 100);
    g->base = ir_scalar(IR_F32);
    g->base.rank = k < 20 ? 0 : k < 65 ? 1 : k < 92 ? 2 : 3;
    if (g->base.rank == 1) g->base.dim[0] = random_dim(g, "F");
    if (g->base.rank == 2) {
        g->base.dim[0] = diff_chance(g->r, 50) ? 1 + diff_below(g->r, 3) : ir_dim_sym(ir_sym(g->m, g->f, "H"));
        g->base.dim[1] = random_dim(g, "F");
    }
    if (g->base.rank == 3) {
        g->base.dim[0] = 2;
        g->base.dim[1] = ir_dim_sym(ir_sym(g->m, g->f, "H"));
        g->base.dim[2] = diff_chance(g->r, 50) ? 3 : ir_dim_sym(ir_sym(g->m, g->f, "F"));
    }
}

/* A suffix of the base shape, some axes shrunk to 1. */
static ir_type random_shape(gen *g, ir_dtype t) {
    ir_type out = ir_scalar(t);
    uint32_t drop = g->base.rank ? (uint32_t)diff_below(g->r, g->base.rank + 1) : 0;
    if (diff_chance(g->r, 50)) drop = 0;
    out.rank = g->base.rank - drop;
    for (uint32_t i = 0; i < out.rank; i++) out.dim[i] = diff_chance(g->r, 10) ? 1 : g->base.dim[drop + i];
    return out;
}

static void add_field(gen *g, int i) {
    static const ir_role roles[] = {IR_SRC, IR_SRC, IR_DST, IR_EDGE_FIELD, IR_EDGE_FIELD, IR_PARAM_FIELD, IR_NODE};
    ir_param p = {.role = roles[diff_below(g->r, diff_chance(g->r, 30) ? 7 : 6)]};
    p.name = base_arena_printf(g->m->arena, "x%d", i);
    p.type = random_shape(g, random_dtype(g->r));
    if (p.role == IR_NODE) g->f->needs_square = true;
    base_push(g->m->arena, g->f->params, g->f->n_params, g->f->cap_params, p);
}

/* What open dimensions are computed from is shown too, by arrays that nobody needs. */
static void add_shown_parts(gen *g) {
    static const char *const parts[] = {"D", "K"};
    for (int i = 0; i < 2; i++) {
        uint32_t sym;
        if (!ir_sym_find(g->f, parts[i], &sym)) continue;
        ir_param p = {.name = i ? "shown_k" : "shown_d", .role = IR_PARAM_FIELD, .type = ir_scalar(IR_I64)};
        p.type.rank = 1;
        p.type.dim[0] = ir_dim_sym(sym);
        base_push(g->m->arena, g->f->params, g->f->n_params, g->f->cap_params, p);
    }
}

static void add_shown(gen *g) {
    ir_param p = {.name = "shown", .role = diff_chance(g->r, 60) ? IR_SRC : IR_DST, .type = g->base};
    p.type.dtype = random_dtype(g->r);
    base_push(g->m->arena, g->f->params, g->f->n_params, g->f->cap_params, p);
}

static void read_field(gen *g, size_t i) {
    const ir_param *p = &g->f->params[i];
    bool at_src = p->role == IR_SRC || (p->role == IR_NODE && diff_chance(g->r, 50));
    ir_type t = p->type;
    t.space = p->role == IR_EDGE_FIELD || at_src ? IR_EDGE : p->role == IR_PARAM_FIELD ? IR_UNIFORM : IR_ROW;
    ir_id id = ir_emit(&g->b, IR_FIELD, t, NULL, 0);
    ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_FIELD, (int64_t)i);
    const char *at = p->role == IR_EDGE_FIELD ? "edge" : p->role == IR_PARAM_FIELD ? "param" : at_src ? "src" : "dst";
    ir_set_word(g->m, ir_at(g->f, id), IR_ATTR_AT, at);
    keep(g, id);
}

static ir_id pick(gen *g) { return g->values[diff_below(g->r, g->n)]; }

static ir_id cast_to(gen *g, ir_id id, ir_dtype t) {
    ir_type type = type_of(g, id);
    if (type.dtype == t) return id;
    if (!ir_cast_defined(type.dtype, t)) {
        type.dtype = ir_dtype_part(type.dtype);
        return cast_to(g, ir_emit1(&g->b, diff_chance(g->r, 50) ? IR_REAL : IR_IMAG, type, id), t);
    }
    type.dtype = t;
    return ir_emit1(&g->b, IR_CAST, type, id);
}

/* The value as something that can be computed with: a 16-bit float becomes f32. */
static ir_id computed(gen *g, ir_id id) {
    return ir_dtype_is_half(type_of(g, id).dtype) ? cast_to(g, id, IR_F32) : id;
}

static ir_id pick_of(gen *g, ir_dtype t) {
    for (int tries = 0; tries < 6; tries++) {
        ir_id id = pick(g);
        if (type_of(g, id).dtype == t) return id;
    }
    return cast_to(g, pick(g), t);
}

static void add_constant(gen *g) {
    ir_dtype t = random_dtype(g->r);
    keep(g, ir_emit_const(&g->b, ir_scalar(t), diff_value(g->r, t)));
}

static ir_opcode random_elementwise(gen *g, ir_dtype t) {
    for (;;) {
        ir_opcode code = (ir_opcode)(1 + diff_below(g->r, IR_OP_COUNT - 1));
        const ir_op_desc *d = ir_op_describe(code);
        if (!(d->levels & IR_LEVEL_K) || !ir_class_is_elementwise(d->cls)) continue;
        if (code == IR_CAST || code == IR_SELECT || ir_eval_defined(code, t)) return code;
    }
}

static void add_elementwise(gen *g) {
    if (g->r->tame) {
        keep(g, diff_smooth_op(&g->b, g->r, pick_of(g, IR_F64), pick_of(g, IR_F64)));
        return;
    }
    ir_dtype t = type_of(g, pick(g)).dtype;
    ir_opcode code = random_elementwise(g, t);
    ir_id args[3];
    if (code == IR_CAST) {
        keep(g, cast_to(g, pick(g), random_dtype(g->r)));
        return;
    }
    int n = ir_op_describe(code)->min_args, first = 0;
    if (code == IR_SELECT) args[first++] = pick_of(g, IR_BOOL);
    for (int i = first; i < n; i++) args[i] = pick_of(g, t);
    keep(g, ir_emit_elementwise(&g->b, code, args, (size_t)n));
}

static ir_kind primitive_kind(diff_rng *r, ir_dtype t) {
    if (r->tame && t == IR_F64) return diff_chance(r, 80) ? IR_KIND_SUM : IR_KIND_PROD;
    if (t == IR_BOOL) return diff_chance(r, 50) ? IR_KIND_AND : IR_KIND_OR;
    if (ir_dtype_is_complex(t)) return diff_chance(r, 60) ? IR_KIND_SUM : IR_KIND_PROD;
    static const ir_kind kinds[] = {IR_KIND_SUM, IR_KIND_SUM, IR_KIND_PROD, IR_KIND_MIN, IR_KIND_MAX};
    return kinds[diff_below(r, 5)];
}

static ir_id fold_axes(gen *g, ir_id id, unsigned axes, ir_kind kind) {
    ir_type from = type_of(g, id), to = from;
    to.rank = 0;
    for (uint32_t i = 0; i < from.rank; i++)
        if (!(axes >> i & 1)) to.dim[to.rank++] = from.dim[i];
    ir_id out = ir_emit1(&g->b, IR_FOLD, to, id);
    ir_set_word(g->m, ir_at(g->f, out), IR_ATTR_KIND, ir_kind_text(kind));
    ir_set_int(g->m, ir_at(g->f, out), IR_ATTR_AXES, axes);
    return out;
}

static void add_fold(gen *g) {
    ir_id id = computed(g, pick(g));
    ir_type t = type_of(g, id);
    if (t.rank == 0) return;
    /* the first axes, all of them at times: what is left is a suffix, which broadcasts with everything else */
    unsigned axes = (1u << (1 + diff_below(g->r, t.rank))) - 1;
    keep(g, fold_axes(g, id, axes, primitive_kind(g->r, t.dtype)));
}

static ir_kind reduce_kind(gen *g, ir_dtype t) {
    int64_t k = diff_below(g->r, 100);
    if (t == IR_BOOL) return k < 30 ? IR_KIND_COUNT : k < 60 ? IR_KIND_ANY : k < 90 ? IR_KIND_ALL : primitive_kind(g->r, t);
    if (ir_dtype_is_complex(t)) return k < 20 ? IR_KIND_MEAN : primitive_kind(g->r, t);
    if (g->r->tame) k = 24 + k * 3 / 4;
    if (k < 12) return IR_KIND_ARGMIN;
    if (k < 24) return IR_KIND_ARGMAX;
    if (ir_dtype_is_float(t) && k < 34) return IR_KIND_LOGSUMEXP;
    if (ir_dtype_is_float(t) && k < 46) return IR_KIND_SOFTMAX;
    if (ir_dtype_is_float(t) && k < 54) return IR_KIND_MEAN;
    if (ir_dtype_is_float(t) && k < 62) return k < 58 ? IR_KIND_VAR : IR_KIND_STD;
    return primitive_kind(g->r, t);
}

/* A score for softmax(score, value): value's trailing axes folded away, or value itself. */
static ir_id score_of(gen *g, ir_id value) {
    ir_type t = type_of(g, value);
    uint32_t keep_axes = (uint32_t)diff_below(g->r, t.rank + 1);
    if (keep_axes == t.rank) return value;
    unsigned axes = ((1u << t.rank) - 1) & ~((1u << keep_axes) - 1);
    return fold_axes(g, value, axes, diff_chance(g->r, 50) || g->r->tame ? IR_KIND_SUM : IR_KIND_MAX);
}

static ir_id emit_reduce(gen *g, ir_id value, ir_kind kind) {
    ir_type t = type_of(g, value);
    ir_id args[2] = {value, 0};
    size_t n = 1;
    if (kind == IR_KIND_SOFTMAX) {
        args[0] = score_of(g, value);
        args[1] = value;
        n = 2;
    }
    t.space = IR_ROW;
    if (kind == IR_KIND_ARGMIN || kind == IR_KIND_ARGMAX || kind == IR_KIND_COUNT) t.dtype = IR_I64;
    if (kind == IR_KIND_ANY || kind == IR_KIND_ALL) t.dtype = IR_BOOL;
    ir_id out = ir_emit(&g->b, IR_REDUCE, t, args, n);
    ir_set_word(g->m, ir_at(g->f, out), IR_ATTR_KIND, ir_kind_text(kind));
    return out;
}

static ir_id reduce_any(gen *g, ir_id value) {
    value = computed(g, value);
    return emit_reduce(g, value, reduce_kind(g, type_of(g, value).dtype));
}

static void add_reduce(gen *g) {
    if (diff_chance(g->r, 6)) { /* count() */
        ir_type t = ir_scalar(IR_I64);
        t.space = IR_ROW;
        ir_id out = ir_emit(&g->b, IR_REDUCE, t, NULL, 0);
        ir_set_word(g->m, ir_at(g->f, out), IR_ATTR_KIND, "count");
        keep(g, out);
        return;
    }
    ir_id v = pick(g);
    for (int tries = 0; tries < 4 && type_of(g, v).space != IR_EDGE; tries++) v = pick(g);
    keep(g, reduce_any(g, v));
}

static ir_id to_shape(gen *g, ir_id id, const ir_type *shape) {
    ir_type t = type_of(g, id);
    bool same = t.rank == shape->rank;
    for (uint32_t i = 0; same && i < t.rank; i++) same = t.dim[i] == shape->dim[i];
    if (same) return id;
    t.rank = shape->rank;
    memcpy(t.dim, shape->dim, sizeof t.dim);
    return ir_emit1(&g->b, IR_BROADCAST, t, id);
}

/* ---- combine: a state of one to four values, of whatever shapes the kernel has ---- */
static bool stretches_to(const ir_type *from, const ir_type *to) {
    ir_type t;
    if (!ir_broadcast(from, to, &t) || t.rank != to->rank) return false;
    for (uint32_t i = 0; i < t.rank; i++)
        if (t.dim[i] != to->dim[i]) return false;
    return true;
}

/* What a tame combine does with a state, all of it associative and commutative. */
typedef enum tame_kind { TAME_SUM, TAME_MAX, TAME_MIN, TAME_CHOICE } tame_kind;
typedef struct tame_state {
    tame_kind kind;
    int by; /* a choice: the state, a maximum or minimum, that says from which side */
} tame_state;

static bool decides(const tame_state *s) { return s->kind == TAME_MAX || s->kind == TAME_MIN; }

static tame_state tame_choose(gen *g, const ir_type *states, const tame_state *so_far, int i) {
    tame_state out = {.kind = diff_chance(g->r, 60) ? TAME_SUM : diff_chance(g->r, 50) ? TAME_MAX : TAME_MIN};
    if (!ir_dtype_is_float(states[i].dtype)) out.kind = TAME_SUM; /* a degree: no infinity to begin with */
    for (int k = 0; k < i; k++)
        if (decides(&so_far[k]) && stretches_to(&states[k], &states[i]) && diff_chance(g->r, 50))
            out = (tame_state){TAME_CHOICE, k};
    return out;
}

/* What the combine leaves unchanged. */
static double tame_start(tame_kind kind) {
    return kind == TAME_MAX ? -(double)INFINITY : kind == TAME_MIN ? (double)INFINITY : 0;
}

/* a + b, or that and a product of the values of the first state, when it is a sum. */
static ir_id tame_sum(gen *g, const ir_type *state, const tame_state *all, ir_id a, ir_id b) {
    ir_id first_a = g->values[0], first_b = g->values[g->n / 2];
    ir_type t = type_of(g, first_a);
    ir_id sum = ir_emit_elementwise(&g->b, IR_ADD, (ir_id[]){a, b}, 2);
    bool fits = t.dtype == state->dtype && stretches_to(&t, state);
    if (a == first_a || all[0].kind != TAME_SUM || !fits || diff_chance(g->r, 40)) return sum;
    ir_id both = ir_emit_elementwise(&g->b, IR_MUL, (ir_id[]){first_a, first_b}, 2);
    return ir_emit_elementwise(&g->b, IR_ADD, (ir_id[]){sum, both}, 2);
}

static ir_id tame_next(gen *g, const ir_type *states, const tame_state *all, int i, const ir_id *args, int n) {
    ir_id two[] = {args[i], args[n + i]};
    if (all[i].kind == TAME_SUM) return tame_sum(g, &states[i], all, two[0], two[1]);
    if (decides(&all[i])) return ir_emit_elementwise(&g->b, all[i].kind == TAME_MAX ? IR_MAX : IR_MIN, two, 2);
    ir_id by[] = {args[all[i].by], args[n + all[i].by]};
    ir_id first = ir_emit_elementwise(&g->b, all[all[i].by].kind == TAME_MAX ? IR_GE : IR_LE, by, 2);
    return ir_emit_elementwise(&g->b, IR_SELECT, (ir_id[]){first, two[0], two[1]}, 3);
}

/* A step that depends on the order of the edges, or on other states in ways that only gradients edge by edge follow. */
static ir_id ordered_next(gen *g, const ir_type *states, int i, const ir_id *args, int n) {
    int j = (int)diff_below(g->r, n);
    j = states[j].dtype == states[i].dtype && stretches_to(&states[j], &states[i]) ? j : i;
    ir_id a = args[i], b = args[n + i], c = args[diff_chance(g->r, 50) ? j : n + j];
    ir_id half = ir_emit_f(&g->b, ir_scalar(IR_F64), 0.5), two[] = {c, half};
    switch (diff_below(g->r, 6)) {
    case 0: return ir_emit_elementwise(&g->b, IR_ADD, (ir_id[]){ir_emit_elementwise(&g->b, IR_MUL, (ir_id[]){a, half}, 2), b}, 2);
    case 1: return ir_emit_elementwise(&g->b, IR_MAX, (ir_id[]){b, ir_emit_elementwise(&g->b, IR_MUL, two, 2)}, 2);
    case 2: return ir_emit_elementwise(&g->b, IR_MIN, (ir_id[]){a, c}, 2);
    case 3: return ir_emit_elementwise(&g->b, IR_SELECT, (ir_id[]){ir_emit_elementwise(&g->b, IR_LT, (ir_id[]){args[j], args[n + j]}, 2), b, a}, 3);
    case 4: return ir_emit_elementwise(&g->b, IR_ADD, (ir_id[]){a, ir_emit_elementwise(&g->b, IR_SIN, (ir_id[]){ir_emit_elementwise(&g->b, IR_MUL, (ir_id[]){c, b}, 2)}, 1)}, 2);
    default: return ir_emit_elementwise(&g->b, IR_MUL, (ir_id[]){ir_emit_elementwise(&g->b, IR_ADD, (ir_id[]){b, c}, 2), half}, 2);
    }
}

/* A row without edges has an infinite maximum; a sum of results would have no slope. */
static ir_id without_infinity(gen *g, ir_id v) {
    ir_type t = ir_scalar(type_of(g, v).dtype);
    ir_id size = ir_emit_elementwise(&g->b, IR_ABS, &v, 1);
    ir_id there = ir_emit_elementwise(&g->b, IR_LT, (ir_id[]){size, ir_emit_f(&g->b, t, 1e300)}, 2);
    return ir_emit_elementwise(&g->b, IR_SELECT, (ir_id[]){there, v, ir_emit_f(&g->b, t, 0)}, 3);
}

/* A value of the region for the state: something computed if it fits, else a and b in one operation. */
static ir_id next_state(gen *g, const ir_type *state, ir_id a, ir_id b) {
    for (int tries = 0; tries < 4; tries++) {
        ir_id v = g->values[g->n - 1 - diff_below(g->r, g->n < 4 ? g->n : 4)];
        ir_type t = type_of(g, v);
        if (t.dtype == state->dtype && stretches_to(&t, state)) return to_shape(g, v, state);
    }
    ir_opcode code = ir_kind_opcode(primitive_kind(g->r, state->dtype));
    return ir_emit_elementwise(&g->b, code, (ir_id[]){a, b}, 2);
}

static void fill_region(gen *g, ir_id combine, const ir_type *states, const tame_state *tame, int n, bool ordered) {
    ir_region *outer = g->b.r;
    gen inner = *g;
    ir_id args[8], next[4];
    inner.b.r = ir_at(g->f, combine)->region = ir_region_new(g->m);
    inner.n = 0;
    for (int i = 0; i < 2 * n; i++) {
        ir_type t = states[i % n];
        t.space = IR_EDGE;
        args[i] = ir_emit(&inner.b, IR_ARG, t, NULL, 0);
        ir_set_int(g->m, ir_at(g->f, args[i]), IR_ATTR_INDEX, i);
    }
    for (int i = 0; i < 2 * n; i++) keep(&inner, args[i]);
    if (!g->r->tame && diff_chance(g->r, 60)) add_constant(&inner);
    for (int64_t steps = g->r->tame ? 0 : diff_below(g->r, 8); steps > 0; steps--) add_elementwise(&inner);
    for (int i = 0; i < n; i++)
        next[i] = ordered      ? ordered_next(&inner, states, i, args, n)
                  : g->r->tame ? tame_next(&inner, states, tame, i, args, n)
                             : next_state(&inner, &states[i], args[i], args[n + i]);
    ir_emit(&inner.b, IR_YIELD, (ir_type){.dtype = IR_NONE}, next, (size_t)n);
    g->b.r = outer;
}

static bool is_f64(const gen *g, ir_id v) { return type_of(g, v).dtype == IR_F64; }

static void add_combine(gen *g) {
    ir_id args[8];
    ir_type states[4];
    tame_state tame[4] = {{TAME_SUM, 0}};
    int n = 1 + (int)diff_below(g->r, 4);
    bool ordered = g->r->tame && diff_chance(g->r, 40);
    for (int i = 0; i < n; i++) {
        args[n + i] = computed(g, pick(g));
        for (int tries = 0; ordered && tries < 4 && !is_f64(g, args[n + i]); tries++) args[n + i] = computed(g, pick(g));
        ordered = ordered && is_f64(g, args[n + i]);
        states[i] = type_of(g, args[n + i]);
        states[i].space = IR_UNIFORM;
    }
    for (int i = 0; i < n; i++) {
        if (g->r->tame && !ordered) tame[i] = tame_choose(g, states, tame, i);
        args[i] = decides(&tame[i]) ? ir_emit_f(&g->b, states[i], tame_start(tame[i].kind))
                                    : ir_emit_const(&g->b, states[i], diff_value(g->r, states[i].dtype));
    }
    ir_id id = ir_emit(&g->b, IR_COMBINE, ir_scalar(IR_TUPLE), args, (size_t)(2 * n));
    bool scalar = true;
    for (int i = 0; i < n; i++)
        for (uint32_t k = 0; k < states[i].rank; k++) scalar = scalar && states[i].dim[k] == 1;
    if (scalar && !ordered && diff_chance(g->r, 70)) ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_LANES, IR_N_PARTIALS);
    fill_region(g, id, states, tame, n, ordered);
    for (int i = 0; i < n; i++) {
        states[i].space = IR_ROW;
        ir_id get = ir_emit1(&g->b, IR_GET, states[i], id);
        ir_set_int(g->m, ir_at(g->f, get), IR_ATTR_INDEX, i);
        keep(g, decides(&tame[i]) ? without_infinity(g, get) : get);
    }
}

static void add_degree(gen *g) {
    ir_type t = ir_scalar(IR_I64);
    t.space = IR_ROW;
    keep(g, ir_emit(&g->b, IR_DEGREE, t, NULL, 0));
}

static void add_shape(gen *g) {
    ir_id v = pick(g);
    for (int tries = 0; tries < 3 && type_of(g, v).rank == 0; tries++) v = pick(g);
    keep(g, diff_shape_op(g, v));
}

static void grow(gen *g) {
    int64_t k = diff_below(g->r, 100);
    if (k < 54) add_elementwise(g);
    else if (k < 63) add_fold(g);
    else if (k < 77) add_reduce(g);
    else if (k < 83) add_combine(g);
    else if (k < 90) add_shape(g);
    else if (k < 92) add_constant(g);
    else if (k < 94) add_degree(g);
    else if (k < 97) keep(g, to_shape(g, pick(g), &g->base));
    else if (g->f->n_syms) keep(g, ir_emit_dimsize(&g->b, ir_dim_sym((uint32_t)diff_below(g->r, (int64_t)g->f->n_syms))));
}

static void add_results(gen *g) {
    ir_id ret[3];
    int n = 1 + (int)diff_below(g->r, 3);
    bool edge_result = diff_chance(g->r, 15);
    for (int i = 0; i < n; i++) {
        /* newer values first, so that most of the kernel is alive */
        ir_id v = g->values[g->n - 1 - diff_below(g->r, g->n < 5 ? g->n : 5)];
        if (diff_chance(g->r, 60)) v = to_shape(g, v, &g->base);
        if (!edge_result && type_of(g, v).space == IR_EDGE) v = reduce_any(g, v);
        ir_param p = {.name = base_arena_printf(g->m->arena, "r%d", i), .type = type_of(g, v)};
        p.type.space = edge_result ? IR_EDGE : IR_ROW;
        base_push(g->m->arena, g->f->results, g->f->n_results, g->f->cap_results, p);
        ret[i] = v;
    }
    ir_emit(&g->b, IR_RET, (ir_type){.dtype = IR_NONE}, ret, (size_t)n);
}

ir_func *diff_add_kernel(ir_module *m, const char *name, diff_rng *r) {
    gen g = {.m = m, .r = r};
    g.f = ir_func_new(m, name, IR_LEVEL_KERNEL);
    g.f->exported = true;
    g.f->domain = "dst";
    g.f->rows_per_unit = 1;
    g.b = (ir_builder){.m = m, .f = g.f, .r = &g.f->body};
    choose_base(&g);
    if (g.f->n_syms) add_shown(&g); /* every open dimension must be visible in some argument */
    int n_fields = 1 + (int)diff_below(r, 5), n_steps = 3 + (int)diff_below(r, 12);
    for (int i = 0; i < n_fields; i++) add_field(&g, i);
    for (size_t i = 0; i < g.f->n_params; i++) read_field(&g, i);
    add_shown_parts(&g);
    add_constant(&g);
    for (int i = 0; i < n_steps; i++) grow(&g);
    add_results(&g);
    return g.f;
}
