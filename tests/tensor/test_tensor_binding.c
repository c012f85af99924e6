// SPDX-License-Identifier: MIT
//
// A tensor and the memory it is bound to: places in one storage, bounds, another storage, foreign memory.
#include "tests/tensor/tensor_test.h"

// S28-9, S28-15: three tensors at 0, 1 KiB and 3 KiB of one storage.
static void data_is_base_plus_offset(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_storage s = storage_of(&b, 4096);
    char *base = tide_storage_data(&s);
    static const size_t offsets[3] = {0, 1024, 3072};
    static const int64_t elems[3] = {256, 512, 256};
    tide_tensor *t[3];
    for (int i = 0; i < 3; i++) {
        const tide_shape shape = tide_shape_make(1, &elems[i]);
        assert_tide_ok(tide_tensor_create_unbound(TIDE_F32, &shape, TIDE_CPU, &t[i], &err), &err);
        assert_null(tide_tensor_data(t[i]));
        assert_false(tide_tensor_is_bound(t[i]));
        assert_int_equal(tide_tensor_kind(t[i]), TIDE_KIND_DEFAULT);
        assert_tide_ok(tide_tensor_bind(t[i], &s, offsets[i], &err), &err);
        assert_ptr_equal(tide_tensor_data(t[i]), base + offsets[i]);
        assert_int_equal(tide_tensor_offset_bytes(t[i]), offsets[i]);
        assert_int_equal(tide_tensor_capacity_bytes(t[i]), 4096 - offsets[i]);
        assert_int_equal(tide_tensor_kind(t[i]), TIDE_KIND_PERSISTENT);
    }
    tide_storage_deinit(&s);
    tide_tensor_unbind(t[1]);
    assert_null(tide_tensor_data(t[1]));
    assert_int_equal(tide_tensor_size_bytes(t[1]), 2048); // shape and type stay
    assert_int_equal(tide_tensor_capacity_bytes(t[1]), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(bench_live_bytes(&b) > 0); // S28-14: until the last tensor goes
        tide_tensor_unref(t[i]);
    }
    assert_true(bench_live_bytes(&b) == 0);
    bench_close(&b);
}

// S28-15: exact fit passes, one byte more fails, a huge offset does not wrap; nothing changed by a refusal.
static void binding_checks_its_bounds(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_storage s = storage_of(&b, 4096), other = storage_of(&b, 64);
    const tide_shape shape = tide_shape_make(1, DIMS(1024));
    tide_tensor *t = NULL;
    assert_tide_ok(tide_tensor_create_on(&s, 3072, TIDE_U8, &shape, &t, &err), &err); // exact fit
    const void *data = tide_tensor_data(t);
    static const size_t bad[] = {3073, 4096, 4097, SIZE_MAX, SIZE_MAX - 1023, SIZE_MAX - 4095, (size_t)1 << 63};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_tide_status(tide_tensor_bind(t, &s, bad[i], &err), TIDE_ERR_INVALID);
        assert_text_has(err.msg, "4096 B");
        assert_ptr_equal(tide_tensor_data(t), data);
        assert_int_equal(tide_tensor_offset_bytes(t), 3072);
    }
    assert_tide_status(tide_tensor_bind(t, &other, 0, &err), TIDE_ERR_INVALID);
    const tide_storage nothing = {0};
    assert_tide_status(tide_tensor_bind(t, &nothing, 0, &err), TIDE_ERR_INVALID);
    assert_ptr_equal(tide_tensor_data(t), data);
    tide_tensor *wide = NULL;
    const tide_shape floats = tide_shape_make(1, DIMS(8));
    assert_tide_status(tide_tensor_create_on(&s, 6, TIDE_F32, &floats, &wide, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "float32"); // such an address cannot be read
    assert_null(wide);
    // Its own storage again: the reference must not go through zero.
    const tide_storage own = *tide_tensor_storage(t);
    tide_storage_deinit(&s);
    assert_tide_ok(tide_tensor_bind(t, &own, 0, &err), &err);
    assert_int_equal(((unsigned char *)tide_tensor_data(t))[5], 5);
    tide_tensor_unref(t);
    tide_storage_deinit(&other);
    bench_close(&b);
}

// S28-16: a view keeps address and bytes when its base is bound elsewhere.
static void rebinding_moves_no_other_tensor(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_storage old = storage_of(&b, 96), fresh = storage_of(&b, 96);
    memset(tide_storage_data(&fresh), 0xEE, 96);
    const tide_shape shape = tide_shape_make(3, DIMS(2, 3, 4)), flat = tide_shape_make(1, DIMS(24));
    tide_tensor *base = NULL, *view = NULL;
    assert_tide_ok(tide_tensor_create_on(&old, 0, TIDE_F32, &shape, &base, &err), &err);
    assert_tide_ok(tide_tensor_view(base, &flat, &view, &err), &err);
    const void *view_data = tide_tensor_data(view);
    assert_tide_ok(tide_tensor_bind(base, &fresh, 0, &err), &err);
    tide_storage_deinit(&old);
    assert_ptr_equal(tide_tensor_data(base), tide_storage_data(&fresh));
    assert_ptr_equal(tide_tensor_data(view), view_data);
    for (int i = 0; i < 96; i++) assert_int_equal(((const unsigned char *)tide_tensor_const_data(view))[i], i);
    tide_storage_deinit(&fresh);
    tide_tensor_unref(base);
    tide_tensor_unref(view);
    bench_close(&b);
}

// LT-12: foreign memory with a stated kind; it stays the caller's.
static void borrowed_memory_stays_the_callers(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    _Alignas(64) float theirs[12];
    for (int i = 0; i < 12; i++) theirs[i] = (float)i;
    const tide_shape shape = tide_shape_make(2, DIMS(3, 4)), large = tide_shape_make(1, DIMS(13));
    tide_tensor *t = NULL;
    assert_tide_ok(tide_tensor_borrow(theirs, sizeof theirs, TIDE_F32, &shape, TIDE_KIND_PERSISTENT, &t, &err), &err);
    assert_ptr_equal(tide_tensor_data(t), theirs);
    assert_int_equal(tide_tensor_kind(t), TIDE_KIND_PERSISTENT);
    assert_null(tide_tensor_storage(t)->block->owner);
    ((float *)tide_tensor_data(t))[3] = 33.0f;
    tide_tensor_unref(t);
    assert_true(theirs[3] == 33.0f && theirs[11] == 11.0f);
    t = NULL;
    assert_tide_status(tide_tensor_borrow(theirs, sizeof theirs, TIDE_F32, &large, TIDE_KIND_DEFAULT, &t, &err),
                       TIDE_ERR_INVALID);
    assert_tide_status(tide_tensor_borrow(NULL, 48, TIDE_F32, &shape, TIDE_KIND_DEFAULT, &t, &err), TIDE_ERR_INVALID);
    assert_null(t);
    const tide_shape none = tide_shape_make(1, DIMS(0));
    assert_tide_ok(tide_tensor_borrow(NULL, 0, TIDE_F32, &none, TIDE_KIND_DEFAULT, &t, &err), &err);
    assert_null(tide_tensor_data(t));
    tide_tensor_unref(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(data_is_base_plus_offset),
        tide_unit_test(binding_checks_its_bounds),
        tide_unit_test(rebinding_moves_no_other_tensor),
        tide_unit_test(borrowed_memory_stays_the_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
