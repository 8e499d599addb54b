/* How many threads are of use: OMP_NUM_THREADS, which users of other numeric libraries set, or the processors that this process may
 * run on, no more than its control group may use at a time. */
#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096 };

/* "4", or "4,2" for nested regions; 0: not set, or no number. */
static int from_environment(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    char *end;
    long n = text ? strtol(text, &end, 10) : 0;
    while (text && n > 0 && (*end == ' ' || *end == '\t'))
        end++;
    bool good = text && n > 0 && (*end == 0 || *end == ',');
    return !good ? 0 : n > MOST ? MOST : (int)n;
}

static int processors(void) {
    for (int room = 1024; room <= 1 << 16; room *= 2) { /* EINVAL: the kernel knows of more */
        cpu_set_t *set = CPU_ALLOC((size_t)room);
        if (!set)
            break;
        bool ok = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)room), set) == 0;
        int n = ok ? CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)room), set) : 0, error = errno;
        CPU_FREE(set);
        if (ok)
            return n > 0 ? n : 1;
        if (error != EINVAL)
            break;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static bool read_line(const char *root, const char *name, char *line, int size) {
    char path[512];
    if ((size_t)snprintf(path, sizeof path, "%s%s", root, name) >= sizeof path)
        return false;
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(line, size, f);
    if (f)
        fclose(f);
    return ok;
}

/* Processors' worth of time that the control group may use, rounded up; as a container sees its own.  0: no limit. */
static int quota(const char *root) {
    char line[128];
    long long used, period;
    if (read_line(root, "/sys/fs/cgroup/cpu.max", line, sizeof line)) {
        if (sscanf(line, "%lld %lld", &used, &period) != 2) /* "max 100000" */
            return 0;
    } else if (!read_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line) ||
               sscanf(line, "%lld", &used) != 1 ||
               !read_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line) ||
               sscanf(line, "%lld", &period) != 1) {
        return 0;
    }
    if (used <= 0 || period <= 0)
        return 0;
    long long n = (used - 1) / period + 1;
    return n > MOST ? MOST : (int)n;
}

int base_count_threads(const char *root) {
    int n = from_environment();
    if (n > 0)
        return n;
    int cores = processors(), limit = quota(root);
    n = limit > 0 && limit < cores ? limit : cores;
    return n > MOST ? MOST : n;
}

static pthread_once_t counted = PTHREAD_ONCE_INIT;
static int n_default;

static void count(void) { n_default = base_count_threads(""); }

int base_default_threads(void) {
    pthread_once(&counted, count);
    return n_default;
}
