// SPDX-License-Identifier: MIT
//
// The instrumented allocator around one whose frees wait for streams: when a free is told as complete, by whom, and
// what happens when the wrapper is gone by then.
#include <sched.h>
#include <stdatomic.h>

#include "core/device/backend.h"
#include "memory_test.h"

static tide_allocator *wrap(tide_allocator *inner, const tide_observer *obs) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_instrumented_create(inner, obs, &a, &err), &err);
    return a;
}

/// A stream-aware allocator whose streams are this test: a released block waits until complete() is called, or until
/// the allocator's end.
typedef struct waiting {
    char bytes[8][64];
    tide_memory held[8];
    size_t n_given, n_held;
    tide_stream_id used_by;
    tide_allocator_listener listener;
    bool *gone;
} waiting;

static tide_status waiting_alloc(void *self, const tide_alloc_request *req, tide_memory *out, tide_error *err) {
    waiting *w = self;
    if (req->size_bytes > sizeof w->bytes[0] || w->n_given == 8) return TIDE_FAIL(err, TIDE_ERR_NOMEM, "too much");
    if (w->n_given == 0 && w->listener.on_segment != NULL)
        w->listener.on_segment(w->listener.self, true, 77, w->bytes, sizeof w->bytes);
    out->data = w->bytes[w->n_given++];
    return TIDE_OK;
}
static void waiting_release(void *self, const tide_memory *mem, tide_stream_id last_stream) {
    (void)last_stream;
    waiting *w = self;
    w->held[w->n_held] = *mem;
    w->held[w->n_held++].tag = NULL;
}
static void complete(waiting *w) {
    for (size_t i = 0; i < w->n_held; i++) {
        if (w->listener.on_free_completed != NULL) w->listener.on_free_completed(w->listener.self, &w->held[i], 5);
    }
    w->n_held = 0;
}
static void waiting_stats(const void *self, tide_allocator_stats *out) {
    out->n_pending = ((const waiting *)self)->n_held;
}
static void waiting_props(const void *self, tide_allocator_props *out) {
    (void)self;
    out->what = "waits";
    out->stream_aware = true;
}
static void waiting_destroy(void *self) {
    waiting *w = self;
    complete(w); // destroying it waits for its streams
    *w->gone = true;
}
static void waiting_record_use(void *self, const tide_memory *mem, tide_stream_id stream) {
    (void)mem;
    ((waiting *)self)->used_by = stream;
}
static void waiting_listen(void *self, const tide_allocator_listener *who) {
    ((waiting *)self)->listener = who != NULL ? *who : (tide_allocator_listener){0};
}
static const tide_allocator_ops waiting_ops = {.abi = TIDE_ALLOCATOR_ABI,
                                               .name = "waiting",
                                               .alloc = waiting_alloc,
                                               .release = waiting_release,
                                               .stats = waiting_stats,
                                               .props = waiting_props,
                                               .destroy = waiting_destroy,
                                               .record_use = waiting_record_use,
                                               .listen = waiting_listen};

static tide_allocator *make_waiting(waiting *w, bool *gone) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    *gone = false;
    *w = (waiting){.gone = gone};
    assert_tide_ok(tide_allocator_create(&waiting_ops, w, TIDE_CPU, &a, &err), &err);
    return a;
}

static size_t count_of(const listener *l, tide_memory_op op) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) n += l->events[i].event.op == op;
    return n;
}

/// free_requested and free_completed are two moments: the second is told when the inner allocator says so.
static void completed_when_the_streams_are_done(void **state) {
    (void)state;
    static listener l;
    static waiting w;
    bool gone;
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer obs = listener_observer(&l);
    tide_allocator *inner = make_waiting(&w, &gone), *a = wrap(inner, &obs);
    tide_allocator_props props;
    tide_allocator_get_props(a, &props);
    assert_string_equal(props.what, "waits");
    assert_true(props.stream_aware);

    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 64, 1, TIDE_KIND_KV_CACHE, 3, "kv", &b, &err), &err);
    // The segment was taken for the first block: told inside its alloc, with its kind.
    assert_int_equal(l.n, 2);
    assert_int_equal(l.events[0].event.op, TIDE_MEM_SEGMENT_ALLOC);
    assert_true(l.events[0].event.block_id == 77 && l.events[0].event.reserved_bytes == sizeof w.bytes);
    assert_true(l.events[0].event.address == (uint64_t)(uintptr_t)w.bytes);
    assert_int_equal(l.events[0].event.kind, TIDE_KIND_KV_CACHE);
    tide_block_record_use(b, 9);
    assert_true(w.used_by == 9);
    const uint64_t id = b->id;
    tide_block_unref(b);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_REQUESTED), 1);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_COMPLETED), 0);
    assert_true(stats_of(a).n_pending == 1);
    complete(&w);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_COMPLETED), 1);
    const heard_event *last = &l.events[l.n - 1];
    assert_true(last->event.block_id == id && last->event.stream == 5 && last->event.requested_bytes == 64);
    assert_int_equal(last->event.kind, TIDE_KIND_KV_CACHE);
    assert_string_equal(last->tag, "(none)"); // the block is gone, and its tag with it
    tide_allocator_unref(a);
    assert_false(gone);
    tide_allocator_unref(inner);
    assert_true(gone);
}

/// The wrapper is gone with its last block, while the memory is still pending below.
static void pending_blocks_outlive_the_wrapper(void **state) {
    (void)state;
    static listener l;
    static waiting w;
    bool gone;
    tide_error err = TIDE_ERROR_INIT;
    tide_observer obs = listener_observer(&l);
    // Ours alone: the inner allocator ends with us, and completes while we listen.
    tide_allocator *inner = make_waiting(&w, &gone), *a = wrap(inner, &obs);
    tide_allocator_unref(inner);
    tide_block *b = NULL;
    assert_tide_ok(tide_block_create(a, 64, 1, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), &err);
    tide_allocator_unref(a);
    assert_false(gone);
    tide_block_unref(b);
    assert_true(gone);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_REQUESTED), 1);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_COMPLETED), 1);

    // Shared: the wrapper stops listening, and later completions are not reported.
    obs = listener_observer(&l);
    inner = make_waiting(&w, &gone);
    a = wrap(inner, &obs);
    assert_tide_ok(tide_block_create(a, 64, 1, TIDE_KIND_DEFAULT, 0, NULL, &b, &err), &err);
    tide_allocator_unref(a);
    tide_block_unref(b);
    const size_t heard = l.n;
    complete(&w);
    assert_int_equal(l.n, heard);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_COMPLETED), 0);
    assert_false(gone);
    tide_allocator_unref(inner);
    assert_true(gone);
}

typedef struct gate {
    _Atomic bool open;
} gate;

static void wait_at(void *arg) {
    while (!atomic_load(&((gate *)arg)->open)) sched_yield();
}

/// The same over a real stream: a block that a stream still uses is requested free, and complete when the stream is.
static void a_stream_that_works_keeps_its_block(void **state) {
    (void)state;
    static listener l;
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer obs = listener_observer(&l);
    tide_allocator *inner = NULL;
    assert_tide_ok(tide_stream_caching_create(TIDE_CPU, NULL, &inner, &err), &err);
    tide_allocator *a = wrap(inner, &obs);
    tide_allocator_unref(inner);
    tide_stream_id stream;
    assert_tide_ok(tide_stream_create(TIDE_CPU, &stream, &err), &err);
    gate way = {.open = false};
    assert_tide_ok(tide_device_call(TIDE_CPU, stream, wait_at, &way, &err), &err);
    tide_block *b = NULL, *other = NULL;
    assert_tide_ok(tide_block_create(a, 5000, 0, TIDE_KIND_WORKSPACE, 0, "b", &b, &err), &err);
    assert_int_equal(count_of(&l, TIDE_MEM_SEGMENT_ALLOC), 1);
    const uint64_t id = b->id;
    tide_block_record_use(b, stream);
    tide_block_unref(b);
    assert_tide_ok(tide_block_create(a, 5000, 0, TIDE_KIND_WORKSPACE, 0, "other", &other, &err), &err);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_REQUESTED), 1);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_COMPLETED), 0);
    assert_true(stats_of(a).n_pending == 1);
    atomic_store(&way.open, true);
    assert_tide_ok(tide_stream_sync(TIDE_CPU, stream, &err), &err);
    tide_block_unref(other);
    tide_stream_destroy(TIDE_CPU, stream);
    tide_allocator_trim(a);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_REQUESTED), 2);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_COMPLETED), 2);
    for (size_t i = 0; i < l.n; i++) {
        if (l.events[i].event.op != TIDE_MEM_FREE_COMPLETED || l.events[i].event.block_id != id) continue;
        assert_true(l.events[i].event.requested_bytes == 5000);
        assert_int_equal(l.events[i].event.kind, TIDE_KIND_WORKSPACE);
    }
    tide_allocator_unref(a);
    assert_int_equal(count_of(&l, TIDE_MEM_SEGMENT_FREE), count_of(&l, TIDE_MEM_SEGMENT_ALLOC));
}

typedef struct outer_ears {
    size_t n_completed, n_segments;
} outer_ears;
static void outer_completed(void *self, const tide_memory *mem, tide_stream_id stream) {
    (void)mem;
    (void)stream;
    ((outer_ears *)self)->n_completed++;
}
static void outer_segment(void *self, bool taken, uint64_t id, const void *address, size_t size_bytes) {
    (void)taken;
    (void)id;
    (void)address;
    (void)size_bytes;
    ((outer_ears *)self)->n_segments++;
}

/// A wrapper that is itself wrapped passes on the events that it receives.
static void an_outer_wrapper_receives_the_same_events(void **state) {
    (void)state;
    static listener l;
    static waiting w;
    bool gone;
    const tide_observer obs = listener_observer(&l);
    tide_allocator *inner = make_waiting(&w, &gone), *a = wrap(inner, &obs);
    outer_ears ears = {0};
    const tide_allocator_listener outer = {
        .self = &ears, .on_free_completed = outer_completed, .on_segment = outer_segment};
    tide_allocator_listen(a, &outer);
    tide_memory mem = take(a, 10, 1);
    assert_int_equal(ears.n_segments, 1);
    give(a, &mem);
    assert_int_equal(ears.n_completed, 0);
    complete(&w);
    assert_int_equal(ears.n_completed, 1);
    tide_allocator_listen(a, NULL);
    mem = take(a, 10, 1);
    give(a, &mem);
    complete(&w);
    assert_int_equal(ears.n_completed, 1);
    tide_allocator_unref(inner);
    tide_allocator_unref(a);
}

/// The middle wrapper forwards the registration of a listener, so it must also forward its end: a destroyed wrapper
/// must not be called.
static void a_chain_of_wrappers_that_goes_is_not_called(void **state) {
    (void)state;
    static listener l;
    static waiting w;
    bool gone;
    tide_error err = TIDE_ERROR_INIT;
    const tide_observer obs = listener_observer(&l);
    tide_allocator *inner = make_waiting(&w, &gone), *between = NULL;
    assert_tide_ok(tide_fail_nth_create(inner, -1, &between, &err), &err);
    tide_allocator *a = wrap(between, &obs);
    tide_allocator_unref(between);
    assert_non_null(w.listener.on_free_completed);
    const tide_memory mem = take(a, 64, 1);
    give(a, &mem);
    tide_allocator_unref(a); // the last of both; `inner` is still ours
    assert_null(w.listener.on_free_completed);
    complete(&w);
    assert_int_equal(count_of(&l, TIDE_MEM_FREE_COMPLETED), 0);
    tide_allocator_unref(inner);
    assert_true(gone);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        tide_unit_test(completed_when_the_streams_are_done),
        tide_unit_test(pending_blocks_outlive_the_wrapper),
        tide_unit_test(a_stream_that_works_keeps_its_block),
        tide_unit_test(an_outer_wrapper_receives_the_same_events),
        tide_unit_test(a_chain_of_wrappers_that_goes_is_not_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
