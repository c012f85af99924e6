// SPDX-License-Identifier: MIT
//
// core/memory/storage (PT-1: the layer that tensors see): slices and their bounds, and every way to come by a storage.
// How a storage changes what it holds is in test_storage_change.c.
#include "storage_test.h"

// ---- slices ----

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
    assert_int_equal(part.offset_bytes, 256);
    assert_int_equal(part.size_bytes, 512);
    assert_int_equal(deeper.offset_bytes, 320);
    assert_int_equal(deeper.size_bytes, 448);
    assert_int_equal(tide_storage_use_count(&whole), 3);
    assert_true(tide_storage_is_alias(&whole, &deeper));
    assert_ptr_equal(tide_storage_data(&deeper), (char *)m.given + 320);
    tide_storage_deinit(&whole); // base first
    tide_storage_deinit(&part);
    assert_int_equal(m.n_releases, 0);
    assert_true(tide_storage_is_unique(&deeper));
    fill(&deeper, 1); // still there
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

// ---- making ----

// PT-2: four ways: over a block, by size with an allocator, around a data pointer, and empty, to grow. PT-4: whether it
// can grow follows from who gave the memory.
static void four_ways_to_make_a_storage(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);

    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 300, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), &err);
    tide_storage of_block = tide_storage_of_block(b);
    assert_int_equal(b->refs, 2);
    tide_block_unref(b);
    assert_int_equal(of_block.size_bytes, 300);
    assert_ptr_equal(of_block.block->owner, a);
    assert_true(tide_storage_is_resizable(&of_block));

    tide_storage by_size = create(r, 300);
    assert_int_equal(by_size.size_bytes, 512); // rounded up: that is what a plan counts
    assert_int_equal(by_size.block->mem.requested_bytes, 512);
    assert_ptr_equal(by_size.block->owner, a);
    assert_true(tide_storage_is_resizable(&by_size));

    int n_released = 0;
    char bytes[40];
    tide_data_ptr p = tide_data_ptr_make(bytes, &n_released, count_release, TIDE_CPU);
    tide_storage around;
    assert_tide_ok(tide_storage_adopt(&p, 40, TIDE_KIND_PERSISTENT, "theirs", &around, &err), &err);
    assert_null(p.data);
    assert_int_equal(around.size_bytes, 40);
    assert_null(around.block->owner);
    assert_int_equal(around.block->kind, TIDE_KIND_PERSISTENT);
    assert_false(tide_storage_is_resizable(&around));

    tide_storage empty = {.device = TIDE_CPU};
    assert_true(tide_storage_is_resizable(&empty));
    const tide_storage_spec spec = spec_for(r, TIDE_CPU, NULL);
    assert_tide_ok(tide_storage_resize(&empty, &spec, 100, &err), &err);
    assert_int_equal(empty.size_bytes, 256);
    assert_bytes(&empty, 0, 256, 0);

    tide_storage_deinit(&of_block);
    tide_storage_deinit(&by_size);
    tide_storage_deinit(&around);
    tide_storage_deinit(&empty);
    assert_int_equal(n_released, 1);
    assert_int_equal(m.n_allocs, m.n_releases);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

// LT-14: the steps of one creation, in their order: the byte count is checked and rounded before an allocator is looked
// up by (device, kind); each step that fails keeps the next from being reached; then the allocator hears of one block.
static void creation_goes_step_by_step(void **state) {
    (void)state;
    static mock m;
    static listener heard;
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer obs = listener_observer(&heard);
    tide_allocator *inner = make_mock(&m, TIDE_CPU), *a = NULL;
    assert_tide_ok(tide_instrumented_create(inner, &obs, &a, &err), &err);
    tide_registry *r = registry_of(a);
    tide_storage s = {.size_bytes = 1};
    tide_storage_spec spec = spec_for(r, TIDE_CPU, "conv1.out");
    spec.kind = (tide_memory_kind)77; // the kind
    assert_tide_status(tide_storage_create(&spec, SIZE_MAX, &s, &err), TIDE_ERR_INVALID);
    spec.kind = TIDE_KIND_WORKSPACE; // the row
    assert_tide_status(tide_storage_create(&spec, 100, &s, &err), TIDE_ERR_NOT_FOUND);
    spec.kind = TIDE_KIND_DEFAULT; // the alignment
    spec.align_bytes = 24;
    assert_tide_status(tide_storage_create(&spec, 100, &s, &err), TIDE_ERR_INVALID);
    spec.align_bytes = 0; // the byte count
    assert_tide_status(tide_storage_create(&spec, SIZE_MAX - 100, &s, &err), TIDE_ERR_OVERFLOW);
    assert_int_equal(s.size_bytes, 1); // untouched
    assert_int_equal(heard.n, 0);      // and no allocator was called
    assert_string_equal(m.order, "");

    spec.stream = 4;
    assert_tide_ok(tide_storage_create(&spec, 1000, &s, &err), &err);
    assert_int_equal(heard.n, 1);
    const heard_event *e = &heard.events[0];
    assert_int_equal(e->event.op, TIDE_MEM_ALLOC);
    assert_int_equal(e->event.kind, TIDE_KIND_DEFAULT);
    assert_int_equal(e->event.requested_bytes, 1024);
    assert_true(e->event.block_id == s.block->id);
    assert_true(e->event.address == (uint64_t)(uintptr_t)tide_storage_data(&s));
    assert_int_equal(e->event.stream, 4);
    assert_string_equal(e->tag, "conv1.out");
    assert_int_equal(s.block->last_stream, 4);
    tide_storage_deinit(&s);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
    tide_allocator_unref(inner);
}

static tide_status mark_and_make(void *self, const tide_block_request *req, tide_block **out, tide_error *err) {
    ++*(int *)self;
    return tide_block_create(req->owner, req->size_bytes, req->align_bytes, req->kind, req->stream, req->tag, out, err);
}

// PT-23: storages on a device are made by its factory, resized ones too. TIDE_STREAM_CURRENT: the registry's.
static void storages_come_from_the_factory(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    int n_made = 0;
    fake_setup(2);
    const tide_device fake1 = fake_at(1);
    tide_stream_id stream;
    assert_tide_ok(tide_stream_create(fake1, &stream, &err), &err);
    tide_allocator *a = make_mock(&m, fake1);
    tide_registry *r = registry_of(a);
    assert_tide_ok(tide_registry_set_current_stream(r, fake1, stream, &err), &err);
    assert_tide_ok(tide_block_set_factory(fake1.type, mark_and_make, &n_made, &err), &err);
    tide_storage s;
    tide_storage_spec spec = spec_for(r, fake1, NULL);
    spec.stream = TIDE_STREAM_CURRENT;
    assert_tide_ok(tide_storage_create(&spec, 10, &s, &err), &err);
    assert_int_equal(n_made, 1);
    assert_int_equal(s.block->last_stream, stream);
    assert_tide_ok(tide_storage_resize(&s, NULL, 1000, &err), &err);
    assert_int_equal(n_made, 2);
    assert_tide_ok(tide_block_set_factory(fake1.type, NULL, NULL, &err), &err);
    tide_storage_deinit(&s);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
    tide_stream_destroy(fake1, stream);
    fake_teardown();
}

// LT-10, PT-5: 0 bytes are no block, ask no allocator, and still have a device; memory comes when the size is known.
static void empty_storage_knows_its_device(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, cuda1);
    tide_registry *r = registry_of(a);
    const tide_storage_spec spec = spec_for(r, cuda1, NULL);
    tide_storage s;
    assert_tide_ok(tide_storage_create(&spec, 0, &s, &err), &err);
    assert_string_equal(m.order, "");
    assert_null(s.block);
    assert_true(tide_storage_is_empty(&s));
    assert_null(tide_storage_data(&s));
    const void *p = &p;
    void *w = &w;
    assert_tide_ok(tide_storage_read(&s, &p, &err), &err);
    assert_tide_ok(tide_storage_write(&s, &w, &err), &err);
    assert_true(p == NULL && w == NULL);
    assert_int_equal(tide_storage_use_count(&s), 0);
    assert_false(tide_storage_is_alias(&s, &s)); // there is no memory to share
    tide_storage same = tide_storage_ref(&s), part;
    assert_tide_status(tide_storage_slice(&s, 0, 0, &part, NULL), TIDE_OK);
    assert_tide_status(tide_storage_slice(&s, 0, 1, &part, NULL), TIDE_ERR_INVALID);
    tide_storage_deinit(&s);
    assert_true(tide_device_equal(s.device, cuda1) && tide_device_equal(same.device, cuda1));

    // The size was unknown until now.
    tide_storage_deinit(&same);
    assert_tide_ok(tide_storage_create(&spec, 10, &same, &err), &err);
    assert_string_equal(m.order, "a");
    assert_true(tide_device_equal(same.device, cuda1));
    tide_storage_deinit(&same);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

// LT-11: bytes and no allocator for them: the reason says which row is missing.
static void no_allocator_is_an_error(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_registry *r = NULL;
    assert_tide_ok(tide_registry_create(&r, &err), &err);
    tide_storage s = {.size_bytes = 1};
    const tide_storage_spec spec = spec_for(r, cuda1, "w");
    assert_tide_status(tide_storage_create(&spec, 10, &s, &err), TIDE_ERR_NOT_FOUND);
    assert_text_has(err.msg, "Default");
    assert_text_has(err.msg, "cuda:1");
    assert_int_equal(s.size_bytes, 1);
    tide_block *b = NULL;
    assert_tide_status(tide_block_create(NULL, 10, 0, TIDE_KIND_DEFAULT, 0, "w", &b, &err), TIDE_ERR_INVALID);
    tide_registry_destroy(r);
}

// ---- the calls of S28-2, on each sort of storage ----

// S28-1 (storage level), S28-2, PT-3: data, capacity, device, empty, use count, unique, and the dump.
static void questions_on_each_sort_of_storage(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    char bytes[40];
    tide_data_ptr p = tide_data_ptr_bare(bytes, TIDE_CPU);
    tide_storage owned = create(r, 256), external, empty = {.device = cuda1}, part;
    assert_tide_ok(tide_storage_adopt(&p, 40, TIDE_KIND_DEFAULT, NULL, &external, &err), &err);
    assert_tide_ok(tide_storage_slice(&owned, 64, 100, &part, &err), &err);

    const struct {
        const tide_storage *s;
        void *data;
        size_t capacity;
        tide_device device;
        uint32_t users;
        const char *dump;
    } rows[] = {{&owned, m.given, 256, TIDE_CPU, 2, "storage on cpu: offset 0 B, capacity 256 B, block "},
                {&part, (char *)m.given + 64, 100, TIDE_CPU, 2, "storage on cpu: offset 64 B, capacity 100 B, block "},
                {&external, bytes, 40, TIDE_CPU, 1, "owner (external)"},
                {&empty, NULL, 0, cuda1, 0, "storage on cuda:1: offset 0 B, capacity 0 B, empty"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_storage *s = rows[i].s;
        const void *read_at = NULL;
        void *write_at = NULL;
        assert_ptr_equal(tide_storage_data(s), rows[i].data);
        assert_tide_ok(tide_storage_read(s, &read_at, &err), &err);
        assert_tide_ok(tide_storage_write(s, &write_at, &err), &err);
        assert_ptr_equal(read_at, rows[i].data);
        assert_ptr_equal(write_at, rows[i].data);
        assert_int_equal(s->size_bytes, rows[i].capacity);
        assert_true(tide_device_equal(s->device, rows[i].device));
        assert_true(tide_storage_is_empty(s) == (rows[i].capacity == 0));
        assert_int_equal(tide_storage_use_count(s), rows[i].users);
        assert_true(tide_storage_is_unique(s) == (rows[i].users == 1));
        tide_text text = {0};
        tide_storage_describe(s, &text);
        assert_text_has(tide_text_str(&text), rows[i].dump);
        tide_text_deinit(&text);
    }
    tide_storage_deinit(&part);
    tide_storage_deinit(&owned);
    tide_storage_deinit(&external);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

// ---- sharing ----

// PT-3: alias is true for a view and a lazy clone, false after a write or a real copy.
static void alias_ends_with_the_first_write(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    tide_storage s = create(r, 256), view, lazy, copy = create(r, 256);
    bool cloned = false;
    fill(&s, 1);
    assert_tide_ok(tide_storage_slice(&s, 10, 20, &view, &err), &err);
    assert_true(tide_storage_is_alias(&s, &view));
    assert_tide_ok(tide_storage_lazy_clone(&s, 0, &lazy, &cloned, &err), &err);
    assert_true(cloned);
    assert_true(tide_storage_is_alias(&s, &lazy) && tide_storage_is_alias(&view, &lazy));
    assert_false(tide_storage_is_alias(&s, &copy));
    assert_ptr_equal(tide_storage_data(&lazy), tide_storage_data(&s));
    fill(&view, 2); // the view's storage moves away from the clone, with all its views
    assert_false(tide_storage_is_alias(&s, &lazy) || tide_storage_is_alias(&view, &lazy));
    assert_true(tide_storage_is_alias(&s, &view));
    assert_bytes(&lazy, 0, 256, 1);
    assert_bytes(&s, 0, 10, 1);
    assert_bytes(&s, 10, 30, 2);
    assert_bytes(&s, 30, 256, 1);
    tide_storage_deinit(&s);
    tide_storage_deinit(&view);
    tide_storage_deinit(&lazy);
    tide_storage_deinit(&copy);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

// PT-21: slices, foreign memory and what is fixed are not shared: empty and "not cloned", for the caller to copy.
static void slices_are_not_lazily_cloned(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_registry *r = registry_of(a);
    char bytes[40];
    tide_data_ptr p = tide_data_ptr_bare(bytes, TIDE_CPU);
    tide_storage whole = create(r, 256), held = create(r, 256), head, tail, foreign, empty = {.device = cuda1}, out;
    assert_tide_ok(tide_storage_slice(&whole, 0, 255, &head, &err), &err);
    assert_tide_ok(tide_storage_slice(&whole, 256, 0, &tail, &err), &err);
    assert_tide_ok(tide_storage_adopt(&p, 40, TIDE_KIND_DEFAULT, NULL, &foreign, &err), &err);
    assert_tide_ok(tide_block_fix(held.block, &err), &err);
    const tide_storage *rows[] = {&held, &head, &tail, &foreign, &empty};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool cloned = true;
        assert_tide_ok(tide_storage_lazy_clone(rows[i], 0, &out, &cloned, &err), &err);
        assert_false(cloned);
        assert_null(out.block);
        assert_true(tide_device_equal(out.device, rows[i]->device));
    }
    assert_false(tide_block_is_cow(whole.block));
    tide_storage_deinit(&whole);
    tide_storage_deinit(&held);
    tide_storage_deinit(&head);
    tide_storage_deinit(&tail);
    tide_storage_deinit(&foreign);
    tide_registry_destroy(r);
    tide_allocator_unref(a);
}

// LT-34: an allocator with storages out is not unregistered, unless asked to; then it lives until the last one goes.
static void allocator_lives_while_storages_do(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU), *found = NULL;
    tide_registry *r = registry_of(a);
    tide_allocator_unref(a); // the registry's alone now
    tide_storage s = create(r, 100);
    assert_tide_status(tide_registry_remove(r, TIDE_CPU, TIDE_KIND_DEFAULT, false, &err), TIDE_ERR_BUSY);
    assert_tide_ok(tide_registry_get(r, TIDE_CPU, TIDE_KIND_DEFAULT, &found, &err), &err);
    assert_tide_ok(tide_registry_remove(r, TIDE_CPU, TIDE_KIND_DEFAULT, true, &err), &err);
    assert_tide_status(tide_registry_get(r, TIDE_CPU, TIDE_KIND_DEFAULT, &found, &err), TIDE_ERR_NOT_FOUND);
    tide_registry_destroy(r);
    fill(&s, 1);
    assert_string_equal(m.order, "a");
    tide_storage_deinit(&s);
    assert_string_equal(m.order, "ard");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(slices_share_the_block),
        tide_unit_test(slices_stay_inside),
        tide_unit_test(four_ways_to_make_a_storage),
        tide_unit_test(creation_goes_step_by_step),
        tide_unit_test(storages_come_from_the_factory),
        tide_unit_test(empty_storage_knows_its_device),
        tide_unit_test(no_allocator_is_an_error),
        tide_unit_test(questions_on_each_sort_of_storage),
        tide_unit_test(alias_ends_with_the_first_write),
        tide_unit_test(slices_are_not_lazily_cloned),
        tide_unit_test(allocator_lives_while_storages_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
