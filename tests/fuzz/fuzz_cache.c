/* Any bytes as a file of the cache of compiled code, and as a key.  With an odd last byte the checksum is made to hold, so
 * that what stands behind it is reached.  Nothing may be read that is not there; what is taken for a key is one. */
#include "runtime/runtime.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char name[] = "0123456789abcdef0123456789abcdef";
static int folder = -1;
static tiga_cache *cache;

static char path[64];

static void clean(void) {
    unlinkat(folder, name, 0);
    rmdir(path);
}

static void start(void) {
    strcpy(path, access("/dev/shm", W_OK) == 0 ? "/dev/shm/tiga_fuzz_XXXXXX" : "/tmp/tiga_fuzz_XXXXXX");
    tiga_cache_options o = tiga_cache_defaults();
    o.folder = mkdtemp(path);
    if (!o.folder || tiga_cache_new(&o, &cache) != TIGA_OK || (folder = open(path, O_RDONLY | O_DIRECTORY)) < 0)
        abort();
    atexit(clean);
}

static void make_sum_hold(uint8_t *data, size_t n) {
    base_hasher h;
    base_hasher_init(&h);
    base_hasher_add(&h, data, 48);
    base_hasher_add(&h, data + 64, n - 64);
    base_hash128 d = base_hasher_digest(&h);
    memcpy(data + 48, &d, sizeof d);
}

static unsigned touched;

static void touch(const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        touched += ((const unsigned char *)bytes)[i];
}

static int visit(void *user, const tiga_cache_entry *e) {
    (void)user;
    for (size_t i = 0; i < e->n_fields; i++) {
        touch(e->fields[i].name, strlen(e->fields[i].name));
        touch(e->fields[i].bytes, e->fields[i].n_bytes + 1);
    }
    return 0;
}

static void as_key(const char *bytes, size_t n) {
    size_t n_fields;
    bool no_memory;
    tiga_cache_field *f = rt_cache_key_split(bytes, n, &n_fields, &no_memory);
    rt_cache_key k;
    if (!f)
        return;
    if (!rt_cache_key_init(&k, cache, f, n_fields) || !rt_cache_key_equal(&k, bytes, n))
        abort();
    rt_cache_key_fini(&k);
    base_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (folder < 0)
        start();
    char *copy = malloc(n ? n : 1);
    memcpy(copy, data, n);
    as_key(copy, n);
    if (n >= 64 && data[n - 1] & 1)
        make_sum_hold((uint8_t *)copy, n);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, copy, n) != (ssize_t)n || close(fd) != 0)
        abort();
    rt_cache_file f, again;
    rt_cache_read whole = rt_cache_file_read(folder, name, &f), peeked = rt_cache_file_peek(folder, name, &again);
    if (whole == RT_CACHE_GOOD) {
        if (peeked != RT_CACHE_GOOD || f.key_bytes != again.key_bytes || (uintptr_t)f.payload % 16)
            abort();
        touch(f.payload, f.payload_bytes);
        as_key(f.key, f.key_bytes);
        base_free(f.buffer);
    }
    if (peeked == RT_CACHE_GOOD)
        base_free(again.buffer);
    if (tiga_cache_list(NULL, cache, visit, NULL) != TIGA_OK)
        abort();
    free(copy);
    return 0;
}
