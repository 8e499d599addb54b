/* sim_memory: device memory and the hooks of -fsanitize=thread, through which every access of a kernel comes here.
 *
 * Each byte of a buffer and of shared memory has a shadow cell: was it written, by whom last, and who read it since.
 * Two accesses race when they come from different threads, at least one writes, not both are atomic, and nothing orders
 * them: another block, or the same epoch of the block and (within a warp) no joined clocks.  Of the readers only the
 * last two threads are remembered, so a race can be missed in one order of threads; tests run several. */
#define _GNU_SOURCE
#include "sim_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD ((size_t)16 << 20)
#define PAGE ((size_t)4096)

typedef struct access {
    uint32_t thread; /* in the grid, + 1; 0: none */
    uint32_t epoch, clock;
    bool atomic;
} access_record;

typedef struct cell {
    access_record write, read[2];
    bool written;
} cell;

struct sim_buffer {
    char *name;
    char *data;
    size_t n_bytes, mapped;
    void *mapping;
    bool read_only;
    cell *cells;
    sim_buffer *next;
};

static sim_buffer *buffers;
static sim_buffer shared_static = {.name = "static shared memory"}, shared_dynamic = {.name = "dynamic shared memory"};

/* ---- buffers ---- */

sim_buffer *sim_buffer_new(const char *name, size_t n_bytes, const void *contents, bool read_only) {
    sim_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    size_t body = (n_bytes + PAGE - 1) / PAGE * PAGE;
    b->n_bytes = n_bytes;
    b->read_only = read_only;
    b->mapped = body + 2 * GUARD;
    b->mapping = mmap(NULL, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    b->name = strdup(name);
    b->cells = calloc(n_bytes + 1, sizeof *b->cells);
    if (b->mapping == MAP_FAILED || !b->name || !b->cells ||
        (body && mprotect((char *)b->mapping + GUARD, body, PROT_READ | PROT_WRITE) != 0)) {
        sim_buffer_free(b);
        return NULL;
    }
    b->data = (char *)b->mapping + GUARD;
    memset(b->data, 0xcd, n_bytes); /* what an uninitialised buffer looks like to the host */
    if (contents && n_bytes)
        memcpy(b->data, contents, n_bytes);
    for (size_t i = 0; contents && i < n_bytes; i++)
        b->cells[i].written = true;
    b->next = buffers;
    buffers = b;
    return b;
}

void *sim_buffer_data(sim_buffer *b) { return b->data; }

size_t sim_buffer_unwritten(const sim_buffer *b) {
    size_t n = 0;
    for (size_t i = 0; i < b->n_bytes; i++)
        n += !b->cells[i].written;
    return n;
}

void sim_buffer_free(sim_buffer *b) {
    if (!b)
        return;
    for (sim_buffer **at = &buffers; *at; at = &(*at)->next)
        if (*at == b) {
            *at = b->next;
            break;
        }
    if (b->mapping && b->mapping != MAP_FAILED)
        munmap(b->mapping, b->mapped);
    free(b->cells);
    free(b->name);
    free(b);
}

/* ---- shared memory ---- */

static bool set_shared(sim_buffer *b, char *data, size_t n_bytes) {
    free(b->cells);
    b->data = data;
    b->n_bytes = n_bytes;
    b->cells = calloc(n_bytes + 1, sizeof *b->cells);
    return b->cells != NULL;
}

bool sim_memory_set_shared(char *begin, char *end, size_t dynamic_bytes) {
    free(shared_dynamic.data);
    char *data = dynamic_bytes ? aligned_alloc(256, (dynamic_bytes + 255) / 256 * 256) : NULL;
    return set_shared(&shared_dynamic, data, dynamic_bytes) && (data || !dynamic_bytes) &&
           set_shared(&shared_static, begin, (size_t)(end - begin));
}

SIM_API void *cuda_sim_dynamic_shared(void);
void *cuda_sim_dynamic_shared(void) {
    if (!shared_dynamic.n_bytes)
        sim_fail("the kernel uses dynamic shared memory, but the launch gives none");
    return shared_dynamic.data;
}

static void forget_block(sim_buffer *b) {
    if (b->n_bytes) {
        memset(b->cells, 0, b->n_bytes * sizeof *b->cells);
        memset(b->data, 0xcd, b->n_bytes);
    }
}

void sim_memory_begin_block(void) {
    forget_block(&shared_static);
    forget_block(&shared_dynamic);
}

void sim_memory_begin_launch(void) { /* a launch is ordered after the one before it */
    for (sim_buffer *b = buffers; b; b = b->next)
        for (size_t i = 0; i < b->n_bytes; i++)
            b->cells[i] = (cell){.written = b->cells[i].written};
}

/* ---- the check of one access ---- */

static bool holds(const sim_buffer *b, uintptr_t p, size_t n) {
    uintptr_t lo = (uintptr_t)b->data;
    return b->n_bytes && p >= lo && p + n <= lo + b->n_bytes;
}

static sim_buffer *find_buffer(uintptr_t p, size_t n) {
    if (holds(&shared_static, p, n))
        return &shared_static;
    if (holds(&shared_dynamic, p, n))
        return &shared_dynamic;
    for (sim_buffer *b = buffers; b; b = b->next)
        if (holds(b, p, n))
            return b;
    return NULL;
}

static bool is_own_memory(uintptr_t p, size_t n, bool write) {
    uintptr_t stack = (uintptr_t)sim_dev.current->stack, builtin = (uintptr_t)&cuda_sim_builtin;
    if (p >= stack && p + n <= stack + SIM_STACK_BYTES)
        return true;
    if (!write && p >= builtin && p + n <= builtin + sizeof cuda_sim_builtin)
        return true;
    for (int i = 0; !write && i < 2; i++)
        if (p >= sim_dev.readable[i].begin && p + n <= sim_dev.readable[i].end)
            return true;
    return false;
}

static void fail_outside(uintptr_t p, size_t n, const char *what) {
    for (unsigned i = 0; i < sim_dev.n_threads; i++) {
        uintptr_t stack = (uintptr_t)sim_dev.threads[i].stack;
        if (p >= stack && p < stack + SIM_STACK_BYTES)
            sim_fail("%s of %zu bytes in the local memory of thread %u", what, n, i);
    }
    for (const sim_buffer *b = buffers; b; b = b->next)
        if (p + n > (uintptr_t)b->mapping && p < (uintptr_t)b->mapping + b->mapped)
            sim_fail("%s of %zu bytes out of bounds: byte %lld of buffer '%s', which has %zu", what, n,
                     (long long)(p - (uintptr_t)b->data), b->name, b->n_bytes);
    sim_fail("%s of %zu bytes at %p, where no buffer is", what, n, (void *)p);
}

static uint32_t global_thread(const sim_thread *t) { return sim_dev.block_index * sim_dev.n_threads + t->index + 1; }

static bool ordered(const access_record *before, const sim_thread *now) {
    uint32_t self = global_thread(now), n = sim_dev.n_threads;
    if (before->thread == 0 || before->thread == self)
        return true;
    if ((before->thread - 1) / n != sim_dev.block_index)
        return false;
    if (before->epoch != sim_dev.epoch)
        return true;
    uint32_t other = (before->thread - 1) % n;
    return other / SIM_WARP == now->index / SIM_WARP && now->clock[other % SIM_WARP] >= before->clock;
}

static void check_race(const sim_buffer *b, size_t at, const access_record *before, const access_record *now,
                       const char *what) {
    if ((before->atomic && now->atomic) || ordered(before, sim_dev.current))
        return;
    uint32_t other = before->thread - 1;
    sim_fail("data race on byte %zu of '%s': %s, and block %u, thread %u with nothing between to order them", at,
             b->name, what, other / sim_dev.n_threads, other % sim_dev.n_threads);
}

static void note_read(cell *c, const access_record *now) {
    if (c->read[0].thread != now->thread) {
        c->read[1] = c->read[0];
    }
    c->read[0] = *now;
}

static void check_bytes(sim_buffer *b, size_t at, size_t n, bool read, bool write, bool atomic) {
    sim_thread *t = sim_dev.current;
    access_record now = {global_thread(t), sim_dev.epoch, t->clock[t->index % SIM_WARP], atomic};
    for (size_t i = at; i < at + n; i++) {
        cell *c = &b->cells[i];
        if (read && !c->written)
            sim_fail("read of byte %zu of '%s', which nobody has written", i, b->name);
        check_race(b, i, &c->write, &now, write ? "two writes" : "a read after a write");
        for (int k = 0; write && k < 2; k++)
            check_race(b, i, &c->read[k], &now, "a write after a read");
        if (read)
            note_read(c, &now);
        if (write) {
            c->write = now;
            c->written = true;
        }
    }
}

static void on_access(uintptr_t p, size_t n, bool read, bool write, bool atomic, bool aligned) {
    if (!sim_dev.current || n == 0)
        return; /* host code of a text */
    const char *what = atomic ? "atomic access" : write ? "write" : "read";
    if (aligned && (n & (n - 1)) == 0 && n <= 16 && p % n != 0)
        sim_fail("misaligned %s of %zu bytes at %p", what, n, (void *)p);
    if (!atomic && is_own_memory(p, n, write))
        return;
    sim_buffer *b = find_buffer(p, n);
    if (!b)
        fail_outside(p, n, what);
    if (write && b->read_only)
        sim_fail("write to byte %zu of '%s', which is read-only", (size_t)(p - (uintptr_t)b->data), b->name);
    check_bytes(b, (size_t)(p - (uintptr_t)b->data), n, read, write, atomic);
    sim_preempt();
}

SIM_API void cuda_sim_atomic_access(const volatile void *p, unsigned long long n_bytes);
void cuda_sim_atomic_access(const volatile void *p, unsigned long long n_bytes) {
    on_access((uintptr_t)p, n_bytes, true, true, true, true);
}

/* ---- the hooks, named by the compiler ---- */

#define READ_HOOK(name, n, aligned)                                                                                    \
    SIM_API void name(void *p);                                                                                        \
    void name(void *p) { on_access((uintptr_t)p, n, true, false, false, aligned); }
#define WRITE_HOOK(name, n, aligned)                                                                                   \
    SIM_API void name(void *p);                                                                                        \
    void name(void *p) { on_access((uintptr_t)p, n, false, true, false, aligned); }
#define HOOKS(n)                                                                                                       \
    READ_HOOK(__tsan_read##n, n, true)                                                                                 \
    WRITE_HOOK(__tsan_write##n, n, true)                                                                               \
    READ_HOOK(__tsan_unaligned_read##n, n, true)                                                                       \
    WRITE_HOOK(__tsan_unaligned_write##n, n, true)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

SIM_API void __tsan_init(void);
SIM_API void __tsan_func_entry(void *pc);
SIM_API void __tsan_func_exit(void *pc);
SIM_API void *__tsan_memcpy(void *to, const void *from, size_t n);
SIM_API void *__tsan_memmove(void *to, const void *from, size_t n);
SIM_API void *__tsan_memset(void *to, int v, size_t n);
SIM_API void __tsan_read_range(void *p, long n);
SIM_API void __tsan_write_range(void *p, long n);
void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void *pc) { (void)pc; } /* the types are those gcc has built in */
void __tsan_read_range(void *p, long n) { on_access((uintptr_t)p, (size_t)n, true, false, false, false); }
void __tsan_write_range(void *p, long n) { on_access((uintptr_t)p, (size_t)n, false, true, false, false); }
void *__tsan_memcpy(void *to, const void *from, size_t n) { return __tsan_memmove(to, from, n); }
void *__tsan_memmove(void *to, const void *from, size_t n) {
    on_access((uintptr_t)from, n, true, false, false, false);
    on_access((uintptr_t)to, n, false, true, false, false);
    return memmove(to, from, n);
}
void *__tsan_memset(void *to, int v, size_t n) {
    on_access((uintptr_t)to, n, false, true, false, false);
    return memset(to, v, n);
}
