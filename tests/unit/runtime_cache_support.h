/* What the tests of the cache share: a folder of their own, and a compiler that counts how often it is asked. */
#ifndef RUNTIME_CACHE_SUPPORT_H
#define RUNTIME_CACHE_SUPPORT_H

#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tiga_context *ctx;
static char folder[64]; /* of the cache; its parent is the test's */
static char parent[64];

/* An object is its artefact, counted. */
typedef struct object {
    atomic_int refs;
    size_t n;
    char bytes[];
} object;
static atomic_int live_objects;

typedef struct compiler {
    const char *text; /* the artefact; "text of the key" when NULL */
    size_t n_text;
    tiga_status build_status, load_status;
    int load_fails; /* that many times load_status, then OK */
    int64_t object_bytes; /* 0: what it has */
    int sleep_us;
    const char *log; /* a byte is appended for each build */
    atomic_int builds, loads;
} compiler;

static tiga_status fake_build(void *user, tiga_context *c, base_str *out) {
    compiler *k = user;
    atomic_fetch_add(&k->builds, 1);
    if (k->log) {
        int fd = open(k->log, O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (fd < 0 || write(fd, "b", 1) != 1)
            abort();
        close(fd);
    }
    if (k->sleep_us)
        usleep((useconds_t)k->sleep_us);
    base_str_add_n(out, k->text, k->n_text ? k->n_text : strlen(k->text));
    if (k->build_status != TIGA_OK)
        return rt_fail(c, k->build_status, "build says no");
    return out->failed ? rt_fail(c, TIGA_E_MEMORY, "no memory to build") : TIGA_OK;
}

static tiga_status fake_load(void *user, tiga_context *c, const void *bytes, size_t n, void **out, int64_t *out_bytes) {
    compiler *k = user;
    atomic_fetch_add(&k->loads, 1);
    if (k->load_fails > 0) {
        k->load_fails--;
        return rt_fail(c, k->load_status, "load says no");
    }
    if ((uintptr_t)bytes % 16)
        return rt_fail(c, TIGA_E_INTERNAL, "not aligned");
    object *o = base_alloc(sizeof *o + n + 1);
    if (!o)
        return rt_fail(c, TIGA_E_MEMORY, "no memory to load");
    atomic_init(&o->refs, 1);
    o->n = n;
    memcpy(o->bytes, bytes, n);
    o->bytes[n] = 0;
    atomic_fetch_add(&live_objects, 1);
    *out = o;
    *out_bytes = k->object_bytes ? k->object_bytes : (int64_t)n;
    return TIGA_OK;
}

static void fake_retain(void *o) { atomic_fetch_add(&((object *)o)->refs, 1); }

static void fake_release(void *p) {
    object *o = p;
    int refs = atomic_fetch_sub(&o->refs, 1);
    if (refs < 1)
        abort();
    if (refs > 1)
        return;
    atomic_fetch_sub(&live_objects, 1);
    memset(o->bytes, '#', o->n); /* whoever still uses it sees that */
    base_free(o);
}

static const rt_cache_ops fake_ops = {fake_build, fake_load, fake_retain, fake_release, NULL};

static inline tiga_cache_field field(const char *name, const char *text) {
    return (tiga_cache_field){name, text, strlen(text)};
}

/* Of a key of any fields. */
static inline base_hash128 hash_of(const tiga_cache *c, const tiga_cache_field *fields, size_t n) {
    rt_cache_key k;
    if (!rt_cache_key_init(&k, c, fields, n))
        abort();
    rt_cache_key_fini(&k);
    return k.hash;
}

static inline tiga_cache *cache_of(int64_t memory, int64_t disk) {
    tiga_cache_options o = tiga_cache_defaults();
    o.folder = folder;
    o.memory_bytes = memory;
    o.disk_bytes = disk;
    tiga_cache *c;
    if (tiga_cache_new(&o, &c) != TIGA_OK)
        abort();
    return c;
}

enum { MEMORY = 1 << 20, DISK = 1 << 30 };

static inline tiga_status get_with(tiga_cache *c, tiga_context *context, compiler *k, const char *source, object **out,
                                   base_str *message) {
    tiga_cache_field fields[] = {field("kind", "cpu object"), field("file", "m.tg"), field("source", source)};
    rt_cache_request r = {fields, 3, &fake_ops, k};
    void *o;
    tiga_status status = tiga_cache_get(c, context, &r, &o, message);
    *out = o;
    return status;
}

/* The right object or else. */
static inline void expect_object(tiga_cache *c, compiler *k, const char *source) {
    object *o;
    tiga_status status = get_with(c, ctx, k, source, &o, NULL);
    cr_assert_eq(status, TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(o->n, k->n_text ? k->n_text : strlen(k->text));
    cr_assert(memcmp(o->bytes, k->text, o->n) == 0);
    fake_release(o);
}

static inline int files_matching(const char *ending, char *first) { /* "" for entries */
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t len = strlen(e->d_name), tail = strlen(ending);
        if (tail ? len < tail || strcmp(e->d_name + len - tail, ending) != 0
                 : strspn(e->d_name, "0123456789abcdef") != 32 || len != 32)
            continue;
        n++;
        if (first)
            snprintf(first, 160, "%s/%s", folder, e->d_name);
    }
    if (d)
        closedir(d);
    return n;
}

static inline char *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *bytes = malloc(1 << 22);
    *n = fread(bytes, 1, 1 << 22, f);
    fclose(f);
    return bytes;
}

static inline void write_file(const char *path, const char *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        abort();
}

static inline void cache_setup(void) {
    umask(022);
    strcpy(parent, "/tmp/tiga_cache_XXXXXX");
    if (!mkdtemp(parent) || tiga_context_new(NULL, &ctx) != TIGA_OK)
        abort();
    snprintf(folder, sizeof folder, "%s/a/b", parent);
}

static inline void cache_teardown(void) {
    char command[160];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", parent, parent);
    if (system(command) != 0)
        abort();
    tiga_context_free(ctx);
    cr_assert_eq(atomic_load(&live_objects), 0, "%d objects leaked", atomic_load(&live_objects));
}

#endif
