/* What a walk will touch is asked for before it is needed.
 *
 * The rows of sources, and on a transposed walk what stands under the edges' own numbers, lie at random: they are asked for so many
 * edges ahead as the pass has set (the edges' `prefetch`).  The streams beside them (the sources themselves, numbers and fields of
 * edges, rows of the result's side, read or written) are asked for STREAM_BYTES ahead: each is gone through in order, but slowly, and
 * among so many lines at random processors lose sight of it. */
#include "codegen/cg_c.h"

enum {
    MAX_FETCHES = 8,
    LINE = 64,
    STREAM_BYTES = 1024,
    EDGES_A_LINE = 8, /* of the widest columns */
    MIN_ROWS_AHEAD = 4,
    MAX_ROWS_AHEAD = 16
};

static bool touches(const ir_op *op) { return op->code == IR_LOAD || op->code == IR_STORE; }

static int64_t element_bytes(const cg_loop *c, const ir_op *op) {
    return (int64_t)ir_dtype_bytes(c->f->params[ir_int(op, IR_ATTR_FIELD, 0)].type.dtype);
}

static bool inside(const cg_loop *c, ir_id id, ir_id loop) {
    for (ir_id l = c->site[id].loop; l; l = c->site[l].loop)
        if (l == loop)
            return true;
    return false;
}

/* How many values an index takes in one turn of `loop`, when it runs through them from the first; 0: as many as *open says,
 * known at run time. */
static int64_t values_of(cg_loop *c, ir_id turn, ir_id index, const char **open) {
    if (ir_at(c->f, index)->code != IR_ARG || !inside(c, index, turn))
        return 1;
    const ir_op *loop = ir_at(c->f, c->site[index].loop);
    int64_t n = 0;
    ir_id count = loop->args[loop->code == IR_RANGE ? 1 : 0];
    if (loop->code == IR_EDGES)
        return 1;
    if (cg_constant(c, count, &n))
        return n;
    if (count == c->tile_arg)
        return c->tile_capacity;
    if (inside(c, count, turn))
        return 1;
    *open = c->text[count];
    return 0;
}

/* How many elements in a row the load or store touches for one turn of `loop`: those of the last axis, and of the axes before it while
 * each is gone through as a whole. */
static int64_t elements_ahead(cg_loop *c, ir_id turn, const ir_op *op, const char **open) {
    const ir_type *t = &c->f->params[ir_int(op, IR_ATTR_FIELD, 0)].type;
    uint32_t n_index = op->n_args - (op->code == IR_STORE);
    int64_t n = 1;
    for (uint32_t axis = t->rank; axis-- > 0;) {
        const char *known_later = NULL;
        int64_t values = values_of(c, turn, op->args[n_index - t->rank + axis], &known_later);
        if (known_later && axis + 1 == t->rank)
            return *open = known_later, 0;
        if (known_later)
            break;
        n *= values;
        if (values != cg_dim(c, t->dim[axis]))
            break;
    }
    return n;
}

/* The first element that it will touch for `ahead`.  Indices that change inside the loop count as their first
 * value. */
static const char *first_element(cg_loop *c, ir_id turn, const ir_op *op, const char *ahead) {
    const char *index[IR_MAX_RANK + 1], *dims[IR_MAX_RANK + 1];
    size_t n = cg_load_index(c, op, index, dims);
    index[0] = ahead;
    for (size_t i = 1; i < n; ++i) {
        ir_id a = op->args[i];
        if (!inside(c, a, turn))
            continue;
        const ir_op *loop = ir_at(c->f, c->site[a].loop);
        bool based = ir_at(c->f, a)->code == IR_ARG && loop->code == IR_LANES && loop->n_args > 1 &&
                     !inside(c, loop->args[1], turn);
        index[i] = based ? c->text[loop->args[1]] : "0";
    }
    return cg_flat_index(c, index, dims, n);
}

static void fetch_lines(cg_loop *c, ir_id edges_id, const ir_op *op, const char *ahead) {
    int64_t f = ir_int(op, IR_ATTR_FIELD, 0), line = LINE / element_bytes(c, op);
    const char *open = NULL, *at = first_element(c, edges_id, op, ahead);
    int64_t n = elements_ahead(c, edges_id, op, &open);
    c->field_used[f] = c->vec->prefetch = true;
    for (int64_t k = 0; k < n && k < 16 * line; k += line)
        cg_line(&c->w, k ? "TIGA_PREFETCH(&%s[%s + %lld]);" : "TIGA_PREFETCH(&%s[%s]);", c->field[f], at, (long long)k);
    if (!open)
        return;
    size_t mark = cg_names_mark(&c->names);
    const char *k = cg_name(&c->names, "k");
    cg_line(&c->w, "for (int64_t %s = 0; %s < %s; %s += %lld) TIGA_PREFETCH(&%s[%s + %s]);", k, k, open, k,
            (long long)line, c->field[f], at, k);
    cg_names_release(&c->names, mark);
}

/* ---- what the first index follows ---------------------------------------------------------------------- */
typedef bool follows(const cg_loop *c, ir_id index, ir_id loop);

static bool source(const cg_loop *c, ir_id index, ir_id edges) {
    return index == cg_region_arg(c, ir_at(c->f, edges), 1);
}

static bool own_number(const cg_loop *c, ir_id index, ir_id edges) {
    const ir_op *op = ir_at(c->f, index);
    return op->code == IR_EDGEID && op->args[0] == cg_region_arg(c, ir_at(c->f, edges), 0);
}

static bool number_at_random(const cg_loop *c, ir_id index, ir_id edges) {
    return ir_transposed(c->f) && own_number(c, index, edges);
}

static bool in_order(const cg_loop *c, ir_id index, ir_id edges) {
    return index == cg_region_arg(c, ir_at(c->f, edges), 0) || (!ir_transposed(c->f) && own_number(c, index, edges));
}

static bool row(const cg_loop *c, ir_id index, ir_id rows) { return index == cg_region_arg(c, ir_at(c->f, rows), 0); }

typedef struct accesses {
    const ir_op *of[MAX_FETCHES]; /* one a field */
    size_t n;
} accesses;

static void find(const cg_loop *c, const ir_region *r, ir_id loop, follows *how, accesses *found) {
    for (size_t i = 0; i < r->n && found->n < MAX_FETCHES; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        if (op->region)
            find(c, op->region, loop, how, found);
        if (!touches(op) || !c->site[r->ops[i]].live || !op->n_args || !how(c, op->args[0], loop))
            continue;
        bool known = false;
        for (size_t k = 0; k < found->n; ++k)
            known = known || ir_int(found->of[k], IR_ATTR_FIELD, 0) == ir_int(op, IR_ATTR_FIELD, 0);
        if (!known)
            found->of[found->n++] = op;
    }
}

static accesses accesses_of(const cg_loop *c, ir_id loop, follows *how) {
    accesses found = {{NULL}, 0};
    find(c, ir_at(c->f, loop)->region, loop, how, &found);
    return found;
}

/* ---- rows at random ---------------------------------------------------------------------------------------------- */
static void fetch_all(cg_loop *c, ir_id id, const accesses *l, const char *ahead) {
    for (size_t i = 0; i < l->n; ++i)
        fetch_lines(c, id, l->of[i], ahead);
}

bool cg_prefetches(const cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    return op->code == IR_EDGES && ir_int(op, IR_ATTR_PREFETCH, 0) > 0 && cg_region_arg(c, op, 1) &&
           accesses_of(c, id, source).n > 0;
}

/* The number of bytes that one edge reads at its source, of the field that reads most; C where sizes are known at run time. */
static const char *widest_row(cg_loop *c, ir_id id, const accesses *sources) {
    const char *open_row = NULL;
    int64_t most = 0;
    for (size_t i = 0; i < sources->n; ++i) {
        const char *open = NULL;
        int64_t bytes = elements_ahead(c, id, sources->of[i], &open) * element_bytes(c, sources->of[i]);
        most = bytes > most ? bytes : most;
        if (open && !open_row)
            open_row = base_arena_printf(c->arena, "%s * %lld", open, (long long)element_bytes(c, sources->of[i]));
    }
    return open_row ? open_row : base_arena_printf(c->arena, "%lld", (long long)most);
}

/* In edges: as the schedule says, or as many as have the bytes that it says. */
static const char *distance_of(cg_loop *c, ir_id id, const accesses *sources) {
    const ir_op *op = ir_at(c->f, id);
    int64_t most = ir_int(op, IR_ATTR_PREFETCH, 0), bytes = ir_int(op, IR_ATTR_FETCH, 0);
    if (!bytes)
        return base_arena_printf(c->arena, "%lld", (long long)most);
    return base_arena_printf(c->arena, "TIGA_FAR(%lld, %lld, %s)", (long long)most, (long long)bytes,
                             widest_row(c, id, sources));
}

/* Asks for what the edge `prefetch` places ahead will read at its source, and under its own number on a transposed walk.
 * That edge may belong to a later row of the chunk.  steps: `ask_at`, where the look-ahead ends, is the
 * end of a piece too. */
void cg_prefetch(cg_loop *c, ir_id id, const char *e, const char *steps) {
    if (!cg_prefetches(c, id))
        return;
    const accesses sources = accesses_of(c, id, source), edges = accesses_of(c, id, number_at_random);
    c->uses_edge_end = c->uses_offsets = true;
    size_t mark = cg_names_mark(&c->names);
    const char *ahead = cg_name(&c->names, "ahead");
    const char *then = base_arena_printf(c->arena, "%s + %s", e, distance_of(c, id, &sources));
    cg_open(&c->w, "if (%s < %s)", then, steps ? c->ask_at : c->edge_end);
    cg_line(&c->w, "const int64_t %s = %s;", ahead, cg_source(c, then));
    fetch_all(c, id, &sources, ahead);
    if (edges.n) {
        const char *edge = cg_name(&c->names, "edge_ahead");
        cg_line(&c->w, "const int64_t %s = %s;", edge, cg_edge_of(c, then));
        fetch_all(c, id, &edges, edge);
    }
    cg_close(&c->w, "");
    if (steps) {
        cg_line(&c->w, "else if (TIGA_RARELY(%s < %s) && (%s = tiga_ask(%s, %s, %s, %s)) < 0)", c->ask_at, c->edge_end,
                c->ask_at, c->args, then, c->edge_end, steps);
        cg_line(&c->w, "    return;");
    }
    cg_names_release(&c->names, mark);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */
/* For one turn; 0: known at run time. */
static int64_t bytes_of(cg_loop *c, ir_id loop, const ir_op *op) {
    const char *open = NULL;
    return elements_ahead(c, loop, op, &open) * element_bytes(c, op);
}

/* What it touches so many turns ahead that this is STREAM_BYTES away, between `least` and `most` turns. */
static void fetch_stream(cg_loop *c, ir_id loop, const ir_op *op, const char *at, int64_t least, int64_t most) {
    int64_t f = ir_int(op, IR_ATTR_FIELD, 0), bytes = bytes_of(c, loop, op);
    int64_t turns = bytes ? STREAM_BYTES / bytes : least;
    turns = turns < least ? least : turns > most ? most : turns;
    const char *first = first_element(c, loop, op, base_arena_printf(c->arena, "(%s + %lld)", at, (long long)turns));
    c->field_used[f] = c->vec->prefetch = true;
    for (int64_t k = 0; k == 0 || (k < bytes && k < 16 * LINE); k += LINE)
        cg_line(&c->w, k ? "TIGA_PREFETCH_AT(%s, %s + %lld);" : "TIGA_PREFETCH_AT(%s, %s);", c->field[f], first,
                (long long)(k / element_bytes(c, op)));
}

static void fetch_column(cg_loop *c, const char *array, const char *e) {
    c->vec->prefetch = true;
    if (c->source_bits == CG_EITHER)
        cg_line(&c->w, "TIGA_PREFETCH_AT((const char *)%s, %s * (%s ? 8 : 4) + %d);", array, e, c->wide, STREAM_BYTES);
    else
        cg_line(&c->w, "TIGA_PREFETCH_AT(%s, %s + %d);", array, e, STREAM_BYTES * 8 / c->source_bits);
}

static void fetch_fields(cg_loop *c, ir_id edges, const accesses *fields, const char *e, bool narrow) {
    for (size_t i = 0; i < fields->n; ++i) {
        int64_t bytes = bytes_of(c, edges, fields->of[i]);
        if (narrow == (bytes && bytes * EDGES_A_LINE <= LINE))
            fetch_stream(c, edges, fields->of[i], e, 2, STREAM_BYTES);
    }
}

/* step: so many edges a turn.  What is narrow is asked for once in a line of cache. */
void cg_prefetch_streams(cg_loop *c, ir_id edges, const char *e, int64_t step) {
    if (!cg_prefetches(c, edges))
        return;
    const accesses fields = accesses_of(c, edges, in_order);
    c->uses_sources = true;
    if (step < EDGES_A_LINE)
        cg_open(&c->w, "if ((%s & %d) == 0)", e, EDGES_A_LINE - 1);
    fetch_column(c, c->sources, e);
    if (accesses_of(c, edges, number_at_random).n) {
        c->uses_edge_of = true;
        fetch_column(c, c->edge_of, e);
    }
    fetch_fields(c, edges, &fields, e, true);
    if (step < EDGES_A_LINE)
        cg_close(&c->w, "");
    fetch_fields(c, edges, &fields, e, false);
}

static bool walk_prefetches(const cg_loop *c, const ir_region *r) {
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        if (op->region && (cg_prefetches(c, r->ops[i]) || walk_prefetches(c, op->region)))
            return true;
    }
    return false;
}

/* What a row reads and writes under its own number.  Rows without walks that leave the processor in the dark are left to it. */
void cg_prefetch_row(cg_loop *c, ir_id rows, const char *i) {
    if (!walk_prefetches(c, ir_at(c->f, rows)->region))
        return;
    const accesses own = accesses_of(c, rows, row);
    for (size_t k = 0; k < own.n; ++k)
        fetch_stream(c, rows, own.of[k], i, MIN_ROWS_AHEAD, MAX_ROWS_AHEAD);
}
