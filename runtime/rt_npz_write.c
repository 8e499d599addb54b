/* Writing SciPy's .npz: members are stored, not deflated, and so read at the speed of the disk.  A snapshot has four
 * members more, which SciPy passes over: the transposed relation and the figures of rt_snapshot.c. */
#include "runtime/runtime.h"

#include <string.h>

typedef struct output {
    rt_zip_member members[RT_ZIP_MEMBERS];
    int n_members;
    tiga_array offsets, sources, values, rows, edges; /* made for writing */
    int64_t figures[RT_FIGURES];
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

static tiga_array borrow(const void *data, int32_t dtype, int64_t n) {
    return tiga_array_borrow((void *)(uintptr_t)data, dtype, 1, &n); /* only read */
}

static void add(output *o, const char *name, const tiga_array *a) { set_array(&o->members[o->n_members++], name, a); }

/* SciPy wants indptr and indices of one type; int32 when both fit. */
static tiga_status add_relation(tiga_context *ctx, const tiga_csr *c, output *o) {
    bool narrow = c->source_bits == 32 && c->n_edges <= INT32_MAX && c->n_dst <= INT32_MAX;
    tiga_array offsets = borrow(c->offsets, TIGA_I64, c->n_dst + 1);
    tiga_array sources = borrow(c->sources, c->source_bits == 32 ? TIGA_I32 : TIGA_I64, c->n_edges);
    tiga_status status = TIGA_OK;
    if (narrow) {
        status = rt_array_convert(ctx, &offsets, TIGA_I32, &o->offsets);
        offsets = o->offsets;
    } else if (c->source_bits == 32) {
        status = rt_array_convert(ctx, &sources, TIGA_I64, &o->sources);
        sources = o->sources;
    }
    if (status != TIGA_OK)
        return status;
    add(o, "indices.npy", &sources);
    add(o, "indptr.npy", &offsets);
    return TIGA_OK;
}

static tiga_status add_values(tiga_context *ctx, const tiga_csr *c, const tiga_array *values, output *o) {
    tiga_status status = TIGA_OK;
    if (!values) {
        status = tiga_array_new(ctx, TIGA_F32, 1, &c->n_edges, &o->values);
        for (int64_t i = 0; i < c->n_edges && status == TIGA_OK; i++)
            ((float *)o->values.data)[i] = 1.0F;
    } else if (values->dtype == TIGA_BF16) { /* SciPy has no bf16, f32 holds it exactly */
        status = rt_array_convert(ctx, values, TIGA_F32, &o->values);
    }
    if (status == TIGA_OK)
        add(o, "data.npy", values && values->dtype != TIGA_BF16 ? values : &o->values);
    return status;
}

/* Numbers below n in the narrowest type, which is not always that in memory: there rows and edges have the same. */
static tiga_status narrowest(tiga_context *ctx, const void *data, const tiga_csr *t, int64_t n, tiga_array *made,
                             tiga_array *out) {
    int32_t type = rt_bits_for(n) == 32 ? TIGA_I32 : TIGA_I64;
    *out = borrow(data, t->source_bits == 32 ? TIGA_I32 : TIGA_I64, t->n_edges);
    if (out->dtype == type)
        return TIGA_OK;
    tiga_status status = rt_array_convert(ctx, out, type, made);
    *out = *made;
    return status;
}

static tiga_status add_snapshot(tiga_context *ctx, tiga_graph *g, output *o) {
    const tiga_csr *t;
    const void *edge_of;
    tiga_graph_stats stats;
    tiga_status status = rt_graph_transposed(ctx, g, &t, &edge_of, NULL);
    if (status == TIGA_OK)
        status = rt_graph_stats(ctx, g, &stats);
    if (status != TIGA_OK)
        return status;
    tiga_array offsets = borrow(t->offsets, TIGA_I64, t->n_dst + 1), rows, edges;
    status = narrowest(ctx, t->sources, t, t->n_src, &o->rows, &rows);
    if (status == TIGA_OK)
        status = narrowest(ctx, edge_of, t, t->n_edges, &o->edges, &edges);
    if (status != TIGA_OK)
        return status;
    rt_snapshot_figures(&stats, o->figures);
    tiga_array figures = borrow(o->figures, TIGA_I64, RT_FIGURES);
    add(o, RT_NPZ_OFFSETS, &offsets);
    add(o, RT_NPZ_SOURCES, &rows);
    add(o, RT_NPZ_EDGE_OF, &edges);
    add(o, RT_NPZ_FIGURES, &figures);
    return TIGA_OK;
}

static tiga_status write_archive(tiga_context *ctx, const char *path, tiga_graph *g, const tiga_array *values,
                                 bool snapshot, output *o) {
    const tiga_csr *c = &g->csr;
    int64_t shape[2] = {c->n_dst, c->n_src};
    tiga_array sizes = borrow(shape, TIGA_I64, 2);
    tiga_status status = add_relation(ctx, c, o);
    if (status == TIGA_OK) {
        set_text(&o->members[o->n_members++]);
        add(o, "shape.npy", &sizes);
        status = add_values(ctx, c, values, o);
    }
    if (status == TIGA_OK && snapshot)
        status = add_snapshot(ctx, g, o);
    return status == TIGA_OK ? rt_zip_write(ctx, path, o->members, o->n_members, 0) : status;
}

static tiga_status check_values(tiga_context *ctx, const char *who, const tiga_csr *c, const tiga_array *a) {
    base_str s = {0};
    if (rt_dtype_valid(a->dtype) && a->rank == 1 && a->shape[0] == c->n_edges && (a->data || !c->n_edges))
        return TIGA_OK;
    rt_shape_text(&s, a->dtype, a->rank, a->shape);
    tiga_status status = rt_fail(ctx, TIGA_E_TYPE, "%s: values must have one element for each of %lld edges, not %s",
                                 who, (long long)c->n_edges, base_str_text(&s));
    base_str_fini(&s);
    return status;
}

static tiga_status write_graph(tiga_context *ctx, const char *who, const char *path, tiga_graph *g,
                               const tiga_array *values, bool snapshot) {
    if (!ctx || !path || !g)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: an argument is NULL", who);
    RT_TURN(ctx);
    rt_begin(ctx);
    tiga_status status = values ? check_values(ctx, who, &g->csr, values) : TIGA_OK;
    if (status != TIGA_OK)
        return status;
    output o;
    memset(&o, 0, sizeof o);
    status = write_archive(ctx, path, g, values, snapshot, &o);
    for (int i = 0; i < o.n_members; i++)
        base_str_fini(&o.members[i].head);
    tiga_array_free(&o.offsets);
    tiga_array_free(&o.sources);
    tiga_array_free(&o.values);
    tiga_array_free(&o.rows);
    tiga_array_free(&o.edges);
    return status;
}

tiga_status tiga_graph_write_npz(tiga_context *ctx, const char *path, tiga_graph *g, const tiga_array *values) {
    return write_graph(ctx, "tiga_graph_write_npz", path, g, values, false);
}

tiga_status tiga_graph_write_snapshot(tiga_context *ctx, const char *path, tiga_graph *g, const tiga_array *values) {
    return write_graph(ctx, "tiga_graph_write_snapshot", path, g, values, true);
}
