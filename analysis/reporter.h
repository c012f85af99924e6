// SPDX-License-Identifier: MIT
//
// reporter: progress of work that several functions share, also while they read a trace. Private to analysis/.
#ifndef TIDE_ANALYSIS_REPORTER_H
#define TIDE_ANALYSIS_REPORTER_H

#include "analysis/items.h"

/// Reports progress and checks for cancelling. All zero: no report.
typedef struct tide__reporter {
    const tide_progress *progress; ///< borrowed; NULL: none
    const char *what;              ///< that is done: "explaining"
    double share;                  ///< reported last
    tide_trace *trace;             ///< reports the events it reads; NULL: none
    tide_reading reading;
} tide__reporter;

/// Until tide__reporter_end, reading `trace` (NULL: none) reports too, every few milliseconds. `t` must not move.
void tide__reporter_begin(tide__reporter *t, const tide_progress *progress, tide_trace *trace, const char *what);
void tide__reporter_end(tide__reporter *t);
/// A step further; TIDE_ERR_CANCELLED.
tide_status tide__report_share(tide__reporter *t, double share, tide_error *err) TIDE_NODISCARD;

#endif
