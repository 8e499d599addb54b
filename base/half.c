/* The two 16-bit float formats: f16 (IEEE binary16) and bf16 (the upper half of a binary32).  Widening is exact; narrowing
 * rounds to nearest, ties to even, overflows to infinity, keeps subnormals and keeps a NaN a (quiet) NaN. */
#include "base/base.h"

#include <string.h>

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

float base_f32_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u) /* infinity; a NaN becomes quiet */
        return float_of(sign | 0x7f800000u | rest << 13 | (rest > 0x7c00u ? 0x00400000u : 0u));
    if (rest >= 0x0400u)
        return float_of(sign | ((rest << 13) + 0x38000000u));
    return float_of(sign | bits_of((float)rest * 0x1p-24f));
}

uint16_t base_f16_from_f32(float x) {
    uint32_t u = bits_of(x), sign = u >> 16 & 0x8000u, rest = u & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (rest >> 13 & 0x3ffu));
    if (rest >= 0x477ff000u) /* 65520 and more */
        return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u) /* below 2^-14: adding 1/2 rounds to a multiple of 2^-24 */
        return (uint16_t)(sign | (bits_of(float_of(rest) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | ((rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13));
}

float base_f32_from_bf16(uint16_t h) { return float_of((uint32_t)h << 16); }

uint16_t base_bf16_from_f32(float x) {
    uint32_t u = bits_of(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
