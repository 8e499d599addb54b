/* Failure injection: counts the calls of each kind and says which one must fail.
 * The only mutable globals of the folder; relaxed atomics, because a test arms them before it starts threads. */
#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

static _Atomic uint64_t counts[BASE_INJECT_KINDS];
static _Atomic uint64_t targets[BASE_INJECT_KINDS];
static _Atomic int file_error = EIO;
static _Atomic bool deadly[BASE_INJECT_KINDS];

void base_inject_at(base_inject_kind kind, uint64_t nth) {
    atomic_store(&counts[kind], 0);
    atomic_store(&deadly[kind], false);
    atomic_store(&targets[kind], nth);
}

void base_inject_kill_at(base_inject_kind kind, uint64_t nth) {
    base_inject_at(kind, nth);
    atomic_store(&deadly[kind], true);
}

void base_inject_error(int error) { atomic_store(&file_error, error); }

int base_inject_get_error(void) { return atomic_load(&file_error); }

uint64_t base_inject_count(base_inject_kind kind) { return atomic_load(&counts[kind]); }

bool base_inject_hit(base_inject_kind kind) {
    uint64_t n = atomic_fetch_add_explicit(&counts[kind], 1, memory_order_relaxed) + 1;
    bool hit = n == atomic_load_explicit(&targets[kind], memory_order_relaxed);
    if (hit && atomic_load_explicit(&deadly[kind], memory_order_relaxed))
        raise(SIGKILL);
    return hit;
}
