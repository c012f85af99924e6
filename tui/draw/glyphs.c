// SPDX-License-Identifier: MIT
//
// The tiers of glyphs, and what those for screens without colours have otherwise. See glyphs.h.
#include "tui/draw/glyphs.h"

#define BLOCK_GLYPHS                                                                                                   \
    .rise = {' ', 0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587, 0x2588}, .spike = 0x2592, .bound = 0x2500,   \
    .plan = 0x2550, .capacity = 0x254D, .predicted = 0x2504, .other = 0x2501, .reserved = 0x254C, .unused = 0x00B7,    \
    .rule = 0x2500, .tick = 0x252C, .tick_left = 0x2524, .peak = 0x25B2, .cursor = 0x2502, .crossing = 0x253C,         \
    .edge = 0x2506, .mini_lo = '[', .mini_hi = ']', .begin = 0x259B, .end = 0x259F, .before = 0x2039, .after = 0x203A, \
    .density = {0x2591, 0x2592, 0x2593, 0x2588}, .upper = 0x2580, .lower = 0x2584, .full = 0x2588, .shared = 0x2592,   \
    .hole = 0x2591, .vacant = ' ', .outside = '/', .cut = 0x2026, .bad = 0xFFFD, .separator = 0x2502, .times = 0x00D7, \
    .rises = 0x25B4, .falls = 0x25BE, .bar = {TIDE_TUI_BAR_MAP(XX)}

#define XX(name, unicode, ascii) [TIDE_ITEM_FILL_##name] = (unicode),
static const tide_tui_glyphs block_tier = {BLOCK_GLYPHS};
static const tide_tui_glyphs block_mono_tier = {.letters = true, BLOCK_GLYPHS};
static const tide_tui_glyphs braille_tier = {.braille = true, BLOCK_GLYPHS};
static const tide_tui_glyphs braille_mono_tier = {.braille = true, .letters = true, BLOCK_GLYPHS};
#undef XX

static const tide_tui_glyphs ascii_tier = {
    .ascii = true,
    .letters = true,
    .rise = {' ', '.', '.', '.', ':', ':', ':', '#', '#'},
    .spike = '!',
    .bound = '-',
    .plan = '=',
    .capacity = '~',
    .predicted = 'p',
    .other = 'b',
    .reserved = 'r',
    .unused = ',',
    .rule = '-',
    .tick = '+',
    .tick_left = '+',
    .peak = '^',
    .cursor = '|',
    .crossing = '|',
    .edge = ':',
    .mini_lo = '[',
    .mini_hi = ']',
    .begin = '[',
    .end = ']',
    .before = '<',
    .after = '>',
    .density = {'.', ':', '+', '#'},
    .upper = '"',
    .lower = '_',
    .full = '#',
    .shared = '*',
    .hole = '.',
    .vacant = ' ',
    .outside = '/',
    .cut = '~',
    .bad = '?',
    .separator = '|',
    .times = 'x',
    .rises = '^',
    .falls = 'v',
#define XX(name, unicode, ascii) [TIDE_ITEM_FILL_##name] = (ascii),
    .bar = {TIDE_TUI_BAR_MAP(XX)},
#undef XX
};

const tide_tui_glyphs *tide_tui_glyphs_of(bool ascii) { return ascii ? &ascii_tier : &block_tier; }

const tide_tui_glyphs *tide_tui_glyphs_for(tide_tui_glyph_tier tier, bool mono) {
    if (tier == TIDE_TUI_GLYPHS_ASCII) return &ascii_tier;
    if (tier == TIDE_TUI_GLYPHS_BRAILLE) return mono ? &braille_mono_tier : &braille_tier;
    return mono ? &block_mono_tier : &block_tier;
}
