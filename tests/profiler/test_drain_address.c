// SPDX-License-Identifier: MIT
//
// Blocks that the drain finds by their address alone: in what order two threads had one, what comes back, what cannot
// be.
#include "profiler/drain/drain_internal.h"
#include "tests/profiler/drain_fixture.h"

/// A feed by address, of a process of its own.
static tide__feed *open_by_address(rig *r) {
    rig_open(r, 4096, false, NULL);
    tide_error err = TIDE_ERROR_INIT;
    tide__feed *f;
    const tide__feed_options opt = {
        .trace_path = r->dir.file, .command = "test", .rank = -1, .ring_slots = 4096, .by_address = true};
    assert_tide_ok(tide__feed_create(&opt, &f, &err), &err);
    return f;
}

static void put(tide__feed *f, uint64_t t_ns, tide_memory_op op, uint64_t how, uint64_t address, uint64_t bytes) {
    const tide_memory_event e = {.op = op,
                                 .t_ns = t_ns,
                                 .device = TIDE_CPU,
                                 .kind = TIDE_KIND_HOST_PAGEABLE,
                                 .requested_bytes = bytes,
                                 .reserved_bytes = bytes,
                                 .address = address,
                                 .stream = how,
                                 .thread = tide_thread_id(),
                                 .allocator = how >= TIDE__BY_ADDRESS_RANGE ? TIDE__BY_ADDRESS_RANGES : "malloc"};
    tide__feed_memory(f, &e);
}

static void finish(rig *r, tide__feed *f) {
    tide__feed_end(f);
    rig_finish(r);
    tide__feed_destroy(f, false);
    rig_close(r);
}

#define EVENTS "SELECT op, block_id & 0xffffffffffff, requested_bytes, address FROM event ORDER BY id"
#define KNOWN "SELECT substr(value, 1, 17) FROM meta WHERE key = 'by_address.2'"

static void *by_another(void *arg) {
    put(arg, 1000, TIDE_MEM_ALLOC, 0, 4096, 8);
    put(arg, 1100, TIDE_MEM_ALLOC, 0, 8192, 16);
    return NULL;
}

/// One thread's clock is behind: by its times a block is freed before it is made, and made where another one is.
static void test_two_threads_and_one_address(void **state) {
    (void)state;
    rig r;
    tide__feed *f = open_by_address(&r);
    put(f, 800, TIDE_MEM_ALLOC, 0, 8192, 24);
    rig_on_thread(by_another, f);
    put(f, 960, TIDE_MEM_FREE_COMPLETED, 0, 4096, 0);
    put(f, 1150, TIDE_MEM_FREE_COMPLETED, 0, 8192, 0);
    rig_rounds(&r);
    assert_sql(r.dir.file, EVENTS, "1|1|24|8192\n1|2|8|4096\n3|2|8|4096\n3|1|24|8192\n1|5|16|8192\n");
    assert_sql(r.dir.file, KNOWN, "unknown=0 twice=0\n");
    finish(&r, f);
}

/// An address that is not known is told under a number of its own; one that is in use ends what was there.
static void test_contradictions(void **state) {
    (void)state;
    rig r;
    tide__feed *f = open_by_address(&r);
    put(f, 100, TIDE_MEM_FREE_COMPLETED, 0, 4096, 0);
    put(f, 200, TIDE_MEM_ALLOC, 0, 4096, 8);
    put(f, 300, TIDE_MEM_ALLOC, 0, 4096, 16);
    put(f, 400, TIDE_MEM_FREE_COMPLETED, 0, 4096, 0);
    rig_rounds(&r);
    assert_sql(r.dir.file, EVENTS, "3|1|0|4096\n1|2|8|4096\n3|2|8|4096\n1|4|16|4096\n3|4|16|4096\n");
    assert_sql(r.dir.file, KNOWN, "unknown=1 twice=1\n");
    assert_sql(r.dir.file, "SELECT event_id, problem FROM problem", "1|2\n");
    finish(&r, f);
}

static void test_what_comes_back(void **state) {
    (void)state;
    rig r;
    tide__feed *f = open_by_address(&r);
    put(f, 100, TIDE_MEM_ALLOC, 0, 4096, 8);
    put(f, 200, TIDE_MEM_FREE_COMPLETED, TIDE__BY_ADDRESS_MAY_COME_BACK, 4096, 0);
    put(f, 300, TIDE_MEM_ALLOC, TIDE__BY_ADDRESS_COMES_BACK, 4096, 0);
    put(f, 400, TIDE_MEM_ALLOC, TIDE__BY_ADDRESS_COMES_BACK, 4096, 0); // nothing went
    put(f, 500, TIDE_MEM_FREE_COMPLETED, TIDE__BY_ADDRESS_RANGE, 40960, 8192);
    put(f, 600, TIDE_MEM_ALLOC, TIDE__BY_ADDRESS_RANGE_MOVED, 81920, 8192); // of a file
    put(f, 700, TIDE_MEM_ALLOC, TIDE__BY_ADDRESS_RANGE, 40960, 8192);
    put(f, 800, TIDE_MEM_FREE_COMPLETED, TIDE__BY_ADDRESS_RANGE, 45056, 4096);
    put(f, 900, TIDE_MEM_ALLOC, TIDE__BY_ADDRESS_RANGE_BACK, 45056, 4096);
    rig_rounds(&r);
    assert_sql(r.dir.file, EVENTS,
               "1|1|8|4096\n3|1|8|4096\n1|3|8|4096\n1|4|8192|40960\n3|4|8192|40960\n1|6|4096|40960\n1|7|4096|45056\n");
    finish(&r, f);
}

/// What no producer writes: nothing more is taken from that ring.
static void test_what_cannot_be(void **state) {
    (void)state;
    static const struct {
        uint64_t how, address, bytes;
    } bad[] = {{0, 0, 8},
               {TIDE__BY_ADDRESS_RANGE_MOVED + 1, 4096, 8},
               {UINT64_MAX, 4096, 8},
               {TIDE__BY_ADDRESS_RANGE, 4096, 0},
               {TIDE__BY_ADDRESS_RANGE, UINT64_MAX - 4095, 8192}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        rig r;
        tide__feed *f = open_by_address(&r);
        put(f, 100, TIDE_MEM_ALLOC, 0, 4096, 8);
        put(f, 200, TIDE_MEM_ALLOC, bad[i].how, bad[i].address, bad[i].bytes);
        put(f, 300, TIDE_MEM_FREE_COMPLETED, 0, 4096, 0);
        rig_rounds(&r);
        assert_sql(r.dir.file, EVENTS, "1|1|8|4096\n");
        assert_int_equal(rig_number(&r, "SELECT count(*) FROM problem WHERE what LIKE '%is damaged%'"), 1);
        finish(&r, f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_two_threads_and_one_address),
        tide_unit_test(test_contradictions),
        tide_unit_test(test_what_comes_back),
        tide_unit_test(test_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
