// SPDX-License-Identifier: MIT
//
// Feeds with wrong contents: the trace says which feed is damaged, its producer stops sending, all other feeds are
// recorded as usual, and the damaged feed stays on disk for inspection.
#include <sys/mman.h>

#include "tests/profiler/drain_fixture.h"

// ---- another hand on the feed's file ----

typedef struct hand {
    char *base;
    size_t bytes;
    int fd;
} hand;

static void hand_open(hand *h, const rig *r) {
    h->fd = open(tide__feed_path(r->feed), O_RDWR | O_CLOEXEC);
    assert_true(h->fd >= 0);
    struct stat info;
    assert_int_equal(fstat(h->fd, &info), 0);
    h->bytes = (size_t)info.st_size;
    h->base = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
    assert_true(h->base != MAP_FAILED);
}

static void hand_close(hand *h) {
    munmap(h->base, h->bytes);
    close(h->fd);
}

static void *chunk_of(const hand *h, tide__chunk_kind kind) {
    const tide__feed_header *head = (const tide__feed_header *)h->base;
    for (uint32_t i = 0; i < head->n_chunks; i++)
        if (head->chunks[i].kind == (uint32_t)kind) return h->base + head->chunks[i].offset;
    fail_msg("the feed has no such chunk");
    return NULL;
}

static tide__ring_header *ring_of(const hand *h) { return chunk_of(h, TIDE__CHUNK_RING); }
static tide__slot *slot_of(const hand *h, uint64_t position) {
    tide__ring_header *ring = ring_of(h);
    return (tide__slot *)((char *)ring + TIDE__RING_HEADER_BYTES) + (position & (ring->n_slots - 1));
}

// ---- what may be wrong with it ----

typedef void (*change_fn)(const hand *h);

/// Position 0 is the thread's, 1 to 20 are events.
static void bad_sequence(const hand *h) { slot_of(h, 5)->sequence = 77; }
static void bad_op(const hand *h) { slot_of(h, 5)->op = 99; }
static void bad_kind(const hand *h) { slot_of(h, 5)->kind_flags = (uint8_t)((slot_of(h, 5)->kind_flags & 0xf0) | 9); }
static void no_kind(const hand *h) { slot_of(h, 5)->kind_flags |= 15; }
static void no_device(const hand *h) { slot_of(h, 5)->device = 31; }
static void bad_size(const hand *h) { slot_of(h, 5)->requested_bytes = UINT64_MAX; }
static void bad_block(const hand *h) { slot_of(h, 5)->block_id = UINT64_C(1) << 60; }
static void bad_time(const hand *h) {
    slot_of(h, 5)->kind_flags |= TIDE__SLOT_NS << 4;
    slot_of(h, 5)->time = UINT64_MAX;
}
static void bad_run(const hand *h) {
    slot_of(h, 5)->op = TIDE__SLOT_RUN_BEGIN;
    slot_of(h, 5)->block_id = 12;
}
static void bad_thread(const hand *h) {
    slot_of(h, 5)->op = TIDE__SLOT_THREAD;
    slot_of(h, 5)->block_id = UINT64_MAX;
}
static void empty_gap(const hand *h) {
    slot_of(h, 5)->op = TIDE__OP_GAP;
    slot_of(h, 5)->requested_bytes = 0;
}
static void long_gap(const hand *h) {
    slot_of(h, 5)->op = TIDE__OP_GAP;
    slot_of(h, 5)->requested_bytes = INT64_MAX;
}
/// Each may be, both together not.
static void two_gaps(const hand *h) {
    for (uint64_t i = 4; i <= 5; i++) {
        slot_of(h, i)->op = TIDE__OP_GAP;
        slot_of(h, i)->requested_bytes = UINT64_C(1) << 47;
    }
    slot_of(h, 5)->requested_bytes++;
}
static void unknown_scope(const hand *h) {
    slot_of(h, 5)->op = TIDE__OP_SCOPE_ENTER;
    slot_of(h, 5)->scope = UINT32_MAX;
}

static void put_events(rig *r) {
    for (uint64_t i = 1; i <= 20; i++) rig_put(r->feed, 100 + i, TIDE_MEM_ALLOC, i, 8, "x");
}

static void expect_damage(change_fn change, int64_t n_kept) {
    rig r;
    rig_open(&r, 64, false, NULL);
    put_events(&r);
    hand h;
    hand_open(&h, &r);
    change(&h);
    rig_rounds(&r);
    hand_close(&h);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), n_kept);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE problem >= 100 AND what LIKE '%damaged%'"), 1);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__feed_error(r.feed, &err), TIDE_ERR_WRITE); // the producer was told
    assert_text_has(err.msg, "damaged");
    for (uint64_t i = 1; i <= 1000; i++) rig_put(r.feed, 0, TIDE_MEM_ALLOC, 100 + i, 8, "x"); // it does not wait
    char path[600];
    snprintf(path, sizeof path, "%s", tide__feed_path(r.feed));
    rig_finish(&r);
    assert_sql(r.dir.file, "SELECT value FROM meta WHERE key = 'state'", "complete\n");
    assert_sql(r.dir.file, "PRAGMA integrity_check", "ok\n");
    assert_int_equal(access(path, F_OK), 0); // kept for inspection
    rig_close(&r);
}

static void test_slots(void **state) {
    (void)state;
    static const change_fn changes[] = {bad_sequence, bad_op,        bad_kind, no_kind, no_device,
                                        bad_size,     bad_block,     bad_time, bad_run, bad_thread,
                                        empty_gap,    unknown_scope, long_gap, two_gaps};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) expect_damage(changes[i], 4);
}

// ---- names ----

static void log_ends_late(const hand *h) {
    ((tide__log_header *)chunk_of(h, TIDE__CHUNK_LOG))->used_bytes = UINT64_MAX / 2;
}
/// The first that was not taken when the feed was found.
static tide__log_record *first_record(const hand *h) {
    tide__log_record *r = (tide__log_record *)((char *)chunk_of(h, TIDE__CHUNK_LOG) + sizeof(tide__log_header));
    return r->type == TIDE__LOG_COMMAND ? (tide__log_record *)((char *)r + r->bytes) : r;
}
static void record_of_no_type(const hand *h) { first_record(h)->type = 99; }
static void record_out_of_order(const hand *h) {
    tide__log_record *r = first_record(h);
    while (r->type != TIDE__LOG_TEXT) r = (tide__log_record *)((char *)r + r->bytes);
    r->id = 7;
}
static void record_too_long(const hand *h) { first_record(h)->payload_bytes = UINT32_MAX; }
static void record_of_nothing(const hand *h) { first_record(h)->bytes = 0; }
static void second_command(const hand *h) { first_record(h)->type = TIDE__LOG_COMMAND; }
static void run_of_nonsense(const hand *h) { first_record(h)->type = TIDE__LOG_RUN; }
static void fact_of_nonsense(const hand *h) { first_record(h)->type = TIDE__LOG_FACT; }

/// Without its names an event may have no device: then it is none. With or without, nothing is read that is not there.
static void test_logs(void **state) {
    (void)state;
    static const change_fn changes[] = {log_ends_late,     record_of_no_type, record_out_of_order, record_too_long,
                                        record_of_nothing, second_command,    run_of_nonsense,     fact_of_nonsense};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        rig r;
        rig_open(&r, 64, false, NULL);
        put_events(&r);
        hand h;
        hand_open(&h, &r);
        changes[i](&h);
        rig_rounds(&r);
        hand_close(&h);
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE problem >= 100"), 1);
        assert_tide_status(tide__feed_error(r.feed, NULL), TIDE_ERR_WRITE);
        rig_finish(&r);
        assert_sql(r.dir.file, "SELECT value FROM meta WHERE key = 'state'", "complete\n");
        rig_close(&r);
    }
}

/// Numbers that the log does not define are none.
static void test_numbers_of_nothing(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    put_events(&r);
    hand h;
    hand_open(&h, &r);
    slot_of(&h, 5)->tag = UINT32_MAX;
    slot_of(&h, 6)->scope = 1000;
    slot_of(&h, 7)->allocator = 255;
    hand_close(&h);
    rig_finish(&r);
    assert_sql(r.dir.file,
               "SELECT id, tag_id IS NULL, scope_id IS NULL, allocator_id IS NULL FROM event WHERE id IN (4, 5, 6, 7)",
               "4|0|1|0\n5|1|1|0\n6|0|1|0\n7|0|1|1\n");
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem"), 0);
    rig_close(&r);
}

// ---- chunks ----

static void too_many_chunks(const hand *h) { ((tide__feed_header *)h->base)->n_chunks = 5000; }
static void fewer_chunks(const hand *h) { ((tide__feed_header *)h->base)->n_chunks = 0; }

static void test_tables_of_chunks(void **state) {
    (void)state;
    static const change_fn changes[] = {too_many_chunks, fewer_chunks};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        rig r;
        rig_open(&r, 64, false, NULL);
        put_events(&r);
        rig_rounds(&r);
        hand h;
        hand_open(&h, &r);
        const uint32_t n = ((tide__feed_header *)h.base)->n_chunks;
        changes[i](&h);
        rig_rounds(&r);
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE problem >= 100"), 1);
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM event"), 20);
        ((tide__feed_header *)h.base)->n_chunks = n;
        hand_close(&h);
        rig_finish(&r);
        rig_close(&r);
    }
}

// ---- files that are none ----

static void write_file(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void test_files_that_are_no_feeds(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 64, false, NULL);
    put_events(&r);
    rig_rounds(&r);
    char empty[400], text[400], other[400];
    snprintf(empty, sizeof empty, "%s.feed-1-1", r.dir.file);
    snprintf(text, sizeof text, "%s.feed-1-2", r.dir.file);
    write_file(empty, "", 0);
    write_file(text, "hello", 5);
    // A feed of no process; and one of another version.
    tide__feed *stranger = rig_add_feed(r.dir.file, 64, false), *twin = rig_add_feed(r.dir.file, 64, false);
    tide__feed_head(stranger)->begin_ns = -1;
    tide__feed_head(twin)->version = 1;
    snprintf(other, sizeof other, "%s", tide__feed_path(stranger));
    rig_put(stranger, 1, TIDE_MEM_ALLOC, 1000, 8, "x");
    rig_put(twin, 1, TIDE_MEM_ALLOC, 1001, 8, "x");
    put_events(&r);
    tide__drain_look_again(r.drain);
    rig_rounds(&r);
    tide__drain_look_again(r.drain);
    rig_rounds(&r); // told once each
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE problem = 100"), 4);
    assert_int_equal(rig_number(&r, "SELECT count(*) FROM event WHERE block_id >= 1000"), 0);
    tide__feed_end(stranger);
    tide__feed_end(twin);
    rig_finish(&r);
    assert_int_equal(access(text, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
    tide__feed_destroy(stranger, true);
    tide__feed_destroy(twin, true);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_slots),
        tide_unit_test(test_logs),
        tide_unit_test(test_numbers_of_nothing),
        tide_unit_test(test_tables_of_chunks),
        tide_unit_test(test_files_that_are_no_feeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
