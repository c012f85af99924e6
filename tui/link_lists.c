// SPDX-License-Identifier: MIT
//
// One cursor and one selection for all lists. See tide_tui_link_lists in actions.h.
#include "tui/actions.h"

/// The last operator that has begun at the cursor: begins rise.
static size_t operator_at(const tide_tui_scene *s, int64_t t) {
    size_t lo = 0, hi = s->n_operators;
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        if (s->operators[middle].begin <= t) {
            lo = middle + 1;
        } else {
            hi = middle;
        }
    }
    return lo > 0 ? lo - 1 : 0;
}

void tide_tui_link_lists(tide_tui_state *st, const tide_tui_scene *s) {
    if (s->n_operators > 0 && st->operators_at != st->cursor) {
        st->pane_row[TIDE_TUI_PANE_OPERATORS] = operator_at(s, st->cursor);
        st->operators_at = st->cursor;
    }
    const bool is_earlier = s->is_earlier[TIDE_TUI_PANE_TABLE];
    if (s->live == NULL || is_earlier || (st->table_at == st->cursor && st->table_item == st->item)) return;
    for (size_t i = 0; i < s->live->n && st->item != TIDE_NO_ITEM; i++) {
        if (s->live->items[i].item != st->item) continue;
        st->pane_row[TIDE_TUI_PANE_TABLE] = i;
        break;
    }
    st->table_at = st->cursor;
    st->table_item = st->item;
}
