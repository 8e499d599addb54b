/* tiga_tensors, and the nodes that live there.  Owners are counted; a long expression is freed without recursion. */
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

tiga_status tensor_fail(tiga_tensors *ts, tiga_status status, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tiga_error_set(ts->ctx, status, text);
}

/* ---- home ---- */
tiga_tensors_options tiga_tensors_defaults(void) {
    return (tiga_tensors_options){
        .struct_bytes = sizeof(tiga_tensors_options), .keep_bytes = 128 << 20, .interpret_elements = 4096};
}

tiga_status tiga_tensors_new(tiga_context *ctx, const tiga_tensors_options *options, tiga_tensors **out) {
    if (!out)
        return tiga_error_set(ctx, TIGA_E_ARGUMENT, "tiga_tensors_new: out is NULL");
    *out = NULL;
    tiga_tensors_options o = tiga_tensors_defaults();
    if (!ctx || (options && (options->struct_bytes < sizeof(size_t) || options->struct_bytes > 4096)))
        return tiga_error_set(ctx, TIGA_E_ARGUMENT, "tiga_tensors_new: begin with tiga_tensors_defaults()");
    if (options) /* a caller built against another version: the fields both know */
        memcpy(&o, options, options->struct_bytes < sizeof o ? options->struct_bytes : sizeof o);
    tiga_tensors *ts = base_alloc_zero(sizeof *ts);
    if (!ts)
        return tiga_error_set(ctx, TIGA_E_MEMORY, "tiga_tensors_new: out of memory");
    tiga_memory_keep(ctx, o.keep_bytes > 0 ? o.keep_bytes : 0);
    ts->refs = 1;
    ts->ctx = ctx;
    ts->options = o;
    ts->cache = o.cache ? tiga_cache_retain(o.cache) : NULL;
    *out = ts;
    return TIGA_OK;
}

void tensor_home_put(tiga_tensors *ts) {
    if (--ts->refs)
        return;
    tensor_entries_drop(ts);
    tiga_memory_trim(ts->ctx);
    tensor_list_fini(&ts->way);
    tensor_list_fini(&ts->spare[0]);
    tensor_list_fini(&ts->spare[1]);
    tiga_cache_free(ts->cache);
    base_free(ts);
}

void tiga_tensors_free(tiga_tensors *ts) {
    TENSOR_TURN(ts);
    if (ts)
        tensor_home_put(ts);
}

tiga_context *tiga_tensors_context(const tiga_tensors *ts) { return ts ? ts->ctx : NULL; }

tiga_tensors_counters tiga_tensors_get_counters(const tiga_tensors *ts) {
    TENSOR_TURN(ts);
    if (!ts)
        return (tiga_tensors_counters){0};
    tiga_tensors_counters c = ts->counters;
    tiga_memory_report r = {.struct_bytes = sizeof r};
    tiga_execution *e = tiga_execution_current(ts->ctx);
    tiga_execution_report(e, &r);
    tiga_execution_free(e);
    c.kept_bytes = r.kept;
    return c;
}

/* ---- nodes ---- */
int64_t tensor_count(int32_t dtype, int32_t rank, const int64_t *shape) {
    int64_t n = tiga_dtype_bytes(dtype), each = n;
    bool empty = false, overflow = false;
    if (!n || rank < 0 || rank > TENSOR_MAX_RANK || (rank && !shape))
        return -1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return -1;
        empty |= shape[i] == 0;
        overflow |= !empty && __builtin_mul_overflow(n, shape[i], &n);
    }
    return empty ? 0 : overflow ? -1 : n / each;
}

tiga_tensor *tensor_new(tiga_tensors *ts, tensor_kind kind, int32_t dtype, int32_t rank, const int64_t *shape) {
    if (tensor_count(dtype, rank, shape) < 0) {
        tensor_fail(ts, TIGA_E_ARGUMENT, "a tensor has 0 to 7 axes and a size that fits into memory");
        return NULL;
    }
    tiga_tensor *x = base_alloc_zero(sizeof *x);
    if (!x) {
        tensor_fail(ts, TIGA_E_MEMORY, "a tensor: out of memory");
        return NULL;
    }
    x->refs = 1;
    x->ts = ts;
    x->kind = kind;
    x->even = true;
    x->dtype = (uint8_t)dtype;
    x->rank = (uint8_t)rank;
    for (int i = 0; i < rank; i++)
        x->shape[i] = shape[i];
    ts->refs++;
    return x;
}

/* From the shapes alone, so that it does not matter what has been realised. */
static bool is_even(const tiga_tensor *x) {
    if (!x->computed) /* a movement: a value of its own, but for those that only change how it is kept */
        return x->code != MOVE_EXPAND || x->args[0]->even;
    if (!ir_class_is_elementwise(ir_op_describe((ir_opcode)x->code)->cls))
        return false;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (tiga_tensor_size(x->args[i]) != 1 && !(x->args[i]->even && tensor_same_shape(x->args[i], x)))
            return false;
    return true;
}

tiga_tensor *tensor_node(tensor_kind kind, uint16_t code, int32_t dtype, int32_t rank, const int64_t *shape,
                         tiga_tensor *const *args, uint32_t n_args) {
    tiga_tensor *x = tensor_new(args[0]->ts, kind, dtype, rank, shape);
    if (!x)
        return NULL;
    x->args = n_args <= 3 ? x->few : base_alloc(n_args * sizeof *x->args);
    if (!x->args) {
        tensor_free(x);
        tensor_fail(args[0]->ts, TIGA_E_MEMORY, "a tensor: out of memory");
        return NULL;
    }
    x->code = code;
    x->computed = kind == TENSOR_COMPUTE;
    x->n_args = n_args;
    for (uint32_t i = 0; i < n_args; i++) {
        x->args[i] = tensor_retain(args[i]);
        x->watched |= args[i]->watched;
    }
    x->even = is_even(x);
    return x;
}

static void bury(tiga_tensor *x) {
    if (--x->refs)
        return;
    x->next = x->ts->dead;
    x->ts->dead = x;
}

static void free_one(tiga_tensor *x) {
    for (uint32_t i = 0; i < x->n_args; i++)
        bury(x->args[i]);
    if (x->args != x->few)
        base_free(x->args);
    tensor_forget_shown(x);
    tensor_buffer_put(x->buffer);
    tensor_called_put(x->called);
    base_free(x);
}

/* What is listed as dead is freed one after the other; freeing lists more. */
static void sweep(tiga_tensors *ts) {
    ts->refs++; /* the last tensor may be the last owner */
    while (ts->dead) {
        tiga_tensor *x = ts->dead;
        ts->dead = x->next;
        free_one(x);
        ts->refs--;
    }
    tensor_home_put(ts);
}

tiga_tensor *tiga_tensor_retain(tiga_tensor *x) {
    TENSOR_TURN(x->ts);
    return tensor_retain(x);
}

void tiga_tensor_free(tiga_tensor *x) {
    TENSOR_TURN(x ? x->ts : NULL);
    tensor_free(x);
}

void tensor_free(tiga_tensor *x) {
    if (!x)
        return;
    tiga_tensors *ts = x->ts;
    bury(x);
    if (ts->dead == x)
        sweep(ts);
}

void tensor_drop_args(tiga_tensor *x) {
    for (uint32_t i = 0; i < x->n_args; i++)
        bury(x->args[i]);
    if (x->args != x->few)
        base_free(x->args);
    x->args = NULL;
    x->n_args = 0;
    if (x->ts->dead)
        sweep(x->ts);
}

tiga_status tensor_give(tiga_status status, tiga_tensor *temporary) {
    tensor_free(temporary);
    return status;
}

/* ---- facts ---- */
tiga_tensors *tiga_tensor_home(const tiga_tensor *x) { return x ? x->ts : NULL; }
int32_t tiga_tensor_dtype(const tiga_tensor *x) { return x ? x->dtype : -1; }
int32_t tiga_tensor_rank(const tiga_tensor *x) { return x ? x->rank : -1; }
const int64_t *tiga_tensor_shape(const tiga_tensor *x) { return x ? x->shape : NULL; }
int64_t tiga_tensor_size(const tiga_tensor *x) { return x ? tensor_count(x->dtype, x->rank, x->shape) : 0; }

void tensor_shape_text(base_str *s, const tiga_tensor *x) {
    base_str_add(s, tiga_dtype_text(x->dtype));
    for (int i = 0; i < x->rank; i++)
        base_str_addf(s, "%s%lld", i ? ", " : "[", (long long)x->shape[i]);
    base_str_add(s, x->rank ? "]" : "");
}

bool tensor_same_shape(const tiga_tensor *a, const tiga_tensor *b) {
    return a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

bool tensor_axis(const tiga_tensor *x, const char *who, int *axis) {
    int given = *axis;
    *axis += *axis < 0 ? x->rank : 0;
    if (*axis >= 0 && *axis < x->rank)
        return true;
    tensor_fail(x->ts, TIGA_E_ARGUMENT, "%s: axis %d of a tensor with %d axes", who, given, x->rank);
    return false;
}

tiga_tensors *tensor_home_first(tiga_tensor *const *xs, int n) {
    for (int i = 0; xs && i < n; i++)
        if (xs[i])
            return xs[i]->ts;
    return NULL;
}

tiga_tensors *tensor_home_of(tiga_tensor *const *xs, int n, const char *who) {
    tiga_tensors *ts = NULL;
    bool whole = n > 0 && xs != NULL, same = true;
    for (int i = 0; whole && i < n; i++) {
        whole &= xs[i] != NULL;
        if (xs[i] && !ts)
            ts = xs[i]->ts;
        same &= !xs[i] || xs[i]->ts == ts;
    }
    if (whole && same)
        return ts;
    if (ts)
        tensor_fail(ts, TIGA_E_ARGUMENT, "%s: %s", who, same ? "a tensor is NULL" : "tensors of two tiga_tensors");
    return NULL;
}

tiga_tensors *tensor_begin(tiga_tensor *x, tiga_tensor **out, const char *who) {
    if (out)
        *out = NULL;
    return out ? tensor_home_of(&x, 1, who) : NULL;
}

/* Of no elements: 1, because the products may be too large, and 0 would be an axis that repeats. */
void tensor_dense_strides(tiga_tensor *x) {
    bool empty = tiga_tensor_size(x) == 0;
    int64_t step = 1;
    x->stretch = 0;
    for (int i = x->rank; i-- > 0;) {
        x->strides[i] = step;
        step *= empty ? 1 : x->shape[i];
    }
}

bool tensor_is_dense(const tiga_tensor *x) {
    int64_t step = 1;
    if (x->literal)
        return tiga_tensor_size(x) == 1;
    if (tiga_tensor_size(x) == 0)
        return true;
    for (int i = x->rank; i-- > 0;) {
        if (x->shape[i] > 1 && x->strides[i] != step)
            return false;
        step *= x->shape[i];
    }
    return true;
}

/* ---- lists ---- */
bool tensor_list_add(tensor_list *l, tiga_tensor *x) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 32;
        tiga_tensor **v = base_realloc(l->v, cap * sizeof *v);
        if (!v)
            return false;
        l->v = v;
        l->cap = cap;
    }
    l->v[l->n++] = x;
    return true;
}

tensor_list tensor_list_take(tiga_tensors *ts) {
    for (int i = 0; i < 2; i++)
        if (ts->spare[i].cap) {
            tensor_list l = ts->spare[i];
            ts->spare[i] = (tensor_list){0};
            return l;
        }
    return (tensor_list){0};
}

void tensor_list_give(tiga_tensors *ts, tensor_list *l) {
    enum { LARGE = 4096 };
    l->n = 0;
    for (int i = 0; i < 2 && l->cap && l->cap <= LARGE; i++)
        if (!ts->spare[i].cap) {
            ts->spare[i] = *l;
            *l = (tensor_list){0};
        }
    tensor_list_fini(l);
}

void tensor_list_fini(tensor_list *l) {
    base_free(l->v);
    *l = (tensor_list){0};
}

/* `number` counts the operands that have been gone into while a node is on the way, then it is the place in the list. */
bool tensor_postorder(tiga_tensors *ts, tiga_tensor *const *roots, size_t n, bool (*descend)(const tiga_tensor *x),
                      tensor_list *out) {
    tensor_list way = ts->way;
    uint64_t epoch = ++ts->epoch;
    bool ok = true;
    for (size_t r = 0; ok && r < n; r++) {
        if (roots[r]->epoch == epoch)
            continue;
        ok = tensor_list_add(&way, roots[r]);
        roots[r]->epoch = epoch;
        roots[r]->number = 0;
        while (ok && way.n) {
            tiga_tensor *x = way.v[way.n - 1];
            if (descend(x) && x->number < x->n_args) {
                tiga_tensor *a = x->args[x->number++];
                if (a->epoch != epoch) {
                    a->epoch = epoch;
                    a->number = 0;
                    ok = tensor_list_add(&way, a);
                }
            } else {
                x->number = (uint32_t)out->n;
                ok = tensor_list_add(out, x);
                way.n--;
            }
        }
    }
    way.n = 0;
    ts->way = way;
    return ok || (tensor_fail(ts, TIGA_E_MEMORY, "a tensor: out of memory"), false);
}
