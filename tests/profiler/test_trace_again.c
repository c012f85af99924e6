// SPDX-License-Identifier: MIT
//
// A trace that is opened twice: what both have in common is held once, and stays for the one that is closed last. Two
// of different files, or of one that is still being recorded, have nothing in common.
#include "profiler/read/trace_internal.h"
#include "tests/profiler/trace_fixture.h"

static tide_trace *open_trace(const char *path) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    assert_tide_ok(tide_trace_open(path, &t, &err), &err);
    return t;
}

static tide_trace *open_again(const tide_trace *of) {
    tide_error err = TIDE_ERROR_INIT;
    tide_trace *t = NULL;
    assert_tide_ok(tide_trace_open_again(of, &t, &err), &err);
    return t;
}

static void assert_same_scopes(const tide_trace *a, const tide_trace *b) {
    assert_int_equal(a->names.n_scopes, b->names.n_scopes);
    assert_true(a->names.n_scopes > 1);
    for (size_t i = 0; i <= a->names.n_scopes; i++) {
        const tide__trace_scope x = tide__trace_scope_of(a, (int64_t)i), y = tide__trace_scope_of(b, (int64_t)i);
        assert_string_equal(x.name, y.name);
        assert_true(x.step == y.step && x.run == y.run && x.is_operator == y.is_operator && x.is_step == y.is_step);
    }
}

static void names_are_held_once(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *alone = open_trace(d.file), *a = open_trace(d.file), *b = open_again(a), *c = open_again(b);
    assert_ptr_equal(a->names.texts, b->names.texts);
    assert_ptr_equal(a->names.scopes, c->names.scopes);
    assert_true(alone->names.scopes != a->names.scopes);
    tide_trace_close(a);
    assert_same_scopes(alone, b);
    tide_trace_close(b);
    assert_same_scopes(alone, c);
    tide_trace_close(c);
    tide_trace_close(alone);
    tmp_dir_remove(&d);
}

/// Another file has taken the place of the one that is open.
static void another_file_has_names_of_its_own(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *a = open_trace(d.file);
    assert_int_equal(remove(d.file), 0);
    feeder f;
    feeder_open(&f, d.file, 0, false);
    feed(&f, 1000, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 64, "other");
    feeder_close(&f);
    tide_trace *b = open_again(a);
    assert_true(a->names.texts != b->names.texts);
    assert_true(b->names.n_scopes < a->names.n_scopes);
    tide_trace_close(a);
    tide_trace_close(b);
    tmp_dir_remove(&d);
}

static void one_that_grows_shares_nothing(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    feeder f;
    feeder_open(&f, d.file, 1, false);
    feed(&f, 1000, TIDE_MEM_ALLOC, 1, TIDE_KIND_DEFAULT, 64, "a");
    tide_trace *a = open_trace(d.file), *b = open_again(a);
    assert_int_equal(a->state, TIDE_TRACE_RECORDING);
    assert_null(a->names.refs);
    assert_true(a->names.texts == NULL || a->names.texts != b->names.texts);
    tide_trace_close(b);
    tide_trace_close(a);
    feeder_close(&f);
    tmp_dir_remove(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(names_are_held_once),
        tide_unit_test(another_file_has_names_of_its_own),
        tide_unit_test(one_that_grows_shares_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
