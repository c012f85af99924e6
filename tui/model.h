// SPDX-License-Identifier: MIT
//
// model: what the person looks at: rows in an order, a selection, a window of time and a cursor in it. Keys change it
// through one pure function; drawing reads it.
#ifndef TIDE_TUI_MODEL_H
#define TIDE_TUI_MODEL_H

#include "tui/axis.h"
#include "tui/keys.h"
#include "tui/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIDE_TUI_SORT_MAP(XX)                                                                                          \
    XX(BEGIN, "begin")                                                                                                 \
    XX(SIZE, "size")                                                                                                   \
    XX(NAME, "name")                                                                                                   \
    XX(LIFE, "life")

typedef enum tide_tui_sort {
#define XX(name, text) TIDE_TUI_SORT_##name,
    TIDE_TUI_SORT_MAP(XX)
#undef XX
        TIDE_TUI_N_SORTS
} tide_tui_sort;
const char *tide_tui_sort_name(tide_tui_sort sort);

typedef struct tide_tui_model {
    const tide_timeline *tl; ///< borrowed
    size_t *order;           ///< [tl->n_items] row to item, owned; the first n_rows are shown, the rest are hidden
    size_t n_rows;
    size_t n_persistent; ///< of all items
    tide_tui_sort sort;
    bool hides_persistent; ///< rows alone: the curve holds everything
    size_t row;            ///< selected; 0 when there are no rows
    size_t top;            ///< first row on the screen
    tide_tui_window window;
    int64_t cursor; ///< inside the window
    bool help;
    int help_top; ///< first line of the help on the screen
} tide_tui_model;

/// The whole axis, all rows by begin with the persistent ones last, the first selected, the cursor at the peak. `tl` is
/// borrowed until deinit. TIDE_ERR_NOMEM.
tide_status tide_tui_model_init(tide_tui_model *m, const tide_timeline *tl, tide_error *err) TIDE_NODISCARD;
void tide_tui_model_deinit(tide_tui_model *m);

enum {
    TIDE_TUI_HANDLED = 1, ///< the key means something here
    TIDE_TUI_REDRAWN = 2, ///< something to be seen has changed
    TIDE_TUI_REPAINT = 4, ///< the whole screen is to be sent again
    TIDE_TUI_LEAVE = 8    ///< the user wants to quit
};

/// Apply a key. @return TIDE_TUI_… flags; 0 for an unknown key, which changes nothing
unsigned tide_tui_press(tide_tui_model *m, const tide_tui_layout *layout, uint32_t key);
/// Bring scrolling into line with the selection and the size of the screen; after a resize.
void tide_tui_settle(tide_tui_model *m, const tide_tui_layout *layout);
/// The selected item; NULL when there is none.
const tide_timeline_item *tide_tui_selected(const tide_tui_model *m);
/// Rows that are not shown now.
size_t tide_tui_n_hidden(const tide_tui_model *m);

#ifdef __cplusplus
}
#endif
#endif
