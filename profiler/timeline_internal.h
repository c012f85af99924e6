// SPDX-License-Identifier: MIT
//
// How a timeline is put together; shared by the file for plans and the file for traces. Private to profiler/.
#ifndef TIDE_PROFILER_TIMELINE_INTERNAL_H
#define TIDE_PROFILER_TIMELINE_INTERNAL_H

#include "profiler/timeline.h"

typedef struct tide__timeline_builder {
    tide_timeline *tl;
    size_t cap_items, cap_points;
} tide__timeline_builder;

/// An empty timeline with its texts; freed with tide_timeline_destroy until tide__timeline_finish hands it over.
tide_status tide__timeline_begin(tide__timeline_builder *b, tide_axis axis, const char *model, const char *mode,
                                 const char *strategy, tide_error *err) TIDE_NODISCARD;
/// Name and owner are copied.
tide_status tide__timeline_add_item(tide__timeline_builder *b, const tide_timeline_item *item,
                                    tide_error *err) TIDE_NODISCARD;
tide_status tide__timeline_add_point(tide__timeline_builder *b, int64_t t, uint64_t bytes,
                                     tide_error *err) TIDE_NODISCARD;
/// Room for `n` steps, which the caller fills from the first; counts them as they are added.
tide_status tide__timeline_reserve_steps(tide__timeline_builder *b, size_t n, tide_error *err) TIDE_NODISCARD;
tide_status tide__timeline_add_step(tide__timeline_builder *b, const char *name, int64_t begin,
                                    tide_error *err) TIDE_NODISCARD;
/// Sort the items, find the peak.
tide_timeline *tide__timeline_finish(tide__timeline_builder *b);
/// `plan` is taken, also its numbers for the head of the timeline.
void tide__timeline_set_plan(tide__timeline_builder *b, tide_memory_plan *plan);

#endif
