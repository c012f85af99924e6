// SPDX-License-Identifier: MIT
//
// The session object, for session.c (its life, and what it still held) and session_run.c (runs in it).
#ifndef TIDE_CLI_SESSION_INTERNAL_H
#define TIDE_CLI_SESSION_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/session.h"

/// A list of blocks, their texts in the ledger.
typedef struct block_list {
    tide_live_block *items; // [n], owned
    size_t n, cap;
} block_list;

/// Allocations since it was armed, by who made them. Zero-initialise.
typedef struct warm_watch {
    atomic_bool is_armed;
    pthread_mutex_t lock; // of what follows
    cli_warm_site *sites; // [n], owned
    size_t n, cap;
} warm_watch;

struct cli_session {
    tide_meter *meter;
    tide_ledger *ledger;
    tide_observer meter_obs, ledger_obs, recorder_obs, named, all; // named: ledger and recorder
    tide_observer_pair named_pair, all_pair;
    warm_watch warm; // hears with keeps_warm_sites
    tide_observer warm_obs, watched;
    tide_observer_pair watched_pair;
    tide_recorder *recorder; // borrowed; may be NULL
    tide_error record_err;   // the first of its errors in a run
    tide_registry *registry; // NULL: the session has ended
    uint64_t limit_bytes;    // 0: none
    tide_allocator *limit;   // the first of those that share one budget; NULL: none
    block_list at_end, late;
    uint64_t n_leaked, end_ns;
    bool ran; // a run has ended: peaks are counted anew from there
};

/// Hears allocations; valid as long as `w`.
tide_observer cli__warm_watch_observer(warm_watch *w);
/// Forget what was heard and hear nothing; or, armed, hear from now on.
void cli__warm_watch_begin(warm_watch *w);
void cli__warm_watch_arm(warm_watch *w, bool is_armed);
void cli__warm_watch_deinit(warm_watch *w);

/// Note the blocks born after `after_id` that are still alive: a run is over, and all it made was given back.
void cli__session_note_late(cli_session *s, uint64_t after_id);

#endif
