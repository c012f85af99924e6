// SPDX-License-Identifier: MIT
//
// Many usual events at once. Usual are nearly all events: an alloc or a free that contradicts nothing, a scope that is
// entered or left, not at the end of an interval of leaves. They are taken in three steps. Each is a short loop whose
// iterations do not wait for one another:
//
//     look ahead   64 slots of a ring: when they are due
//     collect      the slots of all rings by time: events, and where the table of live blocks has their blocks, which
//                  is fetched into the cache
//     apply        block, sums and leaves, event by event
//
// The first event that is not usual ends the group. The merge takes that one, and what was collected behind it is
// collected again. The more often that happens, the smaller are the groups. Both ways use the same rules: what a slot
// means is in drain_slot.h, what an event does to memory in replay_rules.h, what it does to leaves in leaf.h.
#include "profiler/drain/drain_slot.h"
#include "profiler/store/replay_rules.h"

enum { SHORTEST = 16 };

/// By operation of a slot: whether it may be usual.
static const bool is_usual_op[256] = {[TIDE_MEM_ALLOC] = true,
                                      [TIDE_MEM_FREE_REQUESTED] = true,
                                      [TIDE_MEM_FREE_COMPLETED] = true,
                                      [TIDE__OP_SCOPE_ENTER] = true,
                                      [TIDE__OP_SCOPE_LEAVE] = true};

// ---- look ahead ----

/// From position `at`, before which the last slot was due at `t_ns`.
static void look_ahead(const tide__drain *d, tide__drain_ring *r, uint64_t at, int64_t t_ns) {
    tide__drain_ahead *a = &r->ahead;
    const uint64_t end = r->end - at > TIDE__DRAIN_AHEAD ? at + TIDE__DRAIN_AHEAD : r->end;
    a->begin = at;
    a->is_all = end == r->end;
    a->next_ns = INT64_MAX;
    for (size_t i = 0; at < end; at++, i++) {
        const volatile tide__slot *s = tide__drain_slot(r, at);
        uint64_t ns = 0;
        if (__builtin_expect(s != NULL, 1)) {
            const uint8_t op = s->op, kind_flags = s->kind_flags;
            ns = tide__drain_ns_of(r->feed, s->time, kind_flags);
            if (__builtin_expect(kind_flags >> TIDE__SLOT_FLAG_SHIFT != 0, 0) &&
                tide__drain_is_foreign(d, ns, kind_flags))
                r->feed->gives_times = true;
            if (__builtin_expect(is_usual_op[op] && ns <= INT64_MAX, 1)) {
                if (__builtin_expect((int64_t)ns < t_ns, 0) && tide__drain_is_late(d, (int64_t)ns, t_ns, kind_flags))
                    goto stop;
                t_ns = (int64_t)ns > t_ns ? (int64_t)ns : t_ns;
                a->t_ns[i] = t_ns;
                a->op[i] = op;
                a->kind_flags[i] = kind_flags;
                if (t_ns <= d->hold_ns && (at < r->sure_end || t_ns <= d->round_ns)) continue;
            }
        }
    stop:
        a->is_all = true;
        a->next_ns = ns <= INT64_MAX && (int64_t)ns > t_ns ? (int64_t)ns : t_ns; // the merge will see what it is
        break;
    }
    a->end = at;
}

/// When the slot at r->at is due, which follows the one that was taken last.
static inline void find_due(const tide__drain *d, tide__drain_ring *r, int64_t t_ns) {
    if (__builtin_expect(r->at == r->ahead.end && !r->ahead.is_all, 0)) look_ahead(d, r, r->at, t_ns);
    r->due_ns = r->at < r->ahead.end ? r->ahead.t_ns[r->at - r->ahead.begin] : r->ahead.next_ns;
}

/// The same of the slot at the ring's position, which the merge may have moved on, or a group that ended early back.
static void find_first_due(const tide__drain *d, tide__drain_ring *r) {
    r->at = r->position;
    r->due_ns = INT64_MAX;
    if (!r->has_next || r->is_broken) return;
    if (r->at < r->ahead.begin || r->at > r->ahead.end) look_ahead(d, r, r->at, r->t_ns);
    find_due(d, r, r->t_ns);
}

// ---- collect ----

/// The event of the slot at r->at, all but its number. False: the merge takes the slot.
static inline bool make_event(tide__drain_ring *r, tide__event *e) {
    const volatile tide__slot *s = tide__drain_place(r, r->at);
    const size_t i = r->at - r->ahead.begin;
    const uint8_t op = r->ahead.op[i];
    const uint64_t number = s->block_id;
    if (number == 0 && op < TIDE__OP_SCOPE_ENTER) return false;
    return tide__drain_make_event(r, s, op, r->ahead.kind_flags[i], number, r->ahead.t_ns[i], e);
}

/// Where apply will look: the entry that a free's block seems to have, or one that is free for an alloc.
static inline void fetch_entry(const tide__replay *live, const tide__event *e, tide__drain_row *row) {
    const uint64_t hash = tide__replay_hash(e->block_id);
    const size_t group = tide__replay_group(live, hash);
    const uint8_t tag = tide__replay_tag(live, hash);
    const unsigned found = tide__group_match(&live->tags[group], e->op == TIDE_MEM_ALLOC ? TIDE__TAG_NEVER : tag);
    const size_t entry_i = group + (unsigned)__builtin_ctz(found | 1u << (TIDE__GROUP - 1));
    __builtin_prefetch(&live->table[entry_i], 1);
    row->hint = (uint32_t)entry_i;
    row->tag = tag;
}

/// The ring whose next slot is due first, the first one of several. *until_ns: when the next one of the others is.
static inline tide__drain_ring *due_first(const tide__drain *d, int64_t *until_ns) {
    tide__drain_ring *best = d->active[0];
    int64_t until = INT64_MAX;
    for (size_t i = 1; i < d->n_active; i++) {
        tide__drain_ring *r = d->active[i];
        const int64_t due = r->due_ns;
        if (due < best->due_ns) {
            until = best->due_ns; // none of those before it was due earlier
            best = r;
        } else if (due < until) {
            until = due;
        }
    }
    *until_ns = until;
    return best;
}

/// Whether what is next will stand with a later time than its own, to be noted by the merge.
static inline bool is_behind(const tide__drain *d, const tide__drain_ring *r) {
    return __builtin_expect(r->due_ns < d->last_ns, 0) &&
           tide__drain_is_late(d, r->due_ns, d->last_ns, r->ahead.kind_flags[r->at - r->ahead.begin]);
}

/// Up to `limit` events behind those that wait, in the order of time. @return how many
static size_t collect(const tide__drain *d, size_t limit) {
    const tide__replay *live = &d->replay;
    tide__event *e = &d->events[d->n_events];
    tide__drain_row *row = d->rows, *const end = row + limit;
    for (size_t i = 0; i < d->n_active; i++) find_first_due(d, d->active[i]);
    while (row < end) {
        int64_t until_ns;
        tide__drain_ring *r = due_first(d, &until_ns);
        if (r->due_ns > d->end_due_ns) return (size_t)(row - d->rows); // the merge takes the end of a process first
        if (until_ns > d->end_due_ns) until_ns = d->end_due_ns + 1;
        do {
            if (r->due_ns == INT64_MAX || r->at == r->ahead.end || is_behind(d, r) || !make_event(r, e))
                return (size_t)(row - d->rows);
            fetch_entry(live, e, row);
            row->ring = r;
            row->t_ns = e->t_ns;
            r->at++;
            find_due(d, r, e->t_ns);
            e++;
            row++;
        } while (r->due_ns < until_ns && row < end);
    }
    return limit;
}

// ---- apply ----

/// The entry of that block; SIZE_MAX: it is not live.
static inline size_t entry_of(const tide__replay_arrays *a, const tide__replay *live, const tide__drain_row *row,
                              int64_t block_id) {
    const size_t i = row->hint;
    if (__builtin_expect(a->tags[i] == row->tag && a->table[i].block_id == block_id, 1)) return i;
    return tide__replay_entry_of(live, block_id);
}

/// The group of the hint has room and no block with that tag, as mostly: SIZE_MAX where it may be otherwise.
static inline size_t claim_by_hint(const tide__replay_arrays *a, tide__replay *live, const tide__drain_row *row) {
    const size_t i = row->hint;
    const uint8_t *group = &a->tags[i & ~(size_t)(TIDE__GROUP - 1)];
    if (a->tags[i] != TIDE__TAG_NEVER || tide__group_match(group, row->tag) != 0) return SIZE_MAX;
    a->tags[i] = row->tag;
    live->n_live++;
    return i;
}

/// An entry for a block that is not live yet. SIZE_MAX: it is.
static inline size_t claim(const tide__replay_arrays *a, tide__replay *live, const tide__drain_row *row,
                           int64_t block_id) {
    const size_t i = claim_by_hint(a, live, row);
    if (__builtin_expect(i != SIZE_MAX, 1)) return i;
    if (tide__replay_entry_of(live, block_id) != SIZE_MAX) return SIZE_MAX;
    return tide__replay_take_entry(live, block_id);
}

/// After `e` changed a series: its leaf and that of the sum.
__attribute__((always_inline)) static inline void change_leaves(tide__drain *d, size_t series_i, const tide__event *e,
                                                                bool rises) {
    tide__leaf *open = d->leaves.open;
    const tide__series *series = d->replay.series;
    if (__builtin_expect(open[series_i].first_event == 0, 0)) {
        tide__leaf_touch(&d->leaves, &series[0], 0, e);
        tide__leaf_begin(&d->leaves, &series[series_i], series_i, e);
    }
    tide__leaf_change(&open[0], &series[0], e->id, e->t_ns, rises, !rises);
    tide__leaf_change(&open[series_i], &series[series_i], e->id, e->t_ns, rises, !rises);
}

static inline bool alloc(tide__drain *d, const tide__replay_arrays *a, const tide__drain_row *row,
                         const tide__event *e) {
    tide__replay *live = &d->replay;
    const size_t series_i = (size_t)live->series_of[e->device][e->kind];
    const tide__series *s = &a->series[series_i];
    if (__builtin_expect(series_i == 0 || !tide__series_holds_easily(live, s, e->requested_bytes, e->reserved_bytes),
                         0))
        return false;
    const size_t entry_i = claim(a, live, row, e->block_id);
    if (__builtin_expect(entry_i == SIZE_MAX, 0)) return false;
    tide__replay_rule_alloc(live, a, entry_i, series_i, e);
    change_leaves(d, series_i, e, true);
    return true;
}

static inline bool free_completed(tide__drain *d, const tide__replay_arrays *a, const tide__drain_row *row,
                                  const tide__event *e) {
    const size_t entry_i = entry_of(a, &d->replay, row, e->block_id);
    if (__builtin_expect(entry_i == SIZE_MAX, 0)) return false;
    const size_t series_i = tide__replay_rule_end(&d->replay, a, entry_i, e);
    change_leaves(d, series_i, e, false);
    return true;
}

static inline bool free_requested(const tide__drain *d, const tide__replay_arrays *a, const tide__drain_row *row,
                                  const tide__event *e) {
    const size_t entry_i = entry_of(a, &d->replay, row, e->block_id);
    return entry_i != SIZE_MAX && tide__replay_rule_request(a, entry_i, e);
}

/// The first of n collected events that are usual. @return how many
static size_t apply(tide__drain *d, size_t n) {
    tide__replay *live = &d->replay;
    const tide__replay_arrays a = tide__replay_arrays_of(live);
    tide__event *const events = &d->events[d->n_events];
    const tide__drain_row *row = d->rows;
    int64_t id = d->last_event, t_ns = d->last_ns;
    for (size_t i = 0; i < n; i++, row++) {
        tide__event *e = &events[i];
        e->id = ++id;
        t_ns = e->t_ns > t_ns ? e->t_ns : t_ns;
        e->t_ns = t_ns;
        bool is_usual = true;
        if (e->op == TIDE_MEM_ALLOC) {
            is_usual = alloc(d, &a, row, e);
        } else if (e->op == TIDE_MEM_FREE_COMPLETED) {
            is_usual = free_completed(d, &a, row, e);
        } else if (e->op == TIDE_MEM_FREE_REQUESTED) {
            is_usual = free_requested(d, &a, row, e);
        }
        if (__builtin_expect(!is_usual, 0)) {
            n = i;
            break;
        }
    }
    if (n == 0) return 0;
    live->last_event = d->last_event = d->leaves.last_event = events[n - 1].id;
    live->last_ns = d->last_ns = d->leaves.end_ns = events[n - 1].t_ns;
    live->looked_for = 0;
    live->n_changed = events[n - 1].op == TIDE_MEM_ALLOC || events[n - 1].op == TIDE_MEM_FREE_COMPLETED;
    tide__replay_settle(live);
    return n;
}

// ---- all of it ----

/// How many events may be taken before something happens behind one: leaves end, the buffer is full.
static size_t room_for(const tide__drain *d, size_t limit) {
    const tide__leaves *l = &d->leaves;
    if (d->n_active == 0 || d->replay.n_series > l->n_open || d->replay.on_gone != NULL) return 0;
    const int64_t in_leaf = l->plain_until - 1 - d->last_event; // without leaves there is no such number
    const size_t in_buffer = TIDE__DRAIN_BUFFER_EVENTS - 1 - d->n_events;
    if (l->plain_until == 0 || in_leaf <= 0) return 0;
    if (limit > (uint64_t)in_leaf) limit = (size_t)in_leaf;
    if (limit > in_buffer) limit = in_buffer;
    return limit < d->usual_limit ? limit : d->usual_limit;
}

tide_status tide__drain_take_usual(tide__drain *d, size_t limit, size_t *n, tide_error *err) {
    *n = 0;
    const size_t room = room_for(d, limit);
    // Without memory the merge will find that out, event by event.
    if (room == 0 || !tide__replay_reserve(&d->replay, room)) return TIDE_OK;
    const size_t n_collected = collect(d, room), n_taken = apply(d, n_collected);
    if (n_taken < n_collected)
        d->usual_limit = SHORTEST;
    else if (n_taken == d->usual_limit)
        d->usual_limit = 2 * d->usual_limit < TIDE__DRAIN_USUAL ? 2 * d->usual_limit : TIDE__DRAIN_USUAL;
    for (size_t i = 0; i < n_taken; i++) {
        tide__drain_ring *r = d->rows[i].ring;
        r->position++;
        r->t_ns = d->rows[i].t_ns;
    }
    d->n_events += n_taken;
    *n = n_taken;
    for (size_t i = 0; i < d->n_active; i++) TIDE_TRY(tide__drain_next(d, d->active[i], err));
    return TIDE_OK;
}
