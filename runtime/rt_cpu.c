/* Which processor features are there, under the names LLVM gives them: what a module says it may use is compared with
 * this before any of its kernels runs.  A feature counts only when the operating system saves its registers. */
#include "runtime/runtime.h"

#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

enum { EAX, EBX, ECX, EDX };
enum { NOTHING = 0, AVX = 0x6, AVX512 = 0xe6, AMX = 0x60000, APX = 0x80000 }; /* bits of XCR0 */

static const struct feature {
    const char *name;
    uint32_t leaf, subleaf;
    int reg, bit;
    uint32_t saved;
} features[] = {
#define RT_CPU(name, leaf, subleaf, reg, bit, saved) {name, leaf, subleaf, reg, bit, saved},
#include "runtime/rt_cpu.def"
#undef RT_CPU
};

static uint32_t saved_state(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1U << 27))) /* OSXSAVE */
        return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a;
}

static bool has(const struct feature *f) {
    uint32_t r[4], most[4];
    if (!__get_cpuid_count(f->leaf, f->subleaf, &r[0], &r[1], &r[2], &r[3]))
        return false;
    if (f->leaf == 7 && f->subleaf > 0 &&
        (!__get_cpuid_count(7, 0, &most[0], &most[1], &most[2], &most[3]) || most[0] < f->subleaf))
        return false; /* subleaf is not there: its registers mean nothing */
    return (r[f->reg] >> f->bit & 1) && (f->saved & ~saved_state()) == 0;
}

rt_cpu_answer rt_cpu_feature(const char *name, size_t len) {
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        if (strlen(features[i].name) == len && memcmp(features[i].name, name, len) == 0)
            return has(&features[i]) ? RT_CPU_HAS : RT_CPU_LACKS;
    return RT_CPU_UNKNOWN;
}
#else
rt_cpu_answer rt_cpu_feature(const char *name, size_t len) {
    (void)name;
    (void)len;
    return RT_CPU_UNKNOWN;
}
#endif

tiga_status rt_cpu_check(tiga_context *ctx, const char *who, const char *list) {
    for (const char *p = list ? list : ""; *p;) {
        size_t n = strcspn(p, ",");
        const char *name = *p == '+' ? p + 1 : p;
        size_t len = n - (size_t)(name - p);
        if (len > 0 && *name != '-') { /* "-avx" says what is not used */
            rt_cpu_answer answer = rt_cpu_feature(name, len);
            if (answer != RT_CPU_HAS)
                return rt_fail(ctx, TIGA_E_TARGET, "%s: was compiled for a processor with '%.*s', %s", who, (int)len,
                               name,
                               answer == RT_CPU_LACKS ? "which this one lacks" : "which this library does not know");
        }
        p += n + (p[n] == ',');
    }
    return TIGA_OK;
}
