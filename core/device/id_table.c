// SPDX-License-Identifier: MIT
//
// Ids of streams, events and captures, and the objects behind them. See id_table.h.
#include "core/device/id_table.h"

#include "core/base/assert.h"

typedef struct row {
    uint64_t id;
    void *object;
} row;

tide_status tide__id_table_put(tide__id_table *t, uint64_t id, void *object) {
    if (t->map.cap == 0) t->map = (tide_map)TIDE_MAP(row); // a zeroed table is a valid one
    TIDE_ASSERT(id != 0 && object != NULL && tide__id_table_get(t, id) == NULL);
    return tide_map_put(&t->map, &(row){.id = id, .object = object}) ? TIDE_OK : TIDE_ERR_NOMEM;
}

void *tide__id_table_get(const tide__id_table *t, uint64_t id) {
    const row *found = tide_map_find(&t->map, id);
    return found != NULL ? found->object : NULL;
}

void *tide__id_table_remove(tide__id_table *t, uint64_t id) {
    row *found = tide_map_find(&t->map, id);
    if (found == NULL) return NULL;
    void *object = found->object;
    tide_map_take(&t->map, found);
    if (t->map.n == 0) tide_map_deinit(&t->map);
    return object;
}
