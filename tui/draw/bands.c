// SPDX-License-Identifier: MIT
//
// What the curve is made of: its cells get the glyph and colour of the band that has most of each; and the legend, with
// what each band has in the column of the cursor. See draw.h.
//
//     by kind     - weights 4.71M   + Default 592K   = Workspace 3.13M   , unused in the buffer 1.2M
//
// Kinds look like their bars. Operators and tensors are letters, on a ground of their own where there are colours.
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"
#include "tui/draw/time_axis.h"

enum { PARTS = 8 };

typedef struct look {
    uint32_t glyph;
    tide_tui_role role; ///< of the glyph where there is no ground, and of the ground else
    bool on_ground;     ///< a letter on its colour
} look;

/// Colours of groups that are no kinds: neighbours differ.
static tide_tui_role colour_of_group(size_t i) {
    static const uint8_t fills[] = {TIDE_ITEM_FILL_INTERMEDIATE, TIDE_ITEM_FILL_SCRATCH, TIDE_ITEM_FILL_INOUT,
                                    TIDE_ITEM_FILL_KV_CACHE, TIDE_ITEM_FILL_HOST};
    const size_t n = sizeof fills;
    return (tide_tui_role)(TIDE_TUI_ROLE_PLACE + fills[i % n] * TIDE_TUI_N_SHADES + 2 * (int)(i / n % 2));
}

static look look_of(const tide_tui_view *v, size_t i) {
    const tide_bands *b = v->scene->bands;
    const tide_band *band = &b->items[i];
    const bool is_mono = v->glyphs->letters;
    size_t first = 0;
    if (band->sort == TIDE_BAND_UNUSED) return (look){v->glyphs->unused, TIDE_TUI_ROLE_DIM, false};
    if (band->sort == TIDE_BAND_DROPPED) return (look){'?', TIDE_TUI_ROLE_DIM, false};
    if (band->kind >= 0) {
        const tide_item_fill fill = tide_item_fill_of((tide_memory_kind)band->kind, TIDE_ROLE_INTERMEDIATE);
        return (look){v->glyphs->bar[fill], (tide_tui_role)(TIDE_TUI_ROLE_BAR + fill), false};
    }
    if (band->sort == TIDE_BAND_REST) return (look){'+', TIDE_TUI_ROLE_DIM, false};
    while (first < i && b->items[first].sort != TIDE_BAND_GROUP) first++;
    return (look){(uint32_t)('a' + (i - first) % 26), colour_of_group(i - first), !is_mono};
}

// ---- cells ----

/// Eighths of a cell at which the bands of a column end, from below: [n_items]. The last is the height of the curve.
static void ends_of(const tide_tui_view *v, size_t column, int h, int *ends) {
    const tide_tui_scene *s = v->scene;
    const tide_bands *b = s->bands;
    const int top = tide_tui_height_of(b->bytes[column], s->top_bytes, h, PARTS);
    uint64_t sum = 0;
    for (size_t i = 0; i < b->n_items; i++) {
        sum += b->items[i].bytes[column];
        const int end = tide_tui_height_of(sum, s->top_bytes, h, PARTS);
        ends[i] = end < top ? end : top;
    }
}

/// The band with most of the eighths [lo, hi); the lower one of two.
static size_t most_of(const int *ends, size_t n, int lo, int hi) {
    size_t best = 0;
    int most = 0, from = 0;
    for (size_t i = 0; i < n; i++) {
        const int a = from > lo ? from : lo, z = ends[i] < hi ? ends[i] : hi;
        if (z - a > most) {
            most = z - a;
            best = i;
        }
        if (ends[i] > from) from = ends[i];
    }
    return best;
}

static void put_band(const tide_tui_view *v, int x, int y, look l, bool is_full) {
    if (!is_full) { // the contour stays
        tide_tui_put(v->grid, x, y, tide_tui_get(v->grid, x, y).glyph, l.role);
        return;
    }
    tide_tui_put(v->grid, x, y, l.glyph, l.on_ground ? TIDE_TUI_ROLE_INK : l.role);
    if (l.on_ground) tide_tui_put_ground(v->grid, x, y, l.role);
}

/// Two bands in one cell: the lower one as far as it reaches, on the ground of the other. Only with colours.
static bool put_both(const tide_tui_view *v, int x, int y, const int *ends, size_t n, int lo) {
    size_t i = 0;
    while (i < n && ends[i] <= lo) i++;
    const int end = i < n ? ends[i] - lo : PARTS;
    if (v->glyphs->letters || end < 2 || end > PARTS - 2) return false;
    const look lower = look_of(v, i), upper = look_of(v, most_of(ends, n, lo + end, lo + PARTS));
    if (upper.role == TIDE_TUI_ROLE_DIM || lower.role == TIDE_TUI_ROLE_DIM) return false;
    tide_tui_put(v->grid, x, y, v->glyphs->rise[end], lower.role);
    tide_tui_put_ground(v->grid, x, y, upper.role);
    return true;
}

static void draw_column(const tide_tui_view *v, tide_tui_rect r, size_t column, bool at_cursor, bool at_peak) {
    const tide_bands *b = v->scene->bands;
    int ends[64];
    const size_t n = b->n_items < 64 ? b->n_items : 64;
    ends_of(v, column, r.h, ends);
    const int top = n > 0 ? ends[n - 1] : 0, x = r.x + (int)column;
    for (int row = 0; row < r.h && PARTS * row < top; row++) {
        const int lo = PARTS * row, hi = lo + PARTS < top ? lo + PARTS : top, y = r.y + r.h - 1 - row;
        const bool is_full = hi == lo + PARTS, is_top = hi == top;
        look l = look_of(v, most_of(ends, n, lo, hi));
        if (at_peak && is_top) l = (look){l.glyph, TIDE_TUI_ROLE_PEAK, false};
        if (at_cursor && is_full) { // the cursor's line is drawn over full cells
            tide_tui_put(v->grid, x, y, v->glyphs->full, l.role);
        } else if (at_peak || at_cursor || !is_full || !put_both(v, x, y, ends, n, lo)) {
            put_band(v, x, y, l, is_full);
        }
    }
}

void tide_tui_draw_bands(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->panes[TIDE_TUI_PANE_CURVE];
    if (s->bands == NULL) return;
    const int peak = s->state->curve_kind < 0 ? tide_tui_column_of(s->state->window, r.w, s->a->peak.t) : -1;
    const int cursor = tide_tui_column_of(s->state->window, r.w, s->state->cursor);
    for (int i = 0; i < r.w && (size_t)i < s->bands->n; i++)
        if (s->bands->bytes[i] > 0) draw_column(v, r, (size_t)i, i == cursor, i == peak);
}

// ---- legend ----

/// "weights 4.71M": without the number in the short form.
static void words_of(const tide_tui_view *v, size_t i, bool is_brief, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = v->scene;
    const tide_band *band = &s->bands->items[i];
    const int w = s->layout->panes[TIDE_TUI_PANE_CURVE].w;
    const int x = tide_tui_column_of(s->state->window, w, s->state->cursor);
    char size[TIDE_TUI_WORD];
    if (is_brief || x < 0 || (size_t)x >= s->bands->n) {
        snprintf(buf, buf_bytes, "%s", band->name);
    } else {
        snprintf(buf, buf_bytes, "%s %s", band->name, tide_tui_format_short(band->bytes[x], size, sizeof size));
    }
}

enum { GAP = 2, WORDS = 160 };

static int width_of(const tide_tui_view *v, bool is_brief) {
    char words[WORDS];
    int sum = 0;
    for (size_t i = 0; i < v->scene->bands->n_items; i++) {
        words_of(v, i, is_brief, words, sizeof words);
        sum += 2 + tide_tui_text_width(v->glyphs, words) + GAP;
    }
    return sum;
}

void tide_tui_draw_legend(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->legend;
    char words[WORDS];
    if (r.w <= 0 || r.h <= 0 || s->state->bands_by < 0) return;
    snprintf(words, sizeof words, "by %s", tide_band_by_name((tide_band_by)s->state->bands_by));
    int x = r.x + 1 + tide_tui_text(v, r.x + 1, r.y, r.w - 1, words, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM) + GAP;
    if (s->bands == NULL) return;
    const int end = r.x + r.w;
    const bool is_brief = x + width_of(v, false) > end;
    // Where even the names have no room each is cut, and the highest bands have none.
    enum { SHARE = 12 };
    const bool is_cut = is_brief && x + width_of(v, true) > end;
    for (size_t i = 0; i < s->bands->n_items && x + 4 < end; i++) {
        const look l = look_of(v, i);
        words_of(v, i, is_brief, words, sizeof words);
        put_band(v, x, r.y, l, true);
        const int room = is_cut && SHARE < end - x - 2 ? SHARE : end - x - 2;
        x +=
            2 + tide_tui_text(v, x + 2, r.y, room > 1 ? room : 1, words, TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TEXT) + GAP;
    }
}
