// SPDX-License-Identifier: MIT
//
// Blocks and storages: who frees what, once; slices and their bounds.
#include "memory_test.h"

// ---- an allocator that only writes down what is asked of it ----

typedef struct mock {
    int n_allocs, n_releases;
    tide_alloc_request asked;
    tide_memory released;
    tide_stream_id released_stream;
    bool fails;
    char order[8]; ///< 'r' release, 'd' destroy, as they come
    _Alignas(256) char bytes[1024];
} mock;

static void note(mock *m, char what) {
    const size_t n = strlen(m->order);
    if (n + 1 < sizeof m->order) m->order[n] = what;
}

static tide_status mock_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    mock *m = self;
    if (m->fails) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "mock has nothing");
    m->n_allocs++;
    m->asked = *req;
    out->data = m->bytes;
    out->reserved_bytes = sizeof m->bytes;
    out->context = m;
    return TIDE_OK;
}
static void mock_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    mock *m = self;
    m->n_releases++;
    m->released = *mem;
    m->released_stream = last_stream;
    note(m, 'r');
}
static void mock_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    *out = (tide_allocator_stats){0};
}
static void mock_destroy(void *self) { note(self, 'd'); }

static const tide_allocator_ops mock_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                            .name = "mock",
                                            .alloc = mock_alloc,
                                            .release = mock_release,
                                            .stats = mock_stats,
                                            .destroy = mock_destroy};

static tide_allocator *make_mock(mock *m, tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    memset(m, 0, sizeof *m);
    assert_tide_ok(tide_allocator_create(&mock_ops, m, device, &a, &err), &err);
    return a;
}

// ---- blocks ----

// LT-8, LT-9, LT-3: what a block knows, and that its owner hears of its end once, before the owner goes.
static void owned_block_is_given_back_once(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    char tag[16] = "conv1.out";
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 100, 0, TIDE_KIND_WORKSPACE, 5, tag, &b, &err), &err);
    memset(tag, 'x', sizeof tag - 1); // the block has a copy
    assert_string_equal(b->tag, "conv1.out");
    assert_ptr_equal(m.asked.tag, b->tag); // and that copy is what the allocator was told
    assert_int_equal(m.asked.size_bytes, 100);
    assert_int_equal(m.asked.align_bytes, 256);
    assert_int_equal(m.asked.stream, 5);
    assert_true(m.asked.block_id == b->id && b->id > 0);
    assert_true(b->mem.block_id == b->id && b->mem.kind == TIDE_KIND_WORKSPACE && b->mem.tag == b->tag);
    assert_int_equal(b->mem.requested_bytes, 100);
    assert_int_equal(b->mem.reserved_bytes, 1024);
    assert_ptr_equal(b->owner, a);
    assert_int_equal(b->last_stream, 5);
    tide_allocator_unref(a); // the block keeps it (LT-34)
    assert_string_equal(m.order, "");
    assert_ptr_equal(tide_block_ref(b), b);
    tide_block_unref(b);
    assert_int_equal(m.n_releases, 0);
    tide_block_unref(b);
    assert_int_equal(m.n_releases, 1);
    assert_int_equal(m.released_stream, 5);
    assert_ptr_equal(m.released.data, m.bytes);
    assert_ptr_equal(m.released.context, &m);
    assert_int_equal(m.released.requested_bytes, 100);
    assert_string_equal(m.order, "rd");
    tide_block_unref(NULL);
}

static void ids_are_never_used_twice(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    uint64_t last = 0;
    for (int i = 0; i < 100; i++) {
        tide_block *b = NULL;
        assert_tide_ok(tide_block_create(a, 1, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), &err);
        assert_true(b->id > last);
        assert_null(b->tag);
        last = b->id;
        tide_block_unref(b);
    }
    tide_allocator_unref(a);
}

// LT-11: bytes and no allocator, and the other things that cannot be.
static void impossible_blocks_are_refused(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_block *b = NULL;
    assert_tide_status(tide_block_create(NULL, 10, 0, TIDE_KIND_DEFAULT, 0, "w", &b, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "'w'");
    tide_allocator *a = make_mock(&m, (tide_device){TIDE_DEVICE_CUDA, 0});
    assert_tide_status(tide_block_create(a, 0, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_block_create(a, 10, 48, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_block_create(a, 10, 0, TIDE_KIND_HOST_PINNED, 0, NULL, &b, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_block_create(a, 10, 0, (tide_memory_kind)77, 0, NULL, &b, &err), TIDE_ERR_INVALID);
    m.fails = true;
    assert_tide_status(tide_block_create(a, 10, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), TIDE_ERR_NOMEM);
    m.fails = false;
    tide_host_fail_after(0);
    assert_tide_status(tide_block_create(a, 10, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), TIDE_ERR_NOMEM);
    assert_null(b);
    assert_int_equal(m.n_allocs, 0);
    assert_int_equal(m.n_releases, 0);
    tide_allocator_unref(a);
    assert_string_equal(m.order, "d");
}

static void count_release(void *ctx) { ++*(int *)ctx; }

// LT-9, LT-12, PT-11: borrowed memory is never freed by us; its release routine runs once, or there is none.
static void borrowed_block_is_never_freed(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char bytes[64] = "theirs";
    int n_released = 0;
    tide_block *b = NULL;
    assert_tide_ok(tide_block_borrow(bytes, sizeof bytes, TIDE_CPU, TIDE_KIND_PERSISTENT, count_release, &n_released,
                                     "weights", &b, &err),
                   &err);
    assert_null(b->owner);
    assert_ptr_equal(b->mem.data, bytes);
    assert_int_equal(b->kind, TIDE_KIND_PERSISTENT);
    assert_true(b->id > 0);
    tide_block_ref(b);
    tide_block_unref(b);
    assert_int_equal(n_released, 0);
    tide_block_unref(b);
    assert_int_equal(n_released, 1);

    assert_tide_ok(
        tide_block_borrow(bytes, sizeof bytes, TIDE_CPU, TIDE_KIND_HOST_PAGEABLE, NULL, NULL, NULL, &b, &err), &err);
    assert_int_equal(b->kind, TIDE_KIND_HOST_PAGEABLE);
    tide_block_unref(b);
    assert_string_equal(bytes, "theirs");

    // A refused borrow leaves the memory with its owner: the routine does not run.
    assert_tide_status(
        tide_block_borrow(NULL, 5, TIDE_CPU, TIDE_KIND_DEFAULT, count_release, &n_released, NULL, &b, &err),
        TIDE_ERR_INVALID);
    assert_tide_status(tide_block_borrow(bytes, 5, (tide_device){TIDE_DEVICE_CUDA, 0}, TIDE_KIND_HOST_PINNED,
                                         count_release, &n_released, NULL, &b, &err),
                       TIDE_ERR_INVALID);
    assert_int_equal(n_released, 1);
}

// ---- storages ----

// LT-7, LT-13: slices share the block, change offset and length, and keep it alive.
static void slices_share_the_block(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 1000, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), &err);
    tide_storage whole = tide_storage_of_block(b), part, deeper;
    tide_block_unref(b);
    assert_int_equal(whole.size_bytes, 1000);
    assert_tide_ok(tide_storage_slice(&whole, 256, 512, &part, &err), &err);
    assert_tide_ok(tide_storage_slice(&part, 64, 448, &deeper, &err), &err);
    assert_ptr_equal(part.block, deeper.block);
    assert_true(whole.block->id == deeper.block->id);
    assert_int_equal(deeper.offset_bytes, 320);
    assert_int_equal(deeper.size_bytes, 448);
    assert_ptr_equal(tide_storage_data(&deeper), m.bytes + 320);
    tide_storage_deinit(&whole); // base first
    tide_storage_deinit(&part);
    assert_int_equal(m.n_releases, 0);
    memset(tide_storage_data(&deeper), 1, 448); // still there
    tide_storage again = tide_storage_ref(&deeper);
    tide_storage_deinit(&deeper);
    assert_int_equal(m.n_releases, 0);
    tide_storage_deinit(&again);
    assert_int_equal(m.n_releases, 1);
    tide_allocator_unref(a);
}

// LT-36: off by one, overflow, the empty slice at the end; a refused slice writes nothing.
static void slices_stay_inside(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    char bytes[100];
    tide_block *b = NULL;
    assert_tide_ok(tide_block_borrow(bytes, 100, TIDE_CPU, TIDE_KIND_DEFAULT, NULL, NULL, "base", &b, &err), &err);
    tide_storage whole = tide_storage_of_block(b), base, out = {.offset_bytes = 777};
    tide_block_unref(b);
    // Not the whole block: what lies behind the slice is there, but not ours.
    assert_tide_ok(tide_storage_slice(&whole, 10, 50, &base, &err), &err);
    static const struct {
        size_t offset, size;
        bool fits;
    } rows[] = {{0, 50, true},
                {0, 51, false},
                {1, 50, false},
                {49, 1, true},
                {50, 0, true},
                {50, 1, false},
                {51, 0, false},
                {SIZE_MAX, 0, false},
                {SIZE_MAX, 2, false},
                {2, SIZE_MAX, false},
                {SIZE_MAX, SIZE_MAX, false},
                {1, SIZE_MAX - 9, false},
                {SIZE_MAX - 9, 20, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_storage got = out;
        const tide_status st = tide_storage_slice(&base, rows[i].offset, rows[i].size, &got, &err);
        assert_int_equal(st, rows[i].fits ? TIDE_OK : TIDE_ERR_INVALID);
        if (rows[i].fits) {
            assert_int_equal(got.offset_bytes, 10 + rows[i].offset);
            tide_storage_deinit(&got);
        } else {
            assert_memory_equal(&got, &out, sizeof got);
            assert_text_has(err.msg, "50 B");
        }
    }
    tide_storage_deinit(&base);
    tide_storage_deinit(&whole);
}

// LT-10: empty, yet with a device.
static void empty_storage_knows_its_device(void **state) {
    (void)state;
    const tide_device cuda1 = {TIDE_DEVICE_CUDA, 1};
    tide_storage s = {.device = cuda1};
    assert_null(tide_storage_data(&s));
    tide_storage same = tide_storage_ref(&s), part;
    assert_tide_status(tide_storage_slice(&s, 0, 0, &part, NULL), TIDE_OK);
    assert_tide_status(tide_storage_slice(&s, 0, 1, &part, NULL), TIDE_ERR_INVALID);
    tide_storage_deinit(&s);
    assert_true(tide_device_equal(s.device, cuda1) && tide_device_equal(same.device, cuda1));
}

static void *ref_and_unref(void *block) {
    for (int i = 0; i < 20000; i++) tide_block_unref(tide_block_ref(block));
    tide_block_unref(block);
    return NULL;
}

static void references_hold_under_threads(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 10, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), &err);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ref_and_unref, tide_block_ref(b)), 0);
    tide_block_unref(b);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    assert_int_equal(m.n_releases, 1);
    tide_allocator_unref(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(owned_block_is_given_back_once), tide_unit_test(ids_are_never_used_twice),
        tide_unit_test(impossible_blocks_are_refused),  tide_unit_test(borrowed_block_is_never_freed),
        tide_unit_test(slices_share_the_block),         tide_unit_test(slices_stay_inside),
        tide_unit_test(empty_storage_knows_its_device), tide_unit_test(references_hold_under_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
