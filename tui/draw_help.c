// SPDX-License-Identifier: MIT
//
// The help overlay: the key table and the legends, scrolled when they are taller than the screen. See draw.h.
#include "tui/help.h"

#include <stdio.h>
#include <string.h>

#include "tui/draw.h"

/// Legend besides the bars: glyph and meaning, in the order of the screen.
typedef enum legend {
    LEGEND_CURVE,
    LEGEND_SPIKE,
    LEGEND_PLAN,
    LEGEND_BOUND,
    LEGEND_PEAK,
    LEGEND_CURSOR,
    LEGEND_OUTSIDE,
    N_LEGENDS
} legend;

static uint32_t legend_glyph(const tide_tui_glyphs *g, legend l, tide_tui_role *role, const char **text) {
    switch (l) {
    case LEGEND_CURVE:
        *role = TIDE_TUI_ROLE_CURVE;
        *text = "bytes alive during the whole column";
        return g->rise[8];
    case LEGEND_SPIKE:
        *role = TIDE_TUI_ROLE_SPIKE;
        *text = "reached for a part of the column";
        return g->spike;
    case LEGEND_PLAN:
        *role = TIDE_TUI_ROLE_PLAN;
        *text = "plan, on top of weights, inputs, outputs";
        return g->plan;
    case LEGEND_BOUND:
        *role = TIDE_TUI_ROLE_BOUND;
        *text = "lower bound, likewise: no plan is smaller";
        return g->bound;
    case LEGEND_PEAK:
        *role = TIDE_TUI_ROLE_PEAK;
        *text = "the peak";
        return g->peak;
    case LEGEND_CURSOR:
        *role = TIDE_TUI_ROLE_CURSOR;
        *text = "the time cursor";
        return g->cursor;
    default:
        *role = TIDE_TUI_ROLE_DIM;
        *text = "lives later than what is shown";
        return g->after;
    }
}

int tide_tui_help_lines(void) {
    const tide_tui_binding *b;
    return 1 + (int)tide_tui_bindings(&b) + 2 + TIDE_TIMELINE_N_FILLS + 2 + N_LEGENDS;
}

static void draw_line(const tide_tui_view *v, int line, int y, int w) {
    const tide_tui_rect r = v->layout->help;
    const int x = r.x + 2;
    const tide_tui_binding *b;
    const int n_keys = (int)tide_tui_bindings(&b);
    if (line == 0) {
        tide_tui_text(v, r.x + 1, y, w, "Keys", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TITLE);
        return;
    }
    line -= 1;
    if (line < n_keys) {
        tide_tui_text(v, x, y, 10, b[line].label, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY);
        tide_tui_text(v, x + 11, y, w - 11, b[line].what, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
        return;
    }
    line -= n_keys + 1; // one blank
    if (line == 0) tide_tui_text(v, r.x + 1, y, w, "Bars", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TITLE);
    if (line <= 0) return;
    line -= 1;
    if (line < TIDE_TIMELINE_N_FILLS) {
        tide_tui_fill_row(v->grid, x, y, 3, v->glyphs->bar[line], (tide_tui_role)(TIDE_TUI_ROLE_BAR + line));
        tide_tui_text(v, x + 11, y, w - 11, tide_timeline_fill_text((tide_timeline_fill)line), TIDE_TUI_CUT_END,
                      TIDE_TUI_ROLE_TEXT);
        return;
    }
    line -= TIDE_TIMELINE_N_FILLS + 1;
    if (line == 0) tide_tui_text(v, r.x + 1, y, w, "Curve and axis", TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TITLE);
    if (line <= 0) return;
    line -= 1;
    tide_tui_role role;
    const char *text;
    const uint32_t glyph = legend_glyph(v->glyphs, (legend)line, &role, &text);
    tide_tui_put(v->grid, x, y, glyph, role);
    tide_tui_text(v, x + 11, y, w - 11, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
}

void tide_tui_draw_help(const tide_tui_view *v) {
    const tide_tui_rect r = v->layout->help;
    const int n = tide_tui_help_lines(), top = v->model->help_top;
    char place[48] = "";
    if (n > r.h) snprintf(place, sizeof place, "%d-%d of %d", top + 1, top + r.h < n ? top + r.h : n, n);
    const int place_w = (int)strlen(place);
    for (int i = 0; i < r.h && top + i < n; i++) draw_line(v, top + i, r.y + i, r.w - 4 - (i == 0 ? place_w : 0));
    tide_tui_text(v, r.x + r.w - place_w - 1, r.y, place_w, place, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
}
