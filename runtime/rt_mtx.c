/* Matrix Market coordinate files.  Entry (i, j) is an edge from j to i; entries that stand twice are two edges; a
 * symmetric file holds one triangle and gets the other, appended after all entries of the file.
 * pattern: no values; integer: i64; real: f64. */
#include "runtime/runtime.h"

#include <string.h>
#include <strings.h>

typedef enum symmetry { GENERAL, SYMMETRIC, SKEW } symmetry;

typedef struct header {
    rt_values values;
    symmetry symmetry;
    int64_t rows, columns, entries;
    int64_t body_at; /* offset of the line after the sizes */
} header;

static const char *next_word(const char *p, const char **word, size_t *n) {
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    *word = p;
    while (*p && *p != ' ' && *p != '\t' && *p != '\r' && *p != '\n')
        p++;
    *n = (size_t)(p - *word);
    return p;
}

static bool same(const char *word, size_t n, const char *text) {
    return strlen(text) == n && strncasecmp(word, text, n) == 0;
}

static tiga_status parse_kind(tiga_context *ctx, const rt_text *t, const char *word, size_t n, header *h) {
    if (same(word, n, "real") || same(word, n, "double"))
        h->values = RT_VALUES_F64;
    else if (same(word, n, "integer"))
        h->values = RT_VALUES_I64;
    else if (same(word, n, "pattern"))
        h->values = RT_VALUES_NONE;
    else if (same(word, n, "complex"))
        return rt_text_fail(ctx, TIGA_E_UNSUPPORTED, t, word - t->data, "complex values are not supported");
    else
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, word - t->data, "expected real, integer or pattern");
    return TIGA_OK;
}

static tiga_status parse_symmetry(tiga_context *ctx, const rt_text *t, const char *word, size_t n, header *h) {
    if (same(word, n, "general"))
        h->symmetry = GENERAL;
    else if (same(word, n, "symmetric"))
        h->symmetry = SYMMETRIC;
    else if (same(word, n, "skew-symmetric"))
        h->symmetry = SKEW;
    else if (same(word, n, "hermitian"))
        return rt_text_fail(ctx, TIGA_E_UNSUPPORTED, t, word - t->data, "hermitian matrices are not supported");
    else
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, word - t->data, "expected general, symmetric or skew-symmetric");
    if (h->symmetry == SKEW && h->values == RT_VALUES_NONE)
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, word - t->data, "a pattern cannot be skew-symmetric");
    return TIGA_OK;
}

/* %%MatrixMarket matrix coordinate real general */
static tiga_status parse_banner(tiga_context *ctx, const rt_text *t, header *h) {
    const char *word, *p = t->data + strlen("%%MatrixMarket");
    size_t n;
    p = next_word(p, &word, &n);
    if (!same(word, n, "matrix"))
        return rt_text_fail(ctx, same(word, n, "vector") ? TIGA_E_UNSUPPORTED : TIGA_E_FORMAT, t, word - t->data,
                            "only 'matrix' objects are supported");
    p = next_word(p, &word, &n);
    if (same(word, n, "array"))
        return rt_text_fail(ctx, TIGA_E_UNSUPPORTED, t, word - t->data,
                            "dense 'array' matrices are not supported, only 'coordinate'");
    if (!same(word, n, "coordinate"))
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, word - t->data, "expected coordinate");
    p = next_word(p, &word, &n);
    tiga_status status = parse_kind(ctx, t, word, n, h);
    if (status != TIGA_OK)
        return status;
    p = next_word(p, &word, &n);
    status = parse_symmetry(ctx, t, word, n, h);
    if (status != TIGA_OK)
        return status;
    next_word(p, &word, &n);
    return n ? rt_text_fail(ctx, TIGA_E_FORMAT, t, word - t->data, "more words than the banner has") : TIGA_OK;
}

static tiga_status parse_size(tiga_context *ctx, const rt_text *t, const char **p, const char *name, int64_t *out) {
    const char *word, *end;
    size_t n;
    next_word(*p, &word, &n);
    end = word;
    rt_scan_result r = rt_scan_id(&end, out);
    *p = word + n;
    if (!n)
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, *p - t->data, "number of %s is missing", name);
    if (r == RT_SCAN_OK && end == word + n && *out <= RT_MAX_NODES)
        return TIGA_OK;
    return rt_text_fail(ctx, r == RT_SCAN_NONE ? TIGA_E_FORMAT : TIGA_E_RANGE, t, word - t->data, "number of %s is %s",
                        name,
                        r == RT_SCAN_NEGATIVE                                       ? "negative"
                        : r == RT_SCAN_NONE || (r == RT_SCAN_OK && end != word + n) ? "not a whole number"
                                                                                    : "too large");
}

static tiga_status parse_sizes(tiga_context *ctx, const rt_text *t, header *h) {
    const char *end = t->data + t->len, *p = memchr(t->data, '\n', (size_t)t->len), *word;
    size_t n = 0;
    while (p && p < end) { /* comments and blank lines */
        const char *line = next_word(p + 1, &word, &n);
        if (n && *word != '%')
            break;
        n = 0;
        p = memchr(line, '\n', (size_t)(end - line));
    }
    if (!n)
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, t->len, "the line of sizes is missing");
    p = word;
    tiga_status status = parse_size(ctx, t, &p, "rows", &h->rows);
    if (status == TIGA_OK)
        status = parse_size(ctx, t, &p, "columns", &h->columns);
    if (status == TIGA_OK)
        status = parse_size(ctx, t, &p, "entries", &h->entries);
    if (status != TIGA_OK)
        return status;
    p = next_word(p, &word, &n);
    if (n)
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, word - t->data, "more than three sizes");
    const char *line_end = p;
    p = memchr(p, '\n', (size_t)(end - p));
    h->body_at = p ? p + 1 - t->data : t->len;
    if (h->symmetry != GENERAL && h->rows != h->columns)
        return rt_text_fail(ctx, TIGA_E_FORMAT, t, word - t->data,
                            "a symmetric matrix must be square, this one is %lld x %lld", (long long)h->rows,
                            (long long)h->columns);
    return rt_rows_fit(ctx, t, line_end - t->data, h->rows);
}

/* Appends the other triangle to grown arrays. */
static void mirror(const header *h, rt_edges *e, int64_t n) {
    int64_t *values = e->values;
    int64_t at = n;
    for (int64_t i = 0; i < n; i++) {
        if (e->dst[i] == e->src[i])
            continue;
        e->dst[at] = e->src[i];
        e->src[at] = e->dst[i];
        if (values)
            values[at] = values[i];
        if (values && h->symmetry == SKEW) {
            if (e->value_dtype == TIGA_F64)
                ((double *)e->values)[at] = -((double *)e->values)[i];
            else
                values[at] = (int64_t)(0 - (uint64_t)values[i]);
        }
        at++;
    }
    e->n = at;
}

static tiga_status grow(tiga_context *ctx, const char *name, int64_t **array, int64_t n) {
    int64_t *bigger;
    if (!*array)
        return TIGA_OK;
    tiga_status status = rt_mem_take(ctx, 2 * n, 8, false, name, (void **)&bigger);
    if (status != TIGA_OK)
        return status;
    memcpy(bigger, *array, (size_t)n * 8);
    rt_mem_free(*array);
    *array = bigger;
    return TIGA_OK;
}

static tiga_status expand(tiga_context *ctx, const rt_text *t, const header *h, rt_edges *e) {
    tiga_status status = grow(ctx, t->name, &e->dst, e->n);
    if (status == TIGA_OK)
        status = grow(ctx, t->name, &e->src, e->n);
    if (status == TIGA_OK)
        status = grow(ctx, t->name, (int64_t **)&e->values, e->n);
    if (status == TIGA_OK)
        mirror(h, e, e->n);
    return status;
}

static tiga_status check_count(tiga_context *ctx, const rt_lines *l, const header *h, int64_t n) {
    const char *text = l->text->data;
    if (n < h->entries) /* points to the end of the line of sizes, which quotes all of it */
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, text[h->body_at - 1] == '\n' ? h->body_at - 1 : h->body_at,
                            "%lld entries are promised, the file has only %lld", (long long)h->entries, (long long)n);
    if (n > h->entries)
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, rt_lines_find(l, h->entries),
                            "more entries than the %lld that are promised", (long long)h->entries);
    return TIGA_OK;
}

tiga_status rt_mtx_parse(tiga_context *ctx, const rt_text *t, const rt_progress *p, tiga_graph **out,
                         tiga_array *values) {
    header h = {0};
    tiga_status status = parse_banner(ctx, t, &h);
    if (status == TIGA_OK)
        status = parse_sizes(ctx, t, &h);
    if (status != TIGA_OK)
        return status;
    rt_lines l = {.text = t,
                  .begin = h.body_at,
                  .name_a = "row",
                  .name_b = "column",
                  .values = h.values,
                  .first_id = 1,
                  .limit_a = h.rows,
                  .limit_b = h.columns,
                  .zero_diagonal = h.symmetry == SKEW};
    rt_columns c;
    status = rt_lines_parse(ctx, &l, p, &c);
    if (status != TIGA_OK)
        return status;
    rt_edges e = {c.n, h.rows, h.columns, c.a, c.b, c.values, c.value_dtype};
    status = check_count(ctx, &l, &h, c.n);
    if (status == TIGA_OK && h.symmetry != GENERAL)
        status = expand(ctx, t, &h, &e);
    if (status == TIGA_OK)
        status = rt_graph_from_edges(ctx, t->name, &e, h.symmetry == GENERAL && rt_keeps_order(p), out, values);
    rt_edges_fini(&e);
    return status;
}
