// SPDX-License-Identifier: MIT
//
// A random history of a program, written into a trace through the store alone, and a naive reading of it beside: every
// event in an array, every block in an array, live bytes after each event by adding up. It knows nothing of leaves,
// snapshots, chunks and replays.
#ifndef TIDE_TESTS_PROFILER_HISTORY_FIXTURE_H
#define TIDE_TESTS_PROFILER_HISTORY_FIXTURE_H

#include "profiler/store/finish.h"
#include "profiler/store/process_ends.h"
#include "tests/profiler/store_fixture.h"

enum { H_DEVICES = 2, H_SERIES = H_DEVICES * TIDE_N_KINDS, H_MAX_LIVE = 400, H_TAGS = 5, H_SCOPES = 4 };
static const char *const h_devices[H_DEVICES] = {"cpu", "cuda:0"};

typedef struct h_block {
    tide__event alloc;
    int64_t free_event, free_ns; ///< 0: never
    int64_t end_event, end_ns;   ///< the same, or when its process ended
    int64_t requested_event;     ///< its free was requested; 0: not
} h_block;

typedef struct history {
    tide__event *events; ///< [n], event i has id i + 1
    size_t n, cap;
    h_block *blocks; ///< [n_blocks]
    size_t n_blocks, cap_blocks;
    size_t live[H_MAX_LIVE]; ///< [n_live] indices of blocks
    size_t n_live;
    int64_t (*bytes)[H_SERIES]; ///< [n] live bytes of each series after each event
    size_t cap_bytes;
    int64_t now[H_SERIES];
    uint32_t *touched; ///< [n] series that each event changed, a bit each
    size_t cap_touched;
    uint32_t touches;
    int64_t n_ids;
    int32_t run;
    tide_rng rng;
    // what a history is like
    unsigned stand_still; ///< of 16 events so many have the time of the one before
    bool has_problems, has_discards, has_ends;
    int64_t n_ended;         ///< processes; two others go on
    bool frees_without_size; ///< as a tool that only sees pointers
} history;

typedef enum h_form { H_ROWS, H_CHUNKS, H_MIXED } h_form;

// ---- the naive reading ----

static inline int h_series(const tide__event *e) { return (e->device - 1) * TIDE_N_KINDS + e->kind; }

static inline int64_t h_process(const tide__event *e) { return e->block_id >> TIDE__BLOCK_ID_BITS; }

static inline void h_end(history *h, size_t live_i, const tide__event *e) {
    h_block *b = &h->blocks[h->live[live_i]];
    h->touches |= 1u << h_series(&b->alloc);
    b->end_event = e->id;
    b->end_ns = e->t_ns;
    if (e->op != TIDE__OP_PROCESS_END) {
        b->free_event = e->id;
        b->free_ns = e->t_ns;
    }
    h->now[h_series(&b->alloc)] -= b->alloc.requested_bytes;
    h->live[live_i] = h->live[--h->n_live];
}

static inline size_t h_find(const history *h, int64_t block_id) {
    for (size_t i = 0; i < h->n_live; i++)
        if (h->blocks[h->live[i]].alloc.block_id == block_id) return i;
    return SIZE_MAX;
}

static inline void h_note(history *h, const tide__event *e) {
    const size_t live_i = h_find(h, e->block_id);
    h->touches = 0;
    if (e->op == TIDE_MEM_ALLOC) {
        if (live_i != SIZE_MAX) h_end(h, live_i, e);
        assert_int_equal(tide_host_grow(&h->blocks, &h->cap_blocks, h->n_blocks + 1, sizeof *h->blocks), TIDE_OK);
        h->blocks[h->n_blocks] = (h_block){.alloc = *e};
        h->live[h->n_live++] = h->n_blocks++;
        h->now[h_series(e)] += e->requested_bytes;
        h->touches |= 1u << h_series(e);
    } else if (e->op == TIDE_MEM_FREE_COMPLETED && live_i != SIZE_MAX) {
        h_end(h, live_i, e);
    } else if (e->op == TIDE_MEM_FREE_REQUESTED && live_i != SIZE_MAX) {
        h_block *b = &h->blocks[h->live[live_i]];
        if (b->requested_event == 0) b->requested_event = e->id;
    } else if (e->op == TIDE_MEM_POOL_DISCARD) {
        for (size_t i = h->n_live; i-- > 0;) {
            const tide__event *a = &h->blocks[h->live[i]].alloc;
            if (h_process(a) == h_process(e) && a->device == e->device && a->address >= e->address &&
                a->address < e->address + e->reserved_bytes)
                h_end(h, i, e);
        }
    } else if (e->op == TIDE__OP_PROCESS_END) {
        for (size_t i = h->n_live; i-- > 0;)
            if (h_process(&h->blocks[h->live[i]].alloc) == h_process(e)) h_end(h, i, e);
    }
    assert_int_equal(tide_host_grow(&h->events, &h->cap, h->n + 1, sizeof *h->events), TIDE_OK);
    assert_int_equal(tide_host_grow(&h->bytes, &h->cap_bytes, h->n + 1, sizeof *h->bytes), TIDE_OK);
    assert_int_equal(tide_host_grow(&h->touched, &h->cap_touched, h->n + 1, sizeof *h->touched), TIDE_OK);
    memcpy(h->bytes[h->n], h->now, sizeof h->now);
    h->touched[h->n] = h->touches;
    h->events[h->n++] = *e;
}

/// Live bytes of (kind or -1, device number or -1) after event `id`.
static inline int64_t h_bytes(const history *h, int kind, int device, int64_t id) {
    int64_t sum = 0;
    if (id > 0 && kind >= 0 && device >= 0) return h->bytes[id - 1][device * TIDE_N_KINDS + kind];
    for (int d = 0; id > 0 && d < H_DEVICES; d++)
        for (int k = 0; k < TIDE_N_KINDS; k++)
            if ((kind < 0 || k == kind) && (device < 0 || d == device)) sum += h->bytes[id - 1][d * TIDE_N_KINDS + k];
    return sum;
}

/// Whether event `id` changed one of those series.
static inline bool h_is_of(const history *h, int kind, int device, int64_t id) {
    uint32_t mask = 0;
    for (int i = 0; i < H_SERIES; i++)
        if ((kind < 0 || i % TIDE_N_KINDS == kind) && (device < 0 || i / TIDE_N_KINDS == device)) mask |= 1u << i;
    return (h->touched[id - 1] & mask) != 0;
}

/// Last event at or before `t_ns`; 0: none.
static inline int64_t h_event_at(const history *h, int64_t t_ns) {
    int64_t id = 0;
    for (size_t lo = 0, hi = h->n; lo < hi;) {
        const size_t mid = lo + (hi - lo) / 2;
        if (h->events[mid].t_ns <= t_ns) {
            id = (int64_t)mid + 1;
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return id;
}

/// Blocks that were never freed, whether they live on or ended with their process.
static inline size_t h_n_leaked(const history *h) {
    size_t n = 0;
    for (size_t i = 0; i < h->n_blocks; i++) n += h->blocks[i].free_event == 0;
    return n;
}

static inline void h_deinit(history *h) {
    tide_host_free(h->events);
    tide_host_free(h->blocks);
    tide_host_free(h->bytes);
    tide_host_free(h->touched);
}

// ---- events ----

static inline void h_put(history *h, writer *w, tide__event e) {
    const bool still = tide_rng_below(&h->rng, 16) < h->stand_still;
    e.id = w->last_event + 1;
    e.t_ns = w->last_ns + (still && w->last_ns > 0 ? 0 : 1 + (int64_t)tide_rng_below(&h->rng, 40));
    e.run_id = h->run;
    if (e.thread == 0) e.thread = 1 + (int32_t)tide_rng_below(&h->rng, 3);
    const size_t n_live = h->n_live;
    const int64_t bytes = w->replay.series[0].live_bytes;
    h_note(h, &e);
    writer_put(w, e);
    if (e.op != TIDE__OP_PROCESS_END) return;
    tide_error err = TIDE_ERROR_INIT;
    const tide__process_end end = {.process_id = h_process(&e) + 1,
                                   .event = e.id,
                                   .t_ns = e.t_ns,
                                   .n_blocks = (int64_t)(n_live - h->n_live),
                                   .bytes = bytes - w->replay.series[0].live_bytes};
    writer_begin(w);
    assert_tide_ok(tide__process_end_write(tide__store_sql(w->s), &end, &err), &err);
}

/// What the numbers of the next block count from: one of two processes'.
static inline int64_t h_base(history *h) {
    return h->has_ends ? (h->n_ended + (int64_t)tide_rng_below(&h->rng, 2)) << TIDE__BLOCK_ID_BITS : 0;
}

static inline tide__event h_alloc(history *h, int64_t id) {
    static const uint8_t kinds[] = {TIDE_KIND_DEFAULT, TIDE_KIND_WORKSPACE, TIDE_KIND_WORKSPACE, TIDE_KIND_KV_CACHE};
    const int64_t bytes = (int64_t)tide_rng_below(&h->rng, tide_rng_below(&h->rng, 8) == 0 ? 100000 : 900);
    return (tide__event){.op = TIDE_MEM_ALLOC,
                         .block_id = id,
                         .kind = kinds[tide_rng_below(&h->rng, 4)],
                         .device = 1 + (int16_t)tide_rng_below(&h->rng, H_DEVICES),
                         .requested_bytes = bytes,
                         .reserved_bytes = (bytes + 63) / 64 * 64,
                         .address = 0x10000 * (id % 512),
                         .stream = tide_rng_below(&h->rng, 3) == 0 ? -1 : 0,
                         .allocator_id = 1,
                         .tag_id = (int32_t)tide_rng_below(&h->rng, H_TAGS + 1),
                         .scope_id = (int32_t)tide_rng_below(&h->rng, H_SCOPES + 1)};
}

static inline tide__event h_free(const history *h, size_t live_i, int op) {
    tide__event e = h->blocks[h->live[live_i]].alloc;
    e.op = (uint8_t)op;
    if (h->frees_without_size) e.requested_bytes = e.reserved_bytes = 0;
    return e;
}

/// Something that no program may do, and the like.
static inline void h_odd(history *h, writer *w) {
    tide__event e = h_alloc(h, h->n_ids + 1000000);
    switch (tide_rng_below(&h->rng, h->has_ends ? 9 : 8)) {
    case 8: // the end of a process
        if (tide_rng_below(&h->rng, 4) != 0) return;
        e = (tide__event){
            .op = TIDE__OP_PROCESS_END, .kind = TIDE__NO_KIND, .block_id = h->n_ended++ << TIDE__BLOCK_ID_BITS};
        break;
    case 0: // freed without being live
        if (!h->has_problems) return;
        e.op = TIDE_MEM_FREE_COMPLETED;
        break;
    case 1: // allocated twice
        if (!h->has_problems || h->n_live == 0) return;
        e.block_id = h->blocks[h->live[tide_rng_below(&h->rng, h->n_live)]].alloc.block_id;
        break;
    case 2: // several blocks at once
        if (!h->has_discards) return;
        e = (tide__event){.op = TIDE_MEM_POOL_DISCARD,
                          .kind = TIDE__NO_KIND,
                          .block_id = h_base(h),
                          .device = 1 + (int16_t)tide_rng_below(&h->rng, H_DEVICES),
                          .address = 0x10000 * (int64_t)tide_rng_below(&h->rng, 500),
                          .reserved_bytes = 0x10000 * 6};
        break;
    case 3: // a named moment
        e = (tide__event){.op = TIDE_MEM_SNAPSHOT, .kind = TIDE__NO_KIND, .tag_id = 1 + (int32_t)(h->n % H_TAGS)};
        break;
    case 4:
        e = (tide__event){.op = TIDE_MEM_OOM, .kind = e.kind, .device = e.device, .requested_bytes = 1 << 30};
        break;
    case 5:
        e = (tide__event){.op = TIDE__OP_GAP, .kind = TIDE__NO_KIND, .requested_bytes = 3};
        break;
    default:
        e = (tide__event){.op = h->n % 2 == 0 ? TIDE__OP_SCOPE_ENTER : TIDE__OP_SCOPE_LEAVE,
                          .kind = TIDE__NO_KIND,
                          .scope_id = 1 + (int32_t)(h->n / 2 % H_SCOPES)};
        break;
    }
    h_put(h, w, e);
}

static inline void h_step(history *h, writer *w, size_t want_live) {
    const uint64_t dice = tide_rng_below(&h->rng, 100);
    if (dice < 4) {
        h_odd(h, w);
    } else if (h->n_live < want_live / 2 + tide_rng_below(&h->rng, want_live) && h->n_live < H_MAX_LIVE - 1) {
        h_put(h, w, h_alloc(h, h_base(h) + ++h->n_ids));
    } else if (h->n_live > 0) {
        const size_t at = (size_t)tide_rng_below(&h->rng, h->n_live);
        h_put(h, w, h_free(h, at, dice < 40 ? TIDE_MEM_FREE_REQUESTED : TIDE_MEM_FREE_COMPLETED));
    }
}

static inline void h_flush(history *h, writer *w, h_form form) {
    w->as_chunks = form == H_CHUNKS || (form == H_MIXED && tide_rng_below(&h->rng, 2) == 0);
    writer_flush(w);
}

/// About `n` events more.
static inline void h_go_on(history *h, writer *w, size_t n, h_form form) {
    const size_t end = h->n + n;
    while (h->n < end) {
        h_step(h, w, h->n / 5000 % 2 == 0 ? 60 : 250);
        if (tide_rng_below(&h->rng, 700) == 0) h_flush(h, w, form);
    }
    h_flush(h, w, form);
}

/// Begin a trace with the names that the events use. `seed` decides what it is like.
static inline void h_begin(history *h, writer *w, const char *path, uint64_t seed) {
    tide_error err = TIDE_ERROR_INIT;
    *h = (history){.rng = {seed * 77}, .stand_still = (unsigned)(seed % 3) * 6};
    h->has_problems = seed % 2 == 1;
    h->has_discards = seed % 3 == 1;
    h->has_ends = seed % 4 == 2;
    h->frees_without_size = seed % 5 == 4;
    assert_tide_ok(tide__store_create(path, &err), &err);
    writer_open(w, path);
    int64_t id;
    assert_tide_ok(tide__names_device(&w->names, (tide_device){TIDE_DEVICE_CUDA, 0}, &id), &err);
    for (int i = 3; i <= H_TAGS + 3; i++) {
        char text[32];
        snprintf(text, sizeof text, "text %d", i);
        assert_tide_ok(tide__names_text(&w->names, text, &id), &err);
    }
    for (int i = 2; i <= H_SCOPES; i++) {
        const tide__scope_row row = {.name_id = i, .kind = TIDE_SCOPE_OPERATOR, .step = i - 2, .parent_id = 1};
        assert_tide_ok(tide__names_scope_row(&w->names, &row, &id), &err);
    }
    assert_tide_ok(tide__names_thread(&w->names, 1, 2, "", &id), &err);
    assert_tide_ok(tide__names_thread(&w->names, 1, 3, "worker", &id), &err);
    writer_begin(w);
    const tide__process_row process = {.pid = 4711, .rank = -1, .command = "history", .begin_ns = 1};
    assert_tide_ok(tide__store_add_process(w->s, &process, &id, &err), &err);
    writer_flush(w);
}

static inline void h_run(history *h, writer *w, bool begin, int32_t run_id) {
    tide_error err = TIDE_ERROR_INIT;
    h->run = begin ? run_id : 0;
    writer_flush(w);
    writer_begin(w);
    const tide_run_info info = {.model = "made up", .mode = "naive", .device = "cpu"};
    if (begin) {
        int64_t id;
        assert_tide_ok(tide__store_add_run(w->s, 1, &info, NULL, w->last_ns, &id, &err), &err);
        assert_int_equal(id, run_id);
    }
    assert_tide_ok(tide__store_run(w->s, begin, run_id, w->last_event, w->last_ns, &err), &err);
    writer_flush(w);
}

/// Nothing follows: finish the trace.
static inline void h_finish(writer *w) {
    tide_error err = TIDE_ERROR_INIT;
    writer_flush(w);
    assert_tide_ok(tide__finish(w->s, NULL, &err), &err);
    w->s = NULL;
    writer_close(w);
}

/// A whole trace of about `n` events; two runs in its middle.
static inline void h_record(history *h, const char *path, uint64_t seed, size_t n, h_form form) {
    writer w;
    h_begin(h, &w, path, seed);
    h_go_on(h, &w, n / 4, form);
    h_run(h, &w, true, 1);
    h_go_on(h, &w, n / 4, form);
    h_run(h, &w, false, 1);
    h_run(h, &w, true, 2);
    h_go_on(h, &w, n / 4, form);
    h_run(h, &w, false, 2);
    h_go_on(h, &w, n / 4, form);
    h_finish(&w);
}

#endif
