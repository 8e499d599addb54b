/* The transcendental functions of ir/ir_math_f32.h and ir_math_f64.h in emitted code: the ones in use and those that they
 * call, for single values as they stand there, for vectors with other types: in the same text `float` becomes the part of
 * a vector, uint32_t a part of bits, and every name tiga_NAME_f32 becomes tiga_NAME_f32x16_part. */
#include "codegen/cg_c.h"

#include <ctype.h>
#include <string.h>

#define MOST 64 /* functions in one text */

typedef struct block { /* a function with its comment: [at, at + n) of the text */
    const char *at, *code;
    size_t n;
    char name[40];
    bool wanted;
} block;

typedef struct text {
    block list[MOST];
    size_t n;
} text;

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t word_length(const char *p) {
    size_t n = 0;
    while (in_word(p[n]))
        ++n;
    return n;
}

static void read_block(text *t, const char *at, size_t n) {
    const char *code = strstr(at, "TIGA_FN ");
    if (!code || code >= at + n)
        return; /* the comment of the file */
    block *b = &t->list[t->n++];
    BASE_CHECK(t->n <= MOST);
    *b = (block){.at = at, .code = code, .n = n};
    const char *name = strchr(code + strlen("TIGA_FN "), ' ') + 1;
    size_t length = word_length(name);
    BASE_CHECK(length < sizeof b->name);
    memcpy(b->name, name, length);
}

static void read_text(text *t, ir_dtype type) {
    const char *p = type == IR_F32 ? cg_math_f32_text : cg_math_f64_text;
    t->n = 0;
    while (*p) {
        const char *end = strstr(p, "\n\n");
        size_t n = end ? (size_t)(end - p) + 1 : strlen(p);
        read_block(t, p, n);
        p += n;
        while (*p == '\n')
            ++p;
    }
}

static void want(text *t, const char *name, size_t n) {
    for (size_t i = 0; i < t->n; ++i)
        if (strlen(t->list[i].name) == n && !memcmp(t->list[i].name, name, n))
            t->list[i].wanted = true;
}

/* A function stands below those that it calls. */
static void close_over(text *t) {
    for (size_t i = t->n; i-- > 0;) {
        const block *b = &t->list[i];
        for (const char *p = b->code; b->wanted && p < b->at + b->n;) {
            size_t n = word_length(p);
            want(t, p, n);
            p += n ? n : 1;
        }
    }
}

static void want_scalars(text *t, const cg_helpers *h, ir_dtype type) {
    read_text(t, type);
    for (int code = 0; code < IR_OP_COUNT; ++code)
        if (h->scalar[code][type][type] && ir_math_name((ir_opcode)code, type))
            want(t, ir_math_name((ir_opcode)code, type), strlen(ir_math_name((ir_opcode)code, type)));
    close_over(t);
}

void cg_math_scalars(base_str *out, const cg_helpers *h) {
    for (int type = 0; type < CG_DTYPES; ++type) {
        if (type != IR_F32 && type != IR_F64)
            continue;
        text t;
        want_scalars(&t, h, (ir_dtype)type);
        for (size_t i = 0; i < t.n; ++i)
            if (t.list[i].wanted)
                base_str_add_n(out, t.list[i].at, t.list[i].n);
    }
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */
static bool want_vectors(text *t, const cg_vectors *v, ir_dtype type, int width) {
    bool any = false;
    for (int code = 0; code < IR_OP_COUNT; ++code)
        if (v->op[code][type][type][width] && ir_math_name((ir_opcode)code, type)) {
            want(t, ir_math_name((ir_opcode)code, type), strlen(ir_math_name((ir_opcode)code, type)));
            any = true;
        }
    close_over(t);
    return any;
}

static bool begins(const char *name, const char *with) { return !strncmp(name, with, strlen(with)); }

/* Vectors call it for one lane: tiga_far_turn_f32. */
static bool is_for_lanes(const block *b) { return begins(b->name, "tiga_far_"); }

/* The functions of single values that vectors need and that are not there anyway: those called for one lane, and all of
 * them where a part is one element. */
static void elements_only(base_str *out, const cg_vectors *v, cg_helpers *h, ir_dtype type) {
    text t, there, lanes;
    bool any = false;
    want_scalars(&there, h, type);
    read_text(&t, type);
    read_text(&lanes, type);
    for (int width = 0; width < CG_WIDTHS; ++width)
        any = want_vectors(&t, v, type, width) || any;
    if (!any)
        return;
    for (size_t i = 0; i < t.n; ++i) {
        lanes.list[i].wanted = t.list[i].wanted && is_for_lanes(&t.list[i]);
        h->math = h->math || (t.list[i].wanted && begins(t.list[i].name, "tiga_root_"));
    }
    close_over(&lanes);
    for (size_t i = 0; i < t.n; ++i)
        if (lanes.list[i].wanted && !there.list[i].wanted)
            base_str_add_n(out, t.list[i].at, t.list[i].n);
    base_str_add(out, "#if TIGA_VECTOR_BYTES == 0\n");
    for (size_t i = 0; i < t.n; ++i)
        if (t.list[i].wanted && !there.list[i].wanted && !lanes.list[i].wanted)
            base_str_add_n(out, t.list[i].at, t.list[i].n);
    base_str_add(out, "#endif\n");
}

/* What scalars have in C and vectors have not.  @S: f32x16, @P: its part, @U: a part of bits, @M: a part of masks,
 * @E: the element, @B: its bits, @L: the largest argument that needs no function of its own, as the texts have it, @F: the
 * name without tiga_beyond_ and type, @R: the C library's square root. */
static const char beyond[] = "static __attribute__((noinline)) @P tiga_lanes_@F_@S_part(@P a, @B q, @P y) {\n"
                             "    for (size_t i = 0; i < sizeof a / sizeof(@E); ++i)\n"
                             "        if (!(a[i] <= @L)) y[i] = tiga_far_@F_@D(a[i], q);\n"
                             "    return y;\n"
                             "}\n"
                             "TIGA_VECTOR_FN @P tiga_beyond_@F_@S_part(@P a, @B q, @P y) {\n"
                             "    const @M near = (@M)(a <= @L);\n"
                             "    uint64_t all = ~(uint64_t)0, some;\n"
                             "    for (size_t i = 0; i < sizeof near; i += sizeof some) {\n"
                             "        __builtin_memcpy(&some, (const char *)&near + i, sizeof some);\n"
                             "        all &= some;\n"
                             "    }\n"
                             "    return all == ~(uint64_t)0 ? y : tiga_lanes_@F_@S_part(a, q, y);\n"
                             "}\n";

/* One instruction where compilers can say so. */
static const char root[] = "#if defined(__has_builtin)\n"
                           "#if __has_builtin(__builtin_elementwise_sqrt)\n"
                           "#define TIGA_ROOT 1\n"
                           "#endif\n"
                           "#endif\n"
                           "TIGA_VECTOR_FN @P tiga_root_@S_part(@P a) {\n"
                           "#if defined(TIGA_ROOT)\n"
                           "    return __builtin_elementwise_sqrt(a);\n"
                           "#else\n"
                           "    for (size_t i = 0; i < sizeof a / sizeof(@E); ++i) a[i] = @R(a[i]);\n"
                           "    return a;\n"
                           "#endif\n"
                           "}\n"
                           "#undef TIGA_ROOT\n";

static const struct {
    const char *name, *text;
} primitives[] = {
    {"tiga_to_bits_", "TIGA_VECTOR_FN @U tiga_to_bits_@S_part(@P a) { return (@U)a; }\n"},
    {"tiga_of_bits_", "TIGA_VECTOR_FN @P tiga_of_bits_@S_part(@U a) { return (@P)a; }\n"},
    {"tiga_pick_", "TIGA_VECTOR_FN @P tiga_pick_@S_part(@M m, @P a, @P b) { return TIGA_BLEND(@P, @M, m, a, b); }\n"},
    {"tiga_alone_", "TIGA_VECTOR_FN int tiga_alone_@S_part(@M m) { return (void)m, 0; }\n"},
    {"tiga_beyond_", beyond},
    {"tiga_root_", root},
    {"tiga_all_", "TIGA_VECTOR_FN @P tiga_all_@S_part(@E a) { return a - (@P){0}; }\n"},
};

typedef struct vector {
    const char *suffix, *part, *bits, *mask; /* f32x16 tiga_f32x16_part tiga_u32x16_part tiga_i32x16_part */
    ir_dtype type;
} vector;

/* "slope" of tiga_beyond_slope_f32. */
static void add_stem(base_str *out, const char *name) {
    const char *stem = name + strlen("tiga_beyond_"), *end = strrchr(stem, '_');
    base_str_add_n(out, stem, (size_t)(end - stem));
}

static const char *letter(const vector *v, char c) {
    bool single = v->type == IR_F32;
    switch (c) {
    case 'S':
        return v->suffix;
    case 'P':
        return v->part;
    case 'U':
        return v->bits;
    case 'M':
        return v->mask;
    case 'E':
        return cg_ctype(v->type);
    case 'D':
        return ir_dtype_text(v->type);
    case 'B':
        return single ? "uint32_t" : "uint64_t";
    case 'L':
        return single ? "8192.0f" : "4194304.0";
    case 'R':
        return single ? "sqrtf" : "sqrt";
    default:
        BASE_BUG("template letter %c", c);
    }
}

static void add_primitive(base_str *out, const vector *v, const char *p, const char *name) {
    for (; *p; ++p)
        if (p[0] == '@' && p[1] == 'F')
            add_stem(out, (++p, name));
        else if (*p == '@')
            base_str_add(out, letter(v, *++p));
        else
            base_str_add_n(out, p, 1);
}

static bool is_word(const char *p, size_t n, const char *word) { return n == strlen(word) && !memcmp(p, word, n); }

static void add_translated(base_str *out, const block *b, const vector *v) {
    const char *end = b->at + b->n, *ending = v->type == IR_F32 ? "_f32" : "_f64";
    for (const char *p = b->code; p < end;) {
        size_t n = word_length(p);
        if (!n)
            base_str_add_n(out, p++, 1);
        else if (is_word(p, n, cg_ctype(v->type)))
            base_str_add(out, v->part);
        else if (is_word(p, n, v->type == IR_F32 ? "uint32_t" : "uint64_t"))
            base_str_add(out, v->bits);
        else if (n > 9 && !memcmp(p, "tiga_", 5) && !memcmp(p + n - 4, ending, 4))
            base_str_addf(out, "%.*s_%s_part", (int)n - 4, p, v->suffix);
        else
            base_str_add_n(out, p, n);
        p += n;
    }
}

static void add_block(base_str *out, const block *b, const vector *v) {
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; ++i)
        if (begins(b->name, primitives[i].name)) {
            add_primitive(out, v, primitives[i].text, b->name);
            return;
        }
    add_translated(out, b, v);
}

static void add_wrapper(base_str *out, const vector *v, int n, ir_opcode code) {
    const char *name = ir_op_describe(code)->text, *s = v->suffix;
    bool two = ir_op_describe(code)->cls == IR_CLASS_BINARY;
    base_str_addf(out, "#if TIGA_VECTOR_BYTES == 0\n#define tiga_%s_%s_part %s\n#endif\n", name, s,
                  ir_math_name(code, v->type));
    cg_if_whole(out, v->type, n);
    base_str_addf(out, "#define tiga_%s_%s tiga_%s_%s_part\n#else\n", name, s, name, s);
    base_str_addf(out, "#define X(i) r.p[i] = tiga_%s_%s_part(a.p[i]%s);\n", name, s, two ? ", b.p[i]" : "");
    base_str_addf(out, "TIGA_VECTOR_FN tiga_%s tiga_%s_%s(tiga_%s a", s, name, s, s);
    if (two)
        base_str_addf(out, ", tiga_%s b", s);
    base_str_addf(out, ") {\n    tiga_%s r;\n    TIGA_EACH_%s(X)\n    return r;\n}\n#undef X\n#endif\n", s, s);
}

static void one_width(base_str *out, base_arena *a, const cg_vectors *used, ir_dtype type, int width) {
    text t;
    read_text(&t, type);
    if (!want_vectors(&t, used, type, width))
        return;
    int bits = type == IR_F32 ? 32 : 64, n = 1 << width;
    vector v = {.type = type, .suffix = base_arena_printf(a, "%sx%d", ir_dtype_text(type), n)};
    v.part = base_arena_printf(a, "tiga_%s_part", v.suffix);
    v.bits = base_arena_printf(a, "tiga_u%dx%d_part", bits, n);
    v.mask = base_arena_printf(a, "tiga_i%dx%d_part", bits, n);
    base_str_addf(out, "#if TIGA_VECTOR_BYTES != 0\ntypedef uint%d_t %s __attribute__((vector_size(sizeof(%s))));\n",
                  bits, v.bits, v.part);
    for (size_t i = 0; i < t.n; ++i)
        if (t.list[i].wanted && !is_for_lanes(&t.list[i]))
            add_block(out, &t.list[i], &v);
    base_str_add(out, "#endif\n");
    for (int code = 0; code < IR_OP_COUNT; ++code)
        if (used->op[code][type][type][width] && ir_math_name((ir_opcode)code, type))
            add_wrapper(out, &v, n, (ir_opcode)code);
}

void cg_math_vectors(base_str *out, base_arena *a, const cg_vectors *v, cg_helpers *h) {
    static const ir_dtype types[] = {IR_F32, IR_F64};
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        elements_only(out, v, h, types[i]);
        for (int width = 0; width < CG_WIDTHS; ++width)
            one_width(out, a, v, types[i], width);
    }
}
