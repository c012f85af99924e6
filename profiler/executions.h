// SPDX-License-Identifier: MIT
//
// executions: each time that a recorded run executed its program, step by step, and what lay in the plan's buffer then.
//
//     run 1          |----------------------------------------------------|   one row of table run
//     lane 0         | execution 0 |  | execution 1 |  | execution 2 |        a lane is a thread: one context each
//     steps            0 1 2 3 4        0 1 2 3 4        0 1 2 3 4            operators that were entered
//     in the buffer    tensors alive at that step, by the plan; nothing between two executions
//
// The scopes of the trace say when a step began, the plan of the run says which tensors are alive at it: nothing more
// is recorded. A step lasts until the next one begins, or, of the last one, until its operator is left.
#ifndef TIDE_PROFILER_EXECUTIONS_H
#define TIDE_PROFILER_EXECUTIONS_H

#include "profiler/moments.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A step of an execution, from its first event on.
typedef struct tide_execution_step {
    uint64_t t_ns;
    uint32_t event; ///< counted from the execution's first_event
    int32_t step;   ///< of the program
} tide_execution_step;

typedef struct tide_execution {
    int64_t number;                   ///< as its scope counts: 0 for the first of a context; -1: it has no scope
    uint32_t thread;                  ///< of the trace
    uint32_t lane;                    ///< 0, 1, … in order of the threads' first executions
    uint64_t buffer_block;            ///< the block that it works in; 0: it did not say
    uint64_t first_event, last_event; ///< entered and left; UINT64_MAX: it was never left
    uint64_t begin_ns, end_ns;        ///< the same as times
    uint64_t idle_event, idle_ns;     ///< its last operator was left: the buffer holds nothing; UINT64_MAX: it was not
    size_t first_step, n_steps;       ///< see tide_execution_steps
    bool goes_back;                   ///< it went through steps again: those of a loop's body
} tide_execution;

/// The executions of one run. Everything is the trace's: valid until refresh or close.
typedef struct tide_executions {
    int64_t run_id;
    const tide_memory_plan *plan; ///< of a planned run; NULL: its tensors are blocks of their own
    const tide_execution *items;  ///< [n] by first_event
    size_t n, n_lanes;
} tide_executions;

/// Reads the scopes of the run the first time, 0.1 us an event, and what came since after a refresh. Where the run's
/// beginning was dropped its executions begin with what is left. TIDE_ERR_NOT_FOUND for a run that is not there.
tide_status tide_trace_executions(tide_trace *t, int64_t run_id, const tide_executions **out,
                                  tide_error *err) TIDE_NODISCARD;
/// Its steps in order: [e->n_steps].
const tide_execution_step *tide_execution_steps(const tide_executions *x, const tide_execution *e);
/// The execution of the lane that goes on after event `event`; SIZE_MAX: none. O(log n).
size_t tide_executions_at(const tide_executions *x, uint32_t lane, uint64_t event);
/// Whether an execution of the run works in that block, at any time. False for all where none says so:
/// tide_executions_say_buffers.
bool tide_executions_works_in(const tide_executions *x, uint64_t block_id);
bool tide_executions_say_buffers(const tide_executions *x);
/// The buffer of the plan that a block of that kind, device and size is, if it is one; NULL: it is none.
const tide_plan_buffer *tide_executions_buffer(const tide_executions *x, tide_memory_kind kind, const char *device,
                                               uint64_t requested_bytes);
/// The same at a time: what happened at `t_ns` has happened.
size_t tide_executions_at_ns(const tide_executions *x, uint32_t lane, uint64_t t_ns);
size_t tide_execution_step_at_ns(const tide_executions *x, const tide_execution *e, uint64_t t_ns);
/// Of the steps of `e` the first that is one of [begin, end) of the program, and behind the last one: what lives in
/// these is there at some time in between. Both are the same where the execution went through none. O(log n), or O(n)
/// where it goes back.
void tide_execution_range(const tide_executions *x, const tide_execution *e, int64_t begin, int64_t end, size_t *first,
                          size_t *behind);
/// Since which of its steps all have been in [begin, end), up to step `at` of it, which is. As costly.
size_t tide_execution_since(const tide_executions *x, const tide_execution *e, size_t at, int64_t begin, int64_t end);
/// The first execution of the lane that begins behind event `event`; SIZE_MAX: none. O(log n).
size_t tide_executions_next(const tide_executions *x, uint32_t lane, uint64_t event);
/// The last execution of the lane that begins before event `event`; SIZE_MAX: none. O(log n).
size_t tide_executions_before(const tide_executions *x, uint32_t lane, uint64_t event);
/// The index in its steps of the one that runs after event `event`; SIZE_MAX: none has begun, or all are over.
/// O(log n).
size_t tide_execution_step_at(const tide_executions *x, const tide_execution *e, uint64_t event);

/// Live bytes with each plan's buffer counted by the tensors that lie in it: what is live less what the set expanded at
/// that moment has as unused.
typedef struct tide_trace_used {
    uint64_t event, t_ns;
    uint64_t bytes, live_bytes; ///< used; and live, as everywhere
} tide_trace_used;
/// Every change of either from event `first` to `last`, in order; before these the value that holds when `first` comes
/// (as of event first - 1, at the time of the first). run_id 0: by the plans of all runs. Anything but TIDE_OK from
/// `fn` is memory that it did not get. A replay: 0.2 us an event. TIDE_ERR_NOT_FOUND for events that were dropped.
tide_status tide_trace_each_used(tide_trace *t, int64_t run_id, uint64_t first, uint64_t last,
                                 tide_status (*fn)(void *ctx, const tide_trace_used *used), void *ctx,
                                 tide_error *err) TIDE_NODISCARD;
/// What lies in plans' buffers after each of events first to last: the same, and known from executions alone.
typedef struct tide_trace_filling {
    uint64_t first, last, bytes;
} tide_trace_filling;
/// From change to change, events `first` to `last` without a gap. run_id 0: of all runs. Costs as much as the runs have
/// steps. What `fn` returns but TIDE_OK ends it and is returned.
tide_status tide_trace_each_filling(tide_trace *t, int64_t run_id, uint64_t first, uint64_t last,
                                    tide_status (*fn)(void *ctx, const tide_trace_filling *filling), void *ctx,
                                    tide_error *err) TIDE_NODISCARD;
/// The peak of a run or of one of its executions (SIZE_MAX: of the whole run). Where it is as high at several moments,
/// the first with the most used bytes: in a planned run, whose live bytes hardly change, the step with the most in its
/// buffer. run_id 0: the whole trace, by the plans of all runs. Costs as much as the run has steps; one execution as
/// tide_trace_each_used.
tide_status tide_trace_fullest(tide_trace *t, int64_t run_id, size_t execution, tide_trace_used *out,
                               tide_error *err) TIDE_NODISCARD;
/// What one execution comes to, by the numbers of events: from its first event on, without the one that leaves it.
typedef struct tide_execution_sum {
    tide_trace_used peak; ///< as of tide_trace_fullest: of all that is live meanwhile, whoever made it
    uint64_t n_allocs;    ///< allocations that its own thread made in it
    uint64_t taken_bytes; ///< segments that its own thread took from the system in it
} tide_execution_sum;
/// Those of a run: *out [n of tide_trace_executions], the caller's, to be freed with tide_host_free. Two passes over
/// the events of the run. Errors as tide_trace_executions and tide_trace_each_used.
tide_status tide_trace_execution_sums(tide_trace *t, int64_t run_id, tide_execution_sum **out,
                                      tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
