/* The simulated device on kernels with known results and on kernels with known faults.  Each fault is one that a GPU
 * would hide (wrong numbers now and then) or hang on. */
#include "sim.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sim_module *build(const char *text) {
    char *log;
    sim_module *m = sim_module_new(text, SIM_WORK_DIR, &log);
    cr_assert(m, "%s", log ? log : "no log");
    cr_assert(!log || !*log, "the compiler complains: %s", log);
    free(log);
    return m;
}

/* A kernel `k(int *a, int n)` over n ints that hold 0 .. n - 1, or nothing. */
static bool launch(const char *text, unsigned blocks, unsigned threads, int n, bool filled, sim_order order,
                   uint64_t seed, int *out) {
    sim_module *m = build(text);
    int *start = malloc((size_t)n * sizeof *start);
    for (int i = 0; i < n; i++)
        start[i] = i;
    sim_buffer *b = sim_buffer_new("a", (size_t)n * sizeof *start, filled ? start : NULL, false);
    void *a = sim_buffer_data(b), *args[] = {&a, &n};
    sim_launch_config c = {
        .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .shared_bytes = 256, .order = order, .seed = seed};
    bool ok = sim_launch(m, "k", &c, args, 2);
    if (ok && out)
        memcpy(out, a, (size_t)n * sizeof *out);
    sim_buffer_free(b);
    sim_module_free(m);
    free(start);
    return ok;
}

/* The launch must fail with a report that contains `what`, in each order of threads. */
static void expect_fault(const char *body, const char *what, bool filled) {
    char text[4096];
    snprintf(text, sizeof text,
             "extern \"C\" __global__ void __launch_bounds__(64) k(int *a, int n) { (void)n;\n%s\n}\n", body);
    for (int order = SIM_ASCENDING; order <= SIM_RANDOM; order++) {
        bool ok = launch(text, 1, 64, 64, filled, (sim_order)order, 7, NULL);
        cr_assert(!ok, "not caught in order %d: %s", order, body);
        cr_assert(strstr(sim_fault(), what), "order %d of %s\nreports: %s\ninstead of: %s", order, body, sim_fault(),
                  what);
    }
}

static void expect_ints(const char *body, unsigned blocks, const int *want, int n) {
    char text[4096];
    int *got = malloc((size_t)n * sizeof *got);
    snprintf(text, sizeof text, "extern \"C\" __global__ void k(int *a, int n) {\n%s\n}\n", body);
    for (int order = SIM_ASCENDING; order <= SIM_RANDOM; order++)
        for (uint64_t seed = 0; seed < (order == SIM_RANDOM ? 4 : 1); seed++) {
            cr_assert(launch(text, blocks, 64, n, true, (sim_order)order, seed, got), "%s: %s", body, sim_fault());
            for (int i = 0; i < n; i++)
                cr_assert_eq(got[i], want[i], "%s: element %d is %d, not %d", body, i, got[i], want[i]);
        }
    free(got);
}

#define ME "int i = threadIdx.x; (void)i; "

Test(results, reverse_through_shared) {
    int want[64];
    for (int i = 0; i < 64; i++)
        want[i] = 63 - i;
    expect_ints(ME "__shared__ int s[64]; s[i] = a[i]; __syncthreads(); a[i] = s[n - 1 - i];", 1, want, 64);
    expect_ints(ME "CUDA_SIM_DYNAMIC_SHARED(int, s); s[i] = a[i]; __syncthreads(); a[i] = s[n - 1 - i];", 1, want, 64);
}

Test(results, shuffles_follow_ptx) {
    int want[64];
    for (int i = 0; i < 64; i++)
        want[i] = i ^ 5;
    expect_ints(ME "a[i] = __shfl_xor_sync(0xffffffffu, a[i], 5);", 1, want, 64);
    for (int i = 0; i < 64; i++)
        want[i] = i / 16 * 16 + 3;
    expect_ints(ME "a[i] = __shfl_sync(0xffffu << (i & 16), a[i], 3, 16);", 1, want, 64);
    for (int i = 0; i < 64; i++)
        want[i] = i % 8 + 2 < 8 ? i + 2 : i;
    expect_ints(ME "a[i] = __shfl_down_sync(~0u, a[i], 2, 8);", 1, want, 64);
    for (int i = 0; i < 64; i++)
        want[i] = i % 8 >= 3 ? i - 3 : i;
    expect_ints(ME "a[i] = __shfl_up_sync(~0u, a[i], 3, 8);", 1, want, 64);
    for (int i = 0; i < 64; i++)
        want[i] = (int)0xaaaaaaaau;
    expect_ints(ME "a[i] = (int)__ballot_sync(~0u, i & 1);", 1, want, 64);
}

Test(results, eight_byte_shuffle_and_double) {
    int want[64];
    for (int i = 0; i < 64; i++)
        want[i] = i ^ 1;
    expect_ints(ME "double d = a[i] + 0.25; long long l = __shfl_xor_sync(~0u, (long long)a[i] << 33, 1);"
                   "a[i] = __shfl_xor_sync(~0u, d, 1) == (double)(l >> 33) + 0.25 ? (int)(l >> 33) : -1;",
                1, want, 64);
}

Test(results, half_warps_diverge) { /* two teams of a warp make a different number of rounds */
    int want[64];
    for (int i = 0; i < 64; i++) {
        int team = i / 16, first = team * 16;
        want[i] = (first * 16 + 120) * (team + 1);
    }
    expect_ints(ME "unsigned m = 0xffffu << (i & 16); int sum = 0;"
                   "for (int r = 0; r <= i / 16; r++) { int v = a[i];"
                   "  for (int d = 8; d; d /= 2) v += __shfl_xor_sync(m, v, d, 16);"
                   "  sum += v; }"
                   "a[i] = sum;",
                1, want, 64);
}

Test(results, atomics_and_grid) {
    int want[1] = {0};
    for (int i = 0; i < 64 * 3; i++)
        want[0] += i;
    expect_ints("(void)n; atomicAdd(a, (int)(blockIdx.x * blockDim.x + threadIdx.x));", 3, want, 1);
    want[0] = 191;
    expect_ints("(void)n; atomicMax(a, (int)(blockIdx.x * blockDim.x + threadIdx.x));", 3, want, 1);
    want[0] = 5;
    expect_ints("(void)n; atomicCAS(a, 0, 5);", 3, want, 1);
}

Test(results, warp_sync_orders_memory) {
    int want[64];
    for (int i = 0; i < 64; i++)
        want[i] = i ^ 1;
    expect_ints(ME "__shared__ int s[64]; s[i] = a[i]; __syncwarp(); a[i] = s[i ^ 1];", 1, want, 64);
}

Test(results, launch_from_the_text_itself) {
    const char *text = "__global__ void add(int *a, int v) { a[threadIdx.x] += v; }\n"
                       "extern \"C\" __global__ void k(int *a, int n) { a[threadIdx.x] = n; }\n";
    int got[64];
    cr_assert(launch(text, 1, 64, 64, true, SIM_ASCENDING, 0, got), "%s", sim_fault());
    cr_assert_eq(got[63], 64);
}

Test(faults, out_of_bounds) {
    expect_fault(ME "a[i + 1] = 1;", "out of bounds: byte 256 of buffer 'a'", true);
    expect_fault(ME "a[i - 1] = 1;", "out of bounds: byte -4 of buffer 'a'", true);
    expect_fault(ME "a[i] = a[i + 1000000];", "read of 4 bytes out of bounds", true);
    expect_fault(ME "*(int *)(8 + (long long)i * 0) = 1;", "where no buffer is", true);
    expect_fault(ME "__shared__ int s[64]; s[i] = i; __syncthreads(); a[i] = s[i + 1];", "where no buffer is", true);
}

Test(faults, misaligned) { expect_fault(ME "*(long long *)(a + 1) = i;", "misaligned write of 8 bytes", true); }

Test(faults, read_of_unwritten_memory) {
    expect_fault(ME "a[i] += 1;", "which nobody has written", false);
    expect_fault(ME "__shared__ int s[64]; if (i < 63) s[i] = i; __syncthreads(); a[i] = s[i];",
                 "static shared memory', which nobody has written", true);
}

Test(faults, shared_memory_does_not_outlive_its_block) {
    const char *text = "extern \"C\" __global__ void k(int *a, int n) { __shared__ int s; (void)n;\n"
                       "if (blockIdx.x == 0 && threadIdx.x == 0) s = 1;\n__syncthreads();\n"
                       "if (threadIdx.x == 0) a[blockIdx.x] = s; }\n";
    cr_assert(!launch(text, 2, 64, 64, true, SIM_ASCENDING, 0, NULL));
    cr_assert(strstr(sim_fault(), "block 1") && strstr(sim_fault(), "nobody has written"), "%s", sim_fault());
}

Test(faults, data_races) {
    expect_fault(ME "a[0] = i;", "data race on byte 0 of 'a': two writes", true);
    expect_fault(ME "a[i] = a[i ^ 1];", "data race", true);
    expect_fault(ME "__shared__ int s[64]; s[i] = i; a[i] = s[i ^ 1];", "", true);
    expect_fault(ME "__shared__ int s[64]; s[i] = i; __syncwarp(); a[i] = s[i ^ 32];", "", true);
    expect_fault(ME "atomicAdd(a, 1); if (i == 5) a[0] = 3;", "data race", true);
}

Test(faults, a_shuffle_is_no_memory_fence) {
    expect_fault(ME "a[i] = i; int o = __shfl_xor_sync(~0u, i, 1); if (i & 1) a[o] = 7;", "data race", true);
}

Test(faults, races_between_blocks) {
    const char *text = "extern \"C\" __global__ void k(int *a, int n) { (void)n; if (threadIdx.x == 0) a[3] = 1; }\n";
    cr_assert(!launch(text, 2, 64, 64, true, SIM_ASCENDING, 0, NULL));
    cr_assert(strstr(sim_fault(), "data race on byte 12"), "%s", sim_fault());
}

Test(faults, barriers) {
    expect_fault(ME "if (i < 32) __syncthreads(); a[i] = 1;", "__syncthreads", true);
    expect_fault(ME "if (i == 9) return; __syncthreads(); a[i] = 1;", "exit", true);
    expect_fault(ME "if (i < 32)\n __syncthreads();\n else\n __syncthreads();\n a[i] = 1;", "divergent barrier", true);
}

Test(faults, warp_collectives) {
    expect_fault(ME "if (i % 32 < 20) a[i] = __shfl_xor_sync(0xfffffu, i, 16);", "which is not in mask", true);
    expect_fault(ME "a[i] = __shfl_sync(0xffffu, i, 0, 16);", "does not name the calling lane", true);
    expect_fault(ME "if (i == 4) return; a[i] = __shfl_xor_sync(~0u, i, 1);", "exit", true);
    expect_fault(ME "if (i & 1) a[i] = __shfl_xor_sync(~0u, i, 1); else a[i] = __shfl_xor_sync(~1u, i, 2);", "mask",
                 true);
    expect_fault(ME "if (i & 1) a[i] = __shfl_xor_sync(~0u, i, 1);\nelse a[i] = __shfl_xor_sync(~0u, i, 2);",
                 "while lane", true);
    expect_fault(ME "if (i & 1) a[i] = __shfl_xor_sync(~0u, i, 1); else a[i] = (int)__ballot_sync(~0u, 1);",
                 "while lane", true);
    expect_fault(ME "a[i] = __shfl_sync(~0u, i, 0, 12);", "not a power of two", true);
    expect_fault(ME "if (i < 32) a[i] = __shfl_sync(~0u, i, 0);\nif (i == 40) __syncthreads(); else if (i >= 32) a[i] "
                    "= __shfl_sync(~0u, i, 0);",
                 "", true);
}

Test(faults, activemask_promises_only_the_caller) {
    expect_fault(ME "unsigned m = __activemask(); a[i] = __shfl_xor_sync(m, i, 1);", "not in mask", true);
}

Test(faults, another_threads_stack) {
    expect_fault(
        ME "__shared__ int *p; int own = i; int *volatile q = &own; if (i == 0) p = q; __syncthreads(); a[i] = *p;"
           "__syncthreads(); own = *q;",
        "in the local memory of thread 0", true);
}

Test(faults, read_only_buffer_and_wrong_call) {
    sim_module *m = build("extern \"C\" __global__ void k(int *a) { a[threadIdx.x] = 1; }\n");
    int zero[32] = {0}, extra = 0;
    sim_buffer *b = sim_buffer_new("input", sizeof zero, zero, true);
    void *a = sim_buffer_data(b), *args[] = {&a, &extra};
    sim_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    cr_assert(!sim_launch(m, "k", &c, args, 1));
    cr_assert(strstr(sim_fault(), "write to byte 0 of 'input', which is read-only"), "%s", sim_fault());
    cr_assert(!sim_launch(m, "k", &c, args, 2));
    cr_assert(strstr(sim_fault(), "takes 1 arguments, 2 were given"), "%s", sim_fault());
    cr_assert(!sim_launch(m, "nobody", &c, args, 1));
    cr_assert(strstr(sim_fault(), "no kernel 'nobody'"), "%s", sim_fault());
    c.block.x = 2048;
    cr_assert(!sim_launch(m, "k", &c, args, 1));
    cr_assert(strstr(sim_fault(), "2048 threads cannot be launched"), "%s", sim_fault());
    sim_buffer_free(b);
    sim_module_free(m);
}

Test(faults, text_that_does_not_compile) {
    char *log;
    cr_assert(!sim_module_new("__global__ void k(int *a) { a[0] = nothing; }\n", SIM_WORK_DIR, &log));
    cr_assert(log && strstr(log, "kernel.cu:1"), "%s", log ? log : "no log");
    free(log);
}

Test(unwritten, counts_bytes_that_no_kernel_wrote) {
    sim_module *m =
        build("extern \"C\" __global__ void k(float *a) { if (threadIdx.x != 3) a[threadIdx.x] = 1.0f; }\n");
    sim_buffer *b = sim_buffer_new("out", 32 * sizeof(float), NULL, false);
    void *a = sim_buffer_data(b), *args[] = {&a};
    sim_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    cr_assert(sim_launch(m, "k", &c, args, 1), "%s", sim_fault());
    cr_assert_eq(sim_buffer_unwritten(b), sizeof(float));
    sim_buffer_free(b);
    sim_module_free(m);
}
