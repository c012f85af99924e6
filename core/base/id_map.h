// SPDX-License-Identifier: MIT
//
// id map: entries of one size by a number that each begins with. For numbers that are handed out one after the other
// and live for a while: blocks, streams, events.
//
// Open addressing with linear probing; taking an entry out shifts its followers back, so there are no tombstones and
// the table stays as small as the live set (Knuth, TAOCP 3, 6.4, algorithm R):
//
//     home of b: 2      [ . ][ . ][ a ][ b ][ c ][ . ]   take a ->   [ . ][ . ][ b ][ c ][ . ][ . ]
//
// It doubles when it is half full. Without memory for that it goes on until one slot is left: slower, but nothing is
// lost before it must be.
#ifndef TIDE_CORE_BASE_ID_MAP_H
#define TIDE_CORE_BASE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Make one with TIDE_ID_MAP. Takes no memory until the first entry. Not thread-safe.
typedef struct tide_id_map {
    size_t entry_bytes; ///< of an entry; a multiple of 8, and its first member is a uint64_t: its id, 0 in a free slot
    void *slots;        ///< [cap] entries, owned
    size_t cap;         ///< 0 or a power of two
    size_t n;
} tide_id_map;

#define TIDE_ID_MAP(entry_type)                                                                                        \
    { .entry_bytes = sizeof(entry_type) }

/// NULL when there is no such entry; valid until the next put or take.
void *tide_id_map_find(const tide_id_map *m, uint64_t id);
/// Copy in an entry whose id is > 0 and not there. False: no memory, nothing changed.
bool tide_id_map_put(tide_id_map *m, const void *entry);
/// Take out what tide_id_map_find returned.
void tide_id_map_take(tide_id_map *m, void *entry);
/// Slot `i` of cap; NULL when it is free.
void *tide_id_map_at(const tide_id_map *m, size_t i);
/// Gives the memory back; the map is empty and can be used again.
void tide_id_map_deinit(tide_id_map *m);

#ifdef __cplusplus
}
#endif
#endif
