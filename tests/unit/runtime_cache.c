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

/* ---- keys ---- */

enum { MAX_FIELDS = 4 };
typedef struct key {
    size_t n;
    tiga_cache_field fields[MAX_FIELDS];
} key;

static bool same_key(const tiga_cache *c, const key *a, const key *b) {
    rt_cache_key x, y;
    cr_assert(rt_cache_key_init(&x, c, a->fields, a->n) && rt_cache_key_init(&y, c, b->fields, b->n));
    bool same = rt_cache_key_equal(&x, y.bytes, y.n_bytes);
    rt_cache_key_fini(&x);
    rt_cache_key_fini(&y);
    return same;
}

static const key keys[] = {
    {0, {{0}}},
    {1, {{"a", "", 0}}},
    {1, {{"a", "\0", 1}}},
    {1, {{"ab", "", 0}}},
    {1, {{"a", "b", 1}}},
    {1, {{"", "ab", 2}}},
    {2, {{"a", "b", 1}, {"", "", 0}}},
    {2, {{"flag", "-x", 2}, {"flag", "-x", 2}}}, /* the same option twice */
    {1, {{"flag", "-x", 2}}},
    {3, {{"flag", "-x", 2}, {"flag", "-x", 2}, {"flag", "-x", 2}}},
    {2, {{"flag", "-x-", 3}, {"flag", "x", 1}}}, /* boundaries moved */
    {2, {{"flag", "-x", 2}, {"flag", "-y", 2}}},
    {2, {{"flag", "-y", 2}, {"flag", "-x", 2}}}, /* another order */
    {2, {{"flag", "-x", 2}, {"flat", "-x", 2}}},
    {2, {{"flag", "-x\0", 3}, {"flag", "-x", 2}}},
    {2, {{"flag", "-x", 2}, {"flag", "-x\0", 3}}},
    {2, {{"flag", "", 0}, {"flag", "-x-x", 4}}},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

Test(cache, near_misses_are_misses) {
    tiga_cache *c = cache_of(MEMORY, 0);
    for (int i = 0; i < N_KEYS; i++)
        for (int k = 0; k < N_KEYS; k++) {
            base_hash128 a = hash_of(c, keys[i].fields, keys[i].n), b = hash_of(c, keys[k].fields, keys[k].n);
            cr_assert_eq(a.lo == b.lo && a.hi == b.hi, i == k, "hashes %d %d", i, k);
            cr_assert_eq(same_key(c, &keys[i], &keys[k]), i == k, "keys %d %d", i, k);
        }
    tiga_cache_free(c);
}

/* A long key, each byte of it another, in turn, with hashes that are all the same. */
Test(cache, each_byte_of_a_key_counts) {
    compiler k = {.text = "code"};
    char source[301];
    memset(source, 's', 300);
    source[300] = 0;
    tiga_cache *c = cache_of(MEMORY, 0);
    c->hash_mask = (base_hash128){0, 0};
    expect_object(c, &k, source);
    for (int i = 0; i < 300; i++) {
        source[i] ^= 1;
        expect_object(c, &k, source);
        cr_assert_eq(k.builds, i + 2);
        source[i] ^= 1;
    }
    expect_object(c, &k, source);
    cr_assert_eq(k.builds, 301);
    COUNTERS(c, .misses = 301, .memory_hits = 1);
    tiga_cache_free(c);
}

Test(cache, keys_of_equal_hash_do_not_meet) {
    compiler a = {.text = "code of a"}, b = {.text = "code of b"};
    for (int level = 0; level < 2; level++) { /* in memory, on disk */
        tiga_cache *c = cache_of(level ? 0 : MEMORY, level ? DISK : 0);
        c->hash_mask = (base_hash128){0, 0};
        for (int round = 0; round < 3; round++) {
            expect_object(c, &a, "a");
            expect_object(c, &b, "b");
        }
        tiga_cache_counters n = tiga_cache_get_counters(c);
        if (level)
            cr_assert(n.misses == 6 && n.stale == 5, "%d", (int)n.stale); /* one file: each replaces the other */
        else
            cr_assert(n.misses == 2 && n.memory_hits == 4);
        tiga_cache_free(c);
    }
    cr_assert_eq(files_matching("", NULL), 1);
}

Test(cache, what_is_written_as_a_key_is_split_again) {
    tiga_cache *c = cache_of(MEMORY, 0);
    for (int i = 0; i < N_KEYS; i++) {
        size_t n;
        bool no_memory;
        rt_cache_key k;
        cr_assert(rt_cache_key_init(&k, c, keys[i].fields, keys[i].n));
        tiga_cache_field *f = rt_cache_key_split(k.bytes, k.n_bytes, &n, &no_memory);
        cr_assert(f && n == keys[i].n && !no_memory);
        for (size_t j = 0; j < n; j++)
            cr_assert(!strcmp(f[j].name, keys[i].fields[j].name) && f[j].n_bytes == keys[i].fields[j].n_bytes &&
                      !memcmp(f[j].bytes, keys[i].fields[j].bytes, f[j].n_bytes));
        base_free(f);
        for (size_t cut = 1; cut < k.n_bytes; cut++) { /* of its exact size, so that a sanitizer sees a byte too far */
            char *part = malloc(cut);
            memcpy(part, k.bytes, cut);
            f = rt_cache_key_split(part, cut, &n, &no_memory);
            if (f) { /* cut between fields: fewer of them */
                rt_cache_key fewer;
                cr_assert(n < keys[i].n && rt_cache_key_init(&fewer, c, f, n) && rt_cache_key_equal(&fewer, part, cut));
                rt_cache_key_fini(&fewer);
            }
            cr_assert_not(rt_cache_key_equal(&k, part, cut));
            base_free(f);
            free(part);
        }
        rt_cache_key_fini(&k);
    }
    tiga_cache_free(c);
}

Test(cache, long_keys_are_keys_as_well) {
    compiler k = {.text = "code"};
    char *source = malloc(100001);
    memset(source, 's', 100000);
    source[100000] = 0;
    for (int round = 0; round < 2; round++) { /* built, then from disk */
        tiga_cache *c = cache_of(MEMORY, DISK);
        expect_object(c, &k, source);
        expect_object(c, &k, source);
        source[99999] = 't';
        expect_object(c, &k, source);
        source[99999] = 's';
        cr_assert_eq(k.builds, 2);
        tiga_cache_free(c);
    }
    free(source);
}

/* ---- programs that are wrong ---- */

static void expect_message(tiga_cache *c, compiler *k) {
    object *o;
    base_str message = {0};
    tiga_error_clear(ctx);
    cr_assert_eq(get_with(c, ctx, k, "wrong", &o, &message), TIGA_E_PROGRAM);
    cr_assert_null(o);
    cr_assert_eq(message.len, strlen(k->text));
    cr_assert_str_eq(message.data, k->text);
    base_str_fini(&message);
    cr_assert_eq(get_with(c, ctx, k, "wrong", &o, NULL), TIGA_E_PROGRAM);
}

Test(cache, a_wrong_program_is_wrong_once) {
    compiler k = {.text = "m.tg:1:1: error[E0101]: no", .build_status = TIGA_E_PROGRAM}, good = {.text = "code"};
    tiga_cache *c = cache_of(MEMORY, DISK);
    expect_message(c, &k);
    expect_message(c, &k);
    COUNTERS(c, .misses = 1, .failed = 1, .negative_hits = 3);
    expect_object(c, &good, "right"); /* only its own key is poisoned */
    cr_assert_gt(tiga_cache_get_counters(c).memory_bytes, 0);
    tiga_cache_free(c);
    c = cache_of(0, DISK);
    expect_message(c, &k);
    COUNTERS(c, .negative_hits = 2);
    cr_assert(k.builds == 1 && k.loads == 0);
    tiga_cache_free(c);
}

Test(cache, other_failures_are_forgotten) {
    const tiga_status fleeting[] = {TIGA_E_MEMORY, TIGA_E_INTERRUPTED, TIGA_E_INTERNAL, TIGA_E_UNSUPPORTED,
                                    TIGA_E_FILE};
    tiga_cache *c = cache_of(MEMORY, DISK);
    compiler k = {.text = "code"};
    for (int i = 0; i < 5; i++) {
        object *o;
        base_str message = {0};
        k.build_status = fleeting[i];
        tiga_error_clear(ctx);
        cr_assert_eq(get_with(c, ctx, &k, "x", &o, &message), fleeting[i]);
        cr_assert_str_eq(tiga_error_text(ctx), "build says no");
        cr_assert(!o && !message.len);
        base_str_fini(&message);
    }
    COUNTERS(c, .misses = 5, .failed = 4);
    cr_assert_eq(tiga_cache_get_counters(c).memory_entries, 0);
    cr_assert_eq(files_matching("", NULL), 0);
    k.build_status = TIGA_OK;
    expect_object(c, &k, "x");
    tiga_cache_free(c);
}

/* ---- what loads but is wrong ---- */

Test(cache, useless_bytes_are_built_again_once) {
    const tiga_status useless[] = {TIGA_E_ABI, TIGA_E_FORMAT, TIGA_E_MODULE, TIGA_E_TARGET};
    for (int i = 0; i < 4; i++) {
        compiler k = {.text = "code"};
        char source[2] = {(char)('a' + i), 0};
        tiga_cache *c = cache_of(0, DISK);
        expect_object(c, &k, source);
        k.load_status = useless[i];
        k.load_fails = 2; /* before and after the lock is taken: another may have replaced the file */
        tiga_error_clear(ctx);
        expect_object(c, &k, source);
        cr_assert_str_empty(tiga_error_text(ctx));
        cr_assert_eq(k.builds, 2);
        COUNTERS(c, .misses = 2, .stale = 1);
        expect_object(c, &k, source);
        COUNTERS(c, .misses = 2, .stale = 1, .disk_hits = 1);
        /* what was just built is of no use: that is the answer, and nothing is kept */
        object *o;
        k.load_fails = 100;
        cr_assert_eq(get_with(c, ctx, &k, "never", &o, NULL), useless[i]);
        cr_assert_str_eq(tiga_error_text(ctx), "load says no");
        k.load_fails = 0;
        tiga_error_clear(ctx);
        expect_object(c, &k, "never");
        COUNTERS(c, .misses = 4, .stale = 1, .disk_hits = 1, .failed = 1);
        tiga_cache_free(c);
        char command[512];
        snprintf(command, sizeof command, "rm -r %s", folder);
        cr_assert_eq(system(command), 0);
    }
}

Test(cache, a_failure_to_load_is_not_the_file_s) {
    compiler k = {.text = "code"};
    object *o;
    tiga_cache *c = cache_of(0, DISK);
    expect_object(c, &k, "x");
    k.load_status = TIGA_E_MEMORY;
    k.load_fails = 1;
    cr_assert_eq(get_with(c, ctx, &k, "x", &o, NULL), TIGA_E_MEMORY);
    tiga_error_clear(ctx);
    expect_object(c, &k, "x");
    COUNTERS(c, .misses = 1, .disk_hits = 1);
    tiga_cache_free(c);
}

/* ---- bounds ---- */

Test(cache, what_was_not_used_for_longest_leaves_memory_and_lives_on_in_use) {
    compiler k = {.text = "code", .object_bytes = 100 << 10};
    tiga_cache *c = cache_of(MEMORY, 0); /* room for ten */
    object *held;
    cr_assert_eq(get_with(c, ctx, &k, "held", &held, NULL), TIGA_OK);
    char source[16];
    for (int i = 0; i < 30; i++) {
        expect_object(c, &k, "often");
        snprintf(source, sizeof source, "%d", i);
        expect_object(c, &k, source);
    }
    tiga_cache_counters n = tiga_cache_get_counters(c);
    cr_assert_eq(n.misses, 32); /* "often" never left */
    cr_assert_eq(n.memory_entries, 10);
    cr_assert(n.memory_bytes <= MEMORY && n.evicted_memory == 22);
    expect_object(c, &k, "29");
    expect_object(c, &k, "22");
    cr_assert_eq(k.builds, 32);
    expect_object(c, &k, "20");
    cr_assert_eq(k.builds, 33);
    cr_assert_eq(atomic_load(&live_objects), 11);
    cr_assert_str_eq(held->bytes, "code");
    k.object_bytes = MEMORY; /* larger than the cache: used, not kept, and nothing leaves for it */
    expect_object(c, &k, "large");
    cr_assert_eq(tiga_cache_get_counters(c).memory_entries, 10);
    tiga_cache_free(c);
    cr_assert_str_eq(held->bytes, "code");
    cr_assert_eq(atomic_load(&live_objects), 1);
    fake_release(held);
}

static void age(const char *path, int seconds) {
    struct timespec t[2];
    clock_gettime(CLOCK_REALTIME, &t[0]);
    t[0].tv_sec -= seconds;
    t[1] = t[0];
    cr_assert_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* The file of a source. */
static void path_of(tiga_cache *c, const char *source, char out[160]) {
    tiga_cache_field fields[] = {field("kind", "cpu object"), field("file", "m.tg"), field("source", source)};
    char hex[33];
    base_hash_hex(hash_of(c, fields, 3), hex);
    snprintf(out, 160, "%s/%s", folder, hex);
}

static bool has_file(tiga_cache *c, const char *source) {
    char path[160];
    path_of(c, source, path);
    return access(path, F_OK) == 0;
}

Test(cache, what_was_not_used_for_longest_leaves_the_disk) {
    char text[1001], path[160];
    memset(text, 'c', 1000);
    text[1000] = 0;
    compiler k = {.text = text};
    tiga_cache *c = cache_of(0, 9000); /* seven, of 1200 bytes each */
    const char *sources[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (int i = 0; i < 7; i++) {
        expect_object(c, &k, sources[i]);
        path_of(c, sources[i], path);
        age(path, 1000 - i);
    }
    cr_assert_eq(files_matching("", NULL), 7);
    expect_object(c, &k, "b"); /* used */
    snprintf(path, sizeof path, "%s/0123.txt", folder); /* none of ours, and the oldest */
    write_file(path, text, 1000);
    age(path, 5000);
    expect_object(c, &k, "new");
    cr_assert(!has_file(c, "a") && has_file(c, "b") && !has_file(c, "c") && has_file(c, "d") && has_file(c, "g") &&
              has_file(c, "new"));
    cr_assert_eq(tiga_cache_get_counters(c).evicted_disk, 2);
    cr_assert_eq(access(path, F_OK), 0);
    for (int i = 0; i < 7; i++)
        if (has_file(c, sources[i])) {
            path_of(c, sources[i], path);
            age(path, -100000);
        }
    expect_object(c, &k, "newer");
    expect_object(c, &k, "newest"); /* the one just written stays, whatever the clock says */
    cr_assert(has_file(c, "newest") && !has_file(c, "newer") && !has_file(c, "new") && has_file(c, "b"));
    tiga_cache_free(c);
    c = cache_of(0, 500); /* none fits: nothing is stored, nothing lost */
    expect_object(c, &k, "x");
    cr_assert(!has_file(c, "x") && has_file(c, "newest"));
    COUNTERS(c, .misses = 1);
    tiga_cache_free(c);
}

Test(cache, a_hit_marks_a_file_as_used_once_a_minute) {
    compiler k = {.text = "code"};
    char path[160];
    struct stat before, after;
    tiga_cache *c = cache_of(0, DISK);
    expect_object(c, &k, "x");
    path_of(c, "x", path);
    age(path, 30);
    cr_assert_eq(stat(path, &before), 0);
    expect_object(c, &k, "x");
    cr_assert_eq(stat(path, &after), 0);
    cr_assert_eq(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
    age(path, 70);
    cr_assert_eq(stat(path, &before), 0);
    expect_object(c, &k, "x");
    cr_assert_eq(stat(path, &after), 0);
    cr_assert_geq(after.st_mtim.tv_sec, before.st_mtim.tv_sec + 69);
    COUNTERS(c, .misses = 1, .disk_hits = 2);
    tiga_cache_free(c);
}

/* ---- inspection ---- */

typedef struct seen {
    int entries, failed, damaged, stop_after;
    int64_t bytes;
    char sources[200];
} seen;

static int see(void *user, const tiga_cache_entry *e) {
    seen *s = user;
    cr_assert_eq(strlen(e->key), 32);
    s->entries++;
    s->failed += e->failed;
    s->damaged += e->damaged;
    s->bytes += e->bytes;
    if (!e->damaged) {
        cr_assert(e->n_fields == 3 && !strcmp(e->fields[2].name, "source") &&
                  !strcmp(e->fields[0].bytes, "cpu object"));
        strcat(s->sources, e->fields[2].bytes);
        cr_assert(llabs(e->created - time(NULL)) < 1000 && e->used > 0);
    }
    return s->entries == s->stop_after;
}

Test(cache, list_shows_the_last_used_first) {
    compiler k = {.text = "code"}, no = {.text = "no", .build_status = TIGA_E_PROGRAM};
    tiga_cache *c = cache_of(MEMORY, DISK);
    seen s = {0};
    cr_assert_eq(tiga_cache_list(ctx, c, see, &s), TIGA_OK); /* no folder yet */
    cr_assert(s.entries == 0 && access(folder, F_OK) != 0);
    const char *sources[] = {"a", "b", "c", "d"};
    char path[160];
    for (int i = 0; i < 4; i++) {
        object *o = NULL;
        if (get_with(c, ctx, i == 2 ? &no : &k, sources[i], &o, NULL) == TIGA_OK)
            fake_release(o);
        path_of(c, sources[i], path);
        age(path, i == 0 ? 1 : 100 - i);
    }
    tiga_error_clear(ctx);
    cr_assert_eq(tiga_cache_list(ctx, c, see, &s), TIGA_OK);
    cr_assert_str_eq(s.sources, "adcb");
    cr_assert(s.entries == 4 && s.failed == 1 && s.damaged == 0 && s.bytes > 400 && s.bytes < 1000);
    s = (seen){.stop_after = 2};
    cr_assert_eq(tiga_cache_list(NULL, c, see, &s), TIGA_OK);
    cr_assert_eq(s.entries, 2);
    path_of(c, "b", path);
    cr_assert_eq(truncate(path, 70), 0);
    path_of(c, "d", path); /* under a name that is not its hash */
    char other[160];
    snprintf(other, sizeof other, "%s/0123456789abcdef0123456789abcdef", folder);
    cr_assert_eq(rename(path, other), 0);
    s = (seen){0};
    cr_assert_eq(tiga_cache_list(ctx, c, see, &s), TIGA_OK);
    cr_assert(s.entries == 4 && s.failed == 1 && s.damaged == 2);
    cr_assert_eq(tiga_cache_list(ctx, NULL, see, &s), TIGA_E_ARGUMENT);
    tiga_cache_free(c);
}

Test(cache, clear_forgets_everything_that_is_ours) {
    compiler k = {.text = "code"};
    char path[200];
    int64_t removed;
    tiga_cache *c = cache_of(MEMORY, DISK);
    cr_assert_eq(tiga_cache_clear(ctx, c, &removed), TIGA_OK);
    cr_assert_eq(removed, 0);
    object *held;
    cr_assert_eq(get_with(c, ctx, &k, "x", &held, NULL), TIGA_OK);
    expect_object(c, &k, "y");
    snprintf(path, sizeof path, "%s/notes.txt", folder);
    write_file(path, "mine", 4);
    snprintf(path, sizeof path, "%s/0123456789abcdef0123456789abcdef.1-1.tmp", folder);
    write_file(path, "left", 4);
    cr_assert_eq(tiga_cache_clear(ctx, c, &removed), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_eq(removed, 3);
    cr_assert_eq(tiga_cache_get_counters(c).memory_entries, 0);
    cr_assert_eq(files_matching("", NULL) + files_matching(".tmp", NULL), 0);
    cr_assert_eq(files_matching("notes.txt", NULL), 1);
    cr_assert_str_eq(held->bytes, "code");
    fake_release(held);
    expect_object(c, &k, "x");
    cr_assert_eq(k.builds, 3);
    cr_assert_eq(tiga_cache_clear(ctx, NULL, NULL), TIGA_E_ARGUMENT);
    tiga_cache_free(c);
}

/* ---- options ---- */

static void expect_folder(const char *wanted, const char *want) {
    tiga_cache_options o = tiga_cache_defaults();
    o.folder = wanted;
    tiga_cache *c;
    cr_assert_eq(tiga_cache_new(&o, &c), TIGA_OK);
    cr_assert_str_eq(tiga_cache_folder(c), want);
    cr_assert_eq(access(want[0] ? want : "/nonexistent", F_OK) == 0, false); /* nothing is made yet */
    tiga_cache_free(c);
}

Test(cache, the_folder_comes_from_options_and_environment) {
    char here[4096], want[4200];
    cr_assert_eq(chdir(parent), 0);
    cr_assert_not_null(getcwd(here, sizeof here));
    setenv("HOME", "/nowhere/home", 1);
    unsetenv("TIGA_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    expect_folder(NULL, "/nowhere/home/.cache/tiga");
    setenv("XDG_CACHE_HOME", "relative", 1);
    expect_folder(NULL, "/nowhere/home/.cache/tiga");
    setenv("XDG_CACHE_HOME", "/nowhere/xdg", 1);
    expect_folder(NULL, "/nowhere/xdg/tiga");
    setenv("TIGA_CACHE_DIR", "", 1);
    expect_folder(NULL, "/nowhere/xdg/tiga");
    setenv("TIGA_CACHE_DIR", "own", 1);
    snprintf(want, sizeof want, "%s/own", here);
    expect_folder(NULL, want);
    setenv("TIGA_CACHE_DIR", "/nowhere/own", 1);
    expect_folder(NULL, "/nowhere/own");
    expect_folder("/nowhere/else", "/nowhere/else");
    expect_folder("", "");
    unsetenv("TIGA_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    expect_folder(NULL, "");
}

Test(cache, options_are_checked) {
    tiga_cache *c;
    tiga_cache_options o = tiga_cache_defaults();
    cr_assert(o.memory_bytes == 256 << 20 && o.disk_bytes == (int64_t)2 << 30 && !o.folder);
    cr_assert_eq(tiga_cache_new(NULL, NULL), TIGA_E_ARGUMENT);
    o.memory_bytes = -1;
    cr_assert_eq(tiga_cache_new(&o, &c), TIGA_E_ARGUMENT);
    cr_assert_null(c);
    o = tiga_cache_defaults();
    o.disk_bytes = -1;
    cr_assert_eq(tiga_cache_new(&o, &c), TIGA_E_ARGUMENT);
    o = tiga_cache_defaults();
    o.struct_bytes = 0;
    cr_assert_eq(tiga_cache_new(&o, &c), TIGA_E_ARGUMENT);
    cr_assert_eq(tiga_cache_new(NULL, &c), TIGA_OK);
    cr_assert_eq(tiga_cache_retain(c), c);
    tiga_cache_free(c);
    COUNTERS(c, .misses = 0);
    tiga_cache_free(c);
    tiga_cache_free(NULL);
    cr_assert_null(tiga_cache_retain(NULL));
    cr_assert_str_empty(tiga_cache_folder(NULL));
}
