// SPDX-License-Identifier: MIT
//
// The registry's state per device: the allocator of a device, current streams, the default device.
#include "registry_test.h"

// LT-19, LT-20: without a kind, an allocator becomes its device's and serves Default; with one, that kind alone.
static void without_a_kind_it_serves_default(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *a = make_cpu(), *b = make_cpu(), *got = NULL;
    assert_tide_status(tide_registry_acquire_device(r, TIDE_CPU, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "cpu");
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_KV_CACHE, b, 0, &err), &err);
    assert_tide_status(tide_registry_acquire_device(r, TIDE_CPU, &got, &err), TIDE_ERR_NOT_FOUND);
    assert_null(got);
    assert_tide_ok(tide_registry_add_device(r, a, 1, &err), &err);
    assert_tide_ok(tide_registry_acquire_device(r, TIDE_CPU, &got, &err), &err);
    assert_ptr_equal(got, a);
    tide_allocator_unref(got);
    assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_DEFAULT, &got, &err), &err);
    assert_ptr_equal(got, a);
    assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_KV_CACHE, &got, &err), &err);
    assert_ptr_equal(got, b);
    assert_tide_status(tide_registry_get(r, TIDE_CPU, TIDE_KIND_WORKSPACE, &got, &err), TIDE_ERR_NOT_FOUND);

    // Priority holds for both places, each against what is there.
    assert_tide_ok(tide_registry_add_device(r, b, 0, &err), &err);
    assert_tide_ok(tide_registry_acquire_device(r, TIDE_CPU, &got, &err), &err);
    assert_ptr_equal(got, a);
    tide_allocator_unref(got);
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_DEFAULT, b, 2, &err), &err);
    assert_tide_ok(tide_registry_add_device(r, a, 1, &err), &err);
    assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_DEFAULT, &got, &err), &err);
    assert_ptr_equal(got, b);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
    tide_allocator_unref(b);
}

// LT-19: the rest of the global state, each set and read back.
static void default_device_and_current_streams(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    assert_true(tide_device_equal(tide_registry_default_device(r), TIDE_CPU));
    const tide_device cuda3 = {TIDE_DEVICE_CUDA, 3};
    tide_registry_set_default_device(r, cuda3);
    assert_true(tide_device_equal(tide_registry_default_device(r), cuda3));
    assert_true(tide_registry_current_stream(r, cuda3) == 0);
    enum { MANY = 40 };
    for (int i = 0; i < MANY; i++) {
        const tide_device d = {TIDE_DEVICE_CUDA, i};
        assert_tide_ok(tide_registry_set_current_stream(r, d, 100 + (tide_stream_id)i, &err), &err);
    }
    assert_tide_ok(tide_registry_set_current_stream(r, cuda3, 7, &err), &err);
    for (int i = 0; i < MANY; i++) {
        const tide_device d = {TIDE_DEVICE_CUDA, i};
        assert_true(tide_registry_current_stream(r, d) == (i == 3 ? 7 : 100 + (tide_stream_id)i));
    }
    assert_true(tide_registry_current_stream(r, TIDE_CPU) == 0);
    assert_tide_status(tide_registry_set_current_stream(r, cuda3, TIDE_STREAM_CURRENT, &err), TIDE_ERR_INVALID);
    assert_true(tide_registry_current_stream(r, cuda3) == 7);
    tide_registry_destroy(r);
}

/// @param n_known  devices that have a place already, so that it is a row that finds none
static void add_devices_until_memory_ends(size_t n_known) {
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    for (size_t i = 0; i < n_known; i++) {
        const tide_device device = {TIDE_DEVICE_CUDA, (int32_t)i};
        assert_tide_ok(tide_registry_set_current_stream(r, device, 1, &err), &err);
    }
    int n_destroyed = 0;
    tide_status st = TIDE_OK;
    size_t n_added = 0;
    for (; st == TIDE_OK; n_added += st == TIDE_OK) {
        tide_allocator *a = NULL, *got = NULL;
        const tide_device device = {TIDE_DEVICE_CUDA, (int32_t)n_added};
        assert_tide_ok(tide_allocator_create(&named_only, &n_destroyed, device, &a, &err), &err);
        tide_host_fail_after(0);
        st = tide_registry_add_device(r, a, 0, &err);
        tide_host_fail_after(-1);
        // Both places or none.
        const tide_status want = st == TIDE_OK ? TIDE_OK : TIDE_ERR_NOT_FOUND;
        assert_tide_status(tide_registry_get(r, device, TIDE_KIND_DEFAULT, &got, &err), want);
        assert_tide_status(tide_registry_acquire_device(r, device, &got, &err), want);
        if (want == TIDE_OK) tide_allocator_unref(got);
        tide_allocator_unref(a);
    }
    assert_tide_status(st, TIDE_ERR_NOMEM);
    assert_int_equal(n_destroyed, 1);
    assert_true(n_added < n_known || n_known == 0);
    tide_registry_destroy(r);
    assert_int_equal(n_destroyed, n_added + 1);
}

static void host_memory_ends_while_adding_devices(void **state) {
    (void)state;
    add_devices_until_memory_ends(0);
    add_devices_until_memory_ends(1000);
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_status st = TIDE_OK;
    tide_device device = {TIDE_DEVICE_CUDA, 0};
    for (; st == TIDE_OK; device.index += st == TIDE_OK) {
        tide_host_fail_after(0);
        st = tide_registry_set_current_stream(r, device, 1, &err);
        tide_host_fail_after(-1);
    }
    assert_tide_status(st, TIDE_ERR_NOMEM);
    assert_true(device.index > 0);
    assert_true(tide_registry_current_stream(r, device) == 0);
    tide_registry_destroy(r);
}

static void *set_for_ever(void *registry) {
    for (int i = 0; i < 500; i++) {
        const tide_device d = {TIDE_DEVICE_CUDA, i % 16};
        tide_registry_set_default_device(registry, d);
        if (tide_registry_set_current_stream(registry, d, 1 + (tide_stream_id)d.index, NULL) != TIDE_OK)
            return registry;
        if (tide_registry_current_stream(registry, d) != 1 + (tide_stream_id)d.index) return registry;
        const tide_device now = tide_registry_default_device(registry);
        if (now.type != TIDE_DEVICE_CUDA || now.index < 0 || now.index > 15) return registry;
        tide_allocator *a = NULL;
        if (tide_cpu_allocator_create(&a, NULL) != TIDE_OK) return registry;
        if (tide_registry_add_device(registry, a, 0, NULL) != TIDE_OK) return registry;
        tide_allocator_unref(a);
        a = NULL;
        if (tide_registry_acquire_device(registry, TIDE_CPU, &a, NULL) != TIDE_OK) return registry;
        tide_allocator_unref(a);
        tide_allocator_stats stats;
        (void)!tide_registry_stats(registry, TIDE_CPU, TIDE_KIND_DEFAULT, &stats, NULL);
        (void)!tide_registry_remove(registry, TIDE_CPU, TIDE_KIND_WORKSPACE, true, NULL);
    }
    return NULL;
}

// LT-19: all of the state, set and read from two threads.
static void set_and_read_from_two_threads(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = make();
    tide_allocator *a = make_cpu();
    assert_tide_ok(tide_registry_add(r, TIDE_KIND_WORKSPACE, a, 0, &err), &err);
    tide_allocator_unref(a);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, set_for_ever, r), 0);
    for (int i = 0; i < 2; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    tide_allocator *got = NULL;
    assert_tide_status(tide_registry_get(r, TIDE_CPU, TIDE_KIND_WORKSPACE, &got, &err), TIDE_ERR_NOT_FOUND);
    tide_registry_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(without_a_kind_it_serves_default),
        tide_unit_test(default_device_and_current_streams),
        tide_unit_test(host_memory_ends_while_adding_devices),
        tide_unit_test(set_and_read_from_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
