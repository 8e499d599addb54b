/* Relations of more than 2^31 edges: forward kernels over one, exact in whole numbers.
 *
 * The columns and the edge field are memory that nothing was written to, but for a few pages, so all of it is pages of zeros that
 * take no room (76 MiB in all); 2^31 edges are walked, one row has most of them, with 32-bit columns and with 64-bit ones.  What stands behind edge 2^31 is told from the rest by its
 * sources and its field.  Not here: results per edge and gradients, which have arrays of that size that are written (2 GiB and
 * 16 GiB at least). */
#include <tiga/jit.h>
#include <tiga/tiga.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BEHIND 1000
#define N_EDGES ((INT64_C(1) << 31) + BEHIND)
enum { N_DST = 5, N_SRC = 3, LAST = 10, BEFORE = 7 };

static const char text[] = "kernel degrees() -> i64 { return reduce count() }\n"
                           "kernel sums(src x: i64) -> i64 { return reduce sum(src.x) }\n"
                           "kernel marks(edge w: u8) -> i64 { return reduce sum(i64(edge.w)) }\n"
                           "kernel wide[F](src y: i64[F], edge w: u8) -> i64[F] { return reduce sum(src.y + i64(edge.w)) }\n"
                           "kernel most(src x: i64, edge w: u8) -> (top: i64, from: i64) {\n"
                           "    return (top = reduce max(src.x), from = reduce argmax(i64(edge.w)))\n}\n";

static const int64_t offsets[N_DST + 1] = {0, BEFORE, BEFORE, N_EDGES - LAST - 1, N_EDGES - LAST, N_EDGES};

static void die(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void *zeros(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        die("mmap", "no address space");
    madvise(p, bytes, MADV_NOHUGEPAGE); /* writing to one page is not to make 512 of them */
    return p;
}

/* The last BEHIND edges have source 1, the very last one source 2; the last three are marked 1, 2 and 9. */
static void fill(int32_t *sources, int64_t *wide, uint8_t *w) {
    for (int64_t e = N_EDGES - BEHIND; e < N_EDGES; e++)
        wide[e] = sources[e] = e == N_EDGES - 1 ? 2 : 1;
    w[N_EDGES - 3] = 1;
    w[N_EDGES - 2] = 2;
    w[N_EDGES - 1] = 9;
}

static void call(tiga_context *ctx, tiga_module *m, tiga_graph *g, const char *name, tiga_binding *in, int n_in,
                 tiga_binding *out, int n_out) {
    if (tiga_call(ctx, m, name, g, in, n_in, out, n_out))
        die(name, tiga_error_text(ctx));
}

static void expect(const char *name, const int64_t *got, const int64_t *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i]) {
            fprintf(stderr, "%s[%zu] = %" PRId64 ", not %" PRId64 "\n", name, i, got[i], want[i]);
            exit(1);
        }
    printf("%s is right\n", name);
}

static void walk(tiga_context *ctx, tiga_module *m, const void *sources, int bits, uint8_t *w) {
    int64_t x[N_SRC] = {1, 100, 10000}, y[N_SRC][2] = {{0, 1}, {3, 4}, {5, 7}}, got[2][N_DST * 2];
    tiga_graph *g = NULL;
    if (tiga_graph_from_csr(ctx, N_DST, N_SRC, offsets, sources, bits, TIGA_BORROW, &g))
        die("graph", tiga_error_text(ctx));
    tiga_array ax = tiga_array_borrow(x, TIGA_I64, 1, (int64_t[]){N_SRC});
    tiga_array ay = tiga_array_borrow(y, TIGA_I64, 2, (int64_t[]){N_SRC, 2});
    tiga_array aw = tiga_array_borrow(w, TIGA_U8, 1, (int64_t[]){N_EDGES});
    tiga_array rows = tiga_array_borrow(got[0], TIGA_I64, 1, (int64_t[]){N_DST}), second = rows;
    tiga_array wide = tiga_array_borrow(got[0], TIGA_I64, 2, (int64_t[]){N_DST, 2});
    second.data = got[1];
    tiga_binding out = {"out", &rows}, out2[] = {{"top", &rows}, {"from", &second}}, out_wide = {"out", &wide};
    tiga_binding in[] = {{"x", &ax}, {"w", &aw}}, in_wide[] = {{"y", &ay}, {"w", &aw}};

    const int64_t hub = N_EDGES - LAST - 1 - BEFORE, ones = BEHIND - LAST - 1; /* edges of row 2; those with source 1 */
    call(ctx, m, g, "degrees", NULL, 0, &out, 1);
    expect("degrees", got[0], (int64_t[]){BEFORE, 0, hub, 1, LAST}, N_DST);
    call(ctx, m, g, "sums", in, 1, &out, 1);
    expect("sums", got[0], (int64_t[]){BEFORE, 0, hub - ones + 100 * ones, 100, 9 * 100 + 10000}, N_DST);
    call(ctx, m, g, "marks", in + 1, 1, &out, 1);
    expect("marks", got[0], (int64_t[]){0, 0, 0, 0, 12}, N_DST);
    call(ctx, m, g, "most", in, 2, out2, 2);
    expect("top", got[0], (int64_t[]){1, INT64_MIN, 100, 100, 10000}, N_DST);
    expect("from", got[1], (int64_t[]){0, -1, 0, 1, 2}, N_DST);
    call(ctx, m, g, "wide", in_wide, 2, &out_wide, 1);
    expect("wide", got[0],
           (int64_t[]){0, BEFORE, 0, 0, 3 * ones, hub - ones + 4 * ones, 3, 4, 9 * 3 + 5 + 12, 9 * 4 + 7 + 12}, N_DST * 2);
    tiga_graph_free(g);
}

int main(void) {
    tiga_context *ctx = NULL;
    tiga_module *m = NULL;
    tigac_result *why = NULL;
    int32_t *sources = zeros(N_EDGES * sizeof *sources);
    int64_t *wide = zeros(N_EDGES * sizeof *wide);
    uint8_t *w = zeros(N_EDGES);
    fill(sources, wide, w);
    if (tiga_context_new(NULL, &ctx))
        die("context", "out of memory");
    if (tiga_jit_source(ctx, text, strlen(text), NULL, &m, &why))
        die("compile", why ? why->rendered : "out of memory");
    walk(ctx, m, sources, 32, w);
    walk(ctx, m, wide, 64, w);
    tiga_module_free(m);
    tigac_result_free(why);
    tiga_context_free(ctx);
    return 0;
}
