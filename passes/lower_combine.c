/* Reductions with a state of the user's: `combine`.
 *
 * The values of a state are places.  When the axes of each are the first axes of the widest (a chain), one nest updates
 * them all: values are read, combined and set at the depth of their own axes, so a narrow value is known before the loops
 * over the rest begin, and every read of an old value comes before its set.  Other states take two steps: all new
 * values into places of their own, then all of these into the state.
 *
 * A scan is the same; what it gives is read on its walk, before the edge changes it (store_scanned in lower_nest.c).
 *
 * With {lanes = 16} a state of scalars has 16 copies, one per slot; `lower_combine_end` combines them by distance 8, 4, 2, 1. */
#include "passes/lower.h"

#include <string.h>

static uint32_t n_values(const ir_op *op) { return op->n_args / 2; }
static ir_id lifted(const lower *L, ir_id id, uint32_t v) {
    const ir_op *op = ir_at(L->k, id);
    return op->args[n_values(op) + v];
}
static const ir_type *type_of(const lower *L, ir_id id, uint32_t v) {
    return &ir_at(L->k, ir_at(L->k, id)->args[v])->type;
}
static ir_id region_arg(const lower *L, ir_id id, uint32_t index) { return ir_at(L->k, id)->region->ops[index]; }
static ir_id yielded(const lower *L, ir_id id, uint32_t v) {
    const ir_region *r = ir_at(L->k, id)->region;
    return ir_at(L->k, r->ops[r->n - 1])->args[v];
}

/* ---- what shapes there are ---- */
/* The value of the state with the most axes, the first among equals; values without elements do not count. */
static uint32_t widest(const lower *L, ir_id id) {
    uint32_t best = 0, n = n_values(ir_at(L->k, id));
    size_t most = 0;
    bool found = false;
    for (uint32_t v = 0; v < n; v++) {
        ir_dim axes[IR_MAX_RANK];
        size_t count = lower_axes(type_of(L, id, v), axes);
        if (lower_is_empty(type_of(L, id, v)) || (found && count <= most))
            continue;
        found = true;
        most = count;
        best = v;
    }
    return best;
}

const ir_type *lower_reduce_shape(const lower *L, ir_id id) {
    const ir_op *op = ir_at(L->k, id);
    return op->code == IR_COMBINE ? type_of(L, id, widest(L, id)) : &op->type;
}

/* Positions of the axes, counted from the right. */
static unsigned positions(const ir_type *t) {
    unsigned mask = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            mask |= 1u << (t->rank - 1 - i);
    return mask;
}

bool lower_combine_is_chain(const lower *L, ir_id id) {
    const ir_type *wide = lower_reduce_shape(L, id);
    unsigned all = positions(wide);
    for (uint32_t v = 0; v < n_values(ir_at(L->k, id)); v++) {
        const ir_type *t = type_of(L, id, v);
        unsigned own = positions(t), rest = all & ~own;
        if (lower_is_empty(t))
            continue;
        if ((own & all) != own || (rest && own && rest > (own & (~own + 1))))
            return false;
        for (uint32_t i = 1; i <= t->rank; i++)
            if (t->dim[t->rank - i] != 1 && t->dim[t->rank - i] != wide->dim[wide->rank - i])
                return false;
    }
    return true;
}

/* ---- items ---- */
static lower_item item_of(const lower *L, ir_id id, const ir_type *shape, uint32_t only) {
    lower_item it = {.kind = LOWER_COMBINE, .op = id, .shape = *shape, .only = only};
    it.n_axes = lower_axes(shape, it.axes);
    it.scalar_nest = L->info[id].scalar_nest;
    return it;
}

size_t lower_combine_items(lower *L, ir_id id, lower_item *out) {
    uint32_t n = n_values(ir_at(L->k, id));
    L->acc[id].places = base_arena_new_array(L->scratch, ir_id, n);
    L->acc[id].next = base_arena_new_array(L->scratch, ir_id, n);
    if (lower_combine_is_chain(L, id)) {
        out[0] = item_of(L, id, lower_reduce_shape(L, id), LOWER_ALL_VALUES);
        return 1;
    }
    size_t count = 0;
    for (uint32_t v = 0; v < n; v++)
        if (!lower_is_empty(type_of(L, id, v)))
            out[count++] = item_of(L, id, type_of(L, id, v), v);
    return count;
}

/* Is value v the item's business?  *n: its axes. */
static bool has_value(const lower *L, const lower_item *it, uint32_t v, size_t *n) {
    ir_dim axes[IR_MAX_RANK];
    const ir_type *t = type_of(L, it->op, v);
    *n = lower_axes(t, axes);
    return !lower_is_empty(t) && (it->only == LOWER_ALL_VALUES || it->only == v);
}

static bool in_slots(const lower *L, ir_id id) { return ir_int(ir_at(L->k, id), IR_ATTR_LANES, 1) == IR_N_PARTIALS; }

static const char *name_of(const lower *L, ir_id id, uint32_t v) {
    const char *name = ir_word(ir_at(L->k, region_arg(L, id, v)), IR_ATTR_NAME);
    return name ? name : "state";
}

size_t lower_combine_begin(lower *L, const lower_item *it, lower_item *starts) {
    size_t n, count = 0;
    for (uint32_t v = 0; v < n_values(ir_at(L->k, it->op)); v++) {
        if (!has_value(L, it, v, &n))
            continue;
        const ir_type *t = type_of(L, it->op, v);
        lower_acc *acc = &L->acc[it->op];
        const char *name = name_of(L, it->op, v);
        acc->places[v] = in_slots(L, it->op) ? lower_var(L, t->dtype, (ir_dim[]){IR_N_PARTIALS}, 1, name)
                                             : lower_item_place(L, t->dtype, it, n, name);
        starts[count] = lower_item_start(L, it, acc->places[v], n, 0);
        starts[count].from = ir_at(L->k, it->op)->args[v];
        if (in_slots(L, it->op)) {
            starts[count].n_axes = 1;
            starts[count].axes[0] = IR_N_PARTIALS;
            starts[count].scalar_nest = false;
        }
        count++;
        if (it->only != LOWER_ALL_VALUES)
            acc->next[v] = lower_item_place(L, t->dtype, it, n, "next");
    }
    return count;
}

/* ---- values of a region ---- */
static void bind(lower *L, ir_id id, uint32_t serial) { L->binding = (lower_binding){.combine = id, .serial = serial}; }

static void unbind(lower *L) { L->binding = (lower_binding){0}; }

/* Where the element idx of a value is in its place. */
static size_t place_index(const lower *L, ir_id place, const ir_type *t, const ir_id *idx, ir_id *out) {
    const ir_type *p = &ir_at(L->f, place)->type;
    size_t n = lower_significant(t, idx, out);
    if (p->rank == 1 && p->dim[0] == IR_DIM_TILE) {
        const lower_scope *lanes = &L->scope[lower_depth(L, out[n - 1])];
        BASE_CHECK(lanes->kind == LOWER_LANES);
        out[0] = lanes->arg[1];
    }
    return p->rank;
}

/* A slot belongs to the edge's lane alone. */
static void set(lower *L, ir_id place, const ir_id *index, size_t n, ir_id value) {
    bool plain = lower_top(L)->plain;
    lower_set(L, place, index, n, value);
    if (n == 1 && ir_at(L->f, index[0])->code == IR_SLOT)
        lower_top(L)->plain = plain;
}

static ir_id slot_of_edge(lower *L) {
    return lower_pure1(L, IR_SLOT, IR_I64, L->scope[lower_find_scope(L, LOWER_EDGES)].arg[2]);
}

ir_id lower_region_argument(lower *L, ir_id v, const ir_id *idx) {
    lower_binding b = L->binding;
    uint32_t index = (uint32_t)ir_int(ir_at(L->k, v), IR_ATTR_INDEX, 0), n = n_values(ir_at(L->k, b.combine));
    uint32_t value = index % n;
    ir_id place = L->acc[b.combine].places[value], at[IR_MAX_RANK];
    if (b.left)
        return lower_read_now(L, place, index < n ? &b.left : &b.right, 1);
    if (index >= n) {
        unbind(L);
        ir_id id = lower_eval(L, lifted(L, b.combine, value), idx);
        L->binding = b;
        return id;
    }
    if (in_slots(L, b.combine)) {
        ir_id slot = slot_of_edge(L);
        return lower_read_now(L, place, &slot, 1);
    }
    size_t rank = place_index(L, place, type_of(L, b.combine, value), idx, at);
    return lower_read_now(L, place, at, rank);
}

/* ---- one edge ---- */
/* When j loops are open, the values with so many axes (or fewer than are open anyway) are combined. */
static bool is_due(const lower *L, const lower_item *it, uint32_t v, size_t j, size_t first) {
    size_t n;
    return has_value(L, it, v, &n) && (n > first ? n : first) == j;
}

void lower_combine_at(lower *L, lower_item *it, size_t j, size_t first, const ir_id *axes) {
    uint32_t n = n_values(ir_at(L->k, it->op));
    ir_id idx[IR_MAX_RANK], at[IR_MAX_RANK];
    ir_id *values = base_arena_new_array(L->scratch, ir_id, n);
    if (!it->binding)
        it->binding = ++L->next_binding;
    bind(L, it->op, it->binding);
    for (uint32_t v = 0; v < n && it->only == LOWER_ALL_VALUES; v++)
        if (is_due(L, it, v, j, first)) {
            lower_index(L, type_of(L, it->op, v), axes, idx);
            lower_eval(L, region_arg(L, it->op, v), idx);
        }
    for (uint32_t v = 0; v < n; v++)
        if (is_due(L, it, v, j, first)) {
            lower_index(L, type_of(L, it->op, v), axes, idx);
            values[v] = lower_eval(L, yielded(L, it->op, v), idx);
        }
    unbind(L);
    L->span = ir_at(L->k, it->op)->span;
    for (uint32_t v = 0; v < n; v++) {
        if (!values[v])
            continue;
        ir_id place = it->only == LOWER_ALL_VALUES ? L->acc[it->op].places[v] : L->acc[it->op].next[v];
        lower_index(L, type_of(L, it->op, v), axes, idx);
        at[0] = in_slots(L, it->op) ? slot_of_edge(L) : 0;
        set(L, place, at, in_slots(L, it->op) ? 1 : place_index(L, place, type_of(L, it->op, v), idx, at), values[v]);
    }
}

/* The second step of a state that is no chain. */
void lower_combine_move(lower *L, const lower_item *it, const ir_id *axes) {
    const lower_acc *acc = &L->acc[it->op];
    set(L, acc->places[it->only], axes, it->n_axes, lower_read_now(L, acc->next[it->only], axes, it->n_axes));
}

/* ---- after the walk ---- */
static void combine_slots(lower *L, const lower_item *it, int64_t distance) {
    uint32_t n = n_values(ir_at(L->k, it->op));
    ir_id *values = base_arena_new_array(L->scratch, ir_id, n);
    ir_id count = lower_i64(L, distance), idx[IR_MAX_RANK];
    lower_open(L, LOWER_LANES, (ir_id[]){count, count}, 2);
    ir_id right = lower_top(L)->arg[0], left = lower_top(L)->arg[1];
    bind(L, it->op, ++L->next_binding);
    L->binding.left = left;
    L->binding.right = right;
    size_t axes;
    for (int side = 0; side < 2; side++) /* all reads before the first set */
        for (uint32_t v = 0; v < n; v++)
            if (has_value(L, it, v, &axes)) {
                lower_index(L, type_of(L, it->op, v), NULL, idx);
                lower_eval(L, region_arg(L, it->op, side ? n + v : v), idx);
            }
    for (uint32_t v = 0; v < n; v++)
        if (has_value(L, it, v, &axes)) {
            lower_index(L, type_of(L, it->op, v), NULL, idx);
            values[v] = lower_eval(L, yielded(L, it->op, v), idx);
        }
    unbind(L);
    for (uint32_t v = 0; v < n; v++)
        if (values[v])
            set(L, L->acc[it->op].places[v], &left, 1, values[v]);
    lower_close(L);
}

void lower_combine_end(lower *L, const lower_item *it) {
    if (!in_slots(L, it->op))
        return;
    for (int64_t distance = IR_N_PARTIALS / 2; distance > 0; distance /= 2)
        combine_slots(L, it, distance);
    ir_id zero = lower_i64(L, 0);
    for (uint32_t v = 0; v < n_values(ir_at(L->k, it->op)); v++) {
        size_t n;
        if (has_value(L, it, v, &n))
            L->acc[it->op].next[v] = lower_read_now(L, L->acc[it->op].places[v], &zero, 1);
    }
}

ir_id lower_combined(lower *L, ir_id get, const ir_id *idx) {
    const ir_op *op = ir_at(L->k, get);
    ir_id id = op->args[0], at[IR_MAX_RANK];
    uint32_t v = (uint32_t)ir_int(op, IR_ATTR_INDEX, 0);
    const lower_acc *acc = &L->acc[id];
    if (in_slots(L, id))
        return acc->next[v];
    size_t n = place_index(L, acc->places[v], &op->type, idx, at);
    return ir_is_scan(ir_at(L->k, id)) ? lower_read_now(L, acc->places[v], at, n)
                                       : lower_read(L, acc->places[v], at, n);
}
