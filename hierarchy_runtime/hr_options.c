/* Options of a scope from text: names of tiers, sizes, and what "auto" means on this machine. */
#include "hierarchy_runtime/hr_memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

static const struct {
    const char *name;
    int32_t tier;
} tiers[] = {{"host", TIGA_TIER_HOST}, {"device", TIGA_TIER_DEVICE}, {"pinned", TIGA_TIER_PINNED},
             {"disk", TIGA_TIER_DISK}, /* the first of each is what it is called */
             {"ram", TIGA_TIER_HOST},  {"hbm", TIGA_TIER_DEVICE},    {"host-pinned", TIGA_TIER_PINNED},
             {"nvme", TIGA_TIER_DISK}, {"ssd", TIGA_TIER_DISK}};
enum { N_TIERS = sizeof tiers / sizeof tiers[0] };

const char *tiga_tier_text(int32_t tier) {
    for (int i = 0; i < N_TIERS; i++)
        if (tiers[i].tier == tier)
            return tiers[i].name;
    return "unknown";
}

tiga_status tiga_tier_parse(tiga_context *ctx, const char *text, int32_t *tier) {
    if (!text || !tier)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_tier_parse: an argument is NULL");
    for (int i = 0; i < N_TIERS; i++)
        if (strcmp(tiers[i].name, text) == 0) {
            *tier = tiers[i].tier;
            return TIGA_OK;
        }
    return rt_fail(ctx, TIGA_E_NAME,
                   "'%s' is not a tier; tiers are host (ram), device (hbm), host-pinned (pinned), disk (nvme, ssd)",
                   text);
}

tiga_status tiga_bytes_parse(tiga_context *ctx, const char *text, int64_t *bytes) {
    static const struct {
        const char *unit;
        int shift;
    } units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    if (!text || !bytes)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_bytes_parse: an argument is NULL");
    int64_t v = 0;
    bool big = false;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        big |= __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v);
    for (size_t i = 0; p > text && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(p, units[i].unit) == 0) {
            if (big || v > INT64_MAX >> units[i].shift)
                return rt_fail(ctx, TIGA_E_RANGE, "'%s' is more than any tier can hold", text);
            *bytes = v << units[i].shift;
            return TIGA_OK;
        }
    return rt_fail(ctx, TIGA_E_ARGUMENT,
                   "'%s' is not a size; write bytes as digits, or digits and KiB, MiB, GiB or TiB", text);
}

tiga_status tiga_execution_set_budget(tiga_context *ctx, tiga_execution_options *o, const char *tier,
                                      const char *bytes) {
    int32_t t = 0;
    int64_t n = 0;
    if (!o)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_set_budget: an argument is NULL");
    tiga_status status = tiga_tier_parse(ctx, tier, &t);
    if (status == TIGA_OK)
        status = tiga_bytes_parse(ctx, bytes, &n);
    if (status == TIGA_OK && o->budget[t] >= 0)
        status = rt_fail(ctx, TIGA_E_ARGUMENT, "the budget of the %s tier is given twice", tiga_tier_text(t));
    if (status == TIGA_OK)
        o->budget[t] = n;
    return status;
}

/* ---- auto ---- */

/* The number in a file of one line; -1: none, "max", or no such file. */
static int64_t read_number(const char *root, const char *folder, const char *name) {
    char path[PATH_MAX], line[64];
    if ((size_t)snprintf(path, sizeof path, "%s%s/%s", root, folder, name) >= sizeof path)
        return -1;
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    int64_t value = -1;
    if (fgets(line, sizeof line, f) && line[0] >= '0' && line[0] <= '9')
        value = strtoll(line, NULL, 10);
    fclose(f);
    return value;
}

/* Bytes of the page cache in a group, which it gives up when asked. */
static int64_t read_cache(const char *root, const char *folder) {
    char path[PATH_MAX], line[128];
    long long value = 0, n;
    if ((size_t)snprintf(path, sizeof path, "%s%s/memory.stat", root, folder) >= sizeof path)
        return 0;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "inactive_file %lld", &n) == 1)
            value = n;
    if (f)
        fclose(f);
    return value;
}

static int64_t group_left(const char *root, const char *folder, bool v2) {
    int64_t limit = read_number(root, folder, v2 ? "memory.max" : "memory.limit_in_bytes");
    int64_t used = read_number(root, folder, v2 ? "memory.current" : "memory.usage_in_bytes");
    if (limit < 0)
        return INT64_MAX;
    used = used < 0 ? 0 : used - read_cache(root, folder);
    used = used < 0 ? 0 : used;
    return limit > used ? limit - used : 0;
}

/* The tightest of the group and those above it.  `path` is cut off piece by piece. */
static int64_t groups_left(const char *root, const char *mount, char *path, bool v2) {
    char folder[PATH_MAX];
    int64_t best = INT64_MAX;
    for (;;) {
        if ((size_t)snprintf(folder, sizeof folder, "%s%s", mount, path) < sizeof folder) {
            int64_t left = group_left(root, folder, v2);
            best = left < best ? left : best;
        }
        char *slash = strrchr(path, '/');
        if (!slash)
            return best;
        *slash = 0;
    }
}

static int64_t cgroup_left(const char *root) {
    char path[PATH_MAX], line[PATH_MAX];
    int64_t best = INT64_MAX;
    if ((size_t)snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= sizeof path)
        return best;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        bool v2 = strcmp(controllers, ":") == 0, v1 = strstr(controllers, "memory") != NULL;
        if (strcmp(group, "/") == 0)
            group[0] = 0;
        int64_t left = v2   ? groups_left(root, "/sys/fs/cgroup", group, true)
                       : v1 ? groups_left(root, "/sys/fs/cgroup/memory", group, false)
                            : INT64_MAX;
        best = left < best ? left : best;
    }
    if (f)
        fclose(f);
    return best;
}

static int64_t machine_left(const char *root) {
    char path[PATH_MAX], line[128];
    long long kib = -1;
    if ((size_t)snprintf(path, sizeof path, "%s/proc/meminfo", root) >= sizeof path)
        return INT64_MAX;
    FILE *f = fopen(path, "re");
    while (f && kib < 0 && fgets(line, sizeof line, f))
        (void)sscanf(line, "MemAvailable: %lld kB", &kib);
    if (f)
        fclose(f);
    return kib < 0 ? INT64_MAX : (int64_t)kib * 1024;
}

int64_t hr_memory_left(const char *root) {
    int64_t machine = machine_left(root), group = cgroup_left(root);
    return machine < group ? machine : group;
}

tiga_status tiga_execution_set_auto(tiga_context *ctx, tiga_execution_options *o) {
    if (!o)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_execution_set_auto: an argument is NULL");
    int64_t left = hr_memory_left("");
    if (o->budget[TIGA_TIER_HOST] < 0 && left != INT64_MAX)
        o->budget[TIGA_TIER_HOST] = left / 4 * 3;
    struct statvfs fs;
    if (o->budget[TIGA_TIER_DISK] < 0 && o->spill_dir) {
        if (base_file_injected() || statvfs(o->spill_dir, &fs) != 0)
            return hr_fail_errno(ctx, TIGA_E_FILE, o->spill_dir, "look at");
        unsigned long long size;
        if (__builtin_mul_overflow((unsigned long long)fs.f_bavail, (unsigned long long)fs.f_frsize, &size) ||
            size > INT64_MAX)
            size = INT64_MAX;
        o->budget[TIGA_TIER_DISK] = (int64_t)(size / 10 * 9);
    }
    return TIGA_OK;
}
