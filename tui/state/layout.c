// SPDX-License-Identifier: MIT
//
// Sizes to rectangles. See layout.h.
//
// From 80x24 on, below the part that all presets share (h: the time axis is the same in all that have one):
//
//     lifetimes      memory             peak                 allocators    comparison
//     | gantt   |    | map         |    | explain | whatif |  | pools     |  | compare |
//     | details |    | table | det.|    |         | table  |  | operators |  | gantt   |
//
// and as allocators: stacks over table.
//
// A pane that has the focus and is not of the preset takes the upper place, over the preset's first list.
#include "tui/state/layout.h"

#include "core/base/assert.h"

const char *tide_tui_pane_name(tide_tui_pane pane) {
    static const char *const names[] = {
#define XX(name, text, what) text,
        TIDE_TUI_PANE_MAP(XX)
#undef XX
    };
    return pane < TIDE_TUI_N_PANES ? names[pane] : "?";
}

const char *tide_tui_pane_what(tide_tui_pane pane) {
    static const char *const whats[] = {
#define XX(name, text, what) what,
        TIDE_TUI_PANE_MAP(XX)
#undef XX
    };
    return pane < TIDE_TUI_N_PANES ? whats[pane] : "?";
}

const char *tide_tui_preset_name(tide_tui_preset preset) {
    static const char *const names[] = {
#define XX(name, text) text,
        TIDE_TUI_PRESET_MAP(XX)
#undef XX
    };
    return preset < TIDE_TUI_N_PRESETS ? names[preset] : "?";
}

int tide_tui_preset_panes(tide_tui_preset preset, tide_tui_pane out[TIDE_TUI_N_PANES]) {
    enum { MAX = 4 };
    static const tide_tui_pane panes[TIDE_TUI_N_PRESETS][MAX] = {
        [TIDE_TUI_PRESET_LIFETIMES] = {TIDE_TUI_PANE_CURVE, TIDE_TUI_PANE_GANTT, TIDE_TUI_PANE_DETAILS,
                                       TIDE_TUI_N_PANES},
        [TIDE_TUI_PRESET_MEMORY] = {TIDE_TUI_PANE_CURVE, TIDE_TUI_PANE_MAP, TIDE_TUI_PANE_TABLE, TIDE_TUI_PANE_DETAILS},
        [TIDE_TUI_PRESET_PEAK] = {TIDE_TUI_PANE_CURVE, TIDE_TUI_PANE_EXPLAIN, TIDE_TUI_PANE_WHATIF,
                                  TIDE_TUI_PANE_TABLE},
        [TIDE_TUI_PRESET_ALLOCATORS] = {TIDE_TUI_PANE_CURVE, TIDE_TUI_PANE_POOLS, TIDE_TUI_PANE_OPERATORS,
                                        TIDE_TUI_N_PANES},
        [TIDE_TUI_PRESET_COMPARISON] = {TIDE_TUI_PANE_CURVE, TIDE_TUI_PANE_COMPARE, TIDE_TUI_PANE_GANTT,
                                        TIDE_TUI_N_PANES},
        [TIDE_TUI_PRESET_STACKS] = {TIDE_TUI_PANE_CURVE, TIDE_TUI_PANE_STACKS, TIDE_TUI_PANE_TABLE, TIDE_TUI_N_PANES},
    };
    int n = 0;
    if (preset >= TIDE_TUI_N_PRESETS) return 0;
    while (n < MAX && panes[preset][n] != TIDE_TUI_N_PANES) {
        out[n] = panes[preset][n];
        n++;
    }
    return n;
}

static int clamp(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

static bool is_of_preset(tide_tui_preset preset, tide_tui_pane pane) {
    tide_tui_pane panes[TIDE_TUI_N_PANES];
    const int n = tide_tui_preset_panes(preset, panes);
    for (int i = 0; i < n; i++) {
        if (panes[i] == pane) return true;
    }
    return false;
}

static tide_tui_pane first_list(tide_tui_preset preset) {
    tide_tui_pane panes[TIDE_TUI_N_PANES];
    (void)tide_tui_preset_panes(preset, panes);
    return panes[1]; // behind the curve
}

/// `upper` over `lower` in `r`, which has at least 4 lines; the lower one has `lower_h`, and both at least two.
static void stack(tide_tui_rect r, int lower_h, tide_tui_rect *upper, tide_tui_rect *lower) {
    lower_h = clamp(lower_h, 2, r.h - 2);
    *upper = (tide_tui_rect){r.x, r.y, r.w, r.h - lower_h};
    *lower = (tide_tui_rect){r.x, r.y + r.h - lower_h, r.w, lower_h};
}

/// Side by side with a blank column between.
static void beside(tide_tui_rect r, int left_w, tide_tui_rect *left, tide_tui_rect *right) {
    *left = (tide_tui_rect){r.x, r.y, left_w, r.h};
    *right = (tide_tui_rect){r.x + left_w + 1, r.y, r.w - left_w - 1, r.h};
}

/// One list under the curve, and the details below it where there are lines for both.
static void put_few(tide_tui_layout *l, tide_tui_rect r, tide_tui_preset preset, tide_tui_pane focus) {
    const tide_tui_pane list = focus == TIDE_TUI_PANE_CURVE ? first_list(preset) : focus;
    const bool has_details = is_of_preset(preset, TIDE_TUI_PANE_DETAILS) && list != TIDE_TUI_PANE_DETAILS && r.h >= 9;
    if (!has_details) {
        l->panes[list] = r;
        return;
    }
    stack(r, clamp(r.h / 4, 3, 7), &l->panes[list], &l->panes[TIDE_TUI_PANE_DETAILS]);
}

static void put_preset(tide_tui_layout *l, tide_tui_rect r, tide_tui_preset preset, tide_tui_pane focus) {
    tide_tui_rect *p = l->panes, upper, lower;
    switch (preset) {
    case TIDE_TUI_PRESET_MEMORY:
        stack(r, r.h * 45 / 100, &p[TIDE_TUI_PANE_MAP], &lower);
        beside(lower, lower.w * 55 / 100, &p[TIDE_TUI_PANE_TABLE], &p[TIDE_TUI_PANE_DETAILS]);
        break;
    case TIDE_TUI_PRESET_PEAK:
        beside(r, r.w / 2, &p[TIDE_TUI_PANE_EXPLAIN], &upper);
        stack(upper, (upper.h + 1) / 2, &p[TIDE_TUI_PANE_WHATIF], &p[TIDE_TUI_PANE_TABLE]);
        break;
    case TIDE_TUI_PRESET_ALLOCATORS:
        if (r.h < 16 && focus != TIDE_TUI_PANE_OPERATORS) // pools, bands and leaks rather than one operator
            p[TIDE_TUI_PANE_POOLS] = r;
        else
            stack(r, r.h * (r.h < 16 ? 50 : 25) / 100, &p[TIDE_TUI_PANE_POOLS], &p[TIDE_TUI_PANE_OPERATORS]);
        break;
    case TIDE_TUI_PRESET_COMPARISON:
        if (r.h < 16 && focus != TIDE_TUI_PANE_GANTT) // who is to blame for the change rather than some lifetimes
            p[TIDE_TUI_PANE_COMPARE] = r;
        else
            stack(r, r.h * (r.h < 16 ? 50 : 45) / 100, &p[TIDE_TUI_PANE_COMPARE], &p[TIDE_TUI_PANE_GANTT]);
        break;
    case TIDE_TUI_PRESET_STACKS:
        if (r.h < 16 && focus != TIDE_TUI_PANE_TABLE) // calls rather than some blocks
            p[TIDE_TUI_PANE_STACKS] = r;
        else
            stack(r, r.h * (r.h < 16 ? 50 : 25) / 100, &p[TIDE_TUI_PANE_STACKS], &p[TIDE_TUI_PANE_TABLE]);
        break;
    default:
        stack(r, clamp(r.h / 3, 4, 9), &p[TIDE_TUI_PANE_GANTT], &p[TIDE_TUI_PANE_DETAILS]);
        break;
    }
}

/// What lies inside of gantt and map, below their headings, in the columns of the curve.
static void put_columns(tide_tui_layout *l) {
    const tide_tui_rect curve = l->panes[TIDE_TUI_PANE_CURVE];
    const tide_tui_rect gantt = l->panes[TIDE_TUI_PANE_GANTT], map = l->panes[TIDE_TUI_PANE_MAP];
    if (gantt.w > 0) {
        const int y = gantt.y + 1, h = gantt.h - 1;
        l->names = (tide_tui_rect){0, y, curve.x, h};
        l->bars = (tide_tui_rect){curve.x, y, curve.w, h};
        l->sizes = (tide_tui_rect){curve.x + curve.w, y, gantt.w - curve.x - curve.w, h};
    }
    if (map.w > 0) {
        l->map_labels = (tide_tui_rect){0, map.y + 1, curve.x, map.h - 1};
        l->map = (tide_tui_rect){curve.x, map.y + 1, curve.w, map.h - 1};
    }
}

/// Every rectangle lies inside the screen.
static void assert_is_inside(const tide_tui_layout *l) {
    const tide_tui_rect others[] = {l->title,  l->summary, l->labels, l->ruler,      l->minimap,
                                    l->names,  l->bars,    l->sizes,  l->map_labels, l->map,
                                    l->bottom, l->overlay, l->legend, l->runs,       l->map_legend};
    const int n_others = sizeof others / sizeof others[0];
    for (int i = 0; i < n_others + TIDE_TUI_N_PANES; i++) {
        const tide_tui_rect r = i < n_others ? others[i] : l->panes[i - n_others];
        TIDE_ASSERT(r.x >= 0 && r.w >= 0 && r.x + r.w <= l->width);
        TIDE_ASSERT(r.y >= 0 && r.h >= 0 && r.y + r.h <= l->height);
    }
}

void tide_tui_layout_make(int width, int height, tide_tui_preset preset, tide_tui_pane focus, tide_tui_layout *out) {
    *out = (tide_tui_layout){.width = width, .height = height};
    if (width < TIDE_TUI_MIN_WIDTH || height < TIDE_TUI_MIN_HEIGHT) {
        out->too_small = true;
        return;
    }
    if (preset >= TIDE_TUI_N_PRESETS) preset = TIDE_TUI_PRESET_LIFETIMES;
    if (focus >= TIDE_TUI_N_PANES) focus = TIDE_TUI_PANE_CURVE;
    const int w = clamp(width, 0, TIDE_TUI_MAX_COLUMNS);
    const bool few = width < 80 || height < 24, roomy = height >= 18;
    const int names_w = w < 60 ? 11 : clamp(w / 4, 17, 40), sizes_w = w < 60 ? 7 : 12;
    const int bars_w = w - names_w - sizes_w, more = height >= 30 ? 1 : 0; // a line for what runs
    const int curve_h = roomy ? clamp(height / 4 - more, 4, 14) : 2;

    int y = 0;
    out->title = (tide_tui_rect){0, y++, w, 1};
    if (roomy) out->summary = (tide_tui_rect){0, y++, w, 1};
    if (height >= 24) out->legend = (tide_tui_rect){0, y++, w, 1};
    out->labels = (tide_tui_rect){0, y, names_w, curve_h};
    out->panes[TIDE_TUI_PANE_CURVE] = (tide_tui_rect){names_w, y, bars_w, curve_h};
    y += curve_h;
    if (roomy) out->minimap = (tide_tui_rect){names_w, y++, bars_w, 1};
    out->ruler = (tide_tui_rect){names_w, y++, bars_w, 1};
    if (height >= 30) out->runs = (tide_tui_rect){names_w, y++, bars_w, 1};
    out->bottom = (tide_tui_rect){0, height - 1, w, 1};
    out->overlay = (tide_tui_rect){0, 1, w, height - 2};

    const tide_tui_rect rest = {0, y, w, height - 1 - y};
    if (few) {
        put_few(out, rest, preset, focus);
    } else if (is_of_preset(preset, focus)) {
        put_preset(out, rest, preset, focus);
    } else {
        stack(rest, rest.h * 40 / 100, &out->panes[focus], &out->panes[first_list(preset)]);
    }
    put_columns(out);
    assert_is_inside(out);
}

void tide_tui_layout_add_map_legend(tide_tui_layout *l, size_t n) {
    enum { NAME = 18 }; // columns that a letter and a name take
    const tide_tui_rect pane = l->panes[TIDE_TUI_PANE_MAP];
    if (pane.w <= 0 || n == 0) return;
    const int each_line = pane.w / NAME > 0 ? pane.w / NAME : 1, most = l->map.h / 3;
    const size_t need = (n + (size_t)each_line - 1) / (size_t)each_line;
    const int h = need < (size_t)most ? (int)need : most;
    l->map.h -= h;
    l->map_labels.h -= h;
    l->map_legend = (tide_tui_rect){pane.x, l->map.y + l->map.h, pane.w, h};
    assert_is_inside(l);
}

bool tide_tui_rect_has(tide_tui_rect r, int x, int y) { return x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h; }

tide_tui_pane tide_tui_layout_pane_at(const tide_tui_layout *l, int x, int y) {
    for (int i = 0; i < TIDE_TUI_N_PANES; i++) {
        if (tide_tui_rect_has(l->panes[i], x, y)) return (tide_tui_pane)i;
    }
    const bool is_curve = tide_tui_rect_has(l->legend, x, y) || tide_tui_rect_has(l->runs, x, y) ||
                          tide_tui_rect_has(l->labels, x, y) || tide_tui_rect_has(l->ruler, x, y) ||
                          tide_tui_rect_has(l->minimap, x, y);
    return is_curve ? TIDE_TUI_PANE_CURVE : TIDE_TUI_N_PANES;
}
