// SPDX-License-Identifier: MIT
//
// merge: several traces as one, on one clock: the ranks of a job, the hosts of a cluster, two programs that talk to
// each other. Each trace is a lane with a label; its processes stay processes of their own, so that every question
// about processes is one about lanes.
//
//     a.db   |--x----x-----x--|               events stay in their order; among lanes they go by time
//     b.db        |---x----x-----x---|        each lane is moved by a number of ns that never changes along the way
//     all.db |--x-|--xx----xx----xx--|
#ifndef TIDE_PROFILER_MERGE_MERGE_H
#define TIDE_PROFILER_MERGE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

#define TIDE_MERGE_CLOCK_MAP(XX)                                                                                       \
    XX(AUTO, "auto")                                                                                                   \
    XX(BOOT, "boot")   /* all were recorded on one machine since it started: their times are of one clock */           \
    XX(WALL, "wall")   /* by the dates that their machines knew, as far as those agree */                              \
    XX(MARKS, "marks") /* so that marks of one name fall together, by the median of their distances */                 \
    XX(BEGIN, "begin") /* all begin at the same moment */                                                              \
    XX(GIVEN, "given") /* by numbers */
typedef enum tide_merge_clock {
#define XX(name, text) TIDE_MERGE_##name,
    TIDE_MERGE_CLOCK_MAP(XX)
#undef XX
        TIDE_N_MERGE_CLOCKS
} tide_merge_clock;
const char *tide_merge_clock_name(tide_merge_clock clock);

enum { TIDE_MERGE_MAX_LANES = 4096 };

typedef struct tide_merge_input {
    const char *path;  ///< of a finished trace
    const char *name;  ///< what errors call it; NULL: `path`
    const char *label; ///< of its lane
    int64_t offset_ns; ///< GIVEN: how long after the begin of the first trace this one begins
} tide_merge_input;

typedef struct tide_merge_options {
    tide_merge_clock clock; ///< AUTO: BOOT where all are of one boot, else WALL where all know the date and no lane
                            ///< lies apart from all others, else MARKS where all have some in common, else refused
    bool devices_apart;     ///< devices of one name in two lanes are two: the later one gets a free number
    bool devices_same;      ///< they are one. Neither: apart, unless the lanes are of one boot
} tide_merge_options;

/// What became of one input.
typedef struct tide_merge_lane {
    int64_t offset_ns;           ///< that its times were moved by, against those of the first input
    uint64_t n_events;           ///< in the new trace
    uint64_t begin_ns, end_ns;   ///< of its events, in the new trace
    uint64_t n_dropped;          ///< events that it did not have any more: what lived then begins with its own time
    int64_t first_process;       ///< number of its first process in the new trace
    uint32_t n_processes;        ///< they follow each other
    uint32_t n_marks;            ///< MARKS: so many have a partner in the first input
    uint64_t apart_ns, usual_ns; ///< of these: how far one is from its partner at most, and the median
    char devices[160];           ///< those that got another number, "cuda:0 as cuda:1"; "" none
} tide_merge_lane;

/**
 * Write one trace of `n` others to `out_path`, which is whole or as it was.
 *
 * @param in    [n], n >= 2 and at most TIDE_MERGE_MAX_LANES; labels differ, which the caller sees to
 * @param lanes out [n]
 * @param used  out: how they were brought to one clock; never AUTO
 * @return TIDE_ERR_INVALID for a clock that they do not share, with what they have; TIDE_ERR_BAD_INPUT for what is no
 * trace or is damaged, and for one that is still being recorded; TIDE_ERR_OVERFLOW for times beyond 2^62 ns and for
 * more than 32767 processes; TIDE_ERR_IO; TIDE_ERR_WRITE; TIDE_ERR_BUSY while another process records into `out_path`;
 * TIDE_ERR_NOMEM
 *
 * Reads each trace once, and twice for marks. Memory: their names, what lives at one moment, and 500 KiB each.
 */
tide_status tide_merge_traces(const tide_merge_input *in, size_t n, const tide_merge_options *opt, const char *out_path,
                              tide_merge_lane *lanes, tide_merge_clock *used, tide_error *err) TIDE_NODISCARD;

#endif
