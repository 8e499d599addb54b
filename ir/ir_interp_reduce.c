/* Reductions over the edges of each row, and over all rows, in the exact order of docs/ir.md. */
#include "ir/ir_interp.h"

#include <math.h>

/* An operand of the reduction, seen from the edges. */
typedef struct message {
    const ir_run *r;
    const ir_tensor *t;
} message;

static ir_scalar_value at_edge(const message *msg, int64_t e, int64_t feature) {
    return ir_run_get(msg->r, msg->t, IR_EDGE, e, feature);
}

/* Partial sums in 16 lanes are for shapes that are known to hold one element. */
static bool is_scalar(const ir_type *t) {
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            return false;
    return true;
}

static ir_scalar_value reduce_primitive(const message *msg, ir_kind k, bool lanes, int64_t begin, int64_t end,
                                        int64_t f) {
    ir_dtype t = msg->t->dtype;
    ir_scalar_value p[IR_N_PARTIALS];
    for (int i = 0; i < IR_N_PARTIALS; i++)
        p[i] = ir_kind_identity(k, t);
    for (int64_t e = begin; e < end; e++) {
        ir_scalar_value *into = &p[lanes ? (e - begin) % IR_N_PARTIALS : 0];
        *into = ir_kind_combine(k, t, *into, at_edge(msg, e, f));
    }
    return lanes ? ir_run_tree(k, t, p) : p[0];
}

static int64_t reduce_arg(const message *msg, ir_kind k, bool lanes, int64_t begin, int64_t end, int64_t f) {
    ir_dtype t = msg->t->dtype;
    ir_scalar_value v[IR_N_PARTIALS] = {{0}};
    int64_t edge[IR_N_PARTIALS];
    for (int i = 0; i < IR_N_PARTIALS; i++)
        edge[i] = -1;
    for (int64_t e = begin; e < end; e++) {
        int64_t into = lanes ? (e - begin) % IR_N_PARTIALS : 0;
        ir_scalar_value x = at_edge(msg, e, f);
        if (ir_arg_better(k, t, x, e, v[into], edge[into])) {
            v[into] = x;
            edge[into] = e;
        }
    }
    for (int d = IR_N_PARTIALS / 2; lanes && d > 0; d /= 2)
        for (int i = 0; i < d; i++)
            if (ir_arg_better(k, t, v[i + d], edge[i + d], v[i], edge[i])) {
                v[i] = v[i + d];
                edge[i] = edge[i + d];
            }
    return edge[0] < 0 ? -1 : msg->r->call->graph->sources[edge[0]];
}

static int64_t count_true(const message *msg, int64_t begin, int64_t end, int64_t f) {
    int64_t n = 0;
    for (int64_t e = begin; e < end; e++)
        n += at_edge(msg, e, f).i;
    return n;
}

/* ---- softmax and logsumexp: one pass, rescaled when a larger score comes ---- */
static ir_scalar_value eval1(ir_opcode code, ir_dtype t, ir_scalar_value a) { return ir_eval(code, t, t, &a); }

static ir_scalar_value eval2(ir_opcode code, ir_dtype t, ir_scalar_value a, ir_scalar_value b) {
    return ir_eval(code, t, t, (ir_scalar_value[]){a, b});
}

static bool is(ir_opcode code, ir_dtype t, ir_scalar_value a, ir_scalar_value b) {
    return ir_eval(code, t, IR_BOOL, (ir_scalar_value[]){a, b}).i;
}

static ir_scalar_value number(ir_dtype t, double x) { return ir_eval(IR_CAST, IR_F64, t, &(ir_scalar_value){.d = x}); }

typedef struct running {
    ir_dtype t;
    ir_scalar_value m, s, acc;
} running;

/* The state takes a score v; *p is the weight of this edge, *c what the sums so far are multiplied by. */
static void take_score(running *st, ir_scalar_value v, ir_scalar_value *p, ir_scalar_value *c) {
    ir_dtype t = st->t;
    ir_scalar_value one = number(t, 1);
    bool drop = is(IR_EQ, t, v, number(t, (double)-INFINITY)), up = is(IR_GT, t, v, st->m);
    ir_scalar_value distance = eval1(IR_ABS, t, eval2(IR_SUB, t, st->m, v));
    ir_scalar_value w = is(IR_EQ, t, st->m, v) ? one : eval1(IR_EXP, t, eval1(IR_NEG, t, distance));
    *p = drop ? number(t, 0) : up ? one : w;
    *c = up ? w : one;
    st->s = eval2(IR_ADD, t, eval2(IR_MUL, t, st->s, *c), *p);
    st->m = up ? v : st->m;
}

static running start(ir_dtype t) {
    return (running){.t = t, .m = number(t, (double)-INFINITY), .s = number(t, 0), .acc = number(t, 0)};
}

static ir_scalar_value reduce_logsumexp(const message *msg, int64_t begin, int64_t end, int64_t f) {
    running st = start(msg->t->dtype);
    ir_scalar_value p, c;
    for (int64_t e = begin; e < end; e++)
        take_score(&st, at_edge(msg, e, f), &p, &c);
    return eval2(IR_ADD, st.t, st.m, eval1(IR_LOG, st.t, st.s));
}

static ir_scalar_value reduce_softmax(const message *score, const message *value, int64_t begin, int64_t end,
                                      int64_t f) {
    running st = start(score->t->dtype);
    int64_t inner = value->t->features / score->t->features; /* the score's shape is a prefix of the value's */
    ir_scalar_value p, c;
    for (int64_t e = begin; e < end; e++) {
        take_score(&st, at_edge(score, e, f / inner), &p, &c);
        ir_scalar_value kept = eval2(IR_MUL, st.t, st.acc, c);
        st.acc = eval2(IR_ADD, st.t, kept, eval2(IR_MUL, st.t, p, at_edge(value, e, f)));
    }
    return eval2(IR_DIV, st.t, st.acc, st.s);
}

/* ---- one row, one element ---- */
static ir_scalar_value reduce_mean(const message *msg, bool lanes, int64_t begin, int64_t end, int64_t f) {
    ir_dtype t = msg->t->dtype;
    ir_scalar_value degree = {.i = end - begin};
    return eval2(IR_DIV, t, reduce_primitive(msg, IR_KIND_SUM, lanes, begin, end, f),
                 ir_eval(IR_CAST, IR_I64, t, &degree));
}

/* ---- var and std: count, mean, and sum of squared distances from it ---- */
typedef struct moments {
    ir_scalar_value n, mean, m2;
} moments;

static moments join(ir_dtype t, moments a, moments b) {
    ir_scalar_value n = eval2(IR_ADD, t, a.n, b.n), least = eval2(IR_MAX, t, n, number(t, 1));
    ir_scalar_value d = eval2(IR_SUB, t, b.mean, a.mean);
    ir_scalar_value step = eval2(IR_MUL, t, d, eval2(IR_DIV, t, b.n, least));
    ir_scalar_value between = eval2(IR_DIV, t, eval2(IR_MUL, t, a.n, b.n), least);
    ir_scalar_value more = eval2(IR_MUL, t, eval2(IR_MUL, t, d, d), between);
    return (moments){n, eval2(IR_ADD, t, a.mean, step), eval2(IR_ADD, t, eval2(IR_ADD, t, a.m2, b.m2), more)};
}

static ir_scalar_value reduce_var(const message *msg, ir_kind k, bool lanes, int64_t begin, int64_t end, int64_t f) {
    ir_dtype t = msg->t->dtype;
    ir_scalar_value zero = number(t, 0);
    moments p[IR_N_PARTIALS];
    for (int i = 0; i < IR_N_PARTIALS; i++)
        p[i] = (moments){zero, zero, zero};
    for (int64_t e = begin; e < end; e++) {
        moments *into = &p[lanes ? (e - begin) % IR_N_PARTIALS : 0];
        *into = join(t, *into, (moments){number(t, 1), at_edge(msg, e, f), zero});
    }
    for (int d = IR_N_PARTIALS / 2; lanes && d > 0; d /= 2)
        for (int i = 0; i < d; i++)
            p[i] = join(t, p[i], p[i + d]);
    ir_scalar_value var = eval2(IR_DIV, t, p[0].m2, p[0].n);
    return k == IR_KIND_STD ? eval1(IR_SQRT, t, var) : var;
}

static ir_scalar_value reduce_element(const message *a, const message *b, const ir_op *op, bool lanes,
                                      const int64_t *row, int64_t f) {
    int64_t begin = row[0], end = row[1];
    ir_kind k = ir_kind_of(op);
    switch (k) {
    case IR_KIND_SUM:
    case IR_KIND_PROD:
    case IR_KIND_MIN:
    case IR_KIND_MAX:
    case IR_KIND_AND:
    case IR_KIND_OR:
        return reduce_primitive(a, k, lanes, begin, end, f);
    case IR_KIND_ANY:
        return reduce_primitive(a, IR_KIND_OR, lanes, begin, end, f);
    case IR_KIND_ALL:
        return reduce_primitive(a, IR_KIND_AND, lanes, begin, end, f);
    case IR_KIND_ARGMIN:
    case IR_KIND_ARGMAX:
        return (ir_scalar_value){.i = reduce_arg(a, k, lanes, begin, end, f)};
    case IR_KIND_SOFTMAX:
        return reduce_softmax(a, b, begin, end, f);
    case IR_KIND_LOGSUMEXP:
        return reduce_logsumexp(a, begin, end, f);
    case IR_KIND_VAR:
    case IR_KIND_STD:
        return reduce_var(a, k, lanes, begin, end, f);
    case IR_KIND_MEAN:
        return reduce_mean(a, lanes, begin, end, f);
    case IR_KIND_COUNT:
        return (ir_scalar_value){.i = op->n_args ? count_true(a, begin, end, f) : end - begin};
    case IR_KIND_COUNT_:
        break;
    }
    BASE_BUG("no such kind");
}

bool ir_run_reduce(ir_run *r, const ir_op *op, ir_tensor *out) {
    message a = {r, op->n_args > 0 ? &r->values[op->args[0]] : NULL};
    message b = {r, op->n_args > 1 ? &r->values[op->args[1]] : NULL};
    bool lanes = is_scalar(&op->type);
    for (int64_t u = 0; u < out->units; u++)
        for (int64_t f = 0; f < out->features; f++)
            ir_run_put(out, u, f, reduce_element(&a, &b, op, lanes, &r->call->graph->offsets[u], f));
    return true;
}

/* ---- over all rows ---- */
ir_scalar_value ir_run_total_of(const ir_run *r, ir_kind k, const ir_tensor *t, ir_space space, int64_t rows,
                                int64_t features) {
    ir_scalar_value total = ir_kind_identity(k, t->dtype);
    for (int64_t first = 0; first < rows; first += IR_TOTAL_BLOCK) {
        ir_scalar_value p[IR_N_PARTIALS];
        for (int i = 0; i < IR_N_PARTIALS; i++)
            p[i] = ir_kind_identity(k, t->dtype);
        int64_t end = rows - first > IR_TOTAL_BLOCK ? first + IR_TOTAL_BLOCK : rows, n = 0;
        for (int64_t row = first; row < end; row++)
            for (int64_t f = 0; f < features; f++, n++) {
                /* a tensor of a program is one unit, its rows are its first axis */
                ir_scalar_value v = space == IR_UNIFORM ? ir_run_get(r, t, space, 0, row * features + f)
                                                        : ir_run_get(r, t, space, row, f);
                p[n % IR_N_PARTIALS] = ir_kind_combine(k, t->dtype, p[n % IR_N_PARTIALS], v);
            }
        total = ir_kind_combine(k, t->dtype, total, ir_run_tree(k, t->dtype, p));
    }
    return total;
}

/* One element in all rows: in order within a block, then block by block. */
ir_scalar_value ir_run_column_of(const ir_run *r, ir_kind k, const ir_column *c, int64_t rows) {
    ir_scalar_value total = ir_kind_identity(k, c->t->dtype);
    for (int64_t first = 0; first < rows; first += IR_TOTAL_BLOCK) {
        ir_scalar_value block = ir_kind_identity(k, c->t->dtype);
        int64_t end = rows - first > IR_TOTAL_BLOCK ? first + IR_TOTAL_BLOCK : rows;
        for (int64_t row = first; row < end; row++)
            block = ir_kind_combine(k, c->t->dtype, block, ir_run_get(r, c->t, IR_ROW, row, c->feature));
        total = ir_kind_combine(k, c->t->dtype, total, block);
    }
    return total;
}

bool ir_run_total(ir_run *r, const ir_op *op, ir_tensor *out) {
    const ir_tensor *t = &r->values[op->args[0]];
    for (int64_t f = 0; op->type.rank && f < out->features; f++)
        ir_run_put(out, 0, f, ir_run_column_of(r, ir_kind_of(op), &(ir_column){t, f}, r->n_rows));
    if (op->type.rank)
        return true;
    ir_run_put(out, 0, 0, ir_run_total_of(r, ir_kind_of(op), t, IR_ROW, r->n_rows, t->features));
    return true;
}
