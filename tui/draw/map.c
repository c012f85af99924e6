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
#include "tui/draw/time_axis.h"

enum { N_LETTERS = TIDE_TUI_N_LETTERS, TINT_SLOTS = TIDE_TUI_TINT_SLOTS, NO_TINT = 255 };

typedef tide_tui_tints tints;

typedef struct picture {
    const tide_tui_view *v;
    tide_tui_rect r;              ///< on the screen
    const tide_items *items;      ///< NULL: their fills and names are not known
    const tide_space_cell *cells; ///< [h][w], row 0 lowest
    int w, h;                     ///< in places: h is twice that of the rectangle
    uint32_t selected;            ///< TIDE_NO_ITEM
    tints tints;
} picture;

static bool is_item(tide_space_cell c) { return c.item < TIDE_SPACE_HOLE; }
static tide_space_cell place_at(const picture *p, int x, int row) {
    return p->cells[(size_t)row * (size_t)p->w + (size_t)x];
}

// ---- tints: letters and shades that tell the items of a picture apart ----

static uint32_t scatter(uint32_t item) {
    item *= 2654435761u;
    return item ^ item >> 15;
}

static uint32_t slot_of(const tints *t, uint32_t item) {
    uint32_t i = scatter(item) % TINT_SLOTS;
    while (t->tint[i] != NO_TINT && t->item[i] != item) i = (i + 1) % TINT_SLOTS;
    return i;
}

static uint32_t tint_of(const tints *t, uint32_t item) {
    const uint8_t tint = t->tint[slot_of(t, item)];
    return tint != NO_TINT ? tint : scatter(item) % t->n_tints;
}

static uint32_t tint_slot(const tints *t, uint32_t item) {
    const uint32_t slot = slot_of(t, item);
    return t->tint[slot] != NO_TINT ? slot : TINT_SLOTS;
}

static bool is_beside(const tints *t, uint32_t item, uint32_t tint, const tide_space_cell *neighbours[2]) {
    for (int i = 0; i < 2; i++) {
        const tide_space_cell *c = neighbours[i];
        if (c != NULL && is_item(*c) && c->item != item && tint_of(t, c->item) == tint) return true;
    }
    return false;
}

/// The tint of its number, or the next one that is not used; when all are used, the next one that neither neighbour
/// has.
static void give_tint(tints *t, uint32_t item, const tide_space_cell *neighbours[2]) {
    if (t->n >= TINT_SLOTS * 3 / 4) return;
    const uint32_t slot = slot_of(t, item);
    if (t->tint[slot] != NO_TINT) return;
    const bool any_left = t->n_used < t->n_tints;
    uint32_t tint = scatter(item) % t->n_tints;
    for (uint32_t tries = 0; tries < t->n_tints; tries++, tint = (tint + 1) % t->n_tints) {
        if (any_left ? !t->is_used[tint] : !is_beside(t, item, tint, neighbours)) break;
    }
    t->n_used += !t->is_used[tint];
    t->is_used[tint] = true;
    t->item[slot] = item;
    t->tint[slot] = (uint8_t)tint;
    t->n++;
}

static void make_tints(tints *t, const tide_space_cell *cells, int w, int h, uint32_t n_tints) {
    memset(t->tint, NO_TINT, sizeof t->tint);
    memset(t->is_used, 0, sizeof t->is_used);
    t->n = t->n_used = 0;
    t->n_tints = n_tints;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            const tide_space_cell *c = &cells[(size_t)y * (size_t)w + (size_t)x];
            if (!is_item(*c)) continue;
            const tide_space_cell *neighbours[2] = {x > 0 ? c - 1 : NULL, y > 0 ? c - w : NULL};
            give_tint(t, c->item, neighbours);
        }
    }
}

static uint32_t letter_of(uint32_t tint) { return tint < 26 ? 'A' + tint : 'a' + (tint - 26) % 26; }

void tide_tui_letters_make(const tide_tui_view *v, tide_tui_tints *out) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->map;
    const bool has_letters = v->glyphs->letters && s->cells != NULL && s->layout->panes[TIDE_TUI_PANE_MAP].w > 0;
    const int w = s->map_is_moment ? s->cells_w : r.w;
    make_tints(out, s->cells, has_letters ? w : 0, has_letters ? 2 * r.h : 0, N_LETTERS);
}

uint32_t tide_tui_letter_of(const tide_tui_tints *t, uint32_t item) {
    const uint32_t slot = tint_slot(t, item);
    return slot < TINT_SLOTS ? letter_of(t->tint[slot]) : 0;
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
                const uint32_t slot = tint_slot(&p->tints, r.item);
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
    const int shade = (int)(tint_of(&p->tints, c.item) % TIDE_TUI_N_SHADES);
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
        glyph = letter_of(tint_of(&p->tints, c.item));
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
    make_tints(&p.tints, p.cells, p.w, p.h, v->glyphs->letters ? N_LETTERS : TIDE_TUI_N_SHADES);
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

// ---- regions ----

/// Part of the address axis in view.
static tide_tui_window places_in_view(const tide_tui_scene *s) {
    const tide_tui_state *st = s->state;
    if (st->space_hi > st->space_lo) return (tide_tui_window){st->space_lo, st->space_hi};
    return (tide_tui_window){0, s->space->bytes > 0 ? (int64_t)s->space->bytes : 1};
}

/// Line of the screen at place `at` of the axis: half a line each; -1 below the view, r.h above it.
static int line_of(tide_tui_rect r, tide_tui_window places, uint64_t at) {
    const int row = tide_tui_column_of(places, 2 * r.h, at < INT64_MAX ? (int64_t)at : INT64_MAX);
    return row < 0 ? -1 : row / 2;
}

static bool is_labelled(const tide_tui_view *v, int y) {
    const tide_tui_rect r = v->scene->layout->map_labels;
    return tide_tui_get(v->grid, r.x + r.w - 2, y).glyph != ' ';
}

static void put_label(const tide_tui_view *v, int y, const char *text, tide_tui_cut cut, tide_tui_role role) {
    const tide_tui_rect r = v->scene->layout->map_labels;
    if (is_labelled(v, y)) return;
    const int room = r.w - 2, w = tide_tui_text_width(v->glyphs, text);
    tide_tui_text(v, w < room ? r.x + r.w - 1 - w : r.x + 1, y, room, text, cut, role);
}

/// The lower bound of a region: a line through what is free of it, and how much it is.
static void draw_bound(const tide_tui_view *v, tide_tui_rect r, tide_tui_window places, const tide_region *region) {
    if (region->bound_bytes == 0) return;
    const int line = line_of(r, places, region->at + region->bound_bytes - 1);
    if (line < 0 || line >= r.h) return;
    const int y = r.y + r.h - 1 - line;
    for (int x = r.x; x < r.x + r.w; x++) {
        const uint32_t glyph = tide_tui_get(v->grid, x, y).glyph;
        if (glyph == ' ' || glyph == v->glyphs->vacant)
            tide_tui_put(v->grid, x, y, v->glyphs->bound, TIDE_TUI_ROLE_BOUND);
    }
    char text[64], size[TIDE_TUI_WORD];
    const int room = v->scene->layout->map_labels.w - 2;
    snprintf(text, sizeof text, "bound %s", tide_tui_bytes(region->bound_bytes, size, sizeof size));
    if (tide_tui_text_width(v->glyphs, text) > room)
        snprintf(text, sizeof text, "bound %s", tide_tui_format_short(region->bound_bytes, size, sizeof size));
    if (tide_tui_text_width(v->glyphs, text) > room) snprintf(text, sizeof text, "bound");
    put_label(v, y, text, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_BOUND);
}

static void draw_region(const tide_tui_view *v, tide_tui_rect r, tide_tui_window places, const tide_region *region) {
    const tide_tui_rect labels = v->scene->layout->map_labels;
    const uint64_t last = region->bytes > 0 ? region->at + region->bytes - 1 : region->at;
    if ((int64_t)region->at >= places.end || (int64_t)last < places.begin) return;
    int from = line_of(r, places, region->at), to = line_of(r, places, last);
    if (from < 0) from = 0;
    if (to >= r.h) to = r.h - 1;
    const int bottom = r.y + r.h - 1 - from, top = r.y + r.h - 1 - to;
    for (int y = top; y <= bottom; y++) {
        const uint32_t glyph = y == bottom ? v->glyphs->tick_left : v->glyphs->cursor;
        tide_tui_put(v->grid, labels.x + labels.w - 1, y, glyph, TIDE_TUI_ROLE_DIM);
    }
    // In the middle, so that the line of the bound near the top keeps its own label.
    char size[TIDE_TUI_WORD], both[160];
    const char *label = region->label != NULL ? region->label : "";
    const int y = bottom - top >= 3 ? (top + bottom) / 2 : top;
    if (top == bottom && is_labelled(v, y)) return; // one of thousands
    tide_tui_bytes(region->bytes, size, sizeof size);
    snprintf(both, sizeof both, "%s %s", label, size);
    if (tide_tui_text_width(v->glyphs, both) <= labels.w - 2 || bottom == top) {
        put_label(v, y, both, TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TEXT);
    } else {
        put_label(v, y, label, TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TEXT);
        put_label(v, y + 1, size, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_TEXT);
    }
    draw_bound(v, r, places, region);
}

static void draw_pointed_at(const tide_tui_view *v, tide_tui_rect r, tide_tui_window places) {
    const tide_tui_rect labels = v->scene->layout->map_labels;
    const int64_t at = v->scene->state->space_cursor;
    if (at < 0) return;
    const int line = line_of(r, places, (uint64_t)at);
    if (line >= 0 && line < r.h)
        tide_tui_put(v->grid, labels.x + labels.w - 1, r.y + r.h - 1 - line, '>', TIDE_TUI_ROLE_CURSOR);
}

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
    const tide_tui_window places = places_in_view(s);
    draw_cells(v, (tide_tui_rect){r.x, r.y, s->map_is_moment ? s->cells_w : r.w, r.h});
    for (size_t i = 0; i < s->space->n; i++) draw_region(v, r, places, &s->space->regions[i]);
    draw_pointed_at(v, r, places);
    if (!s->map_is_moment) tide_tui_draw_time_lines(v, r);
}
