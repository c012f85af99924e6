// SPDX-License-Identifier: MIT
//
// Names of items inside of what they take in the map, once each, in the middle of their height. See draw_picture.h.
#include <string.h>

#include "tui/draw_picture.h"

enum { SHORTEST = 6 }; ///< columns of a name that is worth reading

/// Cells side by side on one line of the screen that are one item's alone, both halves.
typedef struct run {
    uint32_t item;
    int x, w;
} run;

static bool is_whole(const tide__picture *p, int x, int line, uint32_t *item) {
    const int lower = 2 * (p->r.h - 1 - line);
    const tide_space_cell a = tide__place(p, x, lower), b = tide__place(p, x, lower + 1);
    *item = a.item;
    return tide__is_item(a) && a.item == b.item &&
           tide_tui_get(p->v->grid, p->r.x + x, p->r.y + line).glyph == p->v->glyphs->full;
}

/// The next run of a line from column *x on; false: there is none.
static bool next_run(const tide__picture *p, int line, int *x, run *out) {
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

static const char *name_of(const tide__picture *p, uint32_t item) {
    if (item == p->selected && p->v->scene->has_selection) {
        const char *name = p->v->scene->selection.site.name;
        return name != NULL ? name : "";
    }
    return p->items != NULL && item < p->items->n ? tide_items_site(p->items, item)->name : "";
}

/// Whether the name can be read in a run: all of it, or enough of it, with a cell free on both sides.
static bool fits(const tide__picture *p, const run *r) {
    const char *name = name_of(p, r->item);
    const int need = tide_tui_text_width(p->v->glyphs, name);
    return need > 0 && (need + 2 <= r->w || SHORTEST + 2 <= r->w);
}

static void put_name(const tide__picture *p, const run *r, int line) {
    const char *name = name_of(p, r->item);
    const int need = tide_tui_text_width(p->v->glyphs, name), room = r->w - 2, w = need < room ? need : room;
    const int x = p->r.x + r->x + (r->w - w) / 2, y = p->r.y + line;
    const tide_tui_role place = (tide_tui_role)tide_tui_get(p->v->grid, x, y).role;
    const bool selected = r->item == p->selected;
    tide_tui_text(p->v, x, y, w, name, TIDE_TUI_CUT_MIDDLE, selected ? TIDE_TUI_ROLE_TITLE : TIDE_TUI_ROLE_INK);
    if (selected) tide_tui_mark_row(p->v->grid, x, y, w, TIDE_TUI_MARK_SELECTED);
    for (int i = 0; i < w && !selected; i++) tide_tui_put_ground(p->v->grid, x + i, y, place);
}

void tide__draw_names(const tide__picture *p) {
    // By slot of the tints: lines where the name has room, and how many of them were passed.
    uint16_t n_lines[TIDE__TINT_SLOTS] = {0}, n_passed[TIDE__TINT_SLOTS] = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (int line = 0; line < p->r.h; line++) {
            run r;
            for (int x = 0; next_run(p, line, &x, &r);) {
                const uint32_t slot = tide__tint_slot(&p->tints, r.item);
                if (slot == TIDE__TINT_SLOTS || !fits(p, &r)) continue;
                if (pass == 0) {
                    n_lines[slot]++;
                } else if (n_passed[slot]++ == n_lines[slot] / 2) {
                    put_name(p, &r, line);
                }
            }
        }
    }
}
