/* Statements of a loop function, one a line, in the order of the IR. */
#include "codegen/cg_c.h"

#include <string.h>

#define LONG_EXPRESSION 96 /* longer than this gets a name of its own */

ir_id cg_region_arg(const cg_loop *c, const ir_op *loop, int64_t index) {
    for (size_t i = 0; i < loop->region->n; ++i) {
        ir_id id = loop->region->ops[i];
        const ir_op *op = ir_at(c->f, id);
        if (op->code == IR_ARG && ir_int(op, IR_ATTR_INDEX, 0) == index)
            return c->site[id].n_uses ? id : 0;
    }
    return 0;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */
static const char *value_name(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    if (op->code == IR_LOAD) {
        const char *field = c->f->params[ir_int(op, IR_ATTR_FIELD, 0)].name;
        const char *at = op->n_args ? c->text[op->args[0]] : "value";
        return base_arena_printf(c->arena, "%s_%s", field, !op->n_args || strlen(at) <= 2 ? at : "at");
    }
    if (op->code == IR_COLLAPSE)
        return ir_kind_text(ir_kind_of(ir_at(c->f, op->args[0])));
    if (op->code == IR_EDGEID)
        return "edge";
    if (op->code == IR_SOURCE)
        return "source";
    if (op->code == IR_SLOT)
        return "slot";
    if (op->code == IR_DEGREE)
        return "degree";
    if (op->code == IR_READ && c->place[op->args[0]].name)
        return base_arena_printf(c->arena, "%s_was", c->place[op->args[0]].name);
    return base_arena_printf(c->arena, "t%u", id);
}

void cg_set_value(cg_loop *c, ir_id id, const char *ctype, const char *expr, bool atom) {
    bool last =
        cg_foldable(c, id) && !ir_class_is_elementwise(ir_op_describe(ir_at(c->f, c->site[id].user)->code)->cls);
    if (cg_foldable(c, id) && strlen(expr) <= (last ? 2 * LONG_EXPRESSION : LONG_EXPRESSION)) {
        c->text[id] = atom ? expr : base_arena_printf(c->arena, "(%s)", expr);
        return;
    }
    const char *name = cg_name(&c->names, value_name(c, id));
    cg_line(&c->w, "const %s %s = %s;", ctype, name, cg_bare(c->arena, expr));
    c->text[id] = name;
    c->n_named++;
}

static ir_dtype operand_dtype(const cg_loop *c, const ir_op *op) {
    return ir_at(c->f, op->args[op->code == IR_SELECT ? 1 : 0])->type.dtype;
}

void cg_expression(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const char *args[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < op->n_args; ++i)
        args[i] = c->text[op->args[i]];
    bool atom;
    const char *e = cg_expr(c->help, c->arena, op->code, operand_dtype(c, op), op->type.dtype, args, &atom);
    cg_set_value(c, id, cg_ctype(op->type.dtype), e, atom);
}

/* An operand of `[...]`, without its outer parentheses. */
static void load(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const char *e = cg_element(c, id);
    bool is_bool = op->type.dtype == IR_BOOL;
    cg_set_value(c, id, cg_ctype(op->type.dtype), is_bool ? base_arena_printf(c->arena, "%s != 0", e) : e, !is_bool);
}

static void read_place(cg_loop *c, ir_id id) {
    const char *e = cg_element(c, id);
    if (c->site[id].aliased)
        c->text[id] = e;
    else
        cg_set_value(c, id, cg_ctype(ir_at(c->f, id)->type.dtype), e, true);
}

static void source(cg_loop *c, ir_id id) {
    const char *e = c->text[ir_at(c->f, id)->args[0]];
    cg_set_value(c, id, "int64_t", base_arena_printf(c->arena, "%s < 0 ? -1 : (int64_t)%s", e, cg_source(c, e)), false);
}

static void edge_number(cg_loop *c, ir_id id) {
    const char *e = c->text[ir_at(c->f, id)->args[0]];
    if (!ir_transposed(c->f)) {
        c->text[id] = e;
        return;
    }
    e = cg_edge_of(c, cg_bare(c->arena, e));
    if (c->source_bits == 32 && cg_foldable(c, id)) /* its user may multiply it */
        e = base_arena_printf(c->arena, "(int64_t)%s", e);
    cg_set_value(c, id, "int64_t", e, true);
}

static void slot(cg_loop *c, ir_id id) {
    cg_set_value(c, id, "int64_t", base_arena_printf(c->arena, "%s & 15", c->text[ir_at(c->f, id)->args[0]]), false);
}

static void degree(cg_loop *c, ir_id id) {
    const char *i = c->text[ir_at(c->f, id)->args[0]];
    c->uses_offsets = true;
    cg_set_value(c, id, "int64_t", base_arena_printf(c->arena, "%s[%s + 1] - %s[%s]", c->offsets, i, c->offsets, i),
                 false);
}

static void dimsize(cg_loop *c, ir_id id) {
    c->text[id] = cg_dim_text(c, ir_find_attr(ir_at(c->f, id), IR_ATTR_DIM)->i);
}

static void store(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    cg_line(&c->w, "%s = %s;", cg_element(c, id), cg_bare(c->arena, c->text[op->args[op->n_args - 1]]));
}

/* Nothing for a state that keeps its value: compilers warn about it. */
void cg_assign(cg_loop *c, const char *place, const char *value) {
    value = cg_bare(c->arena, value);
    if (strcmp(place, value))
        cg_line(&c->w, "%s = %s;", place, value);
}

static void set(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    cg_assign(c, cg_write_place(c, id), c->text[op->args[op->n_args - 1]]);
}

/* ---- partial results --------------------------------------------------------------------------------------------- */
static void accum_arg(cg_loop *c, const ir_op *op, ir_kind k, const char *lane) {
    const cg_place *p = &c->place[op->args[0]];
    ir_dtype t = ir_at(c->f, op->args[0])->type.dtype;
    c->help->arg_better[k][t] = true;
    size_t mark = cg_names_mark(&c->names);
    const char *v = cg_name(&c->names, "candidate"), *slot = cg_name(&c->names, "slot");
    cg_open(&c->w, "%s", "");
    cg_line(&c->w, "const int64_t %s = %s & 15;", slot, lane);
    cg_line(&c->w, "const %s %s = %s;", cg_ctype(t), v, cg_bare(c->arena, c->text[op->args[2]]));
    cg_open(&c->w, "if (tiga_%s_%s(%s, %s, %s[%s], %s[%s]))", ir_kind_text(k), ir_dtype_text(t), v,
            c->text[op->args[3]], p->name, slot, p->pieces->name, slot);
    cg_line(&c->w, "%s[%s] = %s;", p->name, slot, v);
    cg_line(&c->w, "%s[%s] = %s;", p->pieces->name, slot, c->text[op->args[3]]);
    cg_close(&c->w, "");
    cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
}

static void accum(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id), *partials = ir_at(c->f, op->args[0]);
    ir_kind k = ir_kind_of(partials);
    const char *lane = c->text[op->args[1]];
    if (k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX) {
        accum_arg(c, op, k, lane);
        return;
    }
    size_t mark = cg_names_mark(&c->names);
    bool simple = strcspn(lane, "( ") == strlen(lane);
    if (!simple) {
        const char *name = cg_name(&c->names, "slot");
        cg_open(&c->w, "%s", "");
        cg_line(&c->w, "const int64_t %s = %s;", name, cg_bare(c->arena, lane));
        lane = name;
    }
    const char *slot = base_arena_printf(c->arena, "%s[%s & 15]", c->place[op->args[0]].name, lane);
    const char *args[2] = {slot, c->text[op->args[2]]};
    bool atom;
    ir_dtype t = partials->type.dtype;
    cg_line(&c->w, "%s = %s;", slot, cg_expr(c->help, c->arena, cg_kind_op(k), t, t, args, &atom));
    if (!simple)
        cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
}

static void collapse(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id), *partials = ir_at(c->f, op->args[0]);
    ir_kind k = ir_kind_of(partials);
    ir_dtype t = partials->type.dtype;
    c->help->collapse[k][t] = true;
    const cg_place *p = &c->place[op->args[0]];
    const char *call = base_arena_printf(c->arena, "tiga_collapse_%s_%s(%s%s%s)", ir_kind_text(k), ir_dtype_text(t),
                                         p->name, p->pieces ? ", " : "", p->pieces ? p->pieces->name : "");
    cg_set_value(c, id, cg_ctype(op->type.dtype), call, true);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */
void cg_bind_arg(cg_loop *c, const ir_op *loop, int64_t index, const char *text) {
    ir_id arg = cg_region_arg(c, loop, index);
    if (arg)
        c->text[arg] = text;
}

void cg_counted(cg_loop *c, ir_id id, const char *want, const char *from, const char *to) {
    const ir_op *op = ir_at(c->f, id);
    const char *steps = cg_piece_steps(c, id, 1);
    size_t mark = cg_names_mark(&c->names);
    const char *i = cg_name(&c->names, want), *end = to;
    const char *head = base_arena_printf(c->arena, "int64_t %s = %s", i, cg_bare(c->arena, from));
    if (strcspn(to, "( ") != strlen(to)) {
        end = cg_name(&c->names, base_arena_printf(c->arena, "%s_end", want));
        head = base_arena_printf(c->arena, "int64_t %s = %s, %s = %s", i, from, end, to);
    }
    cg_open_steps(c, NULL, i, head, end, steps);
    cg_bind_arg(c, op, 0, i);
    if (op->code == IR_RANGE)
        cg_bind_arg(c, op, 1, strcmp(from, "0") ? base_arena_printf(c->arena, "(%s - %s)", i, from) : i);
    cg_region(c, op->region);
    cg_close_steps(c, i, end, steps);
    cg_names_release(&c->names, mark);
}

void cg_edge_bounds(cg_loop *c, const ir_op *op, const char **begin, const char **end) {
    const char *i = c->text[op->args[0]];
    c->uses_offsets = true;
    *begin = base_arena_printf(c->arena, "%s[%s]", c->offsets, i);
    *end = base_arena_printf(c->arena, "%s[%s + 1]", c->offsets, i);
}

/* ---- prefetch ---------------------------------------------------------------------------------------------------- */
enum { MAX_FETCHES = 8 };

static bool inside(const cg_loop *c, ir_id id, ir_id loop) {
    for (ir_id l = c->site[id].loop; l; l = c->site[l].loop)
        if (l == loop)
            return true;
    return false;
}

/* How many elements in a row the load touches for one edge; 0: as many as *open says, known at run time. */
static int64_t elements_ahead(cg_loop *c, ir_id edges_id, const ir_op *load, const char **open) {
    if (load->n_args < 2)
        return 1;
    ir_id last = load->args[load->n_args - 1];
    if (ir_at(c->f, last)->code != IR_ARG || !inside(c, last, edges_id))
        return 1;
    const ir_op *loop = ir_at(c->f, c->site[last].loop);
    int64_t n = 0;
    ir_id count = loop->args[loop->code == IR_RANGE ? 1 : 0];
    if (loop->code == IR_EDGES)
        return 1;
    if (cg_constant(c, count, &n))
        return n;
    if (count == c->tile_arg)
        return c->tile_capacity;
    if (inside(c, count, edges_id))
        return 1;
    *open = c->text[count];
    return 0;
}

/* The lines of cache that a load of row `ahead` will touch.  Indices that change inside the loop over the edges count as
 * their first value. */
static const char *first_element(cg_loop *c, ir_id edges_id, const ir_op *load, const char *ahead) {
    const char *index[IR_MAX_RANK + 1], *dims[IR_MAX_RANK + 1];
    size_t n = cg_load_index(c, load, index, dims);
    index[0] = ahead;
    for (size_t i = 1; i < n; ++i) {
        ir_id a = load->args[i];
        if (!inside(c, a, edges_id))
            continue;
        const ir_op *loop = ir_at(c->f, c->site[a].loop);
        bool based = ir_at(c->f, a)->code == IR_ARG && loop->code == IR_LANES && loop->n_args > 1 &&
                     !inside(c, loop->args[1], edges_id);
        index[i] = based ? c->text[loop->args[1]] : "0";
    }
    return cg_flat_index(c, index, dims, n);
}

static void fetch_lines(cg_loop *c, ir_id edges_id, const ir_op *load, const char *ahead) {
    int64_t f = ir_int(load, IR_ATTR_FIELD, 0), line = 64 / (int64_t)ir_dtype_bytes(load->type.dtype);
    const char *open = NULL, *at = first_element(c, edges_id, load, ahead);
    int64_t n = elements_ahead(c, edges_id, load, &open);
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

/* Does the load's first index follow the walk in no order: the source of the edge or, on a transposed walk, the edge's own
 * number? */
static bool jumps(const cg_loop *c, const ir_op *load, ir_id edges_id, bool by_edge) {
    const ir_op *index = ir_at(c->f, load->args[0]), *loop = ir_at(c->f, edges_id);
    if (!by_edge)
        return load->args[0] == cg_region_arg(c, loop, 1);
    return ir_transposed(c->f) && index->code == IR_EDGEID && index->args[0] == cg_region_arg(c, loop, 0);
}

static void find_fetches(const cg_loop *c, const ir_region *r, ir_id edges_id, bool by_edge, const ir_op **found,
                         size_t *n) {
    for (size_t i = 0; i < r->n && *n < MAX_FETCHES; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        if (op->region)
            find_fetches(c, op->region, edges_id, by_edge, found, n);
        if (op->code != IR_LOAD || !c->site[r->ops[i]].live || !op->n_args || !jumps(c, op, edges_id, by_edge))
            continue;
        bool known = false;
        for (size_t k = 0; k < *n; ++k)
            known = known || ir_int(found[k], IR_ATTR_FIELD, 0) == ir_int(op, IR_ATTR_FIELD, 0);
        if (!known)
            found[(*n)++] = op;
    }
}

static void fetch_all(cg_loop *c, ir_id id, const ir_op *const *found, size_t n, const char *ahead) {
    for (size_t i = 0; i < n; ++i)
        fetch_lines(c, id, found[i], ahead);
}

static bool prefetches(const cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id), *found[MAX_FETCHES];
    size_t n = 0;
    if (ir_int(op, IR_ATTR_PREFETCH, 0) > 0 && cg_region_arg(c, op, 1))
        find_fetches(c, op->region, id, false, found, &n);
    return n > 0;
}

/* Asks for what the edge `prefetch` places ahead will read at its source, and under its own number on a transposed walk.
 * That edge may belong to a later row of the chunk.  steps: `ask_at`, where the look-ahead ends, is the
 * end of a piece too. */
void cg_prefetch(cg_loop *c, ir_id id, const char *e, const char *steps) {
    const ir_op *op = ir_at(c->f, id), *sources[MAX_FETCHES], *edges[MAX_FETCHES];
    int64_t distance = ir_int(op, IR_ATTR_PREFETCH, 0);
    size_t n_sources = 0, n_edges = 0;
    if (!prefetches(c, id))
        return;
    find_fetches(c, op->region, id, false, sources, &n_sources);
    find_fetches(c, op->region, id, true, edges, &n_edges);
    c->uses_edge_end = c->uses_offsets = true;
    size_t mark = cg_names_mark(&c->names);
    const char *ahead = cg_name(&c->names, "ahead");
    cg_open(&c->w, "if (%s + %lld < %s)", e, (long long)distance, steps ? c->ask_at : c->edge_end);
    cg_line(&c->w, "const int64_t %s = %s;", ahead,
            cg_source(c, base_arena_printf(c->arena, "%s + %lld", e, (long long)distance)));
    fetch_all(c, id, sources, n_sources, ahead);
    if (n_edges) {
        const char *edge = cg_name(&c->names, "edge_ahead");
        cg_line(&c->w, "const int64_t %s = %s;", edge,
                cg_edge_of(c, base_arena_printf(c->arena, "%s + %lld", e, (long long)distance)));
        fetch_all(c, id, edges, n_edges, edge);
    }
    cg_close(&c->w, "");
    if (steps) {
        cg_line(&c->w, "else if (TIGA_RARELY(%s < %s) && (%s = tiga_ask(%s, %s + %lld, %s, %s)) < 0)", c->ask_at,
                c->edge_end, c->ask_at, c->args, e, (long long)distance, c->edge_end, steps);
        cg_line(&c->w, "    return;");
    }
    cg_names_release(&c->names, mark);
}

/* ---- walks ------------------------------------------------------------------------------------------------------- */
static size_t count_walks(const cg_loop *c, const ir_region *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        n += op->code == IR_EDGES;
        n += op->region ? count_walks(c, op->region) : 0;
    }
    return n;
}

/* Where the walk asks first.  The only one of the function goes through its edges in order, so one place is set for all rows;
 * of several, each begins again in every row, and only long ones ask. */
static void first_piece(cg_loop *c, ir_id id, const char *begin, const char *end, const char *steps) {
    c->uses_edge_end = true;
    if (ir_at(c->f, c->site[id].loop)->code == IR_ROWS && count_walks(c, &c->f->body) == 1) {
        c->first_ask =
            base_arena_printf(c->arena, "TIGA_PIECE(%s[%s], %s, 1, %s)", c->offsets, c->row_begin, c->edge_end, steps);
        return;
    }
    c->first_ask = c->edge_end;
    cg_line(&c->w, "if (TIGA_RARELY(%s - %s > TIGA_AT_MOST(%s)))", end, begin, steps);
    cg_line(&c->w, "    %s = %s + TIGA_AT_MOST(%s);", c->ask_at, begin, steps);
}

static void edges(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const char *begin, *end;
    cg_edge_bounds(c, op, &begin, &end);
    ir_id lane = cg_region_arg(c, op, 2), src = cg_region_arg(c, op, 1);
    if (lane) {
        const char *first = cg_name(&c->names, "e_first");
        cg_line(&c->w, "const int64_t %s = %s;", first, begin);
        begin = first;
    }
    size_t mark = cg_names_mark(&c->names); /* e_first stays taken: it is declared outside of the loop */
    const char *e = cg_name(&c->names, "e"), *last = cg_name(&c->names, "e_end");
    const char *steps = cg_piece_steps(c, id, 1), *asks = prefetches(c, id) ? steps : NULL;
    const char *head = base_arena_printf(c->arena, "int64_t %s = %s, %s = %s", e, begin, last, end);
    if (asks)
        first_piece(c, id, begin, end, asks);
    cg_open_steps(c, "TIGA_NO_UNROLL", e, head, last, asks ? NULL : steps);
    cg_bind_arg(c, op, 0, e);
    if (lane)
        c->text[lane] = base_arena_printf(c->arena, "(%s - %s)", e, begin);
    cg_prefetch(c, id, e, asks);
    if (src) {
        const char *j = cg_name(&c->names, "j");
        cg_line(&c->w, "const int64_t %s = %s;", j, cg_source(c, e));
        c->text[src] = j;
    }
    cg_region(c, op->region);
    cg_close_steps(c, e, last, asks ? NULL : steps);
    cg_names_release(&c->names, mark);
}

/* ---- dispatch ---------------------------------------------------------------------------------------------------- */
static void loop_statement(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    if (op->code == IR_ROWS)
        cg_rows(c, id);
    else if (op->code == IR_LOOP && ir_find_attr(op, IR_ATTR_FEW))
        cg_copy_or_view(c, id);
    else if (op->code == IR_LOOP)
        cg_counted(c, id, "n", "0", c->text[op->args[0]]);
    else if (op->code == IR_LANES)
        cg_lanes(c, id);
    else if (op->code == IR_TILES)
        cg_tiles(c, id);
    else if (ir_int(op, IR_ATTR_LANES, 1) == IR_N_PARTIALS && cg_vectorizable(c, id))
        cg_sixteen(c, id);
    else if (op->code == IR_RANGE)
        cg_counted(c, id, "r", c->text[op->args[0]], c->text[op->args[1]]);
    else
        edges(c, id);
}

static void unsupported(cg_loop *c, const ir_op *op) {
    if (!c->failed)
        cg_fail(c->err, "%s: cannot emit '%s' in a loop function", c->f->name, ir_op_describe(op->code)->text);
    c->failed = true;
}

static void constant(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    c->text[id] = cg_const(c->arena, op->type.dtype, ir_find_attr(op, IR_ATTR_VALUE)->v);
    for (size_t i = 0; c->twin && i < c->twin->n_numbers; ++i)
        if (c->twin->id[i] == id && c->site[id].live) {
            c->text[id] = c->number[i];
            c->number_used[i] = true;
        }
}

void cg_statement(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    switch (op->code) {
    case IR_CONST:
        constant(c, id);
        break;
    case IR_DIMSIZE:
        dimsize(c, id);
        break;
    case IR_DEGREE:
        degree(c, id);
        break;
    case IR_ARG:
        break;
    case IR_ROWS:
    case IR_EDGES:
    case IR_RANGE:
    case IR_LOOP:
    case IR_LANES:
    case IR_TILES:
        loop_statement(c, id);
        break;
    case IR_NUMROWS:
        c->text[id] = c->n_rows;
        c->uses_n_rows = true;
        break;
    case IR_EDGEID:
        edge_number(c, id);
        break;
    case IR_SLOT:
        slot(c, id);
        break;
    case IR_SOURCE:
        source(c, id);
        break;
    case IR_LOAD:
        load(c, id);
        break;
    case IR_STORE:
        store(c, id);
        break;
    case IR_VAR:
        cg_declare_var(c, id);
        break;
    case IR_READ:
        read_place(c, id);
        break;
    case IR_SET:
        set(c, id);
        break;
    case IR_PARTIALS:
        cg_declare_partials(c, id);
        break;
    case IR_ACCUM:
        accum(c, id);
        break;
    case IR_COLLAPSE:
        collapse(c, id);
        break;
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_REM:
    case IR_POW:
    case IR_MIN:
    case IR_MAX:
    case IR_ATAN2:
    case IR_NEG:
    case IR_ABS:
    case IR_SIGN:
    case IR_EXP:
    case IR_EXPM1:
    case IR_LOG:
    case IR_LOG1P:
    case IR_SQRT:
    case IR_FLOOR:
    case IR_CEIL:
    case IR_ROUND:
    case IR_SIN:
    case IR_COS:
    case IR_TAN:
    case IR_ASIN:
    case IR_ACOS:
    case IR_ATAN:
    case IR_SINH:
    case IR_COSH:
    case IR_TANH:
    case IR_ERF:
    case IR_CONJ:
    case IR_REAL:
    case IR_IMAG:
    case IR_COMPLEX:
    case IR_HYPOT:
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE:
    case IR_GT:
    case IR_GE:
    case IR_AND:
    case IR_OR:
    case IR_NOT:
    case IR_SELECT:
    case IR_CAST:
        cg_expression(c, id);
        break;
    case IR_OP_NONE:
    case IR_OP_COUNT:
    case IR_FIELD:
    case IR_PARAM:
    case IR_BROADCAST:
    case IR_NEWAXIS:
    case IR_FOLD:
    case IR_REDUCE:
    case IR_COMBINE:
    case IR_RESHAPE:
    case IR_TRANSPOSE:
    case IR_SLICE:
    case IR_CONCAT:
    case IR_GATHER:
    case IR_CUMSUM:
    case IR_IOTA:
    case IR_MATMUL:
    case IR_TOTAL:
    case IR_CALL:
    case IR_GRAD:
    case IR_GET:
    case IR_PUSH:
    case IR_POP:
    case IR_RESTORE:
    case IR_REPEAT:
    case IR_WHILE:
    case IR_IF:
    case IR_ARM:
    case IR_YIELD:
    case IR_RET:
    case IR_BIND:
    case IR_INSTANCE:
    case IR_ACQUIRE:
    case IR_DONE:
    case IR_RELEASE:
    case IR_COPY:
    case IR_LAUNCH:
    case IR_PAGES:
    case IR_READI:
    case IR_READB:
        unsupported(c, op);
        break;
    }
}

void cg_region(cg_loop *c, const ir_region *r) {
    size_t mark = cg_names_mark(&c->names);
    for (size_t i = 0; i < r->n && !c->failed; ++i)
        if (c->site[r->ops[i]].live)
            cg_statement(c, r->ops[i]);
    cg_names_release(&c->names, mark);
}
