// SPDX-License-Identifier: MIT
//
// json_items: the items of one input as columns, the words in them as places in `words`, for the page's script. At most
// TIDE_REPORT_MAX_LIVE of them, the largest; how many are left out is said. Private to reports/.
#ifndef TIDE_REPORTS_JSON_ITEMS_H
#define TIDE_REPORTS_JSON_ITEMS_H

#include "analysis/json_out.h"
#include "reports/render.h"

/// Keys items_left_out, left_out_bytes, items, steps and words of the object that is open.
void tide_report_json_items(tide_json_out *j, const tide_report_side *s);

#endif
