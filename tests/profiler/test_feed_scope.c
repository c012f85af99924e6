// SPDX-License-Identifier: MIT
//
// Scopes in a feed: by content, however often and wherever they are entered.
#include "feed_fixture.h"

/// An alloc inside `scope`; the scope's path as the feed has it.
static const char *path_of_next(feed_fx *fx, const tide_scope *scope, uint32_t thread) {
    tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    e.scope = scope;
    e.thread = thread;
    tide__feed_memory(fx->feed, &e);
    return fx_scope_path(fx, fx_next(fx).scope);
}

static void send_scope(feed_fx *fx, const tide_scope *scope, bool enter) {
    tide__feed_scope(fx->feed, &(tide_scope_event){.enter = enter, .thread = tide_thread_id(), .scope = scope});
}

static void scopes_nest(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    tide_scope run = {.name = "run", .kind = TIDE_SCOPE_RUN, .index = 3},
               conv = {.name = "conv", .kind = TIDE_SCOPE_OPERATOR};
    tide_scope region = {.name = NULL, .kind = TIDE_SCOPE_REGION, .index = -5};
    const uint32_t me = tide_thread_id();
    assert_string_equal(path_of_next(fx, NULL, me), "");
    tide_scope_enter(&run, NULL);
    assert_string_equal(path_of_next(fx, tide_scope_current(), me), "run:3");
    tide_scope_enter(&conv, NULL);
    assert_string_equal(path_of_next(fx, tide_scope_current(), me), "run:3/conv:0");
    tide_scope_enter(&region, NULL);
    assert_string_equal(path_of_next(fx, tide_scope_current(), me), "run:3/conv:0/:-1"); // no name, no step
    tide_scope_leave(&region, NULL);
    assert_string_equal(path_of_next(fx, tide_scope_current(), me), "run:3/conv:0");
    tide_scope_leave(&run, NULL);
    assert_int_equal(fx_scope(fx, 1)->kind, TIDE_SCOPE_RUN);
    assert_int_equal(fx_scope(fx, 2)->kind, TIDE_SCOPE_OPERATOR);
    assert_int_equal(fx->n_of[TIDE__LOG_SCOPE], 3);
    fx_close(fx);
}

static void scope_events_come_out(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    tide_scope op = {.name = "op", .kind = TIDE_SCOPE_OPERATOR, .index = 1};
    tide_scope_enter(&op, NULL);
    send_scope(fx, &op, true);
    send_scope(fx, &op, false);
    tide_scope_leave(&op, NULL);
    for (int i = 0; i < 2; i++) {
        const tide__slot s = fx_next(fx);
        assert_int_equal(s.op, i == 0 ? TIDE__OP_SCOPE_ENTER : TIDE__OP_SCOPE_LEAVE);
        assert_int_equal(s.kind_flags & 15, 15);
        assert_true(s.time != 0 && s.block_id == 0 && s.requested_bytes == 0 && s.reserved_bytes == 0);
        assert_true(s.address == 0 && s.stream == 0 && s.tag == 0 && s.device == 0 && s.allocator == 0);
        assert_string_equal(fx_text(fx, fx_scope(fx, s.scope)->text_id), "op");
    }
    assert_int_equal(fx_stats(fx).n_events, 2);
    fx_close(fx);
}

/// One struct, entered as one thing after the other, under one parent after the other.
static void an_address_is_no_scope(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    static const char *const names[] = {"a", "b", "a", "a", "b"};
    static const int32_t steps[] = {0, 0, 1, 0, 0};
    const uint32_t me = tide_thread_id();
    tide_scope outer, inner;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++) {
            for (int k = 0; k < 5; k++) {
                outer = (tide_scope){.name = names[i], .kind = TIDE_SCOPE_RUN, .index = steps[i]};
                inner = (tide_scope){.name = names[k], .kind = TIDE_SCOPE_OPERATOR, .index = steps[k]};
                char want[64];
                snprintf(want, sizeof want, "%s:%d/%s:%d", names[i], steps[i], names[k], steps[k]);
                tide_scope_enter(&outer, NULL);
                tide_scope_enter(&inner, NULL);
                assert_string_equal(path_of_next(fx, &inner, me), want);
                assert_string_equal(path_of_next(fx, &inner, me), want);
                assert_string_equal(path_of_next(fx, &outer, me),
                                    (snprintf(want, sizeof want, "%s:%d", names[i], steps[i]), want));
                tide_scope_leave(&outer, NULL);
            }
        }
    }
    assert_int_equal(fx->n_of[TIDE__LOG_SCOPE], 3 + 3 * 3); // a:0, b:0, a:1, and each of them inside each
    fx_close(fx);
}

/// A kind makes a scope another one; so does the text at the address of its name.
static void all_of_a_scope_counts(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    char name[] = "same";
    tide_scope s = {.name = name, .kind = TIDE_SCOPE_OPERATOR};
    for (int i = 0; i < 4; i++) {
        s.kind = i == 1 ? TIDE_SCOPE_REGION : TIDE_SCOPE_OPERATOR;
        name[0] = i == 2 ? 'g' : 's';
        tide_scope_enter(&s, NULL);
        assert_string_equal(path_of_next(fx, &s, 1), i == 2 ? "game:0" : "same:0");
        tide_scope_leave(&s, NULL);
    }
    assert_int_equal(fx->n_of[TIDE__LOG_SCOPE], 3);
    fx_close(fx);
}

/// Made by hand, with no number of its entering: each event asks for all of it again.
static void scopes_by_hand_are_compared(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    tide_scope outer = {.name = "outer"}, inner = {.name = "inner", .parent = &outer, .index = 2};
    assert_string_equal(path_of_next(fx, &inner, 1), "outer:0/inner:2");
    outer.name = "other";
    assert_string_equal(path_of_next(fx, &inner, 1), "other:0/inner:2");
    inner.index = 4;
    assert_string_equal(path_of_next(fx, &inner, 1), "other:0/inner:4");
    inner.parent = NULL;
    assert_string_equal(path_of_next(fx, &inner, 1), "inner:4");
    // One that was entered inside one that was not, and the other way round.
    inner = (tide_scope){.name = "inner", .parent = &outer, .entry = 1};
    assert_string_equal(path_of_next(fx, &inner, 1), "other:0/inner:0");
    tide_scope leaf = {.name = "leaf", .parent = &inner};
    assert_string_equal(path_of_next(fx, &leaf, 1), "other:0/inner:0/leaf:0");
    fx_close(fx);
}

/// Threads count their enterings each for itself, and stacks are used again.
static void numbers_of_enterings_are_those_of_a_thread(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    static const char *const names[] = {"first", "second", "third"};
    for (int i = 0; i < 3; i++) { // the same address and number, of another thread
        tide_scope s = {.name = names[i], .entry = 5};
        char want[32];
        snprintf(want, sizeof want, "%s:0", names[i]);
        for (int k = 0; k < 3; k++) assert_string_equal(path_of_next(fx, &s, (uint32_t)i % 2), want);
    }
    fx_close(fx);
}

/// The event of another thread was refused after its scope was found: the ring is still the first one's.
static void a_refused_event_leaves_no_scope(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    tide_scope s = {.name = "mine", .entry = 3};
    for (int i = 0; i < 3; i++) assert_string_equal(path_of_next(fx, &s, 1), "mine:0");
    s.name = "yours";
    char *long_name = malloc(TIDE__FEED_MAX_TEXT + 2);
    assert_non_null(long_name);
    memset(long_name, 'n', TIDE__FEED_MAX_TEXT + 1);
    long_name[TIDE__FEED_MAX_TEXT + 1] = '\0';
    tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    e.thread = 2;
    e.scope = &s;
    e.allocator = long_name;
    tide__feed_memory(fx->feed, &e);
    assert_int_equal(fx_stats(fx).n_refused, 1);
    s.name = "mine"; // the first thread's, as it was
    for (int i = 0; i < 3; i++) assert_string_equal(path_of_next(fx, &s, 1), "mine:0");
    free(long_name);
    fx_close(fx);
}

typedef struct other {
    feed_fx *fx;
    const tide_scope *scope;
    bool begins_run; ///< before its first event
} other;

static void *put_one(void *arg) {
    const other *o = arg;
    tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    e.scope = o->scope;
    e.thread = o->begins_run ? tide_thread_id() : 1;
    if (o->begins_run) tide__feed_run(o->fx->feed, true, 1, 0);
    for (int i = 0; i < 3; i++) tide__feed_memory(o->fx->feed, &e);
    return NULL;
}

/// One thread after the other, of which a runtime says the same number: each one's scope lies where that of the one
/// before lay. The last ones put in something else first.
static void a_ring_that_changes_hands_forgets_scopes(void **state) {
    (void)state;
    feed_fx *fx = fx_open(64, false);
    tide_scope s = {.entry = 1};
    static const char *const names[] = {"first", "second", "third", "fourth"};
    for (int i = 0; i < 4; i++) {
        s.name = names[i];
        other o = {.fx = fx, .scope = &s, .begins_run = i >= 2};
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, put_one, &o), 0);
        assert_int_equal(pthread_join(t, NULL), 0);
        if (o.begins_run) assert_int_equal(fx_next(fx).op, TIDE__SLOT_RUN_BEGIN);
        for (int k = 0; k < 3; k++)
            assert_string_equal(fx_text(fx, fx_scope(fx, fx_next(fx).scope)->text_id), names[i]);
    }
    assert_int_equal(tide__feed_reader_n_rings(fx->reader), 1);
    fx_close(fx);
}

/// A thousand levels are a chain; without an end it is refused.
static void deep_scopes(void **state) {
    (void)state;
    enum { DEEP = 1000 };
    feed_fx *fx = fx_open(64, false);
    tide_scope *s = calloc(DEEP, sizeof *s);
    assert_non_null(s);
    for (int i = 0; i < DEEP; i++) s[i] = (tide_scope){.name = "level", .index = i, .parent = i > 0 ? &s[i - 1] : NULL};
    tide_memory_event e = fx_event(TIDE_MEM_ALLOC, 1);
    for (int round = 0; round < 2; round++) {
        e.scope = &s[DEEP - 1];
        tide__feed_memory(fx->feed, &e);
        uint32_t number = fx_next(fx).scope;
        for (int i = DEEP; i-- > 0; number = fx_scope(fx, number)->parent_id)
            assert_int_equal(fx_scope(fx, number)->step, i);
        assert_int_equal(number, 0);
    }
    s[0].parent = &s[1]; // round and round
    e.scope = &s[0];
    tide__feed_memory(fx->feed, &e);
    assert_int_equal(fx_stats(fx).n_refused, 1);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_status(tide__feed_error(fx->feed, &err), TIDE_ERR_INVALID);
    assert_text_has(err.msg, "nested more than");
    free(s);
    fx_close(fx);
}

/// Against plain comparison: scopes and their parents at a few addresses, entered and left at random.
static void a_random_walk_through_scopes(void **state) {
    (void)state;
    enum { DEPTH = 6 };
    feed_fx *fx = fx_open(64, false);
    tide_rng rng = {.state = 11};
    tide_scope stack[DEPTH];
    char names[3][8] = {"x", "y", "z"};
    char want[DEPTH + 1][256] = {""};
    int depth = 0;
    for (int i = 0; i < 20000; i++) {
        if (depth < DEPTH && (depth == 0 || tide_rng_below(&rng, 2) == 0)) {
            const int32_t step = (int32_t)tide_rng_below(&rng, 3) - 1;
            const char *name = names[tide_rng_below(&rng, 3)];
            stack[depth] = (tide_scope){.name = name, .kind = TIDE_SCOPE_OPERATOR, .index = step};
            tide_scope_enter(&stack[depth], NULL);
            char outside[200];
            snprintf(outside, sizeof outside, "%.190s%s", want[depth], depth > 0 ? "/" : "");
            snprintf(want[depth + 1], sizeof want[0], "%s%s:%d", outside, name, step);
            depth++;
        } else {
            tide_scope_leave(&stack[--depth], NULL);
        }
        assert_string_equal(path_of_next(fx, tide_scope_current(), 1), want[depth]);
    }
    while (depth > 0) tide_scope_leave(&stack[--depth], NULL);
    fx_close(fx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(scopes_nest),
        tide_unit_test(scope_events_come_out),
        tide_unit_test(an_address_is_no_scope),
        tide_unit_test(all_of_a_scope_counts),
        tide_unit_test(scopes_by_hand_are_compared),
        tide_unit_test(numbers_of_enterings_are_those_of_a_thread),
        tide_unit_test(a_ring_that_changes_hands_forgets_scopes),
        tide_unit_test(a_refused_event_leaves_no_scope),
        tide_unit_test(deep_scopes),
        tide_unit_test(a_random_walk_through_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
