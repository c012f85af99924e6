// SPDX-License-Identifier: MIT
//
// The id map. See id_map.h.
#include "core/base/id_map.h"

#include <string.h>

#include "core/base/host_alloc.h"

enum { FIRST_CAP = 16 };

/// Ids are mostly consecutive: multiplying by an odd number spreads them (Fibonacci hashing, Knuth vol. 3, 6.4).
static size_t home_of(uint64_t id, size_t cap) {
    return (size_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (cap - 1);
}

static char *slot_at(const tide_id_map *m, size_t i) { return (char *)m->slots + i * m->entry_bytes; }

static uint64_t id_at(const tide_id_map *m, size_t i) {
    uint64_t id;
    memcpy(&id, slot_at(m, i), sizeof id);
    return id;
}

/// Where `id` is, or the free slot where it would go; the map is never full.
static size_t slot_of(const tide_id_map *m, uint64_t id) {
    size_t i = home_of(id, m->cap);
    for (uint64_t at; (at = id_at(m, i)) != 0 && at != id;) i = (i + 1) & (m->cap - 1);
    return i;
}

static bool grow(tide_id_map *m) {
    tide_id_map larger = {.entry_bytes = m->entry_bytes, .cap = m->cap == 0 ? FIRST_CAP : 2 * m->cap, .n = m->n};
    larger.slots = tide_host_calloc(larger.cap, larger.entry_bytes);
    if (larger.slots == NULL) return false;
    for (size_t i = 0; i < m->cap; i++) {
        const uint64_t id = id_at(m, i);
        if (id != 0) memcpy(slot_at(&larger, slot_of(&larger, id)), slot_at(m, i), m->entry_bytes);
    }
    tide_host_free(m->slots);
    *m = larger;
    return true;
}

void *tide_id_map_find(const tide_id_map *m, uint64_t id) {
    if (m->n == 0 || id == 0) return NULL;
    return tide_id_map_at(m, slot_of(m, id));
}

void *tide_id_map_at(const tide_id_map *m, size_t i) { return id_at(m, i) != 0 ? slot_at(m, i) : NULL; }

bool tide_id_map_put(tide_id_map *m, const void *entry) {
    // One slot stays free at the least: a search must end.
    if (2 * (m->n + 1) > m->cap && !grow(m) && m->n + 2 > m->cap) return false;
    uint64_t id;
    memcpy(&id, entry, sizeof id);
    memcpy(slot_at(m, slot_of(m, id)), entry, m->entry_bytes);
    m->n++;
    return true;
}

void tide_id_map_take(tide_id_map *m, void *entry) {
    const size_t mask = m->cap - 1;
    size_t hole = (size_t)((char *)entry - (char *)m->slots) / m->entry_bytes;
    uint64_t id;
    for (size_t i = (hole + 1) & mask; (id = id_at(m, i)) != 0; i = (i + 1) & mask) {
        // An entry may move back into the hole unless its home lies cyclically behind the hole.
        const size_t home = home_of(id, m->cap);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        memcpy(slot_at(m, hole), slot_at(m, i), m->entry_bytes);
        hole = i;
    }
    memset(slot_at(m, hole), 0, m->entry_bytes);
    m->n--;
}

void tide_id_map_deinit(tide_id_map *m) {
    tide_host_free(m->slots);
    *m = (tide_id_map){.entry_bytes = m->entry_bytes};
}
