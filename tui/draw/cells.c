// SPDX-License-Identifier: MIT
//
// The grid of cells, and foreign text made safe for it. See cells.h.
#include "tui/draw/cells.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "core/base/assert.h"
#include "core/base/checked.h"
#include "core/base/host_alloc.h"
#include "core/base/utf8.h"

tide_status tide_tui_grid_resize(tide_tui_grid *grid, int width, int height, tide_error *err) {
    tide_tui_grid_deinit(grid);
    if (width < 1 || height < 1) return TIDE_FAIL(err, TIDE_ERR_INVALID, "a frame of %dx%d cells", width, height);
    size_t n;
    if (!tide_mul_size((size_t)width, (size_t)height, &n))
        return TIDE_NO_MEMORY(err, "for a frame of %dx%d cells", width, height);
    TIDE_TRY(TIDE_NEW(&grid->cells, n, err, "for a frame of %dx%d cells", width, height));
    grid->width = width;
    grid->height = height;
    tide_tui_grid_clear(grid);
    return TIDE_OK;
}

void tide_tui_grid_deinit(tide_tui_grid *grid) {
    tide_host_free(grid->cells);
    *grid = (tide_tui_grid){0};
}

void tide_tui_grid_clear(tide_tui_grid *grid) {
    const size_t n = (size_t)grid->width * (size_t)grid->height;
    for (size_t i = 0; i < n; i++) grid->cells[i] = (tide_tui_cell){.glyph = ' ', .role = TIDE_TUI_ROLE_TEXT};
}

void tide_tui_grid_to_text(const tide_tui_grid *grid, tide_text *out) {
    for (int y = 0; y < grid->height; y++) {
        for (int x = 0; x < grid->width; x++) {
            const uint32_t glyph = grid->cells[(size_t)y * (size_t)grid->width + (size_t)x].glyph;
            if (glyph == 0) continue;
            char bytes[4];
            tide_text_add_n(out, bytes, tide_utf8_encode(glyph, bytes));
        }
        tide_text_add_n(out, "\n", 1);
    }
}

// ---- single cells ----

static tide_tui_cell *cell_at(const tide_tui_grid *grid, int x, int y) {
    if (x < 0 || y < 0 || x >= grid->width || y >= grid->height) return NULL;
    return &grid->cells[(size_t)y * (size_t)grid->width + (size_t)x];
}

void tide_tui_put(tide_tui_grid *grid, int x, int y, uint32_t glyph, tide_tui_role role) {
    tide_tui_cell *cell = cell_at(grid, x, y);
    TIDE_ASSERT((int)role >= 0 && role < TIDE_TUI_N_ROLES);
    if (cell == NULL) return;
    cell->glyph = glyph;
    cell->role = (uint8_t)role;
}

void tide_tui_put_ground(tide_tui_grid *grid, int x, int y, tide_tui_role ground) {
    tide_tui_cell *cell = cell_at(grid, x, y);
    TIDE_ASSERT((int)ground >= 0 && ground < TIDE_TUI_N_ROLES);
    if (cell != NULL) cell->ground = (uint8_t)ground;
}

tide_tui_cell tide_tui_get(const tide_tui_grid *grid, int x, int y) {
    const tide_tui_cell *cell = cell_at(grid, x, y);
    return cell != NULL ? *cell : (tide_tui_cell){0};
}

void tide_tui_fill_row(tide_tui_grid *grid, int x, int y, int w, uint32_t glyph, tide_tui_role role) {
    for (int i = 0; i < w; i++) tide_tui_put(grid, x + i, y, glyph, role);
}

void tide_tui_mark_row(tide_tui_grid *grid, int x, int y, int w, uint8_t marks) {
    for (int i = 0; i < w; i++) {
        tide_tui_cell *cell = cell_at(grid, x + i, y);
        if (cell == NULL) continue;
        cell->marks |= marks;
        // One bar in one colour: in reverse, every role would be a patch of its own.
        if (marks & TIDE_TUI_MARK_SELECTED) cell->role = TIDE_TUI_ROLE_TEXT;
    }
}

// ---- text ----

tide_tui_locale tide_tui_locale_enter(void) {
    tide_tui_locale l = {0};
    const locale_t own = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (own == (locale_t)0) return l;
    l.own = own;
    l.before = uselocale(own);
    return l;
}

void tide_tui_locale_leave(tide_tui_locale locale) {
    if (locale.own == NULL) return;
    uselocale(locale.before);
    freelocale(locale.own);
}

/// Next glyph that may be shown, and the columns it takes (0: skip it).
static uint32_t next_glyph(const tide_tui_glyphs *g, const char **p, int *width) {
    uint32_t cp;
    *p += tide_utf8_decode(*p, &cp);
    *width = 1;
    if (tide_utf8_is_unsafe(cp)) return g->bad;
    if (cp < 0x7F) return cp;
    if (g->ascii) return g->bad;
    const int w = wcwidth((wchar_t)cp);
    if (w < 0 || w > 2) return g->bad;
    *width = w;
    return cp;
}

int tide_tui_text_width(const tide_tui_glyphs *glyphs, const char *text) {
    int total = 0;
    for (const char *p = text; *p != '\0';) {
        int w;
        next_glyph(glyphs, &p, &w);
        if (total > INT32_MAX - 2) break;
        total += w;
    }
    return total;
}

/// Emit glyphs from *p while they fit into `room` columns. @return columns used
static int emit(tide_tui_grid *grid, const tide_tui_glyphs *g, int x, int y, int room, const char **p,
                tide_tui_role role) {
    int used = 0;
    while (**p != '\0') {
        const char *at = *p;
        int w;
        const uint32_t glyph = next_glyph(g, &at, &w);
        if (used + w > room) break;
        *p = at;
        if (w == 0) continue;
        tide_tui_put(grid, x + used, y, glyph, role);
        if (w == 2) tide_tui_put(grid, x + used + 1, y, 0, role);
        used += w;
    }
    TIDE_ASSERT(used <= (room > 0 ? room : 0));
    return used;
}

/// Columns of the end of a text that is cut in the middle: about half. Where it has several words none of its last ones
/// is cut: half of "stream_caching Persistent" would be "stream_cac…ersistent".
static int tail_of(const tide_tui_glyphs *glyphs, const char *text, int total, int w) {
    enum { SHORTEST = 4 }; // of the begin
    const int half = (w - 1) / 2;
    int at = 0, longer = 0, shorter = 0;
    for (const char *p = text; *p != '\0';) {
        const bool is_space = *p == ' ';
        int gw;
        next_glyph(glyphs, &p, &gw);
        at += gw;
        const int tail = total - at;
        if (!is_space || tail == 0) continue;
        if (tail >= half && tail <= half + half / 4 && tail <= w - 1 - SHORTEST) longer = tail;
        if (tail < half && 2 * tail >= half && shorter == 0) shorter = tail;
    }
    return longer > 0 ? longer : shorter > 0 ? shorter : half;
}

int tide_tui_put_text(tide_tui_grid *grid, const tide_tui_glyphs *glyphs, int x, int y, int w, const char *text,
                      tide_tui_cut cut, tide_tui_role role) {
    if (w <= 0) return 0;
    const char *p = text;
    const int total = tide_tui_text_width(glyphs, text);
    if (total <= w) return emit(grid, glyphs, x, y, w, &p, role);

    const int tail = cut == TIDE_TUI_CUT_MIDDLE && w >= 5 ? tail_of(glyphs, text, total, w) : 0;
    int used = emit(grid, glyphs, x, y, w - 1 - tail, &p, role);
    tide_tui_put(grid, x + used, y, glyphs->cut, role);
    used++;
    if (tail == 0) return used;
    int left = total;
    for (const char *q = text; q < p;) {
        int gw;
        next_glyph(glyphs, &q, &gw);
        left -= gw;
    }
    while (*p != '\0' && left > tail) {
        int gw;
        next_glyph(glyphs, &p, &gw);
        left -= gw;
    }
    return used + emit(grid, glyphs, x + used, y, tail, &p, role);
}
