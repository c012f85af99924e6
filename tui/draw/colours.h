// SPDX-License-Identifier: MIT
//
// colours: which colour a role has, for each sort of terminal. Hues are those of Okabe and Ito ("Color Universal
// Design", 2008), which stay apart for the common forms of colour blindness, moved in lightness so that they hold on
// the ground. In the mono tier only attributes are left. What a colour says is also said by a glyph.
//
//     cell: role -> fore colour, attributes; ground -> back colour; marks -> reverse, underline
#ifndef TIDE_TUI_COLOURS_H
#define TIDE_TUI_COLOURS_H

#include "tui/draw/cells.h"
#include "tui/tui.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What the screen is like behind the text.
typedef enum tide_tui_ground {
    TIDE_TUI_GROUND_UNKNOWN, ///< tones that hold on both
    TIDE_TUI_GROUND_DARK,
    TIDE_TUI_GROUND_LIGHT
} tide_tui_ground;

enum { TIDE_TUI_ATTR_BOLD = 1, TIDE_TUI_ATTR_UNDERLINE = 2, TIDE_TUI_ATTR_REVERSE = 4 };
enum { TIDE_TUI_OWN_COLOUR = -1 }; ///< the terminal's own

typedef struct tide_tui_look {
    int32_t colour; ///< 0xRRGGBB in tier TRUE, else a number of the terminal's palette; TIDE_TUI_OWN_COLOUR
    unsigned attrs; ///< TIDE_TUI_ATTR_BOLD, …
} tide_tui_look;

/// Colour and attributes of a role. AUTO is MONO here: the caller, which knows the terminal, chooses.
tide_tui_look tide_tui_look_of(tide_tui_colour_tier tier, tide_tui_ground ground, tide_tui_role role);
/// Colour behind cells whose ground is `role`; TIDE_TUI_OWN_COLOUR for TEXT, and where the tier has none.
int32_t tide_tui_ground_colour(tide_tui_colour_tier tier, tide_tui_ground ground, tide_tui_role role);
/// From the value of COLORFGBG ("15;0", "0;default;15"), which some terminals set; NULL and anything else: UNKNOWN.
tide_tui_ground tide_tui_ground_of(const char *colorfgbg);

#ifdef __cplusplus
}
#endif
#endif
