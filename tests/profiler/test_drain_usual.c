// SPDX-License-Identifier: MIT
//
// The two ways of applying events, against each other: the drain takes usual events many at once (drain_usual.c), and
// tide__replay_apply takes them one by one. Random programs of several threads: usual events, and those that contradict
// others (freed twice, freed and never allocated, allocated twice, requested twice), blocks of zero bytes, nested
// scopes. The file has every event of every thread as it was sent, in the order of time. Replayed one by one, they make
// the leaves, the snapshots and the problems that the file has.
#include "profiler/store/cursor.h"
#include "profiler/store/snapshot.h"
#include "tests/profiler/drain_fixture.h"

enum { MAX_EVENTS = 20000, N_PLACES = 600, MAX_PLAYERS = 5, MAX_DEPTH = 3 };

typedef struct sent {
    uint64_t t_ns, block_id, bytes;
    int op;
} sent;

typedef struct player {
    tide__feed *feed;
    uint64_t seed, first_block, places[N_PLACES], sizes[N_PLACES];
    uint64_t now, n_blocks;
    pthread_barrier_t *all; ///< have a ring
    sent sent[MAX_EVENTS];
    int n_events;
    size_t n_found; ///< of them in the file
} player;

static void send_scope(player *p, int i, const tide_scope *scope, bool enter) {
    const tide_scope_event e = {.enter = enter, .t_ns = p->now, .thread = (uint32_t)p->seed, .scope = scope};
    tide__feed_scope(p->feed, &e);
    p->sent[i] = (sent){.t_ns = p->now, .op = enter ? TIDE__OP_SCOPE_ENTER : TIDE__OP_SCOPE_LEAVE};
}

/// Events of one thread with a clock of its own: allocations, frees and scopes. Some five in a hundred are irregular.
static void *play(void *arg) {
    player *p = arg;
    tide_rng rng = {.state = p->seed};
    tide_scope scopes[MAX_DEPTH];
    size_t depth = 0;
    uint64_t n_entered = 0;
    uint64_t gone = 0;
    for (int i = 0; i < p->n_events; i++) {
        const size_t at = (size_t)tide_rng_below(&rng, N_PLACES);
        const uint64_t odd = tide_rng_below(&rng, 100);
        p->now += tide_rng_below(&rng, 50);
        if (odd >= 97) {
            const bool enter = depth == 0 || (depth < MAX_DEPTH && tide_rng_below(&rng, 2) == 0);
            if (enter) {
                scopes[depth] = (tide_scope){.name = "layer",
                                             .kind = TIDE_SCOPE_OPERATOR,
                                             .index = (int32_t)depth,
                                             .entry = ++n_entered,
                                             .parent = depth > 0 ? &scopes[depth - 1] : NULL};
                depth++;
            }
            send_scope(p, i, &scopes[depth - 1], enter);
            if (!enter) depth--;
            continue;
        }
        tide_memory_event e = {.op = p->places[at] == 0 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED,
                               .t_ns = p->now,
                               .device = TIDE_CPU,
                               .kind = (tide_memory_kind)(at % 4),
                               .address = 0x10000 + at * 4096,
                               .thread = (uint32_t)p->seed,
                               .allocator = "cpu",
                               .scope = depth > 0 ? &scopes[depth - 1] : NULL,
                               .tag = at % 2 != 0 ? "odd" : NULL};
        if (e.op == TIDE_MEM_ALLOC) {
            p->places[at] = p->first_block + ++p->n_blocks;
            p->sizes[at] = tide_rng_below(&rng, 3) == 0 ? 0 : tide_rng_below(&rng, 100000);
        }
        e.block_id = p->places[at];
        e.requested_bytes = p->sizes[at];
        e.reserved_bytes = (p->sizes[at] + 255) / 256 * 256;
        if (e.op == TIDE_MEM_FREE_COMPLETED && odd > 20) p->places[at] = 0;
        if (e.op == TIDE_MEM_FREE_COMPLETED && odd <= 20) e.op = TIDE_MEM_FREE_REQUESTED;
        if (odd == 50) e.requested_bytes = 1; // what a free says of its block is not what counts
        if (odd == 51) e.block_id = p->first_block + 1000000 + (uint64_t)i;
        if (odd == 52) e.op = TIDE_MEM_SEGMENT_ALLOC;
        if (odd == 53 && gone != 0) e.block_id = gone;
        if (odd == 54) e.op = TIDE_MEM_ALLOC; // of a block that is live, where a free was due
        if (odd == 55 && p->places[at] != 0) e.op = TIDE_MEM_FREE_REQUESTED; // perhaps for the second time
        if (e.op == TIDE_MEM_FREE_COMPLETED) gone = e.block_id;
        tide__feed_memory(p->feed, &e);
        p->sent[i] = (sent){p->now, e.block_id, e.requested_bytes, (int)e.op};
        if (i == 0) pthread_barrier_wait(p->all);
    }
    return NULL;
}

/// Each thread's events are in the file as they were sent and in that order, and all together by time.
static void assert_next(player *players, size_t n_players, const tide__event *e, int64_t last_ns) {
    assert_true(e->t_ns >= last_ns);
    assert_in_range(e->thread, 1, n_players);
    for (size_t i = 0; i < n_players; i++) {
        // threads are numbered as they come: which one it is, its first block says
        player *p = &players[i];
        const sent *t = &p->sent[p->n_found];
        if (p->n_found == (size_t)p->n_events || (int64_t)t->t_ns != e->t_ns || t->op != e->op ||
            (int64_t)t->block_id != e->block_id || (int64_t)t->bytes != e->requested_bytes)
            continue;
        p->n_found++;
        return;
    }
    fail_msg("event %lld of the file was not the next of any thread", (long long)e->id);
}

typedef struct made {
    tide__replay replay;
    tide__leaves leaves;
} made;

/// A snapshot of the file, written while events were taken many at once, is that of the replay one by one.
static void assert_same_snapshot(const tide__sql *s, sqlite3_stmt *stmt, const tide__replay *r, size_t *n) {
    tide_error err = TIDE_ERROR_INIT;
    bool has_row;
    sqlite3_bind_int64(stmt, 1, r->last_event);
    assert_tide_ok(tide__sql_step(s, stmt, &has_row, &err), &err);
    if (has_row) {
        tide_text want = {0};
        assert_tide_ok(tide__snapshot_encode(r, &want), &err);
        assert_int_equal(sqlite3_column_int64(stmt, 0), r->last_ns);
        assert_int_equal(sqlite3_column_int64(stmt, 1), r->n_live);
        assert_int_equal(sqlite3_column_bytes(stmt, 2), want.len);
        assert_memory_equal(sqlite3_column_blob(stmt, 2), want.data, want.len);
        tide_text_deinit(&want);
        ++*n;
    }
    sqlite3_reset(stmt);
}

/// The events of the file, one by one.
static void replay_file(const rig *r, player *players, size_t n_players, made *m) {
    tide_error err = TIDE_ERROR_INIT;
    int64_t last_ns = 0;
    tide__sql s = {.path = r->dir.file, .db = sql_open(r->dir.file)};
    assert_tide_status(tide__replay_init(&m->replay), TIDE_OK);
    tide__cursor *c;
    assert_tide_ok(tide__cursor_open(&s, 1, INT64_MAX, &c, &err), &err);
    const tide__event *events;
    sqlite3_stmt *snapshot;
    size_t n_snapshots = 0;
    assert_tide_ok(tide__sql_prepare(&s, "SELECT t_ns, blocks, data FROM snapshot WHERE event_id = ?", &snapshot, &err),
                   &err);
    for (size_t n = 1; n > 0;) {
        assert_tide_ok(tide__cursor_next(c, &events, &n, &err), &err);
        for (size_t i = 0; i < n; i++) {
            tide__problem problem;
            size_t series;
            assert_next(players, n_players, &events[i], last_ns);
            last_ns = events[i].t_ns;
            assert_tide_ok(tide__replay_apply(&m->replay, &events[i], &problem, &series), &err);
            assert_tide_ok(tide__leaves_add_any(&m->leaves, &m->replay, &events[i], series), &err);
            if (events[i].id % TIDE__LEAF_EVENTS == 0) assert_same_snapshot(&s, snapshot, &m->replay, &n_snapshots);
        }
    }
    assert_tide_ok(tide__leaves_end(&m->leaves), &err); // as at the end of a trace
    tide__cursor_close(c);
    sqlite3_finalize(snapshot);
    sqlite3_close(s.db);
    assert_true(n_snapshots > 0);
}

static int by_place(const void *a, const void *b) {
    const tide__leaf *x = a, *y = b;
    if (x->series != y->series) return x->series < y->series ? -1 : 1;
    return (x->first_event > y->first_event) - (x->first_event < y->first_event);
}

static void assert_same_leaves(const rig *r, made *m) {
    tide_text want = {0};
    qsort(m->leaves.done, m->leaves.n_done, sizeof m->leaves.done[0], by_place);
    for (size_t i = 0; i < m->leaves.n_done; i++) {
        const tide__leaf *l = &m->leaves.done[i];
        const int64_t v[] = {l->series, l->first_event,        l->last_event, l->begin_ns,
                             l->end_ns, l->min_bytes,          l->max_bytes,  l->max_event,
                             l->max_ns, l->max_reserved_bytes, l->last_bytes, l->last_reserved_bytes};
        for (size_t k = 0; k < sizeof v / sizeof v[0]; k++)
            tide_text_addf(&want, "%lld%c", (long long)v[k], k + 1 < sizeof v / sizeof v[0] ? '|' : '\n');
    }
    assert_sql(r->dir.file, "SELECT * FROM leaf ORDER BY series, first_event", tide_text_str(&want));
    tide_text_deinit(&want);
}

static player players[MAX_PLAYERS];

/// In the suite as many of each thread as make a snapshot together.
static int n_events_of_each(size_t n_players) {
    return n_players == 1 ? MAX_EVENTS : tide_test_rounds(n_players == 2 ? 11000 : 6000, MAX_EVENTS);
}

static void check(size_t n_players, const tide__drain_options *opt) {
    const int n_events = n_events_of_each(n_players);
    rig r;
    pthread_barrier_t all;
    pthread_t threads[MAX_PLAYERS];
    rig_open(&r, 1 << 15, false, opt);
    pthread_barrier_init(&all, NULL, (unsigned)n_players);
    for (uint64_t i = 0; i < n_players; i++) {
        players[i] = (player){.feed = r.feed,
                              .seed = i + 1,
                              .first_block = (i + 1) << 32,
                              .now = 1000,
                              .all = &all,
                              .n_events = n_events};
        assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    for (size_t i = 0; i < n_players; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all);
    rig_rounds(&r);
    rig_finish(&r);
    static made m;
    memset(&m, 0, sizeof m);
    replay_file(&r, players, n_players, &m);
    assert_int_equal(m.replay.last_event, n_players * (size_t)n_events);
    assert_true(m.leaves.n_done > 4 * n_players * (size_t)n_events / TIDE__LEAF_EVENTS);
    assert_same_leaves(&r, &m);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_trace_expand(r.dir.file, &err), &err);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM block WHERE free_event IS NULL"), m.replay.n_live);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem"), m.replay.n_problems);
    assert_true(m.replay.n_problems > 0);
    tide__replay_deinit(&m.replay);
    tide__leaves_deinit(&m.leaves);
    rig_close(&r);
}

static void test_of_one_ring(void **state) {
    (void)state;
    check(1, &(tide__drain_options){.form = TIDE_RECORD_ROWS});
    check(1, &(tide__drain_options){.form = TIDE_RECORD_CHUNKS, .batch_events = 1});
}

static void test_of_two_rings(void **state) {
    (void)state;
    check(2, &(tide__drain_options){.form = TIDE_RECORD_ROWS});
    check(2, &(tide__drain_options){.form = TIDE_RECORD_CHUNKS});
    check(2, &(tide__drain_options){.form = TIDE_RECORD_CHUNKS, .batch_events = 77});
}

static void test_of_five_rings(void **state) {
    (void)state;
    check(5, &(tide__drain_options){.form = TIDE_RECORD_CHUNKS});
    check(5, &(tide__drain_options){.form = TIDE_RECORD_ROWS, .batch_events = 5000});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_of_one_ring),
        tide_unit_test(test_of_two_rings),
        tide_unit_test(test_of_five_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
