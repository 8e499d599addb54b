/* The gradient of a kernel with a reducer of the user's that is gone through edge by edge and has states of features.
 *
 * An array of edges x features is not made.  The kernel is taken apart (grad_stages.c), and what leads to the state is
 * differentiated for a few features at a time (grad_cut.c): a repeat over the parts of the state, which takes the parts of
 * the fields and of the cotangents, differentiates a kernel of known small states, and puts what that gives a field in its
 * place or, where a field has no features, adds it up.  The arrays over the edges are those of one part.
 *
 * A state with fewer axes goes with every part; its cotangent goes with the first that has it.  The last part may reach
 * beyond the end: there it repeats the last element, with a cotangent of 0. */
#include "passes/grad.h"

struct grad_staged {
    grad_staged *next;
    const ir_func *k;
    ir_id combine;
    grad_stages stages;
    grad_cut *cuts; /* each gives the gradients of some values of the state; those without axes are in all of them */
    size_t n_cuts;
};

static const grad_staged *staged(grad *g, const ir_func *k, ir_id combine) {
    for (const grad_staged *x = *g->staged; x; x = x->next)
        if (x->k == k && x->combine == combine)
            return x;
    grad_states s = grad_states_of(k, combine, g->scratch);
    grad_staged *x = base_arena_alloc(g->scratch, sizeof *x);
    *x = (grad_staged){.next = *g->staged, .k = k, .combine = combine, .stages = grad_stages_of(g, k, combine)};
    x->n_cuts = grad_cuts_of(g, &s, &x->stages, &x->cuts);
    *g->staged = x;
    return x;
}

/* ---- kernels over rows, which take parts and put them back ---- */
typedef struct parts {
    grad *g;
    ir_builder *b;
    const ir_op *call;
    const ir_func *k;
    const grad_cut *cut;
    ir_dim size[IR_MAX_RANK]; /* of the state, by position, in sizes of the program */
    ir_id at[IR_MAX_RANK]; /* of the part, by position */
} parts;

typedef struct maker { /* of one kernel */
    parts *p;
    ir_builder b;
    ir_id *args;
    size_t n_args, cap_args;
    ir_id at[IR_MAX_RANK];
} maker;

static ir_id read_field(maker *k, ir_id v, const char *name, ir_role role, ir_type t) {
    ir_func *f = k->b.f;
    ir_param q = {.name = name, .role = role, .type = t, .span = k->b.span};
    q.type.space = IR_UNIFORM;
    base_push(k->b.m->arena, f->params, f->n_params, f->cap_params, q);
    base_push(k->p->g->scratch, k->args, k->n_args, k->cap_args, v);
    ir_id id = ir_emit(&k->b, IR_FIELD, t, NULL, 0);
    ir_set_int(k->b.m, ir_at(f, id), IR_ATTR_FIELD, (int64_t)f->n_params - 1);
    ir_set_word(k->b.m, ir_at(f, id), IR_ATTR_AT, role == IR_DST ? "dst" : "param");
    return id;
}

static ir_dim to_dim(maker *k, ir_dim d) {
    return ir_dim_is_sym(d) ? ir_dim_sym(ir_sym(k->b.m, k->b.f, k->p->g->f->syms[ir_dim_sym_index(d)])) : d;
}

/* The tensor v, row by row. */
static ir_id row_of(maker *k, ir_id v, const char *name) {
    const ir_type *from = &ir_at(k->p->g->f, v)->type;
    ir_type t = pass_type_drop_lead(from);
    for (uint32_t i = 0; i < t.rank; i++)
        t.dim[i] = to_dim(k, t.dim[i]);
    t.space = IR_ROW;
    return read_field(k, v, name, IR_DST, t);
}

static maker begin(parts *p, const char *what) {
    ir_func *f = grad_new_kernel(p->g, p->cut->f->name, what, NULL);
    f->domain = "rows";
    f->span = p->b->span;
    return (maker){.p = p, .b = {.m = p->g->m, .f = f, .r = &f->body, .span = f->span}};
}

static void read_places(maker *k) {
    for (uint32_t i = 0; i < k->p->cut->rank; i++)
        k->at[i] =
            read_field(k, k->p->at[i], base_arena_printf(k->b.m->arena, "at_%u", i), IR_PARAM_FIELD, ir_scalar(IR_I64));
}

/* Calls the kernel for each row of v. */
static ir_id end(maker *k, ir_id value, ir_id v) {
    ir_func *f = k->b.f, *program = k->p->g->f;
    const ir_type *whole = &ir_at(program, v)->type;
    ir_type t = ir_at(f, value)->type, made = {.dtype = t.dtype, .rank = t.rank + 1, .dim = {whole->dim[0]}};
    for (uint32_t i = 0; i < t.rank; i++) /* every axis is one of the tensor or as wide as a part */
        made.dim[i + 1] = ir_dim_is_sym(t.dim[i]) ? whole->dim[i + 1] : t.dim[i];
    ir_param r = {.name = "out", .role = IR_DST, .type = t, .span = k->b.span};
    base_push(k->b.m->arena, f->results, f->n_results, f->cap_results, r);
    ir_emit1(&k->b, IR_RET, (ir_type){.dtype = IR_NONE}, value);
    ir_id id = ir_emit(k->p->b, IR_CALL, made, k->args, k->n_args);
    ir_set_word(k->b.m, ir_at(program, id), IR_ATTR_CALLEE, f->name);
    ir_set_int(k->b.m, ir_at(program, id), IR_ATTR_GRAPH, -1);
    ir_set_int(k->b.m, ir_at(program, id), IR_ATTR_DIM, whole->dim[0]);
    return id;
}

static ir_id take(parts *p, ir_id v, const grad_place *at) {
    maker k = begin(p, "take");
    ir_id row = row_of(&k, v, "x");
    read_places(&k);
    return end(&k, grad_take_part(&k.b, row, at, k.at, p->cut->width), v);
}

static ir_id both(ir_builder *b, ir_id x, ir_id y) { return x ? grad_op2(b, IR_AND, x, y) : y; }

static bool has_axis(const grad_place *at, uint32_t rank, int pos) {
    for (uint32_t i = 0; i < rank; i++)
        if (at->pos[i] == pos)
            return true;
    return false;
}

/* Whether the part, or its elements, have the cotangent of a state; 0: always. */
static ir_id is_given(maker *k, const grad_place *at, uint32_t rank) {
    const parts *p = k->p;
    ir_id all = 0, zero = ir_emit_i64(&k->b, 0);
    for (uint32_t i = 0; i < p->cut->rank; i++)
        if (p->size[i] != 1 && !has_axis(at, rank, (int)i))
            all = both(&k->b, all, grad_op2(&k->b, IR_EQ, k->at[i], zero));
    ir_dim last = p->size[0];
    bool beyond = ir_dim_is_sym(last) || last % p->cut->width;
    if (!beyond || !grad_place_is_wide(at, rank, p->cut->width))
        return all;
    ir_id number = grad_op2(&k->b, IR_ADD, k->at[0], grad_numbers(&k->b, p->cut->width));
    return both(&k->b, all, grad_op2(&k->b, IR_LT, number, ir_emit_dimsize(&k->b, to_dim(k, last))));
}

static ir_id take_cotangent(parts *p, ir_id ct) {
    maker k = begin(p, "given");
    ir_id row = row_of(&k, ct, "cotangent");
    uint32_t rank = ir_at(k.b.f, row)->type.rank;
    grad_place at = grad_place_of_state(&ir_at(k.b.f, row)->type);
    read_places(&k);
    ir_id v = grad_take_part(&k.b, row, &at, k.at, p->cut->width), given = is_given(&k, &at, rank);
    return end(&k, given ? grad_select(&k.b, given, v, grad_number(&k.b, v, 0)) : v, ct);
}

/* Which elements along axis i of a row are those of the part; v: its values, along the axis if they are several. */
static ir_id own_elements(maker *k, ir_dim n, int pos, ir_id *v) {
    ir_builder *b = &k->b;
    ir_id numbers = grad_numbers(b, n);
    if (pos || k->p->cut->width == 1)
        return grad_op2(b, IR_EQ, numbers, pos == GRAD_NO_AXIS ? ir_emit_i64(b, 0) : k->at[pos]);
    ir_id from = grad_op2(b, IR_SUB, numbers, k->at[0]), width = ir_emit_i64(b, k->p->cut->width);
    ir_type t = ir_at(b->f, *v)->type;
    t.dim[0] = n;
    *v = ir_emit2(b, IR_GATHER, t, *v, from);
    ir_set_int(b->m, ir_at(b->f, *v), IR_ATTR_AXIS, 0);
    return both(b, grad_op2(b, IR_GE, from, ir_emit_i64(b, 0)), grad_op2(b, IR_LT, from, width));
}

/* sum with the values of a part added in their place */
static ir_id put(parts *p, ir_id sum, ir_id part, const grad_place *at) {
    maker k = begin(p, "put");
    ir_id row = row_of(&k, sum, "sum"), v = row_of(&k, part, "part"), own = 0;
    ir_type t = ir_at(k.b.f, row)->type;
    read_places(&k);
    for (uint32_t i = 0; i < t.rank; i++) {
        uint64_t behind = (((uint64_t)1 << (t.rank - 1 - i)) - 1) << 1;
        ir_id before = v, mine = own_elements(&k, t.dim[i], at->pos[i], &v);
        own = both(&k.b, own, grad_newaxis(&k.b, mine, behind));
        v = v == before ? v : grad_newaxis(&k.b, v, behind);
    }
    v = grad_select(&k.b, own, v, grad_number(&k.b, v, 0));
    return end(&k, grad_op2(&k.b, IR_ADD, row, v), sum);
}

/* ---- one part ---- */
/* Where part number `round` is: the last axis goes fastest. */
static void find_places(parts *p, ir_id round) {
    ir_builder *b = p->b;
    for (uint32_t i = 0; i < p->cut->rank; i++) {
        ir_id n = ir_emit_dimsize(b, p->size[i]), step = ir_emit_i64(b, i ? 1 : p->cut->width);
        n = grad_op2(b, IR_ADD, n, grad_op2(b, IR_SUB, step, ir_emit_i64(b, 1)));
        n = grad_op2(b, IR_DIV, n, step);
        p->at[i] = grad_op2(b, IR_MUL, grad_op2(b, IR_REM, round, n), step);
        round = grad_op2(b, IR_DIV, round, n);
    }
}

static ir_id count_parts(parts *p) {
    ir_builder *b = p->b;
    ir_id all = ir_emit_i64(b, 1), step = ir_emit_i64(b, p->cut->width);
    for (uint32_t i = 0; i < p->cut->rank; i++) {
        ir_id n = ir_emit_dimsize(b, p->size[i]);
        if (i == 0)
            n = grad_op2(b, IR_DIV, grad_op2(b, IR_ADD, n, ir_emit_i64(b, p->cut->width - 1)), step);
        all = grad_op2(b, IR_MUL, all, n);
    }
    return all;
}

static ir_id call_part(parts *p) {
    const grad_cut *cut = p->cut;
    ir_id *args = base_arena_new_array(p->g->scratch, ir_id, cut->rank + cut->n_args);
    base_copy(args, p->at, sizeof *args * cut->rank);
    for (size_t i = 0; i < cut->n_args; i++) {
        ir_id v = p->call->args[cut->args[i].param];
        args[cut->rank + i] = cut->args[i].cut ? take(p, v, &cut->args[i].place) : v;
    }
    return grad_emit_call(p->g, p->b, p->call, p->k, cut->f, args, cut->rank + cut->n_args);
}

/* sum, by parameter of the kernel: 0 where no gradient is asked for */
static bool add_part(parts *p, const ir_id *ct, size_t n_ct, ir_id *sum) {
    const grad_cut *cut = p->cut;
    ir_id id = call_part(p), *out = base_arena_new_array(p->g->scratch, ir_id, cut->rank + cut->n_args);
    ir_id *own = base_arena_new_array(p->g->scratch, ir_id, n_ct + 1);
    for (size_t r = 0; r < n_ct; r++)
        own[r] = ct[r] ? take_cotangent(p, ct[r]) : 0;
    for (size_t i = 0; i < cut->n_args; i++)
        out[cut->rank + i] = sum[cut->args[i].param];
    if (!grad_call(p->g, p->b, id, own, out))
        return false;
    for (size_t i = 0; i < cut->n_args; i++) {
        ir_id v = out[cut->rank + i], *place = &sum[cut->args[i].param];
        if (!v || !*place)
            continue;
        ir_type t = ir_at(p->g->f, ir_at(p->g->f, id)->args[cut->rank + i])->type;
        v = grad_full(p->b, v, &t);
        *place = cut->args[i].cut ? put(p, *place, v, &cut->args[i].place) : grad_op2(p->b, IR_ADD, *place, v);
    }
    return true;
}

/* ---- all parts ---- */
static bool all_parts(parts *p, const ir_id *ct, size_t n_ct, const bool *want, ir_id *out) {
    size_t n_params = p->k->n_params, n = 0;
    ir_id *start = base_arena_new_array(p->g->scratch, ir_id, n_params + 1);
    ir_id *sum = base_arena_new_array(p->g->scratch, ir_id, n_params + 1);
    for (size_t i = 0; i < n_params; i++) {
        ir_id v = p->call->args[i];
        if (want[i])
            start[n++] = grad_full(p->b, grad_number(p->b, v, 0), &ir_at(p->g->f, v)->type);
    }
    start[n] = ir_emit_i64(p->b, 0);
    grad_loop l = grad_loop_begin(p->g, p->b, count_parts(p), start, n + 1);
    for (size_t i = 0, k = 0; i < n_params; i++)
        sum[i] = want[i] ? l.arg[k++] : 0;
    find_places(p, l.arg[n]);
    if (!add_part(p, ct, n_ct, sum))
        return false;
    for (size_t i = 0, k = 0; i < n_params; i++)
        if (want[i])
            start[k++] = sum[i];
    start[n] = grad_op2(p->b, IR_ADD, l.arg[n], ir_emit_i64(p->b, 1));
    grad_loop_end(&l, start);
    for (size_t i = 0, k = 0; i < n_params; i++)
        out[i] = want[i] ? start[k++] : 0;
    return true;
}

/* out: on entry, of which operands a gradient is asked for, by parameter of the kernel and then by value of the state */
static bool rest_back(grad *g, ir_builder *b, ir_id call, const grad_staged *t, const ir_id *cotangent, ir_id *out) {
    const ir_op *op = ir_at(g->f, call);
    size_t n = t->k->n_params, n_states = t->stages.n_results;
    ir_id states = grad_emit_call(g, b, op, t->k, t->stages.states, op->args, n);
    ir_id *args = base_arena_new_array(g->scratch, ir_id, n + n_states);
    base_copy(args, op->args, sizeof *args * n);
    for (size_t r = 0; r < n_states; r++) {
        args[n + r] = grad_get_result(g, b, states, t->stages.states, r);
        out[n + r] = ir_dtype_has_gradient(ir_at(g->f, args[n + r])->type.dtype);
    }
    ir_id rest = grad_emit_call(g, b, op, t->k, t->stages.rest, args, n + n_states);
    return grad_call(g, b, rest, cotangent, out);
}

/* The cotangents of values that this cut has and none before had; NULL: there are none. */
static ir_id *take_own(parts *p, ir_id *all, size_t n) {
    ir_id *ct = base_arena_new_array(p->g->scratch, ir_id, n + 1);
    bool any = false;
    for (size_t i = 0; i < p->cut->rank; i++)
        p->size[i] = grad_call_dim(p->g, p->call, p->k, p->cut->size[i]);
    for (size_t r = 0; r < n; r++) {
        if (!p->cut->has[r] || !all[r])
            continue;
        ct[r] = all[r];
        all[r] = 0;
        any = true;
    }
    return any ? ct : NULL;
}

/* Of the parameters that are wanted, those that this cut reads: the others have no part in it, and nothing is carried for
 * them (the states of other reducers, when a kernel has many). */
static bool *wanted_of(const parts *p, const bool *want) {
    bool *gets = base_arena_new_array(p->g->scratch, bool, p->k->n_params + 1);
    for (size_t i = 0; i < p->cut->n_args; i++)
        gets[p->cut->args[i].param] = want[p->cut->args[i].param];
    return gets;
}

bool grad_call_parts(grad *g, ir_builder *b, ir_id call, ir_id combine, const ir_id *cotangent, ir_id *out) {
    const ir_op *op = ir_at(g->f, call);
    const ir_func *k = ir_func_find(g->m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_KERNEL);
    const grad_staged *t = staged(g, k, combine);
    size_t n = k->n_params, n_states = t->stages.n_results;
    ir_id *rest = base_arena_new_array(g->scratch, ir_id, n + n_states + 1);
    ir_id *sum = base_arena_new_array(g->scratch, ir_id, n + 1);
    bool *want = base_arena_new_array(g->scratch, bool, n + 1);
    for (size_t i = 0; i < n; i++) {
        want[i] = out[i] != 0;
        rest[i] = out[i];
    }
    if (!rest_back(g, b, call, t, cotangent, rest))
        return false;
    for (size_t i = 0; i < n; i++)
        out[i] = want[i] ? rest[i] : 0;
    for (size_t c = 0; c < t->n_cuts; c++) {
        parts p = {.g = g, .b = b, .call = op, .k = k, .cut = &t->cuts[c]};
        ir_id *ct = take_own(&p, rest + n, n_states);
        bool *gets = wanted_of(&p, want);
        if (ct && !all_parts(&p, ct, n_states, gets, sum))
            return false;
        for (size_t i = 0; ct && i < n; i++)
            if (gets[i])
                out[i] = out[i] ? grad_op2(b, IR_ADD, out[i], sum[i]) : sum[i];
    }
    return true;
}
