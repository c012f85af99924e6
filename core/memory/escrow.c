// SPDX-License-Identifier: MIT
//
// escrow: what happens while all shards stand still. See escrow.h.
#include "core/memory/escrow.h"

#include "core/base/assert.h"

static tide__part *part_at(const tide__part *first, size_t stride_bytes, unsigned i) {
    return (tide__part *)((uintptr_t)first + i * stride_bytes);
}

uint64_t tide__escrow_sum(const tide__part *first, size_t stride_bytes, unsigned n) {
    int64_t sum = 0;
    for (unsigned i = 0; i < n; i++) sum += part_at(first, stride_bytes, i)->now;
    TIDE_ASSERT(sum >= 0); // a part may be below zero
    return (uint64_t)sum;
}

void tide__escrow_settle(tide__part *first, size_t stride_bytes, unsigned n, unsigned own_i, uint64_t *peak) {
    TIDE_ASSERT(own_i < n);
    const uint64_t sum = tide__escrow_sum(first, stride_bytes, n);
    if (sum > *peak) *peak = sum;
    const int64_t room = (int64_t)(*peak - sum), n_others = (int64_t)n - 1;
    const int64_t share = n_others > 0 ? room / 2 / n_others : 0;
    TIDE_ASSERT((int64_t)sum >= 0 && room >= 0 && n_others * share <= room);
    for (unsigned i = 0; i < n; i++) {
        tide__part *part = part_at(first, stride_bytes, i);
        part->limit = part->now + (i == own_i ? room - n_others * share : share);
    }
}

void tide__escrow_reset(tide__part *first, size_t stride_bytes, unsigned n, uint64_t *peak) {
    *peak = 0;
    if (n > 0) tide__escrow_settle(first, stride_bytes, n, 0, peak);
}
