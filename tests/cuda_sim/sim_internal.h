/* sim_internal: what the parts of the simulated device share. */
#ifndef SIM_INTERNAL_H
#define SIM_INTERNAL_H

#include "sim.h"

#define SIM_WARP 32
#define SIM_MAX_THREADS 1024
#define SIM_STACK_BYTES (128 * 1024)

typedef enum sim_state { SIM_READY, SIM_AT_BARRIER, SIM_AT_COLLECTIVE, SIM_EXITED } sim_state;

typedef struct sim_thread {
    sim_state state;
    unsigned index; /* in the block */
    int line;       /* of the barrier or collective it waits at */
    /* the collective it waits at */
    int kind, lane_arg, width;
    unsigned mask;
    uint64_t value, result;
    /* clock[u]: the last step of lane u of this warp that is known to have happened before; clock[own] is its own */
    uint32_t clock[SIM_WARP];
    void *stack; /* lowest address */
    void *sp; /* saved by the switch */
    void *fake_stack;
} sim_thread;

typedef struct sim_range {
    uintptr_t begin, end;
} sim_range;

typedef struct sim_device {
    sim_thread *threads; /* SIM_MAX_THREADS, stacks are kept between launches */
    unsigned n_threads; /* of the block */
    unsigned n_exited, n_at_barrier;
    unsigned block_index;
    sim_thread *current; /* NULL outside of kernels */
    void *host_sp, *host_fake_stack;
    const void *host_stack;
    size_t host_stack_bytes;
    uint32_t epoch; /* counts barriers of the block, from 1 */
    void (*entry)(void *);
    void *user;
    const sim_launch_config *config;
    uint64_t random;
    sim_range readable[2]; /* of the module: code and read-only data, __constant__ */
    bool faulted;
    char fault[4096];
} sim_device;
extern sim_device sim_dev;

/* ---- sim_core.c ---- */
/* Ends the launch; does not return when called from a kernel. */
void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sim_wait(void); /* the current thread gives way until it is SIM_READY again */
void sim_preempt(void); /* perhaps lets another thread run */
unsigned sim_random(unsigned n); /* 0 .. n - 1 */
typedef struct sim_uint3 {
    unsigned x, y, z;
} sim_uint3;
typedef struct sim_builtin {
    sim_uint3 thread, block, block_size, grid_size;
} sim_builtin;
extern SIM_API sim_builtin cuda_sim_builtin;

/* ---- sim_fiber.c ---- */
bool sim_fiber_prepare(sim_thread *t, void (*body)(void)); /* makes the stack when there is none */
void sim_fiber_enter(sim_thread *t); /* host to thread; returns when the thread leaves */
void sim_fiber_leave(sim_thread *t, bool for_good); /* thread to host */

/* ---- sim_warp.c ---- */
void sim_warp_on_exit(sim_thread *t);
void sim_explain_deadlock(void);

/* ---- sim_memory.c ---- */
void sim_memory_begin_launch(void);
void sim_memory_begin_block(void);
bool sim_memory_set_shared(char *begin, char *end, size_t dynamic_bytes);

/* ---- sim_build.c ---- */
void *sim_module_symbol(sim_module *m, const char *prefix, const char *name);
void sim_module_range(sim_module *m, uintptr_t *begin, uintptr_t *end); /* of what is not writable */
#endif
