// SPDX-License-Identifier: MIT
//
// Tensors: creation, references, views, capacity, clones. Binding is in test_tensor_binding.c.
#include "tests/tensor/tensor_test.h"

// ---- creation ----

// PT-16: 3x4 float32: 48 bytes, sizes, strides, offset 0, 12 elements, aligned.
static void worked_case_3x4(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_tensor_spec spec = spec_of(&b, TIDE_F32, 2, DIMS(3, 4));
    spec.align_bytes = 64;
    tide_tensor *t = make(&spec);
    int64_t numel = 0;
    assert_tide_status(tide_shape_numel(tide_tensor_shape(t), &numel, NULL), TIDE_OK);
    assert_int_equal(numel, 12);
    assert_int_equal(tide_tensor_size_bytes(t), 48);
    assert_int_equal(tide_tensor_strides(t)[0], 4);
    assert_int_equal(tide_tensor_strides(t)[1], 1);
    assert_int_equal(tide_tensor_offset_bytes(t), 0);
    assert_int_equal((uintptr_t)tide_tensor_data(t) % 64, 0);
    assert_ptr_equal(tide_tensor_const_data(t), tide_tensor_data(t));
    assert_int_equal(tide_tensor_dtype(t), TIDE_F32);
    assert_int_equal(tide_tensor_kind(t), TIDE_KIND_WORKSPACE);
    assert_true(tide_device_equal(tide_tensor_device(t), TIDE_CPU));
    assert_true(tide_tensor_is_contiguous(t) && tide_tensor_is_bound(t));
    // What is asked of the allocator is rounded up to the alignment: the plan's arithmetic.
    assert_true(bench_live_bytes(&b) == 64);
    assert_int_equal(tide_tensor_capacity_bytes(t), 64);
    assert_string_equal(tide_tensor_storage(t)->block->tag, "t");
    tide_tensor_unref(t);
    bench_close(&b);
}

// S28-17: address % 256 = 0 without being asked; 1000 B become 1024 (S28-18).
static void default_alignment_is_256(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_tensor *all[20];
    for (int i = 0; i < 20; i++) {
        const tide_tensor_spec spec = spec_of(&b, TIDE_U8, 1, DIMS(1000));
        all[i] = make(&spec);
        assert_int_equal((uintptr_t)tide_tensor_data(all[i]) % 256, 0);
    }
    assert_true(bench_live_bytes(&b) == 20 * 1024);
    for (int i = 0; i < 20; i++) tide_tensor_unref(all[i]);
    bench_close(&b);
}

// LT-10: 0 elements: no data, device known, no allocator call.
static void zero_elements_allocate_nothing(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    const tide_tensor_spec spec = spec_of(&b, TIDE_F32, 2, DIMS(0, 3));
    tide_tensor *t = make(&spec);
    assert_null(tide_tensor_data(t));
    assert_null(tide_tensor_const_data(t));
    assert_true(tide_device_equal(tide_tensor_device(t), TIDE_CPU));
    assert_int_equal(tide_tensor_size_bytes(t), 0);
    assert_false(tide_tensor_is_bound(t));
    assert_true(bench_n_allocs(&b) == 0);
    // There is no room to grow into, and it is said.
    const tide_shape more = tide_shape_make(1, DIMS(1));
    assert_tide_status(tide_tensor_set_shape(t, &more, NULL), TIDE_ERR_NO_SPACE);
    tide_tensor_unref(t);
    bench_close(&b);

    const tide_device cuda1 = {TIDE_DEVICE_CUDA, 1};
    tide_error err = TIDE_ERROR_INIT;
    const tide_tensor_spec far = {.dtype = TIDE_F32, .shape = spec.shape, .device = cuda1};
    t = make(&far);
    assert_true(tide_device_equal(tide_tensor_device(t), cuda1));
    assert_null(tide_tensor_data(t));
    tide_tensor_unref(t);
    // With elements there is no allocator for that device (LT-11): refused with a reason.
    tide_tensor_spec full = far;
    full.shape = tide_shape_make(1, DIMS(5));
    full.tag = "far";
    t = NULL;
    assert_tide_status(tide_tensor_create(&full, &t, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "far");
    assert_text_has(err.msg, "cuda:1");
    assert_null(t);
}

static void impossible_tensors_are_refused(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = NULL;
    tide_tensor_spec spec = spec_of(&b, TIDE_F32, 1, DIMS(-1));
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_INVALID);
    spec.shape = tide_shape_make(2, DIMS(INT64_C(1) << 33, INT64_C(1) << 33));
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_OVERFLOW);
    spec.shape = tide_shape_make(1, DIMS(4));
    spec.dtype = TIDE_DTYPE_UNDEFINED;
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_INVALID);
    spec.dtype = TIDE_F32;
    spec.align_bytes = 100;
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_INVALID);
    spec.align_bytes = 0;
    spec.kind = (tide_memory_kind)9;
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_INVALID);
    spec.kind = TIDE_KIND_DEFAULT;
    spec.shape = tide_shape_make(1, DIMS((INT64_C(1) << 61) - 1));
    assert_tide_status(tide_tensor_create(&spec, &t, &err), TIDE_ERR_NOMEM);
    assert_null(t);
    assert_true(bench_n_allocs(&b) == 0);
    bench_close(&b);
}

// LT-30 at the side: the scenario fails at its 1st, 2nd … piece of host memory; a tensor costs impl + block.
static void host_memory_ends_while_creating(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    const tide_tensor_spec spec = spec_of(&b, TIDE_F32, 2, DIMS(3, 4));
    int n_failures = 0;
    tide_tensor *t = NULL;
    while (t == NULL) {
        tide_host_fail_after(n_failures);
        const tide_status st = tide_tensor_create(&spec, &t, NULL);
        tide_host_fail_after(-1);
        if (st == TIDE_OK) break;
        assert_tide_status(st, TIDE_ERR_NOMEM);
        assert_null(t);
        assert_true(bench_live_bytes(&b) == 0);
        n_failures++;
    }
    assert_int_equal(n_failures, 2);
    tide_tensor_unref(t);
    bench_close(&b);
}

static void default_registry_serves(void **state) {
    (void)state;
    const tide_tensor_spec spec = {.dtype = TIDE_F32, .shape = {.rank = 1, .dims = {100}}};
    tide_tensor *t = make(&spec);
    memset(tide_tensor_data(t), 0, 400);
    assert_int_equal(tide_tensor_kind(t), TIDE_KIND_DEFAULT);
    tide_tensor_unref(t);
}

// ---- references ----

// LT-1, LT-2, S28-8: the handle is one pointer; ref shares, take moves; data is never copied. Without a tensor it is
// undefined, and asking looks at the pointer alone.
static void handles_share_and_move(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    const tide_tensor_spec spec = spec_of(&b, TIDE_F32, 1, DIMS(10));
    tide_tensor *t = make(&spec);
    assert_int_equal(sizeof t, sizeof(void *));
    assert_int_equal(tide_tensor_use_count(t), 1);
    const void *data = tide_tensor_data(t);
    tide_tensor *shared = tide_tensor_ref(t);
    assert_ptr_equal(shared, t);
    assert_int_equal(tide_tensor_use_count(t), 2);
    tide_tensor *operands[2] = {t, shared}; // arrays of handles are plain arrays
    assert_ptr_equal(tide_tensor_data(operands[1]), data);
    assert_int_equal(tide_tensor_use_count(t), 2);
    tide_tensor *moved = tide_tensor_take(&shared);
    assert_null(shared);
    assert_false(tide_tensor_is_defined(shared));
    assert_ptr_equal(moved, t);
    assert_int_equal(tide_tensor_use_count(t), 2); // handed over, not shared
    assert_null(tide_tensor_take(&shared));
    tide_tensor_unref(t);
    assert_int_equal(tide_tensor_use_count(moved), 1);
    assert_true(bench_live_bytes(&b) > 0);
    assert_ptr_equal(tide_tensor_data(moved), data);
    tide_tensor_unref(moved);
    tide_tensor_unref(NULL);
    assert_true(bench_live_bytes(&b) == 0);
    assert_true(bench_n_allocs(&b) == 1);
    bench_close(&b);
}

// ---- views and shapes ----

// S28-13, S28-10: {2,3,4} as {6,4} and {24}: storage, offset, device, alignment shared; row-major strides; writes seen
// by all three. Another count of elements is refused.
static void views_share_everything(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor_spec spec = spec_of(&b, TIDE_F32, 4, DIMS(2, 2, 3, 4));
    spec.align_bytes = 1024;
    const tide_shape three = tide_shape_make(3, DIMS(2, 3, 4)), two = tide_shape_make(2, DIMS(6, 4)),
                     one = tide_shape_make(1, DIMS(24));
    tide_tensor *whole = make(&spec), *t = NULL, *v2 = NULL, *v1 = NULL;
    // The base begins inside its storage, so that sharing the offset shows.
    assert_tide_ok(tide_tensor_create_on(tide_tensor_storage(whole), 96, TIDE_F32, &three, &t, &err), &err);
    tide_tensor_unref(whole);
    assert_tide_ok(tide_tensor_view(t, &two, &v2, &err), &err);
    assert_tide_ok(tide_tensor_view(v2, &one, &v1, &err), &err);
    assert_true(tide_shape_equal(tide_tensor_shape(v2), &two) && tide_shape_equal(tide_tensor_shape(v1), &one));
    assert_int_equal(tide_tensor_strides(v2)[0], 4);
    assert_int_equal(tide_tensor_strides(v2)[1], 1);
    assert_int_equal(tide_tensor_strides(v1)[0], 1);
    const tide_tensor *views[2] = {v2, v1};
    for (int i = 0; i < 2; i++) {
        const tide_storage *own = tide_tensor_storage(views[i]), *theirs = tide_tensor_storage(t);
        assert_ptr_equal(tide_tensor_const_data(views[i]), tide_tensor_const_data(t));
        assert_ptr_equal(own->block, theirs->block);
        assert_true(own->offset_bytes == theirs->offset_bytes && own->size_bytes == theirs->size_bytes);
        assert_int_equal(tide_tensor_offset_bytes(views[i]), 96);
        assert_int_equal(tide_tensor_capacity_bytes(views[i]), tide_tensor_capacity_bytes(t));
        assert_true(tide_device_equal(tide_tensor_device(views[i]), TIDE_CPU));
        assert_int_equal(tide_tensor_dtype(views[i]), TIDE_F32);
        assert_int_equal(own->block->align_bytes, 1024);
        assert_true(tide_tensor_is_contiguous(views[i]));
    }
    assert_int_equal(tide_storage_use_count(tide_tensor_storage(t)), 3);
    ((float *)tide_tensor_data(t))[0] = 1.0f;
    ((float *)tide_tensor_data(v2))[5] = 2.0f;
    ((float *)tide_tensor_data(v1))[23] = 3.0f;
    const tide_tensor *all[3] = {t, v2, v1};
    for (int i = 0; i < 3; i++) {
        const float *x = tide_tensor_const_data(all[i]);
        assert_true(x[0] == 1.0f && x[5] == 2.0f && x[23] == 3.0f);
    }
    assert_true(bench_n_allocs(&b) == 1);
    const tide_shape wrong = tide_shape_make(1, DIMS(25)), negative = tide_shape_make(1, DIMS(-24));
    tide_tensor *none = NULL;
    assert_tide_status(tide_tensor_view(t, &wrong, &none, &err), TIDE_ERR_INVALID); // S28-10: never silently
    assert_text_has(err.msg, "[25]");
    assert_tide_status(tide_tensor_view(t, &negative, &none, &err), TIDE_ERR_INVALID);
    assert_null(none);
    tide_tensor_unref(t); // base first
    tide_tensor_unref(v2);
    assert_true(((const float *)tide_tensor_const_data(v1))[5] == 2.0f);
    tide_tensor_unref(v1);
    bench_close(&b);
}

static void views_of_nothing(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    const tide_shape shape = tide_shape_make(2, DIMS(2, 3)), flat = tide_shape_make(1, DIMS(6));
    const tide_shape none = tide_shape_make(2, DIMS(0, 7)), other_none = tide_shape_make(1, DIMS(0));
    tide_tensor *unbound = NULL, *view = NULL;
    assert_tide_ok(tide_tensor_create_unbound(TIDE_I64, &shape, TIDE_CPU, &unbound, &err), &err);
    assert_tide_ok(tide_tensor_view(unbound, &flat, &view, &err), &err);
    assert_false(tide_tensor_is_bound(view));
    tide_tensor_unref(view);
    tide_tensor_unref(unbound);
    tide_tensor_spec spec = spec_of(&b, TIDE_I64, 2, DIMS(0, 7));
    spec.shape = none;
    tide_tensor *empty = make(&spec);
    assert_tide_ok(tide_tensor_view(empty, &other_none, &view, &err), &err);
    assert_null(tide_tensor_data(view));
    tide_tensor_unref(view);
    tide_tensor_unref(empty);
    bench_close(&b);
}

// PT-24: 1000x1000 float32; rows 100 to 200 start at element 100,000; no allocation for a view; a clone has its own.
static void worked_case_1000x1000(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor_spec spec = spec_of(&b, TIDE_F32, 2, DIMS(1000, 1000));
    tide_tensor *t = make(&spec), *rows = NULL, *clone = NULL;
    float *x = tide_tensor_data(t);
    for (int i = 0; i < 1000000; i++) x[i] = (float)i;
    assert_int_equal(tide_tensor_size_bytes(t), 4000000);
    assert_true(bench_live_bytes(&b) == 4000000); // already a multiple of 256
    const tide_block *block = tide_tensor_storage(t)->block;
    const uint32_t refs_before = block->refs;
    const tide_shape part = tide_shape_make(2, DIMS(100, 1000));
    assert_tide_ok(tide_tensor_create_on(tide_tensor_storage(t), 100000 * sizeof(float), TIDE_F32, &part, &rows, &err),
                   &err);
    assert_int_equal(block->refs, refs_before + 1);
    assert_int_equal(tide_tensor_offset_bytes(rows), 400000); // bytes inside
    assert_ptr_equal(tide_tensor_data(rows), x + 100000);
    assert_int_equal(tide_tensor_strides(rows)[0], 1000);
    assert_int_equal(tide_tensor_strides(rows)[1], 1);
    assert_ptr_equal(tide_storage_data(tide_tensor_storage(rows)), tide_storage_data(tide_tensor_storage(t)));
    assert_true(bench_n_allocs(&b) == 1);
    spec.kind = TIDE_KIND_DEFAULT;
    assert_tide_ok(tide_tensor_clone(t, &spec, &clone, &err), &err);
    assert_true(bench_n_allocs(&b) == 2 && bench_live_bytes(&b) == 8000000);
    assert_ptr_not_equal(tide_tensor_data(clone), x);
    assert_memory_equal(tide_tensor_data(clone), x, 4000000);
    assert_int_equal(tide_tensor_kind(clone), TIDE_KIND_DEFAULT);
    x[0] = 5.0f;
    assert_true(((const float *)tide_tensor_const_data(clone))[0] == 0.0f);
    tide_tensor_unref(clone);
    // A clone of the part has the part's elements and the part's bytes only.
    assert_tide_ok(tide_tensor_clone(rows, &spec, &clone, &err), &err);
    assert_int_equal(tide_tensor_size_bytes(clone), 400000);
    assert_memory_equal(tide_tensor_data(clone), x + 100000, 400000);
    tide_tensor_unref(clone);
    tide_tensor_unref(t);
    tide_tensor_unref(rows);
    bench_close(&b);
}

static void clones_that_cannot_be(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    const tide_shape shape = tide_shape_make(1, DIMS(4));
    tide_tensor_spec spec = spec_of(&b, TIDE_F32, 1, DIMS(4));
    tide_tensor *unbound = NULL, *clone = NULL;
    assert_tide_ok(tide_tensor_create_unbound(TIDE_F32, &shape, TIDE_CPU, &unbound, &err), &err);
    assert_tide_status(tide_tensor_clone(unbound, &spec, &clone, &err), TIDE_ERR_INVALID);
    tide_tensor_unref(unbound);
    tide_tensor *t = make(&spec);
    spec.device = (tide_device){TIDE_DEVICE_CUDA, 0};
    assert_tide_status(tide_tensor_clone(t, &spec, &clone, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_null(clone);
    tide_tensor_unref(t);
    bench_close(&b);
}

// S28-6, S28-12: any shape within the capacity, never an allocation; a larger one is refused and changes nothing.
static void shapes_change_within_the_capacity(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    const tide_tensor_spec spec = spec_of(&b, TIDE_I16, 2, DIMS(16, 64)); // 2048 B
    tide_tensor *t = make(&spec);
    const void *data = tide_tensor_data(t);
    tide_rng rng = {6};
    int n_refused = 0;
    for (int step = 0; step < 2000; step++) {
        const tide_shape before = *tide_tensor_shape(t);
        const tide_shape next =
            tide_shape_make(2, DIMS((int64_t)tide_rng_below(&rng, 40), 1 + (int64_t)tide_rng_below(&rng, 60)));
        const size_t need = (size_t)(next.dims[0] * next.dims[1]) * 2;
        tide_error err = TIDE_ERROR_INIT;
        const tide_status st = tide_tensor_set_shape(t, &next, &err);
        assert_int_equal(st, need <= 2048 ? TIDE_OK : TIDE_ERR_NO_SPACE);
        assert_true(tide_shape_equal(tide_tensor_shape(t), st == TIDE_OK ? &next : &before));
        if (st == TIDE_OK) assert_int_equal(tide_tensor_strides(t)[0], next.dims[1]);
        n_refused += st != TIDE_OK;
        assert_true(tide_tensor_capacity_bytes(t) >= tide_tensor_size_bytes(t));
        assert_ptr_equal(tide_tensor_data(t), tide_tensor_size_bytes(t) > 0 ? data : NULL);
    }
    assert_true(n_refused > 100 && n_refused < 1900);
    assert_true(bench_n_allocs(&b) == 1);
    tide_tensor_unref(t);

    // Unbound: any shape; whether it fits is asked when a storage comes.
    tide_error err = TIDE_ERROR_INIT;
    const tide_shape small = tide_shape_make(1, DIMS(4)), large = tide_shape_make(1, DIMS(4000));
    tide_storage s = storage_of(&b, 64);
    assert_tide_ok(tide_tensor_create_unbound(TIDE_F32, &small, TIDE_CPU, &t, &err), &err);
    assert_tide_ok(tide_tensor_set_shape(t, &large, &err), &err);
    assert_tide_status(tide_tensor_bind(t, &s, 0, &err), TIDE_ERR_INVALID);
    assert_tide_ok(tide_tensor_set_shape(t, &small, &err), &err);
    assert_tide_ok(tide_tensor_bind(t, &s, 0, &err), &err);
    tide_tensor_unref(t);
    tide_storage_deinit(&s);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(worked_case_3x4),
        tide_unit_test(default_alignment_is_256),
        tide_unit_test(zero_elements_allocate_nothing),
        tide_unit_test(impossible_tensors_are_refused),
        tide_unit_test(host_memory_ends_while_creating),
        tide_unit_test(default_registry_serves),
        tide_unit_test(handles_share_and_move),
        tide_unit_test(views_share_everything),
        tide_unit_test(views_of_nothing),
        tide_unit_test(worked_case_1000x1000),
        tide_unit_test(clones_that_cannot_be),
        tide_unit_test(shapes_change_within_the_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
