// SPDX-License-Identifier: MIT
//
// The parts of a merge. Private to profiler/merge.
//
//     merge.c        the new trace: lanes by time, tables that are copied, facts
//     merge_lane.c   one input: its events with the numbers of the new trace
//     merge_clock.c  by how much each lane is moved
#ifndef TIDE_PROFILER_MERGE_MERGE_INTERNAL_H
#define TIDE_PROFILER_MERGE_MERGE_INTERNAL_H

#include "profiler/merge/merge.h"
#include "profiler/read/moments_internal.h"
#include "profiler/store/new_trace.h"

/// A run of an input.
typedef struct tide__merge_run {
    int64_t id, new_id;
    int64_t begin_ns, end_ns;        ///< of the input; end -1: it has not ended
    int64_t first_event, last_event; ///< of the input; 0: it has not begun; -1: not ended
    int64_t process;                 ///< of the input
} tide__merge_run;

/// An event that stands with a later time than its own.
typedef struct tide__merge_late {
    int64_t event, own_ns;
} tide__merge_late;

/// Numbers of the new trace by those of an input.
typedef struct tide__merge_map {
    int32_t *to; ///< [n], owned; 0: none
    size_t n;
} tide__merge_map;

/// Devices of the new trace: number i + 1 is names[i]. Texts, for this program need not have a backend for each.
typedef struct tide__merge_devices {
    struct tide__merge_device {
        char name[32];
        size_t source; ///< that had it first
    } * items;         ///< [n], owned
    size_t n, cap;
} tide__merge_devices;

/// Zero-initialise.
typedef struct tide__merge_source {
    const tide_merge_input *in;
    tide_trace *t;
    tide_merge_lane *lane;
    // what it knows of its clock
    char boot_id[64]; ///< "": not known, or not the same for all of its processes
    bool has_wall;    ///< its times and wall_ns are ns since 1970
    int64_t wall_ns;
    int64_t first_ns; ///< of what is copied: earlier than its begin where blocks are older
    int64_t shift_ns; ///< what is added to its times
    // numbers
    tide__merge_map texts, scopes, threads, devices, processes;
    tide__merge_run *runs; ///< [n_runs] by id, owned
    size_t *begins, *ends; ///< [n_runs] indices of runs by first_event, by last_event; owned
    size_t n_runs, cap_runs, next_begin, next_end;
    tide__merge_late *late; ///< [n_late] by event, owned
    size_t n_late, cap_late, next_late;
    bool has_orphans; ///< frees of blocks whose allocation it never heard
    // events
    tide__event *before; ///< [n_before]: what was alive before the first event that is kept, as its allocations; owned
    size_t n_before, next_before;
    tide__cursor *cursor;
    const tide__event *events; ///< [n_events] of the cursor
    size_t n_events, next_event;
    int64_t passed; ///< new number of the last event that was copied; 0: none
    bool has;       ///< there is a next one
    tide__event next;
} tide__merge_source;

// ---- merge_clock.c ----

/// Say how the sources come to one clock, and fill shift_ns of each so that no time of the new trace is below 0.
tide_status tide__merge_align(tide__merge_source *s, size_t n, tide_merge_clock asked, tide_merge_clock *used,
                              tide_error *err) TIDE_NODISCARD;

/// Whether those that have events were recorded on one machine since it started.
bool tide__merge_of_one_boot(const tide__merge_source *s, size_t n);

// ---- merge_lane.c ----

/// Number `id` of the input is `to` in the new trace. TIDE_ERR_NOMEM.
tide_status tide__merge_map_put(tide__merge_map *m, int64_t id, int64_t to) TIDE_NODISCARD;
/// 0: none.
int32_t tide__merge_map_get(const tide__merge_map *m, int64_t id);
/// Open the trace and read what the clock is found by.
tide_status tide__merge_source_open(tide__merge_source *s, tide_error *err) TIDE_NODISCARD;
/// Processes become rows of the new trace, names get their numbers in it. With shift_ns and devices.
tide_status tide__merge_source_begin(tide__merge_source *s, tide__new_trace *out, tide_error *err) TIDE_NODISCARD;
/// The run becomes a row of the new trace, with its plan.
tide_status tide__merge_source_run(tide__merge_source *s, tide__merge_run *run, tide__new_trace *out,
                                   const tide__merge_devices *devices, tide_error *err) TIDE_NODISCARD;
/// Stand on the first event, then on each that follows; `has` is false behind the last. `next` has the names of the
/// input and the time of the new trace.
tide_status tide__merge_source_next(tide__merge_source *s, tide_error *err) TIDE_NODISCARD;
/// Copy the event that it stands on.
tide_status tide__merge_source_copy(tide__merge_source *s, tide__new_trace *out, bool as_chunk,
                                    tide_error *err) TIDE_NODISCARD;
/// After its last event: ends of runs, positions, what its threads counted (`with_totals`), what went wrong while it
/// was recorded.
tide_status tide__merge_source_end(tide__merge_source *s, bool with_totals, tide__new_trace *out,
                                   tide_error *err) TIDE_NODISCARD;
/// Takes an all-zero struct.
void tide__merge_source_close(tide__merge_source *s);
/// TIDE_ERR_BAD_INPUT: a row of `table` that no recorder wrote.
tide_status tide__merge_bad(const tide__merge_source *s, const char *table, int64_t id, tide_error *err);
/// What errors call it.
static inline const char *tide__merge_name(const tide__merge_source *s) {
    return s->in->name != NULL ? s->in->name : s->in->path;
}

#endif
