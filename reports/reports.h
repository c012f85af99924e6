// SPDX-License-Identifier: MIT
//
// reports: a timeline as a file that people open.
#ifndef TIDE_REPORTS_REPORTS_H
#define TIDE_REPORTS_REPORTS_H

#include "core/base/text.h"
#include "profiler/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_report_format { TIDE_REPORT_HTML, TIDE_REPORT_CSV, TIDE_REPORT_JSON } tide_report_format;

/// By the ending of the path: .html .htm .csv .json. TIDE_ERR_INVALID listing what is there.
tide_status tide_report_format_of_path(const char *path, tide_report_format *out, tide_error *err) TIDE_NODISCARD;

/// Render into `out`. Byte-stable for equal input: no clock, no path of this machine. Names are escaped for the format.
tide_status tide_report_render(const tide_timeline *tl, tide_report_format format, tide_text *out,
                               tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
