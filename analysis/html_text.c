// SPDX-License-Identifier: MIT
//
// Foreign text for HTML, CSV and JSON. See html_text.h.
#include "analysis/html_text.h"

#include <string.h>

#include "core/base/utf8.h"

/// The character at *p as HTML; *p moves on.
static void add_html_char(tide_text *out, const char **p) {
    uint32_t cp;
    const size_t n = tide_utf8_decode(*p, &cp);
    const char *reference = NULL;
    switch (cp) {
    case '&':
        reference = "&amp;";
        break;
    case '<':
        reference = "&lt;";
        break;
    case '>':
        reference = "&gt;";
        break;
    case '"':
        reference = "&quot;";
        break;
    case '\'':
        reference = "&#39;";
        break;
    default:
        if (tide_utf8_is_unsafe(cp)) reference = TIDE_UTF8_REPLACEMENT;
        break;
    }
    if (reference != NULL) {
        tide_text_add(out, reference);
    } else {
        tide_text_add_n(out, *p, n);
    }
    *p += n;
}

void tide_html_add(tide_text *out, const char *text) {
    for (const char *p = text; *p != '\0';) add_html_char(out, &p);
}

/// Blocks of scripts that are written from right to left (Unicode 16.0, DerivedBidiClass: R and AL), and marks.
static bool goes_left(uint32_t cp) {
    return (cp >= 0x0590 && cp <= 0x08FF) || (cp >= 0xFB1D && cp <= 0xFDFF) || (cp >= 0xFE70 && cp <= 0xFEFE) ||
           (cp >= 0x10800 && cp <= 0x10FFF) || (cp >= 0x1E800 && cp <= 0x1EFFF) ||
           (cp != TIDE_UTF8_BAD && tide_utf8_turns_direction(cp));
}

static bool is_right_to_left(const char *text, const char *end) {
    uint32_t cp;
    for (size_t n; text < end && (n = tide_utf8_decode(text, &cp)) > 0; text += n) {
        if (goes_left(cp)) return true;
    }
    return false;
}

bool tide_html_is_right_to_left(const char *text) { return is_right_to_left(text, text + strlen(text)); }

void tide_html_add_line(tide_text *out, const char *text) {
    for (const char *p = text; *p != '\0';) {
        const char *end = p + strcspn(p, " ");
        const bool isolate = is_right_to_left(p, end);
        if (isolate) tide_text_add(out, "<bdi dir=\"ltr\">");
        while (p < end) add_html_char(out, &p);
        if (isolate) tide_text_add(out, "</bdi>");
        for (; *p == ' '; p++) tide_text_add_n(out, p, 1);
    }
}

static void skip_char(const char **p) {
    uint32_t cp;
    *p += tide_utf8_decode(*p, &cp);
}

void tide_html_add_cut(tide_text *out, const char *text, size_t max_chars) {
    size_t total = 0;
    for (const char *p = text; *p != '\0'; total++) skip_char(&p);
    const bool cut = total > max_chars;
    const size_t head = cut ? max_chars / 2 : total, tail = cut ? max_chars - head - 1 : 0;
    size_t i = 0;
    for (const char *p = text; *p != '\0'; i++) {
        if (cut && i == head) tide_text_add(out, "\xE2\x80\xA6");
        if (i < head || i >= total - tail) {
            add_html_char(out, &p);
        } else {
            skip_char(&p);
        }
    }
}

void tide_html_add_href(tide_text *out, const char *file_name) {
    for (const char *p = file_name; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (plain || strchr("-._~", c) != NULL)
            tide_text_add_n(out, p, 1);
        else
            tide_text_addf(out, "%%%02X", c);
    }
}

void tide_html_add_json(tide_text *out, const char *json, size_t len) {
    size_t from = 0;
    for (size_t i = 0; i < len; i++) {
        const char *escape = json[i] == '<'   ? "\\u003c"
                             : json[i] == '>' ? "\\u003e"
                             : json[i] == '&' ? "\\u0026"
                                              : NULL;
        if (escape == NULL) continue;
        tide_text_add_n(out, json + from, i - from);
        tide_text_add(out, escape);
        from = i + 1;
    }
    tide_text_add_n(out, json + from, len - from);
}
