/* As much of Criterion as the tests of threads use: it does not run under the thread sanitizer, so their sources are
 * built against this instead (run.sh).  A test that fails aborts. */
#ifndef TIGA_TESTS_THREADS_CRITERION_H
#define TIGA_TESTS_THREADS_CRITERION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct threads_suite {
    void (*init)(void), (*fini)(void);
    double timeout; /* not kept */
    const char *name;
    struct threads_suite *next;
} threads_suite;
extern threads_suite *threads_suites;

typedef struct threads_test {
    const char *suite, *name;
    void (*run)(void);
    struct threads_test *next;
} threads_test;
extern threads_test *threads_tests;

#define cr_assert(condition, ...)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b))
#define cr_assert_neq(a, b, ...) cr_assert((a) != (b))
#define cr_assert_str_eq(a, b, ...) cr_assert(strcmp(a, b) == 0)
#define TestSuite(suite, ...)                                                                                          \
    __attribute__((constructor)) static void add_##suite(void) {                                                       \
        static threads_suite s = {__VA_ARGS__};                                                                        \
        s.name = #suite;                                                                                               \
        s.next = threads_suites;                                                                                       \
        threads_suites = &s;                                                                                           \
    }                                                                                                                  \
    struct threads_suite
#define Test(suite, name_, ...)                                                                                        \
    static void suite##_##name_(void);                                                                                 \
    __attribute__((constructor)) static void add_##suite##_##name_(void) {                                             \
        static threads_test t = {#suite, #name_, suite##_##name_, NULL};                                            \
        t.next = threads_tests;                                                                                        \
        threads_tests = &t;                                                                                            \
    }                                                                                                                  \
    static void suite##_##name_(void)

#endif
