// SPDX-License-Identifier: MIT
//
// actions: what keys, mouse and commands do to the state. Pure, except that a jump (next peak, next change) queries the
// subject. The actions are listed in tui/state/keys.h; a command line (":zoom-in", ":filter size>1MiB") does the same
// actions.
#ifndef TIDE_TUI_ACTIONS_H
#define TIDE_TUI_ACTIONS_H

#include "tui/scene/scene.h"
#include "tui/state/keys.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What the caller must do after an action.
enum {
    TIDE_TUI_HANDLED = 1, ///< it means something here
    TIDE_TUI_REDRAWN = 2, ///< the frame changes
    TIDE_TUI_REPAINT = 4, ///< the whole screen is to be sent again
    TIDE_TUI_LEAVE = 8,   ///< the user wants to quit
    TIDE_TUI_EFFECT = 16, ///< `effect` of the result: the caller must change something outside of the state
};
typedef enum tide_tui_effect {
    TIDE_TUI_EFFECT_NONE,
    TIDE_TUI_EFFECT_COPY,      ///< `text` to the clipboard (OSC 52) and to a file
    TIDE_TUI_EFFECT_EXPORT,    ///< `text`: file; the view, by its ending
    TIDE_TUI_EFFECT_SAVE_PLAN, ///< `text`: file; the plan of the what-if
    TIDE_TUI_EFFECT_PLAN,      ///< edits have changed: plan anew
    TIDE_TUI_EFFECT_SQL,       ///< `text`: run a SELECT, or "" for that of the pane
    TIDE_TUI_EFFECT_WORST,     ///< look for the moment at which the selected pool is fragmented most
    TIDE_TUI_EFFECT_OPEN_B,    ///< `text`: file
    TIDE_TUI_EFFECT_MOUSE,     ///< state->mouse has changed
    TIDE_TUI_EFFECT_SAVE_STATE,
    TIDE_TUI_EFFECT_FORGET_STATE,
    TIDE_TUI_EFFECT_BATCH,    ///< show the command line that prints this view
    TIDE_TUI_EFFECT_MESSAGES, ///< list what was logged
    TIDE_TUI_EFFECT_CANCEL,   ///< of pending requests
} tide_tui_effect;
typedef struct tide_tui_result {
    unsigned flags; ///< TIDE_TUI_…
    tide_tui_effect effect;
    char text[TIDE_TUI_MAX_PROMPT];
} tide_tui_result;

/// `scene` is the last one that was made, with its layout: pages, rows and columns are those on the screen.
tide_tui_result tide_tui_press(tide_tui_state *st, const tide_tui_scene *scene, uint32_t key);
tide_tui_result tide_tui_do(tide_tui_state *st, const tide_tui_scene *scene, tide_tui_action action);
/// A line behind ':'. An unknown word is an error in state->message, with the nearest known word.
tide_tui_result tide_tui_command(tide_tui_state *st, const tide_tui_scene *scene, const char *line);

/// Click selects and puts the cursor, wheel zooms at the pointer over a time axis (shift: pans) and scrolls lists, drag
/// over a time axis selects a range, double click fits.
tide_tui_result tide_tui_point(tide_tui_state *st, const tide_tui_scene *scene, const tide_tui_mouse *mouse);

/// Completion of the command line in state->text: extends it by what all candidates share and lists them.
void tide_tui_complete(tide_tui_state *st, const tide_tui_scene *scene);

/// The cursor goes to a moment, and the window with it where it lies outside.
void tide_tui_show_moment(tide_tui_state *st, tide_moment at);

#ifdef __cplusplus
}
#endif
#endif
