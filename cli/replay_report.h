// SPDX-License-Identifier: MIT
//
// replay report: what `replay` prints, as text and as JSON.
#ifndef TIDE_CLI_REPLAY_REPORT_H
#define TIDE_CLI_REPLAY_REPORT_H

#include "cli/replay.h"

typedef struct cli_replay_report {
    cli_replay_source source;
    cli_replay_recorded recorded;
    tide_device device;
    uint64_t limit_bytes; ///< 0: none
    bool checked;
    bool is_recorded; ///< the replays are runs of a new trace
    uint64_t clock_ns;
    cli_replay_result *results; ///< [n_results]
    size_t n_results;
    cli_replay_plan *plans; ///< [n_plans]
    size_t n_plans;
} cli_replay_report;

void cli_replay_print(const cli_replay_report *r);
/// Its keys, into an open document.
void cli_replay_json(tide_json_out *j, const cli_replay_report *r);

#endif
