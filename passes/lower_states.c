/* softmax, logsumexp, var and std as what they are: states that are combined.  The formulas are those of docs/ir.md,
 * operation by operation; lowering knows only `combine`.
 *
 *   softmax, logsumexp   state (m, s, acc): largest score so far, sum of exp(score - m), the same sum times the values
 *   var, std             state (n, mean, m2): edges so far, their mean, sum of squares of the distances from it */
#include "passes/lower.h"

#include <math.h>

typedef struct writer {
    ir_builder b;
    ir_id start[3], lifted[3], a[3], c[3], next[3], got[3]; /* by value of the state; c: the state that joins */
    const char *name[3];
    size_t n;
} writer;

static ir_id op1(writer *w, ir_opcode code, ir_id a) { return ir_emit_elementwise(&w->b, code, &a, 1); }
static ir_id op2(writer *w, ir_opcode code, ir_id a, ir_id b) {
    return ir_emit_elementwise(&w->b, code, (ir_id[]){a, b}, 2);
}
static ir_id choose(writer *w, ir_id c, ir_id a, ir_id b) {
    return ir_emit_elementwise(&w->b, IR_SELECT, (ir_id[]){c, a, b}, 3);
}
static ir_id number(writer *w, ir_dtype t, double v) { return ir_emit_f(&w->b, ir_scalar(t), v); }

static ir_type type_of(const writer *w, ir_id v) { return ir_at(w->b.f, v)->type; }

/* A value of the state of v's shape, which an edge lifts to v. */
static void add_value(writer *w, const char *name, ir_type shape, double start, ir_id lifted) {
    shape.space = IR_UNIFORM;
    w->name[w->n] = name;
    w->start[w->n] = ir_emit_f(&w->b, shape, start);
    w->lifted[w->n++] = lifted;
}

static ir_id constant_like(writer *w, ir_type shape, double v) {
    shape.space = IR_UNIFORM;
    return ir_emit_f(&w->b, shape, v);
}

static ir_id argument(writer *w, size_t i, bool right) {
    ir_type t = type_of(w, w->start[i]);
    t.space = IR_EDGE;
    ir_id id = ir_emit(&w->b, IR_ARG, t, NULL, 0);
    ir_set_int(w->b.m, ir_at(w->b.f, id), IR_ATTR_INDEX, (int64_t)(i + (right ? w->n : 0)));
    if (!right)
        ir_set_word(w->b.m, ir_at(w->b.f, id), IR_ATTR_NAME, w->name[i]);
    return id;
}

/* The combine, its arguments; what follows goes into its region. */
static ir_id begin(writer *w, ir_region **outer) {
    ir_id args[6];
    for (size_t i = 0; i < w->n; i++) {
        args[i] = w->start[i];
        args[w->n + i] = w->lifted[i];
    }
    ir_id id = ir_emit(&w->b, IR_COMBINE, ir_scalar(IR_TUPLE), args, 2 * w->n);
    *outer = w->b.r;
    w->b.r = ir_at(w->b.f, id)->region = ir_region_new(w->b.m);
    for (size_t i = 0; i < w->n; i++)
        w->a[i] = argument(w, i, false);
    for (size_t i = 0; i < w->n; i++)
        w->c[i] = argument(w, i, true);
    return id;
}

static void end(writer *w, ir_id id, ir_region *outer) {
    ir_emit(&w->b, IR_YIELD, (ir_type){.dtype = IR_NONE}, w->next, w->n);
    w->b.r = outer;
    for (size_t i = 0; i < w->n; i++) {
        ir_type t = type_of(w, w->start[i]);
        t.space = IR_ROW;
        w->got[i] = ir_emit1(&w->b, IR_GET, t, id);
        ir_set_int(w->b.m, ir_at(w->b.f, w->got[i]), IR_ATTR_INDEX, (int64_t)i);
    }
}

/* ---- softmax, logsumexp ---- */
static void join_scores(writer *w) {
    ir_dtype t = type_of(w, w->a[0]).dtype;
    ir_id m = w->a[0], v = w->c[0], zero = number(w, t, 0), one = number(w, t, 1);
    ir_id drop = op2(w, IR_EQ, v, number(w, t, (double)-INFINITY)), up = op2(w, IR_GT, v, m);
    ir_id far = op1(w, IR_EXP, op1(w, IR_NEG, op1(w, IR_ABS, op2(w, IR_SUB, m, v))));
    ir_id f = choose(w, op2(w, IR_EQ, m, v), one, far);
    ir_id p = choose(w, drop, zero, choose(w, up, one, f)), c = choose(w, up, f, one);
    w->next[0] = choose(w, up, v, m);
    for (size_t i = 1; i < w->n; i++)
        w->next[i] = op2(w, IR_ADD, op2(w, IR_MUL, w->a[i], c), op2(w, IR_MUL, p, w->c[i]));
}

/* The score with axes of 1 for those that only the value has. */
static ir_id as_wide(writer *w, ir_id score, uint32_t rank) {
    ir_type t = type_of(w, score);
    if (t.rank == 0 || t.rank == rank)
        return score;
    int64_t axes = 0;
    for (; t.rank < rank; t.rank++) {
        axes |= (int64_t)1 << t.rank;
        t.dim[t.rank] = 1;
    }
    ir_id id = ir_emit1(&w->b, IR_NEWAXIS, t, score);
    ir_set_int(w->b.m, ir_at(w->b.f, id), IR_ATTR_AXES, axes);
    return id;
}

static void write_softmax(writer *w, ir_op *op, bool weighed) {
    ir_id value = op->args[op->n_args - 1], score = as_wide(w, op->args[0], type_of(w, value).rank);
    ir_type s = type_of(w, score);
    ir_region *outer;
    add_value(w, "max", s, (double)-INFINITY, score);
    add_value(w, "norm", s, 0, constant_like(w, s, 1));
    if (weighed)
        add_value(w, "acc", op->type, 0, value);
    ir_id id = begin(w, &outer);
    join_scores(w);
    end(w, id, outer);
    op->code = weighed ? IR_DIV : IR_ADD;
    ir_id args[2] = {weighed ? w->got[2] : w->got[0], weighed ? w->got[1] : op1(w, IR_LOG, w->got[1])};
    ir_set_args(w->b.m, op, args, 2);
}

/* ---- var, std ---- */
static void join_moments(writer *w) {
    ir_dtype t = type_of(w, w->a[0]).dtype;
    ir_id n = op2(w, IR_ADD, w->a[0], w->c[0]), least = op2(w, IR_MAX, n, number(w, t, 1));
    ir_id d = op2(w, IR_SUB, w->c[1], w->a[1]);
    ir_id between = op2(w, IR_DIV, op2(w, IR_MUL, w->a[0], w->c[0]), least);
    w->next[0] = n;
    w->next[1] = op2(w, IR_ADD, w->a[1], op2(w, IR_MUL, d, op2(w, IR_DIV, w->c[0], least)));
    w->next[2] = op2(w, IR_ADD, op2(w, IR_ADD, w->a[2], w->c[2]), op2(w, IR_MUL, op2(w, IR_MUL, d, d), between));
}

static void write_var(writer *w, ir_op *op, bool root) {
    ir_type one = ir_scalar(op->type.dtype), t = type_of(w, op->args[0]);
    ir_region *outer;
    add_value(w, "n", one, 0, constant_like(w, one, 1));
    add_value(w, "mean", t, 0, op->args[0]);
    add_value(w, "m2", t, 0, constant_like(w, t, 0));
    ir_id id = begin(w, &outer);
    join_moments(w);
    end(w, id, outer);
    if (lower_is_scalar(&t))
        ir_set_int(w->b.m, ir_at(w->b.f, id), IR_ATTR_LANES, IR_N_PARTIALS);
    ir_id args[2] = {w->got[2], w->got[0]};
    op->code = root ? IR_SQRT : IR_DIV;
    if (root)
        args[0] = op2(w, IR_DIV, args[0], args[1]);
    ir_set_args(w->b.m, op, args, root ? 1 : 2);
}

/* ---- a kernel ---- */
static bool write_state(writer *w, ir_op *op) {
    switch ((int)ir_kind_of(op)) {
    case IR_KIND_SOFTMAX:
        write_softmax(w, op, true);
        return true;
    case IR_KIND_LOGSUMEXP:
        write_softmax(w, op, false);
        return true;
    case IR_KIND_VAR:
    case IR_KIND_STD:
        write_var(w, op, ir_kind_of(op) == IR_KIND_STD);
        return true;
    }
    return false;
}

/* The operation keeps its id and becomes the last step; what leads to it is put in front. */
void lower_states(ir_module *m, ir_func *k) {
    for (size_t i = 0; i < k->body.n; i++) {
        ir_op *op = ir_at(k, k->body.ops[i]);
        ir_region lead = {0};
        writer w = {.b = {.m = m, .f = k, .r = &lead, .span = op->span}};
        if (op->code != IR_REDUCE || !write_state(&w, op))
            continue;
        ir_drop_attr(op, IR_ATTR_KIND);
        for (size_t j = 0; j < lead.n; j++)
            ir_insert(m, &k->body, i++, lead.ops[j]);
    }
}
