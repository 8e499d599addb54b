/* One budget for many processes: a segment of POSIX shared memory with a robust lock and a slot for every process and
 * account.  What is in use is the sum of the slots, so a process that dies while it holds the lock leaves nothing half
 * done; the slots of dead processes are cleared before a charge is refused.  A slot belongs to a process by number and
 * start time, because numbers come again.
 *
 * A child of fork charges to a slot of its own, from nothing: what it inherited stays its parent's.
 * The last account that leaves removes the segment; whoever has opened it meanwhile sees `closed` and makes another. */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1024, TRIES = 1000, NAP_NS = 1000000 };
static const uint64_t magic = 0x5447534841523031; /* changes with the layout */

typedef struct slot {
    int64_t pid; /* 0: free */
    int64_t started;
    int64_t live[TIGA_TIERS];
} slot;

typedef struct segment {
    _Atomic uint64_t ready; /* magic, once the maker is done */
    pthread_mutex_t lock;
    int32_t closed;
    int32_t n_slots; /* highest in use, and one */
    int64_t budget[TIGA_TIERS];
    slot slots[SLOTS];
} segment;

struct rt_shared {
    segment *seg;
    char name[128];
    int32_t slot; /* of this process, -1: none yet */
    pid_t pid;
    pthread_mutex_t lock; /* of this process; taken first */
};

/* Clock ticks after boot at which a process began; 0: no such process; -1: it cannot be told, as without a free descriptor. */
static int64_t start_of(int64_t pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? 0 : -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    int error = errno;
    close(fd);
    if (n <= 0)
        return n < 0 && error == ESRCH ? 0 : -1;
    text[n] = 0;
    const char *p = strrchr(text, ')'); /* the name may hold anything */
    char state = 0;
    long long started = 0;
    if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld", &state,
                     &started) != 2)
        return -1;
    return state == 'Z' || state == 'X' ? 0 : (int64_t)started; /* a zombie holds no memory */
}

/* In doubt it is: bytes that are charged too long are the lesser fault. */
static bool is_alive(const slot *s) {
    if (kill((pid_t)s->pid, 0) != 0 && errno == ESRCH)
        return false;
    int64_t now = start_of(s->pid);
    return now < 0 || s->started < 0 || now == s->started;
}

static bool lock_segment(segment *g) {
    int e = pthread_mutex_lock(&g->lock);
    if (e == EOWNERDEAD) /* slots are whole at any moment */
        e = pthread_mutex_consistent(&g->lock);
    return e == 0;
}

static int64_t sum(const segment *g, int32_t tier) {
    int64_t total = 0;
    for (int32_t i = 0; i < g->n_slots; i++)
        total += g->slots[i].pid ? g->slots[i].live[tier] : 0;
    return total;
}

static void clear_dead(segment *g) {
    for (int32_t i = 0; i < g->n_slots; i++)
        if (g->slots[i].pid && !is_alive(&g->slots[i]))
            memset(&g->slots[i], 0, sizeof g->slots[i]);
    while (g->n_slots > 0 && !g->slots[g->n_slots - 1].pid)
        g->n_slots--;
}

/* With the segment locked.  false: all are taken. */
static bool find_slot(rt_shared *s) {
    segment *g = s->seg;
    for (int round = 0; round < 2; round++) {
        for (int32_t i = 0; i < SLOTS; i++)
            if (!g->slots[i].pid) {
                g->slots[i] = (slot){.pid = getpid(), .started = start_of(getpid())};
                if (i >= g->n_slots)
                    g->n_slots = i + 1;
                s->slot = i;
                s->pid = getpid();
                return true;
            }
        clear_dead(g);
    }
    return false;
}

/* ---- charges ---- */

static slot *own_slot(rt_shared *s) {
    if (s->pid != getpid()) {
        s->slot = -1;
        if (!find_slot(s))
            return NULL;
    }
    return &s->seg->slots[s->slot];
}

bool rt_shared_take(rt_shared *s, int32_t tier, int64_t n_bytes) {
    pthread_mutex_lock(&s->lock);
    bool good = lock_segment(s->seg);
    if (good) {
        segment *g = s->seg;
        int64_t budget = g->budget[tier];
        good = budget < 0 || n_bytes <= budget - sum(g, tier);
        if (!good) {
            clear_dead(g);
            good = n_bytes <= budget - sum(g, tier);
        }
        slot *mine = good ? own_slot(s) : NULL;
        good = mine != NULL;
        if (good)
            mine->live[tier] += n_bytes;
        pthread_mutex_unlock(&g->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return good;
}

void rt_shared_give(rt_shared *s, int32_t tier, int64_t n_bytes) {
    pthread_mutex_lock(&s->lock);
    if (s->pid == getpid() && lock_segment(s->seg)) {
        int64_t *live = &s->seg->slots[s->slot].live[tier];
        *live = *live > n_bytes ? *live - n_bytes : 0; /* less: a child gives what it inherited */
        pthread_mutex_unlock(&s->seg->lock);
    }
    pthread_mutex_unlock(&s->lock);
}

int64_t rt_shared_live(rt_shared *s, int32_t tier) {
    pthread_mutex_lock(&s->lock);
    int64_t total = 0;
    if (lock_segment(s->seg)) {
        clear_dead(s->seg);
        total = sum(s->seg, tier);
        pthread_mutex_unlock(&s->seg->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return total;
}

/* ---- joining and leaving ---- */

static bool make_segment(segment *g, const int64_t *budget) {
    pthread_mutexattr_t a;
    if (pthread_mutexattr_init(&a) != 0)
        return false;
    bool good = pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED) == 0 &&
                pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) == 0 && pthread_mutex_init(&g->lock, &a) == 0;
    pthread_mutexattr_destroy(&a);
    memcpy(g->budget, budget, sizeof g->budget);
    if (good)
        atomic_store(&g->ready, magic);
    return good;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL); }

typedef enum joined { JOINED, AGAIN, FAILED } joined;

/* The segment of a maker that died before it was done.  Others may give up on it as well: each holds its lock and looks
 * whether the name still leads to it, so that nobody removes the one that was made after it. */
static joined throw_away(const char *name, int fd) {
    struct stat mine, now;
    int other = flock(fd, LOCK_EX) == 0 ? shm_open(name, O_RDWR | O_CLOEXEC, 0600) : -1;
    if (other >= 0 && fstat(fd, &mine) == 0 && fstat(other, &now) == 0 && mine.st_ino == now.st_ino &&
        mine.st_dev == now.st_dev)
        shm_unlink(name);
    if (other >= 0)
        close(other);
    return AGAIN;
}

/* After a while it is thrown away. */
static joined wait_ready(segment *g, const char *name, int fd) {
    for (int i = 0; i < TRIES; i++, nap())
        if (atomic_load(&g->ready) == magic)
            return JOINED;
    return throw_away(name, fd);
}

/* false: errno.  *dead: it was never given its size. */
static bool wait_size(int fd, bool *dead) {
    struct stat st;
    bool good = fstat(fd, &st) == 0;
    for (int i = 0; good && st.st_size < (off_t)sizeof(segment) && i < TRIES; i++) {
        nap();
        good = fstat(fd, &st) == 0;
    }
    *dead = good && st.st_uid == geteuid() && st.st_size < (off_t)sizeof(segment);
    if (good && st.st_uid != geteuid()) {
        errno = EACCES;
        good = false;
    }
    return good && !*dead;
}

static joined enter(rt_shared *s, const int64_t *budget) {
    segment *g = s->seg;
    if (!lock_segment(g))
        return FAILED;
    joined answer = g->closed ? AGAIN : JOINED;
    if (answer == JOINED) {
        clear_dead(g);
        if (g->n_slots == 0) /* nobody is left: the budget is new */
            memcpy(g->budget, budget, sizeof g->budget);
        errno = ERANGE;
        answer = memcmp(g->budget, budget, sizeof g->budget) == 0 ? JOINED : FAILED;
        if (answer == JOINED && !find_slot(s)) {
            errno = EUSERS;
            answer = FAILED;
        }
    }
    pthread_mutex_unlock(&g->lock);
    return answer;
}

static joined join_once(rt_shared *s, const int64_t *budget) {
    bool made = true;
    int fd = base_file_injected() ? -1 : shm_open(s->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        made = false;
        fd = shm_open(s->name, O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0 && errno == ENOENT)
            return AGAIN;
    }
    bool dead = false, good = fd >= 0 && !base_file_injected() && (!made || ftruncate(fd, sizeof(segment)) == 0);
    good = good && wait_size(fd, &dead);
    if (dead) {
        throw_away(s->name, fd);
        close(fd);
        return AGAIN;
    }
    void *at = good ? mmap(NULL, sizeof(segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    int saved = errno;
    if (at == MAP_FAILED) {
        if (made && fd >= 0)
            shm_unlink(s->name);
        if (fd >= 0)
            close(fd);
        errno = saved;
        return FAILED;
    }
    s->seg = at;
    joined answer = made ? (make_segment(s->seg, budget) ? JOINED : FAILED) : wait_ready(s->seg, s->name, fd);
    close(fd);
    answer = answer == JOINED ? enter(s, budget) : answer;
    saved = errno;
    if (answer != JOINED)
        munmap(at, sizeof(segment));
    errno = saved;
    return answer;
}

static bool name_is_fine(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return n > 0 && n < 64 && !name[n];
}

tiga_status rt_shared_open(tiga_context *ctx, const char *name, const int64_t *budget, rt_shared **out) {
    *out = NULL;
    if (!name_is_fine(name))
        return rt_fail(ctx, TIGA_E_ARGUMENT, "shared '%s': 1 to 63 letters, digits, '-' and '_'", name);
    rt_shared *s = base_alloc_zero(sizeof *s);
    if (!s)
        return rt_fail(ctx, TIGA_E_MEMORY, "shared '%s': out of memory", name);
    snprintf(s->name, sizeof s->name, "/tiga-%ld-%s", (long)geteuid(), name);
    joined answer = AGAIN;
    for (int i = 0; i < TRIES && answer == AGAIN; i++)
        answer = join_once(s, budget);
    if (answer == JOINED) {
        pthread_mutex_init(&s->lock, NULL);
        *out = s;
        return TIGA_OK;
    }
    int error = errno;
    base_free(s);
    if (answer == FAILED && error == ERANGE)
        return rt_fail(ctx, TIGA_E_RANGE, "shared '%s': other processes use it with other budgets", name);
    return rt_fail(ctx, TIGA_E_FILE, "shared '%s': cannot share memory: %s", name, strerror(error));
}

void rt_shared_close(rt_shared *s) {
    if (!s)
        return;
    segment *g = s->seg;
    if (s->pid == getpid() && lock_segment(g)) {
        memset(&g->slots[s->slot], 0, sizeof g->slots[s->slot]);
        clear_dead(g);
        if (g->n_slots == 0) {
            g->closed = 1;
            shm_unlink(s->name);
        }
        pthread_mutex_unlock(&g->lock);
    }
    munmap(g, sizeof *g);
    pthread_mutex_destroy(&s->lock);
    base_free(s);
}
