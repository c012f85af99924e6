// SPDX-License-Identifier: MIT
//
// draw: a scene as cells. Every pane has one function, which writes only inside its own rectangle of the layout.
// tide_tui_draw() calls those that are shown. These functions are pure: they ask no subject, and they cannot fail.
#ifndef TIDE_TUI_DRAW_DRAW_H
#define TIDE_TUI_DRAW_DRAW_H

#include "tui/draw/canvas.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One whole frame: clears the grid, which has the layout's size, and draws every pane.
void tide_tui_draw(const tide_tui_view *v);

void tide_tui_draw_title(const tide_tui_view *v);  ///< title, summary
void tide_tui_draw_bottom(const tide_tui_view *v); ///< prompt with completions, message, or the hints that matter now
void tide_tui_draw_curve(const tide_tui_view *v);  ///< labels, curve, lines of plan, bound, capacity, B; cursor, range
void tide_tui_draw_legend(const tide_tui_view *v); ///< of the bands of the curve
/// The bands over the columns of the curve, which are drawn already, in their own cells.
void tide_tui_draw_bands(const tide_tui_view *v);
void tide_tui_draw_runs(const tide_tui_view *v);  ///< executions and operators under the ruler
void tide_tui_draw_ruler(const tide_tui_view *v); ///< ruler with ticks, marks; minimap
void tide_tui_draw_gantt(const tide_tui_view *v);
void tide_tui_draw_map(const tide_tui_view *v);
void tide_tui_draw_table(const tide_tui_view *v);
void tide_tui_draw_operators(const tide_tui_view *v);
void tide_tui_draw_pools(const tide_tui_view *v);
void tide_tui_draw_explain(const tide_tui_view *v);
void tide_tui_draw_compare(const tide_tui_view *v);
void tide_tui_draw_whatif(const tide_tui_view *v);
void tide_tui_draw_stacks(const tide_tui_view *v); ///< call stacks of what is alive, as a tree
void tide_tui_draw_details(const tide_tui_view *v);
void tide_tui_draw_overlay(const tide_tui_view *v); ///< help, SQL, message, setup
void tide_tui_draw_too_small(const tide_tui_view *v);

/// Lines of the overlay that is open, at the layout's width, and how far it can scroll.
size_t tide_tui_overlay_lines(const tide_tui_scene *s, const tide_tui_glyphs *glyphs);
int tide_tui_overlay_max_top(const tide_tui_scene *s, const tide_tui_glyphs *glyphs);

// ---- how panes that hold more than one list divide their room: drawing, keys and mouse use the same functions ----

/// POOLS: a sentence, the table of pools, these over time, a line that separates, the table of leaks.
typedef struct tide_tui_pools_parts {
    tide_tui_rect sentence, devices, pools, bands, rule, leaks; ///< h == 0: left out
} tide_tui_pools_parts;
/// Where the bytes of devices are: figures at the cursor, and over time in the columns of the curve. Lines that they
/// take of `h`, `w` wide.
int tide_tui_device_lines(const tide_tui_scene *s, int w, int h);
void tide_tui_draw_devices(const tide_tui_view *v, tide_tui_rect r);
/// Pools over time, in the columns of the curve.
void tide_tui_draw_pool_bands(const tide_tui_view *v, tide_tui_rect r);
/// When the selected pool took or gave back memory before the cursor; "": never, as far as is known. `told`: the row
/// that the sentence before it names, or SIZE_MAX; another one is named here.
void tide_tui_say_growth(const tide_tui_scene *s, size_t told, char *buf, size_t buf_bytes);
/// Whether the selected pool would serve the request; "": none was asked.
void tide_tui_say_request(const tide_tui_scene *s, char *buf, size_t buf_bytes);
// Where there is a B: columns for its pools beside those of A, what both hold (form 1: the difference alone), and the
// pool of A in a row, NULL: B alone has it.
void tide_tui_columns_of_both(tide_tui_list_table *out);
void tide_tui_say_both(const tide_tui_scene *s, int form, char *buf, size_t buf_bytes);
/// Whether B's pools have bands of their own: those of another moment of A are A's.
static inline bool tide_tui_pools_have_two_axes(const tide_tui_scene *s) {
    return s->b_pools != NULL && !s->state->compares_moments;
}
const tide_pool *tide_tui_pool_of_a(const tide_tui_scene *s, size_t row);
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

// ---- the map's letters: where there are no colours each item has one, and the table beside it says whose it is ----

enum { TIDE_TUI_N_LETTERS = 52, TIDE_TUI_TINT_SLOTS = 4096 };
/// Tints (letters, or shades) of the items in the map, by their number or by their site; open addressing. When it is
/// full, items have the tint of their number.
struct tide_tui_tints {
    const tide_items *sites_of; ///< by site, of these items; NULL: by number
    uint32_t key[TIDE_TUI_TINT_SLOTS];
    uint8_t tint[TIDE_TUI_TINT_SLOTS]; ///< 255: free
    size_t n;
    uint32_t n_tints;
    bool is_used[TIDE_TUI_N_LETTERS];
    uint32_t n_used;
};
/// Letters of the map that the view shows; none where it has colours or is not shown.
void tide_tui_letters_make(const tide_tui_view *v, tide_tui_tints *out);
/// 0: the item has none.
uint32_t tide_tui_letter_of(const tide_tui_tints *t, uint32_t item);

// The tables, by list. `body`: of the list's pane, below its heading. @return false: there are no rows
bool tide_tui_table_of_live(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out);
bool tide_tui_table_of_operators(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out);
bool tide_tui_table_of_pools(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out);
bool tide_tui_table_of_leaks(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out);
bool tide_tui_table_of_compare(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out);
bool tide_tui_table_of_whatif(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out);
/// The one of `list`.
bool tide_tui_list_table_of(const tide_tui_scene *s, tide_tui_list list, tide_tui_rect body, tide_tui_list_table *out);

/// Lines of EXPLAIN at the width of the pane; 0 while there is no explanation.
size_t tide_tui_explain_lines(const tide_tui_scene *s);
/// First line of `n` that a pane of `h` lines shows.
size_t tide_tui_explain_top(const tide_tui_scene *s, size_t n, int h);

#ifdef __cplusplus
}
#endif
#endif
