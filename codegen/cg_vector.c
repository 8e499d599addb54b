/* The vector types and functions of emitted C: tiga_f32x16 is 16 floats in as many registers as the target needs.  Built
 * on the vector extensions of GCC and Clang; under other compilers, or with TIGA_NO_VECTORS, a part is one element and
 * the same text still means the same.
 *
 * Under Clang a vector that fits one register is no structure but that register, and most functions are macros: then no
 * compiler has to put thousands of small functions into their callers and take structures apart. */
#include "codegen/cg_c.h"

#include <string.h>

int cg_log2(int lanes) {
    int n = 0;
    while ((1 << n) < lanes)
        ++n;
    BASE_CHECK(n < CG_WIDTHS && (1 << n) == lanes);
    return n;
}

const char *cg_vector_type(cg_loop *c, ir_dtype t, int lanes) {
    c->vec->type[t][cg_log2(lanes)] = true;
    return base_arena_printf(c->arena, "tiga_%sx%d", ir_dtype_text(t), lanes);
}

static const char prelude[] =
    "/* Vectors: a value of 16 floats is one, two or four registers, as the target has them. */\n"
    "#if defined(TIGA_NO_VECTORS) || !defined(__GNUC__)\n"
    "#define TIGA_VECTOR_BYTES 0\n"
    "#define TIGA_VECTOR_FN static inline\n"
    "#define TIGA_PART(name, element, bytes) typedef element tiga_##name##_part, tiga_##name##_mem;\n"
    "#define TIGA_BLEND(part, mask_part, m, a, b) ((m) ? (a) : (b))\n"
    "#define TIGA_NOT(m) (!(m))\n"
    "#define TIGA_ABS(part, mask_part, a) ((part)(sizeof(part) == 4 ? fabsf((float)(a)) : fabs((double)(a))))\n"
    "#else\n"
    "#if defined(__AVX512F__)\n"
    "#define TIGA_VECTOR_BYTES 64\n"
    "#elif defined(__AVX__)\n"
    "#define TIGA_VECTOR_BYTES 32\n"
    "#else\n"
    "#define TIGA_VECTOR_BYTES 16\n"
    "#endif\n"
    "#define TIGA_VECTOR_FN static inline __attribute__((always_inline))\n"
    "#define TIGA_PART(name, element, bytes) \\\n"
    "    typedef element tiga_##name##_part __attribute__((vector_size(bytes))); \\\n"
    "    typedef element tiga_##name##_mem __attribute__((vector_size(bytes), aligned(sizeof(element)), may_alias));\n"
    "#define TIGA_BLEND(part, mask_part, m, a, b) ((part)(((m) & (mask_part)(a)) | (~(m) & (mask_part)(b))))\n"
    "#define TIGA_NOT(m) (~(m))\n"
    "#define TIGA_ABS(part, mask_part, a) ((part)((mask_part)(a) & ~(mask_part)(-(part){0})))\n"
    "#endif\n"
    "#if TIGA_VECTOR_BYTES != 0 && defined(__has_builtin)\n"
    "#if __has_builtin(__builtin_shufflevector)\n"
    "#define TIGA_SHUFFLE 1\n"
    "#endif\n"
    "#endif\n"
    "#if !defined(TIGA_SHUFFLE)\n"
    "#define TIGA_SHUFFLE 0\n"
    "#endif\n"
    "#if defined(__clang__) /* what fits a register is one: no structure, and macros for functions */\n"
    "#define TIGA_WHOLE_BYTES TIGA_VECTOR_BYTES\n"
    "#else\n"
    "#define TIGA_WHOLE_BYTES 0\n"
    "#endif\n"
    "#define TIGA_EACH_1(X) X(0)\n"
    "#define TIGA_EACH_2(X) X(0) X(1)\n"
    "#define TIGA_EACH_4(X) X(0) X(1) X(2) X(3)\n"
    "#define TIGA_EACH_8(X) TIGA_EACH_4(X) X(4) X(5) X(6) X(7)\n"
    "#define TIGA_EACH_16(X) TIGA_EACH_8(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)\n\n";

/* Which part is how large, for each size of the target's registers. */
static void emit_type(base_str *out, ir_dtype t, int n) {
    const char *name = ir_dtype_text(t), *element = cg_ctype(t);
    int size = (int)ir_dtype_bytes(t), total = size * n;
    static const int registers[] = {64, 32, 16};
    for (int i = 0; i < 3; ++i) {
        int part = registers[i] < total ? registers[i] : total;
        base_str_addf(out,
                      "#%s TIGA_VECTOR_BYTES == %d\nTIGA_PART(%sx%d, %s, %d)\n#define TIGA_EACH_%sx%d TIGA_EACH_%d\n",
                      i ? "elif" : "if", registers[i], name, n, element, part, name, n, total / part);
    }
    base_str_addf(out, "#else\nTIGA_PART(%sx%d, %s, %d)\n#define TIGA_EACH_%sx%d TIGA_EACH_%d\n#endif\n", name, n,
                  element, total, name, n, n);
    base_str_addf(out, "#if TIGA_WHOLE_BYTES >= %d\ntypedef tiga_%sx%d_part tiga_%sx%d;\n#else\n", total, name, n, name,
                  n);
    base_str_addf(out,
                  "typedef struct tiga_%sx%d {\n    tiga_%sx%d_part p[%d * sizeof(%s) / sizeof(tiga_%sx%d_part)];\n} "
                  "tiga_%sx%d;\n#endif\n",
                  name, n, name, n, n, element, name, n, name, n);
}

/* What stands up to the #else is for vectors of one register. */
void cg_if_whole(base_str *out, ir_dtype t, int n) {
    base_str_addf(out, "#if TIGA_WHOLE_BYTES >= %d\n", (int)ir_dtype_bytes(t) * n);
}

/* A function whose body is one statement for each part; the #endif of cg_if_whole. */
static void each(base_str *out, const char *head, const char *statement, const char *type) {
    base_str_addf(out, "#else\n#define X(i) %s\nTIGA_VECTOR_FN %s {\n", statement, head);
    base_str_addf(out, "    tiga_%s r;\n    TIGA_EACH_%s(X)\n    return r;\n}\n#undef X\n#endif\n", type, type);
}

static void emit_splat(base_str *out, const char *s, const char *element, int n) {
    base_str_addf(out,
                  "typedef %s tiga_%s_all __attribute__((ext_vector_type(%d)));\n"
                  "#define tiga_splat_%s(a) ((tiga_%s)(tiga_%s_all)(%s)(a))\n"
                  "#else\n#define X(i) r.p[i] = a - zero;\nTIGA_VECTOR_FN tiga_%s tiga_splat_%s(%s a) {\n    const "
                  "tiga_%s_part zero = {0};\n"
                  "    tiga_%s r;\n    TIGA_EACH_%s(X)\n    return r;\n}\n#undef X\n#endif\n",
                  element, s, n, s, s, s, element, s, s, element, s, s, s);
}

static void emit_memory(base_str *out, const cg_vectors *v, base_arena *a, ir_dtype t, int width) {
    const char *s = base_arena_printf(a, "%sx%d", ir_dtype_text(t), 1 << width), *element = cg_ctype(t);
    if (v->load[t][width]) {
        cg_if_whole(out, t, 1 << width);
        base_str_addf(out, "#define tiga_load_%s(from) (*(const tiga_%s_mem *)(const void *)(from))\n", s, s);
        each(out, base_arena_printf(a, "tiga_%s tiga_load_%s(const %s *from)", s, s, element),
             base_arena_printf(a, "r.p[i] = ((const tiga_%s_mem *)(const void *)from)[i];", s), s);
    }
    if (v->store[t][width]) {
        cg_if_whole(out, t, 1 << width);
        base_str_addf(
            out,
            "#define tiga_store_%s(to, v) ((void)(*(tiga_%s_mem *)(void *)(to) = (v)))\n"
            "#else\n#define X(i) ((tiga_%s_mem *)(void *)to)[i] = v.p[i];\nTIGA_VECTOR_FN void tiga_store_%s(%s "
            "*to, tiga_%s v) {\n"
            "    TIGA_EACH_%s(X)\n}\n#undef X\n#endif\n",
            s, s, s, s, element, s, s);
    }
    if (v->splat[t][width]) {
        cg_if_whole(out, t, 1 << width);
        emit_splat(out, s, element, 1 << width);
    }
    for (int wide = 0; wide < 2; ++wide)
        if (v->gather[t][width][wide])
            base_str_addf(
                out,
                "TIGA_VECTOR_FN tiga_%s tiga_gather%d_%s(const %s *from, const int%d_t *rows, int64_t stride) {\n    "
                "%s t[%d];\n"
                "    for (int i = 0; i < %d; ++i) t[i] = from[rows[i] * stride];\n    return tiga_load_%s(t);\n}\n",
                s, wide ? 64 : 32, s, element, wide ? 64 : 32, element, 1 << width, 1 << width, s);
}

/* As an expression.  $a $b $c: the operands; @P @M: types of a part and of its mask. */
static const char *native_text(ir_opcode code) {
    switch ((int)code) {
    case IR_ADD:
        return "$a + $b";
    case IR_SUB:
        return "$a - $b";
    case IR_MUL:
        return "$a * $b";
    case IR_DIV:
        return "$a / $b";
    case IR_NEG:
        return "-$a";
    case IR_ABS:
        return "TIGA_ABS(@P, @M, $a)";
    case IR_MIN:
        return "TIGA_BLEND(@P, @M, (@M)($a < $b) | (@M)($a != $a), $a, $b)";
    case IR_MAX:
        return "TIGA_BLEND(@P, @M, (@M)($a > $b) | (@M)($a != $a), $a, $b)";
    case IR_EQ:
        return "(@M)($a == $b)";
    case IR_NE:
        return "(@M)($a != $b)";
    case IR_LT:
        return "(@M)($a < $b)";
    case IR_LE:
        return "(@M)($a <= $b)";
    case IR_GT:
        return "(@M)($a > $b)";
    case IR_GE:
        return "(@M)($a >= $b)";
    case IR_AND:
        return "$a & $b";
    case IR_OR:
        return "$a | $b";
    case IR_NOT:
        return "TIGA_NOT($a)";
    case IR_SELECT:
        return "TIGA_BLEND(@P, @M, $c, $a, $b)";
    default:
        return NULL;
    }
}

/* Mentions an operand twice: as a macro it would double what it is given.  (Macros have no parentheses around them: no
 * operator ever stands beside a vector, and compilers have limits to what is nested.) */
static bool is_twice(ir_opcode code) { return code == IR_MIN || code == IR_MAX || code == IR_SELECT; }

/* Done part by part?  Otherwise element by element, with the scalar function of the same meaning. */
static bool is_native(ir_opcode code, ir_dtype in) {
    if (!native_text(code))
        return false;
    bool arithmetic = code == IR_ADD || code == IR_SUB || code == IR_MUL || code == IR_DIV || code == IR_NEG ||
                      code == IR_ABS || code == IR_MIN || code == IR_MAX;
    return !arithmetic || ir_dtype_is_float(in);
}

static ir_dtype mask_of(ir_dtype t) { return ir_dtype_bytes(t) == 8 ? IR_I64 : IR_I32; }

static const char *fill_in(base_arena *a, const char *text, const char *part, const char *mask, bool whole) {
    base_str *s = base_arena_str(a);
    for (; *text; ++text) {
        if (*text == '@')
            base_str_add(s, *++text == 'P' ? part : mask);
        else if (*text == '$')
            base_str_addf(s, whole ? "(%c)" : "%c.p[i]", *++text);
        else
            base_str_add_n(s, text, 1);
    }
    const char *r = base_arena_strdup(a, base_str_text(s));
    return r;
}

static void emit_native(base_str *out, base_arena *a, cg_helpers *h, ir_opcode code, ir_dtype in, ir_dtype to, int n) {
    const char *s = base_arena_printf(a, "%sx%d", ir_dtype_text(in), n),
               *m = base_arena_printf(a, "%sx%d", ir_dtype_text(mask_of(in)), n);
    const char *result = base_arena_printf(a, "%sx%d", ir_dtype_text(to), n), *head;
    const char *part = base_arena_printf(a, "tiga_%s_part", s), *mask = base_arena_printf(a, "tiga_%s_part", m);
    const char *whole = fill_in(a, native_text(code), part, mask, true);
    const char *parts = fill_in(a, native_text(code), part, mask, false);
    const ir_op_desc *d = ir_op_describe(code);
    bool unary = d->cls == IR_CLASS_UNARY;
    h->math |= code == IR_ABS; /* without vectors it is fabs */
    if (code == IR_SELECT)
        head = base_arena_printf(a, "tiga_%s tiga_select_%s(tiga_%s c, tiga_%s a, tiga_%s b)", s, s, m, s, s);
    else if (unary)
        head = base_arena_printf(a, "tiga_%s tiga_%s_%s(tiga_%s a)", result, d->text, s, s);
    else
        head = base_arena_printf(a, "tiga_%s tiga_%s_%s(tiga_%s a, tiga_%s b)", result, d->text, s, s, s);
    cg_if_whole(out, ir_dtype_bytes(in) > ir_dtype_bytes(to) ? in : to, n);
    if (is_twice(code))
        base_str_addf(out, "TIGA_VECTOR_FN %s { return %s; }\n", head, whole);
    else
        base_str_addf(out, "#define tiga_%s_%s(a%s) %s\n", d->text, s, unary ? "" : ", b", whole);
    each(out, head, base_arena_printf(a, "r.p[i] = %s;", parts), result);
}

static void emit_mapped(base_str *out, base_arena *a, cg_helpers *h, ir_opcode code, ir_dtype in, ir_dtype to, int n) {
    const char *s = base_arena_printf(a, "%sx%d", ir_dtype_text(in), n),
               *r = base_arena_printf(a, "%sx%d", ir_dtype_text(to), n);
    const ir_op_desc *d = ir_op_describe(code);
    bool unary = d->cls == IR_CLASS_UNARY, atom;
    const char *name = code == IR_CAST ? base_arena_printf(a, "%s_from", ir_dtype_text(to)) : d->text;
    const char *args[2] = {"ta[i]", "tb[i]"}, *e = cg_expr(h, a, code, in, to, args, &atom);
    base_str_addf(out, "TIGA_VECTOR_FN tiga_%s tiga_%s_%s(tiga_%s a%s%s%s) {\n", r, name, s, s, unary ? "" : ", tiga_",
                  unary ? "" : s, unary ? "" : " b");
    base_str_addf(out, "    %s ta[%d]%s;\n    %s tr[%d];\n    tiga_store_%s(ta, a);\n", cg_ctype(in), n,
                  unary ? "" : base_arena_printf(a, ", tb[%d]", n), cg_ctype(to), n, s);
    if (!unary)
        base_str_addf(out, "    tiga_store_%s(tb, b);\n", s);
    base_str_addf(out, "    for (int i = 0; i < %d; ++i) tr[i] = %s;\n    return tiga_load_%s(tr);\n}\n", n, e, r);
}

/* Marks what the functions in use need themselves. */
static void close_over(cg_vectors *v) {
    for (int w = 0; w < CG_WIDTHS; ++w) {
        for (int code = 0; code < IR_OP_COUNT; ++code)
            for (int in = 0; in < CG_DTYPES; ++in)
                for (int to = 0; to < CG_DTYPES; ++to) {
                    if (!v->op[code][in][to][w])
                        continue;
                    v->type[in][w] = v->type[to][w] = true;
                    if (code == IR_COMPLEX)
                        continue;
                    bool own = ir_math_name((ir_opcode)code, (ir_dtype)in) != NULL;
                    if (code == IR_ABS || code == IR_MIN || code == IR_MAX || code == IR_SELECT || own)
                        v->type[mask_of((ir_dtype)in)][w] = true;
                    if (!own && !is_native((ir_opcode)code, (ir_dtype)in) &&
                        !cg_is_half_cast((ir_opcode)code, (ir_dtype)in, (ir_dtype)to))
                        v->store[in][w] = v->load[to][w] = true;
                }
        for (int t = 0; t < CG_DTYPES; ++t) { /* parts of complex types come before */
            ir_dtype part = ir_dtype_part((ir_dtype)t);
            bool gathers = v->gather[t][w][0] || v->gather[t][w][1];
            if (ir_dtype_is_complex((ir_dtype)t)) {
                v->type[t][w] = v->type[t][w] || v->load[t][w] || v->store[t][w] || gathers;
                v->type[part][w] = v->type[part][w] || v->type[t][w];
                continue;
            }
            if (v->gather[t][w][0] || v->gather[t][w][1])
                v->load[t][w] = true;
            if (v->load[t][w] || v->store[t][w] || v->splat[t][w])
                v->type[t][w] = true;
        }
    }
}

void cg_emit_vectors(cg_text *w, const cg_vectors *used, cg_helpers *h, base_arena *arena) {
    cg_vectors v = *used;
    close_over(&v);
    bool any = false;
    for (int t = 0; t < CG_DTYPES; ++t)
        for (int n = 0; n < CG_WIDTHS; ++n)
            any = any || v.type[t][n];
    if (!any)
        return;
    base_str_add(w->out, prelude);
    for (int t = 0; t < CG_DTYPES; ++t)
        for (int n = 0; n < CG_WIDTHS; ++n)
            if (v.type[t][n] && ir_dtype_is_complex((ir_dtype)t))
                cg_complex_vector_type(w->out, (ir_dtype)t, 1 << n);
            else if (v.type[t][n])
                emit_type(w->out, (ir_dtype)t, 1 << n);
    for (int t = 0; t < CG_DTYPES; ++t)
        for (int n = 0; n < CG_WIDTHS; ++n)
            if (v.type[t][n] && ir_dtype_is_complex((ir_dtype)t))
                cg_complex_vector_memory(w->out, &v, (ir_dtype)t, n);
            else if (v.type[t][n])
                emit_memory(w->out, &v, arena, (ir_dtype)t, n);
    cg_math_vectors(w->out, arena, &v, h);
    for (int code = 0; code < IR_OP_COUNT; ++code)
        for (int in = 0; in < CG_DTYPES; ++in)
            for (int to = 0; to < CG_DTYPES; ++to)
                for (int n = 0; n < CG_WIDTHS; ++n) {
                    if (!v.op[code][in][to][n] || code == IR_COMPLEX || ir_math_name((ir_opcode)code, (ir_dtype)in))
                        continue;
                    if (cg_is_half_cast((ir_opcode)code, (ir_dtype)in, (ir_dtype)to))
                        cg_half_vector(w->out, h, arena, (ir_dtype)in, (ir_dtype)to, 1 << n);
                    else if (is_native((ir_opcode)code, (ir_dtype)in))
                        emit_native(w->out, arena, h, (ir_opcode)code, (ir_dtype)in, (ir_dtype)to, 1 << n);
                    else
                        emit_mapped(w->out, arena, h, (ir_opcode)code, (ir_dtype)in, (ir_dtype)to, 1 << n);
                }
}
