// SPDX-License-Identifier: MIT
//
// What a frame needs, part by part. Each part asks for what its panes show and nothing else. See scene.h, desk.h.
//
//     scene.c            this file: order of the parts
//     scene_curve.c      columns of A, B, prediction; minimap; marks
//     scene_range.c      what a selected range of time holds
//     scene_rows.c       rows: asked for, settled
//     scene_gantt.c      the rows on the screen with their spans; matches of the search
//     scene_map.c        addresses over time
//     scene_select.c     the selected item and its neighbours
//     scene_lists.c      live set, explanation, pools, leaks, comparison, advice
//     scene_operators.c  what steps make and free
#include "tui/actions.h"
#include "tui/desk.h"

#include "core/base/host_alloc.h"
#include "tui/pane_rows.h"

static void begin(tide__frame *f) {
    tide_tui_scene *out = f->out;
    *out = (tide_tui_scene){0};
    out->state = f->st;
    out->layout = f->layout;
    out->a = tide_subject_get_facts(f->st->a);
    out->b = f->st->b != NULL ? tide_subject_get_facts(f->st->b) : NULL;
    out->cursor_step = tide_tui_step_at(out->a, f->st->cursor);
    out->below = out->above = out->before = out->after = TIDE_NO_ITEM;
    out->overlay_text = f->desk->text != NULL ? f->desk->text : "";
}

tide_status tide_tui_scene_make(tide_tui_desk *desk, tide_tui_state *st, const tide_tui_layout *layout,
                                tide_tui_scene *out, tide_error *err) {
    static tide_status (*const parts[])(tide__frame * f) = {
        tide__scene_rows,    tide__scene_curve,  tide__scene_marks,     tide__scene_range,   tide__scene_gantt,
        tide__scene_live,    tide__scene_map,    tide__scene_selection, tide__scene_explain, tide__scene_pools,
        tide__scene_compare, tide__scene_advice, tide__scene_operators,
    };
    tide__frame frame = {desk, st, layout, out, err};
    TIDE_TRY(tide__desk_collect(desk, st, err));
    tide__desk_begin_frame(desk, st);
    begin(&frame);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) TIDE_TRY(parts[i](&frame));
    tide_tui_link_lists(st, out);
    tide_tui_pane_settle(st, out);
    return TIDE_OK;
}

static void drop_columns(tide__columns *c) {
    tide_host_free(c->min);
    tide_host_free(c->max);
    *c = (tide__columns){0};
}

void tide__desk_drop_caches(tide_tui_desk *desk) {
    drop_columns(&desk->curve);
    drop_columns(&desk->predicted);
    drop_columns(&desk->b_curve);
    drop_columns(&desk->mini);
    tide_host_free(desk->marks);
    tide_host_free(desk->gantt);
    tide_host_free(desk->spans);
    tide_host_free(desk->match_bits);
    tide_host_free(desk->cells);
}
