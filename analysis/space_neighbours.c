// SPDX-License-Identifier: MIT
//
// Who lies beside an item at a moment. See space.h.
#include "analysis/space_internal.h"

typedef struct looking {
    const tide_space *sp;
    uint32_t item, region;
    uint64_t lo, hi; // what the item and all it shares bytes with take
    bool is_growing; // first time round: find out how far that goes
    uint64_t below_end, above_begin;
    uint32_t below, above;
} looking;

static void look(void *ctx, const tide__space_thing *thing) {
    looking *l = ctx;
    if (thing->region != l->region) return;
    const bool overlaps = thing->lo < l->hi && thing->hi > l->lo;
    if (l->is_growing) {
        if (overlaps && thing->lo < l->lo) l->lo = thing->lo;
        if (overlaps && thing->hi > l->hi) l->hi = thing->hi;
        return;
    }
    if (overlaps) return;
    if (thing->hi <= l->lo && (l->below == TIDE_NO_ITEM || thing->hi > l->below_end)) {
        l->below = thing->item;
        l->below_end = thing->hi;
    }
    if (thing->lo >= l->hi && (l->above == TIDE_NO_ITEM || thing->lo < l->above_begin)) {
        l->above = thing->item;
        l->above_begin = thing->lo;
    }
}

tide_status tide_space_neighbours(const tide_space *sp, const tide_items *items, uint32_t item, int64_t t,
                                  uint32_t *below, uint64_t *gap_below, uint32_t *above, uint64_t *gap_above,
                                  tide_error *err) {
    looking l = {.sp = sp, .item = item, .is_growing = true, .below = TIDE_NO_ITEM, .above = TIDE_NO_ITEM};
    *below = *above = TIDE_NO_ITEM;
    *gap_below = *gap_above = 0;
    if (!tide_space_of_item(sp, items, item, &l.lo, &l.hi))
        return TIDE_FAIL(err, TIDE_ERR_NOT_FOUND, "that has no place in a buffer and no address");
    l.region = (uint32_t)tide_space_region_at(sp, l.lo);
    const tide_region *r = &sp->regions[l.region];
    tide__space_each(sp, items, t, t + 1, look, &l);
    l.is_growing = false;
    tide__space_each(sp, items, t, t + 1, look, &l);
    *gap_below = l.lo - (l.below != TIDE_NO_ITEM ? l.below_end : r->at);
    *gap_above = (l.above != TIDE_NO_ITEM ? l.above_begin : r->at + r->bytes) - l.hi;
    if (*gap_below == 0) *below = l.below;
    if (*gap_above == 0) *above = l.above;
    return TIDE_OK;
}
