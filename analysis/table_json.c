// SPDX-License-Identifier: MIT
//
// A table as JSON. See table.h.
#include <stdio.h>
#include <string.h>

#include "analysis/table.h"

/// "resized, moved" as a list of two words; "" as an empty one.
static void add_words(tide_json_out *j, const char *key, const char *text) {
    char word[64];
    tide_json_open(j, key, '[');
    while (*text != '\0') {
        const size_t n = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        tide_json_text(j, NULL, word);
        text += n + strspn(text + n, ", ");
    }
    tide_json_close(j, ']');
}

static void add_value(tide_json_out *j, const char *key, tide_unit unit, const tide_cell *v) {
    if (!v->known) {
        tide_json_null(j, key);
        return;
    }
    switch (unit) {
    case TIDE_UNIT_TEXT:
    case TIDE_UNIT_NAME:
    case TIDE_UNIT_KIND:
        tide_json_text(j, key, v->text);
        break;
    case TIDE_UNIT_WORDS:
        add_words(j, key, v->text);
        break;
    case TIDE_UNIT_CHANGE:
    case TIDE_UNIT_TIME:
        tide_json_i64(j, key, v->i);
        break;
    case TIDE_UNIT_SHARE:
        tide_json_real(j, key, v->real);
        break;
    case TIDE_UNIT_FLAG:
        tide_json_bool(j, key, v->u != 0);
        break;
    default:
        tide_json_u64(j, key, v->u);
    }
}

static void add_row(const tide_table *t, const void *row, tide_json_out *j) {
    char key[64];
    tide_cell v;
    for (size_t c = 0; c < t->n_columns; c++) {
        if (t->columns[c].key == NULL) continue;
        tide_table_cell(t, row, c, &v);
        add_value(j, tide_table_key(t, c, key, sizeof key), t->columns[c].unit, &v);
    }
}

void tide_table_json(const tide_table *t, bool is_flat, tide_json_out *j) {
    tide_row_room room;
    tide_json_open(j, t->name, '[');
    for (size_t i = 0; i < t->n_rows && !j->out->failed; i++) {
        (is_flat ? tide_json_open_flat : tide_json_open)(j, NULL, '{');
        add_row(t, tide_table_row(t, i, &room), j);
        tide_json_close(j, '}');
    }
    tide_json_close(j, ']');
}
