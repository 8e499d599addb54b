/* Looking at tensors.  Programs and movements take turns: what a movement needs is computed by one program, what stands
 * between two movements by one. */
#include "tensor/tensor.h"

#include <string.h>

const char *tensor_how_text(int32_t how) {
    static const char *const text[] = {[TIGA_TENSOR_PENDING] = "pending",
                                       [TIGA_TENSOR_GIVEN] = "given",
                                       [TIGA_TENSOR_VIEW] = "view",
                                       [TIGA_TENSOR_COPIED] = "copied",
                                       [TIGA_TENSOR_INTERPRETED] = "interpreted",
                                       [TIGA_TENSOR_COMPILED] = "compiled",
                                       [TIGA_TENSOR_CACHED] = "cached",
                                       [TIGA_TENSOR_CALLED] = "called"};
    return how >= 0 && (size_t)how < sizeof text / sizeof *text ? text[how] : "unknown";
}

static bool is_pending(const tiga_tensor *x) { return x->kind != TENSOR_REAL; }

/* How many movements, one after the other, stand before a node, itself included. */
static int32_t find_levels(const tensor_list *l) {
    int32_t most = 0;
    for (size_t i = 0; i < l->n; i++) {
        tiga_tensor *x = l->v[i];
        x->level = 0;
        for (uint32_t k = 0; is_pending(x) && k < x->n_args; k++)
            x->level = x->args[k]->level > x->level ? x->args[k]->level : x->level;
        x->level += x->kind == TENSOR_MOVE;
        most = x->level > most ? x->level : most;
    }
    return most;
}

static bool add_once(tensor_list *l, tiga_tensor *x) {
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] == x)
            return true;
    return tensor_list_add(l, x);
}

static tiga_status run_list(tiga_tensors *ts, tensor_list *programs) {
    tiga_status status = programs->n ? tensor_run(ts, programs->v, programs->n, NULL) : TIGA_OK;
    programs->n = 0;
    return status;
}

/* Movements of one level, and the program before them. */
static tiga_status run_level(tiga_tensors *ts, const tensor_list *l, int32_t level, tensor_list *programs) {
    bool ok = true;
    for (size_t i = 0; ok && i < l->n; i++) {
        tiga_tensor *x = l->v[i];
        for (uint32_t k = 0; ok && x && x->kind == TENSOR_MOVE && x->level == level && k < x->n_args; k++)
            ok = x->args[k]->kind != TENSOR_COMPUTE || add_once(programs, x->args[k]);
    }
    tiga_status status = ok ? run_list(ts, programs) : tensor_fail(ts, TIGA_E_MEMORY, "a tensor: out of memory");
    for (size_t i = 0; status == TIGA_OK && i < l->n; i++)
        if (l->v[i] && l->v[i]->kind == TENSOR_MOVE && l->v[i]->level == level)
            status = tensor_move_run(l->v[i]);
    return status;
}

/* Which of what is realised on the way may forget its origin: what only such values use, that will forget it in turn.
 * Everything else may be reached by somebody, who may ask for a gradient that goes through it. */
static void find_wanted(const tensor_list *l, tiga_tensor *const *xs, int n, bool themselves) {
    for (size_t i = 0; i < l->n; i++) {
        l->v[i]->uses = 1; /* by the list */
        l->v[i]->wanted = false;
    }
    for (int i = 0; i < n; i++)
        xs[i]->wanted = themselves;
    for (size_t i = l->n; i-- > 0;) {
        tiga_tensor *x = l->v[i];
        x->wanted |= x->uses == x->refs;
        for (uint32_t k = 0; x->wanted && !x->watched && is_pending(x) && k < x->n_args; k++)
            x->args[k]->uses++;
    }
}

/* The list owns what stands in it until its level has been done, so that memory goes as early as it can. */
static void let_go(tensor_list *l, int32_t level) {
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] && l->v[i]->level <= level) {
            tensor_free(l->v[i]);
            l->v[i] = NULL;
        }
}

static tiga_status realize(tiga_tensors *ts, tiga_tensor *const *xs, int n, bool themselves) {
    tensor_list l = {0}, programs = {0};
    bool pending = false, ok = true;
    for (int i = 0; i < n; i++)
        pending |= is_pending(xs[i]);
    if (!pending)
        return TIGA_OK;
    if (n == 1 && themselves && xs[0]->kind == TENSOR_COMPUTE) { /* most often there are no movements */
        bool moves = false;
        xs[0]->wanted = true;
        tiga_status status = tensor_run(ts, xs, 1, &moves);
        if (status != TIGA_OK || !moves)
            return status;
    }
    ok = tensor_postorder(ts, xs, (size_t)n, is_pending, &l);
    for (size_t i = 0; ok && i < l.n; i++)
        tensor_retain(l.v[i]);
    int32_t most = ok ? find_levels(&l) : 0;
    if (ok)
        find_wanted(&l, xs, n, themselves);
    tiga_status status = ok ? TIGA_OK : TIGA_E_MEMORY;
    for (int32_t level = 1; level <= most && status == TIGA_OK; level++) {
        status = run_level(ts, &l, level, &programs);
        let_go(&l, level - 1);
    }
    for (int i = 0; i < n && ok && status == TIGA_OK && themselves; i++)
        ok = xs[i]->kind != TENSOR_COMPUTE || add_once(&programs, xs[i]);
    if (!ok && status == TIGA_OK)
        status = tensor_fail(ts, TIGA_E_MEMORY, "a tensor: out of memory");
    if (status == TIGA_OK)
        status = run_list(ts, &programs);
    let_go(&l, INT32_MAX);
    tensor_list_fini(&l);
    tensor_list_fini(&programs);
    return status;
}

tiga_status tensor_realize_operands(tiga_tensor *const *xs, int n) { return realize(xs[0]->ts, xs, n, false); }
tiga_status tensor_compute(tiga_tensor *const *xs, int n) { return realize(xs[0]->ts, xs, n, true); }

tiga_status tiga_tensor_realize(tiga_tensor *const *xs, int n) {
    TENSOR_TURN(tensor_home_first(xs, n));
    if (n == 0)
        return TIGA_OK;
    tiga_tensors *ts = tensor_home_of(xs, n, "tiga_tensor_realize");
    tiga_status status = ts ? realize(ts, xs, n, true) : TIGA_E_ARGUMENT;
    for (int i = 0; i < n && status == TIGA_OK; i++)
        if (xs[i]->buffer && xs[i]->buffer->managed)
            status = tiga_buffer_realize(ts->ctx, xs[i]->buffer->managed);
    return status;
}

/* ---- showing memory ---- */
/* What has been shown stays as it was, also when x itself is packed anew for a program. */
static tiga_status show(tiga_tensor *x) {
    if (x->watchers || x->looked)
        return TIGA_OK;
    tiga_status status = tensor_compute(&x, 1);
    if (status == TIGA_OK)
        status = tensor_densify(x);
    if (status == TIGA_OK)
        status = tensor_pin(x);
    if (status != TIGA_OK)
        return status;
    x->shown = x->buffer ? tensor_buffer_retain(x->buffer) : NULL;
    x->array = tiga_array_borrow((void *)(uintptr_t)tensor_memory(x), x->dtype, x->rank, x->shape);
    return TIGA_OK;
}

void tensor_forget_shown(tiga_tensor *x) {
    if (!x->shown)
        return;
    tensor_buffer_unpin(x->shown);
    tensor_buffer_put(x->shown);
    x->shown = NULL;
}

void tensor_hide(tiga_tensor *x) {
    x->looked = false;
    if (!x->watchers)
        tensor_forget_shown(x);
}

tiga_status tiga_tensor_pin(tiga_tensor *x, const tiga_array **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (out)
        *out = NULL;
    if (!x || !out)
        return x ? tensor_fail(x->ts, TIGA_E_ARGUMENT, "tiga_tensor_pin: out is NULL") : TIGA_E_ARGUMENT;
    tiga_status status = show(x);
    if (status != TIGA_OK)
        return status;
    x->watchers++;
    *out = &x->array;
    return TIGA_OK;
}

void tensor_unwatch(tiga_tensor *x) {
    if (x->watchers && --x->watchers == 0 && !x->looked)
        tensor_forget_shown(x);
}

void tiga_tensor_unpin(tiga_tensor *x) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (x)
        tensor_unwatch(x);
}

tiga_status tiga_tensor_data(tiga_tensor *x, const tiga_array **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (out)
        *out = NULL;
    if (!x || !out)
        return x ? tensor_fail(x->ts, TIGA_E_ARGUMENT, "tiga_tensor_data: out is NULL") : TIGA_E_ARGUMENT;
    tiga_status status = show(x);
    if (status != TIGA_OK)
        return status;
    x->looked = true;
    *out = &x->array;
    return TIGA_OK;
}

tiga_status tiga_tensor_copy_to(tiga_tensor *x, void *to, int64_t n_bytes) {
    TENSOR_TURN(tiga_tensor_home(x));
    const tiga_array *a;
    if (!x)
        return TIGA_E_ARGUMENT;
    int64_t have = tiga_tensor_size(x) * tiga_dtype_bytes(x->dtype);
    if (n_bytes != have || (!to && have))
        return tensor_fail(x->ts, TIGA_E_ARGUMENT, "tiga_tensor_copy_to: the tensor has %lld bytes, not %lld",
                           (long long)have, (long long)n_bytes);
    tiga_status status = tiga_tensor_pin(x, &a);
    if (status != TIGA_OK)
        return status;
    base_copy(to, a->data, (size_t)have);
    tiga_tensor_unpin(x);
    return TIGA_OK;
}

tiga_tensor_execution tiga_tensor_get_execution(const tiga_tensor *x) {
    TENSOR_TURN(tiga_tensor_home(x));
    tiga_tensor_execution how = x ? x->how : (tiga_tensor_execution){0};
    how.text = tensor_how_text(how.how);
    return how;
}

tiga_status tiga_tensor_program(tiga_tensor *x, char **text) {
    TENSOR_TURN(tiga_tensor_home(x));
    if (text)
        *text = NULL;
    if (!x || !text || x->kind != TENSOR_COMPUTE)
        return x ? tensor_fail(x->ts, TIGA_E_ARGUMENT, "tiga_tensor_program: nothing is left to compute")
                 : TIGA_E_ARGUMENT;
    tiga_status status = tensor_realize_operands(&x, 1);
    return status == TIGA_OK ? tensor_text(x->ts, &x, 1, text) : status;
}

void tiga_tensor_text_free(char *text) { base_free(text); }
