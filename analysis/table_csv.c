// SPDX-License-Identifier: MIT
//
// A table as CSV. See table.h.
#include <inttypes.h>
#include <string.h>

#include "analysis/table.h"
#include "core/base/utf8.h"

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

static void add_name(const char *text, tide_csv_names names, tide_text *out) {
    tide_text safe = {0};
    if (names != TIDE_CSV_EXACT && tide_utf8_is_formula(text)) tide_text_add(&safe, "'");
    if (names == TIDE_CSV_CLEAN)
        tide_utf8_add_clean(&safe, text);
    else
        tide_text_add(&safe, text);
    tide_csv_add(out, tide_text_str(&safe));
    if (safe.failed) out->failed = true;
    tide_text_deinit(&safe);
}

static void add_value(const tide_cell *v, tide_unit unit, tide_csv_names names, tide_text *out) {
    if (!v->known) return;
    switch (unit) {
    case TIDE_UNIT_TEXT:
    case TIDE_UNIT_NAME:
    case TIDE_UNIT_WORDS:
    case TIDE_UNIT_KIND:
        add_name(v->text, names, out);
        break;
    case TIDE_UNIT_CHANGE:
    case TIDE_UNIT_TIME:
        tide_text_addf(out, "%" PRId64, v->i);
        break;
    case TIDE_UNIT_SHARE:
        tide_text_addf(out, "%.6f", v->real);
        break;
    default:
        tide_text_addf(out, "%" PRIu64, v->u);
    }
}

void tide_table_csv(const tide_table *t, tide_csv_names names, tide_text *out) {
    tide_row_room room;
    char key[64];
    tide_cell v;
    const char *before = "";
    for (size_t c = 0; c < t->n_columns; c++) {
        if (t->columns[c].key == NULL) continue;
        tide_text_addf(out, "%s%s", before, tide_table_key(t, c, key, sizeof key));
        before = ",";
    }
    tide_text_add(out, "\r\n");
    for (size_t i = 0; i < t->n_rows && !out->failed; i++) {
        const void *row = tide_table_row(t, i, &room);
        before = "";
        for (size_t c = 0; c < t->n_columns; c++) {
            if (t->columns[c].key == NULL) continue;
            tide_table_cell(t, row, c, &v);
            tide_text_add(out, before);
            add_value(&v, t->columns[c].unit, names, out);
            before = ",";
        }
        tide_text_add(out, "\r\n");
    }
}
