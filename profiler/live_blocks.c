// SPDX-License-Identifier: MIT
//
// The map of live blocks. See live_blocks.h.
#include "profiler/live_blocks.h"

#include "core/base/host_alloc.h"

/// Ids are mostly consecutive: multiplying by an odd number spreads them (Fibonacci hashing, Knuth vol. 3, 6.4).
static size_t home_of(uint64_t id, size_t cap) { return (size_t)((id * 0x9E3779B97F4A7C15ULL) >> 32) & (cap - 1); }

static tide__live_block *slot_of(tide__live_block *slots, size_t cap, uint64_t id) {
    size_t i = home_of(id, cap);
    while (slots[i].id != 0 && slots[i].id != id) i = (i + 1) & (cap - 1);
    return &slots[i];
}

static tide_status rehash(tide__live_blocks *m, size_t cap) {
    tide__live_block *slots = tide_host_calloc(cap, sizeof *slots);
    if (slots == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slots[i].id != 0) *slot_of(slots, cap, m->slots[i].id) = m->slots[i];
    }
    tide_host_free(m->slots);
    m->slots = slots;
    m->cap = cap;
    return TIDE_OK;
}

tide__live_block *tide__live_blocks_find(const tide__live_blocks *m, uint64_t id) {
    if (m->n == 0) return NULL;
    tide__live_block *slot = slot_of(m->slots, m->cap, id);
    return slot->id != 0 ? slot : NULL;
}

tide_status tide__live_blocks_put(tide__live_blocks *m, const tide__live_block *block) {
    if (2 * (m->n + 1) > m->cap) TIDE_TRY(rehash(m, m->cap == 0 ? 64 : 2 * m->cap));
    *slot_of(m->slots, m->cap, block->id) = *block;
    m->n++;
    return TIDE_OK;
}

void tide__live_blocks_take(tide__live_blocks *m, tide__live_block *entry) {
    size_t hole = (size_t)(entry - m->slots);
    for (size_t i = (hole + 1) & (m->cap - 1); m->slots[i].id != 0; i = (i + 1) & (m->cap - 1)) {
        // An entry may move back into the hole unless its home lies cyclically behind the hole.
        const size_t home = home_of(m->slots[i].id, m->cap);
        if (((i - home) & (m->cap - 1)) < ((i - hole) & (m->cap - 1))) continue;
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = (tide__live_block){0};
    m->n--;
}

void tide__live_blocks_deinit(tide__live_blocks *m) {
    tide_host_free(m->slots);
    *m = (tide__live_blocks){0};
}
