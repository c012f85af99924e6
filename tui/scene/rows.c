// SPDX-License-Identifier: MIT
//
// Rows: items are loaded, filtered, sorted and grouped, by the worker thread when there are many; then the selected row
// and the scrolling are settled. Then the rows on the screen with their spans, and the matches of the search. See
// scene_parts.h.
//
// The worker's subject loads the table of items; the view's A shares it. Rows and table come in one result, so that an
// index never meets the wrong table. Until new rows are there the previous ones stay on the screen.
#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

enum { MAX_FILTERS = TIDE_TUI_MAX_FILTERS + 3 };

typedef struct rows_query {
    tide_rows_options opt;
    tide_filter *filters[MAX_FILTERS];
    size_t n_filters;
    tide_rows rows;
    bool has_rows;
    tide_items_hold *hold; ///< of the table that the rows were made of
} rows_query;

static void release_rows(void *ctx) {
    rows_query *r = ctx;
    if (r->has_rows) tide_rows_deinit(&r->rows);
    for (size_t i = 0; i < r->n_filters; i++) tide_filter_destroy(r->filters[i]);
    tide_items_let_go(r->hold);
    tide_host_free(r);
}

static tide_status run_rows(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                            tide_error *err) {
    (void)b;
    rows_query *r = ctx;
    TIDE_TRY(tide_subject_load(a, progress, err));
    const tide_filter *filters[MAX_FILTERS];
    for (size_t i = 0; i < r->n_filters; i++) filters[i] = r->filters[i];
    r->opt.filters = filters;
    r->opt.n_filters = r->n_filters;
    TIDE_TRY(tide_rows_make(a, &r->opt, progress, &r->rows, err));
    r->opt.filters = NULL;
    r->has_rows = true;
    r->hold = tide_subject_hold_items(a);
    return TIDE_OK;
}

// ---- the query ----

static tide_status add_filter(tide__frame *f, rows_query *r, const char *text) {
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = tide_filter_parse(text, f->out->a->axis, &r->filters[r->n_filters], &why);
    if (st == TIDE_OK) {
        r->n_filters++;
        return TIDE_OK;
    }
    TIDE_TRY(tide__pass_no_memory(st, &why, f->err));
    char text_of[256];
    tide__error_text(text_of, sizeof text_of, &why);
    tide__set_pane_error(f, TIDE_TUI_PANE_GANTT, text_of);
    return TIDE_OK;
}

static tide_status make_query(tide__frame *f, rows_query **out) {
    const tide_tui_state *st = f->st;
    TIDE_TRY(TIDE_NEW(out, 1, f->err, "for a question"));
    rows_query *r = *out;
    r->opt = (tide_rows_options){.sort = tide_tui_row_sort(st),
                                 .reverse = st->reverse,
                                 .persistent_last = true,
                                 .group = st->group,
                                 .cursor = st->cursor,
                                 .only_group_of = st->only_group_of};
    tide_status got = TIDE_OK;
    for (size_t i = 0; got == TIDE_OK && !st->filters_off && i < st->n_filters; i++)
        got = add_filter(f, r, st->filters[i]);
    if (got == TIDE_OK && st->hides_persistent) got = add_filter(f, r, "!persistent");
    if (got == TIDE_OK && st->is_opening) got = add_filter(f, r, "alive@peak");
    if (got == TIDE_OK && st->folds_weights) got = add_filter(f, r, "kind!=persistent");
    if (got != TIDE_OK) {
        release_rows(r);
        *out = NULL;
    }
    return got;
}

/// What rows depend on; on the cursor only when a filter names it.
static uint64_t rows_key(const tide__frame *f) {
    const tide_tui_state *st = f->st;
    uint64_t key = tide__key(tide__key(0, f->cache->a_serial), st->rows_wanted);
    key = tide__key(key, (uint64_t)tide_tui_row_sort(st));
    key = tide__key(key, (st->reverse ? 1U : 0U) | (st->hides_persistent ? 2U : 0U) | (st->folds_weights ? 4U : 0U) |
                             (st->is_opening ? 8U : 0U));
    key = tide__key(tide__key(key, (uint64_t)st->group), st->only_group_of);
    for (size_t i = 0; !st->filters_off && i < st->n_filters; i++) {
        key = tide__key_text(key, st->filters[i]);
        if (strstr(st->filters[i], "@cursor") != NULL) key = tide__key(key, (uint64_t)st->cursor);
    }
    return key;
}

/// Millions of rows are too many to read: they are grouped unless the user chose otherwise.
static void choose_group(tide__frame *f) {
    const bool many = f->out->a->n_items >= (uint64_t)TIDE_ROWS_GROUP_FROM;
    if (!f->st->group_chosen && many && f->st->group == TIDE_ROW_GROUP_NONE) f->st->group = TIDE_ROW_GROUP_NAME;
}

/// While a trace grows, new rows are requested only when the last ones are there.
static bool may_start(const tide__frame *f) {
    return !(f->out->a->is_recording && f->cache->pending[TIDE__QUERY_ROWS].is_pending);
}

/// Millions of rows are freed before new ones are made, so that memory holds one set of them and not two.
static void drop_large(tide__frame *f) {
    const tide__query_result *a = &f->cache->results[TIDE__QUERY_ROWS];
    const rows_query *r = a->is_there ? a->ctx : NULL;
    if (r == NULL || !r->has_rows || r->rows.n_members <= TIDE_ROWS_WITH_REACH) return;
    tide__query_forget(f->cache, TIDE__QUERY_ROWS);
    f->cache->gantt_key = 0;
    f->cache->n_gantt = 0;
}

static tide_status start_query(tide__frame *f, uint64_t key) {
    rows_query *r;
    drop_large(f);
    TIDE_TRY(make_query(f, &r));
    return tide__query_start(f->cache, TIDE__QUERY_ROWS, key, tide__is_small(f->st->a), run_rows, release_rows, r,
                             f->err);
}

// ---- settling ----

static size_t row_of_item(const tide_rows *rows, uint32_t item) {
    return item == TIDE_NO_ITEM ? SIZE_MAX : tide_rows_find(rows, item);
}

static uint32_t first_of_row(const tide_rows *rows, size_t row) {
    return rows->members[rows->first != NULL ? rows->first[row] : row];
}

/// The selection: a selected item is found in the new rows; a selected row selects its item.
static void settle_row(tide__frame *f, const tide_rows *rows, uint64_t key) {
    tide_tui_state *st = f->st;
    tide_tui_query_cache *cache = f->cache;
    if (rows->n == 0) {
        st->row = st->top = 0;
        return;
    }
    // A new cache has seen no rows: the selection stays, as it would in the cache that it was made with.
    const bool other_rows = cache->rows_seen != 0 && cache->rows_seen != key;
    const bool other_item = st->item != cache->item, other_row = st->row != cache->row;
    if (st->row >= rows->n) st->row = rows->n - 1;
    if (!other_rows && !other_item && !other_row && st->item != TIDE_NO_ITEM) return;
    if (other_item || other_rows || st->item == TIDE_NO_ITEM) {
        const size_t at = row_of_item(rows, st->item);
        if (at != SIZE_MAX) {
            st->row = at;
            return;
        }
        // Selected in another list, and hidden here: it stays selected until another row is.
        if (other_item && !other_rows && st->item != TIDE_NO_ITEM) return;
    }
    st->item = first_of_row(rows, st->row);
}

static void settle_scroll(tide__frame *f, const tide_rows *rows) {
    tide_tui_state *st = f->st;
    const size_t h = f->layout->bars.h > 0 ? (size_t)f->layout->bars.h : 1;
    const bool was_scrolled = st->top != f->cache->top_row && st->row == f->cache->row;
    if (rows->n == 0) return;
    const size_t last_top = rows->n > h ? rows->n - h : 0;
    if (st->top > last_top) st->top = last_top;
    if (was_scrolled && st->item == f->cache->item) { // the wheel: the selection stays on the screen
        const size_t before = st->row;
        if (st->row < st->top) st->row = st->top;
        if (st->row >= st->top + h) st->row = st->top + h - 1;
        if (st->row != before) st->item = first_of_row(rows, st->row);
        return;
    }
    if (st->row < st->top) st->top = st->row;
    if (st->row >= st->top + h) st->top = st->row - h + 1;
}

/// A new table (of a trace that grows, without a worker) has other indexes.
static void find_item_again(tide__frame *f) {
    const tide_tui_query_cache *cache = f->cache;
    const tide_items *items = tide_subject_items(f->st->a);
    const uint32_t item = f->st->item;
    if (!cache->has_item_id || item != cache->item || items == NULL) return;
    if (item >= items->n || tide_items_id(items, item) != cache->item_id)
        f->st->item = tide_items_find(items, cache->item_id);
}

static void remember(tide__frame *f, uint64_t key) {
    tide_tui_query_cache *cache = f->cache;
    const tide_items *items = tide_subject_items(f->st->a);
    cache->rows_seen = key;
    cache->row = f->st->row;
    cache->top_row = f->st->top;
    cache->item = f->st->item;
    cache->has_item_id = f->st->item != TIDE_NO_ITEM && items != NULL && f->st->item < items->n;
    if (cache->has_item_id) cache->item_id = tide_items_id(items, f->st->item);
}

tide_status tide__scene_rows(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    choose_group(f);
    const uint64_t key = rows_key(f);
    if (tide__query_is_needed(cache, TIDE__QUERY_ROWS, key) && may_start(f)) TIDE_TRY(start_query(f, key));
    rows_query *r = tide__query_result_of(f, TIDE__QUERY_ROWS, key, TIDE_TUI_PANE_GANTT);
    const tide__query_result *before = &cache->results[TIDE__QUERY_ROWS];
    if (r == NULL && before->is_there && before->key != key && before->status == TIDE_OK) r = before->ctx;
    if (r == NULL || !r->has_rows) return TIDE_OK;
    if (r->hold != NULL) tide__query_share_items(cache, f->st, r->hold);
    find_item_again(f);
    f->out->rows = &r->rows;
    settle_row(f, &r->rows, before->key);
    settle_scroll(f, &r->rows);
    TIDE_ASSERT(r->rows.n == 0 || (f->st->top <= f->st->row && f->st->row < r->rows.n));
    remember(f, before->key);
    return TIDE_OK;
}

// ---- search ----

/// Beyond that many members, matches are counted by site, and the number of the selected one is not known.
enum { MAX_RANKED = 1000000 };

static size_t first_member(const tide_rows *rows, size_t row) { return rows->first != NULL ? rows->first[row] : row; }
static size_t last_member(const tide_rows *rows, size_t row) {
    return rows->first != NULL ? (size_t)rows->first[row + 1] - 1 : row;
}

// ---- search ----

static bool is_match(const tide_tui_query_cache *cache, const tide_items *items, uint32_t item) {
    if (cache->match_bits == NULL) return false;
    const uint32_t site = tide_items_site_of(items, item);
    return (cache->match_bits[site / 8] >> (site % 8) & 1) != 0;
}

static tide_status search(tide__frame *f, const tide_items *items, uint64_t rows_key) {
    tide_tui_query_cache *cache = f->cache;
    const uint64_t key = tide__key(tide__key_text(tide__key(0, cache->items_serial), f->st->search), cache->a_serial);
    if (cache->match_key != key) {
        tide_host_free(cache->match_bits);
        cache->match_bits = NULL;
        cache->n_matches = cache->match_at = 0;
        cache->match_key = key;
        cache->match_at_key = 0;
        if (f->st->search[0] == '\0') return TIDE_OK;
        tide_error why = TIDE_ERROR_INIT;
        const tide_status st = tide_items_search(items, f->st->search, &cache->match_bits, &cache->n_matches, &why);
        TIDE_TRY(tide__pass_no_memory(st, &why, f->err));
        if (st != TIDE_OK) cache->match_bits = NULL; // the error was shown when it was typed
    }
    const tide_rows *rows = f->out->rows;
    const uint64_t at_key = tide__key(tide__key(key, rows_key), f->st->item);
    if (cache->match_bits != NULL && rows->n_members <= MAX_RANKED && cache->match_at_key != at_key) {
        size_t n = 0;
        cache->match_at = 0;
        for (size_t i = 0; i < rows->n_members; i++) {
            n += is_match(cache, items, rows->members[i]);
            if (rows->members[i] == f->st->item && is_match(cache, items, f->st->item)) cache->match_at = n;
        }
        cache->n_matches = n;
        cache->match_at_key = at_key;
    }
    f->out->match_bits = cache->match_bits;
    f->out->n_matches = cache->n_matches;
    f->out->match_at = cache->match_at;
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
    const tide_size size = tide_sizes_find(&items->sizes, tide_items_id(items, item));
    out->is_most = !is_group && tide_size_is_bounded(&size);
    out->fill = shape->fill;
}

static tide_status make_rows(tide__frame *f, const tide_items *items, uint64_t key) {
    tide_tui_query_cache *cache = f->cache;
    const tide_rows *rows = f->out->rows;
    const int w = f->layout->bars.w > 0 ? f->layout->bars.w : 0;
    const int columns = w < TIDE_TUI_MAX_COLUMNS ? w : TIDE_TUI_MAX_COLUMNS;
    size_t n = f->layout->bars.h > 0 ? (size_t)f->layout->bars.h : 0;
    if (f->st->top >= rows->n)
        n = 0;
    else if (n > rows->n - f->st->top)
        n = rows->n - f->st->top;
    if (cache->gantt_key == key && cache->n_gantt == n) return TIDE_OK;
    cache->gantt_key = 0;
    TIDE_TRY(TIDE_GROW(&cache->gantt, &cache->gantt_cap, n, f->err, "for a frame"));
    TIDE_TRY(TIDE_GROW(&cache->spans, &cache->spans_cap, n * (size_t)w, f->err, "for a frame"));
    if (n > 0 && w > 0) memset(cache->spans, 0, n * (size_t)w * sizeof *cache->spans);
    for (size_t i = 0; i < n; i++) {
        tide_tui_gantt_row *row = &cache->gantt[i];
        *row = (tide_tui_gantt_row){.spans = cache->spans + i * (size_t)w};
        fill_row(f, items, f->st->top + i, row);
        if (columns > 0)
            tide_rows_spans(rows, items, f->st->top + i, f->st->window.begin, f->st->window.end, (size_t)columns,
                            row->spans);
        row->where = where(f, items, f->st->top + i, row->spans, columns);
    }
    cache->n_gantt = n;
    cache->gantt_key = key;
    return TIDE_OK;
}

tide_status tide__scene_gantt(tide__frame *f) {
    tide_tui_query_cache *cache = f->cache;
    const tide_items *items = tide_subject_items(f->st->a);
    if (f->out->rows == NULL || items == NULL) {
        cache->gantt_key = 0; // its names were in rows that are freed
        return TIDE_OK;
    }
    TIDE_TRY(search(f, items, cache->rows_seen));
    if (!tide__is_shown(f, TIDE_TUI_PANE_GANTT)) return TIDE_OK;
    uint64_t key = tide__key(tide__key(cache->rows_seen, cache->items_serial), f->st->top);
    key = tide__key(tide__key(key, (uint64_t)f->st->window.begin), (uint64_t)f->st->window.end);
    key = tide__key(tide__key(key, (uint64_t)f->layout->bars.w), (uint64_t)f->layout->bars.h);
    TIDE_TRY(make_rows(f, items, key));
    for (size_t i = 0; i < cache->n_gantt; i++) cache->gantt[i].is_match = is_match(cache, items, cache->gantt[i].item);
    f->out->gantt = cache->gantt;
    f->out->n_gantt = cache->n_gantt;
    return TIDE_OK;
}
