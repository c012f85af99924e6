// SPDX-License-Identifier: MIT
//
// map: the hash table of this program. It keeps entries of one size by a number that each begins with, its key: an id,
// or the hash of what the entry stands for. Below it are the map from texts to numbers (tide_strmap) and the index of
// an array whose rows hold their keys themselves (tide_index).
//
// Ids are unique: find the entry, put one, take it out. Hashes need not be: several entries may have one key, and the
// caller compares what it finds:
//
//     entry *e = tide_map_find(&map, hash);
//     while (e != NULL && !is_equal(&items[e->item], wanted)) e = tide_map_next(&map, e);
//
// Open addressing with linear probing; taking an entry out shifts its followers back, so there are no tombstones and
// the table stays as small as the live set (Knuth, TAOCP 3, 6.4, algorithm R):
//
//     home of b: 2      [ . ][ . ][ a ][ b ][ c ][ . ]   take a ->   [ . ][ . ][ b ][ c ][ . ][ . ]
//
// It doubles when it is half full. Without memory for that it goes on until one slot is left: slower, but nothing is
// lost before it must be.
#ifndef TIDE_CORE_BASE_MAP_H
#define TIDE_CORE_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Make one with TIDE_MAP. Takes no memory until the first entry. Not thread-safe.
typedef struct tide_map {
    size_t entry_bytes; ///< of an entry; a multiple of 8, and its first member is a uint64_t: its key, 0 in a free slot
    void *slots;        ///< [cap] entries, owned
    size_t cap;         ///< 0 or a power of two
    size_t n;
} tide_map;

#define TIDE_MAP(entry_type)                                                                                           \
    { .entry_bytes = sizeof(entry_type) }

/// NULL when there is no such entry; valid until the next put or take.
void *tide_map_find(const tide_map *m, uint64_t key);
/// Ask the processor for the memory in which a search for this key begins: worth it some events before it is searched.
void tide_map_prefetch(const tide_map *m, uint64_t key);
/// Another entry with the key of `entry`, which is in the map; NULL after the last one.
void *tide_map_next(const tide_map *m, const void *entry);
/// Make room for one more entry, so that the map is at most half full. False: no memory, nothing changed.
bool tide_map_make_room(tide_map *m) TIDE_NODISCARD;
/// Copy in an entry whose key is > 0. False: no memory, nothing changed.
bool tide_map_put(tide_map *m, const void *entry) TIDE_NODISCARD;
/// Take out what tide_map_find returned.
void tide_map_take(tide_map *m, void *entry);
/// Slot `i` of cap; NULL when it is free.
void *tide_map_at(const tide_map *m, size_t i);
/// Gives the memory back; the map is empty and can be used again.
void tide_map_deinit(tide_map *m);

/// index: which row of an array has a key, where the rows themselves hold the keys. Four bytes a slot, half of them
/// free at least. Zero-initialise. `rows` is what the two functions need to look at a row.
typedef struct tide_index {
    uint32_t *slots; ///< [cap] row + 1, 0: free; owned
    size_t cap;      ///< 0 or a power of two
    size_t n;
} tide_index;

#define TIDE_INDEX_NONE UINT32_MAX
typedef uint64_t (*tide_index_hash_fn)(const void *rows, uint32_t row);
typedef bool (*tide_index_is_fn)(const void *rows, uint32_t row, const void *key);

/// The row for which `is` holds, among those that were put with this hash; TIDE_INDEX_NONE: there is none.
static inline uint32_t tide_index_find(const tide_index *x, uint64_t hash, const void *rows, tide_index_is_fn is,
                                       const void *key) {
    if (x->cap == 0) return TIDE_INDEX_NONE;
    for (size_t i = (size_t)hash & (x->cap - 1); x->slots[i] != 0; i = (i + 1) & (x->cap - 1)) {
        if (is(rows, x->slots[i] - 1, key)) return x->slots[i] - 1;
    }
    return TIDE_INDEX_NONE;
}
/// Put a row that is not there and lies in the array already. @return TIDE_OK, TIDE_ERR_NOMEM (index unchanged)
tide_status tide_index_put(tide_index *x, uint32_t row, const void *rows, tide_index_hash_fn hash) TIDE_NODISCARD;
void tide_index_deinit(tide_index *x);

/// A map from texts to numbers. Zero-initialise. Texts are copied.
typedef struct tide_strmap {
    tide_map map;
} tide_strmap;

/// Put, or overwrite, which takes no memory. @return TIDE_OK, TIDE_ERR_NOMEM (map unchanged)
tide_status tide_strmap_put(tide_strmap *m, const char *key, uint64_t value) TIDE_NODISCARD;
/// @return false when `key` is absent (then *value is untouched); `value` may be NULL
bool tide_strmap_get(const tide_strmap *m, const char *key, uint64_t *value);
/// The map's own copy of `key`, which stays where it is as long as the map lives; NULL when `key` is absent.
const char *tide_strmap_text(const tide_strmap *m, const char *key);
void tide_strmap_deinit(tide_strmap *m);

#ifdef __cplusplus
}
#endif
#endif
