/* Graph files that are right: every format, every variant; bad files are in tests/files. */
#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <zlib.h>

static tiga_context *ctx;
static char path[80];
static void open_context(void) {
    tiga_context_options o = tiga_context_defaults();
    o.threads = 3;
    cr_assert_eq(tiga_context_new(&o, &ctx), TIGA_OK);
    snprintf(path, sizeof path, "/tmp/tiga_files_%ld.npz", (long)getpid());
}
static void close_context(void) {
    unlink(path);
    tiga_context_free(ctx);
}
TestSuite(files, .init = open_context, .fini = close_context);

static tiga_graph *parse(const char *name, const char *text, tiga_array *values) {
    tiga_graph *g;
    cr_assert_eq(rt_graph_parse(ctx, name, text, (int64_t)strlen(text), &g, values), TIGA_OK, "%s",
                 tiga_error_text(ctx));
    return g;
}

/* "3x4: 0<2 2<1=5 ..." row < source = value */
static void check(const char *name, const char *text, const char *want) {
    tiga_array v;
    tiga_graph *g = parse(name, text, &v);
    const tiga_csr *c = tiga_graph_csr(g);
    base_str s = {0};
    base_str_addf(&s, "%lldx%lld:", (long long)c->n_dst, (long long)c->n_src);
    for (int64_t r = 0; r < c->n_dst; r++)
        for (int64_t e = c->offsets[r]; e < c->offsets[r + 1]; e++) {
            base_str_addf(&s, " %lld<%d", (long long)r, ((const int32_t *)c->sources)[e]);
            if (v.data && v.dtype == TIGA_I64)
                base_str_addf(&s, "=%lld", (long long)((int64_t *)v.data)[e]);
            if (v.data && v.dtype == TIGA_F64) {
                base_str_add(&s, "=");
                base_str_add_f64(&s, ((double *)v.data)[e]);
                base_str_add(&s, "f");
            }
        }
    cr_assert_str_eq(base_str_text(&s), want, "%s: %s", name, base_str_text(&s));
    base_str_fini(&s);
    tiga_array_free(&v);
    tiga_graph_free(g);
}

#define MM "%%MatrixMarket matrix coordinate "

Test(files, matrix_market) {
    check("g.mtx", MM "real general\n% comment\n\n3 4 3\n1 3 0.5\n3 2 -1e3\n1 1 2\n",
          "3x4: 0<2=0.5f 0<0=2f 2<1=-1e+03f");
    check("g.mtx", MM "integer general\n2 2 2\n2 1 9223372036854775807\n2 1 -9223372036854775808\n",
          "2x2: 1<0=9223372036854775807 1<0=-9223372036854775808");
    check("g.mtx", "%%MatrixMarket  MATRIX\tCoordinate Pattern General \r\n2 2 2\r\n2 1\r\n1 2\r\n", "2x2: 0<1 1<0");
    check("g.mtx", MM "real symmetric\n3 3 3\n1 1 1\n2 1 2\n3 2 3", "3x3: 0<0=1f 0<1=2f 1<0=2f 1<2=3f 2<1=3f");
    check("g.mtx", MM "pattern symmetric\n3 3 2\n2 1\n3 3\n", "3x3: 0<1 1<0 2<2");
    check("g.mtx", MM "integer skew-symmetric\n3 3 2\n2 1 5\n3 3 0\n", "3x3: 0<1=-5 1<0=5 2<2=0");
    check("g.mtx", MM "real skew-symmetric\n3 3 1\n3 1 1.5\n", "3x3: 0<2=-1.5f 2<0=1.5f");
    check("g.mtx", MM "real general\n0 0 0\n", "0x0:");
    check("g.mtx", MM "real general\n5 2 0", "5x2:");
    check("g.mtx", MM "real general\n2 2 1\n   1\t 2   1.5 \n\n  \n% end\n", "2x2: 0<1=1.5f");
    check("wrong.txt", MM "pattern general\n2 2 1\n1 2\n", "2x2: 0<1"); /* by content, not by name */
}

Test(files, edge_lists) {
    check("g.txt", "# SNAP\n# Nodes: 3\n0\t1\r\n0\t2\r\n2\t1\r\n", "3x3: 1<0 1<2 2<0");
    check("g.el", "0 1\n0 1\n1 1\n", "2x2: 1<0 1<0 1<1");
    check("g.wel", "0 1 5\n2 1 -3\n", "3x3: 1<0=5 1<2=-3");
    check("g.wel", "0 1 5\n2 1 0.5\n1 0 7", "3x3: 0<1=7f 1<0=5f 1<2=0.5f");
    check("g.csv", "0,1,5\n2 , 1,6\n", "3x3: 1<0=5 1<2=6");
    check("g.txt", "%sym unweighted\n\n  4 0  \n#x\n 0 4\n", "5x5: 0<4 4<0");
    check("g.txt", "7 7", "8x8: 7<7");
    check("g.txt", "0 1 nan\n1 0 inf\n", "2x2: 0<1=inff 1<0=nanf");
    check("g.txt", "0 1 99999999999999999999\n", "2x2: 1<0=1e+20f"); /* more than an i64 holds is real */
}

Test(files, numbers_that_do_not_fit) {
    base_str s = {0};
    tiga_graph *g;
    base_str_add(&s, MM "real general\n2 2 2\n1 1 nan\n2 1 ");
    for (int i = 0; i < 2000000; i++)
        base_str_add(&s, "9");
    base_str_add(&s, "\n");
    cr_assert_eq(rt_graph_parse(ctx, "g.mtx", s.data, (int64_t)s.len, &g, NULL), TIGA_E_RANGE);
    cr_assert(strstr(tiga_error_text(ctx), "g.mtx:4: value does not fit into f64: '999"), "%s", tiga_error_text(ctx));
    cr_assert_null(g);
    base_str_fini(&s);
    check("g.mtx", MM "real skew-symmetric\n2 2 1\n2 1 -inf\n", "2x2: 0<1=inff 1<0=-inff");
}

/* A file of several chunks, with comments between, parsed by one thread and by many: the same bytes. */
Test(files, chunks_do_not_show) {
    base_str s = {0};
    base_str_add(&s, "# head\n");
    srand(5);
    for (int i = 0; i < 300000; i++) {
        base_str_addf(&s, "%d %d %d\n", rand() % 5000, rand() % 5000, i);
        if (i % 1000 == 0)
            base_str_add(&s, "# between\n\n");
    }
    base_str_add(&s, "17 18 0.25\n"); /* the last value makes all of them real */
    tiga_array first, v;
    int threads = ctx->threads;
    ctx->threads = 1;
    tiga_graph *g = parse("g.txt", s.data, &first);
    cr_assert_eq(tiga_graph_csr(g)->n_edges, 300001);
    cr_assert_eq(first.dtype, TIGA_F64);
    for (ctx->threads = 2; ctx->threads <= 5; ctx->threads++) {
        tiga_graph *h = parse("g.txt", s.data, &v);
        const tiga_csr *a = tiga_graph_csr(g), *b = tiga_graph_csr(h);
        cr_assert(memcmp(a->offsets, b->offsets, 5001 * 8) == 0 && memcmp(a->sources, b->sources, 300001 * 4) == 0);
        cr_assert(memcmp(first.data, v.data, 300001 * 8) == 0);
        tiga_array_free(&v);
        tiga_graph_free(h);
    }
    ctx->threads = threads;
    double sum = 0;
    for (int64_t e = 0; e < 300001; e++)
        sum += ((double *)first.data)[e];
    cr_assert(sum == 299999.0 * 300000 / 2 + 0.25);
    tiga_array_free(&first);
    tiga_graph_free(g);
    s.data[s.len - 3] = 'x'; /* the first of two errors is the one reported, by whatever thread */
    char *at = strstr(s.data + s.len / 2, "\n") + 1;
    at[0] = '-';
    at[1] = '5';
    int64_t line = 1;
    for (char *p = s.data; p < at; p++)
        line += *p == '\n';
    char want[64];
    snprintf(want, sizeof want, "g.txt:%lld: source id is negative: '-5", (long long)line);
    cr_assert_eq(rt_graph_parse(ctx, "g.txt", s.data, (int64_t)s.len, &g, NULL), TIGA_E_RANGE);
    cr_assert(strstr(tiga_error_text(ctx), want), "%s", tiga_error_text(ctx));
    base_str_fini(&s);
}

static void zip_text(const char *text, gzFile f) {
    cr_assert_eq(gzwrite(f, text, (unsigned)strlen(text)), (int)strlen(text));
    cr_assert_eq(gzclose(f), Z_OK);
}

Test(files, gzip_of_several_members) {
    zip_text("0 1\n1 2\n", gzopen(path, "wb"));
    zip_text("2 0\n", gzopen(path, "ab"));
    char name[96];
    snprintf(name, sizeof name, "%s.txt", path); /* no .gz: by content */
    cr_assert_eq(rename(path, name), 0);
    tiga_graph *g;
    cr_assert_eq(tiga_graph_read(ctx, name, NULL, &g, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(tiga_graph_csr(g)->n_edges, 3);
    tiga_graph_free(g);
    unlink(name);
}

/* `extra` after the first edge's file: what the reader says. */
static tiga_status read_with_tail(const char *extra, size_t n) {
    zip_text("0 1\n", gzopen(path, "wb"));
    FILE *f = fopen(path, "ab");
    cr_assert(f && fwrite(extra, 1, n, f) == n && fclose(f) == 0);
    base_str s = {0};
    cr_assert(base_file_read(path, &s, NULL));
    tiga_graph *g;
    tiga_error_clear(ctx);
    tiga_status status = rt_graph_parse(ctx, "g.txt.gz", s.data, (int64_t)s.len, &g, NULL);
    tiga_graph_free(g);
    base_str_fini(&s);
    return status;
}

Test(files, gzip_with_a_tail) {
    static const char zeros[1000];
    cr_assert_eq(read_with_tail(zeros, sizeof zeros), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(read_with_tail("\n", 1), TIGA_E_FORMAT);
    cr_assert(strstr(tiga_error_text(ctx), "garbage after the end of the gzip data (bytes: 1)"));
    cr_assert_eq(read_with_tail("\0\0\x1f\x8b", 4), TIGA_E_FORMAT);
    cr_assert_eq(read_with_tail("\x1f\x8b", 2), TIGA_E_FORMAT); /* a member that is only begun */
    cr_assert(strstr(tiga_error_text(ctx), "truncated"), "%s", tiga_error_text(ctx));
}

#define MARK "\xef\xbb\xbf"
Test(files, byte_order_marks) {
    check("g.mtx", MARK MM "real general\n2 2 1\n1 2 0.5\n", "2x2: 0<1=0.5f");
    check("g.txt", MARK "0 1\n", "2x2: 1<0");
    check("g.csv", MARK "# c\n0,1,5\n", "2x2: 1<0=5");
    tiga_graph *g;
    cr_assert_eq(rt_graph_parse(ctx, "g.txt", MARK MARK "0 1\n", 10, &g, NULL), TIGA_E_FORMAT);
    cr_assert_eq(rt_graph_parse(ctx, "g.txt", "\xef\xbb", 2, &g, NULL), TIGA_E_FORMAT);
}

static void note(void *user, double fraction) {
    double *last = user;
    cr_assert(fraction >= *last && fraction <= 1);
    *last = fraction;
}

Test(files, npz_round_trip) {
    for (int32_t dtype = -1; dtype <= TIGA_F64; dtype++) {
        tiga_graph *g, *h;
        tiga_array v = {0}, w;
        double last = 0;
        tiga_graph_file_options o = {sizeof o, note, &last};
        cr_assert_eq(tiga_graph_rmat(ctx, 8, 5, 1, &g), TIGA_OK);
        const tiga_csr *a = tiga_graph_csr(g), *b;
        if (dtype >= 0) {
            cr_assert_eq(tiga_array_new(ctx, dtype, 1, &a->n_edges, &v), TIGA_OK);
            for (int64_t i = 0; i < tiga_array_bytes(&v); i++)
                ((uint8_t *)v.data)[i] = (uint8_t)(dtype == TIGA_BOOL ? i % 2 : i);
        }
        cr_assert_eq(tiga_graph_write_npz(ctx, path, g, dtype < 0 ? NULL : &v), TIGA_OK, "%s", tiga_error_text(ctx));
        cr_assert_eq(tiga_graph_read(ctx, path, &o, &h, &w), TIGA_OK, "%s", tiga_error_text(ctx));
        cr_assert(last == 1);
        b = tiga_graph_csr(h);
        cr_assert(b->n_dst == a->n_dst && b->n_src == a->n_src && b->n_edges == a->n_edges && b->source_bits == 32);
        cr_assert(memcmp(a->offsets, b->offsets, (size_t)(a->n_dst + 1) * 8) == 0);
        cr_assert(memcmp(a->sources, b->sources, (size_t)a->n_edges * 4) == 0);
        cr_assert_eq(w.dtype, dtype < 0 ? TIGA_F32 : dtype);
        if (dtype >= 0)
            cr_assert(memcmp(v.data, w.data, (size_t)tiga_array_bytes(&v)) == 0);
        else
            cr_assert(((float *)w.data)[7] == 1);
        tiga_array_free(&v);
        tiga_array_free(&w);
        tiga_graph_free(g);
        tiga_graph_free(h);
    }
    tiga_graph *g;
    int64_t offsets[] = {0, 2, 2}, sources[] = {(int64_t)1 << 33, 7};
    cr_assert_eq(tiga_graph_from_csr(ctx, 2, (int64_t)1 << 34, offsets, sources, 64, TIGA_BORROW, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_write_npz(ctx, path, g, NULL), TIGA_OK);
    tiga_graph_free(g);
    cr_assert_eq(tiga_graph_read(ctx, path, NULL, &g, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert(((const int64_t *)tiga_graph_csr(g)->sources)[0] == (int64_t)1 << 33);
    tiga_graph_free(g);
}

/* SciPy has no bf16; its bits would be whole numbers there. */
Test(files, npz_of_bf16_is_f32) {
    tiga_graph *g, *h;
    tiga_array v, w;
    int64_t n = 4;
    cr_assert_eq(tiga_graph_local(ctx, 2, 2, &g), TIGA_OK);
    cr_assert_eq(tiga_array_new(ctx, TIGA_BF16, 1, &n, &v), TIGA_OK);
    memcpy(v.data, (uint16_t[]){0x3f80, 0x4000, 0xc040, 0x0001}, 8);
    cr_assert_eq(tiga_graph_write_npz(ctx, path, g, &v), TIGA_OK);
    cr_assert_eq(tiga_graph_read(ctx, path, NULL, &h, &w), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert(w.dtype == TIGA_F32 && !memcmp(w.data, (float[]){1, 2, -3, 0x1p-133F}, 16));
    tiga_array_free(&v);
    tiga_array_free(&w);
    tiga_graph_free(g);
    tiga_graph_free(h);
}

Test(files, npz_writing_fails_cleanly) {
    tiga_graph *g;
    tiga_array bad = {0};
    cr_assert_eq(tiga_graph_local(ctx, 10, 2, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_write_npz(ctx, path, g, &bad), TIGA_E_TYPE);
    cr_assert(strstr(tiga_error_text(ctx), "one element for each of 20 edges, not bool"), "%s", tiga_error_text(ctx));
    tiga_error_clear(ctx);
    cr_assert_eq(tiga_graph_write_npz(ctx, "/no/such/folder/g.npz", g, NULL), TIGA_E_FILE);
    for (uint64_t k = 1;; k++) {
        base_inject_at(BASE_INJECT_FILE, k);
        tiga_error_clear(ctx);
        tiga_status status = tiga_graph_write_npz(ctx, path, g, NULL);
        base_inject_at(BASE_INJECT_FILE, 0);
        if (status == TIGA_OK)
            break;
        cr_assert_eq(status, TIGA_E_FILE);
        if (strstr(tiga_error_text(ctx), "sync the folder")) /* the whole file is in place then */
            unlink(path);
        cr_assert_neq(access(path, F_OK), 0); /* nothing half-written under the name */
        cr_assert_lt(k, 40);
    }
    tiga_graph_free(g);
}

/* ---- where the output goes ---- */
static char folder[64];
static void open_folder(void) {
    open_context();
    snprintf(folder, sizeof folder, "/tmp/tiga_places_XXXXXX");
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}
static int n_files(void) {
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}
static void close_folder(void) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        unlink(e->d_name);
    closedir(d);
    cr_assert(chdir("/") == 0);
    rmdir(folder);
    close_context();
}
TestSuite(places, .init = open_folder, .fini = close_folder);

static tiga_status write_small(const char *to) {
    tiga_graph *g;
    cr_assert_eq(tiga_graph_local(ctx, 10, 2, &g), TIGA_OK);
    tiga_error_clear(ctx);
    tiga_status status = tiga_graph_write_npz(ctx, to, g, NULL);
    tiga_graph_free(g);
    return status;
}

static void is_small(const char *name) {
    tiga_graph *g;
    cr_assert_eq(tiga_graph_read(ctx, name, NULL, &g, NULL), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(tiga_graph_csr(g)->n_edges, 20);
    tiga_graph_free(g);
}

static mode_t mode_of(const char *name) {
    struct stat st;
    cr_assert_eq(lstat(name, &st), 0, "%s", name);
    return st.st_mode;
}

static void touch(const char *name, const char *text, mode_t mode) {
    FILE *f = fopen(name, "w");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(name, mode) == 0);
}

Test(places, symbolic_links_stay) {
    touch("real.npz", "old", 0640);
    cr_assert(symlink("real.npz", "near") == 0 && symlink("near", "far") == 0);
    cr_assert_eq(write_small("far"), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert(S_ISLNK(mode_of("far")) && S_ISLNK(mode_of("near")));
    cr_assert_eq(mode_of("real.npz"), S_IFREG | 0640);
    is_small("real.npz");
    cr_assert_eq(n_files(), 3);
    char absolute[128];
    snprintf(absolute, sizeof absolute, "%s/made.npz", folder);
    cr_assert(symlink(absolute, "to_nothing") == 0 && symlink("./to_nothing", "far_to_nothing") == 0);
    cr_assert_eq(write_small("./far_to_nothing"), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert(S_ISLNK(mode_of("to_nothing")) && S_ISLNK(mode_of("far_to_nothing")));
    is_small("made.npz");
    cr_assert(symlink("around", "around") == 0 && symlink("no/such/place", "lost") == 0);
    cr_assert_eq(write_small("around"), TIGA_E_FILE);
    cr_assert(strstr(tiga_error_text(ctx), "around: cannot write: Too many levels"), "%s", tiga_error_text(ctx));
    cr_assert_eq(write_small("lost"), TIGA_E_FILE);
    cr_assert(strstr(tiga_error_text(ctx), "lost: cannot create: No such file"), "%s", tiga_error_text(ctx));
    cr_assert(S_ISLNK(mode_of("around")) && S_ISLNK(mode_of("lost")));
    cr_assert_eq(write_small("."), TIGA_E_FILE);
    cr_assert(strstr(tiga_error_text(ctx), "cannot write: Is a directory"), "%s", tiga_error_text(ctx));
    cr_assert_eq(n_files(), 8);
}

Test(places, pipes_get_the_same_bytes) {
    base_str s = {0};
    char got[8192];
    cr_assert_eq(write_small("g.npz"), TIGA_OK);
    cr_assert(base_file_read("g.npz", &s, NULL));
    cr_assert(mkfifo("pipe", 0600) == 0 && symlink("pipe", "to_pipe") == 0);
    int fd = open("pipe", O_RDWR | O_NONBLOCK);
    cr_assert_eq(write_small("to_pipe"), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(read(fd, got, sizeof got), (ssize_t)s.len);
    cr_assert(memcmp(got, s.data, s.len) == 0);
    close(fd);
    cr_assert(S_ISFIFO(mode_of("pipe")) && S_ISLNK(mode_of("to_pipe")));
    cr_assert_eq(n_files(), 3);
    base_str_fini(&s);
}

/* Copies of /dev/full and /dev/null, where one may make them; they are still devices afterwards. */
Test(places, devices_stay) {
    if (mknod("full", S_IFCHR | 0666, makedev(1, 7)) != 0 || mknod("null", S_IFCHR | 0666, makedev(1, 3)) != 0)
        cr_skip_test("only root makes devices");
    int fd = open("null", O_WRONLY);
    if (fd < 0)
        cr_skip_test("no devices on this file system");
    close(fd);
    cr_assert_eq(write_small("null"), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(write_small("full"), TIGA_E_FILE);
    cr_assert_str_eq(tiga_error_text(ctx), "full: cannot write: No space left on device");
    cr_assert(S_ISCHR(mode_of("full")) && S_ISCHR(mode_of("null")));
    cr_assert_eq(n_files(), 2);
}

Test(places, what_is_there_survives_every_failure) {
    base_str s = {0};
    touch("g.npz", "what was there", 0600);
    for (uint64_t k = 1;; k++) {
        base_inject_at(BASE_INJECT_FILE, k);
        tiga_status status = write_small("g.npz");
        base_inject_at(BASE_INJECT_FILE, 0);
        cr_assert_eq(n_files(), 1, "a temporary file is left");
        if (status == TIGA_OK) {
            cr_assert_gt(k, 10); /* create, write each part, sync, rename */
            break;
        }
        cr_assert_eq(status, TIGA_E_FILE);
        cr_assert(strstr(tiga_error_text(ctx), "Input/output error"), "%s", tiga_error_text(ctx));
        base_str_fini(&s);
        cr_assert(base_file_read("g.npz", &s, NULL));
        if (strstr(tiga_error_text(ctx), "sync the folder")) /* the new file is in place then */
            touch("g.npz", "what was there", 0600);
        else
            cr_assert_str_eq(s.data, "what was there");
        tiga_error_clear(ctx);
        cr_assert_lt(k, 40);
    }
    base_str_fini(&s);
    is_small("g.npz");
}

/* Every header and number of zip64, as in an archive of more than 4 GiB. */
Test(places, zip64) {
    for (int64_t limit = 1; limit < 3000; limit = limit * 2 + 1) {
        tiga_graph *g;
        tiga_array v;
        int64_t sizes[2] = {3, 4}, offsets[] = {0, 1, 1, 3}, two = 2, four = 4, three = 3;
        int32_t sources[] = {3, 0, 2};
        double values[] = {1, 2, 3};
        tiga_array arrays[4] = {
            tiga_array_borrow(sources, TIGA_I32, 1, &three), tiga_array_borrow(offsets, TIGA_I64, 1, &four),
            tiga_array_borrow(sizes, TIGA_I64, 1, &two), tiga_array_borrow(values, TIGA_F64, 1, &three)};
        static const char *const names[] = {"indices.npy", "indptr.npy", "shape.npy", "data.npy"};
        rt_zip_member m[5] = {{.name = "format.npy", .data = "csr", .n = 3}};
        const char *head = "\x93NUMPY\1\0\x36\0{'descr':'|S3','fortran_order':False,'shape':()}     \n";
        base_str_add_n(&m[0].head, head, 10 + 54);
        for (int i = 0; i < 4; i++) {
            m[i + 1].name = names[i];
            m[i + 1].data = arrays[i].data;
            m[i + 1].n = tiga_array_bytes(&arrays[i]);
            cr_assert(rt_npy_write_header(&m[i + 1].head, arrays[i].dtype, 1, arrays[i].shape));
        }
        cr_assert_eq(rt_zip_write(ctx, "g.npz", m, 5, limit), TIGA_OK);
        cr_assert_eq(tiga_graph_read(ctx, "g.npz", NULL, &g, &v), TIGA_OK, "limit %d: %s", (int)limit,
                     tiga_error_text(ctx));
        cr_assert(memcmp(tiga_graph_csr(g)->sources, sources, sizeof sources) == 0);
        cr_assert(memcmp(v.data, values, sizeof values) == 0);
        tiga_array_free(&v);
        tiga_graph_free(g);
        for (int i = 0; i < 5; i++)
            base_str_fini(&m[i].head);
    }
}

static void every_allocation(const char *name, const char *bytes, int64_t n) {
    for (uint64_t k = 1;; k++) {
        tiga_graph *g;
        tiga_array v;
        tiga_error_clear(ctx);
        base_inject_at(BASE_INJECT_ALLOC, k);
        tiga_status status = rt_graph_parse(ctx, name, bytes, n, &g, &v);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        if (status == TIGA_OK) {
            cr_assert_gt(k, 5);
            tiga_graph_free(g);
            tiga_array_free(&v);
            return;
        }
        cr_assert_eq(status, TIGA_E_MEMORY, "%s, allocation %d: %s", name, (int)k, tiga_error_text(ctx));
        cr_assert(!g && !v.data);
        cr_assert_lt(k, 200);
    }
}

Test(files, every_allocation_fails) {
    ctx->threads = 1;
    const char *mtx = MM "real symmetric\n3 3 2\n2 1 2\n3 2 3\n", *el = "0 1 2\n1 2 0.5\n";
    every_allocation("g.mtx", mtx, (int64_t)strlen(mtx));
    every_allocation("g.txt", el, (int64_t)strlen(el));
    zip_text(el, gzopen(path, "wb"));
    base_str s = {0}, err = {0};
    cr_assert(base_file_read(path, &s, &err));
    every_allocation("g.txt.gz", s.data, (int64_t)s.len);
    base_str_fini(&s);
    tiga_graph *g;
    cr_assert_eq(tiga_graph_local(ctx, 10, 2, &g), TIGA_OK);
    cr_assert_eq(tiga_graph_write_npz(ctx, path, g, NULL), TIGA_OK);
    cr_assert(base_file_read(path, &s, &err));
    every_allocation("g.npz", s.data, (int64_t)s.len);
    base_str_fini(&s);
    for (uint64_t k = 1;; k++) {
        tiga_error_clear(ctx);
        base_inject_at(BASE_INJECT_ALLOC, k);
        tiga_status status = tiga_graph_write_npz(ctx, path, g, NULL);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        if (status == TIGA_OK)
            break;
        cr_assert(status == TIGA_E_MEMORY || status == TIGA_E_FILE);
        cr_assert_lt(k, 100);
    }
    tiga_graph_free(g);
}
