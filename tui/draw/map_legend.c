// SPDX-License-Identifier: MIT
//
// Below a map of letters: which letter is whose, in as many columns as names leave room for. See map_parts.h.
//
//     @ up3.scratch   A conv1.scratch  B relu2.out      D relu12.out     U concat3.out     by letter; where there is no
//     V pool1.out     * several        +12 more                                            room for all: the largest
#include <stdio.h>
#include <stdlib.h>

#include "tui/draw/format.h"
#include "tui/draw/map_parts.h"

enum { MOST_ENTRIES = TIDE_TUI_TINT_SLOTS + 4, LONGEST = 20, BEFORE = 2, BETWEEN = 2 };

typedef struct entry {
    uint32_t item; ///< TIDE_NO_ITEM: a sign, which `what` explains
    uint32_t glyph, n_cells;
    const char *what;
} entry;

typedef struct legend {
    entry items[MOST_ENTRIES];
    size_t n;
} legend;

static void add_sign(legend *l, uint32_t glyph, const char *what, uint32_t n_cells) {
    if (n_cells > 0) l->items[l->n++] = (entry){TIDE_NO_ITEM, glyph, n_cells, what};
}

static const char *name_of(const tide_tui_scene *s, const entry *e, char *buf, size_t buf_bytes) {
    if (e->item == TIDE_NO_ITEM) return e->what;
    return tide_tui_named(tide_tui_item_name(s, e->item, buf, buf_bytes));
}

/// '@', those that take most, then signs.
static int by_cells(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const bool x_first = x->glyph == '@', y_first = y->glyph == '@';
    const bool x_sign = x->item == TIDE_NO_ITEM, y_sign = y->item == TIDE_NO_ITEM;
    if (x_first != y_first) return x_first ? -1 : 1;
    if (x_sign != y_sign) return x_sign ? 1 : -1;
    if (x->n_cells != y->n_cells) return x->n_cells > y->n_cells ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/// '@', letters, then signs.
static int by_glyph(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const bool x_sign = x->item == TIDE_NO_ITEM, y_sign = y->item == TIDE_NO_ITEM;
    if (x_sign != y_sign) return x_sign ? 1 : -1;
    return x->glyph != y->glyph ? (x->glyph > y->glyph ? 1 : -1) : by_cells(a, b);
}

/// What stands on the screen, by what is drawn there: one entry for each letter, or each name that shares it.
static void collect(const tide_tui_view *v, const tide_tui_tints *t, legend *l) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->map;
    const int w = s->map_is_moment ? s->cells_w : r.w;
    uint32_t n_cells[TIDE_TUI_TINT_SLOTS] = {0}, item[TIDE_TUI_TINT_SLOTS] = {0};
    uint32_t n_selected = 0, n_crowds = 0, n_holes = 0, n_outside = 0;
    for (int y = 0; y < r.h; y++) {
        for (int x = 0; x < w; x++) {
            const uint32_t glyph = tide_tui_get(v->grid, r.x + x, r.y + y).glyph;
            n_selected += glyph == '@';
            n_crowds += glyph == '*';
            n_holes += glyph == v->glyphs->hole;
            n_outside += glyph == v->glyphs->outside;
            for (int half = 0; half < 2; half++) {
                const tide_space_cell c = s->cells[(size_t)(2 * (r.h - 1 - y) + half) * (size_t)w + (size_t)x];
                const uint32_t slot = tide_tui_is_item(c) ? tide_tui_tint_slot(t, c.item) : TIDE_TUI_TINT_SLOTS;
                if (slot == TIDE_TUI_TINT_SLOTS || glyph != tide_tui_letter(t->tint[slot])) continue;
                item[slot] = c.item;
                n_cells[slot]++;
            }
        }
    }
    if (n_selected > 0) l->items[l->n++] = (entry){s->state->item, '@', n_selected, NULL};
    for (uint32_t slot = 0; slot < TIDE_TUI_TINT_SLOTS; slot++)
        if (n_cells[slot] > 0)
            l->items[l->n++] = (entry){item[slot], tide_tui_letter(t->tint[slot]), n_cells[slot], NULL};
    add_sign(l, '*', "several", n_crowds);
    add_sign(l, v->glyphs->hole, "hole", n_holes);
    add_sign(l, v->glyphs->outside, "no memory", n_outside);
}

void tide_tui_draw_map_legend(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_rect r = s->layout->map_legend;
    if (!v->glyphs->letters || r.h <= 0) return;
    tide_tui_tints t;
    legend l;
    char buf[TIDE_TUI_WORD], more[TIDE_TUI_WORD + 8], n[TIDE_TUI_WORD];
    tide_tui_letters_make(v, &t);
    l.n = 0;
    collect(v, &t, &l);
    if (l.n == 0) return;
    qsort(l.items, l.n, sizeof l.items[0], by_cells);
    int longest = 1;
    for (size_t i = 0; i < l.n && longest < LONGEST; i++) {
        const int w = tide_tui_text_width(v->glyphs, name_of(s, &l.items[i], buf, sizeof buf));
        if (w > longest) longest = w < LONGEST ? w : LONGEST;
    }
    const int each = BEFORE + longest + BETWEEN, n_columns = r.w / each > 0 ? r.w / each : 1;
    const size_t room = (size_t)n_columns * (size_t)r.h, n_shown = l.n <= room ? l.n : room - 1;
    qsort(l.items, n_shown, sizeof l.items[0], by_glyph);
    for (size_t i = 0; i < n_shown; i++) {
        const entry *e = &l.items[i];
        const int x = r.x + 1 + (int)(i % (size_t)n_columns) * each, y = r.y + (int)(i / (size_t)n_columns);
        tide_tui_put(v->grid, x, y, e->glyph, e->glyph == '@' ? TIDE_TUI_ROLE_TITLE : TIDE_TUI_ROLE_LABEL);
        tide_tui_text(v, x + BEFORE, y, longest < r.w - 3 ? longest : r.w - 3, name_of(s, e, buf, sizeof buf),
                      TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TEXT);
    }
    if (n_shown == l.n) return;
    snprintf(more, sizeof more, "+%s more", tide_tui_exact(l.n - n_shown, n, sizeof n));
    tide_tui_text(v, r.x + 1 + (n_columns - 1) * each, r.y + r.h - 1, each - 1, more, TIDE_TUI_CUT_END,
                  TIDE_TUI_ROLE_DIM);
}
