/* SciPy's .npz: a zip of indptr, indices, data, shape and format.  Only csr, which is our own order: row i holds the
 * sources of destination i.  rt_npz_write.c may have added what would have to be computed otherwise (rt_snapshot.c). */
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

/* A vector as numpy writes it goes straight to its place.  false: it is another thing, and read_member is to say what;
 * otherwise *out is the vector, or *status why not. */
static bool read_in_place(tiga_context *ctx, zip_t *z, zip_int64_t index, const member *m, bool integers,
                          tiga_array *out, tiga_status *status) {
    zip_stat_t st;
    rt_npy_header h;
    char first[4096], extra;
    zip_file_t *f = zip_stat_index(z, (zip_uint64_t)index, 0, &st) == 0 && (st.valid & ZIP_STAT_SIZE)
                        ? zip_fopen_index(z, (zip_uint64_t)index, 0)
                        : NULL;
    int64_t n = f ? zip_fread(f, first, sizeof first) : 0, n_bytes;
    bool plain = n > 0 && rt_npy_parse(NULL, base_str_text(&m->name), first, n, &h) == TIGA_OK && h.rank == 1 &&
                 (integers ? h.dtype == TIGA_I32 || h.dtype == TIGA_I64 : h.dtype > TIGA_BOOL && !h.is_uint16) &&
                 rt_shape_bytes(h.dtype, 1, h.shape, &n_bytes) && h.data_at <= n && n - h.data_at <= n_bytes &&
                 (zip_uint64_t)n_bytes == st.size - (zip_uint64_t)h.data_at;
    if (plain && (*status = tiga_array_new(ctx, h.dtype, 1, h.shape, out)) == TIGA_OK) {
        base_copy(out->data, first + h.data_at, (size_t)(n - h.data_at));
        int64_t have = n - h.data_at, more = 1;
        while (more > 0 && have < n_bytes) {
            more = zip_fread(f, (char *)out->data + have, (zip_uint64_t)(n_bytes - have));
            have += more > 0 ? more : 0;
        }
        if (more < 0 || zip_fread(f, &extra, 1) < 0) /* the checksum is compared at the end */
            *status = fail_zip(ctx, base_str_text(&m->name), zip_file_get_error(f));
        else if (have != n_bytes)
            *status = rt_fail(ctx, TIGA_E_FORMAT, "%s: ends early", base_str_text(&m->name));
        if (*status != TIGA_OK)
            tiga_array_free(out);
    }
    if (f)
        zip_fclose(f);
    return plain;
}

static tiga_status locate(tiga_context *ctx, zip_t *z, const char *path, const char *name, member *m,
                          zip_int64_t *index) {
    base_str_addf(&m->name, "%s (%s)", path, name);
    if (m->name.failed)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path);
    *index = zip_name_locate(z, name, 0);
    if (*index < 0)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: no member '%s': not a sparse matrix that SciPy saved", path, name);
    return TIGA_OK;
}

static tiga_status load(tiga_context *ctx, zip_t *z, const char *path, const char *name, member *m) {
    zip_int64_t index = -1;
    tiga_status status = locate(ctx, z, path, name, m, &index);
    if (status == TIGA_OK)
        status = read_member(ctx, z, index, m);
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

/* SciPy knows no bf16: uint16 in a matrix are whole numbers.  They become i32, which holds them all. */
static tiga_status widen_uint16(tiga_context *ctx, tiga_array *a) {
    const uint16_t *from = a->data;
    tiga_array wide = {0};
    tiga_status status = tiga_array_new(ctx, TIGA_I32, a->rank, a->shape, &wide);
    if (status == TIGA_OK)
        for (int64_t i = 0; i < a->shape[0]; i++)
            ((int32_t *)wide.data)[i] = from[i];
    tiga_array_free(a);
    *a = wide;
    return status;
}

/* Says what is wrong, or reads what is only unusual. */
static tiga_status read_by_way(tiga_context *ctx, zip_t *z, zip_int64_t index, bool integers, member *m,
                               tiga_array *out) {
    const char *name = base_str_text(&m->name);
    tiga_status status = read_member(ctx, z, index, m);
    if (status == TIGA_OK)
        status = rt_npy_parse(ctx, name, m->bytes, m->n, &m->header);
    bool integer = status == TIGA_OK && (m->header.dtype == TIGA_I32 || m->header.dtype == TIGA_I64);
    if (status == TIGA_OK && (m->header.rank != 1 || (integers && !integer)))
        status = rt_fail(ctx, TIGA_E_TYPE, "%s: must be a vector%s", name, integers ? " of int32 or int64" : "");
    if (status == TIGA_OK)
        status = rt_npy_data(ctx, name, m->bytes, m->n, &m->header, out);
    return status == TIGA_OK && m->header.is_uint16 ? widen_uint16(ctx, out) : status;
}

/* A vector of the archive; integers: of int32 or int64 only. */
static tiga_status load_vector(tiga_context *ctx, zip_t *z, const char *path, const char *name, bool integers,
                               tiga_array *out) {
    member m = {0};
    zip_int64_t index;
    memset(out, 0, sizeof *out);
    tiga_status status = locate(ctx, z, path, name, &m, &index);
    if (status == TIGA_OK && !read_in_place(ctx, z, index, &m, integers, out, &status))
        status = read_by_way(ctx, z, index, integers, &m, out);
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
        status = load_vector(ctx, z, path, "shape.npy", true, &m->shape);
    if (status == TIGA_OK && m->shape.shape[0] != 2)
        status = rt_fail(ctx, TIGA_E_FORMAT, "%s (shape.npy): %lld sizes, a matrix has 2", path,
                         (long long)m->shape.shape[0]);
    if (status == TIGA_OK && (at(&m->shape, 0) < 0 || at(&m->shape, 1) < 0 || at(&m->shape, 1) > RT_MAX_NODES))
        status = rt_fail(ctx, TIGA_E_RANGE, "%s (shape.npy): a size is negative or above 2^56", path);
    if (status == TIGA_OK)
        status = load_vector(ctx, z, path, "indptr.npy", true, &m->indptr);
    if (status == TIGA_OK && m->indptr.shape[0] - 1 != at(&m->shape, 0))
        status = rt_fail(ctx, TIGA_E_FORMAT, "%s (indptr.npy): %lld elements, %lld rows need one more than rows", path,
                         (long long)m->indptr.shape[0], (long long)at(&m->shape, 0));
    if (status == TIGA_OK)
        status = load_vector(ctx, z, path, "indices.npy", true, &m->indices);
    if (status == TIGA_OK)
        status = rt_array_convert(ctx, &m->indptr, TIGA_I64, &m->offsets);
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
        return rt_graph_copy(ctx, &csr, out);
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
    tiga_array a;
    tiga_status status = load_vector(ctx, z, path, "data.npy", false, &a);
    if (status == TIGA_OK)
        status = check_length(ctx, path, x, a.shape[0]);
    if (status == TIGA_OK) {
        a.shape[0] = n_edges;
        *values = a;
    } else {
        tiga_array_free(&a);
    }
    return status;
}

/* ---- what rt_npz_write.c may have added ---- */
static tiga_status load_exact(tiga_context *ctx, zip_t *z, const char *path, const char *name, int64_t n,
                              tiga_array *out) {
    tiga_status status = load_vector(ctx, z, path, name, true, out);
    if (status == TIGA_OK && out->shape[0] != n)
        status = rt_fail(ctx, TIGA_E_FORMAT, "%s (%s): %lld elements, this graph needs %lld", path, name,
                         (long long)out->shape[0], (long long)n);
    return status;
}

/* The same, and of the one element type that is written. */
static tiga_status load_typed(tiga_context *ctx, zip_t *z, const char *path, const char *name, int32_t dtype, int64_t n,
                              tiga_array *out) {
    tiga_status status = load_exact(ctx, z, path, name, n, out);
    if (status == TIGA_OK && out->dtype != dtype)
        status = rt_fail(ctx, TIGA_E_TYPE, "%s (%s): %s elements, this graph needs %s", path, name,
                         tiga_dtype_text(out->dtype), tiga_dtype_text(dtype));
    return status;
}

/* To the type that the graph has in memory.  What does not fit into it is not the number of an edge. */
static tiga_status fit(tiga_context *ctx, const char *path, const char *name, int32_t dtype, tiga_array *a) {
    tiga_array other;
    if (a->dtype == dtype)
        return TIGA_OK;
    for (int64_t i = 0; dtype == TIGA_I32 && i < a->shape[0]; i++)
        if (at(a, i) != (int32_t)at(a, i))
            return rt_fail(ctx, TIGA_E_FORMAT,
                           "%s (%s): element %lld is %lld, the graph has %lld edges; write the file anew", path, name,
                           (long long)i, (long long)at(a, i), (long long)a->shape[0]);
    tiga_status status = rt_array_convert(ctx, a, dtype, &other);
    if (status == TIGA_OK) {
        tiga_array_free(a);
        *a = other;
    }
    return status;
}

static tiga_status load_columns(tiga_context *ctx, zip_t *z, const char *path, const tiga_graph *g, tiga_array *rows,
                                tiga_array *edge_of) {
    const tiga_csr *c = &g->csr;
    int32_t row_type = rt_bits_for(c->n_dst) == 32 ? TIGA_I32 : TIGA_I64,
            type = g->transposed_bits == 32 ? TIGA_I32 : TIGA_I64;
    tiga_status status = load_typed(ctx, z, path, RT_NPZ_SOURCES, row_type, c->n_edges, rows);
    if (status == TIGA_OK)
        status = fit(ctx, path, RT_NPZ_SOURCES, type, rows);
    if (status == TIGA_OK)
        status = load_exact(ctx, z, path, RT_NPZ_EDGE_OF, c->n_edges, edge_of);
    return status == TIGA_OK ? fit(ctx, path, RT_NPZ_EDGE_OF, type, edge_of) : status;
}

/* All of the members, or none. */
static tiga_status find_snapshot(tiga_context *ctx, zip_t *z, const char *path, bool *found) {
    static const char *const names[] = {RT_NPZ_OFFSETS, RT_NPZ_SOURCES, RT_NPZ_EDGE_OF, RT_NPZ_FIGURES};
    const char *have = NULL, *lacks = NULL;
    for (int i = 0; i < 4; i++)
        *(zip_name_locate(z, names[i], 0) < 0 ? &lacks : &have) = names[i];
    *found = have != NULL;
    if (have && lacks)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: has a member '%s', but no '%s'", path, have, lacks);
    return TIGA_OK;
}

static tiga_status load_snapshot(tiga_context *ctx, zip_t *z, const char *path, tiga_graph *g) {
    bool found;
    const tiga_csr *c = &g->csr;
    tiga_array offsets = {0}, sources = {0}, edge_of = {0}, figures = {0};
    tiga_status status = find_snapshot(ctx, z, path, &found);
    if (status != TIGA_OK || !found)
        return status;
    status = load_typed(ctx, z, path, RT_NPZ_OFFSETS, TIGA_I64, c->n_src + 1, &offsets);
    if (status == TIGA_OK)
        status = load_columns(ctx, z, path, g, &sources, &edge_of);
    if (status == TIGA_OK)
        status = load_typed(ctx, z, path, RT_NPZ_FIGURES, TIGA_I64, RT_FIGURES, &figures);
    rt_snapshot s = {offsets.data, sources.data, edge_of.data, figures.data};
    if (status == TIGA_OK)
        status = rt_snapshot_adopt(ctx, path, g, &s);
    if (status == TIGA_OK)
        offsets.owned = sources.owned = edge_of.owned = 0;
    tiga_array_free(&offsets);
    tiga_array_free(&sources);
    tiga_array_free(&edge_of);
    tiga_array_free(&figures);
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
    if (status == TIGA_OK)
        status = load_snapshot(ctx, z, path, g);
    tiga_array_free(&m.shape);
    tiga_array_free(&m.indptr);
    tiga_array_free(&m.indices);
    tiga_array_free(&m.offsets);
    if (status != TIGA_OK) {
        tiga_graph_free(g);
        tiga_array_free(values);
    } else {
        *out = g;
    }
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
