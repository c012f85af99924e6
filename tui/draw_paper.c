// SPDX-License-Identifier: MIT
//
// Paper: lines written one after the other, of which the screen shows a part. See draw_words.h.
#include <string.h>

#include "core/base/utf8.h"
#include "tui/draw_words.h"

int tide_tui_paper_y(const tide_tui_paper *p) {
    if (p->n < p->top || p->r.h <= 0 || p->n - p->top >= (size_t)p->r.h) return -1;
    return p->r.y + (int)(p->n - p->top);
}

int tide_tui_paper_text(tide_tui_paper *p, int x, int w, const char *text, tide_tui_cut cut, tide_tui_role role) {
    const int y = tide_tui_paper_y(p);
    if (x + w > p->r.w) w = p->r.w - x;
    if (x < 0 || y < 0 || w <= 0) return 0;
    return tide_tui_text(p->v, p->r.x + x, y, w, text, cut, role);
}

void tide_tui_paper_right(tide_tui_paper *p, int x, int w, const char *text, tide_tui_role role) {
    const int need = tide_tui_text_width(p->v->glyphs, text), skip = need < w ? w - need : 0;
    tide_tui_paper_text(p, x + skip, w - skip, text, TIDE_TUI_CUT_END, role);
}

void tide_tui_paper_fill(tide_tui_paper *p, int x, int w, uint32_t glyph, tide_tui_role role) {
    const int y = tide_tui_paper_y(p);
    if (x + w > p->r.w) w = p->r.w - x;
    if (x >= 0 && y >= 0 && w > 0) tide_tui_fill_row(p->v->grid, p->r.x + x, y, w, glyph, role);
}

void tide_tui_paper_next(tide_tui_paper *p) { p->n++; }

/// Columns of the character at `text`, whose bytes go to *n.
static int character_width(const tide_tui_view *v, const char *text, size_t *n) {
    char one[8];
    uint32_t cp;
    *n = tide_utf8_decode(text, &cp);
    if (cp >= ' ' && cp < 0x7F) return 1;
    memcpy(one, text, *n);
    one[*n] = '\0';
    return tide_tui_text_width(v->glyphs, one);
}

size_t tide_tui_wrap_line(const tide_tui_view *v, int w, const char *text, size_t *skip) {
    size_t at = 0, blank = 0, bytes = 0;
    int used = 0;
    while (text[at] != '\0' && text[at] != '\n') {
        if (text[at] == ' ' && at > 0) blank = at; // a word may also end right at the edge
        const int more = character_width(v, text + at, &bytes);
        if (used + more > w || at + bytes >= TIDE_TUI_LINE) break;
        used += more;
        at += bytes;
    }
    *skip = text[at] == '\n' ? 1 : 0;
    if (text[at] == '\0' || text[at] == '\n') return at;
    const size_t n = blank > 0 ? blank : at > 0 ? at : bytes; // a word that is longer than the line is broken
    while (text[n + *skip] == ' ') ++*skip;
    return n;
}

void tide_tui_paper_wrap(tide_tui_paper *p, int x, const char *text, tide_tui_role role) {
    const int w = p->r.w - x > 1 ? p->r.w - x : 1;
    char piece[TIDE_TUI_LINE];
    do {
        size_t skip = 0;
        const size_t n = tide_tui_wrap_line(p->v, w, text, &skip);
        memcpy(piece, text, n);
        piece[n] = '\0';
        tide_tui_paper_text(p, x, w, piece, TIDE_TUI_CUT_END, role);
        tide_tui_paper_next(p);
        text += n + skip;
    } while (*text != '\0');
}

size_t tide_tui_wrap_count(const tide_tui_view *v, int w, const char *text) {
    tide_tui_paper counted = {.v = v, .r = {.w = w}};
    tide_tui_paper_wrap(&counted, 0, text, TIDE_TUI_ROLE_TEXT);
    return counted.n;
}

size_t tide_tui_settle_top(size_t n, size_t row, size_t top, int h) {
    const size_t room = h > 0 ? (size_t)h : 1;
    if (row >= n) row = n > 0 ? n - 1 : 0;
    if (row < top) top = row;
    if (row - top >= room) top = row - room + 1;
    if (n > room && top > n - room) top = n - room;
    return n <= room ? 0 : top;
}
