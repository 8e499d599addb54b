/* Casts between f32 and the 16-bit floats, whose values are their bits in emitted code.  One element at a time, with the
 * processor's instruction where there is one and integer arithmetic elsewhere (the same bits); and whole vectors. */
#include "codegen/cg_c.h"

/* ---- one element ------------------------------------------------------------------------------------------------- */
static const char prelude[] = "typedef union tiga_f32_bits {\n    uint32_t u;\n    float f;\n} tiga_f32_bits;\n";

static const char native[] =
    "#if defined(__clang__) && defined(__FLT16_MANT_DIG__) && (defined(__F16C__) || defined(__aarch64__))\n"
    "#define TIGA_NATIVE_F16 1 /* converts with one instruction */\n"
    "#else\n"
    "#define TIGA_NATIVE_F16 0\n"
    "#endif\n"
    "#if defined(__GNUC__)\n"
    "#define TIGA_MAYBE_UNUSED __attribute__((unused)) /* where vectors have instructions */\n"
    "#else\n"
    "#define TIGA_MAYBE_UNUSED\n"
    "#endif\n";

static const char f32_from_f16[] =
    "    const uint32_t sign = ((uint32_t)a & 0x8000u) << 16, rest = (uint32_t)a & 0x7fffu;\n"
    "    tiga_f32_bits r;\n"
    "    r.f = (float)(int32_t)rest * 5.9604644775390625e-8f; /* subnormal: times 2^-24 */\n"
    "    if (rest >= 0x400u) r.u = (rest << 13) + 0x38000000u;\n"
    "    if (rest >= 0x7c00u) r.u = rest << 13 | 0x7f800000u;\n"
    "    if (rest > 0x7c00u) r.u |= 0x400000u;\n"
    "    r.u |= sign;\n"
    "    return r.f;\n";

static const char f16_from_f32[] = "    tiga_f32_bits b, small;\n"
                                   "    b.f = a;\n"
                                   "    const uint32_t sign = b.u >> 16 & 0x8000u, rest = b.u & 0x7fffffffu;\n"
                                   "    uint32_t r = (rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13;\n"
                                   "    small.u = rest;\n"
                                   "    small.f += 0.5f; /* rounds to a multiple of 2^-24 */\n"
                                   "    if (rest < 0x38800000u) r = small.u - 0x3f000000u;\n"
                                   "    if (rest >= 0x477ff000u) r = 0x7c00u;\n"
                                   "    if (rest > 0x7f800000u) r = 0x7e00u | (rest >> 13 & 0x3ffu);\n"
                                   "    return (uint16_t)(sign | r);\n";

static const char f32_from_bf16[] = "    tiga_f32_bits r;\n"
                                    "    r.u = (uint32_t)a << 16;\n"
                                    "    return r.f;\n";

static const char bf16_from_f32[] =
    "    tiga_f32_bits b;\n"
    "    b.f = a;\n"
    "    const uint32_t r = (b.u + 0x7fffu + (b.u >> 16 & 1u)) >> 16;\n"
    "    return (uint16_t)((b.u & 0x7fffffffu) > 0x7f800000u ? b.u >> 16 | 0x40u : r);\n";

void cg_half_prelude(base_str *out, bool cuda) {
    base_str_add(out, prelude);
    if (!cuda)
        base_str_add(out, native);
}

/* CUDA gets the integers, too: its own conversion (cvt) makes 0x7fff of every NaN, and what no processor here can run cannot
 * be tested here.  Loads cost more than these instructions. */
static void f16_body(base_str *out, bool widen, bool cuda) {
    const char *each = widen ? f32_from_f16 : f16_from_f32;
    if (cuda) {
        base_str_add(out, each);
        return;
    }
    base_str_add(out, "#if TIGA_NATIVE_F16\n    _Float16 h;\n");
    base_str_add(out, widen ? "    __builtin_memcpy(&h, &a, sizeof h);\n    return (float)h;\n"
                            : "    uint16_t r;\n    h = (_Float16)a;\n    __builtin_memcpy(&r, &h, sizeof r);\n"
                              "    return r;\n");
    base_str_addf(out, "#else\n%s#endif\n", each);
}

void cg_half_cast(base_str *out, ir_dtype in, ir_dtype to, bool cuda) {
    bool widen = to == IR_F32;
    ir_dtype half = widen ? in : to;
    BASE_CHECK(ir_dtype_is_half(half) && (widen || in == IR_F32));
    base_str_addf(out, "TIGA_FN %s%s tiga_%s_from_%s(%s a) {\n", cuda ? "" : "TIGA_MAYBE_UNUSED ", cg_ctype(to),
                  ir_dtype_text(to), ir_dtype_text(in), cg_ctype(in));
    if (half == IR_F16)
        f16_body(out, widen, cuda);
    else
        base_str_add(out, widen ? f32_from_bf16 : bf16_from_f32);
    base_str_add(out, "}\n");
}

/* ---- a vector of n elements -------------------------------------------------------------------------------------- */
bool cg_is_half_cast(ir_opcode code, ir_dtype in, ir_dtype to) {
    return code == IR_CAST && ((ir_dtype_is_half(in) && to == IR_F32) || (in == IR_F32 && ir_dtype_is_half(to)));
}

static void native_f16(base_str *out, bool widen, int n) {
    base_str_addf(out,
                  "#elif TIGA_NATIVE_F16\n"
                  "    typedef _Float16 halves __attribute__((vector_size(%d)));\n"
                  "    typedef float floats __attribute__((vector_size(%d)));\n"
                  "    halves h;\n    floats f;\n",
                  2 * n, 4 * n);
    base_str_add(out, widen ? "    __builtin_memcpy(&h, &a, sizeof h);\n"
                              "    f = __builtin_convertvector(h, floats);\n"
                              "    __builtin_memcpy(&r, &f, sizeof r);\n"
                            : "    __builtin_memcpy(&f, &a, sizeof f);\n"
                              "    h = __builtin_convertvector(f, halves);\n"
                              "    __builtin_memcpy(&r, &h, sizeof r);\n");
}

/* GCC 12 knows no vectors of _Float16 in C++, but the instruction by name. */
static void gcc_f16(base_str *out, bool widen, int n) {
    int step = n < 8 ? 4 : 8;
    const char *wide = step == 8 ? "256" : "";
    base_str_addf(out,
                  "#elif defined(__F16C__)\n"
                  "    typedef short halves __attribute__((vector_size(16)));\n"
                  "    typedef float floats __attribute__((vector_size(%d)));\n"
                  "    for (int i = 0; i < %d; i += %d) {\n        halves h = {0};\n        floats f;\n",
                  4 * step, n, step);
    if (widen)
        base_str_addf(out,
                      "        __builtin_memcpy(&h, (const char *)&a + i * 2, %d);\n"
                      "        f = __builtin_ia32_vcvtph2ps%s(h);\n"
                      "        __builtin_memcpy((char *)&r + i * 4, &f, sizeof f);\n    }\n",
                      2 * step, wide);
    else
        base_str_addf(out,
                      "        __builtin_memcpy(&f, (const char *)&a + i * 4, sizeof f);\n"
                      "        h = __builtin_ia32_vcvtps2ph%s(f, 0);\n"
                      "        __builtin_memcpy((char *)&r + i * 2, &h, %d);\n    }\n",
                      wide, 2 * step);
}

static void shift_bf16(base_str *out, bool widen, int n) {
    base_str_addf(out,
                  "#else\n"
                  "    typedef uint16_t halves __attribute__((vector_size(%d)));\n"
                  "    typedef uint32_t words __attribute__((vector_size(%d)));\n"
                  "    halves h;\n    words w;\n",
                  2 * n, 4 * n);
    base_str_add(out, widen ? "    __builtin_memcpy(&h, &a, sizeof h);\n"
                              "    w = __builtin_convertvector(h, words) << 16;\n"
                              "    __builtin_memcpy(&r, &w, sizeof r);\n"
                            : "    __builtin_memcpy(&w, &a, sizeof w);\n"
                              "    const words nan = (words)((w & 0x7fffffffu) > 0x7f800000u);\n"
                              "    w = (nan & (w >> 16 | 0x40u)) | (~nan & ((w + 0x7fffu + (w >> 16 & 1u)) >> 16));\n"
                              "    h = __builtin_convertvector(w, halves);\n"
                              "    __builtin_memcpy(&r, &h, sizeof r);\n");
}

/* Without instructions for it: a loop, which compilers turn into vectors. */
static void elementwise_f16(base_str *out, const char *function, bool widen, int n) {
    base_str_addf(out,
                  "#else\n    %s from[%d];\n    %s to[%d];\n    __builtin_memcpy(from, &a, sizeof from);\n"
                  "    for (int i = 0; i < %d; ++i) to[i] = %s(from[i]);\n    __builtin_memcpy(&r, to, sizeof r);\n",
                  widen ? "uint16_t" : "float", n, widen ? "float" : "uint16_t", n, n, function);
}

void cg_half_vector(base_str *out, cg_helpers *h, base_arena *arena, ir_dtype in, ir_dtype to, int n) {
    bool widen = to == IR_F32;
    ir_dtype half = widen ? in : to;
    const char *function = base_arena_printf(arena, "tiga_%s_from_%s", ir_dtype_text(to), ir_dtype_text(in));
    h->scalar[IR_CAST][in][to] = true;
    base_str_addf(out, "TIGA_VECTOR_FN tiga_%sx%d %sx%d(tiga_%sx%d a) {\n    tiga_%sx%d r;\n", ir_dtype_text(to), n,
                  function, n, ir_dtype_text(in), n, ir_dtype_text(to), n);
    base_str_addf(out, "#if TIGA_VECTOR_BYTES == 0\n    for (int i = 0; i < %d; ++i) r.p[i] = %s(a.p[i]);\n", n,
                  function);
    if (half == IR_F16) {
        native_f16(out, widen, n);
        gcc_f16(out, widen, n);
        elementwise_f16(out, function, widen, n);
    } else {
        shift_bf16(out, widen, n);
    }
    base_str_add(out, "#endif\n    return r;\n}\n");
}
