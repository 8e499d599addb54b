/* Made from model by tigac test; changes here are lost when it is made again.
 * Source hash 0123456789abcdef0123456789abcdef. */

/* Every float operation is rounded once: no fused multiply-add behind the program's back. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && (defined(__cplusplus) || !defined(__STRICT_ANSI__)) && (defined(__FMA__) || !defined(__x86_64__))
#pragma GCC optimize("fp-contract=off")
#endif

#if defined(TIGA_FREESTANDING) /* no headers at hand: what they would have said */
typedef __INT8_TYPE__ int8_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __UINTPTR_TYPE__ uintptr_t;
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_C(n) ((int64_t)n##LL)
#define INT64_MAX INT64_C(9223372036854775807)
#define INT64_MIN (-INT64_MAX - 1)
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#if defined(__cplusplus)
#define NULL 0
#else
#define NULL ((void *)0)
#define bool _Bool
#define true 1
#define false 0
#endif
#else
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

/* The contract between a compiled Tiga module and whatever loads it.  This text is embedded verbatim into every
 * emitted C file, so that file builds on its own; it is also what the runtime includes.  C11 and C++17, no includes
 * beyond <stdint.h> and <stddef.h>.  Change anything here and raise TIGA_ABI_VERSION. */
#ifndef TIGA_ABI_H
#define TIGA_ABI_H


#ifdef __cplusplus
extern "C" {
#endif

#define TIGA_ABI_VERSION 8

/* Element types, the same numbers as in the compiler's type table. */
enum {
    TIGA_BOOL = 0,
    TIGA_I32 = 1,
    TIGA_I64 = 2,
    TIGA_F32 = 3,
    TIGA_F64 = 4,
    TIGA_F16 = 5, /* uint16_t: the bits of an IEEE binary16 */
    TIGA_BF16 = 6, /* uint16_t: the upper half of a float */
    TIGA_I8 = 7,
    TIGA_U8 = 8,
    TIGA_C64 = 9,  /* tiga_c64 */
    TIGA_C128 = 10 /* tiga_c128 */
};

/* Complex numbers, laid out like C's and C++'s own. */
typedef struct tiga_c64 {
    float re, im;
} tiga_c64;
typedef struct tiga_c128 {
    double re, im;
} tiga_c128;

/* What a parameter or a result is indexed by. TIGA_AT_GRAPH marks a program's graph parameter. */
enum { TIGA_AT_SRC = 0, TIGA_AT_DST = 1, TIGA_AT_NODE = 2, TIGA_AT_EDGE = 3, TIGA_AT_PARAM = 4, TIGA_AT_GRAPH = 5 };

enum { TIGA_TIER_HOST = 0, TIGA_TIER_DEVICE = 1, TIGA_TIER_PINNED = 2, TIGA_TIER_DISK = 3 };

/* A relation in compressed rows by destination: edges offsets[i] .. offsets[i+1]-1 enter row i. */
typedef struct tiga_csr {
    int64_t n_dst, n_src, n_edges;
    const int64_t *offsets; /* [n_dst + 1] */
    const void *sources;    /* [n_edges], int32_t or int64_t as source_bits says */
    int64_t source_bits;    /* 32 or 64 */
} tiga_csr;

/* What one kernel reads and writes.  Arrays are row-major and dense: first the axis of the role, then the features. */
typedef struct tiga_launch_args {
    tiga_csr graph;        /* zero when the kernel walks no edges */
    int64_t n_rows;        /* size of the domain in rows */
    const int64_t *dims;   /* one per open dimension of the kernel, in order */
    void *const *buffers;  /* inputs in order of declaration, then outputs */
    void *scratch;         /* scratch_bytes(dims) bytes for this thread, 64-byte aligned; NULL when 0 */
    const void *edge_of;   /* [n_edges] when `graph` is a transposed relation: the edge of the graph that each is, as
                              wide as its sources */
    const double *numbers; /* those of tiga_kernel_code */
    /* asked between pieces of long loops, when not NULL: anything but 0 is to return at once, results unfinished */
    int32_t (*give_up)(void *user);
    void *user;
} tiga_launch_args;

/* Computes units row_begin .. row_end-1.  Allocates nothing, starts no threads, touches only its arguments. */
typedef void (*tiga_rows_fn)(const tiga_launch_args *args, int64_t row_begin, int64_t row_end);

/* What a kernel that goes over edges reads of each, beside its fields. */
enum { TIGA_READS_SOURCE = 1, TIGA_READS_EDGE_OF = 2 };

/* One compiled loop nest. A unit is `rows_per_unit` rows of the domain (1 except in full reductions). */
typedef struct tiga_kernel_code {
    const char *name;
    tiga_rows_fn rows32; /* 32-bit sources; also used when the kernel walks no edges */
    tiga_rows_fn rows64; /* 64-bit sources; NULL when the kernel walks no edges */
    int64_t (*scratch_bytes)(const int64_t *dims); /* NULL: none */
    int64_t rows_per_unit;
    /* 0; 1: the graph by destination; 2: by source, the transposed relation; 3: the graph by destination, from which
     * each source takes what is its own: its domain is the sources, and every call goes through all of the graph */
    int32_t walks_edges;
    int32_t reads; /* TIGA_READS_*: for statistics */
    int32_t n_buffers, n_outputs, n_dims; /* outputs are the last n_outputs buffers */
    const double *numbers; /* constants in which kernels of one body differ; NULL: none */
} tiga_kernel_code;

/* A dimension of an array: a constant >= 0, or -1 - i for dims[i] of the function it belongs to. */
typedef struct tiga_field_info {
    const char *name;
    int32_t at; /* TIGA_AT_* */
    int32_t dtype; /* TIGA_BOOL .. */
    int32_t rank; /* feature axes, without the axis that `at` stands for */
    int32_t graph; /* programs: index of the parameter that is the graph of `at`; -1 otherwise */
    int64_t shape[6];
    const char *text; /* as declared, "src x: f32[F]" */
} tiga_field_info;

/* The host side of a program, or of one kernel called through a context.  Everything it needs from the runtime comes
 * through this table; `frame` is the runtime's own state of the one call.  Each int32_t is a tiga_status; nonzero
 * makes the host function return it at once, and the runtime then releases what the frame still holds. */
typedef struct tiga_instance tiga_instance;
typedef struct tiga_host {
    int64_t abi_version;
    /* the caller's array for parameter or result `index`, as an instance in its tier */
    int32_t (*bind_param)(void *frame, int32_t index, tiga_instance **out);
    int32_t (*bind_result)(void *frame, int32_t index, tiga_instance **out);
    /* a new buffer; the budget of the tier is checked first */
    int32_t (*alloc)(void *frame, const char *name, int64_t version, int32_t tier, int64_t bytes, tiga_instance **out);
    /* resident and pinned until `done`; a read waits for the last write, a write for all readers */
    int32_t (*acquire)(void *frame, tiga_instance *inst, int32_t write);
    int32_t (*done)(void *frame, tiga_instance *inst);
    int32_t (*release)(void *frame, tiga_instance *inst);
    int32_t (*copy)(void *frame, tiga_instance *from, tiga_instance *to);
    /* a stack of copies that lasts as long as the call: puts one on, takes the newest off into an instance of its size */
    int32_t (*push)(void *frame, tiga_instance *from);
    int32_t (*restore)(void *frame, tiga_instance *to);
    /* runs `code` over all units of a domain of n_rows rows; graph: parameter index or -1 */
    int32_t (*launch)(void *frame, const tiga_kernel_code *code, int32_t graph, int64_t n_rows,
                      tiga_instance *const *buffers, const int64_t *dims);
    /* the same; the next launch adds up rows of the same domain and reads of what this one writes only its own rows, so
     * each of its units may run as soon as those rows are there */
    int32_t (*launch_ahead)(void *frame, const tiga_kernel_code *code, int32_t graph, int64_t n_rows,
                            tiga_instance *const *buffers, const int64_t *dims);
    /* element 0 of an acquired instance, as an integer */
    int32_t (*read_i64)(void *frame, tiga_instance *inst, int64_t *out);
    int32_t (*read_bool)(void *frame, tiga_instance *inst, int64_t *out);
    /* called between launches: nonzero stops the program (interruption) */
    int32_t (*poll)(void *frame);
} tiga_host;

/* dims: the function's open dimensions; for programs also the sizes of its graphs (see tiga_function_info.dims). */
typedef int32_t (*tiga_host_fn)(const tiga_host *host, void *frame, const int64_t *dims);

/* One kernel or program of the module, with all that a caller needs to check and call it. */
typedef struct tiga_function_info {
    const char *name;
    const char *signature; /* as written in the source, on one line */
    int32_t is_program;
    int32_t n_dims, n_params, n_results;
    const char *const *dims; /* names; "g.dst", "g.src", "g.edge" are sizes of the graph parameter g; in a kernel the
                                graph has no name and they are ".dst", ".src", ".edge" when needed;
                                "D+K", "2*F-1" are computed from the others, and at least 0 */
    const tiga_field_info *params; /* programs include the graph parameters; kernels do not */
    const tiga_field_info *results; /* `at` is TIGA_AT_DST or TIGA_AT_EDGE for kernels */
    int32_t needs_square; /* n_dst must equal n_src for every graph it uses */
    tiga_host_fn host;
    const char *plan; /* the page schedule, as task IR text */
    int32_t n_same; /* of programs: pairs of dims that must be equal, both of them sizes of graphs, in `same` */
    const int32_t *same; /* [2 * n_same] */
} tiga_function_info;

/* The one exported symbol of a module: `const tiga_module_info *tiga_module_info_v1(void)`. */
typedef struct tiga_module_info {
    int64_t abi_version;
    int64_t struct_bytes; /* sizeof(tiga_module_info) when it was built */
    const char *compiler; /* "tigac 0.1.0" */
    const char *source_name;
    const char *source_hash; /* 32 hexadecimal digits */
    const char *target_cpu; /* LLVM's name */
    const char *target_features; /* comma-separated features the code may use, "avx2,avx512f,..." */
    int32_t n_functions, n_kernels;
    const tiga_function_info *functions;
    const tiga_kernel_code *kernels;
} tiga_module_info;

#define TIGA_MODULE_SYMBOL "tiga_module_info_v1"

#ifdef __cplusplus
}
#endif
#endif

#define TIGA_FN static inline
#if defined(__GNUC__) /* where it would stand in one function many times */
#define TIGA_APART static __attribute__((noinline, unused))
#else
#define TIGA_APART static
#endif
#define TIGA_SIZE_MUL(a, b) ((b) != 0 && (a) > INT64_MAX / (b) ? INT64_MAX : (a) * (b))
/* What only calls is not worth a compiler's time: host functions, kernels as plain functions. */
#if defined(__clang__)
#define TIGA_CALLS_ONLY __attribute__((optnone, noinline))
#else
#define TIGA_CALLS_ONLY
#endif
#define TIGA_HOST_FN static TIGA_CALLS_ONLY
#if defined(__cplusplus) || defined(_MSC_VER)
#define TIGA_RESTRICT __restrict
#else
#define TIGA_RESTRICT restrict
#endif
#if defined(_WIN32)
#define TIGA_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TIGA_EXPORT __attribute__((visibility("default")))
#else
#define TIGA_EXPORT
#endif
/* What unrolling would only make longer to compile: walks over edges, and rests of fewer than 16 steps. */
#if defined(__clang__)
#define TIGA_NO_UNROLL _Pragma("clang loop unroll(disable)")
#define TIGA_SHORT_LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define TIGA_NO_UNROLL
#define TIGA_SHORT_LOOP
#endif
#if defined(__GNUC__)
#define TIGA_PREFETCH(address) __builtin_prefetch(address)
#else
#define TIGA_PREFETCH(address) ((void)(address))
#endif
/* As many rows ahead as have so many bytes, from a quarter of `most` to it. */
#define TIGA_FAR(most, bytes, row) \
    ((row) * (most) <= (bytes) ? (most) : (row) * (most) <= 2 * (bytes) ? (most) / 2 : (most) / 4)
/* A place that may lie behind the end of the array, where no pointer may. */
#define TIGA_PREFETCH_AT(array, index) \
    TIGA_PREFETCH((const void *)((uintptr_t)(array) + (uintptr_t)(index) * sizeof *(array)))
/* Long loops are run in pieces of so many steps, `width` elements each. */
#if defined(TIGA_SHORT_PIECES)
#define TIGA_AT_MOST(steps) ((void)(steps), 1)
#else
#define TIGA_AT_MOST(steps) (steps)
#endif
#define TIGA_STEPS(work) ((int64_t)(1048576.0 / (16.0 + (work))) + 1)
#define TIGA_PIECE(i, end, width, steps) \
    ((end) - (i) > (width) * TIGA_AT_MOST(steps) ? (i) + (width) * TIGA_AT_MOST(steps) : (end))
#if defined(__GNUC__)
#define TIGA_RARELY(condition) __builtin_expect(condition, 0)
static __attribute__((noinline, cold))
#else
#define TIGA_RARELY(condition) (condition)
static
#endif
/* Between two pieces: -1 when the caller does not want the result any more, else where the next one ends. */
int64_t tiga_ask(const tiga_launch_args *args, int64_t at, int64_t end, int64_t steps) {
    if (args->give_up && args->give_up(args->user)) return -1;
    return TIGA_PIECE(at, end, 1, steps);
}

TIGA_FN float tiga_collapse_sum_f32(const float *partials) {
    float p[8];
    for (int i = 0; i < 8; ++i) p[i] = partials[i] + partials[i + 8];
    for (int n = 4; n > 0; n /= 2) {
        for (int i = 0; i < n; ++i) p[i] = p[i] + p[i + n];
    }
    return p[0];
}
/* Vectors: a value of 16 floats is one, two or four registers, as the target has them. */
#if defined(TIGA_NO_VECTORS) || !defined(__GNUC__)
#define TIGA_VECTOR_BYTES 0
#define TIGA_VECTOR_FN static inline
#define TIGA_PART(name, element, bytes) typedef element tiga_##name##_part, tiga_##name##_mem;
#define TIGA_BLEND(part, mask_part, m, a, b) ((m) ? (a) : (b))
#define TIGA_NOT(m) (!(m))
#define TIGA_ABS(part, mask_part, a) ((part)(sizeof(part) == 4 ? fabsf((float)(a)) : fabs((double)(a))))
#else
#if defined(__AVX512F__)
#define TIGA_VECTOR_BYTES 64
#elif defined(__AVX__)
#define TIGA_VECTOR_BYTES 32
#else
#define TIGA_VECTOR_BYTES 16
#endif
#define TIGA_VECTOR_FN static inline __attribute__((always_inline))
#define TIGA_PART(name, element, bytes) \
    typedef element tiga_##name##_part __attribute__((vector_size(bytes))); \
    typedef element tiga_##name##_mem __attribute__((vector_size(bytes), aligned(sizeof(element)), may_alias));
#define TIGA_BLEND(part, mask_part, m, a, b) ((part)(((m) & (mask_part)(a)) | (~(m) & (mask_part)(b))))
#define TIGA_NOT(m) (~(m))
#define TIGA_ABS(part, mask_part, a) ((part)((mask_part)(a) & ~(mask_part)(-(part){0})))
#endif
#if TIGA_VECTOR_BYTES != 0 && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TIGA_SHUFFLE 1
#endif
#endif
#if !defined(TIGA_SHUFFLE)
#define TIGA_SHUFFLE 0
#endif
#if defined(__clang__) /* what fits a register is one: no structure, and macros for functions */
#define TIGA_WHOLE_BYTES TIGA_VECTOR_BYTES
#else
#define TIGA_WHOLE_BYTES 0
#endif
#define TIGA_EACH_1(X) X(0)
#define TIGA_EACH_2(X) X(0) X(1)
#define TIGA_EACH_4(X) X(0) X(1) X(2) X(3)
#define TIGA_EACH_8(X) TIGA_EACH_4(X) X(4) X(5) X(6) X(7)
#define TIGA_EACH_16(X) TIGA_EACH_8(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

#if TIGA_VECTOR_BYTES == 64
TIGA_PART(f32x16, float, 64)
#define TIGA_EACH_f32x16 TIGA_EACH_1
#elif TIGA_VECTOR_BYTES == 32
TIGA_PART(f32x16, float, 32)
#define TIGA_EACH_f32x16 TIGA_EACH_2
#elif TIGA_VECTOR_BYTES == 16
TIGA_PART(f32x16, float, 16)
#define TIGA_EACH_f32x16 TIGA_EACH_4
#else
TIGA_PART(f32x16, float, 64)
#define TIGA_EACH_f32x16 TIGA_EACH_16
#endif
#if TIGA_WHOLE_BYTES >= 64
typedef tiga_f32x16_part tiga_f32x16;
#else
typedef struct tiga_f32x16 {
    tiga_f32x16_part p[16 * sizeof(float) / sizeof(tiga_f32x16_part)];
} tiga_f32x16;
#endif
#if TIGA_WHOLE_BYTES >= 64
#define tiga_load_f32x16(from) (*(const tiga_f32x16_mem *)(const void *)(from))
#else
#define X(i) r.p[i] = ((const tiga_f32x16_mem *)(const void *)from)[i];
TIGA_VECTOR_FN tiga_f32x16 tiga_load_f32x16(const float *from) {
    tiga_f32x16 r;
    TIGA_EACH_f32x16(X)
    return r;
}
#undef X
#endif
#if TIGA_WHOLE_BYTES >= 64
#define tiga_store_f32x16(to, v) ((void)(*(tiga_f32x16_mem *)(void *)(to) = (v)))
#else
#define X(i) ((tiga_f32x16_mem *)(void *)to)[i] = v.p[i];
TIGA_VECTOR_FN void tiga_store_f32x16(float *to, tiga_f32x16 v) {
    TIGA_EACH_f32x16(X)
}
#undef X
#endif
#if TIGA_WHOLE_BYTES >= 64
typedef float tiga_f32x16_all __attribute__((ext_vector_type(16)));
#define tiga_splat_f32x16(a) ((tiga_f32x16)(tiga_f32x16_all)(float)(a))
#else
#define X(i) r.p[i] = a - zero;
TIGA_VECTOR_FN tiga_f32x16 tiga_splat_f32x16(float a) {
    const tiga_f32x16_part zero = {0};
    tiga_f32x16 r;
    TIGA_EACH_f32x16(X)
    return r;
}
#undef X
#endif
TIGA_VECTOR_FN tiga_f32x16 tiga_gather32_f32x16(const float *from, const int32_t *rows, int64_t stride) {
    float t[16];
    for (int i = 0; i < 16; ++i) t[i] = from[rows[i] * stride];
    return tiga_load_f32x16(t);
}
TIGA_VECTOR_FN tiga_f32x16 tiga_gather64_f32x16(const float *from, const int64_t *rows, int64_t stride) {
    float t[16];
    for (int i = 0; i < 16; ++i) t[i] = from[rows[i] * stride];
    return tiga_load_f32x16(t);
}
#if TIGA_WHOLE_BYTES >= 64
#define tiga_add_f32x16(a, b) (a) + (b)
#else
#define X(i) r.p[i] = a.p[i] + b.p[i];
TIGA_VECTOR_FN tiga_f32x16 tiga_add_f32x16(tiga_f32x16 a, tiga_f32x16 b) {
    tiga_f32x16 r;
    TIGA_EACH_f32x16(X)
    return r;
}
#undef X
#endif
#if TIGA_WHOLE_BYTES >= 64
#define tiga_sub_f32x16(a, b) (a) - (b)
#else
#define X(i) r.p[i] = a.p[i] - b.p[i];
TIGA_VECTOR_FN tiga_f32x16 tiga_sub_f32x16(tiga_f32x16 a, tiga_f32x16 b) {
    tiga_f32x16 r;
    TIGA_EACH_f32x16(X)
    return r;
}
#undef X
#endif
#if TIGA_WHOLE_BYTES >= 64
#define tiga_mul_f32x16(a, b) (a) * (b)
#else
#define X(i) r.p[i] = a.p[i] * b.p[i];
TIGA_VECTOR_FN tiga_f32x16 tiga_mul_f32x16(tiga_f32x16 a, tiga_f32x16 b) {
    tiga_f32x16 r;
    TIGA_EACH_f32x16(X)
    return r;
}
#undef X
#endif
#if TIGA_WHOLE_BYTES >= 64
#define tiga_div_f32x16(a, b) (a) / (b)
#else
#define X(i) r.p[i] = a.p[i] / b.p[i];
TIGA_VECTOR_FN tiga_f32x16 tiga_div_f32x16(tiga_f32x16 a, tiga_f32x16 b) {
    tiga_f32x16 r;
    TIGA_EACH_f32x16(X)
    return r;
}
#undef X
#endif
#if TIGA_WHOLE_BYTES >= 64 /* registers of that size, whatever the processor prefers */
#pragma clang attribute push(__attribute__((min_vector_width(512))), apply_to = function)
#endif

/* weighted_sum, made by the compiler */
static void weighted_sum_rows32(const tiga_launch_args *args, int64_t row_begin, int64_t row_end) {
    const int64_t F = args->dims[0];
    const int64_t *TIGA_RESTRICT offsets = args->graph.offsets;
    const int32_t *TIGA_RESTRICT sources = (const int32_t *)args->graph.sources;
    const float *TIGA_RESTRICT x = (const float *)args->buffers[0];
    const float *TIGA_RESTRICT w = (const float *)args->buffers[1];
    const float *TIGA_RESTRICT bias = (const float *)args->buffers[2];
    float *TIGA_RESTRICT out = (float *)args->buffers[3];
    const int64_t edge_end = offsets[row_end];
    int64_t ask_at = edge_end;
    for (int64_t i = row_begin; i < row_end; ++i) {
        TIGA_PREFETCH_AT(bias, (i + 16) * F);
        TIGA_PREFETCH_AT(out, (i + 16) * F);
        {
            int64_t k0 = 0;
            for (; k0 + 64 <= F; k0 += 64) {
                tiga_f32x16 sum_0 = tiga_splat_f32x16(0.0f);
                tiga_f32x16 sum_16 = tiga_splat_f32x16(0.0f);
                tiga_f32x16 sum_32 = tiga_splat_f32x16(0.0f);
                tiga_f32x16 sum_48 = tiga_splat_f32x16(0.0f);
                if (TIGA_RARELY(offsets[i + 1] - offsets[i] > TIGA_AT_MOST(8192)))
                    ask_at = offsets[i] + TIGA_AT_MOST(8192);
                TIGA_NO_UNROLL
                for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
                    if ((e & 7) == 0) {
                        TIGA_PREFETCH_AT(sources, e + 256);
                        TIGA_PREFETCH_AT(w, e + 256);
                    }
                    if (e + 8 < ask_at) {
                        const int64_t ahead = sources[e + 8];
                        TIGA_PREFETCH(&x[ahead * F + k0]);
                        TIGA_PREFETCH(&x[ahead * F + k0 + 16]);
                        TIGA_PREFETCH(&x[ahead * F + k0 + 32]);
                        TIGA_PREFETCH(&x[ahead * F + k0 + 48]);
                    }
                    else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, 8192)) < 0)
                        return;
                    const int64_t j = sources[e];
                    const float w_e = w[e];
                    sum_0 = tiga_add_f32x16(sum_0, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0])));
                    sum_16 = tiga_add_f32x16(sum_16, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0 + 16])));
                    sum_32 = tiga_add_f32x16(sum_32, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0 + 32])));
                    sum_48 = tiga_add_f32x16(sum_48, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0 + 48])));
                }
                tiga_store_f32x16(&out[i * F + k0], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0]), sum_0));
                tiga_store_f32x16(&out[i * F + k0 + 16], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0 + 16]), sum_16));
                tiga_store_f32x16(&out[i * F + k0 + 32], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0 + 32]), sum_32));
                tiga_store_f32x16(&out[i * F + k0 + 48], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0 + 48]), sum_48));
            }
            if (k0 + 32 <= F) {
                tiga_f32x16 sum_0 = tiga_splat_f32x16(0.0f);
                tiga_f32x16 sum_16 = tiga_splat_f32x16(0.0f);
                if (TIGA_RARELY(offsets[i + 1] - offsets[i] > TIGA_AT_MOST(16384)))
                    ask_at = offsets[i] + TIGA_AT_MOST(16384);
                TIGA_NO_UNROLL
                for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
                    if ((e & 7) == 0) {
                        TIGA_PREFETCH_AT(sources, e + 256);
                        TIGA_PREFETCH_AT(w, e + 256);
                    }
                    if (e + 8 < ask_at) {
                        const int64_t ahead = sources[e + 8];
                        TIGA_PREFETCH(&x[ahead * F + k0]);
                        TIGA_PREFETCH(&x[ahead * F + k0 + 16]);
                    }
                    else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, 16384)) < 0)
                        return;
                    const int64_t j = sources[e];
                    const float w_e = w[e];
                    sum_0 = tiga_add_f32x16(sum_0, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0])));
                    sum_16 = tiga_add_f32x16(sum_16, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0 + 16])));
                }
                tiga_store_f32x16(&out[i * F + k0], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0]), sum_0));
                tiga_store_f32x16(&out[i * F + k0 + 16], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0 + 16]), sum_16));
                k0 += 32;
            }
            if (k0 + 16 <= F) {
                tiga_f32x16 sum = tiga_splat_f32x16(0.0f);
                if (TIGA_RARELY(offsets[i + 1] - offsets[i] > TIGA_AT_MOST(32768)))
                    ask_at = offsets[i] + TIGA_AT_MOST(32768);
                TIGA_NO_UNROLL
                for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
                    if ((e & 7) == 0) {
                        TIGA_PREFETCH_AT(sources, e + 256);
                        TIGA_PREFETCH_AT(w, e + 256);
                    }
                    if (e + 8 < ask_at) {
                        const int64_t ahead = sources[e + 8];
                        TIGA_PREFETCH(&x[ahead * F + k0]);
                    }
                    else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, 32768)) < 0)
                        return;
                    const int64_t j = sources[e];
                    const float w_e = w[e];
                    sum = tiga_add_f32x16(sum, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0])));
                }
                tiga_store_f32x16(&out[i * F + k0], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0]), sum));
                k0 += 16;
            }
            if (k0 < F) {
                const int64_t width = F - k0;
                float sum[16];
                TIGA_SHORT_LOOP
                for (int64_t l = 0; l < width; ++l) {
                    sum[l] = 0.0f;
                }
                if (TIGA_RARELY(offsets[i + 1] - offsets[i] > TIGA_AT_MOST(8192)))
                    ask_at = offsets[i] + TIGA_AT_MOST(8192);
                TIGA_NO_UNROLL
                for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
                    if ((e & 7) == 0) {
                        TIGA_PREFETCH_AT(sources, e + 256);
                        TIGA_PREFETCH_AT(w, e + 256);
                    }
                    if (e + 8 < ask_at) {
                        const int64_t ahead = sources[e + 8];
                        TIGA_PREFETCH(&x[ahead * F + k0]);
                    }
                    else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, 8192)) < 0)
                        return;
                    const int64_t j = sources[e];
                    const float w_e = w[e];
                    TIGA_SHORT_LOOP
                    for (int64_t l = 0; l < width; ++l) {
                        sum[l] = sum[l] + (w_e * x[j * F + k0 + l]);
                    }
                }
                TIGA_SHORT_LOOP
                for (int64_t l = 0; l < width; ++l) {
                    out[i * F + k0 + l] = bias[i * F + k0 + l] + sum[l];
                }
            }
        }
    }
}

static void weighted_sum_rows64(const tiga_launch_args *args, int64_t row_begin, int64_t row_end) {
    const int64_t F = args->dims[0];
    const int64_t *TIGA_RESTRICT offsets = args->graph.offsets;
    const int64_t *TIGA_RESTRICT sources = (const int64_t *)args->graph.sources;
    const float *TIGA_RESTRICT x = (const float *)args->buffers[0];
    const float *TIGA_RESTRICT w = (const float *)args->buffers[1];
    const float *TIGA_RESTRICT bias = (const float *)args->buffers[2];
    float *TIGA_RESTRICT out = (float *)args->buffers[3];
    const int64_t edge_end = offsets[row_end];
    int64_t ask_at = edge_end;
    for (int64_t i = row_begin; i < row_end; ++i) {
        TIGA_PREFETCH_AT(bias, (i + 16) * F);
        TIGA_PREFETCH_AT(out, (i + 16) * F);
        {
            int64_t k0 = 0;
            for (; k0 + 64 <= F; k0 += 64) {
                tiga_f32x16 sum_0 = tiga_splat_f32x16(0.0f);
                tiga_f32x16 sum_16 = tiga_splat_f32x16(0.0f);
                tiga_f32x16 sum_32 = tiga_splat_f32x16(0.0f);
                tiga_f32x16 sum_48 = tiga_splat_f32x16(0.0f);
                if (TIGA_RARELY(offsets[i + 1] - offsets[i] > TIGA_AT_MOST(8192)))
                    ask_at = offsets[i] + TIGA_AT_MOST(8192);
                TIGA_NO_UNROLL
                for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
                    if ((e & 7) == 0) {
                        TIGA_PREFETCH_AT(sources, e + 128);
                        TIGA_PREFETCH_AT(w, e + 256);
                    }
                    if (e + 8 < ask_at) {
                        const int64_t ahead = sources[e + 8];
                        TIGA_PREFETCH(&x[ahead * F + k0]);
                        TIGA_PREFETCH(&x[ahead * F + k0 + 16]);
                        TIGA_PREFETCH(&x[ahead * F + k0 + 32]);
                        TIGA_PREFETCH(&x[ahead * F + k0 + 48]);
                    }
                    else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, 8192)) < 0)
                        return;
                    const int64_t j = sources[e];
                    const float w_e = w[e];
                    sum_0 = tiga_add_f32x16(sum_0, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0])));
                    sum_16 = tiga_add_f32x16(sum_16, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0 + 16])));
                    sum_32 = tiga_add_f32x16(sum_32, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0 + 32])));
                    sum_48 = tiga_add_f32x16(sum_48, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0 + 48])));
                }
                tiga_store_f32x16(&out[i * F + k0], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0]), sum_0));
                tiga_store_f32x16(&out[i * F + k0 + 16], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0 + 16]), sum_16));
                tiga_store_f32x16(&out[i * F + k0 + 32], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0 + 32]), sum_32));
                tiga_store_f32x16(&out[i * F + k0 + 48], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0 + 48]), sum_48));
            }
            if (k0 + 32 <= F) {
                tiga_f32x16 sum_0 = tiga_splat_f32x16(0.0f);
                tiga_f32x16 sum_16 = tiga_splat_f32x16(0.0f);
                if (TIGA_RARELY(offsets[i + 1] - offsets[i] > TIGA_AT_MOST(16384)))
                    ask_at = offsets[i] + TIGA_AT_MOST(16384);
                TIGA_NO_UNROLL
                for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
                    if ((e & 7) == 0) {
                        TIGA_PREFETCH_AT(sources, e + 128);
                        TIGA_PREFETCH_AT(w, e + 256);
                    }
                    if (e + 8 < ask_at) {
                        const int64_t ahead = sources[e + 8];
                        TIGA_PREFETCH(&x[ahead * F + k0]);
                        TIGA_PREFETCH(&x[ahead * F + k0 + 16]);
                    }
                    else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, 16384)) < 0)
                        return;
                    const int64_t j = sources[e];
                    const float w_e = w[e];
                    sum_0 = tiga_add_f32x16(sum_0, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0])));
                    sum_16 = tiga_add_f32x16(sum_16, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0 + 16])));
                }
                tiga_store_f32x16(&out[i * F + k0], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0]), sum_0));
                tiga_store_f32x16(&out[i * F + k0 + 16], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0 + 16]), sum_16));
                k0 += 32;
            }
            if (k0 + 16 <= F) {
                tiga_f32x16 sum = tiga_splat_f32x16(0.0f);
                if (TIGA_RARELY(offsets[i + 1] - offsets[i] > TIGA_AT_MOST(32768)))
                    ask_at = offsets[i] + TIGA_AT_MOST(32768);
                TIGA_NO_UNROLL
                for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
                    if ((e & 7) == 0) {
                        TIGA_PREFETCH_AT(sources, e + 128);
                        TIGA_PREFETCH_AT(w, e + 256);
                    }
                    if (e + 8 < ask_at) {
                        const int64_t ahead = sources[e + 8];
                        TIGA_PREFETCH(&x[ahead * F + k0]);
                    }
                    else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, 32768)) < 0)
                        return;
                    const int64_t j = sources[e];
                    const float w_e = w[e];
                    sum = tiga_add_f32x16(sum, tiga_mul_f32x16(tiga_splat_f32x16(w_e), tiga_load_f32x16(&x[j * F + k0])));
                }
                tiga_store_f32x16(&out[i * F + k0], tiga_add_f32x16(tiga_load_f32x16(&bias[i * F + k0]), sum));
                k0 += 16;
            }
            if (k0 < F) {
                const int64_t width = F - k0;
                float sum[16];
                TIGA_SHORT_LOOP
                for (int64_t l = 0; l < width; ++l) {
                    sum[l] = 0.0f;
                }
                if (TIGA_RARELY(offsets[i + 1] - offsets[i] > TIGA_AT_MOST(8192)))
                    ask_at = offsets[i] + TIGA_AT_MOST(8192);
                TIGA_NO_UNROLL
                for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
                    if ((e & 7) == 0) {
                        TIGA_PREFETCH_AT(sources, e + 128);
                        TIGA_PREFETCH_AT(w, e + 256);
                    }
                    if (e + 8 < ask_at) {
                        const int64_t ahead = sources[e + 8];
                        TIGA_PREFETCH(&x[ahead * F + k0]);
                    }
                    else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, 8192)) < 0)
                        return;
                    const int64_t j = sources[e];
                    const float w_e = w[e];
                    TIGA_SHORT_LOOP
                    for (int64_t l = 0; l < width; ++l) {
                        sum[l] = sum[l] + (w_e * x[j * F + k0 + l]);
                    }
                }
                TIGA_SHORT_LOOP
                for (int64_t l = 0; l < width; ++l) {
                    out[i * F + k0 + l] = bias[i * F + k0 + l] + sum[l];
                }
            }
        }
    }
}

/* smooth, made by the compiler */
static void smooth_rows32(const tiga_launch_args *args, int64_t row_begin, int64_t row_end) {
    const int64_t *TIGA_RESTRICT offsets = args->graph.offsets;
    const int32_t *TIGA_RESTRICT sources = (const int32_t *)args->graph.sources;
    const float *TIGA_RESTRICT u = (const float *)args->buffers[0];
    const float *TIGA_RESTRICT dt = (const float *)args->buffers[1];
    float *TIGA_RESTRICT out = (float *)args->buffers[2];
    const float dt_value = dt[0];
    for (int64_t i = row_begin; i < row_end; ++i) {
        float sum_parts[16] = {0.0f};
        const float u_i = u[i];
        {
            int64_t e = offsets[i];
            const int64_t e_end = offsets[i + 1];
            if (e + 16 <= e_end) {
                tiga_f32x16 sum = tiga_load_f32x16(&sum_parts[0]);
                for (; e + 16 <= e_end; e += 16) {
                    sum = tiga_add_f32x16(sum, tiga_sub_f32x16(tiga_gather32_f32x16(&u[0], sources + e, 1), tiga_splat_f32x16(u_i)));
                }
                tiga_store_f32x16(&sum_parts[0], sum);
            }
            TIGA_SHORT_LOOP
            for (int64_t n = 0; e < e_end; ++e, ++n) {
                const int64_t j = sources[e];
                sum_parts[n & 15] = sum_parts[n & 15] + (u[j] - u_i);
            }
        }
        const float sum = tiga_collapse_sum_f32(sum_parts);
        out[i] = u_i + (dt_value * sum);
    }
}

static void smooth_rows64(const tiga_launch_args *args, int64_t row_begin, int64_t row_end) {
    const int64_t *TIGA_RESTRICT offsets = args->graph.offsets;
    const int64_t *TIGA_RESTRICT sources = (const int64_t *)args->graph.sources;
    const float *TIGA_RESTRICT u = (const float *)args->buffers[0];
    const float *TIGA_RESTRICT dt = (const float *)args->buffers[1];
    float *TIGA_RESTRICT out = (float *)args->buffers[2];
    const float dt_value = dt[0];
    for (int64_t i = row_begin; i < row_end; ++i) {
        float sum_parts[16] = {0.0f};
        const float u_i = u[i];
        {
            int64_t e = offsets[i];
            const int64_t e_end = offsets[i + 1];
            if (e + 16 <= e_end) {
                tiga_f32x16 sum = tiga_load_f32x16(&sum_parts[0]);
                for (; e + 16 <= e_end; e += 16) {
                    sum = tiga_add_f32x16(sum, tiga_sub_f32x16(tiga_gather64_f32x16(&u[0], sources + e, 1), tiga_splat_f32x16(u_i)));
                }
                tiga_store_f32x16(&sum_parts[0], sum);
            }
            TIGA_SHORT_LOOP
            for (int64_t n = 0; e < e_end; ++e, ++n) {
                const int64_t j = sources[e];
                sum_parts[n & 15] = sum_parts[n & 15] + (u[j] - u_i);
            }
        }
        const float sum = tiga_collapse_sum_f32(sum_parts);
        out[i] = u_i + (dt_value * sum);
    }
}

/* spread, made by the compiler */
static void spread_rows32(const tiga_launch_args *args, int64_t row_begin, int64_t row_end) {
    const int64_t F = args->dims[0];
    const int64_t *TIGA_RESTRICT offsets = args->graph.offsets;
    const int32_t *TIGA_RESTRICT sources = (const int32_t *)args->graph.sources;
    const float *TIGA_RESTRICT x = (const float *)args->buffers[0];
    const float *TIGA_RESTRICT y = (const float *)args->buffers[1];
    float *TIGA_RESTRICT near = (float *)args->buffers[2];
    float *TIGA_RESTRICT score = (float *)args->buffers[3];
    const int64_t edge_end = offsets[row_end];
    char *const scratch = (char *)args->scratch;
    const int64_t scratch_0 = 0;
    const int64_t tiga_steps_0 = TIGA_STEPS((10 + (((double)F) * (0.125) + 1) * (10) + (((double)F) * (0.125) + 1) * (8)) * (1));
    int64_t ask_at = TIGA_PIECE(offsets[row_begin], edge_end, 1, tiga_steps_0);
    for (int64_t i = row_begin; i < row_end; ++i) {
        TIGA_PREFETCH_AT(y, (i + 4) * F);
        TIGA_PREFETCH_AT(near, (i + 4) * F);
        float *const sum = (float *)(void *)(scratch + scratch_0);
        {
            int64_t k = 0;
            for (; k + 16 <= F; k += 16) {
                tiga_store_f32x16(&sum[k], tiga_splat_f32x16(0.0f));
            }
            for (; k < F; ++k) {
                sum[k] = 0.0f;
            }
        }
        TIGA_NO_UNROLL
        for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
            if ((e & 7) == 0) {
                TIGA_PREFETCH_AT(sources, e + 256);
                TIGA_PREFETCH_AT(score, e + 256);
            }
            if (e + 8 < ask_at) {
                const int64_t ahead = sources[e + 8];
                for (int64_t k = 0; k < F; k += 16) TIGA_PREFETCH(&x[ahead * F + k]);
            }
            else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, tiga_steps_0)) < 0)
                return;
            const int64_t j = sources[e];
            float sum_parts[16] = {0.0f};
            float sum_parts_[16] = {0.0f};
            {
                int64_t k = 0;
                tiga_f32x16 sum_ = tiga_load_f32x16(&sum_parts[0]);
                tiga_f32x16 sum2 = tiga_load_f32x16(&sum_parts_[0]);
                for (; k + 16 <= F; k += 16) {
                    const tiga_f32x16 y_i = tiga_load_f32x16(&y[i * F + k]);
                    const tiga_f32x16 x_j = tiga_load_f32x16(&x[j * F + k]);
                    const tiga_f32x16 t22 = tiga_sub_f32x16(x_j, y_i);
                    sum_ = tiga_add_f32x16(sum_, tiga_mul_f32x16(t22, t22));
                    sum2 = tiga_add_f32x16(sum2, tiga_mul_f32x16(x_j, y_i));
                }
                tiga_store_f32x16(&sum_parts[0], sum_);
                tiga_store_f32x16(&sum_parts_[0], sum2);
                for (; k < F; ++k) {
                    const float y_i = y[i * F + k];
                    const float x_j = x[j * F + k];
                    const float t22 = x_j - y_i;
                    sum_parts[k & 15] = sum_parts[k & 15] + (t22 * t22);
                    sum_parts_[k & 15] = sum_parts_[k & 15] + (x_j * y_i);
                }
            }
            const float sum_ = tiga_collapse_sum_f32(sum_parts);
            const float t28 = 1.0f + sum_;
            {
                int64_t k = 0;
                for (; k + 16 <= F; k += 16) {
                    tiga_store_f32x16(&sum[k], tiga_add_f32x16(tiga_load_f32x16(&sum[k]), tiga_div_f32x16(tiga_load_f32x16(&x[j * F + k]), tiga_splat_f32x16(t28))));
                }
                for (; k < F; ++k) {
                    sum[k] = sum[k] + (x[j * F + k] / t28);
                }
            }
            const float sum2 = tiga_collapse_sum_f32(sum_parts_);
            score[e] = sum2;
        }
        {
            int64_t k = 0;
            for (; k + 16 <= F; k += 16) {
                tiga_store_f32x16(&near[i * F + k], tiga_load_f32x16(&sum[k]));
            }
            for (; k < F; ++k) {
                near[i * F + k] = sum[k];
            }
        }
    }
}

static int64_t spread_scratch_bytes(const int64_t *dims) {
    return (dims[0] * 4 + 63) / 64 * 64;
}

static void spread_rows64(const tiga_launch_args *args, int64_t row_begin, int64_t row_end) {
    const int64_t F = args->dims[0];
    const int64_t *TIGA_RESTRICT offsets = args->graph.offsets;
    const int64_t *TIGA_RESTRICT sources = (const int64_t *)args->graph.sources;
    const float *TIGA_RESTRICT x = (const float *)args->buffers[0];
    const float *TIGA_RESTRICT y = (const float *)args->buffers[1];
    float *TIGA_RESTRICT near = (float *)args->buffers[2];
    float *TIGA_RESTRICT score = (float *)args->buffers[3];
    const int64_t edge_end = offsets[row_end];
    char *const scratch = (char *)args->scratch;
    const int64_t scratch_0 = 0;
    const int64_t tiga_steps_0 = TIGA_STEPS((10 + (((double)F) * (0.125) + 1) * (10) + (((double)F) * (0.125) + 1) * (8)) * (1));
    int64_t ask_at = TIGA_PIECE(offsets[row_begin], edge_end, 1, tiga_steps_0);
    for (int64_t i = row_begin; i < row_end; ++i) {
        TIGA_PREFETCH_AT(y, (i + 4) * F);
        TIGA_PREFETCH_AT(near, (i + 4) * F);
        float *const sum = (float *)(void *)(scratch + scratch_0);
        {
            int64_t k = 0;
            for (; k + 16 <= F; k += 16) {
                tiga_store_f32x16(&sum[k], tiga_splat_f32x16(0.0f));
            }
            for (; k < F; ++k) {
                sum[k] = 0.0f;
            }
        }
        TIGA_NO_UNROLL
        for (int64_t e = offsets[i], e_end = offsets[i + 1]; e < e_end; ++e) {
            if ((e & 7) == 0) {
                TIGA_PREFETCH_AT(sources, e + 128);
                TIGA_PREFETCH_AT(score, e + 256);
            }
            if (e + 8 < ask_at) {
                const int64_t ahead = sources[e + 8];
                for (int64_t k = 0; k < F; k += 16) TIGA_PREFETCH(&x[ahead * F + k]);
            }
            else if (TIGA_RARELY(ask_at < edge_end) && (ask_at = tiga_ask(args, e + 8, edge_end, tiga_steps_0)) < 0)
                return;
            const int64_t j = sources[e];
            float sum_parts[16] = {0.0f};
            float sum_parts_[16] = {0.0f};
            {
                int64_t k = 0;
                tiga_f32x16 sum_ = tiga_load_f32x16(&sum_parts[0]);
                tiga_f32x16 sum2 = tiga_load_f32x16(&sum_parts_[0]);
                for (; k + 16 <= F; k += 16) {
                    const tiga_f32x16 y_i = tiga_load_f32x16(&y[i * F + k]);
                    const tiga_f32x16 x_j = tiga_load_f32x16(&x[j * F + k]);
                    const tiga_f32x16 t22 = tiga_sub_f32x16(x_j, y_i);
                    sum_ = tiga_add_f32x16(sum_, tiga_mul_f32x16(t22, t22));
                    sum2 = tiga_add_f32x16(sum2, tiga_mul_f32x16(x_j, y_i));
                }
                tiga_store_f32x16(&sum_parts[0], sum_);
                tiga_store_f32x16(&sum_parts_[0], sum2);
                for (; k < F; ++k) {
                    const float y_i = y[i * F + k];
                    const float x_j = x[j * F + k];
                    const float t22 = x_j - y_i;
                    sum_parts[k & 15] = sum_parts[k & 15] + (t22 * t22);
                    sum_parts_[k & 15] = sum_parts_[k & 15] + (x_j * y_i);
                }
            }
            const float sum_ = tiga_collapse_sum_f32(sum_parts);
            const float t28 = 1.0f + sum_;
            {
                int64_t k = 0;
                for (; k + 16 <= F; k += 16) {
                    tiga_store_f32x16(&sum[k], tiga_add_f32x16(tiga_load_f32x16(&sum[k]), tiga_div_f32x16(tiga_load_f32x16(&x[j * F + k]), tiga_splat_f32x16(t28))));
                }
                for (; k < F; ++k) {
                    sum[k] = sum[k] + (x[j * F + k] / t28);
                }
            }
            const float sum2 = tiga_collapse_sum_f32(sum_parts_);
            score[e] = sum2;
        }
        {
            int64_t k = 0;
            for (; k + 16 <= F; k += 16) {
                tiga_store_f32x16(&near[i * F + k], tiga_load_f32x16(&sum[k]));
            }
            for (; k < F; ++k) {
                near[i * F + k] = sum[k];
            }
        }
    }
}

/* name, 32-bit sources, 64-bit sources, scratch, rows a unit, walks edges, buffers, outputs, dimensions, numbers */
static const tiga_kernel_code tiga_kernels[] = {
    {"weighted_sum", weighted_sum_rows32, weighted_sum_rows64, NULL, 1, 1, 1, 4, 1, 1, NULL},
    {"smooth", smooth_rows32, smooth_rows64, NULL, 1, 1, 1, 3, 1, 0, NULL},
    {"spread", spread_rows32, spread_rows64, spread_scratch_bytes, 1, 1, 1, 4, 2, 1, NULL},
};

/* Schedules: steps on instances i[] and numbers n[], which they name by their places.  The runtime checks
 * each step, and the first that fails ends the call.  A launch is a list: kernel, graph (-1: none), place
 * of the number of rows, how many instances, how many sizes, their places. */
enum {
    TIGA_DO_BIND_PARAM,
    TIGA_DO_BIND_RESULT,
    TIGA_DO_ALLOC,
    TIGA_DO_READ,
    TIGA_DO_WRITE,
    TIGA_DO_LAUNCH,
    TIGA_DO_DONE,
    TIGA_DO_RELEASE,
    TIGA_DO_COPY,
    TIGA_DO_READ_I64,
    TIGA_DO_USE,
    TIGA_DO_SET,
    TIGA_DO_COUNT,
    TIGA_DO_GO,
    TIGA_DO_GO_FROM,
    TIGA_DO_END,
};
typedef struct tiga_step {
    int32_t code, a, b, c;
} tiga_step;
typedef struct tiga_buffer {
    const char *name;
    int64_t version;
    int32_t tier;
} tiga_buffer;

TIGA_HOST_FN int32_t tiga_follow(const tiga_host *host, void *frame, const tiga_step *steps, const int32_t *launches,
                                 const tiga_buffer *buffers, tiga_instance **i, int64_t *n) {
    int32_t status = 0;
    const int32_t *l;
    tiga_instance *list[5] = {NULL};
    int64_t sizes[2] = {0};
    for (const tiga_step *s = steps; status == 0; ++s) {
        switch (s->code) {
        case TIGA_DO_BIND_PARAM:
            status = host->bind_param(frame, s->b, &i[s->a]);
            break;
        case TIGA_DO_BIND_RESULT:
            status = host->bind_result(frame, s->b, &i[s->a]);
            break;
        case TIGA_DO_ALLOC:
            status = host->alloc(frame, buffers[s->c].name, buffers[s->c].version, buffers[s->c].tier, n[s->b], &i[s->a]);
            break;
        case TIGA_DO_READ:
            status = host->acquire(frame, i[s->a], 0);
            break;
        case TIGA_DO_WRITE:
            status = host->acquire(frame, i[s->a], 1);
            break;
        case TIGA_DO_LAUNCH:
            l = launches + s->a;
            for (int32_t k = 0; k < l[3]; ++k) {
                list[k] = i[l[5 + k]];
            }
            for (int32_t k = 0; k < l[4]; ++k) {
                sizes[k] = n[l[5 + l[3] + k]];
            }
            status = host->poll(frame);
            if (status == 0) {
                status = host->launch(frame, &tiga_kernels[l[0]], l[1], n[l[2]], list, sizes);
            }
            break;
        case TIGA_DO_DONE:
            status = host->done(frame, i[s->a]);
            break;
        case TIGA_DO_RELEASE:
            status = host->release(frame, i[s->a]);
            break;
        case TIGA_DO_COPY:
            status = host->copy(frame, i[s->b], i[s->a]);
            break;
        case TIGA_DO_READ_I64:
            status = host->read_i64(frame, i[s->b], &n[s->a]);
            break;
        case TIGA_DO_USE:
            i[s->a] = i[s->b];
            break;
        case TIGA_DO_SET:
            n[s->a] = n[s->b];
            break;
        case TIGA_DO_COUNT:
            n[s->a]++;
            break;
        case TIGA_DO_GO:
            s = steps + s->b;
            break;
        case TIGA_DO_GO_FROM:
            if (n[s->a] >= n[s->c]) s = steps + s->b;
            break;
        case TIGA_DO_END:
            return 0;
        }
    }
    (void)buffers;
    (void)i;
    (void)n;
    return status;
}

/* the schedule of weighted_sum */
static const int32_t weighted_sum_launches[] = {
    0, 0, 0, 4, 1, 0, 1, 2, 3, 1, /* weighted_sum: x w bias out */
};
static const tiga_step weighted_sum_steps[] = {
    {TIGA_DO_BIND_PARAM, 0, 0, 0}, /* 0: x */
    {TIGA_DO_BIND_PARAM, 1, 1, 0}, /* 1: w */
    {TIGA_DO_BIND_PARAM, 2, 2, 0}, /* 2: bias */
    {TIGA_DO_BIND_RESULT, 3, 0, 0}, /* 3: out */
    {TIGA_DO_READ, 0, 0, 0}, /* 4: x */
    {TIGA_DO_READ, 1, 0, 0}, /* 5: w */
    {TIGA_DO_READ, 2, 0, 0}, /* 6: bias */
    {TIGA_DO_WRITE, 3, 0, 0}, /* 7: out */
    {TIGA_DO_LAUNCH, 0, 0, 0}, /* 8: weighted_sum */
    {TIGA_DO_DONE, 0, 0, 0}, /* 9: x */
    {TIGA_DO_DONE, 1, 0, 0}, /* 10: w */
    {TIGA_DO_DONE, 2, 0, 0}, /* 11: bias */
    {TIGA_DO_DONE, 3, 0, 0}, /* 12: out */
    {TIGA_DO_END, 0, 0, 0}, /* 13 */
};
TIGA_HOST_FN int32_t weighted_sum_host(const tiga_host *host, void *frame, const int64_t *dims) {
    const int64_t F = dims[0];
    const int64_t n_dst = dims[1];
    tiga_instance *instances[4];
    int64_t numbers[] = {n_dst, F};
    return tiga_follow(host, frame, weighted_sum_steps, weighted_sum_launches, NULL, instances, numbers);
}

/* the schedule of smooth */
static const int32_t smooth_launches[] = {
    1, 0, 0, 3, 0, 0, 1, 2, /* smooth: u dt out */
};
static const tiga_step smooth_steps[] = {
    {TIGA_DO_BIND_PARAM, 0, 0, 0}, /* 0: u */
    {TIGA_DO_BIND_PARAM, 1, 1, 0}, /* 1: dt */
    {TIGA_DO_BIND_RESULT, 2, 0, 0}, /* 2: out */
    {TIGA_DO_READ, 0, 0, 0}, /* 3: u */
    {TIGA_DO_READ, 1, 0, 0}, /* 4: dt */
    {TIGA_DO_WRITE, 2, 0, 0}, /* 5: out */
    {TIGA_DO_LAUNCH, 0, 0, 0}, /* 6: smooth */
    {TIGA_DO_DONE, 0, 0, 0}, /* 7: u */
    {TIGA_DO_DONE, 1, 0, 0}, /* 8: dt */
    {TIGA_DO_DONE, 2, 0, 0}, /* 9: out */
    {TIGA_DO_END, 0, 0, 0}, /* 10 */
};
TIGA_HOST_FN int32_t smooth_host(const tiga_host *host, void *frame, const int64_t *dims) {
    const int64_t n_dst = dims[0];
    tiga_instance *instances[3];
    int64_t numbers[] = {n_dst};
    return tiga_follow(host, frame, smooth_steps, smooth_launches, NULL, instances, numbers);
}

/* the schedule of spread */
static const int32_t spread_launches[] = {
    2, 0, 0, 4, 1, 0, 1, 2, 3, 1, /* spread: x y near score */
};
static const tiga_step spread_steps[] = {
    {TIGA_DO_BIND_PARAM, 0, 0, 0}, /* 0: x */
    {TIGA_DO_BIND_PARAM, 1, 1, 0}, /* 1: y */
    {TIGA_DO_BIND_RESULT, 2, 0, 0}, /* 2: near */
    {TIGA_DO_BIND_RESULT, 3, 1, 0}, /* 3: score */
    {TIGA_DO_READ, 0, 0, 0}, /* 4: x */
    {TIGA_DO_READ, 1, 0, 0}, /* 5: y */
    {TIGA_DO_WRITE, 2, 0, 0}, /* 6: near */
    {TIGA_DO_WRITE, 3, 0, 0}, /* 7: score */
    {TIGA_DO_LAUNCH, 0, 0, 0}, /* 8: spread */
    {TIGA_DO_DONE, 0, 0, 0}, /* 9: x */
    {TIGA_DO_DONE, 1, 0, 0}, /* 10: y */
    {TIGA_DO_DONE, 2, 0, 0}, /* 11: near */
    {TIGA_DO_DONE, 3, 0, 0}, /* 12: score */
    {TIGA_DO_END, 0, 0, 0}, /* 13 */
};
TIGA_HOST_FN int32_t spread_host(const tiga_host *host, void *frame, const int64_t *dims) {
    const int64_t F = dims[0];
    const int64_t n_dst = dims[1];
    tiga_instance *instances[4];
    int64_t numbers[] = {n_dst, F};
    return tiga_follow(host, frame, spread_steps, spread_launches, NULL, instances, numbers);
}

/* the schedule of relax */
static const int32_t relax_launches[] = {
    1, 0, 4, 3, 0, 6, 2, 7, /* smooth: carried_0 dt carried_1 */
};
static const tiga_buffer relax_buffers[] = {
    {"relax.carried.1", 0, TIGA_TIER_HOST},
    {"relax.carried.1", 1, TIGA_TIER_HOST},
};
static const tiga_step relax_steps[] = {
    {TIGA_DO_BIND_PARAM, 0, 1, 0}, /* 0: u */
    {TIGA_DO_BIND_PARAM, 1, 2, 0}, /* 1: rounds */
    {TIGA_DO_BIND_PARAM, 2, 3, 0}, /* 2: dt */
    {TIGA_DO_BIND_RESULT, 3, 0, 0}, /* 3: out */
    {TIGA_DO_ALLOC, 4, 0, 0}, /* 4: relax_carried_1@0 */
    {TIGA_DO_ALLOC, 5, 0, 1}, /* 5: relax_carried_1@1 */
    {TIGA_DO_COPY, 4, 0, 0}, /* 6: relax_carried_1@0 from u */
    {TIGA_DO_READ, 1, 0, 0}, /* 7: rounds */
    {TIGA_DO_READ_I64, 1, 1, 0}, /* 8: rounds */
    {TIGA_DO_DONE, 1, 0, 0}, /* 9: rounds */
    {TIGA_DO_USE, 6, 4, 0}, /* 10: carried_0 is relax_carried_1@0 */
    {TIGA_DO_USE, 7, 5, 0}, /* 11: carried_1 is relax_carried_1@1 */
    {TIGA_DO_SET, 2, 3, 0}, /* 12: repeat rounds_value */
    {TIGA_DO_GO_FROM, 2, 26, 1}, /* 13: no further round */
    {TIGA_DO_READ, 6, 0, 0}, /* 14: carried_0 */
    {TIGA_DO_READ, 2, 0, 0}, /* 15: dt */
    {TIGA_DO_WRITE, 7, 0, 0}, /* 16: carried_1 */
    {TIGA_DO_LAUNCH, 0, 0, 0}, /* 17: smooth */
    {TIGA_DO_DONE, 6, 0, 0}, /* 18: carried_0 */
    {TIGA_DO_DONE, 2, 0, 0}, /* 19: dt */
    {TIGA_DO_DONE, 7, 0, 0}, /* 20: carried_1 */
    {TIGA_DO_USE, 8, 7, 0}, /* 21: next_0 is carried_1 */
    {TIGA_DO_USE, 9, 6, 0}, /* 22: next_1 is carried_0 */
    {TIGA_DO_USE, 6, 8, 0}, /* 23: carried_0 is next_0 */
    {TIGA_DO_USE, 7, 9, 0}, /* 24: carried_1 is next_1 */
    {TIGA_DO_COUNT, 2, 0, 0}, /* 25: next round */
    {TIGA_DO_GO, 0, 12, 0}, /* 26 */
    {TIGA_DO_RELEASE, 7, 0, 0}, /* 27: carried_1 */
    {TIGA_DO_COPY, 3, 6, 0}, /* 28: out from carried_0 */
    {TIGA_DO_RELEASE, 6, 0, 0}, /* 29: carried_0 */
    {TIGA_DO_END, 0, 0, 0}, /* 30 */
};
TIGA_HOST_FN int32_t relax_host(const tiga_host *host, void *frame, const int64_t *dims) {
    const int64_t g_dst = dims[0];
    const int64_t t7 = TIGA_SIZE_MUL(4, g_dst);
    tiga_instance *instances[10];
    int64_t numbers[] = {t7, 0, 0, 0, g_dst};
    return tiga_follow(host, frame, relax_steps, relax_launches, relax_buffers, instances, numbers);
}

static const char *const weighted_sum_dims[] = {
    "F",
    ".dst",
};
static const tiga_field_info weighted_sum_params[] = {
    {"x", TIGA_AT_SRC, TIGA_F32, 1, -1, {-1},
     "src x: f32[F]"},
    {"w", TIGA_AT_EDGE, TIGA_F32, 0, -1, {0},
     "edge w: f32"},
    {"bias", TIGA_AT_DST, TIGA_F32, 1, -1, {-1},
     "dst bias: f32[F]"},
};
static const tiga_field_info weighted_sum_results[] = {
    {"out", TIGA_AT_DST, TIGA_F32, 1, -1, {-1},
     "out: f32[F]"},
};
static const char weighted_sum_plan[] =
    "task @weighted_sum[F, .dst](src x: f32[F], edge w: f32, dst bias: f32[F]) -> (out: row f32[F]) e"
    "xported {\n"
    "  %1 = bind {kind = param, index = 0, name = x} : instance\n"
    "  %2 = bind {kind = param, index = 1, name = w} : instance\n"
    "  %3 = bind {kind = param, index = 2, name = bias} : instance\n"
    "  %4 = bind {kind = result, index = 0, name = out} : instance\n"
    "  %5 = dimsize {dim = F} : i64\n"
    "  %6 = dimsize {dim = .dst} : i64\n"
    "  pages {pages = 1} {\n"
    "    %8 = arg {index = 0} : i64\n"
    "    acquire %1 {mode = read}\n"
    "    acquire %2 {mode = read}\n"
    "    acquire %3 {mode = read}\n"
    "    acquire %4 {mode = write}\n"
    "    launch %1, %2, %3, %4, %6, %5 {callee = weighted_sum, graph = 0, outputs = 1, buffers = 4}\n"
    "    done %1\n"
    "    done %2\n"
    "    done %3\n"
    "    done %4\n"
    "  }\n"
    "  ret\n"
    "}\n";

static const char *const smooth_dims[] = {
    ".dst",
};
static const tiga_field_info smooth_params[] = {
    {"u", TIGA_AT_NODE, TIGA_F32, 0, -1, {0},
     "node u: f32"},
    {"dt", TIGA_AT_PARAM, TIGA_F32, 0, -1, {0},
     "param dt: f32"},
};
static const tiga_field_info smooth_results[] = {
    {"out", TIGA_AT_DST, TIGA_F32, 0, -1, {0},
     "out: f32"},
};
static const char smooth_plan[] =
    "task @smooth[.dst](node u: f32, param dt: f32) -> (out: row f32) exported square {\n"
    "  %1 = bind {kind = param, index = 0, name = u} : instance\n"
    "  %2 = bind {kind = param, index = 1, name = dt} : instance\n"
    "  %3 = bind {kind = result, index = 0, name = out} : instance\n"
    "  %4 = dimsize {dim = .dst} : i64\n"
    "  pages {pages = 1} {\n"
    "    %6 = arg {index = 0} : i64\n"
    "    acquire %1 {mode = read}\n"
    "    acquire %2 {mode = read}\n"
    "    acquire %3 {mode = write}\n"
    "    launch %1, %2, %3, %4 {callee = smooth, graph = 0, outputs = 1, buffers = 3}\n"
    "    done %1\n"
    "    done %2\n"
    "    done %3\n"
    "  }\n"
    "  ret\n"
    "}\n";

static const char *const spread_dims[] = {
    "F",
    ".dst",
};
static const tiga_field_info spread_params[] = {
    {"x", TIGA_AT_SRC, TIGA_F32, 1, -1, {-1},
     "src x: f32[F]"},
    {"y", TIGA_AT_DST, TIGA_F32, 1, -1, {-1},
     "dst y: f32[F]"},
};
static const tiga_field_info spread_results[] = {
    {"near", TIGA_AT_DST, TIGA_F32, 1, -1, {-1},
     "near: f32[F]"},
    {"score", TIGA_AT_EDGE, TIGA_F32, 0, -1, {0},
     "score: edge f32"},
};
static const char spread_plan[] =
    "task @spread[F, .dst](src x: f32[F], dst y: f32[F]) -> (near: row f32[F], score: edge f32) expor"
    "ted {\n"
    "  %1 = bind {kind = param, index = 0, name = x} : instance\n"
    "  %2 = bind {kind = param, index = 1, name = y} : instance\n"
    "  %3 = bind {kind = result, index = 0, name = near} : instance\n"
    "  %4 = bind {kind = result, index = 1, name = score} : instance\n"
    "  %5 = dimsize {dim = F} : i64\n"
    "  %6 = dimsize {dim = .dst} : i64\n"
    "  pages {pages = 1} {\n"
    "    %8 = arg {index = 0} : i64\n"
    "    acquire %1 {mode = read}\n"
    "    acquire %2 {mode = read}\n"
    "    acquire %3 {mode = write}\n"
    "    acquire %4 {mode = write}\n"
    "    launch %1, %2, %3, %4, %6, %5 {callee = spread, graph = 0, outputs = 2, buffers = 4}\n"
    "    done %1\n"
    "    done %2\n"
    "    done %3\n"
    "    done %4\n"
    "  }\n"
    "  ret\n"
    "}\n";

static const char *const relax_dims[] = {
    "g.dst",
    "g.src",
    "g.edge",
};
static const tiga_field_info relax_params[] = {
    {"g", TIGA_AT_GRAPH, 0, 0, -1, {0},
     "g: graph"},
    {"u", TIGA_AT_DST, TIGA_F32, 0, 0, {0},
     "u: f32[g.dst]"},
    {"rounds", TIGA_AT_PARAM, TIGA_I64, 0, -1, {0},
     "rounds: i64"},
    {"dt", TIGA_AT_PARAM, TIGA_F32, 0, -1, {0},
     "dt: f32"},
};
static const tiga_field_info relax_results[] = {
    {"out", TIGA_AT_DST, TIGA_F32, 0, 0, {0},
     "out: f32[g.dst]"},
};
static const char relax_plan[] =
    "task @relax[g.dst, g.src, g.edge](graph g: graph, param u: f32[g.dst], param rounds: i64, param "
    "dt: f32) -> (out: f32[g.dst]) exported square {\n"
    "  %1 = bind {kind = param, index = 1, name = u} : instance\n"
    "  %2 = bind {kind = param, index = 2, name = rounds} : instance\n"
    "  %3 = bind {kind = param, index = 3, name = dt} : instance\n"
    "  %4 = bind {kind = result, index = 0, name = out} : instance\n"
    "  %5 = const {value = 4} : i64\n"
    "  %6 = dimsize {dim = g.dst} : i64\n"
    "  %7 = mul %5, %6 : i64\n"
    "  %8 = instance %7 {name = relax.carried.1, version = 0, tier = host} : instance\n"
    "  %9 = instance %7 {name = relax.carried.1, version = 1, tier = host} : instance\n"
    "  copy %1, %8\n"
    "  acquire %2 {mode = read}\n"
    "  %12 = readi %2 : i64\n"
    "  done %2\n"
    "  %14 = repeat %12, %8, %9 : tuple {\n"
    "    %15 = arg {index = 0} : instance\n"
    "    %16 = arg {index = 1} : instance\n"
    "    pages {pages = 1} {\n"
    "      %18 = arg {index = 0} : i64\n"
    "      acquire %15 {mode = read}\n"
    "      acquire %3 {mode = read}\n"
    "      acquire %16 {mode = write}\n"
    "      launch %15, %3, %16, %6 {callee = smooth, graph = 0, outputs = 1, buffers = 3}\n"
    "      done %15\n"
    "      done %3\n"
    "      done %16\n"
    "    }\n"
    "    yield %16, %15\n"
    "  }\n"
    "  %27 = get %14 {index = 0} : instance\n"
    "  %28 = get %14 {index = 1} : instance\n"
    "  release %28\n"
    "  copy %27, %4\n"
    "  release %27\n"
    "  ret\n"
    "}\n";

/* name, signature, is a program, dimensions, parameters, results (counts, then tables), square, host, plan, dimensions that are the same */
static const tiga_function_info tiga_functions[] = {
    {"weighted_sum",
        "weighted_sum",
        0, 2, 3, 1, weighted_sum_dims, weighted_sum_params, weighted_sum_results, 0, weighted_sum_host, weighted_sum_plan, 0, NULL},
    {"smooth",
        "smooth",
        0, 1, 2, 1, smooth_dims, smooth_params, smooth_results, 1, smooth_host, smooth_plan, 0, NULL},
    {"spread",
        "spread",
        0, 2, 2, 2, spread_dims, spread_params, spread_results, 0, spread_host, spread_plan, 0, NULL},
    {"relax",
        "relax",
        1, 3, 4, 1, relax_dims, relax_params, relax_results, 1, relax_host, relax_plan, 0, NULL},
};

static const tiga_module_info tiga_info = {
    TIGA_ABI_VERSION, (int64_t)sizeof(tiga_module_info),
    "tigac test",
    "model",
    "0123456789abcdef0123456789abcdef",
    "",
    "",
    4, 3, tiga_functions, tiga_kernels,
};

/* Another name lets two modules live in one program: -DTIGA_MODULE_SYMBOL_NAME=my_module. */
#if !defined(TIGA_MODULE_SYMBOL_NAME)
#define TIGA_MODULE_SYMBOL_NAME tiga_module_info_v1
#endif
#if defined(__cplusplus)
extern "C" {
#endif
TIGA_EXPORT const tiga_module_info *TIGA_MODULE_SYMBOL_NAME(void);
TIGA_EXPORT const tiga_module_info *TIGA_MODULE_SYMBOL_NAME(void) { return &tiga_info; }
#if defined(__cplusplus)
}
#endif

/* The kernels as plain functions over raw pointers; see the header. */
#if defined(__cplusplus)
extern "C" {
#endif
TIGA_EXPORT TIGA_CALLS_ONLY void weighted_sum(const tiga_csr *graph, int64_t F, const float *x, const float *w, const float *bias, float *out);
TIGA_EXPORT TIGA_CALLS_ONLY void weighted_sum_rows(const tiga_csr *graph, int64_t F, const float *x, const float *w, const float *bias, float *out, int64_t row_begin, int64_t row_end);
TIGA_EXPORT TIGA_CALLS_ONLY void smooth(const tiga_csr *graph, const float *u, const float *dt, float *out);
TIGA_EXPORT TIGA_CALLS_ONLY void smooth_rows(const tiga_csr *graph, const float *u, const float *dt, float *out, int64_t row_begin, int64_t row_end);
TIGA_EXPORT TIGA_CALLS_ONLY void spread(const tiga_csr *graph, int64_t F, const float *x, const float *y, float *near, float *score, void *scratch);
TIGA_EXPORT TIGA_CALLS_ONLY void spread_rows(const tiga_csr *graph, int64_t F, const float *x, const float *y, float *near, float *score, void *scratch, int64_t row_begin, int64_t row_end);
TIGA_EXPORT int64_t spread_scratch(const tiga_csr *graph, int64_t F);

void weighted_sum_rows(const tiga_csr *graph, int64_t F, const float *x, const float *w, const float *bias, float *out, int64_t row_begin, int64_t row_end) {
    const int64_t tiga_dims[] = {F};
    void *const tiga_buffers[] = {(void *)x, (void *)w, (void *)bias, (void *)out};
    const tiga_launch_args tiga_args = {*graph, graph->n_dst, tiga_dims, tiga_buffers, NULL, NULL, NULL, NULL, NULL};
    if (graph->source_bits == 64) {
        weighted_sum_rows64(&tiga_args, row_begin, row_end);
        return;
    }
    weighted_sum_rows32(&tiga_args, row_begin, row_end);
}

void weighted_sum(const tiga_csr *graph, int64_t F, const float *x, const float *w, const float *bias, float *out) {
    weighted_sum_rows(graph, F, x, w, bias, out, 0, graph->n_dst);
}


void smooth_rows(const tiga_csr *graph, const float *u, const float *dt, float *out, int64_t row_begin, int64_t row_end) {
    const int64_t tiga_dims[] = {0};
    void *const tiga_buffers[] = {(void *)u, (void *)dt, (void *)out};
    const tiga_launch_args tiga_args = {*graph, graph->n_dst, tiga_dims, tiga_buffers, NULL, NULL, NULL, NULL, NULL};
    if (graph->source_bits == 64) {
        smooth_rows64(&tiga_args, row_begin, row_end);
        return;
    }
    smooth_rows32(&tiga_args, row_begin, row_end);
}

void smooth(const tiga_csr *graph, const float *u, const float *dt, float *out) {
    smooth_rows(graph, u, dt, out, 0, graph->n_dst);
}


int64_t spread_scratch(const tiga_csr *graph, int64_t F) {
    const int64_t tiga_dims[] = {F};
    (void)graph;
    return spread_scratch_bytes(tiga_dims);
}

void spread_rows(const tiga_csr *graph, int64_t F, const float *x, const float *y, float *near, float *score, void *scratch, int64_t row_begin, int64_t row_end) {
    const int64_t tiga_dims[] = {F};
    void *const tiga_buffers[] = {(void *)x, (void *)y, (void *)near, (void *)score};
    const tiga_launch_args tiga_args = {*graph, graph->n_dst, tiga_dims, tiga_buffers, scratch, NULL, NULL, NULL, NULL};
    if (graph->source_bits == 64) {
        spread_rows64(&tiga_args, row_begin, row_end);
        return;
    }
    spread_rows32(&tiga_args, row_begin, row_end);
}

void spread(const tiga_csr *graph, int64_t F, const float *x, const float *y, float *near, float *score, void *scratch) {
    spread_rows(graph, F, x, y, near, score, scratch, 0, graph->n_dst);
}

#if defined(__cplusplus)
}
#endif

#if TIGA_WHOLE_BYTES >= 64
#pragma clang attribute pop
#endif
