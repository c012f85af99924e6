// SPDX-License-Identifier: MIT
//
// verify check: the state of one verification, for verify.c and verify_shared.c. No strategy includes this, nor does
// problem.c: the verifier computes all it needs from the plan and its table alone.
#ifndef TIDE_PLANNER_VERIFY_CHECK_H
#define TIDE_PLANNER_VERIFY_CHECK_H

#include "planner/planner.h"
#include "planner/radix.h"

#define TIDE_VERIFY_NO_ITEM SIZE_MAX
#define TIDE_VERIFY_NO_BUFFER UINT32_MAX

/// Bytes that one tensor needs for some steps. Bytes count through all buffers, laid one behind the other.
typedef struct tide_verify_rect {
    int64_t begin, end; ///< steps, half-open
    uint64_t lo, hi;    ///< bytes, half-open, lo < hi
    uint32_t item;
} tide_verify_rect;

typedef struct tide_verify_check {
    const tide_memory_plan *plan;
    const tide_lifetime *items;
    size_t n;
    tide_verify_result result;
    tide_error *err;

    uint32_t *roots;         ///< [n] the item that has the place; itself for all but aliases
    uint32_t *n_alive;       ///< [n] of a root: members of its class that need bytes at some step; 0: it takes no space
    uint32_t *buffers;       ///< [n] of a root: index of its buffer; TIDE_VERIFY_NO_BUFFER
    uint64_t *bases;         ///< [n_buffers] where each begins when laid one behind the other
    uint64_t *ends;          ///< [n_buffers] of the highest tensor in it
    tide_verify_rect *rects; ///< [n_rects]
    size_t n_rects;
} tide_verify_check;

/// Fill result and error; the words are the caller's.
#define TIDE_FAULT(c, code_, a_, b_, ...)                                                                              \
    ((c)->result = (tide_verify_result){TIDE_VERIFY_##code_, (a_), (b_)},                                              \
     TIDE_FAIL((c)->err, TIDE_ERR_VERIFY, __VA_ARGS__))

static inline bool tide__verify_is_alias(const tide_verify_check *c, size_t i) {
    return c->items[i].alias != TIDE_ALIAS_NONE;
}
/// What item i occupies: rounded up to its alignment, but exactly its size for aliases and unrounded ones.
static inline uint64_t tide__verify_bytes_of(const tide_verify_check *c, size_t i) {
    const tide_lifetime *item = &c->items[i];
    if (item->unrounded || item->alias != TIDE_ALIAS_NONE) return item->size_bytes;
    return (item->size_bytes + item->align_bytes - 1) & ~(item->align_bytes - 1);
}
/// Where buffer b's bytes begin among those of all buffers.
static inline uint64_t tide__verify_base_of(const tide_verify_check *c, size_t i) {
    return c->bases[c->buffers[c->roots[i]]];
}

/// Fills rects.
tide_status tide__verify_rects(tide_verify_check *c) TIDE_NODISCARD;
/// POOL_CONFLICT, POOL_SIZE, BUFFER.
tide_status tide__verify_pools(tide_verify_check *c) TIDE_NODISCARD;
/// Fills peaks [n_buffers] with the largest sum of bytes alive. OVERLAP.
tide_status tide__verify_overlap(tide_verify_check *c, uint64_t *peaks) TIDE_NODISCARD;
/// APART.
tide_status tide__verify_apart(tide_verify_check *c) TIDE_NODISCARD;

#endif
