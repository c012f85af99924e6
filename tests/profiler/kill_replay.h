// SPDX-License-Identifier: MIT
//
// kill replay: what the steps of kill_stream.h do to memory, by a replay that shares nothing with the profiler's.
#ifndef TIDE_TESTS_KILL_REPLAY_H
#define TIDE_TESTS_KILL_REPLAY_H

#include "core/base/map.h"
#include "tests/profiler/kill_stream.h"

typedef struct kill_live {
    uint64_t id;
    uint64_t requested_bytes, address;
    uint64_t device;
} kill_live;

typedef struct kill_replay {
    tide_map live; ///< of kill_live
    uint64_t live_bytes, peak_bytes;
    kill_total totals[TIDE_N_KINDS];
} kill_replay;

void kill_replay_init(kill_replay *r);
void kill_replay_deinit(kill_replay *r);
/// NULL, or what is wrong with the step here.
const char *kill_replay_take(kill_replay *r, const kill_step *step);

#endif
