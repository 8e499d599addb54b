/* Scalar operations as C expressions, and the small inline functions for what C has no operator for.  The meaning is
 * that of ir_ops.def to the last bit: integers wrap around (no undefined behaviour), division by zero gives 0, casts
 * saturate, min and max let NaN through. */
#include "codegen/cg.h"

#include <math.h>
#include <string.h>

const char *cg_ctype(ir_dtype t) { return t == IR_BOOL ? "bool" : cg_storage(t); }

const char *cg_storage(ir_dtype t) {
    switch (t) {
#define IR_DTYPE(NAME, text, ctype, bytes, family, npy)                                                                \
    case IR_##NAME:                                                                                                    \
        return #ctype;
#include "ir/ir_types.def"
#undef IR_DTYPE
    case IR_NONE:
    case IR_TUPLE:
    case IR_GRAPH:
    case IR_INSTANCE_T:
        break;
    }
    BASE_BUG("no C type for dtype %d", (int)t);
}

/* A float constant reads as one: 1 becomes 1.0, and 1e+20 stays. */
static const char *float_const(base_arena *arena, double v, bool single) {
    const char *cast = single ? "" : "(double)";
    if (isnan(v))
        return base_arena_printf(arena, single ? "NAN" : "(double)NAN");
    if (isinf(v))
        return base_arena_printf(arena, v < 0 ? "(-%sINFINITY)" : "%sINFINITY", cast);
    base_str *s = base_arena_str(arena);
    if (single)
        base_str_add_f32(s, (float)v);
    else
        base_str_add_f64(s, v);
    const char *point = strpbrk(base_str_text(s), ".e") ? "" : ".0";
    const char *r = base_arena_printf(arena, "%s%s%s", base_str_text(s), point, single ? "f" : "");
    if (r[0] == '-')
        r = base_arena_printf(arena, "(%s)", r);
    return r;
}

static const char *int_const(base_arena *arena, int64_t v, bool wide) {
    if (v == INT64_MIN && wide)
        return "INT64_MIN";
    if (v == INT32_MIN)
        return wide ? "(int64_t)INT32_MIN" : "INT32_MIN";
    if (v > INT32_MAX || v < INT32_MIN)
        return base_arena_printf(arena, v < 0 ? "(-INT64_C(%llu))" : "INT64_C(%llu)",
                                 v < 0 ? 0ULL - (unsigned long long)v : (unsigned long long)v);
    return base_arena_printf(arena, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

const char *cg_const(base_arena *arena, ir_dtype t, ir_scalar_value v) {
    switch (t) {
    case IR_BOOL:
        return v.i ? "true" : "false";
    case IR_I32:
    case IR_I8:
    case IR_U8:
        return int_const(arena, (int32_t)v.i, false);
    case IR_F16:
    case IR_BF16:
        return base_arena_printf(arena, "0x%04x", (unsigned)(v.i & 0xffff));
    case IR_I64:
        return int_const(arena, v.i, true);
    case IR_F32:
        return float_const(arena, (double)v.f, true);
    case IR_F64:
        return float_const(arena, v.d, false);
    case IR_C64:
    case IR_C128: {
        bool single = t == IR_C64;
        return base_arena_printf(arena, "TIGA_COMPLEX(%s, %s, %s)", cg_ctype(t),
                                 float_const(arena, single ? (double)v.c[0] : v.z[0], single),
                                 float_const(arena, single ? (double)v.c[1] : v.z[1], single));
    }
    case IR_NONE:
    case IR_TUPLE:
    case IR_GRAPH:
    case IR_INSTANCE_T:
        break;
    }
    BASE_BUG("no constant of dtype %d", (int)t);
}

const char *cg_bare(base_arena *arena, const char *text) {
    size_t n = strlen(text);
    int depth = 0;
    if (n < 2 || text[0] != '(' || !strncmp(text, "((void)", 7))
        return text; /* a comma needs its parentheses */
    for (size_t i = 0; i < n; ++i) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0)
            return i + 1 == n ? base_arena_strndup(arena, text + 1, n - 2) : text;
    }
    return text;
}

ir_opcode cg_kind_op(ir_kind k) {
    switch (k) {
    case IR_KIND_SUM:
        return IR_ADD;
    case IR_KIND_PROD:
        return IR_MUL;
    case IR_KIND_MIN:
        return IR_MIN;
    case IR_KIND_MAX:
        return IR_MAX;
    case IR_KIND_AND:
        return IR_AND;
    case IR_KIND_OR:
        return IR_OR;
    case IR_KIND_ARGMIN:
    case IR_KIND_ARGMAX:
    case IR_KIND_SOFTMAX:
    case IR_KIND_LOGSUMEXP:
    case IR_KIND_VAR:
    case IR_KIND_STD:
    case IR_KIND_MEAN:
    case IR_KIND_COUNT:
    case IR_KIND_ANY:
    case IR_KIND_ALL:
    case IR_KIND_COUNT_:
        break;
    }
    BASE_BUG("kind %d is not primitive", (int)k);
}

/* The C library's name of an operation on doubles; NULL when it is no call. */
static const char *libm_stem(ir_opcode code) {
    switch ((int)code) {
    case IR_REM:
        return "fmod";
    case IR_ROUND:
        return "rint";
    case IR_ABS:
        return "fabs";
    case IR_SQRT:
    case IR_FLOOR:
    case IR_CEIL:
        return ir_op_describe(code)->text;
    default:
        return NULL;
    }
}

const char *cg_libm(ir_opcode code, ir_dtype in) {
    static const char *const single[] = {"fmodf", "rintf", "fabsf", "sqrtf", "floorf", "ceilf"};
    const char *stem = libm_stem(code);
    if (!stem || !ir_dtype_is_float(in))
        return NULL;
    if (in == IR_F64)
        return stem;
    for (size_t i = 0; i < sizeof single / sizeof *single; ++i)
        if (!strncmp(single[i], stem, strlen(stem)) && strlen(single[i]) == strlen(stem) + 1)
            return single[i];
    BASE_BUG("no single form of %s", stem);
}

static const char *infix(ir_opcode code) {
    switch ((int)code) {
    case IR_ADD:
        return "+";
    case IR_SUB:
        return "-";
    case IR_MUL:
        return "*";
    case IR_DIV:
        return "/";
    case IR_EQ:
        return "==";
    case IR_NE:
        return "!=";
    case IR_LT:
        return "<";
    case IR_LE:
        return "<=";
    case IR_GT:
        return ">";
    case IR_GE:
        return ">=";
    case IR_AND:
        return "&&";
    case IR_OR:
        return "||";
    default:
        return NULL;
    }
}

/* A comparison of an integer with itself is settled here: compilers warn about it. */
static const char *self_compare(base_arena *arena, ir_opcode code, const char *a, bool *atom) {
    bool holds = code == IR_EQ || code == IR_LE || code == IR_GE;
    *atom = true;
    return base_arena_printf(arena, "((void)%s, %s)", a, holds ? "true" : "false");
}

static const char *cast_expr(cg_helpers *h, base_arena *arena, ir_dtype in, ir_dtype out, const char *a, bool *atom) {
    if (in == out)
        return *atom = true, a;
    if (ir_dtype_is_complex(in)) {
        h->scalar[IR_CAST][in][out] = *atom = true;
        return base_arena_printf(arena, "tiga_%s_from_%s(%s)", ir_dtype_text(out), ir_dtype_text(in),
                                 cg_bare(arena, a));
    }
    if (ir_dtype_is_complex(out)) {
        const char *part = cast_expr(h, arena, in, ir_dtype_part(out), a, atom);
        *atom = true;
        return base_arena_printf(arena, "TIGA_COMPLEX(%s, %s, %s)", cg_ctype(out), cg_bare(arena, part),
                                 out == IR_C64 ? "0.0f" : "0.0");
    }
    if (ir_dtype_is_half(in) || (ir_dtype_is_half(out) && in == IR_F32)) {
        ir_dtype to = ir_dtype_is_half(in) ? IR_F32 : out;
        h->scalar[IR_CAST][in][to] = true;
        a = base_arena_printf(arena, "tiga_%s_from_%s(%s)", ir_dtype_text(to), ir_dtype_text(in), cg_bare(arena, a));
        return cast_expr(h, arena, to, out, a, atom); /* others go by way of f32 */
    }
    if (ir_dtype_is_half(out)) {
        bool first;
        a = cast_expr(h, arena, in, IR_F32, a, &first);
        return cast_expr(h, arena, IR_F32, out, first ? a : base_arena_printf(arena, "(%s)", a), atom);
    }
    if (out == IR_BOOL)
        return base_arena_printf(arena, ir_dtype_is_float(in) ? "%s != 0.0%s" : "%s != 0", a, in == IR_F32 ? "f" : "");
    *atom = true;
    if (ir_dtype_is_float(in) && !ir_dtype_is_float(out)) {
        h->scalar[IR_CAST][in][out] = true;
        return base_arena_printf(arena, "tiga_%s_from_%s(%s)", ir_dtype_text(out), ir_dtype_text(in),
                                 cg_bare(arena, a));
    }
    if (in == IR_BOOL && !ir_dtype_is_float(out)) /* else compilers warn about what it can never be */
        return base_arena_printf(arena, "(%s)(%s ? 1 : 0)", cg_ctype(out), a);
    return base_arena_printf(arena, "(%s)%s", cg_ctype(out), a);
}

/* Operations that need a function of ours for this dtype. */
static bool wants_helper(ir_opcode code, ir_dtype in) {
    if (ir_dtype_is_complex(in))
        return true;
    bool is_int = !ir_dtype_is_float(in) && in != IR_BOOL;
    switch ((int)code) {
    case IR_MIN:
    case IR_MAX:
    case IR_SIGN:
        return true;
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_NEG:
    case IR_DIV:
    case IR_REM:
    case IR_POW:
    case IR_ABS:
        return is_int;
    case IR_LT:
    case IR_LE:
    case IR_GT:
    case IR_GE:
        return in == IR_U8; /* compilers warn about what a constant can never be */
    default:
        return false;
    }
}

const char *cg_expr(cg_helpers *h, base_arena *arena, ir_opcode code, ir_dtype in, ir_dtype out,
                    const char *const *args, bool *atom) {
    *atom = false;
    if (code == IR_SELECT)
        return base_arena_printf(arena, "%s ? %s : %s", args[0], args[1], args[2]);
    if (code == IR_CAST)
        return cast_expr(h, arena, in, out, args[0], atom);
    if (code == IR_REAL || code == IR_IMAG)
        return *atom = true, base_arena_printf(arena, "%s.%s", args[0], code == IR_REAL ? "re" : "im");
    if (code == IR_COMPLEX) {
        *atom = true;
        return base_arena_printf(arena, "TIGA_COMPLEX(%s, %s, %s)", cg_ctype(out), cg_bare(arena, args[0]),
                                 cg_bare(arena, args[1]));
    }
    bool binary = ir_op_describe(code)->cls != IR_CLASS_UNARY;
    const char *f = ir_math_name(code, in);
    if (f) {
        h->scalar[code][in][out] = true;
        h->math = h->math || code == IR_ASIN || code == IR_ACOS || code == IR_HYPOT; /* they take square roots */
    } else if (wants_helper(code, in)) {
        h->scalar[code][in][out] = true;
        h->math = h->math || (code == IR_DIV && ir_dtype_is_complex(in));
        f = base_arena_printf(arena, "tiga_%s_%s", ir_op_describe(code)->text, ir_dtype_text(in));
    } else if ((f = cg_libm(code, in))) {
        h->math = true;
    }
    if (f) {
        *atom = true;
        const char *a = cg_bare(arena, args[0]);
        return binary ? base_arena_printf(arena, "%s(%s, %s)", f, a, cg_bare(arena, args[1]))
                      : base_arena_printf(arena, "%s(%s)", f, a);
    }
    if (code == IR_NOT)
        return base_arena_printf(arena, "!%s", args[0]);
    if (code == IR_NEG)
        return base_arena_printf(arena, "-%s", args[0]);
    BASE_CHECK(infix(code));
    bool compare = ir_op_describe(code)->cls == IR_CLASS_COMPARE;
    if (compare && !ir_dtype_is_float(in) && !strcmp(args[0], args[1]))
        return self_compare(arena, code, args[0], atom);
    return base_arena_printf(arena, "%s %s %s", args[0], infix(code), args[1]);
}

/* ---- the inline functions ---------------------------------------------------------------------------------------- */
typedef struct template {
    ir_opcode code;
    unsigned types; /* for which dtypes this text is */
    const char
        *text; /* @T the C type, @U its unsigned twin, @P a part of it, @N the dtype's name, @Z and @O zero and one,
                         @F fabs */
}
template;

enum { SIGNED = 1, UNSIGNED = 2, INTS = 3, FLOATS = 4, COMPLEXES = 8 };

static const template templates[] = {
    {IR_ADD, COMPLEXES, "TIGA_FN @T tiga_add_@N(@T a, @T b) { return TIGA_COMPLEX(@T, a.re + b.re, a.im + b.im); }\n"},
    {IR_SUB, COMPLEXES, "TIGA_FN @T tiga_sub_@N(@T a, @T b) { return TIGA_COMPLEX(@T, a.re - b.re, a.im - b.im); }\n"},
    {IR_MUL, COMPLEXES,
     "TIGA_FN @T tiga_mul_@N(@T a, @T b) {\n"
     "    return TIGA_COMPLEX(@T, a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);\n"
     "}\n"},
    {IR_DIV, COMPLEXES,
     "TIGA_FN @T tiga_div_@N(@T a, @T b) {\n"
     "    const bool first = @F(b.re) >= @F(b.im), zero = b.re == 0 && b.im == 0;\n"
     "    const @P p = first ? b.re : b.im, q = first ? b.im : b.re, r = q / p;\n"
     "    const @P x = first ? a.re : a.im, y = first ? a.im : a.re;\n"
     "    const @P s = zero ? @F(b.re) : p + q * r, re = zero ? a.re : x + y * r;\n"
     "    const @P im = zero ? a.im : first ? a.im - a.re * r : a.im * r - a.re;\n"
     "    return TIGA_COMPLEX(@T, re / s, im / s);\n"
     "}\n"},
    {IR_NEG, COMPLEXES, "TIGA_FN @T tiga_neg_@N(@T a) { return TIGA_COMPLEX(@T, -a.re, -a.im); }\n"},
    {IR_CONJ, COMPLEXES, "TIGA_FN @T tiga_conj_@N(@T a) { return TIGA_COMPLEX(@T, a.re, -a.im); }\n"},
    {IR_EQ, COMPLEXES, "TIGA_FN bool tiga_eq_@N(@T a, @T b) { return a.re == b.re && a.im == b.im; }\n"},
    {IR_NE, COMPLEXES, "TIGA_FN bool tiga_ne_@N(@T a, @T b) { return a.re != b.re || a.im != b.im; }\n"},
    {IR_ADD, INTS, "TIGA_FN @T tiga_add_@N(@T a, @T b) { return (@T)((@U)a + (@U)b); }\n"},
    {IR_SUB, INTS, "TIGA_FN @T tiga_sub_@N(@T a, @T b) { return (@T)((@U)a - (@U)b); }\n"},
    {IR_MUL, INTS, "TIGA_FN @T tiga_mul_@N(@T a, @T b) { return (@T)((@U)a * (@U)b); }\n"},
    {IR_NEG, INTS, "TIGA_FN @T tiga_neg_@N(@T a) { return (@T)(0u - (@U)a); }\n"},
    {IR_ABS, SIGNED, "TIGA_FN @T tiga_abs_@N(@T a) { return a < 0 ? (@T)(0u - (@U)a) : a; }\n"},
    {IR_ABS, UNSIGNED, "TIGA_FN @T tiga_abs_@N(@T a) { return a; }\n"},
    {IR_DIV, SIGNED,
     "TIGA_FN @T tiga_div_@N(@T a, @T b) { return (@T)(b == 0 ? 0 : b == -1 ? (@T)(0u - (@U)a) : a / b); }\n"},
    {IR_DIV, UNSIGNED, "TIGA_FN @T tiga_div_@N(@T a, @T b) { return (@T)(b == 0 ? 0 : a / b); }\n"},
    {IR_REM, SIGNED, "TIGA_FN @T tiga_rem_@N(@T a, @T b) { return (@T)(b == 0 ? a : b == -1 ? 0 : a % b); }\n"},
    {IR_REM, UNSIGNED, "TIGA_FN @T tiga_rem_@N(@T a, @T b) { return (@T)(b == 0 ? a : a % b); }\n"},
    {IR_MIN, FLOATS, "TIGA_FN @T tiga_min_@N(@T a, @T b) { return a < b || a != a ? a : b; }\n"},
    {IR_MAX, FLOATS, "TIGA_FN @T tiga_max_@N(@T a, @T b) { return a > b || a != a ? a : b; }\n"},
    {IR_MIN, INTS, "TIGA_FN @T tiga_min_@N(@T a, @T b) { return a < b ? a : b; }\n"},
    {IR_MAX, INTS, "TIGA_FN @T tiga_max_@N(@T a, @T b) { return a > b ? a : b; }\n"},
    {IR_SIGN, SIGNED | FLOATS, "TIGA_FN @T tiga_sign_@N(@T a) { return a > @Z ? @O : a < @Z ? -@O : a; }\n"},
    {IR_SIGN, UNSIGNED, "TIGA_FN @T tiga_sign_@N(@T a) { return a > 0 ? 1 : 0; }\n"},
    {IR_LT, UNSIGNED, "TIGA_FN bool tiga_lt_@N(@T a, @T b) { return a < b; }\n"},
    {IR_LE, UNSIGNED, "TIGA_FN bool tiga_le_@N(@T a, @T b) { return a <= b; }\n"},
    {IR_GT, UNSIGNED, "TIGA_FN bool tiga_gt_@N(@T a, @T b) { return a > b; }\n"},
    {IR_GE, UNSIGNED, "TIGA_FN bool tiga_ge_@N(@T a, @T b) { return a >= b; }\n"},
    {IR_POW, UNSIGNED,
     "TIGA_FN @T tiga_pow_@N(@T a, @T n) {\n"
     "    @U result = 1u, square = a;\n"
     "    for (@U left = n; left != 0u; left >>= 1) {\n"
     "        if ((left & 1u) != 0u) result *= square;\n"
     "        square *= square;\n"
     "    }\n"
     "    return (@T)result;\n"
     "}\n"},
    {IR_POW, SIGNED,
     "TIGA_FN @T tiga_pow_@N(@T a, @T n) {\n"
     "    if (n < 0) return a == 1 ? 1 : a == -1 ? (n % 2 == 0 ? 1 : -1) : 0;\n"
     "    @U result = 1u, square = (@U)a;\n"
     "    for (@U left = (@U)n; left != 0u; left >>= 1) {\n"
     "        if ((left & 1u) != 0u) result *= square;\n"
     "        square *= square;\n"
     "    }\n"
     "    return (@T)result;\n"
     "}\n"},
};

static const char *name_of_fabs(ir_dtype t) { return ir_dtype_bytes(ir_dtype_part(t)) == 4 ? "fabsf" : "fabs"; }
static const char *unsigned_of(ir_dtype t) { return t == IR_I64 ? "uint64_t" : "uint32_t"; }
static const char *zero_of(ir_dtype t) { return t == IR_F32 ? "0.0f" : t == IR_F64 ? "0.0" : "0"; }
static const char *one_of(ir_dtype t) { return t == IR_F32 ? "1.0f" : t == IR_F64 ? "1.0" : "1"; }

static void expand(base_str *out, const char *text, ir_dtype t) {
    for (; *text; ++text) {
        if (*text != '@') {
            base_str_add_n(out, text, 1);
            continue;
        }
        switch (*++text) {
        case 'T':
            base_str_add(out, cg_ctype(t));
            break;
        case 'S':
            base_str_add(out, cg_storage(t));
            break;
        case 'U':
            base_str_add(out, unsigned_of(t));
            break;
        case 'P':
            base_str_add(out, cg_ctype(ir_dtype_part(t)));
            break;
        case 'F':
            base_str_add(out, name_of_fabs(t));
            break;
        case 'N':
            base_str_add(out, ir_dtype_text(t));
            break;
        case 'Z':
            base_str_add(out, zero_of(t));
            break;
        case 'O':
            base_str_add(out, one_of(t));
            break;
        default:
            BASE_BUG("template letter %c", *text);
        }
    }
}

/* "-128.0f" */
static const char *whole_float(base_arena *arena, double v, bool single) {
    return base_arena_printf(arena, "%.0f.0%s", v, single ? "f" : "");
}

typedef struct cast {
    base_str *out;
    base_arena *arena;
    ir_dtype in, to;
} cast;

/* Float to integer: the comparison is with a power of two, which every float type holds exactly. */
static void write_cast(void *user) {
    const cast *x = user;
    int64_t least, most;
    ir_dtype_limits(x->to, &least, &most);
    bool single = x->in == IR_F32, wide = x->to == IR_I64;
    const char *c = cg_ctype(x->to), *above = whole_float(x->arena, (double)(most / 2 + 1) * 2, single);
    base_str_addf(x->out, "TIGA_FN %s tiga_%s_from_%s(%s a) {\n", c, ir_dtype_text(x->to), ir_dtype_text(x->in),
                  cg_ctype(x->in));
    base_str_addf(x->out, "    if (a != a) return 0;\n");
    base_str_addf(x->out, "    if (a >= %s) return %s;\n", above,
                  wide ? "INT64_MAX" : int_const(x->arena, most, false));
    base_str_addf(x->out, "    if (a <= %s) return %s;\n", whole_float(x->arena, (double)least, single),
                  cg_bare(x->arena, int_const(x->arena, least, wide)));
    base_str_addf(x->out, "    return (%s)a;\n}\n", c);
}

static void emit_cast(base_str *out, ir_dtype in, ir_dtype to) {
    cast x = {out, base_arena_new(), in, to};
    if (!x.arena || !base_arena_catch(x.arena, write_cast, &x))
        out->failed = true;
    base_arena_free(x.arena);
}

static void emit_complex_cast(base_str *out, ir_dtype in, ir_dtype to) {
    const char *c = cg_ctype(to), *part = cg_ctype(ir_dtype_part(to));
    base_str_addf(out, "TIGA_FN %s tiga_%s_from_%s(%s a) { return TIGA_COMPLEX(%s, (%s)a.re, (%s)a.im); }\n", c,
                  ir_dtype_text(to), ir_dtype_text(in), cg_ctype(in), c, part, part);
}

static void emit_scalar(cg_text *w, const cg_helpers *h, ir_opcode code, ir_dtype in, ir_dtype to) {
    if (code == IR_CAST) {
        if (ir_dtype_is_complex(in))
            emit_complex_cast(w->out, in, to);
        else if (ir_dtype_is_half(in) || ir_dtype_is_half(to))
            cg_half_cast(w->out, in, to, h->cuda);
        else
            emit_cast(w->out, in, to);
        return;
    }
    unsigned family = ir_dtype_is_float(in)     ? FLOATS
                      : ir_dtype_is_complex(in) ? COMPLEXES
                      : in == IR_U8             ? UNSIGNED
                                                : SIGNED;
    for (size_t i = 0; i < sizeof templates / sizeof *templates; ++i)
        if (templates[i].code == code && (templates[i].types & family))
            expand(w->out, templates[i].text, in);
}

static void emit_arg_better(base_str *out, ir_kind k, ir_dtype t) {
    bool is_float = ir_dtype_is_float(t);
    base_str_addf(
        out, "/* Does (v, e) beat the best so far?  A NaN beats numbers; among equals the smaller edge wins. */\n");
    base_str_addf(out, "TIGA_FN bool tiga_%s_%s(%s v, int64_t e, %s best, int64_t best_e) {\n", ir_kind_text(k),
                  ir_dtype_text(t), cg_ctype(t), cg_ctype(t));
    base_str_add(out, "    if (e < 0) return false;\n    if (best_e < 0) return true;\n");
    if (is_float) {
        base_str_add(out, "    if (v != v && best != best) return e < best_e;\n");
        base_str_add(out, "    if (v != v || best != best) return v != v;\n");
    }
    base_str_addf(out, "    return v %c best || (v == best && e < best_e);\n}\n", k == IR_KIND_ARGMIN ? '<' : '>');
}

typedef struct collapse {
    base_str *out;
    base_arena *arena;
    ir_kind k;
    ir_dtype t;
    cg_helpers *h;
} collapse;

static void write_collapse(void *user) {
    const collapse *x = user;
    base_str *out = x->out;
    base_str_addf(out, "TIGA_FN %s tiga_collapse_%s_%s(const %s *partials) {\n", cg_ctype(x->t), ir_kind_text(x->k),
                  ir_dtype_text(x->t), cg_ctype(x->t));
    base_str_addf(out, "    %s p[8];\n", cg_ctype(x->t));
    const char *first[2] = {"partials[i]", "partials[i + 8]"}, *later[2] = {"p[i]", "p[i + n]"};
    bool atom;
    base_str_addf(out, "    for (int i = 0; i < 8; ++i) p[i] = %s;\n",
                  cg_expr(x->h, x->arena, cg_kind_op(x->k), x->t, x->t, first, &atom));
    base_str_add(out, "    for (int n = 4; n > 0; n /= 2) {\n");
    base_str_addf(out, "        for (int i = 0; i < n; ++i) p[i] = %s;\n",
                  cg_expr(x->h, x->arena, cg_kind_op(x->k), x->t, x->t, later, &atom));
    base_str_add(out, "    }\n    return p[0];\n}\n");
}

static void emit_collapse(base_str *out, ir_kind k, ir_dtype t, cg_helpers *h) {
    collapse x = {out, base_arena_new(), k, t, h};
    if (!x.arena || !base_arena_catch(x.arena, write_collapse, &x))
        out->failed = true;
    base_arena_free(x.arena);
}

static void emit_arg_collapse(base_str *out, ir_kind k, ir_dtype t) {
    const char *kind = ir_kind_text(k), *name = ir_dtype_text(t), *c = cg_ctype(t);
    base_str_addf(out, "TIGA_FN int64_t tiga_collapse_%s_%s(%s *v, int64_t *e) {\n", kind, name, c);
    base_str_add(out, "    for (int n = 8; n > 0; n /= 2) {\n        for (int i = 0; i < n; ++i) {\n");
    base_str_addf(out, "            if (!tiga_%s_%s(v[i + n], e[i + n], v[i], e[i])) continue;\n", kind, name);
    base_str_add(out,
                 "            v[i] = v[i + n];\n            e[i] = e[i + n];\n        }\n    }\n    return e[0];\n}\n");
}

static bool any_half_cast(const cg_helpers *h) {
    for (int in = 0; in < CG_DTYPES; ++in)
        for (int to = 0; to < CG_DTYPES; ++to)
            if (h->scalar[IR_CAST][in][to] && cg_is_half_cast(IR_CAST, (ir_dtype)in, (ir_dtype)to))
                return true;
    return false;
}

void cg_emit_helpers(cg_text *w, const cg_helpers *h) {
    cg_helpers need = *h;
    base_str trees = {0};
    for (int k = 0; k < IR_KIND_COUNT_; ++k)
        for (int t = 0; t < CG_DTYPES; ++t) {
            bool arg = k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX;
            if (!need.collapse[k][t])
                continue;
            if (arg)
                emit_arg_collapse(&trees, (ir_kind)k, (ir_dtype)t);
            else
                emit_collapse(&trees, (ir_kind)k, (ir_dtype)t, &need);
            if (arg)
                need.arg_better[k][t] = true;
        }
    if (any_half_cast(&need))
        cg_half_prelude(w->out, need.cuda);
    cg_math_scalars(w->out, &need);
    for (int code = 0; code < IR_OP_COUNT; ++code)
        for (int in = 0; in < CG_DTYPES; ++in)
            for (int to = 0; to < CG_DTYPES; ++to)
                if (need.scalar[code][in][to])
                    emit_scalar(w, &need, (ir_opcode)code, (ir_dtype)in, (ir_dtype)to);
    for (int k = 0; k < IR_KIND_COUNT_; ++k)
        for (int t = 0; t < CG_DTYPES; ++t)
            if (need.arg_better[k][t])
                emit_arg_better(w->out, (ir_kind)k, (ir_dtype)t);
    cg_raw(w, base_str_text(&trees));
    w->out->failed |= trees.failed;
    base_str_fini(&trees);
}
