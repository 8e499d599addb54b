/* Costs of lazy tensors, for bench/tensor.py, which runs numpy in the same run: one number a line.
 *
 *     bench_tensor chain N      ms for ten operators on N f32, observed; threads as OMP_NUM_THREADS says
 *     bench_tensor small        ns for x * x on 8 elements: made, observed, freed; then of these without observation */
#include "tiga/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static tiga_context *ctx;
static tiga_tensors *ts;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void check(tiga_status status) {
    if (status == TIGA_OK)
        return;
    fprintf(stderr, "bench_tensor: %s\n", tiga_error_text(ctx));
    exit(1);
}

static tiga_tensor *op(const char *name, tiga_tensor *a, tiga_tensor *b) {
    tiga_tensor *x;
    check(tiga_tensor_op(name, (tiga_tensor *[]){a, b}, 2, &x));
    return x;
}

/* *a becomes `name` of it and b. */
static void then(const char *name, tiga_tensor **a, tiga_tensor *b) {
    tiga_tensor *x = op(name, *a, b);
    tiga_tensor_free(*a);
    *a = x;
}

/* max(((x * y + x) * 0.5 - y)^2 + 1, x) / 3 * y + x: ten operators, as tensor.py has them in numpy */
static tiga_tensor *expression(tiga_tensor *x, tiga_tensor *y) {
    tiga_tensor *half, *one, *three, *e = op("mul", x, y);
    check(tiga_tensor_number(ts, 0.5, &half));
    check(tiga_tensor_number(ts, 1, &one));
    check(tiga_tensor_number(ts, 3, &three));
    then("add", &e, x);
    then("mul", &e, half);
    then("sub", &e, y);
    then("mul", &e, e);
    then("add", &e, one);
    then("max", &e, x);
    then("div", &e, three);
    then("mul", &e, y);
    then("add", &e, x);
    tiga_tensor_free(half);
    tiga_tensor_free(one);
    tiga_tensor_free(three);
    return e;
}

static void chain(int64_t n) {
    enum { ROUNDS = 15 };
    tiga_tensor *x, *y;
    double best = 1e18;
    check(tiga_tensor_rand(ts, TIGA_F32, 1, &n, 1, &x));
    check(tiga_tensor_rand(ts, TIGA_F32, 1, &n, 2, &y));
    for (int i = 0; i < ROUNDS; i++) {
        double began = now();
        tiga_tensor *e = expression(x, y);
        check(tiga_tensor_realize(&e, 1));
        double took = now() - began;
        best = took < best ? took : best;
        tiga_tensor_free(e);
    }
    printf("%.3f\n", best / 1e6);
    tiga_tensor_free(x);
    tiga_tensor_free(y);
}

static double small(int observe) {
    enum { ROUNDS = 200000, PARTS = 20 };
    float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int64_t eight = 8;
    tiga_array a = tiga_array_borrow(data, TIGA_F32, 1, &eight);
    const tiga_array *got;
    tiga_tensor *x;
    double best = 1e18;
    check(tiga_tensor_from(ts, &a, TIGA_BORROW, &x));
    for (int part = 0; part < PARTS; part++) {
        double began = now();
        for (int i = 0; i < ROUNDS / PARTS; i++) {
            tiga_tensor *y = op("mul", x, x);
            if (observe)
                check(tiga_tensor_data(y, &got));
            tiga_tensor_free(y);
        }
        double took = (now() - began) / (ROUNDS / PARTS);
        best = took < best ? took : best;
    }
    tiga_tensor_free(x);
    return best;
}

int main(int argc, char **argv) {
    if (argc < 2 || tiga_context_new(NULL, &ctx) || tiga_tensors_new(ctx, NULL, &ts))
        return 2;
    if (!strcmp(argv[1], "chain"))
        chain(argc > 2 ? atoll(argv[2]) : 4000000);
    else
        printf("%.0f\n%.0f\n", small(1), small(0));
    tiga_tensors_free(ts);
    tiga_context_free(ctx);
    return 0;
}
