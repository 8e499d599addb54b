/* Reads what the kernels of a cubin take.  A cubin is a 64-bit little-endian ELF file; section .nv.info is a list of
 * attributes: format, number, then two bytes that are the value or the length of it.  Every offset in the file is
 * checked: a cubin may come from a cache on disk. */
#include "driver/drv_nvrtc.h"

#include <string.h>

enum {
    MACHINE_CUDA = 190,
    FORMAT_SIZED = 4,
    ATTR_FRAME_SIZE = 0x11,
    ATTR_REGISTERS = 0x2f,
    SECTION_SYMBOLS = 2,
    SYMBOL_FUNCTION = 2
};

typedef struct reader {
    const unsigned char *bytes;
    size_t n;
    bool ok;
} reader;

typedef struct section {
    const char *name;
    uint32_t type, link;
    uint64_t offset, size;
} section;

static uint64_t number(reader *r, uint64_t at, unsigned width) {
    if (at > r->n || r->n - at < width) {
        r->ok = false;
        return 0;
    }
    uint64_t v = 0;
    for (unsigned i = 0; i < width; ++i)
        v |= (uint64_t)r->bytes[at + i] << (8 * i);
    return v;
}

/* A NUL-terminated string inside of the file. */
static const char *string(reader *r, uint64_t at) {
    if (at >= r->n || !memchr(r->bytes + at, 0, r->n - at)) {
        r->ok = false;
        return "";
    }
    return (const char *)r->bytes + at;
}

static section read_section(reader *r, uint64_t headers, uint64_t index) {
    uint64_t at = headers + index * 64;
    section s = {.name = "", .type = (uint32_t)number(r, at + 4, 4), .link = (uint32_t)number(r, at + 40, 4)};
    s.offset = number(r, at + 24, 8);
    s.size = number(r, at + 32, 8);
    return s;
}

static section *read_sections(reader *r, base_arena *arena, uint64_t *count) {
    uint64_t headers = number(r, 40, 8), names = number(r, 62, 2);
    *count = number(r, 60, 2);
    if (!r->ok || headers > r->n || *count > (r->n - headers) / 64 || names >= *count)
        return NULL;
    section *list = base_arena_new_array(arena, section, *count), table = read_section(r, headers, names);
    for (uint64_t i = 0; i < *count; ++i) {
        list[i] = read_section(r, headers, i);
        uint64_t name = number(r, headers + i * 64, 4);
        if (name < table.size && table.offset <= r->n)
            list[i].name = string(r, table.offset + name);
        bool in_file = list[i].offset <= r->n && list[i].size <= r->n - list[i].offset;
        if (!in_file && list[i].type != 8)
            list[i].size = 0; /* 8: takes no bytes in the file */
    }
    return r->ok ? list : NULL;
}

static const section *find(const section *list, uint64_t n, const char *name) {
    for (uint64_t i = 0; i < n; ++i)
        if (!strcmp(list[i].name, name))
            return &list[i];
    return NULL;
}

/* The value of an attribute for a symbol; 0 when it is not there. */
static int64_t attribute(reader *r, const section *info, unsigned which, uint64_t symbol) {
    for (uint64_t at = info->offset, end = info->offset + info->size; at + 4 <= end && r->ok;) {
        unsigned format = (unsigned)number(r, at, 1), attr = (unsigned)number(r, at + 1, 1);
        uint64_t n = format == FORMAT_SIZED ? number(r, at + 2, 2) : 0;
        if (format == FORMAT_SIZED && attr == which && n >= 8 && number(r, at + 4, 4) == symbol)
            return (int64_t)number(r, at + 8, 4);
        at += 4 + n;
    }
    return 0;
}

static drv_kernel_usage read_kernel(reader *r, base_arena *arena, const section *list, uint64_t n, uint64_t symbol,
                                    const char *name) {
    drv_kernel_usage u = {.name = base_arena_strdup(arena, name)};
    const section *info = find(list, n, ".nv.info"), *code = find(list, n, base_arena_printf(arena, ".text.%s", name));
    const section *shared = find(list, n, base_arena_printf(arena, ".nv.shared.%s", name));
    if (info) {
        u.registers = attribute(r, info, ATTR_REGISTERS, symbol);
        u.local_bytes = attribute(r, info, ATTR_FRAME_SIZE, symbol);
    }
    if (shared)
        u.shared_bytes = (int64_t)shared->size;
    if (code)
        u.code_bytes = (int64_t)code->size;
    return u;
}

bool drv_cubin_usage(base_arena *arena, const void *cubin, size_t n_bytes, drv_kernel_usage **out, size_t *n_out,
                     base_str *err) {
    static const char broken[] = "the bytes are not a cubin";
    reader r = {cubin, n_bytes, true};
    uint64_t n = 0, symbols;
    *out = NULL;
    *n_out = 0;
    bool elf = n_bytes >= 64 && !memcmp(cubin, "\177ELF\2\1", 6) && number(&r, 18, 2) == MACHINE_CUDA &&
               number(&r, 58, 2) == 64;
    const section *list = elf ? read_sections(&r, arena, &n) : NULL, *table = list ? find(list, n, ".symtab") : NULL;
    if (!table || table->type != SECTION_SYMBOLS || table->link >= n) {
        base_str_add(err, broken);
        return false;
    }
    symbols = table->size / 24;
    drv_kernel_usage *found = base_arena_new_array(arena, drv_kernel_usage, symbols + 1);
    for (uint64_t i = 0; i < symbols && r.ok; ++i) {
        uint64_t at = table->offset + i * 24;
        if ((number(&r, at + 4, 1) & 15) != SYMBOL_FUNCTION)
            continue;
        const char *name = string(&r, list[table->link].offset + number(&r, at, 4));
        if (find(list, n, base_arena_printf(arena, ".text.%s", name)))
            found[(*n_out)++] = read_kernel(&r, arena, list, n, i, name);
    }
    if (!r.ok)
        base_str_add(err, broken);
    *out = found;
    return r.ok;
}
