// SPDX-License-Identifier: MIT
//
// core/memory/allocator_data_ptr: an allocator's memory for owners that know nothing of allocators.
#include "core/memory/allocator_internal.h"
#include "memory_test.h"
#include "tests/device/fake_device.h"

typedef struct mock {
    int n_destroyed, n_released;
    char bytes[64];
    tide_memory released;
    char released_tag[16];
    tide_stream_id stream; // of the last release
} mock;

static tide_status mock_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    (void)req;
    (void)err;
    out->data = ((mock *)self)->bytes;
    return TIDE_OK;
}
static void mock_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    mock *m = self;
    m->n_released++;
    m->released = *mem;
    m->stream = last_stream;
    if (mem->tag != NULL) snprintf(m->released_tag, sizeof m->released_tag, "%s", mem->tag);
}
static void mock_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    (void)out;
}
static void mock_destroy(void *self) { ((mock *)self)->n_destroyed++; }

static const tide_allocator_ops least = {.abi = TIDE_ALLOCATOR_ABI,
                                         .name = "least",
                                         .alloc = mock_alloc,
                                         .release = mock_release,
                                         .stats = mock_stats,
                                         .destroy = mock_destroy};

static tide_allocator *make(mock *m) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_allocator_create(&least, m, TIDE_CPU, &a, &err), &err);
    return a;
}

// PT-13, PT-10: from an allocator whose address does not suffice, the context is a record; it keeps the allocator, and
// a tag of its own, until the release.
static void a_record_keeps_memory_and_allocator(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make(&m);
    assert_null(tide_allocator_raw_release(a));
    void *raw = NULL;
    assert_tide_status(tide_allocator_raw_alloc(a, 10, &raw, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.msg, "least");
    char tag[] = "borrowed";
    const tide_alloc_request req = {.size_bytes = 10, .stream = 4, .block_id = 8, .tag = tag};
    tide_data_ptr p = {0};
    assert_tide_ok(tide_allocator_alloc_data_ptr(a, &req, &p, &err), &err);
    memset(tag, '?', sizeof tag - 1);
    assert_true(p.data == m.bytes && !tide_data_ptr_is_simple(&p) && tide_device_equal(p.device, TIDE_CPU));
    tide_allocator_unref(a);
    assert_int_equal(m.n_destroyed, 0);
    tide_data_ptr_reset(&p);
    assert_true(m.n_released == 1 && m.n_destroyed == 1 && m.stream == 4 && m.released.block_id == 8);
    assert_string_equal(m.released_tag, "borrowed");
}

// PT-13: an allocator with raw calls gives a simple pointer: the address alone is enough to release it.
static void raw_memory_is_a_simple_pointer(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    const tide_alloc_request req = {.size_bytes = 100, .align_bytes = 64, .tag = "t"};
    const tide_alloc_request strict = {.size_bytes = 100, .align_bytes = 4096, .tag = "t"};
    const tide_alloc_request crooked = {.size_bytes = 100, .align_bytes = 48}, empty = {.size_bytes = 0};
    tide_data_ptr simple = {0}, other = {0};
    assert_tide_ok(tide_allocator_alloc_data_ptr(a, &req, &simple, &err), &err);
    assert_true(tide_data_ptr_is_simple(&simple) && simple.release == tide_allocator_raw_release(a));
    assert_tide_ok(tide_allocator_alloc_data_ptr(a, &strict, &other, &err), &err); // more than raw memory promises
    assert_true(!tide_data_ptr_is_simple(&other) && (uintptr_t)other.data % 4096 == 0);
    tide_data_ptr none = {0};
    assert_tide_status(tide_allocator_alloc_data_ptr(a, &crooked, &none, &err), TIDE_ERR_INVALID);
    assert_tide_status(tide_allocator_alloc_data_ptr(a, &empty, &none, &err), TIDE_ERR_INVALID);
    void *raw = NULL;
    assert_tide_status(tide_allocator_raw_alloc(a, 0, &raw, &err), TIDE_ERR_INVALID);
    assert_null(none.data);
    memset(simple.data, 1, 100);
    memset(other.data, 2, 100);
    assert_int_equal(stats_of(a).requested_bytes, 200);
    tide_allocator_unref(a); // both outlive the caller's reference
    tide_data_ptr_reset(&simple);
    tide_data_ptr_reset(&other);
}

// PT-13: clone and copy, and nothing is left when either fails.
static void bytes_are_cloned(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_cpu_allocator_create(&a, &err), &err);
    unsigned char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7);
    tide_data_ptr copy = {0};
    assert_tide_ok(tide_allocator_clone(a, bytes, sizeof bytes, &copy, &err), &err);
    assert_true(copy.data != bytes);
    assert_memory_equal(copy.data, bytes, sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(((unsigned char *)copy.data)[10], 70); // of its own
    assert_tide_ok(tide_allocator_copy(a, bytes, copy.data, 20, &err), &err);
    assert_true(bytes[19] == 19 * 7 && bytes[20] == 0);
    assert_tide_ok(tide_allocator_copy(a, NULL, NULL, 0, &err), &err);
    tide_data_ptr none = {0};
    assert_tide_status(tide_allocator_clone(a, bytes, 0, &none, &err), TIDE_ERR_INVALID);
    tide__system_refuse(1);
    assert_tide_status(tide_allocator_clone(a, bytes, 10, &none, &err), TIDE_ERR_NOMEM);
    assert_null(none.data);
    tide_data_ptr_reset(&copy);
    assert_int_equal(stats_of(a).active_bytes, 0);
    tide_allocator_unref(a);
}

// PT-13: on a device the copy goes through the device, which is waited for.
static void bytes_are_cloned_on_their_device(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    fake_setup(2);
    tide_allocator *a = NULL;
    assert_tide_ok(tide_device_allocator_create(fake_at(1), &a, &err), &err);
    tide_data_ptr first = {0}, copy = {0}, none = {0};
    const tide_alloc_request req = {.size_bytes = 64};
    assert_tide_ok(tide_allocator_alloc_data_ptr(a, &req, &first, &err), &err);
    assert_tide_ok(tide_device_fill(fake_at(1), 0, first.data, 5, 64, &err), &err);
    assert_tide_ok(tide_allocator_clone(a, first.data, 64, &copy, &err), &err);
    assert_true(fake.n_copies[TIDE_COPY_WITHIN_DEVICE] == 1 && fake_calls(FAKE_STREAM_SYNC) == 1);
    assert_true(tide_device_equal(copy.device, fake_at(1)) && copy.data != first.data);
    assert_memory_equal(fake_peek(1, copy.data, 64), fake_peek(1, first.data, 64), 64);
    fake_fail(FAKE_COPY, 0, -1);
    assert_tide_status(tide_allocator_clone(a, first.data, 64, &none, &err), TIDE_ERR_BACKEND);
    assert_null(none.data);
    tide_data_ptr_reset(&first);
    tide_data_ptr_reset(&copy);
    tide_allocator_unref(a);
    fake_teardown(); // nothing is left, that of the failed clone neither
}

static void host_memory_for_a_record_may_end(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = make(&m);
    const tide_alloc_request req = {.size_bytes = 10, .tag = "t"};
    tide_data_ptr p = {0};
    tide_host_fail_after(0);
    assert_tide_status(tide_allocator_alloc_data_ptr(a, &req, &p, &err), TIDE_ERR_NOMEM);
    assert_true(p.data == NULL && m.n_released == 0);
    tide_allocator_unref(a);
    assert_int_equal(m.n_destroyed, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_record_keeps_memory_and_allocator),
        tide_unit_test(raw_memory_is_a_simple_pointer),
        tide_unit_test(bytes_are_cloned),
        tide_unit_test(bytes_are_cloned_on_their_device),
        tide_unit_test(host_memory_for_a_record_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
