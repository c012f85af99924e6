// SPDX-License-Identifier: MIT
//
// The list of tables and how a value is said. What stands in them is in tables_side.c and tables_pair.c.
#include "reports/tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reports/tables_internal.h"

size_t tide_report_tables(const tide_report *r, tide_report_table out[TIDE_REPORT_MAX_TABLES]) {
    size_t n = 0;
    if (r->has_b) n += tide__report_pair_tables(r, out + n);
    n += tide__report_side_tables(r, &r->a, "a", out + n);
    if (r->has_b) n += tide__report_side_tables(r, &r->b, "b", out + n);
    return n;
}

const char *tide_report_key(const tide_report_table *t, int column, char *buf, size_t buf_bytes) {
    return tide_column_key(&t->columns[column], t->side->facts->axis, buf, buf_bytes);
}

bool tide_report_knows(const tide_report_table *t, int column) {
    if (strcmp(t->name, "items") == 0) return true;
    for (size_t row = 0; row < t->n_rows; row++) {
        tide_report_value v = {0};
        t->value(t, row, column, &v);
        if (v.known && (t->columns[column].unit != TIDE_UNIT_TEXT || v.text[0] != '\0')) return true;
    }
    return t->n_rows == 0;
}

const char *tide_report_say(const tide_report_table *t, int column, const tide_report_value *v, char *buf,
                            size_t buf_bytes) {
    char size[24];
    if (!v->known) return "";
    switch (t->columns[column].unit) {
    case TIDE_UNIT_TEXT:
        return v->text;
    case TIDE_UNIT_BYTES:
        return tide_format_bytes(v->u, buf, buf_bytes);
    case TIDE_UNIT_CHANGE:
        snprintf(buf, buf_bytes, "%s%s",
                 v->i < 0   ? "-"
                 : v->i > 0 ? "+"
                            : "",
                 tide_format_bytes(v->i < 0 ? 0 - (uint64_t)v->i : (uint64_t)v->i, size, sizeof size));
        return buf;
    case TIDE_UNIT_COUNT:
    case TIDE_UNIT_ADDRESS:
        snprintf(buf, buf_bytes, "%" PRIu64, v->u);
        return buf;
    case TIDE_UNIT_TIME:
        return tide_report_format_time(t->side->facts, (int64_t)((uint64_t)t->side->facts->origin + v->u), false, buf,
                                       buf_bytes);
    case TIDE_UNIT_SHARE:
        snprintf(buf, buf_bytes, "%.1f %%", 100.0 * v->real);
        return buf;
    case TIDE_UNIT_FLAG:
        return v->u ? "yes" : "no";
    }
    return "";
}
