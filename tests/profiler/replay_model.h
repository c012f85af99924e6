// SPDX-License-Identifier: MIT
//
// What events do to memory, by a model that is too simple to be wrong: a list of live blocks that is searched from end
// to end.
#ifndef TIDE_TESTS_PROFILER_REPLAY_MODEL_H
#define TIDE_TESTS_PROFILER_REPLAY_MODEL_H

#include "profiler/store/replay.h"
#include "tests/tide_test.h"

enum { MODEL_MAX = 8192, MODEL_DEVICES = 4 };

typedef struct model {
    tide__live_block live[MODEL_MAX]; ///< [n]
    size_t n;
    int64_t bytes[MODEL_DEVICES][TIDE_N_KINDS], reserved[MODEL_DEVICES][TIDE_N_KINDS];
    int64_t n_allocs[MODEL_DEVICES][TIDE_N_KINDS], n_frees[MODEL_DEVICES][TIDE_N_KINDS];
    int64_t requested[MODEL_DEVICES][TIDE_N_KINDS], freed[MODEL_DEVICES][TIDE_N_KINDS];
    int64_t left[MODEL_DEVICES][TIDE_N_KINDS];
    int64_t sum, sum_reserved, n_problems;
    tide__live_block gone[MODEL_MAX]; ///< [n_gone] that the last event ended
    size_t n_gone;
} model;

static inline size_t model_find(const model *m, int64_t id) {
    size_t i = 0;
    while (i < m->n && m->live[i].block_id != id) i++;
    return i;
}

static inline void model_end(model *m, size_t i) {
    const tide__live_block b = m->live[i];
    m->gone[m->n_gone++] = b;
    m->bytes[b.device][b.kind] -= b.requested_bytes;
    m->reserved[b.device][b.kind] -= b.reserved_bytes;
    m->sum -= b.requested_bytes;
    m->sum_reserved -= b.reserved_bytes;
    m->freed[b.device][b.kind] += b.requested_bytes;
    m->n_frees[b.device][b.kind]++;
    memmove(&m->live[i], &m->live[i + 1], (m->n - i - 1) * sizeof m->live[0]);
    m->n--;
}

/// It is gone, without a free.
static inline void model_leave(model *m, size_t i) {
    const tide__live_block b = m->live[i];
    model_end(m, i);
    m->freed[b.device][b.kind] -= b.requested_bytes;
    m->n_frees[b.device][b.kind]--;
    m->left[b.device][b.kind] += b.requested_bytes;
}

static inline bool passes(int64_t a, int64_t b) { return a > INT64_MAX - b; }

static inline tide__problem model_alloc(model *m, const tide__event *e) {
    if (e->block_id == 0) return TIDE__PROBLEM_NO_NUMBER;
    tide__problem problem = TIDE__PROBLEM_NONE;
    const size_t i = model_find(m, e->block_id);
    if (i < m->n) {
        model_end(m, i);
        problem = TIDE__PROBLEM_ALLOC_TWICE;
    }
    const int device = e->device, kind = e->kind;
    if (passes(m->sum, e->requested_bytes) || passes(m->sum_reserved, e->reserved_bytes) ||
        passes(m->requested[device][kind], e->requested_bytes))
        return TIDE__PROBLEM_TOO_LARGE;
    assert_true(m->n < MODEL_MAX);
    m->live[m->n++] = (tide__live_block){.block_id = e->block_id,
                                         .alloc_event = e->id,
                                         .alloc_ns = e->t_ns,
                                         .requested_bytes = e->requested_bytes,
                                         .reserved_bytes = e->reserved_bytes,
                                         .address = e->address,
                                         .stream = e->stream,
                                         .run_id = e->run_id,
                                         .thread = e->thread,
                                         .scope_id = e->scope_id,
                                         .tag_id = e->tag_id,
                                         .allocator_id = e->allocator_id,
                                         .device = e->device,
                                         .kind = e->kind};
    m->bytes[device][kind] += e->requested_bytes;
    m->reserved[device][kind] += e->reserved_bytes;
    m->sum += e->requested_bytes;
    m->sum_reserved += e->reserved_bytes;
    m->requested[device][kind] += e->requested_bytes;
    m->n_allocs[device][kind]++;
    return problem;
}

static inline tide__problem model_free(model *m, const tide__event *e) {
    const bool completed = e->op == TIDE_MEM_FREE_COMPLETED;
    if (e->block_id == 0) return TIDE__PROBLEM_NO_NUMBER;
    const size_t i = model_find(m, e->block_id);
    if (i == m->n) return completed ? TIDE__PROBLEM_FREE_UNKNOWN : TIDE__PROBLEM_REQUESTED_UNKNOWN;
    if (completed) {
        model_end(m, i);
    } else if (m->live[i].free_requested_ns != 0) {
        return TIDE__PROBLEM_REQUESTED_TWICE;
    } else {
        m->live[i].free_requested_ns = e->t_ns;
    }
    return TIDE__PROBLEM_NONE;
}

static inline tide__problem model_apply(model *m, const tide__event *e) {
    m->n_gone = 0;
    tide__problem problem = TIDE__PROBLEM_NONE;
    if (e->op == TIDE_MEM_ALLOC) problem = model_alloc(m, e);
    if (e->op == TIDE_MEM_FREE_REQUESTED || e->op == TIDE_MEM_FREE_COMPLETED) problem = model_free(m, e);
    if (e->op == TIDE_MEM_POOL_DISCARD) {
        for (size_t i = m->n; i-- > 0;) {
            const tide__live_block *b = &m->live[i];
            const bool is_of_it = b->block_id >> TIDE__BLOCK_ID_BITS == e->block_id >> TIDE__BLOCK_ID_BITS;
            if (is_of_it && b->device == e->device && b->address >= e->address &&
                b->address < e->address + e->reserved_bytes)
                model_end(m, i);
        }
    }
    if (e->op == TIDE__OP_PROCESS_END) {
        for (size_t i = m->n; i-- > 0;)
            if (m->live[i].block_id >> TIDE__BLOCK_ID_BITS == e->block_id >> TIDE__BLOCK_ID_BITS) model_leave(m, i);
    }
    m->n_problems += problem != TIDE__PROBLEM_NONE;
    return problem;
}

#endif
