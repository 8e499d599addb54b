/* Element types, numbers, views that share memory, what is refused and in which words, and kernels of modules. */
#include "tensor_support.h"

#include <stdlib.h>

static home *const h = &(home){0};
static void begin(void) { *h = home_new(4096, 0); }
static void done(void) {
    cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0);
    home_free(h);
}
TestSuite(tensor_types, .init = begin, .fini = done, .timeout = 120);

static tiga_tensor *cast(tiga_tensor *x, int32_t dtype) {
    tiga_tensor *y;
    OK(tiga_tensor_cast(x, dtype, &y));
    return y;
}

static bool is_whole(int32_t dtype) {
    return dtype == TIGA_I32 || dtype == TIGA_I64 || dtype == TIGA_I8 || dtype == TIGA_U8;
}

Test(tensor_types, numbers_adopt) {
    static const int32_t types[] = {TIGA_F32, TIGA_F64, TIGA_I32,  TIGA_I64, TIGA_I8,
                                    TIGA_U8,  TIGA_F16, TIGA_BF16, TIGA_C64, TIGA_C128};
    tiga_tensor *x = filled(h, SHAPE(3), 1), *two, *half = num(h, 0.5), *y;
    OK(tiga_tensor_integer(h->ts, 2, &two));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tiga_tensor *t = cast(x, types[i]), *sum = op2(h, "add", t, two), *back = op2(h, "mul", two, sum);
        cr_assert_eq(tiga_tensor_dtype(back), types[i]);
        tiga_tensor *part =
            types[i] == TIGA_C64 || types[i] == TIGA_C128 ? op1(h, "real", back) : tiga_tensor_retain(back);
        tiga_tensor *value = cast(part, TIGA_F64);
        double v[3];
        OK(tiga_tensor_copy_to(value, v, sizeof v));
        for (int k = 0; k < 3; k++)
            cr_assert_eq(v[k], 2 * ((is_whole(types[i]) ? trunc(f32_of(h, x)[k]) : f32_of(h, x)[k]) + 2));
        FREE(part, value);
        tiga_tensor *args[] = {t, half};
        if (is_whole(types[i]))
            FAILS(tiga_tensor_op("add", args, 2, &y), TIGA_E_TYPE, "0.5 is no");
        else {
            OK(tiga_tensor_op("add", args, 2, &y));
            tiga_tensor_free(y);
        }
        FREE(t, sum, back);
    }
    tiga_tensor *alone = op2(h, "mul", two, half), *whole = op2(h, "add", two, two), *root = op1(h, "sqrt", two);
    cr_assert_eq(tiga_tensor_dtype(alone), TIGA_F32);
    cr_assert_eq(tiga_tensor_dtype(whole), TIGA_I64);
    cr_assert_eq(tiga_tensor_dtype(root), TIGA_F32);
    cr_assert_eq(f32_of(h, alone)[0], 1);
    cr_assert_eq(f32_of(h, root)[0], sqrtf(2));
    FREE(x, two, half, alone, whole, root);
}

static double first_of(tiga_tensor *x) {
    tiga_tensor *wide = cast(x, TIGA_F64);
    const tiga_array *a;
    OK(tiga_tensor_data(wide, &a));
    double v = *(const double *)a->data;
    FREE(wide);
    return v;
}

Test(tensor_types, numbers_stay_numbers) { /* when looked at; a watched, reshaped or broadcast one is f32, or i64 */
    tiga_tensor *half = num(h, 0.5), *two, *x = filled(h, SHAPE(3), 1), *y, *made[4];
    const tiga_array *a;
    OK(tiga_tensor_integer(h->ts, 2, &two));
    for (int i = 0; i < 2; i++) {
        OK(tiga_tensor_data(half, &a));
        cr_assert(a->dtype == TIGA_F64 && *(const double *)a->data == 0.5);
        OK(tiga_tensor_data(two, &a));
        cr_assert(a->dtype == TIGA_I64 && *(const int64_t *)a->data == 2);
        y = op2(h, "mul", half, x);
        cr_assert_eq(tiga_tensor_dtype(y), TIGA_F32);
        cr_assert_eq(f32_of(h, y)[2], f32_of(h, x)[2] / 2);
        FREE(y);
        y = op2(h, "mul", two, x);
        cr_assert_eq(f32_of(h, y)[2], f32_of(h, x)[2] * 2);
        FREE(y);
    }
    OK(tiga_tensor_watch(half, &made[0]));
    OK(tiga_tensor_reshape(half, SHAPE(1), &made[1]));
    OK(tiga_tensor_broadcast(half, SHAPE(3), &made[2]));
    OK(tiga_tensor_broadcast(two, SHAPE(3), &made[3]));
    cr_assert_eq(tiga_tensor_dtype(made[3]), TIGA_I64);
    for (int i = 0; i < 3; i++) {
        y = op2(h, "mul", made[i], x);
        cr_assert_eq(f32_of(h, y)[2], f32_of(h, x)[2] / 2);
        FREE(y);
    }
    FREE(half, two, x, made[0], made[1], made[2], made[3]);
}

Test(tensor_types, numbers_come_first) {
    tiga_tensor *five, *real = num(h, 2.5), *one, *x = filled(h, SHAPE(3), 1), *lo = cast(x, TIGA_F64), *y;
    OK(tiga_tensor_integer(h->ts, 5, &five));
    OK(tiga_tensor_integer(h->ts, 1, &one));
    const struct {
        const char *name;
        tiga_tensor *args[3];
        int n;
        int32_t dtype;
        double want;
    } all[] = {{"clamp", {five, lo, lo}, 3, TIGA_F64, first_of(lo)},
               {"clamp", {real, lo, five}, 3, TIGA_F64, 2.5},
               {"clamp", {real, five, lo}, 3, TIGA_F64, first_of(lo)},
               {"clamp", {five, one, one}, 3, TIGA_I64, 1},
               {"clamp", {five, one, real}, 3, TIGA_F32, 2.5},
               {"elu", {five, lo}, 2, TIGA_F64, 5},
               {"leaky_relu", {five, lo}, 2, TIGA_F64, 5},
               {"relu", {five}, 1, TIGA_I64, 5},
               {"relu", {real}, 1, TIGA_F32, 2.5},
               {"rsqrt", {one}, 1, TIGA_F32, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        OK(tiga_tensor_op(all[i].name, all[i].args, all[i].n, &y));
        cr_assert_eq(tiga_tensor_dtype(y), all[i].dtype, "%zu: %s", i, all[i].name);
        cr_assert_eq(first_of(y), all[i].want, "%zu: %s: %g", i, all[i].name, first_of(y));
        FREE(y);
    }
    FREE(five, real, one, x, lo);
}

Test(tensor_types, halves_round_after_every_operation) {
    tiga_tensor *x = filled(h, SHAPE(41), 1), *y = cast(x, TIGA_F16), *z = op2(h, "mul", y, y),
                *w = op2(h, "add", z, y);
    tiga_tensor *f = cast(w, TIGA_F32), *s = fold(h, "sum", y, TIGA_ALL_AXES, 0), *less = op2(h, "lt", y, z);
    cr_assert_eq(tiga_tensor_dtype(w), TIGA_F16);
    cr_assert_eq(tiga_tensor_dtype(s), TIGA_F16);
    cr_assert_eq(tiga_tensor_dtype(less), TIGA_BOOL);
    for (int i = 0; i < 41; i++) { /* eighths: y is exact, z has 12 bits and rounds */
        float v = f32_of(h, x)[i], square = (float)(_Float16)(v * v);
        cr_assert_eq(f32_of(h, f)[i], (float)(_Float16)(square + v), "element %d", i);
    }
    OK(tiga_tensor_realize(&less, 1));
    FREE(x, y, z, w, f, s, less);
}

Test(tensor_types, complex_numbers) {
    tiga_tensor *x = filled(h, SHAPE(5), 1), *y = filled(h, SHAPE(5), 2), *z = op2(h, "complex", x, y);
    tiga_tensor *bar = op1(h, "conj", z), *square = op2(h, "mul", z, bar), *re = op1(h, "real", square);
    tiga_tensor *length = op1(h, "abs", z);
    for (int i = 0; i < 5; i++) {
        float a = f32_of(h, x)[i], b = f32_of(h, y)[i];
        cr_assert_float_eq(f32_of(h, re)[i], a * a + b * b, 1e-5);
        cr_assert_float_eq(f32_of(h, length)[i], sqrtf(a * a + b * b), 1e-5);
    }
    FREE(x, y, z, bar, square, re, length);
}

Test(tensor_types, integers) {
    int32_t v[] = {7, -7, 0, 2147483647}, got[4];
    int64_t four = 4;
    tiga_array a = tiga_array_borrow(v, TIGA_I32, 1, &four);
    tiga_tensor *x, *two, *q, *r, *s;
    OK(tiga_tensor_from(h->ts, &a, TIGA_BORROW, &x));
    OK(tiga_tensor_integer(h->ts, 2, &two));
    q = op2(h, "div", x, two);
    r = op2(h, "rem", x, two);
    s = fold(h, "sum", x, 1, 0);
    OK(tiga_tensor_copy_to(q, got, sizeof got));
    cr_assert(got[0] == 3 && got[1] == -3 && got[2] == 0 && got[3] == 1073741823);
    OK(tiga_tensor_copy_to(r, got, sizeof got));
    cr_assert(got[0] == 1 && got[1] == -1 && got[3] == 1);
    OK(tiga_tensor_copy_to(s, got, 4));
    cr_assert_eq(got[0], 2147483647);
    FREE(x, two, q, r, s);
}

Test(tensor_types, views_share) {
    float v[24];
    for (int i = 0; i < 24; i++)
        v[i] = (float)i;
    tiga_array a = tiga_array_borrow(v, TIGA_F32, 3, (int64_t[]){2, 3, 4});
    tiga_tensor *x, *t, *s, *r, *b, *flat;
    OK(tiga_tensor_from(h->ts, &a, TIGA_BORROW, &x));
    OK(tiga_tensor_permute(x, (int32_t[]){2, 0, 1}, &t));  /* [4, 2, 3] */
    OK(tiga_tensor_slice(t, 0, 3, 2, -2, &s));             /* [2, 2, 3], k = 3 and 1 */
    OK(tiga_tensor_reshape(s, SHAPE(2, 6), &r));           /* [2, 6]: its last two axes are one run */
    OK(tiga_tensor_broadcast(x, SHAPE(5, 2, 3, 4), &b));
    OK(tiga_tensor_reshape(t, SHAPE(24), &flat));          /* not without moving */
    cr_assert_eq(how_of(s), TIGA_TENSOR_VIEW);
    cr_assert_eq(how_of(r), TIGA_TENSOR_VIEW);
    cr_assert_eq(how_of(b), TIGA_TENSOR_VIEW);
    cr_assert_eq(how_of(flat), TIGA_TENSOR_PENDING);
    cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0, "nothing was allocated");
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 6; i++)
            cr_assert_eq(f32_of(h, r)[k * 6 + i], (float)(i * 4 + (k ? 1 : 3)));
    for (int i = 0; i < 24; i++)
        cr_assert_eq(f32_of(h, flat)[i], (float)(i % 6 * 4 + i / 6));
    tiga_tensor *sum = fold(h, "sum", b, TIGA_ALL_AXES, 0);
    cr_assert_eq(f32_of(h, sum)[0], 5 * 276);
    FREE(x, t, s, r, b, flat, sum);
}

Test(tensor_types, movement) {
    tiga_tensor *x, *index, *g, *c, *s, *hot;
    OK(tiga_tensor_arange(h->ts, TIGA_F32, 0, 6, 1, &x));
    tiga_tensor *m;
    OK(tiga_tensor_reshape(x, SHAPE(3, -1), &m));
    int64_t at[] = {2, -5, 9}, got[9];
    tiga_array a = tiga_array_borrow(at, TIGA_I64, 1, (int64_t[]){3});
    OK(tiga_tensor_from(h->ts, &a, TIGA_COPY, &index));
    OK(tiga_tensor_gather(m, index, 0, &g)); /* rows 2, 0, 2 */
    static const float rows[] = {4, 5, 0, 1, 4, 5};
    cr_assert_eq(memcmp(f32_of(h, g), rows, sizeof rows), 0);
    OK(tiga_tensor_concat((tiga_tensor *[]){m, g}, 2, 1, &c));
    cr_assert(f32_of(h, c)[4] == 2 && f32_of(h, c)[6] == 0 && tiga_tensor_shape(c)[1] == 4);
    OK(tiga_tensor_stack((tiga_tensor *[]){x, x}, 2, -1, &s));
    cr_assert(f32_of(h, s)[2] == 1 && f32_of(h, s)[3] == 1 && tiga_tensor_shape(s)[0] == 6);
    OK(tiga_tensor_one_hot(index, 3, TIGA_I64, &hot));
    OK(tiga_tensor_copy_to(hot, got, sizeof got));
    for (int i = 0; i < 9; i++)
        cr_assert_eq(got[i], i == 2);
    FREE(x, m, index, g, c, s, hot);
}

Test(tensor_types, where_a_mask_holds) {
    int64_t at[6];
    tiga_tensor *x, *limit, *mask, *there, *none, *where;
    OK(tiga_tensor_arange(h->ts, TIGA_F32, 0, 6, 1, &x));
    tiga_tensor *m, *turned;
    OK(tiga_tensor_reshape(x, SHAPE(2, 3), &m));
    OK(tiga_tensor_permute(m, NULL, &turned)); /* 0 3, 1 4, 2 5 */
    OK(tiga_tensor_number(h->ts, 2.5, &limit));
    OK(tiga_tensor_op("gt", (tiga_tensor *[]){turned, limit}, 2, &mask));
    OK(tiga_tensor_nonzero(mask, &there));
    cr_assert_eq(tiga_tensor_size(there), 3);
    OK(tiga_tensor_copy_to(there, at, 3 * sizeof at[0]));
    cr_assert(at[0] == 1 && at[1] == 3 && at[2] == 5);
    OK(tiga_tensor_op("not", &mask, 1, &none));
    OK(tiga_tensor_op("and", (tiga_tensor *[]){mask, none}, 2, &where));
    tiga_tensor_free(none);
    OK(tiga_tensor_nonzero(where, &none));
    cr_assert_eq(tiga_tensor_size(none), 0);
    tiga_tensor *out;
    cr_assert_eq(tiga_tensor_nonzero(x, &out), TIGA_E_TYPE);
    cr_assert_null(out);
    cr_assert_eq(tiga_tensor_nonzero(NULL, &out), TIGA_E_ARGUMENT);
    tiga_error_clear(h->ctx);
    FREE(x, m, turned, limit, mask, there, none, where);
}

Test(tensor_types, random_numbers) {
    tiga_tensor *x, *y, *d;
    OK(tiga_tensor_rand(h->ts, TIGA_F32, SHAPE(100000), 42, &x));
    OK(tiga_tensor_rand(h->ts, TIGA_F32, SHAPE(10, 10), 42, &y));
    OK(tiga_tensor_rand(h->ts, TIGA_F64, SHAPE(1), 42, &d));
    tiga_tensor *mean = fold(h, "mean", x, 1, 0), *least = fold(h, "min", x, 1, 0), *most = fold(h, "max", x, 1, 0);
    cr_assert_float_eq(f32_of(h, mean)[0], 0.5, 0.005);
    cr_assert(f32_of(h, least)[0] >= 0 && f32_of(h, most)[0] < 1);
    cr_assert_eq(memcmp(f32_of(h, x), f32_of(h, y), 400), 0, "element i depends on seed and i alone");
    uint32_t bits;
    memcpy(&bits, f32_of(h, x), 4);
    cr_assert_eq(bits, 0x3eafc3f4u, "%#x: the same on every machine", bits);
    FREE(x, y, d, mean, least, most);
}

Test(tensor_types, refused) {
    tiga_tensor *x = filled(h, SHAPE(2, 3), 1), *d = cast(x, TIGA_F64), *b = op2(h, "lt", x, x), *y;
    tiga_tensor *pair[] = {x, d}, *bools[] = {b, b}, *none[] = {x, NULL};
    FAILS(tiga_tensor_op("add", pair, 2, &y), TIGA_E_TYPE, "f32 and f64; cast");
    FAILS(tiga_tensor_op("add", bools, 2, &y), TIGA_E_TYPE, "not defined on bool");
    FAILS(tiga_tensor_op("ad", pair, 2, &y), TIGA_E_NAME, "did you mean 'add'");
    FAILS(tiga_tensor_op("exp", pair, 2, &y), TIGA_E_ARGUMENT, "takes 1 operand");
    FAILS(tiga_tensor_op("add", none, 2, &y), TIGA_E_ARGUMENT, "a tensor is NULL");
    FAILS(tiga_tensor_matmul(x, x, &y), TIGA_E_TYPE, "f32[2, 3] and f32[2, 3]");
    FAILS(tiga_tensor_reshape(x, SHAPE(4, -1), &y), TIGA_E_TYPE, "f32[2, 3] to [4, -1]");
    FAILS(tiga_tensor_slice(x, 1, 1, 3, 1, &y), TIGA_E_TYPE, "3 elements from 1 by 1 of an axis of 3");
    FAILS(tiga_tensor_slice(x, 2, 0, 1, 1, &y), TIGA_E_ARGUMENT, "axis 2 of a tensor with 2 axes");
    FAILS(tiga_tensor_fold(x, "median", 1, 0, &y), TIGA_E_NAME, "no fold 'median'");
    FAILS(tiga_tensor_fold(x, "any", 1, 0, &y), TIGA_E_TYPE, "not defined on f32");
    FAILS(tiga_tensor_broadcast(x, SHAPE(2, 2), &y), TIGA_E_TYPE, "does not stretch");
    FAILS(tiga_tensor_copy_to(x, &y, 4), TIGA_E_ARGUMENT, "has 24 bytes, not 4");
    FAILS(tiga_tensor_full(h->ts, TIGA_F32, SHAPE(1 << 30, 1 << 30, 1 << 30), 0, &y), TIGA_E_ARGUMENT, "fits into");
    FREE(x, d, b);
}

Test(tensor_types, kernel_of_a_module) {
    static const char text[] = "kernel total[F](src x: f32[F], edge w: f32) -> (s: f32[F], n: i64) {\n"
                               "    return (s = reduce sum(edge.w * src.x), n = reduce count())\n}\n";
    tiga_module *m;
    tiga_graph *g;
    OK(tiga_jit_source(h->ctx, text, strlen(text), NULL, &m, NULL));
    OK(tiga_graph_from_coo(h->ctx, 2, 3, 3, (int64_t[]){0, 0, 1}, (int64_t[]){0, 2, 1}, &g));
    tiga_tensor *x = filled(h, SHAPE(3, 4), 1), *doubled = op2(h, "add", x, x), *w;
    OK(tiga_tensor_full(h->ts, TIGA_F32, SHAPE(3), 0.5, &w));
    tiga_tensor_binding in[] = {{"x", doubled}, {"w", w}}, out[] = {{"s", NULL}, {"n", NULL}};
    OK(tiga_tensor_call(h->ts, m, "total", &g, 1, in, 2, out, 2));
    tiga_tensor *twice = op2(h, "mul", out[0].tensor, out[0].tensor);
    for (int k = 0; k < 4; k++) {
        float want = f32_of(h, x)[k] + f32_of(h, x)[8 + k];
        cr_assert_float_eq(f32_of(h, twice)[k], want * want, 1e-5);
    }
    int64_t n[2];
    OK(tiga_tensor_copy_to(out[1].tensor, n, sizeof n));
    cr_assert(n[0] == 2 && n[1] == 1);
    cr_assert_eq(how_of(out[0].tensor), TIGA_TENSOR_CALLED);
    in[0].name = "y";
    FAILS(tiga_tensor_call(h->ts, m, "total", &g, 1, in, 2, out, 2), TIGA_E_NAME, "y");
    FREE(x, doubled, w, twice);
    tiga_graph_free(g);
    tiga_module_free(m);
}

Test(tensor_types, long_chain) { /* neither building, running nor freeing goes down the stack */
    enum { LENGTH = 3000 };
    tiga_tensor *x = filled(h, SHAPE(4), 1), *one, *y = tiga_tensor_retain(x);
    OK(tiga_tensor_integer(h->ts, 1, &one));
    for (int i = 0; i < LENGTH; i++) {
        tiga_tensor *next = op2(h, "add", y, one);
        tiga_tensor_free(y);
        y = next;
    }
    cr_assert_eq(f32_of(h, y)[0], f32_of(h, x)[0] + LENGTH); /* eighths: exact */
    FREE(x, one, y);
    tiga_tensor *z = filled(h, SHAPE(4), 1);
    for (int i = 0; i < 200000; i++) {
        tiga_tensor *next = op1(h, "neg", z);
        tiga_tensor_free(z);
        z = next;
    }
    tiga_tensor_free(z);
}

Test(tensor_types, sizes_beside_nothing) { /* no elements, but sizes whose product is no number */
    enum { REFUSED = TIGA_E_ARGUMENT };
    const int64_t big = (int64_t)1 << 40, most = INT64_MAX;
    tiga_tensor *x, *y, *z, *s, *ints, *flags = NULL;
    OK(tiga_tensor_rand(h->ts, TIGA_F32, SHAPE(0, big, big), 1, &x));
    FAILS(tiga_tensor_fold(x, "sum", 1, 0, &y), REFUSED, "larger than any memory");
    OK(tiga_tensor_permute(x, NULL, &y));
    OK(tiga_tensor_slice(y, 0, 3, 4, big / 8, &z));
    s = op2(h, "add", z, z);
    OK(tiga_tensor_realize(&s, 1));
    cr_assert_eq(tiga_tensor_size(s), 0);
    FREE(x, y, z, s);
    OK(tiga_tensor_rand(h->ts, TIGA_F32, SHAPE(5, 3), 1, &x)); /* steps whose product is 2 to the power 80 */
    OK(tiga_tensor_slice(x, 0, 0, 0, big, &y));
    OK(tiga_tensor_slice(y, 0, 0, 0, big, &z));
    s = fold(h, "sum", z, 1, 0);
    cr_assert_eq(f32_of(h, s)[2], 0);
    FREE(x, y, z, s);
    OK(tiga_tensor_full(h->ts, TIGA_F32, SHAPE(most, 0), 1, &x));
    OK(tiga_tensor_full(h->ts, TIGA_F32, SHAPE(0, most), 1, &y));
    FAILS(tiga_tensor_matmul(x, y, &z), REFUSED, "larger than any memory");
    FREE(x, y);
    x = filled(h, SHAPE(3, 2), 1);
    OK(tiga_tensor_slice(x, 0, 2, 1, most, &y));
    cr_assert_eq(f32_of(h, y)[1], f32_of(h, x)[5]);
    OK(tiga_tensor_slice(x, 0, 0, 1, -most, &z));
    s = op2(h, "add", y, z);
    cr_assert_eq(f32_of(h, s)[0], f32_of(h, x)[4] + f32_of(h, x)[0]);
    ints = cast(x, TIGA_I32);
    FAILS(tiga_tensor_fold(ints, "mean", 0, 0, &flags), TIGA_E_TYPE, "mean is not defined on i32");
    FAILS(tiga_tensor_fold(x, "any", 0, 0, &flags), TIGA_E_TYPE, "not defined on f32");
    FREE(x, y, z, s, ints);
}

Test(tensor_types, matmul_of_seven_axes) { /* of which the first has one element */
    tiga_tensor *a = filled(h, SHAPE(1, 2, 1, 2, 1, 2, 3), 1), *b = filled(h, SHAPE(3, 2), 2), *y, *m, *z;
    OK(tiga_tensor_matmul(a, b, &y));
    cr_assert_eq(tiga_tensor_rank(y), 7);
    OK(tiga_tensor_reshape(a, SHAPE(8, 3), &m));
    OK(tiga_tensor_matmul(m, b, &z));
    cr_assert(!memcmp(f32_of(h, y), f32_of(h, z), 16 * sizeof(float)));
    FREE(a, b, y, m, z);
}
