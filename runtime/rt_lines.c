/* Lines of edges, `a b [value]`, parsed by many threads.
 *
 * The text is cut at line ends into chunks.  A first pass counts the lines of each, which bounds where its edges go;
 * the second parses straight into place.  Blank and comment lines leave gaps, closed at the end.  Of several errors the
 * first in the file is reported, whatever thread found it.  The text ends with NUL and a chunk with a line end, so
 * scanners need no other bound. */
#include "runtime/runtime.h"

#include <string.h>

enum { CHUNK_BYTES = 1 << 20 };

typedef enum fault {
    FAULT_NONE,
    FAULT_ID,
    FAULT_NEGATIVE,
    FAULT_BIG_ID,
    FAULT_RANGE,
    FAULT_SHORT,
    FAULT_NO_VALUE,
    FAULT_VALUE,
    FAULT_INTEGER,
    FAULT_BIG_VALUE,
    FAULT_BIG_REAL,
    FAULT_BIG_NEGATED,
    FAULT_EXTRA,
    FAULT_DIAGONAL,
} fault;

typedef struct chunk {
    int64_t begin, end; /* of the text */
    int64_t first, n;   /* where its edges go, how many there are */
    bool real;          /* values are doubles */
    fault fault;
    int fault_column;
    int64_t fault_at;
    int64_t max_id, max_at;
} chunk;

typedef struct parse {
    const rt_lines *l;
    const rt_progress *progress;
    chunk *chunks;
    int64_t n_chunks;
    bool has_values;
    int64_t *a, *b, *values;
    _Atomic int64_t done;
} parse;

static inline const char *skip_blanks(const char *p) {
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* Columns are separated by blanks, in edge lists also by one comma with or without blanks. */
static inline const char *skip_separator(const parse *w, const char *p) {
    p = skip_blanks(p);
    return *p == ',' && w->l->commas ? skip_blanks(p + 1) : p;
}

static inline bool separated(char c) { return c == ' ' || c == '\t' || c == '\r' || c == ',' || c == '\n' || c == 0; }

static inline bool line_end(const parse *w, const char *p) {
    return *p == '\n' || p == w->l->text->data + w->l->text->len;
}

static fault scan_id(const char **p, int64_t first, int64_t limit, int64_t *out) {
    const char *start = *p;
    rt_scan_result r = rt_scan_id(p, out);
    if (r == RT_SCAN_OK && separated(**p)) {
        if (*out >= first && *out <= limit)
            return FAULT_NONE;
        *p = start;
        return FAULT_RANGE;
    }
    *p = start;
    return r == RT_SCAN_NEGATIVE ? FAULT_NEGATIVE : r == RT_SCAN_BIG ? FAULT_BIG_ID : FAULT_ID;
}

static fault scan_integer(const char **p, int64_t *out) {
    const char *start = *p;
    rt_scan_result r = rt_scan_i64(p, out);
    if (r == RT_SCAN_OK && separated(**p))
        return FAULT_NONE;
    *p = start;
    return r == RT_SCAN_BIG ? FAULT_BIG_VALUE : FAULT_INTEGER;
}

static fault scan_real(const char **p, int64_t *out) {
    const char *start = *p;
    double v;
    rt_scan_result r = rt_scan_f64(p, &v);
    if (r == RT_SCAN_OK && separated(**p)) {
        memcpy(out, &v, sizeof v);
        return FAULT_NONE;
    }
    *p = start;
    return r == RT_SCAN_BIG ? FAULT_BIG_REAL : FAULT_VALUE;
}

static void to_real(int64_t *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double v = (double)values[i];
        memcpy(&values[i], &v, sizeof v);
    }
}

/* Integers until one is not; then the earlier ones of the chunk become real too. */
static fault scan_value(const parse *w, chunk *c, const char **p, int64_t *out) {
    if (w->l->values == RT_VALUES_I64)
        return scan_integer(p, out);
    if (w->l->values == RT_VALUES_GUESS && !c->real) {
        if (scan_integer(p, out) == FAULT_NONE)
            return FAULT_NONE;
        to_real(w->values + c->first, c->n);
        c->real = true;
    }
    return scan_real(p, out);
}

static bool is_zero(const chunk *c, int64_t bits) {
    if (!c->real)
        return bits == 0;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v == 0;
}

static fault parse_values(const parse *w, chunk *c, const char **p, int64_t at) {
    if (line_end(w, *p))
        return FAULT_NO_VALUE;
    const char *start = *p;
    fault f = scan_value(w, c, p, &w->values[at]);
    if (f == FAULT_NONE && w->l->zero_diagonal && w->a[at] == w->b[at] && !is_zero(c, w->values[at])) {
        *p = start;
        return FAULT_DIAGONAL;
    }
    if (f == FAULT_NONE && w->l->zero_diagonal && !c->real && w->values[at] == INT64_MIN) {
        *p = start;
        return FAULT_BIG_NEGATED;
    }
    *p = f == FAULT_NONE ? skip_blanks(*p) : *p;
    return f;
}

/* One line of an edge, at *p; leaves *p at the line end, or at what is wrong. */
static fault parse_line(const parse *w, chunk *c, const char **p, int *column) {
    const rt_lines *l = w->l;
    int64_t at = c->first + c->n, a, b;
    const char *first = *p;
    *column = 0;
    fault f = scan_id(p, l->first_id, l->limit_a, &a);
    if (f != FAULT_NONE)
        return f;
    *p = skip_separator(w, *p);
    if (line_end(w, *p))
        return FAULT_SHORT;
    const char *second = *p;
    *column = 1;
    f = scan_id(p, l->first_id, l->limit_b, &b);
    if (f != FAULT_NONE)
        return f;
    w->a[at] = a - l->first_id;
    w->b[at] = b - l->first_id;
    if (a > c->max_id || b > c->max_id) {
        c->max_id = a > b ? a : b;
        c->max_at = (a > b ? first : second) - l->text->data;
    }
    *p = w->has_values ? skip_separator(w, *p) : skip_blanks(*p);
    f = w->has_values ? parse_values(w, c, p, at) : FAULT_NONE;
    return f != FAULT_NONE ? f : line_end(w, *p) ? FAULT_NONE : FAULT_EXTRA;
}

static inline bool comment(char c) { return c == '%' || c == '#'; }

static void parse_task(void *arg, int64_t task, int thread) {
    parse *w = arg;
    chunk *c = &w->chunks[task];
    const char *text = w->l->text->data, *p = text + c->begin, *end = text + c->end;
    c->max_id = -1;
    c->real = w->l->values == RT_VALUES_F64;
    while (p < end) {
        p = skip_blanks(p);
        if (comment(*p)) {
            p = memchr(p, '\n', (size_t)(end - p));
            p = p ? p : end;
        } else if (!line_end(w, p)) {
            c->fault = parse_line(w, c, &p, &c->fault_column);
            if (c->fault != FAULT_NONE) {
                c->fault_at = p - text;
                return;
            }
            c->n++;
        }
        p++; /* over the line end */
    }
    int64_t done = atomic_fetch_add(&w->done, 1) + 1;
    if (thread == 0)
        rt_progress_report(w->progress, (double)done / (double)w->n_chunks);
}

static void count_task(void *arg, int64_t task, int thread) {
    (void)thread;
    parse *w = arg;
    chunk *c = &w->chunks[task];
    const char *p = w->l->text->data + c->begin, *end = w->l->text->data + c->end;
    int64_t n = 1; /* the last line may stand without its end */
    for (; p < end; p++)
        n += *p == '\n';
    c->first = n;
}

static void cut(parse *w) {
    const rt_text *t = w->l->text;
    int64_t at = w->l->begin, n = 0;
    while (at < t->len) {
        int64_t end = t->len - at > CHUNK_BYTES ? at + CHUNK_BYTES : t->len;
        const char *stop = memchr(t->data + end - 1, '\n', (size_t)(t->len - end + 1));
        end = stop ? stop - t->data + 1 : t->len;
        w->chunks[n++] = (chunk){.begin = at, .end = end};
        at = end;
    }
    w->n_chunks = n;
}

static tiga_status fail_chunk(tiga_context *ctx, const parse *w, const chunk *c) {
    const rt_lines *l = w->l;
    const char *name = c->fault_column ? l->name_b : l->name_a;
    int64_t at = c->fault_at, limit = c->fault_column ? l->limit_b : l->limit_a;
    switch (c->fault) {
    case FAULT_NONE:
        break;
    case FAULT_ID:
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, at, "%s is not a whole number", name);
    case FAULT_NEGATIVE:
        return rt_text_fail(ctx, TIGA_E_RANGE, l->text, at, "%s is negative", name);
    case FAULT_BIG_ID:
        return rt_text_fail(ctx, TIGA_E_RANGE, l->text, at, "%s is larger than 2^63 - 1", name);
    case FAULT_RANGE:
        if (limit >= RT_MAX_NODES)
            return rt_text_fail(ctx, TIGA_E_RANGE, l->text, at, "%s is larger than 2^56", name);
        return rt_text_fail(ctx, TIGA_E_RANGE, l->text, at, "%s is not in %lld .. %lld", name, (long long)l->first_id,
                            (long long)limit);
    case FAULT_SHORT:
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, at, "%s is missing", l->name_b);
    case FAULT_NO_VALUE:
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, at, "value is missing");
    case FAULT_VALUE:
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, at, "value is not a number");
    case FAULT_INTEGER:
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, at, "value is not a whole number");
    case FAULT_BIG_VALUE:
        return rt_text_fail(ctx, TIGA_E_RANGE, l->text, at, "value does not fit into 64 bits");
    case FAULT_BIG_REAL:
        return rt_text_fail(ctx, TIGA_E_RANGE, l->text, at, "value does not fit into f64");
    case FAULT_BIG_NEGATED:
        return rt_text_fail(ctx, TIGA_E_RANGE, l->text, at, "value does not fit into 64 bits with its sign turned");
    case FAULT_EXTRA:
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, at, "more columns than the %d expected",
                            w->has_values ? 3 : 2);
    case FAULT_DIAGONAL:
        return rt_text_fail(ctx, TIGA_E_FORMAT, l->text, at, "a value on the diagonal of a skew-symmetric matrix");
    }
    return rt_fail(ctx, TIGA_E_INTERNAL, "%s: unknown fault", l->text->name);
}

/* Values are real everywhere when they are real anywhere; gaps are closed. */
static void join(parse *w, rt_columns *out) {
    bool real = false;
    int64_t n = 0;
    for (int64_t i = 0; i < w->n_chunks; i++)
        real |= w->chunks[i].real;
    for (int64_t i = 0; i < w->n_chunks; i++) {
        chunk *c = &w->chunks[i];
        if (w->has_values && real && !c->real)
            to_real(w->values + c->first, c->n);
        if (n != c->first) {
            memmove(w->a + n, w->a + c->first, (size_t)c->n * 8);
            memmove(w->b + n, w->b + c->first, (size_t)c->n * 8);
            if (w->has_values)
                memmove(w->values + n, w->values + c->first, (size_t)c->n * 8);
        }
        n += c->n;
        if (c->max_id > out->max_id) {
            out->max_id = c->max_id;
            out->max_at = c->max_at;
        }
    }
    out->n = n;
    out->value_dtype = real ? TIGA_F64 : TIGA_I64;
}

/* Whether the first edge has a third column. */
static bool first_has_value(const parse *w) {
    const char *p = w->l->text->data + rt_lines_find(w->l, 0);
    int64_t id;
    if (rt_scan_id(&p, &id) != RT_SCAN_OK)
        return false;
    p = skip_separator(w, p);
    if (rt_scan_id(&p, &id) != RT_SCAN_OK)
        return false;
    return !line_end(w, skip_separator(w, p));
}

static tiga_status run(tiga_context *ctx, parse *w, rt_columns *out) {
    const char *what = w->l->text->name;
    cut(w);
    if (!rt_parallel_for(ctx, 0, w->n_chunks, count_task, w))
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", what);
    int64_t lines = 0;
    for (int64_t i = 0; i < w->n_chunks; i++) {
        int64_t n = w->chunks[i].first;
        w->chunks[i].first = lines;
        lines += n;
    }
    w->has_values = w->l->values == RT_VALUES_GUESS ? first_has_value(w) : w->l->values != RT_VALUES_NONE;
    tiga_status status = rt_mem_take(ctx, lines, 8, false, what, (void **)&w->a);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, lines, 8, false, what, (void **)&w->b);
    if (status == TIGA_OK && w->has_values)
        status = rt_mem_take(ctx, lines, 8, false, what, (void **)&w->values);
    if (status != TIGA_OK)
        return status;
    if (!rt_parallel_for(ctx, 0, w->n_chunks, parse_task, w))
        return rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", what);
    for (int64_t i = 0; i < w->n_chunks; i++)
        if (w->chunks[i].fault != FAULT_NONE)
            return fail_chunk(ctx, w, &w->chunks[i]);
    join(w, out);
    return TIGA_OK;
}

tiga_status rt_lines_parse(tiga_context *ctx, const rt_lines *l, const rt_progress *progress, rt_columns *out) {
    *out = (rt_columns){.max_id = -1, .value_dtype = TIGA_I64};
    parse w = {.l = l, .progress = progress};
    tiga_status status = rt_mem_take(ctx, (l->text->len - l->begin) / CHUNK_BYTES + 2, sizeof(chunk), true,
                                     l->text->name, (void **)&w.chunks);
    if (status == TIGA_OK)
        status = run(ctx, &w, out);
    rt_mem_free(w.chunks);
    out->a = w.a;
    out->b = w.b;
    out->values = w.values;
    if (status != TIGA_OK)
        rt_columns_fini(out);
    return status;
}

void rt_columns_fini(rt_columns *c) {
    rt_mem_free(c->a);
    rt_mem_free(c->b);
    rt_mem_free(c->values);
    memset(c, 0, sizeof *c);
}

int64_t rt_lines_find(const rt_lines *l, int64_t n) {
    const char *text = l->text->data, *end = text + l->text->len, *p = text + l->begin;
    while (p < end) {
        const char *start = skip_blanks(p);
        if (start < end && *start != '\n' && !comment(*start) && n-- == 0)
            return start - text;
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : end;
    }
    return l->text->len;
}
