// SPDX-License-Identifier: MIT
//
// stream_caching when things fail: a scenario is run again and again, each time with another call failing (the n-th
// host allocation, the n-th call of the device for memory, the n-th call for an event). Each call says the right thing,
// check() holds after each, nothing is left, and no work ever meets memory that was given back, or given away too
// early.
#include "core/base/assert.h"
#include "stream_caching_test.h"

enum { N_SLOTS = 12 };

/// What a run came to.
typedef struct outcome {
    uint64_t n_failed; ///< allocations that failed
    uint64_t n_host;   ///< host allocations
    uint64_t n_wrong;  ///< blocks that were written by their next owner before they were read
    uint64_t calls[FAKE_N_CALLS];
} outcome;

typedef struct run_state {
    tide_allocator *a;
    tide_stream_id s, t, u;
    uint64_t second; ///< what the second owner of some memory writes; another one in each run
    outcome out;
} run_state;

/// Allocate on `stream`; a NULL block when there is no memory, which is the only failure there may be.
static tide_memory try_take(run_state *r, size_t size_bytes, tide_stream_id stream) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {.size_bytes = size_bytes, .stream = stream, .block_id = 1, .tag = "try"};
    tide_memory mem = {0};
    const tide_status st = tide_allocator_alloc(r->a, &req, &mem, &err);
    assert_sound(r->a);
    if (st == TIDE_OK) {
        const uint64_t nothing = 0; // so that no read meets bytes that were never written
        memcpy(fake_show(0, mem.data), &nothing, sizeof nothing);
        return mem;
    }
    assert_int_equal(st, TIDE_ERR_NOMEM);
    assert_true(err.msg[0] != '\0');
    assert_null(mem.data);
    r->out.n_failed++;
    return mem;
}

/// Used by `stream` until it gets there: a read into `seen` that must not find what the next owner writes.
static void try_use(run_state *r, const tide_memory *mem, tide_stream_id stream, uint64_t *seen) {
    if (mem->data == NULL) return;
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_copy(fake_at(0), stream, TIDE_COPY_DEVICE_TO_HOST, seen, mem->data, sizeof *seen, &err),
                   &err);
    tide_allocator_record_use(r->a, mem, stream);
    assert_sound(r->a);
}

/// The next owner writes something else.
static void overwrite(const run_state *r, const tide_memory *mem, tide_stream_id stream) {
    tide_error err = TIDE_ERROR_INIT;
    if (mem->data == NULL) return;
    assert_tide_ok(
        tide_device_copy(fake_at(0), stream, TIDE_COPY_HOST_TO_DEVICE, mem->data, &r->second, sizeof r->second, &err),
        &err);
}

static void try_pool(run_state *r) {
    uint64_t pool = 0;
    tide_error err = TIDE_ERROR_INIT;
    tide_capture_id capture = 0;
    const tide_status st = tide_stream_caching_begin_pool(r->a, r->u, &pool, &err);
    if (st != TIDE_OK) {
        assert_int_equal(st, TIDE_ERR_NOMEM);
        r->out.n_failed++;
        return;
    }
    assert_tide_ok(tide_capture_begin(fake_at(0), r->u, &err), &err);
    const tide_memory mem = try_take(r, 2000, r->u);
    if (mem.data != NULL) touch(&mem, r->u);
    tide_allocator_release(r->a, &mem, r->u);
    assert_tide_ok(tide_capture_end(fake_at(0), r->u, &capture, &err), &err);
    assert_tide_ok(tide_stream_caching_end_pool(r->a, pool, &err), &err);
    assert_tide_ok(tide_capture_launch(fake_at(0), capture, r->u, &err), &err);
    tide_capture_destroy(fake_at(0), capture);
    assert_tide_ok(tide_stream_caching_release_pool(r->a, pool, &err), &err);
    assert_sound(r->a);
}

/// Blocks of all sizes, used across streams, some taken over, some captured; the middle stream goes early.
static void scenario(run_state *r) {
    static const size_t sizes[] = {100, 5000, 600 * 1024, 3 << 20, 11 << 20, 14 << 20};
    uint64_t seen[2 * N_SLOTS] = {0};
    tide_memory mem[N_SLOTS];
    for (size_t i = 0; i < N_SLOTS; i++) {
        mem[i] = try_take(r, sizes[i % 6], r->s);
        try_use(r, &mem[i], r->t, &seen[2 * i]);
        if (i % 3 == 0) try_use(r, &mem[i], r->u, &seen[2 * i + 1]);
        tide_allocator_release(r->a, &mem[i], r->s);
        assert_sound(r->a);
        if (i == 4) fake_finish(r->t);
    }
    for (size_t i = 0; i < N_SLOTS; i++) { // the same memory again where it is free, for another stream
        mem[i] = try_take(r, sizes[5 - i % 6], i % 2 == 0 ? r->s : r->u);
        overwrite(r, &mem[i], i % 2 == 0 ? r->s : r->u);
        if (i == 6) fake_finish(r->u);
    }
    for (size_t i = 0; i < N_SLOTS; i++) tide_allocator_release(r->a, &mem[i], i % 2 == 0 ? r->s : r->t);
    assert_sound(r->a);
    try_pool(r);
    tide_stream_destroy(fake_at(0), r->t);
    assert_sound(r->a);
    tide_allocator_trim(r->a);
    assert_sound(r->a);
    const tide_memory last = try_take(r, 100, r->s);
    tide_allocator_release(r->a, &last, r->s);
    fake_finish_all();
    for (size_t i = 0; i < 2 * N_SLOTS; i++) r->out.n_wrong += seen[i] == r->second;
}

/// One run with `call` failing `times` after `after` calls (FAKE_N_CALLS: none), and the host after `host_after`.
static outcome run_once(fake_call_kind call, int64_t after, int64_t times, int64_t host_after) {
    fake_setup(1);
    fake_limit((uint64_t)200 << 20);
    fake_hold(true);
    static uint64_t n_runs;
    run_state r = {
        .s = new_stream(), .t = new_stream(), .u = new_stream(), .second = UINT64_C(0x5EC0DEF111000000) + n_runs++};
    tide_host_stats before, now;
    tide_host_get_stats(&before);
    if (call < FAKE_N_CALLS) fake_fail(call, after, times);
    tide_host_fail_after(host_after);
    tide_error err = TIDE_ERROR_INIT;
    const tide_status st = tide_stream_caching_create(fake_at(0), NULL, &r.a, &err);
    if (st == TIDE_OK) {
        scenario(&r);
        tide_allocator_unref(r.a);
    } else {
        assert_int_equal(st, TIDE_ERR_NOMEM);
        tide_stream_destroy(fake_at(0), r.t);
        r.out.n_failed++;
    }
    tide_host_fail_after(-1);
    tide_host_get_stats(&now);
    r.out.n_host = now.n_allocs - before.n_allocs;
    for (int i = 0; i < FAKE_N_CALLS; i++) r.out.calls[i] = fake_calls((fake_call_kind)i);
    tide_stream_destroy(fake_at(0), r.s);
    tide_stream_destroy(fake_at(0), r.u);
    fake_teardown();
    assert_true(r.out.n_wrong == 0);
    return r.out;
}

static outcome run_well(void) {
    const outcome o = run_once(FAKE_N_CALLS, 0, 0, -1);
    assert_true(o.n_failed == 0);
    // The scenario shows what it is meant to show.
    assert_true(o.calls[FAKE_STREAM_WAIT_EVENT] > 0 && o.calls[FAKE_EVENT_CREATE] > 0);
    assert_true(o.calls[FAKE_MEM_ALLOC] > 4 && o.calls[FAKE_MEM_FREE] == o.calls[FAKE_MEM_ALLOC]);
    return o;
}

/// Each call fails in `make soak`; in the suite every third, and each kind of call has its first.
static uint64_t next_call(uint64_t n) { return n + (uint64_t)tide_test_rounds(3, 1); }

static void the_nth_host_allocation_fails(void **state) {
    (void)state;
    const outcome well = run_well();
    uint64_t n_failed = 0;
    assert_true(well.n_host > 10);
    for (uint64_t n = 0; n < well.n_host; n = next_call(n))
        n_failed += run_once(FAKE_N_CALLS, 0, 0, (int64_t)n).n_failed;
    assert_true(n_failed > 5); // most are seen by the caller; a use that cannot be written down is waited for instead
}

static void the_nth_call_for_memory_fails(void **state) {
    (void)state;
    const outcome well = run_well();
    for (uint64_t n = 0; n < well.calls[FAKE_MEM_ALLOC]; n = next_call(n)) {
        assert_true(run_once(FAKE_MEM_ALLOC, (int64_t)n, 1, -1).n_failed == 0); // the second try has it
        // Both tries: one allocation fails, unless waiting for pending blocks was enough.
        assert_true(run_once(FAKE_MEM_ALLOC, (int64_t)n, 2, -1).n_failed <= 1);
        assert_true(run_once(FAKE_MEM_ALLOC, (int64_t)n, -1, -1).n_failed >= 1);
    }
}

static void the_nth_call_for_an_event_fails(void **state) {
    (void)state;
    static const fake_call_kind calls[] = {FAKE_EVENT_CREATE, FAKE_EVENT_RECORD,      FAKE_EVENT_QUERY,
                                           FAKE_EVENT_SYNC,   FAKE_STREAM_WAIT_EVENT, FAKE_STREAM_SYNC};
    const outcome well = run_well();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (uint64_t n = 0; n <= well.calls[calls[i]]; n = next_call(n)) {
            // The block is then freed later, never earlier, and no error needs to be reported.
            assert_true(run_once(calls[i], (int64_t)n, 1, -1).n_failed == 0);
        }
        assert_true(run_once(calls[i], 0, -1, -1).n_wrong == 0);
    }
}

/// Neither host memory to write a use down nor a stream that can be waited for: the block never serves again.
static void a_use_that_cannot_be_kept_keeps_the_block(void **state) {
    (void)state;
    tide_allocator *a = make_fake();
    fake_hold(true);
    const tide_stream_id s = new_stream(), t = new_stream();
    const tide_memory first = take_on(a, 30 * MIB, s);
    touch(&first, t);
    tide_host_fail_after(0);
    fake_fail(FAKE_STREAM_SYNC, 0, 1);
    give_on(a, &first, t);
    tide_host_fail_after(-1);
    assert_true(stats_of(a).n_pending == 1);
    fake_finish_all();
    const tide_memory second = take_on(a, 30 * MIB, s);
    assert_ptr_not_equal(second.data, first.data);
    give_on(a, &second, s);
    tide_allocator_trim(a);
    assert_true(stats_of(a).n_pending == 1 && stats_of(a).reserved_bytes == 30 * MIB);
    assert_sound(a);
    // With a stream that can be waited for, the host does that, and the block is free at once.
    const tide_memory third = take_on(a, 1000, s);
    touch(&third, t);
    tide_host_fail_after(0);
    give_on(a, &third, t);
    tide_host_fail_after(-1);
    assert_true(fake_waiting(t) == 0 && stats_of(a).n_pending == 1);
    end_stream(s);
    end_stream(t);
    tide_allocator_unref(a);
    fake_teardown();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(the_nth_host_allocation_fails),
        tide_unit_test(the_nth_call_for_memory_fails),
        tide_unit_test(the_nth_call_for_an_event_fails),
        tide_unit_test(a_use_that_cannot_be_kept_keeps_the_block),
    };
    tide_assert_slowly(true);
    return cmocka_run_group_tests_name("allocator stream_caching, failures", tests, NULL, NULL);
}
