// SPDX-License-Identifier: MIT
//
// The parts that a scene is made of. Private to tui/scene/.
#ifndef TIDE_TUI_SCENE_PARTS_H
#define TIDE_TUI_SCENE_PARTS_H

#include "tui/scene/query_cache.h"

// ---- parts of a scene; each fails with TIDE_ERR_NOMEM alone ----

tide_status tide__scene_curve(tide__frame *f) TIDE_NODISCARD;
/// Behind the curve, which it makes exact.
tide_status tide__scene_bands(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_marks(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_range(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_rows(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_gantt(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_live(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_map(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_selection(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_explain(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_pools(tide__frame *f) TIDE_NODISCARD;
/// Behind the pools of A, to which it adds those that B alone has.
tide_status tide__scene_pools_b(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_compare(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_advice(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_operators(tide__frame *f) TIDE_NODISCARD;
tide_status tide__scene_stacks(tide__frame *f) TIDE_NODISCARD;

/// `t` of A's axis on the axis of B: both count from their begin; an axis of steps beside one of times is stretched to
/// the same length.
int64_t tide__on_axis_of_b(const tide__frame *f, int64_t t);
/// A's window there, never empty.
tide_tui_window tide__window_of_b(const tide__frame *f);

/**
 * Puts the rows of a list that the scene shows into the order that was asked for. `result` is the slot of the query
 * that they are of.
 *
 * @param rows  out, the rows in that order; unchanged where the list keeps its own. Valid until another order or
 * another result is shown
 */
tide_status tide__scene_sort(tide__frame *f, tide_tui_list list, int result, void **rows) TIDE_NODISCARD;

#endif
