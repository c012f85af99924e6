// SPDX-License-Identifier: MIT
//
// moments: the questions that a viewer of a trace asks: who was live then, how high was it between
// here and there, what is the difference. Answered from leaves and snapshots (docs/trace-format.md), so that ten
// million events take milliseconds, and exactly: what a whole replay would say.
//
// `kind` is a tide_memory_kind or -1 for all, `device` a name or NULL for all; TIDE_ERR_NOT_FOUND for a device that the
// trace does not know. One kind on one device, and everything together, have leaves of their own. Other combinations
// (a kind on all devices, all kinds of one of several devices) are read from the events where more than one of them
// changed within a leaf and it matters: the first time up to 0.1 ms per leaf in chunks, 0.2 ms in rows.
//
// A question about events that thinning dropped is TIDE_ERR_NOT_FOUND, with the first event that is left, unless leaves
// can tell.
#ifndef TIDE_PROFILER_MOMENTS_H
#define TIDE_PROFILER_MOMENTS_H

#include "profiler/query.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_live {
    uint64_t block_id;
    const char *name;    ///< tag, or "" ; borrowed from the trace, like all texts here
    const char *scope;   ///< innermost scope it was allocated in, or ""
    int64_t scope_index; ///< step of that operator, number of that run; -1: none
    const char *device, *allocator;
    tide_memory_kind kind;
    uint32_t thread;
    int64_t run_id; ///< 0: outside all runs
    uint64_t requested_bytes, reserved_bytes, address, stream;
    uint64_t alloc_event, alloc_ns;
    bool free_requested; ///< given up by its owner, still held (another stream); of a window: when it begins
} tide_live;
typedef struct tide_live_set {
    uint64_t t_ns, event_id; ///< the last event that counts
    tide_live *items;        ///< [n] by block number; owned
    size_t n;
    uint64_t requested_bytes, reserved_bytes; ///< sums
} tide_live_set;

/// Blocks alive just after `t_ns`: what happened at `t_ns` has happened. A replay from the snapshot before, or from the
/// moment that was asked for last when that is nearer: scrolling forward is cheap.
tide_status tide_trace_live_set(tide_trace *t, uint64_t t_ns, tide_live_set *out, tide_error *err) TIDE_NODISCARD;
/// The same after event number `event_id` (a peak is an event, and many can share a nanosecond).
tide_status tide_trace_live_set_after(tide_trace *t, uint64_t event_id, tide_live_set *out,
                                      tide_error *err) TIDE_NODISCARD;
/// Blocks that were alive at any moment of [t0, t1], those freed at t0 included: a replay of the window. Sums are over
/// these blocks; a block number that was given twice is there twice. TIDE_ERR_INVALID when t1 < t0.
tide_status tide_trace_alive_between(tide_trace *t, uint64_t t0, uint64_t t1, tide_live_set *out,
                                     tide_error *err) TIDE_NODISCARD;
void tide_live_set_deinit(tide_live_set *s);

/// Highest live requested bytes within [t0, t1] and the first event and moment that reached them; what was live when t0
/// came counts (then *event is the last one before, 0 for none, and *t_ns is t0). `event` and `t_ns` may be NULL.
/// TIDE_ERR_INVALID when t1 < t0.
tide_status tide_trace_peak_between(tide_trace *t, int kind, const char *device, uint64_t t0, uint64_t t1,
                                    uint64_t *bytes, uint64_t *event, uint64_t *t_ns, tide_error *err) TIDE_NODISCARD;

/// As tide_trace_peak of one device, with the event that reached it: *event is the last one before the run (0: none)
/// when it was as high before, and *t_ns the run's begin then.
tide_status tide_trace_run_peak(tide_trace *t, int64_t run_id, int kind, const char *device, uint64_t *bytes,
                                uint64_t *event, uint64_t *t_ns, tide_error *err) TIDE_NODISCARD;
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

typedef enum tide_columns_mode {
    TIDE_COLUMNS_FAST,  ///< a spike may also show in the next columns: edges fall on leaves (1024 events). A window of
                        ///< up to 8 leaves is answered exactly
    TIDE_COLUMNS_EXACT, ///< as a replay of every event would say; reads the events of leaves that lie on an edge
} tide_columns_mode;
/// Smallest and largest live requested bytes in each of `n` equal columns of [t0, t1); no spike is lost, and none is
/// made up. Column i is [t0 + i * len / n, t0 + (i + 1) * len / n), at least 1 ns wide; what holds when it begins
/// counts unless an event lies right there.
tide_status tide_trace_columns(tide_trace *t, int kind, const char *device, uint64_t t0, uint64_t t1, size_t n,
                               tide_columns_mode mode, uint64_t *min_bytes, uint64_t *max_bytes,
                               tide_error *err) TIDE_NODISCARD;

typedef enum tide_group_by {
    TIDE_BY_KIND,
    TIDE_BY_DEVICE,
    TIDE_BY_SCOPE, ///< name and step of the innermost scope
    TIDE_BY_NAME,
    TIDE_BY_ALLOCATOR,
    TIDE_BY_SIZE, ///< powers of two: "[1 KiB, 2 KiB)"
    TIDE_BY_AGE,  ///< decades up to the set's moment: "< 1 us", "[1 us, 10 us)", ...
    TIDE_BY_THREAD,
    TIDE_BY_RUN,
} tide_group_by;
typedef struct tide_group {
    char *key; ///< owned by the array
    uint64_t n_blocks, requested_bytes, reserved_bytes;
} tide_group;
/// Groups of a live set, largest first (sizes and ages in their order). Their sums are the set's. Keys are for people:
/// "conv1 #3", "(outside all scopes)", "(no name)", "thread 2", "run 1", "(outside all runs)".
tide_status tide_live_set_group(const tide_live_set *s, tide_group_by by, tide_group **out, size_t *n,
                                tide_error *err) TIDE_NODISCARD;
void tide_groups_free(tide_group *groups, size_t n);

typedef struct tide_group_change {
    char *key;                                     ///< owned by the array
    uint64_t a_blocks, b_blocks, a_bytes, b_bytes; ///< requested
} tide_group_change;
/// Two sets, of one trace or of two, by the same grouping; largest change first, unchanged groups included. The changes
/// sum to the change of the sums.
tide_status tide_live_set_compare(const tide_live_set *a, const tide_live_set *b, tide_group_by by,
                                  tide_group_change **out, size_t *n, tide_error *err) TIDE_NODISCARD;
void tide_group_changes_free(tide_group_change *changes, size_t n);

typedef struct tide_trace_event {
    uint64_t id, t_ns;
    const char *op; ///< static text: tide_memory_op_name, or "scope_enter", "scope_leave", "gap"
    uint64_t block_id, requested_bytes, reserved_bytes, address, stream;
    const char *kind, *device, *allocator, *name, *scope; ///< "" for none; borrowed
    int64_t scope_index, run_id;                          ///< -1, 0: none
    uint32_t thread;
} tide_trace_event;
/// Up to `max` events from number `from` on (or from the first that is left), into an array of the caller's. *n 0:
/// behind the last.
tide_status tide_trace_events(tide_trace *t, uint64_t from, tide_trace_event *events, size_t max, size_t *n,
                              tide_error *err) TIDE_NODISCARD;
/// Number of the last event at or before `t_ns`; 0: none.
tide_status tide_trace_event_at(tide_trace *t, uint64_t t_ns, uint64_t *event_id, tide_error *err) TIDE_NODISCARD;
/// Moments named by tide_recorder_mark, in order, into a fresh array (tide_host_free; NULL for none). Looks at every
/// event: 0.05 us each.
typedef struct tide_trace_mark {
    const char *name; ///< borrowed
    uint64_t event_id, t_ns;
} tide_trace_mark;
tide_status tide_trace_marks(tide_trace *t, tide_trace_mark **out, size_t *n, tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
