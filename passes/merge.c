/* merge: two loops over the same thing in one region become one, so that edges and features are walked once.
 *
 * Works on `edges` of one row, and on `lanes` and `loop` of one extent.  The second loop moves up to the first.  What
 * stands between them moves in front of both when it does not depend on the first loop, and stays behind otherwise;
 * then the second loop must not depend on what stays.  Between the two bodies, iteration n of the second may use what
 * iteration n of the first has written, when both only touch elements that are the iteration's own.  Orders of sums do
 * not change: an accumulator belongs to one of the loops. */
#include "passes/pass_util.h"

#include <string.h>

enum { READS = 1, WRITES = 2 };

typedef struct effects { /* of one operation with all that is in it */
    unsigned char *place; /* by id of var and partials: READS, WRITES */
    unsigned char *field; /* by parameter: WRITES */
    bool *value;          /* by id: used */
} effects;

typedef struct merge {
    ir_module *m;
    ir_func *f;
    base_arena *scratch;
    effects first, second, rest; /* of the two loops, and of what stays behind the first */
    bool *stays;                 /* by id: values that are made behind the first */
    ir_id *map;                  /* by id: arguments of the second loop to those of the first */
} merge;

/* ---- effects ---- */
static effects effects_new(const merge *s) {
    return (effects){.place = base_arena_new_array(s->scratch, unsigned char, s->f->n_ops),
                     .field = base_arena_new_array(s->scratch, unsigned char, s->f->n_params + 1),
                     .value = base_arena_new_array(s->scratch, bool, s->f->n_ops)};
}

static void effects_clear(const merge *s, effects *e) {
    memset(e->place, 0, s->f->n_ops);
    memset(e->field, 0, s->f->n_params + 1);
    memset(e->value, 0, s->f->n_ops * sizeof *e->value);
}

static void add_effects(const ir_func *f, ir_id id, effects *e) {
    const ir_op *op = ir_at(f, id);
    for (uint32_t i = 0; i < op->n_args; i++)
        e->value[op->args[i]] = true;
    if (op->code == IR_READ || op->code == IR_COLLAPSE)
        e->place[op->args[0]] |= READS;
    if (op->code == IR_SET || op->code == IR_ACCUM)
        e->place[op->args[0]] |= WRITES;
    if (op->code == IR_STORE)
        e->field[ir_int(op, IR_ATTR_FIELD, 0)] |= WRITES;
    for (size_t i = 0; op->region && i < op->region->n; i++)
        add_effects(f, op->region->ops[i], e);
}

/* May the two change places? */
static bool independent(const merge *s, const effects *a, const effects *b) {
    for (ir_id id = 1; id < s->f->n_ops; id++)
        if ((a->place[id] & WRITES && b->place[id]) || (b->place[id] & WRITES && a->place[id]))
            return false;
    for (size_t i = 0; i < s->f->n_params; i++)
        if (a->field[i] && b->field[i])
            return false;
    return true;
}

static bool uses_any(const merge *s, const effects *e, const bool *values) {
    for (ir_id id = 1; id < s->f->n_ops; id++)
        if (e->value[id] && values[id])
            return true;
    return false;
}

/* ---- elements of the iteration's own ---- */
static ir_id loop_arg(const ir_func *f, const ir_op *loop, int64_t index) {
    for (size_t i = 0; i < loop->region->n; i++) {
        const ir_op *op = ir_at(f, loop->region->ops[i]);
        if (op->code == IR_ARG && ir_int(op, IR_ATTR_INDEX, 0) == index)
            return loop->region->ops[i];
    }
    return 0;
}

/* Bits of the index positions of `place` that are argument `index` of the loop in every access inside it. */
static unsigned own_positions(const ir_func *f, const ir_region *r, ir_id place, ir_id own) {
    unsigned mask = ~0u;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        if (op->region)
            mask &= own_positions(f, op->region, place, own);
        bool access = op->code == IR_READ || op->code == IR_SET || op->code == IR_ACCUM || op->code == IR_COLLAPSE;
        if (!access || op->args[0] != place)
            continue;
        unsigned here = 0;
        uint32_t end = op->code == IR_SET ? op->n_args - 1 : op->n_args;
        for (uint32_t a = 1; a < end && own && ir_at(f, place)->code == IR_VAR; a++)
            here |= op->args[a] == own ? 1u << a : 0;
        mask &= here;
    }
    return mask;
}

static bool touches_own_elements(const merge *s, const ir_op *a, const ir_op *b, ir_id place) {
    for (int64_t index = 0; index < (a->code == IR_LANES ? 2 : 1); index++)
        if (own_positions(s->f, a->region, place, loop_arg(s->f, a, index)) &
            own_positions(s->f, b->region, place, loop_arg(s->f, b, index)))
            return true;
    return false;
}

/* May iterations of the two alternate? */
static bool bodies_fit(const merge *s, const ir_op *a, const ir_op *b) {
    for (ir_id id = 1; id < s->f->n_ops; id++) {
        unsigned char x = s->first.place[id], y = s->second.place[id];
        if (!(x & WRITES && y) && !(y & WRITES && x))
            continue;
        if (a->code == IR_EDGES || !touches_own_elements(s, a, b, id))
            return false;
    }
    for (size_t i = 0; i < s->f->n_params; i++)
        if (s->first.field[i] && s->second.field[i])
            return false;
    return true;
}

/* ---- one pair ---- */
static bool same_loops(const ir_op *a, const ir_op *b) {
    if (a->code != b->code || a->n_args != b->n_args || memcmp(a->args, b->args, sizeof *a->args * a->n_args) != 0)
        return false;
    return a->code == IR_EDGES || a->code == IR_LANES || a->code == IR_LOOP;
}

/* Sorts what stands between: true for what has to stay behind the first loop. */
static bool must_stay(merge *s, ir_id id, effects *scratch) {
    effects_clear(s, scratch);
    add_effects(s->f, id, scratch);
    return uses_any(s, scratch, s->stays) || !independent(s, scratch, &s->first) || !independent(s, scratch, &s->rest);
}

static void join(merge *s, ir_op *a, const ir_op *b) {
    for (size_t i = 0; i < b->region->n; i++) {
        ir_id id = b->region->ops[i];
        const ir_op *op = ir_at(s->f, id);
        if (op->code == IR_ARG)
            s->map[id] = loop_arg(s->f, a, ir_int(op, IR_ATTR_INDEX, 0));
        else
            ir_append(s->m, a->region, id);
    }
    if (a->code != IR_EDGES)
        return;
    int64_t la = ir_int(a, IR_ATTR_LANES, 1), lb = ir_int(b, IR_ATTR_LANES, 1);
    int64_t pa = ir_int(a, IR_ATTR_PREFETCH, 0), pb = ir_int(b, IR_ATTR_PREFETCH, 0);
    if (la != lb)
        ir_set_int(s->m, a, IR_ATTR_LANES, 1);
    if (pb > pa)
        ir_set_int(s->m, a, IR_ATTR_PREFETCH, pb);
}

/* Merges the loop at `j` into the loop at `i` when that changes no bit. */
static bool try_pair(merge *s, ir_region *r, size_t i, size_t j, effects *scratch) {
    ir_op *a = ir_at(s->f, r->ops[i]);
    const ir_op *b = ir_at(s->f, r->ops[j]);
    effects_clear(s, &s->second);
    add_effects(s->f, r->ops[j], &s->second);
    if (!bodies_fit(s, a, b))
        return false;
    effects_clear(s, &s->rest);
    memset(s->stays, 0, s->f->n_ops * sizeof *s->stays);
    ir_id *before = base_arena_new_array(s->scratch, ir_id, j - i), *behind = base_arena_new_array(s->scratch, ir_id, j - i);
    size_t n_before = 0, n_behind = 0;
    for (size_t k = i + 1; k < j; k++) {
        ir_id id = r->ops[k];
        if (!must_stay(s, id, scratch)) {
            before[n_before++] = id;
            continue;
        }
        s->stays[id] = true;
        add_effects(s->f, id, &s->rest);
        behind[n_behind++] = id;
    }
    if (uses_any(s, &s->second, s->stays) || !independent(s, &s->second, &s->rest))
        return false;
    ir_id first = r->ops[i];
    memcpy(r->ops + i, before, n_before * sizeof *before);
    r->ops[i + n_before] = first;
    memcpy(r->ops + i + n_before + 1, behind, n_behind * sizeof *behind);
    memmove(r->ops + j, r->ops + j + 1, (r->n - j - 1) * sizeof *r->ops);
    r->n--;
    join(s, a, b);
    ir_remap(s->f, s->map);
    return true;
}

static bool merge_with_later(merge *s, ir_region *r, size_t i, effects *scratch) {
    const ir_op *a = ir_at(s->f, r->ops[i]);
    for (size_t j = i + 1; j < r->n; j++) {
        if (!ir_at(s->f, r->ops[j])->region || !same_loops(a, ir_at(s->f, r->ops[j])))
            continue;
        effects_clear(s, &s->first);
        add_effects(s->f, r->ops[i], &s->first);
        if (try_pair(s, r, i, j, scratch))
            return true;
    }
    return false;
}

static void merge_region(merge *s, ir_region *r, effects *scratch) {
    for (size_t i = 0; i < r->n;) {
        if (ir_at(s->f, r->ops[i])->region && merge_with_later(s, r, i, scratch))
            continue; /* what came before the pair is now at i; it is looked at again */
        i++;
    }
    for (size_t i = 0; i < r->n; i++)
        if (ir_at(s->f, r->ops[i])->region)
            merge_region(s, ir_at(s->f, r->ops[i])->region, scratch);
}

static bool merge_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    merge s = {.m = m, .f = f, .scratch = ctx->scratch};
    s.first = effects_new(&s);
    s.second = effects_new(&s);
    s.rest = effects_new(&s);
    effects scratch = effects_new(&s);
    s.stays = base_arena_new_array(ctx->scratch, bool, f->n_ops);
    s.map = base_arena_new_array(ctx->scratch, ir_id, f->n_ops);
    merge_region(&s, &f->body, &scratch);
    return true;
}

bool pass_merge(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, merge_func, ctx, err);
}
