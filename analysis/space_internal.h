// SPDX-License-Identifier: MIT
//
// What the files of space share. Private to analysis/.
//
//     regions   [ buffer ][ segment ][ segment ][ stretch of addresses ]        one axis
//     presences      [======]  [==]  [=]                                           when a region is there
//     rectangles    what planned tensors occupy, as disjoint rectangles             by begin
//     blocks    items of a trace: their own columns, and the region of each     by begin, as the items are
#ifndef TIDE_ANALYSIS_SPACE_INTERNAL_H
#define TIDE_ANALYSIS_SPACE_INTERNAL_H

#include "analysis/space.h"

enum {
    TIDE__NO_REGION = UINT32_MAX,
    TIDE__SPACE_CHUNK = 256, ///< items or rectangles whose last end is kept together
};

/// Bytes [lo, hi) of a region, counted from its base, belong to an item in [begin, end).
typedef struct tide__rectangle {
    int64_t begin, end;
    uint64_t lo, hi;
    uint32_t item, region;
} tide__rectangle;

typedef struct tide__presence {
    uint32_t region;
    int64_t begin, end;
} tide__presence;

typedef struct tide__space_index {
    size_t n_items;
    uint32_t *region_of; ///< [n_items], TIDE__NO_REGION: it has no place; owned; NULL: only the rectangles count
    int64_t *block_ends; ///< [n_items / chunk + 1] last end of a chunk of items; owned
    tide__rectangle *rectangles; ///< [n_rectangles], owned
    size_t n_rectangles, cap_rectangles;
    int64_t *rectangle_ends;   ///< [n_rectangles / chunk + 1], owned
    tide__presence *presences; ///< [n_presences] by region, then begin; owned
    size_t n_presences, cap_presences;
    size_t cap_regions;
} tide__space_index;

/// The index of a space that is being made.
static inline tide__space_index *tide__space_index_of(const tide_space *sp) { return sp->index; }
/// To read: an empty space has an index too, without entries.
static inline const tide__space_index *tide__space_index_read(const tide_space *sp) {
    static const tide__space_index nothing = {0};
    return sp->index != NULL ? sp->index : &nothing;
}

// ---- space_regions.c ----

tide_status tide__space_add_rectangle(tide_space *sp, const tide__rectangle *r, tide_error *err) TIDE_NODISCARD;

/// Regions of the plan's buffers whose tensors are among the items, and the rectangles that these occupy.
tide_status tide__space_add_plan(tide_subject *s, tide_space *sp, tide_error *err) TIDE_NODISCARD;
/// The region of buffer `b` of a plan, made when it is new, which is there from begin to end. `block_id`: the block of
/// a run that is that buffer; 0: of a plan, or not known.
tide_status tide__space_buffer(tide_space *sp, const tide_memory_plan *plan, const tide_plan_buffer *b,
                               uint64_t block_id, int64_t begin, int64_t end, uint32_t *region,
                               tide_error *err) TIDE_NODISCARD;

/// A block with an address, and which item (or live item) it is.
typedef struct tide__addressed {
    uint64_t address, bytes;
    const char *device;
    int64_t begin, end;
    tide_memory_kind kind;
    uint32_t process, item, region;
} tide__addressed;
/// Segments that were there at some time of a window, by address: each is a region.
typedef struct tide__space_segments {
    struct tide__seg_place *items; ///< [n], owned: tide_host_free
    size_t n;
} tide__space_segments;
tide_status tide__space_find_segments(tide_subject *s, tide_space *sp, int64_t begin, int64_t end,
                                      tide__space_segments *out, tide_error *err) TIDE_NODISCARD;
/// The region of the segment that a block lies in; TIDE__NO_REGION: in none that was there then.
uint32_t tide__space_segment_of(const tide_space *sp, const tide__space_segments *segments, const tide__addressed *b);
/// Regions for blocks that lie in no segment: stretches of addresses. Changes their order.
tide_status tide__space_add_stretches(tide_space *sp, tide__addressed *blocks, size_t n,
                                      tide_error *err) TIDE_NODISCARD;

#endif
