/* Instances of a frame: the bound ones, a ring of live buffers, and a short queue of released ones.  What a frame has
 * taken from the host account it gives back when it closes, on every path. */
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
    for (int i = 0; i < f->fn->n_params; i++)
        if (f->params[i])
            bind(&f->bound[i], f->fn->params[i].name, f->params[i], HR_PARAM);
    for (int i = 0; i < f->fn->n_results; i++)
        bind(&f->bound[f->fn->n_params + i], f->fn->results[i].name, f->results[i], HR_RESULT);
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

void hr_frame_close(hr_frame *f) {
    for (tiga_instance *i = f->buffers.next; i && i != &f->buffers;) {
        tiga_instance *next = i->next;
        rt_mem_free(i->data);
        base_free(i);
        i = next;
    }
    for (tiga_instance *i = f->gone.next; i && i != &f->gone;) {
        tiga_instance *next = i->next;
        base_free(i);
        i = next;
    }
    rt_account_give(f->ctx, f->charged);
    f->charged = 0;
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
    rt_mem_free(i->data);
    hr_discharge(f, i->data ? i->bytes : 0);
    i->data = NULL;
    i->released = true;
    ring_remove(i);
    ring_append(&f->gone, i);
    f->n_gone++;
}
