// SPDX-License-Identifier: MIT
//
// A ring that is full: the thread waits, or drops events and counts them. No thread waits for a drain that is gone.
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "feed_fixture.h"

enum { SLOTS = TIDE__FEED_MIN_SLOTS };

static void set_drain(feed_fx *fx, tide__feed_drain state) {
    atomic_store_explicit(&tide__feed_head(fx->feed)->drain, (uint32_t)state, memory_order_release);
}

static tide__ring_header *only_ring(feed_fx *fx) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
    assert_int_equal(tide__feed_reader_n_rings(fx->reader), 1);
    return tide__feed_reader_ring(fx->reader, 0);
}

/// Until a thread waits for room, which counts nothing before it is over: its head is at the end of the ring.
static void await_full(feed_fx *fx) {
    const tide__ring_header *h = only_ring(fx);
    while (atomic_load(&h->head) - atomic_load(&h->tail) < SLOTS) sched_yield();
}

// ---- a thread that puts in ----

typedef struct worker {
    feed_fx *fx;
    pthread_t thread;
    uint64_t n;
    int error;            ///< errno afterwards
    _Atomic bool is_over; ///< it came back
} worker;

static void *put_n(void *arg) {
    worker *w = arg;
    errno = 4321;
    for (uint64_t i = 1; i <= w->n; i++) fx_alloc(w->fx, i);
    w->error = errno;
    atomic_store(&w->is_over, true);
    return NULL;
}

static void start(worker *w) { assert_int_equal(pthread_create(&w->thread, NULL, put_n, w), 0); }
static void join(worker *w) { assert_int_equal(pthread_join(w->thread, NULL), 0); }

// ---- wait ----

static void await_ring(feed_fx *fx) {
    while (atomic_load(&tide__feed_head(fx->feed)->n_chunks) < 2) sched_yield();
}

static void a_full_ring_is_waited_for(void **state) {
    (void)state;
    enum { N = 20000 };
    feed_fx *fx = fx_open(SLOTS, false);
    worker w = {.fx = fx, .n = N};
    start(&w);
    await_ring(fx);
    await_full(fx);
    tide__slot s;
    uint64_t want = 1;
    while (want <= N) {
        if (!fx_take(fx, 0, true, &s)) {
            sched_yield();
        } else if (s.op != TIDE__SLOT_THREAD) {
            assert_int_equal(s.op, TIDE_MEM_ALLOC);
            assert_int_equal(s.block_id, want++);
        }
    }
    join(&w);
    assert_false(fx_take(fx, 0, true, &s));
    const tide__feed_stats stats = fx_stats(fx);
    assert_true(stats.n_events == N && stats.n_lost == 0 && stats.blocked_ns > 0);
    assert_int_equal(w.error, 4321); // the allocating thread's errno is unchanged
    fx_close(fx);
}

/// A run that begins is no event that could be dropped.
static void runs_wait_where_events_drop(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, true);
    for (uint64_t i = 1; i < SLOTS + 10; i++) fx_alloc(fx, i);
    assert_int_equal(fx_stats(fx).n_lost, 10);
    tide__ring_header *h = only_ring(fx);
    // Room for the gap and for the run; a reader that was seen only when there was none.
    atomic_store(&h->tail, 2);
    fx->at[0] = 2;
    tide__feed_run(fx->feed, true, 1, 0);
    fx->at[0] = SLOTS;
    tide__slot s;
    assert_true(fx_take(fx, 0, true, &s));
    assert_int_equal(s.op, TIDE__OP_GAP);
    assert_true(fx_take(fx, 0, true, &s));
    assert_int_equal(s.op, TIDE__SLOT_RUN_BEGIN);
    assert_int_equal(fx_stats(fx).n_lost, 10);
    fx_close(fx);
}

static void *begin_run(void *arg) {
    worker *w = arg;
    tide__feed_run(w->fx->feed, true, 42, 0);
    atomic_store(&w->is_over, true);
    return NULL;
}

static void a_run_waits_for_room(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, true);
    worker w = {.fx = fx, .n = SLOTS - 1}; // and one slot that says whose they are
    start(&w);
    join(&w);
    assert_int_equal(fx_stats(fx).n_lost, 0);
    assert_int_equal(pthread_create(&w.thread, NULL, begin_run, &w), 0); // takes over the ring of the first
    const tide__ring_header *h = only_ring(fx);
    while (atomic_load(&h->owner) == 0) sched_yield();
    assert_int_equal(atomic_load(&h->head), SLOTS);
    tide__slot s;
    uint64_t n = 0;
    do {
        if (fx_take(fx, 0, true, &s)) n++;
    } while (n == 0 || s.op != TIDE__SLOT_RUN_BEGIN);
    join(&w);
    assert_int_equal(s.block_id, 42);
    fx_close(fx);
}

// ---- drop ----

static void dropped_events_are_counted_and_noted(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, true);
    for (uint64_t i = 1; i <= 100; i++) fx_alloc(fx, i);
    const uint64_t n_kept = SLOTS - 1; // the first slot says whose they are
    tide__feed_stats stats = fx_stats(fx);
    assert_true(stats.n_events == 100 && stats.n_lost == 100 - n_kept);
    only_ring(fx);
    tide__slot s;
    // Room for one: not for the gap and an event behind it.
    assert_true(fx_take(fx, 0, true, &s));
    fx_alloc(fx, 101);
    stats = fx_stats(fx);
    assert_int_equal(stats.n_lost, 101 - n_kept);
    assert_true(fx_take(fx, 0, true, &s));
    assert_int_equal(s.block_id, 1);
    fx_alloc(fx, 102); // now there is
    for (uint64_t want = 2; want <= n_kept; want++) {
        assert_true(fx_take(fx, 0, true, &s));
        assert_int_equal(s.block_id, want);
    }
    const uint64_t last_time = s.time;
    assert_true(fx_take(fx, 0, true, &s));
    assert_int_equal(s.op, TIDE__OP_GAP);
    assert_int_equal(s.requested_bytes, 101 - n_kept);
    assert_true(s.time >= last_time); // when the first of them was heard
    const uint64_t gap_time = s.time;
    assert_true(fx_take(fx, 0, true, &s));
    assert_int_equal(s.block_id, 102);
    assert_true(s.time >= gap_time);
    assert_false(fx_take(fx, 0, true, &s));
    // What was dropped is in the totals all the same.
    assert_int_equal(only_ring(fx)->totals[0][TIDE_KIND_WORKSPACE].n_allocs, 102);
    fx_close(fx);
}

static void a_gap_at_the_end_is_noted(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, true);
    for (uint64_t i = 1; i <= SLOTS + 4; i++) fx_alloc(fx, i);
    only_ring(fx);
    tide__slot s;
    while (fx->at[0] < 10) assert_true(fx_take(fx, 0, true, &s));
    tide__feed_end(fx->feed);
    assert_int_equal(atomic_load(&tide__feed_head(fx->feed)->state), TIDE__FEED_CLOSED);
    fx_alloc(fx, 1000); // too late: nothing happens, though there is room
    while (fx->at[0] < SLOTS) assert_true(fx_take(fx, 0, true, &s));
    assert_true(fx_take(fx, 0, true, &s));
    assert_int_equal(s.op, TIDE__OP_GAP);
    assert_int_equal(s.requested_bytes, 5);
    assert_false(fx_take(fx, 0, true, &s));
    assert_true(fx_stats(fx).n_events == SLOTS + 4 && fx_stats(fx).n_refused == 0);
    fx_close(fx);
}

/// Every event is in the ring or in a gap at its place, whatever the reader does.
static void gaps_and_events_make_all_of(size_t ring_slots, uint64_t seed) {
    feed_fx *fx = fx_open(ring_slots, true);
    tide_rng rng = {.state = seed};
    uint64_t id = 0, seen = 0;
    tide__slot s;
    for (int round = 0; round < 3000; round++) {
        for (uint64_t k = tide_rng_below(&rng, 100); k > 0; k--) {
            tide_memory_event e = fx_event(TIDE_MEM_ALLOC, ++id);
            e.thread = 1 + (uint32_t)tide_rng_below(&rng, 2);
            tide__feed_memory(fx->feed, &e);
        }
        if (round == 0) only_ring(fx);
        for (uint64_t k = tide_rng_below(&rng, 60); k > 0 && fx_take(fx, 0, true, &s); k--) {
            if (s.op == TIDE__OP_GAP) {
                seen += s.requested_bytes;
            } else if (s.op == TIDE_MEM_ALLOC) {
                assert_int_equal(s.block_id, ++seen);
            }
        }
    }
    assert_true(fx_stats(fx).n_lost > 1000);
    fx_close(fx);
}
static void gaps_and_events_make_all(void **state) {
    (void)state;
    gaps_and_events_make_all_of(SLOTS, 5);
    gaps_and_events_make_all_of(8 * SLOTS, 6);
    gaps_and_events_make_all_of(64 * SLOTS, 7);
}

// ---- grow ----

static uint64_t blocks_of(const feed_fx *fx) {
    struct stat st;
    assert_int_equal(stat(tide__feed_path(fx->feed), &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/// Full, a ring grows to what it may have; only then something is dropped. All of it is read in its order, whether the
/// reader comes while the ring grows or afterwards.
static void a_ring_begins_small_and_grows(void **state) {
    (void)state;
    enum { MOST = 100 * SLOTS, STEP = 13 };
    for (uint64_t n_left = 0; n_left <= MOST / 4; n_left += MOST / 8) {
        feed_fx *fx = fx_open(MOST, true); // 128 * SLOTS, as a power of two
        tide__slot s;
        fx_alloc(fx, 1);
        only_ring(fx);
        const uint64_t small = blocks_of(fx);
        uint64_t put = 1, taken = 0;
        while (fx_stats(fx).n_lost == 0) {
            for (int i = 0; i < STEP; i++) fx_alloc(fx, ++put);
            while (put - taken > n_left && n_left > 0 && put < 8 * MOST && fx_take(fx, 0, true, &s)) {
                if (s.op == TIDE__SLOT_THREAD) continue;
                assert_int_equal(s.op, TIDE_MEM_ALLOC);
                assert_int_equal(s.block_id, ++taken);
            }
        }
        const uint64_t n_lost = fx_stats(fx).n_lost;
        assert_true(put - n_lost - taken >= 128 * SLOTS - 2); // as much as it was to have
        assert_true(blocks_of(fx) - small >= 128 * SLOTS * sizeof s);
        while (taken < put - n_lost) {
            assert_true(fx_take(fx, 0, true, &s));
            if (s.op != TIDE__SLOT_THREAD) assert_int_equal(s.block_id, ++taken);
        }
        assert_false(fx_take(fx, 0, true, &s));
        fx_close(fx);
    }
}

/// Where there is no place for more, a reader goes by what the ring has: waiting for it to be half full of what it was
/// to have, it would wait for as long as events are held back.
static void a_ring_that_cannot_grow_says_so(void **state) {
    (void)state;
    feed_fx *fx = fx_open(100 * SLOTS, true);
    fx_alloc(fx, 1);
    only_ring(fx);
    assert_int_equal(tide__feed_reader_n_full(fx->reader, 0), 128 * SLOTS);
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    uint64_t put = 1;
    while (fx_stats(fx).n_lost == 0 && put < 200 * SLOTS) fx_alloc(fx, ++put);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(fx_stats(fx).n_lost, 1);
    const uint64_t n_slots = tide__feed_reader_n_full(fx->reader, 0);
    assert_true(n_slots >= put - 1 && n_slots < 128 * SLOTS);
    fx_close(fx);
}

/// One that is read as fast as it is filled stays as small as it is.
static void a_ring_that_is_read_stays_small(void **state) {
    (void)state;
    feed_fx *fx = fx_open(0, false);
    fx_alloc(fx, 1);
    only_ring(fx);
    const uint64_t before = blocks_of(fx);
    tide__slot s;
    for (uint64_t i = 2; i < 1000 * SLOTS; i++) {
        fx_alloc(fx, i);
        while (i % 50 == 0 && fx_take(fx, 0, true, &s)) continue;
    }
    assert_int_equal(blocks_of(fx), before);
    fx_close(fx);
}

/// Impossible tails: ahead of the head, or too far behind. No unread event is overwritten.
static void a_wrong_tail_overwrites_no_event(void **state) {
    (void)state;
    static const uint64_t tails[] = {SLOTS + 1, UINT64_MAX, UINT64_C(1) << 63, 1000000};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        feed_fx *fx = fx_open(SLOTS, true);
        for (uint64_t k = 1; k < SLOTS; k++) fx_alloc(fx, k);
        tide__ring_header *h = only_ring(fx);
        assert_int_equal(atomic_load(&h->head), SLOTS);
        atomic_store(&h->tail, tails[i]);
        fx_alloc(fx, 999);
        assert_int_equal(atomic_load(&h->head), SLOTS);
        assert_int_equal(fx_stats(fx).n_lost, 1);
        atomic_store(&h->tail, SLOTS); // well again
        fx_close(fx);
    }
}

// ---- a drain that does not move ----

static int n_stalls;
static void count_stall(void *ctx) {
    assert_ptr_equal(ctx, &n_stalls);
    n_stalls++;
}

static uint64_t waited_ns(const feed_fx *fx) { return fx_stats(fx).blocked_ns; }

/// It is waited for once, however many events and rings there are; and again after it has moved. What was dropped is a
/// gap at its place, runs that ended meanwhile end behind it.
static void a_stalled_drain_is_waited_for_once(void **state) {
    (void)state;
    feed_fx *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    tmp_dir_make(&fx->dir);
    const tide__feed_options opt = {
        .trace_path = fx->dir.file, .rank = -1, .ring_slots = SLOTS, .max_wait_ns = 20000000};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_create(&opt, &fx->feed, &err), &err);
    assert_tide_ok(tide__feed_reader_open(tide__feed_path(fx->feed), false, &fx->reader, &err), &err);
    n_stalls = 0;
    tide__feed_on_stall(fx->feed, count_stall, &n_stalls);
    tide__slot s;
    uint64_t id = 0, seen = 0;
    for (int round = 1; round <= 2; round++) {
        tide__feed_run(fx->feed, true, round, 0);
        const uint64_t waited = waited_ns(fx);
        while (id < (uint64_t)round * 1000) fx_alloc(fx, ++id);
        assert_int_equal(n_stalls, round);
        const uint64_t once = waited_ns(fx) - waited;
        assert_true(once >= 20000000);
        tide__feed_run(fx->feed, false, round, 0);
        assert_int_equal(waited_ns(fx) - waited, once);
        only_ring(fx);
        while (fx_take(fx, 0, true, &s)) seen += s.op == TIDE_MEM_ALLOC;
        fx_alloc(fx, ++id);
        assert_true(fx_take(fx, 0, true, &s));
        assert_int_equal(s.op, TIDE__OP_GAP);
        seen += s.requested_bytes;
        assert_true(fx_take(fx, 0, true, &s));
        assert_true(s.op == TIDE__SLOT_RUN_END && s.block_id == (uint64_t)round);
        assert_true(fx_take(fx, 0, true, &s));
        assert_true(s.op == TIDE_MEM_ALLOC && s.block_id == id);
        assert_int_equal(++seen, id);
    }
    assert_int_equal(fx_stats(fx).n_refused, 0);
    tide__feed_run(fx->feed, true, 3, 0);
    while (fx_stats(fx).n_lost < 3000) fx_alloc(fx, ++id);
    tide__feed_run(fx->feed, false, 3, 0);
    tide__feed_run(fx->feed, true, 4, 0); // what follows would be said to be of no run
    assert_int_equal(fx_stats(fx).n_refused, 1);
    assert_tide_status(tide__feed_error(fx->feed, &err), TIDE_ERR_BUSY);
    tide__feed_run(fx->feed, false, 4, 0); // which never began: the end of run 3 still waits for room
    while (fx_take(fx, 0, true, &s)) {
    }
    fx_alloc(fx, ++id);
    assert_true(fx_take(fx, 0, true, &s));
    assert_int_equal(s.op, TIDE__OP_GAP);
    assert_true(fx_take(fx, 0, true, &s));
    assert_int_equal(s.op, TIDE__SLOT_RUN_END);
    assert_int_equal(s.block_id, 3);
    fx_close(fx);
}

// ---- no drain ----

static void a_failed_drain_makes_producers_quiet(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    fx_alloc(fx, 1);
    snprintf(tide__feed_head(fx->feed)->error, sizeof tide__feed_head(fx->feed)->error, "the disk is full");
    set_drain(fx, TIDE__DRAIN_FAILED);
    for (uint64_t i = 2; i <= 1000; i++) fx_alloc(fx, i); // more than there is room for
    tide__feed_run(fx->feed, true, 1, 0);
    const tide__feed_stats stats = fx_stats(fx);
    assert_true(stats.n_events == 1000 && stats.n_lost == 999 && stats.n_refused == 0);
    assert_int_equal(atomic_load(&only_ring(fx)->head), 2);
    assert_int_equal(only_ring(fx)->totals[0][TIDE_KIND_WORKSPACE].n_allocs, 1000);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__feed_error(fx->feed, &err), TIDE_ERR_WRITE);
    assert_string_equal(err.msg, "the disk is full");
    memset(tide__feed_head(fx->feed)->error, 'x', sizeof tide__feed_head(fx->feed)->error); // no end
    assert_tide_status(tide__feed_error(fx->feed, &err), TIDE_ERR_WRITE);
    assert_int_equal(strspn(err.msg, "x"), strlen(err.msg));
    fx_close(fx);
}

static void a_waiting_thread_learns_of_the_failure(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    worker w = {.fx = fx, .n = 200};
    start(&w);
    await_ring(fx);
    await_full(fx);
    set_drain(fx, TIDE__DRAIN_FAILED);
    join(&w);
    assert_int_equal(fx_stats(fx).n_lost, 200 - (SLOTS - 1));
    fx_close(fx);
}

typedef struct watcher {
    feed_fx *fx;
    _Atomic int n_asked;
    int n_believed; ///< answers "it lives" so often
} watcher;

static bool watch(void *ctx) {
    watcher *w = ctx;
    return atomic_fetch_add(&w->n_asked, 1) < w->n_believed;
}

/// It is asked again and again while nothing moves, and believed.
static void a_watch_finds_that_the_drain_is_gone(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    watcher asked = {.fx = fx, .n_believed = 3};
    tide__feed_set_watch(fx->feed, watch, &asked);
    tide__feed_check(fx->feed);
    assert_int_equal(asked.n_asked, 1);
    for (uint64_t i = 1; i <= 100; i++) fx_alloc(fx, i); // comes back
    assert_int_equal(asked.n_asked, 4);
    assert_int_equal(atomic_load(&tide__feed_head(fx->feed)->drain), TIDE__DRAIN_FAILED);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__feed_error(fx->feed, &err), TIDE_ERR_WRITE);
    assert_text_has(err.msg, "no collector takes events");
    assert_text_has(err.msg, tide__feed_path(fx->feed));
    tide__feed_check(fx->feed);
    assert_int_equal(asked.n_asked, 4); // that is known
    fx_close(fx);
}

static bool drain_anew(void *ctx) {
    watcher *w = ctx;
    atomic_fetch_add(&w->n_asked, 1);
    tide__ring_header *h = tide__feed_reader_ring(w->fx->reader, 0);
    atomic_store(&h->tail, atomic_load(&h->head));
    return true;
}

/// A watch that brings another drain: nothing is lost.
static void a_watch_brings_another_drain(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    watcher asked = {.fx = fx};
    fx_alloc(fx, 1);
    only_ring(fx);
    tide__feed_set_watch(fx->feed, drain_anew, &asked);
    for (uint64_t i = 2; i < 4 * SLOTS; i++) fx_alloc(fx, i);
    assert_int_equal(asked.n_asked, 3);
    assert_int_equal(fx_stats(fx).n_lost, 0);
    fx_close(fx);
}

/// Allocating is no cancellation point: a thread that is cancelled while it waits for room puts in what it has first.
static void waiting_is_not_cancelled(void **state) {
    (void)state;
    feed_fx *fx = fx_open(SLOTS, false);
    worker w = {.fx = fx, .n = 100};
    start(&w);
    await_ring(fx);
    await_full(fx);
    assert_int_equal(pthread_cancel(w.thread), 0);
    tide__slot s;
    while (!atomic_load(&w.is_over)) {
        if (!fx_take(fx, 0, true, &s)) sched_yield();
    }
    join(&w);
    assert_int_equal(fx_stats(fx).n_events, 100);
    assert_int_equal(fx_stats(fx).n_lost, 0);
    fx_close(fx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_full_ring_is_waited_for),
        tide_unit_test(runs_wait_where_events_drop),
        tide_unit_test(a_run_waits_for_room),
        tide_unit_test(dropped_events_are_counted_and_noted),
        tide_unit_test(a_gap_at_the_end_is_noted),
        tide_unit_test(gaps_and_events_make_all),
        tide_unit_test(a_ring_begins_small_and_grows),
        tide_unit_test(a_ring_that_cannot_grow_says_so),
        tide_unit_test(a_ring_that_is_read_stays_small),
        tide_unit_test(a_wrong_tail_overwrites_no_event),
        tide_unit_test(a_stalled_drain_is_waited_for_once),
        tide_unit_test(a_failed_drain_makes_producers_quiet),
        tide_unit_test(a_waiting_thread_learns_of_the_failure),
        tide_unit_test(a_watch_finds_that_the_drain_is_gone),
        tide_unit_test(a_watch_brings_another_drain),
        tide_unit_test(waiting_is_not_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
