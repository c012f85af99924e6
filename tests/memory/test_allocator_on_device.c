// SPDX-License-Identifier: MIT
//
// Allocators of a device from a text: each name makes what it says on a device that has what it needs, says what is
// missing on one that has not, and everything else is refused with the list of that device.
#include "memory_test.h"
#include "tests/device/fake_device.h"

static const struct {
    const char *text, *name;
    bool on_host;
} forms[] = {
    {"cuda", "device", false},
    {"cuda_caching", "stream_caching", false},
    {"cuda_async", "cuda_async", false},
    {"cuda_async:keep=all", "cuda_async", false},
    {"cuda_async:keep=none", "cuda_async", false},
    {"cuda_vmm", "cuda_vmm", false},
    {"pinned", "pinned", true},
};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

static void every_form(void **state) {
    (void)state;
    fake_setup_driver(2);
    for (size_t i = 0; i < N_FORMS; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        assert_tide_ok(tide_allocator_create_on(fake_at(1), forms[i].text, &a, &err), &err);
        assert_string_equal(tide_allocator_name(a), forms[i].name);
        assert_true(tide_device_equal(tide_allocator_device(a), forms[i].on_host ? TIDE_CPU : fake_at(1)));
        const tide_memory mem = take(a, 1000, 0);
        give(a, &mem);
        tide_allocator_unref(a);
    }
    fake_teardown();
}

static void the_list_is_whole(void **state) {
    (void)state;
    fake_setup(1);
    for (size_t i = 0; i < N_FORMS; i++) {
        assert_string_equal(tide_allocator_name_on(fake_at(0), i), forms[i].text);
        assert_string_equal(tide_allocator_name_on((tide_device){TIDE_DEVICE_CUDA, 3}, i), forms[i].text);
    }
    assert_null(tide_allocator_name_on(fake_at(0), N_FORMS));
    assert_null(tide_allocator_name_on(fake_at(0), SIZE_MAX));
    size_t i = 0;
    for (; tide_allocator_name_at(i) != NULL; i++)
        assert_string_equal(tide_allocator_name_on(TIDE_CPU, i), tide_allocator_name_at(i));
    assert_null(tide_allocator_name_on(TIDE_CPU, i));
    fake_teardown();
}

/// The list stands in the hint, in its order.
static void assert_hint_lists_all(const tide_error *err) {
    const char *at = strstr(err->hint, "allocators on fake:0: ");
    assert_non_null(at);
    for (size_t i = 0; i < N_FORMS; i++) {
        at = strstr(at, forms[i].text);
        assert_non_null(at);
        at += strlen(forms[i].text);
    }
}

static void anything_else_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "no allocator ''"},           {"cud", "no allocator 'cud'"},
        {"cpu", "no allocator 'cpu'"},     {"stream_caching", "no allocator 'stream_caching'"},
        {"cuda:", "no option ''"},         {"cuda:0", "no option '0'"},
        {"pinned:x", "has no option 'x'"},
    };
    fake_setup_driver(1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        assert_tide_status(tide_allocator_create_on(fake_at(0), rows[i].text, &a, &err), TIDE_ERR_INVALID);
        assert_null(a);
        assert_text_has(err.msg, rows[i].words);
        assert_hint_lists_all(&err);
    }
    fake_teardown();
}

static void a_device_that_is_not_there(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    fake_setup(1);
    assert_tide_status(tide_allocator_create_on(fake_at(1), "cuda", &a, &err), TIDE_ERR_INVALID);
    const tide_device gone = fake_at(0);
    fake_teardown();
    for (size_t i = 0; i < N_FORMS; i++) {
        assert_tide_status(tide_allocator_create_on(gone, forms[i].text, &a, &err), TIDE_ERR_NOT_IMPLEMENTED);
        assert_null(a);
    }
}

/// A table without the entries: refused in words, never another kind of memory in its place.
static void a_device_without_what_it_needs(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"cuda_async", "fake:0 has no memory pool of its driver"},
        {"cuda_async:keep=none", "fake:0 has no memory pool of its driver"},
        {"cuda_vmm", "fake:0 cannot map memory"},
        {"pinned", "fake:0 has no page-locked host memory"},
    };
    fake_setup(1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_error err = TIDE_ERROR_INIT;
        tide_allocator *a = NULL;
        assert_tide_status(tide_allocator_create_on(fake_at(0), rows[i].text, &a, &err), TIDE_ERR_NOT_IMPLEMENTED);
        assert_null(a);
        assert_text_has(err.msg, rows[i].words);
    }
    fake_teardown();
}

static void on_the_cpu_the_names_of_the_cpu(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_allocator_create_on(TIDE_CPU, "cpu_caching:sizes=steps", &a, &err), &err);
    assert_string_equal(tide_allocator_name(a), "cpu_caching");
    tide_allocator_unref(a);
    assert_tide_status(tide_allocator_create_on(TIDE_CPU, "cuda_caching", &a, &err), TIDE_ERR_INVALID);
    assert_text_has(err.hint, "allocators: cpu, ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(every_form),
        tide_unit_test(the_list_is_whole),
        tide_unit_test(anything_else_is_refused),
        tide_unit_test(a_device_that_is_not_there),
        tide_unit_test(a_device_without_what_it_needs),
        tide_unit_test(on_the_cpu_the_names_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
