/* The cache of compiled code when things go wrong: memory, system calls, damaged files, folders that cannot be used.
 * Always the right object or a clear error, and nothing lost or left behind. */
#define _GNU_SOURCE
#include "runtime_cache_support.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

TestSuite(cache_faults, .init = cache_setup, .fini = cache_teardown);

/* ---- the n-th call fails ---- */

static void remove_folder(void) {
    char command[512];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

/* Cold, from disk and from memory; false when a call failed, and then it was for lack of memory. */
static bool three_ways(compiler *k) {
    tiga_cache_options o = tiga_cache_defaults();
    o.folder = folder;
    bool good = true;
    for (int round = 0; round < 2 && good; round++) {
        tiga_cache *c;
        tiga_status status = tiga_cache_new(&o, &c);
        good = status == TIGA_OK;
        if (!good) {
            cr_assert(status == TIGA_E_MEMORY && !c);
            break;
        }
        for (int i = 0; i < 2 && good; i++) {
            object *got;
            tiga_error_clear(ctx);
            status = get_with(c, ctx, k, "x", &got, NULL);
            good = status == TIGA_OK;
            if (good) {
                cr_assert_str_eq(got->bytes, k->text);
                fake_release(got);
            } else {
                cr_assert(status == TIGA_E_MEMORY && !got && strstr(tiga_error_text(ctx), "memory"));
            }
        }
        tiga_cache_free(c);
    }
    cr_assert_eq(atomic_load(&live_objects), 0);
    return good;
}

Test(cache_faults, every_allocation_can_fail, .timeout = 60) {
    compiler k = {.text = "code"};
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        base_inject_at(BASE_INJECT_ALLOC, n);
        bool good = three_ways(&k);
        uint64_t calls = base_inject_count(BASE_INJECT_ALLOC);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        failures += !good;
        cr_assert_eq(files_matching(".tmp", NULL) + files_matching(".lock", NULL), 0);
        remove_folder();
        if (good && calls < n)
            break;
        cr_assert_lt(n, 200);
    }
    cr_assert_gt(failures, 5);
}

/* A folder that fails costs no result, ever. */
Test(cache_faults, every_system_call_can_fail, .timeout = 60) {
    compiler k = {.text = "code"};
    uint64_t n = 1, calls;
    do {
        k.builds = 0;
        base_inject_at(BASE_INJECT_FILE, n);
        tiga_cache *c = cache_of(0, DISK);
        for (int i = 0; i < 3; i++)
            expect_object(c, &k, "x");
        calls = base_inject_count(BASE_INJECT_FILE);
        tiga_cache_counters count = tiga_cache_get_counters(c);
        base_inject_at(BASE_INJECT_FILE, 0);
        cr_assert(k.builds <= 2 && k.builds == count.misses);
        cr_assert(count.stale == 0, "%d: a file that cannot be read is not a damaged one", (int)n);
        expect_object(c, &k, "x");
        cr_assert_leq(k.builds, 2);
        tiga_cache_free(c);
        cr_assert_eq(files_matching(".tmp", NULL), 0, "call %d", (int)n);
        cr_assert_eq(files_matching(".lock", NULL), 0, "call %d", (int)n);
        cr_assert_eq(files_matching("", NULL), 1);
        remove_folder();
        n++;
    } while (n <= calls);
    cr_assert_gt(n, 30);
}

static int count_entry(void *user, const tiga_cache_entry *e) {
    ++*(int *)user;
    cr_assert(e->damaged || e->n_fields == 3);
    return 0;
}

Test(cache_faults, list_and_clear_can_fail) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(MEMORY, DISK);
    const base_inject_kind kinds[] = {BASE_INJECT_ALLOC, BASE_INJECT_FILE};
    for (int which = 0; which < 2; which++)
        for (int clear = 0; clear < 2; clear++) {
            bool good = false, all = false;
            for (uint64_t n = 1; !all; n++) {
                expect_object(c, &k, "x");
                expect_object(c, &k, "y");
                int entries = 0;
                tiga_error_clear(ctx);
                base_inject_at(kinds[which], n);
                tiga_status status =
                    clear ? tiga_cache_clear(ctx, c, NULL) : tiga_cache_list(ctx, c, count_entry, &entries);
                all = base_inject_count(kinds[which]) < n;
                base_inject_at(kinds[which], 0);
                good = status == TIGA_OK;
                cr_assert(good || status == (which == 0 ? TIGA_E_MEMORY : TIGA_E_FILE), "%d", status);
                cr_assert_eq(good, tiga_error_text(ctx)[0] == 0);
                cr_assert(good == all || which == 1, "%d %d", (int)n, which);
                cr_assert(clear || !good || entries == 2);
                cr_assert_lt(n, 100);
            }
            cr_assert(good);
        }
    tiga_cache_free(c);
}

/* ---- damaged files ---- */

/* A process that finds `bytes` there. */
static void expect_rebuilt(const char *path, const char *bytes, size_t n, const char *what, size_t at) {
    compiler k = {.text = "code"};
    write_file(path, bytes, n);
    tiga_cache *c = cache_of(MEMORY, DISK);
    expect_object(c, &k, "x");
    tiga_cache_counters count = tiga_cache_get_counters(c);
    cr_assert(k.builds == 1 && k.loads == 1 && count.stale == 1 && count.misses == 1 && count.disk_hits == 0 &&
                  count.disk_errors == 0,
              "%s %zu: %d builds, %d loads", what, at, k.builds, k.loads);
    tiga_cache_free(c);
    c = cache_of(MEMORY, DISK); /* and replaced */
    expect_object(c, &k, "x");
    cr_assert(k.builds == 1 && tiga_cache_get_counters(c).disk_hits == 1, "%s %zu", what, at);
    tiga_cache_free(c);
}

static char *good_file(char path[160], size_t *n) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(0, DISK);
    expect_object(c, &k, "x");
    tiga_cache_free(c);
    cr_assert_eq(files_matching("", path), 1);
    return read_file(path, n);
}

Test(cache_faults, every_byte_can_flip, .timeout = 120) {
    char path[160];
    size_t n;
    char *good = good_file(path, &n);
    cr_assert(n > 100 && n < 300);
    for (size_t i = 0; i < n; i++) {
        const unsigned char flips[] = {1, 128, 255};
        for (int f = 0; f < 3; f++) {
            good[i] ^= (char)flips[f];
            expect_rebuilt(path, good, n, "flipped", i);
            good[i] ^= (char)flips[f];
        }
    }
    free(good);
}

Test(cache_faults, every_length_can_be_wrong, .timeout = 120) {
    char path[160];
    size_t n;
    char *good = good_file(path, &n);
    memset(good + n, 0, 64);
    for (size_t i = 0; i < n + 64; i++)
        if (i != n)
            expect_rebuilt(path, good, i, "cut", i);
    free(good);
}

static void put_le64(char *at, uint64_t v) {
    for (int i = 0; i < 8; i++)
        at[i] = (char)(v >> (8 * i));
}

/* Checksums that hold, of files that are not ours all the same. */
Test(cache_faults, sizes_that_overflow_and_other_versions) {
    char path[160];
    size_t n;
    char *good = good_file(path, &n), bad[300];
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 63, (uint64_t)1 << 63, (uint64_t)INT64_MAX, 0, 1};
    for (int at = 16; at <= 24; at += 8)
        for (int i = 0; i < 6; i++) {
            memcpy(bad, good, n);
            put_le64(bad + at, sizes[i]);
            expect_rebuilt(path, bad, n, "size", (size_t)i);
        }
    for (int i = 0; i < 3; i++) { /* magic, version, kind: summed up anew */
        memcpy(bad, good, n);
        bad[i == 0 ? 0 : i == 1 ? 8 : 12] += 2;
        base_hasher h;
        base_hasher_init(&h);
        base_hasher_add(&h, bad, 48);
        base_hasher_add(&h, bad + 64, n - 64);
        base_hash128 d = base_hasher_digest(&h);
        put_le64(bad + 48, d.lo);
        put_le64(bad + 56, d.hi);
        expect_rebuilt(path, bad, n, "head", (size_t)i);
    }
    free(good);
}

Test(cache_faults, another_key_under_this_name) {
    compiler k = {.text = "code of y"};
    char path[160], other[160];
    size_t n;
    char *good = good_file(path, &n);
    unlink(path);
    tiga_cache *c = cache_of(0, DISK);
    expect_object(c, &k, "y");
    tiga_cache_free(c);
    cr_assert_eq(files_matching("", other), 1);
    free(good);
    good = read_file(other, &n);
    expect_rebuilt(path, good, n, "other key", 0);
    free(good);
}

/* In the place of an entry: a folder, a link, a pipe, a file that others may write to. */
Test(cache_faults, what_is_not_a_file_of_ours) {
    char path[160], elsewhere[160];
    size_t n;
    char *good = good_file(path, &n);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", parent);
    write_file(elsewhere, good, n);
    for (int what = 0; what < 4; what++) {
        compiler k = {.text = "code"};
        unlink(path);
        if (what == 0)
            cr_assert_eq(symlink(elsewhere, path), 0);
        else if (what == 1)
            cr_assert_eq(mkfifo(path, 0600), 0);
        else if (what == 2)
            cr_assert_eq(rename(elsewhere, path) || chmod(path, 0666), 0);
        else
            cr_assert_eq(mkdir(path, 0700), 0);
        tiga_cache *c = cache_of(0, DISK);
        expect_object(c, &k, "x");
        tiga_cache_counters count = tiga_cache_get_counters(c);
        cr_assert(k.builds == 1 && count.stale == 1, "%d", what);
        expect_object(c, &k, "x");
        cr_assert_eq(k.builds, what == 3 ? 2 : 1); /* a folder stays where it is */
        tiga_cache_free(c);
    }
    cr_assert_eq(files_matching(".tmp", NULL), 0);
    free(good);
}

/* ---- folders that cannot be used ---- */

static void expect_memory_only(void) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(MEMORY, DISK);
    expect_object(c, &k, "x");
    expect_object(c, &k, "x");
    cr_assert_eq(k.builds, 1);
    cr_assert_geq(tiga_cache_get_counters(c).disk_errors, 1);
    tiga_cache_free(c);
}

static void expect_refused(const char *words) {
    expect_memory_only();
    int n = 0;
    tiga_cache *c = cache_of(MEMORY, DISK);
    tiga_error_clear(ctx);
    cr_assert_eq(tiga_cache_list(ctx, c, count_entry, &n), TIGA_E_FILE);
    cr_assert(strstr(tiga_error_text(ctx), words), "%s", tiga_error_text(ctx));
    cr_assert_eq(tiga_cache_clear(ctx, c, NULL), TIGA_E_FILE);
    tiga_cache_free(c);
}

Test(cache_faults, a_folder_others_can_write_to_is_refused) {
    char path[160];
    size_t n;
    free(good_file(path, &n));
    const mode_t modes[] = {0777, 0770, 0702, 01777};
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(chmod(folder, modes[i]), 0);
        expect_refused("others can write to it");
    }
    cr_assert_eq(chmod(folder, 0755), 0); /* others may look */
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(MEMORY, DISK);
    expect_object(c, &k, "x");
    cr_assert_eq(k.builds, 0);
    tiga_cache_free(c);
}

Test(cache_faults, a_folder_is_made_for_its_user_alone) {
    char path[160];
    size_t n;
    struct stat st;
    umask(0);
    free(good_file(path, &n));
    cr_assert(stat(folder, &st) == 0 && (st.st_mode & 0777) == 0700);
    cr_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
}

Test(cache_faults, a_folder_of_another_user_is_refused) {
    if (geteuid() != 0)
        cr_skip_test("only root can give a folder away");
    char path[160];
    size_t n;
    free(good_file(path, &n));
    cr_assert_eq(chown(folder, 1234, 1234), 0);
    expect_refused("it belongs to another user");
    cr_assert_eq(chown(folder, 0, 0), 0);
    cr_assert_eq(chown(path, 1234, 1234), 0); /* a file in it */
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(MEMORY, DISK);
    expect_object(c, &k, "x");
    cr_assert(k.builds == 1 && tiga_cache_get_counters(c).stale == 1);
    tiga_cache_free(c);
}

Test(cache_faults, what_is_no_folder) {
    char above[160];
    snprintf(above, sizeof above, "%s/a", parent);
    write_file(above, "x", 1);
    expect_refused("Not a directory");
    unlink(above);
    cr_assert_eq(mkdir(above, 0700), 0);
    write_file(folder, "x", 1);
    expect_refused("Not a directory");
    unlink(folder);
    cr_assert_eq(symlink("b", folder), 0);
    expect_refused("Too many levels of symbolic links");
}

/* Runs `what` in a child that is an ordinary user; its failures are ours. */
static void as_a_user(void (*what)(void)) {
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(1234) || setuid(1234)))
            _exit(3);
        what();
        _exit(0);
    }
    int status;
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
}

/* No cr_assert in the child: plain exit codes. */
static void use_read_only(void) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(0, DISK);
    object *o;
    if (get_with(c, ctx, &k, "x", &o, NULL) != TIGA_OK || k.builds != 0 || tiga_cache_get_counters(c).disk_errors != 0)
        _exit(4); /* what is there is found */
    fake_release(o);
    if (get_with(c, ctx, &k, "new", &o, NULL) != TIGA_OK || k.builds != 1 || strcmp(o->bytes, "code"))
        _exit(5);
    fake_release(o);
    if (tiga_cache_get_counters(c).disk_errors < 1)
        _exit(6);
    tiga_cache_free(c);
}

static void use_unreadable(void) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(MEMORY, DISK);
    for (int i = 0; i < 2; i++) {
        object *o;
        if (get_with(c, ctx, &k, "x", &o, NULL) != TIGA_OK || k.builds != 1 || strcmp(o->bytes, "code"))
            _exit(5);
        fake_release(o);
    }
    tiga_cache_counters n = tiga_cache_get_counters(c);
    if (n.disk_errors < 1 || n.stale != 0)
        _exit(6);
    tiga_cache_free(c);
}

Test(cache_faults, a_folder_without_rights_costs_only_speed) {
    char path[160];
    size_t n;
    free(good_file(path, &n));
    if (geteuid() == 0) {
        cr_assert_eq(chmod(parent, 0711), 0);
        snprintf(path, sizeof path, "chmod 711 %s/a; chown -R 1234:1234 %s", parent, folder);
        cr_assert_eq(system(path), 0);
    }
    cr_assert_eq(chmod(folder, 0500), 0);
    as_a_user(use_read_only);
    cr_assert_eq(chmod(folder, 0), 0);
    as_a_user(use_unreadable);
    cr_assert_eq(chmod(folder, 0700), 0);
    cr_assert_eq(files_matching("", path), 1);
    cr_assert_eq(chmod(path, 0), 0); /* one file that cannot be read */
    cr_assert_eq(chmod(folder, 0500), 0);
    as_a_user(use_unreadable);
}

/* ---- full ---- */

static void fill_up(void) {
    char text[30001], source[16];
    memset(text, 'c', 30000);
    text[30000] = 0;
    compiler k = {.text = text};
    tiga_cache *c = cache_of(0, DISK);
    for (int i = 0; i < 20; i++) {
        snprintf(source, sizeof source, "%d", i);
        expect_object(c, &k, source);
    }
    cr_assert_eq(k.builds, 20);
    cr_assert_geq(tiga_cache_get_counters(c).disk_errors, 10);
    for (int i = 0; i < 20; i++) { /* what is there is whole */
        snprintf(source, sizeof source, "%d", i);
        expect_object(c, &k, source);
    }
    cr_assert_eq(tiga_cache_get_counters(c).stale, 0);
    cr_assert_eq(files_matching(".tmp", NULL), 0);
    tiga_cache_free(c);
}

Test(cache_faults, a_full_disk_costs_only_speed) {
    char above[80];
    snprintf(above, sizeof above, "%s/a", parent);
    cr_assert_eq(mkdir(above, 0700), 0);
    /* a name space of our own: the mount goes with the process */
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", above, "tmpfs", 0, "size=256k,mode=0700") != 0)
        cr_skip_test("cannot mount a small file system here");
    fill_up();
    cr_assert_eq(umount2(above, MNT_DETACH), 0);
}

Test(cache_faults, a_limit_on_the_size_of_files_costs_only_speed) {
    struct rlimit limit = {20000, 20000};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fill_up();
}

/* ---- removed ---- */

Test(cache_faults, the_folder_goes_away_under_a_running_process) {
    compiler k = {.text = "code"};
    tiga_cache *c = cache_of(0, DISK);
    for (int i = 0; i < 5; i++) {
        expect_object(c, &k, "x");
        expect_object(c, &k, "x");
        cr_assert_eq(k.builds, i + 1);
        remove_folder();
    }
    cr_assert_eq(tiga_cache_get_counters(c).disk_errors, 0); /* made again each time */
    tiga_cache_free(c);
}

static tiga_status remove_while_building(void *user, tiga_context *context, base_str *out) {
    remove_folder();
    return fake_build(user, context, out);
}

Test(cache_faults, the_folder_goes_away_during_a_build) {
    static const rt_cache_ops ops = {remove_while_building, fake_load, fake_retain, fake_release};
    compiler k = {.text = "code"};
    tiga_cache_field fields[] = {field("source", "x")};
    rt_cache_request r = {fields, 1, &ops, &k};
    tiga_cache *c = cache_of(0, DISK);
    void *o;
    cr_assert_eq(tiga_cache_get(c, ctx, &r, &o, NULL), TIGA_OK);
    cr_assert_str_eq(((object *)o)->bytes, "code");
    fake_release(o);
    cr_assert_eq(tiga_cache_get_counters(c).disk_errors, 1);
    tiga_cache_free(c);
}
