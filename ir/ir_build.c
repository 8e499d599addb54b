/* Making and changing modules.  Operations live in chunks that never move, so an `ir_op *` stays good while others are
 * added; attributes are kept in the order of their keys, so equal operations have equal lists. */
#include "ir/ir.h"
#include "ir/ir_private.h"

#include <string.h>

#define CHUNK 64

ir_module *ir_module_new(base_arena *arena, const char *source_name, const char *source) {
    ir_module *m = base_arena_alloc(arena, sizeof *m);
    m->arena = arena;
    m->source_name = base_arena_strdup(arena, source_name);
    m->source = source;
    return m;
}

bool ir_sym_find(const ir_func *f, const char *name, uint32_t *out) {
    for (size_t i = 0; i < f->n_syms; i++)
        if (strcmp(f->syms[i], name) == 0) {
            *out = (uint32_t)i;
            return true;
        }
    return false;
}

static void add_bases(ir_module *m, ir_func *f, const char *sum) {
    base_size_term t;
    while (*sum && base_size_next(&sum, &t))
        for (uint32_t i = 0; i < t.n_names; i++)
            ir_sym(m, f, base_arena_printf(m->arena, "%.*s", (int)t.length[i], t.name[i]));
}

static bool find_size(const ir_func *f, const char *graph, size_t n, const char *what, uint32_t *out) {
    for (uint32_t i = 0; i < f->n_syms; i++)
        if (strncmp(f->syms[i], graph, n) == 0 && f->syms[i][n] == '.' && strcmp(f->syms[i] + n + 1, what) == 0) {
            *out = i;
            return true;
        }
    return false;
}

bool ir_graph_sym(const ir_func *f, const char *graph, const char *what, uint32_t *out) {
    return find_size(f, graph, strlen(graph), what, out);
}

/* "g.dst" for "g.src" */
static uint32_t rows_of(const ir_func *f, uint32_t sym) {
    const char *name = f->syms[sym], *dot = strrchr(name, '.');
    uint32_t rows;
    return dot && strcmp(dot, ".src") == 0 && find_size(f, name, (size_t)(dot - name), "dst", &rows) ? rows : sym;
}

ir_dim ir_dim_canonical(const ir_func *f, ir_dim d) {
    if (!ir_dim_is_sym(d) || !(f->needs_square || f->n_same))
        return d;
    uint32_t sym = ir_dim_sym_index(d);
    if (f->needs_square)
        sym = rows_of(f, sym);
    for (size_t i = 0; i < f->n_same; i++)
        if (f->same[i].of == sym)
            return ir_dim_sym(f->same[i].is);
    return ir_dim_sym(sym);
}

ir_type ir_type_canonical(const ir_func *f, const ir_type *t) {
    ir_type r = *t;
    for (uint32_t i = 0; i < r.rank; i++)
        r.dim[i] = ir_dim_canonical(f, r.dim[i]);
    return r;
}

uint32_t ir_sym(ir_module *m, ir_func *f, const char *name) {
    uint32_t at;
    if (ir_sym_find(f, name, &at))
        return at;
    if (ir_sym_is_computed(name))
        add_bases(m, f, name);
    const char *copy = base_arena_strdup(m->arena, name);
    base_push(m->arena, f->syms, f->n_syms, f->cap_syms, copy);
    return (uint32_t)f->n_syms - 1;
}

static bool is_used(const ir_func *f, const char *name) {
    for (size_t i = 0; i < f->n_params; i++)
        if (!strcmp(f->params[i].name, name))
            return true;
    for (size_t i = 0; i < f->n_results; i++)
        if (!strcmp(f->results[i].name, name))
            return true;
    return false;
}

const char *ir_unused_name(const ir_module *m, const ir_func *f, const char *want) {
    const char *name = want;
    for (unsigned n = 2; is_used(f, name); n++)
        name = base_arena_printf(m->arena, "%s_%u", want, n);
    return name;
}

ir_op *ir_at(const ir_func *f, ir_id id) {
    BASE_CHECK(id > 0 && id < f->n_ops);
    return &f->chunks[id / CHUNK][id % CHUNK];
}

/* The list of chunks doubles at powers of two, so it needs no capacity of its own. */
static void add_chunk(ir_module *m, ir_func *f, size_t n) {
    if (n == 0 || (n & (n - 1)) == 0)
        f->chunks = base_arena_grow(m->arena, f->chunks, n * sizeof *f->chunks, (n ? 2 * n : 1) * sizeof *f->chunks);
    f->chunks[n] = base_arena_new_array(m->arena, ir_op, CHUNK);
}

ir_id ir_op_new(ir_module *m, ir_func *f, ir_opcode code, ir_type type, const ir_id *args, size_t n_args) {
    BASE_CHECK(f->n_ops < UINT32_MAX && n_args < UINT32_MAX);
    ir_id *copy = n_args ? base_arena_new_array(m->arena, ir_id, n_args) : NULL;
    if (n_args)
        memcpy(copy, args, sizeof *args * n_args);
    size_t chunk = f->n_ops / CHUNK;
    if (f->n_ops % CHUNK == 0 || f->n_ops == 1)
        add_chunk(m, f, chunk);
    ir_id id = f->n_ops++;
    ir_op *op = ir_at(f, id);
    op->code = code;
    op->type = type;
    op->args = copy;
    op->n_args = (uint32_t)n_args;
    return id;
}

void ir_set_args(ir_module *m, ir_op *op, const ir_id *args, size_t n_args) {
    ir_id *copy = n_args ? base_arena_new_array(m->arena, ir_id, n_args) : NULL;
    if (n_args)
        memcpy(copy, args, sizeof *args * n_args);
    op->args = copy;
    op->n_args = (uint32_t)n_args;
}

void ir_append(ir_module *m, ir_region *r, ir_id id) { base_push(m->arena, r->ops, r->n, r->cap, id); }

void ir_insert(ir_module *m, ir_region *r, size_t at, ir_id id) {
    BASE_CHECK(at <= r->n);
    ir_append(m, r, id);
    memmove(r->ops + at + 1, r->ops + at, sizeof *r->ops * (r->n - 1 - at));
    r->ops[at] = id;
}

void ir_erase(ir_region *r, size_t at) {
    BASE_CHECK(at < r->n);
    memmove(r->ops + at, r->ops + at + 1, sizeof *r->ops * (r->n - 1 - at));
    r->n--;
}

bool ir_region_find(const ir_region *r, ir_id id, size_t *at) {
    for (size_t i = 0; i < r->n; i++)
        if (r->ops[i] == id) {
            *at = i;
            return true;
        }
    return false;
}

ir_region *ir_region_new(ir_module *m) { return base_arena_alloc(m->arena, sizeof(ir_region)); }

/* ---- attributes ---- */
ir_attr *ir_put_attr(ir_module *m, ir_op *op, ir_attr_key key) {
    uint32_t at = 0;
    while (at < op->n_attrs && op->attrs[at].key < key)
        at++;
    if (at < op->n_attrs && op->attrs[at].key == key)
        return &op->attrs[at];
    ir_attr *list = base_arena_new_array(m->arena, ir_attr, op->n_attrs + 1);
    if (op->n_attrs) {
        memcpy(list, op->attrs, sizeof *list * at);
        memcpy(list + at + 1, op->attrs + at, sizeof *list * (op->n_attrs - at));
    }
    list[at] = (ir_attr){.key = key};
    op->attrs = list;
    op->n_attrs++;
    return &op->attrs[at];
}

void ir_set_int(ir_module *m, ir_op *op, ir_attr_key key, int64_t v) { ir_put_attr(m, op, key)->i = v; }

void ir_set_word(ir_module *m, ir_op *op, ir_attr_key key, const char *w) {
    const char *copy = base_arena_strdup(m->arena, w);
    ir_put_attr(m, op, key)->word = copy;
}

void ir_set_value(ir_module *m, ir_op *op, ir_scalar_value v) { ir_put_attr(m, op, IR_ATTR_VALUE)->v = v; }

void ir_copy_attrs(ir_module *m, const ir_op *from, ir_op *to) {
    ir_attr *list = from->n_attrs ? base_arena_new_array(m->arena, ir_attr, from->n_attrs) : NULL;
    if (from->n_attrs)
        memcpy(list, from->attrs, sizeof *list * from->n_attrs);
    to->attrs = list;
    to->n_attrs = from->n_attrs;
}

bool ir_same_attrs(const ir_op *a, const ir_op *b) {
    if (a->n_attrs != b->n_attrs)
        return false;
    for (uint32_t i = 0; i < a->n_attrs; i++) {
        const ir_attr *x = &a->attrs[i], *y = ir_find_attr(b, x->key);
        if (!y || x->i != y->i || memcmp(&x->d, &y->d, sizeof x->d) || !x->word != !y->word ||
            (x->word && strcmp(x->word, y->word)))
            return false;
        if (x->key == IR_ATTR_VALUE && !ir_scalar_same(a->type.dtype, x->v, y->v))
            return false;
    }
    return true;
}

void ir_drop_attr(ir_op *op, ir_attr_key key) {
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].key == key) {
            memmove(op->attrs + i, op->attrs + i + 1, sizeof *op->attrs * (op->n_attrs - i - 1));
            op->n_attrs--;
            return;
        }
}

const ir_attr *ir_find_attr(const ir_op *op, ir_attr_key key) {
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].key == key)
            return &op->attrs[i];
    return NULL;
}

int64_t ir_int(const ir_op *op, ir_attr_key key, int64_t otherwise) {
    const ir_attr *a = ir_find_attr(op, key);
    return a ? a->i : otherwise;
}

const char *ir_word(const ir_op *op, ir_attr_key key) {
    const ir_attr *a = ir_find_attr(op, key);
    return a ? a->word : NULL;
}

ir_kind ir_kind_of(const ir_op *op) {
    const char *word = ir_word(op, IR_ATTR_KIND);
    ir_kind k;
    if (!word || !ir_kind_from_text(word, &k))
        BASE_BUG("%s without a valid kind", ir_op_describe(op->code)->text);
    return k;
}

/* ---- whole functions ---- */
static ir_region copy_region(ir_module *m, const ir_region *r) {
    ir_region copy = {.n = r->n, .cap = r->n};
    copy.ops = r->n ? base_arena_new_array(m->arena, ir_id, r->n) : NULL;
    if (r->n)
        memcpy(copy.ops, r->ops, sizeof *r->ops * r->n);
    return copy;
}

static void copy_ops(ir_module *m, ir_func *to, const ir_func *from) {
    for (ir_id id = 1; id < from->n_ops; id++) {
        const ir_op *op = ir_at(from, id);
        ir_op *copy = ir_at(to, ir_op_new(m, to, op->code, op->type, op->args, op->n_args));
        ir_copy_attrs(m, op, copy);
        copy->span = op->span;
        if (op->region) {
            copy->region = ir_region_new(m);
            *copy->region = copy_region(m, op->region);
        }
    }
}

void ir_copy_dims(ir_module *m, ir_func *to, const ir_func *from) {
    for (size_t i = 0; i < from->n_syms; i++)
        base_push(m->arena, to->syms, to->n_syms, to->cap_syms, from->syms[i]);
    for (size_t i = 0; i < from->n_same; i++)
        base_push(m->arena, to->same, to->n_same, to->cap_same, from->same[i]);
}

ir_func *ir_func_clone(ir_module *m, const ir_func *f, const char *name) {
    ir_func *c = ir_func_new(m, name, f->level);
    c->signature = f->signature;
    c->exported = f->exported;
    c->needs_square = f->needs_square;
    c->domain = f->domain;
    c->rows_per_unit = f->rows_per_unit;
    c->winners = f->winners;
    c->team = f->team;
    c->span = f->span;
    ir_copy_dims(m, c, f);
    for (size_t i = 0; i < f->n_params; i++)
        base_push(m->arena, c->params, c->n_params, c->cap_params, f->params[i]);
    for (size_t i = 0; i < f->n_results; i++)
        base_push(m->arena, c->results, c->n_results, c->cap_results, f->results[i]);
    copy_ops(m, c, f);
    c->body = copy_region(m, &f->body);
    return c;
}

void ir_remap(ir_func *f, const ir_id *map) {
    for (ir_id id = 1; id < f->n_ops; id++) {
        ir_op *op = ir_at(f, id);
        for (uint32_t i = 0; i < op->n_args; i++)
            if (op->args[i] && map[op->args[i]])
                op->args[i] = map[op->args[i]];
    }
}

static void walk(ir_func *f, ir_region *r, void (*fn)(void *, ir_func *, ir_region *, ir_id), void *ctx) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        fn(ctx, f, r, id);
        if (ir_at(f, id)->region)
            walk(f, ir_at(f, id)->region, fn, ctx);
    }
}

void ir_walk(ir_func *f, void (*fn)(void *ctx, ir_func *f, ir_region *r, ir_id id), void *ctx) {
    walk(f, &f->body, fn, ctx);
}

static void count_uses(void *ctx, ir_func *f, ir_region *r, ir_id id) {
    (void)r;
    const ir_op *op = ir_at(f, id);
    for (uint32_t i = 0; i < op->n_args; i++)
        ((uint32_t *)ctx)[op->args[i]]++;
}

void ir_count_uses(ir_func *f, uint32_t *uses) {
    memset(uses, 0, sizeof *uses * f->n_ops);
    ir_walk(f, count_uses, uses);
}

bool ir_walks(const ir_func *f) { return f->domain && strcmp(f->domain, "rows") != 0; }

bool ir_is_scan(const ir_op *combine) { return ir_int(combine, IR_ATTR_SCAN, 0) != 0; }

bool ir_transposed(const ir_func *f) { return f->domain && strcmp(f->domain, "src") == 0; }

/* The value that stands for the source in a walk; 0: nobody asks for it. */
static ir_id source_in(const ir_func *f, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++)
        if (ir_at(f, r->ops[i])->code == IR_ARG && ir_int(ir_at(f, r->ops[i]), IR_ATTR_INDEX, 0) == 1)
            return r->ops[i];
    return 0;
}

static unsigned reads_in(const ir_func *f, const ir_region *r, ir_id source) {
    unsigned reads = 0;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        if (op->code == IR_SOURCE)
            reads |= IR_READS_SOURCE;
        if (op->code == IR_EDGEID && ir_transposed(f))
            reads |= IR_READS_EDGE_OF;
        for (uint32_t k = 0; source && k < op->n_args; k++)
            reads |= op->args[k] == source ? IR_READS_SOURCE : 0;
        if (op->region)
            reads |= op->code == IR_EDGES ? ir_walk_reads(f, op) : reads_in(f, op->region, source);
    }
    return reads;
}

unsigned ir_walk_reads(const ir_func *f, const ir_op *edges) {
    return reads_in(f, edges->region, source_in(f, edges->region));
}

unsigned ir_edge_reads(const ir_func *f) { return f->winners.known ? 0 : reads_in(f, &f->body, 0); }

const ir_op *ir_yield_of(const ir_func *f, const ir_op *op) {
    if (op->code == IR_IF)
        op = ir_at(f, op->region->ops[0]);
    return ir_at(f, op->region->ops[op->region->n - 1]);
}

bool ir_has_effect(const ir_op *op) {
    ir_class cls = ir_op_describe(op->code)->cls;
    return cls == IR_CLASS_EFFECT || cls == IR_CLASS_LOOP || op->code == IR_POP;
}
