/* Memory of arrays and graphs.  Every block goes through base_alloc, so each can be made to fail; a small head in front
 * of the data remembers where the block began.
 *
 * Large blocks are aligned to 2 MiB and marked for huge pages before they are touched: up to 2x on random gathers. */
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 64, HUGE_ALIGN = 2 << 20, HUGE_FROM = 4 << 20, ASK_FROM = 64 << 20 };

void *rt_mem_new(int64_t n_bytes, bool zero) {
    if (n_bytes < 0 || n_bytes > INT64_MAX - 2 * HUGE_ALIGN)
        return NULL;
    size_t align = n_bytes >= HUGE_FROM ? HUGE_ALIGN : ALIGN;
    size_t total = (size_t)n_bytes + align + sizeof(void *);
    char *block = zero ? base_alloc_zero(total) : base_alloc(total);
    if (!block)
        return NULL;
    uintptr_t at = ((uintptr_t)block + sizeof(void *) + align - 1) & ~(uintptr_t)(align - 1);
    ((void **)at)[-1] = block;
#ifdef MADV_HUGEPAGE
    if (align == HUGE_ALIGN) /* advice only: whether it is taken changes nothing but speed */
        (void)madvise((void *)at, (size_t)n_bytes & ~(size_t)(HUGE_ALIGN - 1), MADV_HUGEPAGE);
#endif
    return (void *)at;
}

void rt_mem_free(void *p) {
    if (p)
        base_free(((void **)p)[-1]);
}

static int64_t first_number(const char *path, const char *after) {
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    char line[256];
    int64_t value = -1;
    while (value < 0 && fgets(line, sizeof line, f)) {
        size_t skip = strlen(after);
        if (strncmp(line, after, skip) == 0 && strncmp(line + skip, "max", 3) != 0)
            value = strtoll(line + skip, NULL, 10);
    }
    fclose(f);
    return value;
}

int64_t rt_mem_available(void) {
    int64_t best = INT64_MAX, kib = first_number("/proc/meminfo", "MemAvailable:");
    if (kib > 0)
        best = kib * 1024;
    int64_t v2 = first_number("/sys/fs/cgroup/memory.max", "");
    int64_t v1 = first_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");
    if (v2 > 0 && v2 < best)
        best = v2;
    if (v1 > 0 && v1 < best)
        best = v1;
    return best;
}

static void size_text(char *out, size_t n, double bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int u = 0;
    while (bytes >= 1024 && u < 6) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, n, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

tiga_status rt_mem_take(tiga_context *ctx, int64_t count, int64_t size, bool zero, const char *what, void **out) {
    *out = NULL;
    int64_t n_bytes, available = INT64_MAX;
    bool fits = count >= 0 && !__builtin_mul_overflow(count, size, &n_bytes);
    bool allowed = fits && !(ctx && ctx->memory_limit > 0 && n_bytes > ctx->memory_limit);
    if (allowed && n_bytes >= ASK_FROM)
        available = rt_mem_available();
    if (allowed && n_bytes <= available)
        *out = rt_mem_new(n_bytes, zero);
    if (*out)
        return TIGA_OK;
    char need[32], have[32];
    size_text(need, sizeof need, (double)count * (double)size);
    size_text(have, sizeof have, (double)available);
    if (!fits)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s needs %s, more than any machine can address", what, need);
    if (!allowed)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s needs %s, over the limit that was set", what, need);
    if (n_bytes > available)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s needs %s of memory; the machine has %s available", what, need, have);
    return rt_fail(ctx, TIGA_E_MEMORY, "%s: cannot allocate %s", what, need);
}
