/* The cache of compiled code: what is found again, what is not, in memory and on disk. */
#include "runtime_cache_support.h"

TestSuite(cache, .init = cache_setup, .fini = cache_teardown);

#define COUNTERS(c, ...)                                                                                               \
    do {                                                                                                               \
        tiga_cache_counters have_ = tiga_cache_get_counters(c), want_ = {__VA_ARGS__};                                 \
        have_.memory_entries = have_.memory_bytes = 0;                                                                 \
        check_counters(have_, want_);                                                                                  \
    } while (0)

static void check_counters(tiga_cache_counters have, tiga_cache_counters want) {
#define SAME(what)                                                                                                     \
    cr_assert_eq(have.what, want.what, #what ": %lld, not %lld", (long long)have.what, (long long)want.what)
    SAME(memory_hits);
    SAME(disk_hits);
    SAME(misses);
    SAME(waited);
    SAME(stale);
    SAME(failed);
    SAME(negative_hits);
    SAME(evicted_memory);
    SAME(evicted_disk);
    SAME(disk_errors);
#undef SAME
}

Test(cache, memory_then_disk) {
    compiler k = {.text = "code"};
    tiga_cache *a = cache_of(MEMORY, DISK);
    expect_object(a, &k, "x");
    expect_object(a, &k, "x");
    cr_assert(k.builds == 1 && k.loads == 1);
    COUNTERS(a, .misses = 1, .memory_hits = 1);
    cr_assert_eq(tiga_cache_get_counters(a).memory_entries, 1);
    tiga_cache *b = cache_of(MEMORY, DISK);
    expect_object(b, &k, "x");
    expect_object(b, &k, "x");
    cr_assert(k.builds == 1 && k.loads == 2);
    COUNTERS(b, .disk_hits = 1, .memory_hits = 1);
    cr_assert_eq(files_matching("", NULL), 1);
    cr_assert_eq(files_matching(".tmp", NULL), 0);
    cr_assert_eq(files_matching(".lock", NULL), 0);
    tiga_cache_free(a);
    tiga_cache_free(b);
}

Test(cache, levels_can_be_left_out) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(0, DISK);
    for (int i = 0; i < 3; i++)
        expect_object(c, &k, "x");
    COUNTERS(c, .misses = 1, .disk_hits = 2);
    tiga_cache_free(c);
    c = cache_of(MEMORY, 0);
    for (int i = 0; i < 3; i++)
        expect_object(c, &k, "y");
    COUNTERS(c, .misses = 1, .memory_hits = 2);
    tiga_cache_free(c);
    c = cache_of(0, 0);
    for (int i = 0; i < 3; i++)
        expect_object(c, &k, "z");
    COUNTERS(c, .misses = 3);
    tiga_cache_free(c);
    cr_assert_eq(files_matching("", NULL), 1);
}
