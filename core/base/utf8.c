// SPDX-License-Identifier: MIT
//
// UTF-8 in and out. See utf8.h.
#include "core/base/utf8.h"

size_t tide_utf8_decode(const char *text, uint32_t *cp) {
    const unsigned char *p = (const unsigned char *)text;
    *cp = p[0];
    if (p[0] < 0x80) return p[0] != 0;
    *cp = TIDE_UTF8_BAD;
    if (p[0] < 0xC2 || p[0] > 0xF4) return 1;
    // Only the second byte has narrower ranges than 80..BF.
    unsigned char low = 0x80, high = 0xBF;
    if (p[0] == 0xE0) low = 0xA0;
    if (p[0] == 0xED) high = 0x9F;
    if (p[0] == 0xF0) low = 0x90;
    if (p[0] == 0xF4) high = 0x8F;
    if (p[1] < low || p[1] > high) return 1;
    const size_t n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    uint32_t value = p[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) return 1;
        value = value << 6 | (p[i] & 0x3Fu);
    }
    *cp = value;
    return n;
}

size_t tide_utf8_encode(uint32_t cp, char out[4]) {
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) cp = 0xFFFD;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    const size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)((0xF00u >> n) | cp); // n bits set above, then 0: C0, E0, F0
    return n;
}

bool tide_utf8_is_control(uint32_t cp) { return cp < 0x20 || (cp >= 0x7F && cp < 0xA0); }

bool tide_utf8_turns_direction(uint32_t cp) {
    return cp == 0x061C || cp == 0x200E || cp == 0x200F || (cp >= 0x202A && cp <= 0x202E) ||
           (cp >= 0x2066 && cp <= 0x2069);
}
