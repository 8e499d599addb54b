/* A plan: the operations that lead to some nodes, numbered, operands first; their axes named; and the key of all that.
 *
 * Every axis of a leaf begins as a class of its own, unless it has one element (or repeats one: a program sees that one).
 * Operations put classes together.  What is left are the symbols of the program, numbered as they appear, so that
 * expressions that differ in sizes only have one key. */
#include "tensor/tensor.h"

#include <stddef.h>
#include <string.h>

typedef struct classes {
    uint32_t *parent; /* [0]: the class of one element */
    int64_t *extent;
    uint32_t n;
} classes;

static uint32_t find(classes *c, uint32_t i) {
    while (c->parent[i] != i)
        i = c->parent[i] = c->parent[c->parent[i]];
    return i;
}

/* 0 is joined with nothing: an axis that is stretched stays one element. */
static uint32_t join(classes *c, uint32_t a, uint32_t b) {
    a = find(c, a);
    b = find(c, b);
    if (!a || !b)
        return a ? a : b;
    if (a > b) {
        uint32_t t = a;
        a = b;
        b = t;
    }
    c->parent[b] = a;
    return a;
}

static uint32_t fresh(classes *c, int64_t extent) {
    c->parent[c->n] = c->n;
    c->extent[c->n] = extent;
    return c->n++;
}

/* ---- what each operation says of its axes ---- */
typedef struct namer {
    tensor_plan *p;
    classes c;
    uint32_t *of; /* [items][7] */
} namer;

static uint32_t *axes_of(namer *n, const tiga_tensor *x) { return n->of + (size_t)x->number * TENSOR_MAX_RANK; }

static void name_leaf(namer *n, const tiga_tensor *x, uint32_t *out) {
    for (int i = 0; i < x->rank; i++)
        out[i] = x->shape[i] == 1 || (x->stretch >> i & 1) ? 0 : fresh(&n->c, x->shape[i]);
}

static void name_elementwise(namer *n, const tiga_tensor *x, uint32_t *out) {
    for (uint32_t k = 0; k < x->n_args; k++) {
        const tiga_tensor *a = x->args[k];
        for (int i = 0; i < a->rank; i++) {
            int at = i + x->rank - a->rank;
            out[at] = join(&n->c, out[at], axes_of(n, a)[i]);
        }
    }
}

static void name_reshape(namer *n, const tiga_tensor *x, uint32_t *out) {
    const tiga_tensor *a = x->args[0];
    for (int i = 0, k = 0; k < x->rank; k++) {
        if (x->shape[k] == 1)
            continue;
        while (a->shape[i] == 1)
            i++;
        out[k] = axes_of(n, a)[i++];
    }
}

static void name_broadcast(namer *n, const tiga_tensor *x, uint32_t *out) {
    const tiga_tensor *a = x->args[0];
    for (int i = 0; i < a->rank; i++)
        out[i + x->rank - a->rank] = axes_of(n, a)[i];
}

static void name_fold(namer *n, const tiga_tensor *x, uint32_t *out) {
    const tiga_tensor *a = x->args[0];
    for (int i = 0, k = 0; i < a->rank; i++) {
        bool folded = x->attr[0] >> i & 1;
        if (!folded || x->attr[1])
            out[k++] = folded ? 0 : axes_of(n, a)[i];
    }
}

static void name_matmul(namer *n, const tiga_tensor *x, uint32_t *out) {
    const tiga_tensor *a = x->args[0];
    const uint32_t *left = axes_of(n, a), *right = axes_of(n, x->args[1]);
    join(&n->c, left[a->rank - 1], right[0]);
    memcpy(out, left, (size_t)a->rank * sizeof *out);
    out[a->rank - 1] = right[1];
}

static void name_grad(namer *n, const tiga_tensor *x) {
    for (int64_t i = 0; i < x->attr[0]; i++) {
        const tiga_tensor *y = x->args[i], *ct = x->args[x->attr[0] + i];
        for (int k = 0; k < y->rank; k++)
            join(&n->c, axes_of(n, y)[k], axes_of(n, ct)[k]);
    }
}

static void name_item(namer *n, const tiga_tensor *x) {
    uint32_t *out = axes_of(n, x);
    if (x->kind == TENSOR_REAL)
        name_leaf(n, x, out);
    else if (x->code == IR_RESHAPE)
        name_reshape(n, x, out);
    else if (x->code == IR_BROADCAST)
        name_broadcast(n, x, out);
    else if (x->code == IR_FOLD)
        name_fold(n, x, out);
    else if (x->code == IR_MATMUL)
        name_matmul(n, x, out);
    else if (x->code == IR_GRAD)
        name_grad(n, x);
    else if (x->code == IR_GET)
        memcpy(out, axes_of(n, x->args[0]->args[2 * x->args[0]->attr[0] + x->attr[0]]), x->rank * sizeof *out);
    else
        name_elementwise(n, x, out);
}

/* ---- symbols ---- */
static bool number_symbols(namer *n, uint16_t *symbol) {
    tensor_plan *p = n->p;
    bool ok = true;
    memset(symbol, 0, n->c.n * sizeof *symbol);
    for (size_t i = 0; ok && i < p->items.n * TENSOR_MAX_RANK; i++) {
        uint32_t c = find(&n->c, n->of[i]);
        if (c && !symbol[c]) {
            ok = p->n_syms < UINT16_MAX - 1;
            p->extent[p->n_syms] = n->c.extent[c];
            symbol[c] = (uint16_t)++p->n_syms;
        }
        p->axis[i] = symbol[c];
    }
    return ok;
}

static bool name_axes(tensor_plan *p) {
    size_t n_axes = p->items.n * TENSOR_MAX_RANK + 1;
    size_t n_bytes = n_axes * (2 * sizeof(int64_t) + 2 * sizeof(uint32_t) + 2 * sizeof(uint16_t));
    p->block = n_bytes > sizeof p->small ? base_alloc(n_bytes) : p->small;
    if (!p->block)
        return false;
    namer n = {.p = p, .c = {.extent = p->block}};
    p->extent = n.c.extent + n_axes;
    n.c.parent = (uint32_t *)(p->extent + n_axes);
    n.of = n.c.parent + n_axes;
    p->axis = (uint16_t *)(n.of + n_axes);
    memset(n.of, 0, n_axes * sizeof *n.of);
    fresh(&n.c, 1);
    for (size_t i = 0; i < p->items.n; i++)
        name_item(&n, p->items.v[i]);
    return number_symbols(&n, p->axis + n_axes);
}

uint32_t tensor_plan_lead(const tensor_plan *p, const tiga_tensor *x) {
    const uint16_t *axes = tensor_plan_axes(p, x);
    uint32_t lead = 0;
    while (lead < x->rank && !axes[lead])
        lead++;
    return lead;
}

uint32_t tensor_plan_rank(const tensor_plan *p, const tiga_tensor *x) {
    uint32_t rank = x->rank - tensor_plan_lead(p, x);
    return p->flat && rank ? 1 : rank;
}

/* Every array of one shape, and nothing folded: the shape does not matter, its number of elements does.  (With folds it
 * would: the order of additions, so the bits, would depend on what else a program computes.) */
static bool is_flat(const tensor_plan *p) {
    const uint16_t *shape = NULL;
    uint32_t rank = 0;
    for (size_t i = 0; i < p->items.n; i++) {
        const tiga_tensor *x = p->items.v[i];
        uint32_t lead = tensor_plan_lead(p, x);
        if (x->kind == TENSOR_COMPUTE && (x->code == IR_MATMUL || x->code == IR_FOLD || x->code == IR_GRAD))
            return false;
        if (lead == x->rank)
            continue;
        const uint16_t *own = tensor_plan_axes(p, x) + lead;
        if (!shape)
            rank = x->rank - lead;
        shape = shape ? shape : own;
        if (x->rank - lead != rank || memcmp(shape, own, rank * sizeof *own) != 0)
            return false;
    }
    return rank > 1;
}

/* ---- the key ---- */
static void add(base_str *s, const void *bytes, size_t n) { base_str_add_n(s, bytes, n); }

static void add_item(tensor_plan *p, const tiga_tensor *x) {
    bool constant = x->kind == TENSOR_REAL && x->constant;
    unsigned char head[8] = {(unsigned char)(x->kind == TENSOR_COMPUTE ? 'o'
                                             : constant                ? 'c'
                                                                       : 'p'),
                             x->dtype, x->rank, (unsigned char)x->code, (unsigned char)(x->code >> 8)};
    if (x->kind == TENSOR_REAL)
        head[3] = head[4] = 0;
    add(&p->key, head, sizeof head);
    if (constant) {
        char value[16] = {0};
        ir_store_scalar((ir_dtype)x->dtype, value, 0, x->value);
        add(&p->key, value, sizeof value);
        return;
    }
    add(&p->key, tensor_plan_axes(p, x), x->rank * sizeof(uint16_t));
    if (x->kind == TENSOR_REAL)
        return;
    add(&p->key, &x->n_args, sizeof x->n_args);
    for (uint32_t i = 0; i < x->n_args; i++)
        add(&p->key, &x->args[i]->number, sizeof x->args[i]->number);
    if (x->code == IR_FOLD || x->code == IR_GRAD || x->code == IR_GET)
        add(&p->key, x->attr, sizeof x->attr);
}

static bool make_key(tensor_plan *p) {
    bool ok = true;
    for (size_t i = 0; ok && i < p->items.n; i++) {
        tiga_tensor *x = p->items.v[i];
        add_item(p, x);
        p->n_compute += x->kind == TENSOR_COMPUTE;
        p->elements += x->kind == TENSOR_COMPUTE ? (uint64_t)tiga_tensor_size(x) : 0;
        p->has_grad |= x->kind == TENSOR_COMPUTE && x->code == IR_GRAD;
        if (x->kind == TENSOR_REAL && !x->constant)
            ok = tensor_list_add(&p->params, x);
    }
    for (size_t i = 0; i < p->n_roots; i++)
        add(&p->key, &p->roots[i]->number, sizeof p->roots[i]->number);
    return ok && !p->key.failed;
}

static bool is_computed(const tiga_tensor *x) { return x->kind == TENSOR_COMPUTE; }

bool tensor_plan_init(tensor_plan *p, tiga_tensors *ts, tiga_tensor *const *roots, size_t n_roots, bool *moves) {
    memset(p, 0, offsetof(tensor_plan, small));
    p->ts = ts;
    p->roots = roots;
    p->n_roots = n_roots;
    p->items = tensor_list_take(ts);
    p->params = tensor_list_take(ts);
    if (!tensor_postorder(ts, roots, n_roots, is_computed, &p->items))
        return false;
    for (size_t i = 0; moves && i < p->items.n; i++)
        if (p->items.v[i]->kind == TENSOR_MOVE)
            return *moves = true;
    bool ok = name_axes(p);
    if (ok) {
        p->flat = is_flat(p);
        ok = make_key(p);
    }
    if (!ok)
        tensor_fail(ts, TIGA_E_MEMORY, "an expression of %zu operations: out of memory, or too many sizes", p->items.n);
    return ok;
}

void tensor_plan_fini(tensor_plan *p) {
    tensor_list_give(p->ts, &p->items);
    tensor_list_give(p->ts, &p->params);
    if (p->block != p->small)
        base_free(p->block);
    base_str_fini(&p->key);
}
