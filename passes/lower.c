/* lower: a loop function for each kernel, in the forms that docs/ir.md describes.  The kernels stay in the module. */
#include "passes/lower.h"

#include <string.h>

void lower_init(lower *L, ir_module *m, const ir_func *k, base_arena *scratch) {
    memset(L, 0, sizeof *L);
    L->m = m;
    L->k = k;
    L->scratch = scratch;
    L->info = base_arena_new_array(scratch, lower_info, k->n_ops);
    L->acc = base_arena_new_array(scratch, lower_acc, k->n_ops);
    L->result_scalar_nest = base_arena_new_array(scratch, bool, k->n_results + 1);
    L->ret = ir_at(k, k->body.ops[k->body.n - 1]);
}

uint32_t lower_result_field(const lower *L, size_t result) { return (uint32_t)(L->k->n_params + result); }

static ir_role result_role(ir_space space) {
    return space == IR_EDGE ? IR_OUT_EDGE : IR_OUT_ROW; /* a total: one partial result per unit */
}

static void declare(lower *L) {
    ir_module *m = L->m;
    const ir_func *k = L->k;
    ir_func *f = ir_func_new(m, k->name, IR_LEVEL_LOOP);
    f->signature = k->signature;
    f->exported = k->exported;
    f->needs_square = k->needs_square;
    f->domain = k->domain;
    f->span = k->span;
    f->rows_per_unit = lower_has_totals(k) ? IR_TOTAL_BLOCK : 1;
    for (size_t i = 0; i < k->n_syms; i++)
        ir_sym(m, f, k->syms[i]);
    for (size_t i = 0; i < k->n_params; i++)
        base_push(m->arena, f->params, f->n_params, f->cap_params, k->params[i]);
    for (size_t i = 0; i < k->n_results; i++) {
        ir_param p = k->results[i];
        p.role = result_role(p.type.space);
        p.type.space = IR_UNIFORM;
        base_push(m->arena, f->params, f->n_params, f->cap_params, p);
    }
    f->winners = lower_winners(k);
    L->f = f;
}

static void lower_body(lower *L) {
    lower_begin(L);
    lower_open(L, LOWER_ROWS, NULL, 0);
    if (lower_has_totals(L->k)) {
        lower_total_rows(L);
    } else {
        L->row_scope = L->n_scopes - 1;
        L->row = lower_top(L)->arg[0];
        lower_whole_stage(L);
        lower_result_stage(L);
        lower_tiled_stage(L);
    }
    lower_close(L);
}

/* Results are all totals or none is: totals run over blocks of rows, the others over rows. */
static bool check_results(const lower *L, base_str *err) {
    if (!lower_has_totals(L->k))
        return true;
    for (size_t i = 0; i < L->k->n_results; i++)
        if (ir_at(L->k, L->ret->args[i])->code != IR_TOTAL) {
            base_str_addf(err, "lower: kernel %s: result %s is not a total, but another result is uniform", L->k->name,
                          L->k->results[i].name);
            return false;
        }
    return true;
}

static bool lower_kernel(ir_module *m, ir_func *k, pass_context *ctx, base_str *err) {
    base_arena *scratch = ctx->scratch;
    lower L;
    if (k->body.n == 0 || ir_at(k, k->body.ops[k->body.n - 1])->code != IR_RET) {
        base_str_addf(err, "lower: kernel %s does not end with ret", k->name);
        return false;
    }
    lower_share_best(m, k);
    lower_states(m, k, scratch);
    lower_init(&L, m, k, scratch);
    L.cuda = ctx->cuda;
    if (!check_results(&L, err) || !lower_analyse(&L, err))
        return false;
    declare(&L);
    lower_body(&L);
    if (lower_has_totals(k))
        lower_total_combine(m, k, scratch);
    return true;
}

bool pass_lower(ir_module *m, pass_context *ctx, base_str *err) {
    size_t n = m->n_funcs; /* functions made here stand behind */
    for (size_t i = 0; i < n; i++) {
        ir_func *f = m->funcs[i];
        if (f->level != IR_LEVEL_KERNEL || ir_func_find(m, f->name, IR_LEVEL_LOOP))
            continue;
        if (!lower_kernel(m, f, ctx, err))
            return false;
    }
    return true;
}
