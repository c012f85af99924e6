// SPDX-License-Identifier: MIT
//
// core/memory/allocator: the object around an allocator's table, with tables made for the test.
#include "memory_test.h"

typedef struct mock {
    int n_destroyed, n_reset, n_trimmed;
    char bytes[64];
} mock;

static tide_status mock_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    (void)req;
    (void)err;
    out->data = ((mock *)self)->bytes;
    return TIDE_OK;
}
static void mock_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)self;
    (void)mem;
    (void)last_stream;
}
static void mock_stats(const void *self, tide_allocator_stats *out) {
    (void)self;
    *out = (tide_allocator_stats){.largest_free_bytes = TIDE_UNKNOWN_BYTES};
}
static void mock_destroy(void *self) { ((mock *)self)->n_destroyed++; }
static tide_status mock_reset(void *self, tide_error *err) {
    (void)err;
    ((mock *)self)->n_reset++;
    return TIDE_OK;
}
static void mock_trim(void *self) { ((mock *)self)->n_trimmed++; }

static const tide_allocator_ops least = {.abi = TIDE_ALLOCATOR_ABI,
                                         .name = "least",
                                         .alloc = mock_alloc,
                                         .release = mock_release,
                                         .stats = mock_stats,
                                         .destroy = mock_destroy};

static void references_are_counted(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_allocator_create(&least, &m, TIDE_CPU, &a, &err), &err);
    assert_ptr_equal(tide_allocator_self(a), &m);
    assert_ptr_equal(tide_allocator_ref(a), a);
    tide_allocator_unref(a);
    assert_int_equal(m.n_destroyed, 0);
    tide_allocator_unref(a);
    assert_int_equal(m.n_destroyed, 1);
    tide_allocator_unref(NULL);
}

static void optional_entries_have_defaults(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_allocator_create(&least, &m, TIDE_CPU, &a, &err), &err);
    assert_tide_status(tide_allocator_reset(a, &err), TIDE_ERR_NOT_IMPLEMENTED);
    assert_text_has(err.msg, "least");
    tide_allocator_trim(a);
    assert_tide_ok(tide_allocator_check(a, &err), &err);
    assert_true(stats_of(a).largest_free_bytes == TIDE_UNKNOWN_BYTES);
    tide_allocator_unref(a);

    tide_allocator_ops more = least;
    more.reset = mock_reset;
    more.trim = mock_trim;
    assert_tide_ok(tide_allocator_create(&more, &m, TIDE_CPU, &a, &err), &err);
    assert_tide_ok(tide_allocator_reset(a, &err), &err);
    tide_allocator_trim(a);
    assert_int_equal(m.n_reset, 1);
    assert_int_equal(m.n_trimmed, 1);
    tide_allocator_unref(a);
}

static void wrong_tables_are_refused(void **state) {
    (void)state;
    mock m = {0};
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    tide_allocator_ops other = least;
    other.abi = TIDE_ALLOCATOR_ABI + 1;
    assert_tide_status(tide_allocator_create(&other, &m, TIDE_CPU, &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "ABI");
    assert_int_equal(m.n_destroyed, 0); // nothing in a table of another ABI can be trusted

    other = least;
    other.release = NULL;
    assert_tide_status(tide_allocator_create(&other, &m, TIDE_CPU, &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "least");
    assert_int_equal(m.n_destroyed, 1); // the state was taken

    tide_host_fail_after(0);
    assert_tide_status(tide_allocator_create(&least, &m, TIDE_CPU, &a, &err), TIDE_ERR_NOMEM);
    assert_int_equal(m.n_destroyed, 2);
    assert_null(a);
}

static void made_by_name(void **state) {
    (void)state;
    static const char *const names[] = {"cpu", "cpu_caching"};
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < 2; i++) {
        tide_allocator *a = NULL;
        assert_tide_ok(tide_allocator_create_by_name(names[i], &a, &err), &err);
        assert_string_equal(tide_allocator_name(a), names[i]);
        tide_allocator_unref(a);
    }
    tide_allocator *a = NULL;
    assert_tide_status(tide_allocator_create_by_name("buddy", &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "buddy");
    assert_text_has(err.hint, "cpu_caching");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(references_are_counted),
        tide_unit_test(optional_entries_have_defaults),
        tide_unit_test(wrong_tables_are_refused),
        tide_unit_test(made_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
