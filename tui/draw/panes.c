// SPDX-License-Identifier: MIT
//
// Rows of lists: how many, which, where. See panes.h.
#include "tui/draw/panes.h"

#include <string.h>

#include "core/base/assert.h"
#include "tui/draw/draw.h"

/// Without its line of titles, as tide_tui_draw_table_of() has one.
static tide_tui_rect below_titles(tide_tui_rect r) {
    if (r.h > 1) r.y++, r.h--;
    return r;
}

size_t tide_tui_pane_rows(const tide_tui_scene *s, tide_tui_pane pane) {
    return pane == TIDE_TUI_PANE_EXPLAIN ? tide_tui_explain_lines(s) : tide_tui_scene_rows(s, pane);
}

size_t tide_tui_pane_row(const tide_tui_scene *s, tide_tui_pane pane) {
    const size_t n = tide_tui_pane_rows(s, pane), row = s->state->pane_row[pane];
    return n == 0 ? 0 : row < n ? row : n - 1;
}

/// Of pools, the one of the two tables that the selection is in.
static tide_tui_list_place pools_list(const tide_tui_scene *s, tide_tui_rect body, size_t row, size_t top) {
    const tide_tui_pools_parts parts = tide_tui_pools_divide(s, body);
    const size_t n_pools = s->pools != NULL ? s->pools->n : 0, n = tide_tui_pane_rows(s, TIDE_TUI_PANE_POOLS);
    if (row < n_pools || n == n_pools) {
        const tide_tui_rect r = below_titles(parts.pools);
        return (tide_tui_list_place){r, tide_tui_settle_top(n_pools, row, top, r.h)};
    }
    const tide_tui_rect r = below_titles(parts.leaks);
    const size_t within = top > n_pools ? top - n_pools : 0;
    return (tide_tui_list_place){r, n_pools + tide_tui_settle_top(n - n_pools, row - n_pools, within, r.h)};
}

tide_tui_list_place tide_tui_pane_list(const tide_tui_scene *s, tide_tui_pane pane) {
    const tide_tui_rect body = tide_tui_body_of(s, pane);
    const size_t n = tide_tui_pane_rows(s, pane), row = tide_tui_pane_row(s, pane), top = s->state->pane_top[pane];
    tide_tui_list_place place = {.r = below_titles(body)};
    switch (pane) {
    case TIDE_TUI_PANE_POOLS:
        return pools_list(s, body, row, top);
    case TIDE_TUI_PANE_COMPARE:
        place.r = below_titles(tide_tui_compare_divide(s, body).rows);
        break;
    case TIDE_TUI_PANE_WHATIF:
        place.r = below_titles(tide_tui_whatif_divide(s, body).advice);
        break;
    case TIDE_TUI_PANE_EXPLAIN: // lines scroll; the row is the first one that shows
        place.r = body;
        place.top = tide_tui_explain_top(s, n, body.h);
        return place;
    default:
        break;
    }
    place.top = tide_tui_settle_top(n, row, top, place.r.h);
    return place;
}

size_t tide_tui_pane_row_at(const tide_tui_scene *s, tide_tui_pane pane, int y) {
    const size_t n = tide_tui_pane_rows(s, pane);
    tide_tui_list_place place = tide_tui_pane_list(s, pane);
    if (pane == TIDE_TUI_PANE_POOLS && s->pools != NULL) {
        // A click may lie in the table that the selection is not in.
        const tide_tui_rect body = tide_tui_body_of(s, pane), r = tide_tui_pools_divide(s, body).leaks;
        const bool in_leaks = r.h > 0 && y >= r.y && n > s->pools->n;
        const size_t row = tide_tui_pane_row(s, pane), top = s->state->pane_top[pane];
        if (in_leaks && row < s->pools->n) place = pools_list(s, body, s->pools->n, s->pools->n);
        if (!in_leaks && row >= s->pools->n && s->pools->n > 0)
            place = pools_list(s, body, 0, top < s->pools->n ? top : 0);
    }
    if (y < place.r.y || y >= place.r.y + place.r.h) return SIZE_MAX;
    const size_t row = place.top + (size_t)(y - place.r.y);
    if (pane == TIDE_TUI_PANE_POOLS && s->pools != NULL && place.top < s->pools->n && row >= s->pools->n)
        return SIZE_MAX;
    return row < n ? row : SIZE_MAX;
}

size_t tide_tui_pane_page(const tide_tui_scene *s, tide_tui_pane pane) {
    const int h = tide_tui_pane_list(s, pane).r.h;
    return h > 1 ? (size_t)h : 1;
}

bool tide_tui_list_table_of(const tide_tui_scene *s, tide_tui_list list, tide_tui_rect body, tide_tui_list_table *out) {
    static bool (*const tables[TIDE_TUI_N_LISTS])(const tide_tui_scene *s, tide_tui_rect body,
                                                  tide_tui_list_table *out) = {
        tide_tui_table_of_live,  tide_tui_table_of_operators, tide_tui_table_of_pools,
        tide_tui_table_of_leaks, tide_tui_table_of_compare,   tide_tui_table_of_whatif,
    };
    return tables[list](s, body, out);
}

tide_tui_list tide_tui_pane_list_at(const tide_tui_scene *s, tide_tui_pane pane, int x, int y, int *column) {
    // Titles are measured with the glyphs of blocks: those of ASCII are as wide.
    const tide_tui_view v = {.scene = s, .glyphs = tide_tui_glyphs_of(false)};
    tide_tui_list_table table;
    for (int i = 0; i < TIDE_TUI_N_LISTS; i++) {
        const tide_tui_list list = (tide_tui_list)i;
        if (tide_tui_pane_of_list(list) != pane) continue;
        if (!tide_tui_list_table_of(s, list, tide_tui_body_of(s, pane), &table) || y != table.r.y) continue;
        *column = tide_tui_table_column_at(&v, table.r, &table.t, x);
        if (*column >= 0) return list;
    }
    return TIDE_TUI_N_LISTS;
}

size_t tide_tui_list_columns(const tide_tui_scene *s, tide_tui_list list, const char **keys, size_t max) {
    tide_tui_list_table table;
    size_t n = 0;
    if (!tide_tui_list_table_of(s, list, tide_tui_body_of(s, tide_tui_pane_of_list(list)), &table)) return 0;
    for (int c = 0; c < table.t.n_columns && n < max; c++) {
        const char *key = table.t.columns[c].key;
        bool is_new = key != NULL;
        for (size_t i = 0; i < n && is_new; i++) is_new = strcmp(keys[i], key) != 0;
        if (is_new) keys[n++] = key;
    }
    return n;
}

void tide_tui_pane_settle(tide_tui_state *st, const tide_tui_scene *s) {
    static const tide_tui_pane lists[] = {TIDE_TUI_PANE_TABLE,   TIDE_TUI_PANE_OPERATORS, TIDE_TUI_PANE_POOLS,
                                          TIDE_TUI_PANE_EXPLAIN, TIDE_TUI_PANE_COMPARE,   TIDE_TUI_PANE_WHATIF,
                                          TIDE_TUI_PANE_STACKS};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const tide_tui_pane pane = lists[i];
        if (s->layout->panes[pane].w == 0 || tide_tui_pane_rows(s, pane) == 0) continue; // not shown, or not known yet
        st->pane_row[pane] = tide_tui_pane_row(s, pane);
        const tide_tui_list_place place = tide_tui_pane_list(s, pane);
        st->pane_top[pane] = place.top;
        if (pane == TIDE_TUI_PANE_EXPLAIN) st->pane_row[pane] = place.top;
        TIDE_ASSERT(st->pane_row[pane] < tide_tui_pane_rows(s, pane) && st->pane_top[pane] <= st->pane_row[pane]);
    }
}
