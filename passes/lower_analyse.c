/* What has to be known of a kernel before code is emitted.
 *
 * Reductions with axes fall into components: those that feed one another or a common result.  A component is tiled when
 * all of it has one shape, element by element, with an open or wide last axis; the rest is computed whole.  Levels
 * count the walks that must be over before a value is known. */
#include "passes/lower.h"
#include "passes/pass_util.h"

#include <string.h>

/* ---- shapes ---- */
bool lower_is_empty(const ir_type *t) {
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] == 0)
            return true;
    return false;
}

size_t lower_axes(const ir_type *t, ir_dim *out) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            out[n++] = t->dim[i];
    return n;
}

bool lower_is_scalar(const ir_type *t) {
    ir_dim axes[IR_MAX_RANK];
    return lower_axes(t, axes) == 0;
}

bool lower_same_axes(const ir_type *a, const ir_type *b) {
    ir_dim x[IR_MAX_RANK], y[IR_MAX_RANK];
    size_t n = lower_axes(a, x);
    return n == lower_axes(b, y) && memcmp(x, y, n * sizeof *x) == 0;
}

static bool same_shape(const ir_type *a, const ir_type *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]) == 0;
}

/* ---- live operations and what they are ---- */
static bool is_reduction(const ir_op *op) { return op->code == IR_REDUCE || op->code == IR_COMBINE; }

static void mark_live(lower *L) {
    for (uint32_t i = 0; i < L->ret->n_args; i++)
        L->info[L->ret->args[i]].live = true;
    for (size_t i = L->k->body.n; i-- > 0;) {
        ir_id id = L->k->body.ops[i];
        const ir_op *op = ir_at(L->k, id);
        for (uint32_t a = 0; L->info[id].live && a < op->n_args; a++)
            L->info[op->args[a]].live = true;
    }
}

static bool check_op(const lower *L, const ir_op *op, base_str *err) {
    if (op->code != IR_REDUCE)
        return true;
    ir_kind kind = ir_kind_of(op);
    if (kind < IR_KIND_SOFTMAX && op->n_args == 1)
        return true;
    base_str_addf(err, "lower: kernel %s: reduce %s must go through expand first", L->k->name, ir_kind_text(kind));
    return false;
}

/* ---- components ---- */
static uint32_t find(lower *L, uint32_t c) {
    while (L->info[c].comp != c)
        c = L->info[c].comp = L->info[L->info[c].comp].comp;
    return c;
}

/* comp of an operation that is no featured reduction points to one; of a featured reduction it is the tree. */
static uint32_t component(lower *L, ir_id id) { return L->info[id].comp ? find(L, L->info[id].comp) : 0; }

static void unite_args(lower *L, ir_id id) {
    const ir_op *op = ir_at(L->k, id);
    uint32_t comp = L->info[id].featured ? (L->info[id].comp = id) : 0;
    for (uint32_t a = 0; a < op->n_args; a++) {
        uint32_t other = component(L, op->args[a]);
        if (comp && other && comp != other)
            L->info[other].comp = comp;
        else if (other && !comp)
            comp = other;
    }
    L->info[id].comp = comp;
}

static void describe(lower *L, ir_id id) {
    const ir_op *op = ir_at(L->k, id);
    lower_info *in = &L->info[id];
    in->scalar = lower_is_scalar(lower_reduce_shape(L, id));
    in->empty = lower_is_empty(lower_reduce_shape(L, id));
    in->featured = is_reduction(op) && !in->scalar && !in->empty;
    in->edge_fold = op->type.space == IR_EDGE && (op->code == IR_FOLD || ir_is_shape_op(op->code));
    for (uint32_t a = 0; op->type.space == IR_EDGE && a < op->n_args; a++)
        in->edge_fold |= L->info[op->args[a]].edge_fold;
    in->scanned = op->code == IR_COMBINE && ir_is_scan(op);
    for (uint32_t a = 0; a < op->n_args; a++)
        in->scanned |= L->info[op->args[a]].scanned;
    unite_args(L, id);
}

/* The walk of a scan is its own, since it may go backwards, and what it gives is stored there. */
static bool check_scans(const lower *L, base_str *err) {
    ir_id scan = 0;
    for (size_t i = 0; i < L->k->body.n && !scan; i++)
        if (L->info[L->k->body.ops[i]].scanned && !L->info[L->k->body.ops[i]].empty)
            scan = L->k->body.ops[i]; /* the first of them is a scan */
    for (size_t i = 0; scan && i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        const lower_info *in = &L->info[id];
        bool same = in->level == L->info[scan].level, walks = is_reduction(ir_at(L->k, id)) && id != scan;
        if (in->live && !in->empty && ir_at(L->k, id)->code != IR_RET &&
            (in->scanned ? !same || walks : same && walks)) {
            base_str_addf(err, "lower: kernel %s: a scan needs a walk of its own", L->k->name);
            return false;
        }
    }
    return true;
}

/* ---- tiles ---- */
typedef struct component_facts {
    bool whole; /* tiles are impossible */
    const ir_type *shape;
    int64_t bytes; /* of its accumulators; < 0: not constant, or beyond counting */
    int64_t most; /* more go into tiles */
} component_facts;

/* A state of heads with few features: one walk computes what belongs to the heads side by side (pass fission), where tiles
 * would be a walk for each head. */
static bool has_heads(const lower *L, const ir_op *op) {
    bool several = false;
    for (uint32_t i = 0; op->code == IR_COMBINE && i < op->n_args / 2; i++) {
        const ir_type *t = &ir_at(L->k, op->args[i])->type;
        several = several || t->rank > 1;
        if (t->rank && (t->dim[t->rank - 1] < 0 || t->dim[t->rank - 1] > LOWER_HEAD_FEATURES))
            return false;
    }
    return several && !L->cuda;
}

static int64_t most_bytes(const lower *L, const ir_op *op) {
    return has_heads(L, op) ? LOWER_HEADS_BYTES : LOWER_WHOLE_BYTES;
}

static int64_t type_bytes(const ir_type *t, int64_t most) {
    int64_t n = (int64_t)ir_dtype_bytes(t->dtype);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0 || t->dim[i] > most)
            return -1;
        n *= t->dim[i];
        if (n > most)
            return -1;
    }
    return n;
}

static int64_t state_bytes(lower *L, const ir_op *op) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < op->n_args / 2; i++) {
        int64_t bytes = type_bytes(&ir_at(L->k, op->args[i])->type, most_bytes(L, op));
        if (bytes < 0)
            return -1;
        sum += bytes;
    }
    return sum;
}

static int64_t acc_bytes(lower *L, const ir_op *op) {
    if (op->code == IR_COMBINE)
        return state_bytes(L, op);
    const ir_type *arg = &ir_at(L->k, op->args[0])->type;
    int64_t value = type_bytes(&op->type, LOWER_WHOLE_BYTES), first = type_bytes(arg, LOWER_WHOLE_BYTES);
    if (value < 0 || first < 0)
        return -1;
    ir_kind kind = ir_kind_of(op);
    return kind == IR_KIND_ARGMIN || kind == IR_KIND_ARGMAX ? value + first : value;
}

static void add_reduction(lower *L, component_facts *c, ir_id id) {
    const ir_op *op = ir_at(L->k, id);
    const ir_type *shape = lower_reduce_shape(L, id);
    if (c->shape && !same_shape(c->shape, shape))
        c->whole = true;
    if (op->code == IR_COMBINE && !lower_combine_is_chain(L, id))
        c->whole = true;
    c->whole |= L->info[id].scanned;
    c->shape = shape;
    for (uint32_t a = 0; a < op->n_args; a++)
        c->whole |= L->info[op->args[a]].edge_fold;
    int64_t bytes = acc_bytes(L, op), most = most_bytes(L, op);
    c->most = !c->most || most < c->most ? most : c->most;
    c->bytes = bytes < 0 || c->bytes < 0 ? -1 : c->bytes + bytes;
}

static void judge_components(lower *L, component_facts *facts) {
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        uint32_t c = L->info[id].live ? component(L, id) : 0;
        if (!c)
            continue;
        const ir_op *op = ir_at(L->k, id);
        if (L->info[id].featured)
            add_reduction(L, &facts[c], id);
        else if (op->code == IR_FOLD || is_reduction(op) || op->code == IR_TOTAL || ir_is_shape_op(op->code))
            facts[c].whole = true; /* needs other elements than its own */
    }
    for (uint32_t i = 0; i < L->ret->n_args; i++) {
        ir_id v = L->ret->args[i];
        uint32_t c = component(L, v);
        if (c && (!facts[c].shape || !same_shape(facts[c].shape, &L->k->results[i].type) || L->info[v].edge_fold))
            facts[c].whole = true;
    }
}

/* By number of a walk: whether it goes through all features of an edge, as for a dot product. */
static bool *whole_walks(const lower *L, const uint32_t *walk) {
    bool *whole = base_arena_new_array(L->scratch, bool, L->k->n_ops + 2);
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        const ir_op *op = ir_at(L->k, id);
        whole[walk[id]] |= L->info[id].live && pass_walks_whole(L->k, op);
        for (uint32_t a = 0; L->info[id].live && is_reduction(op) && a < op->n_args; a++)
            whole[walk[id]] |= L->info[op->args[a]].edge_fold;
    }
    for (uint32_t i = 0; i < L->ret->n_args; i++)
        whole[walk[L->ret->args[i]] + 1] |= L->info[L->ret->args[i]].edge_fold;
    return whole;
}

/* By id: how many walks it takes to know the value when nothing is tiled; of a reduction, the number of its own. */
static uint32_t *number_walks(const lower *L) {
    uint32_t *walk = base_arena_new_array(L->scratch, uint32_t, L->k->n_ops);
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        const ir_op *op = ir_at(L->k, id);
        for (uint32_t a = 0; a < op->n_args; a++)
            walk[id] = walk[op->args[a]] > walk[id] ? walk[op->args[a]] : walk[id];
        walk[id] += is_reduction(op) && !L->info[id].empty;
    }
    return walk;
}

/* Where a walk fetches all features of an edge anyway, tiles would be a second walk: sums in memory cost less than that. */
static void join_whole_walks(lower *L, component_facts *facts) {
    const uint32_t *walk = number_walks(L);
    const bool *whole = whole_walks(L, walk);
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        if (L->info[id].live && L->info[id].featured && whole[walk[id]])
            facts[component(L, id)].whole = true;
    }
}

static void choose_tiles(lower *L) {
    component_facts *facts = base_arena_new_array(L->scratch, component_facts, L->k->n_ops);
    judge_components(L, facts);
    if (!L->cuda)
        join_whole_walks(L, facts);
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        uint32_t c = component(L, id);
        if (L->info[id].featured && c)
            L->info[id].tiled = !facts[c].whole && (facts[c].bytes < 0 || facts[c].bytes > facts[c].most);
    }
}

/* ---- levels ---- */
static void count_levels(lower *L, ir_id id) {
    const ir_op *op = ir_at(L->k, id);
    lower_info *in = &L->info[id];
    for (uint32_t a = 0; a < op->n_args; a++) {
        const lower_info *arg = &L->info[op->args[a]];
        in->level = arg->level > in->level ? arg->level : in->level;
        in->tiled_level = arg->tiled_level > in->tiled_level ? arg->tiled_level : in->tiled_level;
    }
    if (is_reduction(op) && !in->empty) {
        in->level += !in->tiled;
        in->tiled_level += in->tiled;
    }
}

/* ---- folds that need no array: used in one nest only, whose outer loops are just the axes of the fold ---- */
typedef struct fold_root {
    const ir_type *shape; /* of the nest */
    ir_space space;
    bool no_inline; /* the nest is tiled, or belongs to a fold */
    bool inner_score; /* shape is a score with further loops inside */
    bool *scalar_nest;
} fold_root;

/* Axes of t as a mask of positions counted from the right. */
static unsigned axis_mask(const ir_type *t) {
    unsigned mask = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            mask |= 1u << (t->rank - 1 - i);
    return mask;
}

/* Are the axes of `inner` the leading axes of `outer`? */
static bool leads(unsigned inner, unsigned outer) {
    if ((inner & outer) != inner)
        return false;
    unsigned rest = outer & ~inner;
    return rest == 0 || rest < (inner & (~inner + 1));
}

static void visit_fold(lower *L, ir_id id, const fold_root *root, bool **nest) {
    const ir_type *t = &ir_at(L->k, id)->type;
    lower_info *in = &L->info[id];
    if (in->scalar || in->empty)
        return;
    unsigned own = axis_mask(t), all = axis_mask(root->shape);
    in->uses += root->no_inline || root->space != t->space || !leads(own, all) ? 2 : 1;
    nest[id] = own == all && !root->inner_score ? root->scalar_nest : NULL;
}

static void visit_root(lower *L, ir_id value, const fold_root *root, bool **nest, ir_id *stack) {
    size_t n = 0;
    uint32_t mark = ++L->next_mark;
    stack[n++] = value;
    L->info[value].mark = mark;
    while (n) {
        ir_id id = stack[--n];
        const ir_op *op = ir_at(L->k, id);
        if (op->code == IR_FOLD)
            visit_fold(L, id, root, nest);
        if (op->code == IR_FOLD || is_reduction(op) || op->code == IR_TOTAL || ir_is_shape_op(op->code) ||
            L->info[id].stored)
            continue; /* these have nests of their own */
        for (uint32_t a = 0; a < op->n_args; a++)
            if (L->info[op->args[a]].mark != mark) {
                L->info[op->args[a]].mark = mark;
                stack[n++] = op->args[a];
            }
    }
}

/* Each value that an edge brings to the state; those with fewer axes than the widest are like scores. */
static void visit_combine(lower *L, ir_id id, bool **nest, ir_id *stack) {
    const ir_op *op = ir_at(L->k, id);
    bool chain = lower_combine_is_chain(L, id);
    for (uint32_t i = op->n_args / 2; i < op->n_args; i++) {
        fold_root root = {.shape = &ir_at(L->k, op->args[i])->type,
                          .space = IR_EDGE,
                          .no_inline = L->info[id].tiled || !chain,
                          .scalar_nest = &L->info[id].scalar_nest};
        root.inner_score = !lower_same_axes(root.shape, lower_reduce_shape(L, id));
        visit_root(L, op->args[i], &root, nest, stack);
    }
}

static void visit_reduction(lower *L, ir_id id, bool **nest, ir_id *stack) {
    const ir_op *op = ir_at(L->k, id);
    if (op->code == IR_COMBINE) {
        visit_combine(L, id, nest, stack);
        return;
    }
    fold_root root = {
        .shape = &op->type, .space = IR_EDGE, .no_inline = L->info[id].tiled, .scalar_nest = &L->info[id].scalar_nest};
    if (op->code == IR_TOTAL)
        root = (fold_root){
            .shape = &ir_at(L->k, op->args[0])->type, .space = IR_ROW, .scalar_nest = &L->info[id].scalar_nest};
    visit_root(L, op->args[0], &root, nest, stack);
}

static void visit_results(lower *L, bool **nest, ir_id *stack) {
    for (uint32_t i = 0; i < L->ret->n_args; i++) {
        ir_id v = L->ret->args[i];
        fold_root root = {.shape = &L->k->results[i].type,
                          .space = L->k->results[i].type.space,
                          .scalar_nest = &L->result_scalar_nest[i]};
        root.no_inline = L->info[v].tiled_level > 0;
        visit_root(L, v, &root, nest, stack);
    }
}

static void choose_inline_folds(lower *L) {
    bool **nest = base_arena_new_array(L->scratch, bool *, L->k->n_ops);
    ir_id *stack = base_arena_new_array(L->scratch, ir_id, L->k->n_ops + 1);
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        const ir_op *op = ir_at(L->k, id);
        if (!L->info[id].live || L->info[id].empty)
            continue;
        if (is_reduction(op) || op->code == IR_TOTAL) {
            visit_reduction(L, id, nest, stack);
        } else if (op->code == IR_FOLD || ir_is_shape_op(op->code) || L->info[id].stored) {
            fold_root root = {.shape = &op->type, .space = op->type.space, .no_inline = true};
            for (uint32_t a = 0; a < op->n_args; a++)
                visit_root(L, op->args[a], &root, nest, stack);
        }
    }
    visit_results(L, nest, stack);
    for (ir_id id = 1; id < L->k->n_ops; id++) {
        L->info[id].inline_fold = L->info[id].uses == 1;
        if (L->info[id].inline_fold && nest[id])
            *nest[id] = true;
    }
}

/* ---- long chains ---- */
/* Cost is the number of operations that one more nest around the value would repeat. */
static void count_cost(lower *L, ir_id id) {
    const ir_op *op = ir_at(L->k, id);
    lower_info *in = &L->info[id];
    bool elementwise = ir_class_is_elementwise(ir_op_describe(op->code)->cls);
    in->cost = 1;
    for (uint32_t a = 0; a < op->n_args; a++) {
        const lower_info *arg = &L->info[op->args[a]];
        in->folds = arg->folds > in->folds ? arg->folds : in->folds;
        if (elementwise && ir_at(L->k, op->args[a])->type.space == op->type.space && in->cost < 1u << 20)
            in->cost += arg->cost;
    }
    in->folds += op->code == IR_FOLD || ir_is_shape_op(op->code);
    if (elementwise && in->cost > LOWER_STORE_COST && in->users > 1 && !in->scalar && !in->empty &&
        op->type.space != IR_UNIFORM && in->tiled_level == 0) {
        in->stored = true;
        in->cost = 1;
    }
}

static bool choose_stored(lower *L, base_str *err) {
    for (size_t i = 0; i < L->k->body.n; i++) {
        const ir_op *op = ir_at(L->k, L->k->body.ops[i]);
        for (uint32_t a = 0; L->info[L->k->body.ops[i]].live && a < op->n_args; a++)
            L->info[op->args[a]].users += a == 0 || op->args[a] != op->args[a - 1];
    }
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        if (L->info[id].live)
            count_cost(L, id);
        if (L->info[id].folds > LOWER_MAX_FOLDS) {
            base_str_addf(err, "lower: kernel %s: more than %d folds depend on one another", L->k->name,
                          LOWER_MAX_FOLDS);
            return false;
        }
    }
    return true;
}

bool lower_analyse(lower *L, base_str *err) {
    mark_live(L);
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        if (!L->info[id].live)
            continue;
        if (!check_op(L, ir_at(L->k, id), err))
            return false;
        describe(L, id);
    }
    choose_tiles(L);
    for (size_t i = 0; i < L->k->body.n; i++)
        if (L->info[L->k->body.ops[i]].live)
            count_levels(L, L->k->body.ops[i]);
    if (!check_scans(L, err) || !choose_stored(L, err))
        return false;
    choose_inline_folds(L);
    return true;
}
