// SPDX-License-Identifier: MIT
//
// UTF-8 in and out. See utf8.h.
#include "core/base/utf8.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/text.h"

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
    TIDE_ASSERT(value >= 0x80 && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF));
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

// ---- unsafe characters ----

bool tide_utf8_is_unsafe(uint32_t cp) {
    // Marks of the bidirectional algorithm (UAX 9, section 2), zero widths, separators, tags, noncharacters.
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x00AD, 0x00AD}, {0x061C, 0x061C}, {0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E},
                  {0x2060, 0x206F}, {0xFDD0, 0xFDEF}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};
    if (cp == TIDE_UTF8_BAD || tide_utf8_is_control(cp)) return true;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (cp >= ranges[i].first && cp <= ranges[i].last) return true;
    return (cp & 0xFFFE) == 0xFFFE;
}

bool tide_utf8_is_formula(const char *text) {
    return text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL && strcmp(text, "-") != 0;
}

void tide_utf8_add_clean(tide_text *out, const char *text) {
    const char *good = text; // what is shown as it is, up to `text`
    uint32_t cp;
    for (size_t n; (n = tide_utf8_decode(text, &cp)) > 0; text += n) {
        if (!tide_utf8_is_unsafe(cp)) continue;
        tide_text_add_n(out, good, (size_t)(text - good));
        tide_text_add(out, TIDE_UTF8_REPLACEMENT);
        good = text + n;
    }
    tide_text_add_n(out, good, (size_t)(text - good));
}

/// RFC 8259, section 7: two halves for what is beyond 16 bits.
static void add_escape(tide_text *out, uint32_t cp) {
    if (cp == TIDE_UTF8_BAD)
        tide_text_add(out, TIDE_UTF8_REPLACEMENT);
    else if (cp > 0xFFFF)
        tide_text_addf(out, "\\u%04x\\u%04x", 0xD800u + ((unsigned)cp - 0x10000u) / 0x400u,
                       0xDC00u + ((unsigned)cp - 0x10000u) % 0x400u);
    else if (cp == '\n')
        tide_text_add(out, "\\n");
    else
        tide_text_addf(out, "\\u%04x", (unsigned)cp);
}

void tide_utf8_add_json(tide_text *out, const char *text) {
    const char *good = text;
    uint32_t cp;
    for (size_t n; (n = tide_utf8_decode(text, &cp)) > 0; text += n) {
        if (!tide_utf8_is_unsafe(cp) && cp != '"' && cp != '\\') continue;
        tide_text_add_n(out, good, (size_t)(text - good));
        good = text + n;
        if (cp == '"' || cp == '\\')
            tide_text_addf(out, "\\%c", (char)cp);
        else
            add_escape(out, cp);
    }
    tide_text_add_n(out, good, (size_t)(text - good));
}

void tide_utf8_add_json_document(tide_text *out, const char *json, size_t len) {
    const char *good = json, *end = json + len;
    uint32_t cp;
    for (size_t n; json < end && (n = tide_utf8_decode(json, &cp)) > 0; json += n) {
        if (cp < 0x7F || !tide_utf8_is_unsafe(cp)) continue; // below are the document's own line ends
        tide_text_add_n(out, good, (size_t)(json - good));
        good = json + n;
        add_escape(out, cp);
    }
    TIDE_ASSERT(json <= end && good <= json);
    tide_text_add_n(out, good, (size_t)(end - good));
}
