/* Where a mask holds: the one operation whose result has a size that depends on elements, so it looks at once. */
#include "tensor/tensor.h"

static int64_t count_true(const uint8_t *mask, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += mask[i] != 0;
    return count;
}

/* `count` of them are true. */
static void number_true(const uint8_t *mask, int64_t count, int64_t *to) {
    for (int64_t i = 0, k = 0; k < count; i++)
        if (mask[i])
            to[k++] = i;
}

tiga_status tiga_tensor_nonzero(tiga_tensor *mask, tiga_tensor **out) {
    TENSOR_TURN(tiga_tensor_home(mask));
    tiga_tensors *ts = tensor_begin(mask, out, "tiga_tensor_nonzero");
    if (!ts)
        return TIGA_E_ARGUMENT;
    if (mask->dtype != TIGA_BOOL)
        return tensor_fail(ts, TIGA_E_TYPE, "tiga_tensor_nonzero: of %s; only of bool", tiga_dtype_text(mask->dtype));
    const tiga_array *a;
    tiga_status status = tiga_tensor_pin(mask, &a);
    if (status != TIGA_OK)
        return status;
    int64_t count = count_true(a->data, tiga_tensor_size(mask));
    status = tensor_fresh(ts, TIGA_I64, 1, &count, out);
    if (status == TIGA_OK) {
        number_true(a->data, count, (*out)->buffer->data);
        tensor_unpin(*out);
    }
    tiga_tensor_unpin(mask);
    return status;
}
