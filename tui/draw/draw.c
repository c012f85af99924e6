// SPDX-License-Identifier: MIT
//
// A frame: every pane that the layout shows, and the message of a screen that is too small for any. See draw.h.
#include "tui/draw/draw.h"

#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"

void tide_tui_draw_too_small(const tide_tui_view *v) {
    const int w = v->grid->width, h = v->grid->height;
    char text[64];
    snprintf(text, sizeof text, "needs %dx%d, has %dx%d (q quits)", TIDE_TUI_MIN_WIDTH, TIDE_TUI_MIN_HEIGHT, w, h);
    // Broken over as many lines as it takes: a terminal of a few cells still says something.
    const char *p = text;
    for (int y = 0; y < h && *p != '\0'; y++) {
        char line[64];
        int n = (int)strlen(p) < w ? (int)strlen(p) : w;
        if (p[n] != '\0' && p[n] != ' ') { // inside of a word
            for (int i = n; i > 0; i--) {
                if (p[i] != ' ') continue;
                n = i;
                break;
            }
        }
        snprintf(line, sizeof line, "%.*s", n, p);
        tide_tui_text(v, 0, y, w, line, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TITLE);
        p += n + (p[n] == ' ');
    }
}

static void draw_panes(const tide_tui_view *v) {
    static void (*const draws[TIDE_TUI_N_PANES])(const tide_tui_view *) = {
        [TIDE_TUI_PANE_GANTT] = tide_tui_draw_gantt,     [TIDE_TUI_PANE_MAP] = tide_tui_draw_map,
        [TIDE_TUI_PANE_TABLE] = tide_tui_draw_table,     [TIDE_TUI_PANE_OPERATORS] = tide_tui_draw_operators,
        [TIDE_TUI_PANE_POOLS] = tide_tui_draw_pools,     [TIDE_TUI_PANE_EXPLAIN] = tide_tui_draw_explain,
        [TIDE_TUI_PANE_COMPARE] = tide_tui_draw_compare, [TIDE_TUI_PANE_WHATIF] = tide_tui_draw_whatif,
        [TIDE_TUI_PANE_STACKS] = tide_tui_draw_stacks,   [TIDE_TUI_PANE_DETAILS] = tide_tui_draw_details,
    };
    tide_tui_draw_curve(v);
    tide_tui_draw_legend(v);
    tide_tui_draw_ruler(v);
    tide_tui_draw_runs(v);
    for (int pane = 0; pane < TIDE_TUI_N_PANES; pane++) {
        const tide_tui_rect r = v->scene->layout->panes[pane];
        if (draws[pane] != NULL && r.w > 0 && r.h > 0) draws[pane](v);
    }
}

void tide_tui_draw(const tide_tui_view *v) {
    TIDE_ASSERT(v->grid->width == v->scene->layout->width && v->grid->height == v->scene->layout->height);
    tide_tui_grid_clear(v->grid);
    const tide_tui_locale locale = tide_tui_locale_enter();
    if (v->scene->layout->too_small) {
        tide_tui_draw_too_small(v);
    } else {
        tide_tui_draw_title(v);
        if (v->scene->state->overlay == TIDE_TUI_OVERLAY_NONE) {
            draw_panes(v);
        } else {
            tide_tui_draw_overlay(v);
        }
        tide_tui_draw_bottom(v);
    }
    tide_tui_locale_leave(locale);
}
