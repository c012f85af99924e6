// SPDX-License-Identifier: MIT
//
// Looks (tui/colours.h) as attributes and colour pairs of curses. See terminal.h.
#include <stdlib.h>
#include <string.h>

#include "tui/terminal_internal.h"
#include <term.h>

/// Best tier of the terminal. Colours by their value need a terminfo entry that has them (xterm-direct, tmux-direct):
/// through others curses can only name numbers of the palette.
static tide_tui_colour_tier best_tier(void) {
    if (!has_colors() || start_color() != OK) return TIDE_TUI_COLOUR_MONO;
    if (COLORS > 256) return tigetflag("RGB") > 0 || COLORS >= 1 << 24 ? TIDE_TUI_COLOUR_TRUE : TIDE_TUI_COLOUR_256;
    if (COLORS == 256) return TIDE_TUI_COLOUR_256;
    return COLORS >= 16 ? TIDE_TUI_COLOUR_16 : COLORS >= 8 ? TIDE_TUI_COLOUR_8 : TIDE_TUI_COLOUR_MONO;
}

tide_tui_colour_tier tide__terminal_choose_tier(const tide_tui_options *opt) {
    const tide_tui_colour_tier asked = opt != NULL ? opt->colour : TIDE_TUI_COLOUR_AUTO;
    const char *no_color = getenv("NO_COLOR");
    if (asked == TIDE_TUI_COLOUR_MONO) return TIDE_TUI_COLOUR_MONO;
    if (asked == TIDE_TUI_COLOUR_AUTO && no_color != NULL && no_color[0] != '\0') return TIDE_TUI_COLOUR_MONO;
    const tide_tui_colour_tier best = best_tier();
    if (best == TIDE_TUI_COLOUR_MONO || use_default_colors() != OK) return TIDE_TUI_COLOUR_MONO;
    // Tiers are listed from the most colours to the fewest.
    return asked != TIDE_TUI_COLOUR_AUTO && asked > best ? asked : best;
}

attr_t tide__terminal_attrs(const tide_tui_terminal *t, tide_tui_cell cell, int *pair) {
    const tide_tui_look look = tide_tui_look_of(t->tier, t->ground, (tide_tui_role)cell.role);
    const int32_t ground = tide_tui_ground_colour(t->tier, t->ground, (tide_tui_role)cell.ground);
    attr_t attrs = A_NORMAL;
    if (look.attrs & TIDE_TUI_ATTR_BOLD) attrs |= A_BOLD;
    if (look.attrs & TIDE_TUI_ATTR_UNDERLINE) attrs |= A_UNDERLINE;
    if (look.attrs & TIDE_TUI_ATTR_REVERSE) attrs |= A_REVERSE;
    if (cell.marks & TIDE_TUI_MARK_SELECTED) attrs ^= A_REVERSE;
    if (cell.marks & TIDE_TUI_MARK_MATCH) attrs |= A_UNDERLINE;
    *pair = 0;
    if (t->tier != TIDE_TUI_COLOUR_MONO && (look.colour >= 0 || ground >= 0)) {
        const int found = alloc_pair(look.colour, ground);
        if (found > 0) *pair = found;
    }
    return attrs;
}
