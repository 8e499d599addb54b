/* Helpers of the ir tests: text to module, and runs with a reason on failure. */
#ifndef IR_SUPPORT_H
#define IR_SUPPORT_H

#include "ir/ir.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A size that no machine has must give NULL under the address sanitizer too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

static inline ir_module *parse(base_arena *a, const char *text) {
    base_diags d;
    base_str shown = {0};
    base_diags_init(&d, a, "test.ir", text);
    ir_module *m = ir_parse(a, "test.ir", text, &d);
    base_diags_render(&d, false, &shown);
    cr_assert_not_null(m, "%s", base_str_text(&shown));
    base_str_fini(&shown);
    return m;
}

static inline char *printed(const ir_module *m) {
    base_str out = {0};
    ir_print(m, IR_LEVEL_K | IR_LEVEL_P | IR_LEVEL_L | IR_LEVEL_T, &out);
    cr_assert_not(out.failed);
    return out.data;
}

static inline ir_module *parse_file(base_arena *a, const char *path) {
    base_str text = {0}, err = {0};
    cr_assert(base_file_read(path, &text, &err), "%s", base_str_text(&err));
    return parse(a, text.data);
}

/* Runs the function `name` of any level; out arrays are filled. */
static inline void run(const ir_module *m, const char *name, const ir_call_data *call) {
    base_str err = {0};
    bool ok;
    const ir_func *f = ir_func_find(m, name, IR_LEVEL_KERNEL);
    if (!f)
        f = ir_func_find(m, name, IR_LEVEL_PROGRAM);
    if (f) {
        ok = ir_interpret_graph(m, f, call, &err);
    } else {
        f = ir_func_find(m, name, IR_LEVEL_LOOP);
        cr_assert_not_null(f);
        ok = ir_interpret_loop(m, f, call, &err);
    }
    cr_assert(ok, "%s", base_str_text(&err));
    base_str_fini(&err);
}

static inline bool same_f32(float a, float b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

#define expect_f32(got, n, ...)                                                                                        \
    do {                                                                                                               \
        const float want_[] = {__VA_ARGS__};                                                                           \
        cr_assert_eq(sizeof want_ / sizeof *want_, (size_t)(n));                                                       \
        for (int i_ = 0; i_ < (int)(n); i_++)                                                                          \
            cr_assert(same_f32((got)[i_], want_[i_]), "element %d is %.9g, not %.9g", i_, (double)(got)[i_],           \
                      (double)want_[i_]);                                                                              \
    } while (0)

#define expect_i64(got, n, ...)                                                                                        \
    do {                                                                                                               \
        const int64_t want_[] = {__VA_ARGS__};                                                                         \
        cr_assert_eq(sizeof want_ / sizeof *want_, (size_t)(n));                                                       \
        for (int i_ = 0; i_ < (int)(n); i_++)                                                                          \
            cr_assert_eq((got)[i_], want_[i_], "element %d is %lld, not %lld", i_, (long long)(got)[i_],               \
                         (long long)want_[i_]);                                                                        \
    } while (0)

#endif
