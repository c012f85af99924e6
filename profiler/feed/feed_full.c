// SPDX-License-Identifier: MIT
//
// A ring without room, and what must be noted before the next event. See feed_internal.h.
//
//     [ event ][ GAP 17 events ][ THREAD 4 ][ next event ]
//                ^ dropped, and    ^ the next event is of another thread than those before
//                  now there is room
#include <stdio.h>
#include <time.h>

#include "core/base/assert.h"
#include "core/base/text.h"
#include "profiler/event.h"
#include "profiler/feed/feed_internal.h"

enum {
    N_SPINS = 200,
    FIRST_NAP_NS = 1000,
    LONGEST_NAP_NS = 1000000,
    PATIENCE_NS = 10000000,    ///< without movement, until the watch is asked
    LAST_WAIT_NS = 1000000000, ///< without movement, at the end of the feed
};

// ---- room ----

/// Look where the reader is. A tail that cannot be is taken for a full ring.
static bool is_room_for(tide__producer *p, uint64_t n) {
    const uint64_t n_slots = p->mask + 1, tail = atomic_load_explicit(&p->ring->tail, memory_order_acquire);
    const uint64_t from = tail < p->begin ? p->begin : tail; // what lies before is not in this room
    if (p->head - from > n_slots) return false;
    p->limit = from + n_slots;
    TIDE_ASSERT(p->limit >= p->head && (n_slots & p->mask) == 0);
    return p->limit - p->head >= n;
}

static bool has_failed(const tide__feed *f) {
    return atomic_load_explicit(&f->head->drain, memory_order_acquire) == TIDE__DRAIN_FAILED;
}

/// The drain is known to be gone: say so in its place.
static void mark_failed(tide__feed *f) {
    pthread_mutex_lock(&f->lock);
    if (!has_failed(f)) {
        snprintf(f->head->error, sizeof f->head->error, "nobody takes events out of '%s' any more", f->path);
        atomic_store_explicit(&f->head->drain, TIDE__DRAIN_FAILED, memory_order_release);
    }
    pthread_mutex_unlock(&f->lock);
}

/// Whoever comes while another thread asks need not ask, too.
static void ask_watch(tide__feed *f) {
    if (f->watch == NULL || pthread_mutex_trylock(&f->watch_lock) != 0) return;
    if (!has_failed(f) && !f->watch(f->watch_ctx)) mark_failed(f);
    pthread_mutex_unlock(&f->watch_lock);
}

static void pause_briefly(void) {
    for (int i = 0; i < 16; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
    }
}

/// Wait until there is room for n slots, or until nothing has moved for `give_up_ns`. False: nobody makes any.
static bool wait_for_room(tide__feed *f, tide__producer *p, uint64_t n, uint64_t give_up_ns) {
    const tide__aside aside = tide__step_aside();
    const uint64_t since = tide_now_ns();
    uint64_t seen_tail = atomic_load_explicit(&p->ring->tail, memory_order_acquire), moved_ns = since, asked_ns = since;
    long nap_ns = FIRST_NAP_NS;
    bool has_room = false;
    for (unsigned tries = 0; !has_failed(f) && !(has_room = is_room_for(p, n)); tries++) {
        if (tries < N_SPINS) {
            pause_briefly();
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
        if (nap_ns < LONGEST_NAP_NS) nap_ns *= 2;
        const uint64_t now = tide_now_ns(), tail = atomic_load_explicit(&p->ring->tail, memory_order_acquire);
        if (tail != seen_tail) {
            seen_tail = tail;
            moved_ns = asked_ns = now;
        } else if (now - moved_ns >= give_up_ns) {
            break;
        } else if (now - asked_ns >= PATIENCE_NS) {
            ask_watch(f);
            asked_ns = tide_now_ns();
        }
    }
    tide__add_alone(&p->ring->blocked_ns, tide_now_ns() - since);
    tide__step_back(aside);
    return has_room;
}

// ---- a drain that does not move ----

/// It may have been stopped, or its disk hangs. It was waited for once; until it moves, no thread waits again.
static void give_up(tide__feed *f) {
    if (atomic_exchange(&f->is_stalled, true) || f->stalls == NULL) return;
    const tide__aside aside = tide__step_aside();
    f->stalls(f->stalls_ctx);
    tide__step_back(aside);
}

/// Who does not wait still asks now and then whether it is there at all.
static void ask_watch_seldom(tide__feed *f) {
    const uint64_t now = tide_now_ns();
    uint64_t last = atomic_load_explicit(&f->asked_ns, memory_order_relaxed);
    if (now - last < PATIENCE_NS || !atomic_compare_exchange_strong(&f->asked_ns, &last, now)) return;
    const tide__aside aside = tide__step_aside();
    ask_watch(f);
    tide__step_back(aside);
}

/// Wait, as long as may be. False: there is none.
static bool wait_or_give_up(tide__feed *f, tide__producer *p, uint64_t n) {
    if (atomic_load_explicit(&f->is_stalled, memory_order_relaxed)) {
        p->gave_up = true;
        ask_watch_seldom(f);
        return !has_failed(f) && is_room_for(p, n);
    }
    if (wait_for_room(f, p, n, f->max_wait_ns)) return true;
    p->gave_up = !has_failed(f);
    if (p->gave_up) give_up(f);
    return false;
}

// ---- before the next event ----

static void lose(tide__producer *p, tide__put_time when) {
    atomic_store_explicit(&p->ring->n_lost, ++p->n_lost, memory_order_relaxed);
    if (p->n_gap++ == 0) p->gap_when = when;
}

static uint64_t n_pending(const tide__producer *p) { return (uint64_t)(p->n_gap != 0) + (p->ended_run != 0); }

static void put_pending(tide__producer *p) {
    if (p->n_gap != 0) tide__producer_put_plain(p, p->gap_when, TIDE__OP_GAP, 0, p->n_gap, 0);
    if (p->ended_run != 0) tide__producer_put_plain(p, p->ended_when, TIDE__SLOT_RUN_END, (uint64_t)p->ended_run, 0, 0);
    p->n_gap = 0;
    p->ended_run = 0;
}

bool tide__feed_make_room(tide__feed *f, tide__producer *p, uint64_t thread, tide__put_time when, bool must) {
    const uint64_t n = 1 + n_pending(p) + (p->thread != thread);
    bool has_room = !has_failed(f) && is_room_for(p, n);
    while (!has_room && !has_failed(f) && tide__feed_grow_ring(f, p)) has_room = is_room_for(p, n);
    if (!has_room && (must || !f->drops)) has_room = wait_or_give_up(f, p, n);
    if (!has_room) {
        if (!must) lose(p, when); // what must be put in is no event
        p->limit = p->head;       // whatever comes next comes here again
        return false;
    }
    if (p->gave_up) {
        p->gave_up = false; // a full ring that has room: it moves
        atomic_store_explicit(&f->is_stalled, false, memory_order_relaxed);
    }
    put_pending(p);
    if (p->thread != thread) {
        tide__producer_put_plain(p, when, TIDE__SLOT_THREAD, thread, 0, 0);
        p->thread = thread;
        p->scope = (tide__last_scope){0};
    }
    return true;
}

void tide__feed_put_gap(tide__feed *f, tide__producer *p) {
    const uint64_t n = n_pending(p);
    if (n == 0 || has_failed(f)) return;
    const bool is_stalled = atomic_load_explicit(&f->is_stalled, memory_order_relaxed);
    if (is_room_for(p, n) || (!is_stalled && wait_for_room(f, p, n, LAST_WAIT_NS)))
        put_pending(p);
    else
        atomic_store_explicit(&f->is_stalled, true, memory_order_relaxed); // one wait for all rings
}

void tide__feed_check(tide__feed *f) {
    if (f->file.is_child) return;
    ask_watch(f);
}
