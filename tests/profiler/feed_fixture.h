// SPDX-License-Identifier: MIT
//
// A feed with both its ends in one process: events by hand go in, slots come out, names are looked up in the log.
#ifndef TIDE_TESTS_PROFILER_FEED_FIXTURE_H
#define TIDE_TESTS_PROFILER_FEED_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "profiler/event.h"
#include "profiler/feed/feed.h"
#include "profiler/feed/reader.h"
#include "tests/profiler/trace_fixture.h"

enum { FX_MAX_RINGS = 64, FX_MAX_NAMES = 20000 };

typedef struct feed_fx {
    tmp_dir dir;
    tide__feed *feed;
    tide__feed_reader *reader;
    uint64_t at[FX_MAX_RINGS]; ///< position read next, by ring
    /// Payloads by number; the log's own, valid as long as the reader.
    const tide__log_record *of[TIDE__LOG_THREAD + 1][FX_MAX_NAMES + 1];
    uint32_t n_of[TIDE__LOG_THREAD + 1];
    char path[600]; ///< see fx_scope_path
} feed_fx;

static inline tide__feed *fx_create(const tmp_dir *dir, size_t ring_slots, bool drops) {
    const tide__feed_options opt = {
        .trace_path = dir->file, .rank = -1, .ring_slots = ring_slots, .drop_when_full = drops};
    tide_error err = TIDE_ERROR_INIT;
    tide__feed *f = NULL;
    assert_tide_ok(tide__feed_create(&opt, &f, &err), &err);
    return f;
}

static inline feed_fx *fx_open(size_t ring_slots, bool drops) {
    feed_fx *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    tmp_dir_make(&fx->dir);
    fx->feed = fx_create(&fx->dir, ring_slots, drops);
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_open(tide__feed_path(fx->feed), false, &fx->reader, &err), &err);
    return fx;
}

/// Everything of it; nothing is left in the folder.
static inline void fx_close(feed_fx *fx) {
    if (fx->feed != NULL) tide__feed_end(fx->feed);
    tide__feed_destroy(fx->feed, false);
    tide__feed_reader_close(fx->reader, true);
    assert_int_equal(tmp_dir_count(&fx->dir), 0);
    tmp_dir_remove(&fx->dir);
    free(fx);
}

static inline tide_memory_event fx_event(tide_memory_op op, uint64_t block_id) {
    return (tide_memory_event){.op = op,
                               .block_id = block_id,
                               .kind = TIDE_KIND_WORKSPACE,
                               .requested_bytes = 100,
                               .reserved_bytes = 128,
                               .address = 0x1000 * block_id,
                               .thread = tide_thread_id(),
                               .allocator = "test",
                               .tag = "tensor"};
}

/// An alloc of `block_id` by the calling thread.
static inline void fx_alloc(feed_fx *fx, uint64_t block_id) {
    const tide_memory_event e = fx_event(TIDE_MEM_ALLOC, block_id);
    tide__feed_memory(fx->feed, &e);
}

/// What the log defines by now.
static inline void fx_read_names(feed_fx *fx) {
    bool bad;
    for (const tide__log_record *r; (r = tide__feed_reader_next_record(fx->reader, &bad)) != NULL;) {
        assert_in_range(r->type, TIDE__LOG_TEXT, TIDE__LOG_THREAD);
        const uint32_t number = ++fx->n_of[r->type];
        assert_true(number <= FX_MAX_NAMES);
        if (r->type != TIDE__LOG_THREAD) assert_int_equal(r->id, number);
        fx->of[r->type][number] = r;
    }
    assert_false(bad);
}

/// The next slot of a ring; false: none yet. `give`: it is free for the producer again.
static inline bool fx_take(feed_fx *fx, size_t ring, bool give, tide__slot *out) {
    const uint64_t end = tide__feed_reader_end(fx->reader, ring, fx->at[ring], false);
    if (fx->at[ring] == end) return false;
    fx_read_names(fx);
    const tide__slot *s = tide__feed_reader_slot(fx->reader, ring, fx->at[ring]);
    assert_non_null(s);
    memcpy(out, s, offsetof(tide__slot, sequence));
    fx->at[ring]++;
    if (give)
        atomic_store_explicit(&tide__feed_reader_ring(fx->reader, ring)->tail, fx->at[ring], memory_order_release);
    return true;
}

/// The next slot of the first ring that is an event; it is there.
static inline tide__slot fx_next(feed_fx *fx) {
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__feed_reader_refresh(fx->reader, &err), &err);
    assert_true(tide__feed_reader_n_rings(fx->reader) > 0);
    tide__slot s;
    do assert_true(fx_take(fx, 0, true, &s));
    while (s.op == TIDE__SLOT_THREAD);
    return s;
}

static inline const char *fx_text(const feed_fx *fx, uint32_t number) {
    if (number == 0) return NULL;
    assert_true(number <= fx->n_of[TIDE__LOG_TEXT]);
    const tide__log_record *r = fx->of[TIDE__LOG_TEXT][number];
    const char *text = (const char *)(r + 1);
    assert_int_equal(strlen(text), r->payload_bytes);
    return text;
}

static inline const tide__log_scope *fx_scope(const feed_fx *fx, uint32_t number) {
    assert_in_range(number, 1, fx->n_of[TIDE__LOG_SCOPE]);
    const tide__log_record *r = fx->of[TIDE__LOG_SCOPE][number];
    assert_int_equal(r->payload_bytes, sizeof(tide__log_scope));
    return (const tide__log_scope *)(r + 1);
}

static inline const char *fx_allocator(const feed_fx *fx, uint32_t number) {
    assert_in_range(number, 1, fx->n_of[TIDE__LOG_ALLOCATOR]);
    uint32_t text;
    memcpy(&text, fx->of[TIDE__LOG_ALLOCATOR][number] + 1, sizeof text);
    return fx_text(fx, text);
}

/// "outer/inner", each with its step; the fixture's, until the next call.
static inline const char *fx_scope_path(feed_fx *fx, uint32_t number) {
    fx->path[0] = '\0';
    while (number != 0) {
        const tide__log_scope *s = fx_scope(fx, number);
        char rest[sizeof fx->path];
        memcpy(rest, fx->path, sizeof rest);
        const int n = snprintf(fx->path, sizeof fx->path, "%s:%d", fx_text(fx, s->text_id), s->step);
        assert_true((size_t)n + 1 + strlen(rest) < sizeof fx->path);
        if (rest[0] != '\0') snprintf(fx->path + n, sizeof fx->path - (size_t)n, "/%s", rest);
        assert_true(s->parent_id < number);
        number = s->parent_id;
    }
    return fx->path;
}

static inline tide__feed_stats fx_stats(const feed_fx *fx) {
    tide__feed_stats s;
    tide__feed_get_stats(fx->feed, &s);
    return s;
}

#endif
