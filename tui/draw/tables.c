// SPDX-License-Identifier: MIT
//
// Two panes that are a table each. See draw.h.
//
// TABLE: what is alive at the cursor, largest first, so that its first lines are what makes the peak.
//
//     == TABLE: live at step 5 (conv1), peak ============ 12 tensors, 3.20 MiB ==
//       name         op     kind            size   share  in all   born    place
//     > conv1_out    conv1  Workspace   1.00 MiB  34.0 %  34.0 %  step 1       0
//
// OPERATORS: what runs, what it makes and frees, how much lives meanwhile.
//
//     == OPERATORS: 12 steps, highest conv2 ==
//       step  operator       makes      frees       live   at the cursor
//     >    3  relu1       1.00 MiB        0 B   3.20 MiB   <- cursor
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/draw/draw.h"
#include "tui/draw/format.h"

// ---- what is alive ----

enum { NAME, OPERATOR, KIND, SIZE, SHARE, IN_ALL, BORN, PLACE, CAME_OUT, N_COLUMNS };

static const tide_tui_column columns[N_COLUMNS] = {
    [NAME] = {.title = "name", .key = "name", .min_w = 18, .max_w = 48, .stretch = true},
    [OPERATOR] = {.title = "op", .key = "owner", .min_w = 8, .max_w = 32, .stretch = true, .rank = 4},
    [KIND] = {.title = "kind", .key = "kind", .rank = 5},
    [SIZE] = {.title = "size", .key = "counts_bytes", .min_w = 10, .right = true},
    [SHARE] = {.title = "share", .min_w = 7, .right = true, .rank = 1},
    [IN_ALL] = {.title = "in all", .min_w = 7, .right = true, .rank = 2},
    [BORN] = {.title = "born", .key = "begin", .right = true, .rank = 3},
    [PLACE] = {.title = "place", .key = "place_bytes", .right = true, .rank = 7},
    [CAME_OUT] = {.title = "came out", .key = "actual_bytes", .min_w = 10, .right = true, .rank = 6},
};

/// Sum of the rows to this one: rows are asked for from top to bottom, so that it costs nothing.
static uint64_t sum_to(const tide_tui_list_table *list, size_t row) {
    tide_tui_running_sum *r = list->so_far;
    if (row + 1 < r->to) *r = (tide_tui_running_sum){0};
    while (r->to <= row) r->sum += list->scene->live->items[r->to++].counts_bytes;
    return r->sum;
}

static void say_place(const tide_live_item *item, bool is_trace, char *buf, size_t buf_bytes) {
    if (item->place == TIDE_NO_OFFSET) {
        snprintf(buf, buf_bytes, "-");
    } else if (is_trace) {
        snprintf(buf, buf_bytes, "0x%" PRIx64, item->place);
    } else {
        tide_tui_exact(item->place, buf, buf_bytes);
    }
}

static tide_tui_role cell(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes) {
    const tide_tui_list_table *list = ctx;
    const tide_live_items *live = list->scene->live;
    const tide_live_item *item = &live->items[row];
    const tide_subject_facts *f = list->scene->a;
    char size[TIDE_TUI_WORD];
    buf[0] = '\0';
    switch (column) {
    case NAME:
        snprintf(buf, buf_bytes, "%s", tide_tui_named(item->site.name));
        return (tide_tui_role)(TIDE_TUI_ROLE_BAR + (int)item->shape.fill);
    case OPERATOR:
        snprintf(buf, buf_bytes, "%s", item->site.owner != NULL ? item->site.owner : "");
        break;
    case KIND:
        snprintf(buf, buf_bytes, "%s", tide_memory_kind_name(item->shape.kind));
        break;
    case SIZE:
        tide_tui_bytes(item->counts_bytes, size, sizeof size);
        snprintf(buf, buf_bytes, "%s%s", tide_size_is_bounded(&item->size) ? "<=" : "", size);
        break;
    case CAME_OUT:
        if (item->size.n > 0) tide_tui_bytes(item->size.bytes, buf, buf_bytes);
        break;
    case SHARE:
        tide_tui_percent(item->counts_bytes, live->bytes, buf, buf_bytes);
        break;
    case IN_ALL:
        tide_tui_percent(sum_to(list, row), live->bytes, buf, buf_bytes);
        return TIDE_TUI_ROLE_DIM;
    case BORN:
        tide_tui_when(f, item->begin, buf, buf_bytes);
        break;
    default:
        say_place(item, f->is_trace, buf, buf_bytes);
        break;
    }
    return TIDE_TUI_ROLE_TEXT;
}

/// The letter that the map has for the item.
static uint32_t mark_of(const void *ctx, size_t row) {
    const tide_tui_list_table *list = ctx;
    const uint32_t item = list->scene->live->items[row].item;
    return list->letters != NULL ? tide_tui_letter_of(list->letters, item) : 0;
}

bool tide_tui_table_of_live(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out) {
    if (!tide_tui_list_begin(s, TIDE_TUI_LIST_TABLE, body, out)) return false;
    // Without the focus, the row is marked only if it is the selected item, which the details show.
    const bool focused = s->state->focus == TIDE_TUI_PANE_TABLE;
    const bool is_item = s->state->item != TIDE_NO_ITEM && s->live->items[out->t.row].item == s->state->item;
    out->t.columns = columns;
    out->t.n_columns =
        s->a->is_trace && s->a->n_bounded > 0 ? N_COLUMNS : CAME_OUT; // a plan has no sizes that came out
    out->t.has_selection = focused || is_item;
    out->t.cell = cell;
    out->t.mark = mark_of;
    return true;
}

/// Rows that are the unused rest of a buffer, and no block.
static size_t count_unused(const tide_live_items *live) {
    size_t n = 0;
    for (size_t i = 0; i < live->n; i++) n += live->items[i].is_unused;
    return n;
}

void tide_tui_draw_table(const tide_tui_view *v) {
    const tide_tui_scene *s = v->scene;
    const tide_live_items *live = s->live;
    char when[128], title[192], size[TIDE_TUI_WORD], n[TIDE_TUI_WORD], facts[160] = "";
    const tide_moment at = live != NULL ? live->at : (tide_moment){s->state->cursor, s->state->cursor_event};
    const tide_moment highest = s->a->peak;
    const bool peak = at.t == highest.t &&
                      (!s->a->is_trace || at.event == highest.event || live == NULL || live->bytes == s->a->peak_bytes);
    const int room = s->layout->panes[TIDE_TUI_PANE_TABLE].w - 4 - (int)strlen("table: ");
    for (int form = 0; form < 2; form++) { // without the step rather than with a word that is cut
        snprintf(title, sizeof title, "live at %s%s",
                 form == 0 ? tide_tui_when_named(s->a, at.t, when, sizeof when)
                           : tide_tui_when(s->a, at.t, when, sizeof when),
                 peak ? ", peak" : "");
        if (tide_tui_text_width(v->glyphs, title) <= room) break;
    }
    const size_t n_unused = live != NULL ? count_unused(live) : 0, n_items = live != NULL ? live->n - n_unused : 0;
    if (live != NULL)
        snprintf(facts, sizeof facts, "%s %s%s, %s", tide_tui_exact(n_items, n, sizeof n),
                 tide_tui_item_word(s->a, n_items), n_unused > 0 ? " and what is unused" : "",
                 tide_tui_bytes(live->bytes, size, sizeof size));
    const tide_tui_rect body = tide_tui_heading(v, TIDE_TUI_PANE_TABLE, title, facts);
    const bool none = live == NULL || live->n == 0;
    if (none && tide_tui_draw_state_of(v, TIDE_TUI_PANE_TABLE, body,
                                       live != NULL ? "Nothing is alive at the cursor." : "Nothing is known yet."))
        return;
    tide_tui_list_table list;
    if (!tide_tui_table_of_live(s, body, &list)) return;
    tide_tui_tints letters;
    tide_tui_letters_make(v, &letters);
    list.letters = &letters;
    tide_tui_draw_table_of(v, list.r, &list.t);
}

// ---- operators ----

enum { STEP, OPERATOR_NAME, MAKES, FREES, LIVE_BYTES, OF_PEAK, HERE, BODY, N_STEP_COLUMNS };

static const tide_tui_column step_columns[N_STEP_COLUMNS] = {
    [STEP] = {.title = "step", .key = "step", .right = true},
    [OPERATOR_NAME] = {.title = "operator", .key = "operator", .min_w = 8, .max_w = 40, .stretch = true},
    [MAKES] = {.title = "makes", .key = "makes_bytes", .min_w = 10, .right = true, .rank = 2},
    [FREES] = {.title = "frees", .key = "frees_bytes", .min_w = 10, .right = true, .rank = 3},
    [LIVE_BYTES] = {.title = "live", .key = "live_bytes", .min_w = 10, .right = true},
    [OF_PEAK] = {.title = "of peak", .min_w = 7, .right = true, .rank = 4},
    [HERE] = {.title = "", .min_w = 8, .rank = 1},
    [BODY] = {.title = "in", .key = "body", .min_w = 8, .max_w = 40, .rank = 5},
};

static tide_tui_role step_cell(const void *ctx, size_t row, int column, char *buf, size_t buf_bytes) {
    const tide_tui_scene *s = ((const tide_tui_list_table *)ctx)->scene;
    const tide_tui_operator *op = &s->operators[row];
    const bool here = op->step == s->cursor_step, highest = op->live_bytes == s->a->peak_bytes;
    switch (column) {
    case STEP:
        snprintf(buf, buf_bytes, "%zu", op->step);
        break;
    case OPERATOR_NAME:
        snprintf(buf, buf_bytes, "%s", tide_tui_named(op->name));
        break;
    case MAKES:
        tide_tui_bytes(op->makes_bytes, buf, buf_bytes);
        break;
    case FREES:
        tide_tui_bytes(op->frees_bytes, buf, buf_bytes);
        break;
    case LIVE_BYTES:
        tide_tui_bytes(op->live_bytes, buf, buf_bytes);
        break;
    case OF_PEAK:
        tide_tui_percent(op->live_bytes, s->a->peak_bytes, buf, buf_bytes);
        break;
    case BODY:
        tide_lifetimes_body_of(&s->a->plan->lifetimes, s->a->step_number[op->step], buf, buf_bytes);
        break;
    default:
        snprintf(buf, buf_bytes, "%s%s%s", here ? "cursor" : "", here && highest ? ", " : "", highest ? "peak" : "");
    }
    if (column == HERE) return here ? TIDE_TUI_ROLE_CURSOR : TIDE_TUI_ROLE_PEAK;
    return column == MAKES && op->makes_bytes == 0   ? TIDE_TUI_ROLE_DIM
           : column == FREES && op->frees_bytes == 0 ? TIDE_TUI_ROLE_DIM
                                                     : TIDE_TUI_ROLE_TEXT;
}

bool tide_tui_table_of_operators(const tide_tui_scene *s, tide_tui_rect body, tide_tui_list_table *out) {
    if (!tide_tui_list_begin(s, TIDE_TUI_LIST_OPERATORS, body, out)) return false;
    out->t.columns = step_columns;
    out->t.n_columns = s->a->plan != NULL && s->a->plan->lifetimes.n_regions > 0 ? N_STEP_COLUMNS : BODY;
    out->t.cell = step_cell;
    return true;
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
    tide_tui_list_table list;
    if (tide_tui_table_of_operators(s, body, &list)) tide_tui_draw_table_of(v, list.r, &list.t);
}
