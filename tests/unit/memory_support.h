/* What the tests of memory share: contexts, scopes, buffers with a pattern, a folder of their own. */
#ifndef TIGA_TESTS_MEMORY_SUPPORT_H
#define TIGA_TESTS_MEMORY_SUPPORT_H

#include "hierarchy_runtime/hr_memory.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        tiga_status status_ = (call);                                                                                  \
        cr_assert_eq(status_, TIGA_OK, "%s: %s", #call, tiga_error_text(ctx));                                         \
    } while (0)
/* Fails as it should; the text is left in `said`, the error cleared. */
#define FAILS(call, wanted)                                                                                            \
    do {                                                                                                               \
        tiga_status status_ = (call);                                                                                  \
        cr_assert_eq(status_, wanted, "%s: %s, '%s'", #call, tiga_status_text(status_), tiga_error_text(ctx));         \
        snprintf(said, sizeof said, "%s", tiga_error_text(ctx));                                                       \
        tiga_error_clear(ctx);                                                                                         \
    } while (0)

__attribute__((unused)) static char said[2048];

static inline tiga_context *new_context(void) {
    tiga_context *ctx;
    cr_assert_eq(tiga_context_new(NULL, &ctx), TIGA_OK);
    return ctx;
}

static inline void make_folder(char *folder) {
    strcpy(folder, "/var/tmp/tiga-test-XXXXXX"); /* a disk, where O_DIRECT works */
    cr_assert(mkdtemp(folder) != NULL);
}

/* Number of entries; removes them when asked. */
static inline int count_files(const char *folder, bool remove_them) {
    int n = 0;
    DIR *d = opendir(folder);
    cr_assert(d != NULL);
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) {
            n++;
            if (remove_them)
                unlinkat(dirfd(d), e->d_name, 0);
        }
    closedir(d);
    return n;
}

static inline void remove_folder(const char *folder) {
    count_files(folder, true);
    rmdir(folder);
}

static inline tiga_execution_options scope(int64_t host, int64_t disk, const char *folder, int32_t eviction) {
    tiga_execution_options o = tiga_execution_defaults();
    o.budget[TIGA_TIER_HOST] = host;
    o.budget[TIGA_TIER_DISK] = disk;
    o.spill_dir = folder;
    o.eviction = eviction;
    return o;
}

static inline tiga_memory_report report(tiga_execution *e) {
    tiga_memory_report r = {.struct_bytes = sizeof r};
    cr_assert_eq(tiga_execution_report(e, &r), TIGA_OK);
    return r;
}

static inline unsigned char pattern(uint64_t seed, int64_t i) {
    return (unsigned char)((seed * 0x9e3779b97f4a7c15u + (uint64_t)i * 0x2545f4914f6cdd1du) >> 56);
}

static inline tiga_status fill(tiga_context *ctx, tiga_buffer *b, uint64_t seed) {
    tiga_pin p;
    tiga_status status = tiga_buffer_pin(ctx, b, TIGA_WRITE, &p);
    if (status != TIGA_OK)
        return status;
    for (int64_t i = 0; i < tiga_buffer_bytes(b); i++)
        ((unsigned char *)p.data)[i] = pattern(seed, i);
    tiga_buffer_unpin(&p);
    return TIGA_OK;
}

/* 1 it holds the pattern, 0 it does not, -1 it cannot be had (*status says why). */
static inline int holds(tiga_context *ctx, tiga_buffer *b, uint64_t seed, tiga_status *status) {
    tiga_pin p;
    *status = tiga_buffer_pin(ctx, b, TIGA_READ, &p);
    if (*status != TIGA_OK)
        return -1;
    int good = 1;
    for (int64_t i = 0; i < tiga_buffer_bytes(b); i++)
        good &= ((unsigned char *)p.data)[i] == pattern(seed, i);
    tiga_buffer_unpin(&p);
    return good;
}

static inline tiga_residency residency(tiga_buffer *b) {
    tiga_residency r;
    cr_assert_eq(tiga_buffer_residency(b, &r), TIGA_OK);
    return r;
}

static inline void expect(tiga_context *ctx, tiga_buffer *b, uint64_t seed) {
    tiga_status status;
    int answer = holds(ctx, b, seed, &status);
    cr_assert_eq(answer, 1, "%s", tiga_error_text(ctx));
}

/* A scope in a folder of its own; at the end nothing may be left, neither charged nor in the folder. */
typedef struct scope_bench {
    tiga_context *ctx;
    tiga_execution *run;
    char folder[64];
} scope_bench;

static inline void scope_begin(scope_bench *t, int64_t host, int64_t disk, int32_t eviction) {
    tiga_context *ctx = t->ctx = new_context();
    make_folder(t->folder);
    tiga_execution_options o = scope(host, disk, t->folder, eviction);
    OK(tiga_execution_begin(ctx, &o, &t->run));
}

static inline void scope_end(scope_bench *t) {
    tiga_context *ctx = t->ctx;
    OK(tiga_execution_end(ctx));
    tiga_memory_report r = report(t->run);
    for (int i = 0; i < TIGA_TIERS; i++)
        cr_assert_eq(r.live[i], 0, "tier %d", i);
    cr_assert_eq(r.ahead, 0);
    tiga_execution_free(t->run);
    tiga_context_free(ctx);
    cr_assert_eq(count_files(t->folder, false), 0);
    remove_folder(t->folder);
}

#endif
