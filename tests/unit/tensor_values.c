/* What tensors compute, against plain loops: element by element, folds, matmul, movement, types. */
#include "tensor_support.h"

#include <stdlib.h>

static home *const h = &(home){0};
static void compiled(void) { *h = home_new(0, 0); }
static void interpreted(void) { *h = home_new(1 << 20, 0); }
static void done(void) {
    tiga_tensors_counters n = tiga_tensors_get_counters(h->ts);
    cr_assert_eq(n.live_bytes, 0, "%lld bytes are left", (long long)n.live_bytes);
    home_free(h);
}
TestSuite(tensor_values, .init = compiled, .fini = done, .timeout = 120);

static void expect(tiga_tensor *x, const float *want, int64_t n, const char *what) {
    const float *got = f32_of(h, x);
    cr_assert_eq(tiga_tensor_size(x), n, "%s", what);
    for (int64_t i = 0; i < n; i++)
        cr_assert(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i])) || (isnan(got[i]) && isnan(want[i])),
                  "%s: element %lld is %g, not %g", what, (long long)i, (double)got[i], (double)want[i]);
}

Test(tensor_values, square) {
    tiga_tensor *x = filled(h, SHAPE(8), 1), *y = op2(h, "mul", x, x);
    cr_assert_eq(how_of(y), TIGA_TENSOR_PENDING);
    float want[8];
    for (int i = 0; i < 8; i++)
        want[i] = f32_of(h, x)[i] * f32_of(h, x)[i];
    expect(y, want, 8, "x * x");
    cr_assert_eq(how_of(y), TIGA_TENSOR_COMPILED);
    FREE(x, y);
}

/* Every pair of shapes of up to three axes of 1, 2 or 3 elements. */
static void broadcast_pair(const int64_t *sa, int ra, const int64_t *sb, int rb) {
    tiga_tensor *a = filled(h, ra, sa, 1), *b = filled(h, rb, sb, 2), *y;
    int rank = ra > rb ? ra : rb;
    int64_t shape[3], n = 1;
    bool fits = true;
    for (int i = 0; i < rank; i++) {
        int64_t da = i < rank - ra ? 1 : sa[i - rank + ra], db = i < rank - rb ? 1 : sb[i - rank + rb];
        fits &= da == db || da == 1 || db == 1;
        shape[i] = da == 1 ? db : da;
        n *= shape[i];
    }
    tiga_tensor *args[] = {a, b};
    if (!fits) {
        FAILS(tiga_tensor_op("sub", args, 2, &y), TIGA_E_TYPE, "broadcast");
        FREE(a, b);
        return;
    }
    OK(tiga_tensor_op("sub", args, 2, &y));
    float want[64];
    for (int64_t at = 0; at < n; at++) {
        int64_t ia = 0, ib = 0, rest = at, stride_a = 1, stride_b = 1;
        for (int i = rank; i-- > 0; rest /= shape[i]) {
            int64_t k = rest % shape[i], da = i < rank - ra ? 1 : sa[i - rank + ra];
            int64_t db = i < rank - rb ? 1 : sb[i - rank + rb];
            ia += da == 1 ? 0 : k * stride_a;
            ib += db == 1 ? 0 : k * stride_b;
            stride_a *= da;
            stride_b *= db;
        }
        want[at] = f32_of(h, a)[ia] - f32_of(h, b)[ib];
    }
    expect(y, want, n, "broadcast");
    FREE(a, b, y);
}

static void all_pairs(void) {
    int64_t shapes[40][3];
    int rank[40], n = 0;
    for (int r = 0; r <= 3; r++)
        for (int code = 0; code < (r == 0 ? 1 : r == 1 ? 3 : r == 2 ? 9 : 27); code++, n++) {
            rank[n] = r;
            for (int i = 0, c = code; i < r; i++, c /= 3)
                shapes[n][i] = 1 + c % 3;
        }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            broadcast_pair(shapes[i], rank[i], shapes[k], rank[k]);
}

Test(tensor_values, broadcast_interpreted, .init = interpreted) { all_pairs(); }
Test(tensor_values, broadcast_compiled, .timeout = 300) {
    all_pairs();
    cr_assert_leq(tiga_tensors_get_counters(h->ts).programs, 225);
}

/* sum, max and mean of a [2, 3, 4], [1, 3, 1], [3, 1, 2] over every set of axes, with and without them kept. */
static void fold_case(int32_t rank, const int64_t *shape, uint32_t axes, int keep) {
    tiga_tensor *x = filled(h, rank, shape, 3), *s = fold(h, "sum", x, axes, keep), *m = fold(h, "max", x, axes, keep);
    tiga_tensor *mean = fold(h, "mean", x, axes, keep);
    int64_t n = 1, n_out = 1, folded = 1;
    for (int i = 0; i < rank; i++) {
        n *= shape[i];
        *(axes >> i & 1 ? &folded : &n_out) *= shape[i];
    }
    float sum[64] = {0}, most[64], average[64];
    for (int i = 0; i < 64; i++)
        most[i] = -INFINITY;
    for (int64_t at = 0; at < n; at++) {
        int64_t to = 0, stride = 1, rest = at;
        for (int i = rank; i-- > 0; rest /= shape[i])
            if (!(axes >> i & 1)) {
                to += rest % shape[i] * stride;
                stride *= shape[i];
            }
        sum[to] += f32_of(h, x)[at];
        most[to] = fmaxf(most[to], f32_of(h, x)[at]);
    }
    for (int64_t i = 0; i < n_out; i++)
        average[i] = sum[i] / (float)folded;
    cr_assert_eq(tiga_tensor_rank(s), keep ? rank : rank - __builtin_popcount(axes));
    tiga_tensor *all[] = {s, m, mean};
    OK(tiga_tensor_realize(all, 3));
    expect(s, sum, n_out, "sum");
    expect(m, most, n_out, "max");
    expect(mean, average, n_out, "mean");
    FREE(x, s, m, mean);
}

static void all_folds(void) {
    static const int64_t shapes[][3] = {{2, 3, 4}, {1, 3, 1}, {3, 1, 2}, {2, 1, 1}, {1, 1, 5}, {1, 1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t axes = 0; axes < 8; axes++)
            for (int keep = 0; keep < 2; keep++)
                fold_case(3, shapes[i], axes, keep);
}
Test(tensor_values, folds_interpreted, .init = interpreted) { all_folds(); }
Test(tensor_values, folds_compiled, .timeout = 300) { all_folds(); }

/* Folds over nothing give what they begin with, whether what is folded is an array, a number, a view or an expression. */
static void fold_nothing(tiga_tensor *x, int64_t n) {
    tiga_tensor *all[] = {fold(h, "sum", x, 2, 0), fold(h, "prod", x, 2, 0), fold(h, "max", x, 2, 0),
                          fold(h, "min", x, 2, 0)};
    const float want[][2] = {{0, 0}, {1, 1}, {-INFINITY, -INFINITY}, {INFINITY, INFINITY}};
    for (int i = 0; i < 4; i++) {
        const float *got = f32_of(h, all[i]);
        cr_assert_eq(tiga_tensor_size(all[i]), n);
        for (int64_t k = 0; k < n; k++)
            cr_assert_eq(got[k], want[i][k], "fold %d: %g", i, (double)got[k]);
    }
    FREE(all[0], all[1], all[2], all[3], x);
}

static void all_of_nothing(void) {
    tiga_tensor *x = filled(h, SHAPE(2, 1), 1), *e = op1(h, "neg", x), *none, *y, *s;
    OK(tiga_tensor_full(h->ts, TIGA_F32, SHAPE(1, 0), 3, &none));
    fold_nothing(filled(h, SHAPE(2, 0), 1), 2);
    OK(tiga_tensor_full(h->ts, TIGA_F32, SHAPE(2, 0), 3, &y));
    fold_nothing(y, 2);
    OK(tiga_tensor_broadcast(x, SHAPE(2, 0), &y));
    fold_nothing(y, 2);
    OK(tiga_tensor_broadcast(e, SHAPE(2, 0), &y));
    fold_nothing(y, 2);
    fold_nothing(op2(h, "mul", e, none), 2);
    OK(tiga_tensor_broadcast(e, SHAPE(2, 5), &s));
    OK(tiga_tensor_slice(s, 1, 0, 0, 1, &y));
    fold_nothing(y, 2);
    OK(tiga_tensor_slice(x, 0, 0, 0, 1, &y));
    fold_nothing(y, 0);
    tiga_tensor *a, *m;
    OK(tiga_tensor_full(h->ts, TIGA_F32, SHAPE(0, 0), 1, &a));
    OK(tiga_tensor_matmul(a, a, &m));
    expect(m, NULL, 0, "matmul of nothing");
    tiga_tensor *c = op2(h, "add", none, none);
    expect(c, NULL, 0, "a constant of no elements");
    FREE(x, e, none, s, a, m, c);
}
Test(tensor_values, nothing_interpreted, .init = interpreted) { all_of_nothing(); }
Test(tensor_values, nothing_compiled) { all_of_nothing(); }

Test(tensor_values, seven_axes) { /* an expression gets a seventh by a movement, unless it leads */
    tiga_tensor *x = filled(h, SHAPE(2, 2, 2, 2, 2, 2), 1), *y = op1(h, "neg", x), *inner, *lead, *back, *b;
    float want[64];
    for (int i = 0; i < 64; i++)
        want[i] = -f32_of(h, x)[i];
    OK(tiga_tensor_reshape(y, SHAPE(2, 1, 2, 2, 2, 2, 2), &inner));
    OK(tiga_tensor_reshape(y, SHAPE(1, 2, 2, 2, 2, 2, 2), &lead));
    FAILS(tiga_tensor_broadcast(inner, SHAPE(2, 1, 2, 2, 2, 2, 2), &b), TIGA_E_UNSUPPORTED, "6 axes");
    OK(tiga_tensor_reshape(inner, SHAPE(2, 2, 2, 2, 2, 2), &back));
    expect(back, want, 64, "back to six");
    expect(inner, want, 64, "seven axes");
    expect(lead, want, 64, "one in front");
    OK(tiga_tensor_broadcast(inner, SHAPE(2, 1, 2, 2, 2, 2, 2), &b));
    expect(b, want, 64, "of a value that is there");
    FREE(x, y, inner, lead, back, b);
}

/* More results, and more operands, than anybody writes down. */
static void crowd(void) {
    enum { N = 2100 };
    static tiga_tensor *x[N], *y[N], *g[N];
    for (int round = 0; round < 3; round++) {
        tiga_tensor *joined, *sum = num(h, 0);
        for (int i = 0; i < N; i++) {
            x[i] = filled(h, SHAPE(1), i);
            y[i] = op2(h, "mul", x[i], x[i]);
            tiga_tensor *next = op2(h, "add", sum, y[i]);
            FREE(sum);
            sum = next;
        }
        tiga_tensor *loss = fold(h, "sum", sum, 1, 0);
        OK(tiga_tensor_grad(loss, x, N, 0, g));
        if (round == 1)
            OK(tiga_tensor_realize(y, N));
        OK(tiga_tensor_concat(y, N, 0, &joined));
        for (int i = 0; i < N; i++) {
            float v = f32_of(h, x[i])[0];
            cr_assert_eq(f32_of(h, joined)[i], v * v, "round %d: value %d", round, i);
            if (i == 0 || i == N - 1)
                cr_assert_eq(f32_of(h, g[i])[0], 2 * v, "round %d: gradient %d", round, i);
        }
        for (int i = 0; i < N; i++)
            FREE(x[i], y[i], g[i]);
        FREE(sum, loss, joined);
    }
}
Test(tensor_values, crowd_interpreted, .init = interpreted) { crowd(); }
Test(tensor_values, crowd_compiled, .timeout = 300) { crowd(); }
