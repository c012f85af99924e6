// SPDX-License-Identifier: MIT
//
// The device type "fake", for tests of whatever lives above devices: several devices, each with an address space of its
// own, streams that run at once or only when the test says so, and failures where the test plants them.
//
//     fake_setup(2);                          // registers "fake" with fake:0 and fake:1
//     fake_hold(true);                        // from now on work waits in its stream
//     tide_device_copy(fake_at(0), s, …);     // queued
//     fake_step(s);                           // the next piece of s
//     fake_finish(s);                         // all of s, and what it waits for
//     fake_teardown();                        // fails the test when memory, a stream or an event is left
//
// Addresses. What it hands out is a real host address with bit 62 and the device's number turned in: the host that
// touches it crashes. Each copy and fill must lie inside one live block of its own device when it is *done*, or
// fake.n_faults rises (fake_teardown fails on it). So a block that was given back while a stream still uses it is
// found.
//
// Streams. Stream 0 is one stream per device, held like the others. Recording an event is a piece of work of its own:
// on a held stream an event is not done before it is stepped over, even when nothing else was queued. A sync does all
// that it waits for, also on held streams.
//
// Who needs none of that: after fake_setup all work is done at once, fake_peek shows the bytes, fake.n_live_blocks,
// fake.n_copies and fake_calls say what happened.
//
// Its own bookkeeping is plain malloc, so that it shows neither in the host memory of the code under test nor among the
// failures planted there. All of it is thread-safe.
#ifndef TIDE_TESTS_DEVICE_FAKE_DEVICE_H
#define TIDE_TESTS_DEVICE_FAKE_DEVICE_H

#include "tests/device/fake_driver.h"

static TIDE_UNUSED int32_t fake_count(void *self) {
    (void)self;
    return fake.count;
}

#define FAKE_OPS                                                                                                       \
    .abi = TIDE_DEVICE_ABI, .name = "fake", .count = fake_count, .mem_alloc = fake_mem_alloc,                          \
    .mem_free = fake_mem_free, .copy = fake_copy, .fill = fake_fill, .call = fake_call,                                \
    .stream_create = fake_stream_create, .stream_destroy = fake_stream_destroy, .stream_sync = fake_stream_sync,       \
    .stream_wait_event = fake_stream_wait_event, .event_create = fake_event_create,                                    \
    .event_destroy = fake_event_destroy, .event_record = fake_event_record, .event_query = fake_event_query,           \
    .event_sync = fake_event_sync, .capture_begin = fake_capture_begin, .capture_end = fake_capture_end,               \
    .capture_launch = fake_capture_launch, .capture_destroy = fake_capture_destroy

static TIDE_UNUSED const tide_device_ops fake_ops = {FAKE_OPS};
static TIDE_UNUSED const tide_device_ops fake_ops_pinned = {FAKE_OPS, .pinned_alloc = fake_pinned_alloc,
                                                            .pinned_free = fake_pinned_free};

/// With all that a driver does beyond that.
static TIDE_UNUSED const tide_device_ops fake_ops_driver = {FAKE_OPS, .pinned_alloc = fake_pinned_alloc,
                                                            .pinned_free = fake_pinned_free, FAKE_DRIVER_OPS};

// What tests call.

/// What was left when the fake was cleared.
typedef struct fake_rest {
    uint64_t n_blocks, n_streams, n_events, n_captures, n_ranges, pool_bytes;
} fake_rest;

static TIDE_UNUSED fake_rest fake_clear(void) {
    fake_rest rest = {.n_blocks = fake.n_live_blocks, .n_ranges = fake.n_ranges};
    for (int i = 0; i < FAKE_MAX_DEVICES; i++) rest.pool_bytes += fake.pools[i].stats.reserved_bytes;
    while (fake.ranges != NULL) fake_drop_range(fake.ranges);
    tide_device_unregister(fake.type);
    fake.registered = false;
    for (fake_stream *s; (s = fake.streams) != NULL; fake_remove_stream(s)) rest.n_streams += s->key < FAKE_DEFAULT_KEY;
    for (fake_event *e; (e = fake.events) != NULL; free(e), rest.n_events++) fake.events = e->next;
    for (fake_capture *c; (c = fake.captures) != NULL; free(c), rest.n_captures++) {
        fake.captures = c->next;
        fake_drop(&c->work);
    }
    for (fake_block *b; (b = fake.blocks) != NULL;) {
        fake_give(b->index, b->pinned ? (void *)b->real : fake_show(b->index, b->real), b->pinned);
    }
    return rest;
}

/// Register "fake" with `count` devices of that table and an empty slate.
static TIDE_UNUSED void fake_setup_as(int32_t count, const tide_device_ops *ops) {
    tide_error err = TIDE_ERROR_INIT;
    if (fake.registered) (void)fake_clear(); // the test before this one failed half-way
    assert_true(count >= 0 && count <= FAKE_MAX_DEVICES);
    fake = (fake_state){
        .lock = PTHREAD_MUTEX_INITIALIZER, .calm = PTHREAD_COND_INITIALIZER, .count = count, .limit_bytes = UINT64_MAX};
    for (int32_t i = 0; i < count; i++) fake_add_stream(i, FAKE_DEFAULT_KEY + (uint64_t)i);
    assert_tide_ok(tide_device_register(ops, &fake, &fake.type, &err), &err);
    fake.registered = true;
}

/// `pinned`: it has page-locked host memory to give.
static TIDE_UNUSED void fake_setup_with(int32_t count, bool pinned) {
    fake_setup_as(count, pinned ? &fake_ops_pinned : &fake_ops);
}

/// It has all that a driver can have: a pool, mapping, patterns.
static TIDE_UNUSED void fake_setup_driver(int32_t count) { fake_setup_as(count, &fake_ops_driver); }

static TIDE_UNUSED void fake_setup(int32_t count) { fake_setup_with(count, false); }

/// Let `after` calls of the kind succeed, then fail `times` of them (-1: all that follow; 0: none any more).
static TIDE_UNUSED void fake_fail(fake_call_kind call, int64_t after, int64_t times) {
    pthread_mutex_lock(&fake.lock);
    fake.fail_after[call] = after;
    fake.fail_times[call] = times;
    pthread_mutex_unlock(&fake.lock);
}

static TIDE_UNUSED uint64_t fake_calls(fake_call_kind call) {
    pthread_mutex_lock(&fake.lock);
    const uint64_t n = fake.n_calls[call];
    pthread_mutex_unlock(&fake.lock);
    return n;
}

/// Memory of each device from now on.
static TIDE_UNUSED void fake_limit(uint64_t limit_bytes) {
    pthread_mutex_lock(&fake.lock);
    fake.limit_bytes = limit_bytes;
    pthread_mutex_unlock(&fake.lock);
}

/// The next piece of the stream (0: the default stream of fake:0); false when there is none or it must wait.
static TIDE_UNUSED bool fake_step(tide_stream_id stream) {
    pthread_mutex_lock(&fake.lock);
    fake_stream *s = fake_find_key(stream == 0 ? FAKE_DEFAULT_KEY : stream);
    const bool did = s != NULL && fake_step_locked(s);
    pthread_mutex_unlock(&fake.lock);
    return did;
}

/// All of the stream, and of others what it waits for.
static TIDE_UNUSED void fake_finish(tide_stream_id stream) {
    pthread_mutex_lock(&fake.lock);
    const fake_stream *s = fake_find_key(stream == 0 ? FAKE_DEFAULT_KEY : stream);
    if (s != NULL) fake_advance(s->key, s->n_queued);
    pthread_mutex_unlock(&fake.lock);
}

/// All of every stream, in the order in which they were made.
static TIDE_UNUSED void fake_finish_all(void) {
    pthread_mutex_lock(&fake.lock);
    for (const fake_stream *s = fake.streams; s != NULL; s = s->next) fake_advance(s->key, s->n_queued);
    pthread_mutex_unlock(&fake.lock);
}

/// Pieces that wait in the stream.
static TIDE_UNUSED uint64_t fake_waiting(tide_stream_id stream) {
    pthread_mutex_lock(&fake.lock);
    const fake_stream *s = fake_find_key(stream == 0 ? FAKE_DEFAULT_KEY : stream);
    const uint64_t n = s != NULL ? s->n_queued - s->n_done : 0;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

/// Hold work back, or let all of it go and run new work at once.
static TIDE_UNUSED void fake_hold(bool held) {
    pthread_mutex_lock(&fake.lock);
    fake.held = held;
    pthread_mutex_unlock(&fake.lock);
    if (!held) fake_finish_all();
}

/// The bytes at the device address, for the host's eyes and without any stream; not one live block fails the test.
static TIDE_UNUSED char *fake_peek(int32_t index, const void *address, size_t size_bytes) {
    pthread_mutex_lock(&fake.lock);
    char *real = fake_bytes(index, address, size_bytes);
    pthread_mutex_unlock(&fake.lock);
    if (real == NULL) fail_msg("fake:%" PRId32 " has no block with %zu bytes at %p", index, size_bytes, address);
    return real;
}

/// `size_bytes` of `expect` are at the device address; looks without any stream.
static TIDE_UNUSED bool fake_holds(int32_t index, const void *address, const void *expect, size_t size_bytes) {
    pthread_mutex_lock(&fake.lock);
    const char *real = fake_bytes(index, address, size_bytes);
    const bool same = real != NULL && memcmp(real, expect, size_bytes) == 0;
    pthread_mutex_unlock(&fake.lock);
    return same;
}

/// Unregister, and fail the test when a block, a stream, an event or a capture is left, or a fault happened.
static TIDE_UNUSED void fake_teardown(void) {
    assert_true(fake.registered);
    fake_hold(false);
    const fake_rest rest = fake_clear();
    if (fake.n_faults > 0) fail_msg("%" PRIu64 " faults on the fake, first %s", fake.n_faults, fake.fault);
    if (rest.n_blocks + rest.n_streams + rest.n_events + rest.n_captures > 0) {
        fail_msg("left on the fake: %" PRIu64 " blocks, %" PRIu64 " streams, %" PRIu64 " events, %" PRIu64 " captures",
                 rest.n_blocks, rest.n_streams, rest.n_events, rest.n_captures);
    }
    if (rest.n_ranges + rest.pool_bytes > 0) {
        fail_msg("left on the fake: %" PRIu64 " reserved ranges, %" PRIu64 " B in pools", rest.n_ranges,
                 rest.pool_bytes);
    }
}

#endif
