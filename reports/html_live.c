// SPDX-License-Identifier: MIT
//
// See html_live.h; the ids are those that reports/page/*.js asks for.
#include "reports/html_live.h"

#include <inttypes.h>
#include <stdio.h>

#include "reports/escape.h"

static const char controls[] =
    "<p class=\"tools\">\n"
    "<label>Search <input id=\"live-search\" type=\"search\" placeholder=\"name or operator\"></label>\n"
    "<label>Show <select id=\"live-kind\"></select></label>\n"
    "<label>Sort by <select id=\"live-sort\"><option value=\"begin\">begin</option><option value=\"size\">size</option>"
    "<option value=\"life\">life</option><option value=\"place\">place</option><option "
    "value=\"name\">name</option></select></label>\n"
    "<label>View <select id=\"live-view\"></select></label>\n";

static const char pictures[] =
    "<span class=\"buttons\"><button type=\"button\" id=\"live-in\" aria-label=\"Zoom in\">+</button>"
    "<button type=\"button\" id=\"live-out\" aria-label=\"Zoom out\">\xE2\x88\x92</button>"
    "<button type=\"button\" id=\"live-whole\">Whole</button><button type=\"button\" id=\"live-fit\">Fit "
    "selection</button>"
    "<button type=\"button\" id=\"live-peak\">Peak</button></span>\n</p>\n"
    "<p id=\"live-keys\" class=\"mute\">Keys: arrows move selection and cursor, + and \xE2\x88\x92 zoom, shift with "
    "arrows "
    "pans, 0 whole, f fits, p peak, m memory, / search, Esc clears. Wheel over the curve zooms, dragging pans.</p>\n"
    "<div id=\"live-plot\" role=\"group\" aria-label=\"Timeline\" aria-describedby=\"live-keys\" tabindex=\"0\">\n"
    "<canvas id=\"live-curve\" aria-hidden=\"true\"></canvas>\n<canvas id=\"live-mini\" "
    "aria-hidden=\"true\"></canvas>\n"
    "<div id=\"live-rows\" tabindex=\"0\" role=\"region\" aria-label=\"Lifetimes\"><canvas id=\"live-gantt\" "
    "aria-hidden=\"true\"></canvas><div "
    "id=\"live-height\"></div></div>\n<div id=\"live-note\" hidden></div>\n</div>\n"
    "<p id=\"live-cursor\" role=\"status\"></p>\n<div id=\"live-details\" aria-live=\"polite\"></div>\n</div>\n";

void tide_report_html_live(const tide_report *r, tide_text *out) {
    tide_text_add(out, "<div id=\"live\" hidden>\n");
    tide_text_add(out, controls);
    if (r->has_b)
        tide_text_add(out, "<label>Of <select id=\"live-side\"><option value=\"0\">A</option><option "
                           "value=\"1\">B</option></select></label>\n");
    tide_text_add(out, pictures);
}

// ---- the table of items ----

/// Columns of the table of items that the page shows, and what the script sorts by.
static const struct {
    int column;
    const char *title, *sort;
} shown[] = {{1, "Name", "name"},   {2, "Operator", NULL},   {3, "Kind", NULL},
             {5, "Role", NULL},     {6, "Size (B)", "size"}, {7, "Takes (B)", NULL},
             {8, "Begin", "begin"}, {9, "End", NULL},        {12, "Place (B)", "place"}};

static void add_row(const tide_report_table *t, uint32_t item, tide_text *out) {
    tide_text_add(out, "<tr>");
    for (size_t c = 0; c < sizeof shown / sizeof shown[0]; c++) {
        tide_report_value v = {0};
        t->value(t, item, shown[c].column, &v);
        const bool words = t->columns[shown[c].column].unit == TIDE_UNIT_TEXT;
        if (!words) {
            tide_text_add(out, "<td>");
            if (v.known && !(shown[c].column == 9 && tide_items_is_open_ended(t->side->items, item)))
                tide_text_addf(out, "%" PRIu64, v.u);
            tide_text_add(out, "</td>");
            continue;
        }
        tide_text_add(out, c == 0 ? "<th scope=\"row\">" : "<td>");
        if (v.known) tide_report_add_html_cut(out, v.text, 120);
        tide_text_add(out, c == 0 ? "</th>" : "</td>");
    }
    tide_text_add(out, "</tr>\n");
}

void tide_report_html_items(const tide_report_table *t, tide_text *out) {
    const tide_report_side *s = t->side;
    char size[24];
    tide_text_addf(out, "<section>\n<h3 id=\"s-items\">%s</h3>\n", t->title);
    if (t->n_rows == 0) {
        tide_text_addf(out, "<p>%s</p>\n</section>\n", t->empty);
        return;
    }
    tide_text_add(
        out, "<p id=\"items-count\" role=\"status\" class=\"mute\"></p>\n<div class=\"scroll\" role=\"region\" "
             "aria-labelledby=\"s-items\" tabindex=\"0\">\n<table id=\"items\" class=\"c0 c1 c2 c3\">\n<thead><tr>");
    for (size_t c = 0; c < sizeof shown / sizeof shown[0]; c++) {
        tide_text_add(out, "<th scope=\"col\"");
        if (shown[c].sort != NULL) tide_text_addf(out, " data-sort=\"%s\"", shown[c].sort);
        const bool moment = t->columns[shown[c].column].unit == TIDE_UNIT_TIME;
        tide_text_addf(out, ">%s%s</th>", shown[c].title,
                       !moment                             ? ""
                       : s->facts->axis == TIDE_AXIS_STEPS ? " (step)"
                                                           : " (ns)");
    }
    tide_text_add(out, "</tr></thead>\n<tbody>\n");
    for (size_t k = 0; k < s->n_largest && !out->failed; k++) add_row(t, s->largest[k], out);
    tide_text_add(out, "</tbody>\n</table>\n</div>\n<p id=\"items-rest\" class=\"mute\">");
    if (s->n_largest < s->items->n)
        tide_text_addf(out, "The %zu largest of %zu; the others hold %s in sum.", s->n_largest, s->items->n,
                       tide_format_bytes(s->rest_bytes, size, sizeof size));
    tide_text_add(out,
                  "</p>\n<p id=\"items-pages\" hidden><button type=\"button\" id=\"items-back\">Back</button> <span "
                  "id=\"items-page\"></span> <button type=\"button\" id=\"items-on\">On</button></p>\n</section>\n");
}
