/* The form of what lower, merge, hoist and the schedules make: nothing of a row is computed per edge, loops that belong
 * together become one and others do not, loads leave only where their index is known to be good. */
#include "passes_lower_support.h"

/* ---- counting ---- */
typedef struct count {
    ir_opcode code;
    int depth_of_edges; /* > 0 inside of edges */
    int n;
} count;

static void count_in(const ir_func *f, const ir_region *r, count *c) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        c->n += c->depth_of_edges && op->code == c->code;
        if (!op->region)
            continue;
        c->depth_of_edges += op->code == IR_EDGES;
        count_in(f, op->region, c);
        c->depth_of_edges -= op->code == IR_EDGES;
    }
}

static int per_edge(const ir_func *f, ir_opcode code) {
    count c = {.code = code};
    count_in(f, &f->body, &c);
    return c.n;
}

static int everywhere(const ir_func *f, ir_opcode code) {
    count c = {.code = code, .depth_of_edges = 1};
    count_in(f, &f->body, &c);
    return c.n;
}

static const ir_func *lowered(base_arena *a, const char *text, const char *passes) {
    ir_module *m = parse_text(a, "kernel", text);
    run_passes(m, passes, 0, false, a);
    return ir_func_find(m, "k", IR_LEVEL_LOOP);
}

/* exp of a row value, tanh of a uniform one, sin per edge. */
#define INVARIANT_KERNEL(SHAPE, SYMS)                                                                                  \
    "module \"k\"\nkernel @k" SYMS "(src x: f32" SHAPE ", dst y: f32" SHAPE ", param p: f32" SHAPE                     \
    ") -> (o: row f32" SHAPE ") {\n"                                                                                   \
    "  %1 = field {field = 0, at = src} : edge f32" SHAPE "\n"                                                         \
    "  %2 = field {field = 1, at = dst} : row f32" SHAPE "\n"                                                          \
    "  %3 = exp %2 : row f32" SHAPE "\n"                                                                               \
    "  %4 = field {field = 2, at = param} : f32" SHAPE "\n"                                                            \
    "  %5 = tanh %4 : f32" SHAPE "\n"                                                                                  \
    "  %6 = sin %1 : edge f32" SHAPE "\n"                                                                              \
    "  %7 = mul %6, %3 : edge f32" SHAPE "\n"                                                                          \
    "  %8 = add %7, %5 : edge f32" SHAPE "\n"                                                                          \
    "  %9 = reduce %8 {kind = sum} : row f32" SHAPE "\n"                                                               \
    "  ret %9\n}\n"

Test(passes_loops, row_and_uniform_values_are_not_computed_per_edge) {
    static const char *const texts[] = {INVARIANT_KERNEL("", ""),         INVARIANT_KERNEL("[F]", "[F]"),
                                        INVARIANT_KERNEL("[16]", ""),     INVARIANT_KERNEL("[300]", ""),
                                        INVARIANT_KERNEL("[1, 5]", ""),   INVARIANT_KERNEL("[H, F]", "[H, F]"),
                                        INVARIANT_KERNEL("[F, 1]", "[F]")};
    static const char *const lists[] = {"lower", "lower,merge,hoist,schedule_cpu"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t l = 0; l < 2; l++) {
            base_arena *a = base_arena_new();
            const ir_func *f = lowered(a, texts[i], lists[l]);
            cr_expect_eq(per_edge(f, IR_EXP), 0, "%s", texts[i]);
            cr_expect_eq(per_edge(f, IR_TANH), 0, "%s", texts[i]);
            cr_expect_eq(everywhere(f, IR_EXP), 1, "%s", texts[i]);
            cr_expect_eq(everywhere(f, IR_TANH), 1, "%s", texts[i]);
            cr_expect_eq(per_edge(f, IR_SIN), 1, "%s", texts[i]);
            cr_expect_eq(everywhere(f, IR_EDGES), 1, "%s", texts[i]);
            base_arena_free(a);
        }
}

static const ir_op *first(const ir_func *f, const ir_region *r, ir_opcode code) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        if (op->code == code)
            return op;
        const ir_op *inner = op->region ? first(f, op->region, code) : NULL;
        if (inner)
            return inner;
    }
    return NULL;
}

static const ir_func *kernel_of(base_arena *a, const char *name, const char *passes) {
    ir_module *m = read_ir(a, LOWER_TEXTS "/kernels.ir");
    run_passes(m, passes, 0, false, a);
    const ir_func *f = ir_func_find(m, name, IR_LEVEL_LOOP);
    cr_assert(f, "%s", name);
    return f;
}

/* Kernels of the table take the form that docs/ir.md gives them. */
Test(passes_loops, forms) {
    static const struct form {
        const char *name;
        int tiles, edges;
        int64_t lanes; /* of the first walk */
    } forms[] = {
        {"weighted_sum", 1, 1, 1},    {"weighted_sum_16", 0, 1, 1},
        {"weighted_sum_1", 0, 1, 16}, {"weighted_sum_257", 1, 1, 1},
        {"weighted_sum_0", 0, 0, 1},  {"gat_4_8", 0, 1, 1},
        {"attention", 0, 1, 1},       {"sddmm", 0, 1, 1},
        {"diffuse", 0, 1, 16},        {"shortest", 0, 1, 16},
        {"two_pass", 1, 4, 16},       {"two_pass_8", 0, 3, 1},
        {"through_fold", 0, 2, 1},    {"mean", 1, 1, 1},
        {"pointwise", 0, 0, 1},       {"variance", 1, 3, 1},
        {"through_scalar", 1, 3, 16},
    };
    base_arena *a = base_arena_new();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const ir_func *f = kernel_of(a, forms[i].name, "expand,lower");
        const ir_op *walk = first(f, &f->body, IR_EDGES);
        cr_expect_eq(everywhere(f, IR_TILES), forms[i].tiles, "%s: %d tiles", forms[i].name, everywhere(f, IR_TILES));
        cr_expect_eq(everywhere(f, IR_EDGES), forms[i].edges, "%s: %d walks", forms[i].name, everywhere(f, IR_EDGES));
        cr_expect_eq(walk ? ir_int(walk, IR_ATTR_LANES, 1) : 1, forms[i].lanes, "%s", forms[i].name);
    }
    base_arena_free(a);
}

/* ---- text to text ---- */
static void expect_text(const char *passes, const char *before, const char *after) {
    base_arena *a = base_arena_new();
    ir_module *m = parse_text(a, "before", before), *want = parse_text(a, "after", after);
    run_passes(m, passes, 0, false, a);
    base_str x = {0}, y = {0};
    ir_print(m, 15, &x);
    ir_print(want, 15, &y);
    cr_expect_str_eq(base_str_text(&x), base_str_text(&y), "%s:\n%s", passes, base_str_text(&x));
    base_str_fini(&x);
    base_str_fini(&y);
    base_arena_free(a);
}

#define HEAD                                                                                                           \
    "module \"t\"\nloop @k[F](src x: f32[F], dst y: f32, param p: f32[F], param q: f32[3], outrow o: f32, outrow r: "  \
    "f32) domain = dst {\n"

Test(passes_loops, merge_joins_walks_without_dependence) {
    expect_text(
        "merge",
        HEAD
        "rows { %1 = arg {index = 0} : i64\n %2 = partials {kind = sum} : f32\n"
        "edges %1 {lanes = 16} { %3 = arg {index = 0} : i64\n %4 = arg {index = 1} : i64\n %5 = arg {index = 2} : i64\n"
        " %6 = cast %4 : f32\n accum %2, %5, %6 }\n"
        "%7 = collapse %2 : f32\n store %1, %7 {field = 4}\n %8 = partials {kind = max} : f32\n"
        "edges %1 {lanes = 16} { %9 = arg {index = 0} : i64\n %10 = arg {index = 1} : i64\n %11 = arg {index = 2} : "
        "i64\n"
        " %12 = cast %9 : f32\n accum %8, %11, %12 }\n"
        "%13 = collapse %8 : f32\n store %1, %13 {field = 5} } }\n",
        HEAD
        "rows { %1 = arg {index = 0} : i64\n %2 = partials {kind = sum} : f32\n %8 = partials {kind = max} : f32\n"
        "edges %1 {lanes = 16} { %3 = arg {index = 0} : i64\n %4 = arg {index = 1} : i64\n %5 = arg {index = 2} : i64\n"
        " %6 = cast %4 : f32\n accum %2, %5, %6\n %12 = cast %3 : f32\n accum %8, %5, %12 }\n"
        "%7 = collapse %2 : f32\n store %1, %7 {field = 4}\n"
        "%13 = collapse %8 : f32\n store %1, %13 {field = 5} } }\n");
}

/* The second walk needs the result of the first. */
#define DEPENDENT                                                                                                      \
    HEAD "rows { %1 = arg {index = 0} : i64\n %2 = partials {kind = sum} : f32\n"                                      \
         "edges %1 { %3 = arg {index = 0} : i64\n %4 = arg {index = 1} : i64\n %5 = arg {index = 2} : i64\n"           \
         " %6 = cast %4 : f32\n accum %2, %5, %6 }\n"                                                                  \
         "%7 = collapse %2 : f32\n %8 = partials {kind = max} : f32\n"                                                 \
         "edges %1 { %9 = arg {index = 0} : i64\n %10 = arg {index = 1} : i64\n %11 = arg {index = 2} : i64\n"         \
         " %12 = cast %9 : f32\n %13 = mul %12, %7 : f32\n accum %8, %11, %13 }\n"                                     \
         "%14 = collapse %8 : f32\n store %1, %14 {field = 4} } }\n"

Test(passes_loops, merge_keeps_dependent_walks) { expect_text("merge", DEPENDENT, DEPENDENT); }

/* A walk in order and one in lanes go in order. */
Test(passes_loops, merge_of_unequal_lanes_goes_in_order) {
    expect_text(
        "merge",
        HEAD
        "rows { %1 = arg {index = 0} : i64\n %2 = partials {kind = sum} : f32\n %3 = partials {kind = max} : f32\n"
        "edges %1 {lanes = 16} { %4 = arg {index = 0} : i64\n %5 = arg {index = 1} : i64\n %6 = arg {index = 2} : i64\n"
        " %7 = cast %5 : f32\n accum %2, %6, %7 }\n"
        "edges %1 { %8 = arg {index = 0} : i64\n %9 = arg {index = 1} : i64\n %10 = arg {index = 2} : i64\n"
        " %11 = cast %8 : f32\n accum %3, %10, %11 }\n"
        "%12 = collapse %2 : f32\n store %1, %12 {field = 4} } }\n",
        HEAD
        "rows { %1 = arg {index = 0} : i64\n %2 = partials {kind = sum} : f32\n %3 = partials {kind = max} : f32\n"
        "edges %1 {lanes = 1} { %4 = arg {index = 0} : i64\n %5 = arg {index = 1} : i64\n %6 = arg {index = 2} : i64\n"
        " %7 = cast %5 : f32\n accum %2, %6, %7\n %11 = cast %4 : f32\n accum %3, %6, %11 }\n"
        "%12 = collapse %2 : f32\n store %1, %12 {field = 4} } }\n");
}

#define TWO_LANES(INDEX)                                                                                               \
    HEAD "%1 = dimsize {dim = F} : i64\n rows { %2 = arg {index = 0} : i64\n %3 = var {name = v} : f32[F]\n"           \
         "%30 = partials {kind = sum} : f32\n %31 = const {value = 0} : i64\n"                                         \
         "lanes %1 { %4 = arg {index = 0} : i64\n %5 = arg {index = 1} : i64\n %6 = load %4 {field = 2} : f32\n set "  \
         "%3, %4, %6 }\n"                                                                                              \
         "lanes %1 { %7 = arg {index = 0} : i64\n %8 = arg {index = 1} : i64\n %9 = read %3, " INDEX                   \
         " : f32\n accum %30, %7, %9 }\n"                                                                              \
         "%10 = collapse %30 : f32\n store %2, %10 {field = 4} } }\n"

Test(passes_loops, merge_joins_lanes_that_keep_to_their_own_element) {
    expect_text("merge", TWO_LANES("%7"),
                HEAD "%1 = dimsize {dim = F} : i64\n rows { %2 = arg {index = 0} : i64\n %3 = var {name = v} : f32[F]\n"
                     "%30 = partials {kind = sum} : f32\n %31 = const {value = 0} : i64\n"
                     "lanes %1 { %4 = arg {index = 0} : i64\n %5 = arg {index = 1} : i64\n %6 = load %4 {field = 2} : "
                     "f32\n set %3, %4, %6\n"
                     "%9 = read %3, %4 : f32\n accum %30, %4, %9 }\n"
                     "%10 = collapse %30 : f32\n store %2, %10 {field = 4} } }\n");
    expect_text("merge", TWO_LANES("%31"), TWO_LANES("%31")); /* element 0 is another lane's */
}

/* A load of a row leaves the walk, one at the source stays; an index that nobody has checked stays too. */
Test(passes_loops, hoist_moves_only_what_is_safe) {
    expect_text(
        "hoist",
        HEAD "rows { %1 = arg {index = 0} : i64\n %2 = partials {kind = sum} : f32\n"
             "edges %1 { %3 = arg {index = 0} : i64\n %4 = arg {index = 1} : i64\n %5 = arg {index = 2} : i64\n"
             " %6 = load %1 {field = 1} : f32\n %7 = const {value = 2} : f32\n %8 = mul %6, %7 : f32\n"
             " %9 = const {value = 0} : i64\n %10 = load %9 {field = 2} : f32\n %11 = load %9 {field = 3} : f32\n"
             " %12 = const {value = 3} : i64\n %13 = load %12 {field = 3} : f32\n"
             " %14 = load %4, %9 {field = 0} : f32\n"
             " accum %2, %5, %8\n accum %2, %5, %10\n accum %2, %5, %11\n accum %2, %5, %13\n accum %2, %5, %14 }\n"
             "%20 = collapse %2 : f32\n store %1, %20 {field = 4} } }\n",
        HEAD "%7 = const {value = 2} : f32\n %9 = const {value = 0} : i64\n %11 = load %9 {field = 3} : f32\n"
             "%12 = const {value = 3} : i64\n"
             "rows { %1 = arg {index = 0} : i64\n %2 = partials {kind = sum} : f32\n"
             "%6 = load %1 {field = 1} : f32\n %8 = mul %6, %7 : f32\n"
             "edges %1 { %3 = arg {index = 0} : i64\n %4 = arg {index = 1} : i64\n %5 = arg {index = 2} : i64\n"
             " %10 = load %9 {field = 2} : f32\n"
             " %13 = load %12 {field = 3} : f32\n"
             " %14 = load %4, %9 {field = 0} : f32\n"
             " accum %2, %5, %8\n accum %2, %5, %10\n accum %2, %5, %11\n accum %2, %5, %13\n accum %2, %5, %14 }\n"
             "%20 = collapse %2 : f32\n store %1, %20 {field = 4} } }\n");
}

/* ---- schedules ---- */
Test(passes_loops, cuda_teams) {
    static const struct team {
        const char *name;
        int64_t team;
    } teams[] = {{"weighted_sum", 16}, {"weighted_sum_16", 16}, {"diffuse", 16}, {"gat", 16},   {"gat_4_8", 16},
                 {"attention", 16},    {"sddmm", 16},           {"mean", 16},    {"matmul", 1}, {"layer_norm", 16}};
    base_arena *a = base_arena_new();
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        const ir_func *f = kernel_of(a, teams[i].name, "expand,lower,schedule_cuda");
        cr_expect_eq(f->team, teams[i].team, "%s: team = %lld", teams[i].name, (long long)f->team);
    }
    base_arena_free(a);
}

Test(passes_loops, cpu_widths) {
    base_arena *a = base_arena_new();
    const ir_func *f = kernel_of(a, "weighted_sum", "expand,lower,schedule_cpu");
    cr_expect_eq(ir_int(first(f, &f->body, IR_LANES), IR_ATTR_VECTOR, 0), 16);
    cr_expect_gt(ir_int(first(f, &f->body, IR_EDGES), IR_ATTR_PREFETCH, 0), 0);
    f = kernel_of(a, "diffuse", "expand,lower,schedule_cpu");
    cr_expect_eq(ir_int(first(f, &f->body, IR_EDGES), IR_ATTR_PREFETCH, 0), 0);
    f = kernel_of(a, "kinds_f64_3", "expand,lower,schedule_cpu");
    cr_expect_eq(ir_int(first(f, &f->body, IR_LANES), IR_ATTR_VECTOR, 0), 8);
    base_arena_free(a);
}

/* ---- errors ---- */
static void expect_error(const char *text, const char *want) {
    base_arena *a = base_arena_new();
    ir_module *m = parse_text(a, "kernel", text);
    pass_context ctx = {.scratch = a};
    base_str err = {0};
    cr_expect(!pass_run_pipeline(m, "lower", 0, &ctx, &err));
    cr_expect(strstr(base_str_text(&err), want), "%s", base_str_text(&err));
    base_str_fini(&err);
    base_arena_free(a);
}

Test(passes_loops, errors) {
    expect_error("module \"k\"\nkernel @k(src x: f32) -> (o: row f32) {\n %1 = field {field = 0, at = src} : edge f32\n"
                 " %2 = reduce %1 {kind = mean} : row f32\n ret %2 }\n",
                 "must go through expand first");
    expect_error("module \"k\"\nkernel @k(dst x: f32) -> (o: row f32, t: f32) domain = rows {\n %1 = field {field = 0, "
                 "at = dst} : row f32\n"
                 " %2 = total %1 {kind = sum} : f32\n ret %1, %2 }\n",
                 "is not a total");
}

static char *chain_of_folds(base_arena *a, int n) {
    base_str s = {0};
    base_str_add(&s, "module \"k\"\nkernel @k[F](dst y: f32[F]) -> (o: row f32[F]) domain = rows {\n %1 = field {field "
                     "= 0, at = dst} : row f32[F]\n");
    for (int i = 0; i < n; i++)
        base_str_addf(&s, " %%%d = fold %%%d {kind = sum, axes = 1} : row f32\n %%%d = sub %%%d, %%%d : row f32[F]\n",
                      2 * i + 2, 2 * i + 1, 2 * i + 3, 2 * i + 1, 2 * i + 2);
    base_str_addf(&s, " ret %%%d\n}\n", 2 * n + 1);
    char *text = base_arena_strdup(a, base_str_text(&s));
    base_str_fini(&s);
    return text;
}

/* Each fold needs the value before it: without arrays the code would grow with the square of the chain. */
Test(passes_loops, long_chains_stay_linear) {
    base_arena *a = base_arena_new();
    const ir_func *f = lowered(a, chain_of_folds(a, 500), "lower,merge,hoist");
    cr_expect_lt(everywhere(f, IR_SUB), 500 * 40, "%d subtractions", everywhere(f, IR_SUB));
    expect_error(chain_of_folds(a, 1001), "more than 1000 folds depend on one another");
    base_arena_free(a);
}

/* The samples written by hand for readers of docs/ir.md compute what their kernels do. */
Test(passes_loops, samples_written_by_hand) {
    static const struct sample {
        const char *file, *loop, *kernel;
    } samples[] = {{"weighted_sum_tiled", "weighted_sum", "weighted_sum"},
                   {"weighted_sum_whole", "weighted_sum", "weighted_sum_16"},
                   {"scalar_sum", "diffuse", "diffuse"},
                   {"sddmm", "sddmm", "sddmm"},
                   {"shortest", "shortest", "shortest"}};
    base_arena *a = base_arena_new();
    ir_module *m = read_ir(a, LOWER_TEXTS "/kernels.ir");
    rng r = {3};
    const ir_graph_data *graphs[N_GRAPHS];
    all_graphs(a, &r, graphs);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        ir_module *hand = read_ir(a, base_arena_printf(a, "%s/%s.ir", LOWER_TEXTS, samples[i].file));
        const ir_func *k = ir_func_find(m, samples[i].kernel, IR_LEVEL_KERNEL);
        const ir_func *f = ir_func_find(hand, samples[i].loop, IR_LEVEL_LOOP);
        cr_assert(k && f);
        for (size_t g = 0; g < N_GRAPHS; g++) {
            if (!fits_graph(k, graphs[g]))
                continue;
            arguments x = lower_arguments(a, &r, k, graphs[g], (int64_t[]){70, 3, 2});
            void **want = lower_outputs(a, k, &x), **got = lower_outputs(a, k, &x);
            run_graph(m, k, &x, want);
            ir_call_data call = {.graph = x.g, .dims = x.dims, .in = x.in, .out = got, .n_rows = x.g->n_dst};
            run_one_loop(hand, f, &call, samples[i].file);
            for (size_t o = 0; o < k->n_results; o++)
                for (int64_t at = 0; at < result_elements(k, o, &x); at++)
                    cr_assert(same_bits(k->results[o].type.dtype, got[o], want[o], at), "%s", samples[i].file);
        }
    }
    base_arena_free(a);
}
