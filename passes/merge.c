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

typedef struct touch {
    ir_id place; /* var or partials; a result: NO_PLACE + parameter */
    unsigned how;
} touch;
#define NO_PLACE 0x80000000u

typedef struct effects { /* of one operation with all that is in it, or of several */
    touch *places;
    size_t n_places, cap_places;
    ir_id *values; /* used; those made inside too */
    size_t n_values, cap_values;
} effects;

typedef struct merge {
    ir_module *m;
    ir_func *f;
    base_arena *scratch;
    effects *of;     /* by id, of the operations of the region at work */
    bool *known;     /* by id: `of` is filled */
    unsigned *first; /* by place, results behind the others: what the first loop does */
    unsigned *rest;  /* likewise: what those do that stay behind it */
    bool *stays;     /* by id: stays behind the first loop */
    bool *seen;      /* by id: loops that were the first one */
    ir_id *map;      /* by id: arguments of the second loop to those of the first */
} merge;

/* ---- effects ---- */
static size_t slot(const merge *s, ir_id place) { return place & NO_PLACE ? s->f->n_ops + (place & ~NO_PLACE) : place; }
static size_t n_slots(const merge *s) { return s->f->n_ops + s->f->n_params + 1; }

static void add_touch(const merge *s, effects *e, ir_id place, unsigned how) {
    base_push(s->scratch, e->places, e->n_places, e->cap_places, ((touch){place, how}));
}

static void add_effects(const merge *s, ir_id id, effects *e) {
    const ir_op *op = ir_at(s->f, id);
    for (uint32_t i = 0; i < op->n_args; i++)
        base_push(s->scratch, e->values, e->n_values, e->cap_values, op->args[i]);
    if (op->code == IR_READ || op->code == IR_COLLAPSE)
        add_touch(s, e, op->args[0], READS);
    if (op->code == IR_SET || op->code == IR_ACCUM)
        add_touch(s, e, op->args[0], WRITES);
    if (op->code == IR_STORE)
        add_touch(s, e, NO_PLACE | (ir_id)ir_int(op, IR_ATTR_FIELD, 0), WRITES);
    for (size_t i = 0; op->region && i < op->region->n; i++)
        add_effects(s, op->region->ops[i], e);
}

static const effects *effects_of(merge *s, ir_id id) {
    if (!s->known[id]) {
        s->of[id] = (effects){0};
        add_effects(s, id, &s->of[id]);
        s->known[id] = true;
    }
    return &s->of[id];
}

static void note(const merge *s, unsigned *table, const effects *e) {
    for (size_t i = 0; i < e->n_places; i++)
        table[slot(s, e->places[i].place)] |= e->places[i].how;
}

/* One of the two writes. */
static bool collide(unsigned a, unsigned b) { return (a & WRITES && b) || (b & WRITES && a); }

/* May e change places with what the table holds? */
static bool independent(const merge *s, const effects *e, const unsigned *table) {
    for (size_t i = 0; i < e->n_places; i++)
        if (collide(e->places[i].how, table[slot(s, e->places[i].place)]))
            return false;
    return true;
}

static bool needs_what_stays(const merge *s, const effects *e) {
    for (size_t i = 0; i < e->n_values; i++)
        if (s->stays[e->values[i]])
            return true;
    return !independent(s, e, s->rest);
}

/* ---- elements of the iteration's own ---- */
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
        if (own_positions(s->f, a->region, place, pass_loop_arg(s->f, a, index)) &
            own_positions(s->f, b->region, place, pass_loop_arg(s->f, b, index)))
            return true;
    return false;
}

/* May iterations of the two alternate? */
static bool bodies_fit(const merge *s, const ir_op *a, const ir_op *b, const effects *of_b) {
    for (size_t i = 0; i < of_b->n_places; i++) {
        ir_id place = of_b->places[i].place;
        if (!collide(of_b->places[i].how, s->first[slot(s, place)]))
            continue;
        if (place & NO_PLACE || a->code == IR_EDGES || !touches_own_elements(s, a, b, place))
            return false;
    }
    return true;
}

/* ---- one pair ---- */
static bool same_loops(const ir_op *a, const ir_op *b) {
    if (a->code != b->code || a->n_args != b->n_args || memcmp(a->args, b->args, sizeof *a->args * a->n_args) != 0)
        return false;
    return a->code == IR_EDGES || a->code == IR_LANES || a->code == IR_LOOP;
}

static void map_args(const merge *s, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = ir_at(s->f, r->ops[i]);
        for (uint32_t k = 0; k < op->n_args; k++)
            if (s->map[op->args[k]])
                op->args[k] = s->map[op->args[k]];
        if (op->region)
            map_args(s, op->region);
    }
}

static void join_attrs(merge *s, ir_op *a, const ir_op *b) {
    int64_t la = ir_int(a, IR_ATTR_LANES, 1), lb = ir_int(b, IR_ATTR_LANES, 1);
    int64_t pa = ir_int(a, IR_ATTR_PREFETCH, 0), pb = ir_int(b, IR_ATTR_PREFETCH, 0);
    if (la != lb)
        ir_set_int(s->m, a, IR_ATTR_LANES, 1);
    if (pb > pa)
        ir_set_int(s->m, a, IR_ATTR_PREFETCH, pb);
}

static void join(merge *s, ir_id first, ir_id second) {
    ir_op *a = ir_at(s->f, first);
    const ir_op *b = ir_at(s->f, second);
    note(s, s->first, effects_of(s, second));
    for (size_t i = 0; i < b->region->n; i++) {
        const ir_op *op = ir_at(s->f, b->region->ops[i]);
        if (op->code == IR_ARG)
            s->map[b->region->ops[i]] = pass_loop_arg(s->f, a, ir_int(op, IR_ATTR_INDEX, 0));
    }
    map_args(s, b->region);
    for (size_t i = 0; i < b->region->n; i++)
        if (ir_at(s->f, b->region->ops[i])->code != IR_ARG)
            ir_append(s->m, a->region, b->region->ops[i]);
    if (a->code == IR_EDGES)
        join_attrs(s, a, b);
    s->known[first] = false;
}

/* ---- one loop and all that follow it ---- */
typedef struct order { /* the region from the first loop on, as far as it was looked at */
    ir_id *before, *behind;
    size_t n_before, n_behind;
} order;

static void write_order(ir_region *r, size_t at, ir_id first, const order *o, size_t end) {
    memcpy(r->ops + at, o->before, o->n_before * sizeof *o->before);
    at += o->n_before;
    r->ops[at++] = first;
    memcpy(r->ops + at, o->behind, o->n_behind * sizeof *o->behind);
    at += o->n_behind;
    memmove(r->ops + at, r->ops + end, (r->n - end) * sizeof *r->ops);
    r->n -= end - at;
}

/* Merges what can be merged into the loop at i; where that loop is then. */
static size_t merge_into(merge *s, ir_region *r, size_t i, order o) {
    ir_id first = r->ops[i];
    order last = {0};
    size_t end = 0;
    memset(s->first, 0, n_slots(s) * sizeof *s->first);
    memset(s->rest, 0, n_slots(s) * sizeof *s->rest);
    memset(s->stays, 0, s->f->n_ops * sizeof *s->stays);
    note(s, s->first, effects_of(s, first));
    for (size_t k = i + 1; k < r->n; k++) {
        ir_id id = r->ops[k];
        const effects *e = effects_of(s, id);
        bool free = !needs_what_stays(s, e);
        if (free && same_loops(ir_at(s->f, first), ir_at(s->f, id)) &&
            bodies_fit(s, ir_at(s->f, first), ir_at(s->f, id), e)) {
            join(s, first, id);
            last = o;
            end = k + 1;
        } else if (free && independent(s, e, s->first)) {
            o.before[o.n_before++] = id;
        } else {
            s->stays[id] = true;
            note(s, s->rest, e);
            o.behind[o.n_behind++] = id;
        }
    }
    if (end)
        write_order(r, i, first, &last, end);
    return i + last.n_before;
}

static void merge_region(merge *s, ir_region *r) {
    order o = {.before = base_arena_new_array(s->scratch, ir_id, r->n),
               .behind = base_arena_new_array(s->scratch, ir_id, r->n)};
    for (size_t i = 0; i < r->n; i++) {
        ir_opcode code = ir_at(s->f, r->ops[i])->code;
        if (s->seen[r->ops[i]] || (code != IR_EDGES && code != IR_LANES && code != IR_LOOP))
            continue;
        s->seen[r->ops[i]] = true;
        if (merge_into(s, r, i, o) > i)
            i--; /* what has moved in front of the loop has not been looked at yet */
    }
    for (size_t i = 0; i < r->n; i++)
        if (ir_at(s->f, r->ops[i])->region)
            merge_region(s, ir_at(s->f, r->ops[i])->region);
}

static bool merge_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    merge s = {.m = m, .f = f, .scratch = ctx->scratch};
    s.of = base_arena_new_array(ctx->scratch, effects, f->n_ops);
    s.known = base_arena_new_array(ctx->scratch, bool, f->n_ops);
    s.first = base_arena_new_array(ctx->scratch, unsigned, n_slots(&s));
    s.rest = base_arena_new_array(ctx->scratch, unsigned, n_slots(&s));
    s.stays = base_arena_new_array(ctx->scratch, bool, f->n_ops);
    s.seen = base_arena_new_array(ctx->scratch, bool, f->n_ops);
    s.map = base_arena_new_array(ctx->scratch, ir_id, f->n_ops);
    merge_region(&s, &f->body);
    return true;
}

bool pass_merge(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, merge_func, ctx, err);
}
