// SPDX-License-Identifier: MIT
//
// What the questions about moments share: events read in order, the state after an event, and curves of live bytes
// that are made of leaves. Private to profiler/.
//
// A curve is the live bytes of one series, or of several together. It is a list of leaves; what happened inside of one
// is read from the events when it is needed:
//
//     leaves   [ min max last ][ min max last ]   ...   one per 1024 events in which the curve changed
//     points   . .. . .  . ..   of one leaf: value after each event that changed it
#ifndef TIDE_PROFILER_MOMENTS_INTERNAL_H
#define TIDE_PROFILER_MOMENTS_INTERNAL_H

#include "core/base/text.h"
#include "profiler/moments.h"
#include "profiler/read/trace_internal.h"

// ---- trace_events.c: events in order, and the state after an event ----

/// The state after event `event_id`; valid until the next question. TIDE_ERR_NOT_FOUND when it was dropped.
tide_status tide__trace_state_after(tide_trace *t, int64_t event_id, const tide__replay **out,
                                    tide_error *err) TIDE_NODISCARD;
/// One event of a walk, after it was applied, with what TIDE__READ_REPLAY reads. `series` as of tide__replay_apply.
typedef tide_status (*tide__walk_fn)(void *ctx, const tide__replay *r, const tide__event *e, size_t series);
/// Replay events first to last. `begin` (may be NULL) sees the state before the first of them. What a callback returns
/// but TIDE_OK is memory that it did not get.
tide_status tide__trace_walk(tide_trace *t, int64_t first, int64_t last,
                             tide_status (*begin)(void *ctx, const tide__replay *r), tide__walk_fn on_event, void *ctx,
                             tide_error *err) TIDE_NODISCARD;
/// What of an event is asked for; the rest may be 0 (kind: TIDE__NO_KIND).
typedef enum tide__read {
    TIDE__READ_ALL,
    TIDE__READ_REPLAY,  ///< what tide__replay_apply looks at
    TIDE__READ_CHANGES, ///< kind, device and requested bytes of allocs and completed frees
    TIDE__READ_OPS,     ///< id, t_ns, op, block_id
    TIDE__READ_SCOPES,  ///< all of scopes that are entered and left
    TIDE__N_READS
} tide__read;
/// Events first to last without replay, in intervals; ends early when `on_events` returns anything but TIDE_OK:
/// TIDE_ERR_NOMEM, or TIDE_ERR_BAD_INPUT for events that cannot be. TIDE_ERR_NOT_FOUND when one of them was dropped.
tide_status tide__trace_each(tide_trace *t, tide__read what, int64_t first, int64_t last,
                             tide_status (*on_events)(void *ctx, const tide__event *events, size_t n), void *ctx,
                             tide_error *err) TIDE_NODISCARD;
void tide__trace_walk_deinit(tide_trace *t);

// ---- moments.c: events by time ----

/// Last event at or before `t_ns`, 0: none. Of those that the trace shows.
tide_status tide__trace_event_at(tide_trace *t, uint64_t t_ns, int64_t *event_id, tide_error *err) TIDE_NODISCARD;
/// Last event before `t_ns`.
tide_status tide__trace_event_before(tide_trace *t, uint64_t t_ns, int64_t *event_id, tide_error *err) TIDE_NODISCARD;

// ---- moments_curve.c ----

typedef struct tide__point {
    int64_t event, t_ns;
    int64_t bytes; ///< after it
} tide__point;

typedef struct tide__curve {
    int kind;         ///< as asked; -1: all
    int64_t device;   ///< number, -1: all
    int32_t *members; ///< [n_members] places in t->series, owned; none: nothing of that kind
    size_t n_members;
    tide__leaf *own;          ///< [n], owned: of several members. `series` is -1 where min and max are bounds only
    const tide__leaf *leaves; ///< [n]: those of the one member, or own
    size_t n;
    tide__point *points; ///< [n_points], owned: of the leaf points_of
    size_t n_points, cap_points;
    size_t points_of; ///< SIZE_MAX: none
} tide__curve;

/// The curve of a kind (-1: all) on a device (NULL: all); valid until refresh. TIDE_ERR_NOT_FOUND for a device that the
/// trace does not know.
tide_status tide__trace_curve(tide_trace *t, int kind, const char *device, tide__curve **out,
                              tide_error *err) TIDE_NODISCARD;
/// Points of leaf `leaf_i`, in c->points.
tide_status tide__curve_points(tide_trace *t, tide__curve *c, size_t leaf_i, tide_error *err) TIDE_NODISCARD;
/// Make min, max and the first event of max of leaf `leaf_i` exact.
tide_status tide__curve_settle(tide_trace *t, tide__curve *c, size_t leaf_i, tide_error *err) TIDE_NODISCARD;
static inline bool tide__curve_is_settled(const tide__curve *c, size_t leaf_i) {
    return c->own == NULL || c->own[leaf_i].series >= 0;
}
/// Value before leaf `leaf_i` began; with n: at the end.
static inline int64_t tide__curve_before(const tide__curve *c, size_t leaf_i) {
    return leaf_i > 0 ? c->leaves[leaf_i - 1].last_bytes : 0;
}
/// First leaf that ends with event `event` or behind it.
size_t tide__curve_find(const tide__curve *c, int64_t event);
/// Value after event `event`.
tide_status tide__curve_value(tide_trace *t, tide__curve *c, int64_t event, int64_t *bytes,
                              tide_error *err) TIDE_NODISCARD;
/// Highest value in events first to last and the first event that has it; *event is first - 1 (and *t_ns untouched)
/// when what was live before is the highest.
tide_status tide__curve_peak(tide_trace *t, tide__curve *c, int64_t first, int64_t last, int64_t *bytes, int64_t *event,
                             int64_t *t_ns, tide_error *err) TIDE_NODISCARD;

/// What a call stack is grouped by, from scope `scope_id` of a trace outwards; "(no stack)" where there is none:
/// stacks.c.
void tide__stack_key(const tide_trace *t, uint32_t scope_id, tide_group_by by, tide_text *key);
/// Fills with_blocks and with_bytes of groups by module, function, file or library, and adds those that allocated
/// nothing themselves: stacks.c. `groups` may move; on failure it is what it was, though not all of it filled.
tide_status tide__groups_add_callees(const tide_live_set *s, tide_group_by by, tide_group **groups, size_t *n,
                                     tide_error *err) TIDE_NODISCARD;

#endif
