/* panels, rows that do more than multiply: BLOCK rows at a time go through one part of the work after the other.
 *
 *     rows { walk: h; tiles F { acc += h[k] * W[k, f] } ... }
 *
 * becomes
 *
 *     rows {block} { rows { walk: h[row - first] }  rows { tiles F { acc += h[row - first, k] * W[k, f] } ... } }
 *
 * so that the second rows do nothing but multiply and go through panels, as those of a launch would.  The work is cut in front of
 * each product and, where it cannot be done tile by tile, behind it.  What a later part needs of an earlier one is kept for all rows
 * of the block.  Rows do not need one another, so no bit changes, whatever rows a launch has.  Launches of few rows go through
 * this too: a copy of the rows as they were would take as long to compile as all the rest. */
#include "passes/panels.h"

enum { BLOCK = 64, MOST_PARTS = 12, MOST_ELEMENTS = 4096, SMALL_BYTES = 32768, FEW_COLUMNS = 64 };

typedef struct place { /* an array or a variable of the rows, and what is kept of it or of a value */
    bool used, is_set, in_walk, is_product;
    size_t first, last, set_first, set_last; /* parts that use it, that set it */
    ir_id kept; /* array for all rows of the block; 0: nothing is kept */
    bool copied; /* at the end of the part that sets it; otherwise the array takes its place */
    unsigned wanted; /* of a value: bits of later parts */
    ir_id fills; /* of an operation: the place to which it only gives its first value */
} place;

typedef struct blocks {
    panels *p;
    const ir_region *rows;
    size_t begin[MOST_PARTS + 1], n; /* where each part begins in the rows */
    bool multiplies[MOST_PARTS];
    size_t *part; /* by id: 1 + the part that it stands in, 0 outside of the rows */
    place *place; /* by id */
    ir_id *instead; /* by id: what this part reads instead of a value */
    ir_region *block;
    ir_id first, row, local; /* the first row of the block; a row, and its place in the block */
    size_t now; /* the part that is written */
} blocks;

static ir_op *at(const blocks *b, ir_id id) { return ir_at(b->p->f, id); }

static ir_id put(const blocks *b, ir_region *r, ir_opcode code, ir_type type, const ir_id *args, size_t n) {
    return pass_put(b->p->m, b->p->f, r, code, type, args, n);
}

static const ir_type none = {.dtype = IR_NONE};

static bool is_place(const ir_op *op) { return op->code == IR_VAR || op->code == IR_PARTIALS; }

static bool uses_place(const ir_op *op) {
    return op->code == IR_READ || op->code == IR_SET || op->code == IR_ACCUM || op->code == IR_COLLAPSE;
}

static bool touches(const blocks *b, const ir_op *op, ir_id var) {
    bool found = uses_place(op) && op->args[0] == var;
    for (size_t i = 0; !found && op->region && i < op->region->n; i++)
        found = touches(b, at(b, op->region->ops[i]), var);
    return found;
}

/* ---- where to cut ---- */
static bool cut(blocks *b, size_t where, bool multiplies) {
    if (b->n == MOST_PARTS)
        return false;
    b->begin[b->n] = where;
    b->multiplies[b->n++] = multiplies;
    b->begin[b->n] = b->rows->n;
    return true;
}

static size_t next_tiles(const blocks *b, size_t from) {
    while (from < b->rows->n && at(b, b->rows->ops[from])->code != IR_TILES)
        from++;
    return from;
}

static int64_t known(const blocks *b, ir_id count) {
    return at(b, count)->code == IR_CONST ? ir_find_attr(at(b, count), IR_ATTR_VALUE)->v.i : -1;
}

static int64_t bytes_of(const blocks *b, const panel *x) {
    const ir_type *t = x->place ? &at(b, x->place)->type : &b->p->f->params[x->field].type;
    bool small = t->dim[0] >= 0 && t->dim[1] >= 0 && t->dim[0] <= SMALL_BYTES && t->dim[1] <= SMALL_BYTES;
    return small ? t->dim[0] * t->dim[1] * (int64_t)ir_dtype_bytes(t->dtype) : SMALL_BYTES + 1;
}

/* Row by row is as fast where the matrices stay in the nearest cache and either there are columns enough for as many
 * accumulators as a processor adds to at once, or a walk waits for memory meanwhile. */
static bool is_worth_it(const blocks *b, const panels *q) {
    int64_t bytes = 0, columns = known(b, q->extent);
    for (size_t i = 0; i < q->n; i++)
        bytes += bytes_of(b, &q->list[i]);
    return bytes > SMALL_BYTES || (columns < FEW_COLUMNS && !panels_walk(q, b->rows));
}

/* A part begins with each product, and behind it when that has to be done apart. */
static bool find_parts(blocks *b) {
    bool any = false, fit = false; /* that is worth it */
    cut(b, 0, false);
    for (size_t i = next_tiles(b, 0); i < b->rows->n; i = next_tiles(b, i + 1)) {
        panels q = *b->p;
        if (!panels_fit_product(&q, i)) {
            if (b->multiplies[b->n - 1] && !cut(b, i, false))
                return false;
            continue;
        }
        fit = true;
        any |= is_worth_it(b, &q);
        q.in_block = true;
        q.end = next_tiles(b, i + 1);
        if (!cut(b, i, true) || (!panels_fit_behind(&q) && !cut(b, i + 1, false)))
            return false;
        for (size_t k = 0; k < q.n_products; k++)
            b->place[q.product[k]].is_product = true;
    }
    b->p->why = fit && !any ? "because its matrices are small" : NULL;
    return any;
}

/* ---- what is needed where ---- */
static void note_use(place *x, const ir_op *op, size_t part, bool in_walk) {
    bool sets = op->code == IR_SET || op->code == IR_ACCUM;
    x->first = x->used ? x->first : part;
    x->last = part;
    x->set_first = sets && !x->is_set ? part : x->set_first;
    x->set_last = sets ? part : x->set_last;
    x->used = true;
    x->is_set |= sets;
    x->in_walk |= in_walk;
}

/* The place that an operation sets, or a loop over lanes that does no more, to a value from outside of the rows; 0: it is none. */
static ir_id filled(const blocks *b, const ir_op *op) {
    ir_id var = 0;
    if (op->code == IR_SET)
        return b->p->loop_of[op->args[op->n_args - 1]] ? 0 : op->args[0];
    for (size_t i = 0; op->code == IR_LANES && i < op->region->n; i++) {
        const ir_op *set = at(b, op->region->ops[i]);
        if (set->code == IR_ARG)
            continue;
        if (var || set->code != IR_SET || !filled(b, set))
            return 0;
        var = set->args[0];
    }
    return var;
}

/* First values go where they are needed. */
static void note_fills(blocks *b) {
    for (size_t i = 0; i < b->rows->n; i++) {
        ir_id id = b->rows->ops[i], var = filled(b, at(b, id));
        bool first = var && at(b, var)->code == IR_VAR;
        for (size_t k = 0; first && k < i; k++)
            first = !touches(b, at(b, b->rows->ops[k]), var);
        b->place[id].fills = first ? var : 0;
    }
}

static void note_uses(blocks *b, const ir_region *r, size_t from, size_t to, size_t part, bool in_walk) {
    for (size_t i = from; i < to; i++) {
        const ir_op *op = at(b, r->ops[i]);
        b->part[r->ops[i]] = part + 1;
        if (b->place[r->ops[i]].fills)
            continue;
        if (uses_place(op))
            note_use(&b->place[op->args[0]], op, part, in_walk);
        for (uint32_t a = 0; a < op->n_args; a++)
            if (b->part[op->args[a]] && b->part[op->args[a]] != part + 1 && !is_place(at(b, op->args[a])))
                b->place[op->args[a]].wanted |= 1u << part;
        if (op->region)
            note_uses(b, op->region, 0, op->region->n, part, in_walk || op->code == IR_EDGES);
    }
}

static bool is_uniform(const ir_op *op) {
    return op->code == IR_CONST || op->code == IR_DIMSIZE || op->code == IR_NUMROWS;
}

static bool can_keep(const ir_type *t) {
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == IR_DIM_TILE || t->dim[i] > MOST_ELEMENTS)
            return false;
        n *= t->dim[i] > 0 ? t->dim[i] : 1;
        if (n > MOST_ELEMENTS)
            return false;
    }
    return t->rank < IR_MAX_RANK;
}

/* Accumulators of a walk stay where they are, in registers, and so do the products of a tile; they are copied in the end. */
static bool decide(blocks *b, ir_id id) {
    place *x = &b->place[id];
    const ir_op *op = at(b, id);
    if (!is_place(op))
        return true;
    if (!x->used || x->first == x->last)
        return true;
    x->copied = x->in_walk || x->is_product;
    return op->code == IR_VAR && can_keep(&op->type) &&
           (!x->copied || (x->first == x->set_first && x->set_first == x->set_last));
}

static bool plan(blocks *b) {
    const panels *p = b->p;
    b->part = base_arena_new_array(p->scratch, size_t, p->f->n_ops);
    b->place = base_arena_new_array(p->scratch, place, p->f->n_ops);
    if (!find_parts(b))
        return false;
    note_fills(b);
    for (size_t k = 0; k < b->n; k++)
        note_uses(b, b->rows, b->begin[k], b->begin[k + 1], k, false);
    b->part[p->row] = 0;
    b->place[p->row].wanted = 0;
    for (size_t i = 0; i < b->rows->n; i++)
        if (!decide(b, b->rows->ops[i]))
            return false;
    return true;
}

/* ---- the block ---- */
static ir_id put_kept(blocks *b, ir_type type, const char *name) {
    for (uint32_t i = type.rank++; i > 0; i--)
        type.dim[i] = type.dim[i - 1];
    type.dim[0] = BLOCK;
    ir_id var = put(b, b->block, IR_VAR, type, NULL, 0);
    if (name)
        ir_set_word(b->p->m, at(b, var), IR_ATTR_NAME, name);
    return var;
}

static void put_arrays(blocks *b) {
    for (size_t i = 0; i < b->rows->n; i++) {
        ir_id id = b->rows->ops[i];
        place *x = &b->place[id];
        const ir_op *op = at(b, id);
        if (is_place(op) ? x->used && x->first != x->last : x->wanted && !is_uniform(op))
            x->kept = put_kept(b, op->type, ir_word(op, IR_ATTR_NAME));
        else if (is_uniform(op))
            ir_append(b->p->m, b->block, id);
    }
}

static void rewrite_place(blocks *b, ir_op *op) {
    const place *x = uses_place(op) ? &b->place[op->args[0]] : NULL;
    ir_id args[IR_MAX_RANK + 3] = {0};
    if (!x || !x->kept || (x->copied && x->first == b->now))
        return;
    args[0] = x->kept;
    args[1] = b->local;
    for (uint32_t a = 1; a < op->n_args; a++)
        args[a + 1] = op->args[a];
    ir_set_args(b->p->m, op, args, op->n_args + 1);
}

static void rewrite(blocks *b, ir_id id) {
    ir_op *op = at(b, id);
    for (uint32_t a = 0; a < op->n_args; a++)
        if (op->args[a] == b->p->row)
            op->args[a] = b->row;
        else if (b->part[op->args[a]] && b->part[op->args[a]] != b->now + 1 && b->instead[op->args[a]])
            op->args[a] = b->instead[op->args[a]];
    rewrite_place(b, op);
    for (size_t i = 0; op->region && i < op->region->n; i++)
        rewrite(b, op->region->ops[i]);
}

/* A size, where there is one the operation at the top of the function that other loops over it have. */
static ir_id put_size(const blocks *b, ir_region *r, ir_dim d) {
    const ir_region *top = &b->p->f->body;
    for (size_t i = 0; i < top->n; i++) {
        const ir_op *op = at(b, top->ops[i]);
        bool number = op->code == IR_CONST && op->type.dtype == IR_I64 && known(b, top->ops[i]) == d;
        if (number || (op->code == IR_DIMSIZE && ir_int(op, IR_ATTR_DIM, 0) == d))
            return top->ops[i];
    }
    return pass_put_size(b->p->m, b->p->f, r, d);
}

/* What is set or computed here and needed later: kept[row, i, ...] = x[i, ...]. */
static void put_copy(blocks *b, ir_region *r, ir_id id) {
    const place *x = &b->place[id];
    const ir_type type = at(b, id)->type;
    ir_id index[IR_MAX_RANK + 3] = {x->kept, b->local};
    for (uint32_t i = 0; i < type.rank; i++) {
        bool last = i + 1 == type.rank;
        ir_id n = x->is_product && type.rank == 1 ? b->p->extent : put_size(b, r, type.dim[i]);
        r = at(b, put(b, r, last ? IR_LANES : IR_LOOP, none, &n, 1))->region;
        index[i + 2] = pass_put_arg(b->p->m, b->p->f, r, 0);
        if (last)
            pass_put_arg(b->p->m, b->p->f, r, 1);
    }
    ir_id value = id;
    if (is_place(at(b, id))) {
        ir_id read[IR_MAX_RANK + 1] = {id};
        for (uint32_t i = 0; i < type.rank; i++)
            read[i + 1] = index[i + 2];
        value = put(b, r, IR_READ, ir_scalar(type.dtype), read, type.rank + 1);
    }
    index[type.rank + 2] = value;
    put(b, r, IR_SET, none, index, type.rank + 3);
}

/* Places of this part alone, and values of others that it needs. */
static void put_head(blocks *b, ir_region *r) {
    for (size_t i = 0; i < b->rows->n; i++) {
        ir_id id = b->rows->ops[i];
        const place *x = &b->place[id];
        if (is_place(at(b, id)) && x->used && x->first == b->now && (!x->kept || x->copied))
            ir_append(b->p->m, r, id);
        if (x->fills && b->place[x->fills].first == b->now && b->place[x->fills].used) {
            ir_append(b->p->m, r, id);
            rewrite(b, id);
        }
        if (!is_place(at(b, id)) && x->kept && x->wanted >> b->now & 1)
            b->instead[id] = put(b, r, IR_READ, ir_scalar(at(b, id)->type.dtype), (ir_id[]){x->kept, b->local}, 2);
    }
}

static void put_part(blocks *b) {
    ir_module *m = b->p->m;
    ir_region *r = at(b, put(b, b->block, IR_ROWS, none, NULL, 0))->region;
    b->row = pass_put_arg(m, b->p->f, r, 0);
    b->local = put(b, r, IR_SUB, ir_scalar(IR_I64), (ir_id[]){b->row, b->first}, 2);
    put_head(b, r);
    if (b->multiplies[b->now])
        b->p->extent = at(b, b->rows->ops[b->begin[b->now]])->args[0];
    for (size_t i = b->begin[b->now]; i < b->begin[b->now + 1]; i++) {
        ir_id id = b->rows->ops[i];
        if (id == b->p->row || is_place(at(b, id)) || is_uniform(at(b, id)) || b->place[id].fills)
            continue;
        ir_append(m, r, id);
        rewrite(b, id);
        if (b->place[id].kept)
            put_copy(b, r, id);
    }
    for (size_t i = 0; i < b->rows->n; i++) {
        const place *x = &b->place[b->rows->ops[i]];
        if (x->copied && x->first == b->now)
            put_copy(b, r, b->rows->ops[i]);
    }
    if (!b->multiplies[b->now]) {
        panels_tile_walk(b->p, r);
        return;
    }
    panels q = {.m = m, .f = b->p->f, .scratch = b->p->scratch, .in_block = true};
    panels_begin(&q, b->block, b->block->n - 1);
    if (panels_fit(&q))
        panels_turn_around(&q);
}

static bool has_work(const blocks *b) {
    for (size_t i = b->begin[b->now]; i < b->begin[b->now + 1]; i++) {
        const ir_op *op = at(b, b->rows->ops[i]);
        if (op->code != IR_ARG && !is_place(op) && !is_uniform(op) && !b->place[b->rows->ops[i]].fills)
            return true;
    }
    return false;
}

bool panels_in_blocks(panels *p) {
    blocks b = {.p = p, .rows = p->in_rows};
    for (size_t i = 0; i < p->f->n_params; i++) /* these may be written in place, by the one that walks */
        if (ir_transposed(p->f) && p->f->params[i].role == IR_OUT_EDGE)
            return false;
    if (p->f->winners.known || !plan(&b))
        return false;
    ir_id rows = ir_op_new(p->m, p->f, IR_ROWS, none, NULL, 0);
    ir_set_int(p->m, at(&b, rows), IR_ATTR_BLOCK, BLOCK);
    at(&b, rows)->region = b.block = ir_region_new(p->m);
    b.instead = base_arena_new_array(p->scratch, ir_id, p->f->n_ops);
    b.first = pass_put_arg(p->m, p->f, b.block, 0);
    put_arrays(&b);
    for (b.now = 0; b.now < b.n; b.now++)
        if (has_work(&b))
            put_part(&b);
    p->top->ops[p->rows_at] = rows;
    return true;
}
