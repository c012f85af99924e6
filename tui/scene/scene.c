// SPDX-License-Identifier: MIT
//
// What a frame needs, part by part. Each part asks for what its panes show and for nothing else. See scene.h,
// scene_parts.h.
//
//     bands.c      what the curve is made of, and what allocators hold beside it
//     curve.c      columns of A, B, prediction; minimap; marks; what a selected range of time holds
//     rows.c       rows: requested, settled; those on the screen with their spans; matches of the search
//     map.c        addresses over time
//     selection.c  the selected item and its neighbours
//     pools.c      pools at the cursor and over time, leaks
//     pools_b.c    the pools of B beside them
//     stacks.c     call stacks of what is alive
//     lists.c      live set, explanation, comparison, advice, what steps make and free
#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

// ---- one cursor and one selection for all lists ----

/// The row of the step that runs at the cursor, whichever execution that is in; where none runs, of the last one that
/// has begun. 0: none has.
static size_t operator_at(const tide_tui_scene *s, int64_t t) {
    const tide_tui_operator *last = NULL;
    for (size_t i = 0; i < s->n_operators; i++) {
        const tide_tui_operator *op = &s->operators[i];
        if (op->step == s->cursor_step) return i;
        if (op->begin > t) continue;
        if (last == NULL || op->begin > last->begin || (op->begin == last->begin && op->step > last->step)) last = op;
    }
    return last != NULL ? (size_t)(last - s->operators) : 0;
}

static void link_lists(tide_tui_state *st, const tide_tui_scene *s) {
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

// ---- the scene ----

static void begin(tide__frame *f) {
    tide_tui_scene *out = f->out;
    *out = (tide_tui_scene){0};
    out->state = f->st;
    out->layout = f->layout;
    out->a = tide_subject_get_facts(f->st->a);
    out->b = f->st->b != NULL ? tide_subject_get_facts(f->st->b) : NULL;
    out->cursor_step = tide_subject_step_at(out->a, f->st->cursor);
    out->below = out->above = out->before = out->after = TIDE_NO_ITEM;
    out->overlay_text = f->cache->text != NULL ? f->cache->text : "";
}

tide_status tide_tui_scene_make(tide_tui_query_cache *cache, tide_tui_state *st, const tide_tui_layout *layout,
                                tide_tui_scene *out, tide_error *err) {
    static tide_status (*const parts[])(tide__frame * f) = {
        tide__scene_rows,  tide__scene_curve,   tide__scene_bands,  tide__scene_marks,     tide__scene_range,
        tide__scene_gantt, tide__scene_live,    tide__scene_map,    tide__scene_selection, tide__scene_explain,
        tide__scene_pools, tide__scene_compare, tide__scene_advice, tide__scene_operators, tide__scene_stacks,
    };
    tide__frame frame = {cache, st, layout, out, err};
    TIDE_TRY(tide__query_collect(cache, st, err));
    tide__query_begin_frame(cache, st);
    begin(&frame);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) TIDE_TRY(parts[i](&frame));
    link_lists(st, out);
    return TIDE_OK;
}

// ---- lists ----

size_t tide_tui_scene_rows(const tide_tui_scene *s, tide_tui_pane pane) {
    switch (pane) {
    case TIDE_TUI_PANE_TABLE:
        return s->live != NULL ? s->live->n : 0;
    case TIDE_TUI_PANE_OPERATORS:
        return s->n_operators;
    case TIDE_TUI_PANE_POOLS:
        return s->pools == NULL ? 0 : s->pools->n + (s->leaks != NULL ? s->leaks->n : 0);
    case TIDE_TUI_PANE_COMPARE:
        return s->diff != NULL ? s->diff->n : 0;
    case TIDE_TUI_PANE_WHATIF:
        return s->n_advice;
    case TIDE_TUI_PANE_STACKS:
        return s->n_stack_rows;
    default:
        return 0;
    }
}

size_t tide_tui_scene_row(const tide_tui_scene *s, tide_tui_pane pane) {
    const size_t n = tide_tui_scene_rows(s, pane), row = s->state->pane_row[pane];
    return n == 0 ? 0 : row < n ? row : n - 1;
}
