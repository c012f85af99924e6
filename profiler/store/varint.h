// SPDX-License-Identifier: MIT
//
// varint: unsigned numbers in as few bytes as they need (LEB128): seven bits per byte, the lowest first, bit 7 set in
// every byte but the last; signed ones zigzag first (0, -1, 1, -2, ... become 0, 1, 2, 3, ...). And numbers of fixed
// width, little-endian. Private to profiler/store.
//
//     300 = 0b10_0101100  ->  1 0101100 | 0 0000010
//
// Lengths are not guessed by a branch but computed: they vary from value to value, and a branch that is wrong every
// other time costs more than the number. Both directions therefore touch 8 bytes at once, whatever the length.
#ifndef TIDE_PROFILER_STORE_VARINT_H
#define TIDE_PROFILER_STORE_VARINT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    TIDE__VARINT_BYTES = 10, ///< no number takes more
    /// Bytes behind a number that writing and reading may touch.
    TIDE__VARINT_SLACK = 8
};

static inline uint64_t tide__le64(uint64_t v) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(v);
#else
    return v;
#endif
}
static inline void tide__put_le64(uint8_t *p, uint64_t v) {
    v = tide__le64(v);
    memcpy(p, &v, sizeof v);
}
static inline uint64_t tide__get_le64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return tide__le64(v);
}
static inline void tide__put_le32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (8 * i));
}
static inline uint32_t tide__get_le32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t tide__zigzag(uint64_t v) { return v << 1 ^ (uint64_t)((int64_t)v >> 63); }
static inline uint64_t tide__unzigzag(uint64_t v) { return v >> 1 ^ (0 - (v & 1)); }

/// Numbers of more than eight bytes.
static inline uint8_t *tide__varint_put_long(uint8_t *p, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

/// @return the byte behind the number
static inline uint8_t *tide__varint_put(uint8_t *p, uint64_t v) {
    if (__builtin_expect(v >> 28 != 0, 0)) {
        if (__builtin_expect(v >> 56 != 0, 0)) return tide__varint_put_long(p, v);
        v = (v & UINT64_C(0x000000000fffffff)) | (v & UINT64_C(0x00fffffff0000000)) << 4;
    }
    // Seven bits in each byte; the last one that is not empty ends the number.
    v = (v & UINT64_C(0x00003fff00003fff)) | (v & UINT64_C(0x0fffc0000fffc000)) << 2;
    v = (v & UINT64_C(0x007f007f007f007f)) | (v & UINT64_C(0x3f803f803f803f80)) << 1;
    const unsigned last = (unsigned)(63 - __builtin_clzll(v | 1)) / 8; // byte
    tide__put_le64(p, v | (UINT64_C(0x8080808080808080) & ((UINT64_C(1) << (8 * last)) - 1)));
    return p + last + 1;
}

/// Numbers of more than eight bytes.
static inline const uint8_t *tide__varint_get_long(const uint8_t *p, uint64_t *out, bool *bad) {
    uint64_t v = 0;
    for (int i = 0; i < TIDE__VARINT_BYTES; i++) {
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] >= 0x80) continue;
        if (i == TIDE__VARINT_BYTES - 1 && p[i] > 1) break;
        *out = v;
        return p + i + 1;
    }
    *bad = true;
    *out = 0;
    return p;
}

/// @return the byte behind the number; *bad is set when ten bytes do not end it or it passes 64 bits
static inline const uint8_t *tide__varint_get(const uint8_t *p, uint64_t *out, bool *bad) {
    uint64_t v = tide__get_le64(p);
    const uint64_t stop = ~v & UINT64_C(0x8080808080808080);
    if (__builtin_expect(stop == 0, 0)) return tide__varint_get_long(p, out, bad);
    v &= (stop ^ (stop - 1)) & UINT64_C(0x7f7f7f7f7f7f7f7f);
    v = (v & UINT64_C(0x007f007f007f007f)) | (v & UINT64_C(0x7f007f007f007f00)) >> 1;
    v = (v & UINT64_C(0x00003fff00003fff)) | (v & UINT64_C(0x3fff00003fff0000)) >> 2;
    *out = (v & UINT64_C(0x000000000fffffff)) | (v & UINT64_C(0x0fffffff00000000)) >> 4;
    return p + (__builtin_ctzll(stop) >> 3) + 1;
}

#endif
