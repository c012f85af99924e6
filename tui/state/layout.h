// SPDX-License-Identifier: MIT
//
// layout: which rectangle of the screen shows what. Pure: a size, a preset and a focus in, rectangles out. Panes that
// do not fit are empty; the one with the focus always is there. The smaller the screen, the fewer panes: below 24 lines
// or 80 columns one list under the curve.
//
//     | title                                            |
//     | summary                                          |
//     | legend of the bands                              |
//     | curve labels | curve                             |
//     |              | minimap (when zoomed)             |
//     |              | ruler                             |
//     | a list: gantt, table, …   | a second one         |   by preset
//     | details                                          |
//     | prompt, message or hints                         |
//
// Everything that has a time axis (curve, minimap, ruler, gantt bars, map) shares its columns.
#ifndef TIDE_TUI_LAYOUT_H
#define TIDE_TUI_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tui_rect {
    int x, y, w, h; ///< in cells
} tide_tui_rect;

enum {
    TIDE_TUI_MIN_WIDTH = 40,
    TIDE_TUI_MIN_HEIGHT = 10,
    TIDE_TUI_MAX_COLUMNS = 1024, ///< more columns than these stay blank
};

#define TIDE_TUI_PANE_MAP(XX)                                                                                          \
    XX(CURVE, "curve", "live bytes over time")                                                                         \
    XX(GANTT, "gantt", "lifetimes of tensors or blocks")                                                               \
    XX(MAP, "map", "addresses over time")                                                                              \
    XX(TABLE, "table", "who is alive at the cursor")                                                                   \
    XX(OPERATORS, "operators", "what runs, and what it makes and frees")                                               \
    XX(POOLS, "pools", "what allocators hold, and leaks")                                                              \
    XX(EXPLAIN, "explain", "why it is so much at the cursor")                                                          \
    XX(COMPARE, "compare", "A and B")                                                                                  \
    XX(WHATIF, "whatif", "edits, and what would lower the peak")                                                       \
    XX(STACKS, "stacks", "call stacks of what is alive at the cursor")                                                 \
    XX(DETAILS, "details", "the selection")
typedef enum tide_tui_pane {
#define XX(name, text, what) TIDE_TUI_PANE_##name,
    TIDE_TUI_PANE_MAP(XX)
#undef XX
        TIDE_TUI_N_PANES
} tide_tui_pane;
const char *tide_tui_pane_name(tide_tui_pane pane);
const char *tide_tui_pane_what(tide_tui_pane pane);

/// Keys 1 to 6.
#define TIDE_TUI_PRESET_MAP(XX)                                                                                        \
    XX(LIFETIMES, "lifetimes")   /* curve, gantt, details */                                                           \
    XX(MEMORY, "memory")         /* curve, map, table, details */                                                      \
    XX(PEAK, "peak")             /* curve, explain, what-if, table */                                                  \
    XX(ALLOCATORS, "allocators") /* curve, pools, operators */                                                         \
    XX(COMPARISON, "comparison") /* both curves, compare, gantt */                                                     \
    XX(STACKS, "stacks")         /* curve, stacks, table */
typedef enum tide_tui_preset {
#define XX(name, text) TIDE_TUI_PRESET_##name,
    TIDE_TUI_PRESET_MAP(XX)
#undef XX
        TIDE_TUI_N_PRESETS
} tide_tui_preset;
const char *tide_tui_preset_name(tide_tui_preset preset);

typedef struct tide_tui_layout {
    int width, height;
    bool too_small; ///< below the minimum: only a message fits
    tide_tui_rect title, summary;
    tide_tui_rect labels;                  ///< beside the curve: heights, as wide as the names of the gantt
    tide_tui_rect legend;                  ///< one line over the curve: what its bands are; from 24 lines on
    tide_tui_rect ruler;                   ///< ticks with times, under the curve
    tide_tui_rect runs;                    ///< one line under the ruler: what runs when; from 30 lines on
    tide_tui_rect minimap;                 ///< one line: the whole axis with the window in it
    tide_tui_rect panes[TIDE_TUI_N_PANES]; ///< with a line for the heading (CURVE: without); w == 0: not shown
    tide_tui_rect names, bars, sizes;      ///< inside GANTT
    tide_tui_rect map_labels, map;         ///< inside MAP
    tide_tui_rect map_legend;              ///< below the map, where it is made of letters: see add_map_legend
    tide_tui_rect bottom;                  ///< prompt, message or hints
    tide_tui_rect overlay;                 ///< everything between title and bottom
} tide_tui_layout;

void tide_tui_layout_make(int width, int height, tide_tui_preset preset, tide_tui_pane focus, tide_tui_layout *out);
/// Takes lines from the map for the names of `n` letters: as many as they need, a third of its lines at most.
void tide_tui_layout_add_map_legend(tide_tui_layout *l, size_t n);
/// All panes of a preset in the order of Tab, whether there is room for them at once or not; CURVE is the first.
int tide_tui_preset_panes(tide_tui_preset preset, tide_tui_pane out[TIDE_TUI_N_PANES]);
bool tide_tui_rect_has(tide_tui_rect r, int x, int y);
/// The pane at a cell (labels, minimap and ruler belong to CURVE); TIDE_TUI_N_PANES: none.
tide_tui_pane tide_tui_layout_pane_at(const tide_tui_layout *l, int x, int y);

#ifdef __cplusplus
}
#endif
#endif
