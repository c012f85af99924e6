// SPDX-License-Identifier: MIT
//
// What a tensor knows about its elements: address, contiguity, bytes, on every sort of layout; what has no size yet;
// other types; text.
#include "tests/tensor/tensor_test.h"

// ---- LT-4 ----

enum { ROOM = 64 };

typedef struct layout_row {
    int32_t rank;
    int64_t dims[4], strides[4], offset;
} layout_row;

/// Twenty layouts over 64 elements.
static const layout_row layouts[] = {
    {0, {0}, {0}, 0},                    // scalar
    {0, {0}, {0}, 63},                   // scalar at the end
    {1, {64}, {1}, 0},                   // all
    {1, {32}, {2}, 0},                   // every second
    {1, {1}, {7}, 5},                    // one element: its stride is never used
    {1, {0}, {1}, 64},                   // none, at the end
    {2, {8, 8}, {8, 1}, 0},              // row-major
    {2, {8, 8}, {1, 8}, 0},              // transposed
    {2, {8, 4}, {8, 1}, 4},              // right half of the rows
    {2, {4, 8}, {8, 1}, 32},             // lower half
    {2, {1, 8}, {999, 1}, 8},            // one row: stride of the row never used
    {2, {8, 1}, {8, 1}, 3},              // one column
    {2, {8, 1}, {1, 777}, 0},            // a column laid as a row
    {3, {2, 1, 4}, {4, 4, 1}, 0},        // 1 in the middle
    {3, {2, 1, 4}, {4, 99, 1}, 16},      // the same with a stride of no meaning
    {3, {1, 1, 1}, {5, 6, 7}, 9},        // nothing but ones
    {3, {2, 3, 4}, {12, 4, 1}, 20},      // row-major, not at the start
    {3, {2, 3, 4}, {12, 1, 3}, 0},       // last two swapped
    {4, {2, 2, 2, 2}, {8, 4, 2, 1}, 48}, // four dimensions, to the last element
    {4, {3, 1, 2, 0}, {1, 1, 1, 1}, 10}, // no elements
    {2, {4, 4}, {0, 1}, 0},              // a row repeated
    {2, {3, 3}, {1, 1}, 0},              // windows that overlap
};

/// Index of every element by hand, in row-major order. @return how many
static size_t enumerate(const layout_row *row, int64_t *out) {
    size_t n = 1;
    for (int32_t i = 0; i < row->rank; i++) n *= (size_t)row->dims[i];
    for (size_t k = 0; k < n; k++) {
        size_t rest = k;
        out[k] = row->offset;
        for (int32_t i = row->rank; i-- > 0;) {
            out[k] += (int64_t)(rest % (size_t)row->dims[i]) * row->strides[i];
            rest /= (size_t)row->dims[i];
        }
    }
    return n;
}

// LT-4: address = storage data + offset * element size; contiguity decided when made, for 20 layouts and more.
static void layouts_LT_4(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    static const tide_dtype types[] = {TIDE_U8, TIDE_F16, TIDE_F32, TIDE_I64};
    assert_true(sizeof layouts / sizeof layouts[0] >= 20);
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        const size_t elem = tide_dtype_size(types[k]);
        tide_tensor *base = make_counting(&b, types[k], 1, DIMS(ROOM));
        const char *start = tide_storage_data(tide_tensor_storage(base));
        int n_contiguous = 0;
        for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
            const layout_row *row = &layouts[i];
            const tide_shape shape = tide_shape_make(row->rank, row->dims);
            tide_error err = TIDE_ERROR_INIT;
            tide_tensor *t = NULL;
            assert_tide_ok(tide_tensor_as_strided(base, &shape, row->strides, row->offset, &t, &err), &err);
            int64_t index[ROOM];
            const size_t n = enumerate(row, index);
            bool consecutive = true;
            for (size_t e = 0; e < n; e++) consecutive = consecutive && index[e] == index[0] + (int64_t)e;
            if (tide_tensor_is_contiguous(t) != consecutive) fail_msg("layout %zu: contiguity", i);
            n_contiguous += consecutive;
            assert_int_equal(tide_tensor_size_bytes(t), n * elem);
            assert_int_equal(tide_tensor_offset_elements(t), row->offset);
            assert_int_equal(tide_tensor_offset_bytes(t), (size_t)row->offset * elem);
            const char *data = tide_tensor_const_data(t);
            assert_ptr_equal(data, n > 0 ? start + (size_t)row->offset * elem : NULL);
            assert_memory_equal(tide_tensor_strides(t), row->strides, (size_t)row->rank * sizeof(int64_t));
            // A clone lays exactly those elements side by side.
            tide_tensor *clone = NULL;
            const tide_tensor_spec where = spec_of(&b, types[k], 0, NULL);
            assert_tide_ok(tide_tensor_clone(t, &where, &clone, &err), &err);
            assert_true(tide_tensor_is_contiguous(clone));
            for (size_t e = 0; e < n; e++)
                assert_true(element_at(tide_tensor_const_data(clone), elem, e) == (uint64_t)index[e]);
            tide_tensor_unref(clone);
            tide_tensor_unref(t);
        }
        assert_int_equal(n_contiguous, 15);
        tide_tensor_unref(base);
    }
    bench_close(&b);
}

// ---- every question on every sort of tensor ----

typedef struct answers {
    tide_dtype dtype;
    tide_shape shape;
    int64_t strides[2];
    size_t size_bytes, offset_bytes, capacity_bytes;
    bool contiguous, bound, has_data;
} answers;

static void assert_answers(tide_tensor *t, const answers *want) {
    assert_int_equal(tide_tensor_dtype(t), want->dtype);
    assert_true(tide_shape_equal(tide_tensor_shape(t), &want->shape));
    assert_memory_equal(tide_tensor_strides(t), want->strides, (size_t)want->shape.rank * sizeof(int64_t));
    assert_int_equal(tide_tensor_size_bytes(t), want->size_bytes);
    assert_int_equal(tide_tensor_offset_bytes(t), want->offset_bytes);
    assert_int_equal(tide_tensor_capacity_bytes(t), want->capacity_bytes);
    assert_true(tide_tensor_is_contiguous(t) == want->contiguous);
    assert_true(tide_tensor_is_bound(t) == want->bound);
    assert_true((tide_tensor_data(t) != NULL) == want->has_data);
    assert_ptr_equal(tide_tensor_data(t), tide_tensor_const_data(t));
    assert_true(tide_device_equal(tide_tensor_device(t), TIDE_CPU));
    assert_true(tide_tensor_is_defined(t));
    if (want->bound)
        assert_ptr_equal(tide_tensor_const_data(t),
                         (const char *)tide_storage_data(tide_tensor_storage(t)) + want->offset_bytes);
}

// S28-7: type, shape, device, strides, offset, data, bytes, capacity, empty: on an ordinary, an empty, a view and a
// bound tensor.
static void questions_S28_7(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *ordinary = make_counting(&b, TIDE_F32, 2, DIMS(3, 4));
    assert_answers(ordinary, &(answers){TIDE_F32, {2, {3, 4}}, {4, 1}, 48, 0, 256, true, true, true});
    tide_tensor_spec spec = spec_of(&b, TIDE_I16, 2, DIMS(0, 3));
    tide_tensor *empty = make(&spec);
    assert_answers(empty, &(answers){TIDE_I16, {2, {0, 3}}, {3, 1}, 0, 0, 0, true, false, false});
    tide_tensor *view = NULL;
    assert_tide_ok(tide_tensor_slice(ordinary, 1, 1, 3, 1, &view, &err), &err);
    assert_answers(view, &(answers){TIDE_F32, {2, {3, 2}}, {4, 1}, 24, 4, 252, false, true, true});
    tide_tensor *bound = NULL;
    const tide_shape shape = tide_shape_make(1, DIMS(10));
    tide_storage s = storage_of(&b, 512);
    assert_tide_ok(tide_tensor_create_unbound(TIDE_U8, &shape, TIDE_CPU, &bound, &err), &err);
    assert_answers(bound, &(answers){TIDE_U8, {1, {10}}, {1}, 10, 0, 0, true, false, false});
    assert_tide_ok(tide_tensor_bind(bound, &s, 500, &err), &err);
    assert_answers(bound, &(answers){TIDE_U8, {1, {10}}, {1}, 10, 500, 12, true, true, true});
    assert_int_equal(tide_tensor_kind(bound), TIDE_KIND_PERSISTENT);
    tide_storage_deinit(&s);
    assert_false(tide_tensor_is_defined(NULL));
    tide_tensor_unref(ordinary);
    tide_tensor_unref(empty);
    tide_tensor_unref(view);
    tide_tensor_unref(bound);
    bench_close(&b);
}

// S28-1: what the tensor owns and what the storage owns, in two lines; without a storage data is NULL.
static void dump_S28_1(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_F32, 2, DIMS(3, 4)), *view = NULL;
    assert_tide_ok(tide_tensor_slice(t, 1, 1, 4, 2, &view, &err), &err);
    tide_text text = {0};
    tide_tensor_describe(view, &text);
    const char *line = tide_text_str(&text);
    assert_text_has(line,
                    "tensor float32 [3x2] strides [4,2] offset 4 B, size 24 B of capacity 252 B, alignment 256 B");
    assert_text_has(line, "cpu, strided, references 1\n");
    const char *second = strchr(line, '\n') + 1;
    assert_text_has(second, "capacity 256 B");
    assert_text_has(second, "kind Workspace");
    assert_int_equal(second[strlen(second) - 1], '\n');
    assert_ptr_equal(strchr(second, '\n'), second + strlen(second) - 1); // two lines, no more
    tide_text_deinit(&text);
    tide_tensor_unref(view);
    tide_tensor_reset(t);
    assert_null(tide_tensor_data(t));
    tide_tensor_describe(t, &text);
    assert_text_has(tide_text_str(&text), "tensor float32 [0] strides [1] offset 0 B, size 0 B of capacity 0 B");
    assert_text_has(tide_text_str(&text), "no storage, device cpu\n");
    tide_text_deinit(&text);
    tide_tensor_unref(t);
    bench_close(&b);
}

// ---- unknown extents ----

// PT-5: no bytes until it is known, and no storage; then it is a tensor like any other.
static void unknown_extents_PT_5(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    const tide_shape open = tide_shape_make(2, DIMS(TIDE_DIM_UNKNOWN, 4)), known = tide_shape_make(2, DIMS(3, 4));
    tide_storage s = storage_of(&b, 4096);
    tide_tensor *t = NULL, *other = NULL;
    tide_tensor_spec spec = spec_of(&b, TIDE_F32, 2, open.dims);
    assert_tide_status(tide_tensor_create(&spec, &other, &err), TIDE_ERR_INVALID); // memory needs a size
    assert_tide_ok(tide_tensor_create_unbound(TIDE_F32, &open, TIDE_CPU, &t, &err), &err);
    assert_false(tide_tensor_has_known_shape(t));
    assert_false(tide_tensor_is_contiguous(t));
    assert_int_equal(tide_tensor_size_bytes(t), 0);
    assert_null(tide_tensor_data(t));
    assert_tide_status(tide_tensor_bind(t, &s, 0, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "[?x4]");
    tide_data_ptr theirs = tide_data_ptr_bare(tide_storage_data(&s), TIDE_CPU);
    assert_tide_status(tide_tensor_bind_external(t, &theirs, 4096, TIDE_KIND_DEFAULT, NULL, &err), TIDE_ERR_INVALID);
    assert_non_null(theirs.data); // still the caller's
    assert_tide_status(tide_tensor_create_on(&s, 0, TIDE_F32, &open, &other, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_tensor_view(t, &known, &other, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_tensor_clone(t, &spec, &other, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_tensor_resize(t, &open, &spec, &err), TIDE_ERR_INVALID);
    assert_null(other);
    tide_text text = {0};
    tide_tensor_describe(t, &text);
    assert_text_has(tide_text_str(&text), "[?x4]");
    assert_text_has(tide_text_str(&text), "shape not known yet");
    tide_text_deinit(&text);
    assert_true(bench_n_allocs(&b) == 1); // the storage of the test itself

    assert_tide_ok(tide_tensor_set_shape(t, &known, &err), &err);
    assert_true(tide_tensor_has_known_shape(t) && tide_tensor_is_contiguous(t));
    assert_int_equal(tide_tensor_size_bytes(t), 48);
    assert_tide_ok(tide_tensor_bind(t, &s, 0, &err), &err);
    assert_ptr_equal(tide_tensor_data(t), tide_storage_data(&s));
    assert_tide_status(tide_tensor_set_shape(t, &open, &err), TIDE_ERR_INVALID); // memory is there: no way back
    tide_tensor_unbind(t);
    assert_tide_ok(tide_tensor_set_shape(t, &open, &err), &err);
    assert_tide_ok(tide_tensor_set_dtype(t, TIDE_I64, &err), &err);
    assert_false(tide_tensor_has_known_shape(t));
    tide_tensor_unref(t);
    t = NULL;
    const tide_shape negative = tide_shape_make(2, DIMS(TIDE_DIM_UNKNOWN, -4)), damaged = {.rank = 9};
    assert_tide_status(tide_tensor_create_unbound(TIDE_F32, &negative, TIDE_CPU, &t, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "[?x-4]");
    assert_tide_status(tide_tensor_create_unbound(TIDE_DTYPE_UNDEFINED, &open, TIDE_CPU, &t, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_tensor_create_unbound(TIDE_F32, &damaged, TIDE_CPU, &t, &err), TIDE_ERR_INVALID);
    assert_null(t);
    tide_storage_deinit(&s);
    bench_close(&b);
}

// ---- other types ----

// S28-12: another type over the same bytes: no allocation, too large is refused, nothing changed then.
static void types_change_in_place_S28_12(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_F32, 2, DIMS(8, 8)); // 256 B, no more room
    void *data = tide_tensor_data(t);
    assert_tide_ok(tide_tensor_set_dtype(t, TIDE_I32, &err), &err);
    assert_int_equal(((int32_t *)tide_tensor_data(t))[63], 63);
    assert_tide_ok(tide_tensor_set_dtype(t, TIDE_U8, &err), &err);
    assert_int_equal(tide_tensor_size_bytes(t), 64);
    assert_ptr_equal(tide_tensor_data(t), data);
    assert_tide_status(tide_tensor_set_dtype(t, TIDE_F64, &err), TIDE_ERR_NO_SPACE);
    assert_text_has(err.msg, "512 B");
    assert_text_has(err.msg, "256 B");
    assert_tide_status(tide_tensor_set_dtype(t, (tide_dtype)99, &err), TIDE_ERR_INVALID);
    assert_int_equal(tide_tensor_dtype(t), TIDE_U8);
    assert_int_equal(tide_tensor_size_bytes(t), 64);
    // At an odd address there are bytes only.
    tide_tensor *odd = NULL, *column = NULL;
    const tide_shape two = tide_shape_make(1, DIMS(2));
    assert_tide_ok(tide_tensor_create_on(tide_tensor_storage(t), 3, TIDE_U8, &two, &odd, &err), &err);
    assert_tide_status(tide_tensor_set_dtype(odd, TIDE_I16, &err), TIDE_ERR_INVALID);
    // Strides are elements: a column of a wider type steps over wider elements, as far as there is room.
    assert_tide_ok(tide_tensor_slice(t, 1, 0, 1, 1, &column, &err), &err);
    assert_tide_ok(tide_tensor_set_dtype(column, TIDE_I32, &err), &err);
    assert_int_equal(tide_tensor_strides(column)[0], 8);
    assert_tide_status(tide_tensor_set_dtype(column, TIDE_I64, &err), TIDE_ERR_NO_SPACE);
    assert_true(bench_n_allocs(&b) == 1);
    tide_tensor_unref(odd);
    tide_tensor_unref(column);
    tide_tensor_unref(t);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(layouts_LT_4),
        tide_unit_test(questions_S28_7),
        tide_unit_test(dump_S28_1),
        tide_unit_test(unknown_extents_PT_5),
        tide_unit_test(types_change_in_place_S28_12),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
