// SPDX-License-Identifier: MIT
//
// The inside of an open trace, shared by the files of the query side. Private to profiler/.
//
//     events   1 ......... first_event ............ leaf_event ..... last_event
//              dropped      kept: rows or chunks                      what came later is not seen until refresh
//     leaves   |-----------|-----|-----|-----|-----|  of the file    |--|  of the tail, made here by replay
//     snapshots            s           s       s
//
// A statement never stays open between two questions: an open one would keep the write-ahead log of a trace that grows
// from being folded in. What belongs together is read in one transaction, and last_event bounds everything else.
#ifndef TIDE_PROFILER_TRACE_INTERNAL_H
#define TIDE_PROFILER_TRACE_INTERNAL_H

#include "core/base/text.h"
#include "profiler/query.h"
#include "profiler/store/cursor.h"
#include "profiler/store/leaf.h"
#include "profiler/store/process_ends.h"
#include "profiler/store/replay.h"
#include "profiler/store/sql.h"

typedef struct tide__trace_scope {
    const char *name; ///< borrowed from the texts; "" for none
    int64_t step;     ///< -1: none
    int32_t run;      ///< the scope of an execution that it lies in, or is; 0: none
    bool is_operator;
    bool is_step; ///< an operator with a step that lies in no other operator
} tide__trace_scope;

/// A scope as it is kept: a trace may have millions, one for each operator of each execution.
typedef struct tide__kept_scope {
    uint64_t step_bits; ///< step + 1, two bits higher than: is an operator, is a step
    uint32_t name_id;   ///< in the texts; 0: none
    int32_t run;
    uint32_t parent; ///< 0: outermost
    bool is_frame;
    bool is_region;
} tide__kept_scope;

/// The small tables of the file by their numbers. They only grow, and a text stays where it is until close. Several
/// open traces of one finished file may have them in common.
typedef struct tide__trace_names {
    uint32_t *refs;     ///< who has them in common, changed atomically; NULL: more may come
    const char **texts; ///< [n_texts], index = number; [0] and numbers that are not there are ""
    size_t n_texts, cap_texts;
    bool has_regions, has_frames; ///< some scope is one
    tide__kept_scope *scopes;     ///< [n_scopes], the same
    size_t n_scopes, cap_scopes;
    const char **devices; ///< [n_devices], the same
    size_t n_devices, cap_devices;
    struct tide__text_page *pages;     ///< the texts themselves; owned
    int64_t n_text_rows, n_scope_rows; ///< of the tables, which may leave numbers out
    bool has_later_parents;            ///< scopes whose parent has a larger number
} tide__trace_names;

/// One (device, kind), or the sum of all (place 0).
typedef struct tide__trace_series {
    int64_t id; ///< in the file; -1: met in the tail only
    int16_t device;
    uint8_t kind;
    bool is_loaded;
    tide__leaf *leaves; ///< [n_leaves], owned: n_fixed of the file, then those of the tail
    size_t n_leaves, cap_leaves, n_fixed;
} tide__trace_series;

/// What happens behind the last leaf of the file.
typedef struct tide__trace_tail {
    bool is_on;          ///< false: the leaves of the file reach to the end
    tide__replay replay; ///< after last_event
    tide__leaves leaves;
} tide__trace_tail;

/// The part of a trace that a run covers; run 0 is the whole of it.
typedef struct tide__span {
    int64_t first_event, last_event; ///< last < first: nothing happened
    uint64_t begin_ns, end_ns;
} tide__span;

typedef struct tide__row_reader tide__row_reader;

/// What answers keep with the trace for the next question.
typedef enum tide__kept {
    TIDE__KEPT_CURVES,    ///< moments_curve.c: curves that were asked for; gone when the trace grows
    TIDE__KEPT_INTERVALS, ///< the same: changes inside of leaves
    TIDE__KEPT_SEGMENTS,  ///< holdings_segments.c
    TIDE__KEPT_POOLS,     ///< holdings_pools.c: sums over a run's pools
    TIDE__KEPT_KINDS,     ///< query_kinds.c: counts of a run's kinds
    TIDE__KEPT_PEAKS,     ///< lives.c: answers of tide_trace_peaks_without
    TIDE__KEPT_EXECUTIONS,
    TIDE__N_KEPT
} tide__kept;

typedef struct tide__snapshot_place {
    int64_t event_id, t_ns;
} tide__snapshot_place;

struct tide_trace {
    tide__sql sql; ///< path as the caller gave it
    char *path;    ///< owned, the same
    tide_trace_state state;
    bool is_open;         ///< it was found good
    bool holds;           ///< a transaction stays open from one load to the next while it is recorded
    bool is_packed;       ///< blocks lie in chunks: all of them are in table all_blocks
    bool has_block_table; ///< all_blocks is registered
    bool has_temp_tables; ///< tables block and step of an unfinished trace, made as TEMP tables of this connection
    bool has_problem_events;
    int64_t first_event, last_event; ///< kept events; 1, 0: none
    int64_t begin_ns, end_ns;        ///< of the first kept and the last event; 0, 0: none
    int64_t leaf_event;              ///< where the leaves of the file end
    tide__trace_names names;
    uint64_t file[3]; ///< device, number and size of the file when it was opened: whether it is the same one still

    tide__process_ends ends;    ///< as the file has them; of those behind last_event nothing is known yet
    tide__trace_series *series; ///< [n_series], owned; [0] is the sum
    size_t n_series, cap_series;
    tide__trace_tail tail;
    void (*forget[TIDE__N_KEPT])(
        tide_trace *t);          ///< frees what is kept; set by the file that keeps it; NULL: there is none
    struct tide__curve **curves; ///< [n_curves] that were asked for, owned
    size_t n_curves, cap_curves;

    tide__snapshot_place *snapshots; ///< [n_snapshots], owned, by event
    size_t n_snapshots, cap_snapshots;
    tide__snapshot_place peak_snapshot; ///< one that lies before what is kept; event 0: there is none
    int64_t *problem_events;            ///< [n_problem_events], owned, in order; read with has_problem_events
    size_t n_problem_events, cap_problem_events;

    const tide_reading *reading; ///< called while events are read; borrowed; NULL: none
    uint64_t n_unheard;          ///< events since its last call
    tide__cursor *cursor;        ///< NULL until events are read
    tide__event_search *search;  ///< NULL until an event is looked for by its time
    tide__row_reader *rows;      ///< the same
    struct {
        bool has_memory; ///< `replay` was made
        bool is_on;      ///< it stands at an event
        tide__replay replay;
    } at;                                     ///< the last moment that was asked for: the next one is often near
    tide_text snapshot;                       ///< bytes of the last one that was read
    struct tide__interval_cache *cache;       ///< decoded intervals; NULL until there is one
    struct tide__segments *segments;          ///< NULL until they are asked for
    struct tide__pool_sums *pool_sums;        ///< the same, of a run's pools
    struct tide__kind_counts *kind_counts;    ///< the same, of a run's kinds
    struct tide__run_executions **executions; ///< [n_executions] of the runs that were asked for, owned
    size_t n_executions, cap_executions;
    struct tide_trace_alike *alike;   ///< [n_alike] answers of tide_trace_peaks_without, owned; of events
    uint64_t alike_first, alike_last; ///< these
    size_t n_alike, cap_alike;
};

// ---- trace_open.c ----

/// A read-only connection that trusts nothing in the file.
tide_status tide__trace_connect(const char *path, sqlite3 **db, tide_error *err) TIDE_NODISCARD;
/// The tables are those of this version.
tide_status tide__trace_check_tables(const tide_trace *t, tide_error *err) TIDE_NODISCARD;
/// What meta says and what is there; see tide_trace_open. `every`: row by row however many there are.
tide_status tide__trace_check_content(tide_trace *t, bool every, tide_error *err) TIDE_NODISCARD;

// ---- trace_load.c ----

/// Read what the questions need; again after a change. In one transaction. *grew may be NULL.
tide_status tide__trace_load(tide_trace *t, bool *grew, tide_error *err) TIDE_NODISCARD;
/// Gives everything back that tide__trace_load made.
void tide__trace_unload(tide_trace *t);
/// Put the last snapshot at or before `event_id` into the empty replay `r`, whose last_event becomes that of the
/// snapshot; none and nothing dropped: the empty state before event 1. TIDE_ERR_NOT_FOUND when it was dropped.
tide_status tide__trace_read_snapshot(tide_trace *t, int64_t event_id, tide__replay *r, tide_error *err) TIDE_NODISCARD;
/// Leaves of the series at `place` of t->series, and of the sum: from the file at the first call, and after a refresh
/// that failed. t->series may lie elsewhere afterwards.
tide_status tide__trace_series_load(tide_trace *t, size_t place, tide_error *err) TIDE_NODISCARD;
/// The place of (device, kind) in t->series; SIZE_MAX: there is none.
size_t tide__trace_series_find(const tide_trace *t, int16_t device, uint8_t kind);
/// The end of the process of a block that was allocated at `alloc_ns` and never freed, and with it the block's; NULL:
/// it lives, as far as the trace shows.
const tide__process_end *tide__trace_process_end(const tide_trace *t, uint64_t block_id, uint64_t alloc_ns);
/// Make sure that tables block and step can be asked.
tide_status tide__trace_need_tables(tide_trace *t, tide_error *err) TIDE_NODISCARD;
/// SELECT `columns` FROM the blocks of the trace, wherever they are, `rest`. In no order unless `rest` says one.
tide_status tide__trace_ask_blocks(tide_trace *t, const char *columns, const char *rest, sqlite3_stmt **out,
                                   tide_error *err) TIDE_NODISCARD;

// ---- trace_names.c ----

/// TIDE_ERR_BAD_INPUT: "cannot read 'path'", with the file as the place; the caller adds a note.
tide_status tide__trace_damaged(const tide_trace *t, tide_error *err);
/// TIDE_ERR_BAD_INPUT: a row of `table` that no recorder wrote.
tide_status tide__trace_bad_row(const tide_trace *t, const char *table, int64_t id, tide_error *err);
/// TIDE_ERR_NOT_FOUND: the events for the answer were dropped to keep the file small.
tide_status tide__trace_dropped(const tide_trace *t, tide_error *err);
/// Copy text into a fixed field, cut between two characters when it is too long.
void tide__trace_copy_text(char *out, size_t out_bytes, const char *text);
/// A number of table meta; absent or no number: damaged.
tide_status tide__trace_meta_number(tide_trace *t, const char *key, int64_t *out, tide_error *err) TIDE_NODISCARD;

/// No more come: the names of a finished trace, which others may have in common with it from now on. TIDE_ERR_NOMEM.
tide_status tide__trace_names_close(tide__trace_names *n, tide_error *err) TIDE_NODISCARD;
/// From now on `to`, which has none, has the names of `from` in common with it; those are closed.
void tide__trace_names_share(const tide__trace_names *from, tide__trace_names *to);
/// Take in what is new in tables name, scope and device; of names in common nothing is.
tide_status tide__trace_names_load(tide_trace *t, tide_error *err) TIDE_NODISCARD;
void tide__trace_names_deinit(tide__trace_names *n);
/// "" for 0 and for numbers that are not there.
const char *tide__trace_text(const tide_trace *t, int64_t id);
const char *tide__trace_device(const tide_trace *t, int64_t id);
/// The number of a device's name; 0: there is none.
int64_t tide__trace_device_find(const tide_trace *t, const char *name);
tide__trace_scope tide__trace_scope_of(const tide_trace *t, int64_t id);

// ---- executions.c ----

/// One reference more to each of the [n] that will not change any more: *out [*n_out], owned. TIDE_ERR_NOMEM.
tide_status tide__executions_share(struct tide__run_executions *const *executions, size_t n,
                                   struct tide__run_executions ***out, size_t *n_out, tide_error *err) TIDE_NODISCARD;
/// The trace, which has none, has these in common with others from now on. TIDE_ERR_NOMEM.
tide_status tide__executions_take(tide_trace *t, struct tide__run_executions *const *executions, size_t n,
                                  tide_error *err) TIDE_NODISCARD;
void tide__executions_drop(struct tide__run_executions **executions, size_t n);

// ---- query.c ----

/// TIDE_ERR_NOT_FOUND for a run that is not there. A run whose beginning was dropped begins with the first event that
/// is left.
tide_status tide__trace_span(tide_trace *t, int64_t run_id, tide__span *out, tide_error *err) TIDE_NODISCARD;
/// The plan of a run, NULL when it has none.
tide_status tide__trace_plan_or_null(tide_trace *t, int64_t run_id, tide_memory_plan **out,
                                     tide_error *err) TIDE_NODISCARD;

#endif
