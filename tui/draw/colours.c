// SPDX-License-Identifier: MIT
//
// The table of roles and colours. See colours.h.
#include "tui/draw/colours.h"

#include <stdlib.h>
#include <string.h>

enum { OWN = TIDE_TUI_OWN_COLOUR };

typedef struct tones {
    int32_t rgb[3];     ///< 0xRRGGBB for each tide_tui_ground
    int16_t of_256[3];  ///< the entries of the large palette that come close and hold on the ground
    int8_t of_16, of_8; ///< numbers of the small palettes
    uint8_t attrs, mono_attrs;
} tones;

//           unknown   dark      light       unknown dark light   16  8
#define BLUE {0x0072B2, 0x3A97DC, 0x0059A0}, {32, 32, 25}, 12, 4
#define SKY {0x4793CC, 0x8CCFF4, 0x3C8AC2}, {68, 117, 68}, 14, 6
#define GREEN {0x00956C, 0x2FBF8F, 0x007A58}, {29, 36, 29}, 10, 2
#define ORANGE {0xC27400, 0xE69F00, 0xA86200}, {136, 172, 94}, 3, 3
#define VERMILION {0xD55E00, 0xFF7A33, 0xB84700}, {166, 209, 130}, 9, 1
#define PURPLE {0xC06A9A, 0xDD8FBC, 0xA23F78}, {132, 175, 132}, 13, 5
#define YELLOW {0x8F7D00, 0xF0E442, 0x756600}, {100, 227, 58}, 11, 3
#define RED {0xD64545, 0xFF7070, 0xB00020}, {167, 203, 124}, 9, 1
#define GREY {0x7F7F7F, 0x9A9A9A, 0x6A6A6A}, {244, 247, 242}, 7, OWN
#define PALE {0x767676, 0x9A9A9A, 0x8A8A8A}, {243, 247, 245}, 7, OWN
#define ACCENT {0x2A86C4, 0x56B4E9, 0x0065A8}, {32, 74, 25}, 14, 6
#define MAROON {0xB45050, 0xB85454, 0xC46060}, {131, 131, 131}, 7, 1
#define INK {0x000000, 0x000000, 0xFFFFFF}, {16, 16, 231}, 0, 0
#define NO_COLOUR {OWN, OWN, OWN}, {OWN, OWN, OWN}, OWN, OWN

/// Roles of the map come from those of the bars.
static const tones table[TIDE_TUI_ROLE_PLACE] = {
    [TIDE_TUI_ROLE_TEXT] = {NO_COLOUR, 0, 0},
    [TIDE_TUI_ROLE_TITLE] = {NO_COLOUR, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_DIM] = {GREY, 0, 0},
    [TIDE_TUI_ROLE_LABEL] = {NO_COLOUR, TIDE_TUI_ATTR_UNDERLINE, TIDE_TUI_ATTR_UNDERLINE},
    [TIDE_TUI_ROLE_KEY] = {ACCENT, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_CURVE] = {BLUE, 0, 0},
    [TIDE_TUI_ROLE_SPIKE] = {SKY, 0, 0},
    [TIDE_TUI_ROLE_PEAK] = {VERMILION, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_BOUND] = {GREEN, 0, 0},
    [TIDE_TUI_ROLE_PLAN] = {ORANGE, 0, 0},
    [TIDE_TUI_ROLE_CURSOR] = {PURPLE, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_CAPACITY] = {RED, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_PREDICTED] = {NO_COLOUR, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_OTHER] = {YELLOW, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_RESERVED] = {PURPLE, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_RANGE] = {GREY, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_MARK] = {NO_COLOUR, TIDE_TUI_ATTR_BOLD | TIDE_TUI_ATTR_REVERSE,
                            TIDE_TUI_ATTR_BOLD | TIDE_TUI_ATTR_REVERSE},
    [TIDE_TUI_ROLE_HOLE] = {MAROON, 0, 0},
    [TIDE_TUI_ROLE_INK] = {INK, 0, 0},
    [TIDE_TUI_ROLE_GOOD] = {GREEN, 0, 0},
    [TIDE_TUI_ROLE_ERROR] = {RED, TIDE_TUI_ATTR_BOLD, TIDE_TUI_ATTR_BOLD},
    [TIDE_TUI_ROLE_BAR + TIDE_ITEM_FILL_INTERMEDIATE] = {BLUE, 0, 0},
    [TIDE_TUI_ROLE_BAR + TIDE_ITEM_FILL_SCRATCH] = {ORANGE, 0, 0},
    [TIDE_TUI_ROLE_BAR + TIDE_ITEM_FILL_INOUT] = {GREEN, 0, 0},
    [TIDE_TUI_ROLE_BAR + TIDE_ITEM_FILL_WEIGHT] = {PALE, 0, 0},
    [TIDE_TUI_ROLE_BAR + TIDE_ITEM_FILL_KV_CACHE] = {PURPLE, 0, 0},
    [TIDE_TUI_ROLE_BAR + TIDE_ITEM_FILL_HOST] = {SKY, 0, 0},
};

/// Shades of a fill in the small palettes, where lightness cannot be chosen.
static const int8_t places_16[TIDE_N_ITEM_FILLS][TIDE_TUI_N_SHADES] = {
    [TIDE_ITEM_FILL_INTERMEDIATE] = {12, 6, 14, 4}, [TIDE_ITEM_FILL_SCRATCH] = {3, 11, 1, 9},
    [TIDE_ITEM_FILL_INOUT] = {2, 10, 6, 14},        [TIDE_ITEM_FILL_WEIGHT] = {8, 7, 12, 6},
    [TIDE_ITEM_FILL_KV_CACHE] = {5, 13, 1, 9},      [TIDE_ITEM_FILL_HOST] = {6, 14, 4, 12},
};
static const int8_t places_8[TIDE_N_ITEM_FILLS][TIDE_TUI_N_SHADES] = {
    [TIDE_ITEM_FILL_INTERMEDIATE] = {4, 6, 5, 2}, [TIDE_ITEM_FILL_SCRATCH] = {3, 1, 5, 2},
    [TIDE_ITEM_FILL_INOUT] = {2, 6, 4, 3},        [TIDE_ITEM_FILL_WEIGHT] = {7, 6, 4, 5},
    [TIDE_ITEM_FILL_KV_CACHE] = {5, 1, 3, 4},     [TIDE_ITEM_FILL_HOST] = {6, 4, 2, 5},
};

/// The same by ground, where the nearest entry would lose the hue. Ink can be read on each of them.
static const uint8_t places_256[3][TIDE_N_ITEM_FILLS][TIDE_TUI_N_SHADES] = {
    [TIDE_TUI_GROUND_UNKNOWN] = {[TIDE_ITEM_FILL_INTERMEDIATE] = {31, 110, 24, 74},
                                 [TIDE_ITEM_FILL_SCRATCH] = {136, 180, 94, 172},
                                 [TIDE_ITEM_FILL_INOUT] = {29, 115, 65, 72},
                                 [TIDE_ITEM_FILL_WEIGHT] = {244, 250, 241, 247},
                                 [TIDE_ITEM_FILL_KV_CACHE] = {132, 182, 96, 175},
                                 [TIDE_ITEM_FILL_HOST] = {67, 152, 60, 110}},
    [TIDE_TUI_GROUND_DARK] = {[TIDE_ITEM_FILL_INTERMEDIATE] = {32, 153, 24, 110},
                              [TIDE_ITEM_FILL_SCRATCH] = {172, 222, 94, 179},
                              [TIDE_ITEM_FILL_INOUT] = {36, 115, 29, 72},
                              [TIDE_ITEM_FILL_WEIGHT] = {247, 252, 241, 250},
                              [TIDE_ITEM_FILL_KV_CACHE] = {175, 225, 96, 182},
                              [TIDE_ITEM_FILL_HOST] = {117, 195, 66, 152}},
    [TIDE_TUI_GROUND_LIGHT] = {[TIDE_ITEM_FILL_INTERMEDIATE] = {25, 68, 17, 61},
                               [TIDE_ITEM_FILL_SCRATCH] = {130, 136, 94, 58},
                               [TIDE_ITEM_FILL_INOUT] = {29, 65, 22, 23},
                               [TIDE_ITEM_FILL_WEIGHT] = {245, 242, 239, 236},
                               [TIDE_ITEM_FILL_KV_CACHE] = {132, 53, 126, 96},
                               [TIDE_ITEM_FILL_HOST] = {67, 30, 60, 24}},
};

// ---- tones ----

static int channel(int32_t rgb, int shift) { return (int)(rgb >> shift & 0xFF); }

/// `rgb` moved by `percent` of the way to white (or, below 0, to black).
static int32_t mix(int32_t rgb, int percent) {
    int32_t out = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        const int c = channel(rgb, shift), to = percent < 0 ? 0 : 255;
        out |= (int32_t)(c + (to - c) * abs(percent) / 100) << shift;
    }
    return out;
}

static int32_t place_colour(tide_tui_colour_tier tier, tide_tui_ground ground, int fill, int shade) {
    // Towards white or black, away from the ink that is written on them.
    static const int8_t steps[3][TIDE_TUI_N_SHADES] = {[TIDE_TUI_GROUND_UNKNOWN] = {0, 55, -20, 28},
                                                       [TIDE_TUI_GROUND_DARK] = {0, 55, -25, 28},
                                                       [TIDE_TUI_GROUND_LIGHT] = {0, -25, -50, -72}};
    if (tier == TIDE_TUI_COLOUR_16) return places_16[fill][shade];
    if (tier == TIDE_TUI_COLOUR_8) return places_8[fill][shade];
    if (tier == TIDE_TUI_COLOUR_256) return places_256[ground][fill][shade];
    return mix(table[TIDE_TUI_ROLE_BAR + fill].rgb[ground], steps[ground][shade]);
}

static int32_t colour_of(tide_tui_colour_tier tier, tide_tui_ground ground, int role) {
    if (tier == TIDE_TUI_COLOUR_AUTO || tier == TIDE_TUI_COLOUR_MONO) return OWN;
    if (role >= TIDE_TUI_ROLE_PLACE) {
        const int i = role - TIDE_TUI_ROLE_PLACE;
        return place_colour(tier, ground, i / TIDE_TUI_N_SHADES, i % TIDE_TUI_N_SHADES);
    }
    const tones *t = &table[role];
    // The bright half of the palette is made for dark grounds.
    if (tier == TIDE_TUI_COLOUR_16) return ground == TIDE_TUI_GROUND_LIGHT ? t->of_8 : t->of_16;
    if (tier == TIDE_TUI_COLOUR_8) return t->of_8;
    return tier == TIDE_TUI_COLOUR_256 ? t->of_256[ground] : t->rgb[ground];
}

// ---- looks ----

tide_tui_look tide_tui_look_of(tide_tui_colour_tier tier, tide_tui_ground ground, tide_tui_role role) {
    const bool mono = tier == TIDE_TUI_COLOUR_AUTO || tier == TIDE_TUI_COLOUR_MONO;
    if (role < 0 || role >= TIDE_TUI_N_ROLES) return (tide_tui_look){OWN, 0};
    tide_tui_look look = {colour_of(tier, ground, (int)role), 0};
    if (role < TIDE_TUI_ROLE_PLACE) look.attrs = mono ? table[role].mono_attrs : table[role].attrs;
    return look;
}

int32_t tide_tui_ground_colour(tide_tui_colour_tier tier, tide_tui_ground ground, tide_tui_role role) {
    // Behind something else a tone is close to the screen's own ground, where that is known.
    static const int32_t range_rgb[3] = {OWN, 0x303030, 0xE4E4E4}, range_256[3] = {OWN, 236, 254};
    static const int32_t hole_rgb[3] = {0xB45050, 0x4A1E1E, 0xF6D6D6}, hole_256[3] = {131, 237, 224};
    if (role <= TIDE_TUI_ROLE_TEXT || role >= TIDE_TUI_N_ROLES) return OWN;
    const bool is_256 = tier == TIDE_TUI_COLOUR_256, is_rich = is_256 || tier == TIDE_TUI_COLOUR_TRUE;
    if (role == TIDE_TUI_ROLE_RANGE) return is_256 ? range_256[ground] : is_rich ? range_rgb[ground] : OWN;
    if (role == TIDE_TUI_ROLE_HOLE && is_rich) return is_256 ? hole_256[ground] : hole_rgb[ground];
    if (role == TIDE_TUI_ROLE_HOLE && tier == TIDE_TUI_COLOUR_16) return 8;
    return colour_of(tier, ground, (int)role);
}

tide_tui_ground tide_tui_ground_of(const char *colorfgbg) {
    const char *last = colorfgbg != NULL ? strrchr(colorfgbg, ';') : NULL;
    if (last == NULL || last[1] < '0' || last[1] > '9') return TIDE_TUI_GROUND_UNKNOWN;
    char *end;
    const long index = strtol(last + 1, &end, 10);
    if (*end != '\0' || index > 15) return TIDE_TUI_GROUND_UNKNOWN;
    return index == 7 || index >= 9 ? TIDE_TUI_GROUND_LIGHT : TIDE_TUI_GROUND_DARK;
}
