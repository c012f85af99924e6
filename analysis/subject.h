// SPDX-License-Identifier: MIT
//
// subject: what is looked at, a plan or a trace (or one run of it), with the same questions for both. Terminal view,
// reports and gate use it; no higher floor opens a trace or walks a plan itself.
//
// What is cheap is there at once (facts, curve, live set at a moment, also of ten million events); the table of items
// is loaded on request, with progress, and can be loaded by another thread from a second subject of the same file.
// A subject is for one thread at a time.
#ifndef TIDE_ANALYSIS_SUBJECT_H
#define TIDE_ANALYSIS_SUBJECT_H

#include "analysis/items.h"
#include "analysis/levels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_subject tide_subject;

/// A moment: of a plan a step; of a trace a time, or an event (a peak is an event, many can share a nanosecond).
typedef struct tide_moment {
    int64_t t;
    uint64_t event; ///< 0: by time: what happened at t has happened
} tide_moment;

enum { TIDE_SUBJECT_EXECUTION_EVENTS = 2000000 }; ///< finding them reads every event

typedef struct tide_subject_facts {
    bool is_trace;
    tide_axis axis;
    int64_t begin, end; ///< of the axis, begin < end
    int64_t origin;     ///< time 0 of all that is shown: where the whole trace begins, for every run;
                        ///< of a plan step 0
    const char *path;   ///< "" when it came from no file
    const char *title;  ///< "mnist-8: planned, greedy_by_size"
    const char *model, *mode, *strategy;
    uint64_t n_contexts; ///< of a run: that ran at the same time; else 1
    int64_t run_id;      ///< of a trace: 0 the whole
    bool is_recording;   ///< it is being written: tide_subject_refresh
    uint64_t n_items;    ///< tensors or blocks, loaded or not
    uint64_t n_events;   ///< of a trace
    uint64_t peak_bytes; ///< requested bytes of everything (trace); of a plan what is alive, aligned, aliases once
    tide_moment peak; ///< where it is that high first; of a planned run, of all moments that are as high, the first at
                      ///< which most of its buffers is used
    bool has_plan;
    uint64_t plan_bytes, naive_bytes, lower_bound_bytes, proved_bytes; ///< with has_plan, of the planned buffers
    bool proven;
    size_t n_bounded;   ///< of a plan, also of a run's: tensors that are sized while running and have a place with room
                        ///< for the most that they can be; every figure counts that room
    size_t n_dynamic;   ///< of a plan: tensors that are sized while running, which none of these figures counts; 0 of a
                        ///< trace, where they are blocks like others
    tide_levels levels; ///< where plan and bound stand beside the curve
    const tide_memory_plan *plan; ///< NULL without one
    const tide_trace_kind *kinds; ///< [n_kinds] predicted and measured; of a plan alone measured is TIDE_UNKNOWN_BYTES
    size_t n_kinds;
    const char *const *step_names; ///< [n_steps]
    const int64_t *step_begin;     ///< [n_steps] position of each step on the axis; of a run in its first execution
    const int64_t *step_number;    ///< [n_steps] rising: in the program
    size_t n_steps;
    const tide_executions *executions; ///< of a run; NULL: a plan, a whole trace, a run without a plan of more than
                                       ///< TIDE_SUBJECT_EXECUTION_EVENTS events
    uint64_t n_lost, n_problems;       ///< of a trace
    char trouble[256];                 ///< a warning about it ("cut short: disk full"); "" none
} tide_subject_facts;

/// How long after the origin a moment of a trace is; 0 for one before it.
static inline uint64_t tide_subject_since(const tide_subject_facts *f, int64_t t) {
    return t > f->origin ? (uint64_t)t - (uint64_t)f->origin : 0;
}
/// "12.5 ms" for it, as finely as the axis of the subject needs; `us` as for tide_format_ns. 32 bytes suffice.
char *tide_subject_format_since(const tide_subject_facts *f, int64_t t, const char *us, char *buf, size_t buf_bytes);

/// Index in step_names of the step that runs at `t`, in whatever execution, of several contexts the one that began
/// last; SIZE_MAX: none. And its name; "" for none.
size_t tide_subject_step_at(const tide_subject_facts *f, int64_t t);
const char *tide_subject_step_name_at(const tide_subject_facts *f, int64_t t);
/// The bodies of If, Loop and Scan that it lies in, as tide_lifetimes_body_of; "" for none.
char *tide_subject_body_at(const tide_subject_facts *f, int64_t t, char *buf, size_t buf_bytes);
/// What stands where the name of a step would: that name, or, of a run that has steps, "before any step", "in no step".
/// "": nothing is known of steps then.
const char *tide_subject_step_words(const tide_subject_facts *f, int64_t t);
/// The execution that this step belongs to; SIZE_MAX: none, or none are known.
size_t tide_subject_execution_at(const tide_subject_facts *f, int64_t t);
/// Where step `step` (index in step_names) begins in an execution of the facts. False: it did not run in it.
bool tide_subject_step_in(const tide_subject_facts *f, size_t execution, size_t step, tide_moment *out);

/// `plan` is taken, also on failure. `path` may be NULL.
tide_status tide_subject_of_plan(tide_memory_plan *plan, const char *path, tide_subject **out,
                                 tide_error *err) TIDE_NODISCARD;
/// run_id -1: the one that is shown when none is asked for (tide_trace_shown_run); 0: the whole trace. As
/// tide_trace_open.
tide_status tide_subject_of_trace(const char *path, int64_t run_id, tide_subject **out, tide_error *err) TIDE_NODISCARD;
/// What a second subject of the same finished trace has in common with it: tide_trace_share. *out NULL: of a plan, or
/// of a trace that is still being recorded, there is nothing.
tide_status tide_subject_share(const tide_subject *s, tide_trace_shared **out, tide_error *err) TIDE_NODISCARD;
/// As tide_subject_of_trace; what is shared is not read again (tide_trace_open_shared).
tide_status tide_subject_of_shared(const char *path, const tide_trace_shared *shared, int64_t run_id,
                                   tide_subject **out, tide_error *err) TIDE_NODISCARD;
/// A second one of the same input, for another thread, made by the thread that `s` belongs to: a trace is opened again,
/// a plan copied; items are not shared.
tide_status tide_subject_again(const tide_subject *s, tide_subject **out, tide_error *err) TIDE_NODISCARD;
void tide_subject_destroy(tide_subject *s);
struct tide_whatif;
/// What makes the plan of the subject again, for the ways that explain it: retable, batch, extents, in_place, ctx and
/// options of `model`, the rest is not looked at. Options are those of its plan. Of tide_subject_again too: not of two
/// threads at a time, where there is a retable.
void tide_subject_set_model(tide_subject *s, const struct tide_whatif *model);
/// Borrowed; valid until refresh or destroy.
const tide_subject_facts *tide_subject_get_facts(const tide_subject *s);
/// The trace behind it, borrowed; NULL: a plan.
tide_trace *tide_subject_trace(tide_subject *s);
/// Of a trace that is being recorded: take in what was committed since. Items stay as they were loaded.
tide_status tide_subject_refresh(tide_subject *s, bool *grew, tide_error *err) TIDE_NODISCARD;

// ---- items ----

/// Makes the table of items; later calls do nothing until a refresh grew the trace.
tide_status tide_subject_load(tide_subject *s, const tide_progress *progress, tide_error *err) TIDE_NODISCARD;
/// NULL: not loaded.
const tide_items *tide_subject_items(const tide_subject *s);
/// Hand over the items that another subject of the same input has loaded; `from` has none afterwards.
void tide_subject_take_items(tide_subject *s, tide_subject *from);
/// The table, shared by two subjects of the same input, in two threads: it never changes, may be read by both, and is
/// there until the last hold is let go (counted atomically). 10 M events have room for one table.
typedef struct tide_items_hold tide_items_hold;
/// A hold on the items as they are now; NULL: not loaded. Let it go with tide_items_let_go, in any thread.
tide_items_hold *tide_subject_hold_items(const tide_subject *s);
const tide_items *tide_items_held(const tide_items_hold *hold);
/// `s` has the items of this hold from now on, as if it had loaded them; the hold stays the caller's.
void tide_subject_give_items(tide_subject *s, tide_items_hold *hold);
/// Takes NULL.
void tide_items_let_go(tide_items_hold *hold);
/// What is not in the columns (place, pool, what it lies in) is looked up.
tide_status tide_subject_item(tide_subject *s, uint32_t item, tide_item_facts *out, tide_error *err) TIDE_NODISCARD;

// ---- curves ----

typedef enum tide_curve_of {
    TIDE_CURVE_LIVE,      ///< requested bytes that live (trace); what is alive, aligned, aliases once (plan)
    TIDE_CURVE_PREDICTED, ///< what the plan says is alive, at the times when its steps ran; TIDE_ERR_NOT_FOUND without
                          ///< a plan; of a plan alone the same as LIVE
    TIDE_CURVE_RESERVED,  ///< taken from the system, for kinds and devices whose allocators record it; for all others
                         ///< what live blocks hold (trace). Of a plan the buffers, whole, and what persists. Of a trace
                         ///< the first question reads every event, 0.3 us each; beyond a million changes the curve
                         ///< knows lowest and highest of each 1024, not every one
} tide_curve_of;
/// What a curve is of. kind -1: all; TIDE_KINDS_BUT_WEIGHTS; device NULL: all.
typedef struct tide_curve_key {
    tide_curve_of of;
    int kind;
    const char *device;
} tide_curve_key;
/// Smallest and largest value in each of `n` equal columns of [t0, t1): no spike is lost. Column i is
/// [t0 + i * len / n, t0 + (i + 1) * len / n), at least one unit of the axis wide; what holds when it begins counts,
/// unless the curve has a point right there. A trace of 10 M events takes milliseconds.
tide_status tide_subject_columns(tide_subject *s, tide_curve_key key, int64_t t0, int64_t t1, size_t n,
                                 uint64_t *min_bytes, uint64_t *max_bytes, tide_error *err) TIDE_NODISCARD;
/// Highest value within [t0, t1] and its first moment (may be NULL).
tide_status tide_subject_peak_between(tide_subject *s, tide_curve_key key, int64_t t0, int64_t t1, uint64_t *bytes,
                                      tide_moment *at, tide_error *err) TIDE_NODISCARD;
/// Value just after `at`.
tide_status tide_subject_bytes_at(tide_subject *s, tide_curve_key key, tide_moment at, uint64_t *bytes,
                                  tide_error *err) TIDE_NODISCARD;

// ---- moments ----

typedef struct tide_live_item {
    uint32_t item; ///< TIDE_NO_ITEM while items are not loaded, and of blocks that are not among them
    uint64_t id;
    tide_item_site site; ///< texts borrowed from the subject
    tide_item_shape shape;
    uint64_t counts_bytes; ///< its part of the curve: of a plan's alias what it alone keeps, so that the parts sum
    uint64_t place;        ///< offset or address; TIDE_NO_OFFSET
    uint64_t address;      ///< of a tensor in the buffer of a run too; of a plan the same as place
    int64_t begin;         ///< where it was born
    bool free_requested;   ///< given up by its owner, still held
    bool is_unused;        ///< the bytes of a plan's buffer that no tensor uses; `id` is the buffer's block
    tide_size size;        ///< what came out of it, where it is sized while running; bound "": it is not
} tide_live_item;
typedef struct tide_live_items {
    tide_moment at;
    tide_live_item *items; ///< [n] by counts_bytes descending, then id; owned
    size_t n;
    uint64_t bytes; ///< sum of counts_bytes: the curve at that moment
} tide_live_items;
/// What is alive at `at`, persistent items too. In place of a plan's buffer of a run the tensors that lie in it, and an
/// item for the rest of it (is_unused), so that the sum is the curve.
tide_status tide_subject_live(tide_subject *s, tide_moment at, tide_live_items *out, tide_error *err) TIDE_NODISCARD;
void tide_live_items_deinit(tide_live_items *l);
/// The next (dir > 0) or previous moment at which an item is born or dies, for stepping, tensors in a plan's buffer
/// too; the same moment when there is none. Of a planned run O(tensors) for each step that is passed.
tide_status tide_subject_next_change(tide_subject *s, tide_moment from, int dir, tide_moment *out,
                                     tide_error *err) TIDE_NODISCARD;
/// The next peak of a curve (dir > 0) or the previous one, seen at `n` columns of [t0, t1): a column that is higher
/// than both its neighbours, plateaus once. TIDE_ERR_NOT_FOUND.
tide_status tide_subject_next_peak(tide_subject *s, tide_curve_key key, int64_t from, int dir, int64_t t0, int64_t t1,
                                   size_t n, tide_moment *out, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
