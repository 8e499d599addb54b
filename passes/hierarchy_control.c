/* The schedule of repeat, while and if: pairs of instances for carried values, one instance for what an if gives, and the
 * buffers of their regions.  See hierarchy_program.c for the invariants. */
#include "passes/hierarchy_plan.h"

/* ---- repeat ---- */
static const ir_type *carried_type(const hier_plan *s, ir_id repeat, size_t i) {
    return &s->slots[s->first[repeat] + i].type;
}

static bool yielded_before(hier_plan *s, const ir_op *yield, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (hier_slot_of(s, yield->args[k]) == hier_slot_of(s, yield->args[i]))
            return true;
    return false;
}

/* Position of the carried value that the region passes on unchanged, or -1. */
static int64_t passed_on(hier_plan *s, ir_id repeat, const ir_op *yield, uint32_t i) {
    const ir_op *v = ir_at(s->p, yield->args[i]);
    bool own = v->code == IR_ARG && hier_slot_of(s, yield->args[i])->home == repeat &&
               ir_type_equal(&hier_slot_of(s, yield->args[i])->type, carried_type(s, repeat, i));
    return own && !yielded_before(s, yield, i) ? ir_int(v, IR_ATTR_INDEX, 0) : -1;
}

/* The instance a carried value starts in, and its name.  It will be overwritten, so it must be nobody else's. */
static ir_id start_of(hier_plan *s, ir_id repeat, ir_id v, const char **name) {
    hier_slot *from = hier_slot_of(s, v);
    if (!from->placed || from->uses != 1 || from->home != hier_slot_of(s, repeat)->home)
        return hier_make(s, &from->type, *name);
    from->owned = false; /* the repeat has it now */
    *name = ir_word(ir_at(s->h.t, from->inst), IR_ATTR_NAME);
    return from->inst;
}

static hier_carried new_carried(hier_plan *s, const ir_op *repeat) {
    base_arena *a = s->h.scratch;
    hier_carried c = {.n = repeat->n_args - 1};
    c.current = base_arena_new_array(a, ir_id, c.n + 1);
    c.spare = base_arena_new_array(a, ir_id, c.n + 1);
    c.now = base_arena_new_array(a, ir_id, c.n + 1);
    c.other = base_arena_new_array(a, ir_id, c.n + 1);
    c.direct = base_arena_new_array(a, bool, c.n + 1);
    return c;
}

void hier_make_carried(hier_plan *s, ir_id id) {
    const ir_op *op = ir_at(s->p, id), *yield = ir_yield_of(s->p, op);
    hier_carried c = new_carried(s, op);
    for (uint32_t i = 0; i < c.n; i++) {
        const char *name = base_arena_printf(s->h.scratch, "%s.carried.%u", s->p->name, ++s->n_carried);
        c.current[i] = start_of(s, id, op->args[i + 1], &name);
        if (passed_on(s, id, yield, i) >= 0)
            continue;
        c.spare[i] = hier_make(s, carried_type(s, id, i), name);
        c.n_spare++;
        hier_slot *v = hier_slot_of(s, yield->args[i]);
        c.direct[i] = v->placed && v->home == id && ir_type_equal(&v->type, carried_type(s, id, i)) &&
                      !yielded_before(s, yield, i);
        v->elsewhere |= c.direct[i];
    }
    s->carried[id] = c;
}

bool hier_make_region(hier_plan *s, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        const ir_op *op = ir_at(s->p, id);
        if (op->code == IR_CALL && !hier_make_results(s, id))
            return false;
        if (op->code == IR_POP)
            hier_make_popped(s, id);
        if (op->code == IR_REPEAT)
            hier_make_carried(s, id);
        if (op->code == IR_IF)
            hier_make_choice(s, id);
        if (op->code == IR_REPEAT ? !hier_make_region(s, op->region) : op->code == IR_IF && !hier_make_arms(s, id))
            return false;
    }
    return true;
}

/* A free instance of the type: what a round has not passed on. */
static ir_id take_free(hier_plan *s, ir_id id, const ir_id *taken, size_t n_taken, const ir_type *t) {
    const hier_carried *c = &s->carried[id];
    for (size_t i = 0; i < c->n; i++) {
        if (!ir_type_equal(carried_type(s, id, i), t))
            continue;
        if (!hier_is_among(taken, n_taken, c->now[i]))
            return c->now[i];
        if (c->spare[i] && !hier_is_among(taken, n_taken, c->other[i]))
            return c->other[i];
    }
    BASE_BUG("program '%s': no instance left for a carried value", s->p->name);
}

static void emit_yield(hier_plan *s, ir_id id) {
    hier_carried *c = &s->carried[id];
    const ir_op *yield = ir_yield_of(s->p, ir_at(s->p, id));
    ir_id *out = base_arena_new_array(s->h.scratch, ir_id, c->n + c->n_spare);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t from = passed_on(s, id, yield, i);
        out[i] = from >= 0 ? c->now[from] : c->other[i];
        if (from < 0 && !c->direct[i])
            hier_copy(&s->h, hier_slot_of(s, yield->args[i])->inst, out[i]);
    }
    size_t n = c->n;
    for (size_t i = 0; i < c->n; i++)
        if (c->spare[i]) {
            out[n] = take_free(s, id, out, n, carried_type(s, id, i));
            n++;
        }
    ir_emit(&s->h.b, IR_YIELD, (ir_type){.dtype = IR_NONE}, out, n);
}

static ir_id region_arg(hier_plan *s, size_t index) {
    ir_id id = ir_emit(&s->h.b, IR_ARG, (ir_type){.dtype = IR_INSTANCE_T}, NULL, 0);
    ir_set_int(s->h.m, ir_at(s->h.t, id), IR_ATTR_INDEX, (int64_t)index);
    return id;
}

static ir_id begin_repeat(hier_plan *s, ir_id id, ir_id count) {
    hier_carried *c = &s->carried[id];
    ir_id *args = base_arena_new_array(s->h.scratch, ir_id, 1 + c->n + c->n_spare);
    size_t at = 0;
    args[at++] = count;
    for (size_t i = 0; i < c->n; i++)
        args[at++] = c->current[i];
    for (size_t i = 0; i < c->n; i++)
        if (c->spare[i])
            args[at++] = c->spare[i];
    ir_id loop = ir_emit(&s->h.b, IR_REPEAT, (ir_type){.dtype = IR_TUPLE}, args, at);
    s->h.b.r = ir_at(s->h.t, loop)->region = ir_region_new(s->h.m);
    for (size_t i = 0; i < c->n; i++)
        c->now[i] = region_arg(s, i);
    for (size_t i = 0, n = c->n; i < c->n; i++)
        if (c->spare[i])
            c->other[i] = region_arg(s, n++);
    return loop;
}

/* Places of the region's arguments, and of the values that go straight into a spare. */
static void place_carried(hier_plan *s, ir_id id) {
    const hier_carried *c = &s->carried[id];
    const ir_op *op = ir_at(s->p, id), *yield = ir_yield_of(s->p, op);
    for (size_t i = 0; i < op->region->n; i++) {
        const ir_op *a = ir_at(s->p, op->region->ops[i]);
        if (a->code == IR_ARG)
            hier_slot_of(s, op->region->ops[i])->inst = c->now[ir_int(a, IR_ATTR_INDEX, 0)];
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->direct[i])
            hier_slot_of(s, yield->args[i])->inst = c->other[i];
}

static bool emit_region(hier_plan *s, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i], inner;
        const ir_op *op = ir_at(s->p, id);
        hier_emit_stack(s, id);
        if ((op->code == IR_CALL && !hier_emit_call(s, id)) ||
            (op->code == IR_REPEAT && !hier_emit_repeat(s, id, &inner)) ||
            (op->code == IR_IF && !hier_emit_choice(s, id)))
            return false;
        if (op->code == IR_WHILE)
            hier_effect1(&s->h, IR_WHILE, hier_read_bool(&s->h, hier_slot_of(s, op->args[0])->inst));
    }
    return true;
}

bool hier_emit_repeat(hier_plan *s, ir_id id, ir_id *loop) {
    const ir_op *op = ir_at(s->p, id);
    const hier_carried *c = &s->carried[id];
    for (size_t i = 0; i < c->n; i++) {
        ir_id from = hier_slot_of(s, op->args[i + 1])->inst;
        if (from != c->current[i])
            hier_copy(&s->h, from, c->current[i]);
    }
    ir_id count = hier_rounds(s, op->args[0]);
    ir_region *outer = s->h.b.r;
    *loop = begin_repeat(s, id, count);
    place_carried(s, id);
    if (!emit_region(s, op->region))
        return false;
    emit_yield(s, id);
    s->h.b.r = outer;
    for (size_t i = 0; i < c->n; i++)
        s->slots[s->first[id] + i].inst = hier_get(&s->h, *loop, i);
    return true;
}

/* ---- if ---- */
void hier_make_choice(hier_plan *s, ir_id choice) {
    const ir_op *yield = ir_yield_of(s->p, ir_at(s->p, choice));
    for (uint32_t i = 0; i < yield->n_args; i++) {
        hier_slot *v = &s->slots[s->first[choice] + i];
        if (v->inst || v->elsewhere)
            continue;
        v->inst = hier_make(s, &v->type, base_arena_printf(s->h.scratch, "%s.chosen.%u", s->p->name, ++s->n_choices));
        v->owned = !s->nested;
    }
}

/* Is value i of the yield written by its arm straight into what the if gives? */
static bool is_direct(hier_plan *s, ir_id choice, ir_id arm, const ir_op *yield, uint32_t i) {
    const hier_slot *v = hier_slot_of(s, yield->args[i]);
    return v->placed && v->home == arm && !yielded_before(s, yield, i) &&
           ir_type_equal(&v->type, &s->slots[s->first[choice] + i].type);
}

static bool make_arm(hier_plan *s, ir_id choice, ir_id arm) {
    const ir_op *op = ir_at(s->p, arm), *yield = ir_yield_of(s->p, op);
    for (uint32_t i = 0; i < yield->n_args; i++)
        if (is_direct(s, choice, arm, yield, i))
            hier_slot_of(s, yield->args[i])->elsewhere = true;
    return hier_make_region(s, op->region);
}

bool hier_make_arms(hier_plan *s, ir_id choice) {
    const ir_region *arms = ir_at(s->p, choice)->region;
    size_t from = s->reuse_from, to = s->reuse_to, first = s->n_made;
    bool ok = make_arm(s, choice, arms->ops[0]);
    s->reuse_from = first;
    s->reuse_to = s->n_made;
    ok = ok && make_arm(s, choice, arms->ops[1]);
    s->reuse_from = from;
    s->reuse_to = to;
    return ok;
}

static bool emit_arm(hier_plan *s, ir_id choice, ir_id arm) {
    const ir_op *op = ir_at(s->p, arm), *yield = ir_yield_of(s->p, op);
    const hier_slot *gives = &s->slots[s->first[choice]];
    ir_region *outer = s->h.b.r;
    ir_id made = ir_emit(&s->h.b, IR_ARM, (ir_type){.dtype = IR_NONE}, NULL, 0);
    s->h.b.r = ir_at(s->h.t, made)->region = ir_region_new(s->h.m);
    for (uint32_t i = 0; i < yield->n_args; i++)
        if (is_direct(s, choice, arm, yield, i))
            hier_slot_of(s, yield->args[i])->inst = gives[i].inst;
    if (!emit_region(s, op->region))
        return false;
    for (uint32_t i = 0; i < yield->n_args; i++)
        if (!is_direct(s, choice, arm, yield, i))
            hier_copy(&s->h, hier_slot_of(s, yield->args[i])->inst, gives[i].inst);
    hier_effect1(&s->h, IR_YIELD, 0);
    s->h.b.r = outer;
    return true;
}

bool hier_emit_choice(hier_plan *s, ir_id id) {
    const ir_op *op = ir_at(s->p, id);
    ir_id condition = hier_read_bool(&s->h, hier_slot_of(s, op->args[0])->inst);
    ir_region *outer = s->h.b.r;
    ir_id made = ir_emit1(&s->h.b, IR_IF, (ir_type){.dtype = IR_TUPLE}, condition);
    s->h.b.r = ir_at(s->h.t, made)->region = ir_region_new(s->h.m);
    bool ok = emit_arm(s, id, op->region->ops[0]) && emit_arm(s, id, op->region->ops[1]);
    s->h.b.r = outer;
    return ok;
}
