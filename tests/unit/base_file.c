/* Whole files: all or nothing, every system call made to fail, devices and links left alone. */
#include "base/base.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static char *path_of(const char *name) {
    char *path = malloc(256);
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static void setup(void) {
    strcpy(folder, "/tmp/tiga_base_file_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static int files_in_folder(void) {
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(file, .init = setup, .fini = teardown);

static void expect(const char *path, const char *want) {
    base_str out = {0}, err = {0};
    cr_assert(base_file_read(path, &out, &err), "%s", base_str_text(&err));
    cr_assert_eq(out.len, strlen(want));
    cr_assert_str_eq(out.data, want);
    base_str_fini(&out);
}

Test(file, what_is_written_is_read) {
    char *path = path_of("a"), *big = malloc(300001);
    memset(big, 'b', 300000);
    big[300000] = 0;
    cr_assert(base_file_write(path, "", 0, NULL));
    expect(path, "");
    cr_assert(base_file_write(path, big, 300000, NULL));
    expect(path, big);
    cr_assert_eq(files_in_folder(), 1);
}

Test(file, the_reason_names_the_path) {
    base_str out = {0}, err = {0};
    cr_assert_not(base_file_read("/nowhere/x.tg", &out, &err));
    cr_assert_str_eq(err.data, "/nowhere/x.tg: cannot open: No such file or directory");
    base_str_fini(&err);
    cr_assert_not(base_file_read(folder, &out, &err));
    cr_assert(strstr(err.data, "Is a directory"));
    base_str_fini(&err);
    cr_assert_not(base_file_write(folder, "x", 1, &err));
    cr_assert(strstr(err.data, "Is a directory"));
    base_str_fini(&err);
    cr_assert_not(base_file_write("/nowhere/x", "x", 1, &err));
    cr_assert(strstr(err.data, "/nowhere/x: cannot create"));
}

Test(file, permissions_links_and_devices_stay) {
    char *path = path_of("a"), *link = path_of("link");
    struct stat st;
    cr_assert(base_file_write(path, "1", 1, NULL));
    cr_assert_eq(chmod(path, 0640), 0);
    cr_assert_eq(symlink("a", link), 0);
    cr_assert(base_file_write(link, "22", 2, NULL));
    expect(path, "22");
    cr_assert(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    cr_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    char *nothing = path_of("to_nothing"), *made = path_of("made");
    cr_assert_eq(symlink("made", nothing), 0); /* to a file that is not there yet */
    cr_assert(base_file_write(nothing, "333", 3, NULL));
    expect(made, "333");
    cr_assert(lstat(nothing, &st) == 0 && S_ISLNK(st.st_mode));
    cr_assert(base_file_write("/dev/null", "x", 1, NULL));
    cr_assert(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
}

static int renamed, unlocked;

/* In place of the C library's: what the writer calls.  Who sweeps at this moment finds the lock. */
int rename(const char *from, const char *to) {
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    renamed++;
    unlocked += flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

Test(file, the_lock_is_held_until_the_file_has_its_name) {
    char *path = path_of("a");
    cr_assert(base_file_write(path, "old", 3, NULL) && base_file_write(path, "new", 3, NULL));
    expect(path, "new");
    cr_assert(renamed == 2 && unlocked == 0, "%d of %d", unlocked, renamed);
    free(path);
}

/* After a call that failed the old contents are there and no other file is. */
Test(file, every_system_call_can_fail) {
    char *path = path_of("a");
    cr_assert(base_file_write(path, "old", 3, NULL));
    bool ok = false;
    int n = 0, late = 0;
    while (!ok) {
        base_str err = {0};
        base_inject_at(BASE_INJECT_FILE, (uint64_t)++n);
        ok = base_file_write(path, "new", 3, &err);
        base_inject_at(BASE_INJECT_FILE, 0);
        if (!ok) {
            cr_assert(strstr(base_str_text(&err), "/a"));
            late += strstr(err.data, "sync the folder") != NULL; /* the new file is already in place then */
            expect(path, late ? "new" : "old");
        }
        cr_assert_eq(files_in_folder(), 1);
        base_str_fini(&err);
        cr_assert_lt(n, 50);
    }
    cr_assert_gt(n, 6);
    cr_assert_eq(late, 2);
    for (ok = false, n = 0; !ok;) {
        base_str out = {0}, err = {0};
        base_inject_at(BASE_INJECT_FILE, (uint64_t)++n);
        ok = base_file_read(path, &out, &err);
        base_inject_at(BASE_INJECT_FILE, 0);
        cr_assert(ok || strstr(base_str_text(&err), "/a: cannot"));
        base_str_fini(&out);
        base_str_fini(&err);
        cr_assert_lt(n, 50);
    }
    cr_assert_gt(n, 3);
}

Test(file, every_allocation_can_fail) {
    char *path = path_of("a");
    bool ok = false;
    for (uint64_t n = 1; !ok; n++) {
        base_str err = {0};
        base_inject_at(BASE_INJECT_ALLOC, n);
        ok = base_file_write(path, "x", 1, &err);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        base_str_fini(&err);
        cr_assert_lt(n, 50);
    }
    for (uint64_t n = (ok = false, 1); !ok; n++) {
        base_str out = {0}, err = {0};
        base_inject_at(BASE_INJECT_ALLOC, n);
        ok = base_file_read(path, &out, &err);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        base_str_fini(&out);
        base_str_fini(&err);
        cr_assert_lt(n, 50);
    }
}

Test(file, dash_is_standard_input) {
    char *path = path_of("in");
    cr_assert(base_file_write(path, "piped", 5, NULL));
    cr_assert_not_null(freopen(path, "r", stdin));
    expect("-", "piped");
}
