// SPDX-License-Identifier: MIT
//
// Tensors on a device whose addresses mean nothing to the host: clones across, resize, lazy clones, alignment.
#include "tests/device/fake_device.h"
#include "tests/tensor/tensor_test.h"

/// A bench with the devices fake:0 and fake:1 in its registry.
typedef struct far_bench {
    bench near;
    tide_device far; // fake:1
    tide_allocator *a[2];
} far_bench;

static void far_open(far_bench *b) {
    tide_error err = TIDE_ERROR_INIT;
    bench_open(&b->near);
    fake_setup(2);
    b->far = fake_at(1);
    for (int i = 0; i < 2; i++) {
        assert_tide_ok(tide_device_allocator_create((tide_device){b->far.type, i}, &b->a[i], &err), &err);
        assert_tide_ok(tide_registry_add(b->near.registry, TIDE_KIND_DEFAULT, b->a[i], 0, &err), &err);
    }
}

static void far_close(far_bench *b) {
    for (int i = 0; i < 2; i++) {
        assert_true(stats_of(b->a[i]).active_bytes == 0);
        tide_allocator_unref(b->a[i]);
    }
    bench_close(&b->near);
    assert_int_equal(fake.n_live_blocks, 0);
    fake_teardown();
}

static tide_tensor_spec far_spec(const far_bench *b, tide_dtype dtype, int32_t rank, const int64_t *dims) {
    tide_tensor_spec spec = spec_of(&b->near, dtype, rank, dims);
    spec.device = b->far;
    spec.kind = TIDE_KIND_DEFAULT;
    return spec;
}

static tide_tensor *clone_of(const tide_tensor *t, const tide_tensor_spec *where) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *out = NULL;
    assert_tide_ok(tide_tensor_clone(t, where, &out, &err), &err);
    return out;
}

// S28-21: to the device, on to another, and back: the same elements, and metadata untouched.
static void round_trip_S28_21(void **state) {
    (void)state;
    far_bench b;
    far_open(&b);
    tide_tensor *here = make_counting(&b.near, TIDE_F32, 3, DIMS(5, 7, 11));
    tide_tensor_spec there = far_spec(&b, TIDE_U8, 0, NULL), home = spec_of(&b.near, TIDE_U8, 0, NULL);
    tide_tensor *far1 = clone_of(here, &there);
    there.device.index = 0;
    tide_tensor *far0 = clone_of(far1, &there);
    tide_tensor *back = clone_of(far0, &home);
    const tide_tensor *all[4] = {here, far1, far0, back};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tide_tensor_dtype(all[i]), TIDE_F32);
        assert_true(tide_shape_equal(tide_tensor_shape(all[i]), tide_tensor_shape(here)));
        assert_memory_equal(tide_tensor_strides(all[i]), tide_tensor_strides(here), 3 * sizeof(int64_t));
        assert_int_equal(tide_tensor_size_bytes(all[i]), 5 * 7 * 11 * 4);
        assert_true(tide_tensor_is_contiguous(all[i]));
    }
    assert_true(tide_device_equal(tide_tensor_device(far1), b.far));
    assert_int_equal(tide_tensor_device(far0).index, 0);
    assert_true(tide_device_equal(tide_tensor_device(back), TIDE_CPU));
    assert_memory_equal(fake_peek(1, tide_tensor_const_data(far1), 1540), tide_tensor_const_data(here), 1540);
    assert_memory_equal(tide_tensor_const_data(back), tide_tensor_const_data(here), 1540);
    tide_tensor *none[4] = {here, far1, far0, back};
    for (int i = 0; i < 4; i++) tide_tensor_unref(none[i]);
    far_close(&b);
}

static void strided_elements(void **state) {
    (void)state;
    far_bench b;
    far_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *here = make_counting(&b.near, TIDE_I32, 2, DIMS(3, 4)), *turned = NULL, *none = NULL;
    const tide_tensor_spec there = far_spec(&b, TIDE_U8, 0, NULL), home = spec_of(&b.near, TIDE_U8, 0, NULL);
    assert_tide_ok(tide_tensor_permute(here, (int32_t[]){1, 0}, &turned, &err), &err);
    // From the CPU they are laid side by side first.
    tide_tensor *far = clone_of(turned, &there);
    static const int32_t want[12] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
    assert_memory_equal(fake_peek(1, tide_tensor_const_data(far), sizeof want), want, sizeof want);
    tide_tensor_unref(turned);
    // On the device a view is made like any other; its elements are not gathered there.
    assert_tide_ok(tide_tensor_permute(far, (int32_t[]){1, 0}, &turned, &err), &err);
    assert_tide_status(tide_tensor_clone(turned, &home, &none, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_tide_status(tide_tensor_contiguous(turned, &none, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_null(none);
    tide_tensor_unref(turned);
    // A row of it lies side by side, and travels.
    assert_tide_ok(tide_tensor_slice(far, 0, 2, 3, 1, &turned, &err), &err);
    tide_tensor *row = clone_of(turned, &home);
    assert_memory_equal(tide_tensor_const_data(row), want + 6, 12);
    tide_tensor_unref(row);
    tide_tensor_unref(turned);
    tide_tensor_unref(far);
    tide_tensor_unref(here);
    far_close(&b);
}

// S28-11 on a device: the old bytes are copied there, the tail is zeroed there; from host memory to the device too.
static void resize_on_a_device(void **state) {
    (void)state;
    far_bench b;
    far_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *here = make_counting(&b.near, TIDE_U8, 1, DIMS(200));
    const tide_tensor_spec there = far_spec(&b, TIDE_U8, 0, NULL);
    tide_tensor *far = clone_of(here, &there);
    const tide_shape more = tide_shape_make(1, DIMS(5000));
    assert_tide_ok(tide_tensor_resize(far, &more, NULL, &err), &err);
    const unsigned char *bytes = (unsigned char *)fake_peek(1, tide_tensor_const_data(far), 5000);
    for (int i = 0; i < 5000; i++) assert_int_equal(bytes[i], i < 200 ? i : 0);
    assert_int_equal(fake.n_copies[TIDE_COPY_WITHIN_DEVICE], 1);
    assert_int_equal(fake.n_live_blocks, 1);
    tide_tensor_unref(far);
    assert_tide_ok(tide_tensor_resize(here, &more, &there, &err), &err);
    assert_true(tide_device_equal(tide_tensor_device(here), b.far));
    bytes = (unsigned char *)fake_peek(1, tide_tensor_const_data(here), 5000);
    for (int i = 0; i < 5000; i++) assert_int_equal(bytes[i], i < 200 ? i : 0);
    assert_true(bench_live_bytes(&b.near) == 0);
    tide_tensor_unref(here);
    far_close(&b);
}

// A device that cannot copy: the status comes back, nothing is kept, the tensor is as it was.
static void a_copy_that_fails(void **state) {
    (void)state;
    far_bench b;
    far_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *here = make_counting(&b.near, TIDE_U8, 1, DIMS(200)), *none = NULL;
    const tide_tensor_spec there = far_spec(&b, TIDE_U8, 0, NULL);
    tide_tensor *far = clone_of(here, &there);
    const void *data = tide_tensor_const_data(far);
    const tide_shape more = tide_shape_make(1, DIMS(5000));
    fake_fail(FAKE_COPY, 0, -1);
    assert_tide_status(tide_tensor_clone(here, &there, &none, &err), TIDE_ERR_BACKEND);
    assert_tide_status(tide_tensor_clone(far, &there, &none, &err), TIDE_ERR_BACKEND);
    assert_tide_status(tide_tensor_resize(far, &more, NULL, &err), TIDE_ERR_BACKEND);
    assert_null(none);
    assert_int_equal(fake.n_live_blocks, 1);
    assert_ptr_equal(tide_tensor_const_data(far), data);
    assert_int_equal(tide_tensor_size_bytes(far), 200);
    tide_tensor_unref(far);
    tide_tensor_unref(here);
    far_close(&b);
}

// PT-22 at the tensor: on a device a lazy clone belongs to the stream of its memory; the copy is made there.
static void lazy_clones_on_a_device(void **state) {
    (void)state;
    far_bench b;
    far_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *here = make_counting(&b.near, TIDE_U8, 1, DIMS(200)), *twin = NULL;
    tide_tensor_spec there = far_spec(&b, TIDE_U8, 0, NULL);
    assert_tide_ok(tide_stream_create(b.far, &there.stream, &err), &err);
    tide_tensor *far = clone_of(here, &there);
    assert_true(fake.copy_stream == there.stream); // in order of the stream that owns the new memory
    tide_tensor_spec other = there;
    other.stream = 0;
    assert_tide_status(tide_tensor_lazy_clone(far, &other, &twin, NULL, &err), TIDE_ERR_INVALID);
    assert_null(twin);
    assert_false(tide_tensor_is_cow(far));
    assert_tide_ok(tide_registry_set_current_stream(b.near.registry, b.far, there.stream, &err), &err);
    other.stream = TIDE_STREAM_CURRENT;
    bool copied = true;
    assert_tide_ok(tide_tensor_lazy_clone(far, &other, &twin, &copied, &err), &err);
    assert_false(copied);
    assert_true(tide_tensor_is_alias(far, twin));
    const uint64_t n_copies = fake.n_copies[TIDE_COPY_WITHIN_DEVICE];
    assert_non_null(tide_tensor_data(twin));
    assert_int_equal(fake.n_copies[TIDE_COPY_WITHIN_DEVICE], n_copies + 1);
    assert_memory_equal(fake_peek(1, tide_tensor_const_data(twin), 200), tide_tensor_const_data(here), 200);
    tide_tensor_unref(twin);
    tide_tensor_unref(far);
    tide_tensor_unref(here);
    tide_stream_destroy(b.far, there.stream);
    far_close(&b);
}

// S28-14: a tensor takes the device of the memory that it is bound to, with every new binding: memory of an allocator
// of that device, and foreign memory there.
static void binding_sets_the_device_S28_14(void **state) {
    (void)state;
    far_bench b;
    far_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    const tide_shape shape = tide_shape_make(2, DIMS(3, 4)), room = tide_shape_make(1, DIMS(200));
    const tide_tensor_spec there = far_spec(&b, TIDE_U8, 1, room.dims);
    tide_tensor *t = NULL, *far = make(&there), *here = make_counting(&b.near, TIDE_U8, 1, DIMS(200));
    assert_tide_ok(tide_tensor_create_unbound(TIDE_F32, &shape, TIDE_CPU, &t, &err), &err);
    assert_tide_ok(tide_tensor_bind(t, tide_tensor_storage(far), 16, &err), &err);
    assert_true(tide_device_equal(tide_tensor_device(t), b.far));
    assert_ptr_equal(tide_tensor_const_data(t), (const char *)tide_tensor_const_data(far) + 16);
    assert_tide_ok(tide_tensor_bind(t, tide_tensor_storage(here), 64, &err), &err);
    assert_true(tide_device_equal(tide_tensor_device(t), TIDE_CPU));
    void *theirs = NULL;
    const tide_device fake0 = fake_at(0);
    assert_tide_ok(tide_device_mem_alloc(fake0, 64, 64, &theirs, &err), &err);
    tide_data_ptr ptr = tide_data_ptr_bare(theirs, fake0);
    assert_tide_ok(tide_tensor_bind_external(t, &ptr, 64, TIDE_KIND_DEFAULT, "theirs", &err), &err);
    assert_true(tide_device_equal(tide_tensor_device(t), fake0));
    assert_ptr_equal(tide_tensor_const_data(t), theirs);
    assert_int_equal(tide_tensor_offset_bytes(t), 0);
    assert_int_equal(tide_tensor_strides(t)[0], 4);
    assert_int_equal(tide_tensor_strides(t)[1], 1);
    tide_tensor_unref(t);
    tide_device_mem_free(fake0, theirs);
    tide_tensor_unref(far);
    tide_tensor_unref(here);
    far_close(&b);
}

// S28-23: the device allocator behind the same interface gives the alignment that was asked for, or refuses.
static void alignment_on_a_device_S28_23(void **state) {
    (void)state;
    far_bench b;
    far_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor_spec spec = far_spec(&b, TIDE_F32, 1, DIMS(100));
    tide_tensor *all[32] = {NULL};
    static const size_t aligns[] = {512, 256, 1024, 4096};
    for (int i = 0; i < 32; i++) {
        spec.align_bytes = aligns[i % 4];
        all[i] = make(&spec);
        assert_int_equal((uintptr_t)tide_tensor_const_data(all[i]) % spec.align_bytes, 0);
        assert_int_equal(tide_tensor_capacity_bytes(all[i]) % spec.align_bytes, 0);
        assert_int_equal(tide_tensor_storage(all[i])->block->align_bytes, spec.align_bytes);
    }
    for (int i = 0; i < 32; i++) tide_tensor_unref(all[i]);
    spec.align_bytes = 513;
    tide_tensor *none = NULL;
    assert_tide_status(tide_tensor_create(&spec, &none, &err), TIDE_ERR_INVALID);
    assert_null(none);
    far_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(round_trip_S28_21),
        tide_unit_test(strided_elements),
        tide_unit_test(resize_on_a_device),
        tide_unit_test(a_copy_that_fails),
        tide_unit_test(lazy_clones_on_a_device),
        tide_unit_test(binding_sets_the_device_S28_14),
        tide_unit_test(alignment_on_a_device_S28_23),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
