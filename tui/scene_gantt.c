// SPDX-License-Identifier: MIT
//
// The rows that are on the screen, with their spans, and the matches of the search. See desk.h.
#include <string.h>

#include "core/base/host_alloc.h"
#include "tui/desk.h"

/// Beyond that many members, matches are counted by site alone and not ranked.
enum { MAX_RANKED = 1000000 };

static size_t first_member(const tide_rows *rows, size_t row) { return rows->first != NULL ? rows->first[row] : row; }
static size_t last_member(const tide_rows *rows, size_t row) {
    return rows->first != NULL ? (size_t)rows->first[row + 1] - 1 : row;
}

// ---- search ----

static bool is_match(const tide_tui_desk *d, const tide_items *items, uint32_t item) {
    if (d->match_bits == NULL) return false;
    const uint32_t site = tide_items_site_of(items, item);
    return (d->match_bits[site / 8] >> (site % 8) & 1) != 0;
}

static tide_status search(tide__frame *f, const tide_items *items, uint64_t rows_key) {
    tide_tui_desk *d = f->desk;
    const uint64_t key = tide__key(tide__key_text(tide__key(0, d->items_serial), f->st->search), d->a_serial);
    if (d->match_key != key) {
        tide_host_free(d->match_bits);
        d->match_bits = NULL;
        d->n_matches = d->match_at = 0;
        d->match_key = key;
        d->match_at_key = 0;
        if (f->st->search[0] == '\0') return TIDE_OK;
        tide_error why = TIDE_ERROR_INIT;
        const tide_status st = tide_items_search(items, f->st->search, &d->match_bits, &d->n_matches, &why);
        if (st == TIDE_ERR_NOMEM && f->err != NULL) *f->err = why;
        if (st == TIDE_ERR_NOMEM) return st;
        if (st != TIDE_OK) d->match_bits = NULL; // said when it was typed
    }
    const tide_rows *rows = f->out->rows;
    const uint64_t at_key = tide__key(tide__key(key, rows_key), f->st->item);
    if (d->match_bits != NULL && rows->n_members <= MAX_RANKED && d->match_at_key != at_key) {
        size_t n = 0;
        d->match_at = 0;
        for (size_t i = 0; i < rows->n_members; i++) {
            n += is_match(d, items, rows->members[i]);
            if (rows->members[i] == f->st->item && is_match(d, items, f->st->item)) d->match_at = n;
        }
        d->n_matches = n;
        d->match_at_key = at_key;
    }
    f->out->match_bits = d->match_bits;
    f->out->n_matches = d->n_matches;
    f->out->match_at = d->match_at;
    return TIDE_OK;
}

// ---- rows ----

static int where(const tide__frame *f, const tide_items *items, size_t row, const tide_row_span *spans, int n) {
    for (int i = 0; i < n; i++) {
        if (spans[i].n > 0) return 0;
    }
    const tide_rows *rows = f->out->rows;
    const uint32_t first = rows->members[first_member(rows, row)];
    return tide_items_begin(items, first) >= f->st->window.end ? 1 : -1;
}

static void fill_row(const tide__frame *f, const tide_items *items, size_t row, tide_tui_gantt_row *out) {
    const tide_rows *rows = f->out->rows;
    const size_t first = first_member(rows, row), last = last_member(rows, row);
    const uint32_t item = rows->members[first];
    const tide_item_site *site = tide_items_site(items, item);
    const tide_item_shape *shape = tide_items_shape(items, item);
    const bool is_group = rows->keys != NULL;
    out->item = item;
    out->n_members = (uint32_t)(last - first + 1);
    out->name = is_group ? rows->keys[row] : site->name;
    out->owner = is_group ? "" : site->owner;
    out->bytes = is_group && rows->bytes != NULL ? rows->bytes[row] : shape->size_bytes;
    out->fill = shape->fill;
}

static tide_status make_rows(tide__frame *f, const tide_items *items, uint64_t key) {
    tide_tui_desk *d = f->desk;
    const tide_rows *rows = f->out->rows;
    const int w = f->layout->bars.w > 0 ? f->layout->bars.w : 0;
    const int columns = w < TIDE_TUI_MAX_COLUMNS ? w : TIDE_TUI_MAX_COLUMNS;
    size_t n = f->layout->bars.h > 0 ? (size_t)f->layout->bars.h : 0;
    if (f->st->top >= rows->n)
        n = 0;
    else if (n > rows->n - f->st->top)
        n = rows->n - f->st->top;
    if (d->gantt_key == key && d->n_gantt == n) return TIDE_OK;
    d->gantt_key = 0;
    TIDE_TRY(tide__room(&d->gantt, &d->gantt_cap, n, sizeof *d->gantt, f->err));
    TIDE_TRY(tide__room(&d->spans, &d->spans_cap, n * (size_t)w, sizeof *d->spans, f->err));
    if (n > 0 && w > 0) memset(d->spans, 0, n * (size_t)w * sizeof *d->spans);
    for (size_t i = 0; i < n; i++) {
        tide_tui_gantt_row *row = &d->gantt[i];
        *row = (tide_tui_gantt_row){.spans = d->spans + i * (size_t)w};
        fill_row(f, items, f->st->top + i, row);
        if (columns > 0)
            tide_rows_spans(rows, items, f->st->top + i, f->st->window.begin, f->st->window.end, (size_t)columns,
                            row->spans);
        row->where = where(f, items, f->st->top + i, row->spans, columns);
    }
    d->n_gantt = n;
    d->gantt_key = key;
    return TIDE_OK;
}

tide_status tide__scene_gantt(tide__frame *f) {
    tide_tui_desk *d = f->desk;
    const tide_items *items = tide_subject_items(f->st->a);
    if (f->out->rows == NULL || items == NULL) {
        d->gantt_key = 0; // its names lay in rows that are gone
        return TIDE_OK;
    }
    TIDE_TRY(search(f, items, d->rows_seen));
    if (!tide__is_shown(f, TIDE_TUI_PANE_GANTT)) return TIDE_OK;
    uint64_t key = tide__key(tide__key(d->rows_seen, d->items_serial), f->st->top);
    key = tide__key(tide__key(key, (uint64_t)f->st->window.begin), (uint64_t)f->st->window.end);
    key = tide__key(tide__key(key, (uint64_t)f->layout->bars.w), (uint64_t)f->layout->bars.h);
    TIDE_TRY(make_rows(f, items, key));
    for (size_t i = 0; i < d->n_gantt; i++) d->gantt[i].is_match = is_match(d, items, d->gantt[i].item);
    f->out->gantt = d->gantt;
    f->out->n_gantt = d->n_gantt;
    return TIDE_OK;
}
