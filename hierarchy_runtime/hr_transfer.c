/* Transfers: whole blocks, page by page (1 MiB), each page with its checksum.  Large ones are moved by a few threads, which
 * hides the time of checksums and keeps more than one request at the disk.  Pages that O_DIRECT cannot take from where
 * they lie go through a staging page. */
#include "hierarchy_runtime/hr_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, PAGES_A_THREAD = 4 };

typedef struct transfer {
    char *memory;
    int64_t bytes;
    int fd;
    int64_t at;
    uint64_t *sums; /* written */
    const uint64_t *check; /* when reading; NULL: not checked */
    size_t unit; /* 1, or HR_UNIT under O_DIRECT */
    bool write, sync;
    int most_threads; /* 0: THREADS */
    const atomic_bool *stop; /* or NULL */
    _Atomic int64_t next;
    _Atomic int error; /* errno of the first failure */
    _Atomic int64_t bad; /* page whose checksum is wrong, and one */
} transfer;

/* Aligned to HR_UNIT.  *block is what to free. */
static char *staging(void **block) {
    *block = base_alloc(HR_PAGE + HR_UNIT);
    return *block ? (char *)(((uintptr_t)*block + HR_UNIT - 1) & ~(uintptr_t)(HR_UNIT - 1)) : NULL;
}

static bool lies_well(const transfer *t, const char *p, size_t n) {
    return t->unit == 1 || ((uintptr_t)p % t->unit == 0 && n % t->unit == 0);
}

static size_t on_disk(const transfer *t, size_t n) { return (n + t->unit - 1) / t->unit * t->unit; }

static bool write_page(transfer *t, int64_t page, char *p, size_t n, char *stage) {
    t->sums[page] = hr_checksum(p, (int64_t)n);
    const char *from = p;
    if (stage) {
        memcpy(stage, p, n);
        memset(stage + n, 0, on_disk(t, n) - n);
        from = stage;
    }
    return base_file_pwrite_all(t->fd, from, on_disk(t, n), t->at + page * HR_PAGE, t->unit);
}

static bool read_page(transfer *t, int64_t page, char *p, size_t n, char *stage) {
    if (!base_file_pread_all(t->fd, stage ? stage : p, on_disk(t, n), t->at + page * HR_PAGE, t->unit))
        return false;
    if (stage)
        memcpy(p, stage, n);
    if (t->check && t->check[page] != hr_checksum(p, (int64_t)n))
        atomic_store(&t->bad, page + 1);
    return true;
}

static bool move_page(transfer *t, int64_t page, void **block, char **stage) {
    char *p = t->memory + page * HR_PAGE;
    size_t n = (size_t)hr_page_bytes(t->bytes, page);
    bool direct = lies_well(t, p, n);
    if (!direct && !*block && !(*stage = staging(block))) {
        errno = ENOMEM;
        return false;
    }
    return t->write ? write_page(t, page, p, n, direct ? NULL : *stage)
                    : read_page(t, page, p, n, direct ? NULL : *stage);
}

static void fail(transfer *t, int error) {
    int none = 0;
    atomic_compare_exchange_strong(&t->error, &none, error ? error : EIO);
}

static void *move_pages(void *user) {
    transfer *t = user;
    void *block = NULL;
    char *stage = NULL;
    int64_t n = hr_pages(t->bytes), page;
    while (!atomic_load(&t->error) && !atomic_load(&t->bad) && (page = atomic_fetch_add(&t->next, 1)) < n)
        if (t->stop && atomic_load(t->stop))
            fail(t, ECANCELED);
        else if (!move_page(t, page, &block, &stage))
            fail(t, errno);
    base_free(block);
    return NULL;
}

static void run(transfer *t) {
    pthread_t threads[THREADS];
    int n = 0;
    int64_t useful = hr_pages(t->bytes) / PAGES_A_THREAD, most = t->most_threads ? t->most_threads : THREADS;
    while (n < most - 1 && n + 1 < useful && pthread_create(&threads[n], NULL, move_pages, t) == 0)
        n++;
    move_pages(t);
    while (n > 0)
        pthread_join(threads[--n], NULL);
}

static int sync_data(int fd) {
    int e;
    do {
        if (base_file_injected())
            e = errno;
        else
            e = fdatasync(fd) == 0 ? 0 : errno;
    } while (e == EINTR);
    return e;
}

static tiga_status finish(tiga_context *ctx, transfer *t, const char *path, const char *what) {
    int error = atomic_load(&t->error);
    if (!error && t->sync) /* an error of the disk is wanted now, not when the memory is gone */
        error = sync_data(t->fd);
    errno = error;
    if (error == ENOMEM)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", what);
    if (error == ENODATA)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: %s ends before its data does", path, what);
    if (error)
        return rt_fail(ctx, TIGA_E_FILE, "%s: cannot %s %s: %s", path, t->write ? "write" : "read", what,
                       strerror(error));
    int64_t bad = atomic_load(&t->bad);
    if (bad)
        return rt_fail(ctx, TIGA_E_FORMAT, "%s: %s is damaged: the checksum of bytes %lld to %lld is wrong", path, what,
                       (long long)(bad - 1) * HR_PAGE,
                       (long long)(bad - 1) * HR_PAGE + hr_page_bytes(t->bytes, bad - 1) - 1);
    return TIGA_OK;
}

static tiga_status file_transfer(tiga_context *ctx, const hr_block *disk, char *memory, bool write, const char *what,
                                 const hr_manner *m) {
    transfer t = {.memory = memory,
                  .bytes = disk->bytes,
                  .fd = disk->fd,
                  .at = disk->at,
                  .sums = disk->sums,
                  .check = disk->sums,
                  .unit = disk->direct ? HR_UNIT : 1,
                  .write = write,
                  .sync = write && !disk->direct,
                  .most_threads = m ? m->most_threads : 0,
                  .stop = m ? m->stop : NULL};
    run(&t);
    return finish(ctx, &t, hr_spill_folder(disk->account), what);
}

/* Disk to disk, through a page. */
static tiga_status relay(tiga_context *ctx, const hr_block *from, hr_block *to, const char *what) {
    void *block;
    char *stage = staging(&block);
    if (!stage)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", what);
    tiga_status status = TIGA_OK;
    for (int64_t page = 0; page < hr_pages(from->bytes) && status == TIGA_OK; page++) {
        hr_block a = *from, b = *to;
        a.bytes = b.bytes = hr_page_bytes(from->bytes, page);
        a.at += page * HR_PAGE;
        b.at += page * HR_PAGE;
        a.sums += page;
        b.sums += page;
        status = file_transfer(ctx, &a, stage, false, what, NULL);
        if (status == TIGA_OK)
            status = file_transfer(ctx, &b, stage, true, what, NULL);
    }
    base_free(block);
    return status;
}

tiga_status hr_transfer(tiga_context *ctx, const hr_block *from, hr_block *to, const char *what) {
    return hr_transfer_in(ctx, from, to, what, NULL);
}

tiga_status hr_transfer_in(tiga_context *ctx, const hr_block *from, hr_block *to, const char *what,
                           const hr_manner *m) {
    if (from->bytes != to->bytes)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "%s: %lld bytes cannot go to %lld", what, (long long)from->bytes,
                       (long long)to->bytes);
    if (from->bytes == 0)
        return TIGA_OK;
    if (!from->data && !to->data)
        return relay(ctx, from, to, what);
    if (!to->data)
        return file_transfer(ctx, to, from->data, true, what, m);
    if (!from->data)
        return file_transfer(ctx, from, to->data, false, what, m);
    for (int64_t page = 0; page < hr_pages(from->bytes); page++)
        memcpy((char *)to->data + page * HR_PAGE, (const char *)from->data + page * HR_PAGE,
               (size_t)hr_page_bytes(from->bytes, page));
    return TIGA_OK;
}

tiga_status hr_transfer_read(tiga_context *ctx, const hr_reading *r, void *to, int64_t n_bytes, const char *what) {
    transfer t = {.memory = to, .bytes = n_bytes, .fd = r->fd, .at = r->at, .check = r->sums, .unit = 1};
    run(&t);
    return finish(ctx, &t, r->path, what);
}

tiga_status hr_transfer_write(tiga_context *ctx, const hr_writing *w, const void *from, int64_t n_bytes,
                              const char *what) {
    transfer t = {.memory = (char *)from,
                  .bytes = n_bytes,
                  .fd = w->fd,
                  .at = w->at,
                  .sums = w->sums,
                  .unit = HR_UNIT,
                  .write = true};
    run(&t);
    return finish(ctx, &t, w->path, what);
}
