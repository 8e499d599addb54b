/* Does it pay to make one kernel of two calls?
 *
 * Fusing saves the array between the two, and a second pass over the edges' columns.  It costs when
 *   - an operation that ran once per row would run once per edge: only a few cheap ones may, and only when the walk then
 *     gathers no more bytes from the source rows than before (rows are read in order, sources at random);
 *   - a reduction with features is walked in tiles of its features: a fold over features, or another reduction that
 *     is not walked in the same tiles, would need the whole row at once;
 *   - one kernel would have more arrays than a call should have. */
#include "passes/fuse.h"

enum { OPEN = 64, WHOLE_BYTES = 512 }; /* elements assumed for an open dimension; as in lower */

static int64_t bytes_of(const ir_type *t) {
    int64_t n = (int64_t)ir_dtype_bytes(t->dtype);
    for (uint32_t i = 0; i < t->rank; i++)
        n *= ir_dim_is_sym(t->dim[i]) ? OPEN : t->dim[i] < (1 << 20) ? t->dim[i] : 1 << 20;
    return n;
}

/* ---- work per edge ---- */
static bool is_dear(const ir_op *op) { return pass_is_dear(op) || op->code == IR_FOLD || ir_is_shape_op(op->code); }

/* More than a few additions for each row; what is uniform is computed once. */
static bool is_much(const ir_func *k) {
    unsigned n = 0;
    for (size_t i = 0; i < k->body.n; i++) {
        const ir_op *op = ir_at(k, k->body.ops[i]);
        if (op->type.space == IR_UNIFORM || op->code == IR_FIELD)
            continue;
        if (is_dear(op))
            return true;
        n += ir_class_is_elementwise(ir_op_describe(op->code)->cls);
    }
    return n > FUSE_CHEAP;
}

/* Bytes that the fields of the first take per source row, less what the second gathers anyway. */
static int64_t gathered(const fuse_pair *x) {
    int64_t n = 0;
    for (uint32_t i = 0; i < x->first.op->n_args; i++) {
        const ir_param *p = &x->first.kernel->params[i];
        bool known = p->role == IR_PARAM_FIELD;
        for (uint32_t k = 0; k < x->second.op->n_args; k++) {
            ir_role r = x->second.kernel->params[k].role;
            known |= x->second.op->args[k] == x->first.op->args[i] && (r == IR_SRC || r == IR_NODE);
        }
        n += known ? 0 : bytes_of(&p->type);
    }
    return n;
}

static const char *objection_at_sources(const fuse_pair *x) {
    int64_t saved = 0;
    for (size_t i = 0; i < x->first.kernel->n_results; i++) {
        if (x->kept[i])
            return "its result is needed elsewhere too, so it would be written all the same";
        saved += bytes_of(&x->first.kernel->results[i].type);
    }
    if (gathered(x) > saved)
        return "the walk would gather more bytes per edge than it does now";
    return is_much(x->first.kernel) ? "it would be computed for every edge instead of once for every row" : NULL;
}

/* ---- tiles ---- */
/* The state of a combine that has most axes. */
static const ir_type *widest(const ir_func *k, const ir_op *combine) {
    const ir_type *t = NULL;
    for (uint32_t i = 0; i < combine->n_args / 2; i++) {
        const ir_type *own = &ir_at(k, combine->args[i])->type;
        t = !t || own->rank > t->rank ? own : t;
    }
    return t;
}

/* What one element of a reduction's state is an element of; NULL: no reduction.  A state that knows who has the maximum
 * counts as that maximum, whose walk it shares (lower_winners.c). */
static const ir_type *reduced(const ir_func *k, const ir_op *op, int64_t *bytes) {
    const ir_type *t = op->code == IR_REDUCE ? &op->type : op->code == IR_COMBINE ? widest(k, op) : NULL;
    bool best = op->code == IR_COMBINE && ir_int(op, IR_ATTR_WINNERS, 0);
    *bytes = op->code == IR_REDUCE || best ? bytes_of(t) : 0;
    for (uint32_t i = 0; op->code == IR_COMBINE && !best && i < op->n_args / 2; i++)
        *bytes += bytes_of(&ir_at(k, op->args[i])->type);
    return t;
}

/* One walk for all features, though their number is open (lower_analyse.c). */
static bool walks_whole(const fuse *f, const ir_func *k) {
    bool whole = false;
    for (size_t i = 0; !f->cuda && !whole && i < k->body.n; i++)
        whole = pass_walks_whole(k, ir_at(k, k->body.ops[i]));
    return whole;
}

/* A reduction with an open or wide row of features. */
static const ir_type *tiled(const fuse *f, const ir_func *k, const ir_type *not_like) {
    bool whole = walks_whole(f, k);
    for (size_t i = 0; !whole && i < k->body.n; i++) {
        int64_t bytes;
        const ir_type *t = reduced(k, ir_at(k, k->body.ops[i]), &bytes);
        if (!t || t->rank == 0)
            continue;
        bool wide = ir_dim_is_sym(t->dim[t->rank - 1]) || bytes > WHOLE_BYTES;
        if (wide && !(not_like && ir_shape_equal(not_like, t)))
            return t;
    }
    return NULL;
}

static bool has_reduction(const ir_func *k) {
    for (size_t i = 0; i < k->body.n; i++) {
        ir_opcode c = ir_at(k, k->body.ops[i])->code;
        if (c == IR_REDUCE || c == IR_COMBINE)
            return true;
    }
    return false;
}

/* States of several shapes, numbers apart: they may take a walk each. */
static bool has_shapes(const ir_func *k, const ir_op *combine) {
    const ir_type *t = widest(k, combine);
    for (uint32_t i = 0; i < combine->n_args / 2; i++) {
        const ir_type *own = &ir_at(k, combine->args[i])->type;
        if (own->rank && !ir_shape_equal(own, t))
            return true;
    }
    return false;
}

static bool mixes_features(const ir_func *k) {
    for (size_t i = 0; i < k->body.n; i++) {
        const ir_op *op = ir_at(k, k->body.ops[i]);
        bool mixes = op->code == IR_FOLD || ir_is_shape_op(op->code);
        if ((op->code == IR_COMBINE && has_shapes(k, op)) || (mixes && op->type.space != IR_UNIFORM))
            return true;
    }
    return false;
}

/* The shape in dimensions of the program. */
static ir_type in_program(const fuse_side *s, const ir_type *t) {
    ir_type out = *t;
    for (uint32_t i = 0; i < t->rank; i++)
        if (ir_dim_is_sym(t->dim[i]))
            out.dim[i] = s->dims[ir_dim_sym_index(t->dim[i])];
    return out;
}

static const char *objection_of_tiles(const fuse_pair *x) {
    const ir_type *a = tiled(x->f, x->first.kernel, NULL), *b = tiled(x->f, x->second.kernel, NULL);
    if ((!a || walks_whole(x->f, x->second.kernel)) && (!b || walks_whole(x->f, x->first.kernel)))
        return NULL; /* what the other tiles joins the one that walks once */
    if (mixes_features(x->first.kernel) || mixes_features(x->second.kernel))
        return "one walks in tiles of its features, the other needs all features of a row at once";
    if (x->first.graph < 0 || x->second.graph < 0 || !has_reduction(x->first.kernel) ||
        !has_reduction(x->second.kernel))
        return NULL;
    if (!a || !b)
        return "one walks in tiles of its features, the other walks once";
    ir_type s = in_program(&x->first, a), t = in_program(&x->second, b);
    bool same = ir_shape_equal(&s, &t) && !tiled(x->f, x->first.kernel, a) && !tiled(x->f, x->second.kernel, b);
    return same ? NULL : "their reductions are walked in different tiles";
}

/* Of what it gives nothing may be computed that another walk is needed for. */
static bool has_scan(const ir_func *k) {
    for (size_t i = 0; i < k->body.n; i++) {
        const ir_op *op = ir_at(k, k->body.ops[i]);
        if (op->code == IR_COMBINE && ir_is_scan(op))
            return true;
    }
    return false;
}

static bool goes_to_winners(const ir_func *k) {
    for (size_t i = 0; ir_transposed(k) && i < k->body.n; i++) {
        const ir_op *op = ir_at(k, k->body.ops[i]);
        if (op->code == IR_SELECT && ir_int(op, IR_ATTR_WINNERS, 0))
            return true;
    }
    return false;
}

const char *fuse_objection(const fuse_pair *x) {
    if (goes_to_winners(x->first.kernel) || goes_to_winners(x->second.kernel))
        return "one gives to the edges that won and looks at no others";
    if (has_scan(x->first.kernel) || has_scan(x->second.kernel))
        return "one goes from edge to edge and keeps what each meets";
    size_t results = x->second.kernel->n_results;
    for (size_t i = 0; i < x->first.kernel->n_results; i++)
        results += x->kept[i];
    if (results > FUSE_RESULTS || x->first.kernel->n_params + x->second.kernel->n_params > FUSE_FIELDS)
        return "the kernel would have too many arrays";
    const char *why = objection_of_tiles(x);
    if (!why && x->first_mode == FUSE_EDGES && tiled(x->f, x->second.kernel, NULL) && is_much(x->first.kernel))
        why = "it would be computed again in every tile of the features";
    return !why && x->first_mode == FUSE_SOURCES ? objection_at_sources(x) : why;
}
