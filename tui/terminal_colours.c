// SPDX-License-Identifier: MIT
//
// Looks (tui/colours.h) as attributes and colour pairs of curses. See terminal.h.
#include <stdlib.h>
#include <string.h>

#include "tui/terminal_internal.h"
#include <term.h>

/// What a capability with one parameter makes of it; "": there is none.
static const char *with(const char *name, int value) {
    const char *control = tigetstr(name);
    const char *made = control != NULL && control != (const char *)-1 ? tiparm(control, value) : NULL;
    return made != NULL ? made : "";
}

static bool is(const char *name, const char *want) {
    const char *control = tigetstr(name);
    return control != NULL && control != (const char *)-1 && strcmp(control, want) == 0;
}

bool tide__terminal_follows_ecma48(void) {
    const char *cup = tigetstr("cup");
    if (cup == NULL || cup == (const char *)-1 || strcmp(tiparm(cup, 4, 6), "\033[5;7H") != 0) return false;
    if (!is("bold", "\033[1m") || !is("rev", "\033[7m") || !is("smul", "\033[4m") || !is("el", "\033[K")) return false;
    if (!is("cud1", "\n") || !is("cub1", "\b") || !is("cuf1", "\033[C")) return false;
    const int n_colours = tigetnum("colors");
    if (n_colours <= 0) return true;
    const bool foregrounds = strcmp(with("setaf", 1), "\033[31m") == 0 && strcmp(with("setab", 1), "\033[41m") == 0;
    const char *of_palette = with("setaf", 200); // who names them with colons takes semicolons too
    const bool palette =
        n_colours != 256 || strcmp(of_palette, "\033[38;5;200m") == 0 || strcmp(of_palette, "\033[38:5:200m") == 0;
    return is("op", "\033[39;49m") && foregrounds && palette;
}

/// COLORTERM says what no terminfo entry of everyday use does. GNU screen passes the variable on and the colours not.
static bool says_true_colour(void) {
    const char *says = getenv("COLORTERM"), *term = getenv("TERM"), *tmux = getenv("TMUX");
    if (says == NULL || (strcmp(says, "truecolor") != 0 && strcmp(says, "24bit") != 0)) return false;
    return strncmp(term != NULL ? term : "", "screen", 6) != 0 || (tmux != NULL && tmux[0] != '\0');
}

/// Best tier of the terminal. Through curses, colours by their value need a terminfo entry that has them
/// (xterm-direct, tmux-direct).
static tide_tui_colour_tier best_tier(bool paints) {
    if (!has_colors() || start_color() != OK) return TIDE_TUI_COLOUR_MONO;
    if (paints && COLORS >= 256 && says_true_colour()) return TIDE_TUI_COLOUR_TRUE;
    if (COLORS > 256) return tigetflag("RGB") > 0 || COLORS >= 1 << 24 ? TIDE_TUI_COLOUR_TRUE : TIDE_TUI_COLOUR_256;
    if (COLORS == 256) return TIDE_TUI_COLOUR_256;
    return COLORS >= 16 ? TIDE_TUI_COLOUR_16 : COLORS >= 8 ? TIDE_TUI_COLOUR_8 : TIDE_TUI_COLOUR_MONO;
}

tide_tui_colour_tier tide__terminal_choose_tier(const tide_tui_options *opt, bool paints) {
    const tide_tui_colour_tier asked = opt != NULL ? opt->colour : TIDE_TUI_COLOUR_AUTO;
    const char *no_color = getenv("NO_COLOR");
    if (asked == TIDE_TUI_COLOUR_MONO) return TIDE_TUI_COLOUR_MONO;
    if (asked == TIDE_TUI_COLOUR_AUTO && no_color != NULL && no_color[0] != '\0') return TIDE_TUI_COLOUR_MONO;
    const tide_tui_colour_tier best = best_tier(paints);
    if (best == TIDE_TUI_COLOUR_MONO || use_default_colors() != OK) return TIDE_TUI_COLOUR_MONO;
    // Who asks for colours by their value where the palette has 256 knows that the terminal takes them.
    if (asked == TIDE_TUI_COLOUR_TRUE && paints && best == TIDE_TUI_COLOUR_256) return asked;
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
