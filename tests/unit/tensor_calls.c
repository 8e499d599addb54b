/* Gradients through kernels of modules, with everything failing in turn. */
#include "tensor_support.h"

#include "base/base.h"

static home *const h = &(home){0};
static tiga_module *m;
static tiga_graph *g;

static const char text[] =
    "kernel two(src x: f64, edge w: f64) -> (s: f64, n: i64, p: f64) {\n"
    "    return (s = reduce sum(edge.w * src.x), n = reduce count(), p = reduce sum(src.x * src.x))\n}\n"
    "kernel bare(src x: f64) -> f64 { return reduce sum(src.x) }\n"
    "export vjp two(x, w)\n";

static void begin(void) {
    *h = home_new(0, 1);
    OK(tiga_jit_source(h->ctx, text, strlen(text), NULL, &m, NULL));
    OK(tiga_graph_from_coo(h->ctx, 2, 3, 3, (int64_t[]){0, 0, 1}, (int64_t[]){0, 2, 1}, &g));
}

static void done(void) {
    cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0);
    tiga_module_free(m);
    tiga_graph_free(g);
    home_free(h);
}
TestSuite(tensor_calls, .init = begin, .fini = done, .timeout = 300);

static tiga_status three(const double *data, tiga_tensor **out) {
    int64_t n = 3;
    tiga_array a = tiga_array_borrow((void *)(uintptr_t)data, TIGA_F64, 1, &n);
    tiga_tensor *x = NULL;
    tiga_status status = tiga_tensor_from(h->ts, &a, TIGA_COPY, &x);
    *out = NULL;
    if (status == TIGA_OK)
        status = tiga_tensor_watch(x, out);
    tiga_tensor_free(x);
    return status;
}

/* d/dx and d/dw of sum(s * p), which goes through both results of one call. */
static tiga_status slopes(double *dx, double *dw) {
    tiga_tensor *x[2] = {NULL, NULL}, *product = NULL, *loss = NULL, *d[2] = {NULL, NULL};
    tiga_tensor_binding in[] = {{"w", NULL}, {"x", NULL}}, out[] = {{"p", NULL}, {"n", NULL}, {"s", NULL}};
    tiga_status status = three((double[]){1, 2, 3}, &x[0]);
    if (status == TIGA_OK)
        status = three((double[]){4, 5, 6}, &x[1]);
    in[1].tensor = x[0];
    in[0].tensor = x[1];
    if (status == TIGA_OK)
        status = tiga_tensor_call(h->ts, m, "two", &g, 1, in, 2, out, 3);
    if (status == TIGA_OK)
        status = tiga_tensor_op("mul", (tiga_tensor *[]){out[0].tensor, out[2].tensor}, 2, &product);
    if (status == TIGA_OK)
        status = tiga_tensor_fold(product, "sum", TIGA_ALL_AXES, 0, &loss);
    if (status == TIGA_OK)
        status = tiga_tensor_grad(loss, x, 2, 0, d);
    if (status == TIGA_OK)
        status = tiga_tensor_realize(d, 2);
    if (status == TIGA_OK)
        status = tiga_tensor_copy_to(d[0], dx, 24);
    if (status == TIGA_OK)
        status = tiga_tensor_copy_to(d[1], dw, 24);
    FREE(x[0], x[1], product, loss, d[0], d[1], out[0].tensor, out[1].tensor, out[2].tensor);
    return status;
}

/* Row 0 reads sources 0 and 2, row 1 source 1: edges w = 4, 5 and 6, x = 1, 3 and 2. */
static void check(const double *dx, const double *dw) {
    double s[] = {4 * 1 + 5 * 3, 6 * 2}, p[] = {1 + 9, 4};
    double want_x[] = {2 * 1 * s[0] + 4 * p[0], 2 * 2 * s[1] + 6 * p[1], 2 * 3 * s[0] + 5 * p[0]};
    double want_w[] = {1 * p[0], 3 * p[0], 2 * p[1]};
    for (int i = 0; i < 3; i++)
        cr_assert(dx[i] == want_x[i] && dw[i] == want_w[i], "%d: %g %g, %g %g", i, dx[i], want_x[i], dw[i], want_w[i]);
}

Test(tensor_calls, gradient_through_several_results) {
    double dx[3], dw[3];
    OK(slopes(dx, dw));
    check(dx, dw);
}

Test(tensor_calls, gradient_when_memory_ends) {
    double dx[3], dw[3];
    OK(slopes(dx, dw)); /* what is made once is made */
    for (uint64_t nth = 1;; nth++) {
        base_inject_at(BASE_INJECT_ALLOC, nth);
        tiga_status status = slopes(dx, dw);
        bool reached = base_inject_count(BASE_INJECT_ALLOC) >= nth;
        base_inject_at(BASE_INJECT_ALLOC, 0);
        cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0);
        if (status == TIGA_OK)
            check(dx, dw);
        else
            cr_assert_eq(status, TIGA_E_MEMORY, "%d: %s", (int)nth, tiga_error_text(h->ctx));
        tiga_error_clear(h->ctx);
        if (!reached)
            break;
    }
}

Test(tensor_calls, refused) {
    tiga_tensor *x, *loss, *d, *plain;
    OK(three((double[]){1, 2, 3}, &x));
    tiga_tensor_binding in = {"x", x}, out = {"out", NULL};
    const tiga_module_info *info = tiga_module_get_info(m);
    out.name = info->functions[1].results[0].name;
    OK(tiga_tensor_call(h->ts, m, "bare", &g, 1, &in, 1, &out, 1));
    OK(tiga_tensor_fold(out.tensor, "sum", TIGA_ALL_AXES, 0, &loss));
    FAILS(tiga_tensor_grad(loss, &x, 1, 0, &d), TIGA_E_UNSUPPORTED, "export vjp bare");
    FREE(loss, out.tensor);
    tiga_array a = tiga_array_borrow((double[]){1, 2, 3}, TIGA_F64, 1, (int64_t[]){3});
    OK(tiga_tensor_from(h->ts, &a, TIGA_COPY, &plain));
    in.tensor = plain;
    OK(tiga_tensor_call(h->ts, m, "bare", &g, 1, &in, 1, &out, 1));
    OK(tiga_tensor_fold(out.tensor, "sum", TIGA_ALL_AXES, 0, &loss));
    FAILS(tiga_tensor_grad(loss, &plain, 1, 0, &d), TIGA_E_TYPE, "tiga_tensor_watch");
    FREE(loss, out.tensor, x, plain);
}

/* A chain of steps that forget keeps nothing but the last value. */
Test(tensor_calls, forgotten) {
    tiga_tensor *x, *w, *d, *next, *loss;
    OK(three((double[]){1, 2, 3}, &x));
    for (int i = 0; i < 20; i++) {
        OK(tiga_tensor_watch(x, &w));
        cr_assert(tiga_tensor_is_watched(w));
        next = op2(h, "mul", w, w);
        OK(tiga_tensor_fold(next, "sum", TIGA_ALL_AXES, 0, &loss));
        OK(tiga_tensor_grad(loss, &w, 1, 0, &d));
        FREE(next);
        next = op2(h, "sub", w, d);
        cr_assert(tiga_tensor_is_watched(next));
        FREE(x, w, d, loss);
        OK(tiga_tensor_forget(next, &x));
        cr_assert(!tiga_tensor_is_watched(x));
        FREE(next);
        cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 24);
    }
    double v[3];
    OK(tiga_tensor_copy_to(x, v, sizeof v));
    cr_assert(v[0] == 1 && v[1] == 2 && v[2] == 3); /* x - 2x twenty times */
    FREE(x);
}
