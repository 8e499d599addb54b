/* Any bytes as a file of tensors: safetensors with and without our checksums, or .npy.  With an odd last byte the seal of
 * the header is made to hold, so that what stands behind it is reached.  What opens lies within the file, and what can be read is
 * read. */
#include "hierarchy_runtime/hr_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { LENGTH = 8, SEALED = 8 + 32 + 16 };
static char path[64];
static tiga_context *ctx;

static void clean(void) { unlink(path); }

static void start(void) {
    strcpy(path, access("/dev/shm", W_OK) == 0 ? "/dev/shm/tiga_fuzz_XXXXXX" : "/tmp/tiga_fuzz_XXXXXX");
    tiga_context_options o = tiga_context_defaults();
    o.threads = 1;
    o.host_budget_bytes = 64 << 20;
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0 || tiga_context_new(&o, &ctx) != TIGA_OK)
        abort();
    atexit(clean);
}

static void make_seal_hold(char *bytes, size_t n) {
    uint64_t header = 0;
    for (int i = 0; i < LENGTH; i++)
        header |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    if (header > n - LENGTH || header < SEALED - LENGTH)
        return;
    base_str s = {0};
    base_str_add_n(&s, bytes, LENGTH + (size_t)header);
    memset(s.data + SEALED - 16, '0', 16); /* as it was when it was sealed */
    hr_safetensors_seal(&s, NULL, 0);
    memcpy(bytes, s.data, s.len);
    base_str_fini(&s);
}

static void write_file(const void *bytes, size_t n) {
    int fd = open(path, O_WRONLY | O_TRUNC);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || close(fd) != 0)
        abort();
}

static void read_tensor(tiga_snapshot *s, int i, size_t n) {
    const hr_entry *e = &s->entries[i];
    tiga_tensor_view v;
    tiga_buffer *b = NULL;
    if (e->at < 0 || e->bytes < 0 || e->at > (int64_t)n || e->bytes > (int64_t)n - e->at)
        abort();
    bool have = tiga_snapshot_get(ctx, s, i, &v) == TIGA_OK;
    if (have != (e->dtype >= 0) || tiga_snapshot_find(s, e->name) < 0)
        abort();
    if (have && tiga_snapshot_buffer(ctx, s, i, TIGA_TIER_HOST, &b) == TIGA_OK)
        tiga_buffer_realize(ctx, b); /* or its checksums are wrong */
    tiga_buffer_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!ctx)
        start();
    char *copy = malloc(n + 1);
    memcpy(copy, data, n);
    if (n >= SEALED && data[n - 1] & 1)
        make_seal_hold(copy, n);
    write_file(copy, n);
    tiga_snapshot *s;
    if (tiga_snapshot_open(ctx, path, &s) == TIGA_OK)
        for (int i = 0; i < tiga_snapshot_count(s); i++)
            read_tensor(s, i, n);
    else if (s)
        abort();
    tiga_snapshot_free(s);
    tiga_error_clear(ctx);
    free(copy);
    return 0;
}
