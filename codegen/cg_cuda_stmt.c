/* Statements of CUDA kernels: values, vars, partial results, loads and stores.  One value a line; a value with one user
 * in the same region is written into it while the line stays short. */
#include "codegen/cg_cuda.h"

#include <ctype.h>
#include <string.h>

#define LONGEST_FOLDED 60

const char *cg_cu_dim(cg_cuda *c, ir_dim d) {
    if (d >= 0)
        return base_arena_printf(c->arena, "%lld", (long long)d);
    BASE_CHECK(ir_dim_is_sym(d));
    return c->dim[ir_dim_sym_index(d)];
}

const char *cg_cu_t(cg_cuda *c) {
    c->uses_t = true;
    return c->t;
}

static const char *mask_name(cg_cuda *c) {
    c->uses_mask = true;
    return c->mask;
}

static const char *operand(const cg_cuda *c, ir_id id) {
    if (!c->text[id])
        BASE_BUG("@%s: %%%u is used before it is written", c->f->name, (unsigned)id);
    return c->text[id];
}

/* As the whole right-hand side of an assignment. */
static const char *assigned(const cg_cuda *c, ir_id id) { return c->bare[id] ? c->bare[id] : operand(c, id); }

static ir_kind kind_of(const cg_cuda *c, ir_id partials) { return ir_kind_of(ir_at(c->f, partials)); }
static bool is_arg_kind(ir_kind k) { return k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX; }

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A declaration that is taken back when the rest of its loop does not mention the name. */
void cg_cu_optional(cg_cuda *c, const char *name, const char *line) {
    cg_cu_line at = {.name = name, .begin = c->w.out->len};
    cg_line(&c->w, "%s", line);
    at.end = c->w.out->len;
    base_push(c->arena, c->optional, c->n_optional, c->cap_optional, at);
}

static bool in_word(char ch) { return isalnum((unsigned char)ch) || ch == '_'; }

static bool mentions(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *p = strstr(text, name); p; p = strstr(p + 1, name))
        if (!in_word(p[-1]) && !in_word(p[n]))
            return true;
    return false;
}

void cg_cu_drop_unused(cg_cuda *c, size_t mark) {
    base_str *out = c->w.out;
    while (c->n_optional > mark && !out->failed) {
        cg_cu_line at = c->optional[--c->n_optional];
        if (mentions(out->data + at.end, at.name))
            continue;
        memmove(out->data + at.begin, out->data + at.end, out->len - at.end + 1);
        out->len -= at.end - at.begin;
    }
}

static void name_value(cg_cuda *c, ir_id id, const char *want, const char *expr) {
    c->text[id] = cg_name(&c->names, want);
    cg_line(&c->w, "const %s %s = %s;", cg_ctype(ir_at(c->f, id)->type.dtype), c->text[id], expr);
}

void cg_cu_arg(cg_cuda *c, ir_id arg, const char *want, const char *expr) {
    if (!arg || !c->site[arg].live)
        return;
    c->text[arg] = cg_name(&c->names, want);
    cg_cu_optional(c, c->text[arg], base_arena_printf(c->arena, "const int64_t %s = %s;", c->text[arg], expr));
}

static void elementwise(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const char *args[3] = {0};
    for (uint32_t i = 0; i < op->n_args; ++i)
        args[i] = operand(c, op->args[i]);
    ir_dtype in = ir_at(c->f, op->args[op->code == IR_SELECT ? 1 : 0])->type.dtype;
    bool atom;
    const char *expr = cg_expr(c->help, c->arena, op->code, in, op->type.dtype, args, &atom);
    if (!cg_cu_foldable(c, id) || strlen(expr) > LONGEST_FOLDED) {
        c->text[id] = cg_name(&c->names, "v"); /* optional: the lane of an accumulator is often known otherwise */
        cg_cu_optional(c, c->text[id],
                       base_arena_printf(c->arena, "const %s %s = %s;", cg_ctype(op->type.dtype), c->text[id], expr));
        return;
    }
    c->bare[id] = expr;
    c->text[id] = atom ? expr : base_arena_printf(c->arena, "(%s)", expr);
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* Row-major: ((i0 * d1 + i1) * d2 + i2); dims without the first. */
static const char *flatten(cg_cuda *c, const char *const *index, const ir_dim *dims, size_t n) {
    if (n == 0)
        return "0";
    bool literal = n > 1 && isdigit((unsigned char)index[0][0]); /* an int in C, whose products could overflow */
    const char *s = literal ? base_arena_printf(c->arena, "(int64_t)%s", index[0]) : index[0];
    for (size_t i = 1; i < n; ++i) {
        const char *left = i == 1 ? s : base_arena_printf(c->arena, "(%s)", s);
        s = base_arena_printf(c->arena, "%s * %s + %s", left, cg_cu_dim(c, dims[i]), index[i]);
    }
    return s;
}

static const char *field_element(cg_cuda *c, const ir_op *op, uint32_t n_index) {
    const ir_param *p = &c->f->params[ir_int(op, IR_ATTR_FIELD, 0)];
    const char *index[IR_MAX_RANK + 1];
    ir_dim dims[IR_MAX_RANK + 1] = {0};
    BASE_CHECK(n_index <= IR_MAX_RANK + 1 && n_index >= p->type.rank);
    for (uint32_t i = 0; i < n_index; ++i)
        index[i] = operand(c, op->args[i]);
    uint32_t first = n_index - p->type.rank; /* 1 when the role has an axis */
    for (uint32_t i = first; i < n_index; ++i)
        dims[i] = p->type.dim[i - first];
    return base_arena_printf(c->arena, "%s[%s]", c->field[p - c->f->params], flatten(c, index, dims, n_index));
}

static ir_dim var_dim(const cg_cuda *c, ir_id var, uint32_t axis) {
    int64_t n = cg_cu_extent(c, var, axis);
    return n >= 0 ? n : ir_at(c->f, var)->type.dim[axis];
}

const char *cg_cu_var_elements(cg_cuda *c, ir_id var) {
    const char *s = "(int64_t)";
    for (uint32_t i = 0; i < ir_at(c->f, var)->type.rank; ++i)
        s = base_arena_printf(c->arena, "%s%s%s", s, i ? " * " : "", cg_cu_dim(c, var_dim(c, var, i)));
    return s;
}

static const char *scratch_element(cg_cuda *c, ir_id var, const ir_op *op) {
    const char *index[IR_MAX_RANK];
    ir_dim dims[IR_MAX_RANK];
    uint32_t rank = ir_at(c->f, var)->type.rank;
    for (uint32_t i = 0; i < rank; ++i) {
        index[i] = operand(c, op->args[i + 1]);
        dims[i] = var_dim(c, var, i);
    }
    const char *flat = flatten(c, index, dims, rank);
    if (c->site[var].axis >= 0)
        return base_arena_printf(c->arena, "%s[%s]", c->text[var], flat);
    const char *stride = c->team == 1 ? c->n_slices : base_arena_printf(c->arena, "%d", c->team);
    return base_arena_printf(c->arena, "%s[(%s) * %s]", c->text[var], flat, stride);
}

static const char *var_element(cg_cuda *c, const ir_op *op) {
    ir_id var = op->args[0];
    const cg_cu_site *s = &c->site[var];
    if (ir_at(c->f, var)->type.rank == 0)
        return operand(c, var);
    if (s->where == CG_CU_SCRATCH)
        return scratch_element(c, var, op);
    const char *text = operand(c, var);
    for (uint32_t i = 0; i < ir_at(c->f, var)->type.rank; ++i) {
        ir_id index = op->args[i + 1];
        const char *at = (int)i == s->axis ? c->slot[index] : operand(c, index);
        BASE_CHECK(at);
        text = base_arena_printf(c->arena, "%s[%s]", text, at);
    }
    return text;
}

static void load(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const char *from = field_element(c, op, op->n_args);
    if (op->type.dtype == IR_BOOL)
        from = base_arena_printf(c->arena, "%s != 0", from);
    name_value(c, id, base_arena_printf(c->arena, "%s_v", c->f->params[ir_int(op, IR_ATTR_FIELD, 0)].name), from);
}

static void store(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    bool is_bool = c->f->params[ir_int(op, IR_ATTR_FIELD, 0)].type.dtype == IR_BOOL;
    ir_id value = op->args[op->n_args - 1];
    const char *guard = "", *v = is_bool ? operand(c, value) : assigned(c, value);
    if (!c->site[id].private)
        guard = base_arena_printf(c->arena, "if (%s == 0) ", cg_cu_t(c)); /* all threads have it */
    cg_line(&c->w, "%s%s = %s%s;", guard, field_element(c, op, op->n_args - 1), is_bool ? "(uint8_t)" : "", v);
}

/* ---- vars -------------------------------------------------------------------------------------------------------- */

static int64_t per_thread(const cg_cuda *c, ir_id var, uint32_t axis) {
    int64_t n = cg_cu_extent(c, var, axis);
    if (c->site[var].axis == (int)axis)
        n = (n + c->team - 1) / c->team;
    return n > 0 ? n : 1; /* C has no empty arrays */
}

static void declare_var(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    if (c->site[id].where == CG_CU_SCRATCH)
        return; /* the prologue did */
    const char *word = ir_word(op, IR_ATTR_NAME), *dims = "";
    c->text[id] = cg_name(&c->names, word ? word : "var");
    for (uint32_t i = 0; i < op->type.rank; ++i)
        dims = base_arena_printf(c->arena, "%s[%lld]", dims, (long long)per_thread(c, id, i));
    cg_line(&c->w, "%s %s%s;", cg_ctype(op->type.dtype), c->text[id], dims);
}

static const char *edge_name(cg_cuda *c, ir_id partials) {
    return base_arena_printf(c->arena, "%s_edge", c->text[partials]);
}

static void declare_partials(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    ir_kind k = kind_of(c, id);
    bool whole = c->site[id].private;
    const char *dims = whole ? "[16]" : "", *type = cg_ctype(op->type.dtype);
    ir_scalar_value first = {0};
    if (!is_arg_kind(k))
        first = ir_kind_identity(k, op->type.dtype);
    const char *value = cg_const(c->arena, op->type.dtype, first);
    c->text[id] = cg_name(&c->names, ir_kind_text(k));
    if (is_arg_kind(k))
        cg_name(&c->names, edge_name(c, id));
    if (!whole) {
        cg_line(&c->w, "%s %s = %s;", type, c->text[id], value);
        if (is_arg_kind(k))
            cg_line(&c->w, "int64_t %s = -1;", edge_name(c, id));
        return;
    }
    cg_line(&c->w, "%s %s%s;", type, c->text[id], dims);
    if (is_arg_kind(k))
        cg_line(&c->w, "int64_t %s%s;", edge_name(c, id), dims);
    cg_line(&c->w, "#pragma unroll");
    cg_open(&c->w, "for (int i = 0; i < 16; ++i)");
    cg_line(&c->w, "%s[i] = %s;", c->text[id], value);
    if (is_arg_kind(k))
        cg_line(&c->w, "%s[i] = -1;", edge_name(c, id));
    cg_close(&c->w, "");
}

/* The place of the accumulator that the lane picks, and what guards it ("" or "if (...) "). */
static const char *accumulator(cg_cuda *c, ir_id id, const char **guard) {
    const ir_op *op = ir_at(c->f, id);
    *guard = "";
    if (c->site[op->args[0]].private) {
        const cg_cu_site *loop = &c->site[c->site[op->args[1]].loop];
        const char *slot = loop->sixteen ? c->slot[op->args[1]] : NULL;
        return base_arena_printf(c->arena, slot ? "[%s]" : "[%s & 15]", slot ? slot : operand(c, op->args[1]));
    }
    if (!c->site[id].spread_in)
        *guard = base_arena_printf(c->arena, "if ((%s & 15) == %s) ", operand(c, op->args[1]), cg_cu_t(c));
    return "";
}

static void accum(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    ir_id p = op->args[0];
    ir_kind k = kind_of(c, p);
    ir_dtype t = ir_at(c->f, p)->type.dtype;
    const char *guard, *at = accumulator(c, id, &guard), *v = operand(c, op->args[2]);
    const char *state = base_arena_printf(c->arena, "%s%s", c->text[p], at);
    if (!is_arg_kind(k)) {
        const char *args[2] = {state, v};
        bool atom;
        cg_line(&c->w, "%s%s = %s;", guard, state, cg_expr(c->help, c->arena, cg_kind_op(k), t, t, args, &atom));
        return;
    }
    const char *edge = operand(c, op->args[3]), *state_edge = base_arena_printf(c->arena, "%s%s", edge_name(c, p), at);
    c->help->arg_better[k][t] = true;
    cg_open(&c->w, "%sif (tiga_%s_%s(%s, %s, %s, %s))", guard, ir_kind_text(k), ir_dtype_text(t), v, edge, state,
            state_edge);
    cg_line(&c->w, "%s = %s;", state, v);
    cg_line(&c->w, "%s = %s;", state_edge, edge);
    cg_close(&c->w, "");
}

static void collapse(cg_cuda *c, ir_id id) {
    ir_id p = ir_at(c->f, id)->args[0];
    ir_kind k = kind_of(c, p);
    ir_dtype t = ir_at(c->f, p)->type.dtype;
    const char *edge = is_arg_kind(k) ? base_arena_printf(c->arena, ", %s", edge_name(c, p)) : "";
    const char *kind = ir_kind_text(k), *name = ir_dtype_text(t), *expr;
    if (c->site[p].private) {
        c->help->collapse[k][t] = true;
        expr = base_arena_printf(c->arena, "tiga_collapse_%s_%s(%s%s)", kind, name, c->text[p], edge);
    } else {
        c->team_collapse[k][t] = true;
        if (is_arg_kind(k))
            c->help->arg_better[k][t] = true;
        expr = base_arena_printf(c->arena, "tiga_team_%s_%s(%s, %s%s)", kind, name, mask_name(c), c->text[p], edge);
    }
    name_value(c, id, base_arena_printf(c->arena, "%s_all", kind), expr);
}

/* ---- one operation ----------------------------------------------------------------------------------------------- */

static void statement(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const char *a = op->n_args ? c->text[op->args[0]] : NULL;
    switch ((int)op->code) {
    case IR_ARG:
        return; /* the loop wrote it */
    case IR_CONST:
        c->text[id] = cg_const(c->arena, op->type.dtype, ir_find_attr(op, IR_ATTR_VALUE)->v);
        return;
    case IR_DIMSIZE:
        c->text[id] = cg_cu_dim(c, ir_find_attr(op, IR_ATTR_DIM)->i);
        return;
    case IR_NUMROWS:
        c->text[id] = c->n_rows;
        return;
    case IR_DEGREE:
        name_value(c, id, "degree", base_arena_printf(c->arena, "%s[%s + 1] - %s[%s]", c->offsets, a, c->offsets, a));
        return;
    case IR_EDGEID:
        if (ir_transposed(c->f))
            name_value(c, id, "edge", base_arena_printf(c->arena, "%s[%s]", c->edge_of, a));
        else
            c->text[id] = a;
        return;
    case IR_SLOT:
        name_value(c, id, "slot", base_arena_printf(c->arena, "%s & 15", a));
        return;
    case IR_SOURCE:
        name_value(c, id, "source",
                   base_arena_printf(c->arena, "%s < 0 ? (int64_t)-1 : (int64_t)%s[%s]", a, c->sources, a));
        return;
    case IR_LOAD:
        load(c, id);
        return;
    case IR_STORE:
        store(c, id);
        return;
    case IR_VAR:
        declare_var(c, id);
        return;
    case IR_READ:
        name_value(c, id, base_arena_printf(c->arena, "%s_v", operand(c, op->args[0])), var_element(c, op));
        return;
    case IR_SET:
        cg_line(&c->w, "%s = %s;", var_element(c, op), assigned(c, op->args[op->n_args - 1]));
        return;
    case IR_PARTIALS:
        declare_partials(c, id);
        return;
    case IR_ACCUM:
        accum(c, id);
        return;
    case IR_COLLAPSE:
        collapse(c, id);
        return;
    case IR_ROWS:
    case IR_EDGES:
    case IR_RANGE:
    case IR_LOOP:
    case IR_LANES:
    case IR_TILES:
        cg_cu_loop(c, id);
        return;
    default:
        break;
    }
    BASE_CHECK(ir_class_is_elementwise(ir_op_describe(op->code)->cls));
    elementwise(c, id);
}

void cg_cu_region(cg_cuda *c, const ir_region *r) {
    size_t mark = cg_names_mark(&c->names);
    for (size_t i = 0; i < r->n; ++i)
        if (c->site[r->ops[i]].live)
            statement(c, r->ops[i]);
    cg_names_release(&c->names, mark);
}
