// SPDX-License-Identifier: MIT
//
// The two glyph tiers and the fill of a bar. See glyphs.h.
#include "tui/glyphs.h"

static const tide_tui_glyphs unicode_tier = {
    .ascii = false,
    .rise = {' ', 0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587, 0x2588},
    .spike = 0x2592,
    .bound = 0x2500,
    .plan = 0x2550,
    .rule = 0x2500,
    .tick = 0x252C,
    .peak = 0x25B2,
    .cursor = 0x2502,
    .crossing = 0x253C,
    .before = 0x2039,
    .after = 0x203A,
    .cut = 0x2026,
    .bad = 0xFFFD,
#define XX(name, unicode, ascii) [TIDE_TIMELINE_FILL_##name] = (unicode),
    .bar = {TIDE_TUI_BAR_MAP(XX)},
#undef XX
};

static const tide_tui_glyphs ascii_tier = {
    .ascii = true,
    .rise = {' ', '.', '.', '.', ':', ':', ':', '#', '#'},
    .spike = '!',
    .bound = '-',
    .plan = '=',
    .rule = '-',
    .tick = '+',
    .peak = '^',
    .cursor = '|',
    .crossing = '|',
    .before = '<',
    .after = '>',
    .cut = '~',
    .bad = '?',
#define XX(name, unicode, ascii) [TIDE_TIMELINE_FILL_##name] = (ascii),
    .bar = {TIDE_TUI_BAR_MAP(XX)},
#undef XX
};

const tide_tui_glyphs *tide_tui_glyphs_of(bool ascii) { return ascii ? &ascii_tier : &unicode_tier; }
