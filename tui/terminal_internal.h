// SPDX-License-Identifier: MIT
//
// What the files of the terminal share. Private to tui/terminal*.
#ifndef TIDE_TUI_TERMINAL_INTERNAL_H
#define TIDE_TUI_TERMINAL_INTERNAL_H

#include <signal.h>

#include <curses.h>
// curses' names are everybody's: those that meet ours go.
#undef lines
#undef columns

#include "tui/paint.h"
#include "tui/terminal.h"

enum { TIDE__MOUSE_CODE = 0x7001, TIDE__PASTE_BEGIN, TIDE__PASTE_END };

struct tide_tui_terminal {
    SCREEN *curses;
    WINDOW *keys;          ///< a pad: reading from it leaves the screen alone
    tide_tui_paint *paint; ///< NULL: a terminal that does not follow ECMA-48, for which curses writes the frames
    tide_tui_colour_tier tier;
    tide_tui_ground ground;
    bool synchronised; ///< mode 2026 brackets each frame
    bool mouse, pastes;
    bool in_paste;
    int n_empty;       ///< times that input was announced and none came: the terminal is gone
    sigset_t waiting;  ///< signals while waiting: those that wake are let through
    tide_tui_grid now; ///< what is on the screen, where curses writes it
};

// ---- terminal_keys.c ----

void tide__terminal_define_keys(void);

// ---- terminal_colours.c ----

/// Whether colours, attributes, places and erasing are those of ECMA-48, by what terminfo says of the terminal.
bool tide__terminal_follows_ecma48(void);
/// Best tier that the terminal and the options allow. `paints`: colours can be named by their value.
tide_tui_colour_tier tide__terminal_choose_tier(const tide_tui_options *opt, bool paints);
/// Attributes and pair of a cell.
attr_t tide__terminal_attrs(const tide_tui_terminal *t, tide_tui_cell cell, int *pair);

// ---- terminal_signals.c ----

/// SIGTSTP and SIGCONT set flags, SIGWINCH is curses' own; all three come through while waiting, and only then.
void tide__terminal_catch_signals(tide_tui_terminal *t);
void tide__terminal_drop_signals(void);
/// TIDE_TUI_WOKE_SUSPEND, _RESUME as they came since the last time.
unsigned tide__terminal_signals(void);
/// Stop as SIGTSTP would have.
void tide__terminal_stop(void);

#endif
