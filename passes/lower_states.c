/* softmax, logsumexp, var and std as what they are: states that are combined.  The formulas are those of docs/ir.md,
 * operation by operation; lowering knows only `combine`.
 *
 *   softmax, logsumexp   state (m, s, acc): largest score so far, sum of exp(score - m), the same sum times the values
 *   var, std             state (n, mean, m2): edges so far, their mean, sum of squares of the distances from it
 *
 *   max or min, and how often it occurs
 *                        state (m, n), when a kernel asks for both: the count begins anew with each better value, so the
 *                        edges are walked once.  This is what the gradient of a maximum asks for.
 *
 * The first two values of a softmax are those of a logsumexp of the same scores, which is what its gradient asks for: one
 * state serves both when it is two numbers (arrays would be read by other lanes than those that wrote them) and the
 * softmax need not be walked in tiles. */
#include "passes/lower.h"

#include <math.h>

typedef struct scores { /* of a softmax that was written */
    ir_id score, softmax, max, norm;
} scores;

typedef struct states {
    ir_module *m;
    ir_func *k;
    base_arena *scratch;
    scores *seen;
    size_t n_seen, cap_seen;
} states;

typedef struct writer {
    ir_builder b;
    states *s;
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
/* A logsumexp needs none of the care for scores of -inf: whatever s is then, m + log(s) is -inf, and s * 0 goes with the first
 * score that is more.  Where c is 1 and p is not, nothing is multiplied. */
static void join_scores(writer *w) {
    ir_dtype t = type_of(w, w->a[0]).dtype;
    ir_id m = w->a[0], v = w->c[0], zero = number(w, t, 0), one = number(w, t, 1), up = op2(w, IR_GT, v, m);
    ir_id far = op1(w, IR_EXP, op1(w, IR_NEG, op1(w, IR_ABS, op2(w, IR_SUB, m, v))));
    ir_id f = choose(w, op2(w, IR_EQ, m, v), one, far);
    w->next[0] = choose(w, up, v, m);
    if (w->n == 2) {
        ir_id s = w->a[1];
        w->next[1] = choose(w, up, op2(w, IR_ADD, op2(w, IR_MUL, s, f), one), op2(w, IR_ADD, s, f));
        return;
    }
    ir_id drop = op2(w, IR_EQ, v, number(w, t, (double)-INFINITY));
    ir_id p = choose(w, drop, zero, choose(w, up, one, f)), c = choose(w, up, f, one);
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

/* ---- one state for a softmax and a logsumexp ---- */
static bool is_narrow(const ir_type *t) {
    int64_t bytes = (int64_t)ir_dtype_bytes(t->dtype);
    for (uint32_t i = 0; i < t->rank && bytes <= LOWER_WHOLE_BYTES; i++)
        bytes = t->dim[i] < 0 || t->dim[i] > LOWER_WHOLE_BYTES ? LOWER_WHOLE_BYTES + 1 : bytes * t->dim[i];
    return bytes <= LOWER_WHOLE_BYTES;
}

/* Does something look at other elements of v than its own? */
static bool is_folded(const states *s, ir_id v) {
    bool *from = base_arena_new_array(s->scratch, bool, s->k->n_ops);
    from[v] = true;
    for (size_t i = 0; i < s->k->body.n; i++) {
        ir_id id = s->k->body.ops[i];
        const ir_op *op = ir_at(s->k, id);
        for (uint32_t a = 0; a < op->n_args; a++)
            from[id] = from[id] || from[op->args[a]];
        if (from[id] && id != v && (op->code == IR_FOLD || op->code == IR_TOTAL || ir_is_shape_op(op->code)))
            return true;
    }
    return false;
}

static const scores *shared_scores(const states *s, ir_id score) {
    for (size_t i = 0; i < s->n_seen; i++) {
        const scores *c = &s->seen[i];
        if (c->score == score && (is_narrow(&ir_at(s->k, c->softmax)->type) || is_folded(s, c->softmax)))
            return c;
    }
    return NULL;
}

static bool read_softmax(writer *w, ir_op *op) {
    const scores *c = op->type.rank ? NULL : shared_scores(w->s, op->args[0]);
    if (!c)
        return false;
    ir_id args[2] = {c->max, op1(w, IR_LOG, c->norm)};
    op->code = IR_ADD;
    ir_set_args(w->b.m, op, args, 2);
    return true;
}

static void keep_scores(writer *w, ir_id score, ir_id softmax) {
    scores c = {.score = score, .softmax = softmax, .max = w->got[0], .norm = w->got[1]};
    base_push(w->s->scratch, w->s->seen, w->s->n_seen, w->s->cap_seen, c);
}

static void write_softmax(writer *w, ir_id at, bool weighed) {
    ir_op *op = ir_at(w->b.f, at);
    if (!weighed && read_softmax(w, op))
        return;
    ir_id own = op->args[0];
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
    if (weighed)
        keep_scores(w, own, at);
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

/* ---- max, min and the count of ties ---- */
static bool is_number(const states *s, ir_id v, double x) {
    const ir_op *op = ir_at(s->k, v);
    while (op->code == IR_BROADCAST)
        op = ir_at(s->k, op->args[0]);
    if (op->code != IR_CONST)
        return false;
    ir_scalar_value n = ir_find_attr(op, IR_ATTR_VALUE)->v;
    return op->type.dtype == IR_F32 ? (double)n.f == x : op->type.dtype == IR_F64 && n.d == x;
}

/* sum(v == best ? 1 : 0) with best a reduction of v itself. */
static bool counts_ties(const states *s, const ir_op *op, ir_id best) {
    ir_id v = ir_at(s->k, best)->args[0];
    if (op->code != IR_REDUCE || ir_kind_of(op) != IR_KIND_SUM || !ir_type_equal(&op->type, &ir_at(s->k, best)->type))
        return false;
    const ir_op *one = ir_at(s->k, op->args[0]);
    if (one->code != IR_SELECT || !is_number(s, one->args[1], 1) || !is_number(s, one->args[2], 0))
        return false;
    const ir_op *tied = ir_at(s->k, one->args[0]);
    return tied->code == IR_EQ &&
           ((tied->args[0] == v && tied->args[1] == best) || (tied->args[0] == best && tied->args[1] == v));
}

static ir_id find_ties(const states *s, ir_id best) {
    const ir_op *op = ir_at(s->k, best), *v = ir_at(s->k, op->args[0]);
    if (!ir_dtype_is_float(op->type.dtype) || v->type.space != IR_EDGE || !ir_shape_equal(&v->type, &op->type))
        return 0;
    for (size_t i = 0; i < s->k->body.n; i++)
        if (counts_ties(s, ir_at(s->k, s->k->body.ops[i]), best))
            return s->k->body.ops[i];
    return 0;
}

static void join_ties(writer *w, ir_opcode better) {
    ir_id zero = number(w, type_of(w, w->a[1]).dtype, 0), m = op2(w, better, w->a[0], w->c[0]);
    w->next[0] = m;
    w->next[1] = op2(w, IR_ADD, choose(w, op2(w, IR_EQ, w->a[0], m), w->a[1], zero),
                     choose(w, op2(w, IR_EQ, w->c[0], m), w->c[1], zero));
}

static void become_member(writer *w, ir_id v, ir_id combine, int64_t index) {
    ir_op *op = ir_at(w->b.f, v);
    op->code = IR_GET;
    ir_drop_attr(op, IR_ATTR_KIND);
    ir_set_args(w->b.m, op, &combine, 1);
    ir_set_int(w->b.m, op, IR_ATTR_INDEX, index);
}

static bool write_ties(writer *w, ir_id at) {
    ir_op *op = ir_at(w->b.f, at);
    ir_id ties = find_ties(w->s, at), v = op->args[0];
    bool max = ir_kind_of(op) == IR_KIND_MAX;
    ir_region *outer;
    if (!ties)
        return false;
    add_value(w, max ? "max" : "min", op->type, max ? (double)-INFINITY : (double)INFINITY, v);
    add_value(w, "ties", op->type, 0, constant_like(w, op->type, 1));
    ir_id id = begin(w, &outer);
    join_ties(w, max ? IR_MAX : IR_MIN);
    end(w, id, outer);
    if (lower_is_scalar(&op->type))
        ir_set_int(w->b.m, ir_at(w->b.f, id), IR_ATTR_LANES, IR_N_PARTIALS);
    become_member(w, at, id, 0);
    become_member(w, ties, id, 1);
    return true;
}

/* ---- a kernel ---- */
static bool write_state(writer *w, ir_id at) {
    ir_op *op = ir_at(w->b.f, at);
    switch ((int)ir_kind_of(op)) {
    case IR_KIND_SOFTMAX:
        write_softmax(w, at, true);
        return true;
    case IR_KIND_LOGSUMEXP:
        write_softmax(w, at, false);
        return true;
    case IR_KIND_MIN:
    case IR_KIND_MAX:
        return write_ties(w, at);
    case IR_KIND_VAR:
    case IR_KIND_STD:
        write_var(w, op, ir_kind_of(op) == IR_KIND_STD);
        return true;
    }
    return false;
}

/* The operation keeps its id and becomes the last step; what leads to it is put in front. */
void lower_states(ir_module *m, ir_func *k, base_arena *scratch) {
    states s = {.m = m, .k = k, .scratch = scratch};
    for (size_t i = 0; i < k->body.n; i++) {
        ir_op *op = ir_at(k, k->body.ops[i]);
        ir_region lead = {0};
        writer w = {.b = {.m = m, .f = k, .r = &lead, .span = op->span}, .s = &s};
        if (op->code != IR_REDUCE || !write_state(&w, k->body.ops[i]))
            continue;
        ir_drop_attr(op, IR_ATTR_KIND);
        for (size_t j = 0; j < lead.n; j++)
            ir_insert(m, &k->body, i++, lead.ops[j]);
    }
}
