/* Context, arrays, conversion and .npy files. */
#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tiga_context *ctx;
static char path[64];
static void open_context(void) {
    cr_assert_eq(tiga_context_new(NULL, &ctx), TIGA_OK);
    snprintf(path, sizeof path, "/tmp/tiga_array_%ld.npy", (long)getpid());
}
static void close_context(void) {
    unlink(path);
    tiga_context_free(ctx);
}
TestSuite(array, .init = open_context, .fini = close_context);

#define FAILS(call, status, words)                                                                                     \
    do {                                                                                                               \
        tiga_error_clear(ctx);                                                                                         \
        cr_assert_eq(call, status);                                                                                    \
        cr_assert(strstr(tiga_error_text(ctx), words), "'%s' lacks '%s'", tiga_error_text(ctx), words);                \
        cr_assert_eq(tiga_error_status(ctx), status);                                                                  \
    } while (0)

Test(array, context_options) {
    tiga_context_options o = tiga_context_defaults();
    tiga_context *c = (tiga_context *)&o;
    cr_assert_eq(o.struct_bytes, sizeof o);
    o.threads = 3;
    cr_assert_eq(tiga_context_new(&o, &c), TIGA_OK);
    cr_assert_eq(tiga_context_threads(c), 3);
    tiga_context_free(c);
    o.threads = -1;
    cr_assert_eq(tiga_context_new(&o, &c), TIGA_E_ARGUMENT);
    cr_assert_null(c);
    o.struct_bytes = 0;
    cr_assert_eq(tiga_context_new(&o, &c), TIGA_E_ARGUMENT);
    cr_assert_eq(tiga_context_new(NULL, NULL), TIGA_E_ARGUMENT);
    tiga_context_free(NULL);
    cr_assert_str_eq(tiga_status_text(TIGA_E_BUDGET), "over the memory budget");
    cr_assert_str_eq(tiga_status_text((tiga_status)99), "unknown status");
    cr_assert_str_eq(tiga_error_text(NULL), "");
}

Test(array, first_error_is_kept) {
    tiga_array a;
    int64_t shape[] = {2, -1};
    FAILS(tiga_array_new(ctx, TIGA_F32, 2, shape, &a), TIGA_E_ARGUMENT, "f32[2, -1]");
    cr_assert_eq(tiga_array_new(ctx, 77, 2, shape, &a), TIGA_E_ARGUMENT);
    cr_assert(strstr(tiga_error_text(ctx), "f32[2, -1]"));
    tiga_error_clear(ctx);
    cr_assert_str_eq(tiga_error_text(ctx), "");
    FAILS(tiga_array_new(ctx, 77, 2, shape, &a), TIGA_E_ARGUMENT, "77 is not an element type");
    FAILS(tiga_array_new(ctx, TIGA_F32, 8, shape, &a), TIGA_E_ARGUMENT, "rank 8");
}

Test(array, zeroed_aligned_and_large) {
    tiga_array a;
    int64_t shape[] = {3, 1 << 19};
    cr_assert_eq(tiga_array_new(ctx, TIGA_F64, 2, shape, &a), TIGA_OK);
    cr_assert_eq(tiga_array_bytes(&a), (int64_t)3 * (1 << 19) * 8);
    cr_assert_eq((uintptr_t)a.data % (2 << 20), 0);
    for (int64_t i = 0; i < 3 << 19; i++)
        cr_assert(((double *)a.data)[i] == 0);
    tiga_array_free(&a);
    cr_assert_null(a.data);
    tiga_array_free(&a);
    int64_t none[] = {0, INT64_MAX, 7};
    cr_assert_eq(tiga_array_new(ctx, TIGA_I32, 3, none, &a), TIGA_OK);
    cr_assert_eq(tiga_array_bytes(&a), 0);
    cr_assert_eq((uintptr_t)a.data % 64, 0);
    tiga_array_free(&a);
    int64_t huge[] = {INT64_MAX / 4, 8};
    FAILS(tiga_array_new(ctx, TIGA_F32, 2, huge, &a), TIGA_E_ARGUMENT, "fits into memory");
    int64_t big[] = {(int64_t)1 << 50};
    FAILS(tiga_array_new(ctx, TIGA_F32, 1, big, &a), TIGA_E_MEMORY, "4.0 PiB");
}

Test(array, conversion) {
    double from[] = {1.75, -1.75, 1e30, -1e30, (double)NAN, 0, (double)INFINITY};
    int64_t n = 7;
    tiga_array a = tiga_array_borrow(from, TIGA_F64, 1, &n), out;
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_I32, &out), TIGA_OK);
    int32_t want[] = {1, -1, INT32_MAX, INT32_MIN, 0, 0, INT32_MAX};
    cr_assert(memcmp(out.data, want, sizeof want) == 0);
    tiga_array_free(&out);
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_I64, &out), TIGA_OK);
    int64_t wide[] = {1, -1, INT64_MAX, INT64_MIN, 0, 0, INT64_MAX};
    cr_assert(memcmp(out.data, wide, sizeof wide) == 0);
    tiga_array_free(&out);
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_BOOL, &out), TIGA_OK);
    uint8_t bools[] = {1, 1, 1, 1, 1, 0, 1};
    cr_assert(memcmp(out.data, bools, sizeof bools) == 0);
    tiga_array_free(&out);
    int64_t whole[] = {(1LL << 24) + 1, (1LL << 62) + (1LL << 38) + 1,
                       -3}; /* the second rounds up only if rounded once */
    n = 3;
    a = tiga_array_borrow(whole, TIGA_I64, 1, &n);
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_F32, &out), TIGA_OK);
    for (int i = 0; i < 3; i++)
        cr_assert(((float *)out.data)[i] == (float)whole[i]);
    tiga_array_free(&out);
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_I32, &out), TIGA_OK);
    cr_assert_eq(((int32_t *)out.data)[2], -3);
    cr_assert_eq(((int32_t *)out.data)[0], (1 << 24) + 1);
    tiga_array_free(&out);
    FAILS(tiga_array_new(ctx, TIGA_F32, 1, NULL, &out), TIGA_E_ARGUMENT, "shape is NULL");
    FAILS(tiga_array_convert(ctx, NULL, TIGA_I32, &out), TIGA_E_ARGUMENT, "NULL");
}

Test(array, conversion_of_small_types) {
    float from[] = {1.5f, -1.5f, 65519.996f, 65520.0f, 300.0f, NAN, 3.0e-8f, -0.0f};
    static const uint16_t f16[] = {0x3e00, 0xbe00, 0x7bff, 0x7c00, 0x5cb0, 0x7e00, 0x0001, 0x8000};
    static const uint16_t bf16[] = {0x3fc0, 0xbfc0, 0x4780, 0x4780, 0x4396, 0x7fc0, 0x3301, 0x8000};
    static const int8_t i8[] = {1, -1, 127, 127, 127, 0, 0, 0};
    static const uint8_t u8[] = {1, 0, 255, 255, 255, 0, 0, 0};
    int64_t n = 8;
    tiga_array a = tiga_array_borrow(from, TIGA_F32, 1, &n), out, back;
    const struct {
        int32_t dtype;
        const void *want;
    } to[] = {{TIGA_F16, f16}, {TIGA_BF16, bf16}, {TIGA_I8, i8}, {TIGA_U8, u8}};
    for (int k = 0; k < 4; k++) {
        cr_assert_eq(tiga_array_convert(ctx, &a, to[k].dtype, &out), TIGA_OK);
        cr_assert(memcmp(out.data, to[k].want, (size_t)tiga_array_bytes(&out)) == 0, "%s",
                  tiga_dtype_text(to[k].dtype));
        cr_assert_eq(tiga_array_convert(ctx, &out, TIGA_F64, &back), TIGA_OK);
        cr_assert(((double *)back.data)[0] == (k < 2 ? 1.5 : 1) && !(((double *)back.data)[1] > 0));
        tiga_array_free(&back);
        cr_assert_eq(tiga_array_convert(ctx, &out, to[k].dtype, &back), TIGA_OK, "to itself: the same bits");
        cr_assert(memcmp(back.data, out.data, (size_t)tiga_array_bytes(&out)) == 0);
        tiga_array_free(&back);
        tiga_array_free(&out);
    }
    int64_t whole[] = {-1, 200, 1000, INT64_MIN, 2049, 65519, 65520, 0};
    a = tiga_array_borrow(whole, TIGA_I64, 1, &n);
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_U8, &out), TIGA_OK);
    cr_assert(((uint8_t *)out.data)[0] == 255 && ((uint8_t *)out.data)[2] == 1000 % 256, "wraps around");
    cr_assert_eq(tiga_array_convert(ctx, &out, TIGA_I8, &back), TIGA_OK);
    cr_assert_eq(((int8_t *)back.data)[1], 200 - 256);
    tiga_array_free(&back);
    tiga_array_free(&out);
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_F16, &out), TIGA_OK);
    cr_assert(((uint16_t *)out.data)[4] == 0x6800 && ((uint16_t *)out.data)[5] == 0x7bff);
    cr_assert_eq(((uint16_t *)out.data)[6], 0x7c00);
    tiga_array_free(&out);
}

Test(array, conversion_of_complex_numbers) {
    tiga_c128 from[] = {{1.5, -2}, {1e300, 0.1}};
    int64_t n = 2, whole[] = {16777217, -1};
    tiga_array a = tiga_array_borrow(from, TIGA_C128, 1, &n), out;
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_C64, &out), TIGA_OK);
    const tiga_c64 *z = out.data;
    cr_assert(z[0].re == 1.5f && z[0].im == -2.0f && z[1].re == INFINITY && z[1].im == 0.1f);
    tiga_array_free(&out);
    FAILS(tiga_array_convert(ctx, &a, TIGA_F64, &out), TIGA_E_TYPE, "complex numbers (c128) cannot become f64");
    FAILS(tiga_array_convert(ctx, &a, TIGA_BOOL, &out), TIGA_E_TYPE, "cannot become bool");
    a = tiga_array_borrow(whole, TIGA_I64, 1, &n);
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_C64, &out), TIGA_OK);
    z = out.data;
    cr_assert(z[0].re == 16777216.0f && z[0].im == 0 && z[1].re == -1);
    tiga_array_free(&out);
    cr_assert_eq(tiga_array_convert(ctx, &a, TIGA_C128, &out), TIGA_OK);
    cr_assert(((tiga_c128 *)out.data)[0].re == 16777217 && ((tiga_c128 *)out.data)[1].im == 0);
    tiga_array_free(&out);
}

Test(array, npy_round_trip_of_every_type) {
    static const int64_t shapes[][3] = {{2, 3, 5}, {0, 4, 1}, {1, 1, 1}};
    for (int32_t dtype = TIGA_BOOL; dtype <= TIGA_C128; dtype++)
        for (int rank = 0; rank <= 3; rank++)
            for (int s = 0; s < 3; s++) {
                tiga_array a, b;
                cr_assert_eq(tiga_array_new(ctx, dtype, rank, shapes[s], &a), TIGA_OK);
                for (int64_t i = 0; i < tiga_array_bytes(&a); i++)
                    ((uint8_t *)a.data)[i] = dtype == TIGA_BOOL ? i % 2 : (uint8_t)(i * 7);
                cr_assert_eq(tiga_array_write_npy(ctx, path, &a), TIGA_OK, "%s", tiga_error_text(ctx));
                cr_assert_eq(tiga_array_read_npy(ctx, path, &b), TIGA_OK, "%s", tiga_error_text(ctx));
                cr_assert(b.dtype == dtype && b.rank == rank && memcmp(a.shape, b.shape, (size_t)rank * 8) == 0);
                cr_assert(memcmp(a.data, b.data, (size_t)tiga_array_bytes(&a)) == 0);
                tiga_array_free(&a);
                tiga_array_free(&b);
            }
}

static tiga_status parse(const char *dict, int version, const void *data, int64_t n, tiga_array *out) {
    char file[512] = "\x93NUMPY";
    size_t length = strlen(dict), head = version == 1 ? 10 : 12;
    file[6] = (char)version;
    file[8] = (char)length;
    memcpy(file + head, dict, length);
    memcpy(file + head + length, data, (size_t)n);
    rt_npy_header h;
    tiga_status status = rt_npy_parse(ctx, "a.npy", file, (int64_t)(head + length) + n, &h);
    return status == TIGA_OK ? rt_npy_data(ctx, "a.npy", file, (int64_t)(head + length) + n, &h, out) : status;
}

Test(array, npy_fortran_order) {
    int32_t f[24], c[24];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                f[i + 2 * j + 6 * k] = c[i * 12 + j * 4 + k] = i * 100 + j * 10 + k;
    tiga_array a;
    cr_assert_eq(parse("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }", 1, f, sizeof f, &a), TIGA_OK);
    cr_assert(memcmp(a.data, c, sizeof c) == 0);
    tiga_array_free(&a);
    cr_assert_eq(parse("{\"shape\":(24,),'fortran_order':True,\"descr\":\"=i4\"}  \n", 3, f, sizeof f, &a), TIGA_OK);
    cr_assert(a.rank == 1 && memcmp(a.data, f, sizeof f) == 0);
    tiga_array_free(&a);
    cr_assert_eq(parse("{'descr': '<i4', 'fortran_order': True, 'shape': (0, 9223372036854775807, 4)}", 2, f, 0, &a),
                 TIGA_OK);
    tiga_array_free(&a);
}

Test(array, npy_bools_are_made_proper) {
    uint8_t raw[] = {0, 2, 255, 1}, want[] = {0, 1, 1, 1};
    tiga_array a;
    cr_assert_eq(parse("{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", 1, raw, 4, &a), TIGA_OK);
    cr_assert(memcmp(a.data, want, 4) == 0);
    tiga_array_free(&a);
}

Test(array, npy_that_is_wrong) {
    tiga_array a;
    int32_t d[4] = {0};
    static const struct {
        const char *dict;
        int version;
        int64_t n;
        tiga_status status;
        const char *words;
    } cases[] = {
        {"{'descr': '>i4', 'fortran_order': False, 'shape': (4,)}", 1, 16, TIGA_E_TYPE, "big-endian"},
        {"{'descr': '<u4', 'fortran_order': False, 'shape': (4,)}", 1, 16, TIGA_E_TYPE, "'<u4'"},
        {"{'descr': '<c32', 'fortran_order': False, 'shape': (1,)}", 1, 16, TIGA_E_TYPE, "'<c32'"},
        {"{'descr': '|S4', 'fortran_order': False, 'shape': (4,)}", 1, 16, TIGA_E_TYPE, "text"},
        {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (4,)}", 1, 16, TIGA_E_TYPE, "structured"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (5,)}", 1, 16, TIGA_E_FORMAT,
         "promises 20 bytes of data, the file has 16"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", 1, 16, TIGA_E_FORMAT, "promises 12 bytes"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (-3,)}", 1, 16, TIGA_E_FORMAT,
         "malformed .npy header: negative size"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, -1)}", 1, 16, TIGA_E_FORMAT, "negative size"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (-)}", 1, 16, TIGA_E_FORMAT, "malformed .npy header near"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 1, 16, TIGA_E_FORMAT,
         "malformed .npy header: too large a size"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (9999999999, 9999999999)}", 1, 16, TIGA_E_FORMAT,
         "larger than any"},
        {"{'descr': '<i4', 'fortran_order': Maybe, 'shape': (4,)}", 1, 16, TIGA_E_FORMAT, "malformed"},
        {"{'descr': '<i4', 'fortran_order': False}", 1, 16, TIGA_E_FORMAT, "malformed"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,4)}", 1, 16, TIGA_E_UNSUPPORTED,
         "rank 8 is not supported"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,4,1,)}", 1, 16, TIGA_E_UNSUPPORTED,
         "rank 9 is not supported, arrays have at most 7"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (4,)} junk", 1, 16, TIGA_E_FORMAT, "near 'junk"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (4,), 'more': 1}", 1, 16, TIGA_E_FORMAT, "malformed"},
        {"", 1, 16, TIGA_E_FORMAT, "malformed"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (4,)}", 9, 16, TIGA_E_FORMAT, "version 9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        FAILS(parse(cases[i].dict, cases[i].version, d, cases[i].n, &a), cases[i].status, cases[i].words);
    rt_npy_header h;
    FAILS(rt_npy_parse(ctx, "a.npy", "\x93NUMPY\1\0\xff\xff{", 11, &h), TIGA_E_FORMAT,
          "ends within the header, after 11 bytes");
    FAILS(rt_npy_parse(ctx, "a.npy", "\x93NUMPY\2\0\xff", 11, &h), TIGA_E_FORMAT, "ends within the header");
    FAILS(rt_npy_parse(ctx, "a.npy", "hello world", 11, &h), TIGA_E_FORMAT, "not a .npy file");
    FAILS(tiga_array_read_npy(ctx, "/no/such/file.npy", &a), TIGA_E_FILE,
          "/no/such/file.npy: cannot open: No such file");
    FAILS(tiga_array_read_npy(ctx, "/tmp", &a), TIGA_E_FILE, "is a folder");
}

Test(array, writing_is_all_or_nothing) {
    tiga_array a, b;
    int64_t n = 100000;
    cr_assert_eq(tiga_array_new(ctx, TIGA_F32, 1, &n, &a), TIGA_OK);
    cr_assert_eq(tiga_array_write_npy(ctx, path, &a), TIGA_OK);
    ((float *)a.data)[0] = 1;
    for (uint64_t k = 1;; k++) { /* every system call fails in turn; the old file stays whole */
        tiga_error_clear(ctx);
        base_inject_at(BASE_INJECT_FILE, k);
        tiga_status status = tiga_array_write_npy(ctx, path, &a);
        base_inject_at(BASE_INJECT_FILE, 0);
        cr_assert_eq(tiga_array_read_npy(ctx, path, &b), TIGA_OK);
        bool late = strstr(tiga_error_text(ctx), "sync the folder"); /* the new file is in place then */
        cr_assert(((float *)b.data)[0] == (status == TIGA_OK || late ? 1 : 0));
        tiga_array_free(&b);
        if (status == TIGA_OK)
            break;
        cr_assert_eq(status, TIGA_E_FILE);
        cr_assert_lt(k, 20);
    }
    FAILS(tiga_array_write_npy(ctx, "/no/such/folder/a.npy", &a), TIGA_E_FILE, "No such file");
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 0600, 0600);
    tiga_array_free(&a);
}
