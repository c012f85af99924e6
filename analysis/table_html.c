// SPDX-License-Identifier: MIT
//
// A table as HTML: sizes as people read them with the exact number as the title. See table.h.
#include <inttypes.h>
#include <string.h>

#include "analysis/html_text.h"
#include "analysis/table.h"

/// The exact number of bytes, for readers who point at the cell.
static void add_exact(const tide_table *t, tide_unit unit, const tide_cell *v, const tide_html_style *style,
                      tide_text *out) {
    if (!v->known || t->is_exact) return;
    if (unit == TIDE_UNIT_BYTES && v->u >= style->exact_from) tide_text_addf(out, " title=\"%" PRIu64 " B\"", v->u);
    if (unit == TIDE_UNIT_CHANGE && v->i != 0) tide_text_addf(out, " title=\"%" PRId64 " B\"", v->i);
}

static void add_cell(const tide_table *t, size_t column, bool is_first, const tide_cell *v,
                     const tide_html_style *style, tide_text *out) {
    const tide_unit unit = t->columns[column].unit;
    const bool is_words = tide_unit_is_words(unit), is_head = is_first && (is_words || style->heads_numbers);
    tide_text said = {0};
    tide_table_say(t, column, v, &said);
    const bool has_no_name = is_head && unit == TIDE_UNIT_NAME && v->known && said.len == 0 && !t->is_exact;
    tide_text_add(out, is_head ? "<th scope=\"row\"" : "<td");
    if (is_words && style->marks_words) tide_text_add(out, " class=\"w\"");
    add_exact(t, unit, v, style, out);
    tide_text_add(out, ">");
    tide_html_add_cut(out, has_no_name ? "(no name)" : tide_text_str(&said), style->max_chars);
    tide_text_add(out, is_head ? "</th>" : "</td>");
    if (said.failed) out->failed = true;
    tide_text_deinit(&said);
}

static void add_heading(const tide_table *t, size_t column, const tide_html_style *style, tide_text *out) {
    const tide_column *c = &t->columns[column];
    tide_text_add(out, "<th scope=\"col\"");
    if (tide_unit_is_words(c->unit) && style->marks_words) tide_text_add(out, " class=\"w\"");
    if (c->sort != NULL) tide_text_addf(out, " data-sort=\"%s\"", c->sort);
    tide_text_add(out, ">");
    if (style->max_head > 0)
        tide_html_add_cut(out, c->title, style->max_head);
    else
        tide_text_add(out, c->title);
    if (t->is_exact && c->unit == TIDE_UNIT_TIME)
        tide_text_add(out, t->facts->axis == TIDE_AXIS_STEPS ? " (step)" : " (ns)");
    tide_text_add(out, "</th>");
}

/// The class says which columns hold words: the style aligns them at their begin.
static void add_class(const tide_table *t, tide_text *out) {
    size_t at = 0;
    tide_text_add(out, " class=\"");
    for (size_t c = 0; c < t->n_columns; c++) {
        if (!tide_table_shows(t, c)) continue;
        if (tide_unit_is_words(t->columns[c].unit) && !t->columns[c].is_right) tide_text_addf(out, "c%zu ", at);
        at++;
    }
    tide_text_add(out, "\"");
}

void tide_table_html(const tide_table *t, size_t max_rows, const tide_html_style *style, tide_text *out) {
    tide_row_room room;
    tide_cell v;
    tide_text_add(out, "<table");
    if (style->attributes != NULL)
        tide_text_add(out, style->attributes);
    else
        add_class(t, out);
    tide_text_add(out, ">\n<thead><tr>");
    for (size_t c = 0; c < t->n_columns; c++)
        if (tide_table_shows(t, c)) add_heading(t, c, style, out);
    tide_text_add(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < t->n_rows && i < max_rows && !out->failed; i++) {
        const void *row = tide_table_row(t, i, &room);
        bool is_first = true;
        tide_text_add(out, "<tr>");
        for (size_t c = 0; c < t->n_columns; c++) {
            if (!tide_table_shows(t, c)) continue;
            tide_table_cell(t, row, c, &v);
            add_cell(t, c, is_first, &v, style, out);
            is_first = false;
        }
        tide_text_add(out, "</tr>\n");
    }
    tide_text_add(out, "</tbody>\n</table>\n");
}
