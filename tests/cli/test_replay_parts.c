// SPDX-License-Identifier: MIT
//
// A replay with allocators and devices that no command line can ask for: one that gives the same memory twice, one that
// breaks in the middle, a device with streams that is full, one that cannot fill memory with a pattern. And the
// histogram of times.
#include <unistd.h>

#include "cli/replay.h"
#include "core/memory/allocators/allocators.h"
#include "tests/device/fake_device.h"
#include "tests/tide_test.h"

enum { N_BLOCKS = 8, BLOCK_BYTES = 1000 };
static char path[] = "/tmp/tide-replay-XXXXXX";
static tide_trace *trace;

static void put(const tide_observer *o, tide_memory_op op, uint64_t id) {
    const tide_memory_event event = {.op = op,
                                     .block_id = id,
                                     .device = TIDE_CPU,
                                     .kind = TIDE_KIND_HOST_PAGEABLE,
                                     .stream = id % 3,
                                     .requested_bytes = BLOCK_BYTES,
                                     .reserved_bytes = BLOCK_BYTES,
                                     .address = id * 4096,
                                     .thread = 1,
                                     .allocator = "made",
                                     .tag = "block"};
    o->on_memory(o->self, &event);
}

/// All blocks are given, then all but the last are freed.
static int make_trace(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_recorder *recorder = NULL;
    const int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0) return -1;
    if (tide_recorder_open(path, NULL, &recorder, &err) != TIDE_OK) return -1;
    const tide_observer o = tide_recorder_observer(recorder);
    for (uint64_t id = 1; id <= N_BLOCKS; id++) put(&o, TIDE_MEM_ALLOC, id);
    for (uint64_t id = 1; id < N_BLOCKS; id++) put(&o, TIDE_MEM_FREE_COMPLETED, id);
    if (tide_recorder_close(recorder, &err) != TIDE_OK) return -1;
    return tide_trace_open(path, &trace, &err) == TIDE_OK ? 0 : -1;
}

static int remove_trace(void **state) {
    (void)state;
    tide_trace_close(trace);
    return unlink(path);
}

static cli_replay_source source_of(void) {
    tide_error err = TIDE_ERROR_INIT;
    cli_replay_source s = {.trace = trace, .path = path};
    assert_tide_ok(cli_replay_source_open(&s, &err), &err);
    return s;
}

/// Takes the allocator.
static tide_status replay(tide_device device, tide_allocator *a, bool check, cli_replay_result *out, tide_error *err) {
    const cli_replay_source s = source_of();
    const cli_replay_options o = {.device = device, .check = check};
    const tide_status st = cli_replay_run(&s, &o, "test", a, out, err);
    tide_allocator_unref(a);
    return st;
}

// ---- a broken allocator ----

typedef struct broken {
    char room[2][BLOCK_BYTES];
    uint64_t n_given, n_taken;
    uint64_t break_at; ///< of allocations, the device fails; UINT64_MAX: never
} broken;

static tide_status broken_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    broken *b = self;
    if (b->n_given == b->break_at) return TIDE_FAIL(err, TIDE_ERR_BACKEND, "the device is gone");
    out->data = b->room[b->n_given++ % 2];
    (void)req;
    return TIDE_OK;
}
static void broken_release(void *self, const tide_memory *mem, tide_stream_id stream) {
    (void)mem;
    (void)stream;
    ((broken *)self)->n_taken++;
}
static void broken_stats(const void *self, tide_allocator_stats *out) {
    const broken *b = self;
    *out = (tide_allocator_stats){.requested_bytes = (b->n_given - b->n_taken) * BLOCK_BYTES,
                                  .active_bytes = (b->n_given - b->n_taken) * BLOCK_BYTES,
                                  .reserved_bytes = (b->n_given - b->n_taken) * BLOCK_BYTES};
}
static void broken_props(const void *self, tide_allocator_props *out) {
    (void)self;
    out->what = "gives the same memory again";
}
static void broken_destroy(void *self) { (void)self; }
static const tide_allocator_ops broken_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                              .name = "broken",
                                              .alloc = broken_alloc,
                                              .release = broken_release,
                                              .stats = broken_stats,
                                              .props = broken_props,
                                              .destroy = broken_destroy};

static tide_allocator *make_broken(broken *b, uint64_t break_at) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    *b = (broken){.break_at = break_at};
    assert_tide_ok(tide_allocator_create(&broken_ops, b, TIDE_CPU, &a, &err), &err);
    return a;
}

/// Of eight blocks in two places the first six are written over by those that come later.
static void test_memory_that_is_given_twice_is_found(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    broken b;
    cli_replay_result r;
    assert_tide_ok(replay(TIDE_CPU, make_broken(&b, UINT64_MAX), true, &r, &err), &err);
    assert_int_equal(r.n_checked, N_BLOCKS);
    assert_int_equal(r.n_wrong_blocks, N_BLOCKS - 2);
    assert_true(r.wrong_bytes > (N_BLOCKS - 2) * BLOCK_BYTES * 9 / 10); // some bytes are the same by chance
    assert_true(r.wrong_bytes <= (N_BLOCKS - 2) * BLOCK_BYTES);
    assert_int_equal(r.wrong.event, N_BLOCKS + 1); // the free of the first
    assert_string_equal(r.wrong.name, "block");
    assert_tide_ok(replay(TIDE_CPU, make_broken(&b, UINT64_MAX), false, &r, &err), &err);
    assert_true(r.wrong_bytes == TIDE_UNKNOWN_BYTES && r.n_checked == 0);
    assert_int_equal(r.n_leaked, 1);
    assert_int_equal(b.n_taken, N_BLOCKS); // what was left is given back too
}

static void test_an_allocator_that_breaks_ends_it(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    broken b;
    cli_replay_result r;
    assert_tide_status(replay(TIDE_CPU, make_broken(&b, 5), true, &r, &err), TIDE_ERR_BACKEND);
    assert_text_has(err.msg, "the device is gone");
    assert_int_equal(b.n_taken, 5);
}

// ---- a device ----

static void test_on_a_device_with_streams(void **state) {
    (void)state;
    static const char *const names[] = {"cuda", "cuda_caching"};
    for (size_t i = 0; i < 2; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        cli_replay_result r;
        fake_setup(2);
        assert_tide_ok(tide_allocator_create_on(fake_at(1), names[i], &a, &err), &err);
        assert_tide_ok(replay(fake_at(1), a, false, &r, &err), &err);
        assert_int_equal(r.n_streams, 2);
        assert_int_equal(r.n_allocs, N_BLOCKS);
        assert_int_equal(r.n_frees, N_BLOCKS - 1);
        assert_int_equal(r.peak.requested_bytes, N_BLOCKS * BLOCK_BYTES);
        assert_int_equal(r.n_failed, 0);
        fake_teardown(); // no memory, no stream and no event is left
    }
}

/// Room for three blocks: the fourth request and all after it fail, and say so.
static void test_on_a_device_that_is_full(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    cli_replay_result r;
    fake_setup(1);
    fake.limit_bytes = 3 * 1024 + 512;
    assert_tide_ok(tide_allocator_create_on(fake_at(0), "cuda", &a, &err), &err);
    assert_tide_ok(replay(fake_at(0), a, false, &r, &err), &err);
    assert_int_equal(r.n_allocs, 3);
    assert_int_equal(r.n_failed, N_BLOCKS - 3);
    assert_int_equal(r.failure.event, 4);
    assert_int_equal(r.failure.requested_bytes, 3 * BLOCK_BYTES);
    assert_true(r.failure.why[0] != '\0');
    assert_int_equal(r.n_frees, 3);
    assert_int_equal(r.n_leaked, 0);
    fake_teardown();
}

static void test_contents_are_not_checked_where_a_device_cannot(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    cli_replay_result r;
    fake_setup(1);
    assert_tide_ok(tide_allocator_create_on(fake_at(0), "cuda", &a, &err), &err);
    assert_tide_status(replay(fake_at(0), a, true, &r, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.msg, "contents cannot be checked on fake:0");
    fake_teardown();
}

// ---- times ----

static void test_times(void **state) {
    (void)state;
    cli_replay_times *t = calloc(1, sizeof *t);
    assert_non_null(t);
    assert_true(cli_replay_times_at(t, 0.5) == UINT64_MAX);
    for (uint64_t ns = 1; ns <= 100; ns++) cli_replay_times_add(t, ns);
    assert_int_equal(cli_replay_times_at(t, 0.5), 50);
    assert_int_equal(cli_replay_times_at(t, 0.99), 99);
    for (unsigned bit = 6; bit < 64; bit++) { // one value of each size: never above the true one, 1/64 below at most
        *t = (cli_replay_times){0};
        const uint64_t value = (UINT64_C(1) << bit) + (UINT64_C(1) << bit) / 3;
        cli_replay_times_add(t, value);
        const uint64_t told = cli_replay_times_at(t, 0.99);
        assert_true(told <= value && value - told <= value / 64);
    }
    cli_replay_times_add(t, UINT64_MAX);
    cli_replay_times_add(t, 0);
    assert_int_equal(cli_replay_times_at(t, 0.1), 0);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_that_is_given_twice_is_found),
        cmocka_unit_test(test_an_allocator_that_breaks_ends_it),
        cmocka_unit_test(test_on_a_device_with_streams),
        cmocka_unit_test(test_on_a_device_that_is_full),
        cmocka_unit_test(test_contents_are_not_checked_where_a_device_cannot),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, make_trace, remove_trace);
}
