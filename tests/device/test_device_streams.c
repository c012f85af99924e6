// SPDX-License-Identifier: MIT
//
// Streams and events of a device: order inside a stream, none between streams, and what an event promises.
#include <signal.h>

#include "core/base/text.h"
#include "tests/device/device_test.h"

enum { N_ORDERED = 2000 };

/// Notes in which order calls came. One stream writes at a time.
typedef struct note_book {
    int seen[N_ORDERED];
    size_t n;
} note_book;

typedef struct note {
    note_book *book;
    int what;
} note;

static void write_note(void *arg) {
    const note *x = arg;
    x->book->seen[x->book->n++] = x->what;
}

static void a_stream_keeps_its_order(void **state) {
    (void)state;
    static note_book book;
    static note notes[N_ORDERED];
    const tide_stream_id s = new_stream(subject);
    for (int i = 0; i < N_ORDERED; i++) {
        notes[i] = (note){.book = &book, .what = i};
        put_call(subject, s, write_note, &notes[i]);
    }
    char *a = take_shared(64), *b = take_shared(64), *c = take_shared(64);
    put_fill(subject, s, a, 7, 64);
    put_copy(subject, s, TIDE_COPY_HOST_TO_DEVICE, b, a, 64);
    put_fill(subject, s, a, 8, 64);
    put_copy(subject, s, TIDE_COPY_DEVICE_TO_HOST, c, b, 64);
    put_copy(subject, s, TIDE_COPY_WITHIN_DEVICE, b, a, 64);
    finish(subject, s);
    assert_int_equal(book.n, N_ORDERED);
    for (int i = 0; i < N_ORDERED; i++) assert_int_equal(book.seen[i], i);
    for (size_t i = 0; i < 64; i++) assert_true(a[i] == 8 && b[i] == 8 && c[i] == 7);
    give_shared(a);
    give_shared(b);
    give_shared(c);
    tide_stream_destroy(subject, s);
}

static void streams_do_not_wait_for_each_other(void **state) {
    (void)state;
    gate door = GATE_INIT;
    const tide_stream_id a = new_stream(subject), b = new_stream(subject);
    assert_true(a != b);
    const tide_event_id of_a = new_event(subject);
    char *bytes = take_shared(4);
    put_call(subject, a, gate_pass, &door);
    record(subject, of_a, a);
    put_fill(subject, b, bytes, 3, 4);
    finish(subject, b); // would never return if b waited for a
    assert_int_equal(bytes[3], 3);
    assert_false(is_done(subject, of_a));
    gate_open(&door);
    finish(subject, a);
    assert_true(is_done(subject, of_a));
    give_shared(bytes);
    tide_event_destroy(subject, of_a);
    tide_stream_destroy(subject, a);
    tide_stream_destroy(subject, b);
}

/// LT-26: this is what a deferred free asks.
static void an_event_is_done_when_its_stream_got_there(void **state) {
    (void)state;
    tide_error err = TIDE_ERROR_INIT;
    gate door = GATE_INIT, second_door = GATE_INIT;
    const tide_stream_id s = new_stream(subject);
    const tide_event_id first = new_event(subject), second = new_event(subject);
    assert_true(is_done(subject, first)); // never recorded
    assert_tide_ok(tide_event_sync(subject, first, &err), &err);
    record(subject, first, s); // on an idle stream
    assert_true(is_done_soon(subject, first));

    put_call(subject, s, gate_pass, &door);
    record(subject, first, s);
    put_call(subject, s, gate_pass, &second_door);
    record(subject, second, s);
    assert_false(is_done(subject, first));
    gate_open(&door);
    assert_tide_ok(tide_event_sync(subject, first, &err), &err);
    assert_true(door.left);
    assert_true(is_done(subject, first));
    assert_false(is_done(subject, second));
    gate_open(&second_door);
    assert_tide_ok(tide_event_sync(subject, second, &err), &err);
    assert_true(second_door.left);

    record(subject, second, 0); // the default stream has nothing left to do
    assert_true(is_done_soon(subject, second));
    tide_event_destroy(subject, first);
    tide_event_destroy(subject, second);
    tide_stream_destroy(subject, s);
}

static void sum_bytes(void *arg) {
    unsigned char *bytes = arg;
    bytes[15] = 0;
    for (int i = 0; i < 15; i++) bytes[15] = (unsigned char)(bytes[15] + bytes[i]);
}

static void waiting_for_an_event_does_not_stop_the_host(void **state) {
    (void)state;
    gate door = GATE_INIT;
    const tide_stream_id a = new_stream(subject), b = new_stream(subject);
    const tide_event_id filled = new_event(subject), summed = new_event(subject);
    unsigned char *bytes = take_shared(16);
    put_call(subject, a, gate_pass, &door);
    put_fill(subject, a, bytes, 5, 16);
    record(subject, filled, a);
    wait_for(subject, b, filled); // returns while the door is shut
    put_call(subject, b, sum_bytes, bytes);
    record(subject, summed, b);
    pause_briefly();
    assert_false(is_done(subject, summed));
    gate_open(&door);
    finish(subject, b);
    assert_int_equal(bytes[15], 75);
    give_shared(bytes);
    tide_event_destroy(subject, filled);
    tide_event_destroy(subject, summed);
    tide_stream_destroy(subject, a);
    tide_stream_destroy(subject, b);
}

static void the_default_stream_waits_on_the_host(void **state) {
    (void)state;
    only_on_the_cpu();
    gate door = GATE_INIT;
    pthread_t opener;
    const tide_stream_id s = new_stream(subject);
    const tide_event_id e = new_event(subject);
    put_call(subject, s, gate_pass, &door);
    record(subject, e, s);
    assert_int_equal(pthread_create(&opener, NULL, gate_open_later, &door), 0);
    wait_for(subject, 0, e);
    assert_true(door.left);
    pthread_join(opener, NULL);
    tide_event_destroy(subject, e);
    tide_stream_destroy(subject, s);
}

/// Who waits for a record waits for that one: moving the event to another stream changes nothing for it.
static void a_second_record_moves_the_event_but_no_waiter(void **state) {
    (void)state;
    gate door = GATE_INIT;
    const tide_stream_id a = new_stream(subject), b = new_stream(subject), idle = new_stream(subject);
    const tide_event_id e = new_event(subject), behind = new_event(subject);
    put_call(subject, a, gate_pass, &door);
    record(subject, e, a);
    wait_for(subject, b, e);
    record(subject, behind, b);
    record(subject, e, idle);
    assert_true(is_done_soon(subject, e));
    pause_briefly();
    assert_false(is_done(subject, behind));
    tide_event_destroy(subject, e); // nor does its end
    pause_briefly();
    assert_false(is_done(subject, behind));
    gate_open(&door);
    finish(subject, b);
    assert_true(door.left);
    tide_event_destroy(subject, behind);
    tide_stream_destroy(subject, a);
    tide_stream_destroy(subject, b);
    tide_stream_destroy(subject, idle);
}

static void destroying_a_stream_drains_it(void **state) {
    (void)state;
    static note_book book;
    static note notes[100];
    tide_error err = TIDE_ERROR_INIT;
    gate door = GATE_INIT;
    pthread_t opener;
    const tide_stream_id s = new_stream(subject), waiter = new_stream(subject);
    const tide_event_id e = new_event(subject);
    put_call(subject, s, gate_pass, &door);
    for (int i = 0; i < 100; i++) {
        notes[i] = (note){.book = &book, .what = i};
        put_call(subject, s, write_note, &notes[i]);
    }
    record(subject, e, s);
    wait_for(subject, waiter, e); // a thread that waits for the stream while it goes
    assert_int_equal(pthread_create(&opener, NULL, gate_open_later, &door), 0);
    tide_stream_destroy(subject, s);
    assert_int_equal(book.n, 100);
    assert_true(is_done(subject, e));
    assert_tide_status(tide_stream_sync(subject, s, &err), TIDE_ERR_INVALID);
    finish(subject, waiter);
    pthread_join(opener, NULL);
    tide_stream_destroy(subject, waiter);
    tide_event_destroy(subject, e);
}

static void do_nothing(void *arg) { (void)arg; }

enum { N_WAITERS = 12 };

/// Those that wait for a stream leave it before it is taken apart. For the address sanitizer.
static void a_stream_may_go_while_many_wait_for_it(void **state) {
    (void)state;
    tide_stream_id waiters[N_WAITERS];
    const tide_event_id e = new_event(subject);
    for (size_t i = 0; i < N_WAITERS; i++) waiters[i] = new_stream(subject);
    for (int round = 0; round < 60; round++) {
        gate door = GATE_INIT;
        const tide_stream_id s = new_stream(subject);
        put_call(subject, s, gate_pass, &door);
        record(subject, e, s);
        for (size_t i = 0; i < N_WAITERS; i++) wait_for(subject, waiters[i], e);
        gate_wait_entered(&door);
        if (round % 20 == 0) pause_briefly(); // so that all of them are waiting
        gate_open(&door);
        tide_stream_destroy(subject, s);
        assert_true(door.left);
        for (size_t i = 0; i < N_WAITERS; i++) finish(subject, waiters[i]);
    }
    for (size_t i = 0; i < N_WAITERS; i++) tide_stream_destroy(subject, waiters[i]);
    tide_event_destroy(subject, e);
}

/// What waits keeps its order when the queue becomes larger, wherever in the ring it lies.
static void a_growing_queue_keeps_its_order(void **state) {
    (void)state;
    static note notes[500];
    for (int done_before = 0; done_before < 130; done_before += 43) {
        static note_book book;
        book.n = 0;
        gate door = GATE_INIT;
        const tide_stream_id s = new_stream(subject);
        for (int i = 0; i < done_before; i++) put_call(subject, s, do_nothing, NULL);
        finish(subject, s);
        put_call(subject, s, gate_pass, &door);
        for (int i = 0; i < 500; i++) {
            notes[i] = (note){.book = &book, .what = i};
            put_call(subject, s, write_note, &notes[i]);
        }
        gate_open(&door);
        finish(subject, s);
        assert_int_equal(book.n, 500);
        for (int i = 0; i < 500; i++) assert_int_equal(book.seen[i], i);
        tide_stream_destroy(subject, s);
    }
}

/// A host that runs ahead makes the queue larger; after that nothing is allocated any more.
static void a_steady_stream_does_not_allocate(void **state) {
    (void)state;
    const tide_stream_id a = new_stream(subject), b = new_stream(subject);
    const tide_event_id e = new_event(subject);
    tide_host_stats before = {0}, after;
    for (int round = 0; round < 4; round++) {
        if (round == 1) tide_host_get_stats(&before);
        gate door = GATE_INIT;
        put_call(subject, a, gate_pass, &door);
        gate_wait_entered(&door);
        for (int i = 0; i < 3000; i++) put_call(subject, a, do_nothing, NULL);
        record(subject, e, a);
        wait_for(subject, b, e);
        gate_open(&door);
        finish(subject, b);
        finish(subject, a);
    }
    tide_host_get_stats(&after);
    assert_int_equal(after.n_allocs, before.n_allocs);
    tide_event_destroy(subject, e);
    tide_stream_destroy(subject, a);
    tide_stream_destroy(subject, b);
}

static void read_mask(void *arg) { pthread_sigmask(SIG_BLOCK, NULL, arg); }

/// The program's handlers run on its own threads, and creating a stream leaves their mask as it was.
static void streams_take_no_signals(void **state) {
    (void)state;
    only_on_the_cpu(); // another driver's threads are its own
    sigset_t of_stream, before, after;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    const tide_stream_id s = new_stream(subject);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    put_call(subject, s, read_mask, &of_stream);
    finish(subject, s);
    assert_true(sigismember(&of_stream, SIGINT) == 1 && sigismember(&of_stream, SIGWINCH) == 1);
    assert_int_equal(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
    tide_stream_destroy(subject, s);
}

/// Ids are never given twice, and a stream that is gone costs nothing.
static void ids_are_never_reused(void **state) {
    (void)state;
    uint64_t last = 0;
    tide_stream_id streams[20];
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < 20; i++) {
            streams[i] = new_stream(subject);
            assert_true(streams[i] > last);
            last = streams[i];
        }
        const tide_event_id e = new_event(subject);
        assert_true(e > last);
        last = e;
        tide_event_destroy(subject, e);
        for (size_t i = 0; i < 20; i++) tide_stream_destroy(subject, streams[i]);
    }
    assert_true(tide_device_new_id() > last);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(a_stream_keeps_its_order),
        tide_unit_test(streams_do_not_wait_for_each_other),
        tide_unit_test(an_event_is_done_when_its_stream_got_there),
        tide_unit_test(waiting_for_an_event_does_not_stop_the_host),
        tide_unit_test(the_default_stream_waits_on_the_host),
        tide_unit_test(a_second_record_moves_the_event_but_no_waiter),
        tide_unit_test(destroying_a_stream_drains_it),
        tide_unit_test(a_stream_may_go_while_many_wait_for_it),
        tide_unit_test(a_growing_queue_keeps_its_order),
        tide_unit_test(a_steady_stream_does_not_allocate),
        tide_unit_test(streams_take_no_signals),
        tide_unit_test(ids_are_never_reused),
    };
    return run_subject_tests(tests);
}
