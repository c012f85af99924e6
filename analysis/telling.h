// SPDX-License-Identifier: MIT
//
// telling: a progress that goes down through several functions, and into the trace that they read. Private to
// analysis/.
#ifndef TIDE_ANALYSIS_TELLING_H
#define TIDE_ANALYSIS_TELLING_H

#include "analysis/items.h"

/// Who is told, of what, and how far it has come. Everything 0: nobody.
typedef struct tide__telling {
    const tide_progress *progress; ///< borrowed; NULL: nobody
    const char *what;              ///< that is done: "explaining"
    double share;                  ///< told last
    tide_trace *trace;             ///< that tells of the events it reads; NULL
    tide_reading reading;
} tide__telling;

/// From here on `trace` (NULL: none is read) tells of what it reads, too, until tide__telling_end: a call each some
/// milliseconds. `t` stays where it is.
void tide__telling_begin(tide__telling *t, const tide_progress *progress, tide_trace *trace, const char *what);
void tide__telling_end(tide__telling *t);
/// A step further; TIDE_ERR_CANCELLED.
tide_status tide__tell(tide__telling *t, double share, tide_error *err) TIDE_NODISCARD;

#endif
