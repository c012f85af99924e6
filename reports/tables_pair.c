// SPDX-License-Identifier: MIT
//
// Tables of a comparison: who is to blame for the change.
#include <stdio.h>

#include "reports/tables_internal.h"

#define N_OF(columns) ((int)(sizeof(columns) / sizeof(columns)[0]))

static const tide_column blame_columns[] = {
    {"key", "Who", TIDE_UNIT_TEXT},    {"part", "Part of no tensor", TIDE_UNIT_FLAG}, {"a_bytes", "A", TIDE_UNIT_BYTES},
    {"b_bytes", "B", TIDE_UNIT_BYTES}, {"change_bytes", "Change", TIDE_UNIT_CHANGE},
};

static void blame(const tide_diff_step *s, int column, tide_report_value *v) {
    switch (column) {
    case 0:
        tide__put_text(v, s->key);
        break;
    case 1:
        tide__put_count(v, s->is_part);
        break;
    case 2:
        tide__put_bytes(v, s->a_bytes);
        break;
    case 3:
        tide__put_bytes(v, s->b_bytes);
        break;
    default:
        tide__put_change(v, s->a_bytes, s->b_bytes);
    }
}
static void by_owner(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    blame(&t->report->diff.by_owner[row], column, v);
}
static void by_kind(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    blame(&t->report->diff.by_kind[row], column, v);
}

static const tide_column row_columns[] = {
    {"name", "Name", TIDE_UNIT_TEXT},
    {"owner", "Operator", TIDE_UNIT_TEXT},
    {"what", "What", TIDE_UNIT_TEXT},
    {"a_size_bytes", "Size in A", TIDE_UNIT_BYTES},
    {"b_size_bytes", "Size in B", TIDE_UNIT_BYTES},
    {"a_at_peak_bytes", "At A's peak", TIDE_UNIT_BYTES},
    {"b_at_peak_bytes", "At B's peak", TIDE_UNIT_BYTES},
    {"change_bytes", "Change of the peak", TIDE_UNIT_CHANGE},
};

static void rows(const tide_report_table *t, size_t row, int column, tide_report_value *v) {
    const tide_diff_row *r = &t->report->diff.rows[row];
    switch (column) {
    case 0:
        tide__put_text(v, r->name);
        break;
    case 1:
        tide__put_text_or_none(v, r->owner);
        break;
    case 2:
        tide__put_text(v, tide_diff_changes(r->what, ", ", "unchanged", v->buf, sizeof v->buf));
        break;
    case 3:
        tide__put_bytes(v, r->what & TIDE_DIFF_ADDED ? TIDE_UNKNOWN_BYTES : r->a_bytes);
        break;
    case 4:
        tide__put_bytes(v, r->what & TIDE_DIFF_REMOVED ? TIDE_UNKNOWN_BYTES : r->b_bytes);
        break;
    case 5:
        tide__put_bytes(v, r->a_at_bytes);
        break;
    case 6:
        tide__put_bytes(v, r->b_at_bytes);
        break;
    default:
        tide__put_change(v, r->a_at_bytes, r->b_at_bytes);
    }
}

size_t tide__report_pair_tables(const tide_report *r, tide_report_table *out) {
    const tide_report_table tables[] = {
        {"change_by_operator", "Change by operator",
         "What each operator holds at the peak of A and of B; the changes sum "
         "to the change of what is held.",
         "Nothing is held by either.", &r->a, blame_columns, N_OF(blame_columns), r->diff.n_by_owner, by_owner, r, ""},
        {"change_by_kind", "Change by kind", "The same by kind of memory.", NULL, &r->a, blame_columns,
         N_OF(blame_columns), r->diff.n_by_kind, by_kind, r, ""},
        {"change_by_item", "Change by tensor", "Matched by name; largest change of the peak first.",
         "There is nothing to compare.", &r->a, row_columns, N_OF(row_columns), r->diff.n, rows, r, ""},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) out[i] = tables[i];
    return sizeof tables / sizeof tables[0];
}
