// SPDX-License-Identifier: MIT
//
// Snapshots of live blocks: decoding returns the encoded blocks in order of their numbers; invalid bytes are refused.
#include "profiler/store/snapshot.h"

#include "profiler/store/chunk.h"
#include "tests/profiler/event_fixture.h"

static tide__replay r, back;

static void replay_program(program *p, int n) {
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    for (int i = 0; i < n; i++) {
        const tide__event e = program_next(p);
        tide__problem problem;
        size_t series;
        assert_tide_status(tide__replay_apply(&r, &e, &problem, &series), TIDE_OK);
    }
}

static void assert_same_live(const tide__replay *got, const tide__replay *want) {
    assert_int_equal(tide__replay_n_live(got), tide__replay_n_live(want));
    const tide__live_block *b;
    for (size_t i = 0; (b = tide__replay_next(want, &i)) != NULL;) {
        const tide__live_block *other = tide__replay_find(got, b->block_id);
        assert_non_null(other);
        assert_memory_equal(other, b, sizeof *b);
    }
    assert_int_equal(got->series[0].live_bytes, want->series[0].live_bytes);
    assert_int_equal(got->series[0].live_reserved_bytes, want->series[0].live_reserved_bytes);
}

/// A decode of a piece of memory that ends with the snapshot.
static tide_status decode_tight(const char *bytes, size_t n, tide__replay *out) {
    char *tight = tide_host_alloc(n);
    assert_non_null(tight);
    if (n > 0) memcpy(tight, bytes, n);
    assert_tide_status(tide__replay_init(out), TIDE_OK);
    const tide_status st = tide__snapshot_decode(tight, n, out);
    tide_host_free(tight);
    return st;
}

/// `r` to bytes and back, and to bytes again.
static void check_round_trip(void) {
    tide_text bytes = {0}, again = {0};
    tide_text_add(&bytes, "before"); // it appends
    assert_tide_status(tide__snapshot_encode(&r, &bytes), TIDE_OK);
    assert_memory_equal(bytes.data, "before", 6);
    assert_tide_status(decode_tight(bytes.data + 6, bytes.len - 6, &back), TIDE_OK);
    assert_same_live(&back, &r);
    assert_tide_status(tide__snapshot_encode(&back, &again), TIDE_OK);
    assert_int_equal(again.len, bytes.len - 6);
    assert_memory_equal(again.data, bytes.data + 6, again.len);
    tide__replay_deinit(&back);
    tide_text_deinit(&bytes);
    tide_text_deinit(&again);
}

static void test_live_blocks_come_back(void **state) {
    (void)state;
    static program p;
    const program all[] = {
        {.want_live = 1},
        {.want_live = 20, .requests = true, .n_threads = 4},
        {.want_live = 3000, .n_kinds = 6, .n_devices = 900, .n_runs = 1, .requests = true},
    };
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        p = all[k];
        for (int n = 0; n < 20000; n = 5 * n + 1) {
            p.rng.state = 100 + k;
            p.id = p.t_ns = p.n_blocks = 0;
            p.n_live = 0;
            replay_program(&p, n);
            check_round_trip();
            tide__replay_deinit(&r);
        }
    }
}

static void test_every_extreme_comes_back(void **state) {
    (void)state;
    tide_rng rng = {.state = 3};
    for (int turn = 0; turn < 300; turn++) {
        assert_tide_status(tide__replay_init(&r), TIDE_OK);
        for (int i = 0; i < 30; i++) {
            const tide__event e = extreme_event(&rng);
            const tide__live_block b = {.block_id = 1 + extreme(&rng, 62),
                                        .alloc_event = 1 + extreme(&rng, 62),
                                        .alloc_ns = extreme(&rng, 63),
                                        .free_requested_ns = extreme(&rng, 63),
                                        .requested_bytes = e.requested_bytes,
                                        .reserved_bytes = e.reserved_bytes,
                                        .address = e.address,
                                        .stream = e.stream,
                                        .run_id = e.run_id,
                                        .thread = e.thread,
                                        .scope_id = e.scope_id,
                                        .tag_id = e.tag_id,
                                        .allocator_id = e.allocator_id,
                                        .device = (int16_t)(e.device > 0 ? e.device : 1),
                                        .kind = (uint8_t)(e.kind % TIDE_N_KINDS)};
            const tide_status st = tide__replay_put(&r, &b);
            assert_true(st == TIDE_OK || st == TIDE_ERR_BAD_INPUT); // there already, or too large together
        }
        check_round_trip();
        tide__replay_deinit(&r);
    }
}

/// The layout of snapshot.h, byte by byte.
static void test_the_bytes_are_those_of_the_description(void **state) {
    (void)state;
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    tide__live_block b = {.block_id = 300,
                          .alloc_event = 5,
                          .alloc_ns = 64,
                          .free_requested_ns = 65,
                          .requested_bytes = 1000,
                          .reserved_bytes = 1024,
                          .address = 0x3000,
                          .thread = 1,
                          .device = 1};
    assert_tide_status(tide__replay_put(&r, &b), TIDE_OK);
    b.block_id = 7;
    b.alloc_event = 6;
    b.free_requested_ns = 0;
    b.reserved_bytes = 1000;
    b.kind = 2;
    assert_tide_status(tide__replay_put(&r, &b), TIDE_OK);
    const uint8_t want[] = {1, 12, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                            0, // head; the checksum is looked at apart
                            // block 7: requested, address, thread, device, kind
                            0x4a, 0x0c, 7, 12, 0x80, 0x01, 0xe8, 0x07, 6, 2, 2, 4,
                            // block 300: free requested, reserved, kind
                            0x05, 0x08, 0xa5, 0x02, 1, 0, 2, 48, 3};
    tide_text t = {0};
    assert_tide_status(tide__snapshot_encode(&r, &t), TIDE_OK);
    assert_int_equal(t.len, sizeof want);
    memset(t.data + 16, 0, 4);
    assert_memory_equal(t.data, want, sizeof want);
    tide_text_deinit(&t);
    tide__replay_deinit(&r);
}

// ---- invalid bytes ----

static void put_checksum(char *bytes, size_t n) {
    const uint32_t sum = tide__chunk_checksum((uint8_t *)bytes, n);
    for (int i = 0; i < 4; i++) bytes[16 + i] = (char)(uint8_t)(sum >> (8 * i));
}

static void small_snapshot(tide_text *t) {
    static program p;
    p = (program){.want_live = 12, .n_kinds = 3, .requests = true};
    replay_program(&p, 200);
    assert_tide_status(tide__snapshot_encode(&r, t), TIDE_OK);
    tide__replay_deinit(&r);
}

static void test_every_flipped_bit_is_found(void **state) {
    (void)state;
    tide_text t = {0};
    small_snapshot(&t);
    for (size_t bit = 0; bit < 8 * t.len; bit++) {
        t.data[bit / 8] = (char)(t.data[bit / 8] ^ 1 << bit % 8);
        assert_tide_status(decode_tight(t.data, t.len, &back), TIDE_ERR_BAD_INPUT);
        tide__replay_deinit(&back);
        t.data[bit / 8] = (char)(t.data[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t n = 0; n < t.len; n++) {
        assert_tide_status(decode_tight(t.data, n, &back), TIDE_ERR_BAD_INPUT);
        tide__replay_deinit(&back);
    }
    tide_text_deinit(&t);
}

/// With a checksum that fits. TIDE_FUZZ_ROUNDS in the environment asks longer.
static void test_forged_bytes_do_no_harm(void **state) {
    (void)state;
    const char *more = getenv("TIDE_FUZZ_ROUNDS");
    const size_t rounds = more != NULL ? strtoull(more, NULL, 10) : 20000;
    tide_text t = {0};
    small_snapshot(&t);
    char *forged = tide_host_alloc(t.len);
    assert_non_null(forged);
    tide_rng rng = {.state = 8};
    size_t n_taken = 0;
    for (size_t round = 0; round < rounds; round++) {
        size_t len = t.len;
        memcpy(forged, t.data, len);
        for (uint64_t k = tide_rng_below(&rng, 3); k + 1 > 0; k--) {
            forged[tide_rng_below(&rng, len)] = (char)(uint8_t)tide_rng_u64(&rng);
            if (len > 21) len -= (size_t)tide_rng_below(&rng, 2);
        }
        put_checksum(forged, len);
        const tide_status st = decode_tight(forged, len, &back);
        assert_true(st == TIDE_OK || st == TIDE_ERR_BAD_INPUT);
        n_taken += st == TIDE_OK;
        const tide__live_block *b;
        for (size_t i = 0; (b = tide__replay_next(&back, &i)) != NULL;)
            assert_true(b->block_id > 0 && b->alloc_event > 0 && b->alloc_ns >= 0 && b->requested_bytes >= 0 &&
                        b->reserved_bytes >= 0 && b->thread >= 0 && b->kind < TIDE_N_KINDS && b->device > 0);
        tide__replay_deinit(&back);
    }
    assert_true(n_taken < rounds);
    // A byte too many.
    tide_text_add_n(&t, "", 1);
    put_checksum(t.data, t.len);
    assert_tide_status(decode_tight(t.data, t.len, &back), TIDE_ERR_BAD_INPUT);
    tide__replay_deinit(&back);
    // A block that was allocated by no event.
    assert_tide_status(tide__replay_init(&r), TIDE_OK);
    assert_tide_status(tide__replay_put(&r, &(tide__live_block){.block_id = 1, .alloc_event = 1, .device = 1}),
                       TIDE_OK);
    t.len = 0;
    assert_tide_status(tide__snapshot_encode(&r, &t), TIDE_OK);
    tide__replay_deinit(&r);
    assert_int_equal(t.data[23], 2);
    t.data[23] = 0;
    put_checksum(t.data, t.len);
    assert_tide_status(decode_tight(t.data, t.len, &back), TIDE_ERR_BAD_INPUT);
    tide__replay_deinit(&back);
    tide_host_free(forged);
    tide_text_deinit(&t);
}

static void test_without_memory_it_says_so(void **state) {
    (void)state;
    static program p;
    p = (program){.want_live = 100};
    replay_program(&p, 1000);
    tide_text t = {0};
    int fail = 0;
    for (;; fail++) {
        tide_host_fail_after(fail);
        const tide_status st = tide__snapshot_encode(&r, &t);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        tide_text_deinit(&t);
        t = (tide_text){0};
    }
    assert_true(fail >= 2);
    for (fail = 0;; fail++) {
        assert_tide_status(tide__replay_init(&back), TIDE_OK);
        tide_host_fail_after(fail);
        const tide_status st = tide__snapshot_decode(t.data, t.len, &back);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_int_equal(st, TIDE_ERR_NOMEM);
        tide__replay_deinit(&back);
    }
    assert_true(fail >= 2);
    assert_same_live(&back, &r);
    tide__replay_deinit(&back);
    tide__replay_deinit(&r);
    tide_text_deinit(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(test_live_blocks_come_back),
        tide_unit_test(test_every_extreme_comes_back),
        tide_unit_test(test_the_bytes_are_those_of_the_description),
        tide_unit_test(test_every_flipped_bit_is_found),
        tide_unit_test(test_forged_bytes_do_no_harm),
        tide_unit_test(test_without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
