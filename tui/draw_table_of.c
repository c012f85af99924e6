// SPDX-License-Identifier: MIT
//
// A table that scrolls. See draw.h.
//
//     name              op       size    share      titles; the columns of the highest rank are left out first
//     conv1_out         conv1   1.00 MiB  34.0 %
//   > relu1_out         relu1   1.00 MiB  34.0 %    the selection: a mark in the margin besides the colour
//     fc_out            fc       40.0 KiB   1.2 %
//                                             3/12    where one is, when there is more than the screen shows
#include <stdio.h>
#include <string.h>

#include "tui/draw_words.h"

enum { MAX_COLUMNS = 16, GAP = 2, MARGIN = 2, CELL = 320 };

typedef struct fitted {
    int w[MAX_COLUMNS]; ///< 0: left out
    size_t top;
} fitted;

static int clamp_w(const tide_tui_column *c, int w) {
    if (!c->stretch && w < c->min_w) w = c->min_w; // of one that stretches it is how far it may be cut
    return c->max_w > 0 && w > c->max_w ? c->max_w : w;
}

/// What every column needs for the rows that show, its title included.
static void measure(const tide_tui_view *v, const tide_tui_table *t, int h, fitted *f) {
    char text[CELL];
    for (int c = 0; c < t->n_columns; c++) f->w[c] = tide_tui_text_width(v->glyphs, t->columns[c].title);
    for (size_t row = f->top; row < t->n_rows && row - f->top < (size_t)h; row++) {
        for (int c = 0; c < t->n_columns; c++) {
            text[0] = '\0';
            (void)t->cell(t->ctx, row, c, text, sizeof text);
            const int w = tide_tui_text_width(v->glyphs, text);
            if (w > f->w[c]) f->w[c] = w;
        }
    }
    for (int c = 0; c < t->n_columns; c++) f->w[c] = clamp_w(&t->columns[c], f->w[c]);
}

/// The least that a column can do with: one that stretches holds foreign names, which may be cut.
static int least(const tide_tui_column *c, int w) {
    const int floor_w = c->min_w > 0 ? c->min_w : 8;
    return c->stretch && w > floor_w ? floor_w : w;
}

static int total(const tide_tui_table *t, const fitted *f) {
    int sum = 0;
    for (int c = 0; c < t->n_columns; c++)
        if (f->w[c] > 0) sum += least(&t->columns[c], f->w[c]) + (sum > 0 ? GAP : 0);
    return sum;
}

/// The column of the highest rank that may go; -1: none.
static int expendable(const tide_tui_table *t, const fitted *f) {
    int worst = -1;
    for (int c = 0; c < t->n_columns; c++)
        if (f->w[c] > 0 && t->columns[c].rank > 0 && (worst < 0 || t->columns[c].rank > t->columns[worst].rank))
            worst = c;
    return worst;
}

/// Leave columns out, the highest rank first, until the rest fits; give what is left over to those that stretch: first
/// what they need, to the lowest rank first, then the rest, so that columns do not move about when one scrolls.
static void fit(const tide_tui_table *t, int room, fitted *f) {
    while (total(t, f) > room) {
        const int worst = expendable(t, f);
        if (worst < 0) break;
        f->w[worst] = 0;
    }
    int left = room - total(t, f), need[MAX_COLUMNS], n = 0, order[MAX_COLUMNS];
    for (int c = 0; c < t->n_columns; c++) {
        need[c] = f->w[c];
        if (f->w[c] == 0 || !t->columns[c].stretch) continue;
        f->w[c] = least(&t->columns[c], f->w[c]);
        order[n++] = c;
        for (int k = n - 1; k > 0 && t->columns[order[k]].rank < t->columns[order[k - 1]].rank; k--) {
            order[k] = order[k - 1];
            order[k - 1] = c;
        }
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < n && left > 0; k++) {
            const int c = order[k];
            int more = pass == 0 ? need[c] - f->w[c] : clamp_w(&t->columns[c], f->w[c] + left / (n - k)) - f->w[c];
            if (more > left) more = left;
            f->w[c] += more;
            left -= more;
        }
    }
    if (left < 0 && n > 0) f->w[order[0]] = f->w[order[0]] + left > 1 ? f->w[order[0]] + left : 1;
}

static void put_cell(const tide_tui_view *v, const tide_tui_column *c, int x, int y, int w, const char *text,
                     tide_tui_role role) {
    const int need = tide_tui_text_width(v->glyphs, text), skip = c->right && need < w ? w - need : 0;
    tide_tui_text(v, x + skip, y, w - skip, text, c->right ? TIDE_TUI_CUT_END : TIDE_TUI_CUT_MIDDLE, role);
}

static void draw_row(const tide_tui_view *v, const tide_tui_table *t, const fitted *f, tide_tui_rect r, int y,
                     size_t row, bool titles) {
    char text[CELL];
    int x = r.x + MARGIN;
    for (int c = 0; c < t->n_columns; c++) {
        if (f->w[c] == 0) continue;
        tide_tui_role role = TIDE_TUI_ROLE_LABEL;
        text[0] = '\0';
        if (titles) {
            snprintf(text, sizeof text, "%s", t->columns[c].title);
        } else {
            role = t->cell(t->ctx, row, c, text, sizeof text);
        }
        const int w = x + f->w[c] > r.x + r.w ? r.x + r.w - x : f->w[c];
        if (w > 0) put_cell(v, &t->columns[c], x, y, w, text, role);
        x += f->w[c] + GAP;
    }
}

/// "3/12" at the right end of the titles.
static void draw_place(const tide_tui_view *v, const tide_tui_table *t, tide_tui_rect r, int used) {
    char row[TIDE_TUI_WORD], n[TIDE_TUI_WORD], place[2 * TIDE_TUI_WORD + 2];
    tide_tui_exact((t->row < t->n_rows ? t->row : t->n_rows - 1) + 1, row, sizeof row);
    snprintf(place, sizeof place, "%s/%s", row, tide_tui_exact(t->n_rows, n, sizeof n));
    const int w = tide_tui_text_width(v->glyphs, place);
    if (used + 2 + w <= r.w) tide_tui_text(v, r.x + r.w - w, r.y, w, place, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
}

void tide_tui_draw_table_of(const tide_tui_view *v, tide_tui_rect body, const tide_tui_table *t) {
    if (body.w <= MARGIN || body.h <= 0 || t->n_rows == 0 || t->n_columns > MAX_COLUMNS) return;
    // A single line shows the selected row rather than titles.
    const bool has_titles = body.h > 1;
    const int h = body.h - has_titles;
    fitted f = {.top = tide_tui_settle_top(t->n_rows, t->has_selection ? t->row : t->top, t->top, h)};
    measure(v, t, h, &f);
    const bool scrolls = t->n_rows > (size_t)h;
    fit(t, body.w - MARGIN, &f);
    if (has_titles) {
        int used = MARGIN;
        for (int c = 0; c < t->n_columns; c++)
            if (f.w[c] > 0) used += f.w[c] + GAP;
        draw_row(v, t, &f, body, body.y, 0, true);
        if (scrolls) draw_place(v, t, body, used - GAP);
    }
    for (size_t i = 0; i < (size_t)h && f.top + i < t->n_rows; i++) {
        const int y = body.y + has_titles + (int)i;
        draw_row(v, t, &f, body, y, f.top + i, false);
        if (!t->has_selection || f.top + i != t->row) continue;
        tide_tui_put(v->grid, body.x, y, '>', TIDE_TUI_ROLE_CURSOR);
        tide_tui_mark_row(v->grid, body.x, y, body.w, TIDE_TUI_MARK_SELECTED);
    }
}
