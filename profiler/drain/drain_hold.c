// SPDX-License-Identifier: MIT
//
// How long events wait for others that come late. A program that gives its events times of its own hands some of them
// in long after they happened: a device's log that is read now and then. What was seen is held back in its rings for a
// while, so that what comes within that while is merged by its time:
//
//     seen at      10.0 s     10.1 s     ...      12.0 s  now         window 2 s
//     youngest     t = 7.2    t = 7.3             t = 9.2
//                       ^ taken up to here
//
// The window is of the clock on the wall, so that it holds for every clock that a program may have. It costs a lag of
// the trace, and nothing else: what waits is in the rings, where a kill does not lose it. A ring that is more than half
// full is taken down to a quarter whatever the window says, and nothing waits for a feed that has ended. Where all
// times are of the machine's clock, as they are unless a program says otherwise, nothing is held back until one was
// late.
#include "profiler/drain/drain_slot.h"

#include "core/base/assert.h"

static uint64_t window_ns(const tide__drain *d) {
    if (d->opt.hold_back_ms == TIDE_RECORD_NO_HOLD_BACK) return 0;
    if (d->opt.hold_back_ms != 0) return (uint64_t)d->opt.hold_back_ms * 1000000;
    for (size_t i = 0; i < d->n_feeds; i++)
        if (!d->feeds[i]->is_ended && d->feeds[i]->is_alive && d->feeds[i]->gives_times)
            return (uint64_t)TIDE__DRAIN_HOLD_MS * 1000000;
    return 0;
}

static bool has_living_feed(const tide__drain *d) {
    for (size_t i = 0; i < d->n_feeds; i++)
        if (!d->feeds[i]->is_ended && d->feeds[i]->is_alive) return true;
    return false;
}

/// Note the youngest event of now; a moment of each thirtieth of the window will do.
static void note_seen(tide__drain *d, uint64_t now, uint64_t window) {
    const uint64_t each = window / (TIDE__DRAIN_SEEN - 2) + 1;
    if (d->n_seen > 0 && now - d->seen[d->n_seen - 1].wall_ns < each) return;
    // The oldest that has left the window says how far to go; those before it say nothing more.
    size_t gone = 0;
    while (gone + 1 < d->n_seen && now - d->seen[gone + 1].wall_ns >= window) gone++;
    if (gone == 0 && d->n_seen == TIDE__DRAIN_SEEN) gone = 1;
    memmove(&d->seen[0], &d->seen[gone], (d->n_seen - gone) * sizeof d->seen[0]);
    d->n_seen -= gone;
    TIDE_ASSERT(d->n_seen < TIDE__DRAIN_SEEN && (d->n_seen == 0 || d->seen[d->n_seen - 1].wall_ns <= now));
    const int64_t before = d->n_seen > 0 ? d->seen[d->n_seen - 1].t_ns : INT64_MIN;
    d->seen[d->n_seen].wall_ns = now;
    d->seen[d->n_seen++].t_ns = d->round_ns > before ? d->round_ns : before;
}

/// A ring that is more than half full goes down to a quarter.
static void make_room(tide__drain *d) {
    for (size_t i = 0; i < d->n_active; i++) {
        tide__drain_ring *r = d->active[i];
        const uint64_t n_slots = tide__feed_reader_n_full(r->feed->reader, r->index);
        if (r->end - r->position <= n_slots / 2) continue;
        const tide__slot *s = tide__drain_slot(r, r->end - n_slots / 4);
        const uint64_t ns = s != NULL ? tide__drain_slot_ns(r->feed, s) : UINT64_MAX;
        const int64_t t_ns = ns > INT64_MAX ? INT64_MAX : (int64_t)ns > r->t_ns ? (int64_t)ns : r->t_ns;
        if (t_ns > d->hold_ns) d->hold_ns = t_ns;
    }
}

void tide__drain_find_hold(tide__drain *d) {
    const bool release = d->release;
    d->release = false;
    d->hold_ns = INT64_MAX;
    for (size_t i = 0; i < d->n_active; i++) {
        const tide__drain_ring *r = d->active[i];
        if (tide__drain_is_foreign(d, (uint64_t)r->own_ns, r->kind_flags)) r->feed->gives_times = true;
    }
    const uint64_t window = window_ns(d);
    if (window == 0 || release || !has_living_feed(d)) {
        d->n_seen = 0;
        return;
    }
    const uint64_t now = tide_now_ns();
    note_seen(d, now, window);
    d->hold_ns = INT64_MIN;
    for (size_t i = 0; i < d->n_seen && now - d->seen[i].wall_ns >= window; i++) d->hold_ns = d->seen[i].t_ns;
    make_room(d);
}

void tide__drain_release(tide__drain *d) { d->release = true; }
