// SPDX-License-Identifier: MIT
//
// What the files of holdings share. Private to profiler/.
#ifndef TIDE_PROFILER_READ_HOLDINGS_INTERNAL_H
#define TIDE_PROFILER_READ_HOLDINGS_INTERNAL_H

#include "profiler/holdings.h"
#include "profiler/read/moments_internal.h"

/// The segments of a trace up to an event; kept with it.
typedef struct tide__segments {
    int64_t last_event;        ///< looked at
    tide_trace_segment *items; ///< [n], owned, as they were taken
    size_t n, cap;
    size_t *open; ///< [n_open] of items that were not given back yet, owned
    size_t n_open, cap_open;
    tide__event *found; ///< [n_found] events of the last reading, owned
    size_t n_found, cap_found;
} tide__segments;

/// TIDE_ERR_CANCELLED when nobody wants to know any more. `reading` may be NULL.
tide_status tide__reading_tell(const tide_reading *reading, int64_t done, int64_t all, tide_error *err) TIDE_NODISCARD;

#endif
