// SPDX-License-Identifier: MIT
//
// kill check: holds a trace against the streams of the victim that recorded it (kill_stream.h), by a replay of its own.
#ifndef TIDE_TESTS_KILL_CHECK_H
#define TIDE_TESTS_KILL_CHECK_H

#include "profiler/moments.h"
#include "tests/profiler/kill_stream.h"

/// One thread of a victim, and what it sent.
typedef struct kill_source {
    uint64_t seed;
    uint32_t index, n_threads; ///< of its process
    uint64_t number;           ///< in the trace; 0: had not begun
    uint64_t n_events;         ///< callbacks that had returned
    uint64_t block_base;       ///< what the trace adds to the numbers of its process's blocks
} kill_source;

enum { KILL_MAX_SOURCES = 8 };
typedef struct kill_expect {
    const char *trace;
    kill_source sources[KILL_MAX_SOURCES];
    uint32_t n_sources;
    uint64_t n_over; ///< events a thread may have beyond that: 1 for the callback that was cut off
    bool is_prefix;  ///< recording ended early: any number up to that, without a hole
    bool drops;      ///< gaps stand for what was dropped on full rings
    tide_trace_state state;
} kill_expect;

/// The threads of one victim, as its shadow has them.
static inline void kill_expect_shadow(kill_expect *want, const kill_shadow *shadow, uint64_t seed, uint32_t n_threads) {
    for (uint32_t t = 0; t < n_threads; t++)
        want->sources[want->n_sources++] = (kill_source){.seed = seed,
                                                         .index = t,
                                                         .n_threads = n_threads,
                                                         .number = atomic_load(&shadow->threads[t].number),
                                                         .n_events = atomic_load(&shadow->threads[t].n_events)};
}

typedef struct kill_found {
    uint64_t n_events, n_live, peak_bytes;
    uint64_t of_thread[KILL_MAX_SOURCES];
    uint64_t n_chunks;
    double check_s;
} kill_found;

/// Opens the trace (which finishes it where that is left to do). False: `why` says what is wrong.
bool kill_check_trace(const kill_expect *want, kill_found *found, tide_text *why);
/// Whether an event of the trace is the step, in every field.
bool kill_check_same(const kill_step *step, const tide_trace_event *e);
/// The folder of `trace` holds it and nothing else.
bool kill_check_folder(const char *trace, tide_text *why);

#endif
