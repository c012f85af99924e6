// SPDX-License-Identifier: MIT
//
// render: the writers behind reports.h, one per format, and the parts of the HTML page. Writers append to `out`;
// running out of memory there shows in out->failed, which tide_report_render() checks once.
#ifndef TIDE_REPORTS_RENDER_H
#define TIDE_REPORTS_RENDER_H

#include "reports/facts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TIDE_REPORT_MAX_BARS = 2000,  ///< of the Gantt: the largest
    TIDE_REPORT_MAX_ROWS = 10000, ///< of the page's table and its data: the largest
};

tide_status tide_report_csv(const tide_timeline *tl, tide_text *out, tide_error *err) TIDE_NODISCARD;
tide_status tide_report_json(const tide_timeline *tl, tide_text *out, tide_error *err) TIDE_NODISCARD;
/// The page's own data: "tidemark.report.data", one line. Items are rows under `columns`, at most TIDE_REPORT_MAX_ROWS;
/// in the columns that `word_columns` names stand places in `words` (null: unknown); times count from the
/// begin of the axis, as in the table; flags are 0 and 1.
tide_status tide_report_json_data(const tide_timeline *tl, tide_text *out, tide_error *err) TIDE_NODISCARD;
tide_status tide_report_html(const tide_timeline *tl, tide_text *out, tide_error *err) TIDE_NODISCARD;

void tide_report_html_curve(const tide_timeline *tl, tide_text *out);
tide_status tide_report_html_gantt(const tide_timeline *tl, tide_text *out, tide_error *err) TIDE_NODISCARD;
void tide_report_html_summary(const tide_timeline *tl, tide_text *out);
void tide_report_html_kinds(const tide_timeline *tl, tide_text *out);
void tide_report_html_pools(const tide_timeline *tl, tide_text *out);
tide_status tide_report_html_items(const tide_timeline *tl, tide_text *out, tide_error *err) TIDE_NODISCARD;

extern const char tide_report_style[];
extern const char tide_report_script[];

#ifdef __cplusplus
}
#endif
#endif
