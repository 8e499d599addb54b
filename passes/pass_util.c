/* Shared by the passes: replacement maps, sweeping regions. */
#include "passes/pass_util.h"

#include <string.h>

pass_map pass_map_new(const ir_func *f, base_arena *scratch) {
    return (pass_map){.to = base_arena_new_array(scratch, ir_id, f->n_ops), .n = f->n_ops};
}

ir_id pass_map_find(const pass_map *map, ir_id id) {
    while (id < map->n && map->to[id])
        id = map->to[id];
    return id;
}

void pass_map_args(const pass_map *map, ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++)
        op->args[i] = pass_map_find(map, op->args[i]);
}

bool pass_each_func(ir_module *m, unsigned levels, pass_func_fn *fn, pass_context *ctx, base_str *err) {
    size_t n = m->n_funcs; /* functions added meanwhile are not visited */
    for (size_t i = 0; i < n; i++)
        if ((levels >> m->funcs[i]->level & 1) && !fn(m, m->funcs[i], ctx, err))
            return false;
    return true;
}

ir_id pass_put(ir_module *m, ir_func *f, ir_region *r, ir_opcode code, ir_type type, const ir_id *args, size_t n) {
    ir_id id = ir_op_new(m, f, code, type, args, n);
    if (ir_op_describe(code)->cls == IR_CLASS_LOOP)
        ir_at(f, id)->region = ir_region_new(m);
    ir_append(m, r, id);
    return id;
}

ir_id pass_put_arg(ir_module *m, ir_func *f, ir_region *r, int64_t index) {
    ir_id id = pass_put(m, f, r, IR_ARG, ir_scalar(IR_I64), NULL, 0);
    ir_set_int(m, ir_at(f, id), IR_ATTR_INDEX, index);
    return id;
}

ir_id pass_put_number(ir_module *m, ir_func *f, ir_region *r, int64_t v) {
    ir_id id = pass_put(m, f, r, IR_CONST, ir_scalar(IR_I64), NULL, 0);
    ir_set_value(m, ir_at(f, id), (ir_scalar_value){.i = v});
    return id;
}

ir_id pass_put_size(ir_module *m, ir_func *f, ir_region *r, ir_dim d) {
    if (!ir_dim_is_sym(d))
        return pass_put_number(m, f, r, d);
    ir_id id = pass_put(m, f, r, IR_DIMSIZE, ir_scalar(IR_I64), NULL, 0);
    ir_set_int(m, ir_at(f, id), IR_ATTR_DIM, d);
    return id;
}

ir_id pass_loop_arg(const ir_func *f, const ir_op *loop, int64_t index) {
    for (size_t i = 0; i < loop->region->n; i++) {
        const ir_op *op = ir_at(f, loop->region->ops[i]);
        if (op->code == IR_ARG && ir_int(op, IR_ATTR_INDEX, 0) == index)
            return loop->region->ops[i];
    }
    return 0;
}

void pass_sweep(ir_func *f, ir_region *r, const bool *keep) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        if (!keep[id])
            continue;
        r->ops[n++] = id;
        if (ir_at(f, id)->region)
            pass_sweep(f, ir_at(f, id)->region, keep);
    }
    r->n = n;
}

static bool same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static bool same_note(const pass_note *a, const pass_note *b) {
    return a->kind == b->kind && !strcmp(a->program, b->program) && !strcmp(a->kernel, b->kernel) &&
           !strcmp(a->other, b->other) && same_text(a->text, b->text);
}

void pass_note_add(pass_context *ctx, ir_module *m, pass_note note) {
    for (size_t i = 0; ctx->notes && i < ctx->notes->n; i++)
        if (same_note(&ctx->notes->items[i], &note))
            return;
    if (ctx->notes)
        base_push(m->arena, ctx->notes->items, ctx->notes->n, ctx->notes->cap, note);
}

bool pass_has_level(const ir_module *m, ir_level level) {
    for (size_t i = 0; i < m->n_funcs; i++)
        if (m->funcs[i]->level == level)
            return true;
    return false;
}

ir_type pass_type_drop_lead(const ir_type *t) {
    ir_type out = ir_scalar(t->dtype);
    for (uint32_t i = 1; i < t->rank; i++)
        out.dim[out.rank++] = t->dim[i];
    return out;
}

bool pass_says_dim(const ir_op *op, ir_attr_key *key) {
    *key = op->code == IR_SLICE ? IR_ATTR_BEGIN : IR_ATTR_DIM;
    return op->code == IR_SLICE || op->code == IR_DIMSIZE;
}

bool pass_is_dear(const ir_op *op) {
    return op->code == IR_DIV || op->code == IR_REM || op->code == IR_POW || op->code == IR_ATAN2 ||
           op->code == IR_HYPOT ||
           (ir_op_describe(op->code)->cls == IR_CLASS_UNARY && !(ir_op_describe(op->code)->levels & IR_LEVEL_T));
}

bool pass_reads_at(const ir_op *op, const char *at) {
    return op->code == IR_FIELD && !strcmp(ir_word(op, IR_ATTR_AT), at);
}

static bool is_open_row(const ir_type *t) { return t->rank == 1 && ir_dim_is_sym(t->dim[0]); }

bool pass_walks_whole(const ir_func *f, const ir_op *op) {
    bool number = false, row = false, math = false;
    if (op->code == IR_REDUCE && op->n_args > 1) /* softmax: scores, values */
        return !ir_at(f, op->args[0])->type.rank && is_open_row(&op->type);
    for (uint32_t i = 0; op->code == IR_COMBINE && i < op->n_args / 2; i++) {
        number = number || !ir_at(f, op->args[i])->type.rank;
        row = row || is_open_row(&ir_at(f, op->args[i])->type);
    }
    for (size_t i = 0; number && row && i < op->region->n; i++) {
        const ir_op *in = ir_at(f, op->region->ops[i]);
        math = math || (!in->type.rank && ir_math_name(in->code, in->type.dtype));
    }
    return math;
}
