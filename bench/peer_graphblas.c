/* SuiteSparse:GraphBLAS on the same arrays: dense result = sparse * dense, semiring plus_times (weighted sum) or plus_second
 * (for the mean: the sum of neighbours; the division by the degree is left out of its time). */
#include <GraphBLAS.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct peer {
    GrB_Matrix a, x, y;
    GrB_Vector vx, vy; /* F = 1 */
    int F, threads;
} peer;

#define TRY(call)                                                                                                  \
    do {                                                                                                           \
        if ((call) != GrB_SUCCESS) return 0;                                                                       \
    } while (0)

static GrB_Matrix dense(int64_t rows, int64_t cols, const float *data) {
    GrB_Matrix m = NULL;
    size_t bytes = (size_t)(rows * cols) * sizeof(float);
    void *copy = malloc(bytes);
    if (!copy) return NULL;
    if (data) memcpy(copy, data, bytes);
    else memset(copy, 0, bytes);
    if (GxB_Matrix_import_FullR(&m, GrB_FP32, (GrB_Index)rows, (GrB_Index)cols, &copy, bytes, false, NULL) != GrB_SUCCESS)
        return NULL;
    return m;
}

static int vectors(peer *p, int64_t n, const float *x) {
    size_t bytes = (size_t)n * sizeof(float);
    void *copy = malloc(bytes);
    if (!copy) return 0;
    memcpy(copy, x, bytes);
    TRY(GxB_Vector_import_Full(&p->vx, GrB_FP32, (GrB_Index)n, &copy, bytes, false, NULL));
    TRY(GrB_Vector_new(&p->vy, GrB_FP32, (GrB_Index)n));
    return 1;
}

void *peer_new(int F, int threads, int64_t n, const int64_t *offsets, const int32_t *col, const float *w, const float *x) {
    static int started;
    if (!started++) TRY(GrB_init(GrB_NONBLOCKING));
    peer *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->F = F;
    p->threads = threads;
    int64_t n_edges = offsets[n];
    GrB_Index *ap = malloc(sizeof(GrB_Index) * (size_t)(n + 1)), *aj = malloc(sizeof(GrB_Index) * (size_t)n_edges);
    float *ax = malloc(sizeof(float) * (size_t)n_edges);
    for (int64_t i = 0; i <= n; i++) ap[i] = (GrB_Index)offsets[i];
    for (int64_t e = 0; e < n_edges; e++) aj[e] = (GrB_Index)col[e], ax[e] = w[e];
    TRY(GxB_Matrix_import_CSR(&p->a, GrB_FP32, (GrB_Index)n, (GrB_Index)n, &ap, &aj, (void **)&ax,
                              sizeof(GrB_Index) * (size_t)(n + 1), sizeof(GrB_Index) * (size_t)n_edges,
                              sizeof(float) * (size_t)n_edges, false, true, NULL));
    TRY(GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, threads));
    if (F == 1) return vectors(p, n, x) ? p : NULL;
    p->x = dense(n, F, x);
    p->y = dense(n, F, NULL);
    return p->x && p->y ? p : NULL;
}

int peer_run(void *handle, int mean) {
    peer *p = handle;
    GrB_Semiring s = mean ? GxB_PLUS_SECOND_FP32 : GrB_PLUS_TIMES_SEMIRING_FP32;
    if (p->F == 1) {
        if (GrB_mxv(p->vy, NULL, NULL, s, p->a, p->vx, NULL) != GrB_SUCCESS) return 1;
        return GrB_Vector_wait(p->vy, GrB_MATERIALIZE) != GrB_SUCCESS;
    }
    if (GrB_mxm(p->y, NULL, NULL, s, p->a, p->x, NULL) != GrB_SUCCESS) return 1;
    return GrB_Matrix_wait(p->y, GrB_MATERIALIZE) != GrB_SUCCESS;
}

/* The last result into float out[n][F], zeroed before. */
int peer_read(void *handle, int64_t n, float *out) {
    peer *p = handle;
    GrB_Index count = (GrB_Index)(n * p->F), i;
    GrB_Index *row = malloc(sizeof *row * (size_t)count), *col = malloc(sizeof *col * (size_t)count);
    float *value = malloc(sizeof *value * (size_t)count);
    GrB_Info info = GrB_OUT_OF_MEMORY;
    if (row && col && value)
        info = p->F == 1 ? GrB_Vector_extractTuples_FP32(row, value, &count, p->vy)
                         : GrB_Matrix_extractTuples_FP32(row, col, value, &count, p->y);
    for (i = 0; info == GrB_SUCCESS && i < count; i++) out[(int64_t)row[i] * p->F + (p->F == 1 ? 0 : (int64_t)col[i])] = value[i];
    free(row);
    free(col);
    free(value);
    return info != GrB_SUCCESS;
}

void peer_free(void *handle) {
    peer *p = handle;
    GrB_Matrix_free(&p->a);
    GrB_Matrix_free(&p->x);
    GrB_Matrix_free(&p->y);
    GrB_Vector_free(&p->vx);
    GrB_Vector_free(&p->vy);
    free(p);
}
