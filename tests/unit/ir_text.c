/* The text form: what is printed parses and prints the same bytes; garbage gives errors, never a crash. */
#include "ir_support.h"

#include <glob.h>
#include <stdio.h>

static void check_round_trip(const char *path) {
    base_arena *a = base_arena_new();
    base_str text = {0}, err = {0};
    cr_assert(base_file_read(path, &text, &err), "%s", base_str_text(&err));
    ir_module *m = parse(a, text.data);
    char *out = printed(m);
    cr_assert_str_eq(out, text.data, "%s prints otherwise", path);
    cr_assert(ir_verify(m, &err), "%s: %s", path, base_str_text(&err));
    free(out);
    base_str_fini(&text);
    base_arena_free(a);
}

static size_t for_each_text(void (*fn)(const char *path)) {
    glob_t g;
    cr_assert_eq(glob(TIGA_SOURCE_DIR "/tests/ir/*.ir", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        fn(g.gl_pathv[i]);
    size_t n = g.gl_pathc;
    globfree(&g);
    return n;
}

Test(text, every_text_parses_verifies_and_prints_the_same) { cr_assert_geq(for_each_text(check_round_trip), 7); }

Test(text, numbers_begin_at_one_whatever_was_written) {
    ir_module *m =
        parse(base_arena_new(), "module m // any name\n\n\nkernel @k(dst x:f32)->(o:row f32){\n"
                                "%700 = field {at=dst, field=0}:row f32 // read\n\n %3=neg %700 : row f32\n ret %3 }");
    cr_assert_str_eq(printed(m),
                     "module \"m\"\n\nkernel @k(dst x: f32) -> (o: row f32) {\n"
                     "  %1 = field {field = 0, at = dst} : row f32\n  %2 = neg %1 : row f32\n  ret %2\n}\n");
}

Test(text, levels_can_be_left_out) {
    ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/task_pages.ir");
    base_str out = {0};
    ir_print(m, IR_LEVEL_T, &out);
    cr_assert(strstr(out.data, "task @sum"));
    cr_assert_not(strstr(out.data, "loop @sum"));
}

Test(text, operations_in_no_region_are_not_printed) {
    base_arena *a = base_arena_new();
    ir_module *m = parse(a, "module m\nprogram @p()->(o:i64){\n%1=const{value=1}:i64\nret %1\n}");
    ir_func *f = m->funcs[0];
    ir_op_new(m, f, IR_NEG, ir_scalar(IR_I64), (ir_id[]){1}, 1);
    cr_assert_str_eq(printed(m),
                     "module \"m\"\n\nprogram @p() -> (o: i64) {\n  %1 = const {value = 1} : i64\n  ret %1\n}\n");
    cr_assert_eq(ir_printed_number(f, 2), 2);
    cr_assert_eq(ir_printed_number(f, 3), 0);
}

/* ---- errors: the text, the id of the first error, and where it is ---- */
typedef struct wrong {
    const char *text, *id, *at;
} wrong;
#define P "module m\nprogram @p[F](param x: f32[F]) -> (o: f32) {\n"

static const wrong wrongs[] = {
    {"", "E0901", ""},
    {"nonsense", "E0901", "nonsense"},
    {"module m\nfunction @f() {}", "E0901", "function"},
    {"module m\nkernel f() {}", "E0901", "f()"},
    {"module m\nkernel @f(x: f32) {}", "E0908", "x:"},
    {"module m\nkernel @f(src x f32) {}", "E0901", "f32"},
    {"module m\nkernel @f[F, F]() {}", "E0908", "F]"},
    {"module m\nkernel @f() domain = cols {}", "E0908", "cols"},
    {"module m\nkernel @f() {\n}\nkernel @f() {\n}", "E0908", NULL},
    {"module m\nkernel @f(src x: f128) {}", "E0907", "f128"},
    {"module m\nkernel @f(src x: f32[G]) {}", "E0907", "G]"},
    {"module m\nkernel @f(src x: f32[-1]) {}", "E0907", "-1"},
    {"module m\nkernel @f(src x: f32[1,1,1,1,1,1,7]) {}", "E0907", "7]"},
    {"module m\nkernel @f(src x: f32[F) {}", "E0907", "F)"},
    {"module m\nkernel @f() unit = x {}", "E0901", "x {}"},
    {"module m\nkernel @f(", "E0908", ""},
    {P "%1 = const {value = 1} : f32", "E0901", ""},
    {P "%1 = consd {value = 1} : f32\nret %1\n}", "E0902", "consd"},
    {P "%1 = const {valeu = 1} : f32\nret %1\n}", "E0903", "valeu"},
    {P "%1 = const {value = 1, value = 1} : f32\nret %1\n}", "E0903", "value = 1}"},
    {P "%1 = param {field = 0, field = 0} : f32\nret %1\n}", "E0903", "field = 0}"},
    {P "%1 = param {field = 1.5} : f32\nret %1\n}", "E0904", "1.5"},
    {P "%1 = param {field = 99999999999999999999} : f32\nret %1\n}", "E0904", "9999"},
    {P "%1 = const {value = 1.5} : i64\nret %1\n}", "E0904", "1.5"},
    {P "%1 = const {value = 2147483648} : i32\nret %1\n}", "E0904", "2147483648"},
    {P "%1 = const {value = 2} : bool\nret %1\n}", "E0904", "2}"},
    {P "%1 = const {value = zero} : f32\nret %1\n}", "E0904", "zero"},
    {P "ret {value = 1}\n}", "E0904", "1}"},
    {P "%1 = dimsize {dim = G} : i64\nret %1\n}", "E0907", "G}"},
    {P "%2 = neg %1 : f32\nret %2\n}", "E0905", "%1"},
    {P "%0 = const {value = 1} : f32\nret %0\n}", "E0905", "%0"},
    {P "%99999999 = const {value = 1} : f32\n}", "E0905", "%99999999"},
    {P "%1 = const {value = 1} : f32\n%1 = const {value = 1} : f32\nret %1\n}", "E0906", NULL},
    {P "const {value = 1} : f32\n}", "E0901", "const"},
    {P "%1 = const {value = 1}\n}", "E0901", "%1"},
    {P "%1 = const {value = 1} : f32 ret %1\n}", "E0901", "ret"},
    {P "%1 = add %1 %2 : f32\n}", "E0905", "%1 %2"},
    {P "%1 = param {field = 0} : f32[F]\n}\n}", "E0901", NULL},
    {P "ret \"unclosed\n}", "E0901", "\"unclosed"},
    {P "\x80\xff\n}", "E0901", "\x80"},
};

Test(text, each_error_has_its_id_and_place) {
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        base_arena *a = base_arena_new();
        base_diags d;
        base_diags_init(&d, a, "t", wrongs[i].text);
        cr_assert_null(ir_parse(a, "t", wrongs[i].text, &d), "text %zu parses", i);
        cr_assert_geq(d.n_errors, 1);
        cr_assert_str_eq(d.items[0]->id, wrongs[i].id, "text %zu: %s: %s", i, d.items[0]->id, d.items[0]->text);
        const char *at = wrongs[i].at;
        size_t want = at && *at ? (size_t)(strstr(wrongs[i].text, at) - wrongs[i].text) : strlen(wrongs[i].text);
        cr_assert(!at || d.items[0]->span.begin == want, "text %zu: %s at %u, not %zu", i, d.items[0]->text,
                  d.items[0]->span.begin, want);
        base_arena_free(a);
    }
}

Test(text, several_errors_come_in_one_run) {
    const char *text =
        P "%1 = nope : f32\n%2 = neg %1 : f32\n%3 = const {value = x} : f32\n%4 = neg %9 : f32\nret %2\n}";
    base_arena *a = base_arena_new();
    base_diags d;
    base_diags_init(&d, a, "t", text);
    cr_assert_null(ir_parse(a, "t", text, &d));
    cr_assert_geq(d.n_errors, 3);
}

Test(text, nesting_is_bounded) {
    base_str s = {0};
    base_str_add(&s, "module m\nloop @l() domain = rows {\n%1 = const {value = 1} : i64\n");
    for (int i = 0; i < 100000; i++)
        base_str_add(&s, "loop %1 {\n");
    base_arena *a = base_arena_new();
    base_diags d;
    base_diags_init(&d, a, "t", s.data);
    cr_assert_null(ir_parse(a, "t", s.data, &d));
    cr_assert_str_eq(d.items[d.n - 1]->id, "E0909");
}

/* ---- mutations: any bytes in, no crash; what parses prints and parses again ---- */
static uint64_t state = 88172645463325252u;
static uint64_t next_random(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void try_text(const char *text) {
    base_arena *a = base_arena_new();
    base_diags d;
    base_str shown = {0}, err = {0};
    base_diags_init(&d, a, "t", text);
    ir_module *m = ir_parse(a, "t", text, &d);
    cr_assert_eq(m == NULL, d.n_errors > 0);
    base_diags_render(&d, false, &shown);
    if (m) {
        char *once = printed(m), *twice = printed(parse(a, once));
        cr_assert_str_eq(once, twice);
        ir_verify(m, &err);
        free(once);
        free(twice);
    }
    base_str_fini(&shown);
    base_str_fini(&err);
    base_arena_free(a);
}

static void mutate(const char *path) {
    static const char *const tokens[] = {"%1",    "{",     "}",   "[",    "]",         "(",    ")",   ":",     "=",
                                         "->",    "@",     "\"",  "-",    "9",         "tile", "row", "tuple", "rows",
                                         "edges", "yield", "get", "call", "axes = 63", "\n",   ",",   "\\x0"};
    base_str text = {0}, err = {0};
    cr_assert(base_file_read(path, &text, &err));
    for (int round = 0; round < 150; round++) {
        base_str s = {0};
        size_t at = next_random() % text.len, cut = next_random() % 12;
        base_str_add_n(&s, text.data, at);
        const char *token = tokens[next_random() % (sizeof tokens / sizeof *tokens)];
        if (next_random() % 3)
            base_str_add(&s, token);
        if (at + cut < text.len && next_random() % 8)
            base_str_add_n(&s, text.data + at + cut, text.len - at - cut);
        try_text(base_str_text(&s));
        base_str_fini(&s);
    }
    base_str_fini(&text);
}

Test(text, mutations_never_crash) { for_each_text(mutate); }

/* ---- the n-th allocation fails, for all n ---- */
typedef struct attempt {
    base_arena *arena;
    const char *text;
    ir_module *m;
} attempt;

static void parse_once(void *ctx) {
    attempt *t = ctx;
    base_diags d;
    base_diags_init(&d, t->arena, "t", t->text);
    t->m = ir_parse(t->arena, "t", t->text, &d);
}

static void fail_each(const char *text, bool parses) {
    for (uint64_t n = 1;; n++) {
        attempt t = {.arena = base_arena_new(), .text = text};
        base_inject_at(BASE_INJECT_ALLOC, n);
        bool ok = base_arena_catch(t.arena, parse_once, &t);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        if (ok)
            cr_assert_eq(t.m != NULL, parses);
        base_arena_free(t.arena);
        if (ok)
            break;
        cr_assert_lt(n, 100000);
    }
}

static void fail_each_of_file(const char *path) {
    base_str text = {0}, err = {0};
    cr_assert(base_file_read(path, &text, &err));
    fail_each(text.data, true);
    base_str_fini(&text);
}

Test(text, every_allocation_of_the_parser_can_fail) {
    for_each_text(fail_each_of_file);
    fail_each(P "%1 = nope : f32\n%2 = neg %1 : f32\n}", false);
}

Test(text, every_allocation_of_the_printer_can_fail) {
    ir_module *m = parse_file(base_arena_new(), TIGA_SOURCE_DIR "/tests/ir/loop_forms.ir");
    char *want = printed(m);
    for (uint64_t n = 1;; n++) {
        base_str out = {0};
        base_inject_at(BASE_INJECT_ALLOC, n);
        ir_print(m, IR_LEVEL_L, &out);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        bool failed = out.failed;
        cr_assert(failed || strcmp(out.data, want) == 0);
        base_str_fini(&out);
        if (!failed)
            break;
        cr_assert_lt(n, 1000);
    }
}

/* ---- the table as documentation ---- */
Test(text, the_op_list_has_every_operation) {
    base_str out = {0};
    ir_ops_markdown(&out);
    for (int code = 1; code < IR_OP_COUNT; code++) {
        char cell[64];
        ir_opcode back;
        snprintf(cell, sizeof cell, "| `%s` |", ir_op_describe((ir_opcode)code)->text);
        cr_assert(strstr(out.data, cell), "%s is missing", cell);
        cr_assert(ir_op_from_text(ir_op_describe((ir_opcode)code)->text, &back) && back == (ir_opcode)code);
    }
    cr_assert(strstr(out.data, "| `add` | KPLT | binary | 2 | a + b |\n"));
    cr_assert(strstr(out.data, "| `abs` | KPLT | unary | 1 | \\|a\\|; the least integer is its own |\n"));
    cr_assert(strstr(out.data, "| `lanes` | L | region | 1-2 |"));
}

/* The table is the end of the page; with TIGA_UPDATE_DOCS set it is written anew. */
Test(text, docs_have_the_op_list_of_the_table) {
    const char *path = TIGA_SOURCE_DIR "/docs/ir.md";
    base_str docs = {0}, err = {0}, out = {0};
    cr_assert(base_file_read(path, &docs, &err), "%s", base_str_text(&err));
    const char *table = strstr(docs.data, "| operation | levels |");
    cr_assert_not_null(table);
    size_t before = (size_t)(table - docs.data);
    base_str_add_n(&out, docs.data, before);
    ir_ops_markdown(&out);
    if (getenv("TIGA_UPDATE_DOCS"))
        cr_assert(base_file_write(path, out.data, out.len, &err), "%s", base_str_text(&err));
    else
        cr_assert_str_eq(docs.data + before, out.data + before,
                         "docs/ir.md is behind ir_ops.def; see TIGA_UPDATE_DOCS there");
    base_str_fini(&docs);
    base_str_fini(&out);
}
