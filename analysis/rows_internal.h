// SPDX-License-Identifier: MIT
//
// What the files of rows share. Private to analysis/.
#ifndef TIDE_ANALYSIS_ROWS_INTERNAL_H
#define TIDE_ANALYSIS_ROWS_INTERNAL_H

#include "analysis/items_internal.h"
#include "analysis/rows.h"

/// Of the rows that are made so far: the order of their members' ends (`with_reach`), or a part of it. `part`: of a row
/// of many so many ends are sorted at once, or a sixteenth of them when that is more; 32 bytes each.
tide_status tide__rows_make_ends(const tide_items *items, bool with_reach, size_t part, const tide_progress *progress,
                                 tide_rows *rows) TIDE_NODISCARD;
enum { TIDE__ROWS_PART = 1 << 18 };
/// When an item is gone: one that lives shorter than the clock can tell is there at its begin.
static inline int64_t tide__item_gone(const tide_items *items, uint32_t i) {
    const int64_t begin = tide_items_begin(items, i), end = tide_items_end(items, i);
    return end > begin ? end : begin + 1;
}

#endif
