/* Kernels with totals become two functions: @k, whose unit is a block of 4096 rows and gives one partial result, and
 * @k.total, which combines the partial results one after the other. */
#include "passes/lower.h"

#include <string.h>

bool lower_has_totals(const ir_func *k) {
    for (size_t i = 0; i < k->n_results; i++)
        if (k->results[i].type.space == IR_UNIFORM)
            return true;
    return false;
}

static lower_item total_item(lower *L, size_t result, ir_id partials) {
    ir_id id = L->ret->args[result];
    const ir_op *op = ir_at(L->k, id);
    const ir_type *shape = &ir_at(L->k, op->args[0])->type;
    lower_item it = {
        .kind = LOWER_TOTALS, .op = id, .reducer = ir_kind_of(op), .value = op->args[0], .place = partials};
    it.shape = *shape;
    it.n_axes = lower_axes(shape, it.axes);
    ir_dim last = it.n_axes ? it.axes[it.n_axes - 1] : 0;
    it.scalar_nest = L->info[id].scalar_nest || (!op->type.rank && (last < 0 || last % IR_N_PARTIALS != 0));
    return it;
}

/* A total that keeps its axes has an array for them instead of partial sums. */
static ir_id begin_columns(lower *L, const lower_item *it, lower_item *start) {
    const ir_op *op = ir_at(L->k, it->op);
    ir_dtype t = op->type.dtype;
    *start = *it;
    start->kind = LOWER_START;
    start->place = lower_var(L, t, it->axes, it->n_axes, ir_kind_text(it->reducer));
    start->value = lower_const(L, t, ir_kind_identity(it->reducer, t));
    return start->place;
}

static void open_block(lower *L) {
    ir_id unit = lower_top(L)->arg[0], size = lower_i64(L, L->f->rows_per_unit);
    ir_id begin = lower_pure2(L, IR_MUL, IR_I64, unit, size);
    ir_id end = lower_pure2(L, IR_ADD, IR_I64, begin, size);
    end = lower_pure2(L, IR_MIN, IR_I64, end, lower_pure(L, IR_NUMROWS, IR_I64, NULL, 0, 0));
    lower_open(L, LOWER_RANGE, (ir_id[]){begin, end}, 2);
    L->row_scope = L->n_scopes - 1;
    L->row = lower_top(L)->arg[0];
}

static void store_partial(lower *L, ir_id unit, size_t result, ir_id partials) {
    ir_dtype t = L->k->results[result].type.dtype;
    ir_id value = lower_raw(L, IR_COLLAPSE, t, &partials, 1);
    ir_id s = lower_raw(L, IR_STORE, IR_NONE, (ir_id[]){unit, value}, 2);
    ir_set_int(L->m, ir_at(L->f, s), IR_ATTR_FIELD, lower_result_field(L, result));
}

static ir_id begin_scalar(lower *L, const ir_op *op) {
    ir_id partials = lower_raw(L, IR_PARTIALS, op->type.dtype, NULL, 0);
    ir_set_word(L->m, ir_at(L->f, partials), IR_ATTR_KIND, ir_word(op, IR_ATTR_KIND));
    return partials;
}

void lower_total_rows(lower *L) {
    size_t n = L->k->n_results, n_items = 0, n_starts = 0, n_stores = 0;
    ir_id unit = lower_top(L)->arg[0];
    ir_id *partials = base_arena_new_array(L->scratch, ir_id, n);
    lower_item *items = base_arena_new_array(L->scratch, lower_item, 3 * n), *starts = items + n, *stores = starts + n;
    for (size_t i = 0; i < n; i++) {
        const ir_op *op = ir_at(L->k, L->ret->args[i]);
        bool empty = lower_is_empty(&ir_at(L->k, op->args[0])->type);
        if (!op->type.rank)
            partials[i] = begin_scalar(L, op);
        if (empty)
            continue;
        lower_item it = total_item(L, i, partials[i]);
        if (op->type.rank) {
            it.place = begin_columns(L, &it, &starts[n_starts++]);
            stores[n_stores] = it;
            stores[n_stores].kind = LOWER_PARTS;
            stores[n_stores].field = lower_result_field(L, i);
            stores[n_stores++].value = unit;
        }
        items[n_items++] = it;
    }
    lower_nests(L, starts, n_starts, NULL, 0);
    open_block(L);
    lower_whole_stage(L); /* a total needs all elements: nothing that it depends on is tiled */
    lower_nests(L, items, n_items, NULL, 0);
    bool plain = lower_top(L)->plain;
    ir_id range = lower_close(L);
    if (plain)
        ir_set_int(L->m, ir_at(L->f, range), IR_ATTR_LANES, IR_N_PARTIALS);
    for (size_t i = 0; i < n; i++)
        if (partials[i])
            store_partial(L, unit, i, partials[i]);
    lower_nests(L, stores, n_stores, NULL, 0);
}

/* ---- @k.total ---- */
static const char *parts_name(ir_module *m, const ir_func *k, size_t result) {
    char *name = base_arena_printf(m->arena, "%s_parts", k->results[result].name);
    for (size_t i = 0; i < k->n_results; i++)
        if (strcmp(k->results[i].name, name) == 0) {
            name = base_arena_printf(m->arena, "%s_", name);
            i = SIZE_MAX; /* from the beginning */
        }
    return name;
}

/* A dimension of the kernel in @k.total. */
static ir_dim own_dim(lower *L, ir_dim d) {
    return ir_dim_is_sym(d) ? ir_dim_sym(ir_sym(L->m, L->f, L->k->syms[ir_dim_sym_index(d)])) : d;
}

static const char *units_name(ir_module *m, const ir_func *k) {
    const char *name = "units";
    uint32_t sym;
    while (ir_sym_find(k, name, &sym))
        name = base_arena_printf(m->arena, "%s_", name);
    return name;
}

static void combine_one(lower *L, size_t result, ir_id units) {
    const ir_op *op = ir_at(L->k, L->ret->args[result]);
    ir_kind kind = ir_kind_of(op);
    ir_dtype t = op->type.dtype;
    ir_dim dims[IR_MAX_RANK];
    ir_id axes[IR_MAX_RANK], index[2 + IR_MAX_RANK];
    size_t n = lower_axes(&op->type, dims);
    uint32_t rank = op->type.rank;
    L->span = op->span;
    for (size_t j = 0; j < n; j++) {
        lower_open(L, LOWER_LOOP, (ir_id[]){lower_dim(L, own_dim(L, dims[j]))}, 1);
        axes[j] = lower_top(L)->arg[0];
    }
    lower_index(L, &op->type, axes, index + 1);
    ir_id var = lower_var(L, t, NULL, 0, ir_kind_text(kind));
    lower_raw(L, IR_SET, IR_NONE, (ir_id[]){var, lower_const(L, t, ir_kind_identity(kind, t))}, 2);
    lower_open(L, LOWER_RANGE, (ir_id[]){lower_i64(L, 0), units}, 2);
    index[0] = lower_top(L)->arg[0];
    ir_id part = lower_load(L, (uint32_t)result, index, 1 + rank);
    ir_id old = lower_raw(L, IR_READ, t, &var, 1);
    ir_id sum = lower_pure2(L, lower_combine_op(kind), t, old, part);
    lower_raw(L, IR_SET, IR_NONE, (ir_id[]){var, sum}, 2);
    lower_close(L);
    ir_id all = lower_read(L, var, NULL, 0);
    index[1 + rank] = all;
    ir_id s = lower_raw(L, IR_STORE, IR_NONE, index + 1, 1 + rank);
    ir_set_int(L->m, ir_at(L->f, s), IR_ATTR_FIELD, (int64_t)(L->k->n_results + result));
    for (size_t j = 0; j < n; j++)
        lower_close(L);
}

void lower_total_combine(ir_module *m, const ir_func *k, base_arena *scratch) {
    lower L;
    lower_init(&L, m, k, scratch);
    L.f = ir_func_new(m, base_arena_printf(m->arena, "%s.total", k->name), IR_LEVEL_LOOP);
    L.f->domain = "rows";
    L.f->span = k->span;
    ir_dim units = ir_dim_sym(ir_sym(m, L.f, units_name(m, k)));
    for (int out = 0; out < 2; out++)
        for (size_t i = 0; i < k->n_results; i++) {
            ir_param p = k->results[i];
            p.role = out ? IR_OUT_PARAM : IR_PARAM_FIELD;
            p.name = out ? p.name : parts_name(m, k, i);
            uint32_t at = 0;
            if (!out)
                p.type.dim[at++] = units;
            for (uint32_t d = 0; d < k->results[i].type.rank; d++)
                p.type.dim[at++] = own_dim(&L, k->results[i].type.dim[d]);
            p.type.rank = at;
            base_push(m->arena, L.f->params, L.f->n_params, L.f->cap_params, p);
        }
    lower_begin(&L);
    ir_id n = lower_dim(&L, units);
    lower_open(&L, LOWER_ROWS, NULL, 0);
    for (size_t i = 0; i < k->n_results; i++)
        combine_one(&L, i, n);
    lower_close(&L);
}
