/* xxh3-128 over length-prefixed fields: ("ab", "c") and ("a", "bc") differ. */
#include "base/base.h"

#include <string.h>
#include <xxhash.h>

struct base_hasher {
    XXH3_state_t *state;
};

base_hasher *base_hasher_new(void) {
    base_hasher *h = base_alloc(sizeof *h);
    if (!h)
        return NULL;
    h->state = base_inject_hit(BASE_INJECT_ALLOC) ? NULL : XXH3_createState();
    if (!h->state) {
        base_free(h);
        return NULL;
    }
    XXH3_128bits_reset(h->state);
    return h;
}

void base_hasher_free(base_hasher *h) {
    if (!h)
        return;
    XXH3_freeState(h->state);
    base_free(h);
}

void base_hasher_field(base_hasher *h, const void *bytes, size_t n) {
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)n >> (8 * i));
    XXH3_128bits_update(h->state, length, sizeof length);
    if (n)
        XXH3_128bits_update(h->state, bytes, n);
}

base_hash128 base_hasher_digest(const base_hasher *h) {
    XXH128_hash_t x = XXH3_128bits_digest(h->state);
    return (base_hash128){x.low64, x.high64};
}

base_hash128 base_hash_bytes(const void *bytes, size_t n) {
    XXH128_hash_t x = XXH3_128bits(n ? bytes : "", n);
    return (base_hash128){x.low64, x.high64};
}

void base_hash_hex(base_hash128 h, char out[33]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        out[i] = digits[(h.hi >> (60 - 4 * i)) & 15];
        out[16 + i] = digits[(h.lo >> (60 - 4 * i)) & 15];
    }
    out[32] = 0;
}
