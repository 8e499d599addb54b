/* A reducer of the user's for a few features at a time.
 *
 * combine goes element by element, so a state may be taken in parts: `width` elements of its last axis that stand side by
 * side, of each other axis one.  The kernel that is made here gives the values of the state for one part, which numbers
 * behind its fields name: at[0] is the first element on the last axis, at[1] the one on the axis before, and so on.
 *
 * A part of a value is computed from parts of its operands as long as the operations go element by element or along the
 * edges; a field of edges or rows is given in parts.  Everything else -- params, matrix products, sums over features --
 * is computed as a whole, and the part is taken out of that.
 *
 * A state may have values of several sizes that have nothing to do with one another but values without axes: each family
 * of sizes is cut on its own, the values of the others staying what they are, a number that nobody asks for.
 *
 * An axis of a value has a position: which axis of the state it is, counted from the last.  Values are gone through twice,
 * from the combine backwards to find what is needed, then forwards. */
#include "passes/grad.h"

enum { MOST_NUMBERS = 16 }; /* in a part of the state */

typedef struct part_of { /* a part of a value */
    struct part_of *next;
    grad_place at;
    ir_id id;
} part_of;

typedef struct cutter {
    grad *g;
    const ir_func *k;
    const grad_states *s;
    const ir_type *shape; /* of the widest values of the family */
    ir_builder b;
    grad_cut *out;
    bool *need; /* by id: as a whole */
    ir_id *whole; /* by id */
    part_of **parts; /* by id */
    uint32_t *param; /* by parameter: as a whole, + 1 */
    ir_id at[IR_MAX_RANK];
} cutter;

static const ir_op *old(const cutter *c, ir_id v) { return ir_at(c->k, v); }

/* ---- families ---- */
static const ir_type *state_type(const grad_states *s, size_t i) { return &ir_at(s->f, s->region->ops[i])->type; }

/* Can it be stretched to the shape? */
static bool stretches(const ir_type *t, const ir_type *shape) {
    bool ok = t->rank <= shape->rank;
    for (uint32_t i = 1; ok && i <= t->rank; i++)
        ok = t->dim[t->rank - i] == 1 || t->dim[t->rank - i] == shape->dim[shape->rank - i];
    return ok;
}

/* Value i is the widest of its family: others are as wide only behind it. */
static bool is_head(const grad_states *s, size_t i) {
    for (size_t j = 0; j < s->n; j++) {
        bool wider = j != i && stretches(state_type(s, i), state_type(s, j));
        if (wider && (j < i || !stretches(state_type(s, j), state_type(s, i))))
            return false;
    }
    return true;
}

static bool is_of_family(const cutter *c, const ir_op *op) { return stretches(&op->type, c->shape); }

static int64_t choose_width(const cutter *c) {
    ir_dim last = c->shape->rank ? c->shape->dim[c->shape->rank - 1] : 1;
    int64_t width = MOST_NUMBERS, n = 0;
    for (size_t i = 0; i < c->s->n; i++)
        n += stretches(state_type(c->s, i), c->shape);
    while (width > 1 && width * n > MOST_NUMBERS)
        width /= 2;
    return ir_dim_is_sym(last) || last > width ? width : last;
}

/* ---- places ---- */
/* That of a state: its axes stand at the right. */
grad_place grad_place_of_state(const ir_type *t) {
    grad_place p = {{0}};
    for (uint32_t i = 0; i < t->rank; i++)
        p.pos[i] = t->dim[i] == 1 ? GRAD_NO_AXIS : (signed char)(t->rank - 1 - i);
    return p;
}

static bool same_place(const grad_place *a, const grad_place *b, uint32_t rank) {
    for (uint32_t i = 0; i < rank; i++)
        if (a->pos[i] != b->pos[i])
            return false;
    return true;
}

/* That of an operand which is stretched to the value. */
static grad_place of_operand(const grad_place *p, const ir_type *value, const ir_type *operand) {
    grad_place q = {{0}};
    for (uint32_t i = 0; i < operand->rank; i++)
        q.pos[i] = operand->dim[i] == 1 ? GRAD_NO_AXIS : p->pos[i + value->rank - operand->rank];
    return q;
}

static grad_place before_newaxis(const grad_place *p, const ir_op *op) {
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0);
    grad_place q = {{0}};
    for (uint32_t i = 0, n = 0; i < op->type.rank; i++)
        if (!(axes >> i & 1))
            q.pos[n++] = p->pos[i];
    return q;
}

bool grad_place_is_wide(const grad_place *p, uint32_t rank, int64_t width) {
    for (uint32_t i = 0; i < rank && width > 1; i++)
        if (p->pos[i] == 0)
            return true;
    return false;
}

/* The type of a part. */
static ir_type part_type(const cutter *c, const ir_type *t, const grad_place *p) {
    ir_type out = {.dtype = t->dtype, .space = t->space};
    if (grad_place_is_wide(p, t->rank, c->out->width)) {
        out.rank = 1;
        out.dim[0] = c->out->width;
    }
    return out;
}

/* ---- taking a part out of a whole ---- */
static ir_id take_axis(ir_builder *b, ir_id v, uint32_t axis, ir_id number) {
    ir_type t = ir_at(b->f, v)->type;
    const ir_type *n = &ir_at(b->f, number)->type;
    if (n->rank) {
        t.dim[axis] = n->dim[0];
    } else {
        for (uint32_t i = axis; i + 1 < t.rank; i++)
            t.dim[i] = t.dim[i + 1];
        t.rank--;
    }
    t.space = t.space > n->space ? t.space : n->space;
    ir_id id = ir_emit2(b, IR_GATHER, t, v, number);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_AXIS, axis);
    return id;
}

ir_id grad_numbers(ir_builder *b, ir_dim n) {
    return ir_emit(b, IR_IOTA, (ir_type){.dtype = IR_I64, .rank = 1, .dim = {n}}, NULL, 0);
}

ir_id grad_take_part(ir_builder *b, ir_id v, const grad_place *p, const ir_id *at, int64_t width) {
    uint32_t rank = ir_at(b->f, v)->type.rank, axis = 0;
    for (uint32_t i = 0; i < rank; i++) {
        ir_id number = p->pos[i] == GRAD_NO_AXIS ? ir_emit_i64(b, 0) : at[p->pos[i]];
        bool wide = p->pos[i] == 0 && width > 1;
        if (wide)
            number = grad_op2(b, IR_ADD, number, grad_numbers(b, width));
        v = take_axis(b, v, axis, number);
        axis += wide;
    }
    return v;
}

/* ---- what is needed ---- */
typedef enum rule { CONSTANT, GIVEN, ELEMENTS, AXES, TAKEN } rule;

static bool goes_by_element(const ir_op *op) {
    if (op->code == IR_REDUCE)
        return op->n_args == 1 && ir_kind_of(op) != IR_KIND_ARGMIN && ir_kind_of(op) != IR_KIND_ARGMAX;
    return op->code == IR_BROADCAST || ir_class_is_elementwise(ir_op_describe(op->code)->cls);
}

static rule rule_of(const cutter *c, const ir_op *op) {
    if (op->code == IR_CONST)
        return CONSTANT;
    if (op->code == IR_FIELD)
        return c->k->params[ir_int(op, IR_ATTR_FIELD, 0)].role == IR_PARAM_FIELD ? TAKEN : GIVEN;
    if (op->code == IR_NEWAXIS)
        return AXES;
    return goes_by_element(op) ? ELEMENTS : TAKEN;
}

static part_of *find(const cutter *c, ir_id v, const grad_place *p) {
    for (part_of *x = c->parts[v]; x; x = x->next)
        if (same_place(&x->at, p, old(c, v)->type.rank))
            return x;
    return NULL;
}

static void want(cutter *c, ir_id v, grad_place p) {
    if (old(c, v)->type.rank == 0) {
        c->need[v] = true;
    } else if (!find(c, v, &p)) {
        part_of *x = base_arena_alloc(c->g->scratch, sizeof *x);
        *x = (part_of){.next = c->parts[v], .at = p};
        c->parts[v] = x;
    }
}

static void want_operands(cutter *c, ir_id v, const grad_place *p) {
    const ir_op *op = old(c, v);
    switch (rule_of(c, op)) {
    case CONSTANT:
    case GIVEN:
        return;
    case ELEMENTS:
        for (uint32_t a = 0; a < op->n_args; a++)
            want(c, op->args[a], of_operand(p, &op->type, &old(c, op->args[a])->type));
        return;
    case AXES:
        want(c, op->args[0], before_newaxis(p, op));
        return;
    case TAKEN:
        c->need[v] = true;
    }
}

static void need_operands(cutter *c, const ir_op *op) {
    for (uint32_t a = 0; a < op->n_args; a++)
        c->need[op->args[a]] = true;
    for (size_t i = 0; op->region && i < op->region->n; i++)
        for (uint32_t a = 0; a < old(c, op->region->ops[i])->n_args; a++)
            c->need[old(c, op->region->ops[i])->args[a]] = true;
}

static void find_needed(cutter *c) {
    const ir_op *combine = old(c, c->s->id);
    for (uint32_t a = 0; a < combine->n_args; a++)
        if (is_of_family(c, old(c, combine->args[a])))
            want(c, combine->args[a], grad_place_of_state(&old(c, combine->args[a])->type));
    for (size_t i = 0; i < combine->region->n; i++)
        for (uint32_t a = 0; a < old(c, combine->region->ops[i])->n_args; a++)
            c->need[old(c, combine->region->ops[i])->args[a]] = true;
    for (size_t i = c->k->body.n; i-- > 0;) {
        ir_id v = c->k->body.ops[i];
        for (part_of *x = c->parts[v]; x; x = x->next)
            want_operands(c, v, &x->at);
        if (c->need[v])
            need_operands(c, old(c, v));
    }
}

/* ---- copies ---- */
static ir_dim to_dim(cutter *c, ir_dim d) {
    return ir_dim_is_sym(d) ? ir_dim_sym(ir_sym(c->g->m, c->b.f, c->k->syms[ir_dim_sym_index(d)])) : d;
}

static ir_type to_type(cutter *c, const ir_type *t) {
    ir_type out = *t;
    for (uint32_t i = 0; i < t->rank; i++)
        out.dim[i] = to_dim(c, t->dim[i]);
    return out;
}

static uint32_t add_field(cutter *c, uint32_t field, const grad_place *p) {
    ir_func *f = c->b.f;
    const ir_param *from = &c->k->params[field];
    ir_param q = *from;
    grad_cut_arg arg = {.param = field, .cut = p != NULL};
    q.name = ir_unused_name(c->g->m, f, from->name);
    q.type = p ? part_type(c, &from->type, p) : to_type(c, &from->type);
    q.type.space = IR_UNIFORM;
    if (p)
        arg.place = *p;
    base_push(c->g->m->arena, f->params, f->n_params, f->cap_params, q);
    base_push(c->g->scratch, c->out->args, c->out->n_args, c->out->cap_args, arg);
    return (uint32_t)f->n_params - 1;
}

static ir_id read_field(cutter *c, const ir_op *like, uint32_t field) {
    ir_type t = c->b.f->params[field].type;
    t.space = like->type.space;
    ir_id id = ir_emit(&c->b, IR_FIELD, t, NULL, 0);
    ir_set_int(c->g->m, ir_at(c->b.f, id), IR_ATTR_FIELD, field);
    ir_set_word(c->g->m, ir_at(c->b.f, id), IR_ATTR_AT, ir_word(like, IR_ATTR_AT));
    return id;
}

static ir_id part_of_field(cutter *c, const ir_op *op, const grad_place *p) {
    uint32_t field = (uint32_t)ir_int(op, IR_ATTR_FIELD, 0);
    for (size_t i = 0; i < c->out->n_args; i++)
        if (c->out->args[i].cut && c->out->args[i].param == field &&
            same_place(&c->out->args[i].place, p, op->type.rank))
            return read_field(c, op, c->out->rank + (uint32_t)i);
    return read_field(c, op, add_field(c, field, p));
}

static ir_id whole_field(cutter *c, const ir_op *op) {
    uint32_t field = (uint32_t)ir_int(op, IR_ATTR_FIELD, 0);
    if (!c->param[field])
        c->param[field] = 1 + add_field(c, field, NULL);
    return read_field(c, op, c->param[field] - 1);
}

static ir_id emit_like(cutter *c, const ir_op *op, ir_type t, const ir_id *args) {
    ir_id id = ir_emit(&c->b, op->code, t, args, op->n_args);
    ir_copy_attrs(c->g->m, op, ir_at(c->b.f, id));
    ir_attr_key key;
    if (pass_says_dim(op, &key))
        ir_set_int(c->g->m, ir_at(c->b.f, id), key, to_dim(c, ir_int(op, key, 0)));
    return id;
}

static ir_id copied(const cutter *c, ir_id v) {
    BASE_CHECK(c->whole[v]);
    return c->whole[v];
}

static void copy_region(cutter *c, ir_id id, const ir_region *r) {
    ir_region *outer = c->b.r;
    c->b.r = ir_at(c->b.f, id)->region = ir_region_new(c->g->m);
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = old(c, r->ops[i]);
        ir_id *args = base_arena_new_array(c->g->scratch, ir_id, op->n_args + 1);
        for (uint32_t a = 0; a < op->n_args; a++)
            args[a] = copied(c, op->args[a]);
        c->whole[r->ops[i]] = emit_like(c, op, to_type(c, &op->type), args);
    }
    c->b.r = outer;
}

static ir_id copy_whole(cutter *c, ir_id v) {
    const ir_op *op = old(c, v);
    ir_id *args = base_arena_new_array(c->g->scratch, ir_id, op->n_args + 1);
    if (op->code == IR_FIELD)
        return whole_field(c, op);
    for (uint32_t a = 0; a < op->n_args; a++)
        args[a] = copied(c, op->args[a]);
    ir_id id = emit_like(c, op, to_type(c, &op->type), args);
    if (op->region)
        copy_region(c, id, op->region);
    return id;
}

/* ---- parts ---- */
static ir_id part(const cutter *c, ir_id v, grad_place p) {
    return old(c, v)->type.rank ? find(c, v, &p)->id : copied(c, v);
}

static ir_id constant(cutter *c, const ir_op *op, ir_type t) {
    t.space = IR_UNIFORM;
    return ir_emit_const(&c->b, t, ir_find_attr(op, IR_ATTR_VALUE)->v);
}

/* An operation on parts; operands that are narrower than its value broadcast. */
static ir_id element(cutter *c, const ir_op *op, ir_type t, const ir_id *args) {
    if (op->code == IR_BROADCAST && ir_shape_equal(&t, &ir_at(c->b.f, args[0])->type))
        return args[0];
    t.space = op->code == IR_REDUCE ? IR_ROW : ir_widest_space(c->b.f, args, op->n_args);
    return emit_like(c, op, t, args);
}

static ir_id make_part(cutter *c, ir_id v, const grad_place *p) {
    const ir_op *op = old(c, v);
    ir_id *args = base_arena_new_array(c->g->scratch, ir_id, op->n_args + 1);
    ir_type t = part_type(c, &op->type, p);
    switch (rule_of(c, op)) {
    case CONSTANT:
        return constant(c, op, t);
    case GIVEN:
        return part_of_field(c, op, p);
    case ELEMENTS:
        for (uint32_t a = 0; a < op->n_args; a++)
            args[a] = part(c, op->args[a], of_operand(p, &op->type, &old(c, op->args[a])->type));
        return element(c, op, t, args);
    case AXES:
        return part(c, op->args[0], before_newaxis(p, op));
    case TAKEN:
        break;
    }
    return grad_take_part(&c->b, copied(c, v), p, c->at, c->out->width);
}

/* ---- the combine ---- */
static void cut_region(cutter *c, ir_id id) {
    const ir_region *r = c->s->region;
    ir_region *outer = c->b.r;
    c->b.r = ir_at(c->b.f, id)->region = ir_region_new(c->g->m);
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = old(c, r->ops[i]);
        bool own = op->code == IR_YIELD || is_of_family(c, op);
        grad_place p = grad_place_of_state(&op->type);
        ir_type t = op->code == IR_YIELD ? op->type : own ? part_type(c, &op->type, &p) : ir_scalar(op->type.dtype);
        ir_id *args = base_arena_new_array(c->g->scratch, ir_id, op->n_args + 1);
        if (!own && op->code != IR_ARG)
            continue;
        t.space = own ? t.space : op->type.space;
        for (uint32_t a = 0; a < op->n_args; a++)
            args[a] = op->code == IR_YIELD && !is_of_family(c, old(c, r->ops[a])) ? copied(c, r->ops[a])
                                                                                  : copied(c, op->args[a]);
        bool computed = op->n_args && op->code != IR_YIELD;
        c->whole[r->ops[i]] = computed ? element(c, op, t, args) : emit_like(c, op, t, args);
    }
    c->b.r = outer;
}

static ir_id cut_combine(cutter *c) {
    const ir_op *op = old(c, c->s->id);
    ir_id *args = base_arena_new_array(c->g->scratch, ir_id, op->n_args + 1);
    for (uint32_t a = 0; a < op->n_args; a++) {
        const ir_type *full = &old(c, op->args[a])->type;
        grad_place p = grad_place_of_state(full);
        ir_type t = part_type(c, full, &p);
        args[a] = is_of_family(c, old(c, op->args[a]))
                      ? grad_full(&c->b, part(c, op->args[a], p), &t)
                      : ir_emit_const(&c->b, ir_scalar(full->dtype), (ir_scalar_value){0});
    }
    ir_id id = ir_emit(&c->b, IR_COMBINE, ir_scalar(IR_TUPLE), args, op->n_args);
    cut_region(c, id);
    return id;
}

static void add_results(cutter *c, ir_id combine, const grad_stages *st) {
    ir_func *f = c->b.f;
    ir_id *out = base_arena_new_array(c->g->scratch, ir_id, st->n_results + 1);
    f->n_results = 0;
    for (size_t r = 0; r < st->n_results; r++) {
        size_t i = 0;
        while (st->result[i] != r)
            i++;
        ir_type t = ir_at(f, ir_at(f, combine)->args[i])->type;
        t.space = IR_ROW;
        out[r] = ir_emit1(&c->b, IR_GET, t, combine);
        ir_set_int(c->g->m, ir_at(f, out[r]), IR_ATTR_INDEX, (int64_t)i);
        ir_param q = {.name = ir_unused_name(c->g->m, f, st->states->results[r].name),
                      .role = IR_DST,
                      .type = t,
                      .span = c->b.span};
        base_push(c->g->m->arena, f->results, f->n_results, f->cap_results, q);
    }
    ir_emit(&c->b, IR_RET, (ir_type){.dtype = IR_NONE}, out, st->n_results);
}

static void add_places(cutter *c) {
    for (uint32_t p = 0; p < c->out->rank; p++) {
        ir_func *f = c->b.f;
        ir_param q = {.name = ir_unused_name(c->g->m, f, "at"),
                      .role = IR_PARAM_FIELD,
                      .type = ir_scalar(IR_I64),
                      .span = c->b.span};
        base_push(c->g->m->arena, f->params, f->n_params, f->cap_params, q);
        c->at[p] = ir_emit(&c->b, IR_FIELD, ir_scalar(IR_I64), NULL, 0);
        ir_set_int(c->g->m, ir_at(f, c->at[p]), IR_ATTR_FIELD, (int64_t)f->n_params - 1);
        ir_set_word(c->g->m, ir_at(f, c->at[p]), IR_ATTR_AT, "param");
    }
}

/* ---- all of it ---- */
static cutter begin(grad *g, const grad_states *s, const ir_type *shape, grad_cut *out) {
    const ir_func *k = s->f;
    ir_func *f = grad_new_kernel(g, k->name, "part", NULL);
    f->domain = k->domain;
    f->needs_square = k->needs_square;
    f->span = ir_at(k, s->id)->span;
    *out = (grad_cut){.f = f, .rank = shape->rank};
    for (uint32_t p = 0; p < out->rank; p++)
        out->size[p] = shape->dim[shape->rank - 1 - p];
    return (cutter){.g = g,
                    .k = k,
                    .s = s,
                    .shape = shape,
                    .b = {.m = g->m, .f = f, .r = &f->body, .span = f->span},
                    .out = out,
                    .need = base_arena_new_array(g->scratch, bool, k->n_ops),
                    .whole = base_arena_new_array(g->scratch, ir_id, k->n_ops),
                    .parts = base_arena_new_array(g->scratch, part_of *, k->n_ops),
                    .param = base_arena_new_array(g->scratch, uint32_t, k->n_params + 1)};
}

static grad_cut cut_family(grad *g, const grad_states *s, const grad_stages *st, const ir_type *shape) {
    grad_cut out;
    cutter c = begin(g, s, shape, &out);
    out.width = choose_width(&c);
    out.has = base_arena_new_array(g->scratch, bool, st->n_results + 1);
    for (size_t i = 0; i < s->n; i++)
        if (st->result[i] != SIZE_MAX)
            out.has[st->result[i]] = stretches(state_type(s, i), shape);
    find_needed(&c);
    add_places(&c);
    for (size_t i = 0; c.k->body.ops[i] != s->id; i++) {
        ir_id v = c.k->body.ops[i];
        c.b.span = old(&c, v)->span;
        if (c.need[v])
            c.whole[v] = copy_whole(&c, v);
        for (part_of *x = c.parts[v]; x; x = x->next)
            x->id = make_part(&c, v, &x->at);
    }
    c.b.span = c.b.f->span;
    add_results(&c, cut_combine(&c), st);
    return out;
}

static bool has_elements(const ir_type *t) {
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] == 0)
            return false;
    return true;
}

size_t grad_cuts_of(grad *g, const grad_states *s, const grad_stages *st, grad_cut **out) {
    size_t n = 0, cap = 0;
    *out = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (is_head(s, i) && has_elements(state_type(s, i)))
            base_push(g->scratch, *out, n, cap, cut_family(g, s, st, state_type(s, i)));
    return n;
}
