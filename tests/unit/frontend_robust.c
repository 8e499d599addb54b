/* Hostile and broken input: deep, huge, binary, cut short; memory that runs out; defines; heads of functions. */
#include "frontend/frontend.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char GOOD[] =
    "fn silu(x: T) -> T = x / (1 + exp(-x))\n"
    "kernel k[F](src x: f32[F], edge w: f32, node u: f32, param p: f32[F]) -> (a: f32[F], b: i64) {\n"
    "    let m = silu(src.x) * edge.w + (src.u - dst.u) * p\n"
    "    return (a = reduce sum(m, empty = 1), b = reduce count())\n"
    "}\n"
    "program p[F](g: graph, x: f32[g.src, F], y: f32[g.dst]) -> f32[g.dst, F] {\n"
    "    var v = x\n"
    "    repeat 3 {\n"
    "        let r = k(g, x = v, w = 1, u = y, p = 0.5)\n"
    "        v = r.a\n"
    "    }\n"
    "    return v\n"
    "}\n";

/* Compiles; number of errors, the first id in *id. */
static size_t errors_of(const char *text, const char **id) {
    base_arena *a = base_arena_new();
    base_diags d;
    base_str shown = {0}, err = {0};
    base_diags_init(&d, a, "t.tg", text);
    ir_module *m = fe_compile(a, "t.tg", text, NULL, 0, &d);
    base_diags_render(&d, false, &shown);
    cr_expect_eq(m == NULL, d.n_errors > 0);
    if (m)
        cr_expect(ir_verify(m, &err), "%s", base_str_text(&err));
    *id = NULL;
    for (size_t i = 0; i < d.n && !*id; i++)
        if (d.items[i]->severity == BASE_ERROR)
            *id = fe_error_find(d.items[i]->id)->id;
    size_t n = d.n_errors;
    base_str_fini(&shown);
    base_str_fini(&err);
    base_arena_free(a);
    return n;
}

static char *repeated(const char *head, const char *part, size_t n, const char *tail) {
    size_t h = strlen(head), p = strlen(part), t = strlen(tail);
    char *s = malloc(h + p * n + t + 1);
    cr_assert_not_null(s);
    memcpy(s, head, h);
    for (size_t i = 0; i < n; i++)
        memcpy(s + h + i * p, part, p);
    memcpy(s + h + n * p, tail, t + 1);
    return s;
}

static void expect_id(const char *head, const char *part, size_t n, const char *tail, const char *want) {
    char *text = repeated(head, part, n, tail);
    const char *id;
    errors_of(text, &id);
    cr_expect(want ? id && strcmp(id, want) == 0 : !id, "%.30s %zu times '%.20s': %s", head, n, part,
              id ? id : "no error");
    free(text);
}

#define HEAD "kernel k(src x: f32) -> f32 {\n return reduce sum("
#define PROGRAM "program p(g: graph, x: f32[g.dst]) -> f32[g.dst] {\n var y = x\n "

Test(robust, deep_and_huge_input) {
    expect_id(HEAD, "(", 100000, "", "E0104");
    expect_id(HEAD, "-", 100000, "src.x)\n}", "E0104");
    expect_id("kernel k(src x: f32) -> f32 { return f32(reduce any(", "not ", 100000, "true))\n}", "E0104");
    expect_id(HEAD, "exp(", 100000, "src.x", "E0104");
    expect_id(HEAD "src.x", " + src.x", 200000, ")\n}", "E0104");
    expect_id(HEAD "src.x", " ^ 2", 100000, ")\n}", "E0104");
    expect_id(HEAD "src.x", " + src.x", 400, ")\n}", NULL);
    expect_id(HEAD "src.x", "\n   + src.x", 400, ")\n}", NULL);
    expect_id(HEAD "reduce sum(", "reduce sum(", 100000, "src.x", "E0104");
    expect_id(PROGRAM, "repeat 2 { ", 100000, "", "E0104");
    expect_id(PROGRAM, "y = y + 1\n", 2000, "return y\n}", NULL);
    expect_id(PROGRAM, "y = y + 1\n", 70000, "return y\n}", "E0104");
    expect_id(PROGRAM "return y", ".z", 100000, "\n}", "E0104");
    expect_id("", "{", 1000000, "", "E0108");
    expect_id("", "kernel ", 200000, "", "E0102");
    expect_id("", "kernel k(\n", 100000, "", "E0102");
    expect_id("", "\n", 1000000, "", NULL);
    expect_id("// ", "x", 1000000, "", NULL);
    expect_id("", "x", 1000000, "", "E0104");
    expect_id(HEAD "src.x * ", "9", 1000000, ")\n}", "E0103");
    expect_id(HEAD "src.x * ", "9", 900, ")\n}", "E0211");
    expect_id(HEAD "src.x * 0.", "9", 900, ")\n}", NULL);
    expect_id("kernel k(src x: f32[", "1, ", 100000, "1]) -> f32 { return 1 }", "E0216");
    expect_id("kernel k[", "F, ", 20000, "F](src x: f32) -> f32 { return 1 }", "E0205");
    expect_id("", "\xff\xfe\x80 ", 100000, "", "E0101");
    expect_id("", "~!", 500000, "", "E0101");
    expect_id("", " ", 17u << 20, "", "E0104");
}

/* Functions that call functions: a long chain, and one that doubles with every link. */
Test(robust, chains_of_functions) {
    static const char *const BODIES[] = {"-(1 + f%d(x))", "f%d(x) * f%d(x)", "max(f%d(x), nothing(x))"};
    for (int b = 0; b < 3; b++) {
        base_str text = {0};
        for (int i = 3000; i > 0; i--) {
            base_str_addf(&text, "fn f%d(x: T) -> T = ", i);
            base_str body = {0};
            for (const char *at = BODIES[b]; *at; at++)
                if (at[0] == '%')
                    base_str_addf(&body, "%d", i - 1), at++;
                else
                    base_str_add_n(&body, at, 1);
            base_str_addf(&text, "%s\n", base_str_text(&body));
            base_str_fini(&body);
        }
        base_str_add(&text, "fn f0(x: T) -> T = x\nkernel k(dst x: f32) -> f32 { return f3000(dst.x) }\n");
        const char *id;
        cr_expect_gt(errors_of(base_str_text(&text), &id), 0);
        cr_expect_str_eq(id, "E0104");
        base_str_fini(&text);
    }
}

/* The limit of operations is met within whatever a function is made of, at every one of its steps. */
Test(robust, the_last_operation_may_be_any) {
    static const char *const LINES[] = {"mean(src.x)",          "reshape(src.x, [2, 500000000])",
                                        "layer_norm(src.x)",    "cumsum(src.x)",
                                        "concat(src.x, src.x)", "slice(src.x, 1, -1)",
                                        "one_hot(src.i, 9)",    "gather(src.x, src.i)",
                                        "transpose(src.m)",     "src.v @ src.m",
                                        "softplus(src.x)",      "reduce var(src.x)",
                                        "gelu(src.c)",          "reduce softmax(src.c, src.x)",
                                        "clamp(src.x, 0, 1)",   "reduce product(src.c)"};
    for (size_t k = 0; k < sizeof LINES / sizeof *LINES; k++)
        for (int offset = 0; offset < 12; offset += k == 2 || k == 11 ? 1 : 4) {
            base_str text = {0};
            base_str_add(
                &text,
                "reducer product(v: f32) -> f32 {\n state p: f32 = 1\n lift (v)\n combine (a.p * b.p)\n finalize p\n}\n"
                "kernel k(src x: f32[1000000000], src i: i64, src m: f32[300, 400], src v: f32[300], src c: f32)"
                " -> f32 {\n");
            for (int i = 0; i < offset; i++)
                base_str_addf(&text, " let b%d = -src.c\n", i);
            for (int i = 0; i < 66000; i++)
                base_str_addf(&text, " let a%d = %s\n", i, LINES[k]);
            base_str_add(&text, " return reduce sum(src.c)\n}\n");
            const char *id;
            cr_expect_gt(errors_of(base_str_text(&text), &id), 0);
            cr_expect_str_eq(id ? id : "none", "E0104", "%s, %d before: %s", LINES[k], offset, id ? id : "no error");
            base_str_fini(&text);
        }
}

Test(robust, errors_are_found_behind_many_warnings) {
    base_str text = {0};
    base_str_add(&text, "kernel k(src x: f32) -> f32 {\n");
    for (int i = 0; i < 300; i++)
        base_str_addf(&text, "    let a%d = src.x\n", i);
    base_str_add(
        &text,
        "    return reduce sum(src.x)\n}\nkernel l(src x: f32) -> f32 {\n    return reduce sum(src.y + src.z)\n}\n");
    const char *id;
    cr_expect_eq(errors_of(base_str_text(&text), &id), 2);
    base_str_fini(&text);
}

Test(robust, many_errors_are_cut_off) {
    base_str text = {0};
    base_str_add(&text, HEAD);
    for (int i = 0; i < 300; i++) /* one name is told once */
        base_str_addf(&text, "a%d() + ", i);
    base_str_add(&text, "src.x)\n}");
    const char *id;
    size_t n = errors_of(base_str_text(&text), &id);
    cr_expect(n >= 20 && n <= 100, "%zu", n);
    base_str_fini(&text);
}

Test(robust, every_beginning_of_a_good_file) {
    char text[sizeof GOOD];
    for (size_t n = 0; n < sizeof GOOD; n++) {
        memcpy(text, GOOD, n);
        text[n] = 0;
        const char *id;
        errors_of(text, &id);
    }
    const char *id;
    cr_expect_eq(errors_of(GOOD, &id), 0);
}

Test(robust, every_byte_replaced) {
    static const char BYTES[] = "\x01\xff(){}[]\n.,=-0x";
    char text[sizeof GOOD];
    for (size_t n = 0; n + 1 < sizeof GOOD; n++)
        for (size_t k = 0; k + 1 < sizeof BYTES; k++) {
            memcpy(text, GOOD, sizeof GOOD);
            text[n] = BYTES[k];
            const char *id;
            errors_of(text, &id);
        }
}

static bool compile_or_oom(base_diags *d, base_arena *a) {
    jmp_buf jump;
    if (setjmp(jump))
        return false;
    *base_arena_oom_slot(a) = &jump;
    base_diags_init(d, a, "t.tg", GOOD);
    cr_assert_not_null(fe_compile(a, "t.tg", GOOD, NULL, 0, d));
    return true;
}

Test(robust, memory_runs_out_at_every_allocation) {
    for (uint64_t n = 1;; n++) {
        base_inject_at(BASE_INJECT_ALLOC, n);
        base_arena *a = base_arena_new();
        base_diags d;
        bool ok = a && compile_or_oom(&d, a);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        base_arena_free(a);
        if (ok)
            break;
        cr_assert_lt(n, 100000);
    }
}

Test(robust, numbers_do_not_follow_the_locale) {
    static const char *const NAMES[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    for (size_t i = 0; i < 3; i++)
        if (setlocale(LC_ALL, NAMES[i]))
            break;
    const char *id;
    cr_expect_eq(errors_of("kernel k(src x: f32) -> f32 { return reduce sum(1.5 * src.x) }", &id), 0);
    base_arena *a = base_arena_new();
    base_diags d;
    base_str out = {0};
    const char *text = "kernel k(dst x: f32) -> f32 { return 1.5 * dst.x }";
    base_diags_init(&d, a, "t.tg", text);
    ir_print(fe_compile(a, "t.tg", text, NULL, 0, &d), IR_LEVEL_K, &out);
    cr_expect(strstr(base_str_text(&out), "value = 1.5"), "%s", base_str_text(&out));
    base_str_fini(&out);
    base_arena_free(a);
    setlocale(LC_ALL, "C");
}

/* ---- defines, heads ---------------------------------------------------------------------------------------------- */
Test(heads, defines_fix_dimensions_everywhere) {
    base_arena *a = base_arena_new();
    base_diags d;
    fe_define defines[] = {{"F", 64, false}, {"Q", 3, false}};
    base_diags_init(&d, a, "t.tg", GOOD);
    ir_module *m = fe_compile(a, "t.tg", GOOD, defines, 2, &d);
    cr_assert_not_null(m);
    cr_expect(defines[0].used && !defines[1].used);
    const ir_func *k = ir_func_find(m, "k", IR_LEVEL_KERNEL), *p = ir_func_find(m, "p", IR_LEVEL_PROGRAM);
    cr_expect_eq(k->n_syms, 0);
    cr_expect_eq(k->params[0].type.dim[0], 64);
    cr_expect_eq(k->results[0].type.dim[0], 64);
    cr_expect_eq(p->n_syms, 3);
    cr_expect_eq(p->params[1].type.dim[1], 64);
    base_arena_free(a);
}

Test(heads, a_define_has_to_be_a_size) {
    static const int64_t BAD[] = {0, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        base_arena *a = base_arena_new();
        base_diags d;
        fe_define define = {"F", BAD[i], false};
        base_diags_init(&d, a, "t.tg", GOOD);
        cr_expect_null(fe_compile(a, "t.tg", GOOD, &define, 1, &d));
        cr_expect(d.n && strcmp(d.items[0]->id, "E0216") == 0);
        base_arena_free(a);
    }
}

Test(heads, parameters_symbols_results_signature) {
    base_arena *a = base_arena_new();
    base_diags d;
    const char *text =
        "kernel k [ A,B ](\n    src x : f32[B], // comment\n    node u: f64,\n)  ->  (s: f32[B],\n t: edge i64) {\n"
        "    return (t = 1, s = reduce sum(src.x) + f32(dst.u))\n}\n"
        "program p[A](h: graph, v: bool, g: graph, x: f32[g.edge, B, A]) -> f32 {\n    return select(v, sum(x), "
        "f32(h.num_src))\n}\n";
    base_diags_init(&d, a, "t.tg", text);
    ir_module *m = fe_compile(a, "t.tg", text, NULL, 0, &d);
    cr_assert_not_null(m);
    const ir_func *k = ir_func_find(m, "k", IR_LEVEL_KERNEL), *p = ir_func_find(m, "p", IR_LEVEL_PROGRAM);
    cr_expect_str_eq(k->signature, "kernel k [A,B](src x : f32[B], node u: f64) -> (s: f32[B], t: edge i64)");
    cr_expect(k->exported && k->needs_square && k->n_params == 2 && k->params[0].role == IR_SRC &&
              k->params[1].role == IR_NODE);
    cr_expect(k->n_results == 2 && k->results[0].type.space == IR_ROW && k->results[1].type.space == IR_EDGE);
    cr_expect(k->n_syms == 1 && strcmp(k->syms[0], "B") == 0); /* nothing mentions A: a warning, and no argument */
    static const char *const SYMS[] = {"h.dst", "h.src", "h.edge", "g.dst", "g.src", "g.edge", "A", "B"};
    cr_assert_eq(p->n_syms, 8);
    for (int i = 0; i < 8; i++)
        cr_expect_str_eq(p->syms[i], SYMS[i]);
    cr_expect(!p->needs_square && p->params[0].role == IR_GRAPH_FIELD && p->params[0].type.dtype == IR_GRAPH);
    cr_expect(p->params[1].role == IR_PARAM_FIELD && p->params[3].type.rank == 3);
    cr_expect_str_eq(p->results[0].name, "out");
    base_arena_free(a);
}

/* A chain of programs, each calling the one before twice: the work is bounded, and so is the depth. */
Test(robust, programs_that_call_programs) {
    for (int deep = 10; deep <= 1000; deep *= 10) {
        base_arena *a = base_arena_new();
        base_str text = {0};
        base_str_add(&text, "program p0(x: f32[N]) -> f32[N] { return x * 2 }\n");
        for (int i = 1; i < deep; i++)
            base_str_addf(&text, "program p%d(x: f32[N]) -> f32[N] { return p%d(x = x) + p%d(x = x) }\n", i, i - 1,
                          i - 1);
        base_diags d;
        base_diags_init(&d, a, "deep", base_str_text(&text));
        ir_module *m = fe_compile(a, "deep", base_str_text(&text), NULL, 0, &d);
        cr_expect_eq(m != NULL, deep == 10);
        cr_expect(m || strcmp(d.items[0]->id, "E0104") == 0);
        base_str_fini(&text);
        base_arena_free(a);
    }
}
