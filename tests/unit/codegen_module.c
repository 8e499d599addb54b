/* Whole files: the goldens tests/codegen/model.c and model.h are what is emitted, compile with warnings as errors as C11 and
 * C++17 under gcc and clang, and tests/codegen/use.c checks their numbers; two modules fit into one program; the manifest;
 * what cannot be emitted is an error.
 *
 * TIGA_UPDATE_GOLDENS=1 writes the goldens instead of comparing. */
#include "codegen_support.h"

#include <jansson.h>

#define FOLDER TIGA_SOURCE_DIR "/tests/codegen/"

typedef bool emitter(const ir_module *m, const cg_options *o, base_str *out, base_str *err);

static const char *emit(base_arena *a, const char *ir, emitter *fn, const char *header) {
    base_str out = {0}, err = {0};
    cg_options o = test_options;
    o.header_name = header;
    o.source_name = ir;
    ir_module *m = test_parse(a, ir, test_read(a, base_arena_printf(a, FOLDER "%s.ir", ir)));
    cr_assert(fn(m, &o, &out, &err), "%s", base_str_text(&err));
    const char *text = base_arena_strdup(a, base_str_text(&out));
    base_str_fini(&out);
    return text;
}

static void compare_golden(base_arena *a, const char *name, const char *text) {
    const char *path = base_arena_printf(a, FOLDER "%s", name);
    base_str err = {0};
    if (getenv("TIGA_UPDATE_GOLDENS")) {
        cr_assert(base_file_write(path, text, strlen(text), &err), "%s", base_str_text(&err));
        return;
    }
    const char *want = test_read(a, path);
    size_t line = 1, i = 0;
    for (; want[i] && want[i] == text[i]; ++i)
        line += want[i] == '\n';
    cr_assert(want[i] == text[i], "%s:%zu differs from what is emitted; TIGA_UPDATE_GOLDENS=1 writes it anew", path,
              line);
}

static void write_all(base_arena *a) {
    test_write(a, "model.c", emit(a, "model", cg_emit_c, "model.h"));
    test_write(a, "model.h", emit(a, "model", cg_emit_header, "model.h"));
    test_write(a, "second.c", emit(a, "second", cg_emit_c, "second.h"));
    test_write(a, "second.h", emit(a, "second", cg_emit_header, "second.h"));
    test_write(a, "use.c", test_read(a, FOLDER "use.c"));
}

Test(codegen_module, goldens) {
    base_arena *a = base_arena_new();
    compare_golden(a, "model.c", emit(a, "model", cg_emit_c, "model.h"));
    compare_golden(a, "model.h", emit(a, "model", cg_emit_header, "model.h"));
    base_arena_free(a);
}

Test(codegen_module, a_program_of_two_modules_computes_the_right_numbers, .timeout = 120) {
    static const char *const builds[][2] = {{"gcc -std=c11 -O0 -fsanitize=address,undefined -fno-sanitize-recover", ""},
                                            {TEST_CLANG_NATIVE, ""},
                                            {"g++ -std=c++17 -O3 -march=native", "-x c++"},
                                            {"clang++-19 -std=c++17 -O1", "-x c++"}};
    base_arena *a = base_arena_new();
    write_all(a);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; ++i) {
        const char *cc = builds[i][0], *x = builds[i][1];
        test_shell(a, base_arena_printf(a, "%s" STRICT "%s -c model.c -o model.o", cc, x));
        test_shell(a, base_arena_printf(
                          a, "%s" STRICT "%s -DTIGA_MODULE_SYMBOL_NAME=second_module -c second.c -o second.o", cc, x));
        test_shell(
            a, base_arena_printf(
                   a, "%s -Wall -Wextra -Werror %s -c use.c -o use.o && %s use.o model.o second.o -o use -lm && ./use",
                   cc, x, cc));
    }
    test_remove_folder(a);
    base_arena_free(a);
}

Test(codegen_module, headers_stand_alone_and_together, .timeout = 60) {
    static const char *const orders[] = {
        "#include \"model.h\"\n",
        "#include \"tiga/tiga.h\"\n#include \"model.h\"\n#include \"second.h\"\n",
        "#include \"model.h\"\n#include \"second.h\"\n#include \"tiga/tiga.h\"\n",
        "#include \"model.h\"\n#include \"model.h\"\n#include \"tiga/abi.h\"\n",
    };
    base_arena *a = base_arena_new();
    write_all(a);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; ++i) {
        test_write(a, "one.c", base_arena_printf(a, "%sint main(void) { return 0; }\n", orders[i]));
        const char *flags = STRICT "-pedantic -I" TIGA_SOURCE_DIR "/include -c one.c -o one.o";
        test_shell(a, base_arena_printf(a,
                                        "gcc -std=c11 %s && g++ -x c++ -std=c++17 %s && clang-19 -std=c11 %s && "
                                        "clang++-19 -x c++ -std=c++17 %s",
                                        flags, flags, flags, flags));
    }
    test_remove_folder(a);
    base_arena_free(a);
}

static const char *text_at(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

Test(codegen_module, manifest) {
    base_arena *a = base_arena_new();
    json_t *root = json_loads(emit(a, "model", cg_emit_json, "model.h"), 0, NULL);
    cr_assert(root);
    cr_assert_str_eq(text_at(root, "compiler"), "tigac test");
    json_t *kernels = json_object_get(root, "kernels"), *programs = json_object_get(root, "programs");
    cr_assert_eq(json_array_size(kernels), 3);
    cr_assert_eq(json_array_size(programs), 1);
    json_t *ws = json_array_get(kernels, 0), *x = json_array_get(json_object_get(ws, "params"), 0);
    cr_assert_str_eq(text_at(ws, "name"), "weighted_sum");
    cr_assert_str_eq(text_at(x, "role"), "src");
    cr_assert_str_eq(text_at(x, "dtype"), "f32");
    cr_assert_str_eq(json_string_value(json_array_get(json_object_get(x, "shape"), 0)), "F");
    json_t *u = json_array_get(json_object_get(json_array_get(programs, 0), "params"), 1);
    cr_assert_str_eq(text_at(u, "graph"), "g");
    cr_assert_str_eq(text_at(u, "role"), "dst");
    cr_assert_eq(json_array_size(json_object_get(u, "shape")), 0);
    json_decref(root);
    base_arena_free(a);
}

/* ---- in parts ----------------------------------------------------------------------------------------------------- */
static size_t occurrences(const char *text, const char *part) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); ++p)
        n++;
    return n;
}

/* How many files it became; their text is the arena's. */
static size_t emit_parts(base_arena *a, const ir_module *m, int source_bits, const char *text[CG_MOST_PARTS]) {
    base_str out[CG_MOST_PARTS] = {0}, err = {0};
    cg_options o = test_options;
    size_t n = 0;
    o.source_bits = source_bits;
    cr_assert(cg_emit_c_parts(m, &o, out, &err), "%s", base_str_text(&err));
    for (size_t i = 0; i < CG_MOST_PARTS; ++i) {
        cr_assert(!out[i].len || n == i);
        if (out[i].len)
            text[n++] = base_arena_strdup(a, base_str_text(&out[i]));
        base_str_fini(&out[i]);
    }
    return n;
}

static ir_module *read_module(base_arena *a, const char *name) {
    return test_parse(a, name, test_read(a, base_arena_printf(a, FOLDER "%s.ir", name)));
}

/* As many compilers and a linker make a module of them; what they share is for each other only. */
static void build_parts(base_arena *a, const char *const *text, size_t n) {
    base_str *files = base_arena_str(a);
    for (size_t i = 0; i < n; ++i) {
        test_write(a, base_arena_printf(a, "part%zu.c", i), text[i]);
        base_str_addf(files, " part%zu.c", i);
    }
    test_shell(a,
               base_arena_printf(
                   a, "gcc -std=c11 -O0 -fPIC -fvisibility=hidden -shared -Wall -Werror%s -o parts.so -lm -Wl,-z,defs",
                   base_str_text(files)));
    test_shell(a, "! nm -D --defined-only parts.so | grep -E 'rows32|rows64|rows_any|scratch_bytes'");
}

/* Each kernel is in one of them, the table in the first. */
Test(codegen_module, parts, .timeout = 60) {
    static const char *const kernels[] = {"void weighted_sum_rows32(", "void smooth_rows32(", "void spread_rows32("};
    base_arena *a = base_arena_new();
    const char *text[CG_MOST_PARTS];
    cr_assert_eq(emit_parts(a, read_module(a, "model"), 32, text), 2);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i) {
        cr_assert_eq(occurrences(text[0], kernels[i]) + occurrences(text[1], kernels[i]),
                     occurrences(text[0], kernels[i]) == 2 ? 2 : 3, "%s", kernels[i]);
        cr_assert_leq(occurrences(text[0], kernels[i]), 2);
    }
    cr_assert_eq(occurrences(text[0], "tiga_info ="), 1);
    cr_assert_eq(occurrences(text[1], "tiga_info ="), 0);
    build_parts(a, text, 2);
    test_remove_folder(a);
    base_arena_free(a);
}

/* With rows for both kinds of sources and plain functions: each defined once, whatever the part. */
Test(codegen_module, parts_with_plain_functions, .timeout = 60) {
    static const char *const once[] = {"\nvoid weighted_sum(const", "\nvoid weighted_sum_rows(const", "tiga_info ="};
    base_arena *a = base_arena_new();
    const char *text[CG_MOST_PARTS];
    cr_assert_eq(emit_parts(a, read_module(a, "model"), 0, text), 2);
    for (size_t i = 0; i < sizeof once / sizeof *once; ++i)
        cr_assert_eq(occurrences(text[0], once[i]) + occurrences(text[1], once[i]), 1, "%s", once[i]);
    build_parts(a, text, 2);
    test_remove_folder(a);
    base_arena_free(a);
}

/* Not worth two. */
Test(codegen_module, a_small_module_stays_whole) {
    base_arena *a = base_arena_new();
    const char *text[CG_MOST_PARTS];
    cr_assert_eq(emit_parts(a, read_module(a, "second"), 32, text), 1);
    base_arena_free(a);
}

/* ---- when memory ends ---------------------------------------------------------------------------------------------- */
static bool emit_all(const ir_module *m, const cg_options *o, base_str *out, base_str *err) {
    base_str parts[CG_MOST_PARTS] = {0};
    bool ok = cg_emit_c_parts(m, o, parts, err);
    for (int i = 0; i < CG_MOST_PARTS; ++i) {
        base_str_add(out, base_str_text(&parts[i]));
        base_str_fini(&parts[i]);
    }
    return ok && !out->failed;
}

/* Allocation number k fails: an error in words, or the same text.  Every one of the first, then some. */
static void fail_each_allocation(const ir_module *m, emitter *fn) {
    base_str want = {0}, err = {0};
    cr_assert(fn(m, &test_options, &want, &err), "%s", base_str_text(&err));
    bool reached = true;
    for (uint64_t k = 1; reached; k += k < 300 ? 1 : 17) {
        base_str out = {0}, why = {0};
        base_inject_at(BASE_INJECT_ALLOC, k);
        bool ok = fn(m, &test_options, &out, &why);
        reached = base_inject_count(BASE_INJECT_ALLOC) >= k;
        base_inject_at(BASE_INJECT_ALLOC, 0);
        cr_assert(ok ? !strcmp(base_str_text(&out), base_str_text(&want)) : out.failed || why.failed || why.len > 0,
                  "allocation %llu: %d '%s'", (unsigned long long)k, ok, base_str_text(&why));
        cr_assert(ok || reached);
        base_str_fini(&out);
        base_str_fini(&why);
    }
    base_str_fini(&want);
}

Test(codegen_module, every_allocation_may_fail, .timeout = 120) {
    static emitter *const emitters[] = {cg_emit_c, emit_all, cg_emit_header, cg_emit_json};
    base_arena *a = base_arena_new();
    ir_module *m = test_parse(a, "model", test_read(a, FOLDER "model.ir"));
    for (size_t i = 0; i < sizeof emitters / sizeof *emitters; ++i)
        fail_each_allocation(m, emitters[i]);
    base_arena_free(a);
}

/* ---- refused ------------------------------------------------------------------------------------------------------- */
static void expect_refusal(const char *ir, const char *part) {
    base_arena *a = base_arena_new();
    base_str out = {0}, err = {0};
    base_diags d;
    base_diags_init(&d, a, "bad", ir);
    ir_module *m = ir_parse(a, "bad", ir, &d);
    cr_assert(m);
    cr_assert(!cg_emit_c(m, &test_options, &out, &err));
    cr_assert(strstr(base_str_text(&err), part), "'%s' lacks '%s'", base_str_text(&err), part);
    base_str_fini(&out);
    base_str_fini(&err);
    base_arena_free(a);
}

Test(codegen_module, refuses_what_it_cannot_emit) {
    expect_refusal("module \"bad\"\n\ntask @t() -> () {\n  %1 = const {value = 1} : i64\n  launch %1 {callee = none, "
                   "graph = -1, outputs = 0, buffers = 0}\n  ret\n}\n",
                   "launch of 'none'");
    expect_refusal("module \"bad\"\n\ntask @t() -> () {\n  %1 = const {value = 1} : i64\n  %2 = instance %1 {name = a, "
                   "version = 0, tier = moon} : instance\n  ret\n}\n",
                   "no tier 'moon'");
}

/* Functions whose names would be the same in C, or a name of ours. */
Test(codegen_module, names_of_functions_do_not_meet, .timeout = 60) {
    static const char *const names[] = {"sum", "sum_rows", "sum_host",     "\"a.b\"", "a_b",
                                        "exp", "for",      "tiga_kernels", "X"};
    base_arena *a = base_arena_new();
    base_str text = {0}, out = {0}, err = {0};
    base_str_add(&text, "module \"names\"\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        base_str_addf(
            &text,
            "\nloop @%s(dst x: f32, outrow out: f32) domain = rows {\n  rows {\n    %%2 = arg {index = 0} : i64\n"
            "    %%3 = load %%2 {field = 0} : f32\n    %%4 = exp %%3 : f32\n    store %%2, %%4 {field = 1}\n  }\n}\n"
            "\nkernel @%s(dst x: f32) -> (out: row f32) exported domain = rows {\n  %%1 = field {field = 0, at = dst} "
            ": row f32\n  %%2 = exp %%1 : row f32\n  ret %%2\n}\n",
            names[i], names[i]);
    ir_module *m = test_parse(a, "names", base_str_text(&text));
    cr_assert(cg_emit_c(m, &test_options, &out, &err), "%s", base_str_text(&err));
    test_write(a, "names.c", base_str_text(&out));
    test_shell(a, "gcc -std=c11" STRICT "-c names.c -o names.o && clang++-19 -x c++ -std=c++17" STRICT
                  "-c names.c -o names.o");
    test_remove_folder(a);
    base_str_fini(&text);
    base_str_fini(&out);
    base_arena_free(a);
}
