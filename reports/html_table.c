// SPDX-License-Identifier: MIT
//
// A table of the page: sizes as people read them with the exact number behind, names isolated for scripts that run from
// right to left.
#include "reports/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reports/escape.h"

enum { MAX_CHARS = 120 };

static bool is_words(const tide_report_table *t, int column) { return t->columns[column].unit == TIDE_UNIT_TEXT; }

/// Sizes carry the exact number for those who point at them; the table of items has it in the cell, for sorting by eye.
static void add_cell(const tide_report_table *t, size_t row, int column, tide_text *out) {
    tide_report_value v = {0};
    char buf[96];
    t->value(t, row, column, &v);
    const tide_unit type = t->columns[column].unit;
    if (is_words(t, column)) {
        tide_text_add(out, column == 0 ? "<th scope=\"row\">" : "<td>");
        if (v.known) tide_report_add_html_cut(out, v.text[0] != '\0' || column > 0 ? v.text : "(no name)", MAX_CHARS);
        tide_text_add(out, column == 0 ? "</th>" : "</td>");
        return;
    }
    if (v.known && type == TIDE_UNIT_BYTES && v.u >= 1024)
        tide_text_addf(out, "<td title=\"%" PRIu64 " B\">", v.u);
    else if (v.known && type == TIDE_UNIT_CHANGE && v.i != 0)
        tide_text_addf(out, "<td title=\"%" PRId64 " B\">", v.i);
    else
        tide_text_add(out, "<td>");
    tide_text_add(out, tide_report_say(t, column, &v, buf, sizeof buf));
    tide_text_add(out, "</td>");
}

void tide_report_html_table(const tide_report_table *t, size_t max_rows, tide_text *out) {
    char id[64];
    snprintf(id, sizeof id, "t-%s-%s", t->name, t->of[0] != '\0' ? t->of : "ab");
    const size_t shown = t->n_rows < max_rows ? t->n_rows : max_rows;
    tide_text_addf(out, "<section>\n<h3 id=\"%s\">%s%s</h3>\n", id, t->title,
                   !t->report->has_b || t->of[0] == '\0' ? ""
                   : t->of[0] == 'a'                     ? " (A)"
                                                         : " (B)");
    if (t->what[0] != '\0') tide_text_addf(out, "<p class=\"mute\">%s</p>\n", t->what);
    if (t->n_rows == 0) {
        tide_text_addf(out, "<p>%s</p>\n</section>\n", t->empty);
        return;
    }
    tide_text_addf(out, "<div class=\"scroll\" role=\"region\" aria-labelledby=\"%s\" tabindex=\"0\">\n<table class=\"",
                   id);
    bool known[TIDE_REPORT_MAX_COLUMNS];
    int at = 0;
    for (int c = 0; c < t->n_columns; c++) {
        known[c] = tide_report_knows(t, c);
        if (known[c] && is_words(t, c)) tide_text_addf(out, "c%d ", at);
        at += known[c];
    }
    tide_text_add(out, "\">\n<thead><tr>");
    for (int c = 0; c < t->n_columns; c++)
        if (known[c]) tide_text_addf(out, "<th scope=\"col\">%s</th>", t->columns[c].title);
    tide_text_add(out, "</tr></thead>\n<tbody>\n");
    for (size_t row = 0; row < shown && !out->failed; row++) {
        tide_text_add(out, "<tr>");
        for (int c = 0; c < t->n_columns; c++)
            if (known[c]) add_cell(t, row, c, out);
        tide_text_add(out, "</tr>\n");
    }
    tide_text_add(out, "</tbody>\n</table>\n</div>\n");
    if (shown < t->n_rows)
        tide_text_addf(out, "<p class=\"mute\">%zu more rows are in the CSV and JSON reports.</p>\n",
                       t->n_rows - shown);
    tide_text_add(out, "</section>\n");
}
