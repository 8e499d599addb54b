/* What file_write.c leaves beside a path when its process is killed: NAME.PID.NUMBER.tmp.  Removed only when no process of
 * that number lives here and nobody holds the lock that writers hold until the file has its own name, so another machine's
 * writer on a shared file system is not disturbed.  Between making a file and locking it there is a moment when it can be
 * swept: its writer looks for that when it has the lock, and makes another. */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool base_file_is_named(int folder, const char *name, int fd) {
    struct stat mine, there;
    return !base_file_injected() && fstat(fd, &mine) == 0 && fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ((mine.st_dev == there.st_dev && mine.st_ino == there.st_ino) || (errno = ENOENT, false));
}

/* false: errno, EEXIST when somebody sweeps it or has done so. */
static bool lock_new(int folder, const char *name, int fd) {
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK)
        return true; /* no locks here: its age must do */
    if (locked && base_file_is_named(folder, name, fd))
        return true;
    errno = !locked || errno == ENOENT ? EEXIST : errno;
    return false;
}

int base_file_create_locked(int folder, const char *name, unsigned mode) {
    int fd = base_file_injected()
                 ? -1
                 : openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
    if (fd < 0 || lock_new(folder, name, fd))
        return fd;
    int saved = errno;
    if (saved != EEXIST) /* else it is gone, and another process of this number may have made its own */
        unlinkat(folder, name, 0);
    close(fd);
    errno = saved;
    return -1;
}

/* Whether it is one of ours for `base`, and its process is gone. */
static bool is_left(const char *name, const char *base, size_t n) {
    long pid;
    unsigned number;
    int end = 0;
    if (strncmp(name, base, n) != 0 || sscanf(name + n, ".%ld.%u.tmp%n", &pid, &number, &end) != 2 || end == 0 ||
        name[n + (size_t)end] || pid <= 0)
        return false;
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static void remove_left(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && base_file_is_named(folder, name, fd))
        (void)unlinkat(folder, name, 0);
    close(fd);
}

void base_file_sweep(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    base_str folder = {0};
    base_str_add_n(&folder, path, slash ? (size_t)(slash - path) + 1 : 0);
    DIR *d = folder.failed ? NULL : opendir(folder.len ? folder.data : ".");
    base_str_fini(&folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (is_left(e->d_name, base, strlen(base)))
            remove_left(dirfd(d), e->d_name);
    closedir(d);
}
