// SPDX-License-Identifier: MIT
//
// What the tests of stream_caching share: short words for blocks on streams of the fake device, and ears.
#ifndef TIDE_TESTS_STREAM_CACHING_TEST_H
#define TIDE_TESTS_STREAM_CACHING_TEST_H

#include "memory_test.h"
#include "tests/device/fake_device.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static TIDE_UNUSED tide_allocator *make_on(tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_allocator *a = NULL;
    assert_tide_ok(tide_stream_caching_create(device, NULL, &a, &err), &err);
    return a;
}

/// An allocator of fake:0, after the fake was set up with two devices.
static TIDE_UNUSED tide_allocator *make_fake(void) {
    fake_setup(2);
    return make_on(fake_at(0));
}

static TIDE_UNUSED tide_stream_id stream_on(tide_device device) {
    tide_error err = TIDE_ERROR_INIT;
    tide_stream_id s = 0;
    assert_tide_ok(tide_stream_create(device, &s, &err), &err);
    return s;
}
static TIDE_UNUSED tide_stream_id new_stream(void) { return stream_on(fake_at(0)); }
static TIDE_UNUSED void end_stream(tide_stream_id s) { tide_stream_destroy(fake_at(0), s); }

static TIDE_UNUSED tide_memory take_on(tide_allocator *a, size_t size_bytes, tide_stream_id stream) {
    static uint64_t last_id;
    tide_error err = TIDE_ERROR_INIT;
    const tide_alloc_request req = {.size_bytes = size_bytes, .stream = stream, .block_id = ++last_id, .tag = "block"};
    tide_memory mem = {0};
    assert_tide_ok(tide_allocator_alloc(a, &req, &mem, &err), &err);
    assert_sound(a);
    return mem;
}

static TIDE_UNUSED void give_on(tide_allocator *a, const tide_memory *mem, tide_stream_id stream) {
    tide_allocator_release(a, mem, stream);
    assert_sound(a);
}

/// Something that `stream` still has to do with the block.
static TIDE_UNUSED void touch(const tide_memory *mem, tide_stream_id stream) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide_device_fill(fake_at(0), stream, mem->data, 1, mem->requested_bytes, &err), &err);
}

/// The same, declared.
static TIDE_UNUSED void use(tide_allocator *a, const tide_memory *mem, tide_stream_id stream) {
    touch(mem, stream);
    tide_allocator_record_use(a, mem, stream);
}

static TIDE_UNUSED void *at_offset(const tide_memory *mem, size_t bytes) { return (char *)mem->data + bytes; }

// ---- ears ----

typedef struct ears {
    size_t n_completed, n_taken, n_given;
    tide_memory last; ///< completed last
    tide_stream_id last_stream;
    uint64_t segment_ids[64]; ///< [n_taken]
    size_t segment_bytes;     ///< of the last one taken or given
    const void *segment;
} ears;

static TIDE_UNUSED void hear_completed(void *self, const tide_memory *mem, tide_stream_id stream) {
    ears *e = self;
    e->n_completed++;
    e->last = *mem;
    e->last_stream = stream;
}

static TIDE_UNUSED void hear_segment(void *self, bool taken, uint64_t id, const void *address, size_t size_bytes) {
    ears *e = self;
    if (taken) e->segment_ids[e->n_taken % 64] = id;
    *(taken ? &e->n_taken : &e->n_given) += 1;
    e->segment_bytes = size_bytes;
    e->segment = address;
}

static TIDE_UNUSED void listen_with(tide_allocator *a, ears *e) {
    *e = (ears){0};
    const tide_allocator_listener l = {.self = e, .on_free_completed = hear_completed, .on_segment = hear_segment};
    tide_allocator_listen(a, &l);
}

#endif
