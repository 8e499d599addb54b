/* numpy's .npy files, versions 1 to 3.  The header is a Python dictionary in text; the parser takes exactly what numpy
 * writes, in any order of keys and with any spacing.  Fortran order is turned into ours. */
#include "runtime/runtime.h"

#include <stdio.h>
#include <string.h>

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_space(cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t'))
        c->p++;
}

static bool take(cursor *c, char ch) {
    skip_space(c);
    if (c->p == c->end || *c->p != ch)
        return false;
    c->p++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    skip_space(c);
    size_t n = strlen(word);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool take_string(cursor *c, char *out, size_t cap) {
    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    char quote = *c->p++;
    size_t n = 0;
    while (c->p < c->end && *c->p != quote && n + 1 < cap)
        out[n++] = *c->p++;
    out[n] = 0;
    return take(c, quote);
}

typedef struct fields {
    char descr[64];
    bool has_descr, has_order, has_shape, structured;
    bool negative, huge; /* a size of the shape */
    int64_t rank;        /* as written, which may be more than we hold */
} fields;

static bool take_size(cursor *c, fields *f, int64_t *out) {
    bool minus = take(c, '-'); /* which skips blanks in either case */
    const char *start = c->p;
    int64_t v = 0;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->p - '0', &v)) {
            f->huge = true;
            v = 0;
        }
    f->negative |= minus && c->p > start;
    *out = v;
    return c->p > start;
}

static bool take_shape(cursor *c, rt_npy_header *h, fields *f) {
    int64_t size;
    if (!take(c, '('))
        return false;
    f->rank = 0;
    while (!take(c, ')')) {
        if (!take_size(c, f, &size))
            return false;
        if (f->rank < 7)
            h->shape[f->rank] = size;
        f->rank++;
        if (!take(c, ',')) /* the last one may stand without */
            return take(c, ')');
    }
    return true;
}

static bool take_dictionary(cursor *c, rt_npy_header *h, fields *f) {
    if (!take(c, '{'))
        return false;
    while (!take(c, '}')) {
        char key[32];
        if (!take_string(c, key, sizeof key) || !take(c, ':'))
            return false;
        skip_space(c);
        if (strcmp(key, "descr") == 0) {
            f->structured = c->p < c->end && *c->p == '[';
            if (f->structured)
                return true;
            f->has_descr = take_string(c, f->descr, sizeof f->descr);
        } else if (strcmp(key, "fortran_order") == 0) {
            h->fortran = take_word(c, "True");
            f->has_order = h->fortran || take_word(c, "False");
        } else if (strcmp(key, "shape") == 0) {
            f->has_shape = take_shape(c, h, f);
        } else {
            return false;
        }
        if (!take(c, ','))
            return take(c, '}') && f->has_descr && f->has_order && f->has_shape;
    }
    return f->has_descr && f->has_order && f->has_shape;
}

static tiga_status set_dtype(tiga_context *ctx, const char *name, const char *descr, rt_npy_header *h) {
    static const struct {
        const char *descr;
        int32_t dtype;
    } known[] = {
        {"b1", TIGA_BOOL},  {"i4", TIGA_I32},  {"i8", TIGA_I64}, {"f4", TIGA_F32}, {"f8", TIGA_F64},
        {"f2", TIGA_F16},   {"u2", TIGA_BF16}, {"i1", TIGA_I8},  {"u1", TIGA_U8},  {"c8", TIGA_C64},
        {"c16", TIGA_C128}, {"V2", TIGA_BF16}}; /* numpy has no bf16: its bits are uint16, or void in files of ml_dtypes */
    const char *kind = descr;
    bool big = *descr == '>';
    if (*descr == '<' || *descr == '>' || *descr == '|' || *descr == '=')
        kind++;
    if (*kind == 'S' || *kind == 'U') { /* names of formats, inside .npz */
        long long width;
        if (sscanf(kind + 1, "%lld", &width) == 1 && width >= 0 && width < 1024) {
            h->dtype = -1;
            h->text_width = width;
            h->unit_bytes = *kind == 'S' ? width : 4 * width;
            return TIGA_OK;
        }
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(kind, known[i].descr) == 0) {
            h->dtype = known[i].dtype;
            h->is_uint16 = kind[0] == 'u' && h->dtype == TIGA_BF16;
            h->unit_bytes = tiga_dtype_bytes(h->dtype);
            return big ? rt_fail(ctx, TIGA_E_TYPE,
                                 "%s: big-endian elements ('%s') are not supported; convert with "
                                 "a.astype('<%s')",
                                 name, descr, kind)
                       : TIGA_OK;
        }
    return rt_fail(ctx, TIGA_E_TYPE,
                   "%s: element type '%s' is not supported; use bool, int8, uint8, int32, int64, float16, float32, "
                   "float64, complex64 or complex128 (uint16 holds the bits of bf16)",
                   name, descr);
}

static uint32_t little(const char *p, int n) {
    uint32_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint32_t)(uint8_t)p[i] << (8 * i);
    return v;
}

tiga_status rt_npy_parse(tiga_context *ctx, const char *name, const char *bytes, int64_t n, rt_npy_header *out) {
    memset(out, 0, sizeof *out);
    if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: not a .npy file", name);
    int major = (uint8_t)bytes[6], head = major == 1 ? 10 : 12;
    if (major < 1 || major > 3)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: .npy version %d is not known", name, major);
    int64_t length = n < head ? INT64_MAX : little(bytes + 8, major == 1 ? 2 : 4);
    if (length > n - head)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: ends within the header, after %lld bytes", name, (long long)n);
    cursor c = {bytes + head, bytes + head + length};
    fields f = {0};
    bool good = take_dictionary(&c, out, &f);
    if (f.structured)
        return rt_fail(ctx, TIGA_E_TYPE, "%s: structured element types are not supported", name);
    skip_space(&c);
    if (!good || c.p != c.end)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: malformed .npy header near '%.20s'", name, c.p < c.end ? c.p : "");
    if (f.negative || f.huge)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: malformed .npy header: %s size in the shape", name,
                       f.negative ? "negative" : "too large a");
    if (f.rank > 7)
        return rt_fail(ctx, TIGA_E_UNSUPPORTED, "%s: rank %lld is not supported, arrays have at most 7 dimensions",
                       name, (long long)f.rank);
    out->rank = (int32_t)f.rank;
    out->data_at = head + length;
    return set_dtype(ctx, name, f.descr, out);
}

/* Element (i0, i1, ...) stands at i0 + i1 n0 + i2 n0 n1 ... in Fortran order. */
static void from_fortran(const char *from, char *to, const rt_npy_header *h, int64_t n) {
    int64_t index[7] = {0}, stride[7] = {1}, unit = h->unit_bytes, at = 0;
    for (int i = 1; i < h->rank && n > 0; i++)
        stride[i] = stride[i - 1] * h->shape[i - 1];
    for (int64_t k = 0; k < n; k++) {
        memcpy(to + k * unit, from + at * unit, (size_t)unit);
        for (int axis = h->rank - 1; axis >= 0; axis--) {
            at += stride[axis];
            if (++index[axis] < h->shape[axis])
                break;
            at -= stride[axis] * h->shape[axis];
            index[axis] = 0;
        }
    }
}

tiga_status rt_npy_data(tiga_context *ctx, const char *name, const char *bytes, int64_t n, const rt_npy_header *h,
                        tiga_array *out) {
    memset(out, 0, sizeof *out);
    int64_t n_bytes, have = n - h->data_at;
    if (h->dtype < 0)
        return rt_fail(ctx, TIGA_E_TYPE, "%s: text elements are not supported", name);
    if (!rt_shape_bytes(h->dtype, h->rank, h->shape, &n_bytes))
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: the shape in the header is larger than any memory", name);
    if (have != n_bytes)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: the header promises %lld bytes of data, the file has %lld", name,
                       (long long)n_bytes, (long long)have);
    tiga_status status = tiga_array_new(ctx, h->dtype, h->rank, h->shape, out);
    if (status != TIGA_OK)
        return status;
    if (h->fortran && h->rank > 1)
        from_fortran(bytes + h->data_at, out->data, h, n_bytes / h->unit_bytes);
    else
        memcpy(out->data, bytes + h->data_at, (size_t)n_bytes);
    if (h->dtype == TIGA_BOOL)
        for (int64_t i = 0; i < n_bytes; i++)
            ((uint8_t *)out->data)[i] = ((uint8_t *)out->data)[i] != 0;
    return TIGA_OK;
}

tiga_status tiga_array_read_npy(tiga_context *ctx, const char *path, tiga_array *out) {
    if (!path || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_array_read_npy: an argument is NULL");
    memset(out, 0, sizeof *out);
    rt_text text;
    tiga_status status = rt_text_read(ctx, path, NULL, &text);
    if (status != TIGA_OK)
        return status;
    rt_npy_header h;
    status = rt_npy_parse(ctx, path, text.data, text.len, &h);
    if (status == TIGA_OK)
        status = rt_npy_data(ctx, path, text.data, text.len, &h, out);
    rt_text_fini(&text);
    return status;
}

bool rt_npy_write_header(base_str *s, int32_t dtype, int32_t rank, const int64_t *shape) {
    static const char *const descr[] = {
        [TIGA_BOOL] = "|b1", [TIGA_I32] = "<i4", [TIGA_I64] = "<i8",  [TIGA_F32] = "<f4",
        [TIGA_F64] = "<f8",  [TIGA_F16] = "<f2", [TIGA_BF16] = "<u2", [TIGA_I8] = "|i1",
        [TIGA_U8] = "|u1",   [TIGA_C64] = "<c8", [TIGA_C128] = "<c16"};
    base_str dict = {0};
    base_str_addf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[dtype]);
    for (int i = 0; i < rank; i++)
        base_str_addf(&dict, i + 1 < rank ? "%lld, " : rank == 1 ? "%lld," : "%lld", (long long)shape[i]);
    base_str_add(&dict, "), }");
    while ((10 + dict.len + 1) % 64 != 0 && !dict.failed)
        base_str_add(&dict, " ");
    base_str_add(&dict, "\n");
    char head[10] = "\x93NUMPY\x01";
    head[8] = (char)(dict.len & 255);
    head[9] = (char)(dict.len >> 8);
    base_str_add_n(s, head, 10);
    base_str_add_n(s, base_str_text(&dict), dict.len);
    bool good = !dict.failed && !s->failed;
    base_str_fini(&dict);
    return good;
}

tiga_status tiga_array_write_npy(tiga_context *ctx, const char *path, const tiga_array *a) {
    int64_t n_bytes;
    if (!path || !a || !rt_shape_bytes(a->dtype, a->rank, a->shape, &n_bytes) || (n_bytes > 0 && !a->data))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_array_write_npy: needs a path and a whole array");
    base_str head = {0};
    tiga_status status = TIGA_E_MEMORY;
    if (rt_npy_write_header(&head, a->dtype, a->rank, a->shape)) {
        base_part parts[] = {{head.data, head.len}, {a->data, (size_t)n_bytes}};
        status = rt_file_write(ctx, path, parts, 2);
    } else {
        rt_fail(ctx, status, "%s: out of memory", path);
    }
    base_str_fini(&head);
    return status;
}
