/* xxh3-128 over length-prefixed fields: ("ab", "c") and ("a", "bc") differ. */
#include "base/base.h"

#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* the size of its state */
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(base_hasher), "base_hasher holds the state of xxHash");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(base_hasher), "and is aligned as it wants");

static XXH3_state_t *state_of(base_hasher *h) { return (XXH3_state_t *)(void *)h->state; }

void base_hasher_init(base_hasher *h) {
    XXH3_INITSTATE(state_of(h));
    XXH3_128bits_reset(state_of(h));
}

void base_hasher_add(base_hasher *h, const void *bytes, size_t n) {
    if (n)
        XXH3_128bits_update(state_of(h), bytes, n);
}

void base_hasher_field(base_hasher *h, const void *bytes, size_t n) {
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)n >> (8 * i));
    XXH3_128bits_update(state_of(h), length, sizeof length);
    base_hasher_add(h, bytes, n);
}

base_hash128 base_hasher_digest(const base_hasher *h) {
    XXH128_hash_t x = XXH3_128bits_digest((const XXH3_state_t *)(const void *)h->state);
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

uint64_t base_hash_name(const char *text, size_t n) {
    uint64_t h = 14695981039346656037U;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 1099511628211U;
    return h;
}
