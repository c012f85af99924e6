// SPDX-License-Identifier: MIT
//
// When processes ended: where the events of that stand, by their times, whichever process drains.
#include "core/base/text.h"
#include "tests/profiler/drain_fixture.h"

/// A feed whose process has said that it ends, at `t_ns`, and is gone.
static void end_feed(tide__feed *f, int64_t t_ns) {
    tide__feed_say_ending(f, TIDE__FEED_ENDS);
    atomic_store(&tide__feed_head(f)->ending_ns, t_ns);
    tide__feed_destroy(f, false);
}

static const char events[] =
    "SELECT op, process, t_ns FROM (SELECT e.id, o.name AS op, (coalesce(block_id, 0) >> 48) + 1 AS "
    "process, t_ns FROM event e JOIN op o ON o.id = e.op ORDER BY e.id)";

/// Ends that are in the file: process, whether it is an event, blocks, bytes.
static const char ends[] =
    "SELECT substr(key, 13), CAST(value AS INTEGER) > 0, substr(value, instr(value, ' ') + 1) FROM meta "
    "WHERE key LIKE 'process_end.%' ORDER BY key";

static tide__feed *other_feed(rig *r) {
    tide__feed *f = rig_add_feed(r->dir.file, 0, false);
    tide__drain_look_again(r->drain);
    rig_round(r); // it is known before the first one ends
    return f;
}

static void it_stands_by_its_time(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 0, false, NULL);
    tide__feed *b = other_feed(&r);
    rig_put(r.feed, 100, TIDE_MEM_ALLOC, 1, 10, "left");
    rig_put(r.feed, 110, TIDE_MEM_ALLOC, 2, 20, "left too");
    rig_put(b, 150, TIDE_MEM_ALLOC, 1, 1000, "before");
    rig_put(b, 210, TIDE_MEM_ALLOC, 2, 2000, "behind");
    end_feed(r.feed, 200);
    r.feed = b;
    rig_finish(&r);
    assert_sql(r.dir.file, events, "alloc|1|100\nalloc|1|110\nalloc|2|150\nprocess_end|1|200\nalloc|2|210\n");
    assert_sql(r.dir.file, "SELECT process_id, event_id, t_ns FROM process_end", "1|4|200\n");
    assert_sql(r.dir.file, ends, "1|1|200 2 30\n");
    assert_sql(r.dir.file, "SELECT how, end_ns FROM process WHERE id = 1", "closed|200\n");
    assert_sql(r.dir.file, "SELECT max_bytes, last_bytes FROM leaf WHERE series = 0", "3000|3000\n");
    assert_sql(r.dir.file, "SELECT name, requested_bytes FROM leaks ORDER BY requested_bytes",
               "left|10\nleft too|20\nbefore|1000\nbehind|2000\n");
    assert_sql(r.dir.file, "SELECT free_event, end_event, end_ns FROM life WHERE requested_bytes < 100",
               "|4|200\n|4|200\n");
    assert_sql(r.dir.file, "SELECT value FROM meta WHERE key = 'left_bytes'", "30\n");
    rig_close(&r);
}

/// Its last event is later than what it said.
static void it_is_no_earlier_than_the_last_event(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 0, false, NULL);
    tide__feed *b = other_feed(&r);
    rig_put(r.feed, 100, TIDE_MEM_ALLOC, 1, 10, "left");
    rig_put(r.feed, 300, TIDE_MEM_ALLOC, 2, 20, "left too");
    rig_put(b, 250, TIDE_MEM_ALLOC, 1, 1000, "between");
    rig_put(b, 350, TIDE_MEM_ALLOC, 2, 2000, "behind");
    end_feed(r.feed, 200);
    r.feed = b;
    rig_finish(&r);
    assert_sql(r.dir.file, events, "alloc|1|100\nalloc|2|250\nalloc|1|300\nprocess_end|1|300\nalloc|2|350\n");
    rig_close(&r);
}

/// The drain that saw the end is gone before anything follows, and the next one writes the event.
static void another_drain_writes_it(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 0, false, NULL);
    tide__feed *b = other_feed(&r);
    rig_put(r.feed, 100, TIDE_MEM_ALLOC, 1, 10, "left");
    rig_put(b, 90, TIDE_MEM_ALLOC, 1, 1000, "before");
    end_feed(r.feed, 200);
    r.feed = b;
    rig_rounds(&r);
    assert_sql(r.dir.file, ends, "1|0|200 0 0\n");
    assert_sql(r.dir.file, events, "alloc|2|90\nalloc|1|100\n");
    tide__drain_close(r.drain);
    rig_open_drain(&r);
    rig_rounds(&r);
    assert_sql(r.dir.file, ends, "1|0|200 0 0\n");
    rig_put(b, 300, TIDE_MEM_FREE_COMPLETED, 1, 1000, "before");
    rig_finish(&r);
    assert_sql(r.dir.file, events, "alloc|2|90\nalloc|1|100\nprocess_end|1|200\nfree_completed|2|300\n");
    assert_sql(r.dir.file, ends, "1|1|200 1 10\n");
    rig_close(&r);
}

/// A drain was killed behind the COMMIT, and the feed is there still.
static void it_is_written_once(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 0, false, NULL);
    tide__feed *b = other_feed(&r);
    char path[600], copy[700], command[1400];
    snprintf(path, sizeof path, "%s", tide__feed_path(r.feed));
    snprintf(copy, sizeof copy, "%s.kept", path);
    rig_put(r.feed, 100, TIDE_MEM_ALLOC, 1, 10, "left");
    end_feed(r.feed, 200);
    snprintf(command, sizeof command, "cp '%s' '%s'", path, copy);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
    r.feed = b;
    rig_put(b, 300, TIDE_MEM_ALLOC, 1, 1000, "behind");
    rig_rounds(&r);
    tide__drain_close(r.drain);
    assert_int_equal(rename(copy, path), 0);
    rig_open_drain(&r);
    rig_put(b, 400, TIDE_MEM_ALLOC, 2, 2000, "behind");
    rig_finish(&r);
    assert_sql(r.dir.file, events, "alloc|1|100\nprocess_end|1|200\nalloc|2|300\nalloc|2|400\n");
    rig_close(&r);
}

/// What a feed says of its end may be anything; a recorder that was closed says nothing of its process.
static void what_is_not_known_is_not_guessed(void **state) {
    (void)state;
    static const struct {
        int64_t said_ns;
        uint32_t ending;
        bool is_closed;
        const char *want_how;
        bool has_end;
    } all[] = {{INT64_MAX, TIDE__FEED_ENDS, false, "closed\n", true},  {-1, TIDE__FEED_ENDS, false, "closed\n", true},
               {0, TIDE__FEED_IS_REPLACED, false, "replaced\n", true}, {100, 77, false, "killed\n", true},
               {100, TIDE__FEED_GOES_ON, true, "closed\n", false},     {150, TIDE__FEED_ENDS, true, "closed\n", true}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        rig r;
        rig_open(&r, 0, false, NULL);
        tide__feed *b = other_feed(&r);
        const uint64_t now = tide_now_ns();
        rig_put(r.feed, 100, TIDE_MEM_ALLOC, 1, 10, "left");
        rig_put(b, 200, TIDE_MEM_ALLOC, 1, 1000, "early");
        atomic_store(&tide__feed_head(r.feed)->ending, all[i].ending);
        atomic_store(&tide__feed_head(r.feed)->ending_ns, all[i].said_ns);
        if (all[i].is_closed) tide__feed_end(r.feed);
        tide__feed_destroy(r.feed, false);
        r.feed = b;
        rig_rounds(&r);
        rig_put(b, now + UINT64_C(3600000000000), TIDE_MEM_ALLOC, 2, 2000, "an hour later");
        rig_finish(&r);
        print_message("%zu\n", i);
        assert_sql(r.dir.file, "SELECT how FROM process WHERE id = 1", all[i].want_how);
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM event WHERE op = 19"), all[i].has_end);
        assert_int_equal(rig_number(&r, "SELECT live_at_end_bytes FROM bytes_by_kind WHERE run_id = 0"),
                         all[i].has_end ? 3000 : 3010);
        rig_close(&r);
    }
}

/// A feed is closed some moments before its process is gone: what it said counts at once.
static void it_counts_while_the_process_is_still_there(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 0, false, NULL);
    tide__feed *a = r.feed, *b = other_feed(&r);
    rig_put(a, 100, TIDE_MEM_ALLOC, 1, 10, "left");
    tide__feed_say_ending(a, TIDE__FEED_ENDS);
    atomic_store(&tide__feed_head(a)->ending_ns, 150);
    tide__feed_end(a);
    r.feed = b;
    rig_put(b, 200, TIDE_MEM_ALLOC, 1, 1000, "behind");
    rig_rounds(&r);
    tide__feed_destroy(a, false);
    rig_finish(&r);
    assert_sql(r.dir.file, events, "alloc|1|100\nprocess_end|1|150\nalloc|2|200\n");
    assert_sql(r.dir.file, ends, "1|1|150 1 10\n");
    rig_close(&r);
}

/// Nothing records any more: it is not known when those that were killed ended.
static void of_what_was_left_behind_marks_alone_are_known(void **state) {
    (void)state;
    for (int says = 0; says <= 1; says++) {
        rig r;
        rig_open(&r, 0, false, NULL);
        tide__feed *b = other_feed(&r);
        rig_put(r.feed, 100, TIDE_MEM_ALLOC, 1, 10, "left");
        rig_put(b, 300, TIDE_MEM_ALLOC, 1, 1000, "behind");
        tide__drain_close(r.drain);
        r.drain = NULL;
        if (says)
            end_feed(r.feed, 200);
        else
            tide__feed_destroy(r.feed, false);
        tide__feed_destroy(b, false);
        r.feed = NULL;
        tide_error err = TIDE_ERROR_INIT;
        assert_tide_ok(tide__drain_recover(r.dir.file, &err), &err);
        assert_sql(r.dir.file, events,
                   says ? "alloc|1|100\nprocess_end|1|200\nalloc|2|300\n" : "alloc|1|100\nalloc|2|300\n");
        rig_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(it_stands_by_its_time),
        tide_unit_test(it_is_no_earlier_than_the_last_event),
        tide_unit_test(another_drain_writes_it),
        tide_unit_test(it_is_written_once),
        tide_unit_test(it_counts_while_the_process_is_still_there),
        tide_unit_test(what_is_not_known_is_not_guessed),
        tide_unit_test(of_what_was_left_behind_marks_alone_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
