/* What the files of the grad pass share.
 *
 * grad_rules.c     one operation: cotangent of the result to cotangents of the operands; kernels and programs alike
 * grad_shape.c     the same for operations that change shapes, and matmul
 * grad_reduce.c    the same for reductions over the edges of a row
 * grad_winners.c   maximum and minimum of a field of the sources: what comes back to the edges that won
 * grad_states.c    reducers of the user: how the values of the state depend on one another
 * grad_order.c     does the order of the edges matter to them?
 * grad_join.c      one step of a reducer of the user's, as operations to be gone through backwards
 * grad_mixed.c     reducers of the user from the edge and the end of the row alone
 * grad_steps.c     the same edge by edge, from what each of them meets
 * grad_parts.c     those with states of features: a few features at a time
 * grad_stages.c    for them: what leads to the state of a reducer, and what is made of it, as two kernels
 * grad_cut.c       for them: the first of the two for some features of the state
 * grad_adjoint.c   one kernel: its operations and, behind them, the reverse sweep, in one function that is never run
 * grad_split.c     the kernels that are cut out of it: by rows, by sources (the transposed relation), totals
 * grad_ahead.c     what the one by rows makes for each edge, for the one by sources
 * grad_call.c      the calls of those kernels in a program, in place of the gradient of a call
 * grad_program.c   the reverse sweep over the operations of a program
 * grad_control.c   the same through repeat (with checkpoints), while and if
 * grad.c           the pass */
#ifndef TIGA_PASSES_GRAD_H
#define TIGA_PASSES_GRAD_H

#include "passes/pass_util.h"

/* ---- grad_rules.c ---- */
/* Who takes the contributions.  A value may be narrower than the operand it is for: whatever broadcasts to it. */
typedef struct grad_sink {
    ir_builder *b;
    void *user;
    bool (*wanted)(void *user, ir_id v);
    void (*add)(void *user, ir_id v, const ir_op *by, ir_id value); /* `by` uses v */
    const ir_func *(*by_winners)(void *user, ir_id reduce,
                                 ir_id ct); /* the kernel, when its winners are given it; or NULL */
} grad_sink;

/* Elementwise operations, broadcast, newaxis, fold.  `id` is the operation, ct the cotangent of its value. */
void grad_rule(grad_sink *s, ir_id id, ir_id ct);
/* grad_shape.c: the operations that change shapes, and matmul. */
void grad_shape_rule(grad_sink *s, ir_id id, ir_id ct);
/* Emitting: elementwise operations of one and two operands, a float constant of v's type, a choice. */
ir_id grad_op1(ir_builder *b, ir_opcode code, ir_id a);
ir_id grad_op2(ir_builder *b, ir_opcode code, ir_id a, ir_id c);
ir_id grad_select(ir_builder *b, ir_id c, ir_id x, ir_id y);
ir_id grad_number(ir_builder *b, ir_id like, double x);
ir_id grad_conj(ir_builder *b, ir_id v);               /* v itself when it is not complex */
ir_id grad_cast(ir_builder *b, ir_dtype to, ir_id v);  /* v itself when it is of that type */
ir_id grad_full(ir_builder *b, ir_id v, const ir_type *shape); /* v broadcast to the shape, where it is not yet */
ir_id grad_newaxis(ir_builder *b, ir_id v, uint64_t axes);     /* v itself when axes is 0 */
ir_id grad_fold_sum(ir_builder *b, ir_id v, uint64_t axes);    /* v itself when axes is 0 */

/* ---- grad_reduce.c ---- */
void grad_reduce_rule(grad_sink *s, ir_id id, ir_id ct);
/* What reaches an edge's v: an equal part of ct where the edge has `tied`, 0 elsewhere; ct times the other edges' v. */
ir_id grad_extreme(ir_builder *b, ir_id tied, ir_id v, ir_id ct);
ir_id grad_product(ir_builder *b, ir_id v, ir_id ct);

/* ---- grad_winners.c ---- */
/* Whether a maximum or minimum of the kernel goes back by its winners, ct being a value of the adjoint. */
bool grad_has_winners(const ir_func *k, const ir_func *adjoint, ir_id reduce, ir_id ct);
ir_id grad_winners(ir_builder *b, const ir_func *k, ir_id reduce, ir_id ct); /* what comes back to an edge */
bool grad_is_winners(const ir_func *f, ir_id v);

/* ---- grad_states.c ---- */
typedef enum grad_way { GRAD_ALONE, GRAD_CHOSEN, GRAD_MIXED } grad_way;
/* A reducer of the user: how each of the n values of its state is combined. */
typedef struct grad_states {
    const ir_func *f;
    base_arena *scratch;
    ir_id id; /* of the combine */
    const ir_region *region;
    size_t n;
    size_t *place; /* by id: where in the region; SIZE_MAX: not there */
    grad_way *way;
    ir_kind *kind; /* ALONE: sum, prod, min or max */
    bool **uses; /* [i][j]: a derivative goes from value j, of either side, to the new value i */
    bool **needs; /* the same, through other values too */
    bool **keys; /* CHOSEN: [i][j]: value j has a part in the choice */
    bool steps; /* what is MIXED is done edge by edge; always so when the combine is a scan itself */
    bool in_parts; /* some features at a time: states of features that are done edge by edge */
    const char *refused; /* what it does that has no gradient; NULL: all is well */
} grad_states;

grad_states grad_states_of(const ir_func *f, ir_id combine, base_arena *scratch);
/* By value of the left side: does a derivative go from it to the new value i? */
const bool *grad_left_sources(const grad_states *s, size_t i);
bool grad_uses_outside(const grad_states *s); /* combine, a value that may have a gradient and is no state */

/* ---- grad_order.c ---- */
bool grad_order_matters(const grad_states *s);

/* ---- grad_join.c ---- */
/* combine(x, y), x and y being values that there are, as operations behind one another. */
typedef struct grad_join {
    const grad_states *s;
    ir_builder *b;
    const ir_type *wide;
    ir_id first; /* copy of the operation number k of the region: first + k */
    bool *reach; /* by k: depends on the state of either side */
    ir_id *ct; /* by k */
} grad_join;

/* sides: x, then y; wide: their shape, when it is not that of every state, NULL: it is */
grad_join grad_join_of(const grad_states *s, ir_builder *b, const ir_id *sides, const ir_type *wide);
/* The cotangents that x[i], 0: none, of the new values give: of the left side in [j], of the right one in [n + j]. */
const ir_id *grad_join_back(grad_join *u, const ir_id *x);

/* ---- grad_steps.c ---- */
const char *grad_steps_refused(const grad_states *s); /* why it is not gone through edge by edge; NULL: it can be */
bool grad_steps_fit(const grad_states *s); /* as it is, not only in parts */
void grad_steps_rule(grad_sink *k, const grad_states *s, const ir_id *ct);

/* ---- grad_mixed.c ---- */
bool grad_in_circle(const grad_states *s, size_t i, size_t j); /* do i and j need one another, through others too? */
/* ct: of the values of the row's state, 0: none. */
void grad_states_rule(grad_sink *k, const grad_states *s, const ir_id *ct);

/* ---- grad_adjoint.c ---- */
/* What reaches one field of the kernel, by where it arises; 0: nothing. */
typedef struct grad_field {
    ir_id src; /* per edge, to be summed at the source */
    ir_id edge; /* per edge, as it is */
    ir_id row; /* per row, as it is; of params to be summed over the rows */
} grad_field;

typedef struct grad_adjoint {
    const ir_func *k; /* the kernel */
    ir_func *f; /* its operations and the sweep; in no module's list once it is split */
    grad_field *field; /* [k->n_params] */
    uint32_t *cotangent; /* [k->n_results]: parameter of f, UINT32_MAX: none */
    uint32_t *
        known; /* [k->n_results]: parameter of f that holds the result itself, a row field or, of a scan, an edge field */
} grad_adjoint;

/* wanted: [n_params], given: [n_results] has a cotangent. */
/* winners: gradients of maxima may be given to the winners. */
grad_adjoint grad_adjoint_of(ir_module *m, const ir_func *k, const bool *wanted, const bool *given, bool winners,
                             base_arena *scratch);

/* ---- grad_split.c ---- */
/* Where an argument or a result of one of the kernels is found. */
typedef enum grad_from_kind {
    GRAD_FROM_ARG,
    GRAD_FROM_COTANGENT,
    GRAD_FROM_RESULT,
    GRAD_FROM_ROWS,
    GRAD_FROM_SCANS
} grad_from_kind;
typedef struct grad_from {
    grad_from_kind kind;
    size_t index; /* of the parameter, of the result of the kernel, of that of `rows`, among those of all `scans` */
} grad_from;

typedef struct grad_kernel {
    const ir_func *f; /* NULL: not needed */
    grad_from *args;
    size_t n_args, cap_args;
} grad_kernel;

/* The gradient of one parameter: a sum of results of the kernels; SIZE_MAX: no such part. */
typedef struct grad_parts {
    size_t rows, turned, totals;
    size_t winners; /* which of those kernels */
} grad_parts;

typedef struct grad_kernels {
    grad_kernel *scans; /* walk as the kernel does and keep something for each edge; called one after the other */
    size_t n_scans, cap_scans;
    uint32_t n_scan_results;
    grad_kernel
        rows; /* walks as the kernel does: row values the others need, edge values made ahead, gradients per row */
    grad_kernel turned; /* walks the other way: gradients of sources, and of edges on the way */
    grad_kernel *winners; /* the same for one source field each, given to the edges that won */
    size_t n_winners, cap_winners;
    grad_kernel totals; /* gradients of params: sums over all rows */
    grad_parts *parts; /* [k->n_params] */
} grad_kernels;

/* ahead: edge values may be made ahead of the turned kernel. */
grad_kernels grad_split(ir_module *m, const grad_adjoint *a, const char *name, bool ahead, base_arena *scratch);

/* ---- grad_ahead.c ---- */
/* By id of the adjoint: the edge values that `rows` makes for `turned`.  NULL: none.  known: by id, 1 + the parameter of
 * the adjoint that holds the value, 0: none. */
const bool *grad_ahead(const grad_adjoint *a, const ir_id *known, base_arena *scratch);

/* ---- grad_call.c ---- */
typedef struct grad_cached grad_cached;

typedef struct grad_staged grad_staged;

/* One program. */
typedef struct grad {
    ir_module *m;
    ir_func *f;
    base_arena *scratch;
    base_str *err;
    grad_cached **cache; /* kernels made so far, of all programs */
    grad_staged **staged; /* kernels taken apart so far, likewise */
    bool cuda;
    bool again; /* what is made now is differentiated itself later on */
} grad;

/* The kernels' calls, emitted with b: cotangent[i] of result i (0: none), gradients of the operands for which
 * out[i] != 0 on entry; on return out[i] is the gradient, 0 when nothing reaches the operand. */
bool grad_call(grad *g, ir_builder *b, ir_id call, const ir_id *cotangent, ir_id *out);
/* A call of `made`, a kernel made of k, on the graph on which `like` calls k. */
ir_id grad_emit_call(grad *g, ir_builder *b, const ir_op *like, const ir_func *k, const ir_func *made,
                     const ir_id *args, size_t n_args);
ir_id grad_get_result(grad *g, ir_builder *b, ir_id call, const ir_func *k, size_t i);
ir_dim grad_call_dim(grad *g, const ir_op *call, const ir_func *k, ir_dim d); /* a size of k in those of the program */

/* ---- grad_stages.c ---- */
typedef struct grad_stages {
    const ir_func *states; /* the fields of the kernel to the values of the state at the end of the row */
    const ir_func *rest; /* the fields, and behind them those values, to the results of the kernel */
    size_t n_results, *result; /* by value of the state: which result of `states`; SIZE_MAX: not used */
} grad_stages;
grad_stages grad_stages_of(grad *g, const ir_func *k, ir_id combine);
/* A new kernel, called after `base` and what it does; a copy of `like` when that is not NULL. */
ir_func *grad_new_kernel(grad *g, const char *base, const char *what, const ir_func *like);

/* ---- grad_cut.c ---- */
#define GRAD_NO_AXIS (-1)
/* Which axis of the state each axis of a value is, counted from the last; GRAD_NO_AXIS: one of size 1. */
typedef struct grad_place {
    signed char pos[IR_MAX_RANK];
} grad_place;
grad_place grad_place_of_state(const ir_type *t);
bool grad_place_is_wide(const grad_place *p, uint32_t rank, int64_t width); /* has a part `width` elements, or one? */

typedef struct grad_cut_arg {
    size_t param; /* of the kernel that was cut */
    bool cut; /* a part of it; else all */
    grad_place place;
} grad_cut_arg;

typedef struct grad_cut {
    const ir_func *f; /* parameters: where the part is, by position; then args.  Results: those of `states` */
    grad_cut_arg *args;
    size_t n_args, cap_args;
    uint32_t rank; /* of the state */
    ir_dim size[IR_MAX_RANK]; /* by position */
    int64_t width; /* of a part on the last axis */
    bool *has; /* by result: is it the state's?  Else it is of another family */
} grad_cut;
size_t grad_cuts_of(grad *g, const grad_states *s, const grad_stages *st,
                    grad_cut **out); /* by family of sizes; how many */
/* Elements of v; at: by position, where the part is. */
ir_id grad_take_part(ir_builder *b, ir_id v, const grad_place *p, const ir_id *at, int64_t width);
ir_id grad_numbers(ir_builder *b, ir_dim n); /* 0, 1, 2, ... */

/* ---- grad_parts.c ---- */
/* As grad_call; combine: of the kernel that is called, one that is gone through edge by edge but for its size. */
bool grad_call_parts(grad *g, ir_builder *b, ir_id call, ir_id combine, const ir_id *cotangent, ir_id *out);

/* ---- grad_program.c ---- */
/* A reverse sweep over a list of operations of a program, in order; arrays by id, of the operations there are at its
 * beginning.  `b` is where the code goes. */
typedef struct grad_sweep {
    grad *g;
    ir_builder *b;
    ir_id *order;
    size_t n, cap;
    uint32_t n_ops;
    bool *active; /* depends on what is asked for */
    bool pushed; /* something active went onto the stack, so what comes off it is */
    ir_id *ct; /* cotangent so far, 0: none */
    ir_id **member; /* of a tuple: cotangents of its members */
} grad_sweep;

grad_sweep grad_sweep_new(grad *g, ir_builder *b);
void grad_sweep_forward(grad_sweep *p, const ir_id *wrt, size_t n_wrt); /* finds what is active */
bool grad_sweep_back(grad_sweep *p); /* after the cotangents of the outputs were given with grad_take */
/* The cotangent of v in its full shape, zeros when nothing reached it. */
ir_id grad_result(grad_sweep *p, ir_id v);
void grad_take(grad_sweep *p, ir_id v, ir_id value); /* adds to the cotangent of v, when v is active */
void grad_add(grad_sweep *p, ir_id *place, ir_id value);
ir_id *grad_members(grad_sweep *p, ir_id tuple);
/* Puts code in the place of operation `at` of region r, which is a grad. */
bool grad_expand(grad *g, ir_region *r, size_t at);

/* ---- grad_control.c ---- */
/* Code for the body of a repeat goes where the builder stands between begin and end. */
typedef struct grad_loop {
    grad *g;
    ir_builder *b;
    ir_region *outer;
    ir_id id;
    ir_id *arg; /* what a round begins with */
    size_t n;
} grad_loop;
grad_loop grad_loop_begin(grad *g, ir_builder *b, ir_id count, const ir_id *start, size_t n);
void grad_loop_end(grad_loop *l, ir_id *values); /* what is yielded; on return what the repeat gives */
bool grad_repeat(grad_sweep *p, ir_id id);
bool grad_if(grad_sweep *p, ir_id id);

#endif
