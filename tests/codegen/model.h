/* Made from model by tigac test; changes here are lost when it is made again.
 * Source hash 0123456789abcdef0123456789abcdef.
 *
 * Compiles alone as C11 and C++17.  Modules whose kernels have equal names cannot be linked into one program;
 * build all but one with -DTIGA_MODULE_SYMBOL_NAME=... so that their tables have different names. */
#ifndef TIGA_MODULE_MODEL_H
#define TIGA_MODULE_MODEL_H

#include <stddef.h>
#include <stdint.h>

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

#ifndef TIGA_MODULE_API /* for example __declspec(dllimport), or static when the C file is included */
#define TIGA_MODULE_API
#endif
#if defined(__cplusplus)
extern "C" {
#endif

/* weighted_sum
 *
 *   x[n_src][F]: float, read at the source of an edge
 *   w[n_edges]: float, one per edge, in the order of the graph
 *   bias[n_dst][F]: float, read at the destination of an edge
 *   out[n_dst][F]: float, written, one per destination row
 *
 * Arrays are dense and row-major; results must not overlap anything else.  weighted_sum computes all rows on the calling thread,
 * weighted_sum_rows the rows row_begin .. row_end-1, so that several threads may share the work. */
TIGA_MODULE_API void weighted_sum(const tiga_csr *graph, int64_t F, const float *x, const float *w, const float *bias, float *out);
TIGA_MODULE_API void weighted_sum_rows(const tiga_csr *graph, int64_t F, const float *x, const float *w, const float *bias, float *out, int64_t row_begin, int64_t row_end);

/* smooth
 *
 *   u[n_nodes]: float, read at both ends of an edge
 *   dt: float, shared by all
 *   out[n_dst]: float, written, one per destination row
 *
 * Arrays are dense and row-major; results must not overlap anything else.  smooth computes all rows on the calling thread,
 * smooth_rows the rows row_begin .. row_end-1, so that several threads may share the work.
 * The graph has as many sources as destinations. */
TIGA_MODULE_API void smooth(const tiga_csr *graph, const float *u, const float *dt, float *out);
TIGA_MODULE_API void smooth_rows(const tiga_csr *graph, const float *u, const float *dt, float *out, int64_t row_begin, int64_t row_end);

/* spread
 *
 *   x[n_src][F]: float, read at the source of an edge
 *   y[n_dst][F]: float, read at the destination of an edge
 *   near[n_dst][F]: float, written, one per destination row
 *   score[n_edges]: float, written, one per edge
 *
 * Arrays are dense and row-major; results must not overlap anything else.  spread computes all rows on the calling thread,
 * spread_rows the rows row_begin .. row_end-1, so that several threads may share the work.
 * scratch: spread_scratch(...) bytes aligned to 64, one buffer for each thread. */
TIGA_MODULE_API int64_t spread_scratch(const tiga_csr *graph, int64_t F);
TIGA_MODULE_API void spread(const tiga_csr *graph, int64_t F, const float *x, const float *y, float *near, float *score, void *scratch);
TIGA_MODULE_API void spread_rows(const tiga_csr *graph, int64_t F, const float *x, const float *y, float *near, float *score, void *scratch, int64_t row_begin, int64_t row_end);

/* Through a context: include <tiga/tiga.h> first.  Arguments are checked; a result whose data is NULL is allocated. */
#if defined(TIGA_H)
/* weighted_sum */
static inline tiga_status weighted_sum_call(tiga_context *ctx, tiga_module *module, tiga_graph *graph, tiga_array *x, tiga_array *w, tiga_array *bias, tiga_array *out) {
    const tiga_binding in[] = {
        {"x", x},
        {"w", w},
        {"bias", bias},
    };
    tiga_binding results[] = {
        {"out", out},
    };
    tiga_graph *const graphs[] = {graph};
    return tiga_call_many(ctx, module, "weighted_sum", graphs, 1, in, 3, results, 1, NULL);
}

/* smooth */
static inline tiga_status smooth_call(tiga_context *ctx, tiga_module *module, tiga_graph *graph, tiga_array *u, tiga_array *dt, tiga_array *out) {
    const tiga_binding in[] = {
        {"u", u},
        {"dt", dt},
    };
    tiga_binding results[] = {
        {"out", out},
    };
    tiga_graph *const graphs[] = {graph};
    return tiga_call_many(ctx, module, "smooth", graphs, 1, in, 2, results, 1, NULL);
}

/* spread */
static inline tiga_status spread_call(tiga_context *ctx, tiga_module *module, tiga_graph *graph, tiga_array *x, tiga_array *y, tiga_array *near, tiga_array *score) {
    const tiga_binding in[] = {
        {"x", x},
        {"y", y},
    };
    tiga_binding results[] = {
        {"near", near},
        {"score", score},
    };
    tiga_graph *const graphs[] = {graph};
    return tiga_call_many(ctx, module, "spread", graphs, 1, in, 2, results, 2, NULL);
}

/* relax */
static inline tiga_status relax_call(tiga_context *ctx, tiga_module *module, tiga_graph *g, tiga_array *u, tiga_array *rounds, tiga_array *dt, tiga_array *out) {
    const tiga_binding in[] = {
        {"u", u},
        {"rounds", rounds},
        {"dt", dt},
    };
    tiga_binding results[] = {
        {"out", out},
    };
    tiga_graph *const graphs[] = {g};
    return tiga_call_many(ctx, module, "relax", graphs, 1, in, 3, results, 1, NULL);
}

#endif /* TIGA_H */

/* What a loader asks a module for; tiga_module_from_info takes it. */
#if !defined(TIGA_MODULE_SYMBOL_NAME)
#define TIGA_MODULE_SYMBOL_NAME tiga_module_info_v1
#endif
TIGA_MODULE_API const tiga_module_info *TIGA_MODULE_SYMBOL_NAME(void);

#if defined(__cplusplus)
}
#endif
#endif /* TIGA_MODULE_MODEL_H */
