/* Zip archives of stored members, written through rt_file_write like everything else.  Data is not copied: an archive is
 * a list of parts, our headers between the caller's bytes.  Sizes and offsets from `limit` on are written as zip64. */
#include "runtime/runtime.h"

#include <string.h>
#include <zlib.h>

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, END64 = 0x06064b50, LOCATOR64 = 0x07064b50 };
enum { VERSION = 20, VERSION64 = 45, MADE_ON_UNIX = 3 << 8, DATE_1980 = 1 << 5 | 1 }; /* the same bytes every time */
#define MODE_0644 (0100644U << 16)
#define IN_ZIP64 0xffffffffU

static void put(base_str *s, int n_bytes, uint64_t v) {
    char bytes[8];
    for (int i = 0; i < n_bytes; i++)
        bytes[i] = (char)(v >> (8 * i));
    base_str_add_n(s, bytes, (size_t)n_bytes);
}

static uint32_t checksum(const rt_zip_member *m) {
    uLong crc = crc32_z(0, NULL, 0);
    crc = crc32_z(crc, (const Bytef *)base_str_text(&m->head), m->head.len);
    return (uint32_t)(m->n ? crc32_z(crc, m->data, (size_t)m->n) : crc);
}

/* What the local and the central header have in common, from the needed version to the length of the extra field. */
static void put_common(base_str *s, const rt_zip_member *m, uint32_t crc, bool big, int extra) {
    uint64_t size = m->head.len + (uint64_t)m->n;
    put(s, 2, big ? VERSION64 : VERSION);
    put(s, 2, 0); /* flags */
    put(s, 2, 0); /* stored */
    put(s, 2, 0); /* midnight */
    put(s, 2, DATE_1980);
    put(s, 4, crc);
    put(s, 4, big ? IN_ZIP64 : size);
    put(s, 4, big ? IN_ZIP64 : size);
    put(s, 2, strlen(m->name));
    put(s, 2, big ? (uint64_t)extra + 4 : 0);
}

static void put_sizes64(base_str *s, const rt_zip_member *m, int extra) {
    uint64_t size = m->head.len + (uint64_t)m->n;
    put(s, 2, 1); /* this is zip64's */
    put(s, 2, (uint64_t)extra);
    put(s, 8, size);
    put(s, 8, size);
}

static void put_local(base_str *s, const rt_zip_member *m, uint32_t crc, uint64_t limit) {
    bool big = m->head.len + (uint64_t)m->n >= limit;
    put(s, 4, LOCAL);
    put_common(s, m, crc, big, 16);
    base_str_add(s, m->name);
    if (big)
        put_sizes64(s, m, 16);
    base_str_add_n(s, base_str_text(&m->head), m->head.len);
    s->failed |= m->head.failed;
}

static void put_central(base_str *s, const rt_zip_member *m, uint32_t crc, uint64_t at, uint64_t limit) {
    bool big = m->head.len + (uint64_t)m->n >= limit || at >= limit;
    put(s, 4, CENTRAL);
    put(s, 2, MADE_ON_UNIX | VERSION64);
    put_common(s, m, crc, big, 24);
    put(s, 2, 0); /* comment */
    put(s, 2, 0); /* disk */
    put(s, 2, 0); /* binary */
    put(s, 4, MODE_0644);
    put(s, 4, big ? IN_ZIP64 : at);
    base_str_add(s, m->name);
    if (big) {
        put_sizes64(s, m, 24);
        put(s, 8, at);
    }
}

/* n members, listed in n_bytes at `at`. */
static void put_end(base_str *s, uint64_t n, uint64_t n_bytes, uint64_t at, uint64_t limit) {
    bool big = at >= limit || n_bytes >= limit;
    if (big) {
        put(s, 4, END64);
        put(s, 8, 44); /* bytes that follow */
        put(s, 2, MADE_ON_UNIX | VERSION64);
        put(s, 2, VERSION64);
        put(s, 8, 0); /* two numbers of disks */
        put(s, 8, n);
        put(s, 8, n);
        put(s, 8, n_bytes);
        put(s, 8, at);
        put(s, 4, LOCATOR64);
        put(s, 4, 0);
        put(s, 8, at + n_bytes);
        put(s, 4, 1);
    }
    put(s, 4, END);
    put(s, 4, 0);
    put(s, 2, big ? 0xffff : n);
    put(s, 2, big ? 0xffff : n);
    put(s, 4, big ? IN_ZIP64 : n_bytes);
    put(s, 4, big ? IN_ZIP64 : at);
    put(s, 2, 0); /* comment */
}

tiga_status rt_zip_write(tiga_context *ctx, const char *path, const rt_zip_member *members, int n, int64_t limit) {
    enum { MOST = RT_ZIP_MEMBERS };
    base_str local[MOST] = {{0}}, central = {0};
    base_part parts[2 * MOST + 1];
    uint64_t at = 0, most = limit ? (uint64_t)limit : IN_ZIP64;
    bool failed = false;
    BASE_CHECK(n <= MOST);
    for (int i = 0; i < n; i++) {
        uint32_t crc = checksum(&members[i]);
        put_local(&local[i], &members[i], crc, most);
        put_central(&central, &members[i], crc, at, most);
        failed |= local[i].failed;
        parts[2 * i] = (base_part){local[i].data, local[i].len};
        parts[2 * i + 1] = (base_part){members[i].data, (size_t)members[i].n};
        at += local[i].len + (uint64_t)members[i].n;
    }
    put_end(&central, (uint64_t)n, central.len, at, most);
    parts[2 * n] = (base_part){central.data, central.len};
    tiga_status status = failed || central.failed ? rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path)
                                                  : rt_file_write(ctx, path, parts, 2 * n + 1);
    for (int i = 0; i < n; i++)
        base_str_fini(&local[i]);
    base_str_fini(&central);
    return status;
}
