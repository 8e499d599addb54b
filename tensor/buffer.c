/* Memory of tensors: counted blocks, 64-byte aligned.  Freed blocks are kept for new ones of about their size, because the
 * pages of fresh memory cost more than the arithmetic on them. */
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

/* A kept block that is not more than a quarter too large. */
static tensor_buffer *take_kept(tiga_tensors *ts, int64_t bytes) {
    for (tensor_buffer **at = &ts->kept; *at; at = &(*at)->next)
        if ((*at)->room >= bytes && (*at)->room - bytes <= bytes / 4 + ALIGN) {
            tensor_buffer *b = *at;
            *at = b->next;
            ts->counters.kept_bytes -= b->room;
            return b;
        }
    return NULL;
}

tensor_buffer *tensor_buffer_new(tiga_tensors *ts, int64_t bytes) {
    tensor_buffer *b = bytes < INT64_MAX - 4096 ? take_kept(ts, bytes) : NULL;
    int64_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (!b && bytes < INT64_MAX - 4096) { /* one block: this, and the bytes */
        b = base_alloc(sizeof *b + (size_t)room + ALIGN);
        if (b)
            *b = (tensor_buffer){.room = room,
                                 .data = (void *)(((uintptr_t)(b + 1) + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1))};
    }
    if (!b) {
        tensor_fail(ts, TIGA_E_MEMORY, "a tensor of %lld bytes: out of memory", (long long)bytes);
        return NULL;
    }
    b->refs = 1;
    b->ts = ts;
    b->bytes = bytes;
    b->next = NULL;
    ts->refs++;
    ts->counters.live_bytes += bytes;
    return b;
}

tensor_buffer *tensor_buffer_given(tiga_tensors *ts, void *data, int64_t bytes, void *owner, void (*release)(void *)) {
    tensor_buffer *b = base_alloc_zero(sizeof *b);
    if (!b) {
        tensor_fail(ts, TIGA_E_MEMORY, "a tensor: out of memory");
        return NULL;
    }
    *b = (tensor_buffer){
        .refs = 1, .ts = ts, .data = data, .bytes = bytes, .owner = owner, .release = release, .given = true};
    ts->refs++;
    return b;
}

tensor_buffer *tensor_buffer_retain(tensor_buffer *b) {
    b->refs++;
    return b;
}

/* Small blocks are not worth the search. */
static bool keep(tiga_tensors *ts, tensor_buffer *b) {
    enum { SMALLEST = 16384 };
    if (b->room < SMALLEST || b->room > ts->options.keep_bytes - ts->counters.kept_bytes)
        return false;
    b->next = ts->kept;
    ts->kept = b;
    ts->counters.kept_bytes += b->room;
    return true;
}

void tensor_buffer_put(tensor_buffer *b) {
    if (!b || --b->refs)
        return;
    tiga_tensors *ts = b->ts;
    if (b->given) {
        if (b->release)
            b->release(b->owner);
        base_free(b);
    } else {
        ts->counters.live_bytes -= b->bytes;
        if (!keep(ts, b))
            base_free(b);
    }
    tensor_home_put(ts);
}

void tensor_buffers_drop(tiga_tensors *ts) {
    while (ts->kept) {
        tensor_buffer *b = ts->kept;
        ts->kept = b->next;
        base_free(b);
    }
    ts->counters.kept_bytes = 0;
}
