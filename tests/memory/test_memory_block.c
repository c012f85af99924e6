// SPDX-License-Identifier: MIT
//
// core/memory/block (PT-1: the layer over allocators and data pointers): who frees what, once, and what a block knows.
// Foreign memory is in test_block_foreign.c, guards in test_block_guard.c, copy-on-write in test_block_cow.c.
#include <inttypes.h>

#include "mock_allocator.h"

// ---- owned ----

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
    assert_int_equal(b->align_bytes, 256);
    assert_ptr_equal(b->owner, a);
    assert_int_equal(b->last_stream, 5);
    tide_allocator_unref(a); // the block keeps it (LT-34)
    assert_string_equal(m.order, "a");
    assert_ptr_equal(tide_block_ref(b), b);
    assert_int_equal(tide_block_use_count(b), 2);
    tide_block_unref(b);
    assert_int_equal(m.n_releases, 0);
    tide_block_unref(b);
    assert_int_equal(m.n_releases, 1);
    assert_int_equal(m.released_stream, 5);
    assert_ptr_equal(m.released.data, m.given);
    assert_int_equal(m.released.requested_bytes, 100);
    assert_string_equal(m.released_tag, "conv1.out");
    assert_string_equal(m.order, "ard");
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
    assert_text_has(err.msg, "no allocator");
    tide_allocator *a = make_mock(&m, (tide_device){TIDE_DEVICE_CUDA, 0});
    assert_tide_status(tide_block_create(a, 0, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_block_create(a, 10, 48, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_block_create(a, 10, 0, TIDE_KIND_HOST_PINNED, 0, NULL, &b, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_block_create(a, 10, 0, (tide_memory_kind)77, 0, NULL, &b, &err), TIDE_ERR_INVALID);
    m.fail_after = 0;
    assert_tide_status(tide_block_create(a, 10, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), TIDE_ERR_NOMEM);
    tide_host_fail_after(0);
    assert_tide_status(tide_block_create(a, 10, 0, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), TIDE_ERR_NOMEM);
    assert_null(b);
    assert_int_equal(m.n_allocs, 0);
    assert_int_equal(m.n_releases, 0);
    tide_allocator_unref(a);
    assert_string_equal(m.order, "fd");
}

// ---- looking ----

// LT-8: the block dump: pointer, bytes, device, kind, owner, last stream.
static void dump_names_every_fact(void **state) {
    (void)state;
    static mock m;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make_mock(&m, TIDE_CPU);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 100, 0, TIDE_KIND_WORKSPACE, 5, "conv1.out", &b, &err), &err);
    tide_block_ref(b);
    tide_text text = {0};
    tide_block_describe(b, &text);
    char want[320];
    snprintf(want, sizeof want,
             "block %" PRIu64
             " at %p: requested 100 B, reserved 1024 B, cpu, kind Workspace, owner mock, last stream 5, "
             "2 references, normal, 'conv1.out'",
             b->id, m.given);
    assert_string_equal(tide_text_str(&text), want);
    tide_text_deinit(&text);
    tide_block_record_use(b, 9);
    assert_int_equal(b->last_stream, 9);
    assert_int_equal(m.used_stream, 9);
    tide_block_unref(b);
    tide_block_unref(b);
    assert_int_equal(m.released_stream, 9);
    tide_allocator_unref(a);
}

// ---- factory ----

typedef struct workshop {
    int n_made;
    tide_block_request last;
    bool makes_nothing, makes_less;
} workshop;

static tide_status make_in_workshop(void *self, const tide_block_request *req, tide_block **out, tide_error *err) {
    workshop *w = self;
    w->n_made++;
    w->last = *req;
    if (w->makes_nothing) return TIDE_OK;
    const size_t bytes = w->makes_less ? req->size_bytes - 1 : req->size_bytes;
    return tide_block_create(req->owner, bytes, req->align_bytes, req->kind, req->stream, "from the workshop", out,
                             err);
}

// PT-23: a fake device with its own factory; other devices keep the default, and NULL brings it back.
static void device_type_may_have_a_factory(void **state) {
    (void)state;
    static mock on_fake, on_cpu;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    const tide_device fake1 = fake_at(1);
    tide_allocator *far = make_mock(&on_fake, fake1), *cpu = make_mock(&on_cpu, TIDE_CPU);
    workshop w = {0};
    assert_tide_ok(tide_block_set_factory(fake1.type, make_in_workshop, &w, &err), &err);
    const tide_block_request on_fake_req = {
        .owner = far, .size_bytes = 64, .align_bytes = 128, .kind = TIDE_KIND_DEFAULT, .stream = 3, .tag = "x"};
    tide_block_request on_cpu_req = on_fake_req;
    on_cpu_req.owner = cpu;
    tide_block *b = NULL;
    assert_tide_ok(tide_block_make(&on_fake_req, &b, &err), &err);
    assert_int_equal(w.n_made, 1);
    assert_ptr_equal(w.last.owner, far);
    assert_int_equal(w.last.size_bytes, 64);
    assert_int_equal(w.last.align_bytes, 128);
    assert_int_equal(w.last.stream, 3);
    assert_string_equal(b->tag, "from the workshop");
    tide_block_unref(b);
    assert_tide_ok(tide_block_make(&on_cpu_req, &b, &err), &err);
    assert_int_equal(w.n_made, 1);
    assert_string_equal(b->tag, "x");
    tide_block_unref(b);

    // A factory that says OK and makes nothing, or too little, is found out.
    b = NULL;
    w.makes_nothing = true;
    assert_tide_status(tide_block_make(&on_fake_req, &b, &err), TIDE_ERR_BACKEND);
    w = (workshop){.makes_less = true};
    assert_tide_status(tide_block_make(&on_fake_req, &b, &err), TIDE_ERR_BACKEND);
    assert_text_has(err.msg, "fake:1");
    assert_null(b);

    assert_tide_ok(tide_block_set_factory(fake1.type, NULL, NULL, &err), &err);
    assert_tide_ok(tide_block_make(&on_fake_req, &b, &err), &err);
    assert_string_equal(b->tag, "x");
    tide_block_unref(b);
    assert_tide_status(tide_block_set_factory((tide_device_type)-1, make_in_workshop, &w, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_block_set_factory((tide_device_type)TIDE_MAX_DEVICE_TYPES, make_in_workshop, &w, &err),
                       TIDE_ERR_INVALID);
    const tide_block_request no_allocator = {.size_bytes = 4};
    assert_tide_status(tide_block_make(&no_allocator, &b, &err), TIDE_ERR_INVALID);
    tide_allocator_unref(far);
    tide_allocator_unref(cpu);
    fake_teardown();
}

// ---- threads ----

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
        tide_unit_test(impossible_blocks_are_refused),  tide_unit_test(dump_names_every_fact),
        tide_unit_test(device_type_may_have_a_factory), tide_unit_test(references_hold_under_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
