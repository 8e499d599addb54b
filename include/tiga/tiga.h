/* tiga: run compiled message functions on graphs.  Link with -ltiga.
 *
 *     tiga_context *ctx;  tiga_context_new(NULL, &ctx);
 *     tiga_module *m;     tiga_module_load(ctx, "model.so", &m);
 *     tiga_graph *g;      tiga_graph_from_csr(ctx, n_dst, n_src, offsets, sources, 64, TIGA_COPY, &g);
 *     tiga_binding in[] = {{"x", &x}, {"w", &w}, {"bias", &bias}}, out[] = {{"out", &result}};
 *     tiga_call(ctx, m, "weighted_sum", g, in, 3, out, 1);
 *
 * Every call returns a tiga_status; tiga_error_text(ctx) is one line about the first failure since the last
 * tiga_error_clear.  The library never prints, exits or aborts on bad input.
 *
 * Threads: several contexts run at once.  One context may be used from any number of threads, but then they take turns: what
 * runs with it (calls, prepared calls, tensors, graphs that are read or made) waits until the one before is done.
 * Its error text is that of the first failure of any of them; see tiga_context_lock. */
#ifndef TIGA_H
#define TIGA_H

#include "tiga/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TIGA_API
#define TIGA_API __attribute__((visibility("default")))
#endif

typedef enum tiga_status {
#define TIGA_STATUS(NAME, number, text) TIGA_##NAME = number,
#include "tiga/tiga_status.def"
#undef TIGA_STATUS
} tiga_status;

typedef struct tiga_context tiga_context;
typedef struct tiga_graph tiga_graph;
typedef struct tiga_module tiga_module;

TIGA_API const char *tiga_version(void);                  /* "0.1.0" */
TIGA_API const char *tiga_status_text(tiga_status status); /* static; "unknown status" for others */

/* ---- context ---- */
typedef struct tiga_context_options {
    size_t struct_bytes; /* sizeof(tiga_context_options) */
    int threads; /* 0: OMP_NUM_THREADS, or one per core that the process may use, within the quota of its control group */
    int64_t host_budget_bytes; /* for buffers made by one call, results it allocates included; < 0: unlimited */
    /* Asked about every 50 ms while a call takes long, on the thread that made the call; nonzero stops the call with
     * E_INTERRUPTED.  For hosts that run the handlers of signals themselves.  May use other contexts.  NULL: not asked */
    int (*poll)(void *user);
    void *poll_user;
} tiga_context_options;
TIGA_API tiga_context_options tiga_context_defaults(void);
/* options may be NULL.  *out is NULL on failure. */
TIGA_API tiga_status tiga_context_new(const tiga_context_options *options, tiga_context **out);
/* Prepared calls of the context must have been freed before; graphs and modules go on without it.  NULL is fine. */
TIGA_API void tiga_context_free(tiga_context *ctx);
/* The turn of this thread, until as many tiga_context_unlock: for several calls in a row, or a call and its error text, that no
 * other thread may come between.  The calls themselves take turns without it.  A child of fork must not use a context
 * that another thread was in. */
TIGA_API void tiga_context_lock(tiga_context *ctx);
TIGA_API void tiga_context_unlock(tiga_context *ctx); /* by the same thread */
TIGA_API int tiga_context_threads(const tiga_context *ctx);
TIGA_API const char *tiga_error_text(const tiga_context *ctx); /* "" when nothing failed; lives until the next call */
TIGA_API tiga_status tiga_error_status(const tiga_context *ctx); /* of the failure that tiga_error_text describes */
TIGA_API void tiga_error_clear(tiga_context *ctx);
/* For code that builds on the library: keeps status and text (one line) as a failure of this context, if it is the first
 * since the last clear.  Returns status. */
TIGA_API tiga_status tiga_error_set(tiga_context *ctx, tiga_status status, const char *text);
/* Makes what runs with this context (calls, compiles, readers of files) return TIGA_E_INTERRUPTED soon.  Async-signal-safe,
 * any thread. */
TIGA_API void tiga_interrupt(tiga_context *ctx);

/* ---- arrays: a view of the caller's memory, or memory of our own; row-major and dense ---- */
typedef struct tiga_array {
    void *data;
    int32_t dtype; /* TIGA_F32 ... */
    int32_t rank;
    int64_t shape[7];
    int32_t owned; /* 1: freed by tiga_array_free */
} tiga_array;
TIGA_API tiga_status tiga_array_new(tiga_context *ctx, int32_t dtype, int32_t rank, const int64_t *shape,
                                    tiga_array *out); /* zeroed, owned, on huge pages when large */
TIGA_API tiga_array tiga_array_borrow(void *data, int32_t dtype, int32_t rank, const int64_t *shape);
TIGA_API void tiga_array_free(tiga_array *a); /* a borrowed array is only reset */
TIGA_API int64_t tiga_array_bytes(const tiga_array *a);
/* A new owned array with the elements converted: float to integer truncates and saturates (NaN gives 0), anything to
 * bool is `!= 0`, integers wrap around, floats round to nearest, to and from f16 and bf16 by way of f32, real
 * numbers become complex ones with imaginary part 0.  E_TYPE complex to real. */
TIGA_API tiga_status tiga_array_convert(tiga_context *ctx, const tiga_array *a, int32_t dtype, tiga_array *out);
TIGA_API const char *tiga_dtype_text(int32_t dtype); /* "f32"; "unknown" for others */
TIGA_API int32_t tiga_dtype_bytes(int32_t dtype); /* 4; 0 for others */
/* numpy files, versions 1 to 3: bool, int8, uint8, int32, int64, float16, float32, float64, complex64, complex128, little-endian;
 * uint16 and two-byte void are bf16, which numpy does not have (written as uint16: its bits).  Fortran order is turned into C order.  E_FILE cannot read; E_FORMAT malformed or truncated; E_TYPE another element type.  Writing is all or nothing. */
TIGA_API tiga_status tiga_array_read_npy(tiga_context *ctx, const char *path, tiga_array *out);
TIGA_API tiga_status tiga_array_write_npy(tiga_context *ctx, const char *path, const tiga_array *a);

/* ---- graphs: immutable; counted.  A graph may be used with any context and from several threads at once ---- */
enum { TIGA_BORROW = 0, TIGA_COPY = 1 }; /* borrowed arrays must outlive the graph and not change */
/* Validates: offsets begin at 0, never fall and end at the number of edges; 0 <= source < n_src.
 * offsets int64_t [n_dst + 1]; sources int32_t or int64_t [offsets[n_dst]] as source_bits says. */
TIGA_API tiga_status tiga_graph_from_csr(tiga_context *ctx, int64_t n_dst, int64_t n_src, const int64_t *offsets,
                                         const void *sources, int source_bits, int mode, tiga_graph **out);
/* Edges in any order; they are sorted by destination, keeping the given order within a row.  Edge fields are then in
 * the order of the rows: tiga_graph_edge_order tells which input edge stands where. */
TIGA_API tiga_status tiga_graph_from_coo(tiga_context *ctx, int64_t n_dst, int64_t n_src, int64_t n_edges,
                                         const int64_t *dst, const int64_t *src, tiga_graph **out);
TIGA_API tiga_graph *tiga_graph_retain(tiga_graph *g); /* one more owner; returns g.  Threads: any */
TIGA_API void tiga_graph_free(tiga_graph *g); /* one owner less, the last one frees it.  NULL is fine */
TIGA_API const tiga_csr *tiga_graph_csr(const tiga_graph *g);
/* int64_t [n_edges]: input position of each edge; NULL unless the graph came from tiga_graph_from_coo. */
TIGA_API const int64_t *tiga_graph_edge_order(const tiga_graph *g);
/* The relation seen from the sources, built at the first call and kept with g. *edge_of: the edge of g that each edge of
 * the transposed relation is, [n_edges], int32_t or int64_t as (*out)->source_bits says: 32 when g has fewer than 2^31 rows
 * and fewer than 2^31 edges, 64 for both arrays otherwise.  out and edge_of may be NULL. */
TIGA_API tiga_status tiga_graph_transposed(tiga_context *ctx, tiga_graph *g, const tiga_csr **out,
                                           const void **edge_of);

typedef struct tiga_graph_stats {
    int64_t n_dst, n_src, n_edges;
    int64_t max_degree, empty_rows, self_loops, duplicate_edges;
    double mean_degree;
    int64_t bytes; /* of the arrays held */
    int64_t transposed; /* 1: the transposed relation has been built, or came with the file */
    int64_t degrees[64]; /* how many rows have a degree of 0, 1, 2..3, 4..7, 8..15, ... */
} tiga_graph_stats;
TIGA_API tiga_status tiga_graph_get_stats(tiga_context *ctx, tiga_graph *g, tiga_graph_stats *out);

/* Files.  Format by content, then by name: Matrix Market (.mtx), SNAP edge lists (.txt .el .wel ..., lines of
 * `a b [weight]`, comments with # or %), SciPy sparse .npz (csr); text may be gzipped.
 *   Matrix Market  entry (i, j) is an edge from column j to row i; duplicate entries are duplicate edges; symmetric
 *                  files get their other triangle, appended after all entries.
 *   edge lists     an edge from a to b; ids are kept, the graph is square with largest id + 1 nodes.
 *   npz            row i holds the sources of destination i.  What tiga_graph_write_snapshot added is used after every
 *                  number of it was compared with the relation: E_FORMAT, E_RANGE, E_TYPE when it is not that of the graph.
 * Values of the file, if any, become *values (values may be NULL), one per edge in the order of the graph: i64 for whole
 * numbers and f64 for others in text, the element type of the file in .npz, but i32 of uint16, which are whole numbers there; data is NULL when
 * the file has none.  Free with tiga_array_free, change the type with tiga_array_convert.
 * E_FILE cannot read; E_FORMAT, E_RANGE, E_TYPE the file is wrong, with `path:line: what: 'text'`; E_UNSUPPORTED complex,
 * hermitian, dense, csc ...; E_MEMORY; E_INTERRUPTED. */
typedef struct tiga_graph_file_options {
    size_t struct_bytes;
    void (*progress)(void *user, double fraction); /* may be NULL */
    void *user;
    int32_t keep_edge_order; /* 1: tiga_graph_edge_order tells which entry of the file each edge is (edge lists and
                                general Matrix Market files; 8 bytes an edge) */
} tiga_graph_file_options;
TIGA_API tiga_status tiga_graph_read(tiga_context *ctx, const char *path, const tiga_graph_file_options *options,
                                     tiga_graph **out, tiga_array *values);
TIGA_API tiga_status tiga_graph_write_npz(tiga_context *ctx, const char *path, tiga_graph *g,
                                          const tiga_array *values); /* NULL: f32 ones are written; bf16 as f32 */
/* The same file, which SciPy reads too, with four more members: the transposed relation and the statistics of g, made
 * now if g does not have them.  A graph read from it has both from the beginning. */
TIGA_API tiga_status tiga_graph_write_snapshot(tiga_context *ctx, const char *path, tiga_graph *g,
                                               const tiga_array *values);
/* Generators; the same bytes for the same arguments on every machine and with any number of threads. */
/* 2^scale nodes, edge_factor * 2^scale edges, Graph500's .57 .19 .19 .05, ids scrambled */
TIGA_API tiga_status tiga_graph_rmat(tiga_context *ctx, int scale, int64_t edge_factor, uint64_t seed,
                                     tiga_graph **out);
/* degree random sources for every row */
TIGA_API tiga_status tiga_graph_uniform(tiga_context *ctx, int64_t n_nodes, int64_t degree, uint64_t seed,
                                        tiga_graph **out);
/* Row i reads the degree nearest rows i-degree/2 .. i+degree/2, wrapping; i itself only when degree is odd: a regular
 * periodic band. */
TIGA_API tiga_status tiga_graph_local(tiga_context *ctx, int64_t n_nodes, int64_t degree, tiga_graph **out);

/* ---- modules: immutable; counted.  A module may be used with any context and from several threads at once ---- */
/* Opens a module made by tigac; checks that it is whole, its ABI version and processor features before any of its code
 * runs.  A file that was replaced (as tigac does; not written into) is another module, whatever is loaded under its name. */
TIGA_API tiga_status tiga_module_load(tiga_context *ctx, const char *path, tiga_module **out);
/* The same for a module linked into the program: pass its tiga_module_info_v1(). */
TIGA_API tiga_status tiga_module_from_info(tiga_context *ctx, const tiga_module_info *info, tiga_module **out);
/* The same for code and tables that `owner` holds: release(owner) runs once, when the last owner of the module lets go,
 * on the thread that does.  On failure owner stays the caller's.  release may be NULL. */
TIGA_API tiga_status tiga_module_from_owned(tiga_context *ctx, const tiga_module_info *info, void *owner,
                                            void (*release)(void *owner), tiga_module **out);
/* For owners that make code for 64-bit sources only when it is needed: calls with such a graph (source_bits 64; 96 when
 * graphs of both kinds are given) use the table that this gives, of the same functions in the same order, valid as long
 * as owner.  It may be called from several threads at once.  To be set before the module is used. */
TIGA_API void tiga_module_set_rows(tiga_module *m, tiga_status (*rows)(void *owner, tiga_context *ctx, int source_bits,
                                                                       const tiga_module_info **out));
TIGA_API tiga_module *tiga_module_retain(tiga_module *m); /* one more owner; returns m.  Threads: any */
TIGA_API void
tiga_module_free(tiga_module *m); /* one owner less, the last one unloads it.  NULL is fine.  Threads: any */
TIGA_API const tiga_module_info *tiga_module_get_info(const tiga_module *m);
TIGA_API const tiga_function_info *tiga_module_find(const tiga_module *m, const char *name); /* NULL: none */

/* ---- calls ---- */
typedef struct tiga_binding {
    const char *name; /* of a parameter or a result; a single unnamed result is "out" */
    tiga_array *array; /* inputs: read only.  Results: if data is NULL a new owned array is put here */
} tiga_binding;
typedef struct tiga_call_stats {
    double seconds; /* inside kernels and host code */
    int64_t edges, rows; /* visited, over all launches */
    /* compulsory traffic: every array of a launch once; of its graph the offsets, and the sources and numbers of edges
     * where they are looked at.  `tigac --explain-plan` counts what is read for each edge instead. */
    int64_t launches, bytes_read, bytes_written;
    int64_t peak_bytes; /* of buffers made by the call, results it allocated included */
    int64_t transposes; /* transposed relations built by the call; a graph keeps its own, so later calls build none */
} tiga_call_stats;
/* Calls a kernel or a program of the module by name.  Arguments are matched by name and checked for element type, rank
 * and size; open dimensions are taken from them (each must agree everywhere) -- a dimension no argument shows is an
 * error that names it.  Scalars are arrays of rank 0.  graph may be NULL for programs without one; programs with several
 * graphs take them from `graphs` in tiga_call_many, in order of declaration.
 *
 * A result whose data is NULL gets a new array, owned by the caller, counted against host_budget_bytes until the call
 * returns.  A result with data must have its exact shape and share no memory with an argument, the graph or another
 * result.  After a failure results the call allocated are gone again; given memory may be partly written.
 * The bits of the results do not depend on the number of threads.
 *
 * E_NAME unknown function, argument or result, or one missing; E_TYPE element type, rank, size or a graph that is not
 * square; E_ARGUMENT NULL, twice, shared memory, misaligned; E_BUDGET, E_MEMORY, E_INTERRUPTED; E_UNSUPPORTED a tier this
 * runtime does not have; E_INTERNAL a fault of the module's schedule. */
TIGA_API tiga_status tiga_call(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *graph,
                               const tiga_binding *in, int n_in, tiga_binding *out, int n_out);
TIGA_API tiga_status tiga_call_many(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *const *graphs,
                                    int n_graphs, const tiga_binding *in, int n_in, tiga_binding *out, int n_out,
                                    tiga_call_stats *stats /* may be NULL */);
/* Element type, rank and shape of the results that the call would have, and no data: for callers that provide their
 * memory.  out: borrowed arrays without data are put there; one that has data is checked as in tiga_call_many.  Runs
 * nothing, allocates nothing. */
TIGA_API tiga_status tiga_call_shapes(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *const *graphs,
                                      int n_graphs, const tiga_binding *in, int n_in, tiga_binding *out, int n_out);

/* ---- prepared calls: checked and bound once, launched many times ---- */
typedef struct tiga_prepared tiga_prepared;
/* Checks like tiga_call_many.  Memory of arguments and results is borrowed until tiga_prepared_free and must stay in its
 * place; what it holds may change between launches.  The tiga_array structs are read only now.  A result without data
 * gets a new array, the caller's.  Module and graphs are retained.
 * The prepared call belongs to ctx: it takes turns with all that runs there, and is to be freed before ctx.  *out is NULL on failure.
 * Returns what tiga_call_many returns, E_INTERRUPTED excepted. */
TIGA_API tiga_status tiga_prepare(tiga_context *ctx, tiga_module *m, const char *name, tiga_graph *const *graphs,
                                  int n_graphs, const tiga_binding *in, int n_in, tiga_binding *results, int n_results,
                                  tiga_prepared **out);
/* Runs it.  Results that tiga_prepare allocated are not counted against host_budget_bytes any more; buffers of programs
 * are kept from launch to launch until tiga_prepared_free (1 MiB in all where the context has a budget).  After a failure the results are partly written, and the call
 * can be launched again.  E_BUDGET, E_MEMORY, E_INTERRUPTED, E_INTERNAL; E_ARGUMENT p is NULL. */
TIGA_API tiga_status tiga_prepared_launch(tiga_prepared *p, tiga_call_stats *stats /* may be NULL */);
TIGA_API void tiga_prepared_free(tiga_prepared *p); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
