// SPDX-License-Identifier: MIT
//
// Memory as a picture: time across, addresses upwards. See draw.h.
//
//     -- map: 2 regions, 12.00 MiB ------------------------------------------
//          Workspace | AAAA  ....DDDD      letters on screens without colours; else half blocks, two places a cell, in
//            3.75 MiB|-AAAABB....DDDD--    shades of the colour that the item's bar has
//     bound 2.90 MiB | CCCCBBBBBBDDDD      dots: a hole, with something above it
//        pool 3      |/////EEEE//////      no memory there at that time
//
// The name of an item stands inside its area where there is room, once, in the middle of its height.
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"
#include "tui/draw/map_parts.h"
#include "tui/draw/time_axis.h"

enum { N_LETTERS = TIDE_TUI_N_LETTERS, TINT_SLOTS = TIDE_TUI_TINT_SLOTS };

typedef struct picture {
    const tide_tui_view *v;
    tide_tui_rect r;              ///< on the screen
    const tide_items *items;      ///< NULL: their fills and names are not known
    const tide_space_cell *cells; ///< [h][w], row 0 lowest
    int w, h;                     ///< in places: h is twice that of the rectangle
    uint32_t selected;            ///< TIDE_NO_ITEM
    tide_tui_tints tints;
} picture;

static bool is_item(tide_space_cell c) { return tide_tui_is_item(c); }
static tide_space_cell place_at(const picture *p, int x, int row) {
    return p->cells[(size_t)row * (size_t)p->w + (size_t)x];
}

// ---- names ----

enum { SHORTEST = 6 }; ///< columns of a name that is worth reading

/// Cells side by side on one line of the screen that are one item's alone, both halves.
typedef struct run {
    uint32_t item;
    int x, w;
} run;

static bool is_whole(const picture *p, int x, int line, uint32_t *item) {
    const int lower = 2 * (p->r.h - 1 - line);
    const tide_space_cell a = place_at(p, x, lower), b = place_at(p, x, lower + 1);
    *item = a.item;
    return is_item(a) && a.item == b.item &&
           tide_tui_get(p->v->grid, p->r.x + x, p->r.y + line).glyph == p->v->glyphs->full;
}

/// The next run of a line from column *x on; false: there is none.
static bool next_run(const picture *p, int line, int *x, run *out) {
    for (; *x < p->w; (*x)++) {
        uint32_t item;
        if (!is_whole(p, *x, line, &item)) continue;
        *out = (run){.item = item, .x = *x};
        while (*x < p->w && is_whole(p, *x, line, &item) && item == out->item) {
            (*x)++;
            out->w++;
        }
        return true;
    }
    return false;
}

static const char *name_of(const picture *p, uint32_t item) {
    if (item == p->selected && p->v->scene->has_selection) {
        const char *name = p->v->scene->selection.site.name;
        return name != NULL ? name : "";
    }
    return p->items != NULL && item < p->items->n ? tide_items_site(p->items, item)->name : "";
}

/// Whether the name can be read in a run: all of it, or enough of it, with a cell free on both sides.
static bool fits(const picture *p, const run *r) {
    const char *name = name_of(p, r->item);
    const int need = tide_tui_text_width(p->v->glyphs, name);
    return need > 0 && (need + 2 <= r->w || SHORTEST + 2 <= r->w);
}

static void put_name(const picture *p, const run *r, int line) {
    const char *name = name_of(p, r->item);
    const int need = tide_tui_text_width(p->v->glyphs, name), room = r->w - 2, w = need < room ? need : room;
    const int x = p->r.x + r->x + (r->w - w) / 2, y = p->r.y + line;
    const tide_tui_role place = (tide_tui_role)tide_tui_get(p->v->grid, x, y).role;
    const bool selected = r->item == p->selected;
    tide_tui_text(p->v, x, y, w, name, TIDE_TUI_CUT_MIDDLE, selected ? TIDE_TUI_ROLE_TITLE : TIDE_TUI_ROLE_INK);
    if (selected) tide_tui_mark_row(p->v->grid, x, y, w, TIDE_TUI_MARK_SELECTED);
    for (int i = 0; i < w && !selected; i++) tide_tui_put_ground(p->v->grid, x + i, y, place);
}

static void draw_names(const picture *p) {
    // By slot of the tints: lines where the name has room, and how many of them were passed.
    uint16_t n_lines[TINT_SLOTS] = {0}, n_passed[TINT_SLOTS] = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (int line = 0; line < p->r.h; line++) {
            run r;
            for (int x = 0; next_run(p, line, &x, &r);) {
                const uint32_t slot = tide_tui_tint_slot(&p->tints, r.item);
                if (slot == TINT_SLOTS || !fits(p, &r)) continue;
                if (pass == 0) {
                    n_lines[slot]++;
                } else if (n_passed[slot]++ == n_lines[slot] / 2) {
                    put_name(p, &r, line);
                }
            }
        }
    }
}

// ---- cells ----

/// Two places, one above the other.
typedef struct pair {
    tide_space_cell upper, lower;
    bool is_crowd; ///< both hold several items, of which none is seen beside them
} pair;

static bool holds(const picture *p, int x, int row, uint32_t item) {
    return x >= 0 && x < p->w && row >= 0 && row < p->h &&
           p->cells[(size_t)row * (size_t)p->w + (size_t)x].item == item;
}

/// A shared place whose item continues in the next one shows that item: it shares only a column with the item before
/// it.
static bool is_crowd(const picture *p, int x, int row) {
    const tide_space_cell c = p->cells[(size_t)row * (size_t)p->w + (size_t)x];
    return is_item(c) && c.is_shared && !holds(p, x - 1, row, c.item) && !holds(p, x + 1, row, c.item) &&
           !holds(p, x, row - 1, c.item) && !holds(p, x, row + 1, c.item);
}

static pair pair_at(const picture *p, int x, int lower) {
    const tide_space_cell *c = &p->cells[(size_t)lower * (size_t)p->w + (size_t)x];
    return (pair){.upper = c[p->w], .lower = c[0], .is_crowd = is_crowd(p, x, lower) && is_crowd(p, x, lower + 1)};
}

static tide_tui_role role_of(const picture *p, tide_space_cell c) {
    if (c.item == TIDE_SPACE_HOLE) return TIDE_TUI_ROLE_HOLE;
    if (!is_item(c)) return TIDE_TUI_ROLE_DIM;
    if (c.item == p->selected) return TIDE_TUI_ROLE_TITLE;
    const bool known = p->items != NULL && c.item < p->items->n;
    const int fill = known ? (int)tide_items_shape(p->items, c.item)->fill : 0;
    const int shade = (int)(tide_tui_tint_of(&p->tints, c.item) % TIDE_TUI_N_SHADES);
    return (tide_tui_role)(TIDE_TUI_ROLE_PLACE + fill * TIDE_TUI_N_SHADES + shade);
}

/// One place a cell: the lower one, unless it is empty. A letter for an item.
static void draw_letter(const picture *p, int x, int y, pair places) {
    const tide_tui_glyphs *g = p->v->glyphs;
    const tide_space_cell upper = places.upper, lower = places.lower;
    const bool takes_upper = !is_item(lower) && (is_item(upper) || upper.item == TIDE_SPACE_HOLE);
    const tide_space_cell c = upper.item == p->selected || takes_upper ? upper : lower;
    tide_tui_role role = role_of(p, c);
    uint32_t glyph = c.item == TIDE_SPACE_HOLE ? g->hole : c.item == TIDE_SPACE_FREE ? g->vacant : g->outside;
    if (is_item(c)) {
        glyph = tide_tui_letter(tide_tui_tint_of(&p->tints, c.item));
        if (places.is_crowd) glyph = '*';
        if (c.item == p->selected) glyph = '@';
    }
    tide_tui_put(p->v->grid, x, y, glyph, role);
}

static bool is_painted(tide_space_cell c) { return is_item(c) || c.item == TIDE_SPACE_HOLE; }

/// Two places a cell: one is the glyph, the other its ground.
static void draw_halves(const picture *p, int x, int y, pair places) {
    const tide_tui_glyphs *g = p->v->glyphs;
    const tide_space_cell upper = places.upper, lower = places.lower;
    tide_tui_grid *grid = p->v->grid;
    if (!is_painted(upper) && !is_painted(lower)) {
        const bool outside = upper.item == TIDE_SPACE_OUTSIDE && lower.item == TIDE_SPACE_OUTSIDE;
        tide_tui_put(grid, x, y, outside ? g->outside : g->vacant, TIDE_TUI_ROLE_DIM);
        return;
    }
    const tide_tui_role up = role_of(p, upper), low = role_of(p, lower);
    if (places.is_crowd && up != TIDE_TUI_ROLE_TITLE && low != TIDE_TUI_ROLE_TITLE) {
        tide_tui_put(grid, x, y, g->shared, up);
        if (low != up) tide_tui_put_ground(grid, x, y, low);
    } else if (up == low) {
        tide_tui_put(grid, x, y, is_item(upper) ? g->full : g->hole, up);
    } else if (!is_item(upper) && !is_item(lower)) {
        tide_tui_put(grid, x, y, g->hole, TIDE_TUI_ROLE_HOLE);
    } else if (!is_item(upper) || (is_item(lower) && low == TIDE_TUI_ROLE_TITLE)) {
        // A hole is the ground of what touches it; the selection never is: the screen's own colour cannot be one.
        tide_tui_put(grid, x, y, g->lower, low);
        if (is_painted(upper)) tide_tui_put_ground(grid, x, y, up);
    } else {
        tide_tui_put(grid, x, y, g->upper, up);
        if (is_painted(lower)) tide_tui_put_ground(grid, x, y, low);
    }
}

static void draw_cells(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    picture p = {.v = v,
                 .r = r,
                 .items = s->state->a != NULL ? tide_subject_items(s->state->a) : NULL,
                 .cells = s->cells,
                 .w = r.w,
                 .h = 2 * r.h,
                 .selected = s->state->item};
    tide_tui_tints_make(&p.tints, p.items, p.cells, p.w, p.h, v->glyphs->letters ? N_LETTERS : TIDE_TUI_N_SHADES);
    for (int y = 0; y < r.h; y++) {
        for (int x = 0; x < r.w; x++) {
            const pair places = pair_at(&p, x, 2 * (r.h - 1 - y));
            if (v->glyphs->letters) {
                draw_letter(&p, r.x + x, r.y + y, places);
            } else {
                draw_halves(&p, r.x + x, r.y + y, places);
            }
        }
    }
    if (!v->glyphs->letters) draw_names(&p);
}

// ---- the pane ----

static void say_title(const tide_tui_scene *s, char *buf, size_t buf_bytes) {
    char size[TIDE_TUI_WORD], when[128], n[TIDE_TUI_WORD], before[192] = "";
    if (s->map_is_moment)
        snprintf(before, sizeof before, "only %s (too many blocks for all times), ",
                 tide_tui_when_named(s->a, s->map_at.t, when, sizeof when));
    snprintf(buf, buf_bytes, "%s%s region%s, %s%s", before, tide_tui_exact(s->space->n, n, sizeof n),
             s->space->n == 1 ? "" : "s", tide_tui_bytes(s->space->bytes, size, sizeof size),
             s->space->has_holes || s->map_is_moment ? "" : "; what lies between blocks is not known");
}

void tide_tui_draw_map(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->map;
    char title[256] = "", facts[200];
    if (s->layout->panes[TIDE_TUI_PANE_MAP].w <= 0) return;
    if (s->space != NULL) say_title(s, title, sizeof title);
    tide_tui_say_cursor(v, facts, sizeof facts);
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_MAP, title, facts);
    if (s->space == NULL || s->cells == NULL || s->space->n == 0) {
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_MAP, body, "Nothing here has a place in memory.");
        return;
    }
    draw_cells(v, (tide_tui_rect){r.x, r.y, s->map_is_moment ? s->cells_w : r.w, r.h});
    tide_tui_draw_regions(v);
    tide_tui_draw_map_legend(v);
    if (!s->map_is_moment) tide_tui_draw_time_lines(v, r);
}
