// SPDX-License-Identifier: MIT
//
// The registry: priorities, replacement, the registry of the process.
#include "core/memory/registry.h"

#include "memory_test.h"

static tide_allocator *make_cpu(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    return a;
}

static tide_registry *make(void) {
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = NULL;
    assert_tide_ok(tide_registry_create(&r, &err), &err);
    return r;
}

/// An allocator that only has a device.
static tide_status no_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    (void)self;
    (void)req;
    (void)out;
    return TIDE_FAIL(err, TIDE_ERR_NOMEM, "has nothing");
}
static void no_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)self;
    (void)mem;
    (void)last_stream;
}
static void no_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    *out = (tide_allocator_stats){0};
}
static void count_destroy(void *self) { ++*(int *)self; }

static const tide_allocator_ops named_only = {.abi = TIDE_ALLOCATOR_ABI,
                                              .name = "named_only",
                                              .alloc = no_alloc,
                                              .release = no_release,
                                              .stats = no_stats,
                                              .destroy = count_destroy};

// PT-14: priorities 0, 1, 1, 2 in every order: the one with 2 serves.
static void highest_priority_wins_in_any_order(void **state) {
    (void)state;
    static const int priorities[4] = {0, 1, 1, 2};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *all[4];
    for (int i = 0; i < 4; i++) all[i] = make_cpu();
    int n_orders = 0;
    for (int code = 0; code < 256; code++) {
        const int order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 & 3};
        if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15) continue;
        n_orders++;
        tide_registry *r = make();
        int last_of_1 = -1;
        for (int i = 0; i < 4; i++) {
            const int a = order[i];
            if (priorities[a] == 2) break;
            if (priorities[a] == 1) last_of_1 = a;
            assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, all[a], priorities[a], &err), &err);
            tide_allocator *got = NULL;
            assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_DEFAULT, &got, &err), &err);
            assert_ptr_equal(got, all[last_of_1 >= 0 ? last_of_1 : a]); // the later one among equals
        }
        for (int i = 0; i < 4; i++)
            assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, all[order[i]], priorities[order[i]], &err), &err);
        tide_registry_row row;
        assert_int_equal(tide_registry_rows(r, &row, 1), 1);
        assert_ptr_equal(row.allocator, all[3]);
        assert_int_equal(row.priority, 2);
        tide_registry_destroy(r);
    }
    assert_int_equal(n_orders, 24);
    for (int i = 0; i < 4; i++) tide_allocator_unref(all[i]);
}

static void what_is_not_there_is_said(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *a = make_cpu(), *got = NULL;
    assert_tide_status(tide_registry_get(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "KVCache");
    assert_text_has(err.msg, "cpu");
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, a, 0, &err), &err);
    const tide_device cuda0 = {TIDE_DEVICE_CUDA, 0};
    assert_tide_status(tide_registry_get(r, cuda0, TIDE_KIND_DEFAULT, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_null(got);
    assert_tide_status(tide_registry_add(r, (tide_memory_kind)99, a, 0, &err), TIDE_ERR_INVALID);
    tide_registry_destroy(r);
    tide_registry_destroy(NULL);
    tide_allocator_unref(a);
}

// LT-17, LT-18: the key is (device, kind); rows come in order; more rows than fit into the object itself.
static void rows_are_ordered_by_device_and_kind(void **state) {
    (void)state;
    enum { N_DEVICES = 12 };
    static const int order[N_DEVICES] = {5, 0, 11, 3, 8, 1, 9, 2, 10, 4, 7, 6};
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    int n_destroyed = 0;
    for (int i = 0; i < N_DEVICES; i++) {
        tide_allocator *a = NULL;
        const tide_device device = {TIDE_DEVICE_CUDA, order[i]};
        assert_tide_ok(tide_allocator_create(&named_only, &n_destroyed, device, &a, &err), &err);
        for (int kind = 3; kind >= 0; kind--)
            assert_tide_ok(tide_registry_add(r, (tide_memory_kind)kind, a, i, &err), &err);
        assert_tide_status(tide_registry_add(r, TIDE_KIND_HOST_PINNED, a, 0, &err), TIDE_ERR_INVALID);
        tide_allocator_unref(a);
    }
    tide_allocator *cpu = make_cpu();
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_HOST_PINNED, cpu, 0, &err), &err);
    tide_allocator_unref(cpu);
    tide_registry_row rows[64];
    assert_int_equal(tide_registry_rows(r, rows, 64), 4 * N_DEVICES + 1);
    assert_int_equal(tide_registry_rows(r, NULL, 0), 4 * N_DEVICES + 1);
    assert_int_equal(rows[0].device.type, TIDE_DEVICE_CPU);
    for (int i = 0; i < 4 * N_DEVICES; i++) {
        assert_int_equal(rows[i + 1].device.index, i / 4);
        assert_int_equal(rows[i + 1].kind, i % 4);
        assert_int_equal(tide_allocator_device(rows[i + 1].allocator).index, i / 4);
        assert_int_equal(order[rows[i + 1].priority], i / 4);
    }
    assert_int_equal(n_destroyed, 0);
    tide_registry_destroy(r);
    assert_int_equal(n_destroyed, N_DEVICES);
}

// LT-20, LT-34: another allocator for the KV cache, the same program; blocks of the old one stay whole.
static void swapping_needs_no_other_change(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *old = make_cpu(), *fresh = NULL, *got = NULL;
    assert_tide_ok(tide_cpu_caching_allocator_create(&fresh, &err), &err);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, old, 0, &err), &err);
    tide_allocator_unref(old); // the registry's now
    assert_tide_ok(tide_registry_acquire(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &got, &err), &err);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(got, 1000, 0, TIDE_KIND_KV_CACHE, 0, "kv", &b, &err), &err);
    tide_allocator_unref(got);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, fresh, 0, &err), &err);
    assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &got, &err), &err);
    assert_ptr_equal(got, fresh);
    memset(b->mem.data, 1, 1000);
    assert_true(stats_of(b->owner).requested_bytes == 1000);
    tide_registry_destroy(r);
    tide_block_unref(b);
    tide_allocator_unref(fresh);
}

static void host_memory_ends_while_adding(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = NULL;
    tide_host_fail_after(0);
    assert_tide_status(tide_registry_create(&r, &err), TIDE_ERR_NOMEM);
    r = make();
    int n_destroyed = 0;
    tide_status st = TIDE_OK;
    size_t n_added = 0;
    while (st == TIDE_OK) {
        tide_allocator *a = NULL;
        const tide_device device = {TIDE_DEVICE_CUDA, (int32_t)n_added};
        assert_tide_ok(tide_allocator_create(&named_only, &n_destroyed, device, &a, &err), &err);
        tide_host_fail_after(0);
        st = tide_registry_add(r, TIDE_KIND_DEFAULT, a, 0, &err);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) n_added++;
        tide_allocator_unref(a);
    }
    assert_tide_status(st, TIDE_ERR_NOMEM);
    assert_int_equal(n_destroyed, 1); // the one that found no room
    assert_int_equal(tide_registry_rows(r, NULL, 0), n_added);
    tide_registry_destroy(r);
    assert_int_equal(n_destroyed, n_added + 1);
}

static void the_registry_of_the_process(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = tide_registry_default();
    assert_non_null(r);
    assert_ptr_equal(tide_registry_default(), r);
    for (int kind = 0; kind < TIDE_N_KINDS; kind++) {
        tide_allocator *a = NULL;
        assert_tide_ok(tide_registry_get(r, TIDE_CPU, (tide_memory_kind)kind, &a, &err), &err);
        assert_string_equal(tide_allocator_name(a), "cpu");
    }
}

static void *swap_for_ever(void *registry) {
    for (int i = 0; i < 500; i++) {
        tide_allocator *a = NULL;
        if (tide_cpu_allocator_create(&a, NULL) != TIDE_OK) return NULL;
        (void)!tide_registry_add(registry, TIDE_KIND_DEFAULT, a, 0, NULL);
        tide_allocator_unref(a);
    }
    return NULL;
}

static void *use_for_ever(void *registry) {
    for (int i = 0; i < 500; i++) {
        tide_allocator *a = NULL;
        tide_block *b = NULL;
        if (tide_registry_acquire(registry, TIDE_CPU, TIDE_KIND_DEFAULT, &a, NULL) != TIDE_OK) return registry;
        if (tide_block_create(a, 64, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, NULL) != TIDE_OK) return registry;
        tide_allocator_unref(a);
        tide_block_unref(b);
    }
    return NULL;
}

// LT-19: set and read from several threads.
static void swapped_while_in_use(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *a = make_cpu();
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, a, 0, &err), &err);
    tide_allocator_unref(a);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? swap_for_ever : use_for_ever, r), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    tide_registry_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(highest_priority_wins_in_any_order),
        tide_unit_test(what_is_not_there_is_said),
        tide_unit_test(rows_are_ordered_by_device_and_kind),
        tide_unit_test(swapping_needs_no_other_change),
        tide_unit_test(host_memory_ends_while_adding),
        tide_unit_test(the_registry_of_the_process),
        tide_unit_test(swapped_while_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
