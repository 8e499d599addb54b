/* tensor: lazy values over graph IR.  What the files of this folder share.
 *
 *   buffer.c       counted memory: a tiga_buffer, or the caller's; pinned while somebody reads or writes it
 *   node.c         tiga_tensors, and nodes: making, owning, freeing
 *   make.c         values that are there: arrays, numbers, arange, rand
 *   elementwise.c  operations element by element, and the functions made of them
 *   complex.c      exp, log, sqrt and abs of complex numbers
 *   fold.c         folds, matmul, softmax, layer_norm
 *   shape.c        movement: reshape, permute, slice, broadcast, concat, gather ...
 *   move.c         carries movement out
 *   plan.c         an unrealised graph of nodes: numbered, its sizes named, its key
 *   again.c        what is computed again and again is kept
 *   emit.c         a plan as graph IR
 *   run.c          programs: found or compiled, bound, called
 *   nonzero.c      where a mask holds
 *   observe.c      realize, pin, data, copy_to, execution
 *   store.c        spill, residency, snapshots, the named store
 *   dlpack.c       memory lent to other libraries, and what they give back at any time
 *   grad.c         gradients: GRAD operations between movements
 *   call.c         kernels of modules
 *   call_grad.c    gradients through them
 *
 * A node is one of three kinds.  REAL: memory and strides.  COMPUTE: an operation of the IR table.  MOVE: elements of the
 * operands at other places, which programs do not do; it is carried out between programs.  An expression that is realised
 * becomes REAL in place, and gives up its operands, unless it descends from a watched value, or was only realised on the way
 * to something else and somebody can still ask for its gradient; a view keeps what it looks at. */
#ifndef TIGA_TENSOR_PRIVATE_H
#define TIGA_TENSOR_PRIVATE_H

#include "ir/ir.h"
#include "tiga/tensor.h"

#include <limits.h>
#include <stdatomic.h>

enum { TENSOR_MAX_RANK = 7 };

/* ---- buffer.c ---- */
typedef struct tensor_buffer {
    int64_t refs;
    tiga_tensors *ts;
    tiga_buffer *managed; /* NULL: memory of the caller */
    void *data;           /* NULL: managed, and not pinned */
    int64_t bytes, pins;
    tiga_pin pin; /* while pins > 0, of what is managed */
    void *owner;  /* of the caller's memory */
    void (*release)(void *owner);
} tensor_buffer;
/* Of any value, pinned for writing once: tensor_buffer_unpin when it is whole. */
tiga_status tensor_buffer_new(tiga_tensors *ts, int64_t bytes, tensor_buffer **out);
tensor_buffer *tensor_buffer_take(tiga_tensors *ts, tiga_buffer *managed); /* NULL: failed, nothing taken */
tensor_buffer *tensor_buffer_given(tiga_tensors *ts, void *data, int64_t bytes, void *owner, void (*release)(void *));
tensor_buffer *tensor_buffer_retain(tensor_buffer *b);
void tensor_buffer_put(tensor_buffer *b);
/* Counted.  Brings the bytes home, where they stay. */
tiga_status tensor_buffer_pin(tensor_buffer *b);
void tensor_buffer_unpin(tensor_buffer *b);
tiga_status tensor_pin(const tiga_tensor *x); /* REAL: its buffer, if it has one */
void tensor_unpin(const tiga_tensor *x);
tiga_status tensor_pin_all(tiga_tensor *const *xs, size_t n); /* or none */
void tensor_unpin_all(tiga_tensor *const *xs, size_t n);

/* ---- node.c ---- */
typedef enum tensor_kind { TENSOR_REAL, TENSOR_COMPUTE, TENSOR_MOVE } tensor_kind;

typedef enum tensor_move {
    MOVE_NONE,
    MOVE_RESHAPE,
    MOVE_PERMUTE, /* attr[0]: a nibble for each axis */
    MOVE_SLICE,   /* attr: axis, begin, step */
    MOVE_ALIAS,   /* the same elements under another name */
    MOVE_EXPAND,  /* the same elements, no axis stretched */
    MOVE_CONCAT,  /* attr[0]: axis */
    MOVE_GATHER,  /* operands x, index; attr[0]: axis */
    MOVE_SCATTER, /* adjoint of gather: operands values, index; attr[0]: axis */
    MOVE_PLACE,   /* adjoint of slice: zeros but there; attr: axis, begin, step */
    MOVE_CUMSUM,  /* attr: axis, reverse */
    MOVE_CALL     /* result of a call of a module, whose arguments are the operands; attr[0]: which result */
} tensor_move;

struct tiga_tensor {
    int64_t refs;
    tiga_tensors *ts;
    tensor_kind kind;
    uint8_t dtype, rank;
    bool weak;      /* a number without a type of its own */
    bool watched;   /* or descends from one that is */
    bool wanted;    /* by who realises: asked for, or known to nobody but what is; it may forget its origin */
    bool literal;   /* REAL: `value` is every element, and there is no buffer */
    bool constant;  /* a literal whose value is part of programs */
    bool even;      /* element by element from arrays of its own shape: may as well have one axis */
    bool ran;       /* COMPUTE: some program has computed it, on the way to something else */
    bool computed;  /* what it was made by was COMPUTE (else MOVE), when it has operands */
    uint8_t stretch; /* bit i: axis i, of another size than 1, repeats one element */
    uint8_t born;   /* stretch, as long as it ever was: gradients do not reach single repeats */
    uint16_t code;  /* ir_opcode or tensor_move */
    uint32_t n_args;
    tiga_tensor **args; /* few, or allocated */
    tiga_tensor *few[3];
    int64_t attr[3];
    int64_t shape[TENSOR_MAX_RANK];
    int64_t strides[TENSOR_MAX_RANK]; /* REAL, in elements */
    int64_t offset;                   /* REAL, in elements */
    tensor_buffer *buffer;
    ir_scalar_value value;
    tiga_tensor_execution how;
    tiga_array array;      /* for tiga_tensor_pin */
    tensor_buffer *shown;  /* whose memory that is; pinned once.  NULL: not shown, or a number */
    int32_t watchers;      /* tiga_tensor_pin without tiga_tensor_unpin */
    bool looked;           /* one more, by tiga_tensor_data */
    uint64_t epoch;   /* of the traversal that has seen it */
    uint32_t number;  /* in that traversal */
    int32_t level;
    int64_t uses; /* while it is realised: by what will forget it */
    struct tensor_called *called; /* of MOVE_CALL */
    uint32_t slot; /* while gradients are made: 1 + the place among what the loss depends on */
    tiga_tensor *next; /* among the dead */
};

typedef struct tensor_list {
    tiga_tensor **v;
    size_t n, cap;
} tensor_list;

typedef struct tensor_entry tensor_entry;
typedef struct tensor_export tensor_export;
struct tiga_tensors {
    int64_t refs; /* the user's, and one a tensor and a buffer */
    tiga_context *ctx;
    tiga_cache *cache;
    tiga_tensors_options options;
    tiga_tensors_counters counters;
    uint64_t epoch;
    tensor_list way, spare[2]; /* memory of traversals and of plans, empty between them */
    tensor_entry **table; /* open addressing */
    size_t n_entries, cap_entries;
    tiga_tensor *dead; /* nodes waiting to be freed */
    _Atomic(tensor_export *) back; /* what others have done with; anybody adds, who has the turn takes all */
};

/* The turn of this thread, until the block ends: at the head of every public function that looks at more than what a node was
 * made with.  Inside, tensors are counted by tensor_retain and tensor_free. */
#define TENSOR_TURN(ts) __attribute__((cleanup(tensor_turn_end), unused)) tiga_context *turn_ = tensor_turn(ts)
void tensor_take_back(tiga_tensors *ts); /* dlpack.c */
static inline tiga_context *tensor_turn(const tiga_tensors *ts) {
    tiga_context *ctx = ts ? ts->ctx : NULL;
    tiga_context_lock(ctx);
    if (ts && atomic_load_explicit(&((tiga_tensors *)(uintptr_t)ts)->back, memory_order_relaxed))
        tensor_take_back((tiga_tensors *)(uintptr_t)ts);
    return ctx;
}
static inline void tensor_turn_end(tiga_context **ctx) { tiga_context_unlock(*ctx); }
static inline tiga_tensor *tensor_retain(tiga_tensor *x) {
    x->refs++;
    return x;
}
void tensor_free(tiga_tensor *x); /* NULL is fine */

tiga_status tensor_fail(tiga_tensors *ts, tiga_status status, const char *fmt, ...) BASE_PRINTF(3, 4);
void tensor_home_put(tiga_tensors *ts);
/* A node without operands. NULL: out of memory, said so. */
tiga_tensor *tensor_new(tiga_tensors *ts, tensor_kind kind, int32_t dtype, int32_t rank, const int64_t *shape);
tiga_tensor *tensor_node(tensor_kind kind, uint16_t code, int32_t dtype, int32_t rank, const int64_t *shape,
                         tiga_tensor *const *args, uint32_t n_args); /* retains its operands */
void tensor_drop_args(tiga_tensor *x);
void tensor_shape_text(base_str *s, const tiga_tensor *x); /* "f32[3, 4]" */
bool tensor_same_shape(const tiga_tensor *a, const tiga_tensor *b);
/* *axis from the end when negative; false, said so, when it has no such axis. */
bool tensor_axis(const tiga_tensor *x, const char *who, int *axis);
/* All of one home, none NULL. NULL otherwise, said so where there is somewhere to say it. */
tiga_tensors *tensor_home_of(tiga_tensor *const *xs, int n, const char *who);
tiga_tensors *tensor_home_first(tiga_tensor *const *xs, int n); /* of the first that is not NULL; NULL: all are */
/* Of a call with one operand: *out is NULL, and the home of x. */
tiga_tensors *tensor_begin(tiga_tensor *x, tiga_tensor **out, const char *who);
/* Axes that repeat one element, or will again where what x is computed from stands for it. */
static inline uint8_t tensor_repeats(const tiga_tensor *x) { return (uint8_t)(x->stretch | (x->n_args ? x->born : 0)); }
/* Of sizes: beside one that is 0 the others may be anything, and so may a step of which none is taken. */
static inline int64_t tensor_times(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
void tensor_dense_strides(tiga_tensor *x);
bool tensor_is_dense(const tiga_tensor *x);
/* Number of elements before any size is too large: -1. */
int64_t tensor_count(int32_t dtype, int32_t rank, const int64_t *shape);

bool tensor_list_add(tensor_list *l, tiga_tensor *x);
void tensor_list_fini(tensor_list *l);
tensor_list tensor_list_take(tiga_tensors *ts); /* empty, with memory of an earlier one */
void tensor_list_give(tiga_tensors *ts, tensor_list *l);
/* Everything that `roots` need, operands first, each once; goes down from x where descend(x). */
bool tensor_postorder(tiga_tensors *ts, tiga_tensor *const *roots, size_t n, bool (*descend)(const tiga_tensor *x),
                      tensor_list *out);
/* Calls that make a chain of temporaries: frees what it is given. */
tiga_status tensor_give(tiga_status status, tiga_tensor *temporary);

/* ---- make.c ---- */
tiga_tensor *tensor_literal(tiga_tensors *ts, int32_t dtype, int32_t rank, const int64_t *shape, ir_scalar_value v);
/* REAL, with memory of its own, of any value and pinned once for writing. */
tiga_status tensor_fresh(tiga_tensors *ts, int32_t dtype, int32_t rank, const int64_t *shape, tiga_tensor **out);
tiga_status tensor_adopt(const tiga_tensor *number, int32_t dtype, tiga_tensor **out); /* weak to an element type */
tiga_status tensor_settle(tiga_tensor *x, tiga_tensor **out); /* x; a number that nothing gives a type: f32, or i64 */

/* ---- elementwise.c ---- */
/* An axis of the result repeats one element when it does in every operand that has it. */
uint8_t tensor_stretch_of(tiga_tensor *const *args, int n, const int64_t *shape, int rank);
int tensor_arithmetic_rank(int rank, const int64_t *shape); /* without leading axes of size 1 */
tiga_status tensor_elementwise(ir_opcode code, tiga_tensor *const *args, int n, tiga_tensor **out);
tiga_status tensor_op1(ir_opcode code, tiga_tensor *a, tiga_tensor **out);
tiga_status tensor_op2(ir_opcode code, tiga_tensor *a, tiga_tensor *b, tiga_tensor **out);

/* ---- complex.c ---- */
bool tensor_is_complex_function(ir_opcode code); /* abs exp log sqrt: made of real ones where the operand is complex */
tiga_status tensor_complex_function(ir_opcode code, tiga_tensor *z, tiga_tensor **out);

/* ---- shape.c ---- */
uint8_t tensor_stretch_kept(const tiga_tensor *x,
                            const tiga_tensor *y); /* y: x with axes of size 1 added or left out */
tiga_status tensor_view_of(tensor_move code, tiga_tensor *x, int32_t rank, const int64_t *shape, const int64_t *attr,
                           tiga_tensor **out);
tiga_status tensor_expand(tiga_tensor *x, tiga_tensor **out); /* x itself when nothing is stretched */
tiga_status tensor_newaxis(tiga_tensor *x, int axis, tiga_tensor **out);

/* ---- move.c ---- */
tiga_status tensor_move_run(tiga_tensor *x); /* operands are REAL; x becomes so */
tiga_status tensor_densify(tiga_tensor *x); /* REAL: dense memory of its own where it had none */
void tensor_become_real(tiga_tensor *x, tensor_buffer *b); /* takes b, dense and whole, and unpins it */
const void *tensor_memory(const tiga_tensor *x); /* REAL and pinned: first element */

/* ---- call_grad.c ---- */
typedef struct tensor_called tensor_called; /* a call that gradients may go through; counted */
tensor_called *tensor_called_new(tiga_module *m, const char *name, tiga_graph *const *graphs, int n_graphs,
                                 const tiga_tensor_binding *in, int n_in); /* NULL: out of memory */
void tensor_called_put(tensor_called *c);
void tensor_called_made(tensor_called *c, const char *result, const tiga_array *a); /* of each: what it is like */
/* A REAL node without memory yet. */
tiga_status tensor_called_result(tensor_called *c, const char *result, tiga_tensor *const *args, tiga_tensor **out);
/* Cotangents of those operands of x that are wanted; out[x->n_args], each an owner or NULL. */
tiga_status tensor_call_back(const tiga_tensor *x, tiga_tensor *cotangent, const bool *wanted, tiga_tensor **out);

/* ---- plan.c ---- */
typedef struct tensor_plan {
    tiga_tensors *ts;
    tensor_list items; /* numbered; leaves among them */
    tensor_list params; /* leaves that are arguments */
    tiga_tensor *const *roots;
    size_t n_roots;
    uint16_t *axis; /* [items.n][7]: symbol + 1 of each axis; 0: an axis of one element */
    int64_t *extent; /* [n_syms] */
    uint32_t n_syms, n_compute;
    uint64_t elements;
    bool flat; /* all arrays have one shape, nothing is folded: one axis will do */
    bool has_grad;
    base_str key;
    void *block;
    uint64_t small[400];
} tensor_plan;
/* What is needed to compute the roots; true and *moves when movements are among it (then it is no plan yet). */
bool tensor_plan_init(tensor_plan *p, tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, bool *moves);
void tensor_plan_fini(tensor_plan *p);
/* Leading axes of one element that IR shapes leave out. */
uint32_t tensor_plan_lead(const tensor_plan *p, const tiga_tensor *x);
uint32_t tensor_plan_rank(const tensor_plan *p, const tiga_tensor *x);
static inline const uint16_t *tensor_plan_axes(const tensor_plan *p, const tiga_tensor *x) {
    return p->axis + (size_t)x->number * TENSOR_MAX_RANK;
}

/* ---- again.c ---- */
/* The roots of p and what p would compute although it was computed before and is worth its memory; false: there is none (or no
 * memory for the list). */
bool tensor_plan_repeats(const tensor_plan *p, tensor_list *roots);
void tensor_plan_ran(const tensor_plan *p); /* before its results are taken */

/* ---- emit.c ---- */
ir_module *tensor_emit(const tensor_plan *p, base_arena *arena); /* one program @t; inside base_arena_catch */

/* ---- run.c ---- */
/* moves may be NULL: there are none.  Otherwise OK, nothing done, and *moves, when there are. */
tiga_status tensor_run(tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, bool *moves);
tiga_status tensor_text(tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, char **text);
void tensor_entries_drop(tiga_tensors *ts);
/* When a budget that counts code was too small: lets go of all that was compiled.  true: there was some, try again (said is
 * nothing then, if nothing was said `before`). */
bool tensor_code_drop(tiga_tensors *ts, tiga_status before);

/* ---- observe.c ---- */
tiga_status tensor_realize_operands(tiga_tensor *const *xs, int n); /* moves on the way to xs, not xs themselves */
tiga_status tensor_compute(tiga_tensor *const *xs, int n); /* xs themselves; wherever their memory is then */
void tensor_unwatch(tiga_tensor *x); /* one tiga_tensor_pin less */
void tensor_hide(tiga_tensor *x); /* what tiga_tensor_data has shown */
void tensor_forget_shown(tiga_tensor *x); /* x is freed */
const char *tensor_how_text(int32_t how);

#endif
