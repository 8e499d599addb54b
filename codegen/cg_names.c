/* Identifiers of emitted code.  One list of reserved words for C, C++ and CUDA, so that a name looks the same in all
 * of them. */
#include "codegen/cg.h"

#include <ctype.h>
#include <string.h>

static const char *const reserved[] = {
    /* C11 and C23 */
    "alignas",
    "alignof",
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "const",
    "constexpr",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "false",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "nullptr",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "struct",
    "switch",
    "thread_local",
    "true",
    "typedef",
    "typeof",
    "typeof_unqual",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    /* C++17 and C++20 */
    "and",
    "and_eq",
    "asm",
    "bitand",
    "bitor",
    "catch",
    "char8_t",
    "char16_t",
    "char32_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "consteval",
    "constinit",
    "const_cast",
    "decltype",
    "delete",
    "dynamic_cast",
    "explicit",
    "export",
    "friend",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "reinterpret_cast",
    "requires",
    "static_cast",
    "template",
    "this",
    "throw",
    "try",
    "typeid",
    "typename",
    "using",
    "virtual",
    "wchar_t",
    "xor",
    "xor_eq",
    "std",
    "main",
    /* macros and types of the headers in use */
    "INFINITY",
    "NAN",
    "NULL",
    "HUGE_VAL",
    "HUGE_VALF",
    "EOF",
    "errno",
    "offsetof",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "size_t",
    "ptrdiff_t",
    "intptr_t",
    "uintptr_t",
    "max_align_t",
    "INT32_MIN",
    "INT32_MAX",
    "INT64_MIN",
    "INT64_MAX",
    "INT64_C",
    "SIZE_MAX",
    "linux",
    "unix",
    "i386",
    "DOMAIN",
    "SING",
    "OVERFLOW",
    "UNDERFLOW",
    "PLOSS",
    "TLOSS",
    "M_PI",
    "M_E",
    "MAXFLOAT",
    "signgam",
    "FP_NAN",
    "FP_INFINITE",
    "FP_ZERO",
    "FP_SUBNORMAL",
    "FP_NORMAL",
    "FP_FAST_FMA",
    "FP_ILOGB0",
    "FP_ILOGBNAN",
    "isnan",
    "isinf",
    "isfinite",
    "isnormal",
    "signbit",
    "fpclassify",
    "math_errhandling",
    "float_t",
    "double_t",
    "memcpy",
    "memset",
    "memmove",
    "strlen",
    "abs",
    "labs",
    "llabs",
    /* CUDA */
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "min",
    "max",
    "dim3",
    "half",
    "float2",
    "float4",
    "int2",
    "int4",
};

/* Functions of <math.h> by stem: each also with the suffixes f and l. */
static const char *const math_stems[] = {
    "acos",        "acosh",      "asin",   "asinh",     "atan",   "atan2", "atanh",  "cbrt",   "ceil",   "copysign",
    "cos",         "cosh",       "drem",   "erf",       "erfc",   "exp",   "exp2",   "exp10",  "expm1",  "fabs",
    "fdim",        "finite",     "floor",  "fma",       "fmax",   "fmin",  "fmod",   "frexp",  "gamma",  "hypot",
    "ilogb",       "isgreater",  "isless", "j0",        "j1",     "jn",    "ldexp",  "lgamma", "llrint", "llround",
    "log",         "log10",      "log1p",  "log2",      "logb",   "lrint", "lround", "modf",   "nan",    "nearbyint",
    "nextafter",   "nexttoward", "pow",    "remainder", "remquo", "rint",  "round",  "scalb",  "scalbn", "scalbln",
    "significand", "sin",        "sincos", "sinh",      "sqrt",   "rsqrt", "tan",    "tanh",   "tgamma", "trunc",
    "y0",          "y1",         "yn",
};

static bool is_math(const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i < sizeof math_stems / sizeof *math_stems; ++i) {
        size_t stem = strlen(math_stems[i]);
        if (strncmp(word, math_stems[i], stem))
            continue;
        if (n == stem || (n == stem + 1 && (word[stem] == 'f' || word[stem] == 'l')))
            return true;
    }
    return false;
}

bool cg_is_reserved(const char *word) {
    if (!strncmp(word, "tiga", 4) || !strncmp(word, "TIGA", 4))
        return true;
    if (word[0] == '_')
        return true; /* mostly the implementation's; never ours */
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; ++i)
        if (!strcmp(word, reserved[i]))
            return true;
    return is_math(word);
}

const char *cg_identifier(base_arena *arena, const char *want) {
    size_t n = strlen(want);
    bool digit = n == 0 || isdigit((unsigned char)want[0]) || want[0] == '_' || want[0] == '.';
    const char *front = want[0] == '.' ? "n" : digit ? "v" : ""; /* ".dst" becomes n_dst */
    char *s = base_arena_printf(arena, "%s%s", front, want);
    for (char *p = s; *p; ++p)
        if (!isalnum((unsigned char)*p) || (unsigned char)*p >= 128)
            *p = '_';
    if (!strncmp(s, "tiga", 4) || !strncmp(s, "TIGA", 4))
        return base_arena_printf(arena, "u_%s", s);
    return cg_is_reserved(s) ? base_arena_printf(arena, "%s_", s) : s;
}

void cg_names_init(cg_names *names, base_arena *arena) {
    memset(names, 0, sizeof *names);
    names->arena = arena;
}

size_t cg_names_mark(const cg_names *names) { return names->n; }

/* ---- the set: open addressing; what was taken last is given back first, so a slot can just be emptied ------------- */
/* The slot of a name, or the empty one where it belongs. */
static uint32_t *slot_of(const cg_names *names, const char *s) {
    size_t at = base_hash_name(s, strlen(s)) & (names->n_slots - 1);
    while (names->slots[at] && strcmp(names->used[names->slots[at] - 1].text, s) != 0)
        at = (at + 1) & (names->n_slots - 1);
    return &names->slots[at];
}

static void grow(cg_names *names) {
    names->n_slots = names->n_slots ? names->n_slots * 2 : 64;
    names->slots = base_arena_new_array(names->arena, uint32_t, names->n_slots);
    for (size_t i = 0; i < names->n; i++)
        *slot_of(names, names->used[i].text) = (uint32_t)i + 1;
}

static cg_used *find(const cg_names *names, const char *s) {
    uint32_t at = names->n_slots ? *slot_of(names, s) : 0;
    return at ? &names->used[at - 1] : NULL;
}

static const char *take(cg_names *names, const char *s, uint32_t base, int number) {
    if (names->n * 2 >= names->n_slots)
        grow(names);
    cg_used u = {.text = s, .base = base, .number = number, .next = 2};
    base_push(names->arena, names->used, names->n, names->cap, u);
    *slot_of(names, s) = (uint32_t)names->n;
    return s;
}

void cg_names_release(cg_names *names, size_t mark) {
    while (names->n > mark) {
        const cg_used *u = &names->used[names->n - 1];
        *slot_of(names, u->text) = 0;
        names->n--;
        if (u->number && u->base - 1 < names->n && names->used[u->base - 1].next > u->number)
            names->used[u->base - 1].next = u->number; /* free again */
    }
}

/* x, x_, x2, x3 ...: the first that is free.  A name knows where to go on, so that many of one base take no longer. */
const char *cg_name(cg_names *names, const char *want) {
    const char *base = cg_identifier(names->arena, want), *s = base;
    bool ends_in_digit = base[0] && isdigit((unsigned char)base[strlen(base) - 1]);
    const cg_used *first = find(names, base);
    if (!first)
        return take(names, base, 0, 0);
    s = base_arena_printf(names->arena, "%s_", base);
    if (!find(names, s))
        return take(names, s, 0, 0);
    uint32_t at = (uint32_t)(first - names->used) + 1;
    for (int i = first->next;; ++i) {
        s = base_arena_printf(names->arena, ends_in_digit ? "%s_%d" : "%s%d", base, i);
        cg_used *other = find(names, s);
        if (!other) {
            names->used[at - 1].next = i + 1;
            return take(names, s, at, i);
        }
        if (!other->number) { /* a name of somebody else's that stands in the row */
            other->base = at;
            other->number = i;
        }
    }
}
