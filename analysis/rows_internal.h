// SPDX-License-Identifier: MIT
//
// What the files of rows share. Private to analysis/.
#ifndef TIDE_ANALYSIS_ROWS_INTERNAL_H
#define TIDE_ANALYSIS_ROWS_INTERNAL_H

#include "analysis/items_internal.h"
#include "analysis/rows.h"

/// What rows are sorted by: of the values below those that the sort needs, the others 0; bytes and fill always.
typedef struct tide__row_values {
    int64_t begin;
    uint64_t place;   ///< lowest
    uint64_t bytes;   ///< sum of sizes
    uint64_t life;    ///< of the longest
    uint64_t area[2]; ///< sum of size x life: high, low
    uint32_t rank;    ///< by name
    bool persistent;  ///< all members are
    uint8_t fill;     ///< of all members; TIDE_N_ITEM_FILLS: they differ
} tide__row_values;

/// A number that rises in the order of the rows; equal ones stay in the order of items.
uint64_t tide__row_key(const tide_rows_options *opt, const tide__row_values *v);
void tide__row_values_of(const tide_items *items, uint32_t i, tide_row_sort sort, tide__row_values *out);
/// Take another item into a row's values.
void tide__row_values_add(tide__row_values *v, const tide__row_values *more);

/// Group the rows->n_members items whose bits are set (NULL: all) into rows. TIDE_ERR_NOMEM, TIDE_ERR_CANCELLED.
tide_status tide__rows_group(const tide_items *items, bool is_trace, const tide_rows_options *opt, const uint8_t *bits,
                             const tide_progress *progress, tide_rows *rows) TIDE_NODISCARD;
/// Of the rows that are made so far: the order of their members' ends (`with_reach`), or a part of it. `part`: of a row
/// of many so many ends are sorted at once, or a sixteenth of them when that is more; 32 bytes each.
tide_status tide__rows_make_ends(const tide_items *items, bool with_reach, size_t part, const tide_progress *progress,
                                 tide_rows *rows) TIDE_NODISCARD;
enum { TIDE__ROWS_PART = 1 << 18 };
/// The keys of rows, for people.
tide_status tide__rows_make_keys(const tide_items *items, tide_row_group by, bool is_trace,
                                 tide_rows *rows) TIDE_NODISCARD;
/// When an item is gone: one that lives shorter than the clock can tell is there at its begin.
static inline int64_t tide__item_gone(const tide_items *items, uint32_t i) {
    const int64_t begin = tide_items_begin(items, i), end = tide_items_end(items, i);
    return end > begin ? end : begin + 1;
}
/// Which power of two a size belongs to: 0 for 0, else 1 + the place of its highest bit.
static inline unsigned tide__size_class(uint64_t bytes) {
    return bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes);
}

/// True: go on.
bool tide__rows_tell(const tide_progress *progress, double share, const char *what);

#endif
