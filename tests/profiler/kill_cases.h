// SPDX-License-Identifier: MIT
//
// kill cases: the ways in which kill_recorder ends programs that record.
#ifndef TIDE_TESTS_KILL_CASES_H
#define TIDE_TESTS_KILL_CASES_H

#include <sys/types.h>

#include "tests/profiler/kill_check.h"

typedef struct kill_options {
    const char *victim, *self;
    uint64_t kills, seed, min_ms, max_ms;
    bool keep;
} kill_options;

typedef struct kill_round {
    const kill_options *o;
    const char *name; ///< of the case
    uint64_t seed;
    tide_rng rng;
    char dir[256], trace[300], shadow_path[300], stderr_path[300];
    kill_shadow *shadow;
    kill_shadow *second; ///< of a second program; NULL: there is none
    pid_t second_app;
    pid_t app;
    int app_status; ///< of wait
    bool app_gone;
    const char *drain;
    uint64_t n_events; ///< of each thread; 0: endless
    uint64_t n_over;
    bool too_late;     ///< what was to be killed had ended
    bool wants_inside; ///< no test unless many such kills come inside the close
    bool is_inside;    ///< the kill came between the begin and the end of the close
    bool is_half_done; ///< and at a moment when the file was half written
    bool bursts;       ///< more than the rings hold: events go into chunks, which become rows at the close
    bool chunks;       ///< events stay in chunks
    pid_t collector;   ///< once it was asked for; its feed, which names it, goes before the close has ended
    bool drops;        ///< a full ring drops
    bool forks;        ///< the program has a child that outlives it
    tide_text why;
} kill_round;

typedef struct kill_case {
    const char *name, *drain;
    bool (*run)(kill_round *r); ///< until what can be checked is there; false: `why` says what went wrong
} kill_case;
extern const kill_case kill_cases[];
extern const size_t kill_n_cases;

/// A new page to be shared with a victim; NULL: it cannot be made.
kill_shadow *kill_map_shadow(const char *path);
/// What the trace calls the threads and blocks of the two programs.
bool kill_find_processes(kill_round *r, kill_expect *want);
/// Wait for all processes that were started. False: one of them does not end.
bool kill_wait_all(kill_round *r);

#endif
