/* Each rule of the verifier: the smallest text that breaks it, and what is said.  The texts parse; each is accepted
 * when the one thing wrong is put right, which the accepted ones at the top of a group show. */
#include "ir_support.h"

typedef struct wrong {
    const char *text, *says; /* NULL: nothing is wrong */
} wrong;

static void check_all(const wrong *list, size_t n) {
    for (size_t i = 0; i < n; i++) {
        base_arena *a = base_arena_new();
        base_str err = {0};
        bool ok = ir_verify(parse(a, list[i].text), &err);
        cr_assert_eq(ok, list[i].says == NULL, "text %zu: %s", i, ok ? "is accepted" : base_str_text(&err));
        cr_assert(ok || strstr(base_str_text(&err), list[i].says), "text %zu: %s", i, base_str_text(&err));
        base_str_fini(&err);
        base_arena_free(a);
    }
}
#define CHECK(list) check_all(list, sizeof list / sizeof *list)

/* ---- winners ---- */
#define LOOP_W(x, best, type, rest)                                                                                    \
    "module m\nloop @k[F](dst x: " type ", src m: f32[F], src w: f32[F], src c: f32[F], " rest ") domain = src "       \
    "winners(" x ", " best ", w, c) {\nrows {\n%1 = arg {index = 0} : i64\n}\n}"

Test(verify, winners) {
    const wrong list[] = {
        {LOOP_W("x", "m", "f32[F]", "outrow d: f32[F]"), NULL},
        {LOOP_W("m", "x", "f32[F]", "outrow d: f32[F]"), "a field of the row and three of its sources"},
        {LOOP_W("x", "w", "f32[F]", "outrow d: f32[F]"), "a field of winners stands twice"},
        {LOOP_W("x", "m", "f64[F]", "outrow d: f32[F]"), "of the type of the result"},
        {LOOP_W("x", "m", "f32[F]", "outrow d: f32"), "is of f32 or f64 and has axes"},
        {LOOP_W("x", "m", "f32[F]", "outedge d: f32[F]"), "with four fields and a result"},
        {LOOP_W("x", "m", "f32[F]", "outrow d: f32[F], outrow e: f32[F]"), "with four fields and a result"},
    };
    CHECK(list);
}

/* ---- combine ---- */
#define KERNEL_C(start, attrs, space, rest)                                                                            \
    "module m\nkernel @k(src x: f32, dst s: f32) -> (o: edge f32) {\n"                                                 \
    "%1 = field {field = 0, at = src} : edge f32\n%2 = field {field = 1, at = dst} : row f32\n%3 = const {value = 0} " \
    ": f32\n"                                                                                                          \
    "%4 = combine " start ", %1 " attrs                                                                                \
    " : tuple {\n%5 = arg {index = 0} : edge f32\n%6 = arg {index = 1} : edge f32\n"                                   \
    "%7 = add %5, %6 : edge f32\nyield %7\n}\n%9 = get %4 {index = 0} : " space " f32\n" rest "}"

Test(verify, scans) {
    const wrong list[] = {
        {KERNEL_C("%3", "", "row", "ret %9\n"), NULL},
        {KERNEL_C("%2", "{scan = 1}", "edge", "ret %9\n"), NULL},
        {KERNEL_C("%2", "{reverse = 1, scan = 1}", "edge", "%10 = mul %9, %2 : edge f32\nret %10\n"), NULL},
        {KERNEL_C("%2", "", "row", "ret %9\n"), "start value 0 is not a uniform value"},
        {KERNEL_C("%1", "{scan = 1}", "edge", "ret %9\n"), "start value 0 is not a uniform value"},
        {KERNEL_C("%3", "{reverse = 1}", "row", "ret %9\n"), "only a scan goes from the last edge"},
        {KERNEL_C("%3", "{lanes = 16, scan = 1}", "edge", "ret %9\n"), "a scan goes from edge to edge"},
        {KERNEL_C("%3", "{scan = 1}", "row", "ret %9\n"), "edge f32"},
        {KERNEL_C("%3", "{scan = 1}", "edge", "%10 = reduce %9 {kind = sum} : row f32\nret %10\n"),
         "can only be returned, edge by edge"},
    };
    CHECK(list);
}

/* ---- every level ---- */
#define PROG(body) "module m\nprogram @p[F](param x: f32[F], param n: i64) -> (o: f32) {\n" body "\n}"
#define ONE "%1 = const {value = 1} : f32\n"

Test(verify, scope_operands_and_attributes) {
    const wrong list[] = {
        {PROG(ONE "ret %1"), NULL},
        {PROG(ONE "%2 = add %1 : f32\nret %2"), "program @p, %2 (add): 1 operands, but it takes 2"},
        {PROG(ONE "%2 = neg %1, %1 : f32\nret %2"), "2 operands, but it takes 1"},
        {PROG("%1 = const : f32\nret %1"), "attribute 'value' is missing"},
        {PROG("%1 = const {value = 1, axes = 1} : f32\nret %1"), "it has no attribute 'axes'"},
        {PROG(ONE "rows {\n%2 = arg {index = 0} : i64\n}\nret %1"), "it does not belong to a program"},
        {PROG(ONE "%2 = neg %1 : f32 {\n}\nret %2"), "it has no region"},
        {PROG(ONE "%2 = const {value = 1} : i64\n%3 = repeat %2 : tuple\nret %1"), "it needs a region"},
        {PROG("%1 = param {field = 1} : i64\n%2 = repeat %1 : tuple {\n%3 = const {value = 1} : f32\nyield\n}\nret %3"),
         "operand 0 is used outside the region of its definition"},
        {PROG("%1 = param {field = 1} : i64\n%2 = repeat %1 : tuple {\n%3 = get %2 {index = 0} : f32\nyield\n}\n"
              "%9 = const {value = 1} : f32\nret %9"),
         "operand 0 is used before its definition"},
        {PROG("%1 = arg {index = 0} : f32\nret %1"), "it stands in no region"},
        {PROG(ONE), "the function does not end with ret"},
        {PROG("ret"), "0 values for 1 results"},
        {PROG(ONE "ret %1\n%2 = neg %1 : f32"), "nothing may follow it"},
        {PROG("%1 = param {field = 1} : i64\n%2 = repeat %1 : tuple {\n%3 = const {value = 1} : f32\nret %3\n}\n"
              "%9 = const {value = 1} : f32\nret %9"),
         "does not end with yield"},
        {PROG("%1 = const {value = 1} : row f32\nret %1"), "spaces belong to kernels"},
        {PROG("%1 = const {value = 1} : f32[tile]\nret %1"), "a tile width has no meaning here"},
        {"module m\nprogram @p() -> (o: f32) unit = 2 {\n" ONE "ret %1\n}", "more only in a loop function"},
        {"module m\nprogram @p() -> (o: f32) team = 2 {\n" ONE "ret %1\n}", "only in a loop function"},
        {"module m\nprogram @p(src x: f32) -> (o: f32) {\n" ONE "ret %1\n}", "a role that does not belong here"},
        {"module m\nprogram @p(graph g: f32) -> (o: f32) {\n" ONE "ret %1\n}", "the wrong type for its role"},
        {"module m\nprogram @p(param g: graph) -> (o: f32) {\n" ONE "ret %1\n}", "the wrong type for its role"},
        {"module m\nprogram @p(param x: row f32) -> (o: f32) {\n" ONE "ret %1\n}",
         "the space of parameter 'x' follows"},
        {"module m\nprogram @p() -> (o: tuple) {\n" ONE "ret %1\n}", "a result without a name or an element type"},
        {"module m\nkernel @p(src x: f32) -> (o: f32) domain = rows {\n" ONE "ret %1\n}", "dst and param fields only"},
        {"module m\nkernel @p(node x: f32) -> (o: f32) {\n" ONE "ret %1\n}", "a node field needs a square graph"},
        {"module m\nkernel @p(dst x: f32) -> (o: edge f32) domain = rows {\n" ONE "ret %1\n}",
         "a kernel over rows has no edges"},
        {"module m\nloop @l() -> (o: f32) domain = rows {\n}", "out parameters, not results"},
    };
    CHECK(list);
}

Test(verify, what_text_cannot_say) {
    base_arena *a = base_arena_new();
    base_str err = {0};
    ir_module *m = parse(a, PROG(ONE "%2 = neg %1 : f32\nret %2"));
    ir_func *f = m->funcs[0];
    ir_append(m, &f->body, 1);
    cr_assert(!ir_verify(m, &err) && strstr(err.data, "nothing may follow it"));
    f->body.n--;
    ir_insert(m, &f->body, 1, 1);
    base_str_fini(&err);
    cr_assert(!ir_verify(m, &err) && strstr(err.data, "%1 (const): it stands in two places"));
    f->body.ops[1] = 77;
    base_str_fini(&err);
    cr_assert(!ir_verify(m, &err) && strstr(err.data, "an operation that does not exist"));
    ir_erase(&f->body, 1);
    ir_at(f, 2)->args[0] = 99;
    base_str_fini(&err);
    cr_assert(!ir_verify(m, &err) && strstr(err.data, "is no operation of the function"));
    ir_at(f, 2)->args[0] = 1;
    ir_at(f, 2)->type.dim[0] = ir_dim_sym(9), ir_at(f, 2)->type.rank = 1;
    base_str_fini(&err);
    cr_assert(!ir_verify(m, &err) && strstr(err.data, "is no symbol of the function"));
    ir_at(f, 2)->type = ir_scalar(IR_F32);
    ir_func_clone(m, f, "p");
    base_str_fini(&err);
    cr_assert(!ir_verify(m, &err) && strstr(err.data, "@p stands twice at one level"));
    for (uint64_t n = 1; n <= 4; n++) {
        base_str_fini(&err);
        base_inject_at(BASE_INJECT_ALLOC, n);
        cr_assert(!ir_verify_func(m, f, &err) && (err.failed || strcmp(err.data, "out of memory") == 0));
        base_inject_at(BASE_INJECT_ALLOC, 0);
    }
}

/* ---- elementwise: every level ---- */
Test(verify, element_by_element) {
    const wrong list[] = {
        {PROG(ONE "%2 = param {field = 0} : f32[F]\n%3 = add %1, %2 : f32[F]\n%4 = fold %3 {kind = sum, axes = 1} : "
                  "f32\nret %4"),
         NULL},
        {PROG(ONE "%2 = const {value = 1} : f64\n%3 = add %1, %2 : f32\nret %3"), "different types, f32 and f64"},
        {PROG(ONE "%2 = and %1, %1 : f32\nret %1"), "not defined on f32"},
        {PROG("%1 = const {value = 1} : i64\n%2 = exp %1 : i64\n"
              "%3 = const {value = 1} : f32\nret %3"),
         "not defined on i64"},
        {PROG(ONE "%2 = select %1, %1, %1 : f32\nret %2"), "the condition must be bool"},
        {PROG(ONE "%2 = lt %1, %1 : f32\nret %2"), "the type must be bool"},
        {PROG(ONE "%2 = add %1, %1 : f64\nret %1"), "the type must be f32"},
        {PROG("%1 = const {value = 1} : f32[3]\n%2 = const {value = 1} : f32[4]\n%3 = add %1, %2 : f32[4]\nret %3"),
         "do not broadcast"},
        {PROG("%1 = const {value = 1} : f32[3]\n%2 = const {value = 1} : f32[3]\n%3 = add %1, %2 : f32\nret %3"),
         "the type must be f32[3]"},
        {PROG(ONE "%2 = cast %1 : tuple\nret %1"), "the type must be f32"},
        {PROG("%1 = param {field = 1} : i64\n%2 = repeat %1 : tuple {\nyield\n}\n%3 = neg %2 : f32\nret %3"),
         "not defined on tuple"},
    };
    CHECK(list);
}

/* ---- graph kernels ---- */
#define KERN(result, body)                                                                                             \
    "module m\nkernel @k[H, F](src x: f32[H, F], dst y: f32[F], node n: i64, edge w: f32, param p: bool) -> "          \
    "(o: " result ") square {\n"                                                                                       \
    "%1 = field {field = 0, at = src} : edge f32[H, F]\n%2 = field {field = 3, at = edge} : edge f32\n" body "\n}"
#define SUM "%3 = reduce %2 {kind = sum} : row f32\nret %3"

Test(verify, kernels) {
    const wrong list[] = {
        {KERN("row f32", SUM), NULL},
        {KERN("edge f32", SUM), NULL}, /* a row value is a value of each edge */
        {KERN("row f32", "ret %2"), "is a value per edge; result 'o' is not"},
        {KERN("row f64", SUM), "value 0 is not of the type of result 'o'"},
        {KERN("row f32[F]", SUM), "value 0 is not of the type of result 'o'"},
        {KERN("row f32", "%3 = reduce %2 {kind = sum} : edge f32\nret %3"), "the type must be row f32"},
        {KERN("row f32", "%3 = reduce %2 {kind = softmax} : row f32\nret %3"), "softmax takes 2 operands"},
        {KERN("row f32", "%3 = reduce %2, %2 {kind = sum} : row f32\nret %3"), "sum takes 1 operands"},
        {KERN("row f32", "%3 = reduce %2 {kind = median} : row f32\nret %3"), "'median' is not a kind of reduction"},
        {KERN("row f32", "%3 = reduce %2 {kind = and} : row f32\nret %3"), "and does not work on f32"},
        {KERN("row i64", "%3 = reduce %2 {kind = count} : row i64\nret %3"), "count does not work on f32"},
        {KERN("row f32", "%3 = reduce %2 {kind = argmin} : row f32\nret %3"), "the type must be row i64"},
        {KERN("row i64", "%3 = cast %2 : edge i64\n%4 = reduce %3 {kind = mean} : row i64\nret %4"),
         "mean does not work on i64"},
        {KERN("row f32", "%3 = reduce %1, %2 {kind = softmax} : row f32\nret %3"), "is not a prefix"},
        {KERN("row f32[H, F]", "%3 = reduce %2, %1 {kind = softmax} : row f32[H, F]\nret %3"), NULL},
        {KERN("row f32", "%3 = reduce %2, %1 {kind = softmax} : row f32\nret %3"), "the type must be row f32[H, F]"},
        {KERN("row f32", "%3 = cast %2 : edge f64\n%4 = reduce %3, %1 {kind = softmax} : row f32[H, F]\nret %4"),
         "one float type"},
        {KERN("row f32", "%4 = field {field = 9, at = src} : edge f32\n" SUM), "there is no parameter 9"},
        {KERN("row f32", "%4 = field {field = 0, at = dst} : row f32[H, F]\n" SUM),
         "a src field cannot be read at 'dst'"},
        {KERN("row f32", "%4 = field {field = 1, at = src} : edge f32[F]\n" SUM),
         "a dst field cannot be read at 'src'"},
        {KERN("row f32", "%4 = field {field = 2, at = edge} : edge i64\n" SUM),
         "a node field cannot be read at 'edge'"},
        {KERN("row f32", "%4 = field {field = 3, at = param} : f32\n" SUM), "a edge field cannot be read at 'param'"},
        {KERN("row f32", "%4 = field {field = 4, at = dst} : row bool\n" SUM), "a param field cannot be read at 'dst'"},
        {KERN("row f32", "%4 = field {field = 0, at = src} : row f32[H, F]\n" SUM), "the type must be edge f32[H, F]"},
        {KERN("row f32", "%4 = field {field = 0, at = src} : edge f32[F]\n" SUM), "the type must be edge f32[H, F]"},
        {KERN("row f32", "%4 = const {value = 1} : row f32\n" SUM), "a constant is uniform"},
        {KERN("row f32", "%4 = dimsize {dim = H} : i32\n" SUM), "the type must be i64"},
        {KERN("row f32", "%4 = degree : row i32\n" SUM), "the type must be row i64"},
        {KERN("row f32", "%4 = const {value = 1} : i64\n%5 = degree %4 : row i64\n" SUM),
         "in a kernel it takes no operand"},
        {KERN("row f32", "%4 = add %2, %2 : row f32\n" SUM), "the type must be edge f32"},
        {KERN("row f32", "%4 = broadcast %2 : edge f64\n" SUM), "it keeps the element type"},
        {KERN("row f32", "%4 = broadcast %2 : row f32\n" SUM), "it cannot go to a narrower space"},
        {KERN("row f32", "%4 = broadcast %1 : edge f32[F]\n" SUM), "does not stretch"},
        {KERN("row f32", "%4 = broadcast %1 : edge f32[F, H]\n" SUM), "does not stretch"},
        {KERN("row f32", "%4 = fold %1 {kind = sum, axes = 4} : edge f32\n" SUM), "does not fit an operand of rank 2"},
        {KERN("row f32", "%4 = fold %1 {kind = sum, axes = 0} : edge f32[H, F]\n" SUM),
         "does not fit an operand of rank 2"},
        {KERN("row f32", "%4 = fold %1 {kind = sum, axes = 1} : edge f32[H]\n" SUM), "the type must be edge f32[F]"},
        {KERN("row f32", "%4 = fold %1 {kind = argmin, axes = 1} : edge f32[F]\n" SUM), "argmin cannot fold"},
        {KERN("row f32", "%4 = fold %1 {kind = or, axes = 1} : edge f32[F]\n" SUM), "or is not possible here on f32"},
        {KERN("row f32", "%4 = total %2 {kind = sum} : f32\n" SUM), "a primitive kind and a row value"},
        {KERN("row f32", "%4 = reduce %2 {kind = sum} : row f32\n%5 = total %4 {kind = sum} : row f32\nret %4"),
         "the type must be f32"},
        {KERN("row f32", "%4 = param {field = 0} : f32[H, F]\n" SUM), "it does not belong to a kernel"},
        {"module m\nkernel @k(dst y: f32) -> (o: row f32) domain = rows {\n%1 = field {field = 0, at = dst} : row f32\n"
         "%2 = reduce %1 {kind = sum} : row f32\nret %2\n}",
         "a kernel over rows has no edges"},
        {"module m\nkernel @k(dst y: f32) -> (o: row f32) domain = rows {\n%1 = field {field = 0, at = dst} : row f32\n"
         "%2 = broadcast %1 : edge f32\nret %1\n}",
         "a kernel over rows has no edges"},
    };
    CHECK(list);
}

/* ---- programs ---- */
#define SAME(same)                                                                                                     \
    "module m\nprogram @p[a.dst, a.src, a.edge, b.dst, b.src, b.edge, F](graph a: graph, graph b: graph, param x: "    \
    "f32[a.dst], param y: f32[b.src]) -> () same(" same ") {\n%1 = param {field = 2} : f32[a.dst]\n%2 = param {field " \
    "= 3} : f32[b.src]\n%3 = add %1, %2 : f32[a.dst]\nret\n}"

Test(verify, sizes_that_are_the_same) {
    const wrong list[] = {
        {SAME("b.src = a.dst"), NULL},
        {SAME("b.dst = a.src"), "do not broadcast"},
        {SAME("b.src = a.dst, b.src = a.src"), "'b.src' has two names"},
        {SAME("b.src = a.dst, a.dst = a.src"), "'a.dst' has two names"},
        {SAME("b.src = F"), "only the rows and sources of graphs"},
        {SAME("b.edge = a.edge"), "only the rows and sources of graphs"},
        {"module m\nkernel @k[a.src, b.src](src x: f32) -> () same(a.src = b.src) {\nret\n}", "only a program"},
    };
    CHECK(list);
}

#define CALLS(body)                                                                                                    \
    "module m\nkernel @one[F](src x: f32[F], edge w: f32, param c: f32[F]) -> (o: row f32[F]) {\n%1 = field {field = " \
    "0, at = src} : edge f32[F]\n"                                                                                     \
    "%2 = reduce %1 {kind = sum} : row f32[F]\nret %2\n}\nkernel @two(node n: f32) -> (a: row f32, e: edge f32) "      \
    "square {\n"                                                                                                       \
    "%1 = field {field = 0, at = src} : edge f32\n%2 = reduce %1 {kind = sum} : row f32\nret %2, %1\n}\n"              \
    "kernel @flat[K](dst v: f32[K], param s: f32[K]) -> (o: row f32[K], t: f32) domain = rows {\n%1 = field {field = " \
    "0, at = dst} : row f32[K]\n"                                                                                      \
    "%2 = total %1 {kind = sum} : f32\nret %1, %2\n}\n"                                                                \
    "program @p[g.dst, g.src, g.edge, K, J](graph g: graph, param x: f32[g.src, K], param w: f32[g.edge], param c: "   \
    "f32[K], param d: f32[J], param n: i64) -> () {\n"                                                                 \
    "%1 = param {field = 1} : f32[g.src, K]\n%2 = param {field = 2} : f32[g.edge]\n%3 = param {field = 3} : "          \
    "f32[K]\n%4 = param {field = 4} : f32[J]\n"                                                                        \
    "%5 = param {field = 5} : i64\n" body "\nret\n}"
#define CALL1(attrs, type) CALLS("%9 = call %1, %2, %3 {" attrs "} : " type)

Test(verify, calls) {
    const wrong list[] = {
        {CALL1("callee = one, graph = 0", "f32[g.dst, K]"), NULL},
        {CALL1("callee = none, graph = 0", "f32[g.dst, K]"), "there is no kernel @none"},
        {CALL1("callee = one, graph = 1", "f32[g.dst, K]"), "parameter 1 is no graph"},
        {CALL1("callee = one, graph = 7", "f32[g.dst, K]"), "parameter 7 is no graph"},
        {CALL1("callee = one, graph = -1", "f32[g.dst, K]"), "without a graph it needs a kernel over rows, and {dim}"},
        {CALL1("callee = one, graph = 0, dim = K", "f32[g.dst, K]"), "need no {dim}"},
        {CALL1("callee = one, graph = 0", "f32[g.src, K]"), "the type must be f32[g.dst, K]"},
        {CALL1("callee = one, graph = 0", "tuple"), "the type must be f32[g.dst, K]"},
        {CALLS("%9 = call %1, %2 {callee = one, graph = 0} : f32[g.dst, K]"),
         "2 operands for the 3 parameters of @one"},
        {CALLS("%9 = call %2, %2, %3 {callee = one, graph = 0} : f32[g.dst, K]"),
         "operand 0 does not fit parameter 'x' of @one"},
        {CALLS("%9 = call %1, %3, %3 {callee = one, graph = 0} : f32[g.dst, K]"),
         "operand 1 does not fit parameter 'w' of @one"},
        {CALLS("%9 = call %1, %2, %4 {callee = one, graph = 0} : f32[g.dst, K]"),
         "operand 2 does not fit parameter 'c' of @one"},
        {CALLS("%9 = call %2 {callee = two, graph = 0} : tuple"), "needs a square graph, so this function does"},
        {CALLS("%9 = call %1, %3 {callee = flat, graph = -1, dim = g.src} : tuple\n%10 = get %9 {index = 0} : "
               "f32[g.src, K]\n%11 = get %9 {index = 1} : f32"),
         NULL},
        {CALLS("%9 = call %1, %4 {callee = flat, graph = -1, dim = g.src} : tuple"), "operand 1 does not fit"},
        {CALLS("%9 = call %1, %3 {callee = flat, graph = -1, dim = g.dst} : tuple"), "operand 0 does not fit"},
        {CALLS("%9 = call %1, %3 {callee = flat, graph = -1, dim = g.src} : tuple\n%10 = get %9 {index = 2} : f32"),
         "the tuple has no member 2"},
        {CALLS("%9 = call %1, %3 {callee = flat, graph = -1, dim = g.src} : tuple\n%10 = get %9 {index = 0} : f32[K]"),
         "the type must be f32[g.src, K]"},
        {CALLS("%9 = get %1 {index = 0} : f32"), "the operand is no tuple"},
        {CALLS("%9 = param {field = 0} : f32"), "'g' is a graph, not a tensor"},
        {CALLS("%9 = param {field = 1} : f32[K]"), "the type must be f32[g.src, K]"},
    };
    CHECK(list);
}

Test(verify, control) {
    const wrong list[] = {
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\n%11 = const {value = true} : bool\n"
               "while %11\nyield %10\n}"),
         NULL},
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\nwhile %5\nyield %10\n}"),
         "operand 0 must be a scalar of type bool"},
        {CALLS("%9 = const {value = true} : bool\nwhile %9"), "it stands in the region of a repeat"},
        {CALLS("%9 = const {value = true} : bool\n%10 = if %9 : tuple {\narm {\nyield %3\n}\narm {\nyield %3\n}\n}\n"
               "%11 = get %10 {index = 0} : f32[K]"),
         NULL},
        {CALLS("%9 = const {value = true} : bool\n%10 = if %9 : tuple {\narm {\nyield %3\n}\narm {\nyield %3\n}\n}\n"
               "%11 = get %10 {index = 1} : f32[K]"),
         "the tuple has no member 1"},
        {CALLS("%9 = const {value = true} : bool\n%10 = if %9 : tuple {\narm {\nyield %3\n}\n}"),
         "its region is two arms"},
        {CALLS("%9 = if %5 : tuple {\narm {\nyield %3\n}\narm {\nyield %3\n}\n}"),
         "operand 0 must be a scalar of type bool"},
        {CALLS("%9 = const {value = true} : bool\n%10 = if %9 : tuple {\narm {\nyield %3\n}\narm {\nyield %5\n}\n}"),
         "value 0 is of another type than that of the first arm"},
        {CALLS("%9 = const {value = true} : bool\n%10 = if %9 : tuple {\narm {\nyield %3\n}\narm {\nyield\n}\n}"),
         "0 values for 1 of the first arm"},
        {CALLS("%9 = const {value = true} : bool\n%10 = if %9 : tuple {\narm {\n%11 = neg %3 : f32[K]\n}\narm {\n"
               "yield\n}\n}"),
         "its region does not end with yield"},
        {CALLS("arm {\nyield\n}"), "it stands in the region of an if"},
    };
    CHECK(list);
}

Test(verify, repeat) {
    const wrong list[] = {
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\nyield %10\n}\n%11 = get %9 {index = 0} : "
               "f32[K]"),
         NULL},
        {CALLS("%9 = repeat %2, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\nyield %10\n}"),
         "operand 0 must be a scalar of type i64"},
        {CALLS("%9 = repeat %5, %3 : f32 {\n%10 = arg {index = 0} : f32[K]\nyield %10\n}"), "the type must be tuple"},
        {CALLS("%9 = repeat %5, %3 : tuple {\nyield %3\n}"), "its region begins with 0 arguments, not 1"},
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 1} : f32[K]\nyield %10\n}"),
         "argument 0 of its region has another index"},
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[J]\nyield %3\n}"),
         "argument 0 of its region has the wrong type"},
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\nyield\n}"),
         "0 values for 1 of the repeat"},
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\nyield %4\n}"),
         "value 0 is of another type than that of the repeat"},
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\nyield %10\n%11 = neg %10 : f32[K]\n}"),
         "does not end with yield"},
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\n%11 = neg %10 : f32[K]\n%12 = arg {index "
               "= 1} : f32[K]\nyield %10\n}"),
         "arguments stand at the beginning of their region"},
        {CALLS("yield"), "it ends the region of a repeat or an arm"},
        {CALLS("%9 = repeat %5, %3 : tuple {\n%10 = arg {index = 0} : f32[K]\nyield %10\n}\n%11 = get %9 {index = 1} : "
               "f32[K]"),
         "the tuple has no member 1"},
    };
    CHECK(list);
}

/* ---- loops ---- */
#define BEGINS(result)                                                                                                 \
    "module m\nloop @l(edge w: f32, src x: f32, edge v: f32[2], " result ") domain = src {\nrows {\n"                  \
    "%1 = arg {index = 0} : i64\nedges %1 {\n%2 = arg {index = 0} : i64\n%5 = arg {index = 1} : i64\n"                 \
    "%6 = arg {index = 2} : i64\n%3 = edgeid %2 : i64\n"                                                               \
    "%4 = load %3 {field = 3} : f32\nstore %3, %4 {field = 3}\n}\n}\n}"

Test(verify, results_that_begin_as_fields) {
    const wrong list[] = {
        {BEGINS("outedge o: f32 = w"), NULL},
        {BEGINS("outedge o: f32"), "'o' is a result; it is only written"},
        {BEGINS("outedge o: f32 = x"), "'o': only an edge result can begin as a field"},
        {BEGINS("outedge o: f32 = v"), "an edge field of its type"},
        {BEGINS("outedge o: f64 = w"), "an edge field of its type"},
    };
    CHECK(list);
}

#define LOOPS(body)                                                                                                    \
    "module m\nloop @l[F](src x: f32[F], param p: f32[F], outrow o: f32[F], outparam q: i64) domain = dst {\n%1 = "    \
    "dimsize {dim = F} : i64\n"                                                                                        \
    "%2 = const {value = 0} : f32\nrows {\n%4 = arg {index = 0} : i64\n%5 = var {name = s} : f32\n%6 = var {name = "   \
    "a} : f32[F]\n"                                                                                                    \
    "%7 = partials {kind = sum} : f32\n%8 = partials {kind = argmin} : f32\n" body "\n}\n}"
#define LANES(body) LOOPS("lanes %1 {\n%10 = arg {index = 0} : i64\n%11 = arg {index = 1} : i64\n" body "\n}")

#define ROWS(attrs, n)                                                                                                 \
    "rows {" attrs "} {\n%1" n "0 = arg {index = 0} : i64\n%1" n "1 = arg {index = 1} : i64\n%1" n "2 = load %1" n     \
    "1 {field = 0} : f32\nstore %1" n "1, %1" n "2 {field = 1}\n}\n"
#define LEFT(attrs, n)                                                                                                 \
    "rows {" attrs "} {\n%1" n "0 = arg {index = 0} : i64\n%1" n "2 = load %1" n "0 {field = 0} : f32\nstore %1" n     \
    "0, %1" n "2 {field = 1}\n}\n"
#define FUNC(text) "module m\nloop @l(dst x: f32, outrow o: f32) domain = rows {\n" text "}"
#define BLOCK(attrs, text) "rows {" attrs "} {\n%5 = arg {index = 0} : i64\n" text "}\n"
#define TILES(text)                                                                                                    \
    "%1 = const {value = 3} : i64\ntiles %1 {width = 2} {\n%2 = arg {index = 0} : i64\n%3 = arg {index = 1} : "        \
    "i64\n" text "}\n"

/* Rows side by side, and what is left of them. */
Test(verify, rows) {
    const wrong list[] = {
        {FUNC(ROWS("step = 2", "0")), NULL},
        {FUNC(TILES(ROWS("step = 2", "0"))), NULL},
        {FUNC(ROWS("step = 2, few = 3", "0") LEFT("rest = 2, few = 3", "1")), NULL},
        {FUNC(TILES(ROWS("step = 2, few = 3", "0")) LEFT("rest = 2, few = 3", "1")), NULL},
        {FUNC(TILES(LEFT("vector = 0", "1"))), NULL},
        {FUNC(ROWS("step = 2", "0") LEFT("rest = 2", "1")), "it stands once, unless it takes the rest"},
        {FUNC(ROWS("step = 2, few = 3", "0") LEFT("rest = 2, few = 4", "1")),
         "it stands once, unless it takes the rest"},
        {FUNC(ROWS("step = 2, few = 3", "0") LEFT("rest = 3, few = 3", "1")),
         "few is at least 1, of a step and of its"},
        {FUNC(ROWS("step = 2, few = 3", "0")), "few is at least 1, of a step and of its rest"},
        {FUNC(LEFT("few = 3", "0")), "few is at least 1, of a step and of its rest"},
        {FUNC(LEFT("few = -1", "0")), "few is at least 1, of a step and of its rest"},
        {FUNC(ROWS("step = 2", "0") LEFT("vector = 0", "1")), "it stands once, unless it takes the rest"},
        {FUNC(LEFT("vector = 0", "0") LEFT("vector = 0", "1")), "it stands once, unless it takes the rest"},
        {FUNC(LEFT("rest = 2, few = 3", "1")), "it stands once, unless it takes the rest"},
        {FUNC(TILES(ROWS("step = 2, few = 3", "0") LEFT("rest = 2, few = 3", "1"))), "few is at least 1, of a step"},
        {FUNC(ROWS("step = 2, few = 3", "0") LEFT("rest = 2, few = 3", "1") LEFT("rest = 2, few = 3", "2")),
         "it stands once, unless it takes"},
        {FUNC(ROWS("step = 3", "0")), "its region begins with 2 arguments, not 3"},
        {FUNC(ROWS("step = 0", "0")), "step is 1 to 16, and not that of a rest"},
        {FUNC(ROWS("step = 17", "0")), "step is 1 to 16, and not that of a rest"},
        {FUNC("%1 = const {value = 3} : i64\nloop %1 {\n%2 = arg {index = 0} : i64\n" LEFT("vector = 0", "0") "}\n"),
         "it stands at the top of the function, or in tiles there"},
        {FUNC(BLOCK("block = 8", "rows {\n%4 = arg {index = 0} : i64\n}\n" TILES(ROWS("step = 2", "0")))), NULL},
        {FUNC(BLOCK("block = 0", "")), "a block is at least 1, of all units"},
        {FUNC(BLOCK("block = 8, rest = 2", "")), "a block is at least 1, of all units"},
        {FUNC(TILES(BLOCK("block = 8", ""))), "a block is at least 1, of all units"},
        {FUNC(BLOCK("block = 8, few = 3", "")), "a block is at least 1, of all units, and at the top"},
        {FUNC(BLOCK("block = 8", LEFT("block = 4", "0"))), "in a block it has a step at most"},
        {FUNC(BLOCK("block = 8", ROWS("step = 2, few = 1", "0"))), "in a block it has a step at most"},
        {FUNC(BLOCK("block = 8", TILES("loop %1 {\n%6 = arg {index = 0} : i64\n" ROWS("step = 2", "0") "}\n"))),
         "in a block it stands at the top, or in tiles there"},
        {FUNC(BLOCK("block = 8", "") LEFT("vector = 0", "1")), "it stands once, unless it takes the rest"},
    };
    CHECK(list);
}

Test(verify, loops) {
    const wrong list[] = {
        {LOOPS("set %5, %2\nset %6, %4, %2\nstore %4, %4, %2 {field = 2}\n%10 = collapse %8 : i64\nstore %10 {field = "
               "3}"),
         NULL},
        {LOOPS("rows {\n%10 = arg {index = 0} : i64\n}"), "it stands at the top of the function, or in tiles there"},
        {LOOPS("edges %4 {\n%10 = arg {index = 0} : i64\n}"), "its region begins with 1 arguments, not 3"},
        {LOOPS("edges %2 {\n}"), "operand 0 must be a scalar of type i64"},
        {LOOPS("edges %4 {lanes = 4} {\n%10 = arg {index = 0} : i64\n%11 = arg {index = 1} : i64\n%12 = arg {index = "
               "2} : i64\n}"),
         "lanes is 1 or 16"},
        {LOOPS("edges %4 {prefetch = -1} {\n%10 = arg {index = 0} : i64\n%11 = arg {index = 1} : i64\n%12 = arg {index "
               "= 2} : i64\n}"),
         "prefetch must be at least 0"},
        {LOOPS("tiles %1 {width = 0} {\n%10 = arg {index = 0} : i64\n%11 = arg {index = 1} : i64\n}"),
         "width must be at least 1"},
        {LOOPS("tiles %1 {\n%10 = arg {index = 0} : i64\n%11 = arg {index = 1} : i64\n}"),
         "attribute 'width' is missing"},
        {LOOPS("loop %1 {\n}"), "its region begins with 0 arguments, not 1"},
        {LOOPS("range %4 {\n}"), "1 operands, but it takes 2"},
        {LOOPS("%10 = load %4 {field = 0} : f32"), "1 indices for 'x', which has 2 axes"},
        {LOOPS("%10 = load %4, %4 {field = 1} : f32"), "2 indices for 'p', which has 1 axes"},
        {LOOPS("%10 = load %4, %2 {field = 0} : f32"), "operand 1 must be a scalar of type i64"},
        {LOOPS("%10 = load %4, %4 {field = 0} : f64"), "the type must be f32"},
        {LOOPS("%10 = load %4, %4 {field = 2} : f32"), "'o' is a result; it is only written"},
        {LOOPS("%10 = load %4, %4 {field = 5} : f32"), "there is no parameter 5"},
        {LOOPS("store %4, %4, %2 {field = 0}"), "'x' is not a result"},
        {LOOPS("store %4, %2 {field = 2}"), "1 indices for 'o', which has 2 axes"},
        {LOOPS("store %4, %4, %4 {field = 2}"), "operand 2 must be a scalar of type f32"},
        {LOOPS("%10 = read %6 : f32"), "0 indices for a var of rank 1"},
        {LOOPS("%10 = read %7 : f32"), "operand 0 must be a var"},
        {LOOPS("%10 = read %5 : i64"), "the type must be f32"},
        {LOOPS("set %6, %2"), "0 indices for a var of rank 1"},
        {LOOPS("set %5, %4"), "operand 1 must be a scalar of type f32"},
        {LOOPS("%10 = neg %5 : f32"), "operand 0 is a place, not a value"},
        {LOOPS("accum %5, %4, %2"), "operand 0 must be a partials"},
        {LOOPS("accum %7, %4, %2, %4"), "only argmin and argmax take an edge"},
        {LOOPS("accum %8, %4, %2"), "argmin and argmax take an edge"},
        {LOOPS("accum %7, %2, %2"), "operand 1 must be a scalar of type i64"},
        {LOOPS("accum %7, %4, %4"), "operand 2 must be a scalar of type f32"},
        {LOOPS("%10 = collapse %7 : i64"), "the type must be f32"},
        {LOOPS("%10 = collapse %8 : f32"), "the type must be i64"},
        {LOOPS("%10 = partials {kind = softmax} : f32"), "softmax is not possible here on f32"},
        {LOOPS("%10 = partials {kind = argmin} : bool"), "argmin is not possible here on bool"},
        {LOOPS("%10 = partials {kind = sum} : f32[F]"), "only a var has axes here"},
        {LOOPS("%10 = const {value = 1} : f32[F]"), "only a var has axes here"},
        {LOOPS("%10 = var : f32[tile]"), "a tile width has no meaning here"},
        {LOOPS("%10 = degree : i64"), "here it takes the row"},
        {LOOPS("%10 = degree %4 : i32"), "the type must be i64"},
        {LOOPS("%10 = source %2 : i64"), "operand 0 must be a scalar of type i64"},
        {LOOPS("ret"), "it does not belong to a loop"},
        {"module m\nloop @l(outparam o: f32) domain = dst {\n%1 = const {value = 1} : f32\nstore %1 {field = 0}\n}",
         "it stands inside rows"},
        {"module m\nloop @l() domain = rows {\nrows {\n%2 = arg {index = 0} : i64\nedges %2 {\n}\n}\n}",
         "a function over rows walks no edges"},
        {"module m\nloop @l() domain = rows {\nrows {\n%2 = arg {index = 0} : i64\n%3 = degree %2 : i64\n}\n}",
         "a function over rows has no edges"},
        {"module m\nloop @l() domain = dst {\n%1 = const {value = 0} : i64\nedges %1 {\n}\n}", "it stands inside rows"},
    };
    CHECK(list);
}

Test(verify, lanes_are_independent) {
    const char *same = "iterations of the lanes around it would write the same place";
    const wrong list[] = {
        {LANES("set %6, %10, %2"), NULL},
        {LANES("set %6, %11, %2"), NULL},
        {LANES("%12 = const {value = 1} : i64\n%13 = add %10, %12 : i64\nset %6, %13, %2"), NULL},
        {LANES("store %4, %10, %2 {field = 2}"), NULL},
        {LANES("accum %7, %10, %2"), NULL},
        {LANES("%12 = var : f32\nset %12, %2"), NULL}, /* each iteration has its own */
        {LANES("set %5, %2"), same},
        {LANES("set %6, %4, %2"), same},
        {LANES("store %4, %4, %2 {field = 2}"), same},
        {LANES("store %4 {field = 3}"), same},
        {LANES("accum %7, %4, %2"), same},
        {LANES("lanes %1 {\n%13 = arg {index = 0} : i64\n%14 = arg {index = 1} : i64\nset %6, %13, %2\n}"), same},
        {LANES("loop %1 {\n%13 = arg {index = 0} : i64\nset %6, %13, %2\n}"), same},
    };
    CHECK(list);
}

/* ---- tasks ---- */
#define TASK(body)                                                                                                     \
    "module m\nloop @l[F](src x: f32[F], outrow o: f32[F]) domain = dst {\nrows {\n%2 = arg {index = 0} : i64\n%3 = "  \
    "degree %2 : i64\n}\n}\n"                                                                                          \
    "task @p[F, g.dst](graph g: graph, param x: f32[F]) -> (o: f32[g.dst, F]) {\n%1 = bind {kind = param, index = 1, " \
    "name = x} : instance\n"                                                                                           \
    "%2 = bind {kind = result, index = 0} : instance\n%3 = dimsize {dim = g.dst} : i64\n%4 = dimsize {dim = F} : "     \
    "i64\n" body "\nret\n}"
#define HELD "acquire %1 {mode = read}\nacquire %2 {mode = write}\n"

Test(verify, tasks) {
    const wrong list[] = {
        {TASK(HELD "launch %1, %2, %3, %4 {callee = l, graph = 0, outputs = 1, buffers = 2}\ndone %1\ndone %2"), NULL},
        {TASK("launch %1, %2, %3, %4 {callee = l, graph = 0, outputs = 1, buffers = 2}"),
         "operand 0 is not acquired here"},
        {TASK("acquire %1 {mode = read}\nacquire %2 {mode = read}\nlaunch %1, %2, %3, %4 {callee = l, graph = 0, "
              "outputs = 1, buffers = 2}"),
         "operand 1 is written but acquired to read"},
        {TASK(HELD "done %1\nlaunch %1, %2, %3, %4 {callee = l, graph = 0, outputs = 1, buffers = 2}"),
         "operand 0 is not acquired here"},
        {TASK(HELD "launch %1, %2, %3, %4 {callee = m, graph = 0, outputs = 1, buffers = 2}"),
         "there is no loop function @m"},
        {TASK(HELD "launch %1, %2, %3, %4 {callee = l, graph = 1, outputs = 1, buffers = 2}"),
         "parameter 1 is no graph"},
        {TASK(HELD "launch %1, %2, %3, %4 {callee = l, graph = -1, outputs = 1, buffers = 2}"),
         "@l walks edges, so it needs a graph"},
        {TASK(HELD "launch %1, %2, %3, %4 {callee = l, graph = 0, outputs = 2, buffers = 2}"),
         "@l has 2 buffers, 1 of them written"},
        {TASK(HELD "launch %1, %2, %3, %4 {callee = l, graph = 0, outputs = 1, buffers = 3}"),
         "@l has 2 buffers, 1 of them written"},
        {TASK(HELD "launch %1, %2, %3 {callee = l, graph = 0, outputs = 1, buffers = 2}"),
         "3 operands for 2 buffers, the rows and 1 dimensions"},
        {TASK(HELD "launch %1, %3, %3, %4 {callee = l, graph = 0, outputs = 1, buffers = 2}"),
         "operand 1 must be an instance"},
        {TASK(HELD "launch %1, %2, %3, %2 {callee = l, graph = 0, outputs = 1, buffers = 2}"),
         "operand 3 must be a scalar of type i64"},
        {TASK("%9 = bind {kind = field, index = 0} : instance"), "its kind is param or result, not 'field'"},
        {TASK("%9 = bind {kind = param, index = 5} : instance"), "there is no param 5"},
        {TASK("%9 = bind {kind = result, index = 1} : instance"), "there is no result 1"},
        {TASK("%9 = bind {kind = param, index = 0} : instance"), "parameter 'g' is a graph"},
        {TASK("%9 = bind {kind = param, index = 1} : i64"), "the type must be instance"},
        {TASK("%9 = instance %3 {name = t, version = 0, tier = tape} : instance"), "there is no tier 'tape'"},
        {TASK("%9 = instance %3 {name = t, version = -1, tier = host} : instance"), "a version is not negative"},
        {TASK("%9 = instance %1 {name = t, version = 0, tier = host} : instance"),
         "operand 0 must be a scalar of type i64"},
        {TASK("acquire %1 {mode = both}"), "its mode is read or write, not 'both'"},
        {TASK("acquire %3 {mode = read}"), "operand 0 must be an instance"},
        {TASK("done %3"), "operand 0 must be an instance"},
        {TASK("copy %1, %3"), "operand 1 must be an instance"},
        {TASK("%9 = readi %1 : i64"), "operand 0 is not acquired here"},
        {TASK("pages {pages = 0} {\n%9 = arg {index = 0} : i64\n}"), "at least one page"},
        {TASK("pages {\n}"), "its region begins with 0 arguments, not 1"},
        {TASK("pages {\n%9 = arg {index = 0} : i64\nacquire %1 {mode = read}\n}\n%10 = readi %1 : i64"),
         "operand 0 is not acquired here"},
        {TASK("acquire %1 {mode = read}\npages {\n%9 = arg {index = 0} : i64\n%10 = readi %1 : i64\n}"), NULL},
        {TASK("ret %3"), "nothing may follow it"},
    };
    CHECK(list);
}

/* An index made of many shared parts: looking through it must not take the number of paths. */
Test(verify, a_deep_index_is_checked_fast) {
    base_str s = {0};
    base_str_add(&s, "module m\nloop @l(param n: i64, outrow o: i64[8]) domain = dst {\nrows {\n%2 = arg {index = 0} : "
                     "i64\n%3 = load {field = 0} : i64\nlanes %3 {\n"
                     "%4 = arg {index = 0} : i64\n%5 = arg {index = 1} : i64\n");
    for (int i = 6; i < 3000; i++)
        base_str_addf(&s, "%%%d = add %%%d, %%%d : i64\n", i, i == 6 ? 3 : i - 1, i == 6 ? 3 : i - 1);
    base_str_add(&s, "store %2, %2999, %3 {field = 1}\n}\n}\n}");
    base_arena *a = base_arena_new();
    base_str err = {0};
    cr_assert(!ir_verify(parse(a, s.data), &err) && strstr(err.data, "would write the same place"));
    base_str_fini(&s);
    base_str_fini(&err);
    base_arena_free(a);
}

Test(verify, regions_nest_to_a_bound) {
    base_arena *a = base_arena_new();
    for (int depth = 63; depth <= 64; depth++) {
        ir_module *m = ir_module_new(a, "m", NULL);
        ir_func *f = ir_func_new(m, "f", IR_LEVEL_LOOP);
        ir_builder b = {m, f, &f->body, {0, 0}};
        ir_id arg, n = ir_emit_i64(&b, 1);
        for (int i = 0; i <= depth; i++)
            ir_begin_loop(&b, IR_LOOP, ir_scalar(IR_NONE), &n, 1, 1, &arg, NULL);
        base_str err = {0};
        cr_assert_eq(ir_verify(m, &err), depth == 63, "%s", base_str_text(&err));
        cr_assert(depth == 63 || strstr(err.data, "nested too deep"));
        base_str_fini(&err);
    }
    base_arena_free(a);
}
