/* cse: an operation that computes what an earlier one has computed is replaced by it.
 *
 * An earlier operation counts when it stands before in the same region or in a region around it, so that it has run.
 * Only operations whose value depends on nothing but operands and attributes take part: a load from an input array
 * does (inputs never change during a launch), a read of a var does not, and two vars are two places.  Operand order
 * counts, except where swapping cannot change a bit: integers and bool (a NaN's payload depends on the order). */
#include "passes/pass_util.h"

#include <string.h>

typedef struct entry {
    ir_id id;
    uint32_t next; /* older entry of the bucket, + 1 */
} entry;

enum { BUCKETS = 1024 };

typedef struct cse {
    ir_module *m;
    ir_func *f;
    base_arena *scratch;
    pass_map map;
    uint32_t head[BUCKETS]; /* entry + 1; newest first, so leaving a region pops */
    entry *entries;
    size_t n, cap;
    size_t barrier; /* in the region of a combine: entries before stand outside, and only uniform ones are seen there */
} cse;

static bool pure(const ir_func *f, const ir_op *op) {
    ir_class c = ir_op_describe(op->code)->cls;
    if (op->code == IR_ARG || op->code == IR_BIND)
        return false;
    if (op->code == IR_LOAD)
        return f->params[ir_int(op, IR_ATTR_FIELD, 0)].role < IR_OUT_ROW;
    return c == IR_CLASS_LEAF || ir_class_is_elementwise(c) || c == IR_CLASS_REDUCE || op->code == IR_CALL ||
           op->code == IR_GET || op->code == IR_SOURCE || op->code == IR_EDGEID || op->code == IR_SLOT;
}

static bool swaps(const ir_func *f, const ir_op *op) {
    return (op->code == IR_ADD || op->code == IR_MUL || op->code == IR_AND || op->code == IR_OR || op->code == IR_EQ ||
            op->code == IR_NE || op->code == IR_MIN || op->code == IR_MAX) &&
           (ir_dtype_is_int(ir_at(f, op->args[0])->type.dtype) || ir_at(f, op->args[0])->type.dtype == IR_BOOL);
}

static uint32_t mix(uint32_t h, uint64_t v) { return (h ^ (uint32_t)v ^ (uint32_t)(v >> 32)) * 16777619u; }

/* Attributes are left out but for their number: the order they were set in is not fixed. */
static uint32_t hash(const ir_func *f, const ir_op *op) {
    uint32_t h = mix(2166136261u, op->code);
    h = mix(h, (uint64_t)op->type.dtype << 8 | (uint64_t)op->n_attrs);
    uint32_t swapped = 0;
    for (uint32_t i = 0; i < op->n_args; i++)
        if (swaps(f, op))
            swapped += op->args[i];
        else
            h = mix(h, op->args[i]);
    h = mix(h, swapped);
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].key == IR_ATTR_FIELD)
            h = mix(h, (uint64_t)op->attrs[i].i + 77);
    return (h ^ h >> 15) % BUCKETS;
}

static bool same(const ir_func *f, const ir_op *a, const ir_op *b) {
    if (a->code != b->code || a->n_args != b->n_args || !ir_type_equal(&a->type, &b->type) || !ir_same_attrs(a, b))
        return false;
    if (!a->n_args || !memcmp(a->args, b->args, sizeof *a->args * a->n_args))
        return true;
    return swaps(f, a) && a->args[0] == b->args[1] && a->args[1] == b->args[0];
}

static ir_id lookup(cse *s, ir_id id) {
    const ir_op *op = ir_at(s->f, id);
    uint32_t bucket = hash(s->f, op);
    for (uint32_t e = s->head[bucket]; e; e = s->entries[e - 1].next)
        if (same(s->f, ir_at(s->f, s->entries[e - 1].id), op) && (e > s->barrier || op->type.space == IR_UNIFORM))
            return s->entries[e - 1].id;
    entry fresh = {id, s->head[bucket]};
    base_push(s->scratch, s->entries, s->n, s->cap, fresh);
    s->head[bucket] = (uint32_t)s->n;
    return 0;
}

static void region(cse *s, ir_region *r) {
    size_t mark = s->n, kept = 0;
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        ir_op *op = ir_at(s->f, id);
        pass_map_args(&s->map, op);
        if (pure(s->f, op) && (s->map.to[id] = lookup(s, id)))
            continue;
        r->ops[kept++] = id;
        size_t barrier = s->barrier;
        if (op->code == IR_COMBINE)
            s->barrier = s->n;
        if (op->region)
            region(s, op->region);
        s->barrier = barrier;
    }
    r->n = kept;
    while (s->n > mark) {
        entry *e = &s->entries[--s->n];
        s->head[hash(s->f, ir_at(s->f, e->id))] = e->next;
    }
}

static bool cse_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    cse *s = base_arena_new_array(ctx->scratch, cse, 1);
    *s = (cse){.m = m, .f = f, .scratch = ctx->scratch, .map = pass_map_new(f, ctx->scratch)};
    region(s, &f->body);
    return true;
}

bool pass_cse(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, PASS_ALL_LEVELS, cse_func, ctx, err);
}
