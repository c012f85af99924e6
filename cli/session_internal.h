// SPDX-License-Identifier: MIT
//
// The session object, for session.c (its life, and what it still held) and session_run.c (runs in it).
#ifndef TIDE_CLI_SESSION_INTERNAL_H
#define TIDE_CLI_SESSION_INTERNAL_H

#include "cli/session.h"

/// A list of blocks, their texts in the ledger.
typedef struct block_list {
    tide_live_block *items; // [n], owned
    size_t n, cap;
} block_list;

struct cli_session {
    tide_meter *meter;
    tide_ledger *ledger;
    tide_observer meter_obs, ledger_obs, recorder_obs, named, all; // named: ledger and recorder
    tide_observer_pair named_pair, all_pair;
    tide_recorder *recorder; // borrowed; may be NULL
    tide_error record_err;   // the first of its errors in a run
    tide_registry *registry; // NULL: the session has ended
    uint64_t limit_bytes;    // 0: none
    tide_allocator *limit;   // the first of those that share one budget; NULL: none
    block_list at_end, late;
    uint64_t n_leaked, end_ns;
    bool ran; // a run has ended: peaks are counted anew from there
};

/// Note the blocks born after `after_id` that are still alive: a run is over, and all it made was given back.
void cli__session_note_late(cli_session *s, uint64_t after_id);

#endif
