/* bench/memory: what leaving memory and coming back costs, beside what the disk does by itself, in one run.
 *
 *     bench_memory FOLDER [MIB] [ROUNDS]
 *
 * The yardstick is plain O_DIRECT in pieces of 1 MiB from one thread, and from four; each round measures all of them. Rows: the best
 * round's GB/s, its processor time, and the ratio to the better yardstick.  The working set of the last rows is twice the
 * budget; their time is compared with what their own traffic takes at the yardstick's rates.  Values are read, or written with some
 * arithmetic between; in a scope that writes ahead and keeps places on disk, and in one that does not (its budget is
 * shared).  The last row asks for the next value before it works on one. */
#define _GNU_SOURCE
#include "tiga/memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 20, THREADS = 4 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static void die(const char *what, tiga_context *ctx) {
    fprintf(stderr, "bench_memory: %s: %s\n", what, ctx ? tiga_error_text(ctx) : "failed");
    exit(1);
}

/* Best wall time of the rounds, and processor time of that round: what a busy machine hides. */
typedef struct measure {
    double wall, cpu, wall_at, cpu_at;
} measure;

static void start(measure *m) {
    m->cpu_at = cpu();
    m->wall_at = now();
}

static void stop(measure *m) {
    double wall = now() - m->wall_at, used = cpu() - m->cpu_at;
    if (m->wall == 0 || wall < m->wall) {
        m->wall = wall;
        m->cpu = used;
    }
}

/* ---- the yardstick ---- */
typedef struct raw {
    int fd, write;
    char *memory;
    int64_t n_pieces;
    int64_t *next;
} raw;

static void *raw_pieces(void *user) {
    raw *r = user;
    for (int64_t i; (i = __atomic_fetch_add(r->next, 1, __ATOMIC_RELAXED)) < r->n_pieces;) {
        char *p = r->memory + i * PIECE;
        ssize_t n = r->write ? pwrite(r->fd, p, PIECE, i * PIECE) : pread(r->fd, p, PIECE, i * PIECE);
        if (n != PIECE)
            die("raw transfer", NULL);
    }
    return NULL;
}

static void raw_transfer(measure *m, int fd, int write, char *memory, int64_t bytes, int threads) {
    int64_t next = 0;
    raw r = {fd, write, memory, bytes / PIECE, &next};
    pthread_t t[THREADS];
    start(m);
    for (int i = 0; i < threads; i++)
        pthread_create(&t[i], NULL, raw_pieces, &r);
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    stop(m);
}

/* Into memory that nobody has touched, as whatever comes back from a disk has to go. */
static void raw_fresh(measure *m, int fd, int64_t bytes) {
    const size_t huge = (size_t)1 << 21;
    char *block = mmap(NULL, (size_t)bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        die("memory", NULL);
    char *memory = (char *)(((uintptr_t)block + huge - 1) & ~(uintptr_t)(huge - 1));
    madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
    raw_transfer(m, fd, 0, memory, bytes, THREADS);
    munmap(block, (size_t)bytes + huge);
}

/* ---- ours ---- */
static tiga_buffer *make(tiga_context *ctx, const char *name, int64_t bytes) {
    tiga_buffer *b;
    tiga_pin p;
    if (tiga_buffer_new(ctx, name, TIGA_TIER_HOST, bytes, &b) != TIGA_OK ||
        tiga_buffer_pin(ctx, b, TIGA_WRITE, &p) != TIGA_OK)
        die("buffer", ctx);
    for (int64_t i = 0; i < bytes / 8; i++)
        ((uint64_t *)p.data)[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
    tiga_buffer_unpin(&p);
    return b;
}

/* ---- more than fits ---- */
enum { N = 16, TURNS = 3 };
typedef struct over {
    measure time;
    int64_t written, read;
} over;

static uint64_t arithmetic(uint64_t *words, int64_t n, int passes) {
    uint64_t sum = 0;
    for (int p = 0; p < passes; p++)
        for (int64_t i = 0; i < n; i++)
            words[i] = words[i] * 0x2545f4914f6cdd1du + (sum += words[i] >> 3);
    return sum;
}

/* next: to be read ahead, or NULL. */
static void use(tiga_context *ctx, tiga_buffer *b, tiga_buffer *next, int passes) {
    tiga_pin p;
    if (tiga_buffer_pin(ctx, b, passes ? TIGA_WRITE : TIGA_READ, &p) != TIGA_OK ||
        (next && tiga_buffer_prefetch(ctx, next, NULL) != TIGA_OK))
        die("pin", ctx);
    (void)arithmetic(p.data, tiga_buffer_bytes(b) / 8, passes);
    tiga_buffer_unpin(&p);
}

/* Values of 1/16 of the working set, used in turn: each use brings one home and sends one out.  passes 0: they are only read. */
static void over_budget(tiga_context *ctx, const char *folder, int64_t bytes, const char *shared, int passes, int ahead,
                        over *out) {
    tiga_execution_options o = tiga_execution_defaults();
    o.budget[TIGA_TIER_HOST] = bytes / 2;
    o.eviction = TIGA_EVICT_LRU;
    o.spill_dir = folder;
    o.shared = shared;
    tiga_execution *run;
    if (tiga_execution_begin(ctx, &o, &run) != TIGA_OK)
        die("scope", ctx);
    tiga_buffer *b[N];
    for (int i = 0; i < N; i++)
        b[i] = make(ctx, "part", bytes / N);
    for (int i = 0; i < N; i++)
        use(ctx, b[i], NULL, passes);
    tiga_memory_report before = {.struct_bytes = sizeof before}, after = before;
    tiga_execution_report(run, &before);
    start(&out->time);
    for (int i = 0; i < TURNS * N; i++)
        use(ctx, b[i % N], ahead ? b[(i + 1) % N] : NULL, passes);
    stop(&out->time);
    tiga_execution_report(run, &after);
    out->written = after.bytes_written - before.bytes_written;
    out->read = after.bytes_read - before.bytes_read;
    for (int i = 0; i < N; i++)
        tiga_buffer_free(b[i]);
    tiga_execution_end(ctx);
    tiga_execution_free(run);
}

/* w, r: seconds for `bytes`. */
static void over_row(const char *what, const over *o, double compute, double w, double r, int64_t bytes) {
    double traffic = ((double)o->written * w + (double)o->read * r) / (double)bytes;
    double longer = traffic > compute ? traffic : compute;
    printf("%-36s %6.2f s  cpu %5.2f s  out %5.2f GB  in %5.2f GB  %.2f of its traffic alone", what, o->time.wall, o->time.cpu,
           (double)o->written / 1e9, (double)o->read / 1e9, o->time.wall / traffic);
    if (compute > 0)
        printf(", %.2f of the longer of traffic and arithmetic (%.2f s)", o->time.wall / longer, compute);
    printf("\n");
}

/* Arithmetic of about as long as the traffic that goes with it. */
static void over_rows(tiga_context *ctx, const char *folder, int64_t bytes, double w, double r) {
    char name[64];
    snprintf(name, sizeof name, "bench-%ld", (long)getpid());
    uint64_t *words = calloc(1, (size_t)(bytes / N));
    measure pass = {0};
    for (int i = 0; i < 3; i++) {
        start(&pass);
        words[0] += arithmetic(words, bytes / N / 8, 1);
        stop(&pass);
    }
    free(words);
    int passes = (int)((w + r) / N / pass.wall + 0.5);
    passes = passes ? passes : 1;
    over read = {0}, read_plain = {0}, both = {0}, both_plain = {0}, all = {0};
    over_budget(ctx, folder, bytes, name, 0, 0, &read_plain);
    over_budget(ctx, folder, bytes, NULL, 0, 0, &read);
    over_budget(ctx, folder, bytes, name, passes, 0, &both_plain);
    over_budget(ctx, folder, bytes, NULL, passes, 0, &both);
    over_budget(ctx, folder, bytes, NULL, passes, 1, &all);
    double compute = pass.wall * passes * TURNS * N;
    over_row("twice the budget, read, no copies", &read_plain, 0, w, r, bytes);
    over_row("the same, copies", &read, 0, w, r, bytes);
    over_row("written, no copies", &both_plain, compute, w, r, bytes);
    over_row("the same, written ahead", &both, compute, w, r, bytes);
    over_row("the same, and read ahead", &all, compute, w, r, bytes);
}

static void row(const char *what, const measure *m, int64_t bytes, double yardstick) {
    printf("%-28s %6.2f GB/s  cpu %5.2f s", what, (double)bytes / 1e9 / m->wall, m->cpu);
    if (yardstick > 0)
        printf("  %.2f of O_DIRECT", yardstick / m->wall);
    printf("\n");
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: bench_memory FOLDER [MIB] [ROUNDS]\n");
        return 2;
    }
    int64_t bytes = (argc > 2 ? atoll(argv[2]) : 1024) << 20;
    int rounds = argc > 3 ? atoi(argv[3]) : 3;
    tiga_context *ctx;
    char path[4096], saved[4096];
    snprintf(path, sizeof path, "%s/bench-raw.%ld", argv[1], (long)getpid());
    snprintf(saved, sizeof saved, "%s/bench-saved.%ld", argv[1], (long)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_DIRECT, 0600);
    char *memory = NULL;
    if (fd < 0 || unlink(path) != 0 || fallocate(fd, 0, 0, bytes) != 0 ||
        posix_memalign((void **)&memory, 1 << 21, (size_t)bytes) != 0 || tiga_context_new(NULL, &ctx) != TIGA_OK)
        die("setting up", NULL);
    for (int64_t i = 0; i < bytes / 8; i++)
        ((uint64_t *)(void *)memory)[i] = (uint64_t)i;
    tiga_execution_options o = tiga_execution_defaults();
    o.spill_dir = argv[1];
    if (tiga_execution_begin(ctx, &o, NULL) != TIGA_OK)
        die("scope", ctx);
    tiga_buffer *b = make(ctx, "value", bytes);
    measure w1 = {0}, w4 = {0}, r1 = {0}, r4 = {0}, spill = {0}, restore = {0}, save = {0}, fresh = {0};
    for (int i = 0; i < rounds; i++) {
        raw_transfer(&w1, fd, 1, memory, bytes, 1);
        start(&spill);
        if (tiga_buffer_spill(ctx, b) != TIGA_OK)
            die("spill", ctx);
        stop(&spill);
        raw_transfer(&w4, fd, 1, memory, bytes, THREADS);
        raw_transfer(&r1, fd, 0, memory, bytes, 1);
        start(&restore);
        if (tiga_buffer_realize(ctx, b) != TIGA_OK)
            die("realize", ctx);
        stop(&restore);
        raw_transfer(&r4, fd, 0, memory, bytes, THREADS);
        raw_fresh(&fresh, fd, bytes);
        tiga_tensor_view v = {.name = "value", .buffer = b, .dtype = TIGA_U8, .rank = 1, .shape = {bytes}};
        start(&save);
        if (tiga_save(ctx, saved, &v, 1, 1) != TIGA_OK)
            die("save", ctx);
        stop(&save);
        unlink(saved);
    }
    tiga_buffer_free(b);
    tiga_execution_end(ctx);
    double w = w1.wall < w4.wall ? w1.wall : w4.wall, r = r1.wall < r4.wall ? r1.wall : r4.wall;
    row("O_DIRECT write, 1 thread", &w1, bytes, 0);
    row("O_DIRECT write, 4 threads", &w4, bytes, 0);
    row("O_DIRECT read, 1 thread", &r1, bytes, 0);
    row("O_DIRECT read, 4 threads", &r4, bytes, 0);
    row("the same, fresh memory", &fresh, bytes, 0);
    row("tiga_buffer_spill", &spill, bytes, w);
    row("tiga_buffer_realize", &restore, bytes, r);
    printf("%-28s %40.2f of fresh memory\n", "", fresh.wall / restore.wall);
    row("tiga_save", &save, bytes, w);
    over_rows(ctx, argv[1], bytes, w, r);
    tiga_context_free(ctx);
    free(memory);
    close(fd);
    return 0;
}
