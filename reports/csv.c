// SPDX-License-Identifier: MIT
//
// CSV: one table, RFC 4180 (header, CRLF, doubled quotes), units in the column names, plain integers, an empty cell for
// what is not known. Moments count from the begin of the axis.
#include "reports/render.h"

#include <inttypes.h>
#include <string.h>

static void add_value(const tide_report_table *t, int column, const tide_report_value *v, tide_text *out) {
    if (!v->known) return;
    switch (t->columns[column].unit) {
    case TIDE_UNIT_TEXT:
        (t->report->opt.exact_names ? tide_csv_add : tide_csv_add_guarded)(out, v->text);
        break;
    case TIDE_UNIT_CHANGE:
        tide_text_addf(out, "%" PRId64, v->i);
        break;
    case TIDE_UNIT_SHARE:
        tide_text_addf(out, "%.6f", v->real);
        break;
    default:
        tide_text_addf(out, "%" PRIu64, v->u);
    }
}

static void add_table(const tide_report_table *t, tide_text *out) {
    char key[64];
    for (int c = 0; c < t->n_columns; c++)
        tide_text_addf(out, "%s%s", c > 0 ? "," : "", tide_report_key(t, c, key, sizeof key));
    tide_text_add(out, "\r\n");
    for (size_t row = 0; row < t->n_rows && !out->failed; row++) {
        for (int c = 0; c < t->n_columns; c++) {
            tide_report_value v = {0};
            t->value(t, row, c, &v);
            if (c > 0) tide_text_add(out, ",");
            add_value(t, c, &v, out);
        }
        tide_text_add(out, "\r\n");
    }
}

/// "items", "kinds", …; of the second input with "b." in front.
tide_status tide_report_csv(const tide_report *r, tide_text *out, tide_error *err) {
    const char *want = r->opt.table != NULL ? r->opt.table : r->has_b ? "change_by_item" : "items";
    tide_report_table tables[TIDE_REPORT_MAX_TABLES];
    const size_t n = tide_report_tables(r, tables);
    const bool of_b = strncmp(want, "b.", 2) == 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tables[i].name, of_b ? want + 2 : want) != 0 || (strcmp(tables[i].of, "b") == 0) != of_b) continue;
        add_table(&tables[i], out);
        return TIDE_OK;
    }
    TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "the report has no table '%.64s'", want);
    tide_text names = {0};
    for (size_t i = 0; i < n; i++)
        tide_text_addf(&names, "%s%s%s", i > 0 ? ", " : "", strcmp(tables[i].of, "b") == 0 ? "b." : "", tables[i].name);
    tide_error_hint(err, "there are %s", tide_text_str(&names));
    tide_text_deinit(&names);
    return TIDE_ERR_NOT_FOUND;
}
