// SPDX-License-Identifier: MIT
//
// Pools of traces whose segments lie in one another: an arena that takes its region from another allocator, or a
// program that tells of the same memory twice. What is held follows from what is there, wherever the question begins.
#include "profiler/holdings.h"

#include "tests/profiler/trace_fixture.h"

enum { PAGE_OF = 4096, N_EVENTS = 12 };

static void put(feeder *f, uint64_t t_ns, tide_memory_op op, uint64_t id, uint64_t address, uint64_t bytes,
                const char *allocator) {
    const tide_memory_event e = {.op = op,
                                 .t_ns = t_ns,
                                 .block_id = id,
                                 .device = TIDE_CPU,
                                 .kind = TIDE_KIND_WORKSPACE,
                                 .requested_bytes = bytes,
                                 .reserved_bytes = bytes,
                                 .address = address,
                                 .thread = f->thread,
                                 .allocator = allocator};
    f->now = t_ns;
    f->obs.on_memory(f->obs.self, &e);
}

static const tide_trace_pool *find(const tide_trace_pool *pools, size_t n, const char *allocator, bool tells) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(pools[i].allocator, allocator) == 0 && pools[i].tells_segments == tells) return &pools[i];
    return NULL;
}

/// Blocks and bytes of all pools are those that are live; no pool of segments has more active than reserved.
static void check_sums(tide_trace *t, uint64_t event, size_t want_blocks, uint64_t want_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_trace_pools_question q = {.run_id = 0, .at_event = event, .t0_ns = 0, .t1_ns = UINT64_MAX};
    tide_trace_pool *pools;
    size_t n, n_blocks = 0;
    uint64_t active = 0;
    assert_tide_ok(tide_trace_pools(t, &q, NULL, &pools, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        n_blocks += pools[i].n_blocks;
        active += pools[i].active_bytes;
        assert_true(pools[i].active_bytes <= pools[i].reserved_bytes);
        assert_true(pools[i].peak_active_bytes <= pools[i].peak_reserved_bytes);
        assert_true(pools[i].peak_reserved_bytes <= 100 * PAGE_OF);
    }
    if (n_blocks != want_blocks || active != want_bytes)
        fail_msg("after event %" PRIu64 ": %zu blocks, %" PRIu64 " bytes", event, n_blocks, active);
    if (event == 6) { // block 2 lies in the inner one, those around it in the outer one
        assert_int_equal(find(pools, n, "inner", true)->n_blocks, 1);
        assert_int_equal(find(pools, n, "outer", true)->n_blocks, 2);
    }
    tide_host_free(pools);
}

static void test_segments_inside_of_segments(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const uint64_t base = 0x10000000;
    put(&f, 1000, TIDE_MEM_SEGMENT_ALLOC, 0, base, 100 * PAGE_OF, "outer");
    put(&f, 1010, TIDE_MEM_ALLOC, 1, base + 45 * PAGE_OF, PAGE_OF, "outer"); // where the inner one will be
    put(&f, 1020, TIDE_MEM_SEGMENT_ALLOC, 0, base + 40 * PAGE_OF, 20 * PAGE_OF, "inner");
    put(&f, 1030, TIDE_MEM_ALLOC, 2, base + 50 * PAGE_OF, PAGE_OF, "inner");
    put(&f, 1040, TIDE_MEM_ALLOC, 3, base + 80 * PAGE_OF, PAGE_OF, "outer"); // behind the inner one
    put(&f, 1050, TIDE_MEM_SNAPSHOT, 0, 0, 0, NULL);
    put(&f, 1060, TIDE_MEM_FREE_COMPLETED, 1, base + 45 * PAGE_OF, PAGE_OF, "outer");
    put(&f, 1070, TIDE_MEM_SEGMENT_FREE, 0, base + 40 * PAGE_OF, 20 * PAGE_OF, "inner"); // with block 2 in it
    put(&f, 1080, TIDE_MEM_FREE_COMPLETED, 2, base + 50 * PAGE_OF, PAGE_OF, "inner");
    put(&f, 1090, TIDE_MEM_SEGMENT_FREE, 0, base, 100 * PAGE_OF, "outer"); // with block 3 in it
    put(&f, 1100, TIDE_MEM_FREE_COMPLETED, 3, base + 80 * PAGE_OF, PAGE_OF, "outer");
    put(&f, 1110, TIDE_MEM_SNAPSHOT, 0, 0, 0, NULL);
    feeder_close(&f);
    static const size_t live[N_EVENTS + 1] = {0, 0, 1, 1, 2, 3, 3, 2, 2, 1, 1, 0, 0};
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    for (uint64_t event = 0; event <= N_EVENTS; event++)
        check_sums(t, event, live[event], live[event] * (uint64_t)PAGE_OF);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

/// A pool as it is after an event.
static tide_trace_pool pool_after(tide_trace *t, uint64_t event) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_trace_pools_question q = {.run_id = 0, .at_event = event, .t0_ns = 0, .t1_ns = UINT64_MAX};
    tide_trace_pool *pools;
    size_t n;
    assert_tide_ok(tide_trace_pools(t, &q, NULL, &pools, &n, &err), &err);
    assert_int_equal(n, 1);
    const tide_trace_pool p = pools[0];
    tide_host_free(pools);
    return p;
}

/// Another allocator tells of its blocks in memory that a block of the first holds: together they hold more than was
/// taken. Nothing is cached then, and what is free is not known; before and after, both are.
static void test_blocks_inside_of_blocks(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    const uint64_t base = 0x10000000;
    put(&f, 1000, TIDE_MEM_SEGMENT_ALLOC, 0, base, 10 * PAGE_OF, "driver");
    put(&f, 1010, TIDE_MEM_ALLOC, 1, base, 8 * PAGE_OF, "driver");
    put(&f, 1020, TIDE_MEM_ALLOC, 2, base + PAGE_OF, 3 * PAGE_OF, "inner");
    put(&f, 1030, TIDE_MEM_ALLOC, 3, base + 4 * PAGE_OF, 0, "inner"); // of no bytes: nothing is in its way
    put(&f, 1040, TIDE_MEM_FREE_COMPLETED, 2, base + PAGE_OF, 3 * PAGE_OF, "inner");
    put(&f, 1050, TIDE_MEM_ALLOC, 4, base + 9 * PAGE_OF, 2 * PAGE_OF, "driver"); // not whole in the segment
    feeder_close(&f);
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t;
    assert_tide_ok(tide_trace_open(d.file, &t, &err), &err);
    tide_trace_pool p = pool_after(t, 2);
    assert_int_equal(tide_trace_pool_cached(&p), 2 * PAGE_OF);
    assert_int_equal(p.largest_free_bytes, 2 * PAGE_OF);
    for (uint64_t event = 3; event <= 4; event++) {
        p = pool_after(t, event);
        assert_int_equal(p.active_bytes, 11 * PAGE_OF);
        assert_int_equal(tide_trace_pool_cached(&p), 0);
        assert_int_equal(p.largest_free_bytes, TIDE_UNKNOWN_BYTES);
        assert_int_equal(p.unused_bytes, 0);
    }
    p = pool_after(t, 5);
    assert_int_equal(tide_trace_pool_cached(&p), 2 * PAGE_OF);
    assert_int_equal(p.largest_free_bytes, 2 * PAGE_OF);
    assert_int_equal(p.unused_since_ns, 1040);
    assert_int_equal(pool_after(t, 6).largest_free_bytes, TIDE_UNKNOWN_BYTES);
    tide_trace_close(t);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_blocks_inside_of_blocks),
        tide_unit_test(test_segments_inside_of_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
