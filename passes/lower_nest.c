/* Loops over feature axes around items of one shape, walks over the edges around those, and the order of both.
 *
 * Whole stage: walk by walk, every reduction and edge result that is not tiled.  Result stage: row results.  Tiled
 * stage: per shape one nest of loops and tiles with its own walks and results. */
#include "passes/lower.h"

#include <string.h>

static bool same_nest(const lower_item *a, const lower_item *b) {
    return a->n_axes == b->n_axes && a->scalar_nest == b->scalar_nest &&
           memcmp(a->axes, b->axes, a->n_axes * sizeof a->axes[0]) == 0;
}

static void open_axis(lower *L, const lower_item *it, size_t j) {
    bool last = j + 1 == it->n_axes;
    if (last && lower_find_scope(L, LOWER_TILES)) {
        const lower_scope *tile = &L->scope[lower_find_scope(L, LOWER_TILES)];
        lower_open(L, LOWER_LANES, (ir_id[]){tile->arg[1], tile->arg[0]}, 2);
        return;
    }
    lower_open(L, last && !it->scalar_nest ? LOWER_LANES : LOWER_LOOP, (ir_id[]){lower_dim(L, it->axes[j])}, 1);
}

/* The nest of items[0], with all items that fit in it. */
static void run_nest(lower *L, lower_item *items, size_t n, const ir_id *open, size_t n_open) {
    const lower_item head = items[0];
    size_t first = head.n_axes < n_open ? head.n_axes : n_open;
    ir_id axes[IR_MAX_RANK];
    for (size_t j = 0; j < first; j++)
        axes[j] = open[j];
    for (size_t j = first;; j++) {
        for (size_t i = 0; i < n; i++)
            if (!items[i].done && same_nest(&items[i], &head))
                lower_item_at(L, &items[i], j, first, axes);
        if (j == head.n_axes)
            break;
        open_axis(L, &head, j);
        axes[j] = lower_top(L)->arg[0];
    }
    for (size_t j = first; j < head.n_axes; j++)
        lower_close(L);
    for (size_t i = n; i-- > 0;)
        items[i].done |= same_nest(&items[i], &head);
}

void lower_nests(lower *L, lower_item *items, size_t n, const ir_id *open, size_t n_open) {
    for (size_t i = 0; i < n; i++)
        if (!items[i].done)
            run_nest(L, items + i, n - i, open, n_open);
}

/* Edges may be dealt to 16 lanes when each of them only adds to partial sums and stores its own results. */
static void close_walk(lower *L) {
    bool plain = lower_top(L)->plain;
    ir_id walk = lower_close(L);
    if (plain)
        ir_set_int(L->m, ir_at(L->f, walk), IR_ATTR_LANES, IR_N_PARTIALS);
}

/* States that are no chain are set when all of their new values are known. */
static void move_states(lower *L, const lower_item *items, size_t n) {
    lower_item *moves = base_arena_new_array(L->scratch, lower_item, n);
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == LOWER_COMBINE && items[i].only != LOWER_ALL_VALUES) {
            moves[count] = items[i];
            moves[count].kind = LOWER_MOVE;
            moves[count++].done = false;
        }
    lower_nests(L, moves, count, NULL, 0);
}

static bool is_scan(const lower *L, const lower_item *it) {
    return it->kind == LOWER_COMBINE && ir_is_scan(ir_at(L->k, it->op));
}

/* The walk is that of the edges in order; a scan from the last edge takes edge n - 1 - i when edge i is met. */
static void turn_back(lower *L) {
    lower_scope *s = lower_top(L);
    ir_id last = lower_pure2(L, IR_SUB, IR_I64, lower_pure1(L, IR_DEGREE, IR_I64, L->row), lower_i64(L, 1));
    ir_id twice = lower_pure2(L, IR_ADD, IR_I64, s->arg[2], s->arg[2]);
    ir_id e = lower_pure2(L, IR_ADD, IR_I64, s->arg[0], lower_pure2(L, IR_SUB, IR_I64, last, twice));
    s->arg[0] = e;
    s->arg[1] = lower_pure1(L, IR_SOURCE, IR_I64, e);
}

/* What a scan gives to the edge is stored before the edge changes it. */
static void store_scanned(lower *L, lower_item *items, size_t n) {
    lower_item *stores = base_arena_new_array(L->scratch, lower_item, n);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_scan(L, &items[i]) && ir_int(ir_at(L->k, items[i].op), IR_ATTR_REVERSE, 0))
            turn_back(L);
        if (items[i].kind == LOWER_STORE && L->info[items[i].value].scanned) {
            stores[count++] = items[i];
            items[i].done = true;
        }
    }
    lower_nests(L, stores, count, NULL, 0);
}

void lower_walk(lower *L, lower_item *items, size_t n, const ir_id *open, size_t n_open) {
    if (n == 0)
        return;
    size_t n_starts = 3 * n;
    for (size_t i = 0; i < n; i++)
        n_starts += items[i].kind == LOWER_COMBINE ? ir_at(L->k, items[i].op)->n_args : 0;
    lower_item *starts = base_arena_new_array(L->scratch, lower_item, n_starts);
    n_starts = 0;
    for (size_t i = 0; i < n; i++)
        n_starts += lower_item_begin(L, &items[i], starts + n_starts);
    lower_nests(L, starts, n_starts, open, n_open);
    lower_open(L, LOWER_EDGES, &L->row, 1);
    store_scanned(L, items, n);
    lower_nests(L, items, n, open, n_open);
    move_states(L, items, n);
    close_walk(L);
    for (size_t i = 0; i < n; i++)
        lower_item_end(L, &items[i]);
}

/* ---- stages ---- */
typedef struct lower_list {
    lower_item *items;
    size_t n, cap;
} lower_list;

static bool is_reduction(const lower *L, ir_id id, bool tiled) {
    const lower_info *in = &L->info[id];
    ir_opcode code = ir_at(L->k, id)->code;
    return in->live && !in->empty && (code == IR_REDUCE || code == IR_COMBINE) && in->tiled == tiled;
}

static void add_stores(lower *L, lower_list *list, size_t result) {
    const ir_param *p = &L->k->results[result];
    if (lower_is_empty(&p->type))
        return;
    lower_item it = lower_item_store(L, L->ret->args[result], &p->type, lower_result_field(L, result),
                                     L->result_scalar_nest[result]);
    base_push(L->scratch, list->items, list->n, list->cap, it);
}

/* Results of a value with a walk of their own in the tiles are not of the whole stage. */
static bool is_tiled_result(const lower *L, size_t i) { return L->info[L->ret->args[i]].tiled_level > 0; }

/* The walk on which an edge result is stored. */
static uint32_t walk_of(const lower *L, ir_id v) { return L->info[v].level + !L->info[v].scanned; }

static void add_reduction(lower *L, lower_list *list, ir_id id) {
    const ir_op *op = ir_at(L->k, id);
    lower_item *items = base_arena_new_array(L->scratch, lower_item, op->n_args + 1);
    size_t n = 1;
    if (op->code == IR_COMBINE)
        n = lower_combine_items(L, id, items);
    else
        items[0] = lower_item_reduce(L, id);
    for (size_t i = 0; i < n; i++)
        base_push(L->scratch, list->items, list->n, list->cap, items[i]);
}

static bool add_whole_walk(lower *L, lower_list *list, uint32_t level) {
    bool more = false;
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        if (!is_reduction(L, id, false))
            continue;
        if (L->info[id].level == level)
            add_reduction(L, list, id);
        more |= L->info[id].level > level;
    }
    for (size_t i = 0; i < L->k->n_results; i++) {
        uint32_t at = walk_of(L, L->ret->args[i]);
        if (L->k->results[i].type.space != IR_EDGE || is_tiled_result(L, i))
            continue;
        if (at == level)
            add_stores(L, list, i);
        more |= at > level;
    }
    return more;
}

void lower_whole_stage(lower *L) {
    bool more = true;
    for (uint32_t level = 1; more; level++) {
        lower_list list = {0};
        more = add_whole_walk(L, &list, level);
        lower_walk(L, list.items, list.n, NULL, 0);
    }
}

void lower_result_stage(lower *L) {
    lower_list list = {0};
    for (size_t i = 0; i < L->k->n_results; i++)
        if (L->k->results[i].type.space == IR_ROW && !is_tiled_result(L, i))
            add_stores(L, &list, i);
    lower_nests(L, list.items, list.n, NULL, 0);
}

static void add_tiled(lower *L, lower_list *list, const ir_type *shape) {
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        if (is_reduction(L, id, true) && lower_same_axes(lower_reduce_shape(L, id), shape))
            add_reduction(L, list, id);
    }
}

/* Everything of one shape at one place: the walks by level, then the row results. */
static void run_tile(lower *L, const ir_type *shape, const ir_id *open, size_t n_open) {
    lower_list all = {0};
    add_tiled(L, &all, shape);
    bool more = true;
    for (uint32_t level = 1; more; level++) {
        lower_list walk = {0};
        more = false;
        for (size_t i = 0; i < all.n; i++) {
            uint32_t at = L->info[all.items[i].op].tiled_level;
            if (at == level)
                base_push(L->scratch, walk.items, walk.n, walk.cap, all.items[i]);
            more |= at > level;
        }
        for (size_t i = 0; i < L->k->n_results; i++) {
            uint32_t at = L->info[L->ret->args[i]].tiled_level + 1;
            bool mine = L->k->results[i].type.space == IR_EDGE && is_tiled_result(L, i) &&
                        lower_same_axes(&L->k->results[i].type, shape);
            if (mine && at == level)
                add_stores(L, &walk, i);
            more |= mine && at > level;
        }
        lower_walk(L, walk.items, walk.n, open, n_open);
    }
    lower_list results = {0};
    for (size_t i = 0; i < L->k->n_results; i++)
        if (L->k->results[i].type.space == IR_ROW && is_tiled_result(L, i) &&
            lower_same_axes(&L->k->results[i].type, shape))
            add_stores(L, &results, i);
    lower_nests(L, results.items, results.n, open, n_open);
}

static void run_tiles_of(lower *L, const ir_type *shape) {
    ir_dim dims[IR_MAX_RANK];
    ir_id axes[IR_MAX_RANK];
    size_t n = lower_axes(shape, dims);
    for (size_t j = 0; j + 1 < n; j++) {
        lower_open(L, LOWER_LOOP, (ir_id[]){lower_dim(L, dims[j])}, 1);
        axes[j] = lower_top(L)->arg[0];
    }
    lower_open(L, LOWER_TILES, (ir_id[]){lower_dim(L, dims[n - 1])}, 1);
    run_tile(L, shape, axes, n - 1);
    ir_id tiles = lower_close(L);
    ir_set_int(L->m, ir_at(L->f, tiles), IR_ATTR_WIDTH, LOWER_TILE_WIDTH);
    for (size_t j = 0; j + 1 < n; j++)
        lower_close(L);
}

void lower_tiled_stage(lower *L) {
    for (size_t i = 0; i < L->k->body.n; i++) {
        ir_id id = L->k->body.ops[i];
        if (!is_reduction(L, id, true))
            continue;
        bool seen = false;
        for (size_t j = 0; j < i; j++)
            seen |= is_reduction(L, L->k->body.ops[j], true) &&
                    lower_same_axes(lower_reduce_shape(L, L->k->body.ops[j]), lower_reduce_shape(L, id));
        if (!seen)
            run_tiles_of(L, lower_reduce_shape(L, id));
    }
}
