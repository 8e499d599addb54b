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
    if (op->code == IR_ROWS)
        cg_prefetch_row(c, id, i);
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
            base_arena_printf(c->arena, "TIGA_PIECE(%s[%s], %s, 1, %s)", c->offsets, c->first_row, c->edge_end, steps);
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
    const char *steps = cg_piece_steps(c, id, 1), *asks = cg_prefetches(c, id) ? steps : NULL;
    const char *head = base_arena_printf(c->arena, "int64_t %s = %s, %s = %s", e, begin, last, end);
    if (asks)
        first_piece(c, id, begin, end, asks);
    cg_open_steps(c, "TIGA_NO_UNROLL", e, head, last, asks ? NULL : steps);
    cg_bind_arg(c, op, 0, e);
    if (lane)
        c->text[lane] = base_arena_printf(c->arena, "(%s - %s)", e, begin);
    cg_prefetch_streams(c, id, e, 1);
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
