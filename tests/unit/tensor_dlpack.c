/* Memory lent to other libraries over DLPack: what it says, and that it is given back whenever and wherever. */
#include "tensor_support.h"

#include "base/base.h"

#include <pthread.h>

static home *const h = &(home){0};

static void begin(void) { *h = home_new(4096, 0); }
static void done(void) {
    cr_assert_eq(tiga_tensors_get_counters(h->ts).live_bytes, 0);
    home_free(h);
}
TestSuite(tensor_dlpack, .init = begin, .fini = done, .timeout = 120);

/* DLManagedTensor, as others declare it. */
typedef struct managed {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
    void *manager;
    void (*deleter)(struct managed *);
} managed;

static managed *lent(tiga_tensor *x) {
    void *m;
    OK(tiga_tensor_to_dlpack(x, &m));
    return m;
}

static tiga_tensor *ramp(int64_t n) {
    tiga_tensor *x;
    OK(tiga_tensor_arange(h->ts, TIGA_F32, 0, n, 1, &x));
    return x;
}

static int64_t pins(tiga_tensor *x) {
    tiga_residency r = {0};
    OK(tiga_tensor_residency(x, &r, NULL));
    return r.pins;
}

Test(tensor_dlpack, says_what_it_is) {
    tiga_tensor *line = ramp(6), *x, *turned;
    OK(tiga_tensor_reshape(line, 2, (int64_t[]){2, 3}, &x));
    OK(tiga_tensor_permute(x, NULL, &turned));
    managed *m = lent(turned); /* made dense */
    cr_assert(m->device_type == 1 && m->device_id == 0 && m->ndim == 2 && m->lanes == 1 && m->byte_offset == 0);
    cr_assert(m->code == 2 && m->bits == 32 && m->shape[0] == 3 && m->shape[1] == 2);
    cr_assert(m->strides[0] == 2 && m->strides[1] == 1);
    cr_assert(((float *)m->data)[1] == 3 && ((float *)m->data)[2] == 1);
    tiga_tensor_free(turned);
    tiga_tensor_free(x);
    tiga_tensor_free(line);
    cr_assert_eq(((float *)m->data)[5], 5); /* kept by who looks at it */
    m->deleter(m);
}

Test(tensor_dlpack, every_element_type) {
    static const uint8_t code[] = {
        [TIGA_BOOL] = 6, [TIGA_I8] = 0,  [TIGA_U8] = 1,  [TIGA_I32] = 0, [TIGA_I64] = 0, [TIGA_F16] = 2,
        [TIGA_BF16] = 4, [TIGA_F32] = 2, [TIGA_F64] = 2, [TIGA_C64] = 5, [TIGA_C128] = 5};
    tiga_tensor *x = ramp(4);
    for (int32_t t = 0; t < (int32_t)sizeof code; t++) {
        tiga_tensor *y;
        OK(tiga_tensor_cast(x, t, &y));
        managed *m = lent(y);
        cr_assert(m->code == code[t] && m->bits == 8 * tiga_dtype_bytes(t), "type %d: code %d, %d bits", (int)t,
                  m->code, m->bits);
        m->deleter(m);
        tiga_tensor_free(y);
    }
    tiga_tensor_free(x);
}

Test(tensor_dlpack, numbers_and_nothing) {
    tiga_tensor *number, *none;
    OK(tiga_tensor_number(h->ts, 2.5, &number));
    OK(tiga_tensor_full(h->ts, TIGA_F32, 3, (int64_t[]){2, 0, 3}, 1, &none));
    managed *m = lent(number), *n = lent(none);
    cr_assert(m->ndim == 0 && *(double *)m->data == 2.5);
    cr_assert(n->ndim == 3 && n->shape[1] == 0);
    m->deleter(m);
    n->deleter(n);
    tiga_tensor_free(number);
    tiga_tensor_free(none);
}

Test(tensor_dlpack, comes_back_at_the_next_operation) {
    tiga_tensor *x = ramp(100);
    OK(tiga_tensor_realize(&x, 1));
    managed *m[3] = {lent(x), lent(x), lent(x)};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(pins(x), 1); /* of the buffer: however many look at it */
        m[i]->deleter(m[i]);
    }
    cr_assert_eq(pins(x), 0);
    managed *last = lent(x);
    tiga_tensor_free(x);
    last->deleter(last); /* the last owner: see done() */
}

Test(tensor_dlpack, wrong_arguments) {
    tiga_tensor *x = ramp(3);
    void *m = x;
    cr_assert_eq(tiga_tensor_to_dlpack(NULL, &m), TIGA_E_ARGUMENT);
    cr_assert_null(m);
    cr_assert_eq(tiga_tensor_to_dlpack(x, NULL), TIGA_E_ARGUMENT);
    tiga_error_clear(h->ctx);
    tiga_tensor_free(x);
}

Test(tensor_dlpack, out_of_memory) {
    for (int64_t nth = 1;; nth++) {
        tiga_tensor *x = ramp(10);
        void *m;
        base_inject_at(BASE_INJECT_ALLOC, nth);
        tiga_status status = tiga_tensor_to_dlpack(x, &m);
        bool reached = base_inject_count(BASE_INJECT_ALLOC) >= nth;
        base_inject_at(BASE_INJECT_ALLOC, 0);
        cr_assert(status == TIGA_OK ? m != NULL : status == TIGA_E_MEMORY && m == NULL, "allocation %lld",
                  (long long)nth);
        if (m)
            ((managed *)m)->deleter(m);
        tiga_error_clear(h->ctx);
        tiga_tensor_free(x);
        if (!reached)
            break;
    }
}

enum { LENT = 2000 };
static managed *box[LENT];

static void *give_back(void *from) {
    for (int i = *(int *)from; i < LENT; i += 2)
        box[i]->deleter(box[i]);
    return NULL;
}

/* Two threads give back while this one computes. */
Test(tensor_dlpack, from_any_thread) {
    tiga_tensor *x = ramp(64);
    for (int i = 0; i < LENT; i++)
        box[i] = lent(x);
    pthread_t t[2];
    int first[2] = {0, 1};
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&t[i], NULL, give_back, &first[i]), 0);
    for (int i = 0; i < 200; i++) {
        tiga_tensor *y;
        float out[64];
        OK(tiga_tensor_op("add", (tiga_tensor *[]){x, x}, 2, &y));
        OK(tiga_tensor_copy_to(y, out, sizeof out));
        cr_assert_eq(out[63], 126);
        tiga_tensor_free(y);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    cr_assert_eq(pins(x), 0);
    tiga_tensor_free(x);
}

/* No Python is in this process: nothing to do, and nothing happens. */
Test(tensor_dlpack, a_capsule_without_python) { tiga_tensor_capsule_end(NULL); }
