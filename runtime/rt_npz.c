/* SciPy's .npz: a zip of indptr, indices, data, shape and format.  Only csr, which is our own order: row i holds the
 * sources of destination i.  Written members are stored, not deflated: they are read at the speed of the disk. */
#include "runtime/runtime.h"

#include <string.h>
#include <zip.h>

typedef struct member {
    base_str name; /* "g.npz (indices.npy)", for messages */
    char *bytes;
    int64_t n;
    rt_npy_header header;
} member;

static void member_fini(member *m) {
    base_str_fini(&m->name);
    rt_mem_free(m->bytes);
    memset(m, 0, sizeof *m);
}

/* In our words: libzip's differ from version to version. */
static tiga_status fail_zip(tiga_context *ctx, const char *name, const zip_error_t *error) {
    switch (zip_error_code_zip(error)) {
    case ZIP_ER_MEMORY:
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", name);
    case ZIP_ER_CRC:
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: damaged: the checksum is wrong", name);
    case ZIP_ER_COMPNOTSUPP:
        return rt_fail(ctx, TIGA_E_UNSUPPORTED, "%s: this method of compression is not supported", name);
    case ZIP_ER_ENCRNOTSUPP:
    case ZIP_ER_NOPASSWD:
    case ZIP_ER_WRONGPASSWD:
        return rt_fail(ctx, TIGA_E_UNSUPPORTED, "%s: encrypted members are not supported", name);
    default:
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: damaged or truncated zip archive", name);
    }
}

static tiga_status read_member(tiga_context *ctx, zip_t *z, zip_int64_t index, member *m) {
    zip_stat_t st;
    const char *name = base_str_text(&m->name);
    if (zip_stat_index(z, (zip_uint64_t)index, 0, &st) != 0 || !(st.valid & ZIP_STAT_SIZE) || st.size > INT64_MAX)
        return fail_zip(ctx, name, zip_get_error(z));
    tiga_status status = rt_mem_take(ctx, (int64_t)st.size, 1, false, name, (void **)&m->bytes);
    if (status != TIGA_OK)
        return status;
    zip_file_t *f = zip_fopen_index(z, (zip_uint64_t)index, 0);
    if (!f)
        return fail_zip(ctx, name, zip_get_error(z));
    zip_int64_t n = 1;
    while (n > 0 && m->n < (int64_t)st.size) {
        n = zip_fread(f, m->bytes + m->n, st.size - (zip_uint64_t)m->n);
        m->n += n > 0 ? n : 0;
    }
    char extra;
    if (n > 0 && zip_fread(f, &extra, 1) < 0) /* the checksum is compared at the end */
        n = -1;
    if (n < 0)
        status = fail_zip(ctx, name, zip_file_get_error(f));
    else if (m->n != (int64_t)st.size)
        status = rt_fail(ctx, TIGA_E_FORMAT, "%s: ends early", name);
    zip_fclose(f);
    return status;
}

static tiga_status load(tiga_context *ctx, zip_t *z, const char *path, const char *name, member *m) {
    base_str_addf(&m->name, "%s (%s)", path, name);
    if (m->name.failed)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path);
    zip_int64_t index = zip_name_locate(z, name, 0);
    if (index < 0)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: no member '%s': not a sparse matrix that SciPy saved", path, name);
    tiga_status status = read_member(ctx, z, index, m);
    return status == TIGA_OK ? rt_npy_parse(ctx, base_str_text(&m->name), m->bytes, m->n, &m->header) : status;
}

/* "csr" as |S3, or as <U3 */
static tiga_status check_format(tiga_context *ctx, const char *path, const member *m) {
    char word[8] = "";
    int64_t step = m->header.text_width ? m->header.unit_bytes / m->header.text_width : 1,
            have = m->n - m->header.data_at;
    if (m->header.dtype >= 0 || m->header.rank != 0 || have < m->header.unit_bytes)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: is not the name of a format", base_str_text(&m->name));
    for (int64_t i = 0; i < m->header.text_width && i < 7; i++) {
        char c = m->bytes[m->header.data_at + i * step];
        word[i] = c == 0 || (c >= 'a' && c <= 'z') ? c : '?';
    }
    if (strcmp(word, "csr") != 0)
        return rt_fail(ctx, TIGA_E_UNSUPPORTED, "%s: a '%s' matrix; only csr is supported, save a.tocsr()", path, word);
    return TIGA_OK;
}

/* An integer vector of the archive, as an array. */
static tiga_status load_vector(tiga_context *ctx, zip_t *z, const char *path, const char *name, tiga_array *out) {
    member m = {0};
    memset(out, 0, sizeof *out);
    tiga_status status = load(ctx, z, path, name, &m);
    if (status == TIGA_OK && (m.header.rank != 1 || (m.header.dtype != TIGA_I32 && m.header.dtype != TIGA_I64)))
        status = rt_fail(ctx, TIGA_E_TYPE, "%s: must be a vector of int32 or int64", base_str_text(&m.name));
    if (status == TIGA_OK)
        status = rt_npy_data(ctx, base_str_text(&m.name), m.bytes, m.n, &m.header, out);
    member_fini(&m);
    return status;
}

static int64_t at(const tiga_array *a, int64_t i) {
    return a->dtype == TIGA_I32 ? ((const int32_t *)a->data)[i] : ((const int64_t *)a->data)[i];
}

typedef struct matrix {
    tiga_array shape, indptr, indices, offsets;
} matrix;

static tiga_status load_matrix(tiga_context *ctx, zip_t *z, const char *path, matrix *m) {
    member format = {0};
    tiga_status status = load(ctx, z, path, "format.npy", &format);
    if (status == TIGA_OK)
        status = check_format(ctx, path, &format);
    member_fini(&format);
    if (status == TIGA_OK)
        status = load_vector(ctx, z, path, "shape.npy", &m->shape);
    if (status == TIGA_OK && m->shape.shape[0] != 2)
        status = rt_fail(ctx, TIGA_E_FORMAT, "%s (shape.npy): %lld sizes, a matrix has 2", path,
                         (long long)m->shape.shape[0]);
    if (status == TIGA_OK && (at(&m->shape, 0) < 0 || at(&m->shape, 1) < 0 || at(&m->shape, 1) > RT_MAX_NODES))
        status = rt_fail(ctx, TIGA_E_RANGE, "%s (shape.npy): a size is negative or above 2^56", path);
    if (status == TIGA_OK)
        status = load_vector(ctx, z, path, "indptr.npy", &m->indptr);
    if (status == TIGA_OK && m->indptr.shape[0] - 1 != at(&m->shape, 0))
        status = rt_fail(ctx, TIGA_E_FORMAT, "%s (indptr.npy): %lld elements, %lld rows need one more than rows", path,
                         (long long)m->indptr.shape[0], (long long)at(&m->shape, 0));
    if (status == TIGA_OK)
        status = load_vector(ctx, z, path, "indices.npy", &m->indices);
    if (status == TIGA_OK)
        status = tiga_array_convert(ctx, &m->indptr, TIGA_I64, &m->offsets);
    return status;
}

static tiga_status make_graph(tiga_context *ctx, const char *path, matrix *m, tiga_graph **out) {
    const int64_t *offsets = m->offsets.data;
    tiga_csr csr = {at(&m->shape, 0), at(&m->shape, 1), 0,
                    offsets,          m->indices.data,  m->indices.dtype == TIGA_I32 ? 32 : 64};
    tiga_status status = rt_check_offsets(ctx, path, &csr);
    if (status != TIGA_OK)
        return status;
    csr.n_edges = offsets[csr.n_dst];
    if (csr.n_edges > m->indices.shape[0])
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: indptr promises %lld entries, indices has %lld", path,
                       (long long)csr.n_edges, (long long)m->indices.shape[0]);
    status = rt_check_sources(ctx, path, &csr);
    if (status != TIGA_OK)
        return status;
    if (csr.source_bits != rt_bits_for(csr.n_src)) /* narrowed (or widened) into arrays of its own */
        return tiga_graph_from_csr(ctx, csr.n_dst, csr.n_src, offsets, csr.sources, (int)csr.source_bits, TIGA_COPY,
                                   out);
    status = rt_graph_take(ctx, csr, m->offsets.data, m->indices.data, out);
    m->offsets.owned = m->indices.owned = 0;
    return status;
}

static tiga_status check_length(tiga_context *ctx, const char *path, const matrix *m, int64_t n_values) {
    if (n_values == m->indices.shape[0])
        return TIGA_OK;
    return rt_fail(ctx, TIGA_E_FORMAT, "%s: data has %lld elements, indices has %lld", path, (long long)n_values,
                   (long long)m->indices.shape[0]);
}

/* For who does not want the values: of data only the length is looked at, its elements may be of any type. */
static tiga_status peek_values(tiga_context *ctx, zip_t *z, const char *path, const matrix *m) {
    char bytes[4096];
    rt_npy_header h;
    zip_file_t *f = zip_fopen(z, "data.npy", 0);
    zip_int64_t n = f ? zip_fread(f, bytes, sizeof bytes) : 0;
    if (f)
        zip_fclose(f);
    if (n <= 0)
        return TIGA_OK;
    tiga_status status = rt_npy_parse(NULL, path, bytes, n, &h);
    bool known = (status == TIGA_OK || status == TIGA_E_TYPE) && h.rank == 1;
    return known ? check_length(ctx, path, m, h.shape[0]) : TIGA_OK;
}

static tiga_status load_values(tiga_context *ctx, zip_t *z, const char *path, const matrix *x, int64_t n_edges,
                               tiga_array *values) {
    member m = {0};
    tiga_array a = {0};
    tiga_status status = load(ctx, z, path, "data.npy", &m);
    if (status == TIGA_OK && m.header.rank != 1)
        status = rt_fail(ctx, TIGA_E_TYPE, "%s: must be a vector", base_str_text(&m.name));
    if (status == TIGA_OK)
        status = check_length(ctx, path, x, m.header.shape[0]);
    if (status == TIGA_OK)
        status = rt_npy_data(ctx, base_str_text(&m.name), m.bytes, m.n, &m.header, &a);
    member_fini(&m);
    if (status == TIGA_OK) {
        a.shape[0] = n_edges;
        *values = a;
    }
    return status;
}

static tiga_status parse(tiga_context *ctx, zip_t *z, const char *path, tiga_graph **out, tiga_array *values) {
    matrix m;
    memset(&m, 0, sizeof m);
    tiga_graph *g = NULL;
    tiga_status status = load_matrix(ctx, z, path, &m);
    if (status == TIGA_OK)
        status = make_graph(ctx, path, &m, &g);
    if (status == TIGA_OK)
        status = values ? load_values(ctx, z, path, &m, g->csr.n_edges, values) : peek_values(ctx, z, path, &m);
    tiga_array_free(&m.shape);
    tiga_array_free(&m.indptr);
    tiga_array_free(&m.indices);
    tiga_array_free(&m.offsets);
    if (status != TIGA_OK)
        tiga_graph_free(g);
    else
        *out = g;
    return status;
}

tiga_status rt_npz_parse(tiga_context *ctx, const rt_text *t, tiga_graph **out, tiga_array *values) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(t->data, (zip_uint64_t)t->len, 0, &error);
    zip_t *z = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
    tiga_status status;
    if (!z) {
        status = fail_zip(ctx, t->name, &error);
        zip_source_free(source);
    } else {
        status = parse(ctx, z, t->name, out, values);
        zip_discard(z);
    }
    zip_error_fini(&error);
    return status;
}

/* ---- writing ---- */
typedef struct output {
    rt_zip_member members[RT_ZIP_MEMBERS];
    tiga_array offsets, ones;
} output;

static void set_text(rt_zip_member *m) { /* array(b'csr') */
    const char *dict = "{'descr': '|S3', 'fortran_order': False, 'shape': (), }";
    char first[10] = "\x93NUMPY\x01";
    size_t length = 118; /* 10 + 118 is a multiple of 64 */
    first[8] = (char)length;
    m->name = "format.npy";
    m->data = "csr";
    m->n = 3;
    base_str_add_n(&m->head, first, 10);
    base_str_add(&m->head, dict);
    for (size_t i = strlen(dict); i + 1 < length; i++)
        base_str_add(&m->head, " ");
    base_str_add(&m->head, "\n");
}

static void set_array(rt_zip_member *m, const char *name, const tiga_array *a) {
    m->name = name;
    m->data = a->data;
    m->n = tiga_array_bytes(a);
    m->head.failed |= !rt_npy_write_header(&m->head, a->dtype, a->rank, a->shape);
}

/* SciPy wants indptr and indices of one type; int32 when both fit. */
static tiga_status prepare(tiga_context *ctx, const tiga_csr *c, bool narrow, bool ones, output *o) {
    tiga_status status = TIGA_OK;
    if (narrow) {
        int64_t n = c->n_dst + 1;
        tiga_array wide = tiga_array_borrow((void *)(uintptr_t)c->offsets, TIGA_I64, 1, &n);
        status = tiga_array_convert(ctx, &wide, TIGA_I32, &o->offsets);
    }
    if (status == TIGA_OK && ones) {
        status = tiga_array_new(ctx, TIGA_F32, 1, &c->n_edges, &o->ones);
        for (int64_t i = 0; status == TIGA_OK && i < c->n_edges; i++)
            ((float *)o->ones.data)[i] = 1.0F;
    }
    return status;
}

static tiga_status write_archive(tiga_context *ctx, const char *path, const tiga_csr *c, const tiga_array *values,
                                 output *o) {
    bool narrow = c->source_bits == 32 && c->n_edges <= INT32_MAX && c->n_dst <= INT32_MAX;
    tiga_array wide_sources = {0};
    tiga_status status = prepare(ctx, c, narrow, !values, o);
    int64_t shape[2] = {c->n_dst, c->n_src}, n_offsets = c->n_dst + 1, two = 2;
    tiga_array sources =
        tiga_array_borrow((void *)(uintptr_t)c->sources, c->source_bits == 32 ? TIGA_I32 : TIGA_I64, 1, &c->n_edges);
    if (status == TIGA_OK && !narrow && c->source_bits == 32) {
        status = tiga_array_convert(ctx, &sources, TIGA_I64, &wide_sources);
        sources = wide_sources;
    }
    tiga_array offsets =
        narrow ? o->offsets : tiga_array_borrow((void *)(uintptr_t)c->offsets, TIGA_I64, 1, &n_offsets);
    tiga_array sizes = tiga_array_borrow(shape, TIGA_I64, 1, &two);
    if (status == TIGA_OK) {
        set_array(&o->members[0], "indices.npy", &sources);
        set_array(&o->members[1], "indptr.npy", &offsets);
        set_text(&o->members[2]);
        set_array(&o->members[3], "shape.npy", &sizes);
        set_array(&o->members[4], "data.npy", values ? values : &o->ones);
        status = rt_zip_write(ctx, path, o->members, RT_ZIP_MEMBERS, 0);
    }
    tiga_array_free(&wide_sources);
    return status;
}

static tiga_status check_values(tiga_context *ctx, const tiga_csr *c, const tiga_array *a) {
    base_str s = {0};
    if (rt_dtype_valid(a->dtype) && a->rank == 1 && a->shape[0] == c->n_edges && (a->data || !c->n_edges))
        return TIGA_OK;
    rt_shape_text(&s, a->dtype, a->rank, a->shape);
    tiga_status status =
        rt_fail(ctx, TIGA_E_TYPE, "tiga_graph_write_npz: values must have one element for each of %lld edges, not %s",
                (long long)c->n_edges, base_str_text(&s));
    base_str_fini(&s);
    return status;
}

tiga_status tiga_graph_write_npz(tiga_context *ctx, const char *path, tiga_graph *g, const tiga_array *values) {
    if (!ctx || !path || !g)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_graph_write_npz: an argument is NULL");
    rt_begin(ctx);
    tiga_status status = values ? check_values(ctx, &g->csr, values) : TIGA_OK;
    if (status != TIGA_OK)
        return status;
    output o;
    memset(&o, 0, sizeof o);
    status = write_archive(ctx, path, &g->csr, values, &o);
    for (int i = 0; i < RT_ZIP_MEMBERS; i++)
        base_str_fini(&o.members[i].head);
    tiga_array_free(&o.offsets);
    tiga_array_free(&o.ones);
    return status;
}
