// SPDX-License-Identifier: MIT
//
// The events of all rings in one order.
//
// Heads are read twice. What lies below the first reading was there when the round began; what lies between the two
// counts only up to the time T of the youngest of those:
//
//     ring 0   | a  b  c | d            first heads: c, x        T: time of c
//     ring 1   | x       | y   z        between: d, y, z         taken: a x b c, and y, z, d as far as they are not
//                                                                younger than c
//
// So what is taken is closed: an event that another one follows from was put in before the other's time was read, so
// it lies below the second heads, with a smaller time. Clocks of two cores may differ by some tens of ns, though: when
// the event that is next by its time would end a block that is not allocated yet, the rings are searched a little way
// ahead, and the one that allocates it goes first.
//
// Where a program gives its events times of its own they may come late: find_hold says how long the others wait.
// What comes later still stands where it came, and its own time is noted.
#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "profiler/drain/drain_address.h"
#include "profiler/drain/drain_slot.h"

// ---- what waits ----
//
// How long events wait for others that come late. A program that gives its events times of its own hands some of them
// in long after they happened: a device's log that is read now and then. What was seen is held back in its rings for a
// while, so that what comes within that while is merged by its time:
//
//     seen at      10.0 s     10.1 s     ...      12.0 s  now         window 2 s
//     youngest     t = 7.2    t = 7.3             t = 9.2
//                       ^ taken up to here
//
// The window is measured by the machine's clock, so it holds for every clock that a program may have. It costs only a
// lag of the trace: what waits is in the rings, where a kill does not lose it. A ring that is more than half
// full is taken down to a quarter whatever the window says, and nothing waits for a feed that has ended. Where all
// times are of the machine's clock, as they are unless a program says otherwise, nothing is held back until one was
// late.

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

/// Where what is taken in this round must end so that what still comes late finds its place.
static void find_hold(tide__drain *d) {
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

enum { AHEAD_SLOTS = 4096 }; ///< of a ring, at most

// ---- control slots ----

/// Numbers are the caller's. 0, or one that the file has no room for, means no thread.
static tide_status take_thread(tide__drain *d, tide__drain_ring *r, uint64_t number, tide_error *err) {
    if (number > UINT32_MAX) return tide__drain_damage(d, r->feed, r, "a thread has no number", err);
    r->thread = 0;
    if (number < 1 || number > INT32_MAX) return TIDE_OK;
    const tide_status st = tide__names_thread(&d->names, r->feed->process_id, (int64_t)number, NULL, &r->thread);
    return st == TIDE_OK ? TIDE_OK : TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
}

static tide_status take_run(tide__drain *d, tide__drain_ring *r, bool begin, uint64_t number, tide_error *err) {
    tide__drain_feed *f = r->feed;
    if (number < 1 || number > f->n_runs) return tide__drain_damage(d, f, r, "a run is none of the process", err);
    const int64_t run_id = f->runs[number - 1];
    if (run_id == 0) return tide__drain_damage(d, f, r, "the row of a run is lost", err);
    if (!begin && f->run_id != run_id) return TIDE_OK; // another one has begun since
    const int64_t t_ns = r->t_ns > d->last_ns ? r->t_ns : d->last_ns;
    TIDE_TRY(tide__store_run(d->store, begin, run_id, d->last_event, t_ns, err));
    f->run_id = begin ? run_id : 0;
    return TIDE_OK;
}

static tide_status take_control(tide__drain *d, tide__drain_ring *r, tide_error *err) {
    if (r->op == TIDE__SLOT_THREAD) return take_thread(d, r, r->number, err);
    return take_run(d, r, r->op == TIDE__SLOT_RUN_BEGIN, r->number, err);
}

// ---- which ring is next ----

static tide__drain_ring *earliest(const tide__drain *d) {
    tide__drain_ring *best = NULL;
    for (size_t i = 0; i < d->n_active; i++) {
        tide__drain_ring *r = d->active[i];
        if (r->has_next && (best == NULL || r->t_ns < best->t_ns)) best = r;
    }
    return best;
}

/// Whether ring `r` allocates the block a little way ahead.
static bool allocates_soon(tide__drain_ring *r, uint64_t block_id, int64_t until_ns) {
    const uint64_t end = r->end - r->position > AHEAD_SLOTS ? r->position + AHEAD_SLOTS : r->end;
    for (uint64_t at = r->position; at < end; at++) {
        const tide__slot *s = tide__drain_slot(r, at);
        if (s == NULL) return false;
        if (s->op == TIDE_MEM_ALLOC && s->block_id == block_id) return true;
        if (tide__drain_slot_ns(r->feed, s) > (uint64_t)until_ns) return false;
    }
    return false;
}

/// The ring whose next event must stand before that of `r`, which ends a block that is not live; NULL: none.
static tide__drain_ring *cause_of(tide__drain *d, const tide__drain_ring *r) {
    if (r->number == 0 || !tide__replay_is_early(&d->replay, r->op, tide__drain_block_id(r->feed, r->number)))
        return NULL;
    const int64_t until_ns = r->t_ns < INT64_MAX - TIDE__DRAIN_CLOCKS_NS ? r->t_ns + TIDE__DRAIN_CLOCKS_NS : INT64_MAX;
    for (size_t i = 0; i < d->n_active; i++) {
        tide__drain_ring *other = d->active[i];
        if (other != r && other->has_next && other->feed == r->feed && other->t_ns <= until_ns &&
            allocates_soon(other, r->number, until_ns))
            return other;
    }
    return NULL;
}

static bool is_free(const tide__drain_ring *r) {
    return r->op == TIDE_MEM_FREE_REQUESTED || r->op == TIDE_MEM_FREE_COMPLETED;
}

/// Whether a gap, with those before it, is one that a producer can have counted.
static bool adds_up(const tide__drain_ring *r, const tide__event *e) {
    return r->op != TIDE__OP_GAP ||
           (r->n_gap <= TIDE__DRAIN_MAX_LOST && e->requested_bytes <= TIDE__DRAIN_MAX_LOST - r->n_gap);
}

/// Note that the event, which is numbered next, came late.
static tide_status note_late(tide__drain *d, const tide__drain_ring *r, tide__event *e, tide_error *err) {
    e->id = d->last_event + 1;
    d->n_late++;
    if (r->kind_flags >> TIDE__SLOT_FLAG_SHIFT & TIDE__SLOT_GIVEN) r->feed->gives_times = true;
    return tide__store_write_late(d->store, e, r->own_ns, err);
}

/// Take the slot at the ring's position, with any operation in it.
static tide_status take_slot(tide__drain *d, tide__drain_ring *r, size_t *n, tide_error *err) {
    TIDE_ASSERT(r->has_next && r->position < r->end && d->n_events < TIDE__DRAIN_BUFFER_EVENTS);
    tide__event *e = &d->events[d->n_events];
    if (__builtin_expect(tide__drain_is_control(r->op), 0)) {
        TIDE_TRY(take_control(d, r, err));
    } else if (tide__drain_make_event(r, tide__drain_place(r, r->position), r->op, r->kind_flags, r->number, r->t_ns,
                                      e) &&
               adds_up(r, e)) {
        if (r->op == TIDE__OP_GAP) r->n_gap += e->requested_bytes;
        if (r->feed->addresses != NULL) TIDE_TRY(tide__drain_find_caller(d, r->feed, e, err));
        const int64_t t_ns = r->t_ns > d->last_ns ? r->t_ns : d->last_ns;
        if (tide__drain_is_late(d, r->own_ns, t_ns, r->kind_flags)) TIDE_TRY(note_late(d, r, e, err));
        if (tide__drain_is_by_address(r)) {
            TIDE_TRY(tide__drain_take_address(d, r, n, err));
        } else {
            TIDE_TRY(tide__drain_take(d, r->feed, err));
            ++*n;
        }
    } else {
        TIDE_TRY(tide__drain_damage(d, r->feed, r, "a slot holds no event", err));
    }
    if (!r->is_broken) r->position++;
    return tide__drain_next(d, r, err);
}

// ---- a batch ----

/// Rings with something to take, each at its next slot.
static tide_status begin(tide__drain *d, tide_error *err) {
    d->n_active = 0;
    d->round_ns = INT64_MIN;
    for (size_t i = 0; i < d->n_feeds; i++) {
        const tide__drain_feed *f = d->feeds[i];
        for (size_t k = 0; k < f->n_rings; k++) {
            tide__drain_ring *r = f->rings[k];
            if (f->is_ended || r->is_broken || r->position >= r->end) continue;
            if (tide_host_grow(&d->active, &d->cap_active, d->n_active + 1, sizeof(tide__drain_ring *)) != TIDE_OK)
                return TIDE_NO_MEMORY(err, "to record into '%s'", d->path);
            TIDE_TRY(tide__drain_next(d, r, err));
            if (!r->has_next) continue;
            TIDE_ASSERT(r->sure_end <= r->end && r->feed == f);
            d->active[d->n_active++] = r;
            r->ahead.begin = r->ahead.end = r->position; // the clock is another one in each round
            r->ahead.is_all = false;
            if (r->position >= r->sure_end) continue;
            if (r->t_ns > d->round_ns) d->round_ns = r->t_ns;
            const tide__slot *last = tide__drain_slot(r, r->sure_end - 1);
            const uint64_t last_ns = last != NULL ? tide__drain_slot_ns(r->feed, last) : UINT64_MAX;
            if (last_ns <= INT64_MAX && (int64_t)last_ns > d->round_ns) d->round_ns = (int64_t)last_ns;
        }
    }
    return TIDE_OK;
}

/// Take the event at the position of `r`, or the one that must stand before it.
static tide_status take_one(tide__drain *d, tide__drain_ring *r, size_t *n, tide_error *err) {
    for (size_t hops = 0; d->n_active > 1 && (is_free(r) || tide__drain_is_by_address(r)) && hops < d->n_active;
         hops++) {
        tide__drain_ring *cause = tide__drain_is_by_address(r) ? tide__drain_address_cause(d, r) : cause_of(d, r);
        if (cause == NULL) break;
        TIDE_ASSERT(cause->feed == r->feed && cause->has_next); // a block number says nothing to another process
        r = cause;
    }
    return take_slot(d, r, n, err);
}

tide_status tide__drain_merge(tide__drain *d, size_t limit, size_t *n, tide_error *err) {
    *n = 0;
    TIDE_TRY(begin(d, err));
    find_hold(d);
    tide__drain_find_ends(d);
    for (size_t seen = 0; *n < limit;) {
        // Look at the clock now and then: what waits elsewhere must not wait longer than a batch may take.
        if (*n - seen >= TIDE__DRAIN_BUFFER_EVENTS) {
            seen = *n;
            if (tide_now_ns() - d->batch_began_ns > (uint64_t)d->opt.batch_ms * 1000000) break;
        }
        size_t n_usual;
        TIDE_TRY(tide__drain_take_usual(d, limit - *n, &n_usual, err));
        *n += n_usual;
        if (*n >= limit) break;
        tide__drain_ring *r = earliest(d);
        if (r == NULL || r->t_ns > d->hold_ns || (r->position >= r->sure_end && r->t_ns > d->round_ns)) break;
        TIDE_TRY(tide__drain_put_ends(d, r, n, err));
        TIDE_TRY(take_one(d, r, n, err));
    }
    return TIDE_OK;
}
