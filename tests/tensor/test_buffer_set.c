// SPDX-License-Identifier: MIT
//
// Buffer sets: totals, one block per (device, kind), views, what is refused, failures, backing by an arena.
#include "core/tensor/buffer_set.h"

#include "core/memory/poison.h"
#include "tests/tensor/tensor_test.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

static tide_buffer_set *make_set(const bench *b) {
    tide_error err = TIDE_ERROR_INIT;
    tide_buffer_set *s = NULL;
    assert_tide_ok(tide_buffer_set_create(b != NULL ? b->registry : NULL, &s, &err), &err);
    return s;
}

static size_t add(tide_buffer_set *s, tide_dtype dtype, int64_t n, tide_memory_kind kind, size_t align_bytes) {
    tide_error err = TIDE_ERROR_INIT;
    size_t index = SIZE_MAX;
    const tide_tensor_spec spec = {
        .dtype = dtype, .shape = tide_shape_make(1, &n), .kind = kind, .align_bytes = align_bytes, .tag = "x"};
    assert_tide_ok(tide_buffer_set_add_buffer(s, &spec, &index, &err), &err);
    return index;
}

static size_t add_view(tide_buffer_set *s, size_t buffer, size_t offset, tide_dtype dtype, int64_t n) {
    tide_error err = TIDE_ERROR_INIT;
    size_t index = SIZE_MAX;
    const tide_shape shape = tide_shape_make(1, &n);
    assert_tide_ok(tide_buffer_set_add_view(s, buffer, offset, dtype, &shape, &index, &err), &err);
    return index;
}

// LT-29: add buffers, add a view, prepare all; the total is the sum by hand, and what the allocators are asked for.
static void total_by_hand_LT_29(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_buffer_set *s = make_set(&b);
    assert_int_equal(add(s, TIDE_F32, 100, TIDE_KIND_WORKSPACE, 0), 0);     // 400 B -> 512
    assert_int_equal(add(s, TIDE_U8, 1, TIDE_KIND_WORKSPACE, 64), 1);       //   1 B -> 64
    assert_int_equal(add_view(s, 0, 200, TIDE_I16, 100), 2);                // of 0: nothing more
    assert_int_equal(add(s, TIDE_F64, 1000, TIDE_KIND_WORKSPACE, 4096), 3); // 8000 B -> 8192
    assert_int_equal(add(s, TIDE_F32, 0, TIDE_KIND_WORKSPACE, 0), 4);       //   0 B
    assert_int_equal(add(s, TIDE_I64, 33, TIDE_KIND_PERSISTENT, 256), 5);   // 264 B -> 512
    assert_int_equal(add(s, TIDE_F32, 1, TIDE_KIND_WORKSPACE, 1), 6);       //   4 B -> 4: at least an element
    assert_true(tide_buffer_set_total_bytes(s) == 512 + 64 + 8192 + 512 + 4);
    assert_null(tide_buffer_set_tensor(s, 0));
    assert_true(bench_n_allocs(&b) == 0);
    assert_tide_ok(tide_buffer_set_prepare(s, &err), &err);
    assert_true(bench_live_bytes(&b) == tide_buffer_set_total_bytes(s));
    assert_true(bench_n_allocs(&b) == 2); // one per kind
    assert_tide_ok(tide_buffer_set_prepare(s, &err), &err);
    assert_true(bench_n_allocs(&b) == 2);
    const tide_tensor_spec late = {.dtype = TIDE_F32, .shape = tide_shape_make(1, DIMS(1))};
    size_t index = 77;
    assert_tide_status(tide_buffer_set_add_buffer(s, &late, &index, &err), TIDE_ERR_BUSY);
    assert_int_equal(index, 77);

    static const size_t aligns[7] = {256, 64, 0, 4096, 0, 256, 4};
    static const size_t bytes[7] = {400, 1, 200, 8000, 0, 264, 4};
    for (size_t i = 0; i < 7; i++) {
        tide_tensor *t = tide_buffer_set_tensor(s, i);
        assert_int_equal(tide_tensor_size_bytes(t), bytes[i]);
        if (aligns[i] > 0) assert_int_equal((uintptr_t)tide_tensor_const_data(t) % aligns[i], 0);
        if (bytes[i] > 0) memset(tide_tensor_data(t), (int)i + 1, bytes[i]);
    }
    // Written one after another: no tensor changed its neighbour, and the view is inside its buffer.
    for (size_t i = 0; i < 7; i++) {
        const unsigned char *x = tide_tensor_const_data(tide_buffer_set_tensor(s, i));
        for (size_t k = 0; k < bytes[i]; k++) assert_int_equal(x[k], i == 0 && k >= 200 ? 3 : (int)i + 1);
    }
    assert_ptr_equal(tide_tensor_const_data(tide_buffer_set_tensor(s, 2)),
                     (const char *)tide_tensor_const_data(tide_buffer_set_tensor(s, 0)) + 200);
    assert_null(tide_tensor_const_data(tide_buffer_set_tensor(s, 4)));
    assert_null(tide_buffer_set_tensor(s, 7));
    // LT-37: those of a kind live in one block, next to each other.
    const tide_block *block = tide_tensor_storage(tide_buffer_set_tensor(s, 0))->block;
    assert_int_equal(block->mem.requested_bytes, 512 + 64 + 8192 + 4);
    assert_int_equal(block->kind, TIDE_KIND_WORKSPACE);
    static const size_t workspace[] = {1, 2, 3, 6};
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(tide_tensor_storage(tide_buffer_set_tensor(s, workspace[i]))->block, block);
    assert_ptr_not_equal(tide_tensor_storage(tide_buffer_set_tensor(s, 5))->block, block);
    // A tensor that is still referenced stays.
    tide_tensor *kept = tide_tensor_ref(tide_buffer_set_tensor(s, 5));
    tide_buffer_set_destroy(s);
    assert_true(bench_live_bytes(&b) == 512);
    assert_int_equal(((const unsigned char *)tide_tensor_const_data(kept))[263], 6);
    tide_tensor_unref(kept);
    bench_close(&b);
}

static void what_cannot_be_declared(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_buffer_set *s = make_set(&b);
    size_t index = 77;
    tide_tensor_spec spec = {.dtype = TIDE_F32, .shape = tide_shape_make(1, DIMS(-1)), .tag = "bad"};
    assert_tide_status(tide_buffer_set_add_buffer(s, &spec, &index, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "buffer 'bad'");
    spec.shape = tide_shape_make(1, DIMS(10));
    spec.align_bytes = 48;
    assert_tide_status(tide_buffer_set_add_buffer(s, &spec, &index, &err), TIDE_ERR_INVALID);
    spec.align_bytes = 0;
    spec.kind = TIDE_KIND_HOST_PINNED;
    spec.device.type = TIDE_DEVICE_CUDA;
    assert_tide_status(tide_buffer_set_add_buffer(s, &spec, &index, &err), TIDE_ERR_INVALID);
    spec = (tide_tensor_spec){.dtype = TIDE_U8, .shape = tide_shape_make(1, DIMS(INT64_MAX - 255))};
    assert_tide_ok(tide_buffer_set_add_buffer(s, &spec, &index, &err), &err);
    assert_tide_ok(tide_buffer_set_add_buffer(s, &spec, &index, &err), &err);
    assert_tide_status(tide_buffer_set_add_buffer(s, &spec, &index, &err), TIDE_ERR_OVERFLOW); // the sum
    assert_tide_status(tide_buffer_set_prepare(s, &err), TIDE_ERR_NOMEM);
    assert_text_has(err.msg, "buffer set");
    tide_buffer_set_destroy(s);

    s = make_set(&b);
    const size_t buffer = add(s, TIDE_F32, 10, TIDE_KIND_DEFAULT, 0); // 40 B, rounded to 256
    const size_t view = add_view(s, buffer, 0, TIDE_F32, 10);
    static const struct {
        size_t buffer, offset;
        tide_dtype dtype;
        int64_t n;
    } rows[] = {{0, 4, TIDE_F32, 10}, // past the buffer, though inside what it is rounded to
                {0, 41, TIDE_U8, 0},  {0, SIZE_MAX, TIDE_U8, 1}, {0, SIZE_MAX - 3, TIDE_F32, 2},
                {0, 2, TIDE_F32, 1}, // an address no float may have
                {0, 0, TIDE_F32, -1}, {0, 0, (tide_dtype)99, 1}, {7, 0, TIDE_U8, 1},
                {1, 0, TIDE_U8, 1}}; // a view of a view
    assert_int_equal(view, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_shape shape = tide_shape_make(1, &rows[i].n);
        index = 77;
        if (tide_buffer_set_add_view(s, rows[i].buffer, rows[i].offset, rows[i].dtype, &shape, &index, &err) !=
                TIDE_ERR_INVALID ||
            index != 77)
            fail_msg("row %zu was taken", i);
    }
    assert_int_equal(add_view(s, buffer, 40, TIDE_U8, 0), 2);
    assert_tide_ok(tide_buffer_set_prepare(s, &err), &err);
    tide_buffer_set_destroy(s);
    tide_buffer_set_destroy(NULL);
    assert_tide_ok(tide_buffer_set_create(NULL, &s, &err), &err); // the registry of the process, and nothing in it
    assert_tide_ok(tide_buffer_set_prepare(s, &err), &err);
    assert_true(tide_buffer_set_total_bytes(s) == 0);
    tide_buffer_set_destroy(s);
    bench_close(&b);
}

// Sets of random buffers: apart from each other, aligned, and the sum is what is allocated.
static void random_sets(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_rng rng = {29};
    for (int round = 0; round < 200; round++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_buffer_set *s = make_set(&b);
        const size_t n = 1 + tide_rng_below(&rng, 20);
        size_t aligns[20];
        uint64_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            aligns[i] = (size_t)1 << tide_rng_below(&rng, 13);
            const int64_t bytes = (int64_t)tide_rng_below(&rng, 3000);
            add(s, TIDE_U8, bytes, (tide_memory_kind)tide_rng_below(&rng, 3), aligns[i]);
            sum += ((uint64_t)bytes + aligns[i] - 1) / aligns[i] * aligns[i];
        }
        assert_true(tide_buffer_set_total_bytes(s) == sum);
        assert_tide_ok(tide_buffer_set_prepare(s, &err), &err);
        assert_true(bench_live_bytes(&b) == sum);
        for (size_t i = 0; i < n; i++) {
            tide_tensor *t = tide_buffer_set_tensor(s, i);
            assert_int_equal((uintptr_t)tide_tensor_const_data(t) % aligns[i], 0);
            if (tide_tensor_size_bytes(t) > 0) memset(tide_tensor_data(t), (int)i, tide_tensor_capacity_bytes(t));
        }
        for (size_t i = 0; i < n; i++) {
            const tide_tensor *t = tide_buffer_set_tensor(s, i);
            const unsigned char *x = tide_tensor_const_data(t);
            for (size_t k = 0; k < tide_tensor_size_bytes(t); k++) assert_int_equal(x[k], i);
        }
        tide_buffer_set_destroy(s);
    }
    bench_close(&b);
}

// The 1st, 2nd … piece of host memory or block fails: nothing is taken, and the set can be prepared later.
static void memory_ends_while_preparing(void **state) {
    (void)state;
    for (int blocks = 0; blocks < 2; blocks++) {
        bench b;
        bench_open(&b);
        tide_error err = TIDE_ERROR_INIT;
        tide_buffer_set *s = make_set(&b);
        add(s, TIDE_F32, 10, TIDE_KIND_WORKSPACE, 0);
        add(s, TIDE_F32, 10, TIDE_KIND_PERSISTENT, 0);
        add(s, TIDE_F32, 10, TIDE_KIND_WORKSPACE, 0);
        add_view(s, 1, 4, TIDE_F32, 9);
        int n_failures = 0;
        for (;; n_failures++) {
            assert_true(n_failures < 50);
            tide_host_stats before, after;
            tide_host_get_stats(&before);
            if (blocks == 1)
                assert_tide_ok(tide_fail_nth_arm(b.nth, n_failures, &err), &err);
            else
                tide_host_fail_after(n_failures);
            const tide_status st = tide_buffer_set_prepare(s, &err);
            tide_host_fail_after(-1);
            assert_tide_ok(tide_fail_nth_arm(b.nth, -1, &err), &err);
            if (st == TIDE_OK) break;
            assert_tide_status(st, TIDE_ERR_NOMEM);
            tide_host_get_stats(&after);
            assert_true(bench_live_bytes(&b) == 0 && after.n_live == before.n_live);
            for (size_t i = 0; i < 4; i++) assert_null(tide_buffer_set_tensor(s, i));
        }
        assert_int_equal(n_failures, blocks == 1 ? 2 : 6); // two blocks, or their records and four tensors
        assert_true(bench_live_bytes(&b) == tide_buffer_set_total_bytes(s));
        tide_buffer_set_destroy(s);
        // Declaring needs memory too.
        s = make_set(&b);
        const tide_tensor_spec spec = {.dtype = TIDE_F32, .shape = tide_shape_make(1, DIMS(4))};
        size_t index = 77;
        tide_host_fail_after(0);
        assert_tide_status(tide_buffer_set_add_buffer(s, &spec, &index, &err), TIDE_ERR_NOMEM);
        tide_host_fail_after(-1);
        assert_int_equal(index, 77);
        assert_true(tide_buffer_set_total_bytes(s) == 0);
        tide_buffer_set_destroy(s);
        bench_close(&b);
    }
}

// LT-37: workspace tensors out of an arena; it cannot be rewound under them, and what is left over after the reset is
// marked in debug builds, so that stale use is seen.
static void workspace_in_an_arena_LT_37(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *arena = NULL;
    tide_registry *registry = NULL;
    assert_tide_ok(tide_arena_create(b.a, 16384, 0, &arena, &err), &err);
    assert_tide_ok(tide_registry_create(&registry, &err), &err);
    assert_tide_ok(tide_registry_add(registry, TIDE_KIND_WORKSPACE, arena, 0, &err), &err);
    tide_buffer_set *s = NULL;
    assert_tide_ok(tide_buffer_set_create(registry, &s, &err), &err);
    for (int i = 0; i < 4; i++) add(s, TIDE_F32, 500, TIDE_KIND_WORKSPACE, 0);
    assert_tide_ok(tide_buffer_set_prepare(s, &err), &err);
    assert_true(bench_n_allocs(&b) == 1); // the arena's own
    assert_true(stats_of(arena).requested_bytes == tide_buffer_set_total_bytes(s));
    unsigned char *stale = tide_tensor_data(tide_buffer_set_tensor(s, 2));
    memset(stale, 0x11, 2000);
    assert_tide_status(tide_allocator_reset(arena, &err), TIDE_ERR_BUSY);
    assert_int_equal(stale[1999], 0x11);
    tide_buffer_set_destroy(s);
    assert_tide_ok(tide_allocator_reset(arena, &err), &err);
#ifdef __SANITIZE_ADDRESS__
    assert_true(__asan_address_is_poisoned(stale));
#elif !defined(NDEBUG)
    assert_int_equal(stale[0], TIDE_POISON_BYTE);
    assert_int_equal(stale[1999], TIDE_POISON_BYTE);
#endif
    tide_registry_destroy(registry);
    tide_allocator_unref(arena);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(total_by_hand_LT_29),
        tide_unit_test(what_cannot_be_declared),
        tide_unit_test(random_sets),
        tide_unit_test(memory_ends_while_preparing),
        tide_unit_test(workspace_in_an_arena_LT_37),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
