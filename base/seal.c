/* A seal is the xxh3-128 of all before it, low half first, and eight bytes that say so. */
#include "base/base.h"

#include <string.h>

static const char word[8] = {'T', 'I', 'G', 'A', 'S', 'E', 'A', 'L'};

static void make(const void *bytes, size_t n, unsigned char out[BASE_SEAL_BYTES]) {
    base_hash128 h = base_hash_bytes(bytes, n);
    for (int i = 0; i < 8; i++) {
        out[i] = (unsigned char)(h.lo >> (8 * i));
        out[8 + i] = (unsigned char)(h.hi >> (8 * i));
    }
    memcpy(out + 16, word, sizeof word);
}

void base_seal_add(base_str *s) {
    unsigned char seal[BASE_SEAL_BYTES];
    make(s->data, s->len, seal);
    base_str_add_n(s, (const char *)seal, sizeof seal);
}

base_seal base_seal_check(const void *bytes, size_t n) {
    unsigned char seal[BASE_SEAL_BYTES];
    if (n < sizeof seal)
        return BASE_SEAL_NONE;
    const unsigned char *there = (const unsigned char *)bytes + n - sizeof seal;
    if (memcmp(there + 16, word, sizeof word) != 0)
        return BASE_SEAL_NONE;
    make(bytes, n - sizeof seal, seal);
    return memcmp(there, seal, sizeof seal) == 0 ? BASE_SEAL_GOOD : BASE_SEAL_BROKEN;
}
