/* Random expressions: code, interpreter, and one operation at a time give the same bits; gradients, whatever has been looked
 * at before, agree with central differences along one direction. */
#include "tensor_support.h"

#include <stdio.h>
#include <stdlib.h>

enum { POOL = 24, INPUTS = 5, MOST = 125 };

typedef struct pool {
    home own;
    tiga_tensor *v[POOL];
    int n;
    uint32_t seed;
    bool eager;
    bool smooth, watched; /* for gradients */
    double shift, direction[INPUTS][MOST];
    uint32_t looks; /* bit i: value i is looked at when it is made */
} pool;

static uint32_t next(pool *p, uint32_t n) {
    p->seed = p->seed * 1664525u + 1013904223u;
    return (p->seed >> 8) % n;
}

/* Of one value: `full`; of each its own: an array. */
static void input_of(pool *p, int32_t dtype, int32_t rank, const int64_t *shape, int64_t n, bool full) {
    home *h = &p->own;
    double data[MOST];
    for (int64_t i = 0; i < n || (full && i < 1); i++) {
        double v = (double)(int)next(p, 64) - 24;
        if (p->smooth)
            v = v / 10 + p->shift * (p->direction[p->n][i] = (double)(int)next(p, 9) - 4);
        if (full && i == 0) {
            OK(tiga_tensor_full(h->ts, dtype, rank, shape, v, &p->v[p->n]));
            for (int64_t k = 1; k < n; k++)
                p->direction[p->n][k] = p->direction[p->n][0];
            return;
        }
        if (dtype == TIGA_F32)
            ((float *)data)[i] = (float)(v / 7);
        else if (dtype == TIGA_F64)
            data[i] = p->smooth ? v : v / 7;
        else if (dtype == TIGA_I32)
            ((int32_t *)data)[i] = (int32_t)v;
        else
            ((int64_t *)data)[i] = (int64_t)v;
    }
    tiga_array a = tiga_array_borrow(data, dtype, rank, shape);
    OK(tiga_tensor_from(h->ts, &a, TIGA_COPY, &p->v[p->n]));
}

static void input(pool *p) {
    home *h = &p->own;
    static const int64_t sizes[] = {1, 2, 3, 5, 3, 2, 1, 2, 3, 5, 3, 2, 0};
    static const int32_t dtypes[] = {TIGA_F32, TIGA_F32, TIGA_F64, TIGA_I32, TIGA_I64, TIGA_F32};
    int64_t shape[3], n = 1;
    int32_t rank = (int32_t)next(p, 4), dtype = dtypes[next(p, 6)];
    for (int i = 0; i < rank; i++)
        n *= shape[i] = sizes[next(p, sizeof sizes / sizeof *sizes)];
    input_of(p, p->smooth ? TIGA_F64 : dtype, rank, shape, n, next(p, 5) == 0);
    if (p->watched) {
        tiga_tensor *x = p->v[p->n];
        OK(tiga_tensor_watch(x, &p->v[p->n]));
        tiga_tensor_free(x);
    }
    p->n++;
}

static tiga_tensor *any(pool *p) { return p->v[next(p, (uint32_t)p->n)]; }
static int axis_of(pool *p, tiga_tensor *x) {
    return tiga_tensor_rank(x) ? (int)next(p, (uint32_t)tiga_tensor_rank(x)) : 0;
}

static tiga_status elementwise(pool *p, tiga_tensor **out) {
    static const char *const unary[] = {"neg", "abs",  "exp",  "tanh",    "sqrt", "sin",
                                        "not", "sign", "relu", "sigmoid", "tan"};
    static const char *const binary[] = {"add", "sub", "mul", "div", "min", "max",
                                         "pow", "lt",  "eq",  "and", "or",  "rem"};
    static const char *const smooth[] = {"neg", "tanh", "sin", "sigmoid", "tanh", "add", "sub", "mul", "mul", "add"};
    tiga_tensor *args[3] = {any(p), any(p), any(p)}, *number = NULL;
    uint32_t what = next(p, 8);
    if (p->smooth) {
        what = next(p, sizeof smooth / sizeof *smooth);
        return tiga_tensor_op(smooth[what], args, what < 5 ? 1 : 2, out);
    }
    if (what == 0)
        return tiga_tensor_op("select", args, 3, out);
    if (what < 3)
        return tiga_tensor_op(unary[next(p, sizeof unary / sizeof *unary)], args, 1, out);
    const char *name = binary[next(p, sizeof binary / sizeof *binary)];
    if (what == 3) {
        static const double values[] = {0, 2, 0.3, -1, 1e3};
        tiga_status s = tiga_tensor_number(p->own.ts, values[next(p, 5)], &number);
        args[next(p, 2)] = number;
        s = s == TIGA_OK ? tiga_tensor_op(name, args, 2, out) : s;
        tiga_tensor_free(number);
        return s;
    }
    return tiga_tensor_op(name, args, 2, out);
}

static tiga_status reduce(pool *p, tiga_tensor **out) {
    static const char *const names[] = {"sum", "prod", "min", "max", "mean", "any", "all", "sum"};
    tiga_tensor *x = any(p), *y = any(p);
    switch (next(p, 5)) {
    case 0:
        return tiga_tensor_matmul(x, y, out);
    case 1:
        return tiga_tensor_softmax(x, axis_of(p, x), out);
    case 2:
        return tiga_tensor_cumsum(x, axis_of(p, x), (int)next(p, 2), out);
    default:
        return tiga_tensor_fold(x, names[p->smooth ? 0 : next(p, 8)], next(p, 1u << tiga_tensor_rank(x)),
                                (int)next(p, 2), out);
    }
}

static tiga_status gather(pool *p, tiga_tensor *x, tiga_tensor *y, int axis, tiga_tensor **out) {
    tiga_tensor *series = NULL;
    if (!p->smooth)
        return tiga_tensor_gather(x, y, axis, out);
    tiga_status s = tiga_tensor_arange(p->own.ts, TIGA_I64, 3, -1, -2, &series);
    s = s == TIGA_OK ? tiga_tensor_gather(x, series, axis, out) : s;
    tiga_tensor_free(series);
    return s;
}

static tiga_status move(pool *p, tiga_tensor **out) {
    tiga_tensor *x = any(p), *y = any(p);
    int64_t shape[8], rank = tiga_tensor_rank(x);
    const int64_t *own = tiga_tensor_shape(x);
    int axis = axis_of(p, x), at = (int)next(p, (uint32_t)rank + 1);
    switch (next(p, 9)) {
    case 8: { /* to nothing, along the axes of one element */
        for (int i = 0; i < rank; i++)
            shape[i] = own[i] == 1 && next(p, 4) == 0 ? 0 : own[i] == 1 ? 4 : own[i];
        return tiga_tensor_broadcast(x, (int32_t)rank, shape, out);
    }
    case 0:
        return tiga_tensor_permute(x, NULL, out);
    case 1:
        return tiga_tensor_reshape(x, 1, (int64_t[]){-1}, out);
    case 2: { /* an axis of 1 somewhere */
        for (int i = 0; i <= rank; i++)
            shape[i] = i == at ? 1 : own[i - (i > at)];
        return tiga_tensor_reshape(x, (int32_t)rank + 1, shape, out);
    }
    case 3: {
        shape[0] = 2;
        for (int i = 0; i < rank; i++)
            shape[i + 1] = own[i] == 1 ? 3 : own[i];
        return tiga_tensor_broadcast(x, (int32_t)rank + 1, shape, out);
    }
    case 4:
        return tiga_tensor_concat((tiga_tensor *[]){x, y, x}, 3, axis, out);
    case 5:
        return tiga_tensor_stack((tiga_tensor *[]){x, x}, 2, at, out);
    case 6:
        return gather(p, x, y, axis, out);
    default:
        if (!rank)
            return tiga_tensor_slice(x, 0, 0, 1, 1, out);
        return next(p, 2) ? tiga_tensor_slice(x, axis, own[axis] - 1, own[axis], -1, out)
                          : tiga_tensor_slice(x, axis, own[axis] > 1, next(p, 8) != 0, 2, out);
    }
}

static void step(pool *p) {
    home *h = &p->own;
    tiga_tensor *x = NULL;
    uint32_t what = next(p, 10);
    tiga_status s = what < 5   ? elementwise(p, &x)
                    : what < 7 ? reduce(p, &x)
                    : what < 9 ? move(p, &x)
                               : tiga_tensor_cast(any(p), p->smooth ? TIGA_F64 : TIGA_F32, &x);
    cr_assert_eq(s == TIGA_OK, x != NULL);
    tiga_error_clear(p->own.ctx);
    if (s != TIGA_OK)
        return;
    if (tiga_tensor_size(x) > 2000 || tiga_tensor_rank(x) > 5) {
        tiga_tensor_free(x);
        return;
    }
    if (p->eager)
        OK(tiga_tensor_realize(&x, 1));
    const tiga_array *a;
    if (p->looks >> p->n & 1)
        OK(tiga_tensor_data(x, &a));
    p->v[p->n++] = x;
}

static void begin(pool *p, uint32_t seed, int64_t interpret) {
    p->own = home_new(interpret, 0);
    p->n = 0;
    p->seed = seed;
    for (int i = 0; i < INPUTS; i++)
        input(p);
    for (int i = 0; i < 60 && p->n < POOL; i++)
        step(p);
}

static void make(pool *p, uint32_t seed, int64_t interpret, bool eager) {
    *p = (pool){.eager = eager};
    begin(p, seed, interpret);
}

static bool same(const tiga_array *a, const tiga_array *b) {
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->shape[i];
    for (int64_t i = 0; i < n; i++) {
        if (a->dtype == TIGA_F32) {
            float x = ((const float *)a->data)[i], y = ((const float *)b->data)[i];
            if (memcmp(&x, &y, 4) && !(isnan(x) && isnan(y)))
                return false;
        } else if (a->dtype == TIGA_F64) {
            double x = ((const double *)a->data)[i], y = ((const double *)b->data)[i];
            if (memcmp(&x, &y, 8) && !(isnan(x) && isnan(y)))
                return false;
        } else if (memcmp((const char *)a->data + i * tiga_dtype_bytes(a->dtype),
                          (const char *)b->data + i * tiga_dtype_bytes(b->dtype), (size_t)tiga_dtype_bytes(a->dtype))) {
            return false;
        }
    }
    return true;
}

static void drop(pool *p) {
    while (p->n)
        tiga_tensor_free(p->v[--p->n]);
    cr_assert_eq(tiga_tensors_get_counters(p->own.ts).live_bytes, 0);
    home_free(&p->own);
}

static void compare(uint32_t seed) {
    pool code, interpreter, eager;
    home *h = &code.own;
    make(&code, seed, 0, false);
    make(&interpreter, seed, 1 << 20, false);
    make(&eager, seed, 1 << 20, true);
    cr_assert(code.n == interpreter.n && code.n == eager.n);
    OK(tiga_tensor_realize(code.v, code.n));
    h = &interpreter.own;
    OK(tiga_tensor_realize(interpreter.v + interpreter.n / 2, interpreter.n - interpreter.n / 2));
    for (int i = 0; i < code.n; i++) {
        const tiga_array *a, *b, *c;
        h = &code.own;
        OK(tiga_tensor_data(code.v[i], &a));
        h = &interpreter.own;
        OK(tiga_tensor_data(interpreter.v[i], &b));
        h = &eager.own;
        OK(tiga_tensor_data(eager.v[i], &c));
        cr_assert(same(a, b), "seed %u: value %d: code and interpreter", seed, i);
        cr_assert(same(b, c), "seed %u: value %d: one operation at a time", seed, i);
    }
    drop(&code);
    drop(&interpreter);
    drop(&eager);
}

/* ---- gradients ---- */
/* The sum of squares of the last values. */
static tiga_tensor *loss_of(pool *p) {
    home *h = &p->own;
    tiga_tensor *loss = NULL;
    for (int i = p->n - 5; i < p->n; i++) {
        tiga_tensor *square = op2(h, "mul", p->v[i], p->v[i]), *s = fold(h, "sum", square, TIGA_ALL_AXES, 0);
        tiga_tensor *next = loss ? op2(h, "add", loss, s) : tiga_tensor_retain(s);
        tiga_tensor_free(square);
        tiga_tensor_free(s);
        tiga_tensor_free(loss);
        loss = next;
    }
    return loss;
}

static double loss_at(uint32_t seed, double shift) {
    pool p = {.smooth = true, .shift = shift};
    home *h = &p.own;
    double v;
    begin(&p, seed, 1 << 20);
    tiga_tensor *loss = loss_of(&p);
    OK(tiga_tensor_copy_to(loss, &v, sizeof v));
    tiga_tensor_free(loss);
    drop(&p);
    return v;
}

static double slope_of(pool *p, tiga_tensor *loss) {
    home *h = &p->own;
    tiga_tensor *g[INPUTS];
    double slope = 0;
    OK(tiga_tensor_grad(loss, p->v, INPUTS, 1, g));
    for (int i = 0; i < INPUTS; i++) {
        const tiga_array *a;
        OK(tiga_tensor_data(g[i], &a));
        cr_assert_eq(tiga_tensor_size(g[i]), tiga_tensor_size(p->v[i]));
        for (int64_t k = 0; k < tiga_tensor_size(g[i]); k++)
            slope += ((const double *)a->data)[k] * p->direction[i][k];
        tiga_tensor_free(g[i]);
    }
    return slope;
}

/* looks: which values are looked at before the gradient is asked for; twice, the second time with the loss among them. */
static void slopes(uint32_t seed, uint32_t looks, double loss_there, double want) {
    pool p = {.smooth = true, .watched = looks != 0, .looks = looks};
    home *h = &p.own;
    begin(&p, seed, 1 << 20);
    tiga_tensor *loss = loss_of(&p);
    double near = 1e-5 * (1 + fabs(want)) + 1e-9 * fabs(loss_there), v;
    for (int round = 0; round < 2; round++) {
        double got = slope_of(&p, loss);
        cr_assert(fabs(got - want) <= near, "seed %u, looks %x, round %d: %.10g, not %.10g", seed, looks, round, got,
                  want);
        if (looks && !round)
            OK(tiga_tensor_copy_to(loss, &v, sizeof v));
    }
    tiga_tensor_free(loss);
    drop(&p);
}

static void compare_slopes(uint32_t seed) {
    double there = loss_at(seed, 0), want = (loss_at(seed, 1e-5) - loss_at(seed, -1e-5)) / 2e-5;
    if (!(fabs(there) < 1e6)) /* too steep for differences */
        return;
    slopes(seed, 0, there, want);
    slopes(seed, 1u << 31, there, want);
    slopes(seed, ~0u, there, want);
    slopes(seed, seed * 2654435761u | 1u << 31, there, want);
}

/* TENSOR_SEEDS=FIRST:COUNT runs others. */
static void some(void (*run)(uint32_t seed), uint32_t first, uint32_t n) {
    const char *given = getenv("TENSOR_SEEDS");
    if (given && sscanf(given, "%u:%u", &first, &n) != 2)
        n = 1;
    for (uint32_t seed = first; seed < first + n; seed++)
        run(seed);
}

Test(tensor_random, first, .timeout = 300) { some(compare, 1, 40); }
Test(tensor_random, second, .timeout = 300) { some(compare, 1000, 40); }
Test(tensor_random, gradients, .timeout = 300) { some(compare_slopes, 1, 20); }
