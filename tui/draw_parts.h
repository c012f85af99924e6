// SPDX-License-Identifier: MIT
//
// draw parts: how panes that hold more than one list divide their room; drawing, keys and mouse ask the same functions.
#ifndef TIDE_TUI_DRAW_PARTS_H
#define TIDE_TUI_DRAW_PARTS_H

#include "tui/draw_words.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What is below the heading of a pane.
tide_tui_rect tide_tui_body_of(const tide_tui_scene *s, tide_tui_pane pane);

/// POOLS: a sentence, the table of pools, a line that separates, the table of leaks.
typedef struct tide_tui_pools_parts {
    tide_tui_rect sentence, pools, rule, leaks; ///< h == 0: left out
} tide_tui_pools_parts;
tide_tui_pools_parts tide_tui_pools_divide(const tide_tui_scene *s, tide_tui_rect body);

/// COMPARE: totals, the waterfall, the table of changes.
typedef struct tide_tui_compare_parts {
    tide_tui_rect totals, waterfall, rows;
} tide_tui_compare_parts;
tide_tui_compare_parts tide_tui_compare_divide(const tide_tui_scene *s, tide_tui_rect body);

/// WHATIF: edits so far and what they make of the plan, the table of advice, a line with the keys.
typedef struct tide_tui_whatif_parts {
    tide_tui_rect edits, advice, keys;
} tide_tui_whatif_parts;
tide_tui_whatif_parts tide_tui_whatif_divide(const tide_tui_scene *s, tide_tui_rect body);

/// EXPLAIN: all its lines onto a paper.
void tide_tui_explain_write(tide_tui_paper *p, const tide_tui_scene *s);

#ifdef __cplusplus
}
#endif
#endif
