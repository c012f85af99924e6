// SPDX-License-Identifier: MIT
//
// HTML: one file that loads nothing, readable with scripts off: facts, curve, Gantt and tables, then the data itself.
#include "reports/render.h"

#include "reports/escape.h"

static void add_fact_text(tide_text *out, const char *text) {
    if (text == NULL || text[0] == '\0') return;
    tide_text_add(out, " \xC2\xB7 ");
    tide_report_add_html(out, text);
}

static void add_head(const tide_timeline *tl, tide_text *out) {
    const char *title = tl->title != NULL && tl->title[0] != '\0' ? tl->title : "untitled";
    tide_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    tide_report_add_html(out, title);
    tide_text_add(out, " - tidemark</title>\n<style>\n");
    tide_text_add(out, tide_report_style);
    tide_text_add(out, "</style>\n</head>\n<body>\n<header>\n<h1>");
    tide_report_add_html(out, title);
    tide_text_add(out, "</h1>\n<p class=\"mute\">tidemark memory report");
    add_fact_text(out, tl->model);
    add_fact_text(out, tl->mode);
    add_fact_text(out, tl->strategy);
    tide_text_add(out, "</p>\n</header>\n<main>\n");
}

tide_status tide_report_html(const tide_timeline *tl, tide_text *out, tide_error *err) {
    add_head(tl, out);
    tide_report_html_summary(tl, out);
    tide_report_html_kinds(tl, out);
    if (tl->n_items == 0) {
        tide_text_add(out, tl->axis == TIDE_AXIS_STEPS ? "<p>This plan holds no tensor that lives.</p>\n"
                                                       : "<p>No block lived in this run.</p>\n");
    } else {
        tide_report_html_curve(tl, out);
        TIDE_TRY(tide_report_html_gantt(tl, out, err));
        tide_report_html_pools(tl, out);
        TIDE_TRY(tide_report_html_items(tl, out, err));
    }
    tide_text_add(
        out, "</main>\n<footer>\n<p>Sizes are in bytes; 1 KiB is 1024 B. A lifetime runs from its begin up to, and "
             "not including, its end.</p>\n</footer>\n<script type=\"application/json\" id=\"tidemark-data\">");
    tide_text data = {0};
    const tide_status st = tide_report_json_data(tl, &data, err);
    if (data.failed) out->failed = true;
    if (st == TIDE_OK && !data.failed) tide_report_add_json_for_html(out, tide_text_str(&data), data.len);
    tide_text_deinit(&data);
    TIDE_TRY(st);
    tide_text_add(out, "</script>\n<script>\n");
    tide_text_add(out, tide_report_script);
    tide_text_add(out, "</script>\n</body>\n</html>\n");
    return TIDE_OK;
}
