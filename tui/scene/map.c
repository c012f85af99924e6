// SPDX-License-Identifier: MIT
//
// Addresses over time: the regions of all items, made by the worker when there are many, and the cells of the window.
// Where there are too many blocks to keep their places, or to draw those of the window while a key waits, the picture
// shows the cursor's moment only. See scene_parts.h.
#include "core/base/host_alloc.h"
#include "tui/scene/scene_parts.h"

enum {
    MOMENT_COLUMNS = 24, ///< of the picture of one moment: room for a name
    MOST_DRAWN = 100000, ///< blocks in a window, 0.1 us each
};

typedef struct space_query {
    tide_space space;
    bool has_space;
    tide_items_hold *hold; ///< of the table that it was made of
} space_query;

static void release_space(void *ctx) {
    space_query *s = ctx;
    if (s->has_space) tide_space_deinit(&s->space);
    tide_items_let_go(s->hold);
    tide_host_free(s);
}

static tide_status run_space(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                             tide_error *err) {
    (void)b;
    space_query *s = ctx;
    TIDE_TRY(tide_subject_load(a, progress, err));
    if (progress != NULL && !progress->tell(progress->ctx, 0, "laying out addresses"))
        return TIDE_FAIL(err, TIDE_ERR_CANCELLED, "cancelled");
    TIDE_TRY(tide_space_make(a, &s->space, err));
    s->has_space = true;
    s->hold = tide_subject_hold_items(a);
    return TIDE_OK;
}

/// The space of all items; NULL: not there (yet).
static tide_status space_of_items(tide__frame *f, tide_tui_pane pane, const tide_space **out) {
    tide_tui_query_cache *cache = f->cache;
    *out = NULL;
    const tide_items *items = tide_subject_items(f->st->a);
    if (items == NULL && f->out->a->is_recording) return TIDE_OK; // the result of the rows brings the items
    const uint64_t key = tide__key(tide__key(0, cache->a_serial), 'S');
    if (tide__query_is_needed(cache, TIDE__QUERY_SPACE, key)) {
        space_query *q;
        TIDE_TRY(TIDE_NEW(&q, 1, f->err, "for a question"));
        TIDE_TRY(tide__query_start(cache, TIDE__QUERY_SPACE, key, tide__is_small(f->st->a), run_space, release_space, q,
                                   f->err));
    }
    const space_query *s = tide__query_result_of(f, TIDE__QUERY_SPACE, key, pane);
    if (s == NULL || s->hold == NULL) return TIDE_OK;
    if (tide__query_same_table(f, TIDE__QUERY_SPACE, s->hold)) *out = &s->space;
    return TIDE_OK;
}

// ---- one moment ----

/// Items that begin before `t`.
static size_t n_before(const tide_items *items, int64_t t) {
    size_t lo = 0, hi = items->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (tide_items_begin(items, mid) < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool are_too_many(const tide__frame *f) {
    const tide_items *items = tide_subject_items(f->st->a);
    const tide_tui_window w = f->st->window;
    if (items == NULL || items->n <= MOST_DRAWN) return false;
    return items->place == NULL || n_before(items, w.end) - n_before(items, w.begin) > MOST_DRAWN;
}

typedef struct moment_query {
    tide_moment at;
    tide_space space;
    bool has_space;
    tide_items_hold *hold;
} moment_query;

static void release_moment(void *ctx) {
    moment_query *m = ctx;
    if (m->has_space) tide_space_deinit(&m->space);
    tide_items_let_go(m->hold);
    tide_host_free(m);
}

static tide_status run_moment(void *ctx, tide_subject *a, tide_subject *b, const tide_progress *progress,
                              tide_error *err) {
    (void)b;
    moment_query *m = ctx;
    tide_live_items live;
    TIDE_TRY(tide_subject_load(a, progress, err));
    TIDE_TRY(tide_subject_live(a, m->at, &live, err));
    const tide_status st = tide_space_of_live(a, &live, progress, &m->space, err);
    tide_live_items_deinit(&live);
    TIDE_TRY(st);
    m->has_space = true;
    m->hold = tide_subject_hold_items(a);
    return TIDE_OK;
}

static tide_status space_of_moment(tide__frame *f, const tide_space **out) {
    tide_tui_query_cache *cache = f->cache;
    *out = NULL;
    const uint64_t key = tide__key_moment(tide__key(tide__key(0, cache->a_serial), 'M'), tide_tui_now(f->st));
    if (tide__query_is_needed(cache, TIDE__QUERY_MOMENT_SPACE, key)) {
        moment_query *m;
        TIDE_TRY(TIDE_NEW(&m, 1, f->err, "for a question"));
        m->at = tide_tui_now(f->st);
        TIDE_TRY(tide__query_start_at_cursor(f, TIDE__QUERY_MOMENT_SPACE, key, false, run_moment, release_moment, m));
    }
    const moment_query *m = tide__query_result_of(f, TIDE__QUERY_MOMENT_SPACE, key, TIDE_TUI_PANE_MAP);
    if (m == NULL) m = tide__query_previous_result(f, TIDE__QUERY_MOMENT_SPACE, TIDE_TUI_PANE_MAP);
    if (m == NULL || m->hold == NULL || !tide__query_same_table(f, TIDE__QUERY_MOMENT_SPACE, m->hold)) return TIDE_OK;
    *out = &m->space;
    f->out->map_at = m->at;
    return TIDE_OK;
}

/// One column, copied to all the others: the picture of a moment has no time axis.
static tide_status cells_of_moment(tide__frame *f, uint64_t lo, uint64_t hi, size_t w, size_t h, tide_space_cell *cells,
                                   tide_error *err) {
    const int64_t t = f->out->map_at.t;
    TIDE_TRY(tide_space_cells(f->out->space, tide_subject_items(f->st->a), t, t + 1, lo, hi, 1, h, cells, err));
    for (size_t y = h; y-- > 0;) {
        const tide_space_cell cell = cells[y];
        for (size_t x = 0; x < w; x++) cells[y * w + x] = cell;
    }
    return TIDE_OK;
}

// ---- cells ----

/// The picture with this key, else the one that was shown longer ago.
static tide__map_picture *picture_of(tide_tui_query_cache *cache, uint64_t key) {
    for (int i = 0; i < 2; i++) {
        if (!cache->pictures[i].is_there || cache->pictures[i].key != key) continue;
        cache->last_picture = i;
        return &cache->pictures[i];
    }
    cache->last_picture = 1 - cache->last_picture;
    return &cache->pictures[cache->last_picture];
}

static tide_status make_cells(tide__frame *f, tide__map_picture *p, uint64_t key, size_t w, size_t h) {
    if (p->is_there && p->key == key) return TIDE_OK;
    p->is_there = false;
    TIDE_TRY(TIDE_GROW(&p->cells, &p->cap, w * h, f->err, "for a frame"));
    const bool all = f->st->space_lo >= f->st->space_hi;
    const uint64_t lo = all ? 0 : (uint64_t)f->st->space_lo;
    const uint64_t hi = all ? f->out->space->bytes : (uint64_t)f->st->space_hi;
    const tide_tui_window win = f->st->window;
    tide_error why = TIDE_ERROR_INIT;
    const tide_status st = f->out->map_is_moment ? cells_of_moment(f, lo, hi, w, h, p->cells, &why)
                                                 : tide_space_cells(f->out->space, tide_subject_items(f->st->a),
                                                                    win.begin, win.end, lo, hi, w, h, p->cells, &why);
    TIDE_TRY(tide__pass_no_memory(st, &why, f->err));
    p->is_there = st == TIDE_OK;
    p->key = key;
    if (st != TIDE_OK) tide__error_text(p->error, sizeof p->error, &why);
    return TIDE_OK;
}

/// Key of the cells of the result that is shown, which may be the previous one.
static uint64_t cells_key(const tide__frame *f, size_t w, size_t h) {
    const tide_tui_state *st = f->st;
    const int slot = f->out->map_is_moment ? TIDE__QUERY_MOMENT_SPACE : TIDE__QUERY_SPACE;
    uint64_t key = tide__key(f->cache->results[slot].key, (uint64_t)slot);
    key = tide__key(tide__key(key, (uint64_t)st->window.begin), (uint64_t)st->window.end);
    key = tide__key(tide__key(key, (uint64_t)st->space_lo), (uint64_t)st->space_hi);
    return tide__key(tide__key(key, w), h);
}

tide_status tide__scene_map(tide__frame *f) {
    const bool is_map = tide__is_shown(f, TIDE_TUI_PANE_MAP);
    if (!is_map && !tide__is_shown(f, TIDE_TUI_PANE_DETAILS)) return TIDE_OK;
    if (are_too_many(f)) {
        if (!is_map) return TIDE_OK; // nor what lies beside the selection
        f->out->map_is_moment = true;
        TIDE_TRY(space_of_moment(f, &f->out->space));
    } else {
        TIDE_TRY(space_of_items(f, is_map ? TIDE_TUI_PANE_MAP : TIDE_TUI_N_PANES, &f->out->space));
    }
    if (f->out->space == NULL || !is_map || f->layout->map.w <= 0 || f->layout->map.h <= 0) return TIDE_OK;
    int shown = f->layout->map.w < TIDE_TUI_MAX_COLUMNS ? f->layout->map.w : TIDE_TUI_MAX_COLUMNS;
    if (f->out->map_is_moment && shown > MOMENT_COLUMNS) shown = MOMENT_COLUMNS;
    f->out->cells_w = shown;
    const size_t w = (size_t)shown, h = 2 * (size_t)f->layout->map.h;
    const uint64_t key = cells_key(f, w, h);
    tide__map_picture *p = picture_of(f->cache, key);
    TIDE_TRY(make_cells(f, p, key, w, h));
    if (p->is_there)
        f->out->cells = p->cells;
    else
        tide__set_pane_error(f, TIDE_TUI_PANE_MAP, p->error);
    return TIDE_OK;
}
