/* Emitted CUDA through NVRTC to cubins, no GPU needed: the texts compile without a message for every architecture, and no
 * kernel that has no array in local memory by design spills registers.  Skipped, aloud, where there is no NVRTC. */
#include "emitted.h"

#include "driver/drv_nvrtc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS TIGA_SOURCE_DIR "/tests/cuda_sim/kernels/"
static const char *const archs[] = {"sm_80", "sm_90", "sm_120"};

static drv_nvrtc *open_or_skip(void) {
    base_str err = {0};
    drv_nvrtc *n = drv_nvrtc_open(&err);
    if (!n) {
        fprintf(stderr, "SKIPPED, cubins are not tested: %s\n", base_str_text(&err));
        base_str_fini(&err);
        cr_skip_test("no NVRTC");
    }
    return n;
}

static void compile_all(const char *path, int opt_level) {
    drv_nvrtc *n = open_or_skip();
    emitted e = emitted_new(path, opt_level, 0);
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        base_str cubin = {0}, log = {0}, err = {0};
        cr_assert(drv_nvrtc_compile(n, base_str_text(&e.text), "test.cu", archs[i], &cubin, &log), "%s: %s", archs[i],
                  base_str_text(&log));
        cr_assert(log.len == 0, "%s: the compiler complains: %s", archs[i], base_str_text(&log));
        drv_kernel_usage *k;
        size_t n_kernels, n_loops = 0;
        cr_assert(drv_cubin_usage(e.arena, cubin.data, cubin.len, &k, &n_kernels, &err), "%s", base_str_text(&err));
        for (size_t f = 0; f < e.m->n_funcs; f++)
            n_loops += e.m->funcs[f]->level == IR_LEVEL_LOOP;
        cr_assert(n_kernels >= n_loops && n_kernels <= 2 * n_loops, "%zu kernels of %zu functions", n_kernels, n_loops);
        for (size_t j = 0; j < n_kernels; j++) {
            cr_assert(k[j].registers > 0 && k[j].registers <= 255, "%s: %lld registers", k[j].name,
                      (long long)k[j].registers);
            cr_assert(k[j].local_bytes == 0, "%s, %s: %lld bytes of local memory a thread (%lld registers): it spills",
                      archs[i], k[j].name, (long long)k[j].local_bytes, (long long)k[j].registers);
        }
        base_str_fini(&cubin), base_str_fini(&log), base_str_fini(&err);
    }
    emitted_free(&e);
    drv_nvrtc_close(n);
}

Test(nvrtc, reducers, .timeout = 100) { compile_all(KERNELS "reducers.tg", 3); }
Test(nvrtc, shapes, .timeout = 100) { compile_all(KERNELS "shapes.tg", 3); }
Test(nvrtc, totals, .timeout = 100) { compile_all(KERNELS "totals.tg", 3); }
Test(nvrtc, half, .timeout = 100) { compile_all(KERNELS "half.tg", 3); }
Test(nvrtc, math, .timeout = 200) { compile_all(KERNELS "math.tg", 3); }
Test(nvrtc, width_64, .timeout = 100) { compile_all(KERNELS "width64.tg", 3); }

/* The check above can fail: a kernel with an array that cannot be in registers has a stack frame. */
Test(nvrtc, local_memory_is_seen) {
    drv_nvrtc *n = open_or_skip();
    const char *text =
        "extern \"C\" __global__ void k(const int *at, float *out) { float a[64]; __shared__ float s[32];\n"
        "for (int i = 0; i < 64; ++i) a[at[i]] = (float)i; s[threadIdx.x] = a[at[64]]; __syncthreads();\n"
        "out[threadIdx.x] = s[31 - threadIdx.x]; }\n";
    base_arena *arena = base_arena_new();
    base_str cubin = {0}, log = {0}, err = {0};
    cr_assert(drv_nvrtc_compile(n, text, "k.cu", "sm_90", &cubin, &log), "%s", base_str_text(&log));
    drv_kernel_usage *k;
    size_t count;
    cr_assert(drv_cubin_usage(arena, cubin.data, cubin.len, &k, &count, &err), "%s", base_str_text(&err));
    cr_assert_eq(count, 1);
    cr_assert_str_eq(k[0].name, "k");
    cr_assert_eq(k[0].local_bytes, 256);
    cr_assert(k[0].shared_bytes >= 128 && k[0].code_bytes > 0);
    /* every cut of the file is refused or read, never run over */
    for (size_t i = 0; i < cubin.len; i += 7) {
        char *part = malloc(i + 1);
        memcpy(part, cubin.data, i);
        err.len = 0;
        if (!drv_cubin_usage(arena, part, i, &k, &count, &err))
            cr_assert(err.len > 0);
        free(part);
    }
    base_str_fini(&cubin), base_str_fini(&log), base_str_fini(&err);
    base_arena_free(arena);
    drv_nvrtc_close(n);
}

Test(nvrtc, errors_say_what_is_wrong) {
    drv_nvrtc *n = open_or_skip();
    base_str cubin = {0}, log = {0};
    cr_assert(!drv_nvrtc_compile(n, "", "k.cu", "sm_1", &cubin, &log));
    cr_assert(strstr(base_str_text(&log), "does not know the architecture 'sm_1'; it knows sm_"), "%s",
              base_str_text(&log));
    base_str_fini(&log);
    cr_assert(
        !drv_nvrtc_compile(n, "extern \"C\" __global__ void k() { nothing(); }\n", "k.cu", "sm_90", &cubin, &log));
    cr_assert(strstr(base_str_text(&log), "k.cu(1): error"), "%s", base_str_text(&log));
    base_str_fini(&log);
    cr_assert(!drv_nvrtc_has_arch(n, "sm_90b") && drv_nvrtc_has_arch(n, "sm_90") && drv_nvrtc_has_arch(n, "sm_90a"));
    drv_nvrtc_close(n);
}

Test(nvrtc, no_library_there) { /* needs no NVRTC */
    base_str err = {0};
    setenv("TIGA_NVRTC", "/nowhere/libnvrtc.so", 1);
    cr_assert(!drv_nvrtc_open(&err));
    cr_assert(strstr(base_str_text(&err), "TIGA_NVRTC names '/nowhere/libnvrtc.so', which cannot be opened"), "%s",
              base_str_text(&err));
    base_str_fini(&err);
    setenv("TIGA_NVRTC", "libz.so.1", 1);
    cr_assert(!drv_nvrtc_open(&err));
    cr_assert(strstr(base_str_text(&err), "no function 'nvrtcVersion'") ||
                  strstr(base_str_text(&err), "cannot be opened"),
              "%s", base_str_text(&err));
    base_str_fini(&err);
}

Test(nvrtc, no_cubin) {
    base_arena *arena = base_arena_new();
    base_str err = {0};
    drv_kernel_usage *k;
    size_t n;
    cr_assert(!drv_cubin_usage(arena, "hello", 5, &k, &n, &err));
    cr_assert_str_eq(base_str_text(&err), "the bytes are not a cubin");
    base_str_fini(&err);
    base_arena_free(arena);
}
