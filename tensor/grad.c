/* Gradients.
 *
 * What the loss depends on is cut at movements.  Between them everything is operations of the IR, and its GRAD operation gives
 * the gradients with respect to the cuts and to what is asked for; a movement has a movement, or a sum, as its adjoint.
 * So: one GRAD for the loss; then, from the last movement to the first, its cotangent is moved back, and one GRAD for its
 * operands.  Everything that results is an expression, to be differentiated again if someone wants to.
 *
 * Values take part by what they are computed from, realised or not, as long as they remember it: clones of the operations
 * stand for them, which nobody else can observe, because a program that has an array as an argument knows nothing of its
 * origin. */
#include "tensor/tensor.h"

#include <string.h>

typedef struct grad {
    tiga_tensors *ts;
    tensor_list list;   /* what the loss depends on, operands first */
    bool *active;       /* [list.n]: depends on something asked for, by a way that has derivatives */
    bool *wrt;          /* [list.n]: asked for */
    tiga_tensor **map;  /* [list.n]: what stands for it, one owner */
    tiga_tensor **ct;   /* [list.n]: cotangents of movements and of what is asked for */
    tiga_status status;
} grad;

static bool has_gradient(const tiga_tensor *x) { return ir_dtype_has_gradient((ir_dtype)x->dtype); }
static bool has_origin(const tiga_tensor *x) { return x->n_args > 0; }
static bool is_cut(const tiga_tensor *x) { return x->n_args > 0 && !x->computed; }
static bool is_expression(const tiga_tensor *x) { return x->kind == TENSOR_COMPUTE; }

/* ---- forwards ---- */
static void mark(grad *g, tiga_tensor *const *wrt, int n) {
    for (size_t i = 0; i < g->list.n; i++)
        g->list.v[i]->slot = (uint32_t)i + 1;
    for (int i = 0; i < n; i++)
        if (wrt[i]->slot) {
            g->wrt[wrt[i]->slot - 1] = true;
            g->active[wrt[i]->slot - 1] = true;
        }
    for (size_t i = 0; i < g->list.n; i++) {
        const tiga_tensor *x = g->list.v[i];
        for (uint32_t k = 0; k < x->n_args && has_gradient(x); k++)
            g->active[i] |= g->active[x->args[k]->slot - 1] && has_gradient(x->args[k]);
    }
}

/* What a program sees as one element now: less than when x was made, when a number became an array since. */
static uint8_t clone_stretch(const tiga_tensor *x, tiga_tensor *const *args) {
    if (x->code == IR_RESHAPE)
        return tensor_stretch_kept(args[0], x);
    if (x->code == IR_BROADCAST || ir_class_is_elementwise(ir_op_describe((ir_opcode)x->code)->cls))
        return tensor_stretch_of(args, (int)x->n_args, x->shape, x->rank);
    return 0;
}

static tiga_tensor *clone(const grad *g, const tiga_tensor *x) {
    tiga_tensor *few[8], **args = few;
    if (x->n_args > 8)
        args = base_alloc(x->n_args * sizeof *args);
    if (!args) {
        tensor_fail(g->ts, TIGA_E_MEMORY, "gradient: out of memory");
        return NULL;
    }
    for (uint32_t i = 0; i < x->n_args; i++)
        args[i] = g->map[x->args[i]->slot - 1];
    tiga_tensor *c = tensor_node(TENSOR_COMPUTE, x->code, x->dtype, x->rank, x->shape, args, x->n_args);
    if (c) {
        memcpy(c->attr, x->attr, sizeof c->attr);
        c->stretch = clone_stretch(x, args);
        c->slot = x->slot;
    }
    if (args != few)
        base_free(args);
    return c;
}

static bool stand_in(grad *g, size_t i) {
    tiga_tensor *x = g->list.v[i];
    bool depends = false;
    for (uint32_t k = 0; k < x->n_args; k++)
        depends |= g->active[x->args[k]->slot - 1];
    if (is_cut(x) && g->active[i] && x->kind == TENSOR_REAL && (x->literal || x->stretch) &&
        tensor_densify(x) != TIGA_OK) /* takes a cotangent for every element */
        return false;
    bool keep = !g->active[i] || is_cut(x) || !depends;
    g->map[i] = keep ? tensor_retain(x) : clone(g, x);
    return g->map[i] != NULL;
}

/* ---- backwards ---- */
/* Takes value. */
static void accumulate(grad *g, uint32_t slot, tiga_tensor *value) {
    tiga_tensor **place = &g->ct[slot - 1], *sum = NULL;
    if (!value)
        return;
    if (!*place) {
        *place = value;
        return;
    }
    g->status = tensor_op2(IR_ADD, *place, value, &sum);
    tensor_free(value);
    if (g->status == TIGA_OK) {
        tensor_free(*place);
        *place = sum;
    }
}

/* Something that takes a cotangent by itself. */
static bool is_target(const grad *g, const tiga_tensor *x) {
    return x->slot && g->active[x->slot - 1] && (g->wrt[x->slot - 1] || is_cut(g->list.v[x->slot - 1]));
}

static tiga_tensor *member(tiga_tensor *tuple, const tiga_tensor *like, int64_t index) {
    tiga_tensor *x = tensor_node(TENSOR_COMPUTE, IR_GET, like->dtype, like->rank, like->shape, &tuple, 1);
    if (x)
        x->attr[0] = index;
    return x;
}

/* GRAD of `outputs` (stand-ins) with respect to all targets below them. */
static void spread(grad *g, tiga_tensor *const *outputs, tiga_tensor *const *cts, size_t n) {
    tensor_list below = {0}, args = {0};
    bool ok = tensor_postorder(g->ts, outputs, n, is_expression, &below);
    for (size_t i = 0; ok && i < 2 * n; i++)
        ok = tensor_list_add(&args, i < n ? outputs[i] : cts[i - n]);
    for (size_t i = 0; ok && i < below.n; i++)
        ok = !is_target(g, below.v[i]) || tensor_list_add(&args, below.v[i]);
    g->status = ok ? TIGA_OK : tensor_fail(g->ts, TIGA_E_MEMORY, "gradient: out of memory");
    if (ok && args.n > 2 * n) {
        tiga_tensor *tuple = tensor_node(TENSOR_COMPUTE, IR_GRAD, outputs[0]->dtype, 0, NULL, args.v, (uint32_t)args.n);
        g->status = tuple ? TIGA_OK : TIGA_E_MEMORY;
        if (tuple)
            tuple->attr[0] = (int64_t)n;
        for (size_t i = 2 * n; tuple && i < args.n && g->status == TIGA_OK; i++) {
            tiga_tensor *value = member(tuple, args.v[i], (int64_t)(i - 2 * n));
            g->status = value ? TIGA_OK : TIGA_E_MEMORY;
            accumulate(g, args.v[i]->slot, value);
        }
        tensor_free(tuple);
    }
    tensor_list_fini(&below);
    tensor_list_fini(&args);
}

/* A program sees a stretched axis as one element: the cotangents of its repeats are summed. */
static tiga_status gather_repeats(const tiga_tensor *a, tiga_tensor *c, tiga_tensor **out) {
    if (a->stretch)
        return tiga_tensor_fold(c, "sum", a->stretch, 1, out);
    *out = tensor_retain(c);
    return TIGA_OK;
}

static tiga_status adjoint_node(tensor_move code, tiga_tensor *const *args, uint32_t n, const tiga_tensor *like,
                                const int64_t *attr, tiga_tensor **out) {
    *out = tensor_node(TENSOR_MOVE, (uint16_t)code, like->dtype, like->rank, like->shape, args, n);
    if (*out)
        memcpy((*out)->attr, attr, sizeof(*out)->attr);
    return *out ? TIGA_OK : TIGA_E_MEMORY;
}

/* Sums of 16-bit floats are made in f32. */
static tiga_status gather_back(const tiga_tensor *x, tiga_tensor *c, tiga_tensor **out) {
    tiga_tensor *wide = NULL, *sum = NULL, like = *x->args[0];
    like.dtype = ir_dtype_is_half((ir_dtype)c->dtype) ? TIGA_F32 : c->dtype;
    tiga_status status = tiga_tensor_cast(c, like.dtype, &wide);
    if (status == TIGA_OK)
        status = adjoint_node(MOVE_SCATTER, (tiga_tensor *[]){wide, x->args[1]}, 2, &like, x->attr, &sum);
    if (status == TIGA_OK)
        status = tiga_tensor_cast(sum, c->dtype, out);
    tensor_free(wide);
    tensor_free(sum);
    return status;
}

static tiga_status permute_back(const tiga_tensor *x, tiga_tensor *c, tiga_tensor **out) {
    int32_t order[TENSOR_MAX_RANK];
    for (int32_t i = 0; i < x->rank; i++)
        order[x->attr[0] >> 4 * i & 15] = i;
    return tiga_tensor_permute(c, order, out);
}

/* From the cotangent c of movement x to that of its operand k. */
static tiga_status move_back(const tiga_tensor *x, uint32_t k, tiga_tensor *c, tiga_tensor **out) {
    const tiga_tensor *a = x->args[k];
    int64_t at = 0;
    switch ((tensor_move)x->code) {
    case MOVE_RESHAPE:
        return tiga_tensor_reshape(c, a->rank, a->shape, out);
    case MOVE_PERMUTE:
        return permute_back(x, c, out);
    case MOVE_SLICE:
        return adjoint_node(MOVE_PLACE, &c, 1, a, x->attr, out);
    case MOVE_PLACE:
        return tiga_tensor_slice(c, (int)x->attr[0], x->attr[1], a->shape[x->attr[0]], x->attr[2], out);
    case MOVE_CONCAT:
        for (uint32_t i = 0; i < k; i++)
            at += x->args[i]->shape[x->attr[0]];
        return tiga_tensor_slice(c, (int)x->attr[0], at, a->shape[x->attr[0]], 1, out);
    case MOVE_GATHER:
        return gather_back(x, c, out);
    case MOVE_SCATTER:
        return tiga_tensor_gather(c, x->args[1], (int)x->attr[0], out);
    case MOVE_CUMSUM:
        return tiga_tensor_cumsum(c, (int)x->attr[0], !x->attr[1], out);
    case MOVE_ALIAS:
    case MOVE_EXPAND:
        *out = tensor_retain(c);
        return TIGA_OK;
    case MOVE_CALL: /* all operands at once: call_back */
    case MOVE_NONE:
        break;
    }
    BASE_BUG("movement %d has no adjoint", x->code);
}

static bool takes_cotangent(const grad *g, const tiga_tensor *a) { return g->active[a->slot - 1] && has_gradient(a); }

/* Operand k of movement x, which has a cotangent: moved, or that of x moved back.  What takes it by itself does; the others
 * are listed. */
static void give_operand(grad *g, const tiga_tensor *x, uint32_t k, tiga_tensor *moved, tensor_list *outputs,
                         tensor_list *cts) {
    tiga_tensor *a = x->args[k], *c = NULL;
    if (!takes_cotangent(g, a))
        return;
    if (moved)
        tensor_retain(moved);
    else
        g->status = move_back(x, k, g->ct[x->slot - 1], &moved);
    if (g->status == TIGA_OK)
        g->status = gather_repeats(g->map[a->slot - 1], moved, &c);
    tensor_free(moved);
    if (g->status != TIGA_OK)
        return;
    tiga_tensor *y = g->map[a->slot - 1];
    if (!is_expression(y)) {
        accumulate(g, a->slot, c);
    } else if (!tensor_list_add(outputs, y) || !tensor_list_add(cts, c)) {
        tensor_free(c);
        g->status = tensor_fail(g->ts, TIGA_E_MEMORY, "gradient: out of memory");
    }
}

/* Of a call all at once.  [x->n_args]; NULL otherwise, or failed. */
static tiga_tensor **call_back(grad *g, const tiga_tensor *x) {
    if (x->code != MOVE_CALL)
        return NULL;
    tiga_tensor **moved = base_alloc_zero(x->n_args * sizeof *moved);
    bool *wanted = base_alloc_zero(x->n_args);
    for (uint32_t k = 0; wanted && k < x->n_args; k++)
        wanted[k] = takes_cotangent(g, x->args[k]);
    g->status = moved && wanted ? tensor_call_back(x, g->ct[x->slot - 1], wanted, moved)
                                : tensor_fail(g->ts, TIGA_E_MEMORY, "gradient: out of memory");
    base_free(wanted);
    return moved;
}

static void sweep_move(grad *g, const tiga_tensor *x) {
    tensor_list outputs = {0}, cts = {0};
    tiga_tensor **moved = call_back(g, x);
    for (uint32_t k = 0; k < x->n_args && g->status == TIGA_OK; k++)
        give_operand(g, x, k, moved ? moved[k] : NULL, &outputs, &cts);
    for (uint32_t k = 0; moved && k < x->n_args; k++)
        tensor_free(moved[k]);
    base_free(moved);
    if (g->status == TIGA_OK && outputs.n)
        spread(g, outputs.v, cts.v, outputs.n);
    for (size_t i = 0; i < cts.n; i++)
        tensor_free(cts.v[i]);
    tensor_list_fini(&outputs);
    tensor_list_fini(&cts);
}

static void sweep(grad *g, tiga_tensor *loss) {
    tiga_tensor *one = NULL, *y = g->map[loss->slot - 1];
    g->status = tiga_tensor_full(g->ts, loss->dtype, loss->rank, loss->shape, 1, &one);
    if (g->status != TIGA_OK)
        return;
    if (is_expression(y)) {
        spread(g, &y, &one, 1);
        tensor_free(one);
    } else {
        accumulate(g, loss->slot, one);
    }
    for (size_t i = g->list.n; i-- > 0 && g->status == TIGA_OK;)
        if (g->active[i] && is_cut(g->list.v[i]) && g->ct[i])
            sweep_move(g, g->list.v[i]);
}

/* ---- the calls ---- */
static tiga_status check(tiga_tensors *ts, const tiga_tensor *loss, tiga_tensor *const *wrt, int n) {
    if ((loss->dtype != TIGA_F32 && loss->dtype != TIGA_F64) || tiga_tensor_size(loss) != 1)
        return tensor_fail(ts, TIGA_E_TYPE, "gradient: the loss is not one f32 or f64");
    for (int i = 0; i < n; i++) {
        if (!has_gradient(wrt[i]) || wrt[i]->weak)
            return tensor_fail(ts, TIGA_E_TYPE, "gradient: value %d is %s; there are none with respect to such", i,
                               wrt[i]->weak ? "a number" : tiga_dtype_text(wrt[i]->dtype));
        if (wrt[i]->kind != TENSOR_REAL || wrt[i]->computed) {
            if (wrt[i]->stretch | wrt[i]->born)
                return tensor_fail(ts, TIGA_E_UNSUPPORTED,
                                   "gradient: value %d repeats elements by broadcasting; take it "
                                   "with respect to what was broadcast",
                                   i);
        } else {
            tiga_status status = tensor_densify(wrt[i]); /* every element is a value of its own */
            if (status != TIGA_OK)
                return status;
        }
        for (int k = 0; k < i; k++)
            if (wrt[k] == wrt[i])
                return tensor_fail(ts, TIGA_E_ARGUMENT, "gradient: value %d is value %d", i, k);
    }
    return TIGA_OK;
}

static bool grad_init(grad *g, tiga_tensor *loss) {
    if (!tensor_postorder(g->ts, &loss, 1, has_origin, &g->list))
        return false;
    size_t n = g->list.n;
    g->active = base_alloc_zero(n * sizeof *g->active);
    g->wrt = base_alloc_zero(n * sizeof *g->wrt);
    g->map = base_alloc_zero(n * sizeof *g->map);
    g->ct = base_alloc_zero(n * sizeof *g->ct);
    if (g->active && g->wrt && g->map && g->ct)
        return true;
    tensor_fail(g->ts, TIGA_E_MEMORY, "gradient: out of memory");
    return false;
}

static void grad_fini(grad *g) {
    for (size_t i = 0; i < g->list.n; i++) {
        g->list.v[i]->slot = 0;
        if (g->map && g->map[i])
            g->map[i]->slot = 0;
    }
    for (size_t i = 0; i < g->list.n; i++) {
        tensor_free(g->map ? g->map[i] : NULL);
        tensor_free(g->ct ? g->ct[i] : NULL);
    }
    base_free(g->active);
    base_free(g->wrt);
    base_free(g->map);
    base_free(g->ct);
    tensor_list_fini(&g->list);
}

static tiga_status results(grad *g, tiga_tensor *const *wrt, int n, int missing_is_zero, tiga_tensor **out) {
    for (int i = 0; i < n; i++) {
        tiga_tensor *c = wrt[i]->slot ? g->ct[wrt[i]->slot - 1] : NULL;
        tiga_status status = TIGA_OK;
        if (c)
            out[i] = tensor_retain(c);
        else if (missing_is_zero)
            status = tiga_tensor_full(g->ts, wrt[i]->dtype, wrt[i]->rank, wrt[i]->shape, 0, &out[i]);
        else
            status = tensor_fail(g->ts, TIGA_E_TYPE, "gradient: the loss does not depend on value %d%s", i,
                                 wrt[i]->watched ? "" : ", or has forgotten that it does (tiga_tensor_watch)");
        if (status != TIGA_OK)
            return status;
    }
    return TIGA_OK;
}

tiga_status tiga_tensor_grad(tiga_tensor *loss, tiga_tensor *const *wrt, int n, int missing_is_zero,
                             tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(loss));
    for (int i = 0; out && i < n; i++)
        out[i] = NULL;
    grad g = {.ts = out ? tensor_home_of(&loss, 1, "gradient") : NULL};
    if (!g.ts || n < 1 || tensor_home_of(wrt, n, "gradient") != g.ts)
        return g.ts ? tensor_fail(g.ts, TIGA_E_ARGUMENT, "gradient: with respect to nothing, or to tensors of others")
                    : TIGA_E_ARGUMENT;
    tiga_status status = check(g.ts, loss, wrt, n);
    if (status != TIGA_OK)
        return status;
    bool ok = grad_init(&g, loss);
    if (ok)
        mark(&g, wrt, n);
    for (size_t i = 0; ok && i < g.list.n; i++)
        ok = stand_in(&g, i);
    if (ok && g.active[loss->slot - 1])
        sweep(&g, loss);
    status = ok ? g.status : TIGA_E_MEMORY;
    if (status == TIGA_OK)
        status = results(&g, wrt, n, missing_is_zero, out);
    for (int i = 0; i < n && status != TIGA_OK; i++) {
        tensor_free(out[i]);
        out[i] = NULL;
    }
    grad_fini(&g);
    return status;
}

/* The value of x without what it came from. */
static tiga_status anew(tiga_tensor *x, bool watched, const char *who, tiga_tensor **out) {
    if (out)
        *out = NULL;
    tiga_tensors *ts = out ? tensor_home_of(&x, 1, who) : NULL;
    if (!ts)
        return TIGA_E_ARGUMENT;
    if (x->weak) {
        tiga_tensor *settled;
        tiga_status settling = tensor_settle(x, &settled);
        return settling == TIGA_OK ? tensor_give(anew(settled, watched, who, out), settled) : settling;
    }
    tiga_status status = tensor_compute(&x, 1);
    if (status != TIGA_OK)
        return status;
    tiga_tensor *v = tensor_new(ts, TENSOR_REAL, x->dtype, x->rank, x->shape);
    if (!v)
        return TIGA_E_MEMORY;
    memcpy(v->strides, x->strides, sizeof v->strides);
    v->offset = x->offset;
    v->literal = x->literal;
    v->constant = x->constant;
    v->value = x->value;
    v->stretch = x->stretch;
    v->buffer = x->buffer ? tensor_buffer_retain(x->buffer) : NULL;
    v->watched = watched;
    v->how.how = TIGA_TENSOR_VIEW;
    *out = v;
    return TIGA_OK;
}

tiga_status tiga_tensor_watch(tiga_tensor *x, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    return anew(x, true, "tiga_tensor_watch", out);
}

tiga_status tiga_tensor_forget(tiga_tensor *x, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(x));
    return anew(x, false, "tiga_tensor_forget", out);
}

int tiga_tensor_is_watched(const tiga_tensor *x) { return x && x->watched; }
