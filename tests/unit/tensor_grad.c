/* Gradients of tensors, against central differences in f64; through movements, realised values, and twice. */
#include "tensor_support.h"

#include <stdlib.h>

static home *const h = &(home){0};
static void begin(void) { *h = home_new(0, 0); }
static void done(void) {
    tiga_tensors_counters n = tiga_tensors_get_counters(h->ts);
    cr_assert_eq(n.live_bytes, 0, "%lld bytes are left", (long long)n.live_bytes);
    home_free(h);
}
TestSuite(tensor_grad, .init = begin, .fini = done, .timeout = 300);

enum { PARAMS = 2, MOST = 32 };

/* A loss of two values, by a function of the test; it frees what it makes on the way. */
typedef tiga_tensor *(*loss_fn)(tiga_tensor *const *p);

static tiga_tensor *f64_of(const double *data, int32_t rank, const int64_t *shape) {
    tiga_tensor *x;
    tiga_array a = tiga_array_borrow((void *)(uintptr_t)data, TIGA_F64, rank, shape);
    OK(tiga_tensor_from(h->ts, &a, TIGA_COPY, &x));
    return x;
}

static double value_of(tiga_tensor *x) {
    double v;
    OK(tiga_tensor_copy_to(x, &v, sizeof v));
    return v;
}

typedef struct point {
    int32_t rank[PARAMS];
    int64_t shape[PARAMS][3], size[PARAMS];
    double at[PARAMS][MOST];
} point;

static double loss_at(const point *p, loss_fn f) {
    tiga_tensor *x[PARAMS], *loss;
    for (int i = 0; i < PARAMS; i++)
        x[i] = f64_of(p->at[i], p->rank[i], p->shape[i]);
    loss = f(x);
    double v = value_of(loss);
    for (int i = 0; i < PARAMS; i++)
        tiga_tensor_free(x[i]);
    tiga_tensor_free(loss);
    return v;
}

/* What is observed before it is differentiated: nothing; the loss; or, besides, what losses call seen().  Then the
 * operands are watched. */
enum { NOTHING, LOSS, ALL };
static int looking;

static void check(const char *what, loss_fn f, point p, int look) {
    tiga_tensor *x[PARAMS], *g[PARAMS], *again[PARAMS], *loss;
    for (int i = 0; i < PARAMS; i++) {
        x[i] = f64_of(p.at[i], p.rank[i], p.shape[i]);
        tiga_tensor *w = NULL;
        if (look) {
            OK(tiga_tensor_watch(x[i], &w));
            tiga_tensor_free(x[i]);
            x[i] = w;
        }
    }
    looking = look;
    loss = f(x);
    looking = NOTHING;
    if (look)
        value_of(loss);
    OK(tiga_tensor_grad(loss, x, PARAMS, 1, g));
    OK(tiga_tensor_realize(g, PARAMS));
    OK(tiga_tensor_grad(loss, x, PARAMS, 1, again)); /* what was computed for the first has not been forgotten */
    for (int i = 0; i < PARAMS; i++) {
        const tiga_array *a, *b;
        OK(tiga_tensor_data(g[i], &a));
        OK(tiga_tensor_data(again[i], &b));
        cr_assert_eq(tiga_tensor_rank(g[i]), p.rank[i], "%s", what);
        for (int64_t k = 0; k < p.size[i]; k++) {
            double keep = p.at[i][k], up, down;
            p.at[i][k] = keep + 1e-5;
            up = loss_at(&p, f);
            p.at[i][k] = keep - 1e-5;
            down = loss_at(&p, f);
            p.at[i][k] = keep;
            double want = (up - down) / 2e-5, got = ((const double *)a->data)[k];
            cr_assert(fabs(want - got) <= 1e-6 * (1 + fabs(want)), "%s: value %d, element %lld: %g, not %g", what, i,
                      (long long)k, got, want);
            double twice = ((const double *)b->data)[k];
            cr_assert(fabs(want - twice) <= 1e-6 * (1 + fabs(want)),
                      "%s: value %d, element %lld, asked again: %g, not %g", what, i, (long long)k, twice, want);
        }
        tiga_tensor_free(g[i]);
        tiga_tensor_free(again[i]);
        tiga_tensor_free(x[i]);
    }
    tiga_tensor_free(loss);
}

static point point_of(int32_t ra, const int64_t *sa, int32_t rb, const int64_t *sb) {
    point p = {.rank = {ra, rb}, .size = {1, 1}};
    for (int i = 0; i < ra; i++)
        p.size[0] *= p.shape[0][i] = sa[i];
    for (int i = 0; i < rb; i++)
        p.size[1] *= p.shape[1][i] = sb[i];
    for (int i = 0; i < PARAMS; i++)
        for (int k = 0; k < MOST; k++)
            p.at[i][k] = 0.3 + ((k * 37 + i * 11) % 23) / 17.0;
    return p;
}

static tiga_tensor *kept[64];
static int n_kept;
static tiga_tensor *keep(tiga_tensor *x) { return kept[n_kept++] = x; }
static tiga_tensor *finish(tiga_tensor *x) {
    tiga_tensor_retain(x);
    while (n_kept)
        tiga_tensor_free(kept[--n_kept]);
    return x;
}
static tiga_tensor *two(const char *name, tiga_tensor *a, tiga_tensor *b) { return keep(op2(h, name, a, b)); }
static tiga_tensor *one(const char *name, tiga_tensor *a) { return keep(op1(h, name, a)); }
static tiga_tensor *sum(tiga_tensor *a, uint32_t axes, int k) { return keep(fold(h, "sum", a, axes, k)); }
#define MADE(call)                                                                                                     \
    ({                                                                                                                 \
        tiga_tensor *made_;                                                                                            \
        OK(call);                                                                                                      \
        keep(made_);                                                                                                   \
    })

static tiga_tensor *seen(tiga_tensor *x) {
    const tiga_array *a;
    if (looking == ALL)
        OK(tiga_tensor_data(x, &a));
    return x;
}

static tiga_tensor *plain(tiga_tensor *const *p) {
    return finish(sum(two("mul", p[0], one("exp", p[1])), TIGA_ALL_AXES, 0));
}

static tiga_tensor *mlp(tiga_tensor *const *p) {
    tiga_tensor *y = one("tanh", MADE(tiga_tensor_matmul(p[0], p[1], &made_)));
    return finish(keep(fold(h, "mean", two("mul", y, y), TIGA_ALL_AXES, 0)));
}

static tiga_tensor *turned(tiga_tensor *const *p) { /* (x * x)^T @ x, and a slice of it */
    tiga_tensor *t = MADE(tiga_tensor_permute(two("mul", p[0], p[0]), NULL, &made_));
    tiga_tensor *m = MADE(tiga_tensor_matmul(t, p[0], &made_));
    tiga_tensor *s = MADE(tiga_tensor_slice(m, 1, 2, 2, -1, &made_));
    return finish(sum(two("mul", s, two("mul", s, one("sin", p[1]))), TIGA_ALL_AXES, 0));
}

static tiga_tensor *joined(tiga_tensor *const *p) { /* concat, gather, cumsum, reshape */
    int64_t at[4] = {2, 0, 2, 5}, four = 4;
    tiga_array a = tiga_array_borrow(at, TIGA_I64, 1, &four);
    tiga_tensor *index = MADE(tiga_tensor_from(h->ts, &a, TIGA_COPY, &made_));
    tiga_tensor *both[] = {one("exp", p[0]), two("mul", p[1], p[1])};
    tiga_tensor *c = MADE(tiga_tensor_concat(both, 2, 0, &made_));
    tiga_tensor *picked = MADE(tiga_tensor_gather(c, index, 0, &made_));
    tiga_tensor *run = MADE(tiga_tensor_cumsum(two("mul", picked, picked), 0, 0, &made_));
    tiga_tensor *square = MADE(tiga_tensor_reshape(run, SHAPE(2, -1), &made_));
    return finish(sum(two("mul", square, sum(square, 1, 1)), TIGA_ALL_AXES, 0));
}

static tiga_tensor *stretched(tiga_tensor *const *p) { /* a sum over what was broadcast */
    tiga_tensor *b = MADE(tiga_tensor_broadcast(one("exp", p[0]), SHAPE(4, 3), &made_));
    return finish(two("mul", sum(two("mul", b, b), TIGA_ALL_AXES, 0), sum(p[1], TIGA_ALL_AXES, 0)));
}

static tiga_tensor *soft(tiga_tensor *const *p) {
    tiga_tensor *s = MADE(tiga_tensor_softmax(p[0], -1, &made_));
    tiga_tensor *l = MADE(tiga_tensor_layer_norm(s, p[1], NULL, 1e-3, &made_));
    return finish(sum(two("mul", l, s), TIGA_ALL_AXES, 0));
}

/* The loss is made of a gradient. */
static tiga_tensor *second(tiga_tensor *const *p) {
    tiga_tensor *y = sum(two("mul", one("exp", p[0]), two("mul", p[1], p[0])), TIGA_ALL_AXES, 0), *g;
    OK(tiga_tensor_grad(y, p, 1, 0, &g));
    keep(g);
    return finish(sum(two("mul", g, g), TIGA_ALL_AXES, 0));
}

/* Views of what is there, and values that are views already. */
static tiga_tensor *viewed(tiga_tensor *const *p) {
    tiga_tensor *t = MADE(tiga_tensor_permute(p[0], NULL, &made_)); /* [3, 2] */
    tiga_tensor *s = MADE(tiga_tensor_slice(t, 0, 2, 2, -2, &made_));
    tiga_tensor *r = MADE(tiga_tensor_reshape(s, SHAPE(4), &made_));
    tiga_tensor *b = MADE(tiga_tensor_broadcast(p[1], SHAPE(5, 4), &made_));
    return finish(sum(two("mul", r, one("exp", b)), TIGA_ALL_AXES, 0));
}

/* Values that repeat: looked at, moved, or operands of a movement that is looked at. */
static tiga_tensor *wide(tiga_tensor *x) { return MADE(tiga_tensor_broadcast(x, SHAPE(5, 3), &made_)); }
static tiga_tensor *squares(tiga_tensor *x) { return sum(two("mul", x, x), TIGA_ALL_AXES, 0); }

static tiga_tensor *wide_there(tiga_tensor *const *p) {
    return finish(two("mul", squares(seen(wide(p[0]))), squares(p[1])));
}

static tiga_tensor *wide_expression(tiga_tensor *const *p) {
    return finish(two("mul", squares(seen(wide(seen(one("exp", p[0]))))), squares(p[1])));
}

static tiga_tensor *wide_turned(tiga_tensor *const *p) { /* a view of what repeats; folded in two steps */
    tiga_tensor *t = MADE(tiga_tensor_permute(seen(wide(p[0])), NULL, &made_));
    return finish(sum(sum(two("mul", t, p[1]), 2, 0), 1, 0));
}

static tiga_tensor *wide_cut(tiga_tensor *const *p) {
    tiga_tensor *s = MADE(tiga_tensor_slice(wide(p[0]), 0, 0, 2, 1, &made_));
    return finish(sum(sum(two("mul", s, p[1]), 2, 0), 1, 0));
}

static tiga_tensor *wide_moved(tiga_tensor *const *p) {
    tiga_tensor *y = one("exp", two("mul", seen(wide(p[0])), p[0]));
    tiga_tensor *t = MADE(tiga_tensor_permute(y, NULL, &made_));
    return finish(sum(sum(two("mul", t, p[1]), 2, 0), 1, 0));
}

static tiga_tensor *wide_added(tiga_tensor *const *p) { /* y is realised for its running sums, which nothing needs */
    tiga_tensor *y = one("neg", wide(p[0]));
    seen(MADE(tiga_tensor_cumsum(y, 0, 0, &made_)));
    return finish(two("mul", squares(y), squares(p[1])));
}

static tiga_tensor *wide_product(tiga_tensor *const *p) { /* [2, 5] @ [5, 3] */
    tiga_tensor *m = MADE(tiga_tensor_matmul(p[1], seen(wide(p[0])), &made_));
    return finish(sum(sum(m, 2, 0), 1, 0));
}

static tiga_tensor *wide_one(tiga_tensor *const *p) { /* an axis of one element, kept */
    tiga_tensor *r = MADE(tiga_tensor_reshape(seen(wide(one("exp", p[0]))), SHAPE(5, 1, 3), &made_));
    return finish(squares(two("add", r, p[1])));
}

static tiga_tensor *wide_again(tiga_tensor *const *p) { /* a broadcast, to its own shape, of what was looked at */
    tiga_tensor *b = wide(seen(two("mul", wide(p[0]), p[0])));
    return finish(two("mul", squares(b), squares(p[1])));
}

static tiga_tensor *twice_turned(tiga_tensor *const *p) { /* the gradient realises what the loss stands on */
    tiga_tensor *t = MADE(tiga_tensor_permute(two("mul", p[0], p[0]), NULL, &made_));
    return finish(two("mul", sum(sum(two("mul", t, t), 1, 0), 1, 0), squares(p[1])));
}

static void both(const char *what, loss_fn f, point p) {
    for (int look = NOTHING; look <= ALL; look++)
        check(what, f, p, look);
}

Test(tensor_grad, plain) { both("plain", plain, point_of(SHAPE(2, 3), SHAPE(3))); }
Test(tensor_grad, mlp) { both("mlp", mlp, point_of(SHAPE(3, 4), SHAPE(4, 2))); }
Test(tensor_grad, turned) { both("turned", turned, point_of(SHAPE(2, 3), SHAPE(2))); }
Test(tensor_grad, joined) { both("joined", joined, point_of(SHAPE(3), SHAPE(3))); }
Test(tensor_grad, stretched) { both("stretched", stretched, point_of(SHAPE(3), SHAPE(2))); }
Test(tensor_grad, soft) { both("soft", soft, point_of(SHAPE(2, 3), SHAPE(3))); }
Test(tensor_grad, viewed) { both("viewed", viewed, point_of(SHAPE(2, 3), SHAPE(4))); }
Test(tensor_grad, twice_turned) { both("twice turned", twice_turned, point_of(SHAPE(2, 2), SHAPE(2))); }
Test(tensor_grad, wide_there) { both("wide", wide_there, point_of(SHAPE(3), SHAPE(2))); }
Test(tensor_grad, wide_expression) { both("wide expression", wide_expression, point_of(SHAPE(3), SHAPE(2))); }
Test(tensor_grad, wide_turned) { both("wide, turned", wide_turned, point_of(SHAPE(3), SHAPE(3, 5))); }
Test(tensor_grad, wide_cut) { both("wide, cut", wide_cut, point_of(SHAPE(3), SHAPE(2, 3))); }
Test(tensor_grad, wide_moved) { both("wide, moved", wide_moved, point_of(SHAPE(3), SHAPE(3, 5))); }
Test(tensor_grad, wide_added) { both("wide, added", wide_added, point_of(SHAPE(3), SHAPE(2))); }
Test(tensor_grad, wide_again) { both("wide, twice", wide_again, point_of(SHAPE(3), SHAPE(2))); }
Test(tensor_grad, wide_product) { both("wide, a product", wide_product, point_of(SHAPE(3), SHAPE(2, 5))); }
Test(tensor_grad, wide_one) { both("wide, with an axis", wide_one, point_of(SHAPE(3), SHAPE(5, 1, 1))); }
Test(tensor_grad, second) { both("second", second, point_of(SHAPE(4), SHAPE(4))); }

Test(tensor_grad, full_value) { /* every element of zeros is a value of its own */
    tiga_tensor *w, *y, *g;
    OK(tiga_tensor_full(h->ts, TIGA_F64, SHAPE(3), 2, &w));
    y = fold(h, "sum", w, TIGA_ALL_AXES, 0);
    tiga_tensor *square = op2(h, "mul", y, y);
    OK(tiga_tensor_grad(square, &w, 1, 0, &g));
    double v[3];
    OK(tiga_tensor_copy_to(g, v, sizeof v));
    cr_assert(v[0] == 12 && v[1] == 12 && v[2] == 12, "%g %g %g", v[0], v[1], v[2]);
    tiga_tensor_free(w);
    tiga_tensor_free(y);
    tiga_tensor_free(square);
    tiga_tensor_free(g);
}

/* w of equal elements, as a value and as an array: the same gradient, also through a view and when watched. */
static void full_like_array(bool watched, bool turned, double v) {
    tiga_tensor *w, *g, *y = f64_of((double[]){1, 2, 3, 4}, SHAPE(2, 2));
    OK(tiga_tensor_full(h->ts, TIGA_F64, SHAPE(4), v, &w));
    if (watched) {
        keep(w);
        OK(tiga_tensor_watch(w, &w));
    }
    tiga_tensor *m = MADE(tiga_tensor_reshape(w, SHAPE(2, 2), &made_));
    tiga_tensor *z = turned ? two("mul", m, y) : two("mul", w, w);
    tiga_tensor *loss = turned ? sum(sum(z, 2, 0), 1, 0) : sum(z, 1, 0);
    OK(tiga_tensor_grad(loss, &w, 1, 0, &g));
    double got[4];
    OK(tiga_tensor_copy_to(g, got, sizeof got));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(got[i], turned ? i + 1 : 2 * v, "%d %d %g: element %d: %g", watched, turned, v, i, got[i]);
    keep(w), keep(g), keep(y);
    tiga_tensor_free(finish(w));
}

Test(tensor_grad, full_operand) {
    for (int how = 0; how < 4; how++) {
        full_like_array(how & 1, how & 2, 2);
        full_like_array(how & 1, how & 2, 2.3);
    }
}

Test(tensor_grad, nothing) { /* no elements: zeros of no elements, and sums of them */
    tiga_tensor *x = f64_of((double[]){1, 2}, SHAPE(2)), *loss = squares(x), *none, *g[2];
    OK(tiga_tensor_full(h->ts, TIGA_F64, SHAPE(0), 0, &none));
    OK(tiga_tensor_grad(loss, &none, 1, 1, g));
    cr_assert_eq(value_of(squares(g[0])), 0);
    tiga_tensor_free(g[0]);
    tiga_tensor *w = MADE(tiga_tensor_broadcast(one("exp", x), SHAPE(0, 2), &made_)), *y = two("add", squares(w), loss);
    OK(tiga_tensor_grad(y, &x, 1, 0, g));
    double v[2];
    OK(tiga_tensor_copy_to(g[0], v, sizeof v));
    cr_assert(v[0] == 2 && v[1] == 4, "%g %g", v[0], v[1]);
    keep(x), keep(none), keep(g[0]);
    tiga_tensor_free(finish(x));
}

Test(tensor_grad, complex_and_half) { /* |z|^2: 2 z; a gather of f16 */
    tiga_tensor *a = f64_of((double[]){1, 2}, SHAPE(2)), *b = f64_of((double[]){3, -1}, SHAPE(2)), *g, *w, *picked,
                *index;
    tiga_tensor *z = op2(h, "complex", a, b), *bar, *p, *re, *loss;
    OK(tiga_tensor_watch(z, &w));
    bar = op1(h, "conj", w);
    p = op2(h, "mul", w, bar);
    re = op1(h, "real", p);
    loss = fold(h, "sum", re, 1, 0);
    OK(tiga_tensor_grad(loss, &w, 1, 0, &g));
    double v[4];
    OK(tiga_tensor_copy_to(g, v, sizeof v));
    cr_assert(v[0] == 2 && v[1] == 6 && v[2] == 4 && v[3] == -2, "%g %g %g %g", v[0], v[1], v[2], v[3]);
    tiga_tensor *made[] = {z, w, bar, p, re, loss, g, b};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        tiga_tensor_free(made[i]);

    int64_t at[] = {1, 1, 0};
    tiga_array numbers = tiga_array_borrow(at, TIGA_I64, 1, (int64_t[]){3});
    OK(tiga_tensor_from(h->ts, &numbers, TIGA_COPY, &index));
    tiga_tensor *half, *square, *wide, *back;
    OK(tiga_tensor_cast(a, TIGA_F16, &half));
    OK(tiga_tensor_gather(half, index, 0, &picked));
    square = op2(h, "mul", picked, picked);
    OK(tiga_tensor_cast(square, TIGA_F32, &wide));
    loss = fold(h, "sum", wide, 1, 0);
    OK(tiga_tensor_grad(loss, &half, 1, 0, &g));
    cr_assert_eq(tiga_tensor_dtype(g), TIGA_F16);
    OK(tiga_tensor_cast(g, TIGA_F64, &back));
    OK(tiga_tensor_copy_to(back, v, 16));
    cr_assert(v[0] == 2 && v[1] == 8, "%g %g", v[0], v[1]);
    tiga_tensor *more[] = {a, index, half, picked, square, wide, loss, g, back};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        tiga_tensor_free(more[i]);
}

Test(tensor_grad, refused) {
    tiga_tensor *x = f64_of((double[]){1, 2, 3}, SHAPE(3)), *y = f64_of((double[]){1}, SHAPE(1)), *g;
    tiga_tensor *loss = fold(h, "sum", x, 1, 0), *few[] = {x, x}, *out[2];
    FAILS(tiga_tensor_grad(loss, &y, 1, 0, &g), TIGA_E_TYPE, "does not depend");
    FAILS(tiga_tensor_grad(x, &x, 1, 0, &g), TIGA_E_TYPE, "not one f32");
    FAILS(tiga_tensor_grad(loss, few, 2, 0, out), TIGA_E_ARGUMENT, "value 1 is value 0");
    value_of(loss);
    FAILS(tiga_tensor_grad(loss, &x, 1, 0, &g), TIGA_E_TYPE, "forgotten");
    tiga_tensor_free(x);
    tiga_tensor_free(y);
    tiga_tensor_free(loss);
}
