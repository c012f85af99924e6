// SPDX-License-Identifier: MIT
//
// The part of the suite in conformance.h in which memory ends. Included by it only.
#ifndef TIDE_TESTS_CONFORMANCE_FAILURES_H
#define TIDE_TESTS_CONFORMANCE_FAILURES_H

/// Fail the 1st, 2nd, 3rd … piece of host memory until the allocator can be made.
static void host_memory_ends_while_making(void **state) {
    const conf_maker *m = *state;
    tide_status st = TIDE_ERR_NOMEM;
    int n_failures = 0;
    while (st == TIDE_ERR_NOMEM) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        tide_host_fail_after(n_failures);
        st = m->create(&a, &err);
        tide_host_fail_after(-1);
        if (st != TIDE_OK) {
            assert_null(a);
            assert_true(strlen(err.msg) > 0);
            n_failures++;
        }
        tide_allocator_unref(a);
    }
    assert_tide_status(st, TIDE_OK);
    assert_true(n_failures >= 2); // state and object at the least
}

/// The same while it allocates: each failure leaves everything as it was. Giving back needs no host memory.
static void host_memory_ends_while_allocating(void **state) {
    tide_allocator *a = conf_make(*state);
    const size_t size = size_within(a, 900);
    const tide_memory held = take(a, size, 0);
    tide_status st = TIDE_ERR_NOMEM;
    for (int n = 0; st == TIDE_ERR_NOMEM; n++) {
        const tide_allocator_stats before = stats_of(a);
        const tide_alloc_request req = {.size_bytes = size, .tag = "unlucky"};
        tide_error err = TIDE_ERROR_INIT;
        tide_memory mem = {0};
        tide_host_fail_after(n);
        st = tide_allocator_alloc(a, &req, &mem, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) {
            tide_host_fail_after(0);
            give(a, &mem);
            tide_host_fail_after(-1);
            break;
        }
        assert_true(strlen(err.msg) > 0 && mem.data == NULL);
        const tide_allocator_stats after = stats_of(a);
        assert_same_numbers(&after, &before);
        assert_sound(a);
    }
    assert_tide_status(st, TIDE_OK);
    assert_true(stats_of(a).requested_bytes == size);
    assert_sound(a);
    give(a, &held);
    assert_empties(a);
    tide_allocator_unref(a);
}

/// The allocator behind a budget, until it is used up: the refusal changes nothing, and what is freed serves again.
static void memory_ends(void **state) {
    enum { ROOM = 5 };
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *inner = conf_make(*state), *a = NULL;
    const size_t size = size_within(inner, 2000);
    tide_memory mem[ROOM];
    mem[0] = take(inner, size, 0);
    const size_t takes = mem[0].reserved_bytes;
    give(inner, &mem[0]);
    assert_empties(inner);
    assert_tide_ok(tide_limit_create(inner, ROOM * (uint64_t)takes, &a, &err), &err);
    tide_allocator_unref(inner);
    assert_true(stats_of(a).headroom_bytes <= ROOM * (uint64_t)takes);
    for (int i = 0; i < ROOM; i++) {
        mem[i] = take(a, size, 0);
        conf_fill(a, mem[i].data, i, size);
    }
    assert_true(stats_of(a).headroom_bytes == 0);
    assert_refuses(a, size);
    assert_refuses(a, 1);
    for (int i = 0; i < ROOM; i++) {
        assert_true(conf_are(a, mem[i].data, i, size));
    }
    give(a, &mem[2]);
    mem[2] = take(a, size, 0);
    for (int i = 0; i < ROOM; i++) give(a, &mem[i]);
    assert_empties(a);
    tide_allocator_unref(a);
}

#endif
