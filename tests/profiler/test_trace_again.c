// SPDX-License-Identifier: MIT
//
// A trace that is opened twice: what both have in common is held once, and stays for the one that is closed last. Two
// of different files, or of one that is still being recorded, have nothing in common.
#include "profiler/executions.h"
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
    tide_trace_shared *shared;
    assert_tide_ok(tide_trace_share(of, &shared, &err), &err);
    assert_tide_ok(tide_trace_open_shared(of->path, shared, &t, &err), &err);
    tide_trace_shared_drop(shared);
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

static const tide_executions *executions_of(tide_trace *t, int64_t run_id) {
    tide_error err = TIDE_ERROR_INIT;
    const tide_executions *x;
    assert_tide_ok(tide_trace_executions(t, run_id, &x, &err), &err);
    return x;
}

/// Those that were asked for, plan and all; of other runs each reads its own.
static void executions_are_held_once(void **state) {
    (void)state;
    tmp_dir d;
    tmp_dir_make(&d);
    demo_record(d.file, 0);
    tide_trace *alone = open_trace(d.file), *a = open_trace(d.file);
    const tide_executions *of_a = executions_of(a, 2), *of_alone = executions_of(alone, 2);
    tide_trace *b = open_again(a);
    assert_ptr_equal(executions_of(b, 2), of_a);
    assert_true(executions_of(b, 1) != executions_of(a, 1) && of_a != of_alone);
    tide_trace_close(a);
    const tide_executions *of_b = executions_of(b, 2);
    assert_true(of_b->n > 0 && of_b->n == of_alone->n && of_b->plan != NULL);
    for (size_t i = 0; i < of_b->n; i++) {
        const tide_execution *x = &of_b->items[i], *y = &of_alone->items[i];
        assert_true(x->number == y->number && x->first_event == y->first_event && x->n_steps == y->n_steps);
        assert_memory_equal(tide_execution_steps(of_b, x), tide_execution_steps(of_alone, y),
                            x->n_steps * sizeof(tide_execution_step));
    }
    tide_trace_close(b);
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
        tide_unit_test(executions_are_held_once),
        tide_unit_test(another_file_has_names_of_its_own),
        tide_unit_test(one_that_grows_shares_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
