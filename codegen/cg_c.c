/* One self-contained C file: prelude, contract with the runtime, the inline functions in use, kernels, host functions,
 * tables.  C11 and C++17; no header is needed when TIGA_FREESTANDING is defined. */
#include "codegen/cg_c.h"
#include "codegen/cg_schedule.h"

#include <stdlib.h>
#include <string.h>

static const char prelude[] =
    "/* Every float operation is rounded once: no fused multiply-add behind the program's back. */\n"
    "#if defined(__clang__)\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#elif defined(__GNUC__) && (defined(__cplusplus) || !defined(__STRICT_ANSI__)) && (defined(__FMA__) || "
    "!defined(__x86_64__))\n"
    "#pragma GCC optimize(\"fp-contract=off\")\n"
    "#endif\n\n"
    "#if defined(TIGA_FREESTANDING) /* no headers at hand: what they would have said */\n"
    "typedef __INT8_TYPE__ int8_t;\n"
    "typedef __UINT8_TYPE__ uint8_t;\n"
    "typedef __UINT16_TYPE__ uint16_t;\n"
    "typedef __INT32_TYPE__ int32_t;\n"
    "typedef __UINT32_TYPE__ uint32_t;\n"
    "typedef __INT64_TYPE__ int64_t;\n"
    "typedef __UINT64_TYPE__ uint64_t;\n"
    "typedef __SIZE_TYPE__ size_t;\n"
    "typedef __UINTPTR_TYPE__ uintptr_t;\n"
    "#define INT32_MAX 2147483647\n"
    "#define INT32_MIN (-INT32_MAX - 1)\n"
    "#define INT64_C(n) ((int64_t)n##LL)\n"
    "#define INT64_MAX INT64_C(9223372036854775807)\n"
    "#define INT64_MIN (-INT64_MAX - 1)\n"
    "#define INFINITY __builtin_inff()\n"
    "#define NAN __builtin_nanf(\"\")\n"
    "#if defined(__cplusplus)\n"
    "#define NULL 0\n"
    "#else\n"
    "#define NULL ((void *)0)\n"
    "#define bool _Bool\n"
    "#define true 1\n"
    "#define false 0\n"
    "#endif\n";

static const char prelude_headers[] = "#else\n"
                                      "#include <math.h>\n"
                                      "#include <stdbool.h>\n"
                                      "#include <stddef.h>\n"
                                      "#include <stdint.h>\n"
                                      "#endif\n\n";

static const char prelude_math[] =
    "#if defined(__cplusplus)\n"
    "extern \"C\" {\n"
    "#endif\n"
    "#define TIGA_MATH1(name) double name(double); float name##f(float);\n"
    "#define TIGA_MATH2(name) double name(double, double); float name##f(float, float);\n"
    "TIGA_MATH1(sqrt) TIGA_MATH1(floor) TIGA_MATH1(ceil) TIGA_MATH1(rint) TIGA_MATH1(fabs)\n"
    "TIGA_MATH2(fmod)\n"
    "#if defined(__cplusplus)\n"
    "}\n"
    "#endif\n";

static const char macros[] =
    "#define TIGA_FN static inline\n"
    "#if defined(__GNUC__) /* where it would stand in one function many times */\n"
    "#define TIGA_APART static __attribute__((noinline, unused))\n"
    "#else\n"
    "#define TIGA_APART static\n"
    "#endif\n"
    "#define TIGA_SIZE_MUL(a, b) ((b) != 0 && (a) > INT64_MAX / (b) ? INT64_MAX : (a) * (b))\n"
    "/* What only calls is not worth a compiler's time: host functions, kernels as plain functions. */\n"
    "#if defined(__clang__)\n"
    "#define TIGA_CALLS_ONLY __attribute__((optnone, noinline))\n"
    "#else\n"
    "#define TIGA_CALLS_ONLY\n"
    "#endif\n"
    "#define TIGA_HOST_FN static TIGA_CALLS_ONLY\n"
    "#if defined(__cplusplus) || defined(_MSC_VER)\n"
    "#define TIGA_RESTRICT __restrict\n"
    "#else\n"
    "#define TIGA_RESTRICT restrict\n"
    "#endif\n"
    "#if defined(_WIN32)\n"
    "#define TIGA_EXPORT __declspec(dllexport)\n"
    "#elif defined(__GNUC__)\n"
    "#define TIGA_EXPORT __attribute__((visibility(\"default\")))\n"
    "#else\n"
    "#define TIGA_EXPORT\n"
    "#endif\n"
    "/* What unrolling would only make longer to compile: walks over edges, and rests of fewer than 16 steps. */\n"
    "#if defined(__clang__)\n"
    "#define TIGA_NO_UNROLL _Pragma(\"clang loop unroll(disable)\")\n"
    "#define TIGA_SHORT_LOOP _Pragma(\"clang loop vectorize(disable) unroll(disable)\")\n"
    "#else\n"
    "#define TIGA_NO_UNROLL\n"
    "#define TIGA_SHORT_LOOP\n"
    "#endif\n";

static const char complex_macro[] =
    "#if defined(__GNUC__) && !defined(__clang__) && defined(__FMA__)\n"
    "/* GCC 12 fuses products and sums of alternating sign whatever it is told; not when it cannot pair them. */\n"
    "static inline tiga_c64 tiga_c64_of(float re, float im) {\n"
    "    tiga_c64 r;\n"
    "    __asm__(\"\" : \"+x\"(re));\n"
    "    r.re = re;\n"
    "    r.im = im;\n"
    "    return r;\n"
    "}\n"
    "static inline tiga_c128 tiga_c128_of(double re, double im) {\n"
    "    tiga_c128 r;\n"
    "    __asm__(\"\" : \"+x\"(re));\n"
    "    r.re = re;\n"
    "    r.im = im;\n"
    "    return r;\n"
    "}\n"
    "#define TIGA_COMPLEX(type, re, im) type##_of(re, im)\n"
    "#elif defined(__cplusplus)\n"
    "#define TIGA_COMPLEX(type, re, im) type{re, im}\n"
    "#else\n"
    "#define TIGA_COMPLEX(type, re, im) ((type){re, im})\n"
    "#endif\n";

static const char pieces_macro[] =
    "/* Long loops are run in pieces of so many steps, `width` elements each. */\n"
    "#if defined(TIGA_SHORT_PIECES)\n"
    "#define TIGA_AT_MOST(steps) ((void)(steps), 1)\n"
    "#else\n"
    "#define TIGA_AT_MOST(steps) (steps)\n"
    "#endif\n"
    "#define TIGA_STEPS(work) ((int64_t)(1048576.0 / (16.0 + (work))) + 1)\n"
    "#define TIGA_PIECE(i, end, width, steps) \\\n"
    "    ((end) - (i) > (width) * TIGA_AT_MOST(steps) ? (i) + (width) * TIGA_AT_MOST(steps) : (end))\n"
    "#if defined(__GNUC__)\n"
    "#define TIGA_RARELY(condition) __builtin_expect(condition, 0)\n"
    "static __attribute__((noinline, cold))\n"
    "#else\n"
    "#define TIGA_RARELY(condition) (condition)\n"
    "static\n"
    "#endif\n"
    "/* Between two pieces: -1 when the caller does not want the result any more, else where the next one ends. */\n"
    "int64_t tiga_ask(const tiga_launch_args *args, int64_t at, int64_t end, int64_t steps) {\n"
    "    if (args->give_up && args->give_up(args->user)) return -1;\n"
    "    return TIGA_PIECE(at, end, 1, steps);\n"
    "}\n";

static const char source_macro[] =
    "/* The source of edge e, in columns of 32 or 64 bits. */\n"
    "#define TIGA_SOURCE(sources, wide, e) \\\n"
    "    ((wide) ? ((const int64_t *)(sources))[e] : (int64_t)((const int32_t *)(sources))[e])\n";

static const char prefetch_macro[] =
    "#if defined(__GNUC__)\n"
    "#define TIGA_PREFETCH(address) __builtin_prefetch(address)\n"
    "#else\n"
    "#define TIGA_PREFETCH(address) ((void)(address))\n"
    "#endif\n"
    "/* As many rows ahead as have so many bytes, from a quarter of `most` to it. */\n"
    "#define TIGA_FAR(most, bytes, row) \\\n"
    "    ((row) * (most) <= (bytes) ? (most) : (row) * (most) <= 2 * (bytes) ? (most) / 2 : (most) / 4)\n"
    "/* A place that may lie behind the end of the array, where no pointer may. */\n"
    "#define TIGA_PREFETCH_AT(array, index) \\\n"
    "    TIGA_PREFETCH((const void *)((uintptr_t)(array) + (uintptr_t)(index) * sizeof *(array)))\n";

/* Clang would take registers of 256 bits for vectors that no function has as an argument. */
static const char wide_begin[] =
    "#if TIGA_WHOLE_BYTES >= 64 /* registers of that size, whatever the processor prefers */\n"
    "#pragma clang attribute push(__attribute__((min_vector_width(512))), apply_to = function)\n"
    "#endif\n";
static const char wide_end[] = "\n#if TIGA_WHOLE_BYTES >= 64\n#pragma clang attribute pop\n#endif\n";

void cg_banner(cg_text *w, base_arena *arena, const ir_func *f) {
    if (f->signature && *f->signature)
        cg_comment(w, f->signature);
    else
        cg_comment(w, base_arena_printf(arena, "%s, made by the compiler", f->name));
}

typedef struct piece { /* functions that stay in one file */
    base_str *text;
    int part; /* which file it is in */
} piece;

typedef struct kernel { /* of one loop function: */
    const cg_twin *twin;
    cg_loop_facts facts;
    piece rows[2]; /* all but what is for 64-bit sources only; that; empty when another serves it too */
} kernel;

static bool emit_kernels(const ir_module *m, int source_bits, const cg_twin *twins, kernel *kernels, cg_helpers *h,
                         cg_vectors *v, base_arena *arena, base_str *err) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        ir_func *f = m->funcs[i];
        if (f->level != IR_LEVEL_LOOP)
            continue;
        kernel *k = &kernels[n];
        k->rows[0].text = base_arena_str(arena);
        k->rows[1].text = base_arena_str(arena);
        cg_text w[2] = {{.out = k->rows[0].text}, {.out = k->rows[1].text}};
        k->twin = &twins[n++];
        if (k->twin->first != f) {
            k->facts = kernels[k->twin->first->mark].facts;
            continue;
        }
        const ir_func *graph = ir_func_find(m, f->name, IR_LEVEL_KERNEL);
        cg_banner(w, arena, f->signature || !graph ? f : graph);
        if (!cg_emit_loop(m, f, k->twin, source_bits, w, h, v, arena, &k->facts, err))
            return false;
    }
    return true;
}

/* The function that follows the schedules stands in front of them and is known after them. */
static bool emit_hosts(const ir_module *m, cg_text *w, cg_helpers *h, base_arena *arena, base_str *err) {
    cg_follower *follower = base_arena_new_array(arena, cg_follower, 1);
    base_str *hosts = base_arena_str(arena);
    for (size_t i = 0; i < m->n_funcs; ++i)
        if (m->funcs[i]->level == IR_LEVEL_TASK &&
            !cg_emit_host(m, m->funcs[i], &(cg_text){.out = hosts}, h, follower, arena, err))
            return false;
    cg_emit_follower(w, follower, h, arena);
    cg_raw(w, base_str_text(hosts));
    return true;
}

static const char *rows_name(const char *symbol, int bits, bool there, base_arena *arena) {
    return there ? base_arena_printf(arena, "%s_rows%d", symbol, bits) : "NULL";
}

static void kernel_row(const ir_module *m, const ir_func *f, int source_bits, const kernel *k, cg_text *w,
                       base_arena *arena) {
    const char *s = cg_symbol(m, k->twin->first->name), *null = "NULL";
    size_t n_outputs = 0;
    for (size_t i = 0; i < f->n_params; ++i)
        n_outputs += f->params[i].role >= IR_OUT_ROW;
    base_str *name = base_arena_str(arena);
    cg_text one = {.out = name};
    cg_string_literal(&one, f->name);
    const char *any = k->facts.either ? base_arena_printf(arena, "%s_rows_any", s) : NULL;
    cg_line(w, "{%s, %s, %s, %s, %lld, %d, %u, %zu, %zu, %zu, %s},", base_str_text(name),
            any ? any : rows_name(s, 32, (source_bits & 32) || !k->facts.walks_edges, arena),
            any ? any : rows_name(s, 64, (source_bits & 64) && k->facts.walks_edges, arena),
            k->facts.needs_scratch ? base_arena_printf(arena, "%s_scratch_bytes", s) : null,
            (long long)f->rows_per_unit, k->facts.walks_edges, ir_edge_reads(f), f->n_params, n_outputs, f->n_syms,
            k->twin->n_numbers ? base_arena_printf(arena, "%s_numbers", cg_symbol(m, f->name)) : null);
}

/* Those in which kernels of one body differ. */
static void emit_numbers(const ir_module *m, const kernel *kernels, cg_text *w, base_arena *arena) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        if (m->funcs[i]->level != IR_LEVEL_LOOP)
            continue;
        const cg_twin *twin = kernels[n++].twin;
        if (twin->n_numbers)
            cg_line(w, "static const double %s_numbers[] = {%s};", cg_symbol(m, m->funcs[i]->name),
                    cg_twin_numbers(twin, arena));
    }
}

/* An array has at least one element: the count stands beside it. */
static void emit_kernel_table(const ir_module *m, int source_bits, const kernel *kernels, cg_text *w,
                              base_arena *arena) {
    size_t n = 0;
    emit_numbers(m, kernels, w, arena);
    cg_line(w,
            "/* name, 32-bit sources, 64-bit sources, scratch, rows a unit, walks edges, buffers, outputs, dimensions, "
            "numbers */");
    cg_open(w, "static const tiga_kernel_code tiga_kernels[] =");
    for (size_t i = 0; i < m->n_funcs; ++i)
        if (m->funcs[i]->level == IR_LEVEL_LOOP)
            kernel_row(m, m->funcs[i], source_bits, &kernels[n++], w, arena);
    if (!n)
        cg_line(w, "{NULL, NULL, NULL, NULL, 1, 0, 0, 0, 0, 0, NULL},");
    cg_close(w, ";\n");
}

static void file_banner(const cg_options *o, cg_text *w, base_arena *arena) {
    cg_comment(w, base_arena_printf(arena,
                                    "Made from %s by %s; changes here are lost when it is made again.\nSource hash %s.",
                                    o->source_name, o->compiler, o->source_hash));
    cg_blank(w);
}

static bool mentions(const base_str *text, const char *what) { return strstr(base_str_text(text), what) != NULL; }

static bool uses_complex(const base_str *text) { return mentions(text, "TIGA_COMPLEX("); }

/* ---- functions of mathematics that are called often ---- */
enum { MANY_CALLS = 16 };

static bool is_called_often(const char *kernels, const char *name) {
    const char *end = kernels;
    size_t n = 0;
    for (const char *at = kernels; n <= MANY_CALLS && (at = strstr(at, name)); at += strlen(name)) {
        n = at < end ? n : 0;
        end = at < end ? end : strstr(at, "\n}\n");
        n += at[strlen(name)] == '(';
    }
    return n > MANY_CALLS;
}

/* Its definition, `TIGA_FN type name(`, stays a function of its own: inlined many times, it takes compilers the square of that. */
static void keep_apart(base_str *text, const char *name, base_arena *arena) {
    const char *all = base_arena_strdup(arena, base_str_text(text));
    for (const char *at = all; (at = strstr(at, name)); at += strlen(name)) {
        const char *line = at;
        while (line > all && line[-1] != '\n')
            --line;
        if (at[strlen(name)] != '(' || strncmp(line, "TIGA_FN ", 8) != 0)
            continue;
        base_str_fini(text);
        base_str_add_n(text, all, (size_t)(line - all));
        base_str_addf(text, "TIGA_APART %s", line + 8);
        return;
    }
}

static void keep_long_functions_apart(const char *kernels, base_str *helpers, base_str *vectors, base_arena *arena) {
    for (int code = 0; code < IR_OP_COUNT; ++code)
        for (int type = IR_F32; type <= IR_F64; ++type) {
            const char *name = ir_math_name((ir_opcode)code, (ir_dtype)type);
            if (!name)
                continue;
            if (is_called_often(kernels, name))
                keep_apart(helpers, name, arena);
            for (int width = 1; width < CG_WIDTHS; ++width) {
                const char *wide = base_arena_printf(arena, "%sx%d", name, 1 << width);
                if (is_called_often(kernels, wide))
                    keep_apart(vectors, base_arena_printf(arena, "%s_part", wide), arena);
            }
        }
}

/* What stands before the kernels: the same in every file of a module. */
static void assemble(const cg_options *o, const cg_helpers *h, const cg_vectors *v, const base_str *kernels,
                     base_str *out, base_arena *arena) {
    cg_text w = {.out = out};
    base_str *vectors = base_arena_str(arena), *helpers = base_arena_str(arena);
    cg_helpers all = *h;
    cg_text vw = {.out = vectors};
    cg_emit_vectors(&vw, v, &all, arena); /* may need scalar functions too */
    cg_emit_helpers(&(cg_text){.out = helpers}, &all);
    keep_long_functions_apart(base_str_text(kernels), helpers, vectors, arena);
    bool complex = uses_complex(kernels) || uses_complex(helpers) || uses_complex(vectors);
    file_banner(o, &w, arena);
    cg_raw(&w, prelude);
    if (all.math)
        cg_raw(&w, prelude_math);
    cg_raw(&w, prelude_headers);
    cg_raw(&w, cg_abi_text);
    cg_blank(&w);
    cg_raw(&w, macros);
    if (complex)
        cg_raw(&w, complex_macro);
    base_str *winners = base_arena_str(arena);
    cg_winners_text(base_str_text(kernels), winners);
    if (winners->len || mentions(kernels, "TIGA_SOURCE("))
        cg_raw(&w, source_macro);
    if (v->prefetch)
        cg_raw(&w, prefetch_macro);
    if (mentions(kernels, "tiga_ask("))
        cg_raw(&w, pieces_macro);
    cg_blank(&w);
    cg_raw(&w, base_str_text(winners));
    cg_raw(&w, base_str_text(helpers));
    cg_raw(&w, base_str_text(vectors));
    cg_raw(&w, vectors->len ? wide_begin : "");
    cg_blank(&w);
    cg_raw(&w, base_str_text(kernels));
    cg_raw(&w, vectors->len ? wide_end : "");
}

static size_t count(const ir_module *m, ir_level level) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_funcs; ++i)
        n += m->funcs[i]->level == level;
    return n;
}

/* The part with the least to do. */
static int lightest(const size_t *length, int n) {
    int best = 0;
    for (int i = 1; i < n; ++i)
        if (length[i] < length[best])
            best = i;
    return best;
}

static int compare_lengths(const void *a, const void *b) {
    const piece *x = *(piece *const *)a, *y = *(piece *const *)b;
    if (x->text->len != y->text->len)
        return x->text->len > y->text->len ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* How many files are worth it: of LEAST bytes of kernels at least, and more than two only of GOOD. */
static int n_parts_for(size_t total, size_t longest) {
    enum { LEAST = 3000, GOOD = 100000 };
    if (total < 2 * LEAST || total - longest < LEAST)
        return 1;
    size_t n = total / GOOD;
    return n < 2 ? 2 : n < CG_MOST_PARTS ? (int)n : CG_MOST_PARTS;
}

/* The next longest to the file that has least to do; how many files.  Tables and host functions are in the first. */
static int deal(kernel *kernels, size_t n, size_t n_hosts, base_arena *arena) {
    enum { HOST = 500 }; /* as many bytes of a kernel's text */
    piece **order = base_arena_new_array(arena, piece *, 2 * n + 1);
    size_t length[CG_MOST_PARTS] = {HOST * n_hosts}, total = HOST * n_hosts;
    for (size_t i = 0; i < 2 * n; ++i) {
        order[i] = &kernels[i / 2].rows[i % 2];
        total += order[i]->text->len;
    }
    qsort(order, 2 * n, sizeof(piece *), compare_lengths);
    int n_parts = n_parts_for(total, n && order[0]->text->len > length[0] ? order[0]->text->len : length[0]);
    for (size_t i = 0; i < 2 * n; ++i) {
        order[i]->part = lightest(length, n_parts);
        length[order[i]->part] += order[i]->text->len;
    }
    return n_parts;
}

/* Of functions that a table or a plain function mentions and another file may have; part < 0: of all. */
static void emit_prototypes(const ir_module *m, int source_bits, const kernel *kernels, int part, cg_text *w) {
    static const char rows[] = "const tiga_launch_args *args, int64_t row_begin, int64_t row_end";
    size_t n = 0;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        if (m->funcs[i]->level != IR_LEVEL_LOOP)
            continue;
        const kernel *k = &kernels[n++];
        const char *s = cg_symbol(m, m->funcs[i]->name);
        if (k->twin->first != m->funcs[i] || (part >= 0 && k->rows[0].part != part))
            continue;
        for (int bits = 32; bits <= 64 && !k->facts.either; bits += 32)
            if ((source_bits & bits) || (bits == 32 && !k->facts.walks_edges))
                cg_line(w, "void %s_rows%d(%s);", s, bits, rows);
        if (k->facts.either)
            cg_line(w, "void %s_rows_any(%s);", s, rows);
        if (k->facts.needs_scratch)
            cg_line(w, "int64_t %s_scratch_bytes(const int64_t *dims);", s);
    }
    cg_blank(w);
}

static void add_kernels(const kernel *kernels, size_t n, int part, cg_text *w) {
    for (size_t i = 0; i < 2 * n; ++i)
        if (kernels[i / 2].rows[i % 2].part == part)
            cg_raw(w, base_str_text(kernels[i / 2].rows[i % 2].text));
}

static const cg_loop_facts *facts_of(const kernel *kernels, size_t n, base_arena *arena) {
    cg_loop_facts *facts = base_arena_new_array(arena, cg_loop_facts, n + 1);
    for (size_t i = 0; i < n; ++i)
        facts[i] = kernels[i].facts;
    return facts;
}

/* Whose plain functions go there: where the body is. */
static const bool *are_in(int part, const kernel *kernels, size_t n, base_arena *arena) {
    bool *in = base_arena_new_array(arena, bool, n + 1);
    for (size_t i = 0; i < n; ++i)
        in[i] = kernels[kernels[i].twin->first->mark].rows[0].part == part;
    return in;
}

/* out[1] and so on only in parts. */
static bool emit(const cg_emission *e, bool in_parts) {
    const ir_module *m = e->m;
    base_arena *arena = e->arena;
    cg_helpers *h = base_arena_alloc(arena, sizeof *h);
    cg_vectors *v = base_arena_alloc(arena, sizeof *v);
    size_t n = count(m, IR_LEVEL_LOOP), n_bodies;
    kernel *kernels = base_arena_new_array(arena, kernel, n + 1);
    const cg_twin *twins = cg_find_twins(m, arena, &n_bodies);
    int both = n_bodies > CG_FEW_BODIES ? CG_EITHER : 32 | 64, bits = e->o->source_bits ? e->o->source_bits : both;
    if (!emit_kernels(m, bits | (in_parts ? CG_SHARED : 0), twins, kernels, h, v, arena, e->err))
        return false;
    const cg_loop_facts *facts = facts_of(kernels, n, arena);
    int n_parts = in_parts ? deal(kernels, n, count(m, IR_LEVEL_TASK), arena) : 1;
    base_str *texts[CG_MOST_PARTS];
    for (int i = 0; i < n_parts; ++i) {
        texts[i] = base_arena_str(arena);
        cg_text w = {.out = texts[i]};
        if (in_parts)
            emit_prototypes(m, bits, kernels, i ? i : -1, &w);
        add_kernels(kernels, n, i, &w);
        if (i == 0)
            emit_kernel_table(m, bits, kernels, &w, arena);
        if (i == 0 && !emit_hosts(m, &w, h, arena, e->err))
            return false;
        if (i == 0)
            cg_emit_tables(m, e->o, &w, arena);
        if (!e->o->source_bits)
            cg_emit_plain(m, twins, facts, are_in(i, kernels, n, arena), &w, arena);
    }
    for (int i = 0; i < n_parts; ++i) /* now it is known what all of them use */
        assemble(e->o, h, v, texts[i], &e->out[i], arena);
    return true;
}

static bool emit_one(const cg_emission *e) { return emit(e, false); }
static bool emit_parts(const cg_emission *e) { return emit(e, true); }

bool cg_emit_c(const ir_module *m, const cg_options *o, base_str *out, base_str *err) {
    return cg_emit_with(emit_one, &(cg_emission){.m = m, .o = o, .out = out, .err = err});
}

bool cg_emit_c_parts(const ir_module *m, const cg_options *o, base_str out[CG_MOST_PARTS], base_str *err) {
    bool ok = cg_emit_with(emit_parts, &(cg_emission){.m = m, .o = o, .out = out, .err = err});
    for (int i = 1; i < CG_MOST_PARTS && ok; ++i)
        ok = !out[i].failed || cg_fail(err, "out of memory");
    return ok;
}
