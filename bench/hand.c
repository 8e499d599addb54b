/* The bar: weighted sum and mean written by hand for each width, with vector-register accumulators, prefetch of the rows
 * of later edges, 16 partial sums for one feature, and rows cut into chunks of equal edges.  Nothing is general here. */
#include <stdint.h>
#include <string.h>

typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));

enum { CHUNK_EDGES = 1 << 15, AHEAD = 16 };

static int64_t row_of_edge(const int64_t *offsets, int64_t n_rows, int64_t edge) {
    int64_t lo = 0, hi = n_rows;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (offsets[mid] < edge) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

#define ROWS(F, NAME, WEIGHT, FINISH)                                                                              \
    static void NAME##_rows_##F(int64_t begin, int64_t end, const int64_t *offsets, const int32_t *col,            \
                                const float *w, const float *x, float *out) {                                      \
        const int64_t last = offsets[end];                                                                         \
        for (int64_t i = begin; i < end; i++) {                                                                    \
            v16 acc[F / 16];                                                                                       \
            for (int k = 0; k < F / 16; k++) acc[k] = (v16){0};                                                    \
            for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) {                                                \
                if (e + AHEAD < last)                                                                              \
                    for (int k = 0; k < F; k += 16) __builtin_prefetch(x + (int64_t)col[e + AHEAD] * F + k);       \
                const float *row = x + (int64_t)col[e] * F;                                                        \
                _Pragma("GCC unroll 8") for (int k = 0; k < F / 16; k++)                                           \
                    acc[k] += WEIGHT *(const v16 *)(row + 16 * k);                                                 \
            }                                                                                                      \
            const float n = (float)(offsets[i + 1] - offsets[i]);                                                  \
            (void)n;                                                                                               \
            _Pragma("GCC unroll 8") for (int k = 0; k < F / 16; k++) *(v16 *)(out + i * F + 16 * k) = acc[k] FINISH; \
        }                                                                                                          \
    }
#define BOTH(F) ROWS(F, weighted, w[e] *, ) ROWS(F, mean, , / n)
BOTH(16)
BOTH(32)
BOTH(64)
BOTH(128)

static void weighted_rows_1(int64_t begin, int64_t end, const int64_t *offsets, const int32_t *col, const float *w,
                            const float *x, float *out) {
    for (int64_t i = begin; i < end; i++) {
        float p[16] = {0};
        int64_t e = offsets[i];
        for (; e + 16 <= offsets[i + 1]; e += 16)
            for (int l = 0; l < 16; l++) p[l] += w[e + l] * x[col[e + l]];
        for (int l = 0; e < offsets[i + 1]; e++, l++) p[l] += w[e] * x[col[e]];
        for (int h = 8; h; h /= 2)
            for (int l = 0; l < h; l++) p[l] += p[l + h];
        out[i] = p[0];
    }
}

static void mean_rows_1(int64_t begin, int64_t end, const int64_t *offsets, const int32_t *col, const float *w,
                        const float *x, float *out) {
    (void)w;
    for (int64_t i = begin; i < end; i++) {
        float p[16] = {0};
        int64_t e = offsets[i];
        for (; e + 16 <= offsets[i + 1]; e += 16)
            for (int l = 0; l < 16; l++) p[l] += x[col[e + l]];
        for (int l = 0; e < offsets[i + 1]; e++, l++) p[l] += x[col[e]];
        for (int h = 8; h; h /= 2)
            for (int l = 0; l < h; l++) p[l] += p[l + h];
        out[i] = p[0] / (float)(offsets[i + 1] - offsets[i]);
    }
}

typedef void rows_fn(int64_t, int64_t, const int64_t *, const int32_t *, const float *, const float *, float *);

static rows_fn *choose(int mean, int F) {
    switch (F) {
    case 1: return mean ? mean_rows_1 : weighted_rows_1;
    case 16: return mean ? mean_rows_16 : weighted_rows_16;
    case 32: return mean ? mean_rows_32 : weighted_rows_32;
    case 64: return mean ? mean_rows_64 : weighted_rows_64;
    case 128: return mean ? mean_rows_128 : weighted_rows_128;
    default: return 0;
    }
}

int hand_run(int mean, int F, int threads, int64_t n_rows, const int64_t *offsets, const int32_t *col, const float *w,
             const float *x, float *out) {
    rows_fn *fn = choose(mean, F);
    if (!fn) return 1;
    const int64_t n_edges = offsets[n_rows], cost = n_edges + n_rows;
    const int64_t n_chunks = cost / CHUNK_EDGES + 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t c = 0; c < n_chunks; c++) {
        int64_t begin = c == 0 ? 0 : row_of_edge(offsets, n_rows, n_edges * c / n_chunks);
        int64_t end = c + 1 == n_chunks ? n_rows : row_of_edge(offsets, n_rows, n_edges * (c + 1) / n_chunks);
        if (begin < end) fn(begin, end, offsets, col, w, x, out);
    }
    return 0;
}

/* The machine's own rate of gathering rows of F floats in the order of `col`: adds every float, keeps nothing. */
double hand_gather(int F, int threads, int64_t n, const int32_t *col, const float *x) {
    double total = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : total)
    for (int64_t e = 0; e < n; e++) {
        const float *row = x + (int64_t)col[e] * F;
        if (e + AHEAD < n)
            for (int k = 0; k < F; k += 16) __builtin_prefetch(x + (int64_t)col[e + AHEAD] * F + k);
        if (F < 16) {
            total += row[0];
            continue;
        }
        v16 s = {0};
        for (int k = 0; k < F; k += 16) s += *(const v16 *)(row + k);
        total += s[0];
    }
    return total;
}
