// SPDX-License-Identifier: MIT
//
// A trace written through the store alone: events of a made-up program, replayed, with leaves and snapshots as a drain
// makes them.
#ifndef TIDE_TESTS_PROFILER_STORE_FIXTURE_H
#define TIDE_TESTS_PROFILER_STORE_FIXTURE_H

#include "profiler/store/snapshot.h"
#include "profiler/store/store.h"
#include "tests/profiler/trace_fixture.h"

typedef struct writer {
    tide__store *s;
    tide__names names;
    tide__replay replay;
    tide__leaves leaves;
    int64_t last_event, last_ns, last_snapshot;
    tide__event *batch; ///< [n_batch]
    size_t n_batch, cap_batch;
    bool in_transaction, as_chunks;
    tide_rng rng;
    int64_t *live; ///< [n_live] block numbers
    size_t n_live, cap_live;
    int64_t n_blocks;
    ptrdiff_t want_live; ///< about so many blocks live
} writer;

static inline void writer_open(writer *w, const char *path) {
    *w = (writer){.rng = {.state = 7}, .want_live = 100};
    tide_error err = TIDE_ERROR_INIT;
    assert_tide_ok(tide__store_open(path, &w->s, &err), &err);
    assert_tide_ok(tide__replay_init(&w->replay), &err);
    int64_t id;
    assert_tide_ok(tide__names_device(&w->names, TIDE_CPU, &id), &err);
    assert_tide_ok(tide__names_text(&w->names, "cpu", &id), &err);
    assert_tide_ok(tide__names_text(&w->names, "tensor", &id), &err);
    assert_tide_ok(tide__names_scope_row(&w->names, &(tide__scope_row){.name_id = 2, .step = -1}, &id), &err);
    assert_tide_ok(tide__names_thread(&w->names, 1, 1, "main", &id), &err);
}

static inline void writer_close(writer *w) {
    tide__store_close(w->s);
    tide__names_deinit(&w->names);
    tide__replay_deinit(&w->replay);
    tide__leaves_deinit(&w->leaves);
    tide_host_free(w->batch);
    tide_host_free(w->live);
}

static inline void writer_begin(writer *w) {
    tide_error err = TIDE_ERROR_INIT;
    if (!w->in_transaction) assert_tide_ok(tide__store_begin(w->s, &err), &err);
    w->in_transaction = true;
}

/// Everything up to the last event into the file, in one transaction.
static inline void writer_flush(writer *w) {
    writer_begin(w);
    tide_error err = TIDE_ERROR_INIT;
    tide_status st = tide__store_write_names(w->s, &w->names, &err);
    if (st == TIDE_OK) st = tide__store_write_events(w->s, w->batch, w->n_batch, w->as_chunks, &err);
    if (st == TIDE_OK) st = tide__store_write_leaves(w->s, &w->replay, w->leaves.done, w->leaves.n_done, &err);
    assert_tide_ok(tide__store_end(w->s, st, &err), &err);
    tide__names_written(&w->names);
    w->in_transaction = false;
    w->n_batch = w->leaves.n_done = 0;
}

/// Give the event its number and put it in.
static inline void writer_put(writer *w, tide__event e) {
    tide_error err = TIDE_ERROR_INIT;
    e.id = ++w->last_event;
    if (e.t_ns == 0) e.t_ns = w->last_ns + 10;
    w->last_ns = e.t_ns;
    tide__problem problem;
    size_t series;
    assert_tide_ok(tide__replay_apply(&w->replay, &e, &problem, &series), &err);
    assert_tide_ok(tide__leaves_add(&w->leaves, &w->replay, &e, series), &err);
    assert_tide_ok(tide_host_grow(&w->batch, &w->cap_batch, w->n_batch + 1, sizeof e), &err);
    w->batch[w->n_batch++] = e;
    if (problem != TIDE__PROBLEM_NONE) {
        writer_begin(w);
        assert_tide_ok(tide__store_write_problem(w->s, &e, problem, &err), &err);
    }
    const int64_t by_live = (int64_t)tide__replay_n_live(&w->replay) * TIDE__SNAPSHOT_FACTOR;
    if (e.id % TIDE__LEAF_EVENTS != 0) return;
    if (e.id - w->last_snapshot < (by_live > TIDE__SNAPSHOT_EVENTS ? by_live : TIDE__SNAPSHOT_EVENTS)) return;
    writer_begin(w);
    assert_tide_ok(tide__store_write_snapshot(w->s, &w->replay, &err), &err);
    w->last_snapshot = e.id;
}

static inline tide__event writer_event(int op, int64_t block, int64_t bytes) {
    return (tide__event){.op = (uint8_t)op,
                         .block_id = block,
                         .kind = (uint8_t)(block % 3),
                         .device = 1,
                         .requested_bytes = bytes,
                         .reserved_bytes = (bytes + 63) / 64 * 64,
                         .address = 0x7f0000000000 + block * 4096,
                         .thread = 1,
                         .allocator_id = 1,
                         .tag_id = 2,
                         .scope_id = block % 4 != 0};
}

/// `n` events of a program with about want_live blocks.
static inline void writer_run(writer *w, size_t n) {
    tide_error err = TIDE_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        const uint64_t dice = tide_rng_below(&w->rng, 200);
        if (dice == 0) {
            writer_put(w, (tide__event){.op = TIDE__OP_SCOPE_ENTER, .kind = TIDE__NO_KIND, .thread = 1, .scope_id = 1});
        } else if ((ptrdiff_t)w->n_live < w->want_live - 20 + (ptrdiff_t)dice / 5) {
            assert_tide_ok(tide_host_grow(&w->live, &w->cap_live, w->n_live + 1, sizeof *w->live), &err);
            w->live[w->n_live++] = ++w->n_blocks;
            writer_put(w, writer_event(TIDE_MEM_ALLOC, w->n_blocks, 1 + w->n_blocks % 5000));
        } else {
            const size_t at = (size_t)tide_rng_below(&w->rng, w->n_live);
            const int64_t block = w->live[at];
            w->live[at] = w->live[--w->n_live];
            writer_put(w, writer_event(TIDE_MEM_FREE_COMPLETED, block, 1 + block % 5000));
        }
    }
}

#endif
