/* sim_core: one launch.  Blocks run one after the other; the threads of a block are fibers that run until they wait
 * at a barrier or a warp collective, exit, or are preempted (random order only).  The first fault ends the launch: the
 * fibers are abandoned where they stand, and the next launch prepares them anew. */
#define _GNU_SOURCE
#include "sim_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sim_device sim_dev;
sim_builtin cuda_sim_builtin;

const char *sim_fault(void) { return sim_dev.fault; }

unsigned sim_random(unsigned n) { /* xorshift64* */
    uint64_t x = sim_dev.random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    sim_dev.random = x;
    return (unsigned)((x * 0x2545f4914f6cdd1dull) >> 33) % n;
}

static size_t describe_thread(char *out, size_t n, const sim_thread *t) {
    int len = snprintf(out, n, "block %u, thread %u (warp %u, lane %u): ", sim_dev.block_index, t->index,
                       t->index / SIM_WARP, t->index % SIM_WARP);
    return len < 0 ? 0 : (size_t)len;
}

void sim_fail(const char *fmt, ...) {
    if (!sim_dev.faulted) {
        size_t n = sim_dev.current ? describe_thread(sim_dev.fault, sizeof sim_dev.fault, sim_dev.current) : 0;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(sim_dev.fault + n, sizeof sim_dev.fault - n, fmt, ap);
        va_end(ap);
        sim_dev.faulted = true;
    }
    if (sim_dev.current)
        sim_fiber_leave(sim_dev.current, true);
}

void sim_wait(void) { sim_fiber_leave(sim_dev.current, false); }

void sim_preempt(void) {
    if (sim_dev.config->order == SIM_RANDOM && sim_random(16) == 0)
        sim_fiber_leave(sim_dev.current, false);
}

static void run_thread(void) {
    sim_dev.entry(sim_dev.user);
    sim_thread *t = sim_dev.current;
    t->state = SIM_EXITED;
    sim_dev.n_exited++;
    sim_warp_on_exit(t);
    sim_fiber_leave(t, true);
}

/* The ready thread that runs next; NULL when there is none. */
static sim_thread *pick(void) {
    unsigned n = sim_dev.n_threads, start = sim_dev.config->order == SIM_RANDOM ? sim_random(n) : 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = (start + i) % n;
        sim_thread *t = &sim_dev.threads[sim_dev.config->order == SIM_DESCENDING ? n - 1 - at : at];
        if (t->state == SIM_READY)
            return t;
    }
    return NULL;
}

static sim_uint3 unflatten(unsigned i, sim_dim3 d) { return (sim_uint3){i % d.x, i / d.x % d.y, i / d.x / d.y}; }

static bool prepare_block(unsigned block) {
    sim_dev.block_index = block;
    sim_dev.n_exited = sim_dev.n_at_barrier = 0;
    sim_dev.epoch = 1;
    sim_memory_begin_block();
    for (unsigned i = 0; i < sim_dev.n_threads; i++) {
        sim_thread *t = &sim_dev.threads[i];
        t->index = i;
        t->state = SIM_READY;
        memset(t->clock, 0, sizeof t->clock);
        t->clock[i % SIM_WARP] = 1;
        if (!sim_fiber_prepare(t, run_thread))
            return false;
    }
    return true;
}

static void run_block(unsigned block) {
    if (!prepare_block(block)) {
        sim_fail("no memory for the stacks of the block");
        return;
    }
    cuda_sim_builtin.block = unflatten(block, sim_dev.config->grid);
    while (sim_dev.n_exited < sim_dev.n_threads && !sim_dev.faulted) {
        sim_thread *t = pick();
        if (!t) {
            sim_explain_deadlock();
            return;
        }
        cuda_sim_builtin.thread = unflatten(t->index, sim_dev.config->block);
        sim_dev.current = t;
        sim_fiber_enter(t);
        sim_dev.current = NULL;
    }
}

static bool check_config(const sim_launch_config *c) {
    uint64_t threads = (uint64_t)c->block.x * c->block.y * c->block.z;
    uint64_t blocks = (uint64_t)c->grid.x * c->grid.y * c->grid.z;
    if (threads == 0 || threads > SIM_MAX_THREADS || c->block.z > 64)
        sim_fail("a block of %llu threads cannot be launched (1 to %d)", (unsigned long long)threads, SIM_MAX_THREADS);
    else if (blocks == 0 || blocks > UINT32_MAX || c->grid.y > 65535 || c->grid.z > 65535)
        sim_fail("a grid of %u x %u x %u blocks cannot be launched", c->grid.x, c->grid.y, c->grid.z);
    else if (c->shared_bytes > 232448)
        sim_fail("%zu bytes of shared memory are more than any device has", c->shared_bytes);
    return !sim_dev.faulted;
}

static bool run(const sim_launch_config *c, void (*entry)(void *), void *user) {
    sim_dev.config = c;
    sim_dev.entry = entry;
    sim_dev.user = user;
    sim_dev.random = (c->seed + 1) * 0x9e3779b97f4a7c15ull;
    sim_dev.n_threads = c->block.x * c->block.y * c->block.z;
    if (!sim_dev.threads)
        sim_dev.threads = calloc(SIM_MAX_THREADS, sizeof *sim_dev.threads);
    if (!sim_dev.threads)
        sim_fail("out of memory");
    cuda_sim_builtin.block_size = (sim_uint3){c->block.x, c->block.y, c->block.z};
    cuda_sim_builtin.grid_size = (sim_uint3){c->grid.x, c->grid.y, c->grid.z};
    sim_memory_begin_launch();
    unsigned blocks = c->grid.x * c->grid.y * c->grid.z, start = c->order == SIM_RANDOM ? sim_random(blocks) : 0;
    for (unsigned i = 0; i < blocks && !sim_dev.faulted; i++)
        run_block(c->order == SIM_DESCENDING ? blocks - 1 - i : (start + i) % blocks);
    sim_dev.config = NULL;
    return !sim_dev.faulted;
}

static void begin(void) {
    sim_dev.faulted = false;
    sim_dev.fault[0] = 0;
}

bool sim_launch(sim_module *m, const char *kernel, const sim_launch_config *config, void **args, int n_args) {
    begin();
    union {
        void *p;
        void (*fn)(void *);
    } entry = {.p = sim_module_symbol(m, "cuda_sim_call_", kernel)};
    const int *arity = sim_module_symbol(m, "cuda_sim_arity_", kernel);
    union {
        void *p;
        void (*fn)(char **);
    } sections = {.p = sim_module_symbol(m, "cuda_sim_sections", "")};
    if (!entry.p || !arity || !sections.p) {
        sim_fail("the module has no kernel '%s'", kernel);
        return false;
    }
    if (*arity != n_args) {
        sim_fail("kernel '%s' takes %d arguments, %d were given", kernel, *arity, n_args);
        return false;
    }
    if (!check_config(config))
        return false;
    char *ends[4];
    sections.fn(ends);
    sim_module_range(m, &sim_dev.readable[0].begin, &sim_dev.readable[0].end);
    sim_dev.readable[1] = (sim_range){(uintptr_t)ends[2], (uintptr_t)ends[3]};
    if (!sim_memory_set_shared(ends[0], ends[1], config->shared_bytes)) {
        sim_fail("out of memory");
        return false;
    }
    return run(config, entry.fn, args);
}

/* Launches from C++ inside a text (cuda_sim_launch): ascending order, shared memory as the last sim_launch left it. */
SIM_API bool cuda_sim_run(sim_uint3 grid, sim_uint3 block, unsigned long long shared_bytes, void (*entry)(void *),
                          void *user);
bool cuda_sim_run(sim_uint3 grid, sim_uint3 block, unsigned long long shared_bytes, void (*entry)(void *), void *user) {
    begin();
    sim_launch_config c = {
        .grid = {grid.x, grid.y, grid.z}, .block = {block.x, block.y, block.z}, .shared_bytes = (size_t)shared_bytes};
    return check_config(&c) && run(&c, entry, user);
}
