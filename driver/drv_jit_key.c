/* What decides the code, as the key of the cache: every field that could change a byte of it.  Made at every lookup, so
 * little is formatted and, unless dimensions are fixed, nothing allocated. */
#define _GNU_SOURCE
#include "driver/drv_jit.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- which build of the compiler this is ------------------------------------------------------------------------- */
static pthread_once_t build_once = PTHREAD_ONCE_INIT;
static char build_text[2 * 64 + 1];

static void note_text(const char *at, size_t n) {
    Elf64_Nhdr h;
    while (n >= sizeof h) {
        memcpy(&h, at, sizeof h);
        size_t name = (h.n_namesz + 3U) & ~3U, words = (h.n_descsz + 3U) & ~3U;
        if (name > n - sizeof h || words > n - sizeof h - name)
            return;
        const unsigned char *bytes = (const unsigned char *)at + sizeof h + name;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(at + sizeof h, "GNU", 4))
            for (size_t i = 0; i < h.n_descsz && i < 64; i++)
                snprintf(build_text + 2 * i, 3, "%02x", bytes[i]);
        at += sizeof h + name + words;
        n -= sizeof h + name + words;
    }
}

/* The build ID of the library (or program) that this function is in. */
static int visit(struct dl_phdr_info *info, size_t size, void *here) {
    (void)size;
    bool ours = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        ours |= info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)here - begin < info->dlpi_phdr[i].p_memsz;
    }
    for (int i = 0; ours && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            note_text((const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), info->dlpi_phdr[i].p_memsz);
    return ours;
}

static void find_build(void) { dl_iterate_phdr(visit, (void *)(uintptr_t)find_build); }

const char *drv_build_id(void) {
    pthread_once(&build_once, find_build);
    return build_text;
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */
static void add(drv_key *k, const char *name, const void *bytes, size_t n) {
    k->fields[k->n++] = (tiga_cache_field){name, bytes, n};
}

static void add_text(drv_key *k, const char *name, const char *text) { add(k, name, text, strlen(text)); }

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool add_defines(drv_key *k, const tigac_define *defines, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t at = k->words.len;
        base_str_addf(&k->words, "%s=%lld", defines[i].name, (long long)defines[i].value);
        add(k, "define", NULL, k->words.len - at);
    }
    size_t at = 0; /* the text has moved while it grew */
    for (size_t i = k->n - (int)n; i < (size_t)k->n; i++) {
        k->fields[i].bytes = k->words.data + at;
        at += k->fields[i].n_bytes;
    }
    return !k->words.failed;
}

bool drv_key_init(drv_key *k, const drv_key_parts *p) {
    k->n = 0;
    k->words = (base_str){0};
    k->fields = k->few;
    if (p->n_defines > DRV_KEY_DEFINES)
        k->fields = base_alloc((DRV_KEY_FIELDS + p->n_defines) * sizeof *k->fields);
    if (!k->fields)
        return false;
    add_text(k, "kind", p->kind);
    add_text(k, "file", base_name(p->file_name));
    add(k, "source", p->text, p->n_text);
    add_text(k, "flags", p->flags);
    add_text(k, "cpu", p->cpu);
    add_text(k, "features", p->features);
    add_text(k, "compiler", tigac_version_full());
    add_text(k, "build", drv_build_id());
    add_text(k, "abi", DRV_TEXT(TIGA_ABI_VERSION));
    return add_defines(k, p->defines, p->n_defines);
}

void drv_key_fini(drv_key *k) {
    base_str_fini(&k->words);
    if (k->fields != k->few)
        base_free(k->fields);
}
