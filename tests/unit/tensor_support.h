/* For tests of tensors: a home, arrays, and what must not fail. */
#ifndef TENSOR_SUPPORT_H
#define TENSOR_SUPPORT_H

#include "tiga/tensor.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct home {
    tiga_context *ctx;
    tiga_cache *cache;
    tiga_tensors *ts;
} home;

/* interpret: elements that the interpreter takes; cache: 1, a cache in memory. */
static inline home home_new(int64_t interpret, int cache) {
    home h = {0};
    tiga_tensors_options o = tiga_tensors_defaults();
    tiga_cache_options c = tiga_cache_defaults();
    c.folder = "";
    cr_assert_eq(tiga_context_new(NULL, &h.ctx), TIGA_OK);
    if (cache)
        cr_assert_eq(tiga_cache_new(&c, &h.cache), TIGA_OK);
    o.interpret_elements = interpret;
    o.cache = h.cache;
    cr_assert_eq(tiga_tensors_new(h.ctx, &o, &h.ts), TIGA_OK);
    return h;
}

static inline void home_free(home *h) {
    tiga_tensors_free(h->ts);
    tiga_cache_free(h->cache);
    tiga_context_free(h->ctx);
}

/* A new folder, its name in folder[64]. */
static inline void folder_new(char *folder) {
    strcpy(folder, "/var/tmp/tiga-test-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
}

/* With the files in it. */
static inline void folder_free(const char *folder) {
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(folder);
}

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        tiga_status ok_status_ = (call);                                                                               \
        cr_assert_eq(ok_status_, TIGA_OK, "%s: %s", #call, tiga_error_text(h->ctx));                                   \
    } while (0)

/* The failure, and its words forgotten. */
#define FAILS(call, status, words)                                                                                     \
    do {                                                                                                               \
        cr_assert_eq((call), status, "%s", #call);                                                                     \
        cr_assert(strstr(tiga_error_text(h->ctx), words), "'%s' lacks '%s'", tiga_error_text(h->ctx), words);          \
        tiga_error_clear(h->ctx);                                                                                      \
    } while (0)

#define FREE(...)                                                                                                      \
    do {                                                                                                               \
        tiga_tensor *free_[] = {__VA_ARGS__};                                                                          \
        for (size_t free_i_ = 0; free_i_ < sizeof free_ / sizeof *free_; free_i_++)                                    \
            tiga_tensor_free(free_[free_i_]);                                                                          \
    } while (0)

#define SHAPE(...)                                                                                                     \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]) { __VA_ARGS__ }

/* f32 of the given shape: 0.5, 1.5, ... shuffled by a prime, and some are negative. */
static inline tiga_tensor *filled(home *h, int32_t rank, const int64_t *shape, int seed) {
    float *data;
    int64_t n = 1;
    tiga_tensor *x;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    data = malloc((size_t)(n + 1) * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)((i * 7919 + seed * 104729) % 41 - 17) / 8;
    tiga_array a = tiga_array_borrow(data, TIGA_F32, rank, shape);
    OK(tiga_tensor_from(h->ts, &a, TIGA_COPY, &x));
    free(data);
    return x;
}

static inline tiga_tensor *op2(home *h, const char *name, tiga_tensor *a, tiga_tensor *b) {
    tiga_tensor *x;
    OK(tiga_tensor_op(name, (tiga_tensor *[]){a, b}, 2, &x));
    return x;
}

static inline tiga_tensor *op1(home *h, const char *name, tiga_tensor *a) {
    tiga_tensor *x;
    OK(tiga_tensor_op(name, &a, 1, &x));
    return x;
}

static inline tiga_tensor *num(home *h, double v) {
    tiga_tensor *x;
    OK(tiga_tensor_number(h->ts, v, &x));
    return x;
}

static inline tiga_tensor *fold(home *h, const char *name, tiga_tensor *a, uint32_t axes, int keep) {
    tiga_tensor *x;
    OK(tiga_tensor_fold(a, name, axes, keep, &x));
    return x;
}

static inline const float *f32_of(home *h, tiga_tensor *x) {
    const tiga_array *a;
    OK(tiga_tensor_data(x, &a));
    cr_assert_eq(a->dtype, TIGA_F32);
    return a->data;
}

static inline int how_of(const tiga_tensor *x) { return tiga_tensor_get_execution(x).how; }

#endif
