// SPDX-License-Identifier: MIT
//
// See table.h.
#include "analysis/table.h"

#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

const char *tide_column_key(const tide_column *column, tide_axis axis, char *buf, size_t buf_bytes) {
    if (column->unit != TIDE_UNIT_TIME) return column->key;
    snprintf(buf, buf_bytes, "%s_%s", column->key, axis == TIDE_AXIS_STEPS ? "step" : "ns");
    return buf;
}

void tide_csv_add(tide_text *out, const char *text) {
    const bool quoted = strpbrk(text, ",\"\r\n\t") != NULL || text[0] == ' ' || tide_utf8_is_formula(text);
    if (quoted) tide_text_add_n(out, "\"", 1);
    uint32_t cp;
    for (const char *p = text; *p != '\0';) {
        const size_t n = tide_utf8_decode(p, &cp);
        const bool kept = !tide_utf8_is_unsafe(cp) || cp == '\n' || cp == '\r' || cp == '\t';
        if (cp == '"') tide_text_add_n(out, "\"", 1);
        if (kept) {
            tide_text_add_n(out, p, n);
        } else {
            tide_text_add(out, TIDE_UTF8_REPLACEMENT);
        }
        p += n;
    }
    if (quoted) tide_text_add_n(out, "\"", 1);
}

void tide_csv_add_guarded(tide_text *out, const char *text) {
    if (!tide_utf8_is_formula(text)) {
        tide_csv_add(out, text);
        return;
    }
    tide_text guarded = {0};
    tide_text_add(&guarded, "'");
    tide_text_add(&guarded, text);
    tide_csv_add(out, tide_text_str(&guarded));
    if (guarded.failed) out->failed = true;
    tide_text_deinit(&guarded);
}
