/* A random program on one graph: tensor arithmetic, folds, calls of the module's kernels, repeat. */
#include "diff.h"

#include <string.h>

#define MAX_VALUES 48

typedef struct gen {
    ir_module *m;
    ir_func *f;
    ir_builder b;
    diff_rng *r;
    ir_id values[MAX_VALUES];
    int n;
} gen;

static ir_type type_of(const gen *g, ir_id id) { return ir_at(g->f, id)->type; }

static ir_id keep(gen *g, ir_id id) {
    if (g->n < MAX_VALUES) g->values[g->n++] = id;
    return id;
}

static ir_id new_param(gen *g, ir_type t) {
    ir_param p = {.name = base_arena_printf(g->m->arena, "p%zu", g->f->n_params), .role = IR_PARAM_FIELD, .type = t};
    base_push(g->m->arena, g->f->params, g->f->n_params, g->f->cap_params, p);
    ir_id id = ir_emit(&g->b, IR_PARAM, t, NULL, 0);
    ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_FIELD, (int64_t)g->f->n_params - 1);
    return keep(g, id);
}

static ir_dim sym(gen *g, const char *name) { return ir_dim_sym(ir_sym(g->m, g->f, name)); }

static ir_type tensor(gen *g, ir_dtype t, int which) {
    ir_type type = ir_scalar(t);
    if (which == 0) return type;
    type.dim[type.rank++] = sym(g, which == 3 ? "g.edge" : "g.dst");
    if (which == 2) type.dim[type.rank++] = sym(g, "F");
    return type;
}

static ir_dtype random_dtype(diff_rng *r) {
    int64_t k = diff_below(r, 100);
    if (r->tame) return IR_F64;
    static const ir_dtype small[] = {IR_F16, IR_BF16, IR_I8, IR_U8, IR_C64, IR_C64, IR_C128};
    if (k < 28) return small[k / 4];
    return k < 57 ? IR_F32 : k < 69 ? IR_F64 : k < 78 ? IR_I32 : k < 90 ? IR_I64 : IR_BOOL;
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

static bool broadcasts_with(gen *g, ir_id a, ir_id b) {
    ir_type x = type_of(g, a), y = type_of(g, b), out = x;
    return ir_broadcast(&x, &y, &out);
}

/* A value of dtype t that broadcasts with all of like[0..n). */
static ir_id pick_like(gen *g, ir_dtype t, const ir_id *like, int n) {
    for (int tries = 0; tries < 8; tries++) {
        ir_id id = pick(g);
        bool fits = true;
        for (int i = 0; i < n; i++) fits = fits && broadcasts_with(g, id, like[i]);
        /* three operands must also fit together, which pairs do not promise for rank 1 against [g.dst, F] */
        if (fits) return cast_to(g, id, t);
    }
    return ir_emit_const(&g->b, ir_scalar(t), diff_value(g->r, t));
}

static void add_elementwise(gen *g) {
    ir_id args[3] = {pick(g)};
    ir_dtype t = type_of(g, args[0]).dtype;
    if (g->r->tame && t == IR_F64) {
        keep(g, diff_smooth_op(&g->b, g->r, args[0], pick_like(g, t, args, 1)));
        return;
    }
    ir_opcode code;
    for (;;) {
        code = (ir_opcode)(1 + diff_below(g->r, IR_OP_COUNT - 1));
        const ir_op_desc *d = ir_op_describe(code);
        if (!(d->levels & IR_LEVEL_P) || !ir_class_is_elementwise(d->cls)) continue;
        if (code == IR_CAST || code == IR_SELECT || ir_eval_defined(code, t)) break;
    }
    if (code == IR_CAST) {
        keep(g, cast_to(g, args[0], random_dtype(g->r)));
        return;
    }
    int n = ir_op_describe(code)->min_args;
    if (code == IR_SELECT) args[0] = cast_to(g, args[0], IR_BOOL);
    for (int i = 1; i < n; i++) args[i] = pick_like(g, t, args, i);
    keep(g, ir_emit_elementwise(&g->b, code, args, (size_t)n));
}

static const char *fold_kind(diff_rng *r, ir_dtype t) {
    static const char *const numeric[] = {"sum", "sum", "prod", "min", "max"};
    if (ir_dtype_is_complex(t)) return diff_chance(r, 60) ? "sum" : "prod";
    if (r->tame && t == IR_F64) return diff_chance(r, 80) ? "sum" : "prod";
    return t == IR_BOOL ? (diff_chance(r, 50) ? "and" : "or") : numeric[diff_below(r, 5)];
}

static ir_id computed(gen *g, ir_id id) {
    return ir_dtype_is_half(type_of(g, id).dtype) ? cast_to(g, id, IR_F32) : id;
}

static void add_fold(gen *g) {
    ir_id id = computed(g, pick(g));
    ir_type from = type_of(g, id), to = from;
    if (from.rank == 0) return;
    unsigned all = (1u << from.rank) - 1;
    unsigned axes = from.rank == 2 && diff_chance(g->r, 30) ? 2 : all; /* the feature axis only, or everything */
    to.rank = 0;
    for (uint32_t i = 0; i < from.rank; i++)
        if (!(axes >> i & 1)) to.dim[to.rank++] = from.dim[i];
    ir_id out = ir_emit1(&g->b, IR_FOLD, to, id);
    ir_set_word(g->m, ir_at(g->f, out), IR_ATTR_KIND, fold_kind(g->r, from.dtype));
    ir_set_int(g->m, ir_at(g->f, out), IR_ATTR_AXES, axes);
    keep(g, out);
}

/* Rows by a matrix, a parameter, which lies either way. */
static void add_matmul(gen *g) {
    ir_id x = computed(g, pick(g));
    ir_type t = type_of(g, x), matrix = {.dtype = t.dtype, .rank = 2};
    static const ir_dim columns[] = {1, 5, 16, 40};
    if (t.rank != 2 || !ir_eval_defined(IR_ADD, t.dtype) || g->f->n_params > DIFF_MAX_ARRAYS - 5) return;
    bool turned = diff_chance(g->r, 40);
    int64_t k = diff_below(g->r, 6);
    ir_dim f = k < 4 ? columns[k] : sym(g, "F");
    matrix.dim[turned] = t.dim[1];
    matrix.dim[!turned] = f;
    t.dim[1] = f;
    ir_id id = ir_emit2(&g->b, IR_MATMUL, t, x, new_param(g, matrix));
    if (turned) ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_TURNED, 1);
    keep(g, id);
}

/* ---- calls ---- */
static ir_type in_program(gen *g, const ir_func *callee, const ir_type *t, const char *lead) {
    ir_type out = ir_scalar(t->dtype);
    if (lead) out.dim[out.rank++] = sym(g, lead);
    for (uint32_t i = 0; i < t->rank; i++)
        out.dim[out.rank++] = ir_dim_is_sym(t->dim[i]) ? sym(g, callee->syms[ir_dim_sym_index(t->dim[i])]) : t->dim[i];
    return out;
}

static const char *lead_of(ir_role role) {
    return role == IR_SRC ? "g.src" : role == IR_EDGE_FIELD ? "g.edge" : role == IR_PARAM_FIELD ? NULL : "g.dst";
}

static ir_id argument(gen *g, ir_type t) {
    for (int tries = 0; tries < 8; tries++) {
        ir_id id = pick(g);
        ir_type have = type_of(g, id);
        if (ir_type_equal(&have, &t)) return id;
    }
    return new_param(g, t);
}

static void add_call(gen *g, const ir_func *callee) {
    ir_id args[16];
    if (callee->n_params > 12 || g->f->n_params + callee->n_params > DIFF_MAX_ARRAYS - 4) return;
    for (size_t i = 0; i < callee->n_params; i++)
        args[i] = argument(g, in_program(g, callee, &callee->params[i].type, lead_of(callee->params[i].role)));
    ir_type results[4];
    for (size_t i = 0; i < callee->n_results; i++) {
        const ir_type *t = &callee->results[i].type;
        results[i] = in_program(g, callee, t, t->space == IR_EDGE ? "g.edge" : "g.dst");
    }
    bool many = callee->n_results > 1;
    ir_id call = ir_emit(&g->b, IR_CALL, many ? (ir_type){.dtype = IR_TUPLE} : results[0], args, callee->n_params);
    ir_set_word(g->m, ir_at(g->f, call), IR_ATTR_CALLEE, callee->name);
    ir_set_int(g->m, ir_at(g->f, call), IR_ATTR_GRAPH, 0);
    base_str why = {0};
    if (!ir_name_dims(g->m, g->f, ir_at(g->f, call), callee, NULL, NULL, &why)) BASE_BUG("%s", base_str_text(&why));
    if (callee->needs_square) g->f->needs_square = true;
    for (size_t i = 0; many && i < callee->n_results; i++) {
        ir_id get = ir_emit1(&g->b, IR_GET, results[i], call);
        ir_set_int(g->m, ir_at(g->f, get), IR_ATTR_INDEX, (int64_t)i);
        keep(g, get);
    }
    if (!many) keep(g, call);
}

static void random_call(gen *g) {
    for (int tries = 0; tries < 8; tries++) {
        const ir_func *f = g->m->funcs[diff_below(g->r, (int64_t)g->m->n_funcs)];
        if (f->level == IR_LEVEL_KERNEL && (!g->r->tame || !strncmp(f->name, "smooth", 6))) {
            add_call(g, f);
            return;
        }
    }
}

/* A new value of exactly the type of id, made with it. */
static ir_id same_type_step(gen *g, ir_id id) {
    static const ir_opcode numeric[] = {IR_ADD, IR_SUB, IR_MIN, IR_MAX, IR_MUL};
    static const ir_opcode logic[] = {IR_AND, IR_OR, IR_EQ}, complex[] = {IR_ADD, IR_SUB, IR_MUL, IR_MUL, IR_DIV};
    ir_type t = type_of(g, id);
    ir_opcode code = t.dtype == IR_BOOL ? logic[diff_below(g->r, 3)]
                      : ir_dtype_is_complex(t.dtype) ? complex[diff_below(g->r, 5)]
                      : numeric[diff_below(g->r, g->r->tame ? 2 : 5)];
    if (ir_dtype_is_half(t.dtype)) { /* computed in f32, carried in 16 bits */
        ir_id wide = cast_to(g, id, IR_F32), half = ir_emit_const(&g->b, ir_scalar(IR_F32), (ir_scalar_value){.f = 0.75f});
        return cast_to(g, ir_emit_elementwise(&g->b, IR_MUL, (ir_id[]){wide, half}, 2), t.dtype);
    }
    ir_id other = 0;
    for (int tries = 0; tries < 6 && !other; tries++) {
        ir_id v = pick(g);
        ir_type have = type_of(g, v), out = t;
        if (have.dtype == t.dtype && ir_broadcast(&t, &have, &out) && out.rank == t.rank &&
            !memcmp(out.dim, t.dim, sizeof(ir_dim) * t.rank))
            other = v;
    }
    if (!other) other = ir_emit_const(&g->b, ir_scalar(t.dtype), diff_value(g->r, t.dtype));
    return ir_emit_elementwise(&g->b, code, (ir_id[]){id, other}, 2);
}

/* Less often true than false or the other way round, as the values fall. */
static ir_id condition(gen *g) {
    for (int tries = 0; tries < 6; tries++) {
        ir_id v = pick(g);
        ir_type t = type_of(g, v);
        if (t.rank || !ir_eval_defined(IR_LT, t.dtype)) continue;
        ir_id c = ir_emit_const(&g->b, t, diff_value(g->r, t.dtype));
        return ir_emit_elementwise(&g->b, diff_chance(g->r, 50) ? IR_LT : IR_GE, (ir_id[]){v, c}, 2);
    }
    return ir_emit_const(&g->b, ir_scalar(IR_BOOL), (ir_scalar_value){.i = diff_chance(g->r, 50)});
}

static void some_steps(gen *g, int most) {
    int n_steps = (int)diff_below(g->r, most);
    for (int i = 0; i < n_steps; i++) {
        int64_t k = diff_below(g->r, 100);
        if (k < 25) add_fold(g);
        else if (k < 45) random_call(g);
        else if (k < 50) add_matmul(g);
        else add_elementwise(g);
    }
}

/* ---- if ---- */
static void add_arm(gen *g, const ir_id *like, int n) {
    int n_outside = g->n;
    ir_region *outer = g->b.r;
    ir_id out[2], arm = ir_emit(&g->b, IR_ARM, (ir_type){.dtype = IR_NONE}, NULL, 0);
    g->b.r = ir_at(g->f, arm)->region = ir_region_new(g->m);
    some_steps(g, 4);
    for (int i = 0; i < n; i++) out[i] = diff_chance(g->r, 25) ? like[i] : same_type_step(g, like[i]);
    ir_emit(&g->b, IR_YIELD, (ir_type){.dtype = IR_NONE}, out, (size_t)n);
    g->b.r = outer;
    g->n = n_outside;
}

static void add_if(gen *g) {
    int n = 1 + (int)diff_below(g->r, 2);
    ir_id like[2] = {0}, choice = ir_emit1(&g->b, IR_IF, (ir_type){.dtype = IR_TUPLE}, condition(g));
    for (int i = 0; i < n; i++) like[i] = pick(g);
    ir_region *outer = g->b.r;
    g->b.r = ir_at(g->f, choice)->region = ir_region_new(g->m);
    add_arm(g, like, n);
    add_arm(g, like, n);
    g->b.r = outer;
    for (int i = 0; i < n; i++) {
        ir_id get = ir_emit1(&g->b, IR_GET, type_of(g, like[i]), choice);
        ir_set_int(g->m, ir_at(g->f, get), IR_ATTR_INDEX, i);
        keep(g, get);
    }
}

/* ---- repeat ---- */
static ir_id region_arg(gen *g, ir_type t, int64_t index) {
    ir_id id = ir_emit(&g->b, IR_ARG, t, NULL, 0);
    ir_set_int(g->m, ir_at(g->f, id), IR_ATTR_INDEX, index);
    return id;
}

static void add_repeat(gen *g) {
    int n = 1 + (int)diff_below(g->r, 2), n_outside = g->n;
    ir_id args[3] = {ir_emit_i64(&g->b, diff_below(g->r, 5))}, inner[2], yields[2];
    for (int i = 0; i < n; i++) args[i + 1] = pick(g);
    ir_id rep = ir_emit(&g->b, IR_REPEAT, (ir_type){.dtype = IR_TUPLE}, args, (size_t)n + 1);
    ir_region *outer = g->b.r;
    g->b.r = ir_at(g->f, rep)->region = ir_region_new(g->m);
    for (int i = 0; i < n; i++) inner[i] = keep(g, region_arg(g, type_of(g, args[i + 1]), i));
    some_steps(g, 3);
    if (diff_chance(g->r, 30)) ir_emit1(&g->b, IR_WHILE, (ir_type){.dtype = IR_NONE}, condition(g));
    if (diff_chance(g->r, 30)) add_if(g);
    some_steps(g, 2);
    for (int i = 0; i < n; i++) yields[i] = same_type_step(g, inner[i]);
    if (n == 2 && diff_chance(g->r, 30)) { /* change places when the types allow it */
        ir_type a = type_of(g, yields[0]), b = type_of(g, yields[1]);
        if (ir_type_equal(&a, &b)) {
            ir_id t = yields[0];
            yields[0] = yields[1];
            yields[1] = t;
        }
    }
    ir_emit(&g->b, IR_YIELD, (ir_type){.dtype = IR_NONE}, yields, (size_t)n);
    g->b.r = outer;
    g->n = n_outside;
    for (int i = 0; i < n; i++) {
        ir_id get = ir_emit1(&g->b, IR_GET, type_of(g, args[i + 1]), rep);
        ir_set_int(g->m, ir_at(g->f, get), IR_ATTR_INDEX, i);
        keep(g, get);
    }
}

static void grow(gen *g) {
    int64_t k = diff_below(g->r, 100);
    if (k < 48) add_elementwise(g);
    else if (k < 55) add_matmul(g);
    else if (k < 70) add_fold(g);
    else if (k < 85) random_call(g);
    else if (k < 92) add_repeat(g);
    else if (k < 97) add_if(g);
    else keep(g, ir_emit_dimsize(&g->b, sym(g, "g.edge")));
}

static void add_results(gen *g) {
    ir_id ret[3];
    int n = 1 + (int)diff_below(g->r, 3);
    for (int i = 0; i < n; i++) {
        ret[i] = g->values[g->n - 1 - diff_below(g->r, g->n < 6 ? g->n : 6)];
        ir_param p = {.name = base_arena_printf(g->m->arena, "r%d", i), .type = type_of(g, ret[i])};
        base_push(g->m->arena, g->f->results, g->f->n_results, g->f->cap_results, p);
    }
    ir_emit(&g->b, IR_RET, (ir_type){.dtype = IR_NONE}, ret, (size_t)n);
}

ir_func *diff_add_program(ir_module *m, const char *name, diff_rng *r) {
    gen g = {.m = m, .r = r};
    g.f = ir_func_new(m, name, IR_LEVEL_PROGRAM);
    g.f->exported = true;
    g.b = (ir_builder){.m = m, .f = g.f, .r = &g.f->body};
    sym(&g, "g.dst"), sym(&g, "g.src"), sym(&g, "g.edge");
    ir_param graph = {.name = "g", .role = IR_GRAPH_FIELD, .type = {.dtype = IR_GRAPH}};
    base_push(m->arena, g.f->params, g.f->n_params, g.f->cap_params, graph);
    int n_params = 2 + (int)diff_below(r, 3), n_steps = 3 + (int)diff_below(r, 8);
    for (int i = 0; i < n_params; i++) new_param(&g, tensor(&g, random_dtype(r), (int)diff_below(r, 4)));
    for (int i = 0; i < n_steps; i++) grow(&g);
    add_results(&g);
    return g.f;
}
