/* Memory of tensors: a tiga_buffer, which is charged to the account in force and may leave memory while nobody has pinned
 * it, or memory of the caller, which is neither.  Counted by nodes; views share one.
 *
 * Pins are counted here, so that one tiga_pin a buffer is enough.  `data` is there only while pinned: who forgets to pin
 * finds NULL, not bytes that have gone elsewhere. */
#include "tensor/tensor.h"

static tensor_buffer *wrap(tiga_tensors *ts, int64_t bytes) {
    tensor_buffer *b = base_alloc_zero(sizeof *b);
    if (!b) {
        tensor_fail(ts, TIGA_E_MEMORY, "a tensor: out of memory");
        return NULL;
    }
    b->refs = 1;
    b->ts = ts;
    b->bytes = bytes;
    ts->refs++;
    return b;
}

tiga_status tensor_buffer_new(tiga_tensors *ts, int64_t bytes, tensor_buffer **out) {
    tensor_buffer *b = *out = wrap(ts, bytes);
    if (!b)
        return TIGA_E_MEMORY;
    tiga_status before = tiga_error_status(ts->ctx);
    tiga_status status = tiga_buffer_new_unset(ts->ctx, NULL, TIGA_TIER_HOST, bytes, &b->managed);
    if (status == TIGA_E_BUDGET && tensor_code_drop(ts, before))
        status = tiga_buffer_new_unset(ts->ctx, NULL, TIGA_TIER_HOST, bytes, &b->managed);
    if (status == TIGA_OK)
        status = tiga_buffer_pin(ts->ctx, b->managed, TIGA_WRITE, &b->pin);
    if (status == TIGA_OK) {
        b->data = b->pin.data;
        b->pins = 1;
        ts->counters.live_bytes += bytes;
        return TIGA_OK;
    }
    tiga_buffer_free(b->managed);
    base_free(b);
    tensor_home_put(ts);
    *out = NULL;
    return status;
}

tensor_buffer *tensor_buffer_take(tiga_tensors *ts, tiga_buffer *managed) {
    tensor_buffer *b = wrap(ts, tiga_buffer_bytes(managed));
    if (!b)
        return NULL;
    b->managed = managed;
    ts->counters.live_bytes += b->bytes;
    return b;
}

tensor_buffer *tensor_buffer_given(tiga_tensors *ts, void *data, int64_t bytes, void *owner, void (*release)(void *)) {
    tensor_buffer *b = wrap(ts, bytes);
    if (!b)
        return NULL;
    b->data = data;
    b->owner = owner;
    b->release = release;
    return b;
}

tensor_buffer *tensor_buffer_retain(tensor_buffer *b) {
    b->refs++;
    return b;
}

void tensor_buffer_put(tensor_buffer *b) {
    if (!b || --b->refs)
        return;
    tiga_tensors *ts = b->ts;
    if (b->managed) {
        ts->counters.live_bytes -= b->bytes;
        tiga_buffer_unpin(&b->pin); /* one that was never finished */
        tiga_buffer_free(b->managed);
    } else if (b->release) {
        b->release(b->owner);
    }
    base_free(b);
    tensor_home_put(ts);
}

tiga_status tensor_buffer_pin(tensor_buffer *b) {
    if (b->managed && b->pins == 0) {
        tiga_status status = tiga_buffer_pin(b->ts->ctx, b->managed, TIGA_READ, &b->pin);
        if (status != TIGA_OK)
            return status;
        b->data = b->pin.data;
    }
    b->pins++;
    return TIGA_OK;
}

void tensor_buffer_unpin(tensor_buffer *b) {
    if (--b->pins || !b->managed)
        return;
    b->data = NULL;
    tiga_buffer_unpin(&b->pin);
}

tiga_status tensor_pin(const tiga_tensor *x) { return x->buffer ? tensor_buffer_pin(x->buffer) : TIGA_OK; }

void tensor_unpin(const tiga_tensor *x) {
    if (x->buffer)
        tensor_buffer_unpin(x->buffer);
}

tiga_status tensor_pin_all(tiga_tensor *const *xs, size_t n) {
    tiga_status status = TIGA_OK;
    size_t done = 0;
    while (done < n && (status = tensor_pin(xs[done])) == TIGA_OK)
        done++;
    if (status != TIGA_OK)
        tensor_unpin_all(xs, done);
    return status;
}

void tensor_unpin_all(tiga_tensor *const *xs, size_t n) {
    for (size_t i = 0; i < n; i++)
        tensor_unpin(xs[i]);
}
