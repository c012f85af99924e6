// SPDX-License-Identifier: MIT
//
// A map from the ids of streams, events and captures to their objects. Not thread-safe: its owner has the lock.
#ifndef TIDE_CORE_DEVICE_ID_TABLE_H
#define TIDE_CORE_DEVICE_ID_TABLE_H

#include "core/base/map.h"
#include "core/base/status.h"

/// Zero-initialise. Holds no memory while it is empty.
typedef struct tide__id_table {
    tide_map map;
} tide__id_table;

/// @param id  not 0 and not in the table. @return TIDE_OK, TIDE_ERR_NOMEM (table unchanged)
tide_status tide__id_table_put(tide__id_table *t, uint64_t id, void *object) TIDE_NODISCARD;
/// NULL when `id` is not there.
void *tide__id_table_get(const tide__id_table *t, uint64_t id);
/// Take `id` out. @return its object, NULL when it is not there
void *tide__id_table_remove(tide__id_table *t, uint64_t id);

#endif
