// SPDX-License-Identifier: MIT
//
// Strided views against plain index arithmetic, what is refused, and who may write.
#include "tests/tensor/tensor_test.h"

// ---- one storage, many views ----

// X-2, PT-24: the same view by elements and by bytes is at the same address; rows 100 to 200 allocate nothing.
static void one_view_two_ways_X_2(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_F32, 2, DIMS(1000, 1000));
    const tide_shape part = tide_shape_make(2, DIMS(100, 1000));
    tide_tensor *by_bytes = NULL, *by_elements = NULL, *by_rows = NULL;
    const uint32_t users = tide_storage_use_count(tide_tensor_storage(t));
    assert_tide_ok(tide_tensor_create_on(tide_tensor_storage(t), 400000, TIDE_F32, &part, &by_bytes, &err), &err);
    assert_tide_ok(tide_tensor_as_strided(t, &part, DIMS(1000, 1), 100000, &by_elements, &err), &err);
    assert_tide_ok(tide_tensor_slice(t, 0, 100, 200, 1, &by_rows, &err), &err);
    assert_int_equal(tide_storage_use_count(tide_tensor_storage(t)), users + 3);
    const tide_tensor *all[3] = {by_bytes, by_elements, by_rows};
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(tide_tensor_const_data(all[i]), (const float *)tide_tensor_const_data(t) + 100000);
        assert_int_equal(tide_tensor_offset_elements(all[i]), 100000);
        assert_int_equal(tide_tensor_offset_bytes(all[i]), 400000);
        assert_true(tide_shape_equal(tide_tensor_shape(all[i]), &part));
        assert_int_equal(tide_tensor_strides(all[i])[0], 1000);
        assert_int_equal(tide_tensor_strides(all[i])[1], 1);
        assert_true(tide_tensor_is_contiguous(all[i]));
    }
    assert_true(bench_n_allocs(&b) == 1);
    tide_tensor_unref(by_bytes);
    tide_tensor_unref(by_elements);
    tide_tensor_unref(by_rows);
    tide_tensor_unref(t);
    bench_close(&b);
}

// LT-5: two views of different offset, shape and strides over one storage see each other's writes where they meet.
static void views_that_overlap_LT_5(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_I32, 2, DIMS(4, 4)), *rows = NULL, *columns = NULL;
    assert_tide_ok(tide_tensor_slice(t, 0, 1, 3, 1, &rows, &err), &err);    // elements 4 … 11
    assert_tide_ok(tide_tensor_slice(t, 1, 0, 4, 2, &columns, &err), &err); // 0, 2, 4, 6, …
    int32_t *r = tide_tensor_data(rows);
    r[2] = -6; // element 6 of the base: row 1, column 2
    assert_int_equal(((const int32_t *)tide_tensor_const_data(columns))[1 * 4 + 1 * 2], -6);
    ((int32_t *)tide_tensor_data(columns))[2 * 4] = -8; // element 8: row 2, column 0
    assert_int_equal(r[4], -8);
    assert_int_equal(((const int32_t *)tide_tensor_const_data(t))[8], -8);
    assert_int_equal(((const int32_t *)tide_tensor_const_data(t))[5], 5);
    tide_tensor_unref(t);
    assert_int_equal(((const int32_t *)tide_tensor_const_data(columns))[2], 2); // the base is gone, the block is not
    tide_tensor_unref(rows);
    tide_tensor_unref(columns);
    bench_close(&b);
}

// LT-6: who needs elements side by side asks for them: itself when they are, a copy when they are not.
static void contiguous_on_demand_LT_6(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor_spec spec = spec_of(&b, TIDE_U8, 2, DIMS(3, 4));
    spec.align_bytes = 512;
    spec.tag = "weights";
    tide_tensor *t = make(&spec), *turned = NULL, *flat = NULL, *same = NULL;
    for (int i = 0; i < 12; i++) ((unsigned char *)tide_tensor_data(t))[i] = (unsigned char)i;
    assert_tide_ok(tide_tensor_contiguous(t, &same, &err), &err);
    assert_ptr_equal(same, t);
    assert_int_equal(tide_tensor_use_count(t), 2);
    tide_tensor_unref(same);
    assert_tide_ok(tide_tensor_permute(t, (int32_t[]){1, 0}, &turned, &err), &err);
    const tide_shape line = tide_shape_make(1, DIMS(12));
    assert_tide_status(tide_tensor_view(turned, &line, &same, &err), TIDE_ERR_INVALID); // never misread
    assert_text_has(err.msg, "gaps");
    assert_tide_ok(tide_tensor_contiguous(turned, &flat, &err), &err);
    static const unsigned char want[12] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
    assert_memory_equal(tide_tensor_const_data(flat), want, 12);
    // As its block was made: kind, alignment, tag, allocator.
    const tide_block *block = tide_tensor_storage(flat)->block;
    assert_int_equal(block->kind, TIDE_KIND_WORKSPACE);
    assert_string_equal(block->tag, "weights");
    assert_ptr_equal(block->owner, b.a);
    assert_int_equal((uintptr_t)block->mem.data % 512, 0);
    assert_int_equal(block->mem.requested_bytes, 512);
    tide_tensor_unref(flat);
    tide_tensor_unref(turned);
    tide_tensor_unref(t);
    // Memory that no allocator gave: the registry of the process, same kind.
    unsigned char theirs[6] = {0, 1, 2, 3, 4, 5};
    const tide_shape two = tide_shape_make(2, DIMS(2, 3));
    assert_tide_ok(tide_tensor_borrow(theirs, 6, TIDE_U8, &two, TIDE_KIND_PERSISTENT, &t, &err), &err);
    assert_tide_ok(tide_tensor_permute(t, (int32_t[]){1, 0}, &turned, &err), &err);
    assert_tide_ok(tide_tensor_contiguous(turned, &flat, &err), &err);
    assert_int_equal(tide_tensor_kind(flat), TIDE_KIND_PERSISTENT);
    assert_int_equal(((const unsigned char *)tide_tensor_const_data(flat))[1], 3);
    tide_tensor_unref(flat);
    tide_tensor_unref(turned);
    tide_tensor_unref(t);
    bench_close(&b);
}

// ---- bounds ----

static void views_stay_inside(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_F32, 2, DIMS(8, 8)); // 64 elements = 256 B, all there is
    tide_tensor *none = NULL;
    static const struct {
        int32_t dim;
        int64_t begin, end, step;
    } slices[] = {{0, 0, 9, 1}, {0, -1, 8, 1}, {0, 5, 4, 1},         {1, 0, 8, 0},         {1, 0, 8, -1},
                  {2, 0, 1, 1}, {-1, 0, 1, 1}, {0, 0, INT64_MAX, 1}, {0, INT64_MIN, 0, 1}, {0, 9, 9, 1}};
    for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++)
        assert_tide_status(
            tide_tensor_slice(t, slices[i].dim, slices[i].begin, slices[i].end, slices[i].step, &none, &err),
            TIDE_ERR_INVALID);
    static const int32_t orders[][2] = {{0, 0}, {1, 1}, {0, 2}, {-1, 0}, {INT32_MAX, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        assert_tide_status(tide_tensor_permute(t, orders[i], &none, &err), TIDE_ERR_INVALID);
    static const struct {
        int32_t rank;
        int64_t dims[3], strides[3], offset;
        tide_status want;
    } rows[] = {
        {1, {64}, {1}, 0, TIDE_OK},
        {1, {64}, {1}, 1, TIDE_ERR_INVALID},
        {1, {65}, {1}, 0, TIDE_ERR_INVALID},
        {2, {2, 2}, {62, 1}, 0, TIDE_OK},
        {2, {2, 2}, {63, 1}, 0, TIDE_ERR_INVALID},
        {1, {1}, {1}, 63, TIDE_OK},
        {1, {1}, {1}, 64, TIDE_ERR_INVALID},
        {1, {0}, {1}, 64, TIDE_OK},
        {1, {0}, {1}, 65, TIDE_ERR_INVALID},
        {1, {2}, {-1}, 1, TIDE_ERR_INVALID},
        {1, {1}, {1}, -1, TIDE_ERR_INVALID},
        {1, {2}, {INT64_MAX}, 0, TIDE_ERR_OVERFLOW},
        {1, {2}, {INT64_MAX / 4}, 0, TIDE_ERR_OVERFLOW},
        {2, {INT64_C(1) << 32, 2}, {INT64_C(1) << 32, 1}, 0, TIDE_ERR_OVERFLOW},
        {3, {3, 3, 3}, {INT64_C(1) << 61, INT64_C(1) << 61, INT64_C(1) << 61}, 0, TIDE_ERR_OVERFLOW}, // 0 if it wrapped
        {1, {INT64_C(1) << 60}, {0}, 0, TIDE_OK}, // 2^62 B of repeated element 0: no byte outside
        {1, {INT64_MAX}, {0}, 0, TIDE_ERR_OVERFLOW},
        {1, {1}, {1}, INT64_MAX, TIDE_ERR_INVALID},
        {1, {1}, {1}, INT64_MAX / 2, TIDE_ERR_INVALID}, // times 4 is 2^64 - 4: -4 if it wrapped
        {1, {-1}, {1}, 0, TIDE_ERR_INVALID},            // unknown
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_shape shape = tide_shape_make(rows[i].rank, rows[i].dims);
        tide_tensor *got = NULL;
        const tide_status st = tide_tensor_as_strided(t, &shape, rows[i].strides, rows[i].offset, &got, &err);
        if (st != rows[i].want) fail_msg("row %zu: %s %s", i, tide_status_name(st), err.msg);
        assert_true((got != NULL) == (st == TIDE_OK));
        tide_tensor_unref(got);
    }
    static const struct {
        int32_t rank;
        int64_t dims[3];
    } expands[] = {{1, {8}}, {2, {8, 9}}, {2, {4, 8}}, {3, {8, 8, 2}}, {0, {0}}, {3, {-1, 8, 8}}};
    for (size_t i = 0; i < sizeof expands / sizeof expands[0]; i++) {
        const tide_shape shape = tide_shape_make(expands[i].rank, expands[i].dims);
        assert_tide_status(tide_tensor_expand(t, &shape, &none, &err), TIDE_ERR_INVALID);
    }
    assert_null(none);
    tide_tensor_unref(t);
    // Nothing to see without a storage.
    const tide_shape two = tide_shape_make(1, DIMS(2));
    assert_tide_ok(tide_tensor_create_unbound(TIDE_F32, &two, TIDE_CPU, &t, &err), &err);
    assert_tide_status(tide_tensor_slice(t, 0, 0, 1, 1, &none, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_tensor_permute(t, (int32_t[]){0}, &none, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_tensor_expand(t, &two, &none, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_tensor_as_strided(t, &two, DIMS(1), 0, &none, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "without a storage");
    assert_null(none);
    tide_tensor_unref(t);
    bench_close(&b);
}

// A repeated element cannot be written: data is NULL, and the log says why.
static void repeated_elements_are_read_only(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *t = make_counting(&b, TIDE_F32, 2, DIMS(3, 1)), *wide = NULL, *same = NULL, *one = NULL;
    const tide_shape shape = tide_shape_make(3, DIMS(2, 3, 5)), own = tide_shape_make(2, DIMS(3, 1)),
                     single = tide_shape_make(3, DIMS(1, 3, 1));
    assert_tide_ok(tide_tensor_expand(t, &shape, &wide, &err), &err);
    assert_int_equal(tide_tensor_size_bytes(wide), 120); // more than the capacity: elements, not memory
    assert_int_equal(tide_tensor_strides(wide)[0], 0);
    assert_int_equal(tide_tensor_strides(wide)[2], 0);
    void *data = &err;
    assert_tide_status(tide_tensor_write(wide, &data, &err), TIDE_ERR_INVALID);
    assert_null(data);
    assert_text_has(err.msg, "[2x3x5]");
    last_line line = {0};
    tide_log_set(keep_line, &line, TIDE_LOG_ERROR);
    assert_null(tide_tensor_data(wide));
    tide_log_set(NULL, NULL, TIDE_LOG_ERROR);
    assert_int_equal(line.n, 1);
    assert_text_has(line.text, "'t' cannot be written");
    assert_text_has(line.text, "share bytes");
    assert_non_null(tide_tensor_const_data(wide));
    // Where nothing is repeated, an expanded view is like any other.
    assert_tide_ok(tide_tensor_expand(t, &own, &same, &err), &err);
    assert_tide_ok(tide_tensor_expand(t, &single, &one, &err), &err);
    assert_ptr_equal(tide_tensor_data(same), tide_tensor_data(t));
    assert_ptr_equal(tide_tensor_data(one), tide_tensor_data(t));
    // A clone of it has each element for itself.
    tide_tensor *clone = NULL;
    const tide_tensor_spec where = spec_of(&b, TIDE_F32, 0, NULL);
    assert_tide_ok(tide_tensor_clone(wide, &where, &clone, &err), &err);
    assert_non_null(tide_tensor_data(clone));
    tide_tensor_unref(clone);
    tide_tensor_unref(wide);
    tide_tensor_unref(same);
    tide_tensor_unref(one);
    tide_tensor_unref(t);
    bench_close(&b);
}

// ---- chains of views against a list of indices ----

enum { BASE_MAX = 240, LIST_MAX = 2000 };

/// What a view is: for each element, in row-major order, which element of the base.
typedef struct oracle_view {
    tide_shape shape;
    int n;
    int index[LIST_MAX];
} oracle_view;

/// New list by asking, for each element of the new shape, which one of the old it is.
typedef struct oracle_step {
    enum { SLICE, PERMUTE, EXPAND } what;
    int32_t dim;
    int64_t begin, end, step;
    int32_t order[TIDE_MAX_RANK];
    tide_shape shape;
} oracle_step;

static int64_t product(const tide_shape *s) {
    int64_t n = 1;
    for (int32_t i = 0; i < s->rank; i++) n *= s->dims[i];
    return n;
}

static tide_shape shape_after(const oracle_view *v, const oracle_step *s) {
    tide_shape next = v->shape;
    if (s->what == SLICE) {
        next.dims[s->dim] = 0;
        for (int64_t i = s->begin; i < s->end; i += s->step) next.dims[s->dim]++;
    }
    for (int32_t i = 0; s->what == PERMUTE && i < next.rank; i++) next.dims[i] = v->shape.dims[s->order[i]];
    return s->what == EXPAND ? s->shape : next;
}

static void oracle_apply(oracle_view *v, const oracle_step *s) {
    static oracle_view next;
    next.shape = shape_after(v, s);
    next.n = (int)product(&next.shape);
    for (int k = 0; k < next.n; k++) {
        int64_t at[TIDE_MAX_RANK] = {0}, old[TIDE_MAX_RANK] = {0}, rest = k;
        for (int32_t i = next.shape.rank; i-- > 0;) {
            at[i] = rest % next.shape.dims[i];
            rest /= next.shape.dims[i];
        }
        const int32_t added = next.shape.rank - v->shape.rank;
        for (int32_t i = 0; i < v->shape.rank; i++) {
            if (s->what == SLICE) old[i] = i == s->dim ? s->begin + at[i] * s->step : at[i];
            if (s->what == PERMUTE) old[s->order[i]] = at[i];
            if (s->what == EXPAND) old[i] = v->shape.dims[i] == 1 ? 0 : at[i + added];
        }
        int64_t flat = 0;
        for (int32_t i = 0; i < v->shape.rank; i++) flat = flat * v->shape.dims[i] + old[i];
        next.index[k] = v->index[flat];
    }
    *v = next;
}

static oracle_step random_step(const oracle_view *v, tide_rng *rng) {
    oracle_step s = {.what = (int)tide_rng_below(rng, 3)};
    const int32_t rank = v->shape.rank;
    if (s.what == SLICE) {
        s.dim = (int32_t)tide_rng_below(rng, (uint64_t)rank);
        const int64_t extent = v->shape.dims[s.dim];
        s.begin = (int64_t)tide_rng_below(rng, (uint64_t)extent + 1);
        s.end = s.begin + (int64_t)tide_rng_below(rng, (uint64_t)(extent - s.begin) + 1);
        s.step = tide_rng_below(rng, 20) == 0 ? INT64_MAX : 1 + (int64_t)tide_rng_below(rng, 3);
        if (s.step == INT64_MAX && s.end > s.begin + 1) s.step = 1; // the oracle adds steps
        if (s.step == INT64_MAX) s.step = 1 + (INT64_C(1) << 61);
    } else if (s.what == PERMUTE) {
        for (int32_t i = 0; i < rank; i++) s.order[i] = i;
        for (int32_t i = rank; i-- > 1;) {
            const int32_t j = (int32_t)tide_rng_below(rng, (uint64_t)i + 1), x = s.order[i];
            s.order[i] = s.order[j];
            s.order[j] = x;
        }
    } else {
        const int32_t added = rank < 5 ? (int32_t)tide_rng_below(rng, 2) : 0;
        s.shape.rank = rank + added;
        if (added == 1) s.shape.dims[0] = 1 + (int64_t)tide_rng_below(rng, 3);
        for (int32_t i = 0; i < rank; i++)
            s.shape.dims[i + added] = v->shape.dims[i] == 1 ? (int64_t)tide_rng_below(rng, 4) : v->shape.dims[i];
        if (product(&s.shape) > LIST_MAX) s.shape = v->shape;
    }
    return s;
}

static tide_tensor *apply(tide_tensor *t, const oracle_step *s) {
    tide_error err = TIDE_ERROR_INIT;
    tide_tensor *next = NULL;
    if (s->what == SLICE) assert_tide_ok(tide_tensor_slice(t, s->dim, s->begin, s->end, s->step, &next, &err), &err);
    if (s->what == PERMUTE) assert_tide_ok(tide_tensor_permute(t, s->order, &next, &err), &err);
    if (s->what == EXPAND) assert_tide_ok(tide_tensor_expand(t, &s->shape, &next, &err), &err);
    tide_tensor_unref(t);
    return next;
}

static bool has_twice(const oracle_view *v) {
    bool seen[BASE_MAX] = {false};
    for (int k = 0; k < v->n; k++) {
        if (seen[v->index[k]]) return true;
        seen[v->index[k]] = true;
    }
    return false;
}

static void assert_view(const bench *b, tide_tensor *t, const oracle_view *v) {
    tide_error err = TIDE_ERROR_INIT;
    assert_true(tide_shape_equal(tide_tensor_shape(t), &v->shape));
    bool consecutive = true;
    for (int k = 0; k < v->n; k++) consecutive = consecutive && v->index[k] == v->index[0] + k;
    assert_true(tide_tensor_is_contiguous(t) == consecutive);
    void *unused;
    assert_int_equal(tide_tensor_write(t, &unused, NULL), has_twice(v) ? TIDE_ERR_INVALID : TIDE_OK);
    const size_t size = tide_dtype_size(tide_tensor_dtype(t));
    assert_int_equal(tide_tensor_size_bytes(t), (size_t)v->n * size);
    tide_tensor *clone = NULL;
    const tide_tensor_spec where = spec_of(b, TIDE_F32, 0, NULL);
    assert_tide_ok(tide_tensor_clone(t, &where, &clone, &err), &err);
    for (int k = 0; k < v->n; k++)
        assert_true(element_at(tide_tensor_const_data(clone), size, (size_t)k) == (uint64_t)v->index[k]);
    tide_tensor_unref(clone);
}

static void random_chains_of_views(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    static const tide_dtype types[] = {TIDE_U8, TIDE_I16, TIDE_F32, TIDE_F64};
    static oracle_view v;
    tide_rng rng = {2024};
    int n_twice = 0, n_gaps = 0;
    for (int round = 0; round < 1500; round++) {
        v.shape = tide_shape_make(3, DIMS(1 + (int64_t)tide_rng_below(&rng, 6), 1 + (int64_t)tide_rng_below(&rng, 6),
                                          1 + (int64_t)tide_rng_below(&rng, 6)));
        v.n = (int)product(&v.shape);
        for (int k = 0; k < v.n; k++) v.index[k] = k;
        tide_tensor *t = make_counting(&b, types[tide_rng_below(&rng, 4)], v.shape.rank, v.shape.dims);
        for (int n_steps = 1 + (int)tide_rng_below(&rng, 6); n_steps > 0; n_steps--) {
            const oracle_step s = random_step(&v, &rng);
            oracle_apply(&v, &s);
            t = apply(t, &s);
            assert_view(&b, t, &v);
            n_twice += has_twice(&v);
            n_gaps += !tide_tensor_is_contiguous(t);
        }
        tide_tensor_unref(t);
    }
    assert_true(n_twice > 200 && n_gaps > 500); // the interesting ones did occur
    bench_close(&b);
}

// Any layout: accepted when and only when its farthest element is inside; what may be written has no element twice.
static void random_layouts_stay_inside(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_rng rng = {7};
    tide_tensor *base = make_counting(&b, TIDE_U8, 1, DIMS(256)); // its storage has exactly 256 elements
    int n_inside = 0, n_written = 0, n_shared = 0;
    for (int round = 0; round < 20000; round++) {
        tide_shape shape = {.rank = (int32_t)tide_rng_below(&rng, 4)};
        int64_t strides[TIDE_MAX_RANK] = {0}, farthest = (int64_t)tide_rng_below(&rng, 200);
        const int64_t offset = farthest;
        for (int32_t i = 0; i < shape.rank; i++) {
            shape.dims[i] = (int64_t)tide_rng_below(&rng, 6);
            strides[i] = (int64_t)tide_rng_below(&rng, 25);
            farthest += (shape.dims[i] - 1) * strides[i];
        }
        const int64_t n = product(&shape);
        tide_tensor *t = NULL;
        const tide_status st = tide_tensor_as_strided(base, &shape, strides, offset, &t, NULL);
        assert_int_equal(st, n == 0 || farthest < 256 ? TIDE_OK : TIDE_ERR_INVALID);
        if (st != TIDE_OK) continue;
        n_inside++;
        bool seen[256] = {false}, twice = false;
        for (int64_t k = 0; k < n; k++) {
            int64_t at = offset, rest = k;
            for (int32_t i = shape.rank; i-- > 0;) {
                at += rest % shape.dims[i] * strides[i];
                rest /= shape.dims[i];
            }
            twice = twice || seen[at];
            seen[at] = true;
        }
        void *unused;
        const bool written = tide_tensor_write(t, &unused, NULL) == TIDE_OK;
        assert_false(written && twice);
        n_written += written && n > 0;
        n_shared += twice;
        tide_tensor_unref(t);
    }
    assert_true(n_inside > 5000 && n_written > 1000 && n_shared > 1000);
    tide_tensor_unref(base);
    bench_close(&b);
}

// without elements strides mean nothing, however large: no view of such a tensor counts with them.
static void strides_without_elements_X_2(void **state) {
    (void)state;
    static const int32_t swap[] = {1, 0};
    const tide_shape none = tide_shape_make(2, DIMS(8, 0)), more = tide_shape_make(3, DIMS(3, 8, 0));
    tide_error err = TIDE_ERROR_INIT;
    bench b;
    bench_open(&b);
    tide_tensor *base = make_counting(&b, TIDE_F32, 1, DIMS(16)), *t, *made[3];
    assert_tide_ok(tide_tensor_as_strided(base, &none, DIMS(INT64_MAX, INT64_MAX), 4, &t, &err), &err);
    assert_tide_ok(tide_tensor_slice(t, 0, 1, 8, 3, &made[0], &err), &err);
    assert_tide_ok(tide_tensor_permute(t, swap, &made[1], &err), &err);
    assert_tide_ok(tide_tensor_expand(t, &more, &made[2], &err), &err);
    assert_int_equal(tide_tensor_shape(made[0])->dims[0], 3);
    for (size_t i = 0; i < 3; i++) {
        tide_tensor *copy;
        assert_int_equal(tide_tensor_size_bytes(made[i]), 0);
        assert_int_equal(tide_tensor_offset_bytes(made[i]), 16);
        assert_tide_ok(tide_tensor_clone(made[i], NULL, &copy, &err), &err);
        tide_tensor_unref(copy);
        assert_tide_ok(tide_tensor_lazy_clone(made[i], NULL, &copy, NULL, &err), &err);
        tide_tensor_unref(copy);
        tide_tensor_unref(made[i]);
    }
    tide_tensor_unref(t);
    tide_tensor_unref(base);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(one_view_two_ways_X_2),           tide_unit_test(views_that_overlap_LT_5),
        tide_unit_test(contiguous_on_demand_LT_6),       tide_unit_test(views_stay_inside),
        tide_unit_test(repeated_elements_are_read_only), tide_unit_test(random_chains_of_views),
        tide_unit_test(random_layouts_stay_inside),      tide_unit_test(strides_without_elements_X_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
