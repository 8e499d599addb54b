/* The largest rows of a result, with names when there is a file of them. */
#include "driver/drv_tiga.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

typedef struct row {
    int64_t index;
    double value;
} row;

static double value_at(const tiga_array *a, int64_t k) {
    switch (a->dtype) {
    case TIGA_BOOL:
    case TIGA_U8:
        return ((const uint8_t *)a->data)[k];
    case TIGA_I8:
        return ((const int8_t *)a->data)[k];
    case TIGA_F16:
        return (double)base_f32_from_f16(((const uint16_t *)a->data)[k]);
    case TIGA_BF16:
        return (double)base_f32_from_bf16(((const uint16_t *)a->data)[k]);
    case TIGA_I32:
        return ((const int32_t *)a->data)[k];
    case TIGA_I64:
        return (double)((const int64_t *)a->data)[k];
    case TIGA_F32:
        return (double)((const float *)a->data)[k];
    default:
        return ((const double *)a->data)[k];
    }
}

/* Larger first, then the earlier row; NaN last. */
static bool before(row a, row b) {
    if (isnan(a.value) || isnan(b.value))
        return isnan(a.value) == isnan(b.value) ? a.index < b.index : isnan(b.value);
    return a.value != b.value ? a.value > b.value : a.index < b.index;
}

static int64_t select_top(const tiga_array *a, int64_t n, row *top) {
    int64_t have = 0;
    for (int64_t k = 0; k < a->shape[0]; k++) {
        row r = {k, value_at(a, k)};
        if (have == n && !before(r, top[n - 1]))
            continue;
        int64_t at = have < n ? have++ : n - 1;
        for (; at > 0 && before(r, top[at - 1]); at--)
            top[at] = top[at - 1];
        top[at] = r;
    }
    return have;
}

/* Lines of a text file, gzipped or not; those asked for are kept, the number of lines is returned (-1: cannot read). */
static int64_t read_names(const char *path, const row *top, int64_t n, char **names) {
    gzFile f = gzopen(path, "rb");
    if (!f)
        return -1;
    char line[4096];
    int64_t index = 0;
    while (gzgets(f, line, sizeof line)) {
        size_t len = strcspn(line, "\r\n");
        for (int64_t i = 0; i < n; i++)
            if (top[i].index == index && !names[i] && (names[i] = base_alloc(len + 1))) {
                memcpy(names[i], line, len);
                names[i][len] = 0;
            }
        index += line[strcspn(line, "\n")] == '\n' || gzeof(f);
    }
    int status = Z_OK;
    gzerror(f, &status);
    gzclose(f);
    return status == Z_OK || status == Z_STREAM_END ? index : -1;
}

static int print_rows(const tiga_array *a, row *top, char **names, int64_t have, const char *names_path) {
    if (names_path) {
        int64_t lines = read_names(names_path, top, have, names);
        if (lines < 0)
            return drv_complain(EXIT_INPUT, "%s: cannot read", names_path);
        if (lines != a->shape[0])
            return drv_complain(EXIT_INPUT, "%s: %lld names for %lld rows", names_path, (long long)lines,
                                (long long)a->shape[0]);
    }
    for (int64_t i = 0; i < have; i++) {
        char index[32];
        snprintf(index, sizeof index, "%lld", (long long)top[i].index);
        printf("%4lld  %-32s %.9g\n", (long long)i + 1, names[i] ? names[i] : index, top[i].value);
    }
    return EXIT_OK;
}

int drv_print_top(tiga_context *ctx, const char *name, const tiga_array *a, int64_t n, const char *names_path) {
    (void)ctx;
    if (a->rank != 1)
        return drv_complain(EXIT_INPUT, "--top wants one number per row; '%s' has rank %d", name, (int)a->rank);
    if (a->dtype == TIGA_C64 || a->dtype == TIGA_C128)
        return drv_complain(EXIT_INPUT, "--top: complex numbers have no order; '%s' is %s", name,
                            drv_dtype_text(a->dtype));
    if (n > a->shape[0])
        n = a->shape[0];
    row *top = base_alloc_zero(sizeof *top * (size_t)n);
    char **names = base_alloc_zero(sizeof *names * (size_t)n);
    int code = EXIT_ENVIRONMENT;
    if (top && names) {
        int64_t have = select_top(a, n, top);
        code = print_rows(a, top, names, have, names_path);
        for (int64_t i = 0; i < have; i++)
            base_free(names[i]);
    } else {
        drv_complain(code, "out of memory");
    }
    base_free(top);
    base_free(names);
    return code;
}
