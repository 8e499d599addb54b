/* The header of a safetensors file: eight bytes of length, then JSON that names each tensor's type, shape and place.  What
 * is ours stands in "__metadata__", where other readers look past it:
 *
 *     tiga.header   xxh3 of length and header, taken with these digits as zeros
 *     tiga.xxh3     xxh3 of each MiB of each tensor, by place
 *     tiga.dtype.N  c64 or c128: tensor N is stored as reals with one more axis of 2
 *
 * The first two come first, at fixed places.  A header that has one of them and not the other, or not there, is damaged. */
#include "hierarchy_runtime/hr_memory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE_SEAL "{\"__metadata__\":{\"tiga.header\":\""
#define BEFORE_SUMS "\",\"tiga.xxh3\":\""
enum {
    LENGTH = 8,
    DIGITS = 16,
    SEAL_AT = LENGTH + sizeof BEFORE_SEAL - 1,
    SUMS_AT = SEAL_AT + DIGITS + sizeof BEFORE_SUMS - 1
};

static const struct {
    int32_t dtype;
    const char *type;
    bool pair; /* stored as two of them */
} types[] = {{TIGA_BOOL, "BOOL", false}, {TIGA_I32, "I32", false}, {TIGA_I64, "I64", false},   {TIGA_F32, "F32", false},
             {TIGA_F64, "F64", false},   {TIGA_F16, "F16", false}, {TIGA_BF16, "BF16", false}, {TIGA_I8, "I8", false},
             {TIGA_U8, "U8", false},     {TIGA_C64, "F32", true},  {TIGA_C128, "F64", true}};
enum { N_TYPES = sizeof types / sizeof types[0] };

static void put_hex(char *to, uint64_t v) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < DIGITS; i++)
        to[i] = digits[(v >> (60 - 4 * i)) & 15];
}

/* Exactly what put_hex writes. */
static bool get_hex(const char *from, uint64_t *v) {
    *v = 0;
    for (int i = 0; i < DIGITS; i++) {
        char c = from[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
        *v = *v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* ---- writing ---- */

static tiga_status check_name(tiga_context *ctx, const hr_layout *l, int i) {
    const char *name = l->tensors[i].name;
    json_t *text = name && *name ? json_string(name) : NULL; /* NULL when it is not UTF-8 */
    if (!text || strcmp(name, "__metadata__") == 0) {
        json_decref(text);
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_save: tensor %d has no name that a file can hold", i);
    }
    json_decref(text);
    for (int k = 0; k < i; k++)
        if (strcmp(l->tensors[k].name, name) == 0)
            return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_save: two tensors are named '%s'", name);
    return TIGA_OK;
}

static void put_text(base_str *s, const char *text) {
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            base_str_addf(s, "\\%c", *text);
        else if ((unsigned char)*text < 32)
            base_str_addf(s, "\\u%04x", (unsigned)*text);
        else
            base_str_add_n(s, text, 1);
}

static int type_of(int32_t dtype) {
    int k = 0;
    while (k < N_TYPES && types[k].dtype != dtype)
        k++;
    return k;
}

static void put_tensor(base_str *s, const hr_layout *l, int i) {
    const tiga_tensor_view *t = &l->tensors[i];
    int k = type_of(t->dtype);
    base_str_add(s, ",\"");
    put_text(s, t->name);
    base_str_addf(s, "\":{\"dtype\":\"%s\",\"shape\":[", types[k].type);
    for (int d = 0; d < t->rank; d++)
        base_str_addf(s, d ? ",%lld" : "%lld", (long long)t->shape[d]);
    if (types[k].pair)
        base_str_add(s, t->rank ? ",2" : "2");
    base_str_addf(s, "],\"data_offsets\":[%lld,%lld]}", (long long)l->at[i], (long long)(l->at[i] + l->bytes[i]));
}

static void put_length(char *to, uint64_t n) {
    for (int i = 0; i < LENGTH; i++)
        to[i] = (char)(n >> (8 * i));
}

tiga_status hr_safetensors_header(tiga_context *ctx, const hr_layout *l, base_str *out) {
    for (int i = 0; i < l->n; i++) {
        tiga_status status = check_name(ctx, l, i);
        if (status != TIGA_OK)
            return status;
    }
    static const char zeros[DIGITS + 1] = "0000000000000000";
    base_str_add_n(out, zeros, LENGTH);
    base_str_addf(out, "%s%s%s", BEFORE_SEAL, zeros, BEFORE_SUMS);
    for (int64_t p = 0; p < l->n_pages; p++)
        base_str_add_n(out, zeros, DIGITS);
    base_str_add(out, "\"");
    for (int i = 0; i < l->n; i++)
        if (types[type_of(l->tensors[i].dtype)].pair) {
            base_str_add(out, ",\"tiga.dtype.");
            put_text(out, l->tensors[i].name);
            base_str_addf(out, "\":\"%s\"", tiga_dtype_text(l->tensors[i].dtype));
        }
    base_str_add(out, "}");
    for (int i = 0; i < l->n; i++)
        put_tensor(out, l, l->order[i]);
    base_str_add(out, "}");
    size_t unit = l->n_pages > l->n ? HR_UNIT : 64; /* large ones can be written with O_DIRECT */
    while (!out->failed && out->len % unit)
        base_str_add(out, " ");
    if (out->failed)
        return rt_fail(ctx, TIGA_E_MEMORY, "tiga_save: out of memory");
    put_length(out->data, out->len - LENGTH);
    return TIGA_OK;
}

void hr_safetensors_seal(base_str *header, const uint64_t *sums, int64_t n_pages) {
    for (int64_t p = 0; p < n_pages; p++)
        put_hex(header->data + SUMS_AT + p * DIGITS, sums[p]);
    put_hex(header->data + SEAL_AT, hr_checksum(header->data, (int64_t)header->len));
}

/* ---- reading ---- */

typedef struct parse {
    tiga_context *ctx;
    tiga_snapshot *s;
    int64_t data_at, data_bytes;
    json_t *metadata; /* or NULL */
} parse;

static tiga_status fail(const parse *p, const char *why, const char *name) {
    return rt_fail(p->ctx, TIGA_E_FORMAT, "%s: %s%s%s%s", p->s->path, why, name ? " '" : "", name ? name : "",
                   name ? "'" : "");
}

static bool get_size(const json_t *v, int64_t *out) {
    *out = json_is_integer(v) ? (int64_t)json_integer_value(v) : -1;
    return *out >= 0;
}

/* false: not a shape.  More than 7 axes: the tensor is of a type that Tiga does not have. */
static bool get_shape(const json_t *shape, hr_entry *e) {
    if (!json_is_array(shape))
        return false;
    size_t n = json_array_size(shape);
    for (size_t d = 0; d < n; d++) {
        int64_t size;
        if (!get_size(json_array_get(shape, d), &size))
            return false;
        if (d < 7)
            e->shape[d] = size;
    }
    e->rank = (int32_t)n;
    return n < 1 << 20;
}

/* What the metadata says of the tensor's type, or NULL.  false: no memory. */
static bool find_said(const parse *p, const char *name, const char **said) {
    base_str key = {0};
    base_str_add(&key, "tiga.dtype.");
    base_str_add(&key, name);
    bool good = !key.failed;
    *said = good ? json_string_value(json_object_get(p->metadata, key.data)) : NULL;
    base_str_fini(&key);
    return good;
}

/* Whether it is said to be a complex tensor, and can be. */
static bool is_pair(const char *said, const hr_entry *e, const json_t *shape, int32_t dtype) {
    return said && strcmp(said, tiga_dtype_text(dtype)) == 0 && e->rank > 0 && e->rank <= 8 &&
           json_integer_value(json_array_get(shape, (size_t)e->rank - 1)) == 2;
}

static tiga_status set_type(const parse *p, hr_entry *e, const char *type, const json_t *shape) {
    const char *said;
    if (!find_said(p, e->name, &said))
        return rt_fail(p->ctx, TIGA_E_MEMORY, "%s: out of memory", p->s->path);
    e->dtype = -1;
    snprintf(e->type, sizeof e->type, "%s", type);
    for (int k = 0; k < N_TYPES; k++)
        if (strcmp(types[k].type, type) == 0 && (!types[k].pair || is_pair(said, e, shape, types[k].dtype))) {
            e->dtype = types[k].dtype;
            if (types[k].pair && --e->rank < 7)
                e->shape[e->rank] = 0;
        }
    if (e->rank > 7) {
        snprintf(e->type, sizeof e->type, "rank %d", (int)e->rank);
        e->dtype = -1;
        e->rank = 0;
    }
    return TIGA_OK;
}

static tiga_status read_entry(const parse *p, const char *name, const json_t *tensor, hr_entry *e) {
    size_t n = strlen(name) + 1;
    e->name = base_alloc(n);
    if (!e->name)
        return rt_fail(p->ctx, TIGA_E_MEMORY, "%s: out of memory", p->s->path);
    memcpy(e->name, name, n);
    const char *type = json_string_value(json_object_get(tensor, "dtype"));
    const json_t *shape = json_object_get(tensor, "shape"), *place = json_object_get(tensor, "data_offsets");
    int64_t begin, end, n_bytes;
    if (!type || !get_shape(shape, e) || json_array_size(place) != 2 || !get_size(json_array_get(place, 0), &begin) ||
        !get_size(json_array_get(place, 1), &end) || begin > end || end > p->data_bytes)
        return fail(p, "the header is wrong about tensor", name);
    tiga_status status = set_type(p, e, type, shape);
    if (status != TIGA_OK)
        return status;
    e->at = p->data_at + begin;
    e->bytes = end - begin;
    if (e->dtype >= 0 && (!rt_shape_bytes(e->dtype, e->rank, e->shape, &n_bytes) || n_bytes != e->bytes))
        return fail(p, "shape and size differ of tensor", name);
    return TIGA_OK;
}

static int by_place(const void *a, const void *b) {
    const hr_entry *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1) : strcmp(x->name, y->name);
}

static tiga_status read_entries(const parse *p, json_t *root) {
    tiga_snapshot *s = p->s;
    const char *name;
    json_t *tensor;
    s->entries = base_alloc_zero((json_object_size(root) + 1) * sizeof *s->entries);
    if (!s->entries)
        return rt_fail(p->ctx, TIGA_E_MEMORY, "%s: out of memory", s->path);
    json_object_foreach(root, name, tensor) {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        tiga_status status = read_entry(p, name, tensor, &s->entries[s->n++]);
        if (status != TIGA_OK)
            return status;
    }
    qsort(s->entries, (size_t)s->n, sizeof *s->entries, by_place);
    int64_t at = p->data_at;
    for (int i = 0; i < s->n; at += s->entries[i++].bytes)
        if (s->entries[i].at != at)
            return fail(p, "there is a gap or an overlap before tensor", s->entries[i].name);
    return at == p->data_at + p->data_bytes ? TIGA_OK : fail(p, "there are bytes that belong to no tensor", NULL);
}

static tiga_status read_sums(const parse *p, const char *hex) {
    tiga_snapshot *s = p->s;
    int64_t n = 0;
    for (int i = 0; i < s->n; i++)
        n += hr_pages(s->entries[i].bytes);
    if (strlen(hex) != (size_t)n * DIGITS)
        return fail(p, "damaged: it has another number of checksums than pages", NULL);
    s->all_sums = base_alloc(((size_t)n + 1) * sizeof *s->all_sums);
    if (!s->all_sums)
        return rt_fail(p->ctx, TIGA_E_MEMORY, "%s: out of memory", s->path);
    for (int64_t k = 0; k < n; k++)
        if (!get_hex(hex + k * DIGITS, &s->all_sums[k]))
            return fail(p, "damaged: a checksum is not a number", NULL);
    int64_t at = 0;
    for (int i = 0; i < s->n; at += hr_pages(s->entries[i++].bytes))
        s->entries[i].sums = s->all_sums + at;
    return TIGA_OK;
}

/* Whether length and header are what was written. */
static bool is_sealed(const char *text, int64_t n) {
    static const char zeros[DIGITS + 1] = "0000000000000000";
    uint64_t said;
    int64_t seal_at = SEAL_AT - LENGTH, rest = seal_at + DIGITS;
    if (n < rest || memcmp(text, BEFORE_SEAL, (size_t)seal_at) != 0 || !get_hex(text + seal_at, &said))
        return false;
    char length[LENGTH];
    put_length(length, (uint64_t)n);
    base_hasher h;
    base_hasher_init(&h);
    base_hasher_add(&h, length, LENGTH);
    base_hasher_add(&h, text, (size_t)seal_at);
    base_hasher_add(&h, zeros, DIGITS);
    base_hasher_add(&h, text + rest, (size_t)(n - rest));
    return base_hasher_digest(&h).lo == said;
}

static bool has_ours(json_t *metadata) {
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value) {
        if (strncmp(key, "tiga.", 5) == 0)
            return true;
    }
    return false;
}

static tiga_status read_root(parse *p, json_t *root, const char *text, int64_t n) {
    if (!json_is_object(root))
        return fail(p, "the header is not an object", NULL);
    p->metadata = json_object_get(root, "__metadata__");
    bool ours = has_ours(p->metadata) || (n >= 40 && memcmp(text, BEFORE_SEAL, 20) == 0 && strstr(text, "tiga."));
    const char *sums = json_string_value(json_object_get(p->metadata, "tiga.xxh3"));
    if (ours && (!sums || !is_sealed(text, n)))
        return fail(p, "damaged: the checksum of the header is wrong", NULL);
    tiga_status status = read_entries(p, root);
    return status == TIGA_OK && ours ? read_sums(p, sums) : status;
}

tiga_status hr_safetensors_parse(tiga_context *ctx, tiga_snapshot *s, const char *text, int64_t n, int64_t file_bytes) {
    parse p = {.ctx = ctx, .s = s, .data_at = LENGTH + n, .data_bytes = file_bytes - LENGTH - n};
    json_error_t error;
    json_t *root = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: the header is not JSON: %s", s->path, error.text);
    tiga_status status = read_root(&p, root, text, n);
    json_decref(root);
    return status;
}
