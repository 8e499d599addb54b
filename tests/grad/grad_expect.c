/* Gradients whose numbers are known: published ones, ties, kinks, NaN, empty rows; and what a gradient costs in memory. */
#include "grad_module.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "kernel weighted_sum[F](src x: f32[F], edge w: f32) -> f32[F] { return reduce sum(edge.w * src.x) }\n"
    "kernel scalar_sum(src x: f32, edge w: f32) -> f32 { return reduce sum(edge.w * src.x) }\n"
    "kernel average(node u: f32) -> f32 { return reduce mean(src.u) }\n"
    "kernel highest(src x: f32, edge w: f32) -> f32 { return reduce max(src.x + edge.w) }\n"
    "kernel highest_of_two[F](src x: f32[F]) -> f32[F] { return reduce max(src.x) }\n"
    "kernel kinks(dst x: f32) -> (a: f32, b: f32, c: f32, d: f32) {\n"
    "    return (a = relu(dst.x), b = abs(dst.x), c = min(dst.x, 1), d = sigmoid(dst.x))\n"
    "}\n"
    "kernel product(src x: f32) -> f32 { return reduce prod(src.x) }\n"
    "kernel attention[F](src h: f32[F], src a: f32) -> f32[F] { return reduce softmax(src.a, src.h) }\n"
    "program train[F](g: graph, h: f32[g.src, F], a: f32[g.src]) -> (out: f32[g.dst, F], dh: f32[g.src, F], da: f32[g.src]) {\n"
    "    let out = attention(g, h = h, a = a)\n"
    "    let d = grad(sum(out * out), (h, a))\n"
    "    return (out = out, dh = d.h, da = d.a)\n"
    "}\n"
    "program grow(x: f32[N], rate: f32, rounds: i64) -> f32[N] {\n"
    "    var y = x\n"
    "    repeat rounds { y = y + rate * y * (1 - y) }\n"
    "    return y\n"
    "}\n"
    "reducer top(key: f32, v: f32) -> f32 {\n"
    "    state m: f32 = -inf, best: f32 = 0\n"
    "    lift (key, v)\n"
    "    combine (max(a.m, b.m), select(a.m >= b.m, a.best, b.best))\n"
    "    finalize best + 0 * m\n"
    "}\n"
    "program masked(x: f32[N], y: f32[N]) -> f32[N] {\n"
    "    let a = select(y > 0, x / y, 0) + select(y > 0, sqrt(y), 0) + select(y > 0, log(y), 0) + select(y > 0, pow(y, 0.5), 0)\n"
    "    let b = select(y > -1, log1p(y), 0) + select(abs(y) < 1, asin(y), 0) + select(abs(y) < 1, acos(y), 0)\n"
    "    return a + b + select(y > -3, 0, exp(-100 * y) + cosh(100 * y) + sinh(100 * y)) * 0\n"
    "}\n"
    "kernel growing(src x: f32) -> f32 { return reduce sum(exp(src.x)) }\n"
    "kernel best(src key: f32, src v: f32) -> f32 { return reduce top(src.key, src.v) }\n"
    "reducer top2(x: f32) -> f32 {\n"
    "    state m: f32 = -inf, n: f32 = -inf\n"
    "    lift (x, -inf)\n"
    "    combine (max(a.m, b.m), max(min(a.m, b.m), max(a.n, b.n)))\n"
    "    finalize n\n"
    "}\n"
    "kernel second(src x: f32) -> f32 { return reduce top2(src.x) }\n"
    "reducer faded(x: f32) -> f32 {\n"
    "    state p: f32 = 0, q: f64 = 0\n"
    "    lift (x, f64(x))\n"
    "    combine (f32(0.5 * a.q) + b.p, f64(0.5 * a.p) + b.q)\n"
    "    finalize p\n"
    "}\n"
    "kernel running(src x: f32) -> f32 { return reduce faded(src.x) }\n"
    "reducer grown(x: f32) -> f32 {\n"
    "    state s: f16 = 0\n"
    "    lift f16(x)\n"
    "    combine a.s + b.s + a.s * b.s\n"
    "    finalize s\n"
    "}\n"
    "kernel half(src x: f32) -> f32 { return reduce grown(src.x) }\n"
    "export vjp second(x)\n"
    "export vjp running(x)\n"
    "export vjp half(x)\nexport vjp half_vjp(x, cotangent)\n"
    "kernel even(src x: f32, dst b: f32) -> f32 { return dst.b * reduce std(src.x) }\n"
    "export vjp even(x, b)\nexport vjp even_vjp(x, b, cotangent)\n"
    "reducer least5(x: f32) -> f32 {\n"
    "    state m: f32 = 5\n"
    "    lift x\n"
    "    combine max(a.m, b.m)\n"
    "    finalize m\n"
    "}\n"
    "kernel capped(src x: f32, dst b: f32) -> f32 { return dst.b * reduce least5(src.x) }\n"
    "export vjp capped(x, b)\nexport vjp capped_vjp(x, b, cotangent)\n"
    "program halves(x: f32[N], a: f32) -> f32[N] {\n"
    "    let h = f16(x)\n"
    "    var y = h\n"
    "    if a > 2 { y = h * f16(a) } else { y = h * h }\n"
    "    return f32(y)\n"
    "}\n"
    "program angles(y: f32[N], x: f32[N]) -> f32[N] { return atan2(y, x) }\n"
    "program logs(x: f32[N], y: f32[N]) -> f32[N] { return real(log(c64(x, y))) + 2 * imag(log(c64(x, y))) }\n"
    "program roots(x: f32[N], y: f32[N]) -> (re: f32[N], im: f32[N]) { return (re = real(sqrt(c64(x, y))), im = imag(sqrt(c64(x, y)))) }\n"
    "export vjp halves(x, a)\n"
    "export vjp angles(y, x)\n"
    "export vjp logs(x, y)\n"
    "export vjp roots(x, y)\n"
    "export vjp best(key, v)\n"
    "export vjp masked(x, y)\n"
    "export vjp growing(x)\nexport vjp growing_vjp(x, cotangent)\n"
    "export vjp grow(x, rate)\n"
    "export vjp weighted_sum(x, w)\n"
    "export vjp scalar_sum(x, w)\n"
    "export vjp average(u)\n"
    "export vjp highest(x, w)\n"
    "export vjp highest_of_two(x)\n"
    "export vjp kinks(x)\n"
    "export vjp product(x)\n";

static tiga_context *ctx;
static tiga_module *module;
static int failures, checks;

static void compile(void) {
    tigac_options o = tigac_defaults();
    tigac_result *r = NULL;
    o.file_name = "expect.tg";
    if (tigac_compile(source, strlen(source), &o, &r) != TIGAC_OK) die("compile", r ? r->rendered : "out of memory");
    if (tiga_context_new(NULL, &ctx)) die("context", "cannot be made");
    module = load_module(ctx, r);
}

typedef struct array {
    const char *name;
    float *data;
    int rank;
    int64_t shape[2];
} array;

/* Arguments, then results, each list ended by an empty one. */
static tiga_call_stats call(const char *function, tiga_graph *g, array *in, array *out) {
    tiga_array arrays[16];
    tiga_binding b[16];
    tiga_call_stats stats = {0};
    int n_in = 0, n = 0;
    for (; in[n].name; n++) arrays[n] = tiga_array_borrow(in[n].data, TIGA_F32, in[n].rank, in[n].shape);
    n_in = n;
    for (; out[n - n_in].name; n++) arrays[n] = tiga_array_borrow(out[n - n_in].data, TIGA_F32, out[n - n_in].rank, out[n - n_in].shape);
    for (int i = 0; i < n; i++) b[i] = (tiga_binding){i < n_in ? in[i].name : out[i - n_in].name, &arrays[i]};
    if (tiga_call_many(ctx, module, function, &g, g != NULL, b, n_in, b + n_in, n - n_in, &stats)) die(function, tiga_error_text(ctx));
    return stats;
}

static void expect(const char *what, const float *got, int n, const float *want) {
    for (int i = 0; i < n; i++, checks++) {
        if (fabsf(got[i] - want[i]) <= 1e-6f * (1 + fabsf(want[i])) || (isnan(got[i]) && isnan(want[i]))) continue;
        printf("FAIL %s[%d] is %g, not %g\n", what, i, (double)got[i], (double)want[i]);
        failures++;
    }
}

static tiga_graph *graph(int64_t n_dst, int64_t n_src, const int64_t *offsets, const int64_t *sources) {
    tiga_graph *g;
    if (tiga_graph_from_csr(ctx, n_dst, n_src, offsets, sources, 64, TIGA_COPY, &g)) die("graph", tiga_error_text(ctx));
    return g;
}

#define IN(...) (array[]){__VA_ARGS__, {0}}

static void published_weighted_sum(void) {
    tiga_graph *g = graph(3, 3, (int64_t[]){0, 2, 3, 5}, (int64_t[]){0, 2, 1, 0, 1});
    float x[] = {1, 2, 3}, w[] = {2, 3, 4, 5, 6}, ones[] = {1, 1, 1}, dx[3], dw[5];
    call("scalar_sum_vjp", g, IN({"x", x, 1, {3}}, {"w", w, 1, {5}}, {"cotangent", ones, 1, {3}}), IN({"x", dx, 1, {3}}, {"w", dw, 1, {5}}));
    expect("dx", dx, 3, (float[]){7, 10, 3});
    expect("dw", dw, 5, (float[]){1, 3, 2, 1, 2});
    call("weighted_sum_vjp", g, IN({"x", x, 2, {3, 1}}, {"w", w, 1, {5}}, {"cotangent", ones, 2, {3, 1}}), IN({"x", dx, 2, {3, 1}}, {"w", dw, 1, {5}}));
    expect("dx[3, 1]", dx, 3, (float[]){7, 10, 3});
    tiga_graph_free(g);
}

/* 5 x 5, periodic, the four neighbours and the point itself. */
static void published_stencil(void) {
    int64_t offsets[26] = {0}, sources[125];
    float u[25], out[25], du[25], ones[25], all_ones[25];
    for (int i = 0; i < 25; i++) {
        int r = i / 5, c = i % 5, near[] = {i, (r + 4) % 5 * 5 + c, (r + 1) % 5 * 5 + c, r * 5 + (c + 4) % 5, r * 5 + (c + 1) % 5};
        for (int k = 0; k < 5; k++) sources[5 * i + k] = near[k];
        offsets[i + 1] = 5 * (i + 1);
        u[i] = (float)i;
        ones[i] = all_ones[i] = 1;
    }
    tiga_graph *g = graph(25, 25, offsets, sources);
    call("average", g, IN({"u", u, 1, {25}}), IN({"out", out, 1, {25}}));
    expect("centre", out + 12, 1, (float[]){12});
    expect("corner", out, 1, (float[]){6});
    call("average_vjp", g, IN({"u", u, 1, {25}}, {"cotangent", ones, 1, {25}}), IN({"u", du, 1, {25}}));
    expect("du", du, 25, all_ones);
    tiga_graph_free(g);
}

/* The walk-through of a CSR: three rows, the last without edges. */
static void published_walk_through(void) {
    tiga_graph *g = graph(3, 2, (int64_t[]){0, 2, 3, 3}, (int64_t[]){0, 1, 1});
    float x[] = {2, 3}, w[] = {4, 5, 2}, out[3], dx[2], ones[] = {1, 1, 1};
    call("scalar_sum", g, IN({"x", x, 1, {2}}, {"w", w, 1, {3}}), IN({"out", out, 1, {3}}));
    expect("out", out, 3, (float[]){23, 6, 0});
    float dw[3];
    call("scalar_sum_vjp", g, IN({"x", x, 1, {2}}, {"w", w, 1, {3}}, {"cotangent", ones, 1, {3}}), IN({"x", dx, 1, {2}}, {"w", dw, 1, {3}}));
    expect("walk-through dx", dx, 2, (float[]){4, 7});
    expect("walk-through dw", dw, 3, (float[]){2, 3, 3}); /* x at the source of each edge */
    tiga_graph_free(g);
}

static void ties(void) {
    tiga_graph *g = graph(3, 4, (int64_t[]){0, 4, 5, 5}, (int64_t[]){0, 1, 1, 2, 3});
    float x[] = {5, 5, 2, NAN}, ct[] = {6, 1, 1}, dx[4], dw[5], w5[] = {0, 0, -1, 3, 0};
    call("highest_vjp", g, IN({"x", x, 1, {4}}, {"w", w5, 1, {5}}, {"cotangent", ct, 1, {3}}), IN({"x", dx, 1, {4}}, {"w", dw, 1, {5}}));
    expect("tied dx", dx, 4, (float[]){2, 2, 2, 0}); /* three edges tie; a NaN gives nothing */
    expect("tied dw", dw, 5, (float[]){2, 2, 0, 2, 0});
    float two[] = {1, 7, 1, 7, 1, 6, 0, 0}, c2[] = {6, 6, 1, 1, 1, 1}, d2[8];
    call("highest_of_two_vjp", g, IN({"x", two, 2, {4, 2}}, {"cotangent", c2, 2, {3, 2}}), IN({"x", d2, 2, {4, 2}}));
    expect("tied features", d2, 8, (float[]){1.5f, 2, 3, 4, 1.5f, 0, 1, 1}); /* the second source stands there twice */
    tiga_graph_free(g);
}

/* Of edges with the highest key those share that have the value that was kept. */
static void payload(void) {
    tiga_graph *g = graph(2, 4, (int64_t[]){0, 5, 6}, (int64_t[]){0, 1, 2, 3, 1, 3});
    float key[] = {1, 7, 7, 7}, v[] = {9, 4, 5, 4}, ct[] = {6, 1}, dkey[4], dv[4];
    call("best_vjp", g, IN({"key", key, 1, {4}}, {"v", v, 1, {4}}, {"cotangent", ct, 1, {2}}), IN({"key", dkey, 1, {4}}, {"v", dv, 1, {4}}));
    expect("payload dkey", dkey, 4, (float[]){0, 0, 0, 0});
    expect("payload dv", dv, 4, (float[]){0, 4, 0, 3});
    tiga_graph_free(g);
}

/* Edge by edge, with numbers written down: a row of four edges in which three tie, states of two types and of 16 bits. */
static void steps(void) {
    tiga_graph *g = graph(2, 4, (int64_t[]){0, 4, 4}, (int64_t[]){0, 1, 2, 3});
    float x[] = {5, 7, 7, 7}, ct[] = {8, 1}, dx[4];
    call("second_vjp", g, IN({"x", x, 1, {4}}, {"cotangent", ct, 1, {2}}), IN({"x", dx, 1, {4}}));
    expect("second of three that tie", dx, 4, (float[]){0, 3, 3, 2}); /* halved at each meeting of equals */
    float y[] = {0.5f, 1, 2, 3};
    call("running_vjp", g, IN({"x", y, 1, {4}}, {"cotangent", ct, 1, {2}}), IN({"x", dx, 1, {4}}));
    expect("two types", dx, 4, (float[]){1, 2, 4, 8}); /* s = s / 2 + x */
    call("half_vjp", g, IN({"x", y, 1, {4}}, {"cotangent", ct, 1, {2}}), IN({"x", dx, 1, {4}}));
    expect("16 bits", dx, 4, (float[]){8 * 2 * 3 * 4, 8 * 1.5f * 3 * 4, 8 * 1.5f * 2 * 4, 8 * 1.5f * 2 * 3}); /* prod(1 + x) - 1 */
    float of_first[] = {1, 0, 0, 0}, dct[2];
    call("half_vjp_vjp", g, IN({"x", y, 1, {4}}, {"cotangent", ct, 1, {2}}, {"cotangent_x", of_first, 1, {4}}), IN({"x", dx, 1, {4}}, {"cotangent", dct, 1, {2}}));
    expect("a second gradient edge by edge", dx, 4, (float[]){0, 8 * 3 * 4, 8 * 2 * 4, 8 * 2 * 3});
    expect("its cotangent", dct, 2, (float[]){2 * 3 * 4, 0});
    tiga_graph_free(g);
}

/* f(f(... x ...)), so many times. */
static void add_nested(char *text, size_t size, const char *f, const char *x, int times) {
    for (int i = 0; i < times; i++) snprintf(text + strlen(text), size - strlen(text), "%s(", f);
    snprintf(text + strlen(text), size - strlen(text), "%s", x);
    for (int i = 0; i < times; i++) snprintf(text + strlen(text), size - strlen(text), ")");
}

static void compiles(const char *what, const char *text) {
    tigac_options o = tigac_defaults();
    tigac_result *r = NULL;
    o.emit = TIGAC_EMIT(TIGAC_GRAPH_IR);
    o.passes = "expand,grad";
    checks++;
    if (tigac_compile(text, strlen(text), &o, &r) != TIGAC_OK)
        printf("FAIL %s: %s %s\n", what, r->rendered, r->error), failures++;
    tigac_result_free(r);
}

/* A combine of 54000 operations, one on the other, and keys that are 2^40 additions where nothing is remembered. */
static void large_combines(void) {
    static char text[8000];
    strcpy(text, "fn f(x: f32) -> f32 = x");
    for (int i = 0; i < 30; i++) strcat(text, " + x - x");
    strcat(text, "\nfn g(x: f32) -> f32 = ");
    add_nested(text, sizeof text, "f", "x", 30);
    strcat(text, "\nreducer r(x: f32) -> f32 {\nstate s: f32 = 0\nlift x\ncombine ");
    add_nested(text, sizeof text, "g", "a.s + b.s + a.s * b.s", 30);
    strcat(text, "\nfinalize s\n}\nkernel k(src x: f32) -> f32 { return reduce r(src.x) }\nexport vjp k(x)\n");
    compiles("a long combine", text);
    strcpy(text, "fn d(x: f32) -> f32 = x + x\nfn e(x: f32) -> f32 = ");
    add_nested(text, sizeof text, "d", "x", 40);
    strcat(text, "\nreducer r(x: f32, y: f32) -> f32 {\nstate k: f32 = 0, v: f32 = 0\nlift (x, y)\n"
                 "combine (select(e(a.k) >= e(b.k), a.k, b.k), select(e(a.k) >= e(b.k), a.v, b.v))\n"
                 "finalize v + 0 * k\n}\nkernel k(src x: f32, edge y: f32) -> f32 { return reduce r(src.x, edge.y) }\nexport vjp k(x, y)\n");
    compiles("shared operands", text);
}

static void kinks(void) {
    tiga_graph *g = graph(4, 4, (int64_t[]){0, 0, 0, 0, 0}, (int64_t[]){0});
    float x[] = {0, 1, -200, 200}, one[] = {1, 1, 1, 1}, none[] = {0, 0, 0, 0}, dx[4];
    array in[] = {{"x", x, 1, {4}}, {"cotangent_a", none, 1, {4}}, {"cotangent_b", none, 1, {4}}, {"cotangent_c", none, 1, {4}}, {"cotangent_d", none, 1, {4}}, {0}};
    static const float want[4][4] = {{0.5f, 1, 0, 1}, {0, 1, -1, 1}, {1, 0.5f, 1, 0}, {0.25f, 0.19661193f, 0, 0}};
    for (int i = 0; i < 4; i++) {
        in[1 + i].data = one;
        call("kinks_vjp", g, in, IN({"x", dx, 1, {4}}));
        expect(in[1 + i].name, dx, 4, want[i]);
        in[1 + i].data = none;
    }
    tiga_graph_free(g);
}

/* 16-bit values that an if uses have cotangents of f32. */
static void halves(void) {
    float x[] = {1, 3}, a[] = {4}, ct[] = {1, 2}, dx[2], da[1];
    call("halves_vjp", NULL, IN({"x", x, 1, {2}}, {"a", a, 0, {0}}, {"cotangent", ct, 1, {2}}), IN({"x", dx, 1, {2}}, {"a", da, 0, {0}}));
    expect("halves dx", dx, 2, (float[]){4, 8});
    expect("halves da", da, 1, (float[]){7});
    a[0] = 1;
    call("halves_vjp", NULL, IN({"x", x, 1, {2}}, {"a", a, 0, {0}}, {"cotangent", ct, 1, {2}}), IN({"x", dx, 1, {2}}, {"a", da, 0, {0}}));
    expect("halves dx, else", dx, 2, (float[]){2, 12});
    expect("halves da, else", da, 1, (float[]){0});
}

/* The squares of these are beyond f32. */
static void sizes_of_angles(void) {
    float y[] = {1e-25f, 1e20f, 3}, x[] = {1e-25f, 1e20f, 4}, ct[] = {1e-20f, 1e20f, 25}, dy[3], dx[3];
    call("angles_vjp", NULL, IN({"y", y, 1, {3}}, {"x", x, 1, {3}}, {"cotangent", ct, 1, {3}}), IN({"y", dy, 1, {3}}, {"x", dx, 1, {3}}));
    expect("atan2 dy", dy, 3, (float[]){5e4f, 0.5f, 4});
    expect("atan2 dx", dx, 3, (float[]){-5e4f, -0.5f, -3});
    call("logs_vjp", NULL, IN({"x", x, 1, {3}}, {"y", y, 1, {3}}, {"cotangent", ct, 1, {3}}), IN({"x", dx, 1, {3}}, {"y", dy, 1, {3}}));
    expect("log dx", dx, 3, (float[]){-5e4f, -0.5f, -2});
    expect("log dy", dy, 3, (float[]){15e4f, 1.5f, 11});
}

/* On the cut the root is that of the side that the sign of the imaginary part names; what PyTorch gives. */
static void roots_on_axes(void) {
    float x[] = {-4, -4, 0, 4}, y[] = {0, -0.0f, 2, 0}, one[] = {1, 1, 1, 1}, none[4] = {0}, dx[4], dy[4];
    call("roots_vjp", NULL, IN({"x", x, 1, {4}}, {"y", y, 1, {4}}, {"cotangent_re", one, 1, {4}}, {"cotangent_im", none, 1, {4}}), IN({"x", dx, 1, {4}}, {"y", dy, 1, {4}}));
    expect("root re dx", dx, 4, (float[]){0, 0, 0.25f, 0.25f});
    expect("root re dy", dy, 4, (float[]){0.25f, -0.25f, 0.25f, 0});
    call("roots_vjp", NULL, IN({"x", x, 1, {4}}, {"y", y, 1, {4}}, {"cotangent_re", none, 1, {4}}, {"cotangent_im", one, 1, {4}}), IN({"x", dx, 1, {4}}, {"y", dy, 1, {4}}));
    expect("root im dx", dx, 4, (float[]){-0.25f, 0.25f, -0.25f, 0});
    expect("root im dy", dy, 4, (float[]){0, 0, 0.25f, 0.25f});
}

/* Where a gradient is 0 because nothing is there to be divided among, its gradient is no 0 / 0. */
static void quotients_not_taken(void) {
    static const char *const names[] = {"even_vjp_vjp", "capped_vjp_vjp"};
    tiga_graph *g = graph(2, 3, (int64_t[]){0, 2, 3}, (int64_t[]){0, 1, 2});
    float x[] = {2, 2, 3}, b[] = {1, 2}, ct[] = {1, 3}, cx[] = {1, 1, 1}, cb[] = {1, 1}, dx[3], db[2], dct[2];
    for (int i = 0; i < 2; i++) {
        call(names[i], g, IN({"x", x, 1, {3}}, {"b", b, 1, {2}}, {"cotangent", ct, 1, {2}}, {"cotangent_x", cx, 1, {3}}, {"cotangent_b", cb, 1, {2}}),
             IN({"x", dx, 1, {3}}, {"b", db, 1, {2}}, {"cotangent", dct, 1, {2}}));
        expect("quotient x", dx, 3, (float[]){0, 0, 0});
        expect("quotient b", db, 2, (float[]){0, 0});
        expect("quotient cotangent", dct, 2, i ? (float[]){5, 5} : (float[]){0, 0});
    }
    tiga_graph_free(g);
}

/* Two gradients in one training loop, neither of which is differentiated, keep their states on the stack. */
/* A cotangent of 0 gives 0 also where the derivative is infinite or none... */
static void derivatives_not_taken(void) {
    float x[] = {3, 1, 2}, y[] = {4, 0, -2}, ct[] = {1, 1, 1}, dx[3], dy[3];
    call("masked_vjp", NULL, IN({"x", x, 1, {3}}, {"y", y, 1, {3}}, {"cotangent", ct, 1, {3}}), IN({"x", dx, 1, {3}}, {"y", dy, 1, {3}}));
    expect("masked dx", dx, 3, (float[]){0.25f, 0, 0});
    /* -x / y^2, 1 / (2 sqrt y) twice, 1 / y, 1 / (1 + y); at 0 that of log1p, and asin's less acos' */
    expect("masked dy", dy, 3, (float[]){-0.1875f + 0.25f + 0.25f + 0.25f + 0.2f, 1, 0});
}

/* ... but is differentiated with respect to itself. */
static void gradient_of_a_cotangent_of_0(void) {
    tiga_graph *g = graph(2, 2, (int64_t[]){0, 2, 3}, (int64_t[]){0, 1, 0});
    float x[] = {0.5f, 1}, ct[] = {0, 0}, cx[] = {1, 2}, dx[2], dct[2];
    call("growing_vjp_vjp", g, IN({"x", x, 1, {2}}, {"cotangent", ct, 1, {2}}, {"cotangent_x", cx, 1, {2}}), IN({"x", dx, 1, {2}}, {"cotangent", dct, 1, {2}}));
    expect("growing dx", dx, 2, (float[]){0, 0});
    expect("growing dct", dct, 2, (float[]){expf(0.5f) + 2 * expf(1), expf(0.5f)});
    tiga_graph_free(g);
}

static void two_gradients_in_a_loop(void) {
    static const char text[] = "program two(x: f64[N], w0: f64, v0: f64) -> (w: f64, v: f64) {\nvar w = w0\nvar v = v0\nrepeat 2 {\n"
                               "var y = x\nrepeat 2000 { y = tanh(w * y) }\nvar z = x\nrepeat 2000 { z = tanh(v * z + w) }\n"
                               "let dw = grad(sum(y), w)\nlet dv = grad(sum(z), v)\nw = w - 0.1 * dw\nv = v - 0.1 * dv\n}\nreturn (w = w, v = v)\n}\n";
    tigac_options o = tigac_defaults();
    tigac_result *r = NULL;
    o.emit = TIGAC_EMIT(TIGAC_GRAPH_IR);
    o.passes = "expand,grad";
    if (tigac_compile(text, strlen(text), &o, &r) != TIGAC_OK) die("two gradients", r ? r->rendered : "out of memory");
    int pops = 0;
    for (const char *p = r->outputs[TIGAC_GRAPH_IR].bytes; (p = strstr(p, "= pop")); p++) pops++;
    checks++;
    if (pops != 6) printf("FAIL two gradients in a loop: %d values popped, not 6\n", pops), failures++;
    tigac_result_free(r);
}

static void zeros_in_a_product(void) {
    tiga_graph *g = graph(3, 5, (int64_t[]){0, 3, 6, 7}, (int64_t[]){0, 1, 2, 2, 3, 3, 4});
    float x[] = {2, 3, 0, 0, 5}, ones[] = {1, 1, 1}, dx[5];
    call("product_vjp", g, IN({"x", x, 1, {5}}, {"cotangent", ones, 1, {3}}), IN({"x", dx, 1, {5}}));
    expect("product", dx, 5, (float[]){0, 0, 6, 0, 1});
    tiga_graph_free(g);
}

/* Beyond inputs and outputs at most two row arrays, and nothing of size edges x features. */
static void memory(void) {
    enum { N = 2000, DEGREE = 20, F = 16 };
    int64_t *offsets = calloc(N + 1, 8), *sources = calloc(N * DEGREE, 8);
    float *h = calloc(N * F, 4), *a = calloc(N, 4), *out = calloc(N * F, 4), *dh = calloc(N * F, 4), *da = calloc(N, 4);
    for (int64_t i = 0; i < N; i++) offsets[i + 1] = DEGREE * (i + 1);
    for (int64_t e = 0; e < N * DEGREE; e++) sources[e] = e * 7919 % N;
    for (int i = 0; i < N * F; i++) h[i] = (float)(i % 13) / 13;
    for (int i = 0; i < N; i++) a[i] = (float)(i % 7) / 7;
    tiga_graph *g = graph(N, N, offsets, sources);
    tiga_call_stats s = call("train", g, IN({"h", h, 2, {N, F}}, {"a", a, 1, {N}}), IN({"out", out, 2, {N, F}}, {"dh", dh, 2, {N, F}}, {"da", da, 1, {N}}));
    int64_t most = 2 * N * F * 4;
    checks++;
    if (s.peak_bytes <= 0 || s.peak_bytes > most) printf("FAIL peak %lld bytes, at most %lld\n", (long long)s.peak_bytes, (long long)most), failures++;
    printf("attention, forward and backward: %lld bytes of buffers, a row array is %d\n", (long long)s.peak_bytes, N * F * 4);
    tiga_graph_free(g);
    free(offsets), free(sources), free(h), free(a), free(out), free(dh), free(da);
}

/* The beginnings of segments and the rounds of one of them: about 2 sqrt(n) states of n rounds. */
static void memory_of_rounds(int64_t n, int64_t states) {
    enum { N = 5000 };
    static float x[N], ct[N], dx[N], rate[1], drate[1];
    int64_t rounds[1] = {n};
    rate[0] = 4 / (float)n;
    for (int i = 0; i < N; i++) x[i] = 0.1f + (float)i / (2 * N), ct[i] = 1;
    tiga_call_stats s = {0};
    tiga_array a[] = {tiga_array_borrow(x, TIGA_F32, 1, (int64_t[]){N}), tiga_array_borrow(rate, TIGA_F32, 0, NULL),
                      tiga_array_borrow(rounds, TIGA_I64, 0, NULL), tiga_array_borrow(ct, TIGA_F32, 1, (int64_t[]){N}),
                      tiga_array_borrow(dx, TIGA_F32, 1, (int64_t[]){N}), tiga_array_borrow(drate, TIGA_F32, 0, NULL)};
    tiga_binding in[] = {{"x", &a[0]}, {"rate", &a[1]}, {"rounds", &a[2]}, {"cotangent", &a[3]}}, out[] = {{"x", &a[4]}, {"rate", &a[5]}};
    if (tiga_call_many(ctx, module, "grow_vjp", NULL, 0, in, 4, out, 2, &s)) die("grow_vjp", tiga_error_text(ctx));
    printf("%lld rounds backward: %lld bytes of buffers, %lld states\n", (long long)n, (long long)s.peak_bytes, (long long)s.peak_bytes / (N * 4));
    checks++;
    if (s.peak_bytes <= 0 || s.peak_bytes > states * N * 4) printf("FAIL that is too much\n"), failures++;
}

int main(void) {
    compile();
    published_weighted_sum();
    published_stencil();
    published_walk_through();
    ties();
    payload();
    steps();
    large_combines();
    kinks();
    halves();
    sizes_of_angles();
    roots_on_axes();
    quotients_not_taken();
    derivatives_not_taken();
    gradient_of_a_cotangent_of_0();
    two_gradients_in_a_loop();
    zeros_in_a_product();
    memory();
    memory_of_rounds(400, 60);
    memory_of_rounds(10000, 220);
    printf("%d checks, %d failures\n", checks, failures);
    tiga_module_free(module);
    tiga_context_free(ctx);
    return failures != 0;
}
