/* Runs the tests one after another in this process. */
#include <criterion/criterion.h>

threads_test *threads_tests;
threads_suite *threads_suites;

static const threads_suite *suite_of(const threads_test *t) {
    static const threads_suite none;
    for (const threads_suite *s = threads_suites; s; s = s->next)
        if (!strcmp(s->name, t->suite))
            return s;
    return &none;
}

int main(void) {
    for (threads_test *t = threads_tests; t; t = t->next) {
        const threads_suite *s = suite_of(t);
        fprintf(stderr, "%s/%s\n", t->suite, t->name);
        if (s->init)
            s->init();
        t->run();
        if (s->fini)
            s->fini();
    }
    return 0;
}
