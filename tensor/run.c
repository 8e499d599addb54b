/* Programs: found by their key, or written and compiled; bound to memory, and run.
 *
 * Small expressions that are seen for the first times are run by the interpreter, which gives the same bits and needs no
 * code.  What was compiled is kept with the key; text and code also in the cache of code, if there is one. */
#include "tensor/tensor.h"

#include <string.h>

struct tensor_entry {
    base_hash128 hash;
    void *key;
    size_t n_key;
    tiga_module *module; /* NULL: not compiled yet */
    base_arena *arena;   /* of the IR, while there is no module */
    ir_module *ir;
    int64_t seen;
    bool found; /* its code was in the cache */
};

/* ---- the table ---- */
enum { MOST_ENTRIES = 4096 };

static void entry_free(tensor_entry *t) {
    tiga_module_free(t->module);
    base_arena_free(t->arena);
    base_free(t->key);
    base_free(t);
}

void tensor_entries_drop(tiga_tensors *ts) {
    for (size_t i = 0; i < ts->cap_entries; i++)
        if (ts->table[i])
            entry_free(ts->table[i]);
    base_free(ts->table);
    ts->table = NULL;
    ts->n_entries = ts->cap_entries = 0;
}

bool tensor_code_drop(tiga_tensors *ts, tiga_status before) {
    tiga_memory_report r = {.struct_bytes = sizeof r};
    tiga_execution *e = tiga_execution_current(ts->ctx);
    tiga_execution_report(e, &r);
    tiga_execution_free(e);
    if (r.code == 0 || ts->n_entries == 0)
        return false;
    tensor_entries_drop(ts);
    if (before == TIGA_OK)
        tiga_error_clear(ts->ctx);
    return true;
}

/* The place of a key, or the free one where it belongs. */
static tensor_entry **place_of(const tiga_tensors *ts, base_hash128 hash, const base_str *key) {
    size_t mask = ts->cap_entries - 1;
    for (size_t i = hash.lo & mask;; i = (i + 1) & mask) {
        tensor_entry *t = ts->table[i];
        if (!t || (t->hash.lo == hash.lo && t->hash.hi == hash.hi && t->n_key == key->len &&
                   !memcmp(t->key, key->data, key->len)))
            return &ts->table[i];
    }
}

static bool grow(tiga_tensors *ts) {
    size_t cap = ts->cap_entries ? 2 * ts->cap_entries : 64;
    tensor_entry **table = base_alloc_zero(cap * sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < ts->cap_entries; i++)
        if (ts->table[i]) {
            size_t at = ts->table[i]->hash.lo & (cap - 1);
            while (table[at])
                at = (at + 1) & (cap - 1);
            table[at] = ts->table[i];
        }
    base_free(ts->table);
    ts->table = table;
    ts->cap_entries = cap;
    return true;
}

/* ---- writing programs ---- */
typedef struct writing {
    const tensor_plan *p;
    tensor_entry *t;
} writing;

static void write_ir(void *arg) {
    writing *w = arg;
    w->t->ir = tensor_emit(w->p, w->t->arena);
}

static tensor_entry *entry_new(const tensor_plan *p, base_hash128 hash) {
    tensor_entry *t = base_alloc_zero(sizeof *t);
    if (!t)
        return NULL;
    t->hash = hash;
    t->n_key = p->key.len;
    t->key = base_alloc(p->key.len);
    t->arena = base_arena_new();
    writing w = {p, t};
    if (!t->key || !t->arena || !base_arena_catch(t->arena, write_ir, &w)) {
        entry_free(t);
        return NULL;
    }
    memcpy(t->key, p->key.data, p->key.len);
    base_str why = {0};
    if (!ir_verify(t->ir, &why))
        BASE_BUG("a tensor program breaks a rule of the IR: %s", base_str_text(&why));
    base_str_fini(&why);
    return t;
}

static tensor_entry *entry_of(tiga_tensors *ts, const tensor_plan *p) {
    base_hash128 hash = base_hash_bytes(p->key.data, p->key.len);
    if (ts->n_entries == MOST_ENTRIES)
        tensor_entries_drop(ts);
    if (2 * ts->n_entries >= ts->cap_entries && !grow(ts))
        return NULL;
    tensor_entry **place = place_of(ts, hash, &p->key);
    if (!*place) {
        *place = entry_new(p, hash);
        ts->n_entries += *place != NULL;
        ts->counters.programs += *place != NULL;
    }
    return *place;
}

static tiga_status compile(tiga_tensors *ts, tensor_entry *t) {
    base_str text = {0};
    tiga_jit_options o = tiga_jit_defaults();
    tigac_result *why = NULL;
    o.file_name = "tensor.ir";
    o.cache = ts->cache;
    int64_t misses = ts->cache ? tiga_cache_get_counters(ts->cache).misses : 0;
    ir_print(t->ir, IR_LEVEL_K | IR_LEVEL_P, &text);
    tiga_status status = text.failed ? tensor_fail(ts, TIGA_E_MEMORY, "a program of tensors: out of memory")
                                     : tiga_jit_source(ts->ctx, text.data, text.len, &o, &t->module, &why);
    tigac_result_free(why);
    base_str_fini(&text);
    if (status != TIGA_OK)
        return status;
    t->found = ts->cache && tiga_cache_get_counters(ts->cache).misses == misses;
    ts->counters.compiled++;
    base_arena_free(t->arena);
    t->arena = NULL;
    t->ir = NULL;
    return TIGA_OK;
}

/* ---- memory ---- */
/* Strides of an array of the axes that a program sees. */
static int64_t packed_strides(const tensor_plan *p, const tiga_tensor *x, int64_t *strides) {
    const uint16_t *axes = tensor_plan_axes(p, x);
    int64_t n = 1;
    for (int i = x->rank; i-- > 0;) {
        strides[i] = axes[i] ? n : 0;
        n = tensor_times(n, axes[i] ? x->shape[i] : 1);
    }
    return n;
}

static bool is_packed(const tensor_plan *p, const tiga_tensor *x, const int64_t *strides, int64_t n) {
    const uint16_t *axes = tensor_plan_axes(p, x);
    for (int i = 0; i < x->rank; i++)
        if (axes[i] && x->shape[i] != 1 && n && x->strides[i] != strides[i])
            return false;
    return true;
}

/* A leaf that is strided gets memory in the order that programs read, and keeps it. */
static tiga_status pack(const tensor_plan *p, tiga_tensor *x) {
    int64_t strides[TENSOR_MAX_RANK], n = packed_strides(p, x, strides);
    if (x->literal || is_packed(p, x, strides, n))
        return TIGA_OK;
    const uint16_t *axes = tensor_plan_axes(p, x);
    tiga_tensor small = *x; /* the elements a program sees, as a tensor */
    for (int i = 0; i < x->rank; i++)
        small.shape[i] = axes[i] ? x->shape[i] : 1;
    small.refs = 1;
    small.buffer = tensor_buffer_retain(x->buffer);
    tiga_status status = tensor_densify(&small);
    if (status != TIGA_OK) {
        tensor_buffer_put(small.buffer);
        return status;
    }
    tensor_buffer_put(x->buffer);
    x->buffer = small.buffer;
    x->offset = 0;
    memcpy(x->strides, strides, sizeof strides);
    return TIGA_OK;
}

static void program_shape(const tensor_plan *p, const tiga_tensor *x, tiga_array *a) {
    const uint16_t *axes = tensor_plan_axes(p, x);
    int64_t n = 1;
    a->dtype = x->dtype;
    a->rank = (int32_t)tensor_plan_rank(p, x);
    uint32_t lead = tensor_plan_lead(p, x);
    for (uint32_t i = lead; i < x->rank; i++) {
        int64_t extent = axes[i] ? x->shape[i] : 1;
        n = tensor_times(n, extent);
        if (!p->flat)
            a->shape[i - lead] = extent;
    }
    if (p->flat && a->rank)
        a->shape[0] = n;
}

typedef struct binding { /* of one run */
    tiga_array *arrays; /* parameters, then results */
    tensor_buffer **made; /* results */
    size_t n_params, n_results;
    size_t n_pinned; /* parameters */
    void *block;
    uint64_t small[96];
} binding;

static bool binding_init(binding *b, size_t n_params, size_t n_results) {
    size_t n_bytes = (n_params + n_results) * sizeof *b->arrays + n_results * sizeof *b->made;
    b->n_pinned = 0;
    b->n_params = n_params;
    b->n_results = n_results;
    b->block = n_bytes > sizeof b->small ? base_alloc(n_bytes) : b->small;
    if (!b->block)
        return false;
    memset(b->block, 0, n_bytes);
    b->arrays = b->block;
    b->made = (void *)(b->arrays + n_params + n_results);
    return true;
}

static void binding_fini(binding *b) {
    if (!b->block)
        return;
    for (size_t i = 0; i < b->n_results; i++)
        tensor_buffer_put(b->made[i]);
    if (b->block != b->small)
        base_free(b->block);
}

static bool is_away(const tiga_tensor *x) {
    tiga_residency r;
    return x->buffer && x->buffer->managed && !x->buffer->data &&
           tiga_buffer_residency(x->buffer->managed, &r) == TIGA_OK && !r.resident;
}

/* Whether there is room for as much without moving anything. */
static bool has_room(tiga_tensors *ts, int64_t n_bytes) {
    tiga_memory_report r = {.struct_bytes = sizeof r};
    tiga_execution *e = tiga_execution_current(ts->ctx);
    tiga_status status = tiga_execution_report(e, &r);
    tiga_execution_free(e);
    int64_t live =
        r.shared_live[TIGA_TIER_HOST] > r.live[TIGA_TIER_HOST] ? r.shared_live[TIGA_TIER_HOST] : r.live[TIGA_TIER_HOST];
    return status == TIGA_OK && (r.budget[TIGA_TIER_HOST] < 0 || n_bytes <= r.budget[TIGA_TIER_HOST] - live);
}

/* Two or more large parameters that are on disk are read side by side, when all that the run needs will fit: a budget that
 * is too small must not find half of them on their way.  Below that another thread costs more than it hides. */
static void read_ahead(const tensor_plan *p) {
    enum { LARGE = 8 << 20 };
    int64_t need = 0;
    size_t n_away = 0;
    for (size_t i = 0; i < p->params.n; i++) {
        const tiga_tensor *x = p->params.v[i];
        bool away = is_away(x);
        n_away += away && x->buffer->bytes >= LARGE;
        need += away ? x->buffer->bytes : 0;
        need += x->literal ? 0 : tiga_tensor_size(x) * tiga_dtype_bytes(x->dtype); /* it may have to be packed */
    }
    for (size_t i = 0; i < p->n_roots; i++)
        need += tiga_tensor_size(p->roots[i]) * tiga_dtype_bytes(p->roots[i]->dtype);
    if (n_away < 2 || !has_room(p->ts, need))
        return;
    for (size_t i = 0; i < p->params.n; i++)
        if (is_away(p->params.v[i]) &&
            p->params.v[i]->buffer->bytes >= LARGE) /* what fails, fails again when it is pinned */
            (void)tiga_buffer_prefetch(p->ts->ctx, p->params.v[i]->buffer->managed, NULL);
}

/* Parameters stay in memory from here until the program has run, so that making room for the next ones, for results and
 * for what the program allocates moves none of them. */
static tiga_status bind(const tensor_plan *p, binding *b) {
    tiga_status status = TIGA_OK;
    if (b->n_params > 1)
        read_ahead(p);
    for (size_t i = 0; i < b->n_params && status == TIGA_OK; i++) {
        tiga_tensor *x = p->params.v[i];
        status = pack(p, x);
        if (status == TIGA_OK)
            status = tensor_pin(x);
        if (status != TIGA_OK)
            return status;
        b->n_pinned++;
        program_shape(p, x, &b->arrays[i]);
        b->arrays[i].data = (void *)(uintptr_t)tensor_memory(x);
    }
    for (size_t i = 0; i < b->n_results && status == TIGA_OK; i++) {
        tiga_array *a = &b->arrays[b->n_params + i];
        program_shape(p, p->roots[i], a);
        status = tensor_buffer_new(p->ts, tiga_array_bytes(a), &b->made[i]);
        a->data = status == TIGA_OK ? b->made[i]->data : NULL;
    }
    return status;
}

/* ---- running ---- */
static const char *name_of(char letter, size_t i, char *out) {
    char digits[24];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + i % 10);
    while (i /= 10);
    *out = letter;
    for (size_t k = 0; k < n; k++)
        out[1 + k] = digits[n - 1 - k];
    out[n + 1] = 0;
    return out;
}

static tiga_status call(tiga_tensors *ts, tensor_entry *t, binding *b, tiga_call_stats *stats) {
    enum { FEW = 12, NAME = 24 };
    size_t n = b->n_params + b->n_results;
    tiga_binding few[FEW], *list = few;
    char few_names[FEW][NAME], (*names)[NAME] = few_names;
    void *block = NULL;
    if (n > FEW) {
        block = base_alloc(n * (sizeof *list + NAME));
        if (!block)
            return tensor_fail(ts, TIGA_E_MEMORY, "a program of tensors: out of memory");
        list = block;
        names = (void *)(list + n);
    }
    for (size_t i = 0; i < n; i++)
        list[i] = (tiga_binding){i < b->n_params ? name_of('x', i, names[i]) : name_of('y', i - b->n_params, names[i]),
                                 &b->arrays[i]};
    tiga_status status = tiga_call_many(ts->ctx, t->module, "t", NULL, 0, list, (int)b->n_params, list + b->n_params,
                                        (int)b->n_results, stats);
    base_free(block);
    return status;
}

static tiga_status interpret(tiga_tensors *ts, const tensor_plan *p, tensor_entry *t, binding *b) {
    size_t n = b->n_params + b->n_results;
    void **data = base_alloc((n + 1) * sizeof *data);
    base_str why = {0};
    if (!data)
        return tensor_fail(ts, TIGA_E_MEMORY, "a program of tensors: out of memory");
    for (size_t i = 0; i < n; i++)
        data[i] = b->arrays[i].data;
    int64_t all = 1;
    for (size_t i = 0; p->flat && i < n; i++)
        all = b->arrays[i].rank ? b->arrays[i].shape[0] : all;
    ir_call_data c = {.dims = p->flat ? &all : p->extent, .in = (const void *const *)data, .out = data + b->n_params};
    bool ok = ir_interpret_graph(t->ir, ir_func_find(t->ir, "t", IR_LEVEL_PROGRAM), &c, &why);
    tiga_status status = ok ? TIGA_OK : tensor_fail(ts, TIGA_E_MEMORY, "a program of tensors: %s", base_str_text(&why));
    base_str_fini(&why);
    base_free(data);
    ts->counters.interpreted += ok;
    return status;
}

static tiga_status execute(const tensor_plan *p, binding *b, tiga_tensor_execution *how) {
    enum { INTERPRETED_RUNS = 2 };
    tiga_tensors *ts = p->ts;
    tensor_entry *t = entry_of(ts, p);
    tiga_call_stats stats = {0};
    if (!t)
        return tensor_fail(ts, TIGA_E_MEMORY, "a program of tensors: out of memory");
    bool small = !t->module && !p->has_grad && t->seen < INTERPRETED_RUNS &&
                 p->elements <= (uint64_t)ts->options.interpret_elements && ts->options.interpret_elements > 0;
    bool fresh = !small && !t->module;
    t->seen++;
    tiga_status status = fresh ? compile(ts, t) : TIGA_OK;
    if (status == TIGA_OK)
        status = small ? interpret(ts, p, t, b) : call(ts, t, b, &stats);
    ts->counters.runs += status == TIGA_OK;
    *how = (tiga_tensor_execution){.how = small                ? TIGA_TENSOR_INTERPRETED
                                          : fresh && !t->found ? TIGA_TENSOR_COMPILED
                                                               : TIGA_TENSOR_CACHED,
                                   .operations = (int32_t)p->n_compute,
                                   .launches = stats.launches,
                                   .bytes_read = stats.bytes_read,
                                   .bytes_written = stats.bytes_written};
    return status;
}

/* The axes that are stretched, of those that may be, are those the program did not see. */
static void take_result(const tensor_plan *p, tiga_tensor *x, tensor_buffer **made, const tiga_tensor_execution *how) {
    int64_t strides[TENSOR_MAX_RANK];
    const uint16_t *axes = tensor_plan_axes(p, x);
    uint8_t stretch = 0;
    packed_strides(p, x, strides);
    for (int i = 0; i < x->rank; i++)
        stretch |= (uint8_t)((x->shape[i] != 1 && !axes[i]) << i);
    tensor_become_real(x, *made);
    *made = NULL;
    x->stretch = stretch;
    memcpy(x->strides, strides, sizeof strides);
    x->how = *how;
}

static tiga_status run_once(tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, bool *moves,
                            tensor_list *more) {
    tensor_plan p;
    binding b;
    tiga_tensor_execution how;
    tiga_status status = TIGA_E_MEMORY;
    b.block = NULL;
    bool planned = tensor_plan_init(&p, ts, roots, n_roots, moves);
    if (planned && ((moves && *moves) || (more && tensor_plan_repeats(&p, more)))) {
        tensor_plan_fini(&p);
        return TIGA_OK;
    }
    if (planned && !binding_init(&b, p.params.n, n_roots))
        tensor_fail(ts, TIGA_E_MEMORY, "a program of tensors: out of memory");
    if (b.block)
        status = bind(&p, &b);
    if (status == TIGA_OK)
        status = execute(&p, &b, &how);
    if (b.block) /* before results forget what they were made from */
        tensor_unpin_all(p.params.v, b.n_pinned);
    if (status == TIGA_OK)
        tensor_plan_ran(&p);
    for (size_t i = 0; status == TIGA_OK && i < n_roots; i++)
        tensor_retain(roots[i]);
    for (size_t i = 0; status == TIGA_OK && i < n_roots; i++)
        take_result(&p, roots[i], &b.made[i], &how);
    for (size_t i = 0; status == TIGA_OK && i < n_roots; i++)
        tensor_free(roots[i]);
    binding_fini(&b);
    tensor_plan_fini(&p);
    return status;
}

/* With what is worth to be kept, if there is memory for it. */
static tiga_status run_and_keep(tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, bool *moves) {
    tiga_status before = tiga_error_status(ts->ctx);
    tensor_list more = {0};
    tiga_status status = run_once(ts, roots, n_roots, moves, &more);
    if (status == TIGA_OK && more.n > n_roots) {
        status = run_once(ts, more.v, more.n, NULL, NULL);
        if (status == TIGA_E_BUDGET || status == TIGA_E_MEMORY) {
            if (before == TIGA_OK)
                tiga_error_clear(ts->ctx);
            status = run_once(ts, roots, n_roots, NULL, NULL);
        }
    }
    tensor_list_fini(&more);
    return status;
}

static tiga_status run_some(tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, bool *moves) {
    tiga_status before = tiga_error_status(ts->ctx), status = run_and_keep(ts, roots, n_roots, moves);
    return status == TIGA_E_BUDGET && tensor_code_drop(ts, before) ? run_and_keep(ts, roots, n_roots, moves) : status;
}

tiga_status tensor_run(tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, bool *moves) {
    enum {
        MOST_RESULTS = 1000
    }; /* of one program: beyond, it is the names of sizes, and the compiler, that grow too large */
    tiga_status status = TIGA_OK;
    for (size_t i = 0; i < n_roots && status == TIGA_OK; i += MOST_RESULTS)
        status = run_some(ts, roots + i, n_roots - i < MOST_RESULTS ? n_roots - i : MOST_RESULTS, moves);
    return status;
}

tiga_status tensor_text(tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, char **text) {
    tensor_plan p;
    base_str s = {0};
    *text = NULL;
    if (tensor_plan_init(&p, ts, roots, n_roots, NULL)) {
        tensor_entry *t = entry_new(&p, (base_hash128){0, 0});
        if (t)
            ir_print(t->ir, IR_LEVEL_K | IR_LEVEL_P, &s);
        *text = t && !s.failed ? base_alloc(s.len + 1) : NULL;
        if (*text)
            memcpy(*text, base_str_text(&s), s.len + 1);
        if (t)
            entry_free(t);
    }
    base_str_fini(&s);
    tensor_plan_fini(&p);
    return *text ? TIGA_OK : tensor_fail(ts, TIGA_E_MEMORY, "a program of tensors: out of memory");
}
