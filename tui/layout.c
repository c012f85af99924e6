// SPDX-License-Identifier: MIT
//
// Sizes to rectangles. See layout.h.
#include "tui/layout.h"

static int clamp(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

void tide_tui_layout_make(int width, int height, tide_tui_layout *out) {
    *out = (tide_tui_layout){.width = width, .height = height};
    if (width < TIDE_TUI_MIN_WIDTH || height < TIDE_TUI_MIN_HEIGHT) {
        out->too_small = true;
        return;
    }
    const int w = clamp(width, 0, TIDE_TUI_MAX_COLUMNS);
    const bool roomy = height >= 18;
    const int curve_h = roomy ? clamp(height / 4, 4, 14) : 2;
    const int details_h = roomy ? clamp(height / 6, 4, 7) : 1;

    const int names_w = w < 60 ? 11 : clamp(w / 4, 17, 40);
    const int sizes_w = w < 60 ? 6 : 12;
    const int bars_x = names_w, bars_w = w - names_w - sizes_w;

    int y = 0;
    out->title = (tide_tui_rect){0, y++, w, 1};
    if (roomy) out->summary = (tide_tui_rect){0, y++, w, 1};
    out->curve_labels = (tide_tui_rect){0, y, names_w, curve_h};
    out->curve = (tide_tui_rect){bars_x, y, bars_w, curve_h};
    y += curve_h;
    out->ruler = (tide_tui_rect){bars_x, y++, bars_w, 1};
    if (roomy) {
        out->ticks = (tide_tui_rect){bars_x, y++, bars_w, 1};
        out->header = (tide_tui_rect){0, y++, w, 1};
    }
    const int rows = height - y - details_h - 1;
    out->names = (tide_tui_rect){0, y, names_w, rows};
    out->bars = (tide_tui_rect){bars_x, y, bars_w, rows};
    out->sizes = (tide_tui_rect){bars_x + bars_w, y, sizes_w, rows};
    y += rows;
    out->details = (tide_tui_rect){0, y, w, details_h};
    out->footer = (tide_tui_rect){0, height - 1, w, 1};
    out->help = (tide_tui_rect){0, 1, w, height - 2};
}
