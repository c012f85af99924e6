// SPDX-License-Identifier: MIT
//
// What the drain makes of usual events in one go against the long way: the events of the file, replayed one by one,
// must make the very leaves and live blocks that the file has. Usual and odd events take turns, on two rings.
#include "profiler/store/cursor.h"
#include "profiler/store/snapshot.h"
#include "tests/profiler/drain_fixture.h"

enum { N_EVENTS = 30000, N_PLACES = 600 };

typedef struct player {
    tide__feed *feed;
    uint64_t seed, first_block, places[N_PLACES], sizes[N_PLACES];
    uint64_t now, n_blocks;
    pthread_barrier_t *both; ///< have a ring
} player;

/// Events of one thread with times of its own: allocs and frees, two in a hundred of which nobody expects.
static void *play(void *arg) {
    player *p = arg;
    tide_rng rng = {.state = p->seed};
    for (int i = 0; i < N_EVENTS; i++) {
        const size_t at = (size_t)tide_rng_below(&rng, N_PLACES);
        const uint64_t odd = tide_rng_below(&rng, 100);
        p->now += 1 + tide_rng_below(&rng, 50);
        tide_memory_event e = {.op = p->places[at] == 0 ? TIDE_MEM_ALLOC : TIDE_MEM_FREE_COMPLETED,
                               .t_ns = p->now,
                               .device = TIDE_CPU,
                               .kind = (tide_memory_kind)(at % 4),
                               .address = 0x10000 + at * 4096,
                               .thread = (uint32_t)p->seed,
                               .allocator = "cpu",
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
        tide__feed_memory(p->feed, &e);
        if (i == 0) pthread_barrier_wait(p->both);
    }
    return NULL;
}

typedef struct made {
    tide__replay replay;
    tide__leaves leaves;
} made;

/// The events of the file, one by one, the long way.
static void replay_file(const rig *r, made *m) {
    tide_error err = TIDE_ERROR_INIT;
    tide__sql s = {.path = r->dir.file, .db = sql_open(r->dir.file)};
    assert_tide_status(tide__replay_init(&m->replay), TIDE_OK);
    tide__cursor *c;
    assert_tide_ok(tide__cursor_open(&s, 1, INT64_MAX, &c, &err), &err);
    const tide__event *events;
    for (size_t n = 1; n > 0;) {
        assert_tide_ok(tide__cursor_next(c, &events, &n, &err), &err);
        for (size_t i = 0; i < n; i++) {
            tide__problem problem;
            size_t series;
            assert_tide_ok(tide__replay_apply(&m->replay, &events[i], &problem, &series), &err);
            assert_tide_ok(tide__leaves_add_any(&m->leaves, &m->replay, &events[i], series), &err);
        }
    }
    assert_tide_ok(tide__leaves_end(&m->leaves), &err); // as at the end of a trace
    tide__cursor_close(c);
    sqlite3_close(s.db);
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

/// As rows and as chunks, of two rings.
static void test_leaves_and_blocks_are_those_of_the_long_way(void **state) {
    (void)state;
    for (int as_chunks = 0; as_chunks < 2; as_chunks++) {
        rig r;
        const tide__drain_options opt = {.form = as_chunks ? TIDE_RECORD_CHUNKS : TIDE_RECORD_ROWS};
        rig_open(&r, 1 << 15, false, &opt);
        static player players[2];
        pthread_barrier_t both;
        pthread_t threads[2];
        pthread_barrier_init(&both, NULL, 2);
        for (uint64_t i = 0; i < 2; i++) {
            players[i] =
                (player){.feed = r.feed, .seed = i + 1, .first_block = (i + 1) << 32, .now = 1000, .both = &both};
            assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
        }
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&both);
        rig_rounds(&r);
        rig_finish(&r);
        static made m;
        memset(&m, 0, sizeof m);
        replay_file(&r, &m);
        assert_int_equal(m.replay.last_event, 2 * N_EVENTS);
        assert_true(m.leaves.n_done > 4 * 2 * N_EVENTS / TIDE__LEAF_EVENTS);
        assert_same_leaves(&r, &m);
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM block WHERE free_event IS NULL"), m.replay.n_live);
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem"), m.replay.n_problems);
        tide__replay_deinit(&m.replay);
        tide__leaves_deinit(&m.leaves);
        rig_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_leaves_and_blocks_are_those_of_the_long_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
