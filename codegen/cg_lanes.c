/* Loops whose iterations are independent, written so that they end up in vector registers under every compiler.
 *
 * A lanes loop over a constant number of elements becomes straight code on pieces of 16, 8, 4 and single elements; an
 * array that is only used so is one variable a piece.  A longer or open one becomes a loop over vectors and a loop over the
 * rest.  `edges {lanes = 16}` becomes a loop over 16 edges at a time with the 16 partial results in one vector: element n
 * of the vector is partial result n, so the bits are those of the plain loop. */
#include "codegen/cg_c.h"

#include <string.h>

/* ---- may the body be written in vectors? ------------------------------------------------------------------------- */
static int64_t width_of(const ir_op *loop) {
    int64_t v = loop->code == IR_LANES ? ir_int(loop, IR_ATTR_VECTOR, 0) : 16;
    if (v > 16)
        v = 16;
    return v == 16 || v == 8 || v == 4 ? v : 0;
}

/* Complex numbers are loaded, taken apart, put together and stored in vectors, but not kept or computed with. */
static bool has_vectors(ir_dtype t) { return t != IR_BOOL && !ir_dtype_is_complex(t); }

static cg_vec_class class_of(const cg_loop *c, const ir_op *loop, ir_id id) {
    return c->site[id].region == loop->region ? (cg_vec_class)c->site[id].vec : CG_SAME;
}

/* All indices the same in every lane, except the last, which steps by one. */
static bool steps_by_one(const cg_loop *c, const ir_op *loop, const ir_id *index, uint32_t n, bool *same) {
    *same = true;
    for (uint32_t i = 0; i < n; ++i) {
        cg_vec_class k = class_of(c, loop, index[i]);
        if (k == CG_SAME)
            continue;
        if (k != CG_STEP || i + 1 != n)
            return false;
        *same = false;
    }
    return true;
}

static bool is_lane_argument(const cg_loop *c, const ir_op *loop, ir_id id) {
    if (class_of(c, loop, id) != CG_STEP || ir_at(c->f, id)->code != IR_ARG)
        return false;
    int64_t index = ir_int(ir_at(c->f, id), IR_ATTR_INDEX, 0);
    if (loop->code == IR_LANES)
        return loop->n_args == 1;
    return index == (loop->code == IR_EDGES ? 2 : 1);
}

/* k + 3: a place that steps with the lane, for the part of an axis that a slice or a concat works on. */
static bool steps_too(const cg_loop *c, const ir_op *loop, const ir_op *op) {
    if (op->code != IR_ADD && op->code != IR_SUB)
        return false;
    cg_vec_class a = class_of(c, loop, op->args[0]), b = class_of(c, loop, op->args[1]);
    return (a == CG_STEP && b == CG_SAME) || (op->code == IR_ADD && a == CG_SAME && b == CG_STEP);
}

static bool classify_elementwise(cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    bool any = false;
    if (steps_too(c, loop, op)) {
        c->site[id].vec = CG_STEP;
        return true;
    }
    for (uint32_t i = 0; i < op->n_args; ++i) {
        cg_vec_class k = class_of(c, loop, op->args[i]);
        if (k == CG_STEP || k == CG_SOURCE || k == CG_SLOT)
            return false;
        any = any || k == CG_VECTOR;
    }
    if (!any)
        return true;
    c->site[id].vec = CG_VECTOR;
    ir_dtype in = ir_at(c->f, op->args[op->code == IR_SELECT ? 1 : 0])->type.dtype, out = op->type.dtype;
    unsigned char bytes = in == IR_BOOL ? 0 : (unsigned char)ir_dtype_bytes(in);
    if (ir_op_describe(op->code)->cls == IR_CLASS_COMPARE)
        return bytes >= 4 && has_vectors(in) && (c->site[id].mask_bytes = bytes);
    if (op->code == IR_AND || op->code == IR_OR || op->code == IR_NOT) {
        for (uint32_t i = 0; i < op->n_args; ++i) {
            const cg_site *s = &c->site[op->args[i]];
            if (class_of(c, loop, op->args[i]) != CG_VECTOR || s->mask_bytes != c->site[op->args[0]].mask_bytes)
                return false;
        }
        return (c->site[id].mask_bytes = c->site[op->args[0]].mask_bytes) != 0;
    }
    if (op->code == IR_REAL || op->code == IR_IMAG || op->code == IR_COMPLEX)
        return true;
    if (in == IR_BOOL || out == IR_BOOL || ir_dtype_is_complex(in) || ir_dtype_is_complex(out))
        return false;
    if (op->code == IR_SELECT && class_of(c, loop, op->args[0]) == CG_VECTOR)
        return c->site[op->args[0]].mask_bytes == bytes;
    return true;
}

static bool classify_load(cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    bool same;
    if (c->f->params[ir_int(op, IR_ATTR_FIELD, 0)].role >= IR_OUT_ROW)
        return false;
    if (steps_by_one(c, loop, op->args, op->n_args, &same)) {
        c->site[id].vec = same ? CG_SAME : CG_VECTOR;
        return same || op->type.dtype != IR_BOOL;
    }
    if (op->type.dtype == IR_BOOL || class_of(c, loop, op->args[0]) != CG_SOURCE)
        return false;
    c->site[id].vec = CG_VECTOR;
    return steps_by_one(c, loop, op->args + 1, op->n_args - 1, &same) && same;
}

/* What can stand in a vector or fill one; the number of a lane is only good as an index. */
static bool is_value(const cg_loop *c, const ir_op *loop, ir_id id) {
    cg_vec_class k = class_of(c, loop, id);
    return k == CG_SAME || k == CG_VECTOR;
}

/* A read or set of the state that the iteration's lane belongs to. */
static bool is_slot_access(const cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const ir_type *t = op->code == IR_READ || op->code == IR_SET ? &ir_at(c->f, op->args[0])->type : NULL;
    return t && t->rank == 1 && t->dim[0] == IR_N_PARTIALS && has_vectors(t->dtype) &&
           class_of(c, loop, op->args[1]) == CG_SLOT;
}

static bool classify_place(cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    if (is_slot_access(c, loop, id)) {
        c->site[id].vec = op->code == IR_READ ? CG_VECTOR : CG_SAME;
        return op->code == IR_READ || is_value(c, loop, op->args[2]);
    }
    ir_dtype t = ir_at(c->f, op->args[0])->type.dtype;
    bool same;
    uint32_t n = op->n_args - (op->code == IR_SET ? 2 : 1);
    if (!steps_by_one(c, loop, op->args + 1, n, &same))
        return false;
    if (op->code == IR_READ)
        c->site[id].vec = same ? CG_SAME : CG_VECTOR;
    if (op->code == IR_READ && same)
        return true;
    return loop->code == IR_LANES && !same && has_vectors(t) &&
           (op->code == IR_READ || is_value(c, loop, op->args[op->n_args - 1]));
}

static bool classify_accum(cg_loop *c, const ir_op *loop, const ir_op *op) {
    const ir_op *partials = ir_at(c->f, op->args[0]);
    ir_kind k = ir_kind_of(partials);
    if (k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX || !has_vectors(partials->type.dtype))
        return false;
    return is_lane_argument(c, loop, op->args[1]) && is_value(c, loop, op->args[2]);
}

static bool can_store(const cg_loop *c, const ir_op *loop, ir_id value) {
    ir_dtype t = ir_at(c->f, value)->type.dtype;
    return has_vectors(t) ? is_value(c, loop, value) : ir_dtype_is_complex(t) && class_of(c, loop, value) == CG_VECTOR;
}

static bool classify(cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    bool same, lane_ok = true;
    for (uint32_t i = 0; i < op->n_args && loop->code != IR_LANES;
         ++i) /* the place in the row only chooses the partial */
        if (op->code != IR_ACCUM && op->code != IR_SLOT && is_lane_argument(c, loop, op->args[i]))
            lane_ok = false;
    if (!lane_ok)
        return false;
    c->site[id].vec = CG_SAME;
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return classify_elementwise(c, loop, id);
    switch ((int)op->code) {
    case IR_ARG:
        c->site[id].vec = loop->code == IR_EDGES && ir_int(op, IR_ATTR_INDEX, 0) == 1 ? CG_SOURCE : CG_STEP;
        return true;
    case IR_CONST:
    case IR_DIMSIZE:
    case IR_NUMROWS:
        return true;
    case IR_SLOT:
        c->site[id].vec = CG_SLOT;
        return loop->code != IR_LANES && is_lane_argument(c, loop, op->args[0]);
    case IR_LOAD:
        return classify_load(c, loop, id);
    case IR_READ:
    case IR_SET:
        return classify_place(c, loop, id);
    case IR_STORE:
        return steps_by_one(c, loop, op->args, op->n_args - 1, &same) && !same &&
               can_store(c, loop, op->args[op->n_args - 1]);
    case IR_ACCUM:
        return classify_accum(c, loop, op);
    default:
        return false;
    }
}

bool cg_vectorizable(cg_loop *c, ir_id id) {
    const ir_op *loop = ir_at(c->f, id);
    if (!width_of(loop))
        return false;
    for (size_t i = 0; i < loop->region->n; ++i)
        if (c->site[loop->region->ops[i]].live && !classify(c, loop, loop->region->ops[i]))
            return false;
    return true;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */
static size_t pieces(cg_loop *c, int64_t n, int64_t width, cg_piece **out) {
    size_t count = 0;
    int64_t left = n, offset = 0;
    *out = base_arena_new_array(c->arena, cg_piece, CG_MAX_PIECES);
    while (left > 0) {
        while (width > left)
            width = width > 4 ? width / 2 : 1;
        if (count == CG_MAX_PIECES)
            return 0;
        (*out)[count++] = (cg_piece){.offset = offset, .lanes = (int)width};
        offset += width;
        left -= width;
    }
    return count;
}

/* Is every use of the array at the element of its own lane, in vector loops over exactly the array? */
bool cg_in_registers(cg_loop *c, ir_id var, cg_piece **out, size_t *n) {
    const ir_op *op = ir_at(c->f, var);
    int64_t size = cg_elements(c, var, c->tile_width), width = 0, count;
    *n = 0;
    if (op->type.rank != 1 || !has_vectors(op->type.dtype) || size <= 0 ||
        (op->type.dim[0] == IR_DIM_TILE && !c->tile_width))
        return false;
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        const ir_op *use = ir_at(c->f, id);
        if (!c->site[id].live || (use->code != IR_READ && use->code != IR_SET) || use->args[0] != var)
            continue;
        ir_id loop_id = c->site[id].loop;
        const ir_op *loop = loop_id ? ir_at(c->f, loop_id) : NULL;
        if (!loop || loop->code != IR_LANES || c->site[use->args[1]].loop != loop_id || !cg_vectorizable(c, loop_id))
            return false;
        if (ir_at(c->f, use->args[1])->code != IR_ARG)
            return false; /* another lane's element */
        if (loop->n_args > 1 && ir_int(ir_at(c->f, use->args[1]), IR_ATTR_INDEX, 0) != 1)
            return false;
        if (!cg_constant(c, loop->args[0], &count) || count != size || (width && width != width_of(loop)))
            return false;
        width = width_of(loop);
    }
    return width && (*n = pieces(c, size, width, out)) > 0;
}

/* ---- vector statements ------------------------------------------------------------------------------------------- */
static const char *suffix(cg_loop *c, ir_dtype t, int lanes) {
    c->vec->type[t][cg_log2(lanes)] = true;
    return base_arena_printf(c->arena, "%sx%d", ir_dtype_text(t), lanes);
}

static const char *operand(cg_loop *c, const ir_op *loop, ir_id id) {
    ir_dtype t = ir_at(c->f, id)->type.dtype;
    if (class_of(c, loop, id) == CG_VECTOR)
        return c->text[id];
    c->vec->splat[t][cg_log2(c->lanes)] = true;
    return base_arena_printf(c->arena, "tiga_splat_%s(%s)", suffix(c, t, c->lanes), cg_bare(c->arena, c->text[id]));
}

static const char *vector_load(cg_loop *c, ir_dtype t, const char *at) {
    c->vec->load[t][cg_log2(c->lanes)] = true;
    return base_arena_printf(c->arena, "tiga_load_%s(&%s)", suffix(c, t, c->lanes), at);
}

static void vector_store(cg_loop *c, ir_dtype t, const char *at, const char *value) {
    c->vec->store[t][cg_log2(c->lanes)] = true;
    cg_line(&c->w, "tiga_store_%s(&%s, %s);", suffix(c, t, c->lanes), at, cg_bare(c->arena, value));
}

static ir_dtype mask_dtype(unsigned bytes) { return bytes == 8 ? IR_I64 : IR_I32; }

static void vector_elementwise(cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    ir_dtype in = ir_at(c->f, op->args[op->code == IR_SELECT ? 1 : 0])->type.dtype, out = op->type.dtype;
    if (in == IR_BOOL)
        in = mask_dtype(c->site[id].mask_bytes);
    if (out == IR_BOOL)
        out = mask_dtype(c->site[id].mask_bytes);
    const char *type = cg_vector_type(c, out, c->lanes), *a[3] = {"", "", ""}, *call;
    bool choice = op->code == IR_SELECT && class_of(c, loop, op->args[0]) != CG_VECTOR;
    for (uint32_t i = 0; i < op->n_args; ++i)
        a[i] = choice && i == 0 ? c->text[op->args[0]] : operand(c, loop, op->args[i]);
    if (choice) {
        cg_set_value(c, id, type, base_arena_printf(c->arena, "%s ? %s : %s", a[0], a[1], a[2]), false);
        return;
    }
    if (op->code == IR_REAL || op->code == IR_IMAG) {
        const char *part = base_arena_printf(c->arena, "%s.%s", a[0], op->code == IR_REAL ? "re" : "im");
        cg_set_value(c, id, type, part, true);
        return;
    }
    c->vec->op[op->code][in][out][cg_log2(c->lanes)] = true;
    const char *name = op->code == IR_CAST ? base_arena_printf(c->arena, "%s_from", ir_dtype_text(out))
                                           : ir_op_describe(op->code)->text;
    call = base_arena_printf(c->arena, "tiga_%s_%s(%s%s%s%s%s)", name, suffix(c, in, c->lanes), cg_bare(c->arena, a[0]),
                             op->n_args > 1 ? ", " : "", cg_bare(c->arena, a[1]), op->n_args > 2 ? ", " : "",
                             cg_bare(c->arena, a[2]));
    cg_set_value(c, id, type, call, true);
}

/* 16 elements at the sources of 16 edges: x[sources[e + n] * stride + rest]. */
static const char *gather(cg_loop *c, const ir_op *op) {
    const char *index[IR_MAX_RANK + 1], *dims[IR_MAX_RANK + 1], *stride = NULL;
    size_t n = cg_load_index(c, op, index, dims);
    int64_t f = ir_int(op, IR_ATTR_FIELD, 0);
    const char *e = index[0];
    index[0] = "0";
    for (size_t i = 1; i < n; ++i)
        stride = stride ? base_arena_printf(c->arena, "%s * %s", stride, dims[i]) : dims[i];
    c->field_used[f] = c->uses_sources = true;
    const char *call[2] = {NULL, NULL}, *at = cg_flat_index(c, index, dims, n);
    for (int wide = 0; wide < 2; ++wide) {
        int bits = wide ? 64 : 32;
        if (c->source_bits != CG_EITHER && c->source_bits != bits)
            continue;
        const char *from = c->source_bits == CG_EITHER ? base_arena_printf(c->arena, "(const int%d_t *)", bits) : "";
        c->vec->gather[op->type.dtype][cg_log2(c->lanes)][wide] = true;
        call[wide] = base_arena_printf(c->arena, "tiga_gather%d_%s(&%s[%s], %s%s + %s, %s)", bits,
                                       suffix(c, op->type.dtype, c->lanes), c->field[f], at, from, c->sources, e,
                                       stride ? stride : "1");
    }
    return call[0] && call[1] ? base_arena_printf(c->arena, "(%s ? %s : %s)", c->wide, call[1], call[0])
           : call[0]          ? call[0]
                              : call[1];
}

static void vector_load_statement(cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    bool gathers = op->n_args && class_of(c, loop, op->args[0]) == CG_SOURCE;
    const char *e = gathers ? gather(c, op) : vector_load(c, op->type.dtype, cg_element(c, id));
    cg_set_value(c, id, cg_vector_type(c, op->type.dtype, c->lanes), e, true);
}

static void vector_read(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const cg_place *p = &c->place[op->args[0]];
    const char *e = p->vector         ? p->vector
                    : p->n_pieces > 0 ? cg_element(c, id)
                                      : vector_load(c, op->type.dtype, cg_element(c, id));
    if (c->site[id].aliased)
        c->text[id] = e;
    else
        cg_set_value(c, id, cg_vector_type(c, op->type.dtype, c->lanes), e, true);
}

static void vector_accum(cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id), *partials = ir_at(c->f, op->args[0]);
    const cg_place *p = &c->place[op->args[0]];
    ir_dtype t = partials->type.dtype;
    ir_opcode code = cg_kind_op(ir_kind_of(partials));
    const char *lane = c->text[op->args[1]], *value = operand(c, loop, op->args[2]);
    c->vec->op[code][t][t][cg_log2(c->lanes)] = true;
    const char *at = c->lanes == 16 ? base_arena_printf(c->arena, "%s[0]", p->name)
                     : c->lane_offset >= 0
                         ? base_arena_printf(c->arena, "%s[%lld]", p->name, (long long)(c->lane_offset % 16))
                         : base_arena_printf(c->arena, "%s[%s & 15]", p->name, lane);
    const char *old = p->vector ? p->vector : vector_load(c, t, at);
    const char *sum = base_arena_printf(c->arena, "tiga_%s_%s(%s, %s)", ir_op_describe(code)->text,
                                        suffix(c, t, c->lanes), old, value);
    if (p->vector)
        cg_line(&c->w, "%s = %s;", p->vector, sum);
    else
        vector_store(c, t, at, sum);
}

static void vector_statement(cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    ir_id last = op->n_args ? op->args[op->n_args - 1] : 0;
    if (op->code == IR_SLOT)
        return; /* all sixteen */
    if (op->code == IR_STORE) {
        vector_store(c, ir_at(c->f, last)->type.dtype, cg_element(c, id), operand(c, loop, last));
    } else if (op->code == IR_SET) {
        const cg_place *p = &c->place[op->args[0]];
        const char *value = operand(c, loop, last);
        if (p->vector)
            cg_assign(c, p->vector, value);
        else if (p->n_pieces)
            cg_assign(c, cg_write_place(c, id), value);
        else
            vector_store(c, ir_at(c->f, last)->type.dtype, cg_element(c, id), value);
    } else if (op->code == IR_ACCUM) {
        vector_accum(c, loop, id);
    } else if (class_of(c, loop, id) == CG_STEP && op->code != IR_ARG) { /* of an axis: far from overflowing */
        c->text[id] = base_arena_printf(c->arena, "(%s %c %s)", c->text[op->args[0]], op->code == IR_ADD ? '+' : '-',
                                        c->text[op->args[1]]);
    } else if (class_of(c, loop, id) != CG_VECTOR) {
        cg_statement(c, id);
    } else if (op->code == IR_LOAD) {
        vector_load_statement(c, loop, id);
    } else if (op->code == IR_READ) {
        vector_read(c, id);
    } else {
        vector_elementwise(c, loop, id);
    }
}

static void body(cg_loop *c, const ir_op *loop) {
    size_t mark = cg_names_mark(&c->names);
    for (size_t i = 0; i < loop->region->n; ++i) {
        ir_id id = loop->region->ops[i];
        if (!c->site[id].live)
            continue;
        if (c->lanes > 1)
            vector_statement(c, loop, id);
        else
            cg_statement(c, id);
    }
    cg_names_release(&c->names, mark);
}

static void bind(cg_loop *c, const ir_op *loop, int64_t index, const char *text) {
    ir_id arg = cg_region_arg(c, loop, index);
    if (arg)
        c->text[arg] = text;
}

/* The body for `lanes` elements from `offset` on (-1: not constant). In braces when it names values. */
static void piece(cg_loop *c, const ir_op *loop, int lanes, int64_t offset) {
    base_str *out = c->w.out, *text = base_arena_str(c->arena);
    size_t named = c->n_named;
    c->lanes = lanes;
    c->lane_offset = offset;
    c->w.out = text;
    body(c, loop);
    c->w.out = out;
    if (c->n_named == named) {
        base_str_add(out, base_str_text(text));
    } else {
        cg_open(&c->w, "%s", "");
        body(c, loop);
        cg_close(&c->w, "");
    }
    c->lanes = 0;
    c->lane_offset = -1;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */
static const char *plus(cg_loop *c, const char *a, const char *b) {
    if (!strcmp(a, "0"))
        return b;
    return strcmp(b, "0") ? base_arena_printf(c->arena, "%s + %s", a, b) : a;
}

static void unrolled(cg_loop *c, const ir_op *loop, const cg_piece *list, size_t n) {
    const char *base = loop->n_args > 1 ? c->text[loop->args[1]] : "0";
    for (size_t i = 0; i < n; ++i) {
        const char *l = base_arena_printf(c->arena, "%lld", (long long)list[i].offset);
        bind(c, loop, 0, plus(c, base, l));
        bind(c, loop, 1, l);
        piece(c, loop, list[i].lanes, list[i].offset);
    }
}

static void plain_lanes(cg_loop *c, ir_id id) {
    const ir_op *loop = ir_at(c->f, id);
    const char *steps = cg_piece_steps(c, id, 1);
    size_t mark = cg_names_mark(&c->names);
    const char *base = loop->n_args > 1 ? c->text[loop->args[1]] : "0", *n = c->text[loop->args[0]];
    bool based = strcmp(base, "0") != 0;
    const char *l = cg_name(&c->names, based ? "l" : "k");
    const char *pragma = c->tile_arg && !c->tile_width && c->tile_capacity <= 16 ? "TIGA_SHORT_LOOP" : NULL;
    cg_open_steps(c, pragma, l, base_arena_printf(c->arena, "int64_t %s = 0", l), n, steps);
    bind(c, loop, 0, based ? base_arena_printf(c->arena, "(%s + %s)", base, l) : l);
    bind(c, loop, 1, l);
    cg_region(c, loop->region);
    cg_close_steps(c, l, n, steps);
    cg_names_release(&c->names, mark);
}

/* The place whose 16 elements an operation of the loop works on; 0: none. */
static ir_id place_of_sixteen(const cg_loop *c, const ir_op *loop, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    bool sixteen = c->site[id].live && (op->code == IR_ACCUM || is_slot_access(c, loop, id));
    return sixteen ? op->args[0] : 0;
}

/* The 16 partial results go into a vector for the time of a loop, and back. */
static void partials_to_vectors(cg_loop *c, const ir_op *loop) {
    c->lanes = 16;
    for (size_t i = 0; i < loop->region->n; ++i) {
        ir_id place = place_of_sixteen(c, loop, loop->region->ops[i]);
        cg_place *p = &c->place[place];
        if (!place || p->vector)
            continue;
        const ir_op *op = ir_at(c->f, place);
        const char *want =
            op->code == IR_VAR ? base_arena_printf(c->arena, "%s_16", p->name) : ir_kind_text(ir_kind_of(op));
        p->vector = cg_name(&c->names, want);
        const char *first = base_arena_printf(c->arena, "%s[0]", p->name);
        cg_line(&c->w, "%s %s = %s;", cg_vector_type(c, op->type.dtype, 16), p->vector,
                vector_load(c, op->type.dtype, first));
    }
}

static void partials_from_vectors(cg_loop *c, const ir_op *loop) {
    c->lanes = 16;
    for (size_t i = 0; i < loop->region->n; ++i) {
        ir_id place = place_of_sixteen(c, loop, loop->region->ops[i]);
        cg_place *p = &c->place[place];
        if (!place || !p->vector)
            continue;
        vector_store(c, ir_at(c->f, place)->type.dtype, base_arena_printf(c->arena, "%s[0]", p->name), p->vector);
        p->vector = NULL;
    }
    c->lanes = 0;
}

/* An open number of lanes: whole vectors, then one by one. */
static void strips(cg_loop *c, ir_id id) {
    const ir_op *loop = ir_at(c->f, id);
    const char *base = loop->n_args > 1 ? c->text[loop->args[1]] : "0", *n = c->text[loop->args[0]];
    int64_t width = width_of(loop);
    const char *steps = cg_piece_steps(c, id, width);
    size_t mark = cg_names_mark(&c->names);
    cg_open(&c->w, "%s", "");
    const char *l = cg_name(&c->names, "k");
    cg_line(&c->w, "int64_t %s = 0;", l);
    bind(c, loop, 0, plus(c, base, l));
    bind(c, loop, 1, l);
    if (width == IR_N_PARTIALS)
        partials_to_vectors(c, loop);
    cg_open_vectors(c, l, n, width, steps);
    c->lanes = (int)width;
    c->lane_offset = -1;
    body(c, loop);
    cg_close_vectors(c, l, n, width, steps);
    partials_from_vectors(c, loop);
    cg_open(&c->w, "for (; %s < %s; ++%s)", l, n, l);
    body(c, loop);
    cg_close(&c->w, "");
    cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
}

void cg_lanes(cg_loop *c, ir_id id) {
    const ir_op *loop = ir_at(c->f, id);
    int64_t n = 0;
    cg_piece *list;
    bool open_rest = loop->args[0] == c->tile_arg && c->tile_arg && !c->tile_width;
    if (open_rest || !cg_vectorizable(c, id)) {
        plain_lanes(c, id);
        return;
    }
    bool known = cg_constant(c, loop->args[0], &n);
    size_t n_pieces = known ? pieces(c, n, width_of(loop), &list) : 0;
    if (n_pieces)
        unrolled(c, loop, list, n_pieces);
    else if (!known || n > 0)
        strips(c, id);
}

/* ---- sixteen edges at a time ------------------------------------------------------------------------------------- */
static void ahead_of_sixteen(cg_loop *c, ir_id id, const char *e) {
    const ir_op *op = ir_at(c->f, id);
    if (op->code != IR_EDGES || ir_int(op, IR_ATTR_PREFETCH, 0) <= 0)
        return;
    size_t mark = cg_names_mark(&c->names);
    const char *n = cg_name(&c->names, "n");
    cg_prefetch_streams(c, id, e, 16);
    cg_open(&c->w, "for (int %s = 0; %s < 16; ++%s)", n, n, n);
    cg_prefetch(c, id, base_arena_printf(c->arena, "%s + %s", e, n), NULL);
    cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
}

static bool has_functions(const cg_loop *c, const ir_region *r, bool in_edges) {
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        if ((in_edges && ir_math_name(op->code, IR_F32)) ||
            (op->region && has_functions(c, op->region, in_edges || op->code == IR_EDGES)))
            return true;
    }
    return false;
}

static bool has_partials(const cg_loop *c, const ir_op *loop) {
    for (size_t i = 0; i < loop->region->n; ++i)
        if (place_of_sixteen(c, loop, loop->region->ops[i]))
            return true;
    return false;
}

/* Rows are often shorter than 16 edges: where these only compute functions and store, eight and four go by vectors too. */
static void shorter_vectors(cg_loop *c, const ir_op *loop, const char *e, const char *last) {
    if (loop->code != IR_EDGES || cg_region_arg(c, loop, 1) || has_partials(c, loop) ||
        !has_functions(c, loop->region, true))
        return;
    for (int width = 8; width >= 4; width /= 2) {
        cg_open(&c->w, "if (%s + %d <= %s)", e, width, last);
        c->lanes = width;
        c->lane_offset = -1;
        body(c, loop);
        c->lanes = 0;
        cg_line(&c->w, "%s += %d;", e, width);
        cg_close(&c->w, "");
    }
}

void cg_sixteen(cg_loop *c, ir_id id) {
    const ir_op *loop = ir_at(c->f, id);
    bool edges = loop->code == IR_EDGES;
    const char *begin = c->text[loop->args[0]], *end = edges ? NULL : c->text[loop->args[1]];
    if (edges)
        cg_edge_bounds(c, loop, &begin, &end);
    size_t mark = cg_names_mark(&c->names);
    cg_open(&c->w, "%s", "");
    const char *e = cg_name(&c->names, edges ? "e" : "r"), *last = cg_name(&c->names, edges ? "e_end" : "r_end");
    cg_line(&c->w, "int64_t %s = %s;", e, begin);
    cg_line(&c->w, "const int64_t %s = %s;", last, end);
    bind(c, loop, 0, e);
    bind(c, loop, edges ? 2 : 1, "0");
    if (edges)
        bind(c, loop, 1, e);
    cg_open(&c->w, "if (%s + 16 <= %s)", e, last);
    partials_to_vectors(c, loop);
    const char *steps = cg_piece_steps(c, id, 16);
    cg_open_vectors(c, e, last, 16, steps);
    ahead_of_sixteen(c, id, e);
    c->lanes = 16;
    c->lane_offset = -1;
    body(c, loop);
    cg_close_vectors(c, e, last, 16, steps);
    partials_from_vectors(c, loop);
    cg_close(&c->w, "");
    shorter_vectors(c, loop, e, last);
    const char *n = cg_name(&c->names, "n");
    cg_line(&c->w, "TIGA_SHORT_LOOP");
    cg_open(&c->w, "for (int64_t %s = 0; %s < %s; ++%s, ++%s)", n, e, last, e, n);
    bind(c, loop, edges ? 2 : 1, n);
    if (edges && cg_region_arg(c, loop, 1)) {
        const char *j = cg_name(&c->names, "j");
        c->uses_sources = true;
        cg_line(&c->w, "const int64_t %s = %s;", j, cg_source(c, e));
        bind(c, loop, 1, j);
    }
    body(c, loop);
    cg_close(&c->w, "");
    cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */
static int64_t vector_inside(const cg_loop *c, const ir_region *r) {
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        int64_t v = op->code == IR_LANES && c->site[r->ops[i]].live ? width_of(op) : 0;
        if (!v && op->region)
            v = vector_inside(c, op->region);
        if (v)
            return v;
    }
    return 0;
}

typedef struct tile_state {
    ir_id arg;
    int64_t width, capacity;
} tile_state;

/* A copy of the walk. width 0: known at run time, at most capacity. */
static void tile_copy(cg_loop *c, const ir_op *op, const char *k0, const char *w, int64_t width, int64_t capacity) {
    tile_state outer = {c->tile_arg, c->tile_width, c->tile_capacity};
    c->tile_arg = 0;
    for (size_t i = 0; i < op->region->n; ++i) {
        const ir_op *arg = ir_at(c->f, op->region->ops[i]);
        if (arg->code == IR_ARG && ir_int(arg, IR_ATTR_INDEX, 0) == 1)
            c->tile_arg = op->region->ops[i];
    }
    c->tile_width = width;
    c->tile_capacity = capacity;
    bind(c, op, 0, k0);
    bind(c, op, 1, width ? base_arena_printf(c->arena, "%lld", (long long)width) : w);
    cg_tile_of_rows(c, op->region);
    c->tile_arg = outer.arg;
    c->tile_width = outer.width;
    c->tile_capacity = outer.capacity;
}

static void constant_tiles(cg_loop *c, const ir_op *op, int64_t n, int64_t width) {
    int64_t whole = n / width * width;
    size_t mark = cg_names_mark(&c->names);
    const char *k0 = cg_name(&c->names, "k0");
    if (whole == width)
        cg_open(&c->w, "%s", "");
    else if (whole)
        cg_open(&c->w, "for (int64_t %s = 0; %s < %lld; %s += %lld)", k0, k0, (long long)whole, k0, (long long)width);
    if (whole)
        tile_copy(c, op, whole == width ? "0" : k0, NULL, width, width);
    if (whole)
        cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
    if (whole == n)
        return;
    cg_open(&c->w, "%s", "");
    tile_copy(c, op, base_arena_printf(c->arena, "%lld", (long long)whole), NULL, n - whole, n - whole);
    cg_close(&c->w, "");
}

/* Functions of mathematics, for each edge. */
static void open_tiles(cg_loop *c, ir_id id, int64_t width) {
    const ir_op *op = ir_at(c->f, id);
    int64_t vector = vector_inside(c, op->region);
    const char *n = c->text[op->args[0]];
    size_t mark = cg_names_mark(&c->names);
    cg_open(&c->w, "%s", "");
    const char *k0 = cg_name(&c->names, "k0");
    cg_line(&c->w, "int64_t %s = 0;", k0);
    /* Many bodies do without the widest copy, which is half of what there is to compile: two walks of half its width are
     * up to a fifth slower where all is in the cache, and as fast where it is not.  Not with functions of mathematics, which
     * each walk computes again for all edges. */
    if (c->source_bits == CG_EITHER && vector && width >= 2 * vector && !has_functions(c, op->region, false))
        width /= 2;
    /* halves in between: 32 features would otherwise be two walks of 16; a half is left at most once */
    int64_t before = 0;
    for (int64_t step = width; vector && step >= vector; step = step / 2 > vector ? step / 2 : vector) {
        bool once = before && before <= 2 * step;
        const char *steps = step == width ? cg_piece_steps(c, id, 1) : NULL;
        if (once)
            cg_open(&c->w, "if (%s + %lld <= %s)", k0, (long long)step, n);
        else
            cg_open_vectors(c, k0, n, step, steps);
        tile_copy(c, op, k0, NULL, step, step);
        if (once)
            cg_line(&c->w, "%s += %lld;", k0, (long long)step);
        if (once)
            cg_close(&c->w, "");
        else
            cg_close_vectors(c, k0, n, step, steps);
        if (step == vector)
            break;
        before = step;
    }
    bool rest_once = vector && vector <= width;
    if (rest_once)
        cg_open(&c->w, "if (%s < %s)", k0, n);
    else
        cg_open(&c->w, "for (; %s < %s; %s += %lld)", k0, n, k0, (long long)width);
    const char *w = cg_name(&c->names, "width");
    if (rest_once)
        cg_line(&c->w, "const int64_t %s = %s - %s;", w, n, k0);
    else
        cg_line(&c->w, "const int64_t %s = %s - %s < %lld ? %s - %s : %lld;", w, n, k0, (long long)width, n, k0,
                (long long)width);
    tile_copy(c, op, k0, w, 0, rest_once ? vector : width);
    cg_close(&c->w, "");
    cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
}

void cg_tiles(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    int64_t width = ir_int(op, IR_ATTR_WIDTH, 1), n;
    if (!cg_constant(c, op->args[0], &n))
        open_tiles(c, id, width);
    else if (n > 0)
        constant_tiles(c, op, n, width);
}
