/* Arenas, injected allocation failures, growing arrays. */
#include "base/base.h"

#include <criterion/criterion.h>
#include <string.h>

Test(arena, gives_zeroed_aligned_memory_of_any_size) {
    base_arena *a = base_arena_new();
    for (size_t n = 0; n < 5000; n += 37) {
        unsigned char *p = base_arena_alloc(a, n);
        cr_assert_eq((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            cr_assert_eq(p[i], 0);
        memset(p, 0xff, n);
    }
    unsigned char *big = base_arena_alloc(a, (size_t)5 << 20);
    cr_assert_eq(big[((size_t)5 << 20) - 1], 0);
    cr_assert_geq(base_arena_bytes(a), (size_t)5 << 20);
    base_arena_free(a);
    base_arena_free(NULL);
}

Test(arena, strings) {
    base_arena *a = base_arena_new();
    cr_assert_str_eq(base_arena_strdup(a, "kernel"), "kernel");
    cr_assert_str_eq(base_arena_strndup(a, "kernel", 3), "ker");
    cr_assert_str_eq(base_arena_strndup(a, NULL, 0), "");
    cr_assert_str_eq(base_arena_printf(a, "%s[%d]", "F", 64), "F[64]");
    char *text = base_arena_printf(a, "%1000d", 7);
    cr_assert_eq(strlen(text), 1000);
    base_arena_free(a);
}

typedef struct list {
    int *items;
    size_t n, cap;
} list;

Test(arena, growing_array_keeps_its_items) {
    base_arena *a = base_arena_new();
    list l = {0};
    for (int i = 0; i < 1000; i++)
        base_push(a, l.items, l.n, l.cap, i * 3);
    cr_assert_eq(l.n, 1000);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(l.items[i], i * 3);
    base_arena_free(a);
}

typedef struct filling {
    base_arena *arena;
    int done, inner_done;
} filling;

static void fill(void *ctx) {
    filling *f = ctx;
    for (f->done = 0; f->done < 10; f->done++)
        base_arena_alloc(f->arena, 100);
}

Test(arena, the_nth_allocation_fails_and_is_caught) {
    for (int n = 1; n <= 11; n++) {
        filling f = {.arena = base_arena_new()};
        base_inject_at(BASE_INJECT_ALLOC, (uint64_t)n);
        bool ok = base_arena_catch(f.arena, fill, &f);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        cr_assert_eq(ok, n == 11);
        cr_assert_eq(f.done, n - 1);
        cr_assert_null(*base_arena_oom_slot(f.arena));
        base_arena_free(f.arena);
    }
}

static void nested(void *ctx) {
    filling *f = ctx;
    f->inner_done = base_arena_catch(f->arena, fill, f);
    base_arena_alloc(f->arena, 1);
}

Test(arena, catches_nest) {
    filling f = {.arena = base_arena_new()};
    base_inject_at(BASE_INJECT_ALLOC, 3);
    cr_assert(base_arena_catch(f.arena, nested, &f));
    cr_assert_not(f.inner_done);
    base_inject_at(BASE_INJECT_ALLOC, 11);
    cr_assert_not(base_arena_catch(f.arena, nested, &f));
    cr_assert(f.inner_done);
    base_inject_at(BASE_INJECT_ALLOC, 0);
    base_arena_free(f.arena);
}

Test(arena, a_size_that_cannot_be_is_caught) {
    base_arena *a = base_arena_new();
    size_t size = 0;
    cr_assert_not(base_mul_size(SIZE_MAX, 2, &size));
    cr_assert(base_mul_size(1000, 1000, &size));
    cr_assert_eq(size, 1000000);
    base_arena_free(a);
}

Test(alloc, every_function_can_fail) {
    void *p = base_alloc(0);
    cr_assert_not_null(p);
    base_inject_at(BASE_INJECT_ALLOC, 1);
    cr_assert_null(base_alloc(8));
    cr_assert_not_null(p = base_realloc(p, 100));
    base_inject_at(BASE_INJECT_ALLOC, 1);
    cr_assert_null(base_alloc_zero(8));
    base_inject_at(BASE_INJECT_ALLOC, 1);
    cr_assert_null(base_realloc(p, 200), "the old memory stays");
    base_inject_at(BASE_INJECT_ALLOC, 2);
    cr_assert_not(base_inject_hit(BASE_INJECT_ALLOC));
    cr_assert(base_inject_hit(BASE_INJECT_ALLOC));
    cr_assert_not(base_inject_hit(BASE_INJECT_ALLOC));
    cr_assert_eq(base_inject_count(BASE_INJECT_ALLOC), 3);
    base_inject_at(BASE_INJECT_ALLOC, 0);
    base_free(p);
}
