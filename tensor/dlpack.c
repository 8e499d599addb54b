/* Tensors for other libraries over DLPack, and back when they are done with them.
 *
 * The consumer lets go on any thread and at any time: in the middle of an operation of ours, or where its language must not
 * run code.  So the deleter waits for nobody, allocates nothing and frees nothing: it puts what came back on a list of the
 * tiga_tensors, and the next turn ends it. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "tensor/tensor.h"

#include <dlfcn.h>
#include <string.h>

/* ---- DLPack 0: as its specification lays it out ---- */
typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor t;
    void *manager;
    void (*deleter)(struct dl_managed *);
} dl_managed;

enum { DL_CPU = 1, DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };

struct tensor_export {
    dl_managed managed;
    int64_t shape[TENSOR_MAX_RANK + 1], strides[TENSOR_MAX_RANK + 1];
    tiga_tensor *x; /* pinned once, owned once */
    tensor_export *next;
};

static uint8_t code_of(int32_t dtype) {
    switch ((ir_dtype)dtype) {
    case IR_BF16:
        return DL_BFLOAT;
    case IR_F16:
    case IR_F32:
    case IR_F64:
        return DL_FLOAT;
    case IR_C64:
    case IR_C128:
        return DL_COMPLEX;
    case IR_BOOL:
        return DL_BOOL;
    case IR_U8:
        return DL_UINT;
    case IR_I8:
    case IR_I32:
    case IR_I64:
        return DL_INT;
    case IR_NONE:
    case IR_TUPLE:
    case IR_GRAPH:
    case IR_INSTANCE_T:
        break;
    }
    BASE_BUG("a tensor of element type %d", (int)dtype);
}

static void come_back(dl_managed *m) {
    if (!m)
        return;
    tensor_export *e = m->manager;
    _Atomic(tensor_export *) *list = &e->x->ts->back;
    e->next = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &e->next, e))
        ;
}

void tensor_take_back(tiga_tensors *ts) {
    ts->refs++; /* what comes back may be the last owner */
    tensor_export *e = atomic_exchange(&ts->back, NULL);
    while (e) {
        tensor_export *next = e->next;
        tensor_unwatch(e->x);
        tensor_free(e->x);
        base_free(e);
        e = next;
    }
    tensor_home_put(ts);
}

static void fill(tensor_export *e, const tiga_array *a) {
    int64_t step = 1;
    for (int32_t i = a->rank; i-- > 0; step = tensor_times(step, a->shape[i])) {
        e->shape[i] = a->shape[i];
        e->strides[i] = step;
    }
    e->managed = (dl_managed){.t = {.data = a->data,
                                    .device_type = DL_CPU,
                                    .ndim = a->rank,
                                    .code = code_of(a->dtype),
                                    .bits = (uint8_t)(8 * tiga_dtype_bytes(a->dtype)),
                                    .lanes = 1,
                                    .shape = e->shape,
                                    .strides = e->strides},
                              .manager = e,
                              .deleter = come_back};
}

tiga_status tiga_tensor_to_dlpack(tiga_tensor *x, void **managed) {
    TENSOR_TURN(tiga_tensor_home(x));
    const tiga_array *a;
    if (managed)
        *managed = NULL;
    if (!x || !managed)
        return x ? tensor_fail(x->ts, TIGA_E_ARGUMENT, "tiga_tensor_to_dlpack: managed is NULL") : TIGA_E_ARGUMENT;
    tensor_export *e = base_alloc_zero(sizeof *e);
    if (!e)
        return tensor_fail(x->ts, TIGA_E_MEMORY, "tiga_tensor_to_dlpack: out of memory");
    tiga_status status = tiga_tensor_pin(x, &a);
    if (status != TIGA_OK) {
        base_free(e);
        return status;
    }
    e->x = tensor_retain(x);
    fill(e, a);
    *managed = &e->managed;
    return TIGA_OK;
}

/* ---- capsules of Python ---- */
void tiga_tensor_capsule_end(void *capsule) {
    int (*is_valid)(void *, const char *);
    void *(*get_pointer)(void *, const char *);
    void *at[2] = {dlsym(RTLD_DEFAULT, "PyCapsule_IsValid"), dlsym(RTLD_DEFAULT, "PyCapsule_GetPointer")};
    if (!at[0] || !at[1])
        return;
    memcpy(&is_valid, &at[0], sizeof is_valid);
    memcpy(&get_pointer, &at[1], sizeof get_pointer);
    if (!is_valid(capsule, "dltensor")) /* somebody took it, and calls the deleter himself */
        return;
    dl_managed *m = get_pointer(capsule, "dltensor");
    m->deleter(m);
}
