// SPDX-License-Identifier: MIT
//
// The ledger's table of live blocks: open addressing by block id, linear probing. Taking an entry out shifts its
// followers back, so there are no tombstones and the table stays as small as the live set:
//
//     home of b: 2      [ . ][ . ][ a ][ b ][ c ][ . ]   take a ->   [ . ][ . ][ b ][ c ][ . ][ . ]
//
// It doubles when it is half full. Without memory for that it goes on until one slot is left: slower, but nothing is
// lost before it must be.
#include "core/base/host_alloc.h"
#include "core/memory/ledger_internal.h"

enum { FIRST_CAP = 256 };

/// Ids are mostly consecutive: multiplying by an odd number spreads them (Fibonacci hashing, Knuth vol. 3, 6.4).
static size_t home_of(uint64_t id, size_t cap) {
    return (size_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (cap - 1);
}

static tide__ledger_entry *slot_of(tide__ledger_entry *slots, size_t cap, uint64_t id) {
    size_t i = home_of(id, cap);
    while (slots[i].id != 0 && slots[i].id != id) i = (i + 1) & (cap - 1);
    return &slots[i];
}

static bool grow(tide__ledger_blocks *m) {
    const size_t cap = m->cap == 0 ? FIRST_CAP : 2 * m->cap;
    tide__ledger_entry *slots = tide_host_calloc(cap, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slots[i].id != 0) *slot_of(slots, cap, m->slots[i].id) = m->slots[i];
    }
    tide_host_free(m->slots);
    m->slots = slots;
    m->cap = cap;
    return true;
}

tide__ledger_entry *tide__ledger_blocks_find(const tide__ledger_blocks *m, uint64_t id) {
    if (m->n == 0 || id == 0) return NULL;
    tide__ledger_entry *slot = slot_of(m->slots, m->cap, id);
    return slot->id != 0 ? slot : NULL;
}

bool tide__ledger_blocks_put(tide__ledger_blocks *m, const tide__ledger_entry *entry) {
    // One slot stays free at the least: a search must end.
    if (2 * (m->n + 1) > m->cap && !grow(m) && m->n + 2 > m->cap) return false;
    *slot_of(m->slots, m->cap, entry->id) = *entry;
    m->n++;
    return true;
}

void tide__ledger_blocks_take(tide__ledger_blocks *m, tide__ledger_entry *entry) {
    size_t hole = (size_t)(entry - m->slots);
    for (size_t i = (hole + 1) & (m->cap - 1); m->slots[i].id != 0; i = (i + 1) & (m->cap - 1)) {
        // An entry may move back into the hole unless its home lies cyclically behind the hole.
        const size_t home = home_of(m->slots[i].id, m->cap);
        if (((i - home) & (m->cap - 1)) < ((i - hole) & (m->cap - 1))) continue;
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = (tide__ledger_entry){0};
    m->n--;
}

void tide__ledger_blocks_deinit(tide__ledger_blocks *m) {
    tide_host_free(m->slots);
    *m = (tide__ledger_blocks){0};
}
