// SPDX-License-Identifier: MIT
//
// worklist: the lifetimes a strategy has to place, in the order in which it takes them. Private to the planner; the
// verifier does not use it.
#ifndef TIDE_PLANNER_WORKLIST_H
#define TIDE_PLANNER_WORKLIST_H

#include "core/runtime/memory_plan.h"

typedef struct tide_worklist {
    const tide_lifetime **items; ///< [n], owned array of borrowed pointers into the table
    size_t n;
} tide_worklist;

/// qsort's comparison over elements of tide_worklist.items. It must be a total order that knows nothing of the
/// table's order, so that a plan does not depend on insertion order (S23-11): end with tide__compare_names.
typedef int tide_worklist_order(const void *a, const void *b);

/// Whether a lifetime asks for a place: persistent ones have none, and empty ones lie anywhere without conflict.
bool tide__takes_space(const tide_lifetime *item);
/// Those that take space, sorted. tide__worklist_deinit.
tide_status tide__worklist_make(const tide_lifetimes *lt, tide_worklist_order *order, tide_worklist *out,
                                tide_error *err) TIDE_NODISCARD;
void tide__worklist_deinit(tide_worklist *w);

int tide__compare_names(const tide_lifetime *a, const tide_lifetime *b);
/// Aligned size, largest first; then name (S23-11).
int tide__by_size_desc(const void *a, const void *b);
/// Birth, then larger first, then name.
int tide__by_birth(const void *a, const void *b);
/// Strictest alignment first, then birth, then name: laid end to end in this order nothing needs padding.
int tide__by_align_desc(const void *a, const void *b);

#endif
