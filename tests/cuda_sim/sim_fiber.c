/* sim_fiber: switching between the host and the threads of a block.  A hand-written switch on x86-64 (no system call:
 * a launch switches millions of times), ucontext elsewhere.  AddressSanitizer is told about each switch. */
#define _GNU_SOURCE
#include "sim_internal.h"

#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#ifdef SIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

static void (*thread_body)(void);

static void announce(void **save, const void *bottom, size_t n_bytes) {
#ifdef SIM_ASAN
    __sanitizer_start_switch_fiber(save, bottom, n_bytes);
#else
    (void)save, (void)bottom, (void)n_bytes;
#endif
}

static void arrived(void *saved, const void **bottom, size_t *n_bytes) {
#ifdef SIM_ASAN
    __sanitizer_finish_switch_fiber(saved, bottom, n_bytes);
#else
    (void)saved, (void)bottom, (void)n_bytes;
#endif
}

static void first_run(void) {
    arrived(NULL, &sim_dev.host_stack, &sim_dev.host_stack_bytes);
    thread_body();
    abort(); /* the body leaves for good */
}

static bool make_stack(sim_thread *t) {
    if (t->stack)
        return true;
    void *p =
        mmap(NULL, SIM_STACK_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p, 4096, PROT_NONE) != 0)
        return false;
    t->stack = (char *)p + 4096;
    return true;
}

#if defined(__x86_64__)
/* Saves the callee-saved registers and the stack pointer in *save, then continues where `to` was saved. */
void sim_switch(void **save, void *to);
__asm__(".text\n"
        ".globl sim_switch\n"
        ".hidden sim_switch\n"
        ".type sim_switch, @function\n"
        "sim_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size sim_switch, .-sim_switch\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");

bool sim_fiber_prepare(sim_thread *t, void (*body)(void)) {
    if (!make_stack(t))
        return false;
    thread_body = body;
    void **top = (void **)((char *)t->stack + SIM_STACK_BYTES);
    *--top = NULL;               /* keeps the stack aligned at the first instruction */
    *--top = (void *)first_run;  /* where `ret` goes */
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    t->sp = top;
    return true;
}

static void switch_to_thread(sim_thread *t) { sim_switch(&sim_dev.host_sp, t->sp); }
static void switch_to_host(sim_thread *t) { sim_switch(&t->sp, sim_dev.host_sp); }
#else
#include <ucontext.h>
static ucontext_t host_context, contexts[SIM_MAX_THREADS];

bool sim_fiber_prepare(sim_thread *t, void (*body)(void)) {
    if (!make_stack(t))
        return false;
    thread_body = body;
    ucontext_t *c = &contexts[t->index];
    if (getcontext(c) != 0)
        return false;
    c->uc_stack.ss_sp = t->stack;
    c->uc_stack.ss_size = SIM_STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, first_run, 0);
    return true;
}

static void switch_to_thread(sim_thread *t) { swapcontext(&host_context, &contexts[t->index]); }
static void switch_to_host(sim_thread *t) { swapcontext(&contexts[t->index], &host_context); }
#endif

void sim_fiber_enter(sim_thread *t) {
    announce(&sim_dev.host_fake_stack, t->stack, SIM_STACK_BYTES);
    switch_to_thread(t);
    arrived(sim_dev.host_fake_stack, NULL, NULL);
}

void sim_fiber_leave(sim_thread *t, bool for_good) {
    announce(for_good ? NULL : &t->fake_stack, sim_dev.host_stack, sim_dev.host_stack_bytes);
    switch_to_host(t);
    arrived(t->fake_stack, &sim_dev.host_stack, &sim_dev.host_stack_bytes);
}
