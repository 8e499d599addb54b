/* Writing task IR: binds and sizes at the beginning of the function, launches in their pages, copies, releases. */
#include "passes/hierarchy.h"

#include <string.h>

static void copy_header(ir_module *m, ir_func *t, const ir_func *like) {
    t->signature = like->signature;
    t->exported = like->exported;
    t->needs_square = like->needs_square;
    t->span = like->span;
    ir_copy_dims(m, t, like);
    for (size_t i = 0; i < like->n_params; i++)
        base_push(m->arena, t->params, t->n_params, t->cap_params, like->params[i]);
    for (size_t i = 0; i < like->n_results; i++)
        base_push(m->arena, t->results, t->n_results, t->cap_results, like->results[i]);
}

void hier_begin(hier *h, ir_module *m, const ir_func *like, pass_context *ctx, base_str *err) {
    *h = (hier){.m = m,
                .t = ir_func_new(m, like->name, IR_LEVEL_TASK),
                .scratch = ctx->scratch,
                .tier = ctx->cuda ? "device" : "host",
                .err = err};
    copy_header(m, h->t, like);
    h->b = (ir_builder){.m = m, .f = h->t, .r = &h->t->body, .span = like->span};
}

/* The beginning goes in front of what was written meanwhile. */
void hier_end(hier *h) {
    hier_effect1(h, IR_RET, 0);
    ir_region body = h->t->body;
    h->t->body = h->start;
    for (size_t i = 0; i < body.n; i++)
        ir_append(h->m, &h->t->body, body.ops[i]);
}

static ir_id at_start(hier *h, ir_opcode code, ir_type type, const ir_id *args, size_t n_args) {
    ir_id id = ir_op_new(h->m, h->t, code, type, args, n_args);
    ir_append(h->m, &h->start, id);
    return id;
}

static ir_id *find_size(hier *h, const ir_type *t) {
    for (size_t i = 0; i < h->n_sizes; i++)
        if (ir_type_equal(&h->sizes[i].type, t))
            return &h->sizes[i].id;
    hier_size fresh = {*t, 0};
    base_push(h->scratch, h->sizes, h->n_sizes, h->cap_sizes, fresh);
    return &h->sizes[h->n_sizes - 1].id;
}

ir_id hier_dim(hier *h, ir_dim d) {
    ir_type key = {.dtype = IR_NONE, .rank = 1, .dim = {d}};
    ir_id *id = find_size(h, &key);
    if (*id)
        return *id;
    *id = at_start(h, ir_dim_is_sym(d) ? IR_DIMSIZE : IR_CONST, ir_scalar(IR_I64), NULL, 0);
    if (ir_dim_is_sym(d))
        ir_set_int(h->m, ir_at(h->t, *id), IR_ATTR_DIM, d);
    else
        ir_set_value(h->m, ir_at(h->t, *id), (ir_scalar_value){.i = d});
    return *id;
}

ir_id hier_i64(hier *h, int64_t v) {
    if (v >= 0)
        return hier_dim(h, v);
    ir_id id = at_start(h, IR_CONST, ir_scalar(IR_I64), NULL, 0);
    ir_set_value(h->m, ir_at(h->t, id), (ir_scalar_value){.i = v});
    return id;
}

ir_id hier_start2(hier *h, ir_opcode code, ir_id a, ir_id c) {
    return at_start(h, code, ir_scalar(IR_I64), (ir_id[]){a, c}, c ? 2 : 1);
}

ir_id hier_units(hier *h, ir_dim rows) {
    ir_type key = {.dtype = IR_TUPLE, .rank = 1, .dim = {rows}};
    ir_id known = *find_size(h, &key);
    if (known)
        return known;
    ir_id up = hier_start2(h, IR_ADD, hier_dim(h, rows), hier_i64(h, IR_TOTAL_BLOCK - 1));
    ir_id units = hier_start2(h, IR_DIV, up, hier_i64(h, IR_TOTAL_BLOCK));
    return *find_size(h, &key) = units;
}

/* Constant factors in one number, then the symbols in order. */
ir_id hier_bytes(hier *h, const ir_type *t) {
    ir_type key = *t;
    key.space = IR_UNIFORM;
    ir_id known = *find_size(h, &key);
    if (known)
        return known;
    int64_t factor = (int64_t)ir_dtype_bytes(t->dtype);
    for (uint32_t i = 0; i < t->rank; i++)
        if (!ir_dim_is_sym(t->dim[i]) && __builtin_mul_overflow(factor, t->dim[i], &factor))
            factor = INT64_MAX; /* more than any budget: the runtime refuses it */
    ir_id id = hier_i64(h, factor);
    for (uint32_t i = 0; i < t->rank; i++)
        if (ir_dim_is_sym(t->dim[i]))
            id = hier_start2(h, IR_MUL, id, hier_dim(h, t->dim[i]));
    return *find_size(h, &key) = id;
}

ir_id hier_partials(hier *h, const ir_type *one, ir_dim rows) {
    ir_type key = *one;
    key.space = IR_ROW; /* apart from the bytes of whole arrays, which are kept as IR_UNIFORM */
    BASE_CHECK(key.rank < IR_MAX_RANK);
    key.dim[key.rank++] = rows;
    ir_id known = *find_size(h, &key);
    if (known)
        return known;
    ir_id bytes = hier_start2(h, IR_MUL, hier_bytes(h, one), hier_units(h, rows));
    return *find_size(h, &key) = bytes;
}

static ir_type instance_type(void) { return (ir_type){.dtype = IR_INSTANCE_T}; }
static ir_type none(void) { return (ir_type){.dtype = IR_NONE}; }

ir_id hier_bind(hier *h, const char *kind, size_t index, const char *name) {
    ir_id id = at_start(h, IR_BIND, instance_type(), NULL, 0);
    ir_op *op = ir_at(h->t, id);
    ir_set_word(h->m, op, IR_ATTR_KIND, kind);
    ir_set_int(h->m, op, IR_ATTR_INDEX, (int64_t)index);
    ir_set_word(h->m, op, IR_ATTR_NAME, name);
    return id;
}

/* How many instances of this name there are already. */
static int64_t next_version(hier *h, const char *name) {
    uint64_t hash = base_hash_name(name, strlen(name));
    for (hier_name *n = h->names[hash % HIER_NAMES]; n; n = n->next)
        if (!strcmp(n->text, name))
            return ++n->last;
    hier_name *fresh = base_arena_new_array(h->scratch, hier_name, 1);
    *fresh = (hier_name){name, 0, h->names[hash % HIER_NAMES]};
    h->names[hash % HIER_NAMES] = fresh;
    return 0;
}

ir_id hier_instance(hier *h, ir_id bytes, const char *name) {
    int64_t version = next_version(h, name);
    ir_id id = ir_emit1(&h->b, IR_INSTANCE, instance_type(), bytes);
    ir_op *op = ir_at(h->t, id);
    ir_set_word(h->m, op, IR_ATTR_NAME, name);
    ir_set_int(h->m, op, IR_ATTR_VERSION, version);
    ir_set_word(h->m, op, IR_ATTR_TIER, h->tier);
    return id;
}

void hier_effect1(hier *h, ir_opcode code, ir_id a) { ir_emit(&h->b, code, none(), &a, a ? 1 : 0); }

void hier_acquire(hier *h, ir_id inst, bool write) {
    ir_id id = ir_emit1(&h->b, IR_ACQUIRE, none(), inst);
    ir_set_word(h->m, ir_at(h->t, id), IR_ATTR_MODE, write ? "write" : "read");
}

void hier_copy(hier *h, ir_id from, ir_id to) { ir_emit2(&h->b, IR_COPY, none(), from, to); }

static ir_id read_scalar(hier *h, ir_id inst, ir_opcode code, ir_dtype t) {
    hier_acquire(h, inst, false);
    ir_id v = ir_emit1(&h->b, code, ir_scalar(t), inst);
    hier_effect1(h, IR_DONE, inst);
    return v;
}

ir_id hier_read_i64(hier *h, ir_id inst) { return read_scalar(h, inst, IR_READI, IR_I64); }
ir_id hier_read_bool(hier *h, ir_id inst) { return read_scalar(h, inst, IR_READB, IR_BOOL); }

ir_id hier_get(hier *h, ir_id tuple, size_t index) {
    ir_id id = ir_emit1(&h->b, IR_GET, instance_type(), tuple);
    ir_set_int(h->m, ir_at(h->t, id), IR_ATTR_INDEX, (int64_t)index);
    return id;
}

bool hier_is_among(const ir_id *list, size_t n, ir_id id) {
    for (size_t k = 0; k < n; k++)
        if (list[k] == id)
            return true;
    return false;
}

/* Input i is pinned for reading: not the second time, and not where a result takes its place. */
static bool is_read(const hier_launch *l, size_t i) {
    return !hier_is_among(l->in, i, l->in[i]) && !hier_is_among(l->out, l->n_out, l->in[i]);
}

static void emit_launch_op(hier *h, const hier_launch *l) {
    size_t n = l->n_in + l->n_out + 1 + l->loop->n_syms, at = 0;
    ir_id *args = base_arena_new_array(h->scratch, ir_id, n);
    for (size_t i = 0; i < l->n_in; i++)
        args[at++] = l->in[i];
    for (size_t i = 0; i < l->n_out; i++)
        args[at++] = l->out[i];
    args[at++] = l->rows;
    for (size_t i = 0; i < l->loop->n_syms; i++)
        args[at++] = l->dims[i];
    ir_op *op = ir_at(h->t, ir_emit(&h->b, IR_LAUNCH, none(), args, n));
    ir_set_word(h->m, op, IR_ATTR_CALLEE, l->loop->name);
    ir_set_int(h->m, op, IR_ATTR_GRAPH, l->graph);
    ir_set_int(h->m, op, IR_ATTR_BUFFERS, (int64_t)(l->n_in + l->n_out));
    ir_set_int(h->m, op, IR_ATTR_OUTPUTS, (int64_t)l->n_out);
    if (l->ahead)
        ir_set_int(h->m, op, IR_ATTR_AHEAD, 1);
}

/* What a result begins with is copied there before the launch. */
static void begin_results(hier *h, const hier_launch *l) {
    for (size_t i = 0; i < l->n_out; i++) {
        uint32_t begins = l->loop->params[l->n_in + i].begins;
        if (begins && l->in[begins - 1] != l->out[i])
            hier_copy(h, l->in[begins - 1], l->out[i]);
    }
}

/* The one page of a resident run: what is read and written is pinned, launched, and let go. */
void hier_emit_launch(hier *h, const hier_launch *l) {
    ir_id page, loop;
    begin_results(h, l);
    ir_region *outer = ir_begin_loop(&h->b, IR_PAGES, none(), NULL, 0, 1, &page, &loop);
    ir_set_int(h->m, ir_at(h->t, loop), IR_ATTR_PAGES, 1);
    for (size_t i = 0; i < l->n_in; i++)
        if (is_read(l, i))
            hier_acquire(h, l->in[i], false);
    for (size_t i = 0; i < l->n_out; i++)
        hier_acquire(h, l->out[i], true);
    emit_launch_op(h, l);
    for (size_t i = 0; i < l->n_in; i++)
        if (is_read(l, i))
            hier_effect1(h, IR_DONE, l->in[i]);
    for (size_t i = 0; i < l->n_out; i++)
        hier_effect1(h, IR_DONE, l->out[i]);
    ir_end_loop(&h->b, outer);
}
