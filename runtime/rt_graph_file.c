/* Reading a graph: which format it is, by content first and by name second. */
#include "runtime/runtime.h"

#include <string.h>
#include <strings.h>

tiga_status rt_rows_fit(tiga_context *ctx, const rt_text *t, int64_t at, int64_t n_rows) {
    int64_t n_bytes = (n_rows + 1) * 8;
    bool over = ctx->memory_limit > 0 && n_bytes > ctx->memory_limit;
    if (over || (n_bytes >= 64 << 20 && n_bytes > rt_mem_available()))
        return rt_text_fail(ctx, TIGA_E_MEMORY, t, at, "a graph of %lld rows needs %.1f GiB for the rows alone",
                            (long long)n_rows, (double)n_bytes / (1 << 30));
    return TIGA_OK;
}

static bool ends_with(const char *name, const char *ending) {
    size_t n = strlen(name), k = strlen(ending);
    return n >= k && strcasecmp(name + n - k, ending) == 0;
}

static bool begins_with(const rt_text *t, const char *bytes, size_t n) {
    return t->len >= (int64_t)n && memcmp(t->data, bytes, n) == 0;
}

static bool binary(const rt_text *t) {
    int64_t n = t->len < 4096 ? t->len : 4096;
    for (int64_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)t->data[i];
        if (c < 32 && c != '\n' && c != '\t' && c != '\r' && c != '\f')
            return true;
    }
    return false;
}

static tiga_status parse_text(tiga_context *ctx, const rt_text *whole, const rt_progress *p, tiga_graph **out,
                              tiga_array *values) {
    rt_text without_mark = *whole;
    const rt_text *t = &without_mark;
    if (begins_with(whole, "\xef\xbb\xbf", 3)) { /* the byte order mark that some editors put before UTF-8 */
        without_mark.data += 3;
        without_mark.len -= 3;
    }
    if (begins_with(t, "%%MatrixMarket", 14))
        return rt_mtx_parse(ctx, t, p, out, values);
    if (ends_with(t->name, ".mtx") || ends_with(t->name, ".mtx.gz"))
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, 0, "a Matrix Market file begins with %%%%MatrixMarket");
    if (begins_with(t, "\x93NUMPY", 6))
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: is a numpy array, not a graph", t->name);
    if (binary(t))
        return rt_fail(ctx, TIGA_E_FORMAT,
                       "%s: is neither text nor a format known here (Matrix Market, edge list, SciPy .npz)", t->name);
    return rt_edgelist_parse(ctx, t, p, out, values);
}

static tiga_status parse(tiga_context *ctx, rt_text *t, const rt_progress *p, tiga_graph **out, tiga_array *values) {
    if (begins_with(t, "PK\3\4", 4) || begins_with(t, "PK\5\6", 4))
        return rt_npz_parse(ctx, t, out, values);
    if (ends_with(t->name, ".npz"))
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: not an .npz file (no zip archive)", t->name);
    if (rt_text_is_gzip(t)) {
        tiga_status status = rt_text_gunzip(ctx, t);
        if (status != TIGA_OK)
            return status;
    } else if (ends_with(t->name, ".gz")) {
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: not gzip data", t->name);
    }
    return parse_text(ctx, t, p, out, values);
}

tiga_status rt_graph_parse(tiga_context *ctx, const char *name, const void *bytes, int64_t n, tiga_graph **out,
                           tiga_array *values) {
    *out = NULL;
    if (values)
        memset(values, 0, sizeof *values);
    rt_text t = {.data = base_alloc((size_t)n + 1), .len = n, .name = name};
    if (!t.data)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", name);
    if (n)
        memcpy(t.data, bytes, (size_t)n);
    t.data[n] = 0;
    tiga_status status = parse(ctx, &t, NULL, out, values);
    rt_text_fini(&t);
    return status;
}

tiga_status tiga_graph_read(tiga_context *ctx, const char *path, const tiga_graph_file_options *options,
                            tiga_graph **out, tiga_array *values) {
    if (!ctx || !path || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_graph_read: an argument is NULL");
    *out = NULL;
    if (values)
        memset(values, 0, sizeof *values);
    if (options && options->struct_bytes < sizeof *options)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_graph_read: options.struct_bytes is not set");
    RT_TURN(ctx);
    rt_begin(ctx);
    rt_progress p = {options, 0, 0.3};
    rt_text t;
    tiga_status status = rt_text_read(ctx, path, &p, &t);
    if (status != TIGA_OK)
        return status;
    p = (rt_progress){options, 0.3, 0.5};
    status = parse(ctx, &t, &p, out, values);
    rt_text_fini(&t);
    if (status == TIGA_OK)
        rt_progress_report(&(rt_progress){options, 1, 0}, 0);
    return status;
}
