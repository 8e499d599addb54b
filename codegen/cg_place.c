/* Arrays and variables of a loop function: where they live (registers, local arrays, scratch memory) and what their
 * elements are called.  All index arithmetic is in int64_t. */
#include "codegen/cg_c.h"

#include <string.h>

const char *cg_dim_text(cg_loop *c, ir_dim d) {
    d = cg_dim(c, d);
    if (d >= 0)
        return base_arena_printf(c->arena, "%lld", (long long)d);
    if (d == IR_DIM_TILE)
        return base_arena_printf(c->arena, "%lld", (long long)c->tile_capacity);
    c->dim_used[ir_dim_sym_index(d)] = true;
    return c->dim[ir_dim_sym_index(d)];
}

const char *cg_flat_index(cg_loop *c, const char *const *index, const char *const *dims, size_t n) {
    const char *t = NULL;
    bool sum = false;
    for (size_t i = 0; i < n; ++i) {
        if (t && strcmp(dims[i], "1")) {
            t = base_arena_printf(c->arena, sum ? "(%s) * %s" : "%s * %s", t, dims[i]);
            sum = false;
        }
        if (!strcmp(index[i], "0"))
            continue;
        sum = sum || t;
        const char *plus = cg_bare(c->arena, index[i]);
        t = t ? base_arena_printf(c->arena, "%s + %s", t, plus) : plus;
        sum = sum || strpbrk(plus, "+- ");
    }
    return t ? t : "0";
}

static bool has_row_axis(ir_role r) { return r != IR_PARAM_FIELD && r != IR_OUT_PARAM; }

/* Indices and dimensions of a load or store, for cg_flat_index, which looks at no first dimension: a size asked for only
 * there would be a variable that nothing uses. */
size_t cg_load_index(cg_loop *c, const ir_op *op, const char **index, const char **dims) {
    const ir_param *p = &c->f->params[ir_int(op, IR_ATTR_FIELD, 0)];
    size_t lead = has_row_axis(p->role), n = lead + p->type.rank;
    for (size_t i = 0; i < n; ++i) {
        index[i] = c->text[op->args[i]];
        dims[i] = i < lead || i == 0 ? "1" : cg_dim_text(c, p->type.dim[i - lead]);
    }
    return n;
}

static size_t place_index(cg_loop *c, const ir_op *op, const char **index, const char **dims) {
    const ir_type *t = &ir_at(c->f, op->args[0])->type;
    for (size_t i = 0; i < t->rank; ++i) {
        index[i] = c->text[op->args[i + 1]];
        dims[i] = i == 0 ? "1" : cg_dim_text(c, t->dim[i]);
    }
    return t->rank;
}

/* The variable that holds the elements written now. */
const cg_piece *cg_piece_at(const cg_loop *c, const cg_place *p) {
    for (size_t i = 0; i < p->n_pieces; ++i)
        if (p->pieces[i].offset == c->lane_offset)
            return &p->pieces[i];
    BASE_BUG("no piece at element %lld of %s", (long long)c->lane_offset, p->name);
}

const char *cg_element(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const char *index[IR_MAX_RANK + 1], *dims[IR_MAX_RANK + 1];
    bool field = op->code == IR_LOAD || op->code == IR_STORE;
    if (field) {
        int64_t f = ir_int(op, IR_ATTR_FIELD, 0);
        size_t n = cg_load_index(c, op, index, dims);
        c->field_used[f] = true;
        return base_arena_printf(c->arena, "%s[%s]", c->field[f], cg_flat_index(c, index, dims, n));
    }
    const cg_place *p = &c->place[op->args[0]];
    if (p->n_pieces)
        return cg_piece_at(c, p)->name;
    if (p->view && op->code == IR_READ)
        return cg_viewed(c, op);
    size_t n = place_index(c, op, index, dims);
    if (n == 0)
        return p->name;
    return base_arena_printf(c->arena, "%s[%s]", p->name, cg_flat_index(c, index, dims, n));
}

int64_t cg_elements(const cg_loop *c, ir_id var, int64_t tile) {
    const ir_type *t = &ir_at(c->f, var)->type;
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; ++i) {
        int64_t d = t->dim[i] == IR_DIM_TILE ? tile : cg_dim(c, t->dim[i]);
        if (d < 0 || (d > 0 && n > INT64_MAX / d))
            return -1;
        n *= d;
    }
    return n;
}

static int64_t enclosing_tile(const cg_loop *c, ir_id id) {
    for (ir_id l = c->site[id].loop; l; l = c->site[l].loop)
        if (ir_at(c->f, l)->code == IR_TILES)
            return ir_int(ir_at(c->f, l), IR_ATTR_WIDTH, 1);
    return 0;
}

static const char *column(cg_loop *c, const char *array, const char *e) {
    if (c->source_bits == CG_EITHER)
        return base_arena_printf(c->arena, "TIGA_SOURCE(%s, %s, %s)", array, c->wide, e);
    return base_arena_printf(c->arena, "%s[%s]", array, e);
}

/* The source of edge e. */
const char *cg_source(cg_loop *c, const char *e) {
    c->uses_sources = true;
    return column(c, c->sources, e);
}

const char *cg_edge_of(cg_loop *c, const char *e) {
    c->uses_edge_of = true;
    return column(c, c->edge_of, e);
}

/* ---- scratch memory ---------------------------------------------------------------------------------------------- */
void cg_collect_scratch(cg_loop *c) {
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        if (!c->site[id].live || ir_at(c->f, id)->code != IR_VAR)
            continue;
        int64_t n = cg_elements(c, id, enclosing_tile(c, id));
        if (n >= 0 && n <= CG_LOCAL_ELEMENTS)
            continue;
        const char *name = cg_name(&c->names, base_arena_printf(c->arena, "scratch_%zu", c->n_scratch));
        size_t cap = c->cap_scratch;
        base_push(c->arena, c->scratch_vars, c->n_scratch, cap, id);
        c->n_scratch--;
        base_push(c->arena, c->scratch_names, c->n_scratch, c->cap_scratch, name);
    }
}

static const char *scratch_size(cg_loop *c, ir_id var) {
    const ir_type *t = &ir_at(c->f, var)->type;
    int64_t keep = c->tile_capacity;
    c->tile_capacity = enclosing_tile(c, var);
    const char *s = base_arena_printf(c->arena, "%zu", ir_dtype_bytes(t->dtype));
    for (uint32_t i = 0; i < t->rank; ++i)
        s = base_arena_printf(c->arena, "%s * %s", cg_dim_text(c, t->dim[i]), s);
    c->tile_capacity = keep;
    return s;
}

/* Offsets of the arrays, each rounded up to a cache line; or the sum as a return statement. */
void cg_scratch_lines(cg_loop *c, cg_text *w, bool total_only) {
    const char *at = "0";
    for (size_t i = 0; i < c->n_scratch; ++i) {
        if (!total_only)
            cg_line(w, "const int64_t %s = %s;", c->scratch_names[i], at);
        const char *size = base_arena_printf(c->arena, "(%s + 63) / 64 * 64", scratch_size(c, c->scratch_vars[i]));
        const char *sum = total_only ? at : c->scratch_names[i];
        at = strcmp(sum, "0") ? base_arena_printf(c->arena, "%s + %s", sum, size) : size;
    }
    if (total_only)
        cg_line(w, "return %s;", at);
}

static const char *scratch_offset(const cg_loop *c, ir_id var) {
    for (size_t i = 0; i < c->n_scratch; ++i)
        if (c->scratch_vars[i] == var)
            return c->scratch_names[i];
    return NULL;
}

/* ---- declarations ------------------------------------------------------------------------------------------------ */
static bool mentions(const cg_loop *c, const ir_op *op, ir_id var) {
    for (uint32_t i = 0; i < op->n_args; ++i)
        if (op->args[i] == var)
            return true;
    for (size_t i = 0; op->region && i < op->region->n; ++i)
        if (mentions(c, ir_at(c->f, op->region->ops[i]), var))
            return true;
    return false;
}

/* A scalar is declared where it is first set, when that is the first thing that happens to it. */
static bool declared_by_set(const cg_loop *c, ir_id id) {
    const cg_site *s = &c->site[id];
    for (size_t i = s->pos + 1; i < s->region->n; ++i) {
        const ir_op *op = ir_at(c->f, s->region->ops[i]);
        if (!c->site[s->region->ops[i]].live || !mentions(c, op, id))
            continue;
        return op->code == IR_SET;
    }
    return false;
}

/* The first loop that mentions the array only fills it: the variables are declared there. */
static bool declared_by_fill(const cg_loop *c, ir_id id) {
    const cg_site *s = &c->site[id];
    for (size_t i = s->pos + 1; i < s->region->n; ++i) {
        const ir_op *op = ir_at(c->f, s->region->ops[i]);
        if (!c->site[s->region->ops[i]].live || !mentions(c, op, id))
            continue;
        size_t sets = 0;
        for (size_t k = 0; op->code == IR_LANES && k < op->region->n; ++k) {
            const ir_op *in = ir_at(c->f, op->region->ops[k]);
            if (!c->site[op->region->ops[k]].live || in->code == IR_ARG)
                continue;
            if (in->code != IR_SET)
                return false;
            sets += in->args[0] == id;
        }
        return sets == 1;
    }
    return false;
}

static void declare_pieces(cg_loop *c, const cg_place *p, ir_dtype t) {
    for (size_t i = 0; i < p->n_pieces; ++i) {
        const cg_piece *piece = &p->pieces[i];
        cg_line(&c->w, "%s %s;", piece->lanes > 1 ? cg_vector_type(c, t, piece->lanes) : cg_ctype(t), piece->name);
    }
}

void cg_declare_var(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    cg_place *p = &c->place[id];
    const char *want = ir_word(op, IR_ATTR_NAME), *type = cg_ctype(op->type.dtype);
    if (!want || !*want)
        want = op->type.rank ? "acc" : "state";
    memset(p, 0, sizeof *p);
    if (op->type.rank && cg_in_registers(c, id, &p->pieces, &p->n_pieces)) {
        p->name = want;
        for (size_t i = 0; i < p->n_pieces; ++i)
            p->pieces[i].name = cg_name(
                &c->names,
                p->n_pieces == 1 ? want : base_arena_printf(c->arena, "%s_%lld", want, (long long)p->pieces[i].offset));
        p->declared = !declared_by_fill(c, id);
        if (p->declared)
            declare_pieces(c, p, op->type.dtype);
        return;
    }
    p->name = cg_name(&c->names, want);
    const char *offset = scratch_offset(c, id);
    if (offset)
        cg_line(&c->w, "%s *const %s = (%s *)(void *)(%s + %s);", type, p->name, type, c->scratch, offset);
    else if (op->type.rank)
        cg_line(&c->w, "%s %s[%lld];", type, p->name,
                (long long)(cg_elements(c, id, c->tile_capacity) ? cg_elements(c, id, c->tile_capacity) : 1));
    else if (!declared_by_set(c, id))
        cg_line(&c->w, "%s %s;", type, p->name);
    p->declared = op->type.rank || !declared_by_set(c, id);
}

const char *cg_write_place(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    cg_place *p = &c->place[op->args[0]];
    const char *element = cg_element(c, id);
    if (p->declared)
        return element;
    ir_dtype t = ir_at(c->f, op->args[0])->type.dtype;
    const cg_piece *piece = p->n_pieces ? cg_piece_at(c, p) : NULL;
    p->declared = !piece || piece == &p->pieces[p->n_pieces - 1];
    return base_arena_printf(c->arena, "%s %s",
                             piece && piece->lanes > 1 ? cg_vector_type(c, t, piece->lanes) : cg_ctype(t), element);
}

/* The constant, as cg_const writes it, whose bytes are 0. */
static bool is_zero(const char *text) {
    return !strcmp(text, "0") || !strcmp(text, "0.0") || !strcmp(text, "0.0f") || !strcmp(text, "false");
}

void cg_declare_partials(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    ir_kind k = ir_kind_of(op);
    bool arg = k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX;
    cg_place *p = &c->place[id];
    memset(p, 0, sizeof *p);
    p->name = cg_name(&c->names, base_arena_printf(c->arena, "%s_parts", ir_kind_text(k)));
    ir_scalar_value zero = {.i = 0};
    ir_dtype t = op->type.dtype;
    const char *start = cg_const(c->arena, t, arg ? zero : ir_kind_identity(k, t));
    size_t mark = cg_names_mark(&c->names);
    if (arg)
        p->pieces = base_arena_new_array(c->arena, cg_piece, 1); /* n_pieces stays 0: only the second name */
    if (arg)
        p->pieces->name = cg_name(&c->names, base_arena_printf(c->arena, "%s_edges", ir_kind_text(k)));
    mark = arg ? cg_names_mark(&c->names) : mark;
    bool zero_bytes = is_zero(start); /* then compilers see one vector, not 16 elements that become one */
    if (zero_bytes)
        cg_line(&c->w, "%s %s[16] = {%s};", cg_ctype(t), p->name, start);
    else
        cg_line(&c->w, "%s %s[16];", cg_ctype(t), p->name);
    if (arg)
        cg_line(&c->w, "int64_t %s[16];", p->pieces->name);
    const char *n = cg_name(&c->names, "n");
    if (!zero_bytes)
        cg_line(&c->w, "for (int %s = 0; %s < 16; ++%s) %s[%s] = %s;", n, n, n, p->name, n, start);
    if (arg)
        cg_line(&c->w, "for (int %s = 0; %s < 16; ++%s) %s[%s] = -1;", n, n, n, p->pieces->name, n);
    cg_names_release(&c->names, mark);
}
