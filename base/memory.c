/* The injectable allocator, and arenas on top of it.
 *
 * An arena is a list of blocks; only the newest one is filled.  Each arena allocation counts as one allocation for
 * failure injection, so that "the n-th call fails" reaches every place that allocates and not only block ends. */
#include "base/base.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 16
#define FIRST_BLOCK ((size_t)4 << 10)
#define LAST_BLOCK ((size_t)1 << 20)

void *base_alloc(size_t n_bytes) { return base_inject_hit(BASE_INJECT_ALLOC) ? NULL : malloc(n_bytes ? n_bytes : 1); }

void *base_alloc_zero(size_t n_bytes) {
    return base_inject_hit(BASE_INJECT_ALLOC) ? NULL : calloc(1, n_bytes ? n_bytes : 1);
}

void *base_realloc(void *p, size_t n_bytes) {
    return base_inject_hit(BASE_INJECT_ALLOC) ? NULL : realloc(p, n_bytes ? n_bytes : 1);
}

void base_free(void *p) { free(p); }

bool base_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }

typedef struct block {
    struct block *older;
    size_t cap, used;
    size_t pad; /* keeps bytes aligned to 16 */
    unsigned char bytes[];
} block;

typedef struct text {
    struct text *older;
    base_str s;
} text;

struct base_arena {
    block *newest;
    size_t next_block, total;
    void *oom; /* jmp_buf * or NULL */
    text *texts;
};

base_arena *base_arena_new(void) {
    base_arena *a = base_alloc_zero(sizeof *a);
    if (a)
        a->next_block = FIRST_BLOCK;
    return a;
}

void base_arena_free(base_arena *a) {
    if (!a)
        return;
    for (text *t = a->texts; t; t = t->older)
        base_str_fini(&t->s);
    for (block *b = a->newest; b;) {
        block *older = b->older;
        free(b);
        b = older;
    }
    free(a);
}

static BASE_NORETURN void out_of_memory(base_arena *a, size_t n_bytes) {
    if (!a->oom)
        BASE_BUG("out of memory: %zu bytes asked of an arena that holds %zu", n_bytes, a->total);
    longjmp(*(jmp_buf *)a->oom, 1);
}

static block *add_block(base_arena *a, size_t n_bytes) {
    size_t cap = n_bytes > a->next_block ? n_bytes : a->next_block;
    if (cap > SIZE_MAX - sizeof(block))
        out_of_memory(a, n_bytes);
    block *b = calloc(1, sizeof *b + cap);
    if (!b)
        out_of_memory(a, n_bytes);
    b->cap = cap;
    b->older = a->newest;
    a->newest = b;
    a->total += cap;
    if (a->next_block < LAST_BLOCK)
        a->next_block *= 2;
    return b;
}

void *base_arena_alloc(base_arena *a, size_t n_bytes) {
    if (base_inject_hit(BASE_INJECT_ALLOC) || n_bytes > SIZE_MAX - 2 * ALIGN)
        out_of_memory(a, n_bytes);
    size_t n = (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
    block *b = a->newest;
    if (!b || b->cap - b->used < n)
        b = add_block(a, n);
    void *p = b->bytes + b->used; /* blocks come zeroed and bytes are handed out once */
    b->used += n;
    return p;
}

void *base_arena_grow(base_arena *a, void *old, size_t old_bytes, size_t new_bytes) {
    if (new_bytes < old_bytes)
        return old;
    void *p = base_arena_alloc(a, new_bytes);
    if (old_bytes)
        memcpy(p, old, old_bytes);
    return p;
}

char *base_arena_strndup(base_arena *a, const char *s, size_t n) {
    char *p = base_arena_alloc(a, n + 1);
    if (n)
        memcpy(p, s, n);
    return p;
}

char *base_arena_strdup(base_arena *a, const char *s) { return base_arena_strndup(a, s, strlen(s)); }

char *base_arena_printf(base_arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        va_end(again);
        return base_arena_strdup(a, "");
    }
    char *p = base_arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

base_str *base_arena_str(base_arena *a) {
    text *t = base_arena_alloc(a, sizeof *t);
    t->older = a->texts;
    a->texts = t;
    return &t->s;
}

bool base_arena_str_failed(const base_arena *a) {
    for (const text *t = a->texts; t; t = t->older)
        if (t->s.failed)
            return true;
    return false;
}

size_t base_arena_bytes(const base_arena *a) { return a->total; }

void **base_arena_oom_slot(base_arena *a) { return &a->oom; }

bool base_arena_catch(base_arena *a, void (*fn)(void *ctx), void *ctx) {
    jmp_buf here;
    void *outer = a->oom;
    if (setjmp(here)) {
        a->oom = outer;
        return false;
    }
    a->oom = &here;
    fn(ctx);
    a->oom = outer;
    return true;
}
