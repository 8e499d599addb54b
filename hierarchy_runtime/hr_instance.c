/* Instances of a frame: the bound ones, a ring of live buffers, and a short queue of released ones.  What a launch has
 * taken from the host account it gives back at its end, on every path. */
#include "hierarchy_runtime/hierarchy_runtime.h"

#include <string.h>

static void ring_init(tiga_instance *head) { head->next = head->prev = head; }

static void ring_remove(tiga_instance *i) {
    i->prev->next = i->next;
    i->next->prev = i->prev;
}

static void ring_append(tiga_instance *head, tiga_instance *i) {
    i->next = head;
    i->prev = head->prev;
    i->prev->next = i;
    head->prev = i;
}

static void bind(tiga_instance *i, const char *name, const tiga_array *a, hr_origin origin) {
    *i = (tiga_instance){.name = name,
                         .bytes = tiga_array_bytes(a),
                         .tier = TIGA_TIER_HOST,
                         .dtype = a->dtype,
                         .origin = origin,
                         .bound = true,
                         .valid = origin == HR_PARAM,
                         .data = a->data};
}

void hr_frame_open(hr_frame *f) {
    ring_init(&f->buffers);
    ring_init(&f->gone);
    ring_init(&f->spare);
    for (int i = 0; i < f->fn->n_params; i++)
        if (f->params[i])
            bind(&f->bound[i], f->fn->params[i].name, f->params[i], HR_PARAM);
    for (int i = 0; i < f->fn->n_results; i++)
        bind(&f->bound[f->fn->n_params + i], f->fn->results[i].name, f->results[i], HR_RESULT);
}

void hr_frame_begin(hr_frame *f) {
    f->status = TIGA_OK;
    for (int i = 0; i < f->fn->n_params + f->fn->n_results; i++) {
        tiga_instance *b = &f->bound[i];
        b->valid = b->origin == HR_PARAM;
        b->writing = b->released = false;
        b->readers = 0;
    }
}

static tiga_status fail_left(hr_frame *f, const tiga_instance *i, const char *what) {
    return rt_fail(f->ctx, TIGA_E_INTERNAL, "%s: the schedule ends with '%s@%lld' %s", f->fn->name, i->name,
                   (long long)i->version, what);
}

tiga_status hr_frame_check(hr_frame *f) {
    for (int i = 0; i < f->fn->n_params + f->fn->n_results; i++) {
        const tiga_instance *b = &f->bound[i];
        if (b->writing || b->readers)
            return fail_left(f, b, "pinned");
        if (b->bound && b->origin == HR_RESULT && !b->valid)
            return fail_left(f, b, "not written");
    }
    for (const tiga_instance *b = f->buffers.next; b != &f->buffers; b = b->next)
        if (b->writing || b->readers)
            return fail_left(f, b, "pinned");
    return TIGA_OK;
}

static void ring_move(tiga_instance *from, tiga_instance *to) {
    while (from->next != from) {
        tiga_instance *i = from->next;
        ring_remove(i);
        ring_append(to, i);
    }
}

/* ---- memory that is kept ---- */
/* Where a budget is in force, what is kept between launches is outside of it, so it must stay small. */
static bool pool_keeps(const hr_frame *f, int64_t n_bytes) {
    const hr_pool *p = &f->pool;
    bool small = n_bytes <= HR_POOL_BLOCK_BYTES && p->bytes + n_bytes <= HR_POOL_BYTES;
    return p->keeps && p->n < HR_POOL_BLOCKS && (small || rt_room_left(f->ctx->account, TIGA_TIER_HOST) == INT64_MAX);
}

static void pool_give(hr_frame *f, void *data, int64_t n_bytes) {
    hr_pool *p = &f->pool;
    if (!data)
        return;
    if (pool_keeps(f, n_bytes)) {
        p->block[p->n].data = data;
        p->block[p->n++].bytes = n_bytes;
        p->bytes += n_bytes;
    } else {
        rt_mem_free(data);
    }
}

bool hr_pool_take(hr_frame *f, tiga_instance *i) {
    hr_pool *p = &f->pool;
    int k = p->n - 1;
    while (k >= 0 && p->block[k].bytes != i->bytes)
        k--;
    if (k < 0 || !rt_account_try(f->ctx, i->bytes))
        return false;
    f->charged += i->bytes;
    i->data = p->block[k].data;
    p->bytes -= i->bytes;
    p->block[k] = p->block[--p->n];
    return true;
}

/* ---- the end of a launch, and of the frame ---- */
void hr_frame_end(hr_frame *f) {
    for (tiga_instance *i = f->buffers.next; i != &f->buffers; i = i->next)
        pool_give(f, i->data, i->bytes);
    ring_move(&f->buffers, &f->spare);
    ring_move(&f->gone, &f->spare);
    f->n_gone = 0;
    f->saved = NULL;
    rt_account_give(f->ctx, f->charged);
    f->charged = 0;
}

void hr_frame_close(hr_frame *f) {
    while (f->spare.next && f->spare.next != &f->spare) {
        tiga_instance *i = f->spare.next;
        ring_remove(i);
        base_free(i);
    }
    while (f->pool.n)
        rt_mem_free(f->pool.block[--f->pool.n].data);
}

tiga_status hr_charge(hr_frame *f, int64_t n_bytes, const char *what) {
    tiga_status status = rt_account_take(f->ctx, n_bytes, what);
    if (status == TIGA_OK)
        f->charged += n_bytes;
    return status;
}

void hr_discharge(hr_frame *f, int64_t n_bytes) {
    rt_account_give(f->ctx, n_bytes);
    f->charged -= n_bytes;
}

/* The oldest released one is used again once enough newer ones are kept. */
tiga_instance *hr_buffer_new(hr_frame *f) {
    tiga_instance *i = NULL;
    if (f->n_gone > HR_QUARANTINE) {
        i = f->gone.next;
        ring_remove(i);
        f->n_gone--;
    } else if (f->spare.next != &f->spare) {
        i = f->spare.next;
        ring_remove(i);
    } else {
        i = base_alloc(sizeof *i);
    }
    if (!i)
        return NULL;
    *i = (tiga_instance){.name = "", .dtype = -1, .origin = HR_BUFFER};
    ring_append(&f->buffers, i);
    return i;
}

void hr_buffer_release(hr_frame *f, tiga_instance *i) {
    hr_discharge(f, i->data ? i->bytes : 0);
    pool_give(f, i->data, i->bytes);
    i->data = NULL;
    i->released = true;
    ring_remove(i);
    ring_append(&f->gone, i);
    f->n_gone++;
}
