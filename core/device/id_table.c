// SPDX-License-Identifier: MIT
//
// id_table: open addressing with linear probing. Ids are handed out one after the other, so their low bits alone are
// a good hash; a removed row is closed by moving later ones of its run back (Knuth, TAOCP 3, 6.4, algorithm R).
#include "core/device/id_table.h"

#include "core/base/host_alloc.h"

enum { FIRST_CAP = 16 };

typedef struct tide__id_row {
    uint64_t id; ///< 0: free
    void *object;
} tide__id_row;

/// Where `id` is, or the free row where it would go; the table is never full.
static size_t row_of(const tide__id_table *t, uint64_t id) {
    size_t i = id & (t->cap - 1);
    while (t->rows[i].id != 0 && t->rows[i].id != id) i = (i + 1) & (t->cap - 1);
    return i;
}

static tide_status grow(tide__id_table *t) {
    tide__id_table larger = {.cap = t->cap == 0 ? FIRST_CAP : 2 * t->cap, .n = t->n};
    larger.rows = tide_host_calloc(larger.cap, sizeof *larger.rows);
    if (larger.rows == NULL) return TIDE_ERR_NOMEM;
    for (size_t i = 0; i < t->cap; i++) {
        if (t->rows[i].id != 0) larger.rows[row_of(&larger, t->rows[i].id)] = t->rows[i];
    }
    tide_host_free(t->rows);
    *t = larger;
    return TIDE_OK;
}

tide_status tide__id_table_put(tide__id_table *t, uint64_t id, void *object) {
    if (t->n >= t->cap / 2) TIDE_TRY(grow(t));
    t->rows[row_of(t, id)] = (tide__id_row){.id = id, .object = object};
    t->n++;
    return TIDE_OK;
}

void *tide__id_table_get(const tide__id_table *t, uint64_t id) {
    if (t->n == 0 || id == 0) return NULL;
    const tide__id_row *row = &t->rows[row_of(t, id)];
    return row->id == id ? row->object : NULL;
}

/// Empty row `hole` without breaking the run of rows behind it.
static void close_hole(tide__id_table *t, size_t hole) {
    const size_t mask = t->cap - 1;
    for (size_t i = (hole + 1) & mask; t->rows[i].id != 0; i = (i + 1) & mask) {
        const size_t home = t->rows[i].id & mask;
        // A row may move back to the hole unless its home lies between the hole and itself.
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        t->rows[hole] = t->rows[i];
        hole = i;
    }
    t->rows[hole] = (tide__id_row){0};
}

void *tide__id_table_remove(tide__id_table *t, uint64_t id) {
    void *object = tide__id_table_get(t, id);
    if (object == NULL) return NULL;
    close_hole(t, row_of(t, id));
    if (--t->n == 0) {
        tide_host_free(t->rows);
        *t = (tide__id_table){0};
    }
    return object;
}
