// SPDX-License-Identifier: MIT
//
// moments: the questions that a viewer of a trace asks beside the public ones (tidemark/trace.h: live sets, peaks,
// columns, groups, differences): how much was live then, when did it change. Answered from leaves and snapshots
// (docs/trace-format.md), so that ten million events take milliseconds, and exactly: what a whole replay would say.
//
// `kind` is a tide_memory_kind, -1 for all or TIDE_KINDS_BUT_WEIGHTS, `device` a name or NULL for all;
// TIDE_ERR_NOT_FOUND for a device that the trace does not know. One kind on one device, and everything together, have
// leaves of their own. Other combinations (several kinds, a kind on all devices, all kinds of one of several devices)
// are read from the events where more than one of them changed within a leaf and it matters: the first time up to 0.1
// ms per leaf in chunks, 0.2 ms in rows.
//
// A question about events that thinning dropped is TIDE_ERR_NOT_FOUND, with the first event that is left, unless leaves
// can tell.
#ifndef TIDE_PROFILER_MOMENTS_H
#define TIDE_PROFILER_MOMENTS_H

#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

/// As a kind: all but Persistent (weights).
enum { TIDE_KINDS_BUT_WEIGHTS = -2 };
/// Whether `kind` is one of those that are asked for.
static inline bool tide_kind_is_among(int asked, int kind) {
    return asked == -1 || asked == kind || (asked == TIDE_KINDS_BUT_WEIGHTS && kind != TIDE_KIND_PERSISTENT);
}

/// Blocks that were alive at any moment of [t0, t1], those freed at t0 included: a replay of the window. Sums are over
/// these blocks; a block number that was given twice is there twice. TIDE_ERR_INVALID when t1 < t0.
tide_status tide_trace_alive_between(tide_trace *t, uint64_t t0, uint64_t t1, tide_live_set *out,
                                     tide_error *err) TIDE_NODISCARD;
/// Blocks that are live at `t_ns`, and those that processes had when they ended before it: never freed. Sums are over
/// all of them, though they were not live together. Of a thinned trace, processes that ended before its first event are
/// not known. Costs a look at the trace for each process.
tide_status tide_trace_never_freed(tide_trace *t, uint64_t t_ns, tide_live_set *out, tide_error *err) TIDE_NODISCARD;
/// Temporary blocks of [t0, t1]: what their thread did next was to free them, before it allocated or freed anything
/// else. Sums are over all of them, though they were not live together. Reads all events between.
tide_status tide_trace_temporary(tide_trace *t, uint64_t t0, uint64_t t1, tide_live_set *out,
                                 tide_error *err) TIDE_NODISCARD;
/// Live requested bytes just after `t_ns`; and after event `event` (0: before the first).
tide_status tide_trace_bytes_at(tide_trace *t, int kind, const char *device, uint64_t t_ns, uint64_t *bytes,
                                tide_error *err) TIDE_NODISCARD;
tide_status tide_trace_bytes_after(tide_trace *t, int kind, const char *device, uint64_t event, uint64_t *bytes,
                                   tide_error *err) TIDE_NODISCARD;
/// The nearest event behind `event` (dir > 0) or before it at which a block came or went. TIDE_ERR_NOT_FOUND: there is
/// none, or it was dropped. Intervals in which nothing changed cost nothing.
tide_status tide_trace_next_change(tide_trace *t, uint64_t event, int dir, uint64_t *out_event, uint64_t *out_ns,
                                   tide_error *err) TIDE_NODISCARD;

/// What live blocks of one kind on one device hold, rounding included, after an event that changed it.
typedef struct tide_trace_held {
    uint64_t event, t_ns;
    tide_memory_kind kind;
    const char *device; ///< borrowed from the trace
    uint64_t reserved_bytes;
} tide_trace_held;
/// Every change of it, in order; first what each holds before the first event that is kept, at its moment. Anything but
/// TIDE_OK from `fn` is memory that it did not get. A replay of the whole trace: 0.2 us an event.
tide_status tide_trace_each_held(tide_trace *t, tide_status (*fn)(void *ctx, const tide_trace_held *held), void *ctx,
                                 tide_error *err) TIDE_NODISCARD;

/// Whether groups have with_blocks and with_bytes.
static inline bool tide_group_by_has_callees(tide_group_by by) {
    return by == TIDE_BY_MODULE || by == TIDE_BY_FUNCTION || by == TIDE_BY_FILE || by == TIDE_BY_LIBRARY;
}
/// Put them in the order of with_bytes, the most first; of equal ones lines of Python.
void tide_groups_sort_by_callees(tide_group *groups, size_t n);

/// Events of a trace beside the memory operations: tide_trace_event.code.
enum { TIDE_TRACE_SCOPE_ENTER = 16, TIDE_TRACE_SCOPE_LEAVE, TIDE_TRACE_GAP, TIDE_TRACE_PROCESS_END };
typedef struct tide_trace_event {
    uint64_t id, t_ns;
    int code;       ///< tide_memory_op, or one of those above
    const char *op; ///< static text: tide_memory_op_name, or "scope_enter", "scope_leave", "gap", "process_end"
    uint64_t block_id, requested_bytes, reserved_bytes, address, stream;
    const char *kind, *device, *allocator, *name, *scope; ///< "" for none; borrowed
    int64_t scope_index, run_id;                          ///< -1, 0: none
    uint32_t scope_id;                                    ///< of the scope; 0: none
    uint32_t thread;
    uint32_t process; ///< number of the process, from 0: block numbers, addresses and streams are its own
} tide_trace_event;
/// Up to `max` events from number `from` on (or from the first that is left), into an array of the caller's. *n 0:
/// behind the last.
tide_status tide_trace_events(tide_trace *t, uint64_t from, tide_trace_event *events, size_t max, size_t *n,
                              tide_error *err) TIDE_NODISCARD;
/// What was live before event `first_event` as the events that allocated it, in their order, as tide_trace_events gives
/// them; none for the first event. *out [*n] is owned: tide_host_free; NULL when there are none.
tide_status tide_trace_allocs_before(tide_trace *t, uint64_t first_event, tide_trace_event **out, size_t *n,
                                     tide_error *err) TIDE_NODISCARD;
/// Number of the last event at or before `t_ns`; 0: none.
tide_status tide_trace_event_at(tide_trace *t, uint64_t t_ns, uint64_t *event_id, tide_error *err) TIDE_NODISCARD;
#ifdef __cplusplus
}
#endif
#endif
