/* sim: a simulated CUDA device, to run emitted CUDA C where there is no GPU and to catch what a GPU would hide.
 *
 * A text is compiled as C++ (cuda_sim.h in front) into a shared object and its kernels run on the host: the threads of a
 * block are fibers, warps have 32 lanes, barriers and shuffles really wait.  A launch fails, with a report, on
 *   - an access outside every device buffer, to another thread's stack, misaligned, or a write to a read-only buffer;
 *   - a read of shared memory or of a device buffer that nobody wrote;
 *   - a data race: two threads, one of them writing, with no barrier (__syncthreads; __syncwarp within a warp) between;
 *   - a barrier that not all threads of the block reach, or at different places;
 *   - a warp collective whose mask lacks the caller, names an exited lane, differs between the lanes, or reads a lane
 *     outside of the mask; and on any other deadlock.
 * Not modelled: time, caches, the order of blocks beyond a permutation, memory order weaker than sequential.
 *
 * One device per process (the hooks of the compiler have no argument); host threads must not launch at the same time. */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#define SIM_API __attribute__((visibility("default")))

typedef struct sim_dim3 {
    unsigned x, y, z;
} sim_dim3;

/* ---- memory (sim_memory.c) ---- */
typedef struct sim_buffer sim_buffer;
/* A device buffer of n_bytes, 256-byte aligned, with 16 MiB of unmapped memory on both sides.  contents NULL: nobody
 * has written it yet, and reading a byte before a kernel wrote it is a fault.  name is copied.  NULL: out of memory. */
SIM_API sim_buffer *sim_buffer_new(const char *name, size_t n_bytes, const void *contents, bool read_only);
SIM_API void *sim_buffer_data(sim_buffer *b); /* the device pointer, which the host may also read */
SIM_API size_t sim_buffer_unwritten(const sim_buffer *b); /* bytes that nobody has written */
SIM_API void sim_buffer_free(sim_buffer *b);

/* ---- modules (sim_build.c) ---- */
typedef struct sim_module sim_module;
/* Compiles CUDA C text with the compiler named by CUDA_SIM_CXX (default clang++-19) in a folder of its own below
 * work_dir.  NULL: it does not compile; *log, from malloc, says why.  Free *log in any case. */
SIM_API sim_module *sim_module_new(const char *text, const char *work_dir, char **log);
SIM_API void *sim_module_find(sim_module *m, const char *name); /* a variable of the text with C linkage; NULL: none */
SIM_API void sim_module_free(sim_module *m);

/* ---- launches (sim_core.c) ---- */
typedef enum sim_order { SIM_ASCENDING, SIM_DESCENDING, SIM_RANDOM } sim_order;
typedef struct sim_launch_config {
    sim_dim3 grid, block;
    size_t shared_bytes; /* dynamic shared memory */
    sim_order order; /* in which threads and blocks run; SIM_RANDOM also switches threads at memory accesses */
    uint64_t seed; /* of SIM_RANDOM */
} sim_launch_config;

/* args: a pointer to each argument, as for cuLaunchKernel; n_args is checked. false: see sim_fault(). */
SIM_API bool sim_launch(sim_module *m, const char *kernel, const sim_launch_config *config, void **args, int n_args);
SIM_API const char *sim_fault(void); /* report of the last failed launch, "" after a good one */

#ifdef __cplusplus
}
#endif
#endif
