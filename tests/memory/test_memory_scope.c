// SPDX-License-Identifier: MIT
//
// Scopes nest per thread; thread numbers; two observers as one.
#include "memory_test.h"

typedef struct scope_log {
    char text[256];
    uint64_t last_ns;
    bool in_order;
} scope_log;

static void write_down(void *self, const tide_scope_event *event) {
    scope_log *l = self;
    const size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%c%s ", event->enter ? '+' : '-', event->scope->name);
    if (event->t_ns < l->last_ns) l->in_order = false;
    l->last_ns = event->t_ns;
}

static void hear_nothing(void *self, const tide_memory_event *event) {
    (void)self;
    (void)event;
}

static void scopes_nest(void **state) {
    (void)state;
    tide_host_stats before, after;
    scope_log log = {.in_order = true};
    const tide_observer obs = {.self = &log, .on_memory = hear_nothing, .on_scope = write_down};
    tide_scope run = {.name = "run", .kind = TIDE_SCOPE_RUN, .index = 0};
    tide_scope conv = {.name = "conv", .kind = TIDE_SCOPE_OPERATOR, .index = 1};
    tide_scope relu = {.name = "relu", .kind = TIDE_SCOPE_OPERATOR, .index = 2};
    tide_host_get_stats(&before);
    assert_null(tide_scope_current());
    tide_scope_enter(&run, &obs);
    assert_ptr_equal(tide_scope_current(), &run);
    assert_null(run.parent);
    tide_scope_enter(&conv, &obs);
    assert_ptr_equal(conv.parent, &run);
    assert_ptr_equal(tide_scope_current(), &conv);
    tide_scope_leave(&conv, &obs);
    tide_scope_enter(&relu, &obs);
    assert_ptr_equal(relu.parent, &run);
    tide_scope_leave(&relu, &obs);
    tide_scope_leave(&run, &obs);
    assert_null(tide_scope_current());
    assert_string_equal(log.text, "+run +conv -conv +relu -relu -run ");
    assert_true(log.in_order);
    tide_host_get_stats(&after);
    assert_int_equal(after.n_allocs, before.n_allocs); // they cost no memory
}

static void leaving_out_of_order_heals(void **state) {
    (void)state;
    scope_log log = {.in_order = true};
    const tide_observer obs = {.self = &log, .on_memory = hear_nothing, .on_scope = write_down};
    tide_scope a = {.name = "a"}, b = {.name = "b"}, never = {.name = "never"};
    tide_scope_enter(&a, &obs);
    tide_scope_enter(&b, &obs);
    tide_scope_leave(&never, &obs); // not entered: nothing happens
    assert_ptr_equal(tide_scope_current(), &b);
    tide_scope_leave(&a, &obs); // b was forgotten: it is left first
    assert_null(tide_scope_current());
    assert_string_equal(log.text, "+a +b -b -a ");
    tide_scope_leave(&b, &obs); // too late
    assert_string_equal(log.text, "+a +b -b -a ");
    tide_scope_enter(&a, NULL); // no observer
    tide_scope_leave(&a, NULL);
    const tide_observer deaf = {.on_memory = hear_nothing};
    tide_scope_enter(&a, &deaf);
    tide_scope_leave(&a, &deaf);
    assert_null(tide_scope_current());
}

/// The number by which an observer knows a scope again: another one each time it is entered, none for one made by hand.
static void every_entering_has_a_number(void **state) {
    (void)state;
    tide_scope a = {.name = "a"}, b = {.name = "b"};
    assert_true(a.entry == 0);
    tide_scope_enter(&a, NULL);
    const uint64_t first = a.entry;
    assert_true(first != 0);
    tide_scope_enter(&b, NULL);
    assert_true(b.entry > first);
    tide_scope_leave(&b, NULL);
    assert_true(a.entry == first); // what happens inside does not change it
    tide_scope_leave(&a, NULL);
    const uint64_t second = b.entry;
    tide_scope_enter(&a, NULL);
    assert_true(a.entry > second);
    tide_scope_leave(&a, NULL);
}

typedef struct thread_view {
    const tide_scope *at_start, *inside;
    uint32_t id;
} thread_view;

static void *look_around(void *arg) {
    thread_view *v = arg;
    tide_scope own = {.name = "own"};
    v->at_start = tide_scope_current();
    tide_scope_enter(&own, NULL);
    v->inside = tide_scope_current() == &own && own.parent == NULL ? &own : NULL;
    tide_scope_leave(&own, NULL);
    v->id = tide_thread_id();
    return NULL;
}

static void every_thread_has_its_own(void **state) {
    (void)state;
    const uint32_t mine = tide_thread_id();
    assert_true(mine > 0);
    assert_int_equal(tide_thread_id(), mine);
    tide_scope outer = {.name = "outer"};
    tide_scope_enter(&outer, NULL);
    thread_view views[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, look_around, &views[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_null(views[i].at_start);
        assert_non_null(views[i].inside);
        assert_true(views[i].id > 0 && views[i].id != mine);
        for (int j = 0; j < i; j++) assert_int_not_equal(views[i].id, views[j].id);
    }
    assert_ptr_equal(tide_scope_current(), &outer);
    tide_scope_leave(&outer, NULL);
}

static void two_observers_as_one(void **state) {
    (void)state;
    static listener first, second;
    const tide_observer a = listener_observer(&first);
    tide_observer b = listener_observer(&second);
    const tide_observer_pair both = {&a, &b};
    const tide_observer obs = tide_observer_both(&both);
    const tide_memory_event event = {.op = TIDE_MEM_ALLOC, .requested_bytes = 5, .allocator = "cpu"};
    obs.on_memory(obs.self, &event);
    assert_true(first.n == 1 && second.n == 1);

    scope_log log = {.in_order = true};
    const tide_observer listens = {.self = &log, .on_memory = hear_nothing, .on_scope = write_down};
    const tide_observer_pair half = {&a, &listens}; // a does not listen to scopes
    const tide_observer mixed = tide_observer_both(&half);
    tide_scope s = {.name = "s"};
    tide_scope_enter(&s, &mixed);
    tide_scope_leave(&s, &mixed);
    assert_string_equal(log.text, "+s -s ");

    const tide_observer_pair one = {NULL, &b}, none = {NULL, NULL};
    const tide_observer right = tide_observer_both(&one), empty = tide_observer_both(&none);
    assert_null(right.on_scope); // no observer takes scopes: no clock is read for them
    assert_true(empty.no_time && !right.no_time);
    right.on_memory(right.self, &event);
    empty.on_memory(empty.self, &event);
    tide_scope_enter(&s, &empty);
    tide_scope_leave(&s, &empty);
    assert_true(first.n == 1 && second.n == 2);
}

static void scopes_have_no_time_for_observers_without_time(void **state) {
    (void)state;
    scope_log log = {.in_order = true};
    const tide_observer timeless = {.self = &log, .on_memory = hear_nothing, .on_scope = write_down, .no_time = true};
    tide_scope s = {.name = "s"};
    tide_scope_enter(&s, &timeless);
    tide_scope_leave(&s, &timeless);
    assert_string_equal(log.text, "+s -s ");
    assert_true(log.last_ns == 0);
    const tide_observer_pair pair = {&timeless, NULL};
    const tide_observer both = tide_observer_both(&pair);
    tide_scope_enter(&s, &both);
    tide_scope_leave(&s, &both);
    assert_true(log.last_ns == 0);
}

static void ops_have_names(void **state) {
    (void)state;
    assert_string_equal(tide_memory_op_name(TIDE_MEM_ALLOC), "alloc");
    assert_string_equal(tide_memory_op_name(TIDE_MEM_FREE_REQUESTED), "free_requested");
    assert_string_equal(tide_memory_op_name(TIDE_MEM_FREE_COMPLETED), "free_completed");
    assert_string_equal(tide_memory_op_name(TIDE_MEM_OOM), "oom");
    assert_string_equal(tide_memory_op_name(TIDE_MEM_POOL_DISCARD), "pool_discard");
    assert_string_equal(tide_memory_op_name(TIDE_MEM_SNAPSHOT), "snapshot");
    assert_string_equal(tide_memory_op_name((tide_memory_op)99), "op ?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(scopes_nest),
        tide_unit_test(leaving_out_of_order_heals),
        tide_unit_test(every_entering_has_a_number),
        tide_unit_test(every_thread_has_its_own),
        tide_unit_test(two_observers_as_one),
        tide_unit_test(scopes_have_no_time_for_observers_without_time),
        tide_unit_test(ops_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
