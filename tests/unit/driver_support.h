/* For tests of the JIT: calls every function of a module with made-up arguments and puts all results into one hash. */
#ifndef DRIVER_SUPPORT_H
#define DRIVER_SUPPORT_H

#include "base/base.h"
#include "tiga/jit.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char readme_text[] = "kernel gat[H, F](src h: f32[H, F], src a: f32[H], dst b: f32[H]) -> f32[H, F] {\n"
                                  "    let score = leaky_relu(src.a + dst.b, 0.2)\n"
                                  "    return reduce softmax(score, src.h)\n"
                                  "}\n"
                                  "kernel mean_of_neighbours[F](src x: f32[F], edge w: f32) -> f32[F] {\n"
                                  "    return reduce mean(edge.w * src.x, empty = 0)\n"
                                  "}\n"
                                  "program smooth(g: graph, x: f32[g.dst, F], w: f32[g.edge], rounds: i64)\n"
                                  "        -> f32[g.dst, F] {\n"
                                  "    var r = x\n"
                                  "    repeat rounds { r = 0.5 * r + 0.5 * mean_of_neighbours(g, x = r, w = w) }\n"
                                  "    return r\n"
                                  "}\n";
static const char sum_text[] = "kernel total(src x: f32) -> f32 { return reduce sum(src.x) }\n";
static const char bad_text[] = "kernel k(src x: f32) -> f32 {\n    return src.x\n}\n";

enum { TEST_NODES = 40, TEST_DEGREE = 7, TEST_DIM = 21, TEST_ARRAYS = 16 };

/* Nodes x nodes, with an empty row, in columns of 32 or 64 bits. */
static inline tiga_graph *test_graph(tiga_context *ctx, int bits) {
    static int64_t offsets[TEST_NODES + 1], wide[TEST_NODES * TEST_DEGREE];
    static int32_t narrow[TEST_NODES * TEST_DEGREE];
    int64_t n = 0;
    for (int i = 0; i < TEST_NODES; i++) {
        offsets[i] = n;
        for (int k = 0; k < i % TEST_DEGREE; k++, n++)
            narrow[n] = (int32_t)(wide[n] = (i * 31 + k * k * 7) % TEST_NODES);
    }
    offsets[TEST_NODES] = n;
    tiga_graph *g;
    tiga_status s =
        tiga_graph_from_csr(ctx, TEST_NODES, TEST_NODES, offsets, bits == 64 ? (void *)wide : (void *)narrow, bits,
                            TIGA_BORROW, &g); /* a copy would be narrowed */
    cr_assert_eq(s, TIGA_OK, "%s", tiga_error_text(ctx));
    return g;
}

static inline void test_fill(tiga_array *a, int dtype, uint32_t seed) {
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->shape[i];
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        int v = (int)(seed >> 24);
        if (dtype == TIGA_F32)
            ((float *)a->data)[i] = (float)(v - 100) / 16;
        else if (dtype == TIGA_F64)
            ((double *)a->data)[i] = (v - 100) / 16.0;
        else if (dtype == TIGA_I64)
            ((int64_t *)a->data)[i] = v % 4 + 1;
        else if (dtype == TIGA_I32)
            ((int32_t *)a->data)[i] = v % 4 + 1;
        else if (dtype == TIGA_BOOL)
            ((uint8_t *)a->data)[i] = v & 1;
        else
            cr_assert_fail("element type %d", dtype);
    }
}

static inline void test_make(tiga_context *ctx, tiga_graph *g, const tiga_field_info *f, int seed, tiga_array *out) {
    const tiga_csr *csr = tiga_graph_csr(g);
    int64_t shape[7];
    int rank = 0;
    if (f->at == TIGA_AT_EDGE)
        shape[rank++] = csr->n_edges;
    else if (f->at != TIGA_AT_PARAM)
        shape[rank++] = csr->n_dst;
    for (int i = 0; i < f->rank; i++)
        shape[rank++] = f->shape[i] >= 0 ? f->shape[i] : TEST_DIM;
    cr_assert_eq(tiga_array_new(ctx, f->dtype, rank, shape, out), TIGA_OK);
    test_fill(out, f->dtype, (uint32_t)seed);
}

static inline tiga_status test_call_one(tiga_context *ctx, tiga_module *m, const tiga_function_info *f, tiga_graph *g,
                                        base_hasher *h) {
    tiga_array in[TEST_ARRAYS], out[TEST_ARRAYS] = {{0}};
    tiga_binding ins[TEST_ARRAYS], outs[TEST_ARRAYS];
    tiga_graph *graphs[TEST_ARRAYS];
    int n_in = 0, n_graphs = f->is_program ? 0 : 1;
    graphs[0] = g;
    for (int i = 0; i < f->n_params; i++) {
        if (f->params[i].at == TIGA_AT_GRAPH) {
            graphs[n_graphs++] = g;
            continue;
        }
        test_make(ctx, g, &f->params[i], i, &in[n_in]);
        ins[n_in] = (tiga_binding){f->params[i].name, &in[n_in]};
        n_in++;
    }
    for (int i = 0; i < f->n_results; i++)
        outs[i] = (tiga_binding){f->results[i].name, &out[i]};
    tiga_status s = tiga_call_many(ctx, m, f->name, graphs, n_graphs, ins, n_in, outs, f->n_results, NULL);
    for (int i = 0; i < f->n_results && s == TIGA_OK; i++)
        base_hasher_field(h, out[i].data, (size_t)tiga_array_bytes(&out[i]));
    for (int i = 0; i < n_in; i++)
        tiga_array_free(&in[i]);
    for (int i = 0; i < f->n_results; i++)
        tiga_array_free(&out[i]);
    return s;
}

/* Every function once; 0 when one failed. */
static inline uint64_t test_call_all(tiga_context *ctx, tiga_module *m, int bits) {
    const tiga_module_info *info = tiga_module_get_info(m);
    tiga_graph *g = test_graph(ctx, bits);
    base_hasher hasher, *h = &hasher;
    base_hasher_init(h);
    bool ok = true;
    for (int i = 0; i < info->n_functions; i++)
        ok = ok && test_call_one(ctx, m, &info->functions[i], g, h) == TIGA_OK;
    uint64_t hash = base_hasher_digest(h).lo;
    tiga_graph_free(g);
    return ok ? hash | 1 : 0;
}

#endif
