// SPDX-License-Identifier: MIT
//
// See html_live.h; the ids are those that reports/page/*.js asks for.
#include "reports/html_live.h"

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

void tide_report_html_items(const tide_report_side *s, const tide_report_table *t, tide_text *out) {
    static const tide_html_style style = {.attributes = " id=\"items\" class=\"c0 c1 c2 c3\"", .max_chars = 120};
    const tide_table items = tide_report_page_items(s);
    char size[24];
    tide_text_addf(out, "<section>\n<h3 id=\"s-items\">%s</h3>\n", t->title);
    if (t->table.n_rows == 0) {
        tide_text_addf(out, "<p>%s</p>\n</section>\n", t->empty);
        return;
    }
    tide_text_add(out,
                  "<p id=\"items-count\" role=\"status\" class=\"mute\"></p>\n<div class=\"scroll\" role=\"region\" "
                  "aria-labelledby=\"s-items\" tabindex=\"0\">\n");
    tide_table_html(&items, SIZE_MAX, &style, out);
    tide_text_add(out, "</div>\n<p id=\"items-rest\" class=\"mute\">");
    if (s->n_largest < s->items->n)
        tide_text_addf(out, "The %zu largest of %zu; the others hold %s in sum.", s->n_largest, s->items->n,
                       tide_format_bytes(s->rest_bytes, size, sizeof size));
    tide_text_add(out,
                  "</p>\n<p id=\"items-pages\" hidden><button type=\"button\" id=\"items-back\">Back</button> <span "
                  "id=\"items-page\"></span> <button type=\"button\" id=\"items-on\">On</button></p>\n</section>\n");
}
