// SPDX-License-Identifier: MIT
//
// view: a timeline from any FILE, for tui and report.
#ifndef TIDE_CLI_VIEW_H
#define TIDE_CLI_VIEW_H

#include "cli/planning.h"
#include "profiler/timeline.h"

typedef struct cli_view {
    cli_planning planning;
    uint64_t run_id; ///< of a trace; 0: the last
    bool persistent; ///< of a plan: show weights, inputs and outputs too
} cli_view;

/// @return TIDE_ERR_NOT_FOUND for a run the trace does not have; what opening and planning return
tide_status cli_timeline_of_file(const char *path, const cli_view *view, tide_timeline **out,
                                 tide_error *err) TIDE_NODISCARD;

#endif
