// SPDX-License-Identifier: MIT
//
// convert_runs: events told again, and the runs that they belong to: where each begins and ends among the new numbers,
// its row, its plan. Private to profiler/read.
#ifndef TIDE_PROFILER_READ_CONVERT_RUNS_H
#define TIDE_PROFILER_READ_CONVERT_RUNS_H

#include "profiler/read/convert_in.h"
#include "profiler/read/convert_out.h"

typedef struct tide__run_place {
    int64_t id;
    int64_t first_event, last_event; ///< as the row says; 0: it had not begun; last_event -1: it had not ended
    int64_t begin_ns, end_ns;        ///< end_ns -1: not ended
    int64_t place_first, place_last; ///< new numbers of these two, as other events show them; 0: not passed
    int64_t new_first, new_last;     ///< of its own events; 0: none
    bool has_row;
    bool contradicts; ///< it has events outside of what its row says
} tide__run_place;

/// Zero-initialise.
typedef struct tide__retell {
    tide__in *in;
    tide__out *out;
    tide__run_place *runs; ///< [n_runs] by id
    size_t n_runs, cap_runs;
    int64_t *begins, *ends;      ///< [n_rows] ids of the runs that have a row, by first_event, by last_event
    size_t n_rows;               ///< runs that come later have none
    size_t next_begin, next_end; ///< those before were passed
    int64_t passed;              ///< new number of the last event that was passed
    int64_t unchanged;           ///< numbers up to this one are the same in both files
    size_t last_run;             ///< index of the run of the event before
    uint64_t n_lost;             ///< events that are told of as gaps
    uint64_t n_kept;
} tide__retell;

/// Read which runs there are.
tide_status tide__retell_begin(tide__retell *r, tide__in *in, tide__out *out, tide_error *err) TIDE_NODISCARD;
void tide__retell_deinit(tide__retell *r);

/// NULL: no such run.
const tide__run_place *tide__retell_run(const tide__retell *r, int64_t id);
/// The event with old number `old_event` (of those that runs refer to) is told next.
void tide__retell_pass(tide__retell *r, int64_t old_event);
/// Whether the event, which was passed, is of the run in whose stretch of events it lies; where runs follow one
/// another.
bool tide__retell_run_holds(const tide__retell *r, const tide__event *e);
/// Tell `e`, whose names have the numbers of the file that is read. Strict: TIDE_ERR_BAD_INPUT for a run or a name that
/// is not there.
tide_status tide__retell_event(tide__retell *r, const tide__event *e, const char *table, bool as_chunk,
                               tide_error *err) TIDE_NODISCARD;
/// Tell that `n` events are missing here, at `t_ns`.
tide_status tide__retell_gap(tide__retell *r, uint64_t n, int64_t t_ns, bool as_chunk, tide_error *err) TIDE_NODISCARD;
/// All events are told: write runs and plans.
tide_status tide__retell_runs(tide__retell *r, tide_error *err) TIDE_NODISCARD;

/// The plan of a run from `in` into `out`. Lenient: *has is false for one that cannot be read.
tide_status tide__convert_plan(tide__in *in, tide__out *out, int64_t run_id, bool *has, tide_error *err) TIDE_NODISCARD;

#endif
