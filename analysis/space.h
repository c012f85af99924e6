// SPDX-License-Identifier: MIT
//
// space: memory as a picture, time across and addresses upwards. Addresses are cut into regions (a plan's buffer, a
// segment of an allocator, a stretch of addresses near each other) which are laid end to end, so that terabytes between
// them take no room.
#ifndef TIDE_ANALYSIS_SPACE_H
#define TIDE_ANALYSIS_SPACE_H

#include "analysis/subject.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A pool of a colouring plan, in the region of its buffer.
typedef struct tide_region_pool {
    uint32_t number; ///< in the plan: "pool 3"
    uint64_t offset_bytes, bytes;
} tide_region_pool;

typedef struct tide_region {
    char *label;          ///< "Workspace on cpu", "arena segment 3"; owned
    size_t tail;          ///< where in the label the part begins that no other region has: "segment 3"; 0: all of it
    uint64_t base, bytes; ///< addresses or offsets [base, base + bytes)
    uint64_t at;          ///< where it begins on the axis of the picture
    int64_t begin, end;   ///< when it is there
    uint64_t bound_bytes; ///< of a plan's buffer: lower bound; else 0
    tide_memory_kind kind;
    char device[16];
    bool is_guessed;         ///< no segment was recorded: a stretch of addresses, and unused bytes in it are OUTSIDE
    uint64_t buffer_block;   ///< of a plan's buffer in a run: its block; else 0
    tide_region_pool *pools; ///< [n_pools] upwards, of a colouring plan's buffer; owned; NULL: it is not cut into pools
    size_t n_pools;
} tide_region;

/// All zero it is an empty one, in which nothing has a place: what the functions that make one leave when they fail.
typedef struct tide_space {
    tide_region *regions; ///< [n], owned
    size_t n;
    uint64_t bytes; ///< of all regions: the length of the axis
    bool has_holes; ///< false: regions are guessed, so that it is not known what lies between blocks
    void *index;    ///< owned
} tide_space;

/// Items with places must be loaded. TIDE_ERR_NOT_FOUND: there is nothing that has a place, or places were not kept
/// (then tide_space_of_live shows one moment).
tide_status tide_space_make(tide_subject *s, tide_space *out, tide_error *err) TIDE_NODISCARD;
/// The addresses at one moment alone: everything is there in [at.t, at.t + 1). Of a trace it looks for segments the
/// first time, 0.1 us an event. TIDE_ERR_CANCELLED, after which the subject can be asked on.
tide_status tide_space_of_live(tide_subject *s, const tide_live_items *live, const tide_progress *progress,
                               tide_space *out, tide_error *err) TIDE_NODISCARD;
void tide_space_deinit(tide_space *sp);

/// What a cell of the picture is: item, one of these, or several items.
enum {
    TIDE_SPACE_OUTSIDE = UINT32_MAX,   ///< no region there, or not at that time
    TIDE_SPACE_FREE = UINT32_MAX - 1,  ///< of a region, above everything that is alive in it
    TIDE_SPACE_HOLE = UINT32_MAX - 2,  ///< of a region, unused, with something alive above it
    TIDE_SPACE_OTHER = UINT32_MAX - 3, ///< a block that is not among the items
};
typedef struct tide_space_cell {
    uint32_t item;  ///< that holds most of it, or TIDE_SPACE_…
    bool is_shared; ///< there are other items in it too
} tide_space_cell;
/// A picture of `n_columns` x `n_rows` cells of times [t0, t1) and places [lo, hi) of the axis; cells[row * n_columns +
/// column], row 0 holds the lowest places. A hole shows where it fills more of a cell than any item. Costs what lies in
/// the window, and the cells.
tide_status tide_space_cells(const tide_space *sp, const tide_items *items, int64_t t0, int64_t t1, uint64_t lo,
                             uint64_t hi, size_t n_columns, size_t n_rows, tide_space_cell *cells,
                             tide_error *err) TIDE_NODISCARD;
/// Where an item lies on the axis; false: it has no place in it.
bool tide_space_of_item(const tide_space *sp, const tide_items *items, uint32_t item, uint64_t *lo, uint64_t *hi);
/// The region at a place of the axis; SIZE_MAX: behind the last.
size_t tide_space_region_at(const tide_space *sp, uint64_t at);
/// Items that touch `item` from below and above at time t; TIDE_NO_ITEM: none, or a hole. *gap_below, *gap_above: free
/// bytes between.
tide_status tide_space_neighbours(const tide_space *sp, const tide_items *items, uint32_t item, int64_t t,
                                  uint32_t *below, uint64_t *gap_below, uint32_t *above, uint64_t *gap_above,
                                  tide_error *err) TIDE_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif
