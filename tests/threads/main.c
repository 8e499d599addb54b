/* Runs the tests one after another in this process. */
#include <criterion/criterion.h>

threads_test *threads_tests;

int main(void) {
    for (threads_test *t = threads_tests; t; t = t->next) {
        fprintf(stderr, "%s\n", t->name);
        t->run();
    }
    return 0;
}
