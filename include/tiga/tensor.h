/* tiga: tensors that are computed when somebody looks.  Link with -ltigac -ltiga.
 *
 *     tiga_tensors *ts;
 *     tiga_tensor *x, *y, *s;
 *     const tiga_array *a;
 *     tiga_tensors_new(ctx, NULL, &ts);
 *     tiga_tensor_from(ts, &array, TIGA_BORROW, &x);
 *     tiga_tensor_op("mul", (tiga_tensor *[]){x, x}, 2, &y);       // nothing is computed
 *     tiga_tensor_fold(y, "sum", TIGA_ALL_AXES, 0, &s);
 *     tiga_tensor_data(s, &a);                                     // one fused program, from the cache of code
 *     ... ((const float *)a->data)[0] ...
 *     tiga_tensor_free(s); tiga_tensor_free(y); tiga_tensor_free(x); tiga_tensors_free(ts);
 *
 * A tensor is an immutable value: given (it has memory), an expression, or a view of another's memory.  Observation
 * (realize, data, copy_to) writes what an expression needs as one program of graph IR and runs it.  Sizes are no part of
 * the program's key: a new size compiles nothing.  An axis of size 1 is one (it may be stretched), so it is part of the
 * key.  Axes that meet in an operation have one size there; others are independent.
 *
 * Shapes follow numpy: right-aligned broadcasting of any axis, negative axes count from the end.  Element types do not:
 * operands have one element type, and only numbers (tiga_tensor_number) adopt that of the other operands; a cast is
 * written.  f16 and bf16 are computed with in f32 and rounded to 16 bits after every operation.  The functions mean what
 * docs/language.md says of them, to the last bit.
 *
 * Every function that makes a tensor returns a new owner in *out, NULL on failure; operands are borrowed and may be freed
 * at once.  Failures are described in the context of the tensors (tiga_error_text).  Common statuses: E_ARGUMENT NULL,
 * tensors of two tiga_tensors; E_TYPE element types or shapes that do not fit; E_NAME; E_UNSUPPORTED more than 6 axes
 * in arithmetic (leading axes of size 1 not counted); E_MEMORY.
 * Threads: several tiga_tensors with a context each run at once, with one cache.  Tensors of one context may be used from
 * several threads, which take turns, an operation each: who looks at a tensor waits while another thread computes one.  A
 * thread that uses a tensor owns it (tiga_tensor_retain), or somebody does for it.  tiga_tensor_home, _dtype, _rank, _shape,
 * _size and _is_watched wait for nobody. */
#ifndef TIGA_TENSOR_H
#define TIGA_TENSOR_H

#include "tiga/jit.h"
#include "tiga/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tiga_tensors tiga_tensors; /* where tensors live: what was compiled, and memory kept for reuse */
typedef struct tiga_tensor tiga_tensor;

typedef struct tiga_tensors_options {
    size_t struct_bytes;
    tiga_cache *cache; /* of compiled code; retained.  NULL: what was compiled is known to this tiga_tensors only */
    int64_t
        keep_bytes; /* memory of freed tensors that is kept for new ones (tiga_memory_keep); default 128 MiB, 0: none */
    int64_t interpret_elements; /* expressions of at most so many elements altogether run in the interpreter the first
                                   two times; default 4096, 0: never.  The bits are the same */
} tiga_tensors_options;
TIGA_API tiga_tensors_options tiga_tensors_defaults(void);
/* ctx must outlive it and its tensors.  options may be NULL. */
TIGA_API tiga_status tiga_tensors_new(tiga_context *ctx, const tiga_tensors_options *options, tiga_tensors **out);
TIGA_API void tiga_tensors_free(tiga_tensors *ts); /* tensors that still have owners go on.  NULL is fine */
TIGA_API tiga_context *tiga_tensors_context(const tiga_tensors *ts);

typedef struct tiga_tensors_counters { /* since it was made */
    int64_t programs; /* different expressions seen, up to sizes */
    int64_t compiled; /* of these: code was made, or found in the cache */
    int64_t runs; /* programs run, by code or by the interpreter */
    int64_t interpreted; /* of these: by the interpreter */
    int64_t copies; /* movements of elements without arithmetic: concat, gather, views made dense ... */
    int64_t live_bytes; /* of values that tensors have now, in memory or on disk; the memory of callers is not in it */
    int64_t kept_bytes; /* memory kept for reuse now, by the account in force */
} tiga_tensors_counters;
TIGA_API tiga_tensors_counters tiga_tensors_get_counters(const tiga_tensors *ts);

/* ---- owners and facts --------------------------------------------------------------------------------------------- */
TIGA_API tiga_tensor *tiga_tensor_retain(tiga_tensor *x); /* one more owner; returns x */
TIGA_API void tiga_tensor_free(tiga_tensor *x); /* one owner less.  NULL is fine */
TIGA_API tiga_tensors *tiga_tensor_home(const tiga_tensor *x); /* borrowed */
TIGA_API int32_t tiga_tensor_dtype(const tiga_tensor *x);
TIGA_API int32_t tiga_tensor_rank(const tiga_tensor *x);
TIGA_API const int64_t *tiga_tensor_shape(const tiga_tensor *x); /* [rank], lives as long as x */
TIGA_API int64_t tiga_tensor_size(const tiga_tensor *x); /* number of elements */

/* ---- values that are there ----------------------------------------------------------------------------------------- */
/* TIGA_BORROW: the memory must outlive every tensor and view made from it, and not change.  TIGA_COPY: of its own. */
TIGA_API tiga_status tiga_tensor_from(tiga_tensors *ts, const tiga_array *a, int mode, tiga_tensor **out);
/* Memory that `owner` holds: release(owner) runs once, when the last tensor on it is gone; on failure it is not called. */
TIGA_API tiga_status tiga_tensor_from_owned(tiga_tensors *ts, const tiga_array *a, void *owner,
                                            void (*release)(void *owner), tiga_tensor **out);
/* A number without an element type of its own: takes that of the other operands; alone it is f32, or i64 when made by
 * _integer; looked at by itself, f64 or i64.  A number that is not whole, among integers, is E_TYPE.  Other numbers than whole ones up to 16 and a few
 * fractions are arguments of programs: another learning rate compiles nothing. */
TIGA_API tiga_status tiga_tensor_number(tiga_tensors *ts, double value, tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_integer(tiga_tensors *ts, int64_t value, tiga_tensor **out);
/* The same value everywhere (one element of memory).  Numbers to the element type as casts do. */
TIGA_API tiga_status tiga_tensor_full(tiga_tensors *ts, int32_t dtype, int32_t rank, const int64_t *shape, double value,
                                      tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_arange(tiga_tensors *ts, int32_t dtype, int64_t begin, int64_t end, int64_t step,
                                        tiga_tensor **out); /* i32, i64, f32 or f64 */
/* Uniform in [0, 1), f32 or f64: element i depends on seed and i alone, the same on every machine. */
TIGA_API tiga_status tiga_tensor_rand(tiga_tensors *ts, int32_t dtype, int32_t rank, const int64_t *shape,
                                      uint64_t seed, tiga_tensor **out);

/* ---- element by element -------------------------------------------------------------------------------------------- *
 * name: add sub mul div rem pow min max atan2 hypot | neg abs sign exp expm1 log log1p sqrt rsqrt floor ceil round sin
 * cos tan asin acos atan sinh cosh tanh erf | eq ne lt le gt ge | and or not | select | conj real imag complex |
 * sigmoid relu leaky_relu elu gelu silu softplus clamp.  leaky_relu and elu take a slope as second operand, or none. */
TIGA_API tiga_status tiga_tensor_op(const char *name, tiga_tensor *const *args, int n_args, tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_cast(tiga_tensor *x, int32_t dtype, tiga_tensor **out);

/* ---- over axes ------------------------------------------------------------------------------------------------------ */
#define TIGA_ALL_AXES 0xFFFFFFFFu
/* name: sum prod min max mean (floats, complex) any all (bool).  axes: bit i for axis i.  keep: folded axes stay, with size 1.
 * Over no elements: the identity, mean NaN.  Over an axis of size 1: the element itself. */
TIGA_API tiga_status tiga_tensor_fold(tiga_tensor *x, const char *name, uint32_t axes, int keep, tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_cumsum(tiga_tensor *x, int axis, int reverse, tiga_tensor **out);
/* numpy's matmul: vectors, matrices, stacks of matrices. */
TIGA_API tiga_status tiga_tensor_matmul(tiga_tensor *a, tiga_tensor *b, tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_softmax(tiga_tensor *x, int axis, tiga_tensor **out);
/* Over the last axis; weight and bias may be NULL. */
TIGA_API tiga_status tiga_tensor_layer_norm(tiga_tensor *x, tiga_tensor *weight, tiga_tensor *bias, double eps,
                                            tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_one_hot(tiga_tensor *index, int64_t n, int32_t dtype, tiga_tensor **out);

/* ---- movement ------------------------------------------------------------------------------------------------------- *
 * reshape, permute, slice and broadcast of a value that is there share its memory (reshape: when its elements lie so).
 * Of an expression they are carried out when it has been computed; broadcasts and axes of size 1 cost nothing at all. */
/* One entry of shape may be -1: what is left. */
TIGA_API tiga_status tiga_tensor_reshape(tiga_tensor *x, int32_t rank, const int64_t *shape, tiga_tensor **out);
/* Axis i of the result is axis order[i] of x; order NULL: all reversed. */
TIGA_API tiga_status tiga_tensor_permute(tiga_tensor *x, const int32_t *order, tiga_tensor **out);
/* count elements of an axis: begin, begin + step, ...; step may be negative, not 0.  E_TYPE outside of the axis. */
TIGA_API tiga_status tiga_tensor_slice(tiga_tensor *x, int axis, int64_t begin, int64_t count, int64_t step,
                                       tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_broadcast(tiga_tensor *x, int32_t rank, const int64_t *shape, tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_concat(tiga_tensor *const *xs, int n, int axis, tiga_tensor **out);
TIGA_API tiga_status tiga_tensor_stack(tiga_tensor *const *xs, int n, int axis, tiga_tensor **out);
/* Elements of an axis by number (i32 or i64), brought into its range; the axes of index take the place of the axis. */
TIGA_API tiga_status tiga_tensor_gather(tiga_tensor *x, tiga_tensor *index, int axis, tiga_tensor **out);
/* i64[n]: which elements of a bool are true, in row-major order.  Their number is the size of the result, so mask is computed at
 * once. */
TIGA_API tiga_status tiga_tensor_nonzero(tiga_tensor *mask, tiga_tensor **out);

/* ---- gradients ------------------------------------------------------------------------------------------------------ *
 * out[i]: the gradient of loss (a float, one element) with respect to wrt[i], itself an expression.  A value that was
 * observed has forgotten what it was computed from, unless something it depends on was made by tiga_tensor_watch: a new
 * tensor of the same value, without a history, whose descendants remember theirs.
 * E_TYPE no path from the loss to wrt[i], or no floats; with missing_is_zero it is 0 instead (floats only). */
TIGA_API tiga_status tiga_tensor_watch(tiga_tensor *x, tiga_tensor **out);
/* The same value without a history, whose descendants remember none: what goes from one step of a training to the next. */
TIGA_API tiga_status tiga_tensor_forget(tiga_tensor *x, tiga_tensor **out);
TIGA_API int
tiga_tensor_is_watched(const tiga_tensor *x); /* 1: made by tiga_tensor_watch, or from something that was */
TIGA_API tiga_status tiga_tensor_grad(tiga_tensor *loss, tiga_tensor *const *wrt, int n, int missing_is_zero,
                                      tiga_tensor **out);

/* ---- kernels -------------------------------------------------------------------------------------------------------- *
 * A kernel or program of a module, as tiga_call_many: arguments by name, *results[i] a tensor for result names[i].  Runs at
 * once; results are charged like all tensors.  Where an argument descends from a watched one, results remember the call:
 * gradients go through it by the function that `export vjp` made, NAME_vjp, which tiga_tensor_grad calls at once (E_UNSUPPORTED there is
 * none, or not for that argument). */
typedef struct tiga_tensor_binding {
    const char *name;
    tiga_tensor *tensor; /* results: put there */
} tiga_tensor_binding;
TIGA_API tiga_status tiga_tensor_call(tiga_tensors *ts, tiga_module *m, const char *name, tiga_graph *const *graphs,
                                      int n_graphs, const tiga_tensor_binding *in, int n_in,
                                      tiga_tensor_binding *results, int n_results);

/* ---- observation ---------------------------------------------------------------------------------------------------- */
/* Computes all of them, together where they can be, and brings home what had left memory.  What fails leaves the
 * expressions as they were: E_BUDGET, E_MEMORY, E_FILE, E_FORMAT, E_INTERRUPTED. */
TIGA_API tiga_status tiga_tensor_realize(tiga_tensor *const *xs, int n);
/* The elements, dense and row-major, computed and brought home if needed; they stay where they are until as many
 * tiga_tensor_unpin.  *out is borrowed, good while pinned.  A number of weak type is seen where it is. */
TIGA_API tiga_status tiga_tensor_pin(tiga_tensor *x, const tiga_array **out);
TIGA_API void tiga_tensor_unpin(tiga_tensor *x);
/* The same for another library: *managed is a DLManagedTensor of DLPack (its struct without a version), dense, on the processor,
 * and keeps x and pins it until its deleter is called, once, on any thread, at any time, also in the middle of an operation.  The
 * memory goes at the next operation on tensors of this tiga_tensors; the last of them must come after the deleter. */
TIGA_API tiga_status tiga_tensor_to_dlpack(tiga_tensor *x, void **managed);
/* For capsules of Python made by who has no C of his own: the destructor of PyCapsule_New(managed, "dltensor", ...).  Looks
 * for Python among the symbols of the process; runs no Python, and leaves an exception that is on its way alone. */
TIGA_API void tiga_tensor_capsule_end(void *capsule);
/* The same for who keeps no account of it: pinned until x is freed, or tiga_tensor_spill(x). */
TIGA_API tiga_status tiga_tensor_data(tiga_tensor *x, const tiga_array **out);
TIGA_API tiga_status tiga_tensor_copy_to(tiga_tensor *x, void *to, int64_t n_bytes); /* E_ARGUMENT another size */

/* ---- memory --------------------------------------------------------------------------------------------------------- *
 * The value of a tensor lies in a tiga_buffer (tiga/memory.h), which is pinned while an operation reads or writes it: it
 * is charged to the account in force when its memory was made (an expression holds none), once for all views of it, and
 * leaves memory by tiga_tensor_spill or by LRU eviction.  Operations bring home what they read.  Memory of callers
 * (TIGA_BORROW, _from_owned) is charged to nobody and never moves; numbers and tiga_tensor_full have none. */
typedef enum tiga_storage {
    TIGA_STORAGE_NONE = 0, /* an expression that nobody has looked at, a number, or the same value everywhere */
    TIGA_STORAGE_BUFFER = 1,
    TIGA_STORAGE_GIVEN = 2 /* memory of the caller */
} tiga_storage;
/* Where it is; computes nothing, moves nothing.  NONE: 0 bytes, resident when it is no expression.  bytes and pins are
 * those of the buffer, which views share.  version: 0 as loaded or given, 1 as written.  *storage may be NULL. */
TIGA_API tiga_status tiga_tensor_residency(const tiga_tensor *x, tiga_residency *out, int32_t *storage);
/* To disk: the same value, version and history; computed before if needed.  Of a view: the buffer, with all its views.
 * What tiga_tensor_data gave is no longer good; pinned otherwise, it leaves when the last pin goes.  Nothing to do for numbers.
 * E_UNSUPPORTED memory of the caller; E_BUDGET of the disk, E_FILE: nothing has changed. */
TIGA_API tiga_status tiga_tensor_spill(tiga_tensor *x);
/* Starts to bring it home on another thread if there is room without evicting anything; an expression: nothing. */
TIGA_API tiga_status tiga_tensor_prefetch(tiga_tensor *x);
/* The value on a device: on its own the realized x itself, one more owner.  "cpu"; E_UNSUPPORTED others. */
TIGA_API tiga_status tiga_tensor_to(tiga_tensor *x, const char *device, tiga_tensor **out);
/* A snapshot (tiga_save) of n tensors under their names, computed if needed.  names may be NULL for one: "x".  No history
 * is saved, nothing leaves memory. */
TIGA_API tiga_status tiga_tensor_save(const char *path, const char *const *names, tiga_tensor *const *xs, int n,
                                      int overwrite);
/* Tensor i of an open snapshot, which it keeps; nothing is read before somebody looks. */
TIGA_API tiga_status tiga_tensor_load(tiga_tensors *ts, tiga_snapshot *s, int i, tiga_tensor **out);
/* The named tensor of the file at `path`; name NULL: the only one (E_ARGUMENT there are more or none).  E_NAME. */
TIGA_API tiga_status tiga_tensor_load_file(tiga_tensors *ts, const char *path, const char *name, tiga_tensor **out);
/* The value into the named store (tiga_store_put), and x out of memory: it is attached to what was stored.  Memory of the
 * caller stays.  E_ARGUMENT the name is taken, or none.  name NULL: tiga_tensor_spill. */
TIGA_API tiga_status tiga_tensor_disk(tiga_tensor *x, const char *name);
TIGA_API tiga_status tiga_tensor_from_disk(tiga_tensors *ts, const char *name, tiga_tensor **out); /* E_NAME: none */

enum {
    TIGA_TENSOR_PENDING = 0, /* an expression that nobody has looked at */
    TIGA_TENSOR_GIVEN = 1, /* came with its elements */
    TIGA_TENSOR_VIEW = 2, /* shares the memory of another */
    TIGA_TENSOR_COPIED = 3, /* elements moved */
    TIGA_TENSOR_INTERPRETED = 4, /* by the interpreter */
    TIGA_TENSOR_COMPILED = 5, /* by code made for it */
    TIGA_TENSOR_CACHED = 6, /* by code that was there */
    TIGA_TENSOR_CALLED = 7 /* result of tiga_tensor_call */
};
typedef struct tiga_tensor_execution {
    int32_t how; /* TIGA_TENSOR_* */
    const char *text; /* static: "compiled" */
    int32_t operations; /* of the program that computed it */
    int64_t launches, bytes_read, bytes_written; /* of that program; the interpreter counts none */
} tiga_tensor_execution;
TIGA_API tiga_tensor_execution tiga_tensor_get_execution(const tiga_tensor *x);
/* The program that would compute it, as IR text; to be freed with tiga_tensor_text_free.  Values it has to move elements
 * for are observed on the way.  E_ARGUMENT x is there already. */
TIGA_API tiga_status tiga_tensor_program(tiga_tensor *x, char **text);
TIGA_API void tiga_tensor_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
