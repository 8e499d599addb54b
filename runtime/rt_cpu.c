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

/* What cpuid says, asked once: a virtual machine may need 30 us for each answer. */
enum { MOST_LEAVES = 16 };
static struct leaf {
    uint32_t leaf, subleaf, r[4];
    bool there;
} leaves[MOST_LEAVES];
static size_t n_leaves;
static uint32_t saved_state;
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static const struct leaf *find_leaf(uint32_t leaf, uint32_t subleaf) {
    for (size_t i = 0; i < n_leaves; i++)
        if (leaves[i].leaf == leaf && leaves[i].subleaf == subleaf)
            return &leaves[i];
    return NULL;
}

static const struct leaf *ask(uint32_t leaf, uint32_t subleaf) {
    const struct leaf *known = find_leaf(leaf, subleaf);
    if (known)
        return known;
    BASE_CHECK(n_leaves < MOST_LEAVES);
    struct leaf *l = &leaves[n_leaves++];
    *l = (struct leaf){.leaf = leaf, .subleaf = subleaf};
    l->there = __get_cpuid_count(leaf, subleaf, &l->r[EAX], &l->r[EBX], &l->r[ECX], &l->r[EDX]);
    if (leaf == 7 && subleaf > 0) { /* a subleaf that is not there: its registers mean nothing */
        const struct leaf *first = ask(7, 0);
        l->there = l->there && first->there && first->r[EAX] >= subleaf;
    }
    return l;
}

static void ask_all(void) {
    const struct leaf *basic = ask(1, 0);
    if (basic->there && basic->r[ECX] & (1U << 27)) { /* OSXSAVE */
        uint32_t high;
        __asm__ volatile("xgetbv" : "=a"(saved_state), "=d"(high) : "c"(0));
    }
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        ask(features[i].leaf, features[i].subleaf);
}

static bool has(const struct feature *f) {
    pthread_once(&asked, ask_all);
    const struct leaf *l = find_leaf(f->leaf, f->subleaf);
    return l->there && (l->r[f->reg] >> f->bit & 1) && (f->saved & ~saved_state) == 0;
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

static tiga_status check_list(tiga_context *ctx, const char *who, const char *list) {
    for (const char *p = list; *p;) {
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

tiga_status rt_cpu_check(tiga_context *ctx, const char *who, const char *list) {
    if (!list || !*list)
        return TIGA_OK;
    pthread_mutex_lock(&ctx->lock);
    bool known = ctx->features && !strcmp(ctx->features, list);
    pthread_mutex_unlock(&ctx->lock);
    tiga_status status = known ? TIGA_OK : check_list(ctx, who, list);
    if (status != TIGA_OK || known)
        return status;
    size_t n = strlen(list) + 1;
    char *keep = base_alloc(n); /* without it the next module is only checked again */
    if (keep) {
        memcpy(keep, list, n);
        pthread_mutex_lock(&ctx->lock); /* several threads may compile in one context */
        char *before = ctx->features;
        ctx->features = keep;
        pthread_mutex_unlock(&ctx->lock);
        base_free(before);
    }
    return TIGA_OK;
}
