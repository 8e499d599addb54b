/* Places of the loop-level interpreter: parameter arrays, vars and partial sums, with every access checked. */
#include "ir/ir_interp_loop.h"

#include <string.h>

/* Row-major position of the index in operands first .. first + rank - 1; false when it is outside. */
static bool position(ir_loop_run *r, const ir_op *op, uint32_t first, const int64_t *size, uint32_t rank,
                     const char *name, int64_t *out) {
    *out = 0;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t index = ir_loop_int(r, op, first + i);
        if (index < 0 || index >= size[i])
            return ir_loop_fail(r, "index %lld of axis %u of '%s', which has %lld", (long long)index, i, name,
                                (long long)size[i]);
        *out = *out * size[i] + index;
    }
    return true;
}

/* ---- parameter arrays ---- */
bool ir_loop_load(ir_loop_run *r, const ir_op *op, ir_scalar_value *out) {
    const ir_loop_array *a = &r->arrays[ir_int(op, IR_ATTR_FIELD, 0)];
    int64_t at;
    if (!position(r, op, 0, a->size, a->rank, a->param->name, &at))
        return false;
    *out = ir_load_scalar(a->param->type.dtype, a->data, at);
    return true;
}

bool ir_loop_store(ir_loop_run *r, const ir_op *op) {
    const ir_loop_array *a = &r->arrays[ir_int(op, IR_ATTR_FIELD, 0)];
    int64_t at;
    if (!position(r, op, 0, a->size, a->rank, a->param->name, &at))
        return false;
    ir_store_scalar(a->param->type.dtype, a->data, at, r->values[op->args[op->n_args - 1]]);
    return true;
}

/* ---- vars ---- */
static const char *name_of(const ir_op *var) {
    const char *name = ir_word(var, IR_ATTR_NAME);
    return name ? name : "var";
}

static bool var_size(ir_loop_run *r, const ir_op *op, ir_loop_place *p) {
    p->count = 1;
    for (uint32_t i = 0; i < op->type.rank; i++) {
        ir_dim d = op->type.dim[i];
        p->size[i] = d == IR_DIM_TILE ? r->tile : ir_dim_is_sym(d) ? r->call->dims[ir_dim_sym_index(d)] : d;
        if (__builtin_mul_overflow(p->count, p->size[i], &p->count))
            return ir_loop_fail(r, "'%s' has more elements than can be counted", name_of(op));
    }
    return true;
}

/* Each time it is met the place is new: nothing is set. */
bool ir_loop_var(ir_loop_run *r, ir_id id) {
    ir_loop_place *p = &r->places[id];
    size_t bytes;
    if (!var_size(r, ir_at(r->f, id), p))
        return false;
    if (p->count > p->cap) {
        base_free(p->cells);
        p->cap = 0;
        p->cells = base_mul_size((size_t)p->count, sizeof *p->cells, &bytes) ? base_alloc(bytes) : NULL;
        if (!p->cells)
            return ir_loop_fail(r, "out of memory");
        p->cap = p->count;
    }
    for (int64_t i = 0; i < p->count; i++)
        p->cells[i] = (ir_loop_cell){.is_set = false};
    return true;
}

static bool find_cell(ir_loop_run *r, const ir_op *op, ir_loop_cell **out) {
    const ir_op *var = ir_at(r->f, op->args[0]);
    const ir_loop_place *p = &r->places[op->args[0]];
    int64_t at;
    if (!position(r, op, 1, p->size, var->type.rank, name_of(var), &at))
        return false;
    *out = &p->cells[at];
    if ((*out)->lanes && (*out)->lanes == r->lanes && (*out)->lane != r->lane)
        return ir_loop_fail(r, "lane %lld meets what lane %lld wrote to '%s'", (long long)r->lane,
                            (long long)(*out)->lane, name_of(var));
    return true;
}

bool ir_loop_read(ir_loop_run *r, const ir_op *op, ir_scalar_value *out) {
    ir_loop_cell *cell;
    if (!find_cell(r, op, &cell))
        return false;
    if (!cell->is_set)
        return ir_loop_fail(r, "'%s' is read before it is set", name_of(ir_at(r->f, op->args[0])));
    *out = cell->v;
    return true;
}

bool ir_loop_set(ir_loop_run *r, const ir_op *op) {
    ir_loop_cell *cell;
    if (!find_cell(r, op, &cell))
        return false;
    *cell =
        (ir_loop_cell){.v = r->values[op->args[op->n_args - 1]], .lanes = r->lanes, .lane = r->lane, .is_set = true};
    return true;
}

/* ---- partial sums ---- */
static bool is_arg(ir_kind k) { return k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX; }

bool ir_loop_partials(ir_loop_run *r, ir_id id) {
    const ir_op *op = ir_at(r->f, id);
    ir_loop_place *p = &r->places[id];
    ir_kind k = ir_kind_of(op);
    if (!p->partial)
        p->partial = base_alloc(IR_N_PARTIALS * sizeof *p->partial);
    if (!p->edge)
        p->edge = base_alloc(IR_N_PARTIALS * sizeof *p->edge);
    if (!p->partial || !p->edge)
        return ir_loop_fail(r, "out of memory");
    for (int i = 0; i < IR_N_PARTIALS; i++) {
        p->partial[i] = is_arg(k) ? (ir_scalar_value){.i = 0} : ir_kind_identity(k, op->type.dtype);
        p->edge[i] = -1;
    }
    return true;
}

/* Accumulator `into` takes the pair (v, e), or the value v. */
static void combine(ir_loop_place *p, const ir_op *partials, int into, ir_scalar_value v, int64_t e) {
    ir_kind k = ir_kind_of(partials);
    ir_dtype t = partials->type.dtype;
    if (!is_arg(k)) {
        p->partial[into] = ir_kind_combine(k, t, p->partial[into], v);
    } else if (ir_arg_better(k, t, v, e, p->partial[into], p->edge[into])) {
        p->partial[into] = v;
        p->edge[into] = e;
    }
}

bool ir_loop_accum(ir_loop_run *r, const ir_op *op) {
    int64_t lane = ir_loop_int(r, op, 1), e = op->n_args > 3 ? ir_loop_int(r, op, 3) : -1;
    if (lane < 0)
        return ir_loop_fail(r, "lane %lld", (long long)lane);
    combine(&r->places[op->args[0]], ir_at(r->f, op->args[0]), (int)(lane % IR_N_PARTIALS), r->values[op->args[2]], e);
    return true;
}

/* Works on a copy: a value does not change because it is looked at. */
ir_scalar_value ir_loop_collapse(ir_loop_run *r, const ir_op *op) {
    const ir_op *partials = ir_at(r->f, op->args[0]);
    ir_scalar_value v[IR_N_PARTIALS];
    int64_t edge[IR_N_PARTIALS];
    memcpy(v, r->places[op->args[0]].partial, sizeof v);
    memcpy(edge, r->places[op->args[0]].edge, sizeof edge);
    ir_loop_place copy = {.partial = v, .edge = edge};
    for (int distance = IR_N_PARTIALS / 2; distance > 0; distance /= 2)
        for (int i = 0; i < distance; i++)
            combine(&copy, partials, i, v[i + distance], edge[i + distance]);
    return is_arg(ir_kind_of(partials)) ? (ir_scalar_value){.i = edge[0]} : v[0];
}

void ir_loop_places_fini(ir_loop_run *r) {
    for (ir_id id = 1; r->places && id < r->f->n_ops; id++) {
        base_free(r->places[id].cells);
        base_free(r->places[id].partial);
        base_free(r->places[id].edge);
    }
}
