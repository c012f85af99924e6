// SPDX-License-Identifier: MIT
//
// recover_tables: what of a damaged trace of version 3 is not about single events. Private to profiler/read.
#ifndef TIDE_PROFILER_READ_RECOVER_TABLES_H
#define TIDE_PROFILER_READ_RECOVER_TABLES_H

#include "profiler/read/convert_runs.h"

/// Processes, positions of rings, what the producers heard.
tide_status tide__recover_processes(tide__in *in, tide__out *out, tide_error *err) TIDE_NODISCARD;
/// Rows for processes and devices that others refer to and that were lost. After all events.
tide_status tide__recover_lost_rows(tide__in *in, tide__out *out, tide_error *err) TIDE_NODISCARD;

/// The blocks that were live behind the last snapshot in [lo, hi], names renamed; *event_id 0: none can be read. The
/// replay is the caller's, also then.
tide_status tide__recover_snapshot(tide__in *in, tide__names *names, int64_t lo, int64_t hi, tide__replay *out,
                                   int64_t *event_id, int64_t *t_ns, tide_error *err) TIDE_NODISCARD;
/// Leaves of events up to `last_event`, which are not there any more. Before the first event.
tide_status tide__recover_past(tide__in *in, tide__out *out, int64_t last_event, tide_error *err) TIDE_NODISCARD;
/// Problems of those events, and those that are of no event. After all events.
tide_status tide__recover_problems(tide__in *in, tide__out *out, int64_t last_event, tide_error *err) TIDE_NODISCARD;

#endif
