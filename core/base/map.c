// SPDX-License-Identifier: MIT
//
// The hash table. See map.h.
#include "core/base/map.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/host_alloc.h"

enum { FIRST_CAP = 16 };

/// Ids are mostly consecutive: multiplying by an odd number spreads them (Fibonacci hashing, Knuth vol. 3, 6.4).
static size_t home_of(uint64_t key, size_t cap) {
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (cap - 1);
}

static char *slot_at(const tide_map *m, size_t i) { return (char *)m->slots + i * m->entry_bytes; }

static size_t slot_number(const tide_map *m, const void *entry) {
    const size_t bytes = (size_t)((const char *)entry - (const char *)m->slots);
    TIDE_ASSERT(bytes % m->entry_bytes == 0 && bytes / m->entry_bytes < m->cap);
    return bytes / m->entry_bytes;
}

static uint64_t key_at(const tide_map *m, size_t i) {
    uint64_t key;
    memcpy(&key, slot_at(m, i), sizeof key);
    return key;
}

static bool map_holds(const tide_map *m) {
    if (m->cap == 0) return m->n == 0 && m->slots == NULL;
    return m->entry_bytes % 8 == 0 && m->entry_bytes > 0 && (m->cap & (m->cap - 1)) == 0 && m->n < m->cap;
}

/// Whether a search that begins at its home comes to every entry, before it comes to a free slot.
static bool every_entry_is_found(const tide_map *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->cap; i++) {
        const uint64_t key = key_at(m, i);
        if (key == 0) continue;
        n++;
        for (size_t at = home_of(key, m->cap); at != i; at = (at + 1) & (m->cap - 1)) {
            if (key_at(m, at) == 0) return false;
        }
    }
    return n == m->n;
}

/// The entry with this key in the first slot from `i` on; NULL when a free slot comes before. The map is never full.
static void *find_from(const tide_map *m, size_t i, uint64_t key) {
    for (uint64_t at; (at = key_at(m, i)) != 0; i = (i + 1) & (m->cap - 1)) {
        if (at == key) return slot_at(m, i);
    }
    return NULL;
}

static void copy_in(tide_map *m, const void *entry) {
    uint64_t key;
    memcpy(&key, entry, sizeof key);
    TIDE_ASSERT(key != 0 && m->n < m->cap);
    size_t i = home_of(key, m->cap);
    while (key_at(m, i) != 0) i = (i + 1) & (m->cap - 1);
    memcpy(slot_at(m, i), entry, m->entry_bytes);
}

bool tide_map_make_room(tide_map *m) {
    TIDE_ASSERT(map_holds(m));
    if (2 * (m->n + 1) <= m->cap) return true;
    tide_map larger = {.entry_bytes = m->entry_bytes, .cap = m->cap == 0 ? FIRST_CAP : 2 * m->cap, .n = m->n};
    larger.slots = tide_host_calloc(larger.cap, larger.entry_bytes);
    if (larger.slots == NULL) return false;
    for (size_t i = 0; i < m->cap; i++) {
        if (key_at(m, i) != 0) copy_in(&larger, slot_at(m, i));
    }
    tide_host_free(m->slots);
    *m = larger;
    return true;
}

void *tide_map_find(const tide_map *m, uint64_t key) {
    if (m->n == 0 || key == 0) return NULL;
    TIDE_ASSERT(m->n < m->cap);
    return find_from(m, home_of(key, m->cap), key);
}

void tide_map_prefetch(const tide_map *m, uint64_t key) {
    if (m->n > 0) __builtin_prefetch(slot_at(m, home_of(key, m->cap)), 1);
}

void *tide_map_next(const tide_map *m, const void *entry) {
    const size_t i = slot_number(m, entry);
    TIDE_ASSERT(key_at(m, i) != 0);
    return find_from(m, (i + 1) & (m->cap - 1), key_at(m, i));
}

void *tide_map_at(const tide_map *m, size_t i) {
    TIDE_ASSERT(i < m->cap);
    return key_at(m, i) != 0 ? slot_at(m, i) : NULL;
}

bool tide_map_put(tide_map *m, const void *entry) {
    // At least one slot stays free: a search must end.
    if (!tide_map_make_room(m) && m->n + 2 > m->cap) return false;
    copy_in(m, entry);
    m->n++;
    TIDE_ASSERT_SLOW(every_entry_is_found(m));
    return true;
}

void tide_map_take(tide_map *m, void *entry) {
    TIDE_ASSERT(map_holds(m) && m->n > 0);
    TIDE_ASSERT(key_at(m, slot_number(m, entry)) != 0);
    const size_t mask = m->cap - 1;
    size_t hole = slot_number(m, entry);
    uint64_t key;
    for (size_t i = (hole + 1) & mask; (key = key_at(m, i)) != 0; i = (i + 1) & mask) {
        // An entry may move back into the hole unless its home lies cyclically behind the hole.
        const size_t home = home_of(key, m->cap);
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        memcpy(slot_at(m, hole), slot_at(m, i), m->entry_bytes);
        hole = i;
    }
    memset(slot_at(m, hole), 0, m->entry_bytes);
    m->n--;
    TIDE_ASSERT_SLOW(every_entry_is_found(m));
}

void tide_map_deinit(tide_map *m) {
    tide_host_free(m->slots);
    *m = (tide_map){.entry_bytes = m->entry_bytes};
}

// ---- texts ----

typedef struct text_entry {
    uint64_t hash;
    char *text; // owned
    uint64_t value;
} text_entry;

static uint64_t hash_of(const char *text) {
    const uint64_t hash = tide_hash_text(TIDE_HASH_START, text);
    return hash != 0 ? hash : 1; // 0 marks a free slot
}

static text_entry *find_text(const tide_strmap *m, const char *text, uint64_t hash) {
    text_entry *e = tide_map_find(&m->map, hash);
    while (e != NULL && strcmp(e->text, text) != 0) e = tide_map_next(&m->map, e);
    return e;
}

tide_status tide_strmap_put(tide_strmap *m, const char *key, uint64_t value) {
    m->map.entry_bytes = sizeof(text_entry); // a zeroed map is a valid one
    const uint64_t hash = hash_of(key);
    text_entry *known = find_text(m, key, hash);
    if (known != NULL) {
        known->value = value;
        return TIDE_OK;
    }
    if (!tide_map_make_room(&m->map)) return TIDE_ERR_NOMEM;
    const text_entry fresh = {.hash = hash, .text = tide_host_strdup(key), .value = value};
    if (fresh.text == NULL) return TIDE_ERR_NOMEM;
    const bool good = tide_map_put(&m->map, &fresh);
    TIDE_ASSERT(good); // there is room
    return TIDE_OK;
}

bool tide_strmap_get(const tide_strmap *m, const char *key, uint64_t *value) {
    const text_entry *e = find_text(m, key, hash_of(key));
    if (e != NULL && value != NULL) *value = e->value;
    return e != NULL;
}

const char *tide_strmap_text(const tide_strmap *m, const char *key) {
    const text_entry *e = find_text(m, key, hash_of(key));
    return e != NULL ? e->text : NULL;
}

void tide_strmap_deinit(tide_strmap *m) {
    for (size_t i = 0; i < m->map.cap; i++) {
        const text_entry *e = tide_map_at(&m->map, i);
        if (e != NULL) tide_host_free(e->text);
    }
    tide_map_deinit(&m->map);
    *m = (tide_strmap){0};
}

// ---- index ----

static void put_slot(uint32_t *slots, size_t cap, uint64_t hash, uint32_t row) {
    size_t i = (size_t)hash & (cap - 1);
    while (slots[i] != 0) i = (i + 1) & (cap - 1);
    slots[i] = row + 1;
}

static bool has_row(const tide_index *x, uint32_t row) {
    for (size_t i = 0; i < x->cap; i++) {
        if (x->slots[i] == row + 1) return true;
    }
    return false;
}

static tide_status grow_index(tide_index *x, const void *rows, tide_index_hash_fn hash) {
    const size_t cap = x->cap == 0 ? 64 : 2 * x->cap;
    uint32_t *slots = tide_host_calloc(cap, sizeof *slots);
    if (slots == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < x->cap; i++) {
        if (x->slots[i] != 0) put_slot(slots, cap, hash(rows, x->slots[i] - 1), x->slots[i] - 1);
    }
    tide_host_free(x->slots);
    x->slots = slots;
    x->cap = cap;
    TIDE_ASSERT(2 * x->n <= x->cap);
    return TIDE_OK;
}

tide_status tide_index_put(tide_index *x, uint32_t row, const void *rows, tide_index_hash_fn hash) {
    TIDE_ASSERT(row < TIDE_INDEX_NONE);
    TIDE_ASSERT_SLOW(!has_row(x, row));
    if (2 * (x->n + 1) > x->cap) TIDE_TRY(grow_index(x, rows, hash));
    put_slot(x->slots, x->cap, hash(rows, row), row);
    x->n++;
    return TIDE_OK;
}

void tide_index_deinit(tide_index *x) {
    tide_host_free(x->slots);
    *x = (tide_index){0};
}
