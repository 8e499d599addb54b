/* Arrays from the command line, and back: .npy files, constants, values of the graph file, degrees.
 *
 * An array of edges is in row order, as everywhere in Tiga; with --edge-order=file it is in the order of the graph's file and
 * is permuted here. */
#include "driver/drv_tiga.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *drv_role_text(int32_t at) {
    static const char *const names[] = {"src", "dst", "node", "edge", "param", "graph"};
    return at >= 0 && at <= TIGA_AT_GRAPH ? names[at] : "unknown role";
}

const char *drv_dtype_text(int32_t d) { return tiga_dtype_bytes(d) ? tiga_dtype_text(d) : "unknown type"; }

size_t drv_dtype_bytes(int32_t d) { return (size_t)tiga_dtype_bytes(d); }

/* What an element of an integer type can hold; false: no integer type. */
static bool integer_limits(int32_t dtype, int64_t *least, int64_t *most) {
    bool is_signed = dtype != TIGA_U8;
    if (dtype != TIGA_I8 && dtype != TIGA_U8 && dtype != TIGA_I32 && dtype != TIGA_I64)
        return false;
    *most = INT64_MAX >> (64 - 8 * tiga_dtype_bytes(dtype) - !is_signed);
    *least = is_signed ? -*most - 1 : 0;
    return true;
}

/* ---- one number ---------------------------------------------------------------------------------------------------- */
/* Element k: a float type takes d, another one i. */
static void store(void *data, int64_t k, int32_t dtype, double d, int64_t i) {
    switch (dtype) {
    case TIGA_BOOL:
        ((uint8_t *)data)[k] = d != 0;
        break;
    case TIGA_I8:
    case TIGA_U8:
        ((uint8_t *)data)[k] = (uint8_t)i;
        break;
    case TIGA_I32:
        ((int32_t *)data)[k] = (int32_t)i;
        break;
    case TIGA_I64:
        ((int64_t *)data)[k] = i;
        break;
    case TIGA_F16:
        ((uint16_t *)data)[k] = base_f16_from_f32((float)d);
        break;
    case TIGA_BF16:
        ((uint16_t *)data)[k] = base_bf16_from_f32((float)d);
        break;
    case TIGA_F32:
        ((float *)data)[k] = (float)d;
        break;
    case TIGA_C64:
        ((tiga_c64 *)data)[k] = (tiga_c64){(float)d, 0};
        break;
    case TIGA_C128:
        ((tiga_c128 *)data)[k] = (tiga_c128){d, 0};
        break;
    default:
        ((double *)data)[k] = d;
        break;
    }
}

static bool is_complex(int32_t dtype) { return dtype == TIGA_C64 || dtype == TIGA_C128; }

/* "1.5", "-2i", "1.5-2i" */
static bool parse_complex(const char *text, tiga_c128 *out) {
    char *end;
    *out = (tiga_c128){0, 0};
    double first = strtod(text, &end);
    if (end == text)
        return false;
    if (end[0] == 'i' && !end[1]) {
        out->im = first;
        return true;
    }
    out->re = first;
    if (!*end)
        return true;
    const char *rest = end;
    if (*rest != '+' && *rest != '-')
        return false;
    out->im = strtod(rest, &end);
    return end != rest && end[0] == 'i' && !end[1];
}

static bool parse_number(const char *text, int32_t dtype, double *d, int64_t *i) {
    char *end;
    int64_t least, most;
    errno = 0;
    *i = 0;
    if (dtype == TIGA_BOOL) {
        *d = !strcmp(text, "true") || !strcmp(text, "1");
        return *d != 0 || !strcmp(text, "false") || !strcmp(text, "0");
    }
    if (integer_limits(dtype, &least, &most)) {
        *i = strtoll(text, &end, 10);
        *d = (double)*i;
        return end != text && !*end && !errno && *i >= least && *i <= most;
    }
    *d = dtype == TIGA_F64 ? strtod(text, &end) : (double)strtof(text, &end); /* rounded once */
    return end != text && !*end;
}

/* Is d, rounded to the type, no number any more?  1e39 in f32, 70000 in f16. */
static bool overflows(int32_t dtype, double d) {
    switch (dtype) {
    case TIGA_F16:
        return isinf(base_f32_from_f16(base_f16_from_f32((float)d)));
    case TIGA_BF16:
        return isinf(base_f32_from_bf16(base_bf16_from_f32((float)d)));
    case TIGA_F32:
    case TIGA_C64:
        return isinf((float)d);
    default:
        return dtype != TIGA_BOOL && isinf(d);
    }
}

/* Of a number written in digits; `inf` and `nan` are meant.  Too small is 0, as in the language. */
static bool too_large(const char *text, int32_t dtype, const double *d, int n) {
    bool large = false;
    for (int k = 0; k < n && !strpbrk(text, "nN"); k++)
        large |= overflows(dtype, d[k]);
    return large;
}

/* ---- shapes -------------------------------------------------------------------------------------------------------- */
static int64_t axis_length(const tiga_field_info *f, const tiga_csr *csr) {
    if (f->at == TIGA_AT_EDGE)
        return csr->n_edges;
    return f->at == TIGA_AT_DST ? csr->n_dst : csr->n_src;
}

/* The whole shape of a field whose features are constants. */
static int constant_shape(const tiga_field_info *f, const drv_value_source *from, int64_t *shape, int32_t *rank) {
    *rank = 0;
    if (f->at != TIGA_AT_PARAM) {
        if (!from->graph)
            return drv_complain(EXIT_USAGE, "'%s' needs --graph", f->text);
        shape[(*rank)++] = axis_length(f, tiga_graph_csr(from->graph));
    }
    for (int32_t i = 0; i < f->rank; i++) {
        if (f->shape[i] < 0)
            return drv_complain(EXIT_INPUT,
                                "'%s' has an open dimension: a number cannot stand for the whole array, give "
                                "a .npy file (or fix the dimension with -D)",
                                f->text);
        shape[(*rank)++] = f->shape[i];
    }
    return EXIT_OK;
}

static int new_array(tiga_context *ctx, const tiga_field_info *f, const drv_value_source *from, tiga_array *out) {
    int64_t shape[7];
    int32_t rank;
    int code = constant_shape(f, from, shape, &rank);
    if (code)
        return code;
    tiga_status s = tiga_array_new(ctx, f->dtype, rank, shape, out);
    return s ? drv_complain_status(ctx, s) : EXIT_OK;
}

static int64_t count(const tiga_array *a) {
    int64_t n = 1;
    for (int32_t i = 0; i < a->rank; i++)
        n *= a->shape[i];
    return n;
}

/* ---- kinds of values ----------------------------------------------------------------------------------------------- */
static int fill(tiga_context *ctx, const tiga_field_info *f, const char *text, const drv_value_source *from,
                tiga_array *out) {
    double d = 0;
    int64_t i = 0;
    tiga_c128 z = {0, 0};
    bool complex = is_complex(f->dtype);
    bool read = complex ? parse_complex(text, &z) : parse_number(text, f->dtype, &d, &i);
    if (read && too_large(text, f->dtype, complex ? (double[]){z.re, z.im} : (double[]){d, 0}, 2))
        return drv_complain(EXIT_INPUT, "'%s' is too large for %s (for '%s')", text, drv_dtype_text(f->dtype), f->text);
    if (!read)
        return drv_complain(EXIT_INPUT, "'%s' is neither a .npy file nor a value of type %s (for '%s')", text,
                            drv_dtype_text(f->dtype), f->text);
    int code = new_array(ctx, f, from, out);
    if (code)
        return code;
    for (int64_t k = 0, n = count(out); k < n; k++) {
        if (f->dtype == TIGA_C64)
            ((tiga_c64 *)out->data)[k] = (tiga_c64){(float)z.re, (float)z.im};
        else if (complex)
            ((tiga_c128 *)out->data)[k] = z;
        else
            store(out->data, k, f->dtype, d, i);
    }
    return EXIT_OK;
}

static int copy_stored(const tiga_field_info *f, const tiga_array *have, bool whole, tiga_array *out) {
    int64_t least, most;
    bool integer = integer_limits(f->dtype, &least, &most);
    for (int64_t k = 0, n = count(out); k < n; k++) {
        double d = whole ? (double)((const int64_t *)have->data)[k] : ((const double *)have->data)[k];
        int64_t i = whole ? ((const int64_t *)have->data)[k] : isfinite(d) && fabs(d) < 0x1p62 ? (int64_t)d : 0;
        if (integer ? (!whole && (double)i != d) || i < least || i > most : isfinite(d) && overflows(f->dtype, d))
            return drv_complain(EXIT_INPUT, "'%s=@': value %.17g of the graph file does not fit into %s", f->name, d,
                                drv_dtype_text(f->dtype));
        store(out->data, k, f->dtype, d, i);
    }
    return EXIT_OK;
}

static int from_stored(tiga_context *ctx, const tiga_field_info *f, const drv_value_source *from, tiga_array *out) {
    if (f->at != TIGA_AT_EDGE || f->rank)
        return drv_complain(EXIT_INPUT, "'@' is one value per edge of the graph file; '%s' is not", f->text);
    if (!from->stored || !from->stored->data)
        return drv_complain(EXIT_INPUT, "'%s=@': the graph file has no values", f->name);
    const tiga_array *have = from->stored;
    if (is_complex(f->dtype)) {
        tiga_status converted = tiga_array_convert(ctx, have, f->dtype, out);
        return converted ? drv_complain_status(ctx, converted) : EXIT_OK;
    }
    if (is_complex(have->dtype))
        return drv_complain(EXIT_INPUT, "'%s=@': the values of the graph file are complex (%s), '%s' is %s", f->name,
                            drv_dtype_text(have->dtype), f->name, drv_dtype_text(f->dtype));
    int code = new_array(ctx, f, from, out);
    if (code)
        return code;
    bool whole = have->dtype == TIGA_BOOL || integer_limits(have->dtype, &(int64_t){0}, &(int64_t){0});
    tiga_array wide; /* exact: every float type fits into f64 */
    tiga_status s = tiga_array_convert(ctx, have, whole ? TIGA_I64 : TIGA_F64, &wide);
    if (s)
        return drv_complain_status(ctx, s);
    code = copy_stored(f, &wide, whole, out);
    tiga_array_free(&wide);
    return code;
}

static int degrees(tiga_context *ctx, const tiga_field_info *f, bool incoming, const drv_value_source *from,
                   tiga_array *out) {
    bool is_node = f->at == TIGA_AT_SRC || f->at == TIGA_AT_DST || f->at == TIGA_AT_NODE;
    bool fits = from->square ? is_node : f->at == (incoming ? TIGA_AT_DST : TIGA_AT_SRC);
    if (!fits || f->rank)
        return drv_complain(EXIT_INPUT, "'@%sdegree' is one value per %s; '%s' is not", incoming ? "in" : "out",
                            incoming ? "row" : "source", f->text);
    int code = new_array(ctx, f, from, out);
    if (code)
        return code;
    const tiga_csr *csr = tiga_graph_csr(from->graph);
    if (!incoming) {
        tiga_status s = tiga_graph_transposed(ctx, from->graph, &csr, NULL);
        if (s)
            return drv_complain_status(ctx, s);
    }
    int64_t least, most;
    bool integer = integer_limits(f->dtype, &least, &most);
    for (int64_t k = 0; k < csr->n_dst; k++) {
        int64_t d = csr->offsets[k + 1] - csr->offsets[k];
        if (integer && d > most)
            return drv_complain(EXIT_INPUT, "'%s': a degree of %lld does not fit into %s", f->name, (long long)d,
                                tiga_dtype_text(f->dtype));
        store(out->data, k, f->dtype, (double)d, d);
    }
    return EXIT_OK;
}

/* ---- order of edges ------------------------------------------------------------------------------------------------ */
static int reorder(tiga_context *ctx, const drv_value_source *from, bool to_rows, tiga_array *a) {
    const int64_t *order = from->graph ? tiga_graph_edge_order(from->graph) : NULL;
    if (!order || a->rank < 1 || a->shape[0] != tiga_graph_csr(from->graph)->n_edges || !a->shape[0])
        return EXIT_OK; /* row order is file order, or a size that the call will complain about */
    tiga_array moved;
    tiga_status s = tiga_array_new(ctx, a->dtype, a->rank, a->shape, &moved);
    if (s)
        return drv_complain_status(ctx, s);
    size_t size = (size_t)(tiga_array_bytes(a) / a->shape[0]);
    for (int64_t k = 0; k < a->shape[0]; k++) {
        int64_t to = to_rows ? k : order[k], at = to_rows ? order[k] : k;
        memcpy((char *)moved.data + (size_t)to * size, (char *)a->data + (size_t)at * size, size);
    }
    tiga_array_free(a);
    *a = moved;
    return EXIT_OK;
}

static bool ends_with(const char *text, const char *ending) {
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && !strcmp(text + n - m, ending);
}

int drv_value_read(tiga_context *ctx, const tiga_field_info *f, const char *text, const drv_value_source *from,
                   tiga_array *out) {
    if (text[0] == '@' && f->at != TIGA_AT_PARAM && !from->graph)
        return drv_complain(EXIT_USAGE, "'%s=%s' needs --graph", f->name, text);
    if (!strcmp(text, "@"))
        return from_stored(ctx, f, from, out);
    if (!strcmp(text, "@indegree") || !strcmp(text, "@outdegree"))
        return degrees(ctx, f, text[1] == 'i', from, out);
    if (text[0] == '@')
        return drv_complain(EXIT_USAGE, "'%s=%s': known are @ @indegree @outdegree", f->name, text);
    if (!ends_with(text, ".npy"))
        return fill(ctx, f, text, from, out);
    tiga_status s = tiga_array_read_npy(ctx, text, out);
    if (s)
        return drv_complain_status(ctx, s);
    if (out->dtype != f->dtype)
        return drv_complain(EXIT_INPUT, "%s: the array is %s, but '%s' is declared %s", text,
                            out->dtype == TIGA_BF16 ? "bf16 (or uint16)" : drv_dtype_text(out->dtype), f->text,
                            drv_dtype_text(f->dtype));
    return f->at == TIGA_AT_EDGE && from->edge_file_order ? reorder(ctx, from, true, out) : EXIT_OK;
}

int drv_value_write(tiga_context *ctx, const tiga_field_info *f, const tiga_array *a, const drv_value_source *from,
                    const char *path) {
    tiga_array copy = *a;
    copy.owned = 0; /* reorder replaces it, the caller keeps his */
    int code = f->at == TIGA_AT_EDGE && from->edge_file_order ? reorder(ctx, from, false, &copy) : EXIT_OK;
    if (code)
        return code;
    tiga_status s = tiga_array_write_npy(ctx, path, &copy);
    tiga_array_free(&copy);
    return s ? drv_complain_output(ctx, s) : EXIT_OK;
}
