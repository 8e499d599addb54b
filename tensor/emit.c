/* A plan as a program of graph IR.  Axes of one element in front are left out of types: shapes are aligned at the right, so
 * nothing misses them, and the first axis of what is left is the one that rows are cut from. */
#include "tensor/tensor.h"

#include <string.h>

typedef struct emitter {
    const tensor_plan *p;
    ir_builder b;
    ir_id *value; /* [items] */
    size_t n_params;
} emitter;

static ir_type type_of(const emitter *e, const tiga_tensor *x) {
    const uint16_t *axes = tensor_plan_axes(e->p, x);
    ir_type t = {.dtype = (ir_dtype)x->dtype};
    uint32_t lead = tensor_plan_lead(e->p, x);
    if (e->p->flat && lead < x->rank) {
        t.dim[t.rank++] = ir_dim_sym(0);
        return t;
    }
    for (uint32_t i = lead; i < x->rank; i++)
        t.dim[t.rank++] = axes[i] ? ir_dim_sym(axes[i] - 1u) : 1;
    return t;
}

static ir_id value_of(const emitter *e, const tiga_tensor *x) { return e->value[x->number]; }
static const ir_type *emitted_type(const emitter *e, ir_id id) { return &ir_at(e->b.f, id)->type; }

static ir_id emit_param(emitter *e, const tiga_tensor *x) {
    ir_func *f = e->b.f;
    ir_type t = type_of(e, x);
    ir_param p = {.name = base_arena_printf(e->b.m->arena, "x%zu", e->n_params), .role = IR_PARAM_FIELD, .type = t};
    base_push(e->b.m->arena, f->params, f->n_params, f->cap_params, p);
    ir_id id = ir_emit(&e->b, IR_PARAM, t, NULL, 0);
    ir_set_int(e->b.m, ir_at(f, id), IR_ATTR_FIELD, (int64_t)e->n_params++);
    return id;
}

static ir_id emit_reshape(emitter *e, ir_id v, ir_type t) {
    return ir_type_equal(emitted_type(e, v), &t) ? v : ir_emit1(&e->b, IR_RESHAPE, t, v);
}

/* ---- folds ---- */
/* Which axes of the operand go, in node's numbers: those asked for, and axes of one element that would come to stand in
 * front.  0: none has more than one element. */
static uint32_t folded_axes(const emitter *e, const tiga_tensor *a, uint32_t asked) {
    const uint16_t *axes = tensor_plan_axes(e->p, a);
    uint32_t lead = tensor_plan_lead(e->p, a), out = 0;
    bool any = false, front = true;
    for (uint32_t i = lead; i < a->rank; i++) {
        bool folded = asked >> i & 1;
        any |= folded && axes[i];
        front &= folded || !axes[i];
        out |= (uint32_t)(folded || front) << i;
    }
    return any ? out : 0;
}

static ir_id emit_fold_op(emitter *e, const tiga_tensor *x, uint32_t axes, uint32_t lead) {
    ir_id v = value_of(e, x->args[0]);
    ir_type from = *emitted_type(e, v), t = {.dtype = from.dtype};
    for (uint32_t i = 0; i < from.rank; i++)
        if (!(axes >> (i + lead) & 1))
            t.dim[t.rank++] = from.dim[i];
    ir_id id = ir_emit1(&e->b, IR_FOLD, t, v);
    ir_set_int(e->b.m, ir_at(e->b.f, id), IR_ATTR_AXES, (int64_t)(axes >> lead));
    ir_set_word(e->b.m, ir_at(e->b.f, id), IR_ATTR_KIND, ir_kind_text((ir_kind)x->attr[2]));
    return id;
}

static ir_id emit_fold(emitter *e, const tiga_tensor *x) {
    const tiga_tensor *a = x->args[0];
    ir_type want = type_of(e, x);
    uint32_t lead = tensor_plan_lead(e->p, a), axes = folded_axes(e, a, (uint32_t)x->attr[0]);
    if (!axes)
        return emit_reshape(e, value_of(e, a), want);
    ir_id id = emit_fold_op(e, x, axes, lead);
    uint32_t front = tensor_plan_lead(e->p, x), added = 0;
    if (!x->attr[1] || ir_type_equal(emitted_type(e, id), &want))
        return id;
    for (uint32_t i = front; i < x->rank; i++)
        added |= (axes >> i & 1) << (i - front);
    id = ir_emit1(&e->b, IR_NEWAXIS, want, id);
    ir_set_int(e->b.m, ir_at(e->b.f, id), IR_ATTR_AXES, added);
    return id;
}

/* ---- the rest ---- */
static ir_id emit_grad(emitter *e, const tiga_tensor *x) {
    uint32_t n = (uint32_t)x->attr[0];
    ir_id *args = base_arena_new_array(e->b.m->arena, ir_id, x->n_args);
    for (uint32_t i = 0; i < x->n_args; i++)
        args[i] = value_of(e, x->args[i]);
    for (uint32_t i = 0; i < n; i++) { /* a cotangent that is one number */
        ir_type t = *emitted_type(e, args[i]);
        if (!ir_shape_equal(&t, emitted_type(e, args[n + i])))
            args[n + i] = ir_emit1(&e->b, IR_BROADCAST, t, args[n + i]);
    }
    ir_id id = ir_emit(&e->b, IR_GRAD, (ir_type){.dtype = IR_TUPLE}, args, x->n_args);
    ir_set_int(e->b.m, ir_at(e->b.f, id), IR_ATTR_OUTPUTS, n);
    return id;
}

static ir_id emit_get(emitter *e, const tiga_tensor *x) {
    const tiga_tensor *g = x->args[0];
    ir_type t = *emitted_type(e, value_of(e, g->args[2 * g->attr[0] + x->attr[0]]));
    ir_id id = ir_emit1(&e->b, IR_GET, t, value_of(e, g));
    ir_set_int(e->b.m, ir_at(e->b.f, id), IR_ATTR_INDEX, x->attr[0]);
    return id;
}

static ir_id emit_operation(emitter *e, const tiga_tensor *x) {
    ir_id args[3] = {0};
    if (x->code == IR_GRAD)
        return emit_grad(e, x);
    for (uint32_t i = 0; i < x->n_args; i++)
        args[i] = value_of(e, x->args[i]);
    if (x->code == IR_GET)
        return emit_get(e, x);
    if (x->code == IR_FOLD)
        return emit_fold(e, x);
    if (x->code == IR_MATMUL)
        return ir_emit2(&e->b, IR_MATMUL, type_of(e, x), args[0], args[1]);
    if (x->code == IR_BROADCAST) /* a stretched axis stays one element until it meets another */
        return args[0];
    if (x->code == IR_RESHAPE)
        return emit_reshape(e, args[0], type_of(e, x));
    if (x->code == IR_CAST)
        return ir_emit_cast(&e->b, (ir_dtype)x->dtype, args[0]);
    return ir_emit_elementwise(&e->b, (ir_opcode)x->code, args, x->n_args);
}

static void emit_results(emitter *e) {
    ir_func *f = e->b.f;
    base_arena *arena = e->b.m->arena;
    ir_id *out = base_arena_new_array(arena, ir_id, e->p->n_roots);
    for (size_t i = 0; i < e->p->n_roots; i++) {
        out[i] = value_of(e, e->p->roots[i]);
        ir_param r = {
            .name = base_arena_printf(arena, "y%zu", i), .role = IR_OUT_ROW, .type = *emitted_type(e, out[i])};
        base_push(arena, f->results, f->n_results, f->cap_results, r);
    }
    ir_emit(&e->b, IR_RET, (ir_type){.dtype = IR_NONE}, out, e->p->n_roots);
}

ir_module *tensor_emit(const tensor_plan *p, base_arena *arena) {
    ir_module *m = ir_module_new(arena, "tensor.ir", NULL);
    ir_func *f = ir_func_new(m, "t", IR_LEVEL_PROGRAM);
    f->exported = true;
    emitter e = {
        .p = p, .b = {.m = m, .f = f, .r = &f->body}, .value = base_arena_new_array(arena, ir_id, p->items.n + 1)};
    if (p->flat)
        ir_sym(m, f, "n");
    for (uint32_t i = 0; !p->flat && i < p->n_syms; i++)
        ir_sym(m, f, base_arena_printf(arena, "d%u", i));
    for (size_t i = 0; i < p->items.n; i++) {
        const tiga_tensor *x = p->items.v[i];
        if (x->kind == TENSOR_COMPUTE)
            e.value[i] = emit_operation(&e, x);
        else if (x->constant)
            e.value[i] = ir_emit_const(&e.b, ir_scalar((ir_dtype)x->dtype), x->value);
        else
            e.value[i] = emit_param(&e, x);
    }
    emit_results(&e);
    return m;
}
