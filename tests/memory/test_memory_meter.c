// SPDX-License-Identifier: MIT
//
// The meter: its arithmetic by hand and against a plain sum, and under threads.
#include "core/memory/meter.h"

#include <stdatomic.h>

#include "memory_test.h"

static tide_meter *make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_meter *m = NULL;
    assert_tide_ok(tide_meter_create(&m, &err), &err);
    return m;
}

static void send_event(const tide_observer *obs, tide_memory_op op, tide_memory_kind kind, uint64_t requested,
                       uint64_t reserved) {
    const tide_memory_event event = {.op = op, .kind = kind, .requested_bytes = requested, .reserved_bytes = reserved};
    obs->on_memory(obs->self, &event);
}

static void give_back(const tide_observer *obs, tide_memory_kind kind, uint64_t requested, uint64_t reserved) {
    send_event(obs, TIDE_MEM_FREE_REQUESTED, kind, requested, reserved);
    send_event(obs, TIDE_MEM_FREE_COMPLETED, kind, requested, reserved);
}

//  Default    |--100--|               peak 100
//  Workspace          |--150--|       peak 150
//  all        |--100--|--150--|       peak 150: of the sum, not 250
static void peak_of_the_sum_is_not_the_sum_of_peaks(void **state) {
    (void)state;
    tide_meter *m = make();
    const tide_observer obs = tide_meter_observer(m);
    send_event(&obs, TIDE_MEM_ALLOC, TIDE_KIND_DEFAULT, 100, 128);
    give_back(&obs, TIDE_KIND_DEFAULT, 100, 128);
    send_event(&obs, TIDE_MEM_ALLOC, TIDE_KIND_WORKSPACE, 150, 192);
    tide_meter_kind k;
    tide_meter_get(m, TIDE_KIND_DEFAULT, &k);
    assert_true(k.live_bytes == 0 && k.peak_bytes == 100 && k.requested_bytes == 100);
    assert_true(k.reserved_bytes == 0 && k.reserved_peak_bytes == 128 && k.n_allocs == 1 && k.n_frees == 1);
    tide_meter_get(m, TIDE_KIND_WORKSPACE, &k);
    assert_true(k.live_bytes == 150 && k.peak_bytes == 150 && k.n_frees == 0);
    tide_meter_total(m, &k);
    assert_true(k.live_bytes == 150 && k.peak_bytes == 150 && k.requested_bytes == 250);
    assert_true(k.reserved_bytes == 192 && k.reserved_peak_bytes == 192 && k.n_allocs == 2 && k.n_frees == 1);
    tide_meter_get(m, TIDE_KIND_KV_CACHE, &k);
    assert_true(k.peak_bytes == 0 && k.n_allocs == 0);
    tide_meter_destroy(m);
    tide_meter_destroy(NULL);
}

/// Bytes whose free is only asked for are not free yet; failures and segments do not count.
static void only_completed_frees_count(void **state) {
    (void)state;
    tide_meter *m = make();
    const tide_observer obs = tide_meter_observer(m);
    tide_meter_kind k;
    send_event(&obs, TIDE_MEM_ALLOC, TIDE_KIND_DEFAULT, 100, 100);
    send_event(&obs, TIDE_MEM_FREE_REQUESTED, TIDE_KIND_DEFAULT, 100, 100);
    send_event(&obs, TIDE_MEM_OOM, TIDE_KIND_DEFAULT, 5000, 0);
    send_event(&obs, TIDE_MEM_SEGMENT_ALLOC, TIDE_KIND_DEFAULT, 7000, 7000);
    tide_meter_get(m, TIDE_KIND_DEFAULT, &k);
    assert_true(k.live_bytes == 100 && k.peak_bytes == 100 && k.n_frees == 0 && k.requested_bytes == 100);
    send_event(&obs, TIDE_MEM_FREE_COMPLETED, TIDE_KIND_DEFAULT, 100, 100);
    tide_meter_get(m, TIDE_KIND_DEFAULT, &k);
    assert_true(k.live_bytes == 0 && k.n_frees == 1);
    // A kind from another build has no cell and spoils none.
    send_event(&obs, TIDE_MEM_ALLOC, (tide_memory_kind)99, 1, 1);
    tide_meter_get(m, (tide_memory_kind)99, &k);
    assert_true(k.n_allocs == 0);
    tide_meter_destroy(m);
}

/// No bytes need no room, but a thread's first event needs a shard that is read.
static void an_allocation_of_nothing_counts(void **state) {
    (void)state;
    tide_meter *m = make();
    const tide_observer obs = tide_meter_observer(m);
    tide_meter_kind k;
    send_event(&obs, TIDE_MEM_ALLOC, TIDE_KIND_DEFAULT, 0, 0);
    tide_meter_get(m, TIDE_KIND_DEFAULT, &k);
    assert_int_equal(k.n_allocs, 1);
    assert_int_equal(k.n_live, 1);
    give_back(&obs, TIDE_KIND_DEFAULT, 0, 0);
    tide_meter_total(m, &k);
    assert_true(k.n_allocs == 1 && k.n_frees == 1 && k.n_live == 0 && k.peak_bytes == 0);
    tide_meter_destroy(m);
}

static void reset_keeps_what_is_alive(void **state) {
    (void)state;
    tide_meter *m = make();
    const tide_observer obs = tide_meter_observer(m);
    tide_meter_kind k;
    send_event(&obs, TIDE_MEM_ALLOC, TIDE_KIND_PERSISTENT, 1000, 1024);
    send_event(&obs, TIDE_MEM_ALLOC, TIDE_KIND_PERSISTENT, 500, 512);
    give_back(&obs, TIDE_KIND_PERSISTENT, 500, 512);
    tide_meter_reset_peaks(m);
    tide_meter_get(m, TIDE_KIND_PERSISTENT, &k);
    assert_true(k.live_bytes == 1000 && k.peak_bytes == 1000 && k.reserved_peak_bytes == 1024);
    assert_true(k.requested_bytes == 0 && k.n_allocs == 0 && k.n_frees == 0);
    tide_meter_total(m, &k);
    assert_true(k.live_bytes == 1000 && k.peak_bytes == 1000);
    give_back(&obs, TIDE_KIND_PERSISTENT, 1000, 1024);
    tide_meter_total(m, &k);
    assert_true(k.live_bytes == 0 && k.peak_bytes == 1000 && k.n_frees == 1);
    tide_meter_destroy(m);
}

/// Through a real allocator: the meter, the allocator's own numbers and a plain sum agree after every step.
static void agrees_with_the_allocator(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_meter *m = make();
    const tide_observer obs = tide_meter_observer(m);
    tide_allocator *cpu = NULL, *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&cpu, &err), &err);
    assert_tide_ok(tide_instrumented_create(cpu, &obs, &a, &err), &err);
    tide_rng rng = {3};
    tide_block *blocks[30] = {0};
    uint64_t live[TIDE_N_KINDS] = {0}, peak[TIDE_N_KINDS] = {0};
    for (int step = 0; step < 2000; step++) {
        tide_block **slot = &blocks[tide_rng_below(&rng, 30)];
        if (*slot != NULL) {
            live[(*slot)->kind] -= (*slot)->mem.requested_bytes;
            tide_block_unref(*slot);
            *slot = NULL;
        } else {
            const tide_memory_kind kind = (tide_memory_kind)tide_rng_below(&rng, TIDE_N_KINDS);
            const size_t size = 1 + (size_t)tide_rng_below(&rng, 10000);
            assert_tide_ok(tide_block_create(a, size, 0, kind, 0, NULL, slot, &err), &err);
            live[kind] += size;
            if (live[kind] > peak[kind]) peak[kind] = live[kind];
        }
        tide_meter_kind k;
        for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
            tide_meter_get(m, (tide_memory_kind)kind, &k);
            assert_true(k.live_bytes == live[kind] && k.peak_bytes == peak[kind]);
        }
        tide_meter_total(m, &k);
        const tide_allocator_stats s = stats_of(cpu);
        assert_true(k.live_bytes == s.requested_bytes && k.peak_bytes == s.peak_requested_bytes);
        assert_true(k.reserved_bytes == s.active_bytes && k.reserved_peak_bytes == s.peak_active_bytes);
        assert_true(k.n_allocs == s.n_allocs && k.n_frees == s.n_frees);
    }
    for (int i = 0; i < 30; i++) tide_block_unref(blocks[i]);
    tide_allocator_unref(a);
    tide_allocator_unref(cpu);
    tide_meter_destroy(m);
}

/// The meter needs no time stamps, so no clock is read for it.
static void wants_no_time(void **state) {
    (void)state;
    tide_meter *m = make();
    const tide_observer obs = tide_meter_observer(m);
    assert_true(obs.no_time && obs.on_scope == NULL);
    tide_meter_destroy(m);
}

static void *send_without_end(void *obs) {
    for (int i = 0; i < 5000; i++) {
        send_event(obs, TIDE_MEM_ALLOC, TIDE_KIND_WORKSPACE, 10, 16);
        give_back(obs, TIDE_KIND_WORKSPACE, 10, 16);
    }
    return NULL;
}

static void adds_up_under_threads(void **state) {
    (void)state;
    tide_meter *m = make();
    tide_observer obs = tide_meter_observer(m);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, send_without_end, &obs), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    tide_meter_kind k;
    tide_meter_total(m, &k);
    assert_true(k.live_bytes == 0 && k.reserved_bytes == 0);
    assert_true(k.n_allocs == 40000 && k.n_frees == 40000 && k.requested_bytes == 400000);
    assert_true(k.peak_bytes >= 10 && k.peak_bytes <= 80);
    tide_meter_destroy(m);
}

// ---- blocks that wander: threads one after the other, so that a plain count is the truth ----

typedef struct wander {
    tide_observer obs;
    tide_meter *m;
    tide_rng rng;
    uint64_t sizes[64];
    tide_memory_kind kinds[64];
    uint64_t live[TIDE_N_KINDS + 1], peak[TIDE_N_KINDS + 1];
    int n_wrong;
} wander;

static void *walk(void *arg) {
    wander *w = arg;
    for (int step = 0; step < 400; step++) {
        const size_t i = (size_t)tide_rng_below(&w->rng, 64);
        if (w->sizes[i] != 0) {
            give_back(&w->obs, w->kinds[i], w->sizes[i], w->sizes[i] + 64);
            w->live[w->kinds[i]] -= w->sizes[i];
            w->live[TIDE_N_KINDS] -= w->sizes[i];
            w->sizes[i] = 0;
            continue;
        }
        w->sizes[i] = 1 + tide_rng_below(&w->rng, 5000);
        w->kinds[i] = (tide_memory_kind)tide_rng_below(&w->rng, TIDE_N_KINDS);
        send_event(&w->obs, TIDE_MEM_ALLOC, w->kinds[i], w->sizes[i], w->sizes[i] + 64);
        const int both[2] = {(int)w->kinds[i], TIDE_N_KINDS};
        for (int k = 0; k < 2; k++) {
            w->live[both[k]] += w->sizes[i];
            if (w->live[both[k]] > w->peak[both[k]]) w->peak[both[k]] = w->live[both[k]];
        }
    }
    for (int k = 0; k <= TIDE_N_KINDS; k++) {
        tide_meter_kind got;
        if (k < TIDE_N_KINDS) {
            tide_meter_get(w->m, (tide_memory_kind)k, &got);
        } else {
            tide_meter_total(w->m, &got);
        }
        if (got.live_bytes != w->live[k] || got.peak_bytes != w->peak[k]) w->n_wrong++;
    }
    return NULL;
}

static void peaks_are_exact_over_threads(void **state) {
    (void)state;
    wander w = {.m = make(), .rng = {11}};
    w.obs = tide_meter_observer(w.m);
    for (int t = 0; t < 40; t++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, walk, &w), 0);
        pthread_join(thread, NULL);
        assert_int_equal(w.n_wrong, 0);
        if (t != 20) continue;
        tide_meter_reset_peaks(w.m);
        memcpy(w.peak, w.live, sizeof w.peak);
    }
    tide_meter_destroy(w.m);
}

typedef struct stand {
    tide_observer obs;
    pthread_barrier_t barrier;
    _Atomic int n;
} stand;

static void *stand_still(void *arg) {
    stand *s = arg;
    const tide_memory_kind kind = (tide_memory_kind)(atomic_fetch_add(&s->n, 1) % 2);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 20; i++) send_event(&s->obs, TIDE_MEM_ALLOC, kind, 100, 128);
        if (round == 50) pthread_barrier_wait(&s->barrier);
        for (int i = 0; i < 20; i++) give_back(&s->obs, kind, 100, 128);
    }
    return NULL;
}

/// Eight threads of two kinds stand still with all they ever have: peaks are known to the byte.
static void the_peak_of_all_threads_is_exact(void **state) {
    (void)state;
    tide_meter *m = make();
    stand s = {.obs = tide_meter_observer(m)};
    pthread_t threads[8];
    pthread_barrier_init(&s.barrier, NULL, 8);
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, stand_still, &s), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&s.barrier);
    tide_meter_kind k;
    for (int kind = 0; kind < 2; kind++) {
        tide_meter_get(m, (tide_memory_kind)kind, &k);
        assert_true(k.peak_bytes == 4 * 20 * 100 && k.reserved_peak_bytes == 4 * 20 * 128 && k.n_live == 0);
    }
    tide_meter_total(m, &k);
    assert_true(k.peak_bytes == 8 * 20 * 100 && k.reserved_peak_bytes == 8 * 20 * 128 && k.live_bytes == 0);
    tide_meter_destroy(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(peak_of_the_sum_is_not_the_sum_of_peaks),
        tide_unit_test(only_completed_frees_count),
        tide_unit_test(an_allocation_of_nothing_counts),
        tide_unit_test(reset_keeps_what_is_alive),
        tide_unit_test(agrees_with_the_allocator),
        tide_unit_test(wants_no_time),
        tide_unit_test(adds_up_under_threads),
        tide_unit_test(the_peak_of_all_threads_is_exact),
        tide_unit_test(peaks_are_exact_over_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
