// SPDX-License-Identifier: MIT
//
// Panes of answers as tables: pools and leaks, explanation, comparison, what-if. See sheet.h.
#include <stdio.h>

#include "tui/sheet_internal.h"

#define TEXT TIDE_UNIT_TEXT
#define COUNT TIDE_UNIT_COUNT
#define BYTES TIDE_UNIT_BYTES
#define CHANGE TIDE_UNIT_CHANGE
#define TIME TIDE_UNIT_TIME
#define FLAG TIDE_UNIT_FLAG

/// Text that an answer puts together: kept in the caller's buffer.
static tide_tui_value made(tide_text *text, char *buf) {
    (void)snprintf(buf, TIDE_TUI_VALUE_BYTES, "%s", tide_text_str(text));
    tide_text_deinit(text);
    return tide__text(buf);
}

// ---- pools ----

static const tide_column pool_fields[] = {
    {"pool", "pool", TEXT},
    {"device", "device", TEXT},
    {"kind", "kind", TEXT},
    {"reserved_bytes", "taken from the system", BYTES},
    {"active_bytes", "held by blocks", BYTES},
    {"requested_bytes", "asked for", BYTES},
    {"cached_bytes", "cached", BYTES},
    {"unused_bytes", "used by nobody in the window", BYTES},
    {"unused_since", "so much cached since", TIME},
    {"largest_free_bytes", "largest free stretch", BYTES},
    {"peak_reserved_bytes", "most taken", BYTES},
    {"peak_active_bytes", "most held", BYTES},
    {"segments", "segments", COUNT},
    {"blocks", "blocks", COUNT},
    {"tells_segments", "tells what it takes", FLAG},
};

static tide_tui_value get_pool(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_pool *p = &s->pools->items[row];
    const uint64_t bytes[] = {p->reserved_bytes, p->active_bytes, p->requested_bytes, p->cached_bytes, p->unused_bytes};
    switch (field) {
    case 0:
        return tide__text(p->name);
    case 1:
        return tide__text(p->device);
    case 2:
        return tide__text(tide_memory_kind_name(p->kind));
    case 8:
        return tide__time(p->unused_since);
    case 9:
        return tide__bytes(p->largest_free_bytes);
    case 10:
        return tide__bytes(p->peak_reserved_bytes);
    case 11:
        return tide__bytes(p->peak_active_bytes);
    case 12:
        return p->tells_segments ? tide__count(p->n_segments) : tide__unknown();
    case 13:
        return tide__count(p->n_blocks);
    case 14:
        return tide__flag(p->tells_segments);
    default:
        return tide__bytes(bytes[field - 3]);
    }
}

static const tide_column leak_fields[] = {
    {"name", "leak", TEXT},
    {"owner", "made by", TEXT},
    {"kind", "kind", TEXT},
    {"device", "device", TEXT},
    {"blocks", "blocks", COUNT},
    {"bytes", "bytes", BYTES},
    {"first", "the first", TIME},
    {"last", "the last", TIME},
    {"allocated", "made in all", COUNT},
    {"grows", "grows", FLAG},
    {"uncertain", "events were lost: may have been freed", FLAG},
};

static tide_tui_value get_leak(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_leak *l = &s->leaks->items[row];
    switch (field) {
    case 0:
        return tide__text(l->name);
    case 1:
        return tide__text(l->owner);
    case 2:
        return tide__text(tide_memory_kind_name(l->kind));
    case 3:
        return tide__text(l->device);
    case 4:
        return tide__count(l->n);
    case 5:
        return tide__bytes(l->bytes);
    case 6:
        return tide__time(l->first);
    case 7:
        return tide__time(l->last);
    case 8:
        return tide__count(l->n_allocated);
    case 9:
        return tide__flag(l->grows);
    default:
        return tide__flag(s->leaks->n_lost > 0);
    }
}

// ---- explanation ----

static const tide_column part_fields[] = {{"part", "part", TEXT}, {"bytes", "bytes", BYTES}};
static const tide_column share_fields[] = {
    {"name", "name", TEXT}, {"items", "items", COUNT}, {"bytes", "bytes", BYTES}};
static const tide_column live_fields[] = {{"name", "name", TEXT},
                                          {"owner", "made by", TEXT},
                                          {"kind", "kind", TEXT},
                                          {"size_bytes", "size", BYTES},
                                          {"counts_bytes", "counts", BYTES}};
static const tide_column without_fields[] = {{"name", "without", TEXT},
                                             {"peak_bytes", "the peak would be", BYTES},
                                             {"at", "at", TIME},
                                             {"step", "while it runs", TEXT},
                                             {"items", "items", COUNT}};

static tide_tui_value get_part(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    return field == 0 ? tide__text(tide_part_name((tide_part_kind)row)) : tide__bytes(s->explanation->parts[row]);
}

static tide_tui_value of_group(const tide_explain_group *g, size_t field) {
    return field == 0 ? tide__text(g->key) : field == 1 ? tide__count(g->n) : tide__bytes(g->bytes);
}
static tide_tui_value get_owner(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    return of_group(&s->explanation->by_owner[row], field);
}
static tide_tui_value get_kind(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    return of_group(&s->explanation->by_kind[row], field);
}

static tide_tui_value get_live(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_live_item *l = &s->explanation->live.items[row];
    switch (field) {
    case 0:
        return tide__text(l->site.name);
    case 1:
        return tide__text(l->site.owner);
    case 2:
        return tide__text(tide_memory_kind_name(l->shape.kind));
    case 3:
        return tide__bytes(l->shape.size_bytes);
    default:
        return tide__bytes(l->counts_bytes);
    }
}

static tide_tui_value get_without(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    const tide_without *w = &s->explanation->without[row];
    switch (field) {
    case 0:
        return tide__text(s->explanation->live.items[w->live].site.name);
    case 1:
        return tide__bytes(w->peak_bytes);
    case 2:
        return tide__time(w->at.t);
    case 3:
        return tide__text(w->step);
    default:
        return tide__count(w->n_alike);
    }
}

static size_t explain_sheets(const tide_tui_scene *s, tide_tui_sheet *out) {
    const tide_explanation *e = s->explanation;
    out[0] = TIDE__SHEET(s, "parts", part_fields, e != NULL ? (size_t)TIDE_N_PARTS : 0, get_part);
    out[1] = TIDE__SHEET(s, "by_owner", share_fields, e != NULL ? e->n_by_owner : 0, get_owner);
    out[2] = TIDE__SHEET(s, "by_kind", share_fields, e != NULL ? e->n_by_kind : 0, get_kind);
    out[3] = TIDE__SHEET(s, "live", live_fields, e != NULL ? e->live.n : 0, get_live);
    out[4] = TIDE__SHEET(s, "without", without_fields, e != NULL ? e->n_without : 0, get_without);
    return 5;
}

// ---- comparison ----

static const tide_column diff_fields[] = {
    {"name", "name", TEXT},
    {"owner", "made by", TEXT},
    {"what", "what", TEXT},
    {"a_bytes", "in A", BYTES},
    {"b_bytes", "in B", BYTES},
    {"change_bytes", "change", CHANGE},
    {"a_at_bytes", "held in A", BYTES},
    {"b_at_bytes", "held in B", BYTES},
};
static const tide_column step_fields[] = {
    {"name", "name", TEXT}, {"a_bytes", "in A", BYTES}, {"b_bytes", "in B", BYTES}, {"change_bytes", "change", CHANGE}};

static tide_tui_value get_diff(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    const tide_diff_row *r = &s->diff->rows[row];
    const uint64_t a_at = r->what & TIDE_DIFF_ADDED ? 0 : r->a_at_bytes,
                   b_at = r->what & TIDE_DIFF_REMOVED ? 0 : r->b_at_bytes;
    switch (field) {
    case 0:
        return tide__text(r->name);
    case 1:
        return tide__text(r->owner);
    case 2:
        return tide__text(tide_diff_changes(r->what, ",", "unchanged", buf, TIDE_TUI_VALUE_BYTES));
    case 3:
        return r->what & TIDE_DIFF_ADDED ? tide__unknown() : tide__bytes(r->a_bytes);
    case 4:
        return r->what & TIDE_DIFF_REMOVED ? tide__unknown() : tide__bytes(r->b_bytes);
    case 5:
        return tide__change(a_at, b_at);
    case 6:
        return tide__bytes(a_at);
    default:
        return tide__bytes(b_at);
    }
}

static tide_tui_value of_step(const tide_diff_step *d, size_t field) {
    switch (field) {
    case 0:
        return tide__text(d->key);
    case 1:
        return tide__bytes(d->a_bytes);
    case 2:
        return tide__bytes(d->b_bytes);
    default:
        return tide__change(d->a_bytes, d->b_bytes);
    }
}
static tide_tui_value get_owner_step(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    return of_step(&s->diff->by_owner[row], field);
}
static tide_tui_value get_kind_step(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)buf;
    return of_step(&s->diff->by_kind[row], field);
}

static size_t compare_sheets(const tide_tui_scene *s, tide_tui_sheet *out) {
    const tide_diff *d = s->diff;
    out[0] = TIDE__SHEET(s, "rows", diff_fields, d != NULL ? d->n : 0, get_diff);
    out[1] = TIDE__SHEET(s, "by_owner", step_fields, d != NULL ? d->n_by_owner : 0, get_owner_step);
    out[2] = TIDE__SHEET(s, "by_kind", step_fields, d != NULL ? d->n_by_kind : 0, get_kind_step);
    return 3;
}

// ---- what-if ----

static const tide_column advice_fields[] = {{"edit", "edit", TEXT},
                                            {"plan_bytes", "the plan would take", BYTES},
                                            {"change_bytes", "change", CHANGE},
                                            {"bound_bytes", "lower bound", BYTES}};
static const tide_column edit_fields[] = {{"edit", "edit", TEXT}};

static tide_tui_value get_advice(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    const tide_edit_advice *a = &s->advice[row];
    tide_text text = {0};
    switch (field) {
    case 0:
        tide_edit_print(&a->edit, &text);
        return made(&text, buf);
    case 1:
        return tide__bytes(a->bytes);
    case 2:
        return tide__change(s->a->has_plan ? s->a->plan_bytes : TIDE_UNKNOWN_BYTES, a->bytes);
    default:
        return tide__bytes(a->bound_bytes);
    }
}

static tide_tui_value get_edit(const tide_tui_scene *s, size_t row, size_t field, char *buf) {
    (void)field;
    tide_text text = {0};
    tide_edit_print(&s->state->edits[row], &text);
    return made(&text, buf);
}

size_t tide__sheets_of_answers(const tide_tui_scene *s, tide_tui_pane pane, tide_tui_sheet out[TIDE_TUI_MAX_SHEETS]) {
    switch (pane) {
    case TIDE_TUI_PANE_POOLS:
        out[0] = TIDE__SHEET(s, "rows", pool_fields, s->pools != NULL ? s->pools->n : 0, get_pool);
        out[1] = TIDE__SHEET(s, "leaks", leak_fields, s->leaks != NULL ? s->leaks->n : 0, get_leak);
        return 2;
    case TIDE_TUI_PANE_EXPLAIN:
        return explain_sheets(s, out);
    case TIDE_TUI_PANE_COMPARE:
        return compare_sheets(s, out);
    case TIDE_TUI_PANE_WHATIF:
        out[0] = TIDE__SHEET(s, "advice", advice_fields, s->n_advice, get_advice);
        out[1] = TIDE__SHEET(s, "edits", edit_fields, s->state->n_edits, get_edit);
        return 2;
    default:
        return 0;
    }
}
