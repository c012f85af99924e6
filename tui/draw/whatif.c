// SPDX-License-Identifier: MIT
//
// WHATIF: the edits so far and what they make of the plan; below, single edits that would lower it, best first, each of
// which was made and bounded; and the keys that apply, undo and save. See draw.h.
//
//     == WHATIF: 1 edit ============================= 2.00 MiB -> 1.50 MiB ==
//     1  in-place relu1_out conv1_out
//     With this the plan is 1.50 MiB instead of 2.00 MiB: -512 KiB (-25.0 %).
//       advice                   saves              plan  runs  no smaller than
//     > recompute conv1_out   256 KiB  12.5 %   1.75 MiB  yes          1.70 MiB
//     ! apply   u undo   E edit   S save-plan
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

// ---- edits ----

static void say_result(const tide_tui_scene *s, char *buf, size_t buf_bytes) {
    char a[TIDE_TUI_WORD], b[TIDE_TUI_WORD], change[TIDE_TUI_WORD], percent[TIDE_TUI_WORD], key[TIDE_TUI_WORD];
    const tide_tui_state *st = s->state;
    const char *they = st->n_edits == 1 ? "this edit" : "these edits";
    if (st->n_edits == 0) {
        snprintf(buf, buf_bytes, "No edit yet. Apply advice, or type one: %s free-earlier TENSOR, align 64, batch 8.",
                 tide_tui_key_of(TIDE_TUI_EDIT, key, sizeof key));
    } else if (s->error[TIDE_TUI_PANE_WHATIF][0] != '\0') {
        snprintf(buf, buf_bytes, "error: %s", s->error[TIDE_TUI_PANE_WHATIF]);
    } else if (!st->b_is_whatif || s->b == NULL) {
        const char *busy = s->busy[TIDE_TUI_PANE_WHATIF];
        snprintf(buf, buf_bytes, "Planning anew with %s%s%s.", they, busy[0] != '\0' ? ": " : "", busy);
    } else {
        snprintf(buf, buf_bytes, "With %s the plan is %s instead of %s: %s (%s).", they,
                 tide_tui_bytes(s->b->plan_bytes, b, sizeof b), tide_tui_bytes(s->a->plan_bytes, a, sizeof a),
                 tide_tui_change(s->a->plan_bytes, s->b->plan_bytes, change, sizeof change),
                 tide_tui_change_percent(s->a->plan_bytes, s->b->plan_bytes, percent, sizeof percent));
    }
}

static void write_edit(tide_tui_lines *p, const tide_edit *edit, size_t number) {
    tide_text text = {0};
    char n[TIDE_TUI_WORD];
    tide_edit_print(edit, &text);
    snprintf(n, sizeof n, "%zu", number);
    tide_tui_lines_right(p, 0, 2, n, TIDE_TUI_ROLE_LABEL);
    tide_tui_lines_text(p, 4, p->r.w - 4, tide_text_str(&text), TIDE_TUI_CUT_MIDDLE, TIDE_TUI_ROLE_TEXT);
    tide_text_deinit(&text);
    tide_tui_lines_next(p);
}

static void draw_edits(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    const size_t n = s->state->n_edits;
    if (r.h <= 0) return;
    char text[512];
    say_result(s, text, sizeof text);
    const size_t result_h = tide_tui_wrap_count(v, r.w, text), room = (size_t)r.h;
    // The last edits show when not all of them have room; what they make of the plan always does.
    const size_t edits_h = room > result_h ? room - result_h : 0, from = n > edits_h ? n - edits_h : 0;
    tide_tui_lines p = {.v = v, .r = r};
    for (size_t i = from; i < n; i++) write_edit(&p, &s->state->edits[i], i + 1);
    tide_tui_lines_wrap(&p, 0, text, TIDE_TUI_ROLE_TITLE);
}

// ---- advice ----

enum { EDIT, SAVES, SHARE, BYTES, RUNS, BOUND, N_COLUMNS };
static const tide_tui_column columns[N_COLUMNS] = {
    [EDIT] = {.title = "advice", .key = "edit", .min_w = 24, .max_w = 64, .stretch = true},
    [SAVES] = {.title = "saves", .key = "saves_bytes", .min_w = 10, .right = true},
    [SHARE] = {.title = "", .min_w = 7, .right = true, .rank = 2},
    [BYTES] = {.title = "plan", .key = "plan_bytes", .min_w = 10, .right = true, .rank = 3},
    [RUNS] = {.title = "runs", .key = "runs", .min_w = 4, .rank = 1},
    [BOUND] = {.title = "no smaller than", .key = "bound_bytes", .min_w = 10, .right = true, .rank = 4},
};

static tide_tui_role cell(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = ((const tide_tui_list_table *)ctx)->scene;
    const tide_edit_advice *a = &s->advice[row];
    const uint64_t saves = s->a->plan_bytes > a->bytes ? s->a->plan_bytes - a->bytes : 0;
    tide_text text = {0};
    switch (column) {
    case EDIT:
        tide_edit_print(&a->edit, &text);
        snprintf(buf, buf_bytes, "%s", tide_text_str(&text));
        tide_text_deinit(&text);
        break;
    case SAVES:
        tide_tui_bytes(saves, buf, buf_bytes);
        break;
    case SHARE:
        tide_tui_percent(saves, s->a->plan_bytes, buf, buf_bytes);
        return TIDE_TUI_ROLE_DIM;
    case BYTES:
        tide_tui_bytes(a->bytes, buf, buf_bytes);
        break;
    case RUNS: // whether a run can follow it
        snprintf(buf, buf_bytes, "%s", a->runs == TIDE_RUNS_UNKNOWN ? "?" : tide_runs_name(a->runs));
        return a->runs == TIDE_RUNS_YES ? TIDE_TUI_ROLE_TEXT : TIDE_TUI_ROLE_DIM;
    default:
        tide_tui_bytes(a->bound_bytes, buf, buf_bytes);
        return TIDE_TUI_ROLE_DIM;
    }
    return TIDE_TUI_ROLE_TEXT;
}

bool tide_tui_table_of_whatif(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out) {
    if (!tide_tui_list_begin(s, TIDE_TUI_LIST_WHATIF, body, out)) return false;
    out->t.columns = columns;
    out->t.n_columns = N_COLUMNS;
    out->t.cell = cell;
    out->r = tide_tui_whatif_divide(s, out->r).advice;
    return true;
}

static void draw_advice(const tide_tui_view *v, tide_tui_rect r) {
    const tide_tui_scene *s = v->scene;
    if (s->n_advice == 0) {
        const char *busy = s->busy[TIDE_TUI_PANE_WHATIF];
        char text[160];
        snprintf(text, sizeof text, busy[0] != '\0' ? "Looking for advice: %s." : "No single change lowers the plan.%s",
                 busy);
        tide_tui_lines p = {.v = v, .r = {r.x + 1, r.y, r.w - 2, r.h}};
        tide_tui_lines_wrap(&p, 0, text, TIDE_TUI_ROLE_DIM);
        return;
    }
    tide_tui_list_table list;
    if (tide_tui_table_of_whatif(s, tide_tui_body_of(s, TIDE_TUI_PANE_WHATIF), &list))
        tide_tui_draw_table_of(v, r, &list.t);
}

// ---- the pane ----

static void draw_keys(const tide_tui_view *v, tide_tui_rect r) {
    static const tide_tui_action actions[] = {TIDE_TUI_APPLY, TIDE_TUI_UNDO, TIDE_TUI_EDIT, TIDE_TUI_SAVE_PLAN};
    if (r.h <= 0) return;
    int x = r.x;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        char key[TIDE_TUI_WORD];
        const tide_tui_binding *b = tide_tui_binding_of(actions[i]);
        tide_tui_key_of(actions[i], key, sizeof key);
        const int need = tide_tui_text_width(v->glyphs, key) + 1 + tide_tui_text_width(v->glyphs, b->name);
        if (x + need > r.x + r.w) break;
        int at = x + tide_tui_text(v, x, r.y, need, key, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_KEY) + 1;
        at += tide_tui_text(v, at, r.y, need, b->name, TIDE_TUI_CUT_END, TIDE_TUI_ROLE_DIM);
        x = at + 3;
    }
}

tide_tui_whatif_parts tide_tui_whatif_divide(const tide_tui_scene *s, tide_tui_rect body) {
    const int n_edits = (int)s->state->n_edits;
    int result_h = body.w >= 90 ? 1 : 2;
    int edits_h = n_edits + result_h, left = body.h;
    tide_tui_whatif_parts parts = {.edits = {body.x + 1, body.y, body.w - 2, 0}, .advice = body};
    if (left < 4) { // only what is asked for most: with edits what they make of it, without them advice
        parts.edits.h = n_edits > 0 ? left - (left > 2 ? 2 : 0) : 0;
    } else {
        if (left >= 5) parts.keys = (tide_tui_rect){body.x + 1, body.y + body.h - 1, body.w - 2, 1}, left--;
        if (edits_h > left / 2) edits_h = left / 2;
        parts.edits.h = n_edits == 0 && left < 8 ? 0 : edits_h; // without edits advice comes first
    }
    left -= parts.edits.h;
    parts.advice = (tide_tui_rect){body.x, body.y + parts.edits.h, body.w, left};
    return parts;
}

void tide_tui_draw_whatif(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_tui_state *st = s->state;
    char title[64], facts[160] = "", a[TIDE_TUI_WORD], b[TIDE_TUI_WORD];
    if (st->n_edits == 0) {
        snprintf(title, sizeof title, "what would lower the plan");
    } else {
        snprintf(title, sizeof title, "%zu edit%s", st->n_edits, st->n_edits == 1 ? "" : "s");
    }
    if (s->a->has_plan && st->b_is_whatif && s->b != NULL) {
        snprintf(facts, sizeof facts, "plan %s -> %s", tide_tui_bytes(s->a->plan_bytes, a, sizeof a),
                 tide_tui_bytes(s->b->plan_bytes, b, sizeof b));
    } else if (s->a->has_plan) {
        snprintf(facts, sizeof facts, "plan %s", tide_tui_bytes(s->a->plan_bytes, a, sizeof a));
    }
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_WHATIF, title, facts);
    const bool nothing = s->n_advice == 0 && st->n_edits == 0;
    const bool has_state = s->error[TIDE_TUI_PANE_WHATIF][0] != '\0' || s->busy[TIDE_TUI_PANE_WHATIF][0] != '\0';
    if (!s->a->has_plan) { // before the error of the query for advice, which says the same less plainly
        tide_tui_lines p = {.v = v, .r = {body.x + 1, body.y, body.w - 2, body.h}};
        tide_tui_lines_wrap(&p, 0,
                            "What-if changes a memory plan, and this input has none. Open a plan, a model, or a trace "
                            "of a planned run.",
                            TIDE_TUI_ROLE_DIM);
        return;
    }
    if (nothing && has_state) {
        tide_tui_draw_state_of(v, TIDE_TUI_PANE_WHATIF, body, "");
        return;
    }
    const tide_tui_whatif_parts parts = tide_tui_whatif_divide(s, body);
    draw_edits(v, parts.edits);
    draw_advice(v, parts.advice);
    draw_keys(v, parts.keys);
}
