// SPDX-License-Identifier: MIT
//
// OPERATORS: what runs, what it makes and frees, how much lives meanwhile. See draw.h.
//
//     == OPERATORS: 12 steps, highest conv2 ==
//       step  operator       makes      frees       live   at the cursor
//     >    3  relu1       1.00 MiB        0 B   3.20 MiB   <- cursor
#include <inttypes.h>
#include <stdio.h>

#include "tui/draw_words.h"
#include "tui/pane_rows.h"

enum { STEP, NAME, MAKES, FREES, LIVE, OF_PEAK, HERE, N_COLUMNS };

static const tide_tui_column columns[N_COLUMNS] = {
    [STEP] = {.title = "step", .right = true},
    [NAME] = {.title = "operator", .min_w = 8, .max_w = 40, .stretch = true},
    [MAKES] = {.title = "makes", .min_w = 10, .right = true, .rank = 2},
    [FREES] = {.title = "frees", .min_w = 10, .right = true, .rank = 3},
    [LIVE] = {.title = "live", .min_w = 10, .right = true},
    [OF_PEAK] = {.title = "of peak", .min_w = 7, .right = true, .rank = 4},
    [HERE] = {.title = "", .min_w = 8, .rank = 1},
};

static tide_tui_role cell(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = ctx;
    const tide_tui_operator *op = &s->operators[row];
    const bool here = op->step == s->cursor_step, highest = op->live_bytes == s->a->peak_bytes;
    switch (column) {
    case STEP:
        snprintf(buf, buf_bytes, "%zu", op->step);
        break;
    case NAME:
        snprintf(buf, buf_bytes, "%s", tide_tui_named(op->name));
        break;
    case MAKES:
        tide_tui_bytes(op->makes_bytes, buf, buf_bytes);
        break;
    case FREES:
        tide_tui_bytes(op->frees_bytes, buf, buf_bytes);
        break;
    case LIVE:
        tide_tui_bytes(op->live_bytes, buf, buf_bytes);
        break;
    case OF_PEAK:
        tide_tui_percent(op->live_bytes, s->a->peak_bytes, buf, buf_bytes);
        break;
    default:
        snprintf(buf, buf_bytes, "%s%s%s", here ? "cursor" : "", here && highest ? ", " : "", highest ? "peak" : "");
    }
    if (column == HERE) return here ? TIDE_TUI_ROLE_CURSOR : TIDE_TUI_ROLE_PEAK;
    return column == MAKES && op->makes_bytes == 0   ? TIDE_TUI_ROLE_DIM
           : column == FREES && op->frees_bytes == 0 ? TIDE_TUI_ROLE_DIM
                                                     : TIDE_TUI_ROLE_TEXT;
}

void tide_tui_draw_operators(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    char facts[96] = "", n[TIDE_TUI_WORD], title[160] = "";
    if (s->n_operators > 0) {
        snprintf(facts, sizeof facts, "%s step%s", tide_tui_exact(s->n_operators, n, sizeof n),
                 s->n_operators == 1 ? "" : "s");
        const char *name = tide_tui_step_name(s->a, s->state->cursor);
        snprintf(title, sizeof title, "%s%s", name[0] != '\0' ? "now " : "makes, frees, live bytes", name);
    }
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_OPERATORS, title, facts);
    if (s->n_operators == 0 &&
        tide_tui_draw_state_of(
            v, TIDE_TUI_PANE_OPERATORS, body,
            s->a->is_trace ? s->a->run_id == 0 ? "The whole trace has no steps: they are those of one run (--run N)."
                                               : "This run executed no operator."
                           : "This plan has no names of steps."))
        return;
    const tide_tui_table t = {
        .columns = columns,
        .n_columns = N_COLUMNS,
        .n_rows = s->n_operators,
        .row = tide_tui_pane_row(s, TIDE_TUI_PANE_OPERATORS),
        .top = s->state->pane_top[TIDE_TUI_PANE_OPERATORS],
        .has_selection = true,
        .cell = cell,
        .ctx = s,
    };
    tide_tui_draw_table_of(v, body, &t);
}
