// SPDX-License-Identifier: MIT
//
// replay_settings: what PyTorch would have reserved with other settings of its allocator, for the report of a memory
// snapshot: each of a few is replayed on the simulated device.
#ifndef TIDE_CLI_REPLAY_SETTINGS_H
#define TIDE_CLI_REPLAY_SETTINGS_H

#include "reports/reports.h"
#include "tidemark/trace.h"

enum {
    CLI_SETTINGS_MAX_EVENTS = 1000000, ///< of a trace that is replayed: a second for each setting
    CLI_SETTINGS_MAX_BLOCKS = 20000,   ///< that a plan is made of
};

/**
 * Try settings on the whole of a trace.
 *
 * @param trace           another format's trace leaves *out empty
 * @param capacity_bytes  of the device; 0: as much as is asked for
 * @param out             overwritten
 * @return what a replay returns; TIDE_ERR_NOMEM
 */
tide_status cli_replay_settings_try(tide_trace *trace, const char *path, uint64_t capacity_bytes,
                                    tide_report_settings *out, tide_error *err) TIDE_NODISCARD;

#endif
