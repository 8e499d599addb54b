/* Open loops, and emission.  Pure operations are numbered by value: the same operation on the same operands is emitted
 * once, in the outermost scope that has them, so nothing is recomputed in a loop that it does not depend on. */
#include "passes/lower.h"

#include <string.h>

struct lower_memo {
    lower_memo *next;
    uint64_t hash;
    const uint64_t *key;
    size_t n;
    ir_id id;
    size_t depth;
    uint32_t serial;
};

/* ---- scopes ---- */
lower_scope *lower_top(lower *L) { return &L->scope[L->n_scopes - 1]; }

size_t lower_depth(const lower *L, ir_id id) { return L->depth[id]; }

size_t lower_find_scope(const lower *L, lower_scope_kind kind) {
    for (size_t i = L->n_scopes; i-- > 0;)
        if (L->scope[i].kind == kind)
            return i;
    return 0;
}

static void set_depth(lower *L, ir_id id, size_t depth) {
    while (L->n_depth <= id)
        base_push(L->scratch, L->depth, L->n_depth, L->cap_depth, 0);
    L->depth[id] = (uint32_t)depth;
}

static lower_scope *push_scope(lower *L, lower_scope_kind kind, ir_region *region) {
    BASE_CHECK(L->n_scopes < LOWER_MAX_SCOPES);
    lower_scope *s = &L->scope[L->n_scopes++];
    *s = (lower_scope){.kind = kind, .serial = ++L->next_serial, .region = region, .plain = true};
    return s;
}

void lower_begin(lower *L) {
    L->n_scopes = 0;
    push_scope(L, LOWER_PREAMBLE, &L->f->body);
}

static ir_opcode opcode_of(lower_scope_kind kind) {
    switch (kind) {
    case LOWER_ROWS:
        return IR_ROWS;
    case LOWER_RANGE:
        return IR_RANGE;
    case LOWER_LOOP:
        return IR_LOOP;
    case LOWER_TILES:
        return IR_TILES;
    case LOWER_EDGES:
        return IR_EDGES;
    case LOWER_LANES:
        return IR_LANES;
    case LOWER_PREAMBLE:
        break;
    }
    BASE_BUG("the preamble is not a loop");
}

static size_t n_region_args(lower_scope_kind kind) {
    if (kind == LOWER_EDGES)
        return 3;
    return kind == LOWER_RANGE || kind == LOWER_TILES || kind == LOWER_LANES ? 2 : 1;
}

void lower_open(lower *L, lower_scope_kind kind, const ir_id *args, size_t n_args) {
    BASE_CHECK(lower_top(L)->kind != LOWER_LANES);
    ir_id loop = ir_op_new(L->m, L->f, opcode_of(kind), (ir_type){.dtype = IR_NONE}, args, n_args);
    ir_region *region = ir_region_new(L->m);
    ir_at(L->f, loop)->region = region;
    ir_at(L->f, loop)->span = L->span;
    lower_top(L)->plain = false;
    lower_scope *s = push_scope(L, kind, region);
    s->loop = loop;
    for (size_t i = 0; i < n_region_args(kind); i++) {
        s->arg[i] = lower_raw(L, IR_ARG, IR_I64, NULL, 0);
        ir_set_int(L->m, ir_at(L->f, s->arg[i]), IR_ATTR_INDEX, (int64_t)i);
    }
}

ir_id lower_close(lower *L) {
    BASE_CHECK(L->n_scopes > 1);
    ir_id loop = L->scope[--L->n_scopes].loop;
    ir_append(L->m, lower_top(L)->region, loop);
    return loop;
}

lower_hidden lower_hide(lower *L, size_t depth) {
    BASE_CHECK(depth < L->n_scopes);
    lower_hidden h = {.n = L->n_scopes - depth - 1};
    h.scopes = base_arena_new_array(L->scratch, lower_scope, h.n + 1);
    memcpy(h.scopes, L->scope + depth + 1, sizeof(lower_scope) * h.n);
    L->n_scopes = depth + 1;
    return h;
}

void lower_show(lower *L, lower_hidden h) {
    memcpy(L->scope + L->n_scopes, h.scopes, sizeof(lower_scope) * h.n);
    L->n_scopes += h.n;
}

/* ---- memory ---- */
static uint64_t hash_key(const uint64_t *key, size_t n) {
    uint64_t h = 0x9e3779b97f4a7c15u ^ n;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ key[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

ir_id lower_recall(lower *L, const uint64_t *key, size_t n) {
    if (L->n_buckets == 0)
        return 0;
    uint64_t h = hash_key(key, n);
    for (const lower_memo *e = L->buckets[h % L->n_buckets]; e; e = e->next)
        if (e->hash == h && e->n == n && memcmp(e->key, key, n * sizeof *key) == 0 && e->depth < L->n_scopes &&
            L->scope[e->depth].serial == e->serial)
            return e->id;
    return 0;
}

static void grow_memory(lower *L) {
    size_t n = L->n_buckets ? 4 * L->n_buckets : 256;
    lower_memo **buckets = base_arena_new_array(L->scratch, lower_memo *, n);
    for (size_t i = 0; i < L->n_buckets; i++)
        for (lower_memo *e = L->buckets[i], *next; e; e = next) {
            next = e->next;
            e->next = buckets[e->hash % n];
            buckets[e->hash % n] = e;
        }
    L->buckets = buckets;
    L->n_buckets = n;
}

void lower_remember(lower *L, const uint64_t *key, size_t n, ir_id id) {
    if (L->n_memos >= L->n_buckets)
        grow_memory(L);
    uint64_t *copy = base_arena_new_array(L->scratch, uint64_t, n);
    memcpy(copy, key, n * sizeof *key);
    size_t depth = lower_depth(L, id);
    lower_memo *e = base_arena_alloc(L->scratch, sizeof *e);
    *e = (lower_memo){
        .hash = hash_key(key, n), .key = copy, .n = n, .id = id, .depth = depth, .serial = L->scope[depth].serial};
    e->next = L->buckets[e->hash % L->n_buckets];
    L->buckets[e->hash % L->n_buckets] = e;
    L->n_memos++;
}

/* ---- emission ---- */
static ir_id emit_at(lower *L, size_t depth, ir_opcode code, ir_dtype dtype, const ir_id *args, size_t n_args) {
    ir_id id = ir_op_new(L->m, L->f, code, ir_scalar(dtype), args, n_args);
    ir_at(L->f, id)->span = L->span;
    ir_append(L->m, L->scope[depth].region, id);
    set_depth(L, id, depth);
    return id;
}

ir_id lower_raw(lower *L, ir_opcode code, ir_dtype dtype, const ir_id *args, size_t n_args) {
    if (code == IR_SET || code == IR_VAR || code == IR_PARTIALS)
        lower_top(L)->plain = false;
    return emit_at(L, L->n_scopes - 1, code, dtype, args, n_args);
}

static void set_pure_attr(lower *L, ir_op *op, int64_t attr) {
    if (op->code == IR_LOAD) {
        ir_set_int(L->m, op, IR_ATTR_FIELD, attr);
    } else if (op->code == IR_DIMSIZE) {
        ir_set_int(L->m, op, IR_ATTR_DIM, attr);
    } else if (op->code == IR_CONST) {
        ir_scalar_value v = {.i = 0};
        memcpy(&v, &attr, sizeof attr); /* no complex one, see lower_const */
        ir_set_value(L->m, op, v);
    }
}

ir_id lower_pure(lower *L, ir_opcode code, ir_dtype dtype, const ir_id *args, size_t n_args, int64_t attr) {
    uint64_t key[5 + IR_MAX_RANK] = {1, (uint64_t)code, (uint64_t)dtype, (uint64_t)attr};
    BASE_CHECK(n_args <= IR_MAX_RANK + 1);
    size_t depth = 0;
    for (size_t i = 0; i < n_args; i++) {
        key[4 + i] = args[i];
        if (lower_depth(L, args[i]) > depth)
            depth = lower_depth(L, args[i]);
    }
    ir_id id = lower_recall(L, key, 4 + n_args);
    if (id)
        return id;
    BASE_CHECK(depth < L->n_scopes);
    id = emit_at(L, depth, code, dtype, args, n_args);
    set_pure_attr(L, ir_at(L->f, id), attr);
    lower_remember(L, key, 4 + n_args, id);
    return id;
}

ir_id lower_pure1(lower *L, ir_opcode code, ir_dtype dtype, ir_id a) { return lower_pure(L, code, dtype, &a, 1, 0); }

ir_id lower_pure2(lower *L, ir_opcode code, ir_dtype dtype, ir_id a, ir_id b) {
    return lower_pure(L, code, dtype, (ir_id[]){a, b}, 2, 0);
}

ir_id lower_pure3(lower *L, ir_opcode code, ir_dtype dtype, ir_id a, ir_id b, ir_id c) {
    return lower_pure(L, code, dtype, (ir_id[]){a, b, c}, 3, 0);
}

ir_id lower_const(lower *L, ir_dtype dtype, ir_scalar_value v) {
    if (ir_dtype_is_complex(dtype)) {
        ir_dtype part = ir_dtype_part(dtype);
        ir_id re = lower_const(L, part, ir_part(dtype, v, 0)), im = lower_const(L, part, ir_part(dtype, v, 1));
        return lower_pure2(L, IR_COMPLEX, dtype, re, im);
    }
    ir_scalar_value clean = {.i = 0}; /* equal constants have equal bits, unused bytes included */
    if (dtype == IR_F32)
        clean.f = v.f;
    else
        clean = v;
    int64_t bits;
    memcpy(&bits, &clean, sizeof bits);
    return lower_pure(L, IR_CONST, dtype, NULL, 0, bits);
}

ir_id lower_i64(lower *L, int64_t v) { return lower_const(L, IR_I64, (ir_scalar_value){.i = v}); }

ir_id lower_number(lower *L, ir_dtype dtype, double v) {
    ir_scalar_value s = {.i = 0};
    if (dtype == IR_F32)
        s.f = (float)v;
    else if (dtype == IR_F64)
        s.d = v;
    else if (ir_dtype_is_complex(dtype))
        s = ir_eval(IR_CAST, IR_F64, dtype, &(ir_scalar_value){.d = v});
    else
        s.i = (int64_t)v;
    return lower_const(L, dtype, s);
}

ir_id lower_dim(lower *L, ir_dim d) {
    if (!ir_dim_is_sym(d))
        return lower_i64(L, d);
    return lower_pure(L, IR_DIMSIZE, IR_I64, NULL, 0, d);
}

ir_id lower_load(lower *L, uint32_t field, const ir_id *index, size_t n) {
    return lower_pure(L, IR_LOAD, L->f->params[field].type.dtype, index, n, field);
}

ir_id lower_read(lower *L, ir_id var, const ir_id *index, size_t n) {
    ir_id args[1 + IR_MAX_RANK] = {var};
    for (size_t i = 0; i < n; i++)
        args[1 + i] = index[i];
    return lower_pure(L, IR_READ, ir_at(L->f, var)->type.dtype, args, 1 + n, 0);
}

ir_id lower_read_now(lower *L, ir_id place, const ir_id *index, size_t n) {
    ir_id args[1 + IR_MAX_RANK] = {place};
    base_copy(args + 1, index, n * sizeof *index);
    return lower_raw(L, IR_READ, ir_at(L->f, place)->type.dtype, args, 1 + n);
}

void lower_set(lower *L, ir_id place, const ir_id *index, size_t n, ir_id value) {
    ir_id args[2 + IR_MAX_RANK] = {place};
    base_copy(args + 1, index, n * sizeof *index);
    args[1 + n] = value;
    lower_raw(L, IR_SET, IR_NONE, args, 2 + n);
}
