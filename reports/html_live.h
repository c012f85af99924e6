// SPDX-License-Identifier: MIT
//
// html_live: the elements that the page's script works with, hidden or harmless while it does not run. Private to
// reports/.
#ifndef TIDE_REPORTS_HTML_LIVE_H
#define TIDE_REPORTS_HTML_LIVE_H

#include "reports/render.h"

/// Pictures with their controls.
void tide_report_html_live(const tide_report *r, tide_text *out);
/// The table of items: without the script its largest rows.
void tide_report_html_items(const tide_report_side *s, const tide_report_table *t, tide_text *out);

#endif
